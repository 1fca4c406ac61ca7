// Products of one iteration of the source: a turn goes round the end of the body, where no arithmetic is.
// RUN: -warp-specialize -async-dots -lower-rings -pingpong -num-stages=2
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [8, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [8, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#shared1 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @attend(%q: !ttg.memdesc<128x64xf16, #shared, #smem>, %k: !tt.tensordesc<tensor<64x64xf16, #shared>>, %v: !tt.tensordesc<tensor<64x64xf16, #shared>>, %n: i32) -> tensor<128x64xf32, #mma> {
    %c0 = arith.constant 0 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.000000e+00> : tensor<128x64xf32, #mma>
    %r = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<128x64xf32, #mma>)  : i32 {
      %lk = tt.descriptor_load %k[%i, %c0] : !tt.tensordesc<tensor<64x64xf16, #shared>> -> tensor<64x64xf16, #blocked>
      %sk = ttg.local_alloc %lk : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
      %tk = ttg.memdesc_trans %sk {order = array<i32: 1, 0>} : !ttg.memdesc<64x64xf16, #shared, #smem> -> !ttg.memdesc<64x64xf16, #shared1, #smem>
      %s = ttng.warp_group_dot %q, %tk, %zero {inputPrecision = 0 : i32} : !ttg.memdesc<128x64xf16, #shared, #smem> * !ttg.memdesc<64x64xf16, #shared1, #smem> -> tensor<128x64xf32, #mma>
      %p = math.exp2 %s : tensor<128x64xf32, #mma>
      %scaled = arith.mulf %acc, %p : tensor<128x64xf32, #mma>
      %h = arith.truncf %p : tensor<128x64xf32, #mma> to tensor<128x64xf16, #mma>
      %a = ttg.convert_layout %h : tensor<128x64xf16, #mma> -> tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
      %lv = tt.descriptor_load %v[%i, %c0] : !tt.tensordesc<tensor<64x64xf16, #shared>> -> tensor<64x64xf16, #blocked>
      %sv = ttg.local_alloc %lv : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
      %d = ttng.warp_group_dot %a, %sv, %scaled {inputPrecision = 0 : i32} : tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<128x64xf32, #mma>
      scf.yield %d : tensor<128x64xf32, #mma>
    } {tt.warp_specialize}
    tt.return %r : tensor<128x64xf32, #mma>
  }
}
// CHECK: default
// CHECK-NEXT: ttng.arrive_order_barrier {begins = true}
// CHECK: ttng.wait_order_barrier
// CHECK-NEXT: scf.for
// CHECK: ttng.warp_group_dot %arg0, 
// CHECK-NEXT: ttng.arrive_order_barrier
// CHECK-NEXT: ttng.warp_group_dot_wait
// CHECK: math.exp2
// CHECK: ttng.wait_order_barrier
// CHECK-NEXT: ttng.warp_group_dot {{.*}}#ttg.dot_op
// CHECK: scf.yield
// CHECK: ttng.arrive_order_barrier
// CHECK: ttng.wait_order_barrier {ends = true}
// CHECK-NEXT: ttg.warp_yield
// -----
// What threads store for the products of the inner loop is waited for before it, where nobody waits for a turn.
// RUN: -warp-specialize -async-dots -lower-rings -pingpong -num-stages=2
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [8, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [8, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#shared1 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @attend(%queries: tensor<128x64xf16, #blocked>, %k: !tt.tensordesc<tensor<64x64xf16, #shared>>, %v: !tt.tensordesc<tensor<64x64xf16, #shared>>, %n: i32, %tiles: i32) -> tensor<128x64xf32, #mma> {
    %c0 = arith.constant 0 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.000000e+00> : tensor<128x64xf32, #mma>
    %c1 = arith.constant 1 : i32
    %q = ttg.local_alloc %queries : (tensor<128x64xf16, #blocked>) -> !ttg.memdesc<128x64xf16, #shared, #smem>
    %r = scf.for %t = %c0 to %tiles step %c1 iter_args(%sum = %zero) -> (tensor<128x64xf32, #mma>)  : i32 {
    ttng.fence_async_shared
    %inner = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<128x64xf32, #mma>)  : i32 {
      %lk = tt.descriptor_load %k[%i, %c0] : !tt.tensordesc<tensor<64x64xf16, #shared>> -> tensor<64x64xf16, #blocked>
      %sk = ttg.local_alloc %lk : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
      %tk = ttg.memdesc_trans %sk {order = array<i32: 1, 0>} : !ttg.memdesc<64x64xf16, #shared, #smem> -> !ttg.memdesc<64x64xf16, #shared1, #smem>
      %s = ttng.warp_group_dot %q, %tk, %zero {inputPrecision = 0 : i32} : !ttg.memdesc<128x64xf16, #shared, #smem> * !ttg.memdesc<64x64xf16, #shared1, #smem> -> tensor<128x64xf32, #mma>
      %p = math.exp2 %s : tensor<128x64xf32, #mma>
      %scaled = arith.mulf %acc, %p : tensor<128x64xf32, #mma>
      %h = arith.truncf %p : tensor<128x64xf32, #mma> to tensor<128x64xf16, #mma>
      %a = ttg.convert_layout %h : tensor<128x64xf16, #mma> -> tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
      %lv = tt.descriptor_load %v[%i, %c0] : !tt.tensordesc<tensor<64x64xf16, #shared>> -> tensor<64x64xf16, #blocked>
      %sv = ttg.local_alloc %lv : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
      %d = ttng.warp_group_dot %a, %sv, %scaled {inputPrecision = 0 : i32} : tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<128x64xf32, #mma>
      scf.yield %d : tensor<128x64xf32, #mma>
    }
    scf.yield %inner : tensor<128x64xf32, #mma>
    } {tt.warp_specialize}
    tt.return %r : tensor<128x64xf32, #mma>
  }
}
// CHECK: default
// CHECK-NEXT: ttng.arrive_order_barrier {begins = true}
// CHECK-NEXT: ttg.local_alloc
// CHECK: scf.for
// CHECK: ttg.barrier
// CHECK-NEXT: ttng.wait_order_barrier
// CHECK-NEXT: scf.for
// CHECK: ttng.warp_group_dot
// CHECK-NEXT: ttng.arrive_order_barrier
// -----
// Nothing to do between products: nobody waits for a turn.
// RUN: -warp-specialize -async-dots -lower-rings -pingpong -num-stages=3
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
// CHECK-NOT: turn
// CHECK: ttg.warp_return
