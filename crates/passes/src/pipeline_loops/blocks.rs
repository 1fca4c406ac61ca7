//! Loads through descriptors as TMA copies into rings.
//!
//! Each load has a ring of buffers before the loop, and loads that are read first by the same operation share a ring of
//! mbarriers. What is issued for one iteration is one arrival that announces the bytes, and the copies; nothing is issued past
//! the last iteration. An iteration waits for its slot's mbarrier right before the first operation that reads the slot:
//!
//! ```text
//! scf.for ... iter_args(%slot = 0, %free = 2, %phase = 0) {
//!   ttng.barrier_expect %bars[%free], 32768, %inside
//!   ttng.async_tma_copy_global_to_local %d[%row, %k_ahead] %ring[%free], %bars[%free], %inside
//!   ttng.wait_barrier %bars[%slot], %phase
//!   %d = ttng.warp_group_dot %ring[%slot], ...
//! }
//! ```
//!
//! In a cluster, what several CTAs load each of them loads a part of ([`multicast`]). Then a ring of mbarriers more says of each
//! slot that all of those CTAs have read it; one thread of each waits for that before it issues the copies.
//!
//! The phase of the mbarriers flips each time that the slot number wraps around. A slot is refilled by one thread while others
//! may still read what was in it: [`membar`](crate::membar) puts a barrier before the copy, or a
//! [split barrier](super::split_barrier) tells that they have.

use tilewright_ir::dialect::{scf, tt, ttg, ttng};
use tilewright_ir::{Block, Builder, Module, Op, Opcode, Type, TypeKind, Value};

use crate::{membar, multicast, scope, tma};

/// A load and its ring.
struct Copy {
    load: tt::DescriptorLoad,
    /// The bits in which CTAs differ that share the copy ([`multicast`]).
    mask: u32,
    ring: Value,
    slot: Type,
    group: usize,
}

/// Loads that share mbarriers.
struct Group {
    ring: Value,
    bytes: i32,
    /// The operation before which they are waited for.
    reader: Op,
}

/// The TMA copies of a loop.
pub struct Blocks {
    copies: Vec<Copy>,
    groups: Vec<Group>,
    barrier: Type,
    /// The CTAs that copy into each other's slots, and the mbarriers that say that all of them have read a slot.
    peers: u32,
    empty: Option<Value>,
}

impl Blocks {
    /// Allocates rings of `slots` buffers and mbarriers for the loop `l` before the loop `around`, which is `l` itself or
    /// has it inside, and ends the mbarriers behind it.
    pub fn allocate(
        m: &mut Module,
        l: scf::For,
        around: scf::For,
        loads: &[tt::DescriptorLoad],
        slots: u32,
    ) -> Self {
        let body = m.region_block(l.body(m));
        let barrier = tma::mbarrier_type(m, None);
        let mut blocks = Blocks { copies: Vec::new(), groups: Vec::new(), barrier, peers: 1, empty: None };
        // The cluster can't meet beside specialized warps.
        let alone = scope::enclosing(m, l.0).is_empty();
        for &load in loads {
            let (desc, value) = (load.desc(m), load.result(m));
            let bytes = tma::block_bytes(m, desc);
            let mut shape = m.shape(m.value_type(value)).unwrap_or(&[]).to_vec();
            let slot = tma::tile_buffer(m, desc, &shape);
            let reader = first_reader(m, body, value, slot).unwrap_or(load.0);
            let group = match blocks.groups.iter().position(|g| g.reader == reader) {
                Some(g) => g,
                None => {
                    let ring = blocks.barriers(m, around, slots, 1);
                    blocks.groups.push(Group { ring, bytes: 0, reader });
                    blocks.groups.len() - 1
                }
            };
            blocks.groups[group].bytes += bytes;
            shape.insert(0, slots);
            let encoding = m.encoding(slot).expect("an encoded buffer");
            let ring = tma::buffer_type(m, &shape, m.element_type(slot), encoding);
            let loc = m.op_loc(load.0);
            let mut b = Builder::before(m, around.0);
            b.set_loc(loc);
            let ring = ttg::LocalAlloc::build(&mut b, None, ring).result(b.module);
            let mask = if alone { multicast::shares(m, load) } else { 0 };
            blocks.copies.push(Copy { load, mask, ring, slot, group });
        }
        blocks.peers = multicast::peers(blocks.copies.iter().map(|c| c.mask));
        if blocks.peers != 1 {
            blocks.empty = Some(blocks.barriers(m, around, slots, blocks.peers.count_ones() as i32));
            // With the cluster each CTA's threads have met, too, before the first copies; what orders those with reads is
            // `make_free`, in iterations that issue nothing as well. At the end nothing is under way: each CTA has waited for
            // all arrivals, and for all copies that it gets.
            multicast::meet(&mut Builder::before(m, around.0));
            blocks.copies.iter().for_each(|copy| membar::leave_alone(m, copy.ring));
        }
        blocks
    }

    /// Before a slot is filled that other CTAs copy to, too: says that this one has read what was in it, and waits until all
    /// have. The phase is that of the iteration which does so, as the first fill of each slot needs none.
    pub fn make_free(&self, m: &mut Module, anchor: Op, slot: Value, phase: Value) {
        let Some(empty) = self.empty else { return };
        let mut b = Builder::before(m, anchor);
        ttg::Barrier::build(&mut b);
        let empty = ttg::MemdescIndex::build(&mut b, empty, slot, self.barrier).result(b.module);
        let arrive = ttng::ArriveBarrier::build(&mut b, empty, None, 1, false);
        multicast::mark_arrival(b.module, arrive, self.peers);
        let mut b = Builder::before(m, anchor);
        let wait = ttng::WaitBarrier::build(&mut b, empty, phase, None, &[]);
        multicast::mark_wait(b.module, wait);
    }

    /// A ring of mbarriers with so many arrivals.
    fn barriers(&self, m: &mut Module, around: scf::For, slots: u32, count: i32) -> Value {
        let ty = tma::mbarrier_type(m, Some(slots));
        let mut b = Builder::before(m, around.0);
        let ring = ttg::LocalAlloc::build(&mut b, None, ty).result(b.module);
        for slot in 0..slots as i32 {
            let slot = b.i32(slot);
            let one = ttg::MemdescIndex::build(&mut b, ring, slot, self.barrier).result(b.module);
            ttng::InitBarrier::build(&mut b, one, count);
        }
        let mut b = Builder::after(m, around.0);
        for slot in 0..slots as i32 {
            let slot = b.i32(slot);
            let one = ttg::MemdescIndex::build(&mut b, ring, slot, self.barrier).result(b.module);
            ttng::InvalBarrier::build(&mut b, one);
        }
        ring
    }

    /// The rings of buffers.
    pub fn rings(&self) -> impl Iterator<Item = Value> + '_ {
        self.copies.iter().map(|c| c.ring)
    }

    /// Begins the issue of one iteration, where `inside` holds.
    pub fn issue(&self, inside: Value, slot: Value) -> Issue<'_> {
        Issue { blocks: self, barriers: vec![None; self.groups.len()], inside, slot }
    }

    /// Replaces the loads by what lies in this iteration's slot, and waits for it where it is read.
    pub fn read(&self, m: &mut Module, top: Op, slot: Value, phase: Value) {
        // All views first: the first operation may be one of the loads.
        let mut b = Builder::before(m, top);
        let views: Vec<Value> = self
            .copies
            .iter()
            .map(|c| ttg::MemdescIndex::build(&mut b, c.ring, slot, c.slot).result(b.module))
            .collect();
        for g in &self.groups {
            let mut b = Builder::before(m, g.reader);
            let barrier = ttg::MemdescIndex::build(&mut b, g.ring, slot, self.barrier).result(b.module);
            ttng::WaitBarrier::build(&mut b, barrier, phase, None, &[]);
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
    /// The slot's mbarrier of each group whose bytes have been announced.
    barriers: Vec<Option<Value>>,
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
        let barrier = match self.barriers[c.group] {
            Some(barrier) => barrier,
            None => {
                let g = &self.blocks.groups[c.group];
                let index = ttg::MemdescIndex::build(&mut b, g.ring, slot, self.blocks.barrier);
                let barrier = index.result(b.module);
                ttng::BarrierExpect::build(&mut b, barrier, inside, g.bytes);
                self.barriers[c.group] = Some(barrier);
                barrier
            }
        };
        let buffer = ttg::MemdescIndex::build(&mut b, c.ring, slot, c.slot).result(b.module);
        let copy = ttng::AsyncTmaCopyGlobalToLocal::build(
            &mut b, desc, &coord, barrier, buffer, inside, cache, evict, false,
        );
        multicast::mark_copy(b.module, copy.0, c.mask);
        true
    }
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
