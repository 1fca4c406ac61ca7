"""``tilewright.tools.mxfp``: what each code means, and what each number becomes."""

import pytest

torch = pytest.importorskip("torch")

from tilewright.tools.mxfp import MXFP4Tensor, MXScaleTensor  # noqa: E402


def test_elements():
    every = MXFP4Tensor(size=16)
    every.data = torch.arange(16, dtype=torch.uint8)
    values = every.to(torch.float32)
    assert values[:8].tolist() == [0, 0.5, 1, 1.5, 2, 3, 4, 6] and torch.equal(values[8:], -values[:8])
    # Every element is its own nearest.
    assert torch.equal(MXFP4Tensor(values).data, every.data)
    halves = torch.tensor(
        [0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, -0.25, 0.26, 7.0, float("inf"), -float("inf"), float("nan")]
    )
    nearest = MXFP4Tensor(halves).to(torch.float32)
    assert nearest.tolist() == [0, 1, 1, 2, 2, 4, 4, 0, 0.5, 6, 6, -6, 6]
    with pytest.raises(ValueError, match="float32"):
        every.to(torch.float16)
    with pytest.raises(ValueError, match="either"):
        MXFP4Tensor()


@pytest.mark.parametrize("shape, dim", [((4, 6), 0), ((4, 6), 1), ((3, 5), 0), ((3, 5), 1), ((2, 3, 7), 2)])
def test_packing(shape, dim):
    x = MXFP4Tensor(size=shape).random()
    packed = x.to_packed_tensor(dim)
    assert packed.dtype == torch.uint8 and packed.shape[dim] == (shape[dim] + 1) // 2
    first = [0] * len(shape)
    second = [1 if d == dim else 0 for d in range(len(shape))]
    assert packed[tuple(first)] == x.data[tuple(first)] | x.data[tuple(second)] << 4
    assert torch.equal(x.unpack_packed_tensor(packed, dim, shape), x.data)


def test_scales():
    x = MXScaleTensor(size=(100,)).random(low=0.25, high=8.0)
    values = x.to(torch.float32)
    assert values.min() >= 0.25 and values.max() <= 8 and torch.equal(MXScaleTensor(values).data, x.data)
    given = torch.tensor([1.0, 1.9, 2.0, 3.0, 0.7, 0.0, -1.0, float("nan"), float("inf")])
    assert MXScaleTensor(given).data.tolist() == [127, 127, 128, 128, 126, 255, 255, 255, 255]
    edges = MXScaleTensor(size=2)
    edges.data = torch.tensor([0, 254], dtype=torch.uint8)
    assert edges.to(torch.float32).tolist() == [2.0**-127, 2.0**127]
    assert torch.isnan(MXScaleTensor(given).to(torch.float32)[5:]).all()
    with pytest.raises(ValueError, match="above high"):
        MXScaleTensor(size=1).random(low=8, high=1)
