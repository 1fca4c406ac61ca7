//! What operations on views, and on tensors whose extents may be unknown, require of them: the hooks of `hivm`, `memref`, `tensor`.
//!
//! The rules are AscendNPU-IR's and MLIR's. An extent that is known at run time only goes together with every other.

use smallvec::SmallVec;

use super::hivm::{self, Kind as H, PadMode, RoundMode};
use super::hivm_more::DescaleMode;
use crate::ascend::Space;
use crate::attrs::AttrValue;
use crate::entity::{Op, Type, Value};
use crate::memref::MemRef;
use crate::module::Module;
use crate::text::print_type;
use crate::types::{Container, TypeKind};

type Dims = SmallVec<[Option<u32>; 4]>;
type Rule = Result<(), String>;

/// The extents of what has a shape.
fn dims(m: &Module, v: Value) -> Option<Dims> {
    match m.type_kind(m.value_type(v)) {
        TypeKind::Tensor { shape, .. } | TypeKind::MemDesc { shape, .. } => {
            Some(shape.iter().map(|&n| Some(n)).collect())
        }
        TypeKind::Shaped { shape, .. } => Some(shape.clone()),
        _ => None,
    }
}

fn is_tensor(m: &Module, v: Value) -> bool {
    matches!(
        m.type_kind(m.value_type(v)),
        TypeKind::Tensor { .. } | TypeKind::Shaped { container: Container::Tensor, .. }
    )
}

fn element(m: &Module, v: Value) -> Type {
    m.element_type(m.value_type(v))
}

fn fit(a: Option<u32>, b: Option<u32>) -> bool {
    a.is_none() || b.is_none() || a == b
}

fn ty(m: &Module, v: Value) -> String {
    print_type(m, m.value_type(v))
}

/// The two values are of as many dimensions.
fn same_rank(m: &Module, a: Value, b: Value) -> Rule {
    match (dims(m, a), dims(m, b)) {
        (Some(x), Some(y)) if x.len() != y.len() => {
            Err(format!("{} and {} must have as many dimensions", ty(m, a), ty(m, b)))
        }
        _ => Ok(()),
    }
}

/// The two values have the same extents.
fn same_extents(m: &Module, a: Value, b: Value) -> Rule {
    same_rank(m, a, b)?;
    match (dims(m, a), dims(m, b)) {
        (Some(x), Some(y)) if !x.iter().zip(&y).all(|(&x, &y)| fit(x, y)) => {
            Err(format!("{} and {} must have the same extents", ty(m, a), ty(m, b)))
        }
        _ => Ok(()),
    }
}

fn equal_elements(m: &Module, a: Value, b: Value) -> Rule {
    if element(m, a) == element(m, b) {
        return Ok(());
    }
    Err(format!("{} and {} must have the same elements", ty(m, a), ty(m, b)))
}

/// The first operand and the result, or else the second operand, have the same elements.
pub(super) fn same_elements(m: &Module, op: Op) -> Rule {
    let other = m.results(op).first().or(m.operands(op).get(1));
    other.map_or(Ok(()), |&v| equal_elements(m, m.operands(op)[0], v))
}

/// The operand and the result have the same extents.
pub(super) fn same_shape(m: &Module, op: Op) -> Rule {
    same_extents(m, m.operands(op)[0], m.result(op))
}

/// As many extents are given as the type of the result leaves open.
fn open_extents(m: &Module, op: Op, given: usize) -> Rule {
    let open = dims(m, m.result(op)).map_or(0, |d| d.iter().filter(|n| n.is_none()).count());
    if open == given {
        return Ok(());
    }
    Err(format!("{given} extents are given for {open} that {} leaves open", ty(m, m.result(op))))
}

/// New memory, or a new tensor.
pub(super) fn allocation(m: &Module, op: Op) -> Rule {
    open_extents(m, op, m.operand_group(op, 0).len())
}

/// Memory that all programs share.
pub(super) fn workspace(m: &Module, op: Op) -> Rule {
    open_extents(m, op, m.operand_group(op, 1).len())
}

/// A lock has a shape that is known.
pub(super) fn lock(m: &Module, op: Op) -> Rule {
    open_extents(m, op, 0)
}

/// Dimensions that an attribute names exist, each once, at least one of them.
fn dimensions(named: &[i64], rank: usize) -> Rule {
    if named.is_empty() {
        return Err("it names no dimension".into());
    }
    for (i, &d) in named.iter().enumerate() {
        if usize::try_from(d).ok().is_none_or(|d| d >= rank) {
            return Err(format!("there is no dimension {d} among {rank}"));
        }
        if named[..i].contains(&d) {
            return Err(format!("the dimension {d} is named twice"));
        }
    }
    Ok(())
}

fn list(m: &Module, op: Op, name: &str) -> Vec<i64> {
    <Option<Vec<i64>> as AttrValue>::read(m, m.op_attr(op, name)).flatten().unwrap_or_default()
}

fn rank(m: &Module, v: Value) -> usize {
    dims(m, v).map_or(0, |d| d.len())
}

/// Running sums go along one dimension.
pub(super) fn cumulative(m: &Module, op: Op) -> Rule {
    let named = list(m, op, "cum_dims");
    dimensions(&named, rank(m, m.operands(op)[0]))?;
    if named.len() > 1 { Err("it goes along one dimension".into()) } else { Ok(()) }
}

/// What is put in order: the last dimension, with indices in a second destination.
pub(super) fn sorted(m: &Module, op: Op) -> Rule {
    let (source, written) = (m.operands(op)[0], &m.operands(op)[hivm::written(m, op)]);
    match written {
        [values] => equal_elements(m, source, *values),
        [values, indices] => {
            equal_elements(m, source, *values).and_then(|()| same_extents(m, *values, *indices))
        }
        _ => Err(format!("{} destinations", written.len())),
    }
}

/// Two dimensions are exchanged; of four, two pairs may be.
pub(super) fn transposed(m: &Module, op: Op) -> Rule {
    let (from, to) = (m.operands(op)[0], m.operands(op)[1]);
    let order = list(m, op, "permutation");
    dimensions(&order, rank(m, from))?;
    if order.len() != rank(m, from) {
        return Err("`permutation` must name each dimension".into());
    }
    let moved = (0..order.len()).filter(|&i| order[i] != i as i64).count();
    let mut seen = vec![false; order.len()];
    let mut swaps = 0;
    for start in 0..order.len() {
        let (mut at, mut length) = (start, 0);
        while !std::mem::replace(&mut seen[at], true) {
            (at, length) = (order[at] as usize, length + 1);
        }
        swaps += if length > 1 { length - 1 } else { 0 };
    }
    if moved != 2 && (order.len() != 4 || swaps != 2) {
        return Err("two dimensions are exchanged, of four also two pairs".into());
    }
    equal_elements(m, from, to)?;
    same_rank(m, from, to)
}

/// A product of matrices in global memory.
pub(super) fn matmul(m: &Module, op: Op) -> Rule {
    let (a, b) = (m.operands(op)[0], m.operands(op)[1]);
    if [a, b].iter().any(|&v| rank(m, v) != 2) {
        return Err("the operands of a product are matrices".into());
    }
    product(m, op, b)
}

/// A product for each group of rows.
pub(super) fn group_matmul(m: &Module, op: Op) -> Rule {
    let operands = m.operands(op);
    for (i, (what, wanted)) in [("weights", 3), ("rows", 2), ("numbers of rows", 1)].into_iter().enumerate() {
        if rank(m, operands[i]) != wanted {
            return Err(format!("the {what} have {wanted} dimensions, not those of {}", ty(m, operands[i])));
        }
    }
    product(m, op, operands[1])
}

fn product(m: &Module, op: Op, b: Value) -> Rule {
    let group = |name: &str| {
        let found = m.def(op).and_then(|d| d.group(name)).map(|g| m.operand_group(op, g));
        found.and_then(|values| values.first().copied())
    };
    let columns = dims(m, b).and_then(|d| d.last().copied().flatten());
    let along = |v: Value, what: &str, wanted: Option<u32>| match dims(m, v).as_deref() {
        Some(&[n]) if fit(n, wanted) => Ok(()),
        _ => Err(format!("{what} {} must have one dimension, with an element for each column", ty(m, v))),
    };
    if let Some(bias) = group("bias") {
        along(bias, "the bias", columns)?;
    }
    let mode = <Option<DescaleMode> as AttrValue>::read(m, m.op_attr(op, "descaleMode")).flatten();
    match (mode, group("descale")) {
        (Some(DescaleMode::PerChannel | DescaleMode::PerTensor), None) => {
            Err("`descale_mode` says that there are factors, and there are none".into())
        }
        (Some(DescaleMode::PerTensor), Some(factor)) => match dims(m, factor).as_deref() {
            Some(&[n]) if fit(n, Some(1)) => Ok(()),
            _ => Err(format!("one factor is needed, not {}", ty(m, factor))),
        },
        (_, Some(factors)) => along(factors, "factors", columns),
        _ => Ok(()),
    }
}

/// The memory of a view, where its type names one that is modelled.
fn space(m: &Module, v: Value) -> Option<&'static Space> {
    MemRef::space_of(m, v)
}

/// Copies: the same elements and as many dimensions, and ways that there are.
pub(super) fn copy(m: &Module, op: Op) -> Rule {
    let (from, to) = (m.operands(op)[0], m.operands(op)[1]);
    equal_elements(m, from, to)?;
    same_rank(m, from, to)?;
    let kind = m.opcode(op);
    let is = |k: H| kind == Some(crate::Opcode::Hivm(k));
    let pad_mode = <Option<PadMode> as AttrValue>::read(m, m.op_attr(op, "pad_mode")).flatten();
    let padded = m.op_attr(op, "pad_mode").is_some() || (is(H::Load) && m.operands(op).len() > 2);
    if !padded {
        same_extents(m, from, to)?;
    }
    if !is(H::Store) {
        let value = m.operand_group(op, 2).first();
        if pad_mode == Some(PadMode::Value) && value.is_none() {
            return Err("the value that it pads with is missing".into());
        }
        if let Some(&value) = value
            && m.value_type(value) != element(m, to)
        {
            return Err(format!("it pads {} with a value of type {}", ty(m, to), ty(m, value)));
        }
    }
    if is(H::Load) {
        if is_tensor(m, from) != is_tensor(m, to) {
            return Err("it loads from a view to a view, or from a tensor to a tensor".into());
        }
        let index = m.operand_group(op, 3).first();
        if let Some(&v) = index.filter(|&&v| m.value_type(v) != Type::INDEX) {
            return Err(format!("`left_padding_num` is an index, not {}", ty(m, v)));
        }
    }
    ways(m, from, to, &is)
}

fn ways(m: &Module, from: Value, to: Value, is: &dyn Fn(H) -> bool) -> Rule {
    let (Some(source), Some(target)) = (space(m, from), space(m, to)) else { return Ok(()) };
    let global = |s: &Space| s.name == "GM";
    let fits = match () {
        () if is(H::Load) => global(source) && !global(target),
        () if is(H::Store) => !global(source) && global(target),
        () => !(global(source) && global(target)),
    };
    if fits { Ok(()) } else { Err(format!("it does not go from {} to {}", source.name, target.name)) }
}

/// Instructions of vectors that work element by element.
pub(super) fn elementwise(m: &Module, op: Op) -> Rule {
    let ins = m.operand_group(op, 0);
    let out = m.operand_group(op, 1)[0];
    let Some(crate::Opcode::Hivm(kind)) = m.opcode(op) else { return Ok(()) };
    let count = operands(kind);
    if ins.len() != count {
        return Err(format!("{} operands instead of {count}", ins.len()));
    }
    vector_operands(m, kind, ins, out)?;
    if let Some(&v) = ins.iter().find(|&&v| !has_elements(m, kind, v)) {
        return Err(format!("it has no elements of type {}", print_type(m, element(m, v))));
    }
    if kind == H::Vcast {
        conversion(m, op)?;
    }
    let (broadcast, transpose) = (list(m, op, "broadcast"), list(m, op, "transpose"));
    if !broadcast.is_empty() && !transpose.is_empty() {
        return Err("it broadcasts or transposes, not both".into());
    }
    for &v in ins {
        same_rank(m, v, out)?;
    }
    if ins.iter().chain([&out]).all(|&v| is_tensor(m, v) || dims(m, v).is_none()) {
        return Ok(());
    }
    let rank = rank(m, out);
    let all = dims(m, out).unwrap_or_default();
    if !broadcast.is_empty() {
        dimensions(&broadcast, rank)?;
    }
    if !transpose.is_empty() {
        dimensions(&transpose, rank)?;
        if transpose.len() != rank || transpose[rank - 1] != rank as i64 - 1 {
            return Err("`transpose` names each dimension, the last one at its place".into());
        }
    }
    for &v in ins {
        let Some(own) = dims(m, v) else { continue };
        for d in 0..rank {
            let at = transpose.get(d).map_or(d, |&t| t as usize);
            let stretched = broadcast.contains(&(d as i64)) && own[at] == Some(1);
            if !stretched && !fit(own[at], all[d]) {
                return Err(format!("{} does not fit {} along dimension {d}", ty(m, v), ty(m, out)));
            }
        }
    }
    Ok(())
}

/// How many operands an elementwise instruction has.
fn operands(kind: H) -> usize {
    match kind {
        H::Vsel => 3,
        H::Vadd | H::Vsub | H::Vmul | H::Vdiv | H::Vmod | H::Vmodui | H::Vpow | H::Vldexp => 2,
        H::Vmax | H::Vmin | H::Vand | H::Vor | H::Vxor | H::Vshl | H::Vshr | H::Vcmp => 2,
        _ => 1,
    }
}

/// Whether an instruction works on elements of a type, by AscendNPU-IR's list.
fn has_elements(m: &Module, kind: H, v: Value) -> bool {
    let name = print_type(m, element(m, v));
    let listed = |types: &[&str]| types.contains(&name.as_str());
    let integers = || listed(&["i8", "i16", "i32", "i64"]);
    let unsigned = || listed(&["ui8", "ui16", "ui32", "ui64"]);
    let floats = || listed(&["f16", "f32"]);
    let small = || listed(&["f8E4M3FN", "f8E5M2"]);
    let bits = || integers() || unsigned() || name == "i1";
    match kind {
        H::Vexp
        | H::Vexp2
        | H::Vexpm1
        | H::Vln
        | H::Vlog2
        | H::Vlog10
        | H::Vlog1p
        | H::Vilogb
        | H::Vldexp => floats(),
        H::Vsqrt | H::Vrsqrt | H::Vrec | H::Visinf | H::Visnan => floats(),
        H::Vrelu => floats() || name == "i32",
        H::Vabs | H::Vadd | H::Vsub | H::Vmul | H::Vdiv => floats() || integers(),
        H::Vpow => floats() || (integers() && name != "i64"),
        H::Vmod => floats() || integers() || name == "i1",
        H::Vmodui => integers() || name == "i1",
        H::Vmax | H::Vmin | H::Vcmp => floats() || name == "bf16" || bits() || small(),
        H::Vand | H::Vor | H::Vnot => floats() || name == "bf16" || bits(),
        H::Vxor => bits(),
        H::Vshl => integers() && name != "i8",
        H::Vshr => integers(),
        _ => true,
    }
}

/// To odd numbers only floats are rounded; integers of 4 bits keep their values.
fn conversion(m: &Module, op: Op) -> Rule {
    let cast = hivm::Vcast(op);
    let (from, to) = (cast.ins(m)[0], cast.out(m));
    let mode = cast.round_mode(m).unwrap_or(RoundMode::Rint);
    let narrow = m.is_int(m.value_type(from)) && m.bits(m.value_type(from)) == 4;
    let fits = match mode {
        RoundMode::Odd => m.is_float(m.value_type(from)) && m.is_float(m.value_type(to)),
        mode => !narrow || mode == RoundMode::Rint,
    };
    if fits {
        Ok(())
    } else {
        Err(format!("{} does not become {} by `{}`", ty(m, from), ty(m, to), mode.keyword()))
    }
}

/// Which operands must have a shape, and which types are the same.
fn vector_operands(m: &Module, kind: H, ins: &[Value], out: Value) -> Rule {
    let vectors = match kind {
        H::Vand | H::Vor | H::Vxor | H::Vpow | H::Vldexp => 2,
        H::Vsub | H::Vdiv | H::Vsel => 0,
        _ => 1,
    };
    if let Some(&v) = ins[..vectors].iter().find(|&&v| dims(m, v).is_none()) {
        return Err(format!("a view or tensor is needed, not {}", ty(m, v)));
    }
    let same: &[Value] = match kind {
        H::Vcast | H::Vilogb | H::Visinf | H::Visnan => &[],
        H::Vsel => &ins[1..],
        _ => ins,
    };
    for &v in same {
        if element(m, v) != element(m, same[0]) {
            return Err(format!("{} and {} must have the same elements", ty(m, same[0]), ty(m, v)));
        }
    }
    if let (Some(&first), false) = (same.first(), kind == H::Vcmp) {
        equal_elements(m, first, out)?;
    }
    Ok(())
}

/// Scratch of an instruction has one dimension.
fn scratch(m: &Module, op: Op) -> Rule {
    let group = m.def(op).and_then(|d| d.group("temp_buffer")).map(|g| m.operand_group(op, g));
    match group.and_then(|values| values.first()) {
        Some(&v) if rank(m, v) != 1 => Err(format!("scratch has one dimension, not those of {}", ty(m, v))),
        _ => Ok(()),
    }
}

/// A broadcast: along dimensions of extent 1, or of a number.
pub(super) fn broadcast(m: &Module, op: Op) -> Rule {
    scratch(m, op)?;
    let (from, to) = (m.operands(op)[0], m.operands(op)[1]);
    let named = list(m, op, "broadcast_dims");
    let Some(own) = dims(m, from) else {
        return if named.is_empty() {
            Ok(())
        } else {
            Err("a number has no dimension that `broadcast_dims` could name".into())
        };
    };
    equal_elements(m, from, to)?;
    dimensions(&named, own.len())?;
    match named.iter().find(|&&d| !fit(own[d as usize], Some(1))) {
        Some(d) => Err(format!("{} has more than one element along dimension {d}", ty(m, from))),
        None => Ok(()),
    }
}

/// A reduction: along dimensions of which the destination has one element.
pub(super) fn reduction(m: &Module, op: Op) -> Rule {
    scratch(m, op)?;
    let reduce = hivm::Vreduce(op);
    let (from, written) = (reduce.ins(m), reduce.out(m));
    let Some(&to) = written.first() else { return Err("it has no destination".into()) };
    let named = reduce.dims(m);
    dimensions(&named, rank(m, from))?;
    same_rank(m, from, to)?;
    let (own, left) = (dims(m, from).unwrap_or_default(), dims(m, to).unwrap_or_default());
    for d in 0..own.len() {
        if named.contains(&(d as i64)) {
            if !fit(left[d], Some(1)) {
                return Err(format!(
                    "{} has more than one element along dimension {d}, which is reduced",
                    ty(m, to)
                ));
            }
        } else if !fit(own[d], left[d]) {
            return Err(format!("{} does not fit {} along dimension {d}", ty(m, to), ty(m, from)));
        }
    }
    Ok(())
}

/// A range has a stride for each dimension.
pub(super) fn range(m: &Module, op: Op) -> Rule {
    let arange = hivm::Varange(op);
    let (strides, rank) = (arange.strides(m).len(), rank(m, arange.out(m)));
    if strides == rank { Ok(()) } else { Err(format!("{strides} strides for {rank} dimensions")) }
}
