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

use std::sync::Arc;

use ruff_python_ast::Operator;
use tilewright_ir::dialect::{ttg, ttng};

use super::super::call::Args;
use super::super::{Eval, Evaluator, builder};
use crate::dtype::{DType, PointerType, Scalar};
use crate::host::HostValue;
use crate::value::{Barriers, Tensor, Value};

/// What an mbarrier counts to (PTX ISA, "mbarrier.init").
const MAX_COUNT: i128 = (1 << 20) - 1;

impl Evaluator<'_> {
    pub(super) fn alloc_barriers(&mut self, args: &Args, single: bool) -> Eval<Value> {
        if self.options.num_ctas > 1 {
            return Err(self.not_supported_yet("barriers in shared memory with num_ctas above 1"));
        }
        let count = if single { 1 } else { self.positive(args, "num_barriers", 1 << 12)? };
        let arrive_count = self.positive(args, "arrive_count", MAX_COUNT)?;
        let ready = match args.get("init") {
            Value::Const(HostValue::Int(0)) => false,
            Value::Const(HostValue::Int(1)) => true,
            other => return Err(self.bad_argument(args, "init", other, "tle.gpu.PENDING or tle.gpu.READY")),
        };
        if args.optional("expect_bytes").is_some() {
            self.positive(args, "expect_bytes", MAX_COUNT)?;
            return Err(self.not_supported_yet("`expect_bytes` of barriers, which copies arrive at"));
        }
        let ty = ttng::mbarrier_type(&mut self.module, Some(count as u32));
        let value = ttg::LocalAlloc::build(&mut builder!(self), None, ty).result(&self.module);
        let element = PointerType { element: Scalar::Int64.into(), address_space: 3, constant: false };
        let handle = Tensor::scalar(value, DType::Pointer(element.into()));
        let all = Barriers { handle, count: Some(count as u32), arrive_count: arrive_count as i32, ready };
        for i in 0..count {
            let one = self.one_barrier(&all, &Value::Const(HostValue::Int(i)))?;
            ttng::InitBarrier::build(&mut builder!(self), one.handle.value, arrive_count as i32);
        }
        if single {
            let one = self.one_barrier(&all, &Value::int(0))?;
            return Ok(Value::Barriers(Arc::new(one)));
        }
        Ok(Value::Barriers(Arc::new(all)))
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

    /// The phase that a call names.
    fn phase_arg(&mut self, args: &Args) -> Eval<Tensor> {
        match args.get("phaseIdx") {
            Value::Const(HostValue::None) => {
                Err(self.not_supported_yet("named barriers: a wait or an arrival without `phaseIdx`"))
            }
            given @ Value::Const(HostValue::Int(_)) => {
                let given = self.tensor_of(given)?;
                self.cast(&given, &Scalar::Int32.into())
            }
            Value::Tensor(t)
                if !t.is_block() && t.number().is_some_and(|s| s.is_int() && s != Scalar::Int1) =>
            {
                self.cast(&t.clone(), &Scalar::Int32.into())
            }
            other => Err(self.bad_argument(args, "phaseIdx", other, "a scalar integer")),
        }
    }

    pub(super) fn barrier_wait(&mut self, args: &Args) -> Eval<Value> {
        let barrier = self.barrier_arg(args)?;
        let phase = self.phase_arg(args)?;
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
        if count > i128::from(barrier.arrive_count) {
            return Err(self
                .error(format!("{count} arrivals at a barrier whose phases have {}", barrier.arrive_count)));
        }
        self.phase_arg(args)?;
        ttg::Barrier::build(&mut builder!(self));
        ttng::ArriveBarrier::build(&mut builder!(self), barrier.handle.value, None, count as i32, false);
        Ok(Value::NONE)
    }
}
