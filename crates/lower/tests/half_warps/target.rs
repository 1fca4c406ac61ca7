//! A target of another vendor, as small as one can be: its warps have 16 lanes, its threads 8-byte accesses, and it has no
//! tensor cores, no asynchronous copies and no predicated instructions.
//!
//! What it answers is plain LLVM IR for NVPTX, so that the PTX simulator can run it: two of its warps share one of the
//! simulator's.

use std::borrow::Cow;
use std::fmt;
use std::time::Instant;

use tilewright_ir as ir;
use tilewright_ir::Diagnostic;
use tilewright_ir::dialect::tt;
use tilewright_llvm::emit;
use tilewright_llvm::{BinOp, Builder, CastOp, Effect, Scalar, Ty, Value};
use tilewright_lower::{
    Approximation, Hooks, LoadHints, Lower, LowerOptions, Lowered, Shuffle, WordValues, Words, int_of,
};
use tilewright_passes::contract::LOWERED;
use tilewright_passes::hopper::{allocate_warp_groups, lower_tma};
use tilewright_passes::machine::Machine;
use tilewright_passes::pass::{DCE, Row};
use tilewright_passes::target::{DotUnits, TargetInfo};
use tilewright_passes::transform::{
    allocate_shared, assign_layouts, global_barriers, inline_calls, lower_descriptors, lower_rings, membar,
};
use tilewright_target::{
    Code, Fact, Family, GivenStage, Missing, Passes, PythonEnvironment, Stage, StageKind, Stop, Target,
    Toolchain,
};

/// Threads of a warp.
pub const LANES: u32 = 16;

static PASSES: &[Row] = &[
    Row { pass: inline_calls::PASS, why: "what descriptors become is found within one function" },
    Row { pass: lower_descriptors::PASS, why: "blocks become pointers and masks" },
    Row { pass: assign_layouts::PASS, why: "tt becomes ttg" },
    Row { pass: lower_tma::PASS, why: "it has no such copies: what is left of descriptors is an error" },
    Row { pass: lower_rings::PASS, why: "nobody makes rings for it: one that a kernel has becomes barriers" },
    Row { pass: DCE, why: "what nobody looks at gets no memory" },
    Row { pass: allocate_warp_groups::PASS, why: "one group of warps, all of them" },
    Row { pass: allocate_shared::PASS, why: "scratch is final" },
    Row { pass: membar::PASS, why: "barriers depend on where scratch lies" },
    Row { pass: global_barriers::PASS, why: "what a store overwrites several threads may still load" },
];

/// What the passes know of it.
pub fn info() -> TargetInfo {
    TargetInfo {
        name: NAME.into(),
        warp_size: LANES,
        max_shared: 32 << 10,
        max_vector_bytes: 8,
        async_copy: false,
        dots: DotUnits { mma: false, fp8: false, wgmma: false, columns: &[] },
        stmatrix: false,
        tma: false,
        clusters: false,
        machine: Machine {
            products: 64,
            product_latency: 8,
            special: 8,
            load_latency: 100,
            copied_bytes: 16,
            registers: 1 << 15,
            registers_of_thread: 128,
            min_registers_of_thread: 16,
        },
        warp_units: None,
        passes: PASSES,
        lowered: LOWERED,
        otherwise: None,
    }
}

/// Its line in a registry of targets.
pub static HALF: Family = Family {
    names: || vec![NAME.to_string()],
    find: |name| (name == NAME).then(|| Box::new(Half) as Box<dyn Target>),
    stages: &[StageKind { name: "ptx", is_text: true }],
};

const NAME: &str = "half:16";

/// The target.
#[derive(Debug)]
struct Half;

impl fmt::Display for Half {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NAME)
    }
}

impl Target for Half {
    fn family(&self) -> &'static Family {
        &HALF
    }

    fn passes(&self) -> Passes {
        Passes::Ttg(Box::new(info()))
    }

    fn toolchain(&self, _: &PythonEnvironment) -> Result<Box<dyn Toolchain>, Diagnostic> {
        Ok(Box::new(Llvm))
    }
}

/// Its code is what LLVM makes.
struct Llvm;

impl Toolchain for Llvm {
    fn facts(&self) -> Vec<Fact> {
        vec![Fact { name: "llvm", text: tilewright_llvm::version(), file: tilewright_llvm::file() }]
    }

    fn missing(&self) -> Option<Missing> {
        None
    }

    fn make(
        &self,
        module: ir::Module,
        _: &str,
        _: &ir::Options,
        given: Option<&GivenStage>,
        _: &Stop,
    ) -> Result<Code, Diagnostic> {
        let start = Instant::now();
        let lowered = lower(&module).map_err(|e| *e)?;
        let (name, num_warps, shared) = (lowered.kernel, lowered.num_warps, lowered.shared_bytes);
        let made = emit::compile(lowered.module, emit::EmitOptions::default())
            .map_err(|e| Diagnostic::new(e.to_string()))?;
        let given = given.filter(|given| given.stage == "ptx").map(|given| given.bytes.clone());
        let bytes = given.unwrap_or_else(|| made.assembly.into_bytes());
        let ptx = Stage { name: "ptx", bytes, time: start.elapsed() };
        Ok(Code { name, stages: vec![ptx], num_warps, shared, ..Code::default() })
    }
}

/// From `ttg` to the per-thread program.
pub fn lower(module: &ir::Module) -> tilewright_lower::Result<Lowered> {
    let target = &info();
    let options = LowerOptions { target, shared_alignment: 16, line_info: false, flushes: true };
    tilewright_lower::lower(module, &options, || HalfWarps)
}

/// Its answers: it has nothing to remember.
pub struct HalfWarps;

type State<'a> = Lower<'a, HalfWarps>;

impl HalfWarps {
    /// What `body` gives where `pred` holds, and `otherwise` elsewhere.
    fn guarded(
        l: &mut State<'_>,
        pred: Option<Value>,
        otherwise: &[Value],
        body: impl FnOnce(&mut State<'_>) -> Vec<Value>,
    ) -> Vec<Value> {
        let Some(pred) = pred else { return body(l) };
        let types: Vec<Ty> = otherwise.iter().map(|&v| l.b.ty(v)).collect();
        let (here, preheader) = (l.b.block(), l.b.preheader());
        let (then, join) =
            (l.b.create_block(here, preheader, &[]), l.b.create_block(here, preheader, &types));
        l.b.cond_br(pred, then, &[], join, otherwise);
        l.b.switch_to(then);
        let values = body(l);
        l.b.br(join, &values);
        l.b.switch_to(join);
        l.b.params(join).to_vec()
    }

    fn load(
        l: &mut State<'_>,
        ptr: Value,
        words: Words,
        pred: Option<Value>,
        other: Option<&[Value]>,
    ) -> WordValues {
        let zero = l.b.zero(words.register());
        let other = other.map_or(vec![zero; words.count as usize], <[Value]>::to_vec);
        let (ty, bytes) = (Ty::scalar(int_of(words.bits)), words.bits / 8);
        let loaded = Self::guarded(l, pred, &other, |l| {
            let each = (0..words.count).map(|i| {
                let at = l.b.ptr_add_const(ptr, i64::from(i * bytes));
                let word = l.b.load(ty, at, bytes);
                l.b.int_cast(word, words.register(), false)
            });
            each.collect()
        });
        loaded.into_iter().collect()
    }

    fn store(l: &mut State<'_>, ptr: Value, values: &[Value], words: Words, pred: Option<Value>) {
        let (ty, bytes) = (Ty::scalar(int_of(words.bits)), words.bits / 8);
        Self::guarded(l, pred, &[], |l| {
            for (i, &value) in values.iter().enumerate() {
                let at = l.b.ptr_add_const(ptr, i as i64 * i64::from(bytes));
                let word = l.b.int_cast(value, ty, false);
                l.b.store(at, word, bytes);
            }
            vec![]
        });
    }
}

impl Hooks for HalfWarps {
    fn symbol(name: &str) -> Cow<'_, str> {
        Cow::Borrowed(name)
    }

    fn operation(_l: &mut State<'_>, _op: ir::Op) -> tilewright_lower::Result<bool> {
        Ok(false)
    }

    fn thread_id(l: &mut State<'_>) -> Value {
        l.b.intrinsic("llvm.nvvm.read.ptx.sreg.tid.x", Effect::Pure, Some(Ty::I32), &[])
    }

    fn program_id(l: &mut State<'_>, axis: tt::ProgramDim, count: bool) -> Value {
        let axis = axis.keyword();
        let name = format!("llvm.nvvm.read.ptx.sreg.{}.{axis}", if count { "nctaid" } else { "ctaid" });
        l.b.intrinsic(&name, Effect::Pure, Some(Ty::I32), &[])
    }

    fn barrier(l: &mut State<'_>) {
        l.b.intrinsic("llvm.nvvm.barrier0", Effect::Write, None, &[]);
    }

    fn warp_barrier(l: &mut State<'_>) {
        let all = l.b.i32(-1);
        l.b.intrinsic("llvm.nvvm.bar.warp.sync", Effect::Write, None, &[all]);
    }

    /// PTX ISA, "shfl.sync": the upper part of the last operand masks the bits of a lane that shuffles leave as they are.
    fn shuffle(l: &mut State<'_>, word: Value, how: Shuffle) -> Value {
        let (name, lane, last) = match how {
            Shuffle::Xor(mask) => ("bfly", l.b.i32(i64::from(mask)), 31),
            Shuffle::Index(lane) => ("idx", lane, 31),
            Shuffle::Up(by) => ("up", l.b.i32(i64::from(by)), 0),
            Shuffle::Down(by) => ("down", l.b.i32(i64::from(by)), 31),
        };
        let (all, clamp) = (l.b.i32(-1), l.b.i32(i64::from(32 - LANES) << 8 | last));
        let name = format!("llvm.nvvm.shfl.sync.{name}.i32");
        l.b.intrinsic(&name, Effect::Read, Some(Ty::I32), &[all, word, lane, clamp])
    }

    fn load_global(
        l: &mut State<'_>,
        ptr: Value,
        words: Words,
        pred: Option<Value>,
        other: Option<&[Value]>,
        _hints: LoadHints,
    ) -> WordValues {
        Self::load(l, ptr, words, pred, other)
    }

    fn store_global(
        l: &mut State<'_>,
        ptr: Value,
        values: &[Value],
        words: Words,
        pred: Option<Value>,
        _cache: tt::CacheModifier,
        _evict: tt::EvictionPolicy,
    ) {
        Self::store(l, ptr, values, words, pred);
    }

    fn load_shared(l: &mut State<'_>, ptr: Value, words: Words, pred: Option<Value>) -> WordValues {
        Self::load(l, ptr, words, pred, None)
    }

    fn store_shared(l: &mut State<'_>, ptr: Value, values: &[Value], words: Words, pred: Option<Value>) {
        Self::store(l, ptr, values, words, pred);
    }

    fn count_shared(l: &mut State<'_>, ptr: Value, pred: Option<Value>) {
        Self::guarded(l, pred, &[], |l| {
            l.b.asm("red.shared.add.u32 [$0], 1;", "r", Effect::Write, &[], &[ptr]);
            vec![]
        });
    }

    fn bf16_arithmetic(&self) -> bool {
        false
    }

    fn mul_high(b: &mut Builder<'_>, x: Value, y: Value) -> Value {
        b.intrinsic("llvm.nvvm.mulhi.ull", Effect::Pure, Some(Ty::I64), &[x, y])
    }

    fn divide(l: &mut State<'_>, x: Value, y: Value) -> Value {
        l.b.bin(BinOp::FDiv, x, y)
    }

    fn maxnum(l: &mut State<'_>, x: Value, y: Value) -> Value {
        let ty = l.b.ty(x);
        l.b.intrinsic(&format!("llvm.maxnum.{}", ty.mangled()), Effect::Pure, Some(ty), &[x, y])
    }

    fn approximate(l: &mut State<'_>, function: Approximation, x: Value) -> Value {
        let one = l.b.float(Ty::F32, 1.0);
        match function {
            Approximation::Reciprocal => l.b.bin(BinOp::FDiv, one, x),
            Approximation::Sqrt => l.b.intrinsic("llvm.sqrt.f32", Effect::Pure, Some(Ty::F32), &[x]),
            Approximation::Rsqrt => {
                let root = l.b.intrinsic("llvm.sqrt.f32", Effect::Pure, Some(Ty::F32), &[x]);
                l.b.bin(BinOp::FDiv, one, root)
            }
            Approximation::Exp2 | Approximation::Exp2Flushed => {
                l.b.intrinsic("llvm.nvvm.ex2.approx.f", Effect::Pure, Some(Ty::F32), &[x])
            }
        }
    }

    fn pack_halves(l: &mut State<'_>, low: Value, high: Value, to: Scalar, towards_zero: bool) -> Value {
        assert!(!towards_zero, "no test asks for it");
        let halves = [low, high].map(|x| l.b.cast(CastOp::FpTrunc, x, Ty::scalar(to)));
        let both = l.b.vector(&halves);
        l.b.bitcast(both, Ty::I32)
    }

    fn f32_towards_zero(_l: &mut State<'_>, _x: Value, _signed: bool) -> Value {
        unimplemented!("no test asks for it")
    }

    fn printf(_l: &mut State<'_>, _format: &str, _args: &[Value]) {
        unimplemented!("no test asks for it")
    }

    fn fail(_l: &mut State<'_>, _message: &str, _file: &str, _line: u32) {
        unimplemented!("no test asks for it")
    }
}
