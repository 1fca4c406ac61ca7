//! Functions of Intel's graphics compiler: reads, writes and prefetches of two-dimensional blocks, and DPAS.
//!
//! A matrix in memory is `(base, width - 1, height - 1, pitch - 1, (x, y))`: width and pitch in bytes, `y` in rows, `x` in elements. What a
//! block reads outside of it is zero, what it writes there is dropped. Base, sizes and place are the same in all lanes; lane `l`
//! has column `l` of a block, an element a row.

use crate::Error;
use crate::module::{Type, id_of, malformed, unsupported, whole};
use crate::translate::{Regs, Translator};
use rspirv::dr::Instruction;
use rspirv::spirv::Op;

/// What a name says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shape {
    /// Bits of an element.
    pub bits: u32,
    pub rows: u32,
    pub columns: u32,
    /// Blocks beside each other.
    pub blocks: u32,
}

/// How a block lies in registers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Form {
    Rows,
    /// Pairs of rows in one register (VNNI).
    Transform,
    /// A lane has a row.
    Transpose,
}

/// What is multiplied.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Factor {
    F16,
    Bf16,
    /// Of fp32, as much as tf32 has.
    Tf32,
    S8,
}

/// `u16_m8k16v1`; without `m` there are 16 rows, or as many as the transform's `k` says.
fn shape(text: &str, form: Form) -> Option<Shape> {
    let (bits, rest) = text.strip_prefix('u')?.split_once('_')?;
    let bits = bits.parse().ok()?;
    let (rest, blocks) = match rest.split_once('v') {
        Some((rest, n)) => (rest, n.parse().ok()?),
        None => (rest, 1),
    };
    Some(match (form, rest.strip_prefix('m')) {
        (Form::Rows, Some(rest)) => {
            let (m, k) = rest.split_once('k')?;
            Shape { bits, rows: m.parse().ok()?, columns: k.parse().ok()?, blocks }
        }
        (Form::Transform, None) => {
            Shape { bits, rows: rest.strip_prefix('k')?.parse().ok()?, columns: 16, blocks }
        }
        (Form::Transpose, None) => {
            Shape { bits, rows: 16, columns: rest.strip_prefix('k')?.parse().ok()?, blocks }
        }
        _ => return None,
    })
}

/// A name without the parameters' types (Itanium C++ ABI §5.1.3).
fn plain(name: &str) -> &str {
    let Some(rest) = name.strip_prefix("_Z") else { return name };
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..digits].parse().ok().and_then(|n: usize| rest[digits..].get(..n)).unwrap_or(name)
}

impl Translator<'_> {
    /// What an imported function gives.
    pub(crate) fn imported(&mut self, i: &Instruction, name: &str, args: &[Regs]) -> Result<Regs, Error> {
        let name = plain(name);
        if let Some(rest) = name.strip_prefix("llvm.genx.GenISA.LSC2DBlock") {
            return self.message(i, rest.split('.').next().unwrap_or_default(), args);
        }
        if let Some(rest) = name.strip_prefix("__builtin_IB_subgroup_block_") {
            for (prefix, form) in [
                ("read_flat_transform_", Form::Transform),
                ("read_flat_transpose_", Form::Transpose),
                ("read_flat_", Form::Rows),
                ("write_flat_", Form::Rows),
                ("read_prefetch_", Form::Rows),
            ] {
                if let Some(s) = rest.strip_prefix(prefix).and_then(|text| shape(text, form)) {
                    return self.block(i, prefix, s, form, args);
                }
            }
        }
        if let Some(rest) = name.strip_prefix("intel_sub_group_") {
            match rest {
                "f16_f16_matrix_mad_k16" => return self.dpas(i, Factor::F16, args),
                "bf16_bf16_matrix_mad_k16" => return self.dpas(i, Factor::Bf16, args),
                _ => {}
            }
        }
        if let (Some(rest), [c, a, b]) = (name.strip_prefix("__builtin_IB_sub_group16_"), args) {
            // Eight steps along K, and so many rows.
            let (types, rows) = rest.rsplit_once("_8_").unwrap_or((rest, ""));
            let factor = match types {
                "fdpas_f_f_hf_hf" => Some(Factor::F16),
                "fdpas_f_f_bf_bf" => Some(Factor::Bf16),
                "fdpas_f_f_tf32_tf32" => Some(Factor::Tf32),
                "idpas_s8_s8" => Some(Factor::S8),
                _ => None,
            };
            if let Some(factor) = factor.filter(|_| rows == c.len().to_string()) {
                return self.dpas(i, factor, &[a.clone(), b.clone(), c.clone()]);
            }
        }
        Err(unsupported(i, &format!("the function `{name}`")))
    }

    /// A block message as GenISA has it (`LSC2DBlockRead`): a matrix, a place, and, as constants, bits of an element, columns, rows, blocks beside each
    /// other, whether they are transposed, whether they are packed, and a number for the caches.
    fn message(&mut self, i: &Instruction, what: &str, args: &[Regs]) -> Result<Regs, Error> {
        let constant = |k: usize| {
            let c = self
                .module
                .constants
                .get(&id_of(i, k + 1)?)
                .ok_or_else(|| unsupported(i, "a shape at run time"))?;
            Ok(match c.class.opcode {
                Op::ConstantTrue => 1,
                Op::ConstantFalse => 0,
                _ => whole(c).ok_or_else(|| malformed(i))? as u32,
            })
        };
        let [bits, columns, rows, blocks, turned, packed] = [6, 7, 8, 9, 10, 11].map(constant);
        let s = Shape { bits: bits?, rows: rows?, columns: columns?, blocks: blocks? };
        let form = match (turned?, packed?) {
            (0, 0) => Form::Rows,
            (0, _) => Form::Transform,
            (_, 0) => Form::Transpose,
            _ => return Err(unsupported(i, "a block of this shape")),
        };
        let what = match what {
            "Read" => "read_flat_",
            "Prefetch" => "read_prefetch_",
            "Write" => "write_flat_",
            _ => return Err(unsupported(i, "this message")),
        };
        let place = [4, 5].map(|k| args.get(k).cloned().unwrap_or_default()).concat();
        let mut list = args.get(..4).unwrap_or(&[]).to_vec();
        list.push(place);
        list.extend(args.get(13).cloned());
        self.block(i, what, s, form, &list)
    }

    fn block(
        &mut self,
        i: &Instruction,
        what: &str,
        s: Shape,
        form: Form,
        args: &[Regs],
    ) -> Result<Regs, Error> {
        let scalar = |k: usize| match args.get(k).map(Vec::as_slice) {
            Some([one]) => Ok(one.clone()),
            _ => Err(unsupported(i, "these arguments")),
        };
        let (base, width, height, pitch) = (scalar(0)?, scalar(1)?, scalar(2)?, scalar(3)?);
        let Some([x, y]) = args.get(4).map(Vec::as_slice) else {
            return Err(unsupported(i, "these arguments"));
        };
        let place = [base, width, height, pitch, x.clone(), y.clone()];
        self.same(&place)?;
        let values = match what {
            "write_flat_" => args.get(5).filter(|v| v.len() as u32 == s.rows * s.blocks).cloned(),
            _ => Some(vec![]),
        }
        .ok_or_else(|| unsupported(i, "these arguments"))?;
        self.transfer(i, what, s, form, &place, values)
    }

    /// Reads, writes (`values`) or prefetches a block of a matrix.
    pub(crate) fn transfer(
        &mut self,
        i: &Instruction,
        what: &str,
        s: Shape,
        form: Form,
        place: &[String; 6],
        mut values: Regs,
    ) -> Result<Regs, Error> {
        let whole = match form {
            // What is brought into a cache is in no registers.
            Form::Rows if what == "read_prefetch_" => true,
            Form::Rows => matches!(s.bits, 16 | 32) && s.columns == 16,
            Form::Transform => matches!(s.bits, 8 | 16) && s.rows.is_multiple_of(32 / s.bits),
            Form::Transpose => s.bits == 32 && s.columns <= 8 && s.blocks == 1,
        };
        if self.lanes != 16 || !whole || s.rows > 32 || s.blocks > 4 {
            return Err(unsupported(i, "a block of this shape"));
        }
        self.surface(place);
        if what == "read_prefetch_" {
            return Ok(vec![]);
        }
        let store = what == "write_flat_";
        let mut out = vec![];
        let (outer, inner) = if form == Form::Transpose { (1, s.columns) } else { (s.blocks, s.rows) };
        for block in 0..outer {
            for k in 0..inner {
                let (row, column) = match form {
                    Form::Transpose => ("%lane".to_string(), k.to_string()),
                    _ => (k.to_string(), format!("{}", block * s.columns)),
                };
                let (at, inside) = self.element(place, s.bits, form, &row, &column);
                if store {
                    let v = values.remove(0);
                    self.op(format!("@{inside} st.global.b{} [{at}], {v};", s.bits));
                } else {
                    let v = self.reg(if s.bits == 32 { 'r' } else { 'h' });
                    self.op(format!("mov.b{} {v}, 0;", s.bits.max(16)));
                    let kind = if s.bits == 8 { 'u' } else { 'b' };
                    self.op(format!("@{inside} ld.global.{kind}{} {v}, [{at}];", s.bits));
                    out.push(v);
                }
            }
        }
        if form == Form::Transform {
            if s.bits == 8 {
                out = out.chunks(2).map(|pair| self.bytes(&pair[0], &pair[1])).collect();
            }
            out = out.chunks(2).map(|pair| self.packed(&pair[0], &pair[1])).collect();
        }
        Ok(out)
    }

    /// Two bytes, zero above, in one register of 16 bits.
    pub(crate) fn bytes(&mut self, low: &str, high: &str) -> String {
        let h = self.reg('h');
        self.op(format!("shl.b16 {h}, {high}, 8;"));
        self.op(format!("or.b16 {h}, {h}, {low};"));
        h
    }

    fn packed(&mut self, low: &str, high: &str) -> String {
        let r = self.reg('r');
        self.op(format!("mov.b32 {r}, {{{low}, {high}}};"));
        r
    }

    /// All lanes must say the same of a matrix.
    fn same(&mut self, place: &[String; 6]) -> Result<(), Error> {
        let bad = self.reg('p');
        for (k, v) in place.iter().enumerate() {
            let (ty, b) = if k == 0 { (Type::Int(64), 64) } else { (Type::Int(32), 32) };
            let first = self.shuffled(&ty, "idx", v, "0")?;
            self.op(format!("setp.ne.s{b} {bad}, {v}, {first};"));
            self.trap(
                &bad,
                "base, sizes and place of a block must be the same in all lanes of the sub-group",
            );
        }
        Ok(())
    }

    /// What a matrix must be for the hardware: the base a multiple of 64 bytes, rows of 64 bytes or more that are whole words and no longer
    /// than the pitch, which is a multiple of 16; sizes of at most 24 bits (the checks that Intel's Triton back end makes before it emits a
    /// block).
    fn surface(&mut self, [base, width, height, pitch, _, _]: &[String; 6]) {
        let bad = self.reg('p');
        for v in [width, height, pitch] {
            self.op(format!("setp.gt.u32 {bad}, {v}, 0xffffff;"));
            self.trap(&bad, "sizes of a block's matrix must be at most 2^24");
        }
        let low = self.reg('d');
        self.op(format!("and.b64 {low}, {base}, 63;"));
        self.op(format!("setp.ne.s64 {bad}, {low}, 0;"));
        self.trap(&bad, "the base of a block's matrix must be a multiple of 64 bytes");
        self.op(format!("setp.lt.u32 {bad}, {width}, 63;"));
        self.trap(&bad, "rows of a block's matrix must have 64 bytes or more");
        self.op(format!("setp.lt.u32 {bad}, {pitch}, {width};"));
        self.trap(&bad, "the pitch of a block's matrix must not be less than its width");
        for (v, by, note) in [
            (width, 3, "the width of a block's matrix must be a multiple of 4 bytes"),
            (pitch, 15, "the pitch of a block's matrix must be a multiple of 16 bytes"),
        ] {
            let low = self.reg('r');
            self.op(format!("and.b32 {low}, {v}, {by};"));
            self.op(format!("setp.ne.s32 {bad}, {low}, {by};"));
            self.trap(&bad, note);
        }
    }

    /// Address of an element of a block, and whether it is in the matrix.
    fn element(
        &mut self,
        [base, width, height, pitch, x, y]: &[String; 6],
        bits: u32,
        form: Form,
        row: &str,
        column: &str,
    ) -> (String, String) {
        let (r, c, step, at) = (self.reg('r'), self.reg('r'), self.reg('d'), self.reg('d'));
        self.op(format!("add.s32 {r}, {y}, {row};"));
        self.op(format!("add.s32 {c}, {x}, {column};"));
        if form != Form::Transpose {
            self.op(format!("add.s32 {c}, {c}, %lane;"));
        }
        self.op(format!("mul.lo.s32 {c}, {c}, {};", bits / 8));
        // Numbers below zero are large ones without a sign.
        let (a, b) = (self.reg('p'), self.reg('p'));
        self.op(format!("setp.le.u32 {a}, {r}, {height};"));
        self.op(format!("setp.le.u32 {b}, {c}, {width};"));
        self.op(format!("and.pred {a}, {a}, {b};"));
        self.op(format!("cvt.u64.u32 {step}, {pitch};"));
        self.op(format!("add.s64 {step}, {step}, 1;"));
        let wide = self.reg('d');
        self.op(format!("cvt.s64.s32 {wide}, {r};"));
        self.op(format!("mad.lo.s64 {at}, {wide}, {step}, {base};"));
        self.op(format!("cvt.s64.s32 {wide}, {c};"));
        self.op(format!("add.s64 {at}, {at}, {wide};"));
        (at, a)
    }

    /// `c + a * b`: `a` has a row a register, of which lane `k` has word `k` (of 16 bits; of 32 bits, the upper lanes have every other row); `b` has a
    /// column a lane, four bytes along K a register; `c` a row a register. Products are added to `c` one after the other.
    pub(crate) fn dpas(&mut self, i: &Instruction, factor: Factor, args: &[Regs]) -> Result<Regs, Error> {
        let [a, b, c] = args else { return Err(unsupported(i, "these arguments")) };
        let wide = factor == Factor::Tf32;
        let of_a = if wide { 'r' } else { 'h' };
        let fits = c.iter().all(|r| r.starts_with("%r")) && a.iter().all(|r| r[1..].starts_with(of_a));
        // Two rows a register, or one alone.
        let words = if wide { c.len().div_ceil(2) } else { c.len() };
        if self.lanes != 16 || b.len() != 8 || words != a.len() || !fits {
            return Err(unsupported(i, "a product of this shape"));
        }
        let column: Regs = b.iter().flat_map(|word| self.factors(word, factor, 32)).collect();
        let mut out = vec![];
        for (row, c) in c.iter().enumerate() {
            let own =
                if wide { self.factors(&a[row / 2], factor, 32) } else { self.factors(&a[row], factor, 16) };
            let first = if wide { row % 2 * 8 } else { 0 };
            let mut sum = c.clone();
            for (k, b) in column.iter().enumerate() {
                let (lane, part) = (first + k / own.len(), k % own.len());
                let of_lane = self.shuffled(&Type::Float(32), "idx", &own[part], &lane.to_string())?;
                let next = self.reg('r');
                let op = if factor == Factor::S8 { "mad.lo.s32" } else { "fma.rn.f32" };
                self.op(format!("{op} {next}, {of_lane}, {b}, {sum};"));
                sum = next;
            }
            out.push(sum);
        }
        Ok(out)
    }

    /// The numbers in a word of so many bits, each as wide as a sum.
    fn factors(&mut self, word: &str, factor: Factor, bits: u32) -> Regs {
        if factor == Factor::Tf32 {
            let r = self.reg('r');
            self.op(format!("and.b32 {r}, {word}, 0xffffe000;"));
            return vec![r];
        }
        let halves = if bits == 32 {
            let (low, high) = (self.reg('h'), self.reg('h'));
            self.op(format!("mov.b32 {{{low}, {high}}}, {word};"));
            vec![low, high]
        } else {
            vec![word.to_string()]
        };
        if factor != Factor::S8 {
            return halves.iter().map(|h| self.single(h, factor == Factor::Bf16)).collect();
        }
        let mut out = vec![];
        for half in halves {
            for by in [24, 16] {
                let r = self.reg('r');
                self.op(format!("cvt.u32.u16 {r}, {half};"));
                self.op(format!("shl.b32 {r}, {r}, {by};"));
                self.op(format!("shr.s32 {r}, {r}, 24;"));
                out.push(r);
            }
        }
        out
    }

    /// A number of 16 bits in single precision.
    fn single(&mut self, h: &str, bf16: bool) -> String {
        let r = self.reg('r');
        if bf16 {
            let zero = self.reg('h');
            self.op(format!("mov.b16 {zero}, 0;"));
            self.op(format!("mov.b32 {r}, {{{zero}, {h}}};"));
        } else {
            self.op(format!("cvt.f32.f16 {r}, {h};"));
        }
        r
    }
}
