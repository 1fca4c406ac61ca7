"""Functions of device libraries that a program names itself, and what NVIDIA's GPUs tell a program."""

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright.language import core
from tilewright.language.extra import cuda


@core.extern
def cubic_root(x, _semantic=None):
    return core.extern_elementwise(
        "libdevice",
        "",
        [x],
        {
            (core.dtype("fp32"),): ("__nv_cbrtf", core.dtype("fp32")),
            (core.dtype("fp64"),): ("__nv_cbrt", core.dtype("fp64")),
        },
        is_pure=True,
        _semantic=_semantic,
    )


@core.extern
def power(x, n, _builder=None):
    symbols = core.extern_elementwise(
        "", "", [x, n], {(tl.float32, tl.int32): ("__nv_powif", tl.float32)}, is_pure=True, _builder=_builder
    )
    return symbols


@triton.jit
def roots(x, n, out):
    at = tl.arange(0, 16)
    a = tl.load(x + at)
    tl.store(out + at, cubic_root(a))
    tl.store(out + 16 + at, power(a, tl.load(n)))


def test_functions_of_libdevice(device):
    x = np.linspace(0.5, 2, 16, dtype=np.float32)
    out = device.empty(32, np.float32)
    roots[(1,)](device.array(x), device.array(np.array([3], np.int32)), out)
    want = np.concatenate([np.cbrt(x.astype(np.float64)), x.astype(np.float64) ** 3])
    np.testing.assert_allclose(device.numpy(out), want, rtol=1e-6)


def test_a_library_of_the_users(device, library, kernel_of):
    x, n = np.linspace(1, 2, 32), np.array([7], np.int32)
    out = device.empty(32, np.float64)
    args = device.array(x), device.array(n), out
    kernel = kernel_of(library)
    if device.backend == "interp":
        with pytest.raises(Exception, match=r"not supported yet.*`axpy`"):
            kernel[(1,)](*args)
        return
    kernel[(1,)](*args)
    want = np.sqrt(x[:, None] * x[None, :4] + 7).sum(1) + 2 * np.arange(32)
    # Nothing that the executor could be compared with.
    np.testing.assert_allclose(args[2] if not device.cuda else out.cpu().numpy(), want, rtol=1e-14)


@core.extern
def wrong_types(x, _semantic=None):
    return core.extern_elementwise("", "", [x], {(core.float32,): ("__nv_popc", core.int32)}, is_pure=True)


@core.extern
def no_entry(x, _semantic=None):
    return core.extern_elementwise("", "", [x], {(core.float64,): ("__nv_sqrt", core.float64)}, is_pure=True)


@triton.jit
def call(x, out, f: tl.constexpr):
    tl.store(out, f(tl.load(x)).to(tl.float32))


@pytest.mark.parametrize("f, message", [(wrong_types, "__nv_popc"), (no_entry, "takes fp64, not fp32")])
def test_a_wrong_type_is_an_error(device, f, message):
    with pytest.raises(Exception, match=message) as error:
        call[(1,)](device.array(np.zeros(1, np.float32)), device.empty(1, np.float32), f)
    assert "test_extern.py" in str(error.value)


# ---- tl.extra.cuda --------------------------------------------------------------------------------------------------


@triton.jit
def queries(x, out, times):
    cuda.gdc_wait()
    program = tl.program_id(0)
    value = tl.load(x + program)
    cuda.gdc_launch_dependents()
    tl.store(out + program, value + 1)
    before = cuda.globaltimer()
    tl.store(times + 2 * program, tl.where(cuda.smid() >= 0, 1, 0))
    tl.store(times + 2 * program + 1, tl.where(cuda.globaltimer() >= before, 1, 0))


def test_queries(device):
    x = np.arange(5, dtype=np.int32)
    out, times = device.empty(5, np.int32), device.empty(10, np.int32)
    queries[(5,)](device.array(x), out, times, launch_pdl=True)
    np.testing.assert_array_equal(device.numpy(out), x + 1)
    np.testing.assert_array_equal(device.numpy(times), 1)


@triton.jit
def counts(out):
    at = tl.arange(0, cuda.num_threads())
    tl.store(out + at, at * cuda.num_warps())


@pytest.mark.parametrize("num_warps", [1, 4])
def test_threads_and_warps_are_constants(device, num_warps):
    out = device.empty(32 * num_warps, np.int32)
    counts[(1,)](out, num_warps=num_warps)
    np.testing.assert_array_equal(device.numpy(out), np.arange(32 * num_warps) * num_warps)


@triton.jit
def small_float(x, bytes_, back, BY_NAME: tl.constexpr, dtype: tl.constexpr):
    at = tl.arange(0, 64)
    if BY_NAME:
        small = cuda.convert_custom_float8_sm80(tl.load(x + at), tl.float8e4b15)
        tl.store(back + at, cuda.convert_custom_float8_sm70(small, dtype))
    else:
        small = tl.load(x + at).to(tl.float8e4b15)
        tl.store(back + at, small.to(dtype))
    tl.store(bytes_ + at, small.to(tl.uint8, bitcast=True))


@pytest.mark.parametrize("by_name", [True, False])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_custom_float8(device, dtype, by_name):
    x = np.concatenate(
        [np.linspace(-2, 2, 40), [0.0, -0.0, 1e-5, 3e-4, -1e-3, 1.81, 1.75, 300, -np.inf, np.inf]]
    )
    x = np.resize(x, 64).astype(dtype)
    bytes_, back = device.empty(64, np.uint8), device.empty(64, dtype)
    small_float[(1,)](
        device.array(x), bytes_, back, by_name, tl.float16 if dtype == np.float16 else tl.float32
    )
    # Every byte but the largest magnitude, which nothing becomes.
    codes = np.arange(127)
    with np.errstate(over="ignore"):
        values = (codes.astype(np.uint16) << 7).view(np.float16).astype(np.float64)
        # float32 becomes float16 toward zero first.
        half = x.astype(np.float16)
        half = np.where(np.abs(half.astype(np.float32)) > np.abs(x), np.nextafter(half, np.float16(0)), half)
    magnitude = np.minimum(np.abs(half.astype(np.float64)), 1.75)
    # To nearest, of two the one further from zero.
    distance = np.abs(values[None, :] - magnitude[:, None])
    code = 126 - np.argmin(distance[:, ::-1], 1)
    np.testing.assert_array_equal(device.numpy(bytes_), code | np.where(np.signbit(x), 0x80, 0))
    np.testing.assert_array_equal(device.numpy(back), np.copysign(values[code], x).astype(dtype))
