//! Functions that are computed by those of [`tilewright_libdevice`] on recorded numbers: each is a function of the program's, once.

use std::cell::RefCell;
use std::ops::{Add, Div, Mul, Neg, Sub};

use tilewright_libdevice::{Function, Real, Type, bessel, special};
use tilewright_llvm::{BinOp, Builder, CastOp, Effect, FloatPred, Loc, Module, Ty, Value};

use crate::lower::Lower;

/// The machine's type of one of the table's.
pub(super) fn of_table(ty: Type) -> Ty {
    match ty {
        Type::I32 | Type::U32 => Ty::I32,
        Type::I64 | Type::U64 => Ty::I64,
        Type::F32 => Ty::F32,
        Type::F64 => Ty::F64,
    }
}

impl Lower<'_, '_> {
    /// A call of a function that is recorded; `None` for one that is not.
    pub(super) fn recorded(&mut self, function: &Function, result: Ty, args: &[Value]) -> Option<Value> {
        if !is_recorded(function.name) {
            return None;
        }
        let mut wide: Vec<Value> = args.iter().map(|&x| self.widened(x)).collect();
        if self.b.ty(args[0]) == Ty::I32 {
            // An order, and whether it is odd.
            let odd = self.b.and_const(args[0], 1);
            let numbers = [args[0], odd].map(|n| self.b.cast(CastOp::SiToFp, n, Ty::F64));
            wide.splice(..1, numbers);
        }
        let callee = self.b.module.declare(&symbol(function.name), &vec![Ty::F64; wide.len()], &[Ty::F64]);
        let made = self.b.call(callee, &wide)[0];
        Some(self.narrowed(made, result))
    }
}

/// The names of the program's functions.
fn symbol(name: &str) -> String {
    format!("__tilewright_{name}")
}

/// Functions, and how many numbers they take.
const RECORDED: &[(&str, usize)] = &[
    ("cyl_bessel_i0", 1),
    ("cyl_bessel_i1", 1),
    ("erfcinv", 1),
    ("erfcx", 1),
    ("erfinv", 1),
    ("j0", 1),
    ("j1", 1),
    ("jn", 3),
    ("norm3d", 3),
    ("norm4d", 4),
    ("normcdf", 1),
    ("normcdfinv", 1),
    ("rcbrt", 1),
    ("rhypot", 2),
    ("rnorm3d", 3),
    ("rnorm4d", 4),
    ("y0", 1),
    ("y1", 1),
    ("yn", 3),
];

fn is_recorded(name: &str) -> bool {
    RECORDED.iter().any(|(of, _)| *of == name)
}

/// Defines those of the functions that a module calls.
pub(in crate::lower) fn define(module: &mut Module) {
    for &(name, count) in RECORDED {
        if module.declares(&symbol(name)) {
            let b = Builder::new(module, &symbol(name), &vec![Ty::F64; count], &[Ty::F64], None, Loc::NONE);
            let args: Vec<Value> = (0..count).map(|i| b.arg(i)).collect();
            let b = RefCell::new(b);
            let numbers: Vec<Number<'_, '_>> = args.into_iter().map(|v| Number { b: &b, v }).collect();
            let made = compute(name, &numbers).v;
            let mut b = b.into_inner();
            b.ret(&[made]);
            b.finish();
        }
    }
}

fn compute<R: Real>(name: &str, v: &[R]) -> R {
    let x = v[0];
    match name {
        "cyl_bessel_i0" => bessel::i0(x),
        "cyl_bessel_i1" => bessel::i1(x),
        "erfcinv" => special::erfcinv(x),
        "erfcx" => special::erfcx(x),
        "erfinv" => special::erfinv(x),
        "j0" => bessel::j0(x),
        "j1" => bessel::j1(x),
        "jn" => bessel::jn(x, v[1], v[2]),
        "norm3d" | "norm4d" => special::norm(v),
        "normcdf" => special::normcdf(x),
        "normcdfinv" => special::normcdfinv(x),
        "rcbrt" => x.number(1.0) / x.of_table("cbrt"),
        "rhypot" | "rnorm3d" | "rnorm4d" => special::rnorm(v),
        "y0" => bessel::y0(x),
        "yn" => bessel::yn(x, v[2]),
        _ => bessel::y1(x),
    }
}

/// A number of fp64 in a function that is being recorded.
#[derive(Clone, Copy)]
struct Number<'c, 'b> {
    b: &'c RefCell<Builder<'b>>,
    v: Value,
}

impl Number<'_, '_> {
    fn made(self, v: Value) -> Self {
        Number { b: self.b, v }
    }

    fn bin(self, op: BinOp, other: Self) -> Self {
        let v = self.b.borrow_mut().bin(op, self.v, other.v);
        self.made(v)
    }

    fn intrinsic(self, name: &str, args: &[Value]) -> Self {
        let v = self.b.borrow_mut().intrinsic(name, Effect::Pure, Some(Ty::F64), args);
        self.made(v)
    }

    fn compare(self, pred: FloatPred, other: Self) -> Value {
        self.b.borrow_mut().fcmp(pred, self.v, other.v)
    }
}

impl Add for Number<'_, '_> {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        self.bin(BinOp::FAdd, other)
    }
}

impl Sub for Number<'_, '_> {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.bin(BinOp::FSub, other)
    }
}

impl Mul for Number<'_, '_> {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        self.bin(BinOp::FMul, other)
    }
}

impl Div for Number<'_, '_> {
    type Output = Self;
    fn div(self, other: Self) -> Self {
        self.bin(BinOp::FDiv, other)
    }
}

impl Neg for Number<'_, '_> {
    type Output = Self;
    fn neg(self) -> Self {
        let v = self.b.borrow_mut().fneg(self.v);
        self.made(v)
    }
}

impl Real for Number<'_, '_> {
    type Truth = (Self, Value);

    fn number(self, x: f64) -> Self {
        let v = self.b.borrow_mut().float(Ty::F64, x);
        self.made(v)
    }
    fn times_plus(self, y: Self, z: Self) -> Self {
        self.intrinsic("llvm.fma.f64", &[self.v, y.v, z.v])
    }
    fn magnitude(self) -> Self {
        self.intrinsic("llvm.fabs.f64", &[self.v])
    }
    fn signed_as(self, sign: Self) -> Self {
        self.intrinsic("llvm.copysign.f64", &[self.v, sign.v])
    }
    fn root(self) -> Self {
        self.intrinsic("llvm.sqrt.f64", &[self.v])
    }
    fn of_table(self, name: &'static str) -> Self {
        self.intrinsic(&format!("xe.cl.{name}"), &[self.v])
    }
    fn below(self, other: Self) -> (Self, Value) {
        (self, self.compare(FloatPred::Olt, other))
    }
    fn same(self, other: Self) -> (Self, Value) {
        (self, self.compare(FloatPred::Oeq, other))
    }
    fn choose((at, truth): (Self, Value), yes: impl FnOnce() -> Self, no: impl FnOnce() -> Self) -> Self {
        let (yes, no) = (yes(), no());
        let v = at.b.borrow_mut().select(truth, yes.v, no.v);
        at.made(v)
    }
    fn repeat<const N: usize>(
        state: [Self; N],
        mut again: impl FnMut([Self; N]) -> Self::Truth,
        mut step: impl FnMut([Self; N]) -> [Self; N],
    ) -> [Self; N] {
        let b = state[0].b;
        let (before, outer) = (b.borrow().block(), b.borrow().preheader());
        let types = [Ty::F64; N];
        let top = b.borrow_mut().create_block(before, Some(before), &types);
        let body = b.borrow_mut().create_block(top, Some(before), &[]);
        let done = b.borrow_mut().create_block(top, outer, &types);
        let values = |state: [Self; N]| state.map(|number| number.v);
        let numbers = |block| std::array::from_fn(|i| Number { b, v: b.borrow().params(block)[i] });
        b.borrow_mut().br(top, &values(state));
        b.borrow_mut().switch_to(top);
        let here: [Self; N] = numbers(top);
        let (_, truth) = again(here);
        b.borrow_mut().cond_br(truth, body, &[], done, &values(here));
        b.borrow_mut().switch_to(body);
        let next = step(here);
        b.borrow_mut().br(top, &values(next));
        b.borrow_mut().switch_to(done);
        numbers(done)
    }
}
