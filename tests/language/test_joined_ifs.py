"""What follows an `if` both sides of which may return or go on, where the sides leave what does not meet: a buffer, a descriptor, another constant."""

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
import tilewright.tle as tle


@triton.jit
def buffers_kernel(out_ptr, a, b):
    at = tl.arange(0, 16)
    buffer = tle.gpu.alloc([2, 16], dtype=tl.int32)
    buffer.store(tl.arange(0, 2)[:, None] * 100 + at[None, :])
    if a > 0:
        if b > 0:
            return
        part = buffer.subslice(1, 1, dim=0)
    else:
        part = buffer.subslice(0, 1, dim=0)
    tl.store(out_ptr + at[None, :], part.load())


@triton.jit
def descriptors_kernel(x_ptr, out_ptr, a, b):
    if a > 0:
        if b > 0:
            return
        x = tl.make_tensor_descriptor(x_ptr, [4, 16], [16, 1], [1, 16])
        row = 3
    else:
        x = tl.make_tensor_descriptor(x_ptr + 16, [3, 16], [16, 1], [1, 16])
        row = 0
    tl.store(out_ptr + tl.arange(0, 16)[None, :], x.load([row, 0]))


@triton.jit
def masks_kernel(out_ptr, a, b):
    at = tl.arange(0, 16)
    mask = None
    if a > 0:
        if b > 0:
            return
        mask = at < 5
    if b > 5:
        return
    tl.store(out_ptr + at, at + 1, mask=mask)


CASES = [(0, 0), (0, 1), (1, 0), (1, 1), (0, 9)]


@pytest.mark.parametrize(("a", "b"), CASES)
def test_buffers(device, a, b):
    out = device.array(np.full(16, -1, np.int32))
    buffers_kernel[(1,)](out, a, b)
    want = np.full(16, -1) if a and b else np.arange(16) + 100 * a
    np.testing.assert_array_equal(device.numpy(out), want)


@pytest.mark.parametrize(("a", "b"), CASES)
def test_descriptors(device, a, b):
    x = np.arange(64, dtype=np.float32).reshape(4, 16)
    out = device.array(np.full(16, -1, np.float32))
    descriptors_kernel[(1,)](device.array(x), out, a, b)
    want = np.full(16, -1) if a and b else x[3 if a else 1]
    np.testing.assert_array_equal(device.numpy(out), want)


@pytest.mark.parametrize(("a", "b"), CASES)
def test_constants(device, a, b):
    out = device.array(np.full(16, -1, np.int32))
    masks_kernel[(1,)](out, a, b)
    at = np.arange(16)
    want = np.full(16, -1) if (a and b) or b > 5 else np.where((at < 5) | (a == 0), at + 1, -1)
    np.testing.assert_array_equal(device.numpy(out), want)
