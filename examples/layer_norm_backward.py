"""Layer norm, backward: each program walks over rows, keeps its share of dw and db in registers, and a second kernel adds
the shares."""

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def layer_norm_dx_kernel(
    dy_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr, dx_ptr, dw_ptr, db_ptr, n_rows, n_cols, BLOCK: tl.constexpr
):
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    w = tl.load(w_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    dw = tl.zeros([BLOCK], dtype=tl.float32)
    db = tl.zeros([BLOCK], dtype=tl.float32)
    for row in range(tl.program_id(0), n_rows, tl.num_programs(0)):
        at = row.to(tl.int64) * n_cols
        x = tl.load(x_ptr + at + cols, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + at + cols, mask=mask, other=0.0).to(tl.float32)
        rstd = tl.load(rstd_ptr + row)
        x_hat = tl.where(mask, (x - tl.load(mean_ptr + row)) * rstd, 0.0)
        w_dy = w * dy
        along_x = tl.sum(x_hat * w_dy, axis=0) / n_cols
        along_one = tl.sum(w_dy, axis=0) / n_cols
        dx = (w_dy - (x_hat * along_x + along_one)) * rstd
        tl.store(dx_ptr + at + cols, dx.to(dx_ptr.dtype.element_ty), mask=mask)
        dw += dy * x_hat
        db += dy
    share = tl.program_id(0) * n_cols + cols
    tl.store(dw_ptr + share, dw, mask=mask)
    tl.store(db_ptr + share, db, mask=mask)


@triton.jit
def add_shares_kernel(
    dw_ptr, db_ptr, out_dw_ptr, out_db_ptr, n_shares, n_cols, ROWS: tl.constexpr, COLS: tl.constexpr
):
    cols = tl.program_id(0) * COLS + tl.arange(0, COLS)
    dw = tl.zeros([ROWS, COLS], dtype=tl.float32)
    db = tl.zeros([ROWS, COLS], dtype=tl.float32)
    for start in range(0, n_shares, ROWS):
        rows = start + tl.arange(0, ROWS)
        at = rows[:, None] * n_cols + cols[None, :]
        mask = (rows[:, None] < n_shares) & (cols[None, :] < n_cols)
        dw += tl.load(dw_ptr + at, mask=mask, other=0.0)
        db += tl.load(db_ptr + at, mask=mask, other=0.0)
    mask = cols < n_cols
    tl.store(out_dw_ptr + cols, tl.sum(dw, axis=0).to(out_dw_ptr.dtype.element_ty), mask=mask)
    tl.store(out_db_ptr + cols, tl.sum(db, axis=0).to(out_db_ptr.dtype.element_ty), mask=mask)


def layer_norm_backward(
    dy, x, w, mean, rstd, dx, dw, db, shares, block: int | None = None, num_warps: int = 4
) -> None:
    """Gradients of layer norm. ``shares`` is two fp32 matrices, as many rows in each as programs are to run."""
    n_rows, n_cols = x.shape
    dw_shares, db_shares = shares
    n_shares = dw_shares.shape[0]
    layer_norm_dx_kernel[(n_shares,)](
        dy, x, w, mean, rstd, dx, dw_shares, db_shares, n_rows, n_cols,
        BLOCK=block or n_cols, num_warps=num_warps,
    )  # fmt: skip
    add_shares_kernel[(triton.cdiv(n_cols, 32),)](
        dw_shares, db_shares, dw, db, n_shares, n_cols, ROWS=32, COLS=32
    )


def example(device) -> None:
    """Layer norm backward over rows whose width is, and is not, a power of two."""
    rng = np.random.default_rng(0)
    for n_cols, block in ((256, None), (200, None), (77, 128)):
        x, dy = (rng.standard_normal((33, n_cols), dtype=np.float32) for _ in range(2))
        w = rng.standard_normal(n_cols, dtype=np.float32)
        x64, dy64 = x.astype(np.float64), dy.astype(np.float64)
        mean = x64.mean(axis=1, keepdims=True)
        rstd = 1 / np.sqrt(x64.var(axis=1, keepdims=True) + 1e-5)
        dx, dw, db = (device.empty(s, np.float32) for s in (x.shape, n_cols, n_cols))
        shares = [device.empty((8, n_cols), np.float32) for _ in range(2)]
        statistics = [device.array(s[:, 0].astype(np.float32)) for s in (mean, rstd)]
        layer_norm_backward(
            device.array(dy), device.array(x), device.array(w), *statistics, dx, dw, db, shares, block
        )
        x_hat, w_dy = (x64 - mean) * rstd, w * dy64
        along_x, along_one = (x_hat * w_dy).mean(axis=1, keepdims=True), w_dy.mean(axis=1, keepdims=True)
        np.testing.assert_allclose(
            device.numpy(dx), (w_dy - x_hat * along_x - along_one) * rstd, rtol=1e-4, atol=1e-5
        )
        np.testing.assert_allclose(device.numpy(dw), (dy64 * x_hat).sum(axis=0), rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(device.numpy(db), dy64.sum(axis=0), rtol=1e-4, atol=1e-4)


if __name__ == "__main__":
    from common import run

    run(example)
