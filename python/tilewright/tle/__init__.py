"""TLE, the language extensions with which a kernel says what Triton hides: ``import tilewright.tle as tle``.

What is there runs on every backend; a name of the reference that is not there yet says so where a kernel uses it. The compiler reads
these files as it reads those of ``tilewright.language``.
"""

import sys as _sys

from ..language._marker import also, builtin, explain_missing, not_supported_yet
from ..runtime.jit import jit
from . import distributed, dsa, gpu, raw
from .gpu import alloc, local_ptr, smem
from .raw import call
from ._support import (
    TLE_PRIMITIVES,
    TLEUnsupportedPrimitiveError,
    get_supported_primitives,
    is_primitive_supported,
    primitive_name,
    require_tle,
)
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

_NOT_YET = (
    "cumsum",
    "extract_tile",
    "hardware_constraint",
    "insert_tile",
    "pipe",
    "pipe_reader",
    "pipe_slot",
    "pipe_value",
    "pipe_wait_result",
    "pipe_writer",
    "range",
)
globals().update(not_supported_yet(__name__, _NOT_YET))

# `tle.language` is `tle` itself.
language = _sys.modules[__name__]


@builtin
@also(ptr="pointer")
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

    The pointer may be given as ``ptr``. ``is_async=True`` is not supported yet.
    """


__all__ = [name for name in (*vars(), "language") if not name.startswith("_")]
__getattr__ = explain_missing(__name__, __all__)
