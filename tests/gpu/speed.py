"""Attention, persistent products on tensor descriptors, and products of groups, against Triton on the same source, and against SDPA and cuBLAS.

``python speed.py [--record FILE] [PART …]``: the parts are the functions below (``forward``, ``persistent``, ``backward``,
``paged``, ``sparse``, ``shapes``, ``grouped``), a table each. Configurations are ours and those of Triton's tutorials (``06-fused-attention``, ``09-persistent-matmul``).
"""

import argparse
import functools
import itertools
import sys
from collections.abc import Callable
from pathlib import Path

import torch
import triton

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

import timing
from exact import exact_attention, exact_backward, exact_decode, exact_sparse
from peers import about, load, load_for_triton
from products import ON_DESCRIPTORS
from results import OURS, TRITON, Record, Result
from tolerance import close, eps

BATCH, HEADS, LENGTH = 4, 16, 4096
PERSISTENT = (8192, 4096, 2048)
# Sequences, their largest length, heads, heads of keys and values, rows of a page.
PAGED = ((64, 4096, 32, 8, 16), (8, 32768, 64, 8, 64), (128, 2048, 32, 4, 16))
# Queries and rows, heads, D of keys and of values, rows that a query looks at.
SPARSE = (4096, 128, 576, 512, 2048)

# Triton's tutorial has these with 2, 3 and 4 stages.
ATTENTION = [{"block": block, "num_warps": warps, "num_stages": stages}
             for block in itertools.product((64, 128), (32, 64, 128)) for warps in (4, 8) for stages in (2, 3, 4, 6)]  # fmt: skip


def both(record, table, case, problem, *args) -> Result:
    """One case under each compiler; what else it takes says ``choice``."""
    return timing.measure_together(record, [choice(table, case, problem, *args)])[0]


def choice(
    table, case, problem, module, run, check, configs, amount, unit, outs, library=None
) -> tuple[Result, Callable]:
    """A case, ``run(module, **config)`` under each compiler, and how its competitors are chosen; see ``timing.choose``."""
    # Imported here, not by the threads that compile.
    runs = {
        OURS: functools.partial(run, load(module)),
        TRITON: functools.partial(run, load_for_triton(module)),
    }
    result = Result(table, case, problem, unit, amount)
    return result, functools.partial(timing.choose, result, runs, configs, check, outs, library)


def operands(d: int, count: int):
    return [torch.randn(BATCH * HEADS, LENGTH, d, device="cuda", dtype=torch.float16) for _ in range(count)]


def shape_of(d: int, causal: bool) -> str:
    return f"D={d}{', causal' if causal else ''}"


def sdpa_of(q, k, v, causal: bool):
    heads = [x.view(BATCH, HEADS, LENGTH, -1) for x in (q, k, v)]
    return lambda: torch.nn.functional.scaled_dot_product_attention(*heads, is_causal=causal)


def forward_amount(d: int, causal: bool) -> float:
    return 4 * BATCH * HEADS * LENGTH**2 * d / (2 if causal else 1)


def for_mask(configs: list[dict], causal: bool) -> list[dict]:
    """The kernel on descriptors wants a causal block of queries to be a multiple of one of keys; those through pointers take any."""
    return [c for c in configs if not causal or c["block"][0] % c["block"][1] == 0]


def give_triton_memory():
    """For the descriptors that its kernels make."""
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, device="cuda", dtype=torch.int8))


def attention(
    table, name, problem, rows, causal, check, amount, library, pointers, shared=()
) -> list[tuple[Result, Callable]]:
    """Attention forward by each of its sources, so that each is held against Triton's best of all: through pointers, and on tensor descriptors with and without the
    hint for warps with roles.

    :param name: a case's name by its source.
    :param rows: q, k, v and o, heads × length × D; of keys there may be fewer heads.
    :param pointers: the configurations of the first source.
    :param shared: those with which programs on descriptors take several blocks.
    """
    q, k, v, o = rows
    found = [choice(table, name("pointers"), problem, "flash_attention", lambda m, **c: m.flash_attention(q, k, v, o, causal, **c), check,
                    pointers, amount, "TFLOP/s", [o], library)]  # fmt: skip
    for ws in (False, True):
        run = functools.partial(by_descriptors, rows, causal, ws)
        hint = ", `warp_specialize`" if ws else ""
        found.append(choice(table, name("descriptors") + hint, problem, "flash_attention_descriptors", run, check,
                            for_mask([*ATTENTION, *shared], causal), amount, "TFLOP/s", [o], library))  # fmt: skip
    return found


def by_descriptors(rows, causal: bool, ws: bool, module, **config):
    module.flash_attention_descriptors(*rows, causal, warp_specialize=ws, **config)


def forward(record):
    """Attention forward through pointers, and on tensor descriptors with and without warp specialization, a program for each block or persistent."""
    give_triton_memory()
    programs = torch.cuda.get_device_properties(0).multi_processor_count
    shared = [c | {"programs": programs} for c in ATTENTION if c["block"] in ((128, 64), (128, 128)) and c["num_stages"] in (2, 3)]  # fmt: skip
    pointers = [*ATTENTION, {"block": (256, 64), "num_warps": 16, "num_stages": 3}]
    for d, causal in ((128, False), (128, True), (64, False), (64, True)):
        q, k, v = operands(d, 3)
        o = torch.empty_like(q)
        want = exact_attention(q, k, v, causal)[0]
        timing.measure_together(record, attention(
            "attention", lambda source: f"{source}, {shape_of(d, causal)}", f"attention {shape_of(d, causal)}", (q, k, v, o), causal, lambda: close(o, want),
            forward_amount(d, causal), {"SDPA": sdpa_of(q, k, v, causal)}, pointers, shared))  # fmt: skip


def persistent(record):
    """Products on tensor descriptors, by as many programs as the GPU has multiprocessors."""
    give_triton_memory()
    programs = torch.cuda.get_device_properties(0).multi_processor_count
    # Clusters of two CTAs, each with 128 rows, besides those of Triton's tutorial.
    configs = [c | {"flatten": flatten} for c in ON_DESCRIPTORS for flatten in (False, True)]
    configs += [{"block": (256, 256, 64), "num_warps": 8, "num_stages": s, "halves": True, "flatten": True, "num_ctas": 2} for s in (3, 4)]  # fmt: skip
    for size in PERSISTENT:
        a, b = (torch.randn(size, size, device="cuda", dtype=torch.float16) for _ in range(2))
        c = torch.empty_like(a)
        want = a.float() @ b.float().T
        forms = []
        for made, ws in itertools.product((False, True), (False, True)):
            case = f"{size}³, descriptors of the {'kernel' if made else 'host'}{', `warp_specialize`' if ws else ''}"
            run = functools.partial(persistent_product, a, b, c, programs, made, ws)
            library = {"cuBLAS": lambda: torch.mm(a, b.T, out=c)}
            forms.append(choice("persistent", case, f"fp16 {size}³, B transposed", "persistent_matmul", run, lambda: close(c, want, 1e-3),
                                configs, 2 * size**3, "TFLOP/s", [c], library))  # fmt: skip
        timing.measure_together(record, forms)


def persistent_product(a, b, c, programs, made, warp_specialize, module, **config):
    module.persistent_matmul(a, b, c, programs=programs, made=made, warp_specialize=warp_specialize, **config)  # fmt: skip


def of(configs: tuple, **more) -> list[dict]:
    """Configurations as keyword arguments, from (block, warps, stages)."""
    return [{"block": b, "num_warps": w, "num_stages": s} | more for b, w, s in configs]


DKDV = (((64, 128), 8, 2), ((64, 128), 8, 3), ((32, 128), 8, 3), ((32, 128), 4, 3), ((64, 64), 4, 2), ((64, 64), 4, 3),
        ((32, 64), 4, 3), ((128, 128), 8, 1), ((32, 128), 4, 5), ((16, 128), 4, 3))  # fmt: skip
DQ = (((128, 64), 8, 2), ((128, 64), 8, 3), ((128, 32), 8, 3), ((128, 128), 8, 2), ((64, 64), 4, 2), ((64, 64), 4, 3),
      ((64, 32), 4, 3), ((128, 64), 4, 2), ((128, 32), 4, 5), ((128, 32), 4, 3))  # fmt: skip
ONE = (((64, 128), 8, 2), ((64, 128), 8, 3), ((64, 64), 4, 2), ((64, 64), 4, 3), ((128, 128), 8, 2))


class Backward:
    """Operands and exact results of attention's backward pass, and its forms as runs that take turns."""

    def __init__(self, d: int, causal: bool):
        self.causal, self.shape = causal, shape_of(d, causal)
        self.dot = forward_amount(d, causal) / 2
        self.q, self.k, self.v, self.do = operands(d, 4)
        o, self.lse = exact_attention(self.q, self.k, self.v, causal)
        self.o = o.half()
        self.want_delta = (self.o.float() * self.do).sum(-1)
        self.wanted = exact_backward(self.q, self.k, self.v, self.do, self.lse, self.want_delta, causal)
        self.delta, self.sums = torch.empty_like(self.lse), torch.empty_like(o)
        self.dq, self.dk, self.dv = (torch.empty_like(self.q) for _ in range(3))

    def error(self, *names: str) -> float:
        """The largest of these results. Probabilities and their gradients are rounded to fp16 before the products."""
        wanted = dict(zip(("dq", "dk", "dv"), self.wanted))
        return max(close(getattr(self, name), wanted[name], 4 * eps(torch.float16)) for name in names)

    def rows(self):
        return self.q, self.k, self.v, self.do, self.lse, self.delta

    def run_delta(self, m, **c):
        m.delta(self.o, self.do, self.delta, **c)

    def run_dkdv(self, m, **c):
        m.dkdv(*self.rows(), self.dk, self.dv, self.causal, **c)

    def run_dq(self, m, **c):
        m.dq(*self.rows(), self.dq, self.causal, **c)

    def two_kernels(self, m, delta, dkdv, dq):
        self.run_delta(m, **delta)
        self.run_dkdv(m, **dkdv)
        self.run_dq(m, **dq)

    def one_kernel(self, m, delta, **c):
        self.run_delta(m, sums=self.sums, **delta)
        m.all_at_once(*self.rows(), self.sums, self.dk, self.dv, self.causal, **c)
        m.scaled(self.sums, self.dq)

    def sdpa(self):
        """Its backward pass."""
        heads = [x.view(BATCH, HEADS, LENGTH, -1) for x in (self.q, self.k, self.v)]
        leaves = [x.detach().clone().requires_grad_() for x in heads]
        o = torch.nn.functional.scaled_dot_product_attention(*leaves, is_causal=self.causal)
        return lambda: torch.autograd.grad(o, leaves, self.do.view_as(o), retain_graph=True)


def backward(record):
    """Attention backward: each kernel of the form of two with its best configuration, then this form and that of one kernel, with all that belongs to them, in
    turns with SDPA's backward."""
    module, table = "flash_attention_backward", "attention backward"
    for d, causal in ((128, False), (128, True), (64, False), (64, True)):
        case = Backward(d, causal)

        def step(what, run, check, configs, amount, unit, outs):
            return both(record, table, f"{what}, {case.shape}", f"{what} {case.shape}", module, run, check, configs, amount, unit, outs)  # fmt: skip

        steps = {
            "delta": step("delta", case.run_delta, lambda: close(case.delta, case.want_delta),
                          [{"block": b, "num_warps": w} for b in (16, 32, 64, 128) for w in (1, 2, 4, 8) if 8 <= b * d // (32 * w) <= 32], 4 * case.q.numel(), "TB/s", [case.delta]),
            "dkdv": step("dk and dv", case.run_dkdv, lambda: case.error("dk", "dv"), [*of(DKDV), *of(DKDV, together=True)],
                         4 * case.dot, "TFLOP/s", [case.dk, case.dv]),
            "dq": step("dq", case.run_dq, lambda: case.error("dq"), of(DQ), 3 * case.dot, "TFLOP/s", [case.dq]),
        }  # fmt: skip
        chosen = {who: {name: result.configs.get(who) for name, result in steps.items()} for who in (OURS, TRITON)}  # fmt: skip
        two = {who: [configs] if all(configs.values()) else [] for who, configs in chosen.items()}
        options = itertools.product((False, True), repeat=2)
        kernels = [c for together, late in options for c in of(ONE, together=together, late=late)]
        one = {who: [{"delta": configs["delta"] or {}} | c for c in kernels] for who, configs in chosen.items()}  # fmt: skip
        library = {"SDPA": case.sdpa()}
        timing.measure_together(record, [
            choice(table, f"{form}, {case.shape}", f"attention backward {case.shape}", module, run, lambda: case.error("dq", "dk", "dv"),
                   configs, 5 * case.dot, "TFLOP/s", [case.dq, case.dk, case.dv], library)
            for form, run, configs in (("two kernels", case.two_kernels, two), ("one kernel", case.one_kernel, one))
        ])  # fmt: skip


def paged(record):
    """Paged attention, decode: bandwidth over the keys and values read."""
    for sequences, length, heads, kv_heads, page in PAGED:
        d, width = 128, length // page
        q = torch.randn(sequences, heads, d, device="cuda", dtype=torch.float16)
        k, v = (
            torch.randn(sequences * width, page, kv_heads, d, device="cuda", dtype=torch.float16)
            for _ in range(2)
        )
        table = torch.randperm(sequences * width, device="cuda").int().view(sequences, width)
        lengths = torch.randint(length // 2, length + 1, (sequences,), device="cuda", dtype=torch.int32)
        o = torch.empty_like(q)
        room = {n: (torch.empty(sequences, heads, n, d, device="cuda"), torch.empty(sequences, heads, n, device="cuda"))
                for n in (1, 2, 4, 8, 16)}  # fmt: skip
        want = torch.stack([exact_decode(q[i], k[table[i]], v[table[i]], int(lengths[i])) for i in range(sequences)])  # fmt: skip
        programs = sequences * kv_heads
        configs = [{"block": b, "num_warps": w, "num_stages": s, "parts": p}
                   for p in room if 256 <= programs * p <= 4096
                   for b, w, s in ((32, 4, 2), (32, 4, 3), (32, 2, 3), (64, 4, 2), (64, 4, 3), (64, 2, 3), (64, 4, 4), (128, 4, 2),
                                   (128, 4, 3), (128, 8, 2))]  # fmt: skip
        case = f"paged, {sequences}×{length}, {heads}/{kv_heads} heads, page {page}"
        both(record, "paged and sparse", case, case, "paged_decode",
             lambda m, parts, **c: m.paged_decode(q, k, v, table, lengths, o, *room[parts], **c),
             # What parts leave for the second kernel is poisoned, too, or those of another configuration would do.
             lambda: close(o, want), configs, 2 * 2 * int(lengths.sum()) * kv_heads * d, "TB/s", [o, *itertools.chain(*room.values())])  # fmt: skip


def sparse(record):
    """Sparse attention, forward, with the indices that a causal top-k leaves: none beyond the query."""
    for causal in (False, True):
        n, heads, d, d_value, topk = SPARSE
        q, kv = (
            torch.randn(*shape, device="cuda", dtype=torch.bfloat16) for shape in ((n, heads, d), (n, d))
        )
        order = torch.rand(n, n, device="cuda")
        if causal:
            order.masked_fill_(torch.ones_like(order, dtype=torch.bool).triu_(1), 2.0)
        index = order.argsort(1)[:, :topk].int()
        if causal:
            index[index > torch.arange(n, device="cuda")[:, None]] = -1
        o, lse = q.new_empty(n, heads, d_value), torch.empty(n, heads, device="cuda")
        want, want_lse = exact_sparse(q, kv, index, d_value)
        check = lambda: max(close(o, want), close(lse, want_lse, 1e-4))
        configs = [{"block": b, "num_warps": w, "num_stages": s}
                   for b, w, s in (((64, 64), 8, 1), ((64, 64), 8, 2), ((64, 32), 8, 2), ((64, 32), 8, 3), ((64, 32), 4, 2),
                                   ((128, 32), 8, 2), ((128, 64), 8, 1), ((32, 64), 4, 2), ((16, 64), 4, 2))]  # fmt: skip
        amount = 2 * heads * (d + d_value) * int((index >= 0).sum() if causal else index.numel())
        case = f"sparse{', causal' if causal else ''}"
        both(record, "paged and sparse", case, case, "sparse_attention", lambda m, **c: m.sparse_attention(q, kv, index, o, lse, **c),
             check, configs, amount, "TFLOP/s", [o, lse])  # fmt: skip


# D, batch, heads, heads of keys, length.
SHAPES = [(128, 4, 32, 8, 4096), (64, 4, 32, 4, 4096)]
SHAPES += [(d, batch, heads, heads, length) for d in (64, 128, 256)
          for batch, heads, length in ((16, 16, 1024), (4, 16, 4096), (1, 16, 16384), (1, 2, 65536)) if (d, length) not in ((64, 4096), (128, 4096))]  # fmt: skip


def with_ours(d: int, length: int) -> dict[str, list[dict]]:
    """Triton's configurations, and ours besides: with D=256 blocks of 48 and 80 keys, which Triton refuses, and programs that do the work of several where one has
    few blocks of keys."""
    odd = (
        [{"block": (128, n), "num_warps": 8, "num_stages": s} for n in (48, 80) for s in (2, 3)]
        if d == 256
        else []
    )
    # One warp loads for two groups, which go on to the next tile.
    loops = [
        {"block": (128, n), "num_warps": 8, "num_stages": 2, "persistent": True}
        for n in {64: (), 128: (64, 128), 256: (64,)}[d]
        if length <= 4096
    ]
    return {OURS: ATTENTION + odd + loops, TRITON: ATTENTION}


def shapes(record, words=()):
    """Attention forward of other shapes, with several heads of queries for one of keys, and of packed sequences (through pointers alone); those whose names have one
    of the words, if there are any."""
    give_triton_memory()
    table = "attention of other shapes"
    for d, causal in itertools.product((64, 128), (False, True)):
        if not words or any(word in "packed" for word in words):
            packed(record, table, d, causal)
    for (d, batch, heads, kv_heads, length), causal in itertools.product(SHAPES, (False, True)):
        few = heads if heads == kv_heads else f"{heads}/{kv_heads}"
        case = f"{batch}×{length}, {few} heads, {shape_of(d, causal)}"
        if words and not any(word in case for word in words):
            continue
        q = torch.randn(batch * heads, length, d, device="cuda", dtype=torch.float16)
        k, v = (
            torch.randn(batch * kv_heads, length, d, device="cuda", dtype=torch.float16) for _ in range(2)
        )
        o = torch.empty_like(q)
        want = exact_attention(q, *(x.repeat_interleave(heads // kv_heads, 0) for x in (k, v)), causal)[0]
        by_head = [x.view(batch, -1, length, d) for x in (q, k, v)]
        sdpa = lambda: torch.nn.functional.scaled_dot_product_attention(*by_head, is_causal=causal, enable_gqa=heads != kv_heads)  # fmt: skip
        timing.measure_together(record, attention(
            table, lambda source: case if source == "pointers" else f"{case}, {source}", case, (q, k, v, o), causal, lambda: close(o, want),
            4 * batch * heads * length**2 * d / (2 if causal else 1), {"SDPA": sdpa}, with_ours(d, length)))  # fmt: skip


def packed(record, table, d: int, causal: bool):
    """Sixteen sequences of 512 to 4,096 tokens one behind the other."""
    heads, kv_heads = 32, 8
    lengths = torch.randint(512, 4097, (16,), generator=torch.Generator().manual_seed(0))
    begins = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)]).int().cuda()
    tokens = int(lengths.sum())
    q = torch.randn(tokens, heads, d, device="cuda", dtype=torch.float16)
    k, v = (torch.randn(tokens, kv_heads, d, device="cuda", dtype=torch.float16) for _ in range(2))
    o = torch.empty_like(q)
    want = torch.empty(q.shape, device="cuda")
    for a, b in itertools.pairwise(begins.tolist()):
        mine, keys, values = (x[a:b].transpose(0, 1) for x in (q, k, v))
        of_heads = (x.repeat_interleave(heads // kv_heads, 0) for x in (keys, values))
        want[a:b] = exact_attention(mine, *of_heads, causal)[0].transpose(0, 1)
    case = f"16 sequences of 512 to 4096, packed, {heads}/{kv_heads} heads, {shape_of(d, causal)}"
    both(record, table, case, case, "flash_attention_varlen",
         lambda m, **c: m.flash_attention_varlen(q, k, v, o, begins, 4096, causal, **c), lambda: close(o, want), with_ours(d, 4096),
         4 * heads * int((lengths**2).sum()) * d / (2 if causal else 1), "TFLOP/s", [o])  # fmt: skip


# Rows, groups, N, K.
GROUPS = ((8192, 8, 4096, 7168), (8192, 64, 4096, 2048), (1024, 32, 4096, 4096))
# Tokens, experts, experts of a token, N, K.
EXPERTS = ((64, 8, 2, 14336, 4096), (2048, 8, 2, 14336, 4096), (4096, 64, 8, 2048, 2048))


def grouped(record):
    """Products of groups of rows, and of tokens that experts share out."""
    table, name = "grouped", "grouped_matmul"
    for rows, groups, n, k in GROUPS:
        a, b = (
            torch.randn(*shape, device="cuda", dtype=torch.bfloat16) for shape in ((rows, k), (groups, n, k))
        )
        c = torch.empty(rows, n, device="cuda", dtype=torch.bfloat16)
        ends = (
            torch.randint(rows // 16 + 1, (groups - 1,), generator=torch.Generator().manual_seed(0))
            .sort()
            .values
            * 16
        )
        ends = torch.cat([ends, torch.tensor([rows])]).int().cuda()
        begins = [0, *ends.tolist()]
        want = torch.cat(
            [a[i:j].float() @ b[g].float().T for g, (i, j) in enumerate(itertools.pairwise(begins))]
        )
        per = torch.cuda.get_device_properties(0).multi_processor_count
        configs = [{"block": block, "num_warps": w, "num_stages": s, "programs": p * per}
                   for block, w, s, p in (((128, 256, 64), 8, 3, 1), ((128, 256, 64), 8, 4, 1), ((256, 128, 64), 8, 3, 1), ((128, 128, 64), 8, 4, 1),
                                          ((128, 128, 64), 4, 3, 2), ((128, 128, 64), 4, 4, 1), ((64, 128, 64), 4, 4, 2), ((64, 256, 64), 4, 4, 1),
                                          ((128, 64, 64), 4, 4, 2), ((64, 64, 64), 4, 4, 3), ((64, 64, 128), 4, 3, 2))]  # fmt: skip
        case = f"{rows} rows in {groups} groups, {n}×{k}"
        both(record, table, case, case, name, lambda m, **o: m.grouped_matmul(a, b, c, ends, **o), lambda: close(c, want), configs,
             2 * rows * n * k, "TFLOP/s", [c], {"torch": lambda: torch._grouped_mm(a, b.transpose(1, 2), offs=ends)})  # fmt: skip
    for tokens, experts, top_k, n, k in EXPERTS:
        a, b = (
            torch.randn(*shape, device="cuda", dtype=torch.bfloat16)
            for shape in ((tokens, k), (experts, n, k))
        )
        c = torch.empty(tokens * top_k, n, device="cuda", dtype=torch.bfloat16)
        chosen = (
            torch.rand(tokens, experts, generator=torch.Generator().manual_seed(0))
            .argsort(1)[:, :top_k]
            .reshape(-1)
        )
        lists = {m: [torch.from_numpy(x).cuda() for x in load(name).by_expert(chosen.numpy(), experts, m)] for m in (16, 32, 64, 128)}  # fmt: skip
        want = torch.empty(tokens * top_k, n, device="cuda")
        for e in range(experts):
            mine = (chosen == e).nonzero()[:, 0].cuda()
            want[mine] = a[mine // top_k].float() @ b[e].float().T
        configs = [{"block": block, "num_warps": w, "num_stages": s}
                   for block, w, s in (((128, 256, 64), 8, 3), ((128, 256, 64), 8, 4), ((128, 128, 64), 8, 4), ((128, 128, 64), 4, 4),
                                       ((64, 128, 64), 4, 4), ((64, 256, 64), 4, 4), ((64, 128, 128), 4, 3), ((32, 128, 64), 4, 4),
                                       ((16, 128, 64), 4, 4), ((16, 64, 128), 4, 4), ((16, 128, 128), 4, 4), ((16, 256, 64), 8, 4))]  # fmt: skip
        case = f"{tokens} tokens, {top_k} of {experts} experts each, {n}×{k}"
        both(record, table, case, case, name, lambda m, block, **o: m.experts_matmul(a, b, c, *lists[block[0]], top_k, block, **o),
             lambda: close(c, want), configs, 2 * tokens * top_k * n * k, "TFLOP/s", [c])  # fmt: skip


PARTS = {part.__name__: part for part in (forward, persistent, backward, paged, sparse, shapes, grouped)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", help="the file of raw results to add to")
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        help="a word of the names of the shapes that the part `shapes` measures",
    )
    options = parser.parse_args()
    if unknown := [p for p in options.parts if p not in PARTS]:
        parser.error(f"unknown parts: {', '.join(unknown)}; there are {', '.join(PARTS)}")
    record = Record(options.record, about())
    print(record.run.about)
    torch.manual_seed(0)
    for part in options.parts or PARTS:
        PARTS[part](record, options.shape) if part == "shapes" else PARTS[part](record)


if __name__ == "__main__":
    main()
