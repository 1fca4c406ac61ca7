"""Matrix multiplication by a pipe, c = a bᵀ with a of (M, K) and b of (N, K): one warp brings blocks of both operands, eight multiply them.

As many programs as the GPU has multiprocessors walk over the tiles of the result. The kernel says what each slot of the pipe holds, when it is
full and when it has been read; that blocks come by the copy engine, that products read the slots where they lie and are under way while the next
slot is waited for, is the compiler's. Compare ``gemm.py``, which says all of it. It runs anywhere; on Hopper as described.
"""

from gemm import show, tile_of
from persistent_matmul import store_tile

import tilewright as triton
import tilewright.language as tl
from tilewright import tle
from tilewright.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def fill_slots(writer, at, a_desc, b_desc, row, column, inner):
    """Brings the blocks of a tile that begins there, slot by slot from the cursor on; where that is then."""
    M: tl.constexpr = a_desc.block_shape[0]
    N: tl.constexpr = b_desc.block_shape[0]
    K: tl.constexpr = a_desc.block_shape[1]
    for k in range(0, inner, K):
        slot = writer.acquire(at)
        tle.gpu.copy(a_desc, slot.a, [M, K], [row, k])
        tle.gpu.copy(b_desc, slot.b, [N, K], [column, k])
        writer.commit(at)
        at.advance()
    return at


@triton.jit
def add_slots(reader, at, inner, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """The sum of the products of a tile's slots, and where the cursor is then."""
    acc = tl.zeros([M, N], tl.float32)
    for _ in range(0, inner, K):
        slot = reader.wait(at).slot
        acc = tl.dot(slot.a.load(), slot.b.load().T, acc)
        reader.release(at)
        at.advance()
    return acc, at


@triton.jit
def bring(
    writer, a_desc, b_desc, num_m, num_n, inner,
    M: tl.constexpr, N: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """Fills the slots, tile after tile."""
    at = writer.cursor(0)
    for tile in range(tl.program_id(0), num_m * num_n, tl.num_programs(0)):
        tile_m, tile_n = tile_of(tile, num_m, num_n, GROUP)
        at = fill_slots(writer, at, a_desc, b_desc, tile_m * M, tile_n * N, inner)


@triton.jit
def multiply(
    reader, c_desc, num_m, num_n, inner,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, HALVES: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """Adds up the products of the slots, and stores each tile."""
    at = reader.cursor(0)
    for tile in range(tl.program_id(0), num_m * num_n, tl.num_programs(0)):
        tile_m, tile_n = tile_of(tile, num_m, num_n, GROUP)
        acc, at = add_slots(reader, at, inner, M, N, K)
        store_tile(c_desc, acc, tile_m * M, tile_n * N, HALVES)


@triton.jit
def gemm_kernel(
    a_desc, b_desc, c_desc, num_m, num_n, inner,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, SLOTS: tl.constexpr, HALVES: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """Tiles of ``M`` by ``N``, ``K`` of the inner dimension a slot."""
    a = tle.gpu.alloc([SLOTS, M, K], dtype=a_desc.dtype)
    b = tle.gpu.alloc([SLOTS, N, K], dtype=b_desc.dtype)
    pipe = tle.pipe(capacity=SLOTS, name="operands", a=a, b=b)
    tle.gpu.warp_specialize(
        [
            (multiply, (pipe.reader(), c_desc, num_m, num_n, inner, M, N, K, HALVES, GROUP)),
            (bring, (pipe.writer(), a_desc, b_desc, num_m, num_n, inner, M, N, GROUP)),
        ],
        [1],
        [40],
    )


def gemm(a, b, c, block=(128, 256, 64), slots=4, programs=132, halves=True, group=8, num_warps=8):
    """``c = a @ b.T`` for matrices whose rows are multiples of 16 bytes; ``programs`` share the tiles."""
    (rows, inner), columns = a.shape, b.shape[0]
    m, n, k = block
    num_m, num_n = triton.cdiv(rows, m), triton.cdiv(columns, n)
    return gemm_kernel[(min(programs, num_m * num_n),)](
        TensorDescriptor.from_tensor(a, [m, k]),
        TensorDescriptor.from_tensor(b, [n, k]),
        TensorDescriptor.from_tensor(c, [m, n // 2 if halves else n]),
        num_m,
        num_n,
        inner,
        m,
        n,
        k,
        slots,
        halves,
        group,
        num_warps=num_warps,
    )


def main():
    show(lambda a, b, c: gemm(a, b, c, (128, 64, 32), slots=3, programs=2))


if __name__ == "__main__":
    main()
