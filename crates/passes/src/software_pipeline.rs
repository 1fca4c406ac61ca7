//! Software pipelining: loads of a loop are issued several iterations ahead, as asynchronous copies into a ring of
//! shared-memory buffers, so that their latency is hidden behind the arithmetic of the iterations before.
//!
//! Why here: after layout assignment it is known which loads go through shared memory (operands of dots) and how wide
//! their accesses are; before allocation and barriers, which see buffers and copies like any others.
//!
//! # The schedule
//!
//! With `n` stages an iteration's loads run at stage 0 and everything else at stage `n - 1`. What the loads' addresses
//! and masks are computed from (the *slice*: operations of the body, and carried values such as pointers) is cloned and
//! runs at stage 0 too, with carried values of its own, so that nothing else crosses stages. At run time, iteration i of
//! the new loop
//!
//! 1. waits until the copies of iteration i have arrived (`n - 2` groups may still be under way);
//! 2. issues the copies of iteration i + n - 1, masked off past the end, into the slot that iteration i - 1 has read; the
//!    barrier that follows the wait is what makes this safe, so the loop has one barrier;
//! 3. runs the body on the slot of iteration i.
//!
//! A load whose value is part of another's address (a page table, indices) is not copied but carried: it is loaded into
//! registers one iteration before the copies that need it, by a slice of its own (the *far* slice).
//!
//! Where a loop has several dots for warp groups, steps 1 and 2 come behind the first dot and wait for the *next* iteration's copies
//! (those of the first are waited for before the loop): the tensor cores are busy then.
//!
//! The first `n - 1` iterations' copies are issued before the loop. Which loops: those with a dot, or with
//! `tt.num_stages` given by the author. Which loads: those that reach a dot within the iteration (all, if the author gave
//! the number of stages), if each access is at least 4 bytes wide, masked-off elements may be zero and the slice is pure.
//!
//! ```text
//! scf.for %i = %c0 to %n step %c1 iter_args(%acc = %z, %p = %p0) {
//!   %x = tt.load %p
//!   %s = ttg.local_alloc %x
//!   %a = ttg.local_load %s
//!   ...
//!   %p2 = tt.addptr %p, %step
//! }
//! =>
//! %buf = ttg.local_alloc : !ttg.memdesc<3x128x64xf16, ..., mutable>
//! ttg.async_copy_global_to_local %p0, %buf[0] mask %0_lt_n ; ttg.async_commit_group
//! ttg.async_copy_global_to_local %p1, %buf[1] mask %1_lt_n ; ttg.async_commit_group
//! scf.for %i = %c0 to %n step %c1 iter_args(%acc = %z, %slot = 0, %free = 2, %q = %p2) {
//!   %t = ttg.async_wait {num = 1}
//!   ttg.async_copy_global_to_local %q, %buf[%free] mask %i_plus_2_lt_n ; ttg.async_commit_group
//!   %a = ttg.local_load %buf[%slot] token %t
//!   ...
//! }
//! ttg.async_wait {num = 0}
//! ```

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::dialect::{arith, scf, tt, ttg, ttng};
use tilewright_ir::{
    AttrKind, Block, Builder, Diagnostic, Encoding, Module, Op, Opcode, Shape, Trait, Type, TypeKind, Value,
    ValueDef,
};
use tilewright_layout::TileLayout;

use crate::target::TargetInfo;
use crate::{choose, delay_dots, scratch};

/// Pipelines every loop that asks for it. `num_stages` is the launch option; a loop's `tt.num_stages` overrides it.
///
/// # Errors
/// None of its own.
pub fn run(module: &mut Module, target: &TargetInfo, num_stages: u32) -> Result<(), Diagnostic> {
    // Inner loops first: an outer loop with a pipelined loop inside is left alone.
    let root = module.root();
    let mut loops: Vec<scf::For> =
        module.all_ops(root).into_iter().filter_map(|op| scf::For::cast(module, op)).collect();
    loops.reverse();
    let mut changed = false;
    for l in loops {
        changed |= pipeline_loop(module, target, l, num_stages);
    }
    // Addresses are computed ahead now: the carried values that they came from before are dead.
    if changed { tilewright_ir::dce::run(module) } else { Ok(()) }
}

/// A load that becomes asynchronous.
#[derive(Clone, Copy)]
struct AsyncLoad {
    load: tt::Load,
    /// The ring of buffers.
    ring: Value,
    /// The type of one slot.
    slot: Type,
}

/// What loads are computed from inside the loop.
#[derive(Default)]
struct Slice {
    ops: FxHashSet<Op>,
    /// Carried values, as indices of the loop's initial values.
    carried: Vec<usize>,
    /// Loaded values at which the slice stops.
    loaded: Vec<Value>,
}

fn pipeline_loop(module: &mut Module, target: &TargetInfo, l: scf::For, num_stages: u32) -> bool {
    let asked = module.int_attr(l.0, "tt.num_stages");
    let stages = asked.map_or(num_stages, |n| n.clamp(0, 64) as u32);
    if stages < 2 {
        return false;
    }
    let body = module.region_block(l.body(module));
    let ops: Vec<Op> = module.block_ops(body).collect();
    let has_dot = ops.iter().any(|&op| is_dot(module, op));
    if (!has_dot && asked.is_none()) || ops.iter().any(|&op| ttg::AsyncWait::cast(module, op).is_some()) {
        return false;
    }
    // An iteration that waits for other programs must not read ahead of its wait.
    if module.all_ops(l.0).into_iter().any(|op| synchronizes(module, op)) {
        return false;
    }
    let mut near = Slice::default();
    let mut chosen = Vec::new();
    for &op in &ops {
        let Some(load) = tt::Load::cast(module, op) else { continue };
        if (asked.is_none() && !reaches_dot(module, body, load.result(module))) || !can_copy(module, load) {
            continue;
        }
        let (mut own, mut behind) = (Slice::default(), Slice::default());
        let pure = module.operands(op).iter().all(|&v| own.collect(module, l, body, v, false))
            && own.loaded.iter().all(|&v| behind.collect(module, l, body, v, true));
        if pure {
            near.ops.extend(own.ops);
            near.carried.extend(own.carried);
            near.loaded.extend(own.loaded);
            chosen.push(load);
        }
    }
    if chosen.is_empty() {
        return false;
    }
    near.carried.sort_unstable();
    near.carried.dedup();
    near.loaded.sort_unstable();
    near.loaded.dedup();
    let mut far = Slice::default();
    for &v in &near.loaded {
        far.collect(module, l, body, v, true);
    }
    let delay = target.delay_dots && delays(module, l, &chosen, stages, target.max_shared);
    let slots = if delay { stages + 1 } else { stages };
    Expander::new(module, l, body, (stages, slots), (near, far), &ops, &chosen).expand();
    if slots > stages {
        let mark = module.attr(AttrKind::Unit);
        module.set_attr(l.0, delay_dots::MARK, mark);
    }
    true
}

/// Whether a dot of the loop is to run an iteration later, for which every ring needs another slot.
fn delays(module: &Module, l: scf::For, chosen: &[tt::Load], stages: u32, max_shared: u32) -> bool {
    let Some((dot, _)) = delay_dots::delayable(module, l) else { return false };
    let bytes =
        |ty: Type| module.shape(ty).unwrap_or(&[]).iter().product::<u32>() * module.bits(ty).max(8) / 8;
    let buffer_of = |load: &tt::Load| {
        module.uses(load.result(module)).iter().find_map(|u| ttg::LocalAlloc::cast(module, u.op))
    };
    let rings: Vec<ttg::LocalAlloc> = chosen.iter().filter_map(buffer_of).collect();
    let all = module.all_ops(module.root()).into_iter().filter_map(|op| ttg::LocalAlloc::cast(module, op));
    let total: u32 = all
        .map(|a| {
            let slots = if rings.contains(&a) { stages + 1 } else { 1 };
            bytes(module.value_type(a.result(module))) * slots
        })
        .sum();
    rings.iter().any(|a| a.result(module) == dot.b(module)) && total <= max_shared
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

fn is_dot(module: &Module, op: Op) -> bool {
    tt::Dot::cast(module, op).is_some() || ttng::WarpGroupDot::cast(module, op).is_some()
}

/// Whether a value reaches a dot of the same iteration.
fn reaches_dot(module: &Module, body: Block, value: Value) -> bool {
    let mut seen = FxHashSet::default();
    let mut work = vec![value];
    while let Some(v) = work.pop() {
        for u in module.uses(v) {
            if !seen.insert(u.op) || module.parent_block(u.op) != Some(body) {
                continue;
            }
            if is_dot(module, u.op) {
                return true;
            }
            work.extend(module.results(u.op));
        }
    }
    false
}

/// Whether a load can be an asynchronous copy: `cp.async` moves 4, 8 or 16 bytes and fills with zeros (PTX ISA,
/// "cp.async").
fn can_copy(module: &Module, load: tt::Load) -> bool {
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

impl Slice {
    /// Adds what `value` is computed from inside the loop; false if that is not pure. Loads are taken in with
    /// `through_loads`; otherwise the slice stops at them.
    fn collect(
        &mut self,
        module: &Module,
        l: scf::For,
        body: Block,
        value: Value,
        through_loads: bool,
    ) -> bool {
        if module.value_block(value) != Some(body) {
            // From outside the loop, or from a region inside it (then its operation is not in the slice anyway).
            return !inside(module, l, value);
        }
        match module.value_def(value) {
            ValueDef::Argument(_, 0) => true,
            ValueDef::Argument(_, i) => {
                let i = i as usize - 1;
                if self.carried.contains(&i) {
                    return true;
                }
                self.carried.push(i);
                let next = module.last_op(body).map(|y| module.operands(y)[i]);
                next.is_some_and(|v| self.collect(module, l, body, v, through_loads))
            }
            ValueDef::Result(op, _) => {
                if self.ops.contains(&op) {
                    return true;
                }
                if let Some(load) = tt::Load::cast(module, op) {
                    if load.is_volatile(module) {
                        return false;
                    }
                    if !through_loads {
                        self.loaded.push(value);
                        return true;
                    }
                } else if !module.has_trait(op, Trait::Pure) || !module.regions(op).is_empty() {
                    return false;
                }
                self.ops.insert(op);
                module
                    .operands(op)
                    .to_vec()
                    .into_iter()
                    .all(|v| self.collect(module, l, body, v, through_loads))
            }
        }
    }
}

fn inside(module: &Module, l: scf::For, value: Value) -> bool {
    module
        .value_block(value)
        .and_then(|b| module.block_parent_op(b))
        .is_some_and(|op| module.is_ancestor(l.0, op))
}

/// A slice in program order, with where it stands: the values of its carried values in the iteration to come.
struct Level {
    ops: Vec<Op>,
    carried: Vec<usize>,
    at: Vec<Value>,
}

struct Expander<'m> {
    m: &'m mut Module,
    l: scf::For,
    body: Block,
    /// The body's arguments before any were added, and its end.
    args: Vec<Value>,
    yielded: Op,
    stages: u32,
    /// Slots of each ring: one more than there are stages where a dot reads its operand an iteration later.
    slots: u32,
    /// The slice of the copies, with the chosen loads in it.
    near: Level,
    /// The slice of the values in registers that the copies' addresses need.
    far: Level,
    /// Those values, and what they are in the iteration to come.
    loaded: Vec<Value>,
    loaded_at: Vec<Value>,
    loads: Vec<AsyncLoad>,
}

impl<'m> Expander<'m> {
    fn new(
        m: &'m mut Module,
        l: scf::For,
        body: Block,
        (stages, slots): (u32, u32),
        (near, far): (Slice, Slice),
        ops: &[Op],
        chosen: &[tt::Load],
    ) -> Self {
        let init = l.init(m).to_vec();
        let level = |slice: &Slice, with: &dyn Fn(Op) -> bool| Level {
            ops: ops.iter().copied().filter(|&op| slice.ops.contains(&op) || with(op)).collect(),
            at: slice.carried.iter().map(|&c| init[c]).collect(),
            carried: slice.carried.clone(),
        };
        let (n, f) = (level(&near, &|op| chosen.iter().any(|c| c.0 == op)), level(&far, &|_| false));
        let loads = chosen.iter().map(|&load| Self::ring(m, l, load, slots)).collect();
        Expander {
            args: m.block_args(body).to_vec(),
            yielded: m.last_op(body).expect("a loop body ends with a yield"),
            m,
            l,
            body,
            stages,
            slots,
            near: n,
            far: f,
            loaded: near.loaded,
            loaded_at: Vec::new(),
            loads,
        }
    }

    /// Allocates the ring of a load before the loop: as the buffer that the load fills now is laid out, if it does.
    fn ring(m: &mut Module, l: scf::For, load: tt::Load, stages: u32) -> AsyncLoad {
        let value = load.result(m);
        let ty = m.value_type(value);
        let shape: Shape = m.shape(ty).unwrap_or(&[]).into();
        let element = m.element_type(ty);
        let buffer = m.uses(value).iter().find_map(|u| ttg::LocalAlloc::cast(m, u.op)).map(|a| a.result(m));
        let encoding = match buffer.and_then(|b| m.encoding(m.value_type(b))) {
            Some(e) => e,
            None => {
                let order =
                    match m.encoding(ty).and_then(|e| m.encoding_of(e)).map(|e| TileLayout::new(e, &shape)) {
                        Some(Ok(layout)) => layout.order().iter().map(|&d| u32::from(d)).collect(),
                        _ => choose::row_major(shape.len()),
                    };
                let plain = tilewright_ir::SharedKind::Swizzled { vec: 1, per_phase: 1, max_phase: 1, order };
                m.attr(AttrKind::Encoding(Encoding::Shared(plain)))
            }
        };
        let memory_space = m.attr(AttrKind::Opaque("#ttg.shared_memory".into()));
        let mut memdesc = |shape: Shape| {
            m.ty(TypeKind::MemDesc {
                shape,
                element,
                encoding: Some(encoding),
                memory_space,
                mutable: true,
                alloc_shape: None,
            })
        };
        let slot = memdesc(shape.clone());
        let mut ring_shape = shape;
        ring_shape.insert(0, stages);
        let ring_ty = memdesc(ring_shape);
        let loc = m.op_loc(load.0);
        let mut b = Builder::before(m, l.0);
        b.set_loc(loc);
        let ring = ttg::LocalAlloc::build(&mut b, None, ring_ty).result(b.module);
        AsyncLoad { load, ring, slot }
    }

    fn expand(mut self) {
        let (lower, upper, step) =
            (self.l.lower_bound(self.m), self.l.upper_bound(self.m), self.l.step(self.m));
        let iv_ty = self.m.value_type(lower);

        // Before the loop: the copies of the first iterations.
        let mut iv = lower;
        self.load_far(self.l.0, iv, upper);
        for slot in 0..self.stages - 1 {
            let mut b = Builder::before(self.m, self.l.0);
            let slot = b.i32(slot as i32);
            self.issue(self.l.0, iv, upper, slot);
            let mut b = Builder::before(self.m, self.l.0);
            iv = arith::Addi::build(&mut b, iv, step).result(b.module);
            self.load_far(self.l.0, iv, upper);
        }

        // The loop.
        let mut b = Builder::before(self.m, self.l.0);
        let distance = b.int(i64::from(self.stages) - 1, iv_ty);
        let distance = arith::Muli::build(&mut b, step, distance).result(b.module);
        let (zero, last) = (b.i32(0), b.i32(self.stages as i32 - 1));
        let (ring_size, one) = (b.i32(self.slots as i32), b.i32(1));
        let slot = self.carry(zero);
        let free = self.carry(last);
        self.near.at = self.carry_all(&self.near.at.clone());
        self.far.at = self.carry_all(&self.far.at.clone());
        self.loaded_at = self.carry_all(&self.loaded_at.clone());

        let top = self.m.first_op(self.body).expect("a loop body has operations");
        // The slot to fill may be read by an asynchronous dot of the last iteration until the first of this one has been
        // issued and the others waited for (see `async_dots`).
        let ops: Vec<Op> = self.m.block_ops(self.body).collect();
        let dot = ops.into_iter().find(|&op| ttng::WarpGroupDot::cast(self.m, op).is_some());
        let anchor = dot.and_then(|d| self.m.next_op(d)).unwrap_or(top);
        let stages = self.stages as i32;
        let several = self.m.block_ops(self.body).filter(|&op| is_dot(self.m, op)).count() > 1;
        let token = if dot.is_some() && several && stages > 2 {
            // Behind that dot also wait for what the next iteration reads: one barrier then serves both, and the proxy
            // fence, which waits for the thread's copies, stands where the fewest are under way. (A loop of one dot has
            // no arithmetic to hide a copy behind: there more copies under way are worth more than a barrier less.)
            self.wait_and_fence(anchor, stages - 3);
            let token = self.wait_and_fence(self.l.0, stages - 2);
            let mut b = Builder::before(self.m, self.l.0);
            ttg::Barrier::build(&mut b);
            token
        } else {
            let mut b = Builder::before(self.m, top);
            ttg::AsyncWait::build(&mut b, &[], stages - 2, Type::ASYNC_TOKEN).token(b.module)
        };
        let mut b = Builder::before(self.m, top);
        let iv_ahead = arith::Addi::build(&mut b, self.args[0], distance).result(b.module);
        self.issue(anchor, iv_ahead, upper, free);
        if !self.far.ops.is_empty() {
            let mut b = Builder::before(self.m, anchor);
            let iv_far = arith::Addi::build(&mut b, iv_ahead, step).result(b.module);
            self.load_far(anchor, iv_far, upper);
        }
        self.read_slots(top, slot, token);

        let mut b = Builder::before(self.m, self.yielded);
        let mut step = |at: Value| {
            let up = arith::Addi::build(&mut b, at, one).result(b.module);
            let wraps = arith::Cmpi::build(&mut b, up, ring_size, arith::CmpIPredicate::Eq, Type::I1)
                .result(b.module);
            arith::Select::build(&mut b, wraps, zero, up).result(b.module)
        };
        let up = step(slot);
        // Without slots to spare the one just read is the next to fill.
        let next_free = if self.slots == self.stages { slot } else { step(free) };
        let ahead = [&self.near.at[..], &self.far.at, &self.loaded_at].concat();
        for v in [up, next_free].into_iter().chain(ahead) {
            self.m.push_operand(self.yielded, v);
        }

        // Copies masked off past the end still write zeros: none may be under way when the memory is used again.
        let mut b = Builder::after(self.m, self.l.0);
        ttg::AsyncWait::build(&mut b, &[], 0, Type::ASYNC_TOKEN);
    }

    /// Waits for copies, and makes them visible to the asynchronous proxy.
    fn wait_and_fence(&mut self, anchor: Op, num: i32) -> Value {
        let mut b = Builder::before(self.m, anchor);
        let token = ttg::AsyncWait::build(&mut b, &[], num, Type::ASYNC_TOKEN).token(b.module);
        ttng::FenceAsyncShared::build(&mut b, false);
        token
    }

    fn carry_all(&mut self, init: &[Value]) -> Vec<Value> {
        init.iter().map(|&v| self.carry(v)).collect()
    }

    /// Adds a carried value to the loop and returns its argument.
    fn carry(&mut self, init: Value) -> Value {
        let ty = self.m.value_type(init);
        self.m.push_operand(self.l.0, init);
        self.m.add_result(self.l.0, ty);
        self.m.add_block_arg(self.body, ty)
    }

    /// The values of the iteration that `level` has come to.
    fn values_of(&self, level: &Level, iv: Value) -> FxHashMap<Value, Value> {
        let mut map: FxHashMap<Value, Value> = FxHashMap::default();
        map.insert(self.args[0], iv);
        for (&c, &v) in level.carried.iter().zip(&level.at) {
            map.insert(self.args[c + 1], v);
        }
        map
    }

    /// What the carried values of a level are in the next iteration.
    fn step_on(&self, level: &Level, map: &FxHashMap<Value, Value>) -> Vec<Value> {
        let values = self.m.operands(self.yielded);
        level.carried.iter().map(|&c| *map.get(&values[c]).unwrap_or(&values[c])).collect()
    }

    fn is_inside(&mut self, anchor: Op, iv: Value, upper: Value) -> Value {
        let mut b = Builder::before(self.m, anchor);
        arith::Cmpi::build(&mut b, iv, upper, arith::CmpIPredicate::Slt, Type::I1).result(b.module)
    }

    /// Emits the near slice and the copies of one iteration before `anchor`, into slot `slot` of each ring, masked off
    /// unless `iv < upper`, and steps on.
    fn issue(&mut self, anchor: Op, iv: Value, upper: Value, slot: Value) {
        let mut map = self.values_of(&self.near, iv);
        map.extend(self.loaded.iter().copied().zip(self.loaded_at.iter().copied()));
        let inside = self.is_inside(anchor, iv, upper);
        let mut tokens = Vec::new();
        for op in self.near.ops.clone() {
            if let Some(n) = self.loads.iter().position(|a| a.load.0 == op) {
                tokens.push(self.copy(anchor, n, &map, inside, slot));
            } else {
                let clone = self.m.clone_op(op, &mut map);
                self.m.insert_before(clone, anchor);
            }
        }
        let mut b = Builder::before(self.m, anchor);
        ttg::AsyncCommitGroup::build(&mut b, &tokens, Type::ASYNC_TOKEN);
        self.near.at = self.step_on(&self.near, &map);
    }

    /// Emits the far slice of one iteration before `anchor`, its loads masked off unless `iv < upper`, and steps on.
    fn load_far(&mut self, anchor: Op, iv: Value, upper: Value) {
        if self.far.ops.is_empty() {
            return;
        }
        let mut map = self.values_of(&self.far, iv);
        let inside = self.is_inside(anchor, iv, upper);
        for op in self.far.ops.clone() {
            let clone = self.m.clone_op(op, &mut map);
            self.m.insert_before(clone, anchor);
            if let Some(load) = tt::Load::cast(self.m, clone) {
                // An address that the loop itself would not have loaded from.
                let mask =
                    self.and_mask(clone, load.mask(self.m), self.m.value_type(load.ptr(self.m)), inside);
                self.m.set_operand_group(clone, 1, &[mask]);
            }
        }
        self.loaded_at = self.loaded.iter().map(|v| map[v]).collect();
        self.far.at = self.step_on(&self.far, &map);
    }

    fn copy(
        &mut self,
        anchor: Op,
        n: usize,
        map: &FxHashMap<Value, Value>,
        inside: Value,
        slot: Value,
    ) -> Value {
        let AsyncLoad { load, ring, slot: slot_ty } = self.loads[n];
        let mapped = |v: Value| *map.get(&v).unwrap_or(&v);
        let ptr = mapped(load.ptr(self.m));
        let mask = load.mask(self.m).map(mapped);
        let ptr_ty = self.m.value_type(ptr);
        let mask = self.and_mask(anchor, mask, ptr_ty, inside);
        let (cache, evict) = (load.cache(self.m), load.evict(self.m));
        let loc = self.m.op_loc(load.0);
        let mut b = Builder::before(self.m, anchor);
        b.set_loc(loc);
        let dst = ttg::MemdescIndex::build(&mut b, ring, slot, slot_ty).result(b.module);
        let copy = ttg::AsyncCopyGlobalToLocal::build(
            &mut b,
            ptr,
            dst,
            Some(mask),
            None,
            cache,
            evict,
            false,
            Type::ASYNC_TOKEN,
        );
        for name in ["tt.vec", "tt.vec_axis"] {
            if let Some(a) = self.m.op_attr(load.0, name) {
                self.m.set_attr(copy.0, name, a);
            }
        }
        copy.token(self.m)
    }

    /// `mask and inside`, in the shape and encoding of the pointers.
    fn and_mask(&mut self, anchor: Op, mask: Option<Value>, ptr_ty: Type, inside: Value) -> Value {
        let ty = self.m.with_element(ptr_ty, Type::I1);
        let mut b = Builder::before(self.m, anchor);
        let splat = if b.module.is_tensor(ty) {
            tt::Splat::build(&mut b, inside, ty).result(b.module)
        } else {
            inside
        };
        match mask {
            Some(m) => arith::Andi::build(&mut b, m, splat).result(b.module),
            None => splat,
        }
    }

    /// Replaces the loads by what lies in this iteration's slot.
    fn read_slots(&mut self, anchor: Op, slot: Value, token: Value) {
        // All views first: the anchor may be one of the loads.
        let mut views = Vec::new();
        for &AsyncLoad { load, ring, slot: slot_ty } in &self.loads {
            let loc = self.m.op_loc(load.0);
            let mut b = Builder::before(self.m, anchor);
            b.set_loc(loc);
            views.push((load, ttg::MemdescIndex::build(&mut b, ring, slot, slot_ty).result(b.module)));
        }
        for (load, view) in views {
            let value = load.result(self.m);
            // A buffer that is laid out otherwise is filled from the ring like any other use.
            let ring_encoding = self.m.encoding(self.m.value_type(view));
            for u in self.m.uses(value).to_vec() {
                if let Some(a) = ttg::LocalAlloc::cast(self.m, u.op)
                    && self.m.encoding(self.m.value_type(a.result(self.m))) == ring_encoding
                {
                    self.use_view(a.result(self.m), view, token);
                    self.m.erase_op(u.op);
                }
            }
            if !self.m.is_unused(value) {
                let ty = self.m.value_type(value);
                let mut b = Builder::after(self.m, load.0);
                let loaded = ttg::LocalLoad::build(&mut b, view, Some(token), ty).result(b.module);
                self.m.replace_all_uses(value, loaded);
            }
            self.m.erase_op(load.0);
        }
    }

    /// Puts a slot in the place of a buffer. Its views become mutable with it; what reads it waits for the token.
    fn use_view(&mut self, buffer: Value, view: Value, token: Value) {
        for u in self.m.uses(buffer).to_vec() {
            self.token_users(u.op, token);
        }
        self.m.replace_all_uses(buffer, view);
    }

    fn token_users(&mut self, op: Op, token: Value) {
        match self.m.opcode(op) {
            Some(Opcode::Ttg(ttg::Kind::LocalLoad)) => self.m.set_operand_group(op, 1, &[token]),
            Some(Opcode::Ttg(ttg::Kind::MemdescTrans | ttg::Kind::MemdescSubslice)) => {
                let r = self.m.result(op);
                if let TypeKind::MemDesc { shape, element, encoding, memory_space, alloc_shape, .. } =
                    self.m.type_kind(self.m.value_type(r)).clone()
                {
                    let ty = self.m.ty(TypeKind::MemDesc {
                        shape,
                        element,
                        encoding,
                        memory_space,
                        mutable: true,
                        alloc_shape,
                    });
                    self.m.set_value_type(r, ty);
                }
                for u in self.m.uses(r).to_vec() {
                    self.token_users(u.op, token);
                }
            }
            _ => {}
        }
    }
}
