//! Reductions, scans and gathers: what goes from element to element along a dimension.
//!
//! ```text
//! %m = "tt.reduce"(%x) <{axis = 1}> ({ arith.maxnumf }) : (tensor<4x64xf32>) -> tensor<4xf32>     =>  hivm.hir.vreduce <max> ins(%a) outs(%b) reduce_dims = [1]
//! ```

use tilewright_ir::attrs::Truth;
use tilewright_ir::dialect::hivm::ReduceKind;
use tilewright_ir::dialect::{arith, hivm, memref, tt};
use tilewright_ir::{Block, Builder, Module, Op, Opcode, Type, Value, ascend};

use super::instructions::{vbrc, vreduce};
use super::unsupported;
use super::vectors::{Lower, Result};

/// How a reduction or a scan combines elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Combined {
    Sum,
    Product,
    Max,
    Min,
}

impl Lower<'_> {
    /// A reduction of one tensor.
    pub fn reduce(&mut self, reduce: tt::Reduce) -> Result<()> {
        let op = reduce.0;
        let kind =
            match combined(self.m, self.m.operands(op).len(), self.m.region_block(reduce.combine(self.m))) {
                Some(Combined::Sum) => ReduceKind::Sum,
                Some(Combined::Max) => ReduceKind::Max,
                Some(Combined::Min) => ReduceKind::Min,
                _ => return self.reduce_by_scalar(reduce),
            };
        let (src, axis) = (self.m.operands(op)[0], reduce.axis(self.m) as usize);
        if self.element(src) == Type::BF16 {
            return self.reduce_by_scalar(reduce);
        }
        let from = self.buffer(op, src)?;
        let (mut shape, element, result) = (self.shape(src), self.element(src), self.m.result(op));
        shape[axis] = 1;
        let out = self.new_buffer(op, &shape, element, ascend::UB);
        vreduce(&mut Builder::before(self.m, op), from, out, kind, axis);
        if self.is_tensor(result) {
            shape.remove(axis);
            let view = self.reshaped(op, out, &shape);
            self.buffers.insert(result, view);
            return Ok(());
        }
        self.becomes_number(op, result, out);
        Ok(())
    }

    /// A result of an operation is the number that a buffer of one element has.
    pub fn becomes_number(&mut self, op: Op, result: Value, buffer: Value) {
        let (rank, element) = (self.shape(buffer).len(), self.m.value_type(result));
        let mut b = Builder::before(self.m, op);
        let zeros = vec![b.int(0, Type::INDEX); rank];
        let number = memref::Load::build(&mut b, buffer, &zeros, element).result(b.module);
        self.m.replace_all_uses(result, number);
    }

    /// A scan of one tensor.
    pub fn scan(&mut self, scan: tt::Scan) -> Result<()> {
        let op = scan.0;
        let kind = combined(self.m, self.m.operands(op).len(), self.m.region_block(scan.combine(self.m)));
        let Some(kind) = kind else { return self.scan_by_scalar(scan) };
        let from = self.buffer(op, self.m.operands(op)[0])?;
        let out = self.out(op, false);
        let (dims, reverse) = (vec![i64::from(scan.axis(self.m))], Truth(scan.reverse(self.m)));
        let mut b = Builder::before(self.m, op);
        match kind {
            Combined::Sum => hivm::Vcumsum::build(&mut b, from, out, None, dims, reverse, &[]).0,
            Combined::Product => hivm::Vcumprod::build(&mut b, from, out, None, dims, reverse, &[]).0,
            Combined::Max => hivm::Vcummax::build(&mut b, from, out, None, dims, reverse, &[]).0,
            Combined::Min => hivm::Vcummin::build(&mut b, from, out, None, dims, reverse, &[]).0,
        };
        Ok(())
    }

    /// Elements of a tensor at the indices that another one holds.
    pub fn gather(&mut self, gather: tt::Gather) -> Result<()> {
        let op = gather.0;
        let (from, indices) =
            (self.buffer(op, gather.src(self.m))?, self.buffer(op, gather.indices(self.m))?);
        if !matches!(self.m.bits(self.element(gather.indices(self.m))), 16 | 32) {
            return Err(unsupported(self.m, op, "a gather by indices that have not 16 or 32 bits"));
        }
        let out = self.out(op, false);
        let axis = i64::from(gather.axis(self.m));
        let mut b = Builder::before(self.m, op);
        hivm::Vgather::build(&mut b, from, indices, out, None, Some(axis), &[]);
        Ok(())
    }
}

impl Lower<'_> {
    /// How often each number occurs: counters that begin at 0, and the scalar unit goes through the elements.
    pub fn histogram(&mut self, histogram: tt::Histogram) -> Result<()> {
        let op = histogram.0;
        let (src, result) = (histogram.src(self.m), histogram.result(self.m));
        let (shape, bins, element) = (self.shape(src), self.shape(result)[0], self.element(result));
        let values = self.elements(op, src)?;
        let mask = histogram.mask(self.m).map(|mask| self.elements(op, mask)).transpose()?;
        let out = self.out(op, false);
        let zero = Builder::before(self.m, op).int(0, element);
        vbrc(&mut Builder::before(self.m, op), zero, out, &[]);
        let (indices, at) = self.nest(op, &shape);
        let value = self.element_at(at, values, &indices);
        let mut b = Builder::before(self.m, at);
        let end = b.int(i64::from(bins), b.module.value_type(value));
        // (Below 0 it is a large number without a sign.)
        let counted = arith::Cmpi::build(&mut b, value, end, arith::CmpIPredicate::Ult, Type::I1);
        let mut counted = counted.result(b.module);
        if let Some(mask) = mask {
            let mask = self.element_at(at, mask, &indices);
            counted = arith::Andi::build(&mut Builder::before(self.m, at), counted, mask).result(self.m);
        }
        let at = self.either(at, counted).0;
        let mut b = Builder::before(self.m, at);
        let bin = arith::IndexCast::build(&mut b, value, Type::INDEX).out(b.module);
        let before = memref::Load::build(&mut b, out, &[bin], element).result(b.module);
        let one = b.int(1, element);
        let after = arith::Addi::build(&mut b, before, one).result(b.module);
        self.put_at(at, after, out, &[bin]);
        Ok(())
    }
}

/// How a reduction or a scan of so many tensors combines elements, if by one operation on one tensor.
fn combined(m: &Module, tensors: usize, block: Block) -> Option<Combined> {
    use arith::Kind as A;
    let ops: Vec<Op> = m.block_ops(block).collect();
    let &[op, end] = &ops[..] else { return None };
    let args = m.block_args(block);
    let both =
        m.operands(op).iter().all(|v| args.contains(v)) && m.operands(op).first() != m.operands(op).last();
    if tensors != 1 || args.len() != 2 || !both || m.operands(end) != m.results(op) {
        return None;
    }
    match m.opcode(op)? {
        Opcode::Arith(A::Addf | A::Addi) => Some(Combined::Sum),
        Opcode::Arith(A::Mulf | A::Muli) => Some(Combined::Product),
        Opcode::Arith(A::Maxnumf | A::Maxsi) => Some(Combined::Max),
        Opcode::Arith(A::Minnumf | A::Minsi) => Some(Combined::Min),
        _ => None,
    }
}
