//! Rings as they are used: from a `ttg.ring_create` to who writes and reads its fields, and how.
//!
//! Nobody says by which transport a field is filled; it follows from what writes it, as the operations declare their effects:
//!
//! | effect of the writing operation | transport |
//! | --- | --- |
//! | ends when an mbarrier completes a phase (`ttg.async_copy_block_to_local`) | [`Transport::Blocks`] |
//! | ends when the thread has waited for a group of copies (`ttg.async_copy_global_to_local`) | [`Transport::Copies`] |
//! | is over with the operation (`ttg.local_store`) | [`Transport::Stores`] |
//!
//! So do the readers' needs: what reads through the asynchronous proxy (`wgmma`, TMA) must be told of ordinary writes by a
//! fence.

mod beside;
pub mod guards;
pub mod position;

use tilewright_ir::dialect::{tt, ttg};
use tilewright_ir::effects::resource;
use tilewright_ir::opdef::{Access, Completion, Proxy, Resource};
use tilewright_ir::{Builder, Diagnostic, Module, Op, Opcode, Shape, Type, TypeKind, Value, marks};

use crate::analysis::{local_pointers, scope};
use crate::hopper::multicast;
use crate::transform::allocate_shared::{allocation, buffer_users, is_view};

/// How a field gets into its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// By the copy engine (TMA), which counts bytes at an mbarrier.
    Blocks,
    /// By asynchronous copies of threads (`cp.async`).
    Copies,
    /// By threads' stores.
    Stores,
}

/// Warps that a reader or the writer consists of: the function's (none), which run the default region of a `ttg.warp_specialize`
/// too, or those of a partition.
pub type Place = Vec<(ttg::WarpSpecialize, usize)>;

/// The warps that run an operation.
pub fn place(module: &Module, op: Op) -> Place {
    let mut place = scope::enclosing(module, op);
    place.retain(|&(_, region)| region > 0);
    place
}

/// A field of a ring.
#[derive(Debug, Clone)]
pub struct Field {
    /// The buffer.
    pub alloc: ttg::LocalAlloc,
    /// How it is filled; `None` if nothing fills it.
    pub transport: Option<Transport>,
}

/// A reader.
#[derive(Debug, Clone, Default)]
pub struct Reader {
    /// Where it runs; `None` if it never does.
    pub place: Option<Place>,
    /// Its warps.
    pub warps: u32,
    /// Whether an elected thread does all its reading: a warp that hands slots to the copy engine.
    pub elected: bool,
    /// Whether its threads load from slots.
    pub loads: bool,
    /// Whether a release hands over what its threads have done with memory that is no field, and others reach through the asynchronous proxy.
    pub releases_to_proxy: bool,
}

/// How a reader has been seen to read a field.
#[derive(Debug, Clone, Copy, Default)]
struct Reads {
    /// By handing slots to the copy engine.
    hands_over: bool,
    /// Otherwise.
    otherwise: bool,
    /// By loads of its threads.
    loads: bool,
}

/// A ring with all who use it.
#[derive(Debug, Clone)]
pub struct Ring {
    /// What makes it.
    pub create: ttg::RingCreate,
    /// How many slots it has.
    pub slots: u32,
    /// Its fields, in order.
    pub fields: Vec<Field>,
    /// The operations on it.
    pub uses: Vec<Op>,
    /// Where the writer runs.
    pub writer: Place,
    /// The writer's warps.
    pub writer_warps: u32,
    /// The readers by their numbers.
    pub readers: Vec<Reader>,
    /// Whether anything reads a field through the asynchronous proxy.
    pub read_asynchronously: bool,
    /// The CTAs of the cluster that get what this one's copies bring ([`multicast::peers`]).
    pub peers: u32,
    /// Whether the writer closes slots.
    pub closes: bool,
    /// Whether the kernel made it: nothing is known of how it goes through the slots.
    pub is_own: bool,
    /// Whether a commit hands over what the writer's threads have done with memory that is no field, too ([`Ring::look_beside`]).
    pub commits_beside: bool,
    /// Whether others reach some of that through the asynchronous proxy.
    pub commits_to_proxy: bool,
}

/// What messages call a ring.
pub fn shown(module: &Module, create: ttg::RingCreate) -> String {
    create.name(module).map_or("the pipe".to_string(), |name| format!("the pipe `{name}`"))
}

/// What messages call a reader of a ring.
pub fn reader_shown(module: &Module, create: ttg::RingCreate, number: usize) -> String {
    match create.readers(module).and_then(|names| names.get(number).cloned()) {
        Some(name) => format!("the reader `{name}`"),
        None => "the reader".to_string(),
    }
}

/// The ring that a value is, also as a capture.
pub fn create_of(module: &Module, ring: Value) -> Option<ttg::RingCreate> {
    ttg::RingCreate::of(module, scope::captured(module, ring))
}

/// The ring of which a buffer, that a value is a view of, is a field.
pub fn of_buffer(module: &Module, value: Value) -> Option<ttg::RingCreate> {
    let alloc = allocation(module, value)?;
    module.uses(alloc.result(module)).iter().find_map(|u| ttg::RingCreate::cast(module, u.op))
}

/// Whether an operation is on a ring, which its declaration has for its first operand.
pub fn is_on_ring(module: &Module, op: Op) -> bool {
    module.def(op).is_some_and(|def| def.group("ring") == Some(0))
}

/// The ring that an operation is on.
pub fn operated_on(module: &Module, op: Op) -> Option<ttg::RingCreate> {
    create_of(module, *module.operands(op).first().filter(|_| is_on_ring(module, op))?)
}

/// Whether lowering puts a proxy fence with an operation on a ring: behind a wait for copies that other warps' threads have
/// made, or before what gives to others what threads have stored.
pub fn fences(module: &Module, op: Op) -> bool {
    let kind = module.opcode(op);
    let wait = kind == Some(Opcode::Ttg(ttg::Kind::RingWait));
    let commit = kind == Some(Opcode::Ttg(ttg::Kind::RingCommit));
    if !wait && !commit {
        return false;
    }
    let Some(Ok(ring)) = operated_on(module, op).map(|create| Ring::of(module, create)) else { return false };
    wait && ring.fences_waits() || commit && ring.fences_commits()
}

/// Whether an operation waits for groups of copies that the same threads have made.
pub fn waits_for_group(module: &Module, op: Op) -> bool {
    waited_for(module, op).is_some_and(|ring| ring.is_in_order() && ring.has(Transport::Copies))
}

/// Whether an operation waits for a slot at an mbarrier.
pub fn waits_at_mbarrier(module: &Module, op: Op) -> bool {
    waited_for(module, op)
        .is_some_and(|ring| !ring.is_in_order() || ring.has(Transport::Blocks) || ring.fields.is_empty())
}

/// The ring for a slot of which an operation waits.
fn waited_for(module: &Module, op: Op) -> Option<Ring> {
    let wait = ttg::RingWait::cast(module, op)?;
    Ring::of(module, create_of(module, wait.ring(module))?).ok()
}

/// Whether the kernel made a ring, and no pass.
pub(crate) fn is_own(module: &Module, ring: ttg::RingCreate) -> bool {
    module.op_attr(ring.0, marks::PIPE).is_some()
}

/// Whether the one who fills a slot of `late` has filled one of `ring` before, each time. Then a reader may wait for the latter before it gives the former back.
pub(crate) fn is_filled_before(module: &Module, ring: ttg::RingCreate, late: ttg::RingCreate) -> bool {
    let all = module.all_ops(module.root());
    let on = |ring| all.iter().copied().filter(move |&op| operated_on(module, op) == Some(ring));
    let commits: Vec<Op> = on(ring).filter(|&op| ttg::RingCommit::cast(module, op).is_some()).collect();
    let acquires: Vec<Op> = on(late).filter(|&op| ttg::RingAcquire::cast(module, op).is_some()).collect();
    let (&[commit], &[acquire]) = (&commits[..], &acquires[..]) else { return false };
    module.parent_block(commit) == module.parent_block(acquire) && module.is_before(commit, acquire)
}

/// Builds a ring with one reader.
pub fn create(b: &mut Builder<'_>, fields: &[Value], slots: u32) -> Value {
    ttg::RingCreate::build(b, fields, slots as i32, None, None, false, tilewright_ir::Type::RING)
        .ring(b.module)
}

/// Allocates a field of so many slots of this type.
pub fn field(b: &mut Builder<'_>, slot: Type, slots: u32) -> Value {
    let m = &mut *b.module;
    let shape: Vec<u32> = [slots].iter().chain(m.shape(slot).unwrap_or(&[])).copied().collect();
    let (element, encoding) = (m.element_type(slot), m.encoding(slot).expect("a slot is a buffer"));
    let ty = m.buffer_type(&shape, element, encoding, true);
    ttg::LocalAlloc::build(b, None, ty).result(b.module)
}

/// Puts a slot of a ring, or a part of one, in the place of a buffer: views of it are mutable, and know what they are parts of.
pub fn replace_buffer(module: &mut Module, alloc: ttg::LocalAlloc, slot: Value) {
    adapt_views(module, alloc.result(module), slot);
    module.replace_op(alloc.0, &[slot]);
}

/// Gives the views of a buffer the types that views of `whole` have.
fn adapt_views(module: &mut Module, buffer: Value, whole: Value) {
    let TypeKind::MemDesc { shape: of, alloc_shape: all, .. } =
        module.type_kind(module.value_type(whole)).clone()
    else {
        return;
    };
    for u in module.uses(buffer).to_vec() {
        if !is_view(module, u.op) {
            continue;
        }
        let view = module.result(u.op);
        if let TypeKind::MemDesc { shape, element, encoding, memory_space, alloc_shape, .. } =
            module.type_kind(module.value_type(view)).clone()
        {
            let alloc_shape = match ttg::MemdescTrans::cast(module, u.op) {
                Some(trans) => all.as_ref().map(|all| turned(all, &trans.order(module))),
                None if ttg::MemdescSubslice::cast(module, u.op).is_some() => {
                    Some(all.clone().unwrap_or_else(|| of.clone()))
                }
                None => alloc_shape,
            };
            let kind =
                TypeKind::MemDesc { shape, element, encoding, memory_space, mutable: true, alloc_shape };
            let ty = module.ty(kind);
            module.set_value_type(view, ty);
        }
        adapt_views(module, view, view);
    }
}

/// The last dimensions of a shape in this order.
pub(crate) fn turned(shape: &Shape, order: &[i32]) -> Shape {
    let leading = shape.len().saturating_sub(order.len());
    order.iter().filter_map(|&d| shape.get(leading + d as usize).copied()).collect()
}

impl Ring {
    /// Finds out who uses a ring and how.
    ///
    /// # Errors
    /// What a ring can't be used for, with its place: a field that is written in several ways or by whom it can't be told,
    /// a writer or a reader who is in several places, a reader who isn't declared.
    pub fn of(module: &Module, create: ttg::RingCreate) -> Result<Ring, Diagnostic> {
        let names = create.readers(module);
        let mut ring = Ring {
            create,
            slots: create.slots(module) as u32,
            fields: Vec::new(),
            uses: users(module, create.ring(module)),
            writer: Place::new(),
            writer_warps: 0,
            readers: vec![Reader::default(); names.map_or(1, |names| names.len())],
            read_asynchronously: false,
            // Of a ring without fields whoever makes it says so.
            peers: module.int_attr(create.0, marks::PEERS).unwrap_or(1) as u32,
            closes: false,
            is_own: is_own(module, create),
            commits_beside: false,
            commits_to_proxy: false,
        };
        ring.closes = ring.uses.iter().any(|&op| ttg::RingClose::cast(module, op).is_some());
        ring.find_places(module)?;
        for &field in create.fields(module) {
            let Some(alloc) = allocation(module, field) else {
                let what = "a field that is not allocated in the function";
                return Err(Diagnostic::unsupported(module, module.op_loc(create.0), what));
            };
            let transport = ring.find_transport(module, alloc)?;
            ring.fields.push(Field { alloc, transport });
        }
        Ok(ring)
    }

    /// Finds out whether slots of a kernel's own ring hand over more than their fields, where only copies or one thread would say that they are
    /// filled or read.
    pub fn look_beside(&mut self, module: &Module) {
        if !self.is_own || self.is_in_order() {
            return;
        }
        let own = |wanted: &dyn Fn(Op) -> bool| -> Vec<Op> {
            self.uses.iter().copied().filter(|&op| wanted(op)).collect()
        };
        let commits = own(&|op| {
            ttg::RingCommit::cast(module, op).is_some() || ttg::RingClose::cast(module, op).is_some()
        });
        let beside = beside::look(module, &self.writer, &commits);
        // (Stores arrive for themselves.)
        self.commits_beside =
            beside.is_shared && (self.has(Transport::Blocks) || self.has(Transport::Copies));
        self.commits_to_proxy = beside.by_proxy;
        for number in 0..self.readers.len() {
            let releases = own(&|op| {
                ttg::RingRelease::cast(module, op).is_some() && Self::reader_of(module, op) == number
            });
            let Some(place) = self.readers[number].place.clone() else { continue };
            let beside = beside::look(module, &place, &releases);
            self.readers[number].elected &= !beside.is_shared;
            self.readers[number].releases_to_proxy = beside.by_proxy;
        }
    }

    /// Whether the writer and all readers are the same warps: then the order of the program is that of their accesses.
    pub fn is_in_order(&self) -> bool {
        self.readers.iter().all(|r| r.place.as_ref().is_none_or(|p| *p == self.writer))
    }

    /// Whether a field is filled in this way.
    pub fn has(&self, transport: Transport) -> bool {
        self.fields.iter().any(|f| f.transport == Some(transport))
    }

    /// Whether its buffer is a field.
    pub fn holds(&self, module: &Module, buffer: Value) -> bool {
        allocation(module, buffer).is_some_and(|alloc| self.fields.iter().any(|f| f.alloc == alloc))
    }

    /// Whether a proxy fence belongs behind each wait.
    pub fn fences_waits(&self) -> bool {
        self.has(Transport::Copies) && self.read_asynchronously && !self.is_in_order()
    }

    /// Whether a proxy fence belongs before each commit.
    pub fn fences_commits(&self) -> bool {
        (self.has(Transport::Stores) && self.read_asynchronously || self.commits_to_proxy)
            && !self.is_in_order()
    }

    /// Whether a proxy fence belongs before each of the reader's releases: the copy engine writes next to where its threads have loaded. Without
    /// it a thread may arrive before what it loads has come, and `ptxas` does let it (PTX ISA, "Async proxy").
    pub fn fences_releases(&self, reader: usize) -> bool {
        let reader = &self.readers[reader];
        (self.has(Transport::Blocks) && reader.loads || reader.releases_to_proxy) && !self.is_in_order()
    }

    /// The number of the reader that waits or releases by an operation.
    pub fn reader_of(module: &Module, op: Op) -> usize {
        module.int_attr(op, "reader").map_or(0, |r| r as usize)
    }

    fn find_places(&mut self, module: &Module) -> Result<(), Diagnostic> {
        let mut writer: Option<Place> = None;
        for &op in &self.uses {
            let place = place(module, op);
            match module.opcode(op) {
                Some(Opcode::Ttg(ttg::Kind::RingAcquire | ttg::Kind::RingCommit | ttg::Kind::RingClose)) => {
                    if writer.get_or_insert_with(|| place.clone()) != &place {
                        let text =
                            format!("the writer of {} is in two partitions", shown(module, self.create));
                        return Err(wrong(module, op, &text));
                    }
                    self.writer_warps = scope::num_warps(module, op);
                }
                Some(Opcode::Ttg(ttg::Kind::RingWait | ttg::Kind::RingRelease)) => {
                    let number = Self::reader_of(module, op);
                    let Some(reader) = self.readers.get_mut(number) else {
                        let text = format!("the ring has no reader {number}");
                        return Err(wrong(module, op, &text));
                    };
                    if reader.place.get_or_insert_with(|| place.clone()) != &place {
                        let reader = reader_shown(module, self.create, number);
                        let text = format!("{reader} of {} is in two partitions", shown(module, self.create));
                        return Err(wrong(module, op, &text));
                    }
                    reader.warps = scope::num_warps(module, op);
                }
                _ => {}
            }
        }
        self.writer = writer.unwrap_or_default();
        Ok(())
    }

    /// How a field is filled; notes who reads it how.
    fn find_transport(
        &mut self,
        module: &Module,
        alloc: ttg::LocalAlloc,
    ) -> Result<Option<Transport>, Diagnostic> {
        let mut found: Option<Transport> = None;
        let mut reads = vec![Reads::default(); self.readers.len()];
        for op in buffer_users(module, alloc.result(module)) {
            let fills = guards::fills(module, op, self.create, alloc);
            let Some(def) = module.def(op) else {
                return Err(wrong(
                    module,
                    op,
                    "a field of a ring goes where it is not known what is done with it",
                ));
            };
            for effect in def.effects.iter().filter(|e| resource(module, op, e) == Resource::Shared) {
                let Some(group) = effect.operand.and_then(|name| def.group(name)) else { continue };
                if !module.operand_group(op, group).iter().any(|&v| lies_in(module, v, alloc)) {
                    continue;
                }
                match (effect.access, effect.completion) {
                    (Access::Write, _) if !fills => {}
                    (Access::Write, completion) => {
                        let transport = match completion {
                            Completion::Mbarrier => Transport::Blocks,
                            Completion::Copies => Transport::Copies,
                            _ => Transport::Stores,
                        };
                        if *found.get_or_insert(transport) != transport {
                            let text = format!(
                                "a field of {} is filled in two ways: by the copy engine, by asynchronous copies or by \
                                 stores, but not by several of these",
                                shown(module, self.create)
                            );
                            return Err(wrong(module, op, &text));
                        }
                        if let Some(copy) = ttg::AsyncCopyBlockToLocal::cast(module, op) {
                            let mask = module.int_attr(copy.0, marks::MULTICAST).unwrap_or(0);
                            self.peers |= multicast::peers([mask as u32]);
                        }
                    }
                    (Access::Read, completion) => {
                        self.read_asynchronously |= effect.proxy == Proxy::Async;
                        let place = place(module, op);
                        for (reader, seen) in self.readers.iter().zip(&mut reads) {
                            if reader.place.as_ref() == Some(&place) {
                                match completion {
                                    Completion::Stores => seen.hands_over = true,
                                    _ => seen.otherwise = true,
                                }
                                seen.loads |= effect.proxy != Proxy::Async;
                            }
                        }
                    }
                    _ => {}
                }
            }
        }
        for (reader, seen) in self.readers.iter_mut().zip(reads) {
            reader.loads |= seen.loads;
            // Whether a slot is closed every thread reads.
            reader.elected |= seen.hands_over && !seen.otherwise && reader.warps == 1 && !self.closes;
        }
        Ok(found)
    }
}

/// Whether a value is a view of a buffer, or pointers of which some may point into it.
pub(crate) fn lies_in(module: &Module, value: Value, alloc: ttg::LocalAlloc) -> bool {
    if module.is_shared_pointer(module.value_type(value)) {
        let buffers = local_pointers::buffers(module, value);
        return buffers
            .is_none_or(|all| all.iter().any(|&b| allocation(module, b).is_none_or(|a| a == alloc)));
    }
    !module.is_tensor(module.value_type(value)) && allocation(module, value) == Some(alloc)
}

/// Whether an operation writes to a buffer.
pub(crate) fn writes(module: &Module, op: Op, alloc: ttg::LocalAlloc) -> bool {
    touches(module, op, alloc, Access::Write)
}

/// Whether an operation reads a buffer, or hands it to a function.
pub(crate) fn reads(module: &Module, op: Op, alloc: ttg::LocalAlloc) -> bool {
    let calls = tt::Call::cast(module, op).is_some();
    calls || touches(module, op, alloc, Access::Read)
}

fn touches(module: &Module, op: Op, alloc: ttg::LocalAlloc, access: Access) -> bool {
    let Some(def) = module.def(op) else { return true };
    def.effects.iter().any(|e| {
        let group = e.operand.and_then(|name| def.group(name));
        resource(module, op, e) == Resource::Shared
            && e.access == access
            && group.is_some_and(|g| module.operand_group(op, g).iter().any(|&v| lies_in(module, v, alloc)))
    })
}

/// The number of the slot that a view of a field shows.
pub(crate) fn slot_of(module: &Module, view: Value) -> Option<Value> {
    let mut at = view;
    loop {
        if let Some(index) = ttg::MemdescIndex::of(module, at)
            && allocation(module, index.src(module)).map(|a| a.result(module))
                == Some(scope::captured(module, index.src(module)))
        {
            return Some(index.index(module));
        }
        let op = module.defining_op(at)?;
        at = *module.operands(op).first()?;
    }
}

/// Whether two values are the same number of a slot.
pub(crate) fn same_slot(module: &Module, a: Value, b: Value) -> bool {
    a == b || module.constant_int(a).is_some() && module.constant_int(a) == module.constant_int(b)
}

/// The operations on a ring, also in partitions that capture it.
pub(crate) fn users(module: &Module, ring: Value) -> Vec<Op> {
    scope::uses(module, ring).into_iter().map(|u| u.op).collect()
}

pub(crate) fn wrong(module: &Module, op: Op, text: &str) -> Diagnostic {
    Diagnostic::at(module, module.op_loc(op), text)
}
