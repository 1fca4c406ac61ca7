//! Runs the second of two chained warp-group dots together with the next iteration's first one, so that the arithmetic
//! between them (the softmax of attention) runs while the tensor cores compute. (FlashAttention-3, Shah et al. 2024, 3.2,
//! "intra-warpgroup overlap".)
//!
//! Which dot, the schedule finds: one that begins in a later stage than the first of its iteration. This file says which could:
//! only in the consumers' loops of [`warp_specialize`](crate::hopper::warp_specialize), where nothing keeps warp groups in step and
//! operands come through channels, whose slots a later dot may hold for an iteration more.
//!
//! A dot can be late if its left operand is in registers and comes from the other dot of the iteration, its right one is a
//! slot that nothing else reads, and its result is only carried on. What goes with it: the wait for its slot and the
//! slot's release. The loop then carries the left operand, and the number and phase of the slot. The first iteration is
//! peeled; the last dot follows the loop.
//!
//! On an H100, attention forward with D = 128 (128×128, 8 warps) gains 4.2 % by this alone, and 4.6 % together with
//! [`pingpong`](crate::hopper::pingpong), which alone gains 2.6 %.
//!
//! Of rings that the kernel has itself nothing is known but what it does. Where it looks at anything beside their fields, that may have been written before the same
//! commit, and stays behind the wait, where it was; and it may wait for a slot that is filled only when the late one is free again, but for those that
//! the same writer has filled before.
//!
//! Two things stand at the end of the iteration, since they must come behind the wait for the delayed dot: what is done to its
//! result (attention scales it), and the conversion of the new left operand, which takes the old one's registers.
//!
//! ```text
//! %r = scf.for %i = %lo to %hi iter_args(%acc = %z, %slot = ..., %phase = ...) {
//!   wait_barrier %fullk[%slot] ; %s = dot %q, %k[%slot], 0 ; arrive_barrier %emptyk[%slot]
//!   %p, %c = softmax(%s, %acc)
//!   wait_barrier %fullv[%slot] ; %d = dot %p, %v[%slot], %c ; arrive_barrier %emptyv[%slot]
//!   scf.yield %d, ...
//! }
//! =>
//! %r = scf.if %lo < %hi {
//!   wait_barrier ; %s0 = dot %q, %k[...], 0 ; arrive_barrier
//!   %p0, %c0 = softmax(%s0, %z)
//!   %l = scf.for %i = %lo + 1 to %hi iter_args(%c = %c0, %slot = ..., %phase = ..., %p = %p0, %old = ..., %oldphase = ...) {
//!     wait_barrier %fullk[%slot] ; %s = dot %q, %k[%slot], 0 ; arrive_barrier %emptyk[%slot]
//!     wait_barrier %fullv[%old], %oldphase ; %acc = dot %p, %v[%old], %c ; arrive_barrier %emptyv[%old]
//!     %p2, %c2 = softmax(%s, %acc)
//!     scf.yield %c2, ..., %p2, %slot, %phase
//!   }
//!   wait_barrier ; %d = dot %l.p, %v[%l.old], %l.c ; arrive_barrier
//!   scf.yield %d, ...
//! } else {
//!   scf.yield %z, ...
//! }
//! ```

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::dialect::{arith, scf, tt, ttg, ttng};
use tilewright_ir::effects::is_pure;
use tilewright_ir::{Block, Builder, Module, Op, Opcode, Type, TypeKind, Value};

use crate::analysis::counting::Counting;
use crate::analysis::promises::Promises;
use crate::analysis::rings::{self, guards};
use crate::analysis::scope;
use crate::transform::allocate_shared::is_view;

/// A dot that can be late.
#[derive(Debug)]
pub struct Late {
    /// The first dot of an iteration.
    pub first: ttng::WarpGroupDot,
    /// The other.
    pub dot: ttng::WarpGroupDot,
    /// Which carried value its result is.
    index: usize,
    /// What goes with it, and it, in program order.
    unit: Vec<Op>,
    /// Values of the iteration, other than its operands in registers, that the unit uses.
    uses: Vec<Value>,
}

impl Late {
    /// The dot of a loop that can be late.
    pub fn find(module: &Module, l: scf::For) -> Option<Late> {
        if scope::enclosing(module, l.0).first().is_none_or(|&(_, region)| region != 0) {
            return None;
        }
        let body = module.region_block(l.body(module));
        let ops: Vec<Op> = module.block_ops(body).collect();
        let dots: Vec<ttng::WarpGroupDot> =
            ops.iter().filter_map(|&op| ttng::WarpGroupDot::cast(module, op)).collect();
        let &[first, dot] = &dots[..] else { return None };
        let end = *ops.last()?;
        let d = dot.d(module);
        let index = module.operands(end).iter().position(|&v| v == d)?;
        let arg = module.block_args(body)[index + 1];
        let chained = module.is_tensor(module.value_type(dot.a(module)))
            && comes_from(module, body, dot.a(module), first.d(module));
        let used_behind_first = module
            .uses(arg)
            .iter()
            .all(|u| module.ancestor_in_block(body, u.op).is_some_and(|at| module.is_before(first.0, at)));
        if !chained || module.uses(d).len() != 1 || !used_behind_first {
            return None;
        }
        // The ring of the right operand: every operation on it goes along, and none is anything but a view, the wait, the
        // release and the dot.
        let ring = rings::of_buffer(module, dot.b(module))?;
        let of_ring =
            |v: Value| rings::create_of(module, v) == Some(ring) || rings::of_buffer(module, v) == Some(ring);
        let mut unit = Vec::new();
        for &op in &ops {
            if !module.operands(op).iter().any(|&v| of_ring(v)) {
                continue;
            }
            let goes_along = op == dot.0
                || is_view(module, op)
                || ttg::RingWait::cast(module, op).is_some()
                || ttg::RingRelease::cast(module, op).is_some();
            if !goes_along {
                return None;
            }
            unit.push(op);
        }
        let made: FxHashSet<Value> = unit.iter().flat_map(|&op| module.results(op).to_vec()).collect();
        let mut uses: Vec<Value> = Vec::new();
        for &op in &unit {
            for &v in module.operands(op) {
                let of_body = module.value_block(v) == Some(body) && !made.contains(&v);
                if of_body && v != dot.a(module) && v != dot.c(module) && !uses.contains(&v) {
                    uses.push(v);
                }
            }
        }
        // Slots, phases and conditions; nothing as large as a tensor.
        let small = uses.iter().all(|&v| !module.is_tensor(module.value_type(v)));
        let may_be_late = !rings::is_own(module, ring) || {
            let mut rest = ops.iter().filter(|&op| !unit.contains(op));
            rest.all(|&op| match rings::operated_on(module, op) {
                Some(other) => is_of_reader(module, op) && rings::is_filled_before(module, other, ring),
                None => touches_fields_alone(module, op),
            })
        };
        (small && may_be_late).then_some(Late { first, dot, index, unit, uses })
    }

    /// Makes it late.
    pub fn delay(&self, module: &mut Module, l: scf::For, promises: &Promises) {
        let (dot, index) = (self.dot, self.index);
        let body = module.region_block(l.body(module));
        let ops: Vec<Op> = module.block_ops(body).collect();
        let Some(&end) = ops.last() else { return };
        let args = module.block_args(body).to_vec();
        let (lower, upper, step) = (l.lower_bound(module), l.upper_bound(module), l.step(module));
        let init = l.init(module).to_vec();
        let results = module.results(l.0).to_vec();
        let types: Vec<Type> = results.iter().map(|&r| module.value_type(r)).collect();

        // The frame: nothing runs where there is no iteration.
        let mut b = Builder::before(module, l.0);
        let any = arith::Cmpi::build(&mut b, lower, upper, arith::CmpIPredicate::Slt, Type::I1);
        let any = any.result(b.module);
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
            if op != end && !self.unit.contains(&op) {
                let copy = module.clone_op(op, &mut map);
                module.insert_before(copy, l.0);
            }
        }
        let mapped = |v: Value| *map.get(&v).unwrap_or(&v);
        let (left, acc) = (dot.a(module), dot.c(module));
        let mut next: Vec<Value> = module.operands(end).iter().map(|&v| mapped(v)).collect();
        next[index] = mapped(acc);
        let carried: Vec<Value> = std::iter::once(left).chain(self.uses.iter().copied()).collect();
        let first: Vec<Value> = carried.iter().map(|&v| mapped(v)).collect();
        let counting = Counting::of(module, l, promises);
        let second = counting.second(&mut Builder::before(module, l.0), [lower, upper, step]);
        module.set_operand(l.0, 0, second);
        for (i, v) in next.into_iter().enumerate() {
            module.set_operand(l.0, 3 + i, v);
        }

        // The other iterations: the dot of the one before goes behind the first of this one.
        let mut inside = FxHashMap::default();
        let mut behind = FxHashMap::default();
        for (&v, &start) in carried.iter().zip(&first) {
            let ty = module.value_type(v);
            module.push_operand(l.0, start);
            inside.insert(v, module.add_block_arg(body, ty));
            behind.insert(v, module.add_result(l.0, ty));
        }
        let arg = args[index + 1];
        let users: Vec<_> = module.uses(arg).to_vec();
        inside.insert(acc, arg);
        let after_first = module.next_op(self.first.0).expect("a loop body ends with a yield");
        let done = self.unit_before(module, after_first, inside);
        for u in users {
            module.set_operand(u.op, u.index as usize, done);
        }
        let acc = dot.c(module);

        // The last one.
        let r = scf::Yield::build(&mut Builder::at_end(module, then), &results);
        behind.insert(dot.c(module), results[index]);
        let last = self.unit_before(module, r.0, behind);
        module.set_operand(r.0, index, last);

        module.set_operand(end, index, acc);
        for &v in &carried {
            module.push_operand(end, v);
        }
        for &op in self.unit.iter().rev() {
            module.erase_op(op);
        }
        sink(module, body, end, done, left);
        if counting.is_at_most_once() {
            let (results, init) = (module.results(l.0).to_vec(), l.init(module).to_vec());
            for (&r, &v) in results.iter().zip(&init) {
                module.replace_all_uses(r, v);
            }
            module.erase_op(l.0);
        }
    }

    /// The unit with other operands, before `anchor`; the dot's result.
    fn unit_before(&self, module: &mut Module, anchor: Op, mut map: FxHashMap<Value, Value>) -> Value {
        for &op in &self.unit {
            let copy = module.clone_op(op, &mut map);
            module.insert_before(copy, anchor);
        }
        map[&self.dot.d(module)]
    }
}

/// Whether an operation on a ring is a reader's.
fn is_of_reader(module: &Module, op: Op) -> bool {
    ttg::RingWait::cast(module, op).is_some() || ttg::RingRelease::cast(module, op).is_some()
}

/// Whether an operation, and those in it, touch no memory but fields of rings, and what nobody writes. Anything else may have been written before the commit that a late wait
/// waits for.
fn touches_fields_alone(module: &Module, op: Op) -> bool {
    let is_known = |&v: &Value| {
        !matches!(module.type_kind(module.value_type(v)), TypeKind::MemDesc { .. })
            || rings::of_buffer(module, v).is_some()
            || guards::writers(module, v).is_empty()
    };
    module.all_ops(op).into_iter().all(|op| {
        let reads =
            ttng::WarpGroupDot::cast(module, op).is_some() || ttg::LocalLoad::cast(module, op).is_some();
        let Some(def) = module.def(op).filter(|_| tt::Call::cast(module, op).is_none()) else { return false };
        def.effects.is_empty() || reads && module.operands(op).iter().all(is_known)
    })
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

/// Moves to the end of the body what is made of the delayed dot's result, and then the conversions that make the carried left
/// operand.
fn sink(module: &mut Module, body: Block, end: Op, done: Value, left: Value) {
    let mut made: FxHashSet<Value> = FxHashSet::from_iter([done]);
    let mut moved = Vec::new();
    let mut at = module.first_op(body);
    while let Some(op) = at.filter(|&op| op != end) {
        let next = module.next_op(op);
        if module.operands(op).iter().any(|v| made.contains(v)) && is_pure(module, op) {
            made.extend(module.results(op));
            moved.push(op);
        }
        at = next;
    }
    // In program order; each one's other operands stand before it already.
    for op in moved {
        module.move_before(op, end);
    }
    let mut conversions = Vec::new();
    let mut v = left;
    while let Some(op) = module.defining_op(v).filter(|&op| module.parent_block(op) == Some(body)) {
        let converts = matches!(
            module.opcode(op),
            Some(
                Opcode::Arith(arith::Kind::Truncf)
                    | Opcode::Tt(tt::Kind::FpToFp)
                    | Opcode::Ttg(ttg::Kind::ConvertLayout)
            )
        );
        if !converts || module.uses(v).len() != 1 {
            break;
        }
        conversions.push(op);
        v = module.operands(op)[0];
    }
    for op in conversions.into_iter().rev() {
        module.move_before(op, end);
    }
}
