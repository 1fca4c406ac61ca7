//! Constants: the type that their value says, and how many elements it needs.

use crate::attrs::AttrKind;
use crate::entity::Type;
use crate::module::Module;
use crate::types::{Shape, TypeKind};

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

/// The extents of what has a shape, if all are known.
pub(crate) fn static_shape(m: &Module, ty: Type) -> Option<Shape> {
    match m.type_kind(ty) {
        TypeKind::Tensor { shape, .. } => Some(shape.clone()),
        TypeKind::Shaped { shape, .. } => shape.iter().copied().collect(),
        _ => None,
    }
}

/// How many elements a type of known shape has.
pub(crate) fn element_count(m: &Module, ty: Type) -> Option<u64> {
    static_shape(m, ty)?.iter().try_fold(1u64, |n, &d| n.checked_mul(u64::from(d)))
}
