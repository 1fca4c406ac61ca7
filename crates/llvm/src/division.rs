//! Quotients and remainders of 64 bits whose operands fit in 32: a GPU has no division, and that of 64 bits is a function of some seventy
//! instructions, behind a branch for operands that turn out small.
//!
//! ```text
//! srem i64 (zext i32 %a), (sext i32 %b)  =>  zext (srem i32 %a, %b)        (where %a is not negative)
//! ```

use crate::builder::Builder;
use crate::program::{BinOp, CastOp, Op, Value};
use crate::ty::Ty;

impl Builder<'_> {
    /// A division of integers of 64 bits as one of 32 bits, extended, where that gives the same.
    pub(crate) fn narrow_division(&mut self, op: BinOp, a: Value, b: Value) -> Option<Value> {
        use BinOp::{SDiv, SRem, UDiv, URem};
        if self.ty(a) != Ty::I64 || !matches!(op, SDiv | SRem | UDiv | URem) {
            return None;
        }
        let below = |v, bits: u32| self.known_zeros(v) >> bits == u64::MAX >> bits;
        // The smallest number divided by -1 is the one signed result that has no 32 bits: a dividend that is not negative is not it.
        let signed_fits = below(a, 31) && (below(b, 31) || self.is_extended(b));
        let fits = match op {
            UDiv | URem => below(a, 32) && below(b, 32),
            _ => signed_fits,
        };
        if !fits {
            return None;
        }
        // What is left of a dividend that is not negative is not negative.
        let extend = if op == SDiv { CastOp::SExt } else { CastOp::ZExt };
        let (a, b) = (self.cast(CastOp::Trunc, a, Ty::I32), self.cast(CastOp::Trunc, b, Ty::I32));
        let narrow = self.bin(op, a, b);
        if op == SRem {
            self.assume_zeros(narrow, 1 << 31);
        }
        Some(self.cast(extend, narrow, Ty::I64))
    }

    /// Whether a value is the sign extension of 32 bits or fewer.
    fn is_extended(&self, v: Value) -> bool {
        self.inst_of(v).is_some_and(|inst| {
            inst.op == Op::Cast(CastOp::SExt) && self.ty(inst.args[0]).scalar.bits() <= 32
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Loc, Module};
    use BinOp::{SDiv, SRem, UDiv, URem};
    use CastOp::{SExt, ZExt};

    #[test]
    fn operands_of_32_bits_are_divided_so() {
        let mut m = Module::new("t");
        let mut b = Builder::new(&mut m, "f", &[Ty::I32, Ty::I32, Ty::I64], &[], None, Loc::NONE);
        let [any, counted, wide] = [0, 1, 2].map(|i| b.arg(i));
        b.assume_zeros(counted, 1 << 31);
        let [signed, unsigned] = [SExt, ZExt].map(|op| b.cast(op, any, Ty::I64));
        let small = b.cast(SExt, counted, Ty::I64);
        let mut narrow = |op, x, y| {
            let v = b.bin(op, x, y);
            b.inst_of(v).is_some_and(|inst| matches!(inst.op, Op::Cast(SExt | ZExt)))
        };
        assert!(narrow(SRem, small, signed) && narrow(SDiv, small, signed));
        assert!(narrow(UDiv, unsigned, small) && narrow(URem, small, unsigned));
        // The smallest number by -1; one that 32 bits hold only with, or without, its sign; numbers of more bits.
        assert!(!narrow(SDiv, signed, signed) && !narrow(SRem, signed, small));
        assert!(!narrow(UDiv, unsigned, signed) && !narrow(SDiv, small, unsigned));
        assert!(!narrow(SRem, small, wide) && !narrow(URem, wide, small));
    }
}
