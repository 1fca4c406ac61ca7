//! Inline assembly, which the simulator of PTX runs.

use tilewright_ptxsim::{InlineAsm, Memory};

use super::{Context, Fault, FaultBox, Frame, read_bits};
use crate::elem::Elem;
use crate::kernels::cast;
use crate::program::{Program, V};
use crate::tile::Repr;

/// How many elements share a register: narrow ones are packed into 32 bits.
pub fn per_word(bits: u32, pack: usize) -> usize {
    (32 / bits.clamp(1, 32) as usize).min(pack)
}

impl Frame {
    /// Runs it for elements, `pack` that follow each other at a time; where they don't come out even, the last stands in for those
    /// that are missing.
    pub(super) fn inline_asm(
        &mut self,
        program: &Program,
        context: &Context<'_>,
        srcs: &[V],
        dsts: &[V],
        pack: usize,
        asm: &InlineAsm,
    ) -> Result<(), FaultBox> {
        let n = srcs.iter().chain(dsts).map(|&v| self.len(Self::ty(program, v))).max().unwrap_or(1);
        let runs = n.div_ceil(pack);
        let mut inputs = Vec::new();
        for &v in srcs {
            self.dense(program, v);
            let elem = Self::ty(program, v).elem;
            let bits = self.memory_bits(v, elem, n);
            let per_word = per_word(elem.bits(), pack);
            for word in 0..pack / per_word {
                inputs.extend((0..runs).map(|run| {
                    let first = run * pack + word * per_word;
                    (0..per_word)
                        .fold(0, |all, k| all | bits[(first + k).min(n - 1)] << (k as u32 * elem.bits()))
                }));
            }
        }
        let mut memory = Memory::new();
        for a in context.memory.allocations() {
            // SAFETY: what the executor may touch during a run is memory for as long, by its own registry's contract.
            unsafe { memory.register(a.base as *mut u8, a.len as usize, &a.name, a.writable) };
        }
        let runs_count =
            u32::try_from(runs).map_err(|_| Fault::new("too many elements for inline assembly"))?;
        let outputs = asm
            .run(&mut inputs, runs_count, &memory)
            .map_err(|e| Fault::new(format!("inline assembly: {}", e.message)))?;
        self.touched_memory = Some(self.pc);
        self.changed = true;
        let mut words = outputs.chunks_exact(runs.max(1));
        for &v in dsts {
            let elem = Self::ty(program, v).elem;
            let per_word = per_word(elem.bits(), pack);
            let mask = if elem.bits() == 64 { u64::MAX } else { (1 << elem.bits()) - 1 };
            let mut bits = vec![0u64; n];
            for (word, values) in words.by_ref().take(pack / per_word).enumerate() {
                for (run, &value) in values.iter().enumerate() {
                    for k in 0..per_word {
                        if let Some(place) = bits.get_mut(run * pack + word * per_word + k) {
                            *place = value >> (k as u32 * elem.bits()) & mask;
                        }
                    }
                }
            }
            self.set_memory_bits(v, elem, &bits);
        }
        Ok(())
    }

    /// The elements of a dense value as their bits in memory.
    fn memory_bits(&mut self, v: V, elem: Elem, n: usize) -> Vec<u64> {
        let buf = &self.regs[v.slot as usize].buf;
        let encode = cast::to_memory(elem);
        (0..n)
            .map(|i| {
                let bits = read_bits(buf, elem.reg_size(), i);
                let mut out = 0u64;
                match encode {
                    // SAFETY: one element each, in eight bytes.
                    Some(encode) => unsafe {
                        encode([(&raw const bits).cast(); 3], (&raw mut out).cast(), 1)
                    },
                    None => out = bits,
                }
                out
            })
            .collect()
    }

    /// The reverse of [`memory_bits`](Frame::memory_bits).
    fn set_memory_bits(&mut self, v: V, elem: Elem, bits: &[u64]) {
        let size = elem.reg_size();
        let decode = cast::from_memory(elem);
        let reg = &mut self.regs[v.slot as usize];
        reg.repr = Repr::Dense;
        let target = reg.buf.slice_mut::<u8>(bits.len() * size);
        for (place, &raw) in target.chunks_exact_mut(size).zip(bits) {
            let mut value = raw;
            if let Some(decode) = decode {
                value = 0;
                // SAFETY: one element each, in eight bytes.
                unsafe { decode([(&raw const raw).cast(); 3], (&raw mut value).cast(), 1) };
            }
            place.copy_from_slice(&value.to_le_bytes()[..size]);
            if bits.len() == 1 {
                reg.repr = Repr::Uniform(elem.canonical(value));
            }
        }
    }
}
