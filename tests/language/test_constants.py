"""What kernels ask of compile-time values: dtypes, strings, numbers of NumPy."""

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl


@triton.jit
def ask(out, x, D: tl.constexpr):
    d: tl.constexpr = x.dtype.element_ty
    tl.static_assert(d.is_fp8e4nv() == (d == tl.float8e4nv) and not D.is_fp8e5() and not d.is_tuple())
    tl.store(out, d.kind())
    tl.store(out + 1, d.kind() == tl.dtype.KIND.INTEGRAL)
    tl.store(out + 2, D.get_int_max_value())
    tl.store(out + 3, D.get_int_min_value())
    tl.store(out + 4, D.int_signedness)
    tl.store(out + 5, D.int_signedness == tl.dtype.SIGNEDNESS.UNSIGNED)
    tl.store(out + 6, tl.float8e4b8.exponent_bias + tl.dtype.KIND.FLOATING.value)
    tl.store(out + 7, d.is_dtype("int8") and D.codegen_name() == D.name and D.name in D.UINT_TYPES)


@pytest.mark.parametrize(
    ("x", "d", "want"),
    [
        (np.float32, tl.uint8, [2, 0, 255, 0, 1, 1, 10, 1]),
        (np.int16, tl.int32, [1, 1, 2**31 - 1, -(2**31), 0, 0, 10, 0]),
    ],
)
def test_dtypes_answer_in_kernels(device, x, d, want):
    out = device.zeros(8, np.int64)
    ask[(1,)](out, device.zeros(1, x), d)
    assert device.numpy(out).tolist() == want


@triton.jit
def letters(out, LAYOUT: tl.constexpr, AT: tl.constexpr):
    if LAYOUT[AT] == "t":
        tl.store(out, 1)
    if LAYOUT[1:] == "nt":
        tl.store(out + 1, 1)
    if LAYOUT[:-1] == "tn" and "abc"[0] + LAYOUT[-1] == "at":
        tl.store(out + 2, 1)


@pytest.mark.parametrize(
    ("layout", "at", "want"), [("tnt", 0, [1, 1, 1]), ("tnn", -2, [0, 0, 0]), ("ént", 2, [1, 1, 0])]
)
def test_strings_are_indexed(device, layout, at, want):
    out = device.zeros(3, np.int32)
    letters[(1,)](out, layout, at)
    assert device.numpy(out).tolist() == want


def test_an_index_outside_of_a_string(device):
    with pytest.raises(triton.CompilationError, match="index 3 is outside of a string of 3"):
        letters[(1,)](device.zeros(3, np.int32), "abc", 3)


@triton.jit
def every_other(out, FROM: tl.constexpr, TO: tl.constexpr, STEP: tl.constexpr, N: tl.constexpr):
    values = tl.tuple([10 + i for i in range(6)])
    tl.static_assert("abcdef"[FROM:TO:STEP] == N)
    taken = values[FROM:TO:STEP]
    for i in tl.static_range(len(taken)):
        tl.store(out + i, taken[i])


# Also indices beyond both ends, and none at all.
@pytest.mark.parametrize("step", [None, 2, 2**70, -1, -2, -7])
@pytest.mark.parametrize(
    ("begin", "end"), [(None, None), (1, 5), (5, 1), (-2, None), (None, -2), (-9, 9), (9, -9), (0, 0)]
)
def test_slices_with_a_step(device, begin, end, step):
    want = list(range(10, 16))[begin:end:step]
    out = device.zeros(6, np.int32)
    every_other[(1,)](out, begin, end, step, "abcdef"[begin:end:step])
    assert device.numpy(out).tolist() == want + [0] * (6 - len(want))


def test_a_slice_without_a_step_is_an_error(device):
    with pytest.raises(triton.CompilationError, match="the step of a slice is not zero"):
        every_other[(1,)](device.zeros(6, np.int32), 0, 6, 0, "")


SIZE = tl.constexpr(np.int16(8))


@triton.jit
def sized(out, BLOCK: tl.constexpr, SCALE: tl.constexpr, ON: tl.constexpr):
    if ON:
        tl.store(out + tl.arange(0, BLOCK), tl.arange(0, SIZE) * SCALE)


@pytest.mark.parametrize("block", [np.int64(8), np.int32(8), np.uint8(8), 8])
def test_numbers_of_numpy_are_constants(device, block):
    out = device.zeros(8, np.float32)
    sized[(1,)](out, block, np.float32(0.5), np.bool_(True), num_warps=np.int64(2))
    np.testing.assert_array_equal(device.numpy(out), np.arange(8) * 0.5)


@triton.jit
def accumulate(out):
    tl.atomic_add(out, 2.7)
    tl.atomic_max(out + 1, -3.9)
    tl.atomic_xchg(out + 2, 2**32 + 5)
    tl.atomic_cas(out + 3, 4.0, 9.5)
    tl.atomic_add(out + tl.arange(4, 8), 1.5, mask=tl.arange(0, 4) < 2)


def test_atomics_convert_constants(device):
    out = device.array(np.array([1, -9, 0, 4, 0, 0, 0, 0], np.int32))
    accumulate[(1,)](out)
    assert device.numpy(out).tolist() == [3, -3, 5, 9, 1, 1, 0, 0]


@triton.jit
def members(out, x):
    v = tl.load(x + tl.arange(0, 4))
    tl.store(out + tl.arange(0, 4), v.sqrt_rn() + v.floor() + v.abs())


def test_members(device):
    x = np.array([1.5, 4.0, 9.0, 2.0], np.float32)
    out = device.zeros(4, np.float32)
    members[(1,)](out, device.array(x))
    np.testing.assert_array_equal(device.numpy(out), np.sqrt(x) + np.floor(x) + x)


@triton.jit
def scalars_used_again(out, n):
    one = tl.to_tensor(n)
    tl.atomic_add(out + tl.arange(0, 4), one)
    tl.store(out + 4, one)
    two = tl.to_tensor(2)
    tl.store(out + tl.arange(5, 8), tl.full([3], two, tl.int32))
    tl.store(out + 8, two)


def test_a_constant_scalar_is_there_after_it_was_repeated(device):
    out = device.zeros(9, np.int32)
    scalars_used_again[(1,)](out, 1)
    assert device.numpy(out).tolist() == [1, 1, 1, 1, 1, 2, 2, 2, 2]


@triton.jit
def lenient(out, maybe, n, N: tl.constexpr):
    d = out.dtype.element_ty
    twice: tl.constexpr = N * n
    if maybe:
        tl.store(out + 1, tl.load(maybe))
    tl.store(out, tl.zeros([], d.value) + twice)


def test_what_triton_lets_pass(device):
    """A fourth extent of a grid, a constant that is none (with a warning), pointers as conditions, a dtype's `value`."""
    out, seven = device.zeros(2, np.int32), device.array(np.full(1, 7, np.int32))
    with pytest.warns(
        UserWarning, match="`twice` is declared tl.constexpr but its value is only known at run time"
    ) as seen:
        lenient[(1, 1, 1, 1)](out, seven, 5, 4)
    assert [(w.filename, w.lineno) for w in seen] == [(__file__, lenient.fn.__code__.co_firstlineno + 3)]
    assert device.numpy(out).tolist() == [20, 7]


@triton.jit
def same_type(out):
    tl.store(out, tl.load(out).to(tl.float32, fp_downcast_rounding="rtz"))


def test_a_rounding_of_no_conversion_is_not_looked_at(device):
    out = device.array(np.full(1, 2.5, np.float32))
    same_type[(1,)](out)
    assert device.numpy(out).tolist() == [2.5]


@triton.jit
def types_of_constants_kernel(n: tl.constexpr, pair: tl.constexpr, other):
    tl.static_assert(n.type == tl.constexpr_type(3))
    tl.static_assert(n.type != tl.constexpr_type(4))
    tl.static_assert(pair.type == tl.constexpr_type((5, 6)))
    tl.static_assert(isinstance(n.type, tl.constexpr_type))
    tl.static_assert(not isinstance(other.type, tl.constexpr_type))


def test_types_of_constants(device):
    types_of_constants_kernel[(1,)](3, (5, 6), 7)


@triton.jit
def least_kernel(a: tl.constexpr, b: tl.constexpr):
    tl.static_assert(min(a, b) <= a)


@pytest.mark.parametrize("a,b", [(1.0, float("nan")), (0.0, -0.0)])
def test_what_has_no_least(device, a, b):
    with pytest.raises(triton.CompilationError, match="depends on their order"):
        least_kernel[(1,)](a, b)


DICTIONARY = tl.constexpr({"a": 4, "b": (5, 6), 7: "seven"})


@triton.jit
def dictionary_kernel(out, SIZES: tl.constexpr, KEY: tl.constexpr):
    tl.store(out, DICTIONARY["a"])
    tl.store(out + 1, DICTIONARY["b"][1])
    tl.store(out + 2, SIZES[KEY] + len(SIZES))
    tl.store(out + 3, "a" in DICTIONARY and "z" not in DICTIONARY)
    tl.store(out + 4, len(DICTIONARY[7]))


def test_dictionaries(device):
    out = device.zeros(5, np.int32)
    dictionary_kernel[(1,)](out, {"x": 30, "y": 40}, "y")
    assert device.numpy(out).tolist() == [4, 6, 42, 1, 5]
    with pytest.raises(triton.CompilationError, match="KeyError: 'z'"):
        dictionary_kernel[(1,)](out, {"x": 30, "y": 40}, "z")
