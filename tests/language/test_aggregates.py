"""Classes of kernels: made, passed, changed, carried by loops and branches."""

from __future__ import annotations

import linecache
import subprocess
import sys

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright.language.core import _aggregate as aggregate


@aggregate
class Pair:
    """Two values."""

    first: tl.tensor
    second: tl.tensor

    def __init__(self, first, second):
        self.first = first
        self.second = second

    @triton.jit
    def swapped(self):
        return Pair(self.second, self.first)

    @triton.jit
    def total(self, scale=1):
        return (self.first + self.second) * scale

    def exchange(self):
        self.first, self.second = self.second, self.first

    def __getitem__(self, index):
        assert index == 0 or index == 1
        return self.first if index == 0 else self.second

    @triton.jit
    def __add__(self, other):
        return Pair(self.first + other.first, self.second + other.second)

    @triton.jit
    def __lt__(self, other):
        return self.first < other.first

    def __neg__(self):
        return Pair(-self.first, -self.second)

    def __len__(self):
        return 2


@aggregate
class Window:
    """A part of memory of constant length that moves on."""

    base: tl.tensor
    size: tl.constexpr
    names: tl.constexpr
    mask: tl.tensor | None
    inner: Pair

    def __init__(self, base, size, mask=None, _semantic=None):
        self.base = base + tl.arange(0, size, _semantic=_semantic)
        self.size = size
        self.names = ("first", "second")
        self.mask = mask
        self.inner = Window.zero(size)

    @staticmethod
    def zero(size):
        return Pair(tl.zeros((size,), tl.float32), tl.zeros((size,), tl.float32))

    @triton.constexpr_function
    def bytes(self, width=4):
        total = 0
        for _ in range(self.size):
            total += width
        return total

    @triton.jit
    def load(self):
        return tl.load(self.base)

    def advance(self):
        self.base = self.base + self.size
        return self

    def keep(self, value):
        self.inner.first = self.inner.first + value
        self.inner.second = value

    def __getattr__(self, name):
        return getattr(self.inner, "second" if name == "last" else name)


@triton.jit
def pair_kernel(x_ptr, out_ptr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    x = tl.load(x_ptr + at)
    pair = Pair(x, x * 2)
    same = pair
    pair.exchange()
    tl.store(out_ptr + at, same.first)  # 2x: `same` is the same object
    tl.store(out_ptr + SIZE + at, pair.swapped().first)  # x
    tl.store(out_ptr + 2 * SIZE + at, (pair + same).total(scale=2))  # 12x
    tl.store(out_ptr + 3 * SIZE + at, (-pair)[1] + len(pair))  # 2 - x
    tl.store(out_ptr + 4 * SIZE + at, (pair < pair.swapped()).to(tl.float32))


@pytest.mark.parametrize("size", [64, 96])
def test_pair(device, size):
    x = np.arange(size, dtype=np.float32) - 7
    out = device.empty(5 * size, np.float32)
    pair_kernel[(1,)](device.array(x), out, size)
    want = np.concatenate([2 * x, x, 12 * x, 2 - x, (2 * x < x).astype(np.float32)])
    np.testing.assert_array_equal(device.numpy(out), want)


@triton.jit
def sums(window, n):
    for _ in range(n):
        window.keep(window.load())
        window.advance()
    return window


@triton.jit
def loop_kernel(x_ptr, out_ptr, n, limit, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    start = Window(x_ptr, SIZE)
    window = sums(start, n)
    tl.store(out_ptr + at, window.inner.first)
    tl.store(out_ptr + SIZE + at, window.last)
    # A call of code of the kernel was given values: `start` is where it was.
    tl.store(out_ptr + 2 * SIZE + at, start.load())
    i = 0
    pair = Window.zero(SIZE)
    while i < limit:
        pair = Pair(pair.first + i, pair.second + 1)
        i += 1
    if limit > 2:
        pair.exchange()
        chosen = pair
    else:
        chosen = pair + pair
    tl.store(out_ptr + 3 * SIZE + at, chosen.first)
    tl.store(out_ptr + 4 * SIZE + at, pair.second)
    tl.static_assert(window.bytes() == 4 * SIZE)
    tl.static_assert(start.bytes(width=1) == SIZE)
    tl.static_assert(window.mask is None)
    tl.static_assert(isinstance(window.inner, Pair) and not isinstance(window, Pair))
    tl.static_assert(window.names[1] == "second")


@pytest.mark.parametrize(("n", "limit"), [(0, 2), (1, 3), (3, 5)])
def test_loops(device, n, limit):
    size = 32
    x = np.arange(4 * size, dtype=np.float32)
    out = device.empty(5 * size, np.float32)
    loop_kernel[(1,)](device.array(x), out, n, limit, size)
    rows = x.reshape(4, size)[:n]
    last = rows[-1] if n else np.zeros(size)
    first, second = sum(range(limit)), limit
    if limit > 2:
        first, second = second, first
        chosen = first
    else:
        chosen = 2 * first
    parts = [rows.sum(0), last, x[:size], np.full(size, chosen), np.full(size, second)]
    np.testing.assert_array_equal(device.numpy(out), np.concatenate(parts))


@aggregate
class Counter:
    """A number that its methods raise."""

    value: tl.tensor

    def __init__(self, value):
        self.value = value

    def raised(self, by):
        self.value = self.value + by
        return self.value


@triton.jit
def counter_kernel(out_ptr, n):
    counter = Counter(n)
    steps = 0
    while counter.raised(1) < 10:
        steps += 1
    tl.store(out_ptr, counter.value)
    tl.store(out_ptr + 1, steps)
    values = [counter.raised(1) for _ in range(3)]
    tl.store(out_ptr + 2, counter.value)
    tl.store(out_ptr + 3, values[1])
    last = counter.raised(2) if n > 100 else counter.raised(3)
    tl.store(out_ptr + 4, counter.value + last)


@pytest.mark.parametrize("n", [4, 200])
def test_methods_that_change_their_object_in_expressions(device, n):
    out = device.empty(5, np.int32)
    counter_kernel[(1,)](out, n)
    value = max(n + 1, 10)
    last = value + 3 + (2 if n > 100 else 3)
    assert device.numpy(out).tolist() == [value, value - n - 1, value + 3, value + 2, 2 * last]


@triton.jit(noinline=True)
def product(pair):
    return Pair(pair.first * pair.second, pair.first)


@triton.jit
def early(pair, n):
    if n == 0:
        return pair
    return product(pair)


@triton.jit
def call_kernel(x_ptr, out_ptr, n):
    at = tl.arange(0, 32)
    x = tl.load(x_ptr + at)
    pair = early(Pair(x, x + 1), n)
    tl.store(out_ptr + at, pair.first)
    tl.store(out_ptr + 32 + at, pair.second)


@pytest.mark.parametrize("n", [0, 1])
def test_calls(device, n):
    x = np.arange(32, dtype=np.float32)
    out = device.empty(64, np.float32)
    call_kernel[(1,)](device.array(x), out, n)
    want = [x * (x + 1), x] if n else [x, x + 1]
    np.testing.assert_array_equal(device.numpy(out), np.concatenate(want))


@aggregate
class Tiles:
    """Fields that are no tensors."""

    desc: tl.tensor_descriptor
    block: tl.tensor
    rows: tuple
    kind: tl.dtype

    def __init__(self, desc, block, rows, kind):
        self.desc = desc
        self.block = block
        self.rows = rows
        self.kind = kind


@triton.jit
def load_tile(tiles, i):
    return tl.load(tl.advance(tiles.block, (i * 16, 0))) + tiles.desc.load([i * 16, 0])


@triton.jit
def tiles_kernel(x_ptr, out_ptr, n):
    desc = tl.make_tensor_descriptor(x_ptr, [n, 32], [32, 1], [16, 32])
    block = tl.make_block_ptr(x_ptr, (n, 32), (32, 1), (0, 0), (16, 32), (1, 0))
    tiles = Tiles(desc, block, (n, 1.5), tl.float32)
    total = tl.zeros((16, 32), tiles.kind)
    for i in range(2):
        total += load_tile(tiles, i) * tiles.rows[1]
    at = tl.arange(0, 16)[:, None] * 32 + tl.arange(0, 32)[None, :]
    tl.store(out_ptr + at, total + tiles.rows[0])


def test_fields(device):
    x = np.arange(32 * 32, dtype=np.float32).reshape(32, 32)
    out = device.empty((16, 32), np.float32)
    tiles_kernel[(1,)](device.array(x), out, 32)
    np.testing.assert_array_equal(device.numpy(out), 3 * (x[:16] + x[16:]) + 32)


@aggregate
class Decorated:
    value: tl.tensor
    factor: tl.constexpr

    @triton.constexpr_function
    def __init__(self, value, factor=3):
        self.value = value
        self.factor = tl.constexpr(factor)

    @triton.constexpr_function
    def with_value(self, value):
        return Decorated(value, self.factor)

    @triton.jit
    def product(self):
        return self.value * self.factor


@triton.jit
def decorated_kernel(out_ptr, n):
    x = tl.arange(0, 16)
    object = Decorated(x)
    for i in range(n):
        object = object.with_value(object.value + i)
    tl.store(out_ptr + x, object.product())


def test_constructor_that_is_a_compile_time_function(device):
    out = device.empty(16, np.int32)
    decorated_kernel[(1,)](out, 4)
    np.testing.assert_array_equal(device.numpy(out), 3 * (np.arange(16) + 6))


def test_class_of_an_enclosing_function(device):
    def box(kind):
        @aggregate
        class Box:
            value: kind

            def __init__(self, value):
                self.value = value

            @triton.jit
            def make(value):
                return Box(value)

        return Box

    tensor_box = box(tl.tensor)
    # The module postpones annotations, and `kind` is none of its names.
    tensor_box.__annotations__["value"] = tl.tensor

    @triton.jit
    def kernel(out_ptr):
        tl.store(out_ptr + tl.arange(0, 4), tensor_box.make(tl.arange(0, 4)).value)

    out = device.empty(4, np.int32)
    kernel[(1,)](out)
    np.testing.assert_array_equal(device.numpy(out), np.arange(4))


def test_no_objects_outside_of_kernels():
    with pytest.raises(RuntimeError, match="only be made inside a kernel"):
        Pair(1, 2)


def test_from_source_alone(tmp_path):
    program = tmp_path / "program.py"
    (tmp_path / "classes.py").write_text(
        "import triton\n"
        "import triton.language as tl\n"
        "from triton.language.core import _aggregate as aggregate\n"
        "@aggregate\n"
        "class Pair:\n"
        "    first: tl.tensor\n"
        "    size: 'tl.constexpr | None'\n"
        "    def __init__(self, first, size):\n"
        "        self.first = first\n"
        "        self.size = size\n"
        "    @staticmethod\n"
        "    def iota(size):\n"
        "        return Pair(tl.arange(0, size), size)\n"
        "    @triton.constexpr_function\n"
        "    def half(self):\n"
        "        return self.size // 2\n"
        "    @triton.jit\n"
        "    def scaled(self, n):\n"
        "        return Pair(self.first * n, self.size)\n"
    )
    program.write_text(
        "import triton\n"
        "import triton.language as tl\n"
        "from classes import Pair\n"
        "@triton.jit\n"
        "def kernel(out, n):\n"
        "    pair = Pair.iota(64)\n"
        "    for i in range(n):\n"
        "        pair = pair.scaled(i)\n"
        "    tl.store(out + pair.half() + tl.arange(0, 64), pair.first)\n"
    )
    command = [sys.executable, "-m", "tilewright", "compile", f"{program}::kernel", "--signature", "*i32,i32"]
    subprocess.run([*command, "-o", str(tmp_path / "out")], check=True)
    text = (tmp_path / "out" / "kernel.ttir").read_text()
    assert "iter_args(" in text and "arith.constant 32" in text


def scaled_by(text, factor):
    """A class as a cell of a notebook makes it anew each time."""
    scope = {"__name__": "cells", "aggregate": aggregate, "tl": tl, "triton": triton}
    source = text.replace("FACTOR", str(factor))
    # Functions are told apart by their source, which `inspect` finds by the name of the file.
    name = f"<cell {factor}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    exec(compile(source, name, "exec"), scope)
    return scope["Scaled"], scope


CELL = """
@aggregate
class Scaled:
    value: tl.tensor

    def __init__(self, value):
        self.value = value

    @triton.jit
    def get(self):
        return self.value * FACTOR
"""


Scaled = None  # the test puts classes here


@triton.jit
def captured_kernel(out_ptr):
    tl.store(out_ptr + tl.arange(0, 4), Scaled(tl.arange(0, 4)).get())


def test_class_that_is_another_one(device, monkeypatch):
    out = device.empty(4, np.int32)
    first, scope = scaled_by(CELL, 3)
    monkeypatch.setitem(globals(), "Scaled", first)
    captured_kernel[(1,)](out)
    np.testing.assert_array_equal(device.numpy(out), 3 * np.arange(4))
    # The same cell once more, in the same namespace.
    exec(compile(CELL.replace("FACTOR", "3"), "<cell 3>", "exec"), scope)
    assert scope["Scaled"] is not first
    monkeypatch.setitem(globals(), "Scaled", scope["Scaled"])
    captured_kernel[(1,)](out)
    monkeypatch.setitem(globals(), "Scaled", scaled_by(CELL, 5)[0])
    with pytest.raises(RuntimeError, match="'Scaled', which kernel 'captured_kernel' uses"):
        captured_kernel[(1,)](out)
