//! Bulk asynchronous copies, of bytes and of tensor boxes (§9.7.9.25.4–5).
//!
//! A copy that signals an mbarrier is queued there and done when the mbarrier is polled; one in a bulk group is done
//! when its thread waits for the group. The asynchronous proxy is an *agent* with an entry of its own in the clocks, so
//! that ordinary rules of order say who may touch what when.

use super::data::cache;
use super::{Dec, Flow, Inst, NARROW_ADDRESS, NONE};
use crate::Error;
use crate::access::{Kind, Places};
use crate::ast::{Operand, Space, Ty};
use crate::clock::{Clock, Sync};
use crate::machine::Cx;
use crate::regs::{LANES, Reg, lanes};
use crate::report::FindingKind;
use crate::shadow::Agent;
use crate::tensor_map::TensorMap;
use std::sync::Arc;

type R = Result<(), Error>;

/// A place in shared memory: CTA rank and offset.
type At = (u32, u32);

/// Whose access to global memory a copy's is: that of an agent, over for those who know its stamp, or of the lane that issues it.
type By = Option<(Agent, u32)>;

/// A copy to do.
#[derive(Clone, Debug)]
pub(crate) enum Job {
    Load { dst: At, src: u64, bytes: u32 },
    Shared { dst: At, src: At, bytes: u32, red: Option<(u32, Ty)> },
    TensorLoad { dst: At, map: Arc<TensorMap>, coords: Vec<i32> },
    Store { src: At, dst: u64, bytes: u32, red: Option<(u32, Ty)> },
    TensorStore { src: At, map: Arc<TensorMap>, coords: Vec<i32>, red: Option<(u32, Ty)> },
}

impl Job {
    /// Bytes it signals.
    pub fn bytes(&self) -> u32 {
        match self {
            Job::Load { bytes, .. } | Job::Shared { bytes, .. } | Job::Store { bytes, .. } => *bytes,
            Job::TensorLoad { map, .. } | Job::TensorStore { map, .. } => map.box_bytes(),
        }
    }

    /// Bytes of shared memory from its first to its last.
    fn footprint(&self) -> u32 {
        match self {
            Job::TensorLoad { map, .. } | Job::TensorStore { map, .. } => map.footprint(),
            _ => self.bytes(),
        }
    }
}

/// Bulk stores of a lane that nobody has waited for.
pub(crate) struct Pending {
    pub lane: usize,
    pub group: u32,
    pub job: Job,
    pub stamp: u32,
    /// Whether it has been waited for with `.read`: what is left is that others see what it has written.
    pub read: bool,
    /// What its warp knew when it was issued.
    pub issued: Box<Sync>,
}

const RED_OPS: [(&str, u32); 8] =
    [("add", 0), ("min", 1), ("max", 2), ("inc", 3), ("dec", 4), ("and", 5), ("or", 6), ("xor", 7)];

/// What a copy to global memory does there.
fn stores(red: Option<(u32, Ty)>) -> Kind {
    if red.is_some() { Kind::CopyReduce } else { Kind::CopyWrite }
}

fn reduce(op: u32, ty: Ty, a: u64, b: u64) -> u64 {
    const NAMES: [super::atomic::Op; 8] = [
        super::atomic::Op::Add,
        super::atomic::Op::Min,
        super::atomic::Op::Max,
        super::atomic::Op::Inc,
        super::atomic::Op::Dec,
        super::atomic::Op::And,
        super::atomic::Op::Or,
        super::atomic::Op::Xor,
    ];
    super::atomic::apply(NAMES[op as usize & 7], ty, a, b, 0)
}

/// Does a copy. All places were checked when it was issued.
pub(crate) fn perform(cx: &mut Cx<'_>, j: &Job, agent: Agent, stamp: u32) {
    cx.unit.effects += 1;
    if let Job::Load { dst, .. } | Job::Shared { dst, .. } | Job::TensorLoad { dst, .. } = j {
        // What tensor copies put here is gone.
        let (from, to) = (dst.1, dst.1 + j.footprint());
        cx.unit.ctas[dst.0 as usize].tensors.retain(|&(at, n, _)| at + n <= from || at >= to);
    }
    match j {
        Job::Load { dst, src, bytes } => {
            let mut b = vec![0u8; *bytes as usize];
            for (k, b) in b.iter_mut().enumerate() {
                // SAFETY: the range was found in a live allocation when the copy was issued.
                *b = unsafe { crate::memory::read(src + k as u64, 1) } as u8;
            }
            cx.unit.ctas[dst.0 as usize].shared[dst.1 as usize..(dst.1 + bytes) as usize].copy_from_slice(&b);
            crate::shadow::agent_done(cx, *dst, *bytes, agent, stamp);
        }
        Job::Shared { dst, src, bytes, red } => {
            let n = *bytes as usize;
            let mut b = cx.unit.ctas[src.0 as usize].shared[src.1 as usize..src.1 as usize + n].to_vec();
            if let Some((op, ty)) = *red {
                let old = &cx.unit.ctas[dst.0 as usize].shared;
                for k in (0..n).step_by(ty.bytes() as usize) {
                    let a = crate::access::read_bytes(old, dst.1 as usize + k, ty.bytes());
                    let v = crate::access::read_bytes(&b, k, ty.bytes());
                    crate::access::write_bytes(&mut b, k, ty.bytes(), reduce(op, ty, a, v));
                }
            }
            cx.unit.ctas[dst.0 as usize].shared[dst.1 as usize..dst.1 as usize + n].copy_from_slice(&b);
            crate::shadow::agent_done(cx, *dst, *bytes, agent, stamp);
        }
        Job::TensorLoad { dst, map, coords } => {
            let cta = &mut cx.unit.ctas[dst.0 as usize];
            cta.tensors.push((dst.1, map.footprint(), map.swizzle));
            let shared = &mut cta.shared;
            let es = map.element.bytes();
            map.each(coords, false, |off, addr| {
                let at = map.swizzle.apply(dst.1 + off) as usize;
                let v = match addr {
                    // SAFETY: the rows were found in a live allocation when the copy was issued.
                    Some(a) => unsafe { crate::memory::read(a, es) },
                    None if map.nan_fill => map.element.nan(),
                    None => 0,
                };
                if at + es as usize <= shared.len() {
                    crate::access::write_bytes(shared, at, es, v);
                }
            });
            crate::shadow::agent_done(cx, *dst, map.footprint(), agent, stamp);
        }
        Job::Store { src, dst, bytes, red } => {
            let shared = &cx.unit.ctas[src.0 as usize].shared;
            let step = red.map_or(1, |r| r.1.bytes());
            for k in (0..*bytes).step_by(step as usize) {
                let v = crate::access::read_bytes(shared, (src.1 + k) as usize, step);
                put(dst + u64::from(k), step, v, *red);
            }
        }
        Job::TensorStore { src, map, coords, red } => {
            let shared = &cx.unit.ctas[src.0 as usize].shared;
            let es = map.element.bytes();
            map.each(coords, true, |off, addr| {
                let at = map.swizzle.apply(src.1 + off) as usize;
                if let Some(a) = addr
                    && at + es as usize <= shared.len()
                {
                    put(a, es, crate::access::read_bytes(shared, at, es), *red);
                }
            });
        }
    }
}

fn put(addr: u64, size: u32, v: u64, red: Option<(u32, Ty)>) {
    // SAFETY: the range was found in a live writable allocation when the copy was issued; addresses are multiples of
    // the element's size.
    unsafe {
        match red {
            None => crate::memory::write(addr, size, v),
            Some((op, ty)) => {
                crate::memory::update(addr, size, |a| reduce(op, ty, a, v));
            }
        }
    }
}

/// Lane's place of an address in shared memory.
fn at(p: &Places, l: usize) -> At {
    ((p.at[l] >> 32) as u32, p.at[l] as u32)
}

/// Checks `[dst, dst + n)` of shared memory and gives its place.
fn window(cx: &mut Cx<'_>, l: usize, addr: u64, n: u32, align: u32, shared: bool) -> Option<At> {
    let mut v = [0u64; LANES];
    v[l] = addr;
    let all = cx.mask;
    cx.mask = 1 << l;
    let space = if shared { Space::SharedCluster } else { Space::Generic };
    let p = cx.untracked(|cx| cx.resolve(space, &v, 1, Kind::Read));
    cx.mask = all;
    if p.shared == 0 {
        return None;
    }
    let (rank, off) = at(&p, l);
    let size = cx.grid.shared_bytes;
    if off % align != 0 {
        let m = format!("a bulk copy's shared offset {off} is not a multiple of {align}");
        cx.find(FindingKind::Misaligned, l, Some(off.into()), m);
        return None;
    }
    if u64::from(off) + u64::from(n) > size.into() {
        let m = format!("{n} bytes at offset {off} of a window of {size} bytes");
        cx.find(FindingKind::SharedBounds, l, Some(off.into()), m);
        return None;
    }
    Some((rank, off))
}

/// Checks a range of global memory, for bounds and races.
fn global(cx: &mut Cx<'_>, l: usize, addr: u64, n: u64, kind: Kind, by: By) -> bool {
    let memory = cx.grid.memory;
    let ok = memory.find(addr, n).is_some_and(|k| memory.allocations()[k].writable || !kind.writes());
    if !ok {
        let m = format!("a bulk copy of {n} bytes at {addr:#x}, {}", memory.describe(addr));
        cx.find(FindingKind::GlobalBounds, l, Some(addr), m);
        return false;
    }
    record(cx, l, addr, n, kind, by);
    let st = &mut cx.unit.stats[cx.pc as usize];
    let sectors = ((addr + n - 1) >> 5) - (addr >> 5) + 1;
    st.sectors += sectors;
    st.sectors_min += n.div_ceil(32);
    st.global_bytes += n;
    true
}

/// Checks a range of global memory for races.
fn record(cx: &mut Cx<'_>, l: usize, addr: u64, n: u64, kind: Kind, by: By) {
    if !cx.grid.options.checks {
        return;
    }
    let mut k = 0;
    while k < n {
        let a = addr + k;
        let step = if a.is_multiple_of(16) && n - k >= 16 { 16 } else { 1 };
        let mut p = Places { at: [0; LANES], host: 1 << l, shared: 0, local: 0 };
        p.at[l] = a;
        crate::shadow::global(cx, &p, step as u32, kind, by);
        k += step;
    }
    crate::shadow::settle_all(cx);
}

/// Checks the rows of a box that lie in the tensor.
fn tensor_rows(cx: &mut Cx<'_>, l: usize, map: &TensorMap, coords: &[i32], kind: Kind, by: By) -> bool {
    rows(map, coords, kind).into_iter().all(|(a, n)| global(cx, l, a, n, kind, by))
}

/// The rows of a box that lie in the tensor: where they begin, and their bytes.
fn rows(map: &TensorMap, coords: &[i32], kind: Kind) -> Vec<(u64, u64)> {
    let mut rows: Vec<(u64, u64)> = vec![];
    let es = u64::from(map.element.bytes());
    map.each(coords, kind.writes(), |_, a| {
        if let Some(a) = a {
            match rows.last_mut() {
                Some((s, n)) if *s + *n == a => *n += es,
                _ => rows.push((a, es)),
            }
        }
    });
    rows
}

fn tensor_map(cx: &mut Cx<'_>, l: usize, addr: u64) -> Option<Arc<TensorMap>> {
    let mut b = [0u8; 128];
    if cx.grid.memory.find(addr, 128).is_some() && addr.is_multiple_of(64) {
        for (k, b) in b.iter_mut().enumerate() {
            // SAFETY: just found in a live allocation.
            *b = unsafe { crate::memory::read(addr + k as u64, 1) } as u8;
        }
        if let Some(m) = TensorMap::decode(&b) {
            return Some(Arc::new(m));
        }
    }
    let m = format!("there is no tensor map at {addr:#x}, {}", cx.grid.memory.describe(addr));
    cx.find(FindingKind::Descriptor, l, Some(addr), m);
    None
}

/// Where operands of a bulk copy are: registers with offsets.
struct Parts {
    /// Register, offset, and flags: bit 0 it has 32 bits, bit 1 it is in shared space.
    mem: Vec<(u32, i64, u32)>,
}

fn mem(d: &mut Dec, p: &mut Parts, k: usize, space: Space) -> R {
    d.out.flags &= !NARROW_ADDRESS;
    let (r, off, space) = d.mem(k, space)?;
    let shared = matches!(space, Space::Shared | Space::SharedCluster);
    p.mem.push((r, off, u32::from(d.out.flags & NARROW_ADDRESS != 0) | u32::from(shared) << 1));
    d.out.flags &= !NARROW_ADDRESS;
    Ok(())
}

/// What a decoded bulk copy holds in its register list, by position.
mod slot {
    /// Memory operands: register, offset, flags; three entries each.
    pub const DST: usize = 0;
    pub const SRC: usize = 3;
    pub const BAR: usize = 6;
    pub const SIZE: usize = 9;
    pub const MASK: usize = 10;
    pub const RED: usize = 11;
    pub const RED_TY: usize = 12;
    pub const RANK: usize = 13;
    pub const COORDS: usize = 14;
}

const TO_GLOBAL: u32 = 1;
const FROM_SHARED: u32 = 2;
const TENSOR: u32 = 4;

const RED_TYPES: [Ty; 9] = [Ty::U32, Ty::S32, Ty::U64, Ty::S64, Ty::F16, Ty::BF16, Ty::F32, Ty::F64, Ty::B32];

fn decode(d: &mut Dec, tensor: bool, red: bool) -> R {
    let dims = if tensor {
        let Some(n) = d.one_of(&[("1d", 1u32), ("2d", 2), ("3d", 3), ("4d", 4), ("5d", 5)]) else {
            return d.fail("the number of dimensions is missing");
        };
        n
    } else {
        0
    };
    let dst = d.space();
    let src = d.space();
    d.has("tile");
    if d.ins.mods.iter().any(|m| m.starts_with("im2col") || m.starts_with("tile::")) {
        return d.fail("not supported yet: modes other than `.tile`");
    }
    let bar = d.take(|m| m.starts_with("mbarrier::complete_tx").then_some(())).is_some();
    let group = d.has("bulk_group");
    let multicast = d.has("multicast::cluster");
    let mut list = vec![NONE; slot::COORDS];
    if red {
        let Some(op) = d.one_of(&RED_OPS) else { return d.fail("the operation is missing") };
        d.has("noftz");
        list[slot::RED] = op;
        if !tensor {
            let ty = d.ty()?;
            let ty = match ty {
                Ty::B32 => Ty::U32,
                Ty::B64 => Ty::U64,
                t => t,
            };
            let Some(n) = RED_TYPES.iter().position(|&t| t == ty) else { return Err(d.bad_type(ty)) };
            list[slot::RED_TY] = n as u32;
        }
    }
    cache(d);
    let to_global = dst == Space::Global;
    if to_global == bar || (to_global && !group) {
        return d
            .fail("a copy to shared memory signals an mbarrier, one to global memory is in a bulk group");
    }
    let mut p = Parts { mem: vec![] };
    let mut k;
    let coords: &[Operand];
    let tensor_at = if to_global { 0 } else { 1 };
    if tensor {
        let Operand::Mem { coords: c, .. } = d.operand(tensor_at)? else {
            return d.fail("a tensor is wanted");
        };
        if c.len() != dims as usize {
            return d.fail(format!("{} coordinates for {dims} dimensions", c.len()));
        }
        coords = c;
        mem(d, &mut p, 0, if to_global { Space::Generic } else { dst })?;
        mem(d, &mut p, 1, if to_global { src } else { Space::Generic })?;
        k = 2;
    } else {
        coords = &[];
        mem(d, &mut p, 0, dst)?;
        mem(d, &mut p, 1, src)?;
        list[slot::SIZE] = d.src(2, Ty::U32)?;
        k = 3;
    }
    if bar {
        mem(d, &mut p, k, Space::SharedCluster)?;
        k += 1;
    }
    if multicast {
        list[slot::MASK] = d.src(k, Ty::U16)?;
        k += 1;
    }
    // A cache policy may follow.
    d.count(k..=k + 1)?;
    for (n, (r, off, narrow)) in p.mem.iter().enumerate() {
        list[3 * n] = *r;
        list[3 * n + 1] = *off as u32;
        list[3 * n + 2] = *narrow;
    }
    list[slot::RANK] = dims;
    for c in coords {
        list.push(d.src_op(c, Ty::S32)?);
    }
    d.out.list = list.into();
    d.out.flags = if to_global { TO_GLOBAL } else { 0 }
        | if matches!(src, Space::Shared | Space::SharedCluster) { FROM_SHARED } else { 0 }
        | if tensor { TENSOR } else { 0 };
    d.out.exec = exec;
    Ok(())
}

pub(super) fn copy(d: &mut Dec) -> R {
    decode(d, false, false)
}
pub(super) fn copy_tensor(d: &mut Dec) -> R {
    decode(d, true, false)
}
pub(super) fn reduce_bulk(d: &mut Dec) -> R {
    decode(d, false, true)
}
pub(super) fn reduce_tensor(d: &mut Dec) -> R {
    decode(d, true, true)
}

/// One lane's address in a slot, and whether it is in shared space.
fn lane(cx: &Cx<'_>, i: &Inst, s: usize, l: usize) -> (u64, bool) {
    let narrow = i.list[s + 2] & 1 != 0;
    let shared = i.list[s + 2] & 2 != 0;
    let off = i64::from(i.list[s + 1] as i32);
    let file = if narrow { crate::regs::File::W } else { crate::regs::File::D };
    let v = cx.w.regs.lane(Reg { file, idx: i.list[s] }, l);
    (if narrow { u64::from((v as u32).wrapping_add(off as u32)) } else { v.wrapping_add(off as u64) }, shared)
}

fn exec(cx: &mut Cx<'_>, i: &Inst) -> Flow {
    for l in lanes(cx.mask) {
        issue(cx, i, l);
    }
    Flow::Next
}

/// A copy that a lane asks for.
struct Request {
    lane: usize,
    /// That of a box of a tensor: its map, and where the box begins.
    tensor: Option<(Arc<TensorMap>, Vec<i32>)>,
    /// Bytes that it occupies in shared memory.
    bytes: u32,
    red: Option<(u32, Ty)>,
}

impl Request {
    /// What the offset in shared memory must be a multiple of.
    fn align(&self) -> u32 {
        if self.tensor.is_some() { 128 } else { 16 }
    }

    /// Checks what it touches of global memory: what the box has of the tensor, or all bytes from `addr` on.
    fn global(&self, cx: &mut Cx<'_>, addr: u64, kind: Kind, by: By) -> bool {
        let l = self.lane;
        if let Some((map, coords)) = &self.tensor {
            return tensor_rows(cx, l, map, coords, kind, by);
        }
        if !addr.is_multiple_of(16) {
            let m = format!("{addr:#x} is not a multiple of 16");
            cx.find(FindingKind::Misaligned, l, Some(addr), m);
            return false;
        }
        global(cx, l, addr, self.bytes.into(), kind, by)
    }
}

fn issue(cx: &mut Cx<'_>, i: &Inst, l: usize) -> Option<()> {
    let tensor = if i.flags & TENSOR != 0 { Some(tensor_box(cx, i, l)?) } else { None };
    let bytes = match &tensor {
        Some((map, _)) => map.box_bytes(),
        None => cx.w.regs.w[i.list[slot::SIZE] as usize][l],
    };
    if bytes % 16 != 0 {
        let m = format!("a bulk copy of {bytes} bytes: the size must be a multiple of 16");
        cx.find(FindingKind::Misaligned, l, None, m);
        return None;
    }
    // Gaps between narrow rows of a swizzled box are occupied, too.
    let bytes = tensor.as_ref().map_or(bytes, |(map, _)| map.footprint());
    let red = (i.list[slot::RED] != NONE).then(|| {
        let ty = match &tensor {
            Some((map, _)) => map.element.ty(),
            None => RED_TYPES[i.list[slot::RED_TY] as usize],
        };
        (i.list[slot::RED], ty)
    });
    let request = Request { lane: l, tensor, bytes, red };
    if i.flags & TO_GLOBAL != 0 { issue_to_global(cx, i, request) } else { issue_to_shared(cx, i, request) }
}

/// The tensor map of a lane's copy and the coordinates of its box, checked.
fn tensor_box(cx: &mut Cx<'_>, i: &Inst, l: usize) -> Option<(Arc<TensorMap>, Vec<i32>)> {
    let to_global = i.flags & TO_GLOBAL != 0;
    let (addr, _) = lane(cx, i, if to_global { slot::DST } else { slot::SRC }, l);
    let coords: Vec<i32> =
        i.list[slot::COORDS..].iter().map(|&r| cx.w.regs.w[r as usize][l] as i32).collect();
    let map = tensor_map(cx, l, addr)?;
    if map.dims.len() != coords.len() {
        let text = format!("{} coordinates into a tensor of {} dimensions", coords.len(), map.dims.len());
        cx.find(FindingKind::Descriptor, l, None, text);
        return None;
    }
    let first = i64::from(coords[0]) * i64::from(map.element.bytes());
    if first % 16 != 0 {
        let text = format!(
            "the box begins {first} bytes into a row: that must be a multiple of 16 (an H100 takes it for an illegal \
             instruction)"
        );
        cx.find(FindingKind::Misaligned, l, None, text);
        return None;
    }
    if to_global && coords.iter().any(|&c| c < 0) {
        let text =
            format!("a store to {coords:?}: an H100 takes a negative coordinate for an illegal instruction");
        cx.find(FindingKind::GlobalBounds, l, None, text);
        return None;
    }
    Some((map, coords))
}

/// Issues a copy to global memory, which its thread waits for.
fn issue_to_global(cx: &mut Cx<'_>, i: &Inst, request: Request) -> Option<()> {
    let l = request.lane;
    let (dst, _) = lane(cx, i, slot::DST, l);
    let (src, src_shared) = lane(cx, i, slot::SRC, l);
    let src = window(cx, l, src, request.bytes, request.align(), src_shared)?;
    cx.w.bulk_stamp += 1;
    let (agent, stamp) = (Agent::Bulk(cx.w.sync.index), cx.w.bulk_stamp);
    crate::shadow::agent_read(cx, l, src, request.bytes, agent, stamp);
    let kind = stores(request.red);
    if !request.global(cx, dst, kind, Some((Agent::BulkWrites(cx.w.sync.index), stamp))) {
        return None;
    }
    let Request { tensor, bytes, red, .. } = request;
    let job = match tensor {
        Some((map, coords)) => Job::TensorStore { src, map, coords, red },
        None => Job::Store { src, dst, bytes, red },
    };
    let group = cx.w.bulk_group[l];
    let issued = Box::new(if cx.grid.options.checks { cx.w.sync.clone() } else { Sync::default() });
    cx.w.bulk.push(Pending { lane: l, group, job, stamp, read: false, issued });
    cx.unit.effects += 1;
    Some(())
}

/// Issues a copy to shared memory, which signals an mbarrier.
fn issue_to_shared(cx: &mut Cx<'_>, i: &Inst, request: Request) -> Option<()> {
    let l = request.lane;
    let (dst, dst_shared) = lane(cx, i, slot::DST, l);
    let (src, src_shared) = lane(cx, i, slot::SRC, l);
    let (bar, bar_shared) = lane(cx, i, slot::BAR, l);
    let bar = window(cx, l, bar, 8, 8, bar_shared)?;
    let to = window(cx, l, dst, request.bytes, request.align(), dst_shared)?;
    let from = if i.flags & FROM_SHARED != 0 {
        if cx.unit.ctas.len() == 1 {
            let text = "a copy between shared memories in a launch without clusters (an H100 takes it for an illegal \
                        instruction): launch clusters of two CTAs or more";
            cx.find(FindingKind::SharedBounds, l, Some(dst), text.into());
            return None;
        }
        let from = window(cx, l, src, request.bytes, request.align(), src_shared)?;
        let (agent, stamp) = signal(cx, l, bar)?;
        crate::shadow::agent_read(cx, l, from, request.bytes, agent, stamp);
        Some(from)
    } else {
        // It reads until what it signals is told.
        let b = cx.unit.mbar.get(bar.0, bar.1);
        let by = b.map(|b| (Agent::Mbar(b.agent), b.stamp + 1));
        if !request.global(cx, src, Kind::CopyRead, by) {
            return None;
        }
        None
    };
    let Request { tensor, bytes, red, .. } = request;
    // Multicast goes to the same offset, and signals the mbarrier at the same offset, of each CTA in the mask.
    let ctas: Vec<u32> = if i.list[slot::MASK] == NONE {
        vec![to.0]
    } else {
        let m = cx.w.regs.h[i.list[slot::MASK] as usize][l];
        (0..cx.unit.ctas.len() as u32).filter(|r| m >> r & 1 != 0).collect()
    };
    for r in ctas {
        let dst = (r, to.1);
        let bar = if i.list[slot::MASK] == NONE { bar } else { (r, bar.1) };
        let (agent, stamp) = signal(cx, l, bar)?;
        crate::shadow::agent_write(cx, l, dst, bytes, agent, stamp);
        let job = match (&tensor, from) {
            (Some((map, coords)), _) => Job::TensorLoad { dst, map: map.clone(), coords: coords.clone() },
            (None, Some(src)) => Job::Shared { dst, src, bytes, red },
            (None, None) => Job::Load { dst, src, bytes },
        };
        if let Some(b) = cx.unit.mbar.get(bar.0, bar.1) {
            b.jobs.push((job, stamp));
        }
    }
    cx.unit.effect();
    Some(())
}

/// What signals an mbarrier once more: the agent that the copies of this mbarrier are, and its stamp.
fn signal(cx: &mut Cx<'_>, l: usize, bar: At) -> Option<(Agent, u32)> {
    let Some(b) = cx.unit.mbar.get(bar.0, bar.1) else {
        let m = format!("there is no mbarrier at shared offset {}", bar.1);
        cx.find(FindingKind::ArriveCount, l, Some(bar.1.into()), m);
        return None;
    };
    b.stamp += 1;
    let of = (Agent::Mbar(b.agent), b.stamp);
    super::mbarrier::seen_by_proxy(cx, l, bar);
    Some(of)
}

/// `cp.async.bulk.prefetch…`: moves nothing that can be seen.
pub(super) fn prefetch(d: &mut Dec) -> R {
    while d.take(|_| Some(())).is_some() {}
    d.out.exec = super::control::nop_exec;
    Ok(())
}

pub(super) fn commit(d: &mut Dec) -> R {
    d.count(0..=0)?;
    d.out.exec = |cx, _| {
        for l in lanes(cx.mask) {
            cx.w.bulk_group[l] += 1;
        }
        Flow::Next
    };
    Ok(())
}

pub(super) fn wait(d: &mut Dec) -> R {
    d.out.flags = u32::from(d.has("read"));
    d.count(1..=1)?;
    let Operand::Int(n) = d.operand(0)? else { return d.fail("the number of groups must be a constant") };
    d.out.imm = *n as i64;
    d.out.exec = |cx, i| {
        let limit = cx.w.bulk_group.map(|g| g.saturating_sub(i.imm as u32));
        finish(cx, limit, i.flags != 0);
        Flow::Next
    };
    Ok(())
}

/// The active lanes end: the CTA's shared memory may be gone before copies that they have not waited for have read it, or
/// before copies that signal an mbarrier have written it.
pub(crate) fn ends(cx: &mut Cx<'_>) {
    if !cx.grid.options.checks {
        return;
    }
    if let Some(p) = cx.w.bulk.iter().find(|p| !p.read && cx.mask >> p.lane & 1 != 0) {
        let m = "the thread ends, and a bulk copy that it made from shared memory was not waited for".into();
        cx.find(FindingKind::AsyncBeforeWait, p.lane, None, m);
    }
    let last = cx.w.live & !cx.mask == 0 && cx.unit.warps.iter().flatten().all(|w| w.done);
    if last && let Some((rank, at)) = cx.unit.mbar.in_flight() {
        let m = format!(
            "the last thread ends, and a bulk copy that signals the mbarrier at shared offset {at} of CTA rank {rank} was \
             not waited for"
        );
        cx.find(FindingKind::AsyncBeforeWait, cx.mask.trailing_zeros() as usize % LANES, None, m);
    }
}

/// A copy to global memory writes until it completes. Who has read that meanwhile is ordered with neither its issue nor its end, though something
/// may have been sent between them.
fn complete(cx: &mut Cx<'_>, p: &mut Pending) {
    let by = Some((Agent::BulkWrites(cx.w.sync.index), p.stamp));
    std::mem::swap(&mut cx.w.sync, &mut p.issued);
    match &p.job {
        Job::TensorStore { map, coords, red, .. } => {
            for (addr, n) in rows(map, coords, stores(*red)) {
                record(cx, p.lane, addr, n, stores(*red), by);
            }
        }
        Job::Store { dst, bytes, red, .. } => record(cx, p.lane, *dst, (*bytes).into(), stores(*red), by),
        _ => {}
    }
    std::mem::swap(&mut cx.w.sync, &mut p.issued);
}

/// Does the bulk stores of the active lanes whose group is below the lane's limit. Their lanes know that they have read, or that all is done.
pub(crate) fn finish(cx: &mut Cx<'_>, limit: [u32; LANES], only_read: bool) {
    if cx.w.bulk.is_empty() {
        return;
    }
    let mask = cx.mask;
    let (done, left): (Vec<Pending>, Vec<Pending>) = std::mem::take(&mut cx.w.bulk)
        .into_iter()
        .partition(|p| mask >> p.lane & 1 != 0 && p.group < limit[p.lane] && !(only_read && p.read));
    cx.w.bulk = left;
    for mut p in done {
        if !p.read {
            p.read = true;
            let agent = Agent::Bulk(cx.w.sync.index);
            perform(cx, &p.job, agent, p.stamp);
            waited_for(cx, &p, agent);
        }
        if !only_read {
            complete(cx, &mut p);
            waited_for(cx, &p, Agent::BulkWrites(cx.w.sync.index));
        } else if cx.grid.options.checks {
            cx.w.bulk.push(p);
        }
    }
}

/// What an agent of a copy has done, is ordered before what its lane does from now on.
fn waited_for(cx: &mut Cx<'_>, p: &Pending, agent: Agent) {
    if cx.grid.options.checks {
        let mut c = Clock::default();
        c.completed(agent.party(cx.unit.warps.len() as u32), p.stamp);
        cx.w.sync.acquire(1 << p.lane, cx.w.live, &c);
    }
}
