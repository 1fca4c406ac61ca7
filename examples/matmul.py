"""Matrix multiplication: programs in groups for L2 reuse, any M, N and K, tiles of any odd × 2^k shape."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def tile_of(pid, num_m, num_n, GROUP_M: tl.constexpr):
    """Walks the tiles of the result in groups of GROUP_M rows, so that a wave of programs shares operands in L2."""
    width = GROUP_M * num_n
    group = pid // width
    first_m = group * GROUP_M
    rows = min(num_m - first_m, GROUP_M)
    return first_m + (pid % width) % rows, (pid % width) // rows


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    ACC: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    pid_m, pid_n = tile_of(tl.program_id(0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), GROUP_M)
    offs_m = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    offs_n = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=ACC)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        left = K - k * BLOCK_K
        a = tl.load(a_ptrs, mask=offs_k[None, :] < left, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < left, other=0.0)
        acc = tl.dot(a, b, acc, input_precision=PRECISION, out_dtype=ACC)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    offs_cm = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_cn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    c_ptrs = c_ptr + offs_cm[:, None] * stride_cm + offs_cn[None, :] * stride_cn
    mask = (offs_cm[:, None] < M) & (offs_cn[None, :] < N)
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=mask)


@triton.jit
def split_k_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, SPLIT_K: tl.constexpr,
):  # fmt: skip
    num_n = tl.cdiv(N, BLOCK_N)
    pid_m = tl.program_id(0) // num_n
    pid_n = tl.program_id(0) % num_n
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(tl.program_id(1) * BLOCK_K, K, BLOCK_K * SPLIT_K):
        offs_k = start + tl.arange(0, BLOCK_K)
        a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak
        b_ptrs = b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn
        a = tl.load(a_ptrs, mask=(offs_m[:, None] < M) & (offs_k[None, :] < K), other=0.0)
        b = tl.load(b_ptrs, mask=(offs_k[:, None] < K) & (offs_n[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc)
    c_ptrs = c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn
    tl.atomic_add(c_ptrs, acc, mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))


def matmul(a, b, c, block=(64, 64, 32), group_m: int = 8, precision: str = "tf32", **options) -> None:
    """c = a @ b for matrices of any strides (fp16, bf16, fp32 by tf32 or ieee; int8 into int32)."""
    from common import stride

    (M, K), N = a.shape, b.shape[1]
    block_m, block_n, block_k = block
    grid = (triton.cdiv(M, block_m) * triton.cdiv(N, block_n),)
    strides = [stride(x, d) for x in (a, b, c) for d in (0, 1)]
    acc = tl.int32 if "int8" in str(a.dtype) else tl.float32
    matmul_kernel[grid](
        a, b, c, M, N, K, *strides,
        BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k, GROUP_M=group_m, ACC=acc, PRECISION=precision, **options,
    )  # fmt: skip


def split_k_matmul(a, b, c, block=(64, 64, 32), split_k: int = 4, **options) -> None:
    """c += a @ b in float32, the reduction split over programs that add atomically."""
    from common import stride

    (M, K), N = a.shape, b.shape[1]
    block_m, block_n, block_k = block
    grid = (triton.cdiv(M, block_m) * triton.cdiv(N, block_n), split_k)
    strides = [stride(x, d) for x in (a, b, c) for d in (0, 1)]
    split_k_kernel[grid](
        a,
        b,
        c,
        M,
        N,
        K,
        *strides,
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_K=block_k,
        SPLIT_K=split_k,
        **options,
    )


def example(device) -> None:
    """Matmul in fp16 with tiles that are, and are not, powers of two."""
    rng = np.random.default_rng(0)
    for (M, N, K), block in (((256, 192, 128), (64, 64, 32)), ((201, 170, 99), (96, 80, 48))):
        a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((M, K), (K, N)))
        want = a.astype(np.float64) @ b.astype(np.float64)
        c = device.empty((M, N), np.float16)
        matmul(device.array(a), device.array(b), c, block)
        np.testing.assert_allclose(device.numpy(c), want, rtol=1e-2, atol=5e-2)
        c = device.zeros((M, N), np.float32)
        split_k_matmul(device.array(a), device.array(b), c, block)
        np.testing.assert_allclose(device.numpy(c), want, rtol=1e-3, atol=1e-2)


if __name__ == "__main__":
    from common import run

    run(example)
