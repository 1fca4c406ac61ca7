"""Kernel speed against Triton: same source, same process, results checked first, medians."""

import argparse
import sys
from pathlib import Path

import torch
import triton.testing

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

from peers import load, load_for_triton, versions


def best(kernel, configs):
    """The smallest median time in ms over the configurations that compile, and which one it was."""
    results = []
    for config in configs:
        try:
            kernel(**config)
            torch.cuda.synchronize()
        except Exception as error:
            print(f"    {config}: {str(error).splitlines()[0][:150] if str(error) else type(error).__name__}")
            continue
        results.append((triton.testing.do_bench(lambda c=config: kernel(**c), return_mode="median"), config))
    return min(results, key=lambda r: r[0]) if results else (float("inf"), None)


def report(name, ours, theirs, amount, unit):
    (t_ours, c_ours), (t_theirs, c_theirs) = ours, theirs
    rate = [amount / t * 1e-9 for t in (t_ours, t_theirs)]
    print(
        f"{name:34} {rate[0]:9.3f} {rate[1]:9.3f} {unit:8} ratio {t_theirs / t_ours:5.3f}  {c_ours} | {c_theirs}",
        flush=True,
    )


def both(name, run, check, configs, amount, unit):
    """``run(module, **config)`` under each compiler; ``check()`` asserts the result of ours."""
    label, module = name
    try:
        run(load(module), **configs[0])
        torch.cuda.synchronize()
        check()
    except Exception as error:
        print(f"{label:34} FAILED {str(error)[:1200]}", flush=True)
        return
    ours, theirs = (load(module), load_for_triton(module))
    report(
        label,
        best(lambda **c: run(ours, **c), configs),
        best(lambda **c: run(theirs, **c), configs),
        amount,
        unit,
    )


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
             lambda: torch.testing.assert_close(out, x + y), [{"block": b} for b in (1024, 2048, 4096)], 12 * n, "TB/s")  # fmt: skip
    if want("softmax"):
        x = torch.randn(8192, 8192, device="cuda", dtype=torch.float16)
        out = torch.empty_like(x)
        both(("softmax 8192x8192 fp16", "softmax"), lambda m, **c: m.softmax(x, out, **c),
             lambda: torch.testing.assert_close(out, torch.softmax(x.float(), 1).half()), warps, 4 * x.numel(), "TB/s")  # fmt: skip
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
             [{"block": k, **c} for k in (1024, 2048, 4096, 8192) for c in warps], 4 * x.numel(), "TB/s")  # fmt: skip
    for size in (8192, 4096, 2048):
        if not want("matmul") and not want(f"matmul{size}"):
            continue
        a, b = (torch.randn(size, size, device="cuda", dtype=torch.float16) for _ in range(2))
        c = torch.empty_like(a)
        configs = [{"block": blk, "num_warps": w, "num_stages": s}
                   for blk, w, s in (((128, 256, 64), 8, 3), ((128, 128, 64), 8, 3), ((128, 128, 32), 4, 4), ((128, 128, 64), 4, 3),
                                     ((256, 128, 64), 8, 3), ((128, 256, 32), 8, 4))]  # fmt: skip
        both((f"matmul {size} fp16", "matmul"), lambda m, **k: m.matmul(a, b, c, **k),
             lambda: torch.testing.assert_close(c, a @ b, rtol=1e-2, atol=1e-1), configs, 2 * size**3, "TFLOP/s")  # fmt: skip
        t = triton.testing.do_bench(lambda: torch.mm(a, b, out=c), return_mode="median")
        print(f"    cuBLAS {2 * size**3 / t * 1e-9:.1f}")
    for d, causal in ((128, False), (128, True), (64, False)):
        if not want("flash") and not want(f"flash{d}"):
            continue
        q, k, v = (torch.randn(64, 4096, d, device="cuda", dtype=torch.float16) for _ in range(3))
        o = torch.empty_like(q)
        heads = [x.view(4, 16, 4096, d) for x in (q, k, v)]
        sdpa = lambda: torch.nn.functional.scaled_dot_product_attention(*heads, is_causal=causal)
        configs = [{"block": blk, "num_warps": w, "num_stages": s}
                   for blk, w, s in (((128, 64), 8, 3), ((128, 64), 4, 3), ((128, 128), 8, 2), ((128, 64), 8, 2), ((128, 32), 4, 3))]  # fmt: skip
        both((f"flash D{d}{' causal' if causal else ''}", "flash_attention"), lambda m, **c: m.flash_attention(q, k, v, o, causal, **c),
             lambda: torch.testing.assert_close(o, sdpa().view_as(o), rtol=1e-2, atol=1e-2), configs, 4 * 64 * 4096**2 * d / (2 if causal else 1), "TFLOP/s")  # fmt: skip
        t = triton.testing.do_bench(sdpa, return_mode="median")
        print(f"    SDPA {4 * 64 * 4096**2 * d / (2 if causal else 1) / t * 1e-9:.1f}")
    descriptors(want)


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
        blocks = [
            ((128, 256, 64), 8, 3),
            ((128, 256, 64), 8, 4),
            ((128, 128, 64), 8, 4),
            ((128, 128, 64), 4, 4),
        ]
        for made in (False, True):
            for ws in (False, True):
                configs = [{"block": blk, "num_warps": w, "num_stages": s, "halves": halves, "flatten": flatten}
                           for blk, w, s in blocks for halves in (False, True) for flatten in (False, True)]  # fmt: skip
                name = f"persistent {size} {'made' if made else 'given'}{' ws' if ws else ''}"
                both((name, "persistent_matmul"),
                     lambda m, **k: m.persistent_matmul(a, b, c, programs=programs, made=made, warp_specialize=ws, **k),
                     lambda: torch.testing.assert_close(c, a @ b.T, rtol=1e-2, atol=1e-1), configs, 2 * size**3, "TFLOP/s")  # fmt: skip
        t = triton.testing.do_bench(lambda: torch.mm(a, b.T, out=c), return_mode="median")
        print(f"    cuBLAS {2 * size**3 / t * 1e-9:.1f}")
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
            both((f"flash desc D128{' causal' if causal else ''}{' ws' if ws else ''}", "flash_attention_descriptors"),
                 lambda m, **c: m.flash_attention_descriptors(q, k, v, o, causal, warp_specialize=ws, **c),
                 lambda: torch.testing.assert_close(o, sdpa().view_as(o), rtol=1e-2, atol=1e-2), configs, amount, "TFLOP/s")  # fmt: skip
        t = triton.testing.do_bench(sdpa, return_mode="median")
        print(f"    SDPA {amount / t * 1e-9:.1f}")


if __name__ == "__main__":
    main()
