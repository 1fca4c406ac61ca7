// What the kernels of raw_workloads.py call, and what the same kernels in CUDA alone (tests/gpu/raw.cu) call, too.

#ifndef RAW_WORKLOADS
#define RAW_WORKLOADS

#include <cuda_fp16.h>
#include <cuda_fp8.h>

struct Four { float v[4]; };
struct Sixteen { float v[16]; };
struct Halves { __half v[8]; };
struct Words { unsigned v[2]; };
struct Keys { unsigned v[4]; };

__device__ Four add(Four x, Four y) {
  for (int i = 0; i < 4; i++) x.v[i] += y.v[i];
  return x;
}

template <class F> __device__ float over_warp(float x, F combine) {
  for (int lanes = 16; lanes > 0; lanes /= 2) x = combine(x, __shfl_xor_sync(~0u, x, lanes));
  return x;
}

// Over 256 threads; `part` has room for a number of each warp.
template <class F> __device__ float over_block(float x, float* part, F combine) {
  x = over_warp(x, combine);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = x;
  __syncthreads();
  float y = part[0];
  for (int w = 1; w < 8; w++) y = combine(y, part[w]);
  return y;
}

// A row of 4096 numbers, 16 a thread.
__device__ Sixteen softmax(Sixteen x) {
  __shared__ float greatest[8], sums[8];
  auto larger = [](float a, float b) { return fmaxf(a, b); };
  auto sum = [](float a, float b) { return a + b; };
  float top = x.v[0];
  for (int i = 1; i < 16; i++) top = fmaxf(top, x.v[i]);
  top = over_block(top, greatest, larger);
  float total = 0;
  for (int i = 0; i < 16; i++) {
    x.v[i] = exp2f((x.v[i] - top) * 1.44269504f);
    total += x.v[i];
  }
  total = 1 / over_block(total, sums, sum);
  for (int i = 0; i < 16; i++) x.v[i] *= total;
  return x;
}

// Groups of 128 halves as fp8 with a scale each: 16 threads a group, 8 halves a thread, in two words.
__device__ Words quantize(Halves x, float* scales, int first) {
  __builtin_assume(__isGlobal(scales));
  float v[8], top = 1e-10f;
  for (int i = 0; i < 8; i++) {
    v[i] = __half2float(x.v[i]);
    top = fmaxf(top, fabsf(v[i]));
  }
  for (int lanes = 8; lanes > 0; lanes /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, lanes));
  float scale = top / 448, by = 1 / scale;
  if (threadIdx.x % 16 == 0) scales[first + threadIdx.x / 16] = scale;
  Words out;
  for (int w = 0; w < 2; w++) {
    unsigned low = __nv_cvt_float2_to_fp8x2({v[4 * w] * by, v[4 * w + 1] * by}, __NV_SATFINITE, __NV_E4M3);
    unsigned high = __nv_cvt_float2_to_fp8x2({v[4 * w + 2] * by, v[4 * w + 3] * by}, __NV_SATFINITE, __NV_E4M3);
    out.v[w] = low | high << 16;
  }
  return out;
}

// The 8 largest of 1024 numbers, 4 a thread, the largest first, with their places.
__device__ void topk(Four x, float* values, int* places) {
  __builtin_assume(__isGlobal(values));
  __builtin_assume(__isGlobal(places));
  __shared__ unsigned long long part[2][8];
  unsigned long long key[4];
  for (int i = 0; i < 4; i++) {
    unsigned bits = __float_as_uint(x.v[i]);
    bits ^= (bits >> 31) ? ~0u : 0x80000000u;
    key[i] = (unsigned long long)bits << 32 | (1023 - (4 * threadIdx.x + i));
  }
  for (int k = 0; k < 8; k++) {
    unsigned long long top = key[0];
    for (int i = 1; i < 4; i++) top = key[i] > top ? key[i] : top;
    for (int lanes = 16; lanes > 0; lanes /= 2) {
      unsigned long long other = __shfl_xor_sync(~0u, top, lanes);
      top = other > top ? other : top;
    }
    if (threadIdx.x % 32 == 0) part[k & 1][threadIdx.x / 32] = top;
    __syncthreads();
    for (int w = 0; w < 8; w++) top = part[k & 1][w] > top ? part[k & 1][w] : top;
    for (int i = 0; i < 4; i++) key[i] = key[i] == top ? 0 : key[i];
    if (threadIdx.x == 0) {
      unsigned bits = top >> 32;
      bits ^= (bits >> 31) ? 0x80000000u : ~0u;
      values[k] = __uint_as_float(bits);
      places[k] = 1023 - (int)(unsigned)top;
    }
  }
}

// 1024 keys, 4 a thread, by 4 bits a step: each thread counts its keys of each digit, which a scan over the block places.
__device__ Keys sort(Keys x) {
  __shared__ unsigned short counts[16 * 256 + 1];
  __shared__ unsigned keys[1024];
  __shared__ unsigned part[8];
  for (int shift = 0; shift < 32; shift += 4) {
    for (int d = 0; d < 16; d++) counts[d * 256 + threadIdx.x] = 0;
    unsigned short rank[4];
    for (int i = 0; i < 4; i++) rank[i] = counts[(x.v[i] >> shift & 15) * 256 + threadIdx.x]++;
    __syncthreads();
    // A thread has 16 counts, one behind the other.
    unsigned own[16], sum = 0;
    for (int i = 0; i < 16; i++) {
      own[i] = sum;
      sum += counts[16 * threadIdx.x + i];
    }
    unsigned before = sum;
    for (int lanes = 1; lanes < 32; lanes *= 2) {
      unsigned other = __shfl_up_sync(~0u, before, lanes);
      if (threadIdx.x % 32 >= lanes) before += other;
    }
    if (threadIdx.x % 32 == 31) part[threadIdx.x / 32] = before;
    __syncthreads();
    before -= sum;
    for (int w = 0; w < 8; w++) before += w < threadIdx.x / 32 ? part[w] : 0;
    for (int i = 0; i < 16; i++) counts[16 * threadIdx.x + i] = before + own[i];
    __syncthreads();
    for (int i = 0; i < 4; i++) keys[counts[(x.v[i] >> shift & 15) * 256 + threadIdx.x] + rank[i]] = x.v[i];
    __syncthreads();
    for (int i = 0; i < 4; i++) x.v[i] = keys[4 * threadIdx.x + i];
  }
  return x;
}

#endif
