// Kernels of many kinds; tests/cuda.rs runs each and compares.
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>
#include <stdio.h>
#include <assert.h>
namespace cg = cooperative_groups;

extern "C" __global__ void saxpy(int n, float a, const float* x, float* y) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = a * x[i] + y[i];
}

extern "C" __global__ void reduce_shared(const float* x, float* out, int n) {
  extern __shared__ float s[];
  int t = threadIdx.x;
  float v = 0;
  for (int i = t; i < n; i += blockDim.x) v += x[i];
  s[t] = v;
  for (int d = blockDim.x / 2; d > 0; d >>= 1) {
    __syncthreads();
    if (t < d) s[t] += s[t + d];
  }
  if (t == 0) *out = s[0];
}

extern "C" __global__ void reduce_atomic(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int v = i < n ? x[i] : 0;
  for (int d = 16; d > 0; d >>= 1) v += __shfl_down_sync(0xffffffffu, v, d);
  if ((threadIdx.x & 31) == 0) { atomicAdd(out, v); atomicMax(out + 1, v); atomicMin(out + 2, v); }
}

extern "C" __global__ void scan_block(const int* x, int* y) {
  __shared__ int sums[32];
  int t = threadIdx.x, lane = t & 31, w = t >> 5;
  int v = x[t];
  for (int d = 1; d < 32; d <<= 1) {
    int o = __shfl_up_sync(0xffffffffu, v, d);
    if (lane >= d) v += o;
  }
  if (lane == 31) sums[w] = v;
  __syncthreads();
  if (w == 0) {
    int s = lane < blockDim.x / 32 ? sums[lane] : 0;
    for (int d = 1; d < 32; d <<= 1) {
      int o = __shfl_up_sync(0xffffffffu, s, d);
      if (lane >= d) s += o;
    }
    sums[lane] = s;
  }
  __syncthreads();
  y[t] = v + (w > 0 ? sums[w - 1] : 0);
}

// Chained scan over CTAs: each waits for the one before it, through a flag.
extern "C" __global__ void scan_chained(const int* x, int* y, volatile int* state) {
  __shared__ int base;
  __shared__ int total;
  int t = threadIdx.x;
  __shared__ int s[128];
  s[t] = x[blockIdx.x * 128 + t];
  __syncthreads();
  for (int d = 1; d < 128; d <<= 1) {
    int o = t >= d ? s[t - d] : 0;
    __syncthreads();
    s[t] += o;
    __syncthreads();
  }
  if (t == 127) total = s[127];
  __syncthreads();
  if (t == 0) {
    int b = 0;
    if (blockIdx.x > 0) {
      while (state[2 * (blockIdx.x - 1)] == 0) {}
      __threadfence();
      b = state[2 * (blockIdx.x - 1) + 1];
    }
    state[2 * blockIdx.x + 1] = b + total;
    __threadfence();
    state[2 * blockIdx.x] = 1;
    base = b;
  }
  __syncthreads();
  y[blockIdx.x * 128 + t] = base + s[t];
}

extern "C" __global__ void transpose(const float* in, float* out, int w, int h) {
  __shared__ float tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x;
  for (int j = threadIdx.y; j < 32; j += 8) {
    int y = blockIdx.y * 32 + j;
    if (x < w && y < h) tile[j][threadIdx.x] = in[y * w + x];
  }
  __syncthreads();
  int xo = blockIdx.y * 32 + threadIdx.x;
  for (int j = threadIdx.y; j < 32; j += 8) {
    int yo = blockIdx.x * 32 + j;
    if (xo < h && yo < w) out[yo * h + xo] = tile[threadIdx.x][j];
  }
}

extern "C" __global__ void transpose_conflicts(const float* in, float* out) {
  __shared__ float tile[32][32];
  for (int j = threadIdx.y; j < 32; j += 8) tile[j][threadIdx.x] = in[j * 32 + threadIdx.x];
  __syncthreads();
  for (int j = threadIdx.y; j < 32; j += 8) out[j * 32 + threadIdx.x] = tile[threadIdx.x][j];
}

extern "C" __global__ void matmul_simple(const float* a, const float* b, float* c, int n) {
  __shared__ float as[16][16], bs[16][16];
  int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * 16 + ty, col = blockIdx.x * 16 + tx;
  float acc = 0;
  for (int k = 0; k < n; k += 16) {
    as[ty][tx] = row < n && k + tx < n ? a[row * n + k + tx] : 0;
    bs[ty][tx] = k + ty < n && col < n ? b[(k + ty) * n + col] : 0;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 16; i++) acc += as[ty][i] * bs[i][tx];
    __syncthreads();
  }
  if (row < n && col < n) c[row * n + col] = acc;
}

extern "C" __global__ void histogram(const unsigned char* x, unsigned* bins, int n) {
  __shared__ unsigned s[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) s[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&s[x[i]], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&bins[i], s[i]);
}

extern "C" __global__ void ballot_compact(const int* x, int* y, int* count) {
  int v = x[threadIdx.x];
  unsigned m = __ballot_sync(0xffffffffu, v > 0);
  int lane = threadIdx.x & 31, at = __popc(m & ((1u << lane) - 1)), base = 0;
  if (lane == 0) base = atomicAdd(count, __popc(m));
  base = __shfl_sync(0xffffffffu, base, 0);
  if (v > 0) y[base + at] = v;
}

extern "C" __global__ void groups(const int* x, int* y) {
  auto block = cg::this_thread_block();
  auto tile = cg::tiled_partition<8>(block);
  int v = x[block.thread_rank()];
  for (int d = tile.size() / 2; d > 0; d /= 2) v += tile.shfl_xor(v, d);
  y[block.thread_rank()] = v;
  if (v & 1) {
    auto active = cg::coalesced_threads();
    y[block.size() + block.thread_rank()] = active.thread_rank() + 100 * active.size();
  } else {
    y[block.size() + block.thread_rank()] = -1;
  }
}

extern "C" __global__ void match_groups(const int* x, unsigned* y) {
  unsigned m = __match_any_sync(0xffffffffu, x[threadIdx.x]);
  int leader = __ffs(m) - 1;
  y[threadIdx.x] = __reduce_add_sync(m, threadIdx.x) + (leader << 16);
}

__device__ __noinline__ float poly(float x, const float* c, int n) {
  float r = 0;
  for (int i = n - 1; i >= 0; i--) r = r * x + c[i];
  return r;
}
__constant__ float coef[4] = {1.0f, 0.5f, 0.25f, 0.125f};
extern "C" __global__ void calls(const float* x, float* y) {
  float local[8];
  for (int i = 0; i < 8; i++) local[i] = x[i] * (threadIdx.x + 1);
  int k = threadIdx.x & 7;
  y[threadIdx.x] = poly(local[k], coef, 4) + poly(x[threadIdx.x], local, 8);
}

extern "C" __global__ void switches(const int* x, int* y) {
  int v = x[threadIdx.x], r;
  switch (v) {
    case 0: r = 10; break;
    case 1: r = v * 7 + 1; break;
    case 2: r = v ^ 99; break;
    case 3: r = -v; break;
    case 4: r = v << 5; break;
    case 5: r = 1234; for (int i = 0; i < (int)threadIdx.x; i++) r = r * 3 + 1; break;
    case 6: r = 77; break;
    default: r = -1;
  }
  y[threadIdx.x] = r;
}

extern "C" __global__ void collatz(const unsigned* x, unsigned* y) {
  unsigned v = x[threadIdx.x], n = 0;
  while (v != 1) { v = v & 1 ? 3 * v + 1 : v / 2; n++; }
  y[threadIdx.x] = n;
}

extern "C" __global__ void halves(const half* x, half* y, __nv_bfloat16* z) {
  int i = threadIdx.x;
  half2 v = reinterpret_cast<const half2*>(x)[i];
  half2 r = __hfma2(v, v, __float2half2_rn(0.5f));
  r = __hmax2(r, __float2half2_rn(0.75f));
  reinterpret_cast<half2*>(y)[i] = r;
  z[i] = __float2bfloat16(__low2float(v)) * __float2bfloat16(3.0f) + __float2bfloat16(__high2float(v));
}

extern "C" __global__ void doubles(const double* x, double* y) {
  double v = x[threadIdx.x];
  y[threadIdx.x] = sqrt(fabs(v)) / (v * v + 1.0) + exp(v) - floor(v) + fma(v, v, 1.0);
}

extern "C" __global__ void functions(const float* x, float* y) {
  float v = x[threadIdx.x];
  float* o = y + threadIdx.x * 12;
  o[0] = sinf(v); o[1] = cosf(v); o[2] = expf(v); o[3] = logf(fabsf(v) + 1); o[4] = tanhf(v); o[5] = erff(v);
  o[6] = rsqrtf(fabsf(v) + 1); o[7] = powf(fabsf(v), 1.5f); o[8] = __expf(v); o[9] = __fdividef(v, 3.0f);
  o[10] = truncf(v) + rintf(v) + ceilf(v); o[11] = fmodf(v, 0.7f);
}

extern "C" __global__ void integers(const long long* x, long long* y) {
  long long v = x[threadIdx.x];
  unsigned long long u = v;
  int w = (int)v;
  y[threadIdx.x * 8 + 0] = v / 12345; y[threadIdx.x * 8 + 1] = u % 98765ull;
  y[threadIdx.x * 8 + 2] = __mul64hi(v, 0x123456789abcdefll);
  y[threadIdx.x * 8 + 3] = __popcll(u) + __clzll(v) * 100 + __ffsll(v) * 10000;
  y[threadIdx.x * 8 + 4] = (long long)__brevll(u); y[threadIdx.x * 8 + 5] = __byte_perm(w, w >> 3, 0x6420);
  y[threadIdx.x * 8 + 6] = (short)w * (long long)(signed char)(w >> 8);
  y[threadIdx.x * 8 + 7] = (v >> 7) ^ (v << 9) ^ (long long)(u >> (w & 63));
}

struct Box { int a; short b; char c[6]; float4 f; };
extern "C" __global__ void structs(Box box, Box* out, const float4* v) {
  Box r = box;
  r.a += threadIdx.x; r.b *= 2; r.c[3] = 'x';
  float4 q = v[threadIdx.x];
  r.f.x += q.w; r.f.y += q.z; r.f.z += q.y; r.f.w += q.x;
  out[threadIdx.x] = r;
}

extern "C" __global__ void prints(int n) {
  if ((int)threadIdx.x < n) printf("thread %d of %s: %5.2f|%-4x|%lld\n", threadIdx.x, "block", threadIdx.x * 0.5, 255, -1ll);
}
extern "C" __global__ void asserts(const int* x) { assert(x[threadIdx.x] >= 0); }

extern "C" __global__ void spin_locks(int* lock, int* data) {
  for (int i = 0; i < 4; i++) {
    bool done = false;
    while (!done) {
      if (atomicCAS(lock, 0, 1) == 0) {
        __threadfence();
        data[0] += 1; data[1] += data[0];
        __threadfence();
        atomicExch(lock, 0);
        done = true;
      }
    }
  }
}

// A barrier over the whole grid, by hand.
extern "C" __global__ void grid_barrier(int* counter, int* a, int* b) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  a[i] = i * 3;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(counter, 1);
    while (*(volatile int*)counter < (int)gridDim.x) {}
    __threadfence();
  }
  __syncthreads();
  b[i] = a[gridDim.x * blockDim.x - 1 - i];
}

extern "C" __global__ void last_block(const int* x, int* partial, unsigned* ticket, int* out) {
  __shared__ bool last;
  int v = x[blockIdx.x * 32 + threadIdx.x];
  for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = v;
    __threadfence();
    last = atomicInc(ticket, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last) {
    __threadfence();
    int s = 0;
    for (int i = threadIdx.x; i < (int)gridDim.x; i += 32) s += ((volatile int*)partial)[i];
    for (int d = 16; d > 0; d >>= 1) s += __shfl_xor_sync(0xffffffffu, s, d);
    if (threadIdx.x == 0) *out = s;
  }
}

extern "C" __global__ void bitonic(int* x) {
  __shared__ int s[256];
  int t = threadIdx.x;
  s[t] = x[t];
  for (int k = 2; k <= 256; k <<= 1)
    for (int j = k >> 1; j > 0; j >>= 1) {
      __syncthreads();
      int o = t ^ j;
      if (o > t && ((t & k) == 0) == (s[t] > s[o])) { int q = s[t]; s[t] = s[o]; s[o] = q; }
    }
  __syncthreads();
  x[t] = s[t];
}

extern "C" __global__ void stencil(const float* in, float* out, int n) {
  __shared__ float s[130];
  int i = blockIdx.x * 128 + threadIdx.x;
  s[threadIdx.x + 1] = i < n ? in[i] : 0;
  if (threadIdx.x == 0) s[0] = i > 0 ? in[i - 1] : 0;
  if (threadIdx.x == 127) s[129] = i + 1 < n ? in[i + 1] : 0;
  __syncthreads();
  if (i < n) out[i] = 0.25f * s[threadIdx.x] + 0.5f * s[threadIdx.x + 1] + 0.25f * s[threadIdx.x + 2];
}

extern "C" __global__ void tensor_int8(const signed char* a, const signed char* b, int* c) {
  int lane = threadIdx.x, g = lane >> 2, t = lane & 3;
  uint32_t ra[4], rb[2];
  int d[4] = {0, 0, 0, 0};
  for (int i = 0; i < 4; i++) ra[i] = *(const uint32_t*)(a + (g + 8 * (i & 1)) * 32 + t * 4 + (i >> 1) * 16);
  for (int i = 0; i < 2; i++) rb[i] = *(const uint32_t*)(b + g * 32 + t * 4 + i * 16);
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
    : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
  for (int i = 0; i < 4; i++) c[(g + 8 * (i >> 1)) * 8 + t * 2 + (i & 1)] = d[i];
}

#include <mma.h>
// One 16x16 tile a warp, through the fragment classes.
extern "C" __global__ void fragments(const half* a, const half* b, float* c, int k, int ldc) {
  using namespace nvcuda;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> acc;
  wmma::fill_fragment(acc, 0.0f);
  for (int i = 0; i < k; i += 16) {
    wmma::load_matrix_sync(fa, a + i, k);
    wmma::load_matrix_sync(fb, b + i, k);
    wmma::mma_sync(acc, fa, fb, acc);
  }
  for (int i = 0; i < acc.num_elements; i++) acc.x[i] *= 2;
  wmma::store_matrix_sync(c, acc, ldc, wmma::mem_row_major);
}
