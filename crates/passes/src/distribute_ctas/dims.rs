//! Classes of dimensions that are split alike, found by going through the operations once (union-find).

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use tilewright_ir::dialect::{scf, tt};
use tilewright_ir::effects::is_pure;
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
    /// An operation combines its elements, so that parts of it must be combined between CTAs.
    pub combined: bool,
}

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
    combined: Vec<bool>,
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
            combined: Vec::new(),
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
            && match m.opcode(op) {
                Some(Opcode::Tt(tt::Kind::MakeRange | tt::Kind::Splat)) => true,
                Some(Opcode::Tt(tt::Kind::ExpandDims | tt::Kind::Broadcast | tt::Kind::Trans)) => {
                    self.operands_free(op)
                }
                // A table is not computed.
                Some(Opcode::Arith(tilewright_ir::dialect::arith::Kind::Constant)) => {
                    m.constant_value(result).is_some_and(|a| matches!(m.attr_kind(a), AttrKind::Splat(..)))
                }
                _ => m.has_trait(op, Trait::Elementwise) && is_pure(m, op) && self.operands_free(op),
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
        self.combined.resize(self.parents.len(), false);
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
            let new = Class { halvings: u32::MAX, extent: 0, whole: false, combined: false };
            let class = out.entry(self.class(dim)).or_insert(new);
            class.halvings = class.halvings.min(extent.trailing_zeros());
            class.extent = class.extent.max(extent);
            class.whole |= self.whole[dim];
            class.combined |= self.combined[dim];
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

    /// All tensors among operands and results have one shape and are split alike.
    fn all_same(&mut self, op: Op) {
        let mut first: Option<SmallVec<[Dim; 4]>> = None;
        let operands = 0..self.m.operands(op).len();
        let all = operands.map(|i| self.operand(op, i)).collect::<Vec<_>>();
        let results = self.m.results(op).to_vec();
        let all = all.into_iter().chain(results.into_iter().map(|r| self.value(r)).collect::<Vec<_>>());
        for dims in all.filter(|d| !d.is_empty()) {
            match &first {
                Some(first) => self.same(&first.clone(), &dims),
                None => first = Some(dims),
            }
        }
    }

    /// Elements of the largest tensor × what is done with each × 8^loop depth.
    fn weight(&self, op: Op) -> u64 {
        let m = self.m;
        let elements = |v: &Value| shape_of(m, *v).map_or(0, |s| s.iter().map(|&n| u64::from(n)).product());
        let mut weight = m.operands(op).iter().chain(m.results(op)).map(elements).max().unwrap_or(0);
        match m.opcode(op) {
            Some(Opcode::Tt(tt::Kind::Dot)) => {
                let k = shape_of(m, m.operands(op)[0]).and_then(|s| s.last()).copied();
                weight *= u64::from(k.unwrap_or(1));
            }
            Some(Opcode::Tt(_)) => weight *= 4,
            _ => {}
        }
        let (mut depth, mut at) = (0, op);
        while let Some(parent) = m.parent_op(at) {
            depth +=
                u32::from(matches!(m.opcode(parent), Some(Opcode::Scf(scf::Kind::For | scf::Kind::While))));
            at = parent;
        }
        weight << (3 * depth.min(6))
    }

    /// Values that control flow passes on, pair by pair.
    fn passed(&mut self, op: Op, from: usize, to: &[Value]) {
        for (i, &value) in to.iter().enumerate() {
            let (a, b) = (self.operand(op, from + i), self.value(value));
            self.same(&a, &b);
        }
        self.met.clear();
    }

    fn relate(&mut self, op: Op) -> Result<(), Diagnostic> {
        let m = self.m;
        match m.opcode(op) {
            Some(Opcode::Tt(kind)) => return self.relate_tt(op, kind),
            Some(Opcode::Scf(kind)) => self.relate_scf(op, kind),
            _ if m.has_trait(op, Trait::Elementwise) => self.all_same(op),
            // A table of numbers.
            _ => {
                for &result in m.results(op) {
                    let dims = self.value(result);
                    self.keep_whole(&dims);
                }
                for i in 0..m.operands(op).len() {
                    let dims = self.operand(op, i);
                    self.keep_whole(&dims);
                }
            }
        }
        Ok(())
    }

    fn relate_scf(&mut self, op: Op, kind: scf::Kind) {
        let m = self.m;
        match kind {
            scf::Kind::For => {
                let f = scf::For(op);
                let args = m.block_args(m.region_block(f.body(m)))[1..].to_vec();
                self.passed(op, 3, &args);
                self.passed(op, 3, m.results(op));
            }
            scf::Kind::While => {
                let before = m.block_args(m.region_block(scf::While(op).before(m))).to_vec();
                self.passed(op, 0, &before);
            }
            scf::Kind::Condition => {
                let Some(parent) = m.parent_op(op) else { return };
                let after = m.block_args(m.region_block(scf::While(parent).after(m))).to_vec();
                self.passed(op, 1, &after);
                self.passed(op, 1, m.results(parent));
            }
            scf::Kind::Yield => {
                let Some(parent) = m.parent_op(op) else { return };
                let to = match m.opcode(parent) {
                    Some(Opcode::Scf(scf::Kind::While)) => {
                        m.block_args(m.region_block(scf::While(parent).before(m))).to_vec()
                    }
                    _ => m.results(parent).to_vec(),
                };
                self.passed(op, 0, &to);
            }
            scf::Kind::If => {}
        }
    }

    fn relate_tt(&mut self, op: Op, kind: tt::Kind) -> Result<(), Diagnostic> {
        use tt::Kind as K;
        let m = self.m;
        let unsupported = |what: &str| {
            Err(Diagnostic::at(m, m.op_loc(op), format!("not supported yet: {what} with num_ctas > 1")))
        };
        match kind {
            K::Call => return unsupported("a function that is not inlined"),
            K::MakeTensorPtr | K::Advance => return unsupported("a pointer to a tile"),
            // A descriptor's block is split as its accesses want.
            K::Return | K::ReduceReturn | K::ScanReturn | K::MakeTensorDescriptor => {}
            K::Load
                if m.pointee_type(m.value_type(m.operands(op)[0])) == Some(m.value_type(m.result(op))) =>
            {
                self.all_same(op);
            }
            K::Load | K::Store | K::AtomicRmw | K::AtomicCas | K::Assert => self.all_same(op),
            K::ExpandDims => {
                let axis = tt::ExpandDims(op).axis(m) as usize;
                let (mut result, src) = (self.value(m.result(op)), self.operand(op, 0));
                result.remove(axis);
                self.same(&src, &result);
            }
            K::Broadcast => {
                let (src, result) = (self.operand(op, 0), self.value(m.result(op)));
                for (a, b) in src.into_iter().zip(result) {
                    if self.extents[a] == self.extents[b] {
                        self.same_dim(a, b);
                    }
                }
            }
            K::Trans => {
                let (src, result) = (self.operand(op, 0), self.value(m.result(op)));
                for (i, &from) in tt::Trans(op).order(m).iter().enumerate() {
                    self.same_dim(src[from as usize], result[i]);
                }
            }
            K::Reshape => {
                let (src, result) = (self.operand(op, 0), self.value(m.result(op)));
                self.reshaped(&src, &result);
            }
            K::Join => {
                let result = self.value(m.result(op));
                let (pair, rest) = result.split_last().expect("a dimension of the pair");
                self.keep_whole(&[*pair]);
                for i in 0..2 {
                    let src = self.operand(op, i);
                    self.same(&src, rest);
                }
            }
            K::Split => {
                let src = self.operand(op, 0);
                let (pair, rest) = src.split_last().expect("a dimension of the pair");
                self.keep_whole(&[*pair]);
                for &r in m.results(op) {
                    let result = self.value(r);
                    self.same(&result, rest);
                }
            }
            K::Dot => {
                let (a, b, c) = (self.operand(op, 0), self.operand(op, 1), self.operand(op, 2));
                let d = self.value(m.result(op));
                self.same(&c, &d);
                let r = d.len();
                self.same(&a[..r - 1], &d[..r - 1]);
                self.same(&b[..r - 2], &d[..r - 2]);
                self.same_dim(b[r - 1], d[r - 1]);
                self.same_dim(a[r - 1], b[r - 2]);
                self.keep_whole(&a[r - 1..]);
            }
            K::Reduce => {
                let axis = tt::Reduce(op).axis(m) as usize;
                let srcs: Vec<_> = (0..m.operands(op).len()).map(|i| self.operand(op, i)).collect();
                for (src, &result) in srcs.iter().zip(m.results(op)) {
                    self.same(&srcs[0].clone(), src);
                    let result = self.value(result);
                    let mut rest = src.clone();
                    rest.remove(axis);
                    self.same(&rest, &result);
                }
                self.combined[srcs[0][axis]] = true;
            }
            K::Scan => {
                self.all_same(op);
                let axis = tt::Scan(op).axis(m) as usize;
                let src = self.operand(op, 0);
                self.keep_whole(&src[axis..=axis]);
            }
            K::Gather => {
                let axis = tt::Gather(op).axis(m) as usize;
                let (src, indices) = (self.operand(op, 0), self.operand(op, 1));
                let result = self.value(m.result(op));
                self.same(&indices, &result);
                for d in (0..src.len()).filter(|&d| d != axis) {
                    self.same_dim(src[d], result[d]);
                }
                self.keep_whole(&src[axis..=axis]);
            }
            K::Histogram => {
                let src = self.operand(op, 0);
                if m.operands(op).len() > 1 {
                    let mask = self.operand(op, 1);
                    self.same(&src, &mask);
                }
                self.combined[src[0]] = true;
                let result = self.value(m.result(op));
                self.keep_whole(&result);
            }
            K::DescriptorLoad => {
                let (block, result) = (self.operand(op, 0), self.value(m.result(op)));
                self.block(&block, &result);
            }
            K::DescriptorStore | K::DescriptorReduce => {
                let (block, src) = (self.operand(op, 0), self.operand(op, 1));
                self.block(&block, &src);
            }
            K::DescriptorGather => {
                let (block, rows) = (self.operand(op, 0), self.operand(op, 1));
                let result = self.value(m.result(op));
                self.same_dim(rows[0], result[0]);
                self.same_dim(block[1], result[1]);
            }
            K::DescriptorScatter => {
                let (block, rows, src) = (self.operand(op, 0), self.operand(op, 1), self.operand(op, 3));
                self.same_dim(rows[0], src[0]);
                self.same_dim(block[1], src[1]);
            }
            _ if m.has_trait(op, Trait::Elementwise) => self.all_same(op),
            // What is printed is printed whole; a concatenation mixes its elements.
            _ => {
                for i in 0..m.operands(op).len() {
                    let dims = self.operand(op, i);
                    self.keep_whole(&dims);
                }
                for &result in m.results(op) {
                    let dims = self.value(result);
                    self.keep_whole(&dims);
                }
            }
        }
        Ok(())
    }

    /// A tile may lack the leading dimensions of extent 1 of the descriptor's block.
    fn block(&mut self, block: &[Dim], tile: &[Dim]) {
        let skipped = block.len().saturating_sub(tile.len());
        self.same(&block[skipped..], tile);
    }

    /// Where a run of dimensions becomes a run of as many elements, halves of the outermost are halves of the outermost.
    fn reshaped(&mut self, from: &[Dim], to: &[Dim]) {
        let (mut i, mut j) = (0, 0);
        while i < from.len() || j < to.len() {
            let (first_i, first_j) = (i, j);
            let (mut left, mut right) = (1u64, 1u64);
            loop {
                if left <= right && i < from.len() {
                    left *= u64::from(self.extents[from[i]]);
                    i += 1;
                } else if j < to.len() {
                    right *= u64::from(self.extents[to[j]]);
                    j += 1;
                } else if i < from.len() {
                    left *= u64::from(self.extents[from[i]]);
                    i += 1;
                }
                if left == right || (i == from.len() && j == to.len()) {
                    break;
                }
            }
            let long = |dims: &Dims<'_>, of: &[Dim]| of.iter().position(|&d| dims.extents[d] > 1);
            let (a, b) = (&from[first_i..i], &to[first_j..j]);
            if let (Some(x), Some(y)) = (long(self, a), long(self, b)) {
                self.same_dim(a[x], b[y]);
                self.keep_whole(&a[x + 1..]);
                self.keep_whole(&b[y + 1..]);
            }
        }
    }
}
