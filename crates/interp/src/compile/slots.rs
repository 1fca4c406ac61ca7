//! Register allocation: linear scan over the lives of virtual registers.

use crate::program::{Instr, Program, Role};

/// Rewrites virtual registers to slots, and marks the last uses that may take a value instead of copying it.
///
/// A register that is alive when a loop starts and touched inside it lives to the loop's end, as the next iteration
/// may need it. `loops` are instruction ranges, inner before outer; `pinned` registers live throughout their range. What begins in one of the
/// `strands`, ranges of instructions that run at the same time as others, has slots of that strand alone.
pub fn allocate(
    program: &mut Program,
    registers: usize,
    loops: &[(usize, usize)],
    pinned: &[(u32, usize, usize)],
    strands: &[(usize, usize)],
) {
    const NEVER: usize = usize::MAX;
    let mut first = vec![NEVER; registers];
    let mut last = vec![0usize; registers];
    let mut bytes = vec![0usize; registers];
    // Instruction i is at position i + 1; inputs are written at 0, outputs read after the end.
    let end = program.code.len() + 1;
    let mut touch = |slot: u32, at: usize, size: usize| {
        let r = slot as usize;
        first[r] = if first[r] == NEVER { at } else { first[r].min(at) };
        last[r] = last[r].max(at);
        bytes[r] = bytes[r].max(size);
    };
    let sizes: Vec<usize> = program.types.iter().map(|t| t.len * t.elem.reg_size()).collect();
    for v in &program.inputs {
        touch(v.slot, 0, sizes[v.ty as usize]);
    }
    for (i, instr) in program.code.iter_mut().enumerate() {
        instr.visit(&mut |v, _| touch(v.slot, i + 1, sizes[v.ty as usize]));
    }
    for v in &program.outputs {
        touch(v.slot, end, sizes[v.ty as usize]);
    }
    for &(r, from, to) in pinned {
        touch(r, from + 1, 0);
        touch(r, to + 1, 0);
    }
    for &(from, to) in loops {
        for r in 0..registers {
            if first[r] < from + 1 && last[r] > from && last[r] <= to {
                last[r] = to + 1;
            }
        }
    }

    let mut order: Vec<usize> = (0..registers).filter(|&r| first[r] != NEVER).collect();
    order.sort_by_key(|&r| first[r]);
    let mut slot_of = vec![0u32; registers];
    // Live registers by the end of their life, and free slots by size class.
    let mut live = std::collections::BinaryHeap::new();
    let mut free: Vec<Vec<u32>> = vec![Vec::new(); 64 * (strands.len() + 1)];
    let strand = |at: usize| {
        strands.iter().position(|&(from, to)| (from + 1..=to + 1).contains(&at)).map_or(0, |i| i + 1)
    };
    let class =
        |r: usize| 64 * strand(first[r]) + bytes[r].max(1).next_power_of_two().trailing_zeros() as usize;
    let mut slots = 0;
    for r in order {
        while let Some(&(std::cmp::Reverse(until), done)) = live.peek() {
            // A register must not take the slot of an operand of its own definition: loops read and write at once.
            if until >= first[r] {
                break;
            }
            live.pop();
            let done: usize = done;
            free[class(done)].push(slot_of[done]);
        }
        slot_of[r] = free[class(r)].pop().unwrap_or_else(|| {
            slots += 1;
            slots - 1
        });
        live.push((std::cmp::Reverse(last[r]), r));
    }
    program.slots = slots as usize;

    for (i, instr) in program.code.iter_mut().enumerate() {
        let dies = |slot: u32| last[slot as usize] == i + 1;
        match instr {
            Instr::Move { assigns, .. } => {
                let mut taken = Vec::new();
                for a in assigns.iter_mut().rev() {
                    // Where a value is assigned twice, the last assignment may take it.
                    a.take = dies(a.src.slot) && !taken.contains(&a.src.slot);
                    taken.push(a.src.slot);
                }
            }
            Instr::Tile(op) => op.last_uses(&|v| dies(v.slot)),
            _ => {}
        }
        instr.visit(&mut |v, _: Role| v.slot = slot_of[v.slot as usize]);
    }
    for v in program.inputs.iter_mut().chain(&mut program.outputs) {
        v.slot = slot_of[v.slot as usize];
    }
}
