//! The answers to [`Hooks`].

use std::borrow::Cow;

use tilewright_ir as ir;
use tilewright_ir::Opcode;
use tilewright_ir::dialect::{arith, scf, tt, ttg};
use tilewright_llvm::{Builder, CastOp, Effect, IntPred, Scalar, Ty, Value};
use tilewright_lower::{
    Approximation, Atomic, Hooks, LoadHints, OWN_PREFIX, Result, SHARED_MEMORY, Shuffle, WordValues, Words,
};

use super::{AxisAnalysis, Lower, Shared, Xe};

impl Hooks for Xe {
    fn symbol(name: &str) -> Cow<'_, str> {
        if name == SHARED_MEMORY || name.starts_with(OWN_PREFIX) || name.starts_with("__builtin_") {
            return Cow::Owned(format!("k_{name}"));
        }
        Cow::Borrowed(name)
    }

    fn begin(l: &mut Shared<'_>, _function: ir::Op) -> Result<()> {
        l.hooks.axis = AxisAnalysis::run(l.m);
        Ok(())
    }

    fn operation(l: &mut Shared<'_>, op: ir::Op) -> Result<bool> {
        let m = l.m;
        let mut l = Lower(l);
        match m.opcode(op) {
            Some(Opcode::Tt(kind)) => match kind {
                tt::Kind::MakeTensorDescriptor => l.descriptor(tt::MakeTensorDescriptor(op))?,
                tt::Kind::DescriptorLoad => l.descriptor_load(tt::DescriptorLoad(op))?,
                tt::Kind::DescriptorPrefetch => l.descriptor_prefetch(tt::DescriptorPrefetch(op))?,
                tt::Kind::DescriptorStore => l.descriptor_store(tt::DescriptorStore(op))?,
                tt::Kind::Dot => return l.dot(tt::Dot(op)),
                tt::Kind::Extract => return Ok(l.extract_part(tt::Extract(op))),
                tt::Kind::ExternElementwise => l.extern_elementwise(tt::ExternElementwise(op))?,
                tt::Kind::Trans => return Ok(l.is_between(op)),
                tt::Kind::Print => return Err(l.unsupported("printing")),
                tt::Kind::Assert => return Err(l.unsupported("assertions at run time")),
                _ => return Ok(false),
            },
            Some(Opcode::Ttg(ttg::Kind::ConvertLayout)) => return Ok(l.is_between(op)),
            Some(Opcode::Ttg(ttg::Kind::BarrierArrive)) => l.barrier_arrive(),
            Some(Opcode::Ttg(ttg::Kind::BarrierWait)) => {
                l.b.intrinsic("xe.barrier_wait", Effect::Write, None, &[]);
            }
            Some(Opcode::Scf(scf::Kind::For)) => return l.versioned_loop(scf::For(op)),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn thread_id(l: &mut Shared<'_>) -> Value {
        l.b.intrinsic("xe.id.LocalInvocationId.x", Effect::Pure, Some(Ty::I32), &[])
    }

    fn program_id(l: &mut Shared<'_>, axis: tt::ProgramDim, count: bool) -> Value {
        let axis = axis.keyword();
        let variable = if count { "NumWorkgroups" } else { "WorkgroupId" };
        let v = l.b.intrinsic(&format!("xe.id.{variable}.{axis}"), Effect::Pure, Some(Ty::I32), &[]);
        // A grid has at most 2^31 - 1 programs along an axis.
        l.b.assume_zeros(v, 1 << 31);
        v
    }

    fn barrier(l: &mut Shared<'_>) {
        // (One of the work group is a message and fences, one of the sub-group no instruction.)
        if l.num_warps == 1 {
            return Self::warp_barrier(l);
        }
        l.b.intrinsic("xe.barrier", Effect::Write, None, &[]);
    }

    fn warp_barrier(l: &mut Shared<'_>) {
        l.b.intrinsic("xe.warp_barrier", Effect::Write, None, &[]);
    }

    fn shuffle(l: &mut Shared<'_>, word: Value, how: Shuffle) -> Value {
        let mut by = |name: &str, word: Value, lane: Value| {
            l.b.intrinsic(name, Effect::Read, Some(Ty::I32), &[word, lane])
        };
        let distance = match how {
            Shuffle::Index(lane) => return by("xe.shuffle", word, lane),
            Shuffle::Xor(mask) => {
                let mask = l.b.i32(i64::from(mask));
                return l.b.intrinsic("xe.shuffle_xor", Effect::Read, Some(Ty::I32), &[word, mask]);
            }
            Shuffle::Up(by) => -i64::from(by),
            Shuffle::Down(by) => i64::from(by),
        };
        let own = l.lane();
        let other = l.b.add_const(own, distance);
        let lanes = l.b.i32(i64::from(l.target.warp_size));
        // Below zero is a large number without a sign.
        let there = l.b.icmp(IntPred::Ult, other, lanes);
        let lane = l.b.select(there, other, own);
        l.b.intrinsic("xe.shuffle", Effect::Read, Some(Ty::I32), &[word, lane])
    }

    fn lane_reduction(operation: arith::Kind, ty: Ty) -> Option<&'static str> {
        use arith::Kind as K;
        if !matches!(ty, Ty::F32 | Ty::I32 | Ty::F64 | Ty::I64) {
            return None;
        }
        Some(match operation {
            K::Addf => "xe.reduce.GroupFAdd",
            K::Maxnumf => "xe.reduce.GroupFMax",
            K::Minnumf => "xe.reduce.GroupFMin",
            K::Addi => "xe.reduce.GroupIAdd",
            K::Maxsi => "xe.reduce.GroupSMax",
            K::Minsi => "xe.reduce.GroupSMin",
            K::Maxui => "xe.reduce.GroupUMax",
            K::Minui => "xe.reduce.GroupUMin",
            _ => return None,
        })
    }

    fn load_global(
        l: &mut Shared<'_>,
        ptr: Value,
        words: Words,
        pred: Option<Value>,
        other: Option<&[Value]>,
        hints: LoadHints,
    ) -> WordValues {
        // Past all caches is what a volatile access is.
        let volatile = hints.volatile || hints.cache == tt::CacheModifier::Cv;
        Lower(l).load_words(ptr, words, pred, other, volatile)
    }

    fn store_global(
        l: &mut Shared<'_>,
        ptr: Value,
        values: &[Value],
        words: Words,
        pred: Option<Value>,
        _cache: tt::CacheModifier,
        _evict: tt::EvictionPolicy,
    ) {
        Lower(l).store_words(ptr, values, words, pred);
    }

    fn atomic(
        l: &mut Shared<'_>,
        what: Atomic,
        ptr: Value,
        values: &[Value],
        pred: Option<Value>,
    ) -> Result<Value> {
        Lower(l).atomic(what, ptr, values, pred)
    }

    fn load_shared(l: &mut Shared<'_>, ptr: Value, words: Words, pred: Option<Value>) -> WordValues {
        Lower(l).load_words(ptr, words, pred, None, false)
    }

    fn store_shared(l: &mut Shared<'_>, ptr: Value, values: &[Value], words: Words, pred: Option<Value>) {
        Lower(l).store_words(ptr, values, words, pred);
    }

    fn count_shared(l: &mut Shared<'_>, ptr: Value, pred: Option<Value>) {
        Lower(l).count_shared(ptr, pred);
    }

    fn bf16_arithmetic(&self) -> bool {
        false
    }

    fn mul_high(b: &mut Builder<'_>, x: Value, y: Value) -> Value {
        b.intrinsic("xe.cl.u_mul_hi", Effect::Pure, Some(Ty::I64), &[x, y])
    }

    fn divide(l: &mut Shared<'_>, x: Value, y: Value) -> Value {
        l.b.intrinsic("xe.cl.native_divide", Effect::Pure, Some(Ty::F32), &[x, y])
    }

    fn maxnum(l: &mut Shared<'_>, x: Value, y: Value) -> Value {
        let ty = l.b.ty(x);
        l.b.intrinsic(&format!("llvm.maxnum.{}", ty.mangled()), Effect::Pure, Some(ty), &[x, y])
    }

    fn approximate(l: &mut Shared<'_>, function: Approximation, x: Value) -> Value {
        let name = match function {
            Approximation::Sqrt => "native_sqrt",
            Approximation::Rsqrt => "native_rsqrt",
            Approximation::Reciprocal => "native_recip",
            Approximation::Exp2 | Approximation::Exp2Flushed => "native_exp2",
        };
        l.b.intrinsic(&format!("xe.cl.{name}"), Effect::Pure, Some(Ty::F32), &[x])
    }

    fn pack_halves(l: &mut Shared<'_>, low: Value, high: Value, to: Scalar, towards_zero: bool) -> Value {
        let ty = Ty::scalar(to);
        let halves = [low, high].map(|x| match (to, towards_zero) {
            (_, false) => l.b.cast(CastOp::FpTrunc, x, ty),
            (Scalar::F16, true) => l.b.intrinsic("xe.rtz.FConvert", Effect::Pure, Some(ty), &[x]),
            (_, true) => Lower(l).bf16_towards_zero(x),
        });
        l.pack_word(&halves)
    }

    fn f32_towards_zero(l: &mut Shared<'_>, x: Value, signed: bool) -> Value {
        let op = match (l.b.ty(x), signed) {
            (Ty::F64, _) => "FConvert",
            (_, true) => "ConvertSToF",
            (_, false) => "ConvertUToF",
        };
        l.b.intrinsic(&format!("xe.rtz.{op}"), Effect::Pure, Some(Ty::F32), &[x])
    }

    /// Refused by the emitter: what prints or fails has been refused with its place before.
    fn printf(l: &mut Shared<'_>, _format: &str, _args: &[Value]) {
        l.b.intrinsic("xe.printf", Effect::Write, None, &[]);
    }

    fn fail(l: &mut Shared<'_>, _message: &str, _file: &str, _line: u32) {
        l.b.intrinsic("xe.fail", Effect::Write, None, &[]);
    }
}
