// The product stays under way into the next iteration: its slot is released there, behind the wait, and the last behind the loop.
// RUN: -warp-specialize -async-dots -lower-rings -num-stages=3
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [8, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [8, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#shared1 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @matmul(%a: !tt.tensordesc<tensor<128x64xf16, #shared>>, %b: !tt.tensordesc<tensor<64x64xf16, #shared>>, %c: !tt.tensordesc<tensor<128x64xf16, #shared>>, %tiles: i32, %steps: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.000000e+00> : tensor<128x64xf32, #mma>
    scf.for %t = %c0 to %tiles step %c1  : i32 {
      %row = arith.muli %t, %c64 : i32
      %acc = scf.for %i = %c0 to %steps step %c1 iter_args(%x = %zero) -> (tensor<128x64xf32, #mma>)  : i32 {
        %k = arith.muli %i, %c64 : i32
        %la = tt.descriptor_load %a[%c0, %k] : !tt.tensordesc<tensor<128x64xf16, #shared>> -> tensor<128x64xf16, #blocked>
        %lb = tt.descriptor_load %b[%row, %k] : !tt.tensordesc<tensor<64x64xf16, #shared>> -> tensor<64x64xf16, #blocked>
        %sa = ttg.local_alloc %la : (tensor<128x64xf16, #blocked>) -> !ttg.memdesc<128x64xf16, #shared, #smem>
        %sb = ttg.local_alloc %lb : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
        %tb = ttg.memdesc_trans %sb {order = array<i32: 1, 0>} : !ttg.memdesc<64x64xf16, #shared, #smem> -> !ttg.memdesc<64x64xf16, #shared1, #smem>
        %d = ttng.warp_group_dot %sa, %tb, %x {inputPrecision = 0 : i32} : !ttg.memdesc<128x64xf16, #shared, #smem> * !ttg.memdesc<64x64xf16, #shared1, #smem> -> tensor<128x64xf32, #mma>
        scf.yield %d : tensor<128x64xf32, #mma>
      }
      %h = arith.truncf %acc : tensor<128x64xf32, #mma> to tensor<128x64xf16, #mma>
      tt.descriptor_store %c[%c0, %row], %h : !tt.tensordesc<tensor<128x64xf16, #shared>>, tensor<128x64xf16, #mma>
    } {tt.warp_specialize}
    tt.return
  }
}
// CHECK: ttg.warp_specialize
// CHECK: scf.for
// CHECK: scf.for [[I:%.*]] = [[LO:%.*]] to
// CHECK: ttng.warp_group_dot {{.*}}isAsync
// CHECK-NEXT: ttng.warp_group_dot_wait {{.*}}pendings = 1
// CHECK-NEXT: [[LATER:%.*]] = arith.cmpi ne, [[I]], [[LO]]
// CHECK: ttng.arrive_barrier {{.*}}, 1, [[LATER]] {perWarp = true}
// CHECK: scf.yield
// CHECK: ttng.warp_group_dot_wait {{.*}}pendings = 0
// CHECK: ttng.arrive_barrier
// CHECK: tt.descriptor_store
// -----
// Blocks that another warp copies: the slot's `full` gets their bytes, its `empty` an arrival of each warp that reads.
// RUN: -lower-rings
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @blocks(%a: !tt.tensordesc<tensor<64x64xf16, #shared>>, %slot: i32, %phase: i32) {
    %x = ttg.local_alloc : () -> !ttg.memdesc<3x64x64xf16, #shared, #smem, mutable>
    %ring = ttg.ring_create %x {slots = 3 : i32} : !ttg.memdesc<3x64x64xf16, #shared, #smem, mutable>
    ttg.warp_specialize(%ring, %x, %a, %slot, %phase)
    default {
      ttg.ring_wait %ring[%slot], %phase
      %v = ttg.memdesc_index %x[%slot] : !ttg.memdesc<3x64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
      %t = ttg.local_load %v : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf16, #blocked>
      ttg.ring_release %ring[%slot]
      ttg.warp_yield
    }
    partition0(%r: !ttg.ring, %y: !ttg.memdesc<3x64x64xf16, #shared, #smem, mutable>, %d: !tt.tensordesc<tensor<64x64xf16, #shared>>, %s: i32, %p: i32) num_warps(1) {
      ttg.ring_acquire %r[%s], %p
      %v = ttg.memdesc_index %y[%s] : !ttg.memdesc<3x64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
      ttg.async_copy_block_to_local %d[%s, %s], %v : !tt.tensordesc<tensor<64x64xf16, #shared>> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
      ttg.ring_commit %r[%s]
      ttg.warp_return
    } : (!ttg.ring, !ttg.memdesc<3x64x64xf16, #shared, #smem, mutable>, !tt.tensordesc<tensor<64x64xf16, #shared>>, i32, i32) -> ()
    tt.return
  }
}
// CHECK: [[FULL:%.*]] = ttg.local_alloc : () -> !ttg.memdesc<3x1xi64
// CHECK-NEXT: [[EMPTY:%.*]] = ttg.local_alloc : () -> !ttg.memdesc<3x1xi64
// CHECK: [[F:%.*]] = ttg.memdesc_index [[FULL]][
// CHECK-NEXT: ttng.init_barrier [[F]], 1
// CHECK-NEXT: [[E:%.*]] = ttg.memdesc_index [[EMPTY]][
// CHECK-NEXT: ttng.init_barrier [[E]], 4
// CHECK: [[F:%.*]] = ttg.memdesc_index [[FULL]][%arg1]
// CHECK-NEXT: ttng.wait_barrier [[F]], %arg2
// CHECK: ttg.local_load
// CHECK-NEXT: [[E:%.*]] = ttg.memdesc_index [[EMPTY]][%arg1]
// What is loaded must have come before the copy engine writes there again.
// CHECK-NEXT: ttng.fence_async_shared
// CHECK-NEXT: ttng.arrive_barrier [[E]], 1 {perWarp = true}
// CHECK: partition0
// CHECK: [[BEFORE:%.*]] = arith.xori
// CHECK-NEXT: ttng.wait_barrier [[E:%.*]], [[BEFORE]]
// CHECK: ttng.barrier_expect [[F:%.*]], 8192
// CHECK: ttng.async_tma_copy_global_to_local {{.*}}, [[F]],
// CHECK-NOT: ttg.ring
// -----
// Four warps store, two readers read: each warp arrives, and the slot is free when the warps of both readers have. The warp that
// hands slots to the copy engine is told of the stores by a fence, and its elected thread arrives.
// RUN: -lower-rings
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#blocked2 = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [2, 1], order = [1, 0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @stores(%a: !tt.tensordesc<tensor<64x64xf16, #shared>>, %slot: i32, %phase: i32) {
    %t = arith.constant dense<0.000000e+00> : tensor<64x64xf16, #blocked>
    %x = ttg.local_alloc : () -> !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>
    %ring = ttg.ring_create %x {readers = ["out", "sum"], slots = 2 : i32} : !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>
    ttg.warp_specialize(%ring, %x, %a, %slot, %phase)
    default {
      ttg.ring_acquire %ring[%slot], %phase
      %v = ttg.memdesc_index %x[%slot] : !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
      ttg.local_store %t, %v : tensor<64x64xf16, #blocked> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
      ttg.ring_commit %ring[%slot]
      ttg.warp_yield
    }
    partition0(%r: !ttg.ring, %y: !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>, %d: !tt.tensordesc<tensor<64x64xf16, #shared>>, %s: i32, %p: i32) num_warps(1) {
      ttg.ring_wait %r[%s], %p {reader = 0 : i32}
      %v = ttg.memdesc_index %y[%s] : !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
      ttng.async_tma_copy_local_to_global %d[%s, %s] %v : !tt.tensordesc<tensor<64x64xf16, #shared>>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
      ttng.async_tma_store_wait {pendings = 0 : i32}
      ttg.ring_release %r[%s] {reader = 0 : i32}
      ttg.warp_return
    }
    partition1(%r: !ttg.ring, %y: !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>, %d: !tt.tensordesc<tensor<64x64xf16, #shared>>, %s: i32, %p: i32) num_warps(2) {
      ttg.ring_wait %r[%s], %p {reader = 1 : i32}
      %v = ttg.memdesc_index %y[%s] : !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
      %l = ttg.local_load %v : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf16, #blocked2>
      ttg.ring_release %r[%s] {reader = 1 : i32}
      ttg.warp_return
    } : (!ttg.ring, !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>, !tt.tensordesc<tensor<64x64xf16, #shared>>, i32, i32) -> ()
    tt.return
  }
}
// CHECK: ttng.init_barrier {{.*}}, 4 :
// CHECK: ttng.init_barrier {{.*}}, 3 :
// CHECK: ttng.wait_barrier
// CHECK: ttg.local_store
// CHECK: ttng.fence_async_shared
// CHECK-NEXT: ttng.arrive_barrier {{.*}}, 1 {perWarp = true}
// CHECK: partition0
// CHECK: ttng.wait_barrier
// CHECK: ttng.async_tma_store_wait
// CHECK: ttng.arrive_barrier {{.*}}, 1 :
// CHECK: partition1
// CHECK: ttng.wait_barrier
// CHECK: ttg.local_load
// CHECK: ttng.arrive_barrier {{.*}}, 1 {perWarp = true}
// -----
// Threads of another partition copy: all of them arrive when their copies are done. What is read by ordinary loads needs no fence.
// RUN: -lower-rings
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#plain = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @copies(%a: !tt.ptr<f16>, %slot: i32, %phase: i32) {
    %x = ttg.local_alloc : () -> !ttg.memdesc<2x64x64xf16, #plain, #smem, mutable>
    %ring = ttg.ring_create %x {slots = 2 : i32} : !ttg.memdesc<2x64x64xf16, #plain, #smem, mutable>
    ttg.warp_specialize(%ring, %x, %a, %slot, %phase)
    default {
      ttg.ring_wait %ring[%slot], %phase
      %v = ttg.memdesc_index %x[%slot] : !ttg.memdesc<2x64x64xf16, #plain, #smem, mutable> -> !ttg.memdesc<64x64xf16, #plain, #smem, mutable>
      %l = ttg.local_load %v : !ttg.memdesc<64x64xf16, #plain, #smem, mutable> -> tensor<64x64xf16, #blocked>
      ttg.ring_release %ring[%slot]
      ttg.warp_yield
    }
    partition0(%r: !ttg.ring, %y: !ttg.memdesc<2x64x64xf16, #plain, #smem, mutable>, %d: !tt.ptr<f16>, %s: i32, %p: i32) num_warps(4) {
      %q = tt.splat %d : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>, #blocked>
      ttg.ring_acquire %r[%s], %p
      %v = ttg.memdesc_index %y[%s] : !ttg.memdesc<2x64x64xf16, #plain, #smem, mutable> -> !ttg.memdesc<64x64xf16, #plain, #smem, mutable>
      %c = ttg.async_copy_global_to_local %q, %v : tensor<64x64x!tt.ptr<f16>, #blocked> -> <64x64xf16, #plain, #smem, mutable>
      ttg.ring_commit %r[%s]
      ttg.warp_return
    } : (!ttg.ring, !ttg.memdesc<2x64x64xf16, #plain, #smem, mutable>, !tt.ptr<f16>, i32, i32) -> ()
    tt.return
  }
}
// CHECK: ttng.init_barrier {{.*}}, 128 :
// CHECK: ttng.init_barrier {{.*}}, 4 :
// CHECK: ttng.wait_barrier
// CHECK-NOT: ttng.fence_async_shared
// CHECK: partition0
// CHECK: ttng.wait_barrier
// CHECK-NOT: ttng.barrier_expect
// CHECK: ttng.async_copy_mbarrier_arrive {{.*}} {noIncrement = true}
// -----
// Where writer and reader are the same warps, copies of threads are groups that each thread waits for. Slots need no mbarriers.
// RUN: -lower-rings
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#plain = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @groups(%q: tensor<64x64x!tt.ptr<f16>, #blocked>, %slot: i32, %next: i32, %phase: i32) -> tensor<64x64xf16, #blocked> {
    %x = ttg.local_alloc : () -> !ttg.memdesc<3x64x64xf16, #plain, #smem, mutable>
    %ring = ttg.ring_create %x {slots = 3 : i32} : !ttg.memdesc<3x64x64xf16, #plain, #smem, mutable>
    ttg.ring_acquire %ring[%next], %phase
    %v = ttg.memdesc_index %x[%next] : !ttg.memdesc<3x64x64xf16, #plain, #smem, mutable> -> !ttg.memdesc<64x64xf16, #plain, #smem, mutable>
    %c = ttg.async_copy_global_to_local %q, %v : tensor<64x64x!tt.ptr<f16>, #blocked> -> <64x64xf16, #plain, #smem, mutable>
    ttg.ring_commit %ring[%next]
    ttg.ring_wait %ring[%slot], %phase {later = 1 : i32}
    %w = ttg.memdesc_index %x[%slot] : !ttg.memdesc<3x64x64xf16, #plain, #smem, mutable> -> !ttg.memdesc<64x64xf16, #plain, #smem, mutable>
    %l = ttg.local_load %w : !ttg.memdesc<64x64xf16, #plain, #smem, mutable> -> tensor<64x64xf16, #blocked>
    ttg.ring_release %ring[%slot]
    ttg.ring_dealloc %ring
    tt.return %l : tensor<64x64xf16, #blocked>
  }
}
// CHECK-NOT: xi64
// CHECK: ttg.async_copy_global_to_local
// CHECK-NEXT: ttg.async_commit_group
// CHECK-NEXT: ttg.async_wait {num = 1 : i32}
// CHECK: ttg.local_load
// CHECK-NEXT: ttg.async_wait {num = 0 : i32}
// CHECK-NOT: ttg.ring
// -----
// Blocks that the same warps read are waited for at an mbarrier; nobody says that a slot is free.
// RUN: -lower-rings
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @once(%a: !tt.tensordesc<tensor<64x64xf16, #shared>>, %b: !tt.tensordesc<tensor<32x64xf16, #shared>>, %more: i1) -> tensor<64x64xf16, #blocked> {
    %c0 = arith.constant 0 : i32
    %x = ttg.local_alloc : () -> !ttg.memdesc<1x64x64xf16, #shared, #smem, mutable>
    %y = ttg.local_alloc : () -> !ttg.memdesc<1x32x64xf16, #shared, #smem, mutable>
    %ring = ttg.ring_create %x, %y {one_shot = true, slots = 1 : i32} : !ttg.memdesc<1x64x64xf16, #shared, #smem, mutable>, !ttg.memdesc<1x32x64xf16, #shared, #smem, mutable>
    ttg.ring_acquire %ring[%c0], %c0 where %more
    %v = ttg.memdesc_index %x[%c0] : !ttg.memdesc<1x64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    %w = ttg.memdesc_index %y[%c0] : !ttg.memdesc<1x32x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<32x64xf16, #shared, #smem, mutable>
    ttg.async_copy_block_to_local %a[%c0, %c0], %v, %more : !tt.tensordesc<tensor<64x64xf16, #shared>> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    ttg.async_copy_block_to_local %b[%c0, %c0], %w, %more : !tt.tensordesc<tensor<32x64xf16, #shared>> -> !ttg.memdesc<32x64xf16, #shared, #smem, mutable>
    ttg.ring_commit %ring[%c0]
    ttg.ring_wait %ring[%c0], %c0 where %more
    %l = ttg.local_load %v : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf16, #blocked>
    ttg.ring_dealloc %ring
    tt.return %l : tensor<64x64xf16, #blocked>
  }
}
// CHECK: [[FULL:%.*]] = ttg.local_alloc : () -> !ttg.memdesc<1x1xi64
// CHECK: ttng.init_barrier {{.*}}, 1 :
// CHECK: ttng.barrier_expect [[F:%.*]], 12288, %arg2
// CHECK: ttng.async_tma_copy_global_to_local %arg0{{.*}}, [[F]], %arg2
// CHECK: ttng.async_tma_copy_global_to_local %arg1{{.*}}, [[F]], %arg2
// CHECK: ttng.wait_barrier {{.*}}, {{.*}}, %arg2
// CHECK: ttg.local_load
// CHECK: ttng.inval_barrier
// CHECK-NOT: ttg.ring
// -----
// One field is filled in one way.
// RUN: -lower-rings
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @both(%a: !tt.tensordesc<tensor<64x64xf16, #shared>>, %t: tensor<64x64xf16, #blocked>) {
    %c0 = arith.constant 0 : i32
    %x = ttg.local_alloc : () -> !ttg.memdesc<1x64x64xf16, #shared, #smem, mutable>
    %ring = ttg.ring_create %x {slots = 1 : i32} : !ttg.memdesc<1x64x64xf16, #shared, #smem, mutable>
    ttg.ring_acquire %ring[%c0], %c0
    %v = ttg.memdesc_index %x[%c0] : !ttg.memdesc<1x64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    ttg.async_copy_block_to_local %a[%c0, %c0], %v : !tt.tensordesc<tensor<64x64xf16, #shared>> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    ttg.local_store %t, %v : tensor<64x64xf16, #blocked> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    ttg.ring_commit %ring[%c0]
    tt.return
  }
}
// ERROR: a field of the pipe is filled in two ways
// -----
// RUN: -lower-rings
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @open(%a: !tt.tensordesc<tensor<64x64xf16, #shared>>, %s: i32) {
    %c0 = arith.constant 0 : i32
    %x = ttg.local_alloc : () -> !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>
    %ring = ttg.ring_create %x {slots = 2 : i32} : !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>
    ttg.ring_acquire %ring[%c0], %c0
    %v = ttg.memdesc_index %x[%c0] : !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    ttg.async_copy_block_to_local %a[%c0, %c0], %v : !tt.tensordesc<tensor<64x64xf16, #shared>> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    ttg.ring_commit %ring[%s]
    tt.return
  }
}
// ERROR: the slot that is acquired here is not committed in the same block
// -----
// RUN: -lower-rings
#plain = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @nobody(%s: i32) {
    %x = ttg.local_alloc : () -> !ttg.memdesc<2x64xf16, #plain, #smem, mutable>
    %ring = ttg.ring_create %x {readers = ["left", "right"], slots = 2 : i32} : !ttg.memdesc<2x64xf16, #plain, #smem, mutable>
    ttg.warp_specialize(%ring, %s)
    default {
      ttg.ring_acquire %ring[%s], %s
      ttg.ring_commit %ring[%s]
      ttg.warp_yield
    }
    partition0(%r: !ttg.ring, %t: i32) num_warps(1) {
      ttg.ring_wait %r[%t], %t
      ttg.ring_release %r[%t]
      ttg.warp_return
    } : (!ttg.ring, i32) -> ()
    tt.return
  }
}
// ERROR: the reader `right` of the pipe never reads
// -----
// RUN: -lower-rings
#plain = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @two(%s: i32) {
    %x = ttg.local_alloc : () -> !ttg.memdesc<2x64xf16, #plain, #smem, mutable>
    %ring = ttg.ring_create %x {slots = 2 : i32} : !ttg.memdesc<2x64xf16, #plain, #smem, mutable>
    ttg.warp_specialize(%ring, %s)
    default {
      ttg.ring_acquire %ring[%s], %s
      ttg.ring_commit %ring[%s]
      ttg.warp_yield
    }
    partition0(%r: !ttg.ring, %t: i32) num_warps(1) {
      ttg.ring_acquire %r[%t], %t
      ttg.ring_commit %r[%t]
      ttg.warp_return
    } : (!ttg.ring, i32) -> ()
    tt.return
  }
}
// ERROR: the writer of the pipe is in two partitions
// -----
// RUN: -lower-rings
#plain = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @undeclared(%s: i32) {
    %x = ttg.local_alloc : () -> !ttg.memdesc<2x64xf16, #plain, #smem, mutable>
    %ring = ttg.ring_create %x {slots = 2 : i32} : !ttg.memdesc<2x64xf16, #plain, #smem, mutable>
    ttg.ring_wait %ring[%s], %s {reader = 1 : i32}
    tt.return
  }
}
// ERROR: the ring has no reader 1
// -----
// A ring without fields tells the CTAs of a cluster that this one has read a slot: the thread that copies waits for all of them.
// RUN: -lower-rings
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @turns(%slot: i32, %phase: i32) {
    %ring = ttg.ring_create {slots = 2 : i32, ttg.peers = 3 : i32}
    ttg.ring_commit %ring[%slot]
    ttg.ring_wait %ring[%slot], %phase
    ttg.ring_dealloc %ring
    tt.return
  }
}
// CHECK: ttng.init_barrier {{.*}}, 2 :
// CHECK: ttng.cluster_arrive
// CHECK-NEXT: ttng.cluster_wait
// CHECK: ttg.barrier
// CHECK: ttng.arrive_barrier {{.*}}, 1 {ttg.peers = 3 : i32}
// CHECK: ttng.wait_barrier {{.*}}, %arg1 {ttg.elected}
// CHECK: ttng.inval_barrier
// -----
// RUN: -lower-rings
#plain = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @phase(%s: i32) {
    %x = ttg.local_alloc : () -> !ttg.memdesc<2x64xf16, #plain, #smem, mutable>
    %ring = ttg.ring_create %x {slots = 2 : i32} : !ttg.memdesc<2x64xf16, #plain, #smem, mutable>
    ttg.warp_specialize(%ring, %s)
    default {
      ttg.ring_acquire %ring[%s]
      ttg.ring_commit %ring[%s]
      ttg.warp_yield
    }
    partition0(%r: !ttg.ring, %t: i32) num_warps(1) {
      ttg.ring_wait %r[%t], %t
      ttg.ring_release %r[%t]
      ttg.warp_return
    } : (!ttg.ring, i32) -> ()
    tt.return
  }
}
// ERROR: say in which phase it is acquired
// -----
// A writer that closes slots says in a word of each, before its warps arrive, whether it is closed. It stores through pointers, once a
// slot, so that its warps have nothing to do with each other.
// RUN: -lower-rings
#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#plain = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @closing(%out: !tt.ptr<i1>, %slot: i32, %phase: i32) {
    %x = ttg.local_alloc : () -> !ttg.memdesc<2x128xf32, #plain, #smem, mutable>
    %ring = ttg.ring_create %x {slots = 2 : i32} : !ttg.memdesc<2x128xf32, #plain, #smem, mutable>
    ttg.warp_specialize(%ring, %x, %out, %slot, %phase) attributes {partitionNumWarps = array<i32: 2>}
    default {
      %i = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32, #blocked>
      %v = ttg.memdesc_index %x[%slot] : !ttg.memdesc<2x128xf32, #plain, #smem, mutable> -> !ttg.memdesc<128xf32, #plain, #smem, mutable>
      %p = ttg.local_ptr %v[%i] : (!ttg.memdesc<128xf32, #plain, #smem, mutable>, tensor<128xi32, #blocked>) -> tensor<128x!tt.ptr<f32, 3>, #blocked>
      %t = arith.constant dense<0.000000e+00> : tensor<128xf32, #blocked>
      ttg.ring_acquire %ring[%slot], %phase
      tt.store %p, %t {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<128x!tt.ptr<f32, 3>, #blocked>
      ttg.ring_commit %ring[%slot]
      ttg.ring_close %ring[%slot], %phase
      ttg.warp_yield
    }
    partition0(%r: !ttg.ring, %y: !ttg.memdesc<2x128xf32, #plain, #smem, mutable>, %o: !tt.ptr<i1>, %s: i32, %p: i32) num_warps(2) {
      ttg.ring_wait %r[%s], %p
      %closed = ttg.ring_is_closed %r[%s]
      tt.store %o, %closed : !tt.ptr<i1>
      ttg.ring_release %r[%s]
      ttg.warp_return
    } : (!ttg.ring, !ttg.memdesc<2x128xf32, #plain, #smem, mutable>, !tt.ptr<i1>, i32, i32) -> ()
    tt.return
  }
}
// CHECK: ttg.local_alloc {tilewright.ordered} : () -> !ttg.memdesc<2x128xf32
// CHECK: ttng.init_barrier {{.*}}, 4 :
// CHECK: ttng.init_barrier {{.*}}, 2 :
// CHECK: [[FLAGS:%.*]] = ttg.local_alloc {tilewright.ordered} : () -> !ttg.memdesc<2xi32
// CHECK: ttng.wait_barrier
// CHECK: tt.store
// CHECK: [[F:%.*]] = ttg.local_ptr [[FLAGS]][%arg1]
// CHECK: tt.store [[F]], %c0
// CHECK-NEXT: ttng.arrive_barrier {{.*}} {perWarp = true}
// CHECK: ttng.wait_barrier
// CHECK: [[F:%.*]] = ttg.local_ptr [[FLAGS]][%arg1]
// CHECK: tt.store [[F]], %c1
// CHECK-NEXT: ttng.arrive_barrier {{.*}} {perWarp = true}
// CHECK: partition0
// CHECK: ttng.wait_barrier
// CHECK: [[W:%.*]] = tt.load
// CHECK: arith.cmpi ne, [[W]]
// CHECK: ttng.arrive_barrier
// CHECK-NOT: ring
