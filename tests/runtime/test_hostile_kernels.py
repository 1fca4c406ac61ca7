"""What LLVM would end the process over, and what nests without end, raises instead; and odd names compile."""

import sys
import textwrap

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl


@pytest.fixture(autouse=True)
def simulated(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "ptxsim")


@triton.jit
def asm_kernel(
    x_ptr,
    y_ptr,
    ASM: tl.constexpr,
    CONSTRAINTS: tl.constexpr,
    PACK: tl.constexpr,
    OUT: tl.constexpr,
    N: tl.constexpr,
):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.store(
        y_ptr + i,
        tl.inline_asm_elementwise(ASM, CONSTRAINTS, [x], dtype=OUT, is_pure=True, pack=PACK),
    )


def run_asm(asm, constraints, pack=1, n=64, dtype=np.int32, out=tl.int32):
    x, y = np.arange(n).astype(dtype), np.zeros(n, dtype)
    asm_kernel[(1,)](x, y, asm, constraints, pack, out, n)
    return x, y


@pytest.mark.parametrize(
    "asm,constraints,wrong",
    [
        ("mov.b32 $0, $1;", "=Q,r", "constraint `=Q`"),
        ("mov.b32 $0, $1;", "=m,r", "constraint `=m`"),
        ("mov.b32 $0, $1;", "=r", "0 operands, but there are 1"),
        ("mov.b32 $0, $1;", "=r,r,r", "2 operands, but there are 1"),
        ("mov.b32 $0, $1;", "", "0 results, but there are 1"),
        ("mov.b32 $0, $1;", "=r,é", "constraint `é`"),
        ("mov.b32 $0, $9;", "=r,r", "`\\$9` is no operand"),
        ("mov.b32 $0, $;", "=r,r", "`\\$;` is no operand"),
        ("mov.b32 $0, ${1:w};", "=r,r", "no operand"),
        ("mov.b32 $0, ${1;", "=r,r", "closing brace"),
        ("mov.b32 $0, $1;", "=h,r", "no register"),
        ("mov.b32 $0, $1;", "=d,r", "no register"),
        ("mov.b32 $0, $1;", "=r,1", "no result"),
    ],
)
def test_wrong_assembly_is_an_error_at_its_line(asm, constraints, wrong):
    with pytest.raises(triton.CompilationError, match=wrong) as caught:
        run_asm(asm, constraints)
    assert "tl.inline_asm_elementwise(ASM" in str(caught.value)


@pytest.mark.parametrize("pack", [0, -1, 1 << 40])
def test_wrong_pack(pack):
    with pytest.raises(triton.CompilationError, match="pack"):
        run_asm("mov.b32 $0, $1;", "=r,r", pack)


def test_packs_that_do_not_fill_registers():
    with pytest.raises(triton.CompilationError, match="do not fill registers"):
        run_asm("mov.b32 $0, $1;", "=r,r", pack=3, dtype=np.int8, out=tl.int8)


@pytest.mark.parametrize("n", [16, 64, 96, 128, 160, 512])
def test_packs_larger_than_what_a_thread_holds(n):
    """Four warps share the elements: the last pack of a thread may be partly, or mostly, padding."""
    x, y = run_asm("not.b32 $0, $1;", "=r,r", pack=4, n=n, dtype=np.int8, out=tl.int8)
    np.testing.assert_array_equal(y, ~x)
    words = "; ".join(f"add.s32 ${i}, ${i + 4}, 1" for i in range(4)) + ";"
    x, y = run_asm(words, "=r,=r,=r,=r,r,r,r,r", pack=4, n=n)
    np.testing.assert_array_equal(y, x + 1)


@pytest.mark.parametrize("name", ["größe", "核", "_", "__", "global_smem", "WARP_SZ", "vprintf", "__nv_sin"])
def test_odd_names_compile(tmp_path, monkeypatch, name):
    source = f"""
        import tilewright as triton
        import tilewright.language as tl

        @triton.jit
        def {name}(länge, x_ptr, N: tl.constexpr):
            tl.device_print("x", länge)
            tl.store(x_ptr + tl.arange(0, N), länge + tl.sum(tl.arange(0, N)))
    """
    (tmp_path / "naïve_module.py").write_text(textwrap.dedent(source))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "naïve_module", raising=False)
    kernel = getattr(__import__("naïve_module"), name)
    x = np.zeros(32, np.int32)
    kernel[(1,)](7, x, N=32)
    np.testing.assert_array_equal(x, 7 + 31 * 16)


@triton.jit
def constant_kernel(x_ptr, VALUE: tl.constexpr):
    tl.static_print(VALUE)


def nested(wrap, innermost, levels=100_000):
    for _ in range(levels):
        innermost = wrap(innermost)
    return innermost


def test_endless_nesting_is_an_error():
    x = np.zeros(1, np.int32)
    itself = []
    itself.append(itself)
    deep = nested(lambda inner: (inner,), 1)
    for value in (itself, deep):
        with pytest.raises((RecursionError, triton.CompilationError)):
            constant_kernel[(1,)](x, VALUE=value)
    with pytest.raises((RecursionError, triton.CompilationError)):
        constant_kernel[(1,)](deep, VALUE=1)


@triton.jit
def pointer_kernel(x_ptr, N: tl.constexpr):
    ty: tl.constexpr = tl.int8
    for _ in tl.static_range(N):
        ty: tl.constexpr = tl.pointer_type(ty)
    tl.store(x_ptr, tl.load(x_ptr).to(tl.int64).to(ty).to(tl.int64).to(tl.int32))


def test_pointers_to_pointers():
    x = np.array([5], np.int32)
    pointer_kernel[(1,)](x, N=20)
    assert x[0] == 5
    with pytest.raises(triton.CompilationError, match="nested"):
        pointer_kernel[(1,)](x, N=100)
