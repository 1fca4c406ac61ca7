// What the commit of a slot that threads fill does not need is computed behind it; what is stored there stays before it.
// RUN: -early-commits
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#rows = #ttg.slice<{dim = 1, parent = #mma}>
#plain = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @hand_over(%x: tensor<64x64xf32, #mma>, %max: tensor<64xf32, #rows>, %p: tensor<64x64x!tt.ptr<f32>, #mma>, %slot: i32, %phase: i32) {
    %m = ttg.local_alloc : () -> !ttg.memdesc<1x64xf32, #plain, #smem, mutable>
    %ring = ttg.ring_create %m {slots = 1 : i32, tle.pipe} : !ttg.memdesc<1x64xf32, #plain, #smem, mutable>
    ttg.warp_specialize(%ring, %slot, %phase) attributes {partitionNumWarps = array<i32: 4>}
    default {
      %e = math.exp2 %x : tensor<64x64xf32, #mma>
      %twice = arith.addf %max, %max : tensor<64xf32, #rows>
      ttg.ring_acquire %ring[%slot], %phase
      %v = ttg.memdesc_index %m[%slot] : !ttg.memdesc<1x64xf32, #plain, #smem, mutable> -> !ttg.memdesc<64xf32, #plain, #smem, mutable>
      ttg.local_store %twice, %v : tensor<64xf32, #rows> -> !ttg.memdesc<64xf32, #plain, #smem, mutable>
      ttg.ring_commit %ring[%slot]
      tt.store %p, %e {tt.vec = 1 : i32, tt.vec_axis = 1 : i32} : tensor<64x64x!tt.ptr<f32>, #mma>
      ttg.warp_yield
    }
    partition0(%r: !ttg.ring, %i: i32, %q: i32) num_warps(4) {
      ttg.ring_wait %r[%i], %q
      ttg.ring_release %r[%i]
      ttg.warp_return
    } : (!ttg.ring, i32, i32) -> ()
    tt.return
  }
}
// CHECK-LABEL: @hand_over
// CHECK-NOT: math.exp2
// CHECK: arith.addf
// CHECK: ttg.local_store
// CHECK: ttg.ring_commit
// CHECK-NEXT: math.exp2
// CHECK-NEXT: tt.store
