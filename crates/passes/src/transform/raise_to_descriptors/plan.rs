//! What an access is as one of a block of a matrix, or why it is none that the target's instructions take.

use tilewright_ir::dialect::{scf, tt};
use tilewright_ir::{Module, Op, Value};

use super::wrap;
use crate::analysis::affine::prefix::Bounds;
use crate::analysis::affine::{Affine, Linear, Obstacle, Poly, Wrap, prefix};
use crate::analysis::axis::{AxisAnalysis, pointer_of};
use crate::analysis::intervals::Intervals;
use crate::target::MatrixLimit;

/// What is known of a module in which nothing changes meanwhile.
pub(super) struct Known<'m> {
    pub m: &'m Module,
    pub affine: &'m Affine<'m>,
    pub intervals: Intervals<'m>,
    pub axis: AxisAnalysis,
    pub limit: MatrixLimit,
}

/// An access of a block of a matrix.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub op: Op,
    /// The pointer, and how many elements behind it the matrix begins.
    pub base: Value,
    pub offset: Poly,
    /// Matrices of a batch of which this is one.
    pub batches: Vec<Batch>,
    /// Elements from one row to the next.
    pub pitch: Poly,
    /// Rows and columns.
    pub dims: [Dim; 2],
    /// The tensor's first dimension is the matrix's columns.
    pub transposed: bool,
}

/// A dimension before the rows, of which a block has one index.
#[derive(Debug, Clone)]
pub(super) struct Batch {
    /// Elements from one matrix to the next.
    pub pitch: Poly,
    pub index: Poly,
}

/// Rows or columns of a matrix.
#[derive(Debug, Clone)]
pub(super) struct Dim {
    /// How many of them the block has.
    pub block: u32,
    /// The first of the block's.
    pub index: Poly,
    pub index_is: Index,
    pub extent: Extent,
}

/// What is known of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Index {
    /// It is not negative, or what is negative is masked.
    InPlace,
    /// What is negative is accessed, too: the matrix begins there, then.
    MayPrecede,
}

/// How many rows or columns there are.
#[derive(Debug, Clone)]
pub(super) enum Extent {
    /// Nothing is masked, and there may be more of them than memory has.
    Any,
    /// Nothing is masked: as many as the block needs, or all blocks of a loop, and this at least.
    Reached { least: u32, by: Option<Counted> },
    /// The least of these, and not less than 0.
    Bounded(Vec<Poly>),
}

/// An index that is so many times the number to which a loop counts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counted {
    pub of: scf::For,
    pub times: i64,
}

/// Why an access is not raised.
pub(super) type Why = String;

impl Known<'_> {
    /// The access as one of a block.
    pub fn plan(&self, op: Op) -> Result<Plan, Why> {
        let m = self.m;
        let (pointers, mask) = pointer_of(m, op).ok_or("it is none of memory")?;
        let shape = m.shape(m.value_type(pointers)).unwrap_or(&[]).to_vec();
        let &[rows, columns] = &shape[..] else { return Err("its block has not two dimensions".into()) };
        self.plain(op)?;
        let linear = self.affine.wrapping(pointers).map_err(|v| self.made_by("its pointers are", v))?;
        let base = linear.base.ok_or("its pointers begin at none")?;
        let mut bounds = match mask {
            Some(mask) => prefix::of(m, self.affine, mask).map_err(|v| self.made_by("its mask is", v))?,
            None => vec![Bounds::default(); 2],
        };
        for wrap in &linear.wraps {
            bounds[wrap.dim].below.insert(0, self.wrapped(op, wrap)?);
            bounds[wrap.dim].not_negative.insert(0, wrap.first.clone());
        }
        let transposed = self.transposed(&linear)?;
        let mut block = [rows, columns];
        let mut strides = linear.strides;
        if transposed {
            (block, strides) = ([columns, rows], vec![strides[1].clone(), strides[0].clone()]);
            bounds.swap(0, 1);
        }
        let bytes = self.bytes(pointers);
        self.pitch(&strides[0], bytes)?;
        if block[0] < 2 || block[1] * bytes < self.limit.alignment {
            return Err(format!("a block of {rows}x{columns} is too small"));
        }
        let (mut dims, mut offset) = (Vec::new(), linear.offset);
        for d in 0..2 {
            let mut dim = self.dim(block[d], std::mem::take(&mut bounds[d]))?;
            if let Extent::Reached { by, .. } = &mut dim.extent
                && let Some(counted) = self.counted(op, &offset, &strides[d], block[d])
            {
                dim.index = Poly::leaf(self.number_of(counted.of)).times(&Poly::number(counted.times));
                *by = Some(counted);
            }
            offset = offset.plus(&dim.index.times(&strides[d]), -1);
            dims.push(dim);
        }
        let [row, mut column]: [Dim; 2] = dims.try_into().map_err(|_| "it has not two dimensions")?;
        self.columns(&mut column, bytes)?;
        self.aligned(base, &offset, bytes)?;
        let batches = Vec::new();
        Ok(Plan { op, base, offset, batches, pitch: strides[0].clone(), dims: [row, column], transposed })
    }

    /// An access that says nothing but what it accesses, and where masked-off elements are zero.
    fn plain(&self, op: Op) -> Result<(), Why> {
        let m = self.m;
        let plain = match (tt::Load::cast(m, op), tt::Store::cast(m, op)) {
            (Some(load), _) => {
                if let Some(other) = load.other(m).filter(|_| load.mask(m).is_some())
                    && !is_zero(m, other)
                {
                    return Err("what its mask leaves out is not 0".into());
                }
                !load.is_fresh(m)
            }
            (_, Some(store)) => {
                store.cache(m) == tt::CacheModifier::None && store.evict(m) == tt::EvictionPolicy::Normal
            }
            _ => return Err("it is atomic".into()),
        };
        if plain { Ok(()) } else { Err("it says how memory is accessed".into()) }
    }

    fn made_by(&self, what: &str, obstacle: Obstacle) -> Why {
        let name = self.m.defining_op(obstacle).map_or("what the kernel is given", |op| self.m.op_name(op));
        format!("{what} made by `{name}`, from which no block follows")
    }

    /// The bytes of an element.
    pub fn bytes(&self, pointers: Value) -> u32 {
        let element = self.m.pointee_type(self.m.value_type(pointers));
        element.map_or(1, |ty| self.m.bits(ty).div_ceil(8))
    }

    /// Which dimension has stride 1.
    fn transposed(&self, linear: &Linear) -> Result<bool, Why> {
        let one = |d: usize| linear.strides[d].constant() == Some(1);
        match (one(0), one(1)) {
            (_, true) => Ok(false),
            (true, _) => Ok(true),
            _ => Err("neither dimension is known to have stride 1".into()),
        }
    }

    fn pitch(&self, pitch: &Poly, bytes: u32) -> Result<(), Why> {
        let (wanted, least) = (self.limit.alignment, self.limit.row_bytes);
        if pitch.is_zero() {
            return Err("all its rows are the same".into());
        }
        if !self.whole(pitch, bytes, wanted) {
            return Err(format!("its rows are not known to begin at multiples of {wanted} bytes"));
        }
        match pitch.constant() {
            Some(n) if n * i64::from(bytes) < i64::from(least) => {
                Err(format!("its rows begin less than {least} bytes behind each other"))
            }
            _ => Ok(()),
        }
    }

    /// How many indices of a dimension come before the one that is 0 again, where it does not matter what is loaded there.
    fn wrapped(&self, op: Op, wrap: &Wrap) -> Result<Poly, Why> {
        let load = tt::Load::cast(self.m, op).ok_or("it stores where indices begin again from 0")?;
        let room = wrap.end.plus(&wrap.first, -1);
        match wrap::is_free(self.m, self.affine, load.result(self.m), wrap.dim, &room) {
            true => Ok(room),
            false => {
                Err("a remainder is its index, and not only what is masked depends on those that begin again"
                    .into())
            }
        }
    }

    /// A dimension by what the mask says of its indices: `i + index < extent`.
    fn dim(&self, block: u32, bounds: Bounds) -> Result<Dim, Why> {
        let Some(first) = bounds.below.first() else {
            if bounds.not_negative.iter().any(|first| self.intervals.of(first).low < 0) {
                return Err("its mask has a first element, and no end".into());
            }
            let index_is = Index::InPlace;
            let extent = Extent::Reached { least: 1, by: None };
            return Ok(Dim { block, index: Poly::zero(), index_is, extent });
        };
        // What the mask itself calls the index, or what is taken away from the end.
        let index = match bounds.not_negative.first() {
            Some(index) => index.clone(),
            None => Poly::zero().plus(&first.split(|_, coefficient| coefficient < 0).0, -1),
        };
        let mut index_is = Index::MayPrecede;
        if self.intervals.of(&index).low >= 0 || bounds.not_negative.contains(&index) {
            index_is = Index::InPlace;
        }
        if bounds.not_negative.iter().any(|first| *first != index && self.intervals.of(first).low < 0) {
            return Err("its mask has two first elements".into());
        }
        let extents = bounds.below.iter().map(|room| room.plus(&index, 1)).collect();
        Ok(Dim { block, index, index_is, extent: Extent::Bounded(extents) })
    }

    /// The part of an offset that is an index by the innermost loop around which it changes, if it stays within 32 bits, with the block.
    fn counted(&self, op: Op, offset: &Poly, stride: &Poly, block: u32) -> Option<Counted> {
        let m = self.m;
        let around = std::iter::successors(m.parent_op(op), |&op| m.parent_op(op));
        for of in around.filter_map(|around| scf::For::cast(m, around)) {
            let number = Poly::leaf(self.number_of(of));
            let index =
                offset.multiples(stride, |q| q.how_many(&number).is_some() && q.leaves().count() == 1);
            let Some(times) = index.how_many(&number) else { continue };
            let end = index.plus(&Poly::number(i64::from(block)), 1);
            // A loop counts on without overflow, too.
            let step = m.constant_int(of.step(m)).filter(|&step| step > 0)?;
            let fits = self.intervals.of(&end).fits() || times == 1 && i64::from(block) <= step;
            return (fits && self.intervals.of(&index).low >= 0).then_some(Counted { of, times });
        }
        None
    }

    /// What a loop counts with.
    fn number_of(&self, of: scf::For) -> Value {
        self.m.block_args(self.m.region_block(of.body(self.m)))[0]
    }

    /// What the hardware wants of columns.
    fn columns(&self, column: &mut Dim, bytes: u32) -> Result<(), Why> {
        let (word, row) = (self.limit.word, self.limit.row_bytes);
        let whole = |poly: &Poly, of: u32| self.whole(poly, bytes, of);
        if !whole(&column.index, word) {
            return Err(format!("its first column is not known to begin at a multiple of {word} bytes"));
        }
        // Where it precedes the matrix, that begins there.
        if column.index_is == Index::MayPrecede && !whole(&column.index, self.limit.alignment) {
            return Err("its first column may be a negative one".into());
        }
        match &mut column.extent {
            Extent::Any => {}
            Extent::Reached { least, .. } => *least = (row / bytes).max(1),
            Extent::Bounded(extents) => {
                if !extents.iter().all(|extent| whole(extent, word)) {
                    return Err(format!("its rows are not known to have multiples of {word} bytes"));
                }
                let short = |n: i64| n * i64::from(bytes) < i64::from(row);
                if extents.iter().any(|extent| extent.constant().is_some_and(short)) {
                    return Err(format!("its rows have less than {row} bytes"));
                }
            }
        }
        Ok(())
    }

    fn aligned(&self, base: Value, offset: &Poly, bytes: u32) -> Result<(), Why> {
        let wanted = self.limit.alignment;
        let of_base = 1u64 << self.axis.get(self.m, base).dims[0].divisibility;
        if of_base.is_multiple_of(u64::from(wanted)) && self.whole(offset, bytes, wanted) {
            return Ok(());
        }
        Err(format!("it is not known to begin at a multiple of {wanted} bytes"))
    }

    /// Whether so many elements are a multiple of `of` bytes.
    pub fn whole(&self, elements: &Poly, bytes: u32, of: u32) -> bool {
        (self.divisor(elements) * u64::from(bytes)).is_multiple_of(u64::from(of))
    }

    /// A power of two by which a sum of products can be divided.
    fn divisor(&self, poly: &Poly) -> u64 {
        let of = |product: &[Value], coefficient: i64| {
            let factors = product.iter().map(|&v| u32::from(self.axis.get(self.m, v).dims[0].divisibility));
            coefficient.trailing_zeros() + factors.sum::<u32>()
        };
        1 << poly.terms().map(|(product, c)| of(product, c)).min().unwrap_or(62).min(40)
    }
}

/// Whether all elements of a constant are zero, and not its negative.
fn is_zero(m: &Module, value: Value) -> bool {
    use tilewright_ir::AttrKind;
    let Some(mut attr) = m.constant_value(value) else { return false };
    if let AttrKind::Splat(element, _) = *m.attr_kind(attr) {
        attr = element;
    }
    match m.attr_kind(attr) {
        AttrKind::Int(n, _) => *n == 0,
        AttrKind::Float(bits, _) => bits.0 == 0,
        AttrKind::Bool(truth) => !truth,
        _ => false,
    }
}
