//! Control flow, CTA barriers, fences and calls into the system (§9.7.12, §9.7.13.1, §9.7.13.4, §9.7.19).

use super::{Dec, Flow, Inst, NONE};
use crate::Error;
use crate::ast::{Operand, Ty};
use crate::barrier::BarrierOp;
use crate::machine::Cx;
use crate::regs::{File, lanes};
use crate::report::FindingKind;

type R = Result<(), Error>;

pub(crate) fn nop_exec(_: &mut Cx<'_>, _: &Inst) -> Flow {
    Flow::Next
}
pub(crate) fn bra_exec(_: &mut Cx<'_>, _: &Inst) -> Flow {
    Flow::Branch
}
pub(crate) fn exit_exec(_: &mut Cx<'_>, _: &Inst) -> Flow {
    Flow::Exit
}

pub(super) fn bra(d: &mut Dec) -> R {
    d.has("uni");
    d.count(1..=1)?;
    let Operand::Ident(l) = d.operand(0)? else { return d.fail("a label is wanted") };
    d.env.jumps.push(l.clone());
    d.out.exec = bra_exec;
    Ok(())
}

pub(super) fn brx(d: &mut Dec) -> R {
    d.has("uni");
    d.count(2..=2)?;
    d.out.a = d.src(0, Ty::U32)?;
    let Operand::Ident(t) = d.operand(1)? else { return d.fail("a table is wanted") };
    let Some(list) = d.env.tables.get(t).cloned() else {
        return d.fail(format!("`{t}` is not a `.branchtargets` list above"));
    };
    d.env.jumps = list;
    // The flattening fills `list` with the targets.
    d.out.exec = |cx, i| {
        let a = cx.get::<u32>(i.a);
        let mut t: Vec<(u32, u32)> = vec![];
        for l in lanes(cx.mask) {
            let Some(&pc) = i.list.get(a[l] as usize) else {
                let m = format!("index {} into a table of {} targets", a[l], i.list.len());
                cx.find(FindingKind::Trap, l, None, m);
                return Flow::Stop;
            };
            match t.iter_mut().find(|t| t.0 == pc) {
                Some(t) => t.1 |= 1 << l,
                None => t.push((pc, 1 << l)),
            }
        }
        let rest = cx.frag & !cx.mask;
        if rest != 0 {
            t.push((cx.pc + 1, rest));
        }
        cx.targets = t;
        Flow::Switch
    };
    Ok(())
}

pub(super) fn exit(d: &mut Dec) -> R {
    d.has("uni");
    d.count(0..=0)?;
    d.out.exec = exit_exec;
    Ok(())
}

pub(super) fn trap(d: &mut Dec) -> R {
    d.out.exec = |cx, _| {
        let l = cx.mask.trailing_zeros() as usize;
        cx.find(FindingKind::Trap, l, None, "the kernel traps".into());
        Flow::Stop
    };
    Ok(())
}

/// `tilewright.below.u32 a, n`, and `.u64`: the compiler relies on `a < n`.
pub(super) fn below(d: &mut Dec) -> R {
    let ty = d.ty()?;
    d.count(2..=2)?;
    d.out.a = d.src(0, ty)?;
    d.out.b = d.src(1, ty)?;
    d.out.exec = match ty {
        Ty::U32 => |cx, i| {
            let (a, n) = (cx.get::<u32>(i.a), cx.get::<u32>(i.b));
            let outside = lanes(cx.mask).find(|&l| a[l] >= n[l]);
            outside.map_or(Flow::Next, |l| not_below(cx, l, i64::from(a[l] as i32), n[l].into()))
        },
        Ty::U64 => |cx, i| {
            let (a, n) = (cx.get::<u64>(i.a), cx.get::<u64>(i.b));
            let outside = lanes(cx.mask).find(|&l| a[l] >= n[l]);
            outside.map_or(Flow::Next, |l| not_below(cx, l, a[l] as i64, n[l]))
        },
        _ => return Err(d.bad_type(ty)),
    };
    Ok(())
}

fn not_below(cx: &mut Cx, lane: usize, index: i64, limit: u64) -> Flow {
    let message = format!("index {index} is outside of 0 to {}", limit.wrapping_sub(1));
    cx.find(FindingKind::Index, lane, None, message);
    Flow::Stop
}

pub(super) fn nop(d: &mut Dec) -> R {
    while d.take(|_| Some(())).is_some() {}
    d.out.exec = nop_exec;
    Ok(())
}

/// `griddepcontrol` (§9.7.13.13): one grid runs, so there is none to wait for and none that may begin.
pub(super) fn griddepcontrol(d: &mut Dec) -> R {
    if !d.has("wait") && !d.has("launch_dependents") {
        return d.fail("`.wait` or `.launch_dependents` is wanted");
    }
    d.count(0..=0)?;
    d.out.exec = nop_exec;
    Ok(())
}

pub(super) fn nanosleep(d: &mut Dec) -> R {
    d.ty()?;
    d.src(0, Ty::U32)?;
    d.out.exec = |_, _| Flow::YieldNext;
    Ok(())
}

/// `bar`, `barrier`: sync, arrive and red.
pub(super) fn bar(d: &mut Dec) -> R {
    let old = d.ins.op == "bar";
    d.has("cta");
    let Some(what) = d.one_of(&[("sync", 0u32), ("arrive", 1), ("red", 2)]) else {
        return d.fail("`.sync`, `.arrive` or `.red` is wanted");
    };
    let aligned = d.has("aligned") || old;
    let mut k = 0;
    let mut red = 0;
    if what == 2 {
        let Some(op) = d.one_of(&[("and", 1u32), ("or", 2), ("popc", 3)]) else {
            return d.fail("`.popc`, `.and` or `.or` is wanted");
        };
        red = op;
        d.ty()?;
        d.out.d = d.dst(0, if op == 3 { File::W } else { File::P })?;
        k = 1;
    }
    d.out.a = d.src(k, Ty::U32)?;
    let n = d.ins.operands.len();
    let has_count = if what == 2 { n == 4 } else { n == 2 };
    if has_count {
        d.out.b = d.src(k + 1, Ty::U32)?;
    }
    if what == 2 {
        let (c, neg) = d.pred(n - 1)?;
        d.out.c = c;
        d.out.imm = neg.into();
    }
    if what == 1 && !has_count {
        return d.fail("`arrive` needs a thread count");
    }
    d.out.flags = what | red << 2 | u32::from(aligned) << 4;
    d.out.exec = |cx, i| {
        let first = cx.mask.trailing_zeros() as usize;
        let id = cx.w.regs.w[i.a as usize][first];
        let count = (i.b != NONE).then(|| cx.w.regs.w[i.b as usize][first]);
        if id > 15 {
            cx.find(FindingKind::ArriveCount, first, None, format!("there is no barrier {id}: a CTA has 16"));
            return Flow::Stop;
        }
        if let Some(c) = count
            && (c == 0 || !c.is_multiple_of(32))
        {
            let m = format!("a barrier's thread count must be a multiple of 32, not {c}");
            cx.find(FindingKind::ArriveCount, first, None, m);
            return Flow::Stop;
        }
        let pred = if i.c == NONE { 0 } else { cx.pred(i.c, i.imm != 0) & cx.mask };
        cx.barrier = Some(BarrierOp {
            id,
            count,
            arrive: i.flags & 3 == 1,
            aligned: i.flags >> 4 & 1 != 0,
            red: i.flags >> 2 & 3,
            pred,
            dst: i.d,
            cluster: false,
            relaxed: false,
        });
        Flow::Barrier
    };
    Ok(())
}

/// `membar` and `fence`, the proxy forms included.
pub(super) fn fence(d: &mut Dec) -> R {
    let proxy = d.has("proxy");
    let scope = d.one_of(&[("cta", 0u32), ("cluster", 1), ("gpu", 2), ("gl", 2), ("sys", 3)]).unwrap_or(2);
    // Which kind of fence: bits 0–1 scope, bit 2 proxy, bit 3 the async proxy, bit 4 mbarrier init, bit 5 shared memory only.
    let mut f = scope;
    if proxy {
        f |= 4;
        if d.take(|m| m.starts_with("async").then_some(())).is_some() {
            f |= 8;
        }
    }
    if d.has("mbarrier_init") {
        f |= 16;
    }
    if d.take(|m| m.starts_with("shared").then_some(())).is_some() {
        f |= 32;
    }
    while d.take(|_| Some(())).is_some() {}
    d.reads.clear();
    d.out.flags = f;
    d.out.exec = |cx, i| {
        if i.flags & 16 != 0 {
            cx.unit.mbar.fence(cx.w.sync.index, cx.mask);
        }
        crate::order::fence(cx, i.flags & 4 != 0, i.flags & 8 != 0, i.flags & 32 == 0);
        Flow::Next
    };
    Ok(())
}

/// Multiply-adds of a tensor instruction, for the counters; zero for anything else.
pub(crate) fn macs(_: &Inst, name: &str) -> u64 {
    if !["mma", "wmma.mma", "wgmma.mma_async"].iter().any(|p| name.starts_with(p)) {
        return 0;
    }
    name.split('.')
        .find_map(|p| {
            let (m, rest) = p.strip_prefix('m')?.split_once('n')?;
            let (n, k) = rest.split_once('k')?;
            Some(m.parse::<u64>().ok()? * n.parse::<u64>().ok()? * k.parse::<u64>().ok()?)
        })
        .unwrap_or(0)
}
