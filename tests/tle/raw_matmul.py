"""A matmul whose products are CUDA (`raw_matmul.cu`), inside partitions whose loads, rings and stores are the language's."""

import tilewright as triton
import tilewright.language as tl
from tilewright import tle
from tilewright.tle.raw import InOut, Input, dialect

BLOCK = 128
SLICE = 64
SLOTS = 4

#: How `wgmma` deals out 64 x 128 sums.
SUMS = tl.constexpr(tle.gpu.MmaEncoding(3, [4, 1], [16, BLOCK, 16]))


@dialect(name="cuda", file="raw_matmul.cu")
def multiply(
    d: InOut["tensor<64x128xf32>"],
    a: Input["memref<8x128x8xf16, 3>"],
    b: Input["memref<8x128x8xf16, 3>"],
    first: Input["i32"],
): ...


@triton.jit
def bring(a_desc, b_desc, a, b, full, empty, n, S: tl.constexpr):
    row, column = tl.program_id(0) * 128, tl.program_id(1) * 128
    for i in range(n):
        tle.gpu.barrier_wait(empty[i % S], phaseIdx=i // S)
        tle.gpu.copy(a_desc, a.slot(i % S), [8, 128, 8], [i * 8, row, 0], barrier=full[i % S])
        tle.gpu.copy(b_desc, b.slot(i % S), [8, 128, 8], [i * 8, column, 0], barrier=full[i % S])


@triton.jit
def half(a, b, full, empty, n, c_ptr, N, FIRST: tl.constexpr, S: tl.constexpr):
    acc = tl.zeros([64, 128], tl.float32)
    for i in range(n):
        tle.gpu.barrier_wait(full[i % S], phaseIdx=i // S)
        tle.raw.call(multiply, [acc, a.slot(i % S), b.slot(i % S), FIRST], layout={acc: SUMS})
        tle.gpu.barrier_arrive(empty[i % S], phaseIdx=i // S)
    rows = tl.program_id(0) * 128 + FIRST + tl.arange(0, 64)
    columns = tl.program_id(1) * 128 + tl.arange(0, 128)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], acc.to(tl.float16))


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, S: tl.constexpr):
    """``c[M, N] = a[M, K] @ b[N, K].T`` of float16: a warp copies by TMA, two warp groups multiply 64 rows each.

    A buffer has a row of 8 numbers of each matrix for each 8 along K, which is how the tensor cores read one that isn't swizzled.
    """
    a_desc = tl.make_tensor_descriptor(a_ptr, [K // 8, M, 8], [8, K, 1], [8, 128, 8])
    b_desc = tl.make_tensor_descriptor(b_ptr, [K // 8, N, 8], [8, K, 1], [8, 128, 8])
    a, b = tle.gpu.alloc([S, 8, 128, 8], dtype=tl.float16), tle.gpu.alloc([S, 8, 128, 8], dtype=tl.float16)
    full = tle.gpu.alloc_barriers(S, expect_bytes=32768)
    empty = tle.gpu.alloc_barriers(S, arrive_count=2, init=tle.gpu.READY)
    n = K // 64
    tle.gpu.warp_specialize(
        [
            (half, (a, b, full, empty, n, c_ptr, N, 0, S)),
            (half, (a, b, full, empty, n, c_ptr, N, 64, S)),
            (bring, (a_desc, b_desc, a, b, full, empty, n, S)),
        ],
        [4, 1],
        [168, 40],
    )


def matmul(a, b, c, slots=SLOTS):
    """Launches it; every extent is a multiple of a block's, K of 64."""
    (m, k), n = a.shape, b.shape[0]
    return matmul_kernel[m // BLOCK, n // BLOCK](a, b, c, m, n, k, slots, num_warps=4)
