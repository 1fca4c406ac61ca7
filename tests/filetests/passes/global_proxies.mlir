// A copy of what threads have written through the same pointer.
// RUN: -global-proxies
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @copied(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %map: !tt.ptr<i8>, %flag: !tt.ptr<i32>, %x: tensor<16x32xf32, #blocked>, %b: !ttg.memdesc<16x32xf32, #shared, #smem, mutable>, %bar: !ttg.memdesc<1xi64, #bar, #smem, mutable>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c32 = arith.constant 32 : i64
    %true = arith.constant true
    ttng.tensormap_create %map, %p, [%c1, %c1], [%c1, %c1], [%c32], [%c1, %c1] {elem_type = 7 : i32, interleave_layout = 0 : i32, swizzle_mode = 3 : i32, fill_mode = 0 : i32} : (!tt.ptr<i8>, !tt.ptr<f32>, i32, i32, i32, i32, i64, i32, i32) -> ()
    %d = ttng.reinterpret_tensor_descriptor %map : !tt.ptr<i8> to !tt.tensordesc<tensor<16x32xf32, #shared>>
    %ps = tt.splat %p : !tt.ptr<f32> -> tensor<16x32x!tt.ptr<f32>, #blocked>
    // CHECK: tt.store
    // CHECK-NEXT: ttng.fence_async_global
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: ttng.async_tma_copy_global_to_local
    // CHECK-NEXT: ttng.async_tma_copy_global_to_local
    tt.store %ps, %x {tt.vec = 1 : i32, tt.vec_axis = 1 : i32} : tensor<16x32x!tt.ptr<f32>, #blocked>
    ttng.async_tma_copy_global_to_local %d[%c0, %c0] %b, %bar, %true : !tt.tensordesc<tensor<16x32xf32, #shared>>, !ttg.memdesc<1xi64, #bar, #smem, mutable> -> !ttg.memdesc<16x32xf32, #shared, #smem, mutable>
    ttng.async_tma_copy_global_to_local %d[%c0, %c0] %b, %bar, %true : !tt.tensordesc<tensor<16x32xf32, #shared>>, !ttg.memdesc<1xi64, #bar, #smem, mutable> -> !ttg.memdesc<16x32xf32, #shared, #smem, mutable>
    tt.return
  }
}
// -----
// Two arguments are two tensors.
// RUN: -global-proxies
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @others(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %map: !tt.ptr<i8>, %flag: !tt.ptr<i32>, %x: tensor<16x32xf32, #blocked>, %b: !ttg.memdesc<16x32xf32, #shared, #smem, mutable>, %bar: !ttg.memdesc<1xi64, #bar, #smem, mutable>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c32 = arith.constant 32 : i64
    %true = arith.constant true
    ttng.tensormap_create %map, %q, [%c1, %c1], [%c1, %c1], [%c32], [%c1, %c1] {elem_type = 7 : i32, interleave_layout = 0 : i32, swizzle_mode = 3 : i32, fill_mode = 0 : i32} : (!tt.ptr<i8>, !tt.ptr<f32>, i32, i32, i32, i32, i64, i32, i32) -> ()
    %d = ttng.reinterpret_tensor_descriptor %map : !tt.ptr<i8> to !tt.tensordesc<tensor<16x32xf32, #shared>>
    %ps = tt.splat %p : !tt.ptr<f32> -> tensor<16x32x!tt.ptr<f32>, #blocked>
    // CHECK-NOT: fence_async_global
    scf.for %i = %c0 to %n step %c1 : i32 {
      tt.store %ps, %x {tt.vec = 1 : i32, tt.vec_axis = 1 : i32} : tensor<16x32x!tt.ptr<f32>, #blocked>
      ttng.async_tma_copy_global_to_local %d[%c0, %c0] %b, %bar, %true : !tt.tensordesc<tensor<16x32xf32, #shared>>, !ttg.memdesc<1xi64, #bar, #smem, mutable> -> !ttg.memdesc<16x32xf32, #shared, #smem, mutable>
    }
    tt.return
  }
}
// -----
// What a copy stores is there before threads look at it, and before an atomic operation releases; where no copy is under way neither waits.
// RUN: -global-proxies
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @stored(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %map: !tt.ptr<i8>, %flag: !tt.ptr<i32>, %x: tensor<16x32xf32, #blocked>, %b: !ttg.memdesc<16x32xf32, #shared, #smem, mutable>, %bar: !ttg.memdesc<1xi64, #bar, #smem, mutable>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c32 = arith.constant 32 : i64
    %true = arith.constant true
    ttng.tensormap_create %map, %p, [%c1, %c1], [%c1, %c1], [%c32], [%c1, %c1] {elem_type = 7 : i32, interleave_layout = 0 : i32, swizzle_mode = 3 : i32, fill_mode = 0 : i32} : (!tt.ptr<i8>, !tt.ptr<f32>, i32, i32, i32, i32, i64, i32, i32) -> ()
    %d = ttng.reinterpret_tensor_descriptor %map : !tt.ptr<i8> to !tt.tensordesc<tensor<16x32xf32, #shared>>
    %ps = tt.splat %p : !tt.ptr<f32> -> tensor<16x32x!tt.ptr<f32>, #blocked>
    // CHECK: ttng.async_tma_copy_local_to_global
    // CHECK-NEXT: ttng.fence_async_global {complete = true}
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: tt.load
    // CHECK-NEXT: tt.atomic_rmw
    // CHECK-NEXT: ttng.async_tma_copy_local_to_global
    // CHECK-NEXT: ttng.fence_async_global {complete = true}
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: tt.atomic_rmw
    // CHECK-NEXT: ttng.async_tma_copy_local_to_global
    // CHECK-NEXT: tt.atomic_rmw
    // CHECK-NEXT: ttng.fence_async_global {complete = true}
    // CHECK-NEXT: tt.program_barrier
    ttng.async_tma_copy_local_to_global %d[%c0, %c0] %b : !tt.tensordesc<tensor<16x32xf32, #shared>>, !ttg.memdesc<16x32xf32, #shared, #smem, mutable>
    %y = tt.load %ps {tt.vec = 1 : i32, tt.vec_axis = 1 : i32} : tensor<16x32x!tt.ptr<f32>, #blocked>
    %0 = tt.atomic_rmw add, release, gpu, %flag, %c1, %true : (!tt.ptr<i32>, i32, i1) -> i32
    ttng.async_tma_copy_local_to_global %d[%c0, %c0] %b : !tt.tensordesc<tensor<16x32xf32, #shared>>, !ttg.memdesc<16x32xf32, #shared, #smem, mutable>
    %1 = tt.atomic_rmw add, release, gpu, %flag, %c1, %true : (!tt.ptr<i32>, i32, i1) -> i32
    ttng.async_tma_copy_local_to_global %d[%c0, %c0] %b : !tt.tensordesc<tensor<16x32xf32, #shared>>, !ttg.memdesc<16x32xf32, #shared, #smem, mutable>
    %2 = tt.atomic_rmw add, relaxed, gpu, %flag, %c1, %true : (!tt.ptr<i32>, i32, i1) -> i32
    tt.program_barrier grid {group = 0 : i32}
    tt.return
  }
}
// -----
// In front of a loop, for all that it copies of what came before; inside, where it stores itself.
// RUN: -global-proxies
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @loops(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %map: !tt.ptr<i8>, %flag: !tt.ptr<i32>, %x: tensor<16x32xf32, #blocked>, %b: !ttg.memdesc<16x32xf32, #shared, #smem, mutable>, %bar: !ttg.memdesc<1xi64, #bar, #smem, mutable>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c32 = arith.constant 32 : i64
    %true = arith.constant true
    ttng.tensormap_create %map, %p, [%c1, %c1], [%c1, %c1], [%c32], [%c1, %c1] {elem_type = 7 : i32, interleave_layout = 0 : i32, swizzle_mode = 3 : i32, fill_mode = 0 : i32} : (!tt.ptr<i8>, !tt.ptr<f32>, i32, i32, i32, i32, i64, i32, i32) -> ()
    %d = ttng.reinterpret_tensor_descriptor %map : !tt.ptr<i8> to !tt.tensordesc<tensor<16x32xf32, #shared>>
    %ps = tt.splat %p : !tt.ptr<f32> -> tensor<16x32x!tt.ptr<f32>, #blocked>
    // CHECK: tt.store
    // CHECK-NEXT: ttng.fence_async_global
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: scf.for
    // CHECK-NEXT: ttng.async_tma_copy_global_to_local
    // CHECK-NEXT: }
    tt.store %ps, %x {tt.vec = 1 : i32, tt.vec_axis = 1 : i32} : tensor<16x32x!tt.ptr<f32>, #blocked>
    scf.for %i = %c0 to %n step %c1 : i32 {
      ttng.async_tma_copy_global_to_local %d[%c0, %c0] %b, %bar, %true : !tt.tensordesc<tensor<16x32xf32, #shared>>, !ttg.memdesc<1xi64, #bar, #smem, mutable> -> !ttg.memdesc<16x32xf32, #shared, #smem, mutable>
    }
    // CHECK-NEXT: scf.for
    // CHECK-NEXT: ttng.fence_async_global
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: ttng.async_tma_copy_global_to_local
    // CHECK-NEXT: tt.store
    scf.for %i = %c0 to %n step %c1 : i32 {
      ttng.async_tma_copy_global_to_local %d[%c0, %c0] %b, %bar, %true : !tt.tensordesc<tensor<16x32xf32, #shared>>, !ttg.memdesc<1xi64, #bar, #smem, mutable> -> !ttg.memdesc<16x32xf32, #shared, #smem, mutable>
      tt.store %ps, %x {tt.vec = 1 : i32, tt.vec_axis = 1 : i32} : tensor<16x32x!tt.ptr<f32>, #blocked>
    }
    tt.return
  }
}
// -----
// A copy to where another may still store waits for it: at the same place, and in a loop that does not move; not one beside it, nor one that a loop moves by as
// much as a block at least.
// RUN: -global-proxies
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @again(%p: !tt.ptr<f32>, %map: !tt.ptr<i8>, %b: !ttg.memdesc<16x32xf32, #shared, #smem, mutable>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c16 = arith.constant 16 : i32
    %c32 = arith.constant 32 : i64
    ttng.tensormap_create %map, %p, [%c1, %c1], [%c1, %c1], [%c32], [%c1, %c1] {elem_type = 7 : i32, interleave_layout = 0 : i32, swizzle_mode = 3 : i32, fill_mode = 0 : i32} : (!tt.ptr<i8>, !tt.ptr<f32>, i32, i32, i32, i32, i64, i32, i32) -> ()
    %d = ttng.reinterpret_tensor_descriptor %map : !tt.ptr<i8> to !tt.tensordesc<tensor<16x32xf32, #shared>>
    // CHECK: ttng.async_tma_copy_local_to_global
    // CHECK-NEXT: ttng.async_tma_copy_local_to_global
    // CHECK-NEXT: ttng.fence_async_global {complete = true}
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: ttng.async_tma_copy_local_to_global
    ttng.async_tma_copy_local_to_global %d[%c0, %c0] %b : !tt.tensordesc<tensor<16x32xf32, #shared>>, !ttg.memdesc<16x32xf32, #shared, #smem, mutable>
    ttng.async_tma_copy_local_to_global %d[%c16, %c0] %b : !tt.tensordesc<tensor<16x32xf32, #shared>>, !ttg.memdesc<16x32xf32, #shared, #smem, mutable>
    ttng.async_tma_copy_local_to_global %d[%c1, %c0] %b : !tt.tensordesc<tensor<16x32xf32, #shared>>, !ttg.memdesc<16x32xf32, #shared, #smem, mutable>
    // CHECK-NEXT: ttng.fence_async_global {complete = true}
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: scf.for
    // CHECK-NEXT: ttng.async_tma_copy_local_to_global
    // CHECK-NEXT: }
    scf.for %i = %c0 to %n step %c16 : i32 {
      ttng.async_tma_copy_local_to_global %d[%i, %c0] %b : !tt.tensordesc<tensor<16x32xf32, #shared>>, !ttg.memdesc<16x32xf32, #shared, #smem, mutable>
    }
    // CHECK-NEXT: ttng.fence_async_global {complete = true}
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: scf.for
    // CHECK-NEXT: ttng.fence_async_global {complete = true}
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: ttng.async_tma_copy_local_to_global
    // CHECK-NEXT: }
    scf.for %i = %c0 to %n step %c1 : i32 {
      ttng.async_tma_copy_local_to_global %d[%i, %c0] %b : !tt.tensordesc<tensor<16x32xf32, #shared>>, !ttg.memdesc<16x32xf32, #shared, #smem, mutable>
    }
    tt.return
  }
}
