"""SwiGLU: silu(gate) * up, element by element."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def swiglu_kernel(gate_ptr, up_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < n_cols
    gate = tl.load(gate_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    up = tl.load(up_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    out = gate * tl.sigmoid(gate) * up
    tl.store(out_ptr + row * n_cols + cols, out.to(out_ptr.dtype.element_ty), mask=mask)


def swiglu(gate, up, out, block: int = 1024, num_warps: int = 4) -> None:
    """out = gate / (1 + exp(-gate)) * up for contiguous matrices."""
    n_rows, n_cols = gate.shape
    swiglu_kernel[(n_rows, triton.cdiv(n_cols, block))](
        gate, up, out, n_cols, BLOCK=block, num_warps=num_warps
    )


def example(device) -> None:
    """SwiGLU over rows whose width is, and is not, a power of two."""
    rng = np.random.default_rng(0)
    for n_cols, block in ((1024, 512), (1000, 1000), (77, 32)):
        gate, up = (rng.standard_normal((11, n_cols), dtype=np.float32) for _ in range(2))
        out = device.empty(gate.shape, np.float32)
        swiglu(device.array(gate), device.array(up), out, block)
        gate64 = gate.astype(np.float64)
        np.testing.assert_allclose(
            device.numpy(out), gate64 / (1 + np.exp(-gate64)) * up, rtol=1e-5, atol=1e-6
        )


if __name__ == "__main__":
    from common import run

    run(example)
