"""The demo: softmax and matmul on the CPU executor against NumPy, and the same kernels compiled for an H100.

No GPU is needed: `ptxas` and the disassembler are programs that run anywhere.
"""

import time

import matmul
import numpy as np
import softmax

import tilewright


def on_the_cpu() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((512, 1000), dtype=np.float32)
    out = np.empty_like(x)
    softmax.softmax(x, out)
    start = time.perf_counter()
    softmax.softmax(x, out)
    ms = (time.perf_counter() - start) * 1e3
    error = np.abs(out - softmax.reference(x)).max()
    assert error < 1e-6
    print(f"softmax 512x1000 fp32, tile 1000     {ms:7.2f} ms   largest error against NumPy {error:.1e}")

    a, b = (rng.standard_normal((384, 384)).astype(np.float16) for _ in range(2))
    c = np.empty((384, 384), np.float32)
    for block in ((64, 64, 32), (96, 80, 48)):
        matmul.matmul(a, b, c, block)
        start = time.perf_counter()
        matmul.matmul(a, b, c, block)
        ms = (time.perf_counter() - start) * 1e3
        error = np.abs(c - a.astype(np.float64) @ b.astype(np.float64)).max()
        assert error < 1e-3
        print(f"matmul 384^3 fp16, tile {block!s:13} {ms:7.2f} ms   largest error against NumPy {error:.1e}")


def for_an_h100() -> None:
    f32, f16 = np.zeros((1024, 1000), np.float32), np.zeros((1024, 1024), np.float16)
    kernels = {
        "softmax, tile 1000": softmax.softmax_kernel.warmup(
            f32, f32, 1000, 1000, 1000, BLOCK=1000, grid=(1,), target="cuda:90"
        )
    }
    for block, warps in (((128, 128, 64), 8), ((96, 80, 48), 4)):
        m, n, k = block
        kernels[f"matmul, tile {m}x{n}x{k}"] = matmul.matmul_kernel.warmup(
            f16, f16, f16, 1024, 1024, 1024, 1024, 1, 1024, 1, 1024, 1,
            BLOCK_M=m, BLOCK_N=n, BLOCK_K=k, GROUP_M=8, ACC=tilewright.language.float32, PRECISION="tf32",
            num_warps=warps, grid=(1,), target="cuda:90",
        )  # fmt: skip
    for name, kernel in kernels.items():
        if "cubin" not in kernel.asm:
            raise SystemExit(f"{name}: no cubin was made")
        print(
            f"{name:26} cubin {len(kernel.asm['cubin'])} bytes, {kernel.n_regs} registers, {kernel.n_spills} bytes "
            f"spilled, {kernel.metadata.shared} bytes of shared memory"
        )
        mix = sorted(kernel.instruction_mix().items(), key=lambda item: -item[1])[:12]
        print("    " + "  ".join(f"{count} {opcode}" for opcode, count in mix))


if __name__ == "__main__":
    print("On the CPU:")
    on_the_cpu()
    print("Compiled for sm_90a:")
    for_an_h100()
