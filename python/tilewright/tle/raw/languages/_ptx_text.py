"""What is read of PTX before the compiler reads it: which functions a module has, and how many parameters."""

import re

_FUNCTION = re.compile(r"\.func\s*(?:\([^)]*\)\s*)?([A-Za-z_$%][\w$]*)\s*(?:\(([^)]*)\))?([^{;]*)([{;])")


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
