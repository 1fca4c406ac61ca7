"""Random numbers by counter: the same seed and offset give the same number on every backend.

The generator is Philox 4x32 (4x64 for 64-bit offsets) by Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as
easy as 1, 2, 3" (SC 2011); streams equal Triton's.
"""

from __future__ import annotations

from . import core, math
from ._marker import jit
from .core import constexpr

N_ROUNDS_DEFAULT = constexpr(10)


@jit
def philox_impl(c0, c1, c2, c3, k0, k1, n_rounds: constexpr = N_ROUNDS_DEFAULT):
    """``n_rounds`` rounds of Philox on the counter ``(c0, c1, c2, c3)`` (uint32 or uint64) with the key ``(k0, k1)``."""
    core.static_assert(
        c0.dtype == core.uint32 or c0.dtype == core.uint64, "philox works on uint32 or uint64 counters"
    )
    if c0.dtype == core.uint32:
        weyl_0: constexpr = 0x9E3779B9
        weyl_1: constexpr = 0xBB67AE85
        factor_0: constexpr = 0xD2511F53
        factor_1: constexpr = 0xCD9E8D57
    else:
        weyl_0: constexpr = 0x9E3779B97F4A7C15
        weyl_1: constexpr = 0xBB67AE8584CAA73B
        factor_0: constexpr = 0xD2E7470EE14C6C93
        factor_1: constexpr = 0xCA5A826395121157
    for _ in core.static_range(n_rounds):
        high_0 = math.umulhi(c0, factor_0)
        high_1 = math.umulhi(c2, factor_1)
        low_0 = core.mul(c0, factor_0, sanitize_overflow=False)
        low_1 = core.mul(c2, factor_1, sanitize_overflow=False)
        c0 = high_1 ^ c1 ^ k0
        c1 = low_1
        c2 = high_0 ^ c3 ^ k1
        c3 = low_0
        k0 = core.add(k0, weyl_0, sanitize_overflow=False)
        k1 = core.add(k1, weyl_1, sanitize_overflow=False)
    return c0, c1, c2, c3


@jit
def philox(seed, c0, c1, c2, c3, n_rounds: constexpr = N_ROUNDS_DEFAULT):
    """Philox on integer counters with an integer ``seed``; four blocks of uint32 (uint64 for 64-bit counters)."""
    seed = core.to_tensor(seed)
    core.static_assert(seed.dtype.is_int(), "the seed must be an integer")
    seed = seed.to(core.uint64)
    c0 = core.to_tensor(c0)
    c1 = core.to_tensor(c1)
    c2 = core.to_tensor(c2)
    c3 = core.to_tensor(c3)
    if c0.dtype.primitive_bitwidth == 32:
        word: constexpr = core.uint32
        low = (seed & 0xFFFFFFFF).to(core.uint32)
        high = ((seed >> 32) & 0xFFFFFFFF).to(core.uint32)
    else:
        core.static_assert(c0.dtype.primitive_bitwidth == 64, "philox counters have 32 or 64 bits")
        word: constexpr = core.uint64
        low = seed
        high = core.full([1], 0, core.uint64)
    c0 = c0.to(word, bitcast=True)
    c1 = c1.to(word, bitcast=True)
    c2 = c2.to(word, bitcast=True)
    c3 = c3.to(word, bitcast=True)
    return philox_impl(c0, c1, c2, c3, low, high, n_rounds)


@jit
def randint4x(seed, offset, n_rounds: constexpr = N_ROUNDS_DEFAULT):
    """Four independent blocks of random uint32, in the shape of the integer block ``offset``. The cheapest way to get many."""
    low = offset.to(core.uint32)
    zero = low * 0
    if offset.dtype.primitive_bitwidth > 32:
        high = (offset >> 32).to(core.uint32)
    else:
        high = zero
    return philox(seed, low, high, zero, zero, n_rounds)


@jit
def randint(seed, offset, n_rounds: constexpr = N_ROUNDS_DEFAULT):
    """A block of random uint32, in the shape of the integer block ``offset``."""
    number, _, _, _ = randint4x(seed, offset, n_rounds)
    return number


@jit
def uint_to_uniform_float(x):
    """Random integers of 32 or 64 bits as float32 spread evenly over [0, 1)."""
    core.static_assert(
        x.dtype.is_int() and x.dtype.primitive_bitwidth >= 32,
        "uint_to_uniform_float needs integers of 32 or 64 bits",
    )
    if x.dtype.primitive_bitwidth == 32:
        x = x.to(core.int32, bitcast=True)
        # The largest float32 s with (2^31 - 1) * s < 1.
        scale = 4.6566127342e-10
    else:
        x = x.to(core.int64, bitcast=True)
        scale = 1.0842020432385337e-19
    # Fold negative numbers onto the others: -1 becomes 0.
    x = core.where(x < 0, -x - 1, x)
    return x * scale


@jit
def rand(seed, offset, n_rounds: constexpr = N_ROUNDS_DEFAULT):
    """A block of random float32 spread evenly over [0, 1), in the shape of the integer block ``offset``."""
    return uint_to_uniform_float(randint(seed, offset, n_rounds))


@jit
def rand4x(seed, offsets, n_rounds: constexpr = N_ROUNDS_DEFAULT):
    """Four independent blocks as :func:`rand` gives one."""
    a, b, c, d = randint4x(seed, offsets, n_rounds)
    return (
        uint_to_uniform_float(a),
        uint_to_uniform_float(b),
        uint_to_uniform_float(c),
        uint_to_uniform_float(d),
    )


@jit
def pair_uniform_to_normal(u1, u2):
    """Two independent blocks of float32 in (0, 1] as two of the standard normal distribution (Box and Muller 1958)."""
    # The logarithm needs a positive number.
    radius = math.sqrt(-2.0 * math.log(core.maximum(1.0e-7, u1)))
    angle = 6.283185307179586 * u2
    return radius * math.cos(angle), radius * math.sin(angle)


@jit
def randn(seed, offset, n_rounds: constexpr = N_ROUNDS_DEFAULT):
    """A block of random float32 of the standard normal distribution, in the shape of the integer block ``offset``."""
    a, b, _, _ = randint4x(seed, offset, n_rounds)
    normal, _ = pair_uniform_to_normal(uint_to_uniform_float(a), uint_to_uniform_float(b))
    return normal


@jit
def randn4x(seed, offset, n_rounds: constexpr = N_ROUNDS_DEFAULT):
    """Four independent blocks as :func:`randn` gives one."""
    a, b, c, d = rand4x(seed, offset, n_rounds)
    n0, n1 = pair_uniform_to_normal(a, b)
    n2, n3 = pair_uniform_to_normal(c, d)
    return n0, n1, n2, n3
