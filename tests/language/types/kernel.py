"""What a type checker knows of kernels. A line with ``# error: CODE`` is wrong on purpose, every other one is right."""

from typing import assert_type

import tilewright.language as tl


def kernel(x_ptr: tl.const, y_ptr: tl.tensor, n: tl.tensor, BLOCK: tl.constexpr) -> None:
    pid = tl.program_id(0)
    assert_type(pid, tl.tensor)
    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    assert_type(offsets, tl.tensor)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0, cache_modifier=".cg")
    assert_type(x, tl.tensor)
    assert_type(x.to(tl.float16), tl.tensor)
    assert_type(x.sum(axis=0), tl.tensor)
    assert_type(x.dtype, tl.dtype)
    assert_type(x.dtype.is_floating(), bool)
    assert_type(BLOCK * 2, tl.constexpr)
    assert_type(BLOCK * x, tl.tensor)
    assert_type(tl.max(x, 0), tl.tensor)
    assert_type(tl.max(x, 0, return_indices=True), tuple[tl.tensor, tl.tensor])
    assert_type(tl.reshape(x, (2, BLOCK // 2)).split(), tuple[tl.tensor, tl.tensor])
    assert_type(tl.where(mask, x, 0.0)[:, None], tl.tensor)
    assert_type(tl.zeros((BLOCK, 16), tl.float32), tl.tensor)
    assert_type(tl.dot_scaled(x, x, "e4m3", x, None, "bf16"), tl.tensor)
    assert_type(tl.randn4x(7, offsets), tuple[tl.tensor, tl.tensor, tl.tensor, tl.tensor])
    assert_type(tl.store(y_ptr + offsets, tl.exp(x) / 2, mask=mask), None)
    for i in tl.range(0, n, BLOCK, num_stages=3):
        assert_type(i, tl.tensor)
    for k in range(pid, n, BLOCK):
        assert_type(tl.load(x_ptr + k), tl.tensor)
    for j in tl.static_range(4):
        assert_type(j, tl.constexpr)
    desc = tl.make_tensor_descriptor(x_ptr, [n, n], [n, 1], [16, 16])
    assert_type(desc, tl.tensor_descriptor)
    assert_type(desc.load([0, 0]), tl.tensor)
    assert_type(desc.store([0, pid], x), None)


def wrong(x: tl.tensor) -> None:
    tl.arange(0)  # error: call-arg
    tl.arange("0", 8)  # error: arg-type
    tl.load(x, masc=x)  # error: call-arg
    tl.load(x, cache_modifier=3)  # error: arg-type
    tl.full((2, 2), 0, "float32")  # error: arg-type
    tl.sum(x, axis="rows")  # error: arg-type
    x.sumup(0)  # error: attr-defined
    x.to(dtype=16)  # error: arg-type
    tl.dot(x)  # error: call-arg
    tl.lode(x)  # error: attr-defined
    tl.range(0, 8, stages=3)  # error: call-arg
    tl.float32.is_float()  # error: attr-defined
    tl.store_tensor_descriptor(x, [0, 0], x)  # error: arg-type
    text: str = tl.exp(x)  # error: assignment
    del text
