"""Removes what a failing kernel can do without: options, lines, and whole computations, for which a load stands in."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import replace

from .program import Argument, Node, Program


def prune(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """Without the variables that nothing uses. A name is set in one place."""
    while True:
        named = Counter(re.findall(r"\w+", "\n".join(line for node in nodes for line in node.lines())))
        kept = _without(nodes, lambda node: node.gives and named[node.gives.name] == 1)
        if kept == nodes:
            return nodes
        nodes = kept


def _without(nodes, unwanted) -> tuple[Node, ...]:
    kept = (node for node in nodes if not unwanted(node))
    return tuple(n if n.body is None else replace(n, body=_without(n.body, unwanted)) for n in kept)


def places(nodes: tuple[Node, ...], path=()):
    """The paths of all nodes, the last ones first, those below a node after it."""
    for n in reversed(range(len(nodes))):
        yield (*path, n)
        if nodes[n].body is not None:
            yield from places(nodes[n].body, (*path, n))


def at(nodes, path) -> Node | None:
    """The node at a path, if there is one."""
    node = None
    for n in path:
        if nodes is None or n >= len(nodes):
            return None
        node = nodes[n]
        nodes = node.body
    return node


def put(nodes, path, new: tuple[Node, ...]) -> tuple[Node, ...]:
    """With other nodes at a path."""
    n = path[0]
    if len(path) > 1:
        new = (replace(nodes[n], body=put(nodes[n].body, path[1:], new)),)
    return (*nodes[:n], *new, *nodes[n + 1 :])


def loaded(program: Program, path) -> Program | None:
    """With a load instead of a computation."""
    node = at(program.nodes, path)
    if not node.gives or re.fullmatch(r"\w+ = tl\.load\(r\w+( \+ .*)?\)", node.text):
        return None
    name, shape, kind = node.gives.name, node.gives.shape, node.gives.kind
    argument = Argument(f"r{name}", kind, (max(math.prod(shape), 1),), 0 if node.gives.positive else -1, 1)
    terms, stride = [], 1
    for d in reversed(range(len(shape))):
        index = ", ".join(":" if d == e else "None" for e in range(len(shape)))
        terms.append(f"tl.arange(0, {shape[d]})[{index}]" + (f" * {stride}" if stride > 1 else ""))
        stride *= shape[d]
    load = Node(f"{name} = tl.load({' + '.join([argument.name, *reversed(terms)])})", gives=node.gives)
    nodes = prune(put(program.nodes, path, (load,)))
    return replace(program, nodes=nodes, arguments=(*program.arguments, argument))


def shrink(program: Program, answer, run):
    """A smaller program that fails in the same way, and how it fails. ``run(program)`` is ``None`` or a failure."""
    best = program, answer

    def fails(candidate: Program | None) -> bool:
        nonlocal best
        if candidate is None or candidate == best[0]:
            return False
        found = run(candidate)
        if found is None or found[0] != answer[0]:
            return False
        best = candidate, found
        return True

    if run(program) is None:
        return program, (answer[0], answer[1] + "\nnot seen again when it ran alone")
    fails(replace(program, nodes=prune(program.nodes)))
    for _ in range(3):
        before = best[0]
        fails(replace(best[0], grid=1))
        for option, value in [
            ("num_ctas", 1),
            ("num_stages", 1),
            ("num_stages", 2),
            ("num_warps", 1),
            ("num_warps", 4),
        ]:
            if best[0].options[option] > value:
                fails(replace(best[0], options=best[0].options | {option: value}))
        # A path that is there no more belonged to what was removed.
        for change in (removed, loaded, unwrapped):
            for path in list(places(best[0].nodes)):
                if at(best[0].nodes, path) is not None:
                    fails(change(best[0], path))
        if best[0] == before:
            break
    return best


def removed(program: Program, path) -> Program:
    """Without a node."""
    return replace(program, nodes=prune(put(program.nodes, path, ())))


def unwrapped(program: Program, path) -> Program | None:
    """With what stands below a node instead of it; a loop's variable is 0."""
    node = at(program.nodes, path)
    if node.body is None:
        return None
    variable = re.match(r"for (\w+) in", node.text)
    first = (Node(f"{variable[1]} = 0"),) if variable else ()
    return replace(program, nodes=prune(put(program.nodes, path, first + node.body)))
