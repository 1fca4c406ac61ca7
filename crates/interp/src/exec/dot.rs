//! Matrix products.
//!
//! Narrow floats are multiplied and accumulated in `f32` and the result is rounded once; the order of the sum along K is
//! the GEMM crate's, the same for the same shapes on the same CPU. See `docs/numerics.md` for the input precisions.

use gemm::Parallelism;
use tilewright_ir::FloatKind;
use tilewright_ir::dialect::tt::InputPrecision;

use super::Frame;
use crate::buffer::Buffer;
use crate::elem::Elem;
use crate::float::{Rounding, round_bf16, round_f16, round_slice, round_tf32};
use crate::program::{DotScaled, Program, V};
use crate::tile::{Reg, Repr, TileType};

/// The extents of a product: batch, rows, columns, depth.
#[derive(Clone, Copy)]
struct Extents {
    batch: usize,
    m: usize,
    n: usize,
    k: usize,
}

/// The extents of the product that gives `result`.
fn extents(result: &TileType, k: usize) -> Extents {
    let rank = result.shape.len();
    let size = |i: usize| result.shape[i] as usize;
    Extents { batch: (0..rank - 2).map(size).product(), m: size(rank - 2), n: size(rank - 1), k }
}

impl Frame {
    pub(super) fn dot(&mut self, program: &Program, a: V, b: V, c: V, dst: V, precision: InputPrecision) {
        let (ta, tc) = (Self::ty(program, a), Self::ty(program, dst));
        let e = extents(tc, ta.shape[ta.shape.len() - 1] as usize);
        self.dense(program, a);
        self.dense(program, b);
        let (mut out, fresh) = self.accumulator(program, c, dst);
        let (lhs, rhs) = (&self.regs[a.slot as usize].buf, &self.regs[b.slot as usize].buf);
        match tc.elem {
            Elem::Float(FloatKind::F64) => product::<f64>(lhs, rhs, &mut out.buf, e, fresh),
            Elem::Float(kind) => {
                if precision == InputPrecision::Tf32 {
                    let [sa, sb, _] = &mut self.scratch;
                    let (na, nb) = (e.batch * e.m * e.k, e.batch * e.k * e.n);
                    for (from, to, n) in [(lhs, &mut *sa, na), (rhs, &mut *sb, nb)] {
                        for (x, &y) in to.slice_mut::<f32>(n).iter_mut().zip(from.slice::<f32>(n)) {
                            *x = round_tf32(y);
                        }
                    }
                    product::<f32>(sa, sb, &mut out.buf, e, fresh);
                } else {
                    product::<f32>(lhs, rhs, &mut out.buf, e, fresh);
                }
                round_slice(out.buf.slice_mut(tc.len), kind, Rounding::Nearest);
            }
            _ => integer_product(lhs, rhs, &mut out.buf, e, fresh),
        }
        out.repr = Repr::Dense;
        self.regs[dst.slot as usize] = out;
    }

    pub(super) fn dot_scaled(&mut self, program: &Program, dot: &DotScaled) {
        let (td, [a, b]) = (Self::ty(program, dot.dst), &dot.operands);
        let ta = Self::ty(program, a.value);
        let pair = if ta.elem == Elem::I8 && a.k_pack { 2 } else { 1 };
        let e = extents(td, ta.shape[ta.shape.len() - 1] as usize * pair);
        for (i, operand) in [a, b].into_iter().enumerate() {
            for v in [operand.value].into_iter().chain(operand.scale) {
                self.dense(program, v);
            }
            let elem = |v: V| Self::ty(program, v).elem;
            let value = (&self.regs[operand.value.slot as usize].buf, elem(operand.value));
            let scale = operand.scale.map(|v| (&self.regs[v.slot as usize].buf, elem(v)));
            let expansion = Expansion {
                e,
                rhs: i == 1,
                k_pack: operand.k_pack,
                kind: dot.kind,
                fast_math: dot.fast_math,
            };
            expansion.expand(value, scale, &mut self.scratch[i]);
        }
        let (mut out, fresh) = self.accumulator(program, dot.c, dot.dst);
        product::<f32>(&self.scratch[0], &self.scratch[1], &mut out.buf, e, fresh);
        if let Elem::Float(kind) = td.elem {
            round_slice(out.buf.slice_mut(td.len), kind, Rounding::Nearest);
        }
        out.repr = Repr::Dense;
        self.regs[dot.dst.slot as usize] = out;
    }

    /// The register of a product's result, taken out, with what is added to; or, if the second is true, there is nothing to add.
    fn accumulator(&mut self, program: &Program, c: V, dst: V) -> (Reg, bool) {
        // An accumulator of zeros need not be read.
        let fresh = self.regs[c.slot as usize].repr == Repr::Uniform(0);
        if !fresh {
            self.transfer(program, c, dst, false);
            self.dense(program, dst);
        }
        let ty = Self::ty(program, dst);
        let mut out = std::mem::take(&mut self.regs[dst.slot as usize]);
        out.buf.reserve(ty.len * ty.elem.reg_size());
        (out, fresh)
    }
}

/// How one operand of a scaled product is read.
struct Expansion {
    e: Extents,
    rhs: bool,
    k_pack: bool,
    kind: FloatKind,
    fast_math: bool,
}

impl Expansion {
    /// Writes each element times its scale, in `kind`, as the matrix that is multiplied.
    fn expand(&self, value: (&Buffer, Elem), scale: Option<(&Buffer, Elem)>, out: &mut Buffer) {
        let Extents { batch, m, n, k } = self.e;
        let round = |x: f32| if self.kind == FloatKind::F16 { round_f16(x) } else { round_bf16(x) };
        let wide = if self.rhs { n } else { m };
        let pair = if value.1 == Elem::I8 { 2 } else { 1 };
        let (pair_k, pair_wide) = if self.k_pack { (pair, 1) } else { (1, pair) };
        // Row-major indices of element (i, d): i along M or N, d along K; each extent may be that of bytes of two.
        let index = |batch: usize, i: usize, d: usize, wide: usize, k: usize| {
            if self.rhs { (batch * k + d) * wide + i } else { (batch * wide + i) * k + d }
        };
        let element = |batch: usize, i: usize, d: usize| {
            let at = index(batch, i / pair_wide, d / pair_k, wide / pair_wide, k / pair_k);
            match value.1 {
                Elem::I8 => {
                    let byte = value.0.slice::<u8>(at + 1)[at];
                    let high = (if self.k_pack { d } else { i }) % 2 == 1;
                    decode_e2m1(if high { byte >> 4 } else { byte & 15 })
                }
                _ => round(value.0.slice::<f32>(at + 1)[at]),
            }
        };
        let scaled = |x: f32, batch: usize, i: usize, d: usize| match scale {
            None => x,
            Some((scales, Elem::I8)) => {
                let at = (batch * wide + i) * (k / 32) + d / 32;
                let exponent = scales.slice::<u8>(at + 1)[at];
                match exponent {
                    255 if !self.fast_math => f32::NAN,
                    _ => round(x * round(f32::from_bits(u32::from(exponent) << 23))),
                }
            }
            Some((scales, _)) => {
                let at = (batch * wide + i) * (k / 16) + d / 16;
                round(x * round(scales.slice::<f32>(at + 1)[at]))
            }
        };
        out.reserve(batch * wide * k * size_of::<f32>());
        let out = out.slice_mut::<f32>(batch * wide * k);
        for b in 0..batch {
            for i in 0..wide {
                for d in 0..k {
                    out[index(b, i, d, wide, k)] = scaled(element(b, i, d), b, i, d);
                }
            }
        }
    }
}

/// The value of an E2M1 code: a sign, two bits of exponent with bias 1, one of mantissa.
fn decode_e2m1(code: u8) -> f32 {
    const MAGNITUDES: [f32; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
    let magnitude = MAGNITUDES[usize::from(code & 7)];
    if code & 8 == 0 { magnitude } else { -magnitude }
}

trait Real: crate::buffer::Plain {
    const ZERO: Self;
    const ONE: Self;
}
impl Real for f32 {
    const ZERO: f32 = 0.0;
    const ONE: f32 = 1.0;
}
impl Real for f64 {
    const ZERO: f64 = 0.0;
    const ONE: f64 = 1.0;
}

fn product<T: Real>(lhs: &Buffer, rhs: &Buffer, out: &mut Buffer, e: Extents, fresh: bool) {
    let Extents { batch, m, n, k } = e;
    let (a, b) = (lhs.slice::<T>(batch * m * k), rhs.slice::<T>(batch * k * n));
    let c = out.slice_mut::<T>(batch * m * n);
    if k == 0 && fresh {
        c.fill(T::ZERO);
    }
    for i in 0..batch {
        let (a, b, c) = (&a[i * m * k..][..m * k], &b[i * k * n..][..k * n], &mut c[i * m * n..][..m * n]);
        // SAFETY: the slices hold the matrices, row-major: column stride 1, row stride the row length.
        unsafe {
            gemm::gemm::<T>(
                m,
                n,
                k,
                c.as_mut_ptr(),
                1,
                n as isize,
                !fresh,
                a.as_ptr(),
                1,
                k as isize,
                b.as_ptr(),
                1,
                n as isize,
                T::ONE,
                T::ONE,
                false,
                false,
                false,
                Parallelism::None,
            );
        }
    }
}

fn integer_product(lhs: &Buffer, rhs: &Buffer, out: &mut Buffer, e: Extents, fresh: bool) {
    let Extents { batch, m, n, k } = e;
    let (a, b) = (lhs.slice::<i8>(batch * m * k), rhs.slice::<i8>(batch * k * n));
    let c = out.slice_mut::<i32>(batch * m * n);
    if fresh {
        c.fill(0);
    }
    for i in 0..batch {
        for row in 0..m {
            let c = &mut c[(i * m + row) * n..][..n];
            for d in 0..k {
                let x = i32::from(a[(i * m + row) * k + d]);
                let b = &b[(i * k + d) * n..][..n];
                for (c, &y) in c.iter_mut().zip(b) {
                    *c = c.wrapping_add(x.wrapping_mul(i32::from(y)));
                }
            }
        }
    }
}
