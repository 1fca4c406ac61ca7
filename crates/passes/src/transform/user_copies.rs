//! Copies that a kernel wants to be asynchronous (`tle.gpu.copy(is_async=True)`): a load whose value goes into a buffer at once becomes one copy.
//!
//! The kernel commits and waits for groups of them by itself, so one that can't be is an error, not a hint that isn't followed.
//!
//! Why here: layouts say how many bytes a thread copies at a time, known now; before loops are scheduled, for which a load is
//! something to begin iterations ahead.
//!
//! ```text
//! %x = tt.load %p, %mask, %zero {tle.copy}
//! ttg.local_store %x, %buffer {tle.copy}
//! =>
//! ttg.async_copy_global_to_local %p, %buffer mask %mask
//! ```

use tilewright_ir::dialect::{tt, ttg};
use tilewright_ir::{Builder, Diagnostic, Module, Op, Value, marks};

use crate::pass::{Pass, Property};
use crate::target::TargetInfo;
use crate::transform::software_pipeline::{async_copies, schedule};

/// The pass.
pub const PASS: Pass = Pass {
    name: "user-copies",
    summary: "make copies of the loads into buffers that the kernel wants to be asynchronous",
    requires: &[Property::LaidOut],
    ensures: &[],
    run: |m, t, _| run(m, t),
};

/// Makes the copies.
///
/// # Errors
/// One that the target can't do, with the reason.
pub fn run(module: &mut Module, target: &TargetInfo) -> Result<(), Diagnostic> {
    for op in module.all_ops(module.root()) {
        if let Some(store) = ttg::LocalStore::cast(module, op)
            && module.op_attr(op, marks::COPY).is_some()
        {
            copy(module, target, store)?;
        }
    }
    Ok(())
}

fn copy(module: &mut Module, target: &TargetInfo, store: ttg::LocalStore) -> Result<(), Diagnostic> {
    let wrong = |module: &Module, why: &str| {
        let text = format!("tle.gpu.copy(is_async=True) can't be asynchronous on {}: {why}", target.name);
        Err(Diagnostic::at(module, module.op_loc(store.0), text).note(
            "make it tle.gpu.copy without is_async, which is complete when what follows reads the buffer",
        ))
    };
    if !target.async_copy {
        return wrong(module, "it has no asynchronous copies");
    }
    // Of a load whose mask is never true nothing is left but a constant: its store is complete wherever the kernel waits for the copy.
    if is_constant(module, store.src(module)) {
        module.remove_attr(store.0, marks::COPY);
        return Ok(());
    }
    let Some(load) = source(module, store.src(module)) else {
        return wrong(module, "its value comes from no load");
    };
    if let Some(why) = schedule::why_no_copy(module, load) {
        return wrong(module, why);
    }
    by_copy(module, store.0, store.src(module), store.dst(module), load);
    Ok(())
}

/// Puts an asynchronous copy to `dst` in the place of a store of a value, which was loaded.
pub(super) fn by_copy(module: &mut Module, store: Op, value: Value, dst: Value, load: tt::Load) {
    let (ptr, mask) = (load.ptr(module), load.mask(module));
    async_copies::of_load(&mut Builder::before(module, store), load, ptr, mask, dst);
    erase_store(module, store, value);
}

/// Erases a store of a value that has become a copy, with the load and the conversions that nothing else uses.
pub(super) fn erase_store(module: &mut Module, store: Op, mut value: Value) {
    let mut dead: Vec<Op> = vec![store];
    while let Some(op) = module.defining_op(value) {
        dead.push(op);
        match ttg::ConvertLayout::cast(module, op) {
            Some(convert) => value = convert.src(module),
            None => break,
        }
    }
    for op in dead {
        if module.results(op).iter().all(|&r| module.is_unused(r)) {
            module.erase_op(op);
        }
    }
}

/// Whether a value is a constant, whatever layout it was brought to.
fn is_constant(module: &Module, value: Value) -> bool {
    match ttg::ConvertLayout::of(module, value) {
        Some(convert) => is_constant(module, convert.src(module)),
        None => module.constant_value(value).is_some(),
    }
}

/// The load that gives a value, whatever layout it was brought to.
fn source(module: &Module, value: Value) -> Option<tt::Load> {
    match ttg::ConvertLayout::of(module, value) {
        Some(convert) => source(module, convert.src(module)),
        None => tt::Load::of(module, value),
    }
}
