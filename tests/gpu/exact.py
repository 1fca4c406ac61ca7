"""What attention is, in float32 and from plain PyTorch: what kernels that are timed are held against."""

import torch

ROWS = 16384  # of scores that are held at once


def scores_of(q, k, head: int, causal: bool, first: int = 0):
    """Of the queries from ``first`` on."""
    s = q[head].float() @ k[head].float().T * q.shape[-1] ** -0.5
    return s.masked_fill(torch.ones_like(s, dtype=torch.bool).triu(1 + first), -float("inf")) if causal else s


def exact_attention(q, k, v, causal: bool):
    """Attention of (heads, length, D) arrays in float32, a head at a time, and the logarithms of the denominators."""
    outs = []
    for head in range(q.shape[0]):
        rows = []
        for first in range(0, q.shape[1], ROWS):
            s = scores_of(q[:, first : first + ROWS], k, head, causal, first)
            rows.append((torch.softmax(s, 1) @ v[head].float(), s.logsumexp(1)))
        outs.append([torch.cat(parts) for parts in zip(*rows)])
    return [torch.stack(parts) for parts in zip(*outs)]


def exact_backward(q, k, v, do, lse, delta, causal: bool):
    """dq, dk and dv in float32, from the logarithms and the ``delta`` that the kernels get."""
    outs = []
    for head in range(q.shape[0]):
        p = (scores_of(q, k, head, causal) - lse[head][:, None]).exp()
        ds = p * (do[head].float() @ v[head].float().T - delta[head][:, None]) * q.shape[-1] ** -0.5
        outs.append((ds @ k[head].float(), ds.T @ q[head].float(), p.T @ do[head].float()))
    return [torch.stack(parts) for parts in zip(*outs)]


def exact_decode(q, k, v, length: int):
    """Attention of one position of (heads, D) to the first rows of (pages, page, kv heads, D), in float32."""
    group = q.shape[0] // k.shape[2]
    keys, values = (x.reshape(-1, *x.shape[2:])[:length].float().repeat_interleave(group, 1) for x in (k, v))
    p = torch.softmax(torch.einsum("hd,nhd->hn", q.float(), keys) * q.shape[1] ** -0.5, 1)
    return torch.einsum("hn,nhd->hd", p, values)


def exact_sparse(q, kv, index, d_value: int, queries: int = 64):
    """Attention of (queries, heads, D) to the rows of (rows, D) that each query's indices name, one at least, in float32, some queries at a time; and the logarithms of
    the denominators, to base 2, as the kernels leave them."""
    parts = []
    for mine, rows in zip(q.split(queries), index.split(queries)):
        keys = kv[rows.clamp_min(0).long()].float()
        s = mine.float() @ keys.transpose(1, 2) * q.shape[2] ** -0.5
        s = s.masked_fill((rows < 0)[:, None], -float("inf"))
        parts.append((torch.softmax(s, 2) @ keys[..., :d_value], s.logsumexp(2) * 1.4426950408889634))
    return [torch.cat(part) for part in zip(*parts)]
