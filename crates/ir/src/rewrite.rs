//! The greedy rewriting driver: applies folds and patterns until nothing changes.
//!
//! A worklist holds operations that may be simplified; whoever changes something enters what that could make
//! simplifiable. Constants are kept once each at the start of their function, as MLIR's folder keeps them, so that equal
//! constants are one value.

use rustc_hash::FxHashMap;

use crate::builder::Builder;
use crate::dialect::{arith, tt};
use crate::effects::is_erasable;
use crate::entity::{Attr, Block, Op, Type, Value};
use crate::marks;
use crate::module::Module;
use crate::opdef::{Opcode, Trait};

/// A rewrite of one operation: returns whether it changed anything.
pub type Pattern = fn(&mut Rewriter<'_>, Op) -> bool;

/// What an operation folds to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Folded {
    /// A value that exists.
    Value(Value),
    /// A constant (of the result's type).
    Constant(Attr),
}

/// A fold of an operation with one result: what the result is, if that can be said without new operations.
pub type Fold = fn(&mut Module, Op) -> Option<Folded>;

/// How often an operation may be looked at, on average, before the driver gives up: patterns that undo each other would
/// otherwise run for ever.
const MAX_VISITS_PER_OP: usize = 64;

/// The module while it is rewritten.
#[derive(Debug)]
pub struct Rewriter<'m> {
    /// The module.
    pub module: &'m mut Module,
    worklist: Vec<Op>,
    queued: Vec<bool>,
    /// The constants of each region that keeps its own, by their attribute.
    constants: FxHashMap<(Block, Attr), Op>,
    /// The last constant of each such region, after which new ones go.
    last_constant: FxHashMap<Block, Op>,
}

/// Applies folds and patterns to everything inside an operation. Returns whether anything changed.
pub fn rewrite(module: &mut Module, root: Op, fold: Fold, patterns: &[Pattern]) -> bool {
    let mut ops = module.all_ops(root);
    let mut budget = (ops.len() + 16) * MAX_VISITS_PER_OP;
    let mut rewriter = Rewriter {
        queued: vec![false; module.num_ops()],
        module,
        worklist: Vec::with_capacity(ops.len()),
        constants: FxHashMap::default(),
        last_constant: FxHashMap::default(),
    };
    let mut changed = rewriter.collect_constants(&ops);
    // The worklist is a stack: the first operation of the program is looked at first.
    ops.reverse();
    for op in ops {
        if op != root {
            rewriter.enqueue(op);
        }
    }
    while let Some(op) = rewriter.worklist.pop() {
        rewriter.queued[op.as_u32() as usize] = false;
        if rewriter.module.is_erased(op) || rewriter.module.parent_block(op).is_none() {
            continue;
        }
        budget -= 1;
        if budget == 0 {
            debug_assert!(false, "rewriting does not come to an end");
            return true;
        }
        changed |= rewriter.visit(op, fold, patterns);
    }
    changed
}

impl Rewriter<'_> {
    fn visit(&mut self, op: Op, fold: Fold, patterns: &[Pattern]) -> bool {
        let m = &*self.module;
        if m.results(op).iter().all(|&r| m.is_unused(r)) && is_erasable(m, op) {
            self.erase(op);
            return true;
        }
        if m.has_trait(op, Trait::Constant) {
            return false;
        }
        // What it promises of its value, another operation's would not say.
        let promises = marks::promises(m, op);
        if m.results(op).len() == 1
            && let Some(folded) = fold(self.module, op)
            && (!promises || matches!(folded, Folded::Constant(_)))
        {
            let value = match folded {
                Folded::Value(v) => v,
                Folded::Constant(attr) => {
                    let ty = self.module.value_type(self.module.result(op));
                    self.constant(op, attr, ty)
                }
            };
            self.replace(op, &[value]);
            return true;
        }
        for pattern in patterns.iter().filter(|_| !promises) {
            let before = self.module.num_ops();
            if pattern(self, op) {
                for index in before..self.module.num_ops() {
                    self.enqueue(Op::from_u32(index as u32));
                }
                if !self.module.is_erased(op) {
                    self.enqueue(op);
                }
                return true;
            }
        }
        false
    }

    /// Enters an operation into the worklist.
    pub fn enqueue(&mut self, op: Op) {
        let index = op.as_u32() as usize;
        if index >= self.queued.len() {
            self.queued.resize(index + 1, false);
        }
        if !std::mem::replace(&mut self.queued[index], true) {
            self.worklist.push(op);
        }
    }

    /// Enters the users of a value.
    pub fn enqueue_users(&mut self, value: Value) {
        let users: Vec<Op> = self.module.uses(value).iter().map(|u| u.op).collect();
        for user in users {
            self.enqueue(user);
        }
    }

    /// Enters what defines a value, which may have lost a use.
    pub fn enqueue_def(&mut self, value: Value) {
        match self.module.value_def(value) {
            crate::ValueDef::Result(op, _) => self.enqueue(op),
            crate::ValueDef::Argument(block, _) => {
                if let Some(op) = self.module.block_parent_op(block) {
                    self.enqueue(op);
                }
            }
        }
    }

    /// A builder before an operation.
    pub fn before(&mut self, op: Op) -> Builder<'_> {
        Builder::before(self.module, op)
    }

    /// Replaces the results of an operation and erases it.
    pub fn replace(&mut self, op: Op, values: &[Value]) {
        for (i, &new) in values.iter().enumerate() {
            let old = self.module.results(op)[i];
            self.enqueue_users(old);
            self.module.replace_all_uses(old, new);
        }
        self.erase(op);
    }

    /// Makes every use of a value a use of another.
    pub fn replace_uses(&mut self, old: Value, new: Value) {
        self.enqueue_users(old);
        self.module.replace_all_uses(old, new);
    }

    /// Erases an operation whose results are unused.
    pub fn erase(&mut self, op: Op) {
        let mut inner = Vec::new();
        self.module.walk(op, &mut |o| inner.push(o));
        for &o in &inner {
            for i in 0..self.module.operands(o).len() {
                self.enqueue_def(self.module.operands(o)[i]);
            }
            if let Some(block) = self.module.parent_block(o)
                && let Some(attr) = self.module.op_attr(o, "value")
                && self.constants.get(&(block, attr)) == Some(&o)
            {
                self.constants.remove(&(block, attr));
                if self.last_constant.get(&block) == Some(&o) {
                    match self.module.prev_op(o).filter(|&p| self.module.has_trait(p, Trait::Constant)) {
                        Some(prev) => self.last_constant.insert(block, prev),
                        None => self.last_constant.remove(&block),
                    };
                }
            }
        }
        self.module.erase_op(op);
    }

    /// The block at whose start the constants for an operation are kept: the entry of its function, or of the combine
    /// function that it lies in (which sees nothing from outside).
    fn constant_block(&self, op: Op) -> Option<Block> {
        let m = &*self.module;
        let mut at = op;
        loop {
            let block = m.parent_block(at)?;
            let parent = m.block_parent_op(block)?;
            if m.has_trait(parent, Trait::Isolated) || keeps_to_itself(m, parent) || m.def(parent).is_none() {
                return m.block_region(block).and_then(|r| m.region_blocks(r).first().copied());
            }
            at = parent;
        }
    }

    /// Moves the constants that exist to the start of their functions, one of each.
    fn collect_constants(&mut self, ops: &[Op]) -> bool {
        let mut changed = false;
        for &op in ops {
            if arith::Constant::cast(self.module, op).is_none() {
                continue;
            }
            let Some(attr) = self.module.op_attr(op, "value") else { continue };
            let Some(block) = self.constant_block(op) else { continue };
            // Constants may carry other attributes (a layout hint): those stay as they are.
            if self.module.op_attrs(op).len() != 1 {
                continue;
            }
            if let Some(&first) = self.constants.get(&(block, attr)) {
                let (old, new) = (self.module.result(op), self.module.result(first));
                self.module.replace_all_uses(old, new);
                self.module.erase_op(op);
                changed = true;
                continue;
            }
            let last = self.last_constant.get(&block).copied();
            let in_place = self.module.parent_block(op) == Some(block)
                && match last {
                    Some(l) => self.module.next_op(l) == Some(op),
                    None => self.module.first_op(block) == Some(op),
                };
            if !in_place {
                self.module.detach_op(op);
                match last {
                    Some(l) => self.module.insert_after(op, l),
                    None => self.module.prepend_op(block, op),
                }
                changed = true;
            }
            self.constants.insert((block, attr), op);
            self.last_constant.insert(block, op);
        }
        changed
    }

    /// A constant that an operation may use: the one that exists, or a new one at the start of the function.
    pub fn constant(&mut self, user: Op, attr: Attr, ty: Type) -> Value {
        let block = self.constant_block(user).expect("the operation lies in a block");
        if let Some(&op) = self.constants.get(&(block, attr)) {
            return self.module.result(op);
        }
        let loc = self.module.op_loc(user);
        let spec = {
            let mut spec = crate::module::OpSpec::new(arith::Kind::Constant.def(), loc);
            spec.attr("value", Some(attr));
            spec.results.push(ty);
            spec
        };
        let op = self.module.create_op(spec);
        match self.last_constant.get(&block) {
            Some(&last) => self.module.insert_after(op, last),
            None => self.module.prepend_op(block, op),
        }
        self.constants.insert((block, attr), op);
        self.last_constant.insert(block, op);
        self.module.result(op)
    }

    /// Moves the operations of a region's only block, but for the terminator, before an operation, with values for the
    /// block's arguments. Returns the terminator's operands.
    pub fn inline_block_before(&mut self, block: Block, anchor: Op, args: &[Value]) -> Vec<Value> {
        for (i, &value) in args.iter().enumerate() {
            let arg = self.module.block_args(block)[i];
            self.replace_uses(arg, value);
        }
        let ops: Vec<Op> = self.module.block_ops(block).collect();
        let (&terminator, body) = ops.split_last().expect("a complete block");
        for &op in body {
            self.module.move_before(op, anchor);
            self.enqueue(op);
        }
        let yielded = self.module.operands(terminator).to_vec();
        self.module.set_operands(terminator, &[]);
        yielded
    }
}

/// Whether an operation's regions use only what is defined in them, by convention: combine functions of reductions and
/// scans, and functions of elements, which lowerings and the executor run on their own.
pub(crate) fn keeps_to_itself(m: &Module, op: Op) -> bool {
    use tt::Kind as K;
    matches!(m.opcode(op), Some(Opcode::Tt(K::Reduce | K::Scan | K::MapElementwise)))
}
