//! Barriers of a kernel's own: `tle.gpu.alloc_barriers`, `barrier_wait`, `barrier_arrive`.
//!
//! One is an mbarrier in shared memory, which counts arrivals: a phase ends when all have come, and a wait names the parity of the phase that must
//! have ended. What a group of warps does before its arrival is done by all of them: a barrier of the group stands before it.
//!
//! ```text
//! bars = tle.gpu.alloc_barriers(2)
//! tle.gpu.barrier_arrive(bars[i], phaseIdx=k)
//! tle.gpu.barrier_wait(bars[i], phaseIdx=k)
//! =>
//! %b = ttg.local_alloc : () -> !ttg.memdesc<2x1xi64, …>     and ttng.init_barrier for each
//! ttg.barrier
//! ttng.arrive_barrier %b[%i], 1
//! ttng.wait_barrier %b[%i], %k & 1                          (^ 1 where the barrier is READY)
//! ```
//!
//! Without `phaseIdx` it is a barrier of the hardware: `ttng.named_barrier %b[%i]`, with `{arrives}` for an arrival.
//!
//! A barrier with `expect_bytes` counts what copies bring, too: those of a phase make one of its arrivals together, each the part that its
//! bytes are of all. So they may be several, in any order and of any partitions.
//!
//! ```text
//! full = tle.gpu.alloc_barrier(expect_bytes=24576)
//! tle.gpu.copy(desc, a, [128, 64], [i, j], barrier=full)
//! =>
//! ttng.init_barrier %full, 1 {tle.bytes = 24576}
//! ttng.barrier_expect %full, 16384 {tle.bytes = 24576}, %true
//! ttng.async_tma_copy_global_to_local %desc[%i, %j] %a, %full, %true
//! ```
//!
//! Programs of a cluster arrive at each other's barriers (`tle.remote`), and share copies: with `multicast` each of them brings a part of the
//! block to all, and announces all of its bytes to its own barrier. They meet when the barriers have been made, and before they end.
//!
//! ```text
//! tle.gpu.copy(desc, a, [128, 64], [i, j], barrier=full, multicast=(mesh, 0))
//! tle.gpu.barrier_arrive(tle.remote(empty, r, mesh), phaseIdx=k)
//! =>
//! ttng.async_tma_copy_global_to_local %desc[%i, %j] %a, %full, %true {ttg.multicast = 1}
//! ttng.arrive_barrier %empty, 1 cta %r
//! ```

use std::sync::Arc;

use ruff_python_ast::Operator;
use tilewright_ir::dialect::{tt, ttg, ttng};
use tilewright_ir::effects::is_pure;
use tilewright_ir::{Builder, Diagnostic, Op, Type, marks};

use super::super::call::Args;
use super::super::{Eval, Evaluator, builder};
use crate::dtype::{DType, PointerType, Scalar};
use crate::host::HostValue;
use crate::value::{Barriers, Buffer, Tensor, TensorDescriptor, Value};

/// What an mbarrier counts to (PTX ISA, "mbarrier.init").
const MAX_COUNT: i128 = (1 << 20) - 1;

impl Evaluator<'_> {
    pub(super) fn alloc_barriers(&mut self, args: &Args, single: bool) -> Eval<Value> {
        self.of_one_cta(args.builtin.shown().as_str())?;
        let count = if single { 1 } else { self.positive(args, "num_barriers", 1 << 12)? };
        let arrive_count = self.positive(args, "arrive_count", MAX_COUNT)?;
        let ready = match args.get("init") {
            Value::Const(HostValue::Int(0)) => false,
            Value::Const(HostValue::Int(1)) => true,
            other => return Err(self.bad_argument(args, "init", other, "tle.gpu.PENDING or tle.gpu.READY")),
        };
        let expect_bytes = self.expect_bytes_arg(args)?;
        let ty = ttng::mbarrier_type(&mut self.module, Some(count as u32));
        let value = ttg::LocalAlloc::build(&mut builder!(self), None, ty).result(&self.module);
        let element = PointerType { element: Scalar::Int64.into(), address_space: 3, constant: false };
        let handle = Tensor::scalar(value, DType::Pointer(element.into()));
        let arrive_count = arrive_count as i32;
        let count_of = Some(count as u32);
        let all = Barriers { handle, count: count_of, arrive_count, ready, expect_bytes, rank: None };
        for i in 0..count {
            let one = self.one_barrier(&all, &Value::Const(HostValue::Int(i)))?;
            let init = ttng::InitBarrier::build(&mut builder!(self), one.handle.value, arrive_count);
            self.mark_bytes(init.0, expect_bytes);
        }
        if single {
            let one = self.one_barrier(&all, &Value::int(0))?;
            return Ok(Value::Barriers(Arc::new(one)));
        }
        Ok(Value::Barriers(Arc::new(all)))
    }

    fn expect_bytes_arg(&mut self, args: &Args) -> Eval<Option<i32>> {
        if args.optional("expect_bytes").is_none() {
            return Ok(None);
        }
        let bytes = self.positive(args, "expect_bytes", MAX_COUNT)?;
        let unit = i128::from(ttng::BYTES_OF_ARRIVAL);
        if bytes % unit != 0 {
            return Err(self.error(format!(
                "no copies bring `expect_bytes` = {bytes} bytes: each brings a multiple of {unit}"
            )));
        }
        Ok(Some(bytes as i32))
    }

    /// Says of an operation on a barrier how many bytes copies bring in each of its phases.
    fn mark_bytes(&mut self, op: Op, expect_bytes: Option<i32>) {
        if let Some(bytes) = expect_bytes {
            self.module.set_i32_attr(op, marks::PHASE_BYTES, bytes);
        }
    }

    /// A constant number from 1 on.
    fn positive(&mut self, args: &Args, name: &str, most: i128) -> Eval<i128> {
        let n = self.int_arg(args, name)?;
        if (1..=most).contains(&n) {
            return Ok(n);
        }
        Err(self.error(format!("`{name}` of {} must be 1 to {most}, not {n}", args.builtin.shown())))
    }

    /// `bars[i]`
    pub(in super::super) fn barrier_item(&mut self, bars: &Barriers, index: &Value) -> Eval<Value> {
        Ok(Value::Barriers(Arc::new(self.one_barrier(bars, index)?)))
    }

    fn one_barrier(&mut self, bars: &Barriers, index: &Value) -> Eval<Barriers> {
        let Some(count) = bars.count else {
            return Err(self.error("a single barrier cannot be indexed"));
        };
        match index {
            Value::Const(HostValue::Int(i)) if !(0..i128::from(count)).contains(i) => {
                return Err(self.error(format!("barrier {i} of {count}, numbered from 0")));
            }
            Value::Const(HostValue::Int(_)) => {}
            Value::Tensor(t)
                if !t.is_block() && t.number().is_some_and(|s| s.is_int() && s != Scalar::Int1) => {}
            other => return Err(self.error(format!("barriers are numbered by scalar integers, not {other}"))),
        }
        let index = self.tensor_of(index)?;
        let index = self.cast(&index, &Scalar::Int32.into())?;
        let ty = ttng::mbarrier_type(&mut self.module, None);
        let value = ttg::MemdescIndex::build(&mut builder!(self), bars.handle.value, index.value, ty)
            .result(&self.module);
        Ok(Barriers { handle: Tensor { value, ..bars.handle.clone() }, count: None, ..bars.clone() })
    }

    fn barrier_arg(&mut self, args: &Args) -> Eval<Barriers> {
        match args.get("barrier") {
            Value::Barriers(b) if b.count.is_none() => Ok((**b).clone()),
            Value::Barriers(_) => Err(self
                .error(format!("{} takes one barrier, not all of an allocation", args.builtin.shown()))
                .note("give its number: bars[i]")
                .into()),
            other => {
                Err(self.bad_argument(args, "barrier", other, "a barrier, which tle.gpu.alloc_barrier gives"))
            }
        }
    }

    /// One of the program's own.
    fn own_barrier_arg(&mut self, args: &Args) -> Eval<Barriers> {
        let barrier = self.barrier_arg(args)?;
        if barrier.rank.is_none() {
            return Ok(barrier);
        }
        Err(self
            .error(format!("{} of a barrier of another program", args.builtin.shown()))
            .note("others' barriers are arrived at: tle.gpu.barrier_arrive")
            .into())
    }

    /// The phase that a call names; none for a barrier of the hardware.
    fn phase_arg(&mut self, args: &Args) -> Eval<Option<Tensor>> {
        match args.get("phaseIdx") {
            Value::Const(HostValue::None) => Ok(None),
            given @ Value::Const(HostValue::Int(_)) => {
                let given = self.tensor_of(given)?;
                self.cast(&given, &Scalar::Int32.into()).map(Some)
            }
            Value::Tensor(t)
                if !t.is_block() && t.number().is_some_and(|s| s.is_int() && s != Scalar::Int1) =>
            {
                self.cast(&t.clone(), &Scalar::Int32.into()).map(Some)
            }
            other => Err(self.bad_argument(args, "phaseIdx", other, "a scalar integer")),
        }
    }

    /// A wait or an arrival at a barrier of the hardware.
    fn named_barrier(&mut self, args: &Args, barrier: &Barriers, arrives: bool) -> Eval<Value> {
        if barrier.ready || barrier.expect_bytes.is_some() || barrier.arrive_count != 1 {
            return Err(self
                .error(format!(
                    "{} without `phaseIdx` is for barriers that are PENDING, of one arrival and no `expect_bytes`",
                    args.builtin.shown()
                ))
                .note("give the phase: phaseIdx=…")
                .into());
        }
        ttng::NamedBarrier::build(&mut builder!(self), barrier.handle.value, arrives, None, None, None);
        Ok(Value::NONE)
    }

    pub(super) fn barrier_wait(&mut self, args: &Args) -> Eval<Value> {
        let barrier = self.own_barrier_arg(args)?;
        let Some(phase) = self.phase_arg(args)? else { return self.named_barrier(args, &barrier, false) };
        let one = Value::int(1);
        let mut parity = self.tensor_binary(Operator::BitAnd, &Value::Tensor(phase), &one)?;
        if barrier.ready {
            parity = self.tensor_binary(Operator::BitXor, &Value::Tensor(parity), &one)?;
        }
        ttng::WaitBarrier::build(&mut builder!(self), barrier.handle.value, parity.value, None, &[]);
        Ok(Value::NONE)
    }

    pub(super) fn barrier_arrive(&mut self, args: &Args) -> Eval<Value> {
        let barrier = self.barrier_arg(args)?;
        let count = self.positive(args, "arrive_count", MAX_COUNT)?;
        let by_copies = i32::from(barrier.expect_bytes.is_some());
        if count > i128::from(barrier.arrive_count - by_copies) {
            let error = self
                .error(format!("{count} arrivals at a barrier whose phases have {}", barrier.arrive_count));
            return Err(match barrier.expect_bytes {
                Some(bytes) => {
                    error.note(format!("one of them is that of the copies which bring {bytes} bytes")).into()
                }
                None => error,
            });
        }
        if self.phase_arg(args)?.is_none() {
            if barrier.rank.is_some() {
                return Err(self
                    .error("a barrier of another program is one in memory: give its phase")
                    .note("phaseIdx=…")
                    .into());
            }
            return self.named_barrier(args, &barrier, true);
        }
        if !self.has_just_arrived() {
            ttg::Barrier::build(&mut builder!(self));
        }
        let (bar, cta) = (barrier.handle.value, barrier.rank.as_ref().map(|rank| rank.value));
        ttng::ArriveBarrier::build(&mut builder!(self), bar, None, cta, count as i32, false);
        Ok(Value::NONE)
    }

    /// Whether what stands here has done nothing since it arrived at another barrier, before which its threads have met.
    fn has_just_arrived(&self) -> bool {
        let m = &self.module;
        let last = std::iter::successors(m.last_op(self.block), |&op| m.prev_op(op));
        let last = last.into_iter().find(|&op| !is_pure(m, op) || !m.regions(op).is_empty());
        last.is_some_and(|op| ttng::ArriveBarrier::cast(m, op).is_some())
    }

    /// Where programs arrive at each other's barriers, or copy to each other: all have made theirs before.
    pub(super) fn begin_together(&mut self) -> Eval<()> {
        let inits = self.module.all_ops(self.module.root()).into_iter();
        let inits: Vec<Op> =
            inits.filter(|&op| ttng::InitBarrier::cast(&self.module, op).is_some()).collect();
        let of_kernel = |op: &&Op| {
            let parent = self.module.parent_op(**op);
            parent.is_some_and(|f| tt::Func::cast(&self.module, f).is_some())
        };
        if let Some(&inside) = inits.iter().find(|op| !of_kernel(op)) {
            let what = "barriers that are made in a loop or a branch of a kernel whose programs arrive at each other's";
            return Err(Diagnostic::unsupported(&self.module, self.module.op_loc(inside), what)
                .note("allocate them at the top of the kernel; tle.distributed_dot with `multicast` makes some, and stands outside of loops")
                .into());
        }
        if let Some(&last) = inits.last() {
            let mut b = Builder::after(&mut self.module, last);
            ttng::ClusterArrive::build(&mut b, false);
            ttng::ClusterWait::build(&mut b);
        }
        Ok(())
    }

    /// `tle.gpu.copy(desc, buffer, shape, offsets, barrier=…)`: one by the copy engine, whose bytes the barrier counts.
    pub(super) fn copy_to_barrier(&mut self, args: &Args) -> Eval<()> {
        let (src, dst) = (args.get("src"), args.get("dst"));
        let (Value::Descriptor(from), Value::Buffer(to)) = (src.clone(), dst.clone()) else {
            return Err(self
                .error(format!("`barrier` of tle.gpu.copy is for copies from a tensor descriptor to a buffer, not from {src} to {dst}"))
                .note("other copies are complete before what follows reads their destination, or asynchronous with is_async=True")
                .into());
        };
        if self.bool_arg(args, "is_async")? {
            return Err(self
                .error("a tle.gpu.copy has a `barrier` or is_async=True, not both")
                .note("a copy with a barrier goes on beside what follows until tle.gpu.barrier_wait")
                .into());
        }
        let evict = self.eviction(args)?;
        let barrier = self.own_barrier_arg(args)?;
        let Some(all) = barrier.expect_bytes else {
            return Err(self
                .error("the `barrier` of a tle.gpu.copy must expect bytes")
                .note("allocate it with expect_bytes=…, the bytes that the copies of one phase bring")
                .into());
        };
        let offsets = self.block_copied(args, &from, &to)?;
        let bytes = self.bytes_copied(&from, &to, all)?;
        let to = self.own_buffer(&to)?;
        let coord = self.block_offsets(&from, &offsets)?;
        let sharing = self.multicast_arg(args)?;
        let (bar, desc, buffer) = (barrier.handle.value, from.handle.value, to.handle.value);
        let mut b = builder!(self);
        let yes = b.int(1, Type::I1);
        let expect = ttng::BarrierExpect::build(&mut b, bar, yes, bytes);
        let cache = tt::CacheModifier::None;
        let copy = ttng::AsyncTmaCopyGlobalToLocal::build(
            &mut b, desc, &coord, bar, buffer, yes, cache, evict, false,
        );
        if sharing != 0 {
            self.module.set_i32_attr(copy.0, marks::MULTICAST, sharing);
        }
        self.mark_bytes(expect.0, Some(all));
        Ok(())
    }

    /// How many bytes a block brings to a buffer, for a barrier whose phases have `all`.
    fn bytes_copied(&mut self, from: &TensorDescriptor, to: &Buffer, all: i32) -> Eval<i32> {
        let (block, element) = (from.block(), from.element());
        if block != to.shape || element != to.element() {
            return Err(self.error(format!(
                "a tle.gpu.copy with a `barrier` of blocks of {} to {}: it converts nothing, and fills all of its buffer",
                from.block_type(),
                Value::Buffer(Arc::new(to.clone()))
            )));
        }
        let bytes = block.iter().map(|&n| u64::from(n)).product::<u64>() * u64::from(element.bits()) / 8;
        if bytes > all as u64 {
            return Err(self.error(format!(
                "a tle.gpu.copy of {bytes} bytes to a barrier whose phases have `expect_bytes` = {all}"
            )));
        }
        if !bytes.is_multiple_of(ttng::BYTES_OF_ARRIVAL as u64) {
            return Err(self.error(format!(
                "a tle.gpu.copy with a `barrier` of {bytes} bytes: the copy engine moves multiples of {}",
                ttng::BYTES_OF_ARRIVAL
            )));
        }
        Ok(bytes as i32)
    }
}
