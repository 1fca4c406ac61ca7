//! Functions of device libraries: those of libdevice by their table, and a user's own by `tl.core.extern_elementwise`.

use tilewright_ir as ir;
use tilewright_ir::dialect::tt;
use tilewright_libdevice::{self as libdevice, MACHINE, Query, Type};

use super::super::call::Args;
use super::super::semantic::Allow;
use super::super::{Eval, Evaluator, builder};
use crate::dtype::{DType, Scalar};
use crate::fold::{self, Num};
use crate::host::HostValue;
use crate::value::{Shape, Tensor, Value};

/// Where the functions of libdevice are declared.
pub(super) const MODULE: &str = "language.extra.libdevice.";

/// A symbol of a library with its types.
struct Overload<'a> {
    params: Vec<Scalar>,
    symbol: &'a str,
    result: Scalar,
}

fn scalar(ty: Type) -> Scalar {
    match ty {
        Type::I32 => Scalar::Int32,
        Type::U32 => Scalar::UInt32,
        Type::I64 => Scalar::Int64,
        Type::U64 => Scalar::UInt64,
        Type::F32 => Scalar::Fp32,
        Type::F64 => Scalar::Fp64,
    }
}

/// Whether a constant can be a parameter of a type.
fn fits(constant: &HostValue, param: Scalar) -> bool {
    match fold::number(constant) {
        Some(Num::Int(_)) => true,
        Some(Num::Float(_)) => param.is_float(),
        None => false,
    }
}

impl Evaluator<'_> {
    /// A function of libdevice: the overload of its arguments' types; where there is none, constants become what one takes, and
    /// tensors of different types the wider one.
    pub(super) fn libdevice(&mut self, args: &Args) -> Eval<Value> {
        let rows = libdevice::overloads(&args.builtin.name);
        let overloads: Vec<Overload<'_>> = rows
            .iter()
            .map(|f| Overload {
                params: f.params.iter().map(|&p| scalar(p)).collect(),
                symbol: f.symbol,
                result: scalar(f.result),
            })
            .collect();
        let names: Vec<_> = args.builtin.params.iter().map(|(name, _)| name.clone()).collect();
        let mut operands = Vec::with_capacity(names.len());
        for name in &names {
            operands.push(self.tensor_arg(args, name)?);
        }
        let values: Vec<Value> = names.iter().map(|name| args.get(name).clone()).collect();
        if let Some(overload) = exact(&overloads, &operands) {
            return self.library_call(&overload, &operands, "libdevice", "", true);
        }
        let constant = |value: &Value| match value {
            Value::Const(c) => Some(c.clone()),
            _ => None,
        };
        let adapted = overloads.iter().find(|o| {
            o.params.iter().zip(&values).zip(&operands).all(|((&param, value), operand)| {
                match constant(value) {
                    Some(c) => fits(&c, param),
                    None => operand.number() == Some(param),
                }
            })
        });
        if let Some(overload) = adapted {
            for ((operand, value), &param) in operands.iter_mut().zip(&values).zip(&overload.params) {
                if let Some(c) = constant(value) {
                    self.erase_unused(operand.value);
                    *operand = self.scalar_constant(&c, &param.into())?;
                }
            }
            return self.library_call(overload, &operands, "libdevice", "", true);
        }
        if let [first, rest @ ..] = &values[..]
            && !rest.is_empty()
            && operands.iter().all(|t| t.number().is_some())
        {
            let mut common = first.clone();
            for other in rest {
                common = Value::Tensor(self.promote(&common, other, Allow::default())?.0);
            }
            let mut wide = Vec::with_capacity(values.len());
            for value in &values {
                wide.push(self.promote(value, &common, Allow::default())?.0);
            }
            if let Some(overload) = exact(&overloads, &wide) {
                return self.library_call(&overload, &wide, "libdevice", "", true);
            }
        }
        let mut error =
            self.no_overload(&format!("tl.extra.libdevice.{}", args.builtin.name), &overloads, &operands);
        if operands.iter().all(|t| t.number().is_some()) {
            error = error.note("convert the arguments with .to(dtype)");
        }
        Err(error.into())
    }

    /// `tl.core.extern_elementwise`: a function of a library that the user names.
    pub(super) fn extern_elementwise(&mut self, args: &Args) -> Eval<Value> {
        let (library, path) = (self.str_arg(args, "lib_name")?, self.str_arg(args, "lib_path")?);
        let path = if path.is_empty() { self.library_of_launch(&library)? } else { path };
        let pure = self.bool_arg(args, "is_pure")?;
        let Value::Tuple(given) = args.get("args") else {
            return Err(self.bad_argument(args, "args", args.get("args"), "a list of tensors"));
        };
        let mut operands = Vec::with_capacity(given.items.len());
        for value in &given.items {
            operands.push(self.tensor_of(value)?);
        }
        let symbols = args.get("arg_type_symbol_dict");
        let Value::Dict(entries) = symbols else {
            let wanted = "a dictionary {(dtype, …): (symbol, dtype of the result)}, written in the call";
            return Err(self.bad_argument(args, "arg_type_symbol_dict", symbols, wanted));
        };
        let mut overloads = Vec::with_capacity(entries.len());
        for entry in entries.iter() {
            let Some(overload) = read_overload(entry) else {
                let message =
                    "an entry of `arg_type_symbol_dict` must be (dtype, …): (symbol, dtype of the result)";
                return Err(self.error(message));
            };
            overloads.push(overload);
        }
        match exact(&overloads, &operands) {
            Some(overload) => self.library_call(&overload, &operands, &library, &path, pure),
            None => Err(self.no_overload("the external function", &overloads, &operands).into()),
        }
    }

    /// The path of a library of the option `extern_libs`; an empty one for what comes with the compiler, and where the launch names
    /// none.
    fn library_of_launch(&self, library: &str) -> Eval<String> {
        if library == "libdevice" || self.options.extern_libs.is_none() {
            return Ok(String::new());
        }
        match self.options.library(library) {
            Some(path) => Ok(path.to_string()),
            None if library.is_empty() => Ok(String::new()),
            None => {
                let names: Vec<&str> = self.options.libraries().map(|(name, _)| name).collect();
                let message = format!("the option extern_libs names no library `{library}`");
                Err(self.error(message).note(format!("it names {}", names.join(", "))).into())
            }
        }
    }

    /// What the machine is asked.
    pub(super) fn query(&mut self, query: Query) -> Value {
        let overload = Overload { params: vec![], symbol: query.name(), result: scalar(query.result()) };
        self.library_value(&overload, &[], &Shape::new(), MACHINE, "", query.is_pure())
    }

    fn no_overload(
        &self,
        what: &str,
        overloads: &[Overload<'_>],
        operands: &[Tensor],
    ) -> tilewright_ir::Diagnostic {
        let listed = |types: Vec<String>| match types.len() {
            1 => types.join(""),
            _ => format!("({})", types.join(", ")),
        };
        let taken: Vec<String> =
            overloads.iter().map(|o| listed(o.params.iter().map(Scalar::to_string).collect())).collect();
        let given = listed(operands.iter().map(|t| t.dtype.to_string()).collect());
        *self.error(format!("{what} takes {}, not {given}", taken.join(" or ")))
    }

    /// The call, for each element of the operands, which are broadcast.
    fn library_call(
        &mut self,
        overload: &Overload<'_>,
        operands: &[Tensor],
        library: &str,
        path: &str,
        pure: bool,
    ) -> Eval<Value> {
        let mut whole: Option<Tensor> = None;
        for block in operands.iter().filter(|t| t.is_block()) {
            whole = Some(match whole {
                Some(whole) if whole.shape != block.shape => self.broadcast(&whole, block)?.0,
                Some(whole) => whole,
                None => block.clone(),
            });
        }
        let mut values = Vec::with_capacity(operands.len());
        for operand in operands {
            values.push(match &whole {
                Some(whole) if whole.shape != operand.shape => self.broadcast(operand, whole)?.0.value,
                _ => operand.value,
            });
        }
        let shape = whole.map(|t| t.shape).unwrap_or_default();
        Ok(self.library_value(overload, &values, &shape, library, path, pure))
    }

    fn library_value(
        &mut self,
        overload: &Overload<'_>,
        operands: &[ir::Value],
        shape: &Shape,
        library: &str,
        path: &str,
        pure: bool,
    ) -> Value {
        let dtype: DType = overload.result.into();
        let ty = self.ir_type(&dtype, shape);
        let symbol = overload.symbol.to_string();
        let mut b = builder!(self);
        let op =
            tt::ExternElementwise::build(&mut b, operands, library.into(), path.into(), symbol, pure, ty);
        Value::Tensor(Tensor { value: op.result(&self.module), dtype, shape: shape.clone() })
    }
}

/// The overload of exactly the operands' types.
fn exact<'a>(overloads: &[Overload<'a>], operands: &[Tensor]) -> Option<Overload<'a>> {
    let types: Option<Vec<Scalar>> = operands.iter().map(Tensor::number).collect();
    let types = types?;
    let found = overloads.iter().find(|o| o.params == types)?;
    Some(Overload { params: types, symbol: found.symbol, result: found.result })
}

/// `(dtype, …): (symbol, dtype)`.
fn read_overload((types, target): &(Value, Value)) -> Option<Overload<'_>> {
    let dtype = |value: &Value| match value {
        Value::Const(HostValue::DType(dtype)) => dtype.as_scalar(),
        _ => None,
    };
    let (Value::Tuple(types), Value::Tuple(target)) = (types, target) else { return None };
    let [Value::Const(HostValue::Str(symbol)), result] = &target.items[..] else { return None };
    Some(Overload {
        params: types.items.iter().map(dtype).collect::<Option<_>>()?,
        symbol,
        result: dtype(result)?,
    })
}
