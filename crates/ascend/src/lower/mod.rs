//! From `tt` to AscendNPU-IR, step by step:
//!
//! 1. what there are no instructions for becomes several operations that there are (`expand`);
//! 2. buffers that other programs reach are at home in global memory (`remote`);
//! 3. `vectors`: every tensor gets a buffer, and what computes it becomes an instruction from buffers to a buffer;
//! 4. numbers that vectors compute and products need go through global memory (`shared_numbers`);
//! 5. what vectors compute beside products is shared out over two cores (`halves`);
//! 6. the buffers get their places ([`local_memory::plan`]), several for what a pipelined loop fills anew;
//! 7. `flags`: what one queue of instructions reads of another is put in order, by as few flags as it takes (`order`);
//! 8. `place`: buffers become addresses, and the kernel a function of MLIR's;
//! 9. `split`: of one that multiplies and computes with vectors there are two, for the two kinds of cores of a block.

mod addresses;
mod atomics;
mod combine;
mod control;
mod effects;
mod elementwise;
mod expand;
mod flags;
mod global;
mod halves;
mod instructions;
mod mapped;
mod masks;
mod order;
mod place;
mod products;
mod remote;
mod scalar;
mod shared_numbers;
mod slices;
mod split;
mod vectors;

use std::fmt::Write as _;

use tilewright_ir::dialect::scf;
use tilewright_ir::{Builder, Diagnostic, Module, Op, Opcode, Type, Value, ascend};
use tilewright_passes::analysis::local_memory::{self, Held};

/// Lowers the kernel of a module, and says what lies where and what is put in order.
///
/// # Errors
/// What is not supported yet, and memories that are too small, with their places in the source.
pub fn run(module: &mut Module) -> Result<String, Diagnostic> {
    expand::run(module)?;
    remote::run(module)?;
    vectors::run(module)?;
    shared_numbers::run(module);
    let halves = halves::run(module);
    let held = local_memory::plan(module)?;
    let memory = memories(module, &held);
    let mut slots = Slots::default();
    let ordered = flags::run(module, &held, &mut slots, &halves);
    let workspace = held.iter().filter(|h| h.space == &ascend::WORKSPACE).map(|h| h.offset + h.total()).max();
    place::run(module, &held, &mut slots)?;
    split::run(module, &ordered.cores, &halves.names, workspace.unwrap_or(0))?;
    Ok(format!("{memory}{}{}", halves.report, ordered.report))
}

/// Which slot of a buffer an iteration of a pipelined loop has, computed once for each loop and number of slots.
#[derive(Default)]
struct Slots {
    known: Vec<(scf::For, u32, Value)>,
}

impl Slots {
    /// The number of the slot, an `i64`, at the head of the loop's body.
    fn of(&mut self, module: &mut Module, looped: scf::For, slots: u32) -> Value {
        use tilewright_ir::dialect::arith;
        if let Some((.., slot)) = self.known.iter().find(|(l, n, _)| *l == looped && *n == slots) {
            return *slot;
        }
        let body = module.region_block(looped.body(module));
        let (iv, lower, step) = (module.block_args(body)[0], looped.lower_bound(module), looped.step(module));
        let first = module.first_op(body).expect("a body ends in a yield");
        let mut b = Builder::before(module, first);
        let ty = b.module.value_type(iv);
        let from = arith::Subi::build(&mut b, iv, lower).result(b.module);
        let number = arith::Divsi::build(&mut b, from, step).result(b.module);
        let many = b.int(i64::from(slots), ty);
        let slot = arith::Remsi::build(&mut b, number, many).result(b.module);
        let slot = widened(&mut b, slot);
        self.known.push((looped, slots, slot));
        slot
    }
}

/// An integer as an `i64`.
fn widened(b: &mut Builder<'_>, value: Value) -> Value {
    use tilewright_ir::dialect::arith;
    let ty = b.module.value_type(value);
    match ty {
        Type::I64 => value,
        Type::INDEX => arith::IndexCast::build(b, value, Type::I64).out(b.module),
        _ => arith::Extsi::build(b, value, Type::I64).out(b.module),
    }
}

/// Whether an operation shows all of a buffer in another way.
fn shows_whole(module: &Module, op: Op) -> bool {
    use tilewright_ir::dialect::ttg::Kind;
    matches!(module.opcode(op), Some(Opcode::Ttg(Kind::MemdescReshape | Kind::MemdescReinterpret)))
}

/// What is not there yet, at its place.
fn unsupported(module: &Module, op: Op, what: impl std::fmt::Display) -> Diagnostic {
    Diagnostic::unsupported(module, module.op_loc(op), format!("{what} on ascend:910b"))
}

/// How many bytes of each memory are taken, by each buffer and at most.
fn memories(module: &Module, held: &[Held]) -> String {
    let mut text = String::new();
    for space in ascend::SPACES.iter().chain([&ascend::WORKSPACE]) {
        let here: Vec<&Held> = held.iter().filter(|h| h.space == space).collect();
        if here.is_empty() {
            continue;
        }
        let most = here.iter().map(|h| h.offset + h.total()).max().unwrap_or(0);
        match space.name == ascend::WORKSPACE.name {
            true => writeln!(text, "{}: {most} bytes for each block", space.name),
            false => writeln!(text, "{}: {most} of {} bytes", space.name, space.bytes),
        }
        .expect("a string takes text");
        for h in here {
            let name = module.value_name(h.alloc.result(module)).unwrap_or("a vector");
            let (from, to) = (h.offset, h.offset + h.total());
            writeln!(
                text,
                "  {from:6} to {to:6}: {name}, {} of {} bytes, from operation {} to {}",
                h.slots, h.bytes, h.first, h.last
            )
            .expect("a string takes text");
        }
    }
    text
}
