//! What an expression of a kernel evaluates to.

use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::aggregate::AggregateClass;
use crate::dtype::{DType, Scalar};
use crate::host::{HostValue, JitFunction, NamedTuple};
use crate::pipe::PipePart;

/// The shape of a tensor; empty for a scalar.
pub type Shape = SmallVec<[u32; 4]>;

/// A value at run time: an SSA value with the language's type.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    /// The SSA value.
    pub value: tilewright_ir::Value,
    /// Type of an element.
    pub dtype: DType,
    /// Shape; empty for a scalar.
    pub shape: Shape,
}

impl Tensor {
    /// A scalar.
    pub fn scalar(value: tilewright_ir::Value, dtype: impl Into<DType>) -> Tensor {
        Tensor { value, dtype: dtype.into(), shape: Shape::new() }
    }

    /// Whether it has a shape.
    pub fn is_block(&self) -> bool {
        !self.shape.is_empty()
    }

    /// The number type of its elements, none for pointers.
    pub fn number(&self) -> Option<Scalar> {
        self.dtype.as_scalar()
    }

    /// Its type, as `x.type` gives it.
    pub fn ty(&self) -> DType {
        DType::block(self.dtype.clone(), self.shape.iter().map(|&n| i64::from(n)).collect())
    }

    /// Whether both have one type.
    pub fn same_type(&self, other: &Tensor) -> bool {
        self.dtype == other.dtype && self.shape == other.shape
    }

    /// The number of elements.
    pub fn numel(&self) -> u64 {
        self.shape.iter().map(|&n| u64::from(n)).product()
    }
}

/// The class of a named tuple and the names of its fields.
pub type NamedClass = (Arc<str>, Arc<[Arc<str>]>);

/// A tuple, perhaps with named fields.
#[derive(Debug, Clone)]
pub struct TupleValue {
    /// The class and field names of a named tuple.
    pub class: Option<NamedClass>,
    /// The elements.
    pub items: Vec<Value>,
}

/// What `range`, `tl.range` and `tl.static_range` give.
#[derive(Debug, Clone)]
pub struct RangeValue {
    /// First value.
    pub start: Value,
    /// Bound, exclusive.
    pub end: Value,
    /// Step.
    pub step: Value,
    /// Unroll at compile time.
    pub unrolled: bool,
    /// `num_stages`.
    pub num_stages: Option<i32>,
    /// `loop_unroll_factor`.
    pub unroll_factor: Option<i32>,
    /// Names of the loop attributes that are set by presence.
    pub flags: Vec<&'static str>,
}

/// A block of a tensor in memory: what `tl.make_block_ptr` gives.
///
/// It is taken apart here: a load or store builds the pointers and the mask from these parts, and a loop carries only
/// those parts that it changes.
#[derive(Debug, Clone)]
pub struct BlockPointer {
    /// Pointer to the first element of the tensor.
    pub base: Tensor,
    /// Extents of the tensor, int64.
    pub shape: Vec<Tensor>,
    /// Strides of the tensor in elements, int64.
    pub strides: Vec<Tensor>,
    /// Where the block begins, int32.
    pub offsets: Vec<Tensor>,
    /// Extents of the block.
    pub block: Shape,
}

impl BlockPointer {
    fn parts(&self) -> impl Iterator<Item = &Tensor> {
        std::iter::once(&self.base).chain(&self.shape).chain(&self.strides).chain(&self.offsets)
    }

    fn map(&self, f: &mut impl FnMut(&Tensor) -> Tensor) -> BlockPointer {
        BlockPointer {
            base: f(&self.base),
            shape: self.shape.iter().map(&mut *f).collect(),
            strides: self.strides.iter().map(&mut *f).collect(),
            offsets: self.offsets.iter().map(&mut *f).collect(),
            block: self.block.clone(),
        }
    }

    /// The type of the elements in memory.
    pub fn element(&self) -> DType {
        self.base.dtype.as_pointer().map_or(DType::Scalar(Scalar::Void), |p| p.element.clone())
    }

    /// The type of the block.
    pub fn block_type(&self) -> DType {
        DType::block(self.element(), self.block.iter().map(|&n| i64::from(n)).collect())
    }
}

/// A tensor in memory with the block in which it is accessed: what `tl.make_tensor_descriptor` gives, and what a
/// `TensorDescriptor` of the host is in a kernel.
#[derive(Debug, Clone)]
pub struct TensorDescriptor {
    /// The SSA value, of type `!tt.tensordesc`. The dtype is a pointer to the block.
    pub handle: Tensor,
    /// Extents of the tensor, int32.
    pub shape: Vec<Tensor>,
    /// Strides of the tensor in elements, int64.
    pub strides: Vec<Tensor>,
}

impl TensorDescriptor {
    fn parts(&self) -> impl Iterator<Item = &Tensor> {
        std::iter::once(&self.handle).chain(&self.shape).chain(&self.strides)
    }

    fn map(&self, f: &mut impl FnMut(&Tensor) -> Tensor) -> TensorDescriptor {
        TensorDescriptor {
            handle: f(&self.handle),
            shape: self.shape.iter().map(&mut *f).collect(),
            strides: self.strides.iter().map(&mut *f).collect(),
        }
    }

    /// The type of the block.
    pub fn block_type(&self) -> DType {
        self.handle.dtype.as_pointer().map_or(DType::Scalar(Scalar::Void), |p| p.element.clone())
    }

    /// The type of the elements.
    pub fn element(&self) -> DType {
        self.block_type().scalar().clone()
    }

    /// Extents of the block.
    pub fn block(&self) -> Shape {
        self.block_type().shape().iter().map(|&n| n as u32).collect()
    }
}

/// A buffer in shared memory, or a view of one.
#[derive(Debug, Clone)]
pub struct Buffer {
    /// The SSA value, of type `!ttg.memdesc`. The dtype is a pointer to the whole.
    pub handle: Tensor,
    /// Extents; none for a single element.
    pub shape: Shape,
    /// The rank of the program whose buffer it is, where it is another one's of the cluster.
    pub rank: Option<Tensor>,
    /// Where along each dimension of the handle's buffer it begins, if the program computes that; it is all of it where there are none.
    pub begin: Vec<Tensor>,
}

/// Barriers in shared memory, or one of them.
#[derive(Debug, Clone)]
pub struct Barriers {
    /// The SSA value, of type `!ttg.memdesc`.
    pub handle: Tensor,
    /// How many they are; none for one of them.
    pub count: Option<u32>,
    /// How many arrivals end a phase.
    pub arrive_count: i32,
    /// Whether the phase before the first counts as ended.
    pub ready: bool,
    /// How many bytes copies bring in each phase.
    pub expect_bytes: Option<i32>,
    /// The rank of the program whose barriers they are, where they are another one's of the cluster.
    pub rank: Option<Tensor>,
}

impl Barriers {
    /// Whether both can stand for each other in the types of a program.
    fn same_kind(&self, other: &Barriers) -> bool {
        let kind = |b: &Barriers| (b.count, b.arrive_count, b.ready, b.expect_bytes, b.rank.is_some());
        kind(self) == kind(other)
    }

    /// The SSA values that they are made of.
    fn leaves(&self) -> impl Iterator<Item = &Tensor> {
        std::iter::once(&self.handle).chain(&self.rank)
    }
}

impl Buffer {
    /// The SSA values that it is made of.
    fn leaves(&self) -> impl Iterator<Item = &Tensor> {
        std::iter::once(&self.handle).chain(&self.rank).chain(&self.begin)
    }

    fn same_type(&self, other: &Buffer) -> bool {
        self.rank.is_some() == other.rank.is_some()
            && self.handle.same_type(&other.handle)
            && (&self.shape, self.begin.len()) == (&other.shape, other.begin.len())
    }

    /// The type of the elements.
    pub fn element(&self) -> DType {
        self.handle.dtype.as_pointer().map_or(DType::Scalar(Scalar::Void), |p| p.element.scalar().clone())
    }
}

/// An instance of a class that is decorated with `@_aggregate`.
///
/// Who holds the same `Arc` holds the same object: a plain method that sets a field sets it for all of them.
#[derive(Debug)]
pub struct Aggregate {
    /// The class.
    pub class: Arc<AggregateClass>,
    /// The values of its fields, in order; none for those that `__init__` has not set yet.
    pub fields: Vec<Option<Value>>,
}

impl Aggregate {
    /// The values of the fields that are set.
    pub fn values(&self) -> impl Iterator<Item = &Value> {
        self.fields.iter().flatten()
    }

    /// The same compound of other values.
    #[must_use]
    pub fn map(&self, mut f: impl FnMut(&Value) -> Value) -> Aggregate {
        let fields = self.fields.iter().map(|field| field.as_ref().map(&mut f)).collect();
        Aggregate { class: self.class.clone(), fields }
    }

    /// Whether it is of the same class as another one, and `same` holds of each two fields.
    fn all(&self, other: &Aggregate, same: impl Fn(&Value, &Value) -> bool) -> bool {
        let both = |pair: (&Option<Value>, &Option<Value>)| match pair {
            (Some(a), Some(b)) => same(a, b),
            (a, b) => a.is_none() && b.is_none(),
        };
        self.class == other.class && self.fields.iter().zip(&other.fields).all(both)
    }
}

/// A function together with the value it is a method of.
#[derive(Debug, Clone)]
pub struct Method {
    /// The value.
    pub receiver: Value,
    /// What is called.
    pub target: MethodTarget,
}

/// What a [`Method`] calls.
#[derive(Debug, Clone)]
pub enum MethodTarget {
    /// A member function of the library, by name.
    Member(Arc<str>),
    /// A question asked of a dtype, by name.
    DType(Arc<str>),
    /// An access through a tensor descriptor, by name.
    Descriptor(Arc<str>),
    /// A function of a class of the library, by its path.
    OfClass(Arc<str>),
    /// A function of the class of an aggregate.
    Function(Arc<JitFunction>),
}

/// What an expression evaluates to.
#[derive(Debug, Clone)]
pub enum Value {
    /// A compile-time constant. Never a tuple.
    Const(HostValue),
    /// A value at run time.
    Tensor(Tensor),
    /// A tuple of values.
    Tuple(Arc<TupleValue>),
    /// A bound method.
    Method(Arc<Method>),
    /// The iterator of a `for`.
    Range(Arc<RangeValue>),
    /// A slice `a:b:c`.
    Slice(Arc<[Value; 3]>),
    /// A dictionary: an argument, or the fields of a pipe.
    Dict(Arc<[(Value, Value)]>),
    /// A block pointer.
    Block(Arc<BlockPointer>),
    /// A tensor descriptor.
    Descriptor(Arc<TensorDescriptor>),
    /// A buffer in shared memory.
    Buffer(Arc<Buffer>),
    /// Barriers in shared memory.
    Barriers(Arc<Barriers>),
    /// A pipe, an end of one, or a slot.
    Pipe(Arc<PipePart>),
    /// An instance of a class.
    Aggregate(Arc<Aggregate>),
}

impl Value {
    /// `None`.
    pub const NONE: Value = Value::Const(HostValue::None);

    /// A constant integer.
    pub fn int(value: impl Into<i128>) -> Value {
        Value::Const(HostValue::Int(value.into()))
    }

    /// A constant boolean.
    pub fn bool(value: bool) -> Value {
        Value::Const(HostValue::Bool(value))
    }

    /// A plain tuple.
    pub fn tuple(items: Vec<Value>) -> Value {
        Value::Tuple(Arc::new(TupleValue { class: None, items }))
    }

    /// A shape as a tuple of constants.
    pub fn shape(shape: &[u32]) -> Value {
        Value::tuple(shape.iter().map(|&n| Value::int(n)).collect())
    }

    /// The constant as a value: tuples become tuples of values.
    pub fn from_host(value: HostValue) -> Value {
        match value {
            HostValue::Tuple(items) => Value::tuple(items.iter().cloned().map(Value::from_host).collect()),
            HostValue::NamedTuple(t) => Value::Tuple(Arc::new(TupleValue {
                class: Some((t.class.clone(), t.fields.clone())),
                items: t.values.iter().cloned().map(Value::from_host).collect(),
            })),
            other => Value::Const(other),
        }
    }

    /// The constant that the value is, tuples of constants included.
    pub fn to_host(&self) -> Option<HostValue> {
        match self {
            Value::Const(c) => Some(c.clone()),
            Value::Tuple(t) => {
                let values = t.items.iter().map(Value::to_host).collect::<Option<Vec<_>>>()?;
                Some(match &t.class {
                    Some((class, fields)) => HostValue::NamedTuple(Arc::new(NamedTuple {
                        class: class.clone(),
                        fields: fields.clone(),
                        values,
                    })),
                    None => HostValue::tuple(values),
                })
            }
            _ => None,
        }
    }

    /// Whether it is the constant `None`.
    pub fn is_none(&self) -> bool {
        matches!(self, Value::Const(HostValue::None))
    }

    /// The tensor, if it is one.
    pub fn as_tensor(&self) -> Option<&Tensor> {
        match self {
            Value::Tensor(t) => Some(t),
            _ => None,
        }
    }

    /// The tensors in it, in order.
    pub fn leaves(&self) -> SmallVec<[&Tensor; 2]> {
        fn walk<'a>(value: &'a Value, out: &mut SmallVec<[&'a Tensor; 2]>) {
            match value {
                Value::Tensor(t) => out.push(t),
                Value::Tuple(t) => t.items.iter().for_each(|item| walk(item, out)),
                Value::Block(b) => out.extend(b.parts()),
                Value::Descriptor(d) => out.extend(d.parts()),
                Value::Buffer(b) => out.extend(b.leaves()),
                Value::Barriers(b) => out.extend(b.leaves()),
                Value::Pipe(p) => out.extend(p.parts()),
                Value::Dict(d) => d.iter().for_each(|(_, value)| walk(value, out)),
                Value::Aggregate(a) => a.values().for_each(|field| walk(field, out)),
                _ => {}
            }
        }
        let mut out = SmallVec::new();
        walk(self, &mut out);
        out
    }

    /// The same value with its tensors replaced in order by those of `next`.
    pub fn map_leaves(&self, f: &mut impl FnMut(&Tensor) -> Tensor) -> Value {
        match self {
            Value::Tensor(t) => Value::Tensor(f(t)),
            Value::Tuple(t) => Value::Tuple(Arc::new(TupleValue {
                class: t.class.clone(),
                items: t.items.iter().map(|item| item.map_leaves(f)).collect(),
            })),
            Value::Block(b) => Value::Block(Arc::new(b.map(f))),
            Value::Descriptor(d) => Value::Descriptor(Arc::new(d.map(f))),
            Value::Buffer(b) => {
                let handle = f(&b.handle);
                let rank = b.rank.as_ref().map(&mut *f);
                let begin = b.begin.iter().map(f).collect();
                Value::Buffer(Arc::new(Buffer { handle, shape: b.shape.clone(), rank, begin }))
            }
            Value::Barriers(b) => {
                let handle = f(&b.handle);
                let rank = b.rank.as_ref().map(&mut *f);
                Value::Barriers(Arc::new(Barriers { handle, rank, ..(**b).clone() }))
            }
            Value::Pipe(p) => Value::Pipe(Arc::new(p.map(f))),
            Value::Dict(d) => {
                Value::Dict(d.iter().map(|(key, value)| (key.clone(), value.map_leaves(f))).collect())
            }
            Value::Aggregate(a) => Value::Aggregate(Arc::new(a.map(|field| field.map_leaves(f)))),
            other => other.clone(),
        }
    }

    /// Whether both have the same structure, the same constants and tensors of the same types.
    pub fn same_type(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Tensor(a), Value::Tensor(b)) => a.same_type(b),
            (Value::Tuple(a), Value::Tuple(b)) => {
                a.class == b.class
                    && a.items.len() == b.items.len()
                    && a.items.iter().zip(&b.items).all(|(x, y)| x.same_type(y))
            }
            (Value::Const(a), Value::Const(b)) => a == b,
            (Value::Block(a), Value::Block(b)) => {
                a.block == b.block
                    && a.parts().count() == b.parts().count()
                    && a.parts().zip(b.parts()).all(|(x, y)| x.same_type(y))
            }
            (Value::Descriptor(a), Value::Descriptor(b)) => a.handle.same_type(&b.handle),
            (Value::Buffer(a), Value::Buffer(b)) => a.same_type(b),
            (Value::Barriers(a), Value::Barriers(b)) => a.same_kind(b),
            (Value::Pipe(a), Value::Pipe(b)) => a.all(b, Tensor::same_type),
            (Value::Dict(a), Value::Dict(b)) => same_entries(a, b, Value::same_type),
            (Value::Aggregate(a), Value::Aggregate(b)) => a.all(b, Value::same_type),
            _ => false,
        }
    }

    /// Whether both are the very same values.
    pub fn identical(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Tensor(a), Value::Tensor(b)) => a.value == b.value && a.same_type(b),
            (Value::Tuple(a), Value::Tuple(b)) => {
                Arc::ptr_eq(a, b)
                    || (a.items.len() == b.items.len()
                        && a.items.iter().zip(&b.items).all(|(x, y)| x.identical(y)))
            }
            (Value::Const(a), Value::Const(b)) => a == b,
            (Value::Block(a), Value::Block(b)) => {
                self.same_type(other) && a.parts().zip(b.parts()).all(|(x, y)| x.value == y.value)
            }
            (Value::Descriptor(a), Value::Descriptor(b)) => {
                self.same_type(other) && a.parts().zip(b.parts()).all(|(x, y)| x.value == y.value)
            }
            (Value::Buffer(a), Value::Buffer(b)) => {
                a.same_type(b) && a.leaves().zip(b.leaves()).all(|(x, y)| x.value == y.value)
            }
            (Value::Barriers(a), Value::Barriers(b)) => {
                a.same_kind(b) && a.leaves().zip(b.leaves()).all(|(x, y)| x.value == y.value)
            }
            (Value::Pipe(a), Value::Pipe(b)) => a.all(b, |x, y| x.value == y.value && x.same_type(y)),
            (Value::Dict(a), Value::Dict(b)) => same_entries(a, b, Value::identical),
            (Value::Aggregate(a), Value::Aggregate(b)) => Arc::ptr_eq(a, b) || a.all(b, Value::identical),
            (Value::Range(a), Value::Range(b)) => Arc::ptr_eq(a, b),
            (Value::Method(a), Value::Method(b)) => Arc::ptr_eq(a, b),
            (Value::Slice(a), Value::Slice(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }

    /// The type, for messages.
    pub fn describe(&self) -> String {
        self.to_string()
    }
}

/// Whether two dictionaries have the same keys in the same order, and `same` holds of their values.
fn same_entries(a: &[(Value, Value)], b: &[(Value, Value)], same: fn(&Value, &Value) -> bool) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(x, y)| x.0.identical(&y.0) && same(&x.1, &y.1))
}

/// What the value is, for messages: `<[128], fp32>`, `constexpr 4`, `(int32, int32)`.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Const(HostValue::None) => f.write_str("None"),
            Value::Const(c @ (HostValue::Int(_) | HostValue::Float(_) | HostValue::Bool(_))) => {
                write!(f, "constexpr {c}")
            }
            Value::Const(c @ HostValue::DType(_)) => write!(f, "dtype {c}"),
            Value::Const(c @ (HostValue::Object(_) | HostValue::Str(_) | HostValue::Bytes(_))) => {
                write!(f, "{c}")
            }
            Value::Const(c) => write!(f, "{} {c}", c.kind()),
            Value::Tensor(t) => write!(f, "{}", t.ty()),
            Value::Tuple(t) => {
                let items: Vec<String> = t.items.iter().map(Value::describe).collect();
                write!(f, "({})", items.join(", "))
            }
            Value::Method(_) => f.write_str("method"),
            Value::Range(_) => f.write_str("range"),
            Value::Slice(_) => f.write_str("slice"),
            Value::Dict(_) => f.write_str("dictionary"),
            Value::Block(b) => write!(f, "block pointer to {}", b.block_type()),
            Value::Descriptor(d) => write!(f, "tensor_descriptor<{}>", d.block_type()),
            Value::Barriers(b) => match b.count {
                Some(n) => write!(f, "{n} barriers"),
                None => f.write_str("barrier"),
            },
            Value::Pipe(p) => write!(f, "{p}"),
            Value::Buffer(b) => write!(f, "buffered_tensor<{:?}, {}>", b.shape.as_slice(), b.element()),
            Value::Aggregate(a) => {
                let field = |((name, _), value): (&(Arc<str>, HostValue), &Option<Value>)| match value {
                    Some(value) => format!("{name}={value}"),
                    None => format!("{name} not set"),
                };
                let fields: Vec<String> = a.class.fields.iter().zip(&a.fields).map(field).collect();
                write!(f, "{}({})", a.class.name, fields.join(", "))
            }
        }
    }
}
