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
