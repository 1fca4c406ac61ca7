//! Functions of integers and of bits.

use tilewright_libdevice::{Function, Type};
use tilewright_llvm::{BinOp, Effect, IntPred, Ty, Value};

use crate::lower::{Lower, Shared, Xe};
use tilewright_lower::Hooks;

impl Lower<'_, '_> {
    /// A function of integers or of bits; `None` for any other.
    pub(super) fn bits(&mut self, function: &Function, args: &[Value]) -> Option<Value> {
        let unsigned = matches!(function.params[0], Type::U32 | Type::U64);
        let x = args[0];
        Some(match (function.name, args) {
            ("brev", _) => self.reversed(x),
            ("byte_perm", &[x, y, selector]) => self.chosen_bytes(x, y, selector),
            ("ffs", _) => self.first_set(x),
            ("hadd", &[x, y]) => {
                let (both, one) = (self.b.and(x, y), self.b.xor(x, y));
                let half = self.halved(one, unsigned);
                self.b.add(both, half)
            }
            ("rhadd", &[x, y]) => {
                let (any, one) = (self.b.or(x, y), self.b.xor(x, y));
                let half = self.halved(one, unsigned);
                self.b.sub(any, half)
            }
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
            ("mul24", &[x, y]) => {
                let [x, y] = [x, y].map(|v| {
                    let up = self.b.shl(v, 8);
                    if unsigned { self.b.lshr(up, 8) } else { self.arithmetic_shift(up, 8) }
                });
                self.b.mul(x, y)
            }
            ("mulhi", &[x, y]) => self.upper_product(x, y, unsigned),
            ("sad", &[x, y, z]) => {
                let name = |what| format!("llvm.{}{what}.i32", if unsigned { "u" } else { "s" });
                let [most, least] = ["max", "min"]
                    .map(|what| self.b.intrinsic(&name(what), Effect::Pure, Some(Ty::I32), &[x, y]));
                let apart = self.b.sub(most, least);
                self.b.add(apart, z)
            }
            _ => return None,
        })
    }

    fn arithmetic_shift(&mut self, x: Value, by: u64) -> Value {
        let ty = self.b.ty(x);
        let by = self.b.constant(ty, by);
        self.b.bin(BinOp::AShr, x, by)
    }

    fn halved(&mut self, x: Value, unsigned: bool) -> Value {
        if unsigned { self.b.lshr(x, 1) } else { self.arithmetic_shift(x, 1) }
    }

    /// Two words, the upper one first.
    fn joined(&mut self, high: Value, low: Value) -> Value {
        let high = self.b.int_cast(high, Ty::I64, false);
        let low = self.b.int_cast(low, Ty::I64, false);
        let high = self.b.shl(high, 32);
        self.b.or(high, low)
    }

    /// The bits in the other order: halves change places, then halves of these.
    fn reversed(&mut self, mut x: Value) -> Value {
        let ty = self.b.ty(x);
        let mut width = ty.bits() / 2;
        while width > 0 {
            // Ones in every other group of so many bits.
            let mask = (0..64 / (2 * width)).fold(0u64, |m, i| m | ((1u64 << width) - 1) << (2 * width * i));
            let (up, down) = (self.b.and_const(x, mask), self.b.lshr(x, width));
            let (up, down) = (self.b.shl(up, width), self.b.and_const(down, mask));
            x = self.b.or(up, down);
            width /= 2;
        }
        x
    }

    /// Four of the eight bytes of `y` and `x`, as three bits of each digit of `selector` say.
    fn chosen_bytes(&mut self, x: Value, y: Value, selector: Value) -> Value {
        let pool = self.joined(y, x);
        let mut out = self.b.i32(0);
        for i in 0..4 {
            let digit = self.b.lshr(selector, 4 * i);
            let digit = self.b.and_const(digit, 7);
            let by = self.b.shl(digit, 3);
            let by = self.b.int_cast(by, Ty::I64, false);
            let byte = self.b.bin(BinOp::LShr, pool, by);
            let byte = self.b.int_cast(byte, Ty::I32, false);
            let byte = self.b.and_const(byte, 0xff);
            let byte = self.b.shl(byte, 8 * i);
            out = self.b.or(out, byte);
        }
        out
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
