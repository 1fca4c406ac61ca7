//! Dead code elimination through loops: erases pure operations that nothing needs and carried values that only feed
//! themselves.
//!
//! Why: the software pipeliner computes addresses ahead in carried values of their own and leaves the old ones behind;
//! layout assignment leaves what it computed again elsewhere. A use count finds neither, because a carried value is used
//! by its own update.
//!
//! ```text
//! %r:2 = scf.for ... iter_args(%acc = %z, %p = %p0) {        %r = scf.for ... iter_args(%acc = %z) {
//!   %acc2 = ...                                        =>      %acc2 = ...
//!   %p2 = tt.addptr %p, %step                                  scf.yield %acc2
//!   scf.yield %acc2, %p2                                     }
//! }
//! ```

use rustc_hash::FxHashSet;
use tilewright_ir::dialect::scf;
use tilewright_ir::module::OpSpec;
use tilewright_ir::{Module, Op, Opcode, Trait, Value, ValueDef};

/// Erases what is dead in the function.
pub fn run(module: &mut Module, func: Op) {
    let ops = module.all_ops(func);
    let live = Liveness::of(module, &ops);
    // Loops lose their dead carried values; inner ones first, so that an outer one is rebuilt with them inside.
    for &op in ops.iter().rev() {
        if let Some(l) = scf::For::cast(module, op)
            && live.ops.contains(&op)
        {
            let args = module.block_args(module.region_block(l.body(module))).to_vec();
            let keep: Vec<bool> = args[1..].iter().map(|a| live.values.contains(a)).collect();
            if keep.iter().any(|k| !k) {
                drop_carried(module, l, &keep);
            }
        }
    }
    // What remains dead: drop all operands first, since dead operations may use each other around a loop.
    let dead: Vec<Op> =
        ops.iter().copied().filter(|op| !live.ops.contains(op) && !module.is_erased(*op)).collect();
    for &op in dead.iter().rev() {
        if !module.is_erased(op) && module.results(op).iter().all(|&r| module.is_unused(r)) {
            module.erase_op(op);
        }
    }
}

struct Liveness {
    ops: FxHashSet<Op>,
    values: FxHashSet<Value>,
}

impl Liveness {
    fn of(module: &Module, ops: &[Op]) -> Self {
        let mut live = Liveness { ops: FxHashSet::default(), values: FxHashSet::default() };
        let mut work = Vec::new();
        for &op in ops {
            let pure = module.has_trait(op, Trait::Pure) || module.has_trait(op, Trait::RecursiveEffects);
            let ends_loop = matches!(module.opcode(op), Some(Opcode::Scf(scf::Kind::Yield)));
            // A reduction's region is part of it; a while loop may not end, so it stays.
            let stays = matches!(module.opcode(op), Some(Opcode::Scf(scf::Kind::While)));
            if (!pure && !ends_loop) || stays {
                live.op(module, op, &mut work);
            }
        }
        while let Some(v) = work.pop() {
            live.reach(module, v, &mut work);
        }
        live
    }

    fn op(&mut self, module: &Module, op: Op, work: &mut Vec<Value>) {
        if !self.ops.insert(op) {
            return;
        }
        match module.opcode(op) {
            Some(Opcode::Scf(scf::Kind::For)) => {
                let l = scf::For(op);
                work.extend([l.lower_bound(module), l.upper_bound(module), l.step(module)]);
                if let Some(y) = module.last_op(module.region_block(l.body(module))) {
                    self.ops.insert(y);
                }
            }
            Some(Opcode::Scf(scf::Kind::If)) => work.push(scf::If(op).condition(module)),
            _ => work.extend(module.operands(op)),
        }
        // What control flow and reductions end with is alive with them; the values are followed one by one.
        for &region in module.regions(op) {
            for &block in module.region_blocks(region) {
                if let Some(end) = module.last_op(block) {
                    if matches!(module.opcode(end), Some(Opcode::Scf(scf::Kind::Yield)))
                        && !matches!(module.opcode(op), Some(Opcode::Scf(scf::Kind::While)))
                    {
                        self.ops.insert(end);
                    } else {
                        self.op(module, end, work);
                    }
                }
            }
        }
        if let Some(parent) = module.parent_op(op) {
            self.op(module, parent, work);
        }
    }

    fn reach(&mut self, module: &Module, value: Value, work: &mut Vec<Value>) {
        if !self.values.insert(value) {
            return;
        }
        match module.value_def(value) {
            ValueDef::Result(op, i) => {
                self.op(module, op, work);
                match module.opcode(op) {
                    Some(Opcode::Scf(scf::Kind::For)) => {
                        let body = module.region_block(scf::For(op).body(module));
                        work.push(module.block_args(body)[i as usize + 1]);
                    }
                    Some(Opcode::Scf(scf::Kind::If)) => {
                        for &region in module.regions(op) {
                            let end = module.region_blocks(region).first().and_then(|&b| module.last_op(b));
                            work.extend(end.map(|y| module.operands(y)[i as usize]));
                        }
                    }
                    _ => {}
                }
            }
            ValueDef::Argument(block, i) => {
                let Some(parent) = module.block_parent_op(block) else { return };
                if let (Some(l), Some(i)) = (scf::For::cast(module, parent), (i as usize).checked_sub(1)) {
                    self.op(module, parent, work);
                    work.push(l.init(module)[i]);
                    work.extend(module.last_op(block).map(|y| module.operands(y)[i]));
                }
            }
        }
    }
}

/// Rebuilds a loop without the carried values that are not kept, and returns the new loop.
fn drop_carried(module: &mut Module, l: scf::For, keep: &[bool]) {
    let body = module.region_block(l.body(module));
    let kept =
        |v: &[Value]| -> Vec<Value> { v.iter().zip(keep).filter(|(_, k)| **k).map(|(&v, _)| v).collect() };
    let init = kept(l.init(module));
    let yielded = module.last_op(body).expect("a loop body ends with a yield");
    let values = kept(module.operands(yielded));
    module.set_operand_group(yielded, 0, &values);
    let old_results = kept(module.results(l.0));
    let mut spec = OpSpec::new(scf::Kind::For.def(), module.op_loc(l.0));
    for v in [l.lower_bound(module), l.upper_bound(module), l.step(module)] {
        spec.operand(v);
    }
    spec.operand_group(&init);
    spec.results = old_results.iter().map(|&r| module.value_type(r)).collect();
    spec.attrs = module.op_attrs(l.0).iter().cloned().collect();
    let new = module.create_op(spec);
    module.insert_before(new, l.0);
    for (i, &old) in old_results.iter().enumerate() {
        let r = module.results(new)[i];
        module.replace_all_uses(old, r);
    }
    let (from, to) = (module.regions(l.0)[0], module.regions(new)[0]);
    module.move_blocks(from, to);
    // The dead arguments' last users are dead themselves: erase them from the end of the block backwards.
    for i in (0..keep.len()).rev().filter(|&i| !keep[i]) {
        let arg = module.block_args(body)[i + 1];
        erase_users(module, arg);
        module.remove_block_arg(body, i + 1);
    }
    module.erase_op(l.0);
}

/// Erases the pure operations that use a dead value, and what uses those.
fn erase_users(module: &mut Module, value: Value) {
    while let Some(u) = module.uses(value).first().copied() {
        for i in 0..module.results(u.op).len() {
            let r = module.results(u.op)[i];
            erase_users(module, r);
        }
        if !module.is_erased(u.op) {
            module.erase_op(u.op);
        }
    }
}
