"""Kernels that memory bounds, sorts and histograms, against Triton on the same source and the same list of configurations, and against a copy.

``python memory_bound.py [--record FILE] [KERNEL …]`` prints a line a case: the kernel's bandwidth under both compilers and of a copy of as
many bytes, in turns, and the configuration that each compiler kept; then the geometric mean of the ratios and the smallest.
"""

import argparse
import functools
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

import timing
from peers import about, load, load_for_triton
from results import OURS, TRITON, Record, Result
from tolerance import close

FP16, BF16, FP32, INT32 = torch.float16, torch.bfloat16, torch.float32, torch.int32
SHORT = {FP16: "fp16", BF16: "bf16", FP32: "fp32", INT32: "int32"}


@dataclass
class Case:
    """A kernel on arguments: ``run(module, **config)`` launches it, ``check()`` asserts what it left in ``outs``."""

    module: str
    run: Callable
    check: Callable
    outs: list
    bytes: int
    configs: list
    table: str = "memory-bound"


def next_power(n: int) -> int:
    return 1 << (n - 1).bit_length()


def rows_in_a_tile(cols: int, most: int = 32) -> list:
    """A row as one tile: as wide as the row and as the next power of two, with 8 to 64 elements a thread."""
    wide = next_power(cols)
    warps = [w for w in (1, 2, 4, 8, 16, 32) if 8 <= wide // (32 * w) <= 64 and w <= most]
    alone = [{"block": b, "num_warps": w} for b in dict.fromkeys((wide, cols)) for w in warps[-3:]]
    return alone + rows_in_clusters(cols)


def rows_in_clusters(cols: int) -> list:
    """Rows that fill a multiprocessor's registers, each shared by the CTAs of a cluster, 16 or 32 elements a thread."""
    wide = next_power(cols)
    if wide < 1 << 14:
        return []
    return [{"block": wide, "num_warps": w, "num_ctas": c} for c in (2, 4, 8) for w in (8, 16, 32)
            if 16 <= wide // (32 * w * c) <= 32]  # fmt: skip


def pieces(cols: int, blocks=(1024, 2048, 4096)) -> list:
    """Pieces of a row, a few to a program or one."""
    blocks = dict.fromkeys(min(b, next_power(cols)) for b in blocks)
    return [
        {"block": b, "num_warps": w}
        for b in blocks
        for w in ((1, 2, 4) if b <= 512 else (4, 8))
        if b // (32 * w) >= 4
    ]


def randn(*shape, dtype=FP32):
    return torch.randn(*shape, device="cuda", dtype=dtype)


def add(dtype, n):
    x, y = randn(n, dtype=dtype), randn(n, dtype=dtype)
    out = torch.empty_like(x)
    configs = [
        {"block": b, "num_warps": w} for b in (512, 1024, 2048, 4096) for w in (4, 8) if b // (32 * w) >= 4
    ]
    return Case("vector_add", lambda m, **c: m.add(x, y, out, **c), lambda: close(out, x + y, 1e-7), [out], 3 * x.nbytes, configs)  # fmt: skip


def high(x: torch.Tensor, factor: int) -> torch.Tensor:
    """The upper 32 bits of the product of 32-bit numbers, which 63 bits don't hold."""
    lower = (x & 0xFFFF) * factor
    return ((x >> 16) * factor + (lower >> 16)) >> 16


def philox(seed: int, n: int) -> torch.Tensor:
    """The first words of Philox-4x32 with the counters (i, 0, 0, 0) and this key (Salmon et al., SC 2011)."""
    low = 0xFFFFFFFF
    c = [torch.arange(n, device="cuda"), *(torch.zeros(n, device="cuda", dtype=torch.int64) for _ in range(3))]  # fmt: skip
    k0, k1 = seed & low, seed >> 32
    a, b = 0xD2511F53, 0xCD9E8D57
    for _ in range(10):
        c = [high(c[2], b) ^ c[1] ^ k0, c[2] * b & low, high(c[0], a) ^ c[3] ^ k1, c[0] * a & low]
        k0, k1 = (k0 + 0x9E3779B9) & low, (k1 + 0xBB67AE85) & low
    return c[0]


def dropout(dtype, n):
    x = randn(n, dtype=dtype)
    out = torch.empty_like(x)
    word = philox(17, n)
    # tl.rand: the word as a signed number, folded to non-negative, scaled.
    uniform = torch.where(word >> 31 == 1, word ^ 0xFFFFFFFF, word).float() * 4.6566127342e-10
    want = torch.where(uniform > torch.tensor(0.3, device="cuda"), x.float() / 0.7, 0)
    return Case("dropout", lambda m, **c: m.dropout(x, out, 0.3, 17, **c), lambda: close(out, want), [out], 2 * x.nbytes,
                pieces(n, (512, 1024, 2048)))  # fmt: skip


def softmax(dtype, rows, cols):
    x = randn(rows, cols, dtype=dtype)
    out = torch.empty_like(x)
    want = torch.softmax(x.float(), 1)
    return Case("softmax", lambda m, **c: m.softmax(x, out, **c), lambda: close(out, want), [out], 2 * x.nbytes, rows_in_a_tile(cols))  # fmt: skip


def layer_norm(dtype, rows, cols):
    x, w, b = randn(rows, cols, dtype=dtype), randn(cols, dtype=dtype), randn(cols, dtype=dtype)
    y, mean, rstd = torch.empty_like(x), randn(rows), randn(rows)
    want = F.layer_norm(x.float(), (cols,), w.float(), b.float())
    want_mean, want_rstd = x.double().mean(1), torch.rsqrt(x.double().var(1, correction=0) + 1e-5)
    check = lambda: max(close(y, want), close(mean, want_mean), close(rstd, want_rstd))
    # What Triton's tutorial takes: a row at once, up to 64 KiB.
    block = min((1 << 16) // x.element_size(), next_power(cols))
    tutorial = {"block": block, "num_warps": min(max(block // 256, 1), 8)}
    return Case("layer_norm", lambda m, **c: m.layer_norm(x, w, b, y, mean, rstd, **c), check, [y, mean, rstd], 2 * x.nbytes,
                [*pieces(cols, (1024, 2048, 4096, 8192)), tutorial, *rows_in_clusters(cols)])  # fmt: skip


def layer_norm_backward(dtype, rows, cols):
    x, dy, w = randn(rows, cols, dtype=dtype), randn(rows, cols, dtype=dtype), randn(cols, dtype=dtype)
    mean = x.float().mean(1)
    rstd = torch.rsqrt(x.float().var(1, correction=0) + 1e-5)
    dx, dw, db = torch.empty_like(x), torch.empty_like(w), torch.empty_like(w)
    shares = [torch.empty(264, cols, device="cuda") for _ in range(2)]
    leaves = [t.float().clone().requires_grad_() for t in (x, w, torch.zeros_like(w))]
    F.layer_norm(leaves[0], (cols,), *leaves[1:]).backward(dy.float())
    check = lambda: max(close(mine, leaf.grad) for mine, leaf in zip((dx, dw, db), leaves))
    return Case("layer_norm_backward", lambda m, **c: m.layer_norm_backward(dy, x, w, mean, rstd, dx, dw, db, shares, **c), check,
                [dx, dw, db, *shares], 3 * x.nbytes, rows_in_a_tile(cols))  # fmt: skip


def rms_norm(dtype, rows, cols):
    x, w = randn(rows, cols, dtype=dtype), randn(cols, dtype=dtype)
    y = torch.empty_like(x)
    want = F.rms_norm(x.float(), (cols,), w.float(), 1e-6)
    return Case("rms_norm", lambda m, **c: m.rms_norm(x, w, y, **c), lambda: close(y, want), [y], 2 * x.nbytes, rows_in_a_tile(cols))  # fmt: skip


def rope(dtype, tokens, heads, dim):
    x = randn(tokens, heads, dim, dtype=dtype)
    out = torch.empty_like(x)
    angle = torch.rand(4096, dim // 2, device="cuda") * 6
    cos, sin = angle.cos(), angle.sin()
    c, s = (t.repeat(tokens // 4096, 1)[:, None] for t in (cos, sin))
    first, second = x.float().chunk(2, -1)
    want = torch.cat([first * c - second * s, second * c + first * s], -1)
    configs = [{"heads": h, "num_warps": w} for h in dict.fromkeys((next_power(heads), min(heads, 8), heads)) for w in (1, 2, 4, 8)
               if h * dim // (64 * w) >= 4]  # fmt: skip
    return Case("rope", lambda m, **c: m.rope(x, cos, sin, out, **c), lambda: close(out, want), [out], 2 * x.nbytes, configs)  # fmt: skip


def swiglu(dtype, rows, cols):
    gate, up = randn(rows, cols, dtype=dtype), randn(rows, cols, dtype=dtype)
    out = torch.empty_like(gate)
    want = F.silu(gate.float()) * up.float()
    return Case("swiglu", lambda m, **c: m.swiglu(gate, up, out, **c), lambda: close(out, want), [out], 3 * gate.nbytes, pieces(cols))  # fmt: skip


def cross_entropy(dtype, rows, cols):
    x, label = randn(rows, cols, dtype=dtype), torch.randint(cols, (rows,), device="cuda", dtype=torch.int32)
    loss, lse = randn(rows), randn(rows)
    want = F.cross_entropy(x.float(), label.long(), reduction="none")
    want_lse = torch.logsumexp(x.float(), 1)
    check = lambda: max(close(loss, want), close(lse, want_lse))
    configs = [
        {"block": b, "num_warps": w}
        for b, w in ((2048, 4), (4096, 4), (4096, 8), (8192, 8), (8192, 16), (16384, 16))
    ]
    return Case("cross_entropy", lambda m, **c: m.cross_entropy(x, label, loss, lse, **c), check, [loss, lse], x.nbytes, configs)  # fmt: skip


def cross_entropy_backward(dtype, rows, cols):
    x, label = randn(rows, cols, dtype=dtype), torch.randint(cols, (rows,), device="cuda", dtype=torch.int32)
    lse, dloss = torch.logsumexp(x.float(), 1), torch.rand(rows, device="cuda") + 0.5
    dx = torch.empty_like(x)
    want = torch.softmax(x.float(), 1)
    at = torch.arange(rows, device="cuda"), label.long()
    want[at] -= 1
    want *= dloss[:, None]

    def check():
        """The label's element is the largest of its row by far: once with it, and once without."""
        with_it = close(dx, want)
        others, rest = dx.clone(), want.clone()
        others[at], rest[at] = 0, 0
        return max(with_it, close(others, rest))

    return Case("cross_entropy", lambda m, **c: m.cross_entropy_backward(x, label, lse, dloss, dx, **c), check, [dx], 2 * x.nbytes,
                pieces(cols))  # fmt: skip


def transpose(dtype, rows, cols):
    x = randn(rows, cols, dtype=dtype)
    out = torch.empty(cols, rows, device="cuda", dtype=dtype)
    tiles = ((32, 32), (64, 32), (64, 64), (128, 64), (64, 128))
    configs = [{"tile": t, "num_warps": w} for t in tiles for w in (4, 8)]
    configs += [{"tile": (128, 128), "num_warps": w} for w in (8, 16)]
    return Case("transpose", lambda m, **c: m.transpose(x, out, **c), lambda: close(out, x.T, 1e-30), [out], 2 * x.nbytes, configs)  # fmt: skip


def argmax(dtype, rows, cols):
    x = randn(rows, cols, dtype=dtype)
    index = torch.empty(rows, device="cuda", dtype=torch.int32)
    # Of equal ones the first.
    places = torch.where(x == x.amax(1, keepdim=True), torch.arange(cols, device="cuda"), cols)
    want = places.amin(1)
    return Case("argmax", lambda m, **c: m.argmax(x, index, **c), lambda: close(index, want), [index], x.nbytes, rows_in_a_tile(cols))  # fmt: skip


def cumsum(dtype, rows, cols):
    x = randn(rows, cols, dtype=dtype) / 16
    out = torch.empty_like(x)
    want = x.double().cumsum(1)
    return Case("cumsum", lambda m, **c: m.cumsum(x, out, **c), lambda: close(out, want), [out], 2 * x.nbytes,
                pieces(cols, (1024, 2048, 4096, 8192)))  # fmt: skip


def sort(dtype, rows, cols):
    x = randn(rows, cols, dtype=dtype)
    out = torch.empty_like(x)
    want = x.sort(1).values
    configs = [
        {"rows": r, "num_warps": w}
        for r in (1, 2, 4, 8)
        for w in (1, 2, 4, 8)
        if 2 <= r * cols // (32 * w) <= 64
    ]
    return Case("sort", lambda m, **c: m.sort(x, out, **c), lambda: close(out, want, 1e-30), [out], 2 * x.nbytes, configs, SHORT_LISTS)  # fmt: skip


def counted(function: str, dtype, n: int, bins: int, configs: list) -> Case:
    x = torch.randint(bins, (n,), device="cuda", dtype=dtype)
    counts = torch.empty(bins, device="cuda", dtype=torch.int32)
    want = torch.bincount(x, minlength=bins)

    def run(module, **config):
        counts.zero_()
        getattr(module, function)(x, counts, **config)

    return Case("histogram", run, lambda: close(counts, want), [counts], x.nbytes, configs, SHORT_LISTS)


def histogram(dtype, n, bins):
    return counted("histogram", dtype, n, bins, [{"block": b, "num_warps": w} for b in (512, 1024, 2048) for w in (4, 8)])  # fmt: skip


def histogram_by_tiles(dtype, n, bins):
    configs = [
        {"block": b, "num_warps": w, "programs": p}
        for b in (1024, 2048, 4096)
        for w in (4, 8)
        for p in (264, 528, 1056)
    ]
    return counted("histogram_by_tiles", dtype, n, bins, configs)


SHORT_LISTS = "sorts and histograms"

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
    (sort, [(FP32, 65536, 64), (FP32, 32768, 256), (FP32, 8192, 1024), (FP16, 16384, 512), (BF16, 8192, 1024)]),
    (histogram, [(INT32, 1 << 22, 65536)]),
    (histogram_by_tiles, [(INT32, 1 << 26, 256), (INT32, 1 << 26, 1024), (INT32, 1 << 22, 64)]),
]  # fmt: skip


def copy_of(size: int) -> Callable:
    """torch's copy that reads and writes as many bytes together."""
    source = torch.randint(256, (size // 2,), device="cuda", dtype=torch.uint8)
    target = torch.empty_like(source)
    return lambda: target.copy_(source)


def measure(record: Record, name: str, case: Case) -> Result:
    """Both compilers, each with its best configuration, and a copy; of what takes a few µs more rounds, since a clock's tick is half a hundredth of that, and
    several copies of each compiler's code."""
    copies = 1 if case.bytes > 1 << 24 else 4
    modules = {
        OURS: [load(case.module, k) for k in range(copies)],
        TRITON: [load_for_triton(case.module, k) for k in range(copies)],
    }
    runs = {who: [functools.partial(case.run, module) for module in mine] for who, mine in modules.items()}
    library = {"copy": copy_of(case.bytes)} if case.table == "memory-bound" else {}
    return timing.measure(record, Result(case.table, name, name, "TB/s", case.bytes), runs, case.configs, case.check, case.outs, library,
                          rounds=9 if case.bytes > 1 << 26 else 15, rep=12)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", help="the file of raw results to add to")
    parser.add_argument("only", nargs="*", help="kernels, such as softmax")
    parser.add_argument("--part", default="1/1", help="the k-th of n parts of the cases, as k/n")
    arguments = parser.parse_args()
    part, parts = map(int, arguments.part.split("/"))
    record = Record(arguments.record, about())
    print(record.run.about)
    torch.manual_seed(0)
    cases = [(make, args) for make, list_of_args in CASES for args in list_of_args]
    if arguments.only:
        cases = [c for c in cases if c[0].__name__ in arguments.only]
    for make, args in cases[part - 1 :: parts]:
        name = f"{make.__name__} {SHORT[args[0]]} {'×'.join(map(str, args[1:]))}"
        measure(record, name, make(*args))
    ratios = {r.case: record.run.ratio(r, TRITON) for r in record.run.results if TRITON in r.laps}
    mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
    worst = min(ratios, key=ratios.get)
    print(f"{len(ratios)} cases: geometric mean {mean:.3f}, smallest {ratios[worst]:.3f} ({worst})")


if __name__ == "__main__":
    main()
