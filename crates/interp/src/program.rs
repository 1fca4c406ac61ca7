//! The compiled form of a kernel: a flat list of instructions over numbered registers.
//!
//! Structured control flow is jumps; calls are expanded in place. Instructions work on whole tiles. Regions of
//! reductions and scans are programs of their own, whose scalars stand for many *lanes* at once.

use std::sync::Arc;

use tilewright_ir::dialect::arith::CmpIPredicate;
use tilewright_ir::dialect::tt::{InputPrecision, ProgramScope, RmwOp};
use tilewright_ir::{Diagnostic, FloatKind};

use crate::float::Rounding;
use crate::kernels::Kernel;
use crate::races::Message;
use crate::shape::TileOp;
use crate::tile::TileType;

/// A register and the type in which an instruction sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct V {
    /// The register.
    pub slot: u32,
    /// Index into [`Program::types`].
    pub ty: u32,
}

/// A rule that may compute an elementwise result in compact form (see `lazy.rs`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// None: always by the loop.
    Loop,
    /// a + b
    Add,
    /// a - b
    Sub,
    /// a · b
    Mul,
    /// a << b
    Shl,
    /// a / b, rounding irrelevant where the quotient is 0
    Div,
    /// a mod b
    Rem,
    /// Smaller (false) or larger (true) of two signed numbers.
    MinMax(bool),
    /// Comparison.
    Compare(CmpIPredicate),
    /// Conjunction of masks.
    And,
    /// Conversion between integer widths; signed or not.
    IntCast(bool),
    /// Address plus offset times the immediate.
    AddPtr,
    /// Choice by a condition.
    Select,
}

/// An elementwise operation.
#[derive(Debug, Clone)]
pub struct Map {
    /// The loop.
    pub kernel: Kernel,
    /// Operands.
    pub srcs: Vec<V>,
    /// A constant operand after the others.
    pub imm: Option<u64>,
    /// Result.
    pub dst: V,
    /// Rounding of the result to a narrow format.
    pub round: Option<(FloatKind, Rounding)>,
    /// The compact rule.
    pub rule: Rule,
    /// Whether the second operand divides.
    pub divides: bool,
}

/// One assignment of a [`Instr::Move`].
#[derive(Debug, Clone, Copy)]
pub struct Assign {
    /// From.
    pub src: V,
    /// To.
    pub dst: V,
    /// Whether the source is not needed afterwards.
    pub take: bool,
}

/// An operand of a scaled product.
#[derive(Debug, Clone)]
pub struct Microscaled {
    /// Elements; integers are two E2M1 codes each.
    pub value: V,
    /// Scales: exponents if they are integers.
    pub scale: Option<V>,
    /// Whether the two codes are neighbours along K, and not along M or N.
    pub k_pack: bool,
}

/// A product of microscaling formats.
#[derive(Debug, Clone)]
pub struct DotScaled {
    /// The two factors.
    pub operands: [Microscaled; 2],
    /// What is added.
    pub c: V,
    /// The result.
    pub dst: V,
    /// The type that elements and scales are multiplied in.
    pub kind: FloatKind,
    /// Whether an exponent of 255 is infinity instead of NaN.
    pub fast_math: bool,
}

/// The combine function of a reduction or scan.
#[derive(Debug)]
pub struct Combine {
    /// Inputs: accumulators, then elements, then captured values. Outputs: the new accumulators.
    pub program: Box<Program>,
    /// Values of the enclosing program that the function uses.
    pub captures: Vec<V>,
    /// The loop and the result's format, where the function is a single operation on its two arguments.
    pub single: Option<(Kernel, Option<FloatKind>)>,
}

/// An instruction.
#[derive(Debug)]
#[allow(missing_docs)] // named as the operations are
pub enum Instr {
    Const {
        dst: V,
        bits: u64,
    },
    Dense {
        dst: V,
        data: Arc<[u8]>,
    },
    ProgramId {
        dst: V,
        axis: usize,
    },
    NumPrograms {
        dst: V,
        axis: usize,
    },
    /// An operation that arranges elements.
    Tile(Box<dyn TileOp>),
    Map(Box<Map>),
    /// A function of a library, for each element.
    Library {
        elements: fn(&[&[u8]], &mut [u8]),
        srcs: Vec<V>,
        dst: V,
    },
    /// A time, which goes on with each look at it.
    Timer {
        dst: V,
    },
    /// The number of the warp, in a kernel that is written for one.
    WarpId {
        dst: V,
    },
    /// The multiprocessor that would run the program.
    Multiprocessor {
        dst: V,
    },
    /// The program's rank in its cluster.
    ClusterRank {
        dst: V,
    },
    Move {
        assigns: Vec<Assign>,
        overlapping: bool,
    },
    /// The address of a buffer of the program's own, by its number.
    Local {
        dst: V,
        buffer: usize,
    },
    /// Makes the ring of this number of these buffers, with all slots free.
    RingCreate {
        ring: usize,
        fields: Vec<V>,
        dst: V,
    },
    /// An operation on a ring.
    Ring(RingStep),
    /// The addresses of all elements of a view.
    Pointers {
        base: V,
        view: Arc<View>,
        dst: V,
    },
    /// The addresses of elements of a view at indices along each of its dimensions.
    LocalPtr {
        base: V,
        view: Arc<View>,
        indices: Vec<V>,
        dst: V,
    },
    /// Where a view begins in one of more dimensions, the outermost of which this indexes.
    Slot {
        base: V,
        view: Arc<View>,
        index: V,
        dst: V,
    },
    /// Where a part of a view begins, by its first index along each dimension, of which `most` says the last that it may be.
    Part {
        base: V,
        view: Arc<View>,
        most: Box<[u32]>,
        indices: Vec<V>,
        dst: V,
    },
    /// The same places in the buffers of another program of the cluster, by its rank.
    Remote {
        src: V,
        rank: V,
        dst: V,
    },
    /// An address so many bytes further on.
    Offset {
        base: V,
        bytes: i64,
        dst: V,
    },
    Load {
        ptr: V,
        mask: Option<V>,
        other: Option<V>,
        dst: V,
        /// Whether others may write there at the same time.
        volatile: bool,
    },
    Store {
        ptr: V,
        value: V,
        mask: Option<V>,
    },
    AtomicRmw {
        op: RmwOp,
        ptr: V,
        val: V,
        mask: Option<V>,
        dst: V,
        message: Message,
    },
    AtomicCas {
        ptr: V,
        cmp: V,
        val: V,
        dst: V,
        message: Message,
    },
    Dot {
        a: V,
        b: V,
        c: V,
        dst: V,
        precision: InputPrecision,
    },
    DotScaled(Box<DotScaled>),
    Reduce {
        srcs: Vec<V>,
        dsts: Vec<V>,
        axis: usize,
        combine: Combine,
    },
    Scan {
        srcs: Vec<V>,
        dsts: Vec<V>,
        axis: usize,
        reverse: bool,
        combine: Combine,
    },
    MapElementwise {
        srcs: Vec<V>,
        dsts: Vec<V>,
        pack: usize,
        function: Combine,
    },
    InlineAsm {
        srcs: Vec<V>,
        dsts: Vec<V>,
        /// The elements of each operand and result that one run of it takes.
        pack: usize,
        asm: Arc<tilewright_ptxsim::InlineAsm>,
    },
    Print {
        prefix: String,
        args: Vec<V>,
        hex: bool,
        signed: Vec<bool>,
    },
    Assert {
        condition: V,
        message: String,
    },
    /// Waits for the other programs of the scope, or for as many as `count` in all.
    Barrier {
        scope: ProgramScope,
        group: i32,
        count: Option<V>,
    },
    /// Waits until the integers at some addresses are at least some values, or have their flags.
    WaitSignal {
        ptr: V,
        value: V,
        dst: V,
        flagged: bool,
    },
    /// `back` marks the end of a `while` body, where a program may be set aside.
    Jump {
        target: usize,
        back: bool,
    },
    JumpIfNot {
        condition: V,
        target: usize,
    },
    /// Leaves the loop if the induction variable has reached its bound.
    ForCheck {
        iv: V,
        upper: V,
        step: V,
        exit: usize,
    },
    /// Begins partitions: flows of control at these instructions, beside the one that goes on at `default`.
    Fork {
        workers: Vec<usize>,
        default: usize,
    },
    /// Waits until all partitions have ended.
    Join,
    /// Ends a partition.
    End,
    /// A block that the programs of the cluster whose ranks differ in the bits of `mask` alone bring together: they must mean the same one.
    SameBlock {
        coord: Vec<V>,
        mask: u64,
    },
    /// Makes an mbarrier of so many arrivals a phase, of which one is that of copies where these bring bytes.
    MbarrierInit {
        at: V,
        count: u64,
        bytes: u64,
    },
    /// Arrives at an mbarrier, or at that of the program of a rank of the cluster which lies at the same place.
    MbarrierArrive {
        at: V,
        count: u64,
        rank: Option<V>,
    },
    /// Counts bytes that a copy brings.
    MbarrierBring {
        at: V,
        bytes: u64,
    },
    /// A partition comes to a barrier of the hardware, where so many do; which phase it is.
    NamedArrive {
        barrier: u32,
        parties: usize,
        dst: V,
    },
    /// Waits until the phase of a barrier of the hardware has ended.
    NamedWait {
        barrier: u32,
        phase: V,
    },
    /// Waits until the phase of a parity of an mbarrier has ended.
    MbarrierWait {
        at: V,
        parity: V,
    },
    /// Counts up and goes back.
    ForStep {
        iv: V,
        step: V,
        top: usize,
        exit: usize,
    },
    Return,
}

/// Whether an instruction reads or writes a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Reads.
    Use,
    /// Writes.
    Def,
}

impl Instr {
    /// Calls `f` once on every register of the instruction.
    pub fn visit(&mut self, f: &mut impl FnMut(&mut V, Role)) {
        use Role::{Def, Use};
        match self {
            Instr::Const { dst, .. }
            | Instr::Dense { dst, .. }
            | Instr::Local { dst, .. }
            | Instr::ProgramId { dst, .. }
            | Instr::NumPrograms { dst, .. }
            | Instr::Timer { dst }
            | Instr::Multiprocessor { dst }
            | Instr::WarpId { dst }
            | Instr::ClusterRank { dst } => f(dst, Def),
            Instr::Tile(op) => {
                let (uses, defs) = op.registers();
                uses.into_iter().for_each(|v| f(v, Use));
                defs.into_iter().for_each(|v| f(v, Def));
            }
            Instr::Map(m) => {
                m.srcs.iter_mut().for_each(|v| f(v, Use));
                f(&mut m.dst, Def);
            }
            Instr::Library { srcs, dst, .. } | Instr::RingCreate { fields: srcs, dst, .. } => {
                srcs.iter_mut().for_each(|v| f(v, Use));
                f(dst, Def);
            }
            Instr::Move { assigns, .. } => {
                assigns.iter_mut().for_each(|a| f(&mut a.src, Use));
                assigns.iter_mut().for_each(|a| f(&mut a.dst, Def));
            }
            Instr::Pointers { base: src, dst, .. } | Instr::Offset { base: src, dst, .. } => {
                f(src, Use);
                f(dst, Def);
            }
            Instr::InlineAsm { srcs, dsts, .. } => {
                srcs.iter_mut().for_each(|v| f(v, Use));
                dsts.iter_mut().for_each(|v| f(v, Def));
            }
            Instr::Slot { base: a, index: b, dst, .. } | Instr::Remote { src: a, rank: b, dst } => {
                f(a, Use);
                f(b, Use);
                f(dst, Def);
            }
            Instr::LocalPtr { base, indices, dst, .. } | Instr::Part { base, indices, dst, .. } => {
                [base].into_iter().chain(indices).for_each(|v| f(v, Use));
                f(dst, Def);
            }
            Instr::Load { ptr, mask, other, dst, .. } => {
                [ptr].into_iter().chain(mask).chain(other).for_each(|v| f(v, Use));
                f(dst, Def);
            }
            Instr::Store { ptr, value, mask } => {
                [ptr, value].into_iter().chain(mask).for_each(|v| f(v, Use));
            }
            Instr::AtomicRmw { ptr, val, mask, dst, .. } => {
                [ptr, val].into_iter().chain(mask).for_each(|v| f(v, Use));
                f(dst, Def);
            }
            Instr::AtomicCas { ptr: a, cmp: b, val: c, dst, .. } | Instr::Dot { a, b, c, dst, .. } => {
                f(a, Use);
                f(b, Use);
                f(c, Use);
                f(dst, Def);
            }
            Instr::DotScaled(dot) => {
                dot.operands.iter_mut().for_each(|o| f(&mut o.value, Use));
                dot.operands.iter_mut().filter_map(|o| o.scale.as_mut()).for_each(|v| f(v, Use));
                f(&mut dot.c, Use);
                f(&mut dot.dst, Def);
            }
            Instr::Reduce { srcs, dsts, combine, .. }
            | Instr::Scan { srcs, dsts, combine, .. }
            | Instr::MapElementwise { srcs, dsts, function: combine, .. } => {
                srcs.iter_mut().chain(&mut combine.captures).for_each(|v| f(v, Use));
                dsts.iter_mut().for_each(|v| f(v, Def));
            }
            Instr::Print { args, .. } => args.iter_mut().for_each(|v| f(v, Use)),
            Instr::Assert { condition, .. } | Instr::JumpIfNot { condition, .. } => f(condition, Use),
            Instr::ForCheck { iv, upper, step, .. } => {
                [iv, upper, step].into_iter().for_each(|v| f(v, Use));
            }
            Instr::ForStep { iv, step, .. } => {
                f(step, Use);
                // Read and written; once, as a visitor may rename it.
                f(iv, Def);
            }
            Instr::Ring(step) => step.visit(f),
            Instr::Barrier { count, .. } => count.iter_mut().for_each(|v| f(v, Use)),
            Instr::SameBlock { coord, .. } => coord.iter_mut().for_each(|v| f(v, Use)),
            Instr::MbarrierInit { at, .. } | Instr::MbarrierBring { at, .. } => f(at, Use),
            Instr::MbarrierArrive { at, rank, .. } => [at].into_iter().chain(rank).for_each(|v| f(v, Use)),
            Instr::WaitSignal { ptr, value, dst, .. } => {
                f(ptr, Use);
                f(value, Use);
                f(dst, Def);
            }
            Instr::NamedArrive { dst, .. } => f(dst, Def),
            Instr::NamedWait { phase, .. } => f(phase, Use),
            Instr::MbarrierWait { at, parity } => [at, parity].into_iter().for_each(|v| f(v, Use)),
            Instr::Jump { .. } | Instr::Fork { .. } | Instr::Join | Instr::End | Instr::Return => {}
        }
    }
}

/// How a buffer, or a view of one, is arranged: in row-major order, with what lies between its elements in the whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// Extents.
    pub shape: Vec<u32>,
    /// Bytes from one element to the next along each dimension.
    pub strides: Vec<i64>,
}

impl View {
    /// How many elements of a whole it spans along a dimension, from its first one to its last.
    pub fn extent_in(&self, whole: &View, d: usize) -> u32 {
        let apart = self.strides[d].checked_div(whole.strides[d]).unwrap_or(1);
        u32::try_from(apart).map_or(self.shape[d], |apart| self.shape[d].saturating_sub(1) * apart + 1)
    }
}

/// What is done to a slot of a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RingOp {
    /// The writer waits for it to be free.
    Acquire,
    /// The writer gives it to the readers.
    Commit,
    /// The writer waits for it and gives it closed.
    Close,
    /// A reader waits for it to be full.
    Wait,
    /// A reader gives it back.
    Release,
    /// Whether it is closed.
    IsClosed,
}

/// An operation on a ring.
#[derive(Debug, Clone)]
pub struct RingStep {
    /// What.
    pub op: RingOp,
    /// The ring.
    pub ring: V,
    /// The slot's number.
    pub slot: V,
    /// The parity of the round.
    pub phase: Option<V>,
    /// Where it holds something is done.
    pub pred: Option<V>,
    /// The reader that waits or releases.
    pub reader: usize,
    /// The result.
    pub dst: Option<V>,
}

/// A ring, as it is made.
#[derive(Debug, Clone)]
pub struct RingInfo {
    /// Its name.
    pub name: Option<String>,
    /// How many slots it has.
    pub slots: u32,
    /// Its readers; an empty name is none.
    pub readers: Vec<String>,
    /// Whether its slots are filled once.
    pub one_shot: bool,
    /// Bytes of a slot of each field.
    pub slot_bytes: Vec<u64>,
}

impl RingStep {
    fn visit(&mut self, f: &mut impl FnMut(&mut V, Role)) {
        let used = [&mut self.ring, &mut self.slot].into_iter();
        used.chain(&mut self.phase).chain(&mut self.pred).for_each(|v| f(v, Role::Use));
        self.dst.iter_mut().for_each(|v| f(v, Role::Def));
    }
}

impl RingInfo {
    /// What messages call it.
    pub fn shown(&self) -> String {
        self.name.as_ref().map_or("the pipe".to_string(), |name| format!("the pipe `{name}`"))
    }

    /// What messages call a reader.
    pub fn reader(&self, number: usize) -> String {
        match self.readers.get(number).filter(|name| !name.is_empty()) {
            Some(name) => format!("the reader `{name}`"),
            None => "the reader".to_string(),
        }
    }
}

/// Memory of the program's own.
#[derive(Debug, Clone)]
pub struct Local {
    /// What to call it in messages.
    pub name: String,
    /// Its size in bytes.
    pub bytes: usize,
}

/// A compiled kernel or combine function.
#[derive(Debug, Default)]
pub struct Program {
    /// The instructions.
    pub code: Vec<Instr>,
    /// For each instruction, its place in the source: index into the executable's places.
    pub places: Vec<u32>,
    /// The types of registers.
    pub types: Vec<TileType>,
    /// How many registers there are.
    pub slots: usize,
    /// Where arguments are put.
    pub inputs: Vec<V>,
    /// Where results are found.
    pub outputs: Vec<V>,
    /// The buffers that it allocates.
    pub locals: Vec<Local>,
    /// The rings that it makes.
    pub rings: Vec<RingInfo>,
    /// Whether there are jumps, so that lanes can't run together.
    pub branches: bool,
    /// Whether it waits for other programs.
    pub waits: bool,
    /// Whether it has loops that may wait for what other programs write.
    pub spins: bool,
    /// How many warps run it, each with registers of its own, where it is written for one.
    pub warps: Option<u32>,
    /// Whether it reaches the buffers of other programs of its cluster, or brings blocks together with them.
    pub reaches_others: bool,
}

/// A place in the source, as a diagnostic without a message.
pub type Place = Diagnostic;
