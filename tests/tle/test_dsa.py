"""``tle.dsa``: buffers in named memories, copies with tails, arithmetic on buffers, slices; the documents' examples.

All on the CPU executor, and what ``ascend:910b`` has so far in its simulator, too, which must agree.
"""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright import tle

BINARY = ("add", "sub", "mul", "div", "max", "min")
DTYPES = ("float32", "float16", "int32", "int8", "uint8")


@pytest.fixture(autouse=True)
def executor(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "interp")


@pytest.fixture(params=["interp", "npusim"])
def everywhere(request, executor, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", request.param)


def numbers(shape, dtype="float32", seed=0):
    return np.random.default_rng(seed).integers(1, 9, shape).astype(dtype)


@triton.jit
def binary_kernel(x, y, out, n, OP: tl.constexpr, DTYPE: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tail = tl.minimum(n - tl.program_id(0) * BLOCK, BLOCK)
    a = tle.dsa.alloc([BLOCK], dtype=DTYPE, mem_addr_space=tle.dsa.ascend.UB)
    b = tle.dsa.alloc([BLOCK], dtype=DTYPE, mem_addr_space=tle.dsa.ascend.UB)
    tle.dsa.copy(x + at, a, [tail])
    tle.dsa.copy(y + at, b, [tail])
    if OP == "add":
        tle.dsa.add(a, b, a)
    elif OP == "sub":
        tle.dsa.sub(a, b, a)
    elif OP == "mul":
        tle.dsa.mul(input=a, other=b, result=a)
    elif OP == "div":
        tle.dsa.div(a, b, a)
    elif OP == "max":
        tle.dsa.max(a, b, a)
    else:
        tle.dsa.min(a, b, a)
    tle.dsa.copy(a, out + at, [tail])


@pytest.mark.parametrize("op", BINARY)
@pytest.mark.parametrize("dtype", DTYPES)
def test_arithmetic_in_place_with_a_tail(everywhere, op, dtype):
    x, y = numbers(150, dtype), numbers(150, dtype, 1)
    out = np.full(200, 77, dtype)
    binary_kernel[(3,)](x, y, out, 150, op, getattr(tl, dtype), 64)
    exact = {
        "add": np.add,
        "sub": np.subtract,
        "mul": np.multiply,
        "div": np.divide if dtype.startswith("float") else np.floor_divide,
        "max": np.maximum,
        "min": np.minimum,
    }[op]
    np.testing.assert_array_equal(out, np.concatenate([exact(x, y).astype(dtype), np.full(50, 77, dtype)]))


@triton.jit
def at(ptr, M: tl.constexpr, N: tl.constexpr):
    return ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]


@triton.jit
def chain_kernel(a, b, scale, out, BM: tl.constexpr, BK: tl.constexpr):
    a_ub = tle.dsa.alloc([BM, BK], dtype=tl.float16, mem_addr_space=tle.dsa.ascend.UB)
    b_ub = tle.dsa.alloc([BM, BK], dtype=tl.float16, mem_addr_space=tle.dsa.ascend.UB)
    scale_ub = tle.dsa.alloc([BM, BK], dtype=tl.float16, mem_addr_space=tle.dsa.ascend.UB)
    tmp_ub = tle.dsa.alloc([BM, BK], dtype=tl.float16, mem_addr_space=tle.dsa.ascend.UB)
    out_ub = tle.dsa.alloc([BM, BK], dtype=tl.float16, mem_addr_space=tle.dsa.ascend.UB)
    tle.dsa.copy(at(a, BM, BK), a_ub, [BM, BK])
    tle.dsa.copy(at(b, BM, BK), b_ub, [BM, BK])
    tle.dsa.copy(at(scale, BM, BK), scale_ub, [BM, BK])
    tle.dsa.sub(a_ub, b_ub, tmp_ub)
    tle.dsa.mul(tmp_ub, b_ub, tmp_ub)
    tle.dsa.div(tmp_ub, scale_ub, out_ub)
    tle.dsa.copy(out_ub, at(out, BM, BK), [BM, BK])


def test_arithmetic_chain(everywhere):
    a, b, scale = (numbers((16, 24), "float16", seed) for seed in range(3))
    out = np.zeros_like(a)
    chain_kernel[(1,)](a, b, scale, out, 16, 24)
    np.testing.assert_array_equal(out, (a - b) * b / scale)


@triton.jit
def clamp_kernel(x, floor, ceil, y, BM: tl.constexpr, BK: tl.constexpr):
    x_ub = tle.dsa.alloc([BM, BK], dtype=tl.float16, mem_addr_space=tle.dsa.ascend.UB)
    floor_ub = tle.dsa.alloc([BM, BK], dtype=tl.float16, mem_addr_space=tle.dsa.ascend.UB)
    ceil_ub = tle.dsa.alloc([BM, BK], dtype=tl.float16, mem_addr_space=tle.dsa.ascend.UB)
    tmp_ub = tle.dsa.alloc([BM, BK], dtype=tl.float16, mem_addr_space=tle.dsa.ascend.UB)
    y_ub = tle.dsa.alloc([BM, BK], dtype=tl.float16, mem_addr_space=tle.dsa.ascend.UB)
    tle.dsa.copy(at(x, BM, BK), x_ub, [BM, BK])
    tle.dsa.copy(at(floor, BM, BK), floor_ub, [BM, BK])
    tle.dsa.copy(at(ceil, BM, BK), ceil_ub, [BM, BK])
    tle.dsa.max(x_ub, floor_ub, tmp_ub)
    tle.dsa.min(tmp_ub, ceil_ub, y_ub)
    tle.dsa.copy(y_ub, at(y, BM, BK), [BM, BK])


def test_clamp(everywhere):
    x, floor, ceil = (
        numbers((8, 32), "float16"),
        np.full((8, 32), 3, "float16"),
        np.full((8, 32), 6, "float16"),
    )
    y = np.zeros_like(x)
    clamp_kernel[(1,)](x, floor, ceil, y, 8, 32)
    np.testing.assert_array_equal(y, np.clip(x, 3, 6))


@triton.jit
def flow_kernel(a, b, out, m, n, BM: tl.constexpr, BK: tl.constexpr):
    a_ub = tle.dsa.alloc([BM, BK], dtype=tl.float16, mem_addr_space=tle.dsa.ascend.UB)
    b_ub = tle.dsa.alloc([BM, BK], dtype=tl.float16, mem_addr_space=tle.dsa.ascend.UB)
    c_ub = tle.dsa.alloc([BM, BK], dtype=tl.float16, mem_addr_space=tle.dsa.ascend.UB)
    tle.dsa.copy(at(a, BM, BK), a_ub, [BM, BK])
    tle.dsa.copy(at(b, BM, BK), b_ub, [BM, BK])
    tle.dsa.add(a_ub, b_ub, c_ub)
    c_val = tle.dsa.to_tensor(c_ub, writable=True)
    result = c_val * 0.5
    d_ub = tle.dsa.to_buffer(result, tle.dsa.ascend.UB)
    tle.dsa.copy(d_ub, at(out, BM, BK), [m, n])


def test_buffers_become_tensors_and_buffers_again(everywhere):
    a, b = numbers((8, 16), "float16"), numbers((8, 16), "float16", 1)
    out = np.zeros_like(a)
    flow_kernel[(1,)](a, b, out, 5, 7, 8, 16)
    expected = np.zeros_like(a)
    expected[:5, :7] = ((a + b) * np.float16(0.5))[:5, :7]
    np.testing.assert_array_equal(out, expected)


@triton.jit
def local_kernel(a, out, BM: tl.constexpr, BK: tl.constexpr):
    a_ub = tle.dsa.alloc([BM, BK], dtype=tl.float16, mem_addr_space=tle.dsa.ascend.UB)
    tle.dsa.copy(at(a, BM, BK), a_ub, [BM, BK])
    rows = tl.broadcast_to(tl.arange(0, BM)[:, None], (BM, BK))
    cols = tl.broadcast_to(tl.arange(0, BK)[None, :], (BM, BK))
    a_ptr = tle.dsa.local_ptr(a_ub, (rows, BK - 1 - cols))
    a_val = tl.load(a_ptr)
    bound = tle.dsa.to_buffer(a_val, bind_buffer=a_ub)
    tle.dsa.copy(bound, at(out, BM, BK), [BM, BK])


def test_pointers_into_a_buffer():
    a = numbers((8, 16), "float16")
    out = np.zeros_like(a)
    local_kernel[(1,)](a, out, 8, 16)
    np.testing.assert_array_equal(out, a[:, ::-1])


@triton.jit
def written_by_pointers_kernel(x, out):
    i = tl.arange(0, 16)
    held = tle.dsa.alloc([16], tl.float32, tle.dsa.ascend.UB)
    tle.dsa.copy(x + i, held, [16])
    before = tle.dsa.to_tensor(held)
    tl.store(tle.dsa.local_ptr(held, (i,)), before * 2)
    between = tle.dsa.to_tensor(held)
    tl.store(tle.dsa.local_ptr(held, (3,)), 100.0)
    tl.atomic_add(tle.dsa.local_ptr(held, (i // 8,)), 1.0)
    tl.store(out + i, before)
    tl.store(out + 16 + i, between)
    tle.dsa.copy(held, out + 32 + i, [16])


def test_a_value_stays_when_pointers_write_to_its_buffer(everywhere):
    x, out = numbers(16), np.zeros(48, "float32")
    written_by_pointers_kernel[(1,)](x, out)
    last = x * 2
    last[3] = 100
    last[:2] += 8
    np.testing.assert_array_equal(out, np.concatenate([x, x * 2, last]))


@triton.jit
def overlapping_kernel(x, out, OP: tl.constexpr):
    i = tl.arange(0, 64)
    held = tle.dsa.alloc([64], tl.int32, tle.dsa.ascend.UB)
    tle.dsa.copy(x + i, held, [64])
    left = tle.dsa.subview(held, [0], [32], [1])
    right = tle.dsa.subview(held, [8], [32], [1])
    into = tle.dsa.subview(held, [16], [32], [1])
    if OP == "add":
        tle.dsa.add(left, right, into)
    elif OP == "copy":
        tle.dsa.copy(left, into, [32])
    elif OP == "value":
        tle.dsa.to_buffer(tle.dsa.to_tensor(left), bind_buffer=into)
    else:
        tle.dsa.to_buffer(tle.dsa.to_tensor(left) << tle.dsa.to_tensor(right), bind_buffer=into)
    tle.dsa.copy(held, out + i, [64])


@pytest.mark.parametrize("op", ["add", "copy", "value", "shift"])
def test_parts_that_overlap(everywhere, op):
    x, out = numbers(64, "int32"), np.zeros(64, "int32")
    overlapping_kernel[(1,)](x, out, op)
    left, right, want = x[:32], x[8:40], x.copy()
    want[16:48] = {"add": left + right, "shift": left << right}.get(op, left)
    np.testing.assert_array_equal(out, want)


@triton.jit
def chosen_kernel(x, out, first):
    i = tl.arange(0, 16)
    a = tle.dsa.alloc([16], tl.float32, tle.dsa.ascend.UB)
    b = tle.dsa.alloc([16], tl.float32, tle.dsa.ascend.UB)
    tle.dsa.copy(x + i, a, [16])
    tle.dsa.copy(x + 16 + i, b, [16])
    if first:
        chosen = a
    else:
        chosen = b
    tle.dsa.add(chosen, chosen, chosen)
    tle.dsa.copy(a, out + i, [16])
    tle.dsa.copy(b, out + 16 + i, [16])


def test_a_buffer_that_a_branch_chooses(monkeypatch):
    x, out = numbers(32), np.zeros(32, "float32")
    chosen_kernel[(1,)](x, out, 0)
    np.testing.assert_array_equal(out, np.concatenate([x[:16], x[16:] * 2]))
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "npusim")
    with pytest.raises(
        triton.CompilationError, match="a buffer that a branch or a loop chooses on ascend:910b"
    ):
        chosen_kernel[(1,)](x, out, 0)


@triton.jit
def placed_kernel(x, out, row, column):
    a = tle.dsa.alloc([4, 8], tl.float32, tle.dsa.ascend.UB)
    b = tle.dsa.alloc([4, 8], tl.float32, tle.dsa.ascend.UB)
    tle.dsa.copy(at(x, 4, 8), a, [4, 8])
    tle.dsa.to_buffer(tl.zeros((4, 8), tl.float32), bind_buffer=b)
    tle.dsa.copy(a, b, [2, 3], offsets=(row, column))
    tle.dsa.copy(b, at(out, 4, 8), [4, 8])


def test_only_as_much_as_is_copied_must_be_there(everywhere):
    x, out, want = numbers((4, 8)), np.zeros((4, 8), "float32"), np.zeros((4, 8), "float32")
    placed_kernel[(1,)](x, out, 2, 5)
    want[2:, 5:] = x[:2, :3]
    np.testing.assert_array_equal(out, want)
    with pytest.raises(
        triton.KernelError, match=r"begins at 3 along dimension 0|elements 3 to 4 along dimension 0"
    ):
        placed_kernel[(1,)](x, out, 3, 5)


@triton.jit
def slices_kernel(x, out, elements, k0, i, j):
    full = tl.load(at(x, 8, 16))
    sub = tle.dsa.extract_slice(full, offsets=(2, k0), sizes=(3, 4), strides=(2, 3))
    full = tle.dsa.insert_slice(full, sub * 10, offsets=(2, k0), sizes=(3, 4), strides=(2, 3))
    full = full.insert_slice(full.extract_slice((0, 0), (1, 2)), (7, 14))
    tl.store(elements, tle.dsa.extract_element(sub, indice=(i, j)))
    tl.store(at(out, 8, 16), full)


def test_slices(everywhere):
    x, out, element = numbers((8, 16)), np.zeros((8, 16), "float32"), np.zeros(1, "float32")
    slices_kernel[(1,)](x, out, element, 5, 1, 2)
    expected = x.copy()
    expected[2:7:2, 5:15:3] *= 10
    expected[7, 14:] = expected[0, :2]
    np.testing.assert_array_equal(out, expected)
    assert element[0] == x[4, 11]
    with pytest.raises(triton.KernelError, match=r"elements 8 to 17 .*along dimension 1.* 16"):
        slices_kernel[(1,)](x, out, element, 8, 1, 2)


@triton.jit
def subview_kernel(x, out, first):
    whole = tle.dsa.alloc([4, 32], tl.float32, tle.dsa.ascend.UB)
    tle.dsa.copy(at(x, 4, 32), whole, [4, 32])
    part = tle.dsa.subview(whole, (1, first), (2, 8), (1, 1))
    tle.dsa.add(part, part, part)
    tle.dsa.copy(at(x, 1, 4), whole, [1, 4], offsets=(3, first))
    tle.dsa.copy(whole, at(out, 4, 32), [4, 32])


def test_subviews_share_the_memory(everywhere):
    x, out = numbers((4, 32)), np.zeros((4, 32), "float32")
    subview_kernel[(1,)](x, out, 6)
    expected = x.copy()
    expected[1:3, 6:14] *= 2
    expected[3, 6:10] = x[0, :4]
    np.testing.assert_array_equal(out, expected)
    with pytest.raises(
        triton.KernelError,
        match=r"begins at 25 along dimension 1, where 0 to 24 is inside|elements 25 to 32 along dimension 1",
    ):
        subview_kernel[(1,)](x, out, 25)


@triton.jit
def gaps_kernel(x, out, twice, first, tail):
    whole = tle.dsa.alloc([8, 32], tl.float32, tle.dsa.ascend.UB)
    tle.dsa.copy(at(x, 8, 32), whole, [8, 32])
    # Columns first, first + 2, … of every third row from row 1 on; then every other one of these.
    part = tle.dsa.subview(whole, (1, first), (2, 8), (3, 2))
    tle.dsa.add(part, part, part)
    some = tle.dsa.subview(part, (1, 1), (1, 3), (1, 2))
    tle.dsa.copy(at(x, 1, 3), some, [1, 3])
    # Not all of it, into the part and out of it.
    tle.dsa.copy(at(x, 1, 4), part, [1, tail])
    tle.dsa.copy(part, at(twice, 2, 8), [2, 8])
    held = tle.dsa.to_tensor(part)
    tle.dsa.mul(part, part, part)
    tle.dsa.copy(part, at(twice + 16, 2, 4), [2, 3], offsets=(0, 1))
    rows, columns = tl.arange(0, 2)[:, None], tl.arange(0, 8)[None, :]
    last = tle.dsa.local_ptr(part, (rows + columns * 0, columns + rows * 0))
    tl.store(last, tl.load(last) + tl.sum(held, axis=1)[:, None])
    tle.dsa.to_buffer(
        tl.reshape(held, (16,)).reshape(2, 8), bind_buffer=tle.dsa.subview(whole, (0, 0), (2, 8), (4, 4))
    )
    tle.dsa.copy(whole, at(out, 8, 32), [8, 32])


def test_subviews_with_gaps(everywhere):
    x, out, twice = numbers((8, 32)), np.zeros((8, 32), "float32"), np.zeros(48, "float32")
    gaps_kernel[(1,)](x, out, twice, 5, 4)
    want = x.copy()
    part = want[1:5:3, 5:20:2]
    part *= 2
    part[1:, 1:6:2] = x[0, :3]
    part[0, :4] = x[0, :4]
    held = part.copy()
    np.testing.assert_array_equal(twice[:16].reshape(2, 8), held)
    part *= part
    np.testing.assert_array_equal(twice[16:24].reshape(2, 4)[:, :3], part[:, 1:4])
    part += held.sum(1, keepdims=True)
    want[:5:4, :29:4] = held
    np.testing.assert_array_equal(out, want)
    with pytest.raises(
        triton.KernelError, match=r"begins at 18 .*where 0 to 17 is|elements 18 to 32 along dimension 1"
    ):
        gaps_kernel[(1,)](x, out, twice, 18, 4)


@triton.jit
def gaps_in_l1_kernel(x):
    whole = tle.dsa.alloc([32, 64], tl.float16, tle.dsa.ascend.L1)
    tle.dsa.copy(at(x, 32, 32), tle.dsa.subview(whole, (0, 0), (32, 32), (1, 2)), [32, 32])


def test_gaps_where_products_read(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "npusim")
    with pytest.raises(
        triton.TilewrightError, match="part of a buffer in L1 with gaps between its elements on ascend"
    ):
        gaps_in_l1_kernel[(1,)](np.zeros((32, 32), "float16"))


@triton.jit
def loops_kernel(x, y, out, n, BLOCK: tl.constexpr):
    with tle.dsa.hint(inter_no_alias=True):
        for start in tle.dsa.pipeline(0, n, BLOCK):
            a = tle.dsa.alloc([BLOCK], tl.float32, tle.dsa.ascend.UB)
            b = tle.dsa.alloc([BLOCK], tl.float32, tle.dsa.ascend.UB)
            offs = start + tl.arange(0, BLOCK)
            tail = tl.minimum(n - start, BLOCK)
            tle.dsa.copy(x + offs, a, [tail], inter_no_alias=True)
            tle.dsa.copy(y + offs, b, [tail])
            tle.dsa.mul(a, b, a)
            tle.dsa.copy(a, out + offs, [tail])
    for start in tle.dsa.parallel(0, n, BLOCK):
        c = tle.dsa.alloc([BLOCK], tl.float32, tle.dsa.ascend.UB)
        offs = start + tl.arange(0, BLOCK)
        tail = tl.minimum(n - start, BLOCK)
        tle.dsa.copy(out + offs, c, [tail])
        tle.dsa.add(c, c, c)
        tle.dsa.copy(c, out + offs, [tail])


def test_loops_and_hints(everywhere):
    x, y, out = numbers(300), numbers(300, seed=1), np.zeros(300, "float32")
    loops_kernel[(1,)](x, y, out, 300, 128)
    np.testing.assert_array_equal(out, 2 * x * y)


@triton.jit
def matmul_kernel(a, b, c, K, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):
    acc = tl.zeros((M, N), tl.float32)
    for k in tle.dsa.pipeline(0, K, BK):
        a_l1 = tle.dsa.alloc([M, BK], tl.float16, tle.dsa.ascend.L1)
        b_l1 = tle.dsa.alloc([BK, N], tl.float16, tle.dsa.ascend.L1)
        a_l0 = tle.dsa.alloc([M, BK], tl.float16, tle.dsa.ascend.L0A)
        b_l0 = tle.dsa.alloc([BK, N], tl.float16, tle.dsa.ascend.L0B)
        tle.dsa.copy(a + tl.arange(0, M)[:, None] * K + k + tl.arange(0, BK)[None, :], a_l1, [M, BK])
        tle.dsa.copy(b + (k + tl.arange(0, BK)[:, None]) * N + tl.arange(0, N)[None, :], b_l1, [BK, N])
        tle.dsa.copy(a_l1, a_l0, [M, BK])
        tle.dsa.copy(b_l1, b_l0, [BK, N])
        acc = tl.dot(tle.dsa.to_tensor(a_l0), tle.dsa.to_tensor(b_l0), acc)
    c_l0 = tle.dsa.to_buffer(acc, tle.dsa.ascend.L0C)
    tle.dsa.copy(c_l0, at(c, M, N), [M, N])


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_matmul_through_the_memories_of_the_cube_core(everywhere, dtype):
    a, b = numbers((32, 64), "float16"), numbers((64, 48), "float16", 1)
    c = np.zeros((32, 48), dtype)
    matmul_kernel[(1,)](a, b, c, 64, 32, 48, 32)
    np.testing.assert_array_equal(c, (a.astype("float32") @ b.astype("float32")).astype(dtype))


@triton.jit
def product_of_two_uses_kernel(a, b, out, half):
    held = tle.dsa.alloc([16, 16], tl.float32, tle.dsa.ascend.UB)
    tle.dsa.copy(at(a, 16, 16), held, [16, 16])
    tle.dsa.add(held, held, held)
    left = tle.dsa.to_buffer(tle.dsa.to_tensor(held).to(tl.float16), tle.dsa.ascend.L1)
    product = tl.dot(tle.dsa.to_tensor(left), tl.load(at(b, 16, 16)))
    tle.dsa.copy(tle.dsa.to_buffer(product, tle.dsa.ascend.L0C), at(half, 16, 16), [16, 16])
    more = tle.dsa.to_buffer(product * 2 + 1, tle.dsa.ascend.UB)
    tle.dsa.mul(more, held, more)
    tle.dsa.copy(more, at(out, 16, 16), [16, 16])


def test_a_product_in_l0c_that_vectors_take_too(everywhere):
    a, b = numbers((16, 16)), numbers((16, 16), "float16", 1)
    out, half = np.zeros((16, 16), "float32"), np.zeros((16, 16), "float16")
    product_of_two_uses_kernel[(1,)](a, b, out, half)
    product = 2 * a @ b.astype("float32")
    np.testing.assert_array_equal(half, product.astype("float16"))
    np.testing.assert_array_equal(out, (product * 2 + 1) * 2 * a)


@triton.jit
def other_forms_kernel(x, out, totals):
    held = tle.dsa.alloc([64], tl.int32, None, scope=tle.dsa.ascend.UB)
    tle.dsa.copy(x + tl.arange(0, 64), held, [64])
    values = tle.dsa.to_tensor(held, target_shape=(4, 16))
    tile = tle.dsa.extract_tile(values, (1, 1), (2, 8))
    values = tle.dsa.insert_tile(values, tile + 1, (1, 1))
    values = tle.dsa.memory_space(values, "UB")
    exclusive, total = tle.dsa.cumsum(tl.reshape(values, (64,)))
    tl.store(out + tl.arange(0, 64), exclusive)
    tl.store(totals, total)


def test_forms_of_other_chips(everywhere):
    x, out, total = numbers(64, "int32"), np.zeros(64, "int32"), np.zeros(1, "int32")
    other_forms_kernel[(1,)](x, out, total)
    values = x.reshape(4, 16).copy()
    values[2:, 8:] += 1
    np.testing.assert_array_equal(out, np.cumsum(values.ravel()) - values.ravel())
    assert total[0] == values.sum()


@triton.jit
def remote_kernel(out, mesh: tl.constexpr):
    mine = tle.dsa.alloc([16], tl.int32, tle.dsa.ascend.UB)
    rank = tle.shard_id(mesh, "block_cluster")
    tl.store(tle.dsa.local_ptr(mine), tl.arange(0, 16) + 100 * rank)
    tle.distributed_barrier(mesh)
    there = tle.remote(mine, shard_id=1 - rank, scope=mesh)
    tl.store(out + rank * 16 + tl.arange(0, 16), tl.load(tle.dsa.local_ptr(there, (tl.arange(0, 16),))))
    tle.distributed_barrier(mesh)


def test_remote_buffers(everywhere):
    out = np.zeros(32, "int32")
    remote_kernel[(2,)](out, tle.device_mesh({"block_cluster": 2}))
    np.testing.assert_array_equal(out, np.concatenate([np.arange(16) + 100, np.arange(16)]))


@triton.jit
def ring_kernel(x, out, n, mesh: tl.constexpr, N: tl.constexpr):
    """The sum over a cluster: each program adds what its neighbour holds, as often as there are others."""
    i = tl.arange(0, N)
    rank = tle.shard_id(mesh, "block_cluster")
    at = tl.program_id(0) * N + i
    held = tle.dsa.alloc([N], tl.float32, tle.dsa.ascend.UB)
    tail = tl.minimum(n - tl.program_id(0) * N, N)
    tle.dsa.to_buffer(tl.zeros((N,), tl.float32), bind_buffer=held)
    tle.dsa.copy(x + at, held, [tail])
    total = tle.dsa.to_tensor(held)
    for _step in tl.static_range(3):
        tle.distributed_barrier(mesh)
        there = tle.remote(held, shard_id=(rank + 1) % 4, scope=mesh)
        came = tl.load(tle.dsa.local_ptr(there, (i,)))
        tle.distributed_barrier(mesh)
        tle.dsa.to_buffer(came, bind_buffer=held)
        total += came
    tl.store(out + at, total)
    tle.distributed_barrier(mesh)
    # The last one writes into the first one's buffer.
    if rank == 3:
        first = tle.dsa.local_ptr(tle.remote(held, shard_id=0, scope=mesh), (i,))
        tl.store(first, i.to(tl.float32))
    tle.distributed_barrier(mesh)
    if rank == 0:
        tle.dsa.copy(held, out + 8 * N + tl.program_id(0) // 4 * N + i, [N])


def test_a_ring_of_buffers(everywhere):
    x = numbers(8 * 16 - 5).astype("float32")
    out = np.zeros(10 * 16, "float32")
    ring_kernel[(2,)](x, out, x.size, tle.device_mesh({"block_cluster": 4}), 16)
    rows = np.concatenate([x, np.zeros(5, "float32")]).reshape(2, 4, 16)
    want = np.broadcast_to(rows.sum(1, keepdims=True), rows.shape)
    np.testing.assert_array_equal(out[:128].reshape(rows.shape), want)
    np.testing.assert_array_equal(out[128:].reshape(2, 16), [np.arange(16)] * 2)


@triton.jit
def unordered_kernel(out, mesh: tl.constexpr):
    i = tl.arange(0, 16)
    mine = tle.dsa.alloc([16], tl.int32, tle.dsa.ascend.UB)
    tl.store(tle.dsa.local_ptr(mine, (i,)), i)
    tle.distributed_barrier(mesh)
    there = tle.remote(mine, shard_id=1 - tle.shard_id(mesh, "block_cluster"), scope=mesh)
    tl.store(tle.dsa.local_ptr(mine, (i,)), tl.load(tle.dsa.local_ptr(there, (i,))) + 1)
    tl.store(out + i, i)


@triton.jit
def ring_of_products_kernel(a, b, out, mesh: tl.constexpr, N: tl.constexpr):
    """Rows of the product of matrices of which each program has some rows: those of the second one go around."""
    i, k = tl.arange(0, 16), tl.arange(0, N)
    rank = tle.shard_id(mesh, "block_cluster")
    held = tle.dsa.alloc([16, N], tl.float32, tle.dsa.ascend.UB)
    tle.dsa.copy(b + (rank * 16 + i[:, None]) * N + k[None, :], held, [16, N])
    total = tl.zeros((16, N), tl.float32)
    for step in range(N // 16):
        member = (rank + step) % (N // 16)
        tle.distributed_barrier(mesh)
        there = tl.load(tle.dsa.local_ptr(tle.remote(held, shard_id=member, scope=mesh)))
        left = tl.load(a + (rank * 16 + i[:, None]) * N + member * 16 + i[None, :])
        total += tl.dot(left, there)
    tl.store(out + (rank * 16 + i[:, None]) * N + k[None, :], total)
    tle.distributed_barrier(mesh)


def test_products_of_what_others_have(everywhere):
    a, b, out = numbers((48, 48)), numbers((48, 48), seed=1), np.zeros((48, 48), "float32")
    ring_of_products_kernel[(1,)](a, b, out, tle.device_mesh({"block_cluster": 3}), 48)
    np.testing.assert_array_equal(out, a @ b)


@triton.jit
def locked_kernel(out, mesh: tl.constexpr):
    old = tl.atomic_add(out, 1)
    tle.distributed_barrier(mesh)
    tl.store(out + 2 + old, tl.atomic_add(out + 1, 1))


@triton.jit
def part_kernel(out, mesh: tl.constexpr):
    i = tl.arange(0, 8)
    mine = tle.dsa.alloc([16], tl.int32, tle.dsa.ascend.UB)
    there = tle.remote(tle.dsa.subview(mine, [0], [8], [1]), shard_id=0, scope=mesh)
    tl.store(out + i, tl.load(tle.dsa.local_ptr(there, (i,))))


@triton.jit
def combined_kernel(out, mesh: tl.constexpr):
    i = tl.arange(0, 16)
    mine = tle.dsa.alloc([16], tl.int32, tle.dsa.ascend.UB)
    there = tle.remote(mine, shard_id=0, scope=mesh)
    tl.store(out + i, tl.atomic_xchg(tle.dsa.local_ptr(there, (i,)), i))


@pytest.mark.parametrize(
    "kernel, message",
    [
        (combined_kernel, "an atomic operation on a buffer that other programs reach on ascend:910b"),
        (unordered_kernel, r"programs 0 and 1 touch byte \d+ of the workspace, and nothing is between them"),
        (
            locked_kernel,
            "a barrier of programs between atomic operations that they do one program after the other",
        ),
        (part_kernel, "tle.remote of anything but a buffer that tle.dsa.alloc gave, in UB, on ascend:910b"),
    ],
)
def test_remote_buffers_on_ascend_that_are_refused(kernel, message, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "npusim")
    with pytest.raises(triton.TilewrightError, match=message):
        kernel[(1,)](np.zeros(256, "int32"), tle.device_mesh({"block_cluster": 2}))


@triton.jit
def reused_kernel(x, out):
    # 128 KiB each: one after the other they fit into the 192 KiB of UB.
    first = tle.dsa.alloc([32768], tl.float32, tle.dsa.ascend.UB)
    tle.dsa.copy(x + tl.arange(0, 32768), first, [32768])
    tle.dsa.copy(first, out + tl.arange(0, 32768), [32768])
    second = tle.dsa.alloc([32768], tl.float32, tle.dsa.ascend.UB)
    tle.dsa.copy(out + tl.arange(0, 32768), second, [32768])
    tle.dsa.copy(second, x + tl.arange(0, 32768), [32768])


def test_memory_is_used_again(everywhere):
    x, out = numbers(32768), np.zeros(32768, "float32")
    reused_kernel[(1,)](x, out)
    np.testing.assert_array_equal(out, x)


def test_a_copy_beyond_its_pointers_is_reported():
    x, out = numbers(64), np.zeros(64, "float32")
    with pytest.raises(
        triton.KernelError, match="a copy of fewer than 0 or more than 64 elements along dimension 0"
    ):
        binary_kernel[(2,)](x, x, out, 32, "add", tl.float32, 64)


def test_a_target_without_these_memories(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "ptxsim")
    x = numbers(64)
    with pytest.raises(triton.CompilationError, match=r"has no memory UB, which buffers of tle\.dsa are in"):
        binary_kernel[(1,)](x, x, x, 64, "add", tl.float32, 64)


def test_what_a_compilation_for_ascend_writes(tmp_path):
    source = tmp_path / "add.py"
    page = (Path(__file__).parents[2] / "docs" / "tle-dsa.md").read_text()
    source.write_text(re.search(r"```python\n(.*?)```", page, re.DOTALL)[1])
    command = [str(Path(sys.executable).with_name("tilewright")), "compile", f"{source}::add"]
    signature = ["--signature", "*fp32, *fp32, *fp32, i32, 256", "--target", "ascend:910b"]
    done = subprocess.run([*command, *signature, "-o", str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    text, report = (tmp_path / "add.hivm").read_text(), (tmp_path / "add.report").read_text()
    assert "hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_V>" in text and "hacc.entry" in text
    assert report == re.search(r"```text\n(.*?)```", page, re.DOTALL)[1]


@triton.jit
def broken_promise_kernel(x, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    with tle.dsa.hint(inter_no_alias=True):
        for _ in tle.dsa.pipeline(0, n):
            held = tle.dsa.alloc([BLOCK], tl.float32, tle.dsa.ascend.UB)
            tle.dsa.copy(x + at, held, [BLOCK])
            tle.dsa.add(held, held, held)
            tle.dsa.copy(held, x + at, [BLOCK])


def test_a_broken_promise_is_reported(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "npusim")
    with pytest.raises(triton.KernelError, match="inter_no_alias promises that they touch different memory"):
        broken_promise_kernel[(1,)](numbers(64), 4, 64)
