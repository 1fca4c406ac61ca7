// A field that blocks of a descriptor fill is filled by the copy engine, one that is filled with what is loaded through pointers by threads'
// copies, and one that is filled with what is computed by stores.
// RUN: -fill-rings
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#plain = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @fill(%a: !tt.tensordesc<tensor<16x32xf32, #shared>>, %p: tensor<16x32x!tt.ptr<f32>, #blocked>, %i: i32, %slot: i32, %phase: i32) {
    %x = ttg.local_alloc : () -> !ttg.memdesc<2x16x32xf32, #shared, #smem, mutable>
    %y = ttg.local_alloc : () -> !ttg.memdesc<2x16x32xf32, #plain, #smem, mutable>
    %z = ttg.local_alloc : () -> !ttg.memdesc<2x16x32xf32, #plain, #smem, mutable>
    %ring = ttg.ring_create %x, %y, %z {slots = 2 : i32} : !ttg.memdesc<2x16x32xf32, #shared, #smem, mutable>, !ttg.memdesc<2x16x32xf32, #plain, #smem, mutable>, !ttg.memdesc<2x16x32xf32, #plain, #smem, mutable>
    ttg.warp_specialize(%ring, %slot, %phase) attributes {partitionNumWarps = array<i32: 4>}
    default {
      %t = tt.load %p {tt.vec = 4 : i32, tt.vec_axis = 1 : i32} : tensor<16x32x!tt.ptr<f32>, #blocked>
      ttg.ring_acquire %ring[%slot], %phase
      %sx = ttg.memdesc_index %x[%slot] : !ttg.memdesc<2x16x32xf32, #shared, #smem, mutable> -> !ttg.memdesc<16x32xf32, #shared, #smem, mutable>
      %sy = ttg.memdesc_index %y[%slot] : !ttg.memdesc<2x16x32xf32, #plain, #smem, mutable> -> !ttg.memdesc<16x32xf32, #plain, #smem, mutable>
      %sz = ttg.memdesc_index %z[%slot] : !ttg.memdesc<2x16x32xf32, #plain, #smem, mutable> -> !ttg.memdesc<16x32xf32, #plain, #smem, mutable>
      %b = tt.descriptor_load %a[%i, %i] : !tt.tensordesc<tensor<16x32xf32, #shared>> -> tensor<16x32xf32, #blocked>
      ttg.local_store %b, %sx : tensor<16x32xf32, #blocked> -> !ttg.memdesc<16x32xf32, #shared, #smem, mutable>
      ttg.local_store %t, %sy : tensor<16x32xf32, #blocked> -> !ttg.memdesc<16x32xf32, #plain, #smem, mutable>
      %u = tt.load %p {tt.vec = 4 : i32, tt.vec_axis = 1 : i32} : tensor<16x32x!tt.ptr<f32>, #blocked>
      %v = arith.addf %u, %u : tensor<16x32xf32, #blocked>
      ttg.local_store %v, %sz : tensor<16x32xf32, #blocked> -> !ttg.memdesc<16x32xf32, #plain, #smem, mutable>
      ttg.ring_commit %ring[%slot]
      ttg.warp_yield
    }
    partition0(%r: !ttg.ring, %s: i32, %q: i32) num_warps(4) {
      ttg.ring_wait %r[%s], %q
      ttg.ring_release %r[%s]
      ttg.warp_return
    } : (!ttg.ring, i32, i32) -> ()
    tt.return
  }
}
// CHECK-LABEL: @fill
// CHECK-NOT: tt.load
// CHECK: ttg.ring_acquire
// CHECK-NOT: tt.descriptor_load
// CHECK: ttg.async_copy_block_to_local %arg0[%arg2, %arg2], [[X:%.*]] :
// CHECK-NOT: ttg.local_store
// CHECK: ttg.async_copy_global_to_local %arg1, [[Y:%.*]] {tt.vec = 4
// CHECK: tt.load
// CHECK: ttg.local_store
// CHECK-NEXT: ttg.ring_commit
// -----
// What is used otherwise, or written by halves, stays as it is: what comes first is not known of copies.
// RUN: -fill-rings
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#plain = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @stay(%p: tensor<16x32x!tt.ptr<f32>, #blocked>, %slot: i32, %phase: i32) {
    %y = ttg.local_alloc : () -> !ttg.memdesc<2x16x32xf32, #plain, #smem, mutable>
    %z = ttg.local_alloc : () -> !ttg.memdesc<2x16x32xf32, #plain, #smem, mutable>
    %ring = ttg.ring_create %y, %z {slots = 2 : i32} : !ttg.memdesc<2x16x32xf32, #plain, #smem, mutable>, !ttg.memdesc<2x16x32xf32, #plain, #smem, mutable>
    ttg.warp_specialize(%ring, %slot, %phase) attributes {partitionNumWarps = array<i32: 4>}
    default {
      ttg.ring_acquire %ring[%slot], %phase
      %sy = ttg.memdesc_index %y[%slot] : !ttg.memdesc<2x16x32xf32, #plain, #smem, mutable> -> !ttg.memdesc<16x32xf32, #plain, #smem, mutable>
      %sz = ttg.memdesc_index %z[%slot] : !ttg.memdesc<2x16x32xf32, #plain, #smem, mutable> -> !ttg.memdesc<16x32xf32, #plain, #smem, mutable>
      %t = tt.load %p {tt.vec = 4 : i32, tt.vec_axis = 1 : i32} : tensor<16x32x!tt.ptr<f32>, #blocked>
      ttg.local_store %t, %sy : tensor<16x32xf32, #blocked> -> !ttg.memdesc<16x32xf32, #plain, #smem, mutable>
      tt.store %p, %t {tt.vec = 4 : i32, tt.vec_axis = 1 : i32} : tensor<16x32x!tt.ptr<f32>, #blocked>
      %u = tt.load %p {tt.vec = 4 : i32, tt.vec_axis = 1 : i32} : tensor<16x32x!tt.ptr<f32>, #blocked>
      ttg.local_store %u, %sz : tensor<16x32xf32, #blocked> -> !ttg.memdesc<16x32xf32, #plain, #smem, mutable>
      %v = tt.load %p {tt.vec = 4 : i32, tt.vec_axis = 1 : i32} : tensor<16x32x!tt.ptr<f32>, #blocked>
      ttg.local_store %v, %sz : tensor<16x32xf32, #blocked> -> !ttg.memdesc<16x32xf32, #plain, #smem, mutable>
      ttg.ring_commit %ring[%slot]
      ttg.warp_yield
    }
    partition0(%r: !ttg.ring, %s: i32, %q: i32) num_warps(4) {
      ttg.ring_wait %r[%s], %q
      ttg.ring_release %r[%s]
      ttg.warp_return
    } : (!ttg.ring, i32, i32) -> ()
    tt.return
  }
}
// CHECK-LABEL: @stay
// CHECK-NOT: ttg.async_copy
// CHECK: ttg.ring_commit
// -----
// A tile of a reshaped slot, whose number is computed, may be any part of it: two stores of which one goes there have their order.
// RUN: -fill-rings
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#plain = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @tiles(%p: tensor<16x32x!tt.ptr<f32>, #blocked>, %slot: i32, %phase: i32, %number: i32) {
    %y = ttg.local_alloc : () -> !ttg.memdesc<2x32x32xf32, #plain, #smem, mutable>
    %ring = ttg.ring_create %y {slots = 2 : i32} : !ttg.memdesc<2x32x32xf32, #plain, #smem, mutable>
    ttg.warp_specialize(%ring, %slot, %phase) attributes {partitionNumWarps = array<i32: 4>}
    default {
      ttg.ring_acquire %ring[%slot], %phase
      %s = ttg.memdesc_index %y[%slot] : !ttg.memdesc<2x32x32xf32, #plain, #smem, mutable> -> !ttg.memdesc<32x32xf32, #plain, #smem, mutable>
      %behind = ttg.memdesc_subslice %s[16, 0] : !ttg.memdesc<32x32xf32, #plain, #smem, mutable> -> !ttg.memdesc<16x32xf32, #plain, #smem, mutable, 32x32>
      %tiles = ttg.memdesc_reshape %s : !ttg.memdesc<32x32xf32, #plain, #smem, mutable> -> !ttg.memdesc<2x16x32xf32, #plain, #smem, mutable>
      %tile = ttg.memdesc_index %tiles[%number] : !ttg.memdesc<2x16x32xf32, #plain, #smem, mutable> -> !ttg.memdesc<16x32xf32, #plain, #smem, mutable>
      %u = tt.load %p {tt.vec = 4 : i32, tt.vec_axis = 1 : i32} : tensor<16x32x!tt.ptr<f32>, #blocked>
      ttg.local_store %u, %behind : tensor<16x32xf32, #blocked> -> !ttg.memdesc<16x32xf32, #plain, #smem, mutable, 32x32>
      %v = tt.load %p {tt.vec = 4 : i32, tt.vec_axis = 1 : i32} : tensor<16x32x!tt.ptr<f32>, #blocked>
      ttg.local_store %v, %tile : tensor<16x32xf32, #blocked> -> !ttg.memdesc<16x32xf32, #plain, #smem, mutable>
      ttg.ring_commit %ring[%slot]
      ttg.warp_yield
    }
    partition0(%r: !ttg.ring, %s: i32, %q: i32) num_warps(4) {
      ttg.ring_wait %r[%s], %q
      ttg.ring_release %r[%s]
      ttg.warp_return
    } : (!ttg.ring, i32, i32) -> ()
    tt.return
  }
}
// CHECK-LABEL: @tiles
// CHECK-NOT: ttg.async_copy
// CHECK: ttg.ring_commit
