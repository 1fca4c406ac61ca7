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
