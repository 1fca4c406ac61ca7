"""Parts of sharded tensors in the shared memory of a cluster's programs, and such as these fetch together."""

from ..language import core
from ..language._marker import jit
from . import distributed, gpu


@jit
def number(mesh: core.constexpr):
    """This program's number among the members of a cluster's mesh."""
    at = 0
    for d in core.static_range(mesh.ndim):
        at = at * mesh.shape[d] + distributed.shard_id(mesh, d)
    return at


@jit
def staged(value, size: core.constexpr):
    """A pointer to a part, put in row-major order into a buffer that the other programs reach."""
    buffer = gpu.alloc([size], value.dtype, nv_mma_shared_layout=False)
    core.store(gpu.local_ptr(buffer), core.reshape(value, [size]))
    return gpu.local_ptr(buffer, (0,))


@jit
def load(mesh: core.constexpr, begin, member, offsets):
    """What members have at offsets of their parts."""
    if len(member.shape) == 0:
        return core.load(distributed.remote(begin, member, mesh) + offsets)
    else:
        # Pointers of one tensor are those of one member.
        found = core.load(distributed.remote(begin, 0, mesh) + offsets, mask=member == 0)
        for k in core.static_range(1, mesh.size):
            value = core.load(distributed.remote(begin, k, mesh) + offsets, mask=member == k)
            found = core.where(member == k, value, found)
        return found


@jit
def meet(mesh: core.constexpr):
    distributed.distributed_barrier(mesh)


@jit
def room(begin, shape: core.constexpr, size: core.constexpr):
    """What a matrix is fetched by and into: where it lies, its shape, and the bytes of an element."""
    matrix = core.make_tensor_descriptor(begin, shape, [shape[1], 1], shape)
    buffer = gpu.alloc(shape, begin.dtype.element_ty)
    return matrix, buffer, gpu.alloc_barrier(expect_bytes=shape[0] * shape[1] * size)


@jit
def fetch(mesh: core.constexpr, axis: core.constexpr, shape: core.constexpr, matrix, buffer, full):
    """All members along an axis fetch the same matrix: each brings a part of it to all (TMA multicast). They have met since there is room for it."""
    gpu.copy(matrix, buffer, shape, [0, 0], barrier=full, multicast=(mesh, axis))


@jit
def fetched(buffer, full):
    """The matrix."""
    gpu.barrier_wait(full, phaseIdx=0)
    return buffer.load()
