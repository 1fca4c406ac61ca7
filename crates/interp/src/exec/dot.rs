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
use crate::float::{Rounding, round_slice, round_tf32};
use crate::program::{Program, V};
use crate::tile::Repr;

/// The extents of a product: batch, rows, columns, depth.
#[derive(Clone, Copy)]
struct Extents {
    batch: usize,
    m: usize,
    n: usize,
    k: usize,
}

impl Frame {
    pub(super) fn dot(&mut self, program: &Program, a: V, b: V, c: V, dst: V, precision: InputPrecision) {
        let (ta, tc) = (Self::ty(program, a), Self::ty(program, dst));
        let rank = tc.shape.len();
        let size = |i: usize| tc.shape[i] as usize;
        let e = Extents {
            batch: (0..rank - 2).map(size).product(),
            m: size(rank - 2),
            n: size(rank - 1),
            k: ta.shape[rank - 1] as usize,
        };
        // An accumulator of zeros need not be read.
        let fresh = self.regs[c.slot as usize].repr == Repr::Uniform(0);
        self.dense(program, a);
        self.dense(program, b);
        if !fresh {
            self.transfer(program, c, dst, false);
            self.dense(program, dst);
        }
        let mut out = std::mem::take(&mut self.regs[dst.slot as usize]);
        out.buf.reserve(tc.len * tc.elem.reg_size());
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
