"""``tl.target_info``: what a kernel is compiled for."""

import numpy as np

import tilewright as triton
import tilewright.language as tl
from tilewright.compiler import ASTSource


@triton.jit
def target_kernel(out_ptr):
    target: tl.constexpr = tl.target_info.current_target()
    if tl.target_info.is_cuda():
        tl.store(out_ptr, target.arch)
        tl.store(out_ptr + 1, target.warp_size)
    else:
        tl.static_assert(target is None)
        tl.store(out_ptr, -1)
        tl.store(out_ptr + 1, -1)
    if tl.target_info.is_hip() or tl.target_info.is_hip_cdna3() or tl.target_info.is_hip_cdna4():
        tl.static_assert(False)
    tl.store(out_ptr + 2, tl.target_info.cuda_capability_geq(8))
    tl.store(out_ptr + 3, tl.target_info.cuda_capability_geq(12, 1))


def test_in_kernels(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "interp")
    source = ASTSource(target_kernel, {"out_ptr": "*i32"}, {})
    for target, arch in (("cuda:90", 90), ("cuda:80", 80)):
        ptx = triton.compile(source, target=target).asm["ptx"]
        for value in (arch, 32, 1, 0):
            assert f"{value};" in ptx or f", {value}\n" in ptx
    out = np.zeros(4, np.int32)
    target_kernel[(1,)](out)
    np.testing.assert_array_equal(out, [-1, -1, 0, 0])


def test_on_the_host(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "ptxsim")
    monkeypatch.setenv("TILEWRIGHT_TARGET", "cuda:89")
    target = tl.target_info.current_target()
    assert (target.backend, target.arch, target.warp_size) == ("cuda", 89, 32)
    assert tl.target_info.is_cuda() and not tl.target_info.is_hip()
    assert tl.target_info.cuda_capability_geq(8, 9) and not tl.target_info.cuda_capability_geq(9)
