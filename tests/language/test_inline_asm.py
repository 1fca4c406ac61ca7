"""Inline assembly, which the CPU executor gives to the simulator."""

import ml_dtypes
import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl


@triton.jit
def shift_kernel(x_ptr, y_ptr, z_ptr, n, N: tl.constexpr):
    offsets = tl.arange(0, N)
    x = tl.load(x_ptr + offsets)
    y = tl.load(y_ptr + offsets)
    shifted = tl.inline_asm_elementwise(
        "shf.l.wrap.b32 $0, $1, $2, $3;", "=r,r, r, r", [x, y, n], tl.int32, True, 1
    )
    tl.store(z_ptr + offsets, shifted)


@pytest.mark.parametrize("size", [16, 96, 512])
def test_shift(device, size):
    rng = np.random.default_rng(0)
    x, y = (rng.integers(0, 1 << 31, size, dtype=np.int32) for _ in range(2))
    z = device.empty(size, np.int32)
    shift_kernel[(1,)](device.array(x), device.array(y), z, 17, N=size)
    both = x.astype(np.uint32).astype(np.uint64) | (y.astype(np.uint32).astype(np.uint64) << np.uint64(32))
    expected = ((both << np.uint64(17)) >> np.uint64(32)).astype(np.uint32).astype(np.int32)
    np.testing.assert_array_equal(device.numpy(z), expected)


@triton.jit
def packed_kernel(x_ptr, y_ptr, N: tl.constexpr):
    offsets = tl.arange(0, N)
    x = tl.load(x_ptr + offsets)
    y = tl.inline_asm_elementwise(
        "{ .reg .b32 t<2>; and.b32 t0, $1, 0x0f0f0f0f; shl.b32 t1, t0, 4; mov.b32 $0, t1; }",
        "=r,r",
        [x],
        tl.int8,
        is_pure=True,
        pack=4,
    )
    tl.store(y_ptr + offsets, y)


@pytest.mark.parametrize("size", [4, 96, 256])
def test_packed(device, size):
    x = np.arange(size).astype(np.uint8).view(np.int8)
    y = device.empty(size, np.int8)
    packed_kernel[(1,)](device.array(x), y, N=size)
    np.testing.assert_array_equal(device.numpy(y), (x.view(np.uint8) << 4).view(np.int8))


@triton.jit
def several_kernel(x_ptr, sum_ptr, half_ptr, N: tl.constexpr):
    offsets = tl.arange(0, N)
    x = tl.load(x_ptr + offsets)
    total, half = tl.inline_asm_elementwise(
        "add.f32 $0, $2, $2; cvt.rn.f16.f32 $1, $2;", "=f,=h,f", [x], (tl.float32, tl.float16), True, 1
    )
    for _ in range(2):
        total = tl.inline_asm_elementwise("ex2.approx.f32 $0, $1;", "=f,f", [total], tl.float32, True, 1)
    number = tl.inline_asm_elementwise("add.s32 $0, $1, 5;", "=r,0", [N], tl.int32, True, 1)
    tl.store(sum_ptr + offsets, total + number)
    tl.store(half_ptr + offsets, half)


def test_several_results(device):
    x = np.linspace(-2, 1, 64).astype(np.float32)
    total, half = device.empty(64, np.float32), device.empty(64, np.float16)
    several_kernel[(1,)](device.array(x), total, half, N=64)
    np.testing.assert_allclose(device.numpy(total), np.exp2(np.exp2(2 * x)) + 69, rtol=1e-5)
    np.testing.assert_array_equal(device.numpy(half), x.astype(np.float16))


@triton.jit
def memory_kernel(x_ptr, y_ptr, N: tl.constexpr):
    offsets = tl.arange(0, N)
    x = tl.inline_asm_elementwise("ld.global.b32 $0, [$1];", "=r,l", [x_ptr + offsets], tl.int32, False, 1)
    tl.inline_asm_elementwise(
        "st.global.b32 [$1], $2; mov.b32 $0, 0;", "=r,l,r", [y_ptr + offsets, x * 2], tl.int32, False, 1
    )


def test_memory(device):
    x = np.arange(128, dtype=np.int32)
    y = device.array(np.zeros(128, np.int32))
    memory_kernel[(1,)](device.array(x), y, N=128)
    np.testing.assert_array_equal(device.numpy(y), 2 * x)


@triton.jit
def relative(x):
    return tl.inline_asm_elementwise("sub.s32 $0, $1, 3;", "=r,r", [x], tl.int32, True, 1)


@triton.jit
def scalars_kernel(x_ptr, y_ptr, N: tl.constexpr):
    offsets = tl.arange(0, N)
    y = relative(tl.load(x_ptr)) + relative(tl.load(x_ptr + offsets))
    tl.store(y_ptr + offsets, y)


def test_scalars(device):
    x = np.arange(5, 37, dtype=np.int32)
    y = device.empty(32, np.int32)
    scalars_kernel[(1,)](device.array(x), y, N=32)
    np.testing.assert_array_equal(device.numpy(y), x - 1)


@triton.jit
def wide_results_kernel(x_ptr, y_ptr, N: tl.constexpr):
    offsets = tl.arange(0, N)
    x = tl.load(x_ptr + offsets)
    tl.store(
        y_ptr + offsets, tl.inline_asm_elementwise("cvt.u32.u64 $0, $1;", "=r,l", [x], tl.int64, True, 1)
    )
    # A result that nobody reads, of the type of what is given.
    pointers = y_ptr + offsets
    tl.inline_asm_elementwise(
        "red.global.add.u64 [$1], 1;", "=r, l", [pointers], dtype=pointers.dtype, is_pure=False, pack=1
    )


def test_a_register_of_32_bits_for_a_result_of_64(device):
    x = np.arange(128, dtype=np.int64) * 0x123456789
    y = device.empty(128, np.int64)
    wide_results_kernel[(1,)](device.array(x), y, N=128)
    np.testing.assert_array_equal(device.numpy(y), (x & 0xFFFFFFFF) + 1)


@triton.jit
def numbers_in_the_text_kernel(x_ptr, y_ptr, N: tl.constexpr):
    offsets = tl.arange(0, N)
    x = tl.load(x_ptr + offsets)
    MASK: tl.constexpr = 0x000F000F
    MAGIC: tl.constexpr = 0x64006400
    TABLE: tl.constexpr = (0xF0 & 0xCC) | 0xAA
    y = tl.inline_asm_elementwise(
        "{ .reg .b32 t; lop3.b32 t, $1, $2, ${3}, $4; add.u32 $0, t, $5; }",
        "=r,r,n,n,n,r",
        [x, MASK, MAGIC, TABLE, x],
        tl.int32,
        is_pure=True,
        pack=1,
    )
    tl.store(y_ptr + offsets, y)


def test_numbers_in_the_text(device):
    x = np.arange(32, dtype=np.int32) * 0x01234567
    y = device.empty(32, np.int32)
    numbers_in_the_text_kernel[(1,)](device.array(x), y, N=32)
    np.testing.assert_array_equal(device.numpy(y), ((x & 0x000F000F) | 0x64006400) + x)


@triton.jit
def no_number_kernel(x_ptr, PACK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, 32))
    tl.inline_asm_elementwise("add.s32 $0, $1, $2;", "=r,r,n", [x, x], tl.int32, True, PACK)


@pytest.mark.parametrize(
    ("pack", "words"), [(1, r"\$2 has the constraint `n`, and is no integer"), (2, "wants `pack` to be 1")]
)
def test_what_is_no_number_of_the_text(pack, words):
    with pytest.raises(triton.CompilationError, match=words):
        no_number_kernel.warmup(tl.int32, pack, grid=(1,))


@triton.jit
def microscaling_kernel(x_ptr, pairs_ptr, scales_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x, y = tl.split(tl.load(x_ptr + 2 * i[:, None] + tl.arange(0, 2)[None, :]))
    pairs = tl.inline_asm_elementwise(
        """{
            .reg .b8 pair;
            cvt.rn.satfinite.e2m1x2.f32 pair, $2, $1;
            mov.b32 $0, {pair, pair, pair, pair};
        }""",
        "=r,f,f",
        [x, y],
        dtype=tl.int32,
        is_pure=True,
        pack=1,
    )
    scales = tl.inline_asm_elementwise(
        "cvt.rp.satfinite.ue8m0x2.f32 $0, $2, $1;", "=h,f,f", [x, y], dtype=tl.int16, is_pure=True, pack=1
    )
    tl.store(pairs_ptr + i, pairs)
    tl.store(scales_ptr + i, scales)


def test_conversions_of_microscaling_formats(device, monkeypatch):
    n = 512
    if device.backend == "cuda" and triton.runtime.driver.active.get_current_target().arch < 100:
        outs = device.empty((n,), np.int32), device.empty((n,), np.int16)
        with pytest.raises(triton.CompilationError, match="e2m1x2"):
            microscaling_kernel[(1,)](device.array(np.zeros((n, 2), np.float32)), *outs, n)
        return
    if device.backend != "cuda":
        monkeypatch.setenv("TILEWRIGHT_TARGET", "cuda:100")
    x = np.random.default_rng(5).normal(0, 3, (n, 2)).astype(np.float32)
    x[:8, 0] = [0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, 100.0]
    pairs, scales = device.empty((n,), np.int32), device.empty((n,), np.int16)
    microscaling_kernel[(1,)](device.array(np.abs(x)), pairs, scales, n)
    codes = np.abs(x).astype(ml_dtypes.float4_e2m1fn).view(np.uint8).astype(np.int64)
    both = codes[:, 1] << 4 | codes[:, 0]
    np.testing.assert_array_equal(device.numpy(pairs).view(np.uint32), both * 0x01010101)
    exponents = np.ceil(np.log2(np.abs(x.astype(np.float64)))).astype(np.int64) + 127
    np.testing.assert_array_equal(
        device.numpy(scales).view(np.uint16), exponents[:, 1] << 8 | exponents[:, 0]
    )
