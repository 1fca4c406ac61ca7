"""``TensorDescriptor``: a tensor as an argument of a kernel that accesses it in blocks (``desc.load([i, j])``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._tilewright import check_tensor_descriptor


@dataclass
class TensorDescriptor:
    """A tensor in memory and the block in which a kernel accesses it.

    On a GPU with a tensor memory accelerator (Hopper) the accesses go through it.

    :param base: a torch tensor or NumPy array; its memory is aligned to 16 bytes.
    :param shape: one to five extents, in elements.
    :param strides: as many strides, in elements; the last is 1, the others are multiples of 16 bytes.
    :param block_shape: the extents of the block that one access moves; the last has at least 16 bytes.
    :param padding: what lies outside of ``shape`` reads as ``"zero"`` or ``"nan"``. It is never written.
    """

    base: Any
    shape: list[int]
    strides: list[int]
    block_shape: list[int]
    padding: str = "zero"

    def __post_init__(self):
        check_tensor_descriptor(self)

    @staticmethod
    def from_tensor(tensor: Any, block_shape: list[int], padding: str = "zero") -> TensorDescriptor:
        """The descriptor of a whole tensor or array."""
        if hasattr(tensor, "stride"):
            strides = tensor.stride()
        else:
            strides = [n // tensor.itemsize for n in tensor.strides]
        return TensorDescriptor(tensor, list(tensor.shape), list(strides), block_shape, padding)
