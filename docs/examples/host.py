"""The Python side."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright.tools.tensor_descriptor import TensorDescriptor


# %% triton.jit
@triton.jit
def add(x, y):  # a function that kernels call
    return x + y


@triton.jit(do_not_specialize=["n"])
def add_vectors(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x, y = tl.load(x_ptr + i, mask=mask), tl.load(y_ptr + i, mask=mask)
    tl.store(out_ptr + i, add(x, y), mask=mask)


x, y, out = np.arange(1000), np.ones(1000, np.int64), np.zeros(1000, np.int64)
add_vectors[(triton.cdiv(1000, 256),)](x, y, out, 1000, BLOCK=256)
np.testing.assert_array_equal(out, x + 1)


# %% triton.JITFunction, triton.CompiledKernel
@triton.jit
def double(x_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(x_ptr + i, 2 * tl.load(x_ptr + i))


assert isinstance(double, triton.JITFunction) and double.arg_names == ["x_ptr", "N"]
# Compiled without a GPU.
kernel = double.warmup(np.float32, N=256, target="cuda:90", num_warps=8)
assert isinstance(kernel, triton.CompiledKernel) and kernel.metadata.num_warps == 8
assert ".target sm_90" in kernel.asm["ptx"]


# %% triton.autotune, triton.Config
@triton.autotune(
    configs=[
        triton.Config({"BLOCK": 64}),
        triton.Config({"BLOCK": 256}, num_warps=8),
    ],
    key=["n"],  # another n is measured anew
)
@triton.jit
def square(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x * x, mask=i < n)


x, out = np.arange(1000), np.zeros(1000, np.int64)
square[lambda meta: (triton.cdiv(1000, meta["BLOCK"]),)](x, out, 1000)
np.testing.assert_array_equal(out, x * x)
assert square.best_config.kwargs["BLOCK"] in (64, 256)


# %% triton.heuristics
@triton.heuristics({"BLOCK": lambda args: triton.next_power_of_2(args["n"])})
@triton.jit
def largest(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr, tl.max(tl.load(x_ptr + i, mask=i < n, other=0), axis=0))


x, out = np.random.permutation(1000), np.zeros(1, np.int64)
largest[(1,)](x, out, 1000)
assert out[0] == 999

# %% triton.cdiv, triton.next_power_of_2
assert triton.cdiv(1000, 256) == 4
assert triton.next_power_of_2(1000) == 1024


# %% triton.constexpr_function
@triton.constexpr_function
def log2(n):
    return n.bit_length() - 1


@triton.jit
def bits(out_ptr, N: tl.constexpr):
    tl.store(out_ptr, log2(N))  # computed by Python while the kernel compiles


out = np.zeros(1, np.int32)
bits[(1,)](out, N=64)
assert out[0] == 6


# %% triton.must_use_result
@triton.must_use_result("the sum is what it gives")
@triton.jit
def plus(x, y):
    return x + y


@triton.jit
def careless(x_ptr):
    plus(tl.load(x_ptr), 1)


with pytest.raises(triton.CompilationError, match="the sum is what it gives"):
    careless[(1,)](np.zeros(1))


# %% triton.compile
@triton.jit
def negate(x_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(x_ptr + i, -tl.load(x_ptr + i))


signature = {"x_ptr": "*fp32", "N": "constexpr"}
source = triton.compiler.ASTSource(negate, signature, {"N": 128})
target = triton.backends.compiler.GPUTarget("cuda", 90, 32)
kernel = triton.compile(source, target=target)
assert "tt.store" in kernel.asm["ttir"]


# %% triton.AsyncCompileMode, triton.FutureKernel
@triton.jit
def fill(x_ptr, N: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, N), tl.arange(0, N))


with ThreadPoolExecutor() as threads, triton.AsyncCompileMode(threads):
    kernels = [fill.warmup(tl.int32, N=n, target="cuda:90") for n in (64, 128, 256)]
    assert all(isinstance(kernel, triton.FutureKernel) for kernel in kernels)
assert len({kernel.result().asm["ptx"] for kernel in kernels}) == 3


# %% triton.reinterpret, triton.TensorWrapper
@triton.jit
def widen(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + i, tl.load(x_ptr + i).to(tl.float32))


x, out = np.array([0x38, 0x40, 0xC0, 0x00], np.uint8), np.zeros(4, np.float32)
eights = triton.reinterpret(x, tl.float8e4nv)
assert isinstance(eights, triton.TensorWrapper)
widen[(1,)](eights, out, N=4)
np.testing.assert_array_equal(out, [1, 2, -2, 0])


# %% triton.MockTensor
@triton.jit
def zero(x_ptr, N: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, N), tl.zeros((N,), tl.float16))


kernel = zero.warmup(triton.MockTensor(tl.float16, [64]), N=64, target="cuda:90")
assert kernel.metadata.target.arch == 90


# %% triton.KernelInterface
@triton.jit
def one(x_ptr):
    tl.store(x_ptr, 1)


class Counted(triton.KernelInterface):
    """A wrapper is launched like what it wraps."""

    def __init__(self, fn):
        self.fn, self.launches = fn, 0

    def run(self, *args, grid, warmup, **kwargs):
        self.launches += not warmup
        return self.fn.run(*args, grid=grid, warmup=warmup, **kwargs)


counted, x = Counted(one), np.zeros(1)
counted[(1,)](x)
assert counted.launches == 1 and x[0] == 1


# %% triton.reachable
@triton.jit
def sum_each(addresses, out_ptr, N: tl.constexpr):
    pid = tl.program_id(0)
    array = tl.load(addresses + pid).to(tl.pointer_type(tl.float64))
    tl.store(out_ptr + pid, tl.sum(tl.load(array + tl.arange(0, N)), axis=0))


arrays, out = [np.random.rand(16) for _ in range(3)], np.zeros(3)
addresses = np.array([array.ctypes.data for array in arrays])
with triton.reachable(*arrays):
    sum_each[(3,)](addresses, out, N=16)
np.testing.assert_allclose(out, [array.sum() for array in arrays])


# %% triton.set_allocator
def from_torch(size: int, alignment: int, stream: int | None):
    import torch

    return torch.empty(size, dtype=torch.int8, device="cuda")


triton.set_allocator(from_torch)
triton.set_allocator(None)  # Tilewright's own memory again


# %% TensorDescriptor, TensorDescriptor.from_tensor
@triton.jit
def halve(desc):
    at = [tl.program_id(0) * desc.block_shape[0], 0]
    desc.store(at, desc.load(at) / 2)


x = np.ones((20, 16), np.float32)
desc = TensorDescriptor(x, shape=[20, 16], strides=[16, 1], block_shape=[8, 16])
assert desc == TensorDescriptor.from_tensor(x, [8, 16])
halve[(3,)](desc)
np.testing.assert_array_equal(x, np.full((20, 16), 0.5))


# %% triton.TilewrightError, triton.TritonError, triton.CompilationError
@triton.jit
def mistaken(x_ptr):
    tl.store(x_ptr, tl.arange(0, 8) + tl.arange(0, 4))


with pytest.raises(triton.CompilationError, match="do not broadcast") as caught:
    mistaken[(1,)](np.zeros(8))
assert isinstance(caught.value, triton.TilewrightError)
assert issubclass(triton.OutOfResources, triton.TritonError)


# %% triton.KernelError, triton.InterpreterError
@triton.jit
def too_far(x_ptr, N: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, N), 0)


with pytest.raises(triton.KernelError, match="bounds"):
    too_far[(1,)](np.zeros(4), N=8)  # on the CPU every access is checked
assert issubclass(triton.InterpreterError, triton.TritonError)


# %% triton.OutOfResources, triton.DriverError
@triton.jit
def fits(x_ptr):
    tl.store(x_ptr, 1)


x = np.zeros(1)
try:
    fits[(1,)](x)
except triton.OutOfResources:
    print("try smaller tiles or fewer stages")
except triton.DriverError as error:
    print("CUDA says:", error)
assert x[0] == 1
