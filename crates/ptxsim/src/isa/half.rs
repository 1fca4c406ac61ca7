//! Half precision and bf16, single and packed (§9.7.4).
//!
//! A sum, difference or product of two halves fits f32 with room for correct rounding afterwards; a fused
//! multiply-add goes through f64 rounded to odd.
//!
//! Together with [`float`](super::float), since both have `fma` with the same modifiers, of which the type tells whose it is.

use super::float::{FTZ, NAN, Op, RELU, SAT, XORSIGN, rounding};
use super::{Dec, Inst};
use crate::Error;
use crate::ast::Ty;
use crate::fp::*;

type R = Result<(), Error>;

/// One of the two formats.
trait Half {
    const F: Format;
    fn dec(b: u16) -> f32;
    fn enc(x: f32) -> u16;
}
struct H;
struct B;
impl Half for H {
    const F: Format = F16;
    #[inline(always)]
    fn dec(b: u16) -> f32 {
        f16_to_f32(b)
    }
    #[inline(always)]
    fn enc(x: f32) -> u16 {
        f32_to_f16(x)
    }
}
impl Half for B {
    const F: Format = BF16;
    #[inline(always)]
    fn dec(b: u16) -> f32 {
        bf16_to_f32(b)
    }
    #[inline(always)]
    fn enc(x: f32) -> u16 {
        f32_to_bf16(x)
    }
}

fn tiny<T: Half>(b: u16) -> bool {
    u64::from(b & 0x7fff) < 1 << T::F.man
}

#[inline(always)]
fn input<T: Half>(i: &Inst, b: u16) -> u16 {
    if i.flags & FTZ != 0 && tiny::<T>(b) { b & 0x8000 } else { b }
}

#[inline(always)]
fn output<T: Half>(i: &Inst, b: u16) -> u16 {
    if i.flags & (FTZ | SAT | RELU) == 0 {
        return b;
    }
    let b = if i.flags & FTZ != 0 && tiny::<T>(b) { b & 0x8000 } else { b };
    let x = T::dec(b);
    if i.flags & SAT != 0 {
        return if x > 0.0 { T::enc(x.min(1.0)) } else { 0 };
    }
    if i.flags & RELU != 0 && x <= 0.0 {
        return 0;
    }
    b
}

/// [`output`] of a result that may have been rounded up to the smallest normal number.
fn output_of<T: Half>(i: &Inst, b: u16, exact: f64) -> u16 {
    let one = 1u16 << T::F.man;
    if i.flags & FTZ != 0 && b & 0x7fff == one {
        let units = exact.abs() / T::F.decode(one.into());
        if flushes(units, b != one, T::F.man as i32, Round::Rn) {
            return output::<T>(i, b & 0x8000);
        }
    }
    output::<T>(i, b)
}

fn two<T: Half>(i: &Inst, op: Op, a: u16, b: u16) -> u16 {
    let (a, b) = (input::<T>(i, a), input::<T>(i, b));
    let (x, y) = (T::dec(a), T::dec(b));
    match op {
        // bf16 sums can need more than f32 holds before the one rounding: go by f64.
        Op::Add => output::<T>(i, T::F.encode(add_odd(x.into(), y.into()), Round::Rn, false) as u16),
        Op::Sub => output::<T>(i, T::F.encode(add_odd(x.into(), (-y).into()), Round::Rn, false) as u16),
        Op::Mul => output_of::<T>(i, T::enc(x * y), f64::from(x) * f64::from(y)),
        _ => {
            let sign = (a ^ b) & 0x8000;
            let (a, b) = if i.flags & XORSIGN != 0 { (a & 0x7fff, b & 0x7fff) } else { (a, b) };
            let (x, y) = (T::dec(a), T::dec(b));
            let max = op == Op::Max;
            let r = if x.is_nan() || y.is_nan() {
                if i.flags & NAN != 0 || (x.is_nan() && y.is_nan()) {
                    return 0x7fff;
                }
                if x.is_nan() { b } else { a }
            } else if x == y {
                if x.is_sign_negative() == max { b } else { a }
            } else if (x < y) == max {
                b
            } else {
                a
            };
            if i.flags & XORSIGN != 0 { r | sign } else { r }
        }
    }
}

fn three<T: Half>(i: &Inst, a: u16, b: u16, c: u16) -> u16 {
    let f = |v| f64::from(T::dec(input::<T>(i, v)));
    let exact = fma_odd(f(a), f(b), f(c));
    output_of::<T>(i, T::F.encode(exact, Round::Rn, false) as u16, exact)
}

macro_rules! pick2 {
    ($d:expr, $ty:expr, $op:expr) => {
        match $ty {
            Ty::F16 => |cx, i| cx.map2(i, |a, b| two::<H>(i, $op, a, b)),
            Ty::BF16 => |cx, i| cx.map2(i, |a, b| two::<B>(i, $op, a, b)),
            Ty::F16x2 => |cx, i| cx.map2(i, |a, b| both(a, b, |a, b| two::<H>(i, $op, a, b))),
            Ty::BF16x2 => |cx, i| cx.map2(i, |a, b| both(a, b, |a, b| two::<B>(i, $op, a, b))),
            _ => return Err($d.bad_type($ty)),
        }
    };
}

#[inline(always)]
fn both(a: u32, b: u32, f: impl Fn(u16, u16) -> u16) -> u32 {
    u32::from(f(a as u16, b as u16)) | u32::from(f((a >> 16) as u16, (b >> 16) as u16)) << 16
}

pub(super) fn op(d: &mut Dec, ty: Ty, op: Op) -> R {
    rounding(d);
    if d.has("relu") {
        d.out.flags |= RELU;
    }
    if d.has("NaN") {
        d.out.flags |= NAN;
    }
    if d.has("xorsign") {
        d.has("abs");
        d.out.flags |= XORSIGN;
    }
    match op {
        Op::Abs | Op::Neg => {
            d.d_a(ty)?;
            d.out.exec = match (ty, op) {
                (Ty::F16, Op::Abs) => |cx, i| cx.map1(i, |a: u16| input::<H>(i, a) & 0x7fff),
                (Ty::BF16, Op::Abs) => |cx, i| cx.map1(i, |a: u16| a & 0x7fff),
                (Ty::F16x2 | Ty::BF16x2, Op::Abs) => |cx, i| cx.map1(i, |a: u32| a & 0x7fff_7fff),
                (Ty::F16, _) => |cx, i| cx.map1(i, |a: u16| input::<H>(i, a) ^ 0x8000),
                (Ty::BF16, _) => |cx, i| cx.map1(i, |a: u16| a ^ 0x8000),
                _ => |cx, i| cx.map1(i, |a: u32| a ^ 0x8000_8000),
            };
            return Ok(());
        }
        _ => d.d_ab(ty)?,
    }
    d.out.exec = match op {
        Op::Add => pick2!(d, ty, Op::Add),
        Op::Sub => pick2!(d, ty, Op::Sub),
        Op::Mul => pick2!(d, ty, Op::Mul),
        Op::Min => pick2!(d, ty, Op::Min),
        _ => pick2!(d, ty, Op::Max),
    };
    Ok(())
}

pub(super) fn fma(d: &mut Dec, ty: Ty) -> R {
    d.d_abc(ty)?;
    d.out.exec = match ty {
        Ty::F16 => |cx, i| cx.map3(i, |a, b, c| three::<H>(i, a, b, c)),
        Ty::BF16 => |cx, i| cx.map3(i, |a, b, c| three::<B>(i, a, b, c)),
        Ty::F16x2 => |cx, i| {
            cx.map3(i, |a: u32, b: u32, c: u32| {
                let f =
                    |s: u32| u32::from(three::<H>(i, (a >> s) as u16, (b >> s) as u16, (c >> s) as u16)) << s;
                f(0) | f(16)
            })
        },
        Ty::BF16x2 => |cx, i| {
            cx.map3(i, |a: u32, b: u32, c: u32| {
                let f =
                    |s: u32| u32::from(three::<B>(i, (a >> s) as u16, (b >> s) as u16, (c >> s) as u16)) << s;
                f(0) | f(16)
            })
        },
        _ => return Err(d.bad_type(ty)),
    };
    Ok(())
}
