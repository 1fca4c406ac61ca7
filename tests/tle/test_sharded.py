"""Tensors that are distributed over the devices of a simulated mesh: every transition, arithmetic, products, against NumPy."""

import itertools
import math
import os

import ml_dtypes
import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl
from tilewright import distributed, tle
from tilewright.testing import simulated_mesh

MESH = tle.device_mesh({"node": 2, "device": 4})

pytestmark = pytest.mark.parametrize("device", ["interp", "ptxsim"], indirect=True)


def spec(split=(), partial=(), mesh=MESH):
    return tle.sharding(mesh, split=list(split), partial=list(partial))


def parts_of(x, how, seed=0):
    """What each rank has of a NumPy array: for partial sums, values that add up to it."""
    mesh, names = how.mesh, how.mesh.dim_names
    parts = [None] * mesh.size
    shares = {}
    for rank in range(mesh.size):
        at = dict(zip(names, np.unravel_index(rank, mesh.shape)))
        axes = how.partial
        outside = tuple(at[a] for a in names if a not in axes)
        if outside not in shares:
            count = math.prod(mesh.shape[names.index(a)] for a in axes)
            # Along whole axes all have the same: shares go by the coordinates along partial axes alone.
            all_shares = np.random.default_rng(seed).integers(-4, 5, (count, *x.shape)).astype(x.dtype)
            all_shares[-1] = x - all_shares[:-1].sum(0, dtype=x.dtype)
            shares[outside] = all_shares
        number = 0
        for a in axes:
            number = number * mesh.shape[names.index(a)] + at[a]
        part = shares[outside][number]
        for d in range(len(how.split)):
            for a in how.split[d]:
                part = np.split(part, mesh.shape[names.index(a)], d)[at[a]]
        parts[rank] = np.ascontiguousarray(part)
    return parts


def whole_of(parts, how, shape):
    """The array whose parts these are; all members that should have the same must have it."""
    mesh, names = how.mesh, how.mesh.dim_names
    out, seen = np.zeros(shape, parts[0].dtype), {}
    for rank, part in enumerate(parts):
        at = dict(zip(names, np.unravel_index(rank, mesh.shape)))
        place = []
        for d in range(len(shape)):
            block = 0
            for a in how.split[d] if d < len(how.split) else ():
                block = block * mesh.shape[names.index(a)] + at[a]
            place.append(slice(block * part.shape[d], (block + 1) * part.shape[d]))
        key = (tuple((s.start, s.stop) for s in place), tuple(at[a] for a in how.partial))
        if key in seen:
            np.testing.assert_array_equal(part, seen[key])
        else:
            seen[key] = part
            out[tuple(place)] += part
    return out


def array(shape, dtype=np.float32, seed=1):
    return np.random.default_rng(seed).integers(-8, 9, shape).astype(dtype)


@triton.jit
def flat(shape: tl.constexpr):
    return tl.arange(0, shape[0])[:, None] * shape[1] + tl.arange(0, shape[1])[None, :]


@triton.jit
def reshard_kernel(
    x_ptr, out_ptr, source: tl.constexpr, to: tl.constexpr, shape: tl.constexpr, AS_VALUE: tl.constexpr
):
    x = tle.make_sharded_tensor(x_ptr, sharding=source, shape=shape)
    if AS_VALUE:
        x = tle.make_sharded_tensor(tl.load(x), source)
    y = tle.reshard(x, spec=to)
    part = tl.load(y)
    tl.store(out_ptr + flat(part.shape), part)


def check_reshard(source, to, shape, dtype=np.float32, as_value=False):
    x = array(shape, dtype)
    out = distributed.zeros(to.local_shape(shape), dtype)
    reshard_kernel[(1,)](distributed.from_parts(parts_of(x, source)), out, source, to, shape, as_value)
    np.testing.assert_array_equal(whole_of(out.parts, to, shape), x)


STATES = {
    "B": {},
    "S0": {"split": ["device"]},
    "S1": {"split": [None, "device"]},
    "S0 both": {"split": [["node", "device"]]},
    "S1 mixed": {"split": ["device", "node"]},
    "P": {"partial": ["device"]},
    "P both": {"partial": ["node", "device"]},
    "P and S": {"split": ["node"], "partial": ["device"]},
}


def allowed(source, to):
    return all(to.axis_state(a) != "P" or source.axis_state(a) == "P" for a in MESH.dim_names)


@pytest.mark.parametrize("as_value", [False, True])
@pytest.mark.parametrize("source", STATES)
def test_every_transition(device, source, as_value):
    for to in STATES:
        a, b = spec(**STATES[source]), spec(**STATES[to])
        with simulated_mesh(2, 4):
            if allowed(a, b):
                check_reshard(a, b, (16, 24), as_value=as_value)
            else:
                with pytest.raises(triton.CompilationError, match="cannot become a partial sum"):
                    check_reshard(a, b, (16, 24), as_value=as_value)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64, np.int8, np.int32, np.int64])
def test_dtypes(device, dtype):
    for source, to in (("S0", "B"), ("P", "B"), ("P", "S0"), ("S0", "S1")):
        with simulated_mesh(2, 4):
            check_reshard(spec(**STATES[source]), spec(**STATES[to]), (8, 16), dtype)


@pytest.mark.parametrize("shape", [(8, 4), (96, 96)])
@pytest.mark.parametrize("as_value", [False, True])
def test_parts_of_a_mesh(device, shape, as_value):
    # Only the ranks of one node meet; the others do nothing.
    mesh = MESH[1]
    source, to = spec(["device"], mesh=mesh), spec(mesh=mesh)
    x = array(shape)
    with simulated_mesh(2, 4):
        parts = np.split(x, 4)
        data = distributed.from_parts([0 * part for part in parts] + parts)
        out = distributed.zeros(shape)
        reshard_kernel[(1,)](data, out, source, to, shape, as_value)
    for rank, part in enumerate(out.parts):
        np.testing.assert_array_equal(part, x if rank >= 4 else 0 * x)


@triton.jit
def chain_kernel(x_ptr, out_ptr, specs: tl.constexpr, factors: tl.constexpr, shape: tl.constexpr):
    x = tle.make_sharded_tensor(x_ptr, specs[0], shape)
    for k in tl.static_range(1, len(specs)):
        x = tle.reshard(x * factors[k] + x, specs[k])
    part = tl.load(x)
    tl.store(out_ptr + flat(part.shape), part)


def random_chain(seed, most):
    """A mesh of at most so many ranks, and specifications that can follow each other."""
    rng = np.random.default_rng(seed)
    while True:
        sizes = rng.choice([1, 2, 3, 4], rng.integers(1, 4))
        if math.prod(sizes) <= most:
            break
    names = [f"axis{k}" for k in range(len(sizes))]
    levels = [(name, int(n)) for name, n in zip(names, sizes)]
    cut = int(rng.integers(0, len(levels)))
    topology = {"node": levels[:cut]} if cut else {}
    mesh = tle.device_mesh({**topology, "device": levels[cut:]})

    def one(before):
        split, partial = [[], []], []
        for name in rng.permutation(names):
            partial_before = before is None or before.axis_state(str(name)) == "P"
            state = rng.choice(["B", "0", "1", "P"] if partial_before else ["B", "0", "1"])
            if state == "P":
                partial.append(str(name))
            elif state != "B":
                split[int(state)].append(str(name))
        return tle.sharding(mesh, split, partial)

    specs = [one(None)]
    for _ in range(int(rng.integers(1, 5))):
        specs.append(one(specs[-1]))
    factors = tuple(int(f) for f in rng.integers(-2, 3, len(specs)))
    shape = tuple(math.prod(sizes) * int(n) for n in rng.integers(1, 3, 2))
    return mesh, tuple(specs), factors, tuple(int(n) for n in shape)


def test_random_chains(device):
    """As many as ``TILEWRIGHT_SHARDED_CHAINS`` says, on up to 64 ranks (8 in the simulator, a quarter as many)."""
    count, first = int(os.environ.get("TILEWRIGHT_SHARDED_CHAINS", "24")), int(os.environ.get("SEED", "0"))
    simulated = device.backend == "ptxsim"
    for seed in range(first, first + (count // 4 if simulated else count)):
        mesh, specs, factors, shape = random_chain(seed, 8 if simulated else 64)
        x = array(shape, np.int32, seed)
        nodes = math.prod(n for n, level in zip(mesh.shape, mesh.dim_levels) if level == "node")
        with simulated_mesh(nodes, mesh.size // nodes, programs=1, scratch=1 << 16):
            out = distributed.zeros(specs[-1].local_shape(shape), np.int32)
            data = distributed.from_parts(parts_of(x, specs[0], seed))
            chain_kernel[(1,)](data, out, specs, factors, shape)
        want = x * math.prod(f + 1 for f in factors[1:])
        np.testing.assert_array_equal(whole_of(out.parts, specs[-1], shape), want, f"seed {seed}")


@triton.jit
def arithmetic_kernel(a_ptr, b_ptr, out_ptr, how: tl.constexpr, shape: tl.constexpr):
    a = tle.make_sharded_tensor(a_ptr, how, shape)
    b = tle.make_sharded_tensor(b_ptr, how, shape)
    y = tl.maximum(a * 2 - b, b) + tl.abs(a)
    tl.store(tle.make_sharded_tensor(out_ptr, how, shape), tl.load(y))


def test_arithmetic_of_parts(device):
    how, shape = spec(["device", "node"]), (8, 8)
    a, b = array(shape), array(shape, seed=2)
    with simulated_mesh(2, 4):
        out = distributed.zeros(how.local_shape(shape))
        arithmetic_kernel[(1,)](*(distributed.from_parts(parts_of(x, how)) for x in (a, b)), out, how, shape)
    np.testing.assert_array_equal(whole_of(out.parts, how, shape), np.maximum(a * 2 - b, b) + abs(a))


@triton.jit
def sum_kernel(x_ptr, out_ptr, how: tl.constexpr, whole: tl.constexpr, shape: tl.constexpr):
    x = tle.make_sharded_tensor(x_ptr, how, shape)
    total = tle.reshard(x.sum(1), whole)
    tl.store(out_ptr + tl.arange(0, shape[0]), tl.load(total))


def test_sum_over_a_split_dimension(device):
    how, shape = spec([None, "device"]), (8, 16)
    x = array(shape)
    with simulated_mesh(2, 4):
        out = distributed.zeros(8)
        sum_kernel[(1,)](distributed.from_parts(parts_of(x, how)), out, how, spec(), shape)
    for part in out.parts:
        np.testing.assert_array_equal(part, x.sum(1))


@triton.jit
def from_numbers_kernel(x_ptr, out_ptr, how: tl.constexpr, N: tl.constexpr):
    x = tle.make_sharded_tensor(x_ptr, how, [N])
    at = tl.arange(0, N // 8)
    tl.store(out_ptr + at, tl.load(1 - x))
    tl.store(out_ptr + N // 8 + at, tl.load(6.0 / +x))
    tl.store(out_ptr + 2 * (N // 8) + at, tl.load(tl.sigmoid(x)))


def test_numbers_in_front_of_a_sharded_tensor(device):
    x, how = np.arange(1, 33, dtype=np.float32), spec([["node", "device"]])
    with simulated_mesh(2, 4):
        out = distributed.zeros(12)
        from_numbers_kernel[(1,)](distributed.from_parts(parts_of(x, how)), out, how, 32)
    for rank, part in enumerate(out.parts):
        own = x[4 * rank : 4 * rank + 4]
        np.testing.assert_allclose(part, [*(1 - own), *(6 / own), *(1 / (1 + np.exp(-own)))], rtol=1e-5)


@triton.jit
def refused_kernel(x_ptr, out_ptr, how: tl.constexpr, WHAT: tl.constexpr):
    x = tle.make_sharded_tensor(x_ptr, how, [8, 16])
    if WHAT == "one less":
        y = 1 - x
    elif WHAT == "one of":
        y = 1 / x
    else:
        y = x.sum(WHAT)
    tl.store(out_ptr, tl.load(y))


@pytest.mark.parametrize(
    "what, message",
    [
        ("one less", "sub of partial sums"),
        ("one of", "div of partial sums"),
        (2, "one of its 2 dimensions, not 2"),
        (-3, "one of its 2 dimensions, not -3"),
        (None, "one of its 2 dimensions, not None"),
    ],
)
def test_what_a_sharded_tensor_refuses(device, what, message):
    with simulated_mesh(2, 4), pytest.raises(triton.CompilationError, match=message):
        x = distributed.zeros((8, 16))
        refused_kernel[(1,)](x, x, spec(partial=["device"]), what)


@triton.jit
def dot_kernel(
    a_ptr,
    b_ptr,
    out_ptr,
    a_how: tl.constexpr,
    b_how: tl.constexpr,
    to: tl.constexpr,
    a_shape: tl.constexpr,
    b_shape: tl.constexpr,
):
    a = tle.make_sharded_tensor(a_ptr, a_how, a_shape)
    b = tle.make_sharded_tensor(b_ptr, b_how, b_shape)
    c = tle.distributed_dot(a, b)
    if to is not None:
        c = tle.reshard(c, to)
    part = tl.load(c)
    tl.store(out_ptr + flat(part.shape), part)


PAIR = tle.device_mesh({"device": 2})
OPERANDS = {"first": ([None], ["device"], [None, "device"]), "second": ([None], ["device"], [None, "device"])}


@pytest.mark.parametrize("a_split, b_split", list(itertools.product(*OPERANDS.values())))
def test_distributed_dot(device, a_split, b_split):
    a_how, b_how = spec(a_split, mesh=PAIR), spec(b_split, mesh=PAIR)
    shapes = (32, 64), (64, 32)
    a, b = (array(shape, np.float16, seed) for seed, shape in enumerate(shapes))
    plan = a_how.product(b_how, *shapes)
    for to in (None, spec(mesh=PAIR), spec(["device"], mesh=PAIR)):
        result = plan[2] if to is None else to
        with simulated_mesh(1, 2):
            out = distributed.zeros(result.local_shape((32, 32)))
            data = [distributed.from_parts(parts_of(x, how)) for x, how in ((a, a_how), (b, b_how))]
            dot_kernel[(1,)](*data, out, a_how, b_how, to, *shapes)
        np.testing.assert_array_equal(
            whole_of(out.parts, result, (32, 32)), a.astype(np.float32) @ b.astype(np.float32)
        )


@triton.jit
def products_in_a_loop_kernel(
    a_ptr, b_ptr, c_ptr, mesh: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    partial: tl.constexpr = tle.sharding(mesh, partial=["device"])
    acc = tle.make_sharded_tensor(tl.zeros([M, N], tl.float32), partial)
    for begin in range(0, K, STEP):
        k = begin + tl.arange(0, STEP)
        a = a_ptr + tl.arange(0, M)[:, None] * K + k[None, :]
        b = b_ptr + k[:, None] * N + tl.arange(0, N)[None, :]
        acc = tle.distributed_dot(
            tle.make_sharded_tensor(a, tle.sharding(mesh, [None, "device"])),
            tle.make_sharded_tensor(b, tle.sharding(mesh, ["device"])),
            acc,
        )
    total = tle.reshard(acc, tle.sharding(mesh))
    tl.store(c_ptr + flat((M, N)), tl.load(total))


def test_products_in_a_loop(device):
    # Each step makes specifications anew, which are the same ones.
    mesh, (m, n, k) = tle.device_mesh({"device": 2}), (16, 32, 48)
    a, b = array((m, 2 * k), np.float16), array((2 * k, n), np.float16, 2)
    with simulated_mesh(1, 2):
        parts = (
            distributed.shard(a, spec([None, "device"], mesh=mesh)),
            distributed.shard(b, spec(["device"], mesh=mesh)),
        )
        c = distributed.zeros((m, n))
        products_in_a_loop_kernel[(1,)](*parts, c, mesh, m, n, k, 16)
    for part in c.parts:
        np.testing.assert_array_equal(part, a.astype(np.float32) @ b.astype(np.float32))


# ---- the examples of the document ---------------------------------------------------------------------------------


@triton.jit
def remote_example(x_ptr, out_ptr, mesh: tl.constexpr, M: tl.constexpr, K: tl.constexpr):
    x_spec = tle.sharding(mesh, split=["device"], partial=[])
    x = tle.make_sharded_tensor(x_ptr, sharding=x_spec, shape=[M, K])
    node_rank = tle.shard_id(mesh, "node")
    device_rank = tle.shard_id(mesh, "device")
    next_device = (device_rank + 1) % mesh.shape[1]
    neighbor_x = tle.remote(x, shard_id=(node_rank, next_device), scope=mesh)
    tle.distributed_barrier(mesh)
    neighbor_vals = tl.load(neighbor_x)
    x_full = tle.reshard(x, spec=tle.sharding(mesh, split=[], partial=[]))
    acc = tl.sum(tl.load(x_full), 0) + tl.sum(neighbor_vals, 0)
    tl.store(out_ptr + tl.arange(0, K), acc)


def test_exchange_and_reshard(device):
    x = array((8, 16))
    with simulated_mesh(2, 4):
        out = distributed.zeros(16)
        data = distributed.from_parts(parts_of(x, spec(["device"])))
        remote_example[(1,)](data, out, MESH, 8, 16)
    for rank, part in enumerate(out.parts):
        neighbor = np.split(x, 4)[(rank + 1) % 4]
        np.testing.assert_array_equal(part, x.sum(0) + neighbor.sum(0))


# ---- specifications -----------------------------------------------------------------------------------------------


def test_specifications(device):
    how = tle.sharding(MESH, split=[tle.S("device"), tle.B], partial=[tle.P("node")])
    assert how == spec(["device"], ["node"]) and hash(how) == hash(spec(["device"], ["node"]))
    assert (how.axis_state("node"), how.axis_state("device"), how.broadcast) == ("P", "S", ())
    assert repr(how) == "Sharding([S(device)], partial node)"
    for split, partial, message in (
        (["row"], [], "the mesh has no axis 'row'; its axes are node, device"),
        (["device", "device"], [], "splits the tensor twice"),
        (["device"], ["device"], "is both split and partial"),
        ([], ["node", "node"], "is partial twice"),
    ):
        with pytest.raises(ValueError, match=message):
            spec(split, partial)
    with pytest.raises(TypeError, match=r"must be a tle.device_mesh"):
        tle.sharding(3)
    with pytest.raises(AttributeError, match="does not change"):
        how.mesh = MESH


@triton.jit
def mixed_kernel(x_ptr, a: tl.constexpr, b: tl.constexpr, WHAT: tl.constexpr):
    x = tle.make_sharded_tensor(x_ptr, a, (8, 8))
    y = tle.make_sharded_tensor(x_ptr, b, (8, 8))
    if WHAT == "add":
        x + y
    elif WHAT == "mul":
        x * y
    elif WHAT == "exp":
        tl.exp(x)
    elif WHAT == "one":
        x + 1
    elif WHAT == "block":
        x + tl.zeros([8, 8], tl.float32)
    elif WHAT == "dot":
        tle.distributed_dot(x, y)


@pytest.mark.parametrize(
    "a, b, what, message",
    [
        (
            "S0",
            "S1",
            "add",
            r"distributed differently: Sharding\(\[S\(device\)\]\) and Sharding\(\[B, S\(device\)\]\)",
        ),
        ("P", "P", "mul", "mul of partial sums"),
        ("P", "P", "exp", "exp of partial sums"),
        ("P", "P", "one", "add of partial sums"),
        ("B", "B", "block", "tle.make_sharded_tensor says how the block is distributed"),
        ("P", "P", "dot", "two partial sums along 'device'"),
    ],
)
def test_what_does_not_go_together(device, a, b, what, message):
    with simulated_mesh(2, 4), pytest.raises(triton.CompilationError, match=message) as failed:
        mixed_kernel[(1,)](distributed.zeros((8, 8)), spec(**STATES[a]), spec(**STATES[b]), what)
    assert "test_sharded.py" in str(failed.value) and "^" in str(failed.value)


def test_what_cannot_be_a_part(device):
    with simulated_mesh(2, 4):
        with pytest.raises(
            triton.CompilationError, match=r"dimension 0 of shape \(6, 8\) does not divide into the 4 parts"
        ):
            reshard_kernel[(1,)](
                distributed.zeros(4), distributed.zeros(4), spec(["device"]), spec(), (6, 8), False
            )
        with pytest.raises(triton.CompilationError, match=r"tle.reshard between meshes"):
            other = tle.sharding(tle.device_mesh({"device": 8}), split=["device"])
            reshard_kernel[(1,)](
                distributed.zeros(64), distributed.zeros(64), spec(["device"]), other, (8, 8), False
            )
    with (
        simulated_mesh(2, 4, scratch=64),
        pytest.raises(ValueError, match="needs 512 bytes of symmetric memory"),
    ):
        check_reshard(spec(["device"]), spec(), (16, 32), as_value=True)


@triton.jit
def strided_kernel(x_ptr, out_ptr, from_next_ptr, mesh: tl.constexpr, N: tl.constexpr):
    # Every other element is this member's part.
    at = 2 * tl.arange(0, N)
    how: tl.constexpr = tle.sharding(mesh, ["device"])
    x = tle.make_sharded_tensor(x_ptr + at, how)
    tl.store(out_ptr + tl.arange(0, N * mesh.size), tl.load(tle.reshard(x + x, tle.sharding(mesh))))
    tl.store(
        from_next_ptr + tl.arange(0, N), tl.load(tle.remote(x, (tle.shard_id(mesh, 0) + 1) % mesh.size, mesh))
    )
    whole = tle.reshard(x, tle.sharding(mesh))
    tle.distributed_barrier(mesh)
    tl.store(
        tle.make_sharded_tensor(x_ptr + at + 1, how),
        tl.sum(tl.load(whole)).to(tl.float32) + tl.zeros([N], tl.float32),
    )


def test_blocks_of_pointers(device):
    mesh, n = tle.device_mesh({"device": 3}), 8
    data = [np.arange(2 * n, dtype=np.float32) + 100 * rank for rank in range(3)]
    want = np.concatenate([part[::2] for part in data])
    with simulated_mesh(1, 3):
        x = distributed.from_parts(data)
        out, from_next = distributed.zeros(3 * n), distributed.zeros(n)
        strided_kernel[(1,)](x, out, from_next, mesh, n)
    for rank in range(3):
        np.testing.assert_array_equal(out.parts[rank], 2 * want)
        np.testing.assert_array_equal(from_next.parts[rank], data[(rank + 1) % 3][::2])
        np.testing.assert_array_equal(x.parts[rank][::2], data[rank][::2])
        np.testing.assert_array_equal(x.parts[rank][1::2], want.sum())


@triton.jit
def booleans_kernel(x_ptr, mesh: tl.constexpr):
    tle.make_sharded_tensor(x_ptr, tle.sharding(mesh, partial=["device"]), (8,))


def test_booleans_have_no_sums(device):
    mesh = tle.device_mesh({"device": 2})
    partial = tle.sharding(mesh, partial=["device"])
    with simulated_mesh(1, 2):
        x = distributed.zeros(8, np.bool_)
        with pytest.raises(triton.CompilationError, match="booleans are no partial sums"):
            booleans_kernel[(1,)](x, mesh)
        with pytest.raises(ValueError, match="booleans are no partial sums"):
            distributed.reshard(x, partial, tle.sharding(mesh))
        with pytest.raises(ValueError, match="booleans are no partial sums"):
            distributed.gather(x, partial)


@triton.jit
def no_specification_kernel(x_ptr, mesh: tl.constexpr, WHAT: tl.constexpr):
    if WHAT == "to":
        tle.reshard(tle.make_sharded_tensor(x_ptr, tle.sharding(mesh), [16]), mesh)
    else:
        tle.make_sharded_tensor(x_ptr, mesh, [16])


@pytest.mark.parametrize(
    ("what", "says"), [("to", "`spec` of tle.reshard"), ("of", "`sharding` of tle.make_sharded")]
)
def test_what_is_no_specification(device, what, says):
    with simulated_mesh(2, 4), pytest.raises(triton.CompilationError, match=says):
        no_specification_kernel[(1,)](distributed.zeros(16), MESH, what)
