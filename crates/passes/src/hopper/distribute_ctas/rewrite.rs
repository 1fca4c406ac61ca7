//! Shrinks the tiles of a function to the part of one CTA.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tilewright_ir::dialect::{arith, scf, tt, ttg, ttng};
use tilewright_ir::index::{Index, Part, Relation};
use tilewright_ir::marks;
use tilewright_ir::opdef::{Access, OpDef, Resource};
use tilewright_ir::{AttrKind, Builder, Diagnostic, Module, Op, Opcode, Type, TypeKind, Value, ValueDef};

use super::choose::{Bits, Split, Splits};
use super::dims::shape_of;
use crate::hopper::encode_descriptors::update_signature;
use crate::hopper::multicast;
use crate::parts;

/// Rewrites a function whose operations are `ops`.
pub(super) fn run(
    module: &mut Module,
    func: Op,
    ops: &[Op],
    splits: &Splits,
    num_ctas: u32,
) -> Result<(), Diagnostic> {
    let Some(&entry) = module.region_blocks(tt::Func(func).body(module)).first() else { return Ok(()) };
    let Some(first) = module.first_op(entry) else { return Ok(()) };
    let rank = ttng::ClusterCtaRank::build(&mut Builder::before(module, first), Type::I32);
    let rank_value = rank.result(module);
    let mut rewriter = Rewriter {
        m: module,
        splits,
        rank: rank_value,
        first,
        num_ctas,
        parts: FxHashMap::default(),
        leaders: FxHashMap::default(),
        computed: FxHashMap::default(),
        operands: FxHashMap::default(),
    };
    // What the operations want of free operands is made of operations as they were.
    for &op in ops {
        rewriter.operands(op);
    }
    let args = rewriter.m.block_args(entry).to_vec();
    rewriter.shrink(&args);
    for &op in ops {
        if op == func {
            continue;
        }
        let free = rewriter.m.results(op).first().is_some_and(|&r| splits.is_free(r));
        if !free {
            rewriter.op(op)?;
        }
    }
    update_signature(module, func, entry);
    Ok(())
}

struct Rewriter<'m> {
    m: &'m mut Module,
    splits: &'m Splits,
    /// The CTA's rank in its cluster.
    rank: Value,
    /// The function's first operation but for the rank: what depends on the rank alone goes before it.
    first: Op,
    num_ctas: u32,
    /// The index of this CTA's part, by the bits of the rank that say it.
    parts: FxHashMap<Bits, Value>,
    /// Whether this CTA is the leader of those that differ from it in these bits of the rank alone.
    leaders: FxHashMap<u32, Value>,
    /// How the operands of each operation are split; what stands for them changes.
    operands: FxHashMap<(Op, usize), Split>,
    /// Free values for their uses.
    computed: FxHashMap<(Value, Split), Value>,
}

fn parts_of(split: &Split, shape: &[u32]) -> SmallVec<[u32; 4]> {
    shape.iter().enumerate().map(|(d, &n)| split.get(d).map_or(n, |bits| n >> bits.len())).collect()
}

/// The extents of parts, of the dimensions that are split.
fn is_split(split: &Split, parts: &[u32]) -> Vec<Option<u32>> {
    parts.iter().enumerate().map(|(d, &n)| split.get(d).filter(|bits| !bits.is_empty()).map(|_| n)).collect()
}

impl Rewriter<'_> {
    /// Index of this CTA's part among those that the bits tell apart.
    fn part(&mut self, bits: &Bits) -> Value {
        if let Some(&known) = self.parts.get(bits) {
            return known;
        }
        let mut b = Builder::before(self.m, self.first);
        let mut index = None;
        for (at, &bit) in bits.iter().enumerate() {
            let (shift, one, to) = (b.i32(i32::from(bit)), b.i32(1), b.i32(at as i32));
            let moved = arith::Shrui::build(&mut b, self.rank, shift).result(b.module);
            let own = arith::Andi::build(&mut b, moved, one).result(b.module);
            let own = arith::Shli::build(&mut b, own, to).result(b.module);
            index = Some(match index {
                None => own,
                Some(sum) => arith::Addi::build(&mut b, sum, own).result(b.module),
            });
        }
        let index = index.expect("one bit or more");
        self.parts.insert(bits.clone(), index);
        index
    }

    /// Where this CTA's part of `extent` elements each begins.
    fn begin(&mut self, bits: &Bits, extent: u32) -> Value {
        let part = self.part(bits);
        let mut b = Builder::before(self.m, self.first);
        let extent = b.i32(extent as i32);
        arith::Muli::build(&mut b, part, extent).result(b.module)
    }

    /// The bits of the rank that tell no parts apart: CTAs that differ in them alone have the same.
    fn unused(&self, splits: &[Split]) -> u32 {
        let used = splits.iter().flatten().flatten().fold(0, |mask, &bit| mask | 1 << bit);
        (self.num_ctas - 1) & !used
    }

    /// Whether this CTA is the leader of those that have the same.
    fn is_leader(&mut self, unused: u32) -> Value {
        if let Some(&known) = self.leaders.get(&unused) {
            return known;
        }
        let mut b = Builder::before(self.m, self.first);
        let (mask, zero) = (b.i32(unused as i32), b.i32(0));
        let others = arith::Andi::build(&mut b, self.rank, mask).result(b.module);
        let first = arith::Cmpi::build(&mut b, others, zero, arith::CmpIPredicate::Eq, Type::I1);
        let first = first.result(b.module);
        self.leaders.insert(unused, first);
        first
    }

    // ---- free values -----------------------------------------------------------------------------------------------

    /// Gives an operation the parts of its free operands.
    fn operands(&mut self, op: Op) {
        if self.m.results(op).first().is_some_and(|&r| self.splits.is_free(r)) {
            return;
        }
        for i in 0..self.m.operands(op).len() {
            let value = self.m.operands(op)[i];
            let split = self.splits.operand(self.m, op, i);
            if self.splits.is_free(value) {
                let part = self.compute(value, &split);
                self.m.set_operand(op, i, part);
            }
            self.operands.insert((op, i), split);
        }
    }

    /// The part of a free value: what it is made of is computed anew for it.
    fn compute(&mut self, value: Value, split: &Split) -> Value {
        if split.iter().all(|bits| bits.is_empty()) || !self.splits.is_free(value) {
            return value;
        }
        if let Some(&known) = self.computed.get(&(value, split.clone())) {
            return known;
        }
        let op = self.m.defining_op(value).expect("an operation makes it");
        let shape = shape_of(self.m, value).expect("a tensor").to_vec();
        let parts = parts_of(split, &shape);
        let mut map = FxHashMap::default();
        // Each dimension of an operand is split as that of the result which shows the same axis.
        let relation = Relation::of(self.m, op).expect("verified shapes");
        let of_result = relation.results[0].as_ref().map(|s| s.dims.clone()).unwrap_or_default();
        for (i, site) in relation.operands.iter().enumerate() {
            let Some(site) = site else { continue };
            let as_result = |part: &Option<Part>| {
                let at = part.and_then(|_| of_result.iter().position(|d| d == part));
                at.map_or_else(Bits::new, |d| split[d].clone())
            };
            let wanted: Split = site.dims.iter().map(as_result).collect();
            let operand = self.m.operands(op)[i];
            let part = self.compute(operand, &wanted);
            map.insert(operand, part);
        }
        let ty = self.m.value_type(value);
        let element = self.m.element_type(ty);
        let part_type = self.m.tensor_type(&parts, element, None);
        let begin = matches!(self.m.opcode(op), Some(Opcode::Tt(tt::Kind::MakeRange)))
            .then(|| self.begin(&split[0], parts[0]));
        let clone = self.m.clone_op(op, &mut map);
        self.m.insert_after(clone, op);
        let mut result = self.m.result(clone);
        self.m.set_value_type(result, part_type);
        parts::clamp_hints(self.m, clone, &is_split(split, &parts));
        if let Some(begin) = begin {
            let start = tt::MakeRange(op).start(self.m);
            self.m.set_i32_attr(clone, "end", start + parts[0] as i32);
            let mut b = Builder::after(self.m, clone);
            let begin = tt::Splat::build(&mut b, begin, part_type).result(b.module);
            result = arith::Addi::build(&mut b, result, begin).result(b.module);
        } else if let Some(AttrKind::Splat(number, _)) =
            self.m.op_attr(clone, "value").map(|a| self.m.attr_kind(a).clone())
        {
            let attr = self.m.attr(AttrKind::Splat(number, part_type));
            self.m.set_attr(clone, "value", attr);
        }
        self.computed.insert((value, split.clone()), result);
        result
    }

    // ---- everything else -------------------------------------------------------------------------------------------

    /// Gives values the types of their parts.
    fn shrink(&mut self, values: &[Value]) {
        for &value in values {
            let split = self.splits.value(value);
            if split.iter().all(|bits| bits.is_empty()) {
                continue;
            }
            let ty = self.m.value_type(value);
            let descriptor = matches!(self.m.type_kind(ty), TypeKind::TensorDesc { .. });
            let shape = shape_of(self.m, value).expect("a tensor or descriptor").to_vec();
            let element = match self.m.type_kind(ty) {
                TypeKind::TensorDesc { block } => self.m.element_type(*block),
                _ => self.m.element_type(ty),
            };
            let part = self.m.tensor_type(&parts_of(&split, &shape), element, None);
            let part = if descriptor { self.m.ty(TypeKind::TensorDesc { block: part }) } else { part };
            self.m.set_value_type(value, part);
        }
    }

    fn op(&mut self, op: Op) -> Result<(), Diagnostic> {
        let of = |s: &Self, i: usize| s.operands.get(&(op, i)).cloned().unwrap_or_default();
        let results = self.m.results(op).to_vec();
        let kind = self.m.opcode(op);
        // What the block of an access is split by, before the types change.
        let block = match self.m.def(op).map(|d| d.index) {
            Some(Index::Block(desc, _) | Index::Rows(desc, ..)) => {
                // The descriptor is defined before and has its new type.
                let at = self.group(op, desc);
                let shape = shape_of(self.m, self.m.operands(op)[at]).unwrap_or(&[]).to_vec();
                Some((of(self, at), shape))
            }
            _ => None,
        };
        self.shrink(&results);
        for region in self.m.regions(op).to_vec() {
            for block in self.m.region_blocks(region).to_vec() {
                let args = self.m.block_args(block).to_vec();
                self.shrink(&args);
            }
        }
        if let Some(&result) = results.first() {
            let split = self.splits.value(result);
            if let Some(parts) = shape_of(self.m, result) {
                let parts = parts.to_vec();
                parts::clamp_hints(self.m, op, &is_split(&split, &parts));
            }
        }
        if let Some((split, parts)) = block {
            self.move_block(op, &split, &parts);
        }
        match kind {
            Some(Opcode::Tt(tt::Kind::DescriptorLoad)) => {
                let unused = self.unused(&[of(self, 0)]);
                if unused != 0 {
                    self.m.set_i32_attr(op, marks::MULTICAST, unused as i32);
                }
            }
            Some(Opcode::Tt(tt::Kind::Reduce)) => {
                let axis = tt::Reduce(op).axis(self.m) as usize;
                let split = of(self, 0);
                self.combine(tt::Reduce(op), &split[axis].clone())?;
            }
            Some(Opcode::Tt(tt::Kind::Histogram)) => {
                let bits = of(self, 0)[0].clone();
                self.combine_counts(op, &bits);
            }
            Some(Opcode::Tt(tt::Kind::Store)) => {
                let unused = self.unused(&[of(self, 0)]);
                self.wait_for_loads(op, unused);
                self.store_once(op, unused, 2);
            }
            Some(Opcode::Tt(tt::Kind::AtomicRmw)) => {
                let unused = self.unused(&[of(self, 0)]);
                self.atomic(op, unused);
            }
            Some(Opcode::Tt(tt::Kind::AtomicCas)) => {
                let unused = self.unused(&[of(self, 0)]);
                self.atomic_cas(op, unused);
            }
            Some(Opcode::Tt(
                tt::Kind::DescriptorStore | tt::Kind::DescriptorReduce | tt::Kind::DescriptorScatter,
            )) => {
                let tile = self.group(op, "src");
                let unused = self.unused(&[of(self, tile)]);
                self.wait_for_loads(op, unused);
                self.only_one(op, unused);
            }
            Some(Opcode::Tt(tt::Kind::Print)) => {
                let unused = self.unused(&[]);
                self.only_one(op, unused);
            }
            // The author's barrier orders what the whole program does.
            Some(Opcode::Ttg(ttg::Kind::Barrier)) => {
                self.cluster_barrier(op);
                self.m.erase_op(op);
            }
            // What would be written by each CTA that has it is refused, not written several times.
            _ if self.m.def(op).is_some_and(writes_memory) => {
                let what = format!("the operation `{}` with num_ctas > 1", self.m.op_name(op));
                return Err(Diagnostic::unsupported(self.m, self.m.op_loc(op), what));
            }
            _ => {}
        }
        Ok(())
    }

    /// The first operand of a group.
    fn group(&self, op: Op, name: &str) -> usize {
        let group = self.m.def(op).and_then(|d| d.group(name)).expect("declared");
        (0..group).map(|g| self.m.operand_group(op, g).len()).sum()
    }

    /// The block of an access begins where the CTA's part of it does.
    fn move_block(&mut self, op: Op, split: &Split, parts: &[u32]) {
        // The operands that are indices, each with the dimension of the block. Of rows that of the columns alone is one.
        let indices: SmallVec<[(usize, usize); 4]> = match self.m.def(op).map(|d| d.index) {
            Some(Index::Rows(..)) => SmallVec::from_slice(&[(self.group(op, "y_offset"), 1)]),
            _ => {
                let first = self.group(op, "indices");
                (0..parts.len()).map(|d| (first + d, d)).collect()
            }
        };
        for (operand, d) in indices {
            if split.get(d).is_none_or(|bits| bits.is_empty()) {
                continue;
            }
            let begin = self.begin(&split[d], parts[d]);
            let index = self.m.operands(op)[operand];
            let mut b = Builder::before(self.m, op);
            let moved = arith::Addi::build(&mut b, index, begin).result(b.module);
            self.m.set_operand(op, operand, moved);
        }
    }

    // ---- across CTAs -----------------------------------------------------------------------------------------------

    /// The CTA whose rank differs in one bit.
    fn neighbour(&mut self, bit: u8) -> Value {
        let mut b = Builder::before(self.m, self.first);
        let mask = b.i32(1 << bit);
        arith::Xori::build(&mut b, self.rank, mask).result(b.module)
    }

    /// Combines what the CTAs made of their parts of the axis: in as many rounds as there are bits, each with the CTA that
    /// differs in one.
    fn combine(&mut self, reduce: tt::Reduce, bits: &Bits) -> Result<(), Diagnostic> {
        let results = self.m.results(reduce.0).to_vec();
        let users: Vec<Vec<_>> = results.iter().map(|&r| self.m.uses(r).to_vec()).collect();
        let mut now = results.clone();
        let mut at = reduce.0;
        for &bit in bits {
            let neighbour = self.neighbour(bit);
            let mut low = Bits::new();
            low.push(bit);
            let part = self.part(&low);
            let mut b = Builder::after(self.m, at);
            let others: Vec<Value> = now
                .iter()
                .map(|&v| ttng::ClusterExchange::build(&mut b, v, neighbour).result(b.module))
                .collect();
            let zero = b.i32(0);
            let lower = arith::Cmpi::build(&mut b, part, zero, arith::CmpIPredicate::Eq, Type::I1);
            let lower = lower.result(b.module);
            // Both must combine in the same order, or they have different results.
            let pick = |b: &mut Builder<'_>, x: Value, y: Value| {
                arith::Select::build(b, lower, x, y).result(b.module)
            };
            let commutes = parts::commutes(self.m, reduce.0);
            let mut b = Builder::after(self.m, lower_op(self.m, lower));
            let (mut first, mut second) = (now.clone(), others.clone());
            if !commutes {
                for i in 0..now.len() {
                    first[i] = pick(&mut b, now[i], others[i]);
                    second[i] = pick(&mut b, others[i], now[i]);
                }
            }
            let point = b.point();
            (now, at) = parts::combine(self.m, reduce.0, point, &first, &second)?;
        }
        for (value, users) in now.iter().zip(users) {
            for u in users {
                self.m.set_operand(u.op, u.index as usize, *value);
            }
        }
        Ok(())
    }

    /// Adds up the counts of the CTAs.
    fn combine_counts(&mut self, op: Op, bits: &Bits) {
        let mut now = self.m.result(op);
        let users = self.m.uses(now).to_vec();
        let mut at = op;
        for &bit in bits {
            let neighbour = self.neighbour(bit);
            let mut b = Builder::after(self.m, at);
            let other = ttng::ClusterExchange::build(&mut b, now, neighbour).result(b.module);
            let sum = arith::Addi::build(&mut b, now, other);
            (now, at) = (sum.result(b.module), sum.0);
        }
        for u in users {
            self.m.set_operand(u.op, u.index as usize, now);
        }
    }

    /// All CTAs of the cluster wait for each other before `op`.
    fn cluster_barrier(&mut self, op: Op) {
        multicast::cluster_barrier(&mut Builder::before(self.m, op));
    }

    /// What one CTA stores must not be there before others have loaded what was: where the same argument is loaded from, or
    /// may be and one CTA stores for others, they meet first.
    fn wait_for_loads(&mut self, op: Op, unused: u32) {
        let pointer = self.m.operands(op)[0];
        let root = self.root(pointer);
        // Whatever reads memory for a result.
        let mut loads = self.m.all_ops(self.m.root()).into_iter().filter(|&o| {
            let reads = |d: &OpDef| {
                d.effects.iter().any(|e| (e.access, e.resource) == (Access::Read, Resource::Global))
            };
            !self.m.results(o).is_empty() && self.m.def(o).is_some_and(reads)
        });
        let meets = |load: Op| {
            let from = self.m.operands(load)[0];
            match (self.root(from), root) {
                // What is loaded and stored through the same pointers each CTA has for itself.
                (Some(of), Some(root)) => of == root && (unused != 0 || from != pointer),
                _ => unused != 0,
            }
        };
        if loads.any(meets) {
            self.cluster_barrier(op);
        }
    }

    /// The argument from which a pointer was made.
    fn root(&self, mut pointer: Value) -> Option<Value> {
        loop {
            match self.m.value_def(pointer) {
                ValueDef::Argument(block, i) => {
                    let parent = self.m.block_parent_op(block)?;
                    match self.m.opcode(parent) {
                        Some(Opcode::Tt(tt::Kind::Func)) => return Some(pointer),
                        Some(Opcode::Scf(scf::Kind::For)) if i > 0 => {
                            pointer = scf::For(parent).init(self.m)[i as usize - 1];
                        }
                        _ => return None,
                    }
                }
                ValueDef::Result(op, i) => match self.m.opcode(op) {
                    Some(Opcode::Tt(
                        tt::Kind::Addptr
                        | tt::Kind::Splat
                        | tt::Kind::Broadcast
                        | tt::Kind::ExpandDims
                        | tt::Kind::Bitcast,
                    )) => pointer = self.m.operands(op)[0],
                    Some(Opcode::Scf(scf::Kind::For)) => {
                        pointer = scf::For(op).init(self.m)[i as usize];
                    }
                    _ => return None,
                },
            }
        }
    }

    /// Adds to an access's mask (operand `at`, if it has one) that this CTA is the leader of those that have the same.
    fn store_once(&mut self, op: Op, unused: u32, at: usize) {
        if unused == 0 {
            return;
        }
        let leads = self.is_leader(unused);
        let shape = shape_of(self.m, self.m.operands(op)[0]).map(<[u32]>::to_vec);
        let mask = self.m.operands(op).get(at).copied();
        let mut b = Builder::before(self.m, op);
        let mut new = leads;
        if let Some(shape) = shape {
            let ty = b.module.tensor_type(&shape, Type::I1, None);
            new = tt::Splat::build(&mut b, leads, ty).result(b.module);
        }
        if let Some(mask) = mask {
            new = arith::Andi::build(&mut b, mask, new).result(b.module);
        }
        self.m.set_operand_group(op, at, &[new]);
    }

    /// Puts an operation without results where only the leader runs it of the CTAs that have the same.
    fn only_one(&mut self, op: Op, unused: u32) {
        if unused == 0 {
            return;
        }
        let leads = self.is_leader(unused);
        parts::only_if(self.m, leads, op);
    }

    fn atomic(&mut self, op: Op, unused: u32) {
        if unused == 0 {
            return;
        }
        // What it releases all CTAs have written, what it overwrites they have read.
        self.cluster_barrier(op);
        self.store_once(op, unused, 2);
        self.broadcast(op, unused);
    }

    /// There is no mask: the others compare and swap as it were with nothing, since they add zero.
    fn atomic_cas(&mut self, op: Op, unused: u32) {
        if unused == 0 {
            return;
        }
        self.cluster_barrier(op);
        // In a branch of its own, which gives the others zero.
        let leads = self.is_leader(unused);
        let result = self.m.result(op);
        let ty = self.m.value_type(result);
        let frame = scf::If::build(&mut Builder::before(self.m, op), leads, &[ty]);
        let (then, otherwise) = (frame.then_region(self.m), frame.else_region(self.m));
        let then = self.m.append_block(then, &[]);
        let otherwise = self.m.append_block(otherwise, &[]);
        let old = frame.results(self.m)[0];
        self.m.replace_all_uses(result, old);
        self.m.detach_op(op);
        self.m.append_op(then, op);
        scf::Yield::build(&mut Builder::at_end(self.m, then), &[result]);
        let mut b = Builder::at_end(self.m, otherwise);
        let element = b.module.element_type(ty);
        let zero = if b.module.is_float(element) { b.float(0.0, ty) } else { b.int(0, ty) };
        scf::Yield::build(&mut b, &[zero]);
        self.broadcast(frame.0, unused);
    }

    /// Gives the first result of `op` in the leader to the CTAs that it leads.
    fn broadcast(&mut self, op: Op, unused: u32) {
        let old = self.m.results(op)[0];
        let users = self.m.uses(old).to_vec();
        if users.is_empty() {
            return;
        }
        let mut b = Builder::before(self.m, self.first);
        let mask = b.i32(!unused as i32);
        let leader = arith::Andi::build(&mut b, self.rank, mask).result(b.module);
        let mut b = Builder::after(self.m, op);
        let shared = ttng::ClusterExchange::build(&mut b, old, leader).result(b.module);
        for u in users {
            self.m.set_operand(u.op, u.index as usize, shared);
        }
    }
}

fn writes_memory(def: &OpDef) -> bool {
    def.effects.iter().any(|e| (e.access, e.resource) == (Access::Write, Resource::Global))
}

fn lower_op(module: &Module, value: Value) -> Op {
    module.defining_op(value).expect("an operation made it")
}
