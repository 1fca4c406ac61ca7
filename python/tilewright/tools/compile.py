"""Ahead of time: ``python -m tilewright.tools.compile`` makes C source of a kernel, with its cubin in it and functions that launch it.

``tilewright compile`` makes the stages themselves, without running the kernel's file.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright.backends.compiler import GPUTarget
from tilewright.backends.nvidia.driver import ty_to_cpp

__all__ = ["CompileArgs", "compile_kernel", "main"]


@dataclass
class CompileArgs:
    """What is to be compiled; :func:`main` says what each means."""

    path: str = ""
    kernel_name: str = ""
    signature: str = ""
    grid: str = ""
    target: str | None = None
    num_warps: int = 1
    num_stages: int = 3
    out_name: str | None = None
    out_path: Path | None = None


_HEADER = """#ifndef {guard}
#define {guard}
#include <cuda.h>
#include <inttypes.h>
#include <stdint.h>

/* {doc} */
void load_{name}(void);
void unload_{name}(void);
// tt-linker: {name}:{full_signature}:{algorithm}
CUresult {name}(CUstream stream{parameters});
#endif
"""

_SOURCE = """/* {doc} */
#include <cuda.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static const unsigned char {name}_cubin[] = {{{cubin}}};
static CUmodule {name}_module = NULL;
static CUfunction {name}_function = NULL;

static void {name}_check(CUresult code) {{
  const char *text = NULL;
  if (code == CUDA_SUCCESS)
    return;
  cuGetErrorString(code, &text);
  fprintf(stderr, "{name}: %s\\n", text ? text : "unknown CUDA error");
  exit((int)code);
}}

void load_{name}(void) {{
  int device = 0, most = 0;
  if ({name}_function)
    return;
  {name}_check(cuCtxGetDevice(&device));
  {name}_check(cuModuleLoadData(&{name}_module, {name}_cubin));
  {name}_check(cuModuleGetFunction(&{name}_function, {name}_module, "{entry}"));
  {name}_check(cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device));
  if ({shared} > most)
    {name}_check(CUDA_ERROR_INVALID_VALUE);
  if ({shared} > 0)
    {name}_check(cuFuncSetAttribute({name}_function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, {shared}));
}}

void unload_{name}(void) {{
  if ({name}_module)
    {name}_check(cuModuleUnload({name}_module));
  {name}_module = NULL;
  {name}_function = NULL;
}}

CUresult {name}(CUstream stream{parameters}) {{
{compiled_in}  unsigned gX = {grid[0]}, gY = {grid[1]}, gZ = {grid[2]};
  void *arguments[{count} + 1] = {{{addresses}}};
  load_{name}();
  if (gX * gY * gZ == 0)
    return CUDA_SUCCESS;
  return cuLaunchKernel({name}_function, gX, gY, gZ, {threads}, 1, 1, {shared}, stream, arguments, NULL);
}}
"""


def _number(text: str) -> int | float | None:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return None


def _kernel(path: str, name: str) -> Any:
    file = Path(path)
    sys.path.insert(0, str(file.parent))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = getattr(module, name)
    while not hasattr(found, "params"):
        found = found.fn
    return found


def compile_kernel(args: CompileArgs) -> tuple[str, list[Path]]:
    """Compiles, and writes a header and a source; gives the C function's name and the files."""
    from tilewright.compiler import ASTSource, compile

    kernel = _kernel(args.path, args.kernel_name)
    parts = [part.strip() for part in args.signature.split(",")]
    names = kernel.arg_names
    if len(parts) != len(names):
        raise ValueError(
            f"the signature has {len(parts)} items, and {args.kernel_name} the parameters {names}"
        )
    types, constants, hints = {}, {}, {}
    for at, (name, part) in enumerate(zip(names, parts)):
        ty, _, hint = part.partition(":")
        if (value := _number(ty)) is not None:
            types[name], constants[name] = "constexpr", value
            continue
        if hint and _number(hint) not in (1, 16):
            raise ValueError(f"{part}: a type may be followed by :16 or by :1")
        hints[at] = int(hint or 0)
        types[name] = "constexpr" if hints[at] == 1 else ty
        if hints[at] == 1:
            constants[name] = 1
    grid = [part.strip() for part in args.grid.split(",")]
    if len(grid) != 3:
        raise ValueError(f"the grid {args.grid!r} does not have three extents")
    attrs = {(at,): [["tt.divisibility", 16]] for at, hint in hints.items() if hint == 16}
    target = None
    if args.target:
        backend, arch, warp = args.target.split(":")
        target = GPUTarget(backend, int(arch), int(warp))
    options = {"num_warps": args.num_warps, "num_stages": args.num_stages}
    made = compile(ASTSource(kernel, types, constants, attrs), target=target, options=options)
    launch = made.metadata
    reaches_others = launch.ranks is not None or launch.cluster_dims != (1, 1, 1)
    if launch.global_scratch_size or launch.tensor_maps or reaches_others:
        raise NotImplementedError(
            f"not supported yet: {args.kernel_name} ahead of time as C: it needs memory of its own, tensor maps, clusters or other devices"
        )
    if "cubin" not in made.asm:
        raise RuntimeError("there is no cubin: ptxas is missing, or TILEWRIGHT_CUBIN=0 says to make none")
    how = f"warps{args.num_warps}xstages{args.num_stages}"
    digest = hashlib.sha256(" ".join([*parts, how]).encode()).hexdigest()[:8]
    # For each parameter what is known of it: 1, a multiple of 16, a constant that is no argument in C.
    marks = {1: "c", 16: "d", 0: "", None: "k"}
    suffix = "".join(f"{at}{marks[hints.get(at)]}" for at in range(len(names)))
    name = f"{args.out_name or args.kernel_name}_{digest}_{suffix}"
    at_run_time = [n for n in names if types[n] != "constexpr"]
    written = {n: part.partition(":")[0] for n, part in zip(names, parts)}
    in_full = [
        n for n in names if types[n] != "constexpr" or (n in constants and _number(written[n]) is None)
    ]
    said = [f"{n}={value}" for n, value in constants.items()] + [f"{k}={v}" for k, v in options.items()]
    values = {
        "name": name,
        "guard": f"{name.upper()}_H",
        "entry": made.name,
        "compiled_in": "".join(
            f"  const int64_t {n} = 1;\n  (void){n};\n" for n in in_full if n in constants
        ),
        "doc": f"{args.kernel_name}: {', '.join(said)}",
        "cubin": ", ".join(map(str, made.asm["cubin"])),
        "shared": made.shared,
        "threads": 32 * made.metadata.total_num_warps,
        "parameters": "".join(f", {_c_type(types[n])} {n}" for n in at_run_time),
        "full_signature": ", ".join(f"{_c_type(written[n])} {n}" for n in in_full),
        "addresses": ", ".join([*(f"&{n}" for n in at_run_time), "NULL"]),
        "count": len(at_run_time),
        "algorithm": "_".join(["x".join(map(str, constants.values())), how]),
        "grid": grid,
    }
    base = args.out_path or Path(args.out_name or args.kernel_name)
    files = []
    for extension, template in (("h", _HEADER), ("c", _SOURCE)):
        files.append(base.with_suffix(f".{digest}_{suffix}.{extension}"))
        files[-1].write_text(template.format(**values))
    return name, files


def _c_type(ty: str) -> str:
    # What a kernel takes, not what Triton's Python launchers do: a float is a float.
    return {"fp32": "float", "f32": "float", "fp64": "double", "fp16": "uint16_t", "bf16": "uint16_t"}.get(
        ty
    ) or ty_to_cpp(ty)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        description="Compiles a kernel to C source with its cubin and functions that load and launch it. The kernel's file is run. "
        "`python -m tilewright.tools.link` joins several specializations."
    )
    parser.add_argument("path", help="the Python file")
    parser.add_argument("--kernel-name", "-n", required=True, help="the kernel's name")
    parser.add_argument(
        "--signature",
        "-s",
        required=True,
        help='types and constants, such as "*fp32:16, i32:16, 1024, i32:1"',
    )
    parser.add_argument("--grid", "-g", required=True, help="three extents: C expressions of the arguments")
    parser.add_argument("--target", "-t", help="such as cuda:90:32; the machine's GPU when left out")
    parser.add_argument("--num-warps", "-w", type=int, default=1)
    parser.add_argument("--num-stages", "-ns", type=int, default=3)
    parser.add_argument("--out-name", "-on", help="the C function's name; the kernel's when left out")
    parser.add_argument("--out-path", "-o", type=Path, help="the files' path without extension")
    compile_kernel(CompileArgs(**vars(parser.parse_args())))


if __name__ == "__main__":
    main()
