"""`tle.load` is `tl.load` with a hint."""

import subprocess
import sys

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def load_kernel(x_ptr, out_ptr, n, SIZE: tl.constexpr, ASYNC: tl.constexpr):
    at = tl.arange(0, SIZE)
    x = tle.load(ptr=x_ptr + at, mask=at < n, other=-1.0, is_async=ASYNC)
    tl.store(out_ptr + at, x + tle.load(x_ptr, eviction_policy="evict_last"))


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("size", [64, 96])
def test_load(device, size, is_async):
    x = np.arange(size, dtype=np.float32) + 1
    out = device.empty(size, np.float32)
    load_kernel[(1,)](device.array(x), out, 40, size, is_async)
    np.testing.assert_array_equal(device.numpy(out), np.where(np.arange(size) < 40, x, -1) + 1)


@triton.jit
def block_kernel(x_ptr, out_ptr):
    rows = tl.make_block_ptr(x_ptr, (5, 8), (8, 1), (0, 0), (8, 8), (1, 0))
    x = tle.load(rows, boundary_check=(0,), padding_option="zero")
    tl.store(out_ptr + tl.arange(0, 8)[:, None] * 8 + tl.arange(0, 8)[None, :], x)


def test_block_pointer(device):
    x = np.arange(40, dtype=np.int32).reshape(5, 8)
    out = device.empty((8, 8), np.int32)
    block_kernel[(1,)](device.array(x), out)
    np.testing.assert_array_equal(device.numpy(out), np.vstack([x, np.zeros((3, 8), np.int32)]))


@triton.jit
def sum_kernel(x_ptr, y_ptr, out_ptr, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    x = tle.load(x_ptr + at, mask=at < n, other=2, is_async=True)
    y = tle.load(y_ptr + at, mask=at < n, other=0, is_async=True)
    first = tl.sum(x, 0)
    tl.store(out_ptr + tl.arange(0, COLUMNS), first)
    # The second is read behind a store to what it was loaded from.
    tl.store(y_ptr + at, y * 0, mask=at < n)
    tl.store(out_ptr + COLUMNS + tl.arange(0, COLUMNS), tl.sum(y, 0))


@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.int32, np.float64])
@pytest.mark.parametrize(("rows", "columns"), [(16, 64), (12, 96)])
def test_async_values(device, dtype, rows, columns):
    rng = np.random.default_rng(2)
    n = rows * columns - 37
    x, y = rng.integers(-3, 4, (2, rows, columns)).astype(dtype)
    out, ys = device.empty((2, columns), dtype), device.array(y)
    sum_kernel[(1,)](device.array(x), ys, out, n, rows, columns)
    inside = np.arange(rows * columns).reshape(rows, columns) < n
    want = [np.where(inside, x, 2).sum(0), np.where(inside, y, 0).sum(0)]
    np.testing.assert_array_equal(device.numpy(out), np.array(want).astype(dtype))
    np.testing.assert_array_equal(device.numpy(ys), np.where(inside, 0, y))


@triton.jit
def loop_kernel(x_ptr, out_ptr, n, SIZE: tl.constexpr, STAGES: tl.constexpr):
    at = tl.arange(0, SIZE)
    total = tl.zeros((SIZE,), tl.float32)
    for i in tl.range(0, n, num_stages=STAGES):
        x = tle.load(x_ptr + i * SIZE + at, is_async=True)
        if i % 2 == 0:
            total += x
        else:
            # Other threads' elements.
            total += tl.flip(x)
    tl.store(out_ptr + at, total)


@pytest.mark.parametrize("stages", [1, 3])
def test_async_in_a_loop(device, stages):
    size, n = 256, 5
    x = np.arange(size * n, dtype=np.float32).reshape(n, size)
    out = device.empty(size, np.float32)
    loop_kernel[(1,)](device.array(x), out, n, size, stages)
    np.testing.assert_array_equal(device.numpy(out), x[::2].sum(0) + x[1::2, ::-1].sum(0))


@triton.jit
def product_kernel(a_ptr, b_ptr, c_ptr, K: tl.constexpr, BLOCK: tl.constexpr):
    i, k = tl.arange(0, 64), tl.arange(0, BLOCK)
    acc = tl.zeros((64, 64), tl.float32)
    for at in range(0, K, BLOCK):
        a = tle.load(a_ptr + i[:, None] * K + at + k[None, :], is_async=True)
        b = tle.load(b_ptr + (at + k)[:, None] * 64 + i[None, :], is_async=True)
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + i[:, None] * 64 + i[None, :], acc)


@pytest.mark.parametrize("stages", [1, 3])
@pytest.mark.parametrize("k", [32, 128])
def test_async_products(device, k, stages):
    rng = np.random.default_rng(4)
    a, b = rng.integers(-2, 3, (64, k)).astype(np.float16), rng.integers(-2, 3, (k, 64)).astype(np.float16)
    c = device.empty((64, 64), np.float32)
    product_kernel[(1,)](device.array(a), device.array(b), c, k, 32, num_stages=stages)
    np.testing.assert_array_equal(device.numpy(c), a.astype(np.float32) @ b.astype(np.float32))


@triton.jit
def narrow_kernel(x_ptr, out_ptr, stride):
    at = tl.arange(0, 64)
    tl.store(out_ptr + at, tle.load(x_ptr + at * stride, is_async=True) + tle.load(x_ptr, is_async=True))


def compiled(kernel, args, monkeypatch, **options):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "ptxsim")
    return kernel.warmup(*args, grid=(1,), **options)


def test_copies_are_asynchronous(monkeypatch):
    x = np.zeros(16 * 64, np.float32)
    made = compiled(sum_kernel, (x, x, x, 1000, 16, 64), monkeypatch)
    ptx = made.asm["ptx"]
    # 1024 elements of 128 threads, four at a time.
    assert ptx.count("cp.async.cg.shared.global") == 4 and ptx.count("cp.async.commit_group") == 2
    assert ptx.count("ld.global") == 0
    assert made.metadata.remarks == []


def test_remarks(monkeypatch):
    x = np.zeros(128, np.float16)
    made = compiled(narrow_kernel, (x, x, 2), monkeypatch)
    assert "cp.async" not in made.asm["ptx"]
    assert len(made.metadata.remarks) == 2
    wide, single = made.metadata.remarks
    assert "test_load.py:" in wide and "4 bytes" in wide
    assert "one value" in single


def test_inspect_prints_remarks(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import triton\n"
        "import triton.language as tl\n"
        "import triton.experimental.tle.language as tle\n"
        "@triton.jit\n"
        "def kernel(x, out):\n"
        "    tl.store(out, tle.load(x, is_async=True))\n"
    )
    command = [
        sys.executable,
        "-m",
        "tilewright",
        "compile",
        f"{program}::kernel",
        "--signature",
        "*fp32,*fp32",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert "remark: " in done.stdout and "program.py:6:" in done.stdout and "one value" in done.stdout


@triton.jit
def given_twice(x_ptr):
    tle.load(x_ptr, ptr=x_ptr)


@triton.jit
def hint_at_run_time(x_ptr):
    tle.load(x_ptr, is_async=tl.program_id(0) == 0)


@triton.jit
def unknown_name(x_ptr):
    tle.load(x_ptr, is_asynch=False)


@pytest.mark.parametrize(
    ("kernel", "args", "message"),
    [
        (hint_at_run_time, (), "`is_async` of tle.load"),
        (given_twice, (), "tle.load is given `ptr` twice"),
        (unknown_name, (), "did you mean `is_async`"),
    ],
)
def test_errors(kernel, args, message, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "interp")
    with pytest.raises(triton.CompilationError) as caught:
        kernel[(1,)](np.zeros(16, np.float32), *args)
    assert message in str(caught.value) and "^" in str(caught.value)
