//! Bessel functions, on numbers of any kind.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_PI, PI, TAU};

use crate::real::Real;

/// Where series give way to asymptotic ones.
const LIMIT: f64 = 25.0;
/// Euler's constant.
const GAMMA: f64 = 0.577_215_664_901_532_9;

/// (x²/4)^k / (k! (k + order)!), summed up.
fn modified_series<R: Real>(x: R, order: u32) -> R {
    let (quarter, one) = (x * x / x.number(4.0), x.number(1.0));
    (1..=60u32).rev().fold(one, |sum, k| quarter / x.number(f64::from(k) * f64::from(k + order)) * sum + one)
}

/// The asymptotic series (Abramowitz and Stegun, 9.7.1), times e^x / √(2πx).
fn modified_asymptotic<R: Real>(x: R, order: f64) -> R {
    let n = |c| x.number(c);
    let (mut term, mut sum) = (n(1.0), n(1.0));
    for k in 1..30 {
        let k = f64::from(k);
        term = term * n(-(4.0 * order * order - (2.0 * k - 1.0) * (2.0 * k - 1.0))) / (n(8.0 * k) * x);
        sum = sum + term;
    }
    // e^x overflows before the product does.
    let half = (x / n(2.0)).of_table("exp");
    let value = half / (n(TAU) * x).root() * sum * half;
    R::choose(x.same(n(f64::INFINITY)), || x, || value)
}

/// The modified Bessel function of the first kind of order 0.
pub fn i0<R: Real>(x: R) -> R {
    let a = x.magnitude();
    R::choose(a.below(x.number(LIMIT)), || modified_series(a, 0), || modified_asymptotic(a, 0.0))
}

/// The modified Bessel function of the first kind of order 1.
pub fn i1<R: Real>(x: R) -> R {
    let a = x.magnitude();
    let series = || a / x.number(2.0) * modified_series(a, 1);
    let value = R::choose(a.below(x.number(LIMIT)), series, || modified_asymptotic(a, 1.0));
    value.signed_as(x)
}

/// The functions of order 0 or 1 of both kinds at one place.
#[derive(Clone, Copy)]
struct Both<R> {
    first: R,
    second: R,
}

/// One of two, of which the other may have been computed too.
fn choose<R: Real>(truth: R::Truth, yes: Both<R>, no: Both<R>) -> Both<R> {
    let first = R::choose(truth, || yes.first, || no.first);
    Both { first, second: R::choose(truth, || yes.second, || no.second) }
}

/// Below 1: the power series (Abramowitz and Stegun, 9.1.10 to 9.1.13).
fn near_zero<R: Real>(x: R, order: u32) -> Both<R> {
    let n = |c| x.number(c);
    let minus_quarter = -(x * x) / n(4.0);
    let (mut term, mut harmonic) = (n(1.0), f64::from(order));
    let (mut first, mut second) = (term, term * n(harmonic));
    for k in 1..14u32 {
        term = term * minus_quarter / n(f64::from(k) * f64::from(k + order));
        harmonic += 1.0 / f64::from(k) + if order == 0 { 1.0 / f64::from(k) } else { 1.0 / f64::from(k + 1) };
        first = first + term;
        second = second + term * n(harmonic);
    }
    // ψ(k+1) + ψ(k+n+1) is what stands in `harmonic`, less 2γ.
    let log = (x / n(2.0)).of_table("log") + n(GAMMA);
    if order == 0 {
        let second = n(FRAC_2_PI) * (log * first - second / n(2.0));
        return Both { first, second };
    }
    let half = x / n(2.0);
    let first = half * first;
    let second = n(FRAC_2_PI) * (log * first - half * second / n(2.0)) - n(FRAC_2_PI) / x;
    Both { first, second }
}

/// From 1 to 25: J of all orders down from one where it is nothing (Miller's algorithm), and Y as a series of them (9.1.88).
fn by_recurrence<R: Real>(x: R, order: u32) -> Both<R> {
    const FROM: u32 = 70;
    let n = |c| x.number(c);
    let (mut above, mut here) = (n(0.0), n(1e-150));
    let (mut whole, mut second) = (n(0.0), n(0.0));
    let (mut zeroth, mut first) = (here, here);
    for k in (0..=FROM).rev() {
        // `here` is J of order k, times what all are too large by.
        let sign = if (k / 2) % 2 == 0 { 1.0 } else { -1.0 };
        let even = k % 2 == 0;
        if even {
            whole = if k == 0 { whole + here } else { whole + n(2.0) * here };
        }
        if order == 0 && even && k > 0 {
            second = second - n(sign * 4.0 / f64::from(k)) * here;
        }
        if order == 1 && !even && k > 1 {
            let i = f64::from(k / 2);
            second = second - n(sign * f64::from(k) / (i * (i + 1.0))) * here;
        }
        if k == 1 {
            first = here;
        }
        zeroth = here;
        let below = n(2.0 * f64::from(k)) / x * here - above;
        (above, here) = (here, below);
    }
    let (zeroth, second) = (zeroth / whole, second / whole);
    let log = (x / n(2.0)).of_table("log") + n(GAMMA);
    if order == 0 {
        return Both { first: zeroth, second: n(FRAC_2_PI) * (log * zeroth) + second * n(FRAC_2_PI) };
    }
    let first = first / whole;
    let second = n(FRAC_2_PI) * ((log - n(1.0)) * first + second - zeroth / x);
    Both { first, second }
}

/// From 25 on: Hankel's asymptotic series (9.2.5 to 9.2.10).
fn far<R: Real>(x: R, order: u32) -> Both<R> {
    let n = |c| x.number(c);
    let mu = f64::from(4 * order * order);
    let (mut term, mut p, mut q) = (n(1.0), n(1.0), n(0.0));
    for k in 1..=28u32 {
        let odd = f64::from(2 * k - 1);
        term = term * n(mu - odd * odd) / (n(8.0 * f64::from(k)) * x);
        match k % 4 {
            0 => p = p + term,
            1 => q = q + term,
            2 => p = p - term,
            _ => q = q - term,
        }
    }
    let (sin, cos) = (x.of_table("sin"), x.of_table("cos"));
    // Of x - (2 order + 1) π/4.
    let (sin, cos) = if order == 0 { (sin - cos, sin + cos) } else { (-(sin + cos), sin - cos) };
    let size = n(FRAC_1_SQRT_2) * (n(2.0 / PI) / x).root();
    let first = size * (p * cos - q * sin);
    let second = size * (p * sin + q * cos);
    let end = x.same(n(f64::INFINITY));
    choose(end, Both { first: n(0.0), second: n(0.0) }, Both { first, second })
}

fn both<R: Real>(x: R, order: u32) -> Both<R> {
    let near = x.below(x.number(1.0));
    let found = choose(near, near_zero(x, order), by_recurrence(x, order));
    choose(x.below(x.number(LIMIT)), found, far(x, order))
}

/// The Bessel function of the first kind of order 0.
pub fn j0<R: Real>(x: R) -> R {
    both(x.magnitude(), 0).first
}

/// The Bessel function of the first kind of order 1.
pub fn j1<R: Real>(x: R) -> R {
    both(x.magnitude(), 1).first * x.number(1.0).signed_as(x)
}

/// A function of the second kind: NaN of negative numbers, the least number of zero.
fn second<R: Real>(x: R, order: u32) -> R {
    let value = both(x, order).second;
    let value = R::choose(x.same(x.number(0.0)), || x.number(f64::NEG_INFINITY), || value);
    R::choose(x.below(x.number(0.0)), || x.number(f64::NAN), || value)
}

/// The Bessel function of the second kind of order 0.
pub fn y0<R: Real>(x: R) -> R {
    second(x, 0)
}

/// The Bessel function of the second kind of order 1.
pub fn y1<R: Real>(x: R) -> R {
    second(x, 1)
}

/// From those of order 0 and 1 to that of a higher order, by what three neighbours have in common (Abramowitz and Stegun, 9.1.27); what has no end stays so.
fn upwards<R: Real>(order: R, x: R, first: R, second: R) -> R {
    let one = x.number(1.0);
    let step = |[k, before, own]: [R; 3]| {
        let next = (k + k) / x * own - before;
        let endless = own.magnitude().same(x.number(f64::INFINITY));
        [k + one, own, R::choose(endless, || own, || next)]
    };
    let [_, _, last] = R::repeat([one, first, second], |[k, ..]| k.below(order), step);
    R::choose(order.same(x.number(0.0)), || first, || last)
}

/// That of the first kind where the order, at least 2, is not less than `x`: downwards from a far higher one, where any number will do, and in proportion to the sum of all
/// of even order, which is known (Miller; Abramowitz and Stegun, 9.12).
fn downwards<R: Real>(order: R, x: R) -> R {
    let n = |c| x.number(c);
    let (zero, one) = (n(0.0), n(1.0));
    let enough = n(160.0) * order + n(256.0);
    let [far] = R::repeat([one], |[d]| (d * d).below(enough), |[d]| [d + one]);
    let step = |[k, above, own, sum, other, found]: [R; 6]| {
        let below = (k + k) / x * own - above;
        let k = k - one;
        let found = R::choose(k.same(order), || below, || found);
        let large = n(1e10).below(below.magnitude());
        let scale = R::choose(large, || one / below.magnitude(), || one);
        // The sums of even and of odd orders take turns.
        [k, own * scale, below * scale, (other + below) * scale, sum * scale, found * scale]
    };
    let start = [order + far, zero, one, one, zero, zero];
    let [_, _, least, sum, _, found] = R::repeat(start, |[k, ..]| zero.below(k), step);
    R::choose(x.below(n(1e-150)), || zero, || found / (sum + sum - least))
}

/// The Bessel function of the first kind of any order, which `odd` is 1 of if it is odd; NaN of a negative one.
pub fn jn<R: Real>(order: R, odd: R, x: R) -> R {
    let n = |c| x.number(c);
    let a = x.magnitude();
    let low = || upwards(order, a, j0(a), j1(a));
    let value = R::choose(order.below(n(2.0)), low, || {
        R::choose(order.below(a), low, || downwards(order, R::choose(order.below(a), || order, || a)))
    });
    let value = R::choose(a.same(n(f64::INFINITY)), || n(0.0), || value);
    let value = R::choose(odd.same(n(1.0)), || value * n(1.0).signed_as(x), || value);
    R::choose(order.below(n(0.0)), || n(f64::NAN), || value)
}

/// The Bessel function of the second kind of any order; NaN of a negative one, and of negative numbers, and the least number of zero.
pub fn yn<R: Real>(order: R, x: R) -> R {
    let n = |c| x.number(c);
    let value = upwards(order, x, y0(x), y1(x));
    let value = R::choose(x.same(n(f64::INFINITY)), || n(0.0), || value);
    let value = R::choose(x.same(n(0.0)), || n(f64::NEG_INFINITY), || value);
    R::choose(order.below(n(0.0)), || n(f64::NAN), || value)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Function = fn(f64) -> f64;

    #[test]
    fn orders_as_libm_has_them() {
        for order in [-1, 0, 1, 2, 3, 7, 10, 50] {
            let (n, odd) = (f64::from(order), f64::from(order & 1));
            for x in
                [0.0, 1e-200, 1e-3, 0.3, 1.0, 2.5, 5.0, 7.0, 7.5, 20.0, 60.0, 1000.0, f64::INFINITY, f64::NAN]
            {
                for x in [x, -x] {
                    let near = |own: f64, libm: f64| {
                        own == libm
                            || own.is_nan() && libm.is_nan()
                            || (own - libm).abs() <= 1e-13 * libm.abs().max(1.0)
                    };
                    let known = if order < 0 { f64::NAN } else { libm::jn(order, x) };
                    assert!(near(jn(n, odd, x), known), "jn({order}, {x}) = {}, not {known}", jn(n, odd, x));
                    let known = if order < 0 || x < 0.0 { f64::NAN } else { libm::yn(order, x) };
                    assert!(near(yn(n, x), known), "yn({order}, {x}) = {}, not {known}", yn(n, x));
                }
            }
        }
    }

    /// The crate `libm` computes them in another way.
    #[test]
    fn as_libm_has_them() {
        let pairs: [(Function, Function); 4] =
            [(j0, libm::j0), (j1, libm::j1), (y0, libm::y0), (y1, libm::y1)];
        for (i, (ours, theirs)) in pairs.into_iter().enumerate() {
            for step in 1..4000 {
                let x = f64::from(step) * 0.037 + f64::from(step % 7) * 1e-5;
                let (a, b) = (ours(x), theirs(x));
                assert!((a - b).abs() <= 4e-15 * b.abs().max(1.0), "{i}: {x}: {a} {b}");
                if i < 2 {
                    assert_eq!(ours(-x), if i == 0 { a } else { -a });
                }
            }
        }
        assert_eq!(
            (j0(0.0), j1(-0.0).to_bits(), y0(0.0), y1(0.0)),
            (1.0, (-0f64).to_bits(), -f64::INFINITY, -f64::INFINITY)
        );
        assert_eq!((j0(f64::INFINITY), y1(f64::INFINITY)), (0.0, 0.0));
        assert!(y0(-1.0).is_nan() && y1(f64::NAN).is_nan() && j0(f64::NAN).is_nan());
        assert!((y1(1e-40) + FRAC_2_PI * 1e40).abs() < 1e25);
    }
}
