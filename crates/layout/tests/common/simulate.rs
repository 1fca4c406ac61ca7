//! Carries out conversion plans on a simulated CTA.

use tilewright_layout::{
    ConversionPlan, MatrixAccess, MatrixInstruction, SelectStep, SharedPlan, ShufflePlan, SyncScope,
    TileLayout,
};

/// Values of registers: `[warp][lane][register]`, each the number of its element.
type Values = Vec<Vec<Vec<Option<u32>>>>;

fn values(tile: &TileLayout, warps: u32, number: impl Fn(&[u32]) -> u32) -> Values {
    let of = |r, l, w| {
        let coord = tile.coords(r, l, w % tile.num_warps());
        tile.in_bounds(&coord).then(|| number(&coord))
    };
    (0..warps)
        .map(|w| {
            (0..tile.num_lanes()).map(|l| (0..tile.num_registers()).map(|r| of(r, l, w)).collect()).collect()
        })
        .collect()
}

fn run_selects<T: Copy>(steps: &[SelectStep], values: &mut Vec<T>, lane: u32, warp: u32) {
    for step in steps {
        if step.condition.holds(lane, warp) {
            *values = (0..values.len()).map(|i| values[i ^ step.mask as usize]).collect();
        }
    }
}

fn run_shuffles(plan: &ShufflePlan, src: &Values, dst_registers: u32) -> Values {
    let mut out: Values =
        src.iter().map(|w| w.iter().map(|_| vec![None; dst_registers as usize]).collect()).collect();
    for (warp, threads) in src.iter().enumerate() {
        for &(from, to) in &plan.reps {
            let offered: Vec<_> = threads
                .iter()
                .enumerate()
                .map(|(lane, regs)| {
                    let words: Vec<_> = regs.chunks(plan.per_word as usize).collect();
                    let mut v = words[from as usize..(from + plan.src_registers) as usize].to_vec();
                    run_selects(&plan.pre, &mut v, lane as u32, warp as u32);
                    v
                })
                .collect();
            for (lane, registers) in out[warp].iter_mut().enumerate() {
                let mut got: Vec<&[Option<u32>]> = vec![&[]; plan.dst_registers as usize];
                for round in &plan.rounds {
                    let ask = round.from.at(lane as u32, warp as u32);
                    if let Some(c) = round.from.as_xor() {
                        assert_eq!(ask, lane as u32 ^ c);
                    }
                    got[round.dst as usize] = offered[ask as usize][round.src as usize];
                }
                run_selects(&plan.post, &mut got, lane as u32, warp as u32);
                let first = (to * plan.per_word) as usize;
                let got = got.concat();
                registers[first..first + got.len()].copy_from_slice(&got);
            }
        }
    }
    out
}

/// With the warp as scope, each warp works on its own, before or after the others.
fn run_shared(
    plan: &SharedPlan,
    src_tile: &TileLayout,
    src: &Values,
    dst_tile: &TileLayout,
    elem_bits: u32,
) -> Values {
    let lanes = src_tile.num_lanes();
    let mut out: Values = src
        .iter()
        .map(|w| w.iter().map(|_| vec![None; dst_tile.num_registers() as usize]).collect())
        .collect();
    let size = plan.scratch.allocation_elems();
    assert!(size * elem_bits.max(8) / 8 <= plan.scratch_bytes);
    let all: Vec<u32> = (0..src.len() as u32).collect();
    let groups: Vec<Vec<u32>> = match plan.scope {
        SyncScope::Cta => vec![all],
        SyncScope::Warp => all.into_iter().map(|w| vec![w]).collect(),
    };
    let free = src_tile.free_variable_masks();
    for warps in groups {
        for round in &plan.rounds {
            let mut memory: Vec<Option<u32>> = vec![None; size as usize];
            if let Some(m) = &plan.matrices {
                for &warp in &warps {
                    for i in &m.instructions[round.stores.clone()] {
                        let rows: Vec<_> = (0..32)
                            .map(|l| m.offset(i, &plan.scratch, l, warp % src_tile.num_warps()))
                            .collect();
                        store_matrices(m, i, &rows, &src[warp as usize], &mut memory, elem_bits);
                    }
                }
            }
            let stores = if plan.matrices.is_some() { 0..0 } else { round.stores.clone() };
            for &warp in &warps {
                for lane in 0..lanes {
                    if lane & free.lane != 0 || warp & free.warp != 0 {
                        continue;
                    }
                    for a in &plan.store.accesses[stores.clone()] {
                        let regs = &src[warp as usize][lane as usize];
                        if plan.store.needs_predicate && regs[a.registers[0] as usize].is_none() {
                            continue;
                        }
                        let at = plan.store.offset(a, &plan.scratch, lane, warp % src_tile.num_warps());
                        for (k, &r) in a.registers.iter().enumerate() {
                            let cell = &mut memory[at as usize + k];
                            let value = regs[r as usize];
                            assert!(
                                cell.is_none() || *cell == value || value.is_none(),
                                "two elements in one place"
                            );
                            *cell = value;
                        }
                    }
                }
            }
            for &warp in &warps {
                for lane in 0..lanes {
                    for a in &plan.load.accesses[round.loads.clone()] {
                        let own = dst_tile.coords(a.registers[0], lane, warp % dst_tile.num_warps());
                        if plan.load.needs_predicate && !dst_tile.in_bounds(&own) {
                            continue;
                        }
                        let at = plan.load.offset(a, &plan.scratch, lane, warp % dst_tile.num_warps());
                        for (k, &r) in a.registers.iter().enumerate() {
                            out[warp as usize][lane as usize][r as usize] = memory[at as usize + k];
                        }
                    }
                }
            }
        }
    }
    out
}

/// One `stmatrix` of a warp (PTX ISA, "Warp-level matrix store instruction: stmatrix"), with what each lane holds and the
/// offsets of the rows that it gives.
fn store_matrices(
    m: &MatrixAccess,
    i: &MatrixInstruction,
    rows: &[u32],
    held: &[Vec<Option<u32>>],
    memory: &mut [Option<u32>],
    elem_bits: u32,
) {
    let bytes = elem_bits / 8;
    for (lane, held) in held.iter().enumerate() {
        let lane = lane as u32;
        for matrix in 0..m.count {
            for e in 0..m.pack {
                let (row, byte) = if m.trans {
                    (2 * (lane % 4) + e, 2 * (lane / 4))
                } else {
                    (lane / 4, lane % 4 * 4 + e * bytes)
                };
                let r = i.registers[(matrix * m.pack + e) as usize];
                let cell = &mut memory[(rows[(8 * matrix + row) as usize] + byte / bytes) as usize];
                let value = held[r as usize];
                assert!(cell.is_none() || *cell == value || value.is_none(), "two elements in one place");
                *cell = value;
            }
        }
    }
}

/// Checks that a plan brings each element of `src` to where `dst` has it.
pub fn simulate(plan: &ConversionPlan, src: &TileLayout, dst: &TileLayout, elem_bits: u32) {
    let flat = |c: &[u32]| c.iter().zip(src.shape()).fold(0, |a, (c, s)| a * s + c);
    simulate_as(plan, src, dst, elem_bits, flat, flat);
}

/// [`simulate`] with elements numbered by their coordinate in the result and in the source.
pub fn simulate_as(
    plan: &ConversionPlan,
    src: &TileLayout,
    dst: &TileLayout,
    elem_bits: u32,
    in_dst: impl Fn(&[u32]) -> u32,
    in_src: impl Fn(&[u32]) -> u32,
) {
    let warps = src.num_warps().max(dst.num_warps());
    let before = values(src, warps, in_src);
    let got = match plan {
        ConversionPlan::Noop => before,
        ConversionPlan::RegisterPermute(from) => {
            let pick = |regs: &Vec<Option<u32>>| from.iter().map(|&r| regs[r as usize]).collect();
            before.iter().map(|w| w.iter().map(pick).collect()).collect()
        }
        ConversionPlan::WarpShuffle(plan) => run_shuffles(plan, &before, dst.num_registers()),
        ConversionPlan::SharedMemory(plan) => run_shared(plan, src, &before, dst, elem_bits),
    };
    let expected = values(dst, warps, in_dst);
    for (warp, threads) in expected.iter().enumerate() {
        for (lane, registers) in threads.iter().enumerate() {
            for (r, want) in registers.iter().enumerate() {
                if want.is_some() {
                    assert_eq!(
                        got[warp][lane][r], *want,
                        "register {r} of lane {lane} of warp {warp}, by {plan:?}"
                    );
                }
            }
        }
    }
}
