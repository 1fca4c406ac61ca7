"""The target, and functions that NVIDIA's GPUs have."""

import numpy as np

import tilewright as triton
import tilewright.language as tl
from tilewright.language.extra import cuda


# %% tl.target_info.current_target, tl.target_info.cuda_capability_geq, tl.target_info.is_cuda
@triton.jit
def choose(out_ptr):
    # Decided at compile time; on the CPU executor there is no target.
    if tl.target_info.cuda_capability_geq(9, 0):
        tl.store(out_ptr, 90)
    elif tl.target_info.is_cuda():
        tl.store(out_ptr, tl.target_info.current_target().arch)
    else:
        tl.store(out_ptr, -1)


out = np.zeros(1, np.int32)
choose[(1,)](out)
assert out[0] == -1


# %% tl.target_info.is_hip, tl.target_info.is_hip_cdna3, tl.target_info.is_hip_cdna4
@triton.jit
def wave(out_ptr):
    cdna3: tl.constexpr = tl.target_info.is_hip_cdna3()
    cdna4: tl.constexpr = tl.target_info.is_hip_cdna4()
    tl.store(out_ptr, 64 if cdna3 or cdna4 or tl.target_info.is_hip() else 32)


out = np.zeros(1, np.int32)
wave[(1,)](out)
assert out[0] == 32


# %% cuda.gdc_wait, cuda.gdc_launch_dependents
@triton.jit
def step(x_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    cuda.gdc_wait()  # what the kernel ahead wrote is there
    x = tl.load(x_ptr + i)
    cuda.gdc_launch_dependents()  # the kernel behind may begin
    tl.store(x_ptr + i, x + 1)


x = np.zeros(16, np.int32)
for _ in range(3):
    step[(1,)](x, N=16, launch_pdl=True)
np.testing.assert_array_equal(x, np.full(16, 3))


# %% cuda.globaltimer, cuda.smid
@triton.jit
def timed(x_ptr, log_ptr, BLOCK: tl.constexpr):
    begin = cuda.globaltimer()
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i) + 1)
    tl.store(log_ptr + tl.program_id(0) * 2, cuda.globaltimer() - begin)
    tl.store(log_ptr + tl.program_id(0) * 2 + 1, cuda.smid())


x, log = np.zeros(256, np.int32), np.full((4, 2), -1, np.int64)
timed[(4,)](x, log, BLOCK=64)
assert (log >= 0).all()


# %% cuda.num_threads, cuda.num_warps
@triton.jit
def threads(out_ptr):
    tl.store(out_ptr, cuda.num_threads())
    tl.store(out_ptr + 1, cuda.num_warps())


out = np.zeros(2, np.int32)
threads[(1,)](out, num_warps=8)
np.testing.assert_array_equal(out, [256, 8])


# %% cuda.convert_custom_float8, cuda.convert_custom_float8_sm80, cuda.convert_custom_float8_sm70
@triton.jit
def round_trip(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    narrow = cuda.convert_custom_float8_sm80(tl.load(x_ptr + i), tl.float8e4b15)
    wide = cuda.convert_custom_float8_sm70(narrow, tl.float16)
    narrow = cuda.convert_custom_float8(wide, tl.float8e4b15)
    tl.store(out_ptr + i, cuda.convert_custom_float8(narrow, tl.float32))


x, out = np.array([0.5, -1.25, 1.75, 8.0], np.float32), np.zeros(4, np.float32)
round_trip[(1,)](x, out, N=4)
np.testing.assert_array_equal(out, [0.5, -1.25, 1.75, 1.75])
