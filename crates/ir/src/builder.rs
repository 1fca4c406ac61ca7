//! The builder: creates operations at an insertion point with a current location.

use crate::attrs::{AttrKind, FloatBits};
use crate::dialect::arith;
use crate::entity::{Block, Loc, Op, Type, Value};
use crate::module::{Module, OpSpec};
use crate::types::TypeKind;

/// Where new operations go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InsertPoint {
    /// At the end of a block.
    End(Block),
    /// Before an operation.
    Before(Op),
}

/// Creates operations in a module.
#[derive(Debug)]
pub struct Builder<'m> {
    /// The module built into.
    pub module: &'m mut Module,
    point: InsertPoint,
    loc: Loc,
}

impl<'m> Builder<'m> {
    /// A builder that appends to a block.
    pub fn at_end(module: &'m mut Module, block: Block) -> Self {
        Builder { module, point: InsertPoint::End(block), loc: Loc::UNKNOWN }
    }

    /// A builder that inserts before an operation and takes its location.
    pub fn before(module: &'m mut Module, op: Op) -> Self {
        let loc = module.op_loc(op);
        Builder { module, point: InsertPoint::Before(op), loc }
    }

    /// A builder that inserts after an operation and takes its location.
    pub fn after(module: &'m mut Module, op: Op) -> Self {
        let loc = module.op_loc(op);
        let point = match module.next_op(op) {
            Some(next) => InsertPoint::Before(next),
            None => InsertPoint::End(module.parent_block(op).expect("an attached operation")),
        };
        Builder { module, point, loc }
    }

    /// A builder at a given point.
    pub fn at(module: &'m mut Module, point: InsertPoint, loc: Loc) -> Self {
        Builder { module, point, loc }
    }

    /// The insertion point.
    pub fn point(&self) -> InsertPoint {
        self.point
    }

    /// Moves the insertion point.
    pub fn set_point(&mut self, point: InsertPoint) {
        self.point = point;
    }

    /// The location of new operations.
    pub fn loc(&self) -> Loc {
        self.loc
    }

    /// Sets the location of new operations.
    pub fn set_loc(&mut self, loc: Loc) {
        self.loc = loc;
    }

    /// The block into which operations go.
    pub fn block(&self) -> Block {
        match self.point {
            InsertPoint::End(block) => block,
            InsertPoint::Before(op) => self.module.parent_block(op).expect("an attached operation"),
        }
    }

    /// Creates an operation at the insertion point.
    pub fn insert(&mut self, spec: OpSpec) -> Op {
        let op = self.module.create_op(spec);
        self.insert_op(op);
        op
    }

    /// Puts a detached operation at the insertion point.
    pub fn insert_op(&mut self, op: Op) {
        match self.point {
            InsertPoint::End(block) => self.module.append_op(block, op),
            InsertPoint::Before(anchor) => self.module.insert_before(op, anchor),
        }
    }

    /// An integer constant; for a tensor type, a splat.
    pub fn int(&mut self, value: i64, ty: Type) -> Value {
        let element = self.module.element_type(ty);
        let value = match self.module.type_kind(element) {
            // Held sign-extended from the type's width, so that equal constants are equal attributes.
            TypeKind::Int(bits) if *bits < 64 => (value << (64 - bits)) >> (64 - bits),
            _ => value,
        };
        let attr = self.module.attr(AttrKind::Int(value, element));
        self.constant(attr, ty)
    }

    /// A floating-point constant; for a tensor type, a splat.
    pub fn float(&mut self, value: f64, ty: Type) -> Value {
        let element = self.module.element_type(ty);
        let attr = self.module.attr(AttrKind::Float(FloatBits::new(value), element));
        self.constant(attr, ty)
    }

    fn constant(&mut self, attr: crate::Attr, ty: Type) -> Value {
        let attr = if self.module.is_tensor(ty) { self.module.attr(AttrKind::Splat(attr, ty)) } else { attr };
        arith::Constant::build(self, attr, ty).result(self.module)
    }

    /// An `i32` constant.
    pub fn i32(&mut self, value: i32) -> Value {
        self.int(i64::from(value), Type::I32)
    }
}
