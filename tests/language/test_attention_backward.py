"""Two chained products a loop, each tile read by two of them, once as it is and once transposed."""

import flash_attention_backward as example
import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl


@triton.jit
def dkdv_kernel(q, k, v, do, lse, delta, dk, dv, S, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    on = tl.program_id(0) * BN + tl.arange(0, BN)
    od = tl.arange(0, D)
    keys = tl.load(k + on[:, None] * D + od[None, :])
    values = tl.load(v + on[:, None] * D + od[None, :])
    acc_v = tl.zeros((BN, D), tl.float32)
    acc_k = tl.zeros((BN, D), tl.float32)
    for start in range(0, S, BM):
        om = start + tl.arange(0, BM)
        q_t = tl.load(q + om[None, :] * D + od[:, None])
        p_t = tl.exp2(tl.dot(keys, q_t) - tl.load(lse + om)[None, :])
        p_t = tl.where(om[None, :] >= on[:, None], p_t, 0.0)
        o = tl.load(do + om[:, None] * D + od[None, :])
        acc_v += tl.dot(p_t.to(tl.float16), o)
        ds_t = p_t * (tl.dot(values, tl.trans(o)) - tl.load(delta + om)[None, :])
        acc_k += tl.dot(ds_t.to(tl.float16), tl.trans(q_t))
    tl.store(dv + on[:, None] * D + od[None, :], acc_v)
    tl.store(dk + on[:, None] * D + od[None, :], acc_k)


@pytest.mark.parametrize("num_warps,num_stages", [(4, 1), (4, 3), (8, 2), (8, 3)])
def test_attention_backward(device, num_warps, num_stages):
    S, D, BN = 128, 64, 64
    device.rounding = 2.0**-12  # weights and their gradients are rounded to float16 for the second products
    rng = np.random.default_rng(0)
    q, k, v, do = ((rng.standard_normal((S, D)) * 0.3).astype(np.float16) for _ in range(4))
    lse, delta = (rng.standard_normal(S).astype(np.float32) for _ in range(2))
    dk, dv = device.zeros((S, D), np.float32), device.zeros((S, D), np.float32)
    args = [device.array(x) for x in (q, k, v, do, lse, delta)]
    dkdv_kernel[(S // BN,)](*args, dk, dv, S, D=D, BM=32, BN=BN, num_warps=num_warps, num_stages=num_stages)
    q, k, v, do = (x.astype(np.float64) for x in (q, k, v, do))
    p = np.exp2(k @ q.T - lse) * (np.arange(S)[None, :] >= np.arange(S)[:, None])
    ds = p * (v @ do.T - delta)
    np.testing.assert_allclose(device.numpy(dv), p @ do, rtol=1e-2, atol=2e-2)
    np.testing.assert_allclose(device.numpy(dk), ds @ q, rtol=1e-2, atol=2e-2)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("together,late,num_stages", [(False, False, 2), (True, False, 3), (True, True, 2), (False, True, 3)])  # fmt: skip
def test_all_gradients_by_one_kernel(device, causal, together, late, num_stages):
    """In blocks that GPUs get: dq's share of each iteration is under way to memory while the next ones compute."""
    rng = np.random.default_rng(1)
    q, k, v, do = (rng.standard_normal((2, 384, 64)).astype(np.float16) for _ in range(4))
    o, lse, *want = example.reference(q, k, v, do, causal)
    delta, sums = device.empty(lse.shape, np.float32), device.empty(q.shape, np.float32)
    grads = [device.empty(q.shape, np.float16) for _ in want]
    q, k, v, o, do = (device.array(x.astype(np.float16)) for x in (q, k, v, o, do))
    example.delta(o, do, delta, sums)
    example.all_at_once(q, k, v, do, device.array(lse.astype(np.float32)), delta, sums, *grads[1:], causal, (64, 128), together,
                        late, num_warps=8, num_stages=num_stages)  # fmt: skip
    example.scaled(sums, grads[0])
    example.close(device, grads, want)
