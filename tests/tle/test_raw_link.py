"""`tle.raw` with libraries: PTX that is put beside, and LTO-IR that nvJitLink links."""

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright import tle
from tilewright.tle.raw import InOut, Input, dialect
from tilewright.tle.raw.languages import _libraries, _nvjitlink, _nvrtc

SOURCE = """
    extern "C" __device__ float helper(float x);
    extern "C" __device__ void through(float* x, int n) {
      float own = x[n - 1 - threadIdx.x];
      __syncthreads();
      x[threadIdx.x] = helper(own);
    }
"""

LIBRARY = """
__device__ float table[2] = {1.0f, 2.0f};
extern "C" __device__ float helper(float x) {
  return x * x + table[x > 0.0f];
}
"""


def declared(**options):
    @dialect(name="cuda", source=SOURCE, extern_func_name="through", **options)
    def through(x: InOut["memref<?xf32, 3>"], n: Input["i32"]): ...

    return through


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    folder = tmp_path_factory.mktemp("libraries")
    (folder / "lib.ptx").write_text(_nvrtc.compile(LIBRARY, "lib.cu", "80", ["-lineinfo"]))
    (folder / "lib.ltoir").write_bytes(_nvrtc.compile(LIBRARY, "lib.cu", "80", ["-lineinfo"], lto=True))
    return folder


def run(native, function):
    @triton.jit
    def kernel(x_ptr, call: tl.constexpr):
        at = tl.arange(0, 128)
        x = tl.load(x_ptr + at)
        tle.raw.call(call, [x, 128])
        tl.store(x_ptr + at, x)

    x = np.linspace(-1, 1, 128).astype(np.float32)
    out = native.array(x.copy())
    compiled = kernel[(1,)](out, function)
    back = x[::-1]
    np.testing.assert_allclose(native.numpy(out), back * back + np.where(back > 0, 2, 1), rtol=1e-6)
    return compiled.asm["ptx"]


def test_ptx(native, libraries):
    ptx = run(native, declared(library=libraries / "lib.ptx"))
    assert "call" in ptx and "lib.cu" in ptx


def test_lto(native, libraries):
    ptx = run(native, declared(library=[libraries / "lib.ltoir"]))
    # It is inlined, over the boundary of the files.
    assert "call" not in ptx and "lib.cu" in ptx


def test_the_linker_for_one_source(native):
    source = SOURCE.replace(
        "float helper(float x);", "float helper(float x) { return x * x + (x > 0.0f ? 2.0f : 1.0f); }"
    )

    @dialect(name="cuda", source=source, extern_func_name="through", link="nvjitlink")
    def through(x: InOut["memref<?xf32, 3>"], n: Input["i32"]): ...

    assert "call" not in run(native, through)


def compiled(**options):
    function = declared(**options)
    return function.module.compile(function, "cuda:80")


def test_what_is_wrong(libraries, monkeypatch, tmp_path):
    with pytest.raises(
        ValueError, match=r"through\.cu calls helper, which no `library` of `through` defines"
    ):
        compiled()
    with pytest.raises(ValueError, match="calls helper, which no `library`"):
        compiled(link="nvjitlink")
    with pytest.raises(
        ValueError, match=r"a library of CUDA functions ends in one of \.ptx, \.ltoir, .*, not 'lib\.bc'"
    ):
        declared(library="lib.bc")
    with pytest.raises(ValueError, match="`link` of a function in CUDA is \"nvjitlink\", not 'ld'"):
        declared(link="ld")
    with pytest.raises(ValueError, match="LTO-IR for nvJitLink is made by compiler='nvrtc', not 'nvcc'"):
        declared(library="lib.ltoir", compiler="nvcc")
    with pytest.raises(FileNotFoundError, match=r"the library .*none\.ltoir of `through` is not there"):
        compiled(library=tmp_path / "none.ltoir")
    (tmp_path / "bad.ltoir").write_bytes(b"no LTO-IR")
    with pytest.raises(RuntimeError, match=r"nvJitLink (refuses|cannot link)"):
        compiled(library=tmp_path / "bad.ltoir")
    monkeypatch.setattr(_libraries, "load", lambda name, folder: None)
    with pytest.raises(
        RuntimeError, match="there is no nvJitLink, which links `f`: pip install nvidia-nvjitlink"
    ):
        _nvjitlink.link([], "80", "`f`")
