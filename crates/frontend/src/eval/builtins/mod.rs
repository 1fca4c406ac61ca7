//! The functions that the library marks `@builtin`: one table, and one file a topic.
//!
//! A name of the library that the table lacks, or one of the table that the library does not declare, fails a test.

mod atomics;
mod barriers;
mod block_pointer;
mod create;
mod debug;
pub(crate) mod descriptor;
pub(crate) mod dsa;
mod elementwise;
mod inline_asm;
pub(crate) mod layouts;
mod libdevice;
pub(crate) mod local;
mod memory;
pub(crate) mod mesh;
pub(crate) mod mlir;
pub(crate) mod partitions;
pub(crate) mod pipe;
mod ranks;
pub(crate) mod raw;
mod reduce;
mod remote;
mod scaled;
mod shape;
mod sharded;
mod tile;
mod warp_level;
mod wgmma;

use std::sync::{Arc, LazyLock};

use ruff_python_ast::Operator;
use rustc_hash::FxHashMap;
use tilewright_ir::diagnostic::Kind;
use tilewright_ir::dialect::{math, tt};
use tilewright_ir::{Type, marks};
use tilewright_libdevice::Query;

use self::atomics::Atomic;
use self::elementwise::{Build, Extremum, Widths};
use super::call::Args;
use super::{Eval, Evaluator, builder};
use crate::dtype::{DType, Scalar};
use crate::fold;
use crate::host::{HostValue, NamedTuple};
use crate::library::{Builtin, EXTENSIONS};
use crate::value::{Tensor, Value};

/// What evaluates a call.
type Function = fn(&mut Evaluator<'_>, &Args) -> Eval<Value>;

/// A function of one float operand.
macro_rules! float {
    ($op:ident, $widths:ident) => {
        |e, a| {
            let build: Build = |b, x| math::$op::build(b, x).result(b.module);
            e.float_function(a, Widths::$widths, build).map(Value::Tensor)
        }
    };
}

/// Threads of a warp of NVIDIA's, of which `num_threads` counts.
const WARP_SIZE: u32 = 32;

/// Every builtin by its name, in the order of the topics; those of libdevice that operations of ours do, as accurately and with less
/// code. The others of libdevice are rows of `crates/libdevice`.
static BUILTINS: &[(&str, Function)] = &[
    // Programs, ranges, constants, casts.
    ("program_id", |e, a| {
        let axis = e.grid_axis(a)?;
        let mut b = builder!(e);
        let id = tt::GetProgramId::build(&mut b, axis, Type::I32).result(b.module);
        Ok(Value::Tensor(Tensor::scalar(id, Scalar::Int32)))
    }),
    ("num_programs", |e, a| {
        let axis = e.grid_axis(a)?;
        let mut b = builder!(e);
        let count = tt::GetNumPrograms::build(&mut b, axis, Type::I32).result(b.module);
        Ok(Value::Tensor(Tensor::scalar(count, Scalar::Int32)))
    }),
    ("arange", |e, a| e.arange(a).map(Value::Tensor)),
    ("full", |e, a| e.full(a).map(Value::Tensor)),
    ("to_tensor", |e, a| e.tensor_arg(a, "x").map(Value::Tensor)),
    ("cast", |e, a| e.cast_builtin(a).map(Value::Tensor)),
    ("to", |e, a| e.cast_builtin(a).map(Value::Tensor)),
    ("cdiv", |e, a| e.cdiv(a)),
    ("next_power_of_2", |e, a| e.next_power_of_2(a)),
    ("tle.distributed.shard_id", |e, a| e.shard_id(a).map(Value::Tensor)),
    ("tle.distributed.distributed_barrier", |e, a| e.distributed_barrier(a)),
    ("tle._ranks._memory", |e, a| e.rank_memory(a).map(Value::Tensor)),
    ("tle._ranks._group", |e, a| e.group_of_ranks(a)),
    ("tle._ranks._wait", |e, a| e.wait_signal(a)),
    ("tle._ranks._by_library", |e, _| e.ranks_by_library()),
    ("tle._ranks._symmetric", |e, a| e.symmetric_pointers(a)),
    ("tle._ranks._send", |e, a| e.send(a)),
    ("tle.distributed.sharding", |e, a| e.sharding(a)),
    ("tle.distributed.remote", |e, a| e.remote(a)),
    // Elementwise.
    ("add", |e, a| e.plain_arithmetic(a, Operator::Add)),
    ("sub", |e, a| e.plain_arithmetic(a, Operator::Sub)),
    ("mul", |e, a| e.plain_arithmetic(a, Operator::Mult)),
    ("where", |e, a| e.where_(a).map(Value::Tensor)),
    ("logical_and", |e, a| e.logical(a, Operator::BitAnd).map(Value::Tensor)),
    ("logical_or", |e, a| e.logical(a, Operator::BitOr).map(Value::Tensor)),
    ("minimum", |e, a| e.min_max(a, Extremum::Min).map(Value::Tensor)),
    ("maximum", |e, a| e.min_max(a, Extremum::Max).map(Value::Tensor)),
    ("clamp", |e, a| e.clamp(a).map(Value::Tensor)),
    ("exp", float!(Exp, Wide)),
    ("exp2", float!(Exp2, Wide)),
    ("log", float!(Log, Wide)),
    ("log2", float!(Log2, Wide)),
    ("cos", float!(Cos, Wide)),
    ("sin", float!(Sin, Wide)),
    ("sqrt", float!(Sqrt, Wide)),
    ("rsqrt", float!(Rsqrt, Wide)),
    ("erf", float!(Erf, Wide)),
    ("floor", float!(Floor, Every)),
    ("ceil", float!(Ceil, Every)),
    ("libdevice.trunc", float!(Trunc, Every)),
    ("sqrt_rn", |e, a| e.sqrt_rn(a).map(Value::Tensor)),
    ("abs", |e, a| e.abs(a).map(Value::Tensor)),
    ("fdiv", |e, a| {
        let precise = Evaluator::is_true(a.get("ieee_rounding"));
        e.float_division(a, precise).map(Value::Tensor)
    }),
    ("div_rn", |e, a| e.float_division(a, true).map(Value::Tensor)),
    ("fma", |e, a| e.fma(a).map(Value::Tensor)),
    ("umulhi", |e, a| e.umulhi(a).map(Value::Tensor)),
    ("libdevice.round", float!(Round, Every)),
    ("libdevice.tan", float!(Tan, Wide)),
    ("libdevice.tanh", float!(Tanh, Wide)),
    ("extern_elementwise", |e, a| e.extern_elementwise(a)),
    // What NVIDIA's GPUs have.
    ("globaltimer", |e, _| Ok(e.query(Query::GlobalTimer))),
    ("smid", |e, _| Ok(e.query(Query::Smid))),
    ("gdc_wait", |e, _| Ok(e.query(Query::GdcWait))),
    ("gdc_launch_dependents", |e, _| Ok(e.query(Query::GdcLaunchDependents))),
    ("num_warps", |e, _| Ok(Value::int(e.warps_here()))),
    ("num_threads", |e, _| Ok(Value::int(e.warps_here() * WARP_SIZE))),
    // Shapes.
    ("broadcast", |e, a| e.broadcast_pair(a)),
    ("broadcast_to", |e, a| {
        let input = e.tensor_arg(a, "input")?;
        let shape = e.variadic_shape(a)?;
        e.broadcast_to(&input, &shape).map(Value::Tensor)
    }),
    ("trans", |e, a| e.permute_builtin(a, true).map(Value::Tensor)),
    ("permute", |e, a| e.permute_builtin(a, false).map(Value::Tensor)),
    ("join", |e, a| e.join_builtin(a).map(Value::Tensor)),
    ("split", |e, a| e.split(a)),
    ("reshape", |e, a| {
        let reorder = e.bool_arg(a, "can_reorder")?;
        e.reshape_builtin(a, reorder).map(Value::Tensor)
    }),
    ("view", |e, a| e.reshape_builtin(a, true).map(Value::Tensor)),
    ("expand_dims", |e, a| e.expand_dims_builtin(a).map(Value::Tensor)),
    ("item", |e, a| e.item(a).map(Value::Tensor)),
    ("cat", |e, a| e.cat(a).map(Value::Tensor)),
    ("tle._tile.extract_tile", |e, a| e.extract_tile(a, "x")),
    ("tle._tile.insert_tile", |e, a| e.insert_tile(a, "x")),
    // Pointers and descriptors.
    ("make_block_ptr", |e, a| e.make_block_pointer(a)),
    ("advance", |e, a| e.advance(a)),
    ("make_tensor_descriptor", |e, a| e.make_descriptor(a)),
    ("load_tensor_descriptor", |e, a| e.descriptor_function(a, "load", &["offsets"])),
    ("store_tensor_descriptor", |e, a| e.descriptor_function(a, "store", &["offsets", "value"])),
    // Memory.
    ("load", |e, a| e.any_load(a)),
    ("tle.load", |e, a| e.any_load(a)),
    ("store", |e, a| match a.get("pointer") {
        Value::Block(block) => e.block_store(a, &block.clone()),
        Value::Buffer(_) => e.store_to_buffer(a).map(|()| Value::NONE),
        _ => e.store(a).map(|()| Value::NONE),
    }),
    ("atomic_cas", |e, a| e.atomic_cas(a).map(Value::Tensor)),
    ("atomic_xchg", |e, a| e.atomic_rmw(a, Atomic::Exchange).map(Value::Tensor)),
    ("atomic_add", |e, a| e.atomic_rmw(a, Atomic::Add).map(Value::Tensor)),
    ("atomic_max", |e, a| e.atomic_rmw(a, Atomic::Max).map(Value::Tensor)),
    ("atomic_min", |e, a| e.atomic_rmw(a, Atomic::Min).map(Value::Tensor)),
    ("atomic_and", |e, a| e.atomic_rmw(a, Atomic::And).map(Value::Tensor)),
    ("atomic_or", |e, a| e.atomic_rmw(a, Atomic::Or).map(Value::Tensor)),
    ("atomic_xor", |e, a| e.atomic_rmw(a, Atomic::Xor).map(Value::Tensor)),
    // Buffers in shared memory.
    ("tle.gpu.warp_specialize", |e, a| e.warp_specialize(a)),
    ("tle.gpu.async_commit_group", |e, _| Ok(e.async_commit_group())),
    ("tle.gpu.async_wait_group", |e, a| e.async_wait_group(a)),
    ("tle.gpu.alloc_barrier", |e, a| e.alloc_barriers(a, true)),
    ("tle.gpu.alloc_barriers", |e, a| e.alloc_barriers(a, false)),
    ("tle.gpu.barrier_wait", |e, a| e.barrier_wait(a)),
    ("tle.gpu.barrier_arrive", |e, a| e.barrier_arrive(a)),
    ("tle.gpu.set_layout", |e, a| e.set_layout(a).map(Value::Tensor)),
    ("tle.gpu.memory_space", |e, a| e.memory_space(a).map(Value::Tensor)),
    ("tle.gpu.wgmma", |e, a| e.wgmma(a).map(Value::Tensor)),
    ("tle.gpu.wgmma_wait", |e, a| e.wgmma_wait(a).map(Value::Tensor)),
    ("tle.gpu.alloc", |e, a| e.alloc(a)),
    ("tle.gpu.local_ptr", |e, a| e.local_ptr(a).map(Value::Tensor)),
    ("tle.gpu.local_load", |e, a| e.buffer_load(a, "buffer").map(Value::Tensor)),
    ("tle.gpu.local_store", |e, a| e.buffer_store(a, "buffer").map(|()| Value::NONE)),
    ("tle.gpu.copy", |e, a| e.copy(a).map(|()| Value::NONE)),
    ("tle.gpu.buffered_tensor.slot", |e, a| e.buffer_slot(a)),
    ("tle.gpu.buffered_tensor.extract_tile", |e, a| e.extract_tile(a, "self")),
    ("tle.gpu.buffered_tensor.insert_tile", |e, a| e.insert_tile(a, "self")),
    ("tle.gpu.buffered_tensor.subslice", |e, a| e.buffer_subslice(a)),
    ("tle.gpu.buffered_tensor.reshape", |e, a| e.buffer_reshape(a)),
    ("tle.gpu.buffered_tensor.load", |e, a| e.buffer_load(a, "self").map(Value::Tensor)),
    ("tle.gpu.buffered_tensor.store", |e, a| e.buffer_store(a, "self").map(|()| Value::NONE)),
    // Code in other languages.
    ("tle.raw.call", |e, a| e.raw_call(a)),
    ("tle.raw.call_smem", |e, a| e.raw_call(a)),
    ("tle.raw.mlir._threads.number", |e, a| e.thread_number(a).map(Value::Tensor)),
    ("tle.raw.mlir._threads.count", |e, a| e.thread_extent(a).map(Value::int)),
    ("tle.raw.mlir._threads.active", |e, _| e.active_threads().map(Value::Tensor)),
    ("tle.raw.mlir._threads.place", |e, a| e.place_in_memory(a).map(Value::Tensor)),
    ("tle.raw.mlir._threads.spread", |e, a| e.spread(a)),
    ("tle.raw.mlir._threads.is_at", |e, a| e.is_at(a).map(Value::Tensor)),
    ("tle.raw.mlir._threads.shaped", |e, a| e.shaped(a).map(Value::Tensor)),
    ("tle.raw.mlir._threads.extent", |e, a| e.extent_of_memory(a)),
    ("tle.raw.mlir._debug.vprintf", |e, a| e.vprintf(a)),
    ("tle.raw.mlir._debug.vassert", |e, a| e.vassert(a)),
    ("tle.raw.mlir.ir.IntegerType.get_signless", |e, a| e.signless_integer(a)),
    ("tle.raw.mlir.ir.VectorType.get", |e, a| e.vector_type(a)),
    ("tle.raw.mlir.ir.IndexType.get", |_, _| Ok(mlir::ty(Scalar::Int64))),
    ("tle.raw.mlir.ir.F16Type.get", |_, _| Ok(mlir::ty(Scalar::Fp16))),
    ("tle.raw.mlir.ir.BF16Type.get", |_, _| Ok(mlir::ty(Scalar::Bf16))),
    ("tle.raw.mlir.ir.F32Type.get", |_, _| Ok(mlir::ty(Scalar::Fp32))),
    ("tle.raw.mlir.ir.F64Type.get", |_, _| Ok(mlir::ty(Scalar::Fp64))),
    // Buffers in memories with names.
    ("tle.dsa.alloc", |e, a| e.dsa_alloc(a)),
    ("tle.dsa.copy", |e, a| e.dsa_copy(a).map(|()| Value::NONE)),
    ("tle.dsa.local_ptr", |e, a| e.local_ptr(a).map(Value::Tensor)),
    ("tle.dsa.to_tensor", |e, a| e.dsa_to_tensor(a).map(Value::Tensor)),
    ("tle.dsa.to_buffer", |e, a| e.dsa_to_buffer(a)),
    ("tle.dsa.add", |e, a| e.dsa_arithmetic(a, &dsa::ADD)),
    ("tle.dsa.sub", |e, a| e.dsa_arithmetic(a, &dsa::SUB)),
    ("tle.dsa.mul", |e, a| e.dsa_arithmetic(a, &dsa::MUL)),
    ("tle.dsa.div", |e, a| e.dsa_arithmetic(a, &dsa::DIV)),
    ("tle.dsa.max", |e, a| e.dsa_arithmetic(a, &dsa::MAX)),
    ("tle.dsa.min", |e, a| e.dsa_arithmetic(a, &dsa::MIN)),
    ("tle.dsa.hint", |e, _| e.dsa_hint()),
    ("tle.dsa.extract_slice", |e, a| e.extract_slice(a).map(Value::Tensor)),
    ("tle.dsa.insert_slice", |e, a| e.insert_slice(a).map(Value::Tensor)),
    ("tle.dsa.extract_element", |e, a| e.extract_element(a).map(Value::Tensor)),
    ("tle.dsa.subview", |e, a| e.subview(a)),
    ("tle.dsa.memory_space", |e, a| e.dsa_memory_space(a).map(Value::Tensor)),
    // Pipes.
    ("tle._pipe.pipe", |e, a| e.pipe(a)),
    ("tle._pipe.pipe_value.writer", |e, a| e.pipe_writer(a)),
    ("tle._pipe.pipe_value.reader", |e, a| e.pipe_reader(a)),
    ("tle._pipe.pipe_writer.acquire", |e, a| e.pipe_acquire(a)),
    ("tle._pipe.pipe_writer.commit", |e, a| e.pipe_commit(a).map(|()| Value::NONE)),
    ("tle._pipe.pipe_writer.close", |e, a| e.pipe_close(a).map(|()| Value::NONE)),
    ("tle._pipe.pipe_writer.cursor", |e, a| e.pipe_cursor(a)),
    ("tle._pipe.pipe_reader.wait", |e, a| e.pipe_wait(a)),
    ("tle._pipe.pipe_reader.release", |e, a| e.pipe_release(a).map(|()| Value::NONE)),
    ("tle._pipe.pipe_reader.cursor", |e, a| e.pipe_cursor(a)),
    // Products, reductions and what else looks at several elements.
    ("dot", |e, a| e.dot(a).map(Value::Tensor)),
    ("dot_scaled", |e, a| e.dot_scaled(a).map(Value::Tensor)),
    ("reduce", |e, a| e.reduce(a)),
    ("associative_scan", |e, a| e.scan(a)),
    ("histogram", |e, a| e.histogram(a).map(Value::Tensor)),
    ("gather", |e, a| e.gather(a).map(Value::Tensor)),
    // Advice, assertions, printing.
    ("multiple_of", |e, a| e.promise(a, marks::DIVISIBILITY)),
    ("max_contiguous", |e, a| e.promise(a, marks::CONTIGUITY)),
    ("max_constancy", |e, a| e.promise(a, marks::CONSTANCY)),
    ("assume", |e, a| e.assume(a)),
    ("debug_barrier", |e, _| Ok(e.barrier())),
    // Warps, and what those of a program have together.
    ("warp_id", |e, a| e.warp_id(a).map(Value::Tensor)),
    ("barrier", |e, _| Ok(e.barrier())),
    ("alloc", |e, a| e.alloc_for_all_warps(a)),
    ("static_print", |e, a| e.static_print(a)),
    ("static_assert", |e, a| e.static_assert(a)),
    ("device_print", |e, a| e.device_print(a).map(|()| Value::NONE)),
    ("device_assert", |e, a| e.device_assert(a).map(|()| Value::NONE)),
    ("inline_asm_elementwise", |e, a| e.inline_asm(a)),
    ("current_target", |e, _| Ok(e.current_target())),
    ("map_elementwise", |e, a| e.map_elementwise(a)),
];

/// The name of a builtin in the table: that of TLE's with the module.
fn key(builtin: &Builtin) -> &str {
    if builtin.path.starts_with(EXTENSIONS) { &builtin.path } else { &builtin.name }
}

fn function(builtin: &Builtin) -> Option<Function> {
    static BY_NAME: LazyLock<FxHashMap<&str, Function>> =
        LazyLock::new(|| BUILTINS.iter().copied().collect());
    match builtin.path.strip_prefix(libdevice::MODULE) {
        None => BY_NAME.get(key(builtin)).copied(),
        Some(name) if tilewright_libdevice::overloads(name).is_empty() => None,
        Some(name) => {
            Some(BY_NAME.get(&*format!("libdevice.{name}")).copied().unwrap_or(|e, a| e.libdevice(a)))
        }
    }
}

impl Evaluator<'_> {
    pub fn call_builtin(&mut self, args: &Args) -> Eval<Value> {
        match function(&args.builtin) {
            Some(_) if sharded::takes_sharded(args) => self.call_sharded(args),
            Some(function) => {
                self.check_level(args, key(&args.builtin))?;
                function(self, args)
            }
            None => self.not_yet(args),
        }
    }

    /// The target as Triton's `GPUTarget`; none where it is no GPU.
    fn current_target(&self) -> Value {
        let parts = self.target.and_then(|t| t.split_once(':'));
        let Some((backend, Ok(arch))) = parts.map(|(backend, arch)| (backend, arch.parse::<i128>())) else {
            return Value::NONE;
        };
        Value::from_host(HostValue::NamedTuple(Arc::new(NamedTuple {
            class: "GPUTarget".into(),
            fields: ["backend", "arch", "warp_size"].map(Arc::from).into(),
            values: vec![HostValue::str(backend), HostValue::Int(arch), HostValue::Int(32)],
        })))
    }

    fn not_yet(&self, args: &Args) -> Eval<Value> {
        Err(self.error(format!("{} is not supported yet", args.builtin.shown())).of(Kind::Unsupported).into())
    }

    // ---- arguments ------------------------------------------------------------------------------------------

    /// An argument as a tensor; numbers become scalars.
    pub(crate) fn tensor_arg(&mut self, args: &Args, name: &str) -> Eval<Tensor> {
        match args.get(name) {
            value @ (Value::Tensor(_)
            | Value::Const(HostValue::Int(_) | HostValue::Float(_) | HostValue::Bool(_))) => {
                self.tensor_of(value)
            }
            other => Err(self.bad_argument(args, name, other, "a tensor or a number")),
        }
    }

    /// An argument that must be a constant integer.
    pub(crate) fn int_arg(&mut self, args: &Args, name: &str) -> Eval<i128> {
        match args.get(name) {
            Value::Const(c @ (HostValue::Int(_) | HostValue::Bool(_))) => match fold::number(c) {
                Some(fold::Num::Int(i)) => Ok(i),
                _ => Ok(0),
            },
            value @ Value::Tensor(_) => {
                Err(self.needs_constexpr(value, &format!("`{name}` of {}", args.builtin.shown())))
            }
            other => Err(self.bad_argument(args, name, other, "a constant integer")),
        }
    }

    /// An argument that must be a constant yes or no: a boolean, an integer, or `None` for no.
    pub(crate) fn bool_arg(&mut self, args: &Args, name: &str) -> Eval<bool> {
        match args.get(name) {
            Value::Const(c @ (HostValue::None | HostValue::Bool(_) | HostValue::Int(_))) => {
                Ok(c.truth() == Some(true))
            }
            value @ Value::Tensor(_) => {
                Err(self.needs_constexpr(value, &format!("`{name}` of {}", args.builtin.shown())))
            }
            other => Err(self.bad_argument(args, name, other, "True or False")),
        }
    }

    /// An argument that must be a constant string; `None` is the empty one.
    pub(crate) fn str_arg(&mut self, args: &Args, name: &str) -> Eval<String> {
        match args.get(name) {
            Value::Const(HostValue::Str(s)) => Ok(s.to_string()),
            Value::Const(HostValue::None) => Ok(String::new()),
            other => Err(self.bad_argument(args, name, other, "a constant string")),
        }
    }

    /// An argument that must be a dtype.
    pub(crate) fn dtype_arg(&mut self, args: &Args, name: &str) -> Eval<DType> {
        match args.get(name) {
            Value::Const(HostValue::DType(DType::Scalar(Scalar::Void))) => {
                Err(self.bad_argument(args, name, args.get(name), "a dtype of numbers"))
            }
            Value::Const(HostValue::DType(dtype)) => Ok(dtype.clone()),
            Value::Const(HostValue::Str(text))
                if let Some(scalar) = Scalar::parse(text).filter(|&s| s != Scalar::Void) =>
            {
                Ok(scalar.into())
            }
            other => {
                let mut error = *self.bad_argument(args, name, other, "a dtype");
                if matches!(other, Value::Const(HostValue::Object(_))) {
                    error = error.note("write the dtype of the language, such as tl.float16");
                }
                Err(error.into())
            }
        }
    }

    /// An axis, counted from the end where negative.
    pub(crate) fn axis_arg(&mut self, args: &Args, name: &str, rank: usize) -> Eval<usize> {
        let axis = self.int_arg(args, name)?;
        let from_start = if axis < 0 { axis + rank as i128 } else { axis };
        match usize::try_from(from_start).ok().filter(|&a| a < rank) {
            Some(axis) => Ok(axis),
            None => Err(self.error(format!(
                "`{name}` of {} is {axis}, but the tensor has {rank} dimension{}",
                args.builtin.shown(),
                if rank == 1 { "" } else { "s" }
            ))),
        }
    }

    /// A list of constant integers given as a tuple or as one integer.
    pub(crate) fn ints(&mut self, value: &Value, what: &str) -> Eval<Vec<i32>> {
        let single = std::slice::from_ref(value);
        let items: &[Value] = match value {
            Value::Tuple(t) => &t.items,
            _ => single,
        };
        items
            .iter()
            .map(|item| match item {
                Value::Const(HostValue::Int(i)) => i32::try_from(*i)
                    .map_err(|_| self.error(format!("{i} in {what} does not fit in 32 bits"))),
                Value::Tensor(_) => Err(self.needs_constexpr(item, &format!("an element of {what}"))),
                other => Err(self.error(format!("{what} needs constant integers, not {other}"))),
            })
            .collect()
    }

    pub(crate) fn bad_argument(&self, args: &Args, name: &str, value: &Value, wanted: &str) -> super::Error {
        self.error(format!("`{name}` of {} must be {wanted}, not {value}", args.builtin.shown()))
            .note(format!("the signature is {}", args.builtin.signature()))
            .into()
    }

    /// One of several constant strings.
    pub(crate) fn choice<T: Copy>(&mut self, args: &Args, name: &str, choices: &[(&str, T)]) -> Eval<T> {
        let text = self.str_arg(args, name)?;
        match choices.iter().find(|(key, _)| *key == text) {
            Some((_, value)) => Ok(*value),
            None => {
                let known: Vec<String> = choices.iter().map(|(key, _)| format!("\"{key}\"")).collect();
                Err(self.error(format!(
                    "`{name}` of {} is \"{text}\"; possible are {}",
                    args.builtin.shown(),
                    known.join(", ")
                )))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::library::{Item, Library};

    #[test]
    fn the_table_holds_what_the_library_declares() {
        let library = Library::get();
        let mut declared = BTreeSet::new();
        // The package itself has some, too.
        for module in library.modules().chain([""]) {
            for name in library.names(module).into_iter().chain(library.methods(module)) {
                let path = format!("{module}.{name}");
                if let Some(Item::Builtin(builtin)) = library.resolve(path.trim_start_matches('.')) {
                    assert!(function(&builtin).is_some(), "{path} has no row");
                    let ours = builtin.path.starts_with(libdevice::MODULE);
                    declared.insert(if ours {
                        format!("libdevice.{name}")
                    } else {
                        key(&builtin).to_string()
                    });
                }
            }
        }
        let names: BTreeSet<&str> = BUILTINS.iter().map(|(name, _)| *name).collect();
        assert_eq!(names.len(), BUILTINS.len(), "a name stands there twice");
        for name in names {
            // What starts with an underscore is not listed, but found by its path.
            let private = name.contains("._") && matches!(library.resolve(name), Some(Item::Builtin(_)));
            assert!(private || declared.contains(name), "{name} is not declared");
        }
        for function in tilewright_libdevice::all() {
            let path = format!("{}{}", libdevice::MODULE, function.name);
            assert!(library.resolve(&path).is_some(), "{path} is not declared");
        }
    }
}
