//! `wmma`: matrix multiply with fragments whose layout is the implementation's own (§9.7.14.4).
//!
//! Here element `row · columns + column` of a fragment with `n` elements a lane is element `index % n` of lane
//! `index / n`. Operands of f16 have twice the registers that they need: the second half repeats the first.

use super::mma::{element, int_element};
use super::{Dec, Flow, Inst};
use crate::Error;
use crate::access::Kind;
use crate::ast::{Operand, Ty};
use crate::fp::*;
use crate::machine::Cx;
use crate::regs::{File, LANES, Reg, lanes};

type R = Result<(), Error>;

const TYPES: [Ty; 9] = [Ty::F16, Ty::BF16, Ty::TF32, Ty::F32, Ty::F64, Ty::S8, Ty::U8, Ty::S32, Ty::U32];

fn number(d: &Dec, t: Ty) -> Result<u32, Error> {
    TYPES.iter().position(|&x| x == t).map(|k| k as u32).ok_or_else(|| d.bad_type(t))
}

fn shape(m: &str) -> Option<[u32; 3]> {
    let (m, rest) = m.strip_prefix('m')?.split_once('n')?;
    let (n, k) = rest.split_once('k')?;
    Some([m.parse().ok()?, n.parse().ok()?, k.parse().ok()?])
}

/// Checks shape and type, and gives them.
fn form(d: &mut Dec) -> Result<[u32; 3], Error> {
    let Some(s) = d.take(shape) else { return d.fail("the shape is missing") };
    Ok(s)
}

fn legal(d: &Dec, s: [u32; 3], a: Ty) -> R {
    let ok = match a {
        Ty::F16 | Ty::BF16 | Ty::S8 | Ty::U8 => matches!(s, [16, 16, 16] | [8, 32, 16] | [32, 8, 16]),
        Ty::TF32 => s == [16, 16, 8],
        Ty::F64 => s == [8, 8, 4],
        _ => false,
    };
    if ok { Ok(()) } else { d.fail("not supported: this combination of shape and type") }
}

/// Rows and columns of operand `a`, `b` or `c`.
fn dims(s: [u32; 3], which: u32) -> (u32, u32) {
    match which {
        0 => (s[0], s[2]),
        1 => (s[2], s[1]),
        _ => (s[0], s[1]),
    }
}

/// Registers of a fragment.
fn count(s: [u32; 3], which: u32, ty: Ty) -> usize {
    let (r, c) = dims(s, which);
    let bits = r * c / 32 * ty.bits();
    match ty {
        Ty::F64 => (bits / 64) as usize,
        // Eight whatever the shape (§9.7.14.4.1).
        Ty::F16 if which < 2 => 8,
        _ => bits.div_ceil(32) as usize,
    }
}

fn file(ty: Ty) -> File {
    if ty == Ty::F64 { File::D } else { File::W }
}

fn parts(op: &Operand) -> &[Operand] {
    match op {
        Operand::Vector(v) => v,
        o => std::slice::from_ref(o),
    }
}

/// `wmma.load` and `wmma.store`: what they share. `k` is the fragment's operand and `m` the address's.
fn memory(d: &mut Dec, store: bool) -> R {
    let Some(which) = d.one_of(&[("a", 0u32), ("b", 1), ("c", 2), ("d", 2)]) else {
        return d.fail("which matrix is missing");
    };
    d.has("sync");
    d.has("aligned");
    let Some(col) = d.one_of(&[("row", 0u32), ("col", 1)]) else {
        return d.fail("`.row` or `.col` is wanted");
    };
    let s = form(d)?;
    let space = d.space();
    let ty = d.ty()?;
    if which < 2 {
        legal(d, s, ty)?;
    }
    let (k, m) = if store { (1, 0) } else { (0, 1) };
    let n = count(s, which, ty);
    let v = parts(d.operand(k)?);
    if v.len() != n {
        return d.fail(format!("{} registers where {n} are wanted", v.len()));
    }
    let mut list = vec![number(d, ty)?, which, s[0], s[1], s[2], col];
    for o in v {
        let r = if store {
            d.src_op(o, if ty == Ty::F64 { Ty::F64 } else { Ty::B32 })?
        } else {
            d.dst_op(o, file(ty))?
        };
        list.push(r);
    }
    let (a, off, space) = d.mem(m, space)?;
    (d.out.a, d.out.imm, d.out.space) = (a, off, space);
    if d.ins.operands.len() > 2 {
        d.out.b = d.src(2, Ty::U32)?;
    }
    d.count(2..=3)?;
    d.out.list = list.into();
    d.out.e = u32::from(store);
    d.out.exec = access;
    Ok(())
}

pub(super) fn load(d: &mut Dec) -> R {
    memory(d, false)
}
pub(super) fn store(d: &mut Dec) -> R {
    memory(d, true)
}

fn access(cx: &mut Cx<'_>, i: &Inst) -> Flow {
    if let Err(f) = super::mma::whole_warp(cx) {
        return f;
    }
    let ty = TYPES[i.list[0] as usize];
    let (rows, cols) = dims([i.list[2], i.list[3], i.list[4]], i.list[1]);
    let col_major = i.list[5] != 0;
    let regs = &i.list[6..];
    let base = cx.addresses(i)[0];
    let ld =
        if i.b == super::NONE { if col_major { rows } else { cols } } else { cx.w.regs.w[i.b as usize][0] };
    let n = rows * cols / 32;
    let (bits, es) = (ty.bits(), ty.bytes());
    let per = if ty == Ty::F64 { 1 } else { 32 / bits };
    let mut values = vec![[0u64; LANES]; regs.len()];
    let store = i.e != 0;
    if store {
        for (v, &r) in values.iter_mut().zip(regs) {
            *v = cx.w.regs.wide(Reg { file: file(ty), idx: r });
        }
    }
    for e in 0..n {
        let addr: [u64; LANES] = std::array::from_fn(|l| {
            let x = l as u32 * n + e;
            let (r, c) = (x / cols, x % cols);
            let at = if col_major {
                u64::from(c) * u64::from(ld) + u64::from(r)
            } else {
                u64::from(r) * u64::from(ld) + u64::from(c)
            };
            base.wrapping_add(at * u64::from(es))
        });
        let p = cx.resolve(i.space, &addr, es, if store { Kind::Write } else { Kind::Read });
        let shift = bits * (e % per) % 64;
        let reg = (e / per) as usize;
        for l in lanes(p.mask()) {
            if store {
                let v = values[reg][l] >> shift;
                cx.write(&p, l, 0, es, v & (!0 >> (64 - bits)));
            } else {
                values[reg][l] |= cx.read(&p, l, 0, es) << shift;
            }
        }
        crate::shadow::settle(cx);
    }
    if !store {
        let filled = (n / per) as usize;
        for (k, &r) in regs.iter().enumerate() {
            let v = values[k % filled.max(1)];
            if ty == Ty::F64 { cx.put(r, &v) } else { cx.put(r, &v.map(|x| x as u32)) }
        }
    }
    Flow::Next
}

pub(super) fn mma(d: &mut Dec) -> R {
    d.has("sync");
    d.has("aligned");
    for _ in 0..2 {
        // The layouts were used by the loads: fragments do not show them.
        if d.one_of(&[("row", ()), ("col", ())]).is_none() {
            return d.fail("the layouts are missing");
        }
    }
    let s = form(d)?;
    d.one_of(&[("rn", ()), ("rz", ()), ("rm", ()), ("rp", ())]);
    if d.has("satfinite") {
        d.out.flags = 1;
    }
    let mut types = vec![d.ty()?];
    while let Some(t) = d.take(Ty::parse) {
        types.push(t);
    }
    let (dt, at, bt, ct) = match types[..] {
        [dt, ct] => (dt, Ty::F16, Ty::F16, ct),
        [dt, at, bt, ct] => (dt, at, bt, ct),
        _ => return d.fail("two or four types are wanted"),
    };
    legal(d, s, at)?;
    let mut list = vec![number(d, dt)?, number(d, at)?, number(d, bt)?, number(d, ct)?];
    d.count(4..=4)?;
    for (k, (which, ty)) in [(2, dt), (0, at), (1, bt), (2, ct)].into_iter().enumerate() {
        let v = parts(d.operand(k)?);
        let n = count(s, which, ty);
        if v.len() != n {
            return d.fail(format!("operand {} has {} registers where {n} are wanted", k + 1, v.len()));
        }
        for o in v {
            let r = match (k, ty) {
                (0, _) => d.dst_op(o, file(ty))?,
                (_, Ty::F64) => d.src_op(o, Ty::F64)?,
                _ => d.src_op(o, Ty::B32)?,
            };
            list.push(r);
        }
    }
    d.out.list = list.into();
    (d.out.a, d.out.b, d.out.c) = (s[0], s[1], s[2]);
    d.out.exec = exec;
    Ok(())
}

/// A fragment as a matrix.
fn gather(cx: &Cx<'_>, regs: &[u32], ty: Ty, (rows, cols): (u32, u32)) -> Vec<f64> {
    let n = rows * cols / 32;
    let per = if ty == Ty::F64 { 1 } else { 32 / ty.bits() };
    let v: Vec<[u64; LANES]> = regs.iter().map(|&r| cx.w.regs.wide(Reg { file: file(ty), idx: r })).collect();
    (0..rows * cols)
        .map(|x| {
            let (l, e) = ((x / n) as usize, x % n);
            let bits = v[(e / per) as usize][l];
            match ty {
                Ty::S8 | Ty::U8 => f64::from(int_element(ty, bits as u32, e % per)),
                Ty::S32 => f64::from(bits as u32 as i32),
                _ => element(ty, bits, e % per),
            }
        })
        .collect()
}

fn exec(cx: &mut Cx<'_>, i: &Inst) -> Flow {
    if let Err(f) = super::mma::whole_warp(cx) {
        return f;
    }
    let s = [i.a, i.b, i.c];
    let t = |k: usize| TYPES[i.list[k] as usize];
    let (dt, at, bt, ct) = (t(0), t(1), t(2), t(3));
    let (rd, rest) = i.list[4..].split_at(count(s, 2, dt));
    let (ra, rest) = rest.split_at(count(s, 0, at));
    let (rb, rc) = rest.split_at(count(s, 1, bt));
    let a = gather(cx, ra, at, dims(s, 0));
    let b = gather(cx, rb, bt, dims(s, 1));
    let mut c = gather(cx, rc, ct, dims(s, 2));
    let (m, n, k) = (s[0] as usize, s[1] as usize, s[2] as usize);
    for r in 0..m {
        for x in 0..k {
            for j in 0..n {
                let v = &mut c[r * n + j];
                *v = if at == Ty::F64 {
                    a[r * k + x].mul_add(b[x * n + j], *v)
                } else {
                    *v + a[r * k + x] * b[x * n + j]
                };
            }
        }
    }
    let each = m * n / 32;
    let per = if dt == Ty::F16 { 2 } else { 1 };
    for (g, &r) in rd.iter().enumerate() {
        let v: [u64; LANES] = std::array::from_fn(|l| {
            (0..per).fold(0, |w, e| {
                let x = c[l * each + g * per + e];
                let bits = match dt {
                    Ty::F16 => F16.encode(x, Round::Rn, false),
                    Ty::F32 => canon32(x as f32).into(),
                    Ty::F64 => x.to_bits(),
                    _ if i.flags != 0 => {
                        x.clamp(f64::from(i32::MIN), f64::from(i32::MAX)) as i32 as u32 as u64
                    }
                    _ => x as i64 as u32 as u64,
                };
                w | bits << (16 * e)
            })
        });
        if dt == Ty::F64 { cx.put(r, &v) } else { cx.put(r, &v.map(|x| x as u32)) }
    }
    Flow::Next
}
