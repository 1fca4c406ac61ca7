//! Barriers for global memory: a `ttg.barrier` before a write of it where threads that hold copies of an element may still load
//! what the one of them that writes it overwrites.
//!
//! Several threads load an element that they all hold, and one of them stores it. A program says that the load comes first; of
//! the threads only the one that stores knows. A thread that alone loads and stores an element needs no barrier, and the
//! elements of different threads are different places: what else may be the same is the kernel's own race.
//!
//! A copy by the copy engine is nobody's store: whatever threads have loaded it may overwrite.
//!
//! An atomic operation of the whole program that releases (PTX ISA, "Memory Consistency Model") is made by one thread for all: a
//! barrier stands before it, so that what the others wrote is visible with it.
//!
//! A function that is called finds all settled: where it writes, the barrier stands before the call.
//!
//! Where layouts are those of warps, [`distribute_to_warps`](super::distribute_to_warps) places these barriers, while layouts say who has
//! copies. There a warp loads what the instruction of a dot wants, whoever has stored it: a barrier stands before a load, too, that other warps
//! than those of a store before it may make.
//!
//! Why behind [`membar`](super::membar): its barriers, and those inside operations with scratch, settle this too.
//!
//! ```text
//! %x = tt.load %p : !tt.ptr<i32>              %x = tt.load %p : !tt.ptr<i32>
//! tt.store %p, %y : !tt.ptr<i32>          =>  ttg.barrier
//!                                             tt.store %p, %y : !tt.ptr<i32>
//! ```

use tilewright_ir::dialect::{scf, tt, ttg, ttng};
use tilewright_ir::{Attr, Block, Builder, Encoding, Module, Op, Opcode, Region};

use super::membar::waits_inside;
use crate::analysis::calls;
use crate::analysis::scope;
use crate::analysis::tile_layout::layout_of;
use crate::pass::{Pass, Property};

/// The pass.
pub const PASS: Pass = Pass {
    name: "global-barriers",
    summary: "place barriers before writes of global memory that others load",
    requires: &[Property::LaidOut, Property::BarriersPlaced],
    ensures: &[Property::GlobalBarriersPlaced],
    run: |m, _, _| {
        run(m);
        Ok(())
    },
};

/// Places the barriers.
pub fn run(module: &mut Module) {
    for op in missing(module) {
        ttg::Barrier::build(&mut Builder::before(module, op));
    }
}

/// The operations that want a barrier before them.
pub fn missing(module: &Module) -> Vec<Op> {
    let mut walk = Walk { module, found: Vec::new() };
    for func in module.block_ops(module.body()) {
        for &region in module.regions(func) {
            walk.region(region, Pending::default());
        }
    }
    walk.found
}

/// What may have been loaded since the last barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
enum Loaded {
    #[default]
    Nothing,
    /// Each element by one thread.
    Once,
    /// An element by several threads.
    Copies,
}

/// Who may have stored since the last barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Stored {
    #[default]
    Nobody,
    /// Those that have the elements under an encoding.
    By(Attr),
    Others,
}

/// What may have been done since the last barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Pending {
    loaded: Loaded,
    stored: Stored,
}

impl Pending {
    /// What may have been done on one way or another.
    fn or(self, other: Pending) -> Pending {
        let stored = match (self.stored, other.stored) {
            (Stored::Nobody, stored) | (stored, Stored::Nobody) => stored,
            (a, b) if a == b => a,
            _ => Stored::Others,
        };
        Pending { loaded: self.loaded.max(other.loaded), stored }
    }

    fn and_loaded(self, loaded: Loaded) -> Pending {
        Pending { loaded: self.loaded.max(loaded), ..self }
    }

    fn and_stored(self, stored: Stored) -> Pending {
        self.or(Pending { stored, ..Pending::default() })
    }
}

/// A walk in the order of execution, which carries what has been done.
struct Walk<'m> {
    module: &'m Module,
    found: Vec<Op>,
}

impl Walk<'_> {
    fn region(&mut self, region: Region, pending: Pending) -> Pending {
        match self.module.region_blocks(region) {
            [] => pending,
            &[block] => self.block(block, pending),
            // Unstructured control flow: any block may follow any other.
            blocks => {
                until_stable(pending, |head| blocks.iter().fold(head, |all, &b| all.or(self.block(b, head))))
            }
        }
    }

    fn block(&mut self, block: Block, pending: Pending) -> Pending {
        let module = self.module;
        module.block_ops(block).fold(pending, |pending, op| self.op(op, pending))
    }

    fn op(&mut self, op: Op, pending: Pending) -> Pending {
        let m = self.module;
        match m.opcode(op) {
            Some(Opcode::Scf(scf::Kind::For)) => {
                let body = scf::For(op).body(m);
                // The body may run no time at all, so what was pending before is pending behind.
                until_stable(pending, |head| self.region(body, head))
            }
            Some(Opcode::Scf(scf::Kind::While)) => {
                let (before, after) = (scf::While(op).before(m), scf::While(op).after(m));
                let head = until_stable(pending, |head| {
                    let condition = self.region(before, head);
                    self.region(after, condition)
                });
                self.region(before, head)
            }
            Some(Opcode::Scf(scf::Kind::If)) => {
                let behind = m.regions(op).iter().map(|&region| self.region(region, pending));
                behind.reduce(Pending::or).unwrap_or(pending)
            }
            // All warps meet where it begins and where it ends; workers are regions of one operation inside.
            Some(Opcode::Ttg(ttg::Kind::WarpSpecialize | ttg::Kind::Partitions)) => {
                for &region in m.regions(op) {
                    self.region(region, Pending::default());
                }
                Pending::default()
            }
            Some(
                Opcode::Ttg(ttg::Kind::Barrier)
                | Opcode::Ttng(ttng::Kind::ClusterWait)
                | Opcode::Tt(tt::Kind::ProgramBarrier | tt::Kind::WaitSignal),
            ) => Pending::default(),
            // Shared memory is that of [`membar`](super::membar).
            Some(Opcode::Tt(tt::Kind::Load)) if m.is_shared_pointer(m.value_type(tt::Load(op).ptr(m))) => {
                pending
            }
            Some(Opcode::Tt(tt::Kind::Store)) if m.is_shared_pointer(m.value_type(tt::Store(op).ptr(m))) => {
                pending
            }
            Some(Opcode::Tt(tt::Kind::Load | tt::Kind::DescriptorLoad)) => {
                let copies = self.loads_copies(op);
                let pending =
                    if self.loads_others(op, copies, pending.stored) { self.settle(op) } else { pending };
                match (copies, tt::Load::cast(m, op).is_some()) {
                    (true, _) => pending.and_loaded(Loaded::Copies),
                    (false, true) => pending.and_loaded(Loaded::Once),
                    (false, false) => pending,
                }
            }
            Some(Opcode::Tt(
                tt::Kind::Store | tt::Kind::DescriptorStore | tt::Kind::AtomicRmw | tt::Kind::AtomicCas,
            )) => {
                let settles = pending.loaded == Loaded::Copies || self.releases(op);
                // (What each thread alone has loaded a copy may still overwrite.)
                let pending = if settles { self.settle(op) } else { pending };
                pending.and_stored(self.stores(op))
            }
            Some(Opcode::Ttng(ttng::Kind::AsyncTmaCopyLocalToGlobal | ttng::Kind::AsyncTmaReduce)) => {
                if pending.loaded == Loaded::Nothing {
                    pending
                } else {
                    self.settle(op)
                }
            }
            Some(Opcode::Tt(tt::Kind::Call)) => {
                let loads = calls::runs(m, op, |inner| tt::Load::cast(m, inner).is_some());
                let settles =
                    pending.loaded == Loaded::Copies && calls::runs(m, op, |inner| self.writes(inner));
                let pending = if settles { self.settle(op) } else { pending };
                if loads { pending.and_loaded(Loaded::Copies) } else { pending }
            }
            _ if waits_inside(m, op) => Pending::default(),
            _ => pending,
        }
    }

    /// A barrier stands before an operation.
    fn settle(&mut self, op: Op) -> Pending {
        if !self.found.contains(&op) {
            self.found.push(op);
        }
        Pending::default()
    }

    /// Who stores what a store stores. (Numbers are stored by one for all.)
    fn stores(&self, op: Op) -> Stored {
        let m = self.module;
        let tensor = m.operands(op).iter().find(|&&v| m.is_tensor(m.value_type(v)));
        tensor.and_then(|&v| m.encoding(m.value_type(v))).map_or(Stored::Others, Stored::By)
    }

    /// Whether warps load what others may have stored, where layouts are those of warps.
    fn loads_others(&self, load: Op, copies: bool, stored: Stored) -> bool {
        let m = self.module;
        let encoding = m.encoding(m.value_type(m.result(load)));
        let of_warps = encoding.and_then(|e| m.encoding_of(e)).is_some_and(Encoding::is_of_warps);
        of_warps && stored != Stored::Nobody && (copies || encoding.map(Stored::By) != Some(stored))
    }

    /// Whether an operation writes global memory.
    fn writes(&self, op: Op) -> bool {
        use tt::Kind as K;
        matches!(self.module.opcode(op), Some(Opcode::Tt(K::Store | K::AtomicRmw | K::AtomicCas)))
    }

    /// Whether several threads load one element.
    fn loads_copies(&self, load: Op) -> bool {
        let m = self.module;
        layout_of(m, m.result(load)).is_none_or(|layout| {
            let free = layout.free_variable_masks();
            free.lane | free.warp != 0 || layout.num_warps() < scope::num_warps(m, load)
        })
    }

    /// Whether it is one operation of the program with which others see what came before it, and no barrier stands there yet.
    fn releases(&self, op: Op) -> bool {
        let m = self.module;
        let (ptr, sem) = match m.opcode(op) {
            Some(Opcode::Tt(tt::Kind::AtomicRmw)) => (tt::AtomicRmw(op).ptr(m), tt::AtomicRmw(op).sem(m)),
            Some(Opcode::Tt(tt::Kind::AtomicCas)) => (tt::AtomicCas(op).ptr(m), tt::AtomicCas(op).sem(m)),
            _ => return false,
        };
        let last = m.prev_op(op).is_some_and(|last| ttg::Barrier::cast(m, last).is_some());
        let releases = matches!(sem, tt::MemSemantic::Release | tt::MemSemantic::AcquireRelease);
        releases && !m.is_tensor(m.value_type(ptr)) && !last
    }
}

/// Walks the body of a loop until what is pending at its head stays the same; that is what it gives.
fn until_stable(before: Pending, mut body: impl FnMut(Pending) -> Pending) -> Pending {
    let mut head = before;
    loop {
        let joined = body(head).or(head);
        if joined == head {
            return head;
        }
        head = joined;
    }
}
