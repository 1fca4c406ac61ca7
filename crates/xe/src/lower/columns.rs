//! Products of kernels that go thread by thread, as DPAS: their layouts give lanes what the instruction wants of them.
//!
//! A lane has columns of the result and of the second operand, and of the first its share of K (`kWidth` on the operands' layouts). Which step of K is which is
//! free: the lanes' places along K in a register of the first operand say which rows of the second go into an instruction.
//!
//! ```text
//! a: register (row, k), lane l has k + l·kWidth        b: register (k, column), lane l has column + l·width
//! c[8 rows][column] += a[8 rows][k] · b[k + 0·kWidth, k + 1·kWidth, …][column]
//! ```

use tilewright_ir::Encoding;
use tilewright_ir::dialect::tt;
use tilewright_layout::TileLayout;
use tilewright_llvm::{IntPred, Ty, Value};
use tilewright_lower::{Hooks, Shuffle};

use super::dot::{Dpas, dpas};
use super::{Lower, Result, Xe};

/// Lanes of a sub-group.
const LANES: u32 = 16;

/// One instruction's part of K.
struct Step {
    /// Where it begins in the registers of the first operand that a lane has of it.
    first: Vec<u32>,
    /// The rows of the second operand, as the instruction takes them.
    rows: Vec<u32>,
    /// Whether it is that of the upper lanes, where a register has two.
    upper: bool,
}

impl Lower<'_, '_> {
    /// A product whose operands are laid out for it; whether it is one.
    pub(super) fn columns_dot(&mut self, dot: tt::Dot) -> Result<bool> {
        let m = self.m;
        let [a, b, c] = [dot.a(m), dot.b(m), dot.c(m)];
        let encoding = m.encoding(m.value_type(a)).and_then(|e| m.encoding_of(e));
        let Some(Encoding::DotOperand { k_width: 1.., .. }) = encoding else { return Ok(false) };
        let Some(unit) = dpas(m, m.element_type(m.value_type(a))) else { return Ok(false) };
        let [la, lb, lc] =
            [self.layout(m.value_type(a))?, self.layout(m.value_type(b))?, self.layout(m.value_type(c))?];
        let [ra, rb] = [self.regs(a)?, self.regs(b)?];
        let mut sums = self.regs(c)?.to_vec();
        let missing = self.error("internal: a dot operand's layout lacks an element that a lane needs");
        let (fa, fb, fc) = (la.register_finder(), lb.register_finder(), lc.register_finder());
        let [rows, columns] = [0, 1].map(|d| places(&lc, d));
        for step in steps(&la, &unit) {
            for &column in &columns {
                let words: Option<Vec<Value>> =
                    step.rows.iter().map(|&k| fb.find(&[k, column]).map(|r| rb[r as usize])).collect();
                let words = words.ok_or_else(|| missing.clone())?;
                let second = self.packed(&unit, &words);
                for of in rows.chunks(8) {
                    let own = |k: u32| of.iter().map(move |&row| [row, k]);
                    let first: Option<Vec<Vec<Value>>> = step
                        .first
                        .iter()
                        .map(|&k| own(k).map(|at| fa.find(&at).map(|r| ra[r as usize])).collect())
                        .collect();
                    let first = first.ok_or_else(|| missing.clone())?;
                    let first = self.first_of_rows(&unit, &first, step.upper);
                    let registers: Option<Vec<u32>> = of.iter().map(|&row| fc.find(&[row, column])).collect();
                    let registers = registers.ok_or_else(|| missing.clone())?;
                    let sum: Vec<Value> = registers.iter().map(|&r| sums[r as usize]).collect();
                    let sum = self.b.vector(&sum);
                    let made = self.multiply(&unit, sum, first, second);
                    for (i, &r) in registers.iter().enumerate() {
                        sums[r as usize] = if of.len() == 1 { made } else { self.b.extract(made, i as u32) };
                    }
                }
            }
        }
        self.set_regs(dot.result(m), sums);
        Ok(true)
    }

    /// The words of the first operand: of each row what a lane has along K, in one register or two.
    fn first_of_rows(&mut self, unit: &Dpas, registers: &[Vec<Value>], upper: bool) -> Value {
        let mut words = Vec::new();
        match (unit.bits, registers) {
            (8, [low, high]) => {
                for (&low, &high) in low.iter().zip(high) {
                    words.push(self.pack_word(&[low, high]));
                }
            }
            (32, [rows]) => {
                let (lane, eight) = (self.lane(), self.b.i32(8));
                let lower = self.b.icmp(IntPred::Ult, lane, eight);
                for pair in rows.chunks(2) {
                    // The lower lanes have one row, the upper ones the next: each K of its half of the register.
                    let [even, odd] = [pair[0], *pair.last().unwrap_or(&pair[0])];
                    let ty = self.b.ty(even);
                    let far = self.b.bitcast(if upper { even } else { odd }, Ty::I32);
                    let far = Xe::shuffle(self.0, far, Shuffle::Xor(8));
                    let far = self.b.bitcast(far, ty);
                    let [even, odd] = if upper { [far, odd] } else { [even, far] };
                    words.push(self.b.select(lower, even, odd));
                }
            }
            _ => {
                for &row in registers.iter().flatten() {
                    words.push(self.b.bitcast(row, Ty::I16));
                }
            }
        }
        self.b.vector(&words)
    }
}

/// The coordinates along a dimension that registers of the first lane have.
fn places(layout: &TileLayout, d: usize) -> Vec<u32> {
    let mut all: Vec<u32> = (0..layout.num_registers()).map(|r| layout.register_coord(r)[d]).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The parts of K that instructions take, by the layout of the first operand.
fn steps(layout: &TileLayout, unit: &Dpas) -> Vec<Step> {
    let along = layout.lane_bases(1);
    let far = |lane: u32| -> u32 {
        along.iter().enumerate().filter(|&(bit, _)| lane >> bit & 1 == 1).map(|(_, &by)| by).sum()
    };
    let places = places(layout, 1);
    match unit.bits {
        8 => {
            let pairs = places.as_chunks::<2>().0.iter();
            let rows = |&[low, high]: &[u32; 2]| {
                (0..LANES).flat_map(move |lane| [low + far(lane), high + far(lane)]).collect()
            };
            pairs.map(|pair| Step { first: pair.to_vec(), rows: rows(pair), upper: false }).collect()
        }
        32 => {
            let halves = places.iter().flat_map(|&k| [(k, 0), (k, 8)]);
            let rows = |k: u32, from: u32| (from..from + 8).map(|lane| k + far(lane)).collect();
            halves.map(|(k, from)| Step { first: vec![k], rows: rows(k, from), upper: from > 0 }).collect()
        }
        _ => {
            let rows = |k: u32| (0..LANES).map(|lane| k + far(lane)).collect();
            places.iter().map(|&k| Step { first: vec![k], rows: rows(k), upper: false }).collect()
        }
    }
}
