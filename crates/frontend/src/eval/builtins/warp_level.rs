//! Kernels that are written for one warp, `@jit(warp_level=True)`: every tensor is a warp's own, buffers and barriers are the program's.
//!
//! What a work group does as one has no meaning there yet, and is refused by name: descriptors, pipes, partitions, meshes, products of warp groups.

use std::sync::Arc;

use tilewright_ir::diagnostic::Kind;
use tilewright_ir::dialect::ttg;
use tilewright_ir::{AttrKind, Op, Type, launch, marks};

use super::super::call::{Args, CallArgs};
use super::super::{Error, Eval, Evaluator, builder};
use crate::dtype::Scalar;
use crate::host::{HostValue, JitFunction};
use crate::signature::{ArgSpec, ArgType, Signature};
use crate::value::{Tensor, Value};

/// What a warp does by itself of the extensions.
const OF_ONE_WARP: &[&str] = &[
    "tle.load",
    "tle.extract_tile",
    "tle.insert_tile",
    "tle.distributed.shard_id",
    "tle.gpu.alloc",
    "tle.gpu.local_ptr",
    "tle.gpu.local_load",
    "tle.gpu.local_store",
];

/// The function of the library that combines what each warp has.
const ACROSS_WARPS: &str = "language.standard._across_warps";

impl Evaluator<'_> {
    /// Whether the kernel is written for one warp.
    pub(crate) fn is_warp_level(&self) -> bool {
        self.frames.first().is_some_and(|kernel| kernel.function.marks.warp_level)
    }

    /// Says on the module that the kernel is written for one warp, where it is.
    pub(crate) fn begin_warp_level(&mut self, signature: &Signature) -> Eval<()> {
        fn has_descriptor(arg: &ArgSpec) -> bool {
            match &arg.ty {
                ArgType::Descriptor { .. } => true,
                ArgType::Tuple(items) | ArgType::NamedTuple(_, items) => items.iter().any(has_descriptor),
                ArgType::Value(_) | ArgType::Constant(_) => false,
            }
        }
        if !self.is_warp_level() {
            return Ok(());
        }
        if signature.args.iter().any(has_descriptor) {
            return Err(self.not_of_one_warp("a tensor descriptor"));
        }
        if self.options.num_ctas > 1 {
            return Err(self.not_of_one_warp("num_ctas above 1"));
        }
        let root = self.module.root();
        self.module.set_i32_attr(root, launch::WARP_LEVEL, self.options.num_warps as i32);
        Ok(())
    }

    /// What to say of something that a work group does as one.
    pub(crate) fn not_of_one_warp(&self, what: &str) -> Error {
        self.error(format!("not supported yet: {what} in a warp-level kernel")).of(Kind::Unsupported).into()
    }

    /// Checks that a function may be called in this kernel.
    pub(crate) fn check_level_of(&self, function: &Arc<JitFunction>) -> Eval<()> {
        if !function.marks.warp_level || self.is_warp_level() {
            return Ok(());
        }
        let kernel = self.frames.first().map_or("the kernel", |kernel| &kernel.function.name);
        Err(self
            .error(format!(
                "`{}` is written for one warp, and `{kernel}`, which calls it, for all warps of a program together",
                function.name
            ))
            .note(format!(
                "tensors of `{kernel}` are divided among its warps: write @jit(warp_level=True) over it, whose tensors are each warp's own \
                 then, or leave it out over `{}`",
                function.name
            ))
            .into())
    }

    /// Checks that a function of the library has a meaning in this kernel.
    pub(super) fn check_level(&self, args: &Args, key: &str) -> Eval<()> {
        let descriptors = key.ends_with("tensor_descriptor");
        let extension = key.starts_with("tle.") && !key.starts_with("tle.gpu.buffered_tensor.");
        if self.is_warp_level() && (descriptors || extension && !OF_ONE_WARP.contains(&key)) {
            return Err(self.not_of_one_warp(&args.builtin.shown()));
        }
        Ok(())
    }

    /// Says that a buffer or a barrier is that of all warps, where the kernel is written for one.
    pub(super) fn of_all_warps(&mut self, op: Op) {
        if self.is_warp_level() {
            let unit = self.module.attr(AttrKind::Unit);
            self.module.set_attr(op, marks::ALL_WARPS, unit);
        }
    }

    /// `tl.warp_id()`.
    pub(super) fn warp_id(&mut self, args: &Args) -> Eval<Tensor> {
        if !self.is_warp_level() {
            return Err(self
                .error(format!(
                    "{} in a kernel for all warps together, whose values are the same for each",
                    args.builtin.shown()
                ))
                .note("write @jit(warp_level=True) over the kernel: its tensors are each warp's own then")
                .into());
        }
        let id = ttg::WarpId::build(&mut builder!(self), Type::I32).result(&self.module);
        Ok(Tensor::scalar(id, Scalar::Int32))
    }

    /// `tl.barrier()`: all threads of the program, or of the partition, wait for each other.
    pub(super) fn barrier(&mut self) -> Value {
        let barrier = ttg::Barrier::build(&mut builder!(self));
        self.of_all_warps(barrier.0);
        Value::NONE
    }

    /// `tl.load` of a buffer.
    pub(super) fn load_from_buffer(&mut self, args: &Args) -> Eval<Tensor> {
        self.whole_access(args, "load", &["mask", "other", "boundary_check", "padding_option", "volatile"])?;
        let buffer = self.buffer_or_tile(args, "pointer")?;
        self.read(&buffer)
    }

    /// `tl.store` to a buffer.
    pub(super) fn store_to_buffer(&mut self, args: &Args) -> Eval<()> {
        self.whole_access(args, "store", &["mask", "boundary_check"])?;
        let buffer = self.buffer_or_tile(args, "pointer")?;
        let value = self.tensor_arg(args, "value")?;
        let value = self.broadcast_to(&value, &buffer.shape)?;
        self.write(&buffer, &value, None)
    }

    /// Checks that an access of a whole buffer is given nothing that leaves elements out, or is for other memory.
    fn whole_access(&mut self, args: &Args, what: &str, names: &[&str]) -> Eval<()> {
        let given = |name: &&&str| match args.get(name) {
            Value::Const(HostValue::None | HostValue::Bool(false)) => false,
            Value::Const(HostValue::Str(text)) => !text.is_empty(),
            Value::Tuple(items) => !items.items.is_empty(),
            _ => true,
        };
        match names.iter().chain(&["cache_modifier", "eviction_policy"]).find(given) {
            None => Ok(()),
            Some(name) => Err(self
                .error(format!(
                    "`{name}` of tl.{what} with a buffer, all of which is accessed in shared memory"
                ))
                .note("take pointers into it with tle.gpu.local_ptr")
                .into()),
        }
    }

    /// What a reduction along an axis, or no reduction at all, has come to in each warp, combined over the warps.
    pub(super) fn across_warps(&mut self, args: &Args, input: Value) -> Eval<Value> {
        if !self.is_warp_level() {
            return Err(self
                .error(format!(
                    "`cross_warp` of {} in a kernel for all warps together, which reduces over them anyway",
                    args.builtin.shown()
                ))
                .note("leave it out, or write @jit(warp_level=True) over the kernel")
                .into());
        }
        let warps = i32::try_from(self.options.num_warps).unwrap_or(i32::MAX);
        let dst_warps = match args.optional("dst_warps").cloned() {
            None => Value::NONE,
            Some(given) => {
                let named = self.ints(&given, &format!("`dst_warps` of {}", args.builtin.shown()))?;
                if let Some(wrong) = named.iter().find(|&&warp| !(0..warps).contains(&warp)) {
                    return Err(self.error(format!(
                        "`dst_warps` of {} has {wrong}, but the warps are 0 to {}",
                        args.builtin.shown(),
                        warps - 1
                    )));
                }
                Value::tuple(named.into_iter().map(|warp| Value::int(i128::from(warp))).collect())
            }
        };
        let across = Value::Const(HostValue::Library(ACROSS_WARPS.into()));
        let positional = vec![input, args.get("combine_fn").clone(), dst_warps];
        self.call(across, CallArgs { positional, keywords: vec![] })
    }
}
