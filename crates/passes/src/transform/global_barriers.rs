//! Barriers for global memory: a `ttg.barrier` before a write of it where threads that hold copies of an element may still load
//! what the one of them that writes it overwrites.
//!
//! Several threads load an element that they all hold, and one of them stores it. A program says that the load comes first; of
//! the threads only the one that stores knows. Neither do they where a kernel loads and stores through one of its arguments
//! ([`global_bases`](crate::analysis::global_bases)), if not the same places by the same threads: a block that is turned in place, or a row that is shifted. A thread that
//! alone loads and stores an element needs no barrier: one that does so by pointers that are the same value, of which no two are equal
//! ([`Distinct`]), nor one of an iteration of a loop and another one of a later iteration. Neither do those that touch nothing in common. What goes through two
//! arguments is taken for two tensors, whoever loads it, and two stores, unless one of them is atomic
//! or the function loads from it, for two parts of one.
//!
//! Copies to shared memory load when they are begun, and until they are waited for.
//!
//! A `while` loop may turn until a scalar that it loads, or what it loads as volatile, is what another program has stored. Threads see that sooner or later, and do not
//! come to a barrier in such a loop equally often: it stands before the loop. Where the loop itself stores, too, there is one in it, before the load, if what
//! is loaded does not decide how often the loop turns, or is what the loop has stored by the same pointer.
//!
//! An atomic operation loads and stores: it wants a barrier before it, and a store behind it wants one. Two of them that add, or otherwise combine alike, want none where
//! nobody looks at what was there; nor does one want it for itself in another iteration, as its own elements are in no order.
//!
//! A copy by the copy engine is nobody's store: whatever threads have loaded it may overwrite.
//!
//! An atomic operation of the whole program that releases (PTX ISA, "Memory Consistency Model") is made by one thread for all: a
//! barrier stands before it, so that what the others wrote is visible with it.
//!
//! A call loads and stores through all pointers that it is given, if its function loads or stores, and through numbers, if it makes pointers of such. The barrier
//! stands before the call, so that a function finds all settled.
//!
//! Where layouts are those of warps, [`distribute_to_warps`](super::distribute_to_warps) places these barriers, while layouts say who has
//! copies. There a warp loads what the instruction of a dot wants, whoever has stored it: a barrier stands before a load, too, that other warps
//! than those of a store before it may make. Behind [`distribute_to_lanes`](super::distribute_to_lanes) what is
//! missing yet is a barrier of the warp where lanes hold copies, one of which stores: all else has been settled with warps for threads, and lanes have the same columns of blocks
//! that have one for each.
//!
//! Why behind [`membar`](super::membar): its barriers, and those inside operations with scratch, settle this too.
//!
//! ```text
//! %x = tt.load %p : !tt.ptr<i32>              %x = tt.load %p : !tt.ptr<i32>
//! tt.store %p, %y : !tt.ptr<i32>          =>  ttg.barrier
//!                                             tt.store %p, %y : !tt.ptr<i32>
//! ```

use std::cell::RefCell;
use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::dialect::{scf, tt, ttg, ttng};
use tilewright_ir::opdef::Access;
use tilewright_ir::{Attr, Block, Builder, Encoding, Module, Op, Opcode, Region, Type, Value};

use super::membar::waits_inside;
use crate::analysis::distinct::{Distinct, Touched};
use crate::analysis::global_bases::GlobalBases;
use crate::analysis::tile_layout::layout_of;
use crate::analysis::{scope, waiting};
use crate::level::Level;
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
    let distinct = Distinct::new(module);
    let read = FxHashSet::default();
    let of_lanes = Level::of(module) == Some(Level::Lane);
    let global = GlobalBases::of(module);
    let mut walk =
        Walk { module, found: Vec::new(), global, bases: RefCell::default(), read, distinct, of_lanes };
    for func in module.block_ops(module.body()) {
        let ops = module.all_ops(func);
        walk.read = ops.iter().flat_map(|&op| walk.bases_of(op).read.clone()).collect();
        for &region in module.regions(func) {
            walk.region(region, Pending::default());
        }
    }
    walk.found
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

/// An operation that has touched memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Touch {
    op: Op,
    /// The outermost loop of which it may have been in an earlier iteration.
    turn: Option<Op>,
}

impl Touch {
    /// Just now.
    const fn by(op: Op) -> Self {
        Touch { op, turn: None }
    }
}

/// What may have been done since the last barrier.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Pending {
    /// Whether threads have loaded something.
    loaded: bool,
    stored: Stored,
    /// Loads and stores, each in the order of their numbers.
    loads: Vec<Touch>,
    stores: Vec<Touch>,
    /// Copies to shared memory that were not waited for, which barriers do not settle.
    begun: Vec<Touch>,
}

impl Pending {
    /// What is pending behind a barrier.
    fn settled(self) -> Pending {
        Pending { begun: self.begun, ..Pending::default() }
    }

    /// In the next iteration of a loop.
    fn turned(mut self, of: Op) -> Pending {
        for touches in [&mut self.loads, &mut self.stores, &mut self.begun] {
            touches.iter_mut().for_each(|touch| touch.turn = Some(of));
        }
        self
    }

    /// What may have been done on one way or another.
    fn or(self, other: Pending) -> Pending {
        let stored = match (self.stored, other.stored) {
            (Stored::Nobody, stored) | (stored, Stored::Nobody) => stored,
            (a, b) if a == b => a,
            _ => Stored::Others,
        };
        let both = |mut a: Vec<Touch>, b: Vec<Touch>| {
            a.extend(b);
            a.sort_unstable();
            a.dedup();
            a
        };
        Pending {
            loaded: self.loaded || other.loaded,
            stored,
            loads: both(self.loads, other.loads),
            stores: both(self.stores, other.stores),
            begun: both(self.begun, other.begun),
        }
    }
}

/// The bases of what an operation touches of global memory.
#[derive(Debug)]
struct Bases {
    read: Vec<Value>,
    written: Vec<Value>,
}

impl Bases {
    fn all(&self) -> impl Iterator<Item = &Value> {
        self.read.iter().chain(&self.written)
    }
}

/// A walk in the order of execution, which carries what has been done.
struct Walk<'m> {
    module: &'m Module,
    found: Vec<Op>,
    global: GlobalBases<'m>,
    /// What operations touch, as far as it was asked.
    bases: RefCell<FxHashMap<Op, Rc<Bases>>>,
    /// The bases from which the function loads.
    read: FxHashSet<Value>,
    distinct: Distinct<'m>,
    /// Whether warps have been settled, and only copies of their lanes have not.
    of_lanes: bool,
}

impl Walk<'_> {
    fn region(&mut self, region: Region, pending: Pending) -> Pending {
        match self.module.region_blocks(region) {
            [] => pending,
            &[block] => self.block(block, pending),
            // Unstructured control flow: any block may follow any other.
            blocks => until_stable(pending, |head| {
                let behind = blocks.iter().fold(head.clone(), |all, &b| all.or(self.block(b, head.clone())));
                self.module.region_op(region).map_or(behind.clone(), |of| behind.turned(of))
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
                until_stable(pending, |head| self.region(body, head).turned(op))
            }
            Some(Opcode::Scf(scf::Kind::While)) => {
                let (before, after) = (scf::While(op).before(m), scf::While(op).after(m));
                let inside = m.all_ops(op);
                let mut polls = inside.iter().filter(|&&inner| waiting::polls(self.module, inner));
                let settles = polls.any(|&load| pending.stores.iter().any(|&store| self.meet(store, load)));
                let pending = if settles { self.settle(op, pending) } else { pending };
                let head = until_stable(pending, |head| {
                    let condition = self.region(before, head);
                    self.region(after, condition).turned(op)
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
                pending.settled()
            }
            Some(
                Opcode::Ttg(ttg::Kind::Barrier)
                | Opcode::Ttng(ttng::Kind::ClusterWait)
                | Opcode::Tt(tt::Kind::ProgramBarrier | tt::Kind::WaitSignal | tt::Kind::Send),
            ) => pending.settled(),
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
                let settles = self.releases(op)
                    || self.stores_again(op, &pending)
                    || pending.loads.iter().chain(stores).any(|&earlier| self.meet(earlier, op));
                // (What each thread alone has loaded a copy may still overwrite.)
                let pending = if settles { self.settle(op, pending) } else { pending };
                // (The threads wait for each other where they share what was there before.)
                if waits_inside(m, op) { pending.settled() } else { self.and_stored(pending, op) }
            }
            Some(Opcode::Ttng(ttng::Kind::AsyncTmaCopyLocalToGlobal | ttng::Kind::AsyncTmaReduce)) => {
                let settles = pending.loaded || pending.loads.iter().any(|&load| self.meet(load, op));
                if settles { self.settle(op, pending) } else { pending }
            }
            Some(Opcode::Ttg(ttg::Kind::AsyncCopyGlobalToLocal)) => {
                let settles = pending.stores.iter().any(|&store| self.meet(store, op));
                let pending = if settles { self.settle(op, pending) } else { pending };
                let copy = vec![Touch::by(op)];
                pending.or(Pending { loads: copy.clone(), begun: copy, ..Pending::default() })
            }
            // What others copy is waited for by them.
            Some(Opcode::Ttg(ttg::Kind::AsyncWait)) => {
                let loads = pending.begun.clone();
                pending.or(Pending { loads, ..Pending::default() })
            }
            Some(Opcode::Tt(tt::Kind::Call)) => self.call(op, pending),
            _ if waits_inside(m, op) => pending.settled(),
            _ => pending,
        }
    }

    fn load(&mut self, op: Op, pending: Pending) -> Pending {
        let copies = self.loads_copies(op);
        let settles = self.loads_others(op, copies, pending.stored)
            || pending.stores.iter().any(|&store| self.meet(store, op) && !self.spins(op, store.op));
        let pending = if settles { self.settle(op, pending) } else { pending };
        let loaded = copies || tt::Load::cast(self.module, op).is_some();
        pending.or(Pending { loaded, loads: vec![Touch::by(op)], ..Pending::default() })
    }

    fn call(&mut self, op: Op, pending: Pending) -> Pending {
        let bases = self.bases_of(op);
        let (loads, stores) = (!bases.read.is_empty(), !bases.written.is_empty());
        let settles = loads && pending.stores.iter().any(|&store| self.meet(store, op))
            || stores && pending.loads.iter().any(|&load| self.meet(load, op))
            || stores && self.stores_again(op, &pending);
        let pending = if settles { self.settle(op, pending) } else { pending };
        let pending = if stores { self.and_stored(pending, op) } else { pending };
        if !loads {
            return pending;
        }
        pending.or(Pending { loaded: true, loads: vec![Touch::by(op)], ..Pending::default() })
    }

    /// Whether a load spins in spite of a store in the same loop.
    fn spins(&self, load: Op, store: Op) -> bool {
        let pointer = |op: Op| self.module.operands(op).first().copied();
        pointer(load) != pointer(store) && waiting::spins(self.module, load)
    }

    /// Whether a thread may touch by one operation what another one touches by the other, through one pointer of the kernel's.
    fn meet(&self, first: Touch, second: Op) -> bool {
        let (mine, others) = (self.bases_of(first.op), self.bases_of(second));
        if self.commute(first.op, second) || !mine.all().any(|base| others.all().any(|other| other == base)) {
            return false;
        }
        if self.of_lanes && !self.is_of_copies(first.op, second) {
            return false;
        }
        let same = self.places(first.op).is_some_and(|places| Some(places) == self.places(second))
            && self.are_distinct(first, second);
        let touched = (self.touched(first.op), self.touched(second));
        let apart = matches!(touched, (Some(a), Some(b)) if self.distinct.apart(a, b, first.turn));
        !same && !apart
    }

    /// Whether an operation stores what others have stored since the last barrier, where the function loads from that tensor, too: two
    /// stores alone are two parts of it.
    fn stores_again(&self, op: Op, pending: &Pending) -> bool {
        let bases = self.bases_of(op);
        bases.all().any(|base| self.read.contains(base))
            && pending.stores.iter().any(|&store| self.meet(store, op))
    }

    /// What an operation touches by pointers.
    fn touched(&self, op: Op) -> Option<Touched> {
        let m = self.module;
        let (pointers, mask) = match m.opcode(op)? {
            Opcode::Tt(tt::Kind::Load) => (tt::Load(op).ptr(m), tt::Load(op).mask(m)),
            Opcode::Tt(tt::Kind::Store) => (tt::Store(op).ptr(m), tt::Store(op).mask(m)),
            Opcode::Tt(tt::Kind::AtomicRmw) => (tt::AtomicRmw(op).ptr(m), tt::AtomicRmw(op).mask(m)),
            Opcode::Tt(tt::Kind::AtomicCas) => (tt::AtomicCas(op).ptr(m), None),
            Opcode::Ttg(ttg::Kind::AsyncCopyGlobalToLocal) => {
                let copy = ttg::AsyncCopyGlobalToLocal(op);
                (copy.src(m), copy.mask(m))
            }
            _ => return None,
        };
        Some(Touched { pointers, mask })
    }

    /// Whether two operations that have the same [`places`](Self::places) touch none twice, nor what the first touched in an earlier
    /// iteration of a loop.
    fn are_distinct(&self, first: Touch, op: Op) -> bool {
        let m = self.module;
        let turn = first.turn;
        let (desc, at, block) = match m.opcode(op) {
            Some(Opcode::Tt(tt::Kind::DescriptorLoad)) => {
                let load = tt::DescriptorLoad(op);
                (load.desc(m), load.indices(m), load.result(m))
            }
            Some(Opcode::Tt(tt::Kind::DescriptorStore)) => {
                let store = tt::DescriptorStore(op);
                (store.desc(m), store.indices(m), store.src(m))
            }
            _ => {
                let (Some(a), Some(b)) = (self.touched(first.op), self.touched(op)) else { return false };
                return self.distinct.pointers(b.pointers, [a.mask, b.mask], turn);
            }
        };
        self.distinct.block(desc, at, m.shape(m.value_type(block)).unwrap_or(&[]), turn)
    }

    /// Whether it does not matter which of two atomic operations comes first: they combine alike and nobody looks at what was there, or are one in two iterations
    /// of a loop, whose elements are in no order either.
    fn commute(&self, first: Op, second: Op) -> bool {
        let m = self.module;
        if !self.is_atomic(first) || !self.is_atomic(second) {
            return false;
        }
        let combines = |op: Op| {
            let atomic = tt::AtomicRmw::cast(m, op).filter(|a| m.is_unused(a.result(m)))?;
            Some(atomic.rmw_op(m)).filter(|&how| how != tt::RmwOp::Exch)
        };
        let by_engine = |op: Op| ttng::AsyncTmaReduce::cast(m, op).is_some();
        first == second
            || by_engine(first)
            || by_engine(second)
            || combines(first).is_some_and(|how| combines(second) == Some(how))
    }

    fn is_atomic(&self, op: Op) -> bool {
        let kind = self.module.opcode(op);
        matches!(
            kind,
            Some(
                Opcode::Tt(tt::Kind::AtomicRmw | tt::Kind::AtomicCas)
                    | Opcode::Ttng(ttng::Kind::AsyncTmaReduce)
            )
        )
    }

    /// What says which places an operation touches, and which thread does; nothing does of those that several threads touch.
    fn places(&self, op: Op) -> Option<(Vec<Value>, Type)> {
        let m = self.module;
        let of_tensor = |ptr: Value| (vec![ptr], m.value_type(ptr));
        let of_block =
            |desc: Value, at: &[Value], block: Value| ([&[desc], at].concat(), m.value_type(block));
        match m.opcode(op)? {
            Opcode::Tt(tt::Kind::Load) => (!self.loads_copies(op)).then(|| of_tensor(tt::Load(op).ptr(m))),
            // Of copies the one that stores is the one that is atomic.
            Opcode::Tt(tt::Kind::Store) => Some(of_tensor(tt::Store(op).ptr(m))),
            Opcode::Tt(tt::Kind::AtomicRmw) => Some(of_tensor(tt::AtomicRmw(op).ptr(m))),
            Opcode::Tt(tt::Kind::AtomicCas) => Some(of_tensor(tt::AtomicCas(op).ptr(m))),
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

    fn bases_of(&self, op: Op) -> Rc<Bases> {
        let touched = |access| self.global.touched(op, access);
        let find = || Rc::new(Bases { read: touched(Access::Read), written: touched(Access::Write) });
        self.bases.borrow_mut().entry(op).or_insert_with(find).clone()
    }

    /// A barrier stands before an operation.
    fn settle(&mut self, op: Op, pending: Pending) -> Pending {
        if !self.found.contains(&op) {
            self.found.push(op);
        }
        pending.settled()
    }

    fn and_stored(&self, pending: Pending, op: Op) -> Pending {
        let stores = vec![Touch::by(op)];
        // What is atomic loads, too.
        let loads = if self.is_atomic(op) { stores.clone() } else { Vec::new() };
        pending.or(Pending { stored: self.stores(op), loads, stores, ..Pending::default() })
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

    /// Whether lanes have copies of what one of two operations touches, of which one loads. (By two stores one lane stores each.)
    fn is_of_copies(&self, first: Op, second: Op) -> bool {
        let m = self.module;
        let stores = |op: Op| {
            let kind = m.opcode(op);
            matches!(kind, Some(Opcode::Tt(tt::Kind::Store | tt::Kind::DescriptorStore)))
        };
        let has_copies = |op: Op| {
            let mut tensors = m.operands(op).iter().chain(m.results(op));
            let tensor = tensors.find(|&&v| m.is_tensor(m.value_type(v)));
            tensor.is_none_or(|&v| self.are_copies(op, v))
        };
        !(stores(first) && stores(second)) && (has_copies(first) || has_copies(second))
    }

    /// Whether several threads load one element.
    fn loads_copies(&self, load: Op) -> bool {
        self.are_copies(load, self.module.result(load))
    }

    /// Whether several threads hold each element of an operation's tensor.
    fn are_copies(&self, op: Op, tensor: Value) -> bool {
        let m = self.module;
        layout_of(m, tensor).is_none_or(|layout| {
            let free = layout.free_variable_masks();
            free.lane | free.warp != 0 || layout.num_warps() < scope::num_warps(m, op)
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
