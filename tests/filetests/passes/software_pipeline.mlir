// Two readers that want the same tile laid out differently: one reads the ring, the other a buffer filled from it.
// RUN: -software-pipeline -num-stages=2
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 2, maxPhase = 4, order = [1, 0]}>
#shared1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%p: tensor<32x32x!tt.ptr<f16>, #blocked>, %n: i32, %z: tensor<32x32xf32, #mma>) -> tensor<32x32xf32, #mma> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %z) -> (tensor<32x32xf32, #mma>) : i32 {
      %x = tt.load %p {tt.vec = 8 : i32, tt.vec_axis = 1 : i32} : tensor<32x32x!tt.ptr<f16>, #blocked>
      %s = ttg.local_alloc %x : (tensor<32x32xf16, #blocked>) -> !ttg.memdesc<32x32xf16, #shared, #smem>
      %t = ttg.local_alloc %x : (tensor<32x32xf16, #blocked>) -> !ttg.memdesc<32x32xf16, #shared1, #smem>
      %a = ttg.local_load %s : !ttg.memdesc<32x32xf16, #shared, #smem> -> tensor<32x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
      %b = ttg.local_load %t : !ttg.memdesc<32x32xf16, #shared1, #smem> -> tensor<32x32xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>>
      %d = tt.dot %a, %b, %acc : tensor<32x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * tensor<32x32xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>> -> tensor<32x32xf32, #mma>
      scf.yield %d : tensor<32x32xf32, #mma>
    }
    tt.return %r : tensor<32x32xf32, #mma>
  }
}
// CHECK: [[RING:%.*]] = ttg.local_alloc : () -> !ttg.memdesc<2x32x32xf16
// CHECK: scf.for
// CHECK: ttg.async_copy_global_to_local
// CHECK: [[X:%.*]] = ttg.local_load {{.*}}-> tensor<32x32xf16, #blocked>
// CHECK-NEXT: ttg.local_alloc [[X]] : (tensor<32x32xf16, #blocked>)
// CHECK: tt.dot
