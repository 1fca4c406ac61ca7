"""What is read of PTX before the compiler reads it: which functions a module has, and how many parameters."""

import re

_DECLARED = re.compile(r"\.extern\s+\.func\s*(?:\([^)]*\)\s*)?([\w$]+)\s*\([^)]*\)\s*;")
_VARIABLE = re.compile(
    r"(?m)^(?:\.(?:visible|weak)\s+)*\.(?:global|const|shared)\s[^;={]*?([A-Za-z_$][\w$]*)\s*(?:\[[\d]*\]\s*)*[=;]"
)
_FUNCTION = re.compile(r"\.func\s*(?:\([^)]*\)\s*)?([A-Za-z_$%][\w$]*)\s*(?:\(([^)]*)\))?([^{;]*)([{;])")


def joined(text, others):
    """A module with the functions and variables of others, in place of what it only declares of them.

    :raises ValueError: two define the same.
    """
    for other in others:
        text = _beside(text, other)
    return text


def _beside(text, other):
    number = max((int(n) for n in re.findall(r"^\s*\.file\s+(\d+)", text, re.MULTILINE)), default=0)
    other = re.sub(r"(?m)^\s*\.(version|target|address_size)\b.*$", "", other)
    other = re.sub(
        r"(?m)^(\s*\.(?:loc|file)\s+)(\d+)", lambda found: f"{found[1]}{int(found[2]) + number}", other
    )
    defined = _defined(other)
    if both := defined & _defined(text):
        raise ValueError(f"a library defines {', '.join(sorted(both))}, which is defined already")
    text = _DECLARED.sub(lambda found: "" if found[1] in defined else found[0], text)
    return f"{text}\n{other}"


def _defined(text):
    """The functions and variables that a module defines."""
    functions = {found[1] for found in _FUNCTION.finditer(text) if found[4] == "{"}
    return functions | {found[1] for found in _VARIABLE.finditer(text)}


def with_lines(text, file, inside):
    """The text with positions (``.loc``) of its own lines, where it has none: in front of each statement of a function, or where ``inside`` of all."""
    if re.search(r"^\s*\.loc\b", text, re.MULTILINE) or '"' in file:
        return text
    out, depth, begins = [f'.file 1 "{file}"'], int(inside), inside
    for number, line in enumerate(text.splitlines(), 1):
        bare = re.sub(r"//.*|/\*.*?\*/", "", line).strip()
        if bare and begins and depth and bare[0] not in "{}.":
            out.append(f".loc 1 {number} 0")
        out.append(line)
        depth += bare.count("{") - bare.count("}")
        if bare:
            begins = bare[-1] in ";:" or bare in "{}"
    return "\n".join(out) + "\n"


def function_of(text, name):
    """The symbol of a function by its name, which C++ may have mangled, and how many parameters it has.

    :raises ValueError: there is none, or several.
    """
    bodies = {
        found[1]: len([p for p in (found[2] or "").split(",") if p.strip()])
        for found in _FUNCTION.finditer(re.sub(r"//[^\n]*", "", text))
        if found[4] == "{"
    }
    if name in bodies:
        return name, bodies[name]
    base = re.split(r"[<(]", name)[0].split("::")[-1].strip()
    mangled = [symbol for symbol in bodies if re.match(rf"_Z(N.*?)?{len(base)}{re.escape(base)}", symbol)]
    if len(mangled) == 1:
        return mangled[0], bodies[mangled[0]]
    if mangled:
        raise ValueError(
            f"several functions are `{name}`: {', '.join(mangled)}; give one of these as extern_func_name"
        )
    there = ", ".join(bodies) or "none"
    raise ValueError(f"there is no function `{name}`; there are: {there}")
