"""`tle.gpu.alloc` and what is done with buffers: pointers into them, views, copies, atomics."""

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright import tle


@triton.jit
def grid_of(ptr, shape: tl.constexpr):
    # Pointers of a row-major tensor.
    at = tl.zeros((1,) * len(shape), tl.int32)
    for d in tl.static_range(len(shape)):
        line = tl.reshape(tl.arange(0, shape[d]), [shape[d] if k == d else 1 for k in range(len(shape))])
        at = at * shape[d] + line
    return ptr + at


@triton.jit
def through_a_buffer(x_ptr, out_ptr, SHAPE: tl.constexpr, PLAIN: tl.constexpr):
    x = tl.load(grid_of(x_ptr, SHAPE))
    smem = tle.gpu.alloc(
        SHAPE, dtype=x.dtype, layout=None, scope=tle.gpu.storage_kind.smem, nv_mma_shared_layout=not PLAIN
    )
    tl.static_assert(smem.shape == SHAPE)
    tl.store(tle.gpu.local_ptr(smem), x)
    tl.store(grid_of(out_ptr, SHAPE), tl.load(tle.gpu.local_ptr(smem)))


SHAPES = [(1,), (16,), (100,), (64, 32), (48, 80), (3, 5), (2, 3, 16), (1000,), (2, 2, 4, 8)]
DTYPES = ["int8", "uint16", "int32", "int64", "float16", "float32", "float64", "bool"]


def numbers(shape, dtype, seed=0):
    random = np.random.default_rng(seed)
    if dtype == "bool":
        return random.random(shape) < 0.5
    return random.integers(0, 100, shape).astype(dtype)


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(device, shape, plain):
    x = numbers(shape, "float32")
    out = device.array(np.zeros_like(x))
    through_a_buffer[(1,)](device.array(x), out, shape, plain)
    np.testing.assert_array_equal(device.numpy(out), x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(device, dtype):
    x = numbers((16, 24), dtype)
    out = device.array(np.zeros_like(x))
    through_a_buffer[(1,)](device.array(x), out, (16, 24), False)
    np.testing.assert_array_equal(device.numpy(out), x)


@triton.jit
def transpose_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, PLAIN: tl.constexpr):
    smem = tle.gpu.alloc([M, N], dtype=x_ptr.dtype.element_ty, nv_mma_shared_layout=not PLAIN)
    rows, columns = tl.arange(0, M), tl.arange(0, N)
    tl.store(tle.gpu.local_ptr(smem, (rows[:, None], columns[None, :])), tl.load(grid_of(x_ptr, (M, N))))
    turned = tl.load(tle.gpu.local_ptr(smem, (rows[None, :], columns[:, None])))
    tl.store(grid_of(out_ptr, (N, M)), turned)


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("shape", [(16, 32), (48, 20), (7, 64)])
def test_indices_that_broadcast(device, shape, plain):
    x = numbers(shape, "float16")
    out = device.array(np.zeros(shape[::-1], "float16"))
    transpose_kernel[(1,)](device.array(x), out, *shape, plain)
    np.testing.assert_array_equal(device.numpy(out), x.T)


@triton.jit
def slice_kernel(x_ptr, out_ptr, k, M: tl.constexpr, K: tl.constexpr, W: tl.constexpr):
    smem = tle.alloc([M, K], dtype=tl.float32, scope=tle.smem)
    tl.store(tle.local_ptr(smem), tl.load(grid_of(x_ptr, (M, K))))
    rows = tl.broadcast_to(tl.arange(0, M)[:, None], (M, W))
    columns = tl.broadcast_to(tl.arange(0, W)[None, :] + k, (M, W))
    tl.store(grid_of(out_ptr, (M, W)), tl.load(tle.local_ptr(smem, (rows, columns))))


def test_slice_at_run_time(device):
    x = numbers((16, 64), "float32")
    for k in [0, 3, 16, 48]:
        out = device.array(np.zeros((16, 16), "float32"))
        slice_kernel[(1,)](device.array(x), out, k, 16, 64, 16)
        np.testing.assert_array_equal(device.numpy(out), x[:, k : k + 16])


@triton.jit
def row_kernel(x_ptr, out_ptr, row, M: tl.constexpr, N: tl.constexpr):
    smem = tle.gpu.alloc([M, N], dtype=tl.int32)
    tl.store(tle.gpu.local_ptr(smem), tl.load(grid_of(x_ptr, (M, N))))
    line = tle.gpu.local_ptr(smem, (tl.broadcast(0, [N]), tl.arange(0, N)))
    one = tle.gpu.local_ptr(smem, (row, 3))
    tl.store(out_ptr + tl.arange(0, N), tl.load(line + row * N) + tl.load(one))


def test_pointers_are_moved_in_row_major_order(device):
    x = numbers((6, 16), "int32")
    out = device.array(np.zeros(16, "int32"))
    row_kernel[(1,)](device.array(x), out, 4, 6, 16)
    np.testing.assert_array_equal(device.numpy(out), x[4] + x[4, 3])


@triton.jit
def pointers_in_a_loop(x_ptr, out_ptr, N: tl.constexpr, B: tl.constexpr):
    smem = tle.gpu.alloc([N], dtype=tl.float32)
    tl.store(tle.gpu.local_ptr(smem), tl.load(x_ptr + tl.arange(0, N)))
    at = tle.gpu.local_ptr(smem, (tl.arange(0, B),))
    total = tl.zeros([B], tl.float32)
    for _ in range(N // B):
        total += tl.load(at)
        at += B
    tl.store(out_ptr + tl.arange(0, B), total)


def test_pointers_that_loops_carry(device):
    x = numbers((128,), "float32")
    out = device.array(np.zeros(16, "float32"))
    pointers_in_a_loop[(1,)](device.array(x), out, 128, 16)
    np.testing.assert_array_equal(device.numpy(out), x.reshape(8, 16).sum(0))


@triton.jit
def count(at, keep):
    return tl.atomic_add(at, 1, mask=keep, sem="relaxed")


@triton.jit
def histogram_kernel(x_ptr, out_ptr, n, BINS: tl.constexpr, B: tl.constexpr):
    bins = tle.gpu.alloc([BINS], dtype=tl.int32, init_value=tl.zeros([BINS], tl.int32))
    for begin in range(0, n, B):
        at = begin + tl.arange(0, B)
        x = tl.load(x_ptr + at, mask=at < n, other=0)
        count(tle.gpu.local_ptr(bins, (x,)), at < n)
    tl.store(out_ptr + tl.arange(0, BINS), tl.load(tle.gpu.local_ptr(bins)))


@pytest.mark.parametrize("num_warps", [1, 4, 8])
def test_histogram(device, num_warps):
    x = numbers((1000,), "int32") % 24
    out = device.array(np.zeros(24, "int32"))
    histogram_kernel[(1,)](device.array(x), out, 1000, 24, 256, num_warps=num_warps)
    np.testing.assert_array_equal(device.numpy(out), np.bincount(x, minlength=24))


@triton.jit
def atomics_kernel(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    cells = tle.gpu.alloc([8], dtype=tl.int32)
    tl.store(tle.gpu.local_ptr(cells), tl.where(tl.arange(0, 8) == 4, -1, 0))
    at = tl.zeros([N], tl.int32)
    tl.atomic_add(tle.gpu.local_ptr(cells, (at,)), x)
    tl.atomic_max(tle.gpu.local_ptr(cells, (at + 1,)), x)
    tl.atomic_min(tle.gpu.local_ptr(cells, (at + 2,)), -x)
    tl.atomic_or(tle.gpu.local_ptr(cells, (at + 3,)), x)
    tl.atomic_and(tle.gpu.local_ptr(cells, (at + 4,)), x | 64)
    tl.atomic_xor(tle.gpu.local_ptr(cells, (at + 5,)), x)
    old = tl.atomic_xchg(tle.gpu.local_ptr(cells, (6,)), 77)
    won = tl.atomic_cas(tle.gpu.local_ptr(cells, (7,)), 0, 5 + old)
    tl.store(out_ptr + tl.arange(0, 8), tl.load(tle.gpu.local_ptr(cells)) + won)


def test_atomics(device):
    x = numbers((64,), "int32", 3)
    out = device.array(np.zeros(8, "int32"))
    atomics_kernel[(1,)](device.array(x), out, 64)
    reduce = np.bitwise_or.reduce(x), np.bitwise_and.reduce(x | 64), np.bitwise_xor.reduce(x)
    want = [x.sum(), x.max(), -x.max(), *reduce, 77, 5]
    np.testing.assert_array_equal(device.numpy(out), want)


@triton.jit
def float_atomics_kernel(x_ptr, out_ptr, N: tl.constexpr):
    total = tle.gpu.alloc([1], dtype=x_ptr.dtype.element_ty)
    total.store(0.0)
    tl.atomic_add(tle.gpu.local_ptr(total, (tl.zeros([N], tl.int32),)), tl.load(x_ptr + tl.arange(0, N)))
    tl.store(out_ptr, tl.load(tle.gpu.local_ptr(total, (0,))))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_float_atomics(device, dtype):
    x = (numbers((32,), "int32") % 8).astype(dtype)
    out = device.array(np.zeros(1, dtype))
    float_atomics_kernel[(1,)](device.array(x), out, 32)
    assert device.numpy(out)[0] == x.sum()


@triton.jit
def fill(buffer, value):
    buffer.store(value)
    return buffer


@triton.jit
def slots_kernel(x_ptr, out_ptr, n, STAGES: tl.constexpr, N: tl.constexpr):
    smem = tle.gpu.alloc([STAGES, N], dtype=tl.float32)
    for k in range(n):
        fill(smem.slot(k % STAGES), tl.load(x_ptr + k * N + tl.arange(0, N)))
    total = tl.zeros([N], tl.float32)
    for k in tl.static_range(STAGES):
        total += smem.slot(k).load() * (k + 1)
    tl.store(out_ptr + tl.arange(0, N), total)


@pytest.mark.parametrize("stages", [2, 3])
def test_slots(device, stages):
    x = numbers((7, 32), "float32")
    out = device.array(np.zeros(32, "float32"))
    slots_kernel[(1,)](device.array(x), out, 7, stages, 32)
    last = {k % stages: x[k] for k in range(7)}
    np.testing.assert_array_equal(device.numpy(out), sum(last[k] * (k + 1) for k in range(stages)))


@triton.jit
def offsets_kernel(x_ptr, out_ptr, one_ptr, n, SHAPE: tl.constexpr, SWIZZLED: tl.constexpr):
    smem = tle.gpu.alloc(SHAPE, dtype=tl.int32, nv_mma_shared_layout=SWIZZLED)
    smem.store(tl.load(grid_of(x_ptr, SHAPE)))
    at = (tl.arange(0, 16)[:, None] * 7 + tl.arange(0, 4)[None, :] * 3) % (SHAPE[0] * SHAPE[1])
    tl.store(grid_of(out_ptr, (16, 4)), tl.load(tle.gpu.local_ptr(smem, offsets=at)))
    tl.store(one_ptr, tl.load(tle.gpu.local_ptr(smem, offsets=n)))
    line = tle.gpu.alloc([8], dtype=tl.int32, init_value=tl.arange(0, 8))
    every = tle.gpu.local_ptr(line, offsets=tl.arange(0, 8)[None, :], shape=(2, 8))
    tl.store(grid_of(one_ptr + 1, (2, 8)), tl.load(every))


@pytest.mark.parametrize(("shape", "swizzled"), [((8, 32), True), ((12, 5), False), ((96, 20), False)])
def test_offsets(device, shape, swizzled):
    x = numbers(shape, "int32")
    out, one = device.array(np.zeros((16, 4), "int32")), device.array(np.zeros(17, "int32"))
    offsets_kernel[(1,)](device.array(x), out, one, 21, shape, swizzled)
    at = (np.arange(16)[:, None] * 7 + np.arange(4) * 3) % x.size
    np.testing.assert_array_equal(device.numpy(out), x.ravel()[at])
    np.testing.assert_array_equal(device.numpy(one), [x.ravel()[21], *range(8), *range(8)])


@triton.jit
def views_kernel(x_ptr, out_ptr):
    smem = tle.gpu.alloc([8, 32], dtype=tl.int32, nv_mma_shared_layout=False)
    smem.store(tl.load(grid_of(x_ptr, (8, 32))))
    smem.subslice(16, 16).store(smem.subslice(0, 16, dim=1).load() + 1000)
    turned = smem.reshape((16, 16))
    tl.store(grid_of(out_ptr, (16, 16)), turned.load())


def test_views(device):
    x = numbers((8, 32), "int32")
    out = device.array(np.zeros((16, 16), "int32"))
    views_kernel[(1,)](device.array(x), out)
    x[:, 16:] = x[:, :16] + 1000
    np.testing.assert_array_equal(device.numpy(out), x.reshape(16, 16))


@triton.jit
def part_kernel(
    x_ptr, out_ptr, SHAPE: tl.constexpr, PART: tl.constexpr, BEGIN: tl.constexpr, DIM: tl.constexpr, DOT: tl.constexpr,
):  # fmt: skip
    desc = tl.make_tensor_descriptor(x_ptr, PART, [PART[1], 1], PART)
    smem = tle.gpu.alloc(SHAPE, dtype=x_ptr.dtype.element_ty)
    smem.store(tl.zeros(SHAPE, x_ptr.dtype.element_ty))
    part = smem.subslice(BEGIN, PART[DIM], dim=DIM)
    tle.gpu.copy(desc, part, PART, [0, 0])
    part.store(part.load() + 1)
    if DOT:
        tl.store(grid_of(out_ptr, SHAPE), tl.dot(smem.load(), smem.load().T).to(tl.float16))
    else:
        tl.store(grid_of(out_ptr, SHAPE), smem.load())


@pytest.mark.parametrize(
    ("shape", "part", "begin", "dim", "dot"),
    [
        ((32, 64), (8, 64), 4, 0, False),
        ((32, 64), (32, 32), 16, 1, False),
        ((24, 16), (16, 16), 8, 0, False),
        ((32, 16), (4, 16), 7, 0, False),
        ((32, 32), (16, 32), 8, 0, True),
    ],
)
def test_parts_begin_anywhere(device, shape, part, begin, dim, dot):
    x = np.random.default_rng(0).integers(-3, 4, part).astype(np.float16)
    out = device.array(np.zeros(shape, np.float16))
    part_kernel[(1,)](device.array(x), out, shape, part, begin, dim, dot)
    want = np.zeros(shape, np.float16)
    np.moveaxis(want, dim, 0)[begin : begin + part[dim]] = np.moveaxis(x + 1, dim, 0)
    np.testing.assert_array_equal(device.numpy(out), want @ want.T if dot else want)


@triton.jit
def one_element_kernel(out_ptr):
    cell = tle.gpu.alloc([], dtype=tl.int32)
    tl.store(tle.gpu.local_ptr(cell), 41)
    tl.store(out_ptr, tl.load(tle.gpu.local_ptr(cell)) + 1)


def test_one_element(device):
    out = device.array(np.zeros(1, "int32"))
    one_element_kernel[(1,)](out)
    assert device.numpy(out)[0] == 42


@triton.jit
def dot_kernel(
    a_ptr, b_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, TRANSPOSE: tl.constexpr
):
    a = tle.gpu.alloc([M, K], dtype=tl.float16)
    b = tle.gpu.alloc([N, K] if TRANSPOSE else [K, N], dtype=tl.float16)
    tle.gpu.copy(grid_of(a_ptr, (M, K)), a, [M, K])
    tle.gpu.copy(grid_of(b_ptr, b.shape), b, b.shape)
    right = tl.trans(b.load()) if TRANSPOSE else b.load()
    tl.store(grid_of(out_ptr, (M, N)), tl.dot(a.load(), right))


@pytest.mark.parametrize("transpose", [False, True])
def test_dot_of_buffers(device, transpose):
    a, b = numbers((32, 64), "float16"), numbers((64, 48), "float16")
    out = device.array(np.zeros((32, 48), "float32"))
    given = np.ascontiguousarray(b.T) if transpose else b
    dot_kernel[(1,)](device.array(a), device.array(given), out, 32, 48, 64, transpose)
    np.testing.assert_array_equal(device.numpy(out), a.astype("float32") @ b.astype("float32"))


@triton.jit
def tail_kernel(x_ptr, out_ptr, m, n, M: tl.constexpr, N: tl.constexpr):
    smem = tle.gpu.alloc([M, N], dtype=tl.int32, init_value=tl.full([M, N], -1, tl.int32))
    tle.gpu.copy(grid_of(x_ptr, (M, N)), smem, [m, n], mask=tl.arange(0, N)[None, :] != 1)
    tl.store(grid_of(out_ptr, (M, N)), smem.load())
    tle.gpu.copy(smem, grid_of(x_ptr, (M, N)), [m, N], mask=tl.arange(0, N)[None, :] > 3)


def test_copy_of_a_part(device):
    x = numbers((8, 16), "int32")
    given, out = device.array(x), device.array(np.zeros((8, 16), "int32"))
    tail_kernel[(1,)](given, out, 5, 11, 8, 16)
    want = np.full_like(x, -1)
    want[:5, :11] = x[:5, :11]
    want[:5, 1] = 0
    np.testing.assert_array_equal(device.numpy(out), want)
    back = x.copy()
    back[:5, 4:] = want[:5, 4:]
    np.testing.assert_array_equal(device.numpy(given), back)


@triton.jit
def there_and_back(x_ptr, out_ptr, rows, columns, M: tl.constexpr, N: tl.constexpr):
    buffer = tle.gpu.alloc([M, N], dtype=tl.float32)
    tle.gpu.copy(grid_of(x_ptr, (M, N)), buffer, [rows, columns])
    tle.gpu.copy(buffer, grid_of(out_ptr, (M, N)), [rows, columns - 1])


def test_what_is_not_copied_is_not_read(device):
    x = numbers((8, 20), "float32")
    out = device.array(np.zeros((8, 20), "float32"))
    there_and_back[(1,)](device.array(x), out, 5, 19, 8, 20)
    want = np.zeros_like(x)
    want[:5, :18] = x[:5, :18]
    np.testing.assert_array_equal(device.numpy(out), want)


@triton.jit
def small_block_kernel(x_ptr, out_ptr):
    smem = tle.gpu.alloc([8, 32], dtype=tl.float32, init_value=tl.zeros([8, 32], tl.float32))
    tle.gpu.copy(grid_of(x_ptr, (4, 16)), smem, [4, 16])
    tl.store(grid_of(out_ptr, (8, 32)), smem.load())


def test_copy_of_a_smaller_block(device):
    x = numbers((4, 16), "float32")
    out = device.array(np.zeros((8, 32), "float32"))
    small_block_kernel[(1,)](device.array(x), out)
    want = np.zeros((8, 32))
    want[:4, :16] = x
    np.testing.assert_array_equal(device.numpy(out), want)


@triton.jit
def descriptor_kernel(x_ptr, out_ptr, m, n, M: tl.constexpr, N: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [m, n], [n, 1], [M, N])
    out = tl.make_tensor_descriptor(out_ptr, [m, n], [n, 1], [M, N])
    smem = tle.gpu.alloc([M, N], dtype=tl.float16)
    tle.gpu.copy(x, smem, [M, N], offsets=[0, 16])
    tle.gpu.copy(smem, out, [M, N], [8, 0])


def test_copy_through_descriptors(device):
    x = numbers((24, 48), "float16")
    out = device.array(np.zeros((24, 48), "float16"))
    descriptor_kernel[(1,)](device.array(x), out, 24, 48, 16, 64)
    want = np.zeros_like(x)
    want[8:, :32] = x[:16, 16:]
    np.testing.assert_array_equal(device.numpy(out), want)


@triton.jit
def scratch_kernel(x_ptr, out_ptr, N: tl.constexpr):
    # What the compiler needs for itself lies elsewhere.
    smem = tle.gpu.alloc([N], dtype=tl.float32)
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(tle.gpu.local_ptr(smem), x)
    total = tl.sum(x) + tl.max(tl.cumsum(x))
    places = tl.sort(x)
    tl.store(out_ptr + tl.arange(0, N), tl.load(tle.gpu.local_ptr(smem)) + total + places)


def test_scratch_lies_elsewhere(device):
    x = numbers((256,), "float32")
    out = device.array(np.zeros(256, "float32"))
    scratch_kernel[(1,)](device.array(x), out, 256)
    np.testing.assert_array_equal(device.numpy(out), x + x.sum() + x.cumsum().max() + np.sort(x))


@triton.jit(noinline=True)
def turned_by_call(x_ptr, out_ptr, N: tl.constexpr):
    # A function that is called has memory of its own.
    smem = tle.gpu.alloc([N], dtype=tl.float32)
    smem.store(tl.load(x_ptr + tl.arange(0, N)))
    tl.store(out_ptr + tl.arange(0, N), tl.load(tle.gpu.local_ptr(smem, (N - 1 - tl.arange(0, N),))))


@triton.jit(noinline=True)
def sum_of(buffer):
    return tl.sum(buffer.load())


@triton.jit
def calls_kernel(x_ptr, out_ptr, N: tl.constexpr):
    smem = tle.gpu.alloc([N], dtype=tl.float32)
    smem.store(tl.load(x_ptr + tl.arange(0, N)))
    turned_by_call(x_ptr, out_ptr, N)
    tl.store(out_ptr + N, sum_of(smem))


def test_functions_that_are_called(device):
    x = numbers((64,), "float32")
    out = device.array(np.zeros(65, "float32"))
    calls_kernel[(1,)](device.array(x), out, 64)
    np.testing.assert_array_equal(device.numpy(out), [*x[::-1], x.sum()])


@triton.jit
def early_names_kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    a = tle.alloc([B], dtype=tl.float32, layout=None, scope=tle.smem, nv_mma_shared_layout=False)
    b = tle.alloc([B], dtype=tl.float32, layout=None, scope=tle.smem)
    for begin in tle.gpu.pipeline(0, n, B, num_stages=2):
        tle.copy(x_ptr + begin + tl.arange(0, B), a, [B])
        tle.local_store(b, tle.local_load(a) * 2)
        tle.copy(b, out_ptr + begin + tl.arange(0, B), [B])


def test_early_names(device):
    x = numbers((256,), "float32")
    out = device.array(np.zeros(256, "float32"))
    early_names_kernel[(1,)](device.array(x), out, 256, 64)
    np.testing.assert_array_equal(device.numpy(out), x * 2)


SWIZZLED = tle.gpu.swizzled_shared_layout(8, 1, 8, [1, 0])
COLUMNS = tle.gpu.swizzled_shared_layout.make_default(2).make_permute([1, 0])


@triton.jit
def layout_kernel(x_ptr, out_ptr, LAYOUT: tl.constexpr):
    smem = tle.gpu.alloc([32, 64], dtype=tl.float16, layout=LAYOUT)
    smem.store(tl.load(grid_of(x_ptr, (32, 64))))
    rows, columns = tl.arange(0, 32), tl.arange(0, 64)
    turned = tl.load(tle.gpu.local_ptr(smem, (rows[None, :], columns[:, None])))
    tl.store(grid_of(out_ptr, (64, 32)), turned + tl.trans(smem.load()))


@pytest.mark.parametrize("layout", [None, SWIZZLED, COLUMNS])
def test_layouts(device, layout):
    x = numbers((32, 64), "float16")
    out = device.array(np.zeros((64, 32), "float16"))
    layout_kernel[(1,)](device.array(x), out, layout)
    np.testing.assert_array_equal(device.numpy(out), 2 * x.T)


def test_layouts_are_those_of_triton():
    layout = tle.gpu.swizzled_shared_layout.make_default(3)
    assert (layout.vectorSize, layout.perPhase, layout.maxPhase, layout.order) == (1, 1, 1, [2, 1, 0])
    assert layout.make_permute([1, 0, 2]).order == (1, 2, 0)


@triton.jit
def moved_in_a_swizzle(x_ptr):
    smem = tle.gpu.alloc([32, 64], dtype=tl.float16, layout=SWIZZLED)
    at = tle.gpu.local_ptr(smem, (tl.arange(0, 32), 0)) + 1
    tl.store(x_ptr + tl.arange(0, 32), tl.load(at))


def test_pointers_are_not_moved_in_a_swizzle(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "ptxsim")
    with pytest.raises(triton.CompilationError, match="not row-major") as caught:
        moved_in_a_swizzle[(1,)](np.zeros(32, np.float16))
    assert "(tl.arange(0, 32), 0)) + 1" in str(caught.value)


@triton.jit
def swapped_kernel(x_ptr, out_ptr, n, B: tl.constexpr):
    a, b = tle.gpu.alloc([B], tl.float32), tle.gpu.alloc([B], tl.float32)
    at = tl.arange(0, B)
    a.store(tl.load(x_ptr + at))
    b.store(tl.load(x_ptr + B + at))
    for _ in range(n):
        a.store(a.load() + 1)
        a, b = b, a
    tl.store(out_ptr + at, a.load())
    tl.store(out_ptr + B + at, b.load())


@pytest.mark.parametrize("n", [0, 3, 4])
def test_loops_exchange_buffers(device, n):
    x = numbers((128,), "float32")
    out = device.array(np.zeros(128, "float32"))
    swapped_kernel[(1,)](device.array(x), out, n, 64)
    a, b = x[:64].copy(), x[64:].copy()
    for _ in range(n):
        a, b = b, a + 1
    np.testing.assert_array_equal(device.numpy(out), np.concatenate([a, b]))


@triton.jit
def branches_kernel(x_ptr, out_ptr, first, B: tl.constexpr):
    a, b = tle.gpu.alloc([B], tl.float32), tle.gpu.alloc([B], tl.float32)
    at = tl.arange(0, B)
    a.store(tl.load(x_ptr + at))
    b.store(tl.load(x_ptr + at) * 2)
    if first > 0:
        one = a
        place = tle.gpu.local_ptr(a, (at,))
    else:
        one = b
        place = tle.gpu.local_ptr(b, (B - 1 - at,))
    tl.store(place, tl.load(place) + 100)
    tl.store(out_ptr + at, one.load())
    tl.store(out_ptr + B + at, a.load() + b.load())


@pytest.mark.parametrize("first", [0, 1])
def test_branches_choose_buffers(device, first):
    x = numbers((64,), "float32")
    out = device.array(np.zeros(128, "float32"))
    branches_kernel[(1,)](device.array(x), out, first, 64)
    want = [*(x * (1 if first else 2) + 100), *(x * 3 + 100)]
    np.testing.assert_array_equal(device.numpy(out), want)


@triton.jit
def beside_a_dot_kernel(
    a_ptr, b_ptr, c_ptr, sums_ptr, K, M: tl.constexpr, N: tl.constexpr, BLOCK: tl.constexpr
):
    m, n, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, BLOCK)
    sums = tle.gpu.alloc([BLOCK], tl.float32, init_value=tl.zeros([BLOCK], tl.float32))
    line = tle.gpu.alloc([BLOCK], tl.float32)
    through = tle.gpu.alloc([M, BLOCK], tl.float16)
    acc = tl.zeros([M, N], tl.float32)
    for first in range(0, K, BLOCK):
        a = tl.load(a_ptr + m * K + first + k[None, :])
        b = tl.load(b_ptr + (first + k[:, None]) * N + n)
        line.store(tl.sum(a.to(tl.float32), 0))
        turned = tl.load(tle.gpu.local_ptr(line, (BLOCK - 1 - k,)))
        sums.store(sums.load() + turned * (1 + first // BLOCK))
        through.store(a)
        acc = tl.dot(a, b, acc)
        acc = tl.dot(tl.load(tle.gpu.local_ptr(through, (m, k[None, :]))), b, acc)
    tl.store(c_ptr + m * N + n, acc)
    tl.store(sums_ptr + k, sums.load())


@pytest.mark.parametrize("num_stages", [1, 3])
def test_pipelined_loops(device, num_stages):
    random = np.random.default_rng(5)
    a, b = (random.integers(-2, 3, shape).astype(np.float16) for shape in ((64, 128), (128, 64)))
    c, sums = device.array(np.zeros((64, 64), "float32")), device.array(np.zeros(32, "float32"))
    beside_a_dot_kernel[(1,)](
        device.array(a), device.array(b), c, sums, 128, 64, 64, 32, num_stages=num_stages
    )
    np.testing.assert_array_equal(device.numpy(c), 2 * (a.astype("float32") @ b.astype("float32")))
    lines = a.astype("float32").sum(0).reshape(4, 32)[:, ::-1]
    np.testing.assert_array_equal(device.numpy(sums), sum(lines[i] * (i + 1) for i in range(4)))


@triton.jit
def anew(out, wide, N: tl.constexpr):
    at = tl.arange(0, N)
    long = at.to(tl.int64)
    tl.store(out + tle.gpu.rematerialize_index(at), tle.gpu.rematerialize_index(at) + at)
    place = tle.gpu.rematerialize_index(tl.program_id(0).to(tl.int64))
    tl.store(wide + long, tle.gpu.rematerialize_index(long) * 3 + place)


def test_indices_made_anew(device):
    out, wide = device.zeros(64, np.int32), device.zeros(64, np.int64)
    anew[(1,)](out, wide, 64)
    np.testing.assert_array_equal(device.numpy(out), 2 * np.arange(64))
    np.testing.assert_array_equal(device.numpy(wide), 3 * np.arange(64))


@triton.jit
def anew_float(out):
    tl.store(out, tle.gpu.rematerialize_index(1.5))


def test_only_integers_are_made_anew(device):
    with pytest.raises(triton.CompilationError, match="takes integers of 16, 32 or 64 bits"):
        anew_float[(1,)](device.zeros(1, np.float32))
