"""More shared memory than the GPU has."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, K, N: tl.constexpr, BLOCK_K: tl.constexpr):
    i = tl.arange(0, N)
    k = tl.arange(0, BLOCK_K)
    acc = tl.zeros([N, N], tl.float32)
    for start in range(0, K, BLOCK_K):
        a = tl.load(a_ptr + i[:, None] * K + start + k[None, :])
        b = tl.load(b_ptr + (start + k)[:, None] * N + i[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + i[:, None] * N + i[None, :], acc)


def call():
    a, b, c = (np.zeros((256, 256), t) for t in (np.float16, np.float16, np.float32))
    kernel.warmup(a, b, c, 256, N=256, BLOCK_K=256, num_stages=4, num_warps=8, grid=(1,), target="cuda:90")
