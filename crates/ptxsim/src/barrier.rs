//! CTA and cluster barriers (PTX ISA §9.7.13.1, §9.7.13.3).
//!
//! A CTA barrier counts warps, as 32 threads each: a warp has arrived when all its live lanes have, in one fragment or
//! in several. An *aligned* barrier wants the whole warp at the one instruction; a fragment that comes without the
//! rest waits until nothing else of the warp can run, and is then reported and let through.

use crate::clock::Clock;
use crate::isa::NONE;
use crate::machine::{Grid, State, Unit, find};
use crate::regs::LANES;
use crate::report::FindingKind;

/// An operation at a CTA barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BarrierOp {
    pub id: u32,
    /// Threads expected, when the instruction says.
    pub count: Option<u32>,
    /// Arrives and goes on.
    pub arrive: bool,
    pub aligned: bool,
    /// `.red`: 1 and, 2 or, 3 popc; with the predicate's lanes and the destination.
    pub red: u32,
    pub pred: u32,
    pub dst: u32,
    /// The cluster's barrier, not the CTA's.
    pub cluster: bool,
    /// Arrives without a release: only what was fenced before is published.
    pub relaxed: bool,
}

/// A CTA barrier.
#[derive(Clone, Default)]
pub(crate) struct Bar {
    /// Lanes of each warp that have arrived in this phase.
    pub lanes: Vec<u32>,
    pub arrived: u32,
    pub count: Option<u32>,
    /// Result of `.red`.
    pub red: u32,
    pub used: bool,
    /// What the threads that arrived are ordered after.
    pub clock: Clock,
}

impl Unit {
    /// Fragment `f` of warp `k` is at a barrier, in state `Pending`: counts it when its warp is complete.
    pub(crate) fn arrive(&mut self, k: usize, f: usize, grid: &Grid<'_>) {
        let Some(w) = self.warps[k].as_mut() else { return };
        let frag = w.frags[f];
        let State::Pending(op, missing) = frag.state else { return };
        let lost = missing & !frag.mask;
        if op.aligned && lost != 0 {
            let lane = frag.mask.trailing_zeros() as usize % LANES;
            let Some(w) = self.warps[k].take() else { return };
            let inst = &grid.code.insts[frag.pc as usize];
            let elsewhere = w.frags.iter().find(|x| x.mask & lost != 0);
            let message = format!(
                "divergent barrier: lanes {:#010x} of the warp are here, lanes {lost:#010x} {}",
                frag.mask,
                match elsewhere {
                    Some(x) => format!("are at line {}", grid.code.insts[x.pc as usize].line),
                    None => "have exited".into(),
                }
            );
            find(grid, self, &w, inst, FindingKind::DivergentBarrier, lane, None, message);
            self.warps[k] = Some(w);
        }
        self.events += 1;
        let Some(w) = self.warps[k].as_mut() else { return };
        if op.cluster {
            w.sync.cluster_arrived = w.sync.cluster_phase + 1;
        }
        let (cta, live) = (w.cta, w.live);
        let wid = w.id as usize;
        w.frags[f].state = State::Waiting(op);
        if grid.options.checks {
            let bar = if op.cluster {
                &mut self.cluster_bar
            } else {
                &mut self.ctas[cta].bars[op.id as usize & 15]
            };
            if !op.relaxed {
                bar.clock.join(&w.sync.known(frag.mask));
            } else if let Some(c) = &w.sync.fenced {
                bar.clock.join(c);
            }
            if op.arrive { w.sync.tick() } else { w.sync.sync_lanes() }
        }
        if op.arrive {
            w.frags[f].state = State::Ready;
            w.frags[f].pc += 1;
        }
        if op.cluster {
            self.cluster_bar.lanes[k] |= frag.mask;
            self.cluster_bar.used = true;
            self.recheck_cluster();
            return;
        }
        let bar = &mut self.ctas[cta].bars[op.id as usize & 15];
        let mut mismatch = None;
        if bar.used && bar.count != op.count {
            mismatch = Some(bar.count);
        }
        bar.used = true;
        bar.count = op.count;
        bar.red = match op.red {
            // `and` counts the lanes where the predicate is false.
            1 => bar.red + (frag.mask & !op.pred).count_ones(),
            2 | 3 => bar.red + (frag.mask & op.pred).count_ones(),
            _ => bar.red,
        };
        bar.lanes[wid] |= frag.mask;
        // Arrivals are counted by warps, each as 32 threads, and a warp may arrive more than once in a phase.
        if bar.lanes[wid] & live == live {
            bar.arrived += 32;
            bar.lanes[wid] = 0;
        }
        if let Some(other) = mismatch
            && let Some(w) = self.warps[k].take()
        {
            let show = |c: Option<u32>| c.map_or("all".to_string(), |c| c.to_string());
            let message = format!(
                "barrier {} is used with {} threads here and {} threads elsewhere in one phase",
                op.id,
                show(op.count),
                show(other)
            );
            let inst = &grid.code.insts[frag.pc as usize];
            let lane = frag.mask.trailing_zeros() as usize % LANES;
            find(grid, self, &w, inst, FindingKind::ArriveCount, lane, None, message);
            self.warps[k] = Some(w);
        }
        self.complete(cta, op.id as usize & 15, grid);
    }

    /// Completes a CTA barrier if all expected threads have arrived.
    fn complete(&mut self, cta: usize, id: usize, grid: &Grid<'_>) {
        let counted = self.ctas[cta].bars[id].count.is_some();
        let expected = match self.ctas[cta].bars[id].count {
            Some(c) => c,
            None => self.live_warps(cta) * 32,
        };
        let bar = &mut self.ctas[cta].bars[id];
        if !bar.used || bar.arrived < expected || bar.arrived == 0 {
            return;
        }
        let red = bar.red;
        let clock = std::mem::take(&mut bar.clock);
        bar.lanes.iter_mut().for_each(|l| *l = 0);
        bar.arrived = 0;
        bar.red = 0;
        bar.used = false;
        bar.count = None;
        self.events += 1;
        // Every live thread takes part: a phase ends.
        let mut whole = self.ctas.len() == 1;
        for k in self.ctas[cta].warps.clone() {
            let Some(w) = self.warps[k].as_mut() else { continue };
            let mut here = 0;
            for f in 0..w.frags.len() {
                let State::Waiting(op) = w.frags[f].state else { continue };
                if op.cluster || op.id as usize & 15 != id {
                    continue;
                }
                here |= w.frags[f].mask;
                let mask = w.frags[f].mask;
                w.frags[f].state = State::Ready;
                w.frags[f].pc += 1;
                match op.red {
                    1 | 2 if op.dst != NONE => {
                        let v = (red != 0) == (op.red == 2);
                        let p = &mut w.regs.p[op.dst as usize];
                        *p = if v { *p | mask } else { *p & !mask };
                    }
                    3 if op.dst != NONE => {
                        let r = &mut w.regs.w[op.dst as usize];
                        for (l, r) in r.iter_mut().enumerate() {
                            if mask >> l & 1 != 0 {
                                *r = red;
                            }
                        }
                    }
                    _ => {}
                }
            }
            // A barrier of all threads waits for those that end; one that counts does without them.
            whole &= if w.done { !counted } else { here == w.live };
            if grid.options.checks && here != 0 {
                w.sync.clock.join(&clock);
            }
        }
        if whole {
            self.ctas[cta].shadow.next_phase();
        }
    }

    /// A warp has ended: barriers that wait for all may be complete.
    pub(crate) fn recheck(&mut self, cta: usize, grid: &Grid<'_>) {
        for id in 0..16 {
            if self.ctas[cta].bars[id].count.is_none() {
                self.complete(cta, id, grid);
            }
        }
        self.recheck_cluster();
    }

    fn recheck_cluster(&mut self) {
        if !self.cluster_bar.used {
            return;
        }
        for (k, w) in self.warps.iter().enumerate() {
            if let Some(w) = w
                && !w.done
                && self.cluster_bar.lanes[k] & w.live != w.live
            {
                return;
            }
        }
        self.cluster_bar.lanes.iter_mut().for_each(|l| *l = 0);
        self.cluster_bar.used = false;
        self.cluster_bar.arrived += 1;
        self.events += 1;
        let clock = std::mem::take(&mut self.cluster_bar.clock);
        for w in self.warps.iter_mut().flatten() {
            w.sync.cluster_phase += 1;
            w.sync.cluster_clock = Some(Box::new(clock.clone()));
        }
    }
}
