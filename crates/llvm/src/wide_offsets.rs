//! Keeps the byte offsets of addresses in 64-bit registers through loops with matrix products.
//!
//! LLVM makes `mul.wide` of an extended and scaled 32-bit offset, which `ptxas` joins with the addition that uses it to an
//! `IMAD.WIDE` in the loop: one register and one instruction less for each address. Next to `HGMMA` that is slow, for a
//! reason that is not documented: on an H100, matmul 2048³ with tiles of 128×256×64 took 48,600 cycles with thirteen of them
//! in the loop, 47,300 with eight and 44,000 with none. So the scaling is written as a shift that neither of the two looks
//! into, which leaves an addition of 64 bits in the loop.
//!
//! ```text
//! entry:  %o = shl (sext %i), 1                   entry:  %o = asm "shl.b64 $0, $1, 1;" (sext %i)
//! loop:   %p = ptr_add %base, %o          =>      loop:   %p = ptr_add %base, %o
//!         asm "wgmma.mma_async…"                          asm "wgmma.mma_async…"
//! ```

use crate::program::{BinOp, Block, CastOp, Def, Function, Module, Op, Terminator, Value};
use crate::ty::Ty;
use smallvec::smallvec;

impl Module {
    /// Makes opaque the scaled offsets in the addresses of loops that contain `instruction` as inline assembly.
    pub fn keep_wide_offsets(&mut self, instruction: &str) {
        let has = |op: Op| matches!(op, Op::Asm(id) if self.asms[id.0 as usize].text.contains(instruction));
        let found: Vec<Vec<(usize, u64)>> = self.functions.iter().map(|f| scaled_offsets(f, &has)).collect();
        for (f, found) in found.into_iter().enumerate() {
            for (index, shift) in found {
                let id = self.asm_id(&format!("shl.b64 $0, $1, {shift};"), "=l,l");
                let inst = &mut self.functions[f].insts[index];
                inst.op = Op::Asm(id);
                inst.args = smallvec![inst.args[0]];
            }
        }
    }
}

/// The shifts to make opaque, with how far they shift: those in the sums of pointers and offsets that loops begin with or use.
fn scaled_offsets(f: &Function, has: &dyn Fn(Op) -> bool) -> Vec<(usize, u64)> {
    let inst = |i: &u32| &f.insts[*i as usize];
    let loops: Vec<Block> = f
        .blocks
        .iter()
        .filter(|b| b.insts.iter().any(|i| has(inst(i).op)))
        .filter_map(|b| b.preheader)
        .collect();
    let mut work: Vec<Value> = Vec::new();
    for block in f.blocks.iter().filter(|b| b.preheader.is_some_and(|p| loops.contains(&p))) {
        work.extend(block.insts.iter().map(inst).flat_map(|i| i.args.iter().copied()));
    }
    for preheader in loops {
        match &f.blocks[preheader.0 as usize].term {
            Some(Terminator::Br(_, args)) => work.extend(args),
            Some(Terminator::CondBr { then_args, els_args, .. }) => {
                work.extend(then_args.iter().chain(els_args))
            }
            _ => {}
        }
    }
    let mut seen = vec![false; f.values.len()];
    let mut found = Vec::new();
    while let Some(v) = work.pop() {
        if std::mem::replace(&mut seen[v.0 as usize], true) {
            continue;
        }
        if let Def::Inst(i, _) = f.values[v.0 as usize].def
            && inst(&i).op == Op::PtrAdd
        {
            work.push(inst(&i).args[0]);
            found.extend(scaled_offset(f, inst(&i).args[1]).filter(|s| !found.contains(s)));
        }
    }
    found
}

/// The instruction of `(extend i32) << c`, and `c`.
fn scaled_offset(f: &Function, v: Value) -> Option<(usize, u64)> {
    let inst = |v: Value| match f.values[v.0 as usize].def {
        Def::Inst(i, _) => Some((i as usize, &f.insts[i as usize])),
        _ => None,
    };
    let (index, shift) = inst(v).filter(|(_, i)| i.op == Op::Bin(BinOp::Shl))?;
    let (_, extension) =
        inst(shift.args[0]).filter(|(_, i)| matches!(i.op, Op::Cast(CastOp::SExt | CastOp::ZExt)))?;
    let narrow = f.ty(extension.args[0]) == Ty::I32 && f.ty(v) == Ty::I64;
    match f.values[shift.args[1].0 as usize].def {
        Def::Const(c) if narrow => Some((index, c)),
        _ => None,
    }
}
