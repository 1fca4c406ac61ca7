//! Buffers in shared memory: `tle.gpu.alloc`, views, and pointers into them.

use std::sync::Arc;

use ruff_python_ast::{CmpOp, Operator};
use tilewright_ir::dialect::{tt, ttg, ttng};
use tilewright_ir::types::REMOTE;
use tilewright_ir::{AttrKind, Encoding, SharedKind, Type, TypeKind, marks};

use super::super::call::{Args, CallArgs};
use super::super::{Eval, Evaluator, builder};
use crate::dtype::{DType, PointerType, Scalar};
use crate::host::HostValue;
use crate::value::{Buffer, Shape, Tensor, TensorDescriptor, Value};

/// Groups of copies that a wait may leave under way.
const MOST_PENDING: i128 = 7;

/// The memory space of buffers that no other is named for.
pub(super) const SHARED_MEMORY: &str = "#ttg.shared_memory";

/// The address space of shared memory.
pub(super) const SHARED: u32 = 3;

/// The class of the library whose functions are the methods of buffers.
pub(crate) const CLASS: &str = "tle.gpu.buffered_tensor";

impl Evaluator<'_> {
    /// Checks that a program is run by one CTA, for what is one CTA's.
    pub(super) fn of_one_cta(&self, what: &str) -> Eval<()> {
        if self.options.num_ctas == 1 {
            return Ok(());
        }
        let mut error = self.not_supported_yet(&format!("{what} with num_ctas={}", self.options.num_ctas));
        error.notes.push(
            "the tiles of a program are split over the CTAs of its cluster then: use num_ctas=1".into(),
        );
        error.notes.push(
            "clusters of programs, which reach each other's buffers (tle.remote) and share copies (`multicast` of tle.gpu.copy), come from a mesh with \
             axes of the level `block_cluster`"
                .into(),
        );
        Err(error)
    }

    pub(super) fn alloc(&mut self, args: &Args) -> Eval<Value> {
        self.of_one_cta("tle.gpu.alloc")?;
        let (shape, element) = self.buffer_shape(args)?;
        match args.get("scope") {
            Value::Const(HostValue::Library(path)) if &**path == "tle.gpu.smem" => {}
            Value::Const(HostValue::Library(path)) if &**path == "tle.gpu.tmem" => {
                return Err(
                    self.not_supported_yet("tensor memory (tle.gpu.tmem), which GPUs before sm_100 lack")
                );
            }
            other => return Err(self.bad_argument(args, "scope", other, "tle.gpu.smem")),
        }
        let layout = match args.optional("layout").cloned() {
            Some(given) => Some(self.given_layout(args, &given, &element, &shape)?),
            None => None,
        };
        let swizzled = self.bool_arg(args, "nv_mma_shared_layout")?;
        let initial = match args.optional("init_value") {
            None => None,
            Some(Value::Tensor(t)) if t.shape == shape => Some(self.cast(&t.clone(), &element)?),
            Some(other) => {
                let ty = DType::block(element, shape.iter().map(|&n| i64::from(n)).collect());
                return Err(self.bad_argument(
                    args,
                    "init_value",
                    other,
                    &format!("a tensor of the buffer's type, {ty}"),
                ));
            }
        };
        let initial = initial.map(|t| self.stored_form(&t)).transpose()?;
        let plain = if swizzled { None } else { Some(self.plain_layout(shape.len())) };
        let ty = self.buffer_type(&element, &shape, layout.or(plain), SHARED_MEMORY);
        if args.optional("alias").is_some() {
            return self.alias(args, ty, element, shape);
        }
        if self.int_arg(args, "alias_offset_bytes")? != 0 {
            return Err(self.error(
                "`alias_offset_bytes` of tle.gpu.alloc needs `alias`, the buffer in which it counts",
            ));
        }
        let alloc = ttg::LocalAlloc::build(&mut builder!(self), initial.map(|t| t.value), ty);
        self.of_all_warps(alloc.0);
        Ok(buffer(alloc.result(&self.module), element, shape, None))
    }

    /// `tl.alloc`: a buffer that the compiler lays out.
    pub(super) fn alloc_for_all_warps(&mut self, args: &Args) -> Eval<Value> {
        let (shape, element) = self.buffer_shape(args)?;
        let ty = self.buffer_type(&element, &shape, None, SHARED_MEMORY);
        let alloc = ttg::LocalAlloc::build(&mut builder!(self), None, ty);
        self.of_all_warps(alloc.0);
        Ok(buffer(alloc.result(&self.module), element, shape, None))
    }

    /// The shape and dtype of a new buffer.
    pub(super) fn buffer_shape(&mut self, args: &Args) -> Eval<(Shape, DType)> {
        if !matches!(args.get("shape"), Value::Tuple(_)) {
            return Err(self.bad_argument(args, "shape", args.get("shape"), "a tuple or list of integers"));
        }
        let shape = self.shape_of(args.get("shape"))?;
        match args.get("dtype") {
            Value::Const(HostValue::DType(dtype @ DType::Scalar(scalar))) if *scalar != Scalar::Void => {
                Ok((shape, dtype.clone()))
            }
            other => Err(self.bad_argument(args, "dtype", other, "a dtype, such as tl.float32")),
        }
    }

    /// The bytes of another buffer, from an offset on, as one of this type.
    fn alias(&mut self, args: &Args, ty: Type, element: DType, shape: Shape) -> Eval<Value> {
        if args.optional("init_value").is_some() {
            return Err(self.error("a tle.gpu.alloc with `alias` has no `init_value`: store it"));
        }
        let of = self.buffer_or_tile(args, "alias")?;
        self.of_this_program(&of)?;
        let of =
            self.contiguous_part(&of, "have an alias", "give the buffer, or a slot of it, with an offset")?;
        let bytes = |element: &DType, shape: &Shape| {
            i128::from(element.bits().max(8) / 8) * shape.iter().map(|&n| i128::from(n)).product::<i128>()
        };
        let offset = self.int_arg(args, "alias_offset_bytes")?;
        let (needed, there) = (bytes(&element, &shape), bytes(&of.element(), &of.shape));
        if offset < 0 || offset + needed > there {
            return Err(self.error(format!(
                "an alias of {needed} bytes from byte {offset} on does not fit into the {there} bytes of {}",
                args.get("alias")
            )));
        }
        let each = i128::from(element.bits().max(8) / 8);
        if offset % each != 0 {
            return Err(self.error(format!(
                "`alias_offset_bytes` is {offset}, and must be a multiple of {each}, the bytes of {element}"
            )));
        }
        let value =
            ttg::MemdescReinterpret::build(&mut builder!(self), of.handle.value, Some(offset as i32), ty)
                .result(&self.module);
        Ok(buffer(value, element, shape, None))
    }

    /// A new buffer that holds a tensor.
    pub(super) fn stored_in_buffer(&mut self, tensor: &Tensor) -> Eval<Buffer> {
        self.stored_in(tensor, SHARED_MEMORY)
    }

    /// The same in a memory of this name.
    pub(super) fn stored_in(&mut self, tensor: &Tensor, space: &str) -> Eval<Buffer> {
        let ty = self.buffer_type(&tensor.dtype, &tensor.shape, None, space);
        let initial = self.stored_form(tensor)?;
        let value = ttg::LocalAlloc::build(&mut builder!(self), Some(initial.value), ty).result(&self.module);
        Ok(known_buffer(value, tensor.dtype.clone(), tensor.shape.clone()))
    }

    /// The type of a buffer, whose layout the compiler chooses where none is given.
    pub(super) fn buffer_type(
        &mut self,
        element: &DType,
        shape: &Shape,
        layout: Option<SharedKind>,
        space: &str,
    ) -> Type {
        let element = self.stored_type(element);
        // IR has no buffer without dimensions.
        let shape = if shape.is_empty() { Shape::from_slice(&[1]) } else { shape.clone() };
        let memory_space = self.module.attr(AttrKind::Opaque(space.into()));
        let encoding = layout.map(|kind| self.module.attr(AttrKind::Encoding(Encoding::Shared(kind))));
        self.module.ty(TypeKind::MemDesc {
            shape,
            element,
            encoding,
            memory_space,
            mutable: true,
            alloc_shape: None,
        })
    }

    /// What elements are in memory: booleans are bytes.
    fn stored_type(&mut self, element: &DType) -> Type {
        match element.as_scalar() {
            Some(Scalar::Int1) => self.element_type(&Scalar::Int8.into()),
            _ => self.element_type(element),
        }
    }

    pub(super) fn stored_form(&mut self, value: &Tensor) -> Eval<Tensor> {
        match value.number() {
            Some(Scalar::Int1) => self.cast(value, &Scalar::Int8.into()),
            _ => Ok(value.clone()),
        }
    }

    /// An argument that must be a buffer.
    pub(super) fn buffer_arg(&mut self, args: &Args, name: &str) -> Eval<Buffer> {
        let buffer = self.buffer_or_tile(args, name)?;
        self.as_view(&buffer)
    }

    /// The same, be it a tile whose number the program computes.
    pub(super) fn buffer_or_tile(&mut self, args: &Args, name: &str) -> Eval<Arc<Buffer>> {
        match args.get(name) {
            Value::Buffer(buffer) => Ok(buffer.clone()),
            other => {
                let made_by = if args.builtin.path.starts_with("tle.dsa.") { "dsa" } else { "gpu" };
                let wanted = format!("a buffered_tensor, which tle.{made_by}.alloc gives");
                Err(self.bad_argument(args, name, other, &wanted))
            }
        }
    }

    /// A buffer of the program's own as a view, which is where its handle says.
    pub(super) fn own_buffer(&mut self, buffer: &Buffer) -> Eval<Buffer> {
        self.of_this_program(buffer)?;
        self.as_view(buffer)
    }

    /// Refuses a buffer of another program.
    pub(super) fn of_this_program(&self, buffer: &Buffer) -> Eval<()> {
        if buffer.rank.is_none() {
            return Ok(());
        }
        Err(self
            .error("a buffer of another program is reached by pointers alone")
            .note("take them by tle.gpu.local_ptr, for tl.load, tl.store and the atomics")
            .into())
    }

    pub(super) fn local_ptr(&mut self, args: &Args) -> Eval<Tensor> {
        let buffer = self.buffer_or_tile(args, "buffer")?;
        let given = match args.get("indices") {
            Value::Const(HostValue::None) => None,
            Value::Tuple(t) => Some(&t.items),
            other => {
                return Err(self.bad_argument(
                    args,
                    "indices",
                    other,
                    "a tuple of integers, one for each dimension",
                ));
            }
        };
        let of_gpu = !args.builtin.path.starts_with("tle.dsa.");
        let offsets = if of_gpu { args.optional("offsets") } else { None };
        let shape = if of_gpu { args.optional("shape") } else { None };
        let shape = shape.map(|shape| self.shape_of(shape)).transpose()?;
        let indices = match (given, offsets) {
            (Some(_), Some(_)) => {
                return Err(self.error("tle.gpu.local_ptr takes `indices` or `offsets`, not both"));
            }
            (Some(items), None) if items.len() != buffer.shape.len() => {
                return Err(self.error(format!(
                    "{} needs {} indices, one for each dimension of {}, but got {}",
                    args.builtin.shown(),
                    buffer.shape.len(),
                    args.get("buffer"),
                    items.len()
                )));
            }
            (Some(items), None) => items.iter().map(|item| self.buffer_index(item)).collect::<Eval<_>>()?,
            (None, Some(offsets)) => {
                let offsets = self.buffer_index(offsets)?;
                self.unraveled(&offsets, &buffer.shape)?
            }
            (None, None) if shape.is_some_and(|shape| shape != buffer.shape) => {
                return Err(self.error("`shape` of tle.gpu.local_ptr without indices must be the buffer's"));
            }
            (None, None) => return self.all_pointers(&buffer),
        };
        self.pointers_of_shape(&buffer, indices, shape)
    }

    /// Pointers to elements by indices that broadcast to a common shape, or to one that is given.
    fn pointers_of_shape(
        &mut self,
        buffer: &Buffer,
        mut indices: Vec<Tensor>,
        shape: Option<Shape>,
    ) -> Eval<Tensor> {
        let common = self.common_shape(&indices)?;
        if let Some(shape) = &shape
            && !common.is_empty()
            && common.len() > shape.len()
        {
            return Err(self.error(format!(
                "indices of shape {:?} do not broadcast to {:?}",
                common.as_slice(),
                shape.as_slice()
            )));
        }
        let shape = shape.unwrap_or(common);
        for index in &mut indices {
            *index = self.expand_to(index, &shape)?;
        }
        self.pointers(buffer, &indices, &shape)
    }

    /// An index into a buffer.
    fn buffer_index(&mut self, item: &Value) -> Eval<Tensor> {
        let index = match item {
            Value::Const(HostValue::Int(_)) | Value::Tensor(_) => self.tensor_of(item)?,
            other => return Err(self.not_an_index(other)),
        };
        if !index.number().is_some_and(|s| s.is_int() && s != Scalar::Int1) {
            return Err(self.not_an_index(item));
        }
        self.cast(&index, &Scalar::Int32.into())
    }

    /// The indices of the elements that have these numbers in row-major order.
    fn unraveled(&mut self, numbers: &Tensor, shape: &Shape) -> Eval<Vec<Tensor>> {
        let mut rest = Value::Tensor(numbers.clone());
        let mut indices = Vec::with_capacity(shape.len());
        for &extent in shape.iter().skip(1).rev() {
            let extent = Value::int(i128::from(extent));
            indices.push(self.tensor_binary(Operator::Mod, &rest, &extent)?);
            rest = Value::Tensor(self.tensor_binary(Operator::FloorDiv, &rest, &extent)?);
        }
        if !shape.is_empty() {
            indices.push(self.tensor_of(&rest)?);
        }
        indices.reverse();
        Ok(indices)
    }

    /// Pointers to all elements of a buffer.
    fn all_pointers(&mut self, buffer: &Buffer) -> Eval<Tensor> {
        let mut indices = Vec::new();
        for d in 0..buffer.shape.len() {
            let range = self.range_along(d, &buffer.shape);
            indices.push(self.broadcast_to(&range, &buffer.shape)?);
        }
        self.pointers(buffer, &indices, &buffer.shape)
    }

    /// The numbers from 0 on along a dimension of a shape, of extent 1 along all others.
    fn range_along(&mut self, dim: usize, shape: &Shape) -> Tensor {
        let mut range = self.range(0, shape[dim]);
        for axis in (0..shape.len()).filter(|&axis| axis != dim) {
            range = self.expand_dims(&range, axis as u32);
        }
        range
    }

    fn not_an_index(&self, value: &Value) -> super::super::Error {
        self.error(format!("indices of local_ptr must be integers, not {value}"))
    }

    /// The shape that tensors broadcast to, missing dimensions in front as NumPy has them.
    fn common_shape(&mut self, tensors: &[Tensor]) -> Eval<Shape> {
        let mut common = Shape::new();
        for t in tensors {
            while common.len() < t.shape.len() {
                common.insert(0, 1);
            }
            let skip = common.len() - t.shape.len();
            for (have, &n) in common[skip..].iter_mut().zip(&t.shape) {
                match (*have, n) {
                    (1, n) => *have = n,
                    (_, 1) => {}
                    (a, b) if a == b => {}
                    _ => {
                        let all: Vec<String> =
                            tensors.iter().map(|t| format!("{:?}", t.shape.as_slice())).collect();
                        return Err(self.error(format!(
                            "the indices of local_ptr have shapes that do not broadcast: {}",
                            all.join(", ")
                        )));
                    }
                }
            }
        }
        Ok(common)
    }

    /// A tensor with leading dimensions added until it broadcasts to a shape.
    fn expand_to(&mut self, t: &Tensor, shape: &Shape) -> Eval<Tensor> {
        let mut t = t.clone();
        while t.is_block() && t.shape.len() < shape.len() {
            t = self.expand_dims(&t, 0);
        }
        self.broadcast_to(&t, shape)
    }

    pub(super) fn range(&mut self, start: u32, end: u32) -> Tensor {
        let shape = Shape::from_slice(&[end - start]);
        let ty = self.ir_type(&Scalar::Int32.into(), &shape);
        let value =
            tt::MakeRange::build(&mut builder!(self), end as i32, start as i32, ty).result(&self.module);
        Tensor { value, dtype: Scalar::Int32.into(), shape }
    }

    /// Pointers to the elements at these indices, which have one shape.
    pub(super) fn pointers(&mut self, buffer: &Buffer, indices: &[Tensor], shape: &Shape) -> Eval<Tensor> {
        let mut values: Vec<_> = indices.iter().map(|t| t.value).collect();
        for (value, (index, begin)) in values.iter_mut().zip(indices.iter().zip(&buffer.begin)) {
            let (index, begin) = (Value::Tensor(index.clone()), Value::Tensor(begin.clone()));
            *value = self.tensor_binary(Operator::Add, &index, &begin)?.value;
        }
        if values.is_empty() {
            let zero = self.scalar_constant(&HostValue::Int(0), &Scalar::Int32.into())?;
            values.push(self.splat(&zero, shape).value);
        }
        let boolean = buffer.element().as_scalar() == Some(Scalar::Int1);
        let stored = if boolean { Scalar::Int8.into() } else { buffer.element() };
        let dtype =
            DType::Pointer(PointerType { element: stored, address_space: SHARED, constant: false }.into());
        let ty = self.ir_type(&dtype, shape);
        let value =
            ttg::LocalPtr::build(&mut builder!(self), buffer.handle.value, &values, ty).result(&self.module);
        let mut pointers = Tensor { value, dtype, shape: shape.clone() };
        if let Some(rank) = &buffer.rank {
            pointers = self.remote_pointers(&pointers, rank);
        }
        if !boolean {
            return Ok(pointers);
        }
        let address_space = if buffer.rank.is_some() { REMOTE } else { SHARED };
        let element = Scalar::Int1.into();
        self.cast(&pointers, &DType::Pointer(PointerType { element, address_space, constant: false }.into()))
    }

    /// `buffer.slot(stage)`: one of what the leading dimension numbers.
    pub(super) fn buffer_slot(&mut self, args: &Args) -> Eval<Value> {
        let whole = self.buffer_or_tile(args, "self")?;
        if whole.shape.len() < 2 {
            return Err(self.error(format!(
                "`slot` needs a buffer of at least two dimensions, not {}",
                args.get("self")
            )));
        }
        let stage = match args.get("stage") {
            Value::Const(HostValue::Int(i)) if (0..i128::from(whole.shape[0])).contains(i) => {
                self.tensor_of(&Value::int(*i))?
            }
            Value::Const(HostValue::Int(i)) => {
                return Err(
                    self.error(format!("slot {i} of a buffer that has {}, numbered from 0", whole.shape[0]))
                );
            }
            Value::Tensor(t)
                if !t.is_block() && t.number().is_some_and(|s| s.is_int() && s != Scalar::Int1) =>
            {
                t.clone()
            }
            other => return Err(self.bad_argument(args, "stage", other, "a scalar integer")),
        };
        let stage = self.cast(&stage, &Scalar::Int32.into())?;
        self.numbered(&whole, &stage).map(|slot| Value::Buffer(Arc::new(slot)))
    }

    /// `buffer.subslice(start, length, dim)`: a part along one dimension.
    pub(super) fn buffer_subslice(&mut self, args: &Args) -> Eval<Value> {
        let whole = self.buffer_or_tile(args, "self")?;
        let dim = self.axis_arg(args, "dim", whole.shape.len())?;
        let (start, length) = (self.int_arg(args, "start")?, self.int_arg(args, "length")?);
        let extent = i128::from(whole.shape[dim]);
        if start < 0 || length < 1 || start + length > extent {
            return Err(self.error(format!(
                "elements {start} to {} along dimension {dim} of a buffer that has {extent} there",
                start + length - 1
            )));
        }
        let mut shape = whole.shape.clone();
        shape[dim] = length as u32;
        let mut offsets = vec![0; shape.len()];
        offsets[dim] = start as i32;
        self.subslice(&whole, offsets, shape).map(|part| Value::Buffer(Arc::new(part)))
    }

    /// The part of a buffer that begins at these offsets.
    pub(super) fn subslice(&mut self, whole: &Buffer, offsets: Vec<i32>, shape: Shape) -> Eval<Buffer> {
        if !whole.begin.is_empty() {
            let begin = whole.begin.iter().zip(offsets).map(|(begin, offset)| {
                let (begin, offset) = (Value::Tensor(begin.clone()), Value::int(i128::from(offset)));
                self.tensor_binary(Operator::Add, &begin, &offset)
            });
            return Ok(Buffer { begin: begin.collect::<Eval<_>>()?, shape, ..whole.clone() });
        }
        let ty = self.view_type(whole, &shape)?;
        let value = ttg::MemdescSubslice::build(&mut builder!(self), whole.handle.value, offsets, ty)
            .result(&self.module);
        Ok(Buffer { rank: whole.rank.clone(), ..known_buffer(value, whole.element(), shape) })
    }

    /// `buffer.reshape(shape)`: the same elements in row-major order.
    pub(super) fn buffer_reshape(&mut self, args: &Args) -> Eval<Value> {
        let whole = self.buffer_or_tile(args, "self")?;
        let shape = self.shape_of(args.get("shape"))?;
        let count = |shape: &Shape| shape.iter().map(|&n| u64::from(n)).product::<u64>();
        if count(&shape) != count(&whole.shape) {
            return Err(self.error(format!(
                "{} has {} elements, but a buffer of shape {:?} has {}",
                args.get("self"),
                count(&whole.shape),
                shape.as_slice(),
                count(&shape)
            )));
        }
        let whole = self.contiguous_part(&whole, "be reshaped", "reshape the buffer, then take the part")?;
        match self.reshaped_buffer(&whole, shape) {
            Some(view) => Ok(Value::Buffer(Arc::new(view))),
            None => Err(self.not_supported_yet("a reshape of a buffer with a layout that is not row-major")),
        }
    }

    /// The elements of a buffer's handle in row-major order under another shape. What layout is given to it must be row-major, or one of matrix units; in that
    /// not every shape can be seen, as those know that lay buffers out.
    pub(super) fn reshaped_buffer(&mut self, whole: &Buffer, shape: Shape) -> Option<Buffer> {
        let ty = self.module.value_type(whole.handle.value);
        let rank = self.module.shape(ty).map_or(0, <[u32]>::len);
        let layout = match self.module.encoding(ty).and_then(|e| self.module.encoding_of(e)) {
            None => None,
            Some(Encoding::Shared(kind @ SharedKind::NvmmaShared { .. })) if shape.len() > 1 => {
                Some(kind.clone())
            }
            Some(Encoding::Shared(kind)) if *kind == self.plain_layout(rank) => {
                Some(self.plain_layout(shape.len()))
            }
            Some(_) => return None,
        };
        let space = self.space_of(whole).to_string();
        let ty = self.buffer_type(&whole.element(), &shape, layout, &space);
        let value =
            ttg::MemdescReshape::build(&mut builder!(self), whole.handle.value, ty).result(&self.module);
        Some(Buffer { rank: whole.rank.clone(), ..known_buffer(value, whole.element(), shape) })
    }

    /// One of the buffers that the leading dimension of another one numbers.
    pub(super) fn numbered(&mut self, whole: &Buffer, number: &Tensor) -> Eval<Buffer> {
        let mut number = number.clone();
        if let Some(begin) = whole.begin.first() {
            let (a, b) = (Value::Tensor(number), Value::Tensor(begin.clone()));
            number = self.tensor_binary(Operator::Add, &a, &b)?;
        }
        // A tile has the handle of the buffer that it is of.
        let of = self.module.value_type(whole.handle.value);
        let of = self.module.shape(of).and_then(|extents| extents.get(1..)).map(Shape::from_slice);
        let of = of.ok_or_else(|| self.error("a buffer of several is needed"))?;
        let ty = self.view_type(whole, &of)?;
        let value = ttg::MemdescIndex::build(&mut builder!(self), whole.handle.value, number.value, ty)
            .result(&self.module);
        let begin = whole.begin.iter().skip(1).cloned().collect();
        let shape = Shape::from_slice(&whole.shape[1..]);
        Ok(Buffer { rank: whole.rank.clone(), shape, begin, ..known_buffer(value, whole.element(), of) })
    }

    /// The type of a view of a buffer, which lies in the same allocation.
    pub(super) fn view_type(&mut self, whole: &Buffer, shape: &Shape) -> Eval<Type> {
        let mut kind = self.module.type_kind(self.module.value_type(whole.handle.value)).clone();
        let TypeKind::MemDesc { shape: of, alloc_shape, encoding, .. } = &mut kind else {
            return Err(self.error("a buffer is needed"));
        };
        let all = alloc_shape.clone().unwrap_or_else(|| of.clone());
        let kept = Shape::from_slice(&all[all.len() - shape.len()..]);
        *alloc_shape = (kept != *shape).then_some(kept);
        *of = shape.clone();
        if let Some(attr) = *encoding
            && let Some(Encoding::Shared(SharedKind::Swizzled { vec, per_phase, max_phase, order })) =
                self.module.encoding_of(attr).cloned()
            && order.len() > shape.len()
        {
            // The leading dimension goes.
            let order = order.into_iter().filter(|&d| d > 0).map(|d| d - 1).collect();
            let kind = SharedKind::Swizzled { vec, per_phase, max_phase, order };
            *encoding = Some(self.module.attr(AttrKind::Encoding(Encoding::Shared(kind))));
        }
        Ok(self.module.ty(kind))
    }

    /// `buffer.load()`: what the buffer holds.
    pub(super) fn buffer_load(&mut self, args: &Args, name: &str) -> Eval<Tensor> {
        let buffer = self.buffer_or_tile(args, name)?;
        self.read(&buffer)
    }

    /// `buffer.store(value)`: all of it.
    pub(super) fn buffer_store(&mut self, args: &Args, name: &str) -> Eval<()> {
        let buffer = self.buffer_or_tile(args, name)?;
        let value = self.tensor_arg(args, "value")?;
        let shape = if buffer.shape.is_empty() { Shape::from_slice(&[1]) } else { buffer.shape.clone() };
        let value = self.expand_to(&value, &shape)?;
        self.write(&buffer, &value, None)
    }

    /// `tle.gpu.copy`: between pointers or a descriptor and a buffer.
    pub(super) fn copy(&mut self, args: &Args) -> Eval<()> {
        if args.optional("barrier").is_some() {
            return self.copy_to_barrier(args);
        }
        if args.optional("multicast").is_some() {
            return Err(self
                .error("a tle.gpu.copy with `multicast` needs a `barrier`, at which each program waits for the block")
                .note("allocate it with expect_bytes=…, the bytes of the whole block, whoever brings them")
                .into());
        }
        if self.bool_arg(args, "is_async")? {
            return self.copy_asynchronously(args);
        }
        let evict = self.eviction(args)?;
        let (src, dst) = (args.get("src").clone(), args.get("dst").clone());
        match (&src, &dst) {
            (Value::Tensor(pointers), Value::Buffer(to)) if pointers.dtype.is_pointer() => {
                let moved = self.moved(args, pointers, to)?;
                let (pointer, element, boolean) = self.byte_pointer(pointers.clone())?;
                let part = self.part(to, &pointer.shape)?;
                let all = self.both(moved.inside.as_ref(), moved.mask.as_ref())?;
                let zero = self.scalar_constant(&HostValue::Int(0), &element)?;
                let other = self.splat(&zero, &pointer.shape).value;
                let ty = self.ir_type(&element, &pointer.shape);
                let cache = tt::CacheModifier::None;
                let mask = all.map(|t| t.value);
                let mut b = builder!(self);
                let value = tt::Load::build(
                    &mut b,
                    pointer.value,
                    mask,
                    mask.map(|_| other),
                    cache,
                    evict,
                    false,
                    ty,
                );
                let value = value.result(&self.module);
                let mut value = Tensor { value, dtype: element, shape: pointer.shape };
                if boolean {
                    value = self.truth_of(&value)?;
                }
                self.write(&part, &value, moved.inside.as_ref())
            }
            (Value::Buffer(from), Value::Tensor(pointers)) if pointers.dtype.is_pointer() => {
                self.writable(pointers, "copy")?;
                let moved = self.moved(args, pointers, from)?;
                let (pointer, element, _) = self.byte_pointer(pointers.clone())?;
                let part = self.part(from, &pointer.shape)?;
                let all = self.both(moved.inside.as_ref(), moved.mask.as_ref())?;
                // What is not copied may not have been written.
                let value = match &all {
                    None => self.read(&part)?,
                    Some(_) => self.read_where(&part, all.as_ref())?,
                };
                let value = self.cast(&value, &element)?;
                let cache = tt::CacheModifier::None;
                let mask = all.map(|t| t.value);
                tt::Store::build(&mut builder!(self), pointer.value, value.value, mask, cache, evict);
                Ok(())
            }
            (Value::Descriptor(from), Value::Buffer(to)) => {
                let offsets = self.block_copied(args, from, to)?;
                let given = CallArgs { positional: vec![offsets], keywords: vec![] };
                let value = self.call_descriptor_method(&src, "load", given)?;
                let value = self.tensor_of(&value)?;
                let part = self.part(to, &value.shape)?;
                self.write(&part, &value, None)
            }
            (Value::Buffer(from), Value::Descriptor(to)) => {
                let offsets = self.block_copied(args, to, from)?;
                let part = self.part(from, &to.block())?;
                let as_it_is =
                    from.element() == to.element() && to.element().as_scalar() != Some(Scalar::Int1);
                if as_it_is && self.is_tile(&part) {
                    let part = self.as_view(&part)?;
                    self.writable(&to.handle, "store")?;
                    let coord = self.block_offsets(to, &offsets)?;
                    let pending = self.pending_hint()?;
                    let (desc, src) = (to.handle.value, part.handle.value);
                    let copy = ttng::AsyncTmaCopyLocalToGlobal::build(&mut builder!(self), desc, &coord, src);
                    if let Some(pending) = pending {
                        self.module.set_i32_attr(copy.0, marks::PENDING, pending);
                    }
                    return Ok(());
                }
                let value = self.read(&part)?;
                let given = CallArgs { positional: vec![offsets, Value::Tensor(value)], keywords: vec![] };
                self.call_descriptor_method(&dst, "store", given).map(|_| ())
            }
            _ => Err(self
                .error(format!("tle.gpu.copy cannot copy {src} to {dst}"))
                .note("it copies between a buffered_tensor and a tensor of pointers or a tensor descriptor")
                .into()),
        }
    }

    /// How many copies to global memory may be under way, as a comment behind this one says: `# @hint: tma_store_pending=8`.
    fn pending_hint(&self) -> Eval<Option<i32>> {
        let source = &self.frame().function.source;
        let behind = source.text.get(self.range.end().to_usize()..).and_then(|text| text.lines().next());
        let comment = behind.and_then(|text| text.trim_start().strip_prefix('#'));
        let Some(hint) = comment.and_then(|text| text.trim_start().strip_prefix("@hint:")) else {
            return Ok(None);
        };
        let hint = hint.trim();
        let number = hint.split_once('=').filter(|(name, _)| name.trim() == "tma_store_pending");
        let number = number.and_then(|(_, number)| number.trim().parse::<i32>().ok());
        match number.filter(|&n| n > 0) {
            Some(number) => Ok(Some(number)),
            None => Err(self
                .error(format!("the hint `{hint}` behind a tle.gpu.copy to a tensor descriptor"))
                .note("its hint is `# @hint: tma_store_pending=N`: at most N such copies are under way, a number above 0")
                .into()),
        }
    }

    /// A copy that the kernel waits for: a load and a store that `user-copies` makes one.
    fn copy_asynchronously(&mut self, args: &Args) -> Eval<()> {
        let evict = self.eviction(args)?;
        let (Value::Tensor(pointers), Value::Buffer(to)) = (args.get("src").clone(), args.get("dst").clone())
        else {
            return Err(self
                .error(format!(
                    "tle.gpu.copy(is_async=True) from {} to {}: it copies from a tensor of pointers to a buffer",
                    args.get("src"),
                    args.get("dst")
                ))
                .note("through descriptors copies are asynchronous where the hardware has them")
                .into());
        };
        if !pointers.dtype.is_pointer() || pointers.dtype.as_pointer().is_some_and(|p| p.address_space != 1) {
            return Err(self.error(format!(
                "tle.gpu.copy(is_async=True) copies from pointers to global memory, not from {}",
                pointers.ty()
            )));
        }
        let to = self.own_buffer(&to)?;
        let moved = self.moved(args, &pointers, &to)?;
        if moved.inside.is_some() || pointers.shape != to.shape {
            return Err(self
                .error(format!(
                    "tle.gpu.copy(is_async=True) of {} to a buffer of shape {:?}: `shape` must be that of both",
                    pointers.ty(),
                    to.shape.as_slice()
                ))
                .note("a mask may leave elements out, which are zero in the buffer then")
                .into());
        }
        let (pointer, element, boolean) = self.byte_pointer(pointers.clone())?;
        if boolean || element != to.element() {
            return Err(self.error(format!(
                "tle.gpu.copy(is_async=True) of {} to a buffer of {}: it converts nothing",
                pointers.ty(),
                to.element()
            )));
        }
        let mask = moved.mask.map(|t| t.value);
        let zero = self.scalar_constant(&HostValue::Int(0), &element)?;
        let other = mask.map(|_| self.splat(&zero, &pointer.shape).value);
        let ty = self.ir_type(&element, &pointer.shape);
        let cache = tt::CacheModifier::None;
        let load = tt::Load::build(&mut builder!(self), pointer.value, mask, other, cache, evict, false, ty);
        let value = load.result(&self.module);
        let store = ttg::LocalStore::build(&mut builder!(self), value, to.handle.value);
        let mark = self.module.attr(AttrKind::Unit);
        self.module.set_attr(load.0, marks::COPY, mark);
        self.module.set_attr(store.0, marks::COPY, mark);
        Ok(())
    }

    pub(super) fn async_commit_group(&mut self) -> Value {
        ttg::AsyncCommitGroup::build(&mut builder!(self), &[], Type::ASYNC_TOKEN);
        Value::NONE
    }

    pub(super) fn async_wait_group(&mut self, args: &Args) -> Eval<Value> {
        let n = self.int_arg(args, "n")?;
        if !(0..=MOST_PENDING).contains(&n) {
            return Err(
                self.error(format!("tle.gpu.async_wait_group leaves 0 to {MOST_PENDING} groups, not {n}"))
            );
        }
        ttg::AsyncWait::build(&mut builder!(self), &[], n as i32, Type::ASYNC_TOKEN);
        Ok(Value::NONE)
    }

    /// Which elements of a block of pointers are copied to or from a buffer: those inside the extents given, where the mask holds.
    fn moved(&mut self, args: &Args, pointers: &Tensor, buffer: &Buffer) -> Eval<Moved> {
        let extents = match args.get("shape") {
            Value::Tuple(t) => t.items.clone(),
            other => return Err(self.bad_argument(args, "shape", other, "a tuple or list of extents")),
        };
        let (of, into) = (pointers.shape.clone(), buffer.shape.clone());
        let fits = of.len() == into.len() && of.iter().zip(&into).all(|(a, b)| a <= b);
        if !fits || extents.len() != of.len() {
            return Err(self.error(format!(
                "tle.gpu.copy of {} extents between {} and a buffer of shape {:?}",
                extents.len(),
                pointers.ty(),
                into.as_slice()
            )));
        }
        let mut inside: Option<Tensor> = None;
        for (d, extent) in extents.iter().enumerate() {
            match extent {
                Value::Const(HostValue::Int(n)) if *n == i128::from(of[d]) => continue,
                Value::Const(HostValue::Int(n)) if (0..i128::from(of[d])).contains(n) => {}
                Value::Tensor(t)
                    if !t.is_block() && t.number().is_some_and(|s| s.is_int() && s != Scalar::Int1) => {}
                Value::Const(HostValue::Int(n)) => {
                    return Err(self.error(format!(
                        "tle.gpu.copy of {n} elements along dimension {d}, where the pointers have {}",
                        of[d]
                    )));
                }
                other => return Err(self.bad_argument(args, "shape", other, "a tuple of integers")),
            }
            let range = self.range_along(d, &of);
            let below = self.compare(CmpOp::Lt, Value::Tensor(range), extent.clone())?;
            let below = self.tensor_of(&below)?;
            let below = self.broadcast_to(&below, &of)?;
            inside = self.both(inside.as_ref(), Some(&below))?;
        }
        let mask = match args.optional("mask") {
            None | Some(Value::Const(HostValue::Bool(true))) => None,
            Some(Value::Tensor(t)) if t.number() == Some(Scalar::Int1) => {
                Some(self.expand_to(&t.clone(), &of)?)
            }
            Some(constant @ Value::Const(HostValue::Bool(false))) => {
                let never = self.tensor_of(&constant.clone())?;
                Some(self.expand_to(&never, &of)?)
            }
            Some(other) => return Err(self.bad_argument(args, "mask", other, "a tensor of booleans")),
        };
        Ok(Moved { inside, mask })
    }

    /// Where both masks hold; a missing one holds everywhere.
    fn both(&mut self, a: Option<&Tensor>, b: Option<&Tensor>) -> Eval<Option<Tensor>> {
        match (a, b) {
            (Some(a), Some(b)) => {
                let (a, b) = (Value::Tensor(a.clone()), Value::Tensor(b.clone()));
                self.tensor_binary(Operator::BitAnd, &a, &b).map(Some)
            }
            (one, other) => Ok(one.or(other).cloned()),
        }
    }

    /// The first elements of a buffer of the program's own along each dimension.
    fn part(&mut self, whole: &Buffer, shape: &Shape) -> Eval<Buffer> {
        self.of_this_program(whole)?;
        if whole.shape == *shape {
            return Ok(whole.clone());
        }
        self.subslice(whole, vec![0; shape.len()], shape.clone())
    }

    /// The offsets at which a block of a descriptor is copied to or from a buffer.
    pub(super) fn block_copied(
        &mut self,
        args: &Args,
        descriptor: &TensorDescriptor,
        buffer: &Buffer,
    ) -> Eval<Value> {
        let block = descriptor.block();
        let shape = match args.get("shape") {
            given @ Value::Tuple(_) => self.shape_of(given)?,
            other => return Err(self.bad_argument(args, "shape", other, "a tuple or list of extents")),
        };
        let fits = block.len() == buffer.shape.len() && block.iter().zip(&buffer.shape).all(|(a, b)| a <= b);
        if shape != block || !fits {
            return Err(self.error(format!(
                "tle.gpu.copy of shape {:?} between a descriptor of blocks of shape {:?} and a buffer of shape {:?}",
                shape.as_slice(),
                block.as_slice(),
                buffer.shape.as_slice()
            )));
        }
        if args.optional("mask").is_some() {
            return Err(self
                .error("`mask` of tle.gpu.copy is for pointers")
                .note("a descriptor reads zeros outside its tensor, and writes nothing there")
                .into());
        }
        match args.optional("offsets") {
            Some(offsets) => Ok(offsets.clone()),
            None => {
                Err(self.error("tle.gpu.copy through a descriptor needs `offsets`, one for each dimension"))
            }
        }
    }

    pub(super) fn write(&mut self, buffer: &Buffer, value: &Tensor, mask: Option<&Tensor>) -> Eval<()> {
        let by_pointers = mask.is_some() || !buffer.begin.is_empty();
        if !by_pointers || buffer.rank.is_some() {
            self.of_this_program(buffer)?;
        }
        let value = self.cast(value, &buffer.element())?;
        let value = self.stored_form(&value)?;
        if !by_pointers {
            ttg::LocalStore::build(&mut builder!(self), value.value, buffer.handle.value);
            return Ok(());
        }
        let pointers = self.all_pointers(buffer)?;
        let (pointers, ..) = self.byte_pointer(pointers)?;
        let (cache, evict) = (tt::CacheModifier::None, tt::EvictionPolicy::Normal);
        let mask = mask.map(|m| m.value);
        tt::Store::build(&mut builder!(self), pointers.value, value.value, mask, cache, evict);
        Ok(())
    }

    pub(super) fn read(&mut self, buffer: &Buffer) -> Eval<Tensor> {
        if !buffer.begin.is_empty() && buffer.rank.is_none() {
            return self.read_where(buffer, None);
        }
        self.of_this_program(buffer)?;
        let boolean = buffer.element().as_scalar() == Some(Scalar::Int1);
        let dtype: DType = if boolean { Scalar::Int8.into() } else { buffer.element() };
        let shape = if buffer.shape.is_empty() { Shape::from_slice(&[1]) } else { buffer.shape.clone() };
        let ty = self.ir_type(&dtype, &shape);
        let value =
            ttg::LocalLoad::build(&mut builder!(self), buffer.handle.value, None, ty).result(&self.module);
        let mut loaded = Tensor { value, dtype, shape };
        if buffer.shape.is_empty() {
            loaded = self.unsplat(&loaded);
        }
        if boolean { self.truth_of(&loaded) } else { Ok(loaded) }
    }

    /// What a buffer holds by pointers: where a mask is true, if there is one.
    fn read_where(&mut self, buffer: &Buffer, mask: Option<&Tensor>) -> Eval<Tensor> {
        let pointers = self.all_pointers(buffer)?;
        let (pointers, element, boolean) = self.byte_pointer(pointers)?;
        let ty = self.ir_type(&element, &pointers.shape);
        let (cache, evict) = (tt::CacheModifier::None, tt::EvictionPolicy::Normal);
        let mut b = builder!(self);
        let mask = mask.map(|m| m.value);
        let load = tt::Load::build(&mut b, pointers.value, mask, None, cache, evict, false, ty);
        let value = load.result(&self.module);
        let loaded = Tensor { value, dtype: element, shape: pointers.shape };
        if boolean { self.truth_of(&loaded) } else { Ok(loaded) }
    }
}

/// What of a block of pointers [`Evaluator::copy`] moves.
struct Moved {
    /// Where the extents given hold; everywhere, if there is none.
    inside: Option<Tensor>,
    /// The mask given, in the block's shape.
    mask: Option<Tensor>,
}

/// A buffer as the front end knows it: the SSA value as a pointer to the whole.
pub(super) fn buffer(
    value: tilewright_ir::Value,
    element: DType,
    shape: Shape,
    rank: Option<Tensor>,
) -> Value {
    Value::Buffer(Arc::new(Buffer { rank, ..known_buffer(value, element, shape) }))
}

/// The same where it is this program's.
pub(super) fn known_buffer(value: tilewright_ir::Value, element: DType, shape: Shape) -> Buffer {
    let block = DType::block(element, shape.iter().map(|&n| i64::from(n)).collect());
    let pointer = PointerType { element: block, address_space: SHARED, constant: false };
    let handle = Tensor::scalar(value, DType::Pointer(pointer.into()));
    Buffer { handle, shape, rank: None, begin: Vec::new() }
}
