//! SIMD video instructions (§9.7.18): two halves or four bytes of a register at once. CUDA's `__vabsdiffu4` and its like
//! are made of them.

use super::{Dec, Inst};
use crate::Error;
use crate::ast::Ty;

/// One part of the operands, extended, to one of the result.
type Part = fn(i32, i32) -> i32;

fn average(a: i32, b: i32) -> i32 {
    (a + b + i32::from(a + b >= 0)) >> 1
}

const OPS: [(&str, Part); 12] = [
    ("vadd", |a, b| a + b),
    ("vsub", |a, b| a - b),
    ("vavrg", average),
    ("vabsdiff", |a, b| (a - b).abs()),
    ("vmin", |a, b| a.min(b)),
    ("vmax", |a, b| a.max(b)),
    ("eq", |a, b| i32::from(a == b)),
    ("ne", |a, b| i32::from(a != b)),
    ("lt", |a, b| i32::from(a < b)),
    ("le", |a, b| i32::from(a <= b)),
    ("gt", |a, b| i32::from(a > b)),
    ("ge", |a, b| i32::from(a >= b)),
];

const SIGNED_D: u32 = 1;
const SIGNED_A: u32 = 2;
const SIGNED_B: u32 = 4;
const SATURATE: u32 = 8;
const ADD: u32 = 16;

/// Part `k` of a register.
fn part(x: u32, k: u32, bits: u32, signed: bool) -> i32 {
    let up = x << (32 - bits * (k + 1));
    if signed { up as i32 >> (32 - bits) } else { (up >> (32 - bits)) as i32 }
}

fn parts(i: &Inst, a: u32, b: u32, c: u32, bits: u32) -> u32 {
    let has = |f: u32| i.flags & f != 0;
    let f = OPS[i.imm as usize].1;
    let mut d = if has(ADD) { c } else { 0 };
    for k in 0..32 / bits {
        let mut t = f(part(a, k, bits, has(SIGNED_A)), part(b, k, bits, has(SIGNED_B)));
        if has(SATURATE) {
            let (low, high) =
                if has(SIGNED_D) { (-1 << (bits - 1), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) };
            t = t.clamp(low, high);
        }
        if has(ADD) {
            d = d.wrapping_add(t as u32);
        } else {
            d |= (t as u32 & ((1 << bits) - 1)) << (bits * k);
        }
    }
    d
}

/// `vadd4.u32.u32.u32.sat d, a, b, c` and the like.
pub(super) fn video(d: &mut Dec) -> Result<(), Error> {
    let name = d.ins.op.trim_end_matches(['2', '4']);
    let op = OPS.iter().position(|o| o.0 == name);
    decode(d, op, &[SIGNED_D, SIGNED_A, SIGNED_B])
}

/// `vabsdiff.u32.s32.s32.sat.add d, a, b, c` and the like, of whole registers: |a − b| as the type of the result takes it, then with `c`.
pub(super) fn absolute_difference(d: &mut Dec) -> Result<(), Error> {
    for flag in [SIGNED_D, SIGNED_A, SIGNED_B] {
        match d.ty()? {
            Ty::U32 => {}
            Ty::S32 => d.out.flags |= flag,
            t => return Err(d.bad_type(t)),
        }
    }
    d.out.flags |= if d.has("sat") { SATURATE } else { 0 };
    let second: Option<i64> = d.one_of(&[("add", 1), ("min", 2), ("max", 3)]);
    d.out.imm = second.unwrap_or(0);
    if second.is_some() {
        d.d_abc(Ty::B32)?;
        d.out.exec = |cx, i| cx.map3(i, |a: u32, b: u32, c: u32| with(i, difference(i, a, b), c));
    } else {
        d.d_ab(Ty::B32)?;
        d.out.exec = |cx, i| cx.map2(i, |a: u32, b: u32| difference(i, a, b));
    }
    Ok(())
}

fn difference(i: &Inst, a: u32, b: u32) -> u32 {
    let wide = |x: u32, signed: u32| if i.flags & signed != 0 { i64::from(x as i32) } else { i64::from(x) };
    let most = if i.flags & SIGNED_D != 0 { i64::from(i32::MAX) } else { i64::from(u32::MAX) };
    let value = (wide(a, SIGNED_A) - wide(b, SIGNED_B)).abs();
    (if i.flags & SATURATE != 0 { value.min(most) } else { value }) as u32
}

/// The second operation, with the signs of the result's type.
fn with(i: &Inst, x: u32, c: u32) -> u32 {
    match (i.imm, i.flags & SIGNED_D != 0) {
        (1, _) => x.wrapping_add(c),
        (2, true) => (x as i32).min(c as i32) as u32,
        (2, false) => x.min(c),
        (_, true) => (x as i32).max(c as i32) as u32,
        (_, false) => x.max(c),
    }
}

/// `vset4.u32.u32.lt d, a, b, c` and the like: 1 where the comparison holds.
pub(super) fn compare(d: &mut Dec) -> Result<(), Error> {
    let op = OPS.iter().position(|o| !o.0.starts_with('v') && d.has(o.0));
    decode(d, op, &[SIGNED_A, SIGNED_B])
}

fn decode(d: &mut Dec, op: Option<usize>, types: &[u32]) -> Result<(), Error> {
    let Some(op) = op else { return d.fail("the operation is unknown") };
    d.out.imm = op as i64;
    for &flag in types {
        match d.ty()? {
            Ty::U32 => {}
            Ty::S32 => d.out.flags |= flag,
            t => return Err(d.bad_type(t)),
        }
    }
    d.out.flags |= if d.has("sat") { SATURATE } else { 0 } | if d.has("add") { ADD } else { 0 };
    d.d_abc(Ty::B32)?;
    d.out.exec = if d.ins.op.ends_with('2') {
        |cx, i| cx.map3(i, |a: u32, b: u32, c: u32| parts(i, a, b, c, 16))
    } else {
        |cx, i| cx.map3(i, |a: u32, b: u32, c: u32| parts(i, a, b, c, 8))
    };
    Ok(())
}
