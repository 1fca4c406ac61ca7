//! Programs in a row: with the option `persistent` a launch starts no more programs along x than the GPU holds, and each of them does the work of several, one
//! after the other. Of a kernel that asks for its number along y or z, too, it starts as many of the whole grid: those that run at once are beside each other in it, as they
//! are without the option, and share what they load in the L2 cache.
//!
//! Why here: blocks that a program loads are known, and what of them the launch makes (tensor maps) stands outside of the loop; no pass has looked at loops yet.
//!
//! How many programs there are is one more argument, which the launch gives. What depends on no program's number stays in front of the loop.
//!
//! ```text
//! tt.func @f(%x: !tt.ptr<f32>) {                  tt.func @f(%x: !tt.ptr<f32>, %programs: i32) {
//!   %c = arith.constant 2.0                         %c = arith.constant 2.0
//!   %i = tt.get_program_id x                        %first = tt.get_program_id x
//!   %n = tt.get_num_programs x                      %step = tt.get_num_programs x
//!   %p = tt.addptr %x, %i                   =>      scf.for %i = %first to %programs step %step {
//!   tt.store %p, %c                                   %p = tt.addptr %x, %i
//!   use(%n)                                           tt.store %p, %c
//! }                                                   use(%programs)
//!                                                   }
//!                                                 }
//! ```
//!
//! Numbers along several axes are taken from one that counts rounds of as many programs as are started, there and back (`there_and_back`).
//!
//! Loads of later programs may pass stores of earlier ones, in [loops](marks::PROGRAMS) that nothing is multiplied in: [`software_pipeline`](crate::transform::software_pipeline)
//! makes them run `num_stages - 1` programs ahead. In a launch without this option programs are in no order, so what a program loads before it stores, adds or waits itself may be
//! what was there before any other began: also of memory that these write, and by whichever argument. What stands behind its own stores and atomic operations stays
//! there. Kernels whose programs wait for each other are refused.
//!
//! A product of warp groups whose operands are blocks gets a warp that loads (`tt.warp_specialize`): it loads for the next program while a tile is stored.

use rustc_hash::FxHashSet;
use tilewright_ir::dialect::{arith, scf, tt, ttg};
use tilewright_ir::effects::is_pure;
use tilewright_ir::{AttrKind, Builder, Diagnostic, Module, Op, Opcode, Trait, Type, Value, launch, marks};

use crate::analysis::waiting;
use crate::hopper::encode_descriptors::update_signature;
use crate::hopper::warp_specialize::HINT;
use crate::pass::Pass;
use crate::target::TargetInfo;

/// The pass.
pub const PASS: Pass = Pass {
    name: "persistent-programs",
    summary: "let programs do the work of several, one after the other, where the launch asks for it",
    requires: &[],
    ensures: &[],
    run: |m, t, o| if o.persistent { run(m, t) } else { Ok(()) },
};

/// Puts what a kernel does into a loop over the programs along x.
///
/// # Errors
/// A kernel whose programs may wait for each other, or form clusters, that knows of warps or functions that are called, or that prints: not supported yet.
pub fn run(module: &mut Module, target: &TargetInfo) -> Result<(), Diagnostic> {
    let kernels: Vec<tt::Func> = module
        .block_ops(module.body())
        .filter_map(|op| tt::Func::cast(module, op))
        .filter(|func| launch::is_kernel(module, func.0))
        .collect();
    let [func] = kernels[..] else { return Ok(()) };
    check(module, func)?;
    let &[entry] = module.region_blocks(func.body(module)) else { return Ok(()) };
    let ops: Vec<Op> = module.block_ops(entry).collect();
    let Some((&end, ops)) = ops.split_last() else { return Ok(()) };
    let Some(&first) = ops.first() else { return Ok(()) };

    let whole = asks_beyond_x(module, func);
    let counts: Vec<Value> =
        (0..if whole { 3 } else { 1 }).map(|_| module.add_block_arg(entry, Type::I32)).collect();
    update_signature(module, func.0, entry);
    let at = (module.block_args(entry).len() - counts.len()) as i32;
    module.set_i32_attr(module.root(), launch::PROGRAMS_ARGUMENT, at);

    let mut b = Builder::before(module, first);
    let number = tt::GetProgramId::build(&mut b, tt::ProgramDim::X, Type::I32).result(b.module);
    let started = tt::GetNumPrograms::build(&mut b, tt::ProgramDim::X, Type::I32).result(b.module);
    let (l, numbers) = if let &[x, y, z] = &counts[..] {
        module.set_i32_attr(module.root(), launch::PROGRAMS_AXES, 3);
        there_and_back(module, (first, end), (number, started), [x, y, z])
    } else {
        let l = scf::For::build(&mut Builder::before(module, end), number, counts[0], started, &[], &[]);
        let body = module.append_block(l.body(module), &[Type::I32]);
        (l, vec![module.block_args(body)[0]])
    };
    let body = module.region_block(l.body(module));
    let index = module.block_args(body)[0];
    let last = scf::Yield::build(&mut Builder::at_end(module, body), &[]);
    for op in module.all_ops(func.0) {
        let new = match (tt::GetProgramId::cast(module, op), tt::GetNumPrograms::cast(module, op)) {
            (Some(id), _) if id.result(module) != number => numbers.get(id.axis(module) as usize),
            (_, Some(n)) if n.result(module) != started => counts.get(n.axis(module) as usize),
            _ => None,
        };
        if let Some(&new) = new {
            module.replace_op(op, &[new]);
        }
    }
    let mut inside: FxHashSet<Value> = numbers.into_iter().chain([index]).collect();
    for &op in ops.iter().filter(|&&op| !module.is_erased(op)).collect::<Vec<_>>() {
        if depends(module, op, &inside) {
            inside.extend(module.results(op).iter().copied());
            module.move_before(op, last.0);
        }
    }
    let programs = module.attr(AttrKind::Unit);
    module.set_attr(l.0, marks::PROGRAMS, programs);
    if target.tma && target.dots.wgmma && multiplies_blocks(module, l.0) {
        let yes = module.attr(AttrKind::Bool(true));
        module.set_attr(l.0, HINT, yes);
    }
    Ok(())
}

/// Whether a kernel asks for numbers of programs along y or z.
fn asks_beyond_x(m: &Module, func: tt::Func) -> bool {
    m.all_ops(func.0).into_iter().any(|op| {
        let id = tt::GetProgramId::cast(m, op).map(|id| id.axis(m));
        let axis = id.or_else(|| tt::GetNumPrograms::cast(m, op).map(|n| n.axis(m)));
        axis.is_some_and(|axis| axis != tt::ProgramDim::X)
    })
}

/// A loop over the programs of the whole grid, those along x first, and what a program's numbers are in it. It goes through them there and back, as many in a round as are
/// started: whoever has the first of one round has the last of the next, since programs beside each other may have more and more to do.
fn there_and_back(
    m: &mut Module,
    (first, end): (Op, Op),
    (number, started): (Value, Value),
    [x, y, z]: [Value; 3],
) -> (scf::For, Vec<Value>) {
    let mut b = Builder::before(m, first);
    let (zero, one) = (b.i32(0), b.i32(1));
    let all = muli(&mut b, x, y);
    let all = muli(&mut b, all, z);
    let whole_rounds = arith::Divui::build(&mut b, all, started).result(b.module);
    let in_them = muli(&mut b, whole_rounds, started);
    let rest = arith::Subi::build(&mut b, all, in_them).result(b.module);
    let last = arith::Subi::build(&mut b, started, one).result(b.module);
    let back = arith::Subi::build(&mut b, last, number).result(b.module);
    let place = place(&mut b, whole_rounds, (number, back));
    let has = arith::Cmpi::build(&mut b, place, rest, arith::CmpIPredicate::Ult, Type::I1).result(b.module);
    let more = arith::Addi::build(&mut b, whole_rounds, one).result(b.module);
    let rounds = arith::Select::build(&mut b, has, more, whole_rounds).result(b.module);

    let l = scf::For::build(&mut Builder::before(m, end), zero, rounds, one, &[], &[]);
    let body = m.append_block(l.body(m), &[Type::I32]);
    let round = m.block_args(body)[0];
    let mut b = Builder::at_end(m, body);
    let place = self::place(&mut b, round, (number, back));
    let before = muli(&mut b, round, started);
    let at = arith::Addi::build(&mut b, before, place).result(b.module);
    let mut numbers = Vec::new();
    let mut left = at;
    for count in [x, y] {
        numbers.push(arith::Remui::build(&mut b, left, count).result(b.module));
        left = arith::Divui::build(&mut b, left, count).result(b.module);
    }
    numbers.push(left);
    (l, numbers)
}

/// Where a program stands in a round.
fn place(b: &mut Builder<'_>, round: Value, (there, back): (Value, Value)) -> Value {
    let one = b.i32(1);
    let odd = arith::Andi::build(b, round, one).result(b.module);
    let odd = arith::Cmpi::build(b, odd, one, arith::CmpIPredicate::Eq, Type::I1).result(b.module);
    arith::Select::build(b, odd, back, there).result(b.module)
}

fn muli(b: &mut Builder<'_>, x: Value, y: Value) -> Value {
    arith::Muli::build(b, x, y).result(b.module)
}

/// Whether an operation is one of each program's own: it has effects, or needs what is in the loop.
fn depends(m: &Module, op: Op, inside: &FxHashSet<Value>) -> bool {
    let needs = |op: Op| m.operands(op).iter().any(|v| inside.contains(v));
    let moves = !is_pure(m, op) || m.has_trait(op, Trait::Terminator);
    moves || m.all_ops(op).into_iter().any(|inner| needs(inner) || !is_pure(m, inner) && inner != op)
}

/// Whether a loop within multiplies blocks that are loaded there.
fn multiplies_blocks(m: &Module, op: Op) -> bool {
    let loops = m.all_ops(op).into_iter().skip(1).filter(|&op| scf::For::cast(m, op).is_some());
    loops.into_iter().any(|inner| {
        let ops = m.all_ops(inner);
        ops.iter().any(|&op| tt::Dot::cast(m, op).is_some())
            && ops.iter().any(|&op| tt::DescriptorLoad::cast(m, op).is_some())
    })
}

fn check(m: &Module, func: tt::Func) -> Result<(), Diagnostic> {
    let refuse = |op: Op, what: &str| {
        Err(Diagnostic::unsupported(m, m.op_loc(op), format!("persistent=True for {what}")))
    };
    if launch::programs_of_cluster(m) != [1; 3] {
        return refuse(func.0, "kernels whose programs form clusters");
    }
    if launch::warps_of_program(m).is_some() || launch::ranks(m).is_some() {
        return refuse(func.0, "kernels of one warp, or of several devices");
    }
    if let Some(op) = waiting::first_wait(m, func.0) {
        return refuse(op, "kernels whose programs may wait for each other");
    }
    for op in m.all_ops(func.0) {
        let asm = tt::ElementwiseInlineAsm::cast(m, op).map(|asm| asm.asm_string(m));
        if asm.is_some_and(|asm| ["ctaid", "clusterid"].iter().any(|number| asm.contains(number))) {
            return refuse(op, "assembly that asks for the program's number");
        }
        match m.opcode(op) {
            Some(Opcode::Tt(tt::Kind::Call | tt::Kind::RawCall)) => {
                return refuse(op, "kernels that call functions");
            }
            Some(Opcode::Tt(tt::Kind::Print)) => {
                return refuse(op, "tl.device_print, which shows the program's number");
            }
            Some(Opcode::Ttg(ttg::Kind::Barrier)) => return refuse(op, "tl.debug_barrier"),
            Some(Opcode::Ttg(_) | Opcode::Ttng(_)) => {
                return refuse(op, "kernels with buffers or barriers of their own");
            }
            _ => {}
        }
    }
    Ok(())
}
