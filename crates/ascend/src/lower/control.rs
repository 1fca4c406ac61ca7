//! Loops and branches: the tensors that they hand on are in buffers.
//!
//! ```text
//! %r = scf.for … iter_args(%x = %init) -> tensor<64xf32> {          hivm.hir.copy ins(%init') outs(%a)
//!   %y = arith.addf %x, %x                                    =>    scf.for … { hivm.hir.vadd ins(%a, %a) outs(%b) ; hivm.hir.copy ins(%b) outs(%a) }
//!   scf.yield %y
//! }
//! ```

use tilewright_ir::dialect::{arith, memref, scf, tt};
use tilewright_ir::memref::MemRef;
use tilewright_ir::{Builder, InsertPoint, Op, Type, Value, ascend};
use tilewright_passes::analysis::affine::Affine;

use super::global::Part;
use super::instructions::{mmad, nd2nz, vbrc};
use super::scalar::{Elements, Places};
use super::vectors::{Lower, Result};
use super::{shows_whole, unsupported};

/// Terms of a product of zeros.
const DEPTH: u32 = 16;

impl Lower<'_> {
    /// A loop: tensors that it carries are in one buffer all the time.
    pub fn looped(&mut self, looped: scf::For) -> Result<()> {
        let op = looped.0;
        let body = self.m.region_block(looped.body(self.m));
        let init = looped.init(self.m).to_vec();
        let args = self.m.block_args(body)[1..].to_vec();
        let last = self.m.last_op(body).expect("a body ends in a yield");
        let yielded = self.m.operands(last).to_vec();
        let results = self.m.results(op).to_vec();
        // Pointers are taken apart where they are used.
        let pointers: Vec<usize> =
            (0..init.len()).filter(|&i| self.m.is_ptr(self.element(init[i]))).collect();
        let walking: Vec<usize> = pointers
            .iter()
            .copied()
            .filter(|&i| self.is_tensor(args[i]) && !self.is_block(args[i]))
            .collect();
        for &i in &walking {
            let offsets = self.offsets_of(op, init[i])?;
            self.carried.insert(args[i], offsets);
            self.carried.insert(results[i], offsets);
        }
        let carried = |i: &usize| self.is_tensor(init[*i]) && !pointers.contains(i);
        let carried: Vec<usize> = (0..init.len()).filter(carried).collect();
        for &i in &carried {
            let (shape, element) = (self.shape(init[i]), self.element(init[i]));
            // What one product after the other is added to stays where they are.
            let sum = tt::Dot::of(self.m, yielded[i]).is_some_and(|d| d.c(self.m) == args[i])
                && self.m.uses(args[i]).len() == 1
                && self.is_zero(init[i]);
            let buffer = self.new_buffer(op, &shape, element, if sum { ascend::L0C } else { ascend::UB });
            if !sum {
                self.put(op, init[i], buffer)?;
            }
            self.buffers.insert(args[i], buffer);
            self.buffers.insert(results[i], buffer);
        }
        self.block(body)?;
        let walking: Vec<(Value, Value)> = walking.into_iter().map(|i| (yielded[i], args[i])).collect();
        self.walk_on(last, &walking)?;
        self.carry_on(
            last,
            &carried.iter().map(|&i| (yielded[i], self.buffers[&args[i]])).collect::<Vec<_>>(),
        )?;
        let gone: Vec<usize> =
            (0..init.len()).filter(|i| carried.contains(i) || pointers.contains(i)).collect();
        if !gone.is_empty() {
            self.without(looped, &gone);
        }
        // (In front of the loop that goes, and so behind the one that takes its place.)
        for &i in &carried {
            let sum = self.buffers[&args[i]];
            if self.space(sum) == ascend::L0C
                && let Some(dot) = tt::Dot::of(self.m, yielded[i])
            {
                self.without_iterations(looped, dot, sum)?;
            }
        }
        Ok(())
    }

    /// Whether pointers lead to a block, as the engines copy it.
    fn is_block(&self, pointers: Value) -> bool {
        let found = |affine: Affine<'_>| affine.wrapping(pointers).is_ok();
        found(Affine::of_indices(self.m)) || found(Affine::new(self.m))
    }

    /// Where pointers that are no block lead: from which argument of the kernel on, and a buffer with how many elements.
    fn offsets_of(&mut self, op: Op, pointers: Value) -> Result<(Value, Value)> {
        let places = self.places(op, pointers)?;
        let Places::Global(base, terms) = places else {
            return Err(unsupported(self.m, op, "pointers into a buffer that a loop carries"));
        };
        let shape = self.shape(pointers);
        let offsets = self.new_buffer(op, &shape, Type::I64, ascend::UB);
        self.put_sums(op, &terms, offsets, &shape);
        Ok((base, offsets))
    }

    /// Puts the sums of numbers into a buffer, element by element.
    fn put_sums(&mut self, op: Op, terms: &[Elements], into: Value, shape: &[u32]) {
        let (indices, at) = self.nest(op, shape);
        let sum = self.sum_at(at, terms, &indices);
        let sum = sum.unwrap_or_else(|| Builder::before(self.m, at).int(0, Type::I64));
        self.put_at(at, sum, into, &indices);
    }

    /// Pointers that are no block go on to where the next iteration has them.
    fn walk_on(&mut self, end: Op, walking: &[(Value, Value)]) -> Result<()> {
        for &(to, arg) in walking {
            let (base, offsets) = self.carried[&arg];
            let others = walking.iter().filter(|(_, other)| *other != arg);
            let others: Vec<Value> = others.map(|(_, other)| self.carried[other].1).collect();
            let Places::Global(from, terms) = self.places(end, to)? else {
                return Err(unsupported(self.m, end, "pointers into a buffer that a loop carries"));
            };
            let takes = |term: &Elements| matches!(term, Elements::Buffer(b) if others.contains(b));
            if from != base || terms.iter().any(takes) {
                return Err(unsupported(self.m, end, "pointers that a loop carries and that change places"));
            }
            let shape = self.shape(arg);
            self.put_sums(end, &terms, offsets, &shape);
        }
        Ok(())
    }

    /// Makes a sum of products zeros behind a loop that had no iteration: the product of two matrices of zeros, which come to L1 as what is around a block of no elements.
    fn without_iterations(&mut self, looped: scf::For, dot: tt::Dot, sum: Value) -> Result<()> {
        let op = looped.0;
        let (lower, upper) = (looped.lower_bound(self.m), looped.upper_bound(self.m));
        if let (Some(from), Some(to)) = (self.m.constant_int(lower), self.m.constant_int(upper))
            && from < to
        {
            return Ok(());
        }
        let element = self.element(dot.a(self.m));
        let pointer = self.kernel_pointer(op, element);
        let mut b = Builder::before(self.m, op);
        let none =
            arith::Cmpi::build(&mut b, lower, upper, arith::CmpIPredicate::Sge, Type::I1).result(b.module);
        let branch = scf::If::build(&mut b, none, &[]);
        let block = self.m.append_block(branch.then_region(self.m), &[]);
        let loc = self.m.op_loc(op);
        let end = scf::Yield::build(&mut Builder::at(self.m, InsertPoint::End(block), loc), &[]).0;
        let shape = self.shape(sum);
        let (rows, columns) = (shape[0], shape[1]);
        let mut operands = Vec::new();
        for extents in [[rows, DEPTH], [DEPTH, columns]] {
            let buffer = self.new_buffer(end, &extents, element, ascend::L1);
            let float = self.m.is_float(element);
            let mut b = Builder::before(self.m, end);
            let (pad, nothing) =
                (if float { b.float(0.0, element) } else { b.int(0, element) }, b.int(0, Type::I64));
            let part = Part::first(&[nothing, nothing]);
            let from = match pointer {
                Some(pointer) => self.nothing(end, pointer, element),
                // (Of no pointer of the kernel is it a block: of the workspace, then.)
                None => {
                    let shared = self.new_buffer(end, &[1, 1], element, ascend::GM);
                    self.of_buffer(end, shared, &part)
                }
            };
            let to = self.of_buffer(end, buffer, &part);
            nd2nz(&mut Builder::before(self.m, end), from, to, Some(pad), false);
            operands.push(buffer);
        }
        let mut b = Builder::before(self.m, end);
        let init = b.int(1, Type::I1);
        let extents = [rows, DEPTH, columns].map(|n| b.int(i64::from(n), Type::INDEX));
        mmad(&mut b, [operands[0], operands[1]], [false, false], init, extents, sum);
        Ok(())
    }

    /// An argument of the kernel that points to such elements.
    fn kernel_pointer(&self, inside: Op, element: Type) -> Option<Value> {
        let mut func = inside;
        while tt::Func::cast(self.m, func).is_none() {
            func = self.m.parent_op(func)?;
        }
        let entry = *self.m.region_blocks(tt::Func(func).body(self.m)).first()?;
        let pointee = |v: Value| self.m.pointee_type(self.m.value_type(v));
        self.m.block_args(entry).iter().copied().find(|&v| pointee(v) == Some(element))
    }

    /// A block of no elements of global memory.
    fn nothing(&mut self, op: Op, pointer: Value, element: Type) -> Value {
        let ty = MemRef { shape: vec![None; 2], element, strided: true, space: &ascend::GLOBAL }.ty(self.m);
        let mut b = Builder::before(self.m, op);
        let (zero, one) = (b.int(0, Type::INDEX), b.int(1, Type::INDEX));
        let (sizes, strides) = ([zero, zero], [one, one]);
        memref::ReinterpretCast::build(&mut b, pointer, &[zero], &sizes, &strides, None, None, None, ty)
            .result(self.m)
    }

    /// Puts what an iteration hands to the next one into the buffers that are carried, as if all at once.
    fn carry_on(&mut self, end: Op, handed: &[(Value, Value)]) -> Result<()> {
        let carried: Vec<Value> = handed.iter().map(|&(_, to)| to).collect();
        let mut aside = Vec::new();
        for &(v, to) in handed {
            let from = self.buffers.get(&v).copied();
            let root = from.map(|mut from| {
                while let Some(view) = self.m.defining_op(from).filter(|&d| shows_whole(self.m, d)) {
                    from = self.m.operands(view)[0];
                }
                from
            });
            match (from, root) {
                (Some(from), Some(root)) if root != to && carried.contains(&root) => {
                    let (shape, element) = (self.shape(from), self.element(from));
                    let copy = self.new_buffer(end, &shape, element, ascend::UB);
                    self.between(end, from, copy)?;
                    aside.push((copy, to));
                }
                _ => {}
            }
        }
        for &(v, to) in handed {
            match aside.iter().find(|(_, other)| *other == to) {
                Some(&(copy, to)) => self.between(end, copy, to)?,
                None => self.put(end, v, to)?,
            }
        }
        Ok(())
    }

    /// Makes a loop that does not carry these values of one that does.
    fn without(&mut self, looped: scf::For, gone: &[usize]) {
        let (m, op) = (&mut *self.m, looped.0);
        let region = looped.body(m);
        let body = m.region_block(region);
        let (lower, upper, step) = (looped.lower_bound(m), looped.upper_bound(m), looped.step(m));
        let init = others(looped.init(m), gone);
        let results = others(m.results(op), gone);
        let last = m.last_op(body).expect("a body ends in a yield");
        let yielded = others(m.operands(last), gone);
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
        self.unused.push((body, gone.iter().map(|i| i + 1).collect()));
    }

    /// A loop whose end is not known where it begins: a tensor that an iteration begins with is in one buffer all the time, and what its condition computes and hands on in another.
    pub fn repeated(&mut self, repeated: scf::While) -> Result<()> {
        let op = repeated.0;
        let (init, results) = (self.m.operands(op).to_vec(), self.m.results(op).to_vec());
        if init.iter().chain(&results).any(|&v| self.m.is_ptr(self.element(v))) {
            return Err(unsupported(self.m, op, "pointers that a `while` loop carries"));
        }
        let tensors = |l: &Self, of: &[Value]| -> Vec<usize> {
            (0..of.len()).filter(|&i| l.is_tensor(of[i])).collect()
        };
        let (carried, given) = (tensors(self, &init), tensors(self, &results));
        let [before, after] =
            [repeated.before(self.m), repeated.after(self.m)].map(|r| self.m.region_block(r));
        let (begin, inner) = (self.m.block_args(before).to_vec(), self.m.block_args(after).to_vec());
        for &i in &carried {
            let buffer = self.beside(op, init[i]);
            self.put(op, init[i], buffer)?;
            self.buffers.insert(begin[i], buffer);
        }
        self.block(before)?;
        let condition = self.m.last_op(before).expect("a condition ends the first block");
        let handed = self.m.operands(condition)[1..].to_vec();
        if self.multiplies(op) {
            self.condition_of_vectors(condition);
        }
        for &i in &given {
            let buffer = match begin.contains(&handed[i]) {
                true => self.buffers[&handed[i]],
                false => {
                    let buffer = self.beside(op, results[i]);
                    self.put(condition, handed[i], buffer)?;
                    buffer
                }
            };
            self.buffers.insert(inner[i], buffer);
            self.buffers.insert(results[i], buffer);
        }
        self.block(after)?;
        let last = self.m.last_op(after).expect("a body ends in a yield");
        let yielded = self.m.operands(last).to_vec();
        let back: Vec<_> = carried.iter().map(|&i| (yielded[i], self.buffers[&begin[i]])).collect();
        self.carry_on(last, &back)?;
        if !carried.is_empty() || !given.is_empty() {
            self.without_tensors(repeated, &carried, &given);
        }
        Ok(())
    }

    /// Whether the kernel that an operation is in has products.
    fn multiplies(&self, inside: Op) -> bool {
        let mut func = inside;
        while let Some(around) = self.m.parent_op(func).filter(|_| tt::Func::cast(self.m, func).is_none()) {
            func = around;
        }
        self.m.all_ops(func).into_iter().any(|op| tt::Dot::cast(self.m, op).is_some())
    }

    /// Has one core say whether a loop goes on, which reads that where vectors have it: the cube core goes by the same number then
    /// ([`shared_numbers`](super::shared_numbers)), whenever it comes there.
    fn condition_of_vectors(&mut self, condition: Op) {
        let truth = self.m.operands(condition)[0];
        let said = self.new_buffer(condition, &[1], Type::I32, ascend::UB);
        let mut b = Builder::before(self.m, condition);
        let number = arith::Extui::build(&mut b, truth, Type::I32).out(b.module);
        vbrc(&mut b, number, said, &[]);
        let first = b.int(0, Type::INDEX);
        let number = memref::Load::build(&mut b, said, &[first], Type::I32).result(b.module);
        let none = b.int(0, Type::I32);
        let goes_on = arith::Cmpi::build(&mut b, number, none, arith::CmpIPredicate::Ne, Type::I1);
        let goes_on = goes_on.result(b.module);
        self.m.set_operand(condition, 0, goes_on);
    }

    /// A new buffer in UB for what a loop hands on.
    fn beside(&mut self, op: Op, v: Value) -> Value {
        let (shape, element) = (self.shape(v), self.element(v));
        self.new_buffer(op, &shape, element, ascend::UB)
    }

    /// Makes a loop that does not carry these values, and gives those others, of one that does.
    fn without_tensors(&mut self, repeated: scf::While, carried: &[usize], given: &[usize]) {
        let (m, op) = (&mut *self.m, repeated.0);
        let [before, after] = [repeated.before(m), repeated.after(m)];
        let [first, second] = [before, after].map(|region| m.region_block(region));
        let (init, results) = (others(m.operands(op), carried), others(m.results(op), given));
        for (block, group, gone, skipped) in [(first, 1, given, 1), (second, 0, carried, 0)] {
            let end = m.last_op(block).expect("a block of a loop has an end");
            let kept = others(&m.operands(end)[skipped..], gone);
            m.set_operand_group(end, group, &kept);
        }
        let types: Vec<Type> = results.iter().map(|&r| m.value_type(r)).collect();
        let new = scf::While::build(&mut Builder::before(m, op), &init, &types);
        for (from, to) in [before, after].into_iter().zip([new.before(m), new.after(m)]) {
            m.move_blocks(from, to);
        }
        for (old, fresh) in results.into_iter().zip(m.results(new.0).to_vec()) {
            m.replace_all_uses(old, fresh);
        }
        self.done.push(op);
        self.unused.push((first, carried.to_vec()));
        self.unused.push((second, given.to_vec()));
    }

    /// A branch: each side puts what it gives into the same buffers.
    pub fn branch(&mut self, branch: scf::If) -> Result<()> {
        let op = branch.0;
        let results = self.m.results(op).to_vec();
        if let Some(&pointer) = results.iter().find(|&&r| self.m.is_ptr(self.element(r))) {
            let error = unsupported(self.m, op, "pointers that a branch gives");
            return Err(error
                .note(format!("of type {}", tilewright_ir::print_type(self.m, self.m.value_type(pointer)))));
        }
        let given: Vec<usize> = (0..results.len()).filter(|&i| self.is_tensor(results[i])).collect();
        for &i in &given {
            let (shape, element) = (self.shape(results[i]), self.element(results[i]));
            let buffer = self.new_buffer(op, &shape, element, ascend::UB);
            self.buffers.insert(results[i], buffer);
        }
        for region in self.m.regions(op).to_vec() {
            for block in self.m.region_blocks(region).to_vec() {
                self.block(block)?;
                let Some(end) = self.m.last_op(block) else { continue };
                let yielded = self.m.operands(end).to_vec();
                for &i in &given {
                    self.put(end, yielded[i], self.buffers[&results[i]])?;
                }
            }
        }
        if given.is_empty() {
            return Ok(());
        }
        let m = &mut *self.m;
        let kept: Vec<usize> = (0..results.len()).filter(|i| !given.contains(i)).collect();
        let types: Vec<Type> = kept.iter().map(|&i| m.value_type(results[i])).collect();
        let condition = branch.condition(m);
        let new = scf::If::build(&mut Builder::before(m, op), condition, &types);
        for (from, to) in m.regions(op).to_vec().into_iter().zip(m.regions(new.0).to_vec()) {
            for block in m.region_blocks(from).to_vec() {
                let end = m.last_op(block).expect("a block of a branch with results ends in a yield");
                let yielded: Vec<Value> = kept.iter().map(|&i| m.operands(end)[i]).collect();
                m.set_operand_group(end, 0, &yielded);
            }
            m.move_blocks(from, to);
        }
        for (i, fresh) in kept.into_iter().zip(m.results(new.0).to_vec()) {
            m.replace_all_uses(results[i], fresh);
        }
        self.done.push(op);
        Ok(())
    }
}

/// The values but these.
fn others(all: &[Value], gone: &[usize]) -> Vec<Value> {
    all.iter().enumerate().filter(|(i, _)| !gone.contains(i)).map(|(_, &v)| v).collect()
}
