"""Attention, forward, with roles: o = softmax(q kᵀ / sqrt(D)) v, causal or not, by a warp that copies and two warp groups that compute.

Blocks of queries, keys and values go through pipes, each filled by the copy engine and read by both warp groups, which have half of the queries each.
A warp group begins the product of its queries with the next keys, and behind it that of its last weights with their values, and takes maxima
and exponentials of the first while the tensor cores are at the second. Keys are taken from the last to the first, so that the block that needs
a mask is one outside of the loop. As many programs as the GPU has multiprocessors walk over the blocks of queries: while one is stored, the copies of
the next one go on. Hopper only; on the CPU executor as it stands.
"""

import tilewright as triton
import tilewright.language as tl
from tilewright import tle
from tilewright.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def rounds(tiles):
    """How many tiles a program has: programs walk over them there and back, so that who has the longer of one round has the shorter of the next."""
    program, programs = tl.program_id(0), tl.num_programs(0)
    whole = tiles // programs
    place = program
    if whole % 2 == 1:
        place = programs - 1 - program
    return whole + (place < tiles - whole * programs).to(tl.int32)


@triton.jit
def place_of(turn, blocks, n_ctx, M: tl.constexpr, N: tl.constexpr, CAUSAL: tl.constexpr):
    """The head and the first query of a program's tile, and how many blocks of keys that has. The tiles of a head follow each other, longest first."""
    program, programs = tl.program_id(0), tl.num_programs(0)
    tile = turn * programs + program + turn % 2 * (programs - 1 - 2 * program)
    head, first = tile // blocks, tile % blocks * M
    seen = n_ctx
    if CAUSAL:
        first = (blocks - 1) * M - first
        seen = tl.minimum(first + M, n_ctx)
    return head, first, tl.cdiv(seen, N)


@triton.jit
def bring(
    q_pipe, k_pipe, v_pipe, q_desc, k_desc, v_desc, blocks, heads, n_ctx,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """Fills the pipes, tile after tile."""
    i = 0
    for turn in range(rounds(blocks * heads)):
        head, first, steps = place_of(turn, blocks, n_ctx, M, N, CAUSAL)
        tle.gpu.copy(q_desc, q_pipe.acquire(turn).q, [1, M, D], [head, first, 0])
        q_pipe.commit(turn)
        for step in range(steps):
            key = (steps - 1 - step) * N
            tle.gpu.copy(k_desc, k_pipe.acquire(i).k, [1, N, D], [head, key, 0])
            k_pipe.commit(i)
            tle.gpu.copy(v_desc, v_pipe.acquire(i).v, [1, N, D], [head, key, 0])
            v_pipe.commit(i)
            i += 1


@triton.jit
def attend(
    q_pipe, k_pipe, v_pipe, o_desc, blocks, heads, n_ctx, scale,
    FIRST: tl.constexpr, ROWS: tl.constexpr, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr,
    CAUSAL: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    """The ``ROWS`` queries from ``FIRST`` on of each tile."""
    scale *= 1.4426950408889634  # log2(e): exponentials are taken to base 2
    i = 0
    for turn in range(rounds(blocks * heads)):
        head, first, steps = place_of(turn, blocks, n_ctx, M, N, CAUSAL)
        q = q_pipe.wait(turn).slot.q.reshape([M, D]).subslice(FIRST, ROWS, dim=0)
        s = tle.gpu.wgmma(q, k_pipe.wait(i).slot.k.reshape([N, D]), trans_b=True)
        s = tle.gpu.wgmma_wait(0, s)
        k_pipe.release(i)
        key = (steps - 1) * N + tl.arange(0, N)[None, :]
        if CAUSAL:
            s = tl.where(key <= first + FIRST + tl.arange(0, ROWS)[:, None], s, float("-inf"))
        elif not EVEN:
            s = tl.where(key < n_ctx, s, float("-inf"))
        largest = tl.max(s, 1)
        weights = tl.exp2(s * scale - (largest * scale)[:, None])
        total = tl.sum(weights, 1)
        p = weights.to(o_desc.dtype)
        acc = tl.zeros([ROWS, D], tl.float32)
        for _ in range(1, steps):
            # The weights of block i are there; the keys of the next one are multiplied first.
            k = k_pipe.wait(i + 1).slot.k.reshape([N, D])
            s = tle.gpu.wgmma(q, k, trans_b=True)
            acc = tle.gpu.wgmma(p, v_pipe.wait(i).slot.v.reshape([N, D]), acc)
            s = tle.gpu.wgmma_wait(1, s)
            k_pipe.release(i + 1)
            before, largest = largest, tl.maximum(largest, tl.max(s, 1))
            weights = tl.exp2(s * scale - (largest * scale)[:, None])
            shrink = tl.exp2((before - largest) * scale)
            total = total * shrink + tl.sum(weights, 1)
            acc = tle.gpu.wgmma_wait(0, acc)
            v_pipe.release(i)
            acc *= shrink[:, None]
            p = weights.to(o_desc.dtype)
            i += 1
        q_pipe.release(turn)
        acc = tle.gpu.wgmma(p, v_pipe.wait(i).slot.v.reshape([N, D]), acc)
        acc = tle.gpu.wgmma_wait(0, acc)
        v_pipe.release(i)
        i += 1
        o = (acc / total[:, None]).to(o_desc.dtype)
        o_desc.store([head, first + FIRST, 0], o.reshape([1, ROWS, D]))


@triton.jit
def attention_kernel(
    q_desc, k_desc, v_desc, o_desc, blocks, heads, n_ctx, scale,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, SLOTS: tl.constexpr,
    CAUSAL: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    """Blocks of ``M`` queries and ``N`` keys. Two warp groups have half of the queries each."""
    q = tle.gpu.alloc([1, 1, M, D], dtype=q_desc.dtype)
    k = tle.gpu.alloc([SLOTS, 1, N, D], dtype=k_desc.dtype)
    v = tle.gpu.alloc([SLOTS, 1, N, D], dtype=v_desc.dtype)
    q_pipe = tle.pipe(capacity=1, readers=("upper", "lower"), q=q)
    k_pipe = tle.pipe(capacity=SLOTS, readers=("upper", "lower"), k=k)
    v_pipe = tle.pipe(capacity=SLOTS, readers=("upper", "lower"), v=v)
    HALF: tl.constexpr = M // 2
    tle.gpu.warp_specialize(
        [
            (attend, (q_pipe.reader("upper"), k_pipe.reader("upper"), v_pipe.reader("upper"), o_desc,
                      blocks, heads, n_ctx, scale, 0, HALF, M, N, D, CAUSAL, EVEN)),
            (attend, (q_pipe.reader("lower"), k_pipe.reader("lower"), v_pipe.reader("lower"), o_desc,
                      blocks, heads, n_ctx, scale, HALF, HALF, M, N, D, CAUSAL, EVEN)),
            (bring, (q_pipe.writer(), k_pipe.writer(), v_pipe.writer(),
                     q_desc, k_desc, v_desc, blocks, heads, n_ctx, M, N, D, CAUSAL)),
        ],
        [4, 1],
        [240, 24],
    )  # fmt: skip


def attention(q, k, v, o, causal, block=(128, 128), slots=2, programs=132):
    """``o = softmax(q kᵀ / sqrt(D)) v`` for contiguous (heads, sequence, D) arrays of 16-bit floats; ``programs`` share the blocks of queries.

    With ``causal`` the second block size, that of keys, is a multiple of the first.
    """
    heads, n_ctx, d = q.shape
    m, n = block
    if causal and n % m:
        raise ValueError(f"causal attention needs blocks of a multiple of {m} keys, not {n}")
    blocks = triton.cdiv(n_ctx, m)
    return attention_kernel[(min(programs, blocks * heads),)](
        *(TensorDescriptor.from_tensor(x, [1, rows, d]) for x, rows in ((q, m), (k, n), (v, n), (o, m // 2))),
        blocks,
        heads,
        n_ctx,
        d**-0.5,
        m,
        n,
        d,
        slots,
        causal,
        n_ctx % n == 0,
        num_warps=4,
    )  # fmt: skip


def reference(q, k, v, causal):
    """What NumPy finds."""
    import numpy as np

    q, k, v = (x.astype(np.float32) for x in (q, k, v))
    s = q @ k.swapaxes(1, 2) * q.shape[2] ** -0.5
    if causal:
        s = np.where(np.tri(q.shape[1], dtype=bool), s, -np.inf)
    p = np.exp(s - s.max(2, keepdims=True))
    return p / p.sum(2, keepdims=True) @ v


def main():
    """Some heads, against NumPy."""
    import numpy as np

    for heads, n_ctx, d, causal in ((1, 400, 64, False), (1, 256, 128, True)):
        rng = np.random.default_rng(0)
        q, k, v = (rng.standard_normal((heads, n_ctx, d)).astype(np.float16) for _ in range(3))
        o = np.full_like(q, np.nan)
        attention(q, k, v, o, causal, programs=2)
        np.testing.assert_allclose(o, reference(q, k, v, causal), rtol=1e-2, atol=1e-2)
        print(f"{heads} heads, {n_ctx} queries of {d}{', causal' if causal else ''}")


if __name__ == "__main__":
    main()
