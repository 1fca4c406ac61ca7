"""The plain matmul of ``examples/matmul.py`` against Triton on the same source and the same configurations, and against cuBLAS.

``python products.py [--refused] [WORD …]`` prints a line a case whose label has one of the words: TFLOP/s under both compilers and
of cuBLAS, the ratios, and the configuration that each compiler kept; ``--refused`` prints why configurations were left out. Tiles
that are not powers of two are in the list of the last case: Triton refuses them. Each result is checked against torch first.
"""

import argparse
import functools
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
SQUARE = [((128, 256, 64), 8, 3), ((128, 256, 64), 8, 4), ((256, 128, 64), 8, 3), ((256, 128, 64), 8, 4),
          ((128, 128, 64), 8, 3), ((128, 128, 64), 4, 3), ((128, 128, 64), 4, 4), ((128, 128, 32), 4, 4), ((128, 256, 32), 8, 4)]  # fmt: skip
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


def measure(case: Case, show_refused: bool) -> None:
    m, n, k = case.shape
    a = torch.randn(m, k, device="cuda").to(case.dtype)
    b = (torch.randn(n, k, device="cuda").to(case.dtype).T if case.trans_b else torch.randn(k, n, device="cuda").to(case.dtype))  # fmt: skip
    out = torch.empty(m, n, device="cuda", dtype=FP16 if case.dtype == FP8 else case.dtype)
    want = a.float() @ b.float() if case.dtype == FP8 else (a @ b).float()
    # Products of fp8 are summed with 14 bits by the hardware.
    tolerance = k**0.5 * {FP16: 4e-3, BF16: 2e-2, FP8: 5e-2}[case.dtype] + 0.1
    tera = 2 * m * n * k * 1e-9
    if case.dtype == FP8:
        one = torch.ones((), device="cuda")
        library = (lambda: torch._scaled_mm(a, b, one, one, out_dtype=FP16)) if case.trans_b else None
    else:
        library = lambda: torch.mm(a, b, out=out)
    modules = {"ours": load("matmul"), "Triton": load_for_triton("matmul")}
    result = timing.contest(
        {who: functools.partial(module.matmul, a, b, out) for who, module in modules.items()},
        [{"block": block, "num_warps": warps, "num_stages": stages} for block, warps, stages in case.configs],
        lambda: torch.testing.assert_close(out.float(), want, rtol=2e-2, atol=tolerance),
        [out],
        {"cuBLAS": library} if library else None,
    )
    if show_refused:
        for who, reasons in result.refused.items():
            for config, reason in reasons.items():
                print(f"    {who} {config}: {reason[:150]}")
    others = "  ".join(
        f"{who} {tera / result.times[who]:7.1f} ratio {ratio:5.3f}" for who, ratio in result.ratios().items()
    )
    print(f"{case.label():40} {tera / result.times['ours']:7.1f}  {others}  {result.kept()}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--refused", action="store_true", help="print why configurations were left out")
    parser.add_argument("words", nargs="*")
    options = parser.parse_args()
    print(versions())
    torch.manual_seed(0)
    for case in CASES:
        if not options.words or any(w in case.label() for w in options.words):
            try:
                measure(case, options.refused)
            except Exception as error:
                print(f"{case.label():40} FAILED {str(error)[:600]}", flush=True)


if __name__ == "__main__":
    main()
