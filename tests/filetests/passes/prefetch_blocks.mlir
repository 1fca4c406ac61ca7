// ML-Triton's product, 32 warps, three stages: blocks of two iterations ahead. Each warp brings a part of its own, not what it loads.
// RUN: -target=xe:pvc -num-warps=32 -num-stages=3 -assign-layouts -prefetch-blocks -distribute-to-warps

tt.func public @matmul(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %b: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %c: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %M: i32, %N: i32, %K: i32, %sa: i64, %sb: i64) {
  %zero = arith.constant dense<0.000000e+00> : tensor<256x256xf32>
  %one = arith.constant 1 : i64
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %c256 = arith.constant 256 : i32
  %x = tt.get_program_id x : i32
  %rows = arith.muli %x, %c256 : i32
  %y = tt.get_program_id y : i32
  %columns = arith.muli %y, %c256 : i32
  %da = tt.make_tensor_descriptor %a, [%M, %K], [%sa, %one] : <f16>, <tensor<256x32xf16>>
  %db = tt.make_tensor_descriptor %b, [%K, %N], [%sb, %one] : <f16>, <tensor<32x256xf16>>
  %dc = tt.make_tensor_descriptor %c, [%M, %N], [%sb, %one] : <f32>, <tensor<256x256xf32>>
  %sum = scf.for %k = %c0 to %K step %c32 iter_args(%acc = %zero) -> (tensor<256x256xf32>) : i32 {
    %va = tt.descriptor_load %da[%rows, %k] : !tt.tensordesc<tensor<256x32xf16>> -> tensor<256x32xf16>
    %vb = tt.descriptor_load %db[%k, %columns] : !tt.tensordesc<tensor<32x256xf16>> -> tensor<32x256xf16>
    %next = tt.dot %va, %vb, %acc : tensor<256x32xf16> * tensor<32x256xf16> -> tensor<256x256xf32>
    scf.yield %next : tensor<256x256xf32>
  }
  tt.descriptor_store %dc[%rows, %columns], %sum : !tt.tensordesc<tensor<256x256xf32>>, tensor<256x256xf32>
  tt.return
}

// OUTPUT
// #blocked = #ttg.blocked<{sizePerWarp = [32, 64], warpsPerCTA = [8, 4], order = [1, 0]}>
// module attributes {ttg.level = "warp", "ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 32 : i32, ttg.target = "xe:pvc", "ttg.threads-per-warp" = 16 : i32} {
//   tt.func public @matmul(%arg0: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %arg1: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %arg2: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %arg3: i32, %arg4: i32, %arg5: i32, %arg6: i64, %arg7: i64) {
//     %c0_i32 = arith.constant 0 : i32
//     %c31_i32 = arith.constant 31 : i32
//     %c8_i32 = arith.constant 8 : i32
//     %c3_i32 = arith.constant 3 : i32
//     %c7_i32 = arith.constant 7 : i32
//     %c32_i32 = arith.constant 32 : i32
//     %c2_i32 = arith.constant 2 : i32
//     %c64_i32 = arith.constant 64 : i32
//     %cst = arith.constant dense<0.000000e+00> : tensor<32x64xf32, #blocked>
//     %c1_i64 = arith.constant 1 : i64
//     %c256_i32 = arith.constant 256 : i32
//     %0 = gpu.subgroup_id : index
//     %1 = arith.index_cast %0 : index to i32
//     %2 = arith.andi %1, %c31_i32 : i32
//     %3 = arith.muli %2, %c8_i32 : i32
//     %4 = arith.shrui %1, %c3_i32 : i32
//     %5 = arith.andi %4, %c3_i32 : i32
//     %6 = arith.muli %5, %c8_i32 : i32
//     %7 = arith.andi %1, %c7_i32 : i32
//     %8 = arith.muli %7, %c32_i32 : i32
//     %9 = arith.shrui %1, %c2_i32 : i32
//     %10 = arith.andi %9, %c7_i32 : i32
//     %11 = arith.muli %10, %c32_i32 : i32
//     %12 = arith.andi %1, %c3_i32 : i32
//     %13 = arith.muli %12, %c64_i32 : i32
//     %14 = tt.get_program_id x : i32
//     %15 = arith.muli %14, %c256_i32 : i32
//     %16 = tt.get_program_id y : i32
//     %17 = arith.muli %16, %c256_i32 : i32
//     %18 = tt.make_tensor_descriptor %arg0, [%arg3, %arg5], [%arg6, %c1_i64] : <f16>, <tensor<32x32xf16>>
//     %19 = tt.make_tensor_descriptor %arg0, [%arg3, %arg5], [%arg6, %c1_i64] : <f16>, <tensor<8x32xf16>>
//     %20 = tt.make_tensor_descriptor %arg1, [%arg5, %arg4], [%arg7, %c1_i64] : <f16>, <tensor<32x64xf16>>
//     %21 = tt.make_tensor_descriptor %arg1, [%arg5, %arg4], [%arg7, %c1_i64] : <f16>, <tensor<8x32xf16>>
//     %22 = tt.make_tensor_descriptor %arg2, [%arg3, %arg4], [%arg7, %c1_i64] : <f32>, <tensor<32x64xf32>>
//     %23 = arith.addi %15, %3 : i32
//     tt.descriptor_prefetch %19[%23, %c0_i32] : !tt.tensordesc<tensor<8x32xf16>>
//     tt.descriptor_prefetch %19[%23, %c32_i32] : !tt.tensordesc<tensor<8x32xf16>>
//     %24 = arith.addi %17, %8 : i32
//     tt.descriptor_prefetch %21[%6, %24] : !tt.tensordesc<tensor<8x32xf16>>
//     %25 = arith.addi %6, %c32_i32 : i32
//     tt.descriptor_prefetch %21[%25, %24] : !tt.tensordesc<tensor<8x32xf16>>
//     %26 = arith.addi %15, %11 : i32
//     %27 = arith.addi %17, %13 : i32
//     %28 = scf.for %arg8 = %c0_i32 to %arg5 step %c32_i32 iter_args(%arg9 = %cst) -> (tensor<32x64xf32, #blocked>)  : i32 {
//       %29 = arith.addi %arg8, %c64_i32 : i32
//       tt.descriptor_prefetch %19[%23, %29] : !tt.tensordesc<tensor<8x32xf16>>
//       %30 = tt.descriptor_load %18[%26, %arg8] : !tt.tensordesc<tensor<32x32xf16>> -> tensor<32x32xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
//       %31 = arith.addi %29, %6 : i32
//       tt.descriptor_prefetch %21[%31, %24] : !tt.tensordesc<tensor<8x32xf16>>
//       %32 = tt.descriptor_load %20[%arg8, %27] : !tt.tensordesc<tensor<32x64xf16>> -> tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>>
//       %33 = tt.dot %30, %32, %arg9 : tensor<32x32xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> * tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<32x64xf32, #blocked>
//       scf.yield %33 : tensor<32x64xf32, #blocked>
//     } {ttg.shared_prefetches}
//     tt.descriptor_store %22[%26, %27], %28 : !tt.tensordesc<tensor<32x64xf32>>, tensor<32x64xf32, #blocked>
//     tt.return
//   }
// }
// -----
// An index that a loop carries; the loop's own number of stages. What one message takes.
// RUN: -target=xe:pvc -num-warps=4 -num-stages=1 -assign-layouts -prefetch-blocks -distribute-to-warps -match-target-size

tt.func public @carried(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %b: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %c: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %K: i32, %from: i32, %sa: i64) {
  %zero = arith.constant dense<0.000000e+00> : tensor<32x64xf32>
  %one = arith.constant 1 : i64
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c16 = arith.constant 16 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %da = tt.make_tensor_descriptor %a, [%c32, %K], [%sa, %one] : <f16>, <tensor<32x64xf16>>
  %db = tt.make_tensor_descriptor %b, [%K, %c64], [%sa, %one] : <f16>, <tensor<64x64xf16>>
  %dc = tt.make_tensor_descriptor %c, [%c32, %c64], [%sa, %one] : <f32>, <tensor<32x64xf32>>
  %vb = tt.descriptor_load %db[%c0, %c0] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
  %sum:2 = scf.for %k = %c0 to %K step %c1 iter_args(%acc = %zero, %at = %from) -> (tensor<32x64xf32>, i32) : i32 {
    %va = tt.descriptor_load %da[%c0, %at] : !tt.tensordesc<tensor<32x64xf16>> -> tensor<32x64xf16>
    %next = tt.dot %va, %vb, %acc : tensor<32x64xf16> * tensor<64x64xf16> -> tensor<32x64xf32>
    %then = arith.addi %at, %c64 : i32
    scf.yield %next, %then : tensor<32x64xf32>, i32
  } {tt.num_stages = 2 : i32}
  tt.descriptor_store %dc[%c0, %c0], %sum#0 : !tt.tensordesc<tensor<32x64xf32>>, tensor<32x64xf32>
  tt.return
}

// OUTPUT
// module attributes {ttg.level = "intrinsic", "ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "xe:pvc", "ttg.threads-per-warp" = 16 : i32} {
//   tt.func public @carried(%arg0: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %arg1: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %arg2: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %arg3: i32, %arg4: i32, %arg5: i64) {
//     %c0_i32 = arith.constant 0 : i32
//     %c1_i32 = arith.constant 1 : i32
//     %c32_i32 = arith.constant 32 : i32
//     %c16_i32 = arith.constant 16 : i32
//     %cst = arith.constant dense<0.000000e+00> : tensor<8x16xf32>
//     %c1_i64 = arith.constant 1 : i64
//     %c64_i32 = arith.constant 64 : i32
//     %c8_i32 = arith.constant 8 : i32
//     %0 = gpu.subgroup_id : index
//     %1 = arith.index_cast %0 : index to i32
//     %2 = arith.andi %1, %c1_i32 : i32
//     %3 = arith.muli %2, %c32_i32 : i32
//     %4 = arith.shrui %1, %c1_i32 : i32
//     %5 = arith.andi %4, %c1_i32 : i32
//     %6 = arith.muli %5, %c16_i32 : i32
//     %7 = tt.make_tensor_descriptor %arg0, [%c32_i32, %arg3], [%arg5, %c1_i64] : <f16>, <tensor<16x32xf16>>
//     %8 = tt.make_tensor_descriptor %arg1, [%arg3, %c64_i32], [%arg5, %c1_i64] : <f16>, <tensor<32x32xf16>>
//     %9 = tt.make_tensor_descriptor %arg2, [%c32_i32, %c64_i32], [%arg5, %c1_i64] : <f32>, <tensor<8x16xf32>>
//     %10 = tt.descriptor_load %8[%c0_i32, %3] : !tt.tensordesc<tensor<32x32xf16>> -> tensor<32x32xf16>
//     %11 = tt.extract %10[0] : tensor<32x32xf16> -> tensor<16x16xf16>
//     %12 = tt.extract %10[1] : tensor<32x32xf16> -> tensor<16x16xf16>
//     %13 = tt.extract %10[2] : tensor<32x32xf16> -> tensor<16x16xf16>
//     %14 = tt.extract %10[3] : tensor<32x32xf16> -> tensor<16x16xf16>
//     %15 = tt.descriptor_load %8[%c32_i32, %3] : !tt.tensordesc<tensor<32x32xf16>> -> tensor<32x32xf16>
//     %16 = tt.extract %15[0] : tensor<32x32xf16> -> tensor<16x16xf16>
//     %17 = tt.extract %15[1] : tensor<32x32xf16> -> tensor<16x16xf16>
//     %18 = tt.extract %15[2] : tensor<32x32xf16> -> tensor<16x16xf16>
//     %19 = tt.extract %15[3] : tensor<32x32xf16> -> tensor<16x16xf16>
//     %20 = arith.addi %arg4, %3 : i32
//     tt.descriptor_prefetch %7[%6, %20] : !tt.tensordesc<tensor<16x32xf16>>
//     %21:5 = scf.for %arg6 = %c0_i32 to %arg3 step %c1_i32 iter_args(%arg7 = %cst, %arg8 = %cst, %arg9 = %cst, %arg10 = %cst, %arg11 = %arg4) -> (tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, i32)  : i32 {
//       %24 = arith.addi %arg11, %c64_i32 : i32
//       %25 = arith.addi %24, %3 : i32
//       tt.descriptor_prefetch %7[%6, %25] : !tt.tensordesc<tensor<16x32xf16>>
//       %26 = tt.descriptor_load %7[%6, %arg11] : !tt.tensordesc<tensor<16x32xf16>> -> tensor<16x32xf16>
//       %27 = tt.extract %26[0] : tensor<16x32xf16> -> tensor<8x16xf16>
//       %28 = tt.extract %26[1] : tensor<16x32xf16> -> tensor<8x16xf16>
//       %29 = tt.extract %26[2] : tensor<16x32xf16> -> tensor<8x16xf16>
//       %30 = tt.extract %26[3] : tensor<16x32xf16> -> tensor<8x16xf16>
//       %31 = arith.addi %arg11, %c32_i32 : i32
//       %32 = tt.descriptor_load %7[%6, %31] : !tt.tensordesc<tensor<16x32xf16>> -> tensor<16x32xf16>
//       %33 = tt.extract %32[0] : tensor<16x32xf16> -> tensor<8x16xf16>
//       %34 = tt.extract %32[1] : tensor<16x32xf16> -> tensor<8x16xf16>
//       %35 = tt.extract %32[2] : tensor<16x32xf16> -> tensor<8x16xf16>
//       %36 = tt.extract %32[3] : tensor<16x32xf16> -> tensor<8x16xf16>
//       %37 = tt.dot %27, %11, %arg7 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %38 = tt.dot %28, %13, %37 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %39 = tt.dot %33, %16, %38 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %40 = tt.dot %34, %18, %39 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %41 = tt.dot %27, %12, %arg8 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %42 = tt.dot %28, %14, %41 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %43 = tt.dot %33, %17, %42 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %44 = tt.dot %34, %19, %43 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %45 = tt.dot %29, %11, %arg9 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %46 = tt.dot %30, %13, %45 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %47 = tt.dot %35, %16, %46 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %48 = tt.dot %36, %18, %47 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %49 = tt.dot %29, %12, %arg10 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %50 = tt.dot %30, %14, %49 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %51 = tt.dot %35, %17, %50 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %52 = tt.dot %36, %19, %51 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       scf.yield %40, %44, %48, %52, %24 : tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, i32
//     } {tt.num_stages = 2 : i32, ttg.shared_prefetches}
//     tt.descriptor_store %9[%6, %3], %21#0 : !tt.tensordesc<tensor<8x16xf32>>, tensor<8x16xf32>
//     %22 = arith.addi %3, %c16_i32 : i32
//     tt.descriptor_store %9[%6, %22], %21#1 : !tt.tensordesc<tensor<8x16xf32>>, tensor<8x16xf32>
//     %23 = arith.addi %6, %c8_i32 : i32
//     tt.descriptor_store %9[%23, %3], %21#2 : !tt.tensordesc<tensor<8x16xf32>>, tensor<8x16xf32>
//     tt.descriptor_store %9[%23, %22], %21#3 : !tt.tensordesc<tensor<8x16xf32>>, tensor<8x16xf32>
//     tt.return
//   }
// }
