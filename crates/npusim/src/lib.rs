//! Runs AscendNPU-IR on the CPU, as a core runs it: its queues of instructions go on beside each other, and only flags and barriers put them in order.
//!
//! The scalar unit goes through the function and issues instructions to the queues (`issue`); a queue goes on as far as it need not wait (`queues`), and
//! computes what an instruction says (`compute`), after what it says is known to be simulated (`supported`). A kernel in two parts runs on a cube core and on one vector core or two at once, each with its scalar unit, queues and memories; they have
//! global memory and flags between them in common. Each access of memory is compared with what other queues did there: where nothing puts them in
//! order it is reported, whether or not it went well this time. Reported as well are memory that nothing wrote, addresses outside of a memory or
//! not aligned to it, ways that there are not, flags that are raised twice or never waited for, and queues that wait for ever.

// An error ends the run: its size does not matter.
#![allow(clippy::result_large_err)]

mod compute;
mod issue;
mod queues;
mod supported;

use std::sync::atomic::AtomicBool;

use tilewright_ir::dialect::func;
use tilewright_ir::dialect::hivm::{CoreType, Pipe};
use tilewright_ir::{AttrKind, Diagnostic, Module, Op};

use crate::queues::Core;

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

/// A queue, with what it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Busy {
    /// The kind of the core whose it is.
    pub core: CoreType,
    /// That core's number among those of its kind.
    pub number: usize,
    /// Which one.
    pub pipe: Pipe,
    /// How many instructions.
    pub instructions: u64,
    /// How long they took, in units of 128 bytes that an instruction touches.
    pub time: u64,
}

/// How a run went.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// The queues that had instructions.
    pub pipes: Vec<Busy>,
    /// How long it took in all; what is less than the sum of the queues went on beside something else.
    pub time: u64,
    /// How long instructions of two queues or more went on at once.
    pub together: u64,
}

/// The functions of a kernel, one for each core that it runs on.
struct Kernel {
    parts: Vec<(Core, func::Func)>,
    /// How many bytes of the workspace each block has.
    workspace: u64,
}

/// Runs a function of a module, program after program.
///
/// # Errors
/// A broken rule, with the operation that breaks it; operations that are not supported.
pub fn run(module: &mut Module, name: &str, launch: &mut Launch) -> Result<Report, Diagnostic> {
    run_until(module, name, launch, &AtomicBool::new(false))
}

/// [`run`], which ends soon with an error when `interrupt` becomes true.
///
/// # Errors
/// Those of [`run`].
pub fn run_until(
    module: &mut Module,
    name: &str,
    launch: &mut Launch,
    interrupt: &AtomicBool,
) -> Result<Report, Diagnostic> {
    let kernel = kernel(module, name)?;
    let programs: u64 = launch.grid.iter().map(|&n| u64::from(n)).product();
    let own = launch.memory.len();
    let bytes = kernel.workspace.saturating_mul(programs);
    if kernel.parts.len() > 1 {
        let bytes = usize::try_from(bytes).ok().filter(|&n| n <= MOST_WORKSPACE);
        let bytes = bytes.ok_or_else(|| {
            Diagnostic::new(format!(
                "a workspace of {} bytes for each of {programs} blocks",
                kernel.workspace
            ))
        })?;
        launch.memory.push(vec![0xff; bytes]);
    }
    let mut report = Report::default();
    let ran = (0..programs).try_for_each(|program| {
        let one = issue::program(module, &kernel.parts, launch, program, interrupt)?;
        report.time += one.time;
        report.together += one.together;
        for busy in one.pipes {
            match report
                .pipes
                .iter_mut()
                .find(|p| (p.core, p.number, p.pipe) == (busy.core, busy.number, busy.pipe))
            {
                Some(all) => {
                    (all.instructions, all.time) =
                        (all.instructions + busy.instructions, all.time + busy.time);
                }
                None => report.pipes.push(busy),
            }
        }
        Ok(())
    });
    launch.memory.truncate(own);
    ran.map(|()| report)
}

/// A workspace of more bytes is a mistake.
const MOST_WORKSPACE: usize = 1 << 32;

/// What of a module a kernel is: a function, or two that a declaration of its name stands for.
fn kernel(module: &Module, name: &str) -> Result<Kernel, Diagnostic> {
    let function = |name: &str| module.function(name).and_then(|op| func::Func::cast(module, op));
    let missing = |name: &str| Diagnostic::new(format!("the module has no func.func `{name}`"));
    let whole = function(name).ok_or_else(|| missing(name))?;
    if module.op_attr(whole.0, "hacc.mix_entry").is_none() {
        let cube = text(module, whole.0, "hivm.func_core_type").contains("AIC");
        let core = if cube { Core::CUBE } else { Core::VECTORS[0] };
        return Ok(Kernel { parts: vec![(core, whole)], workspace: 0 });
    }
    let part = |suffix: &str| {
        let name = format!("{name}_mix_{suffix}");
        function(&name).ok_or_else(|| missing(&name))
    };
    // What a function for the host says.
    let said = |what: &str| {
        let name = format!("{name}_infer_{what}_function");
        let said = function(&name).ok_or_else(|| missing(&name))?;
        let block = module.region_blocks(said.body(module)).first().copied();
        let value = block.and_then(|b| module.operands(module.last_op(b)?).first().copied());
        let number = value.and_then(|v| module.constant_int(v)).and_then(|n| u64::try_from(n).ok());
        number.ok_or_else(|| Diagnostic::new(format!("`{name}` returns no number")))
    };
    let vectors = match said("task_type")? {
        ONE_TO_ONE => &Core::VECTORS[..1],
        ONE_TO_TWO => &Core::VECTORS[..],
        other => return Err(Diagnostic::new(format!("not supported yet: tasks of type {other} in npusim"))),
    };
    let mut parts = vec![(Core::CUBE, part("aic")?)];
    for &core in vectors {
        parts.push((core, part("aiv")?));
    }
    Ok(Kernel { parts, workspace: said("workspace_shape")? })
}

/// How many vector cores go with a cube core, as AscendNPU-IR counts it.
const ONE_TO_ONE: u64 = 31;
const ONE_TO_TWO: u64 = 32;

/// The text of an attribute, of an argument's where it is in a dictionary.
fn text<'m>(module: &'m Module, op: Op, name: &str) -> &'m str {
    match module.op_attr(op, name).map(|a| module.attr_kind(a)) {
        Some(AttrKind::Opaque(text)) => text,
        _ => "",
    }
}
