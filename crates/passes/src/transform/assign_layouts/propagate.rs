//! Propagation: the encoding of each root spreads along def-use chains until it meets one that is there already.

use std::sync::Arc;

use tilewright_ir::dialect::{tt, ttng};
use tilewright_ir::flow;
use tilewright_ir::index::Index;
use tilewright_ir::{Attr, Encoding, Op, Opcode, Value, ValueDef};
use tilewright_layout::TileLayout;

use super::Assigner;
use super::roots::Root;
use crate::analysis::encoding_inference;

impl Assigner<'_> {
    /// Spreads all roots, then gives every value that none reached a default, which spreads too.
    pub(super) fn propagate_all(&mut self, roots: &[Root]) {
        // What the kernel says and dots are settled first, then large loads, so that no neighbour's encoding takes them; but a load
        // may as well be made in the layout that the kernel wants its value in.
        let (first, large): (Vec<&Root>, Vec<&Root>) =
            roots.iter().filter(|r| r.fixed).partition(|r| r.weight >> 40 != 0);
        self.settle(&first);
        for r in first.iter().filter(|r| r.is_said()) {
            self.propagate(vec![encoding_inference::representative(self.module, r.value)]);
        }
        let is_large = |r: &&Root| self.shape(r.value).len() >= 2;
        let large: Vec<&Root> = large.into_iter().filter(is_large).collect();
        self.settle(&large);
        for r in roots {
            let key = encoding_inference::representative(self.module, r.value);
            if self.encodings.get(&key).is_some_and(|&e| e == r.encoding) {
                self.propagate(vec![key]);
            } else if !self.encodings.contains_key(&key) {
                let started = self.assign(r.value, r.encoding);
                self.propagate(started.into_iter().collect());
            }
        }
        for op in self.ops.clone() {
            let mut values: Vec<Value> = self.module.results(op).to_vec();
            for &region in self.module.regions(op) {
                for &block in self.module.region_blocks(region) {
                    values.extend(self.module.block_args(block));
                }
            }
            for v in values {
                let key = encoding_inference::representative(self.module, v);
                if encoding_inference::is_tensor(self.module, v)
                    && !self.is_cheap(v)
                    && !self.encodings.contains_key(&key)
                {
                    let bits = self.module.bits(self.module.value_type(v));
                    let enc = self.default_encoding(&self.shape(v), bits);
                    self.encodings.insert(key, enc);
                    self.propagate(vec![key]);
                }
            }
        }
    }

    /// Gives the values of roots their encodings, without spreading them.
    fn settle(&mut self, roots: &[&Root]) {
        for r in roots {
            let key = encoding_inference::representative(self.module, r.value);
            self.encodings.entry(key).or_insert(r.encoding);
        }
    }

    /// Gives a value an encoding if it may have it, and returns what stands for the value then.
    fn assign(&mut self, value: Value, enc: Attr) -> Option<Value> {
        let key = encoding_inference::representative(self.module, value);
        if !encoding_inference::is_tensor(self.module, value)
            || self.is_cheap(value)
            || self.encodings.contains_key(&key)
        {
            return None;
        }
        if matches!(self.encoding(enc), Encoding::Linear { .. }) && self.is_result_of_warps(key) {
            return None;
        }
        if let Some(op) = self.module.defining_op(key)
            && tt::Load::cast(self.module, op).is_some()
        {
            let shape = self.shape(key);
            if !self.accepts(op, &shape, enc) {
                return None;
            }
        }
        self.encodings.insert(key, enc);
        Some(key)
    }

    /// Whether a value is the result of a dot whose operands follow from it as parts of warps: that takes a layout with a name, which the transpose of an odd
    /// operand's has not.
    fn is_result_of_warps(&self, key: Value) -> bool {
        let m = &*self.module;
        let mut dots = self.ops.iter().filter_map(|&op| tt::Dot::cast(m, op));
        self.target.warp_units.is_some()
            && dots.any(|dot| encoding_inference::representative(m, dot.result(m)) == key)
    }

    /// The encoding on the other side of an operation: its operand `index`'s from its result's, or (forwards) the other way round.
    fn inferred(&mut self, op: Op, index: usize, enc: Attr, backward: bool) -> Option<Attr> {
        if encoding_inference::shares_encoding(self.module, op) {
            // To what has more elements than it was made for.
            let larger = match self.module.def(op).map(|d| d.index) {
                Some(Index::Broadcast) if !backward => Some(self.module.result(op)),
                Some(Index::Tile(_)) if backward => Some(self.module.operands(op)[0]),
                Some(Index::Tile(_)) => Some(self.module.result(op)),
                _ => None,
            };
            return larger.is_none_or(|v| self.divides(v, enc)).then_some(enc);
        }
        let e = self.encoding(enc);
        let inferred = if backward {
            encoding_inference::backward(self.module, op, index, e)
        } else {
            encoding_inference::forward(self.module, op, index, e)
        };
        let inferred = inferred.map(|d| self.intern(d))?;
        // A reduction's result may be one of few elements in a row, of which lanes that have columns would have copies.
        let source = matches!(self.module.def(op).map(|d| d.index), Some(Index::Reduce(_))) && backward;
        let of_columns = source && !self.target.dots.columns.is_empty();
        let divided = !of_columns || self.divides(self.module.operands(op)[index], inferred);
        divided.then_some(inferred)
    }

    /// Whether an encoding divides a tensor among the threads: one that was inferred for few elements (a reshape's, of a
    /// single one) may give all of a larger tensor to each thread.
    fn divides(&self, value: Value, enc: Attr) -> bool {
        let shape = self.shape(value);
        let elements: u32 = shape.iter().product();
        TileLayout::new(self.encoding(enc), &shape).is_ok_and(|l| {
            let threads = l.num_lanes() * self.num_warps;
            l.num_registers() * threads <= 2 * elements.max(threads)
        })
    }

    /// Spreads from values that have their encoding already.
    fn propagate(&mut self, mut work: Vec<Value>) {
        let mut later: Vec<(Value, Attr)> = Vec::new();
        loop {
            let Some(v) = work.pop() else {
                let Some((value, enc)) = later.pop() else { return };
                work.extend(self.assign(value, enc));
                continue;
            };
            let enc = self.encodings[&v];
            let mut next: Vec<(Value, Attr)> = Vec::new();
            self.backward_from(v, enc, &mut next);
            let mut names = vec![v];
            names.extend(self.alias(v));
            for name in names {
                for u in self.module.uses(name).to_vec() {
                    self.forward_to(u.op, u.index as usize, enc, &mut next);
                }
            }
            for (value, e) in next {
                if self.waits(v, value) {
                    later.push((value, e));
                } else {
                    work.extend(self.assign(value, e));
                }
            }
        }
    }

    /// Whether `source`, of which `value` is an expansion, has its layout from others first, if it can, where warps hold parts: what it
    /// is reduced from decides (ML-Triton, Table 5: m and l are slices of P).
    fn waits(&self, value: Value, source: Value) -> bool {
        let expand = self.target.warp_units.and_then(|_| tt::ExpandDims::of(self.module, value));
        expand.is_some_and(|op| op.src(self.module) == source)
    }

    /// The loop result that goes with a carried argument.
    fn alias(&self, value: Value) -> Option<Value> {
        let ValueDef::Argument(block, _) = self.module.value_def(value) else { return None };
        let parent = self.module.block_parent_op(block)?;
        let results = self.module.results(parent).iter();
        results.copied().find(|&r| encoding_inference::representative(self.module, r) == value)
    }

    /// What a value with an encoding would like of the values that it is made of.
    fn backward_from(&mut self, v: Value, enc: Attr, next: &mut Vec<(Value, Attr)>) {
        let m = &*self.module;
        next.extend(flow::edges_into(m, v).iter().map(|(edge, i)| (edge.from(m)[*i], enc)));
        let ValueDef::Result(op, _) = m.value_def(v) else { return };
        match m.opcode(op) {
            // An accumulator alone; its operands have encodings of their own, unless they are parts of warps, of which `a` is looked at
            // first (the last on the list): it may be made of another dot.
            Some(Opcode::Tt(tt::Kind::Dot)) => {
                let dot = tt::Dot(op);
                next.push((dot.c(m), enc));
                if self.target.warp_units.is_some() {
                    let operands = [(1, dot.b(m)), (0, dot.a(m))];
                    next.extend(operands.map(|(op_idx, value)| (value, self.dot_operand_of(enc, op_idx, 0))));
                }
            }
            Some(Opcode::Ttng(ttng::Kind::WarpGroupDot)) => next.push((ttng::WarpGroupDot(op).c(m), enc)),
            Some(Opcode::Ttng(ttng::Kind::WarpGroupDotWait)) => {
                let at = m.results(op).iter().position(|&r| r == v);
                next.extend(at.map(|at| (m.operands(op)[at], enc)));
            }
            _ => {
                let operands = m.operands(op).to_vec();
                for (n, o) in operands.into_iter().enumerate() {
                    if let Some(e) = self.inferred(op, n, enc, true) {
                        next.push((o, e));
                    }
                }
            }
        }
    }

    /// The encoding of an operand of a dot, from that of its result.
    pub(super) fn dot_operand_of(&mut self, result: Attr, op_idx: u32, k_width: u32) -> Attr {
        let parent = Arc::new(self.encoding(result).clone());
        self.intern(Encoding::DotOperand { op_idx, parent, k_width })
    }

    /// What follows for the user of a value that has an encoding.
    fn forward_to(&mut self, op: Op, index: usize, enc: Attr, next: &mut Vec<(Value, Attr)>) {
        let m = &*self.module;
        next.extend(flow::edges_of_user(m, op).iter().filter_map(|e| Some((e.target(op, index)?, enc))));
        match m.opcode(op) {
            Some(Opcode::Tt(tt::Kind::Dot) | Opcode::Ttng(ttng::Kind::WarpGroupDot)) => return,
            Some(Opcode::Ttng(ttng::Kind::WarpGroupDotWait)) => {
                next.push((m.results(op)[index], enc));
                return;
            }
            _ => {}
        }
        let results = m.results(op).to_vec();
        if let Some(e) = self.inferred(op, index, enc, false) {
            next.extend(results.into_iter().map(|r| (r, e)));
        }
        // The sources of one reduction or scan share an encoding.
        if matches!(self.module.def(op).map(|d| d.index), Some(Index::Reduce(_) | Index::Scan(_))) {
            next.extend(self.module.operands(op).iter().map(|&o| (o, enc)));
        }
    }
}
