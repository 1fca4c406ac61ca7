//! What no instruction of vectors does: the scalar unit goes through the elements one by one.
//!
//! That is loads and stores whose pointers or masks are no blocks, elements of buffers through pointers (`tle.dsa.local_ptr`), reductions and scans of several tensors or by
//! operations of the kernel's own, and elementwise operations that vectors have no instruction for. It is slow, and right for all of them.
//!
//! ```text
//! %p = tt.addptr (tt.splat %x), %i                   scf.for %k = %c0 to %c64 step %c1 {
//! %y = tt.load %p, %m                           =>     %o = memref.load %offsets[%k] ; %c = memref.load %mask[%k]
//!                                                      scf.if %c { %e = memref.load %x[%o] ; memref.store %e, %b[%k] } else { memref.store %zero, %b[%k] }
//!                                                    }
//! ```

use rustc_hash::FxHashMap;
use tilewright_ir::dialect::hivm::AtomicKind;
use tilewright_ir::dialect::{arith, memref, scf, tt, ttg};
use tilewright_ir::{Block, Builder, InsertPoint, Module, Op, Opcode, Type, Value, ascend};

use super::addresses::Address;
use super::global::Part;
use super::instructions::{store, vbrc};
use super::vectors::{Lower, Result};
use super::{unsupported, widened};

/// A tensor as the scalar unit reads it.
#[derive(Clone, Copy)]
pub(super) enum Elements {
    /// All are this number.
    Number(Value),
    /// They lie in a buffer in UB, once along dimensions of which it has one.
    Buffer(Value),
}

/// Where pointers lead that are no block.
pub(super) enum Places {
    /// Global memory, from an argument of the kernel on, by the sum of these.
    Global(Value, Vec<Elements>),
    /// A buffer, by an index along each dimension.
    Buffer(Value, Vec<Elements>),
}

/// What loops go through that deal with one element after the other.
pub(super) struct Scattered {
    /// Where all of them lie.
    pub places: Places,
    /// The indices of the one that is dealt with.
    pub indices: Vec<Value>,
    /// The operation in front of which it is.
    pub at: Op,
    /// The one where its mask does not hold, if there is a mask.
    pub elsewhere: Option<Op>,
}

impl Lower<'_> {
    // ---- loops -------------------------------------------------------------------------------------------------

    /// Loops over all elements of a shape: the indices, and the operation in front of which an element is dealt with.
    pub fn nest(&mut self, op: Op, shape: &[u32]) -> (Vec<Value>, Op) {
        let (mut at, mut indices) = (op, Vec::new());
        for &n in shape {
            let mut b = Builder::before(self.m, at);
            let [from, to, by] = [0, i64::from(n), 1].map(|n| b.int(n, Type::INDEX));
            let looped = scf::For::build(&mut b, from, to, by, &[], &[]);
            let body = self.m.append_block(looped.body(self.m), &[Type::INDEX]);
            at = self.end(op, body, &[]);
            indices.push(self.m.block_args(body)[0]);
        }
        (indices, at)
    }

    /// Ends a block.
    fn end(&mut self, op: Op, block: Block, yielded: &[Value]) -> Op {
        let loc = self.m.op_loc(op);
        scf::Yield::build(&mut Builder::at(self.m, InsertPoint::End(block), loc), yielded).0
    }

    /// A branch: the ends of what is done where a condition holds, and elsewhere.
    pub fn either(&mut self, at: Op, condition: Value) -> (Op, Op) {
        let branch = scf::If::build(&mut Builder::before(self.m, at), condition, &[]);
        let regions = [branch.then_region(self.m), branch.else_region(self.m)];
        let [then, other] = regions.map(|region| self.m.append_block(region, &[]));
        (self.end(at, then, &[]), self.end(at, other, &[]))
    }

    pub fn element_at(&mut self, at: Op, elements: Elements, indices: &[Value]) -> Value {
        let buffer = match elements {
            Elements::Number(number) => return number,
            Elements::Buffer(buffer) => buffer,
        };
        let (shape, element) = (self.shape(buffer), self.element(buffer));
        let mut b = Builder::before(self.m, at);
        let zero = b.int(0, Type::INDEX);
        let own: Vec<Value> =
            shape.iter().zip(indices).map(|(&n, &i)| if n == 1 { zero } else { i }).collect();
        memref::Load::build(&mut b, buffer, &own, element).result(b.module)
    }

    pub fn put_at(&mut self, at: Op, value: Value, buffer: Value, indices: &[Value]) {
        memref::Store::build(&mut Builder::before(self.m, at), value, buffer, indices);
    }

    // ---- tensors -----------------------------------------------------------------------------------------------

    /// A tensor, or a number, as it is read element by element.
    pub fn elements(&mut self, op: Op, v: Value) -> Result<Elements> {
        if !self.is_tensor(v) {
            return Ok(Elements::Number(v));
        }
        self.computed(op, v)?;
        match self.numbers.get(&v) {
            Some(&number) => Ok(Elements::Number(number)),
            None => self.buffer(op, v).map(Elements::Buffer),
        }
    }

    /// Computes what was taken for part of an address or a mask alone.
    fn computed(&mut self, op: Op, v: Value) -> Result<()> {
        if self.buffers.contains_key(&v) || self.numbers.contains_key(&v) {
            return Ok(());
        }
        let Some(made) = self.m.defining_op(v).filter(|&made| self.m.results(made).len() == 1) else {
            return Err(unsupported(self.m, op, "a tensor of indices that is an argument"));
        };
        for operand in self.m.operands(made).to_vec() {
            if self.is_tensor(operand) {
                self.computed(op, operand)?;
            }
        }
        self.compute(made)
    }

    /// Where pointers lead.
    pub fn places(&mut self, op: Op, pointers: Value) -> Result<Places> {
        if let Some(&(base, offsets)) = self.carried.get(&pointers) {
            return Ok(Places::Global(base, vec![Elements::Buffer(offsets)]));
        }
        let Some(made) = self.m.defining_op(pointers) else {
            return match self.is_tensor(pointers) {
                false => Ok(Places::Global(pointers, Vec::new())),
                true => Err(unsupported(self.m, op, "pointers that a loop carries, and that are no block")),
            };
        };
        let operands = self.m.operands(made).to_vec();
        if let Some(local) = ttg::LocalPtr::cast(self.m, made) {
            let indices = local.indices(self.m).to_vec();
            let indices = indices.into_iter().map(|i| self.elements(op, i)).collect::<Result<_>>()?;
            return Ok(Places::Buffer(local.src(self.m), indices));
        }
        let mut places = match self.m.opcode(made) {
            Some(Opcode::Tt(
                tt::Kind::Addptr
                | tt::Kind::Splat
                | tt::Kind::ExpandDims
                | tt::Kind::Broadcast
                | tt::Kind::Reshape,
            )) => self.places(op, operands[0])?,
            _ => {
                let what = format!("pointers that are made by `{}`", self.m.op_name(made));
                return Err(unsupported(self.m, op, what));
            }
        };
        let (Places::Global(_, terms) | Places::Buffer(_, terms)) = &mut places;
        match self.m.opcode(made) {
            Some(Opcode::Tt(tt::Kind::Addptr)) => {
                if matches!(places, Places::Buffer(..)) {
                    return Err(unsupported(self.m, op, "arithmetic on pointers into a buffer")
                        .note("give the element's indices to tle.dsa.local_ptr instead"));
                }
                let term = self.elements(op, operands[1])?;
                if let Places::Global(_, terms) = &mut places {
                    terms.push(term);
                }
            }
            Some(Opcode::Tt(tt::Kind::ExpandDims | tt::Kind::Reshape)) => {
                let (from, to) = (self.shape(operands[0]), self.shape(pointers));
                for term in terms {
                    if let Elements::Buffer(buffer) = term {
                        *term = Elements::Buffer(self.under(op, *buffer, &from, &to));
                    }
                }
            }
            _ => {}
        }
        Ok(places)
    }

    /// A buffer that stands for a tensor of one shape, under another one with the same elements in row-major order.
    fn under(&mut self, op: Op, buffer: Value, from: &[u32], to: &[u32]) -> Value {
        let (has, element) = (self.shape(buffer), self.element(buffer));
        let mut whole = buffer;
        if has != from {
            whole = self.new_buffer(op, from, element, ascend::UB);
            let dims: Vec<usize> = (0..from.len()).filter(|&d| has[d] != from[d]).collect();
            vbrc(&mut Builder::before(self.m, op), buffer, whole, &dims);
        }
        self.reshaped(op, whole, to)
    }

    /// The memory of an element, and its indices there.
    pub fn place_at(
        &mut self,
        at: Op,
        places: &Places,
        element: Type,
        indices: &[Value],
    ) -> (Value, Vec<Value>) {
        match places {
            Places::Global(base, terms) => {
                let view = self.view_at(at, *base, terms, element, indices, 0);
                let zero = Builder::before(self.m, at).int(0, Type::INDEX);
                (view, vec![zero])
            }
            Places::Buffer(buffer, terms) => {
                let mut own = Vec::new();
                for &term in terms {
                    let index = self.element_at(at, term, indices);
                    let mut b = Builder::before(self.m, at);
                    own.push(match b.module.value_type(index) {
                        Type::INDEX => index,
                        _ => arith::IndexCast::build(&mut b, index, Type::INDEX).out(b.module),
                    });
                }
                (*buffer, own)
            }
        }
    }

    /// One element of global memory, as a view of so many dimensions (at least one).
    fn view_at(
        &mut self,
        at: Op,
        base: Value,
        terms: &[Elements],
        element: Type,
        indices: &[Value],
        rank: usize,
    ) -> Value {
        let offset = self.sum_at(at, terms, indices);
        let one = Builder::before(self.m, at).int(1, Type::I64);
        let address = Address { base, offset, strides: vec![Some(one); rank] };
        self.view(at, &address, element, &Part::first(&vec![one; rank]))
    }

    /// The sum of an element of each; none of none.
    pub fn sum_at(&mut self, at: Op, terms: &[Elements], indices: &[Value]) -> Option<Value> {
        let mut sum = None;
        for &term in terms {
            let number = self.element_at(at, term, indices);
            let mut b = Builder::before(self.m, at);
            let number = widened(&mut b, number);
            sum = Some(match sum {
                Some(sum) => arith::Addi::build(&mut b, sum, number).result(b.module),
                None => number,
            });
        }
        sum
    }

    // ---- memory ------------------------------------------------------------------------------------------------

    /// Loops over the elements that pointers of a shape lead to, of which a mask leaves some.
    pub fn scattered(
        &mut self,
        op: Op,
        pointers: Value,
        mask: Option<Value>,
        shape: &[u32],
    ) -> Result<Scattered> {
        let places = self.places(op, pointers)?;
        let mask = mask.map(|mask| self.elements(op, mask)).transpose()?;
        let (indices, mut at) = self.nest(op, shape);
        let mut elsewhere = None;
        if let Some(mask) = mask {
            let condition = self.element_at(at, mask, &indices);
            let (then, otherwise) = self.either(at, condition);
            (at, elsewhere) = (then, Some(otherwise));
        }
        Ok(Scattered { places, indices, at, elsewhere })
    }

    /// A load from anywhere.
    pub fn load_scattered(&mut self, load: tt::Load) -> Result<()> {
        let op = load.0;
        let result = load.result(self.m);
        let (shape, element) = (self.shape(result), self.element(result));
        let other = match load.other(self.m) {
            Some(other) => self.elements(op, other)?,
            None => Elements::Number(self.other(load)),
        };
        let buffer = self.out(op, false);
        let (pointers, mask) = (load.ptr(self.m), load.mask(self.m));
        let Scattered { places, indices, at, elsewhere } = self.scattered(op, pointers, mask, &shape)?;
        if let Some(elsewhere) = elsewhere {
            let other = self.element_at(elsewhere, other, &indices);
            self.put_at(elsewhere, other, buffer, &indices);
        }
        let (memory, own) = self.place_at(at, &places, element, &indices);
        let value = memref::Load::build(&mut Builder::before(self.m, at), memory, &own, element);
        let value = value.result(self.m);
        self.put_at(at, value, buffer, &indices);
        Ok(())
    }

    /// A store to anywhere. What is combined with what lies there goes by an engine, element by element.
    pub fn store_scattered(
        &mut self,
        op: Op,
        pointers: Value,
        value: Value,
        mask: Option<Value>,
        kind: Option<AtomicKind>,
    ) -> Result<()> {
        let (shape, element) = (self.shape(value), self.element(value));
        let values = match kind {
            None => self.elements(op, value)?,
            Some(_) => Elements::Buffer(self.buffer(op, value)?),
        };
        let Scattered { places, indices, at, .. } = self.scattered(op, pointers, mask, &shape)?;
        match (kind, &places, values) {
            (Some(kind), Places::Global(base, terms), Elements::Buffer(buffer)) => {
                let to = self.view_at(at, *base, terms, element, &indices, shape.len());
                let ones = vec![1; shape.len()];
                let from = self.strided(at, buffer, &indices, &ones, &vec![1; shape.len()]);
                store(&mut Builder::before(self.m, at), from, to, false, Some(kind));
            }
            (Some(_), ..) => return Err(unsupported(self.m, op, "an atomic operation on a buffer")),
            (None, ..) => {
                let (memory, own) = self.place_at(at, &places, element, &indices);
                let value = self.element_at(at, values, &indices);
                self.put_at(at, value, memory, &own);
            }
        }
        Ok(())
    }

    /// Whether pointers are of one element of a buffer, or of several.
    pub fn leads_to_buffer(&self, pointers: Value) -> bool {
        buffer_of(self.m, pointers).is_some()
    }

    /// A load of one number: from a buffer, or where its mask holds.
    pub fn load_one(&mut self, load: tt::Load) -> Result<()> {
        let (op, result) = (load.0, load.result(self.m));
        let ty = self.m.value_type(result);
        let places = self.places(op, load.ptr(self.m))?;
        let read = |l: &mut Self, at: Op| {
            let (memory, own) = l.place_at(at, &places, ty, &[]);
            memref::Load::build(&mut Builder::before(l.m, at), memory, &own, ty).result(l.m)
        };
        let number = match load.mask(self.m) {
            None => read(self, op),
            Some(mask) => {
                let other = match load.other(self.m) {
                    Some(other) => other,
                    None => self.other(load),
                };
                let branch = scf::If::build(&mut Builder::before(self.m, op), mask, &[ty]);
                let regions = [branch.then_region(self.m), branch.else_region(self.m)];
                let [then, otherwise] = regions.map(|region| self.m.append_block(region, &[]));
                self.end(op, otherwise, &[other]);
                let end = self.end(op, then, &[]);
                let number = read(self, end);
                self.m.set_operand_group(end, 0, &[number]);
                branch.results(self.m)[0]
            }
        };
        self.m.replace_all_uses(result, number);
        Ok(())
    }

    /// A store of one number where a mask holds: the end of the branch in which it is to be made.
    pub fn where_true(&mut self, op: Op, mask: Value) -> Op {
        self.either(op, mask).0
    }

    /// A store of one number to a buffer.
    pub fn store_one(&mut self, op: Op, pointer: Value, value: Value) -> Result<()> {
        let ty = self.m.value_type(value);
        let places = self.places(op, pointer)?;
        let (memory, own) = self.place_at(op, &places, ty, &[]);
        self.put_at(op, value, memory, &own);
        Ok(())
    }

    // ---- arithmetic --------------------------------------------------------------------------------------------

    /// An elementwise operation that vectors have no instruction for.
    pub fn elementwise_by_scalar(&mut self, op: Op, operands: &[Value]) -> Result<()> {
        let half = matches!(self.m.opcode(op), Some(Opcode::Tt(tt::Kind::Mulhiui)))
            && self.m.bits(self.element(operands[0])) <= 32;
        if !half && !is_scalar(self.m, op) {
            return Err(unsupported(self.m, op, format!("`{}` of tensors", self.m.op_name(op))));
        }
        let mut sources = Vec::new();
        for &v in operands {
            sources.push(self.elements(op, v)?);
        }
        let result = self.m.result(op);
        let (shape, element) = (self.shape(result), self.element(result));
        let out = self.out(op, true);
        let (indices, at) = self.nest(op, &shape);
        let mut map = FxHashMap::default();
        for (&v, &source) in operands.iter().zip(&sources) {
            map.insert(v, self.element_at(at, source, &indices));
        }
        self.divide_by_none_of_zero(op, at, &mut map);
        let number = match half {
            true => self.upper_half(at, operands.iter().map(|v| map[v]).collect(), element),
            false => {
                let clone = self.m.clone_op(op, &mut map);
                let number = self.m.result(clone);
                self.m.set_value_type(number, element);
                self.m.insert_before(clone, at);
                number
            }
        };
        self.put_at(at, number, out, &indices);
        Ok(())
    }

    /// A division of elements that nobody wants may be one by zero, which `arith` leaves undefined: such are divided by one.
    fn divide_by_none_of_zero(&mut self, op: Op, at: Op, map: &mut FxHashMap<Value, Value>) {
        use arith::Kind as A;
        if !matches!(self.m.opcode(op), Some(Opcode::Arith(A::Divsi | A::Divui | A::Remsi | A::Remui))) {
            return;
        }
        let divisor = self.m.operands(op)[1];
        let mut b = Builder::before(self.m, at);
        let ty = b.module.value_type(map[&divisor]);
        let one = b.int(1, ty);
        // Unsigned, so that what is negative stays.
        let some = arith::Maxui::build(&mut b, map[&divisor], one).result(b.module);
        map.insert(divisor, some);
    }

    /// The upper half of a product of numbers without a sign.
    pub fn upper_half(&mut self, at: Op, factors: Vec<Value>, element: Type) -> Value {
        let bits = i64::from(self.m.bits(element));
        let mut b = Builder::before(self.m, at);
        let wide = factors.into_iter().map(|v| arith::Extui::build(&mut b, v, Type::I64).out(b.module));
        let wide: Vec<Value> = wide.collect();
        let product = arith::Muli::build(&mut b, wide[0], wide[1]).result(b.module);
        let by = b.int(bits, Type::I64);
        let upper = arith::Shrui::build(&mut b, product, by).result(b.module);
        arith::Trunci::build(&mut b, upper, element).out(b.module)
    }

    /// What a reduction or a scan does with two elements of each tensor, in front of an operation.
    fn combine(&mut self, at: Op, block: Block, operands: &[Value]) -> Result<Vec<Value>> {
        let args = self.m.block_args(block).to_vec();
        let mut map: FxHashMap<Value, Value> = args.into_iter().zip(operands.iter().copied()).collect();
        let ops: Vec<Op> = self.m.block_ops(block).collect();
        let Some((&end, ops)) = ops.split_last() else { return Ok(Vec::new()) };
        for &inner in ops {
            if !is_scalar(self.m, inner) {
                let what = format!("`{}` in a function that combines elements", self.m.op_name(inner));
                return Err(unsupported(self.m, inner, what));
            }
            let clone = self.m.clone_op(inner, &mut map);
            self.m.insert_before(clone, at);
        }
        let given = self.m.operands(end).to_vec();
        Ok(given.into_iter().map(|v| map.get(&v).copied().unwrap_or(v)).collect())
    }

    /// A reduction of any number of tensors by any function.
    pub fn reduce_by_scalar(&mut self, reduce: tt::Reduce) -> Result<()> {
        let (op, axis) = (reduce.0, reduce.axis(self.m) as usize);
        let (sources, mut shape) = self.sources(op)?;
        let extent = std::mem::replace(&mut shape[axis], 1);
        let results = self.m.results(op).to_vec();
        let outs: Vec<Value> = results
            .iter()
            .map(|&r| {
                let element = self.element(r);
                self.new_buffer(op, &shape, element, ascend::UB)
            })
            .collect();
        let block = self.m.region_block(reduce.combine(self.m));
        let sums = self.along(op, (axis, extent), &shape, &sources, (block, false), None)?;
        let (at, indices, sums) = sums;
        for (&sum, &out) in sums.iter().zip(&outs) {
            self.put_at(at, sum, out, &indices);
        }
        for (&result, out) in results.iter().zip(outs) {
            if self.is_tensor(result) {
                let mut less = shape.clone();
                less.remove(axis);
                let view = self.reshaped(op, out, &less);
                self.buffers.insert(result, view);
                continue;
            }
            self.becomes_number(op, result, out);
        }
        Ok(())
    }

    /// A scan of any number of tensors by any function.
    pub fn scan_by_scalar(&mut self, scan: tt::Scan) -> Result<()> {
        let (op, axis) = (scan.0, scan.axis(self.m) as usize);
        let (sources, mut shape) = self.sources(op)?;
        let extent = std::mem::replace(&mut shape[axis], 1);
        let results = self.m.results(op).to_vec();
        let mut outs = Vec::new();
        for &r in &results {
            let (whole, element) = (self.shape(r), self.element(r));
            let out = self.new_buffer(op, &whole, element, ascend::UB);
            self.buffers.insert(r, out);
            outs.push(out);
        }
        let block = self.m.region_block(scan.combine(self.m));
        let how = (block, scan.reverse(self.m));
        self.along(op, (axis, extent), &shape, &sources, how, Some(&outs))?;
        Ok(())
    }

    /// The tensors that a reduction or a scan goes through, and their shape.
    fn sources(&mut self, op: Op) -> Result<(Vec<Elements>, Vec<u32>)> {
        let operands = self.m.operands(op).to_vec();
        let shape = self.shape(operands[0]);
        let sources = operands.into_iter().map(|v| self.elements(op, v)).collect::<Result<_>>()?;
        Ok((sources, shape))
    }

    /// Combines elements along an axis, one after the other, for each of the others; with `outs` what there is so far is written there each time. Gives
    /// the place behind, its indices, and what came of all.
    fn along(
        &mut self,
        op: Op,
        (axis, extent): (usize, u32),
        shape: &[u32],
        sources: &[Elements],
        (block, reverse): (Block, bool),
        outs: Option<&[Value]>,
    ) -> Result<(Op, Vec<Value>, Vec<Value>)> {
        let (indices, at) = self.nest(op, shape);
        let mut b = Builder::before(self.m, at);
        let [one, to, last] = [1, i64::from(extent), i64::from(extent) - 1].map(|n| b.int(n, Type::INDEX));
        let mut first = indices.clone();
        if reverse {
            first[axis] = last;
        }
        let begin: Vec<Value> = sources.iter().map(|&s| self.element_at(at, s, &first)).collect();
        for (&value, &out) in begin.iter().zip(outs.unwrap_or_default()) {
            self.put_at(at, value, out, &first);
        }
        let mut types = vec![Type::INDEX];
        types.extend(begin.iter().map(|&v| self.m.value_type(v)));
        let looped = scf::For::build(&mut Builder::before(self.m, at), one, to, one, &begin, &types[1..]);
        let body = self.m.append_block(looped.body(self.m), &types);
        let end = self.end(op, body, &[]);
        let args = self.m.block_args(body).to_vec();
        let mut here = indices.clone();
        here[axis] = match reverse {
            false => args[0],
            true => {
                let mut b = Builder::before(self.m, end);
                arith::Subi::build(&mut b, last, args[0]).result(b.module)
            }
        };
        let mut operands = args[1..].to_vec();
        for &source in sources {
            operands.push(self.element_at(end, source, &here));
        }
        let sums = self.combine(end, block, &operands)?;
        for (&value, &out) in sums.iter().zip(outs.unwrap_or_default()) {
            self.put_at(end, value, out, &here);
        }
        self.m.set_operand_group(end, 0, &sums);
        Ok((at, indices, looped.results(self.m).to_vec()))
    }
}

/// The buffer that pointers lead to, if they do.
pub(super) fn buffer_of(m: &Module, mut pointers: Value) -> Option<Value> {
    while let Some(made) = m.defining_op(pointers) {
        if let Some(local) = ttg::LocalPtr::cast(m, made) {
            return Some(local.src(m));
        }
        pointers = *m.operands(made).first().filter(|&&v| m.is_ptr(m.element_type(m.value_type(v))))?;
    }
    None
}

/// Whether the scalar unit has an operation.
pub(super) fn is_scalar(m: &Module, op: Op) -> bool {
    use arith::Kind as A;
    let Some(Opcode::Arith(kind)) = m.opcode(op) else { return false };
    !matches!(kind, A::Ceildivsi | A::Ceildivui | A::Floordivsi | A::Remf)
}
