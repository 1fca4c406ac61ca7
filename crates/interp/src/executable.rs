//! A compiled kernel and its launch: the grid over the cores.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tilewright_ir::{Diagnostic, FloatKind, Module, launch};
use tilewright_ptxsim::Standstill;

use crate::cluster_memory::Clusters;
use crate::compile::compile;
use crate::elem::Elem;
use crate::exec::{Context, Fault, Frame, Status};
use crate::float::{Rounding, round_f64};
use crate::meeting::{Meetings, Waiting};
use crate::memory::Memory;
use crate::program::{Place, Program};
use crate::races::Races;
use crate::tile::Repr;

/// An argument of a launch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Arg {
    /// An address.
    Pointer(u64),
    /// An integer; it is wrapped to the parameter's width.
    Int(i64),
    /// A float; it is rounded to the parameter's format.
    Float(f64),
    /// The bits that the argument has in memory, in the low bytes, as in the parameter buffer of a GPU launch.
    Bits(u64),
}

/// How to run.
#[derive(Default)]
pub struct RunOptions<'a> {
    /// How many threads at most; 0 is one per core.
    pub threads: usize,
    /// Whether a zero divisor in an integer division of tensors is an error. It is not by default, as elements that a
    /// mask switches off later are often divided by zero; a division of scalars by zero always is an error.
    pub trap_division: bool,
    /// Whether elements that a load leaves out, with no `other`, or an atomic operation, are what is seen when it is used: NaN, or numbers far from zero.
    /// By default they are zeros.
    pub poison: bool,
    /// Set to true from another thread to end the run at the next loop iteration or program.
    pub interrupt: Option<&'a AtomicBool>,
    /// Receives what the kernel prints, program by program, when the run ends; `None` is the standard output.
    pub print: Option<&'a (dyn Fn(&str) + Sync)>,
}

/// Why a launch failed.
#[derive(Debug, Clone)]
pub struct RunError {
    /// What is wrong and where in the source, with the program, element and closest argument as notes.
    pub diagnostic: Box<Diagnostic>,
    /// The program that failed, if the launch began.
    pub program: Option<[u32; 3]>,
    /// The index of the element, if it is a tensor's.
    pub element: Option<Vec<u32>>,
    /// The address of an access out of bounds.
    pub address: Option<u64>,
    /// Whether the run was ended by [`RunOptions::interrupt`].
    pub interrupted: bool,
}

impl RunError {
    fn before(message: impl Into<String>) -> Self {
        RunError {
            diagnostic: Box::new(Diagnostic::new(message)),
            program: None,
            element: None,
            address: None,
            interrupted: false,
        }
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.diagnostic.fmt(f)
    }
}

impl std::error::Error for RunError {}

/// A kernel compiled for the CPU executor. It may be run many times and from many threads.
pub struct Executable {
    name: String,
    program: Program,
    places: Vec<Place>,
    /// Programs of a cluster along each axis.
    cluster: [u32; 3],
    /// Frames of earlier runs, kept for their registers' storage.
    frames: Mutex<Vec<Frame>>,
}

impl fmt::Debug for Executable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Executable({}, {} instructions)", self.name, self.program.code.len())
    }
}

/// What the threads of one run share.
struct Launch<'a> {
    executable: &'a Executable,
    context: Context<'a>,
    /// Of each rank.
    inputs: Vec<Vec<u64>>,
    /// The programs of one rank.
    per_rank: u64,
    total: u64,
    chunk: u64,
    next: AtomicU64,
    /// The first program (in launch order) known to have failed; `u64::MAX` while none has.
    failed: AtomicU64,
    error: Mutex<Option<(u64, RunError)>>,
    output: Mutex<Vec<(u64, String)>>,
    /// Of programs that have loops: where each stands, and whether it spins there.
    standstill: Standstill<(usize, bool)>,
    patience: Mutex<Option<Patience>>,
}

/// How long nothing changes before programs that wait for memory to change are said to wait in vain: other threads of the process may write it, too.
const PATIENCE: Duration = Duration::from_secs(3);

/// A standstill that may be one.
struct Patience {
    changes: u64,
    since: Instant,
    /// Whether all programs were asked to look once more behind that time: one may just have seen what another thread wrote, and be on its way.
    asked_again: bool,
}

impl Executable {
    /// Compiles a function of a `tt` module.
    ///
    /// # Errors
    /// If there is no such function, or it uses what the executor does not support.
    pub fn compile(module: &Module, kernel: &str) -> Result<Executable, Diagnostic> {
        let (program, places) = compile(module, kernel)?;
        let cluster = launch::programs_of_cluster(module);
        Ok(Executable { name: kernel.to_string(), program, places, cluster, frames: Mutex::new(Vec::new()) })
    }

    /// The kernel's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many arguments a launch takes.
    pub fn num_args(&self) -> usize {
        self.program.inputs.len()
    }

    /// The instructions, for people.
    pub fn dump(&self) -> String {
        use fmt::Write;
        let mut text = String::new();
        for (i, instr) in self.program.code.iter().enumerate() {
            let _ = writeln!(text, "{i:4} {instr:?}");
        }
        text
    }

    /// Runs the kernel for each program of a grid, which is one of whole clusters where programs form such. Programs start in order, `x` fastest, on several threads; the grid is
    /// done when this returns. Where several programs fail, the error is the first one's.
    ///
    /// # Errors
    /// If the arguments do not fit, or a program fails: an access outside `memory`, a failed assertion, a division by
    /// zero. What programs have stored by then stays stored.
    pub fn run(
        &self,
        grid: [u32; 3],
        args: &[Arg],
        memory: &Memory,
        options: &RunOptions<'_>,
    ) -> Result<(), RunError> {
        self.run_ranks(grid, &[args], memory, options)
    }

    /// The same for several ranks, which run at the same time: each has a grid of its own and the arguments of its place in the list.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_ranks(
        &self,
        grid: [u32; 3],
        args: &[impl AsRef<[Arg]>],
        memory: &Memory,
        options: &RunOptions<'_>,
    ) -> Result<(), RunError> {
        let inputs: Vec<_> = args.iter().map(|args| self.bind(args.as_ref())).collect::<Result<_, _>>()?;
        let per_rank = grid.iter().try_fold(1u64, |n, &e| n.checked_mul(u64::from(e)));
        let total = per_rank.and_then(|n| n.checked_mul(inputs.len() as u64));
        let (per_rank, total) =
            per_rank.zip(total).ok_or_else(|| RunError::before(format!("the grid {grid:?} is too large")))?;
        if total == 0 {
            return Ok(());
        }
        if (0..3).any(|d| !grid[d].is_multiple_of(self.cluster[d])) {
            let cluster = self.cluster;
            return Err(RunError::before(format!(
                "the grid {grid:?} is not a multiple of the cluster {cluster:?}"
            )));
        }
        let meetings = Meetings::default();
        let clusters = Clusters::default();
        let races = (inputs.len() > 1).then(|| Races::new(total, per_rank, memory));
        let available = rayon::current_num_threads();
        let threads = if options.threads == 0 { available } else { options.threads };
        let threads = threads.min(usize::try_from(total).unwrap_or(usize::MAX)).max(1);
        let launch = Launch {
            executable: self,
            context: Context {
                memory,
                grid,
                cluster: self.cluster,
                meetings: &meetings,
                clusters: &clusters,
                races: races.as_ref(),
                trap_division: options.trap_division,
                poison: options.poison,
                interrupt: options.interrupt,
            },
            inputs,
            per_rank,
            total,
            // Small enough to balance, large enough that claiming is rare.
            chunk: (total / (threads as u64 * 8)).clamp(1, 64),
            next: AtomicU64::new(0),
            failed: AtomicU64::new(u64::MAX),
            error: Mutex::new(None),
            output: Mutex::new(Vec::new()),
            standstill: Standstill::default(),
            patience: Mutex::new(None),
        };
        if threads == 1 {
            launch.work();
        } else {
            rayon::in_place_scope(|scope| {
                for _ in 1..threads {
                    scope.spawn(|_| launch.work());
                }
                launch.work();
            });
        }
        let mut output = lock(&launch.output);
        output.sort_by_key(|(program, _)| *program);
        for (_, text) in output.drain(..) {
            match options.print {
                Some(print) => print(&text),
                None => print!("{text}"),
            }
        }
        drop(output);
        match lock(&launch.error).take() {
            None => Ok(()),
            Some((_, error)) => Err(error),
        }
    }

    fn bind(&self, args: &[Arg]) -> Result<Vec<u64>, RunError> {
        let params = &self.program.inputs;
        if args.len() != params.len() {
            return Err(RunError::before(format!(
                "`{}` takes {} arguments, but {} were given",
                self.name,
                params.len(),
                args.len()
            )));
        }
        let mut inputs = Vec::with_capacity(args.len());
        for (i, (arg, v)) in args.iter().zip(params).enumerate() {
            let ty = &self.program.types[v.ty as usize];
            let bits = match (*arg, ty.elem) {
                _ if !ty.shape.is_empty() => None,
                (Arg::Bits(raw), e) => Some(from_memory_bits(e, raw)),
                (Arg::Pointer(addr), Elem::Ptr) => Some(addr),
                (Arg::Int(x), e) if e.is_int() => Some(e.canonical(x as u64)),
                (Arg::Float(x), Elem::Float(FloatKind::F64)) => Some(x.to_bits()),
                (Arg::Float(x), Elem::Float(FloatKind::F32)) => Some(u64::from((x as f32).to_bits())),
                (Arg::Float(x), Elem::Float(k)) => {
                    Some(u64::from((round_f64(x, k, Rounding::Nearest) as f32).to_bits()))
                }
                _ => None,
            };
            inputs.push(bits.ok_or_else(|| {
                RunError::before(format!(
                    "argument {i} of `{}` is {arg:?}, but the parameter is of type {}",
                    self.name,
                    ty.elem.name()
                ))
            })?);
        }
        Ok(inputs)
    }

    /// `of`: which rank's program, where there are several.
    fn error(&self, fault: Fault, pc: usize, program: [u32; 3], of: &str) -> RunError {
        let mut diagnostic = self.places[self.program.places[pc] as usize].clone();
        diagnostic.message = fault.message;
        for (what, pc) in fault.elsewhere {
            let place = self.places[self.program.places[pc] as usize].span.as_ref();
            let place = place.map_or(String::new(), |s| format!(" at {}:{}", s.file, s.line));
            diagnostic.notes.push(format!("{what}{place}"));
        }
        let [x, y, z] = program;
        diagnostic.notes.push(format!("in program ({x}, {y}, {z}){of}"));
        let element = fault.element.map(|(mut i, shape)| {
            let mut index: Vec<u32> = Vec::with_capacity(shape.len());
            for &extent in shape.iter().rev() {
                index.push((i % extent as usize) as u32);
                i /= extent as usize;
            }
            index.reverse();
            diagnostic.notes.push(format!("at element {index:?} of a tensor of shape {shape:?}"));
            index
        });
        diagnostic.notes.extend(fault.notes);
        RunError {
            diagnostic: Box::new(diagnostic.with_source_files()),
            program: Some(program),
            element,
            address: fault.address,
            interrupted: false,
        }
    }
}

/// The register bits of an element whose memory bits are the low bytes of `raw`.
fn from_memory_bits(elem: Elem, raw: u64) -> u64 {
    let Some(decode) = crate::kernels::cast::from_memory(elem) else { return elem.canonical(raw) };
    let mut bits = 0u64;
    // SAFETY: one element each, in eight bytes (little-endian, the low bytes first).
    unsafe { decode([(&raw const raw).cast(); 3], (&raw mut bits).cast(), 1) };
    elem.canonical(bits)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Launch<'_> {
    /// Runs programs until none is left.
    ///
    /// A program that waits for another is set aside. New programs and those set aside are taken in turn, so that every
    /// program is started sooner or later and each gets on again and again: a spin lock or a barrier over the whole grid
    /// makes progress on any number of threads.
    fn work(&self) {
        let program = &self.executable.program;
        let mut paused: VecDeque<(u64, Frame)> = VecDeque::new();
        let mut spare: Vec<Frame> = Vec::new();
        let mut claimed = 0..0;
        let mut fresh_turn = true;
        loop {
            let stopped = self.failed.load(Ordering::Relaxed);
            let mut task = None;
            if fresh_turn || paused.is_empty() {
                if claimed.is_empty() {
                    let start = self.next.fetch_add(self.chunk, Ordering::Relaxed).min(self.total);
                    claimed = start..(start + self.chunk).min(self.total);
                }
                if let Some(index) = claimed.next().filter(|&i| i < stopped) {
                    let mut frame = spare.pop().unwrap_or_else(|| self.frame());
                    let rank = index / self.per_rank;
                    frame.restart(self.program_id(index), rank);
                    for (&v, &bits) in program.inputs.iter().zip(&self.inputs[rank as usize]) {
                        frame.regs[v.slot as usize].repr = Repr::Uniform(bits);
                    }
                    task = Some((index, frame));
                }
            }
            let resumed = task.is_none();
            let Some((index, mut frame)) = task.or_else(|| paused.pop_front()) else { break };
            fresh_turn = resumed;
            if self.interrupted() {
                self.fail(0, RunError { interrupted: true, ..RunError::before("the run was interrupted") });
                break;
            }
            match frame.run(program, &self.context) {
                Ok(Status::Done) => {
                    self.flush(index, &mut frame);
                    spare.push(frame);
                    if program.spins {
                        self.standstill.ended(index);
                    }
                    if program.waits {
                        self.context.meetings.end(index);
                        self.look_for_deadlock();
                    }
                }
                Ok(Status::Paused) => {
                    if program.waits {
                        self.look_for_deadlock();
                    }
                    if program.spins {
                        self.look_for_standstill(index, &mut frame);
                    }
                    // After a failure, what it waits for may never come.
                    if self.failed.load(Ordering::Relaxed) == u64::MAX {
                        paused.push_back((index, frame));
                    }
                    if resumed {
                        std::thread::yield_now();
                    }
                }
                Ok(Status::Interrupted) => {
                    self.fail(
                        0,
                        RunError { interrupted: true, ..RunError::before("the run was interrupted") },
                    );
                    break;
                }
                Err(fault) => {
                    self.flush(index, &mut frame);
                    self.fail(index, self.error(*fault, frame.pc, index));
                    spare.push(frame);
                }
            }
        }
        let mut frames = lock(&self.executable.frames);
        let room = (2 * rayon::current_num_threads()).saturating_sub(frames.len());
        frames.extend(spare.into_iter().take(room));
    }

    /// Programs that wait for each other while none is left that could come.
    fn look_for_deadlock(&self) {
        if let Some((waiting, ended)) = self.context.meetings.deadlock(self.total) {
            self.deadlock(&waiting, &ended);
        }
    }

    /// Programs that wait for something to change in memory, while none is left that would change it. One of them has just paused.
    fn look_for_standstill(&self, index: u64, frame: &mut Frame) {
        if std::mem::take(&mut frame.changed) {
            self.standstill.changed();
        }
        let changes = self.standstill.changes();
        if !frame.is_back(changes) {
            return;
        }
        let place = (frame.looks.unwrap_or(frame.pc), frame.looks.is_some());
        let Some(still) = self.standstill.with(index, place, changes, self.total) else { return };
        if !self.waited_long(changes) {
            return;
        }
        let has = |spins| match spins {
            true => "no program is left that would change what it looks at",
            false => "not all come that it waits for",
        };
        let waiting = |&(program, (pc, spins))| Waiting { program, pc, has: has(spins).to_string() };
        let ended = |program: &u64| still.binary_search_by_key(program, |&(still, _)| still).is_err();
        let ended: Vec<u64> = (0..self.total).filter(ended).collect();
        self.deadlock(&still.iter().map(waiting).collect::<Vec<_>>(), &ended);
    }

    /// Whether all have stood still for a while, with so many changes before, and looked once more behind it.
    fn waited_long(&self, changes: u64) -> bool {
        let mut patience = lock(&self.patience);
        let new = Patience { changes, since: Instant::now(), asked_again: false };
        let known = patience.get_or_insert(new);
        if known.changes != changes {
            *known = Patience { changes, since: Instant::now(), asked_again: false };
        }
        if known.since.elapsed() < PATIENCE {
            drop(patience);
            std::thread::sleep(Duration::from_millis(1));
            return false;
        }
        if !known.asked_again {
            self.standstill.changed();
            *known = Patience { changes: self.standstill.changes(), asked_again: true, ..*known };
            return false;
        }
        true
    }

    /// The first of programs that wait in vain fails.
    fn deadlock(&self, waiting: &[Waiting], ended: &[u64]) {
        const SHOWN: usize = 8;
        let name = |program: u64| {
            let [x, y, z] = self.program_id(program);
            format!("program ({x}, {y}, {z}){}", self.of_rank(program))
        };
        let [first, others @ ..] = waiting else { return };
        let mut fault = Fault::new(format!("deadlock: the program waits where {}", first.has));
        for w in others.iter().take(SHOWN) {
            let place = &self.executable.places[self.executable.program.places[w.pc] as usize];
            let place = place.span.as_ref().map_or(String::new(), |s| format!(" at {}:{}", s.file, s.line));
            fault.notes.push(format!("{} waits{place}, where {}", name(w.program), w.has));
        }
        fault.notes.extend(ended.iter().take(SHOWN).map(|&program| format!("{} has ended", name(program))));
        let more = |all: usize| Some(all.saturating_sub(SHOWN)).filter(|&more| more > 0);
        fault.notes.extend(more(others.len()).map(|n| format!("{n} more programs wait")));
        fault.notes.extend(more(ended.len()).map(|n| format!("{n} more programs have ended")));
        self.fail(first.program, self.error(fault, first.pc, first.program));
    }

    fn error(&self, fault: Fault, pc: usize, program: u64) -> RunError {
        self.executable.error(fault, pc, self.program_id(program), &self.of_rank(program))
    }

    /// Which rank's a program is, for messages, where there are several.
    fn of_rank(&self, program: u64) -> String {
        match self.inputs.len() {
            1 => String::new(),
            _ => format!(" of rank {}", program / self.per_rank),
        }
    }

    fn interrupted(&self) -> bool {
        self.context.interrupt.is_some_and(|i| i.load(Ordering::Relaxed))
    }

    fn frame(&self) -> Frame {
        match lock(&self.executable.frames).pop() {
            Some(mut frame) => {
                frame.forget_memory();
                frame
            }
            None => Frame::new(&self.executable.program),
        }
    }

    fn program_id(&self, index: u64) -> [u32; 3] {
        let [x, y, _] = self.context.grid.map(u64::from);
        let index = index % self.per_rank;
        [(index % x) as u32, (index / x % y) as u32, (index / x / y) as u32]
    }

    fn flush(&self, index: u64, frame: &mut Frame) {
        if !frame.output.is_empty() {
            lock(&self.output).push((index, std::mem::take(&mut frame.output)));
        }
    }

    fn fail(&self, index: u64, error: RunError) {
        self.failed.fetch_min(index, Ordering::Relaxed);
        let mut first = lock(&self.error);
        if first.as_ref().is_none_or(|(i, _)| index < *i || error.interrupted) {
            *first = Some((index, error));
        }
    }
}
