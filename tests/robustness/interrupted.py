"""A process that is interrupted: a line on standard input names what it is to do, and it says how that ended, and whether
what it compiles and runs then is right."""

import os
import signal
import sys

import numpy as np

import tilewright as triton
import tilewright.language as tl


@triton.jit
def forever(x, n):
    i = 0
    while i < n:
        i += tl.load(x)


@triton.jit
def scaled(x, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    row = tl.load(x + at, at < n, other=0)
    tl.store(x + at, tl.cumsum(row * 3, 0), at < n)


def ptx():
    scaled.clear_cache()
    kernel = scaled.warmup(tl.float32, 100, BLOCK=256, grid=(1,), target="cuda:90")
    return kernel.asm["ptx"], kernel.asm["cubin"]


def run(backend, kernel, *arguments, **options):
    os.environ["TILEWRIGHT_BACKEND"] = backend
    kernel[(1,)](*arguments, **options)


def compile_often():
    # Again and again: the signal comes while it does.
    for _ in range(1000):
        ptx()


WORK = {
    "compile": compile_often,
    "execute": lambda: run("interp", forever, np.zeros(4, np.int32), 1),
    "simulate": lambda: run("ptxsim", forever, np.zeros(4, np.int32), 1),
}

inside = False


def interrupt(*_):
    if inside:
        raise KeyboardInterrupt


def main():
    global inside
    os.environ["TILEWRIGHT_ALWAYS_COMPILE"] = "1"
    signal.signal(signal.SIGINT, interrupt)
    wanted = ptx()
    print("ready now", flush=True)
    for line in sys.stdin:
        what = "ended"
        try:
            try:
                inside = True
                WORK[line.strip()]()
            finally:
                inside = False
        except KeyboardInterrupt:
            what = "interrupted"
        inside = False
        x = np.ones(4, np.float32)
        run("interp", scaled, x, 4, BLOCK=256)
        right = ptx() == wanted and x.tolist() == [3, 6, 9, 12]
        print(what, "right" if right else "wrong", flush=True)


main()
