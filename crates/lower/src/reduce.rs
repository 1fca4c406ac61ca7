//! `tt.reduce`: within a thread, then across lanes by shuffles, then across warps through scratch memory.
//!
//! The function is the region's, lowered again for each combination. Padding along the axis must not take part: where the
//! function is a single known operation its identity stands in for padding; otherwise a predicate travels with each
//! partial result and says whether it holds anything yet.

use rustc_hash::FxHashMap;
use tilewright_ir as ir;
use tilewright_ir::Opcode;
use tilewright_ir::dialect::{arith, tt, ttg};
use tilewright_ir::marks;
use tilewright_layout::{AxisSpread, Dim, TileLayout};
use tilewright_llvm::{BinOp, IntPred, Ty, Value};

use crate::shape::row_major;
use crate::{Hooks, Lower, Regs, Result, Shuffle, memory_bits};

/// From this many warps on their partial results are combined by shuffles, not by each thread.
const MANY_WARPS: u32 = 16;

/// A partial result: a value per operand, and whether it holds anything (`None`: it does).
#[derive(Debug, Clone)]
pub(crate) struct Partial {
    pub values: Vec<Value>,
    pub valid: Option<Value>,
}

/// Partial results of warps in scratch memory: a table for each value that they have, with a row for each element outside of the
/// axis and a column for each warp (in a scan for each run of each warp).
pub(crate) struct Tables {
    scratch: Value,
    columns: u32,
    /// The type of each table's values, and where it begins.
    values: Vec<(Ty, i64)>,
}

impl Tables {
    /// Tables with a row for each element of `rows`, one behind the other.
    pub fn new(scratch: Value, columns: u32, rows: &[u32], tys: &[Ty]) -> Tables {
        let rows: i64 = rows.iter().map(|&n| i64::from(n)).product();
        let mut end = 0i64;
        let values = tys.iter().map(|&ty| {
            let begin = end;
            end += (rows * i64::from(columns) * i64::from(memory_bits(ty) / 8) + 15) / 16 * 16;
            (ty, begin)
        });
        Tables { scratch, columns, values: values.collect() }
    }

    /// How many values each has.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// The type of table `k`'s values.
    pub fn ty(&self, k: usize) -> Ty {
        self.values[k].0
    }

    /// Bytes of a value of table `k`.
    pub fn bytes(&self, k: usize) -> i64 {
        i64::from(memory_bits(self.values[k].0) / 8)
    }
}

/// A row of [`Tables`].
pub(crate) struct Row {
    /// Its number. Padding has that of some row that exists.
    pub number: Value,
    /// Whether it is no padding (`None`: it never is).
    pub inside: Option<Value>,
}

/// The shape of the elements outside of an axis, with 1 for the axis.
pub(crate) fn outside(layout: &TileLayout, axis: usize) -> Vec<u32> {
    let mut shape = layout.shape().to_vec();
    shape[axis] = 1;
    shape
}

impl<H: Hooks> Lower<'_, H> {
    pub(crate) fn reduce(&mut self, op: tt::Reduce) -> Result<()> {
        let m = self.m;
        let axis = op.axis(m) as usize;
        let srcs: Vec<ir::Value> = op.srcs(m).to_vec();
        let regs: Vec<Regs> = srcs.iter().map(|&v| self.regs(v)).collect::<Result<_>>()?;
        let results: Vec<ir::Value> = op.results(m).to_vec();
        let layout = self.layout(self.value_ty(srcs[0]))?;
        let region = m.region_block(op.combine(m));
        let Some(spread) = AxisSpread::of(&layout, axis) else {
            return Err(self.unsupported("a reduction in a layout where one thread bit moves along two axes"));
        };
        let apart = m.op_attr(op.0, marks::LANES_APART).is_some();
        let padded = layout.needs_bounds_predicate(axis);
        let identity = if padded { self.identity(region, &srcs) } else { None };

        // Registers of one result element, by its coordinate.
        let mut order: Vec<Vec<u32>> = Vec::new();
        let mut groups: FxHashMap<Vec<u32>, Vec<u32>> = FxHashMap::default();
        for r in layout.unique_registers() {
            let mut key = layout.register_coord(r).to_vec();
            key.remove(axis);
            let group = groups.entry(key.clone()).or_default();
            if group.is_empty() {
                order.push(key);
            }
            group.push(r);
        }
        let here = self.op;
        let mut partials: FxHashMap<Vec<u32>, Partial> = FxHashMap::default();
        for key in &order {
            let mut parts = Vec::new();
            for &r in &groups[key] {
                let values: Vec<Value> = regs.iter().map(|x| x[r as usize]).collect();
                if let Some(part) = self.guarded(&layout, r, axis, values, identity.as_deref()) {
                    parts.push(part);
                }
            }
            let mut partial = self.tree(region, &parts)?;
            let mut lanes: &[u32] = if apart { &[] } else { &spread.lanes };
            if let (&[value], None) = (&partial.values[..], partial.valid)
                && lanes.len() as u32 == self.lane_bits()
                && let Some(intrinsic) = self.lane_reduction(region, self.b.ty(value))
            {
                partial.values[0] = H::reduce_lanes(self, intrinsic, value);
                lanes = &[];
            }
            partial = self.across_lanes(region, lanes, partial)?;
            partials.insert(key.clone(), partial);
        }
        self.op = here;
        if !spread.warps.is_empty() {
            self.across_warps(region, &layout, axis, &spread, &order, &groups, &mut partials)?;
        }
        self.op = here;
        for (k, &result) in results.iter().enumerate() {
            let ty = self.value_ty(result);
            if !m.is_tensor(ty) {
                let value = partials[&order[0]].values[k];
                self.set_regs(result, vec![value]);
                continue;
            }
            let to = self.layout(ty)?;
            let mut out = Vec::with_capacity(to.num_registers() as usize);
            for r in 0..to.num_registers() {
                let key = to.register_coord(r).to_vec();
                match partials.get(&key) {
                    Some(p) => out.push(p.values[k]),
                    None => {
                        return Err(
                            self.error("internal: a reduction's result layout is not its source's slice")
                        );
                    }
                }
            }
            self.set_regs(result, out);
        }
        Ok(())
    }

    /// Adds the values of lanes that differ in some bits of their number.
    pub(crate) fn lane_sum(&mut self, op: ttg::LaneSum) -> Result<()> {
        let lanes = op.lanes(self.m) as u32;
        let mut sums = self.regs(op.src(self.m))?.to_vec();
        let fuses = self.b.set_fuses(false);
        for bit in (0..self.lane_bits()).filter(|bit| lanes >> bit & 1 == 1) {
            for v in &mut sums {
                let moved = self.shuffle_value(*v, Shuffle::Xor(1 << bit));
                *v = self.b.bin(BinOp::FAdd, *v, moved);
            }
        }
        self.b.set_fuses(fuses);
        self.set_regs(op.result(self.m), sums);
        Ok(())
    }

    /// Keeps the values of the lanes that have none of some bits in their number; others have -0.0, to which x can be added for
    /// every x.
    pub(crate) fn lane_first(&mut self, op: ttg::LaneFirst) -> Result<()> {
        let mut values = self.regs(op.src(self.m))?.to_vec();
        let first = self.threads_without(op.lanes(self.m) as u32);
        if let Some(first) = first {
            for v in &mut values {
                let ty = self.b.ty(*v);
                let zero = self.b.float(ty, -0.0);
                *v = self.b.select(first, *v, zero);
            }
        }
        self.set_regs(op.result(self.m), values);
        Ok(())
    }

    /// A register's values, guarded against padding along the axis; `None` where it is padding in every thread.
    pub(crate) fn guarded(
        &mut self,
        layout: &TileLayout,
        register: u32,
        axis: usize,
        values: Vec<Value>,
        identity: Option<&[Value]>,
    ) -> Option<Partial> {
        if !layout.needs_bounds_predicate(axis) {
            return Some(Partial { values, valid: None });
        }
        let c = self.coord(layout, register, axis);
        let size = self.b.i32(i64::from(layout.shape()[axis]));
        let valid = self.b.icmp(IntPred::Ult, c, size);
        if self.b.is_true(valid) {
            return Some(Partial { values, valid: None });
        }
        if self.b.is_false(valid) && identity.is_none() {
            return None;
        }
        match identity {
            Some(identity) => {
                let values = values.iter().zip(identity).map(|(&v, &i)| self.b.select(valid, v, i)).collect();
                Some(Partial { values, valid: None })
            }
            None => Some(Partial { values, valid: Some(valid) }),
        }
    }

    /// The operation that the region's function is, if it is a single one.
    fn only_operation(&self, region: ir::Block) -> Option<ir::Op> {
        let m = self.m;
        let first = m.first_op(region)?;
        let last = m.next_op(first)?;
        let is_it = m.has_trait(last, ir::Trait::Terminator)
            && m.operands(last) == m.results(first)
            && m.operands(first) == m.block_args(region);
        is_it.then_some(first)
    }

    /// The instruction that combines the values of all lanes by the region's function, if there is one.
    pub(crate) fn lane_reduction(&self, region: ir::Block, ty: Ty) -> Option<&'static str> {
        let Opcode::Arith(kind) = self.m.opcode(self.only_operation(region)?)? else { return None };
        H::lane_reduction(kind, ty)
    }

    /// The identity of the region's function, where it is a single operation that has one.
    pub(crate) fn identity(&mut self, region: ir::Block, srcs: &[ir::Value]) -> Option<Vec<Value>> {
        let &[src] = srcs else { return None };
        let ty = self.elem_ty(self.value_ty(src)).ok()?;
        Some(vec![self.identity_of(region, ty)?])
    }

    /// The same for values of a type.
    pub(crate) fn identity_of(&mut self, region: ir::Block, ty: Ty) -> Option<Value> {
        let Opcode::Arith(kind) = self.m.opcode(self.only_operation(region)?)? else { return None };
        let bits = ty.bits();
        use arith::Kind as K;
        Some(match kind {
            K::Addi | K::Ori | K::Xori | K::Maxui => self.b.constant(ty, 0),
            K::Muli => self.b.constant(ty, 1),
            K::Andi | K::Minui => self.b.constant(ty, u64::MAX),
            K::Maxsi => self.b.constant(ty, 1 << (bits - 1)),
            K::Minsi => self.b.constant(ty, (1u64 << (bits - 1)) - 1),
            // -0.0 + x is x for every x.
            K::Addf => self.b.float(ty, -0.0),
            K::Mulf => self.b.float(ty, 1.0),
            K::Maximumf => self.b.float(ty, f64::NEG_INFINITY),
            K::Minimumf => self.b.float(ty, f64::INFINITY),
            // They give the other operand. An infinity would take the place of a NaN that is all there is.
            K::Maxnumf | K::Minnumf => self.b.float(ty, f64::NAN),
            _ => return None,
        })
    }

    /// Combines halves, each by its halves first: a chain as short as can be, small rounding errors, and few partial
    /// results alive at a time.
    fn tree(&mut self, region: ir::Block, parts: &[Partial]) -> Result<Partial> {
        match parts {
            [] => Err(self.error("internal: a reduction without elements")),
            [part] => Ok(part.clone()),
            _ => {
                let (left, right) = parts.split_at(parts.len().next_power_of_two() / 2);
                let (left, right) = (self.tree(region, left)?, self.tree(region, right)?);
                self.combine(region, &left, &right)
            }
        }
    }

    /// Combines the partial results of lanes that differ in these bits of their numbers. All lanes get the same one, to the last bit: what
    /// is decided by it must be decided alike in all of them.
    fn across_lanes(&mut self, region: ir::Block, lanes: &[u32], mut partial: Partial) -> Result<Partial> {
        if lanes.is_empty() {
            return Ok(partial);
        }
        let commutes =
            self.only_operation(region).is_some_and(|op| self.m.has_trait(op, ir::Trait::Commutative));
        // A lane has its own product before it is rounded, and another lane's behind that.
        let fuses = self.b.set_fuses(!commutes);
        for &bit in lanes {
            let moved = self.shuffle_partial(&partial, Shuffle::Xor(1 << bit));
            partial = self.combine(region, &partial, &moved)?;
        }
        self.b.set_fuses(fuses);
        if commutes {
            return Ok(partial);
        }
        // Each lane has put its own before the other's, so that they differ.
        let mask = lanes.iter().fold(0, |mask, bit| mask | 1 << bit);
        let lane = self.lane();
        let first = self.b.and_const(lane, !mask & u64::from(u32::MAX));
        Ok(self.shuffle_partial(&partial, Shuffle::Index(first)))
    }

    /// The region's function of two partial results, in this order.
    pub(crate) fn combine(&mut self, region: ir::Block, a: &Partial, b: &Partial) -> Result<Partial> {
        let args: Vec<ir::Value> = self.m.block_args(region).to_vec();
        for (&arg, &v) in args.iter().zip(a.values.iter().chain(&b.values)) {
            self.set_regs(arg, vec![v]);
        }
        let here = self.op;
        let end = self.block(region)?.ok_or_else(|| self.error("a region without a terminator"))?;
        let returned: Vec<ir::Value> = self.m.operands(end).to_vec();
        let values: Vec<Value> = returned.iter().map(|&v| self.scalar(v)).collect::<Result<_>>()?;
        self.op = here;
        let values = values.into_iter().enumerate().map(|(k, both)| {
            let left = match b.valid {
                Some(valid) => self.b.select(valid, both, a.values[k]),
                None => both,
            };
            match a.valid {
                Some(valid) => self.b.select(valid, left, b.values[k]),
                None => left,
            }
        });
        let values: Vec<Value> = values.collect();
        let valid = match (a.valid, b.valid) {
            (Some(x), Some(y)) => Some(self.b.or(x, y)),
            _ => None,
        };
        Ok(Partial { values, valid })
    }

    pub(crate) fn shuffle_partial(&mut self, p: &Partial, how: Shuffle) -> Partial {
        let values = p.values.iter().map(|&v| self.shuffle_value(v, how)).collect();
        let valid = p.valid.map(|v| self.shuffle_value(v, how));
        Partial { values, valid }
    }

    /// Writes each warp's partial results to scratch memory; then every thread reads and combines all of them, or, where
    /// they are many, every lane reads one and the lanes combine them.
    fn across_warps(
        &mut self,
        region: ir::Block,
        layout: &TileLayout,
        axis: usize,
        spread: &AxisSpread,
        order: &[Vec<u32>],
        groups: &FxHashMap<Vec<u32>, Vec<u32>>,
        partials: &mut FxHashMap<Vec<u32>, Partial>,
    ) -> Result<()> {
        let scratch = self.scratch()?;
        let count = 1u32 << spread.warps.len();
        // The column in which each warp writes.
        let mut images = vec![0u32; layout.linear().flat_bases(Dim::Warp).len()];
        for (i, &bit) in spread.warps.iter().enumerate() {
            images[bit as usize] = 1 << i;
        }
        let column = self.linear(&[], &images);
        let lane_mask = spread.lanes.iter().fold(0, |m, b| m | 1 << b);
        let owner = self.is_owner(layout);
        let one_lane = self.threads_without(lane_mask);
        let pred = self.all(&[owner, one_lane]);

        let tys: Vec<Ty> = partials[&order[0]].values.iter().map(|&v| self.b.ty(v)).collect();
        let elements = outside(layout, axis);
        let tables = Tables::new(scratch, count, &elements, &tys);
        let rows: Vec<Row> =
            order.iter().map(|key| self.table_row(layout, (axis, &elements), groups[key][0], 0)).collect();
        for (key, row) in order.iter().zip(&rows) {
            let pred = self.all(&[pred, row.inside]);
            if pred.is_some_and(|p| self.b.is_false(p)) {
                continue;
            }
            for (k, &value) in partials[key].values.iter().enumerate() {
                let p = self.table_address(&tables, k, row.number, Some(column));
                self.store_shared(p, &[value], pred);
            }
        }
        self.barrier();
        let least = least_coordinates(layout, axis, spread);
        let size = layout.shape()[axis];
        // (There may be more warps than lanes.)
        let in_lanes = spread.warps.len() as u32 <= self.lane_bits() && count >= MANY_WARPS;
        if in_lanes && elements.iter().all(|&n| n == 1) && least.iter().all(|&c| c < size) {
            let total = self.combine_in_lanes(region, spread.warps.len(), &tables)?;
            partials.insert(order[0].clone(), total);
            return Ok(());
        }
        for (key, row) in order.iter().zip(&rows) {
            let all = self.read_row(&tables, row.number).into_iter().zip(&least);
            let parts: Vec<Partial> = all.filter(|&(_, &c)| c < size).map(|(part, _)| part).collect();
            let total = self.tree(region, &parts)?;
            partials.insert(key.clone(), total);
        }
        Ok(())
    }

    /// The row that the elements of a register belong to, of tables with a row for each element of `rows`: [`outside`], or parts of it that are powers of two, from
    /// whose indices so many `low` bits are left out.
    pub(crate) fn table_row(
        &mut self,
        layout: &TileLayout,
        (axis, rows): (usize, &[u32]),
        register: u32,
        low: u32,
    ) -> Row {
        let mut row = Row { number: self.b.i32(0), inside: None };
        let strides = row_major(rows);
        for d in (0..layout.rank()).filter(|&d| d != axis) {
            let mut c = self.coord(layout, register, d);
            if layout.needs_bounds_predicate(d) {
                let last = self.b.i32(i64::from(layout.shape()[d] - 1));
                let size = self.b.i32(i64::from(layout.shape()[d]));
                let inside = self.b.icmp(IntPred::Ult, c, size);
                row.inside = self.all(&[row.inside, Some(inside)]);
                c = self.int_min_max(arith::Kind::Minui, c, last);
            }
            if rows[d] < layout.shape()[d] {
                if low > 0 {
                    c = self.b.lshr(c, low);
                }
                if rows[d] < layout.shape()[d] >> low {
                    c = self.b.and_const(c, u64::from(rows[d] - 1));
                }
            }
            let c = self.b.mul_const(c, strides[d]);
            row.number = self.b.add(row.number, c);
        }
        row
    }

    /// The address of a row of table `k`, or of its value in a column.
    pub(crate) fn table_address(
        &mut self,
        tables: &Tables,
        k: usize,
        row: Value,
        column: Option<Value>,
    ) -> Value {
        let row = self.b.mul_const(row, i64::from(tables.columns) * tables.bytes(k));
        let column = column.map(|c| self.b.mul_const(c, tables.bytes(k)));
        let base = self.b.ptr_add_const(tables.scratch, tables.values[k].1);
        let row = self.b.ptr_add(base, row);
        column.map_or(row, |c| self.b.ptr_add(row, c))
    }

    /// A row of all tables: a partial result a column.
    fn read_row(&mut self, tables: &Tables, row: Value) -> Vec<Partial> {
        let mut all = vec![Partial { values: Vec::new(), valid: None }; tables.columns as usize];
        for (k, &(ty, _)) in tables.values.iter().enumerate() {
            let p = self.table_address(tables, k, row, None);
            let width = tables.columns.min(self.vector_bits() / memory_bits(ty));
            for start in (0..tables.columns).step_by(width as usize) {
                let at = self.b.ptr_add_const(p, i64::from(start) * tables.bytes(k));
                for (i, v) in self.load_shared(at, ty, width).into_iter().enumerate() {
                    all[start as usize + i].values.push(v);
                }
            }
        }
        all
    }

    /// Combines the partial results of the first of 2^`bits` warps, of the element of a row: a lane reads one, and an instruction combines all lanes'.
    /// That is for functions that have one. `warps`: how many are the first.
    pub(crate) fn combine_by_instruction(
        &mut self,
        region: ir::Block,
        bits: u32,
        tables: &Tables,
        row: Value,
        warps: Value,
    ) -> Option<Value> {
        let &[(ty, _)] = &tables.values[..] else { return None };
        if bits > self.lane_bits() {
            return None;
        }
        let (intrinsic, identity) = (self.lane_reduction(region, ty)?, self.identity_of(region, ty)?);
        let lane = self.lane();
        let mine = self.b.and_const(lane, (1 << bits) - 1);
        let at = self.table_address(tables, 0, row, Some(mine));
        let value = self.load_shared(at, ty, 1)[0];
        let counts = self.b.icmp(IntPred::Ult, lane, warps);
        let value = self.b.select(counts, value, identity);
        Some(H::reduce_lanes(self, intrinsic, value))
    }

    /// Combines the partial results of 2^`bits` warps, of one element: a lane reads one, and lanes combine them.
    fn combine_in_lanes(&mut self, region: ir::Block, bits: usize, tables: &Tables) -> Result<Partial> {
        let (row, all) = (self.b.i32(0), self.b.i32(1 << bits));
        if let Some(total) = self.combine_by_instruction(region, bits as u32, tables, row, all) {
            return Ok(Partial { values: vec![total], valid: None });
        }
        let lane = self.lane();
        let mine = self.b.and_const(lane, (1 << bits) - 1);
        let mut values = Vec::new();
        for (k, &(ty, begin)) in tables.values.iter().enumerate() {
            let offset = self.b.mul_const(mine, tables.bytes(k));
            let base = self.b.ptr_add_const(tables.scratch, begin);
            let p = self.b.ptr_add(base, offset);
            values.push(self.load_shared(p, ty, 1)[0]);
        }
        let lanes: Vec<u32> = (0..bits as u32).collect();
        self.across_lanes(region, &lanes, Partial { values, valid: None })
    }
}

/// The least coordinate along `axis` that each of the warps has over which the axis is spread: that of lane 0. So it is known which
/// hold nothing but padding.
fn least_coordinates(layout: &TileLayout, axis: usize, spread: &AxisSpread) -> Vec<u32> {
    (0..1 << spread.warps.len())
        .map(|w| {
            let of_warp = spread.warps.iter().enumerate().filter(|(i, _)| w >> i & 1 == 1);
            of_warp.fold(0, |c, (_, &bit)| {
                let basis = layout.linear().flat_bases(Dim::Warp)[bit as usize];
                c ^ layout.linear().out_part(basis, Dim::Axis(axis as u8))
            })
        })
        .collect()
}
