"""The CUDA driver by ctypes: loads PTX, copies arrays there and back, launches, with tensor maps and clusters."""

from __future__ import annotations

import ctypes
import multiprocessing

import numpy as np

from .program import Program, TensorMap

# CUtensorMapDataType.
TENSOR_TYPES = {
    "u8": 0,
    "u16": 1,
    "u32": 2,
    "s32": 3,
    "u64": 4,
    "s64": 5,
    "f16": 6,
    "f32": 7,
    "f64": 8,
    "bf16": 9,
}


class Attribute(ctypes.Structure):
    """CUlaunchAttribute; a cluster's dimensions are number 4."""

    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_char * 4), ("value", ctypes.c_uint32 * 16)]


class Config(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = [(n, ctypes.c_uint) for n in ("gx", "gy", "gz", "bx", "by", "bz", "shared")] + [
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(Attribute)),
        ("count", ctypes.c_uint),
    ]


class Driver:
    """One GPU's primary context."""

    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        self.device = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(self.device), 0)
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self.device)
        self.call("cuCtxSetCurrent", context)
        name, version = ctypes.create_string_buffer(100), ctypes.c_int()
        self.call("cuDeviceGetName", name, 100, self.device)
        self.call("cuDriverGetVersion", ctypes.byref(version))
        self.name = f"{name.value.decode()}, CUDA {version.value // 1000}.{version.value % 1000 // 10}"

    def call(self, name, *args):
        status = getattr(self.cuda, name)(*args)
        if status:
            message = ctypes.c_char_p()
            self.cuda.cuGetErrorName(status, ctypes.byref(message))
            raise RuntimeError(f"{name}: {(message.value or b'?').decode()}")

    def load(self, ptx: str) -> ctypes.c_void_p:
        """A module; the error is ptxas's own words."""
        module, log = ctypes.c_void_p(), ctypes.create_string_buffer(4096)
        options = (ctypes.c_int * 2)(5, 6)  # CU_JIT_ERROR_LOG_BUFFER, its size
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), 4096)
        try:
            self.call("cuModuleLoadDataEx", ctypes.byref(module), ptx.encode() + b"\0", 2, options, values)
        except RuntimeError as error:
            raise RuntimeError(f"{error}: {log.value.decode(errors='replace')}") from None
        return module

    def tensor_map(self, m: TensorMap, address: int) -> np.ndarray:
        """The 128 bytes of a CUtensorMap, aligned to 64."""
        raw = np.zeros(256, np.uint8)
        start = -raw.ctypes.data % 64
        n = len(m.dims)
        swizzle = {0: 0, 32: 1, 64: 2, 128: 3}[m.swizzle]
        self.call(
            "cuTensorMapEncodeTiled",
            ctypes.c_void_p(raw.ctypes.data + start),
            TENSOR_TYPES[m.type],
            n,
            ctypes.c_void_p(address),
            (ctypes.c_uint64 * n)(*m.dims),
            (ctypes.c_uint64 * max(n - 1, 1))(*m.strides),
            (ctypes.c_uint32 * n)(*m.box),
            (ctypes.c_uint32 * n)(*(m.element_strides or [1] * n)),
            0,
            swizzle,
            0,
            int(m.nan_fill),
        )
        return raw[start : start + 128]

    def run(self, p: Program, arguments: list) -> None:
        """Runs a program; the arrays of ``arguments`` hold what memory holds afterwards."""
        module, function = self.load(p.ptx), ctypes.c_void_p()
        pointers: dict[int, ctypes.c_uint64] = {}
        try:
            self.call("cuModuleGetFunction", ctypes.byref(function), module, b"k")
            for k, array in enumerate(arguments):
                if isinstance(array, np.ndarray):
                    pointers[k] = ctypes.c_uint64()
                    self.call("cuMemAlloc_v2", ctypes.byref(pointers[k]), ctypes.c_size_t(array.nbytes))
                    data = ctypes.c_void_p(array.ctypes.data)
                    self.call("cuMemcpyHtoD_v2", pointers[k], data, ctypes.c_size_t(array.nbytes))
            cells = [
                pointers[k] if k in pointers else self.tensor_map(a, pointers[a.argument].value)
                for k, a in enumerate(arguments)
            ]
            places = [c.ctypes.data if isinstance(c, np.ndarray) else ctypes.addressof(c) for c in cells]
            params = (ctypes.c_void_p * len(places))(*places)
            cluster = Attribute(4, b"", (ctypes.c_uint32 * 16)(p.cluster, 1, 1))
            config = Config(p.grid, 1, 1, p.block, 1, 1, 0, None, ctypes.pointer(cluster), int(p.cluster > 1))
            self.call("cuLaunchKernelEx", ctypes.byref(config), function, params, None)
            self.call("cuCtxSynchronize")
            for k, pointer in pointers.items():
                data = ctypes.c_void_p(arguments[k].ctypes.data)
                self.call("cuMemcpyDtoH_v2", data, pointer, ctypes.c_size_t(arguments[k].nbytes))
        finally:
            for pointer in pointers.values():
                self.cuda.cuMemFree_v2(pointer)
            self.cuda.cuModuleUnload(module)


SECONDS = 20


def serve(pipe) -> None:
    """Runs the programs that come in, until one fails: a context that has seen a trap runs nothing more."""
    driver = Driver()
    pipe.send(driver.name)
    while True:
        try:
            program, arguments = pipe.recv()
        except EOFError:
            return
        try:
            driver.run(program, arguments)
        except RuntimeError as error:
            pipe.send(str(error))
            return
        pipe.send(arguments)


class Gpu:
    """A GPU in a process of its own, begun anew after a program that failed or never ended."""

    def __init__(self):
        self.start()

    def start(self):
        """Begins a process."""
        spawn = multiprocessing.get_context("spawn")
        self.pipe, other = spawn.Pipe()
        self.process = spawn.Process(target=serve, args=(other,), daemon=True)
        self.process.start()
        self.name = self.receive(60)

    def receive(self, seconds: float):
        """What the process sends next."""
        try:
            if self.pipe.poll(seconds):
                return self.pipe.recv()
            text = f"no answer in {seconds} seconds"
        except EOFError:
            text = "the process died"
        raise RuntimeError(text)

    def run(self, p: Program, arguments: list) -> list:
        """What the arguments hold after the program has run."""
        try:
            self.pipe.send((p, arguments))
            answer = self.receive(SECONDS)
            if isinstance(answer, str):
                raise RuntimeError(answer)
            return answer
        except RuntimeError:
            self.process.kill()
            self.start()
            raise
