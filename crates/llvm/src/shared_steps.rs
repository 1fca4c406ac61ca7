//! Lets pointers that a loop moves by equal steps share one carried offset.
//!
//! A tensor of pointers is as many loop-carried pointers per thread, each with its own addition of 64 bits, and where the
//! old value is used after the addition (`ptxas` schedules additions early, copies to shared memory late) a move of two
//! registers besides. With the offset carried instead each address is one addition to a value that does not change.
//!
//! ```text
//! loop(%p: ptr, %q: ptr):                  loop(%o: i64):
//!   use %p, %q                               %p = ptr_add %p0, %o
//!   %p1 = ptr_add %p, %step          =>      %q = ptr_add %q0, %o
//!   %q1 = ptr_add %q, %step                  use %p, %q
//!   br loop(%p1, %q1)                        br loop(%o + %step)
//! ```

use crate::program::{BinOp, Block, Def, Effect, Function, Inst, Module, Op, Terminator, Value, ValueData};
use crate::ty::Ty;
use smallvec::smallvec;

impl Module {
    /// Gives pointers that a loop moves by equal steps one offset.
    pub fn share_steps(&mut self) {
        for f in &mut self.functions {
            for header in 0..f.blocks.len() {
                let header = Block(header as u32);
                if let Some(edges) = Edges::of(f, header) {
                    share(f, header, edges);
                }
            }
        }
    }
}

/// The two ways into a loop: the block that enters it and the one that repeats it.
#[derive(Clone, Copy)]
struct Edges {
    entry: usize,
    back: usize,
}

impl Edges {
    fn of(f: &Function, header: Block) -> Option<Edges> {
        let to_header = |b: &usize| match &f.blocks[*b].term {
            Some(Terminator::Br(t, _)) => *t == header,
            Some(Terminator::CondBr { then, els, .. }) => *then == header || *els == header,
            _ => false,
        };
        let from: Vec<usize> = (0..f.blocks.len()).filter(to_header).collect();
        let &[a, b] = &from[..] else { return None };
        let inside = |b: usize| f.dominates(header, Block(b as u32));
        match (inside(a), inside(b)) {
            (false, true) => Some(Edges { entry: a, back: b }),
            (true, false) => Some(Edges { entry: b, back: a }),
            _ => None,
        }
    }
}

/// What a block passes to another.
fn passed(f: &mut Function, from: usize, to: Block) -> Option<&mut Vec<Value>> {
    match f.blocks[from].term.as_mut()? {
        Terminator::Br(t, args) if *t == to => Some(args),
        Terminator::CondBr { then, els, .. } if *then == *els => None,
        Terminator::CondBr { then, then_args, .. } if *then == to => Some(then_args),
        Terminator::CondBr { els, els_args, .. } if *els == to => Some(els_args),
        _ => None,
    }
}

fn share(f: &mut Function, header: Block, Edges { entry, back }: Edges) {
    let (Some(first), Some(next)) = (passed(f, entry, header).cloned(), passed(f, back, header).cloned())
    else {
        return;
    };
    let params = f.blocks[header.0 as usize].params.clone();
    // The steps, each with the indices of the parameters that take it.
    let mut steps: Vec<(Value, Vec<usize>)> = Vec::new();
    for (k, (&param, &next)) in params.iter().zip(&next).enumerate() {
        if let Some(step) = step_of(f, header, param, next) {
            match steps.iter_mut().find(|(s, _)| *s == step) {
                Some((_, members)) => members.push(k),
                None => steps.push((step, vec![k])),
            }
        }
    }
    steps.retain(|(_, members)| members.len() > 1);
    let mut gone = vec![false; params.len()];
    let mut bases = Vec::new();
    for (step, members) in steps {
        let zero = value(f, Ty::I64, Def::Const(0), Block(0));
        let at = f.blocks[header.0 as usize].params.len() as u32;
        let offset = value(f, Ty::I64, Def::Param(header, at), header);
        f.blocks[header.0 as usize].params.push(offset);
        let moved = value(f, Ty::I64, Def::Const(0), Block(back as u32));
        let add = inst(f, Op::Bin(BinOp::Add), [offset, step], moved);
        f.blocks[back].insts.push(add);
        passed(f, entry, header).expect("found before").push(zero);
        passed(f, back, header).expect("found before").push(moved);
        for k in members {
            gone[k] = true;
            bases.push(inst(f, Op::PtrAdd, [first[k], offset], params[k]));
        }
    }
    if bases.is_empty() {
        return;
    }
    gone.resize(f.blocks[header.0 as usize].params.len(), false);
    let block = &mut f.blocks[header.0 as usize];
    block.insts.splice(0..0, bases);
    retain(&mut block.params, &gone);
    for (k, p) in block.params.clone().into_iter().enumerate() {
        f.values[p.0 as usize].def = Def::Param(header, k as u32);
    }
    for from in [entry, back] {
        retain(passed(f, from, header).expect("found before"), &gone);
    }
}

/// By how much a parameter moves in each iteration, if it is a pointer and that does not change in the loop.
fn step_of(f: &Function, header: Block, param: Value, next: Value) -> Option<Value> {
    let Def::Inst(i, _) = f.values[next.0 as usize].def else { return None };
    let inst = &f.insts[i as usize];
    if inst.op != Op::PtrAdd || inst.args[0] != param || f.ty(inst.args[1]) != Ty::I64 {
        return None;
    }
    let step = f.values[inst.args[1].0 as usize];
    let invariant = step.block != header && f.dominates(step.block, header);
    (invariant || matches!(step.def, Def::Const(_))).then_some(inst.args[1])
}

fn value(f: &mut Function, ty: Ty, def: Def, block: Block) -> Value {
    f.values.push(ValueData { ty, def, zeros: 0, block });
    Value(f.values.len() as u32 - 1)
}

/// Makes a value the result of a new instruction.
fn inst(f: &mut Function, op: Op, args: [Value; 2], result: Value) -> u32 {
    let index = f.insts.len() as u32;
    f.values[result.0 as usize].def = Def::Inst(index, 0);
    f.insts.push(Inst {
        op,
        effect: Effect::Pure,
        args: smallvec![args[0], args[1]],
        first_result: result.0,
        num_results: 1,
        loc: crate::program::Loc::NONE,
    });
    index
}

fn retain(values: &mut Vec<Value>, gone: &[bool]) {
    let mut k = 0;
    values.retain(|_| {
        k += 1;
        !gone[k - 1]
    });
}
