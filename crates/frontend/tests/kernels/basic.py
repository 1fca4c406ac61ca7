"""Kernels that the front end's tests compile."""

import torch
import tilewright as triton
import tilewright.language as tl

LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(axis=0)
    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


@triton.jit
def softmax(out_ptr, in_ptr, in_stride, out_stride, n_rows, n_cols, BLOCK: tl.constexpr, num_stages: tl.constexpr):
    row_start = tl.program_id(0)
    row_step = tl.num_programs(0)
    for row in tl.range(row_start, n_rows, row_step, num_stages=num_stages):
        cols = tl.arange(0, BLOCK)
        mask = cols < n_cols
        x = tl.load(in_ptr + row * in_stride + cols, mask=mask, other=-float("inf"))
        x = x - tl.max(x, axis=0)
        numerator = tl.exp(x)
        denominator = tl.sum(numerator, axis=0)
        tl.store(out_ptr + row * out_stride + cols, numerator / denominator, mask=mask)


@triton.jit
def leaky_relu(x):
    return tl.where(x >= 0, x, 0.01 * x)


@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
           BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
           ACTIVATION: tl.constexpr):
    pid = tl.program_id(axis=0)
    num_pid_m = tl.cdiv(M, BLOCK_M)
    num_pid_n = tl.cdiv(N, BLOCK_N)
    num_pid_in_group = GROUP_M * num_pid_n
    group_id = pid // num_pid_in_group
    first_pid_m = group_id * GROUP_M
    group_size_m = min(num_pid_m - first_pid_m, GROUP_M)
    pid_m = first_pid_m + ((pid % num_pid_in_group) % group_size_m)
    pid_n = (pid % num_pid_in_group) // group_size_m
    offs_am = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    offs_bn = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (offs_am[:, None] * stride_am + offs_k[None, :] * stride_ak)
    b_ptrs = b_ptr + (offs_k[:, None] * stride_bk + offs_bn[None, :] * stride_bn)
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k * BLOCK_K, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BLOCK_K, other=0.0)
        accumulator = tl.dot(a, b, accumulator)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    if ACTIVATION == "leaky_relu":
        accumulator = leaky_relu(accumulator)
    c = accumulator.to(tl.float16)
    offs_cm = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_cn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    c_ptrs = c_ptr + stride_cm * offs_cm[:, None] + stride_cn * offs_cn[None, :]
    c_mask = (offs_cm[:, None] < M) & (offs_cn[None, :] < N)
    tl.store(c_ptrs, c, mask=c_mask)


@triton.jit
def attention_inner(acc, l_i, m_i, q, k_ptrs, v_ptrs, start_m, scale, N, stride_n, STAGE: tl.constexpr,
                    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, offs_m, offs_n):
    if STAGE == 1:
        lo, hi = 0, start_m * BLOCK_M
    elif STAGE == 2:
        lo, hi = start_m * BLOCK_M, (start_m + 1) * BLOCK_M
        lo = tl.multiple_of(lo, BLOCK_M)
    else:
        lo, hi = 0, N
    k_ptrs += lo * stride_n
    v_ptrs += lo * stride_n
    for start_n in range(lo, hi, BLOCK_N):
        start_n = tl.multiple_of(start_n, BLOCK_N)
        k = tl.load(k_ptrs)
        qk = tl.dot(q, k)
        if STAGE == 2:
            mask = offs_m[:, None] >= (start_n + offs_n[None, :])
            qk = qk * scale + tl.where(mask, 0, -1.0e6)
            m_ij = tl.maximum(m_i, tl.max(qk, 1))
            qk -= m_ij[:, None]
        else:
            m_ij = tl.maximum(m_i, tl.max(qk, 1) * scale)
            qk = qk * scale - m_ij[:, None]
        p = tl.math.exp2(qk)
        l_ij = tl.sum(p, 1)
        alpha = tl.math.exp2(m_i - m_ij)
        l_i = l_i * alpha + l_ij
        acc = acc * alpha[:, None]
        v = tl.load(v_ptrs)
        acc = tl.dot(p.to(v.dtype), v, acc)
        m_i = m_ij
        k_ptrs += BLOCK_N * stride_n
        v_ptrs += BLOCK_N * stride_n
    return acc, l_i, m_i


@triton.jit
def attention(Q, K, V, Out, scale, stride_h, stride_n, N, HEAD_DIM: tl.constexpr, BLOCK_M: tl.constexpr,
              BLOCK_N: tl.constexpr, STAGE: tl.constexpr):
    start_m = tl.program_id(0)
    head = tl.program_id(1).to(tl.int64) * stride_h
    offs_m = start_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, HEAD_DIM)
    q = tl.load(Q + head + offs_m[:, None] * stride_n + offs_d[None, :])
    k_ptrs = K + head + offs_n[None, :] * stride_n + offs_d[:, None]
    v_ptrs = V + head + offs_n[:, None] * stride_n + offs_d[None, :]
    m_i = tl.zeros([BLOCK_M], dtype=tl.float32) - float("inf")
    l_i = tl.zeros([BLOCK_M], dtype=tl.float32) + 1.0
    acc = tl.zeros([BLOCK_M, HEAD_DIM], dtype=tl.float32)
    qk_scale = scale
    qk_scale *= LOG2E
    if STAGE & 1:
        acc, l_i, m_i = attention_inner(acc, l_i, m_i, q, k_ptrs, v_ptrs, start_m, qk_scale, N, stride_n,
                                        4 - STAGE, BLOCK_M, BLOCK_N, offs_m, offs_n)
    if STAGE & 2:
        acc, l_i, m_i = attention_inner(acc, l_i, m_i, q, k_ptrs, v_ptrs, start_m, qk_scale, N, stride_n,
                                        2, BLOCK_M, BLOCK_N, offs_m, offs_n)
    acc = acc / l_i[:, None]
    tl.store(Out + head + offs_m[:, None] * stride_n + offs_d[None, :], acc.to(Out.dtype.element_ty))


@triton.jit
def dropout(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    keep = tl.rand(seed, offsets) > p
    tl.store(out_ptr + offsets, tl.where(keep, x / (1 - p), 0.0), mask=mask)


@triton.jit
def early_return(x_ptr, n):
    pid = tl.program_id(0)
    if pid >= n:
        return
    elif pid == 3:
        tl.store(x_ptr + pid, 3)
    else:
        if pid == 4:
            return
        tl.store(x_ptr + pid, 1)
    tl.store(x_ptr + pid + n, 2)


@triton.jit
def sign(x):
    if x > 0:
        return 1
    if x < 0:
        return -1
    return 0


@triton.jit(noinline=True)
def twice(x, y: tl.constexpr):
    return x * 2, x + y


@triton.jit
def control(x_ptr, out_ptr, n, FLAG: tl.constexpr, one):
    i = 0
    total = 0.0
    while i < n:
        total += tl.load(x_ptr + i)
        if FLAG:
            i += 1
        else:
            i += 2
    a, b = twice(n, 3)
    c, _ = twice(i, 3)
    d = sign(n)
    for k in range(n, 0, -1):
        one += k
    value = total if n > 4 else 0.0
    tl.store(out_ptr, value + a + b + c + d + one)


@triton.jit
def argmax_rows(x_ptr, out_ptr, N: tl.constexpr, M: tl.constexpr):
    rows = tl.arange(0, N)
    cols = tl.arange(0, M)
    x = tl.load(x_ptr + rows[:, None] * M + cols[None, :])
    tl.store(out_ptr + rows, tl.argmax(x, 1))
    s = tl.sort(tl.sum(x, 1))
    tl.store(x_ptr + rows, tl.cumsum(s, 0))
    tl.atomic_max(x_ptr + rows, s)


@triton.jit
def block_pointers(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK: tl.constexpr):
    a = tl.make_block_ptr(a_ptr, (M, K), (K, 1), (tl.program_id(0) * BLOCK, 0), (BLOCK, BLOCK), (1, 0))
    b = tl.make_block_ptr(b_ptr, (K, N), (N, 1), (0, tl.program_id(1) * BLOCK), (BLOCK, BLOCK), (1, 0))
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for _ in range(0, K, BLOCK):
        acc = tl.dot(tl.load(a, boundary_check=(0, 1), padding_option="zero"), tl.load(b, boundary_check=(0, 1)), acc)
        a = tl.advance(a, (0, BLOCK))
        b = tl.advance(b, (BLOCK, 0))
    c = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BLOCK, BLOCK])
    c.store([tl.program_id(0) * BLOCK, tl.program_id(1) * BLOCK], acc.to(tl.float16))


@triton.jit
def inline_asm(x_ptr):
    x = tl.load(x_ptr + tl.arange(0, 64))
    y = tl.inline_asm_elementwise("add.f32 $0, $1, $2;", "=r,r,r", [x, 1.0], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(x_ptr + tl.arange(0, 64), y)
