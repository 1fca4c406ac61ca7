//! The schedule of a loop: a modulo schedule ([`modulo`](super::modulo)) of its body's [`graph`](super::graph), and what
//! follows from it.
//!
//! | | |
//! | --- | --- |
//! | the copies (`cp.async`, TMA) of what dots need | begin as soon as their slots are free: `num_stages - 1` iterations ahead with rings of `num_stages` slots. How long memory takes under load nobody knows: the author says with `num_stages` how much of it slots may bridge; what shared memory has no room for is left out, and a fourth stage that costs nothing is taken |
//! | a load that an address of these needs (page tables, indices) | begins as many intervals before as a memory latency takes, its values wait in registers; and so on for the loads in its address |
//! | a dot whose operands are there before the arithmetic in front of it | begins early ([`early_dots`](super::early_dots)) |
//! | a dot that begins in a later stage than the first one | is late ([`late_dots`](super::late_dots)): runs beside the next iteration's first dot and arithmetic |
//! | warp groups that a barrier keeps in step, with gaps between what they do | have a barrier in two halves ([`split_barrier`](super::split_barrier)) and a slot more |
//! | the wait for copies that take longer than the one dot of an iteration | leaves as many of them under way as slots allow, for a barrier more |
//! | all else | stays as it is written; `ptxas` orders instructions |
//!
//! The first three rows hold for every loop. Early and late dots and split barriers cost registers, slots and freedom
//! of `ptxas`: each has to shorten the interval of a multiprocessor with all the warps that share it.
//!
//! Operations without effects from which addresses are computed run wherever they are needed: they are cloned for each
//! level, since a few additions cost less than registers that wait.

use rustc_hash::FxHashSet;
use tilewright_ir::dialect::{scf, tt, ttg, ttng};
use tilewright_ir::marks;
use tilewright_ir::options::MAX_STAGES;
use tilewright_ir::{AttrKind, Block, Module, Op, Opcode, Value};

use super::async_copies::becomes_slot;
use super::backward_slice::Slice;
use super::candidates::Candidates;
use super::graph::{Body, Stream, is_asynchronous, is_dot};
use super::late_dots::Late;
use super::{async_copies, budget, tma_copies};
use crate::analysis::tile_layout::tile_layout;
use crate::analysis::{scope, scratch};
use crate::hopper::{multicast, tma, user_dots};
use crate::machine::GROUP;
use crate::target::TargetInfo;

/// What a loop says of its stages itself.
pub const NUM_STAGES: &str = "tt.num_stages";

/// On the module: no loop may have more stages than this.
pub const MOST_STAGES: &str = "ttg.most-stages";

/// Warps that load for others have so many slots at least, as long as there is room.
pub(crate) const SLOTS_OF_PRODUCERS: u32 = 2;

/// When the operations of one loop run.
#[derive(Debug, Default)]
pub struct Schedule {
    /// How many iterations are under way, the one being computed included.
    pub stages: u32,
    /// The loads that become asynchronous copies, in program order.
    pub copies: Vec<tt::Load>,
    /// The loads through descriptors that become TMA copies.
    pub blocks: Vec<tt::DescriptorLoad>,
    /// What runs ahead: `levels[0]` with the copies; each further level some iterations earlier, to give the level before
    /// the values that its addresses need.
    pub levels: Vec<Slice>,
    /// How many iterations lie between two levels.
    pub between_levels: u32,
    /// Whether warp groups may be half an iteration apart ([`split_barrier`](super::split_barrier)).
    pub split: bool,
    /// Whether the copies of an iteration take longer than its one dot, so that the loop wants as many of them under way as there are
    /// slots, and not one barrier less ([`expand`](super::expand)).
    pub starved: bool,
    /// Whether each thread reads what it has copied itself, and so waits for nobody else ([`own_bytes`](crate::analysis::own_bytes)).
    pub own: bool,
    /// Dots that begin before arithmetic that stands in front of them.
    pub early: Vec<Op>,
    /// A dot that runs in the iteration after its own.
    pub late: Option<Late>,
}

/// Whether an operation is a product, a wait for one, a copy, a wait for other partitions or their beginning that stands in the kernel itself: those of
/// the compiler come later.
fn is_in_authors_order(module: &Module, op: Op) -> bool {
    use ttng::Kind as K;
    user_dots::is_authored(module, op)
        || matches!(
            module.opcode(op),
            Some(Opcode::Ttng(
                K::WarpGroupDotWait | K::WaitBarrier | K::NamedBarrier | K::AsyncTmaCopyGlobalToLocal
            )) | Some(Opcode::Ttg(ttg::Kind::WarpSpecialize))
        )
}

/// Whether a loop has what the kernel issues and waits for itself: that stays where it is, and nothing runs ahead of what others give it.
pub(super) fn is_in_order_of_author(module: &Module, l: scf::For) -> bool {
    module.all_ops(l.0).into_iter().any(|op| is_in_authors_order(module, op))
}

/// The operations of a loop's body, but its end.
pub(super) fn ops_of(module: &Module, l: scf::For) -> Vec<Op> {
    let block = module.region_block(l.body(module));
    let end = module.last_op(block);
    module.block_ops(block).filter(|&op| Some(op) != end).collect()
}

impl Schedule {
    /// The schedule of a loop, or `None` if it stays as it is. `num_stages` is the launch option; the loop's own
    /// `tt.num_stages` overrides it.
    pub fn of(module: &Module, target: &TargetInfo, l: scf::For, num_stages: u32) -> Option<Self> {
        if is_in_order_of_author(module, l) {
            return None;
        }
        let block = module.region_block(l.body(module));
        let ops = ops_of(module, l);
        let mut schedule = Self::ahead(module, target, l, &ops, num_stages).unwrap_or_default();
        let loads = schedule.loads();
        let dots: Vec<Op> = ops.iter().copied().filter(|&op| is_asynchronous(module, op)).collect();
        if loads.is_empty() && dots.len() < 2 {
            return None;
        }

        let machine = target.machine;
        let num_warps = scope::num_warps(module, l.0);
        // Consumers in a `ttg.warp_specialize` wait for copies, not for each other.
        let specialized = !scope::enclosing(module, l.0).is_empty();
        let in_step = if specialized { GROUP.min(num_warps) } else { num_warps };
        let registers = budget::registers(module, l);
        let shared = budget::buffers(module, l, &loads, schedule.slots()) + budget::beside(module, l.0);
        let ctas = budget::ctas(target, budget::warps_of_cta(module, l), registers, shared);
        let stream = Stream { num_warps, in_step, ctas };
        let ahead = schedule.levels.iter().flat_map(|level| level.ops.iter().copied()).collect();
        let body = Body { module, machine, block, ops, copies: &loads, ahead, slots: schedule.stages };

        if let [dot] = dots[..] {
            let copied: u32 = loads.iter().map(|&load| machine.copied(module, module.result(load))).sum();
            schedule.starved =
                machine.products(module, dot, num_warps, num_warps).is_some_and(|busy| copied >= busy);
        }
        let mut best = body.schedule(stream, None, true);
        if dots.len() > 1 {
            let late = Late::find(module, l);
            let free = body.schedule(stream, late.as_ref().map(|late| late.dot.0), false);
            let wins = pays(free.interval(stream), best.interval(stream));
            // An early result waits in registers.
            let fits = registers <= machine.registers_of_thread;
            schedule.early = early(&body, &dots, wins && fits, |op| free.ready(op));
            if wins {
                schedule.late = late.filter(|late| free.stages_between(late.first.0, late.dot.0) > 0);
                best = free;
            }
            let apart = Stream { in_step: GROUP, ..stream };
            schedule.split = schedule.may_split(module, target, l, &body.ops)
                && best.has_gaps()
                && body.schedule(apart, None, schedule.early.is_empty()).interval(apart)
                    <= best.interval(stream);
        }
        let intervals = machine.load_latency.div_ceil(best.interval(stream));
        schedule.between_levels = intervals.min(schedule.stages);
        Some(schedule)
    }

    /// What runs ahead in a loop that is to be pipelined: copies, and what gives them their addresses.
    fn ahead(module: &Module, target: &TargetInfo, l: scf::For, ops: &[Op], num_stages: u32) -> Option<Self> {
        let stages = stages_of(module, l.0, num_stages);
        if stages < 2 {
            return None;
        }
        let candidates = Candidates::of(module, l, ops).ok()?;
        let mut schedule = Schedule { stages, ..Schedule::default() };
        for &op in ops.iter().filter(|&&op| is_load(module, op)) {
            if candidates.is_wanted(op)
                && let Ok(own) = candidates.levels(op)
            {
                for (k, slice) in own.into_iter().enumerate() {
                    match schedule.levels.get_mut(k) {
                        None => schedule.levels.push(slice),
                        Some(level) => level.merge(slice),
                    }
                }
                schedule.copies.extend(tt::Load::cast(module, op));
                schedule.blocks.extend(tt::DescriptorLoad::cast(module, op));
            }
        }
        let loads = schedule.loads();
        let reads_own = |&load: &tt::Load| async_copies::is_read_by_who_copies(module, load);
        schedule.own =
            !candidates.dots && schedule.blocks.is_empty() && schedule.copies.iter().all(reads_own);
        let beside = if schedule.own { budget::beside(module, l.0) } else { 0 };
        let fits = |s: &Schedule| budget::buffers(module, l, &loads, s.slots()) + beside <= target.max_shared;
        while schedule.stages > 2 && !fits(&schedule) {
            schedule.stages -= 1;
        }
        if !fits(&schedule) {
            return None;
        }
        if !candidates.asked && schedule.may_grow(module, target, l, ops) {
            schedule.stages += 1;
        }
        (!loads.is_empty()).then_some(schedule)
    }

    /// The loads that become copies.
    pub fn loads(&self) -> Vec<Op> {
        self.copies.iter().map(|load| load.0).chain(self.blocks.iter().map(|load| load.0)).collect()
    }

    /// Slots of a ring: a warp group that is half an iteration behind still reads the one before; a thread that reads its own copies has read a slot before it fills it.
    pub fn slots(&self) -> u32 {
        self.stages + u32::from(self.split) - u32::from(self.own)
    }

    /// Whether a loop of one dot for warp groups has a fourth stage for nothing, with which it needs one barrier less (see
    /// [`expand`](super::expand)): its rings leave no room for another CTA on the SM, but for themselves.
    fn may_grow(&self, module: &Module, target: &TargetInfo, l: scf::For, ops: &[Op]) -> bool {
        let dots: Vec<Op> = ops.iter().copied().filter(|&op| has_dot(module, op)).collect();
        let one = matches!(dots[..], [dot] if ttng::WarpGroupDot::cast(module, dot).is_some());
        let bytes = |stages| budget::buffers(module, l, &self.loads(), stages) + budget::beside(module, l.0);
        one && self.stages == 3
            && self.blocks.is_empty()
            && 2 * bytes(3) > target.max_shared
            && bytes(4) <= target.max_shared
    }

    /// Whether the warp groups of a loop could go their own ways: there are several, nothing else makes them wait for
    /// each other, and the rings may have another slot.
    fn may_split(&self, module: &Module, target: &TargetInfo, l: scf::For, ops: &[Op]) -> bool {
        let is_filled = |op: Op| {
            ttg::LocalAlloc::cast(module, op).is_some_and(|a| {
                a.src(module).is_some()
                    && !becomes_slot(module, a, &self.copies)
                    && !tma_copies::becomes_slot(module, a, &self.blocks)
            })
        };
        let meets = |op: Op| scratch::scratch_bytes(module, op) > 0 || is_filled(op);
        let waits = |op: Op| is_dot(module, op) && !is_asynchronous(module, op);
        // (With loads that feed loads it has not been measured.)
        self.levels.len() == 1
            && scope::num_warps(module, l.0) >= 2 * GROUP
            && scope::enclosing(module, l.0).is_empty()
            && !ops.iter().any(|&op| waits(op))
            && !module.all_ops(l.0).into_iter().any(meets)
            // CTAs that copy into each other's slots say to each other that these are free.
            && self.blocks.iter().all(|&load| multicast::shares(module, load) == 0)
            && budget::buffers(module, l, &self.loads(), self.stages + 1) + budget::beside(module, l.0)
                <= target.max_shared
    }
}

/// How many iterations of a loop may be under way: as many as it says itself, or else the launch does (`num_stages`), but no more than
/// [`most_stages`].
pub(crate) fn stages_of(module: &Module, l: Op, num_stages: u32) -> u32 {
    let asked =
        module.int_attr(l, NUM_STAGES).map_or(num_stages, |n| n.clamp(0, i64::from(MAX_STAGES)) as u32);
    asked.min(most_stages(module))
}

/// The most iterations that a loop of the module may have under way, which [`MOST_STAGES`] says where more did not fit in shared memory; with none at all warps
/// aren't specialized either.
pub(crate) fn most_stages(module: &Module) -> u32 {
    module
        .int_attr(module.root(), MOST_STAGES)
        .map_or(MAX_STAGES, |n| n.clamp(0, i64::from(MAX_STAGES)) as u32)
}

/// The most iterations that a loop of the module may want under way.
pub fn most_wanted(module: &Module, num_stages: u32) -> u32 {
    let loops = module.all_ops(module.root()).into_iter();
    let most = loops.map(|l| stages_of(module, l, num_stages)).max().unwrap_or(num_stages);
    most.max(SLOTS_OF_PRODUCERS)
}

/// Whether an interval is shorter than another by more than what the numbers are good for.
fn pays(interval: u32, other: u32) -> bool {
    interval + interval / 32 < other
}

/// The dots behind the first whose operands are there before those of arithmetic that stands in front of them. Those that go on
/// with a sum take no registers: they belong behind the dot before them, not behind the copies that will stand there.
fn early(body: &Body<'_>, dots: &[Op], any: bool, ready: impl Fn(Op) -> u32) -> Vec<Op> {
    let mut arithmetic = Vec::new();
    let mut found = Vec::new();
    for &op in body.ops.iter().skip_while(|&&op| op != dots[0]) {
        if body.goes_on(op) || (any && dots.contains(&op) && arithmetic.iter().any(|&a| ready(op) < ready(a)))
        {
            found.push(op);
        } else if body.is_arithmetic(op) {
            arithmetic.push(op);
        }
    }
    found
}

pub(super) fn is_load(module: &Module, op: Op) -> bool {
    tt::Load::cast(module, op).is_some() || tt::DescriptorLoad::cast(module, op).is_some()
}

/// Whether an operation is a dot or has one inside (a branch, an inner loop).
pub(crate) fn has_dot(module: &Module, op: Op) -> bool {
    is_dot(module, op)
        || (!module.regions(op).is_empty() && module.all_ops(op).into_iter().any(|o| is_dot(module, o)))
}

/// Whether a value reaches an operation of the same iteration, other than as the address of a load that is copied itself.
pub(crate) fn reaches(
    module: &Module,
    body: Block,
    value: Value,
    copied: impl Fn(Op) -> bool,
    wanted: impl Fn(Op) -> bool,
) -> bool {
    let mut seen = FxHashSet::default();
    let mut work = vec![value];
    while let Some(v) = work.pop() {
        for u in module.uses(v) {
            let Some(at) = module.ancestor_in_block(body, u.op) else { continue };
            let chosen = tt::Load::cast(module, u.op).is_some_and(|load| load.other(module) == Some(v));
            if (copied(at) && !chosen) || !seen.insert(at) {
                continue;
            }
            if wanted(at) {
                return true;
            }
            work.extend(module.results(at));
        }
    }
    false
}

/// Whether an operation is a load that can be an asynchronous copy, by TMA or by `cp.async`, which leaves in its slot all that the load gives.
pub(crate) fn becomes_copy(module: &Module, op: Op) -> bool {
    match tt::Load::cast(module, op) {
        Some(load) => can_fill(module, load),
        None => is_load(module, op) && tma::fills_rings(module, module.operands(op)[0]),
    }
}

/// Whether a load through pointers can be a copy that leaves in its slot all that the load gives.
pub(crate) fn can_fill(module: &Module, load: tt::Load) -> bool {
    why_no_copy(module, load).is_none() && leaves_zeros(module, load)
}

/// Whether masked-off elements are zero, which is what copies fill in (PTX ISA, "cp.async"). Others are chosen behind the read of the slot.
pub(crate) fn leaves_zeros(module: &Module, load: tt::Load) -> bool {
    load.mask(module).and(load.other(module)).is_none_or(|other| is_zero(module, other))
}

/// Why a load can't be copies by `cp.async`, whatever masked-off elements are.
pub(crate) fn why_no_copy(module: &Module, load: tt::Load) -> Option<&'static str> {
    let ty = module.value_type(load.result(module));
    let Some(layout) = tile_layout(module, ty) else { return Some("it loads one value, not a block") };
    let pointer = module.value_type(load.ptr(module));
    if module.is_shared_pointer(pointer) || module.is_remote_pointer(pointer) {
        return Some("it loads from shared memory");
    }
    if module.is_symmetric_pointer(pointer) {
        return Some("it loads from another rank's memory by a library");
    }
    if load.is_fresh(module) {
        return Some("it is volatile, or its cache modifier is .cv");
    }
    if module.is_ptr(ty) || module.bits(ty) < 8 {
        return Some("its elements are no numbers of whole bytes");
    }
    let vec = module.int_attr(load.0, marks::VEC).unwrap_or(1) as u32;
    let axis = module.int_attr(load.0, marks::VEC_AXIS).unwrap_or(0) as usize;
    if vec.min(layout.contig_along(axis)) * module.bits(ty) < 32 {
        return Some("copies are 4 bytes at least, and no 4 consecutive and aligned bytes are known");
    }
    None
}

/// Whether a value is zero in all bits.
fn is_zero(module: &Module, value: Value) -> bool {
    if let Some(s) = tt::Splat::of(module, value) {
        return is_zero(module, s.src(module));
    }
    let Some(attr) = module.constant_value(value) else { return false };
    let scalar = match module.attr_kind(attr) {
        AttrKind::Splat(a, _) => module.attr_kind(*a),
        other => other,
    };
    match scalar {
        AttrKind::Int(v, _) => *v == 0,
        AttrKind::Float(f, _) => f.0 == 0, // not -0.0: the copy writes zero bits
        AttrKind::Bool(b) => !b,
        _ => false,
    }
}
