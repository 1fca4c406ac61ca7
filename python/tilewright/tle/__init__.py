"""TLE, the language extensions with which a kernel says what Triton hides: ``import tilewright.tle as tle``.

What is there runs on every backend; a name of the reference that is not there yet says so where a kernel uses it. The compiler reads
these files as it reads those of ``tilewright.language``.
"""

import sys as _sys

from ..language import _marker
from ..language import core as _core
from ..runtime.jit import jit
from . import distributed, dsa, gpu, raw
from ._pipe import pipe, pipe_reader, pipe_slot, pipe_value, pipe_wait_result, pipe_writer
from ._standard import concat_dot_fragments, cumsum
from ._support import (
    TLE_PRIMITIVES,
    TLEUnsupportedPrimitiveError,
    get_supported_primitives,
    is_primitive_supported,
    primitive_name,
    require_tle,
)
from ._tile import extract_tile, insert_tile
from .distributed import (
    B,
    BarrierKind,
    GroupKind,
    MemoryOrder,
    MeshConfig,
    P,
    S,
    ShardedTensor,
    ShardingSpec,
    cleanup_communicator,
    create_comm_tensor,
    create_dist_tensor,
    device_mesh,
    distributed_barrier,
    distributed_dot,
    get_mem_pool,
    make_sharded_tensor,
    n_pes,
    remote,
    reshard,
    shard_id,
    sharding,
    signal,
    signal_wait,
)
from .gpu import (
    alloc,
    buffered_tensor,
    copy,
    local_load,
    local_ptr,
    local_store,
    pipeline,
    scope,
    smem,
    swizzled_shared_layout,
)
from .raw import call, hardware_constraint

# `tle.language` is `tle` itself.
language = _sys.modules[__name__]


@_marker.builtin
@_marker.also(ptr="pointer")
def load(
    pointer,
    mask=None,
    other=None,
    boundary_check=(),
    padding_option="",
    cache_modifier="",
    eviction_policy="",
    volatile=False,
    is_async=False,
):
    """:func:`tl.load`, with a hint: ``is_async`` asks for an asynchronous copy that what follows overlaps with.

    The pointer may be given as ``ptr``. The value is that of :func:`tl.load`. On a GPU a copy to shared memory begins here and is waited for
    before the value is used, and before global memory is written or others are waited for. Where it can't be one, the load stays what it is, and
    the kernel's ``metadata.remarks`` say why.
    """


class range(_core.range):
    """:class:`tl.range` with one hint more: ``reorder``, which changes no result and does nothing so far."""

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
        reorder=False,
    ):
        super().__init__(
            arg1, arg2, step, num_stages, loop_unroll_factor,
            disallow_acc_multi_buffer, flatten, warp_specialize, disable_licm,
        )  # fmt: skip


__all__ = [
    "TLE_PRIMITIVES",
    "B",
    "BarrierKind",
    "GroupKind",
    "MemoryOrder",
    "MeshConfig",
    "P",
    "S",
    "ShardedTensor",
    "ShardingSpec",
    "TLEUnsupportedPrimitiveError",
    "alloc",
    "buffered_tensor",
    "call",
    "cleanup_communicator",
    "concat_dot_fragments",
    "copy",
    "create_comm_tensor",
    "create_dist_tensor",
    "cumsum",
    "device_mesh",
    "distributed",
    "distributed_barrier",
    "distributed_dot",
    "dsa",
    "extract_tile",
    "get_mem_pool",
    "get_supported_primitives",
    "gpu",
    "hardware_constraint",
    "insert_tile",
    "is_primitive_supported",
    "jit",
    "language",
    "load",
    "local_load",
    "local_ptr",
    "local_store",
    "make_sharded_tensor",
    "n_pes",
    "pipe",
    "pipe_reader",
    "pipe_slot",
    "pipe_value",
    "pipe_wait_result",
    "pipe_writer",
    "pipeline",
    "primitive_name",
    "range",
    "raw",
    "remote",
    "require_tle",
    "reshard",
    "scope",
    "shard_id",
    "sharding",
    "signal",
    "signal_wait",
    "smem",
    "swizzled_shared_layout",
]
__getattr__ = _marker.explain_missing(__name__, __all__)
