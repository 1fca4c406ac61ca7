"""The cache on disk: many processes at once, kills at any moment, damage of every kind.

What must hold whatever happens: the code is that of a compilation without a cache, nothing waits for ever, and after one
compilation the cache holds every kernel again.
"""

from __future__ import annotations

import os
import random as randomness
import selectors
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

from .frame import Outcome, check

WORKER = Path(__file__).with_name("worker.py")
# Far more than compiling takes on a machine that does other things, too.
PATIENCE = 120.0


class Worker:
    """A process that runs ``worker.py``."""

    def __init__(self, cache: Path, **environment):
        environment = {"TILEWRIGHT_CACHE_DIR": str(cache), **environment}
        self.process = subprocess.Popen(
            [sys.executable, str(WORKER)],
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ask(self) -> None:
        """Has it compile everything."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def answer(self) -> list[str]:
        """What it printed; an error where it says nothing in time, or died."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            if not selector.select(PATIENCE):
                raise RuntimeError(f"nothing came in {PATIENCE:.0f} s")
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"a process died: {self.process.stderr.read()[-2000:]}")
        return line.split()

    def compile(self) -> list[str]:
        self.ask()
        return self.answer()

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@contextmanager
def worker(cache: Path, **environment):
    process = Worker(cache, **environment)
    try:
        yield process
    finally:
        process.end()


@contextmanager
def folder():
    path = Path(tempfile.mkdtemp(prefix="tilewright-robustness-"))
    try:
        yield path
    finally:
        for entry in path.rglob("*"):
            if entry.is_dir() and not entry.is_symlink():
                entry.chmod(0o700)
        shutil.rmtree(path)


def reference(place: Path) -> list[str]:
    """The digests of code that no cache had to do with."""
    with worker(place / "reference", TILEWRIGHT_ALWAYS_COMPILE="1") as process:
        return process.compile()


def without_marks(words: list[str]) -> list[str]:
    return [word.rstrip("*") for word in words]


def entries(cache: Path) -> list[Path]:
    return sorted(path for path in cache.iterdir() if len(path.name) == 64)


def left_behind(cache: Path) -> list[Path]:
    return [path for path in cache.iterdir() if path.name.startswith(".tmp-")]


def expect(outcome: Outcome, what: str, process: Worker, right: list[str], *, cached: bool = False) -> None:
    """Has the process compile; notes what is wrong about the answer."""
    try:
        words = process.compile()
    except RuntimeError as error:
        outcome.lost.append(f"{what}: {error}")
        raise
    if without_marks(words) != right:
        outcome.lost.append(f"{what}: wrong code")
    elif cached and not all(word.endswith("*") for word in words):
        outcome.lost.append(f"{what}: the cache was not repaired")


# ---- damage ---------------------------------------------------------------------------------------------------------


def files(entry: Path) -> list[Path]:
    """The files that are there, as long as they are what they should be."""
    found = sorted(path for path in entry.iterdir() if path.is_file() and not path.is_symlink())
    return [path for path in found if 0 < path.stat().st_size < 1 << 20]


def clear(entry: Path) -> None:
    """Removes an entry, or what stands in its place: `rmtree` would wait at a pipe."""
    if entry.is_dir() and not entry.is_symlink():
        shutil.rmtree(entry)
    else:
        entry.unlink()


def some_file(entry: Path, random: randomness.Random) -> Path:
    return random.choice(files(entry))


def flip_a_bit(entry, random):
    file = some_file(entry, random)
    data = bytearray(file.read_bytes())
    data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    file.write_bytes(data)


def cut_short(entry, random):
    file = some_file(entry, random)
    os.truncate(file, random.randrange(file.stat().st_size))


def append_something(entry, random):
    with some_file(entry, random).open("ab") as file:
        file.write(random.randbytes(random.randrange(1, 100)))


def remove_a_file(entry, random):
    some_file(entry, random).unlink()


def remove_a_line(entry, random):
    (file,) = (path for path in files(entry) if path.name == "checksums")
    lines = file.read_text().splitlines(keepends=True)
    del lines[random.randrange(len(lines))]
    file.write_text("".join(lines))


def swap_files(entry, random):
    a, b = random.sample(files(entry), 2)
    data = a.read_bytes()
    a.write_bytes(b.read_bytes())
    b.write_bytes(data)


def copy_another_entry(entry, random):
    other = random.choice([path for path in entries(entry.parent) if path != entry])
    clear(entry)
    shutil.copytree(other, entry, symlinks=True)


def link_to_another_entry(entry, random):
    other = random.choice([path for path in entries(entry.parent) if path != entry])
    clear(entry)
    entry.symlink_to(other.name)


def take_a_file_of_another(entry, random):
    file = some_file(entry, random)
    others = [path for path in entries(entry.parent) if path != entry]
    stages = [path for other in others for path in files(other) if path.suffix == file.suffix]
    shutil.copy(random.choice(stages), file)


def pipe_for_a_file(entry, random):
    file = some_file(entry, random)
    file.unlink()
    os.mkfifo(file)


def endless_file(entry, random):
    file = some_file(entry, random)
    file.unlink()
    file.symlink_to("/dev/zero")


def folder_for_a_file(entry, random):
    file = some_file(entry, random)
    file.unlink()
    file.mkdir()


def huge_file(entry, random):
    os.truncate(some_file(entry, random), 1 << 40)


def no_permissions(entry, random):
    random.choice([entry, some_file(entry, random)]).chmod(0)


def pipe_for_the_entry(entry, random):
    clear(entry)
    os.mkfifo(entry)


def file_for_the_entry(entry, random):
    clear(entry)
    entry.write_bytes(random.randbytes(50))


def link_in_a_circle(entry, random):
    clear(entry)
    entry.symlink_to(entry.name)


def empty_entry(entry, random):
    clear(entry)
    entry.mkdir()


def pipe_for_a_lock(entry, random):
    lock = entry.parent / ".lock"
    lock.unlink(missing_ok=True)
    os.mkfifo(lock)
    flip_a_bit(entry, random)


DAMAGES = [
    flip_a_bit,
    cut_short,
    append_something,
    remove_a_file,
    remove_a_line,
    swap_files,
    copy_another_entry,
    link_to_another_entry,
    take_a_file_of_another,
    pipe_for_a_file,
    endless_file,
    folder_for_a_file,
    huge_file,
    no_permissions,
    pipe_for_the_entry,
    file_for_the_entry,
    link_in_a_circle,
    empty_entry,
    pipe_for_a_lock,
]


# ---- checks ---------------------------------------------------------------------------------------------------------


@check("damaged entries of the cache, each repaired by the next compilation", rounds=400, few=len(DAMAGES))
def damage(rounds: int, random: randomness.Random) -> Outcome:
    outcome = Outcome()
    with folder() as place:
        right, cache = reference(place), place / "cache"
        process = Worker(cache)
        try:
            expect(outcome, "a new cache", process, right)
            for number in range(rounds):
                # Each kind in turn, so that few rounds have them all.
                kind = DAMAGES[number % len(DAMAGES)]
                kind(random.choice(entries(cache)), random)
                outcome.tried["damages"] += 1
                try:
                    expect(outcome, kind.__name__, process, right)
                    expect(outcome, kind.__name__, process, right, cached=True)
                except RuntimeError:
                    process.end()
                    shutil.rmtree(cache)
                    process = Worker(cache)
                    expect(outcome, "a new cache", process, right)
                if left_behind(cache):
                    outcome.lost.append(f"{kind.__name__}: something was left in the cache's folder")
        finally:
            process.end()
    outcome.tried["kinds"] = min(rounds, len(DAMAGES))
    return outcome


@check("processes killed at any moment, on one cache", rounds=200, few=4)
def kills(rounds: int, random: randomness.Random) -> Outcome:
    outcome = Outcome()
    with folder() as place:
        right, cache = reference(place), place / "cache"
        # How long a process takes to start and compile says when a kill can hit what.
        start = time.monotonic()
        with worker(cache) as process:
            expect(outcome, "a new cache", process, right)
        usual = time.monotonic() - start
        for _ in range(rounds):
            # Without entries there is something to write.
            for entry in entries(cache):
                if random.random() < 0.7:
                    shutil.rmtree(entry)
            process = Worker(cache)
            process.ask()
            time.sleep(random.uniform(0.3, 1.0) * usual)
            process.end()
            outcome.tried["kills"] += 1
        with worker(cache) as process:
            expect(outcome, "after the kills", process, right)
            expect(outcome, "after the kills", process, right, cached=True)
        # The first write of a process removes what others left; young folders might still be written.
        time.sleep(2.5)
        shutil.rmtree(entries(cache)[0])
        with worker(cache) as process:
            expect(outcome, "the sweep", process, right)
        outcome.lost += [f"left behind: {path.name}" for path in left_behind(cache)]
    return outcome


@check("processes at once on one cache that is damaged all the time", rounds=40, few=1)
def crowd(rounds: int, random: randomness.Random) -> Outcome:
    outcome = Outcome()
    with folder() as place:
        right, cache = reference(place), place / "cache"
        cache.mkdir(mode=0o700)
        for _ in range(rounds):
            processes = [Worker(cache) for _ in range(4)]
            try:
                for _ in range(5):
                    for process in processes:
                        process.ask()
                    for process in processes:
                        if present := entries(cache):
                            try:
                                random.choice(DAMAGES)(random.choice(present), random)
                                outcome.tried["damages"] += 1
                            # The entry changes under our hands, or is too damaged for that.
                            except (OSError, ValueError, IndexError):
                                pass
                        words = process.answer()
                        outcome.tried["compilations"] += len(words)
                        if without_marks(words) != right:
                            outcome.lost.append("wrong code")
            except RuntimeError as error:
                outcome.lost.append(str(error))
            finally:
                for process in processes:
                    process.end()
            outcome.tried["processes"] += len(processes)
        with worker(cache) as process:
            expect(outcome, "after the crowd", process, right)
            expect(outcome, "after the crowd", process, right, cached=True)
    return outcome
