"""What native code for Intel's PVC holds, of the loop that does the work: the table of docs/performance.md.

    python tests/bench/intel.py [WORD …]

Each kernel is compiled by `tilewright compile --target xe:pvc` and Intel's offline compiler (no GPU is needed), and the listing is read: the innermost loop
with most DPAS, or the longest loop of kernels without.

The bound is that of an execution unit (EU), which has one matrix engine: the clocks of its DPAS, as a share of those of whatever takes longest. A `dpas.8x8`
of 8×16 by 16×16 takes 8 clocks (4096 fp16 operations a clock of a core's 8 engines), an instruction on 16 lanes one, an exponential or another function four,
and bytes come by 64 a clock (512 of a core's L1 for 8 EUs). So it says what the code allows when all data is in L1, and nothing of memory.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import tilewright as triton
import tilewright.language as tl

EXAMPLES = Path(__file__).parents[2] / "examples"
COMMAND = [sys.executable, "-m", "tilewright"]

DPAS_CLOCKS, FUNCTION_CLOCKS, BYTES_A_CLOCK = 8, 4, 64


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """ML-Triton's Listing 1."""
    rows, columns = tl.program_id(0) * BM, tl.program_id(1) * BN
    a_blocks = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    b_blocks = tl.make_tensor_descriptor(b, [K, N], [N, 1], [BK, BN])
    c_blocks = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        total = tl.dot(a_blocks.load([rows, k]), b_blocks.load([k, columns]), total)
    c_blocks.store([rows, columns], total)


@triton.jit
def attend(
    query, k_blocks, v_blocks, acc, m, total, first, end, at_m, CAUSAL: tl.constexpr, BN: tl.constexpr
):
    """Folds keys into the running maximum, denominator and output."""
    for start in range(first, end, BN):
        scores = tl.dot(query, k_blocks.load([start, 0]).T)
        if CAUSAL:
            scores = tl.where(at_m[:, None] >= start + tl.arange(0, BN)[None, :], scores, float("-inf"))
        m_new = tl.maximum(m, tl.max(scores, axis=1))
        p = tl.exp2(scores - m_new[:, None])
        alpha = tl.exp2(m - m_new)
        total = total * alpha + tl.sum(p, axis=1)
        acc = tl.dot(p.to(tl.float16), v_blocks.load([start, 0]), acc * alpha[:, None])
        m = m_new
    return acc, m, total


@triton.jit
def attention(
    q, k, v, o, N,
    D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """FlashAttention-2, forward, of one head; the scale is in the queries."""
    first = tl.program_id(0) * BM
    q_blocks = tl.make_tensor_descriptor(q, [N, D], [D, 1], [BM, D])
    k_blocks = tl.make_tensor_descriptor(k, [N, D], [D, 1], [BN, D])
    v_blocks = tl.make_tensor_descriptor(v, [N, D], [D, 1], [BN, D])
    o_blocks = tl.make_tensor_descriptor(o, [N, D], [D, 1], [BM, D])
    m = tl.full((BM,), float("-inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    query = q_blocks.load([first, 0])
    at_m = first + tl.arange(0, BM)
    end = first if CAUSAL else N
    acc, m, total = attend(query, k_blocks, v_blocks, acc, m, total, 0, end, at_m, False, BN)
    if CAUSAL:
        acc, m, total = attend(query, k_blocks, v_blocks, acc, m, total, first, first + BM, at_m, True, BN)
    o_blocks.store([first, 0], (acc / total[:, None]).to(tl.float16))


HERE = Path(__file__)
HALF, SINGLE = "*fp16:16", "*fp32:16"
PAGED = f"{HALF},{HALF},{HALF},*i32:16,*i32:16,{SINGLE},{SINGLE},fp32,i32,i32:16,i32:16,i32:16"
PAGED_AT_ONCE = (
    f"{HALF},{HALF},{HALF},*i32:16,*i32:16,{HALF},{SINGLE},{SINGLE},*i32:16,fp32,i32,i32:16,i32:16,i32:16"
)
PRODUCT = f"{HALF},{HALF},{HALF},i32:16,i32:16,i32:16,i32:16,1,i32:16,1,i32:16,1"
# Name, where it is, signature, constants, warps.
KERNELS = [
    ("product 256×256×32", f"{HERE}::matmul", f"{HALF},{HALF},{SINGLE},i32:16,i32:16,i32:16", dict(BM=256, BN=256, BK=32), 32),
    ("`examples/matmul.py` 128×256×32", f"{EXAMPLES}/matmul.py::matmul_kernel", PRODUCT,
     dict(BLOCK_M=128, BLOCK_N=256, BLOCK_K=32, GROUP_M=8, ACC="tl.float32", PRECISION="'tf32'"), 16),
    *((f"attention D {d}{', causal' if causal else ''}", f"{HERE}::attention", f"{HALF},{HALF},{HALF},{HALF},i32:16",
       dict(D=d, BM=128, BN=64, CAUSAL=causal), warps) for d, warps in ((64, 16), (128, 16)) for causal in (False, True)),
    ("paged attention, a work group", f"{EXAMPLES}/paged_decode.py::part_kernel", PAGED,
     dict(D=64, GROUP=8, ROWS=16, PAGE=16, BLOCK=64), 4),
    ("paged attention, warps", f"{EXAMPLES}/paged_attention_warp.py::decode_kernel", PAGED_AT_ONCE,
     dict(D=64, GROUP=8, ROWS=16, PAGE=16, BLOCK=16, GROUPS=1, PARTS=4), 4),
    ("paged attention, warps, D 128", f"{EXAMPLES}/paged_attention_warp.py::decode_kernel", PAGED_AT_ONCE,
     dict(D=128, GROUP=8, ROWS=8, PAGE=16, BLOCK=16, GROUPS=1, PARTS=4), 4),
    ("softmax 1024 wide", f"{EXAMPLES}/softmax.py::softmax_kernel", f"{SINGLE},{SINGLE},i32:16,i32:16,i32:16", dict(BLOCK=1024), 4),
    ("layer norm", f"{EXAMPLES}/layer_norm.py::layer_norm_kernel",
     f"{SINGLE},{SINGLE},{SINGLE},{SINGLE},{SINGLE},{SINGLE},i32:16,i32:16,fp32", dict(BLOCK=1024), 4),
]  # fmt: skip


def native(kernel: str, signature: str, constants: dict, warps: int) -> tuple[list[str], str]:
    """The lines of a kernel's listing, and what the compiler says of registers."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = [
            *COMMAND,
            "compile",
            kernel,
            "--target",
            "xe:pvc",
            "--num-warps",
            str(warps),
            "-o",
            folder,
        ]
        arguments += ["--signature", signature]
        for name, value in constants.items():
            arguments += ["--constexpr", f"{name}={value}"]
        done = subprocess.run(arguments, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{kernel}\n{done.stdout}{done.stderr}")
        [listing] = Path(folder).glob("*.asm")
        return listing.read_text().splitlines(), done.stdout


def loops(lines: list[str]) -> list[list[str]]:
    """The loops' instructions, the inner ones without the outer."""
    labels, found = {}, {}
    for at, line in enumerate(lines):
        if label := re.match(r"\s*(L\d+):", line):
            labels[label[1]] = at
        elif (jump := re.search(r"\bjmpi\s+(L\d+)|\bwhile\b.*?(L\d+)", line)) and labels.get(
            to := jump[1] or jump[2], at
        ) < at:
            found[labels[to]] = max(at, found.get(labels[to], 0))
    inner = {a: b for a, b in found.items() if not any(a < x and y <= b for x, y in found.items())}
    instruction = re.compile(r"\s*(\(.*?\))?\s*[a-z]\w*")
    return [[x for x in lines[a : b + 1] if instruction.match(x)] for a, b in inner.items()]


def count(lines: list[str], pattern: str) -> int:
    """How many lines have it."""
    return sum(bool(re.search(pattern, line)) for line in lines)


def row(name: str, lines: list[str], said: str) -> str:
    """The table's row of a kernel."""
    registers = re.search(r"(\d+) registers", said)[1]
    found = loops(lines)
    if not found:
        return f"| {name} | {registers} | no loop | | | | | | | |"
    main = max(found, key=lambda loop: (count(loop, r"\bdpas\."), count(loop, "load_block2d"), len(loop)))
    dpas, waits = count(main, r"\bdpas\."), count(main, r"\bsync\.")
    brings = [re.search(r"rd:(\d+); load", line) for line in main]
    blocks = count(main, r"rd:[1-9]\d*; load_block2d")
    prefetches = count(main, r"rd:0; load_block2d")
    gathers = count(main, r"rd:[1-9]\d*; load\.ugm")
    # A message of 32 registers says 31.
    sizes = [int(found[1]) for found in brings if found]
    bytes_loaded = 64 * sum(32 if size == 31 else size for size in sizes)
    rest = len(main) - dpas - waits - blocks - prefetches - gathers
    functions = count(main, r"\bmath\.")
    clocks = {
        "DPAS": DPAS_CLOCKS * dpas,
        "instructions": len(main) - dpas - waits + (FUNCTION_CLOCKS - 1) * functions,
        "loads": bytes_loaded / BYTES_A_CLOCK,
    }
    most = max(clocks, key=clocks.get)
    bound = f"{100 * clocks['DPAS'] / clocks[most]:.0f} %, {most}" if dpas else "no products"
    share = f"{100 * dpas / (len(main) - waits):.0f} %"
    each = f"{bytes_loaded / dpas:.0f}" if dpas else ""
    spills = count(main, r"scratch|hword")
    loads = f"{blocks}" + (f" + {gathers} gathers" if gathers else "")
    return f"| {name} | {registers} | {dpas} | {loads} | {prefetches} | {rest} | {waits} | {spills} | {share} | {each} | {bound} |"


def main() -> None:
    """Prints the table, or the rows of kernels whose names have one of the words that are given."""
    print(
        "| kernel | registers | DPAS | loads | prefetches | the rest | waits | spills | DPAS share | bytes a DPAS | bound |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    )
    words = sys.argv[1:] or [""]
    for name, kernel, signature, constants, warps in KERNELS:
        if any(word in name for word in words):
            print(row(name, *native(kernel, signature, constants, warps)), flush=True)


if __name__ == "__main__":
    main()
