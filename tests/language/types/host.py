"""What a type checker knows of programs that launch kernels. A line with ``# error: CODE`` is wrong on purpose, every other one is right."""

from collections.abc import Callable
from typing import Any, assert_type

import tilewright as triton
import tilewright.language as tl
from tilewright.language.extra import cuda, libdevice
from tilewright.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def twice(x: tl.tensor) -> tl.tensor:
    return x + x


@triton.jit
def kernel(x_ptr: tl.tensor, n: tl.tensor, BLOCK: tl.constexpr) -> None:
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    assert_type(twice(x), tl.tensor)
    assert_type(libdevice.tgamma(x), tl.tensor)
    assert_type(libdevice.abs(x), tl.tensor)
    assert_type(cuda.libdevice.atan2(x, 1.0), tl.tensor)
    assert_type(cuda.smid(), tl.tensor)
    assert_type(cuda.num_warps(), tl.constexpr)
    assert_type(cuda.gdc_wait(), None)
    assert_type(tl.target_info.cuda_capability_geq(9, 0), bool)
    assert_type(triton.cdiv(BLOCK, 2), int)
    tl.store(x_ptr, tl.reduce(x, 0, twice))


@triton.jit(do_not_specialize=["n"], noinline=True)
def other(x_ptr, n, BLOCK: tl.constexpr):
    twice(tl.load(x_ptr))


@triton.autotune([triton.Config({"BLOCK": 64}, num_warps=8)], key=["n"], reset_to_zero=["x_ptr"])
@triton.heuristics({"BLOCK": lambda args: triton.next_power_of_2(args["n"])})
@triton.jit
def tuned(x_ptr, n, BLOCK: tl.constexpr):
    twice(tl.load(x_ptr))


@triton.constexpr_function
def half(n: int) -> int:
    return n // 2


class Wrapper(triton.KernelInterface[Callable[..., Any]]):
    def run(self, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        return kernel.run(*args, grid=grid, warmup=warmup, **kwargs)


def program(x: Any) -> None:
    assert_type(kernel[(4,)](x, 8, BLOCK=16, num_warps=2), triton.CompiledKernel)
    assert_type(other[lambda meta: (triton.cdiv(8, meta["BLOCK"]), 1)](x, 8, BLOCK=8), triton.CompiledKernel)
    assert_type(kernel.warmup(x, 8, BLOCK=16, target="cuda:90").asm["ptx"], Any)
    assert_type(kernel.arg_names, list[str])
    assert_type(kernel[4](x, 8, BLOCK=16).num_warps, int)
    tuned[(1,)](x, 8)
    assert_type(tuned.best_config, triton.Config | None)
    assert_type(half(8), int)
    assert_type(triton.cdiv(7, 2), int)
    Wrapper()[(1,)](x)
    with triton.reachable(x, x):
        triton.set_allocator(None)
    assert_type(triton.testing.simulate_ptx("", "f", 1, (32, 1), [x]), dict[str, Any])
    desc = TensorDescriptor.from_tensor(x, [8, 16])
    assert_type(desc.block_shape, list[int])
    source = triton.compiler.ASTSource(kernel, {"x_ptr": "*fp32"})
    assert_type(triton.compile(source), triton.CompiledKernel)
    try:
        kernel[(1,)](x)
    except triton.OutOfResources as error:
        assert_type(error.required, int | None)


def wrong(x: Any) -> None:
    kernel["x"](x)  # error: index
    kernel[(1.5,)](x)  # error: index
    kernel.grid  # error: attr-defined
    text: str = twice(x)  # error: assignment
    del text
    triton.jit(noinlined=True)  # error: call-overload
    triton.jit(3)  # error: call-overload
    triton.Config([64])  # error: arg-type
    triton.Config({}, num_warp=8)  # error: call-arg
    triton.autotune(configs=[{"BLOCK": 64}], key=["n"])  # error: list-item
    triton.autotune(configs=[], keys=["n"])  # error: call-arg
    triton.heuristics({"BLOCK": 64})  # error: dict-item
    triton.cdiv("8", 2)  # error: arg-type
    half("8")  # error: arg-type
    triton.next_power_of_two(8)  # error: attr-defined
    triton.testing.do_bench(8)  # error: arg-type
    libdevice.tgamma(x, x)  # error: call-arg
    libdevice.gama(x)  # error: attr-defined
    cuda.smid(0)  # error: call-arg
    tl.target_info.is_cuda(9)  # error: call-arg
