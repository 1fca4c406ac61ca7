//! Functions of integers and of bits: those that there are instructions for, or that take numbers of fp64 apart; the others are written for all targets.

use tilewright_libdevice::{Function, Type, integers};
use tilewright_llvm::{Effect, IntPred, Ty, Value};

use crate::lower::{Lower, Shared, Xe};
use tilewright_lower::Hooks;

impl Lower<'_, '_> {
    /// A function of integers or of bits; `None` for any other.
    pub(super) fn bits(&mut self, function: &Function, args: &[Value]) -> Option<Value> {
        let unsigned = matches!(function.params[0], Type::U32 | Type::U64);
        let x = args[0];
        Some(match (function.name, args) {
            ("ffs", _) => self.first_set(x),
            ("hiloint2double", &[high, low]) => {
                let whole = self.joined(high, low);
                self.b.bitcast(whole, Ty::F64)
            }
            ("double2hiint", _) => {
                let bits = self.b.bitcast(x, Ty::I64);
                let high = self.b.lshr(bits, 32);
                self.b.int_cast(high, Ty::I32, false)
            }
            ("double2loint", _) => {
                let bits = self.b.bitcast(x, Ty::I64);
                self.b.int_cast(bits, Ty::I32, false)
            }
            ("mulhi", &[x, y]) => self.upper_product(x, y, unsigned),
            _ => {
                let shared: &mut Shared<'_> = self.0;
                return integers::record(shared, function, args);
            }
        })
    }

    /// Two words, the upper one first.
    fn joined(&mut self, high: Value, low: Value) -> Value {
        let high = self.b.int_cast(high, Ty::I64, false);
        let low = self.b.int_cast(low, Ty::I64, false);
        let high = self.b.shl(high, 32);
        self.b.or(high, low)
    }

    /// The place of the lowest bit that is set, from 1; 0 where none is.
    fn first_set(&mut self, x: Value) -> Value {
        let ty = self.b.ty(x);
        let zero = self.b.zero(ty);
        let minus = self.b.sub(zero, x);
        let lowest = self.b.and(x, minus);
        let no = self.b.bool(false);
        let name = format!("llvm.ctlz.{}", ty.mangled());
        let above = self.b.intrinsic(&name, Effect::Pure, Some(ty), &[lowest, no]);
        let bits = self.b.constant(ty, u64::from(ty.bits()));
        let place = self.b.sub(bits, above);
        self.b.int_cast(place, Ty::I32, false)
    }

    /// The upper half of a product.
    fn upper_product(&mut self, x: Value, y: Value, unsigned: bool) -> Value {
        if self.b.ty(x) == Ty::I32 {
            let [x, y] = [x, y].map(|v| self.b.int_cast(v, Ty::I64, !unsigned));
            let product = self.b.mul(x, y);
            let upper = self.b.lshr(product, 32);
            return self.b.int_cast(upper, Ty::I32, false);
        }
        let shared: &mut Shared<'_> = self.0;
        let mut upper = Xe::mul_high(&mut shared.b, x, y);
        if unsigned {
            return upper;
        }
        // What a factor's sign adds as an unsigned number: the other, above the product's lower half.
        for (factor, other) in [(x, y), (y, x)] {
            let zero = self.b.zero(Ty::I64);
            let negative = self.b.icmp(IntPred::Slt, factor, zero);
            let extra = self.b.select(negative, other, zero);
            upper = self.b.sub(upper, extra);
        }
        upper
    }
}
