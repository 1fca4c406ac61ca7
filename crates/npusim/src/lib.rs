//! Runs AscendNPU-IR on the CPU, as a core runs it: its queues of instructions go on beside each other, and only flags and barriers put them in order.
//!
//! The scalar unit goes through the function and issues instructions to the queues (`issue`); a queue goes on as far as it need not wait (`queues`), and
//! computes what an instruction says (`compute`), after what it says is known to be simulated (`supported`). Each access of memory is compared with what other queues did there: where nothing puts them in
//! order it is reported, whether or not it went well this time. Reported as well are memory that nothing wrote, addresses outside of a memory or
//! not aligned to it, ways that there are not, flags that are raised twice or never waited for, and queues that wait for ever.

// An error ends the run: its size does not matter.
#![allow(clippy::result_large_err)]

mod compute;
mod issue;
mod queues;
mod supported;

use tilewright_ir::dialect::func;
use tilewright_ir::{Diagnostic, Module};

/// An argument of a kernel.
#[derive(Debug, Clone, Copy)]
pub enum Arg {
    /// Global memory: the number of a buffer of the launch, and bytes to where the pointer leads.
    Pointer(usize, u64),
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// The bits of a number of the parameter's type.
    Bits(u64),
}

/// A kernel's launch.
#[derive(Debug)]
pub struct Launch {
    /// Global memory.
    pub memory: Vec<Vec<u8>>,
    /// The arguments, in order.
    pub args: Vec<Arg>,
    /// The extents of the grid.
    pub grid: [u32; 3],
}

/// How a run went.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// The queues, each with its instructions and with how long they took, in units of 128 bytes that an instruction touches.
    pub pipes: Vec<(&'static str, u64, u64)>,
    /// How long it took in all; what is less than the sum of the queues went on beside something else.
    pub time: u64,
}

/// Runs a function of a module, program after program.
///
/// # Errors
/// A broken rule, with the operation that breaks it; operations that are not supported.
pub fn run(module: &mut Module, name: &str, launch: &mut Launch) -> Result<Report, Diagnostic> {
    let found = module.function(name).and_then(|op| func::Func::cast(module, op));
    let Some(function) = found else {
        return Err(Diagnostic::new(format!("the module has no func.func `{name}`")));
    };
    let programs: u64 = launch.grid.iter().map(|&n| u64::from(n)).product();
    let mut report = Report::default();
    for program in 0..programs {
        let one = issue::program(module, function, launch, program)?;
        report.time += one.time;
        for (pipe, instructions, busy) in one.pipes {
            match report.pipes.iter_mut().find(|p| p.0 == pipe) {
                Some(all) => (all.1, all.2) = (all.1 + instructions, all.2 + busy),
                None => report.pipes.push((pipe, instructions, busy)),
            }
        }
    }
    Ok(report)
}
