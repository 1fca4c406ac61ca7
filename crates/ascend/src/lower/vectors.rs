//! Tensors become buffers, and what computes them instructions from buffers to a buffer.
//!
//! What a buffer holds is read where it lies, unless it is written before the value's last use. What is stored into a buffer right after it is computed is
//! computed there. Everything else gets a buffer in UB, products one in L0C ([`products`](super::products)). A tensor that is needed in another memory than it is in is copied there
//! behind what computes it; where no way leads there within a core, by way of the workspace in global memory.
//!
//! ```text
//! %x = ttg.local_load %a ; %y = ttg.local_load %b
//! %z = arith.addf %x, %y : tensor<64xf32>            =>  hivm.hir.vadd ins(%a, %b) outs(%c)
//! ttg.local_store %z, %c
//! ```

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::dialect::{arith, hivm, llvm, memref, scf, tt, ttg};
use tilewright_ir::{
    AttrKind, Block, Builder, Diagnostic, Module, Op, Opcode, Trait, Type, TypeKind, Value, ascend, pass,
    strided,
};

use super::atomics;
use super::global::Part;
use super::instructions::{copy, fixpipe, load, nd2nz, store, varange, vbrc};
use super::scalar::is_scalar;
use super::unsupported;

/// Makes instructions of all operations on tensors.
///
/// # Errors
/// Operations that are not supported yet.
pub(super) fn run(module: &mut Module) -> Result<()> {
    let functions: Vec<tt::Func> =
        module.block_ops(module.body()).filter_map(|op| tt::Func::cast(module, op)).collect();
    for func in functions {
        bytes_of_truth(module, func.0);
        let mut lower = Lower {
            m: module,
            buffers: FxHashMap::default(),
            copies: FxHashMap::default(),
            numbers: FxHashMap::default(),
            carried: FxHashMap::default(),
            done: Vec::new(),
            unused: Vec::new(),
            stored: FxHashSet::default(),
            locked: false,
        };
        // (What is around the atomic operations goes with what they become.)
        let around = match atomics::locked(lower.m, func) {
            Some((first, last)) => {
                atomics::alone(lower.m, (first, last))?;
                lower.locked = true;
                Some((atomics::lock(lower.m, first), lower.m.next_op(last)))
            }
            None => None,
        };
        for block in lower.m.region_blocks(func.body(lower.m)).to_vec() {
            lower.block(block)?;
        }
        if let Some((lock, Some(behind))) = around {
            atomics::unlock(lower.m, lock, behind);
        }
        for op in std::mem::take(&mut lower.done).into_iter().rev() {
            lower.m.erase_op(op);
        }
        for (body, gone) in lower.unused {
            for i in gone.into_iter().rev() {
                lower.m.remove_block_arg(body, i);
            }
        }
    }
    pass::optimize(module)
}

/// Pointers to truth values are pointers to the bytes that these are in memory: what converts such a pointer goes.
fn bytes_of_truth(m: &mut Module, func: Op) {
    let mut values = Vec::new();
    for op in m.all_ops(func) {
        values.extend(m.results(op));
        let blocks = m.regions(op).iter().flat_map(|&region| m.region_blocks(region));
        values.extend(blocks.flat_map(|&block| m.block_args(block).to_vec()));
    }
    for v in values {
        let mut kind = m.type_kind(m.value_type(v)).clone();
        match &mut kind {
            TypeKind::Ptr { pointee, .. } if *pointee == Type::I1 => *pointee = Type::I8,
            TypeKind::Tensor { element, .. } => {
                let mut pointer = m.type_kind(*element).clone();
                let TypeKind::Ptr { pointee, .. } = &mut pointer else { continue };
                if *pointee != Type::I1 {
                    continue;
                }
                *pointee = Type::I8;
                *element = m.ty(pointer);
            }
            _ => continue,
        }
        let ty = m.ty(kind);
        m.set_value_type(v, ty);
    }
    for op in m.all_ops(func) {
        if tt::Bitcast::cast(m, op).is_some() {
            let (src, result) = (m.operands(op)[0], m.result(op));
            if m.value_type(src) == m.value_type(result) {
                m.replace_all_uses(result, src);
                m.erase_op(op);
            }
        }
    }
}

pub(super) struct Lower<'m> {
    pub m: &'m mut Module,
    /// Where tensors are.
    pub buffers: FxHashMap<Value, Value>,
    /// Where else they are: by the attribute of the memory.
    pub copies: FxHashMap<(Value, &'static str), Value>,
    /// Tensors whose elements are all this number.
    pub numbers: FxHashMap<Value, Value>,
    /// Where pointers lead that a loop carries and that are no block: from an argument of the kernel on, by so many elements.
    pub carried: FxHashMap<Value, (Value, Value)>,
    /// What has been replaced, in order.
    pub done: Vec<Op>,
    /// Arguments of blocks of loops that nothing uses when what was replaced is gone.
    pub unused: Vec<(Block, Vec<usize>)>,
    /// Stores of what is computed where it is stored.
    stored: FxHashSet<Op>,
    /// Whether atomic operations are under a lock.
    pub locked: bool,
}

pub(super) type Result<T> = std::result::Result<T, Diagnostic>;

impl Lower<'_> {
    pub fn block(&mut self, block: Block) -> Result<()> {
        let ops: Vec<Op> = self.m.block_ops(block).collect();
        ops.into_iter().try_for_each(|op| self.op(op))
    }

    pub fn is_tensor(&self, v: Value) -> bool {
        self.m.is_tensor(self.m.value_type(v))
    }

    fn op(&mut self, op: Op) -> Result<()> {
        use tt::Kind as T;
        use ttg::Kind as G;
        let chosen = self.m.results(op).iter().any(|&r| self.is_buffer(r));
        match self.m.opcode(op) {
            Some(Opcode::Scf(_) | Opcode::Arith(_)) if chosen => {
                let text = "a buffer that a branch or a loop chooses";
                Err(unsupported(self.m, op, text).note("do the work on each buffer in the branch itself"))
            }
            Some(Opcode::Scf(scf::Kind::For)) => self.looped(scf::For(op)),
            Some(Opcode::Scf(scf::Kind::If)) => self.branch(scf::If(op)),
            Some(Opcode::Scf(scf::Kind::While)) => self.repeated(scf::While(op)),
            Some(Opcode::Ttg(kind)) => match kind {
                G::LocalAlloc => self.alloc(ttg::LocalAlloc(op)),
                G::LocalLoad => self.load(ttg::LocalLoad(op)),
                G::LocalStore => self.store(ttg::LocalStore(op)),
                G::CopyGlobalToLocal | G::CopyLocalToGlobal | G::CopyLocal => self.copy(op, kind),
                G::MemdescReshape | G::MemdescReinterpret | G::MemdescSubslice | G::MemdescSubview => Ok(()),
                G::LocalPtr => {
                    // Where it is read or written, it is taken apart.
                    self.done.push(op);
                    Ok(())
                }
                G::Barrier => {
                    // A program has one thread, whose accesses flags keep in order.
                    self.done.push(op);
                    Ok(())
                }
                _ => Err(unsupported(self.m, op, format!("`{}`", self.m.op_name(op)))),
            },
            Some(Opcode::Llvm(llvm::Kind::Assume)) => {
                self.done.push(op);
                Ok(())
            }
            Some(Opcode::Tt(T::Load)) => self.load_global(tt::Load(op)),
            Some(Opcode::Tt(T::Store)) => self.store_global(tt::Store(op)),
            Some(Opcode::Tt(T::AtomicRmw)) => self.combine_global(tt::AtomicRmw(op)),
            Some(Opcode::Tt(T::AtomicCas)) => self.swap_global(tt::AtomicCas(op)),
            Some(Opcode::Hivm(_) | Opcode::HivmMore(_) | Opcode::Memref(_)) => Ok(()),
            Some(Opcode::Tt(T::GetProgramId | T::GetNumPrograms | T::Return)) => Ok(()),
            Some(Opcode::Tt(T::Mulhiui)) if self.is_number(op) => {
                let (factors, result) = (self.m.operands(op).to_vec(), self.m.result(op));
                let ty = self.m.value_type(result);
                if self.m.bits(ty) > 32 {
                    return Err(unsupported(self.m, op, "upper halves of products of 64 bits"));
                }
                let half = self.upper_half(op, factors, ty);
                self.m.replace_all_uses(result, half);
                self.done.push(op);
                Ok(())
            }
            Some(Opcode::Tt(T::Bitcast)) if self.is_number(op) => {
                let (src, result) = (self.m.operands(op)[0], self.m.result(op));
                let ty = self.m.value_type(result);
                let cast = arith::Bitcast::build(&mut Builder::before(self.m, op), src, ty).out(self.m);
                self.m.replace_all_uses(result, cast);
                self.done.push(op);
                Ok(())
            }
            Some(Opcode::Tt(T::Addptr)) => {
                // Where copies are made of it, it is taken apart.
                self.done.push(op);
                Ok(())
            }
            _ => {
                let values = self.m.operands(op).iter().chain(self.m.results(op));
                let on_tensors = values.copied().any(|v| self.is_tensor(v));
                let scalar = matches!(
                    self.m.opcode(op),
                    Some(Opcode::Arith(_) | Opcode::Scf(scf::Kind::Yield | scf::Kind::Condition))
                );
                match on_tensors {
                    false if scalar => Ok(()),
                    false if matches!(self.m.opcode(op), Some(Opcode::Math(_) | Opcode::Tt(T::FpToFp))) => {
                        self.of_one(op)
                    }
                    false => Err(unsupported(self.m, op, format!("`{}`", self.m.op_name(op)))),
                    true => self.tensor(op),
                }
            }
        }
    }

    fn is_buffer(&self, v: Value) -> bool {
        matches!(self.m.type_kind(self.m.value_type(v)), TypeKind::MemDesc { .. })
    }

    /// Whether an operation is on numbers alone: no tensors, and no pointers.
    fn is_number(&self, op: Op) -> bool {
        let mut values = self.m.operands(op).iter().chain(self.m.results(op));
        values.all(|&v| !self.is_tensor(v) && !self.m.is_ptr(self.m.value_type(v)))
    }

    // ---- buffers -----------------------------------------------------------------------------------------------

    /// A new buffer in front of an operation.
    pub fn new_buffer(&mut self, op: Op, shape: &[u32], element: Type, space: &str) -> Value {
        let memory_space = self.m.attr(AttrKind::Opaque(space.into()));
        let ty = self.m.ty(TypeKind::MemDesc {
            shape: shape.into(),
            element,
            encoding: None,
            memory_space,
            mutable: true,
            alloc_shape: None,
        });
        ttg::LocalAlloc::build(&mut Builder::before(self.m, op), None, ty).result(self.m)
    }

    pub fn shape(&self, v: Value) -> Vec<u32> {
        self.m.shape(self.m.value_type(v)).unwrap_or(&[]).to_vec()
    }

    pub fn element(&self, v: Value) -> Type {
        self.m.element_type(self.m.value_type(v))
    }

    pub fn space(&self, buffer: Value) -> &'static str {
        let space = match self.m.type_kind(self.m.value_type(buffer)) {
            TypeKind::MemDesc { memory_space, .. } => {
                ascend::by_attribute(ascend::text(self.m, *memory_space))
            }
            _ => None,
        };
        space.map_or("", |s| s.attribute)
    }

    /// The buffer that a view is one of.
    fn root(&self, mut view: Value) -> Value {
        while let Some(made) =
            self.m.defining_op(view).filter(|&d| ttg::LocalAlloc::cast(self.m, d).is_none())
        {
            view = self.m.operands(made)[0];
        }
        view
    }

    /// Whether two different views may be of the same elements, under other indices.
    fn overlap(&self, a: Value, b: Value) -> bool {
        a != b && self.root(a) == self.root(b)
    }

    /// Whether something lies between neighbours of a buffer's last dimension: vectors and engines that move data to or from global memory take what lies side by side.
    fn has_gaps(&self, buffer: Value) -> bool {
        strided::strides(self.m, self.m.value_type(buffer)).last().is_some_and(|&apart| apart != 1)
    }

    /// The buffer that is filled, or read, in place of one with gaps.
    fn without_gaps(&mut self, op: Op, buffer: Value) -> Result<Value> {
        if !self.has_gaps(buffer) {
            return Ok(buffer);
        }
        let space = self.space(buffer);
        if space != ascend::UB {
            let name = ascend::by_attribute(space).map_or("", |s| s.name);
            let text = format!("a part of a buffer in {name} with gaps between its elements");
            return Err(unsupported(self.m, op, text));
        }
        let (shape, element) = (self.shape(buffer), self.element(buffer));
        Ok(self.new_buffer(op, &shape, element, ascend::UB))
    }

    /// The buffer that a tensor is computed into: the one that it is stored to right behind, or a new one.
    pub fn out(&mut self, op: Op, same_place: bool) -> Value {
        let result = self.m.result(op);
        if same_place
            && let [only] = self.m.uses(result)
            && let Some(store) = ttg::LocalStore::cast(self.m, only.op)
            && self.m.next_op(op) == Some(only.op)
            && self.space(store.dst(self.m)) == ascend::UB
            && !self.has_gaps(store.dst(self.m))
            && !self.m.operands(op).iter().any(|v| {
                // What is read element by element is not written over before.
                self.buffers.get(v).is_some_and(|&read| self.overlap(read, store.dst(self.m)))
            })
        {
            self.stored.insert(only.op);
            let dst = store.dst(self.m);
            self.buffers.insert(result, dst);
            return dst;
        }
        let (shape, element) = (self.shape(result), self.element(result));
        let buffer = self.new_buffer(op, &shape, element, ascend::UB);
        self.buffers.insert(result, buffer);
        buffer
    }

    /// The buffer in UB of a tensor.
    pub fn buffer(&mut self, op: Op, v: Value) -> Result<Value> {
        self.held_in(op, v, ascend::UB)
    }

    /// The buffer of a tensor, in whatever memory.
    pub fn anywhere(&mut self, op: Op, v: Value) -> Result<Value> {
        match self.buffers.get(&v) {
            Some(&buffer) => Ok(buffer),
            None => self.filled(op, v),
        }
    }

    /// The buffer of a tensor in a memory.
    pub fn held_in(&mut self, op: Op, v: Value, space: &'static str) -> Result<Value> {
        let found = self.anywhere(op, v)?;
        if self.space(found) == space {
            return Ok(found);
        }
        if let Some(&copy) = self.copies.get(&(v, space)) {
            return Ok(copy);
        }
        let (shape, element, number) = (self.shape(v), self.element(v), !self.buffers.contains_key(&v));
        // Behind what computes it, it is there for all that need it.
        let at = if number { op } else { self.behind(v).unwrap_or(op) };
        let copy = self.new_buffer(at, &shape, element, space);
        self.between(at, found, copy)?;
        if !number {
            self.copies.insert((v, space), copy);
        }
        Ok(copy)
    }

    /// The operation behind what computes a value.
    fn behind(&self, v: Value) -> Option<Op> {
        match self.m.defining_op(v) {
            Some(op) => self.m.next_op(op),
            None => self.m.value_block(v).and_then(|block| self.m.first_op(block)),
        }
    }

    /// A buffer that holds the number that all elements of a tensor are.
    fn filled(&mut self, op: Op, v: Value) -> Result<Value> {
        let Some(&number) = self.numbers.get(&v) else {
            let what = self.m.defining_op(v).map_or("an argument", |op| self.m.op_name(op));
            return Err(unsupported(self.m, op, format!("a tensor that is made by `{what}`")));
        };
        if let Some(&known) = self.copies.get(&(v, ascend::UB))
            && self.is_there(known, op)
        {
            return Ok(known);
        }
        let (shape, element) = (self.shape(v), self.element(v));
        let buffer = self.new_buffer(op, &shape, element, ascend::UB);
        vbrc(&mut Builder::before(self.m, op), number, buffer, &[]);
        self.copies.insert((v, ascend::UB), buffer);
        Ok(buffer)
    }

    /// Whether a buffer is made in front of an operation, in its block or around that.
    fn is_there(&self, buffer: Value, op: Op) -> bool {
        let Some(made) = self.m.defining_op(buffer) else { return false };
        let beside = self.m.parent_block(made).and_then(|block| self.m.ancestor_in_block(block, op));
        beside.is_some_and(|beside| self.m.is_before(made, beside))
    }

    /// Puts a tensor into a buffer.
    pub fn put(&mut self, op: Op, v: Value, into: Value) -> Result<()> {
        let space = self.space(into);
        if let Some(&number) = self.numbers.get(&v)
            && space == ascend::UB
        {
            vbrc(&mut Builder::before(self.m, op), number, into, &[]);
            return Ok(());
        }
        let from = match self.copies.get(&(v, space)) {
            Some(&copy) if !self.numbers.contains_key(&v) => copy,
            _ => self.anywhere(op, v)?,
        };
        match from == into {
            true => Ok(()),
            false => self.between(op, from, into),
        }
    }

    fn alloc(&mut self, alloc: ttg::LocalAlloc) -> Result<()> {
        let (op, result) = (alloc.0, alloc.result(self.m));
        if self.space(result).is_empty() {
            return Err(unsupported(self.m, op, "a buffer in the shared memory of GPUs")
                .note("tle.dsa.alloc makes buffers in a memory of these cores"));
        }
        let Some(src) = alloc.src(self.m) else { return Ok(()) };
        let value = self.anywhere(op, src)?;
        let own = self.m.uses(src).len() == 1
            && self.buffers.contains_key(&src)
            && self.m.defining_op(src).is_some_and(|d| ttg::LocalLoad::cast(self.m, d).is_none())
            && self.m.value_type(value) == self.m.value_type(result);
        // (No way leads from L0C to itself; what is only read need not be there twice.)
        let one = [value, result].iter().all(|&v| self.space(v) == ascend::L0C) && self.is_only_read(result);
        let held = if own || one {
            value
        } else {
            let (shape, element, space) = (self.shape(result), self.element(result), self.space(result));
            let held = self.new_buffer(op, &shape, element, space);
            self.put(op, src, held)?;
            held
        };
        if let Some(name) = self.m.value_name(result).map(str::to_string) {
            self.m.name_value(held, &name);
        }
        self.m.replace_all_uses(result, held);
        self.done.push(op);
        Ok(())
    }

    /// Whether nothing writes to a buffer that is made with what it holds.
    fn is_only_read(&self, buffer: Value) -> bool {
        self.m.uses(buffer).iter().all(|used| {
            matches!(
                self.m.opcode(used.op),
                Some(Opcode::Ttg(ttg::Kind::LocalLoad | ttg::Kind::CopyLocalToGlobal | ttg::Kind::CopyLocal))
            ) && used.index == 0
        })
    }

    /// Copies all of a buffer. Between the memories of two cores data go through the workspace.
    pub fn between(&mut self, op: Op, from: Value, to: Value) -> Result<()> {
        let (source, target) = (self.space(from), self.space(to));
        if source == ascend::UB && self.overlap(from, to) {
            let (shape, element) = (self.shape(from), self.element(from));
            let aside = self.new_buffer(op, &shape, element, ascend::UB);
            copy(&mut Builder::before(self.m, op), from, aside);
            copy(&mut Builder::before(self.m, op), aside, to);
            return Ok(());
        }
        if source != target && (self.has_gaps(from) || self.has_gaps(to)) {
            let [between_from, between_to] = [self.without_gaps(op, from)?, self.without_gaps(op, to)?];
            if between_from != from {
                copy(&mut Builder::before(self.m, op), from, between_from);
            }
            self.between(op, between_from, between_to)?;
            if between_to != to {
                copy(&mut Builder::before(self.m, op), between_to, to);
            }
            return Ok(());
        }
        let shared = match (source, target) {
            (ascend::UB, ascend::L1) | (ascend::L0C, ascend::UB) => {
                let (shape, element) = (self.shape(to), self.element(to));
                Some(self.new_buffer(op, &shape, element, ascend::GM))
            }
            _ => None,
        };
        let mut b = Builder::before(self.m, op);
        match (source, target, shared) {
            (ascend::UB, ascend::UB, _) => _ = copy(&mut b, from, to),
            (ascend::UB, ascend::L1, Some(shared)) => {
                store(&mut b, from, shared, false, None);
                nd2nz(&mut b, shared, to, None, false);
            }
            (ascend::L0C, ascend::UB, Some(shared)) => {
                fixpipe(&mut b, from, shared, true, false);
                load(&mut b, shared, to, false);
            }
            (ascend::L0C, ascend::L1, _) => _ = fixpipe(&mut b, from, to, false, false),
            _ => {
                let name = |space| ascend::by_attribute(space).map_or("", |s| s.name);
                let text = format!("a tensor that goes from {} to {}", name(source), name(target));
                return Err(unsupported(self.m, op, text)
                    .note("copy it through the memories on the way: tle.dsa.copy"));
            }
        }
        Ok(())
    }

    fn load(&mut self, load: ttg::LocalLoad) -> Result<()> {
        let (op, src, result) = (load.0, load.src(self.m), load.result(self.m));
        self.done.push(op);
        if !self.has_gaps(src) && self.stays(op, src, result) {
            self.buffers.insert(result, src);
            return Ok(());
        }
        let (shape, element) = (self.shape(result), self.element(result));
        let copy = self.new_buffer(op, &shape, element, ascend::UB);
        self.between(op, src, copy)?;
        self.buffers.insert(result, copy);
        Ok(())
    }

    /// What uses a tensor, or what is read where that lies: other shapes and orders of it, and what is rounded on its way out of L0C.
    fn readers(&self, v: Value) -> Vec<Op> {
        let mut found = Vec::new();
        for used in self.m.uses(v) {
            found.push(used.op);
            let same_place = matches!(
                self.m.opcode(used.op),
                Some(
                    Opcode::Tt(
                        tt::Kind::Trans | tt::Kind::Reshape | tt::Kind::ExpandDims | tt::Kind::Bitcast
                    ) | Opcode::Arith(arith::Kind::Truncf | arith::Kind::Bitcast)
                )
            );
            if same_place {
                found.extend(self.readers(self.m.result(used.op)));
            }
        }
        found
    }

    /// Whether a buffer holds what was loaded from it until the last use of that: all are in one block, or in operations of it, with no write in between.
    fn stays(&self, load: Op, src: Value, loaded: Value) -> bool {
        let Some(block) = self.m.parent_block(load) else { return false };
        let readers = self.readers(loaded);
        let around: Option<Vec<Op>> =
            readers.into_iter().map(|user| self.m.ancestor_in_block(block, user)).collect();
        let Some(uses) = around else { return false };
        let mut work = vec![self.root(src)];
        while let Some(v) = work.pop() {
            for user in self.m.uses(v) {
                let leads_on = |&&r: &&Value| self.is_buffer(r) || self.m.is_ptr(self.element(r));
                work.extend(self.m.results(user.op).iter().filter(leads_on));
                let written = |op: Op| match self.m.opcode(op) {
                    Some(Opcode::Memref(memref::Kind::Store)) => 1..2,
                    Some(Opcode::Ttg(
                        ttg::Kind::LocalStore | ttg::Kind::CopyGlobalToLocal | ttg::Kind::CopyLocal,
                    )) => 1..2,
                    // (Through pointers to elements.)
                    Some(Opcode::Tt(tt::Kind::Store | tt::Kind::AtomicRmw | tt::Kind::AtomicCas)) => 0..1,
                    _ => hivm::written(self.m, op),
                };
                if !self.m.operands(user.op)[written(user.op)].contains(&v) {
                    continue;
                }
                // (What is outside of the block is not done while it goes on.)
                let Some(write) = self.m.ancestor_in_block(block, user.op) else { continue };
                // A loop or branch that writes may do so before it reads.
                let inside = |u: Op| u == write && u != user.op;
                if self.m.is_before(load, write)
                    && uses.iter().any(|&u| self.m.is_before(write, u) || inside(u))
                {
                    return false;
                }
            }
        }
        true
    }

    fn store(&mut self, store: ttg::LocalStore) -> Result<()> {
        let op = store.0;
        self.done.push(op);
        if self.stored.contains(&op) {
            return Ok(());
        }
        let (src, dst) = (store.src(self.m), store.dst(self.m));
        self.put(op, src, dst)
    }

    // ---- copies ------------------------------------------------------------------------------------------------

    fn copy(&mut self, op: Op, kind: ttg::Kind) -> Result<()> {
        self.done.push(op);
        let operands = self.m.operands(op).to_vec();
        let (src, dst, part) = (operands[0], operands[1], Part::first(&operands[2..]));
        let flag = |m: &Module| {
            m.op_attr(op, "inter_no_alias").is_some_and(|a| *m.attr_kind(a) == AttrKind::Bool(true))
        };
        let no_alias = flag(self.m);
        match kind {
            ttg::Kind::CopyGlobalToLocal => {
                let from = self.global(op, src, &part)?;
                let filled = self.without_gaps(op, dst)?;
                let to = self.of_buffer(op, filled, &part);
                let in_ub = self.space(dst) == ascend::UB;
                let mut b = Builder::before(self.m, op);
                match in_ub {
                    true => load(&mut b, from, to, no_alias),
                    false => nd2nz(&mut b, from, to, None, no_alias),
                };
                if filled != dst {
                    let apart = self.of_buffer(op, dst, &part);
                    copy(&mut Builder::before(self.m, op), to, apart);
                }
            }
            ttg::Kind::CopyLocalToGlobal => {
                let read = self.without_gaps(op, src)?;
                let from = self.of_buffer(op, read, &part);
                if read != src {
                    let apart = self.of_buffer(op, src, &part);
                    copy(&mut Builder::before(self.m, op), apart, from);
                }
                let to = self.global(op, dst, &part)?;
                let in_ub = self.space(src) == ascend::UB;
                let mut b = Builder::before(self.m, op);
                match in_ub {
                    true => store(&mut b, from, to, no_alias, None),
                    false => fixpipe(&mut b, from, to, true, no_alias),
                };
            }
            _ => {
                for buffer in [src, dst] {
                    if self.space(buffer) != ascend::UB {
                        self.without_gaps(op, buffer)?;
                    }
                }
                let (mut from, to) = (self.of_buffer(op, src, &part), self.of_buffer(op, dst, &part));
                let product = self.space(src) == ascend::L0C;
                if self.overlap(src, dst) {
                    let (shape, element) = (self.shape(src), self.element(src));
                    let aside = self.new_buffer(op, &shape, element, ascend::UB);
                    let part = self.of_buffer(op, aside, &part);
                    copy(&mut Builder::before(self.m, op), from, part);
                    from = part;
                }
                let mut b = Builder::before(self.m, op);
                match product {
                    true => fixpipe(&mut b, from, to, false, false),
                    false => copy(&mut b, from, to),
                };
            }
        }
        Ok(())
    }

    // ---- tensors -----------------------------------------------------------------------------------------------

    fn tensor(&mut self, op: Op) -> Result<()> {
        use arith::Kind as A;
        use tt::Kind as T;
        let operands = self.m.operands(op).to_vec();
        self.done.push(op);
        match self.m.opcode(op) {
            Some(Opcode::Arith(A::Constant)) => return self.constant(op),
            Some(Opcode::Scf(scf::Kind::Yield | scf::Kind::Condition)) => {
                self.done.pop();
                return Ok(());
            }
            Some(Opcode::Tt(T::Splat)) => {
                if !self.m.is_ptr(self.element(operands[0])) {
                    self.numbers.insert(self.m.result(op), operands[0]);
                }
                return Ok(());
            }
            Some(Opcode::Tt(T::Reduce)) => return self.reduce(tt::Reduce(op)),
            Some(Opcode::Tt(T::Scan)) => return self.scan(tt::Scan(op)),
            Some(Opcode::Tt(T::Gather)) => return self.gather(tt::Gather(op)),
            Some(Opcode::Tt(T::MapElementwise)) => return self.map_elementwise(tt::MapElementwise(op)),
            Some(Opcode::Tt(T::Histogram)) => return self.histogram(tt::Histogram(op)),
            Some(Opcode::Tt(T::Dot)) => return self.dot(tt::Dot(op)),
            Some(Opcode::Tt(T::Trans)) => return self.transpose(tt::Trans(op)),
            Some(Opcode::Tt(T::ExtractSlice | T::InsertSlice | T::ExtractTile | T::InsertTile)) => {
                return self.slice(op);
            }
            Some(Opcode::Tt(T::Split | T::Join)) => return self.split_or_join(op),
            Some(Opcode::Tt(T::Unsplat)) => return self.only_element(op),
            _ => {}
        }
        let &[result] = self.m.results(op) else {
            return Err(unsupported(self.m, op, format!("`{}` of tensors", self.m.op_name(op))));
        };
        if self.m.is_ptr(self.element(result)) || self.only_addresses(result) {
            return Ok(());
        }
        self.compute(op)
    }

    /// Computes a tensor of one operation.
    pub fn compute(&mut self, op: Op) -> Result<()> {
        use arith::Kind as A;
        use tt::Kind as T;
        let (operands, result) = (self.m.operands(op).to_vec(), self.m.result(op));
        // What is the same for all elements stays a number.
        let of_scalars =
            is_scalar(self.m, op) || matches!(self.m.opcode(op), Some(Opcode::Tt(T::Mulhiui | T::Bitcast)));
        if of_scalars
            && self.m.has_trait(op, Trait::Elementwise)
            && operands.iter().all(|v| self.numbers.contains_key(v))
        {
            return self.number(op, &operands);
        }
        match self.m.opcode(op) {
            // The way out of L0C rounds.
            Some(Opcode::Arith(A::Truncf))
                if self.buffers.get(&operands[0]).is_some_and(|&b| self.space(b) == ascend::L0C) =>
            {
                self.buffers.insert(result, self.buffers[&operands[0]]);
            }
            Some(Opcode::Tt(T::MakeRange)) => {
                let out = self.out(op, true);
                let start = i64::from(tt::MakeRange(op).start(self.m));
                let mut b = Builder::before(self.m, op);
                let (offset, stride) = (b.int(start, Type::INDEX), b.int(1, Type::INDEX));
                varange(&mut b, offset, &[stride], out);
            }
            Some(Opcode::Tt(T::ExpandDims | T::Reshape)) => {
                if let Some(&number) = self.numbers.get(&operands[0]) {
                    self.numbers.insert(result, number);
                    return Ok(());
                }
                let from = self.buffer(op, operands[0])?;
                let shape = self.shape(result);
                let view = self.reshaped(op, from, &shape);
                self.buffers.insert(result, view);
            }
            // The same bytes, read as something else.
            Some(Opcode::Tt(T::Bitcast) | Opcode::Arith(A::Bitcast)) if self.element(result) != Type::I1 => {
                let from = self.buffer(op, operands[0])?;
                let (shape, element) = (self.shape(from), self.element(result));
                let view = self.seen_as(op, from, &shape, element);
                self.buffers.insert(result, view);
            }
            Some(Opcode::Tt(T::Clampf)) => self.clamp(tt::Clampf(op))?,
            Some(Opcode::Tt(T::Broadcast)) => {
                if let Some(&number) = self.numbers.get(&operands[0]) {
                    self.numbers.insert(result, number);
                    return Ok(());
                }
                let from = self.buffer(op, operands[0])?;
                let out = self.out(op, false);
                let (narrow, wide) = (self.shape(from), self.shape(out));
                let dims: Vec<usize> = (0..wide.len()).filter(|&d| narrow[d] != wide[d]).collect();
                vbrc(&mut Builder::before(self.m, op), from, out, &dims);
            }
            _ => self.elementwise(op, &operands)?,
        }
        Ok(())
    }

    /// Whether a tensor goes into pointers and masks alone, which are taken apart where they are used.
    fn only_addresses(&self, v: Value) -> bool {
        let taken = |op: Op| match self.m.opcode(op) {
            Some(Opcode::Tt(tt::Kind::Load)) => {
                let load = tt::Load(op);
                load.mask(self.m) == Some(v) && load.other(self.m) != Some(v)
            }
            Some(Opcode::Tt(tt::Kind::Store)) => {
                let store = tt::Store(op);
                store.mask(self.m) == Some(v) && store.value(self.m) != v
            }
            Some(Opcode::Tt(tt::Kind::AtomicRmw)) => {
                let atomic = tt::AtomicRmw(op);
                atomic.mask(self.m) == Some(v) && atomic.val(self.m) != v
            }
            _ => self.m.results(op).first().is_some_and(|&r| {
                self.m.is_ptr(self.element(r)) || (self.is_tensor(r) && self.only_addresses(r))
            }),
        };
        !self.m.uses(v).is_empty() && self.m.uses(v).iter().all(|u| taken(u.op))
    }

    fn constant(&mut self, op: Op) -> Result<()> {
        let result = self.m.result(op);
        let value = self.m.constant_value(result);
        let Some(AttrKind::Splat(element, _)) = value.map(|a| self.m.attr_kind(a).clone()) else {
            return Err(unsupported(self.m, op, "constants whose elements differ"));
        };
        let ty = self.element(result);
        let number = arith::Constant::build(&mut Builder::before(self.m, op), element, ty).result(self.m);
        self.numbers.insert(result, number);
        Ok(())
    }

    /// A tensor with its dimensions in another order. Products read their operands in either.
    fn transpose(&mut self, trans: tt::Trans) -> Result<()> {
        let (op, src, result) = (trans.0, trans.src(self.m), trans.result(self.m));
        if let Some(&number) = self.numbers.get(&src) {
            self.numbers.insert(result, number);
            return Ok(());
        }
        if !self.wanted(result).vectors && trans.order(self.m)[..] == [1, 0] {
            return Ok(());
        }
        let from = self.buffer(op, src)?;
        let out = self.out(op, false);
        let order = trans.order(self.m).iter().map(|&d| i64::from(d)).collect();
        let mut b = Builder::before(self.m, op);
        hivm::Vtranspose::build(&mut b, from, out, None, Some(order), None, &[]);
        Ok(())
    }

    /// The operation on one number, for a tensor whose elements are all the same.
    fn number(&mut self, op: Op, operands: &[Value]) -> Result<()> {
        if let Some(Opcode::Tt(tt::Kind::Mulhiui)) = self.m.opcode(op) {
            let element = self.element(operands[0]);
            if self.m.bits(element) > 32 {
                return Err(unsupported(self.m, op, "upper halves of products of 64 bits"));
            }
            let half = self.upper_half(op, operands.iter().map(|v| self.numbers[v]).collect(), element);
            self.numbers.insert(self.m.result(op), half);
            return Ok(());
        }
        if let Some(Opcode::Tt(tt::Kind::Bitcast)) = self.m.opcode(op) {
            let (number, result) = (self.numbers[&operands[0]], self.m.result(op));
            let ty = self.element(result);
            let cast = arith::Bitcast::build(&mut Builder::before(self.m, op), number, ty).out(self.m);
            self.numbers.insert(result, cast);
            return Ok(());
        }
        let mut map: FxHashMap<Value, Value> = operands.iter().map(|v| (*v, self.numbers[v])).collect();
        let clone = self.m.clone_op(op, &mut map);
        let result = self.m.result(op);
        let scalar = self.m.result(clone);
        let ty = self.element(result);
        self.m.set_value_type(scalar, ty);
        self.m.insert_before(clone, op);
        self.numbers.insert(result, scalar);
        Ok(())
    }

    /// The same elements in row-major order under another shape.
    pub fn reshaped(&mut self, op: Op, buffer: Value, shape: &[u32]) -> Value {
        let element = self.element(buffer);
        self.seen_as(op, buffer, shape, element)
    }

    /// The same bytes under another shape, as elements of another type of as many bits. Those of a part of a buffer, which are apart, are copied.
    fn seen_as(&mut self, op: Op, buffer: Value, shape: &[u32], as_element: Type) -> Value {
        let is_part = self.m.defining_op(buffer).is_some_and(|d| {
            matches!(
                self.m.opcode(d),
                Some(Opcode::Ttg(ttg::Kind::MemdescSubslice | ttg::Kind::MemdescSubview))
            )
        });
        if is_part {
            let (own, element) = (self.shape(buffer), self.element(buffer));
            let whole = self.new_buffer(op, &own, element, ascend::UB);
            copy(&mut Builder::before(self.m, op), buffer, whole);
            return self.seen_as(op, whole, shape, as_element);
        }
        let mut kind = self.m.type_kind(self.m.value_type(buffer)).clone();
        if let TypeKind::MemDesc { shape: of, element, .. } = &mut kind {
            (*of, *element) = (shape.into(), as_element);
        }
        let ty = self.m.ty(kind);
        let b = &mut Builder::before(self.m, op);
        match as_element == b.module.element_type(b.module.value_type(buffer)) {
            true => ttg::MemdescReshape::build(b, buffer, ty).result(b.module),
            false => ttg::MemdescReinterpret::build(b, buffer, None, ty).result(b.module),
        }
    }
}
