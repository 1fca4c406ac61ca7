//! Elementwise operations: the instruction of each.
//!
//! ```text
//! %z = arith.addf %x, %y : tensor<64xf32>      =>  hivm.hir.vadd ins(%a, %b) outs(%c)
//! ```

use tilewright_ir::dialect::hivm::{CompareMode, RoundMode};
use tilewright_ir::dialect::{arith, hivm, math, tt};
use tilewright_ir::{Builder, Module, Op, Opcode, Type, Value, ascend};

use super::instructions::{Shift, shift, vbrc, vcast, vcast_by, vcmp, vector, vsel};
use super::unsupported;
use super::vectors::{Lower, Result};

impl Lower<'_> {
    /// An instruction for all elements.
    pub fn elementwise(&mut self, op: Op, operands: &[Value]) -> Result<()> {
        let Some(kind) = instruction(self.m, op) else {
            return self.elementwise_by_scalar(op, operands);
        };
        // Bits are moved by a number that is known.
        if let Vector::Shift(_) = kind
            && !self.numbers.get(&operands[1]).is_some_and(|&by| self.is_shift(by))
        {
            return self.elementwise_by_scalar(op, operands);
        }
        let mut ins = Vec::new();
        // The last operand of two may be a number, but of those that combine bits.
        let bits = matches!(kind, Vector::Binary(hivm::Kind::Vand | hivm::Kind::Vor | hivm::Kind::Vxor, _));
        for (i, &v) in operands.iter().enumerate() {
            match self.numbers.get(&v) {
                Some(&number) if i == 1 && operands.len() == 2 && !bits => ins.push(number),
                _ => ins.push(self.buffer(op, v)?),
            }
        }
        let wide = kind.needs_f32(self.element(operands[0]));
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

    /// Whether a number is less than the bits that there are.
    fn is_shift(&self, by: Value) -> bool {
        let bits = i64::from(self.m.bits(self.m.value_type(by)));
        self.m.constant_int(by).is_some_and(|by| (0..bits).contains(&by))
    }

    /// The smaller of the larger of a number and a bound, and another bound. What is no number goes on where the operation says so: it is unlike itself.
    pub fn clamp(&mut self, clamp: tt::Clampf) -> Result<()> {
        let op = clamp.0;
        let (x, bounds) = (clamp.x(self.m), [clamp.min(self.m), clamp.max(self.m)]);
        let (shape, element) = (self.shape(x), self.element(x));
        let src = self.buffer(op, x)?;
        let mut from = src;
        for (bound, kind) in bounds.into_iter().zip([hivm::Kind::Vmax, hivm::Kind::Vmin]) {
            let bound = match self.numbers.get(&bound) {
                Some(&number) => number,
                None => self.buffer(op, bound)?,
            };
            let out = self.new_buffer(op, &shape, element, ascend::UB);
            vector(&mut Builder::before(self.m, op), kind, &[from, bound], out, false);
            from = out;
        }
        if clamp.propagate_nan(self.m) {
            let none = self.new_buffer(op, &shape, Type::I1, ascend::UB);
            let out = self.new_buffer(op, &shape, element, ascend::UB);
            let mut b = Builder::before(self.m, op);
            vcmp(&mut b, &[src, src], none, CompareMode::Ne, false);
            vsel(&mut b, &[none, src, from], out);
            from = out;
        }
        self.buffers.insert(clamp.result(self.m), from);
        Ok(())
    }

    /// A buffer of 16-bit floats, or a number, as 32-bit floats.
    fn widened(&mut self, op: Op, v: Value) -> Value {
        if matches!(self.m.value_type(v), Type::F16 | Type::BF16) {
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
        emit(&mut Builder::before(self.m, op), kind, &ins, out);
        self.becomes_number(op, result, out);
        Ok(())
    }
}

/// What a vector instruction computes.
#[derive(Clone, Copy)]
enum Vector {
    Unary(hivm::Kind),
    Binary(hivm::Kind, bool),
    Shift(Shift),
    Cast(bool),
    Compare(CompareMode, bool),
    Select,
    /// A conversion between floats, rounded so; to one's own type: to a whole number.
    Round(RoundMode),
}

impl Vector {
    /// Whether it does not compute with floats of such 16 bits: they are widened, and the result rounded, which is what arithmetic of them means. (Whole numbers stay what they are.)
    fn needs_f32(self, element: Type) -> bool {
        use hivm::Kind as H;
        match self {
            Vector::Unary(_) => element == Type::BF16,
            Vector::Binary(kind, _) => {
                element == Type::BF16 && matches!(kind, H::Vadd | H::Vsub | H::Vmul | H::Vdiv)
            }
            Vector::Round(_) => matches!(element, Type::F16 | Type::BF16),
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
            // (Of bytes there is no such instruction.)
            A::Shli | A::Shrui | A::Shrsi if m.bits(m.element_type(m.value_type(m.result(op)))) == 8 => {
                return None;
            }
            A::Shli => Vector::Shift(Shift::Up),
            A::Shrui => Vector::Shift(Shift::Down),
            A::Shrsi => Vector::Shift(Shift::DownSigned),
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
        // (There are no vectors of fp64 that round.)
        Opcode::Math(M::Floor | M::Ceil | M::Trunc | M::Round)
            if m.element_type(m.value_type(m.result(op))) == Type::F64 =>
        {
            return None;
        }
        Opcode::Math(M::Floor) => Vector::Round(RoundMode::Floor),
        Opcode::Math(M::Ceil) => Vector::Round(RoundMode::Ceil),
        Opcode::Math(M::Trunc) => Vector::Round(RoundMode::Trunc),
        Opcode::Math(M::Round) => Vector::Round(RoundMode::Round),
        Opcode::Tt(tt::Kind::FpToFp) => {
            let (from, to) = (m.operands(op)[0], m.result(op));
            let types = [from, to].map(|v| m.element_type(m.value_type(v)));
            match (types, tt::FpToFp(op).rounding(m)) {
                ([Type::F32, Type::F16 | Type::BF16], Some(tt::RoundingMode::Rtz)) => {
                    Vector::Round(RoundMode::Trunc)
                }
                _ => return None,
            }
        }
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
        Vector::Shift(how) => shift(b, how, ins, out),
        Vector::Cast(unsigned) => vcast(b, ins[0], out, unsigned),
        Vector::Compare(mode, unsigned) => vcmp(b, ins, out, mode, unsigned),
        Vector::Select => vsel(b, ins, out),
        Vector::Round(mode) => vcast_by(b, ins[0], out, mode, false),
    };
}
