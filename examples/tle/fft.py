"""Discrete Fourier transforms of rows, of any length whose factors are small: one kernel, every row read and written once.

A thread transforms a few elements of a row in its registers: ``dft`` is unrolled by tuples, whose elements are tensors. A row of 1024
is a matrix of 32 x 32, whose columns are transformed, turned by a table of twiddle factors, and whose rows then are (Cooley and Tukey,
as Stockham orders it: each stage leaves the digits where the next ones want them, so that nothing is reversed in the end). Between the stages
elements go through a buffer in shared memory, so laid out that its banks are never asked twice at a time.
"""

import math

import tilewright as triton
import tilewright.language as tl
from tilewright import tle
from tilewright.language.core import _aggregate as aggregate


@aggregate
class Complex:
    """Complex numbers, as tensors of their real and imaginary parts."""

    re: tl.tensor
    im: tl.tensor

    def __init__(self, re, im):
        self.re = re
        self.im = im

    @triton.jit
    def __add__(self, other):
        return Complex(self.re + other.re, self.im + other.im)

    @triton.jit
    def __sub__(self, other):
        return Complex(self.re - other.re, self.im - other.im)

    @triton.jit
    def __mul__(self, other):
        return Complex(self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re)

    @triton.jit
    def scaled(self, by):
        """Times a real number."""
        return Complex(self.re * by, self.im * by)

    @triton.jit
    def times_minus_i(self):
        """A quarter turn clockwise."""
        return Complex(self.im, -self.re)

    @triton.jit
    def turned(self, k: tl.constexpr, n: tl.constexpr):
        """Times exp(-2 pi i k / n), for ``k`` below ``n``."""
        if 4 * k >= n:
            return self.times_minus_i().turned(k - n / 4, n)
        elif k == 0:
            return self
        elif 8 * k == n:
            return Complex(self.re + self.im, self.im - self.re).scaled(cosine(1, 8))
        else:
            return Complex(
                self.re * cosine(k, n) + self.im * sine(k, n), self.im * cosine(k, n) - self.re * sine(k, n)
            )


@triton.constexpr_function
def cosine(k, n):
    """Of ``k`` parts of ``n`` of the whole turn."""
    return math.cos(2 * math.pi * k / n)


@triton.constexpr_function
def sine(k, n):
    """Of ``k`` parts of ``n`` of the whole turn."""
    return math.sin(2 * math.pi * k / n)


@triton.constexpr_function
def first_factor(n):
    """4 where it divides ``n``, else the smallest prime that does; of 1, 1."""
    return next((q for q in (4, *range(2, n + 1)) if n % q == 0), 1)


@triton.constexpr_function
def product(factors):
    """Of all factors; 1 if there are none."""
    return math.prod(factors)


@triton.jit
def dft_of_prime(z):
    """The transform of an odd number of elements: elements at the same distance from the ends share their products."""
    n: tl.constexpr = len(z)
    total = z[0]
    sums = ()
    differences = ()
    for j in tl.static_range(1, n // 2 + 1):
        sums += (z[j] + z[n - j],)
        differences += (z[j] - z[n - j],)
        total += sums[j - 1]
    front = (total,)
    back = ()
    for k in tl.static_range(1, n // 2 + 1):
        even = z[0] + sums[0].scaled(cosine(k, n))
        odd = differences[0].scaled(sine(k, n))
        for j in tl.static_range(2, n // 2 + 1):
            even += sums[j - 1].scaled(cosine(j * k % n, n))
            odd += differences[j - 1].scaled(sine(j * k % n, n))
        odd = odd.times_minus_i()
        front += (even + odd,)
        back = (even - odd,) + back
    return front + back


@triton.jit
def dft(z):
    """The discrete Fourier transform of a tuple of complex tensors, element by element."""
    n: tl.constexpr = len(z)
    q: tl.constexpr = first_factor(n)
    if n == 1:
        return z
    elif n == 2:
        return z[0] + z[1], z[0] - z[1]
    elif n == 4:
        a, b = z[0] + z[2], z[0] - z[2]
        c, d = z[1] + z[3], (z[1] - z[3]).times_minus_i()
        return a + c, b + d, a - c, b - d
    elif q == n:
        return dft_of_prime(z)
    else:
        # A matrix of q rows: its columns, turned; its rows; and the digits of the index change places.
        columns = ()
        for j in tl.static_range(n // q):
            column = ()
            for i in tl.static_range(q):
                column += (z[i * (n // q) + j],)
            columns += (dft(column),)
        rows = ()
        for i in tl.static_range(q):
            row = ()
            for j in tl.static_range(n // q):
                row += (columns[j][i].turned(i * j, n),)
            rows += (dft(row),)
        out = ()
        for j in tl.static_range(n // q):
            for i in tl.static_range(q):
                out += (rows[i][j],)
        return out


@triton.jit
def pairs_of(ptr, at):
    """Pointers to the elements number ``at`` of an array of pairs."""
    return ptr + 2 * at[:, None] + tl.arange(0, 2)[None, :]


@triton.jit
def to_complex(pairs):
    """Pairs of floats as complex numbers to compute with."""
    re, im = tl.split(pairs.to(tl.float32))
    return Complex(re, im)


@triton.jit
def exchange(z, item, slot, place, step: tl.constexpr, count: tl.constexpr, padding: tl.constexpr):
    """Hands elements to other threads: element number ``t`` of ``item`` goes to ``slots[t][item]``; element number ``t`` of what
    comes back is ``slots[slot][place + t * step]``.

    ``padding`` elements lie between slots.
    """
    part = tl.arange(0, 2)[None, :]
    # The last two extents are rounded up where that costs little, which would undo the padding: here they are 1 and 2.
    slots = tle.gpu.alloc([len(z), item.shape[0] + padding, 1, 2], dtype=tl.float32)
    for t in tl.static_range(len(z)):
        tl.store(tle.gpu.local_ptr(slots.slot(t), (item[:, None], 0, part)), tl.join(z[t].re, z[t].im))
    out = ()
    for t in tl.static_range(count):
        pairs = tle.gpu.local_ptr(slots, (slot[:, None], (place + t * step)[:, None], 0, part))
        out += (to_complex(tl.load(pairs)),)
    return out


@triton.jit
def load_rows(
    x_ptr, num_rows, block, RADICES: tl.constexpr, ROWS: tl.constexpr, WHOLE: tl.constexpr, REAL: tl.constexpr
):
    """What the first stage transforms of a block of rows, as it stands in memory.

    A stage of radix r transforms the elements j, j + n, j + 2 n, ... of a row, for each j below n = N / r: an item is such a j of
    such a row.
    """
    N: tl.constexpr = product(RADICES)
    n: tl.constexpr = N // RADICES[0]
    item = tl.arange(0, ROWS * n)
    row, j = item // n, item % n
    first_row = block * ROWS
    x_ptr += first_row.to(tl.int64) * (N if REAL else 2 * N)
    # Behind the last row this one is read again: loads without a mask are all under way at once.
    row = row if WHOLE else tl.minimum(row, num_rows - 1 - first_row)
    loaded = ()
    for t in tl.static_range(RADICES[0]):
        at = row * N + j + t * n
        loaded += (tl.load(x_ptr + at) if REAL else tl.load(pairs_of(x_ptr, at)),)
    return loaded


@triton.jit
def transform_rows(
    loaded,
    out_ptr,
    twiddles_ptr,
    num_rows,
    block,
    RADICES: tl.constexpr,
    ROWS: tl.constexpr,
    WHOLE: tl.constexpr,
    REAL: tl.constexpr,
):
    """Writes the transforms of a block of rows, of which ``loaded`` is what ``load_rows`` gives."""
    N: tl.constexpr = product(RADICES)
    z = ()
    for t in tl.static_range(RADICES[0]):
        if REAL:
            re = loaded[t].to(tl.float32)
            z += (Complex(re, tl.zeros_like(re)),)
        else:
            z += (to_complex(loaded[t]),)
    z = dft(z)
    n: tl.constexpr = N // RADICES[0]
    item = tl.arange(0, ROWS * n)
    row, j = item // n, item % n
    for stage in tl.static_range(1, len(RADICES)):
        # So far there are transforms of `before` elements each, and then of `done`: element t of item j is number j % before + t * before
        # of the transform j // before.
        radix: tl.constexpr = RADICES[stage]
        before: tl.constexpr = product(RADICES[: stage - 1])
        done: tl.constexpr = product(RADICES[:stage])
        last_n: tl.constexpr = N // RADICES[stage - 1]
        next_n: tl.constexpr = N // radix
        last_item = item
        item = tl.arange(0, ROWS * next_n)
        row, j = item // next_n, item % next_n
        k = j % done
        place = row * last_n + j // done * before + k % before
        # Slots are `before` elements apart, modulo the 16 that the banks hold: neighbours ask different banks.
        padding: tl.constexpr = (before - ROWS * last_n) % 16 if before < 16 else 0
        z = exchange(z, last_item, k // before, place, next_n // done * before, radix, padding)
        turned = (z[0],)
        for t in tl.static_range(1, radix):
            turned += (z[t] * to_complex(tl.load(pairs_of(twiddles_ptr, k + (t - 1) * done))),)
        twiddles_ptr += 2 * (radix - 1) * done
        z = dft(turned)
    first_row = block * ROWS
    out_ptr += first_row.to(tl.int64) * (2 * N)
    inside = None if WHOLE else (first_row + row < num_rows)[:, None]
    for t in tl.static_range(len(z)):
        pairs = pairs_of(out_ptr, row * N + j + t * (N // len(z)))
        tl.store(pairs, tl.join(z[t].re, z[t].im).to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def fft_kernel(
    x_ptr,
    out_ptr,
    twiddles_ptr,
    num_rows,
    RADICES: tl.constexpr,
    ROWS: tl.constexpr,
    WHOLE: tl.constexpr,
    ONCE: tl.constexpr,
    REAL: tl.constexpr,
):
    """The transform of each row.

    ``x_ptr``: ``num_rows`` rows of floats, or of pairs of them unless ``REAL``; their length is the product of ``RADICES``.
    ``out_ptr``: as many pairs. ``twiddles_ptr``: what ``twiddles(RADICES)`` gives. A program takes blocks of ``ROWS`` rows: the last one
    has as many as the others where ``WHOLE`` says so, and there is a program for each where ``ONCE`` does.
    """
    program = tl.program_id(0)
    loaded = load_rows(x_ptr, num_rows, program, RADICES, ROWS, WHOLE, REAL)
    if ONCE:
        transform_rows(loaded, out_ptr, twiddles_ptr, num_rows, program, RADICES, ROWS, WHOLE, REAL)
    else:
        blocks = tl.cdiv(num_rows, ROWS)
        for block in range(program, blocks, tl.num_programs(0)):
            # The next rows are under way meanwhile.
            next_block = tl.minimum(block + tl.num_programs(0), blocks - 1)
            ahead = load_rows(x_ptr, num_rows, next_block, RADICES, ROWS, WHOLE, REAL)
            transform_rows(loaded, out_ptr, twiddles_ptr, num_rows, block, RADICES, ROWS, WHOLE, REAL)
            loaded = ahead


def radices_of(n, most=32):
    """Factors of ``n`` of at most ``most``: as few as can be, as equal as can be, the largest first."""

    def split(rest, count, bound):
        if count == 1:
            return [(rest,)] if rest <= bound else []
        fitting = [r for r in range(min(bound, rest), 0, -1) if rest % r == 0]
        return [(r, *others) for r in fitting for others in split(rest // r, count - 1, r)]

    for count in range(1, max(2, n.bit_length())):
        if found := split(n, count, most):
            return min(found, key=lambda radices: radices[0])
    raise ValueError(f"rows of {n}: a prime factor of more than {most}")


def twiddles(radices):
    """The factors between the stages, as pairs of float32 in a flat NumPy array."""
    import numpy as np

    tables, done = [np.ones(1)], radices[0]
    for radix in radices[1:]:
        angle = np.outer(np.arange(1, radix), np.arange(done)) / (done * radix)
        tables.append(np.exp(-2j * np.pi * angle).ravel())
        done *= radix
    return np.concatenate(tables[1:] or tables).astype(np.complex64).view(np.float32)


def fewest_rows(radices, num_warps):
    """How many rows a program takes so that every stage has an item for each thread, and whole warps of them if the rows are few."""
    n = math.prod(radices)
    whole = math.lcm(*(32 // math.gcd(32, n // r) for r in radices))
    if whole * n > 8192:
        whole = 1
    return triton.cdiv(32 * num_warps, whole * (n // max(radices))) * whole


def fft(x, out, table, radices, rows=None, num_warps=None, turns=1):
    """Puts the transform of each row of ``x`` into ``out``, as ``torch.fft.fft`` orders it.

    ``x``: rows of floats, or (rows, n, 2) for pairs of real and imaginary parts; ``out``: (rows, n, 2). Types are float32, float16
    and bfloat16; computed is in float32. ``table``: ``twiddles(radices)``, where the kernel runs. A program takes ``turns`` blocks
    of ``rows`` rows one after the other.
    """
    n = math.prod(radices)
    assert x.shape[1] == n and out.shape[1] == n, f"rows of {x.shape[1]}, radices of {n}"
    num_warps = num_warps or 1
    rows = rows or fewest_rows(radices, num_warps)
    grid = (triton.cdiv(x.shape[0], rows * turns),)
    is_real, whole = len(x.shape) == 2, x.shape[0] % rows == 0
    fft_kernel[grid](
        x, out, table, x.shape[0], radices, rows, whole, turns == 1, is_real, num_warps=num_warps
    )


def main():
    """Transforms some rows on the CPU and compares them with NumPy's."""
    import numpy as np

    rng = np.random.default_rng(0)
    for n in (64, 96, 256, 384):
        x = (rng.standard_normal((5, n)) + 1j * rng.standard_normal((5, n))).astype(np.complex64)
        out = np.empty_like(x)
        radices = radices_of(n)
        fft(
            x.view(np.float32).reshape(5, n, 2),
            out.view(np.float32).reshape(5, n, 2),
            twiddles(radices),
            radices,
        )
        want = np.fft.fft(x.astype(np.complex128))
        # Every element of a row is a sum of all of its elements: a small one errs as much as a large one, which is little of the row's spread.
        error, spread = abs(out - want), np.sqrt((abs(want) ** 2).mean(1, keepdims=True))
        assert (error <= 1e-6 * spread).all(), f"off by {(error / spread).max():.3g} of a row's spread"
        print(f"transforms of {n} elements by radices {radices}")


if __name__ == "__main__":
    main()
