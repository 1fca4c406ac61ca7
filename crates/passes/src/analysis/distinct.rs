//! Whether the elements that an operation touches are all at different places: those of one tensor, and those of the iterations of loops.
//!
//! A place is one number for a tensor of pointers, and one of each dimension for a block of a descriptor. Each is a sum
//! ([`affine`](crate::analysis::affine)) of indices and loop counters, each times a stride. Strides that are multiples of one product are
//! compared like the digits of a number: none is smaller than what all smaller ones reach together.
//!
//! ```text
//! %x + %i * 256 + [0, 256)           different
//! %x + %i * 33 + [0, 256)            element 33 is element 0 of the next iteration
//! %x + [0, 64) * %s + [0, 32)        different: strides that are known at run time only step over what is beside them
//! %x + [0, 64) * %s + [0, 64) * %s   element (0, 1) is element (1, 0)
//! %x + %i * 33 + [0, 64) < 33        different: a mask says how far an index goes
//! ```
//!
//! The quotient and the remainder of one number by one divisor are two such digits, and both together are that number:
//!
//! ```text
//! %x + (%o / %n) * %s + (%o % %n) * %t   different, if those of %o are
//! ```
//!
//! What is no such sum (a quotient alone, an index that was loaded) may be the same place twice.

use tilewright_ir::dialect::{arith, scf, tt, ttg};
use tilewright_ir::{Module, Op, Opcode, Value};

use crate::analysis::affine::{Affine, Poly, Product};
use crate::analysis::axis::rank;

/// Asks of a module, which does not change meanwhile.
#[derive(Debug)]
pub struct Distinct<'m> {
    m: &'m Module,
    affine: Affine<'m>,
}

/// The pointers that an operation touches.
#[derive(Debug, Clone, Copy)]
pub struct Touched {
    /// A tensor of pointers, or one.
    pub pointers: Value,
    /// Which of them; all where there is none.
    pub mask: Option<Value>,
}

/// What a place depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Digit {
    /// The index along a dimension.
    Dim(usize),
    /// The iteration of a loop.
    Turn(Op),
    /// The quotient of a [`Part`], by its number.
    Quotient(usize),
    /// The remainder of a [`Part`], by its number.
    Remainder(usize),
}

/// One number of a place: how far it moves with each digit, which takes so many values, if that is known.
type Sum = Vec<(Digit, Poly, Option<i64>)>;

/// A number, `from` a scalar and by digits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Number {
    /// The scalar pointer; none for a number.
    base: Option<Value>,
    from: Poly,
    by: Vec<(Digit, Poly)>,
}

impl Number {
    /// The sum of this and so many times another; of two pointers there is none.
    fn plus(mut self, other: &Number, times: &Poly) -> Option<Number> {
        if self.base.is_some() && other.base.is_some() {
            return None;
        }
        self.base = self.base.or(other.base);
        self.from = self.from.plus(&other.from.times(times), 1);
        for (digit, stride) in &other.by {
            self.add(*digit, &stride.times(times));
        }
        Some(self)
    }

    fn add(&mut self, digit: Digit, stride: &Poly) {
        match self.by.iter_mut().find(|(d, _)| *d == digit) {
            Some((_, own)) => *own = own.plus(stride, 1),
            None => self.by.push((digit, stride.clone())),
        }
    }
}

/// A number that is taken apart: a quotient and a remainder.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Part {
    of: Number,
    divisor: Poly,
}

/// What is found where a place is taken apart, and how many operations were looked at.
#[derive(Debug, Default)]
struct Parts {
    found: Vec<Part>,
    steps: u32,
}

impl Parts {
    /// More operations than this are no sum.
    const MOST: u32 = 200;

    /// The number of a part, which may be there.
    fn add(&mut self, part: Part) -> usize {
        self.found.iter().position(|p| *p == part).unwrap_or_else(|| {
            self.found.push(part);
            self.found.len() - 1
        })
    }
}

impl<'m> Distinct<'m> {
    /// Of this module.
    pub fn new(m: &'m Module) -> Self {
        Distinct { m, affine: Affine::new(m) }
    }

    /// Whether what two operations touch of a tensor of pointers, each under its own mask, are different places; with a loop also those of
    /// its iterations, and of loops in it, if they are not the same in all.
    pub fn pointers(&self, pointers: Value, masks: [Option<Value>; 2], of: Option<Op>) -> bool {
        let m = self.m;
        let dims: Vec<Option<usize>> = (0..rank(m, pointers)).map(Some).collect();
        let mut parts = Parts::default();
        let Some(place) = self.split(pointers, &dims, &mut parts) else { return false };
        let mut counts: Vec<i64> = vec![0; dims.len()];
        for mask in masks {
            let bounds = self.counts(pointers, mask);
            counts.iter_mut().zip(bounds).for_each(|(count, bound)| *count = (*count).max(bound));
        }
        place.base.is_none_or(|base| self.stays(base, of))
            && self.differ(vec![place], &parts.found, &counts, of)
    }

    /// The same of a block, which begins at these indices of a descriptor.
    pub fn block(&self, desc: Value, at: &[Value], shape: &[u32], of: Option<Op>) -> bool {
        // (Dimensions that the block does not have come first.)
        let extents = std::iter::repeat_n(1, at.len().saturating_sub(shape.len()));
        let extents: Vec<i64> = extents.chain(shape.iter().map(|&n| i64::from(n))).collect();
        let numbers = at.iter().enumerate().map(|(dim, &index)| Number {
            base: None,
            from: self.affine.scalar(index),
            by: vec![(Digit::Dim(dim), Poly::number(1))],
        });
        self.stays(desc, of) && self.differ(numbers.collect(), &[], &extents, of)
    }

    /// Whether two operations touch nothing in common, which are at most so far apart that `of` has turned meanwhile: their places
    /// begin a constant apart, and not by what strides that are constants make together.
    ///
    /// ```text
    /// %x + [0, 8) * 64 + [0, 32)     %x + [0, 8) * 64 + [0, 32) + 32
    /// ```
    pub fn apart(&self, first: Touched, second: Touched, of: Option<Op>) -> bool {
        let (Ok(a), Ok(b)) = (self.affine.of(first.pointers), self.affine.of(second.pointers)) else {
            return false;
        };
        let Some(between) = b.offset.plus(&a.offset, -1).constant() else { return false };
        if a.base != b.base || !a.base.is_none_or(|base| self.stays(base, of)) {
            return false;
        }
        // Each stride with how often it may be added and taken away.
        let mut reach: Vec<Steps> = Vec::new();
        let mut add = |stride: &Poly, up: Option<i64>, down: Option<i64>| {
            let Some(stride) = stride.constant().map(i128::from) else { return false };
            let (up, down) = if stride < 0 { (down, up) } else { (up, down) };
            let (stride, up, down) = (stride.abs(), up.map(i128::from), down.map(i128::from));
            match reach.iter_mut().find(|part| part.0 == stride) {
                Some(own) => {
                    own.1 = own.1.zip(up).map(|(a, b)| a + b);
                    own.2 = own.2.zip(down).map(|(a, b)| a + b);
                }
                None => reach.push((stride, up, down)),
            }
            true
        };
        for (touched, place, ups) in [(first, &a, true), (second, &b, false)] {
            for (stride, count) in place.strides.iter().zip(self.counts(touched.pointers, touched.mask)) {
                let most = Some((count - 1).max(0));
                let (up, down) = if ups { (most, Some(0)) } else { (Some(0), most) };
                if count > 1 && !stride.is_zero() && !add(stride, up, down) {
                    return false;
                }
            }
        }
        let Some(turns) = self.turning(&a.offset, of) else { return false };
        if !turns.iter().all(|(_, stride, count)| {
            let most = count.map(|n| (n - 1).max(0));
            add(stride, most, most)
        }) {
            return false;
        }
        reach.sort_by_key(|&(stride, ..)| std::cmp::Reverse(stride));
        !may_sum(i128::from(between), &reach)
    }

    /// How many of the first indices along each dimension a mask lets through, of pointers.
    fn counts(&self, pointers: Value, mask: Option<Value>) -> Vec<i64> {
        let m = self.m;
        let shape = m.shape(m.value_type(pointers)).unwrap_or(&[]);
        let bounds = mask.map(|mask| self.bounds(mask)).unwrap_or_default();
        let bound = |dim: usize| bounds.get(dim).copied().flatten().unwrap_or(i64::MAX);
        shape.iter().enumerate().map(|(dim, &n)| i64::from(n).min(bound(dim))).collect()
    }

    /// The same of a mask, for each dimension of which it says so.
    fn bounds(&self, mask: Value) -> Vec<Option<i64>> {
        let m = self.m;
        let none = vec![None; rank(m, mask)];
        let Some(op) = m.defining_op(mask) else { return none };
        let operands = m.operands(op);
        match m.opcode(op) {
            Some(Opcode::Arith(arith::Kind::Andi)) => {
                let both = self.bounds(operands[0]).into_iter().zip(self.bounds(operands[1]));
                both.map(|(a, b)| a.into_iter().chain(b).min()).collect()
            }
            Some(Opcode::Tt(tt::Kind::ExpandDims)) => {
                let mut bounds = self.bounds(operands[0]);
                bounds.insert(tt::ExpandDims(op).axis(m) as usize, None);
                bounds
            }
            Some(Opcode::Tt(tt::Kind::Broadcast)) => {
                let from = m.shape(m.value_type(operands[0])).unwrap_or(&[]);
                let bounds = self.bounds(operands[0]).into_iter().zip(from);
                bounds.map(|(bound, &n)| bound.filter(|_| n > 1)).collect()
            }
            Some(Opcode::Ttg(ttg::Kind::ConvertLayout)) => self.bounds(operands[0]),
            Some(Opcode::Arith(arith::Kind::Cmpi)) => self.bounded(arith::Cmpi(op)).unwrap_or(none),
            _ => none,
        }
    }

    /// What a comparison says: that an index times a stride is less than a constant.
    fn bounded(&self, compare: arith::Cmpi) -> Option<Vec<Option<i64>>> {
        use arith::CmpIPredicate as P;
        let m = self.m;
        let (small, large, or_equal) = match compare.predicate(m) {
            P::Slt => (compare.lhs(m), compare.rhs(m), 0),
            P::Sle => (compare.lhs(m), compare.rhs(m), 1),
            P::Sgt => (compare.rhs(m), compare.lhs(m), 0),
            P::Sge => (compare.rhs(m), compare.lhs(m), 1),
            _ => return None,
        };
        let (small, large) = (self.affine.of(small).ok()?, self.affine.of(large).ok()?);
        if small.base.is_some() || large.base.is_some() {
            return None;
        }
        let room = large.offset.plus(&small.offset, -1).constant()?.checked_add(or_equal)?;
        let mut bounds = vec![None; small.strides.len()];
        let strides = small.strides.iter().zip(&large.strides).map(|(a, b)| a.plus(b, -1)).enumerate();
        let moving: Vec<(usize, Poly)> = strides.filter(|(_, stride)| !stride.is_zero()).collect();
        let [(dim, stride)] = &moving[..] else { return None };
        let stride = stride.constant().filter(|&s| s > 0)?;
        bounds[*dim] = Some(room.max(0).checked_add(stride - 1)? / stride);
        Some(bounds)
    }

    /// A tensor as a sum of its indices (those of its dimensions that are dimensions of what is asked for) and of digits of numbers.
    fn split(&self, value: Value, dims: &[Option<usize>], parts: &mut Parts) -> Option<Number> {
        let m = self.m;
        parts.steps += 1;
        if parts.steps > Parts::MOST {
            return None;
        }
        if let Ok(linear) = self.affine.of(value) {
            let mut number = Number { base: linear.base, from: linear.offset, by: Vec::new() };
            for (stride, &dim) in linear.strides.iter().zip(dims) {
                if let Some(dim) = dim.filter(|_| !stride.is_zero()) {
                    number.add(Digit::Dim(dim), stride);
                }
            }
            return Some(number);
        }
        let op = m.defining_op(value)?;
        let operands = m.operands(op);
        let uniform = |v: Value| {
            self.affine.of(v).ok().filter(|l| l.base.is_none() && l.is_uniform()).map(|l| l.offset)
        };
        match m.opcode(op)? {
            Opcode::Tt(tt::Kind::Addptr) | Opcode::Arith(arith::Kind::Addi | arith::Kind::Subi) => {
                let times = if arith::Subi::cast(m, op).is_some() { -1 } else { 1 };
                let number = self.split(operands[0], dims, parts)?;
                number.plus(&self.split(operands[1], dims, parts)?, &Poly::number(times))
            }
            Opcode::Arith(arith::Kind::Muli) => {
                let (of, times) = match (uniform(operands[0]), uniform(operands[1])) {
                    (_, Some(times)) => (operands[0], times),
                    (Some(times), _) => (operands[1], times),
                    _ => return None,
                };
                Number::default().plus(&self.split(of, dims, parts)?, &times)
            }
            Opcode::Ttg(ttg::Kind::ConvertLayout) => self.split(operands[0], dims, parts),
            Opcode::Arith(arith::Kind::Extsi) if m.bits(m.value_type(operands[0])) >= 32 => {
                self.split(operands[0], dims, parts)
            }
            Opcode::Tt(tt::Kind::ExpandDims) => {
                let mut dims = dims.to_vec();
                dims.remove(tt::ExpandDims(op).axis(m) as usize);
                self.split(operands[0], &dims, parts)
            }
            Opcode::Tt(tt::Kind::Broadcast) => {
                let from = m.shape(m.value_type(operands[0]))?;
                // (The only element of a dimension is repeated.)
                let dims: Vec<_> = dims.iter().zip(from).map(|(dim, &n)| dim.filter(|_| n > 1)).collect();
                self.split(operands[0], &dims, parts)
            }
            Opcode::Arith(kind @ (arith::Kind::Divsi | arith::Kind::Remsi)) => {
                let divisor = uniform(operands[1])?;
                let of = self.split(operands[0], dims, parts)?;
                let at = parts.add(Part { of, divisor });
                let digit =
                    if kind == arith::Kind::Divsi { Digit::Quotient(at) } else { Digit::Remainder(at) };
                Some(Number { by: vec![(digit, Poly::number(1))], ..Number::default() })
            }
            _ => None,
        }
    }

    /// Whether a value is the same in all iterations.
    fn stays(&self, value: Value, of: Option<Op>) -> bool {
        self.counters(&Poly::leaf(value), of).is_some_and(|found| found.is_empty())
    }

    /// Whether a sum is.
    fn all_stay(&self, sum: &Poly, of: Option<Op>) -> bool {
        sum.leaves().all(|leaf| self.stays(leaf, of))
    }

    /// Whether numbers, each of which begins somewhere, differ for any two values of the indices, of which there are so many, and of the
    /// counters of loops.
    fn differ(&self, numbers: Vec<Number>, parts: &[Part], counts: &[i64], of: Option<Op>) -> bool {
        if !parts.iter().all(|part| self.all_stay(&part.divisor, of)) {
            return false;
        }
        let sum = |number: &Number| self.sum(number, parts, counts, of);
        let Some(mut left) = numbers.iter().map(sum).collect::<Option<Vec<Sum>>>() else { return false };
        let mut told: Vec<Digit> = Vec::new();
        let mut whole = vec![false; parts.len()];
        // What one number tells apart the others need not.
        while let Some(at) = left.iter().position(|sum| tells_apart(sum, &told)) {
            told.extend(left.swap_remove(at).iter().map(|(digit, ..)| digit));
            for (i, part) in parts.iter().enumerate().filter(|&(i, _)| !whole[i]).collect::<Vec<_>>() {
                if told.contains(&Digit::Quotient(i)) && told.contains(&Digit::Remainder(i)) {
                    whole[i] = true;
                    let Some(sum) = sum(&part.of) else { return false };
                    left.push(sum);
                }
            }
        }
        let all = counts.iter().enumerate().all(|(dim, &n)| n <= 1 || told.contains(&Digit::Dim(dim)));
        left.is_empty() && whole.iter().all(|whole| *whole) && all
    }

    /// What a number moves by; none where that is not known.
    fn sum(&self, number: &Number, parts: &[Part], counts: &[i64], of: Option<Op>) -> Option<Sum> {
        let mut sum = self.turning(&number.from, of)?;
        for (digit, stride) in &number.by {
            let count = match *digit {
                Digit::Dim(dim) => counts.get(dim).copied(),
                Digit::Remainder(i) => self.remainders(&parts[i]),
                Digit::Quotient(_) | Digit::Turn(_) => None,
            };
            sum.push((*digit, stride.clone(), count));
        }
        sum.iter().all(|(_, stride, _)| self.all_stay(stride, of)).then_some(sum)
    }

    /// How many remainders there may be: those of numbers below 0 are below it, too.
    fn remainders(&self, part: &Part) -> Option<i64> {
        let n = part.divisor.constant()?.checked_abs()?;
        let strides = part.of.by.iter().map(|(digit, stride)| {
            matches!(digit, Digit::Dim(_)) && stride.constant().is_some_and(|s| s >= 0)
        });
        let natural = self.is_natural(&part.of.from) && strides.into_iter().all(|natural| natural);
        if natural { Some(n) } else { n.checked_mul(2)?.checked_sub(1) }
    }

    /// Whether a sum is of numbers that are never below 0: those of programs, and counters that begin with one.
    fn is_natural(&self, sum: &Poly) -> bool {
        let m = self.m;
        let natural = |leaf: Value| match m.defining_op(leaf).and_then(|op| m.opcode(op)) {
            Some(Opcode::Tt(tt::Kind::GetProgramId | tt::Kind::GetNumPrograms)) => true,
            Some(_) => false,
            None => {
                let within = m.value_block(leaf).and_then(|block| Some((block, m.block_parent_op(block)?)));
                let of = within.filter(|(block, _)| m.block_args(*block).first() == Some(&leaf));
                of.and_then(|(_, op)| scf::For::cast(m, op))
                    .is_some_and(|l| self.is_natural(&self.affine.scalar(l.lower_bound(m))))
            }
        };
        sum.terms().all(|(product, factor)| factor >= 0 && product.iter().all(|&leaf| natural(leaf)))
    }

    /// What a sum moves by with the iterations of `of` and of loops in it; none where it depends on them otherwise.
    fn turning(&self, from: &Poly, of: Option<Op>) -> Option<Sum> {
        let m = self.m;
        let mut sum: Sum = Vec::new();
        for l in self.counters(from, of)? {
            let counter = m.block_args(m.region_block(l.body(m)))[0];
            let times = from.multiples(&Poly::leaf(counter), |_| true);
            let stride = times.times(&self.affine.scalar(l.step(m)));
            let steady = self.all_stay(&self.affine.scalar(l.lower_bound(m)), of);
            if !steady || !self.all_stay(&stride, of) {
                return None;
            }
            sum.push((Digit::Turn(l.0), stride, self.turns(l)));
        }
        Some(sum)
    }

    /// The loops, `of` or in it, whose counters a number has; none where it depends on their iterations otherwise.
    fn counters(&self, number: &Poly, of: Option<Op>) -> Option<Vec<scf::For>> {
        let m = self.m;
        let mut found = Vec::new();
        let Some(of) = of else { return Some(found) };
        for leaf in number.leaves() {
            let Some(block) = m.value_block(leaf) else { continue };
            let Some(within) = m.block_parent_op(block).filter(|&op| m.is_ancestor(of, op)) else { continue };
            let l = scf::For::cast(m, within).filter(|_| m.block_args(block).first() == Some(&leaf))?;
            if !found.contains(&l) {
                found.push(l);
            }
        }
        Some(found)
    }

    /// How often a loop runs, where that is known.
    fn turns(&self, l: scf::For) -> Option<i64> {
        let [low, high, step] = [l.lower_bound(self.m), l.upper_bound(self.m), l.step(self.m)];
        let step = self.m.constant_int(step).filter(|&s| s > 0)?;
        let reach = self.affine.scalar(high).plus(&self.affine.scalar(low), -1).constant()?;
        Some(reach.max(0).saturating_add(step - 1) / step)
    }
}

/// Whether a sum is another one for any two values of its digits, but for those that others tell apart.
fn tells_apart(sum: &[(Digit, Poly, Option<i64>)], told: &[Digit]) -> bool {
    let mut strides: Vec<(Product, i64, Option<i64>)> = Vec::new();
    let open = sum.iter().filter(|(digit, _, count)| !told.contains(digit) && count.is_none_or(|n| n > 1));
    for (_, stride, count) in open {
        // (Of several products the last one stands for all.)
        let Some((product, factor)) = stride.terms().last() else { return false };
        strides.push((product.clone(), factor.saturating_abs(), *count));
    }
    strides.sort();
    strides.chunk_by(|a, b| a.0 == b.0).all(|alike| {
        let mut reach = Some(0i64);
        alike.iter().all(|&(_, stride, count)| {
            let steps_over = reach.is_some_and(|reach| stride > reach);
            let own = count.map(|n| stride.saturating_mul((n - 1).max(0)));
            reach = reach.zip(own).map(|(reach, own)| reach.saturating_add(own));
            steps_over
        })
    })
}

/// A stride, and how often it may be added and taken away, if that is known.
type Steps = (i128, Option<i128>, Option<i128>);

/// Whether a number may be a sum of strides, the largest first.
fn may_sum(number: i128, strides: &[Steps]) -> bool {
    /// More multiples of one stride than this are not looked at.
    const MOST: i128 = 16;
    let Some((&(stride, up, down), rest)) = strides.split_first() else { return number == 0 };
    let total = |of: fn(&Steps) -> Option<i128>| {
        rest.iter().map(|part| of(part).map(|times| times * part.0)).sum::<Option<i128>>()
    };
    let (Some(above), Some(below)) = (total(|part| part.1), total(|part| part.2)) else { return true };
    // What is left is from -below to above.
    let least = -((above - number).div_euclid(stride));
    let most = (number + below).div_euclid(stride);
    let least = down.map_or(least, |down| least.max(-down));
    let most = up.map_or(most, |up| most.min(up));
    most - least >= MOST || (least..=most).any(|times| may_sum(number - times * stride, rest))
}
