//! What is read from and written to global memory: copies between views of it and of buffers.
//!
//! A plain load is a copy into a buffer of its own, and a plain store one out of the buffer of its value.
//!
//! ```text
//! %x = tt.load %p, %m, %other        =>  hivm.hir.vbrc ins(%other) outs(%a) ; hivm.hir.load ins(%p[0 .. extent]) outs(%a[0 .. extent])
//! tt.store %p, %x, %m                =>  hivm.hir.store ins(%a[0 .. extent]) outs(%p[0 .. extent])
//! ```

use tilewright_ir::dialect::{arith, memref, tt};
use tilewright_ir::memref::MemRef;
use tilewright_ir::{Builder, Op, Type, Value, ascend};

use super::instructions::vbrc;
use super::vectors::{Lower, Result};
use super::{addresses, instructions, masks, unsupported};

impl Lower<'_> {
    /// A load that the kernel's author wrote without buffers. What the mask leaves out is `other`, or 0.
    pub fn load_global(&mut self, load: tt::Load) -> Result<()> {
        let op = load.0;
        let (pointers, mask, other, result) =
            (load.ptr(self.m), load.mask(self.m), load.other(self.m), load.result(self.m));
        self.done.push(op);
        if self.element(result) == Type::I1 {
            return Err(unsupported(self.m, op, "truth values in global memory"));
        }
        if !self.is_tensor(result) {
            if mask.is_some() {
                return Err(unsupported(self.m, op, "a load of one number with a mask"));
            }
            let from = self.global(op, pointers, &[])?;
            let mut b = Builder::before(self.m, op);
            let zero = b.int(0, Type::INDEX);
            let ty = b.module.value_type(result);
            let number = memref::Load::build(&mut b, from, &[zero], ty).result(b.module);
            self.m.replace_all_uses(result, number);
            return Ok(());
        }
        let extents = self.extents(op, pointers, mask)?;
        let from = self.global(op, pointers, &extents)?;
        let buffer = self.out(op, false);
        if mask.is_some() {
            match other {
                Some(other) if !self.numbers.contains_key(&other) => {
                    let other = self.buffer(op, other)?;
                    self.between(op, other, buffer)?;
                }
                other => {
                    let ty = self.element(result);
                    let number = match other {
                        Some(other) => self.numbers[&other],
                        None => {
                            let float = self.m.is_float(ty);
                            let mut b = Builder::before(self.m, op);
                            if float { b.float(0.0, ty) } else { b.int(0, ty) }
                        }
                    };
                    vbrc(&mut Builder::before(self.m, op), number, buffer, &[]);
                }
            }
        }
        let to = self.first(op, buffer, &extents);
        instructions::load(&mut Builder::before(self.m, op), from, to, false);
        Ok(())
    }

    /// A store that the kernel's author wrote without buffers.
    pub fn store_global(&mut self, store: tt::Store) -> Result<()> {
        let op = store.0;
        let (pointers, value, mask) = (store.ptr(self.m), store.value(self.m), store.mask(self.m));
        self.done.push(op);
        if self.element(value) == Type::I1 {
            return Err(unsupported(self.m, op, "truth values in global memory"));
        }
        if !self.is_tensor(value) {
            if mask.is_some() {
                return Err(unsupported(self.m, op, "a store of one number with a mask"));
            }
            let element = self.m.value_type(value);
            let buffer = self.new_buffer(op, &[1], element, ascend::UB);
            vbrc(&mut Builder::before(self.m, op), value, buffer, &[]);
            let to = self.global(op, pointers, &[])?;
            instructions::store(&mut Builder::before(self.m, op), buffer, to, false);
            return Ok(());
        }
        let buffer = self.buffer(op, value)?;
        if self.space(buffer) != ascend::UB {
            return Err(unsupported(self.m, op, "a store of what is not in UB")
                .note("copy it from the buffer that it is in: tle.dsa.copy"));
        }
        let extents = self.extents(op, pointers, mask)?;
        let from = self.first(op, buffer, &extents);
        let to = self.global(op, pointers, &extents)?;
        instructions::store(&mut Builder::before(self.m, op), from, to, false);
        Ok(())
    }

    /// How many elements a mask leaves along each dimension of pointers.
    fn extents(&mut self, op: Op, pointers: Value, mask: Option<Value>) -> Result<Vec<Value>> {
        let shape = self.shape(pointers);
        let found = match mask {
            Some(mask) => masks::of(self.m, op, mask)?,
            None => vec![None; shape.len()],
        };
        let mut b = Builder::before(self.m, op);
        let all = found.into_iter().zip(shape);
        Ok(all.map(|(some, n)| some.unwrap_or_else(|| b.int(i64::from(n), Type::I64))).collect())
    }

    fn indices(&mut self, op: Op, values: &[Value]) -> Vec<Value> {
        let mut b = Builder::before(self.m, op);
        values.iter().map(|&v| arith::IndexCast::build(&mut b, v, Type::INDEX).out(b.module)).collect()
    }

    /// A view of the elements in global memory that pointers lead to; what one pointer leads to is a block of one.
    pub fn global(&mut self, op: Op, pointers: Value, extents: &[Value]) -> Result<Value> {
        let address = addresses::of(self.m, op, pointers)?;
        let element = self.m.pointee_type(self.element(pointers)).unwrap_or(Type::I8);
        let rank = extents.len().max(1);
        let ty = MemRef { shape: vec![None; rank], element, strided: true, space: &ascend::GLOBAL };
        let ty = ty.ty(self.m);
        let mut sizes = self.indices(op, extents);
        let mut b = Builder::before(self.m, op);
        let mut number = |v: Option<Value>| match v {
            Some(v) => arith::IndexCast::build(&mut b, v, Type::INDEX).out(b.module),
            None => b.int(0, Type::INDEX),
        };
        let offset = number(address.offset);
        let mut strides: Vec<Value> = address.strides.iter().map(|&s| number(s)).collect();
        if extents.is_empty() {
            let one = b.int(1, Type::INDEX);
            (sizes, strides) = (vec![one], vec![one]);
        }
        let cast = memref::ReinterpretCast::build(
            &mut b,
            address.base,
            &[offset],
            &sizes,
            &strides,
            None,
            None,
            None,
            ty,
        );
        Ok(cast.result(self.m))
    }

    /// The first elements of a buffer along each dimension.
    pub fn first(&mut self, op: Op, buffer: Value, extents: &[Value]) -> Value {
        let shape = self.shape(buffer);
        let all = extents.iter().zip(&shape).all(|(&e, &n)| self.m.constant_int(e) == Some(i64::from(n)));
        if all {
            return buffer;
        }
        let space = ascend::by_attribute(self.space(buffer)).unwrap_or(&ascend::GLOBAL);
        let ty =
            MemRef { shape: vec![None; extents.len()], element: self.element(buffer), strided: true, space };
        let ty = ty.ty(self.m);
        let sizes = self.indices(op, extents);
        let mut b = Builder::before(self.m, op);
        let (zero, one) = (b.int(0, Type::INDEX), b.int(1, Type::INDEX));
        let (zeros, ones) = (vec![zero; sizes.len()], vec![one; sizes.len()]);
        memref::Subview::build(&mut b, buffer, &zeros, &sizes, &ones, None, None, None, ty).result(self.m)
    }
}
