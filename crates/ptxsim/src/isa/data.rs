//! Moves, loads, stores and addresses (§9.7.9).

use super::{Dec, Flow, Inst, space_of};
use crate::Error;
use crate::access::{Kind, LOCAL_TAG, SHARED_TAG};
use crate::ast::{Operand, Space, Ty};
use crate::machine::Cx;
use crate::regs::{File, LANES, Lane, Reg, lanes};
use crate::report::Class;

type R = Result<(), Error>;

/// In `Inst::flags` of loads and stores.
pub(crate) const STRONG: u32 = 1;
pub(crate) const ACQUIRE: u32 = 2;
pub(crate) const RELEASE: u32 = 4;
const SIGNED: u32 = 8;
/// Scope in bits 4–5: CTA, cluster, GPU, system.
pub(crate) const SCOPE: u32 = 4;

/// Reads of registers that change while a warp runs.
fn clock(d: &mut Dec, name: &str) -> Option<R> {
    let wide = match name {
        "%clock" | "%clock_hi" | "%globaltimer_lo" | "%globaltimer_hi" => false,
        "%clock64" | "%globaltimer" => true,
        _ => return None,
    };
    d.out.flags = u32::from(name.ends_with("_hi"));
    let r = d.dst(0, if wide { File::D } else { File::W }).map(|r| d.out.d = r);
    d.out.exec = if wide {
        |cx, i| {
            let t = ticks(cx);
            cx.put(i.d, &[t; LANES]);
            Flow::Next
        }
    } else {
        |cx, i| {
            let t = ticks(cx) >> (32 * i.flags);
            cx.put(i.d, &[t as u32; LANES]);
            Flow::Next
        }
    };
    Some(r)
}

/// What clocks show. Whoever looks at one may be about to do something else.
fn ticks(cx: &mut Cx<'_>) -> u64 {
    cx.unit.effects += 1;
    cx.w.executed
}

/// The type of each of `n` parts of a `ty`.
fn part(d: &Dec, ty: Ty, n: usize) -> Result<Ty, Error> {
    match (ty.bits(), n) {
        (16, 2) | (32, 4) => Ok(Ty::B8),
        (32, 2) | (64, 4) => Ok(Ty::B16),
        (64, 2) | (128, 4) => Ok(Ty::B32),
        (128, 2) => Ok(Ty::B64),
        _ => d.fail(format!("{n} parts don't make a `{ty:?}`")),
    }
}

/// Parts of `bits` bits, the lowest first.
fn unpack<W: Copy + std::ops::Shr<u32, Output = W>, P: Lane>(
    cx: &mut Cx<'_>,
    i: &Inst,
    whole: [W; LANES],
    bits: u32,
    part: fn(W) -> P,
) -> Flow {
    for (k, &r) in (0..).zip(&i.list) {
        cx.put(r, &whole.map(|x| part(x >> (bits * k))));
    }
    Flow::Next
}

fn pack<W, P: Lane>(cx: &mut Cx<'_>, i: &Inst, bits: u32, widen: fn(P) -> W) -> Flow
where
    W: Lane + std::ops::Shl<u32, Output = W> + std::ops::BitOr<Output = W>,
{
    let mut whole = [W::default(); LANES];
    for (k, &r) in (0..).zip(&i.list) {
        let p = cx.get::<P>(r);
        for l in 0..LANES {
            whole[l] = whole[l] | widen(p[l]) << (bits * k);
        }
    }
    cx.put(i.d, &whole);
    Flow::Next
}

pub(super) fn mov(d: &mut Dec) -> R {
    let ty = d.ty()?;
    d.count(2..=2)?;
    d.copy = true;
    if let Operand::Ident(n) = d.operand(1)?
        && n.starts_with('%')
        && let Some(r) = clock(d, n)
    {
        return r;
    }
    if ty == Ty::Pred {
        d.out.d = d.dst(0, File::P)?;
        let (a, n) = d.pred(1)?;
        d.out.a = a;
        d.out.flags = u32::from(n);
        d.out.exec = |cx, i| {
            let v = cx.pred(i.a, i.flags != 0);
            cx.put_pred(i.d, v);
            Flow::Next
        };
        return Ok(());
    }
    match (d.operand(0)?, d.operand(1)?) {
        (Operand::Vector(v), src) => {
            // Unpack.
            let part = part(d, ty, v.len())?;
            d.out.a = d.src_op(src, ty)?;
            let list: Result<_, _> = v.iter().map(|o| d.dst_op(o, File::of(part.bits()))).collect();
            d.out.list = list?;
            d.out.exec = match (ty.bits(), part.bits()) {
                (16, 8) => |cx, i| unpack(cx, i, cx.get::<u16>(i.a).map(u32::from), 8, |x| x as u8 as u16),
                (32, 8) => |cx, i| unpack(cx, i, cx.get::<u32>(i.a), 8, |x| x as u8 as u16),
                (32, 16) => |cx, i| unpack(cx, i, cx.get::<u32>(i.a), 16, |x| x as u16),
                (64, 16) => |cx, i| unpack(cx, i, cx.get::<u64>(i.a), 16, |x| x as u16),
                (64, 32) => |cx, i| unpack(cx, i, cx.get::<u64>(i.a), 32, |x| x as u32),
                (128, 32) => |cx, i| unpack(cx, i, cx.get::<u128>(i.a), 32, |x| x as u32),
                _ => |cx, i| unpack(cx, i, cx.get::<u128>(i.a), 64, |x| x as u64),
            };
            Ok(())
        }
        (_, Operand::Vector(v)) => {
            let part = part(d, ty, v.len())?;
            let list: Result<_, _> = v.iter().map(|o| d.src_op(o, part)).collect();
            d.out.list = list?;
            d.out.d = d.dst_ty(0, ty)?;
            d.out.exec = match (ty.bits(), part.bits()) {
                (16, 8) => |cx, i| pack(cx, i, 8, |x: u16| x & 255),
                (32, 8) => |cx, i| pack(cx, i, 8, |x: u16| u32::from(x & 255)),
                (32, 16) => |cx, i| pack(cx, i, 16, |x: u16| u32::from(x)),
                (64, 16) => |cx, i| pack(cx, i, 16, |x: u16| u64::from(x)),
                (64, 32) => |cx, i| pack(cx, i, 32, |x: u32| u64::from(x)),
                (128, 32) => |cx, i| pack(cx, i, 32, |x: u32| u128::from(x)),
                _ => |cx, i| pack(cx, i, 64, |x: u64| u128::from(x)),
            };
            Ok(())
        }
        _ => {
            d.out.d = d.dst_ty(0, ty)?;
            d.out.a = d.src(1, ty)?;
            d.out.exec = match ty.bits() {
                16 => |cx, i| cx.map1(i, |a: u16| a),
                32 => |cx, i| cx.map1(i, |a: u32| a),
                64 => |cx, i| cx.map1(i, |a: u64| a),
                128 => |cx, i| cx.map1(i, |a: u128| a),
                _ => return Err(d.bad_type(ty)),
            };
            Ok(())
        }
    }
}

/// Takes memory-order, scope and cache modifiers; gives the flags.
pub(super) fn order(d: &mut Dec) -> u32 {
    let mut f = d
        .one_of(&[
            ("volatile", STRONG),
            ("relaxed", STRONG),
            ("acquire", STRONG | ACQUIRE),
            ("release", STRONG | RELEASE),
            ("acq_rel", STRONG | ACQUIRE | RELEASE),
            ("weak", 0),
        ])
        .unwrap_or(0);
    // `.mmio` stands before `.relaxed`, and asks for no more here.
    d.has("mmio");
    f |= d.one_of(&[("cta", 0u32), ("cluster", 1), ("gpu", 2), ("sys", 3)]).unwrap_or(2) << SCOPE;
    cache(d);
    f
}

/// Takes cache hints, which change no result.
pub(super) fn cache(d: &mut Dec) {
    while d
        .take(|m| {
            (matches!(m, "ca" | "cg" | "cs" | "lu" | "cv" | "wb" | "wt" | "nc" | "unified")
                || m.starts_with("L1::")
                || m.starts_with("L2::"))
            .then_some(())
        })
        .is_some()
    {}
}

/// A state space, or the one to take when none is given.
pub(super) fn space_or(d: &mut Dec, default: Space) -> Result<Space, Error> {
    Ok(match d.space() {
        Space::Generic => default,
        s => s,
    })
}

fn vector(d: &mut Dec) -> u8 {
    d.one_of(&[("v2", 2u8), ("v4", 4), ("v8", 8)]).unwrap_or(1)
}

pub(crate) fn kind_of(flags: u32, write: bool) -> Kind {
    match (flags & STRONG != 0, write) {
        (false, false) => Kind::Read,
        (false, true) => Kind::Write,
        (true, false) => Kind::StrongRead,
        (true, true) => Kind::StrongWrite,
    }
}

/// Registers of a vector or scalar operand; the file of each must hold the type.
fn elements(d: &mut Dec, k: usize, ty: Ty, n: u8, dst: bool) -> Result<(Vec<u32>, File), Error> {
    let op = d.operand(k)?;
    let single;
    let parts: &[Operand] = match op {
        Operand::Vector(v) => v,
        Operand::Ident(name) if n > 1 && d.env.vector(name).is_some() => {
            single = ['x', 'y', 'z', 'w'][..n as usize]
                .iter()
                .map(|&c| Operand::Component(name.clone(), c))
                .collect::<Vec<_>>();
            &single
        }
        o => std::slice::from_ref(o),
    };
    if parts.len() != n as usize {
        return d.fail(format!("{} registers where {n} are wanted", parts.len()));
    }
    let mut out = vec![];
    let mut file = None;
    for o in parts {
        let r = if dst {
            d.dst_reg(o, File::of(ty.bits()))?
        } else {
            match d.source_reg(o)? {
                Some(r) => r,
                None => Reg { file: File::of(ty.bits()), idx: d.src_op(o, ty)? },
            }
        };
        if r.file == File::P || r.file.bits() < ty.bits() {
            return d.fail("a register is too narrow for the type");
        }
        match file {
            None => file = Some(r.file),
            // Sinks and constants have the type's own width.
            Some(f) if f != r.file => return d.fail("registers of different widths in one vector"),
            _ => {}
        }
        out.push(r.idx);
    }
    Ok((out, file.unwrap_or(File::W)))
}

fn file_code(f: File) -> u32 {
    match f {
        File::P | File::H => 0,
        File::W => 1,
        File::D => 2,
        File::Q => 3,
    }
}

pub(super) const FILE_OF: [File; 4] = [File::H, File::W, File::D, File::Q];

pub(super) fn ld(d: &mut Dec) -> R {
    let f = order(d);
    let space = d.space();
    let n = vector(d);
    let ty = d.ty()?;
    cache(d);
    d.count(2..=3)?;
    let (list, file) = elements(d, 0, ty, n, true)?;
    let (a, off, space) = d.mem(1, space)?;
    if d.ins.operands.len() == 3 {
        d.src(2, Ty::B64)?;
    }
    d.out.flags |= f | if ty.signed() { SIGNED } else { 0 };
    (d.out.a, d.out.imm, d.out.space) = (a, off, space);
    (d.out.size, d.out.vec) = (ty.bytes() as u8, n);
    d.out.list = list.into();
    d.out.e = file_code(file);
    d.out.exec = match (ty.bytes(), file) {
        (4, File::W) => |cx, i| load::<4, u32>(cx, i),
        (2, File::H) => |cx, i| load::<2, u16>(cx, i),
        (8, File::D) => |cx, i| load::<8, u64>(cx, i),
        (16, File::Q) => load128,
        (16, _) => return Err(d.bad_type(ty)),
        _ => load_any,
    };
    Ok(())
}

/// Loads elements as wide as their registers.
fn load<const N: u32, T: crate::regs::Lane>(cx: &mut Cx<'_>, i: &Inst) -> Flow {
    let addr = cx.addresses(i);
    cx.scope = i.flags >> SCOPE & 3;
    let p = cx.resolve(i.space, &addr, N * u32::from(i.vec), kind_of(i.flags, false));
    let m = cx.mask;
    for (k, &r) in i.list.iter().enumerate() {
        let off = k as u32 * N;
        let mut v = *T::get(&cx.w.regs, r);
        if p.mask() == !0 && p.host == !0 {
            for l in 0..LANES {
                // SAFETY: `resolve` found all lanes in live allocations and aligned.
                v[l] = T::from_u64(unsafe { crate::memory::read(p.at[l] + u64::from(off), N) });
            }
        } else {
            for l in lanes(m) {
                // A lane that failed its checks reads zero.
                v[l] =
                    if p.mask() >> l & 1 != 0 { T::from_u64(cx.read(&p, l, off, N)) } else { T::from_u64(0) };
            }
        }
        *T::get_mut(&mut cx.w.regs, r) = v;
    }
    if i.flags & STRONG != 0 {
        cx.w.polls += 1;
        crate::order::acquire(cx, &p, i.flags & ACQUIRE != 0);
    }
    Flow::Next
}

fn load128(cx: &mut Cx<'_>, i: &Inst) -> Flow {
    let addr = cx.addresses(i);
    let p = cx.resolve(i.space, &addr, 16 * u32::from(i.vec), kind_of(i.flags, false));
    for (k, &r) in i.list.iter().enumerate() {
        for l in lanes(p.mask()) {
            let off = k as u32 * 16;
            let v = u128::from(cx.read(&p, l, off, 8)) | u128::from(cx.read(&p, l, off + 8, 8)) << 64;
            cx.w.regs.q[r as usize][l] = v;
        }
    }
    Flow::Next
}

/// Loads with extension to a wider register.
fn load_any(cx: &mut Cx<'_>, i: &Inst) -> Flow {
    let addr = cx.addresses(i);
    cx.scope = i.flags >> SCOPE & 3;
    let size = u32::from(i.size);
    let p = cx.resolve(i.space, &addr, size * u32::from(i.vec), kind_of(i.flags, false));
    let file = FILE_OF[i.e as usize & 3];
    for (k, &r) in i.list.iter().enumerate() {
        for l in lanes(cx.mask) {
            let mut v = if p.mask() >> l & 1 != 0 { cx.read(&p, l, k as u32 * size, size) } else { 0 };
            if i.flags & SIGNED != 0 {
                let s = 64 - 8 * size;
                v = ((v << s) as i64 >> s) as u64;
            }
            cx.w.regs.set_lane(Reg { file, idx: r }, l, v);
        }
    }
    if i.flags & STRONG != 0 {
        cx.w.polls += 1;
        crate::order::acquire(cx, &p, i.flags & ACQUIRE != 0);
    }
    Flow::Next
}

pub(super) fn st(d: &mut Dec) -> R {
    let f = order(d);
    let space = d.space();
    let n = vector(d);
    let ty = d.ty()?;
    cache(d);
    d.count(2..=3)?;
    let (a, off, space) = d.mem(0, space)?;
    let (list, file) = elements(d, 1, ty, n, false)?;
    if d.ins.operands.len() == 3 {
        d.src(2, Ty::B64)?;
    }
    d.out.flags |= f;
    (d.out.a, d.out.imm, d.out.space) = (a, off, space);
    (d.out.size, d.out.vec) = (ty.bytes() as u8, n);
    d.out.list = list.into();
    d.out.e = file_code(file);
    d.out.exec = if ty.bytes() == 16 { store128 } else { store };
    Ok(())
}

fn store(cx: &mut Cx<'_>, i: &Inst) -> Flow {
    let addr = cx.addresses(i);
    let size = u32::from(i.size);
    cx.scope = i.flags >> SCOPE & 3;
    let p = cx.resolve(i.space, &addr, size * u32::from(i.vec), kind_of(i.flags, true));
    let mut publishing = None;
    if i.flags & STRONG != 0 {
        cx.unit.events += 1;
        publishing = crate::order::publishing(cx, i.flags & RELEASE != 0);
    }
    let file = FILE_OF[i.e as usize & 3];
    for (k, &r) in i.list.iter().enumerate() {
        let v = cx.w.regs.wide(Reg { file, idx: r });
        if p.host == !0 && cx.suspect == 0 {
            for l in 0..LANES {
                // SAFETY: `resolve` found all lanes in live writable allocations and aligned.
                unsafe { crate::memory::write(p.at[l] + u64::from(k as u32 * size), size, v[l]) };
            }
        } else {
            for l in lanes(p.mask()) {
                cx.write(&p, l, k as u32 * size, size, v[l]);
            }
        }
    }
    if let Some(x) = publishing {
        x.to(cx, &p, p.mask());
    }
    crate::shadow::settle(cx);
    Flow::Next
}

fn store128(cx: &mut Cx<'_>, i: &Inst) -> Flow {
    let addr = cx.addresses(i);
    let p = cx.resolve(i.space, &addr, 16 * u32::from(i.vec), kind_of(i.flags, true));
    for (k, &r) in i.list.iter().enumerate() {
        for l in lanes(p.mask()) {
            let (off, v) = (k as u32 * 16, cx.w.regs.q[r as usize][l]);
            cx.write(&p, l, off, 8, v as u64);
            cx.write(&p, l, off + 8, 8, (v >> 64) as u64);
        }
    }
    crate::shadow::settle(cx);
    Flow::Next
}

/// Hints that move no data.
pub(super) fn prefetch(d: &mut Dec) -> R {
    d.space();
    while d.take(|m| (m == "L1" || m == "L2" || m.contains("::") || m == "tensormap").then_some(())).is_some()
    {
    }
    d.out.exec = super::control::nop_exec;
    Ok(())
}

pub(super) fn createpolicy(d: &mut Dec) -> R {
    while d
        .take(|m| {
            (m.contains("::") || matches!(m, "fractional" | "range" | "global" | "cvt" | "L2")).then_some(())
        })
        .is_some()
    {}
    d.ty()?;
    d.out.d = d.dst(0, File::D)?;
    d.out.exec = |cx, i| {
        cx.put(i.d, &[0u64; LANES]);
        Flow::Next
    };
    Ok(())
}

fn tag(s: Space) -> u64 {
    match s {
        Space::Shared | Space::SharedCluster => SHARED_TAG,
        Space::Local => LOCAL_TAG,
        _ => 0,
    }
}

pub(super) fn cvta(d: &mut Dec) -> R {
    let to = d.has("to");
    let Some(space) = d.take(space_of) else { return d.fail("the state space is missing") };
    let ty = d.ty()?;
    if ty.bits() != 64 {
        return Err(d.bad_type(ty));
    }
    d.count(2..=2)?;
    d.copy = true;
    d.out.class = Class::Move;
    d.out.d = d.dst(0, File::D)?;
    d.out.a = d.src(1, Ty::B64)?;
    d.out.imm = tag(space) as i64;
    d.out.exec = match (tag(space) == 0, to) {
        (true, _) => |cx, i| cx.map1(i, |a: u64| a),
        (false, true) => |cx, i| cx.map1(i, |a: u64| a & !(0xff << 56)),
        (false, false) => |cx, i| cx.map1(i, |a: u64| a & !(0xff << 56) | i.imm as u64),
    };
    Ok(())
}

pub(super) fn isspacep(d: &mut Dec) -> R {
    let cluster = d.ins.mods.iter().any(|m| m == "shared::cluster");
    let Some(space) = d.take(space_of) else { return d.fail("the state space is missing") };
    d.count(2..=2)?;
    d.out.d = d.dst(0, File::P)?;
    d.out.a = d.src(1, Ty::B64)?;
    d.out.imm = tag(space) as i64;
    d.out.flags = u32::from(space == Space::Shared && !cluster);
    d.out.exec = |cx, i| {
        let a = cx.get::<u64>(i.a);
        let mine = cx.unit.ctas[cx.w.cta].rank;
        let v = (0..LANES).fold(0, |m, l| {
            let mut yes = a[l] & 0xff << 56 == i.imm as u64;
            // `.shared::cta` is the CTA's own window only.
            if i.flags != 0 {
                let r = a[l] >> 24 & 0xff;
                yes &= r == 0 || r == u64::from(mine) + 1;
            }
            m | u32::from(yes) << l
        });
        cx.put_pred(i.d, v);
        Flow::Next
    };
    Ok(())
}
