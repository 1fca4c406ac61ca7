//! Numbers on which functions compute: those of the machine, or such as code is recorded for.

use std::ops::{Add, Div, Mul, Neg, Sub};

/// A number of 64 bits. Functions that are written on it compute what they give, or record how that is computed, for targets that have no
/// such library.
pub trait Real:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> + Neg<Output = Self>
{
    /// What comparisons give.
    type Truth: Copy;

    /// A constant of the same kind.
    #[must_use]
    fn number(self, x: f64) -> Self;
    /// `self * y + z`, rounded once.
    #[must_use]
    fn times_plus(self, y: Self, z: Self) -> Self;
    /// The magnitude.
    #[must_use]
    fn magnitude(self) -> Self;
    /// The magnitude with the sign of another number.
    #[must_use]
    fn signed_as(self, sign: Self) -> Self;
    /// The square root.
    #[must_use]
    fn root(self) -> Self;
    /// A function by its name in the table.
    #[must_use]
    fn of_table(self, name: &'static str) -> Self;
    /// Whether it is less; false of NaN.
    fn below(self, other: Self) -> Self::Truth;
    /// Whether it is equal; false of NaN.
    fn same(self, other: Self) -> Self::Truth;
    /// One of two numbers, of which the other may have been computed too.
    #[must_use]
    fn choose(truth: Self::Truth, yes: impl FnOnce() -> Self, no: impl FnOnce() -> Self) -> Self;
    /// What steps make of numbers, as long as that holds of them.
    #[must_use]
    fn repeat<const N: usize>(
        state: [Self; N],
        again: impl FnMut([Self; N]) -> Self::Truth,
        step: impl FnMut([Self; N]) -> [Self; N],
    ) -> [Self; N];
}

/// Numbers whose parts are known: functions can be made of them where a target has none.
pub trait Parts: Real {
    /// 2 to the power of a whole number from -1022 to 1023.
    #[must_use]
    fn power_of_two(self) -> Self;
    /// Of a positive normal number: the one from 1 to 2 that is it times a power of two, and the exponent of that.
    #[must_use]
    fn parts(self) -> (Self, Self);
    /// The nearest whole number, halves to the even one, of one below 2^51.
    #[must_use]
    fn nearest(self) -> Self {
        // Beside so large a number there is no room for a fraction.
        let large = self.number(1.5 * (1u64 << 52) as f64);
        self + large - large
    }
}

impl Parts for f64 {
    fn power_of_two(self) -> f64 {
        f64::from_bits(((self as i64 + 1023) as u64) << 52)
    }
    fn parts(self) -> (f64, f64) {
        let bits = self.to_bits();
        let exponent = (bits >> 52) as i64 - 1023;
        (f64::from_bits(bits & 0x000f_ffff_ffff_ffff | 0x3ff0_0000_0000_0000), exponent as f64)
    }
}

impl Real for f64 {
    type Truth = bool;

    fn number(self, x: f64) -> f64 {
        x
    }
    fn times_plus(self, y: f64, z: f64) -> f64 {
        self.mul_add(y, z)
    }
    fn magnitude(self) -> f64 {
        self.abs()
    }
    fn signed_as(self, sign: f64) -> f64 {
        self.copysign(sign)
    }
    fn root(self) -> f64 {
        self.sqrt()
    }
    fn of_table(self, name: &'static str) -> f64 {
        match name {
            "cos" => self.cos(),
            "erf" => libm::erf(self),
            "erfc" => libm::erfc(self),
            "exp" => self.exp(),
            "log" => self.ln(),
            "log1p" => self.ln_1p(),
            "sin" => self.sin(),
            _ => unreachable!("the functions here use no `{name}`"),
        }
    }
    fn below(self, other: f64) -> bool {
        self < other
    }
    fn same(self, other: f64) -> bool {
        self == other
    }
    fn choose(truth: bool, yes: impl FnOnce() -> f64, no: impl FnOnce() -> f64) -> f64 {
        if truth { yes() } else { no() }
    }
    fn repeat<const N: usize>(
        mut state: [f64; N],
        mut again: impl FnMut([f64; N]) -> bool,
        mut step: impl FnMut([f64; N]) -> [f64; N],
    ) -> [f64; N] {
        while again(state) {
            state = step(state);
        }
        state
    }
}
