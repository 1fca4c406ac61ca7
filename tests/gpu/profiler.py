"""`tilewright.profiler` on a GPU: counts of kernels exactly, their times against CUDA events, graphs, threads, sessions.

Prints all that is needed to find a fault from the output alone. `python tests/gpu/profiler.py [NAME …]` runs the checks whose names are given, or
all; the exit status is the number of those that failed. With Triton installed, its own profiler runs the same program for comparison.
"""

import faulthandler
import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import traceback
import warnings
from pathlib import Path

import torch

import tilewright
import tilewright.language as tl
import tilewright.profiler as proton
from tilewright import _tilewright
from tilewright.profiler._cupti import places

FOLDER = Path(tempfile.mkdtemp(prefix="tilewright-profiler-"))
FAILED = []
CHECKS = {}


def check(function):
    """Adds a check to the list."""
    CHECKS[function.__name__] = function
    return function


def expect(what, got, condition):
    """Prints what was seen, and notes a failure."""
    print(f"  {'ok  ' if condition else 'FAIL'} {what}: {got}")
    if not condition:
        FAILED.append(what)


def facts():
    return _tilewright.profiler_facts()


def named(grid, metadata, arguments):
    n = arguments["n"]
    return {"name": f"double_{n}", "bytes": 8 * n, "flops32": float(n)}


@tilewright.jit(launch_metadata=named)
def double(x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


@tilewright.jit
def increment(x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at, mask=at < n) + 1, mask=at < n)


def launch(kernel, x, times=1):
    for _ in range(times):
        kernel[(tilewright.cdiv(x.numel(), 1024),)](x, x.numel(), BLOCK=1024)


class Profile:
    """A session around a block, and what it wrote."""

    def __init__(self, name, **options):
        self.path = FOLDER / name
        self.options = options

    def __enter__(self):
        self.before = facts()
        self.session = proton.start(str(self.path), **self.options)
        return self

    def __exit__(self, kind, value, trace):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            proton.finalize()
        for warning in said:
            print(f"  warning: {warning.message}")
            FAILED.append("a warning")
        now = facts()
        difference = {name: now[name] - self.before[name] for name in now if isinstance(now[name], int)}
        print(f"  CUPTI in this session: {difference}")
        ending = "chrome_trace" if self.options.get("data") == "trace" else "hatchet"
        self.text = Path(f"{self.path}.{ending}").read_text()
        if ending == "hatchet" and kind is None:
            self.root, self.devices = json.loads(self.text)
            show(self.root)

    def at(self, *names):
        """The node at a path; a name may be the beginning of a kernel's."""
        node = self.root
        for name in names:
            found = [child for child in node["children"] if child["frame"]["name"] == name]
            found = found or [child for child in node["children"] if name in child["frame"]["name"]]
            if not found:
                there = [child["frame"]["name"] for child in node["children"]]
                raise AssertionError(f"{name!r} is not below {node['frame']['name']!r}, but {there}")
            node = found[0]
        return node


def show(node, depth=0, limit=40):
    metrics = {k: v for k, v in node["metrics"].items() if k not in ("device_type", "device_id")}
    print(f"    {'  ' * depth}{node['frame']['name'][:110]} {metrics}")
    for child in node["children"][:limit]:
        show(child, depth + 1)
    if len(node["children"]) > limit:
        print(f"    {'  ' * depth}  … {len(node['children']) - limit} more")


def total(node, metric):
    return node["metrics"].get(metric, 0) + sum(total(child, metric) for child in node["children"])


def elapsed(function):
    """Milliseconds by CUDA events."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    function()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end)


@check
def scopes():
    """Counts below scopes, and times against events."""
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    x = torch.zeros(1 << 26, device="cuda")
    # The first launch of a kernel loads its code, which events would time too.
    a @ b
    x.mul_(1.5)
    launch(double, x)
    torch.cuda.synchronize()
    with Profile("scopes") as profile:
        with proton.scope("matmul", {"flops16": 20 * 2.0 * 8192**3}):
            matmul_ms = elapsed(lambda: [a @ b for _ in range(20)])
        with proton.scope("outer"):
            with proton.scope("mul"):
                mul_ms = elapsed(lambda: [x.mul_(1.5) for _ in range(7)])
            with proton.scope("ours"):
                ours_ms = elapsed(lambda: launch(double, x, 11))
    matmul, mul, ours = profile.at("matmul"), profile.at("outer", "mul"), profile.at("outer", "ours")
    expect("kernels of 20 products", total(matmul, "count"), total(matmul, "count") in (20, 40))
    expect(
        "flops16 of the scope",
        matmul["metrics"].get("flops16"),
        matmul["metrics"].get("flops16") == 20 * 2.0 * 8192**3,
    )
    expect("kernels of 7 mul_", total(mul, "count"), total(mul, "count") == 7)
    expect(
        "launches of ours",
        profile.at("outer", "ours", "double")["metrics"]["count"],
        total(ours, "count") == 11,
    )
    for name, node, ms in (("matmul", matmul, matmul_ms), ("mul_", mul, mul_ms), ("ours", ours, ours_ms)):
        ratio = total(node, "time (ns)") / 1e6 / ms
        expect(f"{name}: profile / events", f"{ratio:.3f} ({ms:.3f} ms by events)", 0.5 < ratio < 1.1)
    kernel = profile.at("outer", "ours", "double")["metrics"]
    expect(
        "device",
        (kernel["device_type"], kernel["device_id"]),
        (kernel["device_type"], kernel["device_id"]) == ("CUDA", "0"),
    )
    about = profile.devices["CUDA"]["0"]
    major, minor = torch.cuda.get_device_capability()
    expect("what is said of the device", about, about["arch"] == f"{major}{minor}" and about["num_sms"] > 0)


@check
def metadata():
    """Names and metrics from `launch_metadata`, by the launch hook."""
    x = torch.zeros(1 << 20, device="cuda")
    launch(double, x)
    launch(increment, x)
    with Profile("metadata", hook="triton") as profile:
        with proton.scope("s"):
            launch(double, x, 5)
            launch(increment, x, 3)
            x.add_(1)
    node = profile.at("s", f"double_{x.numel()}")["metrics"]
    expect("count", node.get("count"), node.get("count") == 5)
    expect("bytes", node.get("bytes"), node.get("bytes") == 5 * 8 * x.numel())
    expect("flops32", node.get("flops32"), node.get("flops32") == 5.0 * x.numel())
    expect(
        "a kernel without metadata",
        profile.at("s", "increment")["metrics"].get("count"),
        profile.at("s", "increment")["metrics"].get("count") == 3,
    )
    expect("all kernels", total(profile.root, "count"), total(profile.root, "count") == 9)


@check
def graphs():
    """Kernels of a CUDA graph stand where it is replayed, not where it is captured."""
    x, stream = torch.zeros(1 << 16, device="cuda"), torch.cuda.Stream()
    launch(increment, x)
    x.mul_(1.0)
    torch.cuda.synchronize()
    for when in ("before", "during"):
        graph = torch.cuda.CUDAGraph()

        def capture(graph=graph):
            with torch.cuda.graph(graph, stream=stream):
                for _ in range(10):
                    launch(increment, x)
                    x.mul_(1.0)

        if when == "before":
            capture()
        with Profile(f"graph_{when}") as profile:
            if when == "during":
                with proton.scope("capture"):
                    capture()
            with proton.scope("replay"):
                for _ in range(3):
                    graph.replay()
            torch.cuda.synchronize()
        replay = profile.at("replay")
        ours = profile.at("replay", "increment")["metrics"].get("count")
        expect(f"captured {when} the session: ours", ours, ours == 30)
        expect(f"captured {when} the session: all", total(replay, "count"), total(replay, "count") == 60)
        # torch sets up a graph's random numbers with kernels of its own while it captures.
        elsewhere = total(profile.root, "count") - 60
        expect(
            f"captured {when} the session: elsewhere",
            elsewhere,
            elsewhere in ((0,) if when == "before" else (0, 2)),
        )
        del graph


@check
def sessions():
    """What is recorded begins and ends exactly with activate and deactivate; two sessions at a time."""
    x = torch.zeros(1 << 20, device="cuda")
    launch(increment, x, 10)
    first = proton.start(str(FOLDER / "first"))
    second = proton.start(str(FOLDER / "second"))
    launch(increment, x, 2)
    proton.deactivate(first)
    launch(increment, x, 3)
    proton.activate(first)
    launch(increment, x, 4)
    proton.deactivate()
    launch(increment, x, 5)
    proton.activate(second)
    launch(increment, x, 6)
    proton.finalize(first)
    launch(increment, x, 7)
    proton.finalize()
    for name, wanted in (("first", 6), ("second", 2 + 3 + 4 + 6 + 7)):
        root = json.loads((FOLDER / f"{name}.hatchet").read_text())[0]
        expect(f"{name}", total(root, "count"), total(root, "count") == wanted)


@check
def backward():
    """Kernels of autograd's thread stand in the scope of the thread that waits for it."""
    w = torch.randn(512, 512, device="cuda", requires_grad=True)
    (w * w).sum().backward()
    with Profile("backward") as profile:
        for name in ("one", "two"):
            with proton.scope(f"forward {name}"):
                loss = (w * w).sum()
            with proton.scope(f"backward {name}"):
                loss.backward()
    for name in ("one", "two"):
        expect(
            f"kernels of backward {name}",
            total(profile.at(f"backward {name}"), "count"),
            total(profile.at(f"backward {name}"), "count") > 0,
        )
    expect(
        "no kernel outside",
        [c["frame"]["name"] for c in profile.root["children"]],
        len(profile.root["children"]) == 4,
    )


@check
def threads():
    """Each thread has scopes of its own, and a stream."""
    x = [torch.zeros(1 << 20, device="cuda") for _ in range(4)]
    launch(increment, x[0])

    def work(i):
        with torch.cuda.stream(torch.cuda.Stream()):
            for k in range(50):
                with proton.scope(f"thread {i}"), proton.scope(f"step {k % 2}"):
                    launch(increment, x[i])
                    x[i].add_(1)

    with Profile("threads") as profile:
        pool = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in pool:
            thread.start()
        for thread in pool:
            thread.join()
    for i in range(4):
        for k in range(2):
            node = profile.at(f"thread {i}", f"step {k}")
            expect(
                f"thread {i}, step {k}",
                total(node, "count"),
                total(node, "count") == 50 and len(node["children"]) == 2,
            )


@check
def frames():
    """Paths of Python's frames."""
    x = torch.zeros(1 << 20, device="cuda")
    launch(increment, x)

    def inner():
        launch(increment, x, 3)
        x.add_(1)

    with Profile("frames", context="python", hook="triton") as profile:
        inner()
    names = profile.text
    expect("the function's frame", "inner@" in names, "inner@" in names)
    expect("the profiler's frames", "left out", "profiler/hooks" not in names)
    expect("kernels", total(profile.root, "count"), total(profile.root, "count") == 4)


@check
def trace():
    """Every kernel as an event."""
    x = torch.zeros(1 << 20, device="cuda")
    launch(increment, x)
    with Profile("trace", data="trace") as profile:
        with proton.scope("s"):
            launch(increment, x, 5)
        x.add_(1)
    events = json.loads(profile.text)["traceEvents"]
    print(f"  {events[:2]}")
    expect("events", len(events), len(events) == 6)
    expect(
        "call stack",
        events[0]["args"]["call_stack"],
        events[0]["args"]["call_stack"] == ["ROOT", "s", "increment"],
    )
    expect("durations", [e["dur"] for e in events], all(e["dur"] > 0 for e in events))
    expect("order", "by time", events == sorted(events, key=lambda e: e["ts"]) and events[0]["ts"] == 0)


@check
def many():
    """Many kernels, more than a buffer of CUPTI's holds; what a launch costs with a profile and without."""
    x = torch.zeros(1024, device="cuda")
    launch(increment, x, 100)

    def microseconds():
        torch.cuda.synchronize()
        start = time.perf_counter()
        launch(increment, x, 100_000)
        took = (time.perf_counter() - start) / 100_000 * 1e6
        torch.cuda.synchronize()
        return took

    before = microseconds()
    with Profile("many") as profile:
        during = microseconds()
        with proton.scope("again"):
            launch(increment, x, 1000)
        start = time.perf_counter()
        proton.deactivate()
        print(f"  deactivate: {(time.perf_counter() - start) * 1e3:.1f} ms")
    after = microseconds()
    expect("kernels", total(profile.root, "count"), total(profile.root, "count") == 101_000)
    print(f"  a launch: {before:.2f} us before, {during:.2f} us in a session, {after:.2f} us after it")
    start = time.perf_counter()
    with Profile("scopes_cost"):
        for _ in range(10_000):
            with proton.scope("x", {"flops": 1.0}):
                pass
        took = (time.perf_counter() - start) / 10_000 * 1e6
    print(f"  a scope with a metric: {took:.2f} us")


@check
def torch_profiler():
    """Another user of CUPTI: both ways round it ends in a profile or in an error with words."""
    program = textwrap.dedent(f"""
        import sys, torch, json
        import tilewright.profiler as proton
        from torch.profiler import profile, ProfilerActivity
        x = torch.zeros(1 << 20, device="cuda")
        order = sys.argv[1]
        if order == "inside":
            with profile(activities=[ProfilerActivity.CUDA]) as p:
                try:
                    proton.start({str(FOLDER / "inside")!r})
                    x.add_(1)
                    proton.finalize()
                    print("a session inside torch.profiler went through")
                except Exception as error:
                    print(f"a session inside torch.profiler: {{type(error).__name__}}: {{error}}")
                x.add_(1)
        else:
            with profile(activities=[ProfilerActivity.CUDA]) as p:
                x.add_(1)
            torch.cuda.synchronize()
        try:
            proton.start({str(FOLDER / "behind")!r})
            x.add_(1)
            proton.finalize()
            root = json.load(open({str(FOLDER / "behind.hatchet")!r}))[0]
            print("a session behind torch.profiler:", [(c["frame"]["name"][:40], c["metrics"].get("count")) for c in root["children"]])
        except Exception as error:
            print(f"a session behind torch.profiler: {{type(error).__name__}}: {{error}}")
        with profile(activities=[ProfilerActivity.CUDA]) as p:
            x.add_(1)
            torch.cuda.synchronize()
        print("torch.profiler behind a session saw", sum(e.count for e in p.key_averages() if e.device_time_total > 0), "kernels")
    """)
    for order in ("inside", "behind"):
        done = run_python(["-c", program, order])
        expect(f"order {order}: ends", done.returncode, done.returncode == 0)


PROGRAM = """
import torch
import {package} as triton
import {package}.language as tl
import {package}.profiler as proton


def named(grid, metadata, arguments):
    return {{"name": f"scale_{{arguments['n']}}", "bytes": 8 * arguments["n"], "flops32": 1.0}}


@triton.jit(launch_metadata=named)
def scale(x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


def main(path):
    x = torch.zeros(1 << 22, device="cuda")
    a = torch.randn(4096, 4096, device="cuda", dtype=torch.float16)
    scale[(1 << 12,)](x, x.numel(), BLOCK=1024)
    a @ a
    torch.cuda.synchronize()
    proton.start(path, hook="triton")
    proton.deactivate(0)
    proton.activate(0)
    for _ in range(5):
        with proton.scope("cublas", {{"flops16": 2.0 * 4096**3}}):
            a @ a
        with proton.scope("scale"):
            scale[(1 << 12,)](x, x.numel(), BLOCK=1024)
            x.add_(1)
    proton.deactivate(0)
    a @ a
    proton.finalize()


if __name__ == "__main__":
    import sys
    main(sys.argv[1])
"""


def run_python(arguments, environment=None):
    """Runs Python and prints what it says."""
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **(environment or {})},
        timeout=240,
    )
    for line in (done.stdout + done.stderr).splitlines()[-60:]:
        print(f"    | {line}")
    return done


@check
def drop_in():
    """The same program with Tilewright, through the drop-in, and with Triton's own profiler."""
    (FOLDER / "ours.py").write_text(PROGRAM.format(package="tilewright"))
    (FOLDER / "theirs.py").write_text(PROGRAM.format(package="triton"))
    runs = {
        "ours": ["ours.py"],
        "drop_in": ["-m", "tilewright.as_triton", "theirs.py"],
        "triton": ["theirs.py"],
    }
    try:
        importlib.metadata.version("triton")
    except importlib.metadata.PackageNotFoundError:
        del runs["triton"]
    summaries = {}
    for name, arguments in runs.items():
        program = [str(FOLDER / a) if a.endswith(".py") else a for a in arguments]
        done = run_python([*program, str(FOLDER / name)], {"TILEWRIGHT_AS_TRITON": ""})
        if name != "triton":
            expect(f"{name}: ends", done.returncode, done.returncode == 0)
        if done.returncode == 0:
            root = json.loads((FOLDER / f"{name}.hatchet").read_text())[0]
            print(f"  {name}:")
            show(root)
            by_scope = {child["frame"]["name"]: child for child in root["children"]}
            summaries[name] = {
                scope: (total(by_scope[scope], "count"), total(by_scope[scope], "time (ns)") / 1e3)
                for scope in ("cublas", "scale")
            }
            print(f"  {name}: (count, µs) {summaries[name]}")
    if "triton" in summaries and "ours" in summaries:
        for scope in ("cublas", "scale"):
            ours, theirs = summaries["ours"][scope], summaries["triton"][scope]
            expect(f"{scope}: counts of both", (ours[0], theirs[0]), ours[0] == theirs[0])
            ratio = ours[1] / max(theirs[1], 1e-9)
            expect(f"{scope}: time, ours / theirs", f"{ratio:.3f}", 0.5 < ratio < 2)


@check
def command_line():
    """A whole program from the command line, and the viewer on its profile."""
    (FOLDER / "program.py").write_text(PROGRAM.format(package="tilewright"))
    name = str(FOLDER / "command")
    arguments = [
        "-m",
        "tilewright.profiler.proton",
        "-n",
        name,
        "-k",
        "triton",
        str(FOLDER / "program.py"),
        "ignored",
    ]
    done = run_python(arguments)
    expect("the program ends", done.returncode, done.returncode == 0)
    for options in (["-l"], ["-m", "time/ms,time/%"], ["-m", "gbyte/s,avg_time/us"], ["-m", "util"]):
        done = run_python(["-m", "tilewright.profiler.viewer", *options, f"{name}.hatchet"])
        expect(f"viewer {options}", done.returncode, done.returncode == 0)


def main():
    faulthandler.enable()
    faulthandler.dump_traceback_later(540, exit=True)
    print(
        f"python {sys.version.split()[0]}, torch {torch.__version__} for CUDA {torch.version.cuda}, tilewright {tilewright.__version__}"
    )
    print(f"{torch.cuda.get_device_name()}, {torch.cuda.get_device_capability()}")
    driver = subprocess.run(
        ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], capture_output=True, text=True
    )
    print(f"driver {driver.stdout.strip()}")
    print(f"CUPTI may be {places()}")
    with open("/proc/self/maps") as maps:
        print(f"loaded already: {sorted({line.split()[-1] for line in maps if 'libcupti' in line})}")
    for name, function in CHECKS.items():
        if len(sys.argv) > 1 and name not in sys.argv[1:]:
            continue
        print(f"{name}: {function.__doc__}", flush=True)
        try:
            function()
        except Exception:
            traceback.print_exc(file=sys.stdout)
            FAILED.append(name)
            proton.finalize()
        print(f"  so far: {facts()}", flush=True)
    print(f"failed: {FAILED}" if FAILED else "all checks passed")
    return min(len(FAILED), 100)


if __name__ == "__main__":
    sys.exit(main())
