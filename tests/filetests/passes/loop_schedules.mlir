// (Two dots with arithmetic between them: early_dots.mlir, late_dots.mlir, split_barrier.mlir.)
// One load and a dot: the copies begin as soon as their slots are free, two iterations ahead with three slots.
// RUN: -software-pipeline -num-stages=3
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 2, maxPhase = 4, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%p: tensor<32x32x!tt.ptr<f16>, #blocked>, %b: tensor<32x32xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>>, %n: i32, %z: tensor<32x32xf32, #mma>) -> tensor<32x32xf32, #mma> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %z) -> (tensor<32x32xf32, #mma>) : i32 {
      %x = tt.load %p {tt.vec = 8 : i32, tt.vec_axis = 1 : i32} : tensor<32x32x!tt.ptr<f16>, #blocked>
      %s = ttg.local_alloc %x : (tensor<32x32xf16, #blocked>) -> !ttg.memdesc<32x32xf16, #shared, #smem>
      %a = ttg.local_load %s : !ttg.memdesc<32x32xf16, #shared, #smem> -> tensor<32x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
      %d = tt.dot %a, %b, %acc : tensor<32x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * tensor<32x32xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>> -> tensor<32x32xf32, #mma>
      scf.yield %d : tensor<32x32xf32, #mma>
    }
    tt.return %r : tensor<32x32xf32, #mma>
  }
}
// CHECK: ttg.local_alloc : () -> !ttg.memdesc<3x32x32xf16
// CHECK: [[RING:%.*]] = ttg.ring_create
// CHECK: ttg.ring_commit [[RING]][
// CHECK: ttg.ring_commit [[RING]][
// CHECK: scf.for
// CHECK: ttg.ring_wait [[RING]][{{.*}} {later = 1 : i32}
// CHECK: ttg.ring_acquire [[RING]][
// CHECK: ttg.async_copy_global_to_local
// CHECK: ttg.local_load
// CHECK-NEXT: tt.dot
// -----
// A gather through an index: the index is loaded as many iterations before its copy as a memory latency takes. With so little work in
// an iteration that is two, and two indices wait in registers.
// RUN: -software-pipeline -num-stages=2
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [8, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [8, 1], instrShape = [16, 256, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%q: !ttg.memdesc<128x32xf16, #shared, #smem>, %p: tensor<32x256x!tt.ptr<f16>, #blocked>, %index: !tt.ptr<i32>, %n: i32, %z: tensor<128x256xf32, #mma>) -> tensor<128x256xf32, #mma> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %z) -> (tensor<128x256xf32, #mma>) : i32 {
      %at = tt.addptr %index, %i : !tt.ptr<i32>, i32
      %j = tt.load %at : !tt.ptr<i32>
      %row = tt.splat %j : i32 -> tensor<32x256xi32, #blocked>
      %ptr = tt.addptr %p, %row : tensor<32x256x!tt.ptr<f16>, #blocked>, tensor<32x256xi32, #blocked>
      %x = tt.load %ptr {tt.vec = 8 : i32, tt.vec_axis = 1 : i32} : tensor<32x256x!tt.ptr<f16>, #blocked>
      %b = ttg.local_alloc %x : (tensor<32x256xf16, #blocked>) -> !ttg.memdesc<32x256xf16, #shared, #smem>
      %d = ttng.warp_group_dot %q, %b, %acc {inputPrecision = 0 : i32} : !ttg.memdesc<128x32xf16, #shared, #smem> * !ttg.memdesc<32x256xf16, #shared, #smem> -> tensor<128x256xf32, #mma>
      scf.yield %d : tensor<128x256xf32, #mma>
    }
    tt.return %r : tensor<128x256xf32, #mma>
  }
}
// CHECK: tt.load
// CHECK: [[ONE:%.*]] = tt.load
// CHECK: ttg.async_copy_global_to_local
// CHECK: [[TWO:%.*]] = tt.load
// CHECK: scf.for {{.*}}, %arg10 = [[ONE]], %arg11 = [[TWO]])
// CHECK: ttng.warp_group_dot
// CHECK: tt.splat %arg10 : i32
// CHECK: ttg.async_copy_global_to_local
// CHECK: [[NEW:%.*]] = tt.load
// CHECK: scf.yield {{.*}}, %arg11, [[NEW]] :
// -----
// Two loads of different depths and no dot, in a loop whose author asks for stages: the table's value runs ahead in registers, and all
// that the sum needs comes through rings.
// RUN: -software-pipeline -num-stages=1
#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%p: tensor<512x!tt.ptr<f32>, #blocked>, %w: tensor<512x!tt.ptr<f32>, #blocked>, %table: !tt.ptr<i32>, %o: tensor<512x!tt.ptr<f32>, #blocked>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %i = %c0 to %n step %c1 : i32 {
      %at = tt.addptr %table, %i : !tt.ptr<i32>, i32
      %j = tt.load %at : !tt.ptr<i32>
      %row = tt.splat %j : i32 -> tensor<512xi32, #blocked>
      %ptr = tt.addptr %p, %row : tensor<512x!tt.ptr<f32>, #blocked>, tensor<512xi32, #blocked>
      %x = tt.load %ptr {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #blocked>
      %col = tt.splat %i : i32 -> tensor<512xi32, #blocked>
      %wptr = tt.addptr %w, %col : tensor<512x!tt.ptr<f32>, #blocked>, tensor<512xi32, #blocked>
      %y = tt.load %wptr {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #blocked>
      %s = arith.addf %x, %y : tensor<512xf32, #blocked>
      tt.store %o, %s {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #blocked>
    } {tt.num_stages = 3 : i32}
    tt.return
  }
}
// CHECK: ttg.local_alloc : () -> !ttg.memdesc<2x512xf32
// CHECK: ttg.local_alloc : () -> !ttg.memdesc<2x512xf32
// CHECK: tt.load
// CHECK: tt.load
// CHECK: tt.load
// CHECK: scf.for {{.*}}, %arg8 =
// CHECK: ttg.ring_wait {{.*}} {later = 1 : i32}
// CHECK: ttg.local_load
// CHECK: ttg.local_load
// CHECK: tt.splat %arg8 : i32
// CHECK: ttg.async_copy_global_to_local
// CHECK: ttg.async_copy_global_to_local
// CHECK-NEXT: ttg.ring_commit
// CHECK: [[NEW:%.*]] = tt.load
// CHECK: arith.addf
// CHECK: tt.store
// CHECK: scf.yield {{.*}}, [[NEW]] :
