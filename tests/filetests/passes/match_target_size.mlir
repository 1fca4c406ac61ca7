// RUN: -target=xe:pvc -num-warps=32 -assign-layouts -distribute-to-warps -match-target-size
// ML-Triton, Listing 4: 32 dots of 8x16x16, one load of A, two of B, and no more.

module {
  tt.func public @matmul(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %b: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %c: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %M: i32 {tt.divisibility = 16 : i32}, %N: i32 {tt.divisibility = 16 : i32}, %K: i32 {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %c256_i32 = arith.constant 256 : i32
    %c1_i64 = arith.constant 1 : i64
    %cst = arith.constant dense<0.000000e+00> : tensor<256x256xf32>
    %c0_i32 = arith.constant 0 : i32
    %c32_i32 = arith.constant 32 : i32
    %0 = tt.get_program_id x : i32
    %rows = arith.muli %0, %c256_i32 : i32
    %1 = tt.get_program_id y : i32
    %columns = arith.muli %1, %c256_i32 : i32
    %a_blocks = arith.extsi %K : i32 to i64
    %a_blocks_0 = tt.make_tensor_descriptor %a, [%M, %K], [%a_blocks, %c1_i64] : <f16>, <tensor<256x32xf16>>
    %b_blocks = arith.extsi %N : i32 to i64
    %b_blocks_1 = tt.make_tensor_descriptor %b, [%K, %N], [%b_blocks, %c1_i64] : <f16>, <tensor<32x256xf16>>
    %c_blocks = tt.make_tensor_descriptor %c, [%M, %N], [%b_blocks, %c1_i64] : <f32>, <tensor<256x256xf32>>
    %accumulator = scf.for %k = %c0_i32 to %K step %c32_i32 iter_args(%accumulator_2 = %cst) -> (tensor<256x256xf32>) : i32 {
      %2 = tt.descriptor_load %a_blocks_0[%rows, %k] : !tt.tensordesc<tensor<256x32xf16>> -> tensor<256x32xf16>
      %3 = tt.descriptor_load %b_blocks_1[%k, %columns] : !tt.tensordesc<tensor<32x256xf16>> -> tensor<32x256xf16>
      %accumulator_3 = tt.dot %2, %3, %accumulator_2, inputPrecision = tf32 : tensor<256x32xf16> * tensor<32x256xf16> -> tensor<256x256xf32>
      scf.yield %accumulator_3 : tensor<256x256xf32>
    }
    tt.descriptor_store %c_blocks[%rows, %columns], %accumulator : !tt.tensordesc<tensor<256x256xf32>>, tensor<256x256xf32>
    tt.return
  }
}

// OUTPUT
// module attributes {ttg.level = "intrinsic", "ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 32 : i32, ttg.target = "xe:pvc", "ttg.threads-per-warp" = 16 : i32} {
//   tt.func public @matmul(%arg0: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %arg1: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %arg2: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %arg3: i32 {tt.divisibility = 16 : i32}, %arg4: i32 {tt.divisibility = 16 : i32}, %arg5: i32 {tt.divisibility = 16 : i32}) attributes {noinline = false} {
//     %c2_i32 = arith.constant 2 : i32
//     %c7_i32 = arith.constant 7 : i32
//     %c32_i32 = arith.constant 32 : i32
//     %c0_i32 = arith.constant 0 : i32
//     %c3_i32 = arith.constant 3 : i32
//     %c64_i32 = arith.constant 64 : i32
//     %c256_i32 = arith.constant 256 : i32
//     %c1_i64 = arith.constant 1 : i64
//     %cst = arith.constant dense<0.000000e+00> : tensor<8x16xf32>
//     %c16_i32 = arith.constant 16 : i32
//     %c48_i32 = arith.constant 48 : i32
//     %c8_i32 = arith.constant 8 : i32
//     %c24_i32 = arith.constant 24 : i32
//     %0 = gpu.subgroup_id : index
//     %1 = arith.index_cast %0 : index to i32
//     %2 = arith.shrui %1, %c2_i32 : i32
//     %3 = arith.andi %2, %c7_i32 : i32
//     %4 = arith.muli %3, %c32_i32 : i32
//     %5 = arith.andi %1, %c3_i32 : i32
//     %6 = arith.muli %5, %c64_i32 : i32
//     %7 = tt.get_program_id x : i32
//     %8 = arith.muli %7, %c256_i32 : i32
//     %9 = tt.get_program_id y : i32
//     %10 = arith.muli %9, %c256_i32 : i32
//     %11 = arith.extsi %arg5 : i32 to i64
//     %12 = tt.make_tensor_descriptor %arg0, [%arg3, %arg5], [%11, %c1_i64] : <f16>, <tensor<32x32xf16>>
//     %13 = arith.extsi %arg4 : i32 to i64
//     %14 = tt.make_tensor_descriptor %arg1, [%arg5, %arg4], [%13, %c1_i64] : <f16>, <tensor<32x32xf16>>
//     %15 = tt.make_tensor_descriptor %arg2, [%arg3, %arg4], [%13, %c1_i64] : <f32>, <tensor<8x16xf32>>
//     %16 = arith.addi %8, %4 : i32
//     %17 = arith.addi %10, %6 : i32
//     %18 = arith.addi %17, %c32_i32 : i32
//     %19:16 = scf.for %arg6 = %c0_i32 to %arg5 step %c32_i32 iter_args(%arg7 = %cst, %arg8 = %cst, %arg9 = %cst, %arg10 = %cst, %arg11 = %cst, %arg12 = %cst, %arg13 = %cst, %arg14 = %cst, %arg15 = %cst, %arg16 = %cst, %arg17 = %cst, %arg18 = %cst, %arg19 = %cst, %arg20 = %cst, %arg21 = %cst, %arg22 = %cst) -> (tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>)  : i32 {
//       %25 = tt.descriptor_load %12[%16, %arg6] : !tt.tensordesc<tensor<32x32xf16>> -> tensor<32x32xf16>
//       %26 = tt.extract %25[0] : tensor<32x32xf16> -> tensor<8x16xf16>
//       %27 = tt.extract %25[1] : tensor<32x32xf16> -> tensor<8x16xf16>
//       %28 = tt.extract %25[2] : tensor<32x32xf16> -> tensor<8x16xf16>
//       %29 = tt.extract %25[3] : tensor<32x32xf16> -> tensor<8x16xf16>
//       %30 = tt.extract %25[4] : tensor<32x32xf16> -> tensor<8x16xf16>
//       %31 = tt.extract %25[5] : tensor<32x32xf16> -> tensor<8x16xf16>
//       %32 = tt.extract %25[6] : tensor<32x32xf16> -> tensor<8x16xf16>
//       %33 = tt.extract %25[7] : tensor<32x32xf16> -> tensor<8x16xf16>
//       %34 = tt.descriptor_load %14[%arg6, %17] : !tt.tensordesc<tensor<32x32xf16>> -> tensor<32x32xf16>
//       %35 = tt.extract %34[0] : tensor<32x32xf16> -> tensor<16x16xf16>
//       %36 = tt.extract %34[1] : tensor<32x32xf16> -> tensor<16x16xf16>
//       %37 = tt.extract %34[2] : tensor<32x32xf16> -> tensor<16x16xf16>
//       %38 = tt.extract %34[3] : tensor<32x32xf16> -> tensor<16x16xf16>
//       %39 = tt.descriptor_load %14[%arg6, %18] : !tt.tensordesc<tensor<32x32xf16>> -> tensor<32x32xf16>
//       %40 = tt.extract %39[0] : tensor<32x32xf16> -> tensor<16x16xf16>
//       %41 = tt.extract %39[1] : tensor<32x32xf16> -> tensor<16x16xf16>
//       %42 = tt.extract %39[2] : tensor<32x32xf16> -> tensor<16x16xf16>
//       %43 = tt.extract %39[3] : tensor<32x32xf16> -> tensor<16x16xf16>
//       %44 = tt.dot %26, %35, %arg7, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %45 = tt.dot %27, %37, %44, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %46 = tt.dot %26, %36, %arg8, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %47 = tt.dot %27, %38, %46, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %48 = tt.dot %26, %40, %arg9, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %49 = tt.dot %27, %42, %48, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %50 = tt.dot %26, %41, %arg10, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %51 = tt.dot %27, %43, %50, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %52 = tt.dot %28, %35, %arg11, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %53 = tt.dot %29, %37, %52, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %54 = tt.dot %28, %36, %arg12, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %55 = tt.dot %29, %38, %54, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %56 = tt.dot %28, %40, %arg13, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %57 = tt.dot %29, %42, %56, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %58 = tt.dot %28, %41, %arg14, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %59 = tt.dot %29, %43, %58, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %60 = tt.dot %30, %35, %arg15, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %61 = tt.dot %31, %37, %60, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %62 = tt.dot %30, %36, %arg16, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %63 = tt.dot %31, %38, %62, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %64 = tt.dot %30, %40, %arg17, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %65 = tt.dot %31, %42, %64, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %66 = tt.dot %30, %41, %arg18, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %67 = tt.dot %31, %43, %66, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %68 = tt.dot %32, %35, %arg19, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %69 = tt.dot %33, %37, %68, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %70 = tt.dot %32, %36, %arg20, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %71 = tt.dot %33, %38, %70, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %72 = tt.dot %32, %40, %arg21, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %73 = tt.dot %33, %42, %72, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %74 = tt.dot %32, %41, %arg22, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %75 = tt.dot %33, %43, %74, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       scf.yield %45, %47, %49, %51, %53, %55, %57, %59, %61, %63, %65, %67, %69, %71, %73, %75 : tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>
//     }
//     tt.descriptor_store %15[%16, %17], %19#0 : !tt.tensordesc<tensor<8x16xf32>>, tensor<8x16xf32>
//     %20 = arith.addi %17, %c16_i32 : i32
//     tt.descriptor_store %15[%16, %20], %19#1 : !tt.tensordesc<tensor<8x16xf32>>, tensor<8x16xf32>
//     tt.descriptor_store %15[%16, %18], %19#2 : !tt.tensordesc<tensor<8x16xf32>>, tensor<8x16xf32>
//     %21 = arith.addi %17, %c48_i32 : i32
//     tt.descriptor_store %15[%16, %21], %19#3 : !tt.tensordesc<tensor<8x16xf32>>, tensor<8x16xf32>
//     %22 = arith.addi %16, %c8_i32 : i32
//     tt.descriptor_store %15[%22, %17], %19#4 : !tt.tensordesc<tensor<8x16xf32>>, tensor<8x16xf32>
//     tt.descriptor_store %15[%22, %20], %19#5 : !tt.tensordesc<tensor<8x16xf32>>, tensor<8x16xf32>
//     tt.descriptor_store %15[%22, %18], %19#6 : !tt.tensordesc<tensor<8x16xf32>>, tensor<8x16xf32>
//     tt.descriptor_store %15[%22, %21], %19#7 : !tt.tensordesc<tensor<8x16xf32>>, tensor<8x16xf32>
//     %23 = arith.addi %16, %c16_i32 : i32
//     tt.descriptor_store %15[%23, %17], %19#8 : !tt.tensordesc<tensor<8x16xf32>>, tensor<8x16xf32>
//     tt.descriptor_store %15[%23, %20], %19#9 : !tt.tensordesc<tensor<8x16xf32>>, tensor<8x16xf32>
//     tt.descriptor_store %15[%23, %18], %19#10 : !tt.tensordesc<tensor<8x16xf32>>, tensor<8x16xf32>
//     tt.descriptor_store %15[%23, %21], %19#11 : !tt.tensordesc<tensor<8x16xf32>>, tensor<8x16xf32>
//     %24 = arith.addi %16, %c24_i32 : i32
//     tt.descriptor_store %15[%24, %17], %19#12 : !tt.tensordesc<tensor<8x16xf32>>, tensor<8x16xf32>
//     tt.descriptor_store %15[%24, %20], %19#13 : !tt.tensordesc<tensor<8x16xf32>>, tensor<8x16xf32>
//     tt.descriptor_store %15[%24, %18], %19#14 : !tt.tensordesc<tensor<8x16xf32>>, tensor<8x16xf32>
//     tt.descriptor_store %15[%24, %21], %19#15 : !tt.tensordesc<tensor<8x16xf32>>, tensor<8x16xf32>
//     tt.return
//   }
// }
// -----
// RUN: -target=xe:pvc -num-warps=8 -assign-layouts -distribute-to-warps -match-target-size
// Attention: rows are reduced across the blocks of a warp.

module {
  tt.func public @attention(%q: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %k: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %v: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %scale: f32, %N: i32 {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %c128_i32 = arith.constant 128 : i32
    %c64_i64 = arith.constant 64 : i64
    %c1_i64 = arith.constant 1 : i64
    %cst = arith.constant dense<0xFF800000> : tensor<128xf32>
    %cst_0 = arith.constant dense<0.000000e+00> : tensor<128xf32>
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<128x64xf32>
    %c0_i32 = arith.constant 0 : i32
    %c64_i32 = arith.constant 64 : i32
    %0 = tt.get_program_id x : i32
    %rows = arith.muli %0, %c128_i32 : i32
    %q_blocks = tt.make_tensor_descriptor %q, [%N, %c64_i32], [%c64_i64, %c1_i64] : <f16>, <tensor<128x64xf16>>
    %k_blocks = tt.make_tensor_descriptor %k, [%N, %c64_i32], [%c64_i64, %c1_i64] : <f16>, <tensor<64x64xf16>>
    %v_blocks = tt.make_tensor_descriptor %v, [%N, %c64_i32], [%c64_i64, %c1_i64] : <f16>, <tensor<64x64xf16>>
    %o_blocks = tt.make_tensor_descriptor %o, [%N, %c64_i32], [%c64_i64, %c1_i64] : <f16>, <tensor<128x64xf16>>
    %query = tt.descriptor_load %q_blocks[%rows, %c0_i32] : !tt.tensordesc<tensor<128x64xf16>> -> tensor<128x64xf16>
    %1 = tt.splat %scale : f32 -> tensor<128x64xf32>
    %2:3 = scf.for %start = %c0_i32 to %N step %c64_i32 iter_args(%m = %cst, %l = %cst_0, %acc = %cst_1) -> (tensor<128xf32>, tensor<128xf32>, tensor<128x64xf32>) : i32 {
      %7 = tt.descriptor_load %k_blocks[%start, %c0_i32] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
      %8 = tt.trans %7 {order = array<i32: 1, 0>} : tensor<64x64xf16> -> tensor<64x64xf16>
      %9 = tt.dot %query, %8, %cst_1, inputPrecision = tf32 : tensor<128x64xf16> * tensor<64x64xf16> -> tensor<128x64xf32>
      %qk = arith.mulf %9, %1 : tensor<128x64xf32>
      %10 = "tt.reduce"(%qk) <{axis = 1 : i32}> ({
      ^bb0(%arg10: f32, %arg11: f32):
        %21 = arith.maxnumf %arg10, %arg11 : f32
        tt.reduce.return %21 : f32
      }) : (tensor<128x64xf32>) -> tensor<128xf32>
      %m_new = arith.maxnumf %m, %10 : tensor<128xf32>
      %11 = tt.expand_dims %m_new {axis = 1 : i32} : tensor<128xf32> -> tensor<128x1xf32>
      %12 = tt.broadcast %11 : tensor<128x1xf32> -> tensor<128x64xf32>
      %13 = arith.subf %qk, %12 : tensor<128x64xf32>
      %p = math.exp2 %13 : tensor<128x64xf32>
      %14 = arith.subf %m, %m_new : tensor<128xf32>
      %alpha = math.exp2 %14 : tensor<128xf32>
      %15 = arith.mulf %l, %alpha : tensor<128xf32>
      %16 = "tt.reduce"(%p) <{axis = 1 : i32}> ({
      ^bb0(%arg10: f32, %arg11: f32):
        %21 = arith.addf %arg10, %arg11 : f32
        tt.reduce.return %21 : f32
      }) : (tensor<128x64xf32>) -> tensor<128xf32>
      %l_2 = arith.addf %15, %16 : tensor<128xf32>
      %17 = tt.expand_dims %alpha {axis = 1 : i32} : tensor<128xf32> -> tensor<128x1xf32>
      %18 = tt.broadcast %17 : tensor<128x1xf32> -> tensor<128x64xf32>
      %acc_3 = arith.mulf %acc, %18 : tensor<128x64xf32>
      %19 = arith.truncf %p : tensor<128x64xf32> to tensor<128x64xf16>
      %20 = tt.descriptor_load %v_blocks[%start, %c0_i32] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
      %acc_4 = tt.dot %19, %20, %acc_3, inputPrecision = tf32 : tensor<128x64xf16> * tensor<64x64xf16> -> tensor<128x64xf32>
      scf.yield %m_new, %l_2, %acc_4 : tensor<128xf32>, tensor<128xf32>, tensor<128x64xf32>
    }
    %3 = tt.expand_dims %2#1 {axis = 1 : i32} : tensor<128xf32> -> tensor<128x1xf32>
    %4 = tt.broadcast %3 : tensor<128x1xf32> -> tensor<128x64xf32>
    %5 = arith.divf %2#2, %4 : tensor<128x64xf32>
    %6 = arith.truncf %5 : tensor<128x64xf32> to tensor<128x64xf16>
    tt.descriptor_store %o_blocks[%rows, %c0_i32], %6 : !tt.tensordesc<tensor<128x64xf16>>, tensor<128x64xf16>
    tt.return
  }
}

// OUTPUT
// module attributes {ttg.level = "intrinsic", "ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "xe:pvc", "ttg.threads-per-warp" = 16 : i32} {
//   tt.func public @attention(%arg0: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %arg1: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %arg2: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %arg3: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %arg4: f32, %arg5: i32 {tt.divisibility = 16 : i32}) attributes {noinline = false} {
//     %c0_i32 = arith.constant 0 : i32
//     %c7_i32 = arith.constant 7 : i32
//     %c16_i32 = arith.constant 16 : i32
//     %c128_i32 = arith.constant 128 : i32
//     %c64_i64 = arith.constant 64 : i64
//     %c1_i64 = arith.constant 1 : i64
//     %cst = arith.constant dense<0xFF800000> : tensor<8xf32>
//     %cst_0 = arith.constant dense<0.000000e+00> : tensor<8xf32>
//     %cst_1 = arith.constant dense<0.000000e+00> : tensor<8x16xf32>
//     %c64_i32 = arith.constant 64 : i32
//     %c32_i32 = arith.constant 32 : i32
//     %c48_i32 = arith.constant 48 : i32
//     %c8_i32 = arith.constant 8 : i32
//     %0 = gpu.subgroup_id : index
//     %1 = arith.index_cast %0 : index to i32
//     %2 = arith.andi %1, %c7_i32 : i32
//     %3 = arith.muli %2, %c16_i32 : i32
//     %4 = tt.get_program_id x : i32
//     %5 = arith.muli %4, %c128_i32 : i32
//     %6 = tt.make_tensor_descriptor %arg0, [%arg5, %c64_i32], [%c64_i64, %c1_i64] : <f16>, <tensor<16x32xf16>>
//     %7 = tt.make_tensor_descriptor %arg1, [%arg5, %c64_i32], [%c64_i64, %c1_i64] : <f16>, <tensor<32x32xf16>>
//     %8 = tt.make_tensor_descriptor %arg2, [%arg5, %c64_i32], [%c64_i64, %c1_i64] : <f16>, <tensor<32x32xf16>>
//     %9 = tt.make_tensor_descriptor %arg3, [%arg5, %c64_i32], [%c64_i64, %c1_i64] : <f16>, <tensor<8x16xf16>>
//     %10 = arith.addi %5, %3 : i32
//     %11 = tt.descriptor_load %6[%10, %c0_i32] : !tt.tensordesc<tensor<16x32xf16>> -> tensor<16x32xf16>
//     %12 = tt.extract %11[0] : tensor<16x32xf16> -> tensor<8x16xf16>
//     %13 = tt.extract %11[1] : tensor<16x32xf16> -> tensor<8x16xf16>
//     %14 = tt.extract %11[2] : tensor<16x32xf16> -> tensor<8x16xf16>
//     %15 = tt.extract %11[3] : tensor<16x32xf16> -> tensor<8x16xf16>
//     %16 = tt.descriptor_load %6[%10, %c32_i32] : !tt.tensordesc<tensor<16x32xf16>> -> tensor<16x32xf16>
//     %17 = tt.extract %16[0] : tensor<16x32xf16> -> tensor<8x16xf16>
//     %18 = tt.extract %16[1] : tensor<16x32xf16> -> tensor<8x16xf16>
//     %19 = tt.extract %16[2] : tensor<16x32xf16> -> tensor<8x16xf16>
//     %20 = tt.extract %16[3] : tensor<16x32xf16> -> tensor<8x16xf16>
//     %21 = tt.splat %arg4 : f32 -> tensor<8x16xf32>
//     %22:12 = scf.for %arg6 = %c0_i32 to %arg5 step %c64_i32 iter_args(%arg7 = %cst, %arg8 = %cst, %arg9 = %cst_0, %arg10 = %cst_0, %arg11 = %cst_1, %arg12 = %cst_1, %arg13 = %cst_1, %arg14 = %cst_1, %arg15 = %cst_1, %arg16 = %cst_1, %arg17 = %cst_1, %arg18 = %cst_1) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>)  : i32 {
//       %44 = tt.descriptor_load %7[%arg6, %c0_i32] : !tt.tensordesc<tensor<32x32xf16>> -> tensor<32x32xf16>
//       %45 = tt.descriptor_load %7[%arg6, %c32_i32] : !tt.tensordesc<tensor<32x32xf16>> -> tensor<32x32xf16>
//       %46 = arith.addi %arg6, %c32_i32 : i32
//       %47 = tt.descriptor_load %7[%46, %c0_i32] : !tt.tensordesc<tensor<32x32xf16>> -> tensor<32x32xf16>
//       %48 = tt.descriptor_load %7[%46, %c32_i32] : !tt.tensordesc<tensor<32x32xf16>> -> tensor<32x32xf16>
//       %49 = tt.trans %44 {order = array<i32: 1, 0>} : tensor<32x32xf16> -> tensor<32x32xf16>
//       %50 = tt.extract %49[0] : tensor<32x32xf16> -> tensor<16x16xf16>
//       %51 = tt.extract %49[1] : tensor<32x32xf16> -> tensor<16x16xf16>
//       %52 = tt.extract %49[2] : tensor<32x32xf16> -> tensor<16x16xf16>
//       %53 = tt.extract %49[3] : tensor<32x32xf16> -> tensor<16x16xf16>
//       %54 = tt.trans %47 {order = array<i32: 1, 0>} : tensor<32x32xf16> -> tensor<32x32xf16>
//       %55 = tt.extract %54[0] : tensor<32x32xf16> -> tensor<16x16xf16>
//       %56 = tt.extract %54[1] : tensor<32x32xf16> -> tensor<16x16xf16>
//       %57 = tt.extract %54[2] : tensor<32x32xf16> -> tensor<16x16xf16>
//       %58 = tt.extract %54[3] : tensor<32x32xf16> -> tensor<16x16xf16>
//       %59 = tt.trans %45 {order = array<i32: 1, 0>} : tensor<32x32xf16> -> tensor<32x32xf16>
//       %60 = tt.extract %59[0] : tensor<32x32xf16> -> tensor<16x16xf16>
//       %61 = tt.extract %59[1] : tensor<32x32xf16> -> tensor<16x16xf16>
//       %62 = tt.extract %59[2] : tensor<32x32xf16> -> tensor<16x16xf16>
//       %63 = tt.extract %59[3] : tensor<32x32xf16> -> tensor<16x16xf16>
//       %64 = tt.trans %48 {order = array<i32: 1, 0>} : tensor<32x32xf16> -> tensor<32x32xf16>
//       %65 = tt.extract %64[0] : tensor<32x32xf16> -> tensor<16x16xf16>
//       %66 = tt.extract %64[1] : tensor<32x32xf16> -> tensor<16x16xf16>
//       %67 = tt.extract %64[2] : tensor<32x32xf16> -> tensor<16x16xf16>
//       %68 = tt.extract %64[3] : tensor<32x32xf16> -> tensor<16x16xf16>
//       %69 = tt.dot %12, %50, %cst_1, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %70 = tt.dot %13, %52, %69, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %71 = tt.dot %17, %60, %70, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %72 = tt.dot %18, %62, %71, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %73 = tt.dot %12, %51, %cst_1, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %74 = tt.dot %13, %53, %73, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %75 = tt.dot %17, %61, %74, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %76 = tt.dot %18, %63, %75, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %77 = tt.dot %12, %55, %cst_1, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %78 = tt.dot %13, %57, %77, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %79 = tt.dot %17, %65, %78, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %80 = tt.dot %18, %67, %79, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %81 = tt.dot %12, %56, %cst_1, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %82 = tt.dot %13, %58, %81, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %83 = tt.dot %17, %66, %82, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %84 = tt.dot %18, %68, %83, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %85 = tt.dot %14, %50, %cst_1, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %86 = tt.dot %15, %52, %85, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %87 = tt.dot %19, %60, %86, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %88 = tt.dot %20, %62, %87, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %89 = tt.dot %14, %51, %cst_1, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %90 = tt.dot %15, %53, %89, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %91 = tt.dot %19, %61, %90, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %92 = tt.dot %20, %63, %91, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %93 = tt.dot %14, %55, %cst_1, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %94 = tt.dot %15, %57, %93, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %95 = tt.dot %19, %65, %94, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %96 = tt.dot %20, %67, %95, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %97 = tt.dot %14, %56, %cst_1, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %98 = tt.dot %15, %58, %97, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %99 = tt.dot %19, %66, %98, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %100 = tt.dot %20, %68, %99, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %101 = arith.mulf %72, %21 : tensor<8x16xf32>
//       %102 = arith.mulf %76, %21 : tensor<8x16xf32>
//       %103 = arith.mulf %80, %21 : tensor<8x16xf32>
//       %104 = arith.mulf %84, %21 : tensor<8x16xf32>
//       %105 = arith.mulf %88, %21 : tensor<8x16xf32>
//       %106 = arith.mulf %92, %21 : tensor<8x16xf32>
//       %107 = arith.mulf %96, %21 : tensor<8x16xf32>
//       %108 = arith.mulf %100, %21 : tensor<8x16xf32>
//       %109 = arith.maxnumf %101, %102 : tensor<8x16xf32>
//       %110 = arith.maxnumf %109, %103 : tensor<8x16xf32>
//       %111 = arith.maxnumf %110, %104 : tensor<8x16xf32>
//       %112 = "tt.reduce"(%111) <{axis = 1 : i32}> ({
//       ^bb0(%arg19: f32, %arg20: f32):
//         %227 = arith.maxnumf %arg19, %arg20 : f32
//         tt.reduce.return %227 : f32
//       }) : (tensor<8x16xf32>) -> tensor<8xf32>
//       %113 = arith.maxnumf %105, %106 : tensor<8x16xf32>
//       %114 = arith.maxnumf %113, %107 : tensor<8x16xf32>
//       %115 = arith.maxnumf %114, %108 : tensor<8x16xf32>
//       %116 = "tt.reduce"(%115) <{axis = 1 : i32}> ({
//       ^bb0(%arg19: f32, %arg20: f32):
//         %227 = arith.maxnumf %arg19, %arg20 : f32
//         tt.reduce.return %227 : f32
//       }) : (tensor<8x16xf32>) -> tensor<8xf32>
//       %117 = arith.maxnumf %arg7, %112 : tensor<8xf32>
//       %118 = arith.maxnumf %arg8, %116 : tensor<8xf32>
//       %119 = tt.expand_dims %117 {axis = 1 : i32} : tensor<8xf32> -> tensor<8x1xf32>
//       %120 = tt.expand_dims %118 {axis = 1 : i32} : tensor<8xf32> -> tensor<8x1xf32>
//       %121 = tt.broadcast %119 : tensor<8x1xf32> -> tensor<8x16xf32>
//       %122 = tt.broadcast %120 : tensor<8x1xf32> -> tensor<8x16xf32>
//       %123 = arith.subf %101, %121 : tensor<8x16xf32>
//       %124 = arith.subf %102, %121 : tensor<8x16xf32>
//       %125 = arith.subf %103, %121 : tensor<8x16xf32>
//       %126 = arith.subf %104, %121 : tensor<8x16xf32>
//       %127 = arith.subf %105, %122 : tensor<8x16xf32>
//       %128 = arith.subf %106, %122 : tensor<8x16xf32>
//       %129 = arith.subf %107, %122 : tensor<8x16xf32>
//       %130 = arith.subf %108, %122 : tensor<8x16xf32>
//       %131 = math.exp2 %123 : tensor<8x16xf32>
//       %132 = math.exp2 %124 : tensor<8x16xf32>
//       %133 = math.exp2 %125 : tensor<8x16xf32>
//       %134 = math.exp2 %126 : tensor<8x16xf32>
//       %135 = math.exp2 %127 : tensor<8x16xf32>
//       %136 = math.exp2 %128 : tensor<8x16xf32>
//       %137 = math.exp2 %129 : tensor<8x16xf32>
//       %138 = math.exp2 %130 : tensor<8x16xf32>
//       %139 = arith.subf %arg7, %117 : tensor<8xf32>
//       %140 = arith.subf %arg8, %118 : tensor<8xf32>
//       %141 = math.exp2 %139 : tensor<8xf32>
//       %142 = math.exp2 %140 : tensor<8xf32>
//       %143 = arith.mulf %arg9, %141 : tensor<8xf32>
//       %144 = arith.mulf %arg10, %142 : tensor<8xf32>
//       %145 = arith.addf %131, %132 : tensor<8x16xf32>
//       %146 = arith.addf %145, %133 : tensor<8x16xf32>
//       %147 = arith.addf %146, %134 : tensor<8x16xf32>
//       %148 = "tt.reduce"(%147) <{axis = 1 : i32}> ({
//       ^bb0(%arg19: f32, %arg20: f32):
//         %227 = arith.addf %arg19, %arg20 : f32
//         tt.reduce.return %227 : f32
//       }) : (tensor<8x16xf32>) -> tensor<8xf32>
//       %149 = arith.addf %135, %136 : tensor<8x16xf32>
//       %150 = arith.addf %149, %137 : tensor<8x16xf32>
//       %151 = arith.addf %150, %138 : tensor<8x16xf32>
//       %152 = "tt.reduce"(%151) <{axis = 1 : i32}> ({
//       ^bb0(%arg19: f32, %arg20: f32):
//         %227 = arith.addf %arg19, %arg20 : f32
//         tt.reduce.return %227 : f32
//       }) : (tensor<8x16xf32>) -> tensor<8xf32>
//       %153 = arith.addf %143, %148 : tensor<8xf32>
//       %154 = arith.addf %144, %152 : tensor<8xf32>
//       %155 = tt.expand_dims %141 {axis = 1 : i32} : tensor<8xf32> -> tensor<8x1xf32>
//       %156 = tt.expand_dims %142 {axis = 1 : i32} : tensor<8xf32> -> tensor<8x1xf32>
//       %157 = tt.broadcast %155 : tensor<8x1xf32> -> tensor<8x16xf32>
//       %158 = tt.broadcast %156 : tensor<8x1xf32> -> tensor<8x16xf32>
//       %159 = arith.mulf %arg11, %157 : tensor<8x16xf32>
//       %160 = arith.mulf %arg12, %157 : tensor<8x16xf32>
//       %161 = arith.mulf %arg13, %157 : tensor<8x16xf32>
//       %162 = arith.mulf %arg14, %157 : tensor<8x16xf32>
//       %163 = arith.mulf %arg15, %158 : tensor<8x16xf32>
//       %164 = arith.mulf %arg16, %158 : tensor<8x16xf32>
//       %165 = arith.mulf %arg17, %158 : tensor<8x16xf32>
//       %166 = arith.mulf %arg18, %158 : tensor<8x16xf32>
//       %167 = arith.truncf %131 : tensor<8x16xf32> to tensor<8x16xf16>
//       %168 = arith.truncf %132 : tensor<8x16xf32> to tensor<8x16xf16>
//       %169 = arith.truncf %133 : tensor<8x16xf32> to tensor<8x16xf16>
//       %170 = arith.truncf %134 : tensor<8x16xf32> to tensor<8x16xf16>
//       %171 = arith.truncf %135 : tensor<8x16xf32> to tensor<8x16xf16>
//       %172 = arith.truncf %136 : tensor<8x16xf32> to tensor<8x16xf16>
//       %173 = arith.truncf %137 : tensor<8x16xf32> to tensor<8x16xf16>
//       %174 = arith.truncf %138 : tensor<8x16xf32> to tensor<8x16xf16>
//       %175 = tt.descriptor_load %8[%arg6, %c0_i32] : !tt.tensordesc<tensor<32x32xf16>> -> tensor<32x32xf16>
//       %176 = tt.extract %175[0] : tensor<32x32xf16> -> tensor<16x16xf16>
//       %177 = tt.extract %175[1] : tensor<32x32xf16> -> tensor<16x16xf16>
//       %178 = tt.extract %175[2] : tensor<32x32xf16> -> tensor<16x16xf16>
//       %179 = tt.extract %175[3] : tensor<32x32xf16> -> tensor<16x16xf16>
//       %180 = tt.descriptor_load %8[%arg6, %c32_i32] : !tt.tensordesc<tensor<32x32xf16>> -> tensor<32x32xf16>
//       %181 = tt.extract %180[0] : tensor<32x32xf16> -> tensor<16x16xf16>
//       %182 = tt.extract %180[1] : tensor<32x32xf16> -> tensor<16x16xf16>
//       %183 = tt.extract %180[2] : tensor<32x32xf16> -> tensor<16x16xf16>
//       %184 = tt.extract %180[3] : tensor<32x32xf16> -> tensor<16x16xf16>
//       %185 = tt.descriptor_load %8[%46, %c0_i32] : !tt.tensordesc<tensor<32x32xf16>> -> tensor<32x32xf16>
//       %186 = tt.extract %185[0] : tensor<32x32xf16> -> tensor<16x16xf16>
//       %187 = tt.extract %185[1] : tensor<32x32xf16> -> tensor<16x16xf16>
//       %188 = tt.extract %185[2] : tensor<32x32xf16> -> tensor<16x16xf16>
//       %189 = tt.extract %185[3] : tensor<32x32xf16> -> tensor<16x16xf16>
//       %190 = tt.descriptor_load %8[%46, %c32_i32] : !tt.tensordesc<tensor<32x32xf16>> -> tensor<32x32xf16>
//       %191 = tt.extract %190[0] : tensor<32x32xf16> -> tensor<16x16xf16>
//       %192 = tt.extract %190[1] : tensor<32x32xf16> -> tensor<16x16xf16>
//       %193 = tt.extract %190[2] : tensor<32x32xf16> -> tensor<16x16xf16>
//       %194 = tt.extract %190[3] : tensor<32x32xf16> -> tensor<16x16xf16>
//       %195 = tt.dot %167, %176, %159, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %196 = tt.dot %168, %178, %195, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %197 = tt.dot %169, %186, %196, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %198 = tt.dot %170, %188, %197, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %199 = tt.dot %167, %177, %160, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %200 = tt.dot %168, %179, %199, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %201 = tt.dot %169, %187, %200, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %202 = tt.dot %170, %189, %201, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %203 = tt.dot %167, %181, %161, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %204 = tt.dot %168, %183, %203, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %205 = tt.dot %169, %191, %204, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %206 = tt.dot %170, %193, %205, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %207 = tt.dot %167, %182, %162, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %208 = tt.dot %168, %184, %207, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %209 = tt.dot %169, %192, %208, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %210 = tt.dot %170, %194, %209, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %211 = tt.dot %171, %176, %163, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %212 = tt.dot %172, %178, %211, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %213 = tt.dot %173, %186, %212, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %214 = tt.dot %174, %188, %213, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %215 = tt.dot %171, %177, %164, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %216 = tt.dot %172, %179, %215, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %217 = tt.dot %173, %187, %216, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %218 = tt.dot %174, %189, %217, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %219 = tt.dot %171, %181, %165, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %220 = tt.dot %172, %183, %219, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %221 = tt.dot %173, %191, %220, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %222 = tt.dot %174, %193, %221, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %223 = tt.dot %171, %182, %166, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %224 = tt.dot %172, %184, %223, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %225 = tt.dot %173, %192, %224, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       %226 = tt.dot %174, %194, %225, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//       scf.yield %117, %118, %153, %154, %198, %202, %206, %210, %214, %218, %222, %226 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>
//     }
//     %23 = tt.expand_dims %22#2 {axis = 1 : i32} : tensor<8xf32> -> tensor<8x1xf32>
//     %24 = tt.expand_dims %22#3 {axis = 1 : i32} : tensor<8xf32> -> tensor<8x1xf32>
//     %25 = tt.broadcast %23 : tensor<8x1xf32> -> tensor<8x16xf32>
//     %26 = tt.broadcast %24 : tensor<8x1xf32> -> tensor<8x16xf32>
//     %27 = arith.divf %22#4, %25 : tensor<8x16xf32>
//     %28 = arith.divf %22#5, %25 : tensor<8x16xf32>
//     %29 = arith.divf %22#6, %25 : tensor<8x16xf32>
//     %30 = arith.divf %22#7, %25 : tensor<8x16xf32>
//     %31 = arith.divf %22#8, %26 : tensor<8x16xf32>
//     %32 = arith.divf %22#9, %26 : tensor<8x16xf32>
//     %33 = arith.divf %22#10, %26 : tensor<8x16xf32>
//     %34 = arith.divf %22#11, %26 : tensor<8x16xf32>
//     %35 = arith.truncf %27 : tensor<8x16xf32> to tensor<8x16xf16>
//     %36 = arith.truncf %28 : tensor<8x16xf32> to tensor<8x16xf16>
//     %37 = arith.truncf %29 : tensor<8x16xf32> to tensor<8x16xf16>
//     %38 = arith.truncf %30 : tensor<8x16xf32> to tensor<8x16xf16>
//     %39 = arith.truncf %31 : tensor<8x16xf32> to tensor<8x16xf16>
//     %40 = arith.truncf %32 : tensor<8x16xf32> to tensor<8x16xf16>
//     %41 = arith.truncf %33 : tensor<8x16xf32> to tensor<8x16xf16>
//     %42 = arith.truncf %34 : tensor<8x16xf32> to tensor<8x16xf16>
//     tt.descriptor_store %9[%10, %c0_i32], %35 : !tt.tensordesc<tensor<8x16xf16>>, tensor<8x16xf16>
//     tt.descriptor_store %9[%10, %c16_i32], %36 : !tt.tensordesc<tensor<8x16xf16>>, tensor<8x16xf16>
//     tt.descriptor_store %9[%10, %c32_i32], %37 : !tt.tensordesc<tensor<8x16xf16>>, tensor<8x16xf16>
//     tt.descriptor_store %9[%10, %c48_i32], %38 : !tt.tensordesc<tensor<8x16xf16>>, tensor<8x16xf16>
//     %43 = arith.addi %10, %c8_i32 : i32
//     tt.descriptor_store %9[%43, %c0_i32], %39 : !tt.tensordesc<tensor<8x16xf16>>, tensor<8x16xf16>
//     tt.descriptor_store %9[%43, %c16_i32], %40 : !tt.tensordesc<tensor<8x16xf16>>, tensor<8x16xf16>
//     tt.descriptor_store %9[%43, %c32_i32], %41 : !tt.tensordesc<tensor<8x16xf16>>, tensor<8x16xf16>
//     tt.descriptor_store %9[%43, %c48_i32], %42 : !tt.tensordesc<tensor<8x16xf16>>, tensor<8x16xf16>
//     tt.return
//   }
// }
// -----
// RUN: -target=xe:pvc -num-warps=4 -assign-layouts -distribute-to-warps -match-target-size
// Element by element.

module {
  tt.func public @add(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %out: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) attributes {noinline = false} {
    %c1024_i32 = arith.constant 1024 : i32
    %0 = tt.get_program_id x : i32
    %1 = arith.muli %0, %c1024_i32 : i32
    %2 = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32>
    %3 = tt.splat %1 : i32 -> tensor<1024xi32>
    %at = arith.addi %3, %2 : tensor<1024xi32>
    %4 = tt.splat %n : i32 -> tensor<1024xi32>
    %mask = arith.cmpi slt, %at, %4 : tensor<1024xi32>
    %5 = tt.splat %out : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    %6 = tt.addptr %5, %at : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
    %7 = tt.splat %x : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    %8 = tt.addptr %7, %at : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
    %9 = tt.load %8, %mask : tensor<1024x!tt.ptr<f32>>
    %10 = tt.splat %y : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    %11 = tt.addptr %10, %at : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
    %12 = tt.load %11, %mask : tensor<1024x!tt.ptr<f32>>
    %13 = arith.addf %9, %12 : tensor<1024xf32>
    tt.store %6, %13, %mask : tensor<1024x!tt.ptr<f32>>
    tt.return
  }
}

// OUTPUT
// module attributes {ttg.level = "intrinsic", "ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "xe:pvc", "ttg.threads-per-warp" = 16 : i32} {
//   tt.func public @add(%arg0: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %arg1: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %arg2: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %arg3: i32) attributes {noinline = false} {
//     %c3_i32 = arith.constant 3 : i32
//     %c256_i32 = arith.constant 256 : i32
//     %c1024_i32 = arith.constant 1024 : i32
//     %0 = gpu.subgroup_id : index
//     %1 = arith.index_cast %0 : index to i32
//     %2 = arith.andi %1, %c3_i32 : i32
//     %3 = arith.muli %2, %c256_i32 : i32
//     %4 = tt.get_program_id x : i32
//     %5 = arith.muli %4, %c1024_i32 : i32
//     %6 = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
//     %7 = tt.make_range {end = 32 : i32, start = 16 : i32} : tensor<16xi32>
//     %8 = tt.make_range {end = 48 : i32, start = 32 : i32} : tensor<16xi32>
//     %9 = tt.make_range {end = 64 : i32, start = 48 : i32} : tensor<16xi32>
//     %10 = tt.make_range {end = 80 : i32, start = 64 : i32} : tensor<16xi32>
//     %11 = tt.make_range {end = 96 : i32, start = 80 : i32} : tensor<16xi32>
//     %12 = tt.make_range {end = 112 : i32, start = 96 : i32} : tensor<16xi32>
//     %13 = tt.make_range {end = 128 : i32, start = 112 : i32} : tensor<16xi32>
//     %14 = tt.make_range {end = 144 : i32, start = 128 : i32} : tensor<16xi32>
//     %15 = tt.make_range {end = 160 : i32, start = 144 : i32} : tensor<16xi32>
//     %16 = tt.make_range {end = 176 : i32, start = 160 : i32} : tensor<16xi32>
//     %17 = tt.make_range {end = 192 : i32, start = 176 : i32} : tensor<16xi32>
//     %18 = tt.make_range {end = 208 : i32, start = 192 : i32} : tensor<16xi32>
//     %19 = tt.make_range {end = 224 : i32, start = 208 : i32} : tensor<16xi32>
//     %20 = tt.make_range {end = 240 : i32, start = 224 : i32} : tensor<16xi32>
//     %21 = tt.make_range {end = 256 : i32, start = 240 : i32} : tensor<16xi32>
//     %22 = tt.splat %3 : i32 -> tensor<16xi32>
//     %23 = arith.addi %6, %22 : tensor<16xi32>
//     %24 = arith.addi %7, %22 : tensor<16xi32>
//     %25 = arith.addi %8, %22 : tensor<16xi32>
//     %26 = arith.addi %9, %22 : tensor<16xi32>
//     %27 = arith.addi %10, %22 : tensor<16xi32>
//     %28 = arith.addi %11, %22 : tensor<16xi32>
//     %29 = arith.addi %12, %22 : tensor<16xi32>
//     %30 = arith.addi %13, %22 : tensor<16xi32>
//     %31 = arith.addi %14, %22 : tensor<16xi32>
//     %32 = arith.addi %15, %22 : tensor<16xi32>
//     %33 = arith.addi %16, %22 : tensor<16xi32>
//     %34 = arith.addi %17, %22 : tensor<16xi32>
//     %35 = arith.addi %18, %22 : tensor<16xi32>
//     %36 = arith.addi %19, %22 : tensor<16xi32>
//     %37 = arith.addi %20, %22 : tensor<16xi32>
//     %38 = arith.addi %21, %22 : tensor<16xi32>
//     %39 = tt.splat %5 : i32 -> tensor<16xi32>
//     %40 = arith.addi %39, %23 : tensor<16xi32>
//     %41 = arith.addi %39, %24 : tensor<16xi32>
//     %42 = arith.addi %39, %25 : tensor<16xi32>
//     %43 = arith.addi %39, %26 : tensor<16xi32>
//     %44 = arith.addi %39, %27 : tensor<16xi32>
//     %45 = arith.addi %39, %28 : tensor<16xi32>
//     %46 = arith.addi %39, %29 : tensor<16xi32>
//     %47 = arith.addi %39, %30 : tensor<16xi32>
//     %48 = arith.addi %39, %31 : tensor<16xi32>
//     %49 = arith.addi %39, %32 : tensor<16xi32>
//     %50 = arith.addi %39, %33 : tensor<16xi32>
//     %51 = arith.addi %39, %34 : tensor<16xi32>
//     %52 = arith.addi %39, %35 : tensor<16xi32>
//     %53 = arith.addi %39, %36 : tensor<16xi32>
//     %54 = arith.addi %39, %37 : tensor<16xi32>
//     %55 = arith.addi %39, %38 : tensor<16xi32>
//     %56 = tt.splat %arg3 : i32 -> tensor<16xi32>
//     %57 = arith.cmpi slt, %40, %56 : tensor<16xi32>
//     %58 = arith.cmpi slt, %41, %56 : tensor<16xi32>
//     %59 = arith.cmpi slt, %42, %56 : tensor<16xi32>
//     %60 = arith.cmpi slt, %43, %56 : tensor<16xi32>
//     %61 = arith.cmpi slt, %44, %56 : tensor<16xi32>
//     %62 = arith.cmpi slt, %45, %56 : tensor<16xi32>
//     %63 = arith.cmpi slt, %46, %56 : tensor<16xi32>
//     %64 = arith.cmpi slt, %47, %56 : tensor<16xi32>
//     %65 = arith.cmpi slt, %48, %56 : tensor<16xi32>
//     %66 = arith.cmpi slt, %49, %56 : tensor<16xi32>
//     %67 = arith.cmpi slt, %50, %56 : tensor<16xi32>
//     %68 = arith.cmpi slt, %51, %56 : tensor<16xi32>
//     %69 = arith.cmpi slt, %52, %56 : tensor<16xi32>
//     %70 = arith.cmpi slt, %53, %56 : tensor<16xi32>
//     %71 = arith.cmpi slt, %54, %56 : tensor<16xi32>
//     %72 = arith.cmpi slt, %55, %56 : tensor<16xi32>
//     %73 = tt.splat %arg2 : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
//     %74 = tt.addptr %73, %40 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %75 = tt.addptr %73, %41 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %76 = tt.addptr %73, %42 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %77 = tt.addptr %73, %43 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %78 = tt.addptr %73, %44 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %79 = tt.addptr %73, %45 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %80 = tt.addptr %73, %46 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %81 = tt.addptr %73, %47 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %82 = tt.addptr %73, %48 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %83 = tt.addptr %73, %49 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %84 = tt.addptr %73, %50 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %85 = tt.addptr %73, %51 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %86 = tt.addptr %73, %52 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %87 = tt.addptr %73, %53 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %88 = tt.addptr %73, %54 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %89 = tt.addptr %73, %55 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %90 = tt.splat %arg0 : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
//     %91 = tt.addptr %90, %40 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %92 = tt.addptr %90, %41 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %93 = tt.addptr %90, %42 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %94 = tt.addptr %90, %43 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %95 = tt.addptr %90, %44 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %96 = tt.addptr %90, %45 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %97 = tt.addptr %90, %46 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %98 = tt.addptr %90, %47 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %99 = tt.addptr %90, %48 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %100 = tt.addptr %90, %49 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %101 = tt.addptr %90, %50 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %102 = tt.addptr %90, %51 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %103 = tt.addptr %90, %52 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %104 = tt.addptr %90, %53 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %105 = tt.addptr %90, %54 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %106 = tt.addptr %90, %55 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %107 = tt.load %91, %57 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     %108 = tt.load %92, %58 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     %109 = tt.load %93, %59 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     %110 = tt.load %94, %60 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     %111 = tt.load %95, %61 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     %112 = tt.load %96, %62 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     %113 = tt.load %97, %63 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     %114 = tt.load %98, %64 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     %115 = tt.load %99, %65 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     %116 = tt.load %100, %66 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     %117 = tt.load %101, %67 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     %118 = tt.load %102, %68 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     %119 = tt.load %103, %69 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     %120 = tt.load %104, %70 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     %121 = tt.load %105, %71 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     %122 = tt.load %106, %72 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     %123 = tt.splat %arg1 : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
//     %124 = tt.addptr %123, %40 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %125 = tt.addptr %123, %41 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %126 = tt.addptr %123, %42 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %127 = tt.addptr %123, %43 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %128 = tt.addptr %123, %44 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %129 = tt.addptr %123, %45 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %130 = tt.addptr %123, %46 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %131 = tt.addptr %123, %47 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %132 = tt.addptr %123, %48 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %133 = tt.addptr %123, %49 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %134 = tt.addptr %123, %50 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %135 = tt.addptr %123, %51 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %136 = tt.addptr %123, %52 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %137 = tt.addptr %123, %53 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %138 = tt.addptr %123, %54 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %139 = tt.addptr %123, %55 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %140 = tt.load %124, %57 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     %141 = tt.load %125, %58 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     %142 = tt.load %126, %59 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     %143 = tt.load %127, %60 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     %144 = tt.load %128, %61 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     %145 = tt.load %129, %62 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     %146 = tt.load %130, %63 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     %147 = tt.load %131, %64 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     %148 = tt.load %132, %65 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     %149 = tt.load %133, %66 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     %150 = tt.load %134, %67 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     %151 = tt.load %135, %68 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     %152 = tt.load %136, %69 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     %153 = tt.load %137, %70 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     %154 = tt.load %138, %71 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     %155 = tt.load %139, %72 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     %156 = arith.addf %107, %140 : tensor<16xf32>
//     %157 = arith.addf %108, %141 : tensor<16xf32>
//     %158 = arith.addf %109, %142 : tensor<16xf32>
//     %159 = arith.addf %110, %143 : tensor<16xf32>
//     %160 = arith.addf %111, %144 : tensor<16xf32>
//     %161 = arith.addf %112, %145 : tensor<16xf32>
//     %162 = arith.addf %113, %146 : tensor<16xf32>
//     %163 = arith.addf %114, %147 : tensor<16xf32>
//     %164 = arith.addf %115, %148 : tensor<16xf32>
//     %165 = arith.addf %116, %149 : tensor<16xf32>
//     %166 = arith.addf %117, %150 : tensor<16xf32>
//     %167 = arith.addf %118, %151 : tensor<16xf32>
//     %168 = arith.addf %119, %152 : tensor<16xf32>
//     %169 = arith.addf %120, %153 : tensor<16xf32>
//     %170 = arith.addf %121, %154 : tensor<16xf32>
//     %171 = arith.addf %122, %155 : tensor<16xf32>
//     tt.store %74, %156, %57 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     tt.store %75, %157, %58 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     tt.store %76, %158, %59 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     tt.store %77, %159, %60 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     tt.store %78, %160, %61 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     tt.store %79, %161, %62 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     tt.store %80, %162, %63 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     tt.store %81, %163, %64 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     tt.store %82, %164, %65 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     tt.store %83, %165, %66 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     tt.store %84, %166, %67 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     tt.store %85, %167, %68 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     tt.store %86, %168, %69 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     tt.store %87, %169, %70 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     tt.store %88, %170, %71 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     tt.store %89, %171, %72 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     tt.return
//   }
// }
// -----
// RUN: -target=xe:pvc -num-warps=4 -assign-layouts -distribute-to-warps -match-target-size
// A reduction across blocks, then warps.

module {
  tt.func public @total(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %out: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) attributes {noinline = false} {
    %c1024_i32 = arith.constant 1024 : i32
    %cst = arith.constant dense<0.000000e+00> : tensor<1024xf32>
    %0 = tt.get_program_id x : i32
    %1 = arith.muli %0, %c1024_i32 : i32
    %2 = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32>
    %3 = tt.splat %1 : i32 -> tensor<1024xi32>
    %at = arith.addi %3, %2 : tensor<1024xi32>
    %4 = tt.splat %x : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    %5 = tt.addptr %4, %at : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
    %6 = tt.splat %n : i32 -> tensor<1024xi32>
    %7 = arith.cmpi slt, %at, %6 : tensor<1024xi32>
    %values = tt.load %5, %7, %cst : tensor<1024x!tt.ptr<f32>>
    %8 = tt.addptr %out, %0 : !tt.ptr<f32>, i32
    %9 = "tt.reduce"(%values) <{axis = 0 : i32}> ({
    ^bb0(%arg3: f32, %arg4: f32):
      %10 = arith.addf %arg3, %arg4 : f32
      tt.reduce.return %10 : f32
    }) : (tensor<1024xf32>) -> f32
    tt.store %8, %9 : !tt.ptr<f32>
    tt.return
  }
}

// OUTPUT
// #shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
// #smem = #ttg.shared_memory
// module attributes {ttg.level = "intrinsic", "ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "xe:pvc", "ttg.threads-per-warp" = 16 : i32} {
//   tt.func public @total(%arg0: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %arg1: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %arg2: i32) attributes {noinline = false} {
//     %c0_i32 = arith.constant 0 : i32
//     %c3_i32 = arith.constant 3 : i32
//     %c256_i32 = arith.constant 256 : i32
//     %c-4_i32 = arith.constant -4 : i32
//     %c1_i32 = arith.constant 1 : i32
//     %c2_i32 = arith.constant 2 : i32
//     %c1024_i32 = arith.constant 1024 : i32
//     %cst = arith.constant dense<0.000000e+00> : tensor<16xf32>
//     %0 = gpu.subgroup_id : index
//     %1 = arith.index_cast %0 : index to i32
//     %2 = arith.andi %1, %c3_i32 : i32
//     %3 = arith.muli %2, %c256_i32 : i32
//     %4 = ttg.local_alloc : () -> !ttg.memdesc<4x1xf32, #shared, #smem, mutable>
//     %5 = arith.andi %1, %c-4_i32 : i32
//     %6 = arith.ori %5, %c1_i32 : i32
//     %7 = arith.ori %5, %c2_i32 : i32
//     %8 = arith.ori %5, %c3_i32 : i32
//     %9 = arith.cmpi eq, %2, %c0_i32 : i32
//     %10 = tt.get_program_id x : i32
//     %11 = arith.muli %10, %c1024_i32 : i32
//     %12 = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
//     %13 = tt.make_range {end = 32 : i32, start = 16 : i32} : tensor<16xi32>
//     %14 = tt.make_range {end = 48 : i32, start = 32 : i32} : tensor<16xi32>
//     %15 = tt.make_range {end = 64 : i32, start = 48 : i32} : tensor<16xi32>
//     %16 = tt.make_range {end = 80 : i32, start = 64 : i32} : tensor<16xi32>
//     %17 = tt.make_range {end = 96 : i32, start = 80 : i32} : tensor<16xi32>
//     %18 = tt.make_range {end = 112 : i32, start = 96 : i32} : tensor<16xi32>
//     %19 = tt.make_range {end = 128 : i32, start = 112 : i32} : tensor<16xi32>
//     %20 = tt.make_range {end = 144 : i32, start = 128 : i32} : tensor<16xi32>
//     %21 = tt.make_range {end = 160 : i32, start = 144 : i32} : tensor<16xi32>
//     %22 = tt.make_range {end = 176 : i32, start = 160 : i32} : tensor<16xi32>
//     %23 = tt.make_range {end = 192 : i32, start = 176 : i32} : tensor<16xi32>
//     %24 = tt.make_range {end = 208 : i32, start = 192 : i32} : tensor<16xi32>
//     %25 = tt.make_range {end = 224 : i32, start = 208 : i32} : tensor<16xi32>
//     %26 = tt.make_range {end = 240 : i32, start = 224 : i32} : tensor<16xi32>
//     %27 = tt.make_range {end = 256 : i32, start = 240 : i32} : tensor<16xi32>
//     %28 = tt.splat %3 : i32 -> tensor<16xi32>
//     %29 = arith.addi %12, %28 : tensor<16xi32>
//     %30 = arith.addi %13, %28 : tensor<16xi32>
//     %31 = arith.addi %14, %28 : tensor<16xi32>
//     %32 = arith.addi %15, %28 : tensor<16xi32>
//     %33 = arith.addi %16, %28 : tensor<16xi32>
//     %34 = arith.addi %17, %28 : tensor<16xi32>
//     %35 = arith.addi %18, %28 : tensor<16xi32>
//     %36 = arith.addi %19, %28 : tensor<16xi32>
//     %37 = arith.addi %20, %28 : tensor<16xi32>
//     %38 = arith.addi %21, %28 : tensor<16xi32>
//     %39 = arith.addi %22, %28 : tensor<16xi32>
//     %40 = arith.addi %23, %28 : tensor<16xi32>
//     %41 = arith.addi %24, %28 : tensor<16xi32>
//     %42 = arith.addi %25, %28 : tensor<16xi32>
//     %43 = arith.addi %26, %28 : tensor<16xi32>
//     %44 = arith.addi %27, %28 : tensor<16xi32>
//     %45 = tt.splat %11 : i32 -> tensor<16xi32>
//     %46 = arith.addi %45, %29 : tensor<16xi32>
//     %47 = arith.addi %45, %30 : tensor<16xi32>
//     %48 = arith.addi %45, %31 : tensor<16xi32>
//     %49 = arith.addi %45, %32 : tensor<16xi32>
//     %50 = arith.addi %45, %33 : tensor<16xi32>
//     %51 = arith.addi %45, %34 : tensor<16xi32>
//     %52 = arith.addi %45, %35 : tensor<16xi32>
//     %53 = arith.addi %45, %36 : tensor<16xi32>
//     %54 = arith.addi %45, %37 : tensor<16xi32>
//     %55 = arith.addi %45, %38 : tensor<16xi32>
//     %56 = arith.addi %45, %39 : tensor<16xi32>
//     %57 = arith.addi %45, %40 : tensor<16xi32>
//     %58 = arith.addi %45, %41 : tensor<16xi32>
//     %59 = arith.addi %45, %42 : tensor<16xi32>
//     %60 = arith.addi %45, %43 : tensor<16xi32>
//     %61 = arith.addi %45, %44 : tensor<16xi32>
//     %62 = tt.splat %arg0 : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
//     %63 = tt.addptr %62, %46 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %64 = tt.addptr %62, %47 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %65 = tt.addptr %62, %48 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %66 = tt.addptr %62, %49 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %67 = tt.addptr %62, %50 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %68 = tt.addptr %62, %51 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %69 = tt.addptr %62, %52 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %70 = tt.addptr %62, %53 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %71 = tt.addptr %62, %54 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %72 = tt.addptr %62, %55 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %73 = tt.addptr %62, %56 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %74 = tt.addptr %62, %57 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %75 = tt.addptr %62, %58 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %76 = tt.addptr %62, %59 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %77 = tt.addptr %62, %60 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %78 = tt.addptr %62, %61 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %79 = tt.splat %arg2 : i32 -> tensor<16xi32>
//     %80 = arith.cmpi slt, %46, %79 : tensor<16xi32>
//     %81 = arith.cmpi slt, %47, %79 : tensor<16xi32>
//     %82 = arith.cmpi slt, %48, %79 : tensor<16xi32>
//     %83 = arith.cmpi slt, %49, %79 : tensor<16xi32>
//     %84 = arith.cmpi slt, %50, %79 : tensor<16xi32>
//     %85 = arith.cmpi slt, %51, %79 : tensor<16xi32>
//     %86 = arith.cmpi slt, %52, %79 : tensor<16xi32>
//     %87 = arith.cmpi slt, %53, %79 : tensor<16xi32>
//     %88 = arith.cmpi slt, %54, %79 : tensor<16xi32>
//     %89 = arith.cmpi slt, %55, %79 : tensor<16xi32>
//     %90 = arith.cmpi slt, %56, %79 : tensor<16xi32>
//     %91 = arith.cmpi slt, %57, %79 : tensor<16xi32>
//     %92 = arith.cmpi slt, %58, %79 : tensor<16xi32>
//     %93 = arith.cmpi slt, %59, %79 : tensor<16xi32>
//     %94 = arith.cmpi slt, %60, %79 : tensor<16xi32>
//     %95 = arith.cmpi slt, %61, %79 : tensor<16xi32>
//     %96 = tt.load %63, %80, %cst {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     %97 = tt.load %64, %81, %cst {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     %98 = tt.load %65, %82, %cst {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     %99 = tt.load %66, %83, %cst {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     %100 = tt.load %67, %84, %cst {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     %101 = tt.load %68, %85, %cst {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     %102 = tt.load %69, %86, %cst {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     %103 = tt.load %70, %87, %cst {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     %104 = tt.load %71, %88, %cst {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     %105 = tt.load %72, %89, %cst {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     %106 = tt.load %73, %90, %cst {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     %107 = tt.load %74, %91, %cst {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     %108 = tt.load %75, %92, %cst {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     %109 = tt.load %76, %93, %cst {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     %110 = tt.load %77, %94, %cst {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     %111 = tt.load %78, %95, %cst {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     %112 = tt.addptr %arg1, %10 : !tt.ptr<f32>, i32
//     %113 = arith.addf %96, %97 : tensor<16xf32>
//     %114 = arith.addf %113, %98 : tensor<16xf32>
//     %115 = arith.addf %114, %99 : tensor<16xf32>
//     %116 = arith.addf %115, %100 : tensor<16xf32>
//     %117 = arith.addf %116, %101 : tensor<16xf32>
//     %118 = arith.addf %117, %102 : tensor<16xf32>
//     %119 = arith.addf %118, %103 : tensor<16xf32>
//     %120 = arith.addf %119, %104 : tensor<16xf32>
//     %121 = arith.addf %120, %105 : tensor<16xf32>
//     %122 = arith.addf %121, %106 : tensor<16xf32>
//     %123 = arith.addf %122, %107 : tensor<16xf32>
//     %124 = arith.addf %123, %108 : tensor<16xf32>
//     %125 = arith.addf %124, %109 : tensor<16xf32>
//     %126 = arith.addf %125, %110 : tensor<16xf32>
//     %127 = arith.addf %126, %111 : tensor<16xf32>
//     %128 = "tt.reduce"(%127) <{axis = 0 : i32}> ({
//     ^bb0(%arg3: f32, %arg4: f32):
//       %146 = arith.addf %arg3, %arg4 : f32
//       tt.reduce.return %146 : f32
//     }) : (tensor<16xf32>) -> f32
//     %129 = ttg.memdesc_index %4[%1] : !ttg.memdesc<4x1xf32, #shared, #smem, mutable> -> !ttg.memdesc<1xf32, #shared, #smem, mutable>
//     %130 = tt.splat %128 : f32 -> tensor<1xf32>
//     ttg.local_store %130, %129 : tensor<1xf32> -> !ttg.memdesc<1xf32, #shared, #smem, mutable>
//     ttg.barrier
//     %131 = ttg.memdesc_index %4[%5] : !ttg.memdesc<4x1xf32, #shared, #smem, mutable> -> !ttg.memdesc<1xf32, #shared, #smem, mutable>
//     %132 = ttg.local_load %131 : !ttg.memdesc<1xf32, #shared, #smem, mutable> -> tensor<1xf32>
//     %133 = tt.unsplat %132 : tensor<1xf32>
//     %134 = ttg.memdesc_index %4[%6] : !ttg.memdesc<4x1xf32, #shared, #smem, mutable> -> !ttg.memdesc<1xf32, #shared, #smem, mutable>
//     %135 = ttg.local_load %134 : !ttg.memdesc<1xf32, #shared, #smem, mutable> -> tensor<1xf32>
//     %136 = tt.unsplat %135 : tensor<1xf32>
//     %137 = arith.addf %133, %136 : f32
//     %138 = ttg.memdesc_index %4[%7] : !ttg.memdesc<4x1xf32, #shared, #smem, mutable> -> !ttg.memdesc<1xf32, #shared, #smem, mutable>
//     %139 = ttg.local_load %138 : !ttg.memdesc<1xf32, #shared, #smem, mutable> -> tensor<1xf32>
//     %140 = tt.unsplat %139 : tensor<1xf32>
//     %141 = arith.addf %137, %140 : f32
//     %142 = ttg.memdesc_index %4[%8] : !ttg.memdesc<4x1xf32, #shared, #smem, mutable> -> !ttg.memdesc<1xf32, #shared, #smem, mutable>
//     %143 = ttg.local_load %142 : !ttg.memdesc<1xf32, #shared, #smem, mutable> -> tensor<1xf32>
//     %144 = tt.unsplat %143 : tensor<1xf32>
//     %145 = arith.addf %141, %144 : f32
//     ttg.barrier
//     scf.if %9 {
//       tt.store %112, %145 : !tt.ptr<f32>
//     }
//     tt.return
//   }
// }
// -----
// RUN: -target=xe:pvc -num-warps=4 -assign-layouts -distribute-to-warps -match-target-size
// The same along columns.

module {
  tt.func public @columns(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %out: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) attributes {noinline = false} {
    %cst = arith.constant dense<32> : tensor<64x1xi32>
    %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %c = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
    %0 = tt.expand_dims %r {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %1 = arith.muli %0, %cst : tensor<64x1xi32>
    %2 = tt.splat %x : !tt.ptr<f32> -> tensor<64x1x!tt.ptr<f32>>
    %3 = tt.addptr %2, %1 : tensor<64x1x!tt.ptr<f32>>, tensor<64x1xi32>
    %4 = tt.expand_dims %c {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
    %5 = tt.broadcast %3 : tensor<64x1x!tt.ptr<f32>> -> tensor<64x32x!tt.ptr<f32>>
    %6 = tt.broadcast %4 : tensor<1x32xi32> -> tensor<64x32xi32>
    %7 = tt.addptr %5, %6 : tensor<64x32x!tt.ptr<f32>>, tensor<64x32xi32>
    %values = tt.load %7 : tensor<64x32x!tt.ptr<f32>>
    %8 = tt.splat %out : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
    %9 = tt.addptr %8, %c : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
    %10 = "tt.reduce"(%values) <{axis = 0 : i32}> ({
    ^bb0(%arg3: f32, %arg4: f32):
      %11 = arith.maxnumf %arg3, %arg4 : f32
      tt.reduce.return %11 : f32
    }) : (tensor<64x32xf32>) -> tensor<32xf32>
    tt.store %9, %10 : tensor<32x!tt.ptr<f32>>
    tt.return
  }
}

// OUTPUT
// #shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
// #smem = #ttg.shared_memory
// module attributes {ttg.level = "intrinsic", "ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "xe:pvc", "ttg.threads-per-warp" = 16 : i32} {
//   tt.func public @columns(%arg0: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %arg1: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %arg2: i32) attributes {noinline = false} {
//     %c1_i32 = arith.constant 1 : i32
//     %c32_i32 = arith.constant 32 : i32
//     %c0_i32 = arith.constant 0 : i32
//     %c16_i32 = arith.constant 16 : i32
//     %c-3_i32 = arith.constant -3 : i32
//     %c2_i32 = arith.constant 2 : i32
//     %cst = arith.constant dense<32> : tensor<1x1xi32>
//     %0 = gpu.subgroup_id : index
//     %1 = arith.index_cast %0 : index to i32
//     %2 = arith.shrui %1, %c1_i32 : i32
//     %3 = arith.andi %2, %c1_i32 : i32
//     %4 = arith.muli %3, %c32_i32 : i32
//     %5 = arith.andi %1, %c1_i32 : i32
//     %6 = arith.muli %5, %c16_i32 : i32
//     %7 = ttg.local_alloc : () -> !ttg.memdesc<4x16xf32, #shared, #smem, mutable>
//     %8 = arith.andi %1, %c-3_i32 : i32
//     %9 = arith.ori %8, %c2_i32 : i32
//     %10 = arith.andi %1, %c2_i32 : i32
//     %11 = arith.cmpi eq, %10, %c0_i32 : i32
//     %12 = tt.make_range {end = 1 : i32, start = 0 : i32} : tensor<1xi32>
//     %13 = tt.make_range {end = 2 : i32, start = 1 : i32} : tensor<1xi32>
//     %14 = tt.make_range {end = 3 : i32, start = 2 : i32} : tensor<1xi32>
//     %15 = tt.make_range {end = 4 : i32, start = 3 : i32} : tensor<1xi32>
//     %16 = tt.make_range {end = 5 : i32, start = 4 : i32} : tensor<1xi32>
//     %17 = tt.make_range {end = 6 : i32, start = 5 : i32} : tensor<1xi32>
//     %18 = tt.make_range {end = 7 : i32, start = 6 : i32} : tensor<1xi32>
//     %19 = tt.make_range {end = 8 : i32, start = 7 : i32} : tensor<1xi32>
//     %20 = tt.make_range {end = 9 : i32, start = 8 : i32} : tensor<1xi32>
//     %21 = tt.make_range {end = 10 : i32, start = 9 : i32} : tensor<1xi32>
//     %22 = tt.make_range {end = 11 : i32, start = 10 : i32} : tensor<1xi32>
//     %23 = tt.make_range {end = 12 : i32, start = 11 : i32} : tensor<1xi32>
//     %24 = tt.make_range {end = 13 : i32, start = 12 : i32} : tensor<1xi32>
//     %25 = tt.make_range {end = 14 : i32, start = 13 : i32} : tensor<1xi32>
//     %26 = tt.make_range {end = 15 : i32, start = 14 : i32} : tensor<1xi32>
//     %27 = tt.make_range {end = 16 : i32, start = 15 : i32} : tensor<1xi32>
//     %28 = tt.make_range {end = 17 : i32, start = 16 : i32} : tensor<1xi32>
//     %29 = tt.make_range {end = 18 : i32, start = 17 : i32} : tensor<1xi32>
//     %30 = tt.make_range {end = 19 : i32, start = 18 : i32} : tensor<1xi32>
//     %31 = tt.make_range {end = 20 : i32, start = 19 : i32} : tensor<1xi32>
//     %32 = tt.make_range {end = 21 : i32, start = 20 : i32} : tensor<1xi32>
//     %33 = tt.make_range {end = 22 : i32, start = 21 : i32} : tensor<1xi32>
//     %34 = tt.make_range {end = 23 : i32, start = 22 : i32} : tensor<1xi32>
//     %35 = tt.make_range {end = 24 : i32, start = 23 : i32} : tensor<1xi32>
//     %36 = tt.make_range {end = 25 : i32, start = 24 : i32} : tensor<1xi32>
//     %37 = tt.make_range {end = 26 : i32, start = 25 : i32} : tensor<1xi32>
//     %38 = tt.make_range {end = 27 : i32, start = 26 : i32} : tensor<1xi32>
//     %39 = tt.make_range {end = 28 : i32, start = 27 : i32} : tensor<1xi32>
//     %40 = tt.make_range {end = 29 : i32, start = 28 : i32} : tensor<1xi32>
//     %41 = tt.make_range {end = 30 : i32, start = 29 : i32} : tensor<1xi32>
//     %42 = tt.make_range {end = 31 : i32, start = 30 : i32} : tensor<1xi32>
//     %43 = tt.make_range {end = 32 : i32, start = 31 : i32} : tensor<1xi32>
//     %44 = tt.splat %4 : i32 -> tensor<1xi32>
//     %45 = arith.addi %12, %44 : tensor<1xi32>
//     %46 = arith.addi %13, %44 : tensor<1xi32>
//     %47 = arith.addi %14, %44 : tensor<1xi32>
//     %48 = arith.addi %15, %44 : tensor<1xi32>
//     %49 = arith.addi %16, %44 : tensor<1xi32>
//     %50 = arith.addi %17, %44 : tensor<1xi32>
//     %51 = arith.addi %18, %44 : tensor<1xi32>
//     %52 = arith.addi %19, %44 : tensor<1xi32>
//     %53 = arith.addi %20, %44 : tensor<1xi32>
//     %54 = arith.addi %21, %44 : tensor<1xi32>
//     %55 = arith.addi %22, %44 : tensor<1xi32>
//     %56 = arith.addi %23, %44 : tensor<1xi32>
//     %57 = arith.addi %24, %44 : tensor<1xi32>
//     %58 = arith.addi %25, %44 : tensor<1xi32>
//     %59 = arith.addi %26, %44 : tensor<1xi32>
//     %60 = arith.addi %27, %44 : tensor<1xi32>
//     %61 = arith.addi %28, %44 : tensor<1xi32>
//     %62 = arith.addi %29, %44 : tensor<1xi32>
//     %63 = arith.addi %30, %44 : tensor<1xi32>
//     %64 = arith.addi %31, %44 : tensor<1xi32>
//     %65 = arith.addi %32, %44 : tensor<1xi32>
//     %66 = arith.addi %33, %44 : tensor<1xi32>
//     %67 = arith.addi %34, %44 : tensor<1xi32>
//     %68 = arith.addi %35, %44 : tensor<1xi32>
//     %69 = arith.addi %36, %44 : tensor<1xi32>
//     %70 = arith.addi %37, %44 : tensor<1xi32>
//     %71 = arith.addi %38, %44 : tensor<1xi32>
//     %72 = arith.addi %39, %44 : tensor<1xi32>
//     %73 = arith.addi %40, %44 : tensor<1xi32>
//     %74 = arith.addi %41, %44 : tensor<1xi32>
//     %75 = arith.addi %42, %44 : tensor<1xi32>
//     %76 = arith.addi %43, %44 : tensor<1xi32>
//     %77 = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
//     %78 = tt.splat %6 : i32 -> tensor<16xi32>
//     %79 = arith.addi %77, %78 : tensor<16xi32>
//     %80 = tt.expand_dims %45 {axis = 1 : i32} : tensor<1xi32> -> tensor<1x1xi32>
//     %81 = tt.expand_dims %46 {axis = 1 : i32} : tensor<1xi32> -> tensor<1x1xi32>
//     %82 = tt.expand_dims %47 {axis = 1 : i32} : tensor<1xi32> -> tensor<1x1xi32>
//     %83 = tt.expand_dims %48 {axis = 1 : i32} : tensor<1xi32> -> tensor<1x1xi32>
//     %84 = tt.expand_dims %49 {axis = 1 : i32} : tensor<1xi32> -> tensor<1x1xi32>
//     %85 = tt.expand_dims %50 {axis = 1 : i32} : tensor<1xi32> -> tensor<1x1xi32>
//     %86 = tt.expand_dims %51 {axis = 1 : i32} : tensor<1xi32> -> tensor<1x1xi32>
//     %87 = tt.expand_dims %52 {axis = 1 : i32} : tensor<1xi32> -> tensor<1x1xi32>
//     %88 = tt.expand_dims %53 {axis = 1 : i32} : tensor<1xi32> -> tensor<1x1xi32>
//     %89 = tt.expand_dims %54 {axis = 1 : i32} : tensor<1xi32> -> tensor<1x1xi32>
//     %90 = tt.expand_dims %55 {axis = 1 : i32} : tensor<1xi32> -> tensor<1x1xi32>
//     %91 = tt.expand_dims %56 {axis = 1 : i32} : tensor<1xi32> -> tensor<1x1xi32>
//     %92 = tt.expand_dims %57 {axis = 1 : i32} : tensor<1xi32> -> tensor<1x1xi32>
//     %93 = tt.expand_dims %58 {axis = 1 : i32} : tensor<1xi32> -> tensor<1x1xi32>
//     %94 = tt.expand_dims %59 {axis = 1 : i32} : tensor<1xi32> -> tensor<1x1xi32>
//     %95 = tt.expand_dims %60 {axis = 1 : i32} : tensor<1xi32> -> tensor<1x1xi32>
//     %96 = tt.expand_dims %61 {axis = 1 : i32} : tensor<1xi32> -> tensor<1x1xi32>
//     %97 = tt.expand_dims %62 {axis = 1 : i32} : tensor<1xi32> -> tensor<1x1xi32>
//     %98 = tt.expand_dims %63 {axis = 1 : i32} : tensor<1xi32> -> tensor<1x1xi32>
//     %99 = tt.expand_dims %64 {axis = 1 : i32} : tensor<1xi32> -> tensor<1x1xi32>
//     %100 = tt.expand_dims %65 {axis = 1 : i32} : tensor<1xi32> -> tensor<1x1xi32>
//     %101 = tt.expand_dims %66 {axis = 1 : i32} : tensor<1xi32> -> tensor<1x1xi32>
//     %102 = tt.expand_dims %67 {axis = 1 : i32} : tensor<1xi32> -> tensor<1x1xi32>
//     %103 = tt.expand_dims %68 {axis = 1 : i32} : tensor<1xi32> -> tensor<1x1xi32>
//     %104 = tt.expand_dims %69 {axis = 1 : i32} : tensor<1xi32> -> tensor<1x1xi32>
//     %105 = tt.expand_dims %70 {axis = 1 : i32} : tensor<1xi32> -> tensor<1x1xi32>
//     %106 = tt.expand_dims %71 {axis = 1 : i32} : tensor<1xi32> -> tensor<1x1xi32>
//     %107 = tt.expand_dims %72 {axis = 1 : i32} : tensor<1xi32> -> tensor<1x1xi32>
//     %108 = tt.expand_dims %73 {axis = 1 : i32} : tensor<1xi32> -> tensor<1x1xi32>
//     %109 = tt.expand_dims %74 {axis = 1 : i32} : tensor<1xi32> -> tensor<1x1xi32>
//     %110 = tt.expand_dims %75 {axis = 1 : i32} : tensor<1xi32> -> tensor<1x1xi32>
//     %111 = tt.expand_dims %76 {axis = 1 : i32} : tensor<1xi32> -> tensor<1x1xi32>
//     %112 = arith.muli %80, %cst : tensor<1x1xi32>
//     %113 = arith.muli %81, %cst : tensor<1x1xi32>
//     %114 = arith.muli %82, %cst : tensor<1x1xi32>
//     %115 = arith.muli %83, %cst : tensor<1x1xi32>
//     %116 = arith.muli %84, %cst : tensor<1x1xi32>
//     %117 = arith.muli %85, %cst : tensor<1x1xi32>
//     %118 = arith.muli %86, %cst : tensor<1x1xi32>
//     %119 = arith.muli %87, %cst : tensor<1x1xi32>
//     %120 = arith.muli %88, %cst : tensor<1x1xi32>
//     %121 = arith.muli %89, %cst : tensor<1x1xi32>
//     %122 = arith.muli %90, %cst : tensor<1x1xi32>
//     %123 = arith.muli %91, %cst : tensor<1x1xi32>
//     %124 = arith.muli %92, %cst : tensor<1x1xi32>
//     %125 = arith.muli %93, %cst : tensor<1x1xi32>
//     %126 = arith.muli %94, %cst : tensor<1x1xi32>
//     %127 = arith.muli %95, %cst : tensor<1x1xi32>
//     %128 = arith.muli %96, %cst : tensor<1x1xi32>
//     %129 = arith.muli %97, %cst : tensor<1x1xi32>
//     %130 = arith.muli %98, %cst : tensor<1x1xi32>
//     %131 = arith.muli %99, %cst : tensor<1x1xi32>
//     %132 = arith.muli %100, %cst : tensor<1x1xi32>
//     %133 = arith.muli %101, %cst : tensor<1x1xi32>
//     %134 = arith.muli %102, %cst : tensor<1x1xi32>
//     %135 = arith.muli %103, %cst : tensor<1x1xi32>
//     %136 = arith.muli %104, %cst : tensor<1x1xi32>
//     %137 = arith.muli %105, %cst : tensor<1x1xi32>
//     %138 = arith.muli %106, %cst : tensor<1x1xi32>
//     %139 = arith.muli %107, %cst : tensor<1x1xi32>
//     %140 = arith.muli %108, %cst : tensor<1x1xi32>
//     %141 = arith.muli %109, %cst : tensor<1x1xi32>
//     %142 = arith.muli %110, %cst : tensor<1x1xi32>
//     %143 = arith.muli %111, %cst : tensor<1x1xi32>
//     %144 = tt.splat %arg0 : !tt.ptr<f32> -> tensor<1x1x!tt.ptr<f32>>
//     %145 = tt.addptr %144, %112 : tensor<1x1x!tt.ptr<f32>>, tensor<1x1xi32>
//     %146 = tt.addptr %144, %113 : tensor<1x1x!tt.ptr<f32>>, tensor<1x1xi32>
//     %147 = tt.addptr %144, %114 : tensor<1x1x!tt.ptr<f32>>, tensor<1x1xi32>
//     %148 = tt.addptr %144, %115 : tensor<1x1x!tt.ptr<f32>>, tensor<1x1xi32>
//     %149 = tt.addptr %144, %116 : tensor<1x1x!tt.ptr<f32>>, tensor<1x1xi32>
//     %150 = tt.addptr %144, %117 : tensor<1x1x!tt.ptr<f32>>, tensor<1x1xi32>
//     %151 = tt.addptr %144, %118 : tensor<1x1x!tt.ptr<f32>>, tensor<1x1xi32>
//     %152 = tt.addptr %144, %119 : tensor<1x1x!tt.ptr<f32>>, tensor<1x1xi32>
//     %153 = tt.addptr %144, %120 : tensor<1x1x!tt.ptr<f32>>, tensor<1x1xi32>
//     %154 = tt.addptr %144, %121 : tensor<1x1x!tt.ptr<f32>>, tensor<1x1xi32>
//     %155 = tt.addptr %144, %122 : tensor<1x1x!tt.ptr<f32>>, tensor<1x1xi32>
//     %156 = tt.addptr %144, %123 : tensor<1x1x!tt.ptr<f32>>, tensor<1x1xi32>
//     %157 = tt.addptr %144, %124 : tensor<1x1x!tt.ptr<f32>>, tensor<1x1xi32>
//     %158 = tt.addptr %144, %125 : tensor<1x1x!tt.ptr<f32>>, tensor<1x1xi32>
//     %159 = tt.addptr %144, %126 : tensor<1x1x!tt.ptr<f32>>, tensor<1x1xi32>
//     %160 = tt.addptr %144, %127 : tensor<1x1x!tt.ptr<f32>>, tensor<1x1xi32>
//     %161 = tt.addptr %144, %128 : tensor<1x1x!tt.ptr<f32>>, tensor<1x1xi32>
//     %162 = tt.addptr %144, %129 : tensor<1x1x!tt.ptr<f32>>, tensor<1x1xi32>
//     %163 = tt.addptr %144, %130 : tensor<1x1x!tt.ptr<f32>>, tensor<1x1xi32>
//     %164 = tt.addptr %144, %131 : tensor<1x1x!tt.ptr<f32>>, tensor<1x1xi32>
//     %165 = tt.addptr %144, %132 : tensor<1x1x!tt.ptr<f32>>, tensor<1x1xi32>
//     %166 = tt.addptr %144, %133 : tensor<1x1x!tt.ptr<f32>>, tensor<1x1xi32>
//     %167 = tt.addptr %144, %134 : tensor<1x1x!tt.ptr<f32>>, tensor<1x1xi32>
//     %168 = tt.addptr %144, %135 : tensor<1x1x!tt.ptr<f32>>, tensor<1x1xi32>
//     %169 = tt.addptr %144, %136 : tensor<1x1x!tt.ptr<f32>>, tensor<1x1xi32>
//     %170 = tt.addptr %144, %137 : tensor<1x1x!tt.ptr<f32>>, tensor<1x1xi32>
//     %171 = tt.addptr %144, %138 : tensor<1x1x!tt.ptr<f32>>, tensor<1x1xi32>
//     %172 = tt.addptr %144, %139 : tensor<1x1x!tt.ptr<f32>>, tensor<1x1xi32>
//     %173 = tt.addptr %144, %140 : tensor<1x1x!tt.ptr<f32>>, tensor<1x1xi32>
//     %174 = tt.addptr %144, %141 : tensor<1x1x!tt.ptr<f32>>, tensor<1x1xi32>
//     %175 = tt.addptr %144, %142 : tensor<1x1x!tt.ptr<f32>>, tensor<1x1xi32>
//     %176 = tt.addptr %144, %143 : tensor<1x1x!tt.ptr<f32>>, tensor<1x1xi32>
//     %177 = tt.expand_dims %79 {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
//     %178 = tt.broadcast %145 : tensor<1x1x!tt.ptr<f32>> -> tensor<1x16x!tt.ptr<f32>>
//     %179 = tt.broadcast %146 : tensor<1x1x!tt.ptr<f32>> -> tensor<1x16x!tt.ptr<f32>>
//     %180 = tt.broadcast %147 : tensor<1x1x!tt.ptr<f32>> -> tensor<1x16x!tt.ptr<f32>>
//     %181 = tt.broadcast %148 : tensor<1x1x!tt.ptr<f32>> -> tensor<1x16x!tt.ptr<f32>>
//     %182 = tt.broadcast %149 : tensor<1x1x!tt.ptr<f32>> -> tensor<1x16x!tt.ptr<f32>>
//     %183 = tt.broadcast %150 : tensor<1x1x!tt.ptr<f32>> -> tensor<1x16x!tt.ptr<f32>>
//     %184 = tt.broadcast %151 : tensor<1x1x!tt.ptr<f32>> -> tensor<1x16x!tt.ptr<f32>>
//     %185 = tt.broadcast %152 : tensor<1x1x!tt.ptr<f32>> -> tensor<1x16x!tt.ptr<f32>>
//     %186 = tt.broadcast %153 : tensor<1x1x!tt.ptr<f32>> -> tensor<1x16x!tt.ptr<f32>>
//     %187 = tt.broadcast %154 : tensor<1x1x!tt.ptr<f32>> -> tensor<1x16x!tt.ptr<f32>>
//     %188 = tt.broadcast %155 : tensor<1x1x!tt.ptr<f32>> -> tensor<1x16x!tt.ptr<f32>>
//     %189 = tt.broadcast %156 : tensor<1x1x!tt.ptr<f32>> -> tensor<1x16x!tt.ptr<f32>>
//     %190 = tt.broadcast %157 : tensor<1x1x!tt.ptr<f32>> -> tensor<1x16x!tt.ptr<f32>>
//     %191 = tt.broadcast %158 : tensor<1x1x!tt.ptr<f32>> -> tensor<1x16x!tt.ptr<f32>>
//     %192 = tt.broadcast %159 : tensor<1x1x!tt.ptr<f32>> -> tensor<1x16x!tt.ptr<f32>>
//     %193 = tt.broadcast %160 : tensor<1x1x!tt.ptr<f32>> -> tensor<1x16x!tt.ptr<f32>>
//     %194 = tt.broadcast %161 : tensor<1x1x!tt.ptr<f32>> -> tensor<1x16x!tt.ptr<f32>>
//     %195 = tt.broadcast %162 : tensor<1x1x!tt.ptr<f32>> -> tensor<1x16x!tt.ptr<f32>>
//     %196 = tt.broadcast %163 : tensor<1x1x!tt.ptr<f32>> -> tensor<1x16x!tt.ptr<f32>>
//     %197 = tt.broadcast %164 : tensor<1x1x!tt.ptr<f32>> -> tensor<1x16x!tt.ptr<f32>>
//     %198 = tt.broadcast %165 : tensor<1x1x!tt.ptr<f32>> -> tensor<1x16x!tt.ptr<f32>>
//     %199 = tt.broadcast %166 : tensor<1x1x!tt.ptr<f32>> -> tensor<1x16x!tt.ptr<f32>>
//     %200 = tt.broadcast %167 : tensor<1x1x!tt.ptr<f32>> -> tensor<1x16x!tt.ptr<f32>>
//     %201 = tt.broadcast %168 : tensor<1x1x!tt.ptr<f32>> -> tensor<1x16x!tt.ptr<f32>>
//     %202 = tt.broadcast %169 : tensor<1x1x!tt.ptr<f32>> -> tensor<1x16x!tt.ptr<f32>>
//     %203 = tt.broadcast %170 : tensor<1x1x!tt.ptr<f32>> -> tensor<1x16x!tt.ptr<f32>>
//     %204 = tt.broadcast %171 : tensor<1x1x!tt.ptr<f32>> -> tensor<1x16x!tt.ptr<f32>>
//     %205 = tt.broadcast %172 : tensor<1x1x!tt.ptr<f32>> -> tensor<1x16x!tt.ptr<f32>>
//     %206 = tt.broadcast %173 : tensor<1x1x!tt.ptr<f32>> -> tensor<1x16x!tt.ptr<f32>>
//     %207 = tt.broadcast %174 : tensor<1x1x!tt.ptr<f32>> -> tensor<1x16x!tt.ptr<f32>>
//     %208 = tt.broadcast %175 : tensor<1x1x!tt.ptr<f32>> -> tensor<1x16x!tt.ptr<f32>>
//     %209 = tt.broadcast %176 : tensor<1x1x!tt.ptr<f32>> -> tensor<1x16x!tt.ptr<f32>>
//     %210 = tt.addptr %178, %177 : tensor<1x16x!tt.ptr<f32>>, tensor<1x16xi32>
//     %211 = tt.addptr %179, %177 : tensor<1x16x!tt.ptr<f32>>, tensor<1x16xi32>
//     %212 = tt.addptr %180, %177 : tensor<1x16x!tt.ptr<f32>>, tensor<1x16xi32>
//     %213 = tt.addptr %181, %177 : tensor<1x16x!tt.ptr<f32>>, tensor<1x16xi32>
//     %214 = tt.addptr %182, %177 : tensor<1x16x!tt.ptr<f32>>, tensor<1x16xi32>
//     %215 = tt.addptr %183, %177 : tensor<1x16x!tt.ptr<f32>>, tensor<1x16xi32>
//     %216 = tt.addptr %184, %177 : tensor<1x16x!tt.ptr<f32>>, tensor<1x16xi32>
//     %217 = tt.addptr %185, %177 : tensor<1x16x!tt.ptr<f32>>, tensor<1x16xi32>
//     %218 = tt.addptr %186, %177 : tensor<1x16x!tt.ptr<f32>>, tensor<1x16xi32>
//     %219 = tt.addptr %187, %177 : tensor<1x16x!tt.ptr<f32>>, tensor<1x16xi32>
//     %220 = tt.addptr %188, %177 : tensor<1x16x!tt.ptr<f32>>, tensor<1x16xi32>
//     %221 = tt.addptr %189, %177 : tensor<1x16x!tt.ptr<f32>>, tensor<1x16xi32>
//     %222 = tt.addptr %190, %177 : tensor<1x16x!tt.ptr<f32>>, tensor<1x16xi32>
//     %223 = tt.addptr %191, %177 : tensor<1x16x!tt.ptr<f32>>, tensor<1x16xi32>
//     %224 = tt.addptr %192, %177 : tensor<1x16x!tt.ptr<f32>>, tensor<1x16xi32>
//     %225 = tt.addptr %193, %177 : tensor<1x16x!tt.ptr<f32>>, tensor<1x16xi32>
//     %226 = tt.addptr %194, %177 : tensor<1x16x!tt.ptr<f32>>, tensor<1x16xi32>
//     %227 = tt.addptr %195, %177 : tensor<1x16x!tt.ptr<f32>>, tensor<1x16xi32>
//     %228 = tt.addptr %196, %177 : tensor<1x16x!tt.ptr<f32>>, tensor<1x16xi32>
//     %229 = tt.addptr %197, %177 : tensor<1x16x!tt.ptr<f32>>, tensor<1x16xi32>
//     %230 = tt.addptr %198, %177 : tensor<1x16x!tt.ptr<f32>>, tensor<1x16xi32>
//     %231 = tt.addptr %199, %177 : tensor<1x16x!tt.ptr<f32>>, tensor<1x16xi32>
//     %232 = tt.addptr %200, %177 : tensor<1x16x!tt.ptr<f32>>, tensor<1x16xi32>
//     %233 = tt.addptr %201, %177 : tensor<1x16x!tt.ptr<f32>>, tensor<1x16xi32>
//     %234 = tt.addptr %202, %177 : tensor<1x16x!tt.ptr<f32>>, tensor<1x16xi32>
//     %235 = tt.addptr %203, %177 : tensor<1x16x!tt.ptr<f32>>, tensor<1x16xi32>
//     %236 = tt.addptr %204, %177 : tensor<1x16x!tt.ptr<f32>>, tensor<1x16xi32>
//     %237 = tt.addptr %205, %177 : tensor<1x16x!tt.ptr<f32>>, tensor<1x16xi32>
//     %238 = tt.addptr %206, %177 : tensor<1x16x!tt.ptr<f32>>, tensor<1x16xi32>
//     %239 = tt.addptr %207, %177 : tensor<1x16x!tt.ptr<f32>>, tensor<1x16xi32>
//     %240 = tt.addptr %208, %177 : tensor<1x16x!tt.ptr<f32>>, tensor<1x16xi32>
//     %241 = tt.addptr %209, %177 : tensor<1x16x!tt.ptr<f32>>, tensor<1x16xi32>
//     %242 = tt.load %210 {tt.vec = 4 : i32, tt.vec_axis = 1 : i32} : tensor<1x16x!tt.ptr<f32>>
//     %243 = tt.load %211 {tt.vec = 4 : i32, tt.vec_axis = 1 : i32} : tensor<1x16x!tt.ptr<f32>>
//     %244 = tt.load %212 {tt.vec = 4 : i32, tt.vec_axis = 1 : i32} : tensor<1x16x!tt.ptr<f32>>
//     %245 = tt.load %213 {tt.vec = 4 : i32, tt.vec_axis = 1 : i32} : tensor<1x16x!tt.ptr<f32>>
//     %246 = tt.load %214 {tt.vec = 4 : i32, tt.vec_axis = 1 : i32} : tensor<1x16x!tt.ptr<f32>>
//     %247 = tt.load %215 {tt.vec = 4 : i32, tt.vec_axis = 1 : i32} : tensor<1x16x!tt.ptr<f32>>
//     %248 = tt.load %216 {tt.vec = 4 : i32, tt.vec_axis = 1 : i32} : tensor<1x16x!tt.ptr<f32>>
//     %249 = tt.load %217 {tt.vec = 4 : i32, tt.vec_axis = 1 : i32} : tensor<1x16x!tt.ptr<f32>>
//     %250 = tt.load %218 {tt.vec = 4 : i32, tt.vec_axis = 1 : i32} : tensor<1x16x!tt.ptr<f32>>
//     %251 = tt.load %219 {tt.vec = 4 : i32, tt.vec_axis = 1 : i32} : tensor<1x16x!tt.ptr<f32>>
//     %252 = tt.load %220 {tt.vec = 4 : i32, tt.vec_axis = 1 : i32} : tensor<1x16x!tt.ptr<f32>>
//     %253 = tt.load %221 {tt.vec = 4 : i32, tt.vec_axis = 1 : i32} : tensor<1x16x!tt.ptr<f32>>
//     %254 = tt.load %222 {tt.vec = 4 : i32, tt.vec_axis = 1 : i32} : tensor<1x16x!tt.ptr<f32>>
//     %255 = tt.load %223 {tt.vec = 4 : i32, tt.vec_axis = 1 : i32} : tensor<1x16x!tt.ptr<f32>>
//     %256 = tt.load %224 {tt.vec = 4 : i32, tt.vec_axis = 1 : i32} : tensor<1x16x!tt.ptr<f32>>
//     %257 = tt.load %225 {tt.vec = 4 : i32, tt.vec_axis = 1 : i32} : tensor<1x16x!tt.ptr<f32>>
//     %258 = tt.load %226 {tt.vec = 4 : i32, tt.vec_axis = 1 : i32} : tensor<1x16x!tt.ptr<f32>>
//     %259 = tt.load %227 {tt.vec = 4 : i32, tt.vec_axis = 1 : i32} : tensor<1x16x!tt.ptr<f32>>
//     %260 = tt.load %228 {tt.vec = 4 : i32, tt.vec_axis = 1 : i32} : tensor<1x16x!tt.ptr<f32>>
//     %261 = tt.load %229 {tt.vec = 4 : i32, tt.vec_axis = 1 : i32} : tensor<1x16x!tt.ptr<f32>>
//     %262 = tt.load %230 {tt.vec = 4 : i32, tt.vec_axis = 1 : i32} : tensor<1x16x!tt.ptr<f32>>
//     %263 = tt.load %231 {tt.vec = 4 : i32, tt.vec_axis = 1 : i32} : tensor<1x16x!tt.ptr<f32>>
//     %264 = tt.load %232 {tt.vec = 4 : i32, tt.vec_axis = 1 : i32} : tensor<1x16x!tt.ptr<f32>>
//     %265 = tt.load %233 {tt.vec = 4 : i32, tt.vec_axis = 1 : i32} : tensor<1x16x!tt.ptr<f32>>
//     %266 = tt.load %234 {tt.vec = 4 : i32, tt.vec_axis = 1 : i32} : tensor<1x16x!tt.ptr<f32>>
//     %267 = tt.load %235 {tt.vec = 4 : i32, tt.vec_axis = 1 : i32} : tensor<1x16x!tt.ptr<f32>>
//     %268 = tt.load %236 {tt.vec = 4 : i32, tt.vec_axis = 1 : i32} : tensor<1x16x!tt.ptr<f32>>
//     %269 = tt.load %237 {tt.vec = 4 : i32, tt.vec_axis = 1 : i32} : tensor<1x16x!tt.ptr<f32>>
//     %270 = tt.load %238 {tt.vec = 4 : i32, tt.vec_axis = 1 : i32} : tensor<1x16x!tt.ptr<f32>>
//     %271 = tt.load %239 {tt.vec = 4 : i32, tt.vec_axis = 1 : i32} : tensor<1x16x!tt.ptr<f32>>
//     %272 = tt.load %240 {tt.vec = 4 : i32, tt.vec_axis = 1 : i32} : tensor<1x16x!tt.ptr<f32>>
//     %273 = tt.load %241 {tt.vec = 4 : i32, tt.vec_axis = 1 : i32} : tensor<1x16x!tt.ptr<f32>>
//     %274 = tt.splat %arg1 : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
//     %275 = tt.addptr %274, %79 : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
//     %276 = arith.maxnumf %242, %243 : tensor<1x16xf32>
//     %277 = arith.maxnumf %276, %244 : tensor<1x16xf32>
//     %278 = arith.maxnumf %277, %245 : tensor<1x16xf32>
//     %279 = arith.maxnumf %278, %246 : tensor<1x16xf32>
//     %280 = arith.maxnumf %279, %247 : tensor<1x16xf32>
//     %281 = arith.maxnumf %280, %248 : tensor<1x16xf32>
//     %282 = arith.maxnumf %281, %249 : tensor<1x16xf32>
//     %283 = arith.maxnumf %282, %250 : tensor<1x16xf32>
//     %284 = arith.maxnumf %283, %251 : tensor<1x16xf32>
//     %285 = arith.maxnumf %284, %252 : tensor<1x16xf32>
//     %286 = arith.maxnumf %285, %253 : tensor<1x16xf32>
//     %287 = arith.maxnumf %286, %254 : tensor<1x16xf32>
//     %288 = arith.maxnumf %287, %255 : tensor<1x16xf32>
//     %289 = arith.maxnumf %288, %256 : tensor<1x16xf32>
//     %290 = arith.maxnumf %289, %257 : tensor<1x16xf32>
//     %291 = arith.maxnumf %290, %258 : tensor<1x16xf32>
//     %292 = arith.maxnumf %291, %259 : tensor<1x16xf32>
//     %293 = arith.maxnumf %292, %260 : tensor<1x16xf32>
//     %294 = arith.maxnumf %293, %261 : tensor<1x16xf32>
//     %295 = arith.maxnumf %294, %262 : tensor<1x16xf32>
//     %296 = arith.maxnumf %295, %263 : tensor<1x16xf32>
//     %297 = arith.maxnumf %296, %264 : tensor<1x16xf32>
//     %298 = arith.maxnumf %297, %265 : tensor<1x16xf32>
//     %299 = arith.maxnumf %298, %266 : tensor<1x16xf32>
//     %300 = arith.maxnumf %299, %267 : tensor<1x16xf32>
//     %301 = arith.maxnumf %300, %268 : tensor<1x16xf32>
//     %302 = arith.maxnumf %301, %269 : tensor<1x16xf32>
//     %303 = arith.maxnumf %302, %270 : tensor<1x16xf32>
//     %304 = arith.maxnumf %303, %271 : tensor<1x16xf32>
//     %305 = arith.maxnumf %304, %272 : tensor<1x16xf32>
//     %306 = arith.maxnumf %305, %273 : tensor<1x16xf32>
//     %307 = "tt.reduce"(%306) <{axis = 0 : i32}> ({
//     ^bb0(%arg3: f32, %arg4: f32):
//       %314 = arith.maxnumf %arg3, %arg4 : f32
//       tt.reduce.return %314 : f32
//     }) : (tensor<1x16xf32>) -> tensor<16xf32>
//     %308 = ttg.memdesc_index %7[%1] : !ttg.memdesc<4x16xf32, #shared, #smem, mutable> -> !ttg.memdesc<16xf32, #shared, #smem, mutable>
//     ttg.local_store %307, %308 : tensor<16xf32> -> !ttg.memdesc<16xf32, #shared, #smem, mutable>
//     ttg.barrier
//     %309 = ttg.memdesc_index %7[%8] : !ttg.memdesc<4x16xf32, #shared, #smem, mutable> -> !ttg.memdesc<16xf32, #shared, #smem, mutable>
//     %310 = ttg.local_load %309 : !ttg.memdesc<16xf32, #shared, #smem, mutable> -> tensor<16xf32>
//     %311 = ttg.memdesc_index %7[%9] : !ttg.memdesc<4x16xf32, #shared, #smem, mutable> -> !ttg.memdesc<16xf32, #shared, #smem, mutable>
//     %312 = ttg.local_load %311 : !ttg.memdesc<16xf32, #shared, #smem, mutable> -> tensor<16xf32>
//     %313 = arith.maxnumf %310, %312 : tensor<16xf32>
//     ttg.barrier
//     scf.if %11 {
//       tt.store %275, %313 {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>>
//     }
//     tt.return
//   }
// }
// -----
// RUN: -target=xe:pvc -num-warps=1 -assign-layouts -distribute-to-warps -match-target-size
// ERROR: not supported yet: a dot of f64 by f64 to f64 with the input precision ieee, for which the target has no instruction
tt.func public @f(%p: !tt.ptr<f64>) {
  %x = tt.splat %p : !tt.ptr<f64> -> tensor<32x32x!tt.ptr<f64>>
  %a = tt.load %x : tensor<32x32x!tt.ptr<f64>>
  %c = arith.constant dense<0.0> : tensor<32x32xf64>
  %d = tt.dot %a, %a, %c : tensor<32x32xf64> * tensor<32x32xf64> -> tensor<32x32xf64>
  tt.store %x, %d : tensor<32x32x!tt.ptr<f64>>
  tt.return
}
// -----
// RUN: -target=xe:pvc -num-warps=4 -assign-layouts -distribute-to-warps -match-target-size
// ERROR: not supported yet: `tt.dot` of 16x16 by 16x8 in each warp, where an instruction has 16 along K and 16 columns
tt.func public @f(%p: !tt.ptr<f16>, %q: !tt.ptr<f32>) {
  %x = tt.splat %p : !tt.ptr<f16> -> tensor<64x16x!tt.ptr<f16>>
  %a = tt.load %x : tensor<64x16x!tt.ptr<f16>>
  %y = tt.splat %p : !tt.ptr<f16> -> tensor<16x8x!tt.ptr<f16>>
  %b = tt.load %y : tensor<16x8x!tt.ptr<f16>>
  %c = arith.constant dense<0.0> : tensor<64x8xf32>
  %d = tt.dot %a, %b, %c : tensor<64x16xf16> * tensor<16x8xf16> -> tensor<64x8xf32>
  %z = tt.splat %q : !tt.ptr<f32> -> tensor<64x8x!tt.ptr<f32>>
  tt.store %z, %d : tensor<64x8x!tt.ptr<f32>>
  tt.return
}
// -----
// RUN: -target=xe:pvc -num-warps=1 -assign-layouts -match-target-size
// ERROR: each tensor is what one warp has
tt.func public @f() { tt.return }
