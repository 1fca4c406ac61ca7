"""The option `persistent`: a launch starts no more programs than fit, and each does the work of several. (The simulator holds two.)"""

import numpy as np
import pytest
from flash_attention import flash_kernel, reference
from matmul import matmul, matmul_kernel

import tilewright as triton
import tilewright.language as tl


def operands(m, n, k, transposed):
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((m, k), (n, k)))
    return a, (b if transposed else np.ascontiguousarray(b.T))


@pytest.mark.parametrize("transposed", [True, False])
@pytest.mark.parametrize(
    ("shape", "block", "warps"),
    [
        ((320, 200, 136), (128, 128, 64), 8),
        ((256, 384, 64), (128, 192, 64), 8),
        ((300, 296, 40), (64, 64, 32), 4),
        ((130, 200, 72), (128, 16, 32), 4),
        ((301, 99, 77), (64, 32, 32), 4),
    ],
)
def test_product(device, shape, block, warps, transposed):
    """Whole tiles and others, blocks of matrices and what can't be any."""
    m, n, k = shape
    a, b = operands(m, n, k, transposed)
    c = device.array(np.full((m, n), np.nan, np.float16))
    right = device.array(b)
    matmul(device.array(a), right.T if transposed else right, c, block, num_warps=warps, persistent=True)
    want = a.astype(np.float32) @ (b.T if transposed else b).astype(np.float32)
    np.testing.assert_array_equal(device.numpy(c), want.astype(np.float16))


@pytest.mark.parametrize("transposed", [True, False])
@pytest.mark.parametrize(
    ("shape", "block", "warps", "stages"),
    [
        ((520, 200, 200), (256, 64, 64), 8, 3),
        ((300, 296, 72), (128, 128, 64), 4, 2),
        ((130, 200, 77), (64, 64, 32), 4, 3),
    ],
)
def test_product_by_clusters(device, shape, block, warps, stages, transposed):
    """Two CTAs run a program: each has its part of the rows, and both go through the same tiles."""
    m, n, k = shape
    a, b = operands(m, n, k, transposed)
    c = device.array(np.full((m, n), np.nan, np.float16))
    right = device.array(b)
    options = {"num_warps": warps, "num_stages": stages, "num_ctas": 2, "persistent": True}
    matmul(device.array(a), right.T if transposed else right, c, block, **options)
    want = a.astype(np.float32) @ (b.T if transposed else b).astype(np.float32)
    np.testing.assert_array_equal(device.numpy(c), want.astype(np.float16))


def test_loads_for_the_next_program():
    """A product of warp groups has a warp that loads; its stores wait for no other warp."""
    kernel = matmul_kernel.warmup(
        *(tl.float16,) * 3, 4096, 4096, 4096, 4096, 1, 1, 4096, 4096, 1, BLOCK_M=128, BLOCK_N=256, BLOCK_K=64, GROUP_M=8,
        ACC=tl.float32, PRECISION="tf32", num_warps=8, num_stages=4, persistent=True, target="cuda:90", grid=(1,),
    )  # fmt: skip
    assert kernel.metadata.resident_programs
    text = kernel.asm["ttgir"]
    assert "ttg.warp_specialize(" in text and "4x128x64xf16" in text and "ttg.barrier" not in text


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("d", "block", "keys", "heads"),
    [(128, (128, 128), 640, 1), (128, (128, 64), 600, 1), (256, (128, 64), 512, 2), (96, (128, 64), 384, 1)],
)
def test_attention(device, d, block, keys, heads, causal, persistent):
    """Queries come as blocks of a matrix, whole ones and others; with several programs in a row they come ahead."""
    rng = np.random.default_rng(1)
    q, k, v = (rng.standard_normal((heads, keys, d)).astype(np.float16) for _ in range(3))
    o = device.array(np.full(q.shape, np.nan, np.float16))
    bm, bn = block
    flash_kernel[(triton.cdiv(keys, bm), heads)](
        device.array(q), device.array(k), device.array(v), o, d**-0.5, keys, keys * d, d, D=d, BLOCK_M=bm, BLOCK_N=bn,
        CAUSAL=causal, EVEN=keys % bm == keys % bn == 0, num_warps=8, num_stages=2, persistent=persistent,
    )  # fmt: skip
    np.testing.assert_allclose(device.numpy(o), reference(q, k, v, causal), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("persistent", [False, True])
def test_queries_hold_nobody_up(persistent, causal):
    """Queries cross no registers and no barrier, and the results of a warp go through memory of its own. Among programs in a row the queries of the next have a slot."""
    kernel = flash_kernel.warmup(
        *(tl.float16,) * 4, 128**-0.5, 1024, 1024 * 128, 128, D=128, BLOCK_M=128, BLOCK_N=128, CAUSAL=causal,
        EVEN=True, num_warps=8, num_stages=2, persistent=persistent, target="cuda:90", grid=(1,),
    )  # fmt: skip
    text = kernel.asm["ttgir"]
    specialized = text.index("ttg.warp_specialize(")
    copied = text.index("ttng.async_tma_copy_global_to_local")
    assert text.count("ttng.tensormap_by_launch") == 3 and "tt.load" not in text
    assert "num_warps(1)" in text
    assert "ttg.barrier" not in text[specialized:]
    # Its own copies begin before the warps meet.
    assert (copied < specialized) == (not persistent)
    assert text.count("local_alloc {allocation.offset = 131072") == 1
    slots = text[text.index("local_alloc {allocation.offset = 131072") :].split("memdesc<")[1]
    assert slots.startswith("2x128x128" if persistent else "128x128")


@triton.jit
def numbers(out, COLUMNS: tl.constexpr):
    x, y = tl.program_id(0), tl.program_id(1)
    at = out + (y * tl.num_programs(0) + x) * COLUMNS + tl.arange(0, COLUMNS)
    tl.store(
        at,
        tl.where(tl.arange(0, COLUMNS) % 2 == 0, x * 100 + y, tl.num_programs(0) * 100 + tl.num_programs(1)),
    )


def attention(d, block, warps, stages, **options):
    """Attention of several programs in a row, compiled for Hopper, of which the last rows are masked."""
    bm, bn = block
    return flash_kernel.warmup(
        *(tl.float16,) * 4, d**-0.5, 1024, 1024 * d, d, D=d, BLOCK_M=bm, BLOCK_N=bn, EVEN=False, num_warps=warps,
        num_stages=stages, persistent=True, target="cuda:90", grid=(1,), **options,
    )  # fmt: skip


@pytest.mark.parametrize("causal", [False, True])
def test_a_second_slot_takes_no_programs_place(causal):
    # Two of them share a multiprocessor of 228 KiB, of which 1 KiB goes with each.
    shared = attention(64, (64, 64), warps=4, stages=3, CAUSAL=causal).metadata.shared
    assert 2 * (shared + 1024) <= 228 << 10


@pytest.mark.parametrize(("d", "keys", "specialized"), [(256, 64, False), (128, 128, True)])
def test_a_large_accumulator_keeps_its_registers_where_threads_load(d, keys, specialized):
    # With a warp that loads, beside keys that threads load behind masks, ptxas would spill and put products in a row.
    text = attention(d, (128, keys), warps=8, stages=2, CAUSAL=False).asm["ttgir"]
    assert ("ttg.warp_specialize(" in text) == specialized


def test_the_only_slot_is_free_before_the_last_iteration_ends():
    """With D = 256 queries have one slot: it is released behind the first product of the last iteration, and not behind the loop."""
    kernel = flash_kernel.warmup(
        *(tl.float16,) * 4, 256**-0.5, 1024, 1024 * 256, 256, D=256, BLOCK_M=128, BLOCK_N=64, CAUSAL=False, EVEN=True,
        num_warps=8, num_stages=2, persistent=True, target="cuda:90", grid=(1,),
    )  # fmt: skip
    text = kernel.asm["ttgir"]
    inner = text[text.index("default {") :].split("scf.for")[2]
    inner = inner[: inner.index("scf.yield")]
    assert "1x128x256xf16" in text and "<1x1xi64" in inner


@triton.jit
def numbers_of_three(out, count):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    at = (z * tl.num_programs(1) + y) * tl.num_programs(0) + x
    tl.atomic_add(out + at, x * 10000 + y * 100 + z + count)


@pytest.mark.parametrize("grid", [(3, 2, 2), (1, 1, 5), (5, 1, 1), (1, 3, 1), (2, 0, 3), (7, 1, 3)])
def test_numbers_of_three_axes(device, grid):
    """Each program of a grid runs once, and knows where it is."""
    x, y, z = grid
    out = device.array(np.zeros(max(x * y * z, 1), np.int32))
    numbers_of_three[grid](out, 0, persistent=True)
    want = np.zeros(max(x * y * z, 1), np.int32)
    for i in range(x * y * z):
        want[i] = i % x * 10000 + i // x % y * 100 + i // (x * y)
    np.testing.assert_array_equal(device.numpy(out), want)


@pytest.mark.parametrize("grid", [(7,), (1,), (2, 3), (5, 2), (0,)])
def test_numbers(device, grid):
    """A program's number and how many there are say what they say without the option."""
    x, y = (*grid, 1)[:2]
    out = device.array(np.full((max(x * y, 1), 4), -1, np.int32))
    numbers[grid](out, 4, persistent=True)
    want = np.full((max(x * y, 1), 4), -1, np.int32)
    for i in range(x * y):
        want[i] = [i % x * 100 + i // x, x * 100 + y] * 2
    np.testing.assert_array_equal(device.numpy(out), want)


@triton.jit
def softmax_of_rows(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0) * columns
    if tl.program_id(0) % 3 == 1:
        return
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row + at, mask=at < columns, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + row + at, e / tl.sum(e, 0), mask=at < columns)


def test_shared_memory_again(device):
    """What a program leaves in shared memory is not read by the next, and one may end early."""
    x = np.random.default_rng(0).standard_normal((8, 1000)).astype(np.float32)
    out = device.array(np.zeros_like(x))
    softmax_of_rows[(8,)](device.array(x), out, 1000, 1024, num_warps=8, persistent=True)
    e = np.exp(x - x.max(1, keepdims=True))
    want = e / e.sum(1, keepdims=True)
    want[1::3] = 0
    np.testing.assert_allclose(device.numpy(out), want, rtol=1e-5, atol=1e-7)


@triton.jit(noinline=True)
def called(x):
    return x + tl.program_id(0)


@triton.jit
def calls(out):
    tl.store(out, called(tl.load(out)))


@triton.jit
def locks(lock, out):
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(out, tl.load(out) + 1)
    tl.atomic_xchg(lock, 0)


@triton.jit
def asks(out):
    tl.store(
        out,
        tl.inline_asm_elementwise("mov.u32 $0, %ctaid.x;", "=r", [], dtype=tl.int32, is_pure=True, pack=1),
    )


@triton.jit
def looks_back(out):
    """Waits for the program before it by a plain load of what that one stores."""
    at = out + tl.program_id(0)
    while tl.load(at - 1) == 0:
        pass
    tl.store(at, 1)


@triton.jit
def looks_at_others(flag, out):
    """The same by a load that says that others may store."""
    while tl.load(flag + tl.program_id(0), volatile=True) == 0:
        pass
    tl.store(out, 1)


ACQUIRE: tl.constexpr = "ld.acquire.gpu.global.b32 $0, [$1];"
SPIN: tl.constexpr = (
    "{ .reg .pred p; again: ld.acquire.gpu.global.b32 $0, [$1]; setp.eq.s32 p, $0, 0; @p bra again; }"
)


@triton.jit
def acquires(flag, out):
    seen = 0
    while seen == 0:
        seen = tl.inline_asm_elementwise(ACQUIRE, "=r,l", [flag], dtype=tl.int32, is_pure=False, pack=1)
    tl.store(out, 1)


@triton.jit
def spins(flag, out):
    tl.store(out, tl.inline_asm_elementwise(SPIN, "=r,l", [flag], dtype=tl.int32, is_pure=False, pack=1))


@triton.jit
def prints(out):
    tl.device_print("here", tl.program_id(0))
    tl.store(out, 1)


@triton.jit
def stops(out):
    tl.store(out, 1)
    tl.debug_barrier()


WAITS = "kernels whose programs may wait for each other"


@pytest.mark.parametrize(
    ("kernel", "pointers", "what", "line"),
    [
        (calls, 1, "kernels that call functions", "called(tl.load(out))"),
        (locks, 2, WAITS, "tl.atomic_cas"),
        (looks_back, 1, WAITS, "while tl.load(at - 1)"),
        (looks_at_others, 2, WAITS, "while tl.load(flag"),
        (acquires, 2, WAITS, "tl.inline_asm_elementwise(ACQUIRE"),
        (spins, 2, WAITS, "tl.inline_asm_elementwise(SPIN"),
        (asks, 1, "assembly that asks for the program's number", "%ctaid"),
        (prints, 1, "tl.device_print, which shows the program's number", 'tl.device_print("here"'),
        (stops, 1, "tl.debug_barrier", "tl.debug_barrier()"),
    ],
)
def test_refused(kernel, pointers, what, line):
    with pytest.raises(Exception, match=f"not supported yet: persistent=True for {what}") as error:
        kernel.warmup(*(tl.int32,) * pointers, persistent=True, target="cuda:90", grid=(1,))
    assert line in str(error.value) and "^" in str(error.value)
