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
//! ```
//!
//! What is no such sum (a quotient, a remainder, an index that was loaded) may be the same place twice.

use tilewright_ir::dialect::scf;
use tilewright_ir::{Module, Op, Value};

use crate::analysis::affine::{Affine, Poly, Product};

/// Asks of a module, which does not change meanwhile.
#[derive(Debug)]
pub struct Distinct<'m> {
    m: &'m Module,
    affine: Affine<'m>,
}

/// What a place depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Digit {
    /// The index along a dimension.
    Dim(usize),
    /// The iteration of a loop.
    Turn(Op),
}

/// One number of a place: how far it moves with each digit, which takes so many values, if that is known.
type Sum = Vec<(Digit, Poly, Option<i64>)>;

impl<'m> Distinct<'m> {
    /// Of this module.
    pub fn new(m: &'m Module) -> Self {
        Distinct { m, affine: Affine::new(m) }
    }

    /// Whether a tensor of pointers are pointers to different places; with a loop also those of its iterations, and of loops in it, if they
    /// are not the same in all.
    pub fn pointers(&self, pointers: Value, of: Option<Op>) -> bool {
        let shape = self.m.shape(self.m.value_type(pointers)).unwrap_or(&[]);
        let Ok(place) = self.affine.of(pointers) else { return false };
        let mut sum: Sum = Vec::new();
        for (dim, (stride, &n)) in place.strides.into_iter().zip(shape).enumerate() {
            sum.push((Digit::Dim(dim), stride, Some(i64::from(n))));
        }
        place.base.is_none_or(|base| self.stays(base, of)) && self.differ(vec![(place.offset, sum)], of)
    }

    /// The same of a block, which begins at these indices of a descriptor.
    pub fn block(&self, desc: Value, at: &[Value], shape: &[u32], of: Option<Op>) -> bool {
        // (Dimensions that the block does not have come first.)
        let extents = std::iter::repeat_n(1, at.len().saturating_sub(shape.len()));
        let extents = extents.chain(shape.iter().map(|&n| i64::from(n)));
        let numbers = at.iter().zip(extents).enumerate().map(|(dim, (&index, n))| {
            (self.affine.scalar(index), vec![(Digit::Dim(dim), Poly::number(1), Some(n))])
        });
        self.stays(desc, of) && self.differ(numbers.collect(), of)
    }

    /// Whether a value is the same in all iterations.
    fn stays(&self, value: Value, of: Option<Op>) -> bool {
        self.counters(&Poly::leaf(value), of).is_some_and(|found| found.is_empty())
    }

    /// Whether numbers, each of which begins somewhere, differ for any two values of the digits.
    fn differ(&self, numbers: Vec<(Poly, Sum)>, of: Option<Op>) -> bool {
        let m = self.m;
        let stays = |number: &Poly| number.leaves().all(|leaf| self.stays(leaf, of));
        let mut left = Vec::new();
        for (from, mut sum) in numbers {
            let Some(loops) = self.counters(&from, of) else { return false };
            for l in loops {
                let counter = m.block_args(m.region_block(l.body(m)))[0];
                let times = from.multiples(&Poly::leaf(counter), |_| true);
                if !stays(&self.affine.scalar(l.lower_bound(m))) {
                    return false;
                }
                sum.push((Digit::Turn(l.0), times.times(&self.affine.scalar(l.step(m))), self.turns(l)));
            }
            if !sum.iter().all(|(_, stride, _)| stays(stride)) {
                return false;
            }
            left.push(sum);
        }
        // What one number tells apart the others need not.
        while let Some(at) = left.iter().position(tells_apart) {
            let told = left.swap_remove(at);
            for sum in &mut left {
                sum.retain(|(digit, ..)| told.iter().all(|(d, ..)| d != digit));
            }
        }
        left.is_empty()
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

/// Whether a sum is another one for any two values of its digits.
fn tells_apart(sum: &Sum) -> bool {
    let mut strides: Vec<(Product, i64, Option<i64>)> = Vec::new();
    for (_, stride, count) in sum.iter().filter(|(.., count)| *count != Some(1)) {
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
