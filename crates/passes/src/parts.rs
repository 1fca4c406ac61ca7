//! What it takes to share out a tensor in parts, over the CTAs of a cluster, the warps of a CTA or the instructions of a warp.

use rustc_hash::FxHashMap;
use tilewright_ir::diagnostic::Kind;
use tilewright_ir::dialect::{scf, tt};
use tilewright_ir::effects::is_pure;
use tilewright_ir::{
    AttrKind, Builder, Diagnostic, InsertPoint, Module, Op, Shape, Trait, TypeKind, Value, ValueDef, marks,
};

/// Whether the function of a reduction or scan is one commutative operation.
pub(crate) fn commutes(m: &Module, by: Op) -> bool {
    let body = m.region_block(m.regions(by)[0]);
    let ops: Vec<Op> = m.block_ops(body).collect();
    let [op, _] = ops[..] else { return false };
    m.has_trait(op, Trait::Commutative)
}

/// The function of a reduction or scan on whole tensors (or numbers), at a point; its results and the last operation made.
///
/// # Errors
/// A function with control flow.
pub(crate) fn combine(
    m: &mut Module,
    by: Op,
    point: InsertPoint,
    first: &[Value],
    second: &[Value],
) -> Result<(Vec<Value>, Op), Diagnostic> {
    let body = m.region_block(m.regions(by)[0]);
    let like = m.value_type(first[0]);
    let shape = m.is_tensor(like).then(|| (m.shape(like).unwrap_or(&[]).to_vec(), m.encoding(like)));
    let args = m.block_args(body).to_vec();
    let mut map: FxHashMap<Value, Value> = FxHashMap::default();
    map.extend(args.iter().copied().zip(first.iter().chain(second).copied()));
    let loc = m.op_loc(by);
    for op in m.block_ops(body).collect::<Vec<_>>() {
        if m.has_trait(op, Trait::Terminator) {
            let out: Vec<Value> = m.operands(op).iter().map(|v| *map.get(v).unwrap_or(v)).collect();
            let at = out.iter().filter_map(|&v| match m.value_def(v) {
                ValueDef::Result(op, _) => Some(op),
                ValueDef::Argument(..) => None,
            });
            let last = at.reduce(|a, b| if m.is_before(a, b) { b } else { a }).unwrap_or(by);
            return Ok((out, last));
        }
        let plain = m.regions(op).is_empty() && is_pure(m, op);
        if !plain {
            let what = "a reduction or scan across CTAs, warps or blocks by a function with control flow";
            return Err(Diagnostic::unsupported(m, m.op_loc(op), what));
        }
        let clone = m.clone_op(op, &mut map);
        Builder::at(m, point, loc).insert_op(clone);
        let Some((shape, encoding)) = &shape else { continue };
        for &result in &m.results(clone).to_vec() {
            let ty = m.value_type(result);
            let ty = m.tensor_type(shape, ty, *encoding);
            m.set_value_type(result, ty);
            if let Some(value) = m.op_attr(clone, "value") {
                let attr = m.attr(AttrKind::Splat(value, ty));
                m.set_attr(clone, "value", attr);
            }
        }
        // Numbers from outside of the function.
        for i in 0..m.operands(clone).len() {
            let operand = m.operands(clone)[i];
            let ty = m.value_type(operand);
            if !m.is_tensor(ty) {
                let ty = m.tensor_type(shape, ty, *encoding);
                let mut b = Builder::before(m, clone);
                let splat = tt::Splat::build(&mut b, operand, ty).result(b.module);
                m.set_operand(clone, i, splat);
            }
        }
    }
    Err(Diagnostic::at(m, loc, "internal: the function of a reduction or scan returns nothing")
        .of(Kind::Internal))
}

/// What is promised of runs along a dimension holds within the part at most: `parts` has the extents of those that are split.
pub(crate) fn clamp_hints(m: &mut Module, op: Op, parts: &[Option<u32>]) {
    for name in [marks::DIVISIBILITY, marks::CONTIGUITY, marks::CONSTANCY] {
        let Some(attr) = m.op_attr(op, name) else { continue };
        let number = |a: &tilewright_ir::Attr| match m.attr_kind(*a) {
            AttrKind::Int(v, _) => *v,
            _ => 1,
        };
        let hints: Vec<i64> = match m.attr_kind(attr) {
            AttrKind::Int(v, _) => vec![*v; parts.len()],
            AttrKind::Splat(a, _) => vec![number(a); parts.len()],
            AttrKind::Dense(all, _) | AttrKind::Array(all) => all.iter().map(number).collect(),
            AttrKind::I32Array(all) => all.iter().map(|&v| i64::from(v)).collect(),
            _ => vec![1; parts.len()],
        };
        let largest = |n: u32| 1i64 << n.trailing_zeros();
        let clamped = hints.iter().enumerate().map(|(d, &hint)| match parts.get(d) {
            Some(Some(n)) => hint.min(largest(*n)) as i32,
            _ => hint.min(i64::from(i32::MAX)) as i32,
        });
        let attr = AttrKind::I32Array(clamped.collect());
        let attr = m.attr(attr);
        m.set_attr(op, name, attr);
    }
    if let (Some(vec), Some(axis)) = (m.int_attr(op, marks::VEC), m.int_attr(op, marks::VEC_AXIS))
        && let Some(&Some(extent)) = parts.get(axis as usize)
    {
        m.set_i32_attr(op, marks::VEC, vec.min(1 << extent.trailing_zeros()) as i32);
    }
}

/// A descriptor of the same tensor with a smaller block, made beside the other, and once: `made` holds those that there are.
pub(crate) fn smaller_descriptor(
    m: &mut Module,
    made: &mut FxHashMap<(Value, Shape), Value>,
    make: tt::MakeTensorDescriptor,
    shape: &Shape,
) -> Value {
    let whole = make.result(m);
    let TypeKind::TensorDesc { block } = *m.type_kind(m.value_type(whole)) else { return whole };
    if m.shape(block) == Some(&shape[..]) {
        return whole;
    }
    if let Some(&known) = made.get(&(whole, shape.clone())) {
        return known;
    }
    let element = m.element_type(block);
    let block = m.tensor_type(shape, element, None);
    let ty = m.ty(TypeKind::TensorDesc { block });
    let clone = m.clone_op(make.0, &mut FxHashMap::default());
    m.insert_after(clone, make.0);
    let result = m.result(clone);
    m.set_value_type(result, ty);
    made.insert((whole, shape.clone()), result);
    result
}

/// Puts an operation without results where it runs only under a condition: the branch.
pub(crate) fn only_if(m: &mut Module, condition: Value, op: Op) -> Op {
    let frame = scf::If::build(&mut Builder::before(m, op), condition, &[]);
    let region = frame.then_region(m);
    let then = m.append_block(region, &[]);
    m.detach_op(op);
    m.append_op(then, op);
    scf::Yield::build(&mut Builder::at_end(m, then), &[]);
    frame.0
}
