//! Comparison and selection (§9.7.5–9.7.7).

use super::float::FTZ;
use super::{Dec, Flow, Inst, NONE};
use crate::Error;
use crate::ast::{Operand, Ty};
use crate::fp::{bf16_to_f32, f16_to_f32, ftz32};
use crate::machine::Cx;
use crate::regs::{File, LANES, Lane};
use std::cmp::Ordering;

type R = Result<(), Error>;

/// Comparisons as the set of orderings they accept: bit 0 less, 1 equal, 2 greater, 3 unordered.
const CMP: &[(&str, u32)] = &[
    ("eq", 2),
    ("ne", 5),
    ("lt", 1),
    ("le", 3),
    ("gt", 4),
    ("ge", 6),
    ("lo", 1),
    ("ls", 3),
    ("hi", 4),
    ("hs", 6),
    ("equ", 10),
    ("neu", 13),
    ("ltu", 9),
    ("leu", 11),
    ("gtu", 12),
    ("geu", 14),
    ("num", 7),
    ("nan", 8),
];

fn bit(o: Option<Ordering>) -> u32 {
    match o {
        Some(Ordering::Less) => 1,
        Some(Ordering::Equal) => 2,
        Some(Ordering::Greater) => 4,
        None => 8,
    }
}

/// The comparison itself, for one type: `i.flags` bits 0–3 are the accepted orderings.
#[inline(always)]
fn lanes<T: Lane>(cx: &Cx<'_>, i: &Inst, ord: impl Fn(T, T) -> u32) -> u32 {
    let (a, b) = (cx.get::<T>(i.a), cx.get::<T>(i.b));
    let mut v = 0;
    for l in 0..LANES {
        v |= u32::from(ord(a[l], b[l]) & i.flags & 15 != 0) << l;
    }
    v
}

fn f32s(i: &Inst, x: u32) -> f32 {
    let x = f32::from_bits(x);
    if i.flags & FTZ << 8 != 0 { ftz32(x) } else { x }
}

fn compare(cx: &Cx<'_>, i: &Inst) -> u32 {
    match i.size {
        0 => lanes(cx, i, |a: u16, b: u16| bit(Some(a.cmp(&b)))),
        1 => lanes(cx, i, |a: u32, b: u32| bit(Some(a.cmp(&b)))),
        2 => lanes(cx, i, |a: u64, b: u64| bit(Some(a.cmp(&b)))),
        3 => lanes(cx, i, |a: u16, b: u16| bit(Some((a as i16).cmp(&(b as i16))))),
        4 => lanes(cx, i, |a: u32, b: u32| bit(Some((a as i32).cmp(&(b as i32))))),
        5 => lanes(cx, i, |a: u64, b: u64| bit(Some((a as i64).cmp(&(b as i64))))),
        6 => lanes(cx, i, |a: u16, b: u16| bit(f16_to_f32(a).partial_cmp(&f16_to_f32(b)))),
        7 => lanes(cx, i, |a: u16, b: u16| bit(bf16_to_f32(a).partial_cmp(&bf16_to_f32(b)))),
        8 => lanes(cx, i, |a: u32, b: u32| bit(f32s(i, a).partial_cmp(&f32s(i, b)))),
        _ => lanes(cx, i, |a: u64, b: u64| bit(f64::from_bits(a).partial_cmp(&f64::from_bits(b)))),
    }
}

/// The number of a type in [`compare`].
fn kind(d: &Dec, ty: Ty) -> Result<u8, Error> {
    Ok(match ty {
        Ty::B16 | Ty::U16 => 0,
        Ty::B32 | Ty::U32 => 1,
        Ty::B64 | Ty::U64 => 2,
        Ty::S16 => 3,
        Ty::S32 => 4,
        Ty::S64 => 5,
        Ty::F16 => 6,
        Ty::BF16 => 7,
        Ty::F32 => 8,
        Ty::F64 => 9,
        _ => return Err(d.bad_type(ty)),
    })
}

/// Takes comparison, boolean operator and `.ftz`; flags get them.
fn cmp(d: &mut Dec) -> R {
    let Some(c) = d.take(|m| CMP.iter().find(|c| c.0 == m).map(|c| c.1)) else {
        return d.fail("the comparison is missing");
    };
    let b = d.one_of(&[("and", 1u32), ("or", 2), ("xor", 3)]).unwrap_or(0);
    let ftz = d.has("ftz");
    d.out.flags = c | b << 4 | if ftz { FTZ << 8 } else { 0 };
    Ok(())
}

/// The third source `c` of the boolean forms.
fn third(d: &mut Dec, k: usize) -> R {
    d.out.c = NONE;
    if d.out.flags >> 4 & 3 != 0 {
        let (c, n) = d.pred(k)?;
        d.out.c = c;
        d.out.flags |= u32::from(n) << 6;
    }
    Ok(())
}

fn combine(cx: &Cx<'_>, i: &Inst, v: u32) -> u32 {
    if i.flags >> 4 & 3 == 0 {
        return v;
    }
    let c = cx.pred(i.c, i.flags & 64 != 0);
    match i.flags >> 4 & 3 {
        1 => v & c,
        2 => v | c,
        _ => v ^ c,
    }
}

pub(super) fn setp(d: &mut Dec) -> R {
    cmp(d)?;
    let ty = d.ty()?;
    let (p, q) = match d.operand(0)? {
        Operand::Pair(p, q) => (&**p, Some(&**q)),
        o => (o, None),
    };
    d.out.a = d.src(1, ty)?;
    d.out.b = d.src(2, ty)?;
    third(d, 3)?;
    d.count(3..=4)?;
    if matches!(ty, Ty::F16x2 | Ty::BF16x2) {
        let Some(q) = q else { return d.fail("two destinations `p|q` are wanted") };
        d.out.d = d.dst_op(p, File::P)?;
        d.out.e = d.dst_op(q, File::P)?;
        d.out.size = u8::from(ty == Ty::BF16x2);
        d.out.exec = |cx, i| {
            let (lo, hi) = halves(cx, i);
            let (lo, hi) = (combine(cx, i, lo), combine(cx, i, hi));
            cx.put_pred(i.d, lo);
            cx.put_pred(i.e, hi);
            Flow::Next
        };
        return Ok(());
    }
    d.out.size = kind(d, ty)?;
    d.out.d = d.dst_op(p, File::P)?;
    match q {
        Some(q) => {
            d.out.e = d.dst_op(q, File::P)?;
            d.out.exec = |cx, i| {
                let v = compare(cx, i);
                let (x, y) = (combine(cx, i, v), combine(cx, i, !v));
                cx.put_pred(i.d, x);
                cx.put_pred(i.e, y);
                Flow::Next
            };
        }
        None => {
            d.out.exec = |cx, i| {
                let v = compare(cx, i);
                let v = combine(cx, i, v);
                cx.put_pred(i.d, v);
                Flow::Next
            };
        }
    }
    Ok(())
}

/// Comparisons of packed halves: low and high.
fn halves(cx: &Cx<'_>, i: &Inst) -> (u32, u32) {
    let f = if i.size != 0 { bf16_to_f32 } else { f16_to_f32 };
    let at = |s: u32| lanes(cx, i, |a: u32, b: u32| bit(f((a >> s) as u16).partial_cmp(&f((b >> s) as u16))));
    (at(0), at(16))
}

pub(super) fn set(d: &mut Dec) -> R {
    cmp(d)?;
    let (dt, ty) = (d.ty()?, d.ty()?);
    d.out.a = d.src(1, ty)?;
    d.out.b = d.src(2, ty)?;
    third(d, 3)?;
    d.out.d = d.dst_ty(0, dt)?;
    if matches!(ty, Ty::F16x2 | Ty::BF16x2) {
        d.out.size = u8::from(ty == Ty::BF16x2);
        d.out.imm = match dt {
            Ty::F16x2 => 0x3c00,
            Ty::BF16x2 => 0x3f80,
            _ => 0xffff,
        };
        d.out.exec = |cx, i| {
            let (lo, hi) = halves(cx, i);
            let (lo, hi) = (combine(cx, i, lo), combine(cx, i, hi));
            let one = i.imm as u32;
            let r: [u32; LANES] = std::array::from_fn(|l| (lo >> l & 1) * one | (hi >> l & 1) * one << 16);
            cx.put(i.d, &r);
            Flow::Next
        };
        return Ok(());
    }
    d.out.size = kind(d, ty)?;
    // The true value: all ones, or 1.0.
    d.out.imm = match dt {
        Ty::F32 => 0x3f80_0000,
        Ty::F16 => 0x3c00,
        Ty::BF16 => 0x3f80,
        _ => -1,
    };
    d.out.exec = match dt.bits() {
        16 => |cx, i| {
            let v = combine(cx, i, compare(cx, i));
            let r: [u16; LANES] = std::array::from_fn(|l| if v >> l & 1 != 0 { i.imm as u16 } else { 0 });
            cx.put(i.d, &r);
            Flow::Next
        },
        32 => |cx, i| {
            let v = combine(cx, i, compare(cx, i));
            let r: [u32; LANES] = std::array::from_fn(|l| if v >> l & 1 != 0 { i.imm as u32 } else { 0 });
            cx.put(i.d, &r);
            Flow::Next
        },
        _ => return Err(d.bad_type(dt)),
    };
    Ok(())
}

fn select<T: Lane>(cx: &mut Cx<'_>, i: &Inst, p: u32) -> Flow {
    let (a, b) = (cx.get::<T>(i.a), cx.get::<T>(i.b));
    let r: [T; LANES] = std::array::from_fn(|l| if p >> l & 1 != 0 { a[l] } else { b[l] });
    cx.put(i.d, &r);
    Flow::Next
}

pub(super) fn selp(d: &mut Dec) -> R {
    let ty = d.ty()?;
    d.count(4..=4)?;
    d.out.d = d.dst_ty(0, ty)?;
    d.out.a = d.src(1, ty)?;
    d.out.b = d.src(2, ty)?;
    let (c, n) = d.pred(3)?;
    d.out.c = c;
    d.out.flags = u32::from(n);
    d.out.exec = match ty.bits() {
        16 => |cx, i| select::<u16>(cx, i, cx.pred(i.c, i.flags != 0)),
        32 => |cx, i| select::<u32>(cx, i, cx.pred(i.c, i.flags != 0)),
        64 => |cx, i| select::<u64>(cx, i, cx.pred(i.c, i.flags != 0)),
        128 => |cx, i| select::<u128>(cx, i, cx.pred(i.c, i.flags != 0)),
        _ => return Err(d.bad_type(ty)),
    };
    Ok(())
}

pub(super) fn slct(d: &mut Dec) -> R {
    let ftz = d.has("ftz");
    let (ty, ct) = (d.ty()?, d.ty()?);
    d.count(4..=4)?;
    d.out.d = d.dst_ty(0, ty)?;
    d.out.a = d.src(1, ty)?;
    d.out.b = d.src(2, ty)?;
    d.out.c = d.src(3, ct)?;
    d.out.flags = u32::from(ct == Ty::F32) | if ftz { FTZ << 8 } else { 0 };
    fn mask(cx: &Cx<'_>, i: &Inst) -> u32 {
        let c = cx.get::<u32>(i.c);
        (0..LANES).fold(0, |m, l| {
            let ge = if i.flags & 1 != 0 { f32s(i, c[l]) >= 0.0 } else { c[l] as i32 >= 0 };
            m | u32::from(ge) << l
        })
    }
    d.out.exec = match ty.bits() {
        16 => |cx, i| select::<u16>(cx, i, mask(cx, i)),
        32 => |cx, i| select::<u32>(cx, i, mask(cx, i)),
        64 => |cx, i| select::<u64>(cx, i, mask(cx, i)),
        _ => return Err(d.bad_type(ty)),
    };
    Ok(())
}
