"""The compiler for NVIDIA's GPUs as programs look at it: its options and its hash."""

from __future__ import annotations

import functools
import hashlib
import re
from dataclasses import dataclass, fields
from typing import Any

from ... import _tilewright
from ..compiler import BaseBackend, GPUTarget

__all__ = [
    "CUDABackend",
    "CUDAOptions",
    "get_ptxas",
    "min_dot_size",
    "ptx_get_version",
    "sm_arch_from_capability",
]


def min_dot_size(target: GPUTarget):
    """A function from the types of a product's operands to the least (m, n, k) that needs no padding."""

    def least(lhs_type, rhs_type) -> tuple[int, int, int]:
        return (1, 1, 32 if lhs_type.scalar.primitive_bitwidth == 8 else 16)

    return least


def get_ptxas(arch: int):
    """The ``ptxas`` for a compute capability."""
    from ...knobs import nvidia

    return nvidia.ptxas_blackwell if arch >= 100 else nvidia.ptxas


@functools.lru_cache
def ptx_get_version(cuda_version: str) -> int:
    """The newest PTX, as in 87 for 8.7, that a release of CUDA knows."""
    major, minor = map(int, cuda_version.split("."))
    if major >= 13:
        return 90 + (major - 13) * 10 + minor
    first = {12: 80, 11: 70, 10: 63}.get(major)
    if first is None:
        raise RuntimeError(f"CUDA {cuda_version} is too old: 10.0 is the oldest")
    # CUDA 12.5 and 12.6 have the same PTX.
    return first + minor - (1 if major == 12 and minor >= 6 else 0)


def sm_arch_from_capability(capability: int) -> str:
    """The architecture that ``ptxas`` is told."""
    return f"sm_{capability}{'a' if capability >= 90 else ''}"


@dataclass(frozen=True)
class CUDAOptions:
    """Options of a kernel under Triton's names."""

    num_warps: int = 4
    num_ctas: int = 1
    num_stages: int = 3
    warp_size: int = 32
    maxnreg: int | None = None
    ptx_version: int | None = None
    ptx_options: str | None = None
    ir_override: str | None = None
    enable_fp_fusion: bool = True
    enable_reflect_ftz: bool = True
    launch_cooperative_grid: bool = False
    launch_pdl: bool = False
    supported_fp8_dtypes: tuple[str, ...] = ("fp8e5", "fp8e4b15")
    deprecated_fp8_dot_operand_dtypes: tuple[str, ...] = ()
    default_dot_input_precision: str = "tf32"
    allowed_dot_input_precisions: tuple[str, ...] = ("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6")
    max_num_imprecise_acc_default: int | None = None
    extern_libs: Any = None
    debug: bool = False
    backend_name: str = "cuda"
    sanitize_overflow: bool = True
    arch: str | None = None
    instrumentation_mode: str = ""

    def __post_init__(self):
        if self.num_warps < 1 or self.num_warps & (self.num_warps - 1):
            raise ValueError(f"num_warps is a power of two, not {self.num_warps}")

    def hash(self) -> str:
        """A digest of the options."""
        text = "_".join(f"{name}-{value}" for name, value in sorted(vars(self).items()))
        return hashlib.sha256(text.encode()).hexdigest()


def target_of_arch(arch: str) -> GPUTarget:
    """The GPU that Triton's option ``arch`` names, as in ``sm90``."""
    if not (match := re.fullmatch(r"sm(\d+)", arch)):
        raise ValueError(f"an architecture is written as in sm90, not {arch!r}")
    return GPUTarget("cuda", int(match.group(1)), 32)


class CUDABackend(BaseBackend):
    """The compiler for NVIDIA's GPUs."""

    binary_ext = "cubin"
    instrumentation = None

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        """Whether the target is one of NVIDIA's."""
        return target.backend == "cuda"

    def hash(self) -> str:
        """The release, and the target."""
        return f"tilewright-{_tilewright.__version__}-{self.target.name}"

    def get_target_name(self, options: CUDAOptions) -> str:
        """As in ``cuda:90``."""
        return f"cuda:{self._parse_arch(options.arch)}"

    @staticmethod
    def _parse_arch(arch: str) -> int:
        return target_of_arch(arch).arch

    def parse_options(self, options: dict) -> CUDAOptions:
        """The options that Triton has, with the defaults of this target; others are left out."""
        from ...knobs import language

        known = {field.name for field in fields(CUDAOptions)}
        given = {name: value for name, value in options.items() if name in known and value is not None}
        arch = self._parse_arch(given.setdefault("arch", f"sm{self.target.arch}"))
        if given.get("num_ctas", 1) > 1 and arch < 90:
            raise ValueError(
                f"num_ctas > 1 needs clusters of CTAs, which there are from sm_90 on, not on sm_{arch}"
            )
        fp8 = ("fp8e4b15", "fp8e4nv", "fp8e5") if arch >= 89 else ("fp8e4b15", "fp8e5")
        given.setdefault("supported_fp8_dtypes", fp8)
        if arch >= 90:
            given.setdefault("deprecated_fp8_dot_operand_dtypes", ("fp8e4b15",))
        given.setdefault("enable_fp_fusion", language.default_fp_fusion)
        given.setdefault("max_num_imprecise_acc_default", 2**30 if arch == 90 else 0)
        return CUDAOptions(**given)

    def pack_metadata(self, metadata) -> tuple[int, int, int]:
        """What a launch needs of a kernel's metadata."""
        return metadata.num_warps, metadata.num_ctas, metadata.shared

    @staticmethod
    def kernel_options(options: dict) -> tuple[dict, dict]:
        """Options apart by who knows them: those of our launches, and others."""
        ours = {*_tilewright.option_defaults(), "ir_override"}
        return (
            {name: value for name, value in options.items() if name in ours},
            {name: value for name, value in options.items() if name not in ours},
        )
