//! What kernels may ask of a dtype: its attributes and methods.

use std::sync::Arc;

use super::call::CallArgs;
use super::expr::library_attribute;
use super::{Eval, Evaluator};
use crate::dtype::{DType, Scalar};
use crate::host::HostValue;
use crate::value::{Method, MethodTarget, Value};

const ATTRIBUTES: &[&str] = &["name", "primitive_bitwidth", "itemsize", "scalar", "element_ty", "shape"];

/// Methods of every dtype, besides those that ask for one type (`is_fp16`).
const METHODS: &[&str] = &[
    "is_fp8",
    "is_floating",
    "is_standard_floating",
    "is_int",
    "is_int_signed",
    "is_int_unsigned",
    "is_bool",
    "is_ptr",
    "is_block",
    "is_const",
    "is_tuple",
    "is_dtype",
    "kind",
    "get_int_max_value",
    "get_int_min_value",
    "codegen_name",
];

/// Attributes and methods that a dtype may have.
pub(super) fn names() -> impl Iterator<Item = String> {
    let fixed = ATTRIBUTES.iter().chain(METHODS).map(|name| name.to_string());
    fixed.chain(Scalar::ALL.into_iter().map(|s| format!("is_{s}")))
}

/// The type that a method asks for: `is_fp16`.
fn asked_for(method: &str) -> Option<Scalar> {
    let name = method.strip_prefix("is_")?;
    Scalar::ALL.into_iter().find(|s| s.name() == name)
}

/// The scalar type that a dtype is, none for pointers and blocks.
fn number(dtype: &DType) -> Option<Scalar> {
    match dtype {
        DType::Scalar(s) => Some(*s),
        _ => None,
    }
}

/// An attribute of a dtype, of which `value` is the value.
pub(super) fn attribute(dtype: &DType, attr: &str, value: &Value) -> Option<Value> {
    let scalar = number(dtype);
    let block = matches!(dtype, DType::Block(_));
    Some(match attr {
        // Of a constant dtype, as of every `tl.constexpr`.
        "value" => value.clone(),
        "name" => Value::Const(HostValue::str(&dtype.to_string())),
        "primitive_bitwidth" => Value::int(dtype.bits()),
        "itemsize" => Value::int(dtype.bits() / 8),
        "int_bitwidth" => Value::int(scalar.filter(|s| s.is_int())?.bits()),
        "int_signedness" => Value::int(!scalar.filter(|s| s.is_int())?.is_signed()),
        "fp_mantissa_width" => Value::int(scalar.filter(|s| s.is_float())?.mantissa_bits()),
        "exponent_bias" => Value::int(scalar.filter(|s| s.is_float())?.exponent_bias()),
        "scalar" => Value::Const(HostValue::DType(dtype.scalar().clone())),
        "element_ty" => match dtype {
            DType::Pointer(p) => Value::Const(HostValue::DType(p.element.clone())),
            DType::Block(b) => Value::Const(HostValue::DType(b.0.clone())),
            DType::Scalar(_) => return None,
        },
        "address_space" => Value::int(dtype.as_pointer()?.address_space),
        "shape" if block => Value::tuple(dtype.shape().iter().map(|&n| Value::int(n)).collect()),
        "numel" if block => Value::int(dtype.shape().iter().product::<i64>()),
        "SIGNEDNESS" | "KIND" | "SINT_TYPES" | "UINT_TYPES" | "FP_TYPES" | "STANDARD_FP_TYPES"
        | "OTHER_TYPES" => library_attribute("language.core.dtype", attr)?,
        _ if METHODS.contains(&attr)
            || asked_for(attr).is_some()
            || attr == "with_element_ty" && block
            || attr == "get_block_shapes" =>
        {
            let target = MethodTarget::DType(attr.into());
            Value::Method(Arc::new(Method { receiver: value.clone(), target }))
        }
        _ => return None,
    })
}

impl Evaluator<'_> {
    /// A call of a dtype's method.
    pub(super) fn call_dtype_method(&mut self, receiver: &Value, name: &str, args: &CallArgs) -> Eval<Value> {
        let Value::Const(HostValue::DType(dtype)) = receiver else {
            return Err(self.error(format!("{receiver} has no method `{name}`")));
        };
        match (name, number(dtype)) {
            ("with_element_ty", _) => match args.positional.first() {
                Some(Value::Const(HostValue::DType(element))) => {
                    Ok(Value::Const(HostValue::DType(dtype.with_element(element.scalar().clone()))))
                }
                _ => Err(self.error("with_element_ty takes a dtype")),
            },
            ("get_block_shapes", _) => {
                Ok(Value::tuple(dtype.shape().iter().map(|&n| Value::int(n)).collect()))
            }
            ("is_dtype", _) => match args.positional.first() {
                Some(Value::Const(HostValue::Str(text))) => {
                    Ok(Value::bool(Scalar::ALL.iter().any(|s| s.name() == &**text)))
                }
                _ => Err(self.error("is_dtype takes the name of a dtype")),
            },
            ("codegen_name", _) => {
                let text = dtype.to_string();
                let long = match text.split_at_checked(2) {
                    Some(("fp", rest)) => format!("float{rest}"),
                    Some(("bf", rest)) => format!("bfloat{rest}"),
                    _ => text,
                };
                Ok(Value::Const(HostValue::str(&long)))
            }
            // The members of `dtype.KIND`, in the order in which kinds are promoted.
            ("kind", Some(s)) if s != Scalar::Void => Ok(Value::int(s.kind() as i64)),
            ("get_int_min_value", Some(s)) if s.is_int() => Ok(Value::int(s.int_range().0)),
            ("get_int_max_value", Some(s)) if s.is_int() => Ok(Value::int(s.int_range().1)),
            ("kind" | "get_int_min_value" | "get_int_max_value", _) => {
                let wanted = if name == "kind" { "numbers" } else { "integers" };
                Err(self.error(format!("{dtype} has no `{name}`: {wanted} have one")))
            }
            _ => self.dtype_is(dtype, name),
        }
    }

    /// What a dtype answers with yes or no.
    fn dtype_is(&self, dtype: &DType, question: &str) -> Eval<Value> {
        let is = |f: fn(Scalar) -> bool| number(dtype).is_some_and(f);
        Ok(Value::bool(match question {
            "is_fp8" => is(Scalar::is_fp8),
            "is_floating" => is(Scalar::is_float),
            "is_standard_floating" => is(Scalar::is_standard_float),
            "is_int" => is(Scalar::is_int),
            "is_int_signed" => is(Scalar::is_signed),
            "is_int_unsigned" => is(Scalar::is_unsigned),
            "is_bool" => is(|s| s == Scalar::Int1),
            "is_ptr" => matches!(dtype, DType::Pointer(_)),
            "is_block" => matches!(dtype, DType::Block(_)),
            "is_const" => dtype.as_pointer().is_some_and(|p| p.constant),
            "is_tuple" => false,
            other => match asked_for(other) {
                Some(s) => number(dtype) == Some(s),
                None => return Err(self.error(format!("a dtype has no method `{other}`"))),
            },
        }))
    }
}
