"""Functions of MLIR text as the Python functions that build the same operations: a line for each line, so that errors name the text's lines.

``%v = arith.addf %a, %b : f32`` becomes ``v_v = arith.addf(v_a, v_b)``, ``scf.if %c {`` becomes ``if v_c:``. What yields give are variables that
both branches, or each iteration, assign.
"""

import re

_VALUE = re.compile(r"%([\w$.-]+(?:#\d+)?)")
# A name, and how many results go by it: `%r:2` are `%r#0` and `%r#1`.
_RESULT = re.compile(r"%([\w$.-]+)(?::(\d+))?")
_RESULTS = re.compile(r"\s*((?:%[\w$.:-]+\s*,?\s*)+)=\s*(.*)")
_TYPES = {
    "index": "ir.IndexType.get()",
    **{f"{t}": f"ir.{t.upper()}Type.get()" for t in ("f16", "bf16", "f32", "f64")},
}


class Unreadable(ValueError):
    """What of the text is not read, with its line."""


def python_of(text, name):
    """The source of a Python function with as many lines as the text, and with its body on the same ones.

    :raises Unreadable: the text has no such function, or what is not read.
    """
    lines = re.sub(r"//[^\n]*", "", text).splitlines()
    start = next(
        (i for i, line in enumerate(lines) if re.search(rf"func\.func\b.*@{re.escape(name)}\s*\(", line)),
        None,
    )
    if start is None:
        there = ", ".join(re.findall(r"func\.func\b[^@]*@([\w$.-]+)", text)) or "none"
        raise Unreadable(f"it has no function @{name}; there are: {there}")
    out = [""] * start
    head = re.search(
        r"@[\w$.-]+\s*\((.*?)\)\s*(?:->[^{]*)?(?:attributes\s*\{[^}]*\}\s*)?\{\s*$", lines[start]
    )
    if head is None:
        raise _unread(start, lines[start], "the head of a function stands on one line, which ends in `{`")
    params = [_name(p) for p in _VALUE.findall(head[1])]
    out.append(f"def {name}({', '.join(params)}):")
    body = _Body(start)
    for number, line in enumerate(lines[start + 1 :], start + 1):
        out.append(body.line(number, line))
        if not body.open:
            return "\n".join(out) + "\n"
    raise Unreadable(f"the function @{name} is never closed")


def _unread(number, line, why="not supported yet"):
    return Unreadable(f"line {number + 1}: {why}: {line.strip()}")


def _name(value):
    # Other characters by their codes: `%a.1` is not `%a_1`.
    return "v_" + re.sub(r"\W", lambda found: f"_{ord(found[0]):x}_", value)


def _results(text):
    for name, count in _RESULT.findall(text):
        yield from (_name(f"{name}#{i}") for i in range(int(count))) if count else [_name(name)]


def _values(text):
    return [_name(v) for v in _VALUE.findall(text)]


class _Body:
    """The regions that are open, the innermost last: what their yields assign, and what their end does."""

    def __init__(self, start):
        self.open = [((), "")]

    def line(self, number, line):
        text = line.strip()
        indent = "    " * len(self.open)
        if not text:
            return ""
        if text == "}":
            _, after = self.open.pop()
            if not self.open:
                return "    pass"
            # A region may be empty.
            return f"{indent[4:]}{after}" if after else f"{indent}pass"
        if text == "} else {":
            return f"{indent[4:]}else:"
        results, operation = (), text
        if found := _RESULTS.fullmatch(text):
            results, operation = tuple(_results(found[1])), found[2]
        return indent + self._operation(number, line, results, operation)

    def _operation(self, number, line, results, text):
        opcode = re.match(r"[\w.]+", text)
        if opcode is None:
            raise _unread(number, line)
        opcode, rest = opcode[0], text[opcode.end() :].strip()
        # Types stand behind the last colon that is in no bracket, attributes in braces before it.
        operands, _, types = rest.partition(" : ")
        if opcode in ("return", "func.return"):
            if _VALUE.search(rest):
                raise _unread(number, line, "not supported yet: a value that is returned")
            return "return" if len(self.open) == 1 else "pass"
        if opcode == "scf.if":
            if not rest.endswith("{"):
                raise _unread(number, line)
            self.open.append((results, ""))
            return f"if {_values(rest)[0]}:"
        if opcode == "scf.for":
            return self._loop(number, line, results, rest)
        if opcode == "scf.yield":
            targets, values = self.open[-1][0], _values(operands)
            return f"{', '.join(targets)} = {', '.join(values)}" if values else "pass"
        call = self._call(number, line, opcode, operands, types)
        return f"{', '.join(results)} = {call}" if results else call

    def _loop(self, number, line, results, rest):
        found = re.match(
            r"%([\w$.-]+)\s*=\s*%([\w$.-]+) to %([\w$.-]+) step %([\w$.-]+)(?:\s*iter_args\((.*?)\)\s*->\s*\(.*?\))?"
            r"(?:\s*:\s*\w+)?\s*\{$",
            rest,
        )
        if found is None:
            raise _unread(number, line)
        variable, start, stop, step = map(_name, found.groups()[:4])
        carried = re.findall(r"%([\w$.-]+)\s*=\s*%([\w$.-]+)", found[5] or "")
        targets = tuple(_name(inner) for inner, _ in carried)
        # What is carried begins before the loop, on its line.
        begins = "".join(f", ({target} := {_name(value)})" for target, (_, value) in zip(targets, carried))
        start = f"({start}{begins})[0]" if begins else start
        after = f"{', '.join(results)} = {', '.join(targets)}" if results else ""
        self.open.append((targets, after))
        return f"for {variable} in range({start}, {stop}, {step}):"

    def _call(self, number, line, opcode, operands, types):
        dialect, _, operation = opcode.partition(".")
        if opcode.startswith("nvvm.read.ptx.sreg."):
            return f"nvvm.{operation.replace('.', '_')}()"
        if opcode in ("gpu.thread_id", "gpu.block_id", "gpu.block_dim", "gpu.grid_dim"):
            return f"{opcode}({'xyz'.index(operands)})"
        if opcode in ("gpu.barrier", "nvvm.barrier0"):
            return f"{opcode}()"
        if opcode == "arith.constant":
            value = {"true": "1", "false": "0"}.get(operands, operands)
            return f"arith.constant({self._type(number, line, types or 'i1')}, {value})"
        if opcode in ("arith.cmpi", "arith.cmpf"):
            predicate, _, operands = operands.partition(",")
            return f'{opcode}("{predicate.strip()}", {", ".join(_values(operands))})'
        if dialect == "arith" and " to " in types:
            return f"{opcode}({self._type(number, line, types.split(' to ')[1])}, {_values(operands)[0]})"
        if opcode in ("memref.load", "tensor.extract"):
            memory, *indices = _values(operands)
            return f"{opcode}({memory}, [{', '.join(indices)}])"
        if opcode in ("memref.store", "tensor.insert"):
            value, memory, *indices = _values(operands)
            return f"{opcode}({value}, {memory}, [{', '.join(indices)}])"
        if opcode == "cf.assert":
            condition, _, message = operands.partition(",")
            return f"cf.assert_({_values(condition)[0]}, {message.strip()})"
        if dialect in ("arith", "math", "memref", "tensor", "llvm") and re.fullmatch(r"\w+", operation):
            return f"{opcode}({', '.join(_values(operands))})"
        raise _unread(number, line)

    def _type(self, number, line, text):
        text = text.strip()
        if text in _TYPES:
            return _TYPES[text]
        if found := re.fullmatch(r"i(\d+)", text):
            return f"ir.IntegerType.get_signless({found[1]})"
        raise _unread(number, line, f"not supported yet: the type `{text}`")
