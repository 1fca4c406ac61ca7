// What counts gets a counter a group, behind what the scratch memory holds already; a whole cluster waits in hardware.
// RUN: -allocate-counters
// CHECK: ttg.global_scratch_memory_size = 256 : i32, ttg.global_scratch_memory_zeroed
module attributes {tle.cluster_dims = array<i32: 4, 1, 1>, ttg.global_scratch_memory_alignment = 128 : i32, ttg.global_scratch_memory_size = 128 : i32} {
  tt.func public @f(%n: i32) {
    // CHECK: tt.program_barrier cluster {group = 0 : i32}
    tt.program_barrier cluster {group = 0 : i32}
    // CHECK: tt.program_barrier cluster, %arg0 {group = 1 : i32, ttg.global_scratch_memory_offset = 136 : i32}
    tt.program_barrier cluster, %n {group = 1 : i32}
    // CHECK: tt.program_barrier grid {group = 2 : i32, ttg.global_scratch_memory_offset = 144 : i32}
    tt.program_barrier grid {group = 2 : i32}
    // CHECK: tt.program_barrier grid {group = 2 : i32, ttg.global_scratch_memory_offset = 144 : i32}
    tt.program_barrier grid {group = 2 : i32}
    tt.return
  }
}
// -----
// Nothing else lies there.
// RUN: -allocate-counters
// CHECK: ttg.global_scratch_memory_alignment = 8 : i32, ttg.global_scratch_memory_size = 8 : i32
module {
  tt.func public @f() {
    tt.program_barrier grid {group = 0 : i32}
    tt.return
  }
}
// -----
// Nothing counts.
// RUN: -allocate-counters
// CHECK-NOT: global_scratch
// CHECK: tt.program_barrier cluster {group = 0 : i32}
module attributes {tle.cluster_dims = array<i32: 4, 1, 1>} {
  tt.func public @f() {
    tt.program_barrier cluster {group = 0 : i32}
    tt.return
  }
}
// -----
// Extra warps come along to the first barrier, and have ended before the last; to those of group 1, one of which stands in between, they don't.
// RUN: -allocate-counters
// CHECK: ttg.global_scratch_memory_size = 16 : i32
module attributes {tle.cluster_dims = array<i32: 2, 2, 1>, "ttg.num-warps" = 4 : i32} {
  tt.func public @f() {
    // CHECK: tt.program_barrier cluster {group = 0 : i32}
    tt.program_barrier cluster {group = 0 : i32}
    // CHECK: %c4_i32 = arith.constant 4 : i32
    // CHECK: tt.program_barrier cluster, %c4_i32 {group = 1 : i32, ttg.global_scratch_memory_offset = 8 : i32}
    tt.program_barrier cluster {group = 1 : i32}
    ttg.warp_specialize()
    default {
      ttg.warp_yield
    }
    partition0() num_warps(4) {
      ttg.warp_return
    } : () -> ()
    // CHECK: tt.program_barrier cluster, %c4_i32_0 {group = 1 : i32, ttg.global_scratch_memory_offset = 8 : i32}
    tt.program_barrier cluster {group = 1 : i32}
    ttg.warp_specialize()
    default {
      ttg.warp_yield
    }
    partition0() num_warps(4) {
      ttg.warp_return
    } : () -> ()
    // CHECK: tt.program_barrier cluster {group = 0 : i32}
    tt.program_barrier cluster {group = 0 : i32}
    tt.return
  }
}
