//! Elementwise operations: the instruction of each.
//!
//! ```text
//! %z = arith.addf %x, %y : tensor<64xf32>      =>  hivm.hir.vadd ins(%a, %b) outs(%c)
//! ```

use tilewright_ir::dialect::hivm::CompareMode;
use tilewright_ir::dialect::{arith, hivm, math, memref};
use tilewright_ir::{Builder, Module, Op, Opcode, Type, Value, ascend};

use super::instructions::{vbrc, vcast, vcmp, vector, vsel};
use super::unsupported;
use super::vectors::{Lower, Result};

impl Lower<'_> {
    /// An instruction for all elements.
    pub fn elementwise(&mut self, op: Op, operands: &[Value]) -> Result<()> {
        let Some(kind) = instruction(self.m, op) else {
            return self.elementwise_by_scalar(op, operands);
        };
        let mut ins = Vec::new();
        // The last operand of two may be a number, but of those that combine bits.
        let bits = matches!(kind, Vector::Binary(hivm::Kind::Vand | hivm::Kind::Vor | hivm::Kind::Vxor, _));
        for (i, &v) in operands.iter().enumerate() {
            match self.numbers.get(&v) {
                Some(&number) if i == 1 && operands.len() == 2 && !bits => ins.push(number),
                _ => ins.push(self.buffer(op, v)?),
            }
        }
        let wide = kind.needs_f32() && self.element(operands[0]) == Type::BF16;
        if wide {
            ins = ins.into_iter().map(|v| self.widened(op, v)).collect();
        }
        let out = self.out(op, true);
        let shape = self.shape(out);
        let place = if wide { self.new_buffer(op, &shape, Type::F32, ascend::UB) } else { out };
        emit(&mut Builder::before(self.m, op), kind, &ins, place);
        if wide {
            vcast(&mut Builder::before(self.m, op), place, out, false);
        }
        Ok(())
    }

    /// A buffer of bf16, or a number, as 32-bit floats.
    fn widened(&mut self, op: Op, v: Value) -> Value {
        if self.m.value_type(v) == Type::BF16 {
            return arith::Extf::build(&mut Builder::before(self.m, op), v, Type::F32).out(self.m);
        }
        let shape = self.shape(v);
        let wide = self.new_buffer(op, &shape, Type::F32, ascend::UB);
        vcast(&mut Builder::before(self.m, op), v, wide, false);
        wide
    }

    /// What the scalar unit cannot compute: a vector of one element.
    pub fn of_one(&mut self, op: Op) -> Result<()> {
        let Some(kind) = instruction(self.m, op) else {
            return Err(unsupported(self.m, op, format!("`{}`", self.m.op_name(op))));
        };
        if self.m.value_type(self.m.result(op)) == Type::BF16 {
            return Err(unsupported(self.m, op, format!("`{}` of one bf16", self.m.op_name(op))));
        }
        self.done.push(op);
        let mut ins = Vec::new();
        for number in self.m.operands(op).to_vec() {
            let ty = self.m.value_type(number);
            let buffer = self.new_buffer(op, &[1], ty, ascend::UB);
            vbrc(&mut Builder::before(self.m, op), number, buffer, &[]);
            ins.push(buffer);
        }
        let result = self.m.result(op);
        let ty = self.m.value_type(result);
        let out = self.new_buffer(op, &[1], ty, ascend::UB);
        let mut b = Builder::before(self.m, op);
        emit(&mut b, kind, &ins, out);
        let first = b.int(0, Type::INDEX);
        let number = memref::Load::build(&mut b, out, &[first], ty).result(b.module);
        self.m.replace_all_uses(result, number);
        Ok(())
    }
}

/// What a vector instruction computes.
#[derive(Clone, Copy)]
enum Vector {
    Unary(hivm::Kind),
    Binary(hivm::Kind, bool),
    Cast(bool),
    Compare(CompareMode, bool),
    Select,
}

impl Vector {
    /// Whether it computes with floats of 16 and 32 bits, but not with bf16: such are widened, and the result rounded, which is what bf16 arithmetic means.
    fn needs_f32(self) -> bool {
        use hivm::Kind as H;
        match self {
            Vector::Unary(_) => true,
            Vector::Binary(kind, _) => matches!(kind, H::Vadd | H::Vsub | H::Vmul | H::Vdiv),
            _ => false,
        }
    }
}

/// Whether an operation converts truth values to numbers with a sign, or numbers to truth values.
fn bits(m: &Module, op: Op) -> bool {
    let values = m.operands(op).iter().chain(m.results(op));
    values.copied().any(|v| m.element_type(m.value_type(v)) == Type::I1)
}

/// The instruction of an elementwise operation, if there is one.
fn instruction(m: &Module, op: Op) -> Option<Vector> {
    use arith::Kind as A;
    use hivm::Kind as H;
    use math::Kind as M;
    Some(match m.opcode(op)? {
        Opcode::Arith(kind) => match kind {
            A::Addf | A::Addi => Vector::Binary(H::Vadd, false),
            A::Subf | A::Subi => Vector::Binary(H::Vsub, false),
            A::Mulf | A::Muli => Vector::Binary(H::Vmul, false),
            A::Divf | A::Divsi => Vector::Binary(H::Vdiv, false),
            A::Divui => Vector::Binary(H::Vdiv, true),
            A::Maxnumf | A::Maxsi => Vector::Binary(H::Vmax, false),
            A::Maxui => Vector::Binary(H::Vmax, true),
            A::Minnumf | A::Minsi => Vector::Binary(H::Vmin, false),
            A::Minui => Vector::Binary(H::Vmin, true),
            A::Andi => Vector::Binary(H::Vand, false),
            A::Ori => Vector::Binary(H::Vor, false),
            A::Xori => Vector::Binary(H::Vxor, false),
            // Of truth values there is a conversion as numbers of 0 or 1.
            A::Extsi | A::Sitofp | A::Trunci if bits(m, op) => return None,
            A::Extf | A::Truncf | A::Sitofp | A::Fptosi | A::Extsi | A::Trunci => Vector::Cast(false),
            A::Uitofp | A::Extui => Vector::Cast(true),
            A::Select => Vector::Select,
            A::Cmpi => {
                use arith::CmpIPredicate as P;
                let (mode, unsigned) = match arith::Cmpi(op).predicate(m) {
                    P::Eq => (CompareMode::Eq, false),
                    P::Ne => (CompareMode::Ne, false),
                    P::Slt => (CompareMode::Lt, false),
                    P::Sle => (CompareMode::Le, false),
                    P::Sgt => (CompareMode::Gt, false),
                    P::Sge => (CompareMode::Ge, false),
                    P::Ult => (CompareMode::Lt, true),
                    P::Ule => (CompareMode::Le, true),
                    P::Ugt => (CompareMode::Gt, true),
                    P::Uge => (CompareMode::Ge, true),
                };
                Vector::Compare(mode, unsigned)
            }
            A::Cmpf => {
                use arith::CmpFPredicate as P;
                Vector::Compare(
                    match arith::Cmpf(op).predicate(m) {
                        P::Oeq => CompareMode::Eq,
                        P::Une => CompareMode::Ne,
                        P::Olt => CompareMode::Lt,
                        P::Ole => CompareMode::Le,
                        P::Ogt => CompareMode::Gt,
                        P::Oge => CompareMode::Ge,
                        _ => return None,
                    },
                    false,
                )
            }
            _ => return None,
        },
        Opcode::Math(kind) => Vector::Unary(match kind {
            M::Exp => H::Vexp,
            M::Exp2 => H::Vexp2,
            M::Log => H::Vln,
            M::Log2 => H::Vlog2,
            M::Sin => H::Vsin,
            M::Cos => H::Vcos,
            M::Tanh => H::Vtanh,
            M::Erf => H::Verf,
            M::Sqrt => H::Vsqrt,
            M::Rsqrt => H::Vrsqrt,
            M::Absf | M::Absi => H::Vabs,
            _ => return None,
        }),
        _ => return None,
    })
}

fn emit(b: &mut Builder<'_>, kind: Vector, ins: &[Value], out: Value) {
    match kind {
        Vector::Unary(kind) => vector(b, kind, ins, out, false),
        Vector::Binary(kind, unsigned) => vector(b, kind, ins, out, unsigned),
        Vector::Cast(unsigned) => vcast(b, ins[0], out, unsigned),
        Vector::Compare(mode, unsigned) => vcmp(b, ins, out, mode, unsigned),
        Vector::Select => vsel(b, ins, out),
    };
}
