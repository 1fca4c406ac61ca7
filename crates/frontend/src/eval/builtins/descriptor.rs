//! Tensor descriptors: making them, and moving blocks through them.
//!
//! A descriptor is one SSA value (`!tt.tensordesc`) with the extents and strides beside it, for programs that ask for
//! `desc.shape`. How it is made into memory accesses (TMA, or pointers and masks) is a matter of later passes.

use std::sync::Arc;

use ruff_python_ast::name::Name;
use tilewright_ir::TypeKind;
use tilewright_ir::dialect::tt::{self, DescriptorReduceKind as Reduce};

use super::super::call::{Args, CallArgs};
use super::super::{Eval, Evaluator, builder};
use crate::dtype::{DType, PointerType, Scalar};
use crate::host::HostValue;
use crate::value::{Shape, Tensor, TensorDescriptor, Value};

/// What can be called on a descriptor, with the names of the parameters.
const METHODS: &[(&str, &[&str])] = &[
    ("load", &["offsets"]),
    ("store", &["offsets", "value"]),
    ("atomic_add", &["offsets", "value"]),
    ("atomic_min", &["offsets", "value"]),
    ("atomic_max", &["offsets", "value"]),
    ("atomic_and", &["offsets", "value"]),
    ("atomic_or", &["offsets", "value"]),
    ("atomic_xor", &["offsets", "value"]),
    ("gather", &["x_offsets", "y_offset"]),
    ("scatter", &["value", "x_offsets", "y_offset"]),
];

/// The names of [`METHODS`].
pub(crate) fn methods() -> impl Iterator<Item = &'static str> {
    METHODS.iter().map(|(name, _)| *name)
}

impl Evaluator<'_> {
    /// A method of a descriptor as a function whose first argument is the descriptor.
    pub(super) fn descriptor_function(&mut self, args: &Args, method: &str, given: &[&str]) -> Eval<Value> {
        let positional = given.iter().map(|name| args.get(name).clone()).collect();
        let descriptor = args.get("desc").clone();
        self.call_descriptor_method(&descriptor, method, CallArgs { positional, keywords: vec![] })
    }

    pub(super) fn make_descriptor(&mut self, args: &Args) -> Eval<Value> {
        let base = self.base_pointer(args)?;
        let (element, constant) = match base.dtype.as_pointer() {
            Some(p) => (p.element.clone(), p.constant),
            None => return Err(self.bad_argument(args, "base", args.get("base"), "a pointer")),
        };
        let block = self.shape_of(args.get("block_shape"))?;
        let rank = block.len();
        let count = |value: &Value| match value {
            Value::Tuple(t) => t.items.len(),
            _ => 1,
        };
        let (extents, strides) = (count(args.get("shape")), count(args.get("strides")));
        if !(1..=5).contains(&rank) || extents != rank || strides != rank {
            return Err(self.error(format!(
                "a tensor descriptor has 1 to 5 dimensions and as many extents, strides and block extents; given are \
                 {extents}, {strides} and {rank}",
            )));
        }
        self.check_descriptor_block(&element, &block)?;
        let last = match args.get("strides") {
            Value::Tuple(t) => t.items.last().and_then(Value::to_host),
            other => other.to_host(),
        };
        if last != Some(HostValue::Int(1)) {
            return Err(self
                .error("the last stride of a tensor descriptor must be the constant 1")
                .note("make a contiguous copy, or use a tensor of pointers")
                .into());
        }
        let nan = self.choice(args, "padding_option", &[("", false), ("zero", false), ("nan", true)])?;
        if nan && !element.as_scalar().is_some_and(Scalar::is_float) {
            return Err(
                self.error(format!("the padding \"nan\" needs floats, but the base points to {element}"))
            );
        }
        // Extents of 64 bits are cut: a descriptor's are 32 bits wide.
        let shape = self.scalars(args, "shape", Scalar::Int64)?;
        let shape =
            shape.iter().map(|t| self.cast(t, &Scalar::Int32.into())).collect::<Eval<Vec<Tensor>>>()?;
        let strides = self.scalars(args, "strides", Scalar::Int64)?;
        let ty = self.descriptor_type(&element, &block);
        let extents: Vec<_> = shape.iter().map(|t| t.value).collect();
        let steps: Vec<_> = strides.iter().map(|t| t.value).collect();
        let value = tt::MakeTensorDescriptor::build(
            &mut builder!(self),
            base.value,
            &extents,
            &steps,
            nan.then_some(2),
            ty,
        )
        .result(&self.module);
        Ok(Value::Descriptor(Arc::new(TensorDescriptor {
            handle: descriptor_handle(value, element, &block, constant),
            shape,
            strides,
        })))
    }

    /// What Triton asks of a descriptor's block.
    pub(crate) fn check_descriptor_block(&self, element: &DType, block: &[u32]) -> Eval<()> {
        let Some(scalar) = element.as_scalar().filter(|s| !matches!(s, Scalar::Int1 | Scalar::Void)) else {
            return Err(self.error(format!("a tensor descriptor of {element} is not supported")));
        };
        let (inner, bytes) = (block.last().copied().unwrap_or(1), scalar.bits() / 8);
        if inner * bytes < 16 {
            return Err(self
                .error(format!(
                    "the last dimension of a tensor descriptor's block must have at least 16 bytes, but {inner} of \
                     {scalar} are {}",
                    inner * bytes
                ))
                .note(format!("make the last block extent at least {}", 16 / bytes))
                .into());
        }
        Ok(())
    }

    pub(crate) fn descriptor_type(&mut self, element: &DType, block: &[u32]) -> tilewright_ir::Type {
        let block = self.ir_type(element, block);
        self.module.ty(TypeKind::TensorDesc { block })
    }

    /// `desc.load(offsets)`, `desc.store(offsets, value)` and the others.
    pub(crate) fn call_descriptor_method(
        &mut self,
        receiver: &Value,
        name: &str,
        args: CallArgs,
    ) -> Eval<Value> {
        let Value::Descriptor(descriptor) = receiver else {
            return Err(self.error(format!("a tensor descriptor is needed, not {receiver}")));
        };
        let descriptor = descriptor.clone();
        let given = self.descriptor_arguments(name, args)?;
        match name {
            "gather" => self.descriptor_gather(&descriptor, &given[0], &given[1]),
            "scatter" => self.descriptor_scatter(&descriptor, &given[0], &given[1], &given[2]),
            _ => self.descriptor_block_access(&descriptor, name, &given),
        }
    }

    /// The arguments of a method in the order of its parameters.
    fn descriptor_arguments(&self, name: &str, args: CallArgs) -> Eval<Vec<Value>> {
        let params = METHODS.iter().find(|(method, _)| *method == name).map_or(&[][..], |(_, params)| params);
        let wrong = |message: String| {
            self.error(message).note(format!("the signature is desc.{name}({})", params.join(", ")))
        };
        if args.positional.len() > params.len() {
            return Err(wrong(format!("desc.{name} is given {} arguments", args.positional.len())).into());
        }
        let mut given: Vec<Option<Value>> = args.positional.into_iter().map(Some).collect();
        given.resize(params.len(), None);
        for (keyword, value) in args.keywords {
            let keyword: &Name = &keyword;
            match params.iter().position(|p| *p == keyword.as_str()) {
                Some(at) if given[at].is_none() => given[at] = Some(value),
                Some(_) => return Err(wrong(format!("desc.{name} is given `{keyword}` twice")).into()),
                None => return Err(wrong(format!("desc.{name} has no parameter `{keyword}`")).into()),
            }
        }
        let mut out = Vec::with_capacity(params.len());
        for (value, param) in given.into_iter().zip(params) {
            match value {
                Some(value) => out.push(value),
                None => return Err(wrong(format!("desc.{name} needs `{param}`")).into()),
            }
        }
        Ok(out)
    }

    fn descriptor_block_access(
        &mut self,
        descriptor: &TensorDescriptor,
        name: &str,
        given: &[Value],
    ) -> Eval<Value> {
        let (block, element) = (descriptor.block(), descriptor.element());
        let indices = self.block_offsets(descriptor, &given[0])?;
        let desc = descriptor.handle.value;
        if name == "load" {
            let ty = self.ir_type(&element, &block);
            let value = tt::DescriptorLoad::build(
                &mut builder!(self),
                desc,
                &indices,
                tt::CacheModifier::None,
                tt::EvictionPolicy::Normal,
                ty,
            )
            .result(&self.module);
            return Ok(Value::Tensor(Tensor { value, dtype: element, shape: block }));
        }
        self.writable(&descriptor.handle, name)?;
        let value = self.stored_value(&given[1], &element, &block, descriptor)?;
        if name == "store" {
            tt::DescriptorStore::build(&mut builder!(self), desc, value.value, &indices);
        } else {
            let kind = self.reduce_kind(name, &element)?;
            tt::DescriptorReduce::build(&mut builder!(self), desc, value.value, &indices, kind);
        }
        Ok(Value::NONE)
    }

    /// Where a block of a descriptor begins.
    pub(super) fn block_offsets(
        &mut self,
        descriptor: &TensorDescriptor,
        given: &Value,
    ) -> Eval<Vec<tilewright_ir::Value>> {
        let offsets = self.scalar_list(given, "the offsets of a tensor descriptor", Scalar::Int32)?;
        let rank = descriptor.block().len();
        if offsets.len() != rank {
            return Err(self.error(format!(
                "a tensor descriptor of {rank} dimensions is given {} offsets",
                offsets.len()
            )));
        }
        Ok(offsets.iter().map(|t| t.value).collect())
    }

    /// A value that is stored, of the shape that goes there and converted to the descriptor's elements.
    fn stored_value(
        &mut self,
        value: &Value,
        element: &DType,
        shape: &[u32],
        descriptor: &TensorDescriptor,
    ) -> Eval<Tensor> {
        let value = self.tensor_of(value)?;
        if value.is_block() && *value.shape != *shape {
            return Err(self.error(format!(
                "a value of type {} is stored through a tensor_descriptor<{}>",
                value.ty(),
                descriptor.block_type()
            )));
        }
        let value = self.broadcast_to(&value, shape)?;
        self.cast(&value, element)
    }

    fn reduce_kind(&self, name: &str, element: &DType) -> Eval<Reduce> {
        use Scalar as S;
        let scalar = element.as_scalar().unwrap_or(S::Void);
        let wide = scalar.is_int() && scalar.bits() >= 32;
        let half = matches!(scalar, S::Fp16 | S::Bf16);
        let kind = match name {
            "atomic_add" if wide || half || scalar == S::Fp32 => Reduce::Add,
            "atomic_min" if half || wide && scalar.is_signed() => Reduce::Min,
            "atomic_max" if half || wide && scalar.is_signed() => Reduce::Max,
            "atomic_min" if wide => Reduce::Umin,
            "atomic_max" if wide => Reduce::Umax,
            "atomic_and" if wide => Reduce::And,
            "atomic_or" if wide => Reduce::Or,
            "atomic_xor" if wide => Reduce::Xor,
            _ => return Err(self.error(format!("`{name}` of a tensor descriptor does not support {scalar}"))),
        };
        Ok(kind)
    }

    /// The rows and the first column of a gather or scatter, which Triton allows for blocks of one row alone.
    fn rows(
        &mut self,
        descriptor: &TensorDescriptor,
        name: &str,
        x_offsets: &Value,
        y_offset: &Value,
    ) -> Eval<(Tensor, Tensor, Shape)> {
        let block = descriptor.block();
        let &[1, columns] = &block[..] else {
            return Err(self
                .error(format!(
                    "`{name}` needs a tensor descriptor whose block is one row, not {}",
                    descriptor.block_type()
                ))
                .note("make it with block_shape [1, columns]")
                .into());
        };
        let rows = self.tensor_of(x_offsets)?;
        let &[count] = &rows.shape[..] else {
            return Err(self.error(format!("`{name}` needs a vector of row numbers, not {}", rows.ty())));
        };
        if !rows.number().is_some_and(|s| s.is_int() && s.bits() <= 32) {
            return Err(self.error(format!("`{name}` needs row numbers in int32, not {}", rows.ty())));
        }
        let bits = descriptor.element().bits();
        let least = 256 / bits.max(1);
        if count < 8 || columns < least {
            return Err(self.error(format!(
                "`{name}` moves at least 8 rows of {least} elements of {bits} bits, but these are {count} rows of {columns}",
            )));
        }
        let rows = self.cast(&rows, &Scalar::Int32.into())?;
        let column = self.scalar_list(y_offset, "the column of a tensor descriptor", Scalar::Int32)?;
        let [column] = &column[..] else {
            return Err(self.error(format!("`{name}` needs one column")));
        };
        Ok((rows, column.clone(), Shape::from_slice(&[count, columns])))
    }

    fn descriptor_gather(
        &mut self,
        d: &TensorDescriptor,
        x_offsets: &Value,
        y_offset: &Value,
    ) -> Eval<Value> {
        let (rows, column, shape) = self.rows(d, "gather", x_offsets, y_offset)?;
        let element = d.element();
        let ty = self.ir_type(&element, &shape);
        let value =
            tt::DescriptorGather::build(&mut builder!(self), d.handle.value, rows.value, column.value, ty)
                .result(&self.module);
        Ok(Value::Tensor(Tensor { value, dtype: element, shape }))
    }

    fn descriptor_scatter(
        &mut self,
        d: &TensorDescriptor,
        value: &Value,
        x_offsets: &Value,
        y_offset: &Value,
    ) -> Eval<Value> {
        self.writable(&d.handle, "scatter")?;
        let (rows, column, shape) = self.rows(d, "scatter", x_offsets, y_offset)?;
        let value = self.stored_value(value, &d.element(), &shape, d)?;
        tt::DescriptorScatter::build(
            &mut builder!(self),
            d.handle.value,
            rows.value,
            column.value,
            value.value,
        );
        Ok(Value::NONE)
    }
}

/// The SSA value of a descriptor as the front end knows it: a pointer to the block.
pub(crate) fn descriptor_handle(
    value: tilewright_ir::Value,
    element: DType,
    block: &[u32],
    constant: bool,
) -> Tensor {
    let block = DType::block(element, block.iter().map(|&n| i64::from(n)).collect());
    Tensor::scalar(value, DType::Pointer(PointerType { element: block, address_space: 1, constant }.into()))
}
