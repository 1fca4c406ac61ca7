//! Single and double precision (§9.7.3).
//!
//! Approximate instructions are computed in f64 and rounded once, which is inside every error bound that the ISA
//! states.

use super::{Dec, Flow, Inst};
use crate::Error;
use crate::ast::Ty;
use crate::fp::*;
use crate::machine::Cx;
use crate::regs::{File, LANES};
use crate::report::Class;

type R = Result<(), Error>;

/// Bits of `Inst::flags` above the rounding mode.
pub(super) const FTZ: u32 = 8;
pub(super) const SAT: u32 = 16;
pub(super) const NAN: u32 = 32;
pub(super) const XORSIGN: u32 = 64;
pub(super) const RELU: u32 = 128;

/// The operations that have one shape for all floating types.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    Add,
    Sub,
    Mul,
    Abs,
    Neg,
    Min,
    Max,
}

pub(super) fn rounding(d: &mut Dec) {
    let r = d.one_of(&[("rn", Round::Rn), ("rz", Round::Rz), ("rm", Round::Rm), ("rp", Round::Rp)]);
    d.out.flags |= r.unwrap_or(Round::Rn) as u32;
    if d.has("ftz") {
        d.out.flags |= FTZ;
    }
    if d.has("sat") {
        d.out.flags |= SAT;
    }
}

fn mode(i: &Inst) -> Round {
    Round::from_bits(i.flags)
}

#[inline(always)]
fn input(i: &Inst, x: u32) -> f32 {
    let x = f32::from_bits(x);
    if i.flags & FTZ != 0 { ftz32(x) } else { x }
}

/// Flushes, saturates, and gives NaN its one form.
#[inline(always)]
fn output(i: &Inst, r: f32) -> u32 {
    let r = if i.flags & FTZ != 0 { ftz32(r) } else { r };
    if i.flags & SAT != 0 {
        // NaN saturates to +0.
        return if r > 0.0 { r.min(1.0).to_bits() } else { 0 };
    }
    canon32(r)
}

/// [`output`] of a result that may have been rounded up to the smallest normal number. `exact` is the result before
/// rounding.
#[inline(always)]
fn output_of(i: &Inst, r: f32, exact: impl FnOnce() -> f64) -> u32 {
    if i.flags & FTZ != 0 && r.abs() == f32::MIN_POSITIVE {
        let units = exact().abs() / f64::from(f32::MIN_POSITIVE);
        if flushes(units, r < 0.0, 23, mode(i)) {
            return output(i, 0f32.copysign(r));
        }
    }
    output(i, r)
}

fn mul32(i: &Inst, a: u32, b: u32) -> u32 {
    let (a, b) = (input(i, a), input(i, b));
    output_of(i, a.mul(b, mode(i)), || f64::from(a) * f64::from(b))
}

fn div32(i: &Inst, a: u32, b: u32) -> u32 {
    let (a, b) = (input(i, a), input(i, b));
    // No quotient of two normal numbers lies between the two that are compared here: f64 is as good as exact.
    output_of(i, a.div(b, mode(i)), || f64::from(a) / f64::from(b))
}

fn fma32(i: &Inst, r: f32, a: f32, b: f32, c: f32) -> u32 {
    output_of(i, r, || fma_odd(a.into(), b.into(), c.into()))
}

pub(super) fn op(d: &mut Dec, ty: Ty, op: Op) -> R {
    rounding(d);
    if ty == Ty::F32x2 {
        return op_x2(d, op);
    }
    match op {
        Op::Abs | Op::Neg => {
            d.d_a(ty)?;
            d.out.exec = match (ty, op) {
                (Ty::F32, Op::Abs) => |cx, i| cx.map1(i, |a| input(i, a).abs().to_bits()),
                (Ty::F32, _) => |cx, i| cx.map1(i, |a| (-input(i, a)).to_bits()),
                (Ty::F64, Op::Abs) => |cx, i| cx.map1(i, |a: u64| a & !(1 << 63)),
                (Ty::F64, _) => |cx, i| cx.map1(i, |a: u64| a ^ 1 << 63),
                _ => return Err(d.bad_type(ty)),
            };
        }
        Op::Min | Op::Max => {
            if d.has("NaN") {
                d.out.flags |= NAN;
            }
            if d.has("xorsign") {
                d.has("abs");
                d.out.flags |= XORSIGN;
            }
            if ty == Ty::F32 && d.ins.operands.len() == 4 {
                d.d_abc(ty)?;
                d.out.exec = match op {
                    Op::Min => |cx, i| cx.map3(i, |a, b, c| min_max(i, min_max(i, a, b, false), c, false)),
                    _ => |cx, i| cx.map3(i, |a, b, c| min_max(i, min_max(i, a, b, true), c, true)),
                };
                return Ok(());
            }
            d.d_ab(ty)?;
            d.out.exec = match (ty, op) {
                (Ty::F32, Op::Min) => |cx, i| cx.map2(i, |a, b| min_max(i, a, b, false)),
                (Ty::F32, _) => |cx, i| cx.map2(i, |a, b| min_max(i, a, b, true)),
                (Ty::F64, Op::Min) => |cx, i| cx.map2(i, |a: u64, b: u64| min_max64(a, b, false)),
                (Ty::F64, _) => |cx, i| cx.map2(i, |a: u64, b: u64| min_max64(a, b, true)),
                _ => return Err(d.bad_type(ty)),
            };
        }
        Op::Add | Op::Sub | Op::Mul => {
            d.d_ab(ty)?;
            let plain = d.out.flags == 0;
            d.out.exec = match (ty, op, plain) {
                (Ty::F32, Op::Add, true) => {
                    |cx, i| cx.map2(i, |a: u32, b: u32| canon32(f32::from_bits(a) + f32::from_bits(b)))
                }
                (Ty::F32, Op::Sub, true) => {
                    |cx, i| cx.map2(i, |a: u32, b: u32| canon32(f32::from_bits(a) - f32::from_bits(b)))
                }
                (Ty::F32, Op::Mul, true) => {
                    |cx, i| cx.map2(i, |a: u32, b: u32| canon32(f32::from_bits(a) * f32::from_bits(b)))
                }
                (Ty::F32, Op::Add, _) => |cx, i| add32(cx, i, false),
                (Ty::F32, Op::Sub, _) => |cx, i| add32(cx, i, true),
                (Ty::F32, _, _) => |cx, i| cx.map2(i, |a, b| mul32(i, a, b)),
                (Ty::F64, Op::Add, _) => {
                    |cx, i| cx.map2(i, |a, b| f64::from_bits(a).add(f64::from_bits(b), mode(i)).to_bits())
                }
                (Ty::F64, Op::Sub, _) => {
                    |cx, i| cx.map2(i, |a, b| f64::from_bits(a).add(-f64::from_bits(b), mode(i)).to_bits())
                }
                (Ty::F64, _, _) => {
                    |cx, i| cx.map2(i, |a, b| f64::from_bits(a).mul(f64::from_bits(b), mode(i)).to_bits())
                }
                _ => return Err(d.bad_type(ty)),
            };
        }
    }
    Ok(())
}

fn add32(cx: &mut Cx<'_>, i: &Inst, sub: bool) -> Flow {
    let s = if sub { -1.0f32 } else { 1.0 };
    cx.map2(i, |a, b| output(i, input(i, a).add(s * input(i, b), mode(i))))
}

/// Packed pairs of f32 (sm_100, but `nvcc` libraries use them under other targets as intrinsics).
fn op_x2(d: &mut Dec, op: Op) -> R {
    d.d_ab(Ty::F32x2)?;
    macro_rules! pair {
        ($f:expr) => {
            |cx, i| {
                cx.map2(i, |a: u64, b: u64| {
                    let f: fn(f32, f32, Round) -> f32 = $f;
                    let lo = output(i, f(input(i, a as u32), input(i, b as u32), mode(i)));
                    let hi = output(i, f(input(i, (a >> 32) as u32), input(i, (b >> 32) as u32), mode(i)));
                    u64::from(lo) | u64::from(hi) << 32
                })
            }
        };
    }
    d.out.exec = match op {
        Op::Add => pair!(Directed::add),
        Op::Sub => pair!(|a, b, m| a.add(-b, m)),
        Op::Mul => pair!(Directed::mul),
        _ => return Err(d.bad_type(Ty::F32x2)),
    };
    Ok(())
}

fn min_max(i: &Inst, a: u32, b: u32, max: bool) -> u32 {
    let (x, y) = (input(i, a), input(i, b));
    let sign = (a ^ b) & 1 << 31;
    let (x, y) = if i.flags & XORSIGN != 0 { (x.abs(), y.abs()) } else { (x, y) };
    let r = if x.is_nan() || y.is_nan() {
        if i.flags & NAN != 0 || (x.is_nan() && y.is_nan()) {
            return NAN32;
        }
        if x.is_nan() { y } else { x }
    } else if x == y {
        // −0 is below +0.
        if x.is_sign_negative() == max { y } else { x }
    } else if (x < y) == max {
        y
    } else {
        x
    };
    if i.flags & XORSIGN != 0 { r.to_bits() | sign } else { r.to_bits() }
}

fn min_max64(a: u64, b: u64, max: bool) -> u64 {
    let (x, y) = (f64::from_bits(a), f64::from_bits(b));
    if x.is_nan() {
        return if y.is_nan() { 0x7fff_ffff_ffff_ffff } else { b };
    }
    if y.is_nan() {
        return a;
    }
    if x == y {
        return if x.is_sign_negative() == max { b } else { a };
    }
    if (x < y) == max { b } else { a }
}

pub(super) fn fma(d: &mut Dec) -> R {
    rounding(d);
    if d.has("relu") {
        d.out.flags |= RELU;
    }
    let oob = d.has("oob");
    let ty = d.ty()?;
    if oob {
        return d.fail("not supported yet: modifier `.oob`");
    }
    if matches!(ty, Ty::F16 | Ty::F16x2 | Ty::BF16 | Ty::BF16x2) {
        d.out.class = Class::Half;
        return super::half::fma(d, ty);
    }
    d.out.class = if ty == Ty::F64 { Class::Double } else { Class::Float };
    d.d_abc(ty)?;
    d.out.exec = match ty {
        Ty::F32 => |cx, i| {
            let m = mode(i);
            let (a, b, c) = (cx.get::<u32>(i.a), cx.get::<u32>(i.b), cx.get::<u32>(i.c));
            let (a, b, c) = (a.map(|x| input(i, x)), b.map(|x| input(i, x)), c.map(|x| input(i, x)));
            let r = if m == Round::Rn {
                fma_lanes(&a, &b, &c)
            } else {
                std::array::from_fn(|l| a[l].fma(b[l], c[l], m))
            };
            let r = std::array::from_fn(|l| fma32(i, r[l], a[l], b[l], c[l]));
            cx.put(i.d, &r);
            Flow::Next
        },
        Ty::F64 => |cx, i| {
            cx.map3(i, |a, b, c| {
                f64::from_bits(a).fma(f64::from_bits(b), f64::from_bits(c), mode(i)).to_bits()
            })
        },
        Ty::F32x2 => |cx, i| {
            cx.map3(i, |a: u64, b: u64, c: u64| {
                let f = |s: u32| {
                    let x = |v: u64| input(i, (v >> s) as u32);
                    u64::from(output(i, x(a).fma(x(b), x(c), mode(i)))) << s
                };
                f(0) | f(32)
            })
        },
        _ => return Err(d.bad_type(ty)),
    };
    Ok(())
}

pub(super) fn div(d: &mut Dec, ty: Ty) -> R {
    // `.approx` and `.full` may be off by 2 ulp; exact division is inside that.
    let _ = d.has("approx") || d.has("full");
    rounding(d);
    d.d_ab(ty)?;
    d.out.exec = match ty {
        Ty::F32 => |cx, i| cx.map2(i, |a, b| div32(i, a, b)),
        Ty::F64 => |cx, i| cx.map2(i, |a, b| f64::from_bits(a).div(f64::from_bits(b), mode(i)).to_bits()),
        _ => return Err(d.bad_type(ty)),
    };
    Ok(())
}

pub(super) fn rcp(d: &mut Dec) -> R {
    let approx = d.has("approx");
    rounding(d);
    let ty = d.ty()?;
    d.d_a(ty)?;
    d.out.exec = match (ty, approx) {
        (Ty::F32, _) => |cx, i| cx.map1(i, |a| output(i, 1f32.div(input(i, a), mode(i)))),
        // `rcp.approx.ftz.f64` keeps the upper 32 bits only (§9.7.3.14).
        (Ty::F64, true) => |cx, i| {
            cx.map1(i, |a: u64| {
                let x = f64::from_bits(a);
                let x = if x.abs() < f64::MIN_POSITIVE { 0f64.copysign(x) } else { x };
                let r = 1.0 / x;
                let r = if r.abs() < f64::MIN_POSITIVE { 0f64.copysign(r) } else { r };
                r.to_bits() & !0xffff_ffff
            })
        },
        (Ty::F64, false) => |cx, i| cx.map1(i, |a: u64| 1f64.div(f64::from_bits(a), mode(i)).to_bits()),
        _ => return Err(d.bad_type(ty)),
    };
    Ok(())
}

pub(super) fn sqrt(d: &mut Dec) -> R {
    let _ = d.has("approx");
    rounding(d);
    let ty = d.ty()?;
    d.d_a(ty)?;
    d.out.exec = match ty {
        Ty::F32 => |cx, i| cx.map1(i, |a| output(i, Directed::sqrt(input(i, a), mode(i)))),
        Ty::F64 => |cx, i| cx.map1(i, |a: u64| Directed::sqrt(f64::from_bits(a), mode(i)).to_bits()),
        _ => return Err(d.bad_type(ty)),
    };
    Ok(())
}

pub(super) fn rsqrt(d: &mut Dec) -> R {
    let _ = d.has("approx");
    rounding(d);
    let ty = d.ty()?;
    d.d_a(ty)?;
    d.out.exec = match ty {
        Ty::F32 => |cx, i| cx.map1(i, |a| output(i, (1.0 / f64::from(input(i, a)).sqrt()) as f32)),
        Ty::F64 if d.out.flags & FTZ != 0 => |cx, i| {
            cx.map1(i, |a: u64| {
                let x = f64::from_bits(a);
                let x = if x.abs() < f64::MIN_POSITIVE { 0f64.copysign(x) } else { x };
                (1.0 / x.sqrt()).to_bits() & !0xffff_ffff
            })
        },
        Ty::F64 => |cx, i| cx.map1(i, |a: u64| (1.0 / f64::from_bits(a).sqrt()).to_bits()),
        _ => return Err(d.bad_type(ty)),
    };
    Ok(())
}

/// `name.approx{.ftz}.f32` by a function of f64; `ex2` and `tanh` have half forms too.
macro_rules! approx {
    ($name:ident, $f:expr) => {
        pub(super) fn $name(d: &mut Dec) -> R {
            let _ = d.has("approx");
            rounding(d);
            let ty = d.ty()?;
            d.d_a(ty)?;
            fn f(x: f64) -> f64 {
                let f: fn(f64) -> f64 = $f;
                f(x)
            }
            d.out.exec = match ty {
                Ty::F32 => |cx, i| {
                    let a = cx.get::<u32>(i.a);
                    let mut r = [0u32; LANES];
                    // Only active lanes: these cost too much to do for nothing.
                    for l in crate::regs::lanes(cx.mask) {
                        r[l] = output(i, f(input(i, a[l]).into()) as f32);
                    }
                    cx.put(i.d, &r);
                    Flow::Next
                },
                Ty::F16 => |cx, i| cx.map1(i, |a: u16| half_of(i, f(f16_to_f32(a).into()), F16)),
                Ty::BF16 => |cx, i| cx.map1(i, |a: u16| half_of(i, f(bf16_to_f32(a).into()), BF16)),
                Ty::F16x2 => |cx, i| {
                    cx.map1(i, |a: u32| {
                        let g = |h: u16| u32::from(half_of(i, f(f16_to_f32(h).into()), F16));
                        g(a as u16) | g((a >> 16) as u16) << 16
                    })
                },
                Ty::BF16x2 => |cx, i| {
                    cx.map1(i, |a: u32| {
                        let g = |h: u16| u32::from(half_of(i, f(bf16_to_f32(h).into()), BF16));
                        g(a as u16) | g((a >> 16) as u16) << 16
                    })
                },
                _ => return Err(d.bad_type(ty)),
            };
            Ok(())
        }
    };
}

fn half_of(i: &Inst, x: f64, f: Format) -> u16 {
    let b = f.encode(x, Round::Rn, false) as u16;
    let tiny = u64::from(b & 0x7fff) < 1 << f.man;
    if i.flags & FTZ != 0 && tiny { b & 0x8000 } else { b }
}

approx!(ex2, f64::exp2);
approx!(lg2, f64::log2);
approx!(sin, f64::sin);
approx!(cos, f64::cos);
approx!(tanh, f64::tanh);

pub(super) fn copysign(d: &mut Dec) -> R {
    let ty = d.ty()?;
    d.d_ab(ty)?;
    d.out.exec = match ty {
        Ty::F32 => |cx, i| cx.map2(i, |a: u32, b: u32| a & 1 << 31 | b & !(1 << 31)),
        Ty::F64 => |cx, i| cx.map2(i, |a: u64, b: u64| a & 1 << 63 | b & !(1 << 63)),
        _ => return Err(d.bad_type(ty)),
    };
    Ok(())
}

pub(super) fn testp(d: &mut Dec) -> R {
    let what = d.one_of(&[
        ("finite", 0u32),
        ("infinite", 1),
        ("number", 2),
        ("notanumber", 3),
        ("normal", 4),
        ("subnormal", 5),
    ]);
    let Some(what) = what else { return d.fail("the test is missing") };
    let ty = d.ty()?;
    d.count(2..=2)?;
    d.out.d = d.dst(0, File::P)?;
    d.out.a = d.src(1, ty)?;
    d.out.flags = what;
    fn test(what: u32, c: std::num::FpCategory) -> bool {
        use std::num::FpCategory::*;
        match what {
            0 => !matches!(c, Nan | Infinite),
            1 => c == Infinite,
            2 => c != Nan,
            3 => c == Nan,
            // Zeros count as normal numbers (§9.7.3.1).
            4 => matches!(c, Normal | Zero),
            _ => c == Subnormal,
        }
    }
    d.out.exec = match ty {
        Ty::F32 => |cx, i| {
            let a = cx.get::<u32>(i.a);
            let v =
                (0..LANES).fold(0, |m, l| m | u32::from(test(i.flags, f32::from_bits(a[l]).classify())) << l);
            cx.put_pred(i.d, v);
            Flow::Next
        },
        Ty::F64 => |cx, i| {
            let a = cx.get::<u64>(i.a);
            let v =
                (0..LANES).fold(0, |m, l| m | u32::from(test(i.flags, f64::from_bits(a[l]).classify())) << l);
            cx.put_pred(i.d, v);
            Flow::Next
        },
        _ => return Err(d.bad_type(ty)),
    };
    Ok(())
}
