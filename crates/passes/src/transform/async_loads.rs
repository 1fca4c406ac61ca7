//! Loads that their author wants to be asynchronous (`tle.load(is_async=True)`): a copy to shared memory begins where the load stands,
//! and is waited for and read back before the first use.
//!
//! Between the two no thread waits, and no register is taken. A load that can't be a copy stays as it is and leaves a
//! [remark](crate::remarks). The value is the load's in any case: where masked-off elements are something else than zero, which is what
//! copies fill in (PTX ISA, "cp.async"), they are chosen behind the wait. The wait stands before anything that writes global memory or waits
//! for others, too, since a load that is over can't see what is written later.
//!
//! Why here: behind the pipeliner, which makes copies of what loops load, iterations ahead; behind `lower-rings`, since
//! copies are waited for by counting groups, and the groups of rings stand now; before allocation.
//!
//! ```text
//! %x = tt.load %p, %mask {tt.load.async = true}
//! ...
//! arith.addf %x, %y
//! =>
//! %buf = ttg.local_alloc : () -> !ttg.memdesc<1024xf32, #shared, #smem, mutable>
//! %t = ttg.async_copy_global_to_local %p, %buf mask %mask
//! ttg.async_commit_group tokens %t
//! ...
//! ttg.async_wait {num = 0 : i32}
//! %x = ttg.local_load %buf
//! arith.addf %x, %y
//! ```

use tilewright_ir::dialect::{tt, ttg};
use tilewright_ir::{Builder, Module, Op, Type, Value, marks};

use crate::analysis::{scope, scratch, waiting};
use crate::pass::{Pass, Property};
use crate::remarks;
use crate::target::TargetInfo;
use crate::transform::allocate_shared::buffer_bytes;
use crate::transform::software_pipeline::{async_copies, schedule};

/// The pass.
pub const PASS: Pass = Pass {
    name: "async-loads",
    summary: "begin the loads whose author wants that, and wait for them where they are used",
    requires: &[Property::LaidOut, Property::NoRings],
    ensures: &[],
    run: |m, t, _| {
        run(m, t);
        Ok(())
    },
};

/// Makes copies of the loads that can be.
pub fn run(module: &mut Module, target: &TargetInfo) {
    let all = module.all_ops(module.root());
    let wanted = all.iter().filter_map(|&op| tt::Load::cast(module, op));
    let wanted: Vec<tt::Load> =
        wanted.filter(|load| module.op_attr(load.0, marks::ASYNC).is_some()).collect();
    if wanted.is_empty() {
        return;
    }
    let mut room = target.max_shared.saturating_sub(shared_bytes(module, &all));
    // Where each is waited for, as the module is before any is changed.
    let mut copies = Vec::new();
    for load in wanted {
        if module.is_unused(load.result(module)) {
            continue;
        }
        match why_not(module, target, load, room) {
            Some(why) => {
                let text = format!("tle.load(is_async=True) waits for its value at once: {why}");
                remarks::add(module, load.0, &text);
            }
            None => {
                let slot = async_copies::slot_type(module, load);
                room -= buffer_bytes(module, slot).map_or(0, |(bytes, _)| bytes);
                copies.push((load, slot, wait_before(module, load)));
            }
        }
    }
    let begun: Vec<Begun> =
        copies.into_iter().map(|(load, slot, before)| Begun::new(module, load, slot, before)).collect();
    for (i, copy) in begun.iter().enumerate() {
        // One wait for all that are used there, before the first of them is read.
        if !begun[..i].iter().any(|earlier| earlier.before == copy.before) {
            let last = begun[i..].iter().rfind(|later| later.before == copy.before).unwrap_or(copy);
            let num = last.groups_behind(module);
            ttg::AsyncWait::build(&mut Builder::before(module, copy.before), &[], num, Type::ASYNC_TOKEN);
        }
        copy.read(module);
    }
}

/// Why a load stays one.
fn why_not(module: &mut Module, target: &TargetInfo, load: tt::Load, room: u32) -> Option<String> {
    if !target.async_copy {
        return Some(format!("{} has no asynchronous copies", target.name));
    }
    if let Some(why) = schedule::why_no_copy(module, load) {
        return Some(why.to_string());
    }
    if !scope::enclosing(module, load.0).is_empty() {
        return Some("it is a part of specialized warps".to_string());
    }
    let slot = async_copies::slot_type(module, load);
    let bytes = buffer_bytes(module, slot).map_or(u32::MAX, |(bytes, _)| bytes);
    (bytes > room).then(|| format!("it needs {bytes} bytes of shared memory, and {room} are left"))
}

/// Bytes that buffers and scratch need at most.
fn shared_bytes(module: &Module, ops: &[Op]) -> u32 {
    let buffers = ops.iter().filter_map(|&op| ttg::LocalAlloc::cast(module, op)).map(|alloc| {
        let bytes = buffer_bytes(module, module.value_type(alloc.result(module)));
        bytes.map_or(0, |(bytes, align)| bytes + align)
    });
    let scratch = ops.iter().map(|&op| scratch::scratch_bytes(module, op)).max().unwrap_or(0);
    buffers.sum::<u32>() + scratch
}

/// The operation of the load's block before which its value must be there: the first that uses it, writes global memory, or waits for
/// others.
fn wait_before(module: &Module, load: tt::Load) -> Op {
    let block = module.parent_block(load.0).expect("a load is in a block");
    let value = load.result(module);
    let users: Vec<Op> =
        module.uses(value).iter().filter_map(|u| module.ancestor_in_block(block, u.op)).collect();
    let following = std::iter::successors(module.next_op(load.0), |&op| module.next_op(op));
    let mut last = load.0;
    for op in following {
        if users.contains(&op) || waiting::settles(module, op) {
            return op;
        }
        last = op;
    }
    last
}

/// A load whose copy has begun.
struct Begun {
    load: tt::Load,
    buffer: Value,
    /// The group of the copy.
    commit: Op,
    /// Where it is waited for.
    before: Op,
}

impl Begun {
    fn new(module: &mut Module, load: tt::Load, slot: Type, before: Op) -> Begun {
        let (ptr, mask) = (load.ptr(module), load.mask(module));
        let mut b = Builder::before(module, load.0);
        let buffer = ttg::LocalAlloc::build(&mut b, None, slot).result(b.module);
        let copy = async_copies::of_load(&mut b, load, ptr, mask, buffer);
        let token = copy.token(b.module);
        let commit = ttg::AsyncCommitGroup::build(&mut b, &[token], Type::ASYNC_TOKEN).0;
        Begun { load, buffer, commit, before }
    }

    /// How many groups begin behind this one's and before the wait, at least.
    fn groups_behind(&self, module: &Module) -> i32 {
        let following = std::iter::successors(module.next_op(self.commit), |&op| module.next_op(op));
        let between = following.take_while(|&op| op != self.before);
        between.filter(|&op| ttg::AsyncCommitGroup::cast(module, op).is_some()).count() as i32
    }

    /// Reads the value where it has been waited for, and puts it in the load's place.
    fn read(&self, module: &mut Module) {
        let value = self.load.result(module);
        let ty = module.value_type(value);
        let loc = module.op_loc(self.load.0);
        let mut b = Builder::before(module, self.before);
        b.set_loc(loc);
        let read = ttg::LocalLoad::build(&mut b, self.buffer, None, ty).result(b.module);
        let read = async_copies::choose(&mut b, self.load, read);
        module.replace_all_uses(value, read);
        module.erase_op(self.load.0);
    }
}
