"""A kernel never runs as it was before something that it is made of changed: neither from the cache on disk, in another
process, nor in the same process."""

import os
import subprocess
import sys
import sysconfig
import textwrap
from collections import namedtuple

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright.language.extra import libdevice

# ---- another process ------------------------------------------------------------------------------------------------


class Cache:
    """Compiles pieces of source, each in a process of its own, with one cache on disk."""

    def __init__(self, folder):
        self.folder = folder

    def compile(self, source: str, signature: str = "tl.float32", **environment) -> tuple[str, bool]:
        """The PTX of ``kernel``, and whether it came from the cache."""
        file = self.folder / "kernel.py"
        header = "import os\nimport tilewright as triton\nimport tilewright.language as tl\n"
        footer = f"""
            if __name__ == "__main__":
                compiled = kernel.warmup({signature}, target="cuda:80")
                print("cached" if "ptx" not in compiled.times else "compiled")
                print(compiled.asm["ptx"])
        """
        file.write_text(header + textwrap.dedent(source) + textwrap.dedent(footer))
        environment = {"TILEWRIGHT_CACHE_DIR": str(self.folder / "cache"), **environment}
        ended = subprocess.run(
            [sys.executable, str(file)],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert ended.returncode == 0, ended.stderr
        how, _, ptx = ended.stdout.partition("\n")
        return ptx, how == "cached"


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path)


SITE = sysconfig.get_path("purelib")

KERNEL = """
    @triton.jit
    def kernel(x):
        tl.store(x, {value})
"""


def kernel_of(value: str, above: str = "") -> str:
    return textwrap.dedent(above) + "\n" + textwrap.dedent(KERNEL.format(value=value))


POINT = """
    from collections import namedtuple
    P = namedtuple("P", {fields!r})
    POINT = tl.constexpr(P(1.5, 2.5))
"""

# Each with what stands above the kernel before and after, and the value that is stored.
CHANGES = {
    "the body of a compile-time function": (
        [
            "@triton.constexpr_function\ndef f():\n    return 1.5",
            "@triton.constexpr_function\ndef f():\n    return 2.5",
        ],
        "f()",
    ),
    "a global of a compile-time function": (
        [f"N = {n}\n@triton.constexpr_function\ndef f():\n    return N" for n in (1.5, 2.5)],
        "f()",
    ),
    "a function that a compile-time function calls": (
        [
            f"def g():\n    return {n}\n@triton.constexpr_function\ndef f():\n    return g()"
            for n in (1.5, 2.5)
        ],
        "f()",
    ),
    "which library function an alias names": (["f = tl.exp", "f = tl.log2"], "f(tl.load(x))"),
    "which builtin an alias names": (["f = min", "f = max"], "f(1.5, 2.5)"),
    "an integer that becomes a float": (
        ["N = tl.constexpr(1)", "N = tl.constexpr(1.0)"],
        "tl.load(x).to(tl.int32) * 16777217 * N",
    ),
    "the last bit of a float": (
        ["N = tl.constexpr(0.1)", "N = tl.constexpr(0.10000000000000002)"],
        "(tl.load(x).to(tl.float64) * N).to(tl.float32)",
    ),
    "the names of fields": ([POINT.format(fields="a b"), POINT.format(fields="b a")], "POINT.a"),
    "what hasattr says": (
        ["class C:\n    pass", "class C:\n    FAST = True"],
        "1.5 if hasattr(C, 'FAST') else 2.5",
    ),
    "an attribute": (["class C:\n    N = 1.5", "class C:\n    N = 2.5"], "C.N"),
    "a default": (
        [f"N = {n}\n@triton.jit\ndef f(a=N):\n    return a" for n in (1.5, 2.5)],
        "f()",
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_is_seen_by_the_next_process(cache, what):
    (before, after), value = CHANGES[what]
    first, cached = cache.compile(kernel_of(value, before))
    assert not cached
    # Lines of the source stand in the code, so those of the two versions are made equal.
    pad = "\n" * (textwrap.dedent(before).count("\n") - textwrap.dedent(after).count("\n"))
    second, cached = cache.compile(kernel_of(value, textwrap.dedent(after) + pad))
    assert not cached
    assert second != first
    again, cached = cache.compile(kernel_of(value, before))
    assert cached
    assert again == first


def test_the_environment_of_a_compile_time_function(cache):
    source = kernel_of(
        "f()",
        """
        @triton.constexpr_function
        def f():
            return float(os.environ.get("VALUE", "1.5"))
        """,
    )
    first, _ = cache.compile(source, VALUE="1.5")
    second, cached = cache.compile(source, VALUE="2.5")
    assert not cached and second != first
    again, cached = cache.compile(source, VALUE="1.5")
    assert cached and again == first


def test_a_name_that_is_set_at_run_time(cache):
    source = """
    def kernel(x):
        tl.store(x, 1.5)

    kernel.__name__ = kernel.__qualname__ = os.environ["NAME"]
    kernel = triton.jit(kernel)
    """
    first, _ = cache.compile(source, NAME="one")
    second, cached = cache.compile(source, NAME="two")
    assert not cached
    assert ".entry one(" in first and ".entry two(" in second


def test_a_function_given_as_an_argument(cache):
    source = """
    @triton.jit
    def f(a):
        return a {op} 3.0

    @triton.jit
    def kernel(x, F: tl.constexpr):
        tl.store(x, F(tl.load(x)))
    """
    first, _ = cache.compile(source.format(op="+"), "tl.float32, f")
    second, cached = cache.compile(source.format(op="*"), "tl.float32, f")
    assert not cached and second != first


def test_a_wrapper_in_front_of_ptxas(cache, tmp_path):
    real = f"{SITE}/nvidia/cu13/bin/ptxas"
    if not os.path.exists(real):
        pytest.skip("no ptxas")
    wrapper = tmp_path / "ptxas"

    def write(options):
        wrapper.write_text(f'#!/bin/sh\nexec {real} {options} "$@"\n')
        wrapper.chmod(0o755)

    source = kernel_of("tl.exp(tl.load(x))")
    write("-O3")
    assert not cache.compile(source, TRITON_PTXAS_PATH=str(wrapper))[1]
    assert cache.compile(source, TRITON_PTXAS_PATH=str(wrapper))[1]
    write("-O0")
    assert not cache.compile(source, TRITON_PTXAS_PATH=str(wrapper))[1]


def test_another_libdevice(cache, tmp_path):
    real = f"{SITE}/nvidia/cu13/nvvm/libdevice/libdevice.10.bc"
    if not os.path.exists(real):
        pytest.skip("no libdevice")
    other = tmp_path / "libdevice.10.bc"
    other.write_bytes(open(real, "rb").read())
    source = kernel_of("tl.exp(tl.load(x))")
    assert not cache.compile(source)[1]
    # The same library elsewhere is the same.
    assert cache.compile(source, TRITON_LIBDEVICE_PATH=str(other))[1]
    other.write_bytes(other.read_bytes() + b"\0\0\0\0")
    assert not cache.compile(source, TRITON_LIBDEVICE_PATH=str(other))[1]


def test_what_a_kernel_does_not_read_keeps_its_entry(cache):
    source = kernel_of("1.5 * N", "N = tl.constexpr(2.0)\nOTHER = {other}\ndef unused():\n    return {other}")
    assert not cache.compile(source.format(other=1))[1]
    assert cache.compile(source.format(other=2))[1]


# ---- the same process -----------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "interp")


@triton.jit
def double(x):
    return x * 2


@triton.jit
def triple(x):
    return x * 3


@triton.jit
def calls_double(x):
    return double(x)


@triton.constexpr_function
def eight():
    return helper_of_eight() + OFFSET


def helper_of_eight():
    return 7


OFFSET = 1
ZERO = tl.constexpr(0.0)
ITEMS = tl.constexpr([1, 2])
alias = tl.exp
TABLE = {"block": 4}
Pair = namedtuple("Pair", "a b")
CALLS = []


@triton.constexpr_function
def from_table():
    CALLS.append(1)
    return TABLE["block"]


class Config:
    BLOCK = 4


@triton.jit
def uses_double(x):
    tl.store(x, calls_double(tl.load(x)))


@triton.jit
def uses_alias(x):
    tl.store(x, alias(tl.load(x).to(tl.float32)).to(tl.int32))


@triton.jit
def uses_eight(x):
    tl.store(x, eight())


@triton.jit
def uses_min(x):
    tl.store(x, min(3, 5))


@triton.jit
def uses_config(x):
    tl.store(x, Config.BLOCK)


@triton.jit
def uses_hasattr(x):
    tl.store(x, 1 if hasattr(Config, "FAST") else 2)


@triton.jit
def uses_zero(x):
    tl.store(x, (1.0 / (tl.load(x).to(tl.float32) * ZERO) < 0).to(tl.int32))


@triton.jit
def uses_items(x):
    tl.store(x, ITEMS[0])


@triton.jit
def uses_table(x):
    tl.store(x, from_table())


@triton.jit
def uses_libdevice(x):
    tl.store(x, libdevice.abs(tl.load(x)))


@triton.constexpr_function
def eight_again():
    return 9


REBINDINGS = {
    "a helper": (uses_double, "double", triple),
    "an alias": (uses_alias, "alias", tl.log2),
    "a compile-time function": (uses_eight, "eight", eight_again),
    "a function that a compile-time function calls": (uses_eight, "helper_of_eight", lambda: 3),
    "a global of a compile-time function": (uses_eight, "OFFSET", 2),
    "a dict of a compile-time function": (uses_table, "TABLE", {"block": 8}),
    "a builtin": (uses_min, "min", max),
    "the sign of zero": (uses_zero, "ZERO", tl.constexpr(-0.0)),
    "a float that becomes an integer": (uses_zero, "ZERO", tl.constexpr(0)),
    "a class": (uses_config, "Config", type("Config", (), {"BLOCK": 5})),
    "a module": (uses_libdevice, "libdevice", tl),
}


@pytest.mark.parametrize("what", REBINDINGS)
def test_rebinding_is_an_error(monkeypatch, what):
    kernel, name, value = REBINDINGS[what]
    x = np.ones(1, np.int32)
    kernel[(1,)](x)
    kernel[(1,)](x)
    with monkeypatch.context() as patch:
        patch.setitem(globals(), name, value)
        with pytest.raises(RuntimeError, match=f"'{name}'.*when the kernel was compiled and is now"):
            kernel[(1,)](x)
    kernel[(1,)](x)


def test_an_attribute_that_changes_is_an_error(monkeypatch):
    x = np.ones(1, np.int32)
    uses_config[(1,)](x)
    uses_hasattr[(1,)](x)
    with monkeypatch.context() as patch:
        patch.setattr(Config, "BLOCK", 8)
        with pytest.raises(RuntimeError, match=r"'BLOCK'.*was 4 .*is now 8"):
            uses_config[(1,)](x)
        patch.setattr(Config, "FAST", True, raising=False)
        with pytest.raises(RuntimeError, match=r"'FAST'.*was not there .*is now True"):
            uses_hasattr[(1,)](x)
    uses_config[(1,)](x)
    uses_hasattr[(1,)](x)


def test_a_list_that_changes_in_place_is_an_error():
    x = np.ones(1, np.int32)
    uses_items[(1,)](x)
    assert x[0] == 1
    ITEMS.value[0] = 5
    with pytest.raises(RuntimeError, match="'ITEMS'"):
        uses_items[(1,)](x)
    ITEMS.value[0] = 1
    uses_items[(1,)](x)


def test_a_dict_that_changes_in_place_is_an_error_if_the_result_does(monkeypatch):
    x = np.ones(1, np.int32)
    uses_table[(1,)](x)
    # Its own list has grown, and so may the table: it gives the same.
    monkeypatch.setitem(TABLE, "other", 1)
    uses_table[(1,)](x)
    monkeypatch.setitem(TABLE, "block", 8)
    with pytest.raises(RuntimeError, match="when the kernel was compiled"):
        uses_table[(1,)](x)


def test_a_definition_that_is_run_again_is_no_change(tmp_path):
    source = textwrap.dedent(
        """
        import tilewright as triton
        import tilewright.language as tl

        @triton.jit
        def helper(x, a=2):
            return x * a + size()

        @triton.constexpr_function
        def size():
            return 4
        """
    )
    kernel = textwrap.dedent(
        """
        @triton.jit
        def kernel(x):
            tl.store(x, helper(tl.load(x)))
        """
    )
    names = {"__name__": "cells"}

    def run(text, name):
        (tmp_path / name).write_text(text)
        exec(compile(text, str(tmp_path / name), "exec"), names)

    run(source, "first.py")
    run(kernel, "second.py")
    x = np.ones(1, np.int32)
    names["kernel"][(1,)](x)
    # As when a cell of a notebook is run again.
    run(source, "first.py")
    names["kernel"][(1,)](x)
    assert x[0] == 16
    run(source.replace("return 4", "return 5"), "third.py")
    with pytest.raises(RuntimeError, match="'size'"):
        names["kernel"][(1,)](x)


def test_the_closure_of_a_helper(monkeypatch):
    def make(value):
        value = tl.constexpr(value)

        @triton.jit
        def helper(x):
            return x * value

        return helper

    helper = make(2)

    @triton.jit
    def kernel(x):
        tl.store(x, helper(tl.load(x)))

    x = np.ones(1, np.int32)
    kernel[(1,)](x)
    assert x[0] == 2
    helper = make(3)
    with pytest.raises(RuntimeError, match=r"'helper'.*is now"):
        kernel[(1,)](x)
