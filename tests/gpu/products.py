"""The plain matmul of ``examples/matmul.py`` against Triton on the same source and the same configurations, and against cuBLAS.

``python products.py [--record FILE] [--table NAME] [WORD …]`` measures the cases whose label has one of the words: TFLOP/s under both
compilers and of cuBLAS, the ratios, and the configuration that each compiler kept. The configurations are ours and those of
Triton's tutorial (``03-matrix-multiplication``). Tiles that are not powers of two are in the list of the last case of ``products``:
Triton refuses them; so are some for the layers. The table ``layers`` has products of Llama 3 (8B, 70B) and DeepSeek-V3, ``tokens × outputs × inputs``, the
weights stored as ``torch.nn.Linear`` does.
"""

import argparse
import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

import timing
from peers import about, load, load_for_triton
from results import OURS, TRITON, Record, Result
from tolerance import close, eps

FP16, BF16, FP8, INT8 = torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.int8
SHORT = {FP16: "fp16", BF16: "bf16", FP8: "fp8", INT8: "int8"}
RESULT = {FP8: FP16, INT8: torch.int32}

# (M, N, K of a tile), warps, stages, and what a launch is given besides. TUTORIAL and TUTORIAL_FP8 are those of Triton's tutorial.
TUTORIAL = [((128, 256, 64), 8, 3), ((64, 256, 32), 4, 4), ((128, 128, 32), 4, 4), ((128, 64, 32), 4, 4), ((64, 128, 32), 4, 4),
            ((128, 32, 32), 4, 4), ((64, 32, 32), 2, 5), ((32, 64, 32), 2, 5)]  # fmt: skip
TUTORIAL_FP8 = [((128, 256, 128), 8, 3), ((256, 128, 128), 8, 3), ((256, 64, 128), 4, 4), ((64, 256, 128), 4, 4),
                ((128, 128, 128), 4, 4), ((128, 64, 64), 4, 4), ((64, 128, 64), 4, 4), ((128, 32, 64), 4, 4)]  # fmt: skip
SQUARE = [*TUTORIAL, ((128, 256, 64), 8, 4), ((256, 128, 64), 8, 3), ((256, 128, 64), 8, 4), ((128, 128, 64), 8, 3),
          ((128, 128, 64), 8, 4), ((128, 128, 64), 4, 3), ((128, 128, 64), 4, 4), ((128, 128, 64), 4, 5), ((128, 256, 32), 8, 4)]  # fmt: skip
WIDE_K = [*TUTORIAL_FP8, ((128, 256, 128), 8, 4), ((128, 128, 128), 8, 3), ((128, 256, 64), 8, 4)]
SKINNY = [((16, n, k), w, s) for n, k, w, s in ((32, 128, 4, 5), (32, 256, 4, 4), (64, 64, 4, 6), (64, 128, 4, 4), (64, 128, 4, 5),
                                                (64, 256, 4, 4), (64, 256, 8, 4), (128, 64, 4, 5), (128, 128, 8, 4))]  # fmt: skip
FLAT = [((64, n, k), 4, s) for n, k, s in ((32, 128, 5), (64, 64, 6), (64, 128, 4), (64, 128, 5), (128, 64, 4), (128, 64, 5), (128, 128, 4),
                                           (256, 64, 4), (32, 128, 8), (64, 128, 6))]  # fmt: skip
FLAT += [((128, n, k), 4, s) for n, k, s in ((32, 128, 5), (64, 64, 6), (64, 128, 4))]
ODD = [((128, 192, 64), 8, 3), ((128, 192, 64), 8, 4), ((128, 192, 64), 8, 5), ((128, 96, 64), 4, 4), ((128, 160, 64), 8, 4)]  # fmt: skip
# Programs do the work of several, which Triton has not: CTAs, or clusters of two, of which each has half a tile. A wave of 132 programs is squarer, and
# reads less, in groups of 16 rows of tiles of 128 rows, or of 4 of 512.
LOOP = {"persistent": True}
PAIRS = {"persistent": True, "num_ctas": 2}
PERSISTENT = [((128, 256, 64), 8, 4, LOOP), ((256, 128, 64), 8, 4, LOOP), ((128, 256, 64), 8, 4, LOOP | {"group_m": 16}),
              ((128, 512, 64), 8, 3, PAIRS | {"group_m": 16}), ((512, 128, 64), 8, 4, PAIRS | {"group_m": 4}),
              ((128, 256, 64), 8, 4, {"group_m": 16})]  # fmt: skip
# With these the last wave of programs leaves fewer multiprocessors without work, whatever the number of outputs.
FLAT_ODD = [
    ((64, 48, 128), 4, 6),
    ((128, 144, 64), 4, 3),
    ((64, 24, 128), 4, 8),
    ((64, 56, 128), 4, 5),
    ((64, 56, 128), 4, 3),
    ((128, 56, 128), 4, 4),
    ((128, 56, 128), 8, 4),
    ((64, 112, 64), 4, 9),
    ((128, 96, 64), 4, 4),
    ((128, 96, 64), 4, 3),
    ((128, 192, 64), 8, 5),
]
WIDE = [((128, 192, 64), 8, 5), ((128, 224, 64), 8, 4), ((256, 160, 64), 8, 3), ((256, 192, 64), 8, 3), ((128, 128, 64), 4, 6),
        ((128, 192, 64), 8, 5, LOOP), ((128, 224, 64), 8, 4, LOOP), ((128, 224, 64), 8, 4, LOOP | {"group_m": 4}), ((128, 176, 64), 8, 5, LOOP), ((128, 176, 64), 8, 5, LOOP | {"group_m": 4}), ((256, 224, 64), 8, 4, PAIRS | {"group_m": 2}), ((128, 320, 64), 8, 3, LOOP), ((256, 256, 64), 8, 4, PAIRS | {"group_m": 4}), ((256, 176, 64), 8, 5, PAIRS | {"group_m": 2}), ((512, 128, 64), 8, 4, PAIRS | {"group_m": 2})]  # fmt: skip
SPLIT = [((m, n, 64), w, s, {"split_k": k}) for m, n, w in ((64, 64, 4), (64, 128, 4), (128, 128, 8)) for s in (3, 4) for k in (4, 8, 16)]  # fmt: skip
WIDE_K_MORE = [((256, 128, 128), 8, 4, LOOP), ((128, 256, 128), 8, 4, {"group_m": 16}), ((128, 256, 128), 8, 3, LOOP | {"group_m": 16}),
               ((128, 256, 128), 8, 4, LOOP)]  # fmt: skip
# Those of Triton's tutorial on persistent products that fit a multiprocessor, each with its epilogue whole and in halves.
ON_DESCRIPTORS = [{"block": (128, n, k), "num_warps": w, "num_stages": s, "halves": halves}
                  for n, k, s in ((256, 64, 2), (256, 64, 3), (256, 64, 4), (128, 64, 2), (128, 64, 3), (128, 64, 4), (128, 128, 2), (128, 128, 3),
                                  (256, 128, 2)) for halves in (False, True) for w in (4, 8)]  # fmt: skip


@dataclass
class Case:
    """A product of an M×K and a K×N matrix; ``trans_b``: the right one is stored transposed; ``split``: programs share out K and add to a float32 result."""

    dtype: torch.dtype
    shape: tuple[int, int, int]
    configs: list
    trans_b: bool = False
    name: str = ""
    split: bool = False

    def problem(self) -> str:
        size = f"{self.shape[0]}³" if len(set(self.shape)) == 1 else "×".join(map(str, self.shape))
        layout = ", B transposed" if self.trans_b else ""
        return f"{SHORT[self.dtype]} {size}{layout}"

    def label(self) -> str:
        if self.split:
            return f"{self.problem()}, split-K"
        odd = ", odd tiles" if any(b & (b - 1) for config in self.configs for b in config[0]) else ""
        return self.name or f"{self.problem()}{odd}"


PRODUCTS = [
    *(Case(dtype, (n, n, n), SQUARE + PERSISTENT) for dtype in (FP16, BF16) for n in (8192, 4096, 2048)),
    Case(FP16, (16, 8192, 8192), SKINNY),
    Case(BF16, (16, 8192, 8192), SKINNY),
    Case(FP16, (64, 8192, 8192), FLAT + TUTORIAL),
    Case(FP8, (8192, 8192, 8192), WIDE_K + WIDE_K_MORE, trans_b=True),
    Case(FP8, (8192, 8192, 8192), WIDE_K),
    Case(INT8, (8192, 8192, 8192), WIDE_K, trans_b=True),
    Case(FP16, (4000, 4112, 4048), SQUARE + PERSISTENT),
    Case(FP16, (4001, 4104, 4072), SQUARE + PERSISTENT),
    Case(FP16, (3999, 4001, 4003), SQUARE),
    Case(FP16, (2048, 1536, 4096), SQUARE + ODD),
    *(
        Case(FP16, shape, SPLIT, trans_b=True, split=True)
        for shape in ((64, 4096, 14336), (128, 512, 16384), (512, 512, 32768))
    ),
]

LLAMA_8B = {"qkv": (6144, 4096), "o": (4096, 4096), "gate and up": (28672, 4096), "down": (4096, 14336)}
LLAMA_70B = {"qkv": (10240, 8192), "o": (8192, 8192), "gate and up": (57344, 8192), "down": (8192, 28672)}
DEEPSEEK = {"q, down": (1536, 7168), "q, up": (24576, 1536), "kv, up": (32768, 512), "o": (7168, 16384),
            "dense gate and up": (36864, 7168), "dense down": (7168, 18432), "expert gate and up": (4096, 7168),
            "expert down": (7168, 2048)}  # fmt: skip

LAYERS = [
    Case(BF16, (tokens, *weight), SQUARE + (FLAT + FLAT_ODD if tokens <= 128 else WIDE + PERSISTENT), True, f"{model} {layer}, {tokens}×{weight[0]}×{weight[1]}")
    for model, layers, sizes in (
        ("Llama 3 8B", LLAMA_8B, (64, 512, 2048, 8192)),
        ("Llama 3 70B", LLAMA_70B, (512, 4096)),
        ("DeepSeek-V3", DEEPSEEK, (128, 4096)),
    )
    for tokens in sizes
    for layer, weight in layers.items()
]  # fmt: skip

TABLES = {"products": PRODUCTS, "layers": LAYERS}


def launch_options(block: tuple, warps: int, stages: int, options: dict | None = None) -> dict:
    """A configuration as a launch takes it."""
    return {"block": block, "num_warps": warps, "num_stages": stages} | (options or {})


def random(dtype: torch.dtype, rows: int, cols: int) -> torch.Tensor:
    if dtype == INT8:
        return torch.randint(-128, 128, (rows, cols), device="cuda", dtype=dtype)
    return torch.randn(rows, cols, device="cuda").to(dtype)


def libraries(a, b, out, case: Case) -> dict:
    """What cuBLAS has for the case."""
    if case.split:
        return {"cuBLAS": lambda: torch.mm(a, b)}
    if case.dtype == FP8:
        one = torch.ones((), device="cuda")
        exact = lambda: torch._scaled_mm(a, b, one, one, out_dtype=out.dtype)
        fast = lambda: torch._scaled_mm(a, b, one, one, out_dtype=out.dtype, use_fast_accum=True)
        return {"cuBLAS": exact, "cuBLAS, fast accumulation": fast} if case.trans_b else {}
    if case.dtype == INT8:
        return {"cuBLAS": lambda: torch._int_mm(a, b)}
    return {"cuBLAS": lambda: torch.mm(a, b, out=out)}


def measure(record: Record, table: str, case: Case) -> None:
    m, n, k = case.shape
    a = random(case.dtype, m, k)
    b = random(case.dtype, n, k).T if case.trans_b else random(case.dtype, k, n)
    result = torch.float32 if case.split else RESULT.get(case.dtype, case.dtype)
    out = torch.empty(m, n, device="cuda", dtype=result)
    wide = torch.float64 if case.dtype == INT8 else torch.float32
    want = a.to(wide) @ b.to(wide)
    # A term that is missing from a sum of k is off by 1/√k. Hardware sums products of fp8 with 14 bits: 2.2e-3 were seen.
    share = None if case.dtype == INT8 else 5e-3 if case.dtype == FP8 else max(eps(case.dtype), 1e-3)
    # What takes some ten µs depends on where its code lies.
    copies = range(4 if 2 * m * n * k < 10**10 else 1)
    modules = {
        OURS: [load("matmul", c) for c in copies],
        TRITON: [load_for_triton("matmul", c) for c in copies],
    }

    def run(module, **config):
        if case.split:
            out.zero_()
            return module.split_k_matmul(a, b, out, **config)
        return module.matmul(a, b, out, **config)

    configs = [launch_options(*config) for config in case.configs]
    # (Of sixty-seven million sums whose terms tensor cores add in fourteen bits, one may be further off.)
    check = lambda: close(out, want, share, 10.0, truncated=case.dtype == FP8)

    def choice(table: str, label: str, runs: dict, configs: dict) -> tuple[Result, Callable]:
        result = Result(table, label, case.problem(), "TFLOP/s", 2 * m * n * k)
        return result, functools.partial(
            timing.choose, result, runs, configs, check, [out], libraries(a, b, out, case)
        )

    sources = [
        choice(
            table,
            case.label(),
            {who: [functools.partial(run, module) for module in mine] for who, mine in modules.items()},
            {OURS: configs, TRITON: [config for config in configs if "persistent" not in config]},
        )
    ]
    if table == "layers":
        # Triton's best of a layer may be its persistent source.
        programs = torch.cuda.get_device_properties(0).multi_processor_count
        by_descriptors = lambda module, **config: module.persistent_matmul(
            a, b.T, out, programs=programs, **config
        )
        on_descriptors = [c | {"flatten": flatten} for c in ON_DESCRIPTORS for flatten in (False, True)]
        who = {OURS: load("persistent_matmul"), TRITON: load_for_triton("persistent_matmul")}
        runs = {name: functools.partial(by_descriptors, module) for name, module in who.items()}
        sources.append(
            choice("layers on descriptors", case.label(), runs, dict.fromkeys(runs, ON_DESCRIPTORS))
        )
    timing.measure_together(record, sources)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", help="the file of raw results to add to")
    parser.add_argument("--table", choices=TABLES, action="append", help="one of the two")
    parser.add_argument("words", nargs="*")
    options = parser.parse_args()
    record = Record(options.record, about())
    print(record.run.about)
    torch.manual_seed(0)
    for table in options.table or TABLES:
        for case in TABLES[table]:
            if not options.words or any(w in case.label() for w in options.words):
                measure(record, table, case)


if __name__ == "__main__":
    main()
