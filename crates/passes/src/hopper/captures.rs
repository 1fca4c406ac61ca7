//! What the partitions of a `ttg.warp_specialize` use from outside: their arguments.

use rustc_hash::FxHashMap;
use tilewright_ir::dialect::ttg;
use tilewright_ir::{Block, Module, Op, Value};

/// Whether a value is computed in the partition.
pub(crate) fn is_inside(module: &Module, partition: Block, v: Value) -> bool {
    module.value_block(v).is_some_and(|from| {
        from == partition
            || module.block_parent_op(from).is_some_and(|p| module.ancestor_in_block(partition, p).is_some())
    })
}

/// Hands over what a partition uses from outside: constants are made again, everything else is captured, also by the other
/// partitions, which all have the same arguments.
pub(crate) fn capture(module: &mut Module, w: ttg::WarpSpecialize, partition: Block) {
    let others: Vec<Block> = w.partitions(module).iter().map(|&r| module.region_block(r)).collect();
    let mut captures = w.captures(module).to_vec();
    let mut known: FxHashMap<Value, Value> = FxHashMap::default();
    for &v in &captures {
        if module.block_args(partition).len() < captures.len() {
            let ty = module.value_type(v);
            module.add_block_arg(partition, ty);
        }
    }
    for (&v, &here) in captures.iter().zip(module.block_args(partition)) {
        known.insert(v, here);
    }
    let mut inside: Vec<Op> = module.block_ops(partition).flat_map(|op| module.all_ops(op)).collect();
    let first = module.first_op(partition).expect("a partition has an end");
    inside.retain(|&op| !module.operands(op).is_empty());
    for op in inside {
        for i in 0..module.operands(op).len() {
            let v = module.operands(op)[i];
            if module.value_block(v).is_none() || is_inside(module, partition, v) {
                continue;
            }
            let here = match known.get(&v) {
                Some(&here) => here,
                None => {
                    let here = match module.defining_op(v).filter(|_| module.constant_value(v).is_some()) {
                        Some(constant) => {
                            let mut map = FxHashMap::default();
                            let clone = module.clone_op(constant, &mut map);
                            module.insert_before(clone, first);
                            module.result(clone)
                        }
                        None => {
                            captures.push(v);
                            let ty = module.value_type(v);
                            for &other in others.iter().filter(|&&b| b != partition) {
                                module.add_block_arg(other, ty);
                            }
                            module.add_block_arg(partition, ty)
                        }
                    };
                    known.insert(v, here);
                    here
                }
            };
            module.set_operand(op, i, here);
        }
    }
    module.set_operands_and_segments(w.0, &captures, &[captures.len() as u16]);
}

/// Makes captured constants in each partition instead.
pub(crate) fn constants_inside(module: &mut Module, w: ttg::WarpSpecialize) {
    for value in w.captures(module).to_vec() {
        let constant = module.defining_op(value).filter(|_| module.constant_value(value).is_some());
        let Some(constant) = constant else { continue };
        let index = w.captures(module).iter().position(|&v| v == value).expect("a capture");
        for region in w.partitions(module).to_vec() {
            let block = module.region_block(region);
            let here = module.block_args(block)[index];
            if module.is_unused(here) {
                continue;
            }
            let clone = module.clone_op(constant, &mut FxHashMap::default());
            module.prepend_op(block, clone);
            let again = module.result(clone);
            module.replace_all_uses(here, again);
        }
        release(module, w, value);
    }
}

/// Drops a capture that no partition uses any more.
pub(crate) fn release(module: &mut Module, w: ttg::WarpSpecialize, value: Value) {
    let mut captures = w.captures(module).to_vec();
    let Some(index) = captures.iter().position(|&v| v == value) else { return };
    for region in w.partitions(module).to_vec() {
        let block = module.region_block(region);
        module.remove_block_arg(block, index);
    }
    captures.remove(index);
    module.set_operands_and_segments(w.0, &captures, &[captures.len() as u16]);
}
