//! `ldmatrix` and `stmatrix`: a warp's lanes move 8×8 matrices between registers and shared memory (PTX ISA, "Warp-level
//! matrix instructions").

use tilewright_ir as ir;
use tilewright_layout::{Encoding, MatrixAccess, MatrixInstruction, TileLayout};
use tilewright_llvm::{Effect, Ty, Value};
use tilewright_lower::{Buffer, memory_bits};

use super::access::Asm;
use super::{Lower, Result, Shared};

impl Lower<'_, '_> {
    /// `ldmatrix`, where the buffer and the operand layout fit it; `None` where they do not.
    pub fn load_matrices(
        &mut self,
        buffer: &Buffer,
        buffer_ty: ir::Type,
        ty: ir::Type,
        tile: &TileLayout,
    ) -> Result<Option<Vec<Value>>> {
        let elem = self.elem_ty(ty)?;
        let bits = memory_bits(elem);
        let shared = self.shared_layout(buffer_ty)?;
        // Rows of padding may never have been stored.
        if elem == Ty::I1 || tile.is_padded() || !matches!(self.encoding(ty)?, Encoding::DotOperand { .. }) {
            return Ok(None);
        }
        let Some(plan) = MatrixAccess::new(tile, &shared, bits) else { return Ok(None) };
        let bytes = bits / 8;
        let thread = self.thread_offsets(buffer.base, &plan.address, bytes);
        let view = Shared::view_offset(buffer, &shared);
        let trans = if plan.trans { ".trans" } else { "" };
        let zero = self.b.zero(elem);
        let mut out = vec![zero; tile.num_registers() as usize];
        for instruction in &plan.instructions {
            let at = self.shared_address(thread, instruction.offset.combine(view), &shared, bytes);
            let mut asm = Asm::default();
            asm.outputs(Ty::I32, 'r', plan.count);
            let (base, offset) = self.b.split_offset(at);
            let mut address = asm.arg(base, 'r');
            if offset != 0 {
                let c = self.b.i32(offset);
                address = format!("{address}+{}", asm.arg(c, 'n'));
            }
            let names: Vec<String> = (0..plan.count).map(|i| format!("${i}")).collect();
            let text = format!(
                "ldmatrix.sync.aligned.m8n8.x{}{trans}.shared.b16 {{{}}}, [{address}];",
                plan.count,
                names.join(", ")
            );
            let constraints = asm.constraints;
            let words = self.b.asm(&text, &constraints, Effect::Read, &asm.results, &asm.args);
            for (&word, registers) in words.iter().zip(instruction.registers.chunks(plan.pack as usize)) {
                for (&r, e) in registers.iter().zip(self.unpack_word(word, elem, plan.pack)) {
                    out[r as usize] = e;
                }
            }
        }
        Ok(Some(out))
    }

    /// One `stmatrix` to rows at `at`. Warps store whole matrices, so `pred` is the same in all lanes.
    pub fn stmatrix(
        &mut self,
        plan: &MatrixAccess,
        instruction: &MatrixInstruction,
        at: Value,
        regs: &[Value],
        pred: Option<Value>,
    ) {
        let mut asm = Asm::default();
        let (base, offset) = self.b.split_offset(at);
        let base = asm.arg(base, 'r');
        let offset = self.b.i32(offset);
        let offset = asm.arg(offset, 'n');
        let words: Vec<String> = instruction
            .registers
            .chunks(plan.pack as usize)
            .map(|word| {
                let mut elements: Vec<Value> = word.iter().map(|&r| regs[r as usize]).collect();
                if self.b.ty(elements[0]) == Ty::I1 {
                    elements = elements.into_iter().map(|v| self.as_int(v)).collect();
                }
                let word = self.pack_word(&elements);
                let word = self.b.bitcast(word, Ty::I32);
                asm.arg(word, 'r')
            })
            .collect();
        let pred = pred.map_or(String::new(), |p| format!("@{} ", asm.arg(p, 'b')));
        let trans = if plan.trans { ".trans" } else { "" };
        let text = format!(
            "{pred}stmatrix.sync.aligned.m8n8.x{}{trans}.shared.b16 [{base}+{offset}], {{{}}};",
            plan.count,
            words.join(", ")
        );
        self.b.asm(&text, &asm.constraints, Effect::Write, &[], &asm.args);
    }
}
