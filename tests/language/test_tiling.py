"""How warps divide the result of a product: ``tl.dot(…, tiling=…)``. Values never depend on it; layouts follow it."""

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl


@triton.jit
def product(
    a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, TILING: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + m[:, None] * K + k[None, :])
    b = tl.load(b_ptr + k[:, None] * N + n[None, :])
    c = tl.dot(a, b, input_precision=PRECISION, tiling=TILING)
    tl.store(c_ptr + m[:, None] * N + n[None, :], c)


def operands(m, n, k, dtype, seed=0):
    # Integers, so that no order of additions shows.
    rng = np.random.default_rng(seed)
    return [rng.integers(-3, 4, shape).astype(dtype) for shape in ((m, k), (k, n))]


@pytest.mark.parametrize("tiling", ["horizontal", "vertical", "square"])
@pytest.mark.parametrize(
    "shape,num_warps,dtype",
    [
        ((64, 64, 32), 4, np.float16), ((128, 32, 64), 4, np.float16), ((96, 80, 48), 2, np.float16),
        ((128, 128, 64), 8, np.float16), ((32, 32, 16), 4, np.float32), ((64, 64, 32), 4, np.int8),
    ],
)  # fmt: skip
def test_products(device, tiling, shape, num_warps, dtype):
    m, n, k = shape
    a, b = operands(m, n, k, dtype)
    integer = dtype == np.int8
    c = device.empty((m, n), np.int32 if integer else np.float32)
    product[(1,)](device.array(a), device.array(b), c, m, n, k, tiling, "ieee", num_warps=num_warps)
    wide = np.int64 if integer else np.float64
    np.testing.assert_array_equal(device.numpy(c), a.astype(wide) @ b.astype(wide))


@triton.jit
def attention(q_ptr, k_ptr, v_ptr, o_ptr, n, D: tl.constexpr, BLOCK: tl.constexpr, TILING: tl.constexpr):
    row, at, d = tl.arange(0, 64), tl.arange(0, BLOCK), tl.arange(0, D)
    q = tl.load(q_ptr + row[:, None] * D + d[None, :])
    o = tl.zeros((64, D), tl.float32)
    l = tl.zeros((64,), tl.float32)
    m = tl.full((64,), float("-inf"), tl.float32)
    for start in range(0, n, BLOCK):
        k = tl.load(k_ptr + (start + at)[None, :] * D + d[:, None])
        v = tl.load(v_ptr + (start + at)[:, None] * D + d[None, :])
        s = tl.dot(q, k)
        new = tl.maximum(m, tl.max(s, axis=1))
        p = tl.exp(s - new[:, None])
        scale = tl.exp(m - new)
        l = l * scale + tl.sum(p, axis=1)
        o = tl.dot(p.to(tl.float16), v, o * scale[:, None], tiling=TILING)
        m = new
    tl.store(o_ptr + row[:, None] * D + d[None, :], o / l[:, None])


@pytest.mark.parametrize("tiling", [None, "horizontal", "vertical", "square"])
def test_attention(device, tiling):
    """The hint stands on the second product; the first one's layout follows."""
    rng = np.random.default_rng(1)
    q, k, v = (rng.standard_normal((rows, 32)).astype(np.float16) for rows in (64, 96, 96))
    o = device.empty((64, 32), np.float32)
    attention[(1,)](device.array(q), device.array(k), device.array(v), o, 96, 32, 32, tiling, num_warps=4)
    s = q.astype(np.float64) @ k.astype(np.float64).T
    p = np.exp(s - s.max(1, keepdims=True))
    want = p / p.sum(1, keepdims=True) @ v.astype(np.float64)
    np.testing.assert_allclose(device.numpy(o), want, rtol=2e-3, atol=2e-3)


def compiled(target, tiling, num_warps=4, shape=(64, 64, 64)):
    arrays = (np.float16, np.float16, np.float32)
    return product.warmup(*arrays, *shape, tiling, "tf32", grid=(1,), num_warps=num_warps, target=target)


@pytest.mark.parametrize(
    "tiling,warps", [("horizontal", "[4, 1]"), ("vertical", "[1, 4]"), ("square", "[2, 2]")]
)
def test_the_layout_is_what_the_hint_says(tiling, warps):
    text = compiled("cuda:80", tiling).asm["ttgir"]
    assert f"tiling = {tiling}" in text
    assert f"versionMajor = 2, versionMinor = 0, warpsPerCTA = {warps}" in text


def test_warp_groups_take_the_hints_that_they_can_obey():
    rows = compiled("cuda:90", "horizontal")
    assert "ttng.warp_group_dot" in rows.asm["ttgir"] and not rows.metadata.remarks
    columns = compiled("cuda:90", "vertical")
    assert "ttng.warp_group_dot" not in columns.asm["ttgir"]
    assert any('tiling="vertical" is obeyed by mma.sync' in remark for remark in columns.metadata.remarks)


def test_fewer_tiles_than_warps_are_an_error():
    with pytest.raises(triton.CompilationError) as caught:
        compiled("cuda:80", "horizontal", 8)
    text = str(caught.value)
    assert 'tiling="horizontal" cannot be obeyed: a result of 64x64 is 4x8 tiles of 16x8' in text
    assert "c = tl.dot(a, b, input_precision=PRECISION, tiling=TILING)\n   |         ^" in text
