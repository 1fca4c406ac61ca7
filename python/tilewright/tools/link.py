"""Joins what :mod:`tilewright.tools.compile` made of one kernel: a C function that chooses a specialization by its arguments.

``python -m tilewright.tools.link *.h -o kernel`` writes ``kernel.h`` and ``kernel.c``.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["HeaderParser", "KernelLinkerMeta", "LinkerError", "link", "main"]


class LinkerError(Exception):
    """Headers that do not belong together."""


@dataclass
class KernelLinkerMeta:
    """A specialization: what its header says."""

    orig_kernel_name: str
    function: str
    arg_names: list[str]
    arg_ctypes: list[str]
    #: What each argument is known to be: 16 for a multiple of it, 1, or nothing.
    sizes: list[int | None]

    @property
    def num_specs(self) -> int:
        """How much is known."""
        return sum(size is not None for size in self.sizes)

    @property
    def parameters(self) -> str:
        """The C parameters of a function that takes every argument."""
        return "".join(f", {ty} {name}" for ty, name in zip(self.arg_ctypes, self.arg_names))


@dataclass
class HeaderParser:
    """Reads headers, and sorts what they declare by algorithm: by constants and options."""

    kernels: dict[str, list[KernelLinkerMeta]] = field(default_factory=dict)

    def extract_linker_meta(self, header: str) -> None:
        """Reads the text of a header."""
        for function, signature, algorithm in re.findall(r"//\s*tt-linker:\s*(\w+):(.*):(.+)", header):
            match = re.fullmatch(r"(\w+)_([0-9a-f]{8})_((?:\d+[cdk]?)*)", function)
            if not match:
                raise LinkerError(f"{function} is not named as a specialization is")
            name, _, suffix = match.groups()
            pairs = [part.split() for part in signature.split(",") if part.strip()]
            known = [{"c": 1, "d": 16}.get(mark) for mark in _marks(suffix) if mark != "k"]
            if len(known) != len(pairs):
                raise LinkerError(f"{function} says {len(known)} arguments, and its signature {len(pairs)}")
            meta = KernelLinkerMeta(name, function, [p[1] for p in pairs], [p[0] for p in pairs], known)
            self._add(f"{name}_{re.sub(r'[^A-Za-z0-9_]', '_', algorithm.strip())}", meta)

    def _add(self, algorithm: str, meta: KernelLinkerMeta) -> None:
        there = self.kernels.setdefault(algorithm, [])
        for other in (metas[0] for metas in self.kernels.values() if metas):
            if (other.arg_ctypes, other.orig_kernel_name) != (meta.arg_ctypes, meta.orig_kernel_name):
                raise LinkerError(
                    f"{meta.function} and {other.function} are of different kernels or take different arguments"
                )
        there.append(meta)


def _marks(suffix: str) -> list[str]:
    """What a name says of each parameter, which are numbered from 0: ``0d12k`` is ``d``, nothing, ``k``."""
    found: list[str] = []
    while suffix:
        number = str(len(found))
        if not suffix.startswith(number):
            raise LinkerError(f"{suffix} does not go on with parameter {number}")
        suffix = suffix[len(number) :]
        found.append(suffix[0] if suffix[:1] in ("c", "d", "k") else "")
        suffix = suffix[len(found[-1]) :]
    return found


def _condition(meta: KernelLinkerMeta) -> str:
    tests = [
        f"((uintptr_t){name} % 16 == 0)" if size == 16 else f"({name} == 1)"
        for name, size in zip(meta.arg_names, meta.sizes)
        if size is not None
    ]
    return " && ".join(tests) or "1"


def _dispatcher(algorithm: str, metas: list[KernelLinkerMeta]) -> str:
    lines = [f"static CUresult {algorithm}(CUstream stream{metas[0].parameters}) {{"]
    for meta in sorted(metas, key=lambda meta: -meta.num_specs):
        given = "".join(f", {n}" for n, size in zip(meta.arg_names, meta.sizes) if size != 1)
        lines.append(f"  if ({_condition(meta)})\n    return {meta.function}(stream{given});")
    return "\n".join([*lines, "  return CUDA_ERROR_INVALID_VALUE;", "}"])


def link(headers: list[Path], out: Path) -> list[Path]:
    """Writes the header and the source that join these headers; gives the two files."""
    parser = HeaderParser()
    for header in headers:
        parser.extract_linker_meta(header.read_text())
    if not parser.kernels:
        raise LinkerError("no header declares a specialization")
    metas = [meta for of_algorithm in parser.kernels.values() for meta in of_algorithm]
    name, parameters, count = metas[0].orig_kernel_name, metas[0].parameters, len(parser.kernels)
    arguments = "".join(f", {n}" for n in metas[0].arg_names)
    include = "#include <cuda.h>\n#include <stdint.h>\n"
    interface = [
        f"CUresult {name}_default(CUstream stream{parameters})",
        f"CUresult {name}(CUstream stream{parameters}, int algo_id)",
        f"int {name}_get_num_algos(void)",
        f"void load_{name}(void)",
        f"void unload_{name}(void)",
    ]
    header = out.with_suffix(".h")
    guard = f"{name.upper()}_LINKED_H"
    declared = "".join(f"{line};\n" for line in interface)
    header.write_text(f"#ifndef {guard}\n#define {guard}\n{include}\n{declared}#endif\n")
    cases = "".join(
        f"  case {at}:\n    return {algorithm}(stream{arguments});\n"
        for at, algorithm in enumerate(parser.kernels)
    )
    calls = {mode: "".join(f"  {mode}_{meta.function}();\n" for meta in metas) for mode in ("load", "unload")}
    bodies = [
        f"  return {name}(stream{arguments}, 0);\n",
        f"  switch (algo_id) {{\n{cases}  default:\n    return CUDA_ERROR_INVALID_VALUE;\n  }}\n",
        f"  return {count};\n",
        calls["load"],
        calls["unload"],
    ]
    source = out.with_suffix(".c")
    own = "".join(f'#include "{h.name}"\n' for h in headers)
    dispatchers = "\n\n".join(_dispatcher(*item) for item in parser.kernels.items())
    defined = "\n".join(f"{line} {{\n{body}}}\n" for line, body in zip(interface, bodies))
    source.write_text(f"{include}{own}\n{dispatchers}\n\n{declared}\n{defined}")
    return [header, source]


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        description="Joins specializations of a kernel that tilewright.tools.compile made."
    )
    parser.add_argument("headers", nargs="+", type=Path, help="their headers")
    parser.add_argument("--out", "-o", type=Path, required=True, help="the files' path without extension")
    args = parser.parse_args()
    link(args.headers, args.out)


if __name__ == "__main__":
    main()
