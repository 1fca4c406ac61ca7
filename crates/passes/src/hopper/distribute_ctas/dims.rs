//! Classes of dimensions that are split alike, found by going through the operations once (union-find).

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use tilewright_ir::dialect::tt;
use tilewright_ir::effects::is_pure;
use tilewright_ir::flow;
use tilewright_ir::index::{self, Index, Relation, Role};
use tilewright_ir::{AttrKind, Diagnostic, Module, Op, Opcode, Trait, TypeKind, Value};

/// A dimension of a tensor or of a descriptor's block, as a number.
pub(super) type Dim = usize;

/// Whose dimensions they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Site {
    /// A value's.
    Value(Value),
    /// Those that an operation wants of a free operand, which is computed for this use.
    Operand(Op, u32),
}

/// What is known of a class.
#[derive(Debug, Clone, Copy)]
pub(super) struct Class {
    /// How many times every member can be halved.
    pub halvings: u32,
    /// The longest member.
    pub extent: u32,
    /// An operation needs whole lines along it.
    pub whole: bool,
    /// What it costs to combine parts between CTAs, of operations that combine its elements, in the unit of [`Work::weight`]; 0 where none does.
    pub combining: u64,
}

/// What an exchange between CTAs costs, two barriers of the cluster, and each number that goes with it: through shared memory, and from another multiprocessor's.
const EXCHANGE: u64 = 1 << 13;
const EXCHANGED: u64 = 64;

/// An operation that gets cheaper where a dimension of it is split.
pub(super) struct Work {
    pub dims: Vec<Dim>,
    pub weight: u64,
}

/// The dimensions of a function.
pub(super) struct Dims<'m> {
    m: &'m Module,
    /// What is made of ranges, splats and constants alone.
    pub free: FxHashSet<Value>,
    pub sites: FxHashMap<Site, SmallVec<[Dim; 4]>>,
    parents: Vec<Dim>,
    extents: Vec<u32>,
    whole: Vec<bool>,
    combining: Vec<u64>,
    pub work: Vec<Work>,
    /// The dimensions of the operation being looked at.
    met: Vec<Dim>,
}

/// The shape of a tensor or of a descriptor's block.
pub(super) fn shape_of(m: &Module, value: Value) -> Option<&[u32]> {
    let ty = m.value_type(value);
    match m.type_kind(ty) {
        TypeKind::TensorDesc { block } => m.shape(*block),
        _ if m.is_tensor(ty) => m.shape(ty),
        _ => None,
    }
}

impl<'m> Dims<'m> {
    /// Goes through all operations of a function (parents before what is in them).
    pub fn new(m: &'m Module, func: Op, ops: &[Op]) -> Result<Self, Diagnostic> {
        let mut dims = Dims {
            m,
            free: FxHashSet::default(),
            sites: FxHashMap::default(),
            parents: Vec::new(),
            extents: Vec::new(),
            whole: Vec::new(),
            combining: Vec::new(),
            work: Vec::new(),
            met: Vec::new(),
        };
        for &op in ops {
            if op == func || dims.note_free(op) {
                continue;
            }
            dims.met.clear();
            dims.relate(op)?;
            let met = std::mem::take(&mut dims.met);
            if !met.is_empty() {
                let weight = dims.weight(op);
                dims.work.push(Work { dims: met, weight });
            }
        }
        Ok(dims)
    }

    /// Notes an operation whose result is computed for each use.
    fn note_free(&mut self, op: Op) -> bool {
        let m = self.m;
        let &[result] = m.results(op) else { return false };
        let free = m.is_tensor(m.value_type(result))
            && match m.def(op).map(|d| d.index) {
                Some(Index::Generated) => true,
                // A table is not computed.
                _ if m.has_trait(op, Trait::Constant) => {
                    m.constant_value(result).is_some_and(|a| matches!(m.attr_kind(a), AttrKind::Splat(..)))
                }
                Some(index) => index.keeps_axes() && is_pure(m, op) && self.operands_free(op),
                None => false,
            };
        if free {
            self.free.insert(result);
        }
        free
    }

    fn operands_free(&self, op: Op) -> bool {
        self.m.operands(op).iter().all(|v| shape_of(self.m, *v).is_none() || self.free.contains(v))
    }

    fn at(&mut self, site: Site, value: Value) -> SmallVec<[Dim; 4]> {
        if let Some(known) = self.sites.get(&site) {
            return known.clone();
        }
        let shape = shape_of(self.m, value).unwrap_or(&[]);
        let first = self.parents.len();
        let new: SmallVec<[Dim; 4]> = (first..first + shape.len()).collect();
        self.parents.extend(&new);
        self.extents.extend(shape);
        self.whole.resize(self.parents.len(), false);
        self.combining.resize(self.parents.len(), 0);
        self.sites.insert(site, new.clone());
        new
    }

    /// The dimensions of a value that is not free.
    fn value(&mut self, value: Value) -> SmallVec<[Dim; 4]> {
        let dims = self.at(Site::Value(value), value);
        self.met.extend(&dims);
        dims
    }

    /// The dimensions of an operand for its use; none for a number.
    fn operand(&mut self, op: Op, index: usize) -> SmallVec<[Dim; 4]> {
        let value = self.m.operands(op)[index];
        let free = self.free.contains(&value);
        let site = if free { Site::Operand(op, index as u32) } else { Site::Value(value) };
        let dims = self.at(site, value);
        self.met.extend(&dims);
        dims
    }

    /// What stands for a dimension's class.
    pub fn class(&self, mut dim: Dim) -> Dim {
        while self.parents[dim] != dim {
            dim = self.parents[dim];
        }
        dim
    }

    /// All classes.
    pub fn classes(&self) -> FxHashMap<Dim, Class> {
        let mut out: FxHashMap<Dim, Class> = FxHashMap::default();
        for dim in 0..self.parents.len() {
            let extent = self.extents[dim];
            let new = Class { halvings: u32::MAX, extent: 0, whole: false, combining: 0 };
            let class = out.entry(self.class(dim)).or_insert(new);
            class.halvings = class.halvings.min(extent.trailing_zeros());
            class.extent = class.extent.max(extent);
            class.whole |= self.whole[dim];
            class.combining = class.combining.saturating_add(self.combining[dim]);
        }
        // A tensor with two dimensions of one class would be split along a diagonal.
        for dims in self.sites.values() {
            for (i, &a) in dims.iter().enumerate() {
                for &b in &dims[i + 1..] {
                    if self.class(a) == self.class(b)
                        && let Some(class) = out.get_mut(&self.class(a))
                    {
                        class.whole = true;
                    }
                }
            }
        }
        out
    }

    fn same(&mut self, a: &[Dim], b: &[Dim]) {
        for (&a, &b) in a.iter().zip(b) {
            self.same_dim(a, b);
        }
    }

    fn same_dim(&mut self, a: Dim, b: Dim) {
        let (a, b) = (self.class(a), self.class(b));
        self.parents[a.max(b)] = a.min(b);
    }

    fn keep_whole(&mut self, dims: &[Dim]) {
        for &d in dims {
            self.whole[d] = true;
        }
    }

    /// Elements of the largest tensor × what is done with each × 8^loop depth.
    fn weight(&self, op: Op) -> u64 {
        let m = self.m;
        let elements = |v: &Value| shape_of(m, *v).map_or(0, |s| s.iter().map(|&n| u64::from(n)).product());
        let mut weight = m.operands(op).iter().chain(m.results(op)).map(elements).max().unwrap_or(0);
        match m.opcode(op) {
            _ if m.def(op).is_some_and(|d| d.index == Index::Contraction) => {
                let k = shape_of(m, m.operands(op)[0]).and_then(|s| s.last()).copied();
                weight *= u64::from(k.unwrap_or(1));
            }
            // A product reads either operand as it lies.
            Some(Opcode::Tt(tt::Kind::Trans)) => return 0,
            Some(Opcode::Tt(_)) => weight *= 4,
            _ => {}
        }
        weight << self.turns(op)
    }

    /// How often an operation runs, as a power of two: 8 times as often in each loop.
    fn turns(&self, op: Op) -> u32 {
        let (mut depth, mut at) = (0, op);
        while let Some(parent) = self.m.parent_op(at) {
            depth += u32::from(flow::is_loop(self.m, parent));
            at = parent;
        }
        3 * depth.min(6)
    }

    /// What the exchange of the results of an operation costs, which combines elements.
    fn exchange(&self, op: Op) -> u64 {
        let elements = |v: &Value| -> u64 {
            shape_of(self.m, *v).map_or(1, |s| s.iter().map(|&n| u64::from(n)).product())
        };
        let all: u64 = self.m.results(op).iter().map(elements).sum();
        (EXCHANGE + EXCHANGED * all) << self.turns(op)
    }

    /// Dimensions that show the same axis are split alike; of a run of dimensions that are parts of one axis its halves are
    /// halves of the outermost.
    fn relate(&mut self, op: Op) -> Result<(), Diagnostic> {
        let m = self.m;
        let unsupported =
            |what: &str| Err(Diagnostic::unsupported(m, m.op_loc(op), format!("{what} with num_ctas > 1")));
        match m.opcode(op) {
            Some(Opcode::Tt(tt::Kind::Call)) => return unsupported("a function that is not inlined"),
            Some(Opcode::Tt(tt::Kind::MakeTensorPtr | tt::Kind::Advance)) => {
                return unsupported("a pointer to a tile");
            }
            _ => {}
        }
        for edge in flow::edges_of_user(m, op) {
            for (i, &value) in edge.to.iter().enumerate() {
                let (a, b) = (self.operand(op, edge.first + i), self.value(value));
                self.same(&a, &b);
            }
        }
        self.met.clear();
        let relation = Relation::of(m, op).map_err(|e| Diagnostic::at(m, m.op_loc(op), e))?;
        let exchange = self.exchange(op);
        let mut leads: Vec<Option<Dim>> = vec![None; relation.axes.len()];
        for (i, site) in relation.operands.iter().enumerate() {
            if let Some(site) = site {
                let dims = self.operand(op, i);
                self.join_axes(&relation, site, &dims, (&mut leads, exchange));
            }
        }
        for (&result, site) in m.results(op).iter().zip(&relation.results) {
            if let Some(site) = site {
                let dims = self.value(result);
                self.join_axes(&relation, site, &dims, (&mut leads, exchange));
            }
        }
        Ok(())
    }

    /// Joins the dimensions of a site to those that show the same axes; `leads` are those met so far, `exchange` what it costs to combine parts.
    fn join_axes(
        &mut self,
        relation: &Relation,
        site: &index::Site,
        dims: &[Dim],
        (leads, exchange): (&mut [Option<Dim>], u64),
    ) {
        for (axis, of) in relation.axes.iter().enumerate() {
            let parts = site.dims.iter().zip(&site.shape).zip(dims);
            let parts =
                parts.filter_map(|((part, &n), &d)| part.filter(|p| p.axis == axis).map(|p| (p, n, d)));
            let parts: SmallVec<[_; 4]> = parts.collect();
            let Some(&(part, n, dim)) = parts.iter().find(|(_, n, _)| *n > 1).or(parts.first()) else {
                continue;
            };
            for &(_, _, other) in parts.iter().filter(|(_, _, d)| *d > dim) {
                self.keep_whole(&[other]);
            }
            // What only a part of a longer dimension goes with cannot be split with it.
            let inside = part.offset > 0 || u64::from(part.stride) * u64::from(n) > u64::from(of.extent);
            match of.role {
                _ if inside => self.keep_whole(&[dim]),
                Role::Parallel => {}
                Role::Whole | Role::Member => self.keep_whole(&[dim]),
                Role::Combined => self.combining[dim] = exchange,
            }
            match leads[axis] {
                Some(lead) => self.same_dim(lead, dim),
                None => leads[axis] = Some(dim),
            }
        }
    }
}
