"""Pipes between partitions, made from a seed: capacities, fields, readers, roles, what fills a slot and what is done with it, against NumPy. Every other one has its
partitions in a loop, and its pipe before the loop or in it."""

import linecache
import random
import textwrap

import numpy as np
import pytest

TYPES = {"x": "tl.float32", "y": "tl.int32"}

#: How the writer fills a field of a slot, and what that makes of a row of chunk `k`.
FILLS = {
    "load": ("{slot}.store(tl.load({f}_ptr + k * N + at))", lambda row, k: row),
    "compute": ("{slot}.store(tl.load({f}_ptr + k * N + at) * 2 + k)", lambda row, k: row * 2 + k),
    "masked": (
        "{slot}.store(tl.load({f}_ptr + k * N + at, mask=at < N - 3, other=1))",
        lambda row, k: np.concatenate([row[:-3], np.ones(3, row.dtype)]),
    ),
    "pointers": ("tle.gpu.copy({f}_ptr + k * N + at, {slot}, [N])", lambda row, k: row),
    "descriptor": ("tle.gpu.copy({f}_desc, {slot}, [N], [k * N])", lambda row, k: row),
}

#: What a reader makes of a field.
READS = {
    "sum": ("tl.sum({slot}.load()) + at * 0", lambda row: row.sum() + 0 * row),
    "max": ("tl.max({slot}.load()) + at * 0", lambda row: row.max() + 0 * row),
    "reversed": ("tl.load(tle.gpu.local_ptr({slot}, (N - 1 - at,)))", lambda row: row[::-1]),
    "cumsum": ("tl.cumsum({slot}.load(), 0)", lambda row: row.cumsum()),
}


class Program:
    """A writer, and readers in one or two partitions, which all count in a buffer as well."""

    def __init__(self, seed):
        rng = random.Random(seed)
        self.size, self.warps = rng.choice([8, 16, 32, 48, 64, 96]), rng.choice([1, 4, 8])
        self.capacity = rng.randint(1, 4)
        self.chunks = rng.choice([0, 1, self.capacity, self.capacity + 1, 2 * self.capacity + 1])
        self.fills = {f: rng.choice(list(FILLS)) for f in ("x", "y")[: rng.randint(1, 2)]}
        self.reads = [{f: rng.choice(list(READS)) for f in self.fills} for _ in range(rng.randint(1, 3))]
        if len(self.reads) > 1 and rng.random() < 0.5:
            self.reads[0].pop("y", None)
        cut = rng.randrange(1, len(self.reads)) if len(self.reads) > 1 and rng.random() < 0.5 else 0
        numbers = list(range(len(self.reads)))
        self.partitions = [part for part in (numbers[:cut], numbers[cut:]) if part]
        self.closes, self.rng = rng.random() < 0.5, rng
        self.turns, self.anew = [(None, False), (3, False), (None, False), (2, True)][seed % 4]

    @property
    def rows(self):
        return self.chunks * (self.turns or 1)

    def writer(self):
        yield "@triton.jit\ndef write(w, x_ptr, y_ptr, x_desc, y_desc, counts, start, first, n, N: tl.constexpr):"
        yield "    at = tl.arange(0, N)\n    for i in range(n):\n        k, slot = first + i, w.acquire(start + i)"
        for f, how in self.fills.items():
            yield f"        {FILLS[how][0].format(slot=f'slot.{f}', f=f)}"
        yield "        w.commit(start + i)\n        tl.atomic_add(tle.gpu.local_ptr(counts, (at,)), 1)"
        if self.closes:
            yield "    w.close(start + n)"

    def readers(self, number, part):
        ends = ", ".join(f"r{i}" for i in part)
        yield f"@triton.jit\ndef read{number}({ends}, out_ptr, counts, start, first, n, rows, N: tl.constexpr):"
        yield "    at = tl.arange(0, N)\n    i, is_open = 0, n > 0\n    if CLOSES:\n        is_open = True"
        yield "    while is_open:"
        for i in part:
            yield f"        s{i} = r{i}.wait(start + i)"
        yield f"        if CLOSES:\n            is_open = s{part[0]}.is_closed == 0\n        if is_open:"
        for i in part:
            for f, what in self.reads[i].items():
                place = f"({2 * i + (f == 'y')} * rows + first + i) * N + at"
                yield f"            tl.store(out_ptr + {place}, ({READS[what][0].format(slot=f's{i}.slot.{f}')}).to(tl.float32))"
        yield f"            tl.atomic_add(tle.gpu.local_ptr(counts, (at,)), {10 + number})"
        for i in self.rng.sample(part, len(part)):
            yield f"        r{i}.release(start + i)"
        yield "        i += 1\n        if not CLOSES:\n            is_open = i < n"

    def kernel(self):
        yield "@triton.jit\ndef kernel(x_ptr, y_ptr, out_ptr, counts_ptr, n, turns, N: tl.constexpr):"
        yield "    rows = n * turns"
        for f in TYPES:
            yield f"    {f}_desc = tl.make_tensor_descriptor({f}_ptr, [rows * N], [1], [N])"
        yield "    counts = tle.gpu.alloc([N], dtype=tl.int32, init_value=tl.zeros([N], tl.int32))"
        fields = ", ".join(f"{f}=tle.gpu.alloc([{self.capacity}, N], dtype={TYPES[f]})" for f in self.fills)
        names = tuple(f"reader{i}" for i in range(len(self.reads)))
        pipe = f"pipe = tle.pipe(capacity={self.capacity}, readers={names}, {fields})"
        ends = "writer = pipe.writer()\n" + "\n".join(
            f"reader{i} = pipe.reader('reader{i}', fields={tuple(reads)})"
            for i, reads in enumerate(self.reads)
        )
        roles = ["(write, (writer, x_ptr, y_ptr, x_desc, y_desc, counts, start, first, n, N))"]
        for number, part in enumerate(self.partitions):
            read = ", ".join(f"reader{i}" for i in part)
            roles.append(f"(read{number}, ({read}, out_ptr, counts, start, first, n, rows, N))")
        self.rng.shuffle(roles)
        warps = [self.rng.choice([1, 2, 4]) for _ in roles[1:]]
        made = textwrap.indent(f"{pipe}\n{ends}", "    ")
        specialize = f"    tle.gpu.warp_specialize([{', '.join(roles)}], {warps}, {[40] * len(warps)})"
        if self.turns is None:
            yield f"{made}\n    start, first = 0, 0\n{specialize}"
        else:
            yield "" if self.anew else made
            yield "    start, first = 0, 0\n    for _ in range(turns):"
            yield textwrap.indent(f"{made}\n{specialize}" if self.anew else specialize, "    ")
            yield f"        first += n\n        start += {0 if self.anew else f'n + {int(self.closes)}'}"
        yield "    tl.store(counts_ptr + tl.arange(0, N), counts.load())"

    def source(self):
        parts = [self.writer(), *(self.readers(*part) for part in enumerate(self.partitions)), self.kernel()]
        head = "import tilewright as triton\nimport tilewright.language as tl\nfrom tilewright import tle\n\n"
        head += f"CLOSES = tl.constexpr({self.closes})\n\n\n"
        return head + "\n\n\n".join("\n".join(part) for part in parts) + "\n"

    def want(self, given):
        out = np.zeros((len(self.reads), 2, self.rows, self.size), np.float32)
        for i, reads in enumerate(self.reads):
            for f, what in reads.items():
                for k in range(self.rows):
                    row = FILLS[self.fills[f]][1](given[f][k], k)
                    out[i, int(f == "y"), k] = READS[what][1](row)
        return out


@pytest.mark.parametrize("seed", range(60))
def test_pipes(device, seed):
    program = Program(seed)
    text, name = program.source(), f"<pipes {seed}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    names = {"__name__": name}
    exec(compile(text, name, "exec"), names)
    rng = np.random.default_rng(seed)
    n, rows, size = program.chunks, program.rows, program.size
    given = {f: rng.integers(-8, 9, (max(1, rows), size)).astype(d) for f, d in (("x", "f4"), ("y", "i4"))}
    out = device.array(np.zeros((len(program.reads), 2, max(1, rows), size), np.float32))
    counts = device.array(np.zeros(size, np.int32))
    arrays = [device.array(array) for array in given.values()]
    names["kernel"][(1,)](*arrays, out, counts, n, program.turns or 1, size, num_warps=program.warps)
    if n:
        np.testing.assert_array_equal(device.numpy(out), program.want(given))
    each = 1 + sum(10 + number for number in range(len(program.partitions)))
    np.testing.assert_array_equal(device.numpy(counts), rows * each)
