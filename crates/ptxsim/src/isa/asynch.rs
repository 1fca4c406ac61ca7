//! `cp.async` and its groups (§9.7.9.25.3).
//!
//! A copy is recorded when it is issued and done when the program has waited for it: memory really is unchanged until
//! then, and the checks report a read of it.

use super::data::cache;
use super::{Dec, Flow, Inst, NARROW_ADDRESS, NONE};
use crate::Error;
use crate::access::{Kind, Places};
use crate::ast::{Operand, Space, Ty};
use crate::machine::{Copy, Cx};
use crate::regs::{File, LANES, lanes};
use crate::report::FindingKind;

type R = Result<(), Error>;

/// The source address register is 32 bits wide.
const NARROW_SRC: u32 = 1;

pub(super) fn cp_async(d: &mut Dec) -> R {
    d.one_of(&[("ca", ()), ("cg", ())]);
    let dst_space = d.space();
    let src_space = d.space();
    cache(d);
    if dst_space != Space::Shared || src_space != Space::Global {
        return d.fail("`.shared.global` is wanted");
    }
    d.count(3..=5)?;
    let (src, src_off, _) = d.mem(1, Space::Global)?;
    let narrow_src = d.out.flags & NARROW_ADDRESS != 0;
    d.out.flags = 0;
    let (a, off, _) = d.mem(0, Space::Shared)?;
    if narrow_src {
        d.out.flags |= NARROW_SRC;
    }
    (d.out.a, d.out.imm, d.out.b) = (a, off, src);
    let Operand::Int(size) = d.operand(2)? else { return d.fail("the size must be a constant") };
    if !matches!(size, 4 | 8 | 16) {
        return d.fail(format!("the size must be 4, 8 or 16, not {size}"));
    }
    d.out.size = *size as u8;
    d.out.list = [src_off as u32, (src_off >> 32) as u32].into();
    if d.ins.operands.len() > 3 {
        match d.operand(3)? {
            // Fourth operand: bytes to take, or a predicate to ignore the source, or a cache policy.
            o @ (Operand::Int(_) | Operand::Not(_)) => {
                if let Operand::Int(_) = o {
                    d.out.c = d.src(3, Ty::U32)?;
                } else {
                    let (p, n) = d.pred(3)?;
                    d.out.e = p;
                    d.out.flags |= u32::from(n) << 1;
                }
            }
            o => match d.source_reg(o)? {
                Some(r) if r.file == File::W => d.out.c = r.idx,
                Some(r) if r.file == File::P => d.out.e = r.idx,
                Some(r) if r.file == File::D => {}
                _ => return d.fail("the fourth operand must be a size, a predicate or a cache policy"),
            },
        }
    }
    if d.ins.operands.len() > 4 {
        d.src(4, Ty::B64)?;
    }
    d.out.exec = issue;
    Ok(())
}

fn issue(cx: &mut Cx<'_>, i: &Inst) -> Flow {
    let size = u32::from(i.size);
    let dst = cx.addresses(i);
    let src_off = i64::from(i.list[0]) | i64::from(i.list[1]) << 32;
    let src = cx.address_of(i.b, src_off, i.flags & NARROW_SRC != 0);
    let mut take = [size; LANES];
    if i.c != NONE {
        take = cx.get::<u32>(i.c).map(|n| n.min(size));
    }
    if i.e != NONE {
        let ignore = cx.pred(i.e, i.flags & 2 != 0);
        for (l, t) in take.iter_mut().enumerate() {
            if ignore >> l & 1 != 0 {
                *t = 0;
            }
        }
    }
    let m = cx.mask;
    // The source is read only where bytes are taken from it. A partial copy still needs the address aligned.
    cx.mask = (0..LANES).fold(0, |x, l| x | u32::from(take[l] == size) << l) & m;
    let mut from = Places { at: src, host: 0, shared: 0, local: 0 };
    if cx.mask != 0 {
        from = cx.resolve(Space::Global, &src, size, Kind::Read);
    }
    for l in lanes(m & !cx.mask) {
        if take[l] != 0 && cx.grid.memory.find(src[l], take[l].into()).is_some() {
            from.host |= 1 << l;
        } else if take[l] != 0 {
            let what = format!("{} bytes at {:#x}, {}", take[l], src[l], cx.grid.memory.describe(src[l]));
            cx.find(FindingKind::GlobalBounds, l, Some(src[l]), what);
        }
    }
    cx.mask = m;
    let to = cx.resolve(Space::Shared, &dst, size, Kind::Write);
    for l in lanes(m) {
        if from.host >> l & 1 == 0 {
            take[l] = 0;
        }
    }
    crate::shadow::async_issue(cx, &to, size);
    let group = cx.w.group;
    let mut data = Box::new([[0; 16]; LANES]);
    for l in lanes(to.shared) {
        data[l] = source(src[l], take[l]);
    }
    cx.unit.effects += 1;
    cx.w.copies.push(Copy { mask: to.shared, group, dst: to.at, src, take, size, data });
    Flow::Next
}

/// What lies at an address of which so many bytes were found in a live allocation.
fn source(address: u64, bytes: u32) -> [u8; 16] {
    let mut b = [0u8; 16];
    for (k, b) in b.iter_mut().enumerate().take(bytes as usize) {
        // SAFETY: the caller's promise.
        *b = unsafe { crate::memory::read(address + k as u64, 1) } as u8;
    }
    b
}

/// Finishes the copies of the active lanes whose group is below the lane's limit.
pub(crate) fn finish(cx: &mut Cx<'_>, limit: [u32; LANES]) {
    let mut copies = std::mem::take(&mut cx.w.copies);
    for c in &mut copies {
        let mut ready = 0;
        for l in lanes(c.mask & cx.mask) {
            if c.group[l] < limit[l] {
                ready |= 1 << l;
            }
        }
        if ready == 0 {
            continue;
        }
        c.mask &= !ready;
        for l in lanes(ready) {
            let b = source(c.src[l], c.take[l]);
            if cx.grid.options.checks && b != c.data[l] {
                let place = cx.grid.memory.describe(c.src[l]);
                let m = format!(
                    "{place}: written while a `cp.async` reads {} bytes there, which may bring either",
                    c.take[l]
                );
                cx.find(FindingKind::GlobalRace, l, Some(c.src[l]), m);
            }
            let at = c.dst[l] as u32 as usize;
            let shared = &mut cx.unit.ctas[(c.dst[l] >> 32) as usize].shared;
            shared[at..at + c.size as usize].copy_from_slice(&b[..c.size as usize]);
        }
        crate::shadow::async_done(cx, &c.dst, ready, c.size);
    }
    copies.retain(|c| c.mask != 0);
    cx.w.copies = copies;
}

/// Lanes that exit have their copies done: nobody can wait for them any more.
pub(crate) fn finish_copies(cx: &mut Cx<'_>) {
    if !cx.w.copies.is_empty() {
        finish(cx, [u32::MAX; LANES]);
    }
    super::bulk::ends(cx);
    super::bulk::finish(cx, [u32::MAX; LANES], true);
}

pub(super) fn commit_group(d: &mut Dec) -> R {
    d.count(0..=0)?;
    d.out.exec = |cx, _| {
        for l in lanes(cx.mask) {
            cx.w.group[l] += 1;
        }
        Flow::Next
    };
    Ok(())
}

pub(super) fn wait_group(d: &mut Dec) -> R {
    d.count(1..=1)?;
    let Operand::Int(n) = d.operand(0)? else { return d.fail("the number of groups must be a constant") };
    d.out.imm = *n as i64;
    d.out.exec = |cx, i| {
        let n = i.imm as u32;
        let limit = cx.w.group.map(|g| g.saturating_sub(n));
        finish(cx, limit);
        Flow::Next
    };
    Ok(())
}

pub(super) fn wait_all(d: &mut Dec) -> R {
    d.count(0..=0)?;
    d.out.exec = |cx, _| {
        finish(cx, [u32::MAX; LANES]);
        Flow::Next
    };
    Ok(())
}
