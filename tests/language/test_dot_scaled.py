"""Products of matrices in microscaling formats, against NumPy: what is multiplied is computed bit by bit in fp16 or bf16."""

import itertools

import ml_dtypes
import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl

DTYPES = {
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "bf16": ml_dtypes.bfloat16,
    "fp16": np.float16,
}
FORMATS = ["e2m1", *DTYPES]
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)


@triton.jit
def product(
    a_ptr,
    a_scale_ptr,
    b_ptr,
    b_scale_ptr,
    c_ptr,
    out_ptr,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    A_SHAPE: tl.constexpr,
    B_SHAPE: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
    GROUPS: tl.constexpr,
    A_FORMAT: tl.constexpr,
    B_FORMAT: tl.constexpr,
    A_K_PACK: tl.constexpr,
    B_K_PACK: tl.constexpr,
    FAST: tl.constexpr,
):
    a = tl.load(
        a_ptr + tl.arange(0, A_SHAPE[0])[:, None] * stride_am + tl.arange(0, A_SHAPE[1])[None, :] * stride_ak
    )
    b = tl.load(
        b_ptr + tl.arange(0, B_SHAPE[0])[:, None] * stride_bk + tl.arange(0, B_SHAPE[1])[None, :] * stride_bn
    )
    a_scale = a_scale_ptr
    if a_scale_ptr is not None:
        a_scale = tl.load(a_scale_ptr + tl.arange(0, M)[:, None] * GROUPS + tl.arange(0, GROUPS)[None, :])
    b_scale = b_scale_ptr
    if b_scale_ptr is not None:
        b_scale = tl.load(b_scale_ptr + tl.arange(0, N)[:, None] * GROUPS + tl.arange(0, GROUPS)[None, :])
    offsets = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    acc = c_ptr
    if c_ptr is not None:
        acc = tl.load(c_ptr + offsets)
    c = tl.dot_scaled(
        a,
        a_scale,
        A_FORMAT,
        b,
        b_scale,
        B_FORMAT,
        acc,
        fast_math=FAST,
        lhs_k_pack=A_K_PACK,
        rhs_k_pack=B_K_PACK,
    )
    tl.store(out_ptr + offsets, c)


def elements(rng, form, rows, k):
    """The codes of a matrix, one for each element, and its values in float32."""
    if form == "e2m1":
        codes = rng.integers(0, 16, (rows, k)).astype(np.uint8)
        return codes, E2M1[codes]
    values = rng.standard_normal((rows, k)).astype(DTYPES[form])
    return values.view(np.uint8 if form in ("e4m3", "e5m2") else np.uint16), values.astype(np.float32)


def pack(codes, axis):
    """Two codes a byte along an axis, the first in the low bits."""
    codes = np.moveaxis(codes, axis, -1)
    return np.ascontiguousarray(np.moveaxis(codes[..., ::2] | codes[..., 1::2] << 4, -1, axis))


def scales(rng, kind, rows, k):
    """Scales of a matrix as they are stored, and as float32, where an e8m0 scale of 0 is 0."""
    if kind == "e8m0":
        codes = rng.integers(124, 131, (rows, k // 32)).astype(np.uint8)
        codes[0, 0] = 0
        return codes, (codes.astype(np.uint32) << 23).view(np.float32)
    values = rng.uniform(0.25, 4, (rows, k // 16)).astype(ml_dtypes.float8_e4m3fn)
    return values, values.astype(np.float32)


def expected(values, scale, compute, fast_math=False):
    """Elements times scales, rounded to the type that they are multiplied in."""
    values = values.astype(compute)
    if scale is None:
        return values.astype(np.float32)
    each = np.repeat(scale.astype(compute), values.shape[1] // scale.shape[1], axis=1)
    if not fast_math:
        each = np.where(
            np.isinf(each) & (np.repeat(scale, each.shape[1] // scale.shape[1], axis=1) == np.inf),
            np.nan,
            each,
        )
    return (values * each.astype(compute)).astype(np.float32)


def check(
    device,
    shape,
    forms,
    kinds=("e8m0", "e8m0"),
    transposed=(False, False),
    k_pack=(True, True),
    acc=False,
    num_warps=4,
):
    M, N, K = shape
    rng = np.random.default_rng(0)
    compute = np.float16 if "fp16" in forms else ml_dtypes.bfloat16
    arrays, factors, groups = [], [], 1
    for side in range(2):
        rows, form, kind = (M, N)[side], forms[side], kinds[side]
        codes, values = elements(rng, form, rows, K)
        scale, factor = None, None
        if kind is not None:
            scale, factor = scales(rng, kind, rows, K)
            groups = scale.shape[1]
            scale = scale.view(ml_dtypes.float8_e4m3fn) if kind == "e4m3" else scale
        if form == "e2m1":
            codes = pack(codes, 1 if k_pack[side] else 0)
        elif form in ("bf16", "fp16"):
            codes = codes.view(DTYPES[form])
        codes = codes.T if side else codes
        array = (
            device.array(np.ascontiguousarray(codes.T)).T
            if transposed[side]
            else device.array(np.ascontiguousarray(codes))
        )
        arrays.append((array, None if scale is None else device.array(scale), codes.shape))
        factors.append(expected(values, factor, compute))
    (a, a_scale, a_shape), (b, b_scale, b_shape) = arrays
    start = rng.standard_normal((M, N)).astype(np.float32)
    out = device.empty((M, N), np.float32)
    strides = [(1, s[0]) if t else (s[1], 1) for s, t in zip((a_shape, b_shape), transposed, strict=True)]
    product[(1,)](
        a,
        a_scale,
        b,
        b_scale,
        device.array(start) if acc else None,
        out,
        *strides[0],
        *strides[1],
        a_shape,
        b_shape,
        M,
        N,
        groups,
        *forms,
        *k_pack,
        False,
        num_warps=num_warps,
    )
    want = factors[0].astype(np.float64) @ factors[1].astype(np.float64).T + (start if acc else 0)
    size = np.abs(factors[0]).astype(np.float64) @ np.abs(factors[1]).astype(np.float64).T
    assert np.all(np.abs(device.numpy(out) - want) <= 1e-5 * (size + 1))


@pytest.mark.parametrize("forms", list(itertools.product(FORMATS, FORMATS)), ids="-".join)
def test_formats(device, forms):
    check(device, (32, 32, 64), forms, kinds=["e8m0" if f not in ("bf16", "fp16") else None for f in forms])


@pytest.mark.parametrize(
    "kinds", [(None, None), ("e8m0", None), (None, "e8m0"), ("e4m3", "e4m3"), (None, "e4m3")], ids=str
)
@pytest.mark.parametrize("forms", [("e2m1", "e2m1"), ("fp16", "e2m1"), ("bf16", "bf16")], ids="-".join)
def test_scales(device, kinds, forms):
    check(device, (64, 32, 64), forms, kinds)


@pytest.mark.parametrize("transposed", list(itertools.product([False, True], repeat=2)), ids=str)
@pytest.mark.parametrize("forms", [("e2m1", "e4m3"), ("e5m2", "e2m1"), ("bf16", "e2m1")], ids="-".join)
def test_transposed(device, transposed, forms):
    check(device, (32, 64, 64), forms, transposed=transposed)


@pytest.mark.parametrize("k_pack", [(False, True), (True, False), (False, False)], ids=str)
@pytest.mark.parametrize("forms", [("e2m1", "e2m1")], ids="-".join)
def test_packed_along_rows(device, k_pack, forms):
    check(device, (64, 32, 64), forms, k_pack=k_pack)


@pytest.mark.parametrize("num_warps", [4, 8])
@pytest.mark.parametrize("shape", [(128, 128, 128), (48, 96, 96), (32, 64, 32), (16, 24, 160)], ids=str)
@pytest.mark.parametrize("forms", [("e2m1", "e2m1"), ("e4m3", "bf16")], ids="-".join)
def test_shapes(device, shape, forms, num_warps):
    check(device, shape, forms, acc=True, num_warps=num_warps)


@triton.jit
def one_row(x_ptr, scale_ptr, out_ptr, FORMAT: tl.constexpr, OTHER: tl.constexpr, FAST: tl.constexpr):
    K: tl.constexpr = 64
    x = tl.load(x_ptr + tl.arange(0, 16)[:, None] * K + tl.arange(0, K)[None, :])
    scale = tl.load(scale_ptr + tl.arange(0, 16)[:, None] * 2 + tl.arange(0, 2)[None, :])
    # Each column of the identity takes one product out.
    k = tl.arange(0, K)
    identity = (k[:, None] == k[None, :]).to(tl.float16 if OTHER == "fp16" else tl.bfloat16)
    c = tl.dot_scaled(x, scale, FORMAT, identity, None, OTHER, fast_math=FAST)
    tl.store(out_ptr + tl.arange(0, 16)[:, None] * K + k[None, :], c)


@pytest.mark.parametrize("fast_math", [False, True])
@pytest.mark.parametrize("other", ["bf16", "fp16"])
@pytest.mark.parametrize("form", ["e4m3", "e5m2"])
def test_every_scale(device, form, other, fast_math):
    """All 256 scales of e8m0, 16 at a time, with powers of two; 255 is NaN, or infinity with ``fast_math``."""
    compute = np.float16 if other == "fp16" else ml_dtypes.bfloat16
    values = np.tile(np.array([1, -1.5, 2, 0.25], np.float32), (16, 16))
    for first in range(0, 256, 32):
        codes = np.arange(first, first + 32, dtype=np.uint8).reshape(16, 2)
        out = device.empty((16, 64), np.float32)
        x = values.astype(DTYPES[form]).view(np.uint8)
        one_row[(1,)](device.array(x), device.array(codes), out, form, other, fast_math)
        factors = (codes.astype(np.uint32) << 23).view(np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            want = expected(values, factors, compute, fast_math=fast_math)
        found = device.numpy(out)
        for row in range(16):
            # What is not finite meets the zeros of the identity.
            if np.isfinite(want[row]).all():
                np.testing.assert_array_equal(found[row], want[row])
            else:
                assert np.isnan(found[row]).any()


@triton.jit
def row_sums(x_ptr, scale_ptr, out_ptr, OTHER: tl.constexpr, FAST: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, 16)[:, None] * 32 + tl.arange(0, 32)[None, :])
    scale = tl.load(scale_ptr + tl.arange(0, 16)[:, None])
    ones = tl.full((32, 16), 1.0, tl.float16 if OTHER == "fp16" else tl.bfloat16)
    c = tl.dot_scaled(x, scale, "e4m3", ones, None, OTHER, fast_math=FAST)
    tl.store(out_ptr + tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :], c)


@pytest.mark.parametrize("fast_math", [False, True])
@pytest.mark.parametrize("other", ["bf16", "fp16"])
def test_scale_of_nan(device, other, fast_math):
    """255 is NaN, which ``fast_math`` does not look for; what it leaves is infinity."""
    x = np.ones((16, 32)).astype(DTYPES["e4m3"])
    codes = np.full((16, 1), 127, np.uint8)
    codes[3] = 255
    out = device.empty((16, 16), np.float32)
    row_sums[(1,)](device.array(x.view(np.uint8)), device.array(codes), out, other, fast_math)
    want = np.full((16, 16), 32, np.float32)
    want[3] = np.inf if fast_math else np.nan
    np.testing.assert_array_equal(device.numpy(out), want)


@triton.jit
def batched(a_ptr, a_scale_ptr, b_ptr, b_scale_ptr, out_ptr):
    i, r = tl.arange(0, 2)[:, None, None], tl.arange(0, 32)
    row, column = r[None, :, None], r[None, None, :]
    a = tl.load(a_ptr + i * 1024 + row * 32 + column)
    b = tl.load(b_ptr + i * 512 + tl.arange(0, 16)[None, :, None] * 32 + column)
    scale = i * 32 + row
    c = tl.dot_scaled(a, tl.load(a_scale_ptr + scale), "e4m3", b, tl.load(b_scale_ptr + scale), "e2m1")
    tl.store(out_ptr + i * 1024 + row * 32 + column, c)


def test_batches(device):
    rng = np.random.default_rng(1)
    a = rng.standard_normal((2, 32, 32)).astype(DTYPES["e4m3"])
    codes = rng.integers(0, 16, (2, 32, 32)).astype(np.uint8)
    a_scale, b_scale = (rng.integers(120, 135, (2, 32, 1)).astype(np.uint8) for _ in range(2))
    out = device.empty((2, 32, 32), np.float32)
    batched[(1,)](*map(device.array, (a.view(np.uint8), a_scale, pack(codes, 1), b_scale)), out)
    x = a.astype(np.float64) * 2.0 ** (a_scale.astype(int) - 127)
    y = E2M1[codes] * 2.0 ** (b_scale.astype(int) - 127).transpose(0, 2, 1)
    np.testing.assert_allclose(device.numpy(out), x @ y, rtol=1e-5, atol=1e-3)


@triton.jit
def over_k(
    a_ptr, a_scale_ptr, b_ptr, b_scale_ptr, out_ptr, K, M: tl.constexpr, N: tl.constexpr, BLOCK: tl.constexpr
):
    acc = tl.zeros((M, N), tl.float32)
    m, n = tl.arange(0, M)[:, None], tl.arange(0, N)
    for k in range(0, K, BLOCK):
        half = k // 2 + tl.arange(0, BLOCK // 2)
        group = (k // 32 + tl.arange(0, BLOCK // 32))[None, :]
        a = tl.load(a_ptr + m * (K // 2) + half[None, :])
        b = tl.load(b_ptr + half[:, None] + n[None, :] * (K // 2))
        a_scale = tl.load(a_scale_ptr + m * (K // 32) + group)
        b_scale = tl.load(b_scale_ptr + n[:, None] * (K // 32) + group)
        acc = tl.dot_scaled(a, a_scale, "e2m1", b, b_scale, "e2m1", acc)
    tl.store(out_ptr + m * N + n[None, :], acc)


@pytest.mark.parametrize("num_stages", [1, 3])
def test_loop(device, num_stages):
    M, N, K = 64, 64, 256
    rng = np.random.default_rng(2)
    (a, x), (b, y) = (elements(rng, "e2m1", rows, K) for rows in (M, N))
    (a_scale, s), (b_scale, t) = (scales(rng, "e8m0", rows, K) for rows in (M, N))
    out = device.empty((M, N), np.float32)
    arrays = map(device.array, (pack(a, 1), a_scale, pack(b, 1), b_scale))
    over_k[(1,)](*arrays, out, K, M, N, 64, num_stages=num_stages)
    want = (x * np.repeat(s, 32, axis=1)) @ (y * np.repeat(t, 32, axis=1)).T
    np.testing.assert_allclose(device.numpy(out), want, rtol=1e-5, atol=1e-3)
