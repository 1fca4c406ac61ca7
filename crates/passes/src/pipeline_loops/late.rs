//! Delays the second of two chained warp-group dots by an iteration, so that the arithmetic between them (the softmax of
//! flash attention) runs while the tensor cores compute (FlashAttention-3, section 3.2, "intra-warpgroup overlap").
//!
//! Why here: on the expanded loop, whose rings hold the operands of the delayed dot for one iteration more, and before the
//! dots become asynchronous.
//!
//! A dot is delayed if its left operand is in registers and comes from another dot of the iteration, and its result is
//! only carried on. The loop then carries its operands instead: the left one and the accumulator as they are, the right one
//! as the number of its slot. The first iteration is peeled; the last dot follows the loop.
//!
//! ```text
//! %r = scf.for %i = %lo to %hi iter_args(%acc = %z, %slot = ...) {
//!   %s = dot %q, %k[%slot], 0
//!   %p, %c = softmax(%s, %acc)
//!   %d = dot %p, %v[%slot], %c
//!   scf.yield %d, ...
//! }
//! =>
//! %r = scf.if %lo < %hi {
//!   %s0 = dot %q, %k[...], 0
//!   %p0, %c0 = softmax(%s0, %z)
//!   %l = scf.for %i = %lo + 1 to %hi iter_args(%c = %c0, %slot = ..., %p = %p0, %old = ...) {
//!     %s = dot %q, %k[%slot], 0
//!     %acc = dot %p, %v[%old], %c
//!     %p2, %c2 = softmax(%s, %acc)
//!     scf.yield %c2, ..., %p2, %slot
//!   }
//!   %d = dot %l.p, %v[%l.old], %l.c
//!   scf.yield %d
//! } else {
//!   scf.yield %z
//! }
//! ```

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::dialect::{arith, scf, tt, ttg, ttng};
use tilewright_ir::{Block, Builder, Module, Op, Opcode, Type, Value, ValueDef};

/// The dot of a loop to delay, and the index of the carried value that is its result.
fn delayable(module: &Module, l: scf::For) -> Option<(ttng::WarpGroupDot, usize)> {
    let body = module.region_block(l.body(module));
    let dots: Vec<ttng::WarpGroupDot> =
        module.block_ops(body).filter_map(|op| ttng::WarpGroupDot::cast(module, op)).collect();
    // More dots would need more than one left under way.
    let &[first, dot] = &dots[..] else { return None };
    let end = module.last_op(body)?;
    let d = dot.d(module);
    let index = module.operands(end).iter().position(|&v| v == d)?;
    let arg = module.block_args(body)[index + 1];
    let late = |u: &tilewright_ir::Use| {
        module.ancestor_in_block(body, u.op).is_some_and(|at| module.is_before(first.0, at))
    };
    let chained = module.is_tensor(module.value_type(dot.a(module)))
        && comes_from(module, body, dot.a(module), first.d(module));
    (chained && module.uses(d).len() == 1 && module.uses(arg).iter().all(late)).then_some((dot, index))
}

/// Whether a dot of the loop is to run an iteration later, for which every ring needs another slot.
pub fn pays(module: &Module, l: scf::For, copies: &[tt::Load], stages: u32, max_shared: u32) -> bool {
    let Some((dot, _)) = delayable(module, l) else { return false };
    let bytes =
        |ty: Type| module.shape(ty).unwrap_or(&[]).iter().product::<u32>() * module.bits(ty).max(8) / 8;
    let buffer_of = |load: &tt::Load| {
        module.uses(load.result(module)).iter().find_map(|u| ttg::LocalAlloc::cast(module, u.op))
    };
    let rings: Vec<ttg::LocalAlloc> = copies.iter().filter_map(buffer_of).collect();
    let all = module.all_ops(module.root()).into_iter().filter_map(|op| ttg::LocalAlloc::cast(module, op));
    let total: u32 = all
        .map(|a| {
            let slots = if rings.contains(&a) { stages + 1 } else { 1 };
            bytes(module.value_type(a.result(module))) * slots
        })
        .sum();
    rings.iter().any(|a| a.result(module) == dot.b(module)) && total <= max_shared
}

/// Whether a value is computed, within the block, from another.
fn comes_from(module: &Module, block: Block, value: Value, source: Value) -> bool {
    let mut work = vec![value];
    let mut seen = FxHashSet::default();
    while let Some(v) = work.pop() {
        if v == source {
            return true;
        }
        if let Some(op) = module.defining_op(v)
            && module.parent_block(op) == Some(block)
            && seen.insert(op)
        {
            work.extend(module.operands(op));
        }
    }
    false
}

/// The operations between a ring and the view that a dot reads, innermost first, and the number of the slot.
fn views(module: &Module, body: Block, buffer: Value) -> Option<(Vec<Op>, Value)> {
    let mut chain = Vec::new();
    let mut at = buffer;
    loop {
        let op = module.defining_op(at)?;
        chain.push(op);
        if let Some(index) = ttg::MemdescIndex::cast(module, op) {
            chain.reverse();
            let slot = index.index(module);
            let carried = matches!(module.value_def(slot), ValueDef::Argument(b, i) if b == body && i > 0);
            return carried.then_some((chain, slot));
        }
        match module.opcode(op)? {
            Opcode::Ttg(ttg::Kind::MemdescTrans | ttg::Kind::MemdescSubslice) => at = module.operands(op)[0],
            _ => return None,
        }
    }
}

/// The dot with other operands, before `anchor`; its right operand from another slot.
fn dot_before(
    module: &mut Module,
    anchor: Op,
    like: ttng::WarpGroupDot,
    chain: &[Op],
    (old, slot): (Value, Value),
    (a, c): (Value, Value),
) -> Value {
    let mut map: FxHashMap<Value, Value> = FxHashMap::default();
    map.insert(old, slot);
    map.insert(like.a(module), a);
    map.insert(like.c(module), c);
    let mut last = like.0;
    for &op in chain.iter().chain([&like.0]) {
        last = module.clone_op(op, &mut map);
        module.insert_before(last, anchor);
    }
    module.result(last)
}

/// Delays the dot of a loop whose rings have a slot to spare.
pub fn delay(module: &mut Module, l: scf::For) {
    let body = module.region_block(l.body(module));
    let Some((dot, index)) = delayable(module, l) else { return };
    let Some((chain, slot)) = views(module, body, dot.b(module)) else { return };
    let ops: Vec<Op> = module.block_ops(body).collect();
    let Some(&end) = ops.last() else { return };
    let Some(first) = ops.iter().copied().find(|&op| ttng::WarpGroupDot::cast(module, op).is_some()) else {
        return;
    };
    let args = module.block_args(body).to_vec();
    let (lower, upper, step) = (l.lower_bound(module), l.upper_bound(module), l.step(module));
    let init = l.init(module).to_vec();
    let results = module.results(l.0).to_vec();
    let types: Vec<Type> = results.iter().map(|&r| module.value_type(r)).collect();

    // The frame: nothing runs where there is no iteration.
    let mut b = Builder::before(module, l.0);
    let any = arith::Cmpi::build(&mut b, lower, upper, arith::CmpIPredicate::Slt, Type::I1).result(b.module);
    let frame = scf::If::build(&mut b, any, &types);
    let outer = frame.results(module).to_vec();
    for (&r, &o) in results.iter().zip(&outer) {
        module.replace_all_uses(r, o);
    }
    let (then_region, else_region) = (frame.then_region(module), frame.else_region(module));
    let then = module.append_block(then_region, &[]);
    let otherwise = module.append_block(else_region, &[]);
    scf::Yield::build(&mut Builder::at_end(module, otherwise), &init);
    module.detach_op(l.0);
    module.append_op(then, l.0);

    // The first iteration, without the dot.
    let mut map: FxHashMap<Value, Value> = FxHashMap::default();
    map.insert(args[0], lower);
    map.extend(args[1..].iter().copied().zip(init.iter().copied()));
    for &op in &ops {
        if op != end && op != dot.0 {
            let copy = module.clone_op(op, &mut map);
            module.insert_before(copy, l.0);
        }
    }
    let mapped = |v: Value| *map.get(&v).unwrap_or(&v);
    let (left, acc) = (dot.a(module), dot.c(module));
    let mut next: Vec<Value> = module.operands(end).iter().map(|&v| mapped(v)).collect();
    next[index] = mapped(acc);
    let (first_left, first_slot) = (mapped(left), mapped(slot));
    let mut b = Builder::before(module, l.0);
    let second = arith::Addi::build(&mut b, lower, step).result(b.module);
    module.set_operand(l.0, 0, second);
    for (i, v) in next.into_iter().enumerate() {
        module.set_operand(l.0, 3 + i, v);
    }

    // The other iterations: the dot of the one before goes behind the first of this one.
    let carry = |module: &mut Module, v: Value| {
        let ty = module.value_type(v);
        module.push_operand(l.0, v);
        (module.add_block_arg(body, ty), module.add_result(l.0, ty))
    };
    let (left_arg, left_result) = carry(module, first_left);
    let (slot_arg, slot_result) = carry(module, first_slot);
    let arg = args[index + 1];
    let users: FxHashSet<Op> = module.uses(arg).iter().map(|u| u.op).collect();
    let after_first = module.next_op(first).expect("a loop body ends with a yield");
    let done = dot_before(module, after_first, dot, &chain, (slot, slot_arg), (left_arg, arg));
    for user in users {
        for i in 0..module.operands(user).len() {
            if module.operands(user)[i] == arg {
                module.set_operand(user, i, done);
            }
        }
    }
    let acc = dot.c(module);

    // The last one.
    let mut b = Builder::at_end(module, then);
    let r = scf::Yield::build(&mut b, &results);
    let last = dot_before(module, r.0, dot, &chain, (slot, slot_result), (left_result, results[index]));
    module.set_operand(r.0, index, last);

    module.set_operand(end, index, acc);
    module.push_operand(end, left);
    module.push_operand(end, slot);
    module.erase_op(dot.0);
}
