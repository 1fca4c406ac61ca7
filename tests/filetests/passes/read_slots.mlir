// A dot reads a slot where it lies, if that is released behind the dot and nobody is waited for between.
// RUN: -read-slots
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#shared1 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @read(%slot: i32, %phase: i32) {
    %x = ttg.local_alloc : () -> !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>
    %ring = ttg.ring_create %x {slots = 2 : i32} : !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>
    ttg.warp_specialize(%ring, %slot, %phase) attributes {partitionNumWarps = array<i32: 4>}
    default {
      %zero = arith.constant dense<0.000000e+00> : tensor<64x64xf32, #mma>
      ttg.ring_wait %ring[%slot], %phase
      %v = ttg.memdesc_index %x[%slot] : !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
      %a = ttg.local_load %v : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf16, #blocked>
      ttg.ring_release %ring[%slot]
      %s = ttg.local_alloc %a : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
      %t = ttg.memdesc_trans %s {order = array<i32: 1, 0>} : !ttg.memdesc<64x64xf16, #shared, #smem> -> !ttg.memdesc<64x64xf16, #shared1, #smem>
      %d = ttng.warp_group_dot %s, %t, %zero {inputPrecision = 0 : i32} : !ttg.memdesc<64x64xf16, #shared, #smem> * !ttg.memdesc<64x64xf16, #shared1, #smem> -> tensor<64x64xf32, #mma>
      ttg.warp_yield
    }
    partition0(%r: !ttg.ring, %i: i32, %p: i32) num_warps(4) {
      ttg.ring_acquire %r[%i], %p
      ttg.ring_commit %r[%i]
      ttg.warp_return
    } : (!ttg.ring, i32, i32) -> ()
    tt.return
  }
}
// CHECK: [[V:%.*]] = ttg.memdesc_index
// CHECK-NOT: ttg.local_load
// CHECK-NOT: ttg.local_alloc
// CHECK: [[T:%.*]] = ttg.memdesc_trans [[V]]
// CHECK: ttng.warp_group_dot [[V]], [[T]]
// -----
// The next slot is waited for before the dot: where there is one slot alone, its writer waits for the release of this one.
// RUN: -read-slots
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @waits(%slot: i32, %phase: i32) {
    %x = ttg.local_alloc : () -> !ttg.memdesc<1x64x64xf16, #shared, #smem, mutable>
    %ring = ttg.ring_create %x {slots = 1 : i32} : !ttg.memdesc<1x64x64xf16, #shared, #smem, mutable>
    ttg.warp_specialize(%ring, %slot, %phase) attributes {partitionNumWarps = array<i32: 4>}
    default {
      %zero = arith.constant dense<0.000000e+00> : tensor<64x64xf32, #mma>
      ttg.ring_wait %ring[%slot], %phase
      %v = ttg.memdesc_index %x[%slot] : !ttg.memdesc<1x64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
      %a = ttg.local_load %v : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf16, #blocked>
      ttg.ring_release %ring[%slot]
      ttg.ring_wait %ring[%slot], %phase
      %s = ttg.local_alloc %a : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
      %d = ttng.warp_group_dot %s, %s, %zero {inputPrecision = 0 : i32} : !ttg.memdesc<64x64xf16, #shared, #smem> * !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<64x64xf32, #mma>
      ttg.warp_yield
    }
    partition0(%r: !ttg.ring, %i: i32, %p: i32) num_warps(4) {
      ttg.ring_acquire %r[%i], %p
      ttg.ring_commit %r[%i]
      ttg.warp_return
    } : (!ttg.ring, i32, i32) -> ()
    tt.return
  }
}
// CHECK: ttg.local_load
// CHECK: ttg.local_alloc
// -----
// Two rings hand over the halves of one buffer. A dot reads the left one behind the release of the other, whose writer doesn't write there, and behind a
// wait, since its own release stands behind it. The other half, which is released before that wait, is loaded.
// RUN: -read-slots
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @halves(%s: i32, %phase: i32) {
    %x = ttg.local_alloc : () -> !ttg.memdesc<1x64x128xf16, #shared, #smem, mutable>
    %left = ttg.ring_create %x {slots = 1 : i32} : !ttg.memdesc<1x64x128xf16, #shared, #smem, mutable>
    %right = ttg.ring_create %x {slots = 1 : i32} : !ttg.memdesc<1x64x128xf16, #shared, #smem, mutable>
    ttg.warp_specialize(%left, %right, %x, %s, %phase) attributes {partitionNumWarps = array<i32: 4>}
    default {
      %zero = arith.constant dense<0.000000e+00> : tensor<64x64xf32, #mma>
      %v = ttg.memdesc_index %x[%s] : !ttg.memdesc<1x64x128xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x128xf16, #shared, #smem, mutable>
      ttg.ring_wait %left[%s], %phase
      ttg.ring_wait %right[%s], %phase
      %l = ttg.memdesc_subslice %v[0, 0] : !ttg.memdesc<64x128xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable, 64x128>
      %a = ttg.local_load %l : !ttg.memdesc<64x64xf16, #shared, #smem, mutable, 64x128> -> tensor<64x64xf16, #blocked>
      %r = ttg.memdesc_subslice %v[0, 64] : !ttg.memdesc<64x128xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable, 64x128>
      %b = ttg.local_load %r : !ttg.memdesc<64x64xf16, #shared, #smem, mutable, 64x128> -> tensor<64x64xf16, #blocked>
      ttg.ring_release %right[%s]
      ttg.ring_wait %right[%s], %phase
      %as = ttg.local_alloc %a : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
      %bs = ttg.local_alloc %b : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
      %d = ttng.warp_group_dot %as, %bs, %zero {inputPrecision = 0 : i32} : !ttg.memdesc<64x64xf16, #shared, #smem> * !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<64x64xf32, #mma>
      ttg.ring_release %left[%s]
      ttg.warp_yield
    }
    partition0(%p: !ttg.ring, %q: !ttg.ring, %y: !ttg.memdesc<1x64x128xf16, #shared, #smem, mutable>, %i: i32, %f: i32) num_warps(4) {
      %z = arith.constant dense<1.000000e+00> : tensor<64x64xf16, #blocked>
      %u = ttg.memdesc_index %y[%i] : !ttg.memdesc<1x64x128xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x128xf16, #shared, #smem, mutable>
      ttg.ring_acquire %p[%i], %f
      %m = ttg.memdesc_subslice %u[0, 0] : !ttg.memdesc<64x128xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable, 64x128>
      ttg.local_store %z, %m : tensor<64x64xf16, #blocked> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable, 64x128>
      ttg.ring_commit %p[%i]
      ttg.ring_acquire %q[%i], %f
      %n = ttg.memdesc_subslice %u[0, 64] : !ttg.memdesc<64x128xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable, 64x128>
      ttg.local_store %z, %n : tensor<64x64xf16, #blocked> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable, 64x128>
      ttg.ring_commit %q[%i]
      ttg.warp_return
    } : (!ttg.ring, !ttg.ring, !ttg.memdesc<1x64x128xf16, #shared, #smem, mutable>, i32, i32) -> ()
    tt.return
  }
}
// CHECK-LABEL: @halves
// CHECK: [[L:%.*]] = ttg.memdesc_subslice {{.*}}[0, 0]
// CHECK: [[R:%.*]] = ttg.memdesc_subslice {{.*}}[0, 64]
// CHECK: [[B:%.*]] = ttg.local_load [[R]]
// CHECK: [[S:%.*]] = ttg.local_alloc [[B]]
// CHECK: ttng.warp_group_dot [[L]], [[S]],
