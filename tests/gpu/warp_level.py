"""Paged attention as one warp sees it against the same at the level of work groups (``examples/paged_attention_warp.py``,
``examples/paged_decode.py``), and ``tiling`` on attention's second product: each at its best configuration, in turns.

The table has bandwidth over the keys and values read, and how many times faster the warp-level kernel is, which combines the parts of contexts itself, where
the other has a second kernel. ``paged`` cuts contexts into parts that programs of
their own go over, at both levels; ``listings`` has a program for each group of heads of a sequence, as ML-Triton's Listings 6 and 7 do: there the warps of the
work group divide each block, or share out the blocks.
"""

import argparse
import functools
import sys
from pathlib import Path

import timing
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

from exact import exact_attention, exact_decode
from peers import about, load
from results import OURS, Record, Result
from tolerance import close

import tilewright as triton
import tilewright.language as tl

HEADS, KV_HEADS, PAGE, D = 32, 8, 16, 128
CONTEXTS = (1 << 10, 1 << 12, 1 << 14, 1 << 16)
BATCHES = (1, 4, 16, 64)
GROUPS = [{"block": b, "num_warps": w, "num_stages": s}
          for b, w, s in ((32, 4, 2), (32, 4, 3), (32, 2, 2), (64, 4, 2), (64, 4, 3), (64, 8, 2), (64, 8, 3), (128, 4, 2), (128, 8, 2))]  # fmt: skip
WARPS = [{"block": b, "num_warps": w, "num_stages": s, "groups": g}
         for b, w, s, g in ((16, 2, 2, 1), (16, 2, 3, 1), (16, 4, 2, 1), (16, 4, 3, 1), (16, 8, 2, 1), (16, 8, 3, 1), (16, 4, 2, 2), (16, 4, 2, 4),
                            (16, 4, 3, 4), (16, 8, 2, 8), (16, 8, 3, 8), (32, 4, 2, 1))]  # fmt: skip
# One program for all of a context: with more warps, and for a work group with blocks of a page, as in the listing, or more.
WHOLE_GROUPS = GROUPS + [
    {"block": b, "num_warps": w, "num_stages": s}
    for b, w, s in ((16, 4, 3), (16, 8, 3), (128, 8, 3), (256, 8, 2))
]
WHOLE_WARPS = WARPS + [
    {"block": b, "num_warps": w, "num_stages": s} for b, w, s in ((16, 16, 2), (32, 8, 2), (32, 8, 3))
]


def problem(sequences, length):
    """What both take: queries, keys and values in pages, and where their results go."""
    width = length // PAGE
    q = torch.randn(sequences, HEADS, D, device="cuda", dtype=torch.float16)
    # As many pages as there are, up to what fits: longer tables name some of them several times.
    pages = min(sequences * width, 1 << 17)
    k, v = (torch.randn(pages, PAGE, KV_HEADS, D, device="cuda", dtype=torch.float16) for _ in range(2))
    table = (torch.randperm(sequences * width, device="cuda") % pages).int().view(sequences, width)
    lengths = torch.full((sequences,), length, device="cuda", dtype=torch.int32)
    return q, k, v, table, lengths, torch.empty_like(q)


def wanted(q, k, v, table, lengths, o):
    """Exactly, sequence by sequence."""
    return torch.stack(
        [exact_decode(q[i], k[table[i]], v[table[i]], n) for i, n in enumerate(lengths.tolist())]
    )


def chosen(result, who, run, configs, check, outs):
    """The best of the configurations that work, all of them right. ``outs``: what a launch leaves in memory, for itself, too."""
    usable, result.refused[who] = timing.compiled(run, configs)
    for config, reason in result.refused[who].items():
        print(f"    {config}: {reason[:150]}")
    right, wrong, result.errors[who] = timing.checked(run, usable, check, outs)
    assert not wrong, wrong
    result.tried[who] = len(right)
    result.configs[who] = timing.best(run, right)
    return functools.partial(run, **result.configs[who])


def paged(record):
    """The two levels on one problem, each with its contexts in as many parts as it likes best."""
    compared(record, "paged attention for one warp", GROUPS, WARPS, split=True)


def listings(record):
    """The same with contexts whole."""
    compared(record, "paged attention of whole contexts", WHOLE_GROUPS, WHOLE_WARPS, split=False)


def rooms(sequences, parts):
    """Where each level leaves what the parts of contexts give; at that of warps with their counters."""
    empty, warps = functools.partial(torch.empty, device="cuda"), max(c["num_warps"] for c in WHOLE_WARPS)
    o, lse = empty(sequences, HEADS, parts, D), empty(sequences, HEADS, parts, warps)
    arrived = torch.zeros(sequences, KV_HEADS, warps, dtype=torch.int32, device="cuda")
    return {"for a work group": (o, lse[..., 0].contiguous()), OURS: (o, lse, arrived)}


def compared(record, table, groups, warps, split):
    levels = {
        "for a work group": (load("paged_decode").paged_decode, groups),
        OURS: (load("paged_attention_warp").paged_decode, warps),
    }
    for sequences in BATCHES:
        for length in CONTEXTS:
            args = problem(sequences, length)
            # A lost page changes a row of 65,536 keys by about 0.01 of its spread (tests/runtime/test_tolerance.py), of fewer by more; 0.002 are allowed.
            check = functools.partial(close, args[-1], wanted(*args))
            room = {n: rooms(sequences, n) for n in (1, 2, 4, 8, 16, 32, 64) if n * 64 <= length}
            programs = sequences * KV_HEADS
            parts = [n for n in room if 128 <= programs * n <= 4096] or [max(room)] if split else [1]
            amount = 2 * 2 * sequences * length * KV_HEADS * D
            case = f"batch {sequences}, context {length:,}"
            result = Result(table, case, case, "TB/s", amount)
            runs = {}
            for name, (function, configs) in levels.items():
                run = lambda parts, name=name, function=function, **c: function(
                    *args, *room[parts][name], **c
                )
                every = [{**c, "parts": n} for n in parts for c in configs]
                # What parts leave for each other is poisoned, too, or those of another configuration would do; counters are zeros between launches.
                stale = [x for n in parts for x in room[n][name] if x.is_floating_point()]
                runs[name] = chosen(result, name, run, every, check, [args[-1], *stale])
            timing.compare(record, result, dict(sorted(runs.items(), key=lambda run: run[0] != OURS)))


@triton.jit
def attention(
    q_ptr, k_ptr, v_ptr, o_ptr, n,
    D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, TILING: tl.constexpr,
):  # fmt: skip
    """Attention forward with the hint on the second product."""
    row, at, d = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, D)
    base = tl.program_id(1).to(tl.int64) * n * D
    q = tl.load(q_ptr + base + row[:, None] * D + d[None, :])
    o, l = tl.zeros((BM, D), tl.float32), tl.zeros((BM,), tl.float32)
    m = tl.full((BM,), float("-inf"), tl.float32)
    for start in range(0, n, BN):
        k = tl.load(k_ptr + base + (start + at)[None, :] * D + d[:, None])
        v = tl.load(v_ptr + base + (start + at)[:, None] * D + d[None, :])
        s = tl.dot(q, k) * (D**-0.5 * 1.4426950408889634)
        new = tl.maximum(m, tl.max(s, axis=1))
        p = tl.exp2(s - new[:, None])
        scale = tl.exp2(m - new)
        l = l * scale + tl.sum(p, axis=1)
        o = tl.dot(p.to(tl.float16), v, o * scale[:, None], tiling=TILING)
        m = new
    tl.store(o_ptr + base + row[:, None] * D + d[None, :], (o / l[:, None]).to(tl.float16))


def tiling(record):
    """What the hint costs or brings where the compiler would have chosen rows by itself, and where it would not."""
    n, heads = 4096, 64
    for d in (64, 128):
        q, k, v = (torch.randn(heads, n, d, device="cuda", dtype=torch.float16) for _ in range(3))
        o = torch.empty_like(q)
        exact = exact_attention(q, k, v, False)[0]
        for bm, bn, num_warps in ((128, 64, 8), (64, 64, 4), (64, 32, 2)):
            hints = (None, "horizontal", "vertical", "square")
            run = lambda hint: attention[(n // bm, heads)](
                q, k, v, o, n, d, bm, bn, hint, num_warps=num_warps, num_stages=2
            )
            given = [{"hint": hint} for hint in hints]
            _, wrong, error = timing.checked(run, given, functools.partial(close, o, exact), [o])
            assert not wrong, wrong
            case = f"D={d}, {bm}×{bn}, {num_warps} warps"
            result = Result(
                "`tiling` in attention", case, case, "TFLOP/s", 4 * heads * n * n * d, errors={OURS: error}
            )
            runs = {hint or OURS: functools.partial(run, hint) for hint in hints}
            timing.compare(record, result, runs, graph=False)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--record", help="the file of raw results to add to")
    parser.add_argument("only", nargs="*")
    options = parser.parse_args()
    only, record = options.only, Record(options.record, about())
    print(record.run.about)
    torch.manual_seed(0)
    for name, measure in (("paged", paged), ("listings", listings), ("tiling", tiling)):
        if not only or name in only:
            measure(record)


if __name__ == "__main__":
    main()
