//! One warp's way through a loop, cycle by cycle.
//!
//! The assembler says with each instruction how many cycles to wait and which scoreboards it sets and waits for; with a
//! latency for what sets a scoreboard that is enough to walk a warp through the loop as if it were alone:
//!
//! ```text
//! LDG R4   sets 2, stall 4       issued at 0, its scoreboard free at 600
//! LDG R8   sets 3, stall 2       issued at 4, free at 604
//! FADD     waits for 2           issued at 600: 594 cycles waited for global loads
//! ```
//!
//! The loop is walked several times, since copies and asynchronous products of one iteration are awaited in a later one.

use std::collections::{BTreeMap, VecDeque};

use super::listing::Instruction;
use super::machine::{Cause, Machine};

/// Iterations that are walked, and those of them that are measured.
const ITERATIONS: usize = 12;
const MEASURED: usize = 4;

/// An iteration of one warp, on average.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Timeline {
    /// Cycles.
    pub cycles: f64,
    /// Cycles waited, by cause.
    pub waits: BTreeMap<Cause, f64>,
    /// The most loads from global memory, or copies of it, that are under way at a time.
    pub loads_in_flight: usize,
}

/// Asynchronous work that is committed in groups and awaited by how many groups may be left.
#[derive(Default)]
struct Groups(VecDeque<f64>);

impl Groups {
    /// When all but the newest `left` are done.
    fn awaited(&mut self, left: usize) -> f64 {
        let done = self.0.len().saturating_sub(left);
        self.0.drain(..done).fold(0.0, f64::max)
    }
}

/// Walks the loop. `in_step` is how many warp groups reach the tensor cores at once, as barriers make them do; without
/// barriers (`barriers` false) their cost is left out.
pub fn walk(body: &[Instruction], machine: Machine, in_step: u32, barriers: bool) -> Timeline {
    let mut now = 0.0;
    let mut free = [(0.0_f64, Cause::Arithmetic); 6];
    let mut copies = Groups::default();
    let mut copies_done = 0.0_f64;
    let mut products = Groups::default();
    let mut tensor_free = 0.0_f64;
    let mut flights: Vec<(f64, f64)> = Vec::new();
    let mut waits: BTreeMap<Cause, f64> = BTreeMap::new();
    let mut start = 0.0;
    for iteration in 0..ITERATIONS {
        if iteration == ITERATIONS - MEASURED {
            start = now;
            waits.clear();
            flights.clear();
        }
        for i in body.iter().filter(|i| !i.never) {
            let cost = machine.cost(i);
            let mut wait = |until: f64, cause: Cause, now: &mut f64| {
                if until > *now {
                    *waits.entry(cause).or_insert(0.0) += until - *now;
                    *now = until;
                }
            };
            if let Some(control) = i.control {
                let awaited = (0..6).filter(|b| control.waits >> b & 1 == 1).map(|b| free[b]);
                if let Some((until, cause)) = awaited.max_by(|a, b| a.0.total_cmp(&b.0)) {
                    wait(until, cause, &mut now);
                }
            }
            let left = || {
                let last = i.operands.rsplit(',').next().unwrap_or("").trim().trim_start_matches("0x");
                usize::from_str_radix(last, 16).unwrap_or(0)
            };
            let mut done = now + cost.latency;
            match i.name() {
                "HGMMA" | "QGMMA" | "IGMMA" | "BGMMA" => {
                    let cycles = cost.pipe.map_or(0.0, |(_, c)| c) * f64::from(in_step);
                    tensor_free = tensor_free.max(now) + cycles;
                    done = tensor_free + 32.0;
                    if i.operands.contains("gsb0") {
                        products.0.push_back(done);
                    }
                }
                "WARPGROUP" if i.has("DEPBAR") => wait(products.awaited(left()), Cause::Tensor, &mut now),
                "LDGSTS" => copies_done = copies_done.max(done),
                "LDGDEPBAR" => copies.0.push_back(copies_done),
                "DEPBAR" => wait(copies.awaited(left()), Cause::Copies, &mut now),
                "BAR" if barriers && i.has("SYNC") => {
                    wait(now + machine.barrier(), Cause::Barriers, &mut now)
                }
                _ => {}
            }
            if matches!(cost.cause, Cause::GlobalLoads | Cause::Copies) && cost.global_bytes > 0 {
                flights.push((now, done));
            }
            if let Some(control) = i.control {
                if let Some(b) = control.sets {
                    free[b as usize] = (done, cost.cause);
                }
                if let Some(b) = control.reads {
                    let read = now + 15.0;
                    if read > free[b as usize].0 {
                        free[b as usize] = (read, Cause::Arithmetic);
                    }
                }
            }
            now += i.control.map_or(1.0, |c| f64::from(c.stall.max(1)));
        }
    }
    let share = 1.0 / MEASURED as f64;
    let loads_in_flight = flights
        .iter()
        .map(|(from, _)| flights.iter().filter(|(start, end)| start <= from && from < end).count())
        .max();
    Timeline {
        cycles: (now - start) * share,
        waits: waits.into_iter().map(|(cause, cycles)| (cause, cycles * share)).collect(),
        loads_in_flight: loads_in_flight.unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Listing;
    use super::*;
    use crate::Target;

    /// Two loads of 128 bits, each followed by its use.
    fn body(uses_at_the_end: bool) -> Vec<Instruction> {
        // Stall 1; the loads set scoreboards 0 and 1, the additions wait for them.
        let control =
            |sets: u64, waits: u64| format!("/* 0x{:016x} */", 1 << 41 | sets << 46 | 7 << 49 | waits << 52);
        let load =
            |r: u32, b: u64| format!("LDG.E.128 R{r}, desc[UR4][R2.64] ; /* 0x0 */\n{}\n", control(b, 0));
        let add = |r: u32, b: u64| format!("FADD R{r}, R{r}, R{r} ; /* 0x0 */\n{}\n", control(7, 1 << b));
        let order = match uses_at_the_end {
            true => [load(4, 0), load(8, 1), add(4, 0), add(8, 1)],
            false => [load(4, 0), add(4, 0), load(8, 1), add(8, 1)],
        };
        let text: String = order.iter().enumerate().map(|(i, x)| format!("/*{:04x}*/ {x}", 16 * i)).collect();
        Listing::parse(&text).instructions
    }

    #[test]
    fn loads_together_wait_once() {
        let machine = Machine::new(Target::parse("cuda:90").unwrap());
        let together = walk(&body(true), machine, 1, true);
        let apart = walk(&body(false), machine, 1, true);
        assert_eq!((together.loads_in_flight, apart.loads_in_flight), (2, 1));
        assert!(apart.cycles > 1.9 * together.cycles, "{together:?} {apart:?}");
        assert_eq!(together.waits.keys().collect::<Vec<_>>(), [&Cause::GlobalLoads]);
    }
}
