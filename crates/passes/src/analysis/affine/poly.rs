//! Sums of products of scalars, in one form for each value they can have.

use std::collections::BTreeMap;

use smallvec::{SmallVec, smallvec};
use tilewright_ir::Value;

/// The factors of a product, in order; none for 1.
pub type Product = SmallVec<[Value; 2]>;

/// A sum of products of scalars with whole coefficients, modulo 2^64.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Poly {
    terms: BTreeMap<Product, i64>,
}

impl Poly {
    /// 0.
    pub fn zero() -> Self {
        Poly::default()
    }

    /// A number.
    pub fn number(n: i64) -> Self {
        Poly::term(smallvec![], n)
    }

    /// A scalar.
    pub fn leaf(value: Value) -> Self {
        Poly::term(smallvec![value], 1)
    }

    /// So many times a product.
    pub fn term(product: Product, coefficient: i64) -> Self {
        let mut poly = Poly::zero();
        poly.add_term(product, coefficient);
        poly
    }

    fn add_term(&mut self, product: Product, coefficient: i64) {
        let sum = self.terms.get(&product).copied().unwrap_or(0).wrapping_add(coefficient);
        if sum == 0 {
            self.terms.remove(&product);
        } else {
            self.terms.insert(product, sum);
        }
    }

    /// The products with their coefficients, none of which is 0.
    pub fn terms(&self) -> impl Iterator<Item = (&Product, i64)> {
        self.terms.iter().map(|(product, &coefficient)| (product, coefficient))
    }

    /// How many products it has.
    pub fn products(&self) -> usize {
        self.terms.len()
    }

    /// Whether it is 0.
    pub fn is_zero(&self) -> bool {
        self.terms.is_empty()
    }

    /// All scalars in it, some of them several times.
    pub fn leaves(&self) -> impl Iterator<Item = Value> + '_ {
        self.terms.keys().flatten().copied()
    }

    /// The number that it is, where it is one.
    pub fn constant(&self) -> Option<i64> {
        match self.terms.len() {
            0 => Some(0),
            1 => self.terms.get(&Product::new()).copied(),
            _ => None,
        }
    }

    /// The sum of this and so many times another.
    #[must_use]
    pub fn plus(&self, other: &Poly, times: i64) -> Poly {
        let mut sum = self.clone();
        for (product, coefficient) in other.terms() {
            sum.add_term(product.clone(), coefficient.wrapping_mul(times));
        }
        sum
    }

    /// The product of both.
    #[must_use]
    pub fn times(&self, other: &Poly) -> Poly {
        let mut all = Poly::zero();
        for (x, a) in self.terms() {
            for (y, b) in other.terms() {
                let mut product: Product = x.iter().chain(y).copied().collect();
                product.sort_unstable();
                all.add_term(product, a.wrapping_mul(b));
            }
        }
        all
    }

    /// The quotient, where each coefficient is a multiple of `by`.
    pub fn divided(&self, by: i64) -> Option<Poly> {
        if by == 0 || self.terms().any(|(_, coefficient)| coefficient % by != 0) {
            return None;
        }
        Some(Poly { terms: self.terms().map(|(product, c)| (product.clone(), c / by)).collect() })
    }

    /// The same with another sum in the place of a scalar.
    #[must_use]
    pub fn with(&self, scalar: Value, sum: &Poly) -> Poly {
        let mut all = Poly::zero();
        for (product, coefficient) in self.terms() {
            let (own, others): (Product, Product) = product.iter().copied().partition(|&v| v == scalar);
            let term = Poly::term(others, coefficient);
            all = all.plus(&own.iter().fold(term, |term, _| term.times(sum)), 1);
        }
        all
    }

    /// How many times another, as far as its first product goes.
    pub fn how_many(&self, part: &Poly) -> Option<i64> {
        let (product, times) = part.terms().find(|(product, _)| !product.is_empty())?;
        let own = self.terms.get(product)?;
        (own % times == 0).then(|| own / times)
    }

    /// One product of `self` by one of `by`, if `by` has no other and the quotient is whole.
    fn quotient(product: &Product, coefficient: i64, by: &Poly) -> Option<(Product, i64)> {
        let (factors, divisor) = by.terms().next().filter(|_| by.products() == 1)?;
        let mut left = product.clone();
        for factor in factors {
            let at = left.iter().position(|v| v == factor)?;
            left.remove(at);
        }
        (coefficient % divisor == 0).then(|| (left, coefficient / divisor))
    }

    /// The sum of the products that are multiples of `by` and whose quotients `take` wants, divided by it.
    #[must_use]
    pub fn multiples(&self, by: &Poly, take: impl Fn(&Poly) -> bool) -> Poly {
        let mut sum = Poly::zero();
        for (product, coefficient) in self.terms() {
            let quotient = Poly::quotient(product, coefficient, by).map(|(p, c)| Poly::term(p, c));
            if let Some(quotient) = quotient.filter(|q| take(q)) {
                sum = sum.plus(&quotient, 1);
            }
        }
        sum
    }

    /// The products for which `take` holds, and the others.
    pub fn split(&self, take: impl Fn(&Product, i64) -> bool) -> (Poly, Poly) {
        let (mut taken, mut left) = (Poly::zero(), Poly::zero());
        for (product, coefficient) in self.terms() {
            let part = if take(product, coefficient) { &mut taken } else { &mut left };
            part.add_term(product.clone(), coefficient);
        }
        (taken, left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(n: u32) -> Poly {
        Poly::leaf(Value::from_u32(n))
    }

    #[test]
    fn sums_of_products_have_one_form() {
        let (x, y) = (leaf(0), leaf(1));
        let two = Poly::number(2);
        // (x + 2) (y - 2) + 2 x - 2 y = x y - 4
        let product = x.plus(&two, 1).times(&y.plus(&two, -1));
        assert_eq!(product.plus(&x, 2).plus(&y, -2), x.times(&y).plus(&Poly::number(4), -1));
        assert_eq!(x.plus(&x, -1), Poly::zero());
        assert_eq!(Poly::zero().constant(), Some(0));
        assert_eq!(x.constant(), None);
    }

    #[test]
    fn division() {
        let (x, y) = (leaf(0), leaf(1));
        let sum = x.times(&y).times(&Poly::number(32)).plus(&y, 64).plus(&Poly::number(7), 1);
        assert_eq!(sum.multiples(&y, |_| true), x.times(&Poly::number(32)).plus(&Poly::number(64), 1));
        assert_eq!(sum.multiples(&y, |q| q.constant().is_none()), x.times(&Poly::number(32)));
        assert_eq!(sum.divided(2), None);
        assert_eq!(
            sum.with(Value::from_u32(1), &Poly::number(2)),
            x.times(&Poly::number(64)).plus(&Poly::number(135), 1)
        );
        assert_eq!(x.times(&Poly::number(6)).divided(3), Some(x.times(&Poly::number(2))));
    }
}
