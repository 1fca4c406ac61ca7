// Loads that stand together share an mbarrier; what is to be a dot's operand is read where the copy puts it, the other comes
// to registers. The store at the end of the function is waited for there.
// RUN: -lower-tma
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @together(%a: !tt.tensordesc<tensor<64x64xf16, #shared>>, %b: !tt.tensordesc<tensor<64x64xf16, #shared>>, %i: i32) {
    %c0 = arith.constant 0 : i32
    %x = tt.descriptor_load %a[%i, %c0] : !tt.tensordesc<tensor<64x64xf16, #shared>> -> tensor<64x64xf16, #blocked>
    %y = tt.descriptor_load %b[%c0, %i] : !tt.tensordesc<tensor<64x64xf16, #shared>> -> tensor<64x64xf16, #blocked>
    %s = ttg.local_alloc %x : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
    %t = ttg.local_load %s : !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<64x64xf16, #blocked>
    %z = arith.addf %t, %y : tensor<64x64xf16, #blocked>
    tt.descriptor_store %a[%i, %i], %z : !tt.tensordesc<tensor<64x64xf16, #shared>>, tensor<64x64xf16, #blocked>
    tt.return
  }
}
// CHECK: [[BAR:%.*]] = ttg.local_alloc : () -> !ttg.memdesc<1xi64
// CHECK-NEXT: ttng.init_barrier [[BAR]], 1
// CHECK: ttng.barrier_expect [[BAR]], 16384
// CHECK: [[X:%.*]] = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16
// CHECK-NEXT: ttng.async_tma_copy_global_to_local %arg0[%arg2, %c0_i32] [[X]], [[BAR]]
// CHECK: [[Y:%.*]] = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16
// CHECK-NEXT: ttng.async_tma_copy_global_to_local %arg1[%c0_i32, %arg2] [[Y]], [[BAR]]
// CHECK: ttng.wait_barrier [[BAR]]
// CHECK: ttng.inval_barrier [[BAR]]
// CHECK: ttg.local_load [[Y]]
// CHECK: ttg.local_load [[X]]
// CHECK: [[Z:%.*]] = ttg.local_alloc
// CHECK-NEXT: ttng.async_tma_copy_local_to_global %arg0[%arg2, %arg2] [[Z]]
// CHECK-NEXT: ttng.async_tma_store_wait {pendings = 0 : i32}
// CHECK-NEXT: ttg.local_dealloc [[Z]]
// CHECK-NEXT: tt.return
// -----
// A store in a loop: its buffer lives as long as the loop, and is waited for where it is written again.
// RUN: -lower-tma
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @loop(%a: !tt.tensordesc<tensor<64x64xf16, #shared>>, %x: tensor<64x64xf16, #blocked>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c64 = arith.constant 64 : i32
    scf.for %i = %c0 to %n step %c64 : i32 {
      tt.descriptor_store %a[%i, %c0], %x : !tt.tensordesc<tensor<64x64xf16, #shared>>, tensor<64x64xf16, #blocked>
    }
    tt.return
  }
}
// CHECK: [[BUFFER:%.*]] = ttg.local_alloc {tilewright.through_loop} : () -> !ttg.memdesc<64x64xf16
// CHECK-NEXT: scf.for
// CHECK-NEXT: ttng.async_tma_store_wait {pendings = 0 : i32}
// CHECK-NEXT: ttg.local_store %arg1, [[BUFFER]]
// CHECK-NEXT: ttng.async_tma_copy_local_to_global %arg0[{{.*}}, %c0_i32] [[BUFFER]]
// CHECK: ttng.async_tma_store_wait {pendings = 0 : i32}
// CHECK-NEXT: ttg.local_dealloc [[BUFFER]]
// -----
// Maps of which the launch does not know enough are made by a warp each, and acquired behind a barrier by who copies, right before the first copy.
// RUN: -lower-tma
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @made(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %q: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %n: i32, %s: i64) {
    %c0 = arith.constant 0 : i32
    %one = arith.constant 1 : i64
    %m = tt.get_program_id x : i32
    %a = tt.make_tensor_descriptor %p, [%m, %n], [%s, %one] : <f16>, <tensor<64x64xf16, #shared>>
    %b = tt.make_tensor_descriptor %q, [%m, %n], [%s, %one] : <f16>, <tensor<64x64xf16, #shared>>
    %x = tt.descriptor_load %a[%n, %c0] : !tt.tensordesc<tensor<64x64xf16, #shared>> -> tensor<64x64xf16, #blocked>
    %y = arith.addf %x, %x : tensor<64x64xf16, #blocked>
    tt.descriptor_store %b[%n, %c0], %y : !tt.tensordesc<tensor<64x64xf16, #shared>>, tensor<64x64xf16, #blocked>
    tt.return
  }
}
// CHECK: [[A:%.*]] = ttg.global_scratch_alloc
// CHECK: ttng.tensormap_create [[A]], %arg0, {{.*}}tilewright.warp = 0
// CHECK-NOT: ttng.tensormap_fenceproxy_acquire
// CHECK: [[B:%.*]] = ttg.global_scratch_alloc
// CHECK: ttng.tensormap_create [[B]], %arg1, {{.*}}tilewright.warp = 1
// CHECK: ttg.barrier
// CHECK-NEXT: ttng.tensormap_fenceproxy_acquire [[A]]
// CHECK-NOT: ttng.tensormap_fenceproxy_acquire
// CHECK: ttng.async_tma_copy_global_to_local
// CHECK-NOT: ttg.barrier
// CHECK: ttng.tensormap_fenceproxy_acquire [[B]]
// CHECK: ttng.async_tma_copy_local_to_global
// -----
// A descriptor that the kernel always makes, and from its arguments, is a map that the launch makes; one that it makes under a condition is not.
// RUN: -lower-tma
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @known(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %n: i32, %c: i1) {
    %c0 = arith.constant 0 : i32
    %c8 = arith.constant 8 : i32
    %one = arith.constant 1 : i64
    %m = arith.muli %n, %c8 : i32
    %s = arith.extsi %m : i32 to i64
    %a = tt.make_tensor_descriptor %p, [%n, %m], [%s, %one] {padding = 2 : i32} : <f16>, <tensor<64x64xf16, #shared>>
    %x = tt.descriptor_load %a[%n, %c0] : !tt.tensordesc<tensor<64x64xf16, #shared>> -> tensor<64x64xf16, #blocked>
    scf.if %c {
      %b = tt.make_tensor_descriptor %p, [%n, %m], [%s, %one] : <f16>, <tensor<64x64xf16, #shared>>
      tt.descriptor_store %b[%n, %c0], %x : !tt.tensordesc<tensor<64x64xf16, #shared>>, tensor<64x64xf16, #blocked>
    }
    tt.return
  }
}
// CHECK: tt.func public @known(%arg0: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %arg1: i32, %arg2: i1, %arg3: !tt.tensordesc<tensor<64x64xf16
// CHECK: ttng.tensormap_by_launch %arg3, %arg0, [%arg1, [[M:%.*]]], [{{.*}}] {padding = 2 : i32}
// CHECK-NOT: tensormap_fenceproxy_acquire
// CHECK: ttng.async_tma_copy_global_to_local %arg3
// CHECK: scf.if
// CHECK: ttng.tensormap_create
// CHECK: ttng.async_tma_copy_local_to_global
// -----
// What the default region loads first is on its way before the warps meet, and ends behind them: no barrier but theirs is needed for its mbarrier. What stands behind a store waits for its turn.
// RUN: -lower-tma
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @ahead(%a: !tt.tensordesc<tensor<64x64xf16, #shared>>, %i: i32, %p: !tt.ptr<i32>) -> tensor<64x64xf16, #blocked> {
    %c0 = arith.constant 0 : i32
    %r = ttg.warp_specialize(%p) attributes {requestedRegisters = array<i32: 40>}
    default {
      %x = tt.descriptor_load %a[%i, %c0] : !tt.tensordesc<tensor<64x64xf16, #shared>> -> tensor<64x64xf16, #blocked>
      %s = ttg.local_alloc %x : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
      %t = ttg.local_load %s : !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<64x64xf16, #blocked>
      tt.store %p, %i : !tt.ptr<i32>
      %y = tt.descriptor_load %a[%c0, %i] : !tt.tensordesc<tensor<64x64xf16, #shared>> -> tensor<64x64xf16, #blocked>
      %z = arith.addf %t, %y : tensor<64x64xf16, #blocked>
      ttg.warp_yield %z : tensor<64x64xf16, #blocked>
    }
    partition0(%q: !tt.ptr<i32>) num_warps(1) {
      ttg.warp_return
    } : (!tt.ptr<i32>) -> tensor<64x64xf16, #blocked>
    tt.return %r : tensor<64x64xf16, #blocked>
  }
}
// CHECK: [[BAR:%.*]] = ttg.local_alloc : () -> !ttg.memdesc<1xi64
// CHECK-NEXT: ttng.init_barrier [[BAR]], 1
// CHECK: ttng.async_tma_copy_global_to_local %arg0[%arg1, %c0_i32] [[X:%.*]], [[BAR]]
// CHECK-NEXT: ttg.warp_specialize
// CHECK: ttng.wait_barrier [[BAR]]
// CHECK-NEXT: ttg.local_load [[X]]
// CHECK: tt.store
// CHECK: [[LATER:%.*]] = ttg.local_alloc : () -> !ttg.memdesc<1xi64
// CHECK: ttng.async_tma_copy_global_to_local %arg0[%c0_i32, %arg1] {{.*}}, [[LATER]]
// CHECK: partition0
// CHECK: ttng.inval_barrier [[BAR]]
// -----
// Room for a tile that is stored in a loop is what the buffers that live then leave: those of a loop before do not (2 × 128 KiB and 32).
// RUN: -lower-tma
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @one_after_the_other(%d: !tt.tensordesc<tensor<64x128xf32, #shared>>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %a = ttg.local_alloc : () -> !ttg.memdesc<4x64x128xf32, #shared, #smem, mutable>
    scf.for %i = %c0 to %n step %c1 : i32 {
      %s = ttg.memdesc_index %a[%c0] : !ttg.memdesc<4x64x128xf32, #shared, #smem, mutable> -> !ttg.memdesc<64x128xf32, #shared, #smem, mutable>
      %x = ttg.local_load %s : !ttg.memdesc<64x128xf32, #shared, #smem, mutable> -> tensor<64x128xf32, #blocked>
      tt.descriptor_reduce add, %d[%i, %c0], %x : !tt.tensordesc<tensor<64x128xf32, #shared>>, tensor<64x128xf32, #blocked>
    }
    %b = ttg.local_alloc : () -> !ttg.memdesc<4x64x128xf32, #shared, #smem, mutable>
    scf.for %i = %c0 to %n step %c1 : i32 {
      %s = ttg.memdesc_index %b[%c0] : !ttg.memdesc<4x64x128xf32, #shared, #smem, mutable> -> !ttg.memdesc<64x128xf32, #shared, #smem, mutable>
      %x = ttg.local_load %s : !ttg.memdesc<64x128xf32, #shared, #smem, mutable> -> tensor<64x128xf32, #blocked>
      tt.descriptor_reduce add, %d[%i, %c0], %x : !tt.tensordesc<tensor<64x128xf32, #shared>>, tensor<64x128xf32, #blocked>
    }
    tt.return
  }
}
// CHECK: [[T:%.*]] = ttg.local_alloc {tilewright.through_loop} : () -> !ttg.memdesc<64x128xf32
// CHECK-NEXT: scf.for
// CHECK: ttng.async_tma_store_wait {pendings = 0 : i32}
// CHECK-NEXT: ttg.local_store {{.*}}, [[T]]
// CHECK-NEXT: ttng.async_tma_reduce add, {{.*}} [[T]]
// CHECK-NEXT: }
// CHECK: [[U:%.*]] = ttg.local_alloc {tilewright.through_loop} : () -> !ttg.memdesc<64x128xf32
// CHECK-NEXT: scf.for
// CHECK: ttng.async_tma_store_wait {pendings = 0 : i32}
// CHECK-NEXT: ttg.local_store {{.*}}, [[U]]
