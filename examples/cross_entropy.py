"""Cross entropy of logits and labels, forward and backward: neither keeps the probabilities."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def cross_entropy_forward_kernel(x_ptr, label_ptr, loss_ptr, lse_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * n_cols
    # The largest logit so far, and the sum of exponentials relative to it.
    largest = -float("inf")
    total = 0.0
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
        now = tl.maximum(largest, tl.max(x, axis=0))
        total = total * tl.exp(largest - now) + tl.sum(tl.exp(x - now), axis=0)
        largest = now
    lse = largest + tl.log(total)
    chosen = tl.load(x_ptr + tl.load(label_ptr + row)).to(tl.float32)
    tl.store(lse_ptr + row, lse)
    tl.store(loss_ptr + row, lse - chosen)


@triton.jit
def cross_entropy_backward_kernel(x_ptr, label_ptr, lse_ptr, dloss_ptr, dx_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=-float("inf")).to(tl.float32)
    p = tl.exp(x - tl.load(lse_ptr + row))
    p = tl.where(cols == tl.load(label_ptr + row), p - 1.0, p)
    dx = p * tl.load(dloss_ptr + row)
    tl.store(dx_ptr + row * n_cols + cols, dx.to(dx_ptr.dtype.element_ty), mask=mask)


def cross_entropy(x, label, loss, lse, block: int = 4096, num_warps: int = 4) -> None:
    """loss[i] = log(sum(exp(x[i, :]))) - x[i, label[i]]; ``lse`` keeps the logarithm for the way back."""
    n_rows, n_cols = x.shape
    cross_entropy_forward_kernel[(n_rows,)](x, label, loss, lse, n_cols, BLOCK=block, num_warps=num_warps)


def cross_entropy_backward(x, label, lse, dloss, dx, block: int = 4096, num_warps: int = 4) -> None:
    """dx[i, j] = dloss[i] * (softmax(x[i, :])[j] - [j == label[i]])."""
    n_rows, n_cols = x.shape
    cross_entropy_backward_kernel[(n_rows, triton.cdiv(n_cols, block))](
        x, label, lse, dloss, dx, n_cols, BLOCK=block, num_warps=num_warps
    )


def example(device) -> None:
    """Cross entropy over vocabularies whose size is, and is not, a power of two."""
    rng = np.random.default_rng(0)
    for n_cols, block in ((1024, 512), (1000, 1000), (777, 256)):
        x = rng.standard_normal((13, n_cols), dtype=np.float32) * 3
        label = rng.integers(0, n_cols, 13).astype(np.int32)
        dloss = rng.standard_normal(13, dtype=np.float32)
        loss, lse, dx = (device.empty(s, np.float32) for s in (13, 13, x.shape))
        on_device = device.array(x), device.array(label)
        cross_entropy(*on_device, loss, lse, block)
        cross_entropy_backward(*on_device, lse, device.array(dloss), dx, block)
        e = np.exp(x.astype(np.float64))
        total = e.sum(axis=1)
        picked = np.arange(13), label
        np.testing.assert_allclose(device.numpy(loss), np.log(total) - x[picked], rtol=1e-5, atol=1e-5)
        want = e / total[:, None]
        want[picked] -= 1
        np.testing.assert_allclose(device.numpy(dx), want * dloss[:, None], rtol=1e-4, atol=1e-6)


if __name__ == "__main__":
    from common import run

    run(example)
