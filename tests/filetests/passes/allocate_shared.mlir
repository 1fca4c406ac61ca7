// Buffers whose lives do not meet share memory; a buffer that a loop reads lives to the loop's end.
// RUN: -allocate-shared
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK: ttg.shared = 12288 : i32
  tt.func public @f(%x: tensor<32x32xf32, #blocked>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    // CHECK: ttg.local_alloc {{.*}}allocation.offset = 0
    %0 = ttg.local_alloc %x : (tensor<32x32xf32, #blocked>) -> !ttg.memdesc<32x32xf32, #shared, #smem>
    scf.for %i = %c0 to %n step %c1 : i32 {
      %1 = ttg.local_load %0 : !ttg.memdesc<32x32xf32, #shared, #smem> -> tensor<32x32xf32, #blocked>
      // Needed while the first is: another place. The next one is not needed any more then.
      // CHECK: ttg.local_alloc {{.*}}allocation.offset = 4096
      %2 = ttg.local_alloc %1 : (tensor<32x32xf32, #blocked>) -> !ttg.memdesc<32x32xf32, #shared, #smem>
      %3 = ttg.local_load %2 : !ttg.memdesc<32x32xf32, #shared, #smem> -> tensor<32x32xf32, #blocked>
      // CHECK: ttg.local_alloc {{.*}}allocation.offset = 4096
      %4 = ttg.local_alloc %3 : (tensor<32x32xf32, #blocked>) -> !ttg.memdesc<32x32xf32, #shared, #smem>
      %5 = ttg.local_load %4 : !ttg.memdesc<32x32xf32, #shared, #smem> -> tensor<32x32xf32, #blocked>
    }
    // CHECK: ttg.local_alloc {{.*}}allocation.offset = 0
    %6 = ttg.local_alloc : () -> !ttg.memdesc<3x32x32xf32, #shared, #smem, mutable>
    %7 = ttg.memdesc_index %6[%c1] : !ttg.memdesc<3x32x32xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x32xf32, #shared, #smem, mutable>
    ttg.local_store %x, %7 : tensor<32x32xf32, #blocked> -> !ttg.memdesc<32x32xf32, #shared, #smem, mutable>
    tt.return
  }
}
// -----
// RUN: -allocate-shared -target=cuda:89
// ERROR: too much shared memory: the kernel needs 131072 bytes, cuda:89 has 101376
// ERROR: 131072 bytes: buffer of 2x128x128xf32
// ERROR: smaller num_stages
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:89", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f() {
    %0 = ttg.local_alloc : () -> !ttg.memdesc<2x128x128xf32, #shared, #smem, mutable>
    tt.return
  }
}
// -----
// A kernel that is written for one warp: what all warps see lies first, each buffer in memory of its own though their lives do not meet;
// behind it each of the four has its own.
// RUN: -allocate-shared
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [1, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {tt.warp_level = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, "ttg.total-num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK: ttg.shared = 24576 : i32{{.*}}"ttg.warp-shared" = 4096 : i32
  tt.func public @f(%x: tensor<32x32xf32, #blocked>) {
    // CHECK: ttg.local_alloc {allocation.offset = 0 : i32, ttg.all_warps}
    %0 = ttg.local_alloc {ttg.all_warps} : () -> !ttg.memdesc<32x32xf32, #shared, #smem, mutable>
    ttg.local_store %x, %0 : tensor<32x32xf32, #blocked> -> !ttg.memdesc<32x32xf32, #shared, #smem, mutable>
    // CHECK: ttg.local_alloc {allocation.offset = 4096 : i32, ttg.all_warps}
    %1 = ttg.local_alloc {ttg.all_warps} : () -> !ttg.memdesc<32x32xf32, #shared, #smem, mutable>
    ttg.local_store %x, %1 : tensor<32x32xf32, #blocked> -> !ttg.memdesc<32x32xf32, #shared, #smem, mutable>
    // CHECK: ttg.local_alloc {{.*}}allocation.offset = 8192
    %2 = ttg.local_alloc %x : (tensor<32x32xf32, #blocked>) -> !ttg.memdesc<32x32xf32, #shared, #smem>
    %3 = ttg.local_load %2 : !ttg.memdesc<32x32xf32, #shared, #smem> -> tensor<32x32xf32, #blocked>
    // CHECK: ttg.local_alloc {{.*}}allocation.offset = 8192
    %4 = ttg.local_alloc %3 : (tensor<32x32xf32, #blocked>) -> !ttg.memdesc<32x32xf32, #shared, #smem>
    %5 = ttg.local_load %4 : !ttg.memdesc<32x32xf32, #shared, #smem> -> tensor<32x32xf32, #blocked>
    tt.return
  }
}
