//! Clusters and distributed shared memory (§9.7.9.12, §9.7.9.23–24, §9.7.13.3, §9.7.13.7).

use super::data::{cache, space_or};
use super::{Dec, Flow, NARROW_ADDRESS, NONE};
use crate::Error;
use crate::access::{Kind, SHARED_TAG};
use crate::ast::{Operand, Space, Ty};
use crate::barrier::BarrierOp;
use crate::regs::{File, LANES, Reg, lanes};
use crate::report::FindingKind;

type R = Result<(), Error>;

pub(super) fn mapa(d: &mut Dec) -> R {
    let shared = d.space() != Space::Generic;
    let ty = d.ty()?;
    d.count(3..=3)?;
    d.out.d = d.dst_ty(0, ty)?;
    d.out.a = d.src(1, ty)?;
    d.out.b = d.src(2, Ty::U32)?;
    d.out.flags = u32::from(shared);
    d.out.exec = match ty.bits() {
        32 => |cx, i| {
            let ranks = cx.unit.ctas.len() as u32;
            let b = cx.get::<u32>(i.b);
            if let Some(l) = lanes(cx.mask).find(|&l| b[l] >= ranks) {
                let m = format!("CTA rank {} of a cluster of {ranks}", b[l]);
                cx.find(FindingKind::SharedBounds, l, None, m);
            }
            cx.map2(i, |a: u32, r: u32| (r + 1) << 24 | a & 0xff_ffff)
        },
        _ => |cx, i| {
            let tag = if i.flags != 0 { 0 } else { SHARED_TAG };
            let a = cx.get::<u64>(i.a);
            let r = cx.get::<u32>(i.b);
            let v: [u64; LANES] = std::array::from_fn(|l| {
                tag | u64::from(r[l].wrapping_add(1)) << 24 & 0xff00_0000 | a[l] & 0xff_ffff
            });
            cx.put(i.d, &v);
            Flow::Next
        },
    };
    Ok(())
}

pub(super) fn getctarank(d: &mut Dec) -> R {
    d.space();
    let ty = d.ty()?;
    d.count(2..=2)?;
    d.out.d = d.dst(0, File::W)?;
    d.out.a = d.src(1, ty)?;
    d.out.flags = u32::from(ty.bits() == 64);
    d.out.exec = |cx, i| {
        let own = cx.unit.ctas[cx.w.cta].rank;
        let file = if i.flags != 0 { File::D } else { File::W };
        let a = cx.w.regs.wide(Reg { file, idx: i.a });
        let v: [u32; LANES] = std::array::from_fn(|l| match (a[l] >> 24 & 0xff) as u32 {
            0 => own,
            r => r - 1,
        });
        cx.put(i.d, &v);
        Flow::Next
    };
    Ok(())
}

pub(super) fn barrier_cluster(d: &mut Dec) -> R {
    let Some(wait) = d.one_of(&[("arrive", false), ("wait", true)]) else {
        return d.fail("`.arrive` or `.wait` is wanted");
    };
    let relaxed = d.one_of(&[("release", false), ("relaxed", true), ("acquire", false)]).unwrap_or(false);
    let aligned = d.has("aligned");
    d.count(0..=0)?;
    d.out.flags = u32::from(aligned) | u32::from(relaxed) << 1;
    d.out.exec = if wait {
        |cx, _| {
            let s = &mut cx.w.sync;
            if s.cluster_arrived == 0 {
                let l = cx.mask.trailing_zeros() as usize;
                cx.find(
                    FindingKind::ArriveCount,
                    l,
                    None,
                    "waits at the cluster barrier without having arrived".into(),
                );
                return Flow::Stop;
            }
            if s.cluster_phase < s.cluster_arrived {
                return Flow::Yield;
            }
            if let Some(c) = s.cluster_clock.clone() {
                s.clock.join(&c);
                s.sync_lanes();
            }
            // The next wait is for another arrival. (Lanes that wait one after the other are still at this one.)
            if cx.mask & cx.w.live == cx.w.live {
                cx.w.sync.cluster_arrived = 0;
            }
            Flow::Next
        }
    } else {
        |cx, i| {
            cx.barrier = Some(BarrierOp {
                id: 0,
                count: None,
                arrive: true,
                aligned: i.flags & 1 != 0,
                red: 0,
                pred: 0,
                dst: NONE,
                cluster: true,
                relaxed: i.flags & 2 != 0,
            });
            Flow::Barrier
        }
    };
    Ok(())
}

/// `st.async.shared::cluster.mbarrier::complete_tx::bytes.type [a], b, [mbar]`, and `red.async`.
fn remote(d: &mut Dec, reduce: bool) -> R {
    d.one_of(&[("weak", ()), ("relaxed", ()), ("release", ())]);
    d.one_of(&[("cluster", ()), ("cta", ()), ("gpu", ()), ("sys", ())]);
    space_or(d, Space::SharedCluster)?;
    d.take(|m| m.starts_with("mbarrier::complete_tx").then_some(()));
    let op = if reduce {
        const OPS: [(&str, u32); 8] =
            [("add", 0), ("min", 1), ("max", 2), ("and", 3), ("or", 4), ("xor", 5), ("inc", 6), ("dec", 7)];
        match d.one_of(&OPS) {
            Some(o) => o,
            None => return d.fail("the operation is missing"),
        }
    } else {
        NONE
    };
    let n = d.one_of(&[("v2", 2u8), ("v4", 4)]).unwrap_or(1);
    let ty = d.ty()?;
    cache(d);
    d.count(3..=3)?;
    let (m, moff, _) = d.mem(2, Space::SharedCluster)?;
    let narrow = d.out.flags & NARROW_ADDRESS;
    let (a, off, _) = d.mem(0, Space::SharedCluster)?;
    let narrow_m = u32::from(narrow != 0);
    (d.out.a, d.out.imm, d.out.space) = (a, off, Space::SharedCluster);
    let parts = match d.operand(1)? {
        Operand::Vector(v) => &v[..],
        o => std::slice::from_ref(o),
    };
    if parts.len() != n as usize {
        return d.fail("the vector has the wrong length");
    }
    let mut list = vec![moff as u32, narrow_m, u32::from(ty.signed())];
    for p in parts {
        list.push(d.src_op(p, ty)?);
    }
    d.out.b = m;
    d.out.e = op;
    d.out.list = list.into();
    d.out.size = ty.bytes() as u8;
    d.out.vec = n;
    d.out.exec = |cx, i| {
        let addr = cx.addresses(i);
        let bars = cx.address_of(i.b, i64::from(i.list[0] as i32), i.list[1] != 0);
        let size = u32::from(i.size);
        let kind = if i.e == NONE { Kind::StrongWrite } else { Kind::Atomic };
        let p = cx.resolve(i.space, &addr, size * u32::from(i.vec), kind);
        let b = cx.untracked(|cx| cx.resolve(Space::SharedCluster, &bars, 8, Kind::Atomic));
        let file = if size == 8 { File::D } else { File::W };
        for l in lanes(p.shared & b.shared) {
            for k in 0..i.vec as usize {
                let v = cx.w.regs.wide(Reg { file, idx: i.list[3 + k] })[l];
                let off = k as u32 * size;
                let old = cx.read(&p, l, off, size);
                let signed = i.list[2] != 0;
                let new = match i.e {
                    0 => old.wrapping_add(v),
                    1 if signed && size == 4 => (old as i32).min(v as i32) as u64,
                    2 if signed && size == 4 => (old as i32).max(v as i32) as u64,
                    1 => old.min(v),
                    2 => old.max(v),
                    3 => old & v,
                    4 => old | v,
                    5 => old ^ v,
                    6 => {
                        if old >= v {
                            0
                        } else {
                            old + 1
                        }
                    }
                    7 => {
                        if old == 0 || old > v {
                            v
                        } else {
                            old - 1
                        }
                    }
                    _ => v,
                };
                cx.write(&p, l, off, size, new);
            }
            let at = ((b.at[l] >> 32) as u32, b.at[l] as u32);
            super::mbarrier::bytes_came(cx, l, at, size * u32::from(i.vec));
        }
        Flow::Next
    };
    Ok(())
}

pub(super) fn st_async(d: &mut Dec) -> R {
    remote(d, false)
}
pub(super) fn red_async(d: &mut Dec) -> R {
    remote(d, true)
}
