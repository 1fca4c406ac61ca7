//! Other devices: the memory that the ranks of a launch have in common, signals, and members of meshes of devices.
//!
//! A kernel that reaches other ranks has one more argument, its last: where its own rank's part of that memory begins. What lies there, and what is
//! done with it, is in `tle/_ranks.py`, in the language itself.

use tilewright_ir::dialect::tt;
use tilewright_ir::types::SYMMETRIC;
use tilewright_ir::{AttrKind, Op, TypeKind, launch};

use super::super::call::{Args, CallArgs};
use super::super::{Eval, Evaluator, builder};
use super::mesh::Mesh;
use crate::dtype::{DType, PointerType, Scalar};
use crate::host::HostValue;
use crate::value::{Tensor, Value};

/// The address space of global memory.
pub(super) const GLOBAL: u32 = 1;

/// The last argument begins at a page.
const ALIGNMENT: i64 = 4096;

impl Evaluator<'_> {
    /// The memory of the kernel's rank, where the launch has `ranks` of them (0: any number).
    pub(super) fn rank_memory(&mut self, args: &Args) -> Eval<Tensor> {
        let ranks = self.int_arg(args, "ranks")?;
        self.want_ranks(ranks)?;
        let scratch = self.int_arg(args, "scratch")?;
        if scratch > 0 {
            self.moves_between_ranks()?;
        }
        launch::want_rank_scratch(&mut self.module, scratch as u32);
        let element = DType::Scalar(Scalar::Int64);
        let dtype = DType::Pointer(PointerType { element, address_space: GLOBAL, constant: false }.into());
        if let Some(value) = self.meshes.rank_memory {
            return Ok(Tensor::scalar(value, dtype));
        }
        let Some((func, entry)) = self.kernel.filter(|(func, _)| self.is_inside(*func)) else {
            return Err(self.not_supported_yet("reaching other devices in a function that is not inlined"));
        };
        let ty = self.element_type(&dtype);
        let value = self.module.add_block_arg(entry, ty);
        let inputs = self.module.block_args(entry).iter().map(|&v| self.module.value_type(v)).collect();
        let function_type = self.module.ty(TypeKind::Function { inputs, results: vec![] });
        let function_type = self.module.attr(AttrKind::Type(function_type));
        self.module.set_attr(func, "function_type", function_type);
        let mut promises = self.arg_attrs(func);
        promises.push(self.promises(Some(ALIGNMENT as u32), false));
        self.set_arg_attrs(func, promises);
        self.meshes.rank_memory = Some(value);
        Ok(Tensor::scalar(value, dtype))
    }

    /// Whether operations are emitted in this function, not in one that is called.
    fn is_inside(&self, func: Op) -> bool {
        let mut at = self.module.block_parent_op(self.block);
        while let Some(op) = at {
            if tt::Func::cast(&self.module, op).is_some() {
                return op == func;
            }
            at = self.module.parent_op(op);
        }
        false
    }

    /// Whether the launch reaches other ranks by NVSHMEM's functions: where `extern_libs` names its library.
    pub(super) fn ranks_by_library(&mut self) -> Eval<Value> {
        let path = self.options.library("nvshmem");
        if let Some(path) = path {
            let (root, path) = (self.module.root(), self.module.attr(AttrKind::Str(path.into())));
            self.module.set_attr(root, launch::NVSHMEM, path);
        }
        Ok(Value::from_host(HostValue::Bool(path.is_some())))
    }

    /// Pointers to global memory as such that say in their upper bits whose memory it is.
    pub(super) fn symmetric_pointers(&mut self, args: &Args) -> Eval<Value> {
        let pointers = self.tensor_arg(args, "pointers")?;
        let Some(element) = pointers.dtype.as_pointer().map(|p| p.element.clone()) else {
            return Err(self.bad_argument(args, "pointers", args.get("pointers"), "pointers"));
        };
        let to = PointerType { element, address_space: SYMMETRIC, constant: false };
        self.cast(&pointers, &DType::Pointer(to.into())).map(Value::Tensor)
    }

    /// Sends what lies in memory to another rank's.
    pub(super) fn send(&mut self, args: &Args) -> Eval<Value> {
        let (there, here) = (self.tensor_arg(args, "there")?, self.tensor_arg(args, "here")?);
        let bytes = self.tensor_arg(args, "bytes")?;
        let bytes = self.cast(&bytes, &DType::Scalar(Scalar::Int64))?;
        let released = self.bool_arg(args, "released")?;
        tt::Send::build(&mut builder!(self), there.value, here.value, bytes.value, released);
        Ok(Value::NONE)
    }

    /// All that a kernel says of its launch's ranks agrees.
    fn want_ranks(&mut self, ranks: i128) -> Eval<()> {
        match launch::ranks(&self.module) {
            Some(known) if known != 0 && ranks != 0 && i128::from(known) != ranks => Err(self
                .error(format!(
                    "the mesh has {ranks} nodes times devices, and another mesh of this kernel {known}"
                ))
                .note("both are those of the launch")
                .into()),
            Some(known) if known != 0 || ranks == 0 => Ok(()),
            _ => {
                let root = self.module.root();
                self.module.set_i32_attr(root, launch::RANKS, ranks as i32);
                Ok(())
            }
        }
    }

    /// Waits until an integer in memory, or each of several, is large enough. Gives several.
    pub(super) fn wait_signal(&mut self, args: &Args) -> Eval<Value> {
        let flagged = self.bool_arg(args, "flagged")?;
        if flagged {
            self.moves_between_ranks()?;
        }
        let (ptr, value) = (self.tensor_arg(args, "pointer")?, self.tensor_arg(args, "value")?);
        let Some(number) = ptr.dtype.as_pointer().map(|p| p.element.clone()) else {
            return Err(self.bad_argument(args, "pointer", args.get("pointer"), "a pointer"));
        };
        let value = self.cast(&value, &number)?;
        let value = if ptr.is_block() { self.broadcast_to(&value, &ptr.shape)? } else { value };
        let memory = self.tensor_arg(args, "memory")?;
        let (ty, memory) = (self.module.value_type(value.value), Some(memory.value));
        let seen = tt::WaitSignal::build(&mut builder!(self), ptr.value, value.value, memory, flagged, ty);
        if !ptr.is_block() {
            return Ok(Value::NONE);
        }
        let seen = seen.result(&self.module);
        Ok(Value::Tensor(Tensor { value: seen, dtype: number, shape: ptr.shape }))
    }

    /// Scratch and slots are of the whole program: of partitions that run at the same time one has them.
    fn moves_between_ranks(&mut self) -> Eval<()> {
        let Some(here) = self.partition else { return Ok(()) };
        match *self.meshes.moving.get_or_insert(here.number) == here.number {
            true => Ok(()),
            false => Err(self
                .not_supported_yet("tle.reshard between devices in several functions of tle.gpu.warp_specialize")
                .note("one of them may move tensors; tle.signal, tle.signal_wait and tle.distributed_barrier go in all")
                .into()),
        }
    }

    /// The number of a group of ranks that wait for each other: those of another group, and other partitions, have other flags.
    pub(super) fn group_of_ranks(&mut self, args: &Args) -> Eval<Value> {
        let Some(members) = args.get("members").to_host() else {
            return Err(self.needs_constexpr(args.get("members"), "the members of a barrier"));
        };
        // What has flags of a name, beside those of a barrier, moves tensors through scratch or staging.
        if matches!(&members, HostValue::Tuple(all) if all.iter().any(|m| matches!(m, HostValue::Str(_)))) {
            self.moves_between_ranks()?;
        }
        let most = self.int_arg(args, "most")?;
        let key = (members, self.partition.map(|p| p.number));
        let groups = &mut self.meshes.groups_of_ranks;
        let group = groups.iter().position(|known| *known == key).unwrap_or_else(|| {
            groups.push(key);
            groups.len() - 1
        });
        match group as i128 >= most {
            true => Err(self.not_supported_yet(&format!(
                "more than {most} parts of a mesh of devices that wait in one kernel"
            ))),
            false => Ok(Value::int(group as i128)),
        }
    }

    /// The rank that the kernel runs on, where the launch has so many.
    pub(super) fn rank_of_kernel(&mut self, ranks: i128) -> Eval<Tensor> {
        let rank = self.call_ranks("_rank", vec![Value::int(ranks)])?;
        self.tensor_of(&rank)
    }

    /// The members of a mesh of devices wait for each other.
    pub(super) fn barrier_of_ranks(&mut self, args: &Args, mesh: &Mesh) -> Eval<Value> {
        let order = args.get("order").clone();
        let mut members = mesh.ranks_of_members();
        members.sort_unstable();
        members.dedup();
        let whole_ranks = members.len() as i128 * mesh.per_rank() == mesh.numbers.len() as i128;
        if !whole_ranks || mesh.per_rank() > 1 && members.len() as i128 != mesh.ranks {
            return Err(self
                .not_supported_yet("tle.distributed_barrier of some programs of several devices")
                .note("a mesh of nodes and devices, or a part of one, joins programs of equal program id")
                .into());
        }
        if mesh.per_rank() > 1 {
            // All programs of this rank have come, and then all of each other one's.
            self.program_barrier(tt::ProgramScope::Grid, None, None, false)?;
        }
        let members = Value::tuple(members.into_iter().map(Value::int).collect());
        self.call_ranks("_barrier", vec![Value::int(mesh.ranks), members, order])
    }

    /// Calls a function of `tle/_ranks.py`.
    pub(super) fn call_ranks(&mut self, name: &str, positional: Vec<Value>) -> Eval<Value> {
        let callee = Value::Const(HostValue::Library(format!("tle._ranks.{name}").into()));
        self.call(callee, CallArgs { positional, keywords: vec![] })
    }
}
