"""``tl.device_print``: the executor and the simulator write the same text."""

import re

import ml_dtypes
import numpy as np
import pytest

import tilewright as triton
import tilewright.language as tl


@triton.jit
def print_kernel(x_ptr, HEX: tl.constexpr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.device_print("x", x, hex=HEX)


def printed(monkeypatch, capfd, backend, x, hex):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", backend)
    print_kernel[(1,)](x, HEX=hex, N=len(x))
    lines = [line for line in capfd.readouterr().out.splitlines() if "x:" in line]
    pairs = [re.search(r"idx \( *(\d+)\) x: (\S+)$", line).groups() for line in lines]
    return [text for _, text in sorted(pairs, key=lambda pair: int(pair[0]))]


DTYPES = [
    *(np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64),
    *(np.float16, ml_dtypes.bfloat16, np.float32, np.float64, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2),
]


@pytest.mark.parametrize("backend", ["interp", "ptxsim"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_hexadecimal_prints_the_bits(monkeypatch, capfd, backend, dtype):
    values = [0, 1, 2, 100] + ([] if np.dtype(dtype).kind == "u" else [-1, -100])
    x = np.array(values + [values[-1]] * (8 - len(values))).astype(dtype)
    bits = x.view(f"u{x.itemsize}")
    assert printed(monkeypatch, capfd, backend, x, True) == [
        f"0x{b:0{2 * x.itemsize}x}" for b in bits.tolist()
    ]


@pytest.mark.parametrize("dtype", DTYPES)
def test_decimal(monkeypatch, capfd, dtype):
    x = np.array([0, 1, 2, 96, 3, 5, 7, 8]).astype(dtype)
    want = [f"{v:f}" if np.dtype(dtype).kind not in "iu" else str(int(v)) for v in x.astype(np.float64)]
    for backend in ("interp", "ptxsim"):
        assert printed(monkeypatch, capfd, backend, x, False) == want


@triton.jit
def print_program(x_ptr, N: tl.constexpr):
    tl.device_print("x", tl.load(x_ptr + tl.arange(0, N)))


def test_programs_of_several_ctas_print_their_own_index(monkeypatch, capfd):
    monkeypatch.setenv("TILEWRIGHT_BACKEND", "ptxsim")
    print_program[(3,)](np.arange(8, dtype=np.int32), N=8, num_ctas=2)
    programs = re.findall(r"pid \((\d+), (\d+), (\d+)\)", capfd.readouterr().out)
    assert set(programs) == {("0", "0", "0"), ("1", "0", "0"), ("2", "0", "0")}


@triton.jit
def print_python_s_kernel(x_ptr):
    print("x", tl.load(x_ptr + tl.arange(0, 4)), hex=True)


def test_python_s_print_hands_on_how(capfd):
    print_python_s_kernel[(1,)](np.array([1, 10, 255, -1], np.int32))
    words = [line.rsplit(" ", 1)[-1] for line in capfd.readouterr().out.splitlines() if "x:" in line]
    assert sorted(words) == ["0x00000001", "0x0000000a", "0x000000ff", "0xffffffff"]
