//! Which queue of which core an operation is an instruction of, and the memory that it touches.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::dialect::hivm::{self, CORES, CoreType as Core, Kind as H, Pipe};
use tilewright_ir::dialect::{hivm_more, memref, ttg};
use tilewright_ir::memref::MemRef;
use tilewright_ir::{AttrKind, Module, Op, Opcode, TypeKind, Value, ascend};
use tilewright_passes::analysis::local_memory::Held;

/// A queue of a core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Queue {
    pub core: Core,
    pub pipe: Pipe,
}

/// The memory that an instruction touches.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Root {
    /// A buffer, with the bytes of its memory that it has. Others may have them at other times.
    Buffer { buffer: Value, space: &'static str, from: u32, to: u32 },
    /// Global memory.
    Global,
}

#[derive(Clone, Copy)]
pub(super) struct Access {
    pub queue: Queue,
    pub root: Root,
    pub write: bool,
    /// Whether it is memory that both vector cores of a block touch, each for itself.
    pub shared: bool,
    /// What is in order with it by flags and barriers in the loops and branches that it is in.
    pub fences: Fences,
}

/// What the flags and barriers of a block say of a vector instruction in it and others, whatever comes before or behind the block.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Fences {
    /// All vector instructions before the block are done when it begins.
    pub behind: bool,
    /// It is done when vector instructions behind the block begin.
    pub ahead: bool,
}

/// An operation with all that it, or what is inside, touches.
pub(super) struct Node {
    pub op: Op,
    pub touched: Vec<Access>,
    /// Whether it is a loop or a branch.
    pub holds: bool,
    /// Whether all queues are done when it begins: programs wait for each other.
    pub meets: bool,
    /// Whether it is a product that another queue takes something out of L1 for.
    pub takes: bool,
}

/// What is known of instructions.
pub(super) struct Known {
    /// Where buffers are.
    pub held: FxHashMap<Value, Held>,
    /// The kinds of cores that the kernel runs on.
    pub cores: Vec<Core>,
    /// Whether two vector cores have a half of the work each.
    pub halved: bool,
    /// What in the workspace is not of one of them alone.
    pub crossed: FxHashSet<Value>,
    /// What is in order with them already.
    pub fences: FxHashMap<Op, Fences>,
}

impl Node {
    /// An operation; none that touches nothing.
    pub fn of(m: &Module, known: &Known, op: Op) -> Option<Node> {
        let mut touched = Vec::new();
        m.walk(op, &mut |inner| touched.extend(accesses(m, known, inner)));
        let holds = !m.regions(op).is_empty();
        let meets = hivm_more::SyncBlock::cast(m, op).is_some();
        let product = matches!(m.opcode(op), Some(Opcode::Hivm(H::Mmad)));
        let takes = product && touched.iter().any(|a| a.queue.pipe == Pipe::Mte1);
        (meets || !touched.is_empty()).then_some(Node { op, touched, holds, meets, takes })
    }
}

/// Whether programs wait for each other in an operation.
pub(super) fn meets(m: &Module, op: Op) -> bool {
    m.all_ops(op).into_iter().any(|op| hivm_more::SyncBlock::cast(m, op).is_some())
}

impl Known {
    /// Whether both vector cores of a block may touch the same bytes of some memory.
    fn is_shared(&self, root: Root) -> bool {
        match root {
            Root::Global => true,
            Root::Buffer { buffer, .. } => self.crossed.contains(&buffer),
        }
    }
}

/// Two accesses conflict: one writes what the other touches.
pub(super) fn conflict(a: &Access, b: &Access) -> bool {
    let same = match (a.root, b.root) {
        (Root::Global, Root::Global) => true,
        (Root::Buffer { space, from, to, .. }, Root::Buffer { space: other, from: first, to: end, .. }) => {
            space == other && from < end && first < to
        }
        _ => false,
    };
    same && (a.write || b.write)
}

/// The queue of an instruction. A product takes what it reads of `L1` to where it multiplies first, in another one ([`accesses`]).
pub(super) fn pipe_of(m: &Module, op: Op) -> Option<Pipe> {
    Some(match m.opcode(op)? {
        Opcode::Memref(memref::Kind::Load | memref::Kind::Store) => Pipe::S,
        Opcode::Hivm(kind) => match kind {
            H::Load | H::Nd2nz => Pipe::Mte2,
            H::Store => Pipe::Mte3,
            H::Copy if space(m, m.operands(op)[0]) == "L1" => Pipe::Mte1,
            H::Mmad => Pipe::M,
            H::Fixpipe => Pipe::Fix,
            _ if hivm::written(m, op).is_empty() => return None,
            _ => Pipe::V,
        },
        _ => return None,
    })
}

/// The kind of core that an instruction is one of; none for what the scalar units of both can do.
pub(super) fn core_of(m: &Module, op: Op) -> Option<Core> {
    // What is under a lock vectors do.
    if matches!(m.opcode(op), Some(Opcode::HivmMore(_))) {
        return Some(Core::Vector);
    }
    Some(match pipe_of(m, op)? {
        Pipe::M | Pipe::Mte1 | Pipe::Fix => Core::Cube,
        // What it writes was computed by vectors, or is written once.
        Pipe::S if memref::Store::cast(m, op).is_some() => Core::Vector,
        Pipe::S => return (space(m, m.operands(op)[0]) == "UB").then_some(Core::Vector),
        _ if matches!(m.opcode(op), Some(Opcode::Hivm(H::Nd2nz))) => Core::Cube,
        _ => Core::Vector,
    })
}

/// The kinds of cores whose instructions are in an operation: the vector core where there are none.
pub(super) fn cores(m: &Module, op: Op) -> Vec<Core> {
    let mut found = Vec::new();
    m.walk(op, &mut |inner| found.extend(core_of(m, inner)));
    let used: Vec<Core> = CORES.into_iter().filter(|c| found.contains(c)).collect();
    if used.is_empty() { vec![Core::Vector] } else { used }
}

/// The name of the memory of a view or buffer.
pub(super) fn space(m: &Module, v: Value) -> &'static str {
    let space = match m.type_kind(m.value_type(v)) {
        TypeKind::MemDesc { memory_space, .. } => ascend::by_attribute(ascend::text(m, *memory_space)),
        _ => MemRef::space_of(m, v),
    };
    space.map_or("", |s| s.name)
}

/// What an instruction of a kernel that runs on these cores touches.
fn accesses(m: &Module, known: &Known, op: Op) -> Vec<Access> {
    let Some(pipe) = pipe_of(m, op) else { return Vec::new() };
    let cores: Vec<Core> = core_of(m, op).map_or(known.cores.clone(), |core| vec![core]);
    let operands = m.operands(op);
    let no_alias = m.op_attr(op, "inter_no_alias").is_some_and(|a| *m.attr_kind(a) == AttrKind::Bool(true));
    let is_memory = |v: Value| !space(m, v).is_empty();
    let written = match memref::Store::cast(m, op) {
        Some(_) => 1..2,
        None => hivm::written(m, op),
    };
    let fences = known.fences.get(&op).copied().unwrap_or_default();
    let mut found = Vec::new();
    for (i, &v) in operands.iter().enumerate().filter(|(_, v)| is_memory(**v)) {
        let root = root(m, &known.held, v);
        if root == Root::Global && no_alias {
            continue;
        }
        // (AscendNPU-IR calls that a macro of two pipes: `PIPE_MTE1` reads, `PIPE_M` adds up.)
        let pipe = if pipe == Pipe::M && space(m, v) == "L1" { Pipe::Mte1 } else { pipe };
        for &core in &cores {
            let queue = Queue { core, pipe };
            let shared = known.halved && core == Core::Vector && known.is_shared(root);
            let access = Access { queue, root, write: written.contains(&i), shared, fences };
            found.push(access);
            // A product is added to what is there.
            if written.contains(&i) && pipe == Pipe::M {
                found.push(Access { write: false, ..access });
            }
        }
    }
    found
}

fn root(m: &Module, held: &FxHashMap<Value, Held>, mut v: Value) -> Root {
    loop {
        match m.defining_op(v) {
            Some(op) if ttg::LocalAlloc::cast(m, op).is_some() => {
                let place = held.get(&v).map(|h| (h.space.name, h.offset, h.offset + h.total()));
                let (space, from, to) = place.unwrap_or(("", 0, 0));
                return Root::Buffer { buffer: v, space, from, to };
            }
            Some(op) if memref::ReinterpretCast::cast(m, op).is_some() => return Root::Global,
            Some(op) => v = m.operands(op)[0],
            None => return Root::Global,
        }
    }
}
