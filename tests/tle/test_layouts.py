"""Layouts that a kernel gives to buffers and tensors, buffers in the memory of others, and `tle.gpu.memory_space`."""

import re

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def block(ptr, M: tl.constexpr, N: tl.constexpr):
    return ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]


ROWS = tle.gpu.nv_mma_shared_layout.make_default([64, 32], tl.float16)
COLUMNS = tle.gpu.nv_mma_shared_layout([32, 64], [0, 1], tl.float16)


@triton.jit
def made_inside(x_ptr, out_ptr, WAY: tl.constexpr):
    turned: tl.constexpr = tle.gpu.swizzled_shared_layout(1, 1, 1, order=[0, 1])
    if WAY == 0:
        buffer = tle.gpu.alloc([64, 32], dtype=tl.float16, layout=turned.make_permute((1, 0)))
    elif WAY == 1:
        buffer = tle.gpu.alloc(
            [64, 32], dtype=tl.float16, layout=tle.gpu.nv_mma_shared_layout.make_default([64, 32], tl.float16)
        )
    elif WAY == 2:
        buffer = tle.gpu.alloc(
            [64, 32], dtype=tl.float16, layout=tle.gpu.swizzled_shared_layout.make_default(2)
        )
    elif WAY == 3:
        tle.gpu.BlockEncoding([1, 1])
    else:
        tle.gpu.swizzled_shared_layout(tl.program_id(0), 1, 1, [1, 0])
    buffer.store(tl.load(block(x_ptr, 64, 32)))
    rows: tl.constexpr = tle.gpu.BlockEncoding([1, 4], [4, 8], [4, 1], [1, 0])
    sums = tl.sum(tle.gpu.set_layout(buffer.load(), rows), 1)
    tl.store(out_ptr + tl.arange(0, 64), tle.gpu.set_layout(sums, tle.gpu.SlicedEncoding(1, rows)))


@pytest.mark.parametrize("way", range(3))
def test_layouts_that_kernels_make(device, way):
    x = np.random.default_rng(0).integers(-4, 5, (64, 32)).astype(np.float16)
    out = device.array(np.zeros(64, np.float16))
    made_inside[(1,)](device.array(x), out, way)
    np.testing.assert_array_equal(device.numpy(out), x.sum(1))


UNSWIZZLED = tle.gpu.nv_mma_shared_layout([64, 32], [1, 0], tl.float16, swizzled=False)


@triton.jit
def unswizzled(x_ptr, out_ptr, LAYOUT: tl.constexpr, MULTIPLIES: tl.constexpr):
    x_desc = tl.make_tensor_descriptor(x_ptr, [64, 32], [32, 1], [64, 32])
    out_desc = tl.make_tensor_descriptor(out_ptr, [2 * 64, 32], [32, 1], [64, 32])
    buffer = tle.gpu.alloc([2, 64, 32], dtype=tl.float16, layout=LAYOUT)
    bar = tle.gpu.alloc_barrier(expect_bytes=64 * 32 * 2)
    tle.gpu.copy(x_desc, buffer.slot(1), [64, 32], [0, 0], barrier=bar)
    tle.gpu.barrier_wait(bar, phaseIdx=0)
    if MULTIPLIES:
        tle.gpu.wgmma_wait(0, tle.gpu.wgmma(buffer.slot(1), buffer.slot(1), trans_b=True))
    tle.gpu.copy(buffer.slot(1), out_desc, [64, 32], [0, 0])
    buffer.slot(0).store(buffer.slot(1).load() + 1)
    tle.gpu.copy(buffer.slot(0), out_desc, [64, 32], [64, 0])


def test_what_is_not_swizzled(device):
    x = np.random.default_rng(0).integers(-4, 5, (64, 32)).astype(np.float16)
    out = device.array(np.zeros((2, 64, 32), np.float16))
    unswizzled[(1,)](device.array(x), out, UNSWIZZLED, False)
    np.testing.assert_array_equal(device.numpy(out), np.stack([x, x + 1]))


def test_products_read_what_is_swizzled(device):
    x = device.array(np.zeros((64, 32), np.float16))
    with pytest.raises(
        triton.CompilationError, match=r"`a` of tle\.gpu\.wgmma is a buffer with a layout that"
    ):
        unswizzled[(1,)](x, device.array(np.zeros((2, 64, 32), np.float16)), UNSWIZZLED, True)


@pytest.mark.parametrize(
    ("way", "message"),
    [
        (3, "BlockEncoding.__init__() missing 3 required positional arguments"),
        (4, "the arguments of tle.gpu.swizzled_shared_layout must be known at compile time"),
    ],
)
def test_layouts_that_kernels_can_not_make(way, message):
    with pytest.raises(triton.CompilationError, match=re.escape(message)):
        made_inside[(1,)](np.zeros((64, 32), np.float16), np.zeros(64, np.float16), way)


@triton.jit
def product(a_ptr, b_ptr, out_ptr, A: tl.constexpr, B: tl.constexpr):
    """The left operand by rows, the right one with K contiguous: its columns."""
    a = tle.gpu.alloc([2, 64, 32], dtype=tl.float16, layout=A)
    b = tle.gpu.alloc([32, 64], dtype=tl.float16, layout=B)
    a.slot(1).store(tl.load(block(a_ptr, 64, 32)))
    b.store(tl.load(block(b_ptr, 32, 64)))
    acc = tle.gpu.wgmma_wait(0, tle.gpu.wgmma(a.slot(1), b))
    # Elements are where their indices say, whatever the layout.
    first = tl.load(tle.gpu.local_ptr(b, (tl.zeros([64], tl.int32), tl.arange(0, 64))))
    tl.store(block(out_ptr, 64, 64), acc + first[None, :])


def test_layouts_of_tensor_cores(device):
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((64, 32), (32, 64)))
    out = device.array(np.zeros((64, 64), np.float32))
    product[(1,)](device.array(a), device.array(b), out, ROWS, COLUMNS)
    np.testing.assert_array_equal(
        device.numpy(out), a.astype(np.float32) @ b.astype(np.float32) + b[:1].astype(np.float32)
    )
    ttgir = product.warmup(
        a, b, np.zeros((64, 64), np.float32), ROWS, COLUMNS, grid=(1,), target="cuda:90"
    ).asm["ttgir"]
    # Rows of 32 elements of 16 bits, and columns of as many.
    assert (
        "swizzlingByteWidth = 64, transposed = false" in ttgir
        and "swizzlingByteWidth = 64, transposed = true" in ttgir
    )


@triton.jit
def brought(x_ptr, out_ptr, LAYOUT: tl.constexpr):
    desc = tl.make_tensor_descriptor(x_ptr, [64, 32], [32, 1], [64, 32])
    x = tle.gpu.alloc([64, 32], dtype=tl.float16, layout=LAYOUT)
    full = tle.gpu.alloc_barrier(expect_bytes=4096)
    tle.gpu.copy(desc, x, [64, 32], [0, 0], barrier=full)
    tle.gpu.barrier_wait(full, phaseIdx=0)
    tl.store(block(out_ptr, 64, 32), x.load())


PLAIN = tle.gpu.swizzled_shared_layout.make_default(2)


@pytest.mark.parametrize("layout", [ROWS, PLAIN])
def test_copies_to_given_layouts(device, layout):
    x = np.random.default_rng(0).random((64, 32)).astype(np.float16)
    out = device.array(np.zeros_like(x))
    brought[(1,)](device.array(x), out, layout)
    np.testing.assert_array_equal(device.numpy(out), x)


@triton.jit
def one_after_the_other(x_ptr, out_ptr, N: tl.constexpr):
    """A buffer of counts lies in the memory of rows that are done with."""
    rows = tle.gpu.alloc([2, N, N], dtype=tl.float32)
    counts = tle.gpu.alloc([N], dtype=tl.int32, alias=rows, alias_offset_bytes=N * N * 4)
    halves = tle.gpu.alloc([N, N], dtype=tl.float16, alias=rows.slot(1), alias_offset_bytes=N * N * 2)
    rows.slot(0).store(tl.load(block(x_ptr, N, N)))
    total = tl.sum(rows.slot(0).load(), 0)
    counts.store(total.to(tl.int32))
    tl.debug_barrier()
    tl.store(out_ptr + tl.arange(0, N), tl.load(tle.gpu.local_ptr(counts, (N - 1 - tl.arange(0, N),))))
    halves.store(rows.slot(0).load().to(tl.float16))
    tl.store(out_ptr + N + tl.arange(0, N), tl.max(halves.load(), 1).to(tl.int32))


def test_aliases_reuse_memory(device):
    x = np.random.default_rng(0).integers(0, 9, (32, 32)).astype(np.float32)
    out = device.array(np.zeros((2, 32), np.int32))
    one_after_the_other[(1,)](device.array(x), out, 32)
    np.testing.assert_array_equal(device.numpy(out), [x.sum(0)[::-1], x.max(1)])
    compiled = one_after_the_other.warmup(x, np.zeros((2, 32), np.int32), 32, grid=(1,), target="cuda:90")
    assert compiled.metadata.shared < 2 * 32 * 32 * 4 + 1024


@triton.jit
def same_bytes(x_ptr, out_ptr, slot, N: tl.constexpr):
    """Both in row-major order: the bits of floats as integers, two of 16 bits for each."""
    floats = tle.gpu.alloc([2, N], dtype=tl.float32, nv_mma_shared_layout=False)
    bits = tle.gpu.alloc([N, 2], dtype=tl.int16, alias=floats.slot(slot), nv_mma_shared_layout=False)
    floats.slot(slot).store(tl.load(x_ptr + tl.arange(0, N)))
    tl.debug_barrier()
    tl.store(block(out_ptr, N, 2), bits.load())


def test_aliases_show_the_same_bytes(device):
    x = np.random.default_rng(0).random(64, np.float32)
    out = device.array(np.zeros((64, 2), np.int16))
    same_bytes[(1,)](device.array(x), out, 1, 64)
    np.testing.assert_array_equal(device.numpy(out), x.view(np.int16).reshape(64, 2))


@triton.jit
def moved(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    x = tle.gpu.memory_space(x, "shared_memory")
    tl.store(out_ptr + tl.arange(0, N), x + 1)


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.bool_])
def test_memory_space(device, dtype):
    x = np.random.default_rng(0).integers(0, 2, 200).astype(dtype)
    out = device.array(np.zeros(200, np.int32))
    moved[(1,)](device.array(x), out, 200)
    np.testing.assert_array_equal(device.numpy(out), x.astype(np.int32) + 1)
    assert (
        "st.shared" in moved.warmup(x, np.zeros(200, np.int32), 200, grid=(1,), target="cuda:80").asm["ptx"]
    )


BLOCKS = tle.gpu.BlockEncoding([1, 2], [4, 8], [2, 2], [1, 0])
TALL = tle.gpu.BlockEncoding([4, 1], [1, 32], [4, 1], [0, 1])
MMA = tle.gpu.MmaEncoding(2, [2, 2], [16, 8])
FRAGMENTS = tle.gpu.DotOperandEncoding(0, MMA, 2)
ROW = tle.gpu.SlicedEncoding(1, BLOCKS)
WARP_GROUP = tle.gpu.MmaEncoding([3, 0], [4, 1], [16, 32, 16])


@triton.jit
def anchored(x_ptr, out_ptr, LAYOUT: tl.constexpr, OTHER: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    x = tle.gpu.set_layout(tl.load(block(x_ptr, M, N)), LAYOUT)
    y = tle.gpu.set_layout(x * 2, OTHER)
    for _ in range(2):
        y = y + 1
    tl.store(block(out_ptr, M, N), y)


@pytest.mark.parametrize("shape", [(64, 32), (48, 96)])
@pytest.mark.parametrize(
    ("layout", "other"),
    [(BLOCKS, TALL), (MMA, BLOCKS), (FRAGMENTS, MMA), (WARP_GROUP, FRAGMENTS), (TALL, TALL)],
)
def test_layouts_of_tensors(device, layout, other, shape):
    x = np.random.default_rng(0).random(shape).astype(np.float16)
    out = device.array(np.zeros_like(x))
    anchored[(1,)](device.array(x), out, layout, other, *shape)
    want = x * np.float16(2)
    for _ in range(2):
        want = want + np.float16(1)
    np.testing.assert_array_equal(device.numpy(out), want)


@triton.jit
def sums(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    total = tle.gpu.set_layout(tl.sum(tl.load(block(x_ptr, M, N)), 1), ROW)
    tl.store(out_ptr + tl.arange(0, M), total)


def test_a_slice(device):
    x = np.random.default_rng(0).integers(0, 9, (32, 32)).astype(np.float32)
    out = device.array(np.zeros(32, np.float32))
    sums[(1,)](device.array(x), out, 32, 32)
    np.testing.assert_array_equal(device.numpy(out), x.sum(1))


def test_the_layout_is_what_was_asked_for():
    x = np.zeros((64, 32), np.float16)
    ttgir = anchored.warmup(x, x, BLOCKS, TALL, 64, 32, grid=(1,), target="cuda:90").asm["ttgir"]
    wanted = "sizePerThread = [4, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [0, 1]"
    alias = re.search(rf"(#\w+) = #ttg.blocked<{{{re.escape(wanted)}}}>", ttgir)
    assert alias and re.search(rf"arith.addf .*tensor<64x32xf16, {alias[1]}>", ttgir)


@triton.jit
def wrong(x_ptr, CASE: tl.constexpr):
    x = tl.load(block(x_ptr, 64, 32))
    buffer = tle.gpu.alloc([64, 32], dtype=tl.float16)
    if CASE == 0:
        tle.gpu.alloc([64, 64], dtype=tl.float16, layout=ROWS)
    elif CASE == 1:
        tle.gpu.alloc([64, 32], dtype=tl.float32, layout=ROWS)
    elif CASE == 2:
        tle.gpu.alloc([64, 32], dtype=tl.float16, layout=PADDED)
    elif CASE == 3:
        tle.gpu.alloc([64, 8], dtype=tl.float16, layout=THIN)
    elif CASE == 4:
        tle.gpu.alloc([64, 32], dtype=tl.float16, layout=BLOCKS)
    elif CASE == 5:
        tle.gpu.alloc([64, 32], dtype=tl.float16, alias=x)
    elif CASE == 6:
        tle.gpu.alloc([64, 32], dtype=tl.float16, alias=buffer, alias_offset_bytes=2)
    elif CASE == 7:
        tle.gpu.alloc([8], dtype=tl.float16, alias=buffer, alias_offset_bytes=3)
    elif CASE == 8:
        tle.gpu.alloc([8], dtype=tl.float16, alias_offset_bytes=16)
    elif CASE == 9:
        tle.gpu.alloc([64, 32], dtype=tl.float16, alias=buffer, init_value=x.to(tl.float16))
    elif CASE == 10:
        tle.gpu.alloc([8], dtype=tl.float16, alias=buffer.subslice(8, 16))
    elif CASE == 11:
        tle.gpu.memory_space(x, "texture")
    elif CASE == 12:
        tle.gpu.set_layout(x, ROWS)
    elif CASE == 13:
        tle.gpu.set_layout(x, EIGHT)
    elif CASE == 14:
        tle.gpu.set_layout(x, ROW)
    elif CASE == 15:
        tle.gpu.set_layout(tle.gpu.set_layout(x, BLOCKS), TALL)
    elif CASE == 16:
        tl.store(block(x_ptr, 64, 32), tle.gpu.set_layout(x, BLOCKS) + tle.gpu.set_layout(x, TALL))
    elif CASE == 17:
        tle.gpu.set_layout(x, UNEVEN)
    elif CASE == 18:
        tle.gpu.set_layout(x, OTHER_CTAS)
    elif CASE == 19:
        tle.gpu.set_layout(x, NO_PARENT)
    elif CASE == 20:
        tle.gpu.set_layout(x, NO_MMA)
    elif CASE == 21:
        tle.gpu.set_layout(x, ENDLESS)


PADDED = tle.gpu.nv_mma_shared_layout([64, 32], [1, 0], tl.float16, fp4Padded=True)
THIN = tle.gpu.nv_mma_shared_layout.make_default([64, 8], tl.float16)
EIGHT = tle.gpu.BlockEncoding([1, 1], [1, 32], [8, 1], [1, 0])
UNEVEN = tle.gpu.BlockEncoding([1, 3], [1, 32], [4, 1], [1, 0])
OTHER_CTAS = tle.gpu.BlockEncoding([1, 1], [1, 32], [4, 1], [1, 0], cga_layout=[[1, 1]])
NO_PARENT = tle.gpu.SlicedEncoding(0, 4)
ENDLESS = tle.gpu.SlicedEncoding(0, None)
ENDLESS.parent = ENDLESS
NO_MMA = tle.gpu.MmaEncoding(4, [4, 1], [16, 8])

WRONG = [
    r"layout is of shape \[64, 32\], and the buffer of shape \[64, 64\]",
    "and dtype fp32",
    "not supported yet: a tle.gpu.nv_mma_shared_layout with fp4Padded=True",
    "needs rows of a multiple of 32 bytes",
    "`layout` of tle.gpu.alloc must be a tle.gpu.swizzled_shared_layout or",
    "`alias` of tle.gpu.alloc must be a buffered_tensor",
    "an alias of 4096 bytes from byte 2 on does not fit into the 4096 bytes",
    "`alias_offset_bytes` is 3, and must be a multiple of 2",
    "`alias_offset_bytes` of tle.gpu.alloc needs `alias`",
    "with `alias` has no `init_value`",
    "a part of a buffer can't have an alias",
    "`space` of tle.gpu.memory_space",
    "`layout` of tle.gpu.set_layout must be a tle.gpu.BlockEncoding",
    "a layout for 8 warps, where 4 run this",
    r"a layout that a tensor of shape \[64, 32\] cannot have",
    "another layout by an earlier tle.gpu.set_layout",
    "another layout by an earlier tle.gpu.set_layout",
    "has powers of two for each dimension",
    "not supported yet: `cga_layout`",
    "`parent` of a tle.gpu.SlicedEncoding",
    "is of version 2 with instr_shape",
    "a layout with more than 8 parents",
]


@pytest.mark.parametrize(("case", "message"), list(enumerate(WRONG)))
def test_errors(device, case, message):
    with pytest.raises(triton.CompilationError, match=message) as error:
        wrong[(1,)](device.array(np.zeros((64, 32), np.float32)), case)
    assert "test_layouts.py" in str(error.value) and "^" in str(error.value)


@triton.jit
def misplaced(x_ptr, OFFSET: tl.constexpr):
    whole = tle.gpu.alloc([2, 64, 64], dtype=tl.float16)
    a = tle.gpu.alloc([64, 64], dtype=tl.float16, alias=whole, alias_offset_bytes=OFFSET)
    a.store(tl.zeros([64, 64], tl.float16))
    whole.slot(0).store(tl.zeros([64, 64], tl.float16))
    b = tle.gpu.alloc([64, 64], dtype=tl.float16, init_value=tl.zeros([64, 64], tl.float16))
    tl.store(block(x_ptr, 64, 64), tle.gpu.wgmma_wait(tle.gpu.wgmma(a, b)))


def test_aliases_begin_where_products_can_read():
    x = np.zeros((64, 64), np.float32)
    assert "wgmma.mma_async" in misplaced.warmup(x, 1024, grid=(1,), target="cuda:90").asm["ptx"]
    with pytest.raises(triton.CompilationError, match="must begin at a multiple of 1024 bytes") as error:
        misplaced.warmup(x, 64, grid=(1,), target="cuda:90")
    assert "alias_offset_bytes=OFFSET" in str(error.value)
