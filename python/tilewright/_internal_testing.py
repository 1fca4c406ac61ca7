"""What tests of Triton programs share, under the names of ``triton._internal_testing``: which device there is, arrays of any dtype."""

from __future__ import annotations

import os

import numpy as np
import pytest
import torch

from . import knobs
from .language.core import dtype, str_to_ty
from .runtime.driver import driver
from .runtime.jit import TensorWrapper, reinterpret, type_canonicalisation_dict

int_dtypes = [f"int{bits}" for bits in (8, 16, 32, 64)]
uint_dtypes = [f"u{name}" for name in int_dtypes]
integral_dtypes = int_dtypes + uint_dtypes
float_dtypes = [f"float{bits}" for bits in (16, 32, 64)]
float_dtypes_with_bfloat16 = [*float_dtypes, "bfloat16"]
dtypes = integral_dtypes + float_dtypes
dtypes_with_bfloat16 = [*dtypes, "bfloat16"]
torch_float8_dtypes = ["float8_e4m3fn", "float8_e5m2"]
torch_dtypes = ["bool", *int_dtypes, "uint8", *float_dtypes, "bfloat16"]
tma_dtypes = sorted(name for name in dtypes_with_bfloat16 if name not in ("int64", "uint64", "float64"))


def is_interpreter() -> bool:
    """Whether kernels run on the CPU because Triton's switch says so."""
    return os.environ.get("TRITON_INTERPRET", "0") == "1"


def get_current_target():
    """The target of launches; ``None`` on the CPU."""
    return None if is_interpreter() else driver.active.get_current_target()


def _is(backend: str, *arches: str) -> bool:
    target = get_current_target()
    if target is None or target.backend != backend:
        return False
    return not arches or any(arch in str(target.arch) for arch in arches)


def _capability() -> int:
    """The major number of the compute capability; 0 for what is no GPU of NVIDIA's."""
    target = get_current_target()
    return target.arch // 10 if target is not None and target.backend == "cuda" else 0


def is_cuda() -> bool:
    return _is("cuda")


def is_ampere_or_newer() -> bool:
    return _capability() >= 8


def is_hopper() -> bool:
    return _capability() == 9


def is_hopper_or_newer() -> bool:
    return _capability() >= 9


def is_blackwell() -> bool:
    return _capability() == 10


def is_sm12x() -> bool:
    return _capability() == 12


def is_hip() -> bool:
    return _is("hip")


def is_hip_cdna2() -> bool:
    return _is("hip", "gfx90a")


def is_hip_cdna3() -> bool:
    return _is("hip", "gfx942")


def is_hip_cdna4() -> bool:
    return _is("hip", "gfx950")


def is_hip_cdna() -> bool:
    return _is("hip", "gfx90a", "gfx942", "gfx950")


def is_hip_gfx11() -> bool:
    return _is("hip", "gfx11")


def is_hip_gfx12() -> bool:
    return _is("hip", "gfx12")


# As Triton 3.6 calls these two.
is_hip_rdna3 = is_hip_gfx11
is_hip_rdna4 = is_hip_gfx12


def is_hip_gfx1250() -> bool:
    return _is("hip", "gfx1250")


def get_hip_lds_size() -> int:
    """Bytes of shared memory of a CU."""
    return 160 * 1024 if is_hip_cdna4() else 64 * 1024


def is_xpu() -> bool:
    return _is("xpu")


def get_arch() -> str:
    """The architecture of the target as text; empty on the CPU."""
    target = get_current_target()
    return "" if target is None else str(target.arch)


def numpy_random(shape, dtype_str, rs=None, low=None, high=None):
    """Random numbers: integers over their whole range and never 0, floats of the normal distribution.

    A bfloat16 comes as float32 with its lower half zero, a float8 as int8 with the bits of small numbers.

    :param rs: a generator, for callers that want more than one array.
    """
    shape = (shape,) if isinstance(shape, int) else shape
    rs = np.random.RandomState(seed=17) if rs is None else rs
    if dtype_str in integral_dtypes:
        limits = np.iinfo(dtype_str)
        low = limits.min if low is None else max(low, limits.min)
        high = limits.max if high is None else min(high, limits.max)
        numbers = rs.randint(low, high, shape, dtype=dtype_str)
        return np.where(numbers == 0, np.ones((), numbers.dtype), numbers)
    if dtype_str and "float8" in dtype_str:
        return rs.randint(20, 40, shape, dtype=np.int8)
    if dtype_str in float_dtypes:
        return rs.normal(0, 1, shape).astype(dtype_str)
    if dtype_str == "bfloat16":
        bits = rs.normal(0, 1, shape).astype(np.float32).view(np.uint32)
        return (bits & np.uint32(0xFFFF0000)).view(np.float32)
    if dtype_str in ("bool", "int1", "bool_"):
        return rs.normal(0, 1, shape) > 0.0
    raise RuntimeError(f"there is no dtype {dtype_str!r}")


def to_triton(x, device, dst_type=None):
    """A NumPy array as a tensor on a device; ``dst_type`` where the array only has the bits, or a wider type."""
    name = x.dtype.name
    if name in uint_dtypes:
        return reinterpret(torch.tensor(x.astype(name[1:]), device=device), str_to_triton_dtype(name))
    tensor = torch.tensor(x, device=device)
    if dst_type and "float8" in dst_type:
        return reinterpret(tensor, str_to_triton_dtype(dst_type))
    return tensor.bfloat16() if name == "float32" and dst_type == "bfloat16" else tensor


def str_to_triton_dtype(name: str) -> dtype:
    """The dtype of the language by a name of it."""
    return str_to_ty(type_canonicalisation_dict[name], None)


def torch_dtype_name(ty) -> str:
    """``int64`` for ``torch.int64`` and ``tl.int64``."""
    if not isinstance(ty, (dtype, torch.dtype)):
        raise TypeError(f"a dtype of torch or of the language is wanted, not a {type(ty).__name__}")
    return str(ty).removeprefix("torch.") if isinstance(ty, torch.dtype) else ty.name


def to_numpy(x):
    """A tensor's values; bfloat16 as float32."""
    if isinstance(x, TensorWrapper):
        return x.base.cpu().numpy().astype(torch_dtype_name(x.dtype))
    if not isinstance(x, torch.Tensor):
        raise ValueError(f"a tensor is wanted, not a {type(x).__name__}")
    return (x.float() if x.dtype is torch.bfloat16 else x).cpu().numpy()


def unwrap_tensor(x):
    """The tensor below :func:`reinterpret`."""
    return x.base if isinstance(x, TensorWrapper) else x


def supports_tma(byval_only: bool = False) -> bool:
    """Whether descriptors are copied by hardware, or run on the CPU."""
    return is_interpreter() or is_hopper_or_newer()


def supports_ws() -> bool:
    """Whether loops can be split over warp groups, or run on the CPU."""
    return is_interpreter() or is_hopper_or_newer()


def tma_skip_msg(byval_only: bool = False) -> str:
    """Why a test of descriptors is skipped."""
    return "needs the tensor memory accelerator of Hopper or newer"


requires_tma = pytest.mark.skipif(not supports_tma(), reason=tma_skip_msg())


def default_alloc_fn(size: int, align: int, stream):
    """An allocator for :func:`tilewright.set_allocator`."""
    return torch.empty(size, dtype=torch.int8, device="cuda" if torch.cuda.is_available() else "cpu")


def _fresh_knobs_impl(skipped_attr=()):
    """Two functions: one has all groups of knobs but those named follow an environment without their variables, and gives the
    knobs; the other puts back what was there."""
    groups = {
        name: group
        for name, group in vars(knobs).items()
        if isinstance(group, knobs.base_knobs) and name not in (skipped_attr or ())
    }
    variables = [
        key for group in groups.values() for knob in group.knob_descriptors.values() for key in knob.keys
    ]
    before = {}, knobs.propagate_env

    def fresh():
        for name in variables:
            before[0][name] = os.environ.pop(name, None)
        for name, group in groups.items():
            setattr(knobs, name, group.copy().reset())
        knobs.propagate_env = True
        return knobs

    def put_back():
        for name, group in groups.items():
            setattr(knobs, name, group)
        for name, value in before[0].items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        knobs.propagate_env = before[1]

    return fresh, put_back
