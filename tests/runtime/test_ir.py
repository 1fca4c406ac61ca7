"""A kernel's IR as Python looks at it (``triton._C.libtriton.ir``), and what else PyTorch asks about a kernel's arguments."""

from collections import namedtuple

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright._C.libtriton import ir
from tilewright._utils import find_paths_if, get_iterable_path, is_power_of_two
from tilewright.backends.compiler import BaseBackend
from tilewright.compiler import ASTSource
from tilewright.runtime.jit import ConstexprFunction, mangle_type, native_specialize_impl
from tilewright.tools.tensor_descriptor import TensorDescriptor


@triton.constexpr_function
def twice(n):
    return 2 * n


@triton.jit
def add(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for k in range(n):
        total += tl.load(x + i + k * twice(BLOCK))
    tl.store(y + i, total, mask=i < n)


SIGNATURE = {"x": "*fp32", "y": "*fp32", "n": "i32", "BLOCK": "constexpr"}


@pytest.fixture(scope="module")
def module():
    return ASTSource(add, SIGNATURE, {"BLOCK": 16}).make_ir(None, {}, {}, {}, ir.context())


def walked(module):
    found = []
    module.walk(found.append)
    return found


def test_a_module_is_walked_from_the_inside(module):
    names = [op.get_name() for op in walked(module)]
    assert names[-2:] == ["tt.func", "builtin.module"]
    assert (
        names.index("tt.load") < names.index("scf.yield") < names.index("scf.for") < names.index("tt.store")
    )
    assert module.verify() and module.has_function("add") and not module.has_function("sub")


def test_what_a_store_writes_to_is_found_backwards(module):
    """As PyTorch does it: from the operand of the store to the function's argument."""
    operations = walked(module)
    made = {op.get_result(i).id(): op for op in operations for i in range(op.get_num_results())}
    function = next(op for op in operations if op.get_name() == "tt.func")
    assert function.get_str_attr("sym_name") == "add"
    body = next(op for op in operations if op.get_name() == "tt.return").get_block()
    assert body.get_parent().id() == function.get_region(0).id()
    arguments = [body.get_argument(i).id() for i in range(body.get_num_arguments())]
    assert len(arguments) == 3 and body.get_argument(0).get_type() == "!tt.ptr<f32>"

    def source(value):
        while value.id() in made:
            value = made[value.id()].get_operand(0)
        return arguments.index(value.id())

    assert [source(op.get_operand(0)) for op in operations if op.get_name() == "tt.store"] == [1]
    loop = next(op for op in operations if op.get_name() == "scf.for")
    inside = next(op for op in operations if op.get_name() == "scf.yield").get_block()
    assert loop.get_num_regions() == 1 and inside.get_parent().id() == loop.get_region(0).id()
    assert inside.get_parent().get_parent_region().id() == body.get_parent().id()
    # The induction variable and what the loop carries.
    assert inside.get_num_arguments() == loop.get_num_operands() - 2


def test_text_becomes_a_module_and_text_again(module, tmp_path):
    path = tmp_path / "add.ttir"
    path.write_text(str(module))
    again = ir.parse_mlir_module(str(path), ir.context())
    assert str(again) == str(module)
    ir.load_dialects(ir.context())
    with pytest.raises(triton.TilewrightError, match="broken"):
        ir.module("broken {", "broken.ttir")
    with pytest.raises(IndexError, match="no operand 7"):
        walked(again)[0].get_operand(7)


def test_attributes_by_kind():
    module = ir.module("""
        tt.func @f(%x: tensor<4xf32>) -> tensor<4xf32> attributes {noinline = true} {
          %0 = tt.elementwise_inline_asm "mov.b32 $0, $1;" {constraints = "=r,r", packed_element = 1 : i32, pure = true} %x : tensor<4xf32> -> tensor<4xf32>
          tt.return %0 : tensor<4xf32>
        }
        tt.func @g(%x: tensor<4xf32>) -> tensor<4xf32> {
          %0 = tt.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
          tt.return %0 : tensor<4xf32>
        }
    """)
    by_name = {op.get_name(): op for op in walked(module)}
    asm, call = by_name["tt.elementwise_inline_asm"], by_name["tt.call"]
    assert asm.get_bool_attr("pure") is True and asm.get_int_attr("packed_element") == 1
    assert asm.get_str_attr("constraints") == "=r,r" and asm.get_str_attr("pure") is None
    assert call.get_flat_symbol_ref_attr("callee") == "f" and call.get_flat_symbol_ref_attr("nothing") is None


def test_a_descriptor_is_an_address_extents_and_strides():
    @triton.jit
    def copy(d, y):
        tl.store(y + tl.arange(0, 32), d.load([0, 0]).reshape(32))

    source = ASTSource(copy, {"d": "tensordesc<fp16[2, 16]>", "y": "*fp16"})
    body = next(op for op in walked(source.make_ir(None, {}))).get_block()
    types = [body.get_argument(i).get_type() for i in range(body.get_num_arguments())]
    assert types == ["!tt.ptr<f16>", "i32", "i32", "i64", "i64", "!tt.ptr<f16>"]


class Backend(BaseBackend):
    """One with a word of its own."""

    @staticmethod
    def get_int_specialization(arg, **kwargs):
        return "S" if arg < 100 else ""


def test_what_is_known_of_an_argument():
    def known(arg, *flags, backend=BaseBackend):
        return native_specialize_impl(backend, arg, *(flags or (False, True, True)))

    x = np.zeros(64, np.float16)[:32]
    assert known(None) == ("constexpr", None)
    assert known(1) == ("constexpr", 1) and known(1, False, False, False) == ("i32", None)
    assert (
        known(32) == ("i32", "D")
        and known(33) == ("i32", "")
        and known(32, False, True, False) == ("i32", "")
    )
    assert known(2**31) == ("i64", "D") and known(2**63) == ("u64", "D") and known(True) == ("u1", None)
    assert known(2.5) == ("fp32", None) and known((16, (1, 3))) == (
        ("i32", ("constexpr", "i32")),
        ("D", (1, "")),
    )
    assert known(7, backend=Backend) == ("i32", "S")
    assert known(add) == ("constexpr", add.cache_key) and known(twice) == ("constexpr", twice.cache_key)
    assert known(tl.float16) == ("*fp16", "")
    Point = namedtuple("Point", "x y")
    assert known(Point(16, 1)) == (Point("i32", "constexpr"), Point("D", 1))
    assert mangle_type(x) == "*fp16" and native_specialize_impl(BaseBackend, x, True, False, False) == (
        "*kfp16",
        None,
    )
    descriptor = TensorDescriptor.from_tensor(np.zeros((8, 16), np.float32), [4, 16])
    assert known(descriptor) == ("tensordesc<fp32[4, 16]>", None)


def test_paths_in_nested_tuples():
    nested = ("D", ("", "D", [3, "D"]))
    paths = find_paths_if(nested, lambda path, item: item == "D")
    assert paths == [(0,), (1, 1), (1, 2, 1)]
    assert [get_iterable_path(nested, path) for path in paths] == ["D"] * 3
    assert [n for n in range(10) if is_power_of_two(n)] == [0, 1, 2, 4, 8]


def test_a_constexpr_function_is_an_object_with_its_source():
    assert isinstance(twice, ConstexprFunction) and triton.constexpr_function(twice) is twice
    assert twice(4) == 8 and twice(tl.constexpr(4)) == 8 and twice(n=tl.constexpr(4)) == 8
    assert twice.src == "def twice(n):\n    return 2 * n\n" and twice.starting_line_number == 18
    assert len(twice.cache_key) == 64 and twice.__globals__ is globals()

    class Sizes:
        @triton.constexpr_function
        def plus(self, n):
            return n + 1

    assert Sizes().plus(tl.constexpr(2)) == 3


def test_a_kernels_digest_follows_its_constexpr_functions():
    before = add.cache_key
    kept, globals()["twice"] = twice, triton.constexpr_function(lambda n: 3 * n)
    try:
        assert triton.jit(add.fn).cache_key != before
    finally:
        globals()["twice"] = kept
    assert triton.jit(add.fn).cache_key == before
