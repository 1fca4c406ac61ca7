//! Numbers of fp64 that record how they are computed, with arithmetic alone: what functions on [`Real`] and [`Parts`] become for a target that has no more.

use std::cell::RefCell;
use std::ops::{Add, Div, Mul, Neg, Sub};

use crate::elementary;
use crate::real::{Parts, Real};
use crate::record::{Binary as B, Compare as C, Convert, Recorder, Word};

/// A number that is being recorded.
pub(crate) struct Number<'c, 'r, R: Recorder> {
    r: &'c RefCell<&'r mut R>,
    pub v: R::Value,
}

impl<R: Recorder> Clone for Number<'_, '_, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R: Recorder> Copy for Number<'_, '_, R> {}

impl<'c, 'r, R: Recorder> Number<'c, 'r, R> {
    /// A value of the recorder as a number.
    pub fn new(r: &'c RefCell<&'r mut R>, v: R::Value) -> Self {
        Number { r, v }
    }

    fn binary(self, op: B, other: Self) -> Self {
        let v = self.r.borrow_mut().binary(op, self.v, other.v);
        Number { r: self.r, v }
    }

    fn bits(self) -> R::Value {
        self.r.borrow_mut().convert(Convert::Bits, self.v, Word::I64)
    }

    fn of_bits(self, bits: R::Value) -> Self {
        let v = self.r.borrow_mut().convert(Convert::Bits, bits, Word::F64);
        Number { r: self.r, v }
    }

    /// What a product lost, by halves of its factors (Dekker).
    fn lost(self, other: Self, product: Self) -> Self {
        let halves = |x: Self| {
            let large = x * x.number((1u64 << 27) as f64 + 1.0);
            let high = large - (large - x);
            (high, x - high)
        };
        let ((a, b), (c, d)) = (halves(self), halves(other));
        b * d - (((product - a * c) - b * c) - a * d)
    }
}

impl<R: Recorder> Add for Number<'_, '_, R> {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        self.binary(B::AddF, other)
    }
}

impl<R: Recorder> Sub for Number<'_, '_, R> {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.binary(B::SubF, other)
    }
}

impl<R: Recorder> Mul for Number<'_, '_, R> {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        self.binary(B::MulF, other)
    }
}

impl<R: Recorder> Div for Number<'_, '_, R> {
    type Output = Self;
    fn div(self, other: Self) -> Self {
        self.binary(B::DivF, other)
    }
}

impl<R: Recorder> Neg for Number<'_, '_, R> {
    type Output = Self;
    fn neg(self) -> Self {
        let bits = self.bits();
        let turned = self.r.borrow_mut().with(B::Xor, bits, i64::MIN);
        self.of_bits(turned)
    }
}

impl<R: Recorder> Real for Number<'_, '_, R> {
    type Truth = (Self, R::Value);

    fn number(self, x: f64) -> Self {
        let v = self.r.borrow_mut().number(x, Word::F64);
        Number { r: self.r, v }
    }
    fn times_plus(self, y: Self, z: Self) -> Self {
        let product = self * y;
        let sum = product + z;
        let of_z = sum - product;
        let lost = (product - (sum - of_z)) + (z - of_z);
        let exact = sum + (lost + self.lost(y, product));
        // (What has no end lost nothing.)
        Self::choose(exact.same(exact), || exact, || sum)
    }
    fn magnitude(self) -> Self {
        let v = self.r.borrow_mut().magnitude(self.v);
        Number { r: self.r, v }
    }
    fn signed_as(self, sign: Self) -> Self {
        let (own, other) = (self.bits(), sign.bits());
        let mut r = self.r.borrow_mut();
        let (own, other) = (r.with(B::And, own, i64::MAX), r.with(B::And, other, i64::MIN));
        let bits = r.binary(B::Or, own, other);
        drop(r);
        self.of_bits(bits)
    }
    fn root(self) -> Self {
        let n = |x| self.number(x);
        // Far from both ends: the power is even.
        let small = self.below(n(2f64.powi(-600)));
        let near = Self::choose(small, || self * n(2f64.powi(200)), || self);
        // 1/√x from half of the exponent, by Newton's method, which doubles the digits.
        let bits = near.bits();
        let half = self.r.borrow_mut().with(B::ShrU, bits, 1);
        let start = self.r.borrow_mut().integer(0x5fe6_eb50_0000_0000, Word::I64);
        let guess = self.r.borrow_mut().binary(B::Sub, start, half);
        let mut y = self.of_bits(guess);
        for _ in 0..5 {
            y = y * (n(1.5) - n(0.5) * near * y * y);
        }
        let root = near * y;
        let square = root * root;
        let rest = (near - square) - root.lost(root, square);
        let root = root + n(0.5) * y * rest;
        let root = Self::choose(small, || root * n(2f64.powi(-100)), || root);
        let root = Self::choose(self.same(n(f64::INFINITY)), || self, || root);
        let root = Self::choose(self.below(n(0.0)), || n(f64::NAN), || root);
        Self::choose(self.same(n(0.0)), || self, || root)
    }
    fn of_table(self, name: &'static str) -> Self {
        match elementary::by_name(name, &[self]) {
            Some(made) => made,
            None => unreachable!("the functions here use no `{name}`"),
        }
    }
    fn below(self, other: Self) -> (Self, R::Value) {
        (self, self.r.borrow_mut().compare(C::LessF, self.v, other.v))
    }
    fn same(self, other: Self) -> (Self, R::Value) {
        // (There is the question whether they differ.)
        let mut r = self.r.borrow_mut();
        let differ = r.compare(C::NotF, self.v, other.v);
        let (one, none) = (r.integer(1, Word::I64), r.integer(0, Word::I64));
        let same = r.select(differ, none, one);
        (self, r.is(same, 1))
    }
    fn choose((at, truth): (Self, R::Value), yes: impl FnOnce() -> Self, no: impl FnOnce() -> Self) -> Self {
        let (yes, no) = (yes(), no());
        let v = at.r.borrow_mut().select(truth, yes.v, no.v);
        Number { r: at.r, v }
    }
    fn repeat<const N: usize>(
        _: [Self; N],
        _: impl FnMut([Self; N]) -> Self::Truth,
        _: impl FnMut([Self; N]) -> [Self; N],
    ) -> [Self; N] {
        unreachable!("the functions that are recorded here have no loops")
    }
}

impl<R: Recorder> Parts for Number<'_, '_, R> {
    fn power_of_two(self) -> Self {
        let mut r = self.r.borrow_mut();
        let power = r.convert(Convert::Whole, self.v, Word::I64);
        let field = r.with(B::Add, power, 1023);
        let bits = r.with(B::Shl, field, 52);
        drop(r);
        self.of_bits(bits)
    }
    fn parts(self) -> (Self, Self) {
        let bits = self.bits();
        let mut r = self.r.borrow_mut();
        let field = r.with(B::ShrU, bits, 52);
        let exponent = r.with(B::Add, field, -1023);
        let v = r.convert(Convert::Float, exponent, Word::F64);
        let fraction = r.with(B::And, bits, (1 << 52) - 1);
        let of_one = r.with(B::Or, fraction, 0x3ff << 52);
        drop(r);
        (self.of_bits(of_one), Number { r: self.r, v })
    }
}
