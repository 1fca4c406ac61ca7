"""Runs the programs that the `programs` example wrote on a GPU, and compares with what the simulator computed.

    cargo run -p tilewright-ptxsim --example programs -- DIR
    python compare.py DIR

Needs only the driver (libcuda). Prints each program that differs, and how many agree.
"""

from __future__ import annotations

import ctypes
import json
import struct
import sys
from pathlib import Path

THREADS = 256


class Driver:
    """The few calls of the CUDA driver that a launch needs."""

    def __init__(self):
        self.lib = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        device = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)

    def call(self, name, *args):
        code = getattr(self.lib, name)(*args)
        if code:
            text = ctypes.c_char_p()
            self.lib.cuGetErrorName(code, ctypes.byref(text))
            raise RuntimeError(f"{name}: {(text.value or b'?').decode()}")

    def allocate(self, size: int) -> ctypes.c_uint64:
        pointer = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(size))
        return pointer

    def run(self, ptx: bytes, a: ctypes.c_uint64, b: ctypes.c_uint64) -> None:
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), ptx + b"\0")
        self.call("cuModuleGetFunction", ctypes.byref(function), module, b"k")
        params = (ctypes.c_void_p * 2)(
            ctypes.cast(ctypes.pointer(a), ctypes.c_void_p), ctypes.cast(ctypes.pointer(b), ctypes.c_void_p)
        )
        self.call("cuLaunchKernel", function, 1, 1, 1, THREADS, 1, 1, 0, None, params, None)
        self.call("cuCtxSynchronize")
        self.call("cuModuleUnload", module)


def parts(kind: str, word: int) -> list[tuple[int, int, bool]]:
    """The values in a word: bits, width, and whether they are a NaN."""
    width = {"f16": 16, "bf16": 16, "f16x2": 16, "bf16x2": 16, "f32": 32, "f64": 64}.get(kind)
    if width is None:
        return [(word, 64, False)]
    count = 2 if kind.endswith("x2") else 1
    exponent = {"f16": 5, "bf16": 8, "f16x2": 5, "bf16x2": 8, "f32": 8, "f64": 11}[kind]
    fraction = width - 1 - exponent
    out = []
    for k in range(count):
        bits = word >> (width * k) & ((1 << width) - 1)
        magnitude = bits & ((1 << (width - 1)) - 1)
        out.append((bits, width, magnitude > ((1 << exponent) - 1) << fraction))
    return out


def same(kind: str, ulp: int, got: int, want: int) -> bool:
    for (g, width, g_nan), (w, _, w_nan) in zip(parts(kind, got), parts(kind, want)):
        if g_nan and w_nan:
            continue
        if g_nan != w_nan:
            return False

        def order(x, width=width):
            top = 1 << (width - 1)
            return x if x < top else top - x

        if g != w and (ulp == 0 or abs(order(g) - order(w)) > ulp):
            return False
    return True


def main() -> int:
    where = Path(sys.argv[1])
    driver = Driver()
    data = (where / "input.bin").read_bytes()
    a, b = driver.allocate(len(data)), driver.allocate(THREADS * 8)
    agree, differ, refused = 0, [], []
    for case in json.loads((where / "manifest.json").read_text()):
        driver.call("cuMemcpyHtoD_v2", a, data, ctypes.c_size_t(len(data)))
        try:
            driver.run((where / f"{case['n']}.ptx").read_bytes(), a, b)
        except RuntimeError as error:
            refused.append(f"{case['name']}: {error}")
            continue
        result = ctypes.create_string_buffer(THREADS * 8)
        driver.call("cuMemcpyDtoH_v2", result, b, ctypes.c_size_t(THREADS * 8))
        got = struct.unpack(f"<{THREADS}Q", result.raw)
        want = struct.unpack(f"<{THREADS}Q", (where / f"{case['n']}.bin").read_bytes())
        wrong = [t for t in range(THREADS) if not same(case["kind"], case["ulp"], got[t], want[t])]
        if not wrong:
            agree += 1
            continue
        t = wrong[0]
        inputs = struct.unpack_from("<3Q", data, 24 * t)
        shown = ", ".join(f"{x:#x}" for x in inputs)
        differ.append(
            f"{case['name']}: {len(wrong)} of {THREADS} differ; thread {t}: inputs {shown}: "
            f"GPU {got[t]:#x}, simulator {want[t]:#x}"
        )
    for line in refused:
        print("refused", line)
    for line in differ:
        print("differs", line)
    print(f"{agree} agree, {len(differ)} differ, {len(refused)} refused")
    return 1 if differ or refused else 0


if __name__ == "__main__":
    sys.exit(main())
