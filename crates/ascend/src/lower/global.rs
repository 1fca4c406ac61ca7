//! What is read from and written to global memory: copies between views of it and of buffers.
//!
//! A plain load is a copy into a buffer of its own, in UB, or in L1 where it is an operand of products, and a plain store one out of the buffer of its value. What is added to
//! memory atomically is a store that combines. Where indices begin again from 0 (`i % n`), as in loads of matrices whose last blocks go over the edge, the pieces come one by one.
//!
//! ```text
//! %x = tt.load %p, %m, %other        =>  hivm.hir.vbrc ins(%other) outs(%a) ; hivm.hir.load ins(%p[0 .. extent]) outs(%a[0 .. extent])
//! tt.store %p, %x, %m                =>  hivm.hir.store ins(%a[0 .. extent]) outs(%p[0 .. extent])
//! ```

use tilewright_ir::dialect::hivm::AtomicKind;
use tilewright_ir::dialect::{arith, memref, scf, tt};
use tilewright_ir::memref::MemRef;
use tilewright_ir::{Builder, Diagnostic, InsertPoint, Op, Type, Value, ascend};

use super::addresses::{Address, Wrap};
use super::instructions::{fixpipe, vbrc};
use super::masks::Span;
use super::vectors::{Lower, Result};
use super::{addresses, atomics, instructions, masks, unsupported};

/// A block of the elements that pointers lead to, and that a buffer has room for.
#[derive(Clone)]
pub(super) struct Part {
    /// The first element along each dimension, an `i64`; none for 0.
    first: Vec<Option<Value>>,
    /// How many there are, each an `i64`.
    extents: Vec<Value>,
}

impl Part {
    /// The first elements.
    pub fn first(extents: &[Value]) -> Part {
        Part { first: vec![None; extents.len()], extents: extents.to_vec() }
    }
}

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
            if mask.is_some() || self.leads_to_buffer(pointers) {
                return self.load_one(load);
            }
            let from = self.global(op, pointers, &Part::first(&[]))?;
            let mut b = Builder::before(self.m, op);
            let zero = b.int(0, Type::INDEX);
            let ty = b.module.value_type(result);
            let number = memref::Load::build(&mut b, from, &[zero], ty).result(b.module);
            self.m.replace_all_uses(result, number);
            return Ok(());
        }
        let Some(part) = self.block_of(op, pointers, mask) else { return self.load_scattered(load) };
        let wanted = self.wanted(result);
        // (Only one number is put around a block in L1.)
        let beside = other.is_none_or(|other| self.numbers.contains_key(&other));
        let product = wanted.products && beside && self.shape(result).len() == 2;
        if product {
            self.load_operand(op, pointers, &part, mask.is_some())?;
        }
        if product && !wanted.vectors {
            return Ok(());
        }
        let buffer = self.out(op, false);
        if mask.is_some() {
            match other.filter(|other| !self.numbers.contains_key(other)) {
                Some(other) => {
                    let other = self.buffer(op, other)?;
                    self.between(op, other, buffer)?;
                }
                None => {
                    let number = self.other(load);
                    vbrc(&mut Builder::before(self.m, op), number, buffer, &[]);
                }
            }
        }
        self.bring(op, pointers, &part, buffer, None)
    }

    /// The elements that a mask leaves, where those and what pointers lead to are blocks.
    fn block_of(&mut self, op: Op, pointers: Value, mask: Option<Value>) -> Option<Part> {
        if self.leads_to_buffer(pointers) || addresses::wrapping(self.m, op, pointers).is_err() {
            return None;
        }
        self.part(op, pointers, mask).ok()
    }

    /// The number that a load gives where its mask leaves something out.
    pub fn other(&mut self, load: tt::Load) -> Value {
        if let Some(&number) = load.other(self.m).and_then(|other| self.numbers.get(&other)) {
            return number;
        }
        let ty = self.element(load.result(self.m));
        let float = self.m.is_float(ty);
        let mut b = Builder::before(self.m, load.0);
        if float { b.float(0.0, ty) } else { b.int(0, ty) }
    }

    /// Loads what products want to L1.
    fn load_operand(&mut self, op: Op, pointers: Value, part: &Part, masked: bool) -> Result<()> {
        let result = self.m.result(op);
        let (shape, element) = (self.shape(result), self.element(result));
        let buffer = self.new_buffer(op, &shape, element, ascend::L1);
        let pad = masked.then(|| self.other(tt::Load(op)));
        self.bring(op, pointers, part, buffer, pad)?;
        self.copies.insert((result, ascend::L1), buffer);
        self.buffers.insert(result, buffer);
        Ok(())
    }

    /// Brings what pointers lead to into a buffer in UB or L1.
    fn bring(
        &mut self,
        op: Op,
        pointers: Value,
        part: &Part,
        buffer: Value,
        pad: Option<Value>,
    ) -> Result<()> {
        let (address, wrap) = addresses::wrapping(self.m, op, pointers)?;
        let Some(wrap) = wrap else {
            self.bring_block(op, &address, part, buffer, pad);
            return Ok(());
        };
        if pad.is_some() {
            // All of the buffer, before the pieces come.
            let nothing = Builder::before(self.m, op).int(0, Type::I64);
            let none = Part::first(&vec![nothing; part.extents.len()]);
            self.bring_block(op, &address, &none, buffer, pad);
        }
        self.bring_pieces(op, &address, &wrap, part, buffer);
        Ok(())
    }

    fn bring_block(&mut self, op: Op, address: &Address, part: &Part, buffer: Value, pad: Option<Value>) {
        let element = self.element(buffer);
        let from = self.view(op, address, element, part);
        let to = self.of_buffer(op, buffer, part);
        let in_ub = self.space(buffer) == ascend::UB;
        let mut b = Builder::before(self.m, op);
        match in_ub {
            true => instructions::load(&mut b, from, to, false),
            false => instructions::nd2nz(&mut b, from, to, pad, false),
        };
    }

    /// Where indices begin again, a block is as many as it goes round: piece `k` has the indices of which `k` is the quotient by `end`. Quotients are rounded to
    /// zero, so piece 0 goes from `1 - end` on, those below it end at `k * end`, and remainders of what is negative are negative.
    fn bring_pieces(&mut self, op: Op, address: &Address, wrap: &Wrap, part: &Part, buffer: Value) {
        let d = wrap.dim;
        let mut b = Builder::before(self.m, op);
        let start = match part.first[d] {
            Some(first) => arith::Addi::build(&mut b, wrap.first, first).result(b.module),
            None => wrap.first,
        };
        let stop = arith::Addi::build(&mut b, start, part.extents[d]).result(b.module);
        let from = arith::Divsi::build(&mut b, start, wrap.end).result(b.module);
        let (zero, one, below) = (b.int(0, Type::I64), b.int(1, Type::I64), b.int(-1, Type::I64));
        let last = arith::Addi::build(&mut b, stop, below).result(b.module);
        let last = arith::Divsi::build(&mut b, last, wrap.end).result(b.module);
        let to = arith::Addi::build(&mut b, last, one).result(b.module);
        let looped = scf::For::build(&mut b, from, to, one, &[], &[]);
        let body = self.m.append_block(looped.body(self.m), &[Type::I64]);
        let loc = self.m.op_loc(op);
        let end = scf::Yield::build(&mut Builder::at(self.m, InsertPoint::End(body), loc), &[]).0;
        let k = self.m.block_args(body)[0];
        let mut b = Builder::before(self.m, end);
        let passed = arith::Muli::build(&mut b, k, wrap.end).result(b.module);
        let others = arith::Addi::build(&mut b, wrap.end, below).result(b.module);
        let above = arith::Cmpi::build(&mut b, k, zero, arith::CmpIPredicate::Sgt, Type::I1).result(b.module);
        let before = arith::Select::build(&mut b, above, zero, others).result(b.module);
        let first_of = arith::Subi::build(&mut b, passed, before).result(b.module);
        let under = arith::Cmpi::build(&mut b, k, zero, arith::CmpIPredicate::Slt, Type::I1).result(b.module);
        let behind = arith::Select::build(&mut b, under, one, wrap.end).result(b.module);
        let end_of = arith::Addi::build(&mut b, passed, behind).result(b.module);
        let first = arith::Maxsi::build(&mut b, start, first_of).result(b.module);
        let behind = arith::Minsi::build(&mut b, stop, end_of).result(b.module);
        let mut piece = part.clone();
        piece.first[d] = Some(arith::Subi::build(&mut b, first, wrap.first).result(b.module));
        piece.extents[d] = arith::Subi::build(&mut b, behind, first).result(b.module);
        // The address counts on where the index begins again.
        let mut address = address.clone();
        let back = arith::Muli::build(&mut b, passed, wrap.stride).result(b.module);
        let offset = address.offset.unwrap_or_else(|| b.int(0, Type::I64));
        address.offset = Some(arith::Subi::build(&mut b, offset, back).result(b.module));
        self.bring_block(end, &address, &piece, buffer, None);
    }

    /// A store that the kernel's author wrote without buffers.
    pub fn store_global(&mut self, store: tt::Store) -> Result<()> {
        self.done.push(store.0);
        let (pointers, value, mask) = (store.ptr(self.m), store.value(self.m), store.mask(self.m));
        self.write(store.0, pointers, value, mask, None)
    }

    /// What is combined with what lies in global memory: by an engine, unless what lay there is wanted back anywhere in the kernel.
    pub fn combine_global(&mut self, atomic: tt::AtomicRmw) -> Result<()> {
        let op = atomic.0;
        self.done.push(op);
        let (pointers, value, mask) = (atomic.ptr(self.m), atomic.val(self.m), atomic.mask(self.m));
        let own = atomics::is_own(self.m, pointers);
        if self.leads_to_buffer(pointers) && !own {
            return Err(self.refused(op));
        }
        match atomics::engine(atomic.rmw_op(self.m)) {
            Some(kind) if !self.locked && !own && !atomics::is_of_another_type(self.m, op) => {
                self.write(op, pointers, value, mask, Some(kind))
            }
            _ => self.atomic_by_scalar(op, pointers, [Some(value), None], mask),
        }
    }

    /// A value that takes another one's place where that lies in global memory.
    pub fn swap_global(&mut self, atomic: tt::AtomicCas) -> Result<()> {
        let op = atomic.0;
        self.done.push(op);
        let pointers = atomic.ptr(self.m);
        if self.leads_to_buffer(pointers) && !atomics::is_own(self.m, pointers) {
            return Err(self.refused(op));
        }
        let operands = [Some(atomic.cmp(self.m)), Some(atomic.val(self.m))];
        self.atomic_by_scalar(op, pointers, operands, None)
    }

    /// (Programs take their turns under a lock, but for what they have in common between barriers.)
    fn refused(&self, op: Op) -> Diagnostic {
        unsupported(self.m, op, "an atomic operation on a buffer that other programs reach")
    }

    fn write(
        &mut self,
        op: Op,
        pointers: Value,
        value: Value,
        mask: Option<Value>,
        kind: Option<AtomicKind>,
    ) -> Result<()> {
        if self.element(value) == Type::I1 {
            return Err(unsupported(self.m, op, "truth values in global memory"));
        }
        if !self.is_tensor(value) {
            let always = mask.is_none_or(|mask| self.m.constant_int(mask).is_some_and(|n| n != 0));
            let op = match mask.filter(|_| !always) {
                Some(mask) => self.where_true(op, mask),
                None => op,
            };
            if self.leads_to_buffer(pointers) && kind.is_none() {
                return self.store_one(op, pointers, value);
            }
            let element = self.m.value_type(value);
            let buffer = self.new_buffer(op, &[1], element, ascend::UB);
            vbrc(&mut Builder::before(self.m, op), value, buffer, &[]);
            let to = self.global(op, pointers, &Part::first(&[]))?;
            instructions::store(&mut Builder::before(self.m, op), buffer, to, false, kind);
            return Ok(());
        }
        let wraps = |l: &mut Self| addresses::of(l.m, op, pointers).is_err();
        let Some(part) = self.block_of(op, pointers, mask).filter(|_| !wraps(self)) else {
            return self.store_scattered(op, pointers, value, mask, kind);
        };
        let mut buffer = self.anywhere(op, value)?;
        // A sum of products goes to global memory as it is.
        let sum = kind.is_none() && self.space(buffer) == ascend::L0C;
        if !sum {
            buffer = self.buffer(op, value)?;
        }
        let from = self.of_buffer(op, buffer, &part);
        let to = self.global(op, pointers, &part)?;
        let mut b = Builder::before(self.m, op);
        match sum {
            true => fixpipe(&mut b, from, to, true, false),
            false => instructions::store(&mut b, from, to, false, kind),
        };
        Ok(())
    }

    /// The elements that a mask leaves of those that pointers lead to.
    fn part(&mut self, op: Op, pointers: Value, mask: Option<Value>) -> Result<Part> {
        let shape = self.shape(pointers);
        let spans = match mask {
            Some(mask) => masks::of(self.m, op, mask)?,
            None => vec![Span::default(); shape.len()],
        };
        let mut b = Builder::before(self.m, op);
        let mut part = Part { first: Vec::new(), extents: Vec::new() };
        for (span, n) in spans.into_iter().zip(shape) {
            let end = span.end.unwrap_or_else(|| b.int(i64::from(n), Type::I64));
            part.first.push(span.first);
            part.extents.push(match span.first {
                None => end,
                Some(first) => {
                    let count = arith::Subi::build(&mut b, end, first).result(b.module);
                    let zero = b.int(0, Type::I64);
                    arith::Maxsi::build(&mut b, count, zero).result(b.module)
                }
            });
        }
        Ok(part)
    }

    fn indices(&mut self, op: Op, values: &[Value]) -> Vec<Value> {
        let mut b = Builder::before(self.m, op);
        values.iter().map(|&v| arith::IndexCast::build(&mut b, v, Type::INDEX).out(b.module)).collect()
    }

    /// A view of the elements in global memory that pointers lead to; what one pointer leads to is a block of one.
    pub fn global(&mut self, op: Op, pointers: Value, part: &Part) -> Result<Value> {
        let address = addresses::of(self.m, op, pointers)?;
        let element = self.m.pointee_type(self.element(pointers)).unwrap_or(Type::I8);
        Ok(self.view(op, &address, element, part))
    }

    /// A view of the elements of a part in global memory.
    pub fn view(&mut self, op: Op, address: &Address, element: Type, part: &Part) -> Value {
        let rank = part.extents.len().max(1);
        let ty = MemRef { shape: vec![None; rank], element, strided: true, space: &ascend::GLOBAL };
        let ty = ty.ty(self.m);
        let mut sizes = self.indices(op, &part.extents);
        let mut b = Builder::before(self.m, op);
        let mut offset = address.offset;
        for (first, stride) in part.first.iter().zip(&address.strides) {
            let (Some(first), Some(stride)) = (*first, *stride) else { continue };
            let to = arith::Muli::build(&mut b, first, stride).result(b.module);
            offset = Some(match offset {
                Some(offset) => arith::Addi::build(&mut b, offset, to).result(b.module),
                None => to,
            });
        }
        let mut number = |v: Option<Value>| match v {
            Some(v) => arith::IndexCast::build(&mut b, v, Type::INDEX).out(b.module),
            None => b.int(0, Type::INDEX),
        };
        let offset = number(offset);
        let mut strides: Vec<Value> = address.strides.iter().map(|&s| number(s)).collect();
        if part.extents.is_empty() {
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
        cast.result(self.m)
    }

    /// The elements of a buffer that a part is of.
    pub fn of_buffer(&mut self, op: Op, buffer: Value, part: &Part) -> Value {
        let shape = self.shape(buffer);
        let all =
            part.extents.iter().zip(&shape).all(|(&e, &n)| self.m.constant_int(e) == Some(i64::from(n)));
        if all {
            return buffer;
        }
        let space = ascend::by_attribute(self.space(buffer)).unwrap_or(&ascend::GLOBAL);
        let ty =
            MemRef { shape: vec![None; shape.len()], element: self.element(buffer), strided: true, space };
        let ty = ty.ty(self.m);
        let sizes = self.indices(op, &part.extents);
        let mut b = Builder::before(self.m, op);
        let (zero, one) = (b.int(0, Type::INDEX), b.int(1, Type::INDEX));
        let mut offsets = Vec::new();
        for first in &part.first {
            offsets.push(match first {
                Some(first) => arith::IndexCast::build(&mut b, *first, Type::INDEX).out(b.module),
                None => zero,
            });
        }
        let ones = vec![one; sizes.len()];
        memref::Subview::build(&mut b, buffer, &offsets, &sizes, &ones, None, None, None, ty).result(self.m)
    }
}
