// With two warp groups the tensor cores have work for longer than a group takes for an iteration, but not by much: the second product
// runs with the next iteration's first. Its slot is waited for and released with it. What scales its result,
// and the conversion of the next left operand, stand behind the wait for it.
// RUN: -warp-specialize -software-pipeline -async-dots -lower-rings -num-stages=2
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [8, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [8, 1], instrShape = [16, 64, 16]}>
#mma1 = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [8, 1], instrShape = [16, 128, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#shared1 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @attend(%q: !ttg.memdesc<128x128xf16, #shared, #smem>, %k: !tt.tensordesc<tensor<64x128xf16, #shared>>, %v: !tt.tensordesc<tensor<64x128xf16, #shared>>, %n: i32) -> tensor<128x128xf32, #mma1> {
    %c0 = arith.constant 0 : i32
    %c64 = arith.constant 64 : i32
    %none = arith.constant dense<0.000000e+00> : tensor<128x64xf32, #mma>
    %zero = arith.constant dense<0.000000e+00> : tensor<128x128xf32, #mma1>
    %r = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<128x128xf32, #mma1>)  : i32 {
      %lk = tt.descriptor_load %k[%i, %c0] : !tt.tensordesc<tensor<64x128xf16, #shared>> -> tensor<64x128xf16, #blocked>
      %sk = ttg.local_alloc %lk : (tensor<64x128xf16, #blocked>) -> !ttg.memdesc<64x128xf16, #shared, #smem>
      %tk = ttg.memdesc_trans %sk {order = array<i32: 1, 0>} : !ttg.memdesc<64x128xf16, #shared, #smem> -> !ttg.memdesc<128x64xf16, #shared1, #smem>
      %s = ttng.warp_group_dot %q, %tk, %none {inputPrecision = 0 : i32} : !ttg.memdesc<128x128xf16, #shared, #smem> * !ttg.memdesc<128x64xf16, #shared1, #smem> -> tensor<128x64xf32, #mma>
      %e = math.exp2 %s : tensor<128x64xf32, #mma>
      %f = arith.mulf %e, %e : tensor<128x64xf32, #mma>
      %p = arith.mulf %f, %e : tensor<128x64xf32, #mma>
      %scaled = arith.mulf %acc, %acc : tensor<128x128xf32, #mma1>
      %h = arith.truncf %p : tensor<128x64xf32, #mma> to tensor<128x64xf16, #mma>
      %a = ttg.convert_layout %h : tensor<128x64xf16, #mma> -> tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma1, kWidth = 2}>>
      %lv = tt.descriptor_load %v[%i, %c0] : !tt.tensordesc<tensor<64x128xf16, #shared>> -> tensor<64x128xf16, #blocked>
      %sv = ttg.local_alloc %lv : (tensor<64x128xf16, #blocked>) -> !ttg.memdesc<64x128xf16, #shared, #smem>
      %d = ttng.warp_group_dot %a, %sv, %scaled {inputPrecision = 0 : i32} : tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma1, kWidth = 2}>> * !ttg.memdesc<64x128xf16, #shared, #smem> -> tensor<128x128xf32, #mma1>
      scf.yield %d : tensor<128x128xf32, #mma1>
    } {tt.warp_specialize}
    tt.return %r : tensor<128x128xf32, #mma1>
  }
}
// CHECK: scf.if
// CHECK: ttng.warp_group_dot %arg0, 
// CHECK: math.exp2
// CHECK: scf.for {{.*}}iter_args([[ACC:%.*]] =
// CHECK: ttng.wait_barrier
// CHECK-NEXT: [[S:%.*]] = ttng.warp_group_dot %arg0, 
// CHECK: ttng.wait_barrier
// CHECK-NEXT: [[D:%.*]] = ttng.warp_group_dot {{.*}}, [[ACC]] {
// CHECK: ttng.warp_group_dot_wait [[S]]{{.*}}pendings = 1
// CHECK: ttng.arrive_barrier
// CHECK: math.exp2
// CHECK: ttng.warp_group_dot_wait [[D]]{{.*}}pendings = 0
// CHECK: ttng.arrive_barrier
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: arith.truncf
// CHECK-NEXT: ttg.convert_layout
// CHECK-NEXT: scf.yield
// CHECK: ttng.warp_group_dot {{.*}}#ttg.dot_op
// CHECK: ttng.arrive_barrier
// CHECK: scf.yield
// -----
// One iteration at most: the blocks of keys on the diagonal, as many as there are queries. No loop is left behind the first one.
// RUN: -warp-specialize -software-pipeline -async-dots -lower-rings -num-stages=2
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [8, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [8, 1], instrShape = [16, 64, 16]}>
#mma1 = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [8, 1], instrShape = [16, 128, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#shared1 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @diagonal(%q: !ttg.memdesc<128x128xf16, #shared, #smem>, %k: !tt.tensordesc<tensor<64x128xf16, #shared>>, %v: !tt.tensordesc<tensor<64x128xf16, #shared>>, %n: i32, %block: i32) -> tensor<128x128xf32, #mma1> {
    %c0 = arith.constant 0 : i32
    %c64 = arith.constant 64 : i32
    %none = arith.constant dense<0.000000e+00> : tensor<128x64xf32, #mma>
    %zero = arith.constant dense<0.000000e+00> : tensor<128x128xf32, #mma1>
    %first = arith.muli %block, %c64 : i32
    %behind = arith.addi %first, %c64 : i32
    %end = arith.minsi %behind, %n : i32
    %r = scf.for %i = %first to %end step %c64 iter_args(%acc = %zero) -> (tensor<128x128xf32, #mma1>)  : i32 {
      %lk = tt.descriptor_load %k[%i, %c0] : !tt.tensordesc<tensor<64x128xf16, #shared>> -> tensor<64x128xf16, #blocked>
      %sk = ttg.local_alloc %lk : (tensor<64x128xf16, #blocked>) -> !ttg.memdesc<64x128xf16, #shared, #smem>
      %tk = ttg.memdesc_trans %sk {order = array<i32: 1, 0>} : !ttg.memdesc<64x128xf16, #shared, #smem> -> !ttg.memdesc<128x64xf16, #shared1, #smem>
      %s = ttng.warp_group_dot %q, %tk, %none {inputPrecision = 0 : i32} : !ttg.memdesc<128x128xf16, #shared, #smem> * !ttg.memdesc<128x64xf16, #shared1, #smem> -> tensor<128x64xf32, #mma>
      %e = math.exp2 %s : tensor<128x64xf32, #mma>
      %f = arith.mulf %e, %e : tensor<128x64xf32, #mma>
      %p = arith.mulf %f, %e : tensor<128x64xf32, #mma>
      %scaled = arith.mulf %acc, %acc : tensor<128x128xf32, #mma1>
      %h = arith.truncf %p : tensor<128x64xf32, #mma> to tensor<128x64xf16, #mma>
      %a = ttg.convert_layout %h : tensor<128x64xf16, #mma> -> tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma1, kWidth = 2}>>
      %lv = tt.descriptor_load %v[%i, %c0] : !tt.tensordesc<tensor<64x128xf16, #shared>> -> tensor<64x128xf16, #blocked>
      %sv = ttg.local_alloc %lv : (tensor<64x128xf16, #blocked>) -> !ttg.memdesc<64x128xf16, #shared, #smem>
      %d = ttng.warp_group_dot %a, %sv, %scaled {inputPrecision = 0 : i32} : tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma1, kWidth = 2}>> * !ttg.memdesc<64x128xf16, #shared, #smem> -> tensor<128x128xf32, #mma1>
      scf.yield %d : tensor<128x128xf32, #mma1>
    } {tt.warp_specialize}
    tt.return %r : tensor<128x128xf32, #mma1>
  }
}
// CHECK: scf.if
// CHECK: ttng.warp_group_dot %arg0, 
// CHECK: math.exp2
// CHECK-NOT: scf.for
// CHECK-NOT: math.exp2
// CHECK: ttng.warp_group_dot {{.*}}#ttg.dot_op
// CHECK: scf.yield
// -----
// The same of what whole blocks of keys leave.
// RUN: -warp-specialize -software-pipeline -async-dots -lower-rings -num-stages=2
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [8, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [8, 1], instrShape = [16, 64, 16]}>
#mma1 = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [8, 1], instrShape = [16, 128, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#shared1 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @rest(%q: !ttg.memdesc<128x128xf16, #shared, #smem>, %k: !tt.tensordesc<tensor<64x128xf16, #shared>>, %v: !tt.tensordesc<tensor<64x128xf16, #shared>>, %n: i32) -> tensor<128x128xf32, #mma1> {
    %c0 = arith.constant 0 : i32
    %c64 = arith.constant 64 : i32
    %none = arith.constant dense<0.000000e+00> : tensor<128x64xf32, #mma>
    %zero = arith.constant dense<0.000000e+00> : tensor<128x128xf32, #mma1>
    %blocks = arith.divsi %n, %c64 : i32
    %first = arith.muli %blocks, %c64 : i32
    %r = scf.for %i = %first to %n step %c64 iter_args(%acc = %zero) -> (tensor<128x128xf32, #mma1>)  : i32 {
      %lk = tt.descriptor_load %k[%i, %c0] : !tt.tensordesc<tensor<64x128xf16, #shared>> -> tensor<64x128xf16, #blocked>
      %sk = ttg.local_alloc %lk : (tensor<64x128xf16, #blocked>) -> !ttg.memdesc<64x128xf16, #shared, #smem>
      %tk = ttg.memdesc_trans %sk {order = array<i32: 1, 0>} : !ttg.memdesc<64x128xf16, #shared, #smem> -> !ttg.memdesc<128x64xf16, #shared1, #smem>
      %s = ttng.warp_group_dot %q, %tk, %none {inputPrecision = 0 : i32} : !ttg.memdesc<128x128xf16, #shared, #smem> * !ttg.memdesc<128x64xf16, #shared1, #smem> -> tensor<128x64xf32, #mma>
      %e = math.exp2 %s : tensor<128x64xf32, #mma>
      %f = arith.mulf %e, %e : tensor<128x64xf32, #mma>
      %p = arith.mulf %f, %e : tensor<128x64xf32, #mma>
      %scaled = arith.mulf %acc, %acc : tensor<128x128xf32, #mma1>
      %h = arith.truncf %p : tensor<128x64xf32, #mma> to tensor<128x64xf16, #mma>
      %a = ttg.convert_layout %h : tensor<128x64xf16, #mma> -> tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma1, kWidth = 2}>>
      %lv = tt.descriptor_load %v[%i, %c0] : !tt.tensordesc<tensor<64x128xf16, #shared>> -> tensor<64x128xf16, #blocked>
      %sv = ttg.local_alloc %lv : (tensor<64x128xf16, #blocked>) -> !ttg.memdesc<64x128xf16, #shared, #smem>
      %d = ttng.warp_group_dot %a, %sv, %scaled {inputPrecision = 0 : i32} : tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma1, kWidth = 2}>> * !ttg.memdesc<64x128xf16, #shared, #smem> -> tensor<128x128xf32, #mma1>
      scf.yield %d : tensor<128x128xf32, #mma1>
    } {tt.warp_specialize}
    tt.return %r : tensor<128x128xf32, #mma1>
  }
}
// CHECK: scf.if
// CHECK: ttng.warp_group_dot %arg0, 
// CHECK: math.exp2
// CHECK-NOT: scf.for
// CHECK-NOT: math.exp2
// CHECK: ttng.warp_group_dot {{.*}}#ttg.dot_op
// CHECK: scf.yield
