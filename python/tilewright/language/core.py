"""The types and built-in functions of the language.

Conventions of the docstrings: *block* means a tensor of any rank, or a scalar; shapes are written ``[M, N]``. Every
extent of a shape may be any odd number times a power of two. Scalars broadcast against blocks, and blocks against each other
as in NumPy, after missing leading dimensions are added. A wrong call is an error at compile time with the source line.
"""

from __future__ import annotations

import enum as _enum
import operator as _operator

from .._tilewright import SCALAR_TYPES as _SCALAR_TYPES
from ._marker import KernelOnlyError, builtin, constexpr_function, must_use_result

TRITON_MAX_TENSOR_NUMEL = 1048576

# ---------------------------------------------------------------------------------------------------------------------
# Constants
# ---------------------------------------------------------------------------------------------------------------------


class base_value:
    """What values inside a kernel are: tensors, descriptors, tuples, constants."""

    __slots__ = ()


class base_type:
    """What their types are."""

    __slots__ = ()


class constexpr(base_value):
    """A value known at compile time.

    As an annotation of a parameter (``BLOCK: tl.constexpr``) it says that each value gets its own compiled kernel; as
    an annotation of a variable (``n: tl.constexpr = 4``) that the variable keeps its compile-time value. A module-level
    ``N = tl.constexpr(4)`` may be used by kernels.
    """

    __slots__ = ("value",)

    def __init__(self, value):
        while isinstance(value, constexpr):
            value = value.value
        self.value = value

    @property
    def type(self):
        """Its type, which is its value."""
        return constexpr_type(self.value)

    def __repr__(self):
        return f"constexpr[{self.value}]"

    def __hash__(self):
        return hash((constexpr, self.value))

    def __bool__(self):
        return bool(self.value)

    def __index__(self):
        return _operator.index(self.value)

    def __int__(self):
        return int(self.value)

    def __float__(self):
        return float(self.value)

    def __call__(self, *args, **kwargs):
        return self.value(*args, **kwargs)

    def __getitem__(self, index):
        return self.value[_plain(index)]

    def __iter__(self):
        return iter(self.value)

    def __len__(self):
        return len(self.value)

    def logical_and(self, other) -> constexpr:
        """``and``, of which Python lets nobody say what it does."""
        return constexpr(self.value and _plain(other))

    def logical_or(self, other) -> constexpr:
        """``or``, likewise."""
        return constexpr(self.value or _plain(other))


def _plain(value):
    return value.value if isinstance(value, constexpr) else value


# The names by which programs import it.
_unwrap_if_constexpr = _plain
CONSTEXPR_0 = constexpr(0)


def _add_operators():
    def binary(op):
        def forward(self, other):
            return constexpr(op(self.value, _plain(other)))

        def backward(self, other):
            return constexpr(op(_plain(other), self.value))

        return forward, backward

    for name in "add sub mul truediv floordiv mod pow lshift rshift and or xor".split():
        forward, backward = binary(getattr(_operator, f"__{name}__"))
        setattr(constexpr, f"__{name}__", forward)
        setattr(constexpr, f"__r{name}__", backward)
    for name in "lt le gt ge eq ne".split():
        setattr(constexpr, f"__{name}__", binary(getattr(_operator, name))[0])
    for name in "neg pos invert".split():
        op = getattr(_operator, f"__{name}__")
        setattr(constexpr, f"__{name}__", lambda self, op=op: constexpr(op(self.value)))


_add_operators()

# ---------------------------------------------------------------------------------------------------------------------
# Types
# ---------------------------------------------------------------------------------------------------------------------


class dtype(base_type):
    """The type of one element: ``tl.float16``, ``tl.int32``, ``tl.pointer_type(tl.float32)``, …

    ``name`` is the short name (``fp16``, ``int32``), ``primitive_bitwidth`` the width in bits, ``itemsize`` the size in
    bytes. All of these, and the ``is_*`` questions, are usable at compile time inside kernels.
    """

    SINT_TYPES = ("int8", "int16", "int32", "int64")
    UINT_TYPES = ("int1", "uint8", "uint16", "uint32", "uint64")
    FP_TYPES = ("fp8e4b15", "fp8e4nv", "fp8e4b8", "fp8e5", "fp8e5b16", "fp16", "bf16", "fp32", "fp64")
    STANDARD_FP_TYPES = ("fp16", "bf16", "fp32", "fp64")
    OTHER_TYPES = ("void",)

    class SIGNEDNESS(_enum.IntEnum):
        """``int_signedness`` of an integer type."""

        SIGNED = 0
        UNSIGNED = 1

    class KIND(_enum.IntEnum):
        """What :meth:`kind` gives: of two kinds the larger is that of a sum."""

        BOOLEAN = 0
        INTEGRAL = 1
        FLOATING = 2

    def __init__(self, name):
        name = _plain(name)
        if name not in _SCALAR_TYPES:
            raise ValueError(f"unknown dtype {name!r}; known are {', '.join(_SCALAR_TYPES)}")
        self.name = name
        self.primitive_bitwidth, floating = _SCALAR_TYPES[name]
        self.itemsize = self.primitive_bitwidth // 8
        if floating:
            self.fp_mantissa_width, self.exponent_bias = floating
        elif name != "void":
            self.int_bitwidth = self.primitive_bitwidth
            signed = name in self.SINT_TYPES
            self.int_signedness = self.SIGNEDNESS.SIGNED if signed else self.SIGNEDNESS.UNSIGNED

    def is_fp8(self):
        """One of the 8-bit floats."""
        return "fp8" in self.name

    def is_fp8e4nv(self):
        """``tl.float8e4nv``"""
        return self.name == "fp8e4nv"

    def is_fp8e4b8(self):
        """``tl.float8e4b8``"""
        return self.name == "fp8e4b8"

    def is_fp8e4b15(self):
        """``tl.float8e4b15``"""
        return self.name == "fp8e4b15"

    def is_fp8e5(self):
        """``tl.float8e5``"""
        return self.name == "fp8e5"

    def is_fp8e5b16(self):
        """``tl.float8e5b16``"""
        return self.name == "fp8e5b16"

    def is_fp16(self):
        """``tl.float16``"""
        return self.name == "fp16"

    def is_bf16(self):
        """``tl.bfloat16``"""
        return self.name == "bf16"

    def is_fp32(self):
        """``tl.float32``"""
        return self.name == "fp32"

    def is_fp64(self):
        """``tl.float64``"""
        return self.name == "fp64"

    def is_floating(self):
        """Any floating-point type."""
        return self.name in self.FP_TYPES

    def is_standard_floating(self):
        """16 bits or wider."""
        return self.name in self.STANDARD_FP_TYPES

    def is_int(self):
        """Any integer, booleans included."""
        return "int" in self.name

    def is_int_signed(self):
        """A signed integer."""
        return self.name.startswith("int") and self.name != "int1"

    def is_int_unsigned(self):
        """An unsigned integer; booleans count as unsigned."""
        return self.name.startswith("uint") or self.name == "int1"

    def is_bool(self):
        """``tl.int1``"""
        return self.name == "int1"

    is_int1 = is_bool

    def is_int8(self):
        """``tl.int8``"""
        return self.name == "int8"

    def is_int16(self):
        """``tl.int16``"""
        return self.name == "int16"

    def is_int32(self):
        """``tl.int32``"""
        return self.name == "int32"

    def is_int64(self):
        """``tl.int64``"""
        return self.name == "int64"

    def is_uint8(self):
        """``tl.uint8``"""
        return self.name == "uint8"

    def is_uint16(self):
        """``tl.uint16``"""
        return self.name == "uint16"

    def is_uint32(self):
        """``tl.uint32``"""
        return self.name == "uint32"

    def is_uint64(self):
        """``tl.uint64``"""
        return self.name == "uint64"

    def is_void(self):
        """No value."""
        return self.name == "void"

    def is_ptr(self):
        """A pointer."""
        return False

    def is_block(self):
        """A tensor type."""
        return False

    def is_const(self):
        """A pointer that may not be stored through."""
        return False

    def is_tuple(self):
        """The type of a tuple."""
        return False

    @staticmethod
    def is_dtype(type_str):
        """Whether a name is that of a dtype (``fp32``, ``int8``)."""
        return type_str in _SCALAR_TYPES

    def kind(self):
        """A :class:`KIND`: a boolean, an integer or a float.

        :raises TypeError: it is none of them.
        """
        if self.is_bool():
            return self.KIND.BOOLEAN
        if self.is_int():
            return self.KIND.INTEGRAL
        if self.is_floating():
            return self.KIND.FLOATING
        raise TypeError(f"{self} has no kind: numbers have one")

    def get_int_max_value(self):
        """The largest value of an integer type.

        :raises TypeError: it is no integer type.
        """
        return self._int_range()[1]

    def get_int_min_value(self):
        """The smallest value of an integer type.

        :raises TypeError: it is no integer type.
        """
        return self._int_range()[0]

    def _int_range(self):
        if not self.is_int():
            raise TypeError(f"{self} is no integer type")
        bits = self.int_bitwidth
        if self.int_signedness == self.SIGNEDNESS.SIGNED:
            return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
        return 0, 2**bits - 1

    def codegen_name(self):
        """The name that the language has for it (``float32``)."""
        long = {"fp": "float", "bf": "bfloat"}.get(self.name[:2])
        return long + self.name[2:] if long else self.name

    @property
    def scalar(self):
        """The type of one element."""
        return self

    @property
    def short_name(self):
        """The name that signatures use (``fp16``, ``i32``, ``u8``)."""
        return self.name.replace("uint", "u").replace("int", "i")

    def to(self, *args, **kwargs):
        """A type cannot be converted: write ``x.to(dtype)``."""
        raise AttributeError("a dtype has no `to`; write x.to(dtype)")

    def __eq__(self, other):
        other = _plain(other)
        return type(other) is dtype and self.name == other.name

    def __hash__(self):
        return hash((dtype, self.name))

    def __str__(self):
        return self.name

    def __repr__(self):
        # An expression, as in Triton: PyTorch writes it into programs.
        return f"triton.language.{self.codegen_name()}"

    def __reduce__(self):
        return (dtype, (self.name,))


class pointer_type(dtype):
    """A pointer to ``element_ty`` in the given address space (1 is global memory)."""

    def __init__(self, element_ty, address_space=1, const=False):
        element_ty = _plain(element_ty)
        if not isinstance(element_ty, dtype):
            raise TypeError(f"a pointer needs the dtype that it points to, not {type(element_ty).__name__}")
        self.element_ty = element_ty
        self.address_space = address_space
        self.const = const
        self.name = f"pointer<{element_ty}>"
        self.primitive_bitwidth = 64
        self.itemsize = 8

    def is_int(self):
        """A pointer is no integer."""
        return False

    def is_int_signed(self):
        """A pointer is no integer."""
        return False

    def is_int_unsigned(self):
        """A pointer is no integer."""
        return False

    def is_floating(self):
        """A pointer is no float."""
        return False

    def is_fp8(self):
        """A pointer is no float."""
        return False

    def is_ptr(self):
        """A pointer."""
        return True

    def is_const(self):
        """May not be stored through."""
        return self.const

    def __eq__(self, other):
        other = _plain(other)
        return (
            isinstance(other, pointer_type)
            and self.element_ty == other.element_ty
            and self.address_space == other.address_space
            and self.const == other.const
        )

    def __hash__(self):
        return hash((pointer_type, self.element_ty, self.address_space, self.const))

    def __repr__(self):
        return f"tl.pointer_type({self.element_ty!r})"

    def __reduce__(self):
        return (pointer_type, (self.element_ty, self.address_space, self.const))


class block_type(dtype):
    """The type of a tensor: an element type and a shape."""

    def __init__(self, element_ty, shape):
        self.element_ty = _plain(element_ty)
        self.shape = [_plain(extent) for extent in shape]
        self.numel = 1
        for extent in self.shape:
            self.numel *= extent
        self.name = f"<{self.shape}, {self.element_ty}>"
        self.primitive_bitwidth = self.element_ty.primitive_bitwidth
        self.itemsize = self.element_ty.itemsize

    def is_block(self):
        """A tensor type."""
        return True

    def get_block_shapes(self):
        """The shape."""
        return self.shape

    @property
    def scalar(self):
        """The type of one element."""
        return self.element_ty

    def __eq__(self, other):
        return isinstance(other, block_type) and (self.element_ty, self.shape) == (
            other.element_ty,
            other.shape,
        )

    def __hash__(self):
        return hash((block_type, self.element_ty, tuple_of_python(self.shape)))

    def __repr__(self):
        return f"tl.block_type({self.element_ty!r}, {self.shape})"


class constexpr_type(base_type):
    """The type of a compile-time constant: its value."""

    def __init__(self, value):
        self.value = _plain(value)

    def __eq__(self, other):
        return isinstance(other, constexpr_type) and self.value == other.value

    def __hash__(self):
        return hash((constexpr_type, self.value))

    def __repr__(self):
        return f"constexpr_type[{self.value}]"


class tuple_type(base_type):
    """The types of a tuple's elements, and the names of its fields if it has some."""

    def __init__(self, types, fields=None):
        self.types = types
        self.fields = fields or [""] * len(types)
        self.name = "[" + ", ".join(f"{f}:{t}" if f else str(t) for f, t in zip(self.fields, types)) + "]"

    def __eq__(self, other):
        return isinstance(other, tuple_type) and (self.types, self.fields) == (other.types, other.fields)

    def __hash__(self):
        return hash((tuple_type, self.name))

    def __iter__(self):
        return iter(self.types)

    def __getitem__(self, index):
        return self.types[index]

    def __repr__(self):
        return f"tuple_type({self.types})"


class tensor_descriptor_type(base_type):
    """The type of a descriptor: that of the block in which it is accessed, and those of its tensor's extents and strides."""

    def __init__(self, block_type, shape_type, strides_type):
        self.block_type = block_type
        self.shape_type = shape_type
        self.strides_type = strides_type

    def __eq__(self, other):
        return isinstance(other, tensor_descriptor_type) and vars(self) == vars(other)

    def __hash__(self):
        return hash((tensor_descriptor_type, self.block_type))

    def __repr__(self):
        return f"tensor_descriptor<{self.block_type!r}>"


tuple_of_python = tuple


class const:
    """As an annotation of a pointer parameter: the kernel does not store through it."""


void = dtype("void")
int1 = dtype("int1")
int8 = dtype("int8")
int16 = dtype("int16")
int32 = dtype("int32")
int64 = dtype("int64")
uint8 = dtype("uint8")
uint16 = dtype("uint16")
uint32 = dtype("uint32")
uint64 = dtype("uint64")
float8e5 = dtype("fp8e5")
float8e5b16 = dtype("fp8e5b16")
float8e4nv = dtype("fp8e4nv")
float8e4b8 = dtype("fp8e4b8")
float8e4b15 = dtype("fp8e4b15")
float16 = dtype("fp16")
bfloat16 = dtype("bf16")
float32 = dtype("fp32")
float64 = dtype("fp64")
pi32_t = pointer_type(int32)

_BY_SIGNATURE = {
    "u1": int1,
    "i1": int1,
    **{f"i{bits}": dtype(f"int{bits}") for bits in (8, 16, 32, 64)},
    **{f"u{bits}": dtype(f"uint{bits}") for bits in (8, 16, 32, 64)},
    **{name: dtype(name) for name in dtype.FP_TYPES},
}


@constexpr_function
def str_to_ty(name, c=None):
    """The type by its spelling in a signature: ``fp16``, ``i32``, ``*fp32``, ``*ki8`` (memory that is only read).

    :param c: the value, for ``constexpr``.
    """
    if name.startswith("*"):
        const = name.startswith("*k")
        return pointer_type(str_to_ty(name[2 if const else 1 :]), const=const)
    if name == "constexpr":
        return constexpr_type(c)
    if name not in _BY_SIGNATURE:
        raise ValueError(
            f"signatures have no type {name!r}; known are {', '.join(_BY_SIGNATURE)}, and * for pointers to them"
        )
    return _BY_SIGNATURE[name]


@constexpr_function
def get_int_dtype(bitwidth, signed):
    """The integer dtype of a width in bits (1, 8, 16, 32, 64) and signedness."""
    if bitwidth == 1:
        return int1
    return dtype(("int" if signed else "uint") + str(int(bitwidth)))


class PropagateNan:
    """What ``minimum``, ``maximum`` and ``clamp`` do when one operand is NaN: ``NONE`` gives the other one, ``ALL`` NaN."""

    NONE = 0
    ALL = 0xFFFF


class tensor(base_value):
    """A block of values, or one value, inside a kernel.

    ``shape`` is a tuple of compile-time integers, ``dtype`` the element type, ``type`` the whole type, ``numel`` the
    number of elements, ``T`` the transpose of a matrix. Functions that are also methods are listed as attributes.
    """


class tensor_descriptor_base(base_value):
    """A descriptor, whoever made it."""


class tensor_descriptor(tensor_descriptor_base):
    """A tensor in memory with its shape, strides and the block in which it is accessed: what
    :func:`make_tensor_descriptor` makes, and what a ``TensorDescriptor`` of the host is in a kernel.

    ``shape`` and ``strides`` are run-time numbers, ``block_shape``, ``block_type`` and ``dtype`` compile-time ones.
    """

    def load(self, offsets):
        """The block at ``offsets``. What lies outside of the tensor reads as zero, or NaN where the descriptor says so."""

    def store(self, offsets, value):
        """Stores a block at ``offsets``. What lies outside of the tensor is not stored.

        A GPU's tensor memory accelerator stops a kernel that stores, adds, … at a negative offset; loads may begin there.
        """

    def atomic_add(self, offsets, value):
        """Adds a block to what lies at ``offsets``. Integers of 32 and 64 bits, float16, bfloat16, float32."""

    def atomic_min(self, offsets, value):
        """Keeps the smaller of a block and what lies at ``offsets``. Integers of 32 and 64 bits; float16 and bfloat16 on
        GPUs with a tensor memory accelerator."""

    def atomic_max(self, offsets, value):
        """Keeps the larger; as :meth:`atomic_min`."""

    def atomic_and(self, offsets, value):
        """Bitwise and. Integers of 32 and 64 bits."""

    def atomic_or(self, offsets, value):
        """Bitwise or. Integers of 32 and 64 bits."""

    def atomic_xor(self, offsets, value):
        """Bitwise exclusive or. Integers of 32 and 64 bits."""

    def gather(self, x_offsets, y_offset):
        """Of the rows ``x_offsets`` of a matrix, the columns from ``y_offset`` on. The descriptor's block is one row
        (``[1, columns]`` of at least 32 bytes), and there are at least 8 rows."""

    def scatter(self, value, x_offsets, y_offset):
        """Stores to the rows ``x_offsets`` from the column ``y_offset`` on; as :meth:`gather`."""


def _aggregate(cls):
    """Marks a class whose instances are compounds of values inside kernels.

    The annotations are its fields and say of which class each is (``tensor``, ``constexpr``, another such class, ``A | B``). ``__init__``
    sets them all. Methods with ``@jit`` are code of the kernel; those with ``@constexpr_function`` and plain ones run when the kernel
    is compiled, and plain ones may set fields.
    """

    def make(*args, **kwargs):
        raise KernelOnlyError(f"{cls.__name__} can only be made inside a kernel")

    cls.__new__ = make
    cls.__triton_aggregate__ = True
    return cls


class tuple(base_value):
    """A tuple of values inside a kernel. Python's own ``(a, b)`` makes one."""

    def __init__(self, args):
        self.values = list(args)


class slice:
    """``a:b`` inside brackets. Only ``:`` is useful: it keeps a dimension in ``x[:, None]``."""

    def __init__(self, start=None, stop=None, step=None):
        self.start, self.stop, self.step = start, stop, step


class range:
    """A loop at run time with advice for the compiler: ``for i in tl.range(start, stop, step, num_stages=3)``.

    ``num_stages`` is the depth of software pipelining of this loop, ``loop_unroll_factor`` how many
    iterations become one, on GPUs (what is left over runs in a loop of its own), ``disable_licm`` keeps in the loop what every iteration computes alike, ``flatten`` lets the loads of
    the loop inside this one go on from one of its runs to the next, ``warp_specialize`` gives loading and computing to
    different warps. The last two work where loads go through tensor descriptors by TMA (sm_90); where they change nothing a remark
    of the kernel (``metadata.remarks``, ``tilewright inspect``) says why. ``num_stages`` is 0 to 64, ``loop_unroll_factor`` 1 to 1024.
    ``disallow_acc_multi_buffer`` is for GPUs that keep accumulators in buffers (sm_100); in registers there is always one.
    """

    def __init__(
        self,
        arg1,
        arg2=None,
        step=None,
        num_stages=None,
        loop_unroll_factor=None,
        disallow_acc_multi_buffer=False,
        flatten=False,
        warp_specialize=False,
        disable_licm=False,
    ):
        self.start, self.end = (0, arg1) if arg2 is None else (arg1, arg2)
        self.step = 1 if step is None else step
        self.num_stages, self.loop_unroll_factor = num_stages, loop_unroll_factor
        self.disallow_acc_multi_buffer, self.flatten = disallow_acc_multi_buffer, flatten
        self.warp_specialize, self.disable_licm = warp_specialize, disable_licm


class static_range:
    """A loop that is unrolled at compile time; its variable is a constant in each copy of the body."""

    def __init__(self, arg1, arg2=None, step=None):
        self.start, self.end = (0, arg1) if arg2 is None else (arg1, arg2)
        self.step = 1 if step is None else step


class condition:
    """The condition of a ``while`` loop with advice for the compiler: ``while tl.condition(i < n, disable_licm=True)``.

    ``disable_licm`` keeps in the loop what every iteration computes alike.
    """

    def __init__(self, arg1, disable_licm=False):
        self.condition, self.disable_licm = arg1, disable_licm


def member(fn):
    """Makes a function of the language a method of :class:`tensor` too."""
    setattr(tensor, fn.__name__, fn)
    return fn


# ---------------------------------------------------------------------------------------------------------------------
# Programming model
# ---------------------------------------------------------------------------------------------------------------------


@builtin
def program_id(axis):
    """The index of this program in the grid along ``axis`` (0, 1 or 2, a constant), as int32."""


@builtin
def num_programs(axis):
    """The size of the grid along ``axis`` (0, 1 or 2, a constant), as int32."""


@builtin
def warp_id():
    """The number of the warp among those of its program, 0 to :func:`num_warps` - 1, as int32.

    In warp-level kernels (``@jit(warp_level=True)``) alone: in others each value is one of all warps together.
    """


@builtin
def num_warps():
    """How many warps run a program (the launch option ``num_warps``) or, within it, a partition: a constant."""


@builtin
def to_tensor(x):
    """``x`` as a run-time scalar if it is a Python number: bool to int1, int to the narrowest of int32, uint32, int64,
    uint64 that holds it, float to float32 (float64 where float32 has no such exponent). A tensor is returned as it is."""


# ---------------------------------------------------------------------------------------------------------------------
# Creation
# ---------------------------------------------------------------------------------------------------------------------


@builtin
def arange(start, end):
    """``[start, start + 1, …, end - 1]`` as int32, shape ``[end - start]``.

    Both bounds are compile-time integers with ``end > start``. Unlike Triton's, the length need not be a power of two.
    """


@builtin
def full(shape, value, dtype):
    """A block of ``shape`` with ``value`` (a number or a run-time scalar, converted to ``dtype``) in every element."""


@builtin
def cat(input, other, can_reorder=False, dim=0):
    """The elements of ``input``, then those of ``other`` along ``dim``: two blocks of one shape and dtype. With ``can_reorder`` those of two
    1-D blocks, of any extents, are in one block in an order of the compiler's choice, which costs less: for what is
    reduced."""


# ---------------------------------------------------------------------------------------------------------------------
# Shape
# ---------------------------------------------------------------------------------------------------------------------


@builtin
def broadcast(input, other):
    """Both blocks at their common shape, as a tuple."""


@member
@builtin
def broadcast_to(input, *shape):
    """``input`` repeated to ``shape``, which has the same rank and differs only where ``input`` has extent 1."""


@member
@builtin
def trans(input, *dims):
    """The dimensions in the order ``dims``; without ``dims`` the last two are exchanged."""


@member
@builtin
def permute(input, *dims):
    """The dimensions in the order ``dims``, a permutation of ``0 … rank - 1``."""


@builtin
def join(a, b):
    """Two blocks of one (broadcast) shape side by side in a new last dimension of extent 2."""


@member
@builtin
def split(a):
    """The two halves of a block along its last dimension, which must have extent 2: the inverse of :func:`join`."""


@member
@builtin
def view(input, *shape):
    """The elements in a block of another shape, in an order of the compiler's choice. Prefer :func:`reshape`."""


@member
@builtin
def reshape(input, *shape, can_reorder=False):
    """The elements in row-major order in a block of another shape with as many elements. With ``can_reorder`` the
    compiler may choose any order."""


@member
@builtin
def expand_dims(input, axis):
    """A new dimension of extent 1 before position ``axis`` (several for a tuple), which may be negative."""


@member
@builtin
def item(input):
    """The only element of a block with one element, as a scalar."""


@member
@builtin
def cast(input, dtype, fp_downcast_rounding=None, bitcast=False):
    """``input`` converted to ``dtype``.

    Floats go to narrower floats with rounding to nearest even, or ``fp_downcast_rounding="rtz"`` (toward zero); to
    integers toward zero. Integers wrap. Anything to ``int1`` compares with zero. With ``bitcast`` the bits are kept; the widths must be the same.
    """


@member
@builtin
def to(input, dtype, fp_downcast_rounding=None, bitcast=False):
    """The same as :func:`cast`, as a method."""


# ---------------------------------------------------------------------------------------------------------------------
# Linear algebra
# ---------------------------------------------------------------------------------------------------------------------


@builtin
def dot(
    input,
    other,
    acc=None,
    input_precision=None,
    allow_tf32=None,
    max_num_imprecise_acc=None,
    out_dtype=float32,
    tiling=None,
):
    """The matrix product ``input @ other (+ acc)`` of shapes ``[M, K]`` and ``[K, N]``, or ``[B, M, K]`` and ``[B, K, N]``.

    Both operands have one dtype: float16, bfloat16, float32, float64, int8, or both are 8-bit floats. The result is int32 for
    int8, float64 for float64, ``out_dtype`` (float32 or float16) for float16 and 8-bit floats, float32 otherwise; ``acc``
    has that dtype and the result's shape. ``input_precision`` says how float32 operands are multiplied: ``"tf32"``
    (default), ``"tf32x3"`` or ``"ieee"``; ``allow_tf32`` is its old spelling. ``max_num_imprecise_acc`` bounds how many
    products of 8-bit floats are added at reduced precision.

    ``tiling`` says how the warps divide the result among each other: ``"horizontal"``, each whole rows; ``"vertical"``, each whole columns;
    ``"square"``, each a part about as high as wide. The layouts of all other tensors follow, values don't change. It is an error on a
    GPU where there are fewer tiles of an instruction than warps along a dimension. Where the warps of a group can't lie so (``wgmma`` has them
    one below the other) the product is done by each warp on its own (``mma.sync``).
    """


@builtin
def dot_scaled(
    lhs,
    lhs_scale,
    lhs_format,
    rhs,
    rhs_scale,
    rhs_format,
    acc=None,
    fast_math=False,
    lhs_k_pack=True,
    rhs_k_pack=True,
    out_dtype=float32,
):
    """The matrix product of ``lhs`` and ``rhs`` times their scales (``+ acc``), of microscaling formats.

    ``lhs`` is ``[M, K]`` and ``rhs`` ``[K, N]``, or batches of such. A format says what the elements of an operand are: ``"e4m3"``,
    ``"e5m2"`` (float8e4nv, float8e5, or uint8 with their bits), ``"bf16"``, ``"fp16"`` (or uint16 with their bits), or ``"e2m1"``: uint8
    with two elements each, the first in the low bits, along K or, without ``lhs_k_pack`` (``rhs_k_pack``), along M (N).

    ``lhs_scale`` is ``[M, K // 32]`` and ``rhs_scale`` ``[N, K // 32]`` of uint8, each an exponent with bias 127 (e8m0) for 32 elements along
    K; or ``[M, K // 16]`` and ``[N, K // 16]`` of float8e4nv; or None. Elements are converted to float16 if one operand is fp16 and to
    bfloat16 otherwise, multiplied by their scales in that type, and then as by :func:`dot`. With the scale 255 they are NaN; ``fast_math``
    leaves that out. The result and ``acc`` are float32, or with fp16 operands float16 if ``out_dtype`` says so.
    """


# ---------------------------------------------------------------------------------------------------------------------
# Memory
# ---------------------------------------------------------------------------------------------------------------------


@builtin
def alloc(shape, dtype):
    """A buffer in shared memory that all warps of the program see, laid out for what is done with it.

    :func:`load` and :func:`store` with the buffer instead of pointers move all of it; ``slot``, ``subslice`` and ``reshape`` are views of it,
    as of those of ``tle.gpu.alloc``. In a warp-level kernel nothing orders what different warps do to it but :func:`barrier`.
    """


@builtin
def load(
    pointer,
    mask=None,
    other=None,
    boundary_check=(),
    padding_option="",
    cache_modifier="",
    eviction_policy="",
    volatile=False,
):
    """The values that ``pointer`` (one pointer or a block of pointers) points at, in its shape.

    Where ``mask`` (int1, broadcast to the shape of ``pointer``) is false nothing is read and the value is ``other``
    (converted to the element type), or undefined without it. ``cache_modifier`` is ``""``, ``".ca"``, ``".cg"`` or ``".cv"``,
    ``eviction_policy`` is ``""``, ``"evict_first"`` or ``"evict_last"`` (PTX ISA, cache operators and eviction priorities).
    ``boundary_check`` (dimensions) and ``padding_option`` (``"zero"``, ``"nan"``) are for block pointers. Priorities are those in L1, and those in L2 where
    the load becomes an asynchronous copy or ``cache_modifier`` names another cache. Volatile loads, and those with ``".cv"``, are made where they stand.
    """


@member
@builtin
def store(pointer, value, mask=None, boundary_check=(), cache_modifier="", eviction_policy=""):
    """Writes ``value`` (converted to the element type, broadcast to the shape of ``pointer``) where ``mask`` is true.

    ``cache_modifier`` is ``""``, ``".wb"``, ``".cg"``, ``".cs"`` or ``".wt"``; ``eviction_policy`` as in :func:`load`.
    ``boundary_check`` is for block pointers.
    """


@builtin
def make_block_ptr(base, shape, strides, offsets, block_shape, order):
    """A pointer to a block of ``block_shape`` at ``offsets`` inside a tensor in memory with ``shape`` and ``strides`` (in
    elements). ``order`` lists the dimensions from the fastest-varying one; it is advice."""


@must_use_result("tl.advance changes nothing: assign what it gives to the variable of the block pointer.")
@member
@builtin
def advance(base, offsets):
    """The block pointer moved by ``offsets`` (one integer a dimension)."""


@builtin
def make_tensor_descriptor(base, shape, strides, block_shape, padding_option="zero"):
    """A :class:`tensor_descriptor` of a tensor in memory: ``desc.load(offsets)`` and ``desc.store(offsets, value)`` move
    blocks of ``block_shape``, whose last extent has at least 16 bytes. What lies outside of ``shape`` reads as zero (NaN
    with ``padding_option="nan"``) and is not written. ``base`` and all strides (in elements) but the last are multiples
    of 16 bytes; the last stride is the constant 1."""


@builtin
def load_tensor_descriptor(desc, offsets):
    """The block of a tensor descriptor at ``offsets``; the same as ``desc.load(offsets)``."""


@builtin
def store_tensor_descriptor(desc, offsets, value):
    """Stores a block through a tensor descriptor at ``offsets``; the same as ``desc.store(offsets, value)``."""


# ---------------------------------------------------------------------------------------------------------------------
# Atomics
# ---------------------------------------------------------------------------------------------------------------------
#
# All return the old values. `sem` is "relaxed", "acquire", "release" or "acq_rel" (default), `scope` "gpu" (default),
# "cta" or "sys". Elements whose mask is false are not touched and their result is undefined.


@member
@builtin
def atomic_cas(pointer, cmp, val, sem=None, scope=None):
    """Stores ``val`` where memory equals ``cmp``. Elements of 16, 32 or 64 bits."""


@member
@builtin
def atomic_xchg(pointer, val, mask=None, sem=None, scope=None):
    """Stores ``val``."""


@member
@builtin
def atomic_add(pointer, val, mask=None, sem=None, scope=None):
    """Adds ``val``: integers of 32 or 64 bits, float16, bfloat16, float32, float64."""


@member
@builtin
def atomic_max(pointer, val, mask=None, sem=None, scope=None):
    """Stores the larger of memory and ``val``: integers of 32 or 64 bits, float32, float64."""


@member
@builtin
def atomic_min(pointer, val, mask=None, sem=None, scope=None):
    """Stores the smaller of memory and ``val``: integers of 32 or 64 bits, float32, float64."""


@member
@builtin
def atomic_and(pointer, val, mask=None, sem=None, scope=None):
    """Stores ``memory & val``; integers of 32 or 64 bits."""


@member
@builtin
def atomic_or(pointer, val, mask=None, sem=None, scope=None):
    """Stores ``memory | val``; integers of 32 or 64 bits."""


@member
@builtin
def atomic_xor(pointer, val, mask=None, sem=None, scope=None):
    """Stores ``memory ^ val``; integers of 32 or 64 bits."""


# ---------------------------------------------------------------------------------------------------------------------
# Elementwise
# ---------------------------------------------------------------------------------------------------------------------


@builtin
def where(condition, x, y):
    """``x`` where ``condition`` is true, else ``y``; all three broadcast. Both are evaluated: to keep a load from happening
    give it a mask. ``x`` and ``y`` are promoted to one dtype; they may be pointers."""


@builtin
def add(x, y, sanitize_overflow=True):
    """``x + y``"""


@builtin
def sub(x, y, sanitize_overflow=True):
    """``x - y``"""


@builtin
def mul(x, y, sanitize_overflow=True):
    """``x * y``"""


@member
@builtin
def logical_and(input, other):
    """Whether neither is zero, elementwise, as int1."""


@member
@builtin
def logical_or(input, other):
    """Whether one is not zero, elementwise, as int1."""


@builtin
def minimum(x, y, propagate_nan=PropagateNan.NONE):
    """The smaller of two, elementwise; see :class:`PropagateNan`."""


@builtin
def maximum(x, y, propagate_nan=PropagateNan.NONE):
    """The larger of two, elementwise; see :class:`PropagateNan`."""


@builtin
def clamp(x, min, max, propagate_nan=PropagateNan.NONE):
    """``x`` limited to ``[min, max]``, elementwise; floats only. Undefined where ``min > max``."""


# ---------------------------------------------------------------------------------------------------------------------
# Reductions and scans
# ---------------------------------------------------------------------------------------------------------------------


@member
@builtin
def reduce(input, axis, combine_fn, keep_dims=False, cross_warp=False, dst_warps=None):
    """Combines the elements along ``axis`` (all elements for ``None``) in an order of the compiler's choice.

    ``input`` is a block or a tuple of blocks of one shape; ``combine_fn``, a jit function, takes the values of two
    elements (``a0, a1, …, b0, b1, …``) and returns as many as one element has. It must be associative and commutative. The
    result has ``axis`` removed, or of extent 1 with ``keep_dims``.

    In a warp-level kernel that is the reduction of the warp's own block. With ``cross_warp`` its results are then combined over all
    warps of the program, in their order; ``axis=None`` leaves out the first part, so that each element is combined with those in its
    place in the other warps. ``combine_fn`` is called with whole blocks for that, and all warps wait for each other. ``dst_warps``, a
    number or a tuple of such, names the warps that get the result; the others keep what they had.
    """


@member
@builtin
def associative_scan(input, axis, combine_fn, reverse=False):
    """All partial combinations along ``axis``, the first element alone first; from the end with ``reverse``.
    ``combine_fn`` as in :func:`reduce`, but it need not be commutative."""


@member
@builtin
def histogram(input, num_bins, mask=None):
    """How often each of ``0 … num_bins - 1`` occurs in a 1-D integer block, as int32 of shape ``[num_bins]``."""


@member
@builtin
def gather(src, index, axis):
    """``src`` taken at ``index`` along ``axis``: the result has the shape of ``index``, which equals that of ``src``
    elsewhere. An index that names no element is an error on the CPU executor and in the simulator, whether or not a mask leaves the
    element out later (``other=0`` of the index's load is an index that is there); on a GPU it gives any element."""


# ---------------------------------------------------------------------------------------------------------------------
# Advice to the compiler
# ---------------------------------------------------------------------------------------------------------------------


@builtin
def barrier():
    """All threads of the program, or of the partition, wait for each other, and see what the others have written before.

    It is for stores and loads of global memory through different arguments that lead to one tensor, for two stores in a row to one place, for an atomic
    operation and itself in the next iteration of a loop, and, with ``num_ctas``, for what another CTA of the program has stored or changed. Other loads, stores and
    atomic operations through one argument are in the program's order without (in a warp-level kernel those of a warp). A stride that is known at run time only is
    taken to step over all that is beside it; and a ``while`` loop that loads a scalar, or a volatile value, on which depends how often it turns, has no barrier
    inside unless it stores by the same pointer.

    Where some warps may not come to it, as in a branch on :func:`warp_id`, it is an error.
    """


@builtin
def debug_barrier():
    """The same as :func:`barrier`."""


@builtin
def multiple_of(input, values):
    """Promises that the first value of each run of contiguous ones is a multiple of ``values`` (one a dimension), of pointers in bytes.

    The promise, like those of :func:`max_contiguous` and :func:`max_constancy`, is of what the function gives, where that is used; of an argument of the kernel, outside of
    branches and loops, for all of the kernel."""


@builtin
def max_contiguous(input, values):
    """Promises that values come in runs of ``values`` (one a dimension) contiguous ones."""


@builtin
def max_constancy(input, values):
    """Promises that values come in runs of ``values`` (one a dimension) equal ones."""


@builtin
def assume(cond):
    """Promises that the scalar ``cond`` is true where this runs, which the compiler builds on: ``tl.assume(stride % 16 == 0)``
    lets a thread take several elements at once from addresses made of ``stride``. The CPU executor checks it."""


# ---------------------------------------------------------------------------------------------------------------------
# Debugging
# ---------------------------------------------------------------------------------------------------------------------


@builtin
def static_print(*values, sep=" ", end="\n", file=None, flush=False):
    """Prints while the kernel is compiled."""


@builtin
def static_assert(cond, msg=""):
    """Stops the compilation with ``msg`` unless the constant ``cond`` is true."""


@builtin
def device_print(prefix, *args, hex=False):
    """Prints the constant string ``prefix`` and the values of the arguments while the kernel runs."""


@builtin
def device_assert(cond, msg="", mask=None):
    """Stops the kernel with ``msg`` where ``cond`` is false (and ``mask`` true), if it was compiled for debugging."""


def extern(fn):
    """Marks a function that reaches a function of a device library by :func:`extern_elementwise`.

    It is compiled like one decorated with ``@jit``; its parameter ``_semantic`` (or ``_builder``) is ``None``.
    """
    from ..runtime.jit import JITFunction

    return JITFunction(fn)


@builtin
def extern_elementwise(
    lib_name, lib_path, args, arg_type_symbol_dict, is_pure, _semantic=None, _builder=None
):
    """Calls a function of a device library for each element of the tensors ``args``, which are broadcast.

    ``arg_type_symbol_dict`` is ``{(dtype, …): (symbol, dtype of the result)}``, written in the call; the dtypes of the
    arguments choose the entry. ``lib_path`` is a file of LLVM bitcode, or of its text, that has the symbol; without it,
    the symbol is one of libdevice (``__nv_…``) or an intrinsic of LLVM (``llvm.…``). What is not pure is called as often,
    and in the order, as it stands there. The CPU executor has the functions of libdevice alone.
    """


@builtin
def inline_asm_elementwise(asm, constraints, args, dtype, is_pure, pack):
    """The result of target assembly (PTX) for each element of the tensors ``args``, ``pack`` elements at a time.

    ``constraints`` are LLVM's, outputs first (``"=r,r"``); ``$0`` is the first of them. ``dtype`` is that of the result, or a
    tuple of them for several results. ``is_pure``: it has no side effects. On the CPU executor the
    simulator of PTX runs it: all that it knows but what asks which thread runs it or speaks to other threads.
    """


@builtin
def map_elementwise(scalar_fn, *args, pack=1):
    """``scalar_fn``, a jit function of scalars, of each element of the tensors ``args``, which are broadcast to one shape.

    Unlike tensors, scalars can branch: where :func:`where` computes both sides, an ``if`` in ``scalar_fn`` computes one. It
    may compute, branch and loop, but not touch memory. What it returns are the elements of the results: one, or a tuple for several.

    With ``pack`` it gets that many elements of each tensor (the first tensor's, then the second's, …) and returns as many of each
    result. Which elements go together is not said.
    """
