//! Leaves the sums over lanes of a sum that a loop carries to the end of the loop: meanwhile each lane has a sum of its own.
//!
//! Why here: behind every pass that asks whether lanes hold equal values. Between the operations that this pass makes they
//! don't, and only additions and multiplications are there.
//!
//! A reduction ends with a shuffle for each factor of two by which its axis is spread over lanes. In a loop that
//! adds the reduction up, scaled or not (the denominator of attention's softmax), the shuffles can wait: lanes add what
//! is theirs, and scale it alike. What a lane begins with is the sum so far in one lane, and negative zero, which adds
//! nothing to any number, in the others.
//!
//! ```text
//! %r = scf.for ... iter_args(%l = %l0) {
//!   %s = "tt.reduce"(%p) <{axis = 1}> (add)
//!   %c = arith.mulf %l, %alpha
//!   %n = arith.addf %c, %s
//!   scf.yield %n
//! }
//! =>
//! %i = ttg.lane_first %l0 {lanes = 3}
//! %q = scf.for ... iter_args(%l = %i) {
//!   %s = "tt.reduce"(%p) <{axis = 1}> (add) {ttg.lanes_apart}
//!   %c = arith.mulf %l, %alpha
//!   %n = arith.addf %c, %s
//!   scf.yield %n
//! }
//! %r = ttg.lane_sum %q {lanes = 3}
//! ```

use tilewright_ir::dialect::{arith, scf, tt, ttg};
use tilewright_ir::marks;
use tilewright_ir::{AttrKind, Block, Builder, Module, Op, Trait, Type, Value};

use crate::analysis::scratch;
use crate::analysis::tile_layout::tile_layout;
use crate::pass::{Pass, Property};

/// The pass.
pub const PASS: Pass = Pass {
    name: "sink-lane-sums",
    summary: "add up over lanes behind loops what they add up inside",
    requires: &[Property::LaidOut],
    ensures: &[],
    run: |m, _, _| {
        run(m);
        Ok(())
    },
};

/// Does so in every loop, first ones first: one may go on with what another has.
pub fn run(module: &mut Module) {
    run_where(module, |_, _| true);
}

/// Does so in the loops that are wanted.
pub fn run_where(module: &mut Module, wanted: impl Fn(&Module, scf::For) -> bool) {
    for op in module.all_ops(module.root()) {
        let Some(l) = scf::For::cast(module, op).filter(|&l| wanted(module, l)) else { continue };
        for index in 0..module.results(op).len() {
            if let Some(sum) = Sum::find(module, l, index) {
                sum.keep_apart(module, l);
            }
        }
    }
}

/// A carried value to which each iteration adds a reduction.
struct Sum {
    index: usize,
    reduce: tt::Reduce,
    /// The lane bits along the reduction's axis.
    lanes: i32,
}

impl Sum {
    fn find(module: &Module, l: scf::For, index: usize) -> Option<Sum> {
        let body = module.region_block(l.body(module));
        let arg = module.block_args(body)[index + 1];
        let next = module.operands(module.last_op(body)?)[index];
        let add = arith::Addf::of(module, next)?;
        let ty = module.value_type(next);
        let fp32 = module.is_tensor(ty) && module.element_type(ty) == Type::F32;
        if !fp32 || !only_use(module, body, next) {
            return None;
        }
        let (x, y) = (add.lhs(module), add.rhs(module));
        let (sum, before) = match tt::Reduce::of(module, x) {
            Some(_) => (x, y),
            None => (y, x),
        };
        let reduce = tt::Reduce::of(module, sum)?;
        let scaled = || {
            let mul = arith::Mulf::of(module, before)?;
            let one = [mul.lhs(module), mul.rhs(module)].iter().filter(|&&v| v == arg).count() == 1;
            (one && only_use(module, body, before)).then_some(())
        };
        if !only_use(module, body, arg) || (before != arg && scaled().is_none()) {
            return None;
        }
        let adds = only_use(module, body, sum) && is_addition(module, reduce);
        if !adds || scratch::scratch_bytes(module, reduce.0) > 0 {
            return None;
        }
        let layout = tile_layout(module, module.value_type(*reduce.srcs(module).first()?))?;
        let along = layout.thread_bits_along(reduce.axis(module) as usize).lane;
        let lanes = (along & !layout.free_variable_masks().lane) as i32;
        (lanes != 0).then_some(Sum { index, reduce, lanes })
    }

    fn keep_apart(&self, module: &mut Module, l: scf::For) {
        let mark = module.attr(AttrKind::Unit);
        module.set_attr(self.reduce.0, marks::LANES_APART, mark);
        let operand = 3 + self.index;
        let init = module.operands(l.0)[operand];
        let apart = match ttg::LaneSum::of(module, init) {
            Some(sum) if sum.lanes(module) == self.lanes => sum.src(module),
            _ => {
                let ty = module.value_type(init);
                let mut b = Builder::before(module, l.0);
                ttg::LaneFirst::build(&mut b, init, self.lanes, ty).result(b.module)
            }
        };
        module.set_operand(l.0, operand, apart);
        let result = module.results(l.0)[self.index];
        if module.is_unused(result) {
            return;
        }
        let users = module.uses(result).to_vec();
        let ty = module.value_type(result);
        let mut b = Builder::after(module, l.0);
        let sum = ttg::LaneSum::build(&mut b, result, self.lanes, ty).result(b.module);
        for u in users {
            module.set_operand(u.op, u.index as usize, sum);
        }
    }
}

/// Whether a value is used once, by an operation of the block itself.
fn only_use(module: &Module, block: Block, value: Value) -> bool {
    matches!(module.uses(value), [one] if module.parent_block(one.op) == Some(block))
}

/// Whether a reduction adds up one tensor.
fn is_addition(module: &Module, reduce: tt::Reduce) -> bool {
    let region = module.region_block(reduce.combine(module));
    let ops: Vec<Op> = module.block_ops(region).collect();
    let &[add, end] = &ops[..] else { return false };
    reduce.srcs(module).len() == 1
        && arith::Addf::cast(module, add).is_some()
        && module.has_trait(end, Trait::Terminator)
        && module.operands(end) == module.results(add)
        && module.block_args(region).iter().all(|a| module.operands(add).contains(a))
}
