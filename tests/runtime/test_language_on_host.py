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
    assert n.logical_and(0).value == 0 and n.logical_or(tl.constexpr(0)).value == 6
    # An element is what it is, and no constexpr.
    assert type(tl.constexpr([1, 2])[tl.constexpr(1)]) is int
    assert (n + 1).value == 7 and (2 * n).value == 12 and (n // 4).value == 1 and (-n).value == -6
    assert (
        (n == 6).value is True
        and bool(n > 7) is False
        and int(n) == 6
        and list(range(n)) == [0, 1, 2, 3, 4, 5]
    )
    assert tl.constexpr(tl.constexpr(3)).value == 3
    assert n.type == tl.constexpr(6).type != tl.constexpr(5).type


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


INTEGERS = [tl.int1, tl.int8, tl.int16, tl.int32, tl.int64, tl.uint8, tl.uint16, tl.uint32, tl.uint64]
FLOATS = [tl.float8e5, tl.float8e5b16, tl.float8e4nv, tl.float8e4b8, tl.float8e4b15]
FLOATS += [tl.float16, tl.bfloat16, tl.float32, tl.float64]


def test_what_a_dtype_says_of_itself():
    questions = [f"is_{name}" for name in "int1 int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()]
    questions += [f"is_{d.name}" for d in FLOATS]
    for dtype in INTEGERS + FLOATS:
        assert [q for q in questions if getattr(dtype, q)()] == [f"is_{dtype.name}"]
        assert not dtype.is_const() and not dtype.is_tuple() and tl.dtype.is_dtype(dtype.name)
        assert getattr(tl, dtype.codegen_name()) == dtype
    assert not tl.dtype.is_dtype("fp31") and tl.dtype.is_dtype("void")
    kind = tl.dtype.KIND
    assert [d.kind() for d in (tl.int1, tl.uint8, tl.bfloat16)] == [
        kind.BOOLEAN,
        kind.INTEGRAL,
        kind.FLOATING,
    ]
    assert kind.BOOLEAN.value < kind.INTEGRAL.value < kind.FLOATING.value
    assert (tl.int8.get_int_min_value(), tl.int8.get_int_max_value()) == (-128, 127)
    assert (tl.uint64.get_int_min_value(), tl.uint64.get_int_max_value()) == (0, 2**64 - 1)
    assert tl.int32.int_signedness == tl.dtype.SIGNEDNESS.SIGNED
    assert tl.uint16.int_signedness == tl.dtype.SIGNEDNESS.UNSIGNED
    assert (tl.float8e4nv.exponent_bias, tl.float16.exponent_bias, tl.bfloat16.exponent_bias) == (7, 15, 127)
    for wrong in (tl.float32.get_int_max_value, tl.void.kind, tl.pi32_t.kind, tl.pi32_t.get_int_min_value):
        with pytest.raises(TypeError):
            wrong()
