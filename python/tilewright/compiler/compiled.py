"""What a compiled kernel has under Triton's names. Each value is made when it is first asked for, and kept with the kernel."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from .._tilewright import CompiledKernel
from ..backends.compiler import GPUTarget

__all__ = ["KernelMetadata", "attribute"]


class KernelMetadata:
    """What the compiler noted of a kernel, as attributes: its options, ``name``, ``shared``, ``target``, …"""

    def __init__(self, values: dict[str, Any]):
        target = GPUTarget.parse(values["target"])
        # A launcher of another's knows nothing of tensor maps that a launch makes, or of the number of programs: it sees that the kernel wants more than its
        # arguments.
        own = [param for param in values.get("tensor_maps", ()) if param["made"]]
        scratch = {
            "global_scratch_size": values.get("global_scratch", 0)
            + 128 * len(own)
            + 4 * values.get("resident_programs", False),
            "global_scratch_align": 128,
        }
        self.__dict__.update(
            values,
            # As Triton has it: the warps that a launch starts, those of partitions too. `kernel.num_warps` is the option.
            num_warps=values["total_num_warps"],
            target=target,
            arch=f"sm{target.arch}",
            backend_name=target.backend,
            warp_size=target.warp_size,
            cluster_dims=tuple(values["cluster_dims"]),
            launch_cooperative_grid=values["launch_cooperative_grid"] or values["cooperative"],
            profile_scratch_size=0,
            profile_scratch_align=1,
            tmem_size=0,
            **scratch,
        )

    def _asdict(self) -> dict[str, Any]:
        return dict(vars(self))

    @property
    def _fields(self) -> tuple[str, ...]:
        return tuple(vars(self))

    def __eq__(self, other) -> bool:
        return isinstance(other, KernelMetadata) and vars(self) == vars(other)

    def __repr__(self) -> str:
        return f"KernelMetadata({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"


def attribute(kernel: CompiledKernel, name: str) -> Any:
    """An attribute of a kernel that the class itself has not."""
    if name in _LASTING and name in kernel._kept:
        return kernel._kept[name]
    make = _MADE.get(name)
    if make is None:
        raise AttributeError(f"a compiled kernel has no attribute {name!r}", name=name, obj=kernel)
    value = make(kernel)
    if name in _LASTING:
        kernel._kept[name] = value
    return value


def _source(kernel):
    from .compiler import ASTSource

    fn = kernel._kept["fn"]()
    if fn is None:
        raise AttributeError(
            "the function that this kernel was compiled from is gone", name="src", obj=kernel
        )
    if types := kernel._kept.get("types"):
        return ASTSource(fn, *types)
    attrs = {(at,): [["tt.divisibility", n]] for at, n in enumerate(kernel._divisors) if n > 1}
    return ASTSource(fn, dict(zip(fn.arg_names, kernel._signature)), kernel._kept["constants"], attrs)


def _binary(kernel):
    asm = kernel.asm
    return asm.get("cubin") or asm.get("ptx") or asm["ttir"]


def _hash(kernel) -> str:
    digest = hashlib.sha256(json.dumps(kernel.metadata._asdict(), sort_keys=True, default=vars).encode())
    for stage in kernel.asm.values():
        digest.update(stage if isinstance(stage, bytes) else stage.encode())
    return digest.hexdigest()


def _metadata_group(kernel) -> dict[str, str]:
    """The stages and the metadata as files of a folder of the cache."""
    from ..runtime.cache import get_cache_manager

    manager, name = get_cache_manager(kernel.hash), kernel.name[:150]
    group = {f"{name}.{stage}": manager.put(text, f"{name}.{stage}") for stage, text in kernel.asm.items()}
    text = json.dumps({"hash": kernel.hash, **kernel.metadata._asdict()}, default=vars)
    group[f"{name}.json"] = manager.put(text, f"{name}.json", binary=False)
    manager.put_group(f"{name}.json", group)
    return group


def _run(kernel):
    """A function that launches as Triton's launchers do."""

    def run(
        grid_0,
        grid_1,
        grid_2,
        stream,
        function,
        packed_metadata,
        launch_metadata,
        enter_hook,
        exit_hook,
        *args,
    ):
        # Hooks and their metadata are our launch's affair.
        kernel[(grid_0, grid_1, grid_2)](*args, stream=stream)

    kernel._init_handles()
    return run


def _launch_metadata(kernel):
    """A function that makes what hooks get."""

    def launch_metadata(grid, stream, *args):
        from .. import knobs

        if not knobs.runtime.launch_enter_hook.calls:
            return None
        names = kernel.src.fn.arg_names
        more = kernel.src.fn.launch_metadata
        return knobs.LaunchMetadata(kernel.name, stream, more, grid, kernel.metadata, dict(zip(names, args)))

    return launch_metadata


_MADE = {
    "src": _source,
    "hash": _hash,
    "kernel": _binary,
    "metadata_group": _metadata_group,
    "packed_metadata": lambda kernel: (kernel.metadata.num_warps, kernel.num_ctas, kernel.shared),
    "num_ctas": lambda kernel: kernel.metadata.num_ctas,
    "cluster_dims": lambda kernel: kernel.metadata.cluster_dims,
    "num_stages": lambda kernel: kernel.metadata.num_stages,
    # The code itself once it is on a GPU: the kernel owns it.
    "module": lambda kernel: None if kernel.function is None else kernel,
    "run": _run,
    "launch_metadata": _launch_metadata,
}
# Not what changes, nor what refers to the kernel: it would hold itself.
_LASTING = frozenset({"hash", "metadata_group"})
