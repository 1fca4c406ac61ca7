//! Runs a [`Program`]: a frame of registers and a program counter, one instruction after another.
//!
//! A frame is resumable: [`Frame::run`] returns [`Status::Paused`] when the program seems to wait for another one, and
//! goes on from there when called again.

mod access;
mod atomic;
mod dot;
mod elementwise;
pub(crate) mod inline_asm;
mod local;
mod mbarrier;
mod ordering;
mod print;
mod reduce;
mod rings;
mod still;
mod strands;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use tilewright_ir::dialect::tt::ProgramScope;
use tilewright_ptxsim::Before;

use self::local::{Own, with_own};
use self::mbarrier::{Mbarriers, NamedBarriers};
use self::rings::Outcome;
use self::strands::{Idle, Next, Strand, Yield};
use crate::buffer::Buffer;
use crate::cluster_memory::Clusters;
use crate::meeting::{Group, Meetings};
use crate::memory::{Hit, Memory};
use crate::program::{Instr, Program, V};
use crate::races::Races;
use crate::tile::{Reg, Repr, TileType};

/// What all programs of a launch share.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// Memory that may be touched.
    pub memory: &'a Memory,
    /// Extents of the grid.
    pub grid: [u32; 3],
    /// Programs of a cluster along each axis.
    pub cluster: [u32; 3],
    /// Where programs wait for each other.
    pub meetings: &'a Meetings,
    /// The buffers that the programs of a cluster reach in each other.
    pub clusters: &'a Clusters,
    /// What ranks do to each other's memory, where there are several.
    pub races: Option<&'a Races>,
    /// Whether a zero divisor in a tensor is an error too.
    pub trap_division: bool,
    /// Whether what loads and atomic operations leave out is no zero ([`Context::left_out`]).
    pub poison: bool,
    /// Set by the caller to end the run early.
    pub interrupt: Option<&'a AtomicBool>,
}

/// Why a program can't go on.
#[derive(Debug, Clone)]
pub struct Fault {
    /// What is wrong.
    pub message: String,
    /// The element, by row-major index, and the tensor's shape.
    pub element: Option<(usize, Box<[u32]>)>,
    /// The address of an access out of bounds.
    pub address: Option<u64>,
    /// Remarks.
    pub notes: Vec<String>,
    /// Where else the program is: what it does there, and the instruction.
    pub elsewhere: Vec<(String, usize)>,
}

impl Context<'_> {
    /// A program's number in the grid.
    pub fn number(&self, program: [u32; 3]) -> u64 {
        linear(program, self.grid)
    }

    /// The number of a program's cluster, and its rank there.
    fn in_cluster(&self, program: [u32; 3]) -> (u64, u64) {
        let along = |f: fn(u32, u32) -> u32, of: [u32; 3]| std::array::from_fn(|d| f(of[d], self.cluster[d]));
        let number = linear(along(|i, n| i / n, program), along(|i, n| i / n, self.grid));
        (number, linear(along(|i, n| i % n, program), self.cluster))
    }
}

/// The number of an index, x fastest.
fn linear(index: [u32; 3], extents: [u32; 3]) -> u64 {
    let ([x, y, z], [width, height, _]) = (index.map(u64::from), extents.map(u64::from));
    x + width * (y + height * z)
}

impl Fault {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Fault {
            message: message.into(),
            element: None,
            address: None,
            notes: Vec::new(),
            elsewhere: Vec::new(),
        }
    }
}

/// A fault, boxed: it is rare and large.
pub type FaultBox = Box<Fault>;

/// How a run of a frame ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// The program returned.
    Done,
    /// The program spins or waits; others should run before it goes on.
    Paused,
    /// The caller asked to stop.
    Interrupted,
}

/// As many as the simulator has, and an H100.
const MULTIPROCESSORS: u64 = 132;

/// After so many turns of a `while` loop that touches memory, a program is set aside.
const SPINS: u32 = 64;

/// The state of one program.
pub struct Frame {
    /// Registers.
    pub regs: Vec<Reg>,
    /// The next instruction.
    pub pc: usize,
    /// How many elements a scalar stands for (1, except in combine functions).
    pub lanes: usize,
    /// Program index.
    pub program_id: [u32; 3],
    /// Which of the launch's ranks it is of.
    pub rank: u64,
    /// What the program has printed.
    pub output: String,
    /// The last time that the program was told.
    time: u64,
    hit: Hit,
    scratch: [Buffer; 3],
    /// Buffers not in use.
    pool: Vec<Buffer>,
    spins: u32,
    /// Where the running turn of a loop has looked at memory.
    touched_memory: Option<usize>,
    /// Where the loop does that it spins in.
    pub looks: Option<usize>,
    /// Whether it has changed what others see since it last paused ([`still`]).
    pub changed: bool,
    before: Before,
    /// Buffers of the program's own, for a program that has any.
    own: Option<Box<Own>>,
    /// The turn of a barrier that it waits for.
    awaited: Option<u64>,
    /// Barriers of the program's own.
    mbarriers: Mbarriers,
    named: NamedBarriers,
    /// Which partition runs.
    strand: usize,
    /// The other partitions, in the order of their turns.
    others: VecDeque<Strand>,
    /// The frame of combine functions (kept for its buffers).
    inner: Option<Box<Frame>>,
}

/// The program comes to a barrier of its cluster, or waits there: those that wait for arrivals of its may do so in vain. `before` is how many barriers
/// had been met before it looked whether this one is.
fn tell_cluster(own: Option<&Own>, comes: bool, met: bool, before: u64) -> Result<(), FaultBox> {
    match own.and_then(Own::cluster) {
        // It is the last to come.
        Some((cluster, _)) if met && comes => cluster.go_on(),
        Some((cluster, rank)) if !met && cluster.wait_at_barrier(rank, before) => {
            let text = "deadlock: the program waits for all of its cluster, of which others wait at barriers of their own";
            return Err(Box::new(Fault::new(text)));
        }
        _ => {}
    }
    Ok(())
}

impl Frame {
    /// A frame for a program.
    pub fn new(program: &Program) -> Self {
        Frame {
            regs: (0..program.slots).map(|_| Reg::default()).collect(),
            pc: 0,
            lanes: 1,
            program_id: [0; 3],
            rank: 0,
            output: String::new(),
            time: 0,
            hit: Hit::default(),
            scratch: Default::default(),
            pool: Vec::new(),
            spins: 0,
            touched_memory: None,
            looks: None,
            changed: false,
            before: Before::default(),
            own: None,
            awaited: None,
            mbarriers: Mbarriers::default(),
            named: NamedBarriers::default(),
            strand: 0,
            others: VecDeque::new(),
            inner: None,
        }
    }

    /// Makes the frame ready for another program of the same launch.
    pub fn restart(&mut self, program_id: [u32; 3], rank: u64) {
        self.pc = 0;
        self.program_id = program_id;
        self.rank = rank;
        self.time = 0;
        self.spins = 0;
        self.touched_memory = None;
        self.set_out();
        self.awaited = None;
        self.mbarriers.forget();
        self.named = NamedBarriers::default();
        self.strand = 0;
        self.others.clear();
    }

    /// Drops what is cached about memory: another launch has other allocations.
    pub fn forget_memory(&mut self) {
        self.hit = Hit::default();
        self.own = None;
        if let Some(inner) = &mut self.inner {
            inner.forget_memory();
        }
    }

    /// The type of a register as an instruction sees it.
    pub(crate) fn ty(program: &Program, v: V) -> &TileType {
        &program.types[v.ty as usize]
    }

    /// How many elements a value of a type has.
    fn len(&self, ty: &TileType) -> usize {
        if ty.shape.is_empty() { self.lanes } else { ty.len }
    }

    /// The elements of a register, dense.
    pub(crate) fn dense(&mut self, program: &Program, v: V) -> &mut Reg {
        let ty = Self::ty(program, v);
        let len = self.len(ty);
        let reg = &mut self.regs[v.slot as usize];
        reg.materialize(ty, len);
        reg
    }

    /// The bits of a scalar.
    pub(crate) fn scalar(&mut self, program: &Program, v: V) -> u64 {
        match self.regs[v.slot as usize].repr {
            Repr::Uniform(bits) => bits,
            _ => {
                let ty = Self::ty(program, v);
                let size = ty.elem.reg_size();
                let reg = self.dense(program, v);
                ty.elem.canonical(read_bits(&reg.buf, size, 0))
            }
        }
    }

    pub(crate) fn set(&mut self, v: V, repr: Repr) {
        self.regs[v.slot as usize].repr = repr;
    }

    /// Two registers at once. They differ, by construction of the register allocation.
    fn pair(&mut self, a: V, b: V) -> (&mut Reg, &mut Reg) {
        let [a, b] =
            self.regs.get_disjoint_mut([a.slot as usize, b.slot as usize]).expect("distinct registers");
        (a, b)
    }

    /// Copies a value, or takes it from a register that is not needed further.
    pub(crate) fn transfer(&mut self, program: &Program, src: V, dst: V, take: bool) {
        let ty = Self::ty(program, src);
        let bytes = self.len(ty) * ty.elem.reg_size();
        let (src, dst) = self.pair(src, dst);
        if take {
            std::mem::swap(src, dst);
            return;
        }
        dst.repr = src.repr;
        if src.repr == Repr::Dense {
            dst.buf.slice_mut::<u8>(bytes).copy_from_slice(src.buf.slice(bytes));
        }
    }

    /// Runs until the program ends, pauses or fails. On failure, `pc` is the instruction that failed.
    pub fn run(&mut self, program: &Program, context: &Context<'_>) -> Result<Status, FaultBox> {
        if let Some(warps) = program.warps.filter(|_| self.pc == 0 && self.others.is_empty()) {
            self.fork_warps(warps);
        }
        if program.locals.is_empty() {
            return self.go_on(program, context, None);
        }
        let begins = self.pc == 0;
        // Those of another cluster are others.
        let kept = self.own.take().filter(|_| !(begins && program.reaches_others));
        let mut own = kept.unwrap_or_else(|| Box::new(Own::new(program, context, self.cluster(context))));
        if begins {
            own.forget(program);
        }
        let status = self.go_on(program, &with_own(context, &own), Some(&own));
        self.own = Some(own);
        status
    }

    fn go_on(
        &mut self,
        program: &Program,
        context: &Context<'_>,
        own: Option<&Own>,
    ) -> Result<Status, FaultBox> {
        let mut idle = Idle::default();
        self.looks = None;
        loop {
            let why = self.run_strand(program, context, own).map_err(|fault| self.of_warp(program, fault))?;
            match self.give_way(why, &mut idle) {
                Next::Run => {}
                Next::Leave(status) => {
                    if program.waits && status == Status::Paused {
                        let in_cluster = own.and_then(Own::cluster).is_some();
                        context.meetings.pause(self.number(context), idle.is_stuck(in_cluster));
                    }
                    return Ok(status);
                }
                Next::Deadlock => {
                    let cluster = own.and_then(Own::cluster);
                    // Another program of the cluster may arrive where this one waits.
                    if cluster.is_some_and(|(cluster, rank)| !cluster.wait(rank)) {
                        return Ok(Status::Paused);
                    }
                    let mut fault = self.deadlock(program, own);
                    if cluster.is_some() {
                        fault.notes.push("all other programs of the cluster wait, too".to_string());
                    }
                    return Err(Box::new(fault));
                }
            }
        }
    }

    /// At a barrier of several programs, or at a signal of one: whether it goes on.
    fn at_others(
        &mut self,
        program: &Program,
        context: &Context<'_>,
        own: Option<&Own>,
        instr: &Instr,
    ) -> Result<bool, FaultBox> {
        match instr {
            Instr::Barrier { scope, group, count } => {
                let comes = self.awaited.is_none();
                let before = own.and_then(Own::cluster).map_or(0, |(cluster, _)| cluster.barriers_met());
                let met = self.meet(program, context, *scope, *group, *count);
                self.changed |= comes || met;
                // (What waits beside other partitions is not the program.)
                if *scope == ProgramScope::Cluster && self.others.is_empty() {
                    tell_cluster(own, comes, met, before)?;
                }
                Ok(met)
            }
            Instr::WaitSignal { ptr, value, dst, flagged } => {
                let there = self.wait_signal(program, context, (*ptr, *value), *dst, *flagged)?;
                if there {
                    self.hear_signals(program, context, (*ptr, *value), !*flagged)?;
                }
                Ok(there)
            }
            _ => Ok(true),
        }
    }

    /// Runs until this flow of control gives way.
    fn run_strand(
        &mut self,
        program: &Program,
        context: &Context<'_>,
        own: Option<&Own>,
    ) -> Result<Yield, FaultBox> {
        let mut acted = false;
        loop {
            let instr = &program.code[self.pc];
            match instr {
                Instr::Jump { target, back } => {
                    self.pc = *target;
                    if *back && let Some(why) = self.back_edge(context) {
                        return Ok(why);
                    }
                    continue;
                }
                Instr::JumpIfNot { condition, target } => {
                    if self.scalar(program, *condition) & 1 == 0 {
                        self.pc = *target;
                        continue;
                    }
                }
                Instr::ForCheck { iv, upper, step, exit } => {
                    let step_value = self.scalar(program, *step) as i64;
                    if step_value <= 0 {
                        return Err(Box::new(Fault::new(format!(
                            "the step of a loop must be positive, but is {step_value}"
                        ))));
                    }
                    if self.scalar(program, *iv) as i64 >= self.scalar(program, *upper) as i64 {
                        self.pc = *exit;
                        continue;
                    }
                }
                Instr::ForStep { iv, step, top, exit } => {
                    if context.interrupt.is_some_and(|i| i.load(Ordering::Relaxed)) {
                        return Ok(Yield::Program(Status::Interrupted));
                    }
                    self.pc = if self.count_up(program, *iv, *step) { *top } else { *exit };
                    continue;
                }
                Instr::Barrier { .. } | Instr::WaitSignal { .. } => {
                    if !self.at_others(program, context, own, instr)? {
                        return Ok(Yield::Waits);
                    }
                }
                Instr::Fork { workers, default } => {
                    self.fork(workers);
                    self.pc = *default;
                    continue;
                }
                Instr::Join => {
                    if !self.others.is_empty() {
                        return Ok(Yield::Blocked(acted));
                    }
                }
                Instr::SameBlock { coord, mask } => self.same_block(program, context, own, (coord, *mask))?,
                Instr::MbarrierInit { .. }
                | Instr::MbarrierArrive { .. }
                | Instr::MbarrierBring { .. }
                | Instr::MbarrierWait { .. }
                | Instr::NamedArrive { .. }
                | Instr::NamedWait { .. } => {
                    if !self.at_barrier(program, own, instr)? {
                        return Ok(Yield::Blocked(acted));
                    }
                }
                Instr::End => return Ok(Yield::Ended),
                Instr::AtomicRmw { .. } | Instr::AtomicCas { .. } if !self.others.is_empty() => {
                    self.step_of(program, context, instr)?;
                    self.pc += 1;
                    return Ok(Yield::Acted);
                }
                // Of several warps the last one ends the program.
                Instr::Return if !self.others.is_empty() => return Ok(Yield::Ended),
                Instr::Return => {
                    if let Some(own) = own {
                        rings::at_end(program, &own.rings.borrow())?;
                    }
                    return Ok(Yield::Program(Status::Done));
                }
                Instr::Ring(step) => {
                    let own = own.ok_or_else(|| Box::new(Fault::new("a pipe outside of a kernel")))?;
                    if self.ring_op(program, &mut own.rings.borrow_mut(), step)? == Outcome::Blocked {
                        return Ok(Yield::Blocked(acted));
                    }
                    self.changed = true;
                }
                Instr::Local { .. }
                | Instr::RingCreate { .. }
                | Instr::Pointers { .. }
                | Instr::LocalPtr { .. }
                | Instr::Slot { .. }
                | Instr::Part { .. }
                | Instr::Remote { .. }
                | Instr::Offset { .. } => self.local_op(program, own, instr)?,
                _ => {
                    self.check_ring_access(program, own, instr)?;
                    self.step_of(program, context, instr)?;
                }
            }
            acted = true;
            self.pc += 1;
        }
    }

    fn step_of(&mut self, program: &Program, context: &Context<'_>, instr: &Instr) -> Result<(), FaultBox> {
        match context.races {
            None => self.step(program, context, instr),
            Some(races) => self.step_among_ranks(program, context, races, instr),
        }
    }

    /// Counts a loop's variable up. Counting past its type's range ends the loop: every bound is below.
    fn count_up(&mut self, program: &Program, iv: V, step: V) -> bool {
        let ty = Self::ty(program, iv);
        let sum = (self.scalar(program, iv) as i64)
            .checked_add(self.scalar(program, step) as i64)
            .filter(|&s| s <= ty.elem.signed_range().1);
        if let Some(sum) = sum {
            self.set(iv, Repr::Uniform(sum as u64));
        }
        sum.is_some()
    }

    /// Checks what an instruction accesses of the slots of rings.
    fn check_ring_access(
        &mut self,
        program: &Program,
        own: Option<&Own>,
        instr: &Instr,
    ) -> Result<(), FaultBox> {
        let Some(own) = own.filter(|_| !program.rings.is_empty()) else { return Ok(()) };
        let (ptr, mask, value, write) = match instr {
            Instr::Load { ptr, mask, dst, .. } => (*ptr, *mask, *dst, false),
            Instr::Store { ptr, mask, value } => (*ptr, *mask, *value, true),
            Instr::AtomicRmw { ptr, mask, val, .. } => (*ptr, *mask, *val, true),
            Instr::AtomicCas { ptr, val, .. } => (*ptr, None, *val, true),
            _ => return Ok(()),
        };
        let size = Self::ty(program, value).elem.mem_size();
        self.check_slots(program, &own.rings.borrow(), (ptr, mask), size, write)
    }

    /// Comes to a barrier, or looks whether those that it waits for have come; gives whether the program goes on.
    fn meet(
        &mut self,
        program: &Program,
        context: &Context<'_>,
        scope: ProgramScope,
        group: i32,
        count: Option<V>,
    ) -> bool {
        let (of, size) = match scope {
            ProgramScope::Cluster => (self.cluster(context).0, context.cluster),
            ProgramScope::Grid => (self.rank, context.grid),
        };
        let group: Group = (group, of);
        let strand = (self.number(context), self.strand);
        if self.awaited.is_none() {
            self.note_meeting(context, group, true);
        }
        self.awaited = match self.awaited {
            Some(turn) => Some(turn).filter(|&turn| !context.meetings.is_over(group, turn, strand)),
            None => {
                let wanted = match count {
                    Some(count) => self.scalar(program, count),
                    None => size.iter().map(|&n| u64::from(n)).product(),
                };
                context.meetings.come(group, wanted, strand, self.pc)
            }
        };
        if self.awaited.is_none() {
            self.note_meeting(context, group, false);
        }
        self.awaited.is_none()
    }

    /// The program's number in the launch: rank by rank.
    pub(super) fn number(&self, context: &Context<'_>) -> u64 {
        self.rank * linear([0, 0, context.grid[2]], context.grid) + context.number(self.program_id)
    }

    /// The number of the program's cluster in the launch, and the program's place there.
    fn cluster(&self, context: &Context<'_>) -> (u64, u64) {
        let (number, place) = context.in_cluster(self.program_id);
        let clusters: u64 =
            context.grid.iter().zip(&context.cluster).map(|(g, c)| u64::from(g / c)).product();
        (self.rank * clusters + number, place)
    }

    fn back_edge(&mut self, context: &Context<'_>) -> Option<Yield> {
        if context.interrupt.is_some_and(|i| i.load(Ordering::Relaxed)) {
            return Some(Yield::Program(Status::Interrupted));
        }
        if let Some(at) = self.touched_memory.take() {
            self.spins += 1;
            if self.spins >= SPINS {
                self.spins = 0;
                self.looks = Some(at);
                return Some(Yield::Spins);
            }
        }
        None
    }

    fn step(&mut self, program: &Program, context: &Context<'_>, instr: &Instr) -> Result<(), FaultBox> {
        match instr {
            Instr::Const { dst, bits } => self.set(*dst, Repr::Uniform(*bits)),
            Instr::Dense { dst, data } => {
                let reg = &mut self.regs[dst.slot as usize];
                reg.buf.slice_mut::<u8>(data.len()).copy_from_slice(data);
                reg.repr = Repr::Dense;
            }
            Instr::ProgramId { dst, axis } => {
                self.set(*dst, Repr::Uniform(u64::from(self.program_id[*axis])))
            }
            Instr::NumPrograms { dst, axis } => self.set(*dst, Repr::Uniform(u64::from(context.grid[*axis]))),
            Instr::Map(map) => self.map(program, context, map)?,
            Instr::Library { elements, srcs, dst } => self.library(program, *elements, srcs, *dst),
            Instr::Timer { dst } => {
                self.time += 1;
                self.set(*dst, Repr::Uniform(self.time));
            }
            Instr::Multiprocessor { dst } => {
                self.set(*dst, Repr::Uniform(self.number(context) % MULTIPROCESSORS));
            }
            Instr::WarpId { dst } => self.set(*dst, Repr::Uniform(self.strand as u64)),
            Instr::ClusterRank { dst } => {
                self.set(*dst, Repr::Uniform(self.cluster(context).1));
            }
            Instr::Move { assigns, overlapping } => self.assign(program, assigns, *overlapping),
            Instr::Tile(op) => op.run(self, program)?,
            Instr::Load { ptr, mask, other, dst, volatile } => {
                if *volatile {
                    self.touched_memory = Some(self.pc);
                }
                self.load(program, context, *ptr, *mask, *other, *dst)?;
            }
            Instr::Store { ptr, value, mask } => self.store(program, context, *ptr, *value, *mask)?,
            Instr::AtomicRmw { op, ptr, val, mask, dst, .. } => {
                self.atomic_rmw(program, context, *op, *ptr, *val, *mask, *dst)?;
            }
            Instr::AtomicCas { ptr, cmp, val, dst, .. } => {
                self.atomic_cas(program, context, *ptr, *cmp, *val, *dst)?
            }
            Instr::Dot { a, b, c, dst, precision } => self.dot(program, *a, *b, *c, *dst, *precision),
            Instr::DotScaled(dot) => self.dot_scaled(program, dot),
            Instr::Reduce { srcs, dsts, axis, combine } => {
                self.reduce(program, context, srcs, dsts, *axis, combine)?;
            }
            Instr::Scan { srcs, dsts, axis, reverse, combine } => {
                self.scan(program, context, srcs, dsts, *axis, *reverse, combine)?;
            }
            Instr::MapElementwise { srcs, dsts, pack, function } => {
                self.map_elementwise(program, context, srcs, dsts, *pack, function)?;
            }
            Instr::InlineAsm { srcs, dsts, pack, asm } => {
                self.inline_asm(program, context, srcs, dsts, *pack, asm)?;
            }
            Instr::Print { prefix, args, hex, signed } => {
                self.changed = true;
                self.print(program, prefix, args, *hex, signed);
            }
            Instr::Assert { condition, message } => self.assert(program, *condition, message)?,
            Instr::Local { .. }
            | Instr::RingCreate { .. }
            | Instr::Ring(_)
            | Instr::Pointers { .. }
            | Instr::LocalPtr { .. }
            | Instr::Slot { .. }
            | Instr::Part { .. }
            | Instr::Remote { .. }
            | Instr::Offset { .. }
            | Instr::Jump { .. }
            | Instr::JumpIfNot { .. }
            | Instr::ForCheck { .. }
            | Instr::ForStep { .. }
            | Instr::Barrier { .. }
            | Instr::WaitSignal { .. }
            | Instr::Fork { .. }
            | Instr::Join
            | Instr::End
            | Instr::SameBlock { .. }
            | Instr::MbarrierInit { .. }
            | Instr::MbarrierArrive { .. }
            | Instr::MbarrierBring { .. }
            | Instr::NamedArrive { .. }
            | Instr::NamedWait { .. }
            | Instr::MbarrierWait { .. }
            | Instr::Return => unreachable!("handled by `run`"),
        }
        Ok(())
    }

    fn assert(&mut self, program: &Program, condition: V, message: &str) -> Result<(), FaultBox> {
        let ty = Self::ty(program, condition);
        let size = ty.elem.reg_size();
        if let Repr::Uniform(bits) = self.regs[condition.slot as usize].repr
            && bits != 0
        {
            return Ok(());
        }
        let len = self.len(ty);
        let reg = self.dense(program, condition);
        let failing = (0..len).find(|&i| read_bits(&reg.buf, size, i) == 0);
        match failing {
            None => Ok(()),
            Some(i) => {
                let text = if message.is_empty() {
                    "device assertion failed".to_string()
                } else {
                    format!("device assertion failed: {message}")
                };
                let mut fault = Fault::new(text);
                if !ty.shape.is_empty() {
                    fault.element = Some((i, ty.shape.clone()));
                }
                Err(Box::new(fault))
            }
        }
    }
}

/// The low bits of element `i` of a buffer.
pub(crate) fn read_bits(buf: &Buffer, size: usize, i: usize) -> u64 {
    match size {
        1 => u64::from(buf.slice::<u8>(i + 1)[i]),
        2 => u64::from(buf.slice::<u16>(i + 1)[i]),
        4 => u64::from(buf.slice::<u32>(i + 1)[i]),
        _ => buf.slice::<u64>(i + 1)[i],
    }
}
