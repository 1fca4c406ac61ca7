"""What ``tilewright compile`` takes for the constants of a file: those of its text, or what Python says where the text does not."""

import subprocess
import sys

import pytest

SOURCE = """
import sys

import {package} as triton
import {package}.language as tl
from {package}.language import constexpr as constant

N = 4
N *= 2
ALIAS = constant(N + 1)
try:
    import no_such_module
    FOUND = tl.constexpr(1)
except ImportError:
    FOUND = tl.constexpr(2)


@triton.jit
def by_default(out, n, /, M: tl.constexpr = 3 + 4, *, K: tl.constexpr, LAST: tl.constexpr = (1 << 5)):
    tl.store(out, n * 1000000 + M * 10000 + K * 100 + LAST)


@triton.jit
def by_global(out, n):
    tl.store(out, n + ALIAS * 10 + FOUND)


@triton.jit
def by_format(out, n):
    tl.store(out, n + (1 if f"{{1.5:.2f}}" == "1.50" else 0) + (10 if "%d" % 3 == "3" else 0))


@triton.jit
def by_tuple(out, n, T: tl.constexpr, U: tl.constexpr):
    tl.store(out, n + T[0] * 1000 + T[1][0] * 100 + len(T[1]) * 10 + len(U))


@triton.jit
def by_python(out, n, M=len(sys.argv) * 0 + 77):
    tl.store(out, n + M)
"""


def command(folder, package, kernel, *more):
    (folder / "kernels.py").write_text(SOURCE.format(package=package))
    line = [
        sys.executable,
        "-m",
        "tilewright",
        "compile",
        f"kernels.py::{kernel}",
        "--target",
        "interp",
        "-o",
        "out",
    ]
    done = subprocess.run(
        [*line, "--signature", "*i32,i32", *more], cwd=folder, capture_output=True, text=True, check=False
    )
    text = folder / "out" / f"{kernel}.ttir"
    return done.stderr, text.read_text() if text.exists() else ""


@pytest.mark.parametrize(
    ("kernel", "more", "constants"),
    [
        ("by_default", ["--constexpr", "K=9"], ["70932"]),
        ("by_global", [], ["92"]),
        ("by_format", [], ["11"]),
        ("by_python", [], ["77"]),
        ("by_tuple", ["--constexpr", "T=(3, [4, (5)])", "--constexpr", "U=()"], ["3420"]),
        ("by_tuple", ["--constexpr", "T=(3, (4,))", "--constexpr", "U=(abc)"], ["3415"]),
    ],
)
def test_constants_are_those_of_the_file(tmp_path, kernel, more, constants):
    errors, text = command(tmp_path, "tilewright", kernel, *more)
    assert text, errors
    for constant in constants:
        assert f"arith.constant {constant} :" in text


# The text imports what is not there, so that Python cannot say more.
@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        ("by_default", "nothing is said of: K"),
        ("by_global", "kernels.py cannot be imported"),
        ("by_tuple --constexpr T=1 --constexpr T=2", "--constexpr gives `T` two values"),
    ],
)
def test_what_cannot_be_known_is_an_error(tmp_path, kernel, message):
    kernel, *more = kernel.split()
    errors, text = command(tmp_path, "triton", kernel, *more)
    assert message in errors
    assert not text
