"""``python -m tilewright.profiler.viewer -m time/ms profile.hatchet``: prints a profile as a tree.

The options are those of Triton's viewer, and so are the names of metrics. What follows from a scope's kernels is added up over all that is
below it: ``time``, ``count``, and what the program gave without ``(exc)`` or ``(pty)``. Derived from that:

- ``time/s``, ``time/ms``, ``time/us``, ``time/ns``; ``avg_time/…``, for each kernel; the same of ``cpu_time``;
- ``flop/s``, ``gflop/s``, ``tflop/s``, also with a width as in ``tflop16/s``; ``byte/s``, ``gbyte/s``, ``tbyte/s``;
- ``util``: the share of a GPU's peak rate, of operations or bytes, whichever is higher; for kernels alone;
- ``time/%`` and so on: the share of the whole.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections.abc import Callable, Iterator

from . import specs
from .hooks.launch import COMPUTE_METADATA_SCOPE_NAME, LaunchHook

__all__ = [
    "Frame",
    "Profile",
    "derive_metrics",
    "filter_frames",
    "format_frames",
    "main",
    "parse",
    "print_tree",
    "read",
    "show_metrics",
]

_INCLUSIVE = " (inc)"
_NAN = math.nan
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_RATES = {"": 1.0, "g": 1e9, "t": 1e12}


class Frame:
    """A node of the tree.

    ``values`` has what the profile says there, and by their whole names what is inclusive or derived: ``time (ns) (inc)``, ``time/ms (inc)``.
    """

    def __init__(self, name: str, values: dict, children: list[Frame]):
        self.name = name
        self.values = values
        self.children = children

    def walk(self) -> Iterator[Frame]:
        """The node and all below it, in the order of the tree."""
        below = [self]
        while below:
            frame = below.pop()
            yield frame
            below += reversed(frame.children)

    def number(self, metric: str) -> float:
        """A value, or NaN where there is none."""
        value = self.values.get(metric)
        return value if isinstance(value, (int, float)) else _NAN


class Profile:
    """A tree with the metrics that it has.

    :param inclusive: names of metrics that are added up over all that is below a node.
    :param exclusive: names of the others.
    :param devices: what the profile says of devices, by their kind and number.
    """

    def __init__(self, root: Frame, inclusive: list[str], exclusive: list[str], devices: dict):
        self.root = root
        self.inclusive = inclusive
        self.exclusive = exclusive
        self.devices = devices

    def match(self, metric: str) -> str:
        """The whole name of a metric, which may be given without its unit, in any case of letters."""
        wanted = metric.lower()
        for raw in self.inclusive + self.exclusive:
            if wanted in (raw.lower(), _without_unit(raw)):
                return raw + _INCLUSIVE if raw in self.inclusive else raw
        raise RuntimeError(f"Metric {metric} is not found. Use the --list flag to list available metrics")

    def seconds(self, frame: Frame, metric: str) -> float:
        """The value of a time."""
        name = self.match(metric)
        return frame.number(name) * _SECONDS[name.split("(")[1].split(")")[0]]


def _without_unit(metric: str) -> str:
    return metric.split("(")[0].strip().lower()


def read(filename: str) -> Profile:
    """Reads a profile."""
    with open(filename) as file:
        try:
            literal = json.load(file)
        except json.JSONDecodeError as error:
            raise ValueError(f"{filename} is no profile: {error}") from None
    if not isinstance(literal, list) or not literal or "frame" not in literal[0]:
        raise ValueError(f"{filename} is no profile of data='tree'")
    root, devices = literal[0], literal[1] if len(literal) > 1 else {}
    of_root = root.get("metrics", {})
    top = _clean(_frame(root)) or Frame("ROOT", {}, [])
    of_all = dict.fromkeys(name for frame in top.walk() for name in frame.values)
    inclusive = [name for name in of_all if name in of_root]
    profile = Profile(top, inclusive, [name for name in of_all if name not in of_root], devices)
    _add_up(profile)
    return profile


def _frame(literal: dict) -> Frame:
    return Frame(
        literal["frame"]["name"], dict(literal["metrics"]), [_frame(c) for c in literal.get("children", [])]
    )


def _clean(frame: Frame) -> Frame | None:
    """Without what ran only to compute metadata, without empty nodes, and without those that only such nodes were below."""
    if frame.name == COMPUTE_METADATA_SCOPE_NAME or not (frame.values or frame.children):
        return None
    below = [child for child in map(_clean, frame.children) if child is not None]
    if frame.children and not below and not frame.values:
        return None
    frame.children = below
    return frame


def _add_up(profile: Profile) -> None:
    # Every node stands in front of those below it.
    for frame in reversed(list(profile.root.walk())):
        for name in profile.inclusive:
            below = sum(child.values[name + _INCLUSIVE] for child in frame.children)
            own = frame.number(name)
            frame.values[name + _INCLUSIVE] = below + (0 if math.isnan(own) else own)


def _derivation(profile: Profile, metric: str) -> tuple[str, Callable[[Frame], float] | None]:
    """The whole name of a metric that was asked for, and how it follows from others, if it does."""
    name, slash, unit = metric.partition("/")
    rate = re.fullmatch(r"([gt]?)(flop(?:8|16|32|64)?|byte)", name)
    if metric == "util":
        return metric, lambda frame: _utilization(profile, frame)
    if rate and unit == "s":
        scale, what = _RATES[rate[1]], rate[2]
        of = profile.match("bytes" if what == "byte" else what.replace("flop", "flops"))
        return metric + _INCLUSIVE, lambda f: _quotient(f.number(of), profile.seconds(f, "time")) / scale
    if name in ("time", "avg_time", "cpu_time", "avg_cpu_time") and unit in _SECONDS:
        time = name.removeprefix("avg_")
        whole = profile.match(time)
        counts = profile.match("count") if name != time else None

        def value(frame: Frame) -> float:
            seconds = profile.seconds(frame, time) / _SECONDS[unit]
            return _quotient(seconds, frame.number(counts)) if counts else seconds

        return metric + (_INCLUSIVE if whole.endswith(_INCLUSIVE) else ""), value
    if slash and unit != "%":
        raise ValueError(f"Unsupported unit {unit}")
    whole = profile.match(name)
    if not slash:
        return whole, None
    if whole.endswith(_INCLUSIVE):
        total = profile.root.number(whole)
        return metric + _INCLUSIVE, lambda frame: 100 * _quotient(frame.number(whole), total)
    total = sum(v for frame in profile.root.walk() if not math.isnan(v := frame.number(whole)))
    return metric, lambda frame: 100 * _quotient(frame.number(whole), total)


def _quotient(a: float, b: float) -> float:
    return a / b if b else _NAN


def _utilization(profile: Profile, frame: Frame) -> float:
    kind, number = frame.values.get("device_type"), frame.values.get("device_id")
    device = profile.devices.get(kind, {}).get(number)
    if device is None:
        return _NAN
    flops = sum(
        frame.values[f"flops{width}"]
        / specs.max_flops(kind, device["arch"], width, device["num_sms"], device["clock_rate"])
        for width in LaunchHook.flops_width
        if f"flops{width}" in frame.values
    )
    bandwidth = specs.max_bps(kind, device["arch"], device["bus_width"], device["memory_clock_rate"])
    return _quotient(max(flops, frame.values.get("bytes", 0) / bandwidth), profile.seconds(frame, "time"))


def derive_metrics(profile: Profile, metrics: list[str]) -> list[str]:
    """Puts metrics that are derived from others into the tree; gives the whole names of all that were asked for."""
    names = []
    for metric in metrics:
        name, value = _derivation(profile, metric)
        if value is not None:
            for frame in profile.root.walk():
                frame.values[name] = value(frame)
        names.append(name)
    return names


def format_frames(profile: Profile, format: str | None) -> Profile:
    """Shortens names that are places in a program, such as ``/home/me/prog.py:main@7``."""

    def shorten(name: str) -> str:
        place = re.fullmatch(r"(.*/)?([^/]*)", name, re.DOTALL)
        rest = place[2] if place else name
        if format == "file_function_line":
            return rest
        if format == "function_line":
            return name.split(":")[-1]
        if format == "file_function":
            return f"{rest.split(':')[0]}@{name.split('@')[-1].split(':')[0]}"
        return name

    for frame in profile.root.walk():
        frame.name = shorten(frame.name)
    return profile


def filter_frames(
    profile: Profile,
    include: str | None = None,
    exclude: str | None = None,
    threshold: float | None = None,
    metric: str | None = None,
) -> Profile:
    """Leaves out what is not on a way through a name that ``include`` matches, what stands at or below one that ``exclude`` matches,
    and what has less of a metric than a threshold, as has all below it."""
    if include:
        _keep(profile.root, lambda frame: bool(re.match(include, frame.name)), with_below=True)
    if exclude:
        kept = lambda frame: not re.match(exclude, frame.name)
        for frame in profile.root.walk():
            frame.children = list(filter(kept, frame.children))
    if threshold is not None and metric is not None:
        _keep(profile.root, lambda frame: frame.number(metric) >= threshold, with_below=False)
    return profile


def _keep(frame: Frame, wanted: Callable[[Frame], bool], with_below: bool) -> bool:
    """Keeps nodes that are wanted, what leads to them and, if it says so, what is below them."""
    here = wanted(frame)
    if not (here and with_below):
        frame.children = [child for child in frame.children if _keep(child, wanted, with_below)]
    return here or bool(frame.children)


def parse(
    metrics: list[str],
    filename: str,
    include: str | None = None,
    exclude: str | None = None,
    threshold: float | None = None,
) -> tuple[Profile, list[str]]:
    """Reads a profile, derives metrics and filters; gives it with the whole names of the metrics. The threshold is the first one's."""
    profile = read(filename)
    names = derive_metrics(profile, metrics)
    return filter_frames(profile, include, exclude, threshold, names[0]), names


def subtract(profile: Profile, other: Profile, metrics: list[str]) -> Profile:
    """Takes the metrics of another profile away from a profile's, path by path."""

    def difference(one: Frame | None, two: Frame | None) -> Frame:
        values = {}
        for metric in metrics:
            a, b = (frame.number(metric) if frame else _NAN for frame in (one, two))
            missing = math.isnan(a) and math.isnan(b)
            values[metric] = _NAN if missing else (0 if math.isnan(a) else a) - (0 if math.isnan(b) else b)
        of_one = {child.name: child for child in one.children} if one else {}
        of_two = {child.name: child for child in two.children} if two else {}
        children = [difference(of_one.get(name), of_two.get(name)) for name in {**of_one, **of_two}]
        return Frame((one or two).name, values, children)

    return Profile(
        difference(profile.root, other.root), profile.inclusive, profile.exclusive, profile.devices
    )


def _lines(frame: Frame, metrics: list[str], depth: int) -> Iterator[str]:
    below = [(frame, "", "", 0)]
    while below:
        frame, lead, lead_of_children, level = below.pop()
        values = " ".join(_number(frame.values.get(metric)) for metric in metrics)
        yield f"{lead}{values} {frame.name}"
        if level + 1 < depth:
            last = len(frame.children) - 1
            for at, child in reversed(list(enumerate(frame.children))):
                branch, further = ("└─ ", "   ") if at == last else ("├─ ", "│  ")
                below.append((child, lead_of_children + branch, lead_of_children + further, level + 1))


def _number(value: object) -> str:
    if value is None:
        return "nan"
    return f"{value:.3f}" if isinstance(value, (int, float)) else str(value)


def print_tree(
    profile: Profile,
    metrics: list[str],
    depth: int = 100,
    format: str | None = None,
    print_sorted: bool = False,
) -> None:
    """Prints the tree, with the metrics in front of the names.

    :param depth: how many levels.
    :param print_sorted: prints a list of all nodes behind it, by the first metric.
    """
    format_frames(profile, format)
    print("\n".join(_lines(profile.root, metrics, depth)))
    print(f"\n{', '.join(metrics)}")
    if print_sorted:
        print(f"\nSorted kernels by metric {metrics[0]}")
        frames = [frame for frame in profile.root.walk() if frame is not profile.root]
        for frame in sorted(frames, key=lambda f: -_or_zero(f.number(metrics[0]))):
            name = frame.name if len(frame.name) <= 100 else f"{frame.name[:100]}..."
            print(f"{name:105} {_number(frame.values.get(metrics[0]))}")


def _or_zero(value: float) -> float:
    return 0 if math.isnan(value) else value


def show_metrics(file_name: str) -> None:
    """Prints the metrics that a profile has."""
    profile = read(file_name)
    for kind, metrics in (("inclusive", profile.inclusive), ("exclusive", profile.exclusive)):
        print(f"Available {kind} metrics:")
        for metric in metrics:
            print(f"- {_without_unit(metric)}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tilewright.profiler.viewer",
        description="Prints a profile as a tree.",
        epilog=__doc__.split("\n\n", 1)[1],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", help="a profile, such as proton.hatchet")
    parser.add_argument("-l", "--list", action="store_true", help="list the metrics that the profile has")
    parser.add_argument("-m", "--metrics", help="the metrics to print, with commas between them")
    parser.add_argument(
        "-i", "--include", help="only paths through names that this regular expression matches"
    )
    parser.add_argument(
        "-e", "--exclude", help="nothing at or below names that this regular expression matches"
    )
    parser.add_argument(
        "-t", "--threshold", type=float, help="nothing that has less than this of the first metric"
    )
    parser.add_argument("-d", "--depth", type=int, default=100, help="how many levels")
    parser.add_argument(
        "-f",
        "--format",
        choices=["full", "file_function_line", "function_line", "file_function"],
        default="full",
        help="what of names that are places in a program",
    )
    parser.add_argument("--print-sorted", action="store_true", help="a list of all by the first metric, too")
    parser.add_argument(
        "-diff", "--diff-profile", metavar="FILE", help="take this profile's metrics away from the other's"
    )
    return parser


def main(arguments: list[str] | None = None) -> int:
    """The command; gives the exit status."""
    parser = _parser()
    args = parser.parse_args(arguments)
    if args.include and args.exclude:
        parser.error("Cannot specify both include and exclude")
    if not args.list and not args.metrics:
        parser.error("-m says which metrics to print, -l which there are")
    try:
        if args.list:
            show_metrics(args.file)
            return 0
        filters = (args.include, args.exclude, args.threshold)
        metrics = args.metrics.split(",")
        profile, names = parse(metrics, args.file, *filters)
        if args.diff_profile:
            other, _ = parse(metrics, args.diff_profile, *filters)
            profile = subtract(profile, other, names)
        print_tree(profile, names, args.depth, args.format, args.print_sorted)
    except (OSError, RuntimeError, ValueError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
