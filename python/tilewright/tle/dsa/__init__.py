"""``tle.dsa``: programs for accelerators whose local memories have names: buffers in them, copies between them, arithmetic on them.

They run on the CPU executor, which checks what fits into each memory, and on Ascend's targets.
"""

from ...language import _marker
from ...language import core as _core
from ...language._marker import explain_missing
from .._standard import cumsum
from .._tile import extract_tile, insert_tile
from . import ascend


@_marker.builtin
def alloc(shape, dtype, mem_addr_space, layout=None, scope=None):
    """A buffer of ``shape`` and ``dtype`` in one of the memories of :mod:`tle.dsa.ascend`, as a :class:`tle.gpu.buffered_tensor`.

    :param mem_addr_space: such as ``tle.dsa.ascend.UB``.
    :param layout: None: the target arranges its memories itself.
    :param scope: another name of ``mem_addr_space``, where that is None.

    It is an error if the buffers that are in use at the same time do not fit into their memory; it says how much each one takes and from where to
    where it is in use.
    """


@_marker.builtin
def copy(src, dst, shape, inter_no_alias=None, offsets=None):
    """Copies the first ``shape`` elements along each dimension: between pointers to global memory and a buffer, or between two buffers.

    :param shape: extents, also known at run time (tails). What lies beyond them in the destination stays as it is.
    :param inter_no_alias: a promise that no copy under way in the other direction touches the same global memory, so that none is waited for.
        Without it, what an enclosing :func:`hint` says, or false. ``TILEWRIGHT_BACKEND=npusim`` reports where it is broken.
    :param offsets: where the part of the buffer begins, of ``dst`` if both are buffers; zeros if left out. All of the pointers' block must fit behind them.

    Between buffers the target must have a route from one memory to the other: the error lists those that there are.
    """


@_marker.builtin
def local_ptr(buffer, indices=None):
    """Pointers to elements of a buffer, also of another program's (``tle.remote``): see :func:`tle.gpu.local_ptr`."""


@_marker.builtin
def to_tensor(buffer, writable=True, target_shape=None):
    """What a buffer holds now, as a tensor. What is written to the buffer afterwards does not change it.

    :param writable: of no meaning to values: the tensor may be computed with either way.
    :param target_shape: another shape with as many elements, which it gets in row-major order.
    """


@_marker.builtin
def to_buffer(tensor, space=None, bind_buffer=None):
    """A buffer in the memory ``space`` (UB, if left out) that holds ``tensor``; with ``bind_buffer``, that buffer, after the tensor was written to it."""


@_marker.builtin
@_marker.also(input="lhs", other="rhs", result="out")
def add(lhs, rhs, out):
    """``out = lhs + rhs``, element by element, of buffers of one shape and dtype; ``out`` may be one of the operands.

    The operands may be called ``input``, ``other`` and ``result``, here and in the functions like it.
    """


@_marker.builtin
@_marker.also(input="lhs", other="rhs", result="out")
def sub(lhs, rhs, out):
    """``out = lhs - rhs``: see :func:`add`."""


@_marker.builtin
@_marker.also(input="lhs", other="rhs", result="out")
def mul(lhs, rhs, out):
    """``out = lhs * rhs``: see :func:`add`."""


@_marker.builtin
@_marker.also(input="lhs", other="rhs", result="out")
def div(lhs, rhs, out):
    """``out = lhs / rhs``: see :func:`add`. Floats are divided with one rounding; integers toward zero."""


@_marker.builtin
@_marker.also(input="lhs", other="rhs", result="out")
def max(lhs, rhs, out):
    """``out = max(lhs, rhs)``: see :func:`add`. Where one of two floats is NaN it is the other."""


@_marker.builtin
@_marker.also(input="lhs", other="rhs", result="out")
def min(lhs, rhs, out):
    """``out = min(lhs, rhs)``: see :func:`add`. Where one of two floats is NaN it is the other."""


class pipeline(_core.range):
    """:class:`tl.range` whose iterations overlap: copies of one run while another computes. ``num_stages`` is how many buffers each
    one that is filled in the loop becomes, 2 if left out."""

    def __init__(
        self,
        arg1,
        arg2=None,
        step=None,
        num_stages=2,
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


class parallel(_core.range):
    """:class:`tl.range` with the promise that no iteration reads what another one writes to global memory."""

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


@_marker.builtin
def hint(inter_no_alias=False):
    """``with tle.dsa.hint(inter_no_alias=True):`` says of each :func:`copy` inside what the copy itself does not say. Values are constants."""


@_core.member
@_marker.builtin
def extract_slice(x, offsets, sizes, strides=None):
    """The elements ``offsets[d] + i * strides[d]``, for ``i`` from 0 to ``sizes[d]``, along each dimension of a tensor.

    Offsets may be known at run time, where the CPU executor checks them; sizes and strides (1 each, if left out) are constants.
    """


@_core.member
@_marker.builtin
def insert_slice(x, sub, offsets, sizes=None, strides=None):
    """``x`` with the elements that :func:`extract_slice` would take replaced by those of ``sub``, whose shape ``sizes`` is."""


@_marker.builtin
def extract_element(src, indice):
    """One element of a tensor, as a scalar: ``indice`` has a number for each dimension, also known at run time."""


@_marker.builtin
def subview(src, offsets, sizes, strides=None):
    """A part of a buffer, which shares its memory, with one element of every so many along each dimension; ``offsets`` also known at run time, sizes and strides constants."""


@_marker.builtin
def memory_space(x, space):
    """``x``, which has gone through a memory: ``space`` is its name, "UB", "L1", "L0A", "L0B" or "L0C"."""


__all__ = [
    "add",
    "alloc",
    "ascend",
    "copy",
    "cumsum",
    "div",
    "extract_element",
    "extract_slice",
    "extract_tile",
    "hint",
    "insert_slice",
    "insert_tile",
    "local_ptr",
    "max",
    "memory_space",
    "min",
    "mul",
    "parallel",
    "pipeline",
    "sub",
    "subview",
    "to_buffer",
    "to_tensor",
]
__getattr__ = explain_missing(__name__, __all__)
