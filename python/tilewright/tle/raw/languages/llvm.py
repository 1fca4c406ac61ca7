"""LLVM IR as text (that of LLVM 19): it is linked with the kernel and inlined."""

import re

from .._function import Code

NAME, SUFFIX = "llvm", "ll"
OPTIONS = {}
IN_REGISTERS = False


def check(options):
    """Everything goes with everything."""


def compile(function, target):
    """The text with its lines."""
    text, file = function.text()
    name = function.options["extern_func_name"] or function.name
    found = re.search(rf"^define\b[^@]*@\"?{re.escape(name)}\"?\s*\(", text, re.MULTILINE)
    if found is None:
        there = ", ".join(re.findall(r"^define\b[^@]*@\"?([\w.$]+)", text, re.MULTILINE)) or "none"
        raise ValueError(f"{file} defines no function `@{name}`; there are: {there}")
    return Code("llvm", name, _with_lines(text, file), _count(text, found.end()))


# Numbers of metadata that no text has.
_FIRST = 900000000


def _with_lines(text, file):
    """The text with its lines as debug locations, where it has none."""
    if "!dbg" in text or '"' in file or "\\" in file:
        return text
    unit, source, kind = _FIRST, _FIRST + 1, _FIRST + 2
    nodes = [
        f"!{unit} = distinct !DICompileUnit(language: DW_LANG_C99, file: !{source}, emissionKind: DebugDirectivesOnly)",
        f'!{source} = !DIFile(filename: "{file}", directory: "")',
        f"!{kind} = !DISubroutineType(types: !{{}})",
        f'!{kind + 1} = !{{i32 2, !"Debug Info Version", i32 3}}',
    ]
    free, scope, depth, out = kind + 2, None, 0, []
    for number, line in enumerate(text.splitlines(), 1):
        bare, comment = _bare(line), ""
        comment = line[len(bare) :]
        if scope is None and re.match(r"define\b.*\{\s*$", bare):
            scope, free = free, free + 1
            name = re.search(r"@\"?([\w$.]+)", bare)
            nodes.append(
                f'!{scope} = distinct !DISubprogram(name: "{name[1] if name else ""}", scope: !{source}, file: !{source}, line: {number}, '
                f"type: !{kind}, scopeLine: {number}, spFlags: DISPFlagDefinition, unit: !{unit})"
            )
            bare = f"{bare.rstrip()[:-1]}!dbg !{scope} {{"
        elif scope is not None and depth == 0 and bare.strip() == "}":
            scope = None
        elif scope is not None:
            depth += sum((c in "[(") - (c in "])") for c in bare)
            if depth == 0 and bare.strip() and not re.match(r"\s*[\w$.\"-]+:\s*$", bare):
                nodes.append(f"!{free} = !DILocation(line: {number}, column: 1, scope: !{scope})")
                bare, free = f"{bare.rstrip()}, !dbg !{free}", free + 1
        out.append(f"{bare}{comment}")
    named = [f"!llvm.dbg.cu = !{{!{unit}}}", f"!llvm.module.flags = !{{!{kind + 1}}}"]
    return "\n".join([*out, *named, *nodes]) + "\n"


def _bare(line):
    """A line up to its comment."""
    inside = False
    for i, char in enumerate(line):
        inside ^= char == '"'
        if char == ";" and not inside:
            return line[:i]
    return line


def _count(text, at):
    """How many parameters a list has that begins here."""
    depth, commas, inside = 0, 0, ""
    for char in text[at:]:
        if char == ")" and depth == 0:
            break
        depth += (char in "(<{[") - (char in ")>}]")
        commas += char == "," and depth == 0
        inside += char
    return commas + 1 if inside.strip() else 0
