//! Exchanges between the lanes of a warp (§9.7.9.6, §9.7.13.2, §9.7.13.9–14).
//!
//! Each names the lanes that take part; lanes that come first wait for the others ([`Flow::Gather`]).

use super::{Dec, Flow, Inst, NONE};
use crate::Error;
use crate::ast::{Operand, Ty};
use crate::machine::Cx;
use crate::regs::{File, LANES, Reg, lanes};
use crate::report::FindingKind;

type R = Result<(), Error>;

impl Cx<'_> {
    /// Whether all live lanes of the member mask are here; otherwise the flow to return.
    pub fn converged(&mut self, member: u32) -> Result<(), Flow> {
        let outside = self.mask & !member;
        if outside != 0 {
            let l = outside.trailing_zeros() as usize;
            self.find(
                FindingKind::WarpSync,
                l,
                None,
                format!("lane {l} executes this but is not in its member mask {member:#010x}"),
            );
        }
        let need = member & self.w.live;
        if need & !self.mask == 0 {
            return Ok(());
        }
        self.need = need;
        Err(Flow::Gather)
    }
}

/// Runs `f` once for each group of lanes that name the same members, when all of them are here.
fn grouped(cx: &mut Cx<'_>, i: &Inst, reg: u32, f: impl Fn(&mut Cx<'_>, &Inst)) -> Flow {
    let all = cx.mask;
    let masks = cx.get::<u32>(reg);
    let group = |left: u32| {
        let m = masks[left.trailing_zeros() as usize % LANES];
        (m, lanes(left).filter(|&l| masks[l] == m).fold(0, |g, l| g | 1 << l))
    };
    let mut left = all;
    while left != 0 {
        let (m, g) = group(left);
        cx.mask = g;
        let r = cx.converged(m);
        cx.mask = all;
        if let Err(flow) = r {
            // Members that are here with another mask of their own never agree.
            let disagree = cx.need & all & !g;
            if disagree != 0 {
                let l = g.trailing_zeros() as usize;
                let text = format!(
                    "lanes {disagree:#010x} are in lane {l}'s member mask {m:#010x} but name other members"
                );
                cx.find(FindingKind::WarpSync, l, None, text);
                cx.need &= !disagree;
                if cx.need & !all == 0 {
                    left &= !g;
                    continue;
                }
            }
            return flow;
        }
        left &= !g;
    }
    left = all;
    while left != 0 {
        let (_, g) = group(left);
        cx.mask = g;
        f(cx, i);
        left &= !g;
    }
    cx.mask = all;
    Flow::Next
}

pub(super) fn bar_warp_sync(d: &mut Dec) -> R {
    d.count(1..=1)?;
    d.out.a = d.src(0, Ty::B32)?;
    d.out.exec = |cx, i| {
        grouped(cx, i, i.a, |cx, _| {
            let m = cx.mask;
            crate::order::warp_sync(cx, m);
        })
    };
    Ok(())
}

pub(super) fn shfl(d: &mut Dec) -> R {
    let sync = d.has("sync");
    let Some(mode) = d.one_of(&[("up", 0u32), ("down", 1), ("bfly", 2), ("idx", 3)]) else {
        return d.fail("the mode is missing");
    };
    let ty = d.ty()?;
    if ty != Ty::B32 && ty != Ty::U32 && ty != Ty::S32 && ty != Ty::F32 {
        return Err(d.bad_type(ty));
    }
    if !sync {
        return d.fail("not supported: `shfl` without `.sync` (gone since sm_70)");
    }
    d.count(5..=5)?;
    let (dst, p) = match d.operand(0)? {
        Operand::Pair(a, b) => (&**a, Some(&**b)),
        o => (o, None),
    };
    d.out.d = d.dst_op(dst, File::W)?;
    if let Some(p) = p {
        d.out.e = d.dst_op(p, File::P)?;
    }
    d.out.a = d.src(1, Ty::B32)?;
    d.shuffle = Some((Reg { file: File::W, idx: d.out.d }, Reg { file: File::W, idx: d.out.a }));
    d.out.b = d.src(2, Ty::B32)?;
    d.out.c = d.src(3, Ty::B32)?;
    d.out.list = [d.src(4, Ty::B32)?].into();
    d.out.flags = mode;
    d.out.exec = |cx, i| {
        grouped(cx, i, i.list[0], |cx, i| {
            let (a, b, c) = (cx.get::<u32>(i.a), cx.get::<u32>(i.b), cx.get::<u32>(i.c));
            let mut r = a;
            let mut from: [u8; LANES] = std::array::from_fn(|l| l as u8);
            let mut ok = 0u32;
            let mut inactive = None;
            for l in lanes(cx.mask) {
                let lane = l as u32;
                let bval = b[l] & 31;
                let (cval, seg) = (c[l] & 31, c[l] >> 8 & 31);
                let max = lane & seg | cval & !seg;
                let min = lane & seg;
                let (j, inside) = match i.flags {
                    0 => {
                        let j = lane as i32 - bval as i32;
                        (j, j >= max as i32)
                    }
                    1 => {
                        let j = (lane + bval) as i32;
                        (j, j <= max as i32)
                    }
                    2 => {
                        let j = (lane ^ bval) as i32;
                        (j, j <= max as i32)
                    }
                    _ => {
                        let j = (min | bval & !seg) as i32;
                        (j, j <= max as i32)
                    }
                };
                if inside {
                    ok |= 1 << l;
                    r[l] = a[j as usize & 31];
                    from[l] = j as u8 & 31;
                    if cx.mask >> (j & 31) & 1 == 0 {
                        inactive = Some((l, j));
                    }
                }
            }
            if let Some((l, j)) = inactive {
                cx.find(
                    FindingKind::WarpSync,
                    l,
                    None,
                    format!("lane {l} takes the value of lane {j}, which is not here"),
                );
            }
            if let Some(u) = &i.uninit {
                for (to, of) in &u.shuffle {
                    let known = of.iter().fold(!0, |ok, &s| ok & cx.w.init[s as usize]);
                    let moved = lanes(cx.mask).fold(0, |m, l| m | (known >> from[l] & 1) << l);
                    let to = &mut cx.w.init[*to as usize];
                    *to = *to & !cx.mask | moved;
                }
            }
            cx.put(i.d, &r);
            if i.e != NONE {
                cx.put_pred(i.e, ok);
            }
        })
    };
    Ok(())
}

pub(super) fn vote(d: &mut Dec) -> R {
    d.has("sync");
    let Some(mode) = d.one_of(&[("all", 0u32), ("any", 1), ("uni", 2), ("ballot", 3)]) else {
        return d.fail("the mode is missing");
    };
    d.ty()?;
    d.count(3..=3)?;
    d.out.d = d.dst(0, if mode == 3 { File::W } else { File::P })?;
    let (a, n) = d.pred(1)?;
    d.out.a = a;
    d.out.b = d.src(2, Ty::B32)?;
    d.out.flags = mode | u32::from(n) << 2;
    d.out.exec = |cx, i| {
        grouped(cx, i, i.b, |cx, i| {
            let m = cx.mask;
            let p = cx.pred(i.a, i.flags & 4 != 0) & m;
            match i.flags & 3 {
                3 => cx.put(i.d, &[p; LANES]),
                k => {
                    let v = match k {
                        0 => p == m,
                        1 => p != 0,
                        _ => p == 0 || p == m,
                    };
                    cx.put_pred(i.d, if v { !0 } else { 0 });
                }
            }
        })
    };
    Ok(())
}

pub(super) fn matches(d: &mut Dec) -> R {
    let Some(all) = d.one_of(&[("any", false), ("all", true)]) else { return d.fail("the mode is missing") };
    d.has("sync");
    let ty = d.ty()?;
    d.count(3..=3)?;
    let (dst, p) = match d.operand(0)? {
        Operand::Pair(a, b) => (&**a, Some(&**b)),
        o => (o, None),
    };
    d.out.d = d.dst_op(dst, File::W)?;
    if let Some(p) = p {
        d.out.e = d.dst_op(p, File::P)?;
    }
    d.out.a = d.src(1, ty)?;
    d.out.b = d.src(2, Ty::B32)?;
    d.out.flags = u32::from(all) | if ty.bits() == 64 { 2 } else { 0 };
    d.out.exec = |cx, i| {
        grouped(cx, i, i.b, |cx, i| {
            let m = cx.mask;
            let file = if i.flags & 2 != 0 { File::D } else { File::W };
            let a = cx.w.regs.wide(crate::regs::Reg { file, idx: i.a });
            let mut r = [0u32; LANES];
            for l in lanes(m) {
                r[l] = lanes(m).filter(|&k| a[k] == a[l]).fold(0, |x, k| x | 1 << k);
            }
            if i.flags & 1 != 0 {
                let all = lanes(m).all(|l| r[l] == m);
                cx.put(i.d, &[if all { m } else { 0 }; LANES]);
                if i.e != NONE {
                    cx.put_pred(i.e, if all { !0 } else { 0 });
                }
            } else {
                cx.put(i.d, &r);
            }
        })
    };
    Ok(())
}

pub(super) fn activemask(d: &mut Dec) -> R {
    d.ty()?;
    d.count(1..=1)?;
    d.out.d = d.dst(0, File::W)?;
    d.out.exec = |cx, i| {
        let m = cx.mask;
        cx.put(i.d, &[m; LANES]);
        Flow::Next
    };
    Ok(())
}

pub(super) fn redux(d: &mut Dec) -> R {
    d.has("sync");
    let op = d.one_of(&[("add", 0u32), ("min", 1), ("max", 2), ("and", 3), ("or", 4), ("xor", 5)]);
    let Some(op) = op else { return d.fail("the operation is missing") };
    let ty = d.ty()?;
    if ty.bits() != 32 || ty.float() {
        return Err(d.bad_type(ty));
    }
    d.count(3..=3)?;
    d.out.d = d.dst(0, File::W)?;
    d.out.a = d.src(1, ty)?;
    d.out.b = d.src(2, Ty::B32)?;
    d.out.flags = op | u32::from(ty.signed()) << 3;
    d.out.exec = |cx, i| {
        grouped(cx, i, i.b, |cx, i| {
            let a = cx.get::<u32>(i.a);
            let signed = i.flags & 8 != 0;
            let v = lanes(cx.mask).map(|l| a[l]).reduce(|x, y| match i.flags & 7 {
                0 => x.wrapping_add(y),
                1 if signed => (x as i32).min(y as i32) as u32,
                2 if signed => (x as i32).max(y as i32) as u32,
                1 => x.min(y),
                2 => x.max(y),
                3 => x & y,
                4 => x | y,
                _ => x ^ y,
            });
            cx.put(i.d, &[v.unwrap_or(0); LANES]);
        })
    };
    Ok(())
}

pub(super) fn elect(d: &mut Dec) -> R {
    d.has("sync");
    d.count(2..=2)?;
    let Operand::Pair(a, p) = d.operand(0)? else { return d.fail("`d|p` is wanted") };
    d.out.d = d.dst_op(a, File::W)?;
    d.out.e = d.dst_op(p, File::P)?;
    d.out.b = d.src(1, Ty::B32)?;
    d.out.exec = |cx, i| {
        grouped(cx, i, i.b, |cx, i| {
            let leader = cx.mask.trailing_zeros();
            cx.put(i.d, &[leader; LANES]);
            cx.put_pred(i.e, 1 << (leader & 31));
        })
    };
    Ok(())
}
