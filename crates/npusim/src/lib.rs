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

use rustc_hash::FxHashMap;
use tilewright_ir::dialect::hivm::{CoreType, Pipe};
use tilewright_ir::dialect::{func, hivm_more};
use tilewright_ir::{AttrKind, Diagnostic, Module, Op};

use crate::issue::{Come, Common, Program};
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
    /// How many bytes of the workspace each block has, where there is one.
    workspace: Option<u64>,
}

/// Runs a function of a module: program after program, or all at once where they wait for each other.
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
    let workspace = kernel.workspace.map(|bytes| bytes.saturating_mul(programs));
    if let Some(bytes) = workspace {
        let bytes = usize::try_from(bytes).ok().filter(|&n| n <= MOST_WORKSPACE);
        let bytes = bytes.ok_or_else(|| {
            let each = kernel.workspace.unwrap_or(0);
            Diagnostic::new(format!("a workspace of {each} bytes for each of {programs} blocks"))
        })?;
        launch.memory.push(vec![0xff; bytes]);
    }
    let views = issue::all_views(module, &kernel.parts);
    let common = Common {
        m: module,
        views: &views,
        parts: &kernel.parts,
        workspace: workspace.map(|_| own),
        interrupt,
    };
    let ran = match kernel.parts.iter().any(|(_, part)| meets(module, part.0)) {
        true => together(common, launch, programs),
        false => one_by_one(common, launch, programs),
    };
    launch.memory.truncate(own);
    ran
}

/// Whether programs wait for each other in a function.
fn meets(module: &Module, function: Op) -> bool {
    module.all_ops(function).into_iter().any(|op| hivm_more::SyncBlock::cast(module, op).is_some())
}

impl Report {
    fn add(&mut self, one: Report) {
        self.time += one.time;
        self.together += one.together;
        for busy in one.pipes {
            match self
                .pipes
                .iter_mut()
                .find(|p| (p.core, p.number, p.pipe) == (busy.core, busy.number, busy.pipe))
            {
                Some(all) => {
                    (all.instructions, all.time) =
                        (all.instructions + busy.instructions, all.time + busy.time);
                }
                None => self.pipes.push(busy),
            }
        }
    }
}

/// Runs one program after the other.
fn one_by_one(common: Common<'_>, launch: &mut Launch, programs: u64) -> Result<Report, Diagnostic> {
    let mut report = Report::default();
    for number in 0..programs {
        let mut program = Program::new(common, launch, number)?;
        if let Come::End(one) = program.go_on(&mut launch.memory)? {
            report.add(one);
        }
    }
    Ok(report)
}

/// Runs programs that wait for each other: each as far as that, then the next one.
fn together(common: Common<'_>, launch: &mut Launch, programs: u64) -> Result<Report, Diagnostic> {
    let most = if common.parts.len() > 1 { CUBE_CORES } else { VECTOR_CORES };
    if programs > most {
        return Err(Diagnostic::new(format!(
            "{programs} programs that wait for each other, of which {most} run at once"
        )));
    }
    let mut report = Report::default();
    let mut all = (0..programs).map(|n| Program::new(common, launch, n)).collect::<Result<Vec<_>, _>>()?;
    loop {
        let mut ended = None;
        let mut waits = None;
        // By byte of the workspace: who touched it since they waited last, and whether one wrote.
        let mut touched: FxHashMap<usize, (usize, bool)> = FxHashMap::default();
        for (n, program) in all.iter_mut().enumerate() {
            match program.go_on(&mut launch.memory)? {
                Come::End(one) => {
                    ended = Some(n);
                    report.add(one);
                }
                Come::Meeting => waits = Some(n),
            }
            for (byte, wrote) in program.queues.touched() {
                let (other, written) = *touched.entry(byte).or_insert((n, wrote));
                if other != n && (wrote || written) {
                    return Err(Diagnostic::new(format!(
                        "programs {other} and {n} touch byte {byte} of the workspace, and nothing is between them"
                    ))
                    .note("a hivm.hir.sync_block (tle.distributed_barrier) is missing"));
                }
                touched.insert(byte, (n, wrote || written));
            }
        }
        match (ended, waits) {
            (Some(ended), Some(waits)) => return Err(all[waits].left_alone(ended as u64)),
            (_, None) => return Ok(report),
            (None, Some(_)) => {
                let wrote: Vec<usize> = touched.iter().filter(|(_, t)| t.1).map(|(&byte, _)| byte).collect();
                let size = common.workspace.map_or(0, |w| launch.memory[w].len());
                for program in &mut all {
                    program.queues.written_by_others(size, &wrote);
                    program.met();
                }
            }
        }
    }
}

/// The vector cores of an Ascend 910B1, as AscendNPU-IR has it.
const VECTOR_CORES: u64 = 48;
/// And its cube cores.
const CUBE_CORES: u64 = 24;

/// A workspace of more bytes is a mistake.
const MOST_WORKSPACE: usize = 1 << 32;

/// What of a module a kernel is: a function, or two that a declaration of its name stands for.
fn kernel(module: &Module, name: &str) -> Result<Kernel, Diagnostic> {
    let function = |name: &str| module.function(name).and_then(|op| func::Func::cast(module, op));
    let missing = |name: &str| Diagnostic::new(format!("the module has no func.func `{name}`"));
    let whole = function(name).ok_or_else(|| missing(name))?;
    // What a function for the host says.
    let said = |what: &str| {
        let name = format!("{name}_infer_{what}_function");
        let said = function(&name).ok_or_else(|| missing(&name))?;
        let block = module.region_blocks(said.body(module)).first().copied();
        let value = block.and_then(|b| module.operands(module.last_op(b)?).first().copied());
        let number = value.and_then(|v| module.constant_int(v)).and_then(|n| u64::try_from(n).ok());
        number.ok_or_else(|| Diagnostic::new(format!("`{name}` returns no number")))
    };
    if module.op_attr(whole.0, "hacc.mix_entry").is_none() {
        let cube = text(module, whole.0, "hivm.func_core_type").contains("AIC");
        let core = if cube { Core::CUBE } else { Core::VECTORS[0] };
        let size = function(&format!("{name}_infer_workspace_shape_function"));
        let workspace = size.map(|_| said("workspace_shape")).transpose()?;
        return Ok(Kernel { parts: vec![(core, whole)], workspace });
    }
    let part = |suffix: &str| {
        let name = format!("{name}_mix_{suffix}");
        function(&name).ok_or_else(|| missing(&name))
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
    Ok(Kernel { parts, workspace: Some(said("workspace_shape")?) })
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
