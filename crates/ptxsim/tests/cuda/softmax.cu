// One row a block of 128 threads; up to 8 values a thread, kept in registers.
#include <math_constants.h>
__device__ float block_reduce(float v, bool max) {
  __shared__ float part[4];
  for (int d = 16; d > 0; d >>= 1) {
    float o = __shfl_xor_sync(0xffffffffu, v, d);
    v = max ? fmaxf(v, o) : v + o;
  }
  __syncthreads();
  if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = v;
  __syncthreads();
  v = part[0];
  for (int i = 1; i < 4; i++) v = max ? fmaxf(v, part[i]) : v + part[i];
  return v;
}
extern "C" __global__ void softmax(const float* x, float* y, int cols) {
  const float* row = x + (size_t)blockIdx.x * cols;
  float v[8], m = -CUDART_INF_F, s = 0;
  for (int i = 0; i < 8; i++) {
    int c = threadIdx.x + i * 128;
    v[i] = c < cols ? row[c] : -CUDART_INF_F;
    m = fmaxf(m, v[i]);
  }
  m = block_reduce(m, true);
  for (int i = 0; i < 8; i++) { v[i] = exp2f((v[i] - m) * 1.44269504f); s += v[i]; }
  s = block_reduce(s, false);
  for (int i = 0; i < 8; i++) {
    int c = threadIdx.x + i * 128;
    if (c < cols) y[(size_t)blockIdx.x * cols + c] = v[i] / s;
  }
}
