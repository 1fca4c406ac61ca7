"""Functions of Python that kernels call on constants: of modules, of objects that are constants, of strings and numbers."""

import collections
import dataclasses
import functools
import math
import operator
import types

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl

helpers = types.ModuleType("helpers")


def _scale(x, y=2):
    return int(x) * int(y)


helpers.scale = _scale
helpers.pair = lambda n: (n, n + 1)
helpers.bits = lambda dtype: dtype.primitive_bitwidth
helpers.failing = lambda n: 1 // (n - n)


@dataclasses.dataclass(frozen=True)
class Settings:
    n: int

    def doubled(self):
        return 2 * self.n

    @classmethod
    def of(cls, n):
        return cls(n)


Pair = collections.namedtuple("Pair", ["a", "b"])
SETTINGS = tl.constexpr(Settings(4))
TABLE = tl.constexpr({"a": 1, "b": 7})
FUNCTIONS = tl.constexpr((_scale, Settings.of))
TEXT = tl.constexpr("abc")


@triton.constexpr_function
def next_one(n):
    return n + 1


@triton.jit
def of_modules(out, N: tl.constexpr):
    tl.store(out, helpers.scale(N))
    tl.store(out + 1, helpers.scale(N, y=3))
    tl.store(out + 2, helpers.pair(N)[1])
    tl.store(out + 3, helpers.bits(out.dtype.element_ty))
    tl.store(out + 4, operator.add(N, 1))
    tl.store(out + 5, functools.reduce(operator.add, (1, 2, N)))
    tl.store(out + 6, np.iinfo(np.int16).max)
    tl.store(out + 7, int(math.sqrt(2 * N)))
    tl.store(out + 8, next_one(N))


@triton.jit
def of_constants(out, N: tl.constexpr, FUNCTION: tl.constexpr):
    tl.store(out, SETTINGS.doubled())
    tl.store(out + 1, TABLE.get("b"))
    tl.store(out + 2, TABLE.get("c", N))
    tl.store(out + 3, FUNCTIONS[0](N))
    tl.store(out + 4, FUNCTIONS[1](N).doubled())
    tl.store(out + 5, FUNCTION(N, 5))
    tl.store(out + 6, Pair(1, N).b)


@triton.jit
def of_strings_and_numbers(out, N: tl.constexpr):
    tl.store(out, TEXT.upper() == "ABC")
    tl.store(out + 1, TEXT.startswith("a") and not TEXT.endswith("a"))
    tl.store(out + 2, TEXT.replace("a", "z") + TEXT.split("b")[1] == "zbcc")
    tl.store(out + 3, f"{N}/{3}" == "8/3")
    tl.store(out + 4, "%d %s" % (N, TEXT) == "8 abc" and "%x" % 255 == "ff")  # noqa: UP031 (what is tested)
    tl.store(out + 5, "-".join(("a", "b")) == "a-b")
    tl.store(out + 6, N.bit_length() + (3).bit_length())
    tl.store(out + 7, (0.5).is_integer() or (2.0).is_integer())
    tl.store(out + 8, int(float.fromhex("0x1p3")))
    tl.store(out + 9, hasattr(TEXT, "upper") and not hasattr(TEXT, "nothing"))


@pytest.mark.parametrize(
    ("kernel", "args", "want"),
    [
        (of_modules, (8,), [16, 24, 9, 32, 9, 11, 32767, 4, 9]),
        (of_constants, (8, _scale), [8, 7, 8, 16, 16, 40, 8]),
        (of_strings_and_numbers, (8,), [1, 1, 1, 1, 1, 1, 6, 1, 8, 1]),
    ],
)
def test_calls(device, kernel, args, want):
    out = device.zeros(len(want), np.int32)
    kernel[(1,)](out, *args)
    assert device.numpy(out).tolist() == want


@triton.jit
def greatest(out):
    tl.store(out, np.finfo(np.float32).max)
    tl.store(out + 1, float(np.finfo(np.float32).eps))


def test_limits_of_types(device):
    out = device.zeros(2, np.float32)
    greatest[(1,)](out)
    limits = np.finfo(np.float32)
    assert device.numpy(out).tolist() == [limits.max, limits.eps]


@triton.jit
def by_own_name(out):
    tl.store(out, _scale(2))


@triton.jit
def of_a_run_time_value(out):
    tl.store(out, helpers.scale(tl.load(out)))


@triton.jit
def raising(out):
    tl.store(out, helpers.failing(2))


@triton.jit
def wrong_format(out):
    tl.store(out, "%d" % "a" == "a")  # noqa: UP031 (what is tested)


@triton.constexpr_function
def width(x):
    return x.dtype.primitive_bitwidth // FOUR


@triton.constexpr_function
def described(x, pair, *, rank_too=False):
    # What is given may hold values of run time: their types are known, and they are handed back.
    picked = pair[0] if rank_too and len(x.shape) == 1 else x
    return picked, x.numel


FOUR = 4


class Sized:
    def __init__(self, n):
        self.n = n

    @triton.constexpr_function
    def times(self, x):
        return self.n * x.shape[0]


@triton.jit
def of_run_time_values(x_ptr, out, SIZED: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, 16))
    BITS: tl.constexpr = width(x)
    tl.store(out, BITS)
    y, n = described(x * 2, (x + 1, 3), rank_too=True)
    tl.store(out + 1, tl.sum(y) + n)
    tl.store(out + 2, described(x, (x, x))[1])
    tl.store(out + 3, SIZED.times(x))


def test_compile_time_functions_of_run_time_values(device):
    out = device.zeros(4, np.int32)
    of_run_time_values[(1,)](device.array(np.arange(16, dtype=np.float32)), out, Sized(5))
    assert device.numpy(out).tolist() == [8, 120 + 16 + 16, 16, 80]


@triton.jit
def instances(out, n, N: tl.constexpr, one):
    LOCAL: tl.constexpr = 3
    tl.store(
        out, isinstance(N, tl.constexpr) or isinstance(3, tl.constexpr) or isinstance(LOCAL, tl.constexpr)
    )
    tl.store(out + 1, isinstance(n, tl.constexpr) or isinstance(one, tl.constexpr))
    tl.store(out + 2, isinstance(N, int) and isinstance(one, int))
    tl.store(out + 3, isinstance(n, tl.tensor))


# Triton gives Python's builtins the values of constants.
def test_no_value_is_a_constexpr_in_a_kernel(device):
    out = device.zeros(4, np.int32)
    instances[(1,)](out, 5, 3, 1)
    assert device.numpy(out).tolist() == [0, 0, 1, 1]


KEY = tl.constexpr(b"key")


@triton.jit
def of_bytes(out, TAG: tl.constexpr):
    LOCAL: tl.constexpr = b"ab\x00"
    tl.store(out, TAG[1])
    tl.store(out + 1, TAG == b"xyz" and KEY != b"xyz")
    tl.store(out + 2, len(LOCAL + KEY))
    tl.store(out + 3, (LOCAL + KEY)[3:5] == b"ke")
    tl.store(out + 4, b"y" in TAG and b"z" not in KEY)
    for i in tl.static_range(len(LOCAL)):
        tl.store(out + 5 + i, LOCAL[i])


def test_bytes(device):
    out = device.zeros(8, np.int32)
    of_bytes[(1,)](out, b"xyz")
    assert device.numpy(out).tolist() == [ord("y"), 1, 6, 1, 1, ord("a"), ord("b"), 0]


# What Triton refuses, too: a plain function by its own name, values of run time, what the function itself raises.
@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (by_own_name, "`_scale` is a plain Python function"),
        (of_a_run_time_value, "an argument of `_scale` must be known at compile time"),
        (raising, "ZeroDivisionError"),
        (wrong_format, "TypeError: %d format"),
    ],
)
def test_calls_that_are_wrong(device, kernel, message):
    with pytest.raises(triton.CompilationError, match=message):
        kernel[(1,)](device.empty(1, np.int32))


@triton.jit
def with_factor(out):
    tl.store(out, helpers.scale(3))


def test_a_function_that_is_another_one_since(device, monkeypatch):
    out = device.empty(1, np.int32)
    with_factor[(1,)](out)
    assert device.numpy(out)[0] == 6
    monkeypatch.setattr(helpers, "scale", lambda x: 5 * x)
    with pytest.raises(RuntimeError, match="'scale'"):
        with_factor[(1,)](out)


@triton.jit
def of_builtins(out, X: tl.constexpr):
    tl.store(out, round(X, 2))
    tl.store(out + 1, 1.0 // 0.1)
    tl.store(out + 2, sum((1, 2), 10))
    tl.store(out + 3, int("ff", 16) + int("0b11", base=0))
    tl.store(out + 4, max((), default=4))
    tl.store(out + 5, pow(3, 4, 5))
    tl.store(out + 6, len("ab" * 3))
    for i, value in enumerate((5, 6), start=1):
        tl.store(out + 6 + i, value)
    for a, b in zip((9, 10), (20, 30), strict=True):
        tl.store(out + a, b)
    tl.store(out + 11, (1 << 60) + 1 == float(1 << 60))
    tl.store(out + 12, min(3, 2, max(1, X)))


def test_builtins_of_constants(device):
    out = device.empty(13, np.float32)
    of_builtins[(1,)](out, 2.567)
    want = [round(2.567, 2), 9, 13, 258, 4, 1, 6, 5, 6, 20, 30, 0, 2]
    assert device.numpy(out).tolist() == np.array(want, np.float32).tolist()


@triton.jit
def wrong_key(out):
    tl.store(out, max(1, -9, key=abs))


@triton.jit
def wrong_lengths(out):
    for a, b in zip((1, 2), (3,), strict=True):
        tl.store(out + a, b)


@triton.jit
def wrong_power(out):
    tl.store(out, 0.0**-1)


@triton.jit
def opens_a_file(out):
    tl.store(out, len(open("/nothing")))


@triton.jit
def leaves(out):
    exit(3)


@triton.jit
def of_no_numbers(out):
    tl.store(out, tl.sum(tl.zeros((4,), tl.void)))


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (opens_a_file, "Python's `open` cannot be called in a kernel"),
        (leaves, "Python's `exit` cannot be called in a kernel"),
        (of_no_numbers, "`dtype` of tl.full must be a dtype of numbers, not dtype void"),
        (wrong_key, "`max` takes no argument named `key`"),
        (wrong_lengths, "strict=True is given 2 and 1 values"),
        (wrong_power, "cannot be raised to a negative power"),
    ],
)
def test_builtins_that_are_called_wrongly(device, kernel, message):
    with pytest.raises(triton.CompilationError, match=message):
        kernel[(1,)](device.empty(8, np.int32))


@triton.jit
def of_nan(x, out):
    a, b = tl.load(x), tl.load(x + 1)
    tl.store(out, max(a, b, propagate_nan=tl.PropagateNan.ALL))
    tl.store(out + 1, max(a, b))
    tl.store(out + 2, min(b, a, propagate_nan=tl.PropagateNan.ALL))
    tl.store(out + 3, max(a, 1.0, 2.0, propagate_nan=tl.PropagateNan.ALL))


def test_python_s_extrema_hand_on_what_to_do_with_nan(device):
    out = device.empty(4, np.float32)
    of_nan[(1,)](device.array(np.array([np.nan, 1], np.float32)), out)
    want = np.array([np.nan, 1, np.nan, np.nan], np.float32)
    assert np.array_equal(device.numpy(out), want, equal_nan=True)


@triton.jit
def of_floats(out, X: tl.constexpr, N: tl.constexpr):
    tl.store(out, f"{1e16} {1e-7} {0.0001} {X}" == "1e+16 1e-07 0.0001 0.125")
    tl.store(out + 1, f"{X:.2f} {N:>4} {N:#x} {X:{N}.1f}" == "0.12    8 0x8      0.1")
    tl.store(out + 2, f"{'a'!r} {X!s} {'b'}" == "'a' 0.125 b")
    tl.store(out + 3, f"{N=} {X=:.1f}" == "N=8 X=0.1")
    tl.store(out + 4, str(1e22) == "1e+22")


def test_f_strings_write_numbers_as_python_does(device):
    out = device.empty(5, np.int32)
    of_floats[(1,)](out, 0.125, 8)
    assert device.numpy(out).tolist() == [1] * 5


@triton.jit
def _with_rest(a, *rest, b=3):
    total = a + b
    for i in tl.static_range(len(rest)):
        total += rest[i]
    return total


@triton.jit
def calls_with_rest(out, n):
    tl.store(out, _with_rest(n, 1, 2, b=n))
    tl.store(out + 1, _with_rest(n))
    tl.store(out + 2, _with_rest(*(n, n, n)))


def test_a_helper_with_a_rest_has_defaults(device):
    out = device.empty(3, np.int32)
    calls_with_rest[(1,)](out, 5)
    assert device.numpy(out).tolist() == [13, 8, 18]
