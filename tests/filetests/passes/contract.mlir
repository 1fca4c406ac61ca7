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
// ERROR: a tensor without an encoding
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
