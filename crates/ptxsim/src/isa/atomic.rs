//! Atomics and reductions to memory (§9.7.13.5, §9.7.13.6).

use super::data::{ACQUIRE, FILE_OF, RELEASE, SCOPE, cache, order};
use super::{Dec, Flow, Inst, NONE};
use crate::Error;
use crate::access::{Kind, Places, read_bytes, write_bytes};
use crate::ast::{Operand, Ty};
use crate::fp::*;
use crate::machine::Cx;
use crate::regs::{File, LANES, Reg, lanes};

type R = Result<(), Error>;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Op {
    And,
    Or,
    Xor,
    Exch,
    Cas,
    Add,
    Inc,
    Dec,
    Min,
    Max,
}

const OPS: [(&str, Op); 10] = [
    ("and", Op::And),
    ("or", Op::Or),
    ("xor", Op::Xor),
    ("exch", Op::Exch),
    ("cas", Op::Cas),
    ("add", Op::Add),
    ("inc", Op::Inc),
    ("dec", Op::Dec),
    ("min", Op::Min),
    ("max", Op::Max),
];

const TYPES: [Ty; 15] = [
    Ty::B16,
    Ty::B32,
    Ty::B64,
    Ty::U32,
    Ty::U64,
    Ty::S32,
    Ty::S64,
    Ty::F16,
    Ty::F16x2,
    Ty::BF16,
    Ty::BF16x2,
    Ty::F32,
    Ty::F64,
    Ty::B128,
    Ty::U16,
];

fn half(op: Op, a: u16, b: u16, f: Format) -> u16 {
    let (x, y) = (f.decode(a.into()), f.decode(b.into()));
    match op {
        Op::Add => f.encode(add_odd(x, y), Round::Rn, false) as u16,
        // −0 is below +0.
        Op::Min if y < x || x.is_nan() || (x == y && b > a) => b,
        Op::Max if y > x || x.is_nan() || (x == y && b < a) => b,
        _ => a,
    }
}

/// What memory holds after the operation.
pub(super) fn apply(op: Op, ty: Ty, a: u64, b: u64, c: u64) -> u64 {
    match (op, ty) {
        (Op::And, _) => a & b,
        (Op::Or, _) => a | b,
        (Op::Xor, _) => a ^ b,
        (Op::Exch, _) => b,
        (Op::Cas, _) => {
            if a == b {
                c
            } else {
                a
            }
        }
        (Op::Inc, _) => {
            if a >= b {
                0
            } else {
                a + 1
            }
        }
        (Op::Dec, _) => {
            if a == 0 || a > b {
                b
            } else {
                a - 1
            }
        }
        (Op::Add, Ty::F32) => canon32(f32::from_bits(a as u32) + f32::from_bits(b as u32)).into(),
        (Op::Add, Ty::F64) => (f64::from_bits(a) + f64::from_bits(b)).to_bits(),
        (_, Ty::F32) => {
            let (x, y) = (f32::from_bits(a as u32), f32::from_bits(b as u32));
            if if op == Op::Min { y < x } else { y > x } { b } else { a }
        }
        (_, Ty::F16 | Ty::BF16) => {
            let f = if ty == Ty::F16 { F16 } else { BF16 };
            half(op, a as u16, b as u16, f).into()
        }
        (_, Ty::F16x2 | Ty::BF16x2) => {
            let f = if ty == Ty::F16x2 { F16 } else { BF16 };
            u64::from(half(op, a as u16, b as u16, f))
                | u64::from(half(op, (a >> 16) as u16, (b >> 16) as u16, f)) << 16
        }
        (Op::Add, _) => a.wrapping_add(b),
        (Op::Min, Ty::S32) => (a as i32).min(b as i32) as u32 as u64,
        (Op::Max, Ty::S32) => (a as i32).max(b as i32) as u32 as u64,
        (Op::Min, Ty::S64) => (a as i64).min(b as i64) as u64,
        (Op::Max, Ty::S64) => (a as i64).max(b as i64) as u64,
        (Op::Min, _) => a.min(b),
        (Op::Max, _) => a.max(b),
    }
}

pub(super) fn atom(d: &mut Dec) -> R {
    decode(d, true)
}
pub(super) fn red(d: &mut Dec) -> R {
    decode(d, false)
}

fn decode(d: &mut Dec, returns: bool) -> R {
    let f = order(d);
    let space = d.space();
    let Some(op) = d.one_of(&OPS) else { return d.fail("the operation is missing") };
    d.has("noftz");
    let n = d.one_of(&[("v2", 2u8), ("v4", 4), ("v8", 8)]).unwrap_or(1);
    let ty = d.ty()?;
    cache(d);
    let Some(tn) = TYPES.iter().position(|&t| t == ty) else { return Err(d.bad_type(ty)) };
    if ty == Ty::B128 && !matches!(op, Op::Cas | Op::Exch) {
        return Err(d.bad_type(ty));
    }
    let k = usize::from(returns);
    let (a, off, space) = d.mem(k, space)?;
    (d.out.a, d.out.imm, d.out.space) = (a, off, space);
    d.out.flags |= f;
    let file = File::of(ty.bits());
    let parts = |o: &'_ Operand| -> Vec<Operand> {
        match o {
            Operand::Vector(v) => v.clone(),
            o => vec![o.clone()],
        }
    };
    // The list holds destinations, then the operands b, then c.
    let mut list = vec![];
    if returns {
        for o in parts(d.operand(0)?) {
            list.push(d.dst_op(&o, file)?);
        }
    } else {
        list.resize(n as usize, NONE);
    }
    for o in parts(d.operand(k + 1)?) {
        list.push(d.src_op(&o, ty)?);
    }
    if op == Op::Cas {
        for o in parts(d.operand(k + 2)?) {
            list.push(d.src_op(&o, ty)?);
        }
    }
    let used = k + 2 + usize::from(op == Op::Cas);
    // A cache policy may follow.
    d.count(used..=used + 1)?;
    if list.len() != n as usize * (2 + usize::from(op == Op::Cas)) {
        return d.fail("the vectors have different lengths");
    }
    d.out.list = list.into();
    d.out.size = ty.bytes() as u8;
    d.out.vec = n;
    d.out.c = op as u32;
    d.out.e = tn as u32;
    d.out.exec = if ty == Ty::B128 { exec128 } else { exec };
    Ok(())
}

fn exec(cx: &mut Cx<'_>, i: &Inst) -> Flow {
    let addr = cx.addresses(i);
    let (op, ty) = (OPS[i.c as usize].1, TYPES[i.e as usize]);
    let (size, n) = (u32::from(i.size), i.vec as usize);
    cx.scope = i.flags >> SCOPE & 3;
    let p = cx.resolve(i.space, &addr, size * n as u32, Kind::Atomic);
    let publishing = crate::order::publishing(cx, i.flags & RELEASE != 0);
    let mut changed = 0u32;
    let file = File::of(ty.bits());
    debug_assert!(FILE_OF.contains(&file));
    for k in 0..n {
        let b = cx.w.regs.wide(Reg { file, idx: i.list[n + k] });
        let c = match i.list.get(2 * n + k) {
            Some(&r) => cx.w.regs.wide(Reg { file, idx: r }),
            None => [0; LANES],
        };
        let off = k as u32 * size;
        for l in lanes(p.mask()) {
            let bit = 1 << l;
            // Atomic f32 addition in global memory flushes subnormals, unlike in shared memory (§9.7.13.5).
            let flush = op == Op::Add && ty == Ty::F32 && p.host & bit != 0;
            let f = |x: u64| u64::from(ftz32(f32::from_bits(x as u32)).to_bits());
            let new =
                |a| if flush { f(apply(op, ty, f(a), f(b[l]), 0)) } else { apply(op, ty, a, b[l], c[l]) };
            let old = if p.host & bit != 0 {
                // SAFETY: `resolve` found the lane's bytes in a live writable allocation and aligned.
                unsafe { crate::memory::update(p.at[l] + u64::from(off), size, new) }
            } else {
                let (mem, at) = if p.shared & bit != 0 {
                    (&mut cx.unit.ctas[(p.at[l] >> 32) as usize].shared, (p.at[l] as u32 + off) as usize)
                } else {
                    (&mut cx.w.local, p.at[l] as usize + off as usize)
                };
                let a = read_bytes(mem, at, size);
                write_bytes(mem, at, size, new(a));
                a
            };
            changed |= u32::from(new(old) != old) << l;
            if i.list[k] != NONE {
                cx.w.regs.set_lane(Reg { file, idx: i.list[k] }, l, old);
            }
        }
    }
    note(cx, &p, changed);
    if let Some(x) = publishing {
        // A compare-and-swap that failed has written nothing.
        x.to(cx, &p, if op == Op::Cas { changed } else { p.mask() });
    }
    crate::order::acquire(cx, &p, i.flags & ACQUIRE != 0);
    Flow::Next
}

/// Counts what lanes changed. An atomic that changes nothing is a look.
fn note(cx: &mut Cx<'_>, p: &Places, changed: u32) {
    cx.unit.events += u64::from(changed != 0);
    cx.unit.effects += u64::from(changed & p.host != 0);
    cx.w.polls += u64::from(changed == 0);
}

/// 128-bit exchange and compare-and-swap; one lock makes them atomic against each other.
fn exec128(cx: &mut Cx<'_>, i: &Inst) -> Flow {
    static LOCK: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let addr = cx.addresses(i);
    cx.scope = i.flags >> SCOPE & 3;
    let p = cx.resolve(i.space, &addr, 16, Kind::Atomic);
    let publishing = crate::order::publishing(cx, i.flags & RELEASE != 0);
    let mut changed = 0u32;
    let _guard = LOCK.lock();
    for l in lanes(p.mask()) {
        let old = u128::from(cx.read(&p, l, 0, 8)) | u128::from(cx.read(&p, l, 8, 8)) << 64;
        let b = cx.w.regs.q[i.list[1] as usize][l];
        let new = match i.list.get(2) {
            Some(&c) if old == b => cx.w.regs.q[c as usize][l],
            Some(_) => old,
            None => b,
        };
        changed |= u32::from(new != old) << l;
        cx.write(&p, l, 0, 8, new as u64);
        cx.write(&p, l, 8, 8, (new >> 64) as u64);
        if i.list[0] != NONE {
            cx.w.regs.q[i.list[0] as usize][l] = old;
        }
    }
    note(cx, &p, changed);
    if let Some(x) = publishing {
        x.to(cx, &p, p.mask());
    }
    crate::order::acquire(cx, &p, i.flags & ACQUIRE != 0);
    Flow::Next
}
