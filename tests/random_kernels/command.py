"""The command: makes kernels from seeds, runs each on two backends in processes of their own, and counts.

A kernel that ends its process or takes too long is a failure like any other; the rest go on. One that needs more of the machine
than there is (``OutOfResources``), clusters where a target has none, or on Intel's what is not supported yet, is refused, which is no failure.
"""

from __future__ import annotations

import argparse
import collections
import multiprocessing
import os
import re
import shutil
import sys
import tempfile
import time
from dataclasses import replace
from multiprocessing import connection
from pathlib import Path

from . import shrink
from .generator import Generator
from .products import Products
from .program import Program
from .wide import Wide

GENERATORS = {"everything": Generator, "products": Products, "wide": Wide}
SECONDS = 120  # for one kernel
KERNELS = 1000  # of one process


def category(error: BaseException) -> str:
    """What failures of one cause have in common."""
    first = str(error).split("\n")[0][:100]
    return f"{type(error).__name__}: " + (
        "" if type(error).__name__ == "Different" else re.sub(r"\d+|<.*?>|\b[vxond]\d+\b", "N", first)
    )


def is_refused(category: str, backend: str) -> bool:
    """Whether a kernel of this category wants more shared memory or registers than there are, or clusters that a target lacks, or can't have its
    programs in a row. Intel's targets lack more, and say so; where NVIDIA's do, it is a failure."""
    lacks = ("not supported yet: persistent=True", "has no clusters of CTAs")
    if backend == "xesim":
        lacks = (*lacks, "not supported yet")
    return category.startswith("OutOfResources:") or any(text in category for text in lacks)


def work(pipe, backend: str, folder: str) -> None:
    """A process: gets programs, and answers with ``None`` or a category and a text."""
    os.environ.update(TILEWRIGHT_CACHE_DIR=folder, TILEWRIGHT_ALWAYS_COMPILE="1", RAYON_NUM_THREADS="1")
    if backend != "cuda":
        # The simulator runs PTX; most of the time would go into assembling it.
        os.environ["TILEWRIGHT_CUBIN"] = "0"
    from .compare import check

    done = 0
    while (task := pipe.recv()) is not None:
        try:
            check(task, backend)
            answer = None
        except Exception as error:
            answer = category(error), str(error)
        pipe.send(answer)
        done += 1
        if done % 200 == 0:
            shutil.rmtree(folder, ignore_errors=True)


class Workers:
    """Processes that run kernels."""

    def __init__(self, jobs: int, backend: str):
        self.jobs, self.backend = jobs, backend
        self.folder = tempfile.mkdtemp(prefix="tilewright-random-")
        self.context = multiprocessing.get_context("fork" if backend != "cuda" else "spawn")
        self.idle, self.processes, self.started = [], {}, 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for pipe in list(self.processes):
            self.end(pipe)
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self):
        mine, its = self.context.Pipe()
        self.started += 1
        folder = f"{self.folder}/{self.started}"
        process = self.context.Process(target=work, args=(its, self.backend, folder), daemon=True)
        process.start()
        its.close()
        self.processes[mine] = [process, 0]
        return mine

    def end(self, pipe) -> int:
        process, _ = self.processes.pop(pipe)
        pipe.close()
        process.kill()
        process.join()
        return process.exitcode

    def run(self, tasks):
        """Yields each program with its answer, as they come."""
        tasks, running, more = iter(tasks), {}, True
        while more or running:
            while more and len(running) < self.jobs:
                try:
                    task = next(tasks)
                except StopIteration:
                    more = False
                    break
                pipe = self.idle.pop() if self.idle else self.start()
                pipe.send(task)
                running[pipe] = task, time.monotonic()
            for pipe in connection.wait(list(running), timeout=1):
                task, _ = running.pop(pipe)
                try:
                    answer = pipe.recv()
                except (EOFError, ConnectionResetError):
                    process = self.processes[pipe][0]
                    process.join(10)
                    answer = "the process died", f"the process ended with {process.exitcode}"
                    self.end(pipe)
                else:
                    self.processes[pipe][1] += 1
                    if self.processes[pipe][1] < KERNELS:
                        self.idle.append(pipe)
                    else:
                        self.end(pipe)
                yield task, answer
            for pipe, (task, since) in list(running.items()):
                if time.monotonic() - since > SECONDS:
                    del running[pipe]
                    self.end(pipe)
                    yield task, ("too slow", f"not done after {SECONDS} seconds")

    def one(self, program: Program):
        """The answer for one program."""
        return next(iter(self.run([program])))[1]


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit status: whether a kernel failed."""
    parser = argparse.ArgumentParser(
        prog="random_kernels",
        description="Runs random kernels on the CPU executor and on another backend, and compares what they write.",
    )
    parser.add_argument("--count", type=int, default=300, help="how many kernels")
    parser.add_argument("--of", choices=GENERATORS, default="everything", help="which kernels")
    parser.add_argument("--seed", type=int, default=0, help="the first one's seed; the next ones follow it")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--backend", choices=["ptxsim", "cuda", "interp", "xesim"], default="ptxsim")
    parser.add_argument(
        "--target", type=int, choices=[80, 86, 89, 90, 100, 120], help="compile for one architecture alone"
    )
    parser.add_argument(
        "--shrink", action="store_true", help="remove lines of a failing kernel while it fails"
    )
    parser.add_argument("--keep", type=Path, help="a folder for the sources of failing kernels")
    parser.add_argument(
        "--persistent",
        action="store_true",
        help="with the option `persistent`, on more programs than are held",
    )
    parser.add_argument("--show", action="store_true", help="print the kernels and run none")
    options = parser.parse_args(arguments)
    seeds = range(options.seed, options.seed + options.count)
    programs = (GENERATORS[options.of](seed, options.target).program() for seed in seeds)
    if options.persistent:
        programs = (replace(p, options=p.options | {"persistent": True}) for p in programs)
    if options.show:
        for program in programs:
            print(program.describe())
        return 0
    failures, refused = collections.Counter(), collections.Counter()
    start = said = time.monotonic()
    done = 0
    with (
        Workers(options.jobs, options.backend) as workers,
        Workers(1, options.backend) as shrinker,
    ):
        for program, answer in workers.run(programs):
            done += 1
            if answer is not None and is_refused(answer[0], options.backend):
                refused[answer[0]] += 1
            elif answer is not None:
                failures[answer[0]] += 1
                if options.shrink:
                    program, answer = shrink.shrink(program, answer, shrinker.one)
                text = f"# {answer[1]}".replace("\n", "\n# ") + f"\n{program.describe()}"
                print(f"\nFAILED: seed {program.seed}\n{text}", flush=True)
                if options.keep:
                    options.keep.mkdir(parents=True, exist_ok=True)
                    (options.keep / f"random_{program.seed}.py").write_text(text)
            if time.monotonic() - said > 30:
                said = time.monotonic()
                print(
                    f"{done} kernels, {failures.total()} failed, {done / (said - start):.1f} a second",
                    flush=True,
                )
    took = time.monotonic() - start
    agree = done - failures.total() - refused.total()
    print(
        f"{done} kernels from seed {options.seed} on {options.backend} and interp: {agree} agree, "
        f"{refused.total()} refused, {failures.total()} failed; "
        f"{took:.0f} s, {done / took:.1f} a second with {options.jobs} processes"
    )
    for name, count in (failures + refused).most_common():
        print(f"  {count} × {name}")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
