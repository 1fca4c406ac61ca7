//! Dead code: erases what nothing needs, through the values that loops carry.
//!
//! ```text
//! %r:2 = scf.for ... iter_args(%a = %x, %b = %y) {        %r = scf.for ... iter_args(%a = %x) {
//!   %c = arith.addf %a, %z                          =>      %c = arith.addf %a, %z
//!   %d = arith.addi %b, %one                                scf.yield %c
//!   scf.yield %c, %d                                      }
//! }                                                       use(%r)
//! use(%r#0)
//! ```
//!
//! Liveness starts at operations with effects and goes backwards. A use count does not find the example's `%b`: it is
//! used by its own update, and nothing else.

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use crate::diagnostic::Diagnostic;
use crate::dialect::{scf, ttg};
use crate::effects::effects;
use crate::entity::{Block, Op, Value};
use crate::module::{Module, OpSpec, ValueDef};
use crate::opdef::{Access, Opcode, Trait};

/// Erases dead code in a module.
///
/// # Errors
/// None; the signature is that of every pass.
pub fn run(module: &mut Module) -> Result<(), Diagnostic> {
    let root = module.root();
    let ops = module.all_ops(root);
    let mut live = Liveness {
        m: module,
        ops: vec![false; module.num_ops()],
        values: vec![false; module.num_values()],
        work: Vec::new(),
    };
    for &op in &ops {
        if is_root(module, op) {
            live.op(op);
        }
    }
    live.run();
    let Liveness { ops: live_ops, values: live_values, .. } = live;
    let is_live = |op: Op| live_ops[op.as_u32() as usize];
    // First no operand passes into a dead slot any more, anywhere; then the slots themselves go. What still uses them
    // then is dead.
    let slots: Vec<(Op, Slots)> = ops
        .iter()
        .filter(|&&op| is_live(op))
        .filter_map(|&op| Some((op, Slots::of(module, op, &live_values)?)))
        .collect();
    for (op, slots) in &slots {
        slots.filter_operands(module, *op);
    }
    // Inner operations come later in a walk: they are rebuilt before what holds them.
    for (op, slots) in slots.iter().rev() {
        slots.rebuild(module, *op);
    }
    let dead: FxHashSet<Op> =
        ops.iter().copied().filter(|&op| !is_live(op) && !module.is_erased(op)).collect();
    // They may use each other in any order.
    for &op in &dead {
        module.set_operands(op, &[]);
    }
    for &op in ops.iter().rev() {
        // What lies in a dead operation goes with it.
        let inside_dead = module.parent_op(op).is_some_and(|p| dead.contains(&p));
        if dead.contains(&op) && !inside_dead && !module.is_erased(op) {
            module.erase_op(op);
        }
    }
    Ok(())
}

/// What must stay whoever uses it.
fn is_root(m: &Module, op: Op) -> bool {
    if m.has_trait(op, Trait::Terminator) {
        // Live with its parent; what it passes on is live with what receives it.
        return !matches!(m.opcode(op), Some(Opcode::Scf(_)))
            && !m.has_trait(op, Trait::Pure)
            && in_live_place(m, op);
    }
    if !m.regions(op).is_empty() && m.has_trait(op, Trait::RecursiveEffects) {
        // Its contents are asked on their own, but a while loop may run for ever.
        return scf::While::cast(m, op).is_some();
    }
    let e = effects(m, op);
    let allocates = m.def(op).is_some_and(|d| d.effects.iter().any(|e| e.access == Access::Allocate));
    e.writes && !allocates
}

/// Whether a terminator ends something that is live of itself: a function, or a block of an unknown operation. The
/// returns of combine functions live with their reduction.
fn in_live_place(m: &Module, op: Op) -> bool {
    m.parent_op(op).is_none_or(|p| !m.has_trait(p, Trait::RecursiveEffects))
}

struct Liveness<'m> {
    m: &'m Module,
    ops: Vec<bool>,
    values: Vec<bool>,
    work: Vec<Value>,
}

impl Liveness<'_> {
    fn run(&mut self) {
        while let Some(value) = self.work.pop() {
            match self.m.value_def(value) {
                ValueDef::Result(op, index) => {
                    self.op(op);
                    self.result(op, index as usize);
                }
                ValueDef::Argument(block, index) => self.argument(block, index as usize),
            }
        }
    }

    fn value(&mut self, value: Value) {
        if !std::mem::replace(&mut self.values[value.as_u32() as usize], true) {
            self.work.push(value);
        }
    }

    fn values(&mut self, values: &[Value]) {
        for &v in values {
            self.value(v);
        }
    }

    /// The operation must run: so must what holds it, and it needs its operands.
    fn op(&mut self, op: Op) {
        if std::mem::replace(&mut self.ops[op.as_u32() as usize], true) {
            return;
        }
        let m = self.m;
        if let Some(parent) = m.parent_op(op) {
            self.op(parent);
        }
        match m.opcode(op) {
            // Carried values are live slot by slot.
            Some(Opcode::Scf(scf::Kind::For)) => {
                self.values(&m.operands(op)[..3]);
                self.terminators(op);
            }
            Some(Opcode::Scf(scf::Kind::If)) => {
                self.values(m.operands(op));
                self.terminators(op);
            }
            Some(Opcode::Scf(scf::Kind::While)) => self.terminators(op),
            Some(Opcode::Scf(scf::Kind::Yield)) => {}
            Some(Opcode::Scf(scf::Kind::Condition)) => self.value(m.operands(op)[0]),
            // What lies in its regions is asked on its own.
            Some(Opcode::Ttg(ttg::Kind::WarpSpecialize)) => {
                self.values(m.operands(op));
                self.terminators(op);
            }
            _ => {
                self.values(m.operands(op));
                // A combine function or the regions of an unknown operation: all of it.
                if !m.regions(op).is_empty() && !m.has_trait(op, Trait::Isolated) {
                    for inner in m.all_ops(op) {
                        self.op(inner);
                    }
                }
            }
        }
    }

    fn terminators(&mut self, op: Op) {
        for &region in self.m.regions(op) {
            for &block in self.m.region_blocks(region) {
                if let Some(last) = self.m.last_op(block) {
                    self.op(last);
                }
            }
        }
    }

    /// The n-th value that the terminator of a region passes on (after a condition).
    fn passed(&mut self, op: Op, region: usize, index: usize) {
        let m = self.m;
        let Some(&region) = m.regions(op).get(region) else { return };
        for &block in m.region_blocks(region) {
            let Some(last) = m.last_op(block) else { continue };
            let index = index + usize::from(scf::Condition::cast(m, last).is_some());
            if let Some(&v) = m.operands(last).get(index) {
                self.value(v);
            }
        }
    }

    fn region_arg(&self, op: Op, region: usize, index: usize) -> Option<Value> {
        let &region = self.m.regions(op).get(region)?;
        let &block = self.m.region_blocks(region).first()?;
        self.m.block_args(block).get(index).copied()
    }

    fn result(&mut self, op: Op, index: usize) {
        match self.m.opcode(op) {
            Some(Opcode::Scf(scf::Kind::For)) => self.carried(op, index),
            Some(Opcode::Scf(scf::Kind::If)) => {
                self.passed(op, 0, index);
                self.passed(op, 1, index);
            }
            // A result of a while is what the condition passes on.
            Some(Opcode::Scf(scf::Kind::While)) => self.passed(op, 0, index),
            _ => {}
        }
    }

    /// A slot of a `for`: initial value, argument, yielded value and result live together.
    fn carried(&mut self, op: Op, index: usize) {
        if let Some(&init) = self.m.operands(op).get(3 + index) {
            self.value(init);
        }
        if let Some(arg) = self.region_arg(op, 0, 1 + index) {
            self.value(arg);
        }
        if let Some(&result) = self.m.results(op).get(index) {
            self.value(result);
        }
        self.passed(op, 0, index);
    }

    fn argument(&mut self, block: Block, index: usize) {
        let m = self.m;
        let Some(parent) = m.block_parent_op(block) else { return };
        self.op(parent);
        match m.opcode(parent) {
            Some(Opcode::Scf(scf::Kind::For)) if index > 0 => self.carried(parent, index - 1),
            Some(Opcode::Scf(scf::Kind::While)) => {
                let in_before = m.block_region(block) == m.regions(parent).first().copied();
                if in_before {
                    if let Some(&init) = m.operands(parent).get(index) {
                        self.value(init);
                    }
                    self.passed(parent, 1, index);
                } else {
                    self.passed(parent, 0, index);
                    if let Some(&result) = m.results(parent).get(index) {
                        self.value(result);
                    }
                }
            }
            // Functions' arguments stay; whoever jumps to a block passes all of its arguments.
            _ => {}
        }
    }
}

/// Which carried values and results of a `for`, `if` or `while` stay.
struct Slots {
    /// Carried values (of a `for`, with its results; of a `while`'s first region).
    carried: Vec<bool>,
    /// Results (of an `if`; of a `while`, with the arguments of its second region).
    results: Vec<bool>,
}

impl Slots {
    /// `None` where all stay.
    fn of(m: &Module, op: Op, live: &[bool]) -> Option<Slots> {
        let is_live = |v: Value| live.get(v.as_u32() as usize).copied().unwrap_or(true);
        let args = |region: usize, first: usize| {
            let block = m.regions(op).get(region).and_then(|&r| m.region_blocks(r).first().copied());
            block.map_or(&[][..], |b| &m.block_args(b)[first..])
        };
        let either = |args: &[Value]| -> Vec<bool> {
            args.iter().zip(m.results(op)).map(|(&a, &r)| is_live(a) || is_live(r)).collect()
        };
        let slots = match m.opcode(op)? {
            Opcode::Scf(scf::Kind::For) => Slots { carried: either(args(0, 1)), results: Vec::new() },
            Opcode::Scf(scf::Kind::If) => {
                Slots { carried: Vec::new(), results: m.results(op).iter().map(|&r| is_live(r)).collect() }
            }
            Opcode::Scf(scf::Kind::While) => Slots {
                carried: args(0, 0).iter().map(|&a| is_live(a)).collect(),
                results: either(args(1, 0)),
            },
            _ => return None,
        };
        let all = slots.carried.iter().chain(&slots.results).all(|&k| k);
        (!all).then_some(slots)
    }

    /// Drops what is passed into dead slots.
    fn filter_operands(&self, m: &mut Module, op: Op) {
        let terminators: SmallVec<[Op; 2]> = m
            .regions(op)
            .iter()
            .filter_map(|&r| m.region_blocks(r).first().and_then(|&b| m.last_op(b)))
            .collect();
        match m.opcode(op) {
            Some(Opcode::Scf(scf::Kind::For)) => {
                filter_last_group(m, op, 3, &self.carried);
                filter_last_group(m, terminators[0], 0, &self.carried);
            }
            Some(Opcode::Scf(scf::Kind::If)) => {
                for terminator in terminators {
                    filter_last_group(m, terminator, 0, &self.results);
                }
            }
            _ => {
                filter_last_group(m, op, 0, &self.carried);
                filter_last_group(m, terminators[0], 1, &self.results);
                filter_last_group(m, terminators[1], 0, &self.carried);
            }
        }
    }

    /// Builds the operation again without its dead slots.
    fn rebuild(&self, m: &mut Module, op: Op) {
        let is_for = scf::For::cast(m, op).is_some();
        let keep_results = if is_for { &self.carried } else { &self.results };
        let mut spec = OpSpec::new(m.def(op).expect("registered"), m.op_loc(op));
        spec.operands = SmallVec::from_slice(m.operands(op));
        spec.segments = SmallVec::from_slice(m.segments(op));
        spec.attrs = m.op_attrs(op).iter().cloned().collect();
        let kept = filtered(m.results(op), keep_results);
        spec.results = kept.iter().map(|&r| m.value_type(r)).collect();
        let new = m.create_op(spec);
        m.insert_before(new, op);
        for i in 0..m.regions(op).len() {
            let (from, to) = (m.regions(op)[i], m.regions(new)[i]);
            m.move_blocks(from, to);
            let Some(&block) = m.region_blocks(to).first() else { continue };
            match (is_for, i) {
                (true, _) => remove_args(m, block, 1, &self.carried),
                (false, 0) => remove_args(m, block, 0, &self.carried),
                (false, _) => remove_args(m, block, 0, &self.results),
            }
        }
        for (i, value) in kept.into_iter().enumerate() {
            let replacement = m.results(new)[i];
            m.replace_all_uses(value, replacement);
        }
        for i in 0..m.results(op).len() {
            let result = m.results(op)[i];
            disconnect(m, result);
        }
        m.erase_op(op);
    }
}

fn filtered(values: &[Value], keep: &[bool]) -> Vec<Value> {
    values.iter().zip(keep).filter(|(_, k)| **k).map(|(&v, _)| v).collect()
}

/// Keeps, of the operands from `first` on, those marked; they are the last group.
fn filter_last_group(m: &mut Module, op: Op, first: usize, keep: &[bool]) {
    let kept = filtered(&m.operands(op)[first..], keep);
    let group = m.segments(op).len().saturating_sub(1);
    m.set_operand_group(op, group, &kept);
}

/// Removes the arguments that are not marked. (An `if` has none.)
fn remove_args(m: &mut Module, block: Block, first: usize, keep: &[bool]) {
    for i in (0..keep.len().min(m.block_args(block).len())).rev() {
        if !keep[i] {
            let arg = m.block_args(block)[first + i];
            disconnect(m, arg);
            m.remove_block_arg(block, first + i);
        }
    }
}

/// Takes a dead value from its users, which are dead operations waiting to be erased.
fn disconnect(m: &mut Module, value: Value) {
    let users: SmallVec<[Op; 4]> = m.uses(value).iter().map(|u| u.op).collect();
    for user in users {
        m.set_operands(user, &[]);
    }
}
