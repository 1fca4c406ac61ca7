//! Pointers and numbers of a tensor as what they are of its indices: a base, and a sum of a scalar and a stride times each index.
//!
//! ```text
//! %p = tt.addptr (tt.splat %x), (%first + tt.make_range)[:, None] * %s + tt.make_range[None, :]
//!   =>  base %x, offset %first * %s, strides [%s, 1]
//!
//! scf.for %k = 0 to %n step 1 iter_args(%q = %p) { … scf.yield (tt.addptr %q, 32) }
//!   =>  in the loop %q is the same with the offset %first * %s + 32 * %k
//! ```
//!
//! Scalars are taken apart into sums of products ([`Poly`]), so that what is added and taken away again is gone. They are those of whole
//! numbers: what is computed with 32 bits has not overflowed, where an address or a mask is made of it (`docs/numerics.md`).

mod poly;
pub mod prefix;

use std::cell::RefCell;

use rustc_hash::FxHashMap;
use tilewright_ir::dialect::{arith, scf, tt, ttg};
use tilewright_ir::{Module, Op, Opcode, Value};

pub use poly::{Poly, Product};

use crate::analysis::axis::rank;

/// More products than this are one scalar.
const MOST_PRODUCTS: usize = 12;

/// A number, or a pointer, of a tensor: `base + offset + i * strides[0] + j * strides[1] + …`, in elements. A scalar has no strides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Linear {
    /// The scalar pointer; none for a number.
    pub base: Option<Value>,
    /// Of the first element.
    pub offset: Poly,
    /// From one element to the next along each dimension, where no index begins again.
    pub strides: Vec<Poly>,
    /// Where indices begin again from 0.
    pub wraps: Vec<Wrap>,
}

/// Along a dimension the index is `(first + i) % end`, and not what it counts as here, `first + i`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrap {
    /// The dimension.
    pub dim: usize,
    /// The first index.
    pub first: Poly,
    /// Where they begin again.
    pub end: Poly,
    /// How much of the stride counts this index, and not one that goes on.
    pub stride: Poly,
}

impl Wrap {
    fn is_of(&self, other: &Wrap) -> bool {
        (self.dim, &self.first, &self.end) == (other.dim, &other.first, &other.end)
    }
}

impl Linear {
    fn constant(offset: Poly, rank: usize) -> Self {
        Linear { base: None, offset, strides: vec![Poly::zero(); rank], wraps: Vec::new() }
    }

    /// Whether all elements are alike.
    pub fn is_uniform(&self) -> bool {
        self.strides.iter().all(Poly::is_zero) && self.wraps.is_empty()
    }

    /// The sum of this and so many times another; of two pointers there is none.
    fn plus(&self, other: &Linear, times: i64) -> Option<Linear> {
        let base = match (self.base, other.base) {
            (base, None) => base,
            (None, base) if times == 1 => base,
            _ => return None,
        };
        let strides = self.strides.iter().zip(&other.strides).map(|(a, b)| a.plus(b, times)).collect();
        let mut wraps = self.wraps.clone();
        for wrap in &other.wraps {
            match wraps.iter_mut().find(|own| own.is_of(wrap)) {
                Some(own) => own.stride = own.stride.plus(&wrap.stride, times),
                None => wraps.push(Wrap { stride: Poly::zero().plus(&wrap.stride, times), ..wrap.clone() }),
            }
        }
        wraps.retain(|wrap| !wrap.stride.is_zero());
        Some(Linear { base, offset: self.offset.plus(&other.offset, times), strides, wraps })
    }

    fn times(&self, by: &Poly) -> Linear {
        let strides = self.strides.iter().map(|s| s.times(by)).collect();
        let mut wraps = self.wraps.clone();
        wraps.iter_mut().for_each(|wrap| wrap.stride = wrap.stride.times(by));
        wraps.retain(|wrap| !wrap.stride.is_zero());
        Linear { base: None, offset: self.offset.times(by), strides, wraps }
    }

    /// The remainder by a number that all elements have alike.
    fn wrapped(mut self, by: &Linear) -> Option<Linear> {
        let mut along = self.strides.iter().enumerate().filter(|(_, stride)| !stride.is_zero());
        let (dim, stride) = along.next().filter(|_| along.next().is_none())?;
        if stride.constant() != Some(1) || !by.is_uniform() || !self.wraps.is_empty() {
            return None;
        }
        let stride = stride.clone();
        self.wraps.push(Wrap { dim, first: self.offset.clone(), end: by.offset.clone(), stride });
        Some(self)
    }
}

/// The value that is no such sum, or that makes what is asked for none.
pub type Obstacle = Value;

/// Takes values of a module apart, which does not change meanwhile.
#[derive(Debug)]
pub struct Affine<'m> {
    m: &'m Module,
    /// Whether scalars are taken apart, too.
    scalars: bool,
    known: RefCell<FxHashMap<Value, Result<Linear, Obstacle>>>,
    /// Carried values of loops whose steps are looked for.
    carried: RefCell<Vec<Value>>,
}

impl<'m> Affine<'m> {
    /// Of this module.
    pub fn new(m: &'m Module) -> Self {
        Affine { m, scalars: true, known: RefCell::default(), carried: RefCell::default() }
    }

    /// Of this module, in which scalars that are no constants stand for themselves.
    pub fn of_indices(m: &'m Module) -> Self {
        Affine { scalars: false, ..Affine::new(m) }
    }

    /// A number or pointer, of a tensor or not.
    ///
    /// # Errors
    /// The value that is made otherwise.
    pub fn of(&self, value: Value) -> Result<Linear, Obstacle> {
        self.wrapping(value).and_then(|linear| if linear.wraps.is_empty() { Ok(linear) } else { Err(value) })
    }

    /// The same, but for where indices begin again from 0.
    ///
    /// # Errors
    /// The value that is made otherwise.
    pub fn wrapping(&self, value: Value) -> Result<Linear, Obstacle> {
        // What is found out while carried values stand for themselves holds meanwhile.
        let lasting = self.carried.borrow().is_empty();
        if let Some(known) = self.known.borrow().get(&value).filter(|_| lasting) {
            return known.clone();
        }
        let found = self.find(value);
        if lasting {
            self.known.borrow_mut().insert(value, found.clone());
        }
        found
    }

    /// A scalar number: at worst it stands for itself.
    pub fn scalar(&self, value: Value) -> Poly {
        match self.of(value) {
            Ok(Linear { base: None, offset, .. }) => offset,
            _ => Poly::leaf(value),
        }
    }

    fn find(&self, value: Value) -> Result<Linear, Obstacle> {
        let m = self.m;
        let ty = m.value_type(value);
        let rank = rank(m, value);
        let stays = rank == 0 && !self.scalars && m.is_int(ty) && m.constant_int(value).is_none();
        if stays || self.carried.borrow().contains(&value) {
            return Ok(self.itself(value));
        }
        let found = match m.defining_op(value) {
            Some(op) if m.is_ptr(ty) => self.pointer(op, value)?,
            Some(op) => self.number(op, value)?,
            None => self.carried(value),
        };
        match found {
            Some(linear) if rank > 0 || linear.offset.products() <= MOST_PRODUCTS => Ok(linear),
            _ if rank == 0 => Ok(self.itself(value)),
            _ => Err(value),
        }
    }

    /// A value that stands for itself: the same in all elements.
    fn itself(&self, value: Value) -> Linear {
        let rank = rank(self.m, value);
        match self.m.is_ptr(self.m.value_type(value)) {
            true => Linear { base: Some(value), ..Linear::constant(Poly::zero(), rank) },
            false => Linear::constant(Poly::leaf(value), rank),
        }
    }

    fn pointer(&self, op: Op, value: Value) -> Result<Option<Linear>, Obstacle> {
        let m = self.m;
        Ok(match m.opcode(op) {
            Some(Opcode::Tt(tt::Kind::Addptr)) => {
                let add = tt::Addptr(op);
                self.wrapping(add.ptr(m))?.plus(&self.wrapping(add.offset(m))?, 1)
            }
            Some(Opcode::Tt(tt::Kind::Splat | tt::Kind::Broadcast | tt::Kind::ExpandDims)) => {
                Some(self.spread(op, value)?)
            }
            Some(Opcode::Ttg(ttg::Kind::ConvertLayout)) => Some(self.wrapping(m.operands(op)[0])?),
            _ => None,
        })
    }

    /// What repeats a value, or gives it a dimension more.
    fn spread(&self, op: Op, result: Value) -> Result<Linear, Obstacle> {
        let src = self.m.operands(op)[0];
        let mut linear = self.wrapping(src)?;
        match tt::ExpandDims::cast(self.m, op) {
            Some(expand) => {
                let axis = expand.axis(self.m) as usize;
                linear.strides.insert(axis, Poly::zero());
                linear.wraps.iter_mut().for_each(|wrap| wrap.dim += usize::from(wrap.dim >= axis));
            }
            None => {
                linear.strides.resize(rank(self.m, result), Poly::zero());
                // The only element of a dimension is repeated.
                let from = self.m.shape(self.m.value_type(src)).unwrap_or(&[]);
                for (stride, _) in linear.strides.iter_mut().zip(from).filter(|(_, n)| **n == 1) {
                    *stride = Poly::zero();
                }
                if linear.wraps.iter().any(|wrap| from.get(wrap.dim) == Some(&1)) {
                    return Err(result);
                }
            }
        }
        Ok(linear)
    }

    fn number(&self, op: Op, value: Value) -> Result<Option<Linear>, Obstacle> {
        use arith::Kind as A;
        let m = self.m;
        let rank = rank(m, value);
        let whole = |v: Value| m.bits(m.value_type(v)) >= 32;
        if !whole(value) {
            return Ok(None);
        }
        let operands = m.operands(op);
        Ok(match m.opcode(op) {
            Some(Opcode::Arith(A::Constant)) => {
                m.constant_int(value).map(|n| Linear::constant(Poly::number(n), rank))
            }
            Some(Opcode::Tt(tt::Kind::MakeRange)) => {
                let offset = Poly::number(i64::from(tt::MakeRange(op).start(m)));
                Some(Linear { offset, strides: vec![Poly::number(1)], ..Linear::constant(Poly::zero(), 0) })
            }
            Some(Opcode::Tt(tt::Kind::Splat | tt::Kind::Broadcast | tt::Kind::ExpandDims)) => {
                Some(self.spread(op, value)?)
            }
            Some(Opcode::Ttg(ttg::Kind::ConvertLayout)) => Some(self.wrapping(operands[0])?),
            Some(Opcode::Arith(A::Extsi | A::IndexCast)) if whole(operands[0]) => {
                // (Of an index as many bits are kept as the program counts with.)
                Some(self.wrapping(operands[0])?)
            }
            Some(Opcode::Arith(kind @ (A::Addi | A::Subi))) => {
                let (x, y) = (self.wrapping(operands[0])?, self.wrapping(operands[1])?);
                x.plus(&y, if kind == A::Subi { -1 } else { 1 })
            }
            Some(Opcode::Arith(A::Muli)) => {
                let (x, y) = (self.wrapping(operands[0])?, self.wrapping(operands[1])?);
                match (x.is_uniform(), y.is_uniform()) {
                    (_, true) => Some(x.times(&y.offset)),
                    (true, _) => Some(y.times(&x.offset)),
                    _ => None,
                }
            }
            Some(Opcode::Arith(A::Remsi)) if rank > 0 => {
                self.of(operands[0])?.wrapped(&self.of(operands[1])?)
            }
            Some(Opcode::Arith(A::Shli)) => {
                let by = m.constant_int(operands[1]).filter(|by| (0..31).contains(by));
                let by = by.map(|by| Poly::number(1 << by));
                match by {
                    Some(by) => Some(self.wrapping(operands[0])?.times(&by)),
                    None => None,
                }
            }
            _ => None,
        })
    }

    /// What a loop carries and moves by the same in each iteration: what it begins with, and that times the number of the iteration.
    fn carried(&self, arg: Value) -> Option<Linear> {
        let m = self.m;
        let body = m.value_block(arg)?;
        let op = m.block_parent_op(body)?;
        let l = scf::For::cast(m, op)?;
        let at = m.block_args(body).iter().position(|&v| v == arg)?.checked_sub(1)?;
        let init = *l.init(m).get(at)?;
        let next = *m.operands(m.last_op(body)?).get(at)?;
        let first = self.wrapping(init).ok()?;
        self.carried.borrow_mut().push(arg);
        let moved = self.wrapping(next);
        self.carried.borrow_mut().pop();
        let moved = moved.ok()?;
        let own = self.itself(arg);
        // (A pointer is its own base then, of a number nothing is left of itself.)
        let mut step = moved.offset.plus(&own.offset, -1);
        let varies = |v: Value| {
            v == arg
                || m.value_block(v).and_then(|b| m.block_parent_op(b)).is_some_and(|p| m.is_ancestor(op, p))
        };
        if moved.base != own.base
            || !moved.is_uniform()
            || !moved.wraps.is_empty()
            || step.leaves().any(varies)
        {
            return None;
        }
        if !step.is_zero() {
            let count = m.constant_int(l.step(m)).filter(|&s| s > 0)?;
            step = step.divided(count)?;
        }
        let from = self.scalar(l.lower_bound(m));
        let passed = Poly::leaf(m.block_args(body)[0]).plus(&from, -1);
        Some(Linear { offset: first.offset.plus(&step.times(&passed), 1), ..first })
    }
}
