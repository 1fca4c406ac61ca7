// Alignment of tokens to experts in CUDA C++, to compare examples/tle/moe_align.py with: counts, a scan over experts, a scatter.
//
// Three ways, as libraries do it: all by one block; the scatter by a second kernel of many blocks with atomics in global memory; and
// counts by many blocks, from which those of a second kernel, which scatters, find where their own tokens begin. At most 1024 experts.

#include <cuda_runtime.h>

namespace {

constexpr int MOST_THREADS = 1024;

struct Tokens {
    const int* experts;
    int num_tokens, num_experts, block;
    int *sorted, *block_experts, *total;
};

// The sum of the values of all threads before this one, and of all; every thread calls it, there are whole warps.
__device__ int sum_before(int value, int& total) {
    __shared__ int warp_sums[MOST_THREADS / 32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    int sum = value;
    for (int step = 1; step < 32; step *= 2) {
        int other = __shfl_up_sync(~0u, sum, step);
        if (lane >= step) sum += other;
    }
    if (lane == 31) warp_sums[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        int of_warp = lane < warps ? warp_sums[lane] : 0;
        for (int step = 1; step < 32; step *= 2) {
            int other = __shfl_up_sync(~0u, of_warp, step);
            if (lane >= step) of_warp += other;
        }
        if (lane < warps) warp_sums[lane] = of_warp;
    }
    __syncthreads();
    total = warp_sums[warps - 1];
    return sum - value + (warp ? warp_sums[warp - 1] : 0);
}

// Calls f(token, expert) for the tokens from begin to end, four of them at a time where they are aligned; begin is a multiple of 4.
template <class F>
__device__ void for_tokens(const Tokens& t, int begin, int end, F f) {
    int whole = begin + (end - begin) / 4 * 4;
    for (int i = begin + 4 * threadIdx.x; i < whole; i += 4 * blockDim.x) {
        int4 e = *reinterpret_cast<const int4*>(t.experts + i);
        f(i, e.x), f(i + 1, e.y), f(i + 2, e.z), f(i + 3, e.w);
    }
    for (int i = whole + threadIdx.x; i < end; i += blockDim.x) f(i, t.experts[i]);
}

__device__ void count_tokens(const Tokens& t, int begin, int end, int* counts) {
    for (int e = threadIdx.x; e < t.num_experts; e += blockDim.x) counts[e] = 0;
    __syncthreads();
    for_tokens(t, begin, end, [=](int, int expert) { atomicAdd(counts + expert, 1); });
    __syncthreads();
}

// With counts[e] tokens of each expert: where they begin, into starts, whose last element is the number of places. The blocks of the grid
// share what is to be written: places that nobody has, and what blocks belong to.
__device__ void begin_experts(const Tokens& t, int count, int* starts) {
    int e = threadIdx.x, padded = (count + t.block - 1) / t.block * t.block, places;
    int start = sum_before(padded, places);
    if (e < t.num_experts) {
        starts[e] = start;
        if (e % gridDim.x == blockIdx.x) {
            for (int i = start + count; i < start + padded; i++) t.sorted[i] = t.num_tokens;
        }
    }
    if (e == 0) {
        starts[t.num_experts] = places;
        if (blockIdx.x == 0) *t.total = places;
    }
    __syncthreads();
    for (int b = blockIdx.x * blockDim.x + e; b < places / t.block; b += gridDim.x * blockDim.x) {
        int low = 0, high = t.num_experts;  // the last expert that begins here or before
        while (high - low > 1) {
            int middle = (low + high) / 2;
            (starts[middle] <= b * t.block ? low : high) = middle;
        }
        t.block_experts[b] = low;
    }
}

__global__ void __launch_bounds__(MOST_THREADS) align_by_one_block(Tokens t) {
    extern __shared__ int counts[];
    int* starts = counts + t.num_experts;
    count_tokens(t, 0, t.num_tokens, counts);
    begin_experts(t, threadIdx.x < t.num_experts ? counts[threadIdx.x] : 0, starts);
    __syncthreads();
    for_tokens(t, 0, t.num_tokens, [=](int token, int expert) { t.sorted[atomicAdd(starts + expert, 1)] = token; });
}

__global__ void __launch_bounds__(MOST_THREADS) begin_by_one_block(Tokens t, int* next) {
    extern __shared__ int counts[];
    int* starts = counts + t.num_experts;
    count_tokens(t, 0, t.num_tokens, counts);
    begin_experts(t, threadIdx.x < t.num_experts ? counts[threadIdx.x] : 0, starts);
    if (threadIdx.x < t.num_experts) next[threadIdx.x] = starts[threadIdx.x];
}

__global__ void scatter(Tokens t, int* next) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < t.num_tokens) t.sorted[atomicAdd(next + t.experts[i], 1)] = i;
}

__device__ int share_of(const Tokens& t) { return (t.num_tokens + 4 * gridDim.x - 1) / (4 * gridDim.x) * 4; }

__global__ void __launch_bounds__(MOST_THREADS) count_by_blocks(Tokens t, int* of_blocks) {
    extern __shared__ int counts[];
    int begin = min(blockIdx.x * share_of(t), t.num_tokens);
    count_tokens(t, begin, min(begin + share_of(t), t.num_tokens), counts);
    for (int e = threadIdx.x; e < t.num_experts; e += blockDim.x) of_blocks[blockIdx.x * t.num_experts + e] = counts[e];
}

__global__ void __launch_bounds__(MOST_THREADS) scatter_by_blocks(Tokens t, const int* of_blocks) {
    extern __shared__ int starts[];
    int e = threadIdx.x, count = 0, before = 0;
    if (e < t.num_experts) {
        for (int b = 0; b < gridDim.x; b++) {
            int c = of_blocks[b * t.num_experts + e];
            count += c;
            before += b < blockIdx.x ? c : 0;
        }
    }
    begin_experts(t, count, starts);
    __syncthreads();
    if (e < t.num_experts) starts[e] += before;
    __syncthreads();
    int begin = min(blockIdx.x * share_of(t), t.num_tokens);
    for_tokens(t, begin, min(begin + share_of(t), t.num_tokens),
               [=](int token, int expert) { t.sorted[atomicAdd(starts + expert, 1)] = token; });
}

}  // namespace

// Launches a variant: "one" block, "scatter" by atomics in global memory, or "blocks" that count and scatter. `scratch` has room for
// blocks * num_experts elements. Threads are a multiple of 32, at least as many as experts. Gives CUDA's error code.
extern "C" int moe_align(char variant, const int* experts, int num_tokens, int num_experts, int block, int* sorted,
                         int* block_experts, int* total, int* scratch, int blocks, int threads, cudaStream_t stream) {
    Tokens t{experts, num_tokens, num_experts, block, sorted, block_experts, total};
    size_t bytes = (2 * num_experts + 1) * sizeof(int);
    if (variant == 'o') {
        align_by_one_block<<<1, threads, bytes, stream>>>(t);
    } else if (variant == 's') {
        begin_by_one_block<<<1, threads, bytes, stream>>>(t, scratch);
        scatter<<<(num_tokens + 255) / 256, 256, 0, stream>>>(t, scratch);
    } else {
        count_by_blocks<<<blocks, threads, bytes, stream>>>(t, scratch);
        scatter_by_blocks<<<blocks, threads, bytes, stream>>>(t, scratch);
    }
    return cudaGetLastError();
}
