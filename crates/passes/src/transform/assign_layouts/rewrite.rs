//! Rewriting: every operand gets the encoding that its operation demands, at the least cost.

use rustc_hash::FxHashMap;
use tilewright_ir::dialect::{arith, tt, ttg, ttng};
use tilewright_ir::flow;
use tilewright_ir::index::{Crossing, Index, Relation, Site};
use tilewright_ir::{
    Attr, AttrKind, Block, Builder, Diagnostic, Encoding, Module, Op, Opcode, Trait, TypeKind, Value,
    ValueDef,
};
use tilewright_layout::{ScanOrder, TileLayout};

use super::roots::raw_layouts;
use super::wgmma::is_warp_group_encoding;
use super::{Assigner, Unit};
use crate::analysis::axis::pointer_of;
use crate::analysis::{encoding_choice, encoding_inference, rings, scratch};
use crate::branches;
use crate::target::{MmaKind, dot_kind};

pub(super) struct Rewriter<'a> {
    pub(super) a: Assigner<'a>,
    /// The copy of a value in another encoding.
    copies: FxHashMap<(Value, Attr), Value>,
    /// The copy of a value that is loaded from shared memory in a block.
    loads: FxHashMap<(Value, Attr, Block), Value>,
    /// The buffer that holds a value.
    buffers: FxHashMap<Value, Value>,
    /// The buffer that holds a value in an encoding for descriptors.
    pub(super) descriptor_buffers: FxHashMap<(Value, Attr), Value>,
}

impl<'a> Rewriter<'a> {
    pub(super) fn new(a: Assigner<'a>) -> Self {
        Rewriter {
            a,
            copies: FxHashMap::default(),
            loads: FxHashMap::default(),
            buffers: FxHashMap::default(),
            descriptor_buffers: FxHashMap::default(),
        }
    }

    pub(super) fn m(&self) -> &Module {
        self.a.module
    }

    pub(super) fn run(mut self) -> Result<(), Diagnostic> {
        let ops = self.a.ops.clone();
        for &op in &ops {
            let mut values: Vec<Value> = self.m().results(op).to_vec();
            for &region in self.m().regions(op) {
                for &block in self.m().region_blocks(region) {
                    values.extend(self.m().block_args(block));
                }
            }
            for v in values {
                if let Some(&e) = self.a.encodings.get(&encoding_inference::representative(self.m(), v)) {
                    self.set_encoding(v, e);
                }
            }
        }
        for &op in &ops {
            self.op(op)?;
        }
        if let Unit::Function(func) = self.a.unit {
            self.set_function_type(func);
        }
        // What was made beside them, too.
        let mut all = self.a.unit.ops(self.m());
        let converted = all.iter().filter(|&&op| ttg::ConvertLayout::cast(self.m(), op).is_some());
        branches::sink(self.a.module, &converted.copied().collect::<Vec<_>>());
        erase_dead(self.a.module, &all);
        all.retain(|&op| !self.m().is_erased(op));
        self.check(&all)
    }

    /// Writes what the function takes and gives, encodings and all, as its type.
    fn set_function_type(&mut self, func: Op) {
        let m = &*self.a.module;
        let types = |values: &[Value]| values.iter().map(|&v| m.value_type(v)).collect::<Vec<_>>();
        let region = m.regions(func)[0];
        let Some(&entry) = m.region_blocks(region).first() else { return };
        let inputs = types(m.block_args(entry));
        let ends = m.region_blocks(region).iter().filter_map(|&b| m.last_op(b));
        let returned = ends.filter_map(|op| tt::Return::cast(m, op)).map(|end| types(end.values(m))).next();
        let ty = self.a.module.ty(TypeKind::Function { inputs, results: returned.unwrap_or_default() });
        let attr = self.a.module.attr(AttrKind::Type(ty));
        self.a.module.set_attr(func, "function_type", attr);
    }

    pub(super) fn set_encoding(&mut self, value: Value, enc: Attr) {
        let ty = self.m().value_type(value);
        if self.m().is_tensor(ty) {
            let ty = self.a.module.with_encoding(ty, Some(enc));
            self.a.module.set_value_type(value, ty);
        }
    }

    pub(super) fn encoding_of(&self, value: Value) -> Option<Attr> {
        self.m().encoding(self.m().value_type(value))
    }

    /// The encoding that a value has, or for a cheap one a default.
    pub(super) fn own_encoding(&mut self, value: Value) -> Attr {
        match self.encoding_of(value) {
            Some(e) => e,
            None => {
                let bits = self.m().bits(self.m().value_type(value));
                let shape = self.a.shape(value);
                self.a.default_encoding(&shape, bits)
            }
        }
    }

    pub(super) fn set_operand(&mut self, op: Op, index: usize, enc: Attr) {
        let value = self.m().operands(op)[index];
        let copy = self.get(value, enc);
        self.a.module.set_operand(op, index, copy);
    }

    /// All tensor operands in one encoding.
    fn set_operands(&mut self, op: Op, enc: Attr) {
        for i in 0..self.m().operands(op).len() {
            self.set_operand(op, i, enc);
        }
    }

    fn op(&mut self, op: Op) -> Result<(), Diagnostic> {
        let results = self.m().results(op).to_vec();
        let tensor_operands: Vec<usize> = (0..self.m().operands(op).len())
            .filter(|&i| encoding_inference::is_tensor(self.m(), self.m().operands(op)[i]))
            .collect();
        if let &[r] = &results[..]
            && encoding_inference::is_tensor(self.m(), r)
            && self.a.is_cheap(r)
        {
            return Ok(()); // made where it is wanted
        }
        if let Some(&e) = self.a.accesses.get(&op).map(|a| &a.own) {
            self.memory(op, e);
            return Ok(());
        }
        let Some(opcode) = self.m().opcode(op) else {
            if tensor_operands.is_empty() {
                return Ok(());
            }
            let name = self.m().op_name(op).to_string();
            let loc = self.m().op_loc(op);
            return Err(Diagnostic::unsupported(self.m(), loc, format!("the operation `{name}`")));
        };
        match opcode {
            Opcode::Tt(tt::Kind::Dot) => self.dot(tt::Dot(op))?,
            Opcode::Tt(tt::Kind::Reduce) => self.reduce(tt::Reduce(op)),
            Opcode::Tt(tt::Kind::Scan) => self.scan(tt::Scan(op)),
            Opcode::Tt(tt::Kind::Call | tt::Kind::Return) => {
                for i in tensor_operands {
                    let enc = self.a.signature_encoding(self.m().operands(op)[i]);
                    self.set_operand(op, i, enc);
                }
            }
            Opcode::Scf(_) | Opcode::Ttg(ttg::Kind::WarpYield) => self.control(op),
            Opcode::Ttg(ttg::Kind::SetLayout) => {
                let set = ttg::SetLayout(op);
                self.set_operand(op, 0, set.layout(self.m()));
                let (src, result) = (set.src(self.m()), set.result(self.m()));
                self.a.axis.know_as(src, result);
                self.a.module.replace_op(op, &[src]);
            }
            Opcode::Tt(tt::Kind::RawCall) => {
                let call = tt::RawCall(op);
                let first = call.inputs(self.m()).len();
                let m = &*self.a.module;
                let tensors = results.into_iter().filter(|&r| encoding_inference::is_tensor(m, r));
                let tensors: Vec<Value> = tensors.collect();
                let mut tensors = tensors.into_iter();
                for (i, layout) in raw_layouts(self.m(), call).into_iter().enumerate() {
                    let Some((_, encoding)) = layout else { continue };
                    self.set_operand(op, i, encoding);
                    if i >= first
                        && let Some(r) = tensors.next()
                    {
                        self.set_encoding(r, encoding);
                    }
                }
            }
            Opcode::Ttng(ttng::Kind::WarpGroupDot) => self.authored_dot(ttng::WarpGroupDot(op)),
            Opcode::Ttng(ttng::Kind::WarpGroupDotWait) => {
                for (i, r) in results.into_iter().enumerate() {
                    let enc = self.own_encoding(r);
                    self.set_encoding(r, enc);
                    self.set_operand(op, i, enc);
                }
            }
            _ if encoding_inference::shares_encoding(self.m(), op)
                && results.iter().any(|&r| encoding_inference::is_tensor(self.m(), r)) =>
            {
                let enc = self.own_encoding(results[0]);
                for &r in &results {
                    self.set_encoding(r, enc);
                }
                self.set_operands(op, enc);
            }
            _ if matches!(self.m().def(op).map(|d| d.index), Some(Index::ExpandDims(_))) => {
                let r = results[0];
                let enc = self.own_encoding(r);
                self.set_encoding(r, enc);
                let want = encoding_inference::backward(self.m(), op, 0, self.a.encoding(enc))
                    .expect("expand_dims of any encoding");
                let want = self.a.intern(want);
                self.set_operand(op, 0, want);
            }
            _ if tensor_operands.is_empty() => {
                for &r in &results {
                    if encoding_inference::is_tensor(self.m(), r) {
                        let enc = self.own_encoding(r);
                        self.set_encoding(r, enc);
                    }
                }
            }
            _ => self.reindexing(op, &tensor_operands),
        }
        Ok(())
    }

    /// An operation that moves elements to other coordinates (or is none of ours): the first operand that has an
    /// encoding keeps it, and the results follow from it where they can.
    fn reindexing(&mut self, op: Op, tensor_operands: &[usize]) {
        let operands = self.m().operands(op).to_vec();
        let results = self.m().results(op).to_vec();
        // The result goes with the first operand whose elements it has in a known order (a gather's are where its indices say);
        // operands that go element by element with that one (a join's, a histogram's source and mask) are held as it is.
        let relation = Relation::of(self.m(), op).unwrap_or_default();
        let across = |from: usize, to: Option<&Option<Site>>| {
            relation.crossing(relation.operands.get(from)?.as_ref()?, to?.as_ref()?)
        };
        let leader = tensor_operands.iter().copied().find(|&i| across(i, relation.results.first()).is_some());
        let leader = leader.unwrap_or(tensor_operands[0]);
        let concat = self.m().def(op).is_some_and(|d| d.index == Index::Concat);
        let beside = |i: usize| concat || across(leader, relation.operands.get(i)) == Some(Crossing::Same);
        let joined = tensor_operands.iter().all(|&i| beside(i));
        let has = |s: &Self, i: usize| s.encoding_of(operands[i]).is_some();
        let leader = if has(self, leader) || !joined {
            leader
        } else {
            tensor_operands.iter().copied().find(|&i| has(self, i)).unwrap_or(leader)
        };
        let result_enc = results
            .first()
            .filter(|&&r| encoding_inference::is_tensor(self.m(), r))
            .map(|&r| self.own_encoding(r));
        let mut enc = self.own_encoding(operands[leader]);
        if !has(self, leader)
            && let Some(r) = result_enc
            && let Some(e) = encoding_inference::backward(self.m(), op, leader, self.a.encoding(r))
        {
            enc = self.a.intern(e);
        }
        self.set_operand(op, leader, enc);
        for &i in tensor_operands {
            if i != leader {
                let want = if beside(i) { enc } else { self.own_encoding(operands[i]) };
                self.set_operand(op, i, want);
            }
        }
        let inferred =
            encoding_inference::forward(self.m(), op, leader, self.a.encoding(enc)).map(|e| self.a.intern(e));
        // Of several layouts of warps that say the same, the one that it was given.
        let given = result_enc.filter(|&r| {
            let e = self.a.encoding(r);
            e.is_of_warps()
                && encoding_inference::backward(self.m(), op, leader, e).as_ref()
                    == Some(self.a.encoding(enc))
        });
        // The two results of a split share one encoding.
        let Some(e) = given.or(inferred).or(result_enc) else { return };
        for &r in &results {
            self.set_encoding(r, e);
        }
    }

    /// A scan keeps the encoding that its neighbours have where a scan can go through it in order.
    fn scan(&mut self, op: tt::Scan) {
        let results = self.m().results(op.0).to_vec();
        let axis = op.axis(self.m()) as usize;
        let shape = self.a.shape(results[0]);
        let mut enc = self.own_encoding(results[0]);
        let layout = TileLayout::new(self.a.encoding(enc), &shape);
        if !layout.is_ok_and(|l| ScanOrder::of(&l, axis).is_some()) {
            let bits = self.m().bits(self.m().value_type(results[0]));
            enc = self.a.default_encoding(&shape, bits);
        }
        for r in results {
            self.set_encoding(r, enc);
        }
        self.set_operands(op.0, enc);
    }

    fn reduce(&mut self, op: tt::Reduce) {
        let srcs = op.srcs(self.m()).to_vec();
        let results = self.m().results(op.0).to_vec();
        let wanted = self.encoding_of(results[0]);
        let from_result = wanted
            .and_then(|w| encoding_inference::backward(self.m(), op.0, 0, self.a.encoding(w)))
            .map(|e| self.a.intern(e));
        // Reduce in the encoding that the source has: what comes out is small and easily converted.
        let enc = match srcs.iter().find_map(|&s| self.encoding_of(s)).or(from_result) {
            Some(e) => e,
            None => self.own_encoding(srcs[0]),
        };
        self.set_operands(op.0, enc);
        // A reduction to scalars has no layout.
        if let Some(sliced) = encoding_inference::forward(self.m(), op.0, 0, self.a.encoding(enc)) {
            let sliced = self.a.intern(sliced);
            for r in results {
                self.set_encoding(r, sliced);
            }
        }
    }

    /// What passes into and out of regions has the encoding of what receives it.
    fn control(&mut self, op: Op) {
        let edges = flow::edges_of_user(self.m(), op).into_iter();
        let like: Vec<(usize, Vec<Value>)> = edges.map(|e| (e.first, e.to.to_vec())).collect();
        for (first, to) in like {
            for (i, value) in to.into_iter().enumerate() {
                self.match_type(op, first + i, value);
            }
        }
    }

    /// The operand in the encoding of another value.
    fn match_type(&mut self, op: Op, index: usize, like: Value) {
        if let Some(e) = self.encoding_of(like) {
            self.set_operand(op, index, e);
        }
    }

    fn memory(&mut self, op: Op, own: Attr) {
        let (ptr, _) = pointer_of(self.m(), op).expect("a memory operation");
        let result = self.m().results(op).first().copied();
        let fixed = result.filter(|&r| tt::Load::cast(self.m(), op).is_some() || !self.m().is_unused(r));
        let enc = match fixed {
            Some(r) => self.own_encoding(r),
            None => {
                // A store (or an atomic of which nobody wants the old value): as the value is, if that costs little;
                // otherwise the value is converted so that the accesses are whole.
                let shape = self.a.shape(ptr);
                let values: Vec<Value> = self.m().operands(op)[1..].to_vec();
                let near = values.into_iter().chain([ptr]).find_map(|v| self.encoding_of(v));
                near.filter(|&e| self.a.accepts(op, &shape, e)).unwrap_or(own)
            }
        };
        if let Some(r) = result {
            self.set_encoding(r, enc);
        }
        self.note_vector(op, op, enc);
        self.set_operands(op, enc);
    }

    /// Writes on a memory operation (`op`, or a copy of it) how many elements of its encoding one access takes, and along
    /// which dimension.
    fn note_vector(&mut self, op: Op, copy: Op, enc: Attr) {
        let (ptr, mask) = pointer_of(self.m(), op).expect("a memory operation");
        let layout = TileLayout::new(self.a.encoding(enc), &self.a.shape(ptr)).ok();
        let max_bytes = self.a.target.max_vector_bytes;
        self.a.axis.note_width(self.a.module, copy, (ptr, mask), layout.as_ref(), max_bytes);
    }

    // ---- dots -------------------------------------------------------------------------------------------------

    fn dot(&mut self, dot: tt::Dot) -> Result<(), Diagnostic> {
        let result = dot.result(self.m());
        let mut enc = self.own_encoding(result);
        if dot.tiling(self.m()) != tt::Tiling::Default {
            // The hint of another dot may have come first, where both add to one accumulator.
            let wanted = self.a.dot_root(dot)?.encoding;
            if wanted != enc {
                enc = wanted;
                self.set_encoding(result, enc);
            }
        }
        if let Some((_, n)) = is_warp_group_encoding(self.a.encoding(enc)) {
            if self.a.warp_group_encoding(dot).is_some() {
                self.warp_group_dot(dot, enc, n);
                return Ok(());
            }
            // The accumulator of another dot has spread here: this one is for single warps.
            let shape = self.a.shape(result);
            enc = self.a.single_warp_encoding(dot, &shape)?;
            self.set_encoding(result, enc);
        }
        self.set_operand(dot.0, 2, enc);
        let k_width = match dot_kind(self.m(), self.a.target, dot) {
            MmaKind::Mma16x8 { operand_bits, .. } => 32 / operand_bits,
            MmaKind::Columns { shape } => self.k_width(dot, shape),
            MmaKind::Fma => 0,
        };
        for op_idx in 0..2u32 {
            let value = self.m().operands(dot.0)[op_idx as usize];
            let want = self.a.dot_operand_of(enc, op_idx, k_width);
            let copy = match self.a.target.warp_units {
                Some(_) => self.get(value, want),
                None => self.dot_operand(value, want, dot.0),
            };
            self.a.module.set_operand(dot.0, op_idx as usize, copy);
        }
        Ok(())
    }

    /// How many elements along K a lane has beside each other of the first operand, where lanes share it out: as it has them already, or as many as one access
    /// brings.
    fn k_width(&self, dot: tt::Dot, [_, lanes, step]: [u32; 3]) -> u32 {
        let m = self.m();
        let a = dot.a(m);
        let (k, bits) = (self.a.shape(a)[1], m.bits(m.value_type(a)));
        let most = k / lanes.max(step);
        let own = match self.encoding_of(a).map(|e| self.a.encoding(e)) {
            Some(Encoding::Blocked { size_per_thread, threads_per_warp, .. })
                if threads_per_warp[1] == lanes =>
            {
                size_per_thread[1]
            }
            _ => self.a.target.max_vector_bytes * 8 / bits.max(8),
        };
        own.min(1 << most.trailing_zeros())
    }

    /// A value as a dot operand: from registers where no data has to change threads, through shared memory otherwise,
    /// before any widening cast.
    fn dot_operand(&mut self, value: Value, want: Attr, dot: Op) -> Value {
        if self.a.is_cheap(value) {
            return self.get(value, want);
        }
        let shape = self.a.shape(value);
        let Some(have) = self.encoding_of(value) else { return self.get(value, want) };
        if scratch::stays_in_registers(self.a.encoding(have), self.a.encoding(want), &shape) {
            return self.get(value, want);
        }
        if let Some(def) = self.m().defining_op(value) {
            if ttg::LocalLoad::cast(self.m(), def).is_some() {
                return self.get(value, want);
            }
            if let Some(t) = tt::Trans::cast(self.m(), def) {
                let src = t.src(self.m());
                if let Some(load) = ttg::LocalLoad::of(self.m(), src) {
                    return self.load_transposed(value, load, t.order(self.m()), want);
                }
                if self.encoding_of(src).is_some() {
                    let order = t.order(self.m());
                    let buffer = self.buffer(src);
                    return self.local_load(value, buffer, Some(order), want, dot);
                }
            }
            // Casts and arithmetic on one thing from memory: load that, then compute on fragments.
            if let Some(leaf) = self.only_leaf(value)
                && leaf != value
                && self.a.bytes(leaf) <= self.a.bytes(value)
            {
                let anchor = self.load_anchor(value, dot);
                let block = self.m().parent_block(anchor).expect("an attached operation");
                if let Some(&v) = self.loads.get(&(value, want, block)) {
                    return v;
                }
                let mut inputs = self.m().operands(def).to_vec();
                for input in &mut inputs {
                    if encoding_inference::is_tensor(self.m(), *input) {
                        *input = self.dot_operand(*input, want, dot);
                    }
                }
                let copy = self.clone_with(def, &inputs, want);
                let anchor = self.behind_all(&inputs, anchor);
                self.a.module.insert_before(copy, anchor);
                let copy = self.m().result(copy);
                self.loads.insert((value, want, block), copy);
                return copy;
            }
        }
        let buffer = self.buffer(value);
        self.local_load(value, buffer, None, want, dot)
    }

    /// What a buffer of the kernel's own holds, transposed, loaded where the kernel loads it.
    fn load_transposed(&mut self, value: Value, load: ttg::LocalLoad, order: Vec<i32>, want: Attr) -> Value {
        if let Some(&v) = self.copies.get(&(value, want)) {
            return v;
        }
        let buffer = load.src(self.m());
        let view = self.transposed_type(buffer, &order);
        let ty = self.a.module.with_encoding(self.m().value_type(value), Some(want));
        let mut b = Builder::before(self.a.module, load.0);
        let view = ttg::MemdescTrans::build(&mut b, buffer, order, view).result(b.module);
        let loaded = ttg::LocalLoad::build(&mut b, view, None, ty).result(b.module);
        self.copies.insert((value, want), loaded);
        loaded
    }

    /// The only value that is not cheap from which arithmetic makes this one (itself, if nothing does).
    fn only_leaf(&mut self, value: Value) -> Option<Value> {
        let op = self.m().defining_op(value).filter(|&op| self.is_cast_like(op));
        let Some(op) = op else { return Some(value) };
        let mut leaf = None;
        for v in self.m().operands(op).to_vec() {
            if !encoding_inference::is_tensor(self.m(), v) || self.a.is_cheap(v) {
                continue;
            }
            let l = self.only_leaf(v)?;
            if leaf.is_some_and(|x| x != l) {
                return None;
            }
            leaf = Some(l);
        }
        leaf
    }

    /// Pure arithmetic that is as well done on operand fragments, in every warp that shares them.
    fn is_cast_like(&self, op: Op) -> bool {
        self.m().has_trait(op, Trait::Pure)
            && self.m().has_trait(op, Trait::Elementwise)
            && self.m().results(op).len() == 1
            && match self.m().opcode(op) {
                Some(Opcode::Arith(k)) => !matches!(k, arith::Kind::Divf | arith::Kind::Remf),
                Some(Opcode::Tt(tt::Kind::FpToFp | tt::Kind::Bitcast)) => true,
                _ => false,
            }
    }

    /// Where an operand is loaded: before the dot, or where it is defined if that is outside the block of the dot.
    fn load_anchor(&self, value: Value, dot: Op) -> Op {
        let m = self.m();
        if m.value_block(value) == m.parent_block(dot) {
            return dot;
        }
        // After everything that was made of the value so far.
        let first = match m.value_def(value) {
            ValueDef::Result(op, _) => m.next_op(op),
            ValueDef::Argument(block, _) => m.first_op(block),
        };
        let here = |&op: &Op| self.a.ops.contains(&op) || m.has_trait(op, Trait::Terminator);
        std::iter::successors(first, |&op| m.next_op(op)).find(here).unwrap_or(dot)
    }

    /// The first place from `anchor` on where all these values are there: some may have been loaded for a dot that stands
    /// behind it.
    fn behind_all(&self, values: &[Value], anchor: Op) -> Op {
        let m = self.m();
        let ops = values.iter().filter_map(|&v| m.defining_op(v));
        let late = ops.filter(|&op| m.parent_block(op) == m.parent_block(anchor) && m.is_before(anchor, op));
        let last = late.reduce(|a, b| if m.is_before(a, b) { b } else { a });
        last.and_then(|op| m.next_op(op)).unwrap_or(anchor)
    }

    /// The buffer that holds a value, made where the value is.
    fn buffer(&mut self, value: Value) -> Value {
        if let Some(&b) = self.buffers.get(&value) {
            return b;
        }
        let ty = self.m().value_type(value);
        let (shape, bits) = (self.a.shape(value), self.m().bits(ty));
        let element = self.m().element_type(ty);
        let enc = self.encoding_of(value).expect("a value with an encoding");
        let order: Vec<u32> = match TileLayout::new(self.a.encoding(enc), &shape) {
            Ok(l) => l.order().iter().map(|&d| u32::from(d)).collect(),
            Err(_) => encoding_choice::row_major(shape.len()),
        };
        let shared = self.a.intern(encoding_choice::shared_for_dot(&shape, &order, bits));
        let ty = self.a.module.buffer_type(&shape, element, shared, false);
        let mut b = after_value(self.a.module, value);
        let buffer = ttg::LocalAlloc::build(&mut b, Some(value), ty).result(b.module);
        self.buffers.insert(value, buffer);
        buffer
    }

    fn local_load(
        &mut self,
        value: Value,
        buffer: Value,
        trans: Option<Vec<i32>>,
        want: Attr,
        dot: Op,
    ) -> Value {
        let anchor = self.load_anchor(value, dot);
        let block = self.m().parent_block(anchor).expect("an attached operation");
        if let Some(&v) = self.loads.get(&(value, want, block)) {
            return v;
        }
        let ty = self.a.module.with_encoding(self.m().value_type(value), Some(want));
        let view = trans.as_ref().map(|order| self.transposed_type(buffer, order));
        let mut b = Builder::before(self.a.module, anchor);
        let mut src = buffer;
        if let (Some(order), Some(view)) = (trans, view) {
            src = ttg::MemdescTrans::build(&mut b, buffer, order, view).result(b.module);
        }
        let loaded = ttg::LocalLoad::build(&mut b, src, None, ty).result(b.module);
        self.loads.insert((value, want, block), loaded);
        loaded
    }

    pub(super) fn transposed_type(&mut self, buffer: Value, order: &[i32]) -> tilewright_ir::Type {
        let TypeKind::MemDesc { shape, element, encoding, memory_space, mutable, alloc_shape } =
            self.m().type_kind(self.m().value_type(buffer)).clone()
        else {
            unreachable!("a buffer has a memdesc type")
        };
        let by: Vec<u32> = order.iter().map(|&d| d as u32).collect();
        let encoding = encoding.map(|e| match self.a.encoding(e) {
            Encoding::Shared(kind) => match kind.permuted(&by) {
                Some(turned) => self.a.intern(Encoding::Shared(turned)),
                None => e,
            },
            _ => e,
        });
        let shape = rings::turned(&shape, order);
        let alloc_shape = alloc_shape.map(|all| rings::turned(&all, order));
        self.a.module.ty(TypeKind::MemDesc { shape, element, encoding, memory_space, mutable, alloc_shape })
    }

    // ---- copies in other encodings ----------------------------------------------------------------------------

    /// A value in an encoding.
    pub(super) fn get(&mut self, value: Value, enc: Attr) -> Value {
        if !encoding_inference::is_tensor(self.m(), value) || self.encoding_of(value) == Some(enc) {
            return value;
        }
        if let Some(&v) = self.copies.get(&(value, enc)) {
            return v;
        }
        let again = match self.m().defining_op(value) {
            Some(op) if self.a.is_cheap(value) => Some(op),
            // A buffer is read in any encoding; a conversion would write and read one.
            Some(op) if ttg::LocalLoad::cast(self.m(), op).is_some() => Some(op),
            Some(op) if self.recomputed_cost(value, enc, 0).is_some_and(|c| c < self.move_cost(value)) => {
                Some(op)
            }
            _ => None,
        };
        let copy = match again {
            Some(op) => self.recompute(op, enc),
            None => {
                let ty = self.a.module.with_encoding(self.m().value_type(value), Some(enc));
                let mut b = after_value(self.a.module, value);
                ttg::ConvertLayout::build(&mut b, value, ty).result(b.module)
            }
        };
        self.copies.insert((value, enc), copy);
        copy
    }

    /// The operation that defines a value, once more, in another encoding.
    fn recompute(&mut self, op: Op, enc: Attr) -> Value {
        let mut inputs = self.m().operands(op).to_vec();
        for (i, input) in inputs.iter_mut().enumerate() {
            if encoding_inference::is_tensor(self.m(), *input) {
                let e = self.operand_encoding(op, i, enc).expect("a recomputable operation");
                *input = self.get(*input, e);
            }
        }
        let copy = self.clone_with(op, &inputs, enc);
        self.a.module.insert_after(copy, op);
        if tt::Load::cast(self.m(), op).is_some() {
            self.note_vector(op, copy, enc);
        }
        self.m().result(copy)
    }

    fn clone_with(&mut self, op: Op, inputs: &[Value], enc: Attr) -> Op {
        let copy = self.a.module.clone_op(op, &mut FxHashMap::default());
        self.a.module.set_operands(copy, inputs);
        let result = self.m().result(copy);
        self.set_encoding(result, enc);
        let ty = self.m().value_type(result);
        if let Some(value) = self.m().constant_value(result) {
            let value = match self.m().attr_kind(value).clone() {
                AttrKind::Splat(a, _) => self.a.module.attr(AttrKind::Splat(a, ty)),
                AttrKind::Dense(v, _) => self.a.module.attr(AttrKind::Dense(v, ty)),
                _ => value,
            };
            self.a.module.set_attr(copy, "value", value);
        }
        copy
    }

    /// Bytes moved, weighted by loops.
    fn move_cost(&mut self, value: Value) -> u64 {
        let depth = match self.m().value_def(value) {
            ValueDef::Result(op, _) => self.a.depth(op),
            ValueDef::Argument(block, _) => self.m().last_op(block).map_or(0, |op| self.a.depth(op)),
        };
        self.a.bytes(value) << (3 * depth.min(6))
    }

    fn cost(&mut self, value: Value, enc: Attr, level: u32) -> u64 {
        if !encoding_inference::is_tensor(self.m(), value)
            || self.encoding_of(value) == Some(enc)
            || self.a.is_cheap(value)
        {
            return 0;
        }
        if self.copies.contains_key(&(value, enc)) {
            return 0;
        }
        let moved = self.move_cost(value);
        self.recomputed_cost(value, enc, level).map_or(moved, |c| c.min(moved))
    }

    /// What it costs to convert a value's operands instead of the value; `None` if it can't be recomputed.
    fn recomputed_cost(&mut self, value: Value, enc: Attr, level: u32) -> Option<u64> {
        if level > 8 {
            return None;
        }
        let op = self.m().defining_op(value)?;
        let moves_along = matches!(
            self.m().opcode(op),
            Some(Opcode::Tt(tt::Kind::Broadcast | tt::Kind::ExpandDims | tt::Kind::Addptr))
        );
        let again = self.is_small_load(op);
        if !moves_along && !again && !self.is_cast_like(op) {
            return None;
        }
        let operands = self.m().operands(op).to_vec();
        // A second load finds its bytes in L1 and needs neither shared memory nor a barrier.
        let mut sum = if again { self.move_cost(value) / 2 } else { 0 };
        for (i, v) in operands.into_iter().enumerate() {
            if encoding_inference::is_tensor(self.m(), v) {
                let e = self.operand_encoding(op, i, enc)?;
                sum += self.cost(v, e, level + 1);
            }
        }
        Some(sum)
    }

    /// The encoding of an operand of something that is computed again in an encoding.
    fn operand_encoding(&mut self, op: Op, index: usize, enc: Attr) -> Option<Attr> {
        if tt::Load::cast(self.m(), op).is_some() {
            return Some(enc);
        }
        let e = encoding_inference::backward(self.m(), op, index, self.a.encoding(enc))?;
        Some(self.a.intern(e))
    }

    /// A load of no more elements than threads, which may as well be made twice: of the indices by which a gather finds
    /// its rows, say, which its addresses want in one encoding and its mask in another.
    fn is_small_load(&self, op: Op) -> bool {
        let Some(load) = tt::Load::cast(self.m(), op) else { return false };
        let result = load.result(self.m());
        let elements: u32 = self.a.shape(result).iter().product();
        !load.is_fresh(self.m()) && elements <= self.a.target.warp_size * self.a.num_warps
    }

    /// No tensor may be left without an encoding.
    fn check(&self, ops: &[Op]) -> Result<(), Diagnostic> {
        for &op in ops {
            for &r in self.m().results(op) {
                if encoding_inference::is_tensor(self.m(), r) && self.encoding_of(r).is_none() {
                    let what = format!("no layout for the result of `{}`", self.m().op_name(op));
                    return Err(Diagnostic::unsupported(self.m(), self.m().op_loc(op), what));
                }
            }
        }
        Ok(())
    }
}

/// A builder right after a value's definition.
pub(crate) fn after_value(module: &mut Module, value: Value) -> Builder<'_> {
    match module.value_def(value) {
        ValueDef::Result(op, _) => Builder::after(module, op),
        ValueDef::Argument(block, _) => match module.first_op(block) {
            Some(first) => Builder::before(module, first),
            None => Builder::at_end(module, block),
        },
    }
}

/// Erases pure operations among these, parents first, that nothing uses.
pub(crate) fn erase_dead(module: &mut Module, ops: &[Op]) {
    for &op in ops.iter().rev() {
        if module.has_trait(op, Trait::Pure)
            && !module.has_trait(op, Trait::Terminator)
            && module.results(op).iter().all(|&r| module.is_unused(r))
        {
            module.erase_op(op);
        }
    }
}
