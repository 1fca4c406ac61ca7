#!/usr/bin/env python3
"""Writes the type stubs of the language (``python/tilewright/language/**/*.pyi``) from its declarations.

Names, parameters and defaults come from the Python files, the only place where they stand. The types stand here, by the name of a
parameter: an annotation in those files would mean something to the compiler. A parameter without a type is an error.
With ``--check`` nothing is written, and the status says whether the stubs are current.
"""

from __future__ import annotations

import ast
import pathlib
import sys

LANGUAGE = pathlib.Path(__file__).resolve().parents[1] / "python/tilewright/language"
MODULES = (
    "core",
    "math",
    "standard",
    "random",
    "target_info",
    "extra/libdevice",
    "extra/cuda/gdc",
    "extra/cuda/utils",
)

HEADER = """# Made by scripts/stubs.py from {file}; `make stubs` makes it anew.
import builtins
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import IntEnum
from typing import Any, Literal, TypeAlias, overload

"""
ALIASES = """
_Dtype: TypeAlias = dtype
_AnyDtype: TypeAlias = dtype | constexpr
_Int: TypeAlias = int | constexpr
_Flag: TypeAlias = bool | constexpr
_Text: TypeAlias = str | constexpr
_Value: TypeAlias = tensor | constexpr | int | float
_Values: TypeAlias = _Value | Sequence[_Value] | tuple
_Shape: TypeAlias = Sequence[_Int] | tuple | constexpr
_Function: TypeAlias = Callable[..., Any]
"""
IMPORTED = "from {core} import _AnyDtype, _Flag, _Function, _Int, _Shape, _Text, _Value, _Values, constexpr, tensor\n"
# A module under the name that programs import it by.
ALIAS = "# Made by scripts/stubs.py.\nfrom ..libdevice import *\n"

# Types by the names of parameters; `function.parameter` where one differs.
TYPES = {
    "_Value": "a b x y z w arg input other src index cond condition mask val value cmp offset offsets seed c0 c1 c2 c3 k0 k1 u1 u2 acc "
    "lhs rhs lhs_scale rhs_scale div i j size_i size_j size_g min max pointer base start end",
    "_Int": "axis dim num_bins pack n_rounds k max_num_imprecise_acc arg1 arg2 step num_stages loop_unroll_factor bitwidth "
    "address_space propagate_nan major minor",
    "_Flag": "has_minx2 keep_dims return_indices return_indices_tie_break_left tie_break_left ieee_rounding can_reorder reverse descending "
    "bitcast sanitize_overflow volatile allow_tf32 fast_math lhs_k_pack rhs_k_pack flatten warp_specialize disable_licm "
    "disallow_acc_multi_buffer hex flush is_pure signed const cross_warp",
    "_Text": "cache_modifier eviction_policy padding_option sem scope msg prefix input_precision fp_downcast_rounding lhs_format "
    "rhs_format asm constraints lib_name lib_path sep name type_str tiling",
    "_AnyDtype": "dtype out_dtype element_ty dst_ty block_type",
    "_Shape": "shape block_shape dims order boundary_check",
    "_Function": "combine_fn scalar_fn fn",
    "tensor_descriptor": "desc",
    "Sequence[_Value]": "args strides",
    "Any": "file c self values types fields shape_type strides_type stop _semantic _builder arg_type_symbol_dict",
}
TYPE = {name: type for type, names in TYPES.items() for name in names.split()} | {
    "arange.start": "_Int",
    "arange.end": "_Int",
    "range.__init__.arg1": "_Value",
    "range.__init__.arg2": "_Value",
    "range.__init__.step": "_Value",
    "static_print.end": "_Text",
    "static_assert.cond": "Any",
    "static_assert.msg": "Any",
    "make_block_ptr.shape": "Sequence[_Value] | tuple",
    "make_block_ptr.offsets": "Sequence[_Value] | tuple",
    "make_tensor_descriptor.shape": "Sequence[_Value] | tuple",
    "advance.offsets": "Sequence[_Value] | tuple",
    "load_tensor_descriptor.offsets": "Sequence[_Value] | tuple",
    "store_tensor_descriptor.offsets": "Sequence[_Value] | tuple",
    "dot_scaled.lhs_scale": "_Value | None",
    "dot_scaled.rhs_scale": "_Value | None",
    "expand_dims.axis": "_Int | Sequence[_Int] | tuple",
    "inline_asm_elementwise.dtype": "_AnyDtype | Sequence[_AnyDtype] | tuple",
    **{f"{name}.dst_warps": "_Int | Sequence[_Int] | tuple" for name in ("reduce", "sum", "max", "min")},
    "multiple_of.values": "_Int | Sequence[_Int] | tuple",
    "max_contiguous.values": "_Int | Sequence[_Int] | tuple",
    "max_constancy.values": "_Int | Sequence[_Int] | tuple",
}
# Of `*parameters`, the type of each argument.
TYPE |= {
    f"{name}.{p}": "Any"
    for name, p in [("static_print", "values"), ("device_print", "args"), ("map_elementwise", "args")]
}
TYPE |= {
    f"{name}.{p}": "_Int | _Shape"
    for name, p in [("broadcast_to", "shape"), ("trans", "dims"), ("permute", "dims")]
}
TYPE |= {f"{name}.shape": "_Int | _Shape" for name in ("view", "reshape")}

PAIR = "builtins.tuple[tensor, tensor]"
FOUR = "builtins.tuple[tensor, tensor, tensor, tensor]"
# What is not a tensor.
RETURNS = (
    dict.fromkeys(
        "store store_tensor_descriptor barrier debug_barrier assume static_print static_assert device_print device_assert "
        "gdc_wait gdc_launch_dependents".split(),
        "None",
    )
    | dict.fromkeys("broadcast split swizzle2d pair_uniform_to_normal".split(), PAIR)
    | dict.fromkeys("philox philox_impl randint4x rand4x randn4x".split(), FOUR)
    | dict.fromkeys(
        "inline_asm_elementwise map_elementwise extern_elementwise extern str_to_ty".split(), "Any"
    )
    | dict.fromkeys("is_cuda cuda_capability_geq is_hip is_hip_cdna3 is_hip_cdna4".split(), "bool")
    | dict.fromkeys("num_threads num_warps".split(), "constexpr")
    | {"current_target": "Any", "alloc": "Any"}
    | {"get_int_dtype": "dtype", "make_tensor_descriptor": "tensor_descriptor"}
)
# Functions whose result follows an argument: the argument's type, the result's, in the order in which they are tried.
OVERLOADS = (
    {name: ("input", [("tensor", "tensor"), ("Sequence[tensor] | tuple", "builtins.tuple[tensor, ...]")]) for name in
     ("reduce", "associative_scan")}
    | {name: ("return_indices", [("Literal[False]", "tensor"), ("_Flag", PAIR)]) for name in ("max", "min")}
)  # fmt: skip

BINARY = "add sub mul truediv floordiv mod lshift rshift and or xor".split()
COMPARE = "lt le gt ge".split()


def operators(owner: str) -> list[str]:
    lines = []
    names = [
        n for op in BINARY + (["pow"] if owner == "constexpr" else []) for n in (f"__{op}__", f"__r{op}__")
    ]
    for name in names + [f"__{op}__" for op in COMPARE]:
        if owner == "tensor":
            lines.append(f"def {name}(self, other: _Value) -> tensor: ...")
        else:
            lines += [
                f"@overload\ndef {name}(self, other: tensor) -> tensor: ...",
                f"@overload\ndef {name}(self, other: int | float | constexpr) -> constexpr: ...",
            ]
    lines += [
        f"def {name}(self, other: Any) -> {owner}: ...  # type: ignore[override]"
        for name in ("__eq__", "__ne__")
    ]
    lines += [f"def __{op}__(self) -> {owner}: ..." for op in ("neg", "pos", "invert")]
    return lines


EXTRA = {
    "constexpr": ["value: Any", *operators("constexpr"), "def __getattr__(self, name: str) -> Any: ..."],
    "tensor": [
        "shape: builtins.tuple[constexpr, ...]",
        "dtype: _Dtype",
        "type: _Dtype",
        "numel: constexpr",
        "T: tensor",
        *operators("tensor"),
        "def __getitem__(self, index: Any) -> tensor: ...",
        # Python's own `range` takes scalars in kernels.
        "def __index__(self) -> int: ...",
    ],
    "tensor_descriptor": [
        "shape: builtins.tuple[tensor, ...]",
        "strides: builtins.tuple[tensor, ...]",
        "block_shape: builtins.tuple[constexpr, ...]",
        "block_type: block_type",
        "dtype: _Dtype",
    ],
    "dtype": [
        "name: str",
        "primitive_bitwidth: int",
        "itemsize: int",
        "int_bitwidth: int",
        "int_signedness: SIGNEDNESS",
        "fp_mantissa_width: int",
        "exponent_bias: int",
    ],
    "pointer_type": ["element_ty: dtype", "address_space: int", "const: bool"],
    "block_type": ["element_ty: dtype", "shape: list[int]", "numel: int"],
    "constexpr_type": ["value: Any"],
    "tuple_type": ["types: Any", "fields: Any", "name: str"],
    "tensor_descriptor_type": ["block_type: block_type", "shape_type: Any", "strides_type: Any"],
    "tuple": ["values: list[Any]", "def __getitem__(self, index: Any) -> Any: ...", "def __iter__(self) -> Iterator[Any]: ...",
              "def __len__(self) -> int: ..."],
    "slice": ["start: Any", "stop: Any", "step: Any"],
    "range": ["def __iter__(self) -> Iterator[tensor]: ..."],
    "static_range": ["def __iter__(self) -> Iterator[constexpr]: ..."],
    "condition": ["def __bool__(self) -> bool: ..."],
}  # fmt: skip
# What methods of classes give, where it is not a bool (`is_…`) or nothing.
METHODS = {
    "__repr__": "str", "__str__": "str", "__hash__": "int", "__bool__": "bool", "__index__": "int", "__int__": "int",
    "__float__": "float", "__call__": "Any", "__getitem__": "Any", "__iter__": "Iterator[Any]", "__len__": "int", "__eq__": "bool",
    "__reduce__": "Any", "__init__": "None", "kind": "KIND", "get_int_max_value": "int", "get_int_min_value": "int",
    "codegen_name": "str", "scalar": "dtype", "short_name": "str", "to": "Any", "get_block_shapes": "list[int]",
    "store": "None", "scatter": "None", "load": "tensor", "gather": "tensor",
} | dict.fromkeys(("atomic_add", "atomic_min", "atomic_max", "atomic_and", "atomic_or", "atomic_xor"), "None")  # fmt: skip


def marks(node) -> set[str]:
    return {
        ast.unparse(d.func if isinstance(d, ast.Call) else d).removeprefix("core.")
        for d in node.decorator_list
    }


def type_of(path: str, name: str, default) -> str:
    if path.startswith("tensor_descriptor.") and name.endswith(("offsets", "offset")):
        return (
            "tensor"
            if name == "x_offsets"
            else "_Value"
            if name == "y_offset"
            else "Sequence[_Value] | tuple"
        )
    if path.endswith(("__getitem__", "__eq__", "__call__")) or path.split(".")[0] in (
        "constexpr",
        "constexpr_type",
        "slice",
        "tuple",
    ):
        return "Any"
    found = TYPE.get(f"{path}.{name}") or TYPE.get(name)
    if found is None:
        sys.exit(f"stubs: {path}({name}) has no type: give it one in scripts/stubs.py")
    return (
        f"{found} | None"
        if isinstance(default, ast.Constant) and default.value is None and found != "Any"
        else found
    )


def function(node: ast.FunctionDef, path: str, returns: str, own: dict[str, str] = {}) -> str:  # noqa: B006
    args = node.args
    positional = [*args.posonlyargs, *args.args]
    defaults = [None] * (len(positional) - len(args.defaults)) + list(args.defaults)

    def one(arg, default) -> str:
        if arg.arg == "self":
            return "self"
        type = own.get(arg.arg) or type_of(path, arg.arg, default)
        return f"{arg.arg}: {type}" + (" = ..." if default is not None else "")

    parts = [one(a, d) for a, d in zip(positional, defaults)]
    if args.vararg:
        parts.append(
            "*" + one(args.vararg, None) if path.split(".")[0] != "dtype" else f"*{args.vararg.arg}: Any"
        )
    elif args.kwonlyargs:
        parts.append("*")
    parts += [one(a, d) for a, d in zip(args.kwonlyargs, args.kw_defaults)]
    if args.kwarg:
        parts.append(f"**{args.kwarg.arg}: Any")
    return f"def {node.name}({', '.join(parts)}) -> {returns}: ..."


def functions(node: ast.FunctionDef, method: bool = False) -> list[str]:
    """The stub of a function of the language, or of the method of a tensor that it is, too."""
    name = node.name
    first = node.args.args[0].arg if node.args.args else None
    if method:
        node = ast.parse(ast.unparse(node)).body[0]
        node.args.args[0].arg = "self"
        first = "self"
    if name not in OVERLOADS:
        return [function(node, name, RETURNS.get(name, "tensor"))]
    parameter, cases = OVERLOADS[name]
    if method and parameter != "return_indices":
        return [function(node, name, cases[0][1])]
    assert first is not None
    return ["@overload\n" + function(node, name, result, {parameter: type}) for type, result in cases]


def indented(lines: list[str]) -> str:
    return "\n".join("    " + line.replace("\n", "\n    ") for line in lines or ["..."])


def klass(node: ast.ClassDef, members: list[ast.FunctionDef]) -> str:
    lines = []
    for item in node.body:
        if isinstance(item, ast.ClassDef):
            lines.append(klass(item, []))
        elif isinstance(item, ast.Assign):
            value, target = item.value, item.targets[0].id
            if target == "__slots__":
                continue
            if isinstance(value, ast.Tuple):
                lines.append(f"{target}: builtins.tuple[str, ...]")
            elif isinstance(value, ast.Name):
                lines.append(f"{target} = {value.id}")
            else:
                lines.append(f"{target} = {ast.unparse(value)}" if node.bases else f"{target}: int")
        elif isinstance(item, ast.FunctionDef) and (
            item.name.startswith("__") or not item.name.startswith("_")
        ):
            if node.name == "constexpr" and item.name == "__eq__":
                continue
            returns = METHODS.get(item.name) or ("bool" if item.name.startswith("is_") else "None")
            decorators = "".join(f"@{ast.unparse(d)}\n" for d in item.decorator_list)
            lines.append(decorators + function(item, f"{node.name}.{item.name}", returns))
    lines = EXTRA.get(node.name, []) + lines
    if node.name == "tensor":
        lines += [line for member in members for line in functions(member, method=True)]
    bases = ", ".join(ast.unparse(b).removeprefix("_enum.") for b in node.bases)
    # As an annotation it is what a pointer is.
    bases = "tensor" if node.name == "const" else bases
    return f"class {node.name}{f'({bases})' if bases else ''}:\n" + indented(lines)


def stubs() -> dict[pathlib.Path, str]:
    """The text of each stub."""
    trees = {name: ast.parse((LANGUAGE / f"{name}.py").read_text()) for name in MODULES}
    members = [
        node
        for tree in trees.values()
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and "member" in marks(node)
    ]
    made = {}
    for name, tree in trees.items():
        parts = []
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                parts.append(klass(node, members))
            elif (
                isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and node.name != "member"
            ):
                parts += functions(node)
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                target, value = node.targets[0].id, node.value
                made_by = (
                    value.func.id
                    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name)
                    else None
                )
                if made_by in ("dtype", "pointer_type", "constexpr"):
                    parts.append(f"{target}: {made_by}")
                elif isinstance(value, ast.Constant) and not target.startswith("_"):
                    parts.append(f"{target}: int")
            elif isinstance(node, ast.ImportFrom) and (node.module or "").endswith("math"):
                # Functions of the core language that are functions of libdevice, too.
                parts += [
                    f"from {'.' * node.level}{node.module} import {n.name} as {n.name}" for n in node.names
                ]
        aliases = (
            ALIASES if name == "core" else IMPORTED.format(core="." * (name.count("/") + 1) + "core") + "\n"
        )
        body = "\n".join(parts)
        text = HEADER.format(file=f"{name.rpartition('/')[2]}.py") + (
            body + "\n" + aliases if name == "core" else aliases + body + "\n"
        )
        made[LANGUAGE / f"{name}.pyi"] = text
    made[LANGUAGE / "extra/cuda/libdevice.pyi"] = ALIAS
    return made


def main() -> int:
    """The status: 1 if something was not current with ``--check``."""
    check = "--check" in sys.argv[1:]
    stale = [path for path, text in stubs().items() if not path.exists() or path.read_text() != text]
    for path in stale:
        print(f"stubs: {path.relative_to(LANGUAGE)} is not current" + ("" if check else ", written anew"))
        if not check:
            path.write_text(stubs()[path])
    return int(check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
