"""What is called around each compilation when somebody asked for it: hooks of :mod:`tilewright.knobs`, dumps."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from .. import knobs

__all__ = ["Compilation", "JitFunctionInfo"]

STAGES = ("ttir", "ttgir", "llir", "ptx", "cubin")
"""What a file may give, in the order in which they are made."""


def key_of(signature, divisors, constants: dict, options: dict) -> str:
    """What tells one kernel of a function from the others: the key that hooks get, and that of ``device_caches``."""
    return f"{list(zip(signature, divisors))}{constants}{options}"


@dataclass
class JitFunctionInfo:
    """The function that is compiled."""

    module: str
    name: str
    jit_function: Any


class Options(SimpleNamespace):
    """The options of a launch, and beside them where it is, which a function that hands them on need not know."""

    __slots__ = ("_place",)

    def __init__(self, options, place):
        super().__init__(**options)
        self._place = place


class Compilation:
    """One compilation. Launches make one only while :func:`tilewright.knobs.compiles_are_hooked`."""

    def __init__(self, fn, signature, constants, divisors, options, place, warmup):
        self.fn = fn
        self.options = options
        self.warmup = warmup
        self.place = place
        self.device = place.device
        self.signature = dict(zip(fn.arg_names, signature))
        self.constants = constants
        self.attrs = {(at,): [["tt.divisibility", n]] for at, n in enumerate(divisors) if n > 1}
        self.name = f"{fn.__module__}.{fn.__qualname__}"
        self.key = key_of(signature, divisors, constants, options)

    def _call(self, hook):
        types = ", ".join(f"{name}: {ty}" for name, ty in self.signature.items())
        shown = ("num_warps", "num_ctas", "num_stages", "enable_fp_fusion", "launch_cooperative_grid")
        said = ", ".join(f"{name}={self.options[name]}" for name in shown)
        compile_info = {
            "key": self.key,
            "signature": self.signature,
            "device": self.device,
            "constants": self.constants,
            **{name: self.options[name] for name in shown},
            "extern_libs": tuple(
                tuple(entry.split("=", 1))
                for entry in (self.options["extern_libs"] or "").split(";")
                if entry
            ),
            "configs": [self.attrs],
            "specialization_data": self.specialization_data(),
            "is_warmup": self.warmup,
        }
        return hook(
            key=self.key,
            repr=f"{self.fn.__qualname__}[{said}]({types})",
            fn=JitFunctionInfo(self.fn.__module__, self.fn.__qualname__, self.fn),
            compile=compile_info,
            is_manual_warmup=self.warmup,
            already_compiled=False,
        )

    def specialization_data(self) -> str:
        """The compilation as JSON, from which :meth:`JITFunction.preload` repeats it in another process."""
        from ..runtime import jit

        # By the module, where programs put one of their own.
        return jit.serialize_specialization_data(
            self.name, self.signature, self.constants, self.attrs, self.options, self.key
        )

    def by_function(self):
        """Has a program's function in the place of ``JITFunction._do_compile`` compile."""
        from ..runtime import jit

        with jit.compiling(self.fn, self.place):
            return self.fn._do_compile(
                self.key,
                self.signature,
                self.device,
                self.constants,
                Options(self.options, self.place),
                self.attrs,
                self.warmup,
            )

    def skipped(self) -> bool:
        """Asks ``jit_cache_hook`` whether the kernel shall not be compiled."""
        hook = knobs.runtime.jit_cache_hook
        return bool(hook is not None and self._call(hook))

    def override(self) -> str | None:
        """With ``TRITON_KERNEL_OVERRIDE`` the file that takes the place of a stage: of those in the folder of overrides, under the name
        that a dump has, that of the last stage."""
        if not knobs.compilation.override:
            return None
        from ..runtime.cache import get_override_manager
        from .compiler import ASTSource

        source = ASTSource(self.fn, self.signature, self.constants, self.attrs)
        name = self.fn.__name__
        if self.fn._repr is not None:
            constants = {self.fn.arg_names[p[0]]: value for p, value in self.constants.items() if len(p) == 1}
            name = self.fn._name_of(self.signature, constants)
        manager = get_override_manager(source.hash())
        files = (manager.get_file(f"{name[:150]}.{stage}") for stage in reversed(STAGES))
        found = next(filter(None, files), None)
        if found is not None:
            print(f"tilewright: {found} takes the place of what is compiled")
        return found

    def done(self, kernel) -> None:
        """Tells of the kernel."""
        if knobs.nvidia.dump_nvptx and (ptx := kernel.asm.get("ptx")):
            print(ptx)
        if knobs.compilation.dump_ir:
            self._dump(kernel)
        if (listener := knobs.compilation.listener) is not None:
            listener(
                src=kernel.src,
                metadata={"hash": kernel.hash, **kernel.metadata._asdict()},
                metadata_group=kernel.metadata_group,
                times=_times(kernel.times),
                # The front end runs in any case: what it makes is in the key.
                cache_hit="ttgir" in kernel.asm and "ttgir" not in kernel.times,
            )
        if (hook := knobs.runtime.jit_post_compile_hook) is not None:
            self._call(hook)

    @staticmethod
    def _dump(kernel) -> None:
        from ..runtime.cache import get_dump_manager

        manager, name = get_dump_manager(kernel.src.hash()), kernel.name[:150]
        for stage, text in kernel.asm.items():
            manager.put(text, f"{name}.{stage}")


def _times(seconds: dict[str, float]) -> knobs.CompileTimes:
    stages = [(stage, round(1e6 * time)) for stage, time in seconds.items()]
    of = dict(stages)
    lowering = [(stage, time) for stage, time in stages if stage not in ("ttir", "store")]
    return knobs.CompileTimes(of.get("ttir", 0), lowering, of.get("store", 0))
