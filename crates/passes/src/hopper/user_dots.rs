//! Products that the kernel issues and waits for itself (`tle.gpu.wgmma`, marked [`AUTHORED`](marks::AUTHORED)): that the target has them,
//! and that nothing looks at one that is under way.
//!
//! Why here: behind the inlining of calls, so that control flow is all that results pass through; before everything that would give them
//! layouts. On the CPU executor they become ordinary products.
//!
//! A result is under way from its product to the wait that ends it. Until then another product may add to it, loops and branches may
//! carry it, and waits may leave it: one that leaves n products leaves a result with fewer than n products behind its own, as far
//! as the block of the wait shows.
//!
//! ```text
//! %d = ttng.warp_group_dot %a, %b, %c {isAsync, tle.wgmma}
//! %x = arith.mulf %d, %scale                                          error: it is under way
//! %w = ttng.warp_group_dot_wait %d {pendings = 0}
//! ```
//!
//! The waits are the author's. What products read stays in use until these: `async-dots` adds it to them, when all layouts are known.

use rustc_hash::FxHashSet;
use tilewright_ir::dialect::tt::{self, InputPrecision};
use tilewright_ir::dialect::{ttg, ttng};
use tilewright_ir::{Builder, Diagnostic, Module, Op, Type, Value, flow, marks};

use crate::analysis::scope;
use crate::pass::Pass;
use crate::target::TargetInfo;
use crate::transform::allocate_shared::is_view;
use crate::transform::assign_layouts::warp_group_shape;

/// The pass.
pub const PASS: Pass = Pass {
    name: "user-dots",
    summary: "check the products that the kernel issues and waits for itself",
    requires: &[],
    ensures: &[],
    run: |m, t, o| {
        fits(m, t, o.num_warps)?;
        waited(m)
    },
};

/// Whether the kernel issues a product itself.
pub(crate) fn is_authored(module: &Module, op: Op) -> bool {
    module.op_attr(op, marks::AUTHORED).is_some()
}

fn authored(module: &Module, of: Op) -> Vec<ttng::WarpGroupDot> {
    let dots = module.all_ops(of).into_iter().filter(|&op| is_authored(module, op));
    dots.filter_map(|op| ttng::WarpGroupDot::cast(module, op)).collect()
}

/// How warps share the product, whose warps are the kernel's where it is in no partition.
pub(crate) fn warps_of(module: &Module, dot: ttng::WarpGroupDot, num_warps: u32) -> Option<[u32; 3]> {
    let warps = match scope::enclosing(module, dot.0).first() {
        Some(&(w, region)) if region > 0 => w.partition_num_warps(module)[region - 1] as u32,
        _ => num_warps,
    };
    let result = module.value_type(dot.d(module));
    let &[m, n] = module.shape(result)? else { return None };
    warp_group_shape(m, n, warps, module.is_int(result))
}

/// Checks that the target has such products, and that the warps that run them are whole warp groups.
fn fits(module: &Module, target: &TargetInfo, num_warps: u32) -> Result<(), Diagnostic> {
    for dot in authored(module, module.root()) {
        let wrong = |text: String| Diagnostic::at(module, module.op_loc(dot.0), text);
        if !target.dots.wgmma {
            let text = format!(
                "not supported on {}: tle.gpu.wgmma: this target has no products of warp groups",
                target.name
            );
            return Err(wrong(text).note("tl.dot runs anywhere"));
        }
        if warps_of(module, dot, num_warps).is_none() {
            let shape = module.shape(module.value_type(dot.d(module))).unwrap_or(&[]);
            let text = format!(
                "a tle.gpu.wgmma with a result of shape {shape:?} cannot be shared by the warps that run it"
            );
            return Err(wrong(text).note(
                "these must be four or a multiple of it, of which each four have 64 rows of the result",
            ));
        }
    }
    Ok(())
}

/// Checks that nothing looks at a product that is under way.
///
/// # Errors
/// What does, with its place.
pub fn waited(module: &Module) -> Result<(), Diagnostic> {
    for func in module.block_ops(module.body()) {
        let dots = authored(module, func);
        if dots.is_empty() {
            continue;
        }
        let under_way = under_way(module, &dots);
        for op in module.all_ops(func) {
            let looks = |(i, v): (usize, &Value)| under_way.contains(v) && !passes_on(module, op, i);
            if module.operands(op).iter().enumerate().any(looks) {
                let text = "the result of a tle.gpu.wgmma is used here, where it may be under way";
                let note = "pass it through tle.gpu.wgmma_wait first: acc = tle.gpu.wgmma_wait(0, acc)";
                return Err(Diagnostic::at(module, module.op_loc(op), text).note(note));
            }
        }
        for dot in dots {
            if module.is_tensor(module.value_type(dot.a(module))) && ending_wait(module, dot).is_none() {
                let what = "a tle.gpu.wgmma with `a` in registers that no tle.gpu.wgmma_wait ends behind it in the same loop or branch";
                return Err(Diagnostic::unsupported(module, module.op_loc(dot.0), what)
                    .note("wait for it there, or give `a` as a buffer"));
            }
        }
    }
    Ok(())
}

/// All values that are, or may be, under way.
fn under_way(module: &Module, dots: &[ttng::WarpGroupDot]) -> FxHashSet<Value> {
    let mut found = FxHashSet::default();
    let mut work: Vec<Value> = dots.iter().map(|dot| dot.d(module)).collect();
    while let Some(v) = work.pop() {
        if !found.insert(v) {
            continue;
        }
        for u in module.uses(v) {
            let index = u.index as usize;
            if let Some(wait) = ttng::WarpGroupDotWait::cast(module, u.op)
                && leaves(module, wait, v)
            {
                work.push(wait.outputs(module)[index]);
            }
            work.extend(flow::edges_of_user(module, u.op).iter().filter_map(|e| e.target(u.op, index)));
        }
    }
    found
}

/// Whether an operation may have, as this operand, what is under way.
fn passes_on(module: &Module, op: Op, index: usize) -> bool {
    is_authored(module, op) && index == 2
        || ttng::WarpGroupDotWait::cast(module, op).is_some()
        || flow::edges_of_user(module, op).iter().any(|e| e.target(op, index).is_some())
}

/// Whether a wait may leave a value under way that goes into it.
fn leaves(module: &Module, wait: ttng::WarpGroupDotWait, value: Value) -> bool {
    let Some(block) = module.parent_block(wait.0) else { return true };
    let defined = module.defining_op(value).filter(|&op| module.parent_block(op) == Some(block));
    let between = module.block_ops(block).take_while(|&op| op != wait.0);
    let behind =
        between.filter(|&op| is_authored(module, op) && defined.is_none_or(|d| module.is_before(d, op)));
    (behind.count() as i32) < wait.pendings(module)
}

/// The first wait behind a product in its block that ends it.
fn ending_wait(module: &Module, dot: ttng::WarpGroupDot) -> Option<ttng::WarpGroupDotWait> {
    let mut behind = 0;
    let ops = std::iter::successors(module.next_op(dot.0), |&op| module.next_op(op));
    ops.into_iter().find_map(|op| {
        behind += i32::from(is_authored(module, op));
        ttng::WarpGroupDotWait::cast(module, op).filter(|wait| wait.pendings(module) <= behind)
    })
}

/// Makes the products ordinary ones: for the CPU executor, which has no others.
///
/// # Errors
/// As [`waited`].
pub fn to_ordinary(module: &mut Module) -> Result<(), Diagnostic> {
    waited(module)?;
    for op in module.all_ops(module.root()) {
        if let Some(wait) = ttng::WarpGroupDotWait::cast(module, op) {
            let inputs = wait.inputs(module).to_vec();
            module.replace_op(op, &inputs);
        } else if let Some(dot) = ttng::WarpGroupDot::cast(module, op) {
            let c = dot.c(module);
            let precision = match dot.input_precision(module) {
                Some(0) => InputPrecision::Tf32,
                _ => InputPrecision::Ieee,
            };
            let imprecise = dot.max_num_imprecise_acc(module);
            let (a, b) = (loaded(module, op, dot.a(module)), loaded(module, op, dot.b(module)));
            let mut builder = Builder::before(module, op);
            let made = tt::Dot::build(&mut builder, a, b, c, precision, imprecise, tt::Tiling::Default)
                .result(builder.module);
            module.replace_op(op, &[made]);
        }
    }
    Ok(())
}

/// What an operand holds, loaded before an operation.
fn loaded(module: &mut Module, before: Op, operand: Value) -> Value {
    if module.is_tensor(module.value_type(operand)) {
        return operand;
    }
    if let Some(view) = ttg::MemdescTrans::of(module, operand) {
        let (src, order) = (view.src(module), view.order(module));
        let src = loaded(module, before, src);
        let ty = tensor_of(module, operand);
        return tt::Trans::build(&mut Builder::before(module, before), src, order, ty).result(module);
    }
    let ty = tensor_of(module, operand);
    ttg::LocalLoad::build(&mut Builder::before(module, before), operand, None, ty).result(module)
}

fn tensor_of(module: &mut Module, buffer: Value) -> Type {
    let ty = module.value_type(buffer);
    let (shape, element) = (module.shape(ty).unwrap_or(&[]).to_vec(), module.element_type(ty));
    module.tensor_type(&shape, element, None)
}

/// Adds to each wait of the author's what its products read: their buffers, and left operands in registers. So they stay in use
/// until then.
pub(crate) fn hold(module: &mut Module, func: Op) {
    let waits = module.all_ops(func).into_iter().filter_map(|op| ttng::WarpGroupDotWait::cast(module, op));
    for wait in waits.collect::<Vec<_>>() {
        let inputs = wait.inputs(module).to_vec();
        let mut held = inputs.clone();
        for dot in dots_of(module, &inputs) {
            let (a, b) = (dot.a(module), dot.b(module));
            let buffers = [a, b].into_iter().filter(|&v| !module.is_tensor(module.value_type(v)));
            held.extend(buffers.filter_map(|v| seen_from(module, v, wait.0)));
            if module.is_tensor(module.value_type(a)) && ending_wait(module, dot) == Some(wait) {
                held.push(a);
            }
        }
        let pendings = wait.pendings(module);
        super::async_dots::wait_before(module, wait.0, &held, pendings);
        let waited = wait.inputs(module).to_vec();
        module.replace_op(wait.0, &waited);
    }
}

/// The products of which these values are the results, with those that they add to.
fn dots_of(module: &Module, values: &[Value]) -> Vec<ttng::WarpGroupDot> {
    let mut work = values.to_vec();
    let (mut seen, mut found) = (FxHashSet::default(), Vec::new());
    while let Some(v) = work.pop() {
        if !seen.insert(v) {
            continue;
        }
        work.extend(flow::edges_into(module, v).iter().map(|(edge, i)| edge.from(module)[*i]));
        if let Some(dot) = ttng::WarpGroupDot::of(module, v) {
            found.push(dot);
            work.push(dot.c(module));
        } else if let Some(wait) = ttng::WarpGroupDotWait::of(module, v)
            && let Some(at) = wait.outputs(module).iter().position(|&o| o == v)
        {
            work.push(wait.inputs(module)[at]);
        }
    }
    found
}

/// A buffer, or the smallest that it is a view of and that is defined where `op` can have it.
fn seen_from(module: &Module, buffer: Value, op: Op) -> Option<Value> {
    let mut at = buffer;
    loop {
        let block = module.value_block(at)?;
        let here = module.ancestor_in_block(block, op);
        let defined = module.defining_op(at);
        if here.is_some_and(|here| defined.is_none_or(|d| d != here && module.is_before(d, here))) {
            return Some(at);
        }
        at = defined.filter(|&d| is_view(module, d)).map(|d| module.operands(d)[0])?;
    }
}
