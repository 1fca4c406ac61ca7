"""A few hundred random kernels on each backend against the CPU executor, and the tools around them."""

import os

import numpy as np
import pytest

import tilewright as triton

from . import compare, shrink
from .command import category, is_refused, main
from .generator import Generator
from .program import Argument, Node, Value
from .wide import OPERATIONS, Wide

COUNT = int(os.environ.get("TILEWRIGHT_RANDOM_KERNELS", "300"))


def backends() -> list[str]:
    if chosen := os.environ.get("TILEWRIGHT_TEST_BACKENDS"):
        return [b for b in chosen.split(",") if b != "interp"]
    try:
        import torch

        return ["ptxsim", "cuda"] if torch.cuda.is_available() else ["ptxsim"]
    except ImportError:
        return ["ptxsim"]


@pytest.mark.parametrize("backend", backends())
@pytest.mark.parametrize("seed", range(COUNT))
@pytest.mark.parametrize("make", [Generator, Wide])
def test_agrees_with_the_executor(make, seed, backend, tmp_path, monkeypatch):
    # Nothing here looks at the machine code: with the simulator none is made.
    if backend == "ptxsim":
        monkeypatch.setenv("TILEWRIGHT_CUBIN", "0")
    monkeypatch.setenv("TILEWRIGHT_CACHE_DIR", str(tmp_path))
    program = make(seed).program()
    try:
        compare.check(program, backend)
    except Exception as error:
        if is_refused(category(error), backend):
            pytest.skip(str(error))
        pytest.fail(f"{type(error).__name__}: {error}\n{program.describe()}", pytrace=False)


def test_a_seed_gives_one_kernel():
    assert Generator(5).program() == Generator(5).program()
    assert Generator(5).program().describe() != Generator(6).program().describe()


def test_kernels_are_of_every_kind():
    """What the generator is for turns up in a few hundred kernels."""
    text = "\n".join(Generator(seed).program().describe() for seed in range(300))
    for word in """
        tl.dot( tl.cumsum( tl.associative_scan( matrices linear segment first last reverse=True tl.reduce( best tl.reshape(
        tl.permute( tl.join( tl.split( tl.interleave( tl.flip( tl.cat( tl.gather( tl.histogram( tl.sort( tl.argmax(
        tl.broadcast_to( [:,None] tl.where( tl.int1 tl.uint8 tl.int64 tl.float64 tl.bfloat16 float8e5 while tl.static_range
        tl.range( warp_specialize=True num_stages= if else: tl.make_tensor_descriptor( .load([ .store([ tl.atomic_
        tl.make_block_ptr( boundary_check mask= bitcast=True out_dtype=tl.float16 descriptor sm_80 sm_90
    """.split():
        assert word.replace(",", ", ") in text, word
    for option, values in {"num_warps": "1248", "num_stages": "1234", "num_ctas": "124"}.items():
        for value in values:
            assert f"'{option}': {value}" in text, (option, value)


def test_wide_kernels_are_of_every_kind():
    """The same of what only :class:`Wide` makes."""
    text = "\n".join(Wide(seed).program().describe() for seed in range(1500))
    for word in """
        any_bits tl.umulhi( propagate_nan= fp_downcast_rounding= tl.fma( tl.sqrt_rn( tl.map_elementwise( pack=2)[0] noinline returns_early
        tl.inline_asm_elementwise( tl.randint( tl.topk( tl.bitonic_merge( tl.cumprod( tl.reduce_or( return_indices=True pairs_total
        tl.dot_scaled( e2m1 e4m3 lhs_k_pack fast_math=True tf32x3 allow_tf32 max_num_imprecise_acc .gather( .scatter( .atomic_xor(
        tl.atomic_cas( tl.atomic_xchg( scope='sys' sem='release' tl.cdiv( tl.condition( disable_licm=True loop_unroll_factor=3 sm_86 sm_100
        sm_120 disallow_acc_multi_buffer=True return
    """.split():
        assert word.replace("_bits", " bits") in text, word
    for names in OPERATIONS.values():
        assert all(hasattr(Wide, name) for name in names)


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32", "f64", "e5m2", "e4m3"])
def test_special_values(kind):
    """Among any bits are those that arithmetic is wrong about."""
    values = Argument("s", kind, (4000,), special=True).values(0).astype(np.float64)
    assert np.isnan(values).any() and (values == 1).any() and (values < 0).any()
    assert ((values == 0) & np.signbit(values)).any() and ((values == 0) & ~np.signbit(values)).any()
    assert kind == "e4m3" or (np.isinf(values) & (values < 0)).any()


def test_a_difference_is_found(monkeypatch):
    program = Generator(3).program()
    run = compare.run

    def wrong(program, kernel, backend):
        written = run(program, kernel, "interp")
        if backend == "ptxsim":
            next(iter(written.values())).reshape(-1)[-1] += 1
        return written

    monkeypatch.setattr(compare, "run", wrong)
    with pytest.raises(compare.Different, match=r"1 of .* elements differ"):
        compare.check(program, "ptxsim")


def test_shrinking_keeps_what_fails():
    """A kernel that fails as long as it has a scan and is run by four warps at least."""
    seed = next(
        s
        for s in range(100)
        if "reverse=True" in (p := Generator(s).program()).source() and p.options["num_warps"] > 4
    )

    def run(program):
        compare.load(program)  # is Python still
        bad = "reverse=True" in program.body() and program.options["num_warps"] >= 4
        return ("bad", "a scan") if bad else None

    program = Generator(seed).program()
    small, answer = shrink.shrink(program, run(program), run)
    assert answer == ("bad", "a scan")
    assert small.body().count("reverse=True") == 1 and small.options["num_warps"] == 4
    assert len(small.body().splitlines()) <= 6 < len(program.body().splitlines())


def test_what_nothing_uses_is_pruned():
    a, b, c = (Node(f"{n} = 1", gives=Value(n, (), "i32", 1)) for n in "abc")
    store = Node("tl.store(p, b)")
    assert shrink.prune((a, b, store)) == (b, store)
    assert shrink.prune((a, b, Node("if b > 0:", (c, store)))) == (b, Node("if b > 0:", (store,)))


def test_failures_of_one_cause_have_one_name():
    assert category(ValueError("v12 of 3 lines\nmore")) == category(ValueError("v7 of 14 lines"))
    assert category(compare.Different("o3: 1")) == category(compare.Different("o4: 2"))


@pytest.mark.parametrize(
    "error, status, says, backend",
    [
        (triton.OutOfResources("too much shared memory"), 0, "0 agree, 2 refused, 0 failed", "ptxsim"),
        (
            ValueError("error: num_ctas = 2: xe:pvc has no clusters of CTAs"),
            0,
            "0 agree, 2 refused, 0 failed",
            "xesim",
        ),
        (ValueError("error: not supported yet: fp64"), 0, "0 agree, 2 refused, 0 failed", "xesim"),
        (ValueError("error: not supported yet: fp64"), 1, "0 agree, 0 refused, 2 failed", "ptxsim"),
        (ValueError("a bug"), 1, "0 agree, 0 refused, 2 failed", "xesim"),
    ],
)
def test_what_needs_too_much_is_refused(error, status, says, backend, monkeypatch, capsys):
    def fails(program, backend):
        raise error

    monkeypatch.setattr(compare, "check", fails)  # the processes are forks
    assert main(["--count", "2", "--jobs", "1", "--backend", backend]) == status
    assert says in capsys.readouterr().out


def test_values_are_exact_in_their_format():
    """No value that the generator calls bounded grows beyond what its format holds: computed in float64 it is the same."""
    for seed in range(20):
        for argument in Generator(seed).program().arguments:
            values = np.asarray(argument.values(seed), dtype=np.float64)
            assert (np.abs(values) <= 8).all() or argument.kind == "int"
