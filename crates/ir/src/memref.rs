//! The types of views of memory: `memref<4x?xf32, strided<[16, 1], offset: ?>, #hivm.address_space<ub>>`.
//!
//! In a module they are text ([`TypeKind::Opaque`]); this is what it says.

use std::fmt::Write as _;

use crate::ascend::{self, Space};
use crate::entity::{Type, Value};
use crate::module::Module;
use crate::types::TypeKind;

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
    pub fn of(module: &mut Module, value: Value) -> Option<MemRef> {
        let TypeKind::Opaque(text) = module.type_kind(module.value_type(value)) else { return None };
        let text = text.clone();
        MemRef::parse(module, &text)
    }

    /// The memory that a view is of, if a value is one.
    pub fn space_of(module: &Module, value: Value) -> Option<&'static Space> {
        let TypeKind::Opaque(text) = module.type_kind(module.value_type(value)) else { return None };
        let attribute = text.strip_prefix("memref<")?.rsplit(", ").next()?.strip_suffix('>')?;
        ascend::by_attribute(attribute)
    }

    fn parse(module: &mut Module, text: &str) -> Option<MemRef> {
        let inner = text.strip_prefix("memref<")?.strip_suffix('>')?;
        let (dims, rest) = inner.split_once(',')?;
        let mut shape = Vec::new();
        let mut parts = dims.split('x').peekable();
        let mut element = None;
        while let Some(part) = parts.next() {
            match parts.peek() {
                None => element = Some(part),
                Some(_) if part == "?" => shape.push(None),
                Some(_) => shape.push(Some(part.parse().ok()?)),
            }
        }
        let element = match element? {
            "f16" => Type::F16,
            "bf16" => Type::BF16,
            "f32" => Type::F32,
            "index" => Type::INDEX,
            int => module.int_type(int.strip_prefix('i')?.parse().ok()?),
        };
        let space = ascend::by_attribute(rest.rsplit(", ").next()?.trim())?;
        Some(MemRef { shape, element, strided: rest.contains("strided<"), space })
    }

    /// The type in a module.
    pub fn ty(&self, module: &mut Module) -> Type {
        let mut text = String::from("memref<");
        for extent in &self.shape {
            match extent {
                Some(n) => write!(text, "{n}x"),
                None => write!(text, "?x"),
            }
            .expect("a string takes text");
        }
        text += &crate::print_type(module, self.element);
        if self.strided {
            let strides = vec!["?"; self.shape.len()].join(", ");
            write!(text, ", strided<[{strides}], offset: ?>").expect("a string takes text");
        }
        write!(text, ", {}>", self.space.attribute).expect("a string takes text");
        module.ty(TypeKind::Opaque(text))
    }
}
