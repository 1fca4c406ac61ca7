//! The types of views of memory: `memref<4x?xf32, strided<[16, 1], offset: ?>, #hivm.address_space<ub>>`.
//!
//! In a module they are [`TypeKind::Shaped`]; this is what they say of memories that are modelled.

use crate::ascend::{self, Space};
use crate::entity::{Type, Value};
use crate::module::Module;
use crate::types::{Container, TypeKind};

/// What the type of a view says. Extents, strides and offsets that are known at run time are `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemRef {
    /// Extents.
    pub shape: Vec<Option<u32>>,
    /// What the elements are.
    pub element: Type,
    /// Whether elements lie where strides and an offset say that are known at run time; else side by side, from the first on.
    pub strided: bool,
    /// The memory.
    pub space: &'static Space,
}

impl MemRef {
    /// The type of a view, if a value is one.
    pub fn of(module: &Module, value: Value) -> Option<MemRef> {
        let TypeKind::Shaped { container: Container::MemRef, shape, element, rest } =
            module.type_kind(module.value_type(value))
        else {
            return None;
        };
        let space = space(rest)?;
        Some(MemRef { shape: shape.to_vec(), element: *element, strided: rest.contains("strided<"), space })
    }

    /// The memory that a view is of, if a value is one.
    pub fn space_of(module: &Module, value: Value) -> Option<&'static Space> {
        match module.type_kind(module.value_type(value)) {
            TypeKind::Shaped { container: Container::MemRef, rest, .. } => space(rest),
            _ => None,
        }
    }

    /// The type in a module.
    pub fn ty(&self, module: &mut Module) -> Type {
        let strided = if self.strided {
            format!(", strided<[{}], offset: ?>", vec!["?"; self.shape.len()].join(", "))
        } else {
            String::new()
        };
        let rest = format!("{strided}, {}", self.space.attribute);
        let shape = self.shape.iter().copied().collect();
        module.ty(TypeKind::Shaped { container: Container::MemRef, shape, element: self.element, rest })
    }
}

/// The memory that the text behind a view's elements names.
fn space(rest: &str) -> Option<&'static Space> {
    ascend::by_attribute(rest.rsplit(", ").next()?)
}

/// What stands in a list of indices for one that is a value, in the attribute that has the others.
pub const DYNAMIC: i64 = i64::MIN;

/// One of a list of indices, extents or strides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Index {
    /// A number.
    Known(i64),
    /// Known at run time.
    Value(Value),
}

/// A list of indices of which some are values and some numbers; without numbers, all are values.
pub fn index_list(values: &[Value], known: Option<&[i64]>) -> Vec<Index> {
    let mut values = values.iter().copied();
    let Some(known) = known else { return values.map(Index::Value).collect() };
    let index = |&n: &i64| if n == DYNAMIC { values.next().map(Index::Value) } else { Some(Index::Known(n)) };
    known.iter().filter_map(index).collect()
}
