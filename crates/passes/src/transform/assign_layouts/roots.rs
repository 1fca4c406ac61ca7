//! The operations from which encodings spread, each with the encoding it wants, heaviest first.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::dialect::tt::{self, Tiling};
use tilewright_ir::dialect::{ttg, ttng};
use tilewright_ir::{Attr, AttrKind, Diagnostic, Encoding, Module, Op, Opcode, Type, Value};
use tilewright_layout::TileLayout;

use super::{Access, Assigner};
use crate::analysis::axis::pointer_of;
use crate::analysis::encoding_choice::{self, WarpsAlong};
use crate::analysis::encoding_inference::{self, is_tensor};
use crate::remarks;
use crate::target::{MmaKind, WarpUnits, dot_kind};

/// A root: the value whose encoding it fixes (if it has a result) and what it weighs.
pub(super) struct Root {
    pub value: Value,
    pub encoding: Attr,
    pub weight: u64,
    /// Whether nothing else may decide: tensor cores, and loads that would suffer.
    pub fixed: bool,
}

/// More than everything else weighs: the kernel says so.
const SAID: u64 = u64::MAX;

/// The most words of a lane that are loaded as an operand of a product has them, all at once.
const MOST_WORDS: u32 = 64;

/// So many reductions along rows for each access, and threads have as much of a row as they can: unrolled code in which each shuffles would be long.
const MOSTLY_REDUCED: usize = 16;

impl Root {
    /// Whether the kernel says so.
    pub(super) fn is_said(&self) -> bool {
        self.weight == SAID
    }
}

/// Each operand of a call of the author's own code with the encoding that it has there, where it is a tensor.
pub(super) fn raw_layouts(module: &Module, call: tt::RawCall) -> Vec<Option<(Value, Attr)>> {
    let AttrKind::Array(layouts) = module.attr_kind(call.layouts(module)) else { return Vec::new() };
    let operands = module.operands(call.0).iter().zip(layouts);
    operands.map(|(&v, &layout)| is_tensor(module, v).then_some((v, layout))).collect()
}

impl Assigner<'_> {
    /// All roots, heaviest first.
    pub(super) fn roots(&mut self) -> Result<Vec<Root>, Diagnostic> {
        let mut roots = Vec::new();
        let ops = self.ops.clone();
        // First: what a dot is depends on how its operands lie in memory.
        self.memory_roots(&ops, &mut roots);
        let dots: Vec<tt::Dot> = ops.iter().filter_map(|&op| tt::Dot::cast(self.module, op)).collect();
        for (number, &dot) in dots.iter().enumerate() {
            roots.push(match self.target.warp_units {
                Some(units) => self.warp_dot_root(dot, number, &units)?,
                None => self.dot_root(dot)?,
            });
        }
        if self.target.warp_units.is_none() {
            dots.iter().for_each(|&dot| self.column_roots(dot, &mut roots));
        }
        if self.target.warp_units.is_some() {
            self.warp_reduce_roots(&ops, &mut roots);
        }
        for &op in &ops {
            if let Some(set) = ttg::SetLayout::cast(self.module, op) {
                self.has_warps_of_layouts(op)?;
                let (value, encoding) = (set.result(self.module), set.layout(self.module));
                roots.push(Root { value, encoding, weight: SAID, fixed: true });
            }
            if let Some(call) = tt::RawCall::cast(self.module, op) {
                let layouts = raw_layouts(self.module, call);
                let outputs = layouts[call.inputs(self.module).len()..].iter().flatten();
                let results = self.module.results(op).iter().filter(|&&r| is_tensor(self.module, r));
                let said = results.zip(outputs.map(|&(_, encoding)| encoding)).map(|(&r, e)| (r, e));
                for (value, encoding) in layouts.iter().flatten().copied().chain(said).collect::<Vec<_>>() {
                    // What a dot gives, and what costs nothing to make again, is converted.
                    if self.is_cheap(value) || self.is_made_by_dot(value) {
                        continue;
                    }
                    roots.push(Root { value, encoding, weight: SAID, fixed: true });
                }
            }
            if let Some(dot) = ttng::WarpGroupDot::cast(self.module, op)
                && let Some(encoding) = self.authored_encoding(dot)
            {
                let value = dot.d(self.module);
                let encoding = self.intern(encoding);
                roots.push(Root { value, encoding, weight: self.dot_weight(op, value), fixed: true });
            }
            if let Some(Opcode::Tt(tt::Kind::Histogram)) = self.module.opcode(op) {
                let value = self.module.result(op);
                let encoding = self.default_encoding(&self.shape(value), 32);
                roots.push(Root { value, encoding, weight: 0, fixed: true });
            }
        }
        roots.sort_by_key(|r| std::cmp::Reverse(r.weight));
        Ok(roots)
    }

    /// Layouts that kernels say themselves are for warps of so many threads.
    fn has_warps_of_layouts(&self, op: Op) -> Result<(), Diagnostic> {
        const SAID_FOR: u32 = 32;
        let (name, threads) = (&self.target.name, self.target.warp_size);
        if threads == SAID_FOR {
            return Ok(());
        }
        let what = format!(
            "tle.gpu.set_layout on {name}: its layouts are for warps of {SAID_FOR} threads, and here they have {threads}"
        );
        Err(Diagnostic::unsupported(self.module, self.module.op_loc(op), what))
    }

    pub(super) fn dot_root(&mut self, dot: tt::Dot) -> Result<Root, Diagnostic> {
        let value = dot.result(self.module);
        let shape = self.shape(value);
        let encoding = match self.warp_group_encoding(dot) {
            Some(enc) => {
                let enc = self.with_whole_rows(dot, enc);
                self.intern(enc)
            }
            None => {
                self.note_single_warps(dot);
                self.single_warp_encoding(dot, &shape)?
            }
        };
        // What its author says weighs more than what others would like.
        let hinted = u64::from(dot.tiling(self.module) != Tiling::Default) << 62;
        Ok(Root { value, encoding, weight: self.dot_weight(dot.0, value) | hinted, fixed: true })
    }

    /// Says where a hint keeps a dot from being one for warp groups.
    fn note_single_warps(&mut self, dot: tt::Dot) {
        let tiling = dot.tiling(self.module);
        if tiling != Tiling::Default && self.warp_group_encoding_of(dot, Tiling::Default).is_some() {
            let text = format!(
                "tiling=\"{}\" is obeyed by mma.sync: wgmma has the four warps of a group one below the other",
                tiling.keyword()
            );
            remarks::add(self.module, dot.0, &text);
        }
    }

    /// A dot whose parts warps compute. The last decides first: what it is made of, another dot perhaps, has its layout from it
    /// (ML-Triton, Table 5), so nothing is settled before.
    ///
    /// # Errors
    /// Its author wants it divided as its shape can't be.
    fn warp_dot_root(&mut self, dot: tt::Dot, number: usize, units: &WarpUnits) -> Result<Root, Diagnostic> {
        let value = dot.result(self.module);
        let [m, n, _] = units.dot_shape(self.module, dot).unwrap_or([8, 16, 1]);
        let rows = self.wants_rows(dot);
        let (shape, tiling) = (self.shape(value), dot.tiling(self.module));
        let encoding = encoding_choice::warp_dot(&shape, [m, n], self.num_warps, rows, tiling)
            .ok_or_else(|| self.cannot_be_tiled(dot, &shape, [m, n]))?;
        let hinted = u64::from(tiling != Tiling::Default) << 62;
        let weight = 1 << 40 | number as u64 | hinted;
        Ok(Root { value, encoding: self.intern(encoding), weight, fixed: false })
    }

    /// Reductions: what is combined lies within a warp, as long as there is something else to share out.
    fn warp_reduce_roots(&mut self, ops: &[Op], roots: &mut Vec<Root>) {
        for &op in ops {
            let Some(reduce) = tt::Reduce::cast(self.module, op) else { continue };
            let value = reduce.srcs(self.module)[0];
            let (shape, axis) = (self.shape(value), reduce.axis(self.module) as u32);
            let mut dims: Vec<u32> = (0..shape.len() as u32).filter(|&d| d != axis).collect();
            dims.push(axis);
            let bits = self.module.bits(self.module.value_type(value));
            let encoding = self.warp_blocked(&shape, &encoding_choice::row_major(shape.len()), &dims, bits);
            let depth = self.depth(reduce.0);
            let weight = self.bytes(value) << (3 * depth.min(6));
            roots.push(Root { value, encoding: self.intern(encoding), weight, fixed: false });
        }
    }

    /// More than anything but dots weighs.
    fn dot_weight(&mut self, dot: Op, result: Value) -> u64 {
        let depth = self.depth(dot);
        1 << 40 | self.bytes(result) << (3 * depth.min(6))
    }

    /// The result encoding of a dot that each warp computes by itself.
    ///
    /// # Errors
    /// Its author wants it divided as its shape can't be.
    pub(super) fn single_warp_encoding(&mut self, dot: tt::Dot, shape: &[u32]) -> Result<Attr, Diagnostic> {
        let tiling = dot.tiling(self.module);
        let enc = match (dot_kind(self.module, self.target, dot), tiling) {
            (MmaKind::Mma16x8 { .. }, Tiling::Default) => {
                let rows = self.wants_rows(dot);
                Ok(encoding_choice::mma_v2(shape, self.num_warps, rows))
            }
            (MmaKind::Columns { shape: unit }, _) => {
                let (rows, wide) = (self.wants_rows(dot), self.columns_of_lane(dot));
                encoding_choice::columns(tiling, [shape[0], shape[1]], unit, self.num_warps, rows, wide)
            }
            (MmaKind::Fma, Tiling::Default) => Ok(encoding_choice::fma_blocked(shape, self.threads())),
            (MmaKind::Mma16x8 { .. }, _) => encoding_choice::tiled_mma_v2(tiling, shape, self.num_warps),
            (MmaKind::Fma, _) => encoding_choice::tiled_fma(tiling, shape, self.threads()),
        };
        match enc {
            Ok(enc) => Ok(self.intern(enc)),
            Err(tile) => Err(self.cannot_be_tiled(dot, shape, tile)),
        }
    }

    /// How many columns a lane has beside each other, where lanes have columns: as many as one access brings of the second operand, unless its columns are
    /// rows in memory.
    fn columns_of_lane(&self, dot: tt::Dot) -> u32 {
        let b = dot.b(self.module);
        let turned = tt::Trans::of(self.module, b).is_some();
        let bits = self.module.bits(self.module.value_type(b));
        if turned { 1 } else { self.target.max_vector_bytes * 8 / bits.max(8) }
    }

    /// Loads whose lanes may as well have what they have of a product's second operand, where that has columns in lanes: each is brought by whole vectors, and
    /// goes through no shared memory.
    fn column_roots(&mut self, dot: tt::Dot, roots: &mut Vec<Root>) {
        let m = &*self.module;
        let MmaKind::Columns { .. } = dot_kind(m, self.target, dot) else { return };
        let mut value = dot.b(m);
        let trans = tt::Trans::of(m, value);
        if let Some(trans) = trans {
            value = trans.src(m);
        }
        let load = m.defining_op(value).filter(|&op| tt::Load::cast(m, op).is_some());
        let (Some(load), 1, 1) = (load, m.uses(value).len(), m.uses(dot.b(m)).len()) else { return };
        let result = encoding_inference::representative(m, dot.result(m));
        let Some(root) = roots.iter().find(|r| encoding_inference::representative(m, r.value) == result)
        else {
            return;
        };
        let weight = root.weight;
        let mut encoding = self.dot_operand_of(root.encoding, 1, 1);
        if let Some(trans) = trans {
            let before = encoding_inference::backward(self.module, trans.0, 0, self.encoding(encoding));
            let Some(before) = before else { return };
            encoding = self.intern(before);
        }
        let Some(access) = self.accesses.get(&load) else { return };
        let shape = self.shape(value);
        let layout = |e| TileLayout::new(self.encoding(e), &shape).ok();
        let (Some(own), Some(there)) = (layout(access.own), layout(encoding)) else { return };
        let words = there.num_registers() * access.bits / 32;
        if words <= MOST_WORDS && 2 * Self::access_width(access, &there) >= Self::access_width(access, &own) {
            roots.push(Root { value, encoding, weight, fixed: true });
        }
    }

    /// What to say of a hint that the result's shape is too small for.
    fn cannot_be_tiled(&self, dot: tt::Dot, shape: &[u32], [high, wide]: [u32; 2]) -> Diagnostic {
        let m = &*self.module;
        let [.., rows, columns] = *shape else { unreachable!("a dot's result has two dimensions") };
        let text = format!(
            "tiling=\"{}\" cannot be obeyed: a result of {rows}x{columns} is {}x{} tiles of {high}x{wide}, too few \
             for {} warps that lie so",
            dot.tiling(m).keyword(),
            rows.div_ceil(high),
            columns.div_ceil(wide),
            self.num_warps,
        );
        Diagnostic::at(m, m.op_loc(dot.0), text)
            .note("use fewer warps (num_warps), a larger block, or leave the division to the compiler")
    }

    /// Whether rows of the result should stay within a warp: it is reduced along them, or becomes an operand of another
    /// dot (flash attention's S = Q·Kᵀ), or its own operand comes from such a one (O += P·V, whose accumulator is scaled
    /// by row statistics).
    fn wants_rows(&mut self, dot: tt::Dot) -> bool {
        let rank = self.shape(dot.result(self.module)).len() as i32;
        let mut seen = FxHashSet::default();
        let mut work = vec![dot.result(self.module)];
        while let Some(v) = work.pop() {
            for u in self.module.uses(v).to_vec() {
                if !seen.insert(u.op) {
                    continue;
                }
                match self.module.opcode(u.op) {
                    Some(Opcode::Tt(tt::Kind::Dot)) if u.index < 2 => return true,
                    Some(Opcode::Tt(tt::Kind::Reduce)) if tt::Reduce(u.op).axis(self.module) == rank - 1 => {
                        return true;
                    }
                    _ if crate::analysis::encoding_inference::shares_encoding(self.module, u.op) => {
                        work.extend(self.module.results(u.op).to_vec());
                    }
                    _ => {}
                }
            }
        }
        // Backward from the left operand.
        let mut work = vec![dot.a(self.module)];
        let mut seen = FxHashSet::default();
        while let Some(v) = work.pop() {
            let Some(op) = self.module.defining_op(v) else { continue };
            if !seen.insert(op) {
                continue;
            }
            match self.module.opcode(op) {
                Some(Opcode::Tt(tt::Kind::Dot)) => return true,
                _ if crate::analysis::encoding_inference::shares_encoding(self.module, op) => {
                    work.extend(self.module.operands(op).to_vec());
                }
                _ => {}
            }
        }
        false
    }

    /// Memory operations. Those on the same shape with the same contiguous dimension share one encoding, as wide as the
    /// widest wants: what they load meets in arithmetic more often than not. A dot's result and what it is made of don't:
    /// 16 bytes of fp8 operands would be 32 of an fp16 result. Where hardly anything is accessed and almost all is reduced, it is reductions that decide.
    fn memory_roots(&mut self, ops: &[Op], roots: &mut Vec<Root>) {
        struct Group {
            vec: u32,
            bits: u32,
            ops: Vec<Op>,
        }
        let mut groups: FxHashMap<(Vec<u32>, Vec<u32>, bool), Group> = FxHashMap::default();
        let mut keys = Vec::new();
        let mut reduced_slow: FxHashSet<Vec<u32>> = FxHashSet::default();
        let mut reduced_fast: FxHashMap<Vec<u32>, usize> = FxHashMap::default();
        for &op in ops {
            if let Some(r) = tt::Reduce::cast(self.module, op) {
                let shape = self.shape(r.srcs(self.module)[0]);
                let fast = r.axis(self.module) as usize + 1 == shape.len();
                if fast {
                    *reduced_fast.entry(shape).or_default() += 1;
                } else {
                    reduced_slow.insert(shape);
                }
            }
            let Some((ptr, mask)) = pointer_of(self.module, op) else { continue };
            let ty = self.module.value_type(ptr);
            if !self.module.is_tensor(ty) {
                continue;
            }
            let shape = self.shape(ptr);
            let bits = self.module.pointee_type(ty).map_or(8, |t: Type| self.module.bits(t)).max(8);
            let facts = self.axis.get(self.module, ptr);
            let mut order = encoding_choice::row_major(shape.len());
            order.sort_by_key(|&d| {
                // Among equals the last dimension first; a dimension of one element last.
                (shape[d as usize] == 1, std::cmp::Reverse(facts.dims[d as usize].contiguity))
            });
            let max_bytes = self.target.max_vector_bytes;
            let vec: Vec<u32> = (0..shape.len())
                .map(|d| self.axis.vector_width(self.module, ptr, mask, d, max_bytes))
                .collect();
            let wanted = vec[order[0] as usize];
            let own = self.default_encoding(&shape, bits); // replaced below
            let shared = self.module.is_shared_pointer(ty) && tt::Store::cast(self.module, op).is_some();
            let scattered = self.module.is_shared_pointer(ty) && facts.dims.iter().all(|d| d.contiguity == 0);
            self.accesses.insert(op, Access { own, fast: order[0], vec, bits, scattered, shared });
            let stored = tt::Store::cast(self.module, op).map(|s| s.value(self.module));
            let key = (
                shape,
                order,
                stored.is_some_and(|v| encoding_inference::product_behind(self.module, v).is_some()),
            );
            let group = groups.entry(key.clone()).or_insert_with(|| {
                keys.push(key);
                Group { vec: 1, bits: 8, ops: Vec::new() }
            });
            group.vec = group.vec.max(wanted);
            group.bits = group.bits.max(bits);
            group.ops.push(op);
        }
        for key in keys {
            let (shape, order, of_product) = &key;
            let group = &groups[&key];
            let along = if reduced_slow.contains(shape) && !reduced_fast.contains_key(shape) {
                WarpsAlong::FastDimension
            } else {
                WarpsAlong::SlowDimensions
            };
            let reductions = reduced_fast.get(shape).copied().unwrap_or(0);
            let vec = if reductions >= MOSTLY_REDUCED * group.ops.len() { u32::MAX } else { group.vec };
            let enc = self.blocked(shape, order, vec, group.bits, along);
            // Where others access such a tile, too, threads keep what is theirs: they load what they have stored, if by another pointer.
            let alone = *of_product && !groups.contains_key(&(shape.clone(), order.clone(), false));
            let enc = if alone { self.in_place_of_product(shape, group.bits, enc) } else { enc };
            let own = self.intern(enc);
            for &op in &group.ops {
                if let Some(a) = self.accesses.get_mut(&op) {
                    a.own = own;
                }
                let depth = self.depth(op);
                // A store has no result: its value is what it would like to see in its encoding.
                let (value, fixed) = match self.module.opcode(op) {
                    Some(Opcode::Tt(tt::Kind::Store)) => (tt::Store(op).value(self.module), false),
                    Some(Opcode::Tt(tt::Kind::AtomicRmw)) => (tt::AtomicRmw(op).val(self.module), false),
                    Some(Opcode::Tt(tt::Kind::AtomicCas)) => (tt::AtomicCas(op).val(self.module), false),
                    _ => (self.module.result(op), self.target.warp_units.is_none()),
                };
                let weight = self.bytes(value) << (3 * depth.min(6));
                roots.push(Root { value, encoding: own, weight, fixed });
            }
        }
    }
}

impl Assigner<'_> {
    /// A blocked encoding for what is stored of a product, changed so that each warp of a warp group stores the rows that it has of the result: then they go
    /// through shared memory warp by warp, and no warp waits for another. Others as they are.
    fn in_place_of_product(&self, shape: &[u32], bits: u32, enc: Encoding) -> Encoding {
        /// The rows that a warp has of an instruction's result (PTX ISA, "wgmma.mma_async": register fragments).
        const ROWS: u32 = 16;
        /// The bits of a row that a warp stores at once. (With less than whole rows scratch is had in halves, by columns.)
        const AT_ONCE: u32 = 256 * 8;
        let Encoding::Blocked { size_per_thread, order, .. } = &enc else { return enc };
        let (&[rows, columns], &[1, 0]) = (shape, &order[..]) else { return enc };
        let Some([along_rows, along_columns, _]) =
            super::warp_group_shape(rows, columns, self.num_warps, false).filter(|_| self.target.dots.wgmma)
        else {
            return enc;
        };
        let vec = size_per_thread[1];
        let (part, lanes) = (columns / along_columns, self.target.warp_size);
        let whole = 1 << part.trailing_zeros();
        let along = (whole.min(AT_ONCE / bits) / vec).clamp(1, lanes);
        if vec > whole || lanes / along > ROWS {
            return enc;
        }
        Encoding::Blocked {
            size_per_thread: vec![ROWS * along / lanes, vec],
            threads_per_warp: vec![lanes / along, along],
            warps_per_cta: vec![along_rows, along_columns],
            order: order.clone(),
        }
    }

    fn is_made_by_dot(&self, value: Value) -> bool {
        let made = self.module.defining_op(value).and_then(|op| self.module.opcode(op));
        matches!(
            made,
            Some(
                Opcode::Tt(tt::Kind::Dot)
                    | Opcode::Ttng(ttng::Kind::WarpGroupDot | ttng::Kind::WarpGroupDotWait)
            )
        )
    }
}
