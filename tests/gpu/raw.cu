// The kernels of tests/tle/raw_workloads.py in CUDA alone, by the same functions of a thread.

#include "raw_matmul.cu"
#include "raw_workloads.cu"

extern "C" __global__ void __launch_bounds__(256) add_kernel(const float4* x, const float4* y, float4* out, int n) {
  int at = blockIdx.x * 256 + threadIdx.x;
  if (4 * at >= n) return;
  float4 a = x[at], b = y[at];
  Four sum = add({a.x, a.y, a.z, a.w}, {b.x, b.y, b.z, b.w});
  out[at] = {sum.v[0], sum.v[1], sum.v[2], sum.v[3]};
}

extern "C" __global__ void __launch_bounds__(256) softmax_kernel(const float4* x, float4* out) {
  const float4* from = x + blockIdx.x * 1024 + 4 * threadIdx.x;
  Sixteen row;
  for (int i = 0; i < 4; i++) ((float4*)row.v)[i] = from[i];
  row = softmax(row);
  for (int i = 0; i < 4; i++) (out + blockIdx.x * 1024 + 4 * threadIdx.x)[i] = ((float4*)row.v)[i];
}

extern "C" __global__ void __launch_bounds__(256) quantize_kernel(const uint4* x, uint2* out, float* scales) {
  uint4 from = x[blockIdx.x * 256 + threadIdx.x];
  Words words = quantize(*(Halves*)&from, scales, blockIdx.x * 16);
  out[blockIdx.x * 256 + threadIdx.x] = {words.v[0], words.v[1]};
}

extern "C" __global__ void __launch_bounds__(256) topk_kernel(const float4* x, float* values, int* places) {
  float4 a = x[blockIdx.x * 256 + threadIdx.x];
  topk({a.x, a.y, a.z, a.w}, values + blockIdx.x * 8, places + blockIdx.x * 8);
}

extern "C" __global__ void __launch_bounds__(256) sort_kernel(const uint4* x, uint4* out) {
  uint4 a = x[blockIdx.x * 256 + threadIdx.x];
  Keys keys = sort({a.x, a.y, a.z, a.w});
  out[blockIdx.x * 256 + threadIdx.x] = {keys.v[0], keys.v[1], keys.v[2], keys.v[3]};
}

// ---- the matmul of tests/tle/raw_matmul.py -----------------------------------------------------------------------

struct alignas(64) TensorMap { char bytes[128]; };

__device__ unsigned shared(const void* p) { return __cvta_generic_to_shared(p); }

__device__ void wait(const unsigned long long* barrier, int phase) {
  unsigned done = 0;
  while (!done)
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(shared(barrier)), "r"(phase & 1)
        : "memory");
}

__device__ void copy(void* to, const TensorMap* map, int row, int chunk, const unsigned long long* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(shared(to)),
      "l"(map), "r"(0), "r"(row), "r"(chunk), "r"(shared(barrier))
      : "memory");
}

// Two warp groups multiply 64 rows each, and a thread of a third copies. `k` is a multiple of 64.
extern "C" __global__ void __launch_bounds__(384)
    matmul_kernel(const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map, __half* c, int n, int k) {
  constexpr int slots = 4, elements = 8 * 128 * 8;
  extern __shared__ __align__(128) unsigned short memory[];
  __shared__ unsigned long long full[slots], empty[slots];
  unsigned short *a = memory, *b = memory + slots * elements;
  int group = threadIdx.x / 128, thread = threadIdx.x % 128;
  if (threadIdx.x == 0) {
    for (int s = 0; s < slots; s++) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared(full + s)) : "memory");
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 2;" ::"r"(shared(empty + s)) : "memory");
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (group == 2) {
    if (thread == 0)
      for (int i = 0; i < k / 64; i++) {
        int s = i % slots;
        wait(empty + s, i / slots + 1);
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 32768;" ::"r"(shared(full + s)) : "memory");
        copy(a + s * elements, &a_map, blockIdx.x * 128, i * 8, full + s);
        copy(b + s * elements, &b_map, blockIdx.y * 128, i * 8, full + s);
      }
    return;
  }
  Sums sums = {};
  for (int i = 0; i < k / 64; i++) {
    int s = i % slots;
    wait(full + s, i / slots);
    sums = multiply(sums, a + s * elements, b + s * elements, group * 64);
    asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory");
    if (thread == 0) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared(empty + s)) : "memory");
  }
  int row = blockIdx.x * 128 + group * 64 + thread / 32 * 16 + thread % 32 / 4, column = blockIdx.y * 128 + thread % 4 * 2;
  for (int j = 0; j < 16; j++)
    for (int h = 0; h < 2; h++)
      *(__half2*)(c + (long long)(row + 8 * h) * n + column + 8 * j) =
          __floats2half2_rn(sums.v[4 * j + 2 * h], sums.v[4 * j + 2 * h + 1]);
}
