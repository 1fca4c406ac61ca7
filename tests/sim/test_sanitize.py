"""``sanitize=True``: every finding is reported, and the launch goes on."""

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright.testing import simulate_ptx


@triton.jit
def two_wrong_loads(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    y = tl.load(y_ptr + offsets)
    tl.store(out_ptr + offsets, x + y)


def arrays():
    # Both inputs are too short by 28 elements; the output is not.
    return np.ones(100, np.float32), np.ones(100, np.float32), np.zeros(128, np.float32)


def test_without_sanitize_the_first_finding_is_an_error():
    with pytest.raises(Exception, match="out of bounds"):
        two_wrong_loads[(1,)](*arrays(), BLOCK=128)


def test_sanitize_reports_all(capfd):
    x, y, out = arrays()
    compiled = two_wrong_loads[(1,)](x, y, out, BLOCK=128, sanitize=True)
    findings = compiled.sim_report["findings"]
    assert {f["kind"] for f in findings} == {"global-bounds"}
    # One for each of the two loads, with the kernel's source line.
    assert len({f["source"]["line"] for f in findings}) == 2
    assert all(f["source"]["file"].endswith("test_sanitize.py") and f["count"] >= 1 for f in findings)
    assert "two_wrong_loads" in capfd.readouterr().err
    # What is within bounds was computed all the same.
    np.testing.assert_array_equal(out[:100], 2)


def test_sanitize_of_a_right_kernel_finds_nothing(capfd):
    x, y, out = (np.ones(128, np.float32) for _ in range(3))
    compiled = two_wrong_loads[(1,)](x, y, out, BLOCK=128, sanitize=True)
    assert compiled.sim_report["findings"] == []
    assert compiled.sim_report["counters"]["warp_instructions"] > 0
    assert capfd.readouterr().err == ""


PTX = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry scale(.param .u64 p, .param .f32 f) {
    .reg .b64 %rd<3>;
    .reg .b32 %r<2>;
    .reg .f32 %f<3>;
    ld.param.u64 %rd1, [p];
    ld.param.f32 %f1, [f];
    mov.u32 %r1, %tid.x;
    mad.wide.u32 %rd1, %r1, 4, %rd1;
    ld.global.f32 %f2, [%rd1];
    mul.f32 %f2, %f2, %f1;
    st.global.f32 [%rd1], %f2;
    ret;
}
"""


def test_simulate_ptx():
    x = np.arange(64, dtype=np.float32)
    report = simulate_ptx(PTX, "scale", 1, (64,), [x, 2.5])
    assert report["findings"] == []
    np.testing.assert_array_equal(x, np.arange(64, dtype=np.float32) * 2.5)
    report = simulate_ptx(PTX, "scale", 1, 65, [x, 1.0])
    assert [f["kind"] for f in report["findings"]] == ["global-bounds"] * 2
    with pytest.raises(TypeError, match="2 parameters"):
        simulate_ptx(PTX, "scale", 1, 64, [x])
    with pytest.raises(Exception, match="other"):
        simulate_ptx(PTX, "other", 1, 64, [x, 1.0])
