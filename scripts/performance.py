"""Writes the tables of docs/performance.md, and what README says of speed, from the raw results in bench/results.

    python scripts/performance.py           # writes them
    python scripts/performance.py --check   # says whether they are what would be written

What is written stands between ``<!-- tables: NAME -->`` and ``<!-- /tables -->``. A case is of the newest run that has it, and a ratio of
the run that its case is of. How they come about says tests/bench/results.py.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "bench"))

from results import FLOORS, FOLDER, OURS, SIMULATOR, TRITON, Result, Run, load  # noqa: E402

PAGES = (ROOT / "docs" / "performance.md", ROOT / "README.md")
BLOCK = re.compile(
    r"(?P<open><!-- tables: (?P<name>[\w ,`-]+) -->\n).*?(?P<close><!-- /tables -->)", re.DOTALL
)
# The tables, in the order of the page, and what stands over each.
TITLES = {
    "products": "Plain matrix products through pointers, `examples/matmul.py`",
    "layers": "The same source on the products of 40 layers (tokens × outputs × inputs, bf16, weights as `torch.nn.Linear` stores them)",
    "layers on descriptors": "The products of layers on tensor descriptors, `examples/persistent_matmul.py`",
    "persistent": "Persistent matrix product on tensor descriptors, `examples/persistent_matmul.py` (fp16)",
    "attention": "Attention forward, fp16, batch 4, 16 heads, sequence 4096",
    "attention of other shapes": "Attention forward of other shapes (sequences × length), where nothing else is said through pointers, `examples/flash_attention.py`, `flash_attention_varlen.py`",
    "attention backward": "Attention backward, the same shapes",
    "paged and sparse": "Paged decode and sparse attention",
    "grouped": "Products of groups and of experts (bf16), `examples/grouped_matmul.py`",
    "sorts and histograms": "Sorts and histograms, `examples/sort.py` and `histogram.py`",
    "memory-bound": "Memory-bound kernels",
    "raw": "CUDA inside kernels, `tests/gpu/raw.py`",
    "launch": "Host time of a launch, `tests/gpu/launch.py`",
    "tokens by expert": "Tokens by expert, `examples/tle/moe_align.py`",
    "products by roles": "Matrix products by warps with roles, `examples/tle`",
    "attention by roles": "Attention by warps with roles, `examples/tle/attention.py`",
    "sparse attention by roles": "Sparse attention by warps with roles, `examples/tle/sparse_mla.py`",
    "largest of rows": "The largest of each row in order, `examples/tle/topk.py`",
    "which are the largest": "Which are the largest, `examples/tle/topk_selector.py`",
    "Fourier transforms": "Fourier transforms of 4096 rows, `examples/tle/fft.py`",
    "paged attention for one warp": "Paged attention for one warp, `examples/paged_attention_warp.py`",
    "paged attention of whole contexts": "Paged attention with a program for each context, as in ML-Triton's Listings 6 and 7",
    "`tiling` in attention": "The hint `tiling` on attention's second product",
    "collectives": "`tle.reshard` from memory to memory, bfloat16",
    "products across devices": "Products and attention across devices, `examples/tle` (products of 8192 rows, N × K in all)",
    "compile time": "Compile time, ms, target `cuda:90`",
    "executor": "Kernels without a GPU, ms",
    "simulator": "What the PTX simulator runs on one core",
}

# A ratio that is less than this above its floor stands with its interval.
NEAR = 0.02

Cases = dict[str, tuple[Run, Result]]


def collect(folder: Path = FOLDER) -> dict[str, dict[str, Cases]]:
    """By GPU, or several of one kind (where there was none, by processor), and by table, the newest result of each case with its run."""
    found: dict[str, dict[str, Cases]] = {}
    for path in sorted(folder.glob("*.json")):
        for run in load(path):
            for result in run.results:
                tables = found.setdefault(machine(run), {})
                tables.setdefault(result.table, {})[result.case] = (run, result)
    return found


def machine(run: Run) -> str:
    """The processor, the GPU, or so many of it."""
    gpu, count = run.about.get("gpu"), run.about.get("gpus", 1)
    return run.about["cpu"] if gpu is None else gpu if count == 1 else f"{count} {gpu}"


def short(gpu: str) -> str:
    """`NVIDIA H100 80GB HBM3` as people say it."""
    return re.search(r"[A-Z]+\d+\w*", gpu)[0]


def mean(ratios: list[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def ratios(cases: Cases, who: str) -> dict[str, float]:
    """Of the cases in which both took part."""
    found = {case: run.ratio(r, who) for case, (run, r) in cases.items() if OURS in r.laps}
    return {case: ratio for case, ratio in found.items() if not math.isnan(ratio)}


def against(cases: Cases) -> list[str]:
    """The competitors, in the order in which they first appear."""
    return list(dict.fromkeys(who for _, r in cases.values() for who in r.laps if who != OURS))


def number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.1f}" if value >= 20 else f"{value:.3f}"


def table(cases: Cases) -> list[str]:
    """A row a case: rates, and ratios of ours to each; Triton's by the best that it has for the problem."""
    others = against(cases)
    units = {r.unit for _, r in cases.values() if r.unit}
    several = any(run.best_of_triton(r) not in (r, None) for run, r in cases.values())
    head = ["", f"Tilewright, {'/'.join(sorted(units))}"]
    for who in others:
        head += [who, *(["Triton's best"] if who == TRITON and several else []), "ratio"]
    mixed = len({build(run) for run, _ in cases.values()}) > 1
    head += ["build"] if mixed else []
    rows = [head, ["---"] * len(head)]
    for case, (run, r) in cases.items():
        if r.failed:
            rows.append([case, "failed", *[""] * (len(head) - 2)])
            continue
        best = run.best_of_triton(r)
        row = [case, number(r.rate(OURS))]
        for who in others:
            row.append(number(run.rate(r, who)))
            if who == TRITON and several:
                row.append(number(best.rate(TRITON)) if best else "")
            ratio = run.ratio(r, who) if who == TRITON or who in r.laps else math.nan
            row.append("" if math.isnan(ratio) else f"{ratio:.3f}{near(run, r, who, ratio)}")
        rows.append(row + ([build(run)] if mixed else []))
    return [f"| {' | '.join(row)} |" for row in rows]


def near(run: Run, result: Result, who: str, ratio: float) -> str:
    """Between which numbers a ratio lies that is near its floor or below it, or that may be on either side of 1."""
    low, high = run.interval(result, who)
    is_near = (who in FLOORS and ratio < FLOORS[who] + NEAR) or low < 1 < high
    return f" ({low:.3f} to {high:.3f})" if is_near and not math.isnan(low) else ""


def median_of(result: Result, who: str, stage: str) -> float:
    return statistics.median(result.stages.get(who, {}).get(stage, [math.nan]))


def compile_table(cases: Cases) -> list[str]:
    """A row a kernel: the stages, all but ``ptxas`` beside Triton's, and ``ptxas`` on the PTX of both."""
    stages = {"frontend": "front end", "ttir": "ttir", "ttgir": "ttgir", "llir": "llir", "ptx": "ptx"}
    head = [
        "kernel",
        *stages.values(),
        "all but `ptxas`",
        TRITON,
        "ratio",
        "`ptxas`",
        "of Triton's PTX",
        "LLVM instructions",
    ]
    rows = [head, ["---"] * len(head)]
    for case, (_, r) in cases.items():
        times = [
            *(median_of(r, OURS, stage) for stage in stages),
            r.ms(OURS),
            r.ms(TRITON),
            r.ms(TRITON) / r.ms(OURS),
        ]
        times += [median_of(r, OURS, "cubin"), median_of(r, TRITON, "cubin")]
        rows.append(
            [
                case,
                *("" if math.isnan(ms) else f"{ms:.2f}" for ms in times),
                str(r.counts["LLVM instructions"]),
            ]
        )
    return [f"| {' | '.join(row)} |" for row in rows]


def executor_table(cases: Cases) -> list[str]:
    """A row a kernel: the CPU executor beside Triton's interpreter, and the simulator."""
    rows = [
        ["kernel", "Tilewright", "Triton's interpreter", "ratio", "Tilewright's PTX simulator, checks on"]
    ]
    rows.append(["---"] * len(rows[0]))
    for case, (run, r) in cases.items():
        times = [r.ms(OURS), r.ms(TRITON), run.ratio(r, TRITON), r.ms(SIMULATOR)]
        rows.append([case, *("" if math.isnan(v) else f"{v:.0f}" if v >= 100 else f"{v:.3g}" for v in times)])
    return [f"| {' | '.join(row)} |" for row in rows]


def simulator_table(cases: Cases) -> list[str]:
    """A row a case: millions of thread-instructions a second."""
    rows = [["kernel", "million thread-instructions a second"], ["---", "---"]]
    rows += [[case, f"{r.rate(SIMULATOR) * 1e6:.0f}"] for case, (_, r) in cases.items()]
    return [f"| {' | '.join(row)} |" for row in rows]


def times_table(cases: Cases) -> list[str]:
    """A row a case: times in µs, launched and in a graph, and how many times ours those of the others are."""
    head, columns = [""], []
    if units := {r.unit for _, r in cases.values() if r.unit}:
        head.append(f"Tilewright, {'/'.join(sorted(units))}")
    for graph, said in ((False, "launched, µs"), (True, "in a graph, µs")):
        laps = [r.graph if graph else r.laps for _, r in cases.values()]
        for who in dict.fromkeys(who for of in laps for who in of):
            head += [said] if who == OURS else [who, "ratio"]
            columns.append((graph, who))
    mixed = len({build(run) for run, _ in cases.values()}) > 1
    counts = list(dict.fromkeys(name for _, r in cases.values() for name in r.counts))
    head += counts + (["build"] if mixed else [])
    rows = [head, ["---"] * len(head)]
    for case, (run, r) in cases.items():
        row = [case] + ([number(r.rate(OURS))] if units else [])
        for graph, who in columns:
            us = r.ms(who, graph) * 1e3
            row.append("" if math.isnan(us) else f"{us:.2f}" if us < 20 else f"{us:.1f}")
            if who != OURS:
                ratio = r.ratio(who, graph)
                row.append("" if math.isnan(ratio) else f"{ratio:.3f}")
        rows.append(row + [str(r.counts.get(name, "")) for name in counts] + ([build(run)] if mixed else []))
    return [f"| {' | '.join(row)} |" for row in rows]


# Tables that are not of rates and ratios: those of a machine with no GPU, and those of times.
OWN_TABLES = dict.fromkeys(
    (
        "raw",
        "launch",
        "tokens by expert",
        "products by roles",
        "attention by roles",
        "sparse attention by roles",
        "largest of rows",
        "which are the largest",
        "Fourier transforms",
        "paged attention for one warp",
        "paged attention of whole contexts",
        "`tiling` in attention",
        "collectives",
        "products across devices",
    ),
    times_table,
) | {"compile time": compile_table, "executor": executor_table, "simulator": simulator_table}


def build(run: Run) -> str:
    """What of Tilewright was measured."""
    return run.about.get("commit") or f"{run.about['tilewright']}, {run.about['date']}"


def summary(cases: Cases, who: str) -> list[str]:
    """What the ratios to one competitor come to, where it took part in several cases."""
    found = list(ratios(cases, who).values())
    if len(found) < 3:
        return []
    name = "Triton's best" if who == TRITON else who
    text = f"- Ratios to {name}: {min(found):.3f} to {max(found):.3f}, median {statistics.median(found):.3f}, geometric mean {mean(found):.3f}"
    floor = FLOORS.get(who, 1.0)
    below = sum(v < floor for v in found)
    text += f"; {below} of {len(found)} are below {floor:g}"
    if who in FLOORS and below:
        slower = sum(run.is_below(r, who) for run, r in cases.values())
        text += f", {slower or 'none'} by more than rounds differ"
        if untold := sum(run.is_untold(r, who) for run, r in cases.values()):
            text += f", {untold} in too few rounds to tell"
    return [f"{text}.", *by_lengths(cases, who)]


def by_lengths(cases: Cases, who: str) -> list[str]:
    """Of Triton, whose tiles are powers of two, and memory-bound kernels: the means of lengths that are some, and of others."""
    if who != TRITON or any(r.table != "memory-bound" for _, r in cases.values()):
        return []
    kinds: dict[bool, list[float]] = {True: [], False: []}
    for case, ratio in ratios(cases, who).items():
        lengths = map(int, re.findall(r"\d+", case.split(" ", 2)[2]))
        kinds[all(n & (n - 1) == 0 for n in lengths)].append(ratio)
    if not all(kinds.values()):
        return []
    even, odd = kinds[True], kinds[False]
    return [f"- Geometric mean of the {len(even)} whose lengths are powers of two {mean(even):.3f}, of the {len(odd)} others {mean(odd):.3f}."]  # fmt: skip


def span(values: list, unit: str) -> str:
    """The range of numbers, as short as it can be said."""
    low, high = f"{min(values):.0f}", f"{max(values):.0f}"
    return f"{low} {unit}" if low == high else f"{low} to {high} {unit}"


def setting(run: Run, cases: Cases) -> str:
    """With what, and how."""
    a = run.about
    if "cpu" in a:
        compiled = any(r.stages for _, r in cases.values())
        what = "cache misses in a warm process, in turns" if compiled else "runs"
        rounds = span([len(laps) for _, r in cases.values() for laps in r.laps.values()], what)
        peer = f", Triton {a['triton']}" if "triton" in a else ""
        peer += f", both with `ptxas` {a['ptxas']}" if "ptxas" in a else ""
        return f"{a['cpu']}, {a['cores']} cores, load average {a['load average']}, {a['date']}; Tilewright {build(run)}{peer}; medians of {rounds}."
    of = [r for _, r in cases.values() if r.laps or r.graph]
    rounds = [len(laps) for r in of for laps in (r.laps or r.graph).values()]
    said = [f"medians of {span(rounds, 'rounds')}{' in turns' if a.get('gpus', 1) == 1 else ''}"]
    if a.get("gpus", 1) == 1 and rounds:
        said.append(f"{a['order of turns']} order" if "order of turns" in a else "in one order")
    if tried := [count for r in of for count in r.tried.values() if count]:
        said.append(f"{span(tried, 'configurations')} each")
    if clocks := [r.clock_mhz for r in of if r.clock_mhz]:
        said.append(span(clocks, "MHz"))
    peer = f", Triton {a['triton']}, both with `ptxas` {a['ptxas']}" if "triton" in a else ""
    return f"{machine(run)}, driver {a['driver']}, {a['date']}; Tilewright {build(run)}, torch {a['torch']}{peer}; {', '.join(said)}."


def kind(reason: str) -> str:
    """`OutOfResources: out of resource: …` without what differs."""
    return "wrong results" if reason.startswith("wrong") else reason.split(": ")[0]


def left_out(cases: Cases) -> list[str]:
    """What could not be measured, and the configurations that a compiler refused or whose results are wrong."""
    lines = []
    for case, (_, r) in cases.items():
        if r.failed:
            lines.append(f"- {case}: {r.failed[:160]}")
        for who, reasons in r.refused.items():
            kinds: dict[str, list[str]] = {}
            for config, reason in reasons.items():
                kinds.setdefault(kind(reason), []).append(config)
            said = []
            for name, configs in kinds.items():
                all_with_4 = all("'num_warps': 4" in c for c in configs) and r.tried[who]
                said.append(f"{len(configs)} {name}{' (all with 4 warps)' if all_with_4 else ''}")
            if said:
                name = "Tilewright" if who == OURS else who
                lines.append(
                    f"- {case}: {name} took part with {r.tried[who]} of {len(reasons) + r.tried[who]} configurations; the others: {', '.join(said)}."
                )
    return lines


def section(names: str, found: dict) -> str:
    """The tables of a block, for each GPU."""
    lines = []
    for name in names.split(", "):
        for tables in found.values():
            if not (cases := tables.get(name)):
                continue
            lines += [f"### {TITLES[name]}", ""]
            runs: dict[str, Cases] = {}
            for case, of in cases.items():
                runs.setdefault(json.dumps(of[0].about), {})[case] = of
            for mine in runs.values():
                lines += [setting(next(iter(mine.values()))[0], mine), ""]
            if own := OWN_TABLES.get(name):
                lines += [*own(cases), ""]
                continue
            lines += [said for who in against(cases) for said in summary(cases, who)]
            if said := missing_source(name, tables):
                lines.append(f"- {said} took no part: of Triton's best the ratios may be smaller.")
            lines += ["", *table(cases), ""]
            if out := left_out(cases):
                lines += [*out, ""]
    return "\n".join(lines)


def missing_source(name: str, tables: dict[str, Cases]) -> str:
    """A source that Triton may be faster by, and that was not measured beside those of a table."""
    descriptors = "Triton's source on tensor descriptors"
    cases = tables.get(name, {})
    if name == "layers" and "layers on descriptors" not in tables:
        return descriptors
    if name == "attention of other shapes" and not any("descriptors" in case for case in cases):
        return descriptors
    if name == "attention" and not any(case.startswith("pointers") for case in cases):
        return "Triton's source through pointers"
    return ""


def cards(gpu: str, found: list[Run]) -> str:
    """`one H100` where all was measured on one card, or `H100s, one at a time`."""
    ids = {run.about.get("uuid") for run in found}
    return f"one {short(gpu)}" if len(ids) == 1 and None not in ids else f"{short(gpu)}s, one at a time"


def claims(found: dict) -> str:
    """README's sentence, of the tables in which all of Triton's sources took part."""
    said = []
    for gpu, tables in found.items():
        parts, runs = [], []
        for name, what in (
            ("products", "matrix products"),
            ("layers", "products of Llama and DeepSeek layers"),
            ("attention", "attention forward"),
            ("attention backward", "attention backward"),
            ("memory-bound", "memory-bound kernels"),
        ):
            # Of the backward pass what counts is the whole.
            parts_of = name == "attention backward"
            cases = {case: of for case, of in tables.get(name, {}).items()
                     if not parts_of or case.startswith(("two kernels", "all three"))}  # fmt: skip
            of = ratios(cases, TRITON).values()
            if of and not missing_source(name, tables):
                runs += [run for run, _ in cases.values()]
                median = statistics.median(of)
                parts.append(f"{what} {median:.2f} ({min(of):.2f} to {max(of):.2f}, {len(of)} cases)")
        if not parts:
            continue
        said.append(f"- On {cards(gpu, runs)}: speed as a multiple of the best that Triton reaches, median and range: {'; '.join(parts)}\n"
                    "  ([docs/performance.md](docs/performance.md)).")  # fmt: skip
    return "\n".join(said) + "\n"


def written(text: str, found: dict) -> str:
    """A page with what belongs between its marks."""

    def fill(match: re.Match) -> str:
        name = match["name"]
        return match["open"] + (claims(found) if name == "claims" else section(name, found)) + match["close"]

    return BLOCK.sub(fill, text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    found = collect()
    stale = []
    for page in PAGES:
        text = page.read_text()
        new = written(text, found)
        if new != text:
            stale.append(str(page.relative_to(ROOT)))
            if not check:
                page.write_text(new)
    if check and stale:
        print(f"not what bench/results gives: {', '.join(stale)}; write them with scripts/performance.py")
    return bool(check and stale)


if __name__ == "__main__":
    sys.exit(main())
