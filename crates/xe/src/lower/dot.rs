//! `tt.dot` as DPAS: up to 8 rows, 16 columns (a lane each), 8 words along K.
//!
//! What lanes have of the result is what the instruction gives. Of the first operand a lane has, in each row, the word of its number: an element of 32 bits for
//! the lower or the upper half of the lanes, one of 16, two of 8. Of the second it has its column, 8 words down.
//!
//! An operand that stays as messages brought it is named by its registers, in inline assembly ([`crate::visa`]).

use tilewright_ir as ir;
use tilewright_ir::dialect::tt;
use tilewright_ir::{FloatKind, TypeKind};
use tilewright_layout::TileLayout;
use tilewright_llvm::{Effect, IntPred, Scalar, Ty, Value};
use tilewright_lower::{Hooks, Shuffle};
use tilewright_passes::level::Level;

use super::{Lower, Result, Xe};
use crate::visa::{self, Part};

/// An instruction.
pub(super) struct Dpas {
    /// How its function calls the types: result, accumulator, operands.
    types: &'static str,
    /// Bits of an element of the operands.
    pub bits: u32,
    acc: Scalar,
    /// The same in vISA, where operands may be parts of what messages brought.
    element: &'static str,
}

/// The instruction for elements of a type.
pub(super) fn dpas(m: &ir::Module, element: ir::Type) -> Option<Dpas> {
    let (types, bits, acc, element) = match m.type_kind(element) {
        TypeKind::Float(FloatKind::F16) => ("fdpas_f_f_hf_hf", 16, Scalar::F32, "hf"),
        TypeKind::Float(FloatKind::BF16) => ("fdpas_f_f_bf_bf", 16, Scalar::F32, "bf"),
        TypeKind::Float(FloatKind::F32) => ("fdpas_f_f_tf32_tf32", 32, Scalar::F32, "tf32"),
        TypeKind::Int(8) => ("idpas_s8_s8", 8, Scalar::I32, "s8"),
        _ => return None,
    };
    Some(Dpas { types, bits, acc, element })
}

impl Lower<'_, '_> {
    /// A product of the matrix engines, if it is one: where a kernel did not come by levels, one whose layouts are for it.
    pub(super) fn dot(&mut self, dot: tt::Dot) -> Result<bool> {
        let m = self.m;
        if Level::of(m) != Some(Level::Lane) {
            return self.columns_dot(dot);
        }
        let [a, b, c] = [dot.a(m), dot.b(m), dot.c(m)];
        let element = |v: ir::Value| m.element_type(m.value_type(v));
        let unit = (element(a) == element(b)).then(|| dpas(m, element(a))).flatten();
        let layouts = [a, b, c].map(|v| self.layout(m.value_type(v)));
        let [Ok(la), Ok(lb), Ok(lc)] = layouts else { return Ok(false) };
        let acc = self.elem_ty(m.value_type(c))?;
        let ieee = dot.input_precision(m) == tt::InputPrecision::Ieee;
        let unit = unit.filter(|u| acc == Ty::scalar(u.acc) && !(u.bits == 32 && ieee));
        let Some(unit) = unit.filter(|u| Self::fits(u, &la, &lb, &lc)) else {
            return Err(self.unsupported("a dot of these types or of this shape"));
        };
        let rc = self.regs(c)?;
        let (of, sum) = self.accumulator(&lc, &rc);
        let made = match [a, b].map(|v| self.part(v)) {
            [None, None] => {
                let (ra, rb) = (self.regs(a)?, self.regs(b)?);
                let first = self.first_operand(&unit, &la, &ra)?;
                let second = self.second_operand(&unit, &lb, &rb);
                self.multiply(&unit, sum, first, second)
            }
            [first, second] => {
                let own = |words| move |v| (v, Part { words, at: 0 });
                let first = match first {
                    Some(part) => part,
                    None => {
                        let regs = self.regs(a)?;
                        self.first_operand(&unit, &la, &regs).map(own(8 * of.len() as u32))?
                    }
                };
                let second = match second {
                    Some(part) => part,
                    None => {
                        let regs = self.regs(b)?;
                        own(128)(self.second_operand(&unit, &lb, &regs))
                    }
                };
                let added = of.iter().any(|&r| self.b.as_const(rc[r]) != Some(0));
                let text = visa::dpas(unit.element, of.len() as u32, first.1, second.1, added);
                let (ty, args) = (self.b.ty(sum), [first.0, second.0, sum]);
                let (constraints, count) = if added { ("=rw,rw,rw,0", 3) } else { ("=rw,rw,rw", 2) };
                self.b.asm1(&text, constraints, Effect::Pure, ty, &args[..count])
            }
        };
        self.set_accumulator(dot.result(m), &of, made, rc.to_vec());
        Ok(true)
    }

    /// Whether an operand of a dot stays as messages brought it.
    pub(super) fn takes_part(&self, dot: tt::Dot) -> bool {
        self.part(dot.a(self.m)).or_else(|| self.part(dot.b(self.m))).is_some()
    }

    /// Adds a product of zeros to a sum, by the function that the compiler has for it: like this dot, with the least of zeros.
    pub(super) fn add_nothing(&mut self, like: tt::Dot, sum: ir::Value) -> Result<()> {
        let m = self.m;
        let unit = dpas(m, m.element_type(m.value_type(like.a(m))));
        let unit =
            unit.ok_or_else(|| self.error("internal: a dot of whole blocks without an instruction"))?;
        let layout = self.layout(m.value_type(sum))?;
        let regs = self.regs(sum)?;
        let (of, rows) = self.accumulator(&layout, &regs);
        let first = self.b.constant(Ty::I16, 0x8000);
        let first = self.b.vector(&vec![first; of.len()]);
        let second = self.b.i32(0);
        let second = self.b.vector(&[second; 8]);
        let made = self.multiply(&unit, rows, first, second);
        self.set_accumulator(sum, &of, made, regs.to_vec());
        Ok(())
    }

    /// What a dot is added to as a vector, and which registers are in it.
    fn accumulator(&mut self, layout: &TileLayout, regs: &[Value]) -> (Vec<usize>, Value) {
        let found = layout.register_finder();
        let rows = 0..layout.shape()[0];
        let of: Vec<usize> = rows.filter_map(|r| found.find(&[r, 0])).map(|r| r as usize).collect();
        let rows: Vec<Value> = of.iter().map(|&r| regs[r]).collect();
        let sum = self.b.vector(&rows);
        (of, sum)
    }

    fn set_accumulator(&mut self, v: ir::Value, of: &[usize], made: Value, mut regs: Vec<Value>) {
        for (i, &r) in of.iter().enumerate() {
            regs[r] = if of.len() == 1 { made } else { self.b.extract(made, i as u32) };
        }
        self.set_regs(v, regs);
    }

    pub(super) fn multiply(&mut self, unit: &Dpas, sum: Value, first: Value, second: Value) -> Value {
        let ty = self.b.ty(sum);
        let name = format!("__builtin_IB_sub_group16_{}_8_{}", unit.types, ty.lanes);
        self.b.intrinsic(&name, Effect::Pure, Some(ty), &[sum, first, second])
    }

    fn fits(unit: &Dpas, a: &TileLayout, b: &TileLayout, c: &TileLayout) -> bool {
        let k = 8 * 32 / unit.bits;
        let rows = c.shape()[0];
        matches!(rows, 1 | 2 | 4 | 8)
            && a.shape() == [rows, k]
            && b.shape() == [k, 16]
            && c.shape() == [rows, 16]
    }

    /// The first operand, whose columns are along the lanes, again from the first where there are more lanes.
    fn first_operand(&mut self, unit: &Dpas, layout: &TileLayout, regs: &[Value]) -> Result<Value> {
        let (found, rows) = (layout.register_finder(), layout.shape()[0]);
        let missing = self.error("internal: an operand's layout lacks a row");
        let at = |row: u32, column: u32| {
            found.find(&[row, column]).map(|r| regs[r as usize]).ok_or_else(|| missing.clone())
        };
        let lane = self.lane();
        let eight = self.b.i32(8);
        let lower = self.b.icmp(IntPred::Ult, lane, eight);
        let mut words = Vec::with_capacity(8);
        match unit.bits {
            16 => {
                for row in 0..rows {
                    let v = at(row, 0)?;
                    words.push(self.b.bitcast(v, Ty::I16));
                }
            }
            32 => {
                for row in (0..rows).step_by(2) {
                    let (even, odd) = (at(row, 0)?, at((row + 1).min(rows - 1), 0)?);
                    words.push(self.b.select(lower, even, odd));
                }
            }
            _ => {
                // Lane `l` wants columns `2 l` and `2 l + 1`, which are of the first or the second half of the columns.
                let from = self.b.shl(lane, 1);
                let from = self.b.and_const(from, 15);
                for row in 0..rows {
                    let halves = [at(row, 0)?, at(row, 16)?].map(|v| self.b.int_cast(v, Ty::I32, false));
                    let high = self.b.shl(halves[1], 8);
                    let both = self.b.or(halves[0], high);
                    let next = self.b.add_const(from, 1);
                    let pair = [from, next].map(|lane| Xe::shuffle(self.0, both, Shuffle::Index(lane)));
                    let bytes = pair.map(|word| {
                        let upper = self.b.lshr(word, 8);
                        let byte = self.b.select(lower, word, upper);
                        self.b.and_const(byte, 0xff)
                    });
                    let high = self.b.shl(bytes[1], 8);
                    let word = self.b.or(bytes[0], high);
                    words.push(self.b.int_cast(word, Ty::I16, false));
                }
            }
        }
        Ok(self.b.vector(&words))
    }

    /// The second operand: a column, its words one below the other.
    fn second_operand(&mut self, unit: &Dpas, layout: &TileLayout, regs: &[Value]) -> Value {
        let found = layout.register_finder();
        let rows = layout.shape()[0];
        let column: Vec<Value> =
            (0..rows).filter_map(|k| found.find(&[k, 0])).map(|r| regs[r as usize]).collect();
        self.packed(unit, &column)
    }

    /// The elements of a column in words.
    pub(super) fn packed(&mut self, unit: &Dpas, column: &[Value]) -> Value {
        let words: Vec<Value> = column
            .chunks((32 / unit.bits) as usize)
            .map(|word| if word.len() == 1 { word[0] } else { self.pack_word(word) })
            .collect();
        self.b.vector(&words)
    }
}
