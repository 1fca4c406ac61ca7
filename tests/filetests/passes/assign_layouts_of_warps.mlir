// RUN: -target=xe:pvc -num-warps=32 -assign-layouts
// ML-Triton, Listing 2: a square for a product, and the operands as Table 3 says.

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

// CHECK: #blocked = #ttg.blocked<{sizePerWarp = [32, 64], warpsPerCTA = [8, 4], order = [1, 0]}>
// CHECK: [[CST:%.*]] = arith.constant dense<0.000000e+00> : tensor<256x256xf32, #blocked>
// CHECK: [[AP:%.*]] = tt.make_tensor_descriptor %arg0, {{.*}} : <f16>, <tensor<256x32xf16>>
// CHECK: [[BP:%.*]] = tt.make_tensor_descriptor %arg1, {{.*}} : <f16>, <tensor<32x256xf16>>
// CHECK: [[DP:%.*]] = tt.make_tensor_descriptor %arg2, {{.*}} : <f32>, <tensor<256x256xf32>>
// CHECK: [[LOOP:%.*]] = scf.for [[K:%.*]] = {{.*}} iter_args([[ACC:%.*]] = [[CST]]) -> (tensor<256x256xf32, #blocked>)
// CHECK-NEXT: [[A:%.*]] = tt.descriptor_load [[AP]]{{.*}}[[ROWS:%.*]], [[K]]] : {{.*}} -> tensor<256x32xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
// CHECK-NEXT: [[B:%.*]] = tt.descriptor_load [[BP]]{{.*}}[[K]], [[COLUMNS:%.*]]] : {{.*}} -> tensor<32x256xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>>
// CHECK-NEXT: [[D:%.*]] = tt.dot [[A]], [[B]], [[ACC]], inputPrecision = tf32 : tensor<256x32xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> * tensor<32x256xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<256x256xf32, #blocked>
// CHECK-NEXT: scf.yield [[D]] : tensor<256x256xf32, #blocked>
// CHECK: tt.descriptor_store [[DP]]{{.*}}[[ROWS]], [[COLUMNS]]], [[LOOP]] : !tt.tensordesc<tensor<256x256xf32>>, tensor<256x256xf32, #blocked>
// -----
// RUN: -target=xe:pvc -num-warps=8 -assign-layouts
// ML-Triton, Table 5: rows for the last product, and all else from it.

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
// #blocked = #ttg.blocked<{sizePerWarp = [16, 64], warpsPerCTA = [8, 1], order = [1, 0]}>
// #blocked1 = #ttg.blocked<{sizePerWarp = [64, 64], warpsPerCTA = [1, 8], order = [0, 1]}>
// module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "xe:pvc", "ttg.threads-per-warp" = 16 : i32} {
//   tt.func public @attention(%arg0: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %arg1: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %arg2: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %arg3: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %arg4: f32, %arg5: i32 {tt.divisibility = 16 : i32}) attributes {noinline = false} {
//     %c128_i32 = arith.constant 128 : i32
//     %c64_i64 = arith.constant 64 : i64
//     %c1_i64 = arith.constant 1 : i64
//     %cst = arith.constant dense<0xFF800000> : tensor<128xf32, #ttg.slice<{dim = 1, parent = #ttg.dot_op<{opIdx = 0, parent = #blocked}>}>>
//     %cst_0 = arith.constant dense<0.000000e+00> : tensor<128xf32, #ttg.slice<{dim = 1, parent = #ttg.dot_op<{opIdx = 0, parent = #blocked}>}>>
//     %cst_1 = arith.constant dense<0.000000e+00> : tensor<128x64xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
//     %cst_2 = arith.constant dense<0.000000e+00> : tensor<128x64xf32, #blocked>
//     %c0_i32 = arith.constant 0 : i32
//     %c64_i32 = arith.constant 64 : i32
//     %0 = tt.get_program_id x : i32
//     %1 = arith.muli %0, %c128_i32 : i32
//     %2 = tt.make_tensor_descriptor %arg0, [%arg5, %c64_i32], [%c64_i64, %c1_i64] : <f16>, <tensor<128x64xf16>>
//     %3 = tt.make_tensor_descriptor %arg1, [%arg5, %c64_i32], [%c64_i64, %c1_i64] : <f16>, <tensor<64x64xf16>>
//     %4 = tt.make_tensor_descriptor %arg2, [%arg5, %c64_i32], [%c64_i64, %c1_i64] : <f16>, <tensor<64x64xf16>>
//     %5 = tt.make_tensor_descriptor %arg3, [%arg5, %c64_i32], [%c64_i64, %c1_i64] : <f16>, <tensor<128x64xf16>>
//     %6 = tt.descriptor_load %2[%1, %c0_i32] : !tt.tensordesc<tensor<128x64xf16>> -> tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #ttg.dot_op<{opIdx = 0, parent = #blocked}>}>>
//     %7 = tt.splat %arg4 : f32 -> tensor<128x64xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
//     %8:3 = scf.for %arg6 = %c0_i32 to %arg5 step %c64_i32 iter_args(%arg7 = %cst, %arg8 = %cst_0, %arg9 = %cst_2) -> (tensor<128xf32, #ttg.slice<{dim = 1, parent = #ttg.dot_op<{opIdx = 0, parent = #blocked}>}>>, tensor<128xf32, #ttg.slice<{dim = 1, parent = #ttg.dot_op<{opIdx = 0, parent = #blocked}>}>>, tensor<128x64xf32, #blocked>)  : i32 {
//       %14 = tt.descriptor_load %3[%arg6, %c0_i32] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16, #blocked1>
//       %15 = tt.trans %14 {order = array<i32: 1, 0>} : tensor<64x64xf16, #blocked1> -> tensor<64x64xf16, #ttg.dot_op<{opIdx = 1, parent = #ttg.dot_op<{opIdx = 0, parent = #blocked}>}>>
//       %16 = tt.dot %6, %15, %cst_1, inputPrecision = tf32 : tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #ttg.dot_op<{opIdx = 0, parent = #blocked}>}>> * tensor<64x64xf16, #ttg.dot_op<{opIdx = 1, parent = #ttg.dot_op<{opIdx = 0, parent = #blocked}>}>> -> tensor<128x64xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
//       %17 = arith.mulf %16, %7 : tensor<128x64xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
//       %18 = "tt.reduce"(%17) <{axis = 1 : i32}> ({
//       ^bb0(%arg10: f32, %arg11: f32):
//         %36 = arith.maxnumf %arg10, %arg11 : f32
//         tt.reduce.return %36 : f32
//       }) : (tensor<128x64xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>) -> tensor<128xf32, #ttg.slice<{dim = 1, parent = #ttg.dot_op<{opIdx = 0, parent = #blocked}>}>>
//       %19 = arith.maxnumf %arg7, %18 : tensor<128xf32, #ttg.slice<{dim = 1, parent = #ttg.dot_op<{opIdx = 0, parent = #blocked}>}>>
//       %20 = tt.expand_dims %19 {axis = 1 : i32} : tensor<128xf32, #ttg.slice<{dim = 1, parent = #ttg.dot_op<{opIdx = 0, parent = #blocked}>}>> -> tensor<128x1xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
//       %21 = tt.broadcast %20 : tensor<128x1xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> -> tensor<128x64xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
//       %22 = arith.subf %17, %21 : tensor<128x64xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
//       %23 = math.exp2 %22 : tensor<128x64xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
//       %24 = arith.subf %arg7, %19 : tensor<128xf32, #ttg.slice<{dim = 1, parent = #ttg.dot_op<{opIdx = 0, parent = #blocked}>}>>
//       %25 = math.exp2 %24 : tensor<128xf32, #ttg.slice<{dim = 1, parent = #ttg.dot_op<{opIdx = 0, parent = #blocked}>}>>
//       %26 = arith.mulf %arg8, %25 : tensor<128xf32, #ttg.slice<{dim = 1, parent = #ttg.dot_op<{opIdx = 0, parent = #blocked}>}>>
//       %27 = "tt.reduce"(%23) <{axis = 1 : i32}> ({
//       ^bb0(%arg10: f32, %arg11: f32):
//         %36 = arith.addf %arg10, %arg11 : f32
//         tt.reduce.return %36 : f32
//       }) : (tensor<128x64xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>) -> tensor<128xf32, #ttg.slice<{dim = 1, parent = #ttg.dot_op<{opIdx = 0, parent = #blocked}>}>>
//       %28 = arith.addf %26, %27 : tensor<128xf32, #ttg.slice<{dim = 1, parent = #ttg.dot_op<{opIdx = 0, parent = #blocked}>}>>
//       %29 = tt.expand_dims %25 {axis = 1 : i32} : tensor<128xf32, #ttg.slice<{dim = 1, parent = #ttg.dot_op<{opIdx = 0, parent = #blocked}>}>> -> tensor<128x1xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
//       %30 = ttg.convert_layout %29 : tensor<128x1xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> -> tensor<128x1xf32, #blocked>
//       %31 = tt.broadcast %30 : tensor<128x1xf32, #blocked> -> tensor<128x64xf32, #blocked>
//       %32 = arith.mulf %arg9, %31 : tensor<128x64xf32, #blocked>
//       %33 = arith.truncf %23 : tensor<128x64xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> to tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
//       %34 = tt.descriptor_load %4[%arg6, %c0_i32] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>>
//       %35 = tt.dot %33, %34, %32, inputPrecision = tf32 : tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> * tensor<64x64xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<128x64xf32, #blocked>
//       scf.yield %19, %28, %35 : tensor<128xf32, #ttg.slice<{dim = 1, parent = #ttg.dot_op<{opIdx = 0, parent = #blocked}>}>>, tensor<128xf32, #ttg.slice<{dim = 1, parent = #ttg.dot_op<{opIdx = 0, parent = #blocked}>}>>, tensor<128x64xf32, #blocked>
//     }
//     %9 = ttg.convert_layout %8#1 : tensor<128xf32, #ttg.slice<{dim = 1, parent = #ttg.dot_op<{opIdx = 0, parent = #blocked}>}>> -> tensor<128xf32, #ttg.slice<{dim = 1, parent = #blocked}>>
//     %10 = tt.expand_dims %9 {axis = 1 : i32} : tensor<128xf32, #ttg.slice<{dim = 1, parent = #blocked}>> -> tensor<128x1xf32, #blocked>
//     %11 = tt.broadcast %10 : tensor<128x1xf32, #blocked> -> tensor<128x64xf32, #blocked>
//     %12 = arith.divf %8#2, %11 : tensor<128x64xf32, #blocked>
//     %13 = arith.truncf %12 : tensor<128x64xf32, #blocked> to tensor<128x64xf16, #blocked>
//     tt.descriptor_store %5[%1, %c0_i32], %13 : !tt.tensordesc<tensor<128x64xf16>>, tensor<128x64xf16, #blocked>
//     tt.return
//   }
// }
// -----
// RUN: -target=xe:pvc -num-warps=4 -assign-layouts
// Element by element: a piece for each warp.

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
// #blocked = #ttg.blocked<{sizePerWarp = [256], warpsPerCTA = [4], order = [0]}>
// module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "xe:pvc", "ttg.threads-per-warp" = 16 : i32} {
//   tt.func public @add(%arg0: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %arg1: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %arg2: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %arg3: i32) attributes {noinline = false} {
//     %c1024_i32 = arith.constant 1024 : i32
//     %0 = tt.get_program_id x : i32
//     %1 = arith.muli %0, %c1024_i32 : i32
//     %2 = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32, #blocked>
//     %3 = tt.splat %1 : i32 -> tensor<1024xi32, #blocked>
//     %4 = arith.addi %3, %2 : tensor<1024xi32, #blocked>
//     %5 = tt.splat %arg3 : i32 -> tensor<1024xi32, #blocked>
//     %6 = arith.cmpi slt, %4, %5 : tensor<1024xi32, #blocked>
//     %7 = tt.splat %arg2 : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #blocked>
//     %8 = tt.addptr %7, %4 : tensor<1024x!tt.ptr<f32>, #blocked>, tensor<1024xi32, #blocked>
//     %9 = tt.splat %arg0 : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #blocked>
//     %10 = tt.addptr %9, %4 : tensor<1024x!tt.ptr<f32>, #blocked>, tensor<1024xi32, #blocked>
//     %11 = tt.load %10, %6 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<1024x!tt.ptr<f32>, #blocked>
//     %12 = tt.splat %arg1 : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #blocked>
//     %13 = tt.addptr %12, %4 : tensor<1024x!tt.ptr<f32>, #blocked>, tensor<1024xi32, #blocked>
//     %14 = tt.load %13, %6 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<1024x!tt.ptr<f32>, #blocked>
//     %15 = arith.addf %11, %14 : tensor<1024xf32, #blocked>
//     tt.store %8, %15, %6 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<1024x!tt.ptr<f32>, #blocked>
//     tt.return
//   }
// }
// -----
// RUN: -target=xe:pvc -num-warps=4 -assign-layouts
// A reduction to a number: warps share what is combined, since there is nothing else.

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
// #blocked = #ttg.blocked<{sizePerWarp = [256], warpsPerCTA = [4], order = [0]}>
// module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "xe:pvc", "ttg.threads-per-warp" = 16 : i32} {
//   tt.func public @total(%arg0: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %arg1: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %arg2: i32) attributes {noinline = false} {
//     %c1024_i32 = arith.constant 1024 : i32
//     %cst = arith.constant dense<0.000000e+00> : tensor<1024xf32, #blocked>
//     %0 = tt.get_program_id x : i32
//     %1 = arith.muli %0, %c1024_i32 : i32
//     %2 = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32, #blocked>
//     %3 = tt.splat %1 : i32 -> tensor<1024xi32, #blocked>
//     %4 = arith.addi %3, %2 : tensor<1024xi32, #blocked>
//     %5 = tt.splat %arg0 : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #blocked>
//     %6 = tt.addptr %5, %4 : tensor<1024x!tt.ptr<f32>, #blocked>, tensor<1024xi32, #blocked>
//     %7 = tt.splat %arg2 : i32 -> tensor<1024xi32, #blocked>
//     %8 = arith.cmpi slt, %4, %7 : tensor<1024xi32, #blocked>
//     %9 = tt.load %6, %8, %cst {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<1024x!tt.ptr<f32>, #blocked>
//     %10 = tt.addptr %arg1, %0 : !tt.ptr<f32>, i32
//     %11 = "tt.reduce"(%9) <{axis = 0 : i32}> ({
//     ^bb0(%arg3: f32, %arg4: f32):
//       %12 = arith.addf %arg3, %arg4 : f32
//       tt.reduce.return %12 : f32
//     }) : (tensor<1024xf32, #blocked>) -> f32
//     tt.store %10, %11 : !tt.ptr<f32>
//     tt.return
//   }
// }
// -----
// RUN: -target=xe:pvc -num-warps=4 -assign-layouts
// A reduction along columns: warps share columns, as many as a row of a block has.

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
// #blocked = #ttg.blocked<{sizePerWarp = [32, 16], warpsPerCTA = [2, 2], order = [1, 0]}>
// module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "xe:pvc", "ttg.threads-per-warp" = 16 : i32} {
//   tt.func public @columns(%arg0: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %arg1: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %arg2: i32) attributes {noinline = false} {
//     %cst = arith.constant dense<32> : tensor<64x1xi32, #blocked>
//     %0 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked}>>
//     %1 = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #blocked}>>
//     %2 = tt.expand_dims %0 {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked}>> -> tensor<64x1xi32, #blocked>
//     %3 = arith.muli %2, %cst : tensor<64x1xi32, #blocked>
//     %4 = tt.splat %arg0 : !tt.ptr<f32> -> tensor<64x1x!tt.ptr<f32>, #blocked>
//     %5 = tt.addptr %4, %3 : tensor<64x1x!tt.ptr<f32>, #blocked>, tensor<64x1xi32, #blocked>
//     %6 = tt.expand_dims %1 {axis = 0 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #blocked}>> -> tensor<1x32xi32, #blocked>
//     %7 = tt.broadcast %5 : tensor<64x1x!tt.ptr<f32>, #blocked> -> tensor<64x32x!tt.ptr<f32>, #blocked>
//     %8 = tt.broadcast %6 : tensor<1x32xi32, #blocked> -> tensor<64x32xi32, #blocked>
//     %9 = tt.addptr %7, %8 : tensor<64x32x!tt.ptr<f32>, #blocked>, tensor<64x32xi32, #blocked>
//     %10 = tt.load %9 {tt.vec = 4 : i32, tt.vec_axis = 1 : i32} : tensor<64x32x!tt.ptr<f32>, #blocked>
//     %11 = tt.splat %arg1 : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>, #ttg.slice<{dim = 0, parent = #blocked}>>
//     %12 = tt.addptr %11, %1 : tensor<32x!tt.ptr<f32>, #ttg.slice<{dim = 0, parent = #blocked}>>, tensor<32xi32, #ttg.slice<{dim = 0, parent = #blocked}>>
//     %13 = "tt.reduce"(%10) <{axis = 0 : i32}> ({
//     ^bb0(%arg3: f32, %arg4: f32):
//       %14 = arith.maxnumf %arg3, %arg4 : f32
//       tt.reduce.return %14 : f32
//     }) : (tensor<64x32xf32, #blocked>) -> tensor<32xf32, #ttg.slice<{dim = 0, parent = #blocked}>>
//     tt.store %12, %13 {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<32x!tt.ptr<f32>, #ttg.slice<{dim = 0, parent = #blocked}>>
//     tt.return
//   }
// }
