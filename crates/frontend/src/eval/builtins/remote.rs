//! `tle.remote`: buffers of another program of the cluster, pointers into them, and its barriers; copies that programs of a cluster share.

use std::sync::Arc;

use ruff_python_ast::{CmpOp, Operator};
use tilewright_ir::dialect::{arith, tt, ttg, ttng};
use tilewright_ir::types::REMOTE;
use tilewright_ir::{Op, launch, marks};

use super::super::call::Args;
use super::super::{Eval, Evaluator, builder};
use super::local::SHARED;
use super::mesh::Mesh;
use super::ranks::GLOBAL;
use crate::dtype::{DType, PointerType, Scalar};
use crate::host::HostValue;
use crate::value::{Barriers, Buffer, Tensor, Value};

impl Evaluator<'_> {
    pub(super) fn remote(&mut self, args: &Args) -> Eval<Value> {
        let of_devices = args.optional("scope").is_some() && self.mesh_of(args, "scope")?.ranks > 1;
        match args.get("space") {
            Value::Const(HostValue::Str(space)) if &**space == "cluster" && !of_devices => {}
            Value::Const(HostValue::Str(space)) if matches!(&**space, "cluster" | "device" | "node") => {
                return self.remote_of_device(args, of_devices);
            }
            other => {
                return Err(self.bad_argument(args, "space", other, "\"cluster\", \"device\" or \"node\""));
            }
        }
        if matches!(args.get("tensor"), Value::Buffer(_)) && args.optional("offset").is_some() {
            return Err(self
                .error("`offset` of tle.remote is for memory of other devices")
                .note("indices of tle.gpu.local_ptr say which elements of a buffer")
                .into());
        }
        self.refuse_others(args, &["tensor", "shard_id", "scope", "space"])?;
        let of = args.get("tensor").clone();
        let space = of.as_tensor().and_then(|t| t.dtype.as_pointer()).map(|p| p.address_space);
        let already = match &of {
            Value::Buffer(b) => b.rank.is_some(),
            Value::Barriers(b) => b.rank.is_some(),
            _ => space == Some(REMOTE),
        };
        if already {
            return Err(self.error(format!("{of} is another program's already")));
        }
        let rank = match args.optional("scope").is_some() {
            true => self.rank_of_member(args)?,
            false => self.rank_in_cluster(args)?,
        };
        self.meshes.others_reached = true;
        match &of {
            Value::Buffer(buffer) => {
                Ok(Value::Buffer(Arc::new(Buffer { rank: Some(rank), ..(**buffer).clone() })))
            }
            Value::Barriers(barriers) => {
                self.meshes.others_told = true;
                Ok(Value::Barriers(Arc::new(Barriers { rank: Some(rank), ..(**barriers).clone() })))
            }
            Value::Tensor(pointers) if space == Some(SHARED) => {
                Ok(Value::Tensor(self.remote_pointers(pointers, &rank)))
            }
            other => {
                let wanted = "a buffered_tensor, pointers into one, or barriers";
                Err(self.bad_argument(args, "tensor", other, wanted))
            }
        }
    }

    /// Pointers to the same places in the symmetric memory of another device.
    fn remote_of_device(&mut self, args: &Args, has_scope: bool) -> Eval<Value> {
        self.refuse_others(args, &["tensor", "shard_id", "scope", "space", "offset", "dtype"])?;
        let of = args.get("tensor").clone();
        let is_global = |t: &Tensor| t.dtype.as_pointer().is_some_and(|p| p.address_space == GLOBAL);
        match &of {
            Value::Tensor(t) if is_global(t) => {}
            other if self.is_sharded(other) => {}
            Value::Buffer(_) => {
                return Err(self
                    .error(format!("{of} is in shared memory, which programs of other devices cannot reach"))
                    .note("reach programs of the cluster through a mesh of `block_cluster`, and other devices through symmetric global memory")
                    .into());
            }
            other => return Err(self.bad_argument(args, "tensor", other, "pointers to symmetric memory")),
        }
        let (rank, ranks) = match has_scope {
            true => {
                let mesh = self.mesh_of(args, "scope")?;
                let ranks = mesh.ranks_of_members();
                let rank = match self.member(args, &mesh)? {
                    Value::Const(HostValue::Int(k)) => Value::int(ranks[k as usize]),
                    at => Value::Tensor(self.look_up(&at, &ranks)?),
                };
                (rank, mesh.ranks)
            }
            false => match args.get("shard_id") {
                Value::Tuple(_) => {
                    return Err(
                        self.error("a tuple as `shard_id` needs `scope`, the mesh whose axes it goes along")
                    );
                }
                Value::Const(HostValue::Int(rank)) => {
                    let rank = *rank;
                    self.refuse_negative(rank)?;
                    (Value::int(rank), 0)
                }
                other => (Value::Tensor(self.run_time_number(args, other)?), 0),
            },
        };
        if !has_scope && self.options.debug {
            self.call_ranks("_check_rank", vec![rank.clone()])?;
        }
        if let Some(part) = self.remote_part(&of, ranks, &rank)? {
            return match ["offset", "dtype"].into_iter().find(|name| args.optional(name).is_some()) {
                None => Ok(part),
                Some(name) => Err(self
                    .error(format!("`{name}` of tle.remote is for pointers, and not for a sharded tensor"))),
            };
        }
        let mut there = self.call_ranks("_of_rank", vec![Value::int(ranks), of, rank])?;
        if let Some(dtype) = args.optional("dtype") {
            there = self.call_ranks("_as", vec![there, dtype.clone()])?;
        }
        match args.optional("offset") {
            Some(offset) => self.tensor_binary(Operator::Add, &there, &offset.clone()).map(Value::Tensor),
            None => Ok(there),
        }
    }

    /// Pointers to the same places in the shared memory of the program of this rank.
    pub(super) fn remote_pointers(&mut self, pointers: &Tensor, rank: &Tensor) -> Tensor {
        let element = pointers.dtype.as_pointer().map_or(DType::Scalar(Scalar::Void), |p| p.element.clone());
        let dtype = DType::Pointer(PointerType { element, address_space: REMOTE, constant: false }.into());
        let ty = self.ir_type(&dtype, &pointers.shape);
        let value =
            ttg::RemotePtr::build(&mut builder!(self), pointers.value, rank.value, ty).result(&self.module);
        Tensor { value, dtype, shape: pointers.shape.clone() }
    }

    /// Without a mesh: the rank itself.
    fn rank_in_cluster(&mut self, args: &Args) -> Eval<Tensor> {
        let error = self
            .error("tle.remote without a scope is for the programs of a cluster, and this kernel's form none")
            .note("clusters come from a mesh with axes of the level `block_cluster`: pass it as `scope`");
        self.meshes.unless_cluster.get_or_insert(error.into());
        match args.get("shard_id") {
            Value::Tuple(_) => {
                Err(self.error("a tuple as `shard_id` needs `scope`, the mesh whose axes it goes along"))
            }
            Value::Const(HostValue::Int(rank)) => {
                let rank = *rank;
                self.refuse_negative(rank)?;
                if self.meshes.furthest.as_ref().is_none_or(|(known, _)| *known < rank) {
                    let error = self.error(format!("there is no program {rank} in the kernel's clusters"));
                    self.meshes.furthest = Some((rank, error));
                }
                self.scalar_constant(&HostValue::Int(rank), &Scalar::Int32.into())
            }
            _ => self.run_time_number(args, args.get("shard_id")),
        }
    }

    /// The rank in the cluster of a member of the mesh `scope`.
    fn rank_of_member(&mut self, args: &Args) -> Eval<Tensor> {
        let mesh = self.mesh_of(args, "scope")?;
        let size = mesh.cluster_size();
        if size == 1 {
            return Err(self
                .error("tle.remote reaches the programs of a cluster, and `scope` is no mesh of one")
                .note("clusters come from axes of the level `block_cluster`")
                .into());
        }
        self.form_clusters(&mesh)?;
        let ranks: Vec<i128> = mesh.numbers.iter().map(|n| n % size).collect();
        if mesh.numbers.iter().any(|n| n / size != mesh.numbers[0] / size) {
            return Err(self
                .error("tle.remote reaches the programs of one cluster, and `scope` has members of several")
                .note("pass the part of the mesh that is one cluster, such as mesh[0]")
                .into());
        }
        match self.member(args, &mesh)? {
            Value::Const(HostValue::Int(k)) => {
                self.scalar_constant(&HostValue::Int(ranks[k as usize]), &Scalar::Int32.into())
            }
            at => self.look_up(&at, &ranks),
        }
    }

    /// The member's number in the mesh: a constant in range, or known at run time.
    fn member(&mut self, args: &Args, mesh: &Mesh) -> Eval<Value> {
        let items = match args.get("shard_id") {
            Value::Tuple(t) if t.items.len() == mesh.shape.len() => t.items.clone(),
            Value::Tuple(t) => {
                return Err(self.error(format!(
                    "`shard_id` has {} coordinates, and the mesh {} axes",
                    t.items.len(),
                    mesh.shape.len()
                )));
            }
            Value::Const(HostValue::Int(k)) => {
                return self.coordinate_in_range(*k, mesh.numbers.len() as i128, "the mesh");
            }
            one => return self.number_below(args, one, mesh.numbers.len() as i128).map(Value::Tensor),
        };
        let mut linear = Value::int(0);
        for (d, item) in items.iter().enumerate() {
            let extent = mesh.shape[d];
            let at = match item {
                Value::Const(HostValue::Int(k)) => {
                    self.coordinate_in_range(*k, extent, &format!("axis `{}`", mesh.names[d]))?
                }
                other => Value::Tensor(self.number_below(args, other, extent)?),
            };
            linear = match (&linear, &at) {
                (Value::Const(HostValue::Int(l)), Value::Const(HostValue::Int(k))) => {
                    Value::int(l * extent + k)
                }
                _ => {
                    let rows = self.tensor_binary_of(Operator::Mult, &linear, &Value::int(extent))?;
                    Value::Tensor(self.tensor_binary_of(Operator::Add, &Value::Tensor(rows), &at)?)
                }
            };
        }
        Ok(linear)
    }

    fn tensor_binary_of(&mut self, op: Operator, a: &Value, b: &Value) -> Eval<Tensor> {
        let a = Value::Tensor(self.tensor_of(a)?);
        self.tensor_binary(op, &a, b)
    }

    fn coordinate_in_range(&self, at: i128, extent: i128, of: &str) -> Eval<Value> {
        self.refuse_negative(at)?;
        if at < extent {
            return Ok(Value::int(at));
        }
        Err(self.error(format!("`shard_id` {at} is out of range for {of}, which has {extent}")))
    }

    fn refuse_negative(&self, at: i128) -> Eval<()> {
        if at < 0 { Err(self.error(format!("`shard_id` must be >= 0, not {at}"))) } else { Ok(()) }
    }

    /// A scalar integer that is known at run time.
    fn run_time_number(&mut self, args: &Args, value: &Value) -> Eval<Tensor> {
        match value {
            Value::Tensor(t)
                if !t.is_block() && t.number().is_some_and(|s| s.is_int() && s != Scalar::Int1) =>
            {
                self.cast(&t.clone(), &Scalar::Int32.into())
            }
            other => Err(self.bad_argument(args, "shard_id", other, "a scalar integer, or a tuple of them")),
        }
    }

    /// The same, of something that there is so often, which a kernel with `debug=True` checks.
    fn number_below(&mut self, args: &Args, value: &Value, count: i128) -> Eval<Tensor> {
        let number = self.run_time_number(args, value)?;
        if self.options.debug {
            let at = Value::Tensor(number.clone());
            let positive = self.compare(CmpOp::GtE, at.clone(), Value::int(0))?;
            let below = self.compare(CmpOp::Lt, at, Value::int(count))?;
            let inside = self.tensor_binary_of(Operator::BitAnd, &positive, &below)?;
            let message = format!("shard_id of tle.remote must be below {count}");
            tt::Assert::build(&mut builder!(self), inside.value, message);
        }
        Ok(number)
    }

    /// What a list has at a place that is known at run time.
    fn look_up(&mut self, at: &Value, list: &[i128]) -> Eval<Tensor> {
        let step = list.get(1).map_or(1, |second| second - list[0]);
        if list.iter().zip(0..).all(|(n, k)| *n == list[0] + step * k) {
            let moved = self.tensor_binary(Operator::Mult, at, &Value::int(step))?;
            return self.tensor_binary(Operator::Add, &Value::Tensor(moved), &Value::int(list[0]));
        }
        let int32 = DType::Scalar(Scalar::Int32);
        let mut found = self.scalar_constant(&HostValue::Int(list[0]), &int32)?;
        for (k, &n) in list.iter().enumerate().skip(1) {
            let here = self.compare(CmpOp::Eq, at.clone(), Value::int(k as i128))?;
            let here = self.tensor_of(&here)?;
            let number = self.scalar_constant(&HostValue::Int(n), &int32)?;
            let mut b = builder!(self);
            let value = arith::Select::build(&mut b, here.value, number.value, found.value).result(b.module);
            found = Tensor::scalar(value, Scalar::Int32);
        }
        Ok(found)
    }

    /// At the end of a kernel whose programs reach each other's buffers: nobody ends before all are done. Where they meet behind the last that
    /// they do there, they have done that.
    pub(crate) fn end_together(&mut self) -> Eval<()> {
        if !self.meshes.others_reached {
            return Ok(());
        }
        let programs: u32 = launch::programs_of_cluster(&self.module).iter().product();
        if let Some((rank, error)) = self.meshes.furthest.take()
            && programs > 1
            && rank >= i128::from(programs)
        {
            return Err(error);
        }
        if self.meshes.others_told && programs > 1 {
            self.begin_together()?;
        }
        if !self.meshes.others_told && self.have_met() {
            return Ok(());
        }
        let mut b = builder!(self);
        ttng::ClusterArrive::build(&mut b, false);
        ttng::ClusterWait::build(&mut b);
        Ok(())
    }

    /// Whether all programs of the cluster meet behind the last operation so far that takes pointers into another's memory.
    fn have_met(&self) -> bool {
        let module = &self.module;
        let meets = |op| {
            tt::ProgramBarrier::cast(module, op).is_some_and(|barrier| {
                barrier.scope(module) == tt::ProgramScope::Cluster
                    && barrier.count(module).is_none()
                    && module.op_attr(op, marks::RELAXED).is_none()
            })
        };
        // What is called may reach others by buffers that it is given.
        let reaches = |op| {
            let is_remote = |&value| module.is_remote_pointer(module.value_type(value));
            let is_call =
                |op| tt::Call::cast(module, op).is_some() || tt::RawCall::cast(module, op).is_some();
            module.all_ops(op).into_iter().any(|op| is_call(op) || module.operands(op).iter().any(is_remote))
        };
        let ops: Vec<Op> = module.block_ops(self.block).collect();
        ops.into_iter().rev().find(|&op| meets(op) || reaches(op)).is_some_and(meets)
    }

    /// The argument `multicast` of a copy, a mesh and one of its axes: the bits in which the ranks of the programs along it differ, which share
    /// the copy; 0 where each copies for itself.
    pub(super) fn multicast_arg(&mut self, args: &Args) -> Eval<i32> {
        let wanted = "a mesh of a cluster and the name or index of one of its axes, as a tuple";
        let (mesh, axis) = match args.get("multicast").clone() {
            Value::Const(HostValue::None) => return Ok(0),
            Value::Tuple(t) if t.items.len() == 2 => (t.items[0].clone(), t.items[1].clone()),
            other => return Err(self.bad_argument(args, "multicast", &other, wanted)),
        };
        let mesh = self.mesh_in(args, "multicast", &mesh, wanted)?;
        let axis = self.axis_in(args, "multicast", &axis, &mesh)?;
        if !mesh.is_whole() {
            return Err(self
                .error("`multicast` of tle.gpu.copy goes along an axis of a whole mesh, and this is a part of one")
                .note("all programs of the cluster make the copy: give the mesh of which it is a part")
                .into());
        }
        self.form_clusters(&mesh)?;
        if mesh.shape[axis] == 1 {
            return Ok(0);
        }
        let (size, inner) = (mesh.cluster_size(), mesh.shape[axis + 1..].iter().product::<i128>());
        let row: Vec<i128> = (0..mesh.shape[axis]).map(|k| mesh.numbers[(k * inner) as usize]).collect();
        if row.iter().any(|n| n / size != row[0] / size) {
            return Err(self
                .error(format!("the programs along axis `{}` of the mesh are of several clusters", mesh.names[axis]))
                .note("a copy is shared by programs of one cluster, which come from axes of the level `block_cluster`")
                .into());
        }
        let mask = row.iter().fold(0, |mask, n| mask | n ^ row[0]);
        if 1 << mask.count_ones() != row.len() {
            let what =
                format!("a copy that {} programs share: their number must be a power of two", row.len());
            return Err(self.not_supported_yet(&what));
        }
        self.meshes.others_reached = true;
        self.meshes.others_told = true;
        Ok(mask as i32)
    }
}
