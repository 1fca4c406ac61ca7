// The kernels of tests/tle/raw_workloads.py in CUDA alone, by the same functions of a thread.

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
