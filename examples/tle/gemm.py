"""Matrix multiplication with roles: a warp that copies, and warp groups that multiply, c = a bᵀ with a of (M, K) and b of (N, K).

As many programs as the GPU has multiprocessors walk over the tiles of the result. In each a warp brings blocks of both operands into a ring of
buffers by the copy engine; every slot has a barrier that counts the bytes brought (``full``) and one at which the warp groups say that they have
read it (``empty``). The warp groups share the rows of a tile. Each begins its next product before it waits for the last one, so that the
tensor cores always have work, and while it stores a tile the copies of the next one go on. Hopper only; on the CPU executor as it stands.
"""

import sys
from pathlib import Path

import tilewright as triton
import tilewright.language as tl
from tilewright import tle
from tilewright.tools.tensor_descriptor import TensorDescriptor

sys.path.insert(0, str(Path(__file__).parents[1]))

from matmul import tile_of


@triton.jit
def bring(
    a_desc, b_desc, a, b, full, empty, num_m, num_n, steps,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, SLOTS: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """Fills the slots, tile after tile."""
    i = 0
    for tile in range(tl.program_id(0), num_m * num_n, tl.num_programs(0)):
        tile_m, tile_n = tile_of(tile, num_m, num_n, GROUP)
        for step in range(steps):
            slot = i % SLOTS
            tle.gpu.barrier_wait(empty[slot], phaseIdx=i // SLOTS)
            tle.gpu.copy(a_desc, a.slot(slot), [M, K], [tile_m * M, step * K], barrier=full[slot])
            tle.gpu.copy(b_desc, b.slot(slot), [N, K], [tile_n * N, step * K], barrier=full[slot])
            i += 1


@triton.jit
def multiply(
    c_desc, a, b, full, empty, num_m, num_n, steps,
    FIRST: tl.constexpr, ROWS: tl.constexpr, M: tl.constexpr, N: tl.constexpr, SLOTS: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """The ``ROWS`` rows from ``FIRST`` on of each tile."""
    i = 0
    for tile in range(tl.program_id(0), num_m * num_n, tl.num_programs(0)):
        tile_m, tile_n = tile_of(tile, num_m, num_n, GROUP)
        acc = tl.zeros([ROWS, N], tl.float32)
        for step in range(steps):
            slot = i % SLOTS
            tle.gpu.barrier_wait(full[slot], phaseIdx=i // SLOTS)
            acc = tle.gpu.wgmma(a.slot(slot).subslice(FIRST, ROWS, dim=0), b.slot(slot), acc, trans_b=True)
            acc = tle.gpu.wgmma_wait(1, acc)
            if step > 0:
                # The product before this one has ended: its slot is free.
                tle.gpu.barrier_arrive(empty[(i - 1) % SLOTS], phaseIdx=(i - 1) // SLOTS)
            i += 1
        acc = tle.gpu.wgmma_wait(0, acc)
        tle.gpu.barrier_arrive(empty[(i - 1) % SLOTS], phaseIdx=(i - 1) // SLOTS)
        c_desc.store([tile_m * M + FIRST, tile_n * N], acc.to(c_desc.dtype))


@triton.jit
def gemm_kernel(
    a_desc, b_desc, c_desc, num_m, num_n, steps,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, SLOTS: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """Tiles of ``M`` by ``N``, ``K`` of the inner dimension a slot. Two warp groups have half of the rows each."""
    a = tle.gpu.alloc([SLOTS, M, K], dtype=a_desc.dtype)
    b = tle.gpu.alloc([SLOTS, N, K], dtype=b_desc.dtype)
    full = tle.gpu.alloc_barriers(SLOTS, expect_bytes=(M + N) * K * a_desc.dtype.primitive_bitwidth // 8)
    empty = tle.gpu.alloc_barriers(SLOTS, arrive_count=2, init=tle.gpu.READY)
    HALF: tl.constexpr = M // 2
    tle.gpu.warp_specialize(
        [
            (multiply, (c_desc, a, b, full, empty, num_m, num_n, steps, 0, HALF, M, N, SLOTS, GROUP)),
            (multiply, (c_desc, a, b, full, empty, num_m, num_n, steps, HALF, HALF, M, N, SLOTS, GROUP)),
            (bring, (a_desc, b_desc, a, b, full, empty, num_m, num_n, steps, M, N, K, SLOTS, GROUP)),
        ],
        [4, 1],
        [232, 40],
    )


def gemm(a, b, c, block=(128, 256, 64), slots=3, programs=132, group=8):
    """``c = a @ b.T`` for matrices whose rows are multiples of 16 bytes; ``programs`` share the tiles."""
    (rows, inner), columns = a.shape, b.shape[0]
    m, n, k = block
    num_m, num_n = triton.cdiv(rows, m), triton.cdiv(columns, n)
    return gemm_kernel[(min(programs, num_m * num_n),)](
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
        num_warps=4,
    )


def show(multiply):
    """Has ``multiply(a, b, c)`` multiply some matrices and compares the results with NumPy's."""
    import numpy as np

    for rows, columns, inner in ((256, 128, 128), (200, 104, 72)):
        rng = np.random.default_rng(0)
        a = rng.integers(-2, 3, (rows, inner)).astype(np.float16)
        b = rng.integers(-2, 3, (columns, inner)).astype(np.float16)
        c = np.full((rows, columns), np.nan, np.float16)
        multiply(a, b, c)
        np.testing.assert_array_equal(c, a.astype(np.float32) @ b.T.astype(np.float32))
        print(f"{rows} x {inner} by {inner} x {columns}")


def main():
    show(lambda a, b, c: gemm(a, b, c, (128, 64, 32), programs=2))


if __name__ == "__main__":
    main()
