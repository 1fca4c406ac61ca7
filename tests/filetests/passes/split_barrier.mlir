// Two dots of two warp groups, and nothing else at which all would have to meet: an mbarrier between the iterations, with a slot more
// in the rings than stages.
// RUN: -software-pipeline -num-stages=3
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [8, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [8, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%q: !ttg.memdesc<128x64xf16, #shared, #smem>, %p: tensor<64x64x!tt.ptr<f16>, #blocked>, %n: i32, %z: tensor<128x64xf32, #mma>) -> tensor<128x64xf32, #mma> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %z) -> (tensor<128x64xf32, #mma>) : i32 {
      %x = tt.load %p {tt.vec = 8 : i32, tt.vec_axis = 1 : i32} : tensor<64x64x!tt.ptr<f16>, #blocked>
      %b = ttg.local_alloc %x : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
      %s = ttng.warp_group_dot %q, %b, %z {inputPrecision = 0 : i32} : !ttg.memdesc<128x64xf16, #shared, #smem> * !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<128x64xf32, #mma>
      %e = math.exp2 %s : tensor<128x64xf32, #mma>
      %h = arith.truncf %e : tensor<128x64xf32, #mma> to tensor<128x64xf16, #mma>
      %a = ttg.convert_layout %h : tensor<128x64xf16, #mma> -> tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
      %d = ttng.warp_group_dot %a, %b, %acc {inputPrecision = 0 : i32} : tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<128x64xf32, #mma>
      scf.yield %d : tensor<128x64xf32, #mma>
    }
    tt.return %r : tensor<128x64xf32, #mma>
  }
}
// CHECK: [[RING:%.*]] = ttg.local_alloc {tilewright.ordered} : () -> !ttg.memdesc<4x64x64xf16
// CHECK: ttng.init_barrier [[BAR:%.*]], 8
// CHECK-NEXT: ttg.barrier
// CHECK: ttng.fence_async_shared
// CHECK-NEXT: ttng.arrive_barrier [[BAR]], 1 {perWarp = true}
// CHECK: scf.for
// CHECK: ttng.wait_barrier [[BAR]], [[PHASE:%.*]] :
// CHECK: ttng.warp_group_dot
// CHECK-NOT: ttng.warp_group_dot
// CHECK: ttg.ring_wait
// CHECK-NOT: later
// CHECK: ttng.fence_async_shared
// CHECK-NEXT: ttng.arrive_barrier [[BAR]], 1 {perWarp = true}
// CHECK: ttg.async_copy_global_to_local
// CHECK: math.exp2
// CHECK-NOT: ttg.barrier
// CHECK: arith.xori [[PHASE]]
// CHECK: scf.yield
// CHECK: ttg.ring_dealloc
// CHECK-NEXT: ttg.barrier
// CHECK-NEXT: ttng.inval_barrier [[BAR]]
