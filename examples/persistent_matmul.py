"""Persistent matrix multiplication on tensor descriptors: as many programs as the GPU holds, each walking over tiles.

The blocks of both operands lie along K, as tensor cores read them best: c = a bᵀ with a of (M, K) and b of (N, K).
"""

import numpy as np
from matmul import tile_of

import tilewright as triton
import tilewright.language as tl
from tilewright.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def store_tile(c_desc, acc, row, column, HALVES: tl.constexpr):
    """Stores a tile: with HALVES as a left and a right half, which need half the buffer."""
    M: tl.constexpr = acc.shape[0]
    N: tl.constexpr = acc.shape[1]
    if HALVES:
        left, right = tl.split(tl.permute(tl.reshape(acc, (M, 2, N // 2)), (0, 2, 1)))
        c_desc.store([row, column], left.to(c_desc.dtype))
        c_desc.store([row, column + N // 2], right.to(c_desc.dtype))
    else:
        c_desc.store([row, column], acc.to(c_desc.dtype))


@triton.jit
def multiply(
    a, b, c, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    PROGRAMS: tl.constexpr, HALVES: tl.constexpr, FLATTEN: tl.constexpr, WARP_SPECIALIZE: tl.constexpr,
):  # fmt: skip
    """All tiles of one program."""
    num_m = tl.cdiv(M, BLOCK_M)
    num_n = tl.cdiv(N, BLOCK_N)
    steps = tl.cdiv(K, BLOCK_K)
    for tile in tl.range(
        tl.program_id(0), num_m * num_n, PROGRAMS, flatten=FLATTEN, warp_specialize=WARP_SPECIALIZE
    ):
        tile_m, tile_n = tile_of(tile, num_m, num_n, GROUP_M)
        row = tile_m * BLOCK_M
        column = tile_n * BLOCK_N
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for step in range(steps):
            x = a.load([row, step * BLOCK_K])
            y = b.load([column, step * BLOCK_K])
            acc = tl.dot(x, y.T, acc)
        store_tile(c, acc, row, column, HALVES)


@triton.jit
def given_kernel(
    a, b, c, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    PROGRAMS: tl.constexpr, HALVES: tl.constexpr, FLATTEN: tl.constexpr, WARP_SPECIALIZE: tl.constexpr,
):  # fmt: skip
    """With descriptors that the host made."""
    multiply(a, b, c, M, N, K, BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M, PROGRAMS, HALVES, FLATTEN, WARP_SPECIALIZE)


@triton.jit
def made_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    PROGRAMS: tl.constexpr, HALVES: tl.constexpr, FLATTEN: tl.constexpr, WARP_SPECIALIZE: tl.constexpr,
):  # fmt: skip
    """With descriptors that each program makes."""
    a = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BLOCK_M, BLOCK_K])
    b = tl.make_tensor_descriptor(b_ptr, [N, K], [K, 1], [BLOCK_N, BLOCK_K])
    c = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BLOCK_M, BLOCK_N // 2 if HALVES else BLOCK_N])
    multiply(a, b, c, M, N, K, BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M, PROGRAMS, HALVES, FLATTEN, WARP_SPECIALIZE)


def persistent_matmul(
    a, b, c, block=(128, 128, 64), programs: int = 132, made: bool = False, halves: bool = False,
    flatten: bool = True, warp_specialize: bool = False, group_m: int = 8, **options,
) -> None:  # fmt: skip
    """c = a bᵀ for contiguous matrices whose rows are multiples of 16 bytes.

    :param programs: the multiprocessors that share the work; a program takes as many as its clusters have CTAs (``num_ctas``).
    :param made: whether the kernel makes the descriptors, not the host.
    """
    (M, K), N = a.shape, b.shape[0]
    block_m, block_n, block_k = block
    tiles = triton.cdiv(M, block_m) * triton.cdiv(N, block_n)
    programs = min(max(programs // options.get("num_ctas", 1), 1), tiles)
    meta = dict(
        BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, GROUP_M=group_m, PROGRAMS=programs, HALVES=halves,
        FLATTEN=flatten, WARP_SPECIALIZE=warp_specialize, **options,
    )  # fmt: skip
    if made:
        made_kernel[(programs,)](a, b, c, M, N, K, **meta)
        return
    stored = [block_m, block_n // 2 if halves else block_n]
    given_kernel[(programs,)](
        TensorDescriptor.from_tensor(a, [block_m, block_k]),
        TensorDescriptor.from_tensor(b, [block_n, block_k]),
        TensorDescriptor.from_tensor(c, stored),
        M, N, K, **meta,
    )  # fmt: skip


def example(device) -> None:
    """Descriptors of the host and of the kernel, loops flattened or not, tiles that are no powers of two."""
    rng = np.random.default_rng(0)
    for (M, N, K), block, how in (
        ((192, 256, 128), (64, 64, 32), {"made": False, "flatten": False}),
        ((192, 256, 128), (64, 64, 32), {"made": True, "warp_specialize": True}),
        ((200, 168, 104), (64, 96, 32), {"made": False, "halves": True}),
        ((200, 168, 104), (64, 48, 64), {"made": True, "flatten": False}),
        ((200, 168, 104), (128, 64, 32), {"made": False, "warp_specialize": True, "num_ctas": 2}),
    ):
        a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((M, K), (N, K)))
        c = device.empty((M, N), np.float16)
        persistent_matmul(device.array(a), device.array(b), c, block, programs=4, **how)
        want = a.astype(np.float64) @ b.astype(np.float64).T
        np.testing.assert_allclose(device.numpy(c), want, rtol=1e-2, atol=5e-2)


if __name__ == "__main__":
    from common import run

    run(example)
