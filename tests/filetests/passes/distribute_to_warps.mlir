// RUN: -target=xe:pvc -num-warps=32 -assign-layouts -distribute-to-warps
// ML-Triton, Listing 3: offsets are functions of the program and of the warp.

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

// CHECK: [[CST:%.*]] = arith.constant dense<0.000000e+00> : tensor<32x64xf32, #blocked>
// CHECK: [[ID:%.*]] = gpu.subgroup_id : index
// CHECK-NEXT: [[W:%.*]] = arith.index_cast [[ID]] : index to i32
// CHECK-NEXT: [[UP:%.*]] = arith.shrui [[W]], %c2_i32
// CHECK-NEXT: [[ROW:%.*]] = arith.andi [[UP]], %c7_i32
// CHECK-NEXT: [[Y:%.*]] = arith.muli [[ROW]], %c32_i32
// CHECK-NEXT: [[COLUMN:%.*]] = arith.andi [[W]], %c3_i32
// CHECK-NEXT: [[X:%.*]] = arith.muli [[COLUMN]], %c64_i32
// CHECK: [[PY:%.*]] = arith.muli {{.*}}, %c256_i32
// CHECK: [[PX:%.*]] = arith.muli {{.*}}, %c256_i32
// CHECK: [[AP:%.*]] = tt.make_tensor_descriptor %arg0, {{.*}} : <f16>, <tensor<32x32xf16>>
// CHECK: [[BP:%.*]] = tt.make_tensor_descriptor %arg1, {{.*}} : <f16>, <tensor<32x64xf16>>
// CHECK: [[DP:%.*]] = tt.make_tensor_descriptor %arg2, {{.*}} : <f32>, <tensor<32x64xf32>>
// CHECK: [[OFFSETY:%.*]] = arith.addi [[PY]], [[Y]]
// CHECK: [[OFFSETX:%.*]] = arith.addi [[PX]], [[X]]
// CHECK: [[LOOP:%.*]] = scf.for [[K:%.*]] = {{.*}} iter_args([[ACC:%.*]] = [[CST]]) -> (tensor<32x64xf32, #blocked>)
// CHECK-NEXT: [[A:%.*]] = tt.descriptor_load [[AP]]{{.*}}[[OFFSETY]], [[K]]] : {{.*}} -> tensor<32x32xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
// CHECK-NEXT: [[B:%.*]] = tt.descriptor_load [[BP]]{{.*}}[[K]], [[OFFSETX]]] : {{.*}} -> tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>>
// CHECK-NEXT: [[D:%.*]] = tt.dot [[A]], [[B]], [[ACC]], inputPrecision = tf32 : tensor<32x32xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> * tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<32x64xf32, #blocked>
// CHECK-NEXT: scf.yield [[D]] : tensor<32x64xf32, #blocked>
// CHECK-NOT: ttg.barrier
// CHECK: tt.descriptor_store [[DP]]{{.*}}[[LOOP]] : !tt.tensordesc<tensor<32x64xf32>>, tensor<32x64xf32, #blocked>
// -----
// RUN: -target=xe:pvc -num-warps=8 -assign-layouts -distribute-to-warps
// Nothing passes between warps.

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
// module attributes {ttg.level = "warp", "ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "xe:pvc", "ttg.threads-per-warp" = 16 : i32} {
//   tt.func public @attention(%arg0: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %arg1: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %arg2: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %arg3: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %arg4: f32, %arg5: i32 {tt.divisibility = 16 : i32}) attributes {noinline = false} {
//     %c0_i32 = arith.constant 0 : i32
//     %c7_i32 = arith.constant 7 : i32
//     %c16_i32 = arith.constant 16 : i32
//     %c128_i32 = arith.constant 128 : i32
//     %c64_i64 = arith.constant 64 : i64
//     %c1_i64 = arith.constant 1 : i64
//     %cst = arith.constant dense<0xFF800000> : tensor<16xf32, #ttg.slice<{dim = 1, parent = #ttg.dot_op<{opIdx = 0, parent = #blocked}>}>>
//     %cst_0 = arith.constant dense<0.000000e+00> : tensor<16xf32, #ttg.slice<{dim = 1, parent = #ttg.dot_op<{opIdx = 0, parent = #blocked}>}>>
//     %cst_1 = arith.constant dense<0.000000e+00> : tensor<16x64xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
//     %cst_2 = arith.constant dense<0.000000e+00> : tensor<16x64xf32, #blocked>
//     %c64_i32 = arith.constant 64 : i32
//     %0 = gpu.subgroup_id : index
//     %1 = arith.index_cast %0 : index to i32
//     %2 = arith.andi %1, %c7_i32 : i32
//     %3 = arith.muli %2, %c16_i32 : i32
//     %4 = tt.get_program_id x : i32
//     %5 = arith.muli %4, %c128_i32 : i32
//     %6 = tt.make_tensor_descriptor %arg0, [%arg5, %c64_i32], [%c64_i64, %c1_i64] : <f16>, <tensor<16x64xf16>>
//     %7 = tt.make_tensor_descriptor %arg1, [%arg5, %c64_i32], [%c64_i64, %c1_i64] : <f16>, <tensor<64x64xf16>>
//     %8 = tt.make_tensor_descriptor %arg2, [%arg5, %c64_i32], [%c64_i64, %c1_i64] : <f16>, <tensor<64x64xf16>>
//     %9 = tt.make_tensor_descriptor %arg3, [%arg5, %c64_i32], [%c64_i64, %c1_i64] : <f16>, <tensor<16x64xf16>>
//     %10 = arith.addi %5, %3 : i32
//     %11 = tt.descriptor_load %6[%10, %c0_i32] : !tt.tensordesc<tensor<16x64xf16>> -> tensor<16x64xf16, #ttg.dot_op<{opIdx = 0, parent = #ttg.dot_op<{opIdx = 0, parent = #blocked}>}>>
//     %12 = tt.splat %arg4 : f32 -> tensor<16x64xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
//     %13:3 = scf.for %arg6 = %c0_i32 to %arg5 step %c64_i32 iter_args(%arg7 = %cst, %arg8 = %cst_0, %arg9 = %cst_2) -> (tensor<16xf32, #ttg.slice<{dim = 1, parent = #ttg.dot_op<{opIdx = 0, parent = #blocked}>}>>, tensor<16xf32, #ttg.slice<{dim = 1, parent = #ttg.dot_op<{opIdx = 0, parent = #blocked}>}>>, tensor<16x64xf32, #blocked>)  : i32 {
//       %19 = tt.descriptor_load %7[%arg6, %c0_i32] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16, #blocked1>
//       %20 = tt.trans %19 {order = array<i32: 1, 0>} : tensor<64x64xf16, #blocked1> -> tensor<64x64xf16, #ttg.dot_op<{opIdx = 1, parent = #ttg.dot_op<{opIdx = 0, parent = #blocked}>}>>
//       %21 = tt.dot %11, %20, %cst_1, inputPrecision = tf32 : tensor<16x64xf16, #ttg.dot_op<{opIdx = 0, parent = #ttg.dot_op<{opIdx = 0, parent = #blocked}>}>> * tensor<64x64xf16, #ttg.dot_op<{opIdx = 1, parent = #ttg.dot_op<{opIdx = 0, parent = #blocked}>}>> -> tensor<16x64xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
//       %22 = arith.mulf %21, %12 : tensor<16x64xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
//       %23 = "tt.reduce"(%22) <{axis = 1 : i32}> ({
//       ^bb0(%arg10: f32, %arg11: f32):
//         %41 = arith.maxnumf %arg10, %arg11 : f32
//         tt.reduce.return %41 : f32
//       }) : (tensor<16x64xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>) -> tensor<16xf32, #ttg.slice<{dim = 1, parent = #ttg.dot_op<{opIdx = 0, parent = #blocked}>}>>
//       %24 = arith.maxnumf %arg7, %23 : tensor<16xf32, #ttg.slice<{dim = 1, parent = #ttg.dot_op<{opIdx = 0, parent = #blocked}>}>>
//       %25 = tt.expand_dims %24 {axis = 1 : i32} : tensor<16xf32, #ttg.slice<{dim = 1, parent = #ttg.dot_op<{opIdx = 0, parent = #blocked}>}>> -> tensor<16x1xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
//       %26 = tt.broadcast %25 : tensor<16x1xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> -> tensor<16x64xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
//       %27 = arith.subf %22, %26 : tensor<16x64xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
//       %28 = math.exp2 %27 : tensor<16x64xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
//       %29 = arith.subf %arg7, %24 : tensor<16xf32, #ttg.slice<{dim = 1, parent = #ttg.dot_op<{opIdx = 0, parent = #blocked}>}>>
//       %30 = math.exp2 %29 : tensor<16xf32, #ttg.slice<{dim = 1, parent = #ttg.dot_op<{opIdx = 0, parent = #blocked}>}>>
//       %31 = arith.mulf %arg8, %30 : tensor<16xf32, #ttg.slice<{dim = 1, parent = #ttg.dot_op<{opIdx = 0, parent = #blocked}>}>>
//       %32 = "tt.reduce"(%28) <{axis = 1 : i32}> ({
//       ^bb0(%arg10: f32, %arg11: f32):
//         %41 = arith.addf %arg10, %arg11 : f32
//         tt.reduce.return %41 : f32
//       }) : (tensor<16x64xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>) -> tensor<16xf32, #ttg.slice<{dim = 1, parent = #ttg.dot_op<{opIdx = 0, parent = #blocked}>}>>
//       %33 = arith.addf %31, %32 : tensor<16xf32, #ttg.slice<{dim = 1, parent = #ttg.dot_op<{opIdx = 0, parent = #blocked}>}>>
//       %34 = tt.expand_dims %30 {axis = 1 : i32} : tensor<16xf32, #ttg.slice<{dim = 1, parent = #ttg.dot_op<{opIdx = 0, parent = #blocked}>}>> -> tensor<16x1xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
//       %35 = ttg.convert_layout %34 : tensor<16x1xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> -> tensor<16x1xf32, #blocked>
//       %36 = tt.broadcast %35 : tensor<16x1xf32, #blocked> -> tensor<16x64xf32, #blocked>
//       %37 = arith.mulf %arg9, %36 : tensor<16x64xf32, #blocked>
//       %38 = arith.truncf %28 : tensor<16x64xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> to tensor<16x64xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
//       %39 = tt.descriptor_load %8[%arg6, %c0_i32] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>>
//       %40 = tt.dot %38, %39, %37, inputPrecision = tf32 : tensor<16x64xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> * tensor<64x64xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<16x64xf32, #blocked>
//       scf.yield %24, %33, %40 : tensor<16xf32, #ttg.slice<{dim = 1, parent = #ttg.dot_op<{opIdx = 0, parent = #blocked}>}>>, tensor<16xf32, #ttg.slice<{dim = 1, parent = #ttg.dot_op<{opIdx = 0, parent = #blocked}>}>>, tensor<16x64xf32, #blocked>
//     }
//     %14 = ttg.convert_layout %13#1 : tensor<16xf32, #ttg.slice<{dim = 1, parent = #ttg.dot_op<{opIdx = 0, parent = #blocked}>}>> -> tensor<16xf32, #ttg.slice<{dim = 1, parent = #blocked}>>
//     %15 = tt.expand_dims %14 {axis = 1 : i32} : tensor<16xf32, #ttg.slice<{dim = 1, parent = #blocked}>> -> tensor<16x1xf32, #blocked>
//     %16 = tt.broadcast %15 : tensor<16x1xf32, #blocked> -> tensor<16x64xf32, #blocked>
//     %17 = arith.divf %13#2, %16 : tensor<16x64xf32, #blocked>
//     %18 = arith.truncf %17 : tensor<16x64xf32, #blocked> to tensor<16x64xf16, #blocked>
//     tt.descriptor_store %9[%10, %c0_i32], %18 : !tt.tensordesc<tensor<16x64xf16>>, tensor<16x64xf16, #blocked>
//     tt.return
//   }
// }
// -----
// RUN: -target=xe:pvc -num-warps=4 -assign-layouts -distribute-to-warps
// Ranges begin where the part of a warp does.

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
// module attributes {ttg.level = "warp", "ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "xe:pvc", "ttg.threads-per-warp" = 16 : i32} {
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
//     %6 = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32, #blocked>
//     %7 = tt.splat %3 : i32 -> tensor<256xi32, #blocked>
//     %8 = arith.addi %6, %7 : tensor<256xi32, #blocked>
//     %9 = tt.splat %5 : i32 -> tensor<256xi32, #blocked>
//     %10 = arith.addi %9, %8 : tensor<256xi32, #blocked>
//     %11 = tt.splat %arg3 : i32 -> tensor<256xi32, #blocked>
//     %12 = arith.cmpi slt, %10, %11 : tensor<256xi32, #blocked>
//     %13 = tt.splat %arg2 : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>, #blocked>
//     %14 = tt.addptr %13, %10 : tensor<256x!tt.ptr<f32>, #blocked>, tensor<256xi32, #blocked>
//     %15 = tt.splat %arg0 : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>, #blocked>
//     %16 = tt.addptr %15, %10 : tensor<256x!tt.ptr<f32>, #blocked>, tensor<256xi32, #blocked>
//     %17 = tt.load %16, %12 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<256x!tt.ptr<f32>, #blocked>
//     %18 = tt.splat %arg1 : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>, #blocked>
//     %19 = tt.addptr %18, %10 : tensor<256x!tt.ptr<f32>, #blocked>, tensor<256xi32, #blocked>
//     %20 = tt.load %19, %12 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<256x!tt.ptr<f32>, #blocked>
//     %21 = arith.addf %17, %20 : tensor<256xf32, #blocked>
//     tt.store %14, %21, %12 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<256x!tt.ptr<f32>, #blocked>
//     tt.return
//   }
// }
// -----
// RUN: -target=xe:pvc -num-warps=4 -assign-layouts -distribute-to-warps
// A reduction across warps.

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
// #blocked1 = #ttg.blocked<{sizePerWarp = [1], warpsPerCTA = [4], order = [0]}>
// #shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
// #smem = #ttg.shared_memory
// module attributes {ttg.level = "warp", "ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "xe:pvc", "ttg.threads-per-warp" = 16 : i32} {
//   tt.func public @total(%arg0: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %arg1: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %arg2: i32) attributes {noinline = false} {
//     %c0_i32 = arith.constant 0 : i32
//     %c3_i32 = arith.constant 3 : i32
//     %c256_i32 = arith.constant 256 : i32
//     %c-4_i32 = arith.constant -4 : i32
//     %c1_i32 = arith.constant 1 : i32
//     %c2_i32 = arith.constant 2 : i32
//     %c1024_i32 = arith.constant 1024 : i32
//     %cst = arith.constant dense<0.000000e+00> : tensor<256xf32, #blocked>
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
//     %12 = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32, #blocked>
//     %13 = tt.splat %3 : i32 -> tensor<256xi32, #blocked>
//     %14 = arith.addi %12, %13 : tensor<256xi32, #blocked>
//     %15 = tt.splat %11 : i32 -> tensor<256xi32, #blocked>
//     %16 = arith.addi %15, %14 : tensor<256xi32, #blocked>
//     %17 = tt.splat %arg0 : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>, #blocked>
//     %18 = tt.addptr %17, %16 : tensor<256x!tt.ptr<f32>, #blocked>, tensor<256xi32, #blocked>
//     %19 = tt.splat %arg2 : i32 -> tensor<256xi32, #blocked>
//     %20 = arith.cmpi slt, %16, %19 : tensor<256xi32, #blocked>
//     %21 = tt.load %18, %20, %cst {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<256x!tt.ptr<f32>, #blocked>
//     %22 = tt.addptr %arg1, %10 : !tt.ptr<f32>, i32
//     %23 = "tt.reduce"(%21) <{axis = 0 : i32}> ({
//     ^bb0(%arg3: f32, %arg4: f32):
//       %41 = arith.addf %arg3, %arg4 : f32
//       tt.reduce.return %41 : f32
//     }) : (tensor<256xf32, #blocked>) -> f32
//     %24 = ttg.memdesc_index %4[%1] : !ttg.memdesc<4x1xf32, #shared, #smem, mutable> -> !ttg.memdesc<1xf32, #shared, #smem, mutable>
//     %25 = tt.splat %23 : f32 -> tensor<1xf32, #blocked1>
//     ttg.local_store %25, %24 : tensor<1xf32, #blocked1> -> !ttg.memdesc<1xf32, #shared, #smem, mutable>
//     ttg.barrier
//     %26 = ttg.memdesc_index %4[%5] : !ttg.memdesc<4x1xf32, #shared, #smem, mutable> -> !ttg.memdesc<1xf32, #shared, #smem, mutable>
//     %27 = ttg.local_load %26 : !ttg.memdesc<1xf32, #shared, #smem, mutable> -> tensor<1xf32, #blocked1>
//     %28 = tt.unsplat %27 : tensor<1xf32, #blocked1>
//     %29 = ttg.memdesc_index %4[%6] : !ttg.memdesc<4x1xf32, #shared, #smem, mutable> -> !ttg.memdesc<1xf32, #shared, #smem, mutable>
//     %30 = ttg.local_load %29 : !ttg.memdesc<1xf32, #shared, #smem, mutable> -> tensor<1xf32, #blocked1>
//     %31 = tt.unsplat %30 : tensor<1xf32, #blocked1>
//     %32 = arith.addf %28, %31 : f32
//     %33 = ttg.memdesc_index %4[%7] : !ttg.memdesc<4x1xf32, #shared, #smem, mutable> -> !ttg.memdesc<1xf32, #shared, #smem, mutable>
//     %34 = ttg.local_load %33 : !ttg.memdesc<1xf32, #shared, #smem, mutable> -> tensor<1xf32, #blocked1>
//     %35 = tt.unsplat %34 : tensor<1xf32, #blocked1>
//     %36 = arith.addf %32, %35 : f32
//     %37 = ttg.memdesc_index %4[%8] : !ttg.memdesc<4x1xf32, #shared, #smem, mutable> -> !ttg.memdesc<1xf32, #shared, #smem, mutable>
//     %38 = ttg.local_load %37 : !ttg.memdesc<1xf32, #shared, #smem, mutable> -> tensor<1xf32, #blocked1>
//     %39 = tt.unsplat %38 : tensor<1xf32, #blocked1>
//     %40 = arith.addf %36, %39 : f32
//     ttg.barrier
//     scf.if %9 {
//       tt.store %22, %40 : !tt.ptr<f32>
//     }
//     tt.return
//   }
// }
// -----
// RUN: -target=xe:pvc -num-warps=4 -assign-layouts -distribute-to-warps
// Of 32 columns two parts: two warps each have copies, and one of them stores.

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
// #shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
// #smem = #ttg.shared_memory
// module attributes {ttg.level = "warp", "ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "xe:pvc", "ttg.threads-per-warp" = 16 : i32} {
//   tt.func public @columns(%arg0: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %arg1: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %arg2: i32) attributes {noinline = false} {
//     %c1_i32 = arith.constant 1 : i32
//     %c32_i32 = arith.constant 32 : i32
//     %c0_i32 = arith.constant 0 : i32
//     %c16_i32 = arith.constant 16 : i32
//     %c-3_i32 = arith.constant -3 : i32
//     %c2_i32 = arith.constant 2 : i32
//     %cst = arith.constant dense<32> : tensor<32x1xi32, #blocked>
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
//     %12 = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #blocked}>>
//     %13 = tt.splat %4 : i32 -> tensor<32xi32, #ttg.slice<{dim = 1, parent = #blocked}>>
//     %14 = arith.addi %12, %13 : tensor<32xi32, #ttg.slice<{dim = 1, parent = #blocked}>>
//     %15 = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #ttg.slice<{dim = 0, parent = #blocked}>>
//     %16 = tt.splat %6 : i32 -> tensor<16xi32, #ttg.slice<{dim = 0, parent = #blocked}>>
//     %17 = arith.addi %15, %16 : tensor<16xi32, #ttg.slice<{dim = 0, parent = #blocked}>>
//     %18 = tt.expand_dims %14 {axis = 1 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #blocked}>> -> tensor<32x1xi32, #blocked>
//     %19 = arith.muli %18, %cst : tensor<32x1xi32, #blocked>
//     %20 = tt.splat %arg0 : !tt.ptr<f32> -> tensor<32x1x!tt.ptr<f32>, #blocked>
//     %21 = tt.addptr %20, %19 : tensor<32x1x!tt.ptr<f32>, #blocked>, tensor<32x1xi32, #blocked>
//     %22 = tt.expand_dims %17 {axis = 0 : i32} : tensor<16xi32, #ttg.slice<{dim = 0, parent = #blocked}>> -> tensor<1x16xi32, #blocked>
//     %23 = tt.broadcast %21 : tensor<32x1x!tt.ptr<f32>, #blocked> -> tensor<32x16x!tt.ptr<f32>, #blocked>
//     %24 = tt.broadcast %22 : tensor<1x16xi32, #blocked> -> tensor<32x16xi32, #blocked>
//     %25 = tt.addptr %23, %24 : tensor<32x16x!tt.ptr<f32>, #blocked>, tensor<32x16xi32, #blocked>
//     %26 = tt.load %25 {tt.vec = 4 : i32, tt.vec_axis = 1 : i32} : tensor<32x16x!tt.ptr<f32>, #blocked>
//     %27 = tt.splat %arg1 : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>, #ttg.slice<{dim = 0, parent = #blocked}>>
//     %28 = tt.addptr %27, %17 : tensor<16x!tt.ptr<f32>, #ttg.slice<{dim = 0, parent = #blocked}>>, tensor<16xi32, #ttg.slice<{dim = 0, parent = #blocked}>>
//     %29 = "tt.reduce"(%26) <{axis = 0 : i32}> ({
//     ^bb0(%arg3: f32, %arg4: f32):
//       %36 = arith.maxnumf %arg3, %arg4 : f32
//       tt.reduce.return %36 : f32
//     }) : (tensor<32x16xf32, #blocked>) -> tensor<16xf32, #ttg.slice<{dim = 0, parent = #blocked}>>
//     %30 = ttg.memdesc_index %7[%1] : !ttg.memdesc<4x16xf32, #shared, #smem, mutable> -> !ttg.memdesc<16xf32, #shared, #smem, mutable>
//     ttg.local_store %29, %30 : tensor<16xf32, #ttg.slice<{dim = 0, parent = #blocked}>> -> !ttg.memdesc<16xf32, #shared, #smem, mutable>
//     ttg.barrier
//     %31 = ttg.memdesc_index %7[%8] : !ttg.memdesc<4x16xf32, #shared, #smem, mutable> -> !ttg.memdesc<16xf32, #shared, #smem, mutable>
//     %32 = ttg.local_load %31 : !ttg.memdesc<16xf32, #shared, #smem, mutable> -> tensor<16xf32, #ttg.slice<{dim = 0, parent = #blocked}>>
//     %33 = ttg.memdesc_index %7[%9] : !ttg.memdesc<4x16xf32, #shared, #smem, mutable> -> !ttg.memdesc<16xf32, #shared, #smem, mutable>
//     %34 = ttg.local_load %33 : !ttg.memdesc<16xf32, #shared, #smem, mutable> -> tensor<16xf32, #ttg.slice<{dim = 0, parent = #blocked}>>
//     %35 = arith.maxnumf %32, %34 : tensor<16xf32, #ttg.slice<{dim = 0, parent = #blocked}>>
//     ttg.barrier
//     scf.if %11 {
//       tt.store %28, %35 {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>, #ttg.slice<{dim = 0, parent = #blocked}>>
//     }
//     tt.return
//   }
// }
// -----
// RUN: -target=xe:pvc -num-warps=4 -assign-layouts -distribute-to-warps
// ERROR: not supported yet: `tt.scan` along a dimension that warps share out
tt.func public @f(%p: !tt.ptr<f32>) {
  %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %x = arith.sitofp %r : tensor<64xi32> to tensor<64xf32>
  %s = "tt.scan"(%x) <{axis = 0 : i32, reverse = false}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tt.scan.return %c : f32
  }) : (tensor<64xf32>) -> tensor<64xf32>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %q = tt.addptr %ps, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  tt.store %q, %s : tensor<64x!tt.ptr<f32>>
  tt.return
}
// -----
// RUN: -target=xe:pvc -num-warps=4 -assign-layouts -distribute-to-warps
// ERROR: not supported yet: `tt.descriptor_load` of a descriptor that the kernel is given, or a loop carries
tt.func public @f(%d: !tt.tensordesc<tensor<64x32xf32>>, %e: !tt.ptr<f32>, %i: i32, %n: i64, %one: i64) {
  %x = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<tensor<64x32xf32>> -> tensor<64x32xf32>
  %o = tt.make_tensor_descriptor %e, [%i, %i], [%n, %one] : <f32>, <tensor<64x32xf32>>
  tt.descriptor_store %o[%i, %i], %x : !tt.tensordesc<tensor<64x32xf32>>, tensor<64x32xf32>
  tt.return
}
// -----
// RUN: -target=xe:pvc -num-warps=4 -assign-layouts -distribute-to-warps
// ERROR: not supported yet: `tt.print` distributed over warps
tt.func public @f() {
  %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  tt.print " x: " {hex = false, isSigned = array<i32: 1>} : %r : tensor<64xi32>
  tt.return
}
// -----
// RUN: -target=xe:pvc -num-warps=4 -distribute-to-warps
// ERROR: not supported yet: `tt.split` of pairs that change warps
#pairs = #ttg.blocked<{sizePerWarp = [8, 1], warpsPerCTA = [2, 2], order = [1, 0]}>
#halves = #ttg.blocked<{sizePerWarp = [4], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 16 : i32} {
  tt.func public @each_of_a_pair_in_a_warp(%a: !tt.ptr<f32>) {
    %p = tt.splat %a : !tt.ptr<f32> -> tensor<16x2x!tt.ptr<f32>, #pairs>
    %x = tt.load %p {tt.vec = 1 : i32, tt.vec_axis = 1 : i32} : tensor<16x2x!tt.ptr<f32>, #pairs>
    %l, %r = tt.split %x : tensor<16x2xf32, #pairs> -> tensor<16xf32, #halves>
    %q = tt.splat %a : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>, #halves>
    tt.store %q, %l {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<f32>, #halves>
    tt.return
  }
}
// -----
// RUN: -target=xe:pvc -num-warps=4 -distribute-to-warps
// ERROR: not supported yet: `tt.split` of pairs that change warps
#pairs = #ttg.blocked<{sizePerWarp = [8, 8, 1], warpsPerCTA = [2, 2, 1], order = [2, 1, 0]}>
#halves = #ttg.blocked<{sizePerWarp = [8, 8], warpsPerCTA = [2, 2], order = [0, 1]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 16 : i32} {
  tt.func public @parts_of_the_same_shapes(%a: !tt.ptr<f32>) {
    %p = tt.splat %a : !tt.ptr<f32> -> tensor<16x16x2x!tt.ptr<f32>, #pairs>
    %x = tt.load %p {tt.vec = 1 : i32, tt.vec_axis = 1 : i32} : tensor<16x16x2x!tt.ptr<f32>, #pairs>
    %l, %r = tt.split %x : tensor<16x16x2xf32, #pairs> -> tensor<16x16xf32, #halves>
    %q = tt.splat %a : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>, #halves>
    tt.store %q, %l {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x16x!tt.ptr<f32>, #halves>
    tt.return
  }
}
// -----
// RUN: -target=xe:pvc -num-warps=2 -distribute-to-warps
// A conversion between rows and columns: each warp writes the halves of its rows, and reads those of its columns.
#rows = #ttg.blocked<{sizePerWarp = [16, 32], warpsPerCTA = [2, 1], order = [1, 0]}>
#columns = #ttg.blocked<{sizePerWarp = [32, 16], warpsPerCTA = [1, 2], order = [1, 0]}>
module attributes {"ttg.num-warps" = 2 : i32, "ttg.threads-per-warp" = 16 : i32} {
  tt.func public @f(%a: !tt.ptr<f32>) {
    %p = tt.splat %a : !tt.ptr<f32> -> tensor<32x32x!tt.ptr<f32>, #rows>
    %q = tt.splat %a : !tt.ptr<f32> -> tensor<32x32x!tt.ptr<f32>, #columns>
    %x = tt.load %p {tt.vec = 1 : i32, tt.vec_axis = 1 : i32} : tensor<32x32x!tt.ptr<f32>, #rows>
    %y = ttg.convert_layout %x : tensor<32x32xf32, #rows> -> tensor<32x32xf32, #columns>
    tt.store %q, %y {tt.vec = 1 : i32, tt.vec_axis = 1 : i32} : tensor<32x32x!tt.ptr<f32>, #columns>
    tt.return
  }
}
// CHECK: [[X:%.*]] = tt.load {{.*}} : tensor<16x32x!tt.ptr<f32>, #blocked>
// CHECK: [[ALL:%.*]] = ttg.local_alloc : () -> !ttg.memdesc<4x16x16xf32
// CHECK: [[LEFT:%.*]] = tt.extract [[X]][0] : tensor<16x32xf32, #blocked> -> tensor<16x16xf32, #blocked>
// CHECK: ttg.local_store [[LEFT]],
// CHECK: [[RIGHT:%.*]] = tt.extract [[X]][1] : tensor<16x32xf32, #blocked> -> tensor<16x16xf32, #blocked>
// CHECK: ttg.local_store [[RIGHT]],
// CHECK: ttg.barrier
// CHECK: [[UPPER:%.*]] = ttg.local_load
// CHECK: tt.insert_tile [[UPPER]],
// CHECK: [[LOWER:%.*]] = ttg.local_load
// CHECK: [[Y:%.*]] = tt.insert_tile [[LOWER]], {{.*}} : tensor<16x16xf32, #blocked1>, tensor<32x16xf32, #blocked1>
// CHECK: ttg.barrier
// CHECK: tt.store {{.*}}, [[Y]]
// -----
// RUN: -target=xe:pvc -num-warps=2 -distribute-to-warps
// ERROR: not supported yet: `ttg.convert_layout` from a part of one warp to those of others
#rows = #ttg.blocked<{sizePerWarp = [16, 32], warpsPerCTA = [2, 1], order = [1, 0]}>
#columns = #ttg.blocked<{sizePerWarp = [32, 16], warpsPerCTA = [1, 2], order = [1, 0]}>
module attributes {"ttg.num-warps" = 2 : i32, "ttg.threads-per-warp" = 16 : i32} {
  tt.func public @truth_is_no_number_in_memory() {
    %x = arith.constant dense<true> : tensor<32x32xi1, #rows>
    %y = ttg.convert_layout %x : tensor<32x32xi1, #rows> -> tensor<32x32xi1, #columns>
    tt.return
  }
}
// -----
// RUN: -target=xe:pvc -num-warps=2 -distribute-to-warps
// A block that other warps have stored is loaded behind a barrier.
#rows = #ttg.blocked<{sizePerWarp = [16, 32], warpsPerCTA = [2, 1], order = [1, 0]}>
#columns = #ttg.blocked<{sizePerWarp = [32, 16], warpsPerCTA = [1, 2], order = [1, 0]}>
module attributes {"ttg.num-warps" = 2 : i32, "ttg.threads-per-warp" = 16 : i32} {
  tt.func public @f(%a: !tt.ptr<f32>, %n: f32) {
    %row = arith.constant dense<32> : tensor<32x1xi32, #rows>
    %i = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #rows}>>
    %j = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #rows}>>
    %down = tt.expand_dims %i {axis = 1 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #rows}>> -> tensor<32x1xi32, #rows>
    %right = tt.expand_dims %j {axis = 0 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #rows}>> -> tensor<1x32xi32, #rows>
    %begin = arith.muli %down, %row : tensor<32x1xi32, #rows>
    %begins = tt.broadcast %begin : tensor<32x1xi32, #rows> -> tensor<32x32xi32, #rows>
    %rights = tt.broadcast %right : tensor<1x32xi32, #rows> -> tensor<32x32xi32, #rows>
    %at = arith.addi %begins, %rights : tensor<32x32xi32, #rows>
    %all = tt.splat %a : !tt.ptr<f32> -> tensor<32x32x!tt.ptr<f32>, #rows>
    %p = tt.addptr %all, %at : tensor<32x32x!tt.ptr<f32>, #rows>, tensor<32x32xi32, #rows>
    %q = tt.splat %a : !tt.ptr<f32> -> tensor<32x32x!tt.ptr<f32>, #columns>
    %x = tt.splat %n : f32 -> tensor<32x32xf32, #rows>
    tt.store %p, %x {tt.vec = 1 : i32, tt.vec_axis = 1 : i32} : tensor<32x32x!tt.ptr<f32>, #rows>
    %own = tt.load %p {tt.vec = 1 : i32, tt.vec_axis = 1 : i32} : tensor<32x32x!tt.ptr<f32>, #rows>
    %y = tt.load %q {tt.vec = 1 : i32, tt.vec_axis = 1 : i32} : tensor<32x32x!tt.ptr<f32>, #columns>
    tt.store %p, %own {tt.vec = 1 : i32, tt.vec_axis = 1 : i32} : tensor<32x32x!tt.ptr<f32>, #rows>
    tt.store %q, %y {tt.vec = 1 : i32, tt.vec_axis = 1 : i32} : tensor<32x32x!tt.ptr<f32>, #columns>
    tt.return
  }
}
// CHECK: tt.store
// CHECK-NEXT: tt.load {{.*}} : tensor<16x32x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: ttg.barrier
// CHECK-NEXT: tt.load {{.*}} : tensor<32x16x!tt.ptr<f32>, #blocked1>
// -----
// RUN: -target=xe:pvc -num-warps=2 -distribute-to-warps
// ERROR: of which each warp has other than one piece
#blocked = #ttg.blocked<{sizePerWarp = [16], warpsPerCTA = [2], order = [0]}>
module attributes {"ttg.num-warps" = 2 : i32, "ttg.threads-per-warp" = 16 : i32} {
  tt.func public @f() {
    %x = arith.constant dense<0.0> : tensor<64xf32, #blocked>
    tt.return
  }
}
// -----
// RUN: -target=xe:pvc -distribute-to-warps
// ERROR: the module is that of one warp already
module attributes {ttg.level = "warp"} {
  tt.func public @f() { tt.return }
}
