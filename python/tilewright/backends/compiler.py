"""Targets, and what a backend is to programs that look at one."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from dataclasses import dataclass
from enum import Enum

__all__ = ["BaseBackend", "GPUTarget", "Language"]


@dataclass(frozen=True)
class GPUTarget:
    """What code is compiled for."""

    backend: str
    arch: int | str
    warp_size: int

    @property
    def name(self) -> str:
        """As ``warmup(target=…)`` and the command spell it, such as ``cuda:90``."""
        return f"{self.backend}:{self.arch}" if self.arch else self.backend

    @staticmethod
    def parse(name: str) -> GPUTarget:
        """The target of such a name."""
        backend, _, arch = name.partition(":")
        lanes = {"cuda": 32, "xe": 16}.get(backend, 1)
        return GPUTarget(backend, arch if arch and not arch.isdigit() else int(arch or 0), lanes)


class Language(Enum):
    """The language of a source."""

    TRITON = 0
    GLUON = 1


class BaseBackend(metaclass=ABCMeta):
    """A backend as programs see it: which targets, which options, a hash. The compiler itself is not taken apart here."""

    supports_native_tensor_specialization = True
    binary_ext = ""

    def __init__(self, target: GPUTarget):
        if not self.supports_target(target):
            raise ValueError(f"{type(self).__name__} does not compile for {target}")
        self.target = target

    @staticmethod
    @abstractmethod
    def supports_target(target: GPUTarget) -> bool:
        """Whether it compiles for this."""

    @abstractmethod
    def hash(self) -> str:
        """Changes when the code that it makes may change."""

    @abstractmethod
    def parse_options(self, options: dict) -> object:
        """The options of a kernel as an object."""

    def add_stages(self, stages: dict, options: object, language: Language = Language.TRITON) -> None:
        """Triton's stages as functions of Python; ours are not in Python."""
        raise NotImplementedError(
            "not supported yet: stages of the compiler as functions of Python (add_stages)"
        )

    def load_dialects(self, context) -> None:  # noqa: B027
        """Nothing is to be loaded: every dialect is there."""

    def get_codegen_implementation(self, options: object) -> dict:
        """Triton's functions of Python that make IR: there are none here."""
        return {}

    def get_module_map(self) -> dict:
        """Which modules of ``triton.language.extra`` stand for others."""
        from ..language.extra import libdevice

        return {"triton.language.extra.libdevice": libdevice}

    @staticmethod
    def parse_attr(desc: str) -> list:
        """What a specialization of an argument (``D``, or nothing) says of it."""
        return [["tt.divisibility", 16]] if "D" in desc else []

    @staticmethod
    def get_int_specialization(arg, **kwargs) -> str:
        """``D`` for multiples of 16, where they are looked for."""
        return "D" if kwargs.get("align", False) and arg % 16 == 0 else ""

    @staticmethod
    def get_tensor_specialization(arg, **kwargs) -> str:
        """``D`` for an address that is a multiple of 16, where that is looked for."""
        return "D" if kwargs.get("align", False) and arg.data_ptr() % 16 == 0 else ""
