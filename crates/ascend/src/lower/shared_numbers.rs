//! Numbers that the vector core computes and the cube core needs: how often a loop of products goes on, say.
//!
//! Each core has a scalar unit of its own, which cannot read what is in a memory of the other one. Such a number goes through the workspace in global memory, where both read it.
//!
//! ```text
//! hivm.hir.vreduce <max> ins(%a) outs(%m)               hivm.hir.vreduce <max> ins(%a) outs(%m)
//! %n = memref.load %m[%c0]                         =>   hivm.hir.store ins(%m) outs(%w)
//! scf.for %i = %c0 to %n … { hivm.hir.mmadL1 … }        %n = memref.load %w[%c0] ; scf.for %i = %c0 to %n … { hivm.hir.mmadL1 … }
//! ```

use rustc_hash::FxHashSet;
use tilewright_ir::dialect::hivm::CoreType as Core;
use tilewright_ir::dialect::{memref, scf, tt, ttg};
use tilewright_ir::memref::MemRef;
use tilewright_ir::{AttrKind, Builder, Module, Op, Type, TypeKind, Value, ascend};

use super::effects::{core_of, cores};
use super::instructions::store;

/// Has numbers that both cores need go through global memory.
pub(super) fn run(module: &mut Module) {
    let functions: Vec<tt::Func> =
        module.block_ops(module.body()).filter_map(|op| tt::Func::cast(module, op)).collect();
    for func in functions {
        if cores(module, func.0).len() < 2 {
            continue;
        }
        for load in needed(module, func.0) {
            share(module, load);
        }
    }
}

/// The numbers read from memories of vectors that instructions of the cube core need, or loops and branches that these are in.
fn needed(m: &Module, func: Op) -> Vec<memref::Load> {
    let mut work: Vec<Value> = Vec::new();
    for op in m.all_ops(func).into_iter().filter(|&op| core_of(m, op) == Some(Core::Cube)) {
        let mut around = Some(op);
        while let Some(op) = around.filter(|&op| op != func) {
            work.extend(m.operands(op));
            if let Some(repeated) = scf::While::cast(m, op) {
                let end = m.last_op(m.region_block(repeated.before(m)));
                work.extend(end.and_then(|end| m.operands(end).first().copied()));
            }
            around = m.parent_op(op);
        }
    }
    let (mut seen, mut found) = (FxHashSet::default(), Vec::new());
    while let Some(v) = work.pop() {
        if !seen.insert(v) {
            continue;
        }
        // What a loop or branch hands on comes from what is in it.
        let made = m.defining_op(v).or_else(|| m.value_block(v).and_then(|block| m.block_parent_op(block)));
        let Some(made) = made.filter(|&op| op != func) else { continue };
        match memref::Load::cast(m, made) {
            Some(load) if core_of(m, made) == Some(Core::Vector) => found.push(load),
            _ => {
                work.extend(m.operands(made));
                for &region in m.regions(made) {
                    let ends = m.region_blocks(region).iter().filter_map(|&block| m.last_op(block));
                    ends.for_each(|end| work.extend(m.operands(end)));
                }
            }
        }
    }
    found
}

/// Puts the element that a load reads into the workspace, and reads it there.
fn share(module: &mut Module, load: memref::Load) {
    let op = load.0;
    let (from, indices, result) = (load.src(module), load.indices(module).to_vec(), load.result(module));
    let element = module.value_type(result);
    let rank = indices.len();
    let memory_space = module.attr(AttrKind::Opaque(ascend::GM.into()));
    let ty = module.ty(TypeKind::MemDesc {
        shape: std::iter::repeat_n(1, rank).collect(),
        element,
        encoding: None,
        memory_space,
        mutable: true,
        alloc_shape: None,
    });
    let ub = ascend::by_attribute(ascend::UB).unwrap_or(&ascend::GLOBAL);
    let part = MemRef { shape: vec![None; rank], element, strided: true, space: ub }.ty(module);
    let mut b = Builder::before(module, op);
    let shared = ttg::LocalAlloc::build(&mut b, None, ty).result(b.module);
    let (zero, one) = (b.int(0, Type::INDEX), b.int(1, Type::INDEX));
    let ones = vec![one; rank];
    let one_of = memref::Subview::build(&mut b, from, &indices, &ones, &ones, None, None, None, part);
    let one_of = one_of.result(b.module);
    store(&mut b, one_of, shared, false, None);
    let number = memref::Load::build(&mut b, shared, &vec![zero; rank], element).result(b.module);
    module.replace_all_uses(result, number);
    module.erase_op(op);
}
