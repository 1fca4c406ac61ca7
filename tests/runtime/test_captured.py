"""What a kernel reads from its surroundings."""

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl

WRAPPED = tl.constexpr(3)
ANNOTATED: tl.constexpr = 4
PLAIN = 5


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "interp")


@triton.jit
def add_wrapped(x):
    return x + WRAPPED


@triton.jit
def uses_constants(x):
    tl.store(x, add_wrapped(tl.load(x)) * ANNOTATED)


@triton.jit
def uses_plain(x):
    tl.store(x, PLAIN)


def test_constants_of_the_module():
    x = np.ones(1, np.int32)
    uses_constants[(1,)](x)
    assert x[0] == 16


def test_a_plain_global_is_an_error():
    with pytest.raises(triton.CompilationError, match="PLAIN"):
        uses_plain[(1,)](np.ones(1, np.int32))


def test_a_changed_constant_is_an_error(monkeypatch):
    x = np.ones(1, np.int32)
    uses_constants[(1,)](x)
    with monkeypatch.context() as patch:
        patch.setitem(globals(), "WRAPPED", tl.constexpr(30))
        with pytest.raises(RuntimeError, match=r"'WRAPPED'.*constexpr.3.*is now constexpr.30"):
            uses_constants[(1,)](x)
        # An equal value in another object is no change.
        patch.setitem(globals(), "WRAPPED", tl.constexpr(3))
        uses_constants[(1,)](x)
    with monkeypatch.context() as patch:
        patch.delitem(globals(), "ANNOTATED")
        with pytest.raises(RuntimeError, match=r"'ANNOTATED'.*is gone"):
            uses_constants[(1,)](x)


def test_a_constant_with_another_value_is_an_error(monkeypatch):
    x = np.ones(1, np.int32)
    uses_constants[(1,)](x)
    monkeypatch.setattr(WRAPPED, "value", 30)
    with pytest.raises(
        RuntimeError, match=r"global variable 'WRAPPED'.*was constexpr.3.*is now constexpr.30"
    ):
        uses_constants[(1,)](x)


def test_closures():
    def make(value, function):
        @triton.jit
        def kernel(x):
            tl.store(x, function(tl.load(x)) * value)

        return kernel

    x = np.ones(1, np.int32)
    make(tl.constexpr(2), add_wrapped)[(1,)](x)
    assert x[0] == 8
    make(tl.constexpr(3), add_wrapped)[(1,)](x)
    assert x[0] == 33


def test_an_exception_in_a_compile_time_function_is_shown():
    @triton.constexpr_function
    def broken(n):
        raise ZeroDivisionError("my message")

    @triton.jit
    def kernel(x, N: tl.constexpr):
        tl.store(x, broken(N))

    with pytest.raises(triton.CompilationError, match="ZeroDivisionError: my message"):
        kernel[(1,)](np.ones(1, np.int32), N=3)


def test_a_compile_time_function_gets_and_gives_values():
    @triton.constexpr_function
    def product(values, scale=1):
        result = scale
        for v in values:
            result *= v
        return result

    @triton.jit
    def kernel(x, SHAPE: tl.constexpr):
        tl.store(x, product(SHAPE, scale=2))

    x = np.ones(1, np.int32)
    kernel[(1,)](x, SHAPE=(3, 5))
    assert x[0] == 30
