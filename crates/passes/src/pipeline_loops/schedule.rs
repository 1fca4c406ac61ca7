//! When the operations of a loop run: how many iterations ahead of the main part of the body.
//!
//! | operation | iterations ahead | its value waits in |
//! | --- | --- | --- |
//! | a load whose value a dot needs (`cp.async`, TMA) | `num_stages - 1` | a ring of `num_stages` buffers |
//! | a load that an address of these needs (page tables, indices) | one more than the load that needs it | registers |
//! | a load that an address of *those* needs | and one more | registers |
//! | all else | 0 | |
//!
//! The latency of a load is taken to be as long as the buffers reach: what they cost is decided by `num_stages` (a fourth
//! stage that costs nothing is taken). Operations
//! without effects from which addresses are computed run wherever they are needed: they are cloned for each level, since
//! a few additions cost less than registers that wait.

use rustc_hash::FxHashSet;
use tilewright_ir::dialect::{scf, tt, ttg, ttng};
use tilewright_ir::{AttrKind, Block, Module, Op, Opcode, Trait, Value};

use super::copies::becomes_slot;
use super::slice::Slice;
use super::{blocks, budget};
use crate::target::TargetInfo;
use crate::{scope, scratch, tma};

/// Addresses of addresses of addresses: what is behind more of them is not read ahead.
const MAX_LEVELS: usize = 4;

/// When the operations of one loop run.
#[derive(Debug)]
pub struct Schedule {
    /// How many iterations are under way, the one being computed included.
    pub stages: u32,
    /// The loads that become asynchronous copies, in program order.
    pub copies: Vec<tt::Load>,
    /// The loads through descriptors that become TMA copies.
    pub blocks: Vec<tt::DescriptorLoad>,
    /// What runs ahead: `levels[0]` with the copies; each further level one iteration earlier, to give the level before
    /// the values that its addresses need.
    pub levels: Vec<Slice>,
    /// Whether warp groups may be half an iteration apart ([`split_barrier`](super::split_barrier)).
    pub split: bool,
}

impl Schedule {
    /// The schedule of a loop, or `None` if it stays as it is. `num_stages` is the launch option; the loop's own
    /// `tt.num_stages` overrides it.
    pub fn of(module: &Module, target: &TargetInfo, l: scf::For, num_stages: u32) -> Option<Self> {
        let asked = module.int_attr(l.0, "tt.num_stages");
        let stages = asked.map_or(num_stages, |n| n.clamp(0, 64) as u32);
        if stages < 2 {
            return None;
        }
        let body = module.region_block(l.body(module));
        let ops: Vec<Op> = module.block_ops(body).collect();
        let dots = ops.iter().any(|&op| has_dot(module, op));
        if (!dots && asked.is_none()) || ops.iter().any(|&op| is_pipelined(module, op)) {
            return None;
        }
        // An iteration that waits for other programs must not read ahead of its wait.
        if module.all_ops(l.0).into_iter().any(|op| synchronizes(module, op)) {
            return None;
        }
        let mut levels = Vec::new();
        let (mut copies, mut blocks) = (Vec::new(), Vec::new());
        for &op in &ops {
            if !is_load(module, op) {
                continue;
            }
            // Where the author asked for it, what anything but an address needs.
            let needs = |op| has_dot(module, op) || (asked.is_some() && !module.has_trait(op, Trait::Pure));
            if reaches(module, body, module.result(op), needs)
                && can_copy(module, op)
                && let Some(own) = levels_of(module, l, body, op)
            {
                for (k, slice) in own.into_iter().enumerate() {
                    match levels.get_mut(k) {
                        None => levels.push(slice),
                        Some(level) => level.merge(slice),
                    }
                }
                copies.extend(tt::Load::cast(module, op));
                blocks.extend(tt::DescriptorLoad::cast(module, op));
            }
        }
        if copies.is_empty() && blocks.is_empty() {
            return None;
        }
        let stages =
            if asked.is_none() && blocks.is_empty() && may_grow(module, target, l, &ops, &copies, stages) {
                stages + 1
            } else {
                stages
            };
        // (With loads that feed loads it has not been measured.)
        let split = levels.len() == 1 && may_split(module, target, l, &ops, &copies, &blocks, stages);
        Some(Schedule { stages, copies, blocks, levels, split })
    }

    /// Slots of a ring: a warp group that is half an iteration behind still reads the one before.
    pub fn slots(&self) -> u32 {
        self.stages + u32::from(self.split)
    }
}

/// Whether a loop of one dot for warp groups has a fourth stage for nothing, with which it needs one barrier less (see
/// [`expand`](super::expand)): its rings leave no room for another CTA on the SM, but for themselves.
fn may_grow(
    module: &Module,
    target: &TargetInfo,
    l: scf::For,
    ops: &[Op],
    copies: &[tt::Load],
    stages: u32,
) -> bool {
    let mut dots = ops.iter().filter(|&&op| has_dot(module, op));
    let one = dots.next().is_some_and(|&op| ttng::WarpGroupDot::cast(module, op).is_some())
        && dots.next().is_none();
    let bytes = |stages| budget::shared_bytes(module, l, copies, &[], stages);
    stages == 3 && one && 2 * bytes(stages) > target.max_shared && bytes(stages + 1) <= target.max_shared
}

/// Whether the warp groups of a loop should go their own ways: there are several, with dots and other work to take turns
/// at; nothing else makes them wait for each other; and the rings may have another slot.
fn may_split(
    module: &Module,
    target: &TargetInfo,
    l: scf::For,
    ops: &[Op],
    copies: &[tt::Load],
    blocks: &[tt::DescriptorLoad],
    stages: u32,
) -> bool {
    let dots = ops.iter().filter(|&&op| ttng::WarpGroupDot::cast(module, op).is_some()).count();
    let is_filled = |op: Op| {
        ttg::LocalAlloc::cast(module, op).is_some_and(|a| {
            a.src(module).is_some()
                && !becomes_slot(module, a, copies)
                && !blocks::becomes_slot(module, a, blocks)
        })
    };
    let meets = |op: Op| scratch::scratch_bytes(module, op) > 0 || is_filled(op);
    dots > 1
        && ops.iter().filter(|&&op| is_dot(module, op)).count() == dots
        && scope::num_warps(module, l.0) >= 8
        && scope::enclosing(module, l.0).is_empty()
        && !module.all_ops(l.0).into_iter().any(meets)
        && budget::shared_bytes(module, l, copies, blocks, stages + 1) <= target.max_shared
}

/// What must run ahead for a load: with it, and for each load in its address an iteration before it, and so on. `None` if
/// that can't be.
fn levels_of(module: &Module, l: scf::For, body: Block, load: Op) -> Option<Vec<Slice>> {
    let mut slice = Slice::default();
    if !slice.collect_operands(module, l, body, load) {
        return None;
    }
    let mut levels = vec![slice];
    loop {
        let mut next = Slice::default();
        for &v in &levels.last()?.loaded {
            let op = module.defining_op(v)?;
            next.ops.insert(op);
            if !next.collect_operands(module, l, body, op) {
                return None;
            }
        }
        if next.ops.is_empty() {
            return Some(levels);
        }
        levels.push(next);
        // Also where an address is what the iteration before has loaded: a list can't be read ahead.
        if levels.len() > MAX_LEVELS {
            return None;
        }
    }
}

/// Whether an operation may wait for, or is waited for by, another program: a barrier, or an atomic whose old value
/// matters.
fn synchronizes(module: &Module, op: Op) -> bool {
    match module.opcode(op) {
        Some(Opcode::Ttg(ttg::Kind::Barrier) | Opcode::Tt(tt::Kind::AtomicCas)) => true,
        Some(Opcode::Tt(tt::Kind::AtomicRmw)) => !module.is_unused(module.result(op)),
        _ => false,
    }
}

/// Whether an operation says that a loop around it has been pipelined, or has a pipelined one inside.
fn is_pipelined(module: &Module, op: Op) -> bool {
    ttg::AsyncWait::cast(module, op).is_some() || ttng::BarrierExpect::cast(module, op).is_some()
}

fn is_load(module: &Module, op: Op) -> bool {
    tt::Load::cast(module, op).is_some() || tt::DescriptorLoad::cast(module, op).is_some()
}

/// Whether an operation is a dot.
pub fn is_dot(module: &Module, op: Op) -> bool {
    tt::Dot::cast(module, op).is_some() || ttng::WarpGroupDot::cast(module, op).is_some()
}

/// Whether an operation is a dot or has one inside (a branch, an inner loop).
fn has_dot(module: &Module, op: Op) -> bool {
    is_dot(module, op)
        || (!module.regions(op).is_empty() && module.all_ops(op).into_iter().any(|o| is_dot(module, o)))
}

/// Whether a value reaches an operation of the same iteration, other than as the address of a load that is copied itself.
fn reaches(module: &Module, body: Block, value: Value, wanted: impl Fn(Op) -> bool) -> bool {
    let mut seen = FxHashSet::default();
    let mut work = vec![value];
    while let Some(v) = work.pop() {
        for u in module.uses(v) {
            let Some(at) = module.ancestor_in_block(body, u.op) else { continue };
            if !seen.insert(at) || (is_load(module, at) && can_copy(module, at)) {
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

/// Whether a load can be an asynchronous copy: by TMA, or by `cp.async`, which moves 4, 8 or 16 bytes and fills with zeros
/// (PTX ISA, "cp.async").
fn can_copy(module: &Module, op: Op) -> bool {
    let Some(load) = tt::Load::cast(module, op) else {
        return tma::fills_rings(module, module.operands(op)[0]);
    };
    let ty = module.value_type(load.result(module));
    let Some(layout) = scratch::tile_layout(module, ty) else { return false };
    if load.is_volatile(module) || module.is_ptr(ty) || module.bits(ty) < 8 {
        return false;
    }
    let vec = module.int_attr(load.0, "tt.vec").unwrap_or(1) as u32;
    let axis = module.int_attr(load.0, "tt.vec_axis").unwrap_or(0) as usize;
    if vec.min(layout.contig_along(axis)) * module.bits(ty) < 32 {
        return false;
    }
    load.other(module).is_none_or(|o| is_zero(module, o))
}

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
