//! `tt.scan` and `tt.histogram`.
//!
//! A thread holds runs of consecutive elements of the scanned axis, next to it are the lanes, then the warps, then the
//! thread's next run ([`ScanOrder`]). A scan goes up this hierarchy: within a run, across lanes by shuffles, across warps
//! and runs by their totals, and the prefixes of each level are combined into the elements at the end.

use tilewright_ir as ir;
use tilewright_ir::dialect::tt;
use tilewright_layout::{ScanOrder, TileLayout};
use tilewright_llvm::{IntPred, Ty, Value};
use tilewright_passes::analysis::scratch::{self, ScanRounds};

use crate::reduce::{Partial, Row, Tables, outside};
use crate::{Hooks, Lower, Regs, Result, Shuffle, memory_bits};

/// From this many warps on an instruction, where there is one, sums up those before each.
const MANY_WARPS: u32 = 8;

/// A scan that is being lowered.
struct Scan<'l> {
    /// The function of two partial results.
    region: ir::Block,
    layout: &'l TileLayout,
    axis: usize,
    reverse: bool,
    order: ScanOrder,
    /// The thread's lane along the axis, counted in the direction of the scan.
    lane: Value,
    /// Its warp, likewise.
    warp: Value,
    /// Where lines go in rounds.
    rounds: Option<ScanRounds>,
}

/// A run of a thread.
struct Run {
    /// Its elements, each with those before it in the run.
    elements: Vec<Partial>,
    /// All of them, with those of the lanes before.
    total: Partial,
}

impl Scan<'_> {
    /// Registers that differ along the axis only, in the order of the scan.
    fn lines(&self) -> Vec<Vec<u32>> {
        let mut lines: Vec<(Vec<u32>, Vec<u32>)> = Vec::new();
        for r in self.layout.unique_registers() {
            let mut key = self.layout.register_coord(r).to_vec();
            key.remove(self.axis);
            match lines.iter_mut().find(|(k, _)| *k == key) {
                Some((_, line)) => line.push(r),
                None => lines.push((key, vec![r])),
            }
        }
        let mut lines: Vec<Vec<u32>> = lines.into_iter().map(|(_, line)| line).collect();
        for line in &mut lines {
            line.sort_by_key(|&r| self.layout.register_coord(r)[self.axis]);
            if self.reverse {
                line.reverse();
            }
        }
        lines
    }

    /// In which round a line goes.
    fn round_of(&self, line: &[u32]) -> u32 {
        self.rounds.map_or(0, |rounds| rounds.round_of(self.layout.register_coord(line[0])[rounds.dim]))
    }
}

impl<H: Hooks> Lower<'_, H> {
    pub(crate) fn scan(&mut self, op: tt::Scan) -> Result<()> {
        let m = self.m;
        let srcs: Vec<ir::Value> = op.srcs(m).to_vec();
        let regs: Vec<Regs> = srcs.iter().map(|&v| self.regs(v)).collect::<Result<_>>()?;
        let layout = self.layout(self.value_ty(srcs[0]))?;
        let scan = self.scan_of(op, &layout)?;
        let lines = scan.lines();
        let identity = if scan.reverse { self.identity(scan.region, &srcs) } else { None };
        let mut scanned: Vec<Vec<Run>> = Vec::new();
        for line in &lines {
            let runs = line.chunks(scan.order.run.min(line.len() as u32) as usize);
            let runs = runs.map(|run| self.scan_run(&scan, run, &regs, identity.as_deref()));
            scanned.push(runs.collect::<Result<_>>()?);
        }
        let befores = match scan.order.warps {
            1 => None,
            _ => Some(self.before_warps_in_rounds(&scan, &lines, &scanned)?),
        };
        let mut out: Vec<Vec<Value>> = regs.iter().map(|r| r.to_vec()).collect();
        for (l, (line, runs)) in lines.iter().zip(&scanned).enumerate() {
            let befores = befores.as_ref().map(|befores| &befores[l][..]);
            self.add_prefixes(&scan, line, runs, befores, &mut out)?;
        }
        for (&result, regs) in m.results(op.0).iter().zip(out) {
            self.set_regs(result, regs);
        }
        Ok(())
    }

    /// The scan that an operation is, in the layout of its operands.
    fn scan_of<'l>(&mut self, op: tt::Scan, layout: &'l TileLayout) -> Result<Scan<'l>> {
        let (axis, reverse) = (op.axis(self.m) as usize, op.reverse(self.m));
        // Layouts are assigned so; IR that was written by hand may have others.
        let Some(order) = ScanOrder::of(layout, axis) else {
            return Err(self.unsupported("a scan along an axis that this layout interleaves otherwise"));
        };
        let tid = self.tid();
        let field = |s: &mut Self, bit: u32, count: u32| {
            let shifted = s.b.lshr(tid, bit);
            let index = s.b.and_const(shifted, u64::from(count - 1));
            if reverse {
                let last = s.b.i32(i64::from(count - 1));
                s.b.sub(last, index)
            } else {
                index
            }
        };
        let lane = field(self, order.lane_bit, order.lanes);
        let warp = field(self, self.lane_bits() + order.warp_bit, order.warps);
        let region = self.m.region_block(op.combine(self.m));
        let rounds = scratch::scan_rounds(self.m, op);
        Ok(Scan { region, layout, axis, reverse, order, lane, warp, rounds })
    }

    /// Scans the registers of a run, and its totals across lanes.
    fn scan_run(
        &mut self,
        scan: &Scan<'_>,
        run: &[u32],
        regs: &[Regs],
        identity: Option<&[Value]>,
    ) -> Result<Run> {
        let mut elements: Vec<Partial> = Vec::new();
        for &r in run {
            let values: Vec<Value> = regs.iter().map(|x| x[r as usize]).collect();
            // Forwards, padding comes last and spoils nothing.
            let this = if scan.reverse {
                self.guarded(scan.layout, r, scan.axis, values.clone(), identity).unwrap_or_else(|| {
                    let never = self.b.bool(false);
                    Partial { values, valid: Some(never) }
                })
            } else {
                Partial { values, valid: None }
            };
            let this = self.after(scan.region, elements.last(), this)?;
            elements.push(this);
        }
        let mut total = elements[elements.len() - 1].clone();
        let mut distance = 1;
        while distance < scan.order.lanes {
            let before = self.lane_before(scan, &total, distance);
            let both = self.combine(scan.region, &before, &total)?;
            let d = self.b.i32(i64::from(distance));
            let has = self.b.icmp(IntPred::Uge, scan.lane, d);
            total = self.pick(has, &both, &total);
            distance *= 2;
        }
        Ok(Run { elements, total })
    }

    /// Combines the elements of a line's runs with all that comes before them, and puts the results into its registers. `befores` is what of that is of
    /// other warps or runs, where several warps have the axis.
    fn add_prefixes(
        &mut self,
        scan: &Scan<'_>,
        line: &[u32],
        runs: &[Run],
        befores: Option<&[Option<Partial>]>,
        out: &mut [Vec<Value>],
    ) -> Result<()> {
        let zero = self.b.i32(0);
        let has_lane = self.b.icmp(IntPred::Ne, scan.lane, zero);
        // What precedes the current run (of the first warp): nothing, at first.
        let mut carry: Option<Partial> = None;
        for (r, Run { elements, total }) in runs.iter().enumerate() {
            let mut prefix = befores.map_or_else(|| carry.clone(), |befores| befores[r].clone());
            // The last element has the lanes before in it already.
            let others = &elements[..elements.len() - 1];
            let whole = self.after(scan.region, prefix.as_ref(), total.clone())?;
            if !others.is_empty() && scan.order.lanes > 1 {
                let mut before = self.lane_before(scan, total, 1);
                before.valid = Some(match before.valid {
                    Some(v) => self.b.and(v, has_lane),
                    None => has_lane,
                });
                prefix = Some(self.after(scan.region, prefix.as_ref(), before)?);
            }
            let mut results = Vec::new();
            for element in others {
                results.push(self.after(scan.region, prefix.as_ref(), element.clone())?);
            }
            results.push(whole);
            let start = r * elements.len();
            for (i, result) in results.iter().enumerate() {
                for (k, &v) in result.values.iter().enumerate() {
                    out[k][line[start + i] as usize] = v;
                }
            }
            if befores.is_none() && r + 1 < runs.len() {
                let whole = self.last_lane(scan, total);
                carry = Some(self.after(scan.region, carry.as_ref(), whole)?);
            }
        }
        Ok(())
    }

    /// What comes before a run of this warp: the totals of the runs before, and of the warps before in this run. `carry` is
    /// what comes before the run in the first warp, and becomes that of the next run. A run's totals are combined with each other first,
    /// so that runs wait for each other by one operation only.
    fn before_warp(
        &mut self,
        scan: &Scan<'_>,
        totals: &[Option<Partial>],
        carry: &mut Option<Partial>,
    ) -> Result<Option<Partial>> {
        let mut whole: Option<Partial> = None;
        let mut mine: Option<Partial> = None;
        // Whether a warp with a total comes before this one.
        let mut any = None;
        for (w, total) in totals.iter().enumerate() {
            let Some(total) = total else { continue };
            let next = self.after(scan.region, whole.as_ref(), total.clone())?;
            if w + 1 < totals.len() {
                let this = self.b.i32(w as i64);
                let behind = self.b.icmp(IntPred::Ugt, scan.warp, this);
                mine = Some(match mine {
                    Some(old) => self.pick(behind, &next, &old),
                    None => next.clone(),
                });
                any = any.or(Some(behind));
            }
            whole = Some(next);
        }
        let before = match mine {
            Some(mine) => Some(self.after(scan.region, carry.as_ref(), Partial { valid: any, ..mine })?),
            None => carry.clone(),
        };
        if let Some(whole) = whole {
            *carry = Some(self.after(scan.region, carry.as_ref(), whole)?);
        }
        Ok(before)
    }

    /// A partial result with what comes before it, if anything does.
    fn after(&mut self, region: ir::Block, before: Option<&Partial>, p: Partial) -> Result<Partial> {
        match before {
            Some(before) => self.combine(region, before, &p),
            None => Ok(p),
        }
    }

    /// `cond ? a : b`, with what each holds.
    fn pick(&mut self, cond: Value, a: &Partial, b: &Partial) -> Partial {
        let values = a.values.iter().zip(&b.values).map(|(&x, &y)| self.b.select(cond, x, y)).collect();
        let valid = match (a.valid, b.valid) {
            (None, None) => None,
            (x, y) => {
                let yes = self.b.bool(true);
                Some(self.b.select(cond, x.unwrap_or(yes), y.unwrap_or(yes)))
            }
        };
        Partial { values, valid }
    }

    /// The value of the lane `distance` before this one in the scan (the own one where there is none).
    fn lane_before(&mut self, scan: &Scan<'_>, p: &Partial, distance: u32) -> Partial {
        let distance = distance << scan.order.lane_bit;
        self.shuffle_partial(p, if scan.reverse { Shuffle::Down(distance) } else { Shuffle::Up(distance) })
    }

    /// The value of the last lane along the axis.
    fn last_lane(&mut self, scan: &Scan<'_>, p: &Partial) -> Partial {
        if scan.order.lanes == 1 {
            return p.clone();
        }
        let lane = self.lane();
        let mask = u64::from((scan.order.lanes - 1) << scan.order.lane_bit);
        let others = self.b.and_const(lane, !mask & u64::from(self.target.warp_size - 1));
        let from = if scan.reverse {
            others
        } else {
            let bits = self.b.i32(mask as i64);
            self.b.or(others, bits)
        };
        self.shuffle_partial(p, Shuffle::Index(from))
    }

    /// What comes before each run of this warp, for each line of this thread, those of one round after the other.
    fn before_warps_in_rounds(
        &mut self,
        scan: &Scan<'_>,
        lines: &[Vec<u32>],
        scanned: &[Vec<Run>],
    ) -> Result<Vec<Vec<Option<Partial>>>> {
        let mut befores = vec![Vec::new(); lines.len()];
        for round in 0..scan.rounds.map_or(1, |rounds| rounds.count) {
            let here: Vec<usize> = (0..lines.len()).filter(|&l| scan.round_of(&lines[l]) == round).collect();
            if round > 0 {
                // Other threads read what the round before wrote.
                self.barrier();
            }
            let of_round: Vec<(&[u32], &[Run])> =
                here.iter().map(|&l| (&lines[l][..], &scanned[l][..])).collect();
            for (&l, before) in here.iter().zip(self.before_warps(scan, &of_round)?) {
                befores[l] = before;
            }
        }
        Ok(befores)
    }

    /// What comes before each run of this warp, for lines of this thread: the totals of warps and runs before it.
    fn before_warps(
        &mut self,
        scan: &Scan<'_>,
        lines: &[(&[u32], &[Run])],
    ) -> Result<Vec<Vec<Option<Partial>>>> {
        let Scan { layout, axis, order, region, .. } = *scan;
        let runs = lines[0].1.len() as u32;
        let (tables, rows) = self.store_totals(scan, lines)?;
        self.barrier();
        let begins = |i: u32| {
            let count = runs * order.warps;
            order.run * order.lanes * if scan.reverse { count - 1 - i } else { i }
        };
        // Whether a run of a warp is no padding.
        let is_there: Vec<bool> = (0..runs * order.warps).map(|i| begins(i) < layout.shape()[axis]).collect();
        let mut befores = Vec::new();
        // An instruction combines all lanes: they have to ask for the same row.
        let in_one_row = order.lanes == self.target.warp_size;
        for row in rows {
            if in_one_row
                && runs == 1
                && order.warps >= MANY_WARPS
                && !is_there.contains(&false)
                && tables.ty(0).is_int()
                && let Some(before) =
                    self.combine_by_instruction(region, order.warps.ilog2(), &tables, row, scan.warp)
            {
                befores.push(vec![Some(Partial { values: vec![before], valid: None })]);
                continue;
            }
            let totals = self.load_totals(&tables, row, order.warps, &is_there);
            let mut carry = None;
            let of_runs = totals.chunks(order.warps as usize);
            befores.push(
                of_runs.map(|totals| self.before_warp(scan, totals, &mut carry)).collect::<Result<_>>()?,
            );
        }
        Ok(befores)
    }

    /// Writes the totals of all runs of all warps along the axis to scratch memory, and says in which row each line of this thread is.
    fn store_totals(&mut self, scan: &Scan<'_>, lines: &[(&[u32], &[Run])]) -> Result<(Tables, Vec<Value>)> {
        let Scan { layout, axis, order, .. } = *scan;
        let scratch = self.scratch()?;
        let runs = lines[0].1.len() as u32;
        let tys: Vec<Ty> = lines[0].1[0].total.values.iter().map(|&v| self.b.ty(v)).collect();
        let mut shape = outside(layout, axis);
        if let Some(rounds) = scan.rounds {
            shape[rounds.dim] = rounds.rows();
        }
        let tables = Tables::new(scratch, runs * order.warps, &shape, &tys);
        let last = self.b.i32(i64::from(order.lanes - 1));
        let is_last = self.b.icmp(IntPred::Eq, scan.lane, last);
        let owner = self.is_owner(layout);
        // A warp's runs are side by side, as many to an access as it can have.
        let first = self.b.mul_const(scan.warp, i64::from(runs));
        let mut rows = Vec::new();
        for (line, of_line) in lines {
            let Row { number, inside } =
                self.table_row(layout, (axis, &shape), line[0], scan.rounds.map_or(0, |rounds| rounds.low));
            let pred = self.all(&[owner, Some(is_last), inside]);
            for (k, &ty) in tys.iter().enumerate() {
                let width = self.runs_of_access(runs, ty);
                let mut at = self.table_address(&tables, k, number, Some(first));
                for runs in of_line.chunks(width as usize) {
                    let values: Vec<Value> = runs.iter().map(|run| run.total.values[k]).collect();
                    self.store_shared(at, &values, pred);
                    at = self.b.ptr_add_const(at, i64::from(width) * tables.bytes(k));
                }
            }
            rows.push(number);
        }
        Ok((tables, rows))
    }

    /// How many of a warp's runs are written or read at a time.
    fn runs_of_access(&self, runs: u32, ty: Ty) -> u32 {
        1 << runs.trailing_zeros().min((self.vector_bits() / memory_bits(ty)).ilog2())
    }

    /// The totals of a row, in the order of the scan; `None` for those of nothing but padding.
    fn load_totals(
        &mut self,
        tables: &Tables,
        row: Value,
        warps: u32,
        is_there: &[bool],
    ) -> Vec<Option<Partial>> {
        let count = is_there.len() as u32;
        let runs = count / warps;
        let mut line: Vec<Option<Partial>> =
            is_there.iter().map(|there| there.then(|| Partial { values: Vec::new(), valid: None })).collect();
        for k in 0..tables.len() {
            let ty = tables.ty(k);
            let width = self.runs_of_access(runs, ty);
            let mut at = self.table_address(tables, k, row, None);
            for column in (0..count).step_by(width as usize) {
                for (i, v) in (column..).zip(self.load_shared(at, ty, width)) {
                    let (warp, run) = (i / runs, i % runs);
                    if let Some(total) = &mut line[(run * warps + warp) as usize] {
                        total.values.push(v);
                    }
                }
                at = self.b.ptr_add_const(at, i64::from(width) * tables.bytes(k));
            }
        }
        line
    }

    /// Bins in scratch memory, counted by atomic additions.
    pub(crate) fn histogram(&mut self, op: tt::Histogram) -> Result<()> {
        let m = self.m;
        let result = op.result(m);
        let to = self.layout(self.value_ty(result))?;
        let ty = self.elem_ty(self.value_ty(result))?;
        if ty != Ty::I32 {
            return Err(self.unsupported("histograms with bins other than i32"));
        }
        let bins = to.shape()[0];
        let from = self.layout(self.value_ty(op.src(m)))?;
        let values = self.regs(op.src(m))?;
        let mask = op.mask(m).map(|v| self.regs(v)).transpose()?;
        let scratch = self.scratch()?;
        let tid = self.tid();
        let bytes = self.b.shl(tid, 2);
        let mine = self.b.ptr_add(scratch, bytes);
        let zero = self.b.i32(0);
        let threads = self.num_warps * self.target.warp_size;
        for start in (0..bins).step_by(threads as usize) {
            let p = self.b.ptr_add_const(mine, i64::from(start) * 4);
            let left = self.b.i32(i64::from(bins - start));
            let inside = self.b.icmp(IntPred::Ult, tid, left);
            self.store_shared(p, &[zero], Some(inside));
        }
        self.barrier();
        let owner = self.is_owner(&from);
        for r in from.unique_registers() {
            let inside = self.in_bounds(&from, r);
            let v = self.b.int_cast(values[r as usize], Ty::I32, true);
            let limit = self.b.i32(i64::from(bins));
            let counted = self.b.icmp(IntPred::Ult, v, limit);
            let wanted = mask.as_ref().map(|p| p[r as usize]);
            let pred = self.all(&[owner, inside, wanted, Some(counted)]);
            let offset = self.b.shl(v, 2);
            let at = self.b.ptr_add(scratch, offset);
            H::count_shared(self, at, pred);
        }
        self.barrier();
        let out = self.read_scratch(scratch, &to, ty, &[1], 0);
        self.set_regs(result, out);
        Ok(())
    }
}
