//! `tt.scan`, `tt.histogram` and `tt.gather`.
//!
//! A thread holds runs of consecutive elements of the scanned axis, next to it are the lanes, then the warps, then the
//! thread's next run ([`ScanOrder`]). A scan goes up this hierarchy: within a run, across lanes by shuffles, across warps
//! and runs by their totals, and the prefixes of each level are combined into the elements at the end.

use tilewright_ir as ir;
use tilewright_ir::dialect::{arith, tt};
use tilewright_layout::{ScanOrder, TileLayout};
use tilewright_llvm::{IntPred, Ty, Value};

use crate::reduce::Partial;
use crate::shape::row_major;
use crate::{Hooks, Lower, Regs, Result, Shuffle, memory_bits};

impl<H: Hooks> Lower<'_, H> {
    pub(crate) fn scan(&mut self, op: tt::Scan) -> Result<()> {
        let m = self.m;
        let (axis, reverse) = (op.axis(m) as usize, op.reverse(m));
        let srcs: Vec<ir::Value> = op.srcs(m).to_vec();
        let regs: Vec<Regs> = srcs.iter().map(|&v| self.regs(v)).collect::<Result<_>>()?;
        let layout = self.layout(self.value_ty(srcs[0]))?;
        let region = m.region_block(op.combine(m));
        // Layouts are assigned so; IR that was written by hand may have others.
        let Some(h) = ScanOrder::of(&layout, axis) else {
            return Err(self.unsupported("a scan along an axis that this layout interleaves otherwise"));
        };
        // Lines: registers that differ along the axis only, in the order of the scan.
        let mut lines: Vec<(Vec<u32>, Vec<u32>)> = Vec::new();
        for r in layout.unique_registers() {
            let mut key = layout.register_coord(r).to_vec();
            key.remove(axis);
            match lines.iter_mut().find(|(k, _)| *k == key) {
                Some((_, line)) => line.push(r),
                None => lines.push((key, vec![r])),
            }
        }
        for (_, line) in &mut lines {
            line.sort_by_key(|&r| layout.register_coord(r)[axis]);
            if reverse {
                line.reverse();
            }
        }
        let tys: Vec<Ty> = regs.iter().map(|r| self.b.ty(r[0])).collect();
        let tid = self.tid();
        let field = |s: &mut Self, bit: u32, count: u32| {
            let shifted = s.b.lshr(tid, bit);
            let index = s.b.and_const(shifted, u64::from(count - 1));
            // Counted in the direction of the scan.
            if reverse {
                let last = s.b.i32(i64::from(count - 1));
                s.b.sub(last, index)
            } else {
                index
            }
        };
        let lane = field(self, h.lane_bit, h.lanes);
        let warp = field(self, self.lane_bits() + h.warp_bit, h.warps);

        // Within runs, and across lanes: per line and run, the elements and the inclusive total up to this lane.
        let identity = if reverse { self.identity(region, &srcs) } else { None };
        let mut scanned: Vec<Vec<(Vec<Partial>, Partial)>> = Vec::new();
        for (_, line) in &lines {
            let mut runs = Vec::new();
            for run in line.chunks(h.run.min(line.len() as u32) as usize) {
                let mut elements: Vec<Partial> = Vec::new();
                for &r in run {
                    let values: Vec<Value> = regs.iter().map(|x| x[r as usize]).collect();
                    // Forwards, padding comes last and spoils nothing.
                    let this = if reverse {
                        self.guarded(&layout, r, axis, values.clone(), identity.as_deref()).unwrap_or_else(
                            || {
                                let never = self.b.bool(false);
                                Partial { values, valid: Some(never) }
                            },
                        )
                    } else {
                        Partial { values, valid: None }
                    };
                    let this = match elements.last() {
                        Some(before) => self.combine(region, &before.clone(), &this)?,
                        None => this,
                    };
                    elements.push(this);
                }
                let mut total = elements[elements.len() - 1].clone();
                let mut distance = 1;
                while distance < h.lanes {
                    let before = self.lane_before(&total, distance << h.lane_bit, reverse);
                    let both = self.combine(region, &before, &total)?;
                    let d = self.b.i32(i64::from(distance));
                    let has = self.b.icmp(IntPred::Uge, lane, d);
                    total = self.pick(has, &both, &total);
                    distance *= 2;
                }
                runs.push((elements, total));
            }
            scanned.push(runs);
        }
        let totals = if h.warps > 1 {
            Some(self.warp_totals(&layout, axis, &lines, &scanned, &h, lane, warp, reverse, &tys)?)
        } else {
            None
        };

        let mut out: Vec<Vec<Value>> = regs.iter().map(|r| r.to_vec()).collect();
        let zero = self.b.i32(0);
        let has_lane = self.b.icmp(IntPred::Ne, lane, zero);
        for (l, ((_, line), runs)) in lines.iter().zip(&scanned).enumerate() {
            // What precedes the current run (of this warp): nothing, at first.
            let mut carry: Option<Partial> = None;
            for (r, (elements, total)) in runs.iter().enumerate() {
                let mut before_run = carry.clone();
                if let Some(totals) = &totals {
                    // Totals of the runs before and of the warps before in this run.
                    let from = r as u32 * h.warps;
                    let mut mine = carry.clone();
                    for w in 0..h.warps {
                        let this = self.b.i32(i64::from(w));
                        let here = self.b.icmp(IntPred::Eq, warp, this);
                        mine = match (mine, &carry) {
                            (Some(old), Some(new)) => Some(self.pick(here, new, &old)),
                            (None, Some(new)) => Some(new.clone()),
                            (old, None) => old,
                        };
                        let Some(t) = &totals[l][(from + w) as usize] else { continue };
                        carry = Some(match &carry {
                            Some(c) => self.combine(region, c, t)?,
                            None => t.clone(),
                        });
                    }
                    // Up to the first total that is more than padding nothing comes before.
                    let first = totals[l].iter().take_while(|t| t.is_none()).count() as u32;
                    if let (Some(p), true) = (&mut mine, from <= first) {
                        let last = self.b.i32(i64::from(first - from));
                        let after = if first == from { IntPred::Ne } else { IntPred::Ugt };
                        p.valid = Some(self.b.icmp(after, warp, last));
                    }
                    before_run = mine;
                }
                let mut prefix = before_run;
                if h.lanes > 1 {
                    let mut before = self.lane_before(total, 1 << h.lane_bit, reverse);
                    before.valid = Some(match before.valid {
                        Some(v) => self.b.and(v, has_lane),
                        None => has_lane,
                    });
                    prefix = Some(match &prefix {
                        Some(p) => self.combine(region, p, &before)?,
                        None => before,
                    });
                }
                let start = r * elements.len();
                for (i, element) in elements.iter().enumerate() {
                    let result = match &prefix {
                        Some(p) => self.combine(region, p, element)?,
                        None => element.clone(),
                    };
                    for (k, &v) in result.values.iter().enumerate() {
                        out[k][line[start + i] as usize] = v;
                    }
                }
                if totals.is_none() && r + 1 < runs.len() {
                    let whole = self.last_lane(total, &h, reverse);
                    carry = Some(match &carry {
                        Some(c) => self.combine(region, c, &whole)?,
                        None => whole,
                    });
                }
            }
        }
        for (&result, regs) in m.results(op.0).iter().zip(out) {
            self.set_regs(result, regs);
        }
        Ok(())
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
    fn lane_before(&mut self, p: &Partial, distance: u32, reverse: bool) -> Partial {
        self.shuffle_partial(p, if reverse { Shuffle::Down(distance) } else { Shuffle::Up(distance) })
    }

    /// The value of the last lane along the axis.
    fn last_lane(&mut self, p: &Partial, h: &ScanOrder, reverse: bool) -> Partial {
        if h.lanes == 1 {
            return p.clone();
        }
        let lane = self.lane();
        let mask = u64::from((h.lanes - 1) << h.lane_bit);
        let others = self.b.and_const(lane, !mask & u64::from(self.target.warp_size - 1));
        let from = if reverse {
            others
        } else {
            let bits = self.b.i32(mask as i64);
            self.b.or(others, bits)
        };
        self.shuffle_partial(p, Shuffle::Index(from))
    }

    /// The totals of all runs of all warps along the axis, in the order of the scan, for each line of this thread; `None` for
    /// those of nothing but padding.
    fn warp_totals(
        &mut self,
        layout: &TileLayout,
        axis: usize,
        lines: &[(Vec<u32>, Vec<u32>)],
        scanned: &[Vec<(Vec<Partial>, Partial)>],
        h: &ScanOrder,
        lane: Value,
        warp: Value,
        reverse: bool,
        tys: &[Ty],
    ) -> Result<Vec<Vec<Option<Partial>>>> {
        let scratch = self.scratch()?;
        let runs = scanned[0].len() as u32;
        let count = runs * h.warps;
        let mut strides = vec![0i64; layout.rank()];
        let mut rows = 1i64;
        for d in (0..layout.rank()).rev().filter(|&d| d != axis) {
            strides[d] = rows;
            rows *= i64::from(layout.shape()[d]);
        }
        let last = self.b.i32(i64::from(h.lanes - 1));
        let is_last = self.b.icmp(IntPred::Eq, lane, last);
        let owner = self.is_owner(layout);
        let mut addresses = Vec::new();
        for (l, (_, line)) in lines.iter().enumerate() {
            let mut row = self.b.i32(0);
            let mut pred = self.all(&[owner, Some(is_last)]);
            for d in (0..layout.rank()).filter(|&d| d != axis) {
                let mut c = self.coord(layout, line[0], d);
                if layout.needs_bounds_predicate(d) {
                    let size = self.b.i32(i64::from(layout.shape()[d]));
                    let inside = self.b.icmp(IntPred::Ult, c, size);
                    pred = self.all(&[pred, Some(inside)]);
                    let top = self.b.i32(i64::from(layout.shape()[d] - 1));
                    c = self.int_min_max(arith::Kind::Minui, c, top);
                }
                let c = self.b.mul_const(c, strides[d] * i64::from(count));
                row = self.b.add(row, c);
            }
            let mut part = 0i64;
            let mut of_line = Vec::new();
            for (k, &ty) in tys.iter().enumerate() {
                let bytes = i64::from(memory_bits(ty) / 8);
                let base = self.b.ptr_add_const(scratch, part);
                let offset = self.b.mul_const(row, bytes);
                let at = self.b.ptr_add(base, offset);
                of_line.push(at);
                part += (rows * i64::from(count) * bytes + 15) / 16 * 16;
                let column = self.b.mul_const(warp, bytes);
                let mine = self.b.ptr_add(at, column);
                for (r, (_, total)) in scanned[l].iter().enumerate() {
                    let p = self.b.ptr_add_const(mine, r as i64 * i64::from(h.warps) * bytes);
                    self.store_shared(p, &[total.values[k]], pred);
                }
            }
            addresses.push(of_line);
        }
        self.barrier();
        let begins = |i: u32| h.run * h.lanes * if reverse { count - 1 - i } else { i };
        let mut all = Vec::new();
        for of_line in addresses {
            let line = (0..count).map(|i| {
                (begins(i) < layout.shape()[axis]).then(|| {
                    let values = of_line.iter().zip(tys).map(|(&at, &ty)| {
                        let from = self.b.ptr_add_const(at, i64::from(i) * i64::from(memory_bits(ty) / 8));
                        self.load_shared(from, ty, 1)[0]
                    });
                    Partial { values: values.collect(), valid: None }
                })
            });
            all.push(line.collect());
        }
        Ok(all)
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

    /// The source in scratch memory, read at computed places.
    pub(crate) fn gather(&mut self, op: tt::Gather) -> Result<()> {
        let m = self.m;
        let axis = op.axis(m) as usize;
        let result = op.result(m);
        let (from, to) = (self.layout(self.value_ty(op.src(m)))?, self.layout(self.value_ty(result))?);
        let (values, indices) = (self.regs(op.src(m))?, self.regs(op.indices(m))?);
        let ty = self.elem_ty(self.value_ty(result))?;
        let bytes = i64::from(memory_bits(ty) / 8);
        let scratch = self.scratch()?;
        let strides = row_major(from.shape());
        self.write_scratch(scratch, &from, &values, &strides, 0);
        self.barrier();
        let mut out = Vec::with_capacity(indices.len());
        for r in 0..to.num_registers() {
            let mut at = scratch;
            for (d, &stride) in strides.iter().enumerate() {
                let c = if d == axis {
                    self.b.int_cast(indices[r as usize], Ty::I32, true)
                } else {
                    self.coord(&to, r, d)
                };
                // Padding and wrong indices read some element that exists.
                let last = self.b.i32(i64::from(from.shape()[d] - 1));
                let c = self.int_min_max(arith::Kind::Minui, c, last);
                let offset = self.b.mul_const(c, stride * bytes);
                at = self.b.ptr_add(at, offset);
            }
            out.push(self.load_shared(at, ty, 1)[0]);
        }
        self.set_regs(result, out);
        Ok(())
    }
}
