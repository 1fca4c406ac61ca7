//! A kernel that multiplies and computes with vectors becomes two functions: one for the cube core of a block, one for its vector cores.
//!
//! Both have the same loops, branches and numbers, and of the instructions those of their core. What they hand each other lies in the workspace, and flags put it in order:
//! that was all settled before, when they were one. A third function of the kernel's name says that they belong together. Two for the host say how large a block's part of the
//! workspace is, and how many vector cores there are to each cube core.
//!
//! ```text
//! func.func @f(…) {                                  func.func private @f(…) attributes {hacc.mix_entry, …}
//!   hivm.hir.fixpipe ins(%c) outs(%w)                func.func @f_mix_aic(…) { hivm.hir.fixpipe … ; hivm.hir.sync_block_set[<CUBE>, …] … }
//!   hivm.hir.sync_block_set[<CUBE>, …]         =>    func.func @f_mix_aiv(…) { hivm.hir.sync_block_wait[<VECTOR>, …] … ; hivm.hir.load … }
//!   hivm.hir.sync_block_wait[<VECTOR>, …]            func.func @f_infer_workspace_shape_function() -> index
//!   hivm.hir.load ins(%w) outs(%a)                   func.func @f_infer_task_type_function() -> i8
//! }
//! ```

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::dialect::func;
use tilewright_ir::dialect::hivm::CoreType as Core;
use tilewright_ir::module::OpSpec;
use tilewright_ir::{AttrKind, Builder, Diagnostic, Module, Op, Opcode, Type, TypeKind, pass};

use super::effects::{core_of, cores, meets};
use super::unsupported;

/// One cube core and one vector core for each block, as AscendNPU-IR counts it.
const ONE_TO_ONE: i64 = 31;
/// One cube core and two vector cores.
const ONE_TO_TWO: i64 = 32;

/// Splits what runs on both kinds of cores; `made` are the cores that flags and barriers are of, `halved` the functions that run on two vector cores, `workspace` how many bytes
/// of it a block has.
///
/// # Errors
/// Numbers that vectors compute and products need.
pub(super) fn run(
    module: &mut Module,
    made: &FxHashMap<Op, Core>,
    halved: &FxHashSet<String>,
    workspace: u32,
) -> Result<(), Diagnostic> {
    let functions: Vec<func::Func> =
        module.block_ops(module.body()).filter_map(|op| func::Func::cast(module, op)).collect();
    let mut cubes = Vec::new();
    for whole in functions {
        let alone = cores(module, whole.0).len() < 2;
        if alone && (workspace > 0 || meets(module, whole.0)) {
            let name = module.symbol_name(whole.0).unwrap_or("kernel").to_string();
            let name = format!("{name}_infer_workspace_shape_function");
            host(module, whole.0, &name, (i64::from(workspace), Type::INDEX));
        }
        if !alone {
            let is_halved = module.symbol_name(whole.0).is_some_and(|name| halved.contains(name));
            let tasks = if is_halved { ONE_TO_TWO } else { ONE_TO_ONE };
            cubes.push(split(module, whole.0, made, (workspace, tasks)));
        }
    }
    pass::optimize(module)?;
    cubes.into_iter().try_for_each(|cube| alone(module, cube))
}

/// Splits a function; the one of the cube core.
fn split(module: &mut Module, whole: Op, made: &FxHashMap<Op, Core>, (workspace, tasks): (u32, i64)) -> Op {
    let name = module.symbol_name(whole).unwrap_or("kernel").to_string();
    declaration(module, whole, &name);
    host(
        module,
        whole,
        &format!("{name}_infer_workspace_shape_function"),
        (i64::from(workspace), Type::INDEX),
    );
    host(module, whole, &format!("{name}_infer_task_type_function"), (tasks, Type::I8));
    let other = module.clone_op(whole, &mut FxHashMap::default());
    module.insert_after(other, whole);
    // The clone has the same operations in the same order.
    let pairs: Vec<(Op, Op)> = module.all_ops(whole).into_iter().zip(module.all_ops(other)).collect();
    for (of_cube, of_vector) in pairs.into_iter().rev() {
        match made.get(&of_cube).copied().or_else(|| core_of(module, of_cube)) {
            Some(Core::Cube) => module.erase_op(of_vector),
            // (What the scalar unit reads goes when nothing needs it; locks are used by what went before.)
            Some(Core::Vector)
                if module.results(of_cube).is_empty()
                    || matches!(module.opcode(of_cube), Some(Opcode::HivmMore(_))) =>
            {
                module.erase_op(of_cube);
            }
            _ => {}
        }
    }
    for (part, suffix, core) in [(whole, "aic", "AIC"), (other, "aiv", "AIV")] {
        let attrs = [
            ("sym_name", AttrKind::Str(format!("{name}_mix_{suffix}"))),
            ("hivm.func_core_type", AttrKind::Opaque(format!("#hivm.func_core_type<{core}>"))),
            ("hivm.part_of_mix", AttrKind::Unit),
            ("mix_mode", AttrKind::Str("mix".into())),
        ];
        for (name, kind) in attrs {
            let attr = module.attr(kind);
            module.set_attr(part, name, attr);
        }
    }
    whole
}

/// Checks that the cube core needs nothing that it cannot read.
fn alone(module: &Module, cube: Op) -> Result<(), Diagnostic> {
    let found = module.all_ops(cube).into_iter().find(|&op| core_of(module, op) == Some(Core::Vector));
    match found {
        Some(op) => Err(unsupported(module, op, "a number that vectors compute and products need")),
        None => Ok(()),
    }
}

/// The declaration of the two parts.
fn declaration(module: &mut Module, whole: Op, name: &str) {
    let mut spec = OpSpec::new(func::Kind::Func.def(), module.op_loc(whole));
    for attr in ["function_type", "arg_attrs"] {
        spec.attr(attr, module.op_attr(whole, attr));
    }
    let attrs = [
        ("sym_name", AttrKind::Str(name.to_string())),
        ("sym_visibility", AttrKind::Str("private".into())),
        ("hacc.function_kind", AttrKind::Opaque("#hacc.function_kind<DEVICE>".into())),
        ("hacc.mix_entry", AttrKind::Unit),
        ("hivm.func_core_type", AttrKind::Opaque("#hivm.func_core_type<MIX>".into())),
    ];
    for (name, kind) in attrs {
        let attr = module.attr(kind);
        spec.attr(name, Some(attr));
    }
    Builder::before(module, whole).insert(spec);
}

/// A function that says a number to the host; its name ends in what of.
fn host(module: &mut Module, beside: Op, name: &str, (number, ty): (i64, Type)) {
    let kind = &name[name.rfind("infer_").unwrap_or(0)..];
    let function_type = module.ty(TypeKind::Function { inputs: Vec::new(), results: vec![ty] });
    let mut spec = OpSpec::new(func::Kind::Func.def(), module.op_loc(beside));
    let attrs = [
        ("sym_name", AttrKind::Str(name.to_string())),
        ("function_type", AttrKind::Type(function_type)),
        ("hacc.function_kind", AttrKind::Opaque("#hacc.function_kind<HOST>".into())),
        ("hacc.host_func_type", AttrKind::Opaque(format!("#hacc.host_func_type<{kind}>"))),
    ];
    for (name, kind) in attrs {
        let attr = module.attr(kind);
        spec.attr(name, Some(attr));
    }
    let made = Builder::before(module, beside).insert(spec);
    let region = module.regions(made)[0];
    let block = module.append_block(region, &[]);
    let loc = module.op_loc(beside);
    let mut b = Builder::at(module, tilewright_ir::InsertPoint::End(block), loc);
    let value = b.int(number, ty);
    func::Return::build(&mut b, &[value]);
}
