//! Tensors become buffers, and what computes them instructions from buffers to a buffer.
//!
//! What a buffer holds is read where it lies, unless it is written before the value's last use. What is stored into a buffer right after it is computed is
//! computed there. Everything else gets a buffer in UB, products one in L0C.
//!
//! ```text
//! %x = ttg.local_load %a ; %y = ttg.local_load %b
//! %z = arith.addf %x, %y : tensor<64xf32>            =>  hivm.hir.vadd ins(%a, %b) outs(%c)
//! ttg.local_store %z, %c
//! ```

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::dialect::hivm::{CompareMode, ReduceKind};
use tilewright_ir::dialect::{arith, hivm, math, memref, scf, tt, ttg};
use tilewright_ir::{
    AttrKind, Block, Builder, Diagnostic, Module, Op, Opcode, Trait, Type, TypeKind, Value, ascend, pass,
};

use super::instructions::{
    copy, fixpipe, load, mmad, nd2nz, store, varange, vbrc, vcast, vcmp, vector, vreduce, vsel,
};
use super::unsupported;

/// Makes instructions of all operations on tensors.
///
/// # Errors
/// Operations that are not supported yet.
pub(super) fn run(module: &mut Module) -> Result<()> {
    let functions: Vec<tt::Func> =
        module.block_ops(module.body()).filter_map(|op| tt::Func::cast(module, op)).collect();
    for func in functions {
        let mut lower = Lower {
            m: module,
            buffers: FxHashMap::default(),
            numbers: FxHashMap::default(),
            done: Vec::new(),
            unused: Vec::new(),
            stored: FxHashSet::default(),
        };
        for block in lower.m.region_blocks(func.body(lower.m)).to_vec() {
            lower.block(block)?;
        }
        for op in std::mem::take(&mut lower.done).into_iter().rev() {
            lower.m.erase_op(op);
        }
        for (body, gone) in lower.unused {
            for i in gone.into_iter().rev() {
                lower.m.remove_block_arg(body, i + 1);
            }
        }
    }
    pass::optimize(module)
}

pub(super) struct Lower<'m> {
    pub m: &'m mut Module,
    /// Where tensors are.
    pub buffers: FxHashMap<Value, Value>,
    /// Tensors whose elements are all this number.
    pub numbers: FxHashMap<Value, Value>,
    /// What has been replaced, in order.
    pub done: Vec<Op>,
    /// Arguments of loops that nothing uses when what was replaced is gone.
    unused: Vec<(Block, Vec<usize>)>,
    /// Stores of what is computed where it is stored.
    stored: FxHashSet<Op>,
}

pub(super) type Result<T> = std::result::Result<T, Diagnostic>;

impl Lower<'_> {
    fn block(&mut self, block: Block) -> Result<()> {
        let ops: Vec<Op> = self.m.block_ops(block).collect();
        ops.into_iter().try_for_each(|op| self.op(op))
    }

    pub fn is_tensor(&self, v: Value) -> bool {
        self.m.is_tensor(self.m.value_type(v))
    }

    fn op(&mut self, op: Op) -> Result<()> {
        use tt::Kind as T;
        use ttg::Kind as G;
        match self.m.opcode(op) {
            Some(Opcode::Scf(scf::Kind::For)) => self.looped(scf::For(op)),
            Some(Opcode::Scf(scf::Kind::If)) if !self.m.results(op).iter().any(|&r| self.is_tensor(r)) => {
                for region in self.m.regions(op).to_vec() {
                    for block in self.m.region_blocks(region).to_vec() {
                        self.block(block)?;
                    }
                }
                Ok(())
            }
            Some(Opcode::Ttg(kind)) => match kind {
                G::LocalAlloc => self.alloc(ttg::LocalAlloc(op)),
                G::LocalLoad => self.load(ttg::LocalLoad(op)),
                G::LocalStore => self.store(ttg::LocalStore(op)),
                G::CopyGlobalToLocal | G::CopyLocalToGlobal | G::CopyLocal => self.copy(op, kind),
                G::MemdescReshape | G::MemdescSubslice | G::MemdescSubview => Ok(()),
                _ => Err(unsupported(self.m, op, format!("`{}`", self.m.op_name(op)))),
            },
            Some(Opcode::Tt(T::Load)) => self.load_global(tt::Load(op)),
            Some(Opcode::Tt(T::Store)) => self.store_global(tt::Store(op)),
            Some(Opcode::Tt(T::GetProgramId | T::GetNumPrograms | T::Return)) => Ok(()),
            Some(Opcode::Tt(T::Addptr)) => {
                // Where copies are made of it, it is taken apart.
                self.done.extend(self.is_tensor(self.m.result(op)).then_some(op));
                Ok(())
            }
            _ => {
                let values = self.m.operands(op).iter().chain(self.m.results(op));
                let on_tensors = values.copied().any(|v| self.is_tensor(v));
                let scalar =
                    matches!(self.m.opcode(op), Some(Opcode::Arith(_) | Opcode::Scf(scf::Kind::Yield)));
                match on_tensors {
                    false if scalar => Ok(()),
                    false => Err(unsupported(self.m, op, format!("`{}`", self.m.op_name(op)))),
                    true => self.tensor(op),
                }
            }
        }
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

    pub fn space(&self, buffer: Value) -> &str {
        match self.m.type_kind(self.m.value_type(buffer)) {
            TypeKind::MemDesc { memory_space, .. } => ascend::text(self.m, *memory_space),
            _ => "",
        }
    }

    /// The buffer that a tensor is computed into: the one that it is stored to right behind, or a new one.
    pub fn out(&mut self, op: Op, same_place: bool) -> Value {
        let result = self.m.result(op);
        if same_place
            && let [only] = self.m.uses(result)
            && let Some(store) = ttg::LocalStore::cast(self.m, only.op)
            && self.m.next_op(op) == Some(only.op)
            && self.space(store.dst(self.m)) == ascend::UB
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

    /// The buffer of a tensor.
    pub fn buffer(&mut self, op: Op, v: Value) -> Result<Value> {
        if let Some(&buffer) = self.buffers.get(&v) {
            return Ok(buffer);
        }
        let Some(&number) = self.numbers.get(&v) else {
            let what = self.m.defining_op(v).map_or("an argument", |op| self.m.op_name(op));
            return Err(unsupported(self.m, op, format!("a tensor that is made by `{what}`")));
        };
        let (shape, element) = (self.shape(v), self.element(v));
        let buffer = self.new_buffer(op, &shape, element, ascend::UB);
        vbrc(&mut Builder::before(self.m, op), number, buffer, &[]);
        self.buffers.insert(v, buffer);
        Ok(buffer)
    }

    fn alloc(&mut self, alloc: ttg::LocalAlloc) -> Result<()> {
        let (op, result) = (alloc.0, alloc.result(self.m));
        let Some(src) = alloc.src(self.m) else { return Ok(()) };
        let value = self.buffer(op, src)?;
        let own = self.m.uses(src).len() == 1
            && self.m.defining_op(src).is_some_and(|d| ttg::LocalLoad::cast(self.m, d).is_none())
            && self.m.value_type(value) == self.m.value_type(result);
        let held = if own {
            value
        } else {
            let (shape, element, space) =
                (self.shape(result), self.element(result), self.space(result).to_string());
            let held = self.new_buffer(op, &shape, element, &space);
            self.between(op, value, held)?;
            held
        };
        if let Some(name) = self.m.value_name(result).map(str::to_string) {
            self.m.name_value(held, &name);
        }
        self.m.replace_all_uses(result, held);
        self.done.push(op);
        Ok(())
    }

    /// Copies all of a buffer.
    pub fn between(&mut self, op: Op, from: Value, to: Value) -> Result<()> {
        if self.space(from) != ascend::UB || self.space(to) != ascend::UB {
            let name = |v| ascend::by_attribute(self.space(v)).map_or("", |s| s.name);
            let text = format!("a tensor that goes from {} to {}", name(from), name(to));
            return Err(
                unsupported(self.m, op, text).note("copy it through the memories on the way: tle.dsa.copy")
            );
        }
        copy(&mut Builder::before(self.m, op), from, to);
        Ok(())
    }

    fn load(&mut self, load: ttg::LocalLoad) -> Result<()> {
        let (op, src, result) = (load.0, load.src(self.m), load.result(self.m));
        self.done.push(op);
        if self.stays(op, src, result) {
            self.buffers.insert(result, src);
            return Ok(());
        }
        let (shape, element) = (self.shape(result), self.element(result));
        let copy = self.new_buffer(op, &shape, element, ascend::UB);
        self.between(op, src, copy)?;
        self.buffers.insert(result, copy);
        Ok(())
    }

    /// Whether a buffer holds what was loaded from it until the last use of that: all are in one block, with no write in between.
    fn stays(&self, load: Op, src: Value, loaded: Value) -> bool {
        let Some(block) = self.m.parent_block(load) else { return false };
        let uses: Vec<Op> = self.m.uses(loaded).iter().map(|u| u.op).collect();
        if uses.iter().any(|&user| self.m.parent_block(user) != Some(block)) {
            return false;
        }
        let mut root = src;
        while let Some(view) =
            self.m.defining_op(root).filter(|&d| ttg::LocalAlloc::cast(self.m, d).is_none())
        {
            root = self.m.operands(view)[0];
        }
        let mut work = vec![root];
        while let Some(v) = work.pop() {
            for user in self.m.uses(v) {
                work.extend(self.m.results(user.op).iter().filter(|&&r| {
                    matches!(self.m.type_kind(self.m.value_type(r)), TypeKind::MemDesc { .. })
                }));
                let written = |op: Op| match self.m.opcode(op) {
                    Some(Opcode::Ttg(
                        ttg::Kind::LocalStore | ttg::Kind::CopyGlobalToLocal | ttg::Kind::CopyLocal,
                    )) => 1..2,
                    _ => hivm::written(self.m, op),
                };
                if !self.m.operands(user.op)[written(user.op)].contains(&v) {
                    continue;
                }
                let Some(write) = self.m.ancestor_in_block(block, user.op) else { return false };
                if self.m.is_before(load, write) && uses.iter().any(|&u| self.m.is_before(write, u)) {
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
        if let Some(&number) = self.numbers.get(&src)
            && self.space(dst) == ascend::UB
        {
            vbrc(&mut Builder::before(self.m, op), number, dst, &[]);
            return Ok(());
        }
        let from = self.buffer(op, src)?;
        self.between(op, from, dst)
    }

    // ---- copies ------------------------------------------------------------------------------------------------

    fn copy(&mut self, op: Op, kind: ttg::Kind) -> Result<()> {
        self.done.push(op);
        let operands = self.m.operands(op).to_vec();
        let (src, dst, extents) = (operands[0], operands[1], &operands[2..]);
        let flag = |m: &Module| {
            m.op_attr(op, "inter_no_alias").is_some_and(|a| *m.attr_kind(a) == AttrKind::Bool(true))
        };
        let no_alias = flag(self.m);
        match kind {
            ttg::Kind::CopyGlobalToLocal => {
                let from = self.global(op, src, extents)?;
                let to = self.first(op, dst, extents);
                let in_ub = self.space(dst) == ascend::UB;
                let mut b = Builder::before(self.m, op);
                match in_ub {
                    true => load(&mut b, from, to, no_alias),
                    false => nd2nz(&mut b, from, to, no_alias),
                };
            }
            ttg::Kind::CopyLocalToGlobal => {
                let from = self.first(op, src, extents);
                let to = self.global(op, dst, extents)?;
                let in_ub = self.space(src) == ascend::UB;
                let mut b = Builder::before(self.m, op);
                match in_ub {
                    true => store(&mut b, from, to, no_alias),
                    false => fixpipe(&mut b, from, to, true, no_alias),
                };
            }
            _ => {
                let (from, to) = (self.first(op, src, extents), self.first(op, dst, extents));
                let product = self.space(src) == ascend::L0C;
                let mut b = Builder::before(self.m, op);
                match product {
                    true => fixpipe(&mut b, from, to, false, false),
                    false => copy(&mut b, from, to),
                };
            }
        }
        Ok(())
    }

    // ---- loops -------------------------------------------------------------------------------------------------

    /// A loop: tensors that it carries are in one buffer all the time.
    fn looped(&mut self, looped: scf::For) -> Result<()> {
        let op = looped.0;
        let body = self.m.region_block(looped.body(self.m));
        let init = looped.init(self.m).to_vec();
        let args = self.m.block_args(body)[1..].to_vec();
        let last = self.m.last_op(body).expect("a body ends in a yield");
        let yielded = self.m.operands(last).to_vec();
        let results = self.m.results(op).to_vec();
        let carried: Vec<usize> = (0..init.len()).filter(|&i| self.is_tensor(init[i])).collect();
        for &i in &carried {
            let shape = self.shape(init[i]);
            let element = self.element(init[i]);
            let product = tt::Dot::of(self.m, yielded[i]).filter(|d| d.c(self.m) == args[i]);
            let space = if product.is_some() { ascend::L0C } else { ascend::UB };
            let buffer = self.new_buffer(op, &shape, element, space);
            match product {
                Some(_) if !self.is_zero(init[i]) => {
                    return Err(unsupported(self.m, op, "a product that is added to anything but zeros"));
                }
                Some(_) => {}
                None => {
                    let from = self.buffer(op, init[i])?;
                    self.between(op, from, buffer)?;
                }
            }
            self.buffers.insert(args[i], buffer);
            self.buffers.insert(results[i], buffer);
        }
        self.block(body)?;
        for &i in &carried {
            let (from, to) = (self.buffer(last, yielded[i])?, self.buffers[&args[i]]);
            if from != to {
                self.between(last, from, to)?;
            }
        }
        if carried.is_empty() {
            return Ok(());
        }
        self.without(looped, &carried);
        Ok(())
    }

    fn is_zero(&self, v: Value) -> bool {
        let number = self.numbers.get(&v).and_then(|&n| self.m.constant_value(n));
        match number.map(|a| self.m.attr_kind(a)) {
            Some(AttrKind::Float(f, _)) => f.value() == 0.0,
            Some(AttrKind::Int(n, _)) => *n == 0,
            _ => false,
        }
    }

    /// Makes a loop that does not carry these values of one that does.
    fn without(&mut self, looped: scf::For, gone: &[usize]) {
        let (m, op) = (&mut *self.m, looped.0);
        let region = looped.body(m);
        let body = m.region_block(region);
        let kept = |all: &[Value]| -> Vec<Value> {
            all.iter().enumerate().filter(|(i, _)| !gone.contains(i)).map(|(_, &v)| v).collect()
        };
        let (lower, upper, step) = (looped.lower_bound(m), looped.upper_bound(m), looped.step(m));
        let init = kept(looped.init(m));
        let results = kept(m.results(op));
        let last = m.last_op(body).expect("a body ends in a yield");
        let yielded = kept(m.operands(last));
        m.set_operand_group(last, 0, &yielded);
        let types: Vec<Type> = results.iter().map(|&r| m.value_type(r)).collect();
        let attrs = m.op_attrs(op).to_vec();
        let new = scf::For::build(&mut Builder::before(m, op), lower, upper, step, &init, &types);
        for (name, attr) in attrs {
            m.set_attr(new.0, name, attr);
        }
        let to = new.body(m);
        m.move_blocks(region, to);
        for (old, fresh) in results.into_iter().zip(m.results(new.0).to_vec()) {
            m.replace_all_uses(old, fresh);
        }
        // The arguments go when nothing uses them any more: behind what is erased at the end.
        self.done.push(op);
        self.unused.push((body, gone.to_vec()));
    }

    // ---- tensors -----------------------------------------------------------------------------------------------

    fn tensor(&mut self, op: Op) -> Result<()> {
        use arith::Kind as A;
        use tt::Kind as T;
        let operands = self.m.operands(op).to_vec();
        self.done.push(op);
        match self.m.opcode(op) {
            Some(Opcode::Arith(A::Constant)) => return self.constant(op),
            Some(Opcode::Scf(scf::Kind::Yield)) => {
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
            Some(Opcode::Tt(T::Dot)) => return self.dot(tt::Dot(op)),
            _ => {}
        }
        let &[result] = self.m.results(op) else {
            return Err(unsupported(self.m, op, format!("`{}` of tensors", self.m.op_name(op))));
        };
        if self.m.is_ptr(self.element(result)) || self.only_addresses(result) {
            return Ok(());
        }
        // What is the same for all elements stays a number.
        if self.m.has_trait(op, Trait::Elementwise) && operands.iter().all(|v| self.numbers.contains_key(v)) {
            return self.number(op, &operands);
        }
        match self.m.opcode(op) {
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

    /// The operation on one number, for a tensor whose elements are all the same.
    fn number(&mut self, op: Op, operands: &[Value]) -> Result<()> {
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
    fn reshaped(&mut self, op: Op, buffer: Value, shape: &[u32]) -> Value {
        let mut kind = self.m.type_kind(self.m.value_type(buffer)).clone();
        if let TypeKind::MemDesc { shape: of, .. } = &mut kind {
            *of = shape.into();
        }
        let ty = self.m.ty(kind);
        ttg::MemdescReshape::build(&mut Builder::before(self.m, op), buffer, ty).result(self.m)
    }

    fn elementwise(&mut self, op: Op, operands: &[Value]) -> Result<()> {
        let Some(kind) = instruction(self.m, op) else {
            return Err(unsupported(self.m, op, format!("`{}` of tensors", self.m.op_name(op))));
        };
        let mut ins = Vec::new();
        // The last operand of two may be a number, but of those that combine bits.
        let bits = matches!(kind, Vector::Binary(hivm::Kind::Vand | hivm::Kind::Vor | hivm::Kind::Vxor, _));
        for (i, &v) in operands.iter().enumerate() {
            match self.numbers.get(&v) {
                Some(&number) if i == 1 && operands.len() == 2 && !bits => ins.push(number),
                _ => ins.push(self.buffer(op, v)?),
            }
        }
        let wide = kind.needs_f32() && self.element(operands[0]) == Type::BF16;
        if wide {
            ins = ins.into_iter().map(|v| self.widened(op, v)).collect();
        }
        let out = self.out(op, true);
        let shape = self.shape(out);
        let place = if wide { self.new_buffer(op, &shape, Type::F32, ascend::UB) } else { out };
        emit(&mut Builder::before(self.m, op), kind, &ins, place);
        if wide {
            vcast(&mut Builder::before(self.m, op), place, out, false);
        }
        Ok(())
    }

    /// A buffer of bf16, or a number, as 32-bit floats.
    fn widened(&mut self, op: Op, v: Value) -> Value {
        if self.m.value_type(v) == Type::BF16 {
            return arith::Extf::build(&mut Builder::before(self.m, op), v, Type::F32).out(self.m);
        }
        let shape = self.shape(v);
        let wide = self.new_buffer(op, &shape, Type::F32, ascend::UB);
        vcast(&mut Builder::before(self.m, op), v, wide, false);
        wide
    }

    fn reduce(&mut self, reduce: tt::Reduce) -> Result<()> {
        let op = reduce.0;
        let kind = combined(self.m, reduce).ok_or_else(|| {
            unsupported(self.m, op, "reductions of anything but one tensor by a sum, a maximum or a minimum")
        })?;
        let (src, axis) = (self.m.operands(op)[0], reduce.axis(self.m) as usize);
        if self.element(src) == Type::BF16 {
            return Err(
                unsupported(self.m, op, "reductions of bf16").note("reduce 32-bit floats: x.to(tl.float32)")
            );
        }
        let from = self.buffer(op, src)?;
        let (mut shape, element, result) = (self.shape(src), self.element(src), self.m.result(op));
        shape[axis] = 1;
        let out = self.new_buffer(op, &shape, element, ascend::UB);
        vreduce(&mut Builder::before(self.m, op), from, out, kind, axis);
        if self.is_tensor(result) {
            shape.remove(axis);
            let view = self.reshaped(op, out, &shape);
            self.buffers.insert(result, view);
            return Ok(());
        }
        let mut b = Builder::before(self.m, op);
        let zero = b.int(0, Type::INDEX);
        let scalar = memref::Load::build(&mut b, out, &[zero], element).result(b.module);
        self.m.replace_all_uses(result, scalar);
        Ok(())
    }

    fn dot(&mut self, dot: tt::Dot) -> Result<()> {
        let op = dot.0;
        let (a, b, c, result) = (dot.a(self.m), dot.b(self.m), dot.c(self.m), dot.result(self.m));
        let (left, right) = (self.buffer(op, a)?, self.buffer(op, b)?);
        for v in [left, right] {
            if self.space(v) == ascend::UB {
                return Err(unsupported(self.m, op, "a product of what is in UB")
                    .note("copy operands to tle.dsa.ascend.L1, from there to L0A and L0B, and give tle.dsa.to_tensor of these"));
            }
        }
        let (m, k, n) = (self.shape(a)[0], self.shape(a)[1], self.shape(b)[1]);
        let (out, init) = match self.buffers.get(&c).copied() {
            // Carried by the loop around: the first iteration begins with zeros.
            Some(out) if self.space(out) == ascend::L0C => {
                let looped = self.m.parent_op(op).and_then(|p| scf::For::cast(self.m, p));
                let Some(looped) = looped else { return Err(unsupported(self.m, op, "this product")) };
                let iv = self.m.block_args(self.m.region_block(looped.body(self.m)))[0];
                let lower = looped.lower_bound(self.m);
                let mut b = Builder::before(self.m, op);
                (
                    out,
                    arith::Cmpi::build(&mut b, iv, lower, arith::CmpIPredicate::Eq, Type::I1)
                        .result(b.module),
                )
            }
            None if self.is_zero(c) => {
                let (shape, element) = (self.shape(result), self.element(result));
                let out = self.new_buffer(op, &shape, element, ascend::L0C);
                (out, Builder::before(self.m, op).int(1, Type::I1))
            }
            _ => return Err(unsupported(self.m, op, "a product that is added to anything but zeros")),
        };
        let mut builder = Builder::before(self.m, op);
        let extents = [m, k, n].map(|e| builder.int(i64::from(e), Type::INDEX));
        mmad(&mut builder, [left, right], init, extents, out);
        self.buffers.insert(result, out);
        Ok(())
    }
}

/// What a vector instruction computes.
#[derive(Clone, Copy)]
enum Vector {
    Unary(hivm::Kind),
    Binary(hivm::Kind, bool),
    Cast(bool),
    Compare(CompareMode, bool),
    Select,
}

impl Vector {
    /// Whether it computes with floats of 16 and 32 bits, but not with bf16: such are widened, and the result rounded, which is what bf16 arithmetic means.
    fn needs_f32(self) -> bool {
        use hivm::Kind as H;
        match self {
            Vector::Unary(_) => true,
            Vector::Binary(kind, _) => matches!(kind, H::Vadd | H::Vsub | H::Vmul | H::Vdiv),
            _ => false,
        }
    }
}

/// Whether an operation converts truth values to numbers with a sign, or numbers to truth values.
fn bits(m: &Module, op: Op) -> bool {
    let values = m.operands(op).iter().chain(m.results(op));
    values.copied().any(|v| m.element_type(m.value_type(v)) == Type::I1)
}

/// The instruction of an elementwise operation, if there is one.
fn instruction(m: &Module, op: Op) -> Option<Vector> {
    use arith::Kind as A;
    use hivm::Kind as H;
    use math::Kind as M;
    Some(match m.opcode(op)? {
        Opcode::Arith(kind) => match kind {
            A::Addf | A::Addi => Vector::Binary(H::Vadd, false),
            A::Subf | A::Subi => Vector::Binary(H::Vsub, false),
            A::Mulf | A::Muli => Vector::Binary(H::Vmul, false),
            A::Divf | A::Divsi => Vector::Binary(H::Vdiv, false),
            A::Divui => Vector::Binary(H::Vdiv, true),
            A::Maxnumf | A::Maxsi => Vector::Binary(H::Vmax, false),
            A::Maxui => Vector::Binary(H::Vmax, true),
            A::Minnumf | A::Minsi => Vector::Binary(H::Vmin, false),
            A::Minui => Vector::Binary(H::Vmin, true),
            A::Andi => Vector::Binary(H::Vand, false),
            A::Ori => Vector::Binary(H::Vor, false),
            A::Xori => Vector::Binary(H::Vxor, false),
            // Of truth values there is a conversion as numbers of 0 or 1.
            A::Extsi | A::Sitofp | A::Trunci if bits(m, op) => return None,
            A::Extf | A::Truncf | A::Sitofp | A::Fptosi | A::Extsi | A::Trunci => Vector::Cast(false),
            A::Uitofp | A::Extui => Vector::Cast(true),
            A::Select => Vector::Select,
            A::Cmpi => {
                use arith::CmpIPredicate as P;
                let (mode, unsigned) = match arith::Cmpi(op).predicate(m) {
                    P::Eq => (CompareMode::Eq, false),
                    P::Ne => (CompareMode::Ne, false),
                    P::Slt => (CompareMode::Lt, false),
                    P::Sle => (CompareMode::Le, false),
                    P::Sgt => (CompareMode::Gt, false),
                    P::Sge => (CompareMode::Ge, false),
                    P::Ult => (CompareMode::Lt, true),
                    P::Ule => (CompareMode::Le, true),
                    P::Ugt => (CompareMode::Gt, true),
                    P::Uge => (CompareMode::Ge, true),
                };
                Vector::Compare(mode, unsigned)
            }
            A::Cmpf => {
                use arith::CmpFPredicate as P;
                Vector::Compare(
                    match arith::Cmpf(op).predicate(m) {
                        P::Oeq => CompareMode::Eq,
                        P::Une => CompareMode::Ne,
                        P::Olt => CompareMode::Lt,
                        P::Ole => CompareMode::Le,
                        P::Ogt => CompareMode::Gt,
                        P::Oge => CompareMode::Ge,
                        _ => return None,
                    },
                    false,
                )
            }
            _ => return None,
        },
        Opcode::Math(kind) => Vector::Unary(match kind {
            M::Exp => H::Vexp,
            M::Log => H::Vln,
            M::Sqrt => H::Vsqrt,
            M::Rsqrt => H::Vrsqrt,
            M::Absf | M::Absi => H::Vabs,
            _ => return None,
        }),
        _ => return None,
    })
}

fn emit(b: &mut Builder<'_>, kind: Vector, ins: &[Value], out: Value) {
    match kind {
        Vector::Unary(kind) => vector(b, kind, ins, out, false),
        Vector::Binary(kind, unsigned) => vector(b, kind, ins, out, unsigned),
        Vector::Cast(unsigned) => vcast(b, ins[0], out, unsigned),
        Vector::Compare(mode, unsigned) => vcmp(b, ins, out, mode, unsigned),
        Vector::Select => vsel(b, ins, out),
    };
}

/// How a reduction combines elements, if by one operation on one tensor.
fn combined(m: &Module, reduce: tt::Reduce) -> Option<ReduceKind> {
    use arith::Kind as A;
    let block = m.region_block(reduce.combine(m));
    let ops: Vec<Op> = m.block_ops(block).collect();
    let &[op, end] = &ops[..] else { return None };
    let args = m.block_args(block);
    let both =
        m.operands(op).iter().all(|v| args.contains(v)) && m.operands(op).first() != m.operands(op).last();
    if args.len() != 2 || !both || m.operands(end) != m.results(op) {
        return None;
    }
    match m.opcode(op)? {
        Opcode::Arith(A::Addf | A::Addi) => Some(ReduceKind::Sum),
        Opcode::Arith(A::Maxnumf | A::Maxsi) => Some(ReduceKind::Max),
        Opcode::Arith(A::Minnumf | A::Minsi) => Some(ReduceKind::Min),
        _ => None,
    }
}
