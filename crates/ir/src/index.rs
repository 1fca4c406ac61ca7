//! Which elements of an operation's operands go with which of its results.
//!
//! Each declaration states an [`Index`]. For one operation it becomes a [`Relation`]: **axes**, and for every tensor (or
//! buffer, or a descriptor's block) which axis each of its dimensions runs along. Whatever depends on how dimensions go
//! together asks the relation and not the opcode: shapes and encodings are verified by it, encodings cross operations by
//! it, tiles are split over CTAs by it, and data that only moves is moved by it.
//!
//! ```text
//! tt.dot          a[m, k]  b[k, n]  c[m, n] -> d[m, n]       k: Whole
//! tt.reduce       src[i, k] -> result[i]                     k: Combined
//! tt.broadcast    src[i, ·] -> result[i, j]                  · : extent 1, of no axis
//! tt.join         lhs[i]  rhs[i] -> result[i, p]             p: Member
//! tt.reshape      src[f / 8 % 4, f % 8] -> result[f]         4x8 to 32: two parts of one axis
//! ```

use smallvec::SmallVec;

use crate::attrs::AttrKind;
use crate::entity::{Op, Type, Value};
use crate::module::Module;
use crate::opdef::OpDef;
use crate::text::print_type;
use crate::types::{Shape, TypeKind};

/// How the dimensions of an operation's tensors go together, as its declaration states it. Names in parentheses are
/// attributes and operand groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Index {
    /// There are no tensors, or their dimensions have nothing to do with each other.
    Unrelated,
    /// Each element of the result is computed from the elements at the same index. Scalars go with each.
    Elementwise,
    /// Element goes with element, but something else than the elements has a part in it: memory, other threads.
    Aligned,
    /// The same elements, held by other threads.
    Relayout,
    /// Elements follow from their index alone, or from a scalar.
    Generated,
    /// Any element may go with any other.
    Whole,
    /// Dimensions of extent 1 are repeated.
    Broadcast,
    /// A dimension of extent 1 is inserted at the axis.
    ExpandDims(&'static str),
    /// Result dimension i is source dimension `order[i]`.
    Permute(&'static str),
    /// Row-major order is kept.
    Reshape,
    /// The operands along a new innermost dimension.
    Join,
    /// The results are the elements of an innermost dimension.
    Split,
    /// One operand after the other, in no particular order.
    Concat,
    /// Elements along the axis are combined into one.
    Reduce(&'static str),
    /// Elements along the axis are combined with those before them.
    Scan(&'static str),
    /// `a[…, m, k]`, `b[…, k, n]`, `c[…, m, n]` give `[…, m, n]`.
    Contraction,
    /// The same, where an element of `a` (`b`) whose format, the attribute of the first (second) name, is `e2m1` is two along k, or where the flag of the
    /// third (fourth) name is false along m (n), and each of `a_scale[…, m, k]` and `b_scale[…, n, k]`, if they are there, goes with 32 along k, with 16 if it is a float.
    ScaledContraction([&'static str; 2], [&'static str; 2]),
    /// Indices say which element along the axis of the source it is.
    Gather(&'static str),
    /// Elements of the source (and its mask) are counted in bins.
    Count,
    /// The block of a descriptor and a tensor or buffer, which may lack leading dimensions of extent 1 and, if it is a
    /// buffer, any others: `Block(descriptor, tile)`.
    Block(&'static str, &'static str),
    /// Rows of a descriptor's one-row blocks: `Rows(descriptor, rows, tile)`.
    Rows(&'static str, &'static str, &'static str),
    /// One of what the outermost dimension of a buffer numbers.
    Slot,
    /// What lies at the offsets, with the result's shape.
    Part(&'static str),
    /// A tile of the operand, by its number in row-major order.
    TileAt(&'static str),
    /// A tile of the first operand, which scalars number along each dimension.
    Tile(&'static str),
    /// Element by element, but for this group, of which indices name elements along each dimension.
    Element(&'static str),
}

/// What is done along an [`Axis`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Each index goes for itself.
    Parallel,
    /// Whole lines are needed.
    Whole,
    /// All elements are combined into one; so may be what parts of them are combined into.
    Combined,
    /// The index says which operand it is (of a join), or which result (of a split).
    Member,
}

/// One of the directions in which an operation goes through its elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Axis {
    /// How many indices it has.
    pub extent: u32,
    /// What is done along it.
    pub role: Role,
}

/// What a dimension shows of an axis: at index `i` of the axis its own index is `offset + i / stride % extent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The axis' number.
    pub axis: usize,
    /// How many indices of the axis one step is.
    pub stride: u32,
    /// Where it begins.
    pub offset: u32,
}

/// What the dimensions of a value show; `None` for one of extent 1 that no axis runs along.
pub type Dims = SmallVec<[Option<Part>; 4]>;

/// A tensor, buffer or descriptor's block with the axes of its dimensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// The extents.
    pub shape: Shape,
    /// What each dimension shows.
    pub dims: Dims,
}

/// The [`Index`] of one operation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Relation {
    /// The axes.
    pub axes: Vec<Axis>,
    /// For each operand; `None` for what has no dimensions, or none that go with others'.
    pub operands: Vec<Option<Site>>,
    /// For each result.
    pub results: Vec<Option<Site>>,
}

/// How the dimensions of one site become those of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Crossing {
    /// They are the same, but that some of extent 1 are repeated.
    Same,
    /// This one is left out: it has extent 1, or its elements are combined.
    Drop(usize),
    /// One of extent 1 (or whose elements were combined) comes in here.
    Insert(usize),
    /// Dimension i is the other's `order[i]`.
    Permute(SmallVec<[usize; 4]>),
    /// The innermost is left out, whose elements are others' results.
    DropMember,
    /// An innermost one comes in, whose elements are others' operands.
    AppendMember,
    /// Each element has its place in the other, which [`Relation::carry`] tells.
    Regroup,
}

/// The extents of a tensor, a buffer, or a descriptor's block.
pub fn extents(m: &Module, value: Value) -> Option<&[u32]> {
    match m.type_kind(m.value_type(value)) {
        TypeKind::TensorDesc { block } => m.shape(*block),
        _ => m.shape(m.value_type(value)),
    }
}

impl Index {
    /// Whether operands and results that are tensors have one encoding, whatever it is.
    pub fn shares_encoding(self) -> bool {
        matches!(
            self,
            Index::Elementwise | Index::Broadcast | Index::Scan(_) | Index::Tile(_) | Index::Element(_)
        )
    }

    /// Whether each dimension of an operand is a dimension of the result: an element of the result takes one element of each
    /// operand, along axes that the result shows.
    pub fn keeps_axes(self) -> bool {
        matches!(self, Index::Elementwise | Index::Broadcast | Index::ExpandDims(_) | Index::Permute(_))
    }

    /// Whether each element of a result is an element of an operand, at a place that the index alone tells.
    pub fn rearranges(self) -> bool {
        matches!(
            self,
            Index::Broadcast
                | Index::ExpandDims(_)
                | Index::Permute(_)
                | Index::Reshape
                | Index::Join
                | Index::Split
                | Index::Part(_)
                | Index::TileAt(_)
        )
    }

    /// The names of attributes and operand groups that it speaks of.
    pub const fn names(self) -> [Option<&'static str>; 4] {
        match self {
            Index::ExpandDims(a)
            | Index::Permute(a)
            | Index::Reduce(a)
            | Index::Scan(a)
            | Index::Gather(a)
            | Index::Part(a)
            | Index::TileAt(a)
            | Index::Tile(a)
            | Index::Element(a) => [Some(a), None, None, None],
            Index::Block(a, b) => [Some(a), Some(b), None, None],
            Index::ScaledContraction([a, b], [c, d]) => [Some(a), Some(b), Some(c), Some(d)],
            Index::Rows(a, b, c) => [Some(a), Some(b), Some(c), None],
            _ => [None; 4],
        }
    }

    /// A sentence for the reference of operations.
    pub fn describe(self) -> String {
        match self {
            Index::Unrelated => "no dimensions go together".into(),
            Index::Elementwise => "element by element".into(),
            Index::Aligned => "element by element, with memory or other threads".into(),
            Index::Relayout => "the same elements, held by other threads".into(),
            Index::Generated => "elements follow from their index or a scalar".into(),
            Index::Whole => "any element may go with any other".into(),
            Index::Broadcast => "dimensions of extent 1 are repeated".into(),
            Index::ExpandDims(axis) => format!("a dimension of extent 1 is inserted at `{axis}`"),
            Index::Permute(order) => format!("dimensions are permuted by `{order}`"),
            Index::Reshape => "row-major order is kept".into(),
            Index::Join => "operands along a new innermost dimension".into(),
            Index::Split => "results along the innermost dimension".into(),
            Index::Concat => "one operand after the other".into(),
            Index::Reduce(axis) => format!("elements along `{axis}` are combined into one"),
            Index::Scan(axis) => format!("elements along `{axis}` are combined with those before them"),
            Index::Contraction => "a[m, k] · b[k, n] + c[m, n], k whole".into(),
            Index::ScaledContraction(..) => {
                "a[m, k] · b[k, n] + c[m, n], scales with parts of k, k whole".into()
            }
            Index::Gather(axis) => format!("indices name elements along `{axis}`"),
            Index::Count => "elements are counted in bins".into(),
            Index::Block(desc, tile) => format!("`{tile}` is a block of `{desc}`"),
            Index::Rows(desc, rows, tile) => format!("`{tile}` is the `{rows}` of `{desc}`"),
            Index::Slot => "one of what the outermost dimension numbers".into(),
            Index::Part(offsets) => format!("what lies at `{offsets}`"),
            Index::TileAt(index) => format!("tile `{index}` of the operand"),
            Index::Tile(tile) => format!("`{tile}` is a tile of the first operand"),
            Index::Element(of) => format!("indices name elements of `{of}` along each of its dimensions"),
        }
    }
}

impl Relation {
    /// The relation of an operation. One that is not declared may do anything with its tensors.
    ///
    /// # Errors
    /// Shapes that do not fit each other.
    pub fn of(m: &Module, op: Op) -> Result<Relation, String> {
        let index = m.def(op).map_or(Index::Whole, |d| d.index);
        let mut maker = Maker { m, op, def: m.def(op), r: Relation::default() };
        maker.r.operands = vec![None; m.operands(op).len()];
        maker.r.results = vec![None; m.results(op).len()];
        maker.relate(index)?;
        Ok(maker.r)
    }

    /// All sites: operands, then results.
    pub fn sites(&self) -> impl Iterator<Item = &Site> {
        self.operands.iter().chain(&self.results).flatten()
    }

    fn role(&self, part: Option<Part>) -> Option<Role> {
        part.map(|p| self.axes[p.axis].role)
    }

    /// How the dimensions of `from` become those of `to`; `None` where they don't without looking at elements.
    pub fn crossing(&self, from: &Site, to: &Site) -> Option<Crossing> {
        let (a, b) = (&from.dims, &to.dims);
        let agree = |d: usize| match (a[d], b[d]) {
            (Some(x), Some(y)) => x == y && from.shape[d] == to.shape[d],
            _ => true,
        };
        if a.len() == b.len() && (0..a.len()).all(agree) {
            return Some(Crossing::Same);
        }
        // Everything of the longer but one dimension is in the shorter; of several the one that no axis tells apart.
        let extra = |long: &Dims, short: &Dims| {
            let gone = |p: Option<Part>| matches!(self.role(p), None | Some(Role::Combined | Role::Member));
            let fits = |&d: &usize| {
                let rest = long.iter().enumerate().filter(|(i, _)| *i != d).map(|(_, p)| p);
                gone(long[d]) && rest.eq(short.iter())
            };
            (long.len() == short.len() + 1).then(|| (0..long.len()).find(fits)).flatten()
        };
        if let Some(d) = extra(a, b) {
            let member = self.role(a[d]) == Some(Role::Member);
            return Some(if member { Crossing::DropMember } else { Crossing::Drop(d) });
        }
        if let Some(d) = extra(b, a) {
            let member = self.role(b[d]) == Some(Role::Member);
            return Some(if member { Crossing::AppendMember } else { Crossing::Insert(d) });
        }
        if a.len() == b.len()
            && let Some(order) = b.iter().map(|y| y.and_then(|_| a.iter().position(|x| x == y))).collect()
        {
            return Some(Crossing::Permute(order));
        }
        // As many elements along each axis on both sides.
        let count = |site: &Site, axis: usize| -> u32 {
            let parts = site.dims.iter().zip(&site.shape);
            parts.filter(|(p, _)| p.is_some_and(|p| p.axis == axis)).map(|(_, &n)| n).product()
        };
        // (Whole lines of one element, a gather's source or the depth of a product, are not what the other side has there.)
        let covered = (0..self.axes.len()).all(|x| {
            let beside = self.axes[x].role == Role::Whole && from.shows(x) != to.shows(x);
            !beside && count(from, x) == count(to, x)
        });
        let known = |site: &Site| site.dims.iter().zip(&site.shape).all(|(p, &n)| p.is_some() || n == 1);
        (covered && known(from) && known(to)).then_some(Crossing::Regroup)
    }

    /// The element of `to` that goes with an element of `from`. Along axes that `from` does not show it is the first.
    pub fn carry(&self, from: &Site, to: &Site, at: &[u32]) -> Shape {
        let mut indices: SmallVec<[u32; 8]> = SmallVec::from_elem(0, self.axes.len());
        from.note(at, &mut indices);
        to.at(&self.axes, &indices)
    }

    /// For an operation that [rearranges](Index::rearranges): the operand, and the element of it, that element `at` of a
    /// result is.
    pub fn source(&self, result: usize, at: &[u32]) -> Option<(usize, Shape)> {
        let mut indices: SmallVec<[u32; 8]> = SmallVec::from_elem(0, self.axes.len());
        let of = self.results[result].as_ref()?;
        of.note(at, &mut indices);
        let mut operand = 0;
        for (axis, a) in self.axes.iter().enumerate() {
            if a.role == Role::Member {
                if of.shows(axis) {
                    operand = indices[axis] as usize;
                } else {
                    indices[axis] = result as u32;
                }
            }
        }
        Some((operand, self.operands.get(operand)?.as_ref()?.at(&self.axes, &indices)))
    }

    /// For an operation that rearranges operands into one result: the element of it that element `at` of an operand is.
    pub fn target(&self, operand: usize, at: &[u32]) -> Option<Shape> {
        let mut indices: SmallVec<[u32; 8]> = SmallVec::from_elem(0, self.axes.len());
        let of = self.operands.get(operand)?.as_ref()?;
        of.note(at, &mut indices);
        for (axis, a) in self.axes.iter().enumerate() {
            if a.role == Role::Member && !of.shows(axis) {
                indices[axis] = operand as u32;
            }
        }
        Some(self.results.first()?.as_ref()?.at(&self.axes, &indices))
    }
}

impl Site {
    /// The indices of the axes at an element.
    fn note(&self, at: &[u32], indices: &mut [u32]) {
        for (part, &x) in self.dims.iter().zip(at) {
            if let Some(p) = part {
                indices[p.axis] += x.wrapping_sub(p.offset) * p.stride;
            }
        }
    }

    /// The element at indices of the axes. The outermost part of an axis, mostly all of it, goes on beyond its extent: what
    /// lies there in one tensor, in padding, lies there in the other.
    fn at(&self, axes: &[Axis], indices: &[u32]) -> Shape {
        let place = |(part, &n): (&Option<Part>, &u32)| match part {
            Some(p) => {
                let steps = indices[p.axis] / p.stride;
                let inner = u64::from(p.stride) * u64::from(n) < u64::from(axes[p.axis].extent);
                p.offset + if inner { steps % n } else { steps }
            }
            None => 0,
        };
        self.dims.iter().zip(&self.shape).map(place).collect()
    }

    /// Whether a dimension runs along an axis.
    pub fn shows(&self, axis: usize) -> bool {
        self.dims.iter().flatten().any(|p| p.axis == axis)
    }
}

struct Maker<'m> {
    m: &'m Module,
    op: Op,
    def: Option<&'static OpDef>,
    r: Relation,
}

type Check = Result<(), String>;

impl Maker<'_> {
    // ---- values ----------------------------------------------------------------------------------------------------

    fn axis(&mut self, extent: u32, role: Role) -> usize {
        self.r.axes.push(Axis { extent, role });
        self.r.axes.len() - 1
    }

    fn axes(&mut self, shape: &[u32], role: Role) -> Dims {
        shape.iter().map(|&n| Some(whole(self.axis(n, role)))).collect()
    }

    fn shape(&self, value: Value) -> Result<Shape, String> {
        let shape = self.m.shape(self.m.value_type(value)).map(Shape::from);
        shape.ok_or_else(|| format!("a tensor expected, not {}", self.text(value)))
    }

    fn text(&self, value: Value) -> String {
        print_type(self.m, self.m.value_type(value))
    }

    fn operand(&self, i: usize) -> Result<Value, String> {
        self.m.operands(self.op).get(i).copied().ok_or_else(|| "an operand is missing".to_string())
    }

    fn result(&self, i: usize) -> Result<Value, String> {
        self.m.results(self.op).get(i).copied().ok_or_else(|| "a result is missing".to_string())
    }

    /// Operands, then results.
    fn put(&mut self, at: usize, shape: Shape, dims: Dims) {
        let operands = self.r.operands.len();
        let site = if at < operands { &mut self.r.operands[at] } else { &mut self.r.results[at - operands] };
        *site = Some(Site { shape, dims });
    }

    fn put_operand(&mut self, i: usize, shape: Shape, dims: Dims) {
        self.put(i, shape, dims);
    }

    fn put_result(&mut self, i: usize, shape: Shape, dims: Dims) {
        self.put(self.r.operands.len() + i, shape, dims);
    }

    fn misfit(&self, verb: &str) -> String {
        let list = |values: &[Value]| {
            let texts: Vec<String> = values.iter().map(|&v| self.text(v)).collect();
            texts.join(" and ")
        };
        format!("{} {verb} {}", list(self.m.operands(self.op)), list(self.m.results(self.op)))
    }

    /// A dimension that an attribute names, of `rank`.
    fn dimension(&self, attr: &str, rank: usize) -> Result<usize, String> {
        let axis = self.m.int_attr(self.op, attr).ok_or_else(|| format!("`{attr}` is not a number"))?;
        usize::try_from(axis)
            .ok()
            .filter(|&a| a < rank)
            .ok_or_else(|| format!("{attr} {axis} is out of range for {rank} dimensions"))
    }

    fn numbers(&self, attr: &str) -> Result<Vec<i32>, String> {
        let found = self.m.op_attr(self.op, attr);
        <Vec<i32> as crate::attrs::AttrValue>::read(self.m, found)
            .ok_or_else(|| format!("`{attr}` is no list of numbers"))
    }

    // ---- relations -------------------------------------------------------------------------------------------------

    fn relate(&mut self, index: Index) -> Check {
        match index {
            Index::Unrelated => Ok(()),
            Index::Elementwise | Index::Aligned | Index::Relayout => self.aligned(Role::Parallel, None),
            Index::Element(of) => self.aligned(Role::Parallel, Some(of)),
            Index::Generated => self.fresh(Role::Parallel),
            Index::Whole => self.fresh(Role::Whole),
            Index::Broadcast => self.broadcast(),
            Index::ExpandDims(axis) => self.expand_dims(axis),
            Index::Permute(order) => self.permute(order),
            Index::Reshape => self.reshape(),
            Index::Join => self.join(),
            Index::Split => self.split(),
            Index::Concat => self.concat(),
            Index::Reduce(axis) => self.reduce(axis),
            Index::Scan(axis) => self.scan(axis),
            Index::Contraction => self.contraction(),
            Index::ScaledContraction(formats, k_pack) => self.scaled_contraction(formats, k_pack),
            Index::Gather(axis) => self.gather(axis),
            Index::Count => self.count(),
            Index::Block(desc, tile) => self.block(desc, tile),
            Index::Rows(desc, rows, tile) => self.rows(desc, rows, tile),
            Index::Slot => self.slot(),
            Index::Part(offsets) => self.part(offsets),
            Index::TileAt(index) => self.tile_at(index),
            Index::Tile(_) => self.tile(),
        }
    }

    /// Every value for itself.
    fn fresh(&mut self, role: Role) -> Check {
        let values = [self.m.operands(self.op), self.m.results(self.op)].concat();
        for (i, v) in values.into_iter().enumerate() {
            if let Some(shape) = extents(self.m, v).map(Shape::from) {
                let dims = self.axes(&shape, role);
                self.put(i, shape, dims);
            }
        }
        Ok(())
    }

    /// All tensors and buffers have one shape, but for those of a group.
    fn aligned(&mut self, role: Role, but: Option<&str>) -> Check {
        let values = [self.m.operands(self.op), self.m.results(self.op)].concat();
        let mut first: Option<(Value, Shape, Dims)> = None;
        let left_out = self.def.zip(but).and_then(|(def, name)| def.group(name));
        let left_out = left_out.map_or(&[][..], |group| self.m.operand_group(self.op, group));
        for (i, v) in values.into_iter().enumerate() {
            let Ok(shape) = self.shape(v) else { continue };
            if left_out.contains(&v) {
                continue;
            }
            let dims = match &first {
                None => {
                    let dims = self.axes(&shape, role);
                    first = Some((v, shape.clone(), dims.clone()));
                    dims
                }
                Some((_, of, dims)) if *of == shape => dims.clone(),
                Some((other, ..)) => {
                    let (a, b) = (self.text(*other), self.text(v));
                    return Err(format!("shapes must be the same, but those of {a} and {b} differ"));
                }
            };
            self.put(i, shape, dims);
        }
        Ok(())
    }

    fn broadcast(&mut self) -> Check {
        let (from, to) = (self.shape(self.operand(0)?)?, self.shape(self.result(0)?)?);
        if from.len() != to.len() || from.iter().zip(&to).any(|(a, b)| a != b && *a != 1) {
            return Err(self.misfit("does not broadcast to"));
        }
        let dims = self.axes(&to, Role::Parallel);
        let src = dims.iter().zip(from.iter().zip(&to)).map(|(&d, (a, b))| d.filter(|_| a == b)).collect();
        self.put_operand(0, from, src);
        self.put_result(0, to, dims);
        Ok(())
    }

    fn expand_dims(&mut self, axis: &str) -> Check {
        let (from, to) = (self.shape(self.operand(0)?)?, self.shape(self.result(0)?)?);
        let axis = self.dimension(axis, from.len() + 1)?;
        let mut expected = from.clone();
        expected.insert(axis, 1);
        if expected != to {
            return Err(self.misfit(&format!("with axis {axis} does not give")));
        }
        let src = self.axes(&from, Role::Parallel);
        let mut dims = src.clone();
        dims.insert(axis, None);
        self.put_operand(0, from, src);
        self.put_result(0, to, dims);
        Ok(())
    }

    fn permute(&mut self, order: &str) -> Check {
        let (from, to) = (self.shape(self.operand(0)?)?, self.shape(self.result(0)?)?);
        let order = self.numbers(order)?;
        let mut sorted = order.clone();
        sorted.sort_unstable();
        if sorted.len() != from.len() || sorted.iter().enumerate().any(|(i, &d)| d != i as i32) {
            return Err(format!("{order:?} is no permutation of {} dimensions", from.len()));
        }
        let expected: Shape = order.iter().map(|&d| from[d as usize]).collect();
        if expected != to {
            return Err(self.misfit(&format!("permuted by {order:?} is not")));
        }
        let src = self.axes(&from, Role::Parallel);
        let dims = order.iter().map(|&d| src[d as usize]).collect();
        self.put_operand(0, from, src);
        self.put_result(0, to, dims);
        Ok(())
    }

    /// Runs of dimensions that have as many elements on both sides show parts of one axis.
    fn reshape(&mut self) -> Check {
        let (from, to) = (self.shape(self.operand(0)?)?, self.shape(self.result(0)?)?);
        let count = |shape: &[u32]| shape.iter().map(|&d| u64::from(d)).product::<u64>();
        if count(&from) != count(&to) {
            return Err(self.misfit("does not reshape to"));
        }
        let (mut src, mut dims) = (Dims::new(), Dims::new());
        while src.len() < from.len() || dims.len() < to.len() {
            let (mut i, mut j) = (src.len(), dims.len());
            let (mut left, mut right) = (1u64, 1u64);
            // At least one dimension, then the side that has fewer elements, until both have as many.
            while left != right || (i, j) == (src.len(), dims.len()) {
                if j == to.len() || left <= right && i < from.len() {
                    left *= u64::from(from[i]);
                    i += 1;
                } else {
                    right *= u64::from(to[j]);
                    j += 1;
                }
            }
            let extent = u32::try_from(left).map_err(|_| self.misfit("does not reshape to"))?;
            let axis = self.axis(extent, Role::Parallel);
            let parts = |of: &[u32], out: &mut Dims| {
                let mut stride = extent;
                for &n in of {
                    stride = stride.checked_div(n).unwrap_or(1).max(1);
                    out.push(Some(Part { axis, stride, offset: 0 }));
                }
            };
            parts(&from[src.len()..i], &mut src);
            parts(&to[dims.len()..j], &mut dims);
        }
        self.put_operand(0, from, src);
        self.put_result(0, to, dims);
        Ok(())
    }

    fn join(&mut self) -> Check {
        let part = self.shape(self.operand(0)?)?;
        let members = self.m.operands(self.op).len();
        let mut all = part.clone();
        all.push(members as u32);
        let same =
            self.m.operands(self.op).iter().all(|&v| self.m.shape(self.m.value_type(v)) == Some(&part));
        if !same || self.shape(self.result(0)?)? != all {
            return Err(self.misfit("do not join to"));
        }
        let dims = self.axes(&part, Role::Parallel);
        for i in 0..members {
            self.put_operand(i, part.clone(), dims.clone());
        }
        let dims = dims.into_iter().chain([Some(whole(self.axis(members as u32, Role::Member)))]).collect();
        self.put_result(0, all, dims);
        Ok(())
    }

    fn split(&mut self) -> Check {
        let part = self.shape(self.result(0)?)?;
        let members = self.m.results(self.op).len();
        let mut all = part.clone();
        all.push(members as u32);
        let same = self.m.results(self.op).iter().all(|&v| self.m.shape(self.m.value_type(v)) == Some(&part));
        if !same || self.shape(self.operand(0)?)? != all {
            return Err(self.misfit("does not split to"));
        }
        let dims = self.axes(&part, Role::Parallel);
        for i in 0..members {
            self.put_result(i, part.clone(), dims.clone());
        }
        let dims = dims.into_iter().chain([Some(whole(self.axis(members as u32, Role::Member)))]).collect();
        self.put_operand(0, all, dims);
        Ok(())
    }

    fn concat(&mut self) -> Check {
        let mut sum = 0;
        for &v in self.m.operands(self.op) {
            match self.shape(v)?[..] {
                [n] => sum += u64::from(n),
                _ => return Err(self.misfit("do not concatenate to")),
            }
        }
        match self.shape(self.result(0)?)?[..] {
            [n] if u64::from(n) == sum => self.fresh(Role::Whole),
            _ => Err(self.misfit("do not concatenate to")),
        }
    }

    fn reduce(&mut self, axis: &str) -> Check {
        let (sources, results) = (self.r.operands.len(), self.r.results.len());
        if sources == 0 || sources != results {
            return Err(format!("{sources} operands and {results} results"));
        }
        let from = self.shape(self.operand(0)?)?;
        let axis = self.dimension(axis, from.len())?;
        let mut to = from.clone();
        to.remove(axis);
        let src = self.axes(&from, Role::Parallel);
        self.r.axes[axis].role = Role::Combined;
        let mut dims = src.clone();
        dims.remove(axis);
        for i in 0..sources {
            if self.shape(self.operand(i)?)? != from {
                return Err("all operands must have one shape".into());
            }
            if extents(self.m, self.result(i)?).unwrap_or(&[]) != &to[..] {
                return Err(self.misfit(&format!("along {axis} does not give")));
            }
            self.put_operand(i, from.clone(), src.clone());
            if !to.is_empty() {
                self.put_result(i, to.clone(), dims.clone());
            }
        }
        Ok(())
    }

    fn scan(&mut self, axis: &str) -> Check {
        let (sources, results) = (self.r.operands.len(), self.r.results.len());
        if sources == 0 || sources != results {
            return Err(format!("{sources} operands and {results} results"));
        }
        let shape = self.shape(self.operand(0)?)?;
        let axis = self.dimension(axis, shape.len())?;
        self.aligned(Role::Parallel, None)?;
        self.r.axes[axis].role = Role::Whole;
        Ok(())
    }

    fn contraction(&mut self) -> Check {
        let (a, b, c) =
            (self.shape(self.operand(0)?)?, self.shape(self.operand(1)?)?, self.shape(self.operand(2)?)?);
        let r = a.len();
        if !(r == 2 || r == 3) || b.len() != r || c.len() != r || self.shape(self.result(0)?)? != c {
            return Err("operands must all have rank 2, or all rank 3".into());
        }
        if a[r - 1] != b[r - 2] || a[r - 2] != c[r - 2] || b[r - 1] != c[r - 1] || a[..r - 2] != b[..r - 2] {
            return Err(format!("shapes {a:?} · {b:?} -> {c:?} do not fit"));
        }
        let of_c = self.axes(&c, Role::Parallel);
        let k = Some(whole(self.axis(a[r - 1], Role::Whole)));
        let (mut of_a, mut of_b) = (of_c.clone(), of_c.clone());
        of_a[r - 1] = k;
        of_b[r - 2] = k;
        self.put_operand(0, a, of_a);
        self.put_operand(1, b, of_b);
        self.put_operand(2, c.clone(), of_c.clone());
        self.put_result(0, c, of_c);
        Ok(())
    }

    fn scaled_contraction(&mut self, formats: [&str; 2], k_pack: [&str; 2]) -> Check {
        let c = self.shape(self.operand(2)?)?;
        let r = c.len();
        if !(r == 2 || r == 3) || self.shape(self.result(0)?)? != c {
            return Err("operands must all have rank 2, or all rank 3".into());
        }
        let of_c = self.axes(&c, Role::Parallel);
        let mut k = None;
        // Where K and the other dimension (M, N) of each operand are, and where that one is in the result.
        for (i, name, deep, wide) in [(0, "a_scale", r - 1, r - 2), (1, "b_scale", r - 2, r - 1)] {
            let value = self.operand(i)?;
            let shape = self.shape(value)?;
            let format = self.m.op_attr(self.op, formats[i]).map(|a| self.m.attr_kind(a));
            let packed = matches!(format, Some(AttrKind::Keyword("e2m1")))
                || matches!(format, Some(AttrKind::Str(s)) if s == "e2m1");
            let pair = if packed { 2 } else { 1 };
            let along_k = self
                .m
                .op_attr(self.op, k_pack[i])
                .is_none_or(|a| *self.m.attr_kind(a) != AttrKind::Bool(false));
            let (of_k, of_wide) = if along_k { (pair, 1) } else { (1, pair) };
            let depth = shape.get(deep).map_or(0, |&n| n * of_k);
            let (axis, extent) = *k.get_or_insert_with(|| (self.axis(depth, Role::Whole), depth));
            if shape.len() != r
                || shape[..r - 2] != c[..r - 2]
                || shape[wide] * of_wide != c[wide]
                || depth != extent
            {
                return Err(self.misfit("do not multiply to"));
            }
            let part = |axis, stride| Some(Part { axis, stride, offset: 0 });
            let mut dims = of_c.clone();
            dims[deep] = part(axis, of_k);
            dims[wide] = part(wide, of_wide);
            self.put_operand(i, shape, dims);
            if !self.group_is_there(name) {
                continue;
            }
            let (at, scale) = self.place(name)?;
            let elements = if self.m.element_type(self.m.value_type(scale)) == Type::I8 { 32 } else { 16 };
            let mut expected: Shape = c[..r - 2].into();
            expected.extend([c[wide], extent / elements]);
            if !extent.is_multiple_of(elements) || self.shape(scale)? != expected {
                return Err(format!(
                    "the scales of operand {i} must have shape {expected:?}, one for {elements} elements, but are {}",
                    self.text(scale)
                ));
            }
            let mut dims: Dims = of_c[..r - 2].into();
            dims.extend([of_c[wide], part(axis, elements)]);
            self.put(at, expected, dims);
        }
        self.put_operand(2, c.clone(), of_c.clone());
        self.put_result(0, c, of_c);
        Ok(())
    }

    fn gather(&mut self, axis: &str) -> Check {
        let (from, to) = (self.shape(self.operand(0)?)?, self.shape(self.operand(1)?)?);
        let axis = self.dimension(axis, from.len())?;
        let fits = from.len() == to.len() && (0..from.len()).all(|d| d == axis || from[d] == to[d]);
        if !fits || self.shape(self.result(0)?)? != to {
            return Err(self.misfit(&format!("along {axis} does not give")));
        }
        let dims = self.axes(&to, Role::Parallel);
        let mut src = dims.clone();
        src[axis] = Some(whole(self.axis(from[axis], Role::Whole)));
        self.put_operand(0, from, src);
        self.put_operand(1, to.clone(), dims.clone());
        self.put_result(0, to, dims);
        Ok(())
    }

    fn count(&mut self) -> Check {
        let (from, bins) = (self.shape(self.operand(0)?)?, self.shape(self.result(0)?)?);
        if from.len() != 1 || bins.len() != 1 {
            return Err(self.misfit("is not counted in"));
        }
        let src = self.axes(&from, Role::Combined);
        for i in 0..self.r.operands.len() {
            if self.shape(self.operand(i)?)? != from {
                return Err(self.misfit("is not counted in"));
            }
            self.put_operand(i, from.clone(), src.clone());
        }
        let dims = self.axes(&bins, Role::Whole);
        self.put_result(0, bins, dims);
        Ok(())
    }

    /// The number of the only value of a group of operands, or of a result, among all sites.
    fn place(&self, name: &str) -> Result<(usize, Value), String> {
        let missing = || format!("`{name}` is missing");
        let def = self.def.ok_or_else(missing)?;
        let values = [self.m.operands(self.op), self.m.results(self.op)].concat();
        let at = match def.group(name) {
            Some(group) => (0..group).map(|g| self.m.operand_group(self.op, g).len()).sum(),
            None => self.r.operands.len() + def.result(name).ok_or_else(missing)?,
        };
        Ok((at, *values.get(at).ok_or_else(missing)?))
    }

    /// Whether a group of operands has values.
    fn group_is_there(&self, name: &str) -> bool {
        let group = self.def.and_then(|d| d.group(name));
        group.is_some_and(|g| !self.m.operand_group(self.op, g).is_empty())
    }

    fn descriptor(&self, name: &str) -> Result<(usize, Shape), String> {
        let (at, desc) = self.place(name)?;
        match self.m.type_kind(self.m.value_type(desc)) {
            TypeKind::TensorDesc { block } => {
                Ok((at, self.m.shape(*block).map(Shape::from).unwrap_or_default()))
            }
            _ => Err("a tensor descriptor expected".into()),
        }
    }

    fn block(&mut self, desc: &str, tile: &str) -> Check {
        let (at, block) = self.descriptor(desc)?;
        let (tile, value) = self.place(tile)?;
        let shape = self.shape(value)?;
        let long = |shape: &[u32]| shape.iter().copied().filter(|&n| n != 1).collect::<Shape>();
        let missing = block.len().saturating_sub(shape.len());
        let ends = block[missing..] == shape[..] && block[..missing].iter().all(|&n| n == 1);
        // A buffer may also lack dimensions of extent 1 in the middle, or lie there as one row of many.
        let fits = ends || !self.m.is_tensor(self.m.value_type(value)) && long(&block) == long(&shape);
        if !fits {
            return Err(format!("{} is not a block of shape {block:?}", self.text(value)));
        }
        let dims = self.axes(&block, Role::Parallel);
        let mut left = dims.iter().zip(&block).filter(|(_, n)| **n != 1).map(|(d, _)| *d);
        let of_tile = match ends {
            true => dims[missing..].iter().copied().collect(),
            false => shape.iter().map(|&n| if n == 1 { None } else { left.next().flatten() }).collect(),
        };
        self.put(at, block, dims.clone());
        self.put(tile, shape, of_tile);
        Ok(())
    }

    fn rows(&mut self, desc: &str, rows: &str, tile: &str) -> Check {
        let (at, block) = self.descriptor(desc)?;
        let ((rows, of_rows), (tile, value)) = (self.place(rows)?, self.place(tile)?);
        let (of_rows, of_tile) = (self.shape(of_rows)?, self.shape(value)?);
        // (A block of several rows, of which a TMA copy takes one at a time, is a matter of the hardware's.)
        let one_row = block.first() == Some(&1);
        let is_buffer = !self.m.is_tensor(self.m.value_type(value));
        if block.len() != 2
            || !one_row && !is_buffer
            || of_rows.len() != 1
            || of_tile[..] != [of_rows[0], block[1]]
        {
            return Err("a block of one row, a vector of rows, and a tensor of as many rows expected".into());
        }
        let dims = self.axes(&of_tile, Role::Parallel);
        if one_row {
            self.put(at, block, [None, dims[1]].into_iter().collect());
        }
        self.put(rows, of_rows, [dims[0]].into_iter().collect());
        self.put(tile, of_tile, dims);
        Ok(())
    }

    fn slot(&mut self) -> Check {
        let (from, to) = (self.shape(self.operand(0)?)?, self.shape(self.result(0)?)?);
        if from.get(1..) != Some(&to[..]) {
            return Err(format!(
                "{} is not a slot of {}",
                self.text(self.result(0)?),
                self.text(self.operand(0)?)
            ));
        }
        let mut src = self.axes(&from, Role::Parallel);
        self.r.axes[0].role = Role::Whole;
        self.put_operand(0, from, src.clone());
        src.remove(0);
        self.put_result(0, to, src);
        Ok(())
    }

    fn tile(&mut self) -> Check {
        let values = [self.operand(0)?, self.operand(1)?, self.result(0)?];
        let whole = self.shape(values[0])?;
        // It is an operand, or the result.
        let inserted = extents(self.m, values[1]).is_some();
        let tile = self.shape(values[if inserted { 1 } else { 2 }])?;
        if inserted && self.shape(values[2])? != whole {
            return Err(self.misfit("do not insert to"));
        }
        if tile.len() != whole.len() || tile.iter().zip(&whole).any(|(&t, &n)| t == 0 || n % t != 0) {
            return Err(format!("a tile of {tile:?} does not divide {whole:?}"));
        }
        let indices = self.r.operands.len() - 1 - usize::from(inserted);
        if indices != whole.len() {
            return Err(format!("{} indices expected, not {indices}", whole.len()));
        }
        self.fresh(Role::Whole)
    }

    fn tile_at(&mut self, index: &str) -> Check {
        let (from, to) = (self.shape(self.operand(0)?)?, self.shape(self.result(0)?)?);
        let divides = from.len() == to.len() && to.iter().zip(&from).all(|(&t, &n)| t != 0 && n % t == 0);
        if !divides {
            return Err(format!("a tile of {to:?} does not divide {from:?}"));
        }
        let tiles: i64 = to.iter().zip(&from).map(|(&t, &n)| i64::from(n / t)).product();
        let number = self.m.int_attr(self.op, index).unwrap_or(-1);
        if !(0..tiles).contains(&number) {
            return Err(format!("there is no tile {number} among {tiles}"));
        }
        let mut rest = number as u32;
        let mut offsets = vec![0; to.len()];
        for d in (0..to.len()).rev() {
            offsets[d] = (rest % (from[d] / to[d]) * to[d]) as i32;
            rest /= from[d] / to[d];
        }
        self.cut(from, to, &offsets)
    }

    fn part(&mut self, offsets: &str) -> Check {
        let offsets = self.numbers(offsets)?;
        let (from, to) = (self.shape(self.operand(0)?)?, self.shape(self.result(0)?)?);
        let inside =
            |d: usize| offsets[d] >= 0 && i64::from(offsets[d]) + i64::from(to[d]) <= i64::from(from[d]);
        if offsets.len() != from.len() || to.len() != from.len() || !(0..from.len()).all(inside) {
            let (a, b) = (self.text(self.result(0)?), self.text(self.operand(0)?));
            return Err(format!("{a} at {offsets:?} is no part of {b}"));
        }
        self.cut(from, to, &offsets)
    }

    /// The result is what lies at the offsets in the operand.
    fn cut(&mut self, from: Shape, to: Shape, offsets: &[i32]) -> Check {
        let dims = self.axes(&to, Role::Parallel);
        let moved = |(d, &o): (&Option<Part>, &i32)| d.map(|p| Part { offset: o as u32, ..p });
        self.put_operand(0, from, dims.iter().zip(offsets).map(moved).collect());
        self.put_result(0, to, dims);
        Ok(())
    }
}

/// A dimension that is an axis.
fn whole(axis: usize) -> Part {
    Part { axis, stride: 1, offset: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse;

    /// The relation of the first operation of a function that has one of these names.
    fn relation(body: &str, name: &str) -> (Module, Relation) {
        let text = format!("tt.func @f({body} tt.return }}");
        let m = parse(&text, "t.mlir").unwrap_or_else(|e| panic!("{e}"));
        let op = m.all_ops(m.root()).into_iter().find(|&o| m.op_name(o) == name).expect("the operation");
        let r = Relation::of(&m, op).unwrap_or_else(|e| panic!("{e}"));
        (m, r)
    }

    /// Each element of each result with the operand and element that it is, as row-major indices.
    fn sources(r: &Relation) -> Vec<Vec<(usize, u32)>> {
        let flat = |shape: &[u32], at: &[u32]| at.iter().zip(shape).fold(0, |i, (&x, &n)| i * n + x);
        let of = |(n, site): (usize, &Option<Site>)| {
            let shape = &site.as_ref().expect("a tensor").shape;
            let count: u32 = shape.iter().product();
            let element = |mut i: u32| {
                let mut at: Shape = shape.iter().rev().map(|&n| (i % n, i /= n).0).collect();
                at.reverse();
                let (operand, at) = r.source(n, &at).expect("rearranged");
                (operand, flat(&r.operands[operand].as_ref().expect("a tensor").shape, &at))
            };
            (0..count).map(element).collect()
        };
        r.results.iter().enumerate().map(of).collect()
    }

    #[test]
    fn every_element_comes_from_its_place() {
        let (_, r) = relation(
            "%x: tensor<2x3xi32>) { %0 = tt.trans %x {order = array<i32: 1, 0>} : tensor<2x3xi32> -> tensor<3x2xi32>",
            "tt.trans",
        );
        assert_eq!(sources(&r), [[(0, 0), (0, 3), (0, 1), (0, 4), (0, 2), (0, 5)]]);
        let (_, r) = relation(
            "%x: tensor<2xi32>, %y: tensor<2xi32>) { %0 = tt.join %x, %y : tensor<2xi32> -> tensor<2x2xi32>",
            "tt.join",
        );
        assert_eq!(sources(&r), [[(0, 0), (1, 0), (0, 1), (1, 1)]]);
        assert_eq!(r.target(1, &[1]).as_deref(), Some(&[1, 1][..]));
        let (_, r) = relation(
            "%x: tensor<2x2xi32>) { %0, %1 = tt.split %x : tensor<2x2xi32> -> tensor<2xi32>",
            "tt.split",
        );
        assert_eq!(sources(&r), [[(0, 0), (0, 2)], [(0, 1), (0, 3)]]);
        let (_, r) = relation(
            "%x: tensor<2x1xi32>) { %0 = tt.broadcast %x : tensor<2x1xi32> -> tensor<2x2xi32>",
            "tt.broadcast",
        );
        assert_eq!(sources(&r), [[(0, 0), (0, 0), (0, 1), (0, 1)]]);
    }

    #[test]
    fn a_reshape_keeps_row_major_order_and_pairs_runs() {
        for (from, to) in [("6x4", "4x6"), ("4x8", "32"), ("96", "16x6"), ("1x8", "8x1"), ("2x3x5", "6x5")] {
            let body = format!(
                "%x: tensor<{from}xi32>) {{ %0 = tt.reshape %x : tensor<{from}xi32> -> tensor<{to}xi32>"
            );
            let (_, r) = relation(&body, "tt.reshape");
            let expected: Vec<(usize, u32)> = (0..sources(&r)[0].len() as u32).map(|i| (0, i)).collect();
            assert_eq!(sources(&r)[0], expected, "{from} -> {to}");
        }
        // The first two make one, the last stays for itself.
        let (_, r) = relation(
            "%x: tensor<2x3x5xi32>) { %0 = tt.reshape %x : tensor<2x3x5xi32> -> tensor<6x5xi32>",
            "tt.reshape",
        );
        assert_eq!(r.axes.iter().map(|a| a.extent).collect::<Vec<_>>(), [6, 5]);
    }

    #[test]
    fn dimensions_cross_operations() {
        let cross = |body: &str, name: &str, operand: usize| {
            let (_, r) = relation(body, name);
            let (a, b) =
                (r.operands[operand].as_ref().expect("a tensor"), r.results[0].as_ref().expect("a tensor"));
            (r.crossing(a, b), r.crossing(b, a))
        };
        let dot = "%a: tensor<4x8xf32>, %b: tensor<8x4xf32>, %c: tensor<4x4xf32>) { \
                   %0 = tt.dot %a, %b, %c : tensor<4x8xf32> * tensor<8x4xf32> -> tensor<4x4xf32>";
        assert_eq!(cross(dot, "tt.dot", 0), (None, None));
        assert_eq!(cross(dot, "tt.dot", 2), (Some(Crossing::Same), Some(Crossing::Same)));
        let expand = "%x: tensor<4xf32>) { \
                      %0 = tt.expand_dims %x {axis = 0 : i32} : tensor<4xf32> -> tensor<1x4xf32>";
        assert_eq!(cross(expand, "tt.expand_dims", 0), (Some(Crossing::Insert(0)), Some(Crossing::Drop(0))));
        let join = "%x: tensor<4xf32>, %y: tensor<4xf32>) { \
                    %0 = tt.join %x, %y : tensor<4xf32> -> tensor<4x2xf32>";
        assert_eq!(cross(join, "tt.join", 1), (Some(Crossing::AppendMember), Some(Crossing::DropMember)));
        let gather = "%x: tensor<4x8xf32>, %i: tensor<4x8xi32>) { %0 = tt.gather %x[%i] {axis = 1 : i32} : \
                      (tensor<4x8xf32>, tensor<4x8xi32>) -> tensor<4x8xf32>";
        assert_eq!(cross(gather, "tt.gather", 0), (None, None));
        assert_eq!(cross(gather, "tt.gather", 1), (Some(Crossing::Same), Some(Crossing::Same)));
    }
}
