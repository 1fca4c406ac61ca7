//! Tiles of tensors: `tle.extract_tile` and `tle.insert_tile`.

use ruff_python_ast::Operator;
use tilewright_ir::dialect::tt;

use super::super::call::Args;
use super::super::{Eval, Evaluator, builder};
use crate::dtype::Scalar;
use crate::host::HostValue;
use crate::value::{Shape, Tensor, Value};

impl Evaluator<'_> {
    pub(super) fn extract_tile(&mut self, args: &Args) -> Eval<Tensor> {
        let x = self.block_arg(args, "x")?;
        let tile = self.shape_of(args.get("tile_shape"))?;
        let index = self.tile_index(args, &x.shape, &tile)?;
        let ty = self.ir_type(&x.dtype, &tile);
        let value = tt::ExtractTile::build(&mut builder!(self), x.value, &index, ty).result(&self.module);
        Ok(Tensor { value, dtype: x.dtype, shape: tile })
    }

    pub(super) fn insert_tile(&mut self, args: &Args) -> Eval<Tensor> {
        let (x, tile) = (self.block_arg(args, "x")?, self.block_arg(args, "tile")?);
        if tile.dtype != x.dtype {
            return Err(self
                .error(format!(
                    "`tile` of tle.insert_tile has elements of {}, `x` of {}",
                    tile.dtype, x.dtype
                ))
                .note(format!("convert it: tile.to(tl.{})", x.dtype))
                .into());
        }
        let index = self.tile_index(args, &x.shape, &tile.shape)?;
        let ty = self.ir_type(&x.dtype, &x.shape);
        let value =
            tt::InsertTile::build(&mut builder!(self), x.value, tile.value, &index, ty).result(&self.module);
        Ok(Tensor { value, ..x })
    }

    /// An argument that must be a tensor with a shape.
    pub(super) fn block_arg(&mut self, args: &Args, name: &str) -> Eval<Tensor> {
        match args.get(name) {
            Value::Tensor(t) if t.is_block() => Ok(t.clone()),
            other => Err(self.bad_argument(args, name, other, "a tensor with a shape")),
        }
    }

    /// The numbers of a tile along each dimension: given so, or by its number in row-major order.
    fn tile_index(&mut self, args: &Args, whole: &Shape, tile: &Shape) -> Eval<Vec<tilewright_ir::Value>> {
        let function = args.builtin.shown();
        if tile.len() != whole.len() {
            return Err(self.error(format!(
                "{function}: a tile of shape {:?} has {} dimensions, the tensor of shape {:?} has {}",
                tile.as_slice(),
                tile.len(),
                whole.as_slice(),
                whole.len()
            )));
        }
        if let Some(d) = (0..whole.len()).find(|&d| !whole[d].is_multiple_of(tile[d])) {
            return Err(self
                .error(format!(
                    "{function}: dimension {d} of the tensor, {}, is no multiple of the tile's, {}",
                    whole[d], tile[d]
                ))
                .note("a tensor is cut into whole tiles")
                .into());
        }
        let counts: Shape = whole.iter().zip(tile).map(|(n, t)| n / t).collect();
        let mut out = Vec::with_capacity(whole.len());
        match args.get("index") {
            Value::Tuple(t) => {
                if t.items.len() != whole.len() {
                    return Err(self.error(format!(
                        "the index of {function} has {} elements, the tensor {} dimensions",
                        t.items.len(),
                        whole.len()
                    )));
                }
                for (d, item) in t.items.iter().enumerate() {
                    if let Value::Const(HostValue::Int(i)) = item
                        && !(0..i128::from(counts[d])).contains(i)
                    {
                        return Err(self.error(format!(
                            "index[{d}] of {function} is {i}, but there are {} tiles along dimension {d}",
                            counts[d]
                        )));
                    }
                    out.push(self.tile_number(args, item)?);
                }
            }
            Value::Const(HostValue::Int(i)) => {
                let total: i128 = counts.iter().map(|&n| i128::from(n)).product();
                if !(0..total).contains(i) {
                    return Err(self
                        .error(format!("the index of {function} is {i}, but there are {total} tiles"))
                        .note(format!("the grid of tiles is {:?}", counts.as_slice()))
                        .into());
                }
                let mut rest = *i;
                for &n in counts.iter().rev() {
                    out.push(self.tile_number(args, &Value::int(rest % i128::from(n)))?);
                    rest /= i128::from(n);
                }
                out.reverse();
            }
            linear => {
                self.tile_number(args, linear)?;
                let mut rest = linear.clone();
                for (d, &n) in counts.iter().enumerate().rev() {
                    let n = Value::int(n);
                    // The outermost has what is out of range.
                    let at = match d {
                        0 => rest.clone(),
                        _ => Value::Tensor(self.tensor_binary(Operator::Mod, &rest, &n)?),
                    };
                    out.push(self.tile_number(args, &at)?);
                    if d > 0 {
                        rest = Value::Tensor(self.tensor_binary(Operator::FloorDiv, &rest, &n)?);
                    }
                }
                out.reverse();
            }
        }
        Ok(out)
    }

    /// A number of a tile, as int32.
    fn tile_number(&mut self, args: &Args, value: &Value) -> Eval<tilewright_ir::Value> {
        let number = match value {
            Value::Const(HostValue::Int(_)) => self.tensor_of(value)?,
            Value::Tensor(t)
                if !t.is_block() && t.number().is_some_and(|s| s.is_int() && s != Scalar::Int1) =>
            {
                t.clone()
            }
            other => {
                let wanted =
                    "an integer, a scalar tensor of integers, or a tuple of these for each dimension";
                return Err(self.bad_argument(args, "index", other, wanted));
            }
        };
        Ok(self.cast(&number, &Scalar::Int32.into())?.value)
    }
}
