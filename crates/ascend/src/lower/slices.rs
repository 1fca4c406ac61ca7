//! Slices and tiles of tensors: copies between parts of buffers.
//!
//! ```text
//! %s = tt.extract_slice %x[%i] by [2] : tensor<64xf32> -> tensor<16xf32>      =>  hivm.hir.copy ins(%a[%i][16][2]) outs(%b)
//! ```

use tilewright_ir::dialect::{arith, memref, tt};
use tilewright_ir::memref::MemRef;
use tilewright_ir::{Builder, Op, Opcode, Type, Value, ascend};

use super::instructions::copy;
use super::vectors::{Lower, Result};

impl Lower<'_> {
    /// What takes a part out of a tensor, or replaces it.
    pub fn slice(&mut self, op: Op) -> Result<()> {
        use tt::Kind as T;
        let operands = self.m.operands(op).to_vec();
        let (whole, part, at) = match self.m.opcode(op) {
            Some(Opcode::Tt(T::InsertSlice | T::InsertTile)) => {
                (operands[0], Some(operands[1]), &operands[2..])
            }
            _ => (operands[0], None, &operands[1..]),
        };
        let extents = self.shape(part.unwrap_or(self.m.result(op)));
        let (strides, by) = match self.m.opcode(op) {
            Some(Opcode::Tt(T::ExtractSlice)) => {
                (tt::ExtractSlice(op).strides(self.m), vec![1; extents.len()])
            }
            Some(Opcode::Tt(T::InsertSlice)) => (tt::InsertSlice(op).strides(self.m), vec![1; extents.len()]),
            // A tile's index counts tiles.
            _ => (vec![1; extents.len()], extents.clone()),
        };
        let from = self.buffer(op, whole)?;
        let part = part.map(|part| self.buffer(op, part)).transpose()?;
        let out = self.out(op, false);
        let mut b = Builder::before(self.m, op);
        let mut offsets = Vec::new();
        for (&at, by) in at.iter().zip(by) {
            let by = b.int(i64::from(by), Type::I32);
            let first = arith::Muli::build(&mut b, at, by).result(b.module);
            offsets.push(arith::IndexCast::build(&mut b, first, Type::INDEX).out(b.module));
        }
        match part {
            None => {
                let view = self.strided(op, from, &offsets, &extents, &strides);
                copy(&mut Builder::before(self.m, op), view, out);
            }
            Some(part) => {
                copy(&mut Builder::before(self.m, op), from, out);
                let view = self.strided(op, out, &offsets, &extents, &strides);
                copy(&mut Builder::before(self.m, op), part, view);
            }
        }
        Ok(())
    }

    /// Elements of a buffer that are apart.
    pub fn strided(
        &mut self,
        op: Op,
        buffer: Value,
        offsets: &[Value],
        extents: &[u32],
        strides: &[i32],
    ) -> Value {
        let space = ascend::by_attribute(self.space(buffer)).unwrap_or(&ascend::GLOBAL);
        let ty =
            MemRef { shape: vec![None; extents.len()], element: self.element(buffer), strided: true, space };
        let ty = ty.ty(self.m);
        let mut b = Builder::before(self.m, op);
        let sizes: Vec<Value> = extents.iter().map(|&n| b.int(i64::from(n), Type::INDEX)).collect();
        let strides: Vec<Value> = strides.iter().map(|&n| b.int(i64::from(n), Type::INDEX)).collect();
        memref::Subview::build(&mut b, buffer, offsets, &sizes, &strides, None, None, None, ty).result(self.m)
    }

    /// A tensor whose last two elements become elements of two, or two that become one with a dimension more: copies of every other element.
    pub fn split_or_join(&mut self, op: Op) -> Result<()> {
        let (operands, results) = (self.m.operands(op).to_vec(), self.m.results(op).to_vec());
        let joins = results.len() == 1;
        let parts = if joins { &operands } else { &results };
        let mut extents = self.shape(parts[0]);
        extents.push(1);
        let ones = vec![1; extents.len()];
        let whole = match joins {
            true => self.out(op, false),
            false => self.buffer(op, operands[0])?,
        };
        for (i, &part) in parts.iter().enumerate() {
            let mut b = Builder::before(self.m, op);
            let mut offsets = vec![b.int(0, Type::INDEX); extents.len() - 1];
            offsets.push(b.int(i as i64, Type::INDEX));
            let view = self.strided(op, whole, &offsets, &extents, &ones);
            if joins {
                let from = self.buffer(op, part)?;
                let from = self.reshaped(op, from, &extents);
                copy(&mut Builder::before(self.m, op), from, view);
            } else {
                let (shape, element) = (self.shape(part), self.element(part));
                let out = self.new_buffer(op, &shape, element, ascend::UB);
                self.buffers.insert(part, out);
                let to = self.reshaped(op, out, &extents);
                copy(&mut Builder::before(self.m, op), view, to);
            }
        }
        Ok(())
    }

    /// The number that a tensor of one element holds.
    pub fn only_element(&mut self, op: Op) -> Result<()> {
        let (src, result) = (self.m.operands(op)[0], self.m.result(op));
        if let Some(&number) = self.numbers.get(&src) {
            self.m.replace_all_uses(result, number);
            return Ok(());
        }
        let buffer = self.buffer(op, src)?;
        self.becomes_number(op, result, buffer);
        Ok(())
    }
}
