//! Meshes: which member of one a program is.

use tilewright_ir::Type;
use tilewright_ir::dialect::tt;

use ruff_python_ast::Operator;

use super::super::call::Args;
use super::super::expr::MESH;
use super::super::{Eval, Evaluator, builder};
use crate::dtype::Scalar;
use crate::host::{HostObject, HostValue};
use crate::value::{Tensor, Value};

impl Evaluator<'_> {
    /// The coordinate of the program along an axis of a mesh of blocks.
    pub(super) fn shard_id(&mut self, args: &Args) -> Eval<Tensor> {
        let mesh = match args.get("mesh") {
            Value::Const(HostValue::Object(object)) if &*object.kind == MESH => object.clone(),
            other => return Err(self.bad_argument(args, "mesh", other, "a device_mesh")),
        };
        let names = self.mesh_list(&mesh, "dim_names")?;
        let shape: Vec<i128> = self.mesh_ints(&mesh, "shape")?;
        let shown: Vec<String> = names.iter().map(|name| name.to_string().replace('\'', "`")).collect();
        let axis = match args.get("axis") {
            Value::Const(name @ HostValue::Str(text)) => match names.iter().position(|n| n == name) {
                Some(axis) => axis,
                None => {
                    return Err(self
                        .error(format!("the mesh has no axis `{text}`"))
                        .note(format!("its axes are {}", shown.join(", ")))
                        .into());
                }
            },
            Value::Const(HostValue::Int(_)) => self.axis_of_mesh(args, &shown)?,
            other => return Err(self.bad_argument(args, "axis", other, "the name of an axis or its index")),
        };
        for level in self.mesh_list(&mesh, "dim_levels")? {
            if level != HostValue::str("block") {
                let of = match level {
                    HostValue::Str(level) => {
                        format!("tle.shard_id of a mesh with axes of the level `{level}`")
                    }
                    _ => "tle.shard_id of a mesh with axes of several levels in one".to_string(),
                };
                return Err(self.not_supported_yet(&of));
            }
        }
        let size: i128 = shape.iter().product();
        let whole: i128 = self.mesh_ints(&mesh, "launch_shape")?.iter().product();
        if size != whole {
            return Err(self.not_supported_yet("tle.shard_id of a part of a mesh"));
        }
        if shape[axis] == 1 {
            return self.scalar_constant(&HostValue::Int(0), &Scalar::Int32.into());
        }
        // The program's number in the grid, then in the mesh, then along the axis.
        let mut number: Option<Value> = None;
        for dim in [tt::ProgramDim::Z, tt::ProgramDim::Y, tt::ProgramDim::X] {
            let mut b = builder!(self);
            let id = tt::GetProgramId::build(&mut b, dim, Type::I32).result(b.module);
            let count = tt::GetNumPrograms::build(&mut b, dim, Type::I32).result(b.module);
            let [id, count] = [id, count].map(|v| Value::Tensor(Tensor::scalar(v, Scalar::Int32)));
            number = Some(match number {
                None => id,
                Some(outer) => {
                    let outer = Value::Tensor(self.tensor_binary(Operator::Mult, &outer, &count)?);
                    Value::Tensor(self.tensor_binary(Operator::Add, &outer, &id)?)
                }
            });
        }
        let number = number.unwrap_or(Value::int(0));
        let within = self.tensor_binary(Operator::Mod, &number, &Value::int(size))?;
        let inner: i128 = shape[axis + 1..].iter().product();
        let along = self.tensor_binary(Operator::FloorDiv, &Value::Tensor(within), &Value::int(inner))?;
        self.tensor_binary(Operator::Mod, &Value::Tensor(along), &Value::int(shape[axis]))
    }

    fn axis_of_mesh(&mut self, args: &Args, names: &[String]) -> Eval<usize> {
        let axis = self.int_arg(args, "axis")?;
        let from_start = if axis < 0 { axis + names.len() as i128 } else { axis };
        match usize::try_from(from_start).ok().filter(|&a| a < names.len()) {
            Some(axis) => Ok(axis),
            None => Err(self
                .error(format!("axis {axis} is out of range for a mesh of {} axes", names.len()))
                .note(format!("its axes are {}", names.join(", ")))
                .into()),
        }
    }

    fn mesh_list(&mut self, mesh: &HostObject, name: &str) -> Eval<Vec<HostValue>> {
        match self.host.attribute(mesh, name).map_err(|e| self.host_error(e))? {
            Some(HostValue::Tuple(items)) => Ok(items.to_vec()),
            _ => Err(self.error(format!("the mesh has no `{name}`"))),
        }
    }

    fn mesh_ints(&mut self, mesh: &HostObject, name: &str) -> Eval<Vec<i128>> {
        let items = self.mesh_list(mesh, name)?;
        Ok(items.iter().map(|item| if let HostValue::Int(n) = item { *n } else { 0 }).collect())
    }
}
