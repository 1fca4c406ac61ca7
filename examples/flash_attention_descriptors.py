"""Flash attention, forward, on tensor descriptors: the mathematics of `flash_attention.py`, with blocks moved by the GPU's
copy engine and, if asked for, loading and computing given to different warps."""

import numpy as np
from flash_attention import reference

import tilewright as triton
import tilewright.language as tl
from tilewright.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def attend(
    acc, l_i, m_i, q, k, v, head, lo, hi, offs_m, offs_n, scale,
    BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr, WARP_SPECIALIZE: tl.constexpr,
):  # fmt: skip
    """Folds the keys lo..hi into the running maximum, denominator and output."""
    for start in tl.range(lo, hi, BLOCK_N, warp_specialize=WARP_SPECIALIZE):
        s = tl.dot(q, k.load([head + start, 0]).T)
        if CAUSAL:
            s = tl.where(offs_m[:, None] >= start + offs_n[None, :], s, -1.0e6)
        m_new = tl.maximum(m_i, tl.max(s, 1) * scale)
        p = tl.exp2(s * scale - m_new[:, None])
        alpha = tl.exp2(m_i - m_new)
        l_i = l_i * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None]
        acc = tl.dot(p.to(v.dtype), v.load([head + start, 0]), acc)
        m_i = m_new
    return acc, l_i, m_i


@triton.jit
def attend_rows(
    q_desc, k_desc, v_desc, o_desc, head, block, scale, n_ctx,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr, GROUP: tl.constexpr,
    WARP_SPECIALIZE: tl.constexpr,
):  # fmt: skip
    """A block of a head's queries against all keys that they may see; ``GROUP`` heads of queries share a head of keys."""
    start_m = block * BLOCK_M
    first, keys = head * n_ctx, head // GROUP * n_ctx  # the heads' rows lie one after the other
    offs_m = start_m + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    q = q_desc.load([first + start_m, 0])
    m_i = tl.full([BLOCK_M], -float("inf"), dtype=tl.float32)
    l_i = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, D], dtype=tl.float32)
    scale *= 1.4426950408889634  # log2(e): exponentials are taken to base 2
    if CAUSAL:
        acc, l_i, m_i = attend(acc, l_i, m_i, q, k_desc, v_desc, keys, 0, start_m, offs_m, offs_n, scale, BLOCK_N,
                               False, WARP_SPECIALIZE)  # fmt: skip
        acc, l_i, m_i = attend(acc, l_i, m_i, q, k_desc, v_desc, keys, start_m, start_m + BLOCK_M, offs_m, offs_n, scale,
                               BLOCK_N, True, WARP_SPECIALIZE)  # fmt: skip
    else:
        acc, l_i, m_i = attend(acc, l_i, m_i, q, k_desc, v_desc, keys, 0, n_ctx, offs_m, offs_n, scale, BLOCK_N,
                               False, WARP_SPECIALIZE)  # fmt: skip
    acc = acc * (1.0 / l_i)[:, None]  # one division a row
    o_desc.store([first + start_m, 0], acc.to(o_desc.dtype))


@triton.jit
def flash_descriptor_kernel(
    q_desc, k_desc, v_desc, o_desc, scale, n_ctx,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr, GROUP: tl.constexpr,
    WARP_SPECIALIZE: tl.constexpr,
):  # fmt: skip
    """A program for each block of queries."""
    block = tl.program_id(0)
    if CAUSAL:
        block = tl.num_programs(0) - 1 - block  # the longest rows first: what is left for the end is short
    attend_rows(q_desc, k_desc, v_desc, o_desc, tl.program_id(1), block, scale, n_ctx, D, BLOCK_M, BLOCK_N, CAUSAL,
                GROUP, WARP_SPECIALIZE)  # fmt: skip


@triton.jit
def flash_persistent_kernel(
    q_desc, k_desc, v_desc, o_desc, scale, n_ctx, heads,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr, GROUP: tl.constexpr,
    WARP_SPECIALIZE: tl.constexpr,
):  # fmt: skip
    """Programs that take blocks in turns, there and back: whoever has the longer of one round has the shorter of the next."""
    blocks = n_ctx // BLOCK_M
    program, programs = tl.program_id(0), tl.num_programs(0)
    total = blocks * heads
    rounds = total // programs
    rest = total - rounds * programs
    place = program
    if rounds % 2 == 1:
        place = programs - 1 - program
    if place < rest:
        rounds += 1
    for turn in tl.range(0, rounds, warp_specialize=WARP_SPECIALIZE):
        back = turn % 2
        tile = turn * programs + program + back * (programs - 1 - 2 * program)
        head, block = tile // blocks, tile % blocks
        if CAUSAL:
            block = blocks - 1 - block
        attend_rows(q_desc, k_desc, v_desc, o_desc, head, block, scale, n_ctx, D, BLOCK_M, BLOCK_N, CAUSAL, GROUP, False)  # fmt: skip


def flash_attention_descriptors(
    q, k, v, o, causal: bool, block=(128, 64), warp_specialize: bool = False, programs: int = 0, **options
) -> None:
    """o = softmax(q kᵀ / sqrt(D)) v for contiguous (heads, sequence, D) arrays; of keys and values there may be fewer heads, each for several of q's.

    The sequence is a multiple of both block sizes, and with ``causal`` the first block size of the second. With ``programs``
    so many share all blocks of queries.
    """
    heads, n_ctx, d = q.shape
    block_m, block_n = block
    rows = [
        TensorDescriptor(x, [x.shape[0] * n_ctx, d], [d, 1], [size, d])
        for x, size in ((q, block_m), (k, block_n), (v, block_n), (o, block_m))
    ]
    sizes = dict(
        D=d,
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        CAUSAL=causal,
        GROUP=heads // k.shape[0],
        WARP_SPECIALIZE=warp_specialize,
    )
    if programs:
        flash_persistent_kernel[(programs,)](*rows, d**-0.5, n_ctx, heads, **sizes, **options)
    else:
        flash_descriptor_kernel[(n_ctx // block_m, heads)](*rows, d**-0.5, n_ctx, **sizes, **options)


def example(device) -> None:
    """Head sizes 64, 96 and 128, causal and not, with and without warp specialization, a program for each block or three for all, two heads of queries for one of
    keys."""
    rng = np.random.default_rng(0)
    for d, causal, ws, group, shared in (
        (64, False, False, 1, {}),
        (64, True, True, 2, {}),
        (96, True, False, 1, {}),
        (128, False, True, 1, {}),
        (64, True, True, 1, {"programs": 3}),
        (64, False, False, 2, {"programs": 3}),
    ):
        heads = 4 if shared else 2
        q, k, v = (rng.standard_normal((n, 128, d)).astype(np.float16) for n in (heads, heads // group, heads // group))  # fmt: skip
        o = device.empty(q.shape, np.float16)
        flash_attention_descriptors(
            *(device.array(x) for x in (q, k, v)),
            o,
            causal,
            block=(64, 32),
            warp_specialize=ws,
            num_warps=4,
            **shared,
        )
        np.testing.assert_allclose(
            device.numpy(o), reference(q, *(x.repeat(group, 0) for x in (k, v)), causal), rtol=1e-2, atol=1e-2
        )


if __name__ == "__main__":
    from common import run

    run(example)
