//! Loads through descriptors as TMA copies into rings.
//!
//! Each load is a field, and loads that are read first by the same operation are fields of one ring (`ttg.ring_create`). What is
//! issued for one iteration is copied where the iteration is inside the loop. An iteration waits for its slot right before
//! the first operation that reads it:
//!
//! ```text
//! scf.for ... iter_args(%slot = 0, %free = 2, %phase = 0) {
//!   ttg.ring_acquire %ring[%free] where %inside
//!   ttg.async_copy_block_to_local %d[%row, %k_ahead], %field[%free], %inside
//!   ttg.ring_commit %ring[%free]
//!   ttg.ring_wait %ring[%slot], %phase
//!   %d = ttng.warp_group_dot %field[%slot], ...
//! }
//! ```
//!
//! In a cluster, what several CTAs load each of them loads a part of ([`multicast`]). Then a ring without fields says of each
//! slot that all of those CTAs have read it; one thread of each waits for that before it issues the copies.
//!
//! The phase flips each time that the slot number wraps around. A slot is refilled by one thread while others may still read
//! what was in it: [`membar`] puts a barrier before the copy, or a [split barrier](super::split_barrier)
//! tells that they have.

use tilewright_ir::dialect::{scf, tt, ttg};
use tilewright_ir::{Block, Builder, Module, Op, Opcode, Type, TypeKind, Value, marks};

use crate::analysis::{rings, scope};
use crate::hopper::{multicast, tma};
use crate::transform::membar;

/// A load and its field.
struct Copy {
    load: tt::DescriptorLoad,
    /// The bits in which CTAs differ that share the copy ([`multicast`]).
    mask: u32,
    field: Value,
    slot: Type,
    group: usize,
}

/// Loads that share a ring.
struct Group {
    /// The operation before which they are waited for.
    reader: Op,
    ring: Value,
}

/// The TMA copies of a loop.
pub struct Blocks {
    copies: Vec<Copy>,
    groups: Vec<Group>,
    /// A ring without fields that says of a slot that all CTAs which copy into each other's have read it.
    free: Option<Value>,
}

impl Blocks {
    /// Makes rings of `slots` slots for the loop `l` before the loop `around`, which is `l` itself or has it inside, and ends
    /// them behind it.
    pub fn allocate(
        m: &mut Module,
        l: scf::For,
        around: scf::For,
        loads: &[tt::DescriptorLoad],
        slots: u32,
    ) -> Self {
        let body = m.region_block(l.body(m));
        let mut blocks = Blocks { copies: Vec::new(), groups: Vec::new(), free: None };
        // The cluster can't meet beside specialized warps.
        let alone = scope::enclosing(m, l.0).is_empty();
        let mut readers: Vec<Op> = Vec::new();
        for &load in loads {
            let (desc, value) = (load.desc(m), load.result(m));
            let shape = m.shape(m.value_type(value)).unwrap_or(&[]).to_vec();
            let slot = tma::tile_buffer(m, desc, &shape);
            let reader = first_reader(m, body, value, slot).unwrap_or(load.0);
            let group = readers.iter().position(|&r| r == reader).unwrap_or(readers.len());
            if group == readers.len() {
                readers.push(reader);
            }
            let loc = m.op_loc(load.0);
            let mut b = Builder::before(m, around.0);
            b.set_loc(loc);
            let field = rings::field(&mut b, slot, slots);
            let mask = if alone { multicast::shares(m, load) } else { 0 };
            blocks.copies.push(Copy { load, mask, field, slot, group });
        }
        for (group, reader) in readers.into_iter().enumerate() {
            let of_group = blocks.copies.iter().filter(|c| c.group == group);
            let fields: Vec<Value> = of_group.map(|c| c.field).collect();
            let ring = ring(m, around, &fields, slots);
            blocks.groups.push(Group { reader, ring });
        }
        let peers = multicast::peers(blocks.copies.iter().map(|c| c.mask));
        if peers != 1 {
            let free = ring(m, around, &[], slots);
            let create = m.defining_op(free).expect("just made");
            m.set_i32_attr(create, marks::PEERS, peers as i32);
            blocks.free = Some(free);
            // What orders copies with reads is `make_free`, in iterations that issue nothing as well.
            blocks.copies.iter().for_each(|copy| membar::leave_alone(m, copy.field));
        }
        blocks
    }

    /// Before a slot is filled that other CTAs copy to, too: says that this one has read what was in it, and waits until all
    /// have. The phase is that of the iteration which does so, as the first fill of each slot needs none.
    pub fn make_free(&self, m: &mut Module, anchor: Op, slot: Value, phase: Value) {
        let Some(free) = self.free else { return };
        let mut b = Builder::before(m, anchor);
        ttg::RingCommit::build(&mut b, free, slot);
        ttg::RingWait::build(&mut b, free, slot, phase, None, None, None);
    }

    /// The buffers of the rings.
    pub fn fields(&self) -> impl Iterator<Item = Value> + '_ {
        self.copies.iter().map(|c| c.field)
    }

    /// Begins the issue of one iteration, where `inside` holds.
    pub fn issue(&self, inside: Value, slot: Value) -> Issue<'_> {
        Issue { blocks: self, acquired: vec![false; self.groups.len()], inside, slot }
    }

    /// Whether an operation is one of the loads.
    pub fn has(&self, op: Op) -> bool {
        self.copies.iter().any(|c| c.load.0 == op)
    }

    /// Replaces the loads by what lies in this iteration's slot, and waits for it where it is read.
    pub fn read(&self, m: &mut Module, top: Op, slot: Value, phase: Value) {
        // All views first: the first operation may be one of the loads.
        let mut b = Builder::before(m, top);
        let views: Vec<Value> = self
            .copies
            .iter()
            .map(|c| ttg::MemdescIndex::build(&mut b, c.field, slot, c.slot).result(b.module))
            .collect();
        for g in &self.groups {
            let mut b = Builder::before(m, g.reader);
            ttg::RingWait::build(&mut b, g.ring, slot, phase, None, None, None);
        }
        for (c, view) in self.copies.iter().zip(views) {
            let (value, reader) = (c.load.result(m), self.groups[c.group].reader);
            for u in m.uses(value).to_vec() {
                if let Some(a) = buffer_of_ring(m, u.op, c.slot) {
                    m.replace_op(a.0, &[view]);
                }
            }
            if !m.is_unused(value) {
                let ty = m.value_type(value);
                let mut b = Builder::before(m, reader);
                let loaded = ttg::LocalLoad::build(&mut b, view, None, ty).result(b.module);
                m.replace_all_uses(value, loaded);
            }
            m.erase_op(c.load.0);
        }
    }
}

/// The copies of one iteration on their way out.
pub struct Issue<'a> {
    blocks: &'a Blocks,
    /// The groups whose slot has been acquired.
    acquired: Vec<bool>,
    inside: Value,
    slot: Value,
}

impl Issue<'_> {
    /// Emits the copy that takes the place of `op` before `anchor`, if it is one; `mapped` gives the values of the iteration.
    pub fn copy(&mut self, m: &mut Module, anchor: Op, op: Op, mapped: impl Fn(Value) -> Value) -> bool {
        let Some(c) = self.blocks.copies.iter().find(|c| c.load.0 == op) else { return false };
        let coord: Vec<Value> = c.load.indices(m).iter().map(|&v| mapped(v)).collect();
        let (desc, cache, evict) = (c.load.desc(m), c.load.cache(m), c.load.evict(m));
        let loc = m.op_loc(op);
        let mut b = Builder::before(m, anchor);
        b.set_loc(loc);
        let (inside, slot) = (self.inside, self.slot);
        if !std::mem::replace(&mut self.acquired[c.group], true) {
            ttg::RingAcquire::build(&mut b, self.blocks.groups[c.group].ring, slot, None, Some(inside));
        }
        let buffer = ttg::MemdescIndex::build(&mut b, c.field, slot, c.slot).result(b.module);
        let copy =
            ttg::AsyncCopyBlockToLocal::build(&mut b, desc, &coord, buffer, Some(inside), cache, evict);
        multicast::mark_copy(b.module, copy.0, c.mask);
        true
    }

    /// Ends the issue before `anchor`.
    pub fn commit(self, m: &mut Module, anchor: Op) {
        let mut b = Builder::before(m, anchor);
        for (group, acquired) in self.blocks.groups.iter().zip(self.acquired) {
            if acquired {
                ttg::RingCommit::build(&mut b, group.ring, self.slot);
            }
        }
    }
}

/// A ring for the loop `around`, ended behind it.
fn ring(m: &mut Module, around: scf::For, fields: &[Value], slots: u32) -> Value {
    let ring = rings::create(&mut Builder::before(m, around.0), fields, slots);
    ttg::RingDealloc::build(&mut Builder::after(m, around.0), ring);
    ring
}

/// The allocation that `op` is, if a slot of this type can take its place.
fn buffer_of_ring(m: &Module, op: Op, slot: Type) -> Option<ttg::LocalAlloc> {
    let alloc = ttg::LocalAlloc::cast(m, op)?;
    (m.encoding(m.value_type(alloc.result(m))) == m.encoding(slot)).then_some(alloc)
}

/// Whether a buffer will be a slot of a ring: filled by one of these loads, and laid out as its descriptor's blocks.
pub fn becomes_slot(m: &Module, alloc: ttg::LocalAlloc, loads: &[tt::DescriptorLoad]) -> bool {
    loads.iter().filter(|load| alloc.src(m) == Some(load.result(m))).any(|load| {
        match m.type_kind(m.value_type(load.desc(m))) {
            TypeKind::TensorDesc { block } => m.encoding(*block) == m.encoding(m.value_type(alloc.result(m))),
            _ => false,
        }
    })
}

/// The first operation of the body that reads a loaded value: not one that makes it a buffer like the slot, or a view.
fn first_reader(m: &Module, body: Block, value: Value, slot: Type) -> Option<Op> {
    let mut first: Option<Op> = None;
    let mut work = vec![value];
    while let Some(v) = work.pop() {
        for u in m.uses(v) {
            let passes_on = match m.opcode(u.op) {
                Some(Opcode::Ttg(ttg::Kind::MemdescTrans | ttg::Kind::MemdescSubslice)) => true,
                _ => buffer_of_ring(m, u.op, slot).is_some(),
            };
            if passes_on {
                work.extend(m.results(u.op));
                continue;
            }
            let Some(at) = m.ancestor_in_block(body, u.op) else { continue };
            if first.is_none_or(|f| m.is_before(at, f)) {
                first = Some(at);
            }
        }
    }
    first
}
