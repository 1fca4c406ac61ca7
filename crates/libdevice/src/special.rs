//! Functions that neither the system's library nor the crate `libm` has.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, PI, SQRT_2};

use crate::real::Real;

/// What is left of π beyond a double.
const PI_REST: f64 = 1.224_646_799_147_353_2e-16;
/// What is left of 1/√2 beyond a double.
const FRAC_1_SQRT_2_REST: f64 = -4.833_646_656_726_457e-17;

/// sin(πx) and cos(πx), |x| ≤ 1/4.
fn sin_cos_pi(x: f64) -> (f64, f64) {
    let angle = PI * x;
    let rest = x.mul_add(PI, -angle) + x * PI_REST;
    let (sin, cos) = angle.sin_cos();
    (cos.mul_add(rest, sin), (-sin).mul_add(rest, cos))
}

/// sin(π(x + quarters/2)), where x is any number.
fn sinpi_from(x: f64, quarters: i64) -> f64 {
    if !x.is_finite() {
        return f64::NAN;
    }
    let half_turns = (2.0 * (x % 2.0)).round_ties_even();
    let (sin, cos) = sin_cos_pi(x % 2.0 - half_turns / 2.0);
    match (half_turns as i64 + quarters) & 3 {
        0 => sin,
        1 => cos,
        2 => -sin,
        _ => -cos,
    }
}

/// sin(πx); of whole numbers a zero of their sign.
pub(crate) fn sinpi(x: f64) -> f64 {
    if x.is_finite() && x == x.trunc() { 0f64.copysign(x) } else { sinpi_from(x, 0) }
}

/// cos(πx).
pub(crate) fn cospi(x: f64) -> f64 {
    // No zero is negative.
    sinpi_from(x, 1) + 0.0
}

/// The inverse of cosh; NaN below 1.
pub(crate) fn acosh(x: f64) -> f64 {
    if x < 1.0 { f64::NAN } else { libm::acosh(x) }
}

/// The exponent of a number.
pub(crate) fn logb(x: f64) -> f64 {
    if x == 0.0 {
        f64::NEG_INFINITY
    } else if x.is_finite() {
        f64::from(libm::ilogb(x))
    } else {
        x * x
    }
}

/// The largest magnitude among numbers that are not NaN.
fn largest<R: Real>(v: &[R]) -> R {
    v.iter().map(|x| x.magnitude()).fold(v[0].number(0.0), |m, x| R::choose(m.below(x), || x, || m))
}

/// √(Σ x²), and a power of two by which it is multiplied so that no square overflows or is lost.
fn scaled_norm<R: Real>(v: &[R]) -> (R, R) {
    let (m, n) = (largest(v), |x| v[0].number(x));
    let small = m.below(n(2f64.powi(-400)));
    let large = n(2f64.powi(400)).below(m);
    let scale = R::choose(small, || n(2f64.powi(600)), || R::choose(large, || n(2f64.powi(-600)), || n(1.0)));
    let (mut sum, mut rest) = (n(0.0), n(0.0));
    for &x in v {
        let x = x * scale;
        let square = x * x;
        let next = sum + square;
        let larger = square.below(sum);
        let more = R::choose(larger, || sum, || square);
        let less = R::choose(larger, || square, || sum);
        rest = rest + ((more - next) + less) + x.times_plus(x, -square);
        sum = next;
    }
    ((sum + rest).root(), scale)
}

/// √(Σ x²); infinite where one of the numbers is.
pub fn norm<R: Real>(v: &[R]) -> R {
    let (root, scale) = scaled_norm(v);
    let m = largest(v);
    let infinity = m.number(f64::INFINITY);
    R::choose(m.same(infinity), || infinity, || root / scale)
}

/// 1 / √(Σ x²).
pub fn rnorm<R: Real>(v: &[R]) -> R {
    let (root, scale) = scaled_norm(v);
    let m = largest(v);
    let infinity = m.number(f64::INFINITY);
    R::choose(m.same(infinity), || m.number(0.0), || m.number(1.0) / root * scale)
}

/// e^(x²) without the error of the square.
fn exp_square<R: Real>(x: R) -> R {
    let square = x * x;
    let rest = x.times_plus(x, -square);
    let power = square.of_table("exp");
    R::choose(power.below(x.number(f64::INFINITY)), || rest.times_plus(power, power), || power)
}

/// e^(x²) erfc(x).
pub fn erfcx<R: Real>(x: R) -> R {
    let n = |c| x.number(c);
    // The asymptotic series (Abramowitz and Stegun, 7.1.23).
    let far = || {
        let step = n(-0.5) / x / x;
        let (mut term, mut sum) = (n(1.0), n(1.0));
        for k in 0..20 {
            term = term * n(f64::from(2 * k + 1)) * step;
            sum = sum + term;
        }
        n(FRAC_2_SQRT_PI / 2.0) * sum / x
    };
    let near = || R::choose(x.below(n(-27.0)), || n(f64::INFINITY), || exp_square(x) * x.of_table("erfc"));
    R::choose(x.below(n(10.0)), near, far)
}

/// Steps of Halley's method towards the zero of a function; `error` is how far `y` is by Newton's method, and the function's
/// second derivative is -2y times its first.
fn halley<R: Real>(y: R, error: impl Fn(R) -> R) -> R {
    (0..4).fold(y, |y, _| {
        let e = error(y);
        y - e / (y.number(1.0) + y * e)
    })
}

/// The inverse of erf from 0 to 1/2: from Winitzki's approximation.
fn erfinv_center<R: Real>(a: R) -> R {
    let n = |c| a.number(c);
    let log = (-a * a).of_table("log1p");
    let b = n(2.0 / (PI * 0.147)) + log / n(2.0);
    let start = ((b * b - log / n(0.147)).root() - b).root();
    let value = halley(start, |y| (y.of_table("erf") - a) / n(FRAC_2_SQRT_PI) * exp_square(y));
    R::choose(a.below(n(1e-8)), || a / n(FRAC_2_SQRT_PI), || value)
}

/// The inverse of erfc from 0 to 1/2.
fn erfcinv_tail<R: Real>(x: R) -> R {
    let n = |c| x.number(c);
    // erfc(y) is about e^(-y²) / (√π y); the logarithm of what is given and of that meet fast.
    let log = -x.of_table("log");
    let guess = log.root();
    let start = log - (guess * n(PI.sqrt())).of_table("log");
    let start = R::choose(start.below(n(0.1)), || n(0.1), || start).root();
    // erfc(y) / erfc'(y) = -√π/2 erfcx(y)
    let value = halley(start, |y| {
        let tail = y.of_table("erfc");
        (x - tail) / tail * erfcx(y) / n(FRAC_2_SQRT_PI)
    });
    R::choose(x.same(n(0.0)), || n(f64::INFINITY), || value)
}

/// NaN where a number is not from `low` to `high`.
fn within<R: Real>(x: R, [low, high]: [f64; 2], value: R) -> R {
    let (low, high, none) = (x.number(low), x.number(high), x.number(f64::NAN));
    let value = R::choose(high.below(x), || none, || value);
    R::choose(x.below(low), || none, || value)
}

/// The inverse of erf.
pub fn erfinv<R: Real>(x: R) -> R {
    let a = x.magnitude();
    // 1 - a is exact.
    let tail = || erfcinv_tail(x.number(1.0) - a);
    let value = R::choose(x.number(0.5).below(a), tail, || erfinv_center(a));
    within(x, [-1.0, 1.0], value.signed_as(x))
}

/// The inverse of erfc.
pub fn erfcinv<R: Real>(x: R) -> R {
    let n = |c| x.number(c);
    let center = || {
        let rest = n(1.0) - x;
        erfinv_center(rest.magnitude()).signed_as(rest)
    };
    let upper = n(1.5).below(x);
    let outer = R::choose(upper, || n(2.0) - x, || x);
    let tail = || {
        let value = erfcinv_tail(outer);
        R::choose(upper, || -value, || value)
    };
    let middle = n(0.5).below(outer);
    within(x, [0.0, 2.0], R::choose(middle, center, tail))
}

/// The normal distribution: erfc(-x/√2) / 2.
pub fn normcdf<R: Real>(x: R) -> R {
    let n = |c| x.number(c);
    let at = -x * n(FRAC_1_SQRT_2);
    // What the argument lost when it was rounded, by the slope there.
    let lost = (-x).times_plus(n(FRAC_1_SQRT_2), -at) - x * n(FRAC_1_SQRT_2_REST);
    let slope = R::choose(n(-6.0).below(at), || lost * n(FRAC_2_SQRT_PI) / erfcx(at), || n(0.0));
    let value = n(0.5) * at.of_table("erfc") * (n(1.0) - slope);
    R::choose(x.below(n(-39.0)), || n(0.0), || value)
}

/// The inverse of the normal distribution.
pub fn normcdfinv<R: Real>(x: R) -> R {
    let n = |c| x.number(c);
    let upper = n(0.5).below(x);
    // Of small numbers twice them is exact, also of subnormal ones, and of large ones what is left to 1.
    let tail = R::choose(upper, || n(2.0) - n(2.0) * x, || n(2.0) * x);
    let outer = || {
        let value = n(SQRT_2) * erfcinv_tail(tail);
        R::choose(upper, || value, || -value)
    };
    let center = || {
        let rest = n(2.0) * x - n(1.0);
        n(SQRT_2) * erfinv_center(rest.magnitude()).signed_as(rest)
    };
    within(x, [0.0, 1.0], R::choose(n(0.5).below(tail), center, outer))
}

/// The Bessel function of the first kind; NaN of a negative order, as in CUDA.
pub(crate) fn jn(order: i32, x: f64) -> f64 {
    if order < 0 { f64::NAN } else { libm::jn(order, x) }
}

/// The Bessel function of the second kind; NaN of a negative order, as in CUDA.
pub(crate) fn yn(order: i32, x: f64) -> f64 {
    if order < 0 { f64::NAN } else { libm::yn(order, x) }
}
