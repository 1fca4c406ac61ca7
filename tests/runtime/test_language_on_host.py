"""`tilewright.language` as Python sees it: what may be used outside of kernels, and what says why not."""

import pickle
import subprocess
import sys

import pytest

import tilewright.language as tl


def test_functions_say_that_they_belong_into_kernels():
    for function in (tl.load, tl.sum, tl.exp, tl.philox, tl.extra.libdevice.tanh):
        with pytest.raises(RuntimeError, match="inside a kernel"):
            function(1)


def test_every_exported_name_exists_and_functions_are_documented():
    for name in tl.__all__:
        value = getattr(tl, name)
        if callable(value) and not isinstance(value, tl.dtype):
            assert value.__doc__, name


def test_constexpr_computes():
    n = tl.constexpr(6)
    assert (n + 1).value == 7 and (2 * n).value == 12 and (n // 4).value == 1 and (-n).value == -6
    assert (
        (n == 6).value is True
        and bool(n > 7) is False
        and int(n) == 6
        and list(range(n)) == [0, 1, 2, 3, 4, 5]
    )
    assert tl.constexpr(tl.constexpr(3)).value == 3


@pytest.mark.parametrize(
    "dtype,name,bits,short",
    [
        (tl.float16, "fp16", 16, "fp16"),
        (tl.bfloat16, "bf16", 16, "bf16"),
        (tl.int1, "int1", 1, "i1"),
        (tl.uint8, "uint8", 8, "u8"),
        (tl.int64, "int64", 64, "i64"),
        (tl.float8e4nv, "fp8e4nv", 8, "fp8e4nv"),
    ],
)
def test_dtypes(dtype, name, bits, short):
    assert (dtype.name, dtype.primitive_bitwidth, dtype.short_name, str(dtype)) == (name, bits, short, name)
    assert dtype.is_floating() != dtype.is_int()
    assert pickle.loads(pickle.dumps(dtype)) == dtype and len({dtype, tl.dtype(name)}) == 1
    pointer = tl.pointer_type(dtype)
    assert pointer.is_ptr() and pointer.element_ty == dtype and pointer != dtype
    assert pickle.loads(pickle.dumps(pointer)) == pointer


def test_unknown_dtype():
    with pytest.raises(ValueError, match="unknown dtype 'fp17'"):
        tl.dtype("fp17")


def test_import_needs_neither_numpy_nor_torch():
    code = "import sys, tilewright.language; sys.exit(bool({'numpy', 'torch'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
