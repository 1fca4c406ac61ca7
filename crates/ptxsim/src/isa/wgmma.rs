//! Warp-group matrix multiply (§9.7.15).
//!
//! Each warp of the group owns 16 of the 64 rows, so the four need nothing of each other: a warp computes its rows
//! when it executes the instruction. Results are in the registers at once, but the registers count as unwritten until
//! `wgmma.wait_group`, so that an access before it is reported. Shared memory is read by the asynchronous proxy, all of A
//! and B for each warp, from the instruction to the warp's own wait ([`Agent::Wgmma`]): that a warp needs only its rows of A
//! is how this simulator and perhaps a GPU works, not what the ISA says.

use super::{Dec, Flow, Inst, NONE, Uninit};
use crate::Error;
use crate::ast::{Operand, Ty};
use crate::fp::*;
use crate::machine::Cx;
use crate::regs::{File, LANES, Reg};
use crate::report::FindingKind;
use crate::shadow::Agent;
use crate::tensor_map::Swizzle;
use std::collections::HashMap;

type R = Result<(), Error>;

const TYPES: [Ty; 9] = [Ty::F16, Ty::BF16, Ty::TF32, Ty::E4M3, Ty::E5M2, Ty::S8, Ty::U8, Ty::F32, Ty::S32];

fn number(d: &Dec, t: Ty) -> Result<u32, Error> {
    TYPES.iter().position(|&x| x == t).map(|k| k as u32).ok_or_else(|| d.bad_type(t))
}

/// Which of a warp's registers and of its reads are in flight. Registers go by their tracked numbers.
#[derive(Default)]
pub(crate) struct Wgmma {
    /// The open group.
    group: u32,
    /// Registers in flight with the group that ends it: accumulators, and A.
    held: Vec<(u32, u32)>,
    inputs: Vec<(u32, u32)>,
    /// Stamps of reads of shared memory, by group; the last stamp.
    reads: Vec<(u32, u32)>,
    stamp: u32,
    /// `wgmma.fence`s so far.
    fences: u32,
    /// How many there were when a register was last written, and by whom.
    written: Vec<(u32, By)>,
    /// Warp-group instructions executed.
    aligned: u32,
    /// Registers a thread has by the last `setmaxnreg`; zero before the first.
    registers: u32,
    /// How many more it waits for.
    wants: u32,
}

/// Who wrote a register.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum By {
    #[default]
    Other,
    /// A `wgmma` with accumulators of this shape.
    Wgmma { n: u32, f16: bool },
}

impl Wgmma {
    pub fn new(tracked: u32) -> Wgmma {
        Wgmma { written: vec![Default::default(); tracked as usize], ..Wgmma::default() }
    }

    /// Registers a thread that `setmaxnreg.inc` waits for.
    pub fn wants(&self) -> u32 {
        self.wants
    }

    /// What is wrong with an instruction that uses these registers now.
    pub fn trespass(&self, u: &Uninit) -> Option<&'static str> {
        if self.held.is_empty() {
            return None;
        }
        let in_flight = |v: &[(u32, u32)], r: &u32| v.iter().any(|h| h.0 == *r);
        if u.reads.iter().chain(&u.writes).any(|r| in_flight(&self.held, r)) {
            return Some("uses an accumulator of a `wgmma` that was not waited for");
        }
        let others = u.writes.iter().chain(u.reads.iter().filter(|_| u.hold.is_empty()));
        if others.chain(&u.hold).any(|r| in_flight(&self.inputs, r)) {
            return Some("uses a register that is matrix A of a `wgmma` that was not waited for");
        }
        None
    }

    /// An instruction that is no `wgmma` writes registers. A copy is as well ordered as what it copies: the assembler makes
    /// one register of the two, and code generators leave such copies between the fence and the multiply.
    pub fn written(&mut self, u: &Uninit) {
        let now = (self.fences, By::Other);
        match u.parts.as_ref().filter(|_| u.copy) {
            None => u.writes.iter().for_each(|&w| self.written[w as usize] = now),
            Some(pairs) => {
                for (to, from) in pairs {
                    let of = from
                        .iter()
                        .map(|&r| self.written[r as usize])
                        .max_by_key(|x| (x.0, x.1 == By::Other));
                    self.written[*to as usize] = of.unwrap_or(now);
                }
            }
        }
    }

    /// Whether a `wgmma.fence` is missing before a multiply with accumulators of shape `by`.
    fn unfenced(&self, u: &Uninit, by: By) -> Option<&'static str> {
        let now = |r: &u32| {
            let (f, who) = self.written[*r as usize];
            (f == self.fences).then_some(who)
        };
        if self.fences == 0 {
            return Some("no `wgmma.fence` comes before the first `wgmma`");
        }
        // Multiplies of one shape into the same accumulators are in order (§9.7.15.7.1).
        if u.hold.iter().filter_map(now).any(|w| w == By::Other) {
            return Some("an accumulator was written with no `wgmma.fence` since");
        }
        if u.hold.iter().filter_map(now).any(|w| w != by) {
            return Some("a `wgmma` of another shape wrote the accumulators with no `wgmma.fence` since");
        }
        // `reads` also has the descriptors and predicates.
        if u.inputs.iter().any(|r| now(r).is_some()) {
            return Some("a register of matrix A was written with no `wgmma.fence` since");
        }
        None
    }

    /// A multiply is issued: its registers are in flight.
    fn issued(&mut self, u: &Uninit, by: By, init: &mut [u32]) {
        for &h in &u.hold {
            init[h as usize] = 0;
            self.written[h as usize] = (self.fences, by);
        }
        for (v, regs) in [(&mut self.held, &u.hold), (&mut self.inputs, &u.inputs)] {
            for &r in regs {
                match v.iter_mut().find(|x| x.0 == r) {
                    Some(x) => x.1 = self.group,
                    None => v.push((r, self.group)),
                }
            }
        }
    }

    /// Waits until `pending` groups are in flight. Gives the last stamp of what is complete.
    fn wait(&mut self, pending: u32, init: &mut [u32]) -> u32 {
        let limit = self.group.saturating_sub(pending);
        self.held.retain(|&(reg, group)| {
            if group < limit {
                init[reg as usize] = !0;
            }
            group >= limit
        });
        self.inputs.retain(|x| x.1 >= limit);
        let mut stamp = 0;
        self.reads.retain(|&(s, group)| {
            if group < limit {
                stamp = stamp.max(s);
            }
            group >= limit
        });
        stamp
    }
}

/// The instructions that each warp group has executed, by CTA and group: its four warps must execute the same.
#[derive(Default)]
pub(crate) struct GroupLog(HashMap<(usize, u32), Vec<u32>>);

/// A `.sync.aligned` instruction of a warp group: all its threads must execute it. Gives what to do when this is not (yet)
/// so.
pub(super) fn aligned(cx: &mut Cx<'_>) -> Option<Flow> {
    let wrong = |cx: &mut Cx<'_>, m: String| {
        cx.find(FindingKind::WarpSync, cx.mask.trailing_zeros() as usize, None, m);
        Some(Flow::Stop)
    };
    if cx.mask != !0 {
        if cx.w.live == !0 && cx.frag == cx.mask {
            cx.need = !0;
            return Some(Flow::Gather);
        }
        return wrong(cx, "a warp-group instruction needs all threads of its warps".into());
    }
    let group = cx.w.id / 4;
    let of = cx.unit.ctas[cx.w.cta].warps.len() as u32;
    if of < 4 * group + 4 {
        return wrong(cx, format!("warp {} is in no whole group of four warps: the CTA has {of}", cx.w.id));
    }
    let n = cx.w.wgmma.aligned as usize;
    cx.w.wgmma.aligned += 1;
    cx.unit.effects += 1;
    let first = cx.unit.ctas[cx.w.cta].warps.start + 4 * group as usize;
    let gone = |w: &Option<Box<crate::machine::Warp>>| {
        w.as_ref().is_some_and(|w| w.done && w.wgmma.aligned as usize <= n)
    };
    if let Some(k) = cx.unit.warps[first..first + 4].iter().position(gone) {
        return wrong(cx, format!("warp {} of the group has ended", 4 * group as usize + k));
    }
    let log = cx.unit.groups.0.entry((cx.w.cta, group)).or_default();
    match log.get(n) {
        None => log.push(cx.pc),
        Some(&pc) if pc != cx.pc => {
            let line = cx.grid.code.insts[pc as usize].line;
            return wrong(cx, format!("another warp of the group executes the one at line {line} instead"));
        }
        _ => {}
    }
    None
}

/// Warps of a group that ended without what the others executed.
pub(crate) fn left_behind(cx: &mut Cx<'_>) {
    let n = cx.w.wgmma.aligned as usize;
    let Some(log) = cx.unit.groups.0.get(&(cx.w.cta, cx.w.id / 4)) else { return };
    if let Some(&pc) = log.get(n) {
        let line = cx.grid.code.insts[pc as usize].line;
        let m = format!(
            "the thread ends, and another warp of its group executed the warp-group instruction at line {line}"
        );
        cx.find(FindingKind::WarpSync, 0, None, m);
    }
}

pub(super) fn fence(d: &mut Dec) -> R {
    d.has("sync");
    d.has("aligned");
    d.count(0..=0)?;
    d.out.exec = |cx, _| {
        if let Some(f) = aligned(cx) {
            return f;
        }
        cx.w.wgmma.fences += 1;
        Flow::Next
    };
    Ok(())
}

pub(super) fn commit(d: &mut Dec) -> R {
    d.has("sync");
    d.has("aligned");
    d.count(0..=0)?;
    d.out.exec = |cx, _| {
        if let Some(f) = aligned(cx) {
            return f;
        }
        cx.w.wgmma.group += 1;
        Flow::Next
    };
    Ok(())
}

pub(super) fn wait(d: &mut Dec) -> R {
    d.has("sync");
    d.has("aligned");
    d.count(1..=1)?;
    let Operand::Int(n) = d.operand(0)? else { return d.fail("the number of groups must be a constant") };
    d.out.imm = *n as i64;
    d.out.exec = |cx, i| {
        if let Some(f) = aligned(cx) {
            return f;
        }
        let w = &mut *cx.w;
        let stamp = w.wgmma.wait(i.imm as u32, &mut w.init);
        let party = Agent::Wgmma(w.sync.index).party(cx.unit.warps.len() as u32);
        w.sync.clock.completed(party, stamp);
        Flow::Next
    };
    Ok(())
}

/// `setmaxnreg` (§9.7.19.5): the whole warp group gives registers back to its CTA, or waits until there are as many as it
/// takes. Without a directive that says how many a thread starts with, assemblers ignore the instruction, and only its rules
/// are checked.
pub(super) fn setmaxnreg(d: &mut Dec) -> R {
    let Some(increase) = d.one_of(&[("inc", true), ("dec", false)]) else {
        return d.fail("`.inc` or `.dec` is wanted");
    };
    d.has("sync");
    d.has("aligned");
    d.has("u32");
    d.count(1..=1)?;
    let Operand::Int(n) = d.operand(0)? else { return d.fail("the number of registers must be a constant") };
    if !(24..=256).contains(n) || n % 8 != 0 {
        return d.fail(format!("{n} registers: the number must be a multiple of 8 from 24 to 256"));
    }
    d.out.b = *n as u32;
    d.out.flags = increase.into();
    d.out.exec = |cx, i| {
        // A warp that has waited was counted when it came.
        if cx.w.wgmma.wants == 0
            && let Some(f) = aligned(cx)
        {
            return f;
        }
        let start = cx.grid.code.registers;
        let had = match cx.w.wgmma.registers {
            0 => start.unwrap_or(0),
            n => n,
        };
        if had != 0 && if i.flags != 0 { i.b < had } else { i.b > had } {
            let verb = if i.flags != 0 { "increased" } else { "decreased" };
            let m = format!("the number of registers is {verb} to {} from {had}", i.b);
            cx.find(FindingKind::WarpSync, 0, None, m);
        } else if start.is_some() {
            let cta = &mut cx.unit.ctas[cx.w.cta];
            let wants = i.b.saturating_sub(had);
            if wants > cta.registers {
                cx.w.wgmma.wants = wants;
                return Flow::Yield;
            }
            cta.registers = cta.registers - wants + had.saturating_sub(i.b);
            cx.unit.effect();
        }
        cx.w.wgmma.wants = 0;
        cx.w.wgmma.registers = i.b;
        Flow::Next
    };
    Ok(())
}

/// `m64n128k16`.
fn shape(m: &str) -> Option<(u32, u32)> {
    let (n, k) = m.strip_prefix("m64n")?.split_once('k')?;
    Some((n.parse().ok()?, k.parse().ok()?))
}

const A_REGS: u32 = 1;
const NEG_A: u32 = 2;
const NEG_B: u32 = 4;
const MN_A: u32 = 8;
const MN_B: u32 = 16;
const SATFINITE: u32 = 32;
const NOT_P: u32 = 64;

pub(super) fn mma(d: &mut Dec) -> R {
    d.has("sync");
    d.has("aligned");
    if d.has("sp") {
        return d.fail("not supported yet: sparse matrices");
    }
    let Some((n, k)) = d.take(shape) else { return d.fail("the shape is missing") };
    if d.has("satfinite") {
        d.out.flags |= SATFINITE;
    }
    let (dt, at, bt) = (d.ty()?, d.ty()?, d.ty()?);
    let want_k = match at {
        Ty::F16 | Ty::BF16 => 16,
        Ty::TF32 => 8,
        Ty::E4M3 | Ty::E5M2 | Ty::S8 | Ty::U8 => 32,
        _ => return Err(d.bad_type(at)),
    };
    let pair = match at {
        Ty::E4M3 | Ty::E5M2 => matches!(bt, Ty::E4M3 | Ty::E5M2) && matches!(dt, Ty::F32 | Ty::F16),
        Ty::S8 | Ty::U8 => matches!(bt, Ty::S8 | Ty::U8) && dt == Ty::S32,
        Ty::F16 => bt == at && matches!(dt, Ty::F32 | Ty::F16),
        _ => bt == at && dt == Ty::F32,
    };
    let n_ok = n % 8 == 0 && (8..=256).contains(&n) && (dt != Ty::S32 || n <= 24 || n % 16 == 0);
    if k != want_k || !pair || !n_ok {
        return d.fail("no such combination of shape and types");
    }
    let Operand::Vector(dv) = d.operand(0)? else {
        return d.fail("the accumulator must be a vector of registers");
    };
    let per_lane = n / 2;
    let want = if dt == Ty::F16 { per_lane / 2 } else { per_lane };
    if dv.len() as u32 != want {
        return d.fail(format!("the accumulator has {} registers where {want} are wanted", dv.len()));
    }
    let mut list = vec![number(d, dt)?, number(d, at)?, number(d, bt)?, want];
    for o in dv {
        let r = d.dst_op(o, File::W)?;
        d.held.push(Reg { file: File::W, idx: r });
        list.push(r);
    }
    match d.operand(1)? {
        Operand::Vector(a) => {
            if a.len() != 4 {
                return d.fail("A in registers has four of them");
            }
            d.out.flags |= A_REGS;
            for o in a {
                let r = d.src_op(o, Ty::B32)?;
                d.inputs.push(Reg { file: File::W, idx: r });
                list.push(r);
            }
        }
        _ => list.push(d.src(1, Ty::B64)?),
    }
    list.push(d.src(2, Ty::B64)?);
    // scale-d, then the signs of A and B, then their transpositions for 16-bit types.
    let (p, neg) = d.pred(3)?;
    d.out.c = p;
    if neg {
        d.out.flags |= NOT_P;
    }
    let imm = |d: &Dec, k: usize| match d.operand(k)? {
        Operand::Int(v) => Ok(*v as i64),
        _ => d.fail(format!("operand {} must be a constant", k + 1)),
    };
    let count = d.ins.operands.len();
    let mut at_op = 4;
    if dt != Ty::S32 {
        for (k, f) in [(4, NEG_A), (5, NEG_B)] {
            match imm(d, k)? {
                1 => {}
                -1 => d.out.flags |= f,
                v => return d.fail(format!("a scale of {v}: it must be 1 or -1")),
            }
        }
        at_op = 6;
    }
    if matches!(at, Ty::F16 | Ty::BF16) {
        let flags: &[u32] = if d.out.flags & A_REGS != 0 { &[MN_B] } else { &[MN_A, MN_B] };
        for f in flags {
            if imm(d, at_op)? != 0 {
                d.out.flags |= f;
            }
            at_op += 1;
        }
    }
    if count != at_op {
        return d.fail(format!("{count} operands where {at_op} are wanted"));
    }
    d.out.list = list.into();
    (d.out.a, d.out.b) = (n, k);
    d.out.exec = exec;
    Ok(())
}

/// A matrix descriptor (§9.7.15.5.1.2.2).
#[derive(Clone, Copy, Debug)]
struct Desc {
    start: u32,
    leading: u32,
    stride: u32,
    swizzle: Swizzle,
    /// Bytes across a row of the swizzle atom.
    width: u32,
}

impl Desc {
    fn new(b: u64) -> Desc {
        let f = |s: u32| ((b >> s & 0x3fff) << 4) as u32;
        let (swizzle, width) = match b >> 62 {
            0 => (Swizzle::None, 16),
            1 => (Swizzle::B128, 128),
            2 => (Swizzle::B64, 64),
            _ => (Swizzle::B32, 32),
        };
        Desc { start: f(0), leading: f(16), stride: f(32), swizzle, width }
    }

    /// What is wrong with the bits `b` of it, whatever it describes.
    fn wrong(self, b: u64) -> Option<String> {
        // Bits 49–51 are the base offset.
        const UNUSED: u64 = 3 << 14 | 3 << 30 | 7 << 46 | 0x3ff << 52;
        if b & UNUSED != 0 {
            return Some(format!("bits of the descriptor {b:#018x} are set that have no meaning"));
        }
        // The pattern of a swizzle repeats after 256, 512 or 1024 bytes and must start at such a multiple; otherwise the
        // base offset would have to say where.
        let pattern = 8 * self.width;
        if self.swizzle != Swizzle::None && self.start % pattern >= 128 {
            return Some(format!(
                "it starts at shared offset {}, and the pattern of a {}-byte swizzle at a multiple of {pattern}",
                self.start, self.width
            ));
        }
        if b >> 49 & 7 != 0 {
            return Some(format!(
                "base offset {}, where the pattern starts at a multiple of {pattern}",
                b >> 49 & 7
            ));
        }
        None
    }

    /// Address of element (`mn`, `k`) of `es` bytes.
    fn at(&self, mn: u32, k: u32, es: u32, mn_major: bool) -> u32 {
        let off = if mn_major {
            let atom = self.width / es;
            let (outer, deep) = if self.swizzle == Swizzle::None {
                (self.stride, self.leading)
            } else {
                (self.leading, self.stride)
            };
            mn % atom * es + mn / atom * outer + k % 8 * self.width + k / 8 * deep
        } else {
            let kb = k * es;
            let chunk = if self.swizzle == Swizzle::None { kb / 16 * self.leading + kb % 16 } else { kb };
            mn % 8 * self.width + mn / 8 * self.stride + chunk
        };
        self.swizzle.apply(self.start.wrapping_add(off))
    }
}

fn element(ty: Ty, bits: u64) -> f64 {
    match ty {
        Ty::F16 => f16_to_f32(bits as u16).into(),
        Ty::BF16 => bf16_to_f32(bits as u16).into(),
        Ty::TF32 => f32::from_bits(bits as u32 & 0xffff_e000).into(),
        Ty::E4M3 => e4m3_decode(bits as u8),
        Ty::E5M2 => e5m2_decode(bits as u8),
        Ty::S8 => (bits as i8).into(),
        _ => (bits as u8).into(),
    }
}

/// Reads rows `rows` of a matrix of `all` rows by its descriptor, `out[k][mn]`. The asynchronous proxy reads all of it.
fn fetch(
    cx: &mut Cx<'_>,
    desc: u64,
    what: &str,
    all: u32,
    rows: std::ops::Range<u32>,
    k: u32,
    ty: Ty,
    mn_major: bool,
) -> Option<Vec<Vec<f64>>> {
    let es = ty.bytes();
    let dsc = Desc::new(desc);
    if let Some(m) = dsc.wrong(desc) {
        cx.find(FindingKind::Descriptor, 0, Some(dsc.start.into()), format!("matrix {what}: {m}"));
        return None;
    }
    let rank = cx.unit.ctas[cx.w.cta].rank;
    let size = cx.grid.shared_bytes;
    // Elements along the contiguous dimension lie together by 16 bytes.
    let (step, inner, outer) = if mn_major { (16 / es, all, k) } else { (16 / es, k, all) };
    let mut touched: Vec<u32> = vec![];
    for o in 0..outer {
        for x in (0..inner).step_by(step as usize) {
            let (r, x) = if mn_major { (x, o) } else { (o, x) };
            let a = dsc.at(r, x, es, mn_major);
            if u64::from(a) + u64::from(16.min((inner - if mn_major { r } else { x }) * es)) > size.into() {
                let m = format!(
                    "matrix {what}: element ({r}, {x}) is at shared offset {a}, outside the window of {size} bytes: {dsc:?}"
                );
                cx.find(FindingKind::Descriptor, 0, Some(a.into()), m);
                return None;
            }
            touched.push(a & !15);
        }
    }
    if cx.grid.options.checks {
        let pieces = touched.len();
        touched.sort_unstable();
        touched.dedup();
        if touched.len() != pieces {
            let m = format!("matrix {what}: several of its elements are at one place, by {dsc:?}");
            cx.find(FindingKind::Descriptor, 0, Some(dsc.start.into()), m);
            return None;
        }
        let other = |&(at, n, s): &(u32, u32, Swizzle)| {
            let first = touched.partition_point(|&t| t < at);
            let inside = touched.get(first).is_some_and(|&t| t < at + n);
            (inside && s != dsc.swizzle).then_some((touched[first.min(pieces - 1)], s))
        };
        let cta = &cx.unit.ctas[rank as usize];
        if let Some((at, s)) = cta.tensors.iter().find_map(other)
            && cta.shadow.by_proxy(at)
        {
            let m = format!(
                "matrix {what}: the tensor copy that wrote shared offset {at} swizzled it {s:?}, the descriptor says {:?}",
                dsc.swizzle
            );
            cx.find(FindingKind::Descriptor, 0, Some(at.into()), m);
            return None;
        }
        let agent = Agent::Wgmma(cx.w.sync.index);
        let stamp = cx.w.wgmma.stamp;
        // Neighbouring pieces go together.
        for run in touched.chunk_by(|a, b| a + 16 == *b) {
            let n = (run.len() as u32 * 16).min(size - run[0]);
            crate::shadow::agent_read(cx, 0, (rank, run[0]), n, agent, stamp);
        }
    }
    let shared = &cx.unit.ctas[rank as usize].shared;
    let read = |r, x| element(ty, crate::access::read_bytes(shared, dsc.at(r, x, es, mn_major) as usize, es));
    Some((0..k).map(|x| rows.clone().map(|r| read(r, x)).collect()).collect())
}

fn exec(cx: &mut Cx<'_>, i: &Inst) -> Flow {
    if let Some(f) = aligned(cx) {
        return f;
    }
    let (n, k) = (i.a, i.b);
    let (dt, at, bt) = (TYPES[i.list[0] as usize], TYPES[i.list[1] as usize], TYPES[i.list[2] as usize]);
    let nd = i.list[3] as usize;
    let rd = &i.list[4..4 + nd];
    let ra = &i.list[4 + nd..];
    let by = By::Wgmma { n, f16: dt == Ty::F16 };
    if let Some(u) = &i.uninit
        && cx.grid.options.checks
        && let Some(m) = cx.w.wgmma.unfenced(u, by)
    {
        cx.find(FindingKind::RegisterFence, 0, None, m.into());
    }
    cx.w.wgmma.stamp += 1;
    let (stamp, group) = (cx.w.wgmma.stamp, cx.w.wgmma.group);
    cx.w.wgmma.reads.push((stamp, group));
    // A: 16 rows of this warp, `a[k][row]`.
    let a = if i.flags & A_REGS != 0 {
        registers_of_a(cx, &ra[..4], at, k)
    } else {
        let first = cx.w.id % 4 * 16;
        let desc = cx.w.regs.d[ra[0] as usize][0];
        match fetch(cx, desc, "A", 64, first..first + 16, k, at, i.flags & MN_A != 0) {
            Some(a) => a,
            None => return Flow::Next,
        }
    };
    let bd = cx.w.regs.d[ra[if i.flags & A_REGS != 0 { 4 } else { 1 }] as usize][0];
    let Some(b) = fetch(cx, bd, "B", n, 0..n, k, bt, i.flags & MN_B != 0) else { return Flow::Next };
    let keep = cx.pred(i.c, i.flags & NOT_P != 0) & 1 != 0;
    let sign = if (i.flags & NEG_A != 0) != (i.flags & NEG_B != 0) { -1.0 } else { 1.0 };
    let mut acc = vec![vec![0f64; n as usize]; 16];
    for (row, acc) in acc.iter_mut().enumerate() {
        for (a, b) in a.iter().zip(&b) {
            let x = a[row] * sign;
            for (s, y) in acc.iter_mut().zip(b) {
                *s += x * y;
            }
        }
    }
    accumulate(cx, i, rd, dt, keep, &acc);
    // Nobody may touch the accumulator until the group is waited for.
    if let Some(u) = &i.uninit {
        let w = &mut *cx.w;
        w.wgmma.issued(u, by, &mut w.init);
    }
    debug_assert!(i.c != NONE);
    Flow::Next
}

/// A in registers: 16 rows of this warp, `a[k][row]`.
fn registers_of_a(cx: &Cx<'_>, registers: &[u32], ty: Ty, k: u32) -> Vec<Vec<f64>> {
    let per = 32 / ty.bits();
    let mut a = vec![vec![0f64; 16]; k as usize];
    for (r, &reg) in registers.iter().enumerate() {
        let v = cx.get::<u32>(reg);
        for (l, v) in v.iter().enumerate() {
            for e in 0..per {
                let (g, t) = (l as u32 >> 2, l as u32 & 3);
                let row = g + 8 * (r as u32 & 1);
                let col = t * per + e + (r as u32 >> 1) * 4 * per;
                let bits = u64::from(*v) >> (ty.bits() * e);
                a[col as usize][row as usize] = element(ty, bits);
            }
        }
    }
    a
}

/// Puts products into the registers of their accumulators, added to what is there where `keep` says so.
fn accumulate(cx: &mut Cx<'_>, i: &Inst, rd: &[u32], dt: Ty, keep: bool, acc: &[Vec<f64>]) {
    for c in 0..i.a as usize / 8 {
        for h in 0..2 {
            let place = |l: usize, e: usize| ((l >> 2) + 8 * h, 8 * c + (l & 3) * 2 + e);
            if dt == Ty::F16 {
                let reg = rd[2 * c + h];
                let old = cx.get::<u32>(reg);
                let r: [u32; LANES] = std::array::from_fn(|l| {
                    (0..2).fold(0, |r, e| {
                        let (row, col) = place(l, e);
                        let o = if keep { f16_to_f32((old[l] >> (16 * e)) as u16).into() } else { 0.0 };
                        r | (F16.encode(o + acc[row][col], Round::Rn, false) as u32) << (16 * e)
                    })
                });
                cx.put(reg, &r);
                continue;
            }
            for e in 0..2 {
                let reg = rd[4 * c + 2 * h + e];
                let old = cx.get::<u32>(reg);
                let r: [u32; LANES] = std::array::from_fn(|l| {
                    let (row, col) = place(l, e);
                    if dt == Ty::S32 {
                        let v = acc[row][col] as i64 + if keep { i64::from(old[l] as i32) } else { 0 };
                        return if i.flags & SATFINITE != 0 {
                            v.clamp(i32::MIN.into(), i32::MAX.into()) as u32
                        } else {
                            v as u32
                        };
                    }
                    let o = if keep { f64::from(f32::from_bits(old[l])) } else { 0.0 };
                    canon32((o + acc[row][col]) as f32)
                });
                cx.put(reg, &r);
            }
        }
    }
}
