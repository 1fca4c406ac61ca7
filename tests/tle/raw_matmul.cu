// What the kernel of raw_matmul.py calls, and what the same kernel in CUDA alone (tests/gpu/raw_matmul.cu) calls, too.

#ifndef RAW_MATMUL
#define RAW_MATMUL

// What each of 128 threads has of a tile of 64 x 128, as `wgmma` deals it out.
struct Sums { float v[64]; };

#define FOUR(i) "+f"(d.v[i]), "+f"(d.v[i + 1]), "+f"(d.v[i + 2]), "+f"(d.v[i + 3])
#define SIXTEEN(i) FOUR(i), FOUR(i + 4), FOUR(i + 8), FOUR(i + 12)

// Rows of 8 numbers of 16 bits, `rows` of them for each 8 along K: no swizzle, 128 bytes to the next 8 rows (PTX ISA, "Matrix descriptor").
template <int rows> __device__ unsigned long long descriptor(const void* at) {
  unsigned address = __cvta_generic_to_shared(at);
  return (unsigned long long)(address >> 4 & 0x3fff) | (unsigned long long)rows << 16 | 8ull << 32;
}

#define PRODUCT                                                                                       \
  "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"                                             \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                            \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "                  \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "                  \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "                 \
  "%64, %65, 1, 1, 1, 0, 0;"
// 16 further along K: 4096 bytes, in units of 16.
#define NEXT "add.s64 %64, %64, 256; add.s64 %65, %65, 256;"

// Adds a @ b.T of 64 along K: `a` is the part of 64 rows that begins at row `first` of [8, 128, 8] halves, `b` [8, 128, 8] halves. One
// statement, so that the compiler copies no sums between products that are under way.
__device__ Sums multiply(Sums given, const unsigned short* a, const unsigned short* b, int first) {
  __builtin_assume(__isShared(a));
  __builtin_assume(__isShared(b));
  // A copy, as the compiler keeps a parameter in memory whose parts `asm` writes.
  Sums d = given;
  unsigned long long left = descriptor<128>(a + first * 8), right = descriptor<128>(b);
  asm volatile(
      "wgmma.fence.sync.aligned;" PRODUCT NEXT PRODUCT NEXT PRODUCT NEXT PRODUCT
      "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"
      : SIXTEEN(0), SIXTEEN(16), SIXTEEN(32), SIXTEEN(48), "+l"(left), "+l"(right)::"memory");
  return d;
}

#endif
