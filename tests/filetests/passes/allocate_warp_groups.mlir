// Two partitions share a warp group behind the default region's two; what they don't want of its registers, the default has.
// RUN: -allocate-warp-groups
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f() {
    ttg.warp_specialize() attributes {requestedRegisters = array<i32: 24, 40>}
    default {
      ttg.warp_yield
    }
    partition0() num_warps(1) {
      ttg.warp_return
    }
    partition1() num_warps(2) {
      ttg.warp_return
    } : () -> ()
    tt.return
  }
}
// CHECK: ttg.maxnreg = 168 {{.*}}"ttg.total-num-warps" = 12
// CHECK: actualRegisters = array<i32: 232, 40, 40>{{.*}}warpGroupStartIds = array<i32: 10, 8>
// -----
// All threads fit with as many registers as they can have: nothing changes hands.
// RUN: -allocate-warp-groups
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f() {
    ttg.warp_specialize() attributes {requestedRegisters = array<i32: 24>}
    default {
      ttg.warp_yield
    }
    partition0() num_warps(1) {
      ttg.warp_return
    } : () -> ()
    tt.return
  }
}
// CHECK-NOT: ttg.maxnreg
// CHECK: "ttg.total-num-warps" = 5
// CHECK-NOT: actualRegisters
// CHECK: tt.return
// -----
// Whoever bounds the registers says all there is to say: nothing changes hands.
// RUN: -allocate-warp-groups
module attributes {ttg.maxnreg = 128 : i32, "ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f() {
    ttg.warp_specialize() attributes {requestedRegisters = array<i32: 24>}
    default {
      ttg.warp_yield
    }
    partition0() num_warps(4) {
      ttg.warp_return
    } : () -> ()
    tt.return
  }
}
// CHECK: ttg.maxnreg = 128 {{.*}}"ttg.total-num-warps" = 12
// CHECK-NOT: actualRegisters
// CHECK: tt.return
// -----
// More registers than there are, whatever the default region is left: an error with the sums.
// RUN: -allocate-warp-groups
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f() {
    ttg.warp_specialize() attributes {requestedRegisters = array<i32: 240, 240, 24>}
    default {
      ttg.warp_yield
    }
    partition0() num_warps(4) {
      ttg.warp_return
    }
    partition1() num_warps(4) {
      ttg.warp_return
    }
    partition2() num_warps(1) {
      ttg.warp_return
    } : () -> ()
    tt.return
  }
}
// ERROR: the workers want 128 × 240 + 128 × 240 + 128 × 24 = 64512 registers, and the default partition at least 128 × 24 = 3072: a CTA of 16 warps has 65536
// -----
// Small partitions take what is left of the default region's warp group, or 2 + 16 + 8 + 4 + 2 warps would be 36.
// RUN: -allocate-warp-groups
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 2 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f() {
    ttg.warp_specialize()
    default {
      ttg.warp_yield
    }
    partition0() num_warps(2) {
      ttg.warp_return
    }
    partition1() num_warps(16) {
      ttg.warp_return
    }
    partition2() num_warps(8) {
      ttg.warp_return
    }
    partition3() num_warps(4) {
      ttg.warp_return
    } : () -> ()
    tt.return
  }
}
// CHECK: "ttg.total-num-warps" = 32
// CHECK: warpGroupStartIds = array<i32: 2, 4, 20, 28>
// -----
// A CTA of 20 warps starts with 96 registers for each thread, which is less than a multiprocessor has.
// RUN: -allocate-warp-groups
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f() {
    ttg.warp_specialize() attributes {requestedRegisters = array<i32: 120>}
    default {
      ttg.warp_yield
    }
    partition0() num_warps(16) {
      ttg.warp_return
    } : () -> ()
    tt.return
  }
}
// ERROR: the workers want 128 × 120 + 128 × 120 + 128 × 120 + 128 × 120 = 61440 registers, and the default partition at least 128 × 24 = 3072: a CTA of 20 warps has 61440
// -----
// The warps of a program whose kernel is written for one of them.
// RUN: -allocate-warp-groups
module attributes {tt.warp_level = 8 : i32, "ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f() {
    tt.return
  }
}
// CHECK: "ttg.num-warps" = 1 {{.*}}"ttg.total-num-warps" = 8
// -----
// The default region's warps run the partitions: the one of a whole warp group begins at one.
// RUN: -allocate-warp-groups
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f() {
    ttg.warp_specialize() attributes {reuseDefaultWarps}
    default {
      ttg.warp_yield
    }
    partition0() num_warps(2) {
      ttg.warp_return
    }
    partition1() num_warps(4) {
      ttg.warp_return
    }
    partition2() num_warps(2) {
      ttg.warp_return
    } : () -> ()
    tt.return
  }
}
// CHECK: "ttg.total-num-warps" = 8
// CHECK: warpGroupStartIds = array<i32: 4, 0, 6>
// -----
// They are as many as the partitions have together.
// RUN: -allocate-warp-groups
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f() {
    // ERROR: partitions of 4 warps in all share out the default region's, which are 8
    ttg.warp_specialize() attributes {reuseDefaultWarps}
    default {
      ttg.warp_yield
    }
    partition0() num_warps(4) {
      ttg.warp_return
    } : () -> ()
    tt.return
  }
}
