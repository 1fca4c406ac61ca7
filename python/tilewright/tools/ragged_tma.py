"""Descriptors of tensors whose rows come in batches of different sizes: an access stays in its batch, checked by the hardware.

``desc = create_ragged_descriptor(x, [M, N])`` on the host; in a kernel ``load_ragged(desc, first_row, rows, [i, j])`` reads a block of
the rows ``first_row`` to ``first_row + rows``, and zeros behind them. ``store_ragged`` and ``atomic_add_ragged`` write nothing there.

How it is done: an extent that ends where the batch ends would need a descriptor for each batch. Instead rows are counted from
the end of a dimension of 2³⁰ rows, so that those behind the batch are behind that end; two more dimensions in front, with strides
that cancel each other modulo 2⁶⁴ bytes, move the address back to where the batch is.
"""

from __future__ import annotations

from typing import Any

from .. import language as tl
from ..runtime.jit import jit
from .tensor_descriptor import TensorDescriptor

__all__ = ["atomic_add_ragged", "create_ragged_descriptor", "load_ragged", "store_ragged"]

_ROWS = 1 << 30
_MOST = 0x7FFF0000


def create_ragged_descriptor(T: Any, block_shape: list[int], ragged_dim: int = 0) -> TensorDescriptor:
    """The descriptor of a tensor of two or three dimensions whose batches lie one after the other along one of them.

    :param ragged_dim: the dimension of the batches; not the last.
    """
    shape, rank = list(T.shape), len(T.shape)
    ragged_dim += rank if ragged_dim < 0 else 0
    if rank > 3:
        raise ValueError(f"a ragged descriptor has at most 3 dimensions, not {rank}")
    if not 0 <= ragged_dim < rank - 1:
        raise ValueError("the last dimension cannot be ragged")
    if len(block_shape) != rank:
        raise ValueError(f"the block {list(block_shape)} does not have the tensor's {rank} dimensions")
    if shape[ragged_dim] > _ROWS:
        raise ValueError(f"a ragged dimension has at most {_ROWS} rows")
    strides = list(T.stride()) if hasattr(T, "stride") else [n // T.itemsize for n in T.strides]
    stride = strides[ragged_dim]
    shape[ragged_dim] = _ROWS
    # 2³⁴ - stride and stride: with the counts below their sum is a multiple of 2⁶⁴ less what the rows are moved by.
    return TensorDescriptor(
        T, [_MOST, _MOST, *shape], [(1 << 34) - stride, stride, *strides], [1, 1, *block_shape]
    )


@jit
def _indices(first, rows, row):
    """The three coordinates that a row of a batch has."""
    return 1073741824, first + rows, 1073741824 - rows + row


@jit
def load_ragged(TMA, batch_offset, batch_size, coords, ragged_dim: tl.constexpr = 0):
    """The block at ``coords`` of the rows ``batch_offset`` to ``batch_offset + batch_size``; zeros outside."""
    tl.static_assert(
        len(TMA.shape) == len(coords) + 2, "the descriptor is not one of create_ragged_descriptor"
    )
    front, back, row = _indices(batch_offset, batch_size, coords[ragged_dim])
    block = TMA.load([front, back] + coords[:ragged_dim] + [row] + coords[ragged_dim + 1 :])
    return tl.reshape(block, block.shape[2:])


@jit
def store_ragged(TMA, batch_offset, batch_size, coords, data, ragged_dim: tl.constexpr = 0):
    """Writes a block at ``coords`` of the rows ``batch_offset`` to ``batch_offset + batch_size``; nothing outside."""
    front, back, row = _indices(batch_offset, batch_size, coords[ragged_dim])
    data = tl.reshape(data, [1, 1] + data.shape)
    TMA.store([front, back] + coords[:ragged_dim] + [row] + coords[ragged_dim + 1 :], data)


@jit
def atomic_add_ragged(TMA, batch_offset, batch_size, coords, data, ragged_dim: tl.constexpr = 0):
    """Adds a block, element by element atomically; nothing outside of the batch."""
    front, back, row = _indices(batch_offset, batch_size, coords[ragged_dim])
    data = tl.reshape(data, [1, 1] + data.shape)
    TMA.atomic_add([front, back] + coords[:ragged_dim] + [row] + coords[ragged_dim + 1 :], data)
