"""`tle.gpu.wgmma` and `tle.gpu.wgmma_wait`: products that the kernel issues and waits for itself."""

import numpy as np
import order
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def block(ptr, M: tl.constexpr, N: tl.constexpr):
    return ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]


@triton.jit
def product(
    a_ptr,
    b_ptr,
    out_ptr,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    TA: tl.constexpr,
    TB: tl.constexpr,
    REGISTERS: tl.constexpr,
    OUT: tl.constexpr,
):
    AM: tl.constexpr = K if TA else M
    AK: tl.constexpr = M if TA else K
    BK: tl.constexpr = N if TB else K
    BN: tl.constexpr = K if TB else N
    a = tl.load(block(a_ptr, AM, AK))
    b = tle.gpu.alloc([BK, BN], dtype=b_ptr.dtype.element_ty)
    b.store(tl.load(block(b_ptr, BK, BN)))
    if not REGISTERS:
        buffer = tle.gpu.alloc([AM, AK], dtype=a_ptr.dtype.element_ty)
        buffer.store(a)
        a = buffer
    acc = tle.gpu.wgmma(a, b, out_dtype=OUT, trans_a=TA, trans_b=TB)
    acc = tle.gpu.wgmma_wait(0, acc)
    tl.store(block(out_ptr, M, N), acc)


DTYPES = {
    "fp16": (tl.float16, tl.float32),
    "fp16 to fp16": (tl.float16, tl.float16),
    "bf16": (tl.bfloat16, tl.float32),
    "tf32": (tl.float32, tl.float32),
    "int8": (tl.int8, tl.int32),
    "e4m3": (tl.float8e4nv, tl.float32),
    "e5m2": (tl.float8e5, tl.float32),
}


def given(device, dtype, shape, seed):
    """Small whole numbers of a dtype, exact in each of them: as the kernel has them, and as NumPy does."""
    x = np.random.default_rng(seed).integers(-2, 3, shape)
    if dtype in (tl.float16, tl.float32, tl.int8):
        x = x.astype({tl.float16: np.float16, tl.float32: np.float32, tl.int8: np.int8}[dtype])
        return device.array(x), x
    bits = {tl.bfloat16: (np.uint16, 7, 127), tl.float8e4nv: (np.uint8, 3, 7), tl.float8e5: (np.uint8, 2, 15)}
    kind, mantissa, bias = bits[dtype]
    exponent = np.where(np.abs(x) == 2, bias + 1, np.where(x == 0, 0, bias))
    sign = (x < 0).astype(np.int64) << (8 * np.dtype(kind).itemsize - 1)
    raw = (sign | exponent << mantissa).astype(kind)
    return triton.reinterpret(device.array(raw), dtype), x


@pytest.mark.parametrize("registers", [False, True])
@pytest.mark.parametrize("name", list(DTYPES))
def test_dtypes(device, name, registers):
    dtype, out_dtype = DTYPES[name]
    m, n, k = 64, 64, 64
    wide = name in ("fp16", "fp16 to fp16", "bf16")
    a, x = given(device, dtype, (m, k), 0)
    b, y = given(device, dtype, (n, k), 1)
    kind = {tl.float32: np.float32, tl.float16: np.float16, tl.int32: np.int32}[out_dtype]
    out = device.array(np.zeros((m, n), kind))
    product[(1,)](a, b, out, m, n, k, False, True, registers, out_dtype)
    want = x.astype(np.float64) @ y.T.astype(np.float64)
    np.testing.assert_array_equal(device.numpy(out), want.astype(kind))
    if wide:
        product[(1,)](a, b, out, m, n, k, False, False, registers, out_dtype)
        np.testing.assert_array_equal(
            device.numpy(out), (x.astype(np.float64) @ y.astype(np.float64)).astype(kind)
        )


@pytest.mark.parametrize("trans", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize(
    ("num_warps", "shape"),
    [
        (4, (64, 96, 48)),
        (4, (128, 256, 16)),
        (4, (192, 32, 80)),
        (8, (64, 192, 64)),
        (8, (256, 64, 32)),
    ],
)
def test_shapes(device, shape, trans, num_warps):
    m, n, k = shape
    a, x = given(device, tl.float16, (k, m) if trans[0] else (m, k), 0)
    b, y = given(device, tl.float16, (n, k) if trans[1] else (k, n), 1)
    out = device.array(np.zeros((m, n), np.float32))
    product[(1,)](a, b, out, m, n, k, *trans, False, tl.float32, num_warps=num_warps)
    x, y = (x.T if trans[0] else x), (y.T if trans[1] else y)
    np.testing.assert_array_equal(device.numpy(out), x.astype(np.float32) @ y.astype(np.float32))


@triton.jit
def loop(a_ptr, b_ptr, out_ptr, steps, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """Two buffers in turn; each product is waited for when the next one has begun."""
    a, b = tle.gpu.alloc([2, M, K], dtype=tl.float16), tle.gpu.alloc([2, K, N], dtype=tl.float16)
    acc = tl.zeros([M, N], tl.float32)
    for i in range(steps):
        a.slot(i % 2).store(tl.load(block(a_ptr + i * M * K, M, K)))
        b.slot(i % 2).store(tl.load(block(b_ptr + i * K * N, K, N)))
        acc = tle.gpu.wgmma(a.slot(i % 2), b.slot(i % 2), acc)
        acc = tle.gpu.wgmma_wait(1, acc)
    acc = tle.gpu.wgmma_wait(0, acc)
    tl.store(block(out_ptr, M, N), acc * 2)


@pytest.mark.parametrize("steps", [0, 1, 5])
def test_accumulators_are_carried(device, steps):
    m, n, k = 64, 64, 32
    a, x = given(device, tl.float16, (max(steps, 1), m, k), 0)
    b, y = given(device, tl.float16, (max(steps, 1), k, n), 1)
    out = device.array(np.ones((m, n), np.float32))
    loop[(1,)](a, b, out, steps, m, n, k)
    want = sum((x[i].astype(np.float32) @ y[i].astype(np.float32) for i in range(steps)), np.zeros((m, n)))
    np.testing.assert_array_equal(device.numpy(out), want * 2)


@triton.jit
def bring(
    a_desc, b_desc, a, b, full, empty, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, S: tl.constexpr
):
    for i in range(n):
        tle.gpu.barrier_wait(empty[i % S], phaseIdx=i // S)
        tle.gpu.copy(a_desc, a.slot(i % S), [M, K], [0, i * K], barrier=full[i % S])
        tle.gpu.copy(b_desc, b.slot(i % S), [K, N], [i * K, 0], barrier=full[i % S])


@triton.jit
def half(
    a, b, full, empty, n, out_ptr, FIRST: tl.constexpr, M: tl.constexpr, N: tl.constexpr, S: tl.constexpr
):
    """64 of the rows, with the product of the step before under way while the next one begins."""
    acc = tl.zeros([M // 2, N], tl.float32)
    for i in range(n):
        tle.gpu.barrier_wait(full[i % S], phaseIdx=i // S)
        acc = tle.gpu.wgmma(a.slot(i % S).subslice(FIRST, M // 2, dim=0), b.slot(i % S), acc)
        acc = tle.gpu.wgmma_wait(1, acc)
        if i > 0:
            tle.gpu.barrier_arrive(empty[(i - 1) % S], phaseIdx=(i - 1) // S)
    acc = tle.gpu.wgmma_wait(0, acc)
    tl.store(block(out_ptr + FIRST * N, M // 2, N), acc.to(tl.float16))


@triton.jit
def specialized(a_ptr, b_ptr, out_ptr, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, S: tl.constexpr):
    """A warp that copies, and two warp groups that share what it brings."""
    a_desc = tl.make_tensor_descriptor(a_ptr, [M, k], [k, 1], [M, K])
    b_desc = tl.make_tensor_descriptor(b_ptr, [k, N], [N, 1], [K, N])
    a, b = tle.gpu.alloc([S, M, K], dtype=tl.float16), tle.gpu.alloc([S, K, N], dtype=tl.float16)
    full = tle.gpu.alloc_barriers(S, expect_bytes=(M + N) * K * 2)
    empty = tle.gpu.alloc_barriers(S, arrive_count=2, init=tle.gpu.READY)
    n = tl.cdiv(k, K)
    tle.gpu.warp_specialize(
        [
            (half, (a, b, full, empty, n, out_ptr, 0, M, N, S)),
            (half, (a, b, full, empty, n, out_ptr, M // 2, M, N, S)),
            (bring, (a_desc, b_desc, a, b, full, empty, n, M, N, K, S)),
        ],
        [4, 1],
        [168, 40],
    )


@pytest.mark.parametrize(("k", "slots"), [(32, 2), (160, 2), (224, 3)])
def test_partitions(device, k, slots):
    m, n = 128, 64
    a, x = given(device, tl.float16, (m, k), 0)
    b, y = given(device, tl.float16, (k, n), 1)
    out = device.array(np.zeros((m, n), np.float16))
    specialized[(1,)](a, b, out, k, m, n, 32, slots)
    np.testing.assert_array_equal(device.numpy(out), x.astype(np.float32) @ y.astype(np.float32))


def test_the_waits_are_the_authors():
    x = np.zeros((128, 64), np.float16)
    ptx = specialized.warmup(x, x, x, 64, 128, 64, 32, 2, grid=(1,), target="cuda:90").asm["ptx"]
    assert ptx.count("wgmma.wait_group.sync.aligned 1;") == ptx.count("wgmma.wait_group.sync.aligned 0;") == 2
    assert ptx.count("fence.proxy.async.shared") == 0


@triton.jit
def attention(q_ptr, k_ptr, v_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    """What one product gives is the left operand of the next, in registers; both are under way at the same time."""
    q, k, v = (
        tle.gpu.alloc([M, D], tl.float16),
        tle.gpu.alloc([N, D], tl.float16),
        tle.gpu.alloc([N, D], tl.float16),
    )
    q.store(tl.load(block(q_ptr, M, D)))
    k.store(tl.load(block(k_ptr, N, D)))
    v.store(tl.load(block(v_ptr, N, D)))
    scores = tle.gpu.wgmma_wait(tle.gpu.wgmma(q, k, trans_b=True))
    out = tle.gpu.wgmma(scores.to(tl.float16), v)
    again = tle.gpu.wgmma(q, k, trans_b=True)
    out = tle.gpu.wgmma_wait(1, out)
    tl.store(block(out_ptr, M, D), out)
    again = tle.gpu.wgmma_wait(0, again)
    tl.store(block(out_ptr, M, D), out + tl.sum(again, 1)[:, None])


def test_a_product_of_a_product(device):
    m, n, d = 64, 32, 64
    q, x = given(device, tl.float16, (m, d), 0)
    k, y = given(device, tl.float16, (n, d), 1)
    v, z = given(device, tl.float16, (n, d), 2)
    out = device.array(np.zeros((m, d), np.float32))
    attention[(1,)](q, k, v, out, m, n, d)
    scores = x.astype(np.float32) @ y.T.astype(np.float32)
    want = scores @ z.astype(np.float32) + scores.sum(1, keepdims=True)
    np.testing.assert_array_equal(device.numpy(out), want)


@triton.jit
def views(a_ptr, b_ptr, out_ptr, N: tl.constexpr):
    """Operands are views: rows counted by two dimensions, half the columns of a wider buffer; one is written through pointers."""
    parts = tle.gpu.alloc([2, 32, 64], dtype=tl.float16)
    wide = tle.gpu.alloc([64, 2 * N], dtype=tl.float16)
    for i in tl.static_range(2):
        parts.slot(i).store(tl.load(block(a_ptr + i * 32 * 64, 32, 64)))
    tl.store(tle.gpu.local_ptr(wide), tl.load(block(b_ptr, 64, 2 * N)))
    at = tl.arange(0, 2 * N)
    row = tle.gpu.local_ptr(wide, (tl.full([2 * N], 5, tl.int32), at))
    tl.store(row, tl.load(row) + at % 2)
    acc = tle.gpu.wgmma(parts.reshape([64, 64]), wide.subslice(N, N))
    acc = tle.gpu.wgmma(parts.reshape([64, 64]), wide.subslice(0, N), acc)
    tl.store(block(out_ptr, 64, N), tle.gpu.wgmma_wait(0, acc))


def test_views(device):
    a, x = given(device, tl.float16, (64, 64), 0)
    b, y = given(device, tl.float16, (64, 256), 1)
    out = device.array(np.zeros((64, 128), np.float32))
    views[(1,)](a, b, out, 128)
    x, y = x.astype(np.float32), y.astype(np.float32)
    y[5] += np.arange(256) % 2
    np.testing.assert_array_equal(device.numpy(out), x @ y[:, :128] + x @ y[:, 128:])


@triton.jit
def filled_by_a_worker(x_ptr, a, b, full, empty, n, K: tl.constexpr, N: tl.constexpr):
    for i in range(n):
        tle.gpu.barrier_wait(empty, phaseIdx=i)
        a.store(tl.load(block(x_ptr + i * 64 * K, 64, K)))
        tl.store(tle.gpu.local_ptr(b, (tl.arange(0, K)[:, None], tl.arange(0, N)[None, :])), 1.0)
        tle.gpu.barrier_arrive(full, phaseIdx=i)


@triton.jit
def multiply(out_ptr, a, b, full, empty, n, N: tl.constexpr):
    acc = tl.zeros([64, N], tl.float32)
    for i in range(n):
        tle.gpu.barrier_wait(full, phaseIdx=i)
        acc = tle.gpu.wgmma(a, b, acc)
        acc = tle.gpu.wgmma_wait(0, acc)
        tle.gpu.barrier_arrive(empty, phaseIdx=i)
    tl.store(block(out_ptr, 64, N), acc)


@triton.jit
def stores_for_another(x_ptr, out_ptr, n, K: tl.constexpr, N: tl.constexpr):
    """What a worker stores is read by the products of another partition: behind a proxy fence before the arrival."""
    a, b = tle.gpu.alloc([64, K], dtype=tl.float16), tle.gpu.alloc([K, N], dtype=tl.float16)
    full, empty = tle.gpu.alloc_barrier(), tle.gpu.alloc_barrier(init=tle.gpu.READY)
    tle.gpu.warp_specialize(
        [
            (multiply, (out_ptr, a, b, full, empty, n, N)),
            (filled_by_a_worker, (x_ptr, a, b, full, empty, n, K, N)),
        ],
        [2],
        [80],
    )


def test_stores_of_another_partition(device):
    a, x = given(device, tl.float16, (3, 64, 32), 0)
    out = device.array(np.zeros((64, 32), np.float32))
    stores_for_another[(1,)](a, out, 3, 32, 32)
    np.testing.assert_array_equal(
        device.numpy(out), np.repeat(x.sum((0, 2), dtype=np.float32)[:, None], 32, 1)
    )


@triton.jit
def beside_ordinary_products(a_ptr, b_ptr, out_ptr, n, N: tl.constexpr):
    """`tl.dot` in a loop of the same kernel, and memory that reductions could take while a product reads it."""
    a, b = tle.gpu.alloc([N, N], tl.float16), tle.gpu.alloc([N, N], tl.float16)
    a.store(tl.load(block(a_ptr, N, N)))
    b.store(tl.load(block(b_ptr, N, N)))
    mine = tle.gpu.wgmma(a, b)
    acc = tl.zeros([N, N], tl.float32)
    for _ in range(n):
        acc = tl.dot(tl.load(block(a_ptr, N, N)), tl.load(block(b_ptr, N, N)), acc)
    total = tl.sum(acc, 0)
    mine = tle.gpu.wgmma_wait(mine)
    tl.store(block(out_ptr, N, N), mine + total[None, :])


def test_beside_ordinary_products(device):
    a, x = given(device, tl.float16, (64, 64), 0)
    b, y = given(device, tl.float16, (64, 64), 1)
    out = device.array(np.zeros((64, 64), np.float32))
    beside_ordinary_products[(1,)](a, b, out, 3, 64)
    want = x.astype(np.float32) @ y.astype(np.float32)
    np.testing.assert_array_equal(device.numpy(out), want + 3 * want.sum(0))


@triton.jit
def wrong(x_ptr, n, CASE: tl.constexpr):
    a, b = tle.gpu.alloc([64, 32], tl.float16), tle.gpu.alloc([32, 64], tl.float16)
    floats, bytes_ = tle.gpu.alloc([32, 64], tl.float32), tle.gpu.alloc([32, 64], tl.int8)
    plain = tle.gpu.alloc([32, 64], tl.float16, nv_mma_shared_layout=False)
    at = block(x_ptr, 64, 64)
    if CASE == 0:
        tle.gpu.wgmma(a, tl.zeros([32, 64], tl.float16))
    elif CASE == 1:
        tle.gpu.wgmma(a, tle.gpu.alloc([16, 64], tl.float16))
    elif CASE == 2:
        tle.gpu.wgmma(tle.gpu.alloc([32, 32], tl.float16), b)
    elif CASE == 3:
        tle.gpu.wgmma(a, tle.gpu.alloc([32, 12], tl.float16))
    elif CASE == 4:
        tle.gpu.wgmma(tle.gpu.alloc([64, 8], tl.float16), tle.gpu.alloc([8, 64], tl.float16))
    elif CASE == 5:
        tle.gpu.wgmma(a, floats)
    elif CASE == 6:
        tle.gpu.wgmma(tl.zeros([64, 32], tl.float32), floats)
    elif CASE == 7:
        tle.gpu.wgmma(tl.zeros([64, 32], tl.int8), bytes_)
    elif CASE == 8:
        tle.gpu.wgmma(a, b, out_dtype=tl.bfloat16)
    elif CASE == 9:
        tle.gpu.wgmma(a, b, tl.zeros([64, 32], tl.float32))
    elif CASE == 10:
        tle.gpu.wgmma(tl.zeros([64, 64], tl.float32), floats, input_precision="ieee", trans_b=True)
    elif CASE == 11:
        tle.gpu.wgmma(a, plain)
    elif CASE == 12:
        tle.gpu.wgmma(tle.gpu.alloc([2, 64, 32], tl.float16), b)
    elif CASE == 13:
        tle.gpu.wgmma_wait(8, tle.gpu.wgmma(a, b))
    elif CASE == 14:
        tle.gpu.wgmma_wait(0, 1.0)
    elif CASE == 15:
        tl.store(at, tle.gpu.wgmma(a, b))
    elif CASE == 16:
        acc = tle.gpu.wgmma(a, b)
        tl.store(at, tle.gpu.wgmma_wait(1, acc))
    elif CASE == 17:
        acc = tl.zeros([64, 64], tl.float32)
        for _ in range(n):
            acc = tle.gpu.wgmma(a, b, acc)
        tl.store(at, acc)
    elif CASE == 18:
        acc = tl.zeros([64, 64], tl.float32)
        if n > 1:
            acc = tle.gpu.wgmma(a, b, acc)
        tl.store(at, acc + 1)
    elif CASE == 19:
        acc = tl.zeros([64, 64], tl.float32)
        for _ in range(n):
            acc = tle.gpu.wgmma(tl.load(block(x_ptr, 64, 32)).to(tl.float16), b, acc)
            acc = tle.gpu.wgmma_wait(1, acc)
        acc = tle.gpu.wgmma_wait(0, acc)


UNDER_WAY = "the result of a tle.gpu.wgmma is used here, where it may be under way"
WRONG = [
    "`b` of tle.gpu.wgmma must be a buffered_tensor",
    "needs equal K, but the operands have 32 and 16",
    "of fp16 needs M to be a multiple of 64, but it is 32",
    "of fp16 needs N to be a multiple of 8, but it is 12",
    "of fp16 needs K to be a multiple of 16, but it is 8",
    "does not multiply fp16 by fp32",
    "`b` of tle.gpu.wgmma must lie with K contiguous, since it is of fp32",
    "`b` of tle.gpu.wgmma must lie with K contiguous, since it is of int8",
    "`out_dtype` of tle.gpu.wgmma of fp16 cannot be",
    "`acc` of tle.gpu.wgmma must be",
    "multiplies float32 as tf32",
    "`b` of tle.gpu.wgmma is a buffer with a layout that products cannot read",
    "multiplies matrices: `a` is",
    "leaves 0 to 7 products, not 8",
    "`acc` of tle.gpu.wgmma_wait must be what tle.gpu.wgmma gave",
    UNDER_WAY,
    UNDER_WAY,
    UNDER_WAY,
    UNDER_WAY,
    "not supported yet: a tle.gpu.wgmma with `a` in registers that no tle.gpu.wgmma_wait ends",
]


@pytest.mark.parametrize(("case", "message"), list(enumerate(WRONG)))
def test_errors(device, case, message):
    with pytest.raises(triton.CompilationError, match=message) as error:
        wrong[(1,)](device.array(np.zeros((64, 64), np.float32)), 3, case)
    assert "test_wgmma.py" in str(error.value) and "^" in str(error.value)
    if message == UNDER_WAY:
        assert "tl.store(at" in str(error.value)


@pytest.mark.parametrize(
    ("arch", "num_warps", "message"),
    [
        ("cuda:80", 4, "not supported on cuda:80: tle.gpu.wgmma"),
        ("cuda:100", 4, "not supported on cuda:100: tle.gpu.wgmma"),
        ("cuda:90", 2, "cannot be shared by the warps that run it"),
        ("cuda:90", 16, "cannot be shared by the warps that run it"),
    ],
)
def test_targets(arch, num_warps, message):
    x = np.zeros((64, 24), np.float16)
    with pytest.raises(triton.CompilationError, match=message) as error:
        product.warmup(
            x, x, x, 64, 24, 32, False, False, False, tl.float32, grid=(1,), target=arch, num_warps=num_warps
        )
    assert "tle.gpu.wgmma(a, b, out_dtype" in str(error.value)


@pytest.mark.parametrize("trans_b", [False, True])
def test_a_buffer_that_no_product_can_read(trans_b):
    """Rows of 24 elements of 16 bits are no whole swizzles; as K they are."""
    x = np.zeros((64, 24), np.float16)
    args = (x, x, x, 64, 24, 32, False, trans_b, False, tl.float32)
    if trans_b:
        assert (
            "wgmma.mma_async.sync.aligned.m64n24k16"
            in product.warmup(*args, grid=(1,), target="cuda:90").asm["ptx"]
        )
        return
    with pytest.raises(triton.CompilationError, match=r"reads a buffer of shape \[32, 24\] of 16 bits"):
        product.warmup(*args, grid=(1,), target="cuda:90")


def test_the_simulator_asks_for_each_of_them():
    """Whatever of waits, barriers and the proxy fence before the worker's arrival is missing, the simulator reports it."""
    x = np.random.default_rng(0).integers(-2, 3, (3 * 64, 32)).astype(np.float16)
    compiled = stores_for_another.warmup(x, x.astype(np.float32), 3, 32, 32, grid=(1,), target="cuda:90")
    reported = order.reported(compiled, [x, np.zeros((64, 32), np.float32), 3])
    assert [line for line, kinds in reported if not kinds] == []
    fences = [kinds for line, kinds in reported if "fence.proxy.async" in line]
    assert len(fences) == 1 and fences[0][0] == "proxy-fence"


@triton.jit
def one_role(q_ptr, k_ptr, out_ptr, n, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    """The same warps copy ahead and multiply: rows in registers by blocks that come while the last one is used; the largest of each row."""
    q = tl.load(block(q_ptr, M, D))
    desc = tl.make_tensor_descriptor(k_ptr, [n * N, D], [D, 1], [N, D])
    k = tle.gpu.alloc([2, N, D], dtype=tl.float16)
    full = tle.gpu.alloc_barriers(2, expect_bytes=N * D * 2)
    empty = tle.gpu.alloc_barriers(2, init=tle.gpu.READY)
    largest = tl.full([M], float("-inf"), tl.float32)
    tle.gpu.barrier_wait(empty[0], phaseIdx=0)
    tle.gpu.copy(desc, k.slot(0), [N, D], [0, 0], barrier=full[0])
    for i in range(n):
        if i + 1 < n:
            tle.gpu.barrier_wait(empty[(i + 1) % 2], phaseIdx=(i + 1) // 2)
            tle.gpu.copy(desc, k.slot((i + 1) % 2), [N, D], [(i + 1) * N, 0], barrier=full[(i + 1) % 2])
        tle.gpu.barrier_wait(full[i % 2], phaseIdx=i // 2)
        scores = tle.gpu.wgmma(q, k.slot(i % 2), trans_b=True)
        scores = tle.gpu.wgmma_wait(0, scores)
        tle.gpu.barrier_arrive(empty[i % 2], phaseIdx=i // 2)
        largest = tl.maximum(largest, tl.max(scores, 1))
    tl.store(out_ptr + tl.arange(0, M), largest)


@pytest.mark.parametrize(("m", "num_warps"), [(64, 4), (128, 4), (128, 8)])
def test_one_role(device, m, num_warps):
    q, x = given(device, tl.float16, (m, 64), 0)
    k, y = given(device, tl.float16, (5 * 32, 64), 1)
    out = device.array(np.zeros(m, np.float32))
    one_role[(1,)](q, k, out, 5, m, 32, 64, num_warps=num_warps)
    np.testing.assert_array_equal(device.numpy(out), (x.astype(np.float32) @ y.T.astype(np.float32)).max(1))
