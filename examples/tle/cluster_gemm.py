"""Matrix multiplication by clusters of two programs that share a block, c = a bᵀ with a of (M, K) and b of (N, K).

The programs of a cluster have tiles one below the other, which need the same block of ``b``: each brings half of it by the copy engine, and reads the
other half from its neighbour's shared memory. So every value of ``b`` leaves the L2 cache once for two tiles. A barrier of the cluster in each step says
that both halves are there, and that those of the step before have been read. Hopper only; on the CPU executor as it stands.
"""

from gemm import place_of, show

import tilewright as triton
import tilewright.language as tl
from tilewright import tle
from tilewright.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def bring(
    a_desc, b_desc, a, b, full, row, column, step,
    M: tl.constexpr, HALF: tl.constexpr, K: tl.constexpr, SLOTS: tl.constexpr,
):  # fmt: skip
    """Begins to fill the slot of a step."""
    slot = step % SLOTS
    tle.gpu.copy(a_desc, a.slot(slot), [M, K], [row, step * K], barrier=full[slot])
    tle.gpu.copy(b_desc, b.slot(slot), [HALF, K], [column, step * K], barrier=full[slot])


@triton.jit
def exchange(
    b, theirs, full, step, rank,
    SLOTS: tl.constexpr, PAIR: tl.constexpr,
):  # fmt: skip
    """Waits until a step's blocks are there in both programs, and takes the neighbour's."""
    slot = step % SLOTS
    tle.gpu.barrier_wait(full[slot], phaseIdx=step // SLOTS)
    tle.distributed_barrier(PAIR)
    theirs.slot(step % 2).store(tl.load(tle.gpu.local_ptr(tle.remote(b.slot(slot), 1 - rank, PAIR))))


@triton.jit
def cluster_gemm_kernel(
    a_desc, b_desc, c_desc, num_m, num_n, steps,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, SLOTS: tl.constexpr, GROUP: tl.constexpr, PAIR: tl.constexpr,
):  # fmt: skip
    """A tile of ``M`` by ``N`` each; the pairs of programs have ``num_m`` by ``num_n`` pairs of tiles."""
    HALF: tl.constexpr = N // 2
    rank = tle.shard_id(PAIR, 0)
    tile_m, tile_n = place_of(tl.program_id(0) // 2, num_m, num_n, GROUP)
    row = (2 * tile_m + rank) * M
    column, other = tile_n * N + rank * HALF, tile_n * N + (1 - rank) * HALF
    a = tle.gpu.alloc([SLOTS, M, K], dtype=a_desc.dtype)
    b = tle.gpu.alloc([SLOTS, HALF, K], dtype=b_desc.dtype)
    theirs = tle.gpu.alloc([2, HALF, K], dtype=b_desc.dtype)
    full = tle.gpu.alloc_barriers(SLOTS, expect_bytes=(M + HALF) * K * a_desc.dtype.primitive_bitwidth // 8)
    for step in range(tl.minimum(SLOTS - 1, steps)):
        bring(a_desc, b_desc, a, b, full, row, column, step, M, HALF, K, SLOTS)
    exchange(b, theirs, full, 0, rank, SLOTS, PAIR)
    left, right = tl.zeros([M, HALF], tl.float32), tl.zeros([M, HALF], tl.float32)
    for step in range(steps):
        slot = step % SLOTS
        left = tle.gpu.wgmma(a.slot(slot), b.slot(slot), left, trans_b=True)
        right = tle.gpu.wgmma(a.slot(slot), theirs.slot(step % 2), right, trans_b=True)
        left, right = tle.gpu.wgmma_wait(2, left), tle.gpu.wgmma_wait(2, right)
        # The products of the step before have ended, and at the barrier of this one the neighbour had read its block.
        if step + SLOTS - 1 < steps:
            bring(a_desc, b_desc, a, b, full, row, column, step + SLOTS - 1, M, HALF, K, SLOTS)
        if step + 1 < steps:
            exchange(b, theirs, full, step + 1, rank, SLOTS, PAIR)
    left, right = tle.gpu.wgmma_wait(0, left), tle.gpu.wgmma_wait(0, right)
    c_desc.store([row, column], left.to(c_desc.dtype))
    c_desc.store([row, other], right.to(c_desc.dtype))


def gemm(a, b, c, block=(128, 256, 64), slots=4, group=8, num_warps=8):
    """``c = a @ b.T`` for matrices whose rows are multiples of 16 bytes."""
    (rows, inner), columns = a.shape, b.shape[0]
    m, n, k = block
    num_m, num_n = triton.cdiv(rows, 2 * m), triton.cdiv(columns, n)
    return cluster_gemm_kernel[(num_m * num_n,)](
        TensorDescriptor.from_tensor(a, [m, k]),
        TensorDescriptor.from_tensor(b, [n // 2, k]),
        TensorDescriptor.from_tensor(c, [m, n // 2]),
        num_m,
        num_n,
        triton.cdiv(inner, k),
        m,
        n,
        k,
        slots,
        group,
        tle.device_mesh({"block_cluster": 2}),
        num_warps=num_warps,
    )


def main():
    show(lambda a, b, c: gemm(a, b, c, (64, 64, 32), slots=3, num_warps=4))


if __name__ == "__main__":
    main()
