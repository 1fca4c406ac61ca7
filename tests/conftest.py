"""What tests in several folders share."""

import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright.language import core

LIBRARY = """
define double @axpy(double %a, double %x, i32 %n) {
  %p = fmul double %a, %x
  %d = sitofp i32 %n to double
  %r = fadd double %p, %d
  %s = call double @__nv_sqrt(double %r)
  ret double %s
}
define i32 @twice(i32 %x) {
  %r = shl i32 %x, 1
  ret i32 %r
}
declare double @__nv_sqrt(double)
"""


@pytest.fixture
def library(tmp_path):
    path = tmp_path / "library.ll"
    path.write_text(LIBRARY)
    return str(path)


@pytest.fixture
def kernel_of():
    """Makes a kernel that calls the functions of such a library, by its path."""

    def make(path):
        path = tl.constexpr(path)

        @core.extern
        def axpy(a, x, n, _semantic=None):
            return core.extern_elementwise(
                "mine",
                path,
                [a, x, n],
                {(core.float64, core.float64, core.int32): ("axpy", core.float64)},
                is_pure=True,
                _semantic=_semantic,
            )

        @core.extern
        def twice(x, _semantic=None):
            return core.extern_elementwise(
                "mine", path, [x], {(core.int32,): ("twice", core.int32)}, is_pure=True, _semantic=_semantic
            )

        @triton.jit
        def kernel(x, n, out):
            at = tl.arange(0, 32)
            y = axpy(tl.load(x + at)[:, None], tl.load(x + tl.arange(0, 4))[None, :], tl.load(n))
            tl.store(out + at, tl.sum(y, 1) + twice(at))

        return kernel

    return make
