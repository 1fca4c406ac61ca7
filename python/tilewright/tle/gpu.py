"""``tle.gpu``: buffers in shared memory, pointers into them, copies, barriers, and warps with roles."""

from ..language import _marker
from ..language import core as _core
from ..language._marker import explain_missing, not_supported_yet


class scope:
    """Where a buffer lies: :data:`smem` or :data:`tmem`."""

    def __init__(self, name):
        # The compiler knows it by its path, as it does functions.
        self.__name__ = self.__qualname__ = name
        self.__module__ = __name__

    def __repr__(self):
        return f"tle.gpu.{self.__name__}"

    def __reduce__(self):
        return self.__name__


#: Shared memory.
smem = scope("smem")
#: Tensor memory, which GPUs from sm_100 on have. Not supported yet.
tmem = scope("tmem")


class storage_kind(scope):
    """The scopes by another name: ``tle.gpu.storage_kind.smem`` is :data:`smem`."""

    smem = smem
    tmem = tmem


class layout:
    """How elements are arranged: what layouts have in common."""


class shared_layout(layout):
    """How a buffer in shared memory is arranged."""


class swizzled_shared_layout(shared_layout):
    """Rows whose groups of ``vectorSize`` elements are permuted: group ``g`` of row ``r`` lies at ``g ^ (r // perPhase) % maxPhase``.

    ``order`` names the dimensions from the fastest to the slowest. A kernel makes it, or takes it as a global or a ``tl.constexpr``. The arguments about CTAs are those of Triton's layouts; a kernel has buffers on one CTA only.
    """

    def __init__(
        self,
        vectorSize,
        perPhase,
        maxPhase,
        order,
        numCTAs=None,
        numCTAsPerCGA=None,
        numCTASplit=None,
        numCTAOrder=None,
    ):
        self.vectorSize, self.perPhase, self.maxPhase, self.order = vectorSize, perPhase, maxPhase, order
        self.numCTAs, self.numCTAsPerCGA = numCTAs, numCTAsPerCGA
        self.numCTASplit, self.numCTAOrder = numCTASplit, numCTAOrder

    @classmethod
    def make_default(cls, rank):
        """Row-major, with nothing permuted."""
        return cls(1, 1, 1, list(reversed(range(rank))))

    @_marker.constexpr_function
    def make_permute(self, dims):
        """The layout with ``order[dims[i]]`` as dimension number i of the order."""
        return type(self)(
            self.vectorSize, self.perPhase, self.maxPhase, tuple(self.order[dim] for dim in dims)
        )


class nv_mma_shared_layout(shared_layout):
    """The layout that Hopper's tensor cores and copy engine read: rows in slabs of 32, 64 or 128 bytes, as wide as ``shape`` allows, with groups of 16
    bytes permuted.

    ``shape`` and ``elemType`` are the two last extents and the dtype of the buffer. ``order`` is [1, 0] where its last dimension is contiguous, else [0, 1].
    ``swizzled=False`` puts groups of 16 bytes of all rows one behind the other, which the copy engine writes and reads, and :func:`wgmma` does not. ``fp4Padded``
    is not supported yet.
    """

    def __init__(
        self,
        shape,
        order,
        elemType,
        numCTAsPerCGA=None,
        numCTASplit=None,
        numCTAOrder=None,
        fp4Padded=False,
        swizzled=True,
    ):
        self.shape, self.order, self.elemType = tuple(shape), tuple(order), elemType
        self.numCTAsPerCGA, self.numCTASplit, self.numCTAOrder = numCTAsPerCGA, numCTASplit, numCTAOrder
        self.fp4Padded, self.swizzled = fp4Padded, swizzled

    @classmethod
    def make_default(cls, shape, elemType):
        """Of a buffer whose last dimension is contiguous."""
        return cls(list(shape)[-2:], [1, 0], elemType)


class BlockEncoding(layout):
    """A layout of a tensor: each thread has ``size_per_thread`` neighbouring elements, warps and the whole program are grids of these.

    Each is a list of a number for each dimension; ``order`` names the dimensions from the fastest to the slowest.
    """

    def __init__(self, size_per_thread, threads_per_warp, warps_per_cta, order, cga_layout=None):
        self.size_per_thread, self.threads_per_warp = tuple(size_per_thread), tuple(threads_per_warp)
        self.warps_per_cta, self.order, self.cga_layout = tuple(warps_per_cta), tuple(order), cga_layout


class MmaEncoding(layout):
    """The layout of what tensor cores add up: version 2 (``mma.sync``, ``instr_shape`` [16, 8]) or 3 (``wgmma``, [16, N, K])."""

    def __init__(self, version, warps_per_cta, instr_shape, cga_layout=None):
        self.version = (version, 0) if isinstance(version, int) else tuple(version)
        self.warps_per_cta, self.instr_shape, self.cga_layout = (
            tuple(warps_per_cta),
            tuple(instr_shape),
            cga_layout,
        )


class DotOperandEncoding(layout):
    """The layout of operand 0 or 1 of a product whose result has the layout ``parent``; ``k_width`` elements along K lie side by side in a register."""

    def __init__(self, operand_index, parent, k_width):
        self.operand_index, self.parent, self.k_width = operand_index, parent, k_width


class SlicedEncoding(layout):
    """The layout ``parent`` without its dimension ``dim``: that of a reduction along it."""

    def __init__(self, dim, parent):
        self.dim, self.parent = dim, parent


def _layout(maker, positional, named):
    # The layout that a kernel makes, by a class or its `make_default`.
    name, *attributes = maker.split(".")
    made_by = globals()[name]
    for attribute in attributes:
        made_by = getattr(made_by, attribute)
    return made_by(*positional, **dict(named))


class buffered_tensor:
    """A buffer in shared memory, or a view of one, as kernels have it: what :func:`alloc` gives.

    It has a ``shape`` and a ``dtype``. A view shares the memory of the buffer: no method but ``load``, ``store`` and ``insert_tile`` moves data.
    """

    @_marker.builtin
    def slot(self, stage):
        """Buffer number ``stage`` of those that the leading dimension counts; ``stage`` is a scalar, also at run time.

        The CPU executor reports one that is out of range.
        """

    @_marker.builtin
    def subslice(self, start, length, dim=-1):
        """The ``length`` elements from ``start`` on along ``dim``, both known at compile time."""

    @_marker.builtin
    @_marker.also(shape="tile_shape")
    def extract_tile(self, index, tile_shape):
        """A view of tile number ``index`` of the grid of tiles of ``tile_shape`` (also ``shape``); both as for ``tle.extract_tile``.

        One whose number is computed at run time is like any other view, but no field of a pipe; of a swizzled buffer it begins where a swizzle does.
        """

    @_marker.builtin
    def insert_tile(self, tile, index):
        """Stores a tensor in tile number ``index`` of the grid of tiles of its shape; the buffer itself."""

    @_marker.builtin
    def reshape(self, shape):
        """The same elements, in row-major order, under another shape; also of parts that consist of whole rows, all behind the first dimension that is
        cut, and begin at a multiple of their size."""

    @_marker.builtin
    def load(self):
        """What the buffer holds, as a tensor of its shape and dtype."""

    @_marker.builtin
    def store(self, value):
        """Writes ``value``, broadcast to the buffer's shape and converted to its dtype, to all of it."""


@_marker.builtin
def alloc(
    shape,
    dtype,
    layout=None,
    scope=smem,
    init_value=None,
    nv_mma_shared_layout=True,
    *,
    alias=None,
    alias_offset_bytes=0,
):
    """A buffer of ``shape`` and ``dtype`` in shared memory, as a :class:`buffered_tensor`.

    :param shape: extents, which need not be powers of two; none for a single element.
    :param layout: a :class:`swizzled_shared_layout` or :class:`nv_mma_shared_layout`; without it the compiler chooses.
    :param scope: :data:`smem`.
    :param init_value: a tensor of this shape that it holds at first; else the content is undefined.
    :param nv_mma_shared_layout: false for a plain row-major order; true leaves that to the compiler, which swizzles what :func:`wgmma` and copies with
        a ``barrier`` use.
    :param alias: a buffer, or a slot or a tile of whole rows of one, in whose memory this one lies, from byte ``alias_offset_bytes`` on. Nothing orders what is done
        with both. What one finds of what was written to the other depends on their layouts: give both one in row-major order
        (``nv_mma_shared_layout=False``) to look at the same bytes.

    The order of accesses is that of the program: the compiler places the barriers. Every call of one ``alloc``, in a loop, gives
    the same memory.
    """


@_marker.builtin
def local_ptr(buffer, indices=None, shape=None, offsets=None):
    """Pointers to elements of a buffer, for ``tl.load``, ``tl.store`` and the atomics.

    :param indices: an integer for each dimension of ``buffer``, scalars or tensors that broadcast to a common shape, which that of
        the result is: pointers to ``buffer[i0, i1, …]``. Without them, pointers to all elements.
    :param shape: the shape of the result, to which the indices broadcast.
    :param offsets: in place of ``indices``, the elements' numbers in row-major order: an integer, or a tensor of them, whose shape the
        result has.

    Adding to a pointer counts elements in row-major order. The CPU executor and the simulator check that accesses lie in the
    buffer.
    """


@_marker.builtin
def copy(
    src, dst, shape, offsets=None, barrier=None, mask=None, is_async=False, eviction_policy="", multicast=None
):
    """Copies between a buffer and a tensor of pointers, or a buffer and a tensor descriptor; either may be the source.

    :param shape: how many elements along each dimension, also known at run time; the rest of the destination stays as it is. The
        tensor of pointers may have this shape or a larger one, up to the buffer's. Of a descriptor, the block's shape.
    :param offsets: where the descriptor's block begins, one number for each dimension. Outside its tensor it reads zeros and writes
        nothing.
    :param mask: with pointers, which elements are copied: a buffer gets zeros elsewhere, global memory nothing.

    :param is_async: with pointers to global memory and a buffer of the same shape and dtype, the copy goes on beside what follows, until
        :func:`async_wait_group`. It is an error where the hardware can't: copies are of 4 consecutive, aligned bytes at least.

    :param barrier: with a descriptor as the source, one barrier that expects bytes (:func:`alloc_barriers`): the copy goes on beside what
        follows, and counts there when its bytes are in the buffer, of which it fills all. It is an error on GPUs before Hopper, and
        where the copy engine cannot move such blocks.

    :param multicast: with a ``barrier``, ``(mesh, axis)``: the programs of a cluster along this axis of the mesh all copy the same block to the same
        buffer, and each brings a part of it to all of them. To each one's barrier come the bytes of the whole block. None of them may
        begin before all have read what the buffer held: ``barrier_arrive(tle.remote(empty, member, mesh), phaseIdx=…)`` tells the others. An
        extension of Tilewright's.

    The copy is complete before what follows reads it, unless it ``is_async`` or has a ``barrier``. To a descriptor it goes on: the buffer has been
    read before it is written again, and global memory has the block when the kernel ends, behind ``tle.distributed_barrier`` or an atomic operation that
    releases, and where the kernel itself goes there by the same argument.
    """


#: The first phase of a barrier has to be waited for.
PENDING = 0
#: The phase before the first counts as over: the first wait goes on at once.
READY = 1


class barrier:
    """A barrier in shared memory, or several, as kernels have them: what :func:`alloc_barriers` gives. ``bars[i]`` is one of them."""


@_marker.builtin
def alloc_barriers(num_barriers, arrive_count=1, init=PENDING, expect_bytes=None):
    """``num_barriers`` barriers in shared memory; ``bars[i]`` is number ``i``, also at run time.

    :param arrive_count: how many arrivals end a phase of each.
    :param init: :data:`PENDING`, or :data:`READY` for one that is waited for before anyone has arrived, as what guards an empty buffer.
    :param expect_bytes: how many bytes copies (:func:`copy` with a ``barrier``) bring in each phase, a multiple of 16. They may be one copy or
        several, which make one of the arrivals together.

    They are mbarriers, which GPUs have from Ampere on.
    """


@_marker.builtin
def alloc_barrier(arrive_count=1, init=PENDING, expect_bytes=None):
    """One barrier: see :func:`alloc_barriers`."""


@_marker.builtin
def barrier_wait(barrier, phaseIdx=None):
    """Waits until phase ``phaseIdx`` of a barrier is over: the phase number, of which the parity counts.

    A phase is over when all its arrivals have come. Of a barrier that is :data:`READY` it is phase ``phaseIdx - 1``. What those who arrived
    did before is seen behind it. The CPU executor reports waits for what never comes.

    Without ``phaseIdx`` it is a barrier of the hardware, of which a kernel may have 8: a phase is over when each partition that waits or
    arrives at it anywhere has done so once. It is numbered at compile time, :data:`PENDING` and of one arrival.
    """


@_marker.builtin
def barrier_arrive(barrier, arrive_count=1, phaseIdx=None):
    """``arrive_count`` arrivals at a barrier, once all threads of the partition have come here.

    ``phaseIdx``, a scalar integer, says that it is a barrier with phases; arrivals count for the one that is not over. Without it, it is a
    barrier of the hardware: see :func:`barrier_wait`.
    """


@_marker.builtin
def warp_specialize(
    functions_and_args, worker_num_warps=None, worker_num_regs=None, *, reuse_default_warps=False
):
    """Runs jitted functions at the same time, each on warps of its own, and gives what the first one returns.

    :param functions_and_args: a list of ``(function, (arguments, …))``. Entry 0 is the default partition, on the kernel's own warps; every
        other one is a worker, on warps beside these, and returns nothing. Plain numbers, bools and dtypes are constants in the functions;
        scalars, pointers, descriptors and buffers pass as they are, and tensors by way of shared memory.
    :param worker_num_warps: how many warps each worker has: 1, 2, 4, 8 or 16. A block of the GPU has all of them beside ``num_warps``, 32 at
        most.
    :param worker_num_regs: how many registers each thread of each worker wants: a multiple of 8 from 24 to 256. The default partition
        gets what is left. It is an error if they don't fit. GPUs before Hopper can't move registers between warps: there all
        threads have the same number.
    :param reuse_default_warps: the kernel's own warps run all entries, the first one too, side by side: ``worker_num_warps`` says how many each has, all of
        them in all. No entry returns anything, and there are no ``worker_num_regs``.

    It ends when all have ended. In between nothing orders what they do to the same memory: that is for barriers and pipes. Barriers that the
    compiler places in a function are those of its own warps. It can't stand in a function of another one.
    """


@_marker.builtin
def set_layout(x, layout):
    """``x``, which lies in registers as ``layout`` says: a :class:`BlockEncoding`, :class:`MmaEncoding`, :class:`DotOperandEncoding` or
    :class:`SlicedEncoding`, made outside of kernels. Layouts of other tensors follow from it. Two that disagree on one tensor are an error.
    """


@_marker.builtin
def memory_space(x, space):
    """``x``, which has gone through memory: ``space`` is "shared_memory"."""


_float32 = _core.dtype("fp32")


@_marker.builtin
def wgmma(
    a,
    b,
    acc=None,
    input_precision=None,
    max_num_imprecise_acc=None,
    out_dtype=_float32,
    trans_a=False,
    trans_b=False,
):
    """Begins ``a @ b + acc`` on the tensor cores of Hopper, and gives what the product will be.

    :param a: a buffer of shape [M, K] (also a slot, part or reshaped view of one), or a tensor.
    :param b: a buffer of shape [K, N].
    :param acc: what it is added to, a tensor or the result of another product, which need not have been waited for; zeros if left out.
    :param input_precision: for float32 "tf32", which is what is multiplied.
    :param max_num_imprecise_acc: of 8-bit floats, how many products may be added up imprecisely. Where that is less than K the product
        waits for its parts, and so for all before it.
    :param out_dtype: float32; for float16 also float16. Of int8 the result is int32.
    :param trans_a: ``a`` is [K, M].
    :param trans_b: ``b`` is [N, K].

    Operands are float16, bfloat16, float32 (as tf32), int8, or both 8-bit floats (float8e4nv, float8e5); all but those of 16 bits lie with
    K contiguous in their buffers: ``a`` as [M, K], ``b`` as [N, K]. M is a multiple of 64, N of 8, K of 16. Four warps or a multiple of them run it.

    The result may be added to by another product, carried by a loop or a branch, and waited for, and nothing else, until
    :func:`wgmma_wait`; until then neither of the buffers may be written. The CPU executor multiplies at once. It is an error on other GPUs.
    """


@_marker.builtin
def wgmma_wait(pendings, acc=None):
    """Waits until at most ``pendings`` products, 0 to 7, are under way, the youngest; gives ``acc``, the result of one that has ended.

    ``wgmma_wait(acc)`` waits for all.
    """


@_marker.builtin
def async_commit_group():
    """Makes a group of the asynchronous copies since the last one."""


@_marker.builtin
def async_wait_group(n):
    """Waits until at most ``n`` groups of asynchronous copies, 0 to 7, are under way: the youngest. What the others brought is seen behind it."""


@_marker.builtin
def local_load(buffer):
    """What a buffer holds: ``buffer.load()``, as early versions of TLE have it."""


@_marker.builtin
def local_store(buffer, value):
    """Writes all of a buffer: ``buffer.store(value)``, as early versions of TLE have it."""


class pipeline(_core.range):
    """:class:`tl.range` under another name."""

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
        super().__init__(
            arg1, arg2, step, num_stages, loop_unroll_factor,
            disallow_acc_multi_buffer, flatten, warp_specialize, disable_licm,
        )  # fmt: skip


@_marker.jit
def rematerialize_index(x):
    """``x``, integers of 16, 32 or 64 bits such as indices, anew at this place.

    What is computed from the result is computed behind this place, and not kept in registers from before: the compiler does not see that
    both are the same.
    """
    x = _core.to_tensor(x)
    bits: _core.constexpr = x.dtype.primitive_bitwidth
    _core.static_assert(
        x.dtype.is_int() and (bits == 16 or bits == 32 or bits == 64),
        "tle.gpu.rematerialize_index takes integers of 16, 32 or 64 bits",
    )
    name: _core.constexpr = "h" if bits == 16 else "r" if bits == 32 else "l"
    return _core.inline_asm_elementwise(
        f"mov.b{bits} $0, $1;", f"={name},{name}", [x], x.dtype, is_pure=False, pack=1
    )


_NOT_YET = (
    "barrier_type",
    "buffered_tensor_type",
    "tensor_memory_layout",
)
globals().update(not_supported_yet(__name__, _NOT_YET))
__all__ = [
    "PENDING",
    "READY",
    "BlockEncoding",
    "DotOperandEncoding",
    "MmaEncoding",
    "SlicedEncoding",
    "alloc",
    "alloc_barrier",
    "alloc_barriers",
    "async_commit_group",
    "async_wait_group",
    "barrier",
    "barrier_arrive",
    "barrier_wait",
    "buffered_tensor",
    "copy",
    "layout",
    "local_load",
    "local_ptr",
    "local_store",
    "memory_space",
    "nv_mma_shared_layout",
    "pipeline",
    "rematerialize_index",
    "scope",
    "set_layout",
    "shared_layout",
    "smem",
    "storage_kind",
    "swizzled_shared_layout",
    "tmem",
    "warp_specialize",
    "wgmma",
    "wgmma_wait",
]
__getattr__ = explain_missing(__name__, __all__)
