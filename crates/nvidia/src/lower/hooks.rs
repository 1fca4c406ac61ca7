//! The answers to [`Hooks`].

use std::borrow::Cow;

use tilewright_ir as ir;
use tilewright_ir::dialect::{arith, tt, ttg};
use tilewright_ir::{FloatKind, Opcode, TypeKind};
use tilewright_layout::{MatrixAccess, MatrixInstruction, TileLayout};
use tilewright_llvm::{Builder, Effect, Scalar, Ty, Value};
use tilewright_lower::{Approximation, Atomic, Buffer, Hooks, LoadHints, Result, Shuffle, WordValues, Words};

use super::symbol::symbol;
use super::tma::TENSOR_MAP;
use super::{Lower, Nvidia, Shared};

impl Hooks for Nvidia {
    fn symbol(name: &str) -> Cow<'_, str> {
        symbol(name)
    }

    fn by_value(m: &ir::Module, ty: ir::Type) -> Option<(u32, u32)> {
        matches!(m.type_kind(ty), TypeKind::TensorDesc { .. }).then_some(TENSOR_MAP)
    }

    fn begin(l: &mut Shared<'_>, function: ir::Op) -> Result<()> {
        let mut l = Lower(l);
        l.hooks.needs_l1 = l.reads_again(function) || l.spills(function);
        l.find_workers(function)
    }

    fn before_return(l: &mut Shared<'_>) {
        let mut l = Lower(l);
        l.end_workers();
        l.end_symmetric();
    }

    fn end(l: &mut Shared<'_>) -> Result<()> {
        if let Some(workers) = l.hooks.workers {
            Lower(l).workers(workers)?;
        }
        Ok(())
    }

    fn operation(l: &mut Shared<'_>, op: ir::Op) -> Result<bool> {
        let m = l.m;
        let mut l = Lower(l);
        match m.opcode(op) {
            Some(Opcode::Tt(kind)) => match kind {
                tt::Kind::Dot => return l.dot(tt::Dot(op)),
                tt::Kind::ExternElementwise => l.extern_elementwise(tt::ExternElementwise(op))?,
                tt::Kind::ProgramBarrier => l.program_barrier(tt::ProgramBarrier(op))?,
                tt::Kind::WaitSignal => l.wait_signal(tt::WaitSignal(op))?,
                tt::Kind::Send => l.send(tt::Send(op))?,
                tt::Kind::RawCall => {
                    l.raw_call(tt::RawCall(op))?;
                    l.order_loads(op);
                }
                tt::Kind::AtomicRmw => {
                    l.0.atomic_rmw(tt::AtomicRmw(op))?;
                    l.order_loads(op);
                }
                tt::Kind::AtomicCas => {
                    l.0.atomic_cas(tt::AtomicCas(op))?;
                    l.order_loads(op);
                }
                tt::Kind::ElementwiseInlineAsm => {
                    l.inline_asm(tt::ElementwiseInlineAsm(op))?;
                    l.order_loads(op);
                }
                _ => return Ok(false),
            },
            Some(Opcode::Ttg(kind)) => match kind {
                ttg::Kind::AsyncCopyGlobalToLocal => l.async_copy(ttg::AsyncCopyGlobalToLocal(op))?,
                ttg::Kind::AsyncCommitGroup => l.async_commit(op)?,
                ttg::Kind::AsyncWait => l.async_wait(ttg::AsyncWait(op))?,
                ttg::Kind::GlobalScratchAlloc => l.global_scratch_alloc(ttg::GlobalScratchAlloc(op))?,
                ttg::Kind::RemotePtr => l.remote_ptr(ttg::RemotePtr(op))?,
                ttg::Kind::WarpSpecialize => l.warp_specialize(ttg::WarpSpecialize(op))?,
                _ => return Ok(false),
            },
            Some(Opcode::Ttng(kind)) => l.hopper(op, kind)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn crosses_as_words(l: &mut Shared<'_>, ty: ir::Type) -> bool {
        Lower(l).crosses_as_words(ty)
    }

    fn words(l: &mut Shared<'_>, v: ir::Value) -> Result<Vec<Value>> {
        Lower(l).words_under_way(v)
    }

    /// Left operands of dots only keep registers for what comes in a loop's first iteration.
    fn may_be_undefined(l: &Shared<'_>, ty: ir::Type) -> bool {
        super::wgmma::is_left_operand(l, ty)
    }

    fn thread_id(l: &mut Shared<'_>) -> Value {
        l.b.intrinsic("llvm.nvvm.read.ptx.sreg.tid.x", Effect::Pure, Some(Ty::I32), &[])
    }

    fn program_id(l: &mut Shared<'_>, axis: tt::ProgramDim, count: bool) -> Value {
        let axis = axis.keyword();
        let register = if count { "nctaid" } else { "ctaid" };
        let name = format!("llvm.nvvm.read.ptx.sreg.{register}.{axis}");
        let v = l.b.intrinsic(&name, Effect::Pure, Some(Ty::I32), &[]);
        // A grid has at most 2^31 - 1 programs along an axis.
        l.b.assume_zeros(v, 1 << 31);
        // A program is a cluster, which lies along x.
        let clustered = axis == "x" && l.num_ctas > 1;
        if clustered { l.b.lshr(v, l.num_ctas.trailing_zeros()) } else { v }
    }

    fn barrier(l: &mut Shared<'_>) {
        if l.num_warps == l.scope.launched {
            l.b.intrinsic("llvm.nvvm.barrier0", Effect::Write, None, &[]);
        } else if l.num_warps == 1 {
            Self::warp_barrier(l);
        } else {
            let (barrier, warps) = (l.scope.barrier, l.num_warps);
            Lower(l).named_barrier(barrier, warps);
        }
    }

    fn warp_barrier(l: &mut Shared<'_>) {
        let all = l.b.i32(-1);
        l.b.intrinsic("llvm.nvvm.bar.warp.sync", Effect::Write, None, &[all]);
    }

    fn shuffle(l: &mut Shared<'_>, word: Value, how: Shuffle) -> Value {
        let full = l.b.i32(-1);
        let last = i64::from(l.target.warp_size - 1);
        let (name, lane, clamp) = match how {
            Shuffle::Xor(mask) => ("bfly", l.b.i32(i64::from(mask)), last),
            Shuffle::Index(lane) => ("idx", lane, last),
            Shuffle::Up(by) => ("up", l.b.i32(i64::from(by)), 0),
            Shuffle::Down(by) => ("down", l.b.i32(i64::from(by)), last),
        };
        let clamp = l.b.i32(clamp);
        let name = format!("llvm.nvvm.shfl.sync.{name}.i32");
        l.b.intrinsic(&name, Effect::Read, Some(Ty::I32), &[full, word, lane, clamp])
    }

    /// PTX ISA, "redux.sync".
    fn lane_reduction(operation: arith::Kind, ty: Ty) -> Option<&'static str> {
        use arith::Kind as K;
        if ty != Ty::I32 {
            return None;
        }
        Some(match operation {
            K::Addi => "llvm.nvvm.redux.sync.add",
            K::Andi => "llvm.nvvm.redux.sync.and",
            K::Ori => "llvm.nvvm.redux.sync.or",
            K::Xori => "llvm.nvvm.redux.sync.xor",
            K::Maxsi => "llvm.nvvm.redux.sync.max",
            K::Minsi => "llvm.nvvm.redux.sync.min",
            K::Maxui => "llvm.nvvm.redux.sync.umax",
            K::Minui => "llvm.nvvm.redux.sync.umin",
            _ => return None,
        })
    }

    fn reduce_lanes(l: &mut Shared<'_>, intrinsic: &str, value: Value) -> Value {
        let all = l.b.i32(-1);
        l.b.intrinsic(intrinsic, Effect::Read, Some(Ty::I32), &[value, all])
    }

    fn load_global(
        l: &mut Shared<'_>,
        ptr: Value,
        words: Words,
        pred: Option<Value>,
        other: Option<&[Value]>,
        hints: LoadHints,
    ) -> WordValues {
        match Lower(l).is_symmetric(ptr) {
            true => Lower(l).load_symmetric(ptr, words, pred, other),
            false => Lower(l).load_global(ptr, words, pred, other, hints),
        }
    }

    const RELAXED_STORES: bool = true;

    fn store_relaxed(
        l: &mut Shared<'_>,
        ptr: Value,
        values: &[Value],
        words: Words,
        pred: Option<Value>,
        scope: tt::MemSyncScope,
    ) {
        match Lower(l).is_symmetric(ptr) {
            true => Lower(l).store_symmetric(ptr, values, words, pred),
            false => Lower(l).store_relaxed(ptr, values, words, pred, scope),
        }
    }

    fn store_global(
        l: &mut Shared<'_>,
        ptr: Value,
        values: &[Value],
        words: Words,
        pred: Option<Value>,
        cache: tt::CacheModifier,
        evict: tt::EvictionPolicy,
    ) {
        match Lower(l).is_symmetric(ptr) {
            true => Lower(l).store_symmetric(ptr, values, words, pred),
            false => Lower(l).store_global(ptr, values, words, pred, cache, evict),
        }
    }

    fn atomic(
        l: &mut Shared<'_>,
        what: Atomic,
        ptr: Value,
        values: &[Value],
        pred: Option<Value>,
    ) -> Result<Value> {
        match Lower(l).is_symmetric(ptr) {
            true => Lower(l).atomic_symmetric(what, ptr, values, pred),
            false => Lower(l).atomic(what, ptr, values, pred),
        }
    }

    fn has_fence(l: &mut Shared<'_>, ptr: Value) -> bool {
        !Lower(l).is_symmetric(ptr)
    }

    fn fence(l: &mut Shared<'_>, ptr: Value, scope: tt::MemSyncScope) {
        Lower(l).fence(ptr, scope);
    }

    fn adds_side_by_side(l: &mut Shared<'_>, ptr: Value, ty: Ty) -> bool {
        !Lower(l).is_symmetric(ptr) && Lower(l).adds_side_by_side(ty)
    }

    fn add_side_by_side(
        l: &mut Shared<'_>,
        ty: Ty,
        ptr: Value,
        values: &[Value],
        words: Words,
        pred: Option<Value>,
        scope: tt::MemSyncScope,
    ) {
        Lower(l).add_side_by_side(ty, ptr, values, words, pred, scope);
    }

    fn load_shared(l: &mut Shared<'_>, ptr: Value, words: Words, pred: Option<Value>) -> WordValues {
        Lower(l).load_shared_words(ptr, words, pred)
    }

    fn store_shared(l: &mut Shared<'_>, ptr: Value, values: &[Value], words: Words, pred: Option<Value>) {
        Lower(l).store_shared_words(ptr, values, words, pred);
    }

    fn count_shared(l: &mut Shared<'_>, ptr: Value, pred: Option<Value>) {
        Lower(l).count_shared(ptr, pred);
    }

    fn load_tile(
        l: &mut Shared<'_>,
        buffer: &Buffer,
        buffer_ty: ir::Type,
        ty: ir::Type,
        tile: &TileLayout,
    ) -> Result<Option<Vec<Value>>> {
        Lower(l).load_matrices(buffer, buffer_ty, ty, tile)
    }

    fn store_matrices(
        l: &mut Shared<'_>,
        plan: &MatrixAccess,
        instruction: &MatrixInstruction,
        at: Value,
        regs: &[Value],
        pred: Option<Value>,
    ) -> Result<()> {
        Lower(l).stmatrix(plan, instruction, at, regs, pred);
        Ok(())
    }

    fn bf16_arithmetic(&self) -> bool {
        self.target.facts().bf16_arithmetic
    }

    fn mul_high(b: &mut Builder<'_>, x: Value, y: Value) -> Value {
        b.intrinsic("llvm.nvvm.mulhi.ull", Effect::Pure, Some(Ty::I64), &[x, y])
    }

    fn divide(l: &mut Shared<'_>, x: Value, y: Value) -> Value {
        l.b.asm1("div.full.f32 $0, $1, $2;", "=f,f,f", Effect::Pure, Ty::F32, &[x, y])
    }

    fn maxnum(l: &mut Shared<'_>, x: Value, y: Value) -> Value {
        let ty = l.b.ty(x);
        // 16-bit floats go by as words.
        let (name, register, word) = match (ty.scalar, ty.lanes) {
            (Scalar::F64, 1) => ("f64", "d", ty),
            (Scalar::F16, 1) => ("f16", "h", Ty::I16),
            (Scalar::BF16, 1) => ("bf16", "h", Ty::I16),
            (Scalar::F16, 2) => ("f16x2", "r", Ty::I32),
            (Scalar::BF16, 2) => ("bf16x2", "r", Ty::I32),
            _ => ("f32", "f", ty),
        };
        let [x, y] = [x, y].map(|v| l.b.bitcast(v, word));
        let constraints = format!("={register},{register},{register}");
        let max = l.b.asm1(&format!("max.{name} $0, $1, $2;"), &constraints, Effect::Pure, word, &[x, y]);
        l.b.bitcast(max, ty)
    }

    fn approximate(l: &mut Shared<'_>, function: Approximation, x: Value) -> Value {
        let instruction = match function {
            Approximation::Sqrt => "sqrt.approx.f32",
            Approximation::Rsqrt => "rsqrt.approx.f32",
            Approximation::Reciprocal => "rcp.approx.f32",
            Approximation::Exp2 => "ex2.approx.f32",
            Approximation::Exp2Flushed => "ex2.approx.ftz.f32",
        };
        l.b.asm1(&format!("{instruction} $0, $1;"), "=f,f", Effect::Pure, Ty::F32, &[x])
    }

    fn pack_halves(l: &mut Shared<'_>, low: Value, high: Value, to: Scalar, towards_zero: bool) -> Value {
        let name = if to == Scalar::F16 { "f16x2" } else { "bf16x2" };
        let text = format!("cvt.{}.{name}.f32 $0, $2, $1;", if towards_zero { "rz" } else { "rn" });
        l.b.asm1(&text, "=r,f,f", Effect::Pure, Ty::I32, &[low, high])
    }

    fn f32_towards_zero(l: &mut Shared<'_>, x: Value, signed: bool) -> Value {
        let sign = if signed { 's' } else { 'u' };
        let (from, letter) = match l.b.ty(x) {
            Ty::F64 => ("f64".to_string(), 'd'),
            Ty::I64 => (format!("{sign}64"), 'l'),
            _ => (format!("{sign}32"), 'r'),
        };
        let text = format!("cvt.rz.f32.{from} $0, $1;");
        l.b.asm1(&text, &format!("=f,{letter}"), Effect::Pure, Ty::F32, &[x])
    }

    /// PTX ISA, "cvt": sm_89 and later.
    fn widen_fp8(l: &mut Shared<'_>, low: Value, high: Value, from: FloatKind) -> Option<Value> {
        if !l.hooks.target.facts().fp8 {
            return None;
        }
        let name = if from == FloatKind::F8E4M3FN { "e4m3x2" } else { "e5m2x2" };
        let packed = l.pack_word(&[low, high]);
        Some(l.b.asm1(&format!("cvt.rn.f16x2.{name} $0, $1;"), "=r,h", Effect::Pure, Ty::I32, &[packed]))
    }

    fn narrow_fp8(l: &mut Shared<'_>, low: Value, high: Value, to: FloatKind) -> Option<Value> {
        if !l.hooks.target.facts().fp8 {
            return None;
        }
        let name = if to == FloatKind::F8E4M3FN { "e4m3x2" } else { "e5m2x2" };
        let text = format!("cvt.rn.satfinite.{name}.f32 $0, $2, $1;");
        Some(l.b.asm1(&text, "=h,f,f", Effect::Pure, Ty::I16, &[low, high]))
    }

    fn printf(l: &mut Shared<'_>, format: &str, args: &[Value]) {
        Lower(l).printf(format, args);
    }

    fn promise_below(l: &mut Shared<'_>, number: Value, limit: u32) {
        // A comment to ptxas, an instruction to the simulator.
        let (ty, class) = if l.b.ty(number) == Ty::I64 { ("u64", "l") } else { ("u32", "r") };
        l.b.asm(&format!("//@tilewright.below.{ty} $0, {limit};"), class, Effect::Write, &[], &[number]);
    }

    fn fail(l: &mut Shared<'_>, message: &str, file: &str, line: u32) {
        Lower(l).fail(message, file, line);
    }
}
