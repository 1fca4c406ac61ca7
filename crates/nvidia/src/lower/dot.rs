//! `tt.dot` by `mma.sync`, for tensor-core encodings.
//!
//! Fragments are found by coordinates. An `m16n8` instruction gives lane 0 the accumulators (0,0), (0,1), (8,0), (8,1);
//! of A it takes words at rows 0 and 8 and two places along K, of B two words at column 0 (PTX ISA, "Matrix Fragments
//! for mma.m16n8k16"). All threads' coordinates are lane 0's plus what the layouts add alike on both sides, so lane 0
//! says which registers make an instruction. K is taken in the order in which lane 0 holds it: A and B agree on it.

use tilewright_ir as ir;
use tilewright_ir::FloatKind;
use tilewright_ir::dialect::tt;
use tilewright_layout::{Encoding, TileLayout};
use tilewright_llvm::{Effect, IntPred, Ty, Value};
use tilewright_lower::Regs;

use super::{Lower, Result};

/// A kind of `mma.sync` instruction.
#[derive(Debug, Clone, Copy)]
struct Mma {
    /// Bits of an operand's element.
    bits: u32,
    /// Extent along K.
    k: u32,
    /// `.f32.f16.f16.f32` and the like.
    types: &'static str,
    /// The accumulator's type: four of these, or two words of halves.
    acc: Ty,
}

/// The registers of the operands and accumulators of one instruction.
struct Step {
    a: [Vec<usize>; 4],
    b: [Vec<usize>; 2],
    c: [usize; 4],
}

impl Lower<'_, '_> {
    /// A dot on tensor cores; `false` where its result is laid out otherwise.
    pub fn dot(&mut self, op: tt::Dot) -> Result<bool> {
        let m = self.m;
        let (a, b, c, result) = (op.a(m), op.b(m), op.c(m), op.result(m));
        match self.encoding(self.value_ty(result))? {
            Encoding::NvidiaMma { version_major: 2, .. } => {
                let out = self.dot_mma(op, a, b, c)?;
                self.set_regs(result, out);
                Ok(true)
            }
            Encoding::NvidiaMma { .. } => Err(self.unsupported("wgmma")),
            _ => Ok(false),
        }
    }

    fn mma_kind(&self, op: tt::Dot, a: ir::Type, b: ir::Type, c: ir::Type) -> Result<Mma> {
        let m = self.m;
        let kinds = (self.float_kind(a), self.float_kind(b), self.float_kind(c));
        let mma = |bits, k, types, acc| Ok(Mma { bits, k, types, acc });
        match kinds {
            (Some(FloatKind::F16), Some(FloatKind::F16), Some(FloatKind::F32)) => {
                mma(16, 16, "f32.f16.f16.f32", Ty::F32)
            }
            (Some(FloatKind::F16), Some(FloatKind::F16), Some(FloatKind::F16)) => {
                mma(16, 16, "f16.f16.f16.f16", Ty::F16)
            }
            (Some(FloatKind::BF16), Some(FloatKind::BF16), Some(FloatKind::F32)) => {
                mma(16, 16, "f32.bf16.bf16.f32", Ty::F32)
            }
            (Some(FloatKind::F32), Some(FloatKind::F32), Some(FloatKind::F32))
                if op.input_precision(m) == tt::InputPrecision::Tf32 =>
            {
                mma(32, 8, "f32.tf32.tf32.f32", Ty::F32)
            }
            (Some(x), Some(y), Some(FloatKind::F32))
                if x.bits() == 8 && y.bits() == 8 && self.facts().fp8 =>
            {
                let types = match (x, y) {
                    (FloatKind::F8E4M3FN, FloatKind::F8E4M3FN) => "f32.e4m3.e4m3.f32",
                    (FloatKind::F8E5M2, FloatKind::F8E5M2) => "f32.e5m2.e5m2.f32",
                    (FloatKind::F8E4M3FN, FloatKind::F8E5M2) => "f32.e4m3.e5m2.f32",
                    (FloatKind::F8E5M2, FloatKind::F8E4M3FN) => "f32.e5m2.e4m3.f32",
                    _ => return Err(self.unsupported("this fp8 format in a dot")),
                };
                mma(8, 32, types, Ty::F32)
            }
            (None, None, None) if m.bits(a) == 8 && m.bits(b) == 8 && m.bits(c) == 32 => {
                mma(8, 32, "s32.s8.s8.s32", Ty::I32)
            }
            _ => Err(self.unsupported("tensor-core dots of these types and this input precision")),
        }
    }

    fn dot_mma(&mut self, op: tt::Dot, a: ir::Value, b: ir::Value, c: ir::Value) -> Result<Vec<Value>> {
        let (ta, tb, tc) = (self.value_ty(a), self.value_ty(b), self.value_ty(c));
        let kind = self.mma_kind(op, ta, tb, tc)?;
        let (la, lb, lc) = (self.layout(ta)?, self.layout(tb)?, self.layout(tc)?);
        let rank = lc.rank();
        let ra = self.without_padding(&la, self.regs(a)?, rank - 1);
        let rb = self.without_padding(&lb, self.regs(b)?, rank - 2);
        let mut acc = self.regs(c)?.to_vec();
        let per_word = (32 / kind.bits) as usize;
        let ks = along(&la, rank - 1);
        if ks != along(&lb, rank - 2) || !ks.len().is_multiple_of(2 * per_word) {
            return Err(self.error("internal: the operands of a dot disagree about the order of K"));
        }
        let finders = (la.register_finder(), lb.register_finder(), lc.register_finder());
        let missing =
            || self.error("internal: a dot operand's layout lacks an element that the instruction needs");
        // The tiles of lane 0: (batch, row, column) of their first accumulators.
        let mut tiles: Vec<(u32, u32, u32)> = (0..lc.num_registers())
            .map(|r| lc.register_coord(r))
            .filter(|c| c[rank - 2] % 16 == 0 && c[rank - 1] % 8 == 0)
            .map(|c| (if rank == 3 { c[0] } else { 0 }, c[rank - 2], c[rank - 1]))
            .collect();
        tiles.sort_unstable();
        tiles.dedup();
        let coord = |batch: u32, x: u32, y: u32| -> Vec<u32> {
            if rank == 3 { vec![batch, x, y] } else { vec![x, y] }
        };
        let words: Vec<&[u32]> = ks.chunks(per_word).collect();
        let mut errors = false;
        let mut find = |finder: &tilewright_layout::RegisterFinder, c: Vec<u32>| -> usize {
            finder.find(&c).unwrap_or_else(|| {
                errors = true;
                0
            }) as usize
        };
        // Register numbers first, then instructions: the borrows of finders and builder stay apart.
        let mut steps = Vec::new();
        for pair in words.chunks_exact(2) {
            for &(batch, row, column) in &tiles {
                let mut a_word = |row: u32, ks: &[u32]| -> Vec<usize> {
                    ks.iter().map(|&k| find(&finders.0, coord(batch, row, k))).collect()
                };
                let a = [
                    a_word(row, pair[0]),
                    a_word(row + 8, pair[0]),
                    a_word(row, pair[1]),
                    a_word(row + 8, pair[1]),
                ];
                let mut b_word = |ks: &[u32]| -> Vec<usize> {
                    ks.iter().map(|&k| find(&finders.1, coord(batch, k, column))).collect()
                };
                let b = [b_word(pair[0]), b_word(pair[1])];
                let mut at = |r: u32, c: u32| find(&finders.2, coord(batch, row + r, column + c));
                let c = [at(0, 0), at(0, 1), at(8, 0), at(8, 1)];
                steps.push(Step { a, b, c });
            }
        }
        if errors {
            return Err(missing());
        }
        for step in &steps {
            self.mma_step(kind, step, &ra, &rb, &mut acc);
        }
        Ok(acc)
    }

    /// One instruction of a product: its operands' registers packed into words, its accumulators taken from `acc` and put back.
    fn mma_step(&mut self, kind: Mma, step: &Step, ra: &[Value], rb: &[Value], acc: &mut [Value]) {
        let word = |s: &mut Self, regs: &[Value], of: &[usize]| {
            let elements: Vec<Value> = of.iter().map(|&r| regs[r]).collect();
            let packed = s.pack_word(&elements);
            s.b.bitcast(packed, Ty::I32)
        };
        let mut args: Vec<Value> = Vec::with_capacity(10);
        for w in &step.a {
            args.push(word(self, ra, w));
        }
        for w in &step.b {
            args.push(word(self, rb, w));
        }
        if kind.acc == Ty::F16 {
            let halves = Ty::vector(tilewright_llvm::Scalar::F16, 2);
            for pair in step.c.chunks(2) {
                let v = self.b.vector(&[acc[pair[0]], acc[pair[1]]]);
                args.push(self.b.bitcast(v, Ty::I32));
            }
            let text = format!(
                "mma.sync.aligned.m16n8k{}.row.col.{} {{$0,$1}}, {{$2,$3,$4,$5}}, {{$6,$7}}, {{$8,$9}};",
                kind.k, kind.types
            );
            let out = self.b.asm(&text, "=r,=r,r,r,r,r,r,r,r,r", Effect::Read, &[Ty::I32; 2], &args);
            for (pair, &w) in step.c.chunks(2).zip(&out) {
                let v = self.b.bitcast(w, halves);
                acc[pair[0]] = self.b.extract(v, 0);
                acc[pair[1]] = self.b.extract(v, 1);
            }
            return;
        }
        let accumulators: Vec<Value> = step.c.iter().map(|&r| acc[r]).collect();
        let out = self.mma(kind, &args, accumulators);
        for (&r, v) in step.c.iter().zip(out) {
            acc[r] = v;
        }
    }

    /// One instruction: four words of A, two of B, four accumulators.
    fn mma(&mut self, kind: Mma, words: &[Value], accumulators: Vec<Value>) -> Vec<Value> {
        let text = format!(
            "mma.sync.aligned.m16n8k{}.row.col.{} {{$0,$1,$2,$3}}, {{$4,$5,$6,$7}}, {{$8,$9}}, {{$10,$11,$12,$13}};",
            kind.k, kind.types
        );
        let letter = if kind.acc == Ty::I32 { "r" } else { "f" };
        let constraints = format!(
            "={letter},={letter},={letter},={letter},r,r,r,r,r,r,{letter},{letter},{letter},{letter}"
        );
        let mut args = words.to_vec();
        args.extend(accumulators);
        self.b.asm(&text, &constraints, Effect::Read, &[kind.acc; 4], &args).to_vec()
    }

    /// Zero where K goes past its logical extent, so that padding adds nothing to any sum.
    fn without_padding(&mut self, layout: &TileLayout, regs: Regs, axis: usize) -> Regs {
        if !layout.needs_bounds_predicate(axis) {
            return regs;
        }
        let size = self.b.i32(i64::from(layout.shape()[axis]));
        let coords = self.coords(layout, axis);
        let ty = self.b.ty(regs[0]);
        let zero = self.b.zero(ty);
        self.map2(&regs, &coords.into(), |s, v, c| {
            let inside = s.b.icmp(IntPred::Ult, c, size);
            s.b.select(inside, v, zero)
        })
        .into()
    }
}

/// The distinct constant coordinates along an axis, ascending.
fn along(layout: &TileLayout, axis: usize) -> Vec<u32> {
    let mut all: Vec<u32> = (0..layout.num_registers()).map(|r| layout.register_coord(r)[axis]).collect();
    all.sort_unstable();
    all.dedup();
    all
}
