"""Kernel speed against Triton: same source, same process, results checked first, medians."""

import argparse
import functools
import sys
from pathlib import Path

import timing
import torch
import triton

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

from peers import load, load_for_triton, versions


def both(name, run, check, configs, amount, unit, outs, library=None):
    """``run(module, **config)`` under each compiler; see ``timing.contest``. Gives both times in ms, NaN where one failed."""
    label, module = name
    # Imported here, not by the threads that compile.
    runs = {
        "ours": functools.partial(run, load(module)),
        "Triton": functools.partial(run, load_for_triton(module)),
    }
    try:
        result = timing.contest(runs, configs, check, outs, library)
    except Exception as error:
        print(f"{label:34} FAILED {type(error).__name__} {str(error)[:1200]}", flush=True)
        return float("nan"), float("nan")
    for who, reasons in result.refused.items():
        for config, reason in reasons.items():
            print(f"    {who} {config}: {reason[:150]}")
    others = "".join(
        f"  {who} {amount / result.times[who] * 1e-9:.3f} ratio {ratio:.3f}"
        for who, ratio in result.ratios().items()
    )
    print(
        f"{label:34} {amount / result.times['ours'] * 1e-9:.3f} {unit}{others}  {result.kept()}", flush=True
    )
    return result.times["ours"], result.times["Triton"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("only", nargs="*")
    only = parser.parse_args().only
    print(versions())
    want = lambda name: not only or name in only
    torch.manual_seed(0)
    warps = [{"num_warps": w} for w in (4, 8, 16)]

    if want("add"):
        n = 64 << 20
        x, y = torch.randn(n, device="cuda"), torch.randn(n, device="cuda")
        out = torch.empty_like(x)
        both(("add 64M fp32", "vector_add"), lambda m, block: m.add(x, y, out, block=block),
             lambda: torch.testing.assert_close(out, x + y), [{"block": b} for b in (1024, 2048, 4096)], 12 * n, "TB/s", [out])  # fmt: skip
    if want("softmax"):
        x = torch.randn(8192, 8192, device="cuda", dtype=torch.float16)
        out = torch.empty_like(x)
        both(("softmax 8192x8192 fp16", "softmax"), lambda m, **c: m.softmax(x, out, **c),
             lambda: torch.testing.assert_close(out, torch.softmax(x.float(), 1).half()), warps, 4 * x.numel(), "TB/s", [out])  # fmt: skip
    if want("layer_norm"):
        x = torch.randn(8192, 8192, device="cuda", dtype=torch.float16)
        w, b = (torch.randn(8192, device="cuda", dtype=torch.float16) for _ in range(2))
        y, mean, rstd = (
            torch.empty_like(x),
            torch.empty(8192, device="cuda"),
            torch.empty(8192, device="cuda"),
        )
        both(("layer norm 8192x8192 fp16", "layer_norm"), lambda m, **c: m.layer_norm(x, w, b, y, mean, rstd, **c),
             lambda: torch.testing.assert_close(y, torch.nn.functional.layer_norm(x, (8192,), w, b), rtol=1e-2, atol=1e-2),
             [{"block": k, **c} for k in (1024, 2048, 4096, 8192) for c in warps], 4 * x.numel(), "TB/s", [y])  # fmt: skip
    for d, causal in ((128, False), (128, True), (64, False)):
        if not want("flash") and not want(f"flash{d}"):
            continue
        q, k, v = (torch.randn(64, 4096, d, device="cuda", dtype=torch.float16) for _ in range(3))
        o = torch.empty_like(q)
        heads = [x.view(4, 16, 4096, d) for x in (q, k, v)]
        sdpa = lambda: torch.nn.functional.scaled_dot_product_attention(*heads, is_causal=causal)
        configs = [{"block": blk, "num_warps": w, "num_stages": s}
                   for blk, w, s in (((128, 64), 8, 3), ((128, 64), 4, 3), ((128, 128), 8, 2), ((128, 64), 8, 2), ((128, 32), 4, 3), ((256, 64), 16, 3))]  # fmt: skip
        both((f"flash D{d}{' causal' if causal else ''}", "flash_attention"), lambda m, **c: m.flash_attention(q, k, v, o, causal, **c),
             lambda: torch.testing.assert_close(o, sdpa().view_as(o), rtol=1e-2, atol=1e-2), configs, 4 * 64 * 4096**2 * d / (2 if causal else 1), "TFLOP/s", [o], {"SDPA": sdpa})  # fmt: skip
    descriptors(want)
    backward(want)
    paged(want)
    sparse(want)


def descriptors(want):
    """Persistent matmul and flash attention on tensor descriptors, with and without warp specialization."""
    # Triton asks for the memory of the descriptors that kernels make.
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, device="cuda", dtype=torch.int8))
    programs = torch.cuda.get_device_properties(0).multi_processor_count
    for size in (8192, 4096, 2048):
        if not want("persistent") and not want(f"persistent{size}"):
            continue
        a, b = (torch.randn(size, size, device="cuda", dtype=torch.float16) for _ in range(2))
        c = torch.empty_like(a)
        # The last two are for clusters of two CTAs, each with 128 rows.
        tiles = [((128, 256, 64), 3, False, 1), ((128, 256, 64), 3, True, 1), ((128, 256, 64), 4, True, 1),
                 ((128, 128, 64), 4, False, 1), ((256, 256, 64), 3, True, 2), ((256, 256, 64), 4, True, 2)]  # fmt: skip
        for made in (False, True):
            for ws in (False, True):
                configs = [{"block": blk, "num_warps": 8, "num_stages": s, "halves": halves, "flatten": flatten, "num_ctas": n}
                           for blk, s, halves, n in tiles for flatten in (False, True)]  # fmt: skip
                name = f"persistent {size} {'made' if made else 'given'}{' ws' if ws else ''}"
                both((name, "persistent_matmul"),
                     lambda m, **k: m.persistent_matmul(a, b, c, programs=programs, made=made, warp_specialize=ws, **k),
                     lambda: torch.testing.assert_close(c, a @ b.T, rtol=1e-2, atol=1e-1), configs, 2 * size**3, "TFLOP/s", [c], {"cuBLAS": lambda: torch.mm(a, b.T, out=c)})  # fmt: skip
    for causal in (False, True):
        if not want("flash_descriptors"):
            continue
        q, k, v = (torch.randn(64, 4096, 128, device="cuda", dtype=torch.float16) for _ in range(3))
        o = torch.empty_like(q)
        heads = [x.view(4, 16, 4096, 128) for x in (q, k, v)]
        sdpa = lambda: torch.nn.functional.scaled_dot_product_attention(*heads, is_causal=causal)
        amount = 4 * 64 * 4096**2 * 128 / (2 if causal else 1)
        for ws in (False, True):
            configs = [{"block": blk, "num_warps": w, "num_stages": s}
                       for blk, w, s in (((128, 64), 8, 2), ((128, 64), 8, 3), ((128, 128), 8, 2), ((64, 64), 4, 3), ((128, 64), 4, 3))]  # fmt: skip
            configs += [c | {"programs": programs} for c in configs[1:3]]
            both((f"flash desc D128{' causal' if causal else ''}{' ws' if ws else ''}", "flash_attention_descriptors"),
                 lambda m, **c: m.flash_attention_descriptors(q, k, v, o, causal, warp_specialize=ws, **c),
                 lambda: torch.testing.assert_close(o, sdpa().view_as(o), rtol=1e-2, atol=1e-2), configs, amount, "TFLOP/s", [o], {"SDPA": sdpa})  # fmt: skip


def backward(want):
    """Flash attention backward: each kernel with its best configuration, then their sum against SDPA's backward."""
    name = "flash_attention_backward"
    for d, causal in ((128, False), (128, True), (64, False), (64, True)):
        if not want("backward") and not want(f"backward{d}"):
            continue
        q, k, v, do = (torch.randn(64, 4096, d, device="cuda", dtype=torch.float16) for _ in range(4))
        leaves = [x.view(4, 16, 4096, d).requires_grad_() for x in (q, k, v)]
        o = torch.nn.functional.scaled_dot_product_attention(*leaves, is_causal=causal)
        sdpa = lambda: torch.autograd.grad(o, leaves, do.view_as(o), retain_graph=True)
        wanted = sdpa()
        lse = torch.empty(64, 4096, device="cuda")
        for head in range(64):
            s = (q[head] @ k[head].T).float() * d**-0.5
            if causal:
                s.masked_fill_(torch.ones_like(s, dtype=torch.bool).triu_(1), -float("inf"))
            lse[head] = s.logsumexp(1)
        o_rows, delta = o.detach().view_as(q), torch.empty_like(lse)
        dq, dk, dv = (torch.empty_like(q) for _ in range(3))

        def check(*pairs):
            torch.cuda.synchronize()
            for mine, theirs in pairs:
                torch.testing.assert_close(mine, theirs.view_as(mine), rtol=2e-2, atol=4e-3)

        shape = f"D{d}{' causal' if causal else ''}"
        dot = 2 * 64 * 4096**2 * d / (2 if causal else 1)
        steps = [
            both((f"backward delta {shape}", name), lambda m, **c: m.delta(o_rows, do, delta, **c),
                 lambda: torch.testing.assert_close(delta, (o_rows.float() * do).sum(-1), rtol=1e-3, atol=1e-3),
                 [{"block": b, "num_warps": w} for b in (16, 32, 64) for w in (2, 4)], 4 * q.numel(), "TB/s", [delta]),
            both((f"backward dk dv {shape}", name), lambda m, **c: m.dkdv(q, k, v, do, lse, delta, dk, dv, causal, **c),
                 lambda: check((dk, wanted[1]), (dv, wanted[2])),
                 [{"block": b, "num_warps": w, "num_stages": s}
                  for b, w, s in (((64, 128), 8, 2), ((64, 128), 8, 3), ((32, 128), 8, 3), ((32, 128), 4, 3), ((64, 64), 4, 2),
                                  ((64, 64), 4, 3), ((32, 64), 4, 3), ((128, 128), 8, 1))], 4 * dot, "TFLOP/s", [dk, dv]),
            both((f"backward dq {shape}", name), lambda m, **c: m.dq(q, k, v, do, lse, delta, dq, causal, **c),
                 lambda: check((dq, wanted[0])),
                 [{"block": b, "num_warps": w, "num_stages": s}
                  for b, w, s in (((128, 64), 8, 2), ((128, 64), 8, 3), ((128, 32), 8, 3), ((128, 128), 8, 2), ((64, 64), 4, 2),
                                  ((64, 64), 4, 3), ((64, 32), 4, 3), ((128, 64), 4, 2))], 3 * dot, "TFLOP/s", [dq]),
        ]  # fmt: skip
        ours, theirs = map(sum, zip(*steps))
        t = timing.time(sdpa, 60)
        print(f"backward {shape}, all three: {5 * dot / ours * 1e-9:.1f} {5 * dot / theirs * 1e-9:.1f} TFLOP/s ratio "
              f"{theirs / ours:.3f}; SDPA {5 * dot / t * 1e-9:.1f}", flush=True)  # fmt: skip


def paged(want):
    """Paged attention, decode: bandwidth over the keys and values read."""
    for sequences, length, heads, kv_heads, page in (
        (64, 4096, 32, 8, 16),
        (8, 32768, 64, 8, 64),
        (128, 2048, 32, 4, 16),
    ):
        if not want("paged"):
            continue
        d, width = 128, length // page
        q = torch.randn(sequences, heads, d, device="cuda", dtype=torch.float16)
        k, v = (
            torch.randn(sequences * width, page, kv_heads, d, device="cuda", dtype=torch.float16)
            for _ in range(2)
        )
        table = torch.randperm(sequences * width, device="cuda").int().view(sequences, width)
        lengths = torch.randint(length // 2, length + 1, (sequences,), device="cuda", dtype=torch.int32)
        o = torch.empty_like(q)
        room = {n: (torch.empty(sequences, heads, n, d, device="cuda"), torch.empty(sequences, heads, n, device="cuda"))
                for n in (1, 2, 4, 8, 16)}  # fmt: skip

        def check():
            for i in range(sequences):
                n = int(lengths[i])
                mine = [x[table[i]].reshape(-1, kv_heads, d)[:n].transpose(0, 1)[None] for x in (k, v)]
                wanted = torch.nn.functional.scaled_dot_product_attention(
                    q[i][None, :, None], *mine, enable_gqa=True
                )
                torch.testing.assert_close(o[i], wanted.view_as(o[i]), rtol=1e-2, atol=2e-3)

        programs = sequences * kv_heads
        configs = [{"block": b, "num_warps": w, "num_stages": s, "parts": p}
                   for p in room if 256 <= programs * p <= 4096
                   for b, w, s in ((32, 4, 2), (32, 4, 3), (32, 2, 3), (64, 4, 2), (64, 4, 3), (64, 2, 3), (64, 4, 4), (128, 4, 2),
                                   (128, 4, 3), (128, 8, 2))]  # fmt: skip
        both((f"paged {sequences}x{length} {heads}/{kv_heads} page {page}", "paged_decode"),
             lambda m, parts, **c: m.paged_decode(q, k, v, table, lengths, o, *room[parts], **c),
             check, configs, 2 * 2 * int(lengths.sum()) * kv_heads * d, "TB/s", [o])  # fmt: skip


def sparse(want):
    """Sparse attention, forward, with the indices that a causal top-k leaves: none beyond the query."""
    for causal in (False, True):
        if not want("sparse"):
            continue
        n, heads, d, d_value, topk = 4096, 128, 576, 512, 2048
        q, kv = (
            torch.randn(*shape, device="cuda", dtype=torch.bfloat16) for shape in ((n, heads, d), (n, d))
        )
        order = torch.rand(n, n, device="cuda")
        if causal:
            order.masked_fill_(torch.ones_like(order, dtype=torch.bool).triu_(1), 2.0)
        index = order.argsort(1)[:, :topk].int()
        if causal:
            index[index > torch.arange(n, device="cuda")[:, None]] = -1
        o, lse = q.new_empty(n, heads, d_value), torch.empty(n, heads, device="cuda")

        def check():
            for i in (0, 1, 700, 2047, 4095):
                rows = kv[index[i][index[i] >= 0]].float()
                wanted = torch.softmax(q[i].float() @ rows.T * d**-0.5, 1) @ rows[:, :d_value]
                torch.testing.assert_close(o[i].float(), wanted, rtol=2e-2, atol=1e-2)

        configs = [{"block": b, "num_warps": w, "num_stages": s}
                   for b, w, s in (((64, 64), 8, 1), ((64, 64), 8, 2), ((64, 32), 8, 2), ((64, 32), 8, 3), ((64, 32), 4, 2),
                                   ((128, 32), 8, 2), ((128, 64), 8, 1), ((32, 64), 4, 2), ((16, 64), 4, 2))]  # fmt: skip
        amount = 2 * heads * (d + d_value) * int((index >= 0).sum() if causal else index.numel())
        both((f"sparse{' causal' if causal else ''}", "sparse_attention"), lambda m, **c: m.sparse_attention(q, kv, index, o, lse, **c),
             check, configs, amount, "TFLOP/s", [o])  # fmt: skip


if __name__ == "__main__":
    main()
