"""Functions of libdevice: every row of ``docs/libdevice.md``, against exact arithmetic or 60 digits of mpmath.

``exact`` functions must give the exact result, rounded; the others stay within what the page says: on a GPU and in the simulator, which run
NVIDIA's code, within its bound, on the CPU executor within half a unit in the last place (fp32) or 4 (fp64), which Ascend has for fp64, too.
"""

import math
import re
import struct
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf

import tilewright as triton
import tilewright.language as tl
from tilewright.language.extra import libdevice

PAGE = (Path(__file__).parents[2] / "docs/libdevice.md").read_text()
ROWS = re.findall(r"^\| `(\w+)` \| \((.*)\) → (\w+) \| `(\w+)` \| (.*) \|$", PAGE, re.M)
TYPES = {
    "int32": np.int32,
    "uint32": np.uint32,
    "int64": np.int64,
    "uint64": np.uint64,
    "fp32": np.float32,
    "fp64": np.float64,
}
# Given as int1.
TRUTH = {"isnan", "isinf", "finitef", "isfinited"}
# By code of our own on a GPU, where zero loses its sign, and bounds are 3 ulp (docs/numerics.md).
OURS = {"sin", "cos", "tan", "tanh", "log", "log2", "erf", "rsqrt"}
N = 32


@triton.jit
def apply(a, b, c, d, out, f: tl.constexpr, count: tl.constexpr):
    at = tl.arange(0, 32)
    x = tl.load(a + at)
    if count == 1:
        result = f(x)
    elif count == 2:
        result = f(x, tl.load(b + at))
    elif count == 3:
        result = f(x, tl.load(b + at), tl.load(c + at))
    else:
        result = f(x, tl.load(b + at), tl.load(c + at), tl.load(d + at))
    tl.store(out + at, result)


def run(device, name, args, result):
    arrays = [device.array(a) for a in args]
    out = device.empty(N, result)
    apply[(1,)](*arrays, *[arrays[0]] * (4 - len(args)), out, getattr(libdevice, name), len(args))
    return device.numpy(out)


# ---- exact functions ------------------------------------------------------------------------------------------------

FLOATS = [
    0.0,
    -0.0,
    1,
    -1,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    3.3,
    -7.25,
    1e-3,
    -1e-5,
    math.inf,
    -math.inf,
    math.nan,
    1e30,
    -1e30,
    1e-30,
]
FLOATS += [
    1e-40,
    -1.4e-45,
    20,
    -20,
    100.5,
    0.9999,
    2147483648.0,
    4294967296.0,
    -9.3e18,
    1.9e19,
    12345.678,
    3.4e38,
    0.1,
]
INTS = [
    0,
    1,
    -1,
    2,
    -2,
    5,
    7,
    -9,
    100,
    255,
    -256,
    12345,
    -54321,
    2**31 - 1,
    -(2**31),
    0xFFFFFF,
    0x1234567,
    0x3210,
    0x7654,
    3,
    4,
]
INTS += [6, 8, 10, 16, 31, 32, 33, 64, -64, 1 << 20, -(1 << 20)]


def arguments(params):
    """Values at the edges, in another order for each argument."""
    made = []
    for i, param in enumerate(params):
        ty = TYPES[param]
        if param.startswith("fp"):
            with np.errstate(over="ignore"):
                values = np.array(FLOATS).astype(ty)
        else:
            wide = (
                [x * 0x1_0000_0001 if k % 3 == 0 else x for k, x in enumerate(INTS)]
                if "64" in param
                else INTS
            )
            values = np.array([x % 2 ** (8 * ty().itemsize) for x in wide], f"u{ty().itemsize}").view(ty)
        made.append(np.roll(values, 5 * i))
    return made


DIGITS = {np.float32: (24, -149, 128), np.float64: (53, -1074, 1024)}


def rounded(x: Fraction, ty, mode: str):
    """An exact number in a format, by a rounding: n (nearest even), z, d, u."""
    digits, least, most = DIGITS[ty]
    if x == 0:
        return ty(0)
    exponent = abs(x).numerator.bit_length() - abs(x).denominator.bit_length()
    exponent += abs(x) >= Fraction(2) ** exponent
    unit = Fraction(2) ** max(exponent - digits, least)
    low = math.floor(x / unit)
    rest = x / unit - low
    up = {
        "d": False,
        "u": rest > 0,
        "z": x < 0 and rest > 0,
        "n": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and low % 2),
    }
    value = (low + up[mode]) * unit
    if abs(value) >= Fraction(2) ** most:
        largest = (2 - Fraction(2) ** (1 - digits)) * Fraction(2) ** (most - 1)
        stays = mode == "z" or (mode == "d" and x > 0) or (mode == "u" and x < 0)
        value = (float(largest) if stays else math.inf) * (-1 if x < 0 else 1)
    result = ty(float(value))
    return -ty(0) if result == 0 and x < 0 else result


def whole(x, mode):
    """A float as an integer."""
    x = float(x)
    modes = {"n": lambda v: round(v), "z": math.trunc, "d": math.floor, "u": math.ceil}
    modes["away"] = lambda v: math.trunc(v + Fraction(1, 2)) if v > 0 else -math.trunc(-v + Fraction(1, 2))
    return x if math.isinf(x) or math.isnan(x) else modes[mode](Fraction(x))


def integer(x, mode, target, source):
    """As `cvt` makes one: saturated; of NaN zero, or the highest bit where either side has 64 bits."""
    bits = 8 * np.dtype(target).itemsize
    low, high = np.iinfo(target).min, np.iinfo(target).max
    n = whole(x, mode)
    if n != n:
        n = 0 if bits == 32 and source == np.float32 else (low if low < 0 else 1 << (bits - 1))
    return int(min(max(n, low), high))


def signed(n, ty):
    return np.array(n % 2 ** (8 * ty().itemsize), f"u{ty().itemsize}").view(ty)[()]


ARITHMETIC = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "rcp": lambda x: 1 / x,
    "fma": lambda x, y, z: x * y + z,
}


def bits_of(x):
    return int(x.view(f"u{x.itemsize}"))


def root(x, ty, mode):
    """The square root, by that of an integer."""
    x = Fraction(float(x))
    scaled = math.isqrt(int(x * 4**1200))  # exact: the least number is 2^-1074
    exact = Fraction(scaled, 2**1200)
    if exact * exact != x:
        exact += Fraction(1, 2**1202)
    return rounded(exact, ty, mode)


def exact(name, args, result):
    """The exact result of a function."""
    x, *rest = args
    ty = type(x)
    base, _, mode = name.rpartition("_r")
    if "2" in base and mode in ("n", "z", "d", "u"):
        source, target = base.split("2")
        if target in ("float", "double") and source != "double":
            return rounded(Fraction(int(x)), result, mode)
        if target == "float":
            return rounded(Fraction(float(x)), result, mode) if np.isfinite(x) and x else result(x)
        unsigned = {"int": np.int32, "uint": np.uint32, "ll": np.int64, "ull": np.uint64}[target]
        return signed(integer(x, mode, unsigned, ty), result)
    if base == "sqrt":
        return np.sqrt(x) if not x > 0 or np.isinf(x) else root(x, ty, mode)
    if base in ARITHMETIC:
        plain = ARITHMETIC[base](*[np.float64(v) for v in args])
        # Infinities, NaN, and zeros, whose sign follows rules of their own.
        if not all(np.isfinite(args)) or (base in ("div", "rcp") and args[-1] == 0):
            return ty(plain)
        value = ARITHMETIC[base](*[Fraction(float(v)) for v in args])
        if value == 0:
            # x - x is -0 where rounding goes down; equal signs stay.
            if base in ("mul", "div"):
                return ty(math.copysign(0, math.copysign(1, x) * math.copysign(1, rest[0])))
            second = -rest[0] if base == "sub" else rest[-1]
            first = x if base != "fma" else math.copysign(1, x) * math.copysign(1, rest[0])
            zeros = (
                x == 0 and second == 0
                if base != "fma"
                else Fraction(float(x)) * Fraction(float(rest[0])) == 0
            )
            if zeros and np.signbit(first) == np.signbit(second):
                return ty(math.copysign(0, first))
            return -ty(0) if mode == "d" else ty(0)
        return rounded(value, ty, mode)
    return result(OTHERS[name](ty, *args))


def prmt(x, y, selector):
    pool = struct.pack("<ii", x, y)
    return struct.unpack("<i", bytes(pool[int(selector) >> 4 * i & 7] for i in range(4)))[0]


def shifted(x, n):
    """x · 2^n, rounded once."""
    ty = type(x)
    if not np.isfinite(x) or x == 0:
        return x
    n = max(-3000, min(3000, int(n)))
    return rounded(Fraction(float(x)) * Fraction(2) ** n, ty, "n")


def fused(ty, x, y, z):
    return exact("fma_rn", (x, y, z), ty)


def remainder(ty, x, y):
    if np.isnan(x) or np.isnan(y) or np.isinf(x) or y == 0:
        return math.nan
    return x if np.isinf(y) else math.remainder(float(x), float(y))


def exponent(x):
    return math.frexp(float(x))[1] - 1


def ilogb(ty, x):
    if x == 0 or np.isnan(x):
        return -(2**31)
    return 2**31 - 1 if np.isinf(x) else exponent(x)


def logb(ty, x):
    if x == 0:
        return -math.inf
    return exponent(x) if np.isfinite(x) else abs(x)


def half_away(ty, x):
    return x if not np.isfinite(x) else math.copysign(float(whole(x, "away")), x)


def middle(low):
    return lambda ty, x, y: (int(x) + int(y) + low) >> 1


def low24(ty, x, y):
    def part(v):
        v = int(v) & 0xFFFFFF
        return v - (1 << 24) if ty == np.int32 and v >> 23 else v

    return signed(part(x) * part(y), ty)


OTHERS = {
    "abs": lambda ty, x: signed(abs(int(x)), ty) if ty in (np.int32, np.int64) else abs(x),
    "brev": lambda ty, x: signed(int(f"{bits_of(x):0{8 * ty().itemsize}b}"[::-1], 2), ty),
    "byte_perm": lambda ty, x, y, z: prmt(x, y, z),
    "ceil": lambda ty, x: np.ceil(x),
    "clz": lambda ty, x: 8 * ty().itemsize - bits_of(x).bit_length(),
    "copysign": lambda ty, x, y: np.copysign(x, y),
    "double2hiint": lambda ty, x: signed(bits_of(x) >> 32, np.int32),
    "double2loint": lambda ty, x: signed(bits_of(x), np.int32),
    "double_as_longlong": lambda ty, x: x.view(np.int64),
    "fdim": lambda ty, x, y: math.nan if np.isnan(x) or np.isnan(y) else (x - y if x > y else 0.0),
    "ffs": lambda ty, x: (bits_of(x) & -bits_of(x)).bit_length(),
    "finitef": lambda ty, x: np.isfinite(x),
    "float_as_int": lambda ty, x: x.view(np.int32),
    "float_as_uint": lambda ty, x: x.view(np.int32),
    "floor": lambda ty, x: np.floor(x),
    "fma": fused,
    "fmod": lambda ty, x, y: np.fmod(x, y),
    "hadd": middle(0),
    "hiloint2double": lambda ty, x, y: struct.unpack("<d", struct.pack("<ii", y, x))[0],
    "ilogb": ilogb,
    "int_as_float": lambda ty, x: x.view(np.float32),
    "isfinited": lambda ty, x: np.isfinite(x),
    "isinf": lambda ty, x: np.isinf(x),
    "isnan": lambda ty, x: np.isnan(x),
    "ldexp": lambda ty, x, n: shifted(x, n),
    "llrint": lambda ty, x: integer(x, "n", np.int64, ty),
    "llround": lambda ty, x: integer(x, "away", np.int64, ty),
    "logb": logb,
    "longlong_as_double": lambda ty, x: x.view(np.float64),
    "mul24": low24,
    "mulhi": lambda ty, x, y: int(x) * int(y) >> 8 * ty().itemsize,
    "nearbyint": lambda ty, x: np.rint(x),
    "nextafter": lambda ty, x, y: np.nextafter(x, y),
    "popc": lambda ty, x: bits_of(x).bit_count(),
    "remainder": remainder,
    "rhadd": middle(1),
    "rint": lambda ty, x: np.rint(x),
    "round": half_away,
    "rsqrt_rn": lambda ty, x: (
        float(1 / np.sqrt(mpf(float(x)))) if np.isfinite(x) and x > 0 else 1 / np.sqrt(x)
    ),
    "sad": lambda ty, x, y, z: signed(abs(int(x) - int(y)) + int(z), ty),
    "saturatef": lambda ty, x: min(x, 1.0) if x > 0 else 0.0,
    "scalbn": lambda ty, x, n: shifted(x, n),
    "signbit": lambda ty, x: np.signbit(x),
    "sqrt": lambda ty, x: np.sqrt(x),
    "trunc": lambda ty, x: np.trunc(x),
    "uint_as_float": lambda ty, x: x.view(np.float32),
}


@pytest.mark.parametrize(
    "name, params, result",
    [pytest.param(n, p.split(", "), r, id=f"{n}-{p}") for n, p, r, _, a in ROWS if a == "exact"],
)
def test_exact(device, name, params, result):
    args = arguments(params)
    got = run(device, name, args, np.int8 if name in TRUTH else TYPES[result])
    with np.errstate(all="ignore"), mp.workdps(60):
        want = np.array([exact(name, row, got.dtype.type) for row in zip(*args, strict=True)])
    for row, x, y in zip(zip(*args, strict=True), got, want, strict=True):
        same = (x == y and np.signbit(x) == np.signbit(y)) or (x != x and y != y)
        assert same, f"{name}{row}: {x!r}, not {y!r}"


# ---- others ---------------------------------------------------------------------------------------------------------

TINY = [0.0, 1e-40, -1e-30, 1e-8, -1e-4]
REAL = TINY + [0.3, -0.7, 1.0, -1.5, 2.5, -3.75, 5.0, 7.9, -11.3, 30.0, 60.0]
POSITIVE = [1e-40, 1e-30, 1e-5, 0.1, 0.5, 0.9, 0.999, 1.0, 1.001, 1.5, 2.0, 3.0, 10.0, 1e5, 1e20, 3e38]
UNIT = TINY + [0.1, -0.3, 0.5, -0.6, 0.7, -0.9, 0.99, 0.9999, -0.99999]
SMALL = TINY + [0.3, -0.7, 1.0, -1.5, 2.5, -3.75, 5.0, 7.5]
TURNS = TINY + [0.25, -0.3, 0.75, 1.0, -1.25, 2.6, 100.125, 12345.75]
PROBABILITY = [1e-30, 1e-10, 1e-4, 0.01, 0.1, 0.2, 0.3, 0.4, 0.45, 0.49, 0.51, 0.6, 0.75, 0.9, 0.99, 0.999]


def norm(*v):
    return mpmath.sqrt(sum(x * x for x in v))


# The function, and where it is tried.
REFERENCES = {
    "acos": (mpmath.acos, UNIT),
    "acosh": (mpmath.acosh, [1.0, 1.001, 1.5, 3.0, 10.0, 1e5, 1e20]),
    "asin": (mpmath.asin, UNIT),
    "asinh": (mpmath.asinh, REAL),
    "atan": (mpmath.atan, [*REAL, 1e20]),
    "atan2": (mpmath.atan2, REAL),
    "atanh": (mpmath.atanh, UNIT),
    "cbrt": (lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)), [*REAL, 1e30]),
    "cos": (mpmath.cos, [*REAL, 1e5, 1e20]),
    "cosh": (mpmath.cosh, REAL),
    "cospi": (mpmath.cospi, TURNS),
    "cyl_bessel_i0": (lambda x: mpmath.besseli(0, x), REAL),
    "cyl_bessel_i1": (lambda x: mpmath.besseli(1, x), REAL),
    "erf": (mpmath.erf, SMALL),
    "erfc": (mpmath.erfc, SMALL),
    "erfcinv": (lambda x: mpmath.erfinv(1 - x) if x > 0.01 else inverse_tail(x), [*PROBABILITY, 1.2, 1.9]),
    "erfcx": (lambda x: mpmath.exp(x * x) * mpmath.erfc(x), [*SMALL, 12.0, 100.0]),
    "erfinv": (mpmath.erfinv, UNIT),
    "exp": (mpmath.exp, [*REAL, -80.0, -100.0, 88.0]),
    "exp10": (lambda x: mpf(10) ** x, [*SMALL, -30.0, 38.0]),
    "exp2": (lambda x: mpf(2) ** x, [*REAL, -100.5, 127.5]),
    "expm1": (mpmath.expm1, REAL),
    "hypot": (norm, [*REAL, 1e30]),
    "j0": (lambda x: mpmath.besselj(0, x), SMALL + [20.0, 100.0]),
    "j1": (lambda x: mpmath.besselj(1, x), SMALL + [20.0, 100.0]),
    "jn": (lambda n, x: mpmath.besselj(int(n), x), [0.3, 1.0, 2.5, 5.0, 7.5, 20.0, 60.0]),
    "lgamma": (lambda x: mpmath.log(abs(mpmath.gamma(x))), [*POSITIVE[2:], 0.3, -0.7, -1.5, -30.5]),
    "log": (mpmath.log, POSITIVE),
    "log10": (mpmath.log10, POSITIVE),
    "log1p": (mpmath.log1p, [*POSITIVE, *UNIT]),
    "log2": (lambda x: mpmath.log(x, 2), POSITIVE),
    "norm3d": (norm, [*REAL, 1e30]),
    "norm4d": (norm, [*REAL, 1e30]),
    "normcdf": (lambda x: mpmath.erfc(-x / mpmath.sqrt(2)) / 2, [*SMALL, -12.0, -5.5]),
    "normcdfinv": (
        lambda x: -mpmath.sqrt(2) * (mpmath.erfinv(1 - 2 * x) if x > 0.01 else inverse_tail(2 * x)),
        PROBABILITY,
    ),
    "pow": (lambda x, y: x**y, POSITIVE[2:14]),
    "rcbrt": (lambda x: 1 / mpmath.cbrt(x), POSITIVE),
    "rhypot": (lambda x, y: 1 / norm(x, y), [0.3, -0.7, 1.0, 2.5, 1e5, 1e30]),
    "rnorm3d": (lambda *v: 1 / norm(*v), [0.3, -0.7, 1.0, 2.5, 1e5, 1e30]),
    "rnorm4d": (lambda *v: 1 / norm(*v), [0.3, -0.7, 1.0, 2.5, 1e5, 1e30]),
    "rsqrt": (lambda x: 1 / mpmath.sqrt(x), POSITIVE),
    "sin": (mpmath.sin, [*REAL, 1e5, 1e20]),
    "sinh": (mpmath.sinh, REAL),
    "sinpi": (mpmath.sinpi, TURNS),
    "tan": (mpmath.tan, [*REAL, 1e5]),
    "tanh": (mpmath.tanh, REAL),
    "tgamma": (mpmath.gamma, [0.1, 0.5, 0.9, 1.5, 2.0, 3.3, 5.0, 10.5, 20.0, 33.0, -0.5, -1.7, -5.25]),
    "y0": (lambda x: mpmath.bessely(0, x), [0.1, 0.5, 1.0, 2.5, 5.0, 7.5, 20.0, 100.0]),
    "y1": (lambda x: mpmath.bessely(1, x), [0.1, 0.5, 1.0, 2.5, 5.0, 7.5, 20.0, 100.0]),
    "yn": (lambda n, x: mpmath.bessely(int(n), x), [0.3, 1.0, 2.5, 5.0, 7.5, 20.0, 60.0]),
    "fast_cosf": (mpmath.cos, [-3.0, -1.0, 0.0, 0.3, 1.0, 2.0, 3.1]),
    "fast_dividef": (lambda x, y: x / y, [0.3, -0.7, 1.0, 2.5, 1e5, 1e30]),
    "fast_exp10f": (lambda x: mpf(10) ** x, SMALL),
    "fast_expf": (mpmath.exp, SMALL),
    "fast_log10f": (mpmath.log10, POSITIVE[1:]),
    "fast_log2f": (lambda x: mpmath.log(x, 2), POSITIVE[1:]),
    "fast_logf": (mpmath.log, POSITIVE[1:]),
    "fast_powf": (lambda x, y: x**y, [0.5, 0.9, 1.0, 1.5, 2.0, 3.0]),
    "fast_sinf": (mpmath.sin, [-3.0, -1.0, 0.0, 0.3, 1.0, 2.0, 3.1]),
    "fast_tanf": (mpmath.tan, [-1.0, 0.0, 0.3, 0.6, 1.0, 1.3]),
    "fast_tanhf": (mpmath.tanh, SMALL),
    "rcp64h": (lambda x: 1 / x, [0.3, -0.7, 1.0, 2.5, 1e5, 1e30]),
}


def inverse_tail(p):
    """The inverse of erfc, of a small number."""
    guess = mpmath.sqrt(-mpmath.log(p))
    return mpmath.findroot(lambda y: mpmath.log(mpmath.erfc(y)) - mpmath.log(p), guess * mpf("0.95"))


# Absolute errors, on a GPU (fp32, fp64) and on the CPU executor (fp64), for what has no bound in ulp; as a fraction of the result otherwise.
BESSEL = ((2.2e-6, 5e-12), 1e-14, False)
LOOSE = {name: BESSEL for name in ("j0", "j1", "y0", "y1", "jn", "yn")}
LOOSE |= {
    "lgamma": ((2e-6, 5e-15), 5e-15, False),
    "fast_cosf": ((2.0**-20, 0), 0, False),
    "fast_sinf": ((2.0**-20, 0), 0, False),
    "fast_tanf": ((2.0**-16, 0), 0, True),
    "fast_tanhf": ((2.0**-10.9, 0), 0, True),
    "fast_dividef": ((2.0**-22, 0), 0, True),
    "fast_exp10f": ((2.0**-18, 0), 0, True),
    "fast_expf": ((2.0**-19, 0), 0, True),
    "fast_powf": ((2.0**-19, 0), 0, True),
    "fast_log10f": ((2.0**-21, 0), 0, False),
    "fast_log2f": ((2.0**-21, 0), 0, False),
    "fast_logf": ((2.0**-21, 0), 0, False),
    "rcp64h": ((0, 2.0**-19), 2.0**-19, True),
    "pow": ((2.0**-18, 2.0**-47), 2.0**-50, True),
}


@pytest.mark.parametrize(
    "name, params, result, accuracy",
    [pytest.param(n, p.split(", "), r, a, id=f"{n}-{p}") for n, p, r, _, a in ROWS if a != "exact"],
)
def test_bounded(device, name, params, result, accuracy):
    function, values = REFERENCES[name]
    args = []
    for i, param in enumerate(params):
        if param == "int32":
            # The order of a Bessel function, or an exponent.
            args.append(
                np.resize(np.array([0, 1, 2, 3, 5] if i == 0 else [0, 1, -1, 2, 7, -12], np.int32), N)
            )
        else:
            args.append(np.resize(np.roll(np.array(values), 3 * i), N).astype(TYPES[param]))
    got = run(device, name, args, TYPES[result])
    single = got.dtype == np.float32
    # The simulator's and the executor's errors may add up.
    device.rounding = 2.0**-10 if name in LOOSE else None
    with mp.workdps(60):
        want = [function(*[mpf(float(v)) for v in row]) for row in zip(*args, strict=True)]
        for row, x, exact_ in zip(zip(*args, strict=True), got, want, strict=True):
            with np.errstate(all="ignore"):
                nearest = got.dtype.type(float(exact_))
            if np.isinf(nearest):
                assert x == nearest, f"{name}{row}: {x!r}, not {nearest!r}"
                continue
            error = float(abs(mpf(float(x)) - exact_))
            ulp = float(np.spacing(max(abs(nearest), np.finfo(got.dtype).smallest_subnormal)))
            if (accuracy.endswith("ulp") and accuracy.split()[0].isdigit() and name not in LOOSE) or (
                name == "pow" and "ulp" in accuracy
            ):
                bound = int(accuracy.split()[0])
                bound = max(bound, 3) if name in OURS else bound
                if device.backend == "npusim" and not single:
                    bound = 4
                limit = (0.51 if single else 4) * ulp if device.backend == "interp" else bound * ulp
            else:
                (gpu32, gpu64), cpu64, relative = LOOSE[name]
                limit = gpu32 if single else gpu64
                if device.backend == "interp":
                    limit = 0.51 * ulp if single else cpu64
                    relative &= not single
                limit *= float(abs(exact_)) if relative else max(1, float(abs(exact_)))
                limit = max(limit, ulp)
            assert error <= limit, f"{name}{row}: {x!r}, not {nearest!r}, {error / ulp:.2f} ulp"


INF, NAN = math.inf, math.nan
EDGES = {
    "acos": [(2.0, NAN), (NAN, NAN)],
    "acosh": [(0.5, NAN), (INF, INF)],
    "asinh": [(-INF, -INF), (-0.0, -0.0)],
    "atan": [(INF, math.pi / 2), (-0.0, -0.0)],
    "atanh": [(1.0, INF), (-1.0, -INF), (2.0, NAN)],
    "cbrt": [(-INF, -INF), (-8.0, -2.0), (-0.0, -0.0)],
    "cospi": [(0.5, 0.0), (INF, NAN), (1.0, -1.0)],
    "cyl_bessel_i0": [(0.0, 1.0), (INF, INF), (-INF, INF), (NAN, NAN)],
    "cyl_bessel_i1": [(0.0, 0.0), (INF, INF), (-INF, -INF)],
    "erfc": [(INF, 0.0), (-INF, 2.0), (0.0, 1.0)],
    "erfcinv": [(0.0, INF), (2.0, -INF), (1.0, 0.0), (-0.1, NAN)],
    "erfcx": [(INF, 0.0), (-INF, INF), (0.0, 1.0)],
    "erfinv": [(1.0, INF), (-1.0, -INF), (1.5, NAN), (0.0, 0.0)],
    "exp": [(INF, INF), (-INF, 0.0), (NAN, NAN), (0.0, 1.0), (1000.0, INF)],
    "exp10": [(INF, INF), (-INF, 0.0), (2.0, 100.0)],
    "exp2": [(INF, INF), (-INF, 0.0), (-3.0, 0.125)],
    "expm1": [(INF, INF), (-INF, -1.0), (-0.0, -0.0)],
    "j0": [(INF, 0.0), (0.0, 1.0), (NAN, NAN)],
    "j1": [(INF, 0.0), (0.0, 0.0)],
    "lgamma": [(INF, INF), (-INF, INF), (0.0, INF), (1.0, 0.0), (2.0, 0.0), (-3.0, INF)],
    "log10": [(0.0, -INF), (-1.0, NAN), (INF, INF), (1000.0, 3.0)],
    "log1p": [(-1.0, -INF), (-2.0, NAN), (INF, INF), (-0.0, -0.0)],
    "normcdf": [(INF, 1.0), (-INF, 0.0), (0.0, 0.5)],
    "normcdfinv": [(0.0, -INF), (1.0, INF), (0.5, 0.0), (2.0, NAN)],
    "rcbrt": [(INF, 0.0), (0.0, INF), (-0.0, -INF)],
    "rsqrt": [(0.0, INF), (INF, 0.0), (-1.0, NAN)],
    "sinpi": [(INF, NAN), (1.0, 0.0), (-1.0, -0.0), (0.5, 1.0)],
    "tgamma": [(INF, INF), (-INF, NAN), (0.0, INF), (-0.0, -INF), (-2.0, NAN), (5.0, 24.0)],
    "y0": [(0.0, -INF), (-1.0, NAN), (INF, 0.0)],
    "y1": [(0.0, -INF), (-1.0, NAN), (INF, 0.0)],
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", EDGES)
def test_edges(device, name, dtype):
    pairs = EDGES[name]
    x, want = (np.resize(np.array(side, dtype), N) for side in zip(*pairs, strict=True))
    got = run(device, name, [x], dtype)
    for value, y, z in zip(x, got, want, strict=True):
        near = (
            (y == z and np.signbit(y) == np.signbit(z))
            or (y != y and z != z)
            or abs(y - z) <= np.spacing(abs(z))
        )
        assert near, f"{name}({value}): {y!r}, not {z!r}"


def test_every_function_is_tried():
    assert len({name for name, *_ in ROWS}) == len(libdevice.__all__) == 198
    assert {name for name, *_ in ROWS} == set(libdevice.__all__)


# ---- calls ----------------------------------------------------------------------------------------------------------


@triton.jit
def mixed(x, y, out):
    at = tl.arange(0, 32)
    a, b = tl.load(x + at), tl.load(y + at)
    tl.store(out + at, libdevice.pow(a, 2.0))
    tl.store(out + 32 + at, libdevice.pow(a, b))
    tl.store(out + 64 + at, libdevice.fmod(a, 3))
    tl.store(out + 96 + at, libdevice.ldexp(a, 3))
    grid = libdevice.hypot(a[:, None], tl.load(x + tl.arange(0, 4))[None, :])
    tl.store(out + 128 + at, tl.sum(grid, 1))


def test_arguments_are_brought_together(device):
    """Constants and tensors of other types become what an overload takes, and shapes are broadcast."""
    x = np.linspace(0.5, 4, 32, dtype=np.float64)
    y = np.linspace(-2, 2, 32, dtype=np.float32)
    out = device.empty(160, np.float64)
    mixed[(1,)](device.array(x), device.array(y), out)
    want = [x**2, x ** y.astype(np.float64), np.fmod(x, 3), x * 8, np.hypot(x[:, None], x[None, :4]).sum(1)]
    np.testing.assert_allclose(device.numpy(out), np.concatenate(want), rtol=1e-14)


@triton.jit
def odd_functions(x_ptr, y_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.store(y_ptr + i, tl.sin(x))
    tl.store(y_ptr + N + i, libdevice.tan(x))
    tl.store(y_ptr + 2 * N + i, libdevice.tanh(x))
    tl.store(y_ptr + 3 * N + i, libdevice.sinh(x))
    tl.store(y_ptr + 4 * N + i, libdevice.atan(x))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_odd_functions_keep_the_sign_of_zero(device, dtype):
    x = np.array([-0.0, 0.0] * 32, dtype)
    y = device.empty(5 * 64, dtype)
    odd_functions[(1,)](device.array(x), y, 64)
    y = device.numpy(y).reshape(5, 64)
    np.testing.assert_array_equal(y, 0)
    np.testing.assert_array_equal(np.signbit(y), np.broadcast_to(np.signbit(x), y.shape))
