"""Dropout whose mask comes from a seed and a counter, so that nothing but the seed is kept."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def dropout_kernel(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    keep = tl.rand(seed, offsets) > p
    tl.store(out_ptr + offsets, tl.where(keep, x / (1 - p), 0.0), mask=mask)


def dropout(x, out, p: float, seed: int, block: int = 1024, num_warps: int = 4) -> None:
    """out = x / (1 - p) where kept (with probability 1 - p), else 0."""
    n = x.shape[0]
    dropout_kernel[(triton.cdiv(n, block),)](x, out, n, p, seed, BLOCK=block, num_warps=num_warps)


def philox_uint32(seed: int, offsets: np.ndarray, rounds: int = 10) -> np.ndarray:
    """The first word of Philox-4x32 (Salmon et al., SC 2011) with counter (offset, 0, 0, 0) and key seed."""
    c = [offsets.astype(np.uint64)] + [np.zeros_like(offsets, np.uint64) for _ in range(3)]
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    low = np.uint64(0xFFFFFFFF)
    for _ in range(rounds):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [
            (b >> np.uint64(32)) ^ c[1] ^ np.uint64(k0),
            b & low,
            (a >> np.uint64(32)) ^ c[3] ^ np.uint64(k1),
            a & low,
        ]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c[0].astype(np.uint32)


def uniform(seed: int, offsets: np.ndarray) -> np.ndarray:
    """What ``tl.rand`` gives: the word as a signed integer, folded to non-negative, scaled to [0, 1)."""
    word = philox_uint32(seed, offsets).view(np.int32)
    return np.where(word < 0, ~word, word).astype(np.float32) * np.float32(4.6566127342e-10)


def example(device) -> None:
    """Dropout: the same seed gives the same mask."""
    x = np.random.default_rng(0).standard_normal(10_000, dtype=np.float32)
    p = np.float32(0.3)
    for seed, block in ((7, 1024), (2**40 + 5, 320)):
        out = device.empty(x.shape, np.float32)
        dropout(device.array(x), out, float(p), seed, block)
        want = np.where(uniform(seed, np.arange(x.size)) > p, x / (1 - p), np.float32(0))
        np.testing.assert_allclose(device.numpy(out), want, rtol=1e-6)


if __name__ == "__main__":
    from common import run

    run(example)
