//! Canonicalization: folds, and rewrites to the one form that later passes look for.
//!
//! ```text
//! %c = arith.constant 2 : i32                        %c5 = arith.constant 5 : i32
//! %a = arith.addi %c, %x : i32                 =>    %b = arith.addi %x, %c5 : i32
//! %b = arith.addi %a, %c3 : i32
//! scf.if %true { A } else { B }                      A
//! ```
//!
//! [`combine`] adds rewrites that are not always wanted while a module is still being built: they fuse an addition into
//! a dot's accumulator.

use smallvec::SmallVec;

use crate::builder::Builder;
use crate::diagnostic::Diagnostic;
use crate::dialect::{arith, scf, tt, ttg};
use crate::effects::is_pure;
use crate::entity::{Op, Type, Value};
use crate::fold::{Number, constant, fold, number};
use crate::marks;
use crate::module::{Module, OpSpec};
use crate::opdef::{Opcode, Trait};
use crate::rewrite::{Pattern, Rewriter, rewrite};

/// The patterns of [`run`].
pub const PATTERNS: &[Pattern] = &[
    constant_operand_last,
    reassociate_constants,
    compare_extended,
    push_splats_out,
    reshape_of_reshape,
    layout_conversions,
    combine_pointer_offsets,
    constant_masks,
    select_between_booleans,
    if_of_constant,
    if_results,
    trivial_for,
    invariant_carried_values,
];

/// Canonicalizes a module.
///
/// # Errors
/// None; the signature is that of every pass.
pub fn run(module: &mut Module) -> Result<(), Diagnostic> {
    let root = module.root();
    rewrite(module, root, fold, PATTERNS);
    Ok(())
}

/// Canonicalizes, and fuses `dot(a, b, 0) + c` into `dot(a, b, c)`.
///
/// # Errors
/// None; the signature is that of every pass.
pub fn combine(module: &mut Module) -> Result<(), Diagnostic> {
    let root = module.root();
    let patterns: Vec<Pattern> = PATTERNS.iter().copied().chain([add_into_dot as Pattern]).collect();
    rewrite(module, root, fold, &patterns);
    Ok(())
}

fn int(m: &Module, v: Value) -> Option<i64> {
    match number(m, v)? {
        Number::Int(n) => Some(n),
        Number::Float(_) => None,
    }
}

/// `2 + x` to `x + 2`, and comparisons likewise.
fn constant_operand_last(r: &mut Rewriter<'_>, op: Op) -> bool {
    use arith::CmpIPredicate as P;
    let m = &mut *r.module;
    let &[a, b] = m.operands(op) else { return false };
    if m.constant_value(a).is_none() || m.constant_value(b).is_some() {
        return false;
    }
    if arith::Cmpi::cast(m, op).is_some() {
        let swapped = match arith::Cmpi(op).predicate(m) {
            P::Slt => P::Sgt,
            P::Sle => P::Sge,
            P::Sgt => P::Slt,
            P::Sge => P::Sle,
            P::Ult => P::Ugt,
            P::Ule => P::Uge,
            P::Ugt => P::Ult,
            P::Uge => P::Ule,
            p => p,
        };
        let attr = m.attr(crate::AttrKind::Keyword(swapped.keyword()));
        m.set_attr(op, "predicate", attr);
    } else if !m.has_trait(op, Trait::Commutative) {
        return false;
    }
    m.set_operands(op, &[b, a]);
    r.enqueue_users(r.module.result(op));
    true
}

/// `(x + 2) + 3` to `x + 5`, also for `*`, `&`, `|`, `^`, and `(x + 2) - 3` to `x - 1` by way of `x + -3`.
fn reassociate_constants(r: &mut Rewriter<'_>, op: Op) -> bool {
    use arith::Kind as K;
    let Some(Opcode::Arith(kind)) = r.module.opcode(op) else { return false };
    let &[x, c2] = r.module.operands(op) else { return false };
    let ty = r.module.value_type(x);
    let Some(n2) = int(r.module, c2) else { return false };
    if kind == K::Subi {
        let Some(attr) = constant(r.module, Number::Int(n2.wrapping_neg()), ty) else { return false };
        let negated = r.constant(op, attr, ty);
        let mut b = r.before(op);
        let sum = arith::Addi::build(&mut b, x, negated).result(r.module);
        r.replace(op, &[sum]);
        return true;
    }
    if !matches!(kind, K::Addi | K::Muli | K::Andi | K::Ori | K::Xori) {
        return false;
    }
    let same = |&o: &Op| r.module.opcode(o) == Some(Opcode::Arith(kind)) && !marks::promises(r.module, o);
    let Some(inner) = r.module.defining_op(x).filter(same) else { return false };
    let &[y, c1] = r.module.operands(inner) else { return false };
    let Some(n1) = int(r.module, c1) else { return false };
    let n = match kind {
        K::Addi => n1.wrapping_add(n2),
        K::Muli => n1.wrapping_mul(n2),
        K::Andi => n1 & n2,
        K::Ori => n1 | n2,
        _ => n1 ^ n2,
    };
    let Some(attr) = constant(r.module, Number::Int(n), ty) else { return false };
    let c = r.constant(op, attr, ty);
    r.module.set_operands(op, &[y, c]);
    r.enqueue_def(x);
    r.enqueue_users(r.module.result(op));
    true
}

/// `ext(b) != 0` of an `i1` is `b`.
fn compare_extended(r: &mut Rewriter<'_>, op: Op) -> bool {
    use arith::Kind as K;
    let Some(cmp) = arith::Cmpi::cast(r.module, op) else { return false };
    let m = &*r.module;
    let (a, b) = (cmp.lhs(m), cmp.rhs(m));
    let Some(ext) = m.defining_op(a) else { return false };
    if !matches!(m.opcode(ext), Some(Opcode::Arith(K::Extsi | K::Extui))) {
        return false;
    }
    let source = m.operands(ext)[0];
    let is_test = cmp.predicate(m) == arith::CmpIPredicate::Ne && int(m, b) == Some(0);
    if !is_test || m.element_type(m.value_type(source)) != Type::I1 {
        return false;
    }
    r.replace(op, &[source]);
    true
}

/// An elementwise operation on splats is a splat of the scalar operation; expanding, broadcasting or reshaping a splat
/// is a splat.
fn push_splats_out(r: &mut Rewriter<'_>, op: Op) -> bool {
    let m = &*r.module;
    let &[result] = m.results(op) else { return false };
    let ty = m.value_type(result);
    if !m.is_tensor(ty) {
        return false;
    }
    match m.opcode(op) {
        Some(Opcode::Tt(
            tt::Kind::ExpandDims | tt::Kind::Broadcast | tt::Kind::Reshape | tt::Kind::Trans,
        )) => {
            let Some(splat) = tt::Splat::of(m, m.operands(op)[0]) else { return false };
            let scalar = splat.src(m);
            let mut b = r.before(op);
            let new = tt::Splat::build(&mut b, scalar, ty).result(r.module);
            r.replace(op, &[new]);
            true
        }
        Some(Opcode::Arith(kind)) => {
            if kind == arith::Kind::Select
                || !m.has_trait(op, Trait::Elementwise)
                || m.operands(op).is_empty()
            {
                return false;
            }
            // At least one splat of a value; the others splats or constants.
            let mut scalars: SmallVec<[Result<Value, Number>; 2]> = SmallVec::new();
            for &operand in m.operands(op) {
                match (tt::Splat::of(m, operand), number(m, operand)) {
                    (Some(s), _) => scalars.push(Ok(s.src(m))),
                    (None, Some(n)) => scalars.push(Err(n)),
                    (None, None) => return false,
                }
            }
            if scalars.iter().all(Result::is_err) {
                return false;
            }
            let element = m.element_type(ty);
            let types: SmallVec<[Type; 2]> =
                m.operands(op).iter().map(|&v| m.element_type(m.value_type(v))).collect();
            let attrs = m.op_attrs(op).iter().cloned().collect();
            let (def, loc) = (m.def(op).expect("registered"), m.op_loc(op));
            let mut operands: SmallVec<[Value; 4]> = SmallVec::new();
            for (scalar, ty) in scalars.into_iter().zip(types) {
                operands.push(match scalar {
                    Ok(v) => v,
                    Err(n) => {
                        let Some(attr) = constant(r.module, n, ty) else { return false };
                        r.constant(op, attr, ty)
                    }
                });
            }
            let mut spec = OpSpec::new(def, loc);
            spec.operands = operands;
            spec.attrs = attrs;
            spec.results.push(element);
            let mut b = r.before(op);
            let scalar = b.insert(spec);
            let scalar = b.module.result(scalar);
            let new = tt::Splat::build(&mut b, scalar, ty).result(r.module);
            r.replace(op, &[new]);
            true
        }
        _ => false,
    }
}

/// `reshape(reshape(x))` to `reshape(x)`; `trans(trans(x))` and `broadcast(broadcast(x))` likewise.
fn reshape_of_reshape(r: &mut Rewriter<'_>, op: Op) -> bool {
    let m = &*r.module;
    match m.opcode(op) {
        Some(Opcode::Tt(tt::Kind::Reshape)) => {
            let outer = tt::Reshape(op);
            let Some(inner) = tt::Reshape::of(m, outer.src(m)) else { return false };
            // Where the inner one may reorder, so may the whole; with a layout the inner one's order matters.
            if inner.allow_reorder(m) != outer.allow_reorder(m) {
                return false;
            }
            let source = inner.src(m);
            r.module.set_operands(op, &[source]);
            r.enqueue(inner.0);
            true
        }
        Some(Opcode::Tt(tt::Kind::Broadcast)) => {
            let Some(inner) = tt::Broadcast::of(m, m.operands(op)[0]) else { return false };
            let source = inner.src(m);
            r.module.set_operands(op, &[source]);
            r.enqueue(inner.0);
            true
        }
        Some(Opcode::Tt(tt::Kind::Trans)) => {
            let outer = tt::Trans(op);
            let Some(inner) = tt::Trans::of(m, outer.src(m)) else { return false };
            let inner_order = inner.order(m);
            let order: Vec<i32> = outer.order(m).iter().map(|&d| inner_order[d as usize]).collect();
            let source = inner.src(m);
            let attr = r.module.attr(crate::AttrKind::I32Array(order));
            r.module.set_attr(op, "order", attr);
            r.module.set_operands(op, &[source]);
            r.enqueue(inner.0);
            true
        }
        _ => false,
    }
}

/// A conversion of a conversion is one; what any layout can make at no cost (splats, ranges) is made in the one wanted.
fn layout_conversions(r: &mut Rewriter<'_>, op: Op) -> bool {
    let Some(convert) = ttg::ConvertLayout::cast(r.module, op) else { return false };
    let m = &*r.module;
    let source = convert.src(m);
    let ty = m.value_type(convert.result(m));
    let Some(inner) = m.defining_op(source) else { return false };
    match m.opcode(inner) {
        Some(Opcode::Ttg(ttg::Kind::ConvertLayout)) => {
            let from = m.operands(inner)[0];
            r.module.set_operands(op, &[from]);
            r.enqueue(inner);
        }
        Some(Opcode::Tt(tt::Kind::Splat)) => {
            let scalar = m.operands(inner)[0];
            let mut b = r.before(op);
            let new = tt::Splat::build(&mut b, scalar, ty).result(r.module);
            r.replace(op, &[new]);
        }
        Some(Opcode::Tt(tt::Kind::MakeRange)) => {
            let range = tt::MakeRange(inner);
            let (start, end) = (range.start(m), range.end(m));
            let mut b = r.before(op);
            let new = tt::MakeRange::build(&mut b, end, start, ty).result(r.module);
            r.replace(op, &[new]);
        }
        _ => return false,
    }
    true
}

/// `addptr(addptr(p, c1), c2)` with constants to `addptr(p, c1 + c2)`, where the sum does not wrap.
fn combine_pointer_offsets(r: &mut Rewriter<'_>, op: Op) -> bool {
    let Some(outer) = tt::Addptr::cast(r.module, op) else { return false };
    let m = &*r.module;
    let Some(inner) = tt::Addptr::of(m, outer.ptr(m)) else { return false };
    let ty = m.value_type(outer.offset(m));
    if m.value_type(inner.offset(m)) != ty || marks::promises(m, inner.0) {
        return false;
    }
    let (Some(a), Some(b)) = (int(m, inner.offset(m)), int(m, outer.offset(m))) else { return false };
    let (sum, bits) = (i128::from(a) + i128::from(b), m.bits(ty).min(64));
    if sum < -(1i128 << (bits - 1)) || sum >= 1i128 << (bits - 1) {
        return false;
    }
    let p = inner.ptr(m);
    let Some(attr) = constant(r.module, Number::Int(sum as i64), ty) else { return false };
    let offset = r.constant(op, attr, ty);
    r.module.set_operands(op, &[p, offset]);
    r.enqueue(inner.0);
    r.enqueue_users(r.module.result(op));
    true
}

/// A mask that holds everywhere is no mask; a store that is masked off everywhere does nothing.
fn constant_masks(r: &mut Rewriter<'_>, op: Op) -> bool {
    let m = &mut *r.module;
    match m.opcode(op) {
        Some(Opcode::Tt(tt::Kind::Load)) => {
            let load = tt::Load(op);
            let Some(mask) = load.mask(m) else { return false };
            if int(m, mask).is_none_or(|n| n == 0) {
                return false;
            }
            let other = load.other(m);
            m.set_operand_group(op, 1, &[]);
            m.set_operand_group(op, 2, &[]);
            for v in std::iter::once(mask).chain(other) {
                r.enqueue_def(v);
            }
            true
        }
        Some(Opcode::Tt(tt::Kind::Store)) => {
            let Some(mask) = tt::Store(op).mask(m) else { return false };
            match int(m, mask) {
                None => false,
                Some(0) => {
                    r.erase(op);
                    true
                }
                Some(_) => {
                    m.set_operand_group(op, 2, &[]);
                    r.enqueue_def(mask);
                    true
                }
            }
        }
        _ => false,
    }
}

/// `select(c, false, true)` to `c ^ true`; `select(c, x, false)` to `c & x` and `select(c, true, x)` to `c | x` where
/// the condition has the values' type.
fn select_between_booleans(r: &mut Rewriter<'_>, op: Op) -> bool {
    let Some(s) = arith::Select::cast(r.module, op) else { return false };
    let m = &*r.module;
    let (c, a, b) = (s.condition(m), s.true_value(m), s.false_value(m));
    let ty = m.value_type(a);
    if m.element_type(ty) != Type::I1 || m.value_type(c) != ty {
        return false;
    }
    let new = match (int(m, a), int(m, b)) {
        (Some(0), Some(-1)) => {
            let mut builder = r.before(op);
            arith::Xori::build(&mut builder, c, b).result(r.module)
        }
        (None, Some(0)) => {
            let mut builder = r.before(op);
            arith::Andi::build(&mut builder, c, a).result(r.module)
        }
        (Some(-1), None) => {
            let mut builder = r.before(op);
            arith::Ori::build(&mut builder, c, b).result(r.module)
        }
        _ => return false,
    };
    r.replace(op, &[new]);
    true
}

/// `scf.if` of a constant is one of its regions.
fn if_of_constant(r: &mut Rewriter<'_>, op: Op) -> bool {
    let Some(f) = scf::If::cast(r.module, op) else { return false };
    let m = &*r.module;
    let Some(c) = int(m, f.condition(m)) else { return false };
    let region = if c != 0 { f.then_region(m) } else { f.else_region(m) };
    match m.region_blocks(region) {
        [] => r.replace(op, &[]),
        &[block] => {
            let values = r.inline_block_before(block, op, &[]);
            r.replace(op, &values);
        }
        _ => return false,
    }
    true
}

/// Results of an `scf.if` that are the same in both branches, that nothing uses, or that a scalar `select` can give.
fn if_results(r: &mut Rewriter<'_>, op: Op) -> bool {
    let Some(f) = scf::If::cast(r.module, op) else { return false };
    let m = &*r.module;
    let (&[then_block], else_blocks) = (m.region_blocks(f.then_region(m)), m.region_blocks(f.else_region(m)))
    else {
        return false;
    };
    let results = m.results(op).to_vec();
    let yields = |m: &Module, block| m.last_op(block).and_then(|o| scf::Yield::cast(m, o));
    if results.is_empty() {
        // An else branch that does nothing is none.
        if let &[else_block] = else_blocks
            && m.first_op(else_block) == m.last_op(else_block)
            && yields(m, else_block).is_some()
        {
            let region = f.else_region(m);
            return drop_block(r, region);
        }
        return false;
    }
    let &[else_block] = else_blocks else { return false };
    let (Some(then_yield), Some(else_yield)) = (yields(m, then_block), yields(m, else_block)) else {
        return false;
    };
    let then_values = then_yield.values(m).to_vec();
    let else_values = else_yield.values(m).to_vec();
    let defined_inside = |m: &Module, v: Value| {
        m.value_block(v).and_then(|b| m.block_parent_op(b)).is_none_or(|p| m.is_ancestor(op, p))
    };
    let mut changed = false;
    let mut keep = Vec::new();
    let condition = f.condition(m);
    for (i, &result) in results.iter().enumerate() {
        let (a, b) = (then_values[i], else_values[i]);
        if r.module.is_unused(result) {
            changed = true;
            continue;
        }
        let outside = !defined_inside(r.module, a) && !defined_inside(r.module, b);
        if outside && a == b {
            r.replace_uses(result, a);
            changed = true;
            continue;
        }
        // One scalar or the other: a tensor stays in its branch, where it costs registers once.
        if outside && !r.module.is_tensor(r.module.value_type(a)) && is_selectable(r.module, a) {
            let mut builder = r.before(op);
            let s = arith::Select::build(&mut builder, condition, a, b).result(r.module);
            r.replace_uses(result, s);
            changed = true;
            continue;
        }
        keep.push(i);
    }
    if !changed {
        return false;
    }
    let picked = |values: &[Value]| keep.iter().map(|&i| values[i]).collect::<Vec<_>>();
    let (then_kept, else_kept) = (picked(&then_values), picked(&else_values));
    for (y, values) in [(then_yield.0, then_kept), (else_yield.0, else_kept)] {
        for i in 0..r.module.operands(y).len() {
            r.enqueue_def(r.module.operands(y)[i]);
        }
        r.module.set_operand_group(y, 0, &values);
    }
    let mut spec = OpSpec::new(scf::Kind::If.def(), r.module.op_loc(op));
    spec.operand(condition);
    spec.attrs = r.module.op_attrs(op).iter().cloned().collect();
    spec.results = keep.iter().map(|&i| r.module.value_type(results[i])).collect();
    let new = r.before(op).insert(spec);
    for i in 0..2 {
        let (from, to) = (r.module.regions(op)[i], r.module.regions(new)[i]);
        r.module.move_blocks(from, to);
    }
    for (j, &i) in keep.iter().enumerate() {
        let value = r.module.results(new)[j];
        r.replace_uses(results[i], value);
    }
    r.erase(op);
    true
}

/// Whether `arith.select` takes values of this type: numbers and pointers, not buffers or tokens.
fn is_selectable(m: &Module, v: Value) -> bool {
    let ty = m.value_type(v);
    m.is_int(ty) || m.is_float(ty) || m.is_ptr(ty)
}

/// Removes the only block of a region, which holds only a terminator.
fn drop_block(r: &mut Rewriter<'_>, region: crate::Region) -> bool {
    let Some(parent) = r.module.region_op(region) else { return false };
    // Blocks cannot be erased by themselves: the operation is built again without it.
    let mut spec = OpSpec::new(scf::Kind::If.def(), r.module.op_loc(parent));
    spec.operand(r.module.operands(parent)[0]);
    spec.attrs = r.module.op_attrs(parent).iter().cloned().collect();
    let new = r.before(parent).insert(spec);
    let (from, to) = (r.module.regions(parent)[0], r.module.regions(new)[0]);
    r.module.move_blocks(from, to);
    r.erase(parent);
    true
}

/// A loop that never runs gives its initial values; one that runs once is its body.
fn trivial_for(r: &mut Rewriter<'_>, op: Op) -> bool {
    let Some(f) = scf::For::cast(r.module, op) else { return false };
    let m = &*r.module;
    let (lower, upper) = (f.lower_bound(m), f.upper_bound(m));
    let init = f.init(m).to_vec();
    let (cl, cu, cs) = (int(m, lower), int(m, upper), int(m, f.step(m)));
    let never = lower == upper || matches!((cl, cu), (Some(l), Some(u)) if l >= u);
    if never {
        r.replace(op, &init);
        return true;
    }
    let once = match (cl, cu, cs) {
        (Some(l), Some(u), Some(s)) => s > 0 && i128::from(l) + i128::from(s) >= i128::from(u),
        _ => false,
    };
    if once {
        let &[block] = m.region_blocks(f.body(m)) else { return false };
        let args: Vec<Value> = std::iter::once(lower).chain(init).collect();
        let values = r.inline_block_before(block, op, &args);
        r.replace(op, &values);
        return true;
    }
    // Nothing to do in it, and nothing comes out.
    if m.results(op).iter().all(|&v| m.is_unused(v)) && is_pure(m, op) {
        r.erase(op);
        return true;
    }
    false
}

/// A carried value that the loop yields as it got it is the initial value, everywhere.
fn invariant_carried_values(r: &mut Rewriter<'_>, op: Op) -> bool {
    let Some(f) = scf::For::cast(r.module, op) else { return false };
    let m = &*r.module;
    let &[block] = m.region_blocks(f.body(m)) else { return false };
    let Some(y) = m.last_op(block).and_then(|o| scf::Yield::cast(m, o)) else { return false };
    let args = m.block_args(block)[1..].to_vec();
    let (init, yielded, results) = (f.init(m).to_vec(), y.values(m).to_vec(), m.results(op).to_vec());
    let mut changed = false;
    for i in 0..args.len() {
        let unchanged = yielded[i] == args[i] || yielded[i] == init[i];
        if !unchanged {
            continue;
        }
        // The uses that remain are the loop's own, which `dce` drops with the carried value.
        let used_inside = r.module.uses(args[i]).iter().any(|u| u.op != y.0);
        if used_inside {
            r.replace_uses(args[i], init[i]);
            changed = true;
        }
        if !r.module.is_unused(results[i]) {
            r.replace_uses(results[i], init[i]);
            changed = true;
        }
    }
    changed
}

/// `dot(a, b, 0) + c` to `dot(a, b, c)`.
fn add_into_dot(r: &mut Rewriter<'_>, op: Op) -> bool {
    let m = &*r.module;
    if !matches!(m.opcode(op), Some(Opcode::Arith(arith::Kind::Addf | arith::Kind::Addi))) {
        return false;
    }
    let &[a, b] = m.operands(op) else { return false };
    for (dot, addend) in [(a, b), (b, a)] {
        let Some(d) = tt::Dot::of(m, dot) else { continue };
        let zero = match number(m, d.c(m)) {
            Some(Number::Float(v)) => v == 0.0,
            Some(Number::Int(v)) => v == 0,
            None => false,
        };
        if !zero || m.uses(dot).len() != 1 {
            continue;
        }
        let (x, y) = (d.a(m), d.b(m));
        let (precision, imprecise) = (d.input_precision(m), d.max_num_imprecise_acc(m));
        let tiling = d.tiling(m);
        // Where the addition stood: the addend need not be defined before the dot.
        let loc = m.op_loc(d.0);
        let mut builder: Builder<'_> = r.before(op);
        builder.set_loc(loc);
        let new = tt::Dot::build(&mut builder, x, y, addend, precision, imprecise, tiling).result(r.module);
        r.replace(op, &[new]);
        return true;
    }
    false
}
