"""Tiles of the grid that a tensor is cut into: ``tle.extract_tile`` and ``tle.insert_tile``."""

from ..language import _marker
from ..language import core as _core


@_core.member
@_marker.builtin
@_marker.also(shape="tile_shape")
def extract_tile(x, index, tile_shape):
    """Tile number ``index`` of the grid of tiles of ``tile_shape`` (also ``shape``) that ``x`` is cut into, as a tensor.

    ``index`` is its number in row-major order or a tuple of its numbers along each dimension, at compile time or, as scalar tensors, at
    run time, where the CPU executor and the simulator check it. Each extent of ``x`` is a multiple of the tile's. A tile of a buffer is a view
    of it.
    """


@_core.member
@_marker.builtin
def insert_tile(x, tile, index):
    """``x`` with tile number ``index`` of its grid of such tiles replaced by ``tile``; ``index`` as in :func:`extract_tile`. A buffer gets
    it in its place, and is the result."""
