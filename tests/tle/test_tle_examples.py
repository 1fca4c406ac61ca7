"""The programs of ``examples/tle``: each checks itself."""

import math
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from common import Device

import tilewright as triton
from tilewright import distributed, tle
from tilewright.testing import simulated_mesh

FOLDER = Path(__file__).parents[2] / "examples" / "tle"
# They import each other, as programs do.
sys.path.append(str(FOLDER))


def example(name, folder=FOLDER):
    spec = spec_from_file_location(name, folder / f"{name}.py")
    module = module_from_spec(spec)
    # The source of a kernel is found by the module's name.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.py")))
@pytest.mark.parametrize("backend", ["interp", "ptxsim"])
def test_program(name, backend, monkeypatch, capsys):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", backend)
    example(name).main()
    assert capsys.readouterr().out


@pytest.mark.parametrize(
    ("tokens", "experts", "block", "programs"), [(1, 8, 16, 1), (300, 64, 16, 4), (5000, 60, 8, 8)]
)
@pytest.mark.parametrize("by", ["clusters", "clusters of 4", "grid", "kernels"])
def test_moe_align(device, tokens, experts, block, programs, by):
    module = example("moe_align")
    of_tokens = np.random.default_rng(tokens).integers(0, experts, tokens, dtype=np.int32)
    made = []

    def empty(size):
        made.append(device.array(np.full(size, -1, np.int32)))
        return made[-1]

    by, _, members = by.partition(" of ")
    module.align(
        device.array(of_tokens), experts, block, empty, programs, by, min(programs, int(members or 1))
    )
    # Who comes first to an expert is left to chance: backends need not agree.
    ordered, of_blocks, total = (Device.numpy(device, array).copy() for array in made[:3])
    places = int(total[0])
    assert places == sum(-(-n // block) * block for n in np.bincount(of_tokens, minlength=experts))
    there = ordered[:places] < tokens
    np.testing.assert_array_equal(np.sort(ordered[:places][there]), np.arange(tokens))
    owners = np.repeat(of_blocks[: places // block], block)
    np.testing.assert_array_equal(of_tokens[ordered[:places][there]], owners[there])
    assert (ordered[:places][~there] == tokens).all()


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32])
@pytest.mark.parametrize(
    ("rows", "n", "k", "radix"),
    [(2, 128, 8, 8), (3, 1000, 33, 8), (1, 2048, 64, 6), (2, 5, 5, 8), (1, 1, 1, 8)],
)
def test_topk(device, dtype, rows, n, k, radix):
    module = example("topk")
    x = np.random.default_rng(n).standard_normal((rows, n)).astype(dtype)
    x[:, ::3] = x[:, :1]
    x[0, n // 2] = np.inf
    values = device.array(np.zeros((rows, k), x.dtype))
    indices = device.array(np.zeros((rows, k), np.int32))
    module.topk(device.array(x), k, values, indices, radix, num_warps=4)
    want = np.argsort(-x.astype(np.float64), axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(Device.numpy(device, indices), want)
    np.testing.assert_array_equal(Device.numpy(device, values), np.take_along_axis(x, want, 1))


@pytest.mark.parametrize(
    ("n", "k", "parts", "radix", "room", "sample"),
    [
        (3000, 64, 1, 11, 4096, 0),
        (3000, 64, 1, 8, 512, 512),
        (3000, 64, 2, 11, 512, 512),
        (9000, 2048, 4, 11, 4096, 2048),
        (9000, 2048, 4, 11, 2048, 2048),
        (2001, 300, 4, 4, 512, 256),
    ],
)
def test_topk_selector(device, n, k, parts, radix, room, sample):
    module = example("topk_selector")
    x = np.random.default_rng(n).standard_normal((7, n)).astype(np.float32)
    x[1] = np.round(x[1])
    x[3] = 1.5
    x[4, ::2] = x[4, 0]
    x[0, ::7], x[0, 1::7] = -np.inf, np.nan
    # A sample of these leads to too few, and to too many.
    sampled = np.arange(n) // 32 % max(1, n // max(1, sample)) == 0
    x[5, sampled] += 100
    x[6, sampled] -= 100
    ends = np.array([n, n - 1, k // 2, n, n - 5, n, n - 1], np.int32)
    ends[2] = 0 if parts == 2 else k // 2
    indices = device.array(np.full((7, k), -2, np.int32))
    module.select(
        device.array(x), device.array(ends), k, indices, parts, radix, num_warps=4, room=room, sample=sample
    )
    # Who takes a place first is left to chance: backends need not agree.
    module.check(x, ends, k, Device.numpy(device, indices))


def as_complex(pairs):
    pairs = pairs.astype(np.float64)
    return pairs[..., 0] + 1j * pairs[..., 1]


def error_of_rows(actual, want) -> float:
    """The largest root mean square error of a row, as a share of the row's root mean square."""
    mean = lambda x: np.sqrt((abs(x) ** 2).mean(-1))
    return float((mean(actual - want) / mean(want)).max())


@pytest.mark.parametrize(
    ("radices", "rows", "num_warps"),
    [((8, 8), 4, 1), ((16, 16), 4, 2), ((32, 16), 2, 1), ((4, 4, 4), 3, 2), ((12, 8), 8, 2), ((7, 5), 8, 1), ((9, 5, 3), 2, 1), ((1,), 1, 1)],
)  # fmt: skip
@pytest.mark.parametrize(("real", "turns"), [(False, 1), (True, 1), (False, 2)])
def test_fft(device, radices, rows, num_warps, real, turns):
    module = example("fft")
    n = math.prod(radices)
    shape = (2 * rows + 1, n) if real else (2 * rows + 1, n, 2)
    x = np.random.default_rng(n).standard_normal(shape).astype(np.float32)
    out = device.array(np.full((2 * rows + 1, n, 2), np.nan, np.float32))
    table = device.array(module.twiddles(radices))
    module.fft(device.array(x), out, table, radices, rows, num_warps, turns)
    want = np.fft.fft(x.astype(np.float64) if real else as_complex(x))
    assert error_of_rows(as_complex(Device.numpy(device, out)), want) < 3e-7


@pytest.mark.parametrize(("dtype", "bound"), [(np.float16, 5e-4), (ml_dtypes.bfloat16, 4e-3)])
def test_fft_of_small_floats(device, dtype, bound):
    module = example("fft")
    x = np.random.default_rng(0).standard_normal((3, 96, 2)).astype(dtype)
    out = device.array(np.zeros((3, 96, 2), dtype))
    radices = module.radices_of(96)
    module.fft(device.array(x), out, device.array(module.twiddles(radices)), radices)
    want = np.fft.fft(as_complex(x))
    assert error_of_rows(as_complex(Device.numpy(device, out)), want) < bound


def test_radices_of_rows():
    module = example("fft")
    of = {1: (1,), 7: (7,), 64: (8, 8), 96: (12, 8), 1000: (10, 10, 10), 1024: (32, 32), 8192: (32, 32, 8)}
    assert {n: module.radices_of(n) for n in of} == of
    with pytest.raises(ValueError, match="rows of 74: a prime factor of more than 32"):
        module.radices_of(74)


@pytest.mark.parametrize(
    ("shape", "block", "slots", "programs"),
    [
        ((256, 256, 192), (128, 64, 64), 3, 2),
        ((200, 104, 72), (128, 96, 32), 2, 1),
        ((64, 64, 32), (128, 64, 32), 4, 3),
    ],
)
def test_gemm(device, shape, block, slots, programs):
    """Whole tiles and parts of them, more tiles than programs and fewer, fewer steps than slots."""
    rows, columns, inner = shape
    rng = np.random.default_rng(0)
    a = rng.integers(-2, 3, (rows, inner)).astype(np.float16)
    b = rng.integers(-2, 3, (columns, inner)).astype(np.float16)
    c = device.array(np.full((rows, columns), np.nan, np.float16))
    example("gemm").gemm(device.array(a), device.array(b), c, block, slots, programs)
    np.testing.assert_array_equal(device.numpy(c), a.astype(np.float32) @ b.T.astype(np.float32))


@pytest.mark.parametrize(
    ("shape", "block", "slots", "programs", "halves"),
    [
        ((256, 256, 192), (128, 64, 64), 3, 2, True),
        ((200, 104, 72), (128, 96, 32), 2, 1, False),
        ((64, 64, 32), (128, 64, 32), 4, 3, True),
        ((130, 64, 128), (64, 64, 32), 1, 2, False),
    ],
)
def test_gemm_by_a_pipe(device, shape, block, slots, programs, halves):
    rows, columns, inner = shape
    rng = np.random.default_rng(0)
    a = rng.integers(-2, 3, (rows, inner)).astype(np.float16)
    b = rng.integers(-2, 3, (columns, inner)).astype(np.float16)
    c = device.array(np.full((rows, columns), np.nan, np.float16))
    example("gemm_pipe").gemm(device.array(a), device.array(b), c, block, slots, programs, halves)
    np.testing.assert_array_equal(device.numpy(c), a.astype(np.float32) @ b.T.astype(np.float32))


@pytest.mark.parametrize(
    ("shape", "dtype", "causal", "block", "programs"),
    [
        ((2, 200, 64), np.float16, False, (128, 128), 2),
        ((3, 128, 64), ml_dtypes.bfloat16, False, (128, 96), 3),
        ((1, 320, 128), np.float16, True, (128, 128), 2),
        ((3, 256, 64), ml_dtypes.bfloat16, True, (128, 128), 1),
        ((1, 40, 128), np.float16, True, (128, 128), 4),
        ((1, 272, 128), ml_dtypes.bfloat16, False, (128, 80), 1),
    ],
)
def test_attention(device, shape, dtype, causal, block, programs):
    """Whole blocks of keys and parts of them, one block and several, more tiles than programs and fewer."""
    module = example("attention")
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal(shape).astype(dtype) for _ in range(3))
    o = device.array(np.full(shape, np.nan, dtype))
    module.attention(*(device.array(x) for x in (q, k, v)), o, causal, block, 2, programs)
    got, want = device.numpy(o).astype(np.float32), module.reference(q, k, v, causal)
    error = 1e-2 if dtype == np.float16 else 4e-2
    np.testing.assert_allclose(got, want, rtol=error, atol=error)


@pytest.mark.parametrize(
    ("shape", "block", "slots", "programs"),
    [
        ((512, 256, 192), (128, 128, 64), 3, 4),
        ((200, 104, 72), (128, 64, 32), 2, 2),
        ((130, 64, 32), (128, 64, 32), 4, 8),
    ],
)
def test_gemm_by_clusters(device, shape, block, slots, programs):
    rows, columns, inner = shape
    rng = np.random.default_rng(0)
    a = rng.integers(-2, 3, (rows, inner)).astype(np.float16)
    b = rng.integers(-2, 3, (columns, inner)).astype(np.float16)
    c = device.array(np.full((rows, columns), np.nan, np.float16))
    example("cluster_gemm").gemm(device.array(a), device.array(b), c, block, slots, programs)
    np.testing.assert_array_equal(device.numpy(c), a.astype(np.float32) @ b.T.astype(np.float32))


@pytest.mark.parametrize("device", ["interp", "ptxsim"], indirect=True)
@pytest.mark.parametrize("to_all", [False, True])
def test_sums_by_tiles_of_any_height(device, to_all):
    """Rows that are added up at once divide the tile's: another tile's may not have come."""
    gemms, mesh = example("gemm_across_devices"), tle.device_mesh({"device": 2})
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-2, 3, (n, 64)).astype(np.float16) for n in (96, 40))
    whole = a.astype(np.float32) @ b.T.astype(np.float32)
    with simulated_mesh(1, 2):
        cut = [distributed.from_parts([np.ascontiguousarray(x) for x in np.split(of, 2, 1)]) for of in (a, b)]
        parts = distributed.zeros((2, 48, 40), np.float16)
        c = distributed.zeros((96 if to_all else 48, 40), np.float16)
        gemms.summed_gemm(*cut, parts, c, mesh, to_all, block=(12, 32, 32), programs=3)
    for part, want in zip(c.parts, [whole] * 2 if to_all else np.split(whole, 2)):
        np.testing.assert_array_equal(part, want)


@pytest.mark.parametrize(
    ("heads", "d_value", "topk", "dtype"),
    [(64, 128, 300, np.float16), (128, 64, 64, ml_dtypes.bfloat16), (64, 512, 200, ml_dtypes.bfloat16)],
)
def test_sparse_mla(device, heads, d_value, topk, dtype):
    """Blocks that are full and that aren't, gaps, and a query that attends to nothing."""
    module = example("sparse_mla")
    rng = np.random.default_rng(0)
    queries, rows, d = 3, 320, d_value + 64
    q, kv = (rng.standard_normal(shape).astype(dtype) for shape in ((queries, heads, d), (rows, d)))
    index = np.array([rng.permutation(rows)[:topk] for _ in range(queries)], np.int32)
    index[0, rng.random(topk) < 0.5] = -1
    index[1] = -1
    o = device.array(np.full((queries, heads, d_value), np.nan, dtype))
    lse = device.array(np.full((queries, heads), np.nan, np.float32))
    module.sparse_mla(device.array(q), device.array(kv), device.array(index), o, lse)
    error = 1e-2 if dtype == np.float16 else 4e-2
    want, denominators = module.reference(q, kv, index, d_value)
    np.testing.assert_allclose(device.numpy(o).astype(np.float32), want, rtol=error, atol=error)
    some = [0, 2]
    np.testing.assert_allclose(device.numpy(lse)[some], denominators[some], rtol=1e-3, atol=1e-2)


def test_sparse_mla_keeps_to_its_registers(monkeypatch):
    """At the sizes that it is measured with: descriptors, row pointers and what else its loops repeat leave room for the accumulators."""
    module = example("sparse_mla")
    kernel, compiled = module.sparse_mla_kernel, []

    class Compiles:
        def __getitem__(self, grid):
            return lambda *args, **options: compiled.append(
                kernel.warmup(*args, grid=grid, target="cuda:90", **options)
            )

    monkeypatch.setattr(module, "sparse_mla_kernel", Compiles())
    q, kv, o = (np.zeros(shape, ml_dtypes.bfloat16) for shape in ((2, 128, 576), (64, 576), (2, 128, 512)))
    module.sparse_mla(q, kv, np.zeros((2, 2048), np.int32), o, np.zeros((2, 128), np.float32))
    assert compiled[0].metadata.n_spills == 0


@pytest.mark.parametrize(
    ("name", "text", "instead", "fault"),
    [
        (
            "attention",
            "            acc = tle.gpu.wgmma_wait(0, acc)\n            v_pipe.release(i)\n",
            "            v_pipe.release(i)\n            acc = tle.gpu.wgmma_wait(0, acc)\n",
            "shared-memory race: the asynchronous proxy writes .* a `wgmma` of warp . read it",
        ),
        (
            "cluster_gemm",
            "tle.remote(empty[i % SLOTS], member, PAIR)",
            "empty[i % SLOTS]",
            "shared-memory race: the asynchronous proxy writes",
        ),
        (
            "cluster_gemm",
            "acc = tle.gpu.wgmma_wait(1, acc)",
            "acc = tle.gpu.wgmma_wait(2, acc)",
            "shared-memory race: the asynchronous proxy writes .* a `wgmma` of warp . read it",
        ),
        (
            "sparse_mla",
            "    tle.gpu.barrier_wait(asked, phaseIdx=0)\n    q_rest = p.slot(0).load()\n",
            "    q_rest = p.slot(0).load()\n",
            "asynchronous copy used before its wait",
        ),
        (
            "sparse_mla",
            "        acc = tle.gpu.wgmma_wait(0, acc)\n        right_0.release(pair)\n",
            "        right_0.release(pair)\n        acc = tle.gpu.wgmma_wait(0, acc)\n",
            "shared-memory race: .* a `wgmma` of warp . read it",
        ),
        (
            "gemm_across_devices",
            "            tle.signal_wait(None, block, target=TEAM)\n",
            "            pass\n",
            "global-memory race",
        ),
        (
            "gemm_across_devices",
            "        tle.signal_wait(None, tile, target=mesh.size)\n",
            "        pass\n",
            "global-memory race",
        ),
        (
            "gemm_across_devices",
            "        tle.signal(None, owner, tile)\n",
            "        pass\n",
            "deadlock",
        ),
        (
            "ring_attention",
            "                tle.signal_wait(None, chunk, target=COPIERS)\n",
            "                pass\n",
            "global-memory race",
        ),
        ("sparse_mla", "tle.gpu.barrier_wait(bars[0])", "pass", "shared-memory race"),
        ("sparse_mla", "tle.gpu.barrier_wait(bars[1])", "pass", "shared-memory race"),
        ("sparse_mla", "tle.gpu.barrier_wait(bars[2])", "pass", "uninitialized shared memory"),
        ("sparse_mla", "tle.gpu.barrier_wait(bars[3])", "pass", "shared-memory race"),
    ],
)
def test_simulator_reports_what_lacks_a_wait(name, text, instead, fault, monkeypatch, tmp_path):
    source = (FOLDER / f"{name}.py").read_text()
    assert source.count(text) == 1
    (tmp_path / f"{name}.py").write_text(source.replace(text, instead))
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "ptxsim")
    with pytest.raises(triton.KernelError, match=fault):
        example(name, tmp_path).main()


@pytest.mark.parametrize("backend", ["interp", "ptxsim"])
def test_keys_that_nobody_waits_for_race(backend, monkeypatch, tmp_path):
    """A rank that reads too early often tells the one that is to write before it has written, which relies on nothing of it."""
    source = (FOLDER / "ring_attention.py").read_text()
    for text, instead in (
        ("                tle.signal_wait(None, chunk, target=COPIERS)\n", "                pass\n"),
        ("for devices in (3, 2)", "for devices in (2,)"),
        ("for push in (False, True)", "for push in (True,)"),
    ):
        assert source.count(text) == 1
        source = source.replace(text, instead)
    (tmp_path / "ring_attention.py").write_text(source)
    monkeypatch.setenv("TILEWRIGHT_BACKEND", backend)
    with pytest.raises(triton.KernelError, match="race"):
        example("ring_attention", tmp_path).main()
