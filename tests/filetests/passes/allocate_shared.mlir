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
// -----
// 208 KiB are alive in the first loop, 192 in the second. But what lives through both goes behind the larger tile, and the 48 KiB that are stored fit neither before nor behind
// it (227 KiB): their buffer lives in its block alone, and is waited for there.
// RUN: -allocate-shared
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [8, 1], order = [1, 0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK: ttg.shared = 196608 : i32
  tt.func public @no_place(%d: !tt.tensordesc<tensor<128x192xf16, #shared>>, %a: tensor<128x256xf16, #blocked>, %b: tensor<128x384xf16, #blocked>, %c: tensor<128x192xf16, #blocked>, %e: tensor<128x512xf16, #blocked>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %x = ttg.local_alloc %a : (tensor<128x256xf16, #blocked>) -> !ttg.memdesc<128x256xf16, #shared, #smem>
    // CHECK-NOT: through_loop
    %s = ttg.local_alloc {tilewright.through_loop} : () -> !ttg.memdesc<128x192xf16, #shared, #smem, mutable>
    scf.for %i = %c0 to %n step %c1 : i32 {
      %t = ttg.local_alloc %b : (tensor<128x384xf16, #blocked>) -> !ttg.memdesc<128x384xf16, #shared, #smem>
      %u = ttg.local_load %t : !ttg.memdesc<128x384xf16, #shared, #smem> -> tensor<128x384xf16, #blocked>
      // CHECK: ttng.async_tma_store_wait
      // CHECK-NEXT: [[OWN:%.*]] = ttg.local_alloc {allocation.offset = 0 : i32} : () -> !ttg.memdesc<128x192xf16
      // CHECK-NEXT: ttg.local_store {{.*}}, [[OWN]]
      // CHECK-NEXT: ttng.async_tma_copy_local_to_global {{.*}} [[OWN]]
      // CHECK-NEXT: ttng.async_tma_store_wait {pendings = 0 : i32}
      // CHECK-NEXT: ttg.local_dealloc [[OWN]]
      // CHECK-NEXT: }
      ttng.async_tma_store_wait {pendings = 0 : i32}
      ttg.local_store %c, %s : tensor<128x192xf16, #blocked> -> !ttg.memdesc<128x192xf16, #shared, #smem, mutable>
      ttng.async_tma_copy_local_to_global %d[%i, %c0] %s : !tt.tensordesc<tensor<128x192xf16, #shared>>, !ttg.memdesc<128x192xf16, #shared, #smem, mutable>
    }
    ttng.async_tma_store_wait {pendings = 0 : i32}
    ttg.local_dealloc %s : !ttg.memdesc<128x192xf16, #shared, #smem, mutable>
    scf.for %i = %c0 to %n step %c1 : i32 {
      %t = ttg.local_alloc %e : (tensor<128x512xf16, #blocked>) -> !ttg.memdesc<128x512xf16, #shared, #smem>
      %u = ttg.local_load %t : !ttg.memdesc<128x512xf16, #shared, #smem> -> tensor<128x512xf16, #blocked>
    }
    %y = ttg.local_load %x : !ttg.memdesc<128x256xf16, #shared, #smem> -> tensor<128x256xf16, #blocked>
    tt.return
  }
}
