"""``tle.distributed``: meshes of programs, clusters and devices, and what goes on between their members."""

from ..language._marker import explain_missing, not_supported_yet

_NOT_YET = (
    "B",
    "BarrierKind",
    "GroupKind",
    "MemoryOrder",
    "MeshConfig",
    "P",
    "S",
    "ShardedTensor",
    "ShardingSpec",
    "cleanup_communicator",
    "create_comm_tensor",
    "create_dist_tensor",
    "device_mesh",
    "distributed_barrier",
    "distributed_dot",
    "get_mem_pool",
    "make_sharded_tensor",
    "n_pes",
    "remote",
    "reshard",
    "shard_id",
    "sharding",
    "signal",
    "signal_wait",
)
globals().update(not_supported_yet(__name__, _NOT_YET))
__all__ = [*_NOT_YET]
__getattr__ = explain_missing(__name__, __all__)
