//! Meshes: which member of one a program is, and members that wait for each other. What is particular to several devices is in [`super::ranks`].
//!
//! A program has a number in the mesh that it was launched by: its rank in its cluster, row-major over the axes of clusters' blocks,
//! plus the number of its cluster times the size of one. It is counted along the grid, x fastest, and begins anew where the grid is
//! larger than the mesh. All that is asked of a mesh is arithmetic on that number.

use std::sync::Arc;

use ruff_python_ast::{CmpOp, Operator};
use tilewright_ir::dialect::{arith, scf, tt, ttg, ttng};
use tilewright_ir::{AttrKind, Type, launch, marks};

use super::super::call::{Args, CallArgs};
use super::super::expr::MESH;
use super::super::{Error, Eval, Evaluator, builder};
use crate::dtype::Scalar;
use crate::host::{HostObject, HostValue};
use crate::value::{Tensor, Value};

/// The most programs of a cluster (CUDA C++ Programming Guide, "Thread Block Clusters": more than 8 must be asked for).
const MAX_CLUSTER: i128 = 16;

/// Programs that wait for each other: all of a scope, or, of a mesh of a size, the members with these numbers; whole, or the partitions of a number.
type Group = (tt::ProgramScope, Option<(i128, Vec<i128>)>, Option<usize>);

/// What the meshes of a kernel have come to.
#[derive(Default)]
pub(crate) struct Meshes {
    /// The groups that wait, by their numbers.
    groups: Vec<Group>,
    /// What is wrong if it turns out that programs form no clusters.
    pub(super) unless_cluster: Option<Error>,
    /// The memory of the kernel's rank, if it is asked for.
    pub(super) rank_memory: Option<tilewright_ir::Value>,
    /// The groups of ranks that wait, by their numbers.
    pub(super) groups_of_ranks: Vec<(HostValue, Option<usize>)>,
    /// The partition that moves tensors between ranks.
    pub(super) moving: Option<usize>,
    /// Whether programs reach each other's buffers.
    pub(super) others_reached: bool,
    /// Whether they arrive at each other's barriers, or copy to each other.
    pub(super) others_told: bool,
    /// The largest rank of a program that is reached, and what is wrong if clusters have not as many.
    pub(super) furthest: Option<(i128, Error)>,
}

/// A mesh, or a part of one.
pub(super) struct Mesh {
    pub(super) names: Vec<String>,
    pub(super) shape: Vec<i128>,
    /// The physical id of each member, in the order of the mesh.
    ids: Vec<i128>,
    /// The same as numbers of programs.
    pub(super) numbers: Vec<i128>,
    /// The axes of the mesh that it is a part of, by the order of numbers: a size, and by how much the id grows along it.
    axes: Vec<(i128, i128)>,
    /// How many members the mesh has that it is a part of.
    whole: i128,
    /// The axes of clusters' blocks of that mesh.
    cluster: Vec<i128>,
    /// How many members of its nodes and devices that mesh has.
    pub(super) ranks: i128,
}

impl Mesh {
    /// Programs of a cluster.
    pub(super) fn cluster_size(&self) -> i128 {
        self.cluster.iter().product()
    }

    pub(super) fn is_whole(&self) -> bool {
        self.numbers.len() as i128 == self.whole
    }

    /// Members of one rank of that mesh.
    pub(super) fn per_rank(&self) -> i128 {
        self.whole / self.ranks
    }

    /// The rank of each member.
    pub(super) fn ranks_of_members(&self) -> Vec<i128> {
        self.numbers.iter().map(|n| n / self.per_rank()).collect()
    }
}

/// A coordinate as a function of the program's number n: ((n - base) / inner mod extent - start) / step.
#[derive(Clone, Copy)]
struct Coordinate {
    base: i128,
    inner: i128,
    extent: i128,
    start: i128,
    step: i128,
}

impl Coordinate {
    /// The one that is `wanted` of each of `numbers`: by digits of the number in the whole mesh, or of its place in a row of members.
    fn find(numbers: &[i128], wanted: &[i128], whole: i128) -> Option<Coordinate> {
        let divisors = |n: i128| (1..=n).filter(move |d| n % d == 0);
        let mut sorted = numbers.to_vec();
        sorted.sort_unstable();
        let unit = sorted.get(1).map_or(1, |next| next - sorted[0]);
        let rows = [(0, 1, whole), (sorted[0], unit, sorted.len() as i128)];
        let digits = rows.into_iter().flat_map(|(base, unit, size)| {
            divisors(size).flat_map(move |d| divisors(size / d).map(move |extent| (base, unit * d, extent)))
        });
        let other = (0..numbers.len()).find(|&k| wanted[k] != wanted[0])?;
        let mut found = None;
        for (base, inner, extent) in digits {
            let at = |k: usize| (numbers[k] - base) / inner % extent;
            let step = (at(other) - at(0)) / (wanted[other] - wanted[0]);
            let start = at(0) - step * wanted[0];
            if step != 0 && (0..numbers.len()).all(|k| at(k) == start + step * wanted[k]) {
                let coordinate = Coordinate { base, inner, extent, start, step };
                if (base, start, step) == (0, 0, 1) {
                    return Some(coordinate);
                }
                found.get_or_insert(coordinate);
            }
        }
        found
    }
}

/// Numbers in order, as runs: the first, the step and how many.
fn runs(numbers: &[i128]) -> Vec<(i128, i128, i128)> {
    let mut out = Vec::new();
    let mut rest = numbers;
    while let [first, tail @ ..] = rest {
        let step = tail.first().map_or(1, |next| next - first);
        let count = rest.iter().zip(0..).take_while(|&(n, k)| *n == first + step * k).count();
        // Two alone may belong to what comes.
        let count = if count == 2 && step > 1 { 1 } else { count };
        out.push((*first, if count == 1 { 1 } else { step }, count as i128));
        rest = &rest[count..];
    }
    out
}

impl Evaluator<'_> {
    /// The coordinate of the program along an axis of a mesh.
    pub(super) fn shard_id(&mut self, args: &Args) -> Eval<Tensor> {
        self.refuse_others(args, &["mesh", "axis"])?;
        let mesh = self.mesh_arg(args)?;
        let axis = self.axis_in(args, "axis", args.get("axis"), &mesh)?;
        self.form_clusters(&mesh)?;
        if mesh.shape[axis] == 1 {
            return self.scalar_constant(&HostValue::Int(0), &Scalar::Int32.into());
        }
        let inner: i128 = mesh.shape[axis + 1..].iter().product();
        let wanted: Vec<i128> =
            (0..mesh.numbers.len() as i128).map(|place| place / inner % mesh.shape[axis]).collect();
        let number = self.number_in_mesh(&mesh)?;
        let (mut at, c) = match Coordinate::find(&mesh.numbers, &wanted, mesh.whole) {
            Some(c) => (number, c),
            None => match Coordinate::find(&mesh.ids, &wanted, mesh.whole) {
                Some(c) => (self.id_in_mesh(&mesh, number)?, c),
                None => {
                    let what =
                        format!("tle.shard_id along `{}` of a mesh with such members", mesh.names[axis]);
                    return Err(self.not_supported_yet(&what));
                }
            },
        };
        let above = if c.base == 0 { mesh.whole / c.inner } else { 0 };
        for (operator, by, neutral) in [
            (Operator::Sub, c.base, 0),
            (Operator::FloorDiv, c.inner, 1),
            (Operator::Mod, c.extent, above),
            (Operator::Sub, c.start, 0),
            (Operator::FloorDiv, c.step, 1),
        ] {
            if by != neutral {
                at = self.tensor_binary(operator, &Value::Tensor(at), &Value::int(by))?;
            }
        }
        Ok(at)
    }

    /// The members of a mesh wait for each other; for other programs it is nothing.
    pub(super) fn distributed_barrier(&mut self, args: &Args) -> Eval<Value> {
        let of_devices = args.optional("mesh").is_some() && self.mesh_arg(args)?.ranks > 1;
        self.refuse_others(args, &["mesh", "order"])?;
        if of_devices {
            let mesh = self.mesh_arg(args)?;
            return self.barrier_of_ranks(args, &mesh);
        }
        let relaxed = self.is_relaxed(args)?;
        if args.optional("mesh").is_none() {
            let error = self
                .error("tle.distributed_barrier without a mesh is for the programs of a cluster, and this kernel's form none")
                .note("clusters come from a mesh with axes of the level `block_cluster`: pass it");
            self.meshes.unless_cluster.get_or_insert(error.into());
            if self.partition.is_some() {
                return Err(self
                    .not_supported_yet(
                        "tle.distributed_barrier without a mesh in a function of tle.gpu.warp_specialize",
                    )
                    .note("pass the mesh whose programs wait for each other")
                    .into());
            }
            return self.program_barrier(tt::ProgramScope::Cluster, None, None, relaxed);
        }
        let mesh = self.mesh_arg(args)?;
        self.form_clusters(&mesh)?;
        let scope = match mesh.cluster_size() {
            size if size > 1 && size == mesh.whole => tt::ProgramScope::Cluster,
            _ => tt::ProgramScope::Grid,
        };
        if mesh.numbers.len() == 1 {
            // Nobody to wait for.
            ttg::Barrier::build(&mut builder!(self));
            return Ok(Value::NONE);
        }
        if scope == tt::ProgramScope::Grid && self.options.num_ctas > 1 {
            return Err(self
                .error(format!("programs that wait for each other, with num_ctas={}", self.options.num_ctas))
                .note("each must be run by one CTA: use num_ctas=1")
                .into());
        }
        if mesh.is_whole() {
            // The barrier in hardware is of all threads of a cluster: partitions count.
            let of_partitions = scope == tt::ProgramScope::Cluster && self.partition.is_some();
            let count = match of_partitions {
                true => Some(self.scalar_constant(&HostValue::Int(mesh.whole), &Scalar::Int32.into())?.value),
                false => None,
            };
            if relaxed && (scope == tt::ProgramScope::Grid || of_partitions) {
                return Err(self.relaxed_elsewhere());
            }
            return self.program_barrier(scope, None, count, relaxed);
        }
        if relaxed {
            return Err(self.relaxed_elsewhere());
        }
        let mut members = mesh.numbers.clone();
        members.sort_unstable();
        let runs = runs(&members);
        let number = Value::Tensor(self.number_in_mesh(&mesh)?);
        // Whether the program is a member.
        let mut member: Option<Tensor> = None;
        for &(first, step, count) in &runs {
            let from = self.compare(CmpOp::GtE, number.clone(), Value::int(first))?;
            let to = self.compare(CmpOp::LtE, number.clone(), Value::int(first + step * (count - 1)))?;
            let mut inside = self.tensor_binary(Operator::BitAnd, &from, &to)?;
            if step > 1 {
                let offset = self.tensor_binary(Operator::Sub, &number, &Value::int(first))?;
                let rest = self.tensor_binary(Operator::Mod, &Value::Tensor(offset), &Value::int(step))?;
                let hit = self.compare(CmpOp::Eq, Value::Tensor(rest), Value::int(0))?;
                inside = self.tensor_binary(Operator::BitAnd, &Value::Tensor(inside), &hit)?;
            }
            member = Some(match member {
                None => inside,
                Some(m) => self.tensor_binary(Operator::BitOr, &Value::Tensor(m), &Value::Tensor(inside))?,
            });
        }
        // How many they are.
        let count = match scope {
            tt::ProgramScope::Cluster => {
                self.scalar_constant(&HostValue::Int(members.len() as i128), &Scalar::Int32.into())?
            }
            tt::ProgramScope::Grid => self.members_in_grid(&runs, members.len() as i128, mesh.whole)?,
        };
        let Some(member) = member else { return Ok(Value::NONE) };
        let op = scf::If::build(&mut builder!(self), member.value, &[]);
        let region = op.then_region(&self.module);
        let then = self.module.append_block(region, &[]);
        let outer = std::mem::replace(&mut self.block, then);
        let built = self.program_barrier(scope, Some((mesh.whole, members)), Some(count.value), false);
        scf::Yield::build(&mut builder!(self), &[]);
        self.block = outer;
        built
    }

    /// What is given for other parameters than these is for meshes of devices.
    pub(super) fn refuse_others(&self, args: &Args, known: &[&str]) -> Eval<()> {
        for (name, default) in args.builtin.params.iter().filter(|(name, _)| !known.contains(&&**name)) {
            let default = default.clone().map_or(Value::NONE, Value::from_host);
            if !args.get(name).identical(&default) {
                let what = format!("{} with `{name}`", args.builtin.shown());
                return Err(self.not_supported_yet(&what));
            }
        }
        Ok(())
    }

    pub(super) fn program_barrier(
        &mut self,
        scope: tt::ProgramScope,
        members: Option<(i128, Vec<i128>)>,
        count: Option<tilewright_ir::Value>,
        relaxed: bool,
    ) -> Eval<Value> {
        let key = (scope, members, self.partition.map(|p| p.number));
        let group = self.meshes.groups.iter().position(|known| *known == key).unwrap_or_else(|| {
            self.meshes.groups.push(key);
            self.meshes.groups.len() - 1
        });
        let barrier = tt::ProgramBarrier::build(&mut builder!(self), count, scope, group as i32);
        if relaxed {
            let mark = self.module.attr(AttrKind::Unit);
            self.module.set_attr(barrier.0, marks::RELAXED, mark);
        }
        Ok(Value::NONE)
    }

    /// Whether a barrier of programs of one device need not order what they have done before.
    fn is_relaxed(&self, args: &Args) -> Eval<bool> {
        match args.optional("order") {
            None => Ok(false),
            Some(Value::Const(HostValue::Str(order))) if &**order == "acqrel" => Ok(false),
            Some(Value::Const(HostValue::Str(order))) if &**order == "relaxed" => Ok(true),
            Some(other) => {
                let wanted = "tle.MemoryOrder.ACQ_REL or RELAXED for programs of one device";
                Err(self.bad_argument(args, "order", other, wanted))
            }
        }
    }

    fn relaxed_elsewhere(&self) -> Error {
        let mut error = self.not_supported_yet(
            "a relaxed tle.distributed_barrier of other programs than those of a cluster, all of them, outside of tle.gpu.warp_specialize",
        );
        error.notes.push("leave `order` out".into());
        error
    }

    /// How many of the grid's programs have their number in a part of a mesh: as many as the part has for each time that the
    /// mesh is in the grid, and those of the rest.
    fn members_in_grid(&mut self, runs: &[(i128, i128, i128)], size: i128, whole: i128) -> Eval<Tensor> {
        let mut programs: Option<Tensor> = None;
        for dim in [tt::ProgramDim::X, tt::ProgramDim::Y, tt::ProgramDim::Z] {
            let extent = Value::Tensor(self.num_programs(dim));
            programs = Some(match programs {
                None => self.tensor_binary(Operator::Mult, &extent, &Value::int(1))?,
                Some(p) => self.tensor_binary(Operator::Mult, &Value::Tensor(p), &extent)?,
            });
        }
        let programs = programs.map_or(Value::int(1), Value::Tensor);
        let times = self.tensor_binary(Operator::FloorDiv, &programs, &Value::int(whole))?;
        let rest = Value::Tensor(self.tensor_binary(Operator::Mod, &programs, &Value::int(whole))?);
        let mut count = self.tensor_binary(Operator::Mult, &Value::Tensor(times), &Value::int(size))?;
        for &(first, step, most) in runs {
            let above = self.tensor_binary(Operator::Sub, &rest, &Value::int(first + 1 - step))?;
            let some = self.tensor_binary(Operator::FloorDiv, &Value::Tensor(above), &Value::int(step))?;
            let [none, most] =
                [0, most].map(|n| self.scalar_constant(&HostValue::Int(n), &Scalar::Int32.into()));
            let (none, most) = (none?.value, most?.value);
            let mut b = builder!(self);
            let some = arith::Maxsi::build(&mut b, some.value, none).result(b.module);
            let some = arith::Minsi::build(&mut b, some, most).result(b.module);
            let some = Value::Tensor(Tensor::scalar(some, Scalar::Int32));
            count = self.tensor_binary(Operator::Add, &Value::Tensor(count), &some)?;
        }
        Ok(count)
    }

    /// The physical id of the program of a number.
    fn id_in_mesh(&mut self, mesh: &Mesh, number: Tensor) -> Eval<Tensor> {
        let number = Value::Tensor(number);
        let (mut inner, mut id) = (1, None);
        for &(size, stride) in mesh.axes.iter().rev() {
            let along = self.tensor_binary(Operator::FloorDiv, &number, &Value::int(inner))?;
            let along = self.tensor_binary(Operator::Mod, &Value::Tensor(along), &Value::int(size))?;
            let term = self.tensor_binary(Operator::Mult, &Value::Tensor(along), &Value::int(stride))?;
            id = Some(match id {
                None => term,
                Some(id) => self.tensor_binary(Operator::Add, &Value::Tensor(id), &Value::Tensor(term))?,
            });
            inner *= size;
        }
        match id {
            Some(id) => Ok(id),
            None => self.scalar_constant(&HostValue::Int(0), &Scalar::Int32.into()),
        }
    }

    /// The program's number in the mesh.
    fn number_in_mesh(&mut self, mesh: &Mesh) -> Eval<Tensor> {
        if mesh.ranks == 1 {
            return self.number_in_rank(mesh);
        }
        let rank = self.rank_of_kernel(mesh.ranks)?;
        if mesh.per_rank() == 1 {
            return Ok(rank);
        }
        let within = self.number_in_rank(mesh)?;
        let first = self.tensor_binary(Operator::Mult, &Value::Tensor(rank), &Value::int(mesh.per_rank()))?;
        self.tensor_binary(Operator::Add, &Value::Tensor(first), &Value::Tensor(within))
    }

    /// The program's number among those of its rank.
    fn number_in_rank(&mut self, mesh: &Mesh) -> Eval<Tensor> {
        let size = mesh.cluster_size();
        let dims = launch_dims(&mesh.cluster);
        if size == mesh.per_rank() && size > 1 {
            return Ok(self.cluster_rank());
        }
        // The number of the cluster, or of the program where there are none.
        let mut number: Option<Tensor> = None;
        for (dim, extent) in
            [tt::ProgramDim::Z, tt::ProgramDim::Y, tt::ProgramDim::X].into_iter().zip(dims.into_iter().rev())
        {
            let mut b = builder!(self);
            let id = tt::GetProgramId::build(&mut b, dim, Type::I32).result(b.module);
            let mut id = Tensor::scalar(id, Scalar::Int32);
            let mut count = self.num_programs(dim);
            if extent > 1 {
                let by = Value::int(i128::from(extent));
                id = self.tensor_binary(Operator::FloorDiv, &Value::Tensor(id), &by)?;
                count = self.tensor_binary(Operator::FloorDiv, &Value::Tensor(count), &by)?;
            }
            number = Some(match number {
                None => id,
                Some(outer) => {
                    let outer =
                        self.tensor_binary(Operator::Mult, &Value::Tensor(outer), &Value::Tensor(count))?;
                    self.tensor_binary(Operator::Add, &Value::Tensor(outer), &Value::Tensor(id))?
                }
            });
        }
        let number = number.map_or(Value::int(0), Value::Tensor);
        let within = self.tensor_binary(Operator::Mod, &number, &Value::int(mesh.per_rank() / size))?;
        if size == 1 {
            return Ok(within);
        }
        let first = self.tensor_binary(Operator::Mult, &Value::Tensor(within), &Value::int(size))?;
        let rank = self.cluster_rank();
        self.tensor_binary(Operator::Add, &Value::Tensor(first), &Value::Tensor(rank))
    }

    fn num_programs(&mut self, dim: tt::ProgramDim) -> Tensor {
        let mut b = builder!(self);
        let count = tt::GetNumPrograms::build(&mut b, dim, Type::I32).result(b.module);
        Tensor::scalar(count, Scalar::Int32)
    }

    fn cluster_rank(&mut self) -> Tensor {
        let mut b = builder!(self);
        let rank = ttng::ClusterCtaRank::build(&mut b, Type::I32).result(b.module);
        Tensor::scalar(rank, Scalar::Int32)
    }

    /// Programs form the clusters that a mesh asks for.
    pub(super) fn form_clusters(&mut self, mesh: &Mesh) -> Eval<()> {
        let size = mesh.cluster_size();
        if size == 1 {
            return Ok(());
        }
        if size > MAX_CLUSTER {
            return Err(self.error(format!(
                "the mesh asks for clusters of {size} programs, and a cluster has {MAX_CLUSTER} at most"
            )));
        }
        if self.options.num_ctas != 1 {
            return Err(self
                .error(format!(
                    "the mesh asks for clusters of {size} programs, with num_ctas={}",
                    self.options.num_ctas
                ))
                .note("the programs of a cluster are run by one CTA each: use num_ctas=1")
                .into());
        }
        let dims = launch_dims(&mesh.cluster);
        let known = launch::programs_of_cluster(&self.module);
        if known != dims && known != [1; 3] {
            return Err(self
                .error(format!(
                    "the mesh asks for clusters of {dims:?} programs, and another mesh of this kernel for {known:?}"
                ))
                .note("a launch has clusters of one shape")
                .into());
        }
        launch::set_programs_of_cluster(&mut self.module, dims);
        Ok(())
    }

    /// What is wrong with barriers of the kernel's cluster, if it has none.
    pub(crate) fn check_clusters(&mut self) -> Eval<()> {
        match self.meshes.unless_cluster.take() {
            Some(error) if launch::programs_of_cluster(&self.module) == [1; 3] => Err(error),
            _ => Ok(()),
        }
    }

    /// A value in the argument `name` that must be an axis of a mesh: its name or index.
    pub(super) fn axis_in(&mut self, args: &Args, name: &str, value: &Value, mesh: &Mesh) -> Eval<usize> {
        let shown: Vec<String> = mesh.names.iter().map(|name| format!("`{name}`")).collect();
        match value {
            Value::Const(HostValue::Str(text)) => {
                mesh.names.iter().position(|n| **n == **text).ok_or_else(|| {
                    self.error(format!("the mesh has no axis `{text}`"))
                        .note(format!("its axes are {}", shown.join(", ")))
                        .into()
                })
            }
            Value::Const(HostValue::Int(axis)) => self.axis_of_mesh(*axis, &shown),
            other => Err(self.bad_argument(args, name, other, "the name of an axis or its index")),
        }
    }

    fn axis_of_mesh(&mut self, axis: i128, names: &[String]) -> Eval<usize> {
        let from_start = if axis < 0 { axis + names.len() as i128 } else { axis };
        match usize::try_from(from_start).ok().filter(|&a| a < names.len()) {
            Some(axis) => Ok(axis),
            None => Err(self
                .error(format!("axis {axis} is out of range for a mesh of {} axes", names.len()))
                .note(format!("its axes are {}", names.join(", ")))
                .into()),
        }
    }

    /// The argument `mesh`.
    pub(super) fn mesh_arg(&mut self, args: &Args) -> Eval<Mesh> {
        self.mesh_of(args, "mesh")
    }

    /// An argument that must be a mesh.
    pub(super) fn mesh_of(&mut self, args: &Args, name: &str) -> Eval<Mesh> {
        self.mesh_in(args, name, args.get(name), "a device_mesh")
    }

    /// A value in the argument `name` that must be a mesh.
    pub(super) fn mesh_in(&mut self, args: &Args, name: &str, value: &Value, wanted: &str) -> Eval<Mesh> {
        let object = match value {
            Value::Const(HostValue::Object(object)) if &*object.kind == MESH => object.clone(),
            _ => return Err(self.bad_argument(args, name, args.get(name), wanted)),
        };
        let names = self.mesh_list(&object, "dim_names")?.iter().map(text).collect();
        let shape = self.mesh_ints(&object, "shape")?;
        let axes = self.mesh_ints(&object, "launch_shape")?;
        let levels: Vec<String> = self.mesh_list(&object, "launch_levels")?.iter().map(text).collect();
        if let Some(d) = (0..axes.len()).find(|&d| axes[d] > 1 && levels[d] == "chiplet") {
            let function = args.builtin.shown();
            let what = format!("{function} of a mesh with axes of the level `{}`", levels[d]);
            return Err(self.not_supported_yet(&what));
        }
        // Nodes vary slowest and clusters' blocks fastest, wherever their axes stand.
        let place = |d: usize| match levels[d].as_str() {
            "node" => 0,
            "device" => 1,
            "block_cluster" => 3,
            _ => 2,
        };
        let mut order: Vec<usize> = (0..axes.len()).collect();
        order.sort_by_key(|&d| place(d));
        let stride = |d: usize| axes[d + 1..].iter().product::<i128>();
        let number = |id: &i128| order.iter().fold(0, |n, &d| n * axes[d] + id / stride(d) % axes[d]);
        let ids = self.mesh_ints(&object, "physical_ids")?;
        let numbers = ids.iter().map(number).collect();
        let strides = order.iter().map(|&d| (axes[d], stride(d))).collect();
        let of_cluster = |d: &usize| levels[*d] == "block_cluster";
        let cluster = (0..axes.len()).filter(of_cluster).map(|d| axes[d]).collect();
        let whole = axes.iter().product();
        let ranks = (0..axes.len()).filter(|&d| place(d) < 2).map(|d| axes[d]).product();
        Ok(Mesh { names, shape, ids, numbers, axes: strides, whole, cluster, ranks })
    }

    /// A mesh made in a kernel. The host makes it, of the topology's levels as pairs, since what a dict is to it isn't known here.
    pub(crate) fn make_mesh(&mut self, args: CallArgs) -> Eval<Value> {
        let given = match (&args.positional[..], &args.keywords[..]) {
            ([topology], []) => topology,
            ([], [(name, topology)]) if name == "topology" => topology,
            _ => {
                return Err(self
                    .error("tle.device_mesh takes one argument, the topology")
                    .note("it is a dict of levels or a tle.MeshConfig")
                    .into());
            }
        };
        let topology = match given {
            Value::Dict(levels) => {
                let pair = |(level, axes): &(Value, Value)| Value::tuple(vec![level.clone(), axes.clone()]);
                Value::tuple(levels.iter().map(pair).collect())
            }
            other => other.clone(),
        };
        let Some(topology) = topology.to_host() else {
            return Err(self.needs_constexpr(given, "the topology of tle.device_mesh"));
        };
        let made = self.host.library("tle.distributed._mesh", &[topology]).map_err(|e| self.host_error(e))?;
        Ok(Value::from_host(made))
    }

    fn mesh_list(&mut self, mesh: &Arc<HostObject>, name: &str) -> Eval<Vec<HostValue>> {
        match self.host.attribute(mesh, name).map_err(|e| self.host_error(e))? {
            Some(HostValue::Tuple(items)) => Ok(items.to_vec()),
            _ => Err(self.error(format!("the mesh has no `{name}`"))),
        }
    }

    fn mesh_ints(&mut self, mesh: &Arc<HostObject>, name: &str) -> Eval<Vec<i128>> {
        let items = self.mesh_list(mesh, name)?;
        Ok(items.iter().map(|item| if let HostValue::Int(n) = item { *n } else { 0 }).collect())
    }
}

fn text(value: &HostValue) -> String {
    match value {
        HostValue::Str(text) => text.to_string(),
        other => other.to_string(),
    }
}

/// The programs of a cluster along each axis of the grid, by a mesh's axes of clusters' blocks.
fn launch_dims(axes: &[i128]) -> [u32; 3] {
    let axes = match axes.len() {
        0..=3 => axes.to_vec(),
        _ => vec![axes.iter().product()],
    };
    std::array::from_fn(|d| axes.get(d).map_or(1, |&n| n as u32))
}
