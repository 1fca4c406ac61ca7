"""Matrix multiplication by clusters of two programs that share a block, c = a bᵀ with a of (M, K) and b of (N, K).

As gemm.py: in each program a warp brings blocks into a ring of buffers, and two warp groups multiply. The programs of a cluster have tiles one
below the other, which need the same block of ``b``: each brings half of it, to both (multicast), so that every value of ``b`` leaves the L2 cache
once for two tiles. A slot is filled again when the warp groups of both programs have read it: they arrive at the barriers of both.
Hopper only; on the CPU executor as it stands.
"""

from gemm import show, tile_of

import tilewright as triton
import tilewright.language as tl
from tilewright import tle
from tilewright.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def bring(
    a_desc, b_desc, a, b, full, empty, num_m, num_n, steps,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, SLOTS: tl.constexpr, GROUP: tl.constexpr, PAIR: tl.constexpr,
):  # fmt: skip
    """Fills the slots, tile after tile: all of ``a``'s blocks, and of ``b``'s a half each for both programs."""
    rank = tle.shard_id(PAIR, 0)
    i = 0
    for tile in range(tl.program_id(0) // 2, num_m * num_n, tl.num_programs(0) // 2):
        tile_m, tile_n = tile_of(tile, num_m, num_n, GROUP)
        row = (2 * tile_m + rank) * M
        for step in range(steps):
            slot = i % SLOTS
            tle.gpu.barrier_wait(empty[slot], phaseIdx=i // SLOTS)
            tle.gpu.copy(a_desc, a.slot(slot), [M, K], [row, step * K], barrier=full[slot])
            at = [tile_n * N, step * K]
            tle.gpu.copy(b_desc, b.slot(slot), [N, K], at, barrier=full[slot], multicast=(PAIR, 0))
            i += 1


@triton.jit
def release(empty, i, SLOTS: tl.constexpr, PAIR: tl.constexpr):
    """Both programs' warps that copy may fill the slot of product ``i`` again, as far as this warp group goes."""
    for member in tl.static_range(2):
        tle.gpu.barrier_arrive(tle.remote(empty[i % SLOTS], member, PAIR), phaseIdx=i // SLOTS)


@triton.jit
def multiply(
    c_desc, a, b, full, empty, num_m, num_n, steps,
    FIRST: tl.constexpr, ROWS: tl.constexpr, M: tl.constexpr, N: tl.constexpr, SLOTS: tl.constexpr, GROUP: tl.constexpr,
    PAIR: tl.constexpr,
):  # fmt: skip
    """The ``ROWS`` rows from ``FIRST`` on of each tile."""
    rank = tle.shard_id(PAIR, 0)
    i = 0
    for tile in range(tl.program_id(0) // 2, num_m * num_n, tl.num_programs(0) // 2):
        tile_m, tile_n = tile_of(tile, num_m, num_n, GROUP)
        acc = tl.zeros([ROWS, N], tl.float32)
        for step in range(steps):
            slot = i % SLOTS
            tle.gpu.barrier_wait(full[slot], phaseIdx=i // SLOTS)
            acc = tle.gpu.wgmma(a.slot(slot).subslice(FIRST, ROWS, dim=0), b.slot(slot), acc, trans_b=True)
            acc = tle.gpu.wgmma_wait(1, acc)
            if step > 0:
                # The product before this one has ended: its slot is free.
                release(empty, i - 1, SLOTS, PAIR)
            i += 1
        acc = tle.gpu.wgmma_wait(0, acc)
        release(empty, i - 1, SLOTS, PAIR)
        c_desc.store([(2 * tile_m + rank) * M + FIRST, tile_n * N], acc.to(c_desc.dtype))


@triton.jit
def cluster_gemm_kernel(
    a_desc, b_desc, c_desc, num_m, num_n, steps,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, SLOTS: tl.constexpr, GROUP: tl.constexpr, PAIR: tl.constexpr,
):  # fmt: skip
    """A tile of ``M`` by ``N`` a program; there are ``num_m`` by ``num_n`` pairs of tiles."""
    a = tle.gpu.alloc([SLOTS, M, K], dtype=a_desc.dtype)
    b = tle.gpu.alloc([SLOTS, N, K], dtype=b_desc.dtype)
    full = tle.gpu.alloc_barriers(SLOTS, expect_bytes=(M + N) * K * a_desc.dtype.primitive_bitwidth // 8)
    empty = tle.gpu.alloc_barriers(SLOTS, arrive_count=4, init=tle.gpu.READY)
    HALF: tl.constexpr = M // 2
    tle.gpu.warp_specialize(
        [
            (multiply, (c_desc, a, b, full, empty, num_m, num_n, steps, 0, HALF, M, N, SLOTS, GROUP, PAIR)),
            (
                multiply,
                (c_desc, a, b, full, empty, num_m, num_n, steps, HALF, HALF, M, N, SLOTS, GROUP, PAIR),
            ),
            (bring, (a_desc, b_desc, a, b, full, empty, num_m, num_n, steps, M, N, K, SLOTS, GROUP, PAIR)),
        ],
        [4, 1],
        [232, 40],
    )


def gemm(a, b, c, block=(128, 256, 64), slots=3, programs=132, group=8):
    """``c = a @ b.T`` for matrices whose rows are multiples of 16 bytes; ``programs``, an even number, share the tiles."""
    (rows, inner), columns = a.shape, b.shape[0]
    m, n, k = block
    num_m, num_n = triton.cdiv(rows, 2 * m), triton.cdiv(columns, n)
    # The grid counts clusters.
    return cluster_gemm_kernel[(min(programs // 2, num_m * num_n),)](
        TensorDescriptor.from_tensor(a, [m, k]),
        TensorDescriptor.from_tensor(b, [n, k]),
        TensorDescriptor.from_tensor(c, [m // 2, n]),
        num_m,
        num_n,
        triton.cdiv(inner, k),
        m,
        n,
        k,
        slots,
        group,
        tle.device_mesh({"block_cluster": 2}),
        num_warps=4,
    )


def main():
    show(lambda a, b, c: gemm(a, b, c, (128, 64, 32), programs=4))


if __name__ == "__main__":
    main()
