//! Arithmetic and conversions with a rounding of their own, of which there are no instructions.
//!
//! What is to nearest is computed, and how far it is from the exact result; by the sign of that it goes one number up or down. Of fp32 both are computed
//! in fp64.

use tilewright_libdevice::{Function, Type};
use tilewright_llvm::{BinOp, CastOp, Effect, FloatPred, IntPred, Ty, Value};

use crate::lower::Lower;

/// Where a result goes that is none of the numbers that there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rounding {
    Nearest,
    Zero,
    Down,
    Up,
    /// To nearest, halves away from zero.
    Away,
}

impl Rounding {
    /// That of a name such as `add_rd`, and what stands before it.
    fn of(name: &str) -> Option<(&str, Rounding)> {
        match name {
            "llrint" => return Some((name, Rounding::Nearest)),
            "llround" => return Some((name, Rounding::Away)),
            _ => {}
        }
        let (base, mode) = name.rsplit_once("_r")?;
        let mode = match mode {
            "n" => Rounding::Nearest,
            "z" => Rounding::Zero,
            "d" => Rounding::Down,
            "u" => Rounding::Up,
            _ => return None,
        };
        Some((base, mode))
    }
}

/// A number, and what the exact one is more: its sign counts.
struct Result {
    nearest: Value,
    rest: Value,
}

impl Lower<'_, '_> {
    /// An exact function; `None` for any other.
    pub(super) fn exact(&mut self, function: &Function, result: Ty, args: &[Value]) -> Option<Value> {
        let x = args[0];
        match function.name {
            "ilogb" => return Some(self.exponent(x)),
            "logb" => return Some(self.logb(x, result)),
            "saturatef" => return Some(self.saturated(x)),
            "rcp64h" => {
                let one = self.b.float(Ty::F64, 1.0);
                let inverse = self.b.bin(BinOp::FDiv, one, x);
                let bits = self.b.bitcast(inverse, Ty::I64);
                let upper = self.b.and_const(bits, !0xffff_ffff);
                return Some(self.b.bitcast(upper, Ty::F64));
            }
            "rsqrt_rn" => {
                let wide = self.widened(x);
                let root = self.unary("sqrt", wide);
                let one = self.b.float(Ty::F64, 1.0);
                let inverse = self.b.bin(BinOp::FDiv, one, root);
                return Some(self.narrowed(inverse, result));
            }
            _ => {}
        }
        let (base, rounding) = Rounding::of(function.name)?;
        match (function.params[0].is_float(), function.result.is_float()) {
            (true, false) => Some(self.whole(function, x, rounding)),
            (false, true) => Some(self.float_of(function, result, x, rounding)),
            (true, true) => self.arithmetic(base, result, args, rounding),
            (false, false) => None,
        }
    }

    fn unary(&mut self, name: &str, x: Value) -> Value {
        let ty = self.b.ty(x);
        self.b.intrinsic(&format!("llvm.{name}.{}", ty.mangled()), Effect::Pure, Some(ty), &[x])
    }

    fn fused(&mut self, x: Value, y: Value, z: Value) -> Value {
        let ty = self.b.ty(x);
        self.b.intrinsic(&format!("llvm.fma.{}", ty.mangled()), Effect::Pure, Some(ty), &[x, y, z])
    }

    // ---- arithmetic ------------------------------------------------------------------------------------------------

    fn arithmetic(&mut self, base: &str, ty: Ty, args: &[Value], rounding: Rounding) -> Option<Value> {
        let args: Vec<Value> = match base {
            "rcp" => {
                let of_arg = self.b.ty(args[0]);
                vec![self.b.float(of_arg, 1.0), args[0]]
            }
            _ => args.to_vec(),
        };
        if rounding == Rounding::Nearest {
            let op = match base {
                "add" => BinOp::FAdd,
                "sub" => BinOp::FSub,
                "mul" => BinOp::FMul,
                "div" | "rcp" => BinOp::FDiv,
                "double2float" => return Some(self.narrowed(args[0], ty)),
                _ => return None,
            };
            return Some(self.b.bin(op, args[0], args[1]));
        }
        let single = ty == Ty::F32;
        let wide: Vec<Value> = args.iter().map(|&x| self.widened(x)).collect();
        let [x, y, z] = [0, 1, 2].map(|i| wide.get(i).copied().unwrap_or(wide[0]));
        let found = match base {
            "add" => self.sum(x, y),
            "sub" => {
                let minus = self.b.fneg(y);
                self.sum(x, minus)
            }
            "mul" if single => {
                let product = self.b.bin(BinOp::FMul, x, y);
                Result { nearest: product, rest: self.b.zero(Ty::F64) }
            }
            "mul" => self.product(x, y),
            "div" | "rcp" => self.quotient(x, y),
            "sqrt" => self.root(x),
            "fma" if single => {
                // Exact: 48 bits.
                let product = self.b.bin(BinOp::FMul, x, y);
                self.sum(product, z)
            }
            "fma" => self.fused_with_rest(x, y, z),
            "double2float" => Result { nearest: x, rest: self.b.zero(Ty::F64) },
            _ => return None,
        };
        let found = if single { self.narrowed_with_rest(&found) } else { found };
        let made = self.directed(&found, rounding);
        let terms = match base {
            "add" => Some((args[0], args[1])),
            "sub" => Some((args[0], self.b.fneg(args[1]))),
            "fma" => Some((self.b.bin(BinOp::FMul, args[0], args[1]), args[2])),
            _ => None,
        };
        Some(match terms.filter(|_| rounding == Rounding::Down) {
            Some((x, y)) => {
                let zero = self.b.zero(Ty::F64);
                let exact = self.b.fcmp(FloatPred::Oeq, found.rest, zero);
                let below = self.zero_from_above(made, x, y);
                self.b.select(exact, below, made)
            }
            None => made,
        })
    }

    /// Knuth's sum: what rounding has taken is a number. (Where the sum overflows, the rest is as infinite.)
    fn sum(&mut self, x: Value, y: Value) -> Result {
        let sum = self.b.bin(BinOp::FAdd, x, y);
        let of_y = self.b.bin(BinOp::FSub, sum, x);
        let of_x = self.b.bin(BinOp::FSub, sum, of_y);
        let (lost_x, lost_y) = (self.b.bin(BinOp::FSub, x, of_x), self.b.bin(BinOp::FSub, y, of_y));
        let lost = self.b.bin(BinOp::FAdd, lost_x, lost_y);
        Result { nearest: sum, rest: self.where_overflown(sum, &[x, y], lost) }
    }

    /// The rest of a result that is infinite though its operands are not.
    fn where_overflown(&mut self, nearest: Value, operands: &[Value], rest: Value) -> Value {
        let infinity = self.b.float(Ty::F64, f64::INFINITY);
        let size = self.magnitude(nearest);
        let mut over = self.b.fcmp(FloatPred::Oeq, size, infinity);
        for &x in operands {
            let size = self.magnitude(x);
            let finite = self.b.fcmp(FloatPred::Olt, size, infinity);
            over = self.b.and(over, finite);
        }
        let minus = self.b.fneg(nearest);
        self.b.select(over, minus, rest)
    }

    /// A number and another by a power of two where the first is small: so that what is left of a product is a number, too.
    fn scaled(&mut self, small: Value, x: Value) -> (Value, Value) {
        let (one, power) = (self.b.float(Ty::F64, 1.0), self.b.float(Ty::F64, 2f64.powi(600)));
        let size = self.magnitude(x);
        let below = self.b.fcmp(FloatPred::Olt, size, one);
        let both = self.b.and(small, below);
        let by = self.b.select(both, power, one);
        (self.b.bin(BinOp::FMul, x, by), by)
    }

    fn is_small(&mut self, x: Value) -> Value {
        let (size, limit) = (self.magnitude(x), self.b.float(Ty::F64, 2f64.powi(-500)));
        self.b.fcmp(FloatPred::Olt, size, limit)
    }

    fn product(&mut self, x: Value, y: Value) -> Result {
        let product = self.b.bin(BinOp::FMul, x, y);
        let small = self.is_small(product);
        let ((x, of_x), (y, of_y)) = (self.scaled(small, x), self.scaled(small, y));
        let scaled = self.b.bin(BinOp::FMul, product, of_x);
        let scaled = self.b.bin(BinOp::FMul, scaled, of_y);
        let minus = self.b.fneg(scaled);
        Result { nearest: product, rest: self.fused(x, y, minus) }
    }

    /// A product and a sum. What rounding has taken is two numbers, whose sum has its sign (Boldo and Muller, "Exact and Approximated Error of the FMA", 2011).
    /// It is computed of numbers by powers of two, so that nothing is too large or small for it: factors from 1 to 2, and the term no farther from their
    /// product than it matters. Where the result itself is too large or small, it is that which rounding has taken.
    fn fused_with_rest(&mut self, x: Value, y: Value, z: Value) -> Result {
        let nearest = self.fused(x, y, z);
        let (zero, one) = (self.b.zero(Ty::F64), self.b.float(Ty::F64, 1.0));
        let infinity = self.b.float(Ty::F64, f64::INFINITY);
        let mut regular = self.b.bool(true);
        for (v, more) in [(x, FloatPred::Ogt), (y, FloatPred::Ogt), (z, FloatPred::Oge)] {
            let size = self.magnitude(v);
            let (some, finite) = (self.b.fcmp(more, size, zero), self.b.fcmp(FloatPred::Olt, size, infinity));
            regular = self.b.and(regular, some);
            regular = self.b.and(regular, finite);
        }
        let [x, y, z] = [(x, one), (y, one), (z, zero)].map(|(v, safe)| self.b.select(regular, v, safe));
        let no_term = self.b.fcmp(FloatPred::Oeq, z, zero);
        let of_term = self.b.select(no_term, one, z);
        let [ex, ey, ez] = [x, y, of_term].map(|v| self.opencl("ilogb", Ty::I32, &[v]));
        let none = self.b.i32(0);
        let (of_x, of_y, of_product) = (self.b.sub(none, ex), self.b.sub(none, ey), self.b.add(ex, ey));
        let (x, y) = (self.by_power(x, of_x), self.by_power(y, of_y));
        let far = self.b.sub(ez, of_product);
        let (most, least) = (self.b.i32(300), self.b.i32(-300));
        let above = self.b.icmp(IntPred::Sgt, far, most);
        let no = self.b.bool(false);
        let above = self.b.select(no_term, no, above);
        let below = self.b.icmp(IntPred::Slt, far, least);
        let near = self.b.select(above, most, far);
        let near = self.b.select(below, least, near);
        let by = self.b.sub(near, ez);
        let z = self.by_power(z, by);
        let scaled = self.fused(x, y, z);
        let product = self.b.bin(BinOp::FMul, x, y);
        let minus = self.b.fneg(product);
        let of_product_rest = self.fused(x, y, minus);
        let low = self.sum(z, of_product_rest);
        let high = self.sum(product, low.nearest);
        let left = self.b.bin(BinOp::FSub, high.nearest, scaled);
        let left = self.b.bin(BinOp::FAdd, left, high.rest);
        let rest = self.b.bin(BinOp::FAdd, left, low.rest);
        // Of a result that has fewer digits than others, or is none.
        let down = self.b.sub(none, of_product);
        let there = self.by_power(nearest, down);
        let lost = self.b.bin(BinOp::FSub, scaled, there);
        let kept = self.b.fcmp(FloatPred::Oeq, lost, zero);
        let kept = self.b.or(kept, above);
        let rest = self.b.select(kept, rest, lost);
        Result { nearest, rest: self.b.select(regular, rest, zero) }
    }

    fn by_power(&mut self, x: Value, exponent: Value) -> Value {
        self.opencl("ldexp", Ty::F64, &[x, exponent])
    }

    fn quotient(&mut self, x: Value, y: Value) -> Result {
        let quotient = self.b.bin(BinOp::FDiv, x, y);
        let small = self.is_small(x);
        let ((q, of_q), (of_divisor, of_y)) = (self.scaled(small, quotient), self.scaled(small, y));
        let x = self.b.bin(BinOp::FMul, x, of_q);
        let x = self.b.bin(BinOp::FMul, x, of_y);
        let minus = self.b.fneg(q);
        let left = self.fused(minus, of_divisor, x);
        let one = self.b.float(Ty::F64, 1.0);
        let name = "llvm.copysign.f64";
        let sign = self.b.intrinsic(name, Effect::Pure, Some(Ty::F64), &[one, y]);
        Result { nearest: quotient, rest: self.b.bin(BinOp::FMul, left, sign) }
    }

    fn root(&mut self, x: Value) -> Result {
        let root = self.unary("sqrt", x);
        let small = self.is_small(x);
        let one = self.b.float(Ty::F64, 1.0);
        let (of_x, of_root) = (self.b.float(Ty::F64, 2f64.powi(512)), self.b.float(Ty::F64, 2f64.powi(256)));
        let (of_x, of_root) = (self.b.select(small, of_x, one), self.b.select(small, of_root, one));
        let (x, scaled) = (self.b.bin(BinOp::FMul, x, of_x), self.b.bin(BinOp::FMul, root, of_root));
        let minus = self.b.fneg(scaled);
        Result { nearest: root, rest: self.fused(minus, scaled, x) }
    }

    // ---- rounding --------------------------------------------------------------------------------------------------

    /// The same in fp32.
    fn narrowed_with_rest(&mut self, wide: &Result) -> Result {
        let nearest = self.b.cast(CastOp::FpTrunc, wide.nearest, Ty::F32);
        let back = self.b.cast(CastOp::FpExt, nearest, Ty::F64);
        let lost = self.b.bin(BinOp::FSub, wide.nearest, back);
        let zero = self.b.zero(Ty::F64);
        let none = self.b.fcmp(FloatPred::Oeq, lost, zero);
        Result { nearest, rest: self.b.select(none, wide.rest, lost) }
    }

    /// A result as its rounding wants it.
    fn directed(&mut self, found: &Result, rounding: Rounding) -> Value {
        let zero = self.b.zero(Ty::F64);
        let less = self.b.fcmp(FloatPred::Olt, found.rest, zero);
        let more = self.b.fcmp(FloatPred::Ogt, found.rest, zero);
        let ty = self.b.ty(found.nearest);
        let of_type = self.b.zero(ty);
        let positive = self.b.fcmp(FloatPred::Ogt, found.nearest, of_type);
        let negative = self.b.fcmp(FloatPred::Olt, found.nearest, of_type);
        let (down, up) = match rounding {
            Rounding::Down => (less, self.b.bool(false)),
            Rounding::Up => (self.b.bool(false), more),
            Rounding::Zero => (self.b.and(positive, less), self.b.and(negative, more)),
            Rounding::Nearest | Rounding::Away => return found.nearest,
        };
        let below = self.b.fneg(found.nearest);
        let below = self.next_up(below);
        let below = self.b.fneg(below);
        let above = self.next_up(found.nearest);
        let made = self.b.select(down, below, found.nearest);
        self.b.select(up, above, made)
    }

    /// The next larger number.
    fn next_up(&mut self, x: Value) -> Value {
        let ty = self.b.ty(x);
        let int = Ty::scalar(tilewright_lower::int_of(ty.bits()));
        let bits = self.b.bitcast(x, int);
        let (zero, of_type) = (self.b.zero(int), self.b.zero(ty));
        let negative = self.b.icmp(IntPred::Slt, bits, zero);
        let (more, less) = (self.b.add_const(bits, 1), self.b.add_const(bits, -1));
        let next = self.b.select(negative, less, more);
        let none = self.b.fcmp(FloatPred::Oeq, x, of_type);
        let least = self.b.constant(int, 1);
        let next = self.b.select(none, least, next);
        self.b.bitcast(next, ty)
    }

    /// A sum that is zero is one below it where rounding goes down, unless both terms are zeros above it.
    fn zero_from_above(&mut self, sum: Value, x: Value, y: Value) -> Value {
        let ty = self.b.ty(sum);
        let int = Ty::scalar(tilewright_lower::int_of(ty.bits()));
        let [of_x, of_y] = [x, y].map(|v| self.b.bitcast(v, int));
        let any = self.b.or(of_x, of_y);
        let (zero, no_bits) = (self.b.zero(ty), self.b.zero(int));
        let signed = self.b.icmp(IntPred::Ne, any, no_bits);
        let none = self.b.fcmp(FloatPred::Oeq, sum, zero);
        let both = self.b.and(signed, none);
        let minus = self.b.fneg(zero);
        self.b.select(both, minus, sum)
    }

    // ---- conversions -----------------------------------------------------------------------------------------------

    /// An integer of a number: what is out of range becomes the nearest, and NaN zero, or the highest bit where either side has 64 bits.
    fn whole(&mut self, function: &Function, x: Value, rounding: Rounding) -> Value {
        let from_single = self.b.ty(x) == Ty::F32;
        let x = self.widened(x);
        let whole = match rounding {
            Rounding::Nearest => self.unary("rint", x),
            Rounding::Zero => self.unary("trunc", x),
            Rounding::Down => self.unary("floor", x),
            Rounding::Up => self.unary("ceil", x),
            Rounding::Away => self.opencl("round", Ty::F64, &[x]),
        };
        // The language gives bits of unsigned numbers as signed ones: the name says which they are.
        let unsigned = function.name.contains("2u");
        let bits = function.result.bits();
        let int = Ty::scalar(tilewright_lower::int_of(bits));
        let top = 1u64 << (bits - 1);
        let (least, most) = if unsigned { (0, top | (top - 1)) } else { (top, top - 1) };
        let (below, above) =
            if unsigned { (0.0, 2f64.powi(bits as i32)) } else { (-2f64.powi(bits as i32 - 1), top as f64) };
        let (low, high) = (self.b.float(Ty::F64, below), self.b.float(Ty::F64, above));
        let (low, high) = (self.b.fcmp(FloatPred::Ole, whole, low), self.b.fcmp(FloatPred::Oge, whole, high));
        let none = self.b.fcmp(FloatPred::Uno, x, x);
        let zero = self.b.zero(Ty::F64);
        let outside = self.b.or(low, high);
        let outside = self.b.or(outside, none);
        let safe = self.b.select(outside, zero, whole);
        let cast = if unsigned { CastOp::FpToUi } else { CastOp::FpToSi };
        let made = self.b.cast(cast, safe, int);
        let of_none = if from_single && bits == 32 { 0 } else { top };
        let [least, most, of_none] = [least, most, of_none].map(|n| self.b.constant(int, n));
        let made = self.b.select(low, least, made);
        let made = self.b.select(high, most, made);
        self.b.select(none, of_none, made)
    }

    /// A number of an integer.
    fn float_of(&mut self, function: &Function, result: Ty, x: Value, rounding: Rounding) -> Value {
        let unsigned = matches!(function.params[0], Type::U32 | Type::U64);
        let cast = if unsigned { CastOp::UiToFp } else { CastOp::SiToFp };
        if rounding == Rounding::Nearest {
            return self.b.cast(cast, x, result);
        }
        if self.b.ty(x) == Ty::I32 {
            // Exact in fp64.
            let wide = self.b.cast(cast, x, Ty::F64);
            let rest = self.b.zero(Ty::F64);
            let found = self.narrowed_with_rest(&Result { nearest: wide, rest });
            return self.directed(&found, rounding);
        }
        let nearest = self.b.cast(cast, x, result);
        let back = self.widened(nearest);
        let end = self.b.float(Ty::F64, 2f64.powi(if unsigned { 64 } else { 63 }));
        let past = self.b.fcmp(FloatPred::Oge, back, end);
        let zero = self.b.zero(Ty::F64);
        let safe = self.b.select(past, zero, back);
        let whole = if unsigned { CastOp::FpToUi } else { CastOp::FpToSi };
        let whole = self.b.cast(whole, safe, Ty::I64);
        let rest = self.b.sub(x, whole);
        let rest = self.b.cast(CastOp::SiToFp, rest, Ty::F64);
        let less = self.b.float(Ty::F64, -1.0);
        let rest = self.b.select(past, less, rest);
        self.directed(&Result { nearest, rest }, rounding)
    }

    // ---- others ----------------------------------------------------------------------------------------------------

    /// The exponent: of zero and NaN the least integer, of infinity the largest.
    fn exponent(&mut self, x: Value) -> Value {
        let wide = self.widened(x);
        let (zero, infinity) = (self.b.zero(Ty::F64), self.b.float(Ty::F64, f64::INFINITY));
        let size = self.magnitude(wide);
        let some = self.b.fcmp(FloatPred::Ogt, size, zero);
        let finite = self.b.fcmp(FloatPred::Olt, size, infinity);
        let regular = self.b.and(some, finite);
        let one = self.b.float(Ty::F64, 1.0);
        let safe = self.b.select(regular, wide, one);
        let found = self.opencl("ilogb", Ty::I32, &[safe]);
        let (least, most) = (self.b.i32(i64::from(i32::MIN)), self.b.i32(i64::from(i32::MAX)));
        let special = self.b.select(some, most, least);
        self.b.select(regular, found, special)
    }

    /// The exponent as a number: of zero the least, of infinity and NaN their magnitude.
    fn logb(&mut self, x: Value, result: Ty) -> Value {
        let exponent = self.exponent(x);
        let exponent = self.b.cast(CastOp::SiToFp, exponent, result);
        let (size, zero) = (self.magnitude(x), self.b.zero(result));
        let infinity = self.b.float(result, f64::INFINITY);
        let minus = self.b.fneg(infinity);
        let finite = self.b.fcmp(FloatPred::Olt, size, infinity);
        let none = self.b.fcmp(FloatPred::Oeq, size, zero);
        let made = self.b.select(finite, exponent, size);
        self.b.select(none, minus, made)
    }

    /// From 0 to 1; NaN becomes 0.
    fn saturated(&mut self, x: Value) -> Value {
        let (zero, one) = (self.b.zero(Ty::F32), self.b.float(Ty::F32, 1.0));
        let above = self.b.fcmp(FloatPred::Ogt, x, one);
        let least = self.b.select(above, one, x);
        let positive = self.b.fcmp(FloatPred::Ogt, x, zero);
        self.b.select(positive, least, zero)
    }
}
