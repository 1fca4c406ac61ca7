"""Many products in one launch: of groups of rows, each with a matrix of its own, and of tokens that experts share out."""

import numpy as np
from matmul import tile_of

import tilewright as triton
import tilewright.language as tl


@triton.jit
def grouped_kernel(
    a_ptr, b_ptr, c_ptr, ends_ptr, groups, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, PROGRAMS: tl.constexpr,
):  # fmt: skip
    """Programs go through the tiles of all groups in turn: the first row of a group is where the one before it ends."""
    num_n = tl.cdiv(N, BLOCK_N)
    tile = tl.program_id(0)
    before = 0
    begin = 0
    for group in range(groups):
        end = tl.load(ends_ptr + group)
        tiles = tl.cdiv(end - begin, BLOCK_M) * num_n
        while tile < before + tiles:
            pid_m, pid_n = tile_of(tile - before, tl.cdiv(end - begin, BLOCK_M), num_n, 8)
            offs_m = begin + pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
            offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
            offs_k = tl.arange(0, BLOCK_K)
            a_ptrs = a_ptr + offs_m[:, None] * K + offs_k[None, :]
            b_ptrs = b_ptr + group.to(tl.int64) * N * K + offs_n[None, :] * K + offs_k[:, None]
            acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
            for k in range(0, tl.cdiv(K, BLOCK_K)):
                left = K - k * BLOCK_K
                a = tl.load(a_ptrs, mask=(offs_m[:, None] < end) & (offs_k[None, :] < left), other=0.0)
                b = tl.load(b_ptrs, mask=(offs_k[:, None] < left) & (offs_n[None, :] < N), other=0.0)
                acc = tl.dot(a, b, acc)
                a_ptrs += BLOCK_K
                b_ptrs += BLOCK_K
            c_ptrs = c_ptr + offs_m[:, None] * N + offs_n[None, :]
            tl.store(
                c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=(offs_m[:, None] < end) & (offs_n[None, :] < N)
            )
            tile += PROGRAMS
        before += tiles
        begin = end


@triton.jit
def experts_kernel(
    a_ptr, b_ptr, c_ptr, places_ptr, experts_ptr, num_places, N, K,
    TOP_K: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    """A program has one block of places, all of one expert."""
    pid_m, pid_n = tile_of(
        tl.program_id(0), tl.num_programs(0) // tl.cdiv(N, BLOCK_N), tl.cdiv(N, BLOCK_N), GROUP_M
    )
    place = tl.load(places_ptr + pid_m * BLOCK_M + tl.arange(0, BLOCK_M))
    expert = tl.load(experts_ptr + pid_m).to(tl.int64)
    there = place < num_places
    offs_n = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (place // TOP_K)[:, None] * K + offs_k[None, :]
    b_ptrs = b_ptr + expert * N * K + offs_n[None, :] * K + offs_k[:, None]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        left = K - k * BLOCK_K
        a = tl.load(a_ptrs, mask=there[:, None] & (offs_k[None, :] < left), other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < left, other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K
    offs_cn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    c_ptrs = c_ptr + place[:, None].to(tl.int64) * N + offs_cn[None, :]
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=there[:, None] & (offs_cn[None, :] < N))


def grouped_matmul(a, b, c, ends, programs: int = 132, block=(128, 128, 64), **options) -> None:
    """c[i:j] = a[i:j] @ b[group]ᵀ for each group of rows i:j, all contiguous; b is (groups, N, K).

    ``ends``: where each group ends among the rows, int32; a group may be empty.
    """
    groups, N, K = b.shape
    block_m, block_n, block_k = block
    grouped_kernel[(programs,)](
        a, b, c, ends, groups, N, K, BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, PROGRAMS=programs, **options
    )  # fmt: skip


def experts_matmul(
    a, b, c, places, experts, top_k: int, block=(64, 128, 64), group_m: int = 8, **options
) -> None:
    """c[p] = a[p // top_k] @ b[expert of p]ᵀ for all places p of tokens, all contiguous; b is (experts, N, K).

    ``places``: places by expert, each expert's filled up with the number of places to a multiple of the first block size, int32; ``experts``: the
    expert of each such block, int32.
    """
    _, N, K = b.shape
    block_m, block_n, block_k = block
    grid = (experts.shape[0] * triton.cdiv(N, block_n),)
    experts_kernel[grid](
        a, b, c, places, experts, c.shape[0], N, K,
        TOP_K=top_k, BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, GROUP_M=group_m, **options,
    )  # fmt: skip


def by_expert(expert: np.ndarray, num_experts: int, block: int) -> tuple[np.ndarray, np.ndarray]:
    """The arrays ``places`` and ``experts`` for the expert of each place."""
    places, experts = [], []
    for e in range(num_experts):
        mine = np.flatnonzero(expert == e)
        blocks = -(-len(mine) // block)
        places.append(np.pad(mine, (0, blocks * block - len(mine)), constant_values=len(expert)))
        experts += [e] * blocks
    return np.concatenate(places).astype(np.int32), np.array(experts, np.int32)


def example(device) -> None:
    """Four groups, one of them empty, and forty tokens with two of five experts each."""
    rng = np.random.default_rng(0)
    N, K = 72, 80
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((150, K), (4, N, K)))
    ends = np.array([64, 64, 101, 150], np.int32)
    c = device.empty((150, N), np.float16)
    grouped_matmul(device.array(a), device.array(b), c, device.array(ends), 3, (64, 32, 32))
    for group, (i, j) in enumerate(zip([0, *ends], ends)):
        want = a[i:j].astype(np.float64) @ b[group].astype(np.float64).T
        np.testing.assert_allclose(device.numpy(c)[i:j], want, rtol=1e-2, atol=5e-2)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((40, K), (5, N, K)))
    expert = np.stack([rng.permutation(5)[:2] for _ in range(40)]).reshape(-1)
    places, experts = by_expert(expert, 5, 16)
    c = device.empty((80, N), np.float16)
    experts_matmul(
        device.array(a), device.array(b), c, device.array(places), device.array(experts), 2, (16, 32, 32)
    )
    want = np.einsum("pk,pnk->pn", a.repeat(2, 0).astype(np.float64), b[expert].astype(np.float64))
    np.testing.assert_allclose(device.numpy(c), want, rtol=1e-2, atol=5e-2)


if __name__ == "__main__":
    from common import run

    run(example)
