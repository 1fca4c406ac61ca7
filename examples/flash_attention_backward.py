"""Flash attention, backward: the gradients of q, k and v with no score matrix in memory, causal or not.

With s = q kᵀ · scale, p = exp(s - lse) and o = p v: dv = pᵀ do, ds = p (do vᵀ - delta) with delta = Σ o do over a row,
dq = ds k · scale, dk = dsᵀ q · scale. In the form of two kernels one walks over the queries for a block of keys (dk, dv), another over the keys
for a block of queries (dq): nothing is added up in memory, and the same numbers give the same results. In the form of one kernel the first also adds
what its keys give to dq in memory, in float32 and in whatever order programs come: five products for seven, and for that zeros before and a rounding behind.
"""

import numpy as np
from flash_attention import reference as forward

import tilewright as triton
import tilewright.language as tl
from tilewright.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def delta_kernel(o_ptr, do_ptr, delta_ptr, sums_ptr, rows, D: tl.constexpr, BLOCK: tl.constexpr):
    """delta = Σ o do over each row; and zeros in the rows of ``sums_ptr``, unless that is None."""
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = row[:, None].to(tl.int64) * D + tl.arange(0, D)[None, :]
    inside = row[:, None] < rows
    o = tl.load(o_ptr + at, mask=inside, other=0.0).to(tl.float32)
    do = tl.load(do_ptr + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(delta_ptr + row, tl.sum(o * do, 1), mask=row < rows)
    if sums_ptr is not None:
        tl.store(sums_ptr + at, tl.zeros([BLOCK, D], dtype=tl.float32), mask=inside)


@triton.jit
def scale_kernel(x_ptr, y_ptr, scale, count, BLOCK: tl.constexpr):
    """y = x · scale, rounded."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    tl.store(y_ptr + at, (tl.load(x_ptr + at, mask=inside) * scale).to(y_ptr.dtype.element_ty), mask=inside)


@triton.jit
def load_inside(ptr, inside, other: tl.constexpr, EVEN: tl.constexpr):
    """What stands there; ``EVEN``: all of it is inside."""
    if EVEN:
        return tl.load(ptr)
    else:
        return tl.load(ptr, mask=inside, other=other)


@triton.jit
def store_inside(ptr, value, inside, EVEN: tl.constexpr):
    """Rounds to what the pointers name; ``EVEN`` as above."""
    if EVEN:
        tl.store(ptr, value.to(ptr.dtype.element_ty))
    else:
        tl.store(ptr, value.to(ptr.dtype.element_ty), mask=inside)


@triton.jit
def over_queries(dk, dv, k, v, q_ptr, do_ptr, lse_ptr, delta_ptr, lo, hi, offs_n, offs_d, n_ctx, scale,
                 D: tl.constexpr, BLOCK_M: tl.constexpr, EVEN: tl.constexpr, CAUSAL: tl.constexpr,
                 TOGETHER: tl.constexpr):  # fmt: skip
    """Adds what the queries lo..hi give to dk and dv of one block of keys; scores stand with a row a key. ``TOGETHER``: both products that
    want nothing but what is loaded come first, and numbers of rows are loaded where they are used."""
    for start in range(lo, hi, BLOCK_M):
        offs_m = start + tl.arange(0, BLOCK_M)
        at = offs_m[:, None] * D + offs_d[None, :]
        inside = offs_m < n_ctx
        q = load_inside(q_ptr + at, inside[:, None], 0.0, EVEN)
        if not TOGETHER:
            lse = load_inside(lse_ptr + offs_m, inside, float("inf"), EVEN)
        do = load_inside(do_ptr + at, inside[:, None], 0.0, EVEN)
        if not TOGETHER:
            delta = load_inside(delta_ptr + offs_m, inside, 0.0, EVEN)
        s = tl.dot(k, tl.trans(q))
        if TOGETHER:
            dp = tl.dot(v, tl.trans(do))
            lse = load_inside(lse_ptr + offs_m, inside, float("inf"), EVEN)
        p = tl.exp2(s * scale - (lse * 1.4426950408889634)[None, :])
        if CAUSAL:
            p = tl.where(offs_m[None, :] >= offs_n[:, None], p, 0.0)
        dv = tl.dot(p.to(do.dtype), do, dv)
        if TOGETHER:
            delta = load_inside(delta_ptr + offs_m, inside, 0.0, EVEN)
        else:
            dp = tl.dot(v, tl.trans(do))
        ds = p * (dp - delta[None, :])
        dk = tl.dot(ds.to(q.dtype), q, dk)
    return dk, dv


@triton.jit
def dkdv_kernel(
    q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dk_ptr, dv_ptr, scale, n_ctx,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr, EVEN: tl.constexpr,
    TOGETHER: tl.constexpr,
):  # fmt: skip
    """dk and dv of one block of BLOCK_N keys."""
    start_n = tl.program_id(0) * BLOCK_N
    row = tl.program_id(1).to(tl.int64) * n_ctx
    head = row * D
    offs_n = start_n + tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, D)
    at = head + offs_n[:, None] * D + offs_d[None, :]
    inside = offs_n[:, None] < n_ctx
    k = load_inside(k_ptr + at, inside, 0.0, EVEN)
    v = load_inside(v_ptr + at, inside, 0.0, EVEN)
    dk = tl.zeros([BLOCK_N, D], dtype=tl.float32)
    dv = tl.zeros([BLOCK_N, D], dtype=tl.float32)
    log2_scale = scale * 1.4426950408889634  # log2(e): exponentials are taken to base 2
    lo = 0
    if CAUSAL:  # the blocks of queries that the diagonal crosses, then those below it
        lo = min(start_n + BLOCK_N, n_ctx)
        dk, dv = over_queries(dk, dv, k, v, q_ptr + head, do_ptr + head, lse_ptr + row, delta_ptr + row, start_n, lo,
                              offs_n, offs_d, n_ctx, log2_scale, D, BLOCK_M, EVEN, True, TOGETHER)  # fmt: skip
    dk, dv = over_queries(dk, dv, k, v, q_ptr + head, do_ptr + head, lse_ptr + row, delta_ptr + row, lo, n_ctx,
                          offs_n, offs_d, n_ctx, log2_scale, D, BLOCK_M, EVEN, False, TOGETHER)  # fmt: skip
    dk *= scale
    store_inside(dk_ptr + at, dk, inside, EVEN)
    store_inside(dv_ptr + at, dv, inside, EVEN)


@triton.jit
def over_blocks(dk, dv, k, v, q_desc, do_desc, lse_desc, delta_desc, sums_desc, row, lo, hi, offs_n, scale,
                D: tl.constexpr, BLOCK_M: tl.constexpr, CAUSAL: tl.constexpr, TOGETHER: tl.constexpr,
                LATE: tl.constexpr):  # fmt: skip
    """As ``over_queries``, and what these keys give to dq / scale of each block of queries is added in memory: in the same iteration, or, with
    ``LATE``, in the next one, behind its first products."""
    if LATE:
        dq = tl.zeros([BLOCK_M, D], dtype=tl.float32)
    for start in range(lo, hi, BLOCK_M):
        q = q_desc.load([row + start, 0])
        do = do_desc.load([row + start, 0])
        lse = lse_desc.load([row + start])
        delta = delta_desc.load([row + start])
        s = tl.dot(k, tl.trans(q))
        if TOGETHER:
            dp = tl.dot(v, tl.trans(do))
        if LATE:
            sums_desc.atomic_add([row + tl.maximum(start - BLOCK_M, lo), 0], dq)
        p = tl.exp2(s * scale - (lse * 1.4426950408889634)[None, :])
        if CAUSAL:
            p = tl.where(start + tl.arange(0, BLOCK_M)[None, :] >= offs_n[:, None], p, 0.0)
        dv = tl.dot(p.to(do.dtype), do, dv)
        if not TOGETHER:
            dp = tl.dot(v, tl.trans(do))
        ds = (p * (dp - delta[None, :])).to(q.dtype)
        dq = tl.dot(tl.trans(ds), k)
        dk = tl.dot(ds, q, dk)
        if not LATE:
            sums_desc.atomic_add([row + start, 0], dq)
    if LATE:
        sums_desc.atomic_add([row + tl.maximum(hi - BLOCK_M, lo), 0], dq)
    return dk, dv


@triton.jit
def all_kernel(
    q_desc, k_desc, v_desc, do_desc, lse_desc, delta_desc, sums_desc, dk_desc, dv_desc, scale, n_ctx,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr, TOGETHER: tl.constexpr,
    LATE: tl.constexpr,
):  # fmt: skip
    """dk and dv of one block of BLOCK_N keys, and its share of dq / scale."""
    start_n = tl.program_id(0) * BLOCK_N
    row = tl.program_id(1) * n_ctx  # the heads' rows lie one after the other
    offs_n = start_n + tl.arange(0, BLOCK_N)
    k = k_desc.load([row + start_n, 0])
    v = v_desc.load([row + start_n, 0])
    dk = tl.zeros([BLOCK_N, D], dtype=tl.float32)
    dv = tl.zeros([BLOCK_N, D], dtype=tl.float32)
    log2_scale = scale * 1.4426950408889634
    lo = 0
    if CAUSAL:
        lo = start_n + BLOCK_N
        dk, dv = over_blocks(dk, dv, k, v, q_desc, do_desc, lse_desc, delta_desc, sums_desc, row, start_n, lo, offs_n,
                             log2_scale, D, BLOCK_M, True, TOGETHER, LATE)  # fmt: skip
    dk, dv = over_blocks(dk, dv, k, v, q_desc, do_desc, lse_desc, delta_desc, sums_desc, row, lo, n_ctx, offs_n,
                         log2_scale, D, BLOCK_M, False, TOGETHER, LATE)  # fmt: skip
    dk *= scale
    dk_desc.store([row + start_n, 0], dk.to(dk_desc.dtype))
    dv_desc.store([row + start_n, 0], dv.to(dv_desc.dtype))


@triton.jit
def over_keys(dq, q, do, k_ptr, v_ptr, lse, delta, lo, hi, offs_m, offs_d, n_ctx, scale,
              D: tl.constexpr, BLOCK_N: tl.constexpr, EVEN: tl.constexpr, CAUSAL: tl.constexpr):  # fmt: skip
    """Adds what the keys lo..hi give to dq of one block of queries."""
    for start in range(lo, hi, BLOCK_N):
        offs_n = start + tl.arange(0, BLOCK_N)
        at = offs_n[:, None] * D + offs_d[None, :]
        inside = offs_n[:, None] < n_ctx
        k = load_inside(k_ptr + at, inside, 0.0, EVEN)
        v = load_inside(v_ptr + at, inside, 0.0, EVEN)
        p = tl.exp2(tl.dot(q, tl.trans(k)) * scale - lse[:, None])
        if CAUSAL:
            p = tl.where(offs_m[:, None] >= offs_n[None, :], p, 0.0)
        ds = p * (tl.dot(do, tl.trans(v)) - delta[:, None])
        dq = tl.dot(ds.to(k.dtype), k, dq)
    return dq


@triton.jit
def dq_kernel(
    q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dq_ptr, scale, n_ctx,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    """dq of one block of BLOCK_M queries."""
    start_m = tl.program_id(0) * BLOCK_M
    row = tl.program_id(1).to(tl.int64) * n_ctx
    head = row * D
    offs_m = start_m + tl.arange(0, BLOCK_M)
    offs_d = tl.arange(0, D)
    at = head + offs_m[:, None] * D + offs_d[None, :]
    inside = offs_m < n_ctx
    q = load_inside(q_ptr + at, inside[:, None], 0.0, EVEN)
    do = load_inside(do_ptr + at, inside[:, None], 0.0, EVEN)
    lse = load_inside(lse_ptr + row + offs_m, inside, float("inf"), EVEN)
    delta = load_inside(delta_ptr + row + offs_m, inside, 0.0, EVEN)
    lse *= 1.4426950408889634
    dq = tl.zeros([BLOCK_M, D], dtype=tl.float32)
    log2_scale = scale * 1.4426950408889634
    hi = n_ctx
    if CAUSAL:  # the keys below the diagonal's blocks, then those that it crosses
        hi = min(start_m + BLOCK_M, n_ctx)
        dq = over_keys(dq, q, do, k_ptr + head, v_ptr + head, lse, delta, 0, start_m, offs_m, offs_d, n_ctx,
                       log2_scale, D, BLOCK_N, EVEN, False)  # fmt: skip
        dq = over_keys(dq, q, do, k_ptr + head, v_ptr + head, lse, delta, start_m, hi, offs_m, offs_d, n_ctx,
                       log2_scale, D, BLOCK_N, EVEN, True)  # fmt: skip
    else:
        dq = over_keys(dq, q, do, k_ptr + head, v_ptr + head, lse, delta, 0, hi, offs_m, offs_d, n_ctx,
                       log2_scale, D, BLOCK_N, EVEN, False)  # fmt: skip
    dq *= scale
    store_inside(dq_ptr + at, dq, inside[:, None], EVEN)


def delta(o, do, out, sums=None, block: int = 32, num_warps: int = 4) -> None:
    """out = Σ o do over the last dimension of (heads, sequence, D) arrays; ``sums``, of their shape and float32, gets zeros."""
    heads, n_ctx, d = o.shape
    grid = (triton.cdiv(heads * n_ctx, block),)
    delta_kernel[grid](o, do, out, sums, heads * n_ctx, D=d, BLOCK=block, num_warps=num_warps)


def dkdv(
    q, k, v, do, lse, delta, dk, dv, causal: bool, block=(64, 128), together: bool = False, **options
) -> None:
    """dk and dv by blocks of (queries, keys); with ``causal`` the second must be a multiple of the first."""
    heads, n_ctx, d = q.shape
    block_m, block_n = block
    dkdv_kernel[(triton.cdiv(n_ctx, block_n), heads)](
        q, k, v, do, lse, delta, dk, dv, d**-0.5, n_ctx, D=d, BLOCK_M=block_m, BLOCK_N=block_n, CAUSAL=causal,
        EVEN=n_ctx % block_m == 0 and n_ctx % block_n == 0, TOGETHER=together, **options,
    )  # fmt: skip


def all_at_once(
    q, k, v, do, lse, delta, sums, dk, dv, causal: bool, block=(64, 128), together: bool = False, late: bool = False,
    **options,
) -> None:  # fmt: skip
    """dk and dv by blocks of (queries, keys), and dq / scale added to ``sums``, which ``delta`` has filled with zeros. The sequence is a multiple of both,
    and with ``causal`` the second one of the first."""
    heads, n_ctx, d = q.shape
    block_m, block_n = block
    rows = [
        TensorDescriptor(x, [heads * n_ctx, d], [d, 1], [size, d])
        for x, size in ((q, block_m), (k, block_n), (v, block_n), (do, block_m), (sums, block_m), (dk, block_n), (dv, block_n))
    ]  # fmt: skip
    numbers = [TensorDescriptor(x, [heads * n_ctx], [1], [block_m]) for x in (lse, delta)]
    all_kernel[(n_ctx // block_n, heads)](
        *rows[:4], *numbers, *rows[4:], d**-0.5, n_ctx, D=d, BLOCK_M=block_m, BLOCK_N=block_n, CAUSAL=causal,
        TOGETHER=together, LATE=late, **options,
    )  # fmt: skip


def scaled(sums, out, block: int = 1024, num_warps: int = 4) -> None:
    """out = sums / sqrt(D), rounded."""
    heads, n_ctx, d = out.shape
    count = heads * n_ctx * d
    scale_kernel[(triton.cdiv(count, block),)](sums, out, d**-0.5, count, BLOCK=block, num_warps=num_warps)


def dq(q, k, v, do, lse, delta, out, causal: bool, block=(128, 64), **options) -> None:
    """dq by blocks of (queries, keys); with ``causal`` the first must be a multiple of the second."""
    heads, n_ctx, d = q.shape
    block_m, block_n = block
    dq_kernel[(triton.cdiv(n_ctx, block_m), heads)](
        q, k, v, do, lse, delta, out, d**-0.5, n_ctx, D=d, BLOCK_M=block_m, BLOCK_N=block_n, CAUSAL=causal,
        EVEN=n_ctx % block_m == 0 and n_ctx % block_n == 0, **options,
    )  # fmt: skip


def reference(q, k, v, do, causal: bool):
    """o, the logarithms of the softmax's denominators, dq, dk, dv in float64."""
    q, k, v, do = (x.astype(np.float64) for x in (q, k, v, do))
    scale = q.shape[-1] ** -0.5
    s = q @ k.transpose(0, 2, 1) * scale
    if causal:
        s = np.where(np.tri(s.shape[1], dtype=bool), s, -np.inf)
    lse = np.log(np.exp(s).sum(-1))
    o = forward(q, k, v, causal)
    p = np.exp(s - lse[..., None])
    ds = p * (do @ v.transpose(0, 2, 1) - (o * do).sum(-1, keepdims=True))
    return o, lse, ds @ k * scale, ds.transpose(0, 2, 1) @ q * scale, p.transpose(0, 2, 1) @ do


def example(device) -> None:
    """Head sizes 64, 96 and 128, causal and not, with and without a ragged end; in the form of two kernels and, where blocks are whole, in that of one."""
    rng = np.random.default_rng(0)
    for d, n_ctx, causal, options in (
        (64, 128, True, {"num_warps": 4, "num_stages": 3}),
        (64, 100, False, {"num_warps": 4, "num_stages": 1}),
        (96, 100, True, {"num_warps": 8, "num_stages": 2}),
        (96, 192, True, {"num_warps": 8, "num_stages": 2}),
        (128, 128, False, {"num_warps": 8, "num_stages": 2}),
    ):
        q, k, v, do = (rng.standard_normal((2, n_ctx, d)).astype(np.float16) for _ in range(4))
        o, lse, *want = reference(q, k, v, do, causal)
        q, k, v, o, do = (device.array(x.astype(np.float16)) for x in (q, k, v, o, do))
        lse, rows = device.array(lse.astype(np.float32)), device.empty(lse.shape, np.float32)
        grads = [device.empty(w.shape, np.float16) for w in want]
        delta(o, do, rows)
        dq(q, k, v, do, lse, rows, grads[0], causal, block=(64, 32), **options)
        for together in (False, True):
            dkdv(q, k, v, do, lse, rows, *grads[1:], causal, block=(32, 64), together=together, **options)
            close(device, grads, want)
            if n_ctx % 64 == 0:
                sums = device.empty(want[0].shape, np.float32)
                grads = [device.empty(w.shape, np.float16) for w in want]
                delta(o, do, rows, sums)
                all_at_once(
                    q,
                    k,
                    v,
                    do,
                    lse,
                    rows,
                    sums,
                    *grads[1:],
                    causal,
                    (32, 64),
                    together,
                    not together,
                    **options,
                )
                scaled(sums, grads[0])
                close(device, grads, want)


def close(device, grads, want) -> None:
    """Asserts that gradients are the exact ones."""
    for grad, w in zip(grads, want, strict=True):
        np.testing.assert_allclose(device.numpy(grad), w, rtol=1e-2, atol=1e-2)


if __name__ == "__main__":
    from common import run

    run(example)
