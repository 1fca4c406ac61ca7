//! Types that the formats do not print.

use crate::attrs::AttrKind;
use crate::dialect::{arith, tt, ttg, ttng};
use crate::entity::{Type, Value};
use crate::module::Module;
use crate::opdef::{OpDef, Opcode, ResultsDef, Trait};
use crate::types::TypeKind;

/// `i1` with the shape of another type.
pub(crate) fn mask_type(m: &mut Module, ty: Type) -> Type {
    m.with_element(ty, Type::I1)
}

/// The type that is loaded through a pointer type.
pub(crate) fn loaded_type(m: &mut Module, ptr: Type) -> Option<Type> {
    let pointee = m.pointee_type(ptr)?;
    Some(m.with_element(ptr, pointee))
}

/// The result types of an operation from its operands, where the format prints none of them (or only the first).
pub(crate) fn result_types(
    m: &mut Module,
    def: &OpDef,
    operands: &[Value],
    first_printed: Option<Type>,
) -> Option<Vec<Type>> {
    use arith::Kind as A;
    use tt::Kind as T;
    use ttg::Kind as G;
    let operand = |m: &Module, i: usize| operands.get(i).map(|&v| m.value_type(v));
    match def.opcode {
        Opcode::Arith(A::Cmpi | A::Cmpf) => {
            let ty = operand(m, 0)?;
            Some(vec![mask_type(m, ty)])
        }
        Opcode::Tt(T::Load) => {
            let ptr = operand(m, 0)?;
            Some(vec![loaded_type(m, ptr)?])
        }
        Opcode::Tt(T::Unsplat) => Some(vec![m.element_type(operand(m, 0)?)]),
        Opcode::Tt(T::Split) => first_printed.map(|t| vec![t, t]),
        Opcode::Ttg(G::AsyncCopyGlobalToLocal | G::AsyncCommitGroup | G::AsyncWait) => {
            Some(vec![Type::ASYNC_TOKEN])
        }
        Opcode::Ttg(G::RingCreate) => Some(vec![Type::RING]),
        Opcode::Ttg(G::RingIsClosed) => Some(vec![Type::I1]),
        Opcode::Ttng(ttng::Kind::WarpGroupDotWait) => {
            Some(operands.iter().map(|&v| m.value_type(v)).collect())
        }
        Opcode::Ttg(G::WarpId) => Some(vec![Type::I32]),
        _ => match def.results {
            ResultsDef::Given([]) => Some(Vec::new()),
            ResultsDef::SameAs(_) => None,
            _ if def.has(Trait::SameTypes) => Some(vec![operand(m, 0)?]),
            _ => None,
        },
    }
}

/// The type of an operand that is used before its definition and whose type is not printed.
///
/// `known` holds the types of the operand groups that are known (the first of each), `result` that of the result.
pub(crate) fn operand_type(
    m: &mut Module,
    def: &OpDef,
    group: usize,
    known: &[Option<Type>],
    result: Option<Type>,
) -> Option<Type> {
    use arith::Kind as A;
    use tt::Kind as T;
    use ttg::Kind as G;
    let name = def.operands[group].name;
    if def.has(Trait::SameTypes) {
        return result.or_else(|| known.iter().copied().flatten().next());
    }
    if let ResultsDef::SameAs(same) = def.results
        && same == name
        && result.is_some()
    {
        return result;
    }
    match (def.opcode, name) {
        (Opcode::Arith(A::Cmpi | A::Cmpf), _) => known.iter().copied().flatten().next(),
        (Opcode::Tt(T::Load | T::Store | T::AtomicRmw) | Opcode::Ttg(G::AsyncCopyGlobalToLocal), "mask") => {
            let ptr = known[0]?;
            Some(mask_type(m, ptr))
        }
        (Opcode::Tt(T::Histogram), "mask") => {
            let src = known[0]?;
            Some(mask_type(m, src))
        }
        (Opcode::Tt(T::Load | T::Store) | Opcode::Ttg(G::AsyncCopyGlobalToLocal), "other" | "value") => {
            let ptr = known[0]?;
            loaded_type(m, ptr)
        }
        (Opcode::Tt(T::Join | T::Cat), "rhs") => known[0],
        (Opcode::Ttg(G::MemdescIndex), "index") => Some(Type::I32),
        (Opcode::Ttg(_), "ring") => Some(Type::RING),
        (Opcode::Ttg(_), "token" | "tokens") => Some(Type::ASYNC_TOKEN),
        (Opcode::Scf(_) | Opcode::Cf(_), "condition") | (Opcode::Ttg(_) | Opcode::Ttng(_), "pred") => {
            Some(Type::I1)
        }
        (Opcode::Ttg(_) | Opcode::Ttng(_), "slot" | "phase" | "coord") => Some(Type::I32),
        _ => None,
    }
}

/// The type of an `arith.constant` with this value.
pub(crate) fn constant_type(m: &Module, attr: crate::Attr) -> Option<Type> {
    match m.attr_kind(attr) {
        AttrKind::Int(_, t) | AttrKind::Float(_, t) | AttrKind::Splat(_, t) | AttrKind::Dense(_, t) => {
            Some(*t)
        }
        AttrKind::Bool(_) => Some(Type::I1),
        _ => None,
    }
}

/// How many elements a tensor type has.
pub(crate) fn element_count(m: &Module, ty: Type) -> Option<u64> {
    match m.type_kind(ty) {
        TypeKind::Tensor { shape, .. } => shape.iter().try_fold(1u64, |n, &d| n.checked_mul(u64::from(d))),
        _ => None,
    }
}
