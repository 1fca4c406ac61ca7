//! Arithmetic and conversions with a rounding of their own.

use rustc_apfloat::ieee::{Double, Single};
use rustc_apfloat::{Float, FloatConvert, Round};

pub(crate) const NEAREST: Round = Round::NearestTiesToEven;
pub(crate) const AWAY: Round = Round::NearestTiesToAway;
pub(crate) const ZERO: Round = Round::TowardZero;
pub(crate) const DOWN: Round = Round::TowardNegative;
pub(crate) const UP: Round = Round::TowardPositive;

/// A float of the machine with its exact counterpart.
pub(crate) trait Real: Copy {
    type Exact: Float;
    fn exact(self) -> Self::Exact;
    fn of(exact: Self::Exact) -> Self;
    /// The square root, rounded.
    fn root(self, rounding: Round) -> Self;
}

impl Real for f32 {
    type Exact = Single;
    fn exact(self) -> Single {
        Single::from_bits(self.to_bits().into())
    }
    fn of(exact: Single) -> f32 {
        f32::from_bits(exact.to_bits() as u32)
    }
    fn root(self, rounding: Round) -> f32 {
        let root = self.sqrt();
        let square = f64::from(root) * f64::from(root); // exact
        match directed(square - f64::from(self), rounding) {
            1 => root.next_up(),
            -1 => root.next_down(),
            _ => root,
        }
    }
}

impl Real for f64 {
    type Exact = Double;
    fn exact(self) -> Double {
        Double::from_bits(self.to_bits().into())
    }
    fn of(exact: Double) -> f64 {
        f64::from_bits(exact.to_bits() as u64)
    }
    fn root(self, rounding: Round) -> f64 {
        // What the rounding of the square leaves must not be lost below the subnormal numbers.
        if self < 1e-200 && self > 0.0 {
            return (self * 2f64.powi(512)).root(rounding) * 2f64.powi(-256);
        }
        let root = self.sqrt();
        match directed(root.mul_add(root, -self), rounding) {
            1 => root.next_up(),
            -1 => root.next_down(),
            _ => root,
        }
    }
}

/// Which way to go from a root, rounded to nearest, of which `excess` is its square less the number.
fn directed(excess: f64, rounding: Round) -> i32 {
    match rounding {
        Round::TowardPositive if excess < 0.0 => 1,
        Round::TowardNegative | Round::TowardZero if excess > 0.0 => -1,
        _ => 0,
    }
}

pub(crate) fn add<T: Real>(x: T, y: T, rounding: Round) -> T {
    T::of(x.exact().add_r(y.exact(), rounding).value)
}

pub(crate) fn sub<T: Real>(x: T, y: T, rounding: Round) -> T {
    T::of(x.exact().sub_r(y.exact(), rounding).value)
}

pub(crate) fn mul<T: Real>(x: T, y: T, rounding: Round) -> T {
    T::of(x.exact().mul_r(y.exact(), rounding).value)
}

pub(crate) fn div<T: Real>(x: T, y: T, rounding: Round) -> T {
    T::of(x.exact().div_r(y.exact(), rounding).value)
}

pub(crate) fn fma<T: Real>(x: T, y: T, z: T, rounding: Round) -> T {
    T::of(x.exact().mul_add_r(y.exact(), z.exact(), rounding).value)
}

pub(crate) fn sqrt<T: Real>(x: T, rounding: Round) -> T {
    x.root(rounding)
}

/// A double as a single.
pub(crate) fn narrow(x: f64, rounding: Round) -> f32 {
    let single: Single = x.exact().convert_r(rounding, &mut false).value;
    f32::of(single)
}

/// An integer as a single.
pub(crate) fn single(x: i128, rounding: Round) -> f32 {
    f32::of(Single::from_i128_r(x, rounding).value)
}

/// An integer as a double.
pub(crate) fn double(x: i128, rounding: Round) -> f64 {
    f64::of(Double::from_i128_r(x, rounding).value)
}

/// A whole number.
pub(crate) fn whole(x: f64, rounding: Round) -> f64 {
    match rounding {
        Round::NearestTiesToEven => x.round_ties_even(),
        Round::NearestTiesToAway => x.round(),
        Round::TowardZero => x.trunc(),
        Round::TowardNegative => x.floor(),
        Round::TowardPositive => x.ceil(),
    }
}

/// An integer; what is out of range becomes the nearest that there is, and NaN the number whose highest bit alone is set, which is what `cvt`
/// does where either side has 64 bits (PTX ISA, "cvt").
macro_rules! integer {
    ($($name:ident $T:ident $nan:expr),*) => {$(
        pub(crate) fn $name(x: f64, rounding: Round) -> $T {
            if x.is_nan() { $nan } else { whole(x, rounding) as $T }
        }
    )*};
}
integer!(to_i32 i32 i32::MIN, to_u32 u32 1 << 31, to_i64 i64 i64::MIN, to_u64 u64 1 << 63);
