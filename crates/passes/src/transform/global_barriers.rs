//! Barriers for global memory: a `ttg.barrier` before a write of it where threads that hold copies of an element may still load
//! what the one of them that writes it overwrites.
//!
//! Several threads load an element that they all hold, and one of them stores it. A program says that the load comes first; of
//! the threads only the one that stores knows. Neither do they where a kernel loads and stores through one of its arguments
//! ([`global_bases`]), if not the same places by the same threads: a block that is turned in place, or a row that is shifted. A thread that
//! alone loads and stores an element needs no barrier; what goes through two arguments is taken for two tensors, and two stores, unless the
//! second is atomic, for two parts of one. Pointers are compared as values: what an iteration of a loop stores is taken for other places than those
//! of the next one's loads by the same value, and so are copies that are begun and not waited for, and what calls touch.
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

use std::cell::RefCell;

use rustc_hash::FxHashMap;
use tilewright_ir::dialect::{scf, tt, ttg, ttng};
use tilewright_ir::opdef::Access;
use tilewright_ir::{Attr, Block, Builder, Encoding, Module, Op, Opcode, Region, Type, Value};

use super::membar::waits_inside;
use crate::analysis::tile_layout::layout_of;
use crate::analysis::{calls, global_bases, scope};
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
    let mut walk = Walk { module, found: Vec::new(), bases: RefCell::default() };
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
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Pending {
    loaded: Loaded,
    stored: Stored,
    /// Loads and stores, each in the order of their numbers.
    loads: Vec<Op>,
    stores: Vec<Op>,
}

impl Pending {
    /// What may have been done on one way or another.
    fn or(self, other: Pending) -> Pending {
        let stored = match (self.stored, other.stored) {
            (Stored::Nobody, stored) | (stored, Stored::Nobody) => stored,
            (a, b) if a == b => a,
            _ => Stored::Others,
        };
        let both = |mut a: Vec<Op>, b: Vec<Op>| {
            a.extend(b);
            a.sort_unstable();
            a.dedup();
            a
        };
        Pending {
            loaded: self.loaded.max(other.loaded),
            stored,
            loads: both(self.loads, other.loads),
            stores: both(self.stores, other.stores),
        }
    }

    fn and_loaded(self, loaded: Loaded) -> Pending {
        self.or(Pending { loaded, ..Pending::default() })
    }
}

/// A walk in the order of execution, which carries what has been done.
struct Walk<'m> {
    module: &'m Module,
    found: Vec<Op>,
    /// What was asked of [`global_bases`].
    bases: RefCell<FxHashMap<Op, Vec<Value>>>,
}

impl Walk<'_> {
    fn region(&mut self, region: Region, pending: Pending) -> Pending {
        match self.module.region_blocks(region) {
            [] => pending,
            &[block] => self.block(block, pending),
            // Unstructured control flow: any block may follow any other.
            blocks => until_stable(pending, |head| {
                blocks.iter().fold(head.clone(), |all, &b| all.or(self.block(b, head.clone())))
            }),
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
                let behind = m.regions(op).iter().map(|&region| self.region(region, pending.clone()));
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
                | Opcode::Tt(tt::Kind::ProgramBarrier | tt::Kind::WaitSignal | tt::Kind::Send),
            ) => Pending::default(),
            // Shared memory is that of [`membar`](super::membar).
            Some(Opcode::Tt(tt::Kind::Load)) if m.is_shared_pointer(m.value_type(tt::Load(op).ptr(m))) => {
                pending
            }
            Some(Opcode::Tt(tt::Kind::Store)) if m.is_shared_pointer(m.value_type(tt::Store(op).ptr(m))) => {
                pending
            }
            Some(Opcode::Tt(tt::Kind::Load | tt::Kind::DescriptorLoad)) => self.load(op, pending),
            Some(Opcode::Tt(
                tt::Kind::Store | tt::Kind::DescriptorStore | tt::Kind::AtomicRmw | tt::Kind::AtomicCas,
            )) => {
                // What is atomic loads, too.
                let stores = if self.is_atomic(op) { &pending.stores[..] } else { &[] };
                let settles = pending.loaded == Loaded::Copies
                    || self.releases(op)
                    || pending.loads.iter().chain(stores).any(|&earlier| self.meet(earlier, op));
                // (What each thread alone has loaded a copy may still overwrite.)
                let pending = if settles { self.settle(op) } else { pending };
                pending.or(Pending { stored: self.stores(op), stores: vec![op], ..Pending::default() })
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

    fn load(&mut self, op: Op, pending: Pending) -> Pending {
        let copies = self.loads_copies(op);
        let settles = self.loads_others(op, copies, pending.stored)
            || (!self.spins(op) && pending.stores.iter().any(|&store| self.meet(store, op)));
        let pending = if settles { self.settle(op) } else { pending };
        let loaded = match (copies, tt::Load::cast(self.module, op).is_some()) {
            (true, _) => Loaded::Copies,
            (false, true) => Loaded::Once,
            (false, false) => Loaded::Nothing,
        };
        pending.or(Pending { loaded, loads: vec![op], ..Pending::default() })
    }

    /// Whether a load may be one that is made until it brings what another program stores: threads see that sooner or later, and do not come
    /// to a barrier in such a loop equally often.
    fn spins(&self, op: Op) -> bool {
        let m = self.module;
        let Some(load) = tt::Load::cast(m, op) else { return false };
        let turns = || {
            let mut outer = std::iter::successors(m.parent_op(op), |&op| m.parent_op(op));
            outer.any(|op| scf::While::cast(m, op).is_some())
        };
        load.is_volatile(m)
            || load.cache(m) == tt::CacheModifier::Cv
            || (!m.is_tensor(m.value_type(load.result(m))) && turns())
    }

    /// Whether a thread may touch by one operation what another one touches by the other, through one pointer of the kernel's.
    fn meet(&self, first: Op, second: Op) -> bool {
        let same = self.places(first).is_some_and(|places| Some(places) == self.places(second));
        let bases = self.bases_of(second);
        let atomic = self.is_atomic(first) && self.is_atomic(second);
        !same && !atomic && self.bases_of(first).iter().any(|base| bases.contains(base))
    }

    fn is_atomic(&self, op: Op) -> bool {
        let kind = self.module.opcode(op);
        matches!(kind, Some(Opcode::Tt(tt::Kind::AtomicRmw | tt::Kind::AtomicCas)))
    }

    /// What says which places an operation touches, and which thread does; nothing does of those that several threads touch.
    fn places(&self, op: Op) -> Option<(Vec<Value>, Type)> {
        let m = self.module;
        let of_tensor = |ptr: Value| (vec![ptr], m.value_type(ptr));
        let of_block =
            |desc: Value, at: &[Value], block: Value| ([&[desc], at].concat(), m.value_type(block));
        match m.opcode(op)? {
            Opcode::Tt(tt::Kind::Load) => (!self.loads_copies(op)).then(|| of_tensor(tt::Load(op).ptr(m))),
            Opcode::Tt(tt::Kind::Store) => Some(of_tensor(tt::Store(op).ptr(m))),
            Opcode::Tt(tt::Kind::DescriptorLoad) => {
                let load = tt::DescriptorLoad(op);
                (!self.loads_copies(op)).then(|| of_block(load.desc(m), load.indices(m), load.result(m)))
            }
            Opcode::Tt(tt::Kind::DescriptorStore) => {
                let store = tt::DescriptorStore(op);
                Some(of_block(store.desc(m), store.indices(m), store.src(m)))
            }
            _ => None,
        }
    }

    fn bases_of(&self, op: Op) -> Vec<Value> {
        let find = || {
            let touched =
                [Access::Read, Access::Write].map(|access| global_bases::touched(self.module, op, access));
            touched.concat()
        };
        self.bases.borrow_mut().entry(op).or_insert_with(find).clone()
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
        let joined = body(head.clone()).or(head.clone());
        if joined == head {
            return head;
        }
        head = joined;
    }
}
