"""Rotary position embedding (Su et al., 2021): the two halves of each head are turned by the token's angles."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def rope_kernel(
    x_ptr, cos_ptr, sin_ptr, out_ptr, n_positions, n_heads, HALF: tl.constexpr, HEADS: tl.constexpr
):
    token = tl.program_id(0).to(tl.int64)
    heads = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    cols = tl.arange(0, HALF)
    angle = (token % n_positions) * HALF + cols
    cos = tl.load(cos_ptr + angle)[None, :].to(tl.float32)
    sin = tl.load(sin_ptr + angle)[None, :].to(tl.float32)
    at = (token * n_heads + heads[:, None]) * (2 * HALF) + cols[None, :]
    mask = heads[:, None] < n_heads
    first = tl.load(x_ptr + at, mask=mask).to(tl.float32)
    second = tl.load(x_ptr + at + HALF, mask=mask).to(tl.float32)
    dtype = out_ptr.dtype.element_ty
    tl.store(out_ptr + at, (first * cos - second * sin).to(dtype), mask=mask)
    tl.store(out_ptr + at + HALF, (second * cos + first * sin).to(dtype), mask=mask)


def rope(x, cos, sin, out, heads: int | None = None, num_warps: int = 4) -> None:
    """out[t, h] = x[t, h] turned by the angles of position t % len(cos), for contiguous tokens × heads × dim.

    ``heads`` is how many heads a program takes.
    """
    n_tokens, n_heads, dim = x.shape
    heads = heads or n_heads
    rope_kernel[(n_tokens, triton.cdiv(n_heads, heads))](
        x, cos, sin, out, cos.shape[0], n_heads, HALF=dim // 2, HEADS=heads, num_warps=num_warps
    )


def example(device) -> None:
    """Rotary embedding of two sequences."""
    rng = np.random.default_rng(0)
    for n_heads, dim, heads in ((8, 64, None), (5, 128, 4), (3, 96, None)):
        x = rng.standard_normal((2 * 7, n_heads, dim), dtype=np.float32)
        frequency = 10000.0 ** (-np.arange(dim // 2) / (dim // 2))
        angle = np.arange(7)[:, None] * frequency
        cos, sin = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
        out = device.empty(x.shape, np.float32)
        rope(device.array(x), device.array(cos), device.array(sin), out, heads)
        turned = x[..., : dim // 2] + 1j * x[..., dim // 2 :]
        turned = turned * np.tile(cos + 1j * sin, (2, 1))[:, None, :]
        want = np.concatenate([turned.real, turned.imag], axis=-1)
        np.testing.assert_allclose(device.numpy(out), want, rtol=1e-4, atol=1e-5)


if __name__ == "__main__":
    from common import run

    run(example)
