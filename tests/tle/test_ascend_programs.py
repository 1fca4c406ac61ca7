"""Whole programs for Ascend's cores, plain ones and ones with ``tle.dsa``: on the CPU executor and in the simulator of what they become, against NumPy."""

import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright import tle

ascend = tle.dsa.ascend
EXAMPLES = Path(__file__).parents[2] / "examples" / "ascend"
# They import each other, as programs do.
sys.path.append(str(EXAMPLES))


@pytest.fixture(params=["interp", "npusim"], autouse=True)
def everywhere(request, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", request.param)


def floats(*shape, seed=0, dtype="float32"):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def small(*shape, seed=0, dtype="float16"):
    """Numbers whose products and sums are exact."""
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(dtype)


def attention(q, k, v, scale, causal=False):
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    s = q @ np.swapaxes(k, -1, -2) * scale
    if causal:
        s = np.where(np.tril(np.ones(s.shape[-2:], bool)), s, -np.inf)
    p = np.exp(s - s.max(-1, keepdims=True))
    return p @ v / p.sum(-1, keepdims=True)


@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.py")))
def test_example(name, capsys):
    # (A folder away there are others of the same names.)
    spec = spec_from_file_location(f"ascend_{name}", EXAMPLES / f"{name}.py")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    module.main()
    assert "right" in capsys.readouterr().out


def test_what_the_page_shows_of_a_report(tmp_path):
    page = (EXAMPLES.parents[1] / "docs" / "tle-dsa.md").read_text()
    shown = re.search(r"the report says:\n\n```text\n(.*?)```", page, re.DOTALL)[1]
    tilewright = str(Path(sys.executable).with_name("tilewright"))
    kernel = f"{EXAMPLES / 'attention_on_two_cores.py'}::attention_kernel"
    signature = ["--signature", "*fp16, *fp16, *fp16, *fp16, i32, fp32, 16, 16, 32, False"]
    command = [tilewright, "compile", kernel, *signature, "--target", "ascend:910b", "-o", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    report = (tmp_path / "attention_kernel.report").read_text().splitlines()
    assert set(shown.splitlines()) <= set(report)


@triton.jit
def softmax_kernel(x, out, rows, columns, M: tl.constexpr, N: tl.constexpr):
    i = (tl.program_id(0) * M + tl.arange(0, M))[:, None]
    j = tl.arange(0, N)[None, :]
    mask = (i < rows) & (j < columns)
    row = tl.load(x + i * columns + j, mask, other=-float("inf"))
    row = tl.exp(row - tl.max(row, 1)[:, None])
    tl.store(out + i * columns + j, row / tl.sum(row, 1)[:, None], mask)


def test_softmax():
    x = floats(10, 27)
    out = np.zeros_like(x)
    softmax_kernel[(3,)](x, out, 10, 27, 4, 32)
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(out, e / e.sum(1, keepdims=True), rtol=1e-5)


@triton.jit
def layer_norm_kernel(x, weight, bias, out, columns, eps, N: tl.constexpr):
    j = tl.arange(0, N)
    first = tl.program_id(0) * columns
    mask = j < columns
    row = tl.load(x + first + j, mask, other=0.0).to(tl.float32)
    mean = tl.sum(row, 0) / columns
    apart = tl.where(mask, row - mean, 0.0)
    scale = tl.rsqrt(tl.sum(apart * apart, 0) / columns + eps)
    result = apart * scale * tl.load(weight + j, mask, other=0.0) + tl.load(bias + j, mask, other=0.0)
    tl.store(out + first + j, result, mask)


def test_layer_norm():
    x, weight, bias = floats(5, 100, dtype="float16"), floats(100, seed=1), floats(100, seed=2)
    out = np.zeros((5, 100), "float32")
    layer_norm_kernel[(5,)](x, weight, bias, out, 100, 1e-5, 128)
    wide = x.astype("float32")
    wide = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(out, wide * weight + bias, rtol=1e-4, atol=1e-4)


@triton.jit
def rope_kernel(x, cos, sin, out, D: tl.constexpr):
    j = tl.arange(0, D // 2)
    row = tl.program_id(0)
    a = tl.load(x + row * D + j)
    b = tl.load(x + row * D + D // 2 + j)
    c, s = tl.load(cos + row * (D // 2) + j), tl.load(sin + row * (D // 2) + j)
    tl.store(out + row * D + j, a * c - b * s)
    tl.store(out + row * D + D // 2 + j, b * c + a * s)


def test_rope():
    x, c, s = floats(6, 32), floats(6, 16, seed=1), floats(6, 16, seed=2)
    out = np.zeros_like(x)
    rope_kernel[(6,)](x, c, s, out, 32)
    a, b = x[:, :16], x[:, 16:]
    np.testing.assert_allclose(out, np.concatenate([a * c - b * s, b * c + a * s], 1), rtol=1e-5, atol=1e-6)


@triton.jit
def swiglu_kernel(a, b, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(a + at, at < n).to(tl.float32)
    y = tl.load(b + at, at < n).to(tl.float32)
    tl.store(out + at, x * tl.sigmoid(x) * y, at < n)


def test_swiglu():
    a, b = floats(300, dtype="float16"), floats(300, seed=1, dtype="float16")
    out = np.zeros(300, "float16")
    swiglu_kernel[(3,)](a, b, out, 300, 128)
    x = a.astype("float32")
    np.testing.assert_allclose(out, x / (1 + np.exp(-x)) * b, rtol=2e-3, atol=1e-3)


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    a_ptrs = a_ptr + m[:, None] * K + k[None, :]
    b_ptrs = b_ptr + k[:, None] * N + n[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for i in range(0, tl.cdiv(K, BK)):
        a = tl.load(a_ptrs, mask=(m[:, None] < M) & (k[None, :] < K - i * BK), other=0.0)
        b = tl.load(b_ptrs, mask=(k[:, None] < K - i * BK) & (n[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BK
        b_ptrs += BK * N
    c = acc.to(c_ptr.dtype.element_ty)
    tl.store(c_ptr + m[:, None] * N + n[None, :], c, (m[:, None] < M) & (n[None, :] < N))


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_matmul_of_pointers_that_go_on(dtype):
    a, b = small(28, 40), small(40, 20, seed=1)
    out = np.zeros((28, 20), dtype)
    matmul_kernel[(2, 2)](a, b, out, 28, 20, 40, 16, 16, 16)
    np.testing.assert_array_equal(out, (a.astype("float32") @ b.astype("float32")).astype(dtype))


@triton.jit
def at(ptr, first, M: tl.constexpr, N: tl.constexpr):
    return ptr + (first + tl.arange(0, M))[:, None] * N + tl.arange(0, N)[None, :]


@triton.jit
def buffers_attention_kernel(Q, K, V, Out, N, scale, B: tl.constexpr, D: tl.constexpr):
    rows = tl.program_id(0) * B
    q = tle.dsa.alloc([B, D], tl.float16, ascend.L1)
    tle.dsa.copy(at(Q, rows, B, D), q, [B, D])
    largest = tl.full((B,), -1e30, tl.float32)
    weight = tl.zeros((B,), tl.float32)
    acc = tl.zeros((B, D), tl.float32)
    with tle.dsa.hint(inter_no_alias=True):
        for first in tle.dsa.pipeline(0, N, B, num_stages=2):
            k = tle.dsa.alloc([B, D], tl.float16, ascend.L1)
            v = tle.dsa.alloc([B, D], tl.float16, ascend.L1)
            tle.dsa.copy(at(K, first, B, D), k, [B, D])
            tle.dsa.copy(at(V, first, B, D), v, [B, D])
            s = tl.dot(tle.dsa.to_tensor(q), tl.trans(tle.dsa.to_tensor(k))) * scale
            larger = tl.maximum(largest, tl.max(s, 1))
            p = tl.exp(s - larger[:, None])
            keep = tl.exp(largest - larger)
            weight = weight * keep + tl.sum(p, 1)
            p_l1 = tle.dsa.to_buffer(p.to(tl.float16), ascend.L1)
            acc = acc * keep[:, None] + tl.dot(tle.dsa.to_tensor(p_l1), tle.dsa.to_tensor(v))
            largest = larger
        out = tle.dsa.to_buffer(acc / weight[:, None], ascend.UB)
        tle.dsa.copy(out, at(Out, rows, B, D), [B, D])


def test_flash_attention_in_named_buffers():
    q, k, v = (floats(48, 32, seed=seed, dtype="float16") for seed in range(3))
    out = np.zeros((48, 32), "float32")
    buffers_attention_kernel[(3,)](q, k, v, out, 48, 32**-0.5, 16, 32)
    np.testing.assert_allclose(out, attention(q, k, v, 32**-0.5), rtol=1e-2, atol=5e-3)


@triton.jit
def chained_kernel(a_ptr, b_ptr, c_ptr, out, N: tl.constexpr):
    a, b, c = tl.load(at(a_ptr, 0, N, N)), tl.load(at(b_ptr, 0, N, N)), tl.load(at(c_ptr, 0, N, N))
    d = tl.dot(tl.dot(a, b).to(tl.float16), c)
    tl.store(at(out, 0, N, N), d.to(tl.float16))


def test_a_product_of_a_product():
    a, b, c = (small(16, 16, seed=seed) for seed in range(3))
    out = np.zeros((16, 16), "float16")
    chained_kernel[(1,)](a, b, c, out, 16)
    np.testing.assert_array_equal(out, a @ b @ c)


@triton.jit
def scans_kernel(x, out, M: tl.constexpr, N: tl.constexpr):
    a = tl.load(at(x, 0, M, N))
    tl.store(at(out, 0, M, N), tl.cumsum(a, 1))
    tl.store(at(out, M, M, N), tl.cumsum(a, 0, reverse=True))
    tl.store(at(out, 2 * M, M, N), tl.cumprod(a, 1))


def test_scans():
    x = np.random.default_rng(0).integers(1, 3, (4, 8)).astype("float32")
    out = np.zeros((12, 8), "float32")
    scans_kernel[(1,)](x, out, 4, 8)
    np.testing.assert_array_equal(out, np.concatenate([x.cumsum(1), x[::-1].cumsum(0)[::-1], x.cumprod(1)]))


@triton.jit
def gather_kernel(x, indices, out, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr):
    tl.store(at(out, 0, M, N), tl.gather(tl.load(at(x, 0, M, N)), tl.load(at(indices, 0, M, N)), AXIS))


@pytest.mark.parametrize("axis", [0, 1])
def test_gather(axis):
    x = floats(4, 8)
    indices = np.random.default_rng(1).integers(0, x.shape[axis], (4, 8)).astype("int32")
    out = np.zeros_like(x)
    gather_kernel[(1,)](x, indices, out, 4, 8, axis)
    np.testing.assert_array_equal(out, np.take_along_axis(x, indices, axis))


@triton.jit
def window_kernel(x, out, lo, hi, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = (index >= lo) & (index < hi)
    tl.store(out + index, tl.load(x + index, inside, other=7.0) + 1.0, index > lo)


@pytest.mark.parametrize(("lo", "hi"), [(10, 50), (60, 70), (70, 100), (50, 20), (-5, 500)])
def test_masks_with_a_beginning(lo, hi):
    x, out = floats(128), np.zeros(128, "float32")
    window_kernel[(2,)](x, out, lo, hi, 64)
    index = np.arange(128)
    inside = np.where((index >= lo) & (index < hi), x, np.float32(7))
    np.testing.assert_array_equal(out, np.where(index > lo, inside + 1, 0))


@triton.jit
def atomics_kernel(x, total, most, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + index, index < n, other=0.0)
    tl.atomic_add(total + tl.arange(0, BLOCK), a)
    tl.atomic_add(total + BLOCK, tl.sum(a, 0))
    tl.atomic_max(most + tl.arange(0, BLOCK), a.to(tl.int32), tl.arange(0, BLOCK) < 60)


def test_atomics():
    x = np.random.default_rng(0).integers(-5, 9, 200).astype("float32")
    total, most = np.zeros(65, "float32"), np.full(64, -3, "int32")
    atomics_kernel[(4,)](x, total, most, 200, 64)
    parts = np.concatenate([x, np.zeros(56, "float32")]).reshape(4, 64)
    np.testing.assert_array_equal(total, np.concatenate([parts.sum(0), [parts.sum()]]))
    np.testing.assert_array_equal(most, np.where(np.arange(64) < 60, np.maximum(parts.max(0), -3), -3))


@triton.jit
def transpose_kernel(x, out, M: tl.constexpr, N: tl.constexpr):
    tl.store(at(out, 0, N, M), tl.trans(tl.load(at(x, 0, M, N))) + 1)


def test_transposed_tensors():
    x, out = floats(8, 16), np.zeros((16, 8), "float32")
    transpose_kernel[(1,)](x, out, 8, 16)
    np.testing.assert_array_equal(out, x.T + 1)


@triton.jit
def exchange_kernel(x, y, out, n, B: tl.constexpr):
    index = tl.arange(0, B)
    a, b = tl.load(x + index), tl.load(y + index)
    for _ in range(n):
        a, b = b, a + b
    if n > 3:
        a = a * 2.0
        c = n
    else:
        c = n + 1
    tl.store(out + index, a + c)
    tl.store(out + B + index, b)


@pytest.mark.parametrize("n", [0, 3, 6])
def test_what_loops_and_branches_hand_on(n):
    x, y, out = small(32, dtype="float32"), small(32, seed=1, dtype="float32"), np.zeros((2, 32), "float32")
    exchange_kernel[(1,)](x, y, out, n, 32)
    for _ in range(n):
        x, y = y, x + y
    np.testing.assert_array_equal(out, [2 * x + n if n > 3 else x + n + 1, y])


@triton.jit
def walking_kernel(x, out, n, B: tl.constexpr):
    q = out + tl.arange(0, B)
    for _ in range(n):
        tl.store(q, tl.load(x + tl.arange(0, B)) + tl.exp(tl.load(x)))
        x += B
        q += B


def test_pointers_that_a_loop_moves():
    x, out = floats(4, 16), np.zeros((4, 16), "float32")
    walking_kernel[(1,)](x, out, 4, 16)
    np.testing.assert_allclose(out, x + np.exp(x[:, :1]), rtol=1e-5)


@triton.jit
def remainders_kernel(x, out, first, n, N: tl.constexpr):
    i = first + tl.arange(0, N)
    tl.store(out + tl.arange(0, N), tl.load(x + i % n))
    # Indices that begin again, beside ones that go on.
    tl.store(out + N + tl.arange(0, N), tl.load(x + i % n + i))
    tl.store(out + 2 * N + tl.arange(0, N), tl.load(x + i % n * 3 - i))
    tl.store(out + 3 * N + tl.arange(0, N), tl.load(x + (i % n - i) * tl.arange(0, N) // 4))


@pytest.mark.parametrize("first", [0, 5, -64, -33, -7])
@pytest.mark.parametrize("n", [7, 32, 100])
def test_indices_that_begin_again(first, n):
    """Remainders of what is negative are negative, and only what is one counts as one."""
    whole = np.arange(8192, dtype=np.float32)
    out = np.zeros(4 * 64, np.float32)
    remainders_kernel[(1,)](whole[4096:], out, first, n, 64)
    i, j = first + np.arange(64), np.arange(64)
    rest = np.fmod(i, n)
    at = np.concatenate([rest, rest + i, rest * 3 - i, np.trunc((rest - i) * j / 4).astype(int)])
    np.testing.assert_array_equal(out, whole[4096 + at])
