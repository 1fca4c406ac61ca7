//! An access of a block, from its plan.

use rustc_hash::FxHashMap;
use tilewright_ir::dialect::{arith, scf, tt};
use tilewright_ir::{Builder, InsertPoint, Module, Op, Type, Value, flow};

use super::plan::{Counted, Dim, Extent, Index, Plan};
use crate::analysis::affine::Poly;
use crate::analysis::intervals::Interval;
use crate::sums;

/// How a number of 32 bits comes from a sum of products.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Number {
    /// The program has computed it, in front of the access.
    Is(Value),
    /// It fits.
    Fits,
    /// It may be greater, and is then masked.
    Clamped,
}

/// What the numbers of a plan are, as far as the analyses say it, which see the module as it was.
#[derive(Debug, Clone, Default)]
pub(super) struct Numbers {
    pub how: FxHashMap<Poly, Number>,
    /// Of those that are no less than 0.
    pub not_negative: Vec<Poly>,
}

impl Numbers {
    /// Notes a sum of products.
    pub fn note(&mut self, poly: &Poly, computed: Option<Value>, interval: Interval) {
        let number = match computed {
            Some(value) => Number::Is(value),
            None if interval.fits() => Number::Fits,
            None => Number::Clamped,
        };
        self.how.insert(poly.clone(), number);
        if interval.low >= 0 {
            self.not_negative.push(poly.clone());
        }
    }
}

/// A block of a matrix.
struct Block {
    desc: Value,
    /// Where it begins.
    indices: Vec<Value>,
    /// How large the matrix is.
    extents: Vec<Value>,
    /// The type of its tensor.
    ty: Type,
}

/// Writes operations in front of an access.
pub(super) struct Emitter<'m> {
    b: Builder<'m>,
    numbers: Numbers,
}

impl<'m> Emitter<'m> {
    pub fn new(module: &'m mut Module, op: Op, numbers: Numbers) -> Self {
        Emitter { b: Builder::before(module, op), numbers }
    }

    /// Replaces the access of a plan.
    pub fn replace(mut self, plan: &Plan) {
        let Block { desc, indices, ty, .. } = self.block(plan);
        let op = plan.op;
        let b = &mut self.b;
        if let Some(load) = tt::Load::cast(b.module, op) {
            let (cache, evict) = (load.cache(b.module), load.evict(b.module));
            let result = b.module.value_type(load.result(b.module));
            let mut value = tt::DescriptorLoad::build(b, desc, &indices, cache, evict, ty).result(b.module);
            if plan.transposed {
                value = tt::Trans::build(b, value, vec![1, 0], result).result(b.module);
            }
            b.module.replace_op(op, &[value]);
        } else {
            self.store(plan, desc, &indices, ty);
            self.b.module.erase_op(op);
        }
    }

    /// Stores a block by its descriptor where it begins in the matrix, and as before where it doesn't.
    pub fn store_where_inside(mut self, plan: &Plan) {
        let Block { desc, indices, extents, ty } = self.block(plan);
        let mut inside = None;
        for (&index, &extent) in indices.iter().zip(&extents) {
            let b = &mut self.b;
            let below = arith::Cmpi::build(b, index, extent, arith::CmpIPredicate::Ult, Type::I1);
            let below = below.result(b.module);
            inside = Some(match inside {
                None => below,
                Some(others) => arith::Andi::build(b, others, below).result(b.module),
            });
        }
        let branch = scf::If::build(&mut self.b, inside.expect("two dimensions"), &[]);
        let m = &mut *self.b.module;
        let regions = [branch.then_region(m), branch.else_region(m)];
        let [then, otherwise] = regions.map(|region| flow::branch_block(m, region));
        let ends = [then, otherwise].map(|block| m.last_op(block).expect("a yield"));
        m.move_before(plan.op, ends[1]);
        self.b.set_point(InsertPoint::Before(ends[0]));
        self.store(plan, desc, &indices, ty);
    }

    fn store(&mut self, plan: &Plan, desc: Value, indices: &[Value], ty: Type) {
        let b = &mut self.b;
        let mut src = tt::Store(plan.op).value(b.module);
        if plan.transposed {
            src = tt::Trans::build(b, src, vec![1, 0], ty).result(b.module);
        }
        tt::DescriptorStore::build(b, desc, src, indices);
    }

    /// The descriptor of a plan's matrix, and where the block is.
    fn block(&mut self, plan: &Plan) -> Block {
        let mut offset = plan.offset.clone();
        let (mut indices, mut extents, mut strides) = (Vec::new(), Vec::new(), Vec::new());
        for batch in &plan.batches {
            indices.push(self.number(&batch.index));
            extents.push(self.b.i32(i32::MAX));
            strides.push(self.wide(&batch.pitch));
        }
        for (dim, stride) in plan.dims.iter().zip([&plan.pitch, &Poly::number(1)]) {
            let (index, moved) = self.index(dim);
            if let Some(moved) = moved {
                offset = offset.plus(&Poly::leaf(moved).times(stride), -1);
            }
            extents.push(self.extent(dim, moved));
            indices.push(index);
            strides.push(self.wide(stride));
        }
        let base = self.moved(plan.base, &offset);
        let b = &mut self.b;
        let mut shape = vec![1; plan.batches.len()];
        shape.extend(plan.dims.each_ref().map(|dim| dim.block));
        let pointee = b.module.pointee_type(b.module.value_type(plan.base)).unwrap_or(Type::I8);
        let ty = b.module.tensor_type(&shape[plan.batches.len()..], pointee, None);
        let batch = b.module.tensor_type(&shape, pointee, None);
        let desc = b.module.ty(tilewright_ir::TypeKind::TensorDesc { block: batch });
        let desc = tt::MakeTensorDescriptor::build(b, base, &extents, &strides, None, desc).result(b.module);
        Block { desc, indices, extents, ty }
    }

    /// The index of a block, and how many rows or columns earlier the matrix begins so that it is not below 0.
    fn index(&mut self, dim: &Dim) -> (Value, Option<Value>) {
        let index = self.number(&dim.index);
        if dim.index_is == Index::InPlace {
            return (index, None);
        }
        let wide = sums::of_type(&mut self.b, index, Type::I64);
        let b = &mut self.b;
        let (zero, none) = (b.i32(0), b.int(0, Type::I64));
        let place = arith::Maxsi::build(b, index, zero).result(b.module);
        let moved = arith::Subi::build(b, none, wide).result(b.module);
        (place, Some(arith::Maxsi::build(b, moved, none).result(b.module)))
    }

    /// How many rows or columns the matrix has.
    fn extent(&mut self, dim: &Dim, moved: Option<Value>) -> Value {
        let bounds = match &dim.extent {
            // Rows of whole pieces of 16 bytes, as stores want them.
            Extent::Any => return self.b.i32(i32::MAX - 15),
            Extent::Reached { least, by } => return self.reached(dim, *by, *least),
            Extent::Bounded(bounds) => bounds,
        };
        let mut extent = None;
        for bound in bounds {
            let mut number = self.number(bound);
            if let Some(moved) = moved {
                let wide = sums::of_type(&mut self.b, number, Type::I64);
                let b = &mut self.b;
                let sum = arith::Addi::build(b, wide, moved).result(b.module);
                number = self.clamped(sum);
            }
            let b = &mut self.b;
            if moved.is_some() || !self.numbers.not_negative.contains(bound) {
                let zero = b.i32(0);
                number = arith::Maxsi::build(b, number, zero).result(b.module);
            }
            extent = Some(match extent {
                None => number,
                Some(other) => arith::Minsi::build(b, other, number).result(b.module),
            });
        }
        extent.expect("a bound")
    }

    /// As many as reach to the end of the block, or of the last block to which a loop counts.
    fn reached(&mut self, dim: &Dim, by: Option<Counted>, least: u32) -> Value {
        let Some(Counted { of, times }) = by else {
            return self.b.i32(dim.block.max(least) as i32);
        };
        let m = &*self.b.module;
        let bounds = [of.lower_bound(m), of.upper_bound(m), of.step(m)];
        let b = &mut self.b;
        let [low, high, step] = bounds.map(|v| sums::of_type(b, v, Type::I64));
        let one = b.int(1, Type::I64);
        let room = arith::Subi::build(b, high, low).result(b.module);
        let room = arith::Subi::build(b, room, one).result(b.module);
        let steps = arith::Divsi::build(b, room, step).result(b.module);
        let passed = arith::Muli::build(b, steps, step).result(b.module);
        let last = arith::Addi::build(b, passed, low).result(b.module);
        let (times, block) = (b.int(times, Type::I64), b.int(i64::from(dim.block), Type::I64));
        let last = arith::Muli::build(b, last, times).result(b.module);
        let end = arith::Addi::build(b, last, block).result(b.module);
        let least = b.int(i64::from(least), Type::I64);
        let end = arith::Maxsi::build(b, end, least).result(b.module);
        self.clamped(end)
    }

    /// A sum of products in 32 bits. What does not fit is the greatest or the least number of 32 bits, and behind all that is there.
    fn number(&mut self, poly: &Poly) -> Value {
        if let Some(n) = poly.constant() {
            return self.b.int(n, Type::I32);
        }
        match self.numbers.how.get(poly) {
            Some(Number::Is(value)) => *value,
            Some(Number::Fits) => sums::build(&mut self.b, poly, Type::I32),
            _ => {
                let wide = self.wide(poly);
                self.clamped(wide)
            }
        }
    }

    /// The nearest number of 32 bits.
    fn clamped(&mut self, wide: Value) -> Value {
        let b = &mut self.b;
        let [least, most] = [i32::MIN, i32::MAX].map(|n| b.int(i64::from(n), Type::I64));
        let number = arith::Minsi::build(b, wide, most).result(b.module);
        let number = arith::Maxsi::build(b, number, least).result(b.module);
        arith::Trunci::build(b, number, Type::I32).out(b.module)
    }

    /// A sum of products in 64 bits.
    fn wide(&mut self, poly: &Poly) -> Value {
        sums::build(&mut self.b, poly, Type::I64)
    }

    /// A pointer moved by so many elements, by what changes in the innermost loops last.
    fn moved(&mut self, base: Value, offset: &Poly) -> Value {
        let mut left = offset.clone();
        let mut pointer = base;
        while !left.is_zero() {
            let m = &*self.b.module;
            let depth = left.terms().map(|(product, _)| sums::depth(m, product)).min().unwrap_or(0);
            let (now, later) = left.split(|product, _| sums::depth(m, product) == depth);
            let by = self.wide(&now);
            pointer = tt::Addptr::build(&mut self.b, pointer, by).result(self.b.module);
            left = later;
        }
        pointer
    }
}
