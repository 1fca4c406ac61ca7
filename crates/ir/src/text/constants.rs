//! Constants: the type that their value says, and how many elements it needs.

use crate::attrs::AttrKind;
use crate::entity::Type;
use crate::module::Module;
use crate::types::TypeKind;

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
