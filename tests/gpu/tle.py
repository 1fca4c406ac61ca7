"""Kernels of ``examples/tle`` against Triton.

``python tests/gpu/tle.py [WORKLOAD …] [--cases CASE …]`` prints a line a size: median times of competitors that take turns, and how many times longer than
ours the others took. Every configuration that is timed is checked, with outputs that are poisoned before: one of Triton's that is wrong is left out and named,
one of ours ends the measurement.

``attention``: 4 × 32 heads of 128, causal and not, by ``tle.gpu.warp_specialize``, against the kernel of ``examples/flash_attention_descriptors.py``, to whose
loop or program the compiler gives warps with roles (``tl.range``), the same and ``examples/flash_attention.py`` by Triton, and torch.

``cluster_gemm``: 4096³ in fp16, where two programs of a cluster share a block, against Triton's ``examples/matmul.py`` and ``torch.matmul`` (cuBLAS).

``gemm``: 4096³ in fp16 by warps with roles, with barriers and products of the kernel's own and by a pipe, against ``torch.matmul`` (cuBLAS) and the same product by ``tl.dot`` (``examples/persistent_matmul.py``).

``moe_align``: tokens by expert (S000 4.2): ours is one kernel with buffers, of clusters that count all tokens, or two; Triton's are four kernels,
since it has neither buffers nor barriers: counts by ``tl.histogram``, a sum over programs, a sum over experts, and places by atomics in global memory.
The third is ``moe_align.cu``, CUDA C++ of our own, of whose three ways the best counts; it needs ``nvcc``.

``sparse_mla``: sparse attention, prefill, 4096 queries of 128 heads, D 576 and 512, of 8192 rows or more (S000 4.1), against ``examples/sparse_attention.py`` by both
compilers, with the best of several blocks and with that of the published numbers, 64 heads and 32 rows.

``topk``: the largest of each row, in order (S000 4.3), against ``torch.topk``.

``topk_selector``: which are the largest of long rows (S000 4.4): ours shares rows among the programs of a cluster; Triton's is one
program a row, which counts digits by ``tl.histogram`` and reads the row once for each.

``fft``: transforms of 4096 rows (TLE reference 8), against ``torch.fft.fft`` (cuFFT; it has no bfloat16: there it is given the same
in float32) and, for complex float32, a kernel of radix 2 in plain Triton, whose elements change places by reshapes and permutations.
"""

import argparse
import ctypes
import functools
import math
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import timing
import torch
import triton
import triton.language as tl

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))
sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "tle"))

import attention
import cluster_gemm
import fft
import gemm
import gemm_pipe
import moe_align
import persistent_matmul
import sharded_gemm
import sparse_mla
import topk
import topk_selector
from exact import exact_attention, exact_sparse
from peers import about, load, load_for_triton
from results import OURS, TRITON, Record, Result
from tolerance import close

#: What the names of the cases begin with that are measured; all, if there is nothing.
CASES: list[str] = []


def is_wanted(case):
    return not CASES or case.startswith(tuple(CASES))


@triton.jit
def count_kernel(experts_ptr, counts_ptr, num_tokens, E: tl.constexpr, TILE: tl.constexpr):
    program = tl.program_id(0)
    token = program * TILE + tl.arange(0, TILE)
    expert = tl.load(experts_ptr + token, mask=token < num_tokens, other=0)
    tl.store(counts_ptr + program * E + tl.arange(0, E), tl.histogram(expert, E, mask=token < num_tokens))


@triton.jit
def before_kernel(counts_ptr, count_ptr, programs, E: tl.constexpr, P: tl.constexpr):
    expert = tl.program_id(0)
    program = tl.arange(0, P)
    count = tl.load(counts_ptr + program * E + expert, mask=program < programs, other=0)
    after = tl.cumsum(count, 0)
    tl.store(counts_ptr + program * E + expert, after - count, mask=program < programs)
    tl.store(count_ptr + expert, tl.sum(count, 0))


@triton.jit
def start_kernel(count_ptr, start_ptr, total_ptr, E: tl.constexpr, BLOCK: tl.constexpr):
    expert = tl.arange(0, E)
    padded = tl.cdiv(tl.load(count_ptr + expert), BLOCK) * BLOCK
    after = tl.cumsum(padded, 0)
    tl.store(start_ptr + expert, after - padded)
    tl.store(total_ptr, tl.sum(padded, 0))


@triton.jit
def place_kernel(experts_ptr, counts_ptr, count_ptr, start_ptr, sorted_ptr, blocks_ptr, num_tokens,
                 E: tl.constexpr, BLOCK: tl.constexpr, TILE: tl.constexpr):  # fmt: skip
    program = tl.program_id(0)
    token = program * TILE + tl.arange(0, TILE)
    inside = token < num_tokens
    expert = tl.load(experts_ptr + token, mask=inside, other=0)
    start = tl.load(start_ptr + expert, mask=inside, other=0)
    place = tl.atomic_add(counts_ptr + program * E + expert, 1, mask=inside, sem="relaxed")
    tl.store(sorted_ptr + start + place, token, mask=inside)
    for e in range(program, E, tl.num_programs(0)):
        begun, count = tl.load(start_ptr + e), tl.load(count_ptr + e)
        filled = begun + tl.cdiv(count, BLOCK) * BLOCK
        rest = begun + count + tl.arange(0, BLOCK)
        tl.store(sorted_ptr + rest, num_tokens, mask=rest < filled)
        for first in range(begun // BLOCK, filled // BLOCK, TILE):
            block = first + tl.arange(0, TILE)
            tl.store(blocks_ptr + block, e, mask=block < filled // BLOCK)


def triton_align(experts, num_experts, block, out, scratch, tile):
    n = experts.shape[0]
    programs = triton.cdiv(n, tile)
    counts, count, start = scratch
    count_kernel[(programs,)](experts, counts, n, num_experts, tile)
    before_kernel[(num_experts,)](counts, count, programs, num_experts, triton.next_power_of_2(programs))
    start_kernel[(1,)](count, start, out[2], num_experts, block)
    place_kernel[(programs,)](experts, counts, count, start, out[0], out[1], n, num_experts, block, tile)


def check(experts, num_experts, block, out):
    tokens, of_blocks, total = out
    places = int(total)
    want = torch.bincount(experts, minlength=num_experts)
    assert places == int(((want + block - 1) // block * block).sum())
    tokens, n = tokens[:places].long(), experts.shape[0]
    there = tokens < n
    assert torch.equal(tokens[there].sort().values, torch.arange(n, device="cuda"))
    owners = of_blocks[: places // block].repeat_interleave(block)
    assert torch.equal(experts[tokens[there]], owners[there])


def cuda_align():
    """The function of ``moe_align.cu``, or None where there is no ``nvcc``."""
    nvcc = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    if nvcc is None:
        print("moe_align: no nvcc, no CUDA version")
        return None
    library = Path(tempfile.mkdtemp()) / "moe_align.so"
    major, minor = torch.cuda.get_device_capability()
    options = ["-O3", f"-arch=sm_{major}{minor}", "-shared", "-Xcompiler", "-fPIC", "-o", str(library)]
    subprocess.run([nvcc, *options, str(Path(__file__).with_name("moe_align.cu"))], check=True)
    align = ctypes.CDLL(str(library)).moe_align
    pointer, number = ctypes.c_void_p, ctypes.c_int
    align.argtypes = [ctypes.c_char, pointer, number, number, number, *[pointer] * 4, number, number, pointer]
    return align


def align_configs(n):
    """By clusters that count all tokens, and by two kernels."""
    by_clusters = [{"by": "clusters", "programs": p, "members": m, "tile": None, "num_warps": w}
                   for m in (1, 2, 4, 8, 16) for p in (4, 8, 16, 32, 64, 128) for w in (4, 8, 16)
                   if p % m == 0 and 16 * p <= n <= min(65536, 2048 * p) and 32 * w <= n // m <= 1024 * w]  # fmt: skip
    tiles = ((256, 4), (512, 8), (1024, 8), (1024, 32), (2048, 16), (4096, 32))
    by_kernels = [{"by": "kernels", "programs": p, "members": 1, "tile": t, "num_warps": w}
                  for p in (64, 128) for t, w in tiles if n >= 4096 and (p * t <= 2 * n or p * t <= 1024)]  # fmt: skip
    return by_clusters, by_kernels


def moe_align_rows(record):
    generator = torch.Generator().manual_seed(0)
    by_cuda = cuda_align()
    sizes = [(256 << k, 64) for k in range(9)] + [(163840, 64), (163840, 512)]
    for n, num_experts in sizes:
        case = f"{n:,} tokens, {num_experts} experts"
        if not is_wanted(case):
            continue
        weights = 1 / torch.arange(1, num_experts + 1, dtype=torch.float32) ** 1.2
        experts = torch.multinomial(weights, n, True, generator=generator).int().cuda()
        block = 16
        empty = lambda size: torch.empty(size, dtype=torch.int32, device="cuda")
        places = moe_align.most_places(n, num_experts, block)
        ours, triton_out, cuda_out = [(empty(places), empty(places // block), empty(1)) for _ in range(3)]
        room = empty(256 * num_experts)
        scratch = empty(triton.cdiv(n, 256) * num_experts), empty(num_experts), empty(num_experts)

        def run(by, programs, tile, num_warps, members):
            moe_align.align_into(
                ours, room, experts, num_experts, block, by, programs, tile, num_warps, members
            )

        def run_triton(tile):
            triton_align(experts, num_experts, block, triton_out, scratch, tile)

        def run_cuda(variant, blocks, threads):
            out = [x.data_ptr() for x in cuda_out]
            stream = torch.cuda.current_stream().cuda_stream
            error = by_cuda(variant.encode(), experts.data_ptr(), n, num_experts, block, *out, room.data_ptr(), blocks, threads, stream)  # fmt: skip
            assert error == 0, error

        # One after the other where kernels hand things on through memory.
        by_clusters, in_two = align_configs(n)
        configs, refused = timing.compiled(run, by_clusters)
        working, more = timing.compiled(run, in_two, together=False)
        configs += working
        for reason in (refused | more).items():
            print("refused", *reason)
        cuda_configs = [{"variant": v, "blocks": 1, "threads": 1024} for v in ("o", "s")]
        cuda_configs += [{"variant": "b", "blocks": b, "threads": t} for b in (4, 8, 16, 32, 64, 128, 256)
                         for t in (256, 512, 1024) if b * t <= 4 * n and t >= num_experts]  # fmt: skip
        competitors = {
            OURS: (run, configs, ours),
            # One after the other: its kernels hand things on through memory.
            TRITON: (run_triton, [{"tile": t} for t in (256, 512, 1024, 2048)], triton_out),
        }
        if by_cuda:
            competitors["CUDA"] = (run_cuda, cuda_configs, cuda_out)
        result, runs = row("tokens by expert", case), {}
        for who, (launch, choices, out) in competitors.items():
            right, (working, wrong) = [], timing.compiled(launch, choices, together=False)
            for config in working:
                # What kernels hand on is cleared, too: zeros lead nobody out of the arrays, and are wrong.
                for x in (*scratch, room):
                    x.zero_()
                for x in out:
                    x.fill_(-1)
                launch(**config)
                try:
                    check(experts, num_experts, block, out)
                    right.append(config)
                except AssertionError as error:
                    wrong[str(config)] = f"wrong: {error}"
                    assert who != OURS, wrong
            for reason in wrong.items():
                print("left out", who, *reason)
            result.refused[who] = wrong
            result.tried[who] = len(right)
            if right:
                result.configs[who] = timing.best(launch, right, 10)
                runs[who] = functools.partial(launch, **result.configs[who])
        timing.compare(record, result, runs)


def row(table, case, amount=0.0):
    """A line of a table; with ``amount``, operations, in TFLOP/s."""
    return Result(table, case, case, "TFLOP/s" if amount else "", amount)


def contest(record, result, runs, configs, check, outs, library=None, own=(), rounds=5):
    """Times launched and in a CUDA graph of ``runs``, each with its best configuration, and ``library``, chosen as ``timing.choose`` does. ``own`` are ours, too,
    by other names."""
    chosen = timing.choose(result, runs, configs, check, outs, library, 10)
    for who, reasons in result.refused.items():
        for config, reason in reasons.items():
            print("left out", who, config, reason)
            assert who not in own or not reason.startswith("wrong"), f"{who}, {config}: {reason}"
    timing.compare(record, result, {who: run for (who, _), run in chosen.items()}, rounds)


def exact_product(a, b, c):
    """What checks ``c``, the product of ``a`` and the transpose of ``b``."""
    return functools.partial(close, c, a.float() @ b.float().T, 1e-3)


def gemm_rows(record, size=4096):
    a, b = (torch.randn(size, size, device="cuda", dtype=torch.float16) for _ in range(2))
    c = torch.empty_like(a)

    def run(block, slots, group):
        gemm.gemm(a, b, c, block, slots, group=group)

    def run_pipe(block, slots, halves, group):
        gemm_pipe.gemm(a, b, c, block, slots, halves=halves, group=group)

    def run_dot(block, num_warps, halves, warp_specialize):
        persistent_matmul.persistent_matmul(
            a, b, c, block, halves=halves, warp_specialize=warp_specialize, num_warps=num_warps
        )

    configs = [{"block": block, "slots": slots, "group": group}
               for block, slots in (((128, 256, 64), 3), ((128, 128, 64), 4), ((128, 192, 64), 4), ((128, 128, 128), 2))
               for group in (4, 8, 16)]  # fmt: skip
    dots = [{"block": (128, 256, 64), "num_warps": 8, "halves": halves, "warp_specialize": specialize}
            for halves in (False, True) for specialize in (False, True)]  # fmt: skip
    pipes = [{"block": (128, 256, 64), "slots": slots, "halves": halves, "group": group}
             for slots, halves in ((3, False), (3, True), (4, True)) for group in (4, 8, 16)]  # fmt: skip
    runs = {OURS: run, "by a pipe": run_pipe, "`tl.dot`": run_dot}
    result = row("products by roles", f"`gemm.py`, {size}³", 2 * size**3)
    contest(record, result, runs, dict(zip(runs, (configs, pipes, dots))), exact_product(a, b, c), [c],
            {"cuBLAS": lambda: torch.matmul(a, b.T)}, own=runs)  # fmt: skip


def attention_row(record, n, causal, dtype, batch=4, num_heads=32, d=128):
    heads = batch * num_heads
    q, k, v = (torch.randn(heads, n, d, device="cuda", dtype=dtype) for _ in range(3))
    o = torch.empty_like(q)
    by_head = [x.view(batch, num_heads, n, d) for x in (q, k, v)]
    sdpa = lambda: torch.nn.functional.scaled_dot_product_attention(*by_head, is_causal=causal)
    want = exact_attention(q, k, v, causal)[0]
    descriptors, triton_descriptors, triton_pointers = (
        load("flash_attention_descriptors"),
        load_for_triton("flash_attention_descriptors"),
        load_for_triton("flash_attention"),
    )
    programs = torch.cuda.get_device_properties(0).multi_processor_count

    def run(**config):
        attention.attention(q, k, v, o, causal, **config)

    def run_own(**config):
        descriptors.flash_attention_descriptors(q, k, v, o, causal, warp_specialize=True, **config)

    def run_triton(**config):
        triton_descriptors.flash_attention_descriptors(q, k, v, o, causal, **config)

    def run_pointers(**config):
        triton_pointers.flash_attention(q, k, v, o, causal, **config)

    most = triton.cdiv(n, 128) * heads
    plain = [{"block": block, "num_warps": 8, "num_stages": stages} for block, stages in (((128, 64), 2), ((128, 64), 3), ((128, 128), 2))]  # fmt: skip
    runs = {OURS: run, "the compiler's roles": run_own, TRITON: run_triton, "Triton, pointers": run_pointers}
    configs = (
        [{"block": (128, 128), "programs": p} for p in (programs, most)],
        plain + [c | {"programs": programs} for c in plain[1:]],
        [c | {"warp_specialize": ws} for c in plain for ws in (False, True)],
        plain,
    )
    name = f"{str(dtype)[6:]}, {n:,}{', causal' if causal else ''}"
    result = row("attention by roles", name, 4 * heads * n * n * d / (2 if causal else 1))
    contest(record, result, runs, dict(zip(runs, configs)), lambda: close(o, want), [o], {"SDPA": sdpa}, own=["the compiler's roles"])  # fmt: skip


def attention_rows(record):
    for dtype in (torch.float16, torch.bfloat16):
        for causal in (False, True):
            for n in (1024, 2048, 4096, 8192):
                attention_row(record, n, causal, dtype)


def cluster_gemm_rows(record, size=4096):
    a, b = (torch.randn(size, size, device="cuda", dtype=torch.float16) for _ in range(2))
    c = torch.empty_like(a)
    matmul = load_for_triton("matmul")

    def run(**config):
        cluster_gemm.gemm(a, b, c, **config)

    def run_triton(**config):
        matmul.matmul(a, b.T, c, **config)

    tiles = [((128, 256, 64), 3), ((128, 128, 64), 4), ((128, 192, 64), 4), ((128, 256, 32), 6)]
    configs = [{"block": block, "slots": slots, "group": group, "programs": programs}
               for block, slots in tiles for group in (2, 4, 8, 16) for programs in (128, 132)]  # fmt: skip
    plain = [{"block": block, "num_warps": 8, "num_stages": stages}
             for block, stages in (((128, 256, 64), 3), ((128, 256, 64), 4), ((128, 128, 64), 4))]  # fmt: skip
    result = row("products by roles", f"`cluster_gemm.py`, {size}³", 2 * size**3)
    contest(record, result, {OURS: run, TRITON: run_triton}, {OURS: configs, TRITON: plain}, exact_product(a, b, c), [c],
            {"cuBLAS": lambda: torch.matmul(a, b.T)})  # fmt: skip


def sharded_gemm_rows(record):
    """`tle.distributed_dot` in clusters of two and four, against the clusters of the compiler (``num_ctas``)."""
    for size in (4096, 8192):
        a, b = (torch.randn(size, size, device="cuda", dtype=torch.float16) for _ in range(2))
        c = torch.empty_like(a)
        check = exact_product(a, b, c)

        for cluster in (2, 4):

            def run(a=a, b=b, c=c, cluster=cluster, **config):
                sharded_gemm.gemm(a, b, c, cluster=cluster, **config)

            def run_compiled(a=a, b=b, c=c, cluster=cluster, **config):
                persistent_matmul.persistent_matmul(a, b, c, num_ctas=cluster, **config)

            tiles = [
                ((128, 256, 64), 8, 3),
                ((128, 256, 64), 8, 4),
                ((128, 128, 64), 4, 3),
                ((128, 128, 64), 4, 4),
            ]
            configs = [{"block": block, "by_rows": by_rows, "num_warps": warps, "num_stages": stages}
                       for block, warps, stages in tiles for by_rows in (True, False)]  # fmt: skip
            # A tile is that of the cluster.
            of_cluster = [{"block": (m * (cluster if tall else 1), n * (1 if tall else cluster), k), "num_warps": warps, "num_stages": stages}
                          for (m, n, k), warps, stages in tiles for tall in (True, False)]  # fmt: skip
            runs = {OURS: run, "the compiler's clusters": run_compiled}
            result = row(
                "products by roles", f"`sharded_gemm.py`, clusters of {cluster}, {size}³", 2 * size**3
            )
            contest(record, result, runs, dict(zip(runs, (configs, of_cluster))), check, [c],
                    {"cuBLAS": lambda a=a, b=b: torch.matmul(a, b.T)}, own=runs)  # fmt: skip


SPARSE = (
    ((64, 64), 8, 1),
    ((64, 64), 8, 2),
    ((64, 32), 8, 2),
    ((64, 32), 4, 2),
    ((128, 32), 8, 2),
    ((128, 64), 8, 1),
)


def sparse_mla_rows(record, lengths=(8192, 32768, 131072), configs=SPARSE):
    n, heads, d, d_value, topk = 4096, 128, 576, 512, 2048
    modules = {"plain source": load("sparse_attention"), TRITON: load_for_triton("sparse_attention")}
    configs = [{"block": b, "num_warps": w, "num_stages": s} for b, w, s in configs]
    for rows in lengths:
        q, kv = (
            torch.randn(*shape, device="cuda", dtype=torch.bfloat16) for shape in ((n, heads, d), (rows, d))
        )
        index = torch.stack([torch.randperm(rows, device="cuda")[:topk] for _ in range(n)]).int()
        gaps = index.clone()
        gaps[::2, topk // 2 :: 3] = -1
        o, lse = q.new_empty(n, heads, d_value), torch.empty(n, heads, device="cuda")

        def run(index=index):
            sparse_mla.sparse_mla(q, kv, index, o, lse)

        def right(want, want_lse):
            return max(close(o, want), close(lse, want_lse, 1e-4))

        # Lists with gaps are right, too; no gaps where time is measured: none of the published numbers has any.
        of_gaps = functools.partial(right, *exact_sparse(q, kv, gaps, d_value))
        _, wrong, _ = timing.checked(run, [{"index": gaps}], of_gaps, [o, lse])
        assert not wrong, wrong.values()
        runs, choices = {OURS: run}, {OURS: [{}]}
        for who, module in modules.items():

            def other(module=module, **config):
                module.sparse_attention(q, kv, index, o, lse, **config)

            published = [c for c in configs if c["block"] == (64, 32)]
            runs |= {who: other, f"{who}, 64×32": other}
            choices |= {who: configs, f"{who}, 64×32": published}
        result = row("sparse attention by roles", f"{rows:,} rows", 2 * n * heads * (d + d_value) * topk)
        check = functools.partial(right, *exact_sparse(q, kv, index, d_value))
        contest(record, result, runs, choices, check, [o, lse], own=[who for who in runs if who.startswith("plain")])  # fmt: skip


def picked(x, indices):
    """The elements of each row that the indices name, which must be different ones of its own."""
    assert bool(((indices >= 0) & (indices < x.shape[1])).all()), "an index outside of the row"
    assert bool((indices.sort(1).values.diff(dim=1) > 0).all()), "an index twice"
    return x.gather(1, indices.long())


def topk_rows(record):
    shapes = [(64, 128, 8), (64, 1024, 32), (64, 8192, 128), (128, 32768, 256)]
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        for m, n, k in shapes:
            x = torch.randn(m, n, device="cuda").to(dtype)
            values = torch.empty(m, k, device="cuda", dtype=dtype)
            indices = torch.empty(m, k, device="cuda", dtype=torch.int32)

            def run(radix, num_warps):
                topk.topk(x, k, values, indices, radix, num_warps)

            radixes = (8, 11) if dtype is torch.float32 else (8, 6)
            configs = [{"radix": r, "num_warps": w} for r in radixes for w in (1, 2, 4, 8, 16, 32)
                       if max(1, n // 4096) <= w <= max(1, n // 32)]  # fmt: skip
            want = torch.topk(x, k, dim=1).values

            def check():
                assert torch.equal(values, want), "other values"
                assert torch.equal(picked(x, indices), want), "indices of other values"
                return 0.0

            result = row("largest of rows", f"{str(dtype)[6:]}, {m} × {n:,}, k {k}")
            contest(record, result, {OURS: run}, configs, check, [values, indices], {"torch": lambda: torch.topk(x, k, dim=1)})  # fmt: skip


@triton.jit
def sortable(x):
    i = x.to(tl.int32, bitcast=True)
    return (i ^ ((i >> 31) | -2147483648)).to(tl.uint32, bitcast=True)


@triton.jit
def plain_select_kernel(x_ptr, indices_ptr, N, K: tl.constexpr, TILE: tl.constexpr):
    row = tl.program_id(0)
    x_ptr += row.to(tl.int64) * N
    at = tl.arange(0, TILE)
    digits = tl.arange(0, 256)
    found = tl.zeros([], tl.uint32)
    wanted = tl.zeros([], tl.int32) + K
    for round in tl.static_range(4):
        shift = 24 - 8 * round
        count = tl.zeros([256], tl.int32)
        for first in range(0, N, TILE):
            inside = first + at < N
            key = sortable(tl.load(x_ptr + first + at, mask=inside, other=0.0))
            candidate = inside
            if round > 0:
                candidate = inside & ((key >> (shift + 8)) == (found >> (shift + 8)))
            count += tl.histogram(((key >> shift) & 255).to(tl.int32), 256, mask=candidate)
        larger = tl.cumsum(count, 0, reverse=True) - count
        here = (larger < wanted) & (larger + count >= wanted)
        found |= tl.sum(tl.where(here, digits, 0)).to(tl.uint32) << shift
        wanted -= tl.sum(tl.where(here, larger, 0))
    larger_done = tl.zeros([], tl.int32)
    equal_done = tl.zeros([], tl.int32)
    out = indices_ptr + row * K
    for first in range(0, N, TILE):
        inside = first + at < N
        key = sortable(tl.load(x_ptr + first + at, mask=inside, other=0.0))
        is_larger = (inside & (key > found)).to(tl.int32)
        is_equal = (inside & (key == found)).to(tl.int32)
        here_at = larger_done + tl.cumsum(is_larger, 0) - is_larger
        tl.store(out + here_at, first + at, mask=is_larger == 1)
        equal_at = equal_done + tl.cumsum(is_equal, 0) - is_equal
        tl.store(out + K - wanted + equal_at, first + at, mask=(is_equal == 1) & (equal_at < wanted))
        larger_done += tl.sum(is_larger)
        equal_done += tl.sum(is_equal)


def selector_configs(rows, n, k):
    """Rows that registers hold, and one wave of programs that share rows, with a tile each at least."""
    short = [{"room": n, "num_warps": w, "radix": r} for w in (4, 8, 16, 32) for r in (8, 10, 11) if n <= min(8192, 1024 * w)]  # fmt: skip
    shared = [{"parts": p, "room": room, "sample": s, "num_warps": w, "each": e} for p in (1, 2, 4, 8, 16)
              for room in (2048, 4096, 8192) for s in (2048, 4096) for w in (16, 32) for e in (8, 16)
              if 2 * k <= room < n and s < n and 32 * e * w <= n // p <= 1 << 19 and p * rows * w <= 132 * 64
              and 64 <= room // w <= 512]  # fmt: skip
    return short + shared


def topk_selector_rows(record):
    lengths = [(4096, 128), (8192, 256), (32768, 1024), (131072, 2048), (262144, 2048), (524288, 2048)]
    for rows in (1, 64):
        for n, k in lengths[rows == 1 :]:
            case = f"{rows} × {n:,}, k {k}"
            if not is_wanted(case):
                continue
            x = torch.randn(rows, n, device="cuda")
            ends = torch.full((rows,), n, device="cuda", dtype=torch.int32)
            out = torch.empty(rows, k, device="cuda", dtype=torch.int32)

            def run(**config):
                topk_selector.select(x, ends, k, out, **config)

            def run_triton(tile, num_warps):
                plain_select_kernel[(rows,)](x, out, n, k, tile, num_warps=num_warps)

            want = torch.topk(x, k, dim=1).values

            def check():
                assert torch.equal(picked(x, out).sort(dim=1, descending=True).values, want), (
                    "others are larger"
                )
                return 0.0

            tiles = [{"tile": t, "num_warps": w} for t in (1024, 4096, 8192) for w in (4, 8, 16) if t <= n]
            configs = {OURS: selector_configs(rows, n, k), TRITON: tiles}
            contest(record, row("which are the largest", case), {OURS: run, TRITON: run_triton}, configs, check, [out],
                    {"torch": lambda: torch.topk(x, k, dim=1, sorted=False)})  # fmt: skip


@triton.jit
def plain_fft_kernel(x_ptr, out_ptr, cos_ptr, sin_ptr, N: tl.constexpr, STAGES: tl.constexpr, ROWS: tl.constexpr, REAL: tl.constexpr):  # fmt: skip
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS))[:, None] * N
    at = row + tl.arange(0, N)[None, :]
    if REAL:
        re = tl.load(x_ptr + at).to(tl.float32)
        im = tl.zeros([ROWS, N], tl.float32)
    else:
        re, im = tl.split(tl.load(x_ptr + 2 * at[:, :, None] + tl.arange(0, 2)[None, None, :]).to(tl.float32))
    half = tl.arange(0, N // 2)[None, :]
    for stage in tl.static_range(STAGES):
        angle = half % (1 << stage) * (N // (2 << stage))
        c, s = tl.load(cos_ptr + angle), tl.load(sin_ptr + angle)
        a_re, b_re = tl.split(tl.permute(tl.reshape(re, [ROWS, 2, N // 2]), [0, 2, 1]))
        a_im, b_im = tl.split(tl.permute(tl.reshape(im, [ROWS, 2, N // 2]), [0, 2, 1]))
        t_re, t_im = b_re * c - b_im * s, b_re * s + b_im * c
        re = tl.reshape(tl.join(a_re + t_re, a_re - t_re), [ROWS, N // (2 << stage), 1 << stage, 2])
        im = tl.reshape(tl.join(a_im + t_im, a_im - t_im), [ROWS, N // (2 << stage), 1 << stage, 2])
        re = tl.reshape(tl.permute(re, [0, 1, 3, 2]), [ROWS, N])
        im = tl.reshape(tl.permute(im, [0, 1, 3, 2]), [ROWS, N])
    pairs = out_ptr + 2 * at[:, :, None] + tl.arange(0, 2)[None, None, :]
    tl.store(pairs, tl.join(re, im).to(out_ptr.dtype.element_ty))


RADICES = {512: [(32, 16), (8, 8, 8)], 1024: [(32, 32), (16, 8, 8)]}


def plain_fft(x, out, is_real):
    """The kernel in plain Triton, as a function of its configuration, and the configurations."""
    m, n = x.shape[:2]
    angle = torch.arange(n, dtype=torch.float64, device="cuda") * (-2 * math.pi / n)
    cos, sin = angle.cos().float(), angle.sin().float()

    def run(rows, num_warps):
        stages = n.bit_length() - 1
        plain_fft_kernel[(m // rows,)](x, out, cos, sin, n, stages, rows, is_real, num_warps=num_warps)

    configs = [{"rows": r, "num_warps": 4} for r in (1, 2, 4, 8, 16) if 1024 <= r * n <= 2048]
    return run, configs


def fft_rows(record):
    dtypes = (torch.float32, torch.float16, torch.bfloat16)
    kinds = [
        (n, dtype, real) for n in (64, 128, 256, 512, 1024) for dtype in dtypes for real in (False, True)
    ]
    for n, dtype, real in kinds + [(n, torch.float32, False) for n in (96, 192, 384, 768)]:
        m = 4096
        x = torch.randn((m, n) if real else (m, n, 2), device="cuda").to(dtype)
        out = torch.empty((m, n, 2), device="cuda", dtype=dtype)
        choices = RADICES.get(n, [fft.radices_of(n)])
        tables = {radices: torch.from_numpy(fft.twiddles(radices)).cuda() for radices in choices}

        def run(radices, num_warps, turns):
            fft.fft(x, out, tables[radices], radices, None, num_warps, turns)

        configs = [{"radices": r, "num_warps": w, "turns": turns} for r in choices for w in (1, 2, 4)
                   for turns in (1, 2, 3) if turns == 1 or n >= 512]  # fmt: skip
        want = torch.view_as_real(torch.fft.fft(x.double() if real else torch.view_as_complex(x.double())))
        rounding = {torch.float32: 3e-7, torch.float16: 5e-4, torch.bfloat16: 4e-3}[dtype]

        of_torch = x.float() if dtype is torch.bfloat16 else x
        of_torch = of_torch if real else torch.view_as_complex(of_torch)
        runs, configs = {OURS: run}, {OURS: configs}
        if dtype is torch.float32 and not real and n & (n - 1) == 0:
            runs[TRITON], configs[TRITON] = plain_fft(x, out, real)
        result = row("Fourier transforms", f"{str(dtype)[6:]}, {'real' if real else 'complex'}, {n}")
        check = lambda: close(out.flatten(1), want.flatten(1), rounding)
        contest(record, result, runs, configs, check, [out], {"torch": lambda: torch.fft.fft(of_torch)}, rounds=3)  # fmt: skip


WORKLOADS = {
    "attention": attention_rows,
    "cluster_gemm": cluster_gemm_rows,
    "sharded_gemm": sharded_gemm_rows,
    "gemm": gemm_rows,
    "moe_align": moe_align_rows,
    "sparse_mla": sparse_mla_rows,
    "topk": topk_rows,
    "topk_selector": topk_selector_rows,
    "fft": fft_rows,
}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--record", help="the file of raw results to add to")
    parser.add_argument(
        "--cases", nargs="+", help="what the names of cases begin with, of tokens and selectors"
    )
    parser.add_argument("workloads", nargs="*", choices=[*WORKLOADS, []])
    options = parser.parse_args()
    CASES.extend(options.cases or [])
    record = Record(options.record, about())
    print(record.run.about)
    for name in options.workloads or WORKLOADS:
        WORKLOADS[name](record)


if __name__ == "__main__":
    main()
