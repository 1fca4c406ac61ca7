//! `tle.gpu.warp_specialize`: functions that run at the same time, each on warps of its own.
//!
//! ```text
//! tle.gpu.warp_specialize([(f, (a, b)), (g, (a, c))], [4], [168])
//! =>
//! %r = ttg.warp_specialize(%a, %c) attributes {requestedRegisters = array<i32: 168>}
//! default {
//!   f's body, with %a and %b                 (it sees the values around it)
//!   ttg.warp_yield %r
//! }
//! partition0(%a0: …, %c0: …) num_warps(4) {
//!   g's body, with %a0 and %c0               (it sees its arguments alone)
//!   ttg.warp_return
//! }
//! ```
//!
//! With `reuse_default_warps` every function is a partition, the default region is empty, and its warps run the partitions ([`marks::REUSE`]).
//!
//! Only scalars, pointers, descriptors and buffers can cross into a partition. Constants and views of buffers are made anew in there, so that every
//! pass sees which slot a partition accesses; a tensor is stored to a buffer before, and loaded where the partition begins.

use rustc_hash::FxHashMap;
use tilewright_ir::dialect::{tt, ttg};
use tilewright_ir::module::OpSpec;
use tilewright_ir::options::MAX_WARPS;
use tilewright_ir::warp_groups::{GROUP, MIN_REGISTERS, MOST_REGISTERS, Placement};
use tilewright_ir::{AttrKind, Block, Op, Opcode, Type, Value as IrValue, marks};

use super::super::call::{Args, CallArgs};
use super::super::{Eval, Evaluator, builder};
use crate::dtype::{DType, Scalar};
use crate::host::HostValue;
use crate::value::{Buffer, Tensor, Value};

/// A function and its arguments.
struct Entry {
    function: Value,
    name: String,
    args: Vec<Value>,
}

/// How the values around a partition reach it.
#[derive(Default)]
struct Captures {
    /// In the order of the partitions' arguments.
    values: Vec<IrValue>,
    /// The buffers in which tensors cross.
    stored: FxHashMap<IrValue, Buffer>,
}

/// Which partition is evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InPartition {
    /// 0 is the default partition, 1 + i worker i.
    pub number: usize,
    /// The warps that run it.
    pub warps: u32,
}

impl Evaluator<'_> {
    pub(super) fn warp_specialize(&mut self, args: &Args) -> Eval<Value> {
        self.may_specialize()?;
        let reuse = self.bool_arg(args, "reuse_default_warps")?;
        let mut entries = self.partition_entries(args)?;
        let workers = if reuse { std::mem::take(&mut entries) } else { entries.split_off(1) };
        let warps = self.for_each_worker(args, "worker_num_warps", "warp count", workers.len())?;
        let registers = match reuse {
            true => Vec::new(),
            false => self.for_each_worker(args, "worker_num_regs", "register count", workers.len())?,
        };
        match reuse {
            true => self.check_shares(args, &warps)?,
            false => self.check_counts(&warps, &registers)?,
        }
        let mut captures = Captures::default();
        for leaf in workers.iter().flat_map(|w| &w.args).flat_map(|a| a.leaves()) {
            self.capture_argument(&leaf.clone(), &mut captures)?;
        }
        let counts = |numbers: &[i128]| numbers.iter().map(|&n| n as i32).collect::<Vec<i32>>();
        let requested = Some(counts(&registers)).filter(|r| !r.is_empty());
        let op = ttg::WarpSpecialize::build(
            &mut builder!(self),
            &captures.values,
            counts(&warps),
            requested,
            None,
            None,
            &[],
        );
        let default = entries.pop();
        if default.is_none() {
            let mark = self.module.attr(AttrKind::Unit);
            self.module.set_attr(op.0, marks::REUSE, mark);
        }
        let result = self.default_region(op, default)?;
        self.worker_regions(op, workers, &warps, &captures)?;
        let results = result.map_leaves(&mut |t| {
            let ty = self.module.value_type(t.value);
            Tensor { value: self.module.add_result(op.0, ty), ..t.clone() }
        });
        Ok(results)
    }

    /// Evaluates the default partition, if the default warps have one of their own.
    fn default_region(&mut self, op: ttg::WarpSpecialize, default: Option<Entry>) -> Eval<Value> {
        let range = self.range;
        let region = op.default_region(&self.module);
        let block = self.module.append_block(region, &[]);
        self.inside(block, InPartition { number: 0, warps: self.options.num_warps }, |e| {
            let result = match default {
                Some(entry) => {
                    e.call(entry.function, CallArgs { positional: entry.args, keywords: Vec::new() })?
                }
                None => Value::Const(HostValue::None),
            };
            e.range = range;
            let values: Vec<IrValue> = result.leaves().iter().map(|t| t.value).collect();
            ttg::WarpYield::build(&mut builder!(e), &values);
            Ok(result)
        })
    }

    /// Evaluates the workers, a region each.
    fn worker_regions(
        &mut self,
        op: ttg::WarpSpecialize,
        workers: Vec<Entry>,
        warps: &[i128],
        captures: &Captures,
    ) -> Eval<()> {
        let holder = op.partition_holder(&self.module);
        let holder = self.module.append_block(holder, &[]);
        let loc = self.loc();
        let partitions = self.module.create_op(OpSpec::new(ttg::Kind::Partitions.def(), loc));
        self.module.append_op(holder, partitions);
        let types: Vec<Type> = captures.values.iter().map(|&v| self.module.value_type(v)).collect();
        for (i, (worker, &n)) in workers.into_iter().zip(warps).enumerate() {
            let region = self.module.add_region(partitions);
            let block = self.module.append_block(region, &types);
            let here = InPartition { number: 1 + i, warps: n as u32 };
            self.inside(block, here, |e| e.worker(worker, captures))?;
        }
        self.capture_rank_memory(op.0, partitions);
        Ok(())
    }

    /// How many warps run what is evaluated.
    pub(super) fn warps_here(&self) -> u32 {
        self.partition.map_or(self.options.num_warps, |p| p.warps)
    }

    /// Whether warps can be specialized at this place.
    fn may_specialize(&self) -> Eval<()> {
        if self.partition.is_some() {
            return Err(self
                .error("tle.gpu.warp_specialize inside one of its own functions")
                .note("all roles are entries of one tle.gpu.warp_specialize")
                .into());
        }
        self.of_one_cta("tle.gpu.warp_specialize")?;
        // Loops and branches are the function's own code; a function that combines elements is not.
        let mut around = self.module.block_parent_op(self.block);
        while let Some(op) = around.filter(|&op| tt::Func::cast(&self.module, op).is_none()) {
            if !matches!(self.module.opcode(op), Some(Opcode::Scf(_))) {
                return Err(self
                    .error("tle.gpu.warp_specialize in a function that combines elements")
                    .note("such a function is called for two elements, not by the kernel's warps")
                    .into());
            }
            around = self.module.parent_op(op);
        }
        Ok(())
    }

    fn partition_entries(&mut self, args: &Args) -> Eval<Vec<Entry>> {
        let wanted = "a list of (function, (arguments, …)) pairs";
        let Value::Tuple(list) = args.get("functions_and_args") else {
            return Err(self.bad_argument(
                args,
                "functions_and_args",
                args.get("functions_and_args"),
                wanted,
            ));
        };
        if list.items.is_empty() {
            return Err(self
                .error("tle.gpu.warp_specialize has no default partition: `functions_and_args` is empty")
                .note("entry 0 runs on the kernel's warps, the others on warps of their own")
                .into());
        }
        let mut entries = Vec::new();
        for (i, item) in list.items.iter().enumerate() {
            let pair = match item {
                Value::Tuple(pair) if pair.items.len() == 2 => pair,
                other => {
                    return Err(self.error(format!(
                        "entry {i} of tle.gpu.warp_specialize must be (function, arguments), not {other}"
                    )));
                }
            };
            let name = match &pair.items[0] {
                Value::Const(HostValue::Jit(function)) => function.name.to_string(),
                other => {
                    return Err(self
                        .error(format!(
                            "entry {i} of tle.gpu.warp_specialize must have a function, not {other}"
                        ))
                        .note("decorate it with @tilewright.jit")
                        .into());
                }
            };
            let Value::Tuple(positional) = &pair.items[1] else {
                return Err(self
                    .error(format!(
                        "the arguments of `{name}`, entry {i}, must be a tuple, not {}",
                        pair.items[1]
                    ))
                    .note("a tuple of one has a comma at its end: (x,)")
                    .into());
            };
            entries.push(Entry { function: pair.items[0].clone(), name, args: positional.items.clone() });
        }
        Ok(entries)
    }

    /// A list of constants, one for each worker.
    fn for_each_worker(&mut self, args: &Args, name: &str, what: &str, workers: usize) -> Eval<Vec<i128>> {
        let given = match args.get(name) {
            Value::Tuple(list) => list.items.clone(),
            Value::Const(HostValue::None) => Vec::new(),
            other => {
                return Err(self.bad_argument(args, name, other, "a list of integers, one for each worker"));
            }
        };
        if given.len() != workers {
            let s = |n: usize| if n == 1 { "" } else { "s" };
            return Err(self
                .error(format!(
                    "tle.gpu.warp_specialize has {workers} worker{} but {} {what}{} in `{name}`",
                    s(workers),
                    given.len(),
                    s(given.len())
                ))
                .note(match self.bool_arg(args, "reuse_default_warps")? {
                    true => "with reuse_default_warps=True every entry is one",
                    false => "entry 0 is the default partition, which has the kernel's warps; every other entry is a worker",
                })
                .into());
        }
        let mut numbers = Vec::new();
        for value in &given {
            match value {
                Value::Const(HostValue::Int(n)) => numbers.push(*n),
                Value::Tensor(_) => {
                    return Err(self.needs_constexpr(value, &format!("a {what} of `{name}`")));
                }
                other => return Err(self.bad_argument(args, name, other, "a list of integers")),
            }
        }
        Ok(numbers)
    }

    /// Whether entries of so many warps share out the kernel's.
    fn check_shares(&self, args: &Args, warps: &[i128]) -> Eval<()> {
        if args.optional("worker_num_regs").is_some() {
            return Err(self
                .error("a tle.gpu.warp_specialize with reuse_default_warps=True has no `worker_num_regs`")
                .note("its entries are run by the kernel's own warps, with their registers")
                .into());
        }
        if let Some(n) = warps.iter().find(|n| ![1, 2, 4, 8, 16].contains(*n)) {
            return Err(self.error(format!("an entry of {n} warps: it must have 1, 2, 4, 8 or 16")));
        }
        let (all, main) = (warps.iter().sum::<i128>(), i128::from(self.options.num_warps));
        if all != main {
            return Err(self
                .error(format!("entries of {all} warps in all, and the kernel has num_warps={main}"))
                .note("with reuse_default_warps=True the entries, the first one too, share out the kernel's warps")
                .into());
        }
        Ok(())
    }

    /// Whether a CTA can have so many warps, and these so many registers: else the launch would fail.
    fn check_counts(&self, warps: &[i128], registers: &[i128]) -> Eval<()> {
        if let Some(n) = warps.iter().find(|n| ![1, 2, 4, 8, 16].contains(*n)) {
            return Err(self.error(format!("a worker of {n} warps: it must have 1, 2, 4, 8 or 16")));
        }
        let fits = |r: &&i128| (MIN_REGISTERS.into()..=MOST_REGISTERS.into()).contains(*r) && *r % 8 == 0;
        if let Some(r) = registers.iter().find(|r| !fits(r)) {
            return Err(self.error(format!(
                "{r} registers for each thread of a worker: it must be a multiple of 8 from {MIN_REGISTERS} to {MOST_REGISTERS}"
            )));
        }
        let main = self.options.num_warps;
        let warps: Vec<u32> = warps.iter().map(|&n| n as u32).collect();
        let all = main + warps.iter().sum::<u32>();
        if all > MAX_WARPS {
            let each: Vec<String> = std::iter::once(&main).chain(&warps).map(u32::to_string).collect();
            return Err(self
                .error(format!("{} = {all} warps: a CTA has at most {MAX_WARPS}", each.join(" + ")))
                .note("the kernel's num_warps comes first, the workers' follow; make one of them smaller")
                .into());
        }
        // Registers that don't move are a wish, which a remark of the compiler answers.
        if main.is_multiple_of(GROUP) {
            let wanted: Vec<u32> = registers.iter().map(|&r| r as u32).collect();
            if let Err(e) = Placement::new(main, &warps).in_whole_groups().registers(&wanted) {
                return Err(self.error(e.text).note(e.note).into());
            }
        }
        Ok(())
    }

    /// Evaluates in a block of a partition.
    fn inside<T>(
        &mut self,
        block: Block,
        here: InPartition,
        f: impl FnOnce(&mut Self) -> Eval<T>,
    ) -> Eval<T> {
        let outer = std::mem::replace(&mut self.block, block);
        self.partition = Some(here);
        let result = f(self);
        self.partition = None;
        self.block = outer;
        result
    }

    /// Evaluates a worker's function in its partition.
    fn worker(&mut self, worker: Entry, captures: &Captures) -> Eval<()> {
        let range = self.range;
        let mut known = FxHashMap::default();
        let mut tensors: FxHashMap<IrValue, Tensor> = FxHashMap::default();
        for leaf in worker.args.iter().flat_map(|a| a.leaves()) {
            let Some(buffer) = captures.stored.get(&leaf.value) else { continue };
            let value = self.bring(buffer.handle.value, captures, &mut known);
            let here = Buffer { handle: Tensor { value, ..buffer.handle.clone() }, ..buffer.clone() };
            let loaded = self.read(&here)?;
            tensors.insert(leaf.value, self.cast(&loaded, &leaf.dtype)?);
        }
        let mut positional = Vec::new();
        for arg in &worker.args {
            positional.push(arg.map_leaves(&mut |t| match tensors.get(&t.value) {
                Some(loaded) => loaded.clone(),
                None => Tensor { value: self.bring(t.value, captures, &mut known), ..t.clone() },
            }));
        }
        let returned = self.call(worker.function, CallArgs { positional, keywords: Vec::new() })?;
        self.range = range;
        if !returned.is_none() {
            return Err(self
                .error(format!("`{}` returns {returned}, but a worker returns nothing", worker.name))
                .note("only the default partition, entry 0, has a result; others write to memory")
                .into());
        }
        ttg::WarpReturn::build(&mut builder!(self));
        Ok(())
    }

    /// Makes ready what a partition needs of the values around it to have this one.
    fn capture_argument(&mut self, leaf: &Tensor, captures: &mut Captures) -> Eval<()> {
        if !leaf.is_block() {
            self.capture_value(leaf.value, captures);
            return Ok(());
        }
        if captures.stored.contains_key(&leaf.value) {
            return Ok(());
        }
        let stored = match &leaf.dtype {
            DType::Pointer(p) if p.address_space != 1 => {
                return Err(self
                    .not_supported_yet("a tensor of pointers into a buffer as the argument of a worker")
                    .note("pass the buffer, and call tle.gpu.local_ptr in the function")
                    .into());
            }
            DType::Pointer(_) => self.cast(leaf, &Scalar::Int64.into())?,
            _ => leaf.clone(),
        };
        let buffer = self.stored_in_buffer(&stored)?;
        self.capture_value(buffer.handle.value, captures);
        captures.stored.insert(leaf.value, buffer);
        Ok(())
    }

    /// The kernel's last argument, where its rank's memory begins, is nobody's argument: workers that reach other ranks get it behind their own.
    fn capture_rank_memory(&mut self, op: Op, partitions: Op) {
        let Some(memory) = self.meshes.rank_memory else { return };
        let m = &mut self.module;
        let inside: Vec<_> =
            m.uses(memory).iter().copied().filter(|u| m.is_ancestor(partitions, u.op)).collect();
        if inside.is_empty() {
            return;
        }
        m.push_operand(op, memory);
        let ty = m.value_type(memory);
        for region in m.regions(partitions).to_vec() {
            for block in m.region_blocks(region).to_vec() {
                let here = m.add_block_arg(block, ty);
                for u in &inside {
                    if m.ancestor_in_block(block, u.op).is_some() {
                        m.set_operand(u.op, u.index as usize, here);
                    }
                }
            }
        }
    }

    fn capture_value(&mut self, value: IrValue, captures: &mut Captures) {
        if self.module.constant_value(value).is_some() || captures.values.contains(&value) {
            return;
        }
        match self.is_view(value) {
            Some(op) => {
                for operand in self.module.operands(op).to_vec() {
                    self.capture_value(operand, captures);
                }
            }
            None => captures.values.push(value),
        }
    }

    /// The operation by which a value is a view of a buffer.
    fn is_view(&self, value: IrValue) -> Option<Op> {
        let op = self.module.defining_op(value)?;
        let view = matches!(
            self.module.opcode(op),
            Some(Opcode::Ttg(
                ttg::Kind::MemdescIndex | ttg::Kind::MemdescSubslice | ttg::Kind::MemdescReshape
            ))
        );
        view.then_some(op)
    }

    /// A captured value in the partition under evaluation.
    fn bring(
        &mut self,
        value: IrValue,
        captures: &Captures,
        known: &mut FxHashMap<IrValue, IrValue>,
    ) -> IrValue {
        if let Some(&here) = known.get(&value) {
            return here;
        }
        let again = match self.module.defining_op(value) {
            Some(op) if self.module.constant_value(value).is_some() => Some(op),
            _ => self.is_view(value),
        };
        let here = match again {
            Some(op) => {
                let mut map: FxHashMap<IrValue, IrValue> = FxHashMap::default();
                for operand in self.module.operands(op).to_vec() {
                    let here = self.bring(operand, captures, known);
                    map.insert(operand, here);
                }
                let clone = self.module.clone_op(op, &mut map);
                self.module.append_op(self.block, clone);
                self.module.result(clone)
            }
            None => {
                let index = captures.values.iter().position(|&v| v == value);
                let args = self.module.block_args(self.block);
                index.map_or(value, |i| args[i])
            }
        };
        known.insert(value, here);
        here
    }
}
