"""Ranks that NVSHMEM's functions reach: its library linked into kernels, and in the simulator one that finds other ranks' memory as a simulated mesh has it."""

import numpy as np
import pytest
from test_partition_barriers import N, handed_on, several_ranks
from test_ranks import all_reduce_kernel

import tilewright as triton
import tilewright.language as tl
from tilewright import distributed, tle
from tilewright.runtime import nvshmem
from tilewright.runtime import ranks as runtime_ranks
from tilewright.testing import simulated_mesh

NODES = 3
MESH = tle.device_mesh({"node": NODES})


def stand_in(ranks):
    """Functions of NVSHMEM's names as LLVM IR: a rank's piece lies as far behind the one before as a simulated mesh has it."""
    lines = [
        'define void @nvshmem_quiet() { call void asm sideeffect "fence.acq_rel.sys;", "~{memory}"() ret void }',
        "define internal i64 @there(ptr %p, i32 %rank) {",
        "  %address = ptrtoint ptr %p to i64",
        f"  %inside = sub i64 %address, {ranks.base}",
        f"  %offset = urem i64 %inside, {ranks.stride}",
        "  %number = zext i32 %rank to i64",
        f"  %piece = mul i64 %number, {ranks.stride}",
        "  %begin = add i64 %piece, %offset",
        f"  %place = add i64 %begin, {ranks.base}",
        "  ret i64 %place",
        "}",
    ]

    def function(name, result, operands, text, constraints):
        params = "".join(f"i{n} %v{k}, " for k, n in enumerate(operands))
        args = "".join(f", i{n} %v{k}" for k, n in enumerate(operands))
        call = f'call {result} asm sideeffect "{text}", "{constraints}"(i64 %at{args})'
        lines.append(f"define {result} @nvshmem_{name}(ptr %p, {params}i32 %rank) {{")
        lines.append("  %at = call i64 @there(ptr %p, i32 %rank)")
        lines.append(
            f"  %old = {call}\n  ret {result} %old\n}}" if result != "void" else f"  {call}\n  ret void\n}}"
        )

    for bits, letter in ((16, "h"), (32, "r"), (64, "l")):
        of = f"uint{bits}"
        function(
            f"{of}_g", f"i{bits}", [], f"ld.relaxed.sys.global.b{bits} $0, [$1];", f"={letter},l,~{{memory}}"
        )
        function(
            f"{of}_p", "void", [bits], f"st.relaxed.sys.global.b{bits} [$0], $1;", f"l,{letter},~{{memory}}"
        )
        if bits == 16:
            continue
        for name, operation in (
            ("fetch_add", f"add.u{bits}"),
            ("fetch_and", f"and.b{bits}"),
            ("fetch_or", f"or.b{bits}"),
            ("fetch_xor", f"xor.b{bits}"),
            ("swap", f"exch.b{bits}"),
        ):
            text = f"atom.relaxed.sys.global.{operation} $0, [$1], $2;"
            function(f"{of}_atomic_{name}", f"i{bits}", [bits], text, f"={letter},l,{letter},~{{memory}}")
        text = f"atom.relaxed.sys.global.cas.b{bits} $0, [$1], $2, $3;"
        function(
            f"{of}_atomic_compare_swap",
            f"i{bits}",
            [bits, bits],
            text,
            f"={letter},l,{letter},{letter},~{{memory}}",
        )
    # LLVM IR has no register of 8 bits for these.
    lines.append(
        "define i8 @nvshmem_uint8_g(ptr %p, i32 %rank) {\n  %at = call i64 @there(ptr %p, i32 %rank)"
    )
    lines.append(
        '  %old = call i16 asm sideeffect "ld.relaxed.sys.global.u8 $0, [$1];", "=h,l,~{memory}"(i64 %at)'
    )
    lines.append("  %byte = trunc i16 %old to i8\n  ret i8 %byte\n}")
    lines.append(
        "define void @nvshmem_uint8_p(ptr %p, i8 %v, i32 %rank) {\n  %at = call i64 @there(ptr %p, i32 %rank)"
    )
    lines.append("  %wide = zext i8 %v to i16")
    lines.append(
        '  call void asm sideeffect "st.relaxed.sys.global.u8 [$0], $1;", "l,h,~{memory}"(i64 %at, i16 %wide)'
    )
    lines.append("  ret void\n}")
    # The lanes of a warp take bytes in turn.
    lines.append("""define void @nvshmemx_putmem_nbi_warp(ptr %p, ptr %from, i64 %n, i32 %rank) convergent {
entry:
  %at = call i64 @there(ptr %p, i32 %rank)
  %number = call i32 asm "mov.u32 $0, %laneid;", "=r"()
  %lane = zext i32 %number to i64
  br label %head
head:
  %i = phi i64 [ %lane, %entry ], [ %next, %body ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %body, label %done
body:
  %source = getelementptr i8, ptr %from, i64 %i
  %byte = load i8, ptr %source
  %wide = zext i8 %byte to i16
  %target = add i64 %at, %i
  call void asm sideeffect "st.relaxed.sys.global.u8 [$0], $1; // sent", "l,h,~{memory}"(i64 %target, i16 %wide)
  %next = add i64 %i, 32
  br label %head
done:
  ret void
}""")
    return "\n".join(lines)


@pytest.fixture
def by_library(monkeypatch, tmp_path):
    """What a launch on the simulated mesh is given."""
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "ptxsim")

    def options():
        path = tmp_path / "nvshmem.ll"
        path.write_text(stand_in(runtime_ranks.current()))
        return {"extern_libs": {"nvshmem": str(path)}}

    return options


@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float32, np.int64])
@pytest.mark.parametrize("n", [96, 256])
def test_loads(by_library, dtype, n):
    rng = np.random.default_rng(0)
    data = [rng.integers(-8, 8, 2 * n).astype(dtype) for _ in range(NODES)]
    with simulated_mesh(NODES, 1):
        x, out, how = distributed.from_parts(data), distributed.zeros(2 * n, dtype), by_library()
        for _ in range(2):
            kernel = all_reduce_kernel[(2,)](x, out, MESH, n, **how)
    for part in out.parts:
        np.testing.assert_array_equal(part, np.sum(data, 0, dtype))
    assert "ld.relaxed.sys.global" in kernel.asm["ptx"]


@triton.jit
def ring_kernel(x_ptr, out_ptr, counts_ptr, mesh: tl.constexpr, N: tl.constexpr):
    me, at = tle.shard_id(mesh, 0), tl.arange(0, N)
    next = (me + 1) % mesh.size
    there = tle.remote(out_ptr + at, next, mesh)
    tl.store(there, tl.load(x_ptr + at), mask=at < N - 3)
    count = tle.remote(counts_ptr, 0, mesh)
    tl.atomic_add(count, me + 1, sem="relaxed", scope="sys")
    tl.atomic_or(count + 1, 1 << me, sem="relaxed", scope="sys")
    tl.atomic_cas(count + 2, 0, 7, scope="sys")
    tl.atomic_xchg(tle.remote(counts_ptr + 3, next, mesh), me + 10, scope="sys")
    tle.signal(None, next, 5)
    tle.signal_wait(None, 5, target=1)
    tl.store(x_ptr + at, tl.load(out_ptr + at))
    tle.distributed_barrier(mesh)


def test_stores_atomics_and_signals(by_library):
    data = [np.arange(128, dtype=np.float32) + 1000 * rank for rank in range(NODES)]
    with simulated_mesh(NODES, 1):
        x, out, counts = distributed.from_parts(data), distributed.zeros(128), distributed.zeros(4, np.int32)
        ring_kernel[(1,)](x, out, counts, MESH, 128, **by_library())
    for rank in range(NODES):
        want = np.where(np.arange(128) < 125, data[rank - 1], 0)
        np.testing.assert_array_equal(x.parts[rank], want)
        assert counts.parts[rank][3] == (rank - 1) % NODES + 10
    assert list(counts.parts[0][:3]) == [1 + 2 + 3, 0b111, 7]


@triton.jit
def send_kernel(x_ptr, mesh: tl.constexpr, N: tl.constexpr):
    next = (tle.shard_id(mesh, 0) + 1) % mesh.size
    tl.store(tle.remote(x_ptr + tl.arange(0, N), next, mesh), 1.0)


def test_what_is_sent_is_there_at_the_end(by_library):
    with simulated_mesh(NODES, 1):
        x = distributed.zeros(64)
        kernel = send_kernel[(1,)](x, MESH, 64, **by_library())
    # The library's own wait stands behind the last of what it sends.
    end = kernel.asm["ptx"].rsplit("st.relaxed.sys", 1)[1]
    assert end.count("fence.acq_rel.sys") == 2, "before the wait, and the one of the stand-in"


@triton.jit
def move_kernel(
    x_ptr, out_ptr, source: tl.constexpr, to: tl.constexpr, shape: tl.constexpr, HOW: tl.constexpr
):
    tle.reshard(tle.make_sharded_tensor(x_ptr, source, shape), to, out=out_ptr, algorithm=HOW)


@triton.jit
def value_kernel(x_ptr, out_ptr, source: tl.constexpr, to: tl.constexpr, shape: tl.constexpr):
    part = tl.load(tle.reshard(tle.make_sharded_tensor(x_ptr, source, shape), to))
    at = tl.arange(0, part.shape[0])[:, None] * part.shape[1] + tl.arange(0, part.shape[1])[None, :]
    tl.store(out_ptr + at, part)


SPECS = {
    "whole": tle.sharding(MESH),
    "rows": tle.sharding(MESH, ["node"]),
    "columns": tle.sharding(MESH, [None, "node"]),
    "partial": tle.sharding(MESH, partial=["node"]),
}


@pytest.mark.parametrize(
    ("source", "to", "how"),
    [
        ("partial", "whole", "one_shot"),
        ("partial", "whole", "two_shot"),
        ("partial", "whole", "ring"),
        ("partial", "rows", "push"),
        ("rows", "whole", "push"),
        ("rows", "columns", "low_latency"),
        ("partial", "columns", "low_latency"),
        ("rows", "columns", None),
    ],
)
def test_reshard(by_library, source, to, how):
    shape = (12, 12)
    rng = np.random.default_rng(1)
    given = rng.integers(-8, 8, (NODES, *shape)).astype(np.float32)
    whole = given.sum(0)
    cut = {
        "whole": lambda x: [x] * NODES,
        "rows": lambda x: np.split(x, NODES),
        "columns": lambda x: np.split(x, NODES, 1),
    }
    parts = list(given) if source == "partial" else cut[source](whole)
    with simulated_mesh(NODES, 1):
        x = distributed.from_parts([np.ascontiguousarray(part) for part in parts])
        out = distributed.zeros(SPECS[to].local_shape(shape))
        for _ in range(2):
            if how is None:
                value_kernel[(1,)](x, out, SPECS[source], SPECS[to], shape, **by_library())
            else:
                move_kernel[(2,)](x, out, SPECS[source], SPECS[to], shape, how, **by_library())
    for part, want in zip(out.parts, cut[to](whole)):
        np.testing.assert_array_equal(part, want)


@triton.jit
def refused_kernel(x_ptr, mesh: tl.constexpr, WHAT: tl.constexpr):
    there = tle.remote(x_ptr, 1, mesh)
    if WHAT == "max":
        tl.atomic_max(there, 1, scope="sys")
    else:
        tle.signal_wait(None, 0)


@pytest.mark.parametrize(
    ("what", "message"), [("max", "atomic max .*NVSHMEM"), ("wait", "signal_wait without `target`")]
)
def test_what_it_has_not(by_library, what, message):
    with simulated_mesh(NODES, 1):
        x = distributed.zeros(1, np.int32)
        with pytest.raises(triton.CompilationError, match=f"not supported yet.*{message}"):
            refused_kernel[(1,)](x, MESH, what, **by_library())


def test_only_code_for_gpus(by_library, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "interp")
    with simulated_mesh(NODES, 1):
        x, out = distributed.zeros(64), distributed.zeros(64)
        with pytest.raises(triton.CompilationError, match="NVSHMEM"):
            all_reduce_kernel[(1,)](x, out, MESH, 64, **by_library())


def test_which_way_to_reach_ranks(monkeypatch):
    hosts = ["a"]
    monkeypatch.setattr(distributed, "_hosts", lambda group: hosts)
    monkeypatch.setattr(nvshmem, "folder", lambda: None)
    assert distributed._choose(None, None) == distributed._choose("peer", None) == "peer"
    with pytest.raises(ValueError, match="must be"):
        distributed._choose("mail", None)
    with pytest.raises(RuntimeError, match="not installed: pip install nvidia-nvshmem"):
        distributed._choose("nvshmem", None)
    hosts.append("b")
    with pytest.raises(ValueError, match="one host"):
        distributed._choose("peer", None)
    with pytest.raises(RuntimeError, match=r"other hosts \(a, b\) by NVSHMEM: .*pip install"):
        distributed._choose(None, None)


@pytest.mark.skipif(nvshmem.folder() is None, reason="NVSHMEM is not installed")
def test_its_own_library_is_linked(monkeypatch):
    library = nvshmem.device_library(90)
    monkeypatch.setenv("TRITON_OVERRIDE_ARCH", "sm90")
    with simulated_mesh(NODES, 1):
        x, out = distributed.zeros(256), distributed.zeros(256)
        how = {"extern_libs": {"nvshmem": str(library)}, "grid": (1,)}
        kernels = [
            all_reduce_kernel.warmup(x, out, MESH, 256, **how),
            ring_kernel.warmup(x, out, distributed.zeros(4, np.int32), MESH, 128, **how),
        ]
    for kernel in kernels:
        # By this variable, which is to be seen from outside, NVSHMEM's functions know where everything is.
        assert ".visible .const .align 8 .b8 nvshmemi_device_state_d" in kernel.asm["ptx"]


@triton.jit
def beside_in_memory_kernel(x_ptr, out_ptr, source: tl.constexpr, to: tl.constexpr, shape: tl.constexpr):
    tle.gpu.warp_specialize(
        [(nothing, (x_ptr,)), (move_kernel, (x_ptr, out_ptr, source, to, shape, "push"))], [4], [40]
    )


@pytest.mark.parametrize("kernel", ["all warps", "a partition"])
@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float64])
@pytest.mark.parametrize(
    ("source", "to", "shape", "sends"),
    [
        # Whole parts, one of which is more than a message takes, rows of them, and what is too short.
        ("rows", "whole", (3, 12000), True),
        ("rows", "whole", (9, 700), True),
        ("columns", "whole", (5, 3 * 515), True),
        ("rows", "columns", (9, 3 * 520), True),
        ("columns", "rows", (9, 3 * 520), True),
        ("columns", "whole", (5, 21), False),
        # Sums, tiles of which are sent from where they lie, and from where they stay when they are added up.
        ("partial", "whole", (7, 3001), True),
        ("partial", "rows", (9, 700), False),
    ],
)
def test_messages_of_more_than_a_word(by_library, kernel, dtype, source, to, shape, sends):
    whole = np.random.default_rng(0).integers(-100, 100, shape).astype(dtype)
    cut = {
        "whole": lambda: [whole] * NODES,
        "rows": lambda: np.split(whole, NODES),
        "columns": lambda: [np.ascontiguousarray(part) for part in np.split(whole, NODES, 1)],
        "partial": lambda: [whole // 3 - 1, whole - whole // 3, np.ones_like(whole)],
    }
    with simulated_mesh(NODES, 1):
        x, want = distributed.from_parts(cut[source]()), cut[to]()
        out = distributed.zeros(want[0].shape, dtype)
        args = x, out, SPECS[source], SPECS[to], shape
        if kernel == "all warps":
            made = move_kernel[(2,)](*args, "push", **by_library())
        else:
            made = beside_in_memory_kernel[(2,)](*args, **by_library())
    for part, wanted in zip(out.parts, want):
        np.testing.assert_array_equal(part, wanted)
    assert ("// sent" in made.asm["ptx"]) == sends


def test_barriers_of_partitions(by_library):
    with simulated_mesh(NODES, 1):
        x, y = (distributed.zeros((3, 2, N), np.int32) for _ in range(2))
        several_ranks[(2,)](x, y, tle.device_mesh({"node": NODES, "block": 2}), N, **by_library())
    for of, n in ((x, 5), (y, 3)):
        for program in range(2):
            rows = [part[2, program] for part in of.parts]
            np.testing.assert_array_equal(rows, handed_on(n, NODES))


@triton.jit
def nothing(x_ptr):
    tl.debug_barrier()


@triton.jit
def beside_kernel(x_ptr, out_ptr, source: tl.constexpr, to: tl.constexpr, shape: tl.constexpr):
    tle.gpu.warp_specialize(
        [(nothing, (x_ptr,)), (value_kernel, (x_ptr, out_ptr, source, to, shape))], [4], [40]
    )


@pytest.mark.parametrize("shape", [(6, 9), (96, 96)])
def test_values_moved_by_a_partition(by_library, shape):
    data = list(np.random.default_rng(0).integers(-8, 8, (NODES, *shape)).astype(np.float32))
    with simulated_mesh(NODES, 1):
        x, out = distributed.from_parts(data), distributed.zeros(shape)
        for _ in range(2):
            beside_kernel[(1,)](x, out, SPECS["partial"], SPECS["whole"], shape, **by_library())
    for part in out.parts:
        np.testing.assert_array_equal(part, sum(data))
