//! Descriptor accesses as pointer arithmetic with masks, where there is no hardware for them.
//!
//! Why first: what comes out is ordinary `tt`, which everything behind it (the CPU executor too) knows. Descriptors that
//! the target's copy engine serves are left alone.
//!
//! ```text
//! tt.func @f(%d: !tt.tensordesc<tensor<16x32xf16>>, %m: i32, %n: i32, %s: i64, %one: i64)
//!   %x = tt.descriptor_load %d[%i, %j]
//! =>
//! tt.func @f(%d: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %m: i32, %n: i32, %s: i64, %one: i64)
//!   %first = tt.addptr %d, %i · %s + %j                          (64 bits, one number)
//!   %ptrs = splat(%first) + range(0..16)[:, None] · %s + range(0..32)[None, :]
//!   %mask = (%i + range(0..16) <u %m)[:, None] & (%j + range(0..32) <u %n)[None, :]
//!   %x = tt.load %ptrs, %mask, 0.0
//! ```
//!
//! A copy to a buffer that a barrier of the kernel's own waits for is the copy engine's, or an error; on the CPU executor it is a load and a
//! store, and the barrier has counted its bytes. A copy from a buffer is a load and a store wherever there is no engine.
//!
//! A descriptor is the parts of which it was made: pointer, extents, strides and whether it pads with NaN. A value of
//! descriptor type that a loop or a branch carries gets its parts carried beside it; the descriptors themselves are dead
//! then, and dead code elimination erases them. A function's descriptor argument becomes the pointer; the extents and
//! strides are the arguments that follow it.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::dialect::tt::{self, DescriptorReduceKind, MemSemantic, MemSyncScope, RmwOp};
use tilewright_ir::dialect::{arith, scf, ttg, ttng};
use tilewright_ir::{
    Block, Builder, Diagnostic, Module, Op, Opcode, Type, TypeKind, Value, launch, marks, pass,
};

use crate::analysis::axis::AxisAnalysis;
use crate::hopper::{captures, tma};
use crate::pass::Pass;
use crate::target::TargetInfo;
use crate::transform::receive_descriptors::{self, Given};

/// The pass.
pub const PASS: Pass = Pass {
    name: "lower-descriptors",
    summary: "turn descriptor accesses that no hardware does into pointers and masks",
    requires: &[],
    ensures: &[],
    run: |m, t, _| run(m, Some(t)),
};

/// Lowers every descriptor of the module that the target's copy engine does not serve ([`tma::supports`]); all of them
/// where there is no target (on the CPU executor).
///
/// # Errors
/// A descriptor argument without its extents and strides; a reduction for which there is no atomic operation.
pub fn run(module: &mut Module, target: Option<&TargetInfo>) -> Result<(), Diagnostic> {
    let root = module.root();
    let ops = module.all_ops(root);
    let is_desc = |m: &Module, v: Value| matches!(m.type_kind(m.value_type(v)), TypeKind::TensorDesc { .. });
    let args = |m: &Module, op: Op| -> Vec<Value> {
        let regions = m.regions(op).iter();
        regions.flat_map(|&r| m.region_blocks(r)).flat_map(|&b| m.block_args(b).to_vec()).collect()
    };
    let values = ops.iter().flat_map(|&op| m_results(module, op).chain(args(module, op)));
    let descriptors: Vec<Value> = values.filter(|&v| is_desc(module, v)).collect();
    let mut kept = FxHashSet::default();
    if let Some(target) = target.filter(|t| t.tma && !descriptors.is_empty()) {
        let axis = AxisAnalysis::run(module);
        kept.extend(descriptors.iter().copied().filter(|&v| tma::supports(module, target, &axis, v)));
    }
    if kept.len() == descriptors.len() {
        return Ok(());
    }
    if let Some(target) = target {
        needs_engine(module, target, &ops, &kept)?;
    }
    let funcs: Vec<tt::Func> = ops.iter().filter_map(|&op| tt::Func::cast(module, op)).collect();
    let mut lowering = Lowering { m: module, parts: FxHashMap::default(), kept };
    for &func in &funcs {
        lowering.arguments(func)?;
    }
    for func in funcs {
        for block in lowering.m.region_blocks(func.body(lowering.m)).to_vec() {
            lowering.block(block)?;
        }
    }
    // Folds the paddings, merges equal addresses, moves what is invariant out of loops, and erases the descriptors.
    pass::optimize(module)
}

/// Checks that no descriptor among those that become pointers is copied from by the copy engine.
fn needs_engine(
    module: &Module,
    target: &TargetInfo,
    ops: &[Op],
    kept: &FxHashSet<Value>,
) -> Result<(), Diagnostic> {
    let copies = ops.iter().filter_map(|&op| ttng::AsyncTmaCopyGlobalToLocal::cast(module, op));
    let Some(copy) = copies.into_iter().find(|copy| !kept.contains(&copy.desc(module))) else {
        return Ok(());
    };
    let (text, note) = if target.tma {
        (
            "the tensor memory accelerator cannot make all copies of this descriptor",
            "it moves blocks whose rows and whose places in the last dimension are known to be multiples of 16 bytes, \
             of a descriptor that is an argument or made outside of loops, to slots that are multiples of 128 bytes",
        )
    } else {
        (
            "this target has no tensor memory accelerator, which copies with a `barrier`",
            "tle.gpu.copy without `barrier` runs anywhere",
        )
    };
    let text = format!("not supported on {}: tle.gpu.copy(barrier=…): {text}", target.name);
    Err(Diagnostic::at(module, module.op_loc(copy.0), text).note(note))
}

fn m_results(module: &Module, op: Op) -> impl Iterator<Item = Value> + '_ {
    module.results(op).iter().copied()
}

/// What a descriptor is made of.
#[derive(Debug, Clone)]
struct Parts {
    base: Value,
    /// `i32`.
    shape: Vec<Value>,
    /// `i64`, without the last, which is 1.
    strides: Vec<Value>,
    /// `i1`: what is outside reads as NaN.
    nan: Value,
}

impl Parts {
    fn values(&self) -> Vec<Value> {
        let mut out = vec![self.base];
        out.extend(&self.shape);
        out.extend(&self.strides);
        out.push(self.nan);
        out
    }

    /// The parts in the order of [`values`](Parts::values), for a descriptor of as many dimensions as `self`'s.
    fn with(&self, values: &[Value]) -> Parts {
        let rank = self.shape.len();
        Parts {
            base: values[0],
            shape: values[1..=rank].to_vec(),
            strides: values[rank + 1..2 * rank].to_vec(),
            nan: values[2 * rank],
        }
    }
}

struct Lowering<'m> {
    m: &'m mut Module,
    parts: FxHashMap<Value, Parts>,
    /// Descriptors that stay.
    kept: FxHashSet<Value>,
}

impl Lowering<'_> {
    fn block_type(&self, value: Value) -> Option<Type> {
        match self.m.type_kind(self.m.value_type(value)) {
            TypeKind::TensorDesc { block } => Some(*block),
            _ => None,
        }
    }

    /// The descriptors among values, with their parts.
    fn descriptors(&self, values: &[Value]) -> Vec<(usize, Parts)> {
        let known = |(i, v): (usize, &Value)| Some((i, self.parts.get(v)?.clone()));
        values.iter().enumerate().filter_map(known).collect()
    }

    /// Descriptor arguments become pointers. A private function gets the paddings as arguments at its end.
    fn arguments(&mut self, func: tt::Func) -> Result<(), Diagnostic> {
        let Some(&entry) = self.m.region_blocks(func.body(self.m)).first() else { return Ok(()) };
        let args = self.m.block_args(entry).to_vec();
        let public = launch::is_kernel(self.m, func.0);
        for (at, &arg) in args.iter().enumerate() {
            if self.kept.contains(&arg) || self.block_type(arg).is_none() {
                continue;
            }
            let Given { shape, strides, nan } = Given::take(self.m, func, entry, at)?;
            let nan = if public {
                let first = self.m.first_op(entry).expect("a complete block");
                Builder::before(self.m, first).int(-i64::from(nan), Type::I1)
            } else {
                self.m.add_block_arg(entry, Type::I1)
            };
            self.parts.insert(arg, Parts { base: arg, shape, strides, nan });
        }
        if let TypeKind::Function { results, .. } = self.m.type_kind(func.function_type(self.m))
            && results.iter().any(|&t| matches!(self.m.type_kind(t), TypeKind::TensorDesc { .. }))
        {
            let what = "a function that is not inlined and returns a tensor descriptor";
            return Err(Diagnostic::unsupported(self.m, self.m.op_loc(func.0), what));
        }
        receive_descriptors::note_inputs(self.m, func, entry);
        Ok(())
    }

    fn block(&mut self, block: Block) -> Result<(), Diagnostic> {
        let mut next = self.m.first_op(block);
        while let Some(op) = next {
            next = self.m.next_op(op);
            self.op(op)?;
        }
        Ok(())
    }

    fn regions(&mut self, op: Op) -> Result<(), Diagnostic> {
        for region in self.m.regions(op).to_vec() {
            for block in self.m.region_blocks(region).to_vec() {
                self.block(block)?;
            }
        }
        Ok(())
    }

    fn op(&mut self, op: Op) -> Result<(), Diagnostic> {
        if let Some(w) = ttg::WarpSpecialize::cast(self.m, op) {
            return self.partitions(w);
        }
        if m_results(self.m, op).chain(self.m.operands(op).first().copied()).any(|v| self.kept.contains(&v)) {
            return Ok(());
        }
        self.knows(op)?;
        if let Some(make) = tt::MakeTensorDescriptor::cast(self.m, op) {
            let strides = make.strides(self.m);
            let strides = strides[..strides.len() - 1].to_vec();
            let (base, shape) = (make.base(self.m), make.shape(self.m).to_vec());
            let nan = make.padding(self.m) == Some(2);
            let nan = Builder::before(self.m, op).int(-i64::from(nan), Type::I1);
            let result = make.result(self.m);
            self.parts.insert(result, Parts { base, shape, strides, nan });
        } else if let Some(load) = tt::DescriptorLoad::cast(self.m, op) {
            let (desc, indices) = (load.desc(self.m), load.indices(self.m).to_vec());
            let (cache, evict) = (load.cache(self.m), load.evict(self.m));
            let result = self.m.value_type(load.result(self.m));
            let (pointers, mask, whole) = self.block_access(op, desc, &indices);
            let nan = self.parts[&desc].nan;
            let mut b = Builder::before(self.m, op);
            let other = padding(&mut b, nan, whole);
            let loaded =
                tt::Load::build(&mut b, pointers, Some(mask), Some(other), cache, evict, false, whole);
            let mut value = loaded.result(b.module);
            if whole != result {
                value = tt::Reshape::build(&mut b, value, false, false, result).result(b.module);
            }
            self.m.replace_op(op, &[value]);
        } else if let Some(copy) = ttng::AsyncTmaCopyGlobalToLocal::cast(self.m, op) {
            let (desc, coord, buffer) = (copy.desc(self.m), copy.coord(self.m).to_vec(), copy.result(self.m));
            let (cache, evict) = (copy.cache(self.m), copy.evict(self.m));
            let (pointers, mask, whole) = self.block_access(op, desc, &coord);
            let nan = self.parts[&desc].nan;
            let mut b = Builder::before(self.m, op);
            let other = padding(&mut b, nan, whole);
            let loaded =
                tt::Load::build(&mut b, pointers, Some(mask), Some(other), cache, evict, false, whole);
            let value = loaded.result(b.module);
            ttg::LocalStore::build(&mut b, value, buffer);
            if let Some(sharing) = b.module.int_attr(op, marks::MULTICAST) {
                ttng::SameBlock::build(&mut b, &coord, sharing as i32);
            }
            self.m.erase_op(op);
        } else if let Some(copy) = ttng::AsyncTmaCopyLocalToGlobal::cast(self.m, op) {
            let store = tma::by_registers(self.m, copy);
            self.store(store);
        } else if let Some(store) = tt::DescriptorStore::cast(self.m, op) {
            self.store(store);
        } else if tt::DescriptorPrefetch::cast(self.m, op).is_some() {
            // No value depends on it.
            self.m.erase_op(op);
        } else if let Some(reduce) = tt::DescriptorReduce::cast(self.m, op) {
            self.reduce(reduce)?;
        } else if let Some(gather) = tt::DescriptorGather::cast(self.m, op) {
            let (desc, rows, column) =
                (gather.desc(self.m), gather.x_offsets(self.m), gather.y_offset(self.m));
            let result = self.m.value_type(gather.result(self.m));
            let (pointers, mask) = self.row_access(op, desc, rows, column, result);
            let nan = self.parts[&desc].nan;
            let mut b = Builder::before(self.m, op);
            let other = padding(&mut b, nan, result);
            let (cache, evict) = (tt::CacheModifier::None, tt::EvictionPolicy::Normal);
            let loaded =
                tt::Load::build(&mut b, pointers, Some(mask), Some(other), cache, evict, false, result);
            let value = loaded.result(b.module);
            self.m.replace_op(op, &[value]);
        } else if let Some(scatter) = tt::DescriptorScatter::cast(self.m, op) {
            let (desc, rows, column) =
                (scatter.desc(self.m), scatter.x_offsets(self.m), scatter.y_offset(self.m));
            let src = scatter.src(self.m);
            let ty = self.m.value_type(src);
            let (pointers, mask) = self.row_access(op, desc, rows, column, ty);
            let mut b = Builder::before(self.m, op);
            let (cache, evict) = (tt::CacheModifier::None, tt::EvictionPolicy::Normal);
            tt::Store::build(&mut b, pointers, src, Some(mask), cache, evict);
            self.m.erase_op(op);
        } else {
            return self.carry(op);
        }
        Ok(())
    }

    /// Checks that the parts of the descriptor by which an operation accesses memory are known.
    fn knows(&self, op: Op) -> Result<(), Diagnostic> {
        use tt::Kind as K;
        let accesses = matches!(
            self.m.opcode(op),
            Some(
                Opcode::Tt(
                    K::DescriptorLoad
                        | K::DescriptorStore
                        | K::DescriptorReduce
                        | K::DescriptorGather
                        | K::DescriptorScatter
                ) | Opcode::Ttng(
                    ttng::Kind::AsyncTmaCopyGlobalToLocal | ttng::Kind::AsyncTmaCopyLocalToGlobal
                )
            )
        );
        match self.m.operands(op).first() {
            Some(desc) if accesses && !self.parts.contains_key(desc) => {
                let loc = self.m.defining_op(*desc).map_or(self.m.op_loc(op), |def| self.m.op_loc(def));
                Err(Diagnostic::unsupported(self.m, loc, "a tensor descriptor that comes from here"))
            }
            _ => Ok(()),
        }
    }

    // ---- control flow ---------------------------------------------------------------------------------------

    /// Operations that pass descriptors on.
    fn carry(&mut self, op: Op) -> Result<(), Diagnostic> {
        if let Some(f) = scf::For::cast(self.m, op) {
            let init = f.init(self.m).to_vec();
            let body = self.m.region_block(f.body(self.m));
            let args = self.m.block_args(body)[1..].to_vec();
            let carried = self.descriptors(&init);
            let added = extend(&init, &carried);
            self.m.set_operand_group(op, 3, &added);
            for (at, parts) in &carried {
                self.arguments_of(body, args[*at], parts);
            }
            self.regions(op)?;
            self.yield_parts(body, 0)?;
            self.results_of(op, &carried);
        } else if let Some(w) = scf::While::cast(self.m, op) {
            let init = w.init(self.m).to_vec();
            let (before, after) =
                (self.m.region_block(w.before(self.m)), self.m.region_block(w.after(self.m)));
            let carried = self.descriptors(&init);
            let added = extend(&init, &carried);
            self.m.set_operand_group(op, 0, &added);
            let args = self.m.block_args(before).to_vec();
            for (at, parts) in &carried {
                self.arguments_of(before, args[*at], parts);
            }
            self.block(before)?;
            let passed = self.yield_parts(before, 1)?;
            let args = self.m.block_args(after).to_vec();
            for (at, parts) in &passed {
                self.arguments_of(after, args[*at], parts);
            }
            self.block(after)?;
            self.yield_parts(after, 0)?;
            self.results_of(op, &passed);
        } else if let Some(i) = scf::If::cast(self.m, op) {
            let results = self.m.results(op).to_vec();
            self.regions(op)?;
            if results.iter().any(|&r| self.block_type(r).is_some()) {
                let then = self.m.region_block(i.then_region(self.m));
                let otherwise = self.m.region_block(i.else_region(self.m));
                let given = self.yield_parts(then, 0)?;
                self.yield_parts(otherwise, 0)?;
                self.results_of(op, &given);
            }
        } else if let Some(select) = arith::Select::cast(self.m, op) {
            let (c, x, y) = (select.condition(self.m), select.true_value(self.m), select.false_value(self.m));
            if let (Some(x), Some(y)) = (self.parts.get(&x).cloned(), self.parts.get(&y).cloned()) {
                let result = select.result(self.m);
                let mut b = Builder::before(self.m, op);
                let pairs = x.values().into_iter().zip(y.values());
                let chosen: Vec<Value> =
                    pairs.map(|(x, y)| arith::Select::build(&mut b, c, x, y).result(b.module)).collect();
                self.parts.insert(result, x.with(&chosen));
            }
        } else if let Some(call) = tt::Call::cast(self.m, op) {
            let args = call.args(self.m).to_vec();
            let given = self.descriptors(&args);
            let mut values = args;
            for (at, parts) in &given {
                values[*at] = parts.base;
            }
            values.extend(given.iter().map(|(_, parts)| parts.nan));
            self.m.set_operand_group(op, 0, &values);
        } else {
            self.regions(op)?;
        }
        Ok(())
    }

    /// Partitions capture the parts instead of the descriptors.
    fn partitions(&mut self, w: ttg::WarpSpecialize) -> Result<(), Diagnostic> {
        let captures = w.captures(self.m).to_vec();
        let given = self.descriptors(&captures);
        let added = extend(&captures, &given);
        self.m.set_operands_and_segments(w.0, &added, &[added.len() as u16]);
        let blocks: Vec<Block> = w.partitions(self.m).iter().map(|&r| self.m.region_block(r)).collect();
        for block in blocks {
            let args = self.m.block_args(block).to_vec();
            for (at, parts) in &given {
                self.arguments_of(block, args[*at], parts);
            }
            self.block(block)?;
        }
        let results = w.results(self.m).to_vec();
        let default = self.m.region_block(w.default_region(self.m));
        self.block(default)?;
        if results.iter().any(|&r| self.block_type(r).is_some() && !self.kept.contains(&r)) {
            let passed = self.yield_parts(default, 0)?;
            self.results_of(w.0, &passed);
        }
        for (at, _) in given {
            captures::release(self.m, w, captures[at]);
        }
        captures::constants_inside(self.m, w);
        Ok(())
    }

    /// Arguments of a block for the parts of one that is a descriptor.
    fn arguments_of(&mut self, block: Block, arg: Value, like: &Parts) {
        let types: Vec<Type> = like.values().iter().map(|&v| self.m.value_type(v)).collect();
        let values: Vec<Value> = types.iter().map(|&t| self.m.add_block_arg(block, t)).collect();
        self.parts.insert(arg, like.with(&values));
    }

    /// Results for the parts of those that are descriptors.
    fn results_of(&mut self, op: Op, like: &[(usize, Parts)]) {
        for (at, parts) in like {
            let result = self.m.results(op)[*at];
            let types: Vec<Type> = parts.values().iter().map(|&v| self.m.value_type(v)).collect();
            let values: Vec<Value> = types.iter().map(|&t| self.m.add_result(op, t)).collect();
            self.parts.insert(result, parts.with(&values));
        }
    }

    /// Adds the parts of the descriptors that a block's terminator passes on (in its operand group `group`).
    fn yield_parts(&mut self, block: Block, group: usize) -> Result<Vec<(usize, Parts)>, Diagnostic> {
        let terminator = self.m.last_op(block).expect("a complete block");
        let values = self.m.operand_group(terminator, group).to_vec();
        let given = self.descriptors(&values);
        if values.iter().any(|v| self.block_type(*v).is_some() && !self.parts.contains_key(v)) {
            let loc = self.m.op_loc(terminator);
            return Err(Diagnostic::unsupported(self.m, loc, "a tensor descriptor that comes from here"));
        }
        let added = extend(&values, &given);
        self.m.set_operand_group(terminator, group, &added);
        Ok(given)
    }

    // ---- accesses -------------------------------------------------------------------------------------------

    /// The pointers to the block at indices, the mask of what is inside, and the block's type.
    fn block_access(&mut self, op: Op, desc: Value, indices: &[Value]) -> (Value, Value, Type) {
        let parts = self.parts[&desc].clone();
        // An argument's type has changed: the parts say the rank, the indices' users the block.
        let block = self.accessed_block(op, desc, indices.len());
        let shape = self.m.shape(block).expect("a tensor").to_vec();
        let mut b = Builder::before(self.m, op);
        let mut first: Option<Value> = None;
        for (d, &index) in indices.iter().enumerate() {
            let index = wide(&mut b, index);
            let step = match parts.strides.get(d) {
                Some(&stride) => arith::Muli::build(&mut b, index, stride).result(b.module),
                None => index,
            };
            first = Some(match first {
                Some(sum) => arith::Addi::build(&mut b, sum, step).result(b.module),
                None => step,
            });
        }
        let first = first.expect("one dimension or more");
        let base = tt::Addptr::build(&mut b, parts.base, first).result(b.module);
        let (mut offsets, mut mask) = (None, None);
        for (d, &extent) in shape.iter().enumerate() {
            let range = range(&mut b, extent);
            let inside = inside(&mut b, range, indices[d], parts.shape[d]);
            let inside = along(&mut b, inside, d, &shape);
            mask = Some(both(&mut b, mask, inside));
            let step = wide(&mut b, range);
            let step = expanded(&mut b, step, d, shape.len());
            let step = match parts.strides.get(d) {
                Some(&stride) => scaled(&mut b, step, stride),
                None => step,
            };
            let step = broadcast(&mut b, step, &shape);
            offsets = Some(sum(&mut b, offsets, step));
        }
        let pointers = pointers(&mut b, base, offsets.expect("one dimension or more"));
        (pointers, mask.expect("one dimension or more"), block)
    }

    fn store(&mut self, store: tt::DescriptorStore) {
        let (desc, src, indices) = (store.desc(self.m), store.src(self.m), store.indices(self.m).to_vec());
        let (pointers, mask, whole) = self.block_access(store.0, desc, &indices);
        let mut b = Builder::before(self.m, store.0);
        let src = shaped(&mut b, src, whole);
        let (cache, evict) = (tt::CacheModifier::None, tt::EvictionPolicy::Normal);
        tt::Store::build(&mut b, pointers, src, Some(mask), cache, evict);
        self.m.erase_op(store.0);
    }

    /// The block that a descriptor's access moves: of the descriptor's type or, where that has become a pointer, of the
    /// access.
    fn accessed_block(&mut self, op: Op, desc: Value, rank: usize) -> Type {
        if let Some(block) = self.block_type(desc) {
            return block;
        }
        let load = tt::DescriptorLoad::cast(self.m, op).map(|load| load.result(self.m));
        let tensor = load.or(tma::copied_buffer(self.m, op)).unwrap_or(self.m.operands(op)[1]);
        let ty = self.m.value_type(tensor);
        let mut shape = self.m.shape(ty).expect("a tensor").to_vec();
        while shape.len() < rank {
            shape.insert(0, 1);
        }
        let element = self.m.element_type(ty);
        self.m.tensor_type(&shape, element, None)
    }

    /// The pointers to parts of the rows `rows` from `column` on, and the mask of what is inside.
    fn row_access(&mut self, op: Op, desc: Value, rows: Value, column: Value, ty: Type) -> (Value, Value) {
        let parts = self.parts[&desc].clone();
        let shape = self.m.shape(ty).expect("a tensor").to_vec();
        let mut b = Builder::before(self.m, op);
        let from = wide(&mut b, column);
        let base = tt::Addptr::build(&mut b, parts.base, from).result(b.module);
        let columns = range(&mut b, shape[1]);
        let row_inside = below(&mut b, rows, parts.shape[0]);
        let row_inside = along(&mut b, row_inside, 0, &shape);
        let column_inside = inside(&mut b, columns, column, parts.shape[1]);
        let column_inside = along(&mut b, column_inside, 1, &shape);
        let mask = both(&mut b, Some(row_inside), column_inside);
        let rows = wide(&mut b, rows);
        let rows = expanded(&mut b, rows, 0, 2);
        let rows = scaled(&mut b, rows, parts.strides[0]);
        let rows = broadcast(&mut b, rows, &shape);
        let columns = wide(&mut b, columns);
        let columns = along(&mut b, columns, 1, &shape);
        let offsets = sum(&mut b, Some(rows), columns);
        (pointers(&mut b, base, offsets), mask)
    }

    fn reduce(&mut self, reduce: tt::DescriptorReduce) -> Result<(), Diagnostic> {
        let op = reduce.0;
        let (desc, src, indices) = (reduce.desc(self.m), reduce.src(self.m), reduce.indices(self.m).to_vec());
        let kind = reduce.kind(self.m);
        let element = self.m.element_type(self.m.value_type(src));
        let float = self.m.is_float(element);
        let rmw = match kind {
            DescriptorReduceKind::Add if float => RmwOp::Fadd,
            DescriptorReduceKind::Add => RmwOp::Add,
            DescriptorReduceKind::Min if !float => RmwOp::Min,
            DescriptorReduceKind::Max if !float => RmwOp::Max,
            DescriptorReduceKind::Umin => RmwOp::Umin,
            DescriptorReduceKind::Umax => RmwOp::Umax,
            DescriptorReduceKind::And => RmwOp::And,
            DescriptorReduceKind::Or => RmwOp::Or,
            DescriptorReduceKind::Xor => RmwOp::Xor,
            _ => {
                let loc = self.m.op_loc(op);
                let what = tilewright_ir::print_type(self.m, element);
                let what = format!("`{}` of {what} through a descriptor", kind.keyword());
                return Err(Diagnostic::unsupported(self.m, loc, what)
                    .note("there is no atomic operation for it without the GPU's copy engine"));
            }
        };
        let (pointers, mask, whole) = self.block_access(op, desc, &indices);
        let mut b = Builder::before(self.m, op);
        let src = shaped(&mut b, src, whole);
        let (sem, scope) = (MemSemantic::Relaxed, MemSyncScope::Gpu);
        tt::AtomicRmw::build(&mut b, pointers, src, Some(mask), rmw, sem, scope, whole);
        self.m.erase_op(op);
        Ok(())
    }
}

/// Values followed by the parts of those that are descriptors.
fn extend(values: &[Value], descriptors: &[(usize, Parts)]) -> Vec<Value> {
    let parts = descriptors.iter().flat_map(|(_, parts)| parts.values());
    values.iter().copied().chain(parts).collect()
}

/// A number or tensor of `i32` as `i64`.
fn wide(b: &mut Builder<'_>, value: Value) -> Value {
    let ty = b.module.with_element(b.module.value_type(value), Type::I64);
    arith::Extsi::build(b, value, ty).out(b.module)
}

/// `0..extent`
pub(crate) fn range(b: &mut Builder<'_>, extent: u32) -> Value {
    let ty = b.module.tensor_type(&[extent], Type::I32, None);
    tt::MakeRange::build(b, extent as i32, 0, ty).result(b.module)
}

fn splat(b: &mut Builder<'_>, value: Value, like: Value) -> Value {
    let shape = b.module.shape(b.module.value_type(like)).expect("a tensor").to_vec();
    let ty = b.module.tensor_type(&shape, b.module.value_type(value), None);
    tt::Splat::build(b, value, ty).result(b.module)
}

/// `0 <= rows < extent`, as one unsigned comparison.
pub(crate) fn below(b: &mut Builder<'_>, rows: Value, extent: Value) -> Value {
    let extent = splat(b, extent, rows);
    let ty = b.module.with_element(b.module.value_type(rows), Type::I1);
    arith::Cmpi::build(b, rows, extent, arith::CmpIPredicate::Ult, ty).result(b.module)
}

/// `0 <= index + range < extent`
fn inside(b: &mut Builder<'_>, range: Value, index: Value, extent: Value) -> Value {
    let index = splat(b, index, range);
    let at = arith::Addi::build(b, index, range).result(b.module);
    below(b, at, extent)
}

/// A vector as a tensor of extent 1 along all dimensions but `d`.
fn expanded(b: &mut Builder<'_>, mut vector: Value, d: usize, rank: usize) -> Value {
    for axis in 0..rank {
        if axis == d {
            continue;
        }
        let ty = b.module.value_type(vector);
        let mut shape = b.module.shape(ty).expect("a tensor").to_vec();
        shape.insert(axis, 1);
        let element = b.module.element_type(ty);
        let ty = b.module.tensor_type(&shape, element, None);
        vector = tt::ExpandDims::build(b, vector, axis as i32, ty).result(b.module);
    }
    vector
}

fn broadcast(b: &mut Builder<'_>, value: Value, shape: &[u32]) -> Value {
    let ty = b.module.value_type(value);
    if b.module.shape(ty) == Some(shape) {
        return value;
    }
    let element = b.module.element_type(ty);
    let ty = b.module.tensor_type(shape, element, None);
    tt::Broadcast::build(b, value, ty).result(b.module)
}

/// A vector along dimension `d`, the same along the others.
pub(crate) fn along(b: &mut Builder<'_>, vector: Value, d: usize, shape: &[u32]) -> Value {
    let value = expanded(b, vector, d, shape.len());
    broadcast(b, value, shape)
}

fn scaled(b: &mut Builder<'_>, value: Value, by: Value) -> Value {
    let by = splat(b, by, value);
    arith::Muli::build(b, value, by).result(b.module)
}

fn sum(b: &mut Builder<'_>, so_far: Option<Value>, value: Value) -> Value {
    match so_far {
        Some(so_far) => arith::Addi::build(b, so_far, value).result(b.module),
        None => value,
    }
}

pub(crate) fn both(b: &mut Builder<'_>, so_far: Option<Value>, value: Value) -> Value {
    match so_far {
        Some(so_far) => arith::Andi::build(b, so_far, value).result(b.module),
        None => value,
    }
}

fn pointers(b: &mut Builder<'_>, base: Value, offsets: Value) -> Value {
    let base = splat(b, base, offsets);
    tt::Addptr::build(b, base, offsets).result(b.module)
}

/// What masked-off elements read as: zero, or NaN where `nan` holds.
fn padding(b: &mut Builder<'_>, nan: Value, ty: Type) -> Value {
    let element = b.module.element_type(ty);
    if !b.module.is_float(element) {
        return b.int(0, ty);
    }
    let (zero, not_a_number) = (b.float(0.0, element), b.float(f64::NAN, element));
    let scalar = arith::Select::build(b, nan, not_a_number, zero).result(b.module);
    tt::Splat::build(b, scalar, ty).result(b.module)
}

/// A tensor with the leading dimensions of extent 1 that it may lack.
fn shaped(b: &mut Builder<'_>, value: Value, ty: Type) -> Value {
    if b.module.value_type(value) == ty {
        return value;
    }
    tt::Reshape::build(b, value, false, false, ty).result(b.module)
}
