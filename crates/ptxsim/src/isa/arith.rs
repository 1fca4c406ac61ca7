//! Integer arithmetic (§9.7.1, §9.7.2); the names it shares with floating point are sent on from here.

use super::{Dec, Flow, Inst, float, half};
use crate::Error;
use crate::ast::Ty;
use crate::machine::Cx;
use crate::regs::{File, LANES};
use crate::report::Class;

type R = Result<(), Error>;

fn is_half(t: Ty) -> bool {
    matches!(t, Ty::F16 | Ty::F16x2 | Ty::BF16 | Ty::BF16x2)
}

/// Sends a floating-point form on; `Some` when it was one.
fn floating(d: &mut Dec, ty: Ty, op: float::Op) -> Option<R> {
    if is_half(ty) {
        d.out.class = Class::Half;
        return Some(half::op(d, ty, op));
    }
    if ty.float() {
        d.out.class = if ty == Ty::F64 { Class::Double } else { Class::Float };
        return Some(float::op(d, ty, op));
    }
    None
}

/// `add.s16x2` and friends: one operation on both halves.
macro_rules! x2 {
    ($f:expr) => {
        |cx, i| {
            cx.map2(i, |a: u32, b: u32| {
                let f: fn(u16, u16) -> u16 = $f;
                u32::from(f(a as u16, b as u16)) | u32::from(f((a >> 16) as u16, (b >> 16) as u16)) << 16
            })
        }
    };
}

pub(super) fn add(d: &mut Dec) -> R {
    let cc = d.has("cc");
    let sat = d.has("sat");
    let ty = d.ty()?;
    if ty.float() && sat {
        d.out.flags |= float::SAT;
    }
    if let Some(r) = floating(d, ty, float::Op::Add) {
        return r;
    }
    d.d_ab(ty)?;
    if cc {
        d.writes.push(d.env.carry);
        d.out.exec = match ty.bits() {
            32 => |cx, i| carry32(cx, i, false, false, true),
            64 => |cx, i| carry64(cx, i, false, false, true),
            _ => return Err(d.bad_type(ty)),
        };
        return Ok(());
    }
    d.out.exec = match (ty, sat) {
        (Ty::S32, true) => |cx, i| cx.map2(i, |a: u32, b: u32| (a as i32).saturating_add(b as i32) as u32),
        (Ty::U16x2 | Ty::S16x2, false) => x2!(u16::wrapping_add),
        (_, true) => return Err(d.bad_type(ty)),
        _ => match ty.bits() {
            16 => |cx, i| cx.map2(i, u16::wrapping_add),
            32 => |cx, i| cx.map2(i, u32::wrapping_add),
            64 => |cx, i| cx.map2(i, u64::wrapping_add),
            _ => return Err(d.bad_type(ty)),
        },
    };
    Ok(())
}

pub(super) fn sub(d: &mut Dec) -> R {
    let cc = d.has("cc");
    let sat = d.has("sat");
    let ty = d.ty()?;
    if ty.float() && sat {
        d.out.flags |= float::SAT;
    }
    if let Some(r) = floating(d, ty, float::Op::Sub) {
        return r;
    }
    d.d_ab(ty)?;
    if cc {
        d.writes.push(d.env.carry);
        d.out.exec = match ty.bits() {
            32 => |cx, i| carry32(cx, i, true, false, true),
            64 => |cx, i| carry64(cx, i, true, false, true),
            _ => return Err(d.bad_type(ty)),
        };
        return Ok(());
    }
    d.out.exec = match (ty, sat) {
        (Ty::S32, true) => |cx, i| cx.map2(i, |a: u32, b: u32| (a as i32).saturating_sub(b as i32) as u32),
        (_, true) => return Err(d.bad_type(ty)),
        _ => match ty.bits() {
            16 => |cx, i| cx.map2(i, u16::wrapping_sub),
            32 => |cx, i| cx.map2(i, u32::wrapping_sub),
            64 => |cx, i| cx.map2(i, u64::wrapping_sub),
            _ => return Err(d.bad_type(ty)),
        },
    };
    Ok(())
}

/// `a ± b ± carry`; the carry register is predicate zero.
fn carry32(cx: &mut Cx<'_>, i: &Inst, sub: bool, take: bool, set: bool) -> Flow {
    let (a, b) = (cx.get::<u32>(i.a), cx.get::<u32>(i.b));
    let cin = if take { cx.w.regs.p[0] } else { 0 };
    let mut r = [0u32; LANES];
    let mut out = 0;
    for l in 0..LANES {
        let (x, y, c) = (u64::from(a[l]), u64::from(b[l]), u64::from(cin >> l & 1));
        let v = if sub { x.wrapping_sub(y).wrapping_sub(c) } else { x + y + c };
        r[l] = v as u32;
        out |= u32::from(v >> 32 != 0) << l;
    }
    cx.put(i.d, &r);
    if set {
        cx.put_pred(0, out);
    }
    Flow::Next
}

fn carry64(cx: &mut Cx<'_>, i: &Inst, sub: bool, take: bool, set: bool) -> Flow {
    let (a, b) = (cx.get::<u64>(i.a), cx.get::<u64>(i.b));
    let cin = if take { cx.w.regs.p[0] } else { 0 };
    let mut r = [0u64; LANES];
    let mut out = 0;
    for l in 0..LANES {
        let (x, y, c) = (u128::from(a[l]), u128::from(b[l]), u128::from(cin >> l & 1));
        let v = if sub { x.wrapping_sub(y).wrapping_sub(c) } else { x + y + c };
        r[l] = v as u64;
        out |= u32::from(v >> 64 != 0) << l;
    }
    cx.put(i.d, &r);
    if set {
        cx.put_pred(0, out);
    }
    Flow::Next
}

pub(super) fn addc(d: &mut Dec) -> R {
    let cc = d.has("cc");
    let ty = d.ty()?;
    d.d_ab(ty)?;
    d.out.exec = match (ty.bits(), cc) {
        (32, true) => |cx, i| carry32(cx, i, false, true, true),
        (32, false) => |cx, i| carry32(cx, i, false, true, false),
        (64, true) => |cx, i| carry64(cx, i, false, true, true),
        (64, false) => |cx, i| carry64(cx, i, false, true, false),
        _ => return Err(d.bad_type(ty)),
    };
    Ok(())
}

pub(super) fn subc(d: &mut Dec) -> R {
    let cc = d.has("cc");
    let ty = d.ty()?;
    d.d_ab(ty)?;
    d.out.exec = match (ty.bits(), cc) {
        (32, true) => |cx, i| carry32(cx, i, true, true, true),
        (32, false) => |cx, i| carry32(cx, i, true, true, false),
        (64, true) => |cx, i| carry64(cx, i, true, true, true),
        (64, false) => |cx, i| carry64(cx, i, true, true, false),
        _ => return Err(d.bad_type(ty)),
    };
    Ok(())
}

/// `madc`, and `mad.cc`: low or high half of the product, plus c, with carries.
fn mad_carry(d: &mut Dec, take: bool) -> R {
    let cc = d.has("cc");
    let hi = d.one_of(&[("lo", false), ("hi", true)]);
    let ty = d.ty()?;
    let Some(hi) = hi else { return d.fail("`.lo` or `.hi` is wanted") };
    d.d_abc(ty)?;
    d.out.flags = u32::from(hi) | u32::from(take) << 1 | u32::from(cc) << 2 | u32::from(ty.signed()) << 3;
    d.out.exec = match ty.bits() {
        32 => |cx, i| {
            let (a, b, c) = (cx.get::<u32>(i.a), cx.get::<u32>(i.b), cx.get::<u32>(i.c));
            let cin = if i.flags & 2 != 0 { cx.w.regs.p[0] } else { 0 };
            let (mut r, mut out) = ([0u32; LANES], 0);
            for l in 0..LANES {
                let p = if i.flags & 8 != 0 {
                    (i64::from(a[l] as i32) * i64::from(b[l] as i32)) as u64
                } else {
                    u64::from(a[l]) * u64::from(b[l])
                };
                let p = if i.flags & 1 != 0 { p >> 32 } else { p & 0xffff_ffff };
                let v = p + u64::from(c[l]) + u64::from(cin >> l & 1);
                r[l] = v as u32;
                out |= u32::from(v >> 32 != 0) << l;
            }
            cx.put(i.d, &r);
            if i.flags & 4 != 0 {
                cx.put_pred(0, out);
            }
            Flow::Next
        },
        64 => |cx, i| {
            let (a, b, c) = (cx.get::<u64>(i.a), cx.get::<u64>(i.b), cx.get::<u64>(i.c));
            let cin = if i.flags & 2 != 0 { cx.w.regs.p[0] } else { 0 };
            let (mut r, mut out) = ([0u64; LANES], 0);
            for l in 0..LANES {
                let p = if i.flags & 8 != 0 {
                    (i128::from(a[l] as i64) * i128::from(b[l] as i64)) as u128
                } else {
                    u128::from(a[l]) * u128::from(b[l])
                };
                let p = if i.flags & 1 != 0 { p >> 64 } else { p & u128::from(u64::MAX) };
                let v = p + u128::from(c[l]) + u128::from(cin >> l & 1);
                r[l] = v as u64;
                out |= u32::from(v >> 64 != 0) << l;
            }
            cx.put(i.d, &r);
            if i.flags & 4 != 0 {
                cx.put_pred(0, out);
            }
            Flow::Next
        },
        _ => return Err(d.bad_type(ty)),
    };
    Ok(())
}

pub(super) fn madc(d: &mut Dec) -> R {
    mad_carry(d, true)
}

#[derive(Clone, Copy, PartialEq)]
enum Part {
    Lo,
    Hi,
    Wide,
}

fn part(d: &mut Dec) -> Result<Part, Error> {
    match d.one_of(&[("lo", Part::Lo), ("hi", Part::Hi), ("wide", Part::Wide)]) {
        Some(p) => Ok(p),
        None => d.fail("`.lo`, `.hi` or `.wide` is wanted"),
    }
}

pub(super) fn mul(d: &mut Dec) -> R {
    let p = d.one_of(&[("lo", Part::Lo), ("hi", Part::Hi), ("wide", Part::Wide)]);
    let sat = d.has("sat");
    let ty = d.ty()?;
    if sat && ty.float() {
        d.out.flags |= float::SAT;
    }
    if let Some(r) = floating(d, ty, float::Op::Mul) {
        return r;
    }
    let Some(p) = p else { return d.fail("`.lo`, `.hi` or `.wide` is wanted") };
    d.count(3..=3)?;
    d.out.a = d.src(1, ty)?;
    d.out.b = d.src(2, ty)?;
    d.out.d = d.dst(0, File::of(if p == Part::Wide { 2 * ty.bits() } else { ty.bits() }))?;
    d.out.exec = match (p, ty) {
        (Part::Lo, Ty::U16 | Ty::S16) => |cx, i| cx.map2(i, u16::wrapping_mul),
        (Part::Lo, Ty::U32 | Ty::S32) => |cx, i| cx.map2(i, u32::wrapping_mul),
        (Part::Lo, Ty::U64 | Ty::S64) => |cx, i| cx.map2(i, u64::wrapping_mul),
        (Part::Hi, Ty::U16) => {
            |cx, i| cx.map2(i, |a: u16, b: u16| (u32::from(a) * u32::from(b) >> 16) as u16)
        }
        (Part::Hi, Ty::S16) => {
            |cx, i| cx.map2(i, |a: u16, b: u16| (i32::from(a as i16) * i32::from(b as i16) >> 16) as u16)
        }
        (Part::Hi, Ty::U32) => {
            |cx, i| cx.map2(i, |a: u32, b: u32| (u64::from(a) * u64::from(b) >> 32) as u32)
        }
        (Part::Hi, Ty::S32) => {
            |cx, i| cx.map2(i, |a: u32, b: u32| (i64::from(a as i32) * i64::from(b as i32) >> 32) as u32)
        }
        (Part::Hi, Ty::U64) => {
            |cx, i| cx.map2(i, |a: u64, b: u64| (u128::from(a) * u128::from(b) >> 64) as u64)
        }
        (Part::Hi, Ty::S64) => {
            |cx, i| cx.map2(i, |a: u64, b: u64| (i128::from(a as i64) * i128::from(b as i64) >> 64) as u64)
        }
        (Part::Wide, Ty::U16) => |cx, i| cx.map2(i, |a: u16, b: u16| u32::from(a) * u32::from(b)),
        (Part::Wide, Ty::S16) => {
            |cx, i| cx.map2(i, |a: u16, b: u16| (i32::from(a as i16) * i32::from(b as i16)) as u32)
        }
        (Part::Wide, Ty::U32) => |cx, i| cx.map2(i, |a: u32, b: u32| u64::from(a) * u64::from(b)),
        (Part::Wide, Ty::S32) => {
            |cx, i| cx.map2(i, |a: u32, b: u32| (i64::from(a as i32) * i64::from(b as i32)) as u64)
        }
        (Part::Wide, Ty::U64) => |cx, i| cx.map2(i, |a: u64, b: u64| u128::from(a) * u128::from(b)),
        (Part::Wide, Ty::S64) => {
            |cx, i| cx.map2(i, |a: u64, b: u64| (i128::from(a as i64) * i128::from(b as i64)) as u128)
        }
        _ => return Err(d.bad_type(ty)),
    };
    Ok(())
}

pub(super) fn mad(d: &mut Dec) -> R {
    if d.ins.mods.iter().any(|m| m == "cc") {
        return mad_carry(d, false);
    }
    if d.ins.mods.iter().any(|m| m == "f32" || m == "f64") {
        // On these targets `mad` of floats is `fma`.
        return float::fma(d);
    }
    let p = part(d)?;
    let sat = d.has("sat");
    let ty = d.ty()?;
    d.count(4..=4)?;
    let wide = File::of(if p == Part::Wide { 2 * ty.bits() } else { ty.bits() });
    let wide_ty = match wide {
        File::H => Ty::B16,
        File::W => Ty::B32,
        File::D => Ty::B64,
        _ => return Err(d.bad_type(ty)),
    };
    d.out.a = d.src(1, ty)?;
    d.out.b = d.src(2, ty)?;
    d.out.c = d.src(3, wide_ty)?;
    d.out.d = d.dst(0, wide)?;
    if sat {
        d.out.exec = match (p, ty) {
            (Part::Hi, Ty::S32) => |cx, i| {
                cx.map3(i, |a: u32, b: u32, c: u32| {
                    ((i64::from(a as i32) * i64::from(b as i32) >> 32) as i32).saturating_add(c as i32) as u32
                })
            },
            _ => return Err(d.bad_type(ty)),
        };
        return Ok(());
    }
    d.out.exec = match (p, ty) {
        (Part::Lo, Ty::U16 | Ty::S16) => {
            |cx, i| cx.map3(i, |a: u16, b: u16, c: u16| a.wrapping_mul(b).wrapping_add(c))
        }
        (Part::Lo, Ty::U32 | Ty::S32) => {
            |cx, i| cx.map3(i, |a: u32, b: u32, c: u32| a.wrapping_mul(b).wrapping_add(c))
        }
        (Part::Lo, Ty::U64 | Ty::S64) => {
            |cx, i| cx.map3(i, |a: u64, b: u64, c: u64| a.wrapping_mul(b).wrapping_add(c))
        }
        (Part::Hi, Ty::U16) => |cx, i| {
            cx.map3(i, |a: u16, b: u16, c: u16| ((u32::from(a) * u32::from(b) >> 16) as u16).wrapping_add(c))
        },
        (Part::Hi, Ty::S16) => |cx, i| {
            cx.map3(i, |a: u16, b: u16, c: u16| {
                ((i32::from(a as i16) * i32::from(b as i16) >> 16) as u16).wrapping_add(c)
            })
        },
        (Part::Hi, Ty::U32) => |cx, i| {
            cx.map3(i, |a: u32, b: u32, c: u32| ((u64::from(a) * u64::from(b) >> 32) as u32).wrapping_add(c))
        },
        (Part::Hi, Ty::S32) => |cx, i| {
            cx.map3(i, |a: u32, b: u32, c: u32| {
                ((i64::from(a as i32) * i64::from(b as i32) >> 32) as u32).wrapping_add(c)
            })
        },
        (Part::Hi, Ty::U64) => |cx, i| {
            cx.map3(i, |a: u64, b: u64, c: u64| {
                ((u128::from(a) * u128::from(b) >> 64) as u64).wrapping_add(c)
            })
        },
        (Part::Hi, Ty::S64) => |cx, i| {
            cx.map3(i, |a: u64, b: u64, c: u64| {
                ((i128::from(a as i64) * i128::from(b as i64) >> 64) as u64).wrapping_add(c)
            })
        },
        (Part::Wide, Ty::U16) => {
            |cx, i| cx.map3(i, |a: u16, b: u16, c: u32| (u32::from(a) * u32::from(b)).wrapping_add(c))
        }
        (Part::Wide, Ty::S16) => |cx, i| {
            cx.map3(i, |a: u16, b: u16, c: u32| {
                ((i32::from(a as i16) * i32::from(b as i16)) as u32).wrapping_add(c)
            })
        },
        (Part::Wide, Ty::U32) => {
            |cx, i| cx.map3(i, |a: u32, b: u32, c: u64| (u64::from(a) * u64::from(b)).wrapping_add(c))
        }
        (Part::Wide, Ty::S32) => |cx, i| {
            cx.map3(i, |a: u32, b: u32, c: u64| {
                ((i64::from(a as i32) * i64::from(b as i32)) as u64).wrapping_add(c)
            })
        },
        _ => return Err(d.bad_type(ty)),
    };
    Ok(())
}

/// The product of the low 24 bits.
fn prod24(a: u32, b: u32, signed: bool) -> i64 {
    if signed {
        i64::from((a as i32) << 8 >> 8) * i64::from((b as i32) << 8 >> 8)
    } else {
        i64::from(a & 0xff_ffff) * i64::from(b & 0xff_ffff)
    }
}

pub(super) fn mul24(d: &mut Dec) -> R {
    let hi = d.one_of(&[("lo", false), ("hi", true)]).unwrap_or(false);
    let ty = d.ty()?;
    d.d_ab(ty)?;
    d.out.exec = match (ty, hi) {
        (Ty::U32, false) => |cx, i| cx.map2(i, |a, b| prod24(a, b, false) as u32),
        (Ty::U32, true) => |cx, i| cx.map2(i, |a, b| (prod24(a, b, false) >> 16) as u32),
        (Ty::S32, false) => |cx, i| cx.map2(i, |a, b| prod24(a, b, true) as u32),
        (Ty::S32, true) => |cx, i| cx.map2(i, |a, b| (prod24(a, b, true) >> 16) as u32),
        _ => return Err(d.bad_type(ty)),
    };
    Ok(())
}

pub(super) fn mad24(d: &mut Dec) -> R {
    let hi = d.one_of(&[("lo", false), ("hi", true)]).unwrap_or(false);
    let ty = d.ty()?;
    d.d_abc(ty)?;
    d.out.exec = match (ty, hi) {
        (Ty::U32, false) => |cx, i| cx.map3(i, |a, b, c: u32| (prod24(a, b, false) as u32).wrapping_add(c)),
        (Ty::U32, true) => {
            |cx, i| cx.map3(i, |a, b, c: u32| ((prod24(a, b, false) >> 16) as u32).wrapping_add(c))
        }
        (Ty::S32, false) => |cx, i| cx.map3(i, |a, b, c: u32| (prod24(a, b, true) as u32).wrapping_add(c)),
        (Ty::S32, true) => {
            |cx, i| cx.map3(i, |a, b, c: u32| ((prod24(a, b, true) >> 16) as u32).wrapping_add(c))
        }
        _ => return Err(d.bad_type(ty)),
    };
    Ok(())
}

pub(super) fn sad(d: &mut Dec) -> R {
    let ty = d.ty()?;
    d.d_abc(ty)?;
    d.out.exec = match ty {
        Ty::U16 => |cx, i| cx.map3(i, |a: u16, b: u16, c: u16| c.wrapping_add(a.abs_diff(b))),
        Ty::U32 => |cx, i| cx.map3(i, |a: u32, b: u32, c: u32| c.wrapping_add(a.abs_diff(b))),
        Ty::U64 => |cx, i| cx.map3(i, |a: u64, b: u64, c: u64| c.wrapping_add(a.abs_diff(b))),
        Ty::S16 => |cx, i| cx.map3(i, |a: u16, b: u16, c: u16| c.wrapping_add((a as i16).abs_diff(b as i16))),
        Ty::S32 => |cx, i| cx.map3(i, |a: u32, b: u32, c: u32| c.wrapping_add((a as i32).abs_diff(b as i32))),
        Ty::S64 => |cx, i| cx.map3(i, |a: u64, b: u64, c: u64| c.wrapping_add((a as i64).abs_diff(b as i64))),
        _ => return Err(d.bad_type(ty)),
    };
    Ok(())
}

pub(super) fn div(d: &mut Dec) -> R {
    let ty = d.ty()?;
    if ty.float() {
        d.out.class = if ty == Ty::F64 { Class::Double } else { Class::Float };
        return float::div(d, ty);
    }
    d.d_ab(ty)?;
    // The ISA leaves division by zero unspecified; the hardware's sequences give all ones.
    d.out.exec = match ty {
        Ty::U16 => |cx, i| cx.map2(i, |a: u16, b: u16| a.checked_div(b).unwrap_or(!0)),
        Ty::U32 => |cx, i| cx.map2(i, |a: u32, b: u32| a.checked_div(b).unwrap_or(!0)),
        Ty::U64 => |cx, i| cx.map2(i, |a: u64, b: u64| a.checked_div(b).unwrap_or(!0)),
        Ty::S16 => |cx, i| {
            cx.map2(i, |a: u16, b: u16| if b == 0 { !0 } else { (a as i16).wrapping_div(b as i16) as u16 })
        },
        Ty::S32 => |cx, i| {
            cx.map2(i, |a: u32, b: u32| if b == 0 { !0 } else { (a as i32).wrapping_div(b as i32) as u32 })
        },
        Ty::S64 => |cx, i| {
            cx.map2(i, |a: u64, b: u64| if b == 0 { !0 } else { (a as i64).wrapping_div(b as i64) as u64 })
        },
        _ => return Err(d.bad_type(ty)),
    };
    Ok(())
}

pub(super) fn rem(d: &mut Dec) -> R {
    let ty = d.ty()?;
    d.d_ab(ty)?;
    d.out.exec = match ty {
        Ty::U16 => |cx, i| cx.map2(i, |a: u16, b: u16| a.checked_rem(b).unwrap_or(a)),
        Ty::U32 => |cx, i| cx.map2(i, |a: u32, b: u32| a.checked_rem(b).unwrap_or(a)),
        Ty::U64 => |cx, i| cx.map2(i, |a: u64, b: u64| a.checked_rem(b).unwrap_or(a)),
        Ty::S16 => |cx, i| {
            cx.map2(i, |a: u16, b: u16| if b == 0 { a } else { (a as i16).wrapping_rem(b as i16) as u16 })
        },
        Ty::S32 => |cx, i| {
            cx.map2(i, |a: u32, b: u32| if b == 0 { a } else { (a as i32).wrapping_rem(b as i32) as u32 })
        },
        Ty::S64 => |cx, i| {
            cx.map2(i, |a: u64, b: u64| if b == 0 { a } else { (a as i64).wrapping_rem(b as i64) as u64 })
        },
        _ => return Err(d.bad_type(ty)),
    };
    Ok(())
}

pub(super) fn abs(d: &mut Dec) -> R {
    let ty = d.ty()?;
    if let Some(r) = floating(d, ty, float::Op::Abs) {
        return r;
    }
    d.d_a(ty)?;
    d.out.exec = match ty {
        Ty::S16 => |cx, i| cx.map1(i, |a: u16| (a as i16).wrapping_abs() as u16),
        Ty::S32 => |cx, i| cx.map1(i, |a: u32| (a as i32).wrapping_abs() as u32),
        Ty::S64 => |cx, i| cx.map1(i, |a: u64| (a as i64).wrapping_abs() as u64),
        _ => return Err(d.bad_type(ty)),
    };
    Ok(())
}

pub(super) fn neg(d: &mut Dec) -> R {
    let ty = d.ty()?;
    if let Some(r) = floating(d, ty, float::Op::Neg) {
        return r;
    }
    d.d_a(ty)?;
    d.out.exec = match ty {
        Ty::S16 => |cx, i| cx.map1(i, u16::wrapping_neg),
        Ty::S32 => |cx, i| cx.map1(i, u32::wrapping_neg),
        Ty::S64 => |cx, i| cx.map1(i, u64::wrapping_neg),
        _ => return Err(d.bad_type(ty)),
    };
    Ok(())
}

fn min_max(d: &mut Dec, max: bool) -> R {
    let ty = d.ty()?;
    if let Some(r) = floating(d, ty, if max { float::Op::Max } else { float::Op::Min }) {
        return r;
    }
    let relu = d.has("relu");
    d.d_ab(ty)?;
    d.out.exec = match (ty, max, relu) {
        (Ty::U16, false, false) => |cx, i| cx.map2(i, u16::min),
        (Ty::U32, false, false) => |cx, i| cx.map2(i, u32::min),
        (Ty::U64, false, false) => |cx, i| cx.map2(i, u64::min),
        (Ty::U16, true, false) => |cx, i| cx.map2(i, u16::max),
        (Ty::U32, true, false) => |cx, i| cx.map2(i, u32::max),
        (Ty::U64, true, false) => |cx, i| cx.map2(i, u64::max),
        (Ty::S16, false, false) => |cx, i| cx.map2(i, |a: u16, b: u16| (a as i16).min(b as i16) as u16),
        (Ty::S32, false, false) => |cx, i| cx.map2(i, |a: u32, b: u32| (a as i32).min(b as i32) as u32),
        (Ty::S64, false, false) => |cx, i| cx.map2(i, |a: u64, b: u64| (a as i64).min(b as i64) as u64),
        (Ty::S16, true, false) => |cx, i| cx.map2(i, |a: u16, b: u16| (a as i16).max(b as i16) as u16),
        (Ty::S32, true, false) => |cx, i| cx.map2(i, |a: u32, b: u32| (a as i32).max(b as i32) as u32),
        (Ty::S64, true, false) => |cx, i| cx.map2(i, |a: u64, b: u64| (a as i64).max(b as i64) as u64),
        (Ty::S32, false, true) => |cx, i| cx.map2(i, |a: u32, b: u32| (a as i32).min(b as i32).max(0) as u32),
        (Ty::S32, true, true) => |cx, i| cx.map2(i, |a: u32, b: u32| (a as i32).max(b as i32).max(0) as u32),
        (Ty::U16x2, false, false) => x2!(u16::min),
        (Ty::U16x2, true, false) => x2!(u16::max),
        (Ty::S16x2, false, false) => x2!(|a, b| (a as i16).min(b as i16) as u16),
        (Ty::S16x2, true, false) => x2!(|a, b| (a as i16).max(b as i16) as u16),
        (Ty::S16x2, false, true) => x2!(|a, b| (a as i16).min(b as i16).max(0) as u16),
        (Ty::S16x2, true, true) => x2!(|a, b| (a as i16).max(b as i16).max(0) as u16),
        _ => return Err(d.bad_type(ty)),
    };
    Ok(())
}

pub(super) fn min(d: &mut Dec) -> R {
    min_max(d, false)
}
pub(super) fn max(d: &mut Dec) -> R {
    min_max(d, true)
}

fn byte(x: u32, k: u32, signed: bool) -> i32 {
    let b = (x >> (8 * k)) as u8;
    if signed { i32::from(b as i8) } else { b.into() }
}

pub(super) fn dp4a(d: &mut Dec) -> R {
    let (ta, tb) = (d.ty()?, d.ty()?);
    d.d_abc(Ty::B32)?;
    d.out.flags = u32::from(ta.signed()) | u32::from(tb.signed()) << 1;
    d.out.exec = |cx, i| {
        let (sa, sb) = (i.flags & 1 != 0, i.flags & 2 != 0);
        cx.map3(i, |a: u32, b: u32, c: u32| {
            (0..4).fold(c, |s, k| s.wrapping_add((byte(a, k, sa) * byte(b, k, sb)) as u32))
        })
    };
    Ok(())
}

pub(super) fn dp2a(d: &mut Dec) -> R {
    let hi = d.one_of(&[("lo", false), ("hi", true)]).unwrap_or(false);
    let (ta, tb) = (d.ty()?, d.ty()?);
    d.d_abc(Ty::B32)?;
    d.out.flags = u32::from(ta.signed()) | u32::from(tb.signed()) << 1 | u32::from(hi) << 2;
    d.out.exec = |cx, i| {
        let (sa, sb) = (i.flags & 1 != 0, i.flags & 2 != 0);
        let base = if i.flags & 4 != 0 { 2 } else { 0 };
        cx.map3(i, |a: u32, b: u32, c: u32| {
            (0..2).fold(c, |s, k| {
                let h = (a >> (16 * k)) as u16;
                let x = if sa { i32::from(h as i16) } else { h.into() };
                s.wrapping_add(x.wrapping_mul(byte(b, base + k, sb)) as u32)
            })
        })
    };
    Ok(())
}
