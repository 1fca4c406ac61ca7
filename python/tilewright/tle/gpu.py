"""``tle.gpu``: buffers in shared memory, copies, barriers and warp groups. None of it is there yet."""

from ..language._marker import explain_missing, not_supported_yet

_NOT_YET = (
    "BlockEncoding",
    "DotOperandEncoding",
    "MmaEncoding",
    "PENDING",
    "READY",
    "SlicedEncoding",
    "alloc",
    "alloc_barrier",
    "alloc_barriers",
    "async_commit_group",
    "async_wait_group",
    "barrier",
    "barrier_arrive",
    "barrier_type",
    "barrier_wait",
    "buffered_tensor",
    "buffered_tensor_type",
    "copy",
    "layout",
    "local_ptr",
    "memory_space",
    "nv_mma_shared_layout",
    "nv_mma_shared_layout.make_default",
    "pipeline",
    "rematerialize_index",
    "scope",
    "set_layout",
    "shared_layout",
    "smem",
    "storage_kind",
    "storage_kind.smem",
    "storage_kind.tmem",
    "swizzled_shared_layout",
    "swizzled_shared_layout.make_default",
    "swizzled_shared_layout.make_permute",
    "tensor_memory_layout",
    "tmem",
    "warp_specialize",
    "wgmma",
    "wgmma_wait",
)
globals().update(not_supported_yet(__name__, _NOT_YET))
__all__ = [name for name in _NOT_YET if "." not in name]
__getattr__ = explain_missing(__name__, __all__)
