//! Functions that neither the system's library nor the crate `libm` has.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, PI, SQRT_2, TAU};

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

/// A power of two near the largest of some numbers, as its exponent; an infinity stays.
fn scale<const N: usize>(v: [f64; N]) -> Result<i32, f64> {
    if v.iter().any(|x| x.is_infinite()) {
        return Err(f64::INFINITY);
    }
    if v.iter().any(|x| x.is_nan()) {
        return Err(f64::NAN);
    }
    match v.iter().fold(0f64, |m, x| m.max(x.abs())) {
        0.0 => Err(0.0),
        most => Ok(libm::ilogb(most)),
    }
}

/// The root of the sum of squares of numbers of which the largest is from 1 to 2.
fn root<const N: usize>(v: [f64; N], exponent: i32) -> f64 {
    let (mut sum, mut rest) = (0f64, 0f64);
    for x in v {
        let x = libm::scalbn(x, -exponent);
        let square = x * x;
        let next = sum + square;
        let (more, less) = if sum > square { (sum, square) } else { (square, sum) };
        rest += (more - next) + less + x.mul_add(x, -square);
        sum = next;
    }
    (sum + rest).sqrt()
}

/// √(Σ x²).
pub(crate) fn norm<const N: usize>(v: [f64; N]) -> f64 {
    match scale(v) {
        Ok(exponent) => libm::scalbn(root(v, exponent), exponent),
        Err(value) => value,
    }
}

/// 1 / √(Σ x²).
pub(crate) fn rnorm<const N: usize>(v: [f64; N]) -> f64 {
    match scale(v) {
        Ok(exponent) => libm::scalbn(1.0 / root(v, exponent), -exponent),
        Err(value) => 1.0 / value,
    }
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

/// e^(x²) without the error of the square.
fn exp_square(x: f64) -> f64 {
    let square = x * x;
    let rest = x.mul_add(x, -square);
    let power = square.exp();
    if power.is_finite() { rest.mul_add(power, power) } else { power }
}

/// e^(x²) erfc(x).
pub(crate) fn erfcx(x: f64) -> f64 {
    if x < 10.0 {
        return if x < -27.0 { f64::INFINITY } else { exp_square(x) * libm::erfc(x) };
    }
    // The asymptotic series (Abramowitz and Stegun, 7.1.23).
    let step = -0.5 / x / x;
    let (mut term, mut sum) = (1.0, 1.0);
    for k in 0..20 {
        term *= f64::from(2 * k + 1) * step;
        sum += term;
    }
    FRAC_2_SQRT_PI / 2.0 * sum / x
}

/// Steps of Halley's method towards the zero of a function; `error` is how far `y` is by Newton's method, and the function's
/// second derivative is -2y times its first.
fn halley(y: f64, error: impl Fn(f64) -> f64) -> f64 {
    (0..4).fold(y, |y, _| {
        let e = error(y);
        y - e / (1.0 + y * e)
    })
}

/// The inverse of erf: from Winitzki's approximation.
pub(crate) fn erfinv(x: f64) -> f64 {
    let a = x.abs();
    if a.is_nan() || a > 1.0 {
        return f64::NAN;
    }
    if a > 0.5 {
        // 1 - a is exact.
        return erfcinv(1.0 - a).copysign(x);
    }
    if a < 1e-8 {
        return x / FRAC_2_SQRT_PI;
    }
    let log = (-a * a).ln_1p();
    let b = 2.0 / (PI * 0.147) + log / 2.0;
    let start = ((b * b - log / 0.147).sqrt() - b).sqrt();
    let value = halley(start, |y| (libm::erf(y) - a) / FRAC_2_SQRT_PI * exp_square(y));
    value.copysign(x)
}

/// The inverse of erfc.
pub(crate) fn erfcinv(x: f64) -> f64 {
    if x.is_nan() || !(0.0..=2.0).contains(&x) {
        return f64::NAN;
    }
    if x == 0.0 {
        return f64::INFINITY;
    }
    if x > 1.5 {
        return -erfcinv(2.0 - x);
    }
    if x > 0.5 {
        return erfinv(1.0 - x);
    }
    // erfc(y) is about e^(-y²) / (√π y); the logarithm of what is given and of that meet fast.
    let log = -x.ln();
    let guess = log.sqrt();
    let start = (log - (guess * PI.sqrt()).ln()).max(0.1).sqrt();
    // erfc(y) / erfc'(y) = -√π/2 erfcx(y)
    halley(start, |y| {
        let tail = libm::erfc(y);
        (x - tail) / tail * erfcx(y) / FRAC_2_SQRT_PI
    })
}

/// The normal distribution: erfc(-x/√2) / 2.
pub(crate) fn normcdf(x: f64) -> f64 {
    if x < -39.0 {
        return 0.0;
    }
    let at = -x * FRAC_1_SQRT_2;
    // What the argument lost when it was rounded, by the slope there.
    let lost = (-x).mul_add(FRAC_1_SQRT_2, -at) - x * FRAC_1_SQRT_2_REST;
    let slope = if at > -6.0 { lost * FRAC_2_SQRT_PI / erfcx(at) } else { 0.0 };
    0.5 * libm::erfc(at) * (1.0 - slope)
}

/// The inverse of the normal distribution.
pub(crate) fn normcdfinv(x: f64) -> f64 {
    if x < 1e-300 && x > 0.0 {
        // 2x is exact, also of subnormal numbers.
        return -SQRT_2 * erfcinv(2.0 * x);
    }
    if x <= 0.25 { -SQRT_2 * erfcinv(2.0 * x) } else { SQRT_2 * erfinv(2.0 * x - 1.0) }
}

/// Where the series of the modified Bessel functions gives way to the asymptotic one.
const BESSEL_LIMIT: f64 = 25.0;

/// (x²/4)^k / (k! (k + order)!), summed up.
fn bessel_series(x: f64, order: u32) -> f64 {
    let quarter = x * x / 4.0;
    let terms = 14 + (1.8 * x) as u32;
    (1..=terms).rev().fold(1.0, |sum, k| quarter / (f64::from(k) * f64::from(k + order)) * sum + 1.0)
}

/// The asymptotic series (Abramowitz and Stegun, 9.7.1), times e^x / √(2πx).
fn bessel_asymptotic(x: f64, order: f64) -> f64 {
    let (mut term, mut sum) = (1.0, 1.0);
    for k in 1..40 {
        let k = f64::from(k);
        term *= -(4.0 * order * order - (2.0 * k - 1.0) * (2.0 * k - 1.0)) / (8.0 * k * x);
        sum += term;
        if term.abs() < 1e-18 {
            break;
        }
    }
    // e^x overflows before the product does.
    let half = (x / 2.0).exp();
    half / (TAU * x).sqrt() * sum * half
}

/// The modified Bessel function of the first kind of order 0.
pub(crate) fn bessel_i0(x: f64) -> f64 {
    let a = x.abs();
    if a < BESSEL_LIMIT {
        bessel_series(a, 0)
    } else if a == f64::INFINITY {
        a
    } else {
        bessel_asymptotic(a, 0.0)
    }
}

/// The modified Bessel function of the first kind of order 1.
pub(crate) fn bessel_i1(x: f64) -> f64 {
    let a = x.abs();
    let value = if a < BESSEL_LIMIT {
        a / 2.0 * bessel_series(a, 1)
    } else if a == f64::INFINITY {
        a
    } else {
        bessel_asymptotic(a, 1.0)
    };
    value.copysign(x)
}

/// The Bessel function of the first kind; NaN of a negative order, as in CUDA.
pub(crate) fn jn(order: i32, x: f64) -> f64 {
    if order < 0 { f64::NAN } else { libm::jn(order, x) }
}

/// The Bessel function of the second kind; NaN of a negative order, as in CUDA.
pub(crate) fn yn(order: i32, x: f64) -> f64 {
    if order < 0 { f64::NAN } else { libm::yn(order, x) }
}
