//! Products: operands come to L1, and what they are added up in is in L0C.
//!
//! A load that is an operand goes to L1 at once; what vectors compute goes there through the workspace. A product that a loop adds to one sum stays in L0C all the time; one that is
//! added to anything else comes to UB, where vectors add it.
//!
//! ```text
//! %a = tt.load %p ; %b = arith.truncf %v
//! %c = tt.dot %a, (tt.trans %b), 0          =>  hivm.hir.nd2nz ins(%p) outs(%l) ; hivm.hir.store ins(%v') outs(%w) ; hivm.hir.nd2nz ins(%w) outs(%r)
//!                                               hivm.hir.mmadL1 {b_transpose = true} ins(%l, %r, …) outs(%c)
//! ```

use tilewright_ir::dialect::{arith, hivm, scf, tt, ttg};
use tilewright_ir::{AttrKind, Builder, Op, Opcode, Type, Value, ascend};

use super::instructions::{copy, mmad, vector};
use super::unsupported;
use super::vectors::{Lower, Result};

/// Who uses a tensor.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Wanted {
    /// It is an operand of products.
    pub products: bool,
    /// Anything else does.
    pub vectors: bool,
}

impl Lower<'_> {
    /// Who uses a tensor.
    pub fn wanted(&self, v: Value) -> Wanted {
        let mut found = Wanted::default();
        for used in self.m.uses(v) {
            let of_product = match self.m.opcode(used.op) {
                Some(Opcode::Tt(tt::Kind::Dot)) => tt::Dot(used.op).c(self.m) != v,
                Some(Opcode::Tt(tt::Kind::Trans)) => {
                    let trans = tt::Trans(used.op);
                    let then = self.wanted(trans.result(self.m));
                    found.vectors |= then.vectors;
                    found.products |= then.products;
                    if then.vectors || trans.order(self.m)[..] == [1, 0] {
                        continue;
                    }
                    false
                }
                Some(Opcode::Ttg(ttg::Kind::LocalAlloc)) => self.space(self.m.result(used.op)) == ascend::L1,
                Some(Opcode::Ttg(ttg::Kind::LocalStore)) => {
                    self.space(ttg::LocalStore(used.op).dst(self.m)) == ascend::L1
                }
                _ => false,
            };
            found.products |= of_product;
            found.vectors |= !of_product;
        }
        found
    }

    /// Whether all elements of a tensor are 0.
    pub fn is_zero(&self, v: Value) -> bool {
        let number = self.numbers.get(&v).and_then(|&n| self.m.constant_value(n));
        match number.map(|a| self.m.attr_kind(a)) {
            Some(AttrKind::Float(f, _)) => f.value() == 0.0,
            Some(AttrKind::Int(n, _)) => *n == 0,
            _ => false,
        }
    }

    /// An operand of a product, and whether it lies there transposed.
    fn operand(&mut self, op: Op, v: Value) -> Result<(Value, bool)> {
        let flipped = tt::Trans::of(self.m, v).filter(|t| t.order(self.m)[..] == [1, 0]);
        let v = flipped.map_or(v, |t| t.src(self.m));
        let near = self.buffers.get(&v).map_or("", |&b| self.space(b));
        if ascend::by_attribute(near).is_some_and(|s| ["L0A", "L0B"].contains(&s.name)) {
            return match flipped {
                None => Ok((self.buffers[&v], false)),
                Some(t) => Err(unsupported(self.m, t.0, "what is in L0A or L0B, transposed")
                    .note("copy it there from where it lies in the other order, or multiply what is in L1")),
            };
        }
        Ok((self.held_in(op, v, ascend::L1)?, flipped.is_some()))
    }

    /// Products of several matrices: one after the other, each taken out of its buffer in UB and put back there.
    fn dots(&mut self, dot: tt::Dot) -> Result<()> {
        let op = dot.0;
        let (a, b, c, result) = (dot.a(self.m), dot.b(self.m), dot.c(self.m), dot.result(self.m));
        let [count, m, k] = self.shape(a)[..] else {
            return Err(unsupported(self.m, op, "products of matrices that more than one dimension counts"));
        };
        let n = self.shape(b)[2];
        let (left, right) = (self.buffer(op, a)?, self.buffer(op, b)?);
        let (shape, element) = (self.shape(result), self.element(result));
        let all = self.new_buffer(op, &shape, element, ascend::UB);
        for i in 0..count {
            let operands = [self.matrix(op, left, i)?, self.matrix(op, right, i)?];
            let sum = self.new_buffer(op, &[m, n], element, ascend::L0C);
            let mut builder = Builder::before(self.m, op);
            let init = builder.int(1, Type::I1);
            let extents = [m, k, n].map(|e| builder.int(i64::from(e), Type::INDEX));
            mmad(&mut builder, operands, [false, false], init, extents, sum);
            let product = self.new_buffer(op, &[m, n], element, ascend::UB);
            self.between(op, sum, product)?;
            let product = self.reshaped(op, product, &[1, m, n]);
            let to = self.numbered(op, all, i);
            copy(&mut Builder::before(self.m, op), product, to);
        }
        if self.is_zero(c) {
            self.buffers.insert(result, all);
            return Ok(());
        }
        let to = self.buffer(op, c)?;
        let sum = self.out(op, true);
        vector(&mut Builder::before(self.m, op), hivm::Kind::Vadd, &[to, all], sum, false);
        Ok(())
    }

    /// One of the matrices in a buffer in UB, as a view.
    fn numbered(&mut self, op: Op, buffer: Value, i: u32) -> Value {
        let shape = self.shape(buffer);
        let mut b = Builder::before(self.m, op);
        let offsets = [i64::from(i), 0, 0].map(|n| b.int(n, Type::INDEX));
        self.strided(op, buffer, &offsets, &[1, shape[1], shape[2]], &[1; 3])
    }

    /// A copy of it in L1.
    fn matrix(&mut self, op: Op, buffer: Value, i: u32) -> Result<Value> {
        let (shape, element) = (self.shape(buffer), self.element(buffer));
        let from = self.numbered(op, buffer, i);
        let part = self.new_buffer(op, &[1, shape[1], shape[2]], element, ascend::UB);
        copy(&mut Builder::before(self.m, op), from, part);
        let part = self.reshaped(op, part, &shape[1..]);
        let near = self.new_buffer(op, &shape[1..], element, ascend::L1);
        self.between(op, part, near)?;
        Ok(near)
    }

    /// `a · b + c`.
    pub fn dot(&mut self, dot: tt::Dot) -> Result<()> {
        let op = dot.0;
        let (a, b, c, result) = (dot.a(self.m), dot.b(self.m), dot.c(self.m), dot.result(self.m));
        let element = self.element(a);
        if !matches!(element, Type::F16 | Type::BF16 | Type::F32 | Type::I8) {
            let text = format!("products of {}", tilewright_ir::print_type(self.m, element));
            return Err(
                unsupported(self.m, op, text).note("the cube core multiplies fp16, bf16, fp32 and int8")
            );
        }
        if self.shape(a).len() != 2 {
            return self.dots(dot);
        }
        let ((left, a_flipped), (right, b_flipped)) = (self.operand(op, a)?, self.operand(op, b)?);
        let (m, k, n) = (self.shape(a)[0], self.shape(a)[1], self.shape(b)[1]);
        let sum = self.buffers.get(&c).copied().filter(|&sum| {
            // Carried by the loop around, to be added to in place.
            self.space(sum) == ascend::L0C && self.m.uses(c).len() == 1 && self.m.defining_op(c).is_none()
        });
        let looped = self.m.parent_op(op).and_then(|p| scf::For::cast(self.m, p));
        let (out, init) = match (sum, looped) {
            // The first iteration begins with zeros.
            (Some(sum), Some(looped)) => {
                let iv = self.m.block_args(self.m.region_block(looped.body(self.m)))[0];
                let lower = looped.lower_bound(self.m);
                let mut b = Builder::before(self.m, op);
                let first = arith::Cmpi::build(&mut b, iv, lower, arith::CmpIPredicate::Eq, Type::I1);
                (sum, first.result(self.m))
            }
            _ => {
                let (shape, element) = (self.shape(result), self.element(result));
                let out = self.new_buffer(op, &shape, element, ascend::L0C);
                (out, Builder::before(self.m, op).int(1, Type::I1))
            }
        };
        let mut builder = Builder::before(self.m, op);
        let extents = [m, k, n].map(|e| builder.int(i64::from(e), Type::INDEX));
        mmad(&mut builder, [left, right], [a_flipped, b_flipped], init, extents, out);
        if sum.is_some() || self.is_zero(c) {
            self.buffers.insert(result, out);
            return Ok(());
        }
        let (shape, element) = (self.shape(result), self.element(result));
        let product = self.new_buffer(op, &shape, element, ascend::UB);
        self.between(op, out, product)?;
        let to = self.buffer(op, c)?;
        let sum = self.out(op, true);
        vector(&mut Builder::before(self.m, op), hivm::Kind::Vadd, &[to, product], sum, false);
        Ok(())
    }
}
