"""The plain matmul of ``examples/matmul.py`` against Triton on the same source and the same configurations, and against cuBLAS.

``python products.py [--all] [WORD …]`` prints a line a case whose label has one of the words: TFLOP/s under both compilers and
of cuBLAS, the ratios, and the configuration that each compiler kept; ``--all`` prints every configuration's times too. Tiles
that are not powers of two are in the list of the last case: Triton refuses them. Each result is checked against torch first.
"""

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import timing
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

from peers import load, load_for_triton, versions

FP16, BF16, FP8 = torch.float16, torch.bfloat16, torch.float8_e4m3fn
SHORT = {FP16: "fp16", BF16: "bf16", FP8: "fp8"}

# (M, N, K of a tile), warps, stages.
SQUARE = [((128, 256, 64), 8, 3), ((128, 256, 64), 8, 4), ((256, 128, 64), 8, 3), ((128, 128, 64), 8, 3), ((128, 128, 64), 4, 3),
          ((128, 128, 64), 4, 4), ((128, 128, 32), 4, 4), ((128, 256, 32), 8, 4)]  # fmt: skip
WIDE_K = [((128, 256, 128), 8, 3), ((128, 256, 128), 8, 4), ((256, 128, 128), 8, 3), ((128, 128, 128), 8, 3), ((128, 128, 128), 4, 4),
          ((128, 256, 64), 8, 4)]  # fmt: skip
SKINNY = [((16, n, k), w, s) for n, k, w, s in ((32, 128, 4, 5), (32, 256, 4, 4), (64, 64, 4, 6), (64, 128, 4, 4), (64, 128, 4, 5),
                                                (64, 256, 4, 4), (64, 256, 8, 4), (128, 64, 4, 5), (128, 128, 8, 4))]  # fmt: skip
ODD = [((128, 192, 64), 8, 3), ((128, 192, 64), 8, 4), ((128, 96, 64), 4, 4), ((128, 160, 64), 8, 4)]


@dataclass
class Case:
    """A product of an M×K and a K×N matrix; ``trans_b``: the right one is stored transposed."""

    dtype: torch.dtype
    shape: tuple[int, int, int]
    configs: list
    trans_b: bool = False

    def label(self) -> str:
        size = f"{self.shape[0]}³" if len(set(self.shape)) == 1 else "×".join(map(str, self.shape))
        layout = ", B transposed" if self.trans_b else ""
        odd = ", odd tiles" if any(b & (b - 1) for block, _, _ in self.configs for b in block) else ""
        return f"{SHORT[self.dtype]} {size}{layout}{odd}"


CASES = [
    *(Case(dtype, (n, n, n), SQUARE) for dtype in (FP16, BF16) for n in (8192, 4096, 2048)),
    Case(FP16, (16, 8192, 8192), SKINNY),
    Case(BF16, (16, 8192, 8192), SKINNY),
    Case(FP8, (8192, 8192, 8192), WIDE_K, trans_b=True),
    Case(FP8, (8192, 8192, 8192), WIDE_K),
    Case(FP16, (4000, 4112, 4048), SQUARE),
    Case(FP16, (4001, 4104, 4072), SQUARE),
    Case(FP16, (3999, 4001, 4003), SQUARE),
    Case(FP16, (2048, 1536, 4096), SQUARE + ODD),
]


def measure(case: Case, show_all: bool) -> None:
    m, n, k = case.shape
    a = torch.randn(m, k, device="cuda").to(case.dtype)
    b = (torch.randn(n, k, device="cuda").to(case.dtype).T if case.trans_b else torch.randn(k, n, device="cuda").to(case.dtype))  # fmt: skip
    out = torch.empty(m, n, device="cuda", dtype=FP16 if case.dtype == FP8 else case.dtype)
    want = a.float() @ b.float() if case.dtype == FP8 else (a @ b).float()
    # Products of fp8 are summed with 14 bits by the hardware.
    tolerance = k**0.5 * {FP16: 4e-3, BF16: 2e-2, FP8: 5e-2}[case.dtype] + 0.1
    tera = 2 * m * n * k * 1e-9
    best = {}
    for who, module in (("ours", load("matmul")), ("Triton", load_for_triton("matmul"))):
        times = []
        for config in case.configs:
            block, warps, stages = config
            launch = lambda: module.matmul(a, b, out, block=block, num_warps=warps, num_stages=stages)
            try:
                out.fill_(float("nan"))
                launch()
                torch.cuda.synchronize()
            except Exception as error:  # a configuration that one compiler refuses is none of its list
                if show_all:
                    print(
                        f"    {who} {config}: {str(error).splitlines()[0][:100] if str(error) else type(error).__name__}"
                    )
                continue
            torch.testing.assert_close(out.float(), want, rtol=2e-2, atol=tolerance)
            times.append((timing.time(launch, 20), config))
            if show_all:
                print(f"    {who} {config}: {tera / times[-1][0]:.1f}")
        best[who] = module, min(times)[1]
    if case.dtype == FP8:
        one = torch.ones((), device="cuda")
        library = (lambda: torch._scaled_mm(a, b, one, one, out_dtype=FP16)) if case.trans_b else None
    else:
        library = lambda: torch.mm(a, b, out=out)
    competitors = {
        who: lambda m=module, c=config: m.matmul(a, b, out, block=c[0], num_warps=c[1], num_stages=c[2])
        for who, (module, config) in best.items()
    }
    times = timing.race(competitors | ({"cuBLAS": library} if library else {}))
    ours = times["ours"]
    others = "  ".join(
        f"{who} {tera / t:7.1f} ratio {t / ours:5.3f}" for who, t in times.items() if who != "ours"
    )
    print(
        f"{case.label():40} {tera / ours:7.1f}  {others}  {best['ours'][1]} | {best['Triton'][1]}", flush=True
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="print every configuration")
    parser.add_argument("words", nargs="*")
    options = parser.parse_args()
    print(versions())
    torch.manual_seed(0)
    for case in CASES:
        if not options.words or any(w in case.label() for w in options.words):
            try:
                measure(case, options.all)
            except Exception as error:
                print(f"{case.label():40} FAILED {str(error)[:600]}", flush=True)


if __name__ == "__main__":
    main()
