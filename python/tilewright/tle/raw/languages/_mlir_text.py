"""Functions of MLIR text as the Python functions that build the same operations: a line for each line, so that errors name the text's lines.

``%v = arith.addf %a, %b : f32`` becomes ``v_v = arith.addf(v_a, v_b)``, ``scf.if %c {`` becomes ``if v_c:``. Each value is a variable of its own: a name that
two regions have is two values, of any types. What yields give are variables that
both branches, or each iteration, assign. What ``scf.while`` does before its condition stands in front of the loop and, once more, on the line that ends it::

    %r = scf.while (%a = %x) : (i32) -> i32 {        v_a = v_x
      %c = arith.cmpi slt, %a, %n : i32              v_c = arith.cmpi("slt", v_a, v_n)
      scf.condition(%c) %a : i32                     v_r, go_1 = v_a, v_c
    } do {                                           while go_1:
    ^bb0(%b: i32):                                       v_b = v_r
      %d = arith.addi %b, %b : i32                       v_d = arith.addi(v_b, v_b)
      scf.yield %d : i32                                 v_a = v_d
    }                                                    v_c = arith.cmpi("slt", v_a, v_n); v_r, go_1 = v_a, v_c
"""

import dataclasses
import re
from math import prod

_VALUE = re.compile(r"%([\w$.-]+(?:#\d+)?)")
# A name, and how many results go by it: `%r:2` are `%r#0` and `%r#1`.
_RESULT = re.compile(r"%([\w$.-]+)(?::(\d+))?")
_RESULTS = re.compile(r"\s*((?:%[\w$.:-]+\s*,?\s*)+)=\s*(.*)")
# A comment, or a string, in which there is none.
_COMMENT = re.compile(r'("(?:[^"\\\n]|\\.)*")|//[^\n]*')
# Floats, and how many bits they have.
_FLOATS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}
_TYPES = {"index": "ir.IndexType.get()", **{t: f"ir.{t.upper()}Type.get()" for t in _FLOATS}}


class Unreadable(ValueError):
    """What of the text is not read, with its line."""


def python_of(text, name):
    """The source of a Python function with as many lines as the text, and with its body on the same ones.

    :raises Unreadable: the text has no such function, or what is not read.
    """
    lines = _COMMENT.sub(lambda found: found[1] or "", text).splitlines()
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
    body = _Body()
    params = [body.define(p) for p in _VALUE.findall(head[1])]
    out.append(f"def {name}({', '.join(params)}):")
    for number, line in enumerate(lines[start + 1 :], start + 1):
        body.number, body.text = number, line
        out.append(body.line(line))
        for empty in body.empty:
            out[empty] += " pass"
        body.empty = []
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
        yield from (f"{name}#{i}" for i in range(int(count))) if count else [name]


def _last(types):
    """The last of several types."""
    return re.split(r",\s*(?![^<]*>)", types)[-1]


def _assigned(targets, values):
    return f"{', '.join(targets)} = {', '.join(values)}" if values else "pass"


@dataclasses.dataclass
class _Region:
    """A region that is open: what its yield assigns, and what its end does."""

    targets: tuple = ()
    after: str = ""
    # The line that opened it, until something stands in it.
    opened: int | None = None
    # Of the first region of a `while`: its statements, what its condition gives, and the name of that.
    before: list | None = None
    given: tuple = ()
    goes_on: str = ""
    # The variables of its values.
    names: dict = dataclasses.field(default_factory=dict)


class _Body:
    """The regions that are open, the innermost last."""

    def __init__(self):
        self.open = [_Region()]
        self.loops = 0
        self.used = set()
        # The line that is read, and those that opened regions in which nothing stands.
        self.number, self.text = 0, ""
        self.empty = []

    # ---- values ---------------------------------------------------------------------------------------------------

    def define(self, value, region=None):
        """The variable of a value that the innermost region, or another one, has from here on."""
        name = plain = _name(value)
        count = 1
        while name in self.used:
            count += 1
            name = f"{plain}__{count}"
        self.used.add(name)
        (region or self.open[-1]).names[value] = name
        return name

    def _use(self, value):
        for region in reversed(self.open):
            if value in region.names:
                return region.names[value]
        raise self._unread(f"there is no %{value} here")

    def _values(self, text):
        return [self._use(v) for v in _VALUE.findall(text)]

    def _unread(self, why="not supported yet"):
        return _unread(self.number, self.text, why)

    # ---- lines ----------------------------------------------------------------------------------------------------

    def _indent(self):
        # What is in front of a loop stands where the loop does.
        return "    " * sum(region.before is None for region in self.open)

    def line(self, line):
        text = line.strip()
        region, indent = self.open[-1], self._indent()
        if not text:
            return ""
        if text == "}":
            return self._end(region, indent)
        if text == "} else {":
            if region.opened is not None:
                self.empty.append(region.opened)
            region.opened, region.names = None, {}
            return f"{indent[4:]}else:"
        if text == "} do {":
            return self._do()
        if found := re.fullmatch(r"\^[\w$.-]+\((.*)\):", text):
            values = _VALUE.findall(found[1])
            if len(values) != len(region.given):
                raise self._unread()
            return f"{indent}{_assigned([self.define(v) for v in values], region.given)}"
        region.opened = None
        results, operation = [], text
        if found := _RESULTS.fullmatch(text):
            results, operation = list(_results(found[1])), found[2]
        statement = self._operation(results, operation)
        if region.before is not None:
            if self.open[-1] is not region:
                raise self._unread("not supported yet: a region in front of the condition of scf.while")
            region.before.append(statement)
        return indent + statement

    def _end(self, region, indent):
        if region.before is not None:
            raise self._unread("the first region of scf.while ends in `} do {`")
        self.open.pop()
        if not self.open:
            return "    pass"
        # A region may be empty.
        at = indent if region.goes_on else indent[4:]
        if region.after and region.opened is not None:
            self.empty.append(region.opened)
        return f"{at}{region.after}" if region.after else f"{indent}pass"

    def _operation(self, results, text):
        opcode = re.match(r"[\w.]+", text)
        if opcode is None:
            raise self._unread()
        opcode, rest = opcode[0], text[opcode.end() :].strip()
        # Types stand behind a colon that is in no bracket, attributes in braces before it. (An index in brackets may say its type.)
        operands, _, types = re.sub(r"(\[\s*%[\w$.#-]+)\s*:\s*\w+\s*\]", r"\1]", rest).partition(" : ")
        if opcode in ("return", "func.return"):
            if len(self.open) > 1:
                raise self._unread("`return` ends a function, not a region")
            return f"return {', '.join(self._values(operands))}".rstrip()
        if opcode == "scf.if":
            if not rest.endswith("{"):
                raise self._unread()
            condition = self._use(_VALUE.findall(rest)[0])
            targets = tuple(self.define(result) for result in results)
            self.open.append(_Region(targets, opened=self.number))
            return f"if {condition}:"
        if opcode == "scf.for":
            return self._loop(results, rest)
        if opcode == "scf.while":
            return self._while(results, rest)
        if opcode == "scf.condition":
            return self._condition(operands)
        if opcode == "scf.yield":
            return _assigned(self.open[-1].targets, self._values(operands))
        call = self._call(opcode, operands, types)
        return f"{', '.join([self.define(result) for result in results])} = {call}" if results else call

    def _loop(self, results, rest):
        found = re.match(
            r"%([\w$.-]+)\s*=\s*%([\w$.#-]+) to %([\w$.#-]+) step %([\w$.#-]+)(?:\s*iter_args\((.*?)\)\s*->\s*\(.*?\))?"
            r"(?:\s*:\s*\w+)?\s*\{$",
            rest,
        )
        if found is None:
            raise self._unread()
        start, stop, step = map(self._use, found.groups()[1:4])
        carried = re.findall(r"%([\w$.-]+)\s*=\s*%([\w$.#-]+)", found[5] or "")
        values = [self._use(value) for _, value in carried]
        region = _Region(opened=self.number)
        variable = self.define(found[1], region)
        region.targets = tuple(self.define(inner, region) for inner, _ in carried)
        # What is carried begins before the loop, on its line.
        begins = "".join(f", ({target} := {value})" for target, value in zip(region.targets, values))
        start = f"({start}{begins})[0]" if begins else start
        given = [self.define(result) for result in results]
        region.after = _assigned(given, region.targets) if given else ""
        self.open.append(region)
        return f"for {variable} in range({start}, {stop}, {step}):"

    def _while(self, results, rest):
        found = re.fullmatch(r"(?:\((.*?)\)\s*)?:\s*\(.*?\)\s*->\s*(.*?)\s*\{", rest)
        if found is None:
            raise self._unread()
        carried = re.findall(r"%([\w$.-]+)\s*=\s*%([\w$.#-]+)", found[1] or "")
        values = [self._use(value) for _, value in carried]
        self.loops += 1
        count = 0 if found[2] == "()" else len(found[2].strip("()").split(","))
        given = tuple(self.define(result) for result in results)
        given = given or tuple(f"given_{self.loops}_{i}" for i in range(count))
        region = _Region(before=[], given=given, goes_on=f"go_{self.loops}")
        region.targets = tuple(self.define(inner, region) for inner, _ in carried)
        self.open.append(region)
        return _assigned(region.targets, values)

    def _condition(self, operands):
        region = self.open[-1]
        found = re.fullmatch(r"\(%([\w$.#-]+)\)(.*)", operands)
        if region.before is None or found is None:
            raise self._unread()
        values = self._values(found[2])
        if len(values) != len(region.given):
            raise self._unread()
        return _assigned([*region.given, region.goes_on], [*values, self._use(found[1])])

    def _do(self):
        region = self.open.pop()
        if not region.before or region.goes_on not in region.before[-1]:
            raise self._unread("the first region of scf.while ends in scf.condition")
        indent = self._indent()
        again = "; ".join(region.before)
        body = _Region(region.targets, again, given=region.given, goes_on=region.goes_on, names=region.names)
        self.open.append(body)
        return f"{indent}while {region.goes_on}:"

    def _call(self, opcode, operands, types):
        dialect, _, operation = opcode.partition(".")
        if opcode.startswith("nvvm.read.ptx.sreg."):
            return f"nvvm.{operation.replace('.', '_')}()"
        if opcode in ("gpu.thread_id", "gpu.block_id", "gpu.block_dim", "gpu.grid_dim"):
            return f"{opcode}({'xyz'.index(operands)})"
        if opcode in ("gpu.barrier", "nvvm.barrier0"):
            return f"{opcode}()"
        if opcode == "arith.constant":
            return self._constant(operands, types or "i1")
        if dialect == "vector":
            return self._vector(operation, operands, types)
        if opcode in ("arith.cmpi", "arith.cmpf"):
            predicate, _, operands = operands.partition(",")
            return f'{opcode}("{predicate.strip()}", {", ".join(self._values(operands))})'
        if dialect == "arith" and " to " in types:
            # Vectors are converted element by element.
            _, element = self._elements(types.split(" to ")[1])
            return f"{opcode}({self._type(element)}, {self._values(operands)[0]})"
        if opcode in ("memref.load", "tensor.extract"):
            memory, *indices = self._values(operands)
            return f"{opcode}({memory}, [{', '.join(indices)}])"
        if opcode in ("memref.store", "tensor.insert"):
            value, memory, *indices = self._values(operands)
            return f"{opcode}({value}, {memory}, [{', '.join(indices)}])"
        if opcode in ("llvm.load", "llvm.store", "llvm.getelementptr"):
            return self._pointer(operation, operands, types)
        if opcode == "cf.assert":
            condition, _, message = operands.partition(",")
            return f"cf.assert_({self._values(condition)[0]}, {message.strip()})"
        if dialect in ("arith", "math", "memref", "tensor", "llvm") and re.fullmatch(r"\w+", operation):
            return f"{opcode}({', '.join(self._values(operands))})"
        raise self._unread()

    def _pointer(self, operation, operands, types):
        """A pointer says nothing of what it points to: the operation's types do."""
        values = self._values(operands)
        if operation == "store":
            return f"llvm.store({', '.join(values)}, {self._type(types.split(',')[0])})"
        element = self._type(_last(types.partition("->")[2]))
        if operation == "load":
            return f"llvm.load({values[0]}, {element})"
        found = re.fullmatch(r"(?:inbounds\s+)?%[\w$.#-]+\s*\[\s*(%[\w$.#-]+|-?\d+)\s*\]", operands.strip())
        if found is None:
            raise self._unread()
        return f"llvm.getelementptr({values[0]}, {values[-1] if '%' in found[1] else found[1]}, {element})"

    def _constant(self, value, of):
        shape, element = self._elements(of)

        def constant(value):
            value = {"true": "1", "false": "0"}.get(value.strip(), value.strip())
            # Bits are how MLIR writes infinities and NaN. (A zero of the language has no sign.)
            negative_zero = re.fullmatch(r"-0*\.0*(?:[eE][+-]?\d+)?", value)
            if element in _FLOATS and (value.startswith("0x") or negative_zero):
                bits = 1 << _FLOATS[element] - 1 if negative_zero else value
                word = f"arith.constant(ir.IntegerType.get_signless({_FLOATS[element]}), {bits})"
                return f"arith.bitcast({self._type(element)}, {word})"
            return f"arith.constant({self._type(element)}, {value})"

        if shape is None:
            return constant(value)
        found = re.fullmatch(r"dense<(.*)>", value)
        if found is None:
            raise self._unread()
        # Lists in lists are elements in row-major order.
        values = [v for v in re.split(r"[\[\],\s]+", found[1]) if v]
        if len(values) == 1:
            return f"vector.splat({self._type(of)}, {constant(values[0])})"
        if len(values) != prod(map(int, shape)):
            raise self._unread(f"{len(values)} elements for {of}")
        return f"vector.from_elements({self._type(of)}, [{', '.join(map(constant, values))}])"

    def _vector(self, operation, operands, types):
        def vector(text):
            return self._type(text)

        values = self._values(operands)
        if operation == "load":
            memory, *indices = values
            return f"vector.load({vector(_last(types))}, {memory}, [{', '.join(indices)}])"
        if operation == "store":
            value, memory, *indices = values
            return f"vector.store({value}, {memory}, [{', '.join(indices)}])"
        if operation == "splat":
            return f"vector.splat({vector(types)}, {values[0]})"
        if operation == "broadcast":
            return f"vector.broadcast({vector(types.split(' to ')[1])}, {values[0]})"
        if operation in ("extract", "insert"):
            place = re.search(r"\[((?:\s*(?:%[\w$.#-]+|\d+)\s*,?)+)\]$", operands.strip())
            if place is None:
                raise self._unread()
            places = [p.strip() for p in place[1].split(",")]
            at = ", ".join(self._use(p[1:]) if p.startswith("%") else p for p in places)
            return (
                f"vector.{operation}({', '.join(values[: 1 if operation == 'extract' else 2])}, [{at}], [])"
            )
        if operation == "from_elements":
            return f"vector.from_elements({vector(types)}, [{', '.join(values)}])"
        if operation == "shape_cast":
            return f"vector.shape_cast({vector(types.split(' to ')[1])}, {values[0]})"
        if operation == "transpose" and (found := re.search(r"\[([\d\s,]+)\]$", operands.strip())):
            return f"vector.transpose({values[0]}, [{found[1]}])"
        if operation == "multi_reduction" and (
            found := re.match(r"<(\w+)>,\s*%.*\[([\d\s,]+)\]$", operands.strip())
        ):
            return f'vector.multi_reduction(None, "{found[1]}", {", ".join(values)}, [{found[2]}])'
        if operation in ("extractelement", "insertelement", "fma"):
            return f"vector.{operation}({', '.join(values)})"
        if operation == "reduction" and (found := re.match(r"<(\w+)>", operands)):
            return f'vector.reduction(None, "{found[1]}", {", ".join(values)})'
        raise self._unread()

    @staticmethod
    def _elements(text):
        """The extents of a type, if it is one of vectors, and its elements."""
        found = re.fullmatch(r"vector<((?:\d+x)+)(\w+)>", text.strip())
        return (found[1].split("x")[:-1], found[2]) if found else (None, text)

    def _type(self, text):
        text = text.strip()
        shape, element = self._elements(text)
        if shape is not None:
            return f"ir.VectorType.get([{', '.join(shape)}], {self._type(element)})"
        if text in _TYPES:
            return _TYPES[text]
        if found := re.fullmatch(r"i(\d+)", text):
            return f"ir.IntegerType.get_signless({found[1]})"
        raise self._unread(f"not supported yet: the type `{text}`")
