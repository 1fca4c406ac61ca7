//! The vector work of a kernel on both kinds of cores is shared out over the two vector cores that go with a cube core.
//!
//! Both run the same instructions; each has one half of a buffer in UB, along a dimension along which nothing goes from one half to the other. Which dimension that is one buffer
//! says of the next: an instruction that works element by element has the same for all its operands, a reduction any but its own. Buffers for which there is none are whole in both cores. What is
//! loaded and stored is a half of the block, and of a whole buffer the first core alone stores. Flags stay what they are: one that the cube core raises both vector cores wait for,
//! and it waits for those of both.
//!
//! ```text
//! %a = ttg.local_alloc : () -> !ttg.memdesc<64x32xf32, …>           %a = ttg.local_alloc : () -> !ttg.memdesc<32x32xf32, …>
//! hivm.hir.load ins(%w) outs(%a)                              =>    %p = memref.subview %w[%i * 32, 0] [32, 32] [1, 1] ; hivm.hir.load ins(%p) outs(%a)
//! hivm.hir.vexp ins(%a) outs(%a)                                    hivm.hir.vexp ins(%a) outs(%a)
//! ```
//!
//! Whoever goes element by element with the scalar unit through global memory, or holds a lock, has one vector core.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::dialect::hivm::{self, CoreType as Core, Kind as H};
use tilewright_ir::dialect::{arith, hivm_more, memref, tt, ttg};
use tilewright_ir::memref::MemRef;
use tilewright_ir::{Builder, Module, Op, Opcode, Type, TypeKind, Value, ascend};

use super::effects::{core_of, cores, space};

/// What of a buffer a vector core has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Split {
    Whole,
    /// One half along this dimension.
    Along(usize),
}

/// What came of it.
#[derive(Default)]
pub(super) struct Shared {
    /// The functions that run on two vector cores.
    pub functions: FxHashSet<Op>,
    /// What is in the workspace and one of the vector cores writes, and the other one reads.
    pub crossed: FxHashSet<Value>,
    /// Their names.
    pub names: FxHashSet<String>,
    /// In words.
    pub report: String,
}

/// Shares out the vector work of every function that runs on both kinds of cores.
pub(super) fn run(module: &mut Module) -> Shared {
    let mut shared = Shared::default();
    let functions: Vec<tt::Func> =
        module.block_ops(module.body()).filter_map(|op| tt::Func::cast(module, op)).collect();
    for func in functions {
        if cores(module, func.0).len() < 2 {
            continue;
        }
        let ops = module.all_ops(func.0);
        let mut halves = Halves { m: module, ops, split: FxHashMap::default(), order: Vec::new() };
        match halves.settle() {
            Ok(()) => {
                shared.crossed.extend(halves.crossed());
                halves.rewrite(func);
                shared.functions.insert(func.0);
                shared.names.extend(module.symbol_name(func.0).map(str::to_string));
                shared.report.push_str("vectors: on both vector cores of a block\n");
            }
            Err(why) => shared.report.push_str(&format!("vectors: on one vector core of a block: {why}\n")),
        }
    }
    shared
}

type Result<T> = std::result::Result<T, String>;

/// How dimensions of two buffers go together: those that are halved in the one are in the other.
struct Link {
    from: Value,
    to: Value,
    /// For each dimension of the first: that of the second.
    dims: Vec<Option<usize>>,
    /// Whether the first may be whole where the second is halved along a dimension that it has not.
    spreads: bool,
}

struct Halves<'m> {
    m: &'m mut Module,
    /// All operations of the function.
    ops: Vec<Op>,
    split: FxHashMap<Value, Split>,
    /// What was settled, in order.
    order: Vec<Value>,
}

impl Halves<'_> {
    // ---- what is halved ----------------------------------------------------------------------------------------

    /// Finds out for all buffers in UB.
    fn settle(&mut self) -> Result<()> {
        for &op in &self.ops.clone() {
            if core_of(self.m, op) != Some(Core::Vector) {
                continue;
            }
            let name = || self.m.op_name(op).to_string();
            match self.m.opcode(op) {
                Some(Opcode::HivmMore(hivm_more::Kind::SyncBlock)) => {
                    return Err("programs wait for each other".into());
                }
                Some(Opcode::HivmMore(_)) => return Err("it holds a lock".into()),
                Some(Opcode::Memref(memref::Kind::Store)) if !self.is_local(self.m.operands(op)[1]) => {
                    return Err("its scalar unit writes to global memory".into());
                }
                Some(Opcode::Memref(_)) => {}
                Some(Opcode::Hivm(kind)) if is_known(kind) => {}
                _ => return Err(format!("`{}` is not shared out", name())),
            }
        }
        let mut buffers: Vec<Value> = (self.ops.iter())
            .filter_map(|&op| ttg::LocalAlloc::cast(self.m, op))
            .map(|alloc| alloc.result(self.m))
            .filter(|&v| self.is_local(v))
            .collect();
        // What others say most about comes first.
        let elements = |v: &Value| self.shape(*v).iter().map(|&n| u64::from(n)).product::<u64>();
        buffers.sort_by_key(|v| std::cmp::Reverse(elements(v)));
        for buffer in buffers {
            let dims = 0..self.shape(buffer).len();
            let choices = dims.map(Split::Along).chain([Split::Whole]);
            let known = self.split.contains_key(&buffer);
            if !known && !choices.into_iter().any(|choice| self.attempt(buffer, choice)) {
                return Err("a buffer has no halves, and is not whole".into());
            }
        }
        match self.split.values().any(|s| matches!(s, Split::Along(_))) {
            true => Ok(()),
            false => Err("nothing of what vectors compute has halves".into()),
        }
    }

    /// Takes a buffer to be split so, with all that follows from that; nothing has changed where that leads to no good.
    fn attempt(&mut self, buffer: Value, choice: Split) -> bool {
        let settled = self.order.len();
        let mut work = vec![(buffer, choice)];
        while let Some((v, choice)) = work.pop() {
            match self.split.get(&v) {
                Some(&known) if known == choice => continue,
                None if self.allows(v, choice) => {}
                _ => {
                    self.forget(settled);
                    return false;
                }
            }
            self.split.insert(v, choice);
            self.order.push(v);
            let around = self.m.uses(v).iter().map(|u| u.op).chain(self.m.defining_op(v));
            for op in around.collect::<Vec<_>>() {
                let Some(found) = self.follows(op, v, choice) else {
                    self.forget(settled);
                    return false;
                };
                work.extend(found);
            }
        }
        true
    }

    /// What was settled after the first so many is not.
    fn forget(&mut self, settled: usize) {
        for v in self.order.drain(settled..) {
            self.split.remove(&v);
        }
    }

    /// Whether a view may be split so, whatever others are.
    fn allows(&self, v: Value, choice: Split) -> bool {
        let Split::Along(d) = choice else { return true };
        let even = match MemRef::space_of(self.m, v) {
            // A part: what it is of says so.
            Some(_) if !self.is_buffer(v) => true,
            _ => self.shape(v).get(d).is_some_and(|n| n.is_multiple_of(2)),
        };
        let taken = |op: Op| match self.m.opcode(op) {
            Some(Opcode::Memref(memref::Kind::Load | memref::Kind::Store)) => false,
            Some(Opcode::Ttg(ttg::Kind::MemdescSubslice | ttg::Kind::MemdescSubview)) => false,
            Some(Opcode::Hivm(H::Vreduce)) => {
                self.m.operands(op)[0] != v || !hivm::Vreduce(op).dims(self.m).contains(&(d as i64))
            }
            Some(Opcode::Hivm(H::Vgather)) => {
                let axis = hivm::Vgather(op).axis(self.m).filter(|&axis| axis >= 0);
                axis.map_or(self.rank(v) - 1, |axis| axis as usize) != d
            }
            Some(Opcode::Hivm(kind)) => !scanned(self.m, op, kind).contains(&(d as i64)),
            _ => true,
        };
        even && self.m.uses(v).iter().all(|u| taken(u.op)) && self.m.defining_op(v).is_none_or(taken)
    }

    /// What follows of a buffer for others of an operation; none where the operation cannot have it so.
    fn follows(&self, op: Op, v: Value, choice: Split) -> Option<Vec<(Value, Split)>> {
        let mut found = Vec::new();
        for link in self.links(op) {
            let back = |e: usize| link.dims.iter().position(|&d| d == Some(e));
            let (other, partner) = match choice {
                Split::Whole if link.from == v && link.spreads => continue,
                Split::Whole if link.from == v => (link.to, Split::Whole),
                Split::Whole if link.to == v => (link.from, Split::Whole),
                Split::Along(d) if link.from == v => (link.to, Split::Along(link.dims[d]?)),
                Split::Along(e) if link.to == v => match back(e) {
                    Some(d) => (link.from, Split::Along(d)),
                    None if link.spreads => (link.from, Split::Whole),
                    None => return None,
                },
                _ => continue,
            };
            found.push((other, partner));
        }
        Some(found)
    }

    /// How the dimensions of an operation's views in UB go together.
    fn links(&self, op: Op) -> Vec<Link> {
        let m = &*self.m;
        let local = |v: &&Value| self.is_local(**v);
        let same = |from: Value, to: Value| {
            let dims = (0..self.rank(from)).map(Some).collect();
            Link { from, to, dims, spreads: false }
        };
        match m.opcode(op) {
            Some(Opcode::Ttg(ttg::Kind::MemdescReshape | ttg::Kind::MemdescReinterpret)) => {
                let (from, to) = (m.operands(op)[0], m.result(op));
                if !self.is_local(from) {
                    return Vec::new();
                }
                vec![Link { from, to, dims: reshaped(&self.shape(from), &self.shape(to)), spreads: false }]
            }
            Some(Opcode::Memref(memref::Kind::Subview)) => {
                let (from, to) = (m.operands(op)[0], m.result(op));
                if !self.is_local(from) {
                    return Vec::new();
                }
                vec![Link { from, to, dims: self.taken_whole(memref::Subview(op)), spreads: false }]
            }
            Some(Opcode::Hivm(kind)) if core_of(m, op) == Some(Core::Vector) => {
                let operands: Vec<Value> = m.operands(op).iter().filter(local).copied().collect();
                let Some((&out, ins)) = operands.split_last() else { return Vec::new() };
                let link = |&from: &Value| match kind {
                    H::Vtranspose => {
                        let order = hivm::Vtranspose(op).permutation(m).unwrap_or_default();
                        let to = |d: usize| order.iter().position(|&o| o == d as i64);
                        let dims = (0..self.rank(from)).map(to).collect();
                        Link { from, to: out, dims, spreads: false }
                    }
                    H::Vbrc => {
                        let spread = hivm::Vbrc(op).broadcast_dims(m).unwrap_or_default();
                        let to = |d: usize| (!spread.contains(&(d as i64))).then_some(d);
                        let dims = (0..self.rank(from)).map(to).collect();
                        Link { from, to: out, dims, spreads: true }
                    }
                    _ => same(from, out),
                };
                ins.iter().map(link).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The dimensions of which a part has everything, or of which a copy takes what it has.
    fn taken_whole(&self, part: memref::Subview) -> Vec<Option<usize>> {
        let m = &*self.m;
        // What is copied from or to global memory is halved where it is copied.
        let copied = |op: Op| {
            let operands = m.operands(op);
            matches!(m.opcode(op), Some(Opcode::Hivm(H::Load | H::Store)))
                && operands.len() == 2
                && operands.iter().any(|&v| !self.is_local(v))
        };
        let of_copies = m.uses(part.result(m)).iter().all(|u| copied(u.op));
        let (shape, strides) = (self.shape(part.src(m)), part.strides(m));
        let constants = [part.offsets(m), part.sizes(m)]
            .map(|list| list.iter().map(|&v| m.constant_int(v)).collect::<Vec<_>>());
        let whole = |d: usize| {
            let all = constants[0][d] == Some(0) && constants[1][d] == Some(i64::from(shape[d]));
            let every = m.constant_int(strides[d]) == Some(1);
            (every && (all || of_copies)).then_some(d)
        };
        (0..shape.len()).map(whole).collect()
    }

    // ---- what views are ----------------------------------------------------------------------------------------

    fn is_local(&self, v: Value) -> bool {
        space(self.m, v) == ascend::by_attribute(ascend::UB).map_or("", |s| s.name)
    }

    fn is_buffer(&self, v: Value) -> bool {
        matches!(self.m.type_kind(self.m.value_type(v)), TypeKind::MemDesc { .. })
    }

    fn shape(&self, v: Value) -> Vec<u32> {
        match self.m.defining_op(v).and_then(|d| memref::Subview::cast(self.m, d)) {
            Some(part) => vec![0; part.sizes(self.m).len()],
            None => self.m.shape(self.m.value_type(v)).unwrap_or(&[]).to_vec(),
        }
    }

    fn rank(&self, v: Value) -> usize {
        self.shape(v).len()
    }

    /// What one of the vector cores writes to the workspace, and the other one reads.
    fn crossed(&self) -> Vec<Value> {
        let shared = self.ops.iter().filter_map(|&op| ttg::LocalAlloc::cast(self.m, op));
        let shared = shared.map(|a| a.result(self.m)).filter(|&v| space(self.m, v) == ascend::GLOBAL.name);
        let crosses = |&v: &Value| {
            let mut found = Vec::new();
            let mut written = false;
            for used in self.m.uses(v) {
                match self.m.opcode(used.op) {
                    Some(Opcode::Memref(memref::Kind::Load)) => found.push(Split::Whole),
                    Some(Opcode::Hivm(H::Load | H::Store)) => {
                        let (local, _) = self.ends(used.op);
                        found.push(self.split_of(local));
                        written |= hivm::Store::cast(self.m, used.op).is_some();
                    }
                    _ => {}
                }
            }
            written && found.len() > 1 && found.iter().any(|&s| s == Split::Whole || s != found[0])
        };
        shared.filter(crosses).collect()
    }

    fn split_of(&self, v: Value) -> Split {
        self.split.get(&v).copied().unwrap_or(Split::Whole)
    }

    /// The view in UB of a copy, and that in global memory.
    fn ends(&self, op: Op) -> (Value, Value) {
        let operands = self.m.operands(op);
        match hivm::Load::cast(self.m, op) {
            Some(_) => (operands[1], operands[0]),
            None => (operands[0], operands[1]),
        }
    }

    // ---- the halves --------------------------------------------------------------------------------------------

    /// Makes the halves of what is settled.
    fn rewrite(&mut self, func: tt::Func) {
        let entry = self.m.region_block(func.body(self.m));
        let Some(first) = self.m.first_op(entry) else { return };
        let mut b = Builder::before(self.m, first);
        let number = hivm::GetSubBlockIdx::build(&mut b, Type::I64).result(b.module);
        let number = arith::IndexCast::build(&mut b, number, Type::INDEX).out(b.module);
        // Before types change: what is copied, and where.
        for op in self.ops.clone() {
            match self.m.opcode(op) {
                Some(Opcode::Hivm(H::Load | H::Store)) => self.copy(op, number),
                Some(Opcode::Hivm(H::Varange)) => self.count_on(hivm::Varange(op), number),
                _ => {}
            }
        }
        for op in self.ops.clone() {
            if let Some(part) = memref::Subview::cast(self.m, op) {
                self.half_of_part(part);
            }
        }
        for (&v, &split) in &self.split {
            let Split::Along(d) = split else { continue };
            let mut kind = self.m.type_kind(self.m.value_type(v)).clone();
            if let TypeKind::MemDesc { shape, .. } = &mut kind {
                shape[d] /= 2;
                let ty = self.m.ty(kind);
                self.m.set_value_type(v, ty);
            }
        }
    }

    /// A copy between UB and global memory: of a half of what it was, or of nothing in the second core where that is whole and stored.
    fn copy(&mut self, op: Op, number: Value) {
        let (local, global) = self.ends(op);
        let part = self.m.defining_op(local).and_then(|d| memref::Subview::cast(self.m, d));
        let buffer = part.map_or(local, |part| part.src(self.m));
        let shape = self.shape(buffer);
        let m = &mut *self.m;
        let split = self.split.get(&local).copied().unwrap_or(Split::Whole);
        let mut b = Builder::before(m, op);
        let (mut offsets, mut sizes) = match part {
            Some(part) => (part.offsets(b.module).to_vec(), part.sizes(b.module).to_vec()),
            None => {
                let zero = b.int(0, Type::INDEX);
                (vec![zero; shape.len()], shape.iter().map(|&n| b.int(i64::from(n), Type::INDEX)).collect())
            }
        };
        let zero = b.int(0, Type::INDEX);
        let mut of_global = vec![zero; shape.len()];
        match split {
            Split::Whole if hivm::Load::cast(b.module, op).is_some() => return,
            Split::Whole => {
                let is_first = arith::Cmpi::build(&mut b, number, zero, arith::CmpIPredicate::Eq, Type::I1)
                    .result(b.module);
                sizes[0] = arith::Select::build(&mut b, is_first, sizes[0], zero).result(b.module);
            }
            Split::Along(d) => {
                let half = b.int(i64::from(shape[d] / 2), Type::INDEX);
                let base = arith::Muli::build(&mut b, number, half).result(b.module);
                if part.is_none() {
                    (sizes[d], of_global[d]) = (half, base);
                } else {
                    // From the first element of the block on: where this half begins and ends.
                    let begin = arith::Subi::build(&mut b, base, offsets[d]).result(b.module);
                    let end = arith::Addi::build(&mut b, begin, half).result(b.module);
                    let [begin, end] = [begin, end].map(|at| within(&mut b, at, zero, sizes[d]));
                    let skipped = arith::Addi::build(&mut b, offsets[d], begin).result(b.module);
                    let own = arith::Subi::build(&mut b, skipped, base).result(b.module);
                    // (Where nothing is left it is anywhere in the half.)
                    offsets[d] = within(&mut b, own, zero, half);
                    sizes[d] = arith::Subi::build(&mut b, end, begin).result(b.module);
                    of_global[d] = begin;
                }
            }
        }
        let view = |b: &mut Builder<'_>, of: Value, offsets: &[Value]| {
            let (rank, element) = (sizes.len(), b.module.element_type(b.module.value_type(of)));
            let name = space(b.module, of);
            let space = ascend::SPACES.iter().find(|s| s.name == name).unwrap_or(&ascend::GLOBAL);
            let ty = MemRef { shape: vec![None; rank], element, strided: true, space }.ty(b.module);
            let ones = vec![b.int(1, Type::INDEX); rank];
            memref::Subview::build(b, of, offsets, &sizes, &ones, None, None, None, ty).result(b.module)
        };
        let whole = matches!(split, Split::Along(_)) && part.is_none();
        let (own, there) =
            (if whole { local } else { view(&mut b, buffer, &offsets) }, view(&mut b, global, &of_global));
        let at = |v: Value| if v == local { own } else { there };
        let operands: Vec<Value> = self.m.operands(op)[..2].iter().map(|&v| at(v)).collect();
        operands.into_iter().enumerate().for_each(|(group, v)| self.m.set_operand_group(op, group, &[v]));
    }

    /// A range that begins where the half does.
    fn count_on(&mut self, range: hivm::Varange, number: Value) {
        let out = range.out(self.m);
        let Split::Along(d) = self.split_of(out) else { return };
        let (half, stride) = (self.shape(out)[d] / 2, range.strides(self.m)[d]);
        let mut b = Builder::before(self.m, range.0);
        let half = b.int(i64::from(half), Type::INDEX);
        let passed = arith::Muli::build(&mut b, number, half).result(b.module);
        let passed = arith::Muli::build(&mut b, passed, stride).result(b.module);
        let offset = range.offset(b.module).unwrap_or_else(|| b.int(0, Type::INDEX));
        let offset = arith::Addi::build(&mut b, offset, passed).result(b.module);
        let group =
            b.module.def(range.0).and_then(|def| def.operands.iter().position(|o| o.name == "offset"));
        if let Some(group) = group {
            self.m.set_operand_group(range.0, group, &[offset]);
        }
    }

    /// A part that has everything along the dimension that is halved.
    fn half_of_part(&mut self, part: memref::Subview) {
        let (src, result) = (part.src(self.m), part.result(self.m));
        let (Split::Along(d), Some(Split::Along(_))) = (self.split_of(src), self.split.get(&result)) else {
            return;
        };
        let half = self.m.shape(self.m.value_type(src)).unwrap_or(&[])[d] / 2;
        let mut sizes = part.sizes(self.m).to_vec();
        sizes[d] = Builder::before(self.m, part.0).int(i64::from(half), Type::INDEX);
        self.m.set_operand_group(part.0, 2, &sizes);
    }
}

/// A number brought between two others.
fn within(b: &mut Builder<'_>, n: Value, from: Value, to: Value) -> Value {
    let n = arith::Maxsi::build(b, n, from).result(b.module);
    arith::Minsi::build(b, n, to).result(b.module)
}

/// For each dimension of a shape, the one of another shape with as many elements that is halved along with it: the same number of elements are around both.
fn reshaped(from: &[u32], to: &[u32]) -> Vec<Option<usize>> {
    let around = |shape: &[u32], d: usize| shape[..d].iter().map(|&n| u64::from(n)).product::<u64>();
    let partner = |d: usize| {
        (0..to.len()).find(|&e| to[e] > 1 && to[e].is_multiple_of(2) && around(to, e) == around(from, d))
    };
    (0..from.len()).map(|d| if from[d] > 1 { partner(d) } else { None }).collect()
}

/// The dimensions that a scan goes along.
fn scanned(m: &Module, op: Op, kind: H) -> Vec<i64> {
    match kind {
        H::Vcumsum => hivm::Vcumsum(op).dims(m),
        H::Vcumprod => hivm::Vcumprod(op).dims(m),
        H::Vcummax => hivm::Vcummax(op).dims(m),
        H::Vcummin => hivm::Vcummin(op).dims(m),
        _ => Vec::new(),
    }
}

/// The instructions of which it is known what goes where: those whose operands have one shape but for [`Halves::links`].
fn is_known(kind: H) -> bool {
    use H::*;
    matches!(
        kind,
        Load | Store
            | Copy
            | Vadd
            | Vsub
            | Vmul
            | Vdiv
            | Vmax
            | Vmin
            | Vand
            | Vor
            | Vxor
            | Vnot
            | Vexp
            | Vexp2
            | Vln
            | Vlog2
            | Vsin
            | Vcos
            | Vtanh
            | Verf
            | Vsqrt
            | Vrsqrt
            | Vabs
            | Vcast
            | Vcmp
            | Vsel
            | Vbrc
            | Varange
            | Vreduce
            | Vtranspose
            | Vgather
            | Vcumsum
            | Vcumprod
            | Vcummax
            | Vcummin
    )
}
