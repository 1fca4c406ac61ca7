"""Tensor descriptors, made by the kernel and by the host: blocks that lie inside, across and outside of a tensor."""

import ml_dtypes
import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def copy_made(
    x_ptr, y_ptr, m, n, stride, i, j, STEP: tl.constexpr, M: tl.constexpr, N: tl.constexpr, PAD: tl.constexpr
):  # fmt: skip
    """The block at row i, column j · STEP. TMA serves it if STEP columns are known to be a multiple of 16 bytes."""
    x = tl.make_tensor_descriptor(x_ptr, [m, n], [stride, 1], [M, N], padding_option=PAD)
    y = tl.make_tensor_descriptor(y_ptr, [M, N], [N, 1], [M, N])
    y.store([0, 0], x.load([i, j * STEP]))


@triton.jit
def copy_given(x, y, i, j, STEP: tl.constexpr):
    y.store([0, 0], x.load([i, j * STEP]))


def window(x, i, j, M, N, outside):
    """What a block at (i, j) reads."""
    out = np.full((M, N), outside, x.dtype)
    for a in range(M):
        for b in range(N):
            if 0 <= i + a < x.shape[0] and 0 <= j + b < x.shape[1]:
                out[a, b] = x[i + a, j + b]
    return out


PLACES = [(0, 0), (8, 16), (32, 40), (-4, -8), (64, 0), (0, 72)]


@pytest.mark.parametrize("block", [(16, 16), (8, 24), (1, 32)])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("host", [False, True])
@pytest.mark.parametrize("step", [1, 8])
def test_blocks_anywhere(device, block, place, host, step):
    (M, N), (i, j) = block, place
    x = np.random.default_rng(0).standard_normal((40, 56)).astype(np.float16)
    X, Y = device.array(x), device.empty((M, N), np.float16)
    if host:
        copy_given[(1,)](
            TensorDescriptor.from_tensor(X, [M, N]),
            TensorDescriptor.from_tensor(Y, [M, N]),
            i,
            j // step,
            step,
        )
    else:
        copy_made[(1,)](X, Y, 40, 56, 56, i, j // step, step, M, N, "zero")
    np.testing.assert_array_equal(device.numpy(Y), window(x, i, j, M, N, 0))


@triton.jit
def copy_computed(x_ptr, y_ptr, batch, heads, n, PER: tl.constexpr, OWN: tl.constexpr, N: tl.constexpr):
    """Extents and strides that are computed from arguments, as attention does."""
    if OWN:
        x_ptr += tl.program_id(0) * 8
    rows = batch * heads * n - PER
    x = tl.make_tensor_descriptor(
        x_ptr, [rows, N], [N * (heads + 1 - heads), 1], [8, N], padding_option="nan"
    )
    y = tl.make_tensor_descriptor(y_ptr, [batch * heads * n, N], [N, 1], [8, N])
    for i in range(0, batch * heads * n, 8):
        y.store([i, 0], x.load([i, 0]))


@pytest.mark.parametrize("own", [False, True])
def test_maps_from_arguments(device, own):
    """Those that the launch makes, and those that programs make for themselves."""
    for batch, heads, n, less in ((2, 3, 16, 3), (1, 3, 16, 0), (1, 1, 8, 5), (2, 3, 16, 3), (0, 3, 16, 0)):
        rows = batch * heads * n
        x = np.random.default_rng(rows).standard_normal((max(rows, 1), 32)).astype(np.float16)
        X, Y = device.array(x), device.empty((max(rows, 1), 32), np.float16)
        copy_computed[(1,)](X, Y, batch, heads, n, less, own, 32)
        want = x[:rows].copy()
        want[rows - less :] = np.nan
        np.testing.assert_array_equal(device.numpy(Y)[:rows], want[:rows])


def test_who_makes_maps():
    x = np.zeros((96, 32), np.float16)
    for own in (False, True):
        compiled = copy_computed.warmup(x, x, 2, 3, 16, 3, own, 32, grid=(1,), target="cuda:90")
        # The second is from what the launch knows, whoever makes the first.
        assert compiled.asm["ptx"].count("tensormap.cp_fenceproxy") == own
        assert [param["made"] for param in compiled.metadata.tensor_maps] == [True] * (2 - own)
        assert compiled.metadata.global_scratch_size == 256


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32])
@pytest.mark.parametrize("host", [False, True])
def test_nan_padding(device, dtype, host):
    x = np.random.default_rng(1).standard_normal((20, 24)).astype(dtype)
    X, Y = device.array(x), device.zeros((16, 16), dtype)
    if host:
        given = TensorDescriptor.from_tensor(X, [16, 16], padding="nan")
        copy_given[(1,)](given, TensorDescriptor.from_tensor(Y, [16, 16]), 8, 2, 8)
    else:
        copy_made[(1,)](X, Y, 20, 24, 24, 8, 2, 8, 16, 16, "nan")
    want = window(x, 8, 16, 16, 16, np.nan).astype(np.float32)
    assert np.isnan(want).any()
    np.testing.assert_array_equal(device.numpy(Y).astype(np.float32), want)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("step", [1, 16])
def test_dtypes(device, dtype, step):
    x = np.random.default_rng(2).integers(-100, 100, (16, 48)).astype(dtype)
    column = 32 if step == 16 else 37
    X, Y = device.array(x), device.empty((8, 32), dtype)
    given = [TensorDescriptor.from_tensor(array, [8, 32]) for array in (X, Y)]
    copy_given[(1,)](*given, 12, column // step, step)
    np.testing.assert_array_equal(device.numpy(Y), window(x, 12, column, 8, 32, 0))


def test_host_and_made_in_one_loop(device):
    """The strides of a part of a matrix; blocks in a loop; the extents are read in the kernel."""

    @triton.jit
    def kernel(src, out_ptr, M: tl.constexpr, N: tl.constexpr):
        rows = src.shape[0]
        out = tl.make_tensor_descriptor(out_ptr, [rows, N], [N, 1], [M, N])
        for row in tl.range(0, rows, M):
            total = tl.zeros([M, N], dtype=tl.float32)
            for column in range(0, src.shape[1], N):
                total += src.load([row, column])
            out.store([row, 0], total.to(src.dtype) + src.strides[0].to(tl.float32))

    whole = np.random.default_rng(3).standard_normal((37, 128)).astype(np.float32)
    part = whole[:, :100]
    X = device.array(whole)[:, :100]
    out = device.empty((37, 32), np.float32)
    kernel[(1,)](TensorDescriptor.from_tensor(X, [16, 32]), out, 16, 32)
    padded = np.zeros((37, 128), np.float32)
    padded[:, :100] = part
    np.testing.assert_allclose(
        device.numpy(out), padded.reshape(37, 4, 32).sum(1) + 128, rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_ranks(device, rank):
    @triton.jit
    def kernel(x, y, RANK: tl.constexpr):
        if RANK == 1:
            y.store([0], x.load([8]))
        elif RANK == 2:
            y.store([0, 0], x.load([1, 8]))
        elif RANK == 3:
            y.store([0, 0, 0], x.load([1, 1, 8]))
        elif RANK == 4:
            y.store([0, 0, 0, 0], x.load([1, 1, 1, 8]))
        else:
            y.store([0, 0, 0, 0, 0], x.load([1, 1, 1, 1, 8]))

    shape, block = [3] * (rank - 1) + [20], [2] * (rank - 1) + [16]
    x = np.random.default_rng(4).standard_normal(shape).astype(np.float32)
    X, Y = device.array(x), device.empty(block, np.float32)
    kernel[(1,)](TensorDescriptor.from_tensor(X, block), TensorDescriptor.from_tensor(Y, block), rank)
    want = np.zeros(block, np.float32)
    want[..., :12] = x[tuple([slice(1, 3)] * (rank - 1))][..., 8:20]
    np.testing.assert_array_equal(device.numpy(Y), want)


def test_stores_stay_inside(device):
    @triton.jit
    def kernel(y, i, j):
        y.store([i, j], tl.full([16, 16], 1.0, tl.float32))

    for i, j in [(12, 8), (-3, -4), (30, 0), (0, 24)]:
        # The tensor is the upper left of a larger array, which must not be touched elsewhere.
        whole = device.zeros((32, 32), np.float32)
        kernel[(1,)](TensorDescriptor(whole, [20, 20], [32, 1], [16, 16]), i, j)
        want = np.zeros((32, 32), np.float32)
        want[max(i, 0) : min(i + 16, 20), max(j, 0) : min(j + 16, 20)] = 1
        np.testing.assert_array_equal(device.numpy(whole), want)


@triton.jit
def fill_given(y):
    y.store([0, 0], tl.full([16, 32], 1.0, tl.float16))
    y.atomic_add([0, 0], tl.full([16, 32], 1.0, tl.float16))


@triton.jit
def fill_made(y_ptr, columns):
    fill_given(tl.make_tensor_descriptor(y_ptr, [16, columns], [40, 1], [16, 32]))


@pytest.mark.parametrize("host", [False, True])
@pytest.mark.parametrize("columns", [29, 24, 16])
def test_stores_end_where_rows_end(device, columns, host):
    """The tensor memory accelerator would go on to the end of a piece of 16 bytes."""
    whole = device.zeros((16, 40), np.float16)
    if host:
        fill_given[(1,)](TensorDescriptor(whole, [16, columns], [40, 1], [16, 32]))
    else:
        fill_made[(1,)](whole, columns)
    want = np.zeros((16, 40), np.float16)
    want[:, :columns] = 2
    np.testing.assert_array_equal(device.numpy(whole), want)


REDUCTIONS = [
    (op, t) for op in ("add", "min", "max", "and", "or", "xor") for t in (np.int32, np.uint32, np.int64)
]


@pytest.mark.parametrize("op,dtype", [*REDUCTIONS, ("add", np.float32), ("add", np.float16)])
def test_reductions(device, op, dtype):
    @triton.jit
    def kernel(x, y_ptr, n, OP: tl.constexpr):
        y = tl.make_tensor_descriptor(y_ptr, [n, 16], [16, 1], [8, 16])
        value = x.load([0, 0])
        if OP == "add":
            y.atomic_add([4, 0], value)
        elif OP == "min":
            y.atomic_min([4, 0], value)
        elif OP == "max":
            y.atomic_max([4, 0], value)
        elif OP == "and":
            y.atomic_and([4, 0], value)
        elif OP == "or":
            y.atomic_or([4, 0], value)
        else:
            y.atomic_xor([4, 0], value)

    rng = np.random.default_rng(5)
    low = 0 if np.dtype(dtype).kind == "u" else -1000
    x, y = (rng.integers(low, 1000, (r, 16)).astype(dtype) for r in (8, 12))
    if np.dtype(dtype).kind == "u":
        x[0] = 2**32 - 5  # larger than all, unless taken for signed
    Y = device.array(y.copy())
    kernel[(2,)](TensorDescriptor.from_tensor(device.array(x), [8, 16]), Y, 10, op)
    want = y.copy()
    function = {
        "add": np.add,
        "min": np.minimum,
        "max": np.maximum,
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
    }[op]
    for _ in range(2):  # two programs
        want[4:10] = function(want[4:10], x[:6])
    np.testing.assert_array_equal(device.numpy(Y), want)


def test_gather_and_scatter(device):
    @triton.jit
    def kernel(x, rows_ptr, y_ptr, m, R: tl.constexpr):
        rows = tl.load(rows_ptr + tl.arange(0, R))
        got = x.gather(rows, 16)
        y = tl.make_tensor_descriptor(y_ptr, [m, 40], [40, 1], [1, 32])
        y.scatter(got + 1.0, rows, 24)

    x = np.random.default_rng(6).standard_normal((20, 40)).astype(np.float16)
    rows = np.array([3, 19, 0, 7, 20, 11, 5, 1], np.int32)  # 20 is outside
    y = np.zeros((20, 40), np.float16)
    Y = device.array(y)
    kernel[(1,)](TensorDescriptor.from_tensor(device.array(x), [1, 32]), device.array(rows), Y, 20, 8)
    for r in rows[rows < 20]:
        y[r, 24:40] = (x[r, 16:32].astype(np.float32) + 1).astype(np.float16)
    np.testing.assert_array_equal(device.numpy(Y), y)


def test_functions_and_control_flow(device):
    """Descriptors as arguments of functions, chosen by a condition at run time and carried by loops."""

    @triton.jit
    def first_half(desc, row):
        return desc.load([row, 0]) * 2

    @triton.jit
    def kernel(x, y, out_ptr, which, times, N: tl.constexpr):
        chosen = x
        if which > 0:
            chosen = y
        total = tl.zeros([8, N], tl.float32)
        i = 0
        while i < times:
            total += first_half(chosen, i)
            if i == 1:
                chosen = x
            i += 1
        for k in range(times):
            total += chosen.load([k, 0])
            chosen = y
        tl.store(out_ptr + tl.arange(0, 8)[:, None] * N + tl.arange(0, N)[None, :], total)

    rng = np.random.default_rng(7)
    x, y = (rng.integers(-8, 8, (n, 16)).astype(np.float32) for n in (9, 12))
    load = lambda a, i: window(a, i, 0, 8, 16, 0)
    for which in (0, 1):
        out = device.empty((8, 16), np.float32)
        X, Y = (TensorDescriptor.from_tensor(device.array(v), [8, 16]) for v in (x, y))
        kernel[(1,)](X, Y, out, which, 4, 16)
        chosen, want = (y if which else x), 0
        for i in range(4):
            want = want + 2 * load(chosen, i)
            if i == 1:
                chosen = x
        for k in range(4):
            want = want + load(chosen, k)
            chosen = y
        np.testing.assert_array_equal(device.numpy(out), want)


@pytest.mark.parametrize("k, pitch", [(64, 72), (64, 66), (40, 40)])
def test_made_in_loops(device, k, pitch):
    """Beside one made in front of the loops, of a matrix with another pitch: Intel's messages may take one and not the other."""

    @triton.jit
    def kernel(a_ptr, b_ptr, out_ptr, times, K, pitch, M: tl.constexpr, N: tl.constexpr, BLOCK: tl.constexpr):
        b = tl.make_tensor_descriptor(b_ptr, [K, N], [N, 1], [BLOCK, N])
        acc = tl.zeros((M, N), tl.float32)
        for t in range(times):
            a = tl.make_tensor_descriptor(a_ptr + t * M * pitch, [M, K], [pitch, 1], [M, BLOCK])
            for at in range(0, K, BLOCK):
                acc = tl.dot(a.load([0, at]), b.load([at, 0]), acc)
        for at in range(0, K, BLOCK):
            a = tl.make_tensor_descriptor(a_ptr + at, [M, K - at], [pitch, 1], [M, BLOCK])
            acc = tl.dot(a.load([0, 0]), b.load([at, 0]), acc)
        tl.store(out_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], acc)

    rng = np.random.default_rng(8)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((2, 16, pitch), (k, 32)))
    out = device.empty((16, 32), np.float32)
    kernel[(1,)](device.array(a), device.array(b), out, 2, k, pitch, 16, 32, 32)
    x = a[:, :, :k].astype(np.float32)
    np.testing.assert_array_equal(device.numpy(out), (2 * x[0] + x[1]) @ b.astype(np.float32))


def test_attributes(device):
    @triton.jit
    def kernel(x: tl.tensor_descriptor, out_ptr):
        tl.static_assert(x.dtype == tl.float16)
        tl.static_assert(x.block_shape[0] == 8 and x.block_shape[1] == 16)
        tl.static_assert(x.block_type.element_ty == tl.float16)
        block = tl.load_tensor_descriptor(x, [0, 0])
        tl.static_assert(block.shape == x.block_shape)
        tl.store_tensor_descriptor(x, [8, 0], block)
        tl.store(out_ptr, x.shape[0])
        tl.store(out_ptr + 1, x.shape[1])
        tl.store(out_ptr + 2, x.strides[0].to(tl.int32))
        tl.store(out_ptr + 3, x.strides[1].to(tl.int32))

    x = np.random.default_rng(8).standard_normal((21, 24)).astype(np.float16)
    X, out = device.array(x), device.empty(4, np.int32)
    kernel[(1,)](TensorDescriptor.from_tensor(X, [8, 16]), out)
    assert device.numpy(out).tolist() == [21, 24, 24, 1]
    x[8:16, :16] = x[:8, :16]
    np.testing.assert_array_equal(device.numpy(X), x)


def test_a_changed_block_is_another_kernel(device):
    """Autotuning sets `block_shape` before it launches."""

    @triton.jit
    def kernel(x, out_ptr):
        block = x.load([0, 0])
        i, j = tl.arange(0, block.shape[0]), tl.arange(0, block.shape[1])
        tl.store(out_ptr + i[:, None] * block.shape[1] + j[None, :], block)

    x = np.arange(32 * 32, dtype=np.float32).reshape(32, 32)
    X = device.array(x)
    given = TensorDescriptor.from_tensor(X, [1, 4])
    for block in ([8, 16], [16, 8], [24, 8]):
        given.block_shape = block
        out = device.empty(block, np.float32)
        kernel[(1,)](given, out)
        np.testing.assert_array_equal(device.numpy(out), x[: block[0], : block[1]])


def test_matmul_of_odd_blocks(device):
    """Blocks of three times a power of two, and dots of what descriptors load."""

    @triton.jit
    def kernel(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
        m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
        acc = tl.zeros([BM, BN], tl.float32)
        for k in tl.range(0, K, BK):
            acc = tl.dot(a.load([m, k]), b.load([k, n]), acc)
        c.store([m, n], acc.to(tl.float16))

    M, N, K = 100, 104, 72
    rng = np.random.default_rng(9)
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((M, K), (K, N)))
    C = device.empty((M, N), np.float16)
    BM, BN, BK = 64, 48, 32
    descs = [(device.array(a), [BM, BK]), (device.array(b), [BK, BN]), (C, [BM, BN])]
    kernel[(2, 3)](*(TensorDescriptor.from_tensor(x, block) for x, block in descs), K, BM, BN, BK)
    np.testing.assert_allclose(
        device.numpy(C), a.astype(np.float32) @ b.astype(np.float32), rtol=1e-2, atol=2e-2
    )


def wrong(message):
    return pytest.raises(ValueError, match=message)


def test_the_host_checks_descriptors():
    x = np.zeros((32, 40), np.float32)
    with wrong("last stride .* is 40"):
        TensorDescriptor.from_tensor(x.T, [8, 8])
    with wrong("has a stride of 10 elements, 40 bytes"):
        TensorDescriptor(x, [4, 10], [10, 1], [4, 8])
    with wrong("2 extents, 2 strides and 1 block"):
        TensorDescriptor.from_tensor(x, [8])
    with wrong("has a stride of -40 elements, -160 bytes"):
        TensorDescriptor(x, [8, 8], [-40, 1], [8, 8])
    for far in 1 << 38, 1 << 62:
        with wrong(f"has a stride of {far} elements"):
            TensorDescriptor(x, [1, 8], [far, 1], [8, 8])
    with wrong("aligned to 16 bytes"):
        TensorDescriptor(x.reshape(-1)[1:], [8, 8], [40, 1], [8, 8])
    with wrong("padding"):
        TensorDescriptor.from_tensor(x, [8, 8], padding="one")
    with wrong("NaN"):
        TensorDescriptor.from_tensor(x.astype(np.int32), [8, 8], padding="nan")
    with wrong("extent of 0"):
        TensorDescriptor(x, [0, 8], [40, 1], [8, 8])
    with pytest.raises(TypeError, match="no array"):
        TensorDescriptor("x", [8, 8], [8, 1], [8, 8])


def test_the_block_of_a_descriptor_may_be_set_until_the_launch(device):
    """Hooks of configurations set it; what stands there before may be too small."""

    @triton.jit
    def kernel(desc, out):
        i, j = tl.arange(0, 4), tl.arange(0, 8)
        tl.store(out + i[:, None] * 8 + j[None, :], desc.load([0, 0]))

    x, out = device.array(np.arange(256, dtype=np.float32).reshape(8, 32)), device.zeros((4, 8), np.float32)
    desc = TensorDescriptor.from_tensor(x, [1, 1])
    with wrong(r"the block of argument 'desc' is \[1, 1\]"):
        kernel[(1,)](desc, out)
    desc.block_shape = [4, 8]
    kernel[(1,)](desc, out)
    np.testing.assert_array_equal(device.numpy(out), device.numpy(x)[:4, :8])


def test_the_compiler_checks_descriptors(device):
    def fails(message, body, *args):
        with pytest.raises(triton.CompilationError, match=message):
            body[(1,)](device.zeros((32, 32), np.float32), *args)

    @triton.jit
    def last_stride(x_ptr, n):
        tl.make_tensor_descriptor(x_ptr, [32, 32], [32, n], [8, 8])

    @triton.jit
    def few_bytes(x_ptr):
        tl.make_tensor_descriptor(x_ptr, [32, 32], [32, 1], [8, 2])

    @triton.jit
    def rank(x_ptr):
        tl.make_tensor_descriptor(x_ptr, [32], [32, 1], [8, 8])

    @triton.jit
    def offsets(x_ptr):
        tl.make_tensor_descriptor(x_ptr, [32, 32], [32, 1], [8, 8]).load([0])

    @triton.jit
    def shape(x_ptr):
        desc = tl.make_tensor_descriptor(x_ptr, [32, 32], [32, 1], [8, 8])
        desc.store([0, 0], tl.zeros([8, 16], tl.float32))

    @triton.jit
    def attribute(x_ptr):
        tl.make_tensor_descriptor(x_ptr, [32, 32], [32, 1], [8, 8]).laod([0, 0])

    @triton.jit
    def gather(x_ptr):
        tl.make_tensor_descriptor(x_ptr, [32, 32], [32, 1], [8, 8]).gather(tl.arange(0, 8), 0)

    fails("last stride .* constant 1", last_stride, 2)
    fails("at least 16 bytes, but 2 of fp32 are 8", few_bytes)
    fails("given are 1, 2 and 2", rank)
    fails("2 dimensions is given 1 offsets", offsets)
    fails(r"<\[8, 16\], fp32> is stored", shape)
    fails("did you mean `load`", attribute)
    fails("block is one row", gather)


@triton.jit
def products_of_one_operand(x_desc, a_desc, b_desc, y_desc, z_desc, n):
    """Two loops one behind the other, whose tiles of unlike sizes are stored: y = x·Σa, z = x·Σb."""
    x = x_desc.load([0, 0])
    for t in range(tl.program_id(0), n, 1):
        acc = tl.zeros([128, 192], tl.float32)
        for i in tl.range(0, n, num_stages=1):
            acc = tl.dot(x, a_desc.load([i * 256, 0]), acc)
        y_desc.store([t * 128, 0], acc.to(tl.float16))
    for t in range(tl.program_id(0), n, 1):
        acc = tl.zeros([128, 240], tl.float32)
        for i in tl.range(0, n, num_stages=1):
            acc = tl.dot(x, b_desc.load([i * 256, 0]), acc)
        z_desc.store([t * 128, 0], acc)


def test_tiles_without_a_place_through_their_loop(device):
    """On Hopper 48 KiB are left in the first loop, but not in one piece: x, which both loops have, lies where the second one's larger tile ends."""
    n = 2
    rng = np.random.default_rng(0)
    x, a, b = (
        rng.standard_normal(shape).astype(np.float16)
        for shape in ((128, 256), (n * 256, 192), (n * 256, 240))
    )
    Y, Z = device.empty((n * 128, 192), np.float16), device.empty((n * 128, 240), np.float32)
    blocks = [(x, [128, 256]), (a, [256, 192]), (b, [256, 240])]
    descriptors = [TensorDescriptor.from_tensor(device.array(m), block) for m, block in blocks]
    stored = [TensorDescriptor.from_tensor(Y, [128, 192]), TensorDescriptor.from_tensor(Z, [128, 240])]
    products_of_one_operand[(1,)](*descriptors, *stored, n, num_warps=8)
    for out, m, tolerance in ((Y, a, 2e-2), (Z, b, 1e-3)):
        want = x.astype(np.float64) @ m.astype(np.float64).reshape(n, 256, -1).sum(0)
        np.testing.assert_allclose(device.numpy(out), np.tile(want, (n, 1)), rtol=1e-3, atol=tolerance)
