"""Kernels that memory bounds, against Triton on the same source and the same list of configurations, and against a copy.

``python memory_bound.py [KERNEL …]`` prints a line a case: the kernel's bandwidth under both compilers, their ratio, the
share of the bandwidth of a copy measured in the same run, and the configuration that each kept; then the geometric mean
of the ratios and the smallest. Results are checked against torch before anything is timed.
"""

import argparse
import functools
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import timing
import torch
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

from peers import load, load_for_triton, versions

FP16, BF16, FP32 = torch.float16, torch.bfloat16, torch.float32
SHORT = {FP16: "fp16", BF16: "bf16", FP32: "fp32"}


@dataclass
class Case:
    """A kernel on arguments: ``run(module, **config)`` launches it, ``check()`` asserts what it left behind."""

    label: str
    module: str
    run: Callable
    check: Callable
    bytes: int
    configs: list


def next_power(n: int) -> int:
    return 1 << (n - 1).bit_length()


def rows_in_a_tile(cols: int, most: int = 32) -> list:
    """A row as one tile: as wide as the row and as the next power of two, with 8 to 64 elements a thread."""
    wide = next_power(cols)
    warps = [w for w in (1, 2, 4, 8, 16, 32) if 8 <= wide // (32 * w) <= 64 and w <= most]
    return [{"block": b, "num_warps": w} for b in dict.fromkeys((wide, cols)) for w in warps[-3:]]


def pieces(cols: int, blocks=(1024, 2048, 4096)) -> list:
    """Pieces of a row, a few to a program or one."""
    blocks = dict.fromkeys(min(b, next_power(cols)) for b in blocks)
    return [{"block": b, "num_warps": w} for b in blocks for w in (4, 8) if b // (32 * w) >= 4]


def close(actual, wanted):
    tolerance = {FP32: 1e-4, FP16: 4e-3, BF16: 3e-2}[actual.dtype]
    torch.testing.assert_close(actual.float(), wanted.float(), rtol=tolerance, atol=tolerance)


def randn(*shape, dtype=FP32):
    return torch.randn(*shape, device="cuda", dtype=dtype)


def add(dtype, n):
    x, y = randn(n, dtype=dtype), randn(n, dtype=dtype)
    out = torch.empty_like(x)
    return Case("vector_add", "vector_add", lambda m, **c: m.add(x, y, out, **c), lambda: close(out, x + y),
                3 * x.nbytes, [{"block": b, "num_warps": w} for b in (512, 1024, 2048, 4096) for w in (4, 8) if b // (32 * w) >= 4])  # fmt: skip


def dropout(dtype, n):
    x = randn(n, dtype=dtype)
    out = torch.empty_like(x)

    def check():
        kept = out != 0
        assert abs(kept.float().mean().item() - 0.7) < 0.01
        close(out, torch.where(kept, x / 0.7, 0))

    return Case("dropout", "dropout", lambda m, **c: m.dropout(x, out, 0.3, 17, **c), check, 2 * x.nbytes,
                pieces(n, (512, 1024, 2048)))  # fmt: skip


def softmax(dtype, rows, cols):
    x = randn(rows, cols, dtype=dtype)
    out = torch.empty_like(x)
    return Case("softmax", "softmax", lambda m, **c: m.softmax(x, out, **c),
                lambda: close(out, torch.softmax(x.float(), 1)), 2 * x.nbytes, rows_in_a_tile(cols))  # fmt: skip


def layer_norm(dtype, rows, cols):
    x, w, b = randn(rows, cols, dtype=dtype), randn(cols, dtype=dtype), randn(cols, dtype=dtype)
    y, mean, rstd = torch.empty_like(x), randn(rows), randn(rows)
    blocks = (1024, 2048, 4096, 8192)
    return Case("layer_norm", "layer_norm", lambda m, **c: m.layer_norm(x, w, b, y, mean, rstd, **c),
                lambda: close(y, F.layer_norm(x.float(), (cols,), w.float(), b.float())), 2 * x.nbytes, pieces(cols, blocks))  # fmt: skip


def layer_norm_backward(dtype, rows, cols):
    x, dy, w = randn(rows, cols, dtype=dtype), randn(rows, cols, dtype=dtype), randn(cols, dtype=dtype)
    mean = x.float().mean(1)
    rstd = torch.rsqrt(x.float().var(1, correction=0) + 1e-5)
    dx, dw, db = torch.empty_like(x), torch.empty_like(w), torch.empty_like(w)
    shares = [torch.empty(264, cols, device="cuda") for _ in range(2)]

    def check():
        leaves = [t.float().clone().requires_grad_() for t in (x, w, torch.zeros_like(w))]
        F.layer_norm(leaves[0], (cols,), *leaves[1:]).backward(dy.float())
        close(dx, leaves[0].grad)
        for actual, leaf in zip((dw, db), leaves[1:]):
            scale = leaf.grad.abs().max()
            close(actual / scale, leaf.grad / scale)

    return Case("layer_norm_backward", "layer_norm_backward",
                lambda m, **c: m.layer_norm_backward(dy, x, w, mean, rstd, dx, dw, db, shares, **c), check,
                3 * x.nbytes, rows_in_a_tile(cols))  # fmt: skip


def rms_norm(dtype, rows, cols):
    x, w = randn(rows, cols, dtype=dtype), randn(cols, dtype=dtype)
    y = torch.empty_like(x)
    return Case("rms_norm", "rms_norm", lambda m, **c: m.rms_norm(x, w, y, **c),
                lambda: close(y, F.rms_norm(x.float(), (cols,), w.float(), 1e-6)), 2 * x.nbytes, rows_in_a_tile(cols))  # fmt: skip


def rope(dtype, tokens, heads, dim):
    x = randn(tokens, heads, dim, dtype=dtype)
    out = torch.empty_like(x)
    angle = torch.rand(4096, dim // 2, device="cuda") * 6
    cos, sin = angle.cos(), angle.sin()

    def check():
        c, s = (t.repeat(tokens // 4096, 1)[:, None] for t in (cos, sin))
        first, second = x.float().chunk(2, -1)
        close(out, torch.cat([first * c - second * s, second * c + first * s], -1))

    configs = [{"heads": h, "num_warps": w} for h in dict.fromkeys((next_power(heads), min(heads, 8), heads)) for w in (1, 2, 4, 8)
               if h * dim // (64 * w) >= 4]  # fmt: skip
    return Case("rope", "rope", lambda m, **c: m.rope(x, cos, sin, out, **c), check, 2 * x.nbytes, configs)


def swiglu(dtype, rows, cols):
    gate, up = randn(rows, cols, dtype=dtype), randn(rows, cols, dtype=dtype)
    out = torch.empty_like(gate)
    return Case("swiglu", "swiglu", lambda m, **c: m.swiglu(gate, up, out, **c),
                lambda: close(out, F.silu(gate.float()) * up.float()), 3 * gate.nbytes, pieces(cols))  # fmt: skip


def cross_entropy(dtype, rows, cols):
    x, label = randn(rows, cols, dtype=dtype), torch.randint(cols, (rows,), device="cuda", dtype=torch.int32)
    loss, lse = randn(rows), randn(rows)
    return Case("cross_entropy", "cross_entropy", lambda m, **c: m.cross_entropy(x, label, loss, lse, **c),
                lambda: close(loss, F.cross_entropy(x.float(), label.long(), reduction="none")), x.nbytes,
                [{"block": b, "num_warps": w} for b, w in ((2048, 4), (4096, 4), (4096, 8), (8192, 8), (8192, 16), (16384, 16))])  # fmt: skip


def cross_entropy_backward(dtype, rows, cols):
    x, label = randn(rows, cols, dtype=dtype), torch.randint(cols, (rows,), device="cuda", dtype=torch.int32)
    lse, dloss = torch.logsumexp(x.float(), 1), randn(rows)
    dx = torch.empty_like(x)

    def check():
        want = torch.softmax(x.float(), 1)
        want[torch.arange(rows, device="cuda"), label.long()] -= 1
        close(dx, want * dloss[:, None])

    return Case("cross_entropy_backward", "cross_entropy", lambda m, **c: m.cross_entropy_backward(x, label, lse, dloss, dx, **c),
                check, 2 * x.nbytes, pieces(cols))  # fmt: skip


def transpose(dtype, rows, cols):
    x = randn(rows, cols, dtype=dtype)
    out = torch.empty(cols, rows, device="cuda", dtype=dtype)
    tiles = ((32, 32), (64, 32), (64, 64), (128, 64), (64, 128))
    return Case("transpose", "transpose", lambda m, **c: m.transpose(x, out, **c), lambda: close(out, x.T), 2 * x.nbytes,
                [{"tile": t, "num_warps": w} for t in tiles for w in (4, 8)])  # fmt: skip


def argmax(dtype, rows, cols):
    x = randn(rows, cols, dtype=dtype)
    index = torch.empty(rows, device="cuda", dtype=torch.int32)

    def check():
        torch.testing.assert_close(x.gather(1, index.long()[:, None])[:, 0], x.amax(1), rtol=0, atol=0)

    return Case(
        "argmax", "argmax", lambda m, **c: m.argmax(x, index, **c), check, x.nbytes, rows_in_a_tile(cols)
    )


def cumsum(dtype, rows, cols):
    x = randn(rows, cols, dtype=dtype) / 16
    out = torch.empty_like(x)
    return Case("cumsum", "cumsum", lambda m, **c: m.cumsum(x, out, **c),
                lambda: close(out, x.double().cumsum(1)), 2 * x.nbytes, pieces(cols, (1024, 2048, 4096, 8192)))  # fmt: skip


CASES = [
    (add, [(FP32, 1 << 26), (FP16, 1 << 26), (BF16, 1 << 26), (FP32, 50_000_001), (FP16, 1 << 20), (FP32, 98432)]),
    (dropout, [(FP32, 1 << 26), (FP16, 1 << 26), (BF16, 1 << 26), (FP32, 1 << 20)]),
    (softmax, [(FP16, 65536, 512), (FP16, 32768, 1000), (FP16, 8192, 8192), (FP16, 8192, 5000), (FP16, 1024, 50257),
               (FP16, 1024, 65536), (FP32, 65536, 512), (FP32, 16384, 1000), (FP32, 8192, 4096), (FP32, 1024, 32768),
               (BF16, 16384, 2048), (BF16, 8192, 5000), (BF16, 512, 1024)]),
    (layer_norm, [(FP16, 32768, 1024), (FP16, 8192, 8192), (FP16, 8192, 5000), (BF16, 16384, 4096), (BF16, 32768, 1000),
                  (FP32, 8192, 4096), (FP32, 2048, 16384), (BF16, 1024, 65536)]),
    (layer_norm_backward, [(FP16, 8192, 4096), (BF16, 8192, 8192), (FP16, 8192, 5000), (FP32, 16384, 1000), (FP32, 8192, 2048)]),
    (rms_norm, [(FP16, 65536, 512), (FP16, 16384, 4096), (BF16, 8192, 8192), (BF16, 8192, 5000), (FP32, 8192, 4096),
                (BF16, 1024, 65536), (FP16, 512, 4096)]),
    (rope, [(BF16, 16384, 32, 128), (FP16, 65536, 8, 64), (FP32, 8192, 32, 128), (FP16, 16384, 40, 128)]),
    (swiglu, [(FP16, 4096, 14336), (BF16, 8192, 11008), (FP32, 4096, 8192), (FP16, 8192, 5000), (BF16, 65536, 512)]),
    (cross_entropy, [(FP16, 2048, 32000), (BF16, 1024, 50257), (FP32, 1024, 32768), (BF16, 2048, 65536)]),
    (cross_entropy_backward, [(FP16, 2048, 32000), (BF16, 1024, 50257), (FP32, 1024, 32768)]),
    (transpose, [(FP16, 8192, 8192), (FP32, 8192, 4096), (BF16, 5000, 8192), (FP16, 1000, 50257), (FP32, 4096, 4096)]),
    (argmax, [(FP16, 65536, 512), (FP32, 8192, 5000), (BF16, 8192, 8192), (FP32, 1024, 50257), (FP16, 1024, 65536)]),
    (cumsum, [(FP32, 65536, 512), (FP32, 8192, 5000), (FP32, 1024, 65536), (FP16, 8192, 8192), (FP16, 16384, 1000),
              (BF16, 1024, 50257)]),
]  # fmt: skip


def measure(case: Case) -> timing.Contest:
    """Both compilers, each with its best configuration."""
    modules = {"ours": load(case.module), "Triton": load_for_triton(case.module)}
    runs = {who: functools.partial(case.run, module) for who, module in modules.items()}
    return timing.contest(runs, case.configs, case.check, rounds=3, rep=12)


def copy_bandwidth(size: int) -> float:
    """TB/s read and written by torch's copy of so many bytes."""
    source = torch.randint(256, (size,), device="cuda", dtype=torch.uint8)
    target = torch.empty_like(source)
    return 2 * size / timing.time(lambda: target.copy_(source), 50) * 1e-9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("only", nargs="*", help="kernels, such as softmax")
    parser.add_argument("--part", default="1/1", help="the k-th of n parts of the cases, as k/n")
    arguments = parser.parse_args()
    part, parts = map(int, arguments.part.split("/"))
    print(versions())
    torch.manual_seed(0)
    copy = copy_bandwidth(1 << 28)
    print(f"a copy of 256 MiB: {copy:.3f} TB/s")
    cases = [(make, args) for make, list_of_args in CASES for args in list_of_args]
    if arguments.only:
        cases = [c for c in cases if c[0].__name__ in arguments.only]
    ratios = []
    for make, args in cases[part - 1 :: parts]:
        name = f"{make.__name__} {SHORT[args[0]]} {'x'.join(map(str, args[1:]))}"
        case = make(*args)
        try:
            result = measure(case)
        except Exception as error:
            print(f"{name:42} FAILED {type(error).__name__} {str(error)[:1500]}", flush=True)
            continue
        ratio = result.ratios()["Triton"]
        ratios.append((ratio, name))
        ours, theirs = (case.bytes / result.times[who] * 1e-9 for who in ("ours", "Triton"))
        print(
            f"{name:42} {ours:6.3f} {theirs:6.3f} {ratio:6.3f} {ours / copy:5.2f}  {result.kept()}",
            flush=True,
        )
    mean = math.exp(sum(math.log(r) for r, _ in ratios) / len(ratios))
    print(f"{len(ratios)} cases: geometric mean {mean:.3f}, smallest {min(ratios)[0]:.3f} ({min(ratios)[1]})")


if __name__ == "__main__":
    main()
