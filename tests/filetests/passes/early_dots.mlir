// A dot whose operands lie in shared memory needs not wait for the arithmetic before it (the products of attention's backward
// pass): it is issued behind the first, and waited for where it is used.
// RUN: -software-pipeline -async-dots
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [8, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%k: !ttg.memdesc<128x64xf16, #shared, #smem>, %q: !ttg.memdesc<64x64xf16, #shared, #smem>, %o: !ttg.memdesc<64x64xf16, #shared, #smem>, %z: tensor<128x64xf32, #mma>, %n: i32) -> tensor<128x64xf32, #mma> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%dv = %z, %sum = %z) -> (tensor<128x64xf32, #mma>, tensor<128x64xf32, #mma>) : i32 {
      %s = ttng.warp_group_dot %k, %q, %z {inputPrecision = 0 : i32} : !ttg.memdesc<128x64xf16, #shared, #smem> * !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<128x64xf32, #mma>
      %p = math.exp2 %s : tensor<128x64xf32, #mma>
      %h = arith.truncf %p : tensor<128x64xf32, #mma> to tensor<128x64xf16, #mma>
      %a = ttg.convert_layout %h : tensor<128x64xf16, #mma> -> tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
      %d = ttng.warp_group_dot %a, %o, %dv {inputPrecision = 0 : i32} : tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<128x64xf32, #mma>
      %g = ttng.warp_group_dot %k, %o, %z {inputPrecision = 0 : i32} : !ttg.memdesc<128x64xf16, #shared, #smem> * !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<128x64xf32, #mma>
      %e = arith.mulf %g, %p : tensor<128x64xf32, #mma>
      %t = arith.addf %sum, %e : tensor<128x64xf32, #mma>
      scf.yield %d, %t : tensor<128x64xf32, #mma>, tensor<128x64xf32, #mma>
    }
    tt.return %r#1 : tensor<128x64xf32, #mma>
  }
}
// CHECK: scf.for
// CHECK: [[S:%.*]] = ttng.warp_group_dot %arg0, %arg1
// CHECK-NEXT: [[G:%.*]] = ttng.warp_group_dot %arg0, %arg2
// CHECK: ttng.warp_group_dot_wait [[S]]{{.*}}pendings = 1
// CHECK: math.exp2
// CHECK: [[D:%.*]] = ttng.warp_group_dot {{.*}}, %arg2, %arg6
// CHECK: ttng.warp_group_dot_wait [[G]]{{.*}}pendings = 1
// CHECK: arith.mulf
// -----
// Of CTAs so small that four share a multiprocessor the others have work for the tensor cores: all stays in place.
// RUN: -software-pipeline -async-dots
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%k: !ttg.memdesc<64x64xf16, #shared, #smem>, %q: !ttg.memdesc<64x64xf16, #shared, #smem>, %o: !ttg.memdesc<64x64xf16, #shared, #smem>, %z: tensor<64x64xf32, #mma>, %n: i32) -> tensor<64x64xf32, #mma> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%dv = %z, %sum = %z) -> (tensor<64x64xf32, #mma>, tensor<64x64xf32, #mma>) : i32 {
      %s = ttng.warp_group_dot %k, %q, %z {inputPrecision = 0 : i32} : !ttg.memdesc<64x64xf16, #shared, #smem> * !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<64x64xf32, #mma>
      %p = math.exp2 %s : tensor<64x64xf32, #mma>
      %h = arith.truncf %p : tensor<64x64xf32, #mma> to tensor<64x64xf16, #mma>
      %a = ttg.convert_layout %h : tensor<64x64xf16, #mma> -> tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
      %d = ttng.warp_group_dot %a, %o, %dv {inputPrecision = 0 : i32} : tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<64x64xf32, #mma>
      %g = ttng.warp_group_dot %k, %o, %z {inputPrecision = 0 : i32} : !ttg.memdesc<64x64xf16, #shared, #smem> * !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<64x64xf32, #mma>
      %e = arith.mulf %g, %p : tensor<64x64xf32, #mma>
      %t = arith.addf %sum, %e : tensor<64x64xf32, #mma>
      scf.yield %d, %t : tensor<64x64xf32, #mma>, tensor<64x64xf32, #mma>
    }
    tt.return %r#1 : tensor<64x64xf32, #mma>
  }
}
// CHECK: scf.for
// CHECK: ttng.warp_group_dot %arg0, %arg1
// CHECK: ttng.warp_group_dot {{.*}}, %arg2, %arg6
// CHECK: ttng.warp_group_dot %arg0, %arg2
