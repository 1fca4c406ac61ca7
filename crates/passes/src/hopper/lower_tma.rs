//! Accesses through descriptors that no other pass has taken become TMA copies: loads that are waited for where they stand,
//! stores that go on while the program does.
//!
//! Why here: behind the pipeliner, which takes the loads of loops; before the fences and waits of asynchronous dots, which
//! look at how their buffers are written; before allocation.
//!
//! - Loads that stand together (nothing but pure operations between, which don't need them) share an mbarrier and are under
//!   way together. What was loaded to be the operand of a dot is read where the copy puts it. Those that a default region begins with are under way before its
//!   warps meet.
//! - A store writes its tile to a buffer, from which the copy reads. In a loop the buffer is made before the outermost loop
//!   if there is room for it, and waited for where it is written again, in the next turn or by another store: the copy overlaps
//!   all between. Otherwise the wait stands at the end of the block. Whether the buffer has a place beside all others is known when these are
//!   placed: there it is given back where it has none (`give_back`).
//! - A descriptor that the kernel makes first of all and from its arguments becomes one more argument: a tensor map that the launch makes.
//! - Any other that it makes becomes a tensor map in the launch's scratch memory.
//!
//! ```text
//! %a = tt.descriptor_load %d[%i, %j]
//! %s = ttg.local_alloc %a
//! tt.descriptor_store %e[%i, %j], %x
//! =>
//! %s = ttg.local_alloc : () -> !ttg.memdesc<128x64xf16, #nvmma, #smem, mutable>
//! %bar = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #bar, #smem, mutable>
//! ttng.init_barrier %bar, 1
//! ttng.barrier_expect %bar, 16384, %true
//! ttng.async_tma_copy_global_to_local %d[%i, %j] %s, %bar, %true
//! ttng.wait_barrier %bar, %c0
//! ttng.inval_barrier %bar
//! %t = ttg.local_alloc %x
//! ttng.async_tma_copy_local_to_global %e[%i, %j] %t
//! ttng.async_tma_store_wait {pendings = 0}
//! ttg.local_dealloc %t
//! ```

use tilewright_ir::dialect::{arith, scf, tt, ttg, ttng};
use tilewright_ir::effects::{is_erasable, is_pure};
use tilewright_ir::flow;
use tilewright_ir::launch::{self, Number};
use tilewright_ir::marks;
use tilewright_ir::{AttrKind, Builder, Diagnostic, Module, Op, Opcode, Type, Value};

use crate::hopper::encode_descriptors::update_signature;
use crate::hopper::tma;
use crate::pass::{Pass, Property};
use crate::target::TargetInfo;
use crate::transform::allocate_shared::buffer_bytes;
use crate::transform::software_pipeline::budget;

/// The pass.
pub const PASS: Pass = Pass {
    name: "lower-tma",
    summary: "turn accesses through descriptors into TMA copies",
    requires: &[Property::LaidOut],
    ensures: &[Property::NoDescriptorAccesses],
    run: |m, t, _| run(m, t),
};

/// Lowers every access through an encoded descriptor.
///
/// # Errors
/// An access through a descriptor that TMA can't serve, with its place: descriptors of that kind should have become
/// pointers before.
pub fn run(module: &mut Module, target: &TargetInfo) -> Result<(), Diagnostic> {
    let mut scratch = 0;
    let functions: Vec<Op> = module.block_ops(module.body()).collect();
    for func in functions {
        let ops = module.all_ops(func);
        for &op in &ops {
            check(module, op)?;
        }
        // Groups of loads, each found from its first.
        for &op in &ops {
            if !module.is_erased(op) && tt::DescriptorLoad::cast(module, op).is_some() {
                let group = together(module, op);
                load(module, &group);
            }
        }
        let mut room = Room::new(target);
        for &op in &ops {
            if !module.is_erased(op)
                && let Some(store) = Store::cast(module, op)
            {
                store.lower(module, &mut room);
            }
        }
        room.relax(module);
        for &op in &ops {
            if !module.is_erased(op)
                && let Some(make) = tt::MakeTensorDescriptor::cast(module, op)
                && tma::is_encoded(module, make.result(module))
                && !by_launch(module, func, make)
            {
                make_map(module, make, &mut scratch);
            }
        }
    }
    if scratch > 0 {
        let root = module.root();
        module.set_i32_attr(root, "ttg.global_scratch_memory_size", scratch);
        module.set_i32_attr(root, "ttg.global_scratch_memory_alignment", MAP_BYTES);
    }
    Ok(())
}

/// A tensor map, which must be aligned to 64 bytes and is changed in pieces of 128 (PTX ISA, "tensormap.replace").
const MAP_BYTES: i32 = 128;

fn check(module: &Module, op: Op) -> Result<(), Diagnostic> {
    let accesses = matches!(
        module.opcode(op),
        Some(Opcode::Tt(
            tt::Kind::DescriptorLoad
                | tt::Kind::DescriptorPrefetch
                | tt::Kind::DescriptorStore
                | tt::Kind::DescriptorReduce
                | tt::Kind::DescriptorGather
                | tt::Kind::DescriptorScatter
        ))
    );
    if !accesses || tma::is_encoded(module, module.operands(op)[0]) {
        return Ok(());
    }
    let what = format!("`{}` through this descriptor", module.op_name(op));
    Err(Diagnostic::unsupported(module, module.op_loc(op), what))
}

/// The load and those behind it in its block that may be under way together with it.
fn together(module: &Module, first: Op) -> Vec<tt::DescriptorLoad> {
    let mut group = vec![tt::DescriptorLoad(first)];
    let mut loaded = vec![module.result(first)];
    let mut at = module.next_op(first);
    while let Some(op) = at {
        if module.operands(op).iter().any(|v| loaded.contains(v)) {
            break;
        }
        match tt::DescriptorLoad::cast(module, op) {
            Some(load) => {
                loaded.push(load.result(module));
                group.push(load);
            }
            None if is_pure(module, op) && module.regions(op).is_empty() => {}
            None => break,
        }
        at = module.next_op(op);
    }
    group
}

fn load(module: &mut Module, group: &[tt::DescriptorLoad]) {
    let bytes = group.iter().map(|l| tma::block_bytes(module, l.desc(module))).sum();
    let barrier = ttng::mbarrier_type(module, None);
    let ahead = may_begin_before(module, group);
    let begin = ahead.unwrap_or(group[0].0);
    let mut b = Builder::before(module, begin);
    let barrier = ttg::LocalAlloc::build(&mut b, None, barrier).result(b.module);
    ttng::InitBarrier::build(&mut b, barrier, 1);
    let yes = b.int(1, Type::I1);
    ttng::BarrierExpect::build(&mut b, barrier, yes, bytes);
    let mut buffers = Vec::new();
    for l in group {
        let desc = l.desc(module);
        let tile = module.shape(module.value_type(l.result(module))).unwrap_or(&[]).to_vec();
        let ty = tma::tile_buffer(module, desc, &tile);
        let (coord, cache, evict) = (l.indices(module).to_vec(), l.cache(module), l.evict(module));
        let mut b = Builder::before(module, ahead.unwrap_or(l.0));
        let buffer = ttg::LocalAlloc::build(&mut b, None, ty).result(b.module);
        ttng::AsyncTmaCopyGlobalToLocal::build(
            &mut b, desc, &coord, barrier, buffer, yes, cache, evict, false,
        );
        buffers.push(buffer);
    }
    let last = group[group.len() - 1].0;
    let mut b = Builder::before(module, last);
    let phase = b.i32(0);
    ttng::WaitBarrier::build(&mut b, barrier, phase, None, &[]);
    let mut b = match ahead {
        Some(w) => Builder::after(module, w),
        None => Builder::before(module, last),
    };
    ttng::InvalBarrier::build(&mut b, barrier);
    for (l, buffer) in group.iter().zip(buffers) {
        read(module, *l, buffer, last);
    }
}

/// The `ttg.warp_specialize` in front of which the copies of a group may begin, where they stand in its default region and need nothing that is computed there: so they are under
/// way while the warps meet, and these need no barrier among themselves for the mbarrier.
fn may_begin_before(module: &Module, group: &[tt::DescriptorLoad]) -> Option<Op> {
    let w = module.parent_op(group[0].0).and_then(|op| ttg::WarpSpecialize::cast(module, op))?;
    let default = module.region_block(w.default_region(module));
    let mut before = module.block_ops(default).take_while(|&op| op != group[0].0);
    let outside = |&v: &Value| module.value_block(v) != Some(default);
    let known = group.iter().all(|l| module.operands(l.0).iter().all(outside));
    let in_default = module.parent_block(group[0].0) == Some(default);
    (in_default && known && before.all(|op| is_erasable(module, op))).then_some(w.0)
}

/// Replaces what a load gave by what lies in the buffer: dot operands are read there, everything else comes to registers
/// (before `at`).
fn read(module: &mut Module, load: tt::DescriptorLoad, buffer: Value, at: Op) {
    let (value, ty) = (load.result(module), module.value_type(buffer));
    for u in module.uses(value).to_vec() {
        if let Some(alloc) = ttg::LocalAlloc::cast(module, u.op)
            && module.encoding(module.value_type(alloc.result(module))) == module.encoding(ty)
        {
            module.replace_op(u.op, &[buffer]);
        }
    }
    if !module.is_unused(value) {
        let result = module.value_type(value);
        let mut b = Builder::before(module, at);
        let loaded = ttg::LocalLoad::build(&mut b, buffer, None, result).result(b.module);
        module.replace_all_uses(value, loaded);
    }
    // The last load of a group is the anchor until its own turn, which is the last.
    module.erase_op(load.0);
}

/// Buffers that live through loops, where shared memory is left for them.
struct Room {
    /// The most that a program may have.
    bytes: u32,
    /// The buffers that have been made there, each with its loop.
    buffers: Vec<(Op, Value)>,
    /// The stores to them in program order: loop, buffer, and the wait before it.
    stores: Vec<(Op, Value, ttng::TmaStoreWait)>,
}

impl Room {
    fn new(target: &TargetInfo) -> Room {
        Room { bytes: target.max_shared, buffers: Vec::new(), stores: Vec::new() }
    }

    /// A buffer of this type before the loop, its own or, where there is no room for it, another store's.
    fn buffer(&mut self, module: &mut Module, outer: Op, ty: Type) -> Option<Value> {
        let (bytes, _) = buffer_bytes(module, ty).ok()?;
        // Scratch mostly lies where a ring has been. Where it has no place, the buffer is given back.
        if budget::alive_bytes(module, outer) + budget::BARRIERS + bytes > self.bytes {
            let same = |&&(l, v): &&(Op, Value)| l == outer && module.value_type(v) == ty;
            return self.buffers.iter().find(same).map(|b| b.1);
        }
        let mut b = Builder::before(module, outer);
        let alloc = ttg::LocalAlloc::build(&mut b, None, ty);
        let mark = module.attr(AttrKind::Unit);
        module.set_attr(alloc.0, marks::THROUGH_LOOP, mark);
        let buffer = alloc.result(module);
        let mut b = Builder::after(module, outer);
        ttng::TmaStoreWait::build(&mut b, 0);
        ttg::LocalDealloc::build(&mut b, buffer);
        self.buffers.push((outer, buffer));
        Some(buffer)
    }

    /// Lets waits of stores that always run together leave those under way that read other buffers.
    fn relax(&self, module: &mut Module) {
        for of_loop in self.stores.chunk_by(|a, b| a.0 == b.0) {
            let block = module.parent_block(of_loop[0].2.0);
            if of_loop.iter().any(|s| module.parent_block(s.2.0) != block) {
                continue;
            }
            for (i, &(_, buffer, wait)) in of_loop.iter().enumerate() {
                let before = of_loop[..i].iter().rev().chain(of_loop[i..].iter().rev());
                let others = before.take_while(|s| s.1 != buffer).count();
                module.set_i32_attr(wait.0, "pendings", others as i32);
            }
        }
    }
}

/// Waits at the end of the block for what is copied from a buffer, which ends there.
fn end(b: &mut Builder<'_>, buffer: Value) {
    let end = b.module.last_op(b.block()).expect("a block has a terminator");
    let mut b = Builder::before(b.module, end);
    ttng::TmaStoreWait::build(&mut b, 0);
    ttg::LocalDealloc::build(&mut b, buffer);
}

/// Gives a buffer back that lives through a loop (`marks::THROUGH_LOOP`): each of its stores has one of its own in its place, and waits at the end of its block, as those
/// do for which there was no room from the beginning.
pub fn give_back(module: &mut Module, buffer: ttg::LocalAlloc) {
    let shared = buffer.result(module);
    let ty = module.value_type(shared);
    let users: Vec<Op> = module.uses(shared).iter().map(|u| u.op).collect();
    for &op in &users {
        let Some(store) = ttg::LocalStore::cast(module, op) else { continue };
        let mut b = Builder::before(module, store.0);
        let own = ttg::LocalAlloc::build(&mut b, None, ty).result(b.module);
        end(&mut b, own);
        let mut behind = std::iter::successors(Some(store.0), |&op| module.next_op(op));
        let copy = behind.find(|&op| tma::is_copy(module, op) && users.contains(&op));
        for op in [Some(store.0), copy].into_iter().flatten() {
            let at = module.operands(op).iter().position(|&v| v == shared).expect("a user of the buffer");
            module.set_operand(op, at, own);
        }
    }
    for op in users {
        if ttg::LocalDealloc::cast(module, op).is_some() {
            module.erase_op(op);
        }
    }
    module.erase_op(buffer.0);
}

/// A store or reduction through a descriptor.
struct Store {
    op: Op,
    desc: Value,
    src: Value,
    coord: Vec<Value>,
    kind: Option<tt::DescriptorReduceKind>,
}

impl Store {
    fn cast(module: &Module, op: Op) -> Option<Store> {
        let (desc, src, coord, kind) = match module.opcode(op)? {
            Opcode::Tt(tt::Kind::DescriptorStore) => {
                let s = tt::DescriptorStore(op);
                (s.desc(module), s.src(module), s.indices(module), None)
            }
            Opcode::Tt(tt::Kind::DescriptorReduce) => {
                let s = tt::DescriptorReduce(op);
                (s.desc(module), s.src(module), s.indices(module), Some(s.kind(module)))
            }
            _ => return None,
        };
        Some(Store { op, desc, src, coord: coord.to_vec(), kind })
    }

    fn lower(&self, module: &mut Module, room: &mut Room) {
        let tile = module.shape(module.value_type(self.src)).unwrap_or(&[]).to_vec();
        let ty = tma::tile_buffer(module, self.desc, &tile);
        let outer = outermost_loop(module, self.op);
        match outer.and_then(|outer| Some((outer, room.buffer(module, outer, ty)?))) {
            Some((outer, buffer)) => {
                let mut b = Builder::before(module, self.op);
                let wait = ttng::TmaStoreWait::build(&mut b, 0);
                room.stores.push((outer, buffer, wait));
                ttg::LocalStore::build(&mut b, self.src, buffer);
                self.copy(&mut b, buffer);
            }
            None => {
                let mut b = Builder::before(module, self.op);
                let buffer = ttg::LocalAlloc::build(&mut b, Some(self.src), ty).result(b.module);
                self.copy(&mut b, buffer);
                end(&mut b, buffer);
            }
        }
        module.erase_op(self.op);
    }

    fn copy(&self, b: &mut Builder<'_>, buffer: Value) {
        match self.kind {
            None => {
                ttng::AsyncTmaCopyLocalToGlobal::build(b, self.desc, &self.coord, buffer);
            }
            Some(kind) => {
                ttng::AsyncTmaReduce::build(b, self.desc, &self.coord, buffer, kind);
            }
        }
    }
}

/// The outermost loop around an operation, within its partition.
fn outermost_loop(module: &Module, op: Op) -> Option<Op> {
    let (mut found, mut at) = (None, op);
    while let Some(parent) = module.parent_op(at) {
        match module.opcode(parent) {
            _ if flow::is_loop(module, parent) => found = Some(parent),
            Some(Opcode::Scf(scf::Kind::If)) => {}
            _ => break,
        }
        at = parent;
    }
    found
}

/// Lets the launch make the tensor map, if the kernel always makes the descriptor, and from what the launch knows. Says whether it does.
fn by_launch(module: &mut Module, func: Op, make: tt::MakeTensorDescriptor) -> bool {
    let Some(&entry) = module.region_blocks(tt::Func(func).body(module)).first() else { return false };
    if !launch::is_kernel(module, func) || module.parent_block(make.0) != Some(entry) {
        return false;
    }
    let (base, shape, strides) =
        (make.base(module), make.shape(module).to_vec(), make.strides(module).to_vec());
    let known = |&v: &Value| Number::of(module, v).is_some();
    if !std::iter::once(&base).chain(&shape).chain(&strides).all(known) {
        return false;
    }
    let (desc, padding) = (make.result(module), make.padding(module));
    let map = module.add_block_arg(entry, module.value_type(desc));
    update_signature(module, func, entry);
    module.replace_all_uses(desc, map);
    let mut b = Builder::before(module, make.0);
    ttng::TensormapByLaunch::build(&mut b, map, base, &shape, &strides, padding);
    module.erase_op(make.0);
    true
}

/// A tensor map in scratch memory, `offset` bytes from the CTA's part; `offset` moves on.
fn make_map(module: &mut Module, make: tt::MakeTensorDescriptor, offset: &mut i32) {
    let desc = make.result(module);
    let fields = tma::map_fields(module, desc).expect("an encoded descriptor");
    let (base, ty) = (make.base(module), module.value_type(desc));
    let (shape, strides) = (make.shape(module).to_vec(), make.strides(module).to_vec());
    let fill = i32::from(make.padding(module) == Some(2));
    let byte = module.int_type(8);
    let ptr = module.ptr_type(byte);
    let mut b = Builder::before(module, make.0);
    let map = ttg::GlobalScratchAlloc::build(&mut b, MAP_BYTES, MAP_BYTES, ptr);
    let at = map.result(b.module);
    b.module.set_i32_attr(map.0, marks::GLOBAL_SCRATCH_OFFSET, *offset);
    *offset += MAP_BYTES;
    let boxes: Vec<Value> = fields.boxes.iter().map(|&n| b.i32(n as i32)).collect();
    let extents: Vec<Value> = shape.into_iter().rev().collect();
    let bytes = b.int(i64::from(fields.elem_bytes), Type::I64);
    let steps: Vec<Value> = strides[..strides.len() - 1]
        .iter()
        .rev()
        .map(|&s| arith::Muli::build(&mut b, s, bytes).result(b.module))
        .collect();
    let one = b.i32(1);
    let ones = vec![one; boxes.len()];
    let create = ttng::TensormapCreate::build(
        &mut b,
        at,
        base,
        &boxes,
        &extents,
        &steps,
        &ones,
        fields.elem_type,
        0,
        fields.swizzle_mode,
        fill,
    );
    // One after the other maps would take as many times as long; under a condition the first warp makes them all.
    let outside = module.parent_op(make.0).is_some_and(|p| tt::Func::cast(module, p).is_some());
    let num_warps = module.int_attr(module.root(), "ttg.num-warps").map_or(1, |n| n as i32);
    let warp = if outside { (*offset / MAP_BYTES - 1) % num_warps } else { 0 };
    module.set_i32_attr(create.0, marks::MAKER, warp);
    acquire_in_partitions(module, desc, at);
    acquire(module, desc, at, ty, create.0, outside);
    module.erase_op(make.0);
}

/// A fence of the threads that copy, and the descriptor for all that use it there: right before the first of them, since the
/// fence takes as long as a memory access and nothing else needs it.
/// `made`: where a warp made the map. If that may be another than the one that copies (`any_warp` made it, or several warps
/// hand over the boxes of a store), there must be a barrier between.
fn acquire(module: &mut Module, desc: Value, at: Value, ty: Type, made: Op, any_warp: bool) {
    let users: Vec<Op> = module.uses(desc).iter().map(|u| u.op).collect();
    let Some(mut block) = module.defining_op(desc).and_then(|op| module.parent_block(op)) else { return };
    let anchor = loop {
        let within: Vec<Op> = users.iter().filter_map(|&op| module.ancestor_in_block(block, op)).collect();
        let first = within.into_iter().reduce(|a, b| if module.is_before(b, a) { b } else { a });
        let Some(first) = first else { return };
        match ttg::WarpSpecialize::cast(module, first) {
            Some(w) if users.iter().all(|&op| module.is_ancestor(first, op)) => {
                block = module.region_block(w.default_region(module));
            }
            _ => break first,
        }
    };
    let settled = |made: Op| {
        // A `ttg.warp_specialize` begins with a barrier.
        let mut between = std::iter::successors(module.next_op(made), |&op| module.next_op(op))
            .take_while(|&op| op != anchor);
        module.parent_block(made) != Some(block) || between.any(|op| ttg::Barrier::cast(module, op).is_some())
    };
    let stores = users.iter().any(|&op| stores_by_tma(module, op));
    let barrier = (any_warp || stores) && !settled(made);
    let mut b = Builder::before(module, anchor);
    if barrier {
        ttg::Barrier::build(&mut b);
    }
    let fence = ttng::TensormapFenceproxyAcquire::build(&mut b, at);
    if stores {
        b.module.set_i32_attr(fence.0, marks::STORES, 1);
    }
    let new = ttng::ReinterpretTensorDescriptor::build(&mut b, at, ty).result(b.module);
    module.replace_all_uses(desc, new);
}

fn stores_by_tma(module: &Module, op: Op) -> bool {
    let kind = module.opcode(op);
    matches!(kind, Some(Opcode::Ttng(ttng::Kind::AsyncTmaCopyLocalToGlobal | ttng::Kind::AsyncTmaReduce)))
}

/// Partitions that copy through a descriptor get the address of its map, and a fence of their own: an acquire orders the
/// accesses of the threads that execute it only (PTX ISA, "membar/fence": `fence.proxy.tensormap`).
fn acquire_in_partitions(module: &mut Module, desc: Value, at: Value) {
    let (desc_ty, map_ty) = (module.value_type(desc), module.value_type(at));
    for u in module.uses(desc).to_vec() {
        let Some(w) = ttg::WarpSpecialize::cast(module, u.op) else { continue };
        module.set_operand(u.op, u.index as usize, at);
        for region in w.partitions(module).to_vec() {
            let block = module.region_block(region);
            let map = module.block_args(block)[u.index as usize];
            let first = module.first_op(block).expect("a partition has an end");
            let users = module.uses(map).to_vec();
            module.set_value_type(map, map_ty);
            if users.is_empty() {
                continue;
            }
            let stores = users.iter().any(|u| stores_by_tma(module, u.op));
            let mut b = Builder::before(module, first);
            let fence = ttng::TensormapFenceproxyAcquire::build(&mut b, map);
            if stores {
                b.module.set_i32_attr(fence.0, marks::STORES, 1);
            }
            let here = ttng::ReinterpretTensorDescriptor::build(&mut b, map, desc_ty).result(b.module);
            for user in users {
                module.set_operand(user.op, user.index as usize, here);
            }
        }
    }
}
