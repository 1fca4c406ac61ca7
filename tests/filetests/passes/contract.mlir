// A pass says what it requires of a module that somebody has written.
// RUN: -membar
#plain = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @unplaced() {
    %x = ttg.local_alloc : () -> !ttg.memdesc<64xf16, #plain, #smem, mutable>
    tt.return
  }
}
// ERROR: ttg.local_alloc: here it does not hold that buffers and scratch have their places
// -----
// RUN: -allocate-shared
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @ring(%slot: i32) {
    %ring = ttg.ring_create {slots = 2 : i32}
    ttg.ring_commit %ring[%slot]
    ttg.ring_dealloc %ring
    tt.return
  }
}
// ERROR: ttg.ring_create: here it does not hold that there are no rings any more
// -----
// RUN: -software-pipeline
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @plain(%x: tensor<64xf32>) -> tensor<64xf32> {
    tt.return %x : tensor<64xf32>
  }
}
// ERROR: tensor<64xf32> has no layout
// -----
// RUN: -allocate-shared
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @groups(%n: i32) {
    ttg.warp_specialize(%n)
    default {
      ttg.warp_yield
    }
    partition0(%m: i32) num_warps(1) {
      ttg.warp_return
    } : (i32) -> ()
    tt.return
  }
}
// ERROR: ttg.warp_specialize: here it does not hold that partitions have their warps
// -----
// RUN: -transpose-dots
tt.func public @whole(%a: tensor<32x32xf32>, %b: tensor<32x32xf32>, %c: tensor<32x32xf32>) {
  %d = tt.dot %a, %b, %c, inputPrecision = tf32x3 : tensor<32x32xf32> * tensor<32x32xf32> -> tensor<32x32xf32>
  tt.return
}
// ERROR: tt.dot: here it does not hold that no dot has scales, and dots of fp32 are split
// -----
// RUN: -software-pipeline
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @descriptor(%desc: !tt.tensordesc<tensor<64x64xf16>>) {
    tt.return
  }
}
// ERROR: tt.func: here it does not hold that blocks of descriptors have their layout
// -----
// RUN: -global-barriers
#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#plain = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @race(%x: tensor<128xf16, #blocked>) {
    %a = ttg.local_alloc %x {allocation.offset = 0 : i32} : (tensor<128xf16, #blocked>) -> !ttg.memdesc<128xf16, #plain, #smem, mutable>
    %y = ttg.local_load %a : !ttg.memdesc<128xf16, #plain, #smem, mutable> -> tensor<128xf16, #blocked>
    tt.return
  }
}
// ERROR: ttg.local_load: here a barrier is missing
// -----
// `wgmma` reads its operands in layouts of its own.
// RUN: -async-dots
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#plain = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @dot(%a: !ttg.memdesc<64x64xf16, #shared, #smem>, %b: !ttg.memdesc<64x64xf16, #plain, #smem>, %c: tensor<64x64xf32, #mma>) {
    %d = ttng.warp_group_dot %a, %b, %c {inputPrecision = 0 : i32} : !ttg.memdesc<64x64xf16, #shared, #smem> * !ttg.memdesc<64x64xf16, #plain, #smem> -> tensor<64x64xf32, #mma>
    tt.return
  }
}
// ERROR: ttng.warp_group_dot: the right operand has
// -----
// RUN: -allocate-warp-groups -allocate-shared
#plain = #ttg.nvmma_shared<{swizzlingByteWidth = 0, transposed = false, elementBitWidth = 16}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @copy(%desc: !tt.tensordesc<tensor<64x64xf16, #shared>>, %i: i32) {
    %a = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #plain, #smem, mutable>
    ttng.async_tma_copy_local_to_global %desc[%i, %i] %a : !tt.tensordesc<tensor<64x64xf16, #shared>>, !ttg.memdesc<64x64xf16, #plain, #smem, mutable>
    tt.return
  }
}
// ERROR: ttng.async_tma_copy_local_to_global: block and buffer lie differently
// -----
// RUN: -allocate-warp-groups -allocate-shared
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @turns() {
    ttng.wait_order_barrier
    tt.return
  }
}
// ERROR: ttng.wait_order_barrier: turns are those of the default region
// -----
// RUN: -verify
tt.func public @waits() {
  ttng.async_tma_store_wait {pendings = -1 : i32}
  tt.return
}
// ERROR: `pendings` is -1, and must be 0 at least
