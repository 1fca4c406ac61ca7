// Tensors of pointers that are blocks of matrices. The columns are a loop's, and its pointers move: the descriptor is made once, in front
// of it, and each load has its place.
// RUN: -target=xe:pvc -raise-to-descriptors

tt.func public @moving(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %out: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %M: i32, %K: i32 {tt.divisibility = 16 : i32}, %s: i32 {tt.divisibility = 16 : i32}) {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %cst32 = arith.constant dense<32> : tensor<64x32xi32>
  %zero = arith.constant dense<0.000000e+00> : tensor<64x32xf16>
  %sum0 = arith.constant dense<0.000000e+00> : tensor<64x32xf32>
  %pid = tt.get_program_id x : i32
  %first = arith.muli %pid, %c32 : i32
  %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %f = tt.splat %first : i32 -> tensor<64xi32>
  %rows = arith.addi %f, %r : tensor<64xi32>
  %rows2 = tt.expand_dims %rows {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %ss = tt.splat %s : i32 -> tensor<64x1xi32>
  %by_row = arith.muli %rows2, %ss : tensor<64x1xi32>
  %c = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
  %c2 = tt.expand_dims %c {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %b0 = tt.broadcast %by_row : tensor<64x1xi32> -> tensor<64x32xi32>
  %b1 = tt.broadcast %c2 : tensor<1x32xi32> -> tensor<64x32xi32>
  %at = arith.addi %b0, %b1 : tensor<64x32xi32>
  %xs = tt.splat %x : !tt.ptr<f16> -> tensor<64x32x!tt.ptr<f16>>
  %p = tt.addptr %xs, %at : tensor<64x32x!tt.ptr<f16>>, tensor<64x32xi32>
  %ms = tt.splat %M : i32 -> tensor<64x1xi32>
  %below = arith.cmpi slt, %rows2, %ms : tensor<64x1xi32>
  %rmask = tt.broadcast %below : tensor<64x1xi1> -> tensor<64x32xi1>
  %res:2 = scf.for %k = %c0 to %K step %c32 iter_args(%q = %p, %sum = %sum0) -> (tensor<64x32x!tt.ptr<f16>>, tensor<64x32xf32>) : i32 {
    %left = arith.subi %K, %k : i32
    %ls = tt.splat %left : i32 -> tensor<1x32xi32>
    %inside = arith.cmpi slt, %c2, %ls : tensor<1x32xi32>
    %cmask = tt.broadcast %inside : tensor<1x32xi1> -> tensor<64x32xi1>
    %mask = arith.andi %rmask, %cmask : tensor<64x32xi1>
    %v = tt.load %q, %mask, %zero : tensor<64x32x!tt.ptr<f16>>
    %w = arith.extf %v : tensor<64x32xf16> to tensor<64x32xf32>
    %next = arith.addf %sum, %w : tensor<64x32xf32>
    %moved = tt.addptr %q, %cst32 : tensor<64x32x!tt.ptr<f16>>, tensor<64x32xi32>
    scf.yield %moved, %next : tensor<64x32x!tt.ptr<f16>>, tensor<64x32xf32>
  }
  %os = tt.splat %out : !tt.ptr<f32> -> tensor<64x32x!tt.ptr<f32>>
  %op = tt.addptr %os, %at : tensor<64x32x!tt.ptr<f32>>, tensor<64x32xi32>
  tt.store %op, %res#1, %rmask : tensor<64x32x!tt.ptr<f32>>
  tt.return
}

// OUTPUT
// module {
//   tt.func public @moving(%arg0: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %arg1: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %arg2: i32, %arg3: i32 {tt.divisibility = 16 : i32}, %arg4: i32 {tt.divisibility = 16 : i32}) {
//     %c0_i32 = arith.constant 0 : i32
//     %c32_i32 = arith.constant 32 : i32
//     %cst = arith.constant dense<0.000000e+00> : tensor<64x32xf32>
//     %c1_i64 = arith.constant 1 : i64
//     %0 = tt.get_program_id x : i32
//     %1 = arith.muli %0, %c32_i32 : i32
//     %2 = arith.maxsi %arg2, %c0_i32 : i32
//     %3 = arith.extsi %arg4 : i32 to i64
//     %4 = arith.maxsi %arg3, %c0_i32 : i32
//     %5 = tt.make_tensor_descriptor %arg0, [%2, %4], [%3, %c1_i64] : <f16>, <tensor<64x32xf16>>
//     %6 = scf.for %arg5 = %c0_i32 to %arg3 step %c32_i32 iter_args(%arg6 = %cst) -> (tensor<64x32xf32>)  : i32 {
//       %8 = tt.descriptor_load %5[%1, %arg5] : !tt.tensordesc<tensor<64x32xf16>> -> tensor<64x32xf16>
//       %9 = arith.extf %8 : tensor<64x32xf16> to tensor<64x32xf32>
//       %10 = arith.addf %arg6, %9 : tensor<64x32xf32>
//       scf.yield %10 : tensor<64x32xf32>
//     }
//     %7 = tt.make_tensor_descriptor %arg1, [%2, %c32_i32], [%3, %c1_i64] : <f32>, <tensor<64x32xf32>>
//     tt.descriptor_store %7[%1, %c0_i32], %6 : !tt.tensordesc<tensor<64x32xf32>>, tensor<64x32xf32>
//     tt.return
//   }
// }
// -----
// Rows lie along the columns of memory; the strides of the second are not known to keep them at multiples of 16 bytes.
// RUN: -target=xe:pvc -raise-to-descriptors

tt.func public @turned(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %s: i32 {tt.divisibility = 16 : i32}, %odd: i32) {
  %r = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
  %r2 = tt.expand_dims %r {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
  %c = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %c2 = tt.expand_dims %c {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %ss = tt.splat %s : i32 -> tensor<1x64xi32>
  %by = arith.muli %c2, %ss : tensor<1x64xi32>
  %b0 = tt.broadcast %r2 : tensor<32x1xi32> -> tensor<32x64xi32>
  %b1 = tt.broadcast %by : tensor<1x64xi32> -> tensor<32x64xi32>
  %at = arith.addi %b0, %b1 : tensor<32x64xi32>
  %xs = tt.splat %x : !tt.ptr<f16> -> tensor<32x64x!tt.ptr<f16>>
  %p = tt.addptr %xs, %at : tensor<32x64x!tt.ptr<f16>>, tensor<32x64xi32>
  %v = tt.load %p : tensor<32x64x!tt.ptr<f16>>
  %os = tt.splat %odd : i32 -> tensor<32x64xi32>
  %other = arith.muli %at, %os : tensor<32x64xi32>
  %q = tt.addptr %xs, %other : tensor<32x64x!tt.ptr<f16>>, tensor<32x64xi32>
  tt.store %q, %v : tensor<32x64x!tt.ptr<f16>>
  tt.return
}

// OUTPUT
// module attributes {ttg.remarks = ["passes/raise_to_descriptors.mlir:91:3: this block is stored lane by lane: neither dimension is known to have stride 1"]} {
//   tt.func public @turned(%arg0: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %arg1: i32 {tt.divisibility = 16 : i32}, %arg2: i32) {
//     %c0_i32 = arith.constant 0 : i32
//     %c64_i32 = arith.constant 64 : i32
//     %c32_i32 = arith.constant 32 : i32
//     %c1_i64 = arith.constant 1 : i64
//     %0 = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
//     %1 = tt.expand_dims %0 {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
//     %2 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
//     %3 = tt.expand_dims %2 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
//     %4 = tt.splat %arg1 : i32 -> tensor<1x64xi32>
//     %5 = arith.muli %3, %4 : tensor<1x64xi32>
//     %6 = tt.broadcast %1 : tensor<32x1xi32> -> tensor<32x64xi32>
//     %7 = tt.broadcast %5 : tensor<1x64xi32> -> tensor<32x64xi32>
//     %8 = arith.addi %6, %7 : tensor<32x64xi32>
//     %9 = tt.splat %arg0 : !tt.ptr<f16> -> tensor<32x64x!tt.ptr<f16>>
//     %10 = arith.extsi %arg1 : i32 to i64
//     %11 = tt.make_tensor_descriptor %arg0, [%c64_i32, %c32_i32], [%10, %c1_i64] : <f16>, <tensor<64x32xf16>>
//     %12 = tt.descriptor_load %11[%c0_i32, %c0_i32] : !tt.tensordesc<tensor<64x32xf16>> -> tensor<64x32xf16>
//     %13 = tt.trans %12 {order = array<i32: 1, 0>} : tensor<64x32xf16> -> tensor<32x64xf16>
//     %14 = tt.splat %arg2 : i32 -> tensor<32x64xi32>
//     %15 = arith.muli %8, %14 : tensor<32x64xi32>
//     %16 = tt.addptr %9, %15 : tensor<32x64x!tt.ptr<f16>>, tensor<32x64xi32>
//     tt.store %16, %13 : tensor<32x64x!tt.ptr<f16>>
//     tt.return
//   }
// }
// -----
// For TMA. The matrix is one of a batch: its number is the index of a dimension. Nothing is masked, so rows have no end.
// RUN: -target=cuda:90 -raise-to-descriptors

tt.func public @batched(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %out: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %K: i32 {tt.divisibility = 16 : i32}, %batch: i32 {tt.divisibility = 16 : i32}, %s: i32 {tt.divisibility = 16 : i32}) {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %b = arith.constant dense<1.000000e+00> : tensor<32x64xf16>
  %zeros = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
  %program = tt.get_program_id y : i32
  %wide = arith.extsi %program : i32 to i64
  %pitch = arith.extsi %batch : i32 to i64
  %begin = arith.muli %wide, %pitch : i64
  %matrix = tt.addptr %x, %begin : !tt.ptr<f16>, i64
  %rows = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %columns = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
  %row = tt.expand_dims %rows {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %strides = tt.splat %s : i32 -> tensor<64x1xi32>
  %by_row = arith.muli %row, %strides : tensor<64x1xi32>
  %bases = tt.splat %matrix : !tt.ptr<f16> -> tensor<64x1x!tt.ptr<f16>>
  %starts = tt.addptr %bases, %by_row : tensor<64x1x!tt.ptr<f16>>, tensor<64x1xi32>
  %all = tt.broadcast %starts : tensor<64x1x!tt.ptr<f16>> -> tensor<64x32x!tt.ptr<f16>>
  %column = tt.expand_dims %columns {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %by_column = tt.broadcast %column : tensor<1x32xi32> -> tensor<64x32xi32>
  %pointers = tt.addptr %all, %by_column : tensor<64x32x!tt.ptr<f16>>, tensor<64x32xi32>
  %step = arith.constant dense<32> : tensor<64x32xi32>
  %sum:2 = scf.for %k = %c0 to %K step %c32 iter_args(%p = %pointers, %acc = %zeros) -> (tensor<64x32x!tt.ptr<f16>>, tensor<64x64xf32>) : i32 {
    %a = tt.load %p : tensor<64x32x!tt.ptr<f16>>
    %more = tt.dot %a, %b, %acc : tensor<64x32xf16> * tensor<32x64xf16> -> tensor<64x64xf32>
    %next = tt.addptr %p, %step : tensor<64x32x!tt.ptr<f16>>, tensor<64x32xi32>
    scf.yield %next, %more : tensor<64x32x!tt.ptr<f16>>, tensor<64x64xf32>
  }
  %outs = tt.splat %out : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
  tt.store %outs, %sum#1 : tensor<64x64x!tt.ptr<f32>>
  tt.return
}

// OUTPUT
// module {
//   tt.func public @batched(%arg0: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %arg1: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %arg2: i32 {tt.divisibility = 16 : i32}, %arg3: i32 {tt.divisibility = 16 : i32}, %arg4: i32 {tt.divisibility = 16 : i32}) {
//     %c0_i32 = arith.constant 0 : i32
//     %c32_i32 = arith.constant 32 : i32
//     %cst = arith.constant dense<1.000000e+00> : tensor<32x64xf16>
//     %cst_0 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
//     %c2147483647_i32 = arith.constant 2147483647 : i32
//     %c2147483632_i32 = arith.constant 2147483632 : i32
//     %c1_i64 = arith.constant 1 : i64
//     %0 = tt.get_program_id y : i32
//     %1 = arith.extsi %arg3 : i32 to i64
//     %2 = arith.extsi %arg4 : i32 to i64
//     %3 = tt.make_tensor_descriptor %arg0, [%c2147483647_i32, %c2147483632_i32, %c2147483632_i32], [%1, %2, %c1_i64] : <f16>, <tensor<1x64x32xf16>>
//     %4 = scf.for %arg5 = %c0_i32 to %arg2 step %c32_i32 iter_args(%arg6 = %cst_0) -> (tensor<64x64xf32>)  : i32 {
//       %6 = tt.descriptor_load %3[%0, %c0_i32, %arg5] : !tt.tensordesc<tensor<1x64x32xf16>> -> tensor<64x32xf16>
//       %7 = tt.dot %6, %cst, %arg6 : tensor<64x32xf16> * tensor<32x64xf16> -> tensor<64x64xf32>
//       scf.yield %7 : tensor<64x64xf32>
//     }
//     %5 = tt.splat %arg1 : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
//     tt.store %5, %4 : tensor<64x64x!tt.ptr<f32>>
//     tt.return
//   }
// }
// -----
// A product of 16 bits is stored by TMA where it begins in the matrix, and by threads elsewhere: the column may be negative. What threads need for
// that is computed there.
// RUN: -target=cuda:90 -raise-to-descriptors

tt.func public @stored(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %M: i32, %N: i32 {tt.divisibility = 16 : i32}, %s: i32 {tt.divisibility = 16 : i32}, %K: i32) {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %a = arith.constant dense<1.000000e+00> : tensor<64x32xf16>
  %b = arith.constant dense<1.000000e+00> : tensor<32x64xf16>
  %zeros = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
  %program = tt.get_program_id x : i32
  %first = arith.muli %program, %c64 : i32
  %tile = arith.divsi %program, %M : i32
  %column = arith.muli %tile, %c64 : i32
  %sum = scf.for %k = %c0 to %K step %c32 iter_args(%acc = %zeros) -> (tensor<64x64xf32>) : i32 {
    %more = tt.dot %a, %b, %acc : tensor<64x32xf16> * tensor<32x64xf16> -> tensor<64x64xf32>
    scf.yield %more : tensor<64x64xf32>
  }
  %half = arith.truncf %sum : tensor<64x64xf32> to tensor<64x64xf16>
  %range = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %firsts = tt.splat %first : i32 -> tensor<64xi32>
  %rows = arith.addi %firsts, %range : tensor<64xi32>
  %row = tt.expand_dims %rows {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %columns = tt.splat %column : i32 -> tensor<64xi32>
  %cols = arith.addi %columns, %range : tensor<64xi32>
  %col = tt.expand_dims %cols {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %strides = tt.splat %s : i32 -> tensor<64x1xi32>
  %by_row = arith.muli %row, %strides : tensor<64x1xi32>
  %b0 = tt.broadcast %by_row : tensor<64x1xi32> -> tensor<64x64xi32>
  %b1 = tt.broadcast %col : tensor<1x64xi32> -> tensor<64x64xi32>
  %at = arith.addi %b0, %b1 : tensor<64x64xi32>
  %xs = tt.splat %x : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
  %p = tt.addptr %xs, %at : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
  %Ms = tt.splat %M : i32 -> tensor<64x1xi32>
  %Ns = tt.splat %N : i32 -> tensor<1x64xi32>
  %rmask = arith.cmpi slt, %row, %Ms : tensor<64x1xi32>
  %cmask = arith.cmpi slt, %col, %Ns : tensor<1x64xi32>
  %r0 = tt.broadcast %rmask : tensor<64x1xi1> -> tensor<64x64xi1>
  %c1 = tt.broadcast %cmask : tensor<1x64xi1> -> tensor<64x64xi1>
  %mask = arith.andi %r0, %c1 : tensor<64x64xi1>
  tt.store %p, %half, %mask : tensor<64x64x!tt.ptr<f16>>
  tt.return
}

// OUTPUT
// module {
//   tt.func public @stored(%arg0: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %arg1: i32, %arg2: i32 {tt.divisibility = 16 : i32}, %arg3: i32 {tt.divisibility = 16 : i32}, %arg4: i32) {
//     %c0_i32 = arith.constant 0 : i32
//     %c32_i32 = arith.constant 32 : i32
//     %c64_i32 = arith.constant 64 : i32
//     %cst = arith.constant dense<1.000000e+00> : tensor<64x32xf16>
//     %cst_0 = arith.constant dense<1.000000e+00> : tensor<32x64xf16>
//     %cst_1 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
//     %c1_i64 = arith.constant 1 : i64
//     %0 = tt.get_program_id x : i32
//     %1 = arith.muli %0, %c64_i32 : i32
//     %2 = arith.divsi %0, %arg1 : i32
//     %3 = arith.muli %2, %c64_i32 : i32
//     %4 = scf.for %arg5 = %c0_i32 to %arg4 step %c32_i32 iter_args(%arg6 = %cst_1) -> (tensor<64x64xf32>)  : i32 {
//       %13 = tt.dot %cst, %cst_0, %arg6 : tensor<64x32xf16> * tensor<32x64xf16> -> tensor<64x64xf32>
//       scf.yield %13 : tensor<64x64xf32>
//     }
//     %5 = arith.truncf %4 : tensor<64x64xf32> to tensor<64x64xf16>
//     %6 = arith.maxsi %arg1, %c0_i32 : i32
//     %7 = arith.extsi %arg3 : i32 to i64
//     %8 = arith.maxsi %arg2, %c0_i32 : i32
//     %9 = tt.make_tensor_descriptor %arg0, [%6, %8], [%7, %c1_i64] : <f16>, <tensor<64x64xf16>>
//     %10 = arith.cmpi ult, %1, %6 : i32
//     %11 = arith.cmpi ult, %3, %8 : i32
//     %12 = arith.andi %10, %11 : i1
//     scf.if %12 {
//       tt.descriptor_store %9[%1, %3], %5 : !tt.tensordesc<tensor<64x64xf16>>, tensor<64x64xf16>
//     } else {
//       %13 = tt.splat %arg2 : i32 -> tensor<1x64xi32>
//       %14 = tt.splat %3 : i32 -> tensor<64xi32>
//       %15 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
//       %16 = arith.addi %14, %15 : tensor<64xi32>
//       %17 = tt.expand_dims %16 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
//       %18 = arith.cmpi slt, %17, %13 : tensor<1x64xi32>
//       %19 = tt.broadcast %18 : tensor<1x64xi1> -> tensor<64x64xi1>
//       %20 = tt.splat %arg1 : i32 -> tensor<64x1xi32>
//       %21 = tt.splat %1 : i32 -> tensor<64xi32>
//       %22 = arith.addi %21, %15 : tensor<64xi32>
//       %23 = tt.expand_dims %22 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
//       %24 = arith.cmpi slt, %23, %20 : tensor<64x1xi32>
//       %25 = tt.broadcast %24 : tensor<64x1xi1> -> tensor<64x64xi1>
//       %26 = arith.andi %25, %19 : tensor<64x64xi1>
//       %27 = tt.splat %arg0 : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
//       %28 = tt.broadcast %17 : tensor<1x64xi32> -> tensor<64x64xi32>
//       %29 = tt.splat %arg3 : i32 -> tensor<64x1xi32>
//       %30 = arith.muli %23, %29 : tensor<64x1xi32>
//       %31 = tt.broadcast %30 : tensor<64x1xi32> -> tensor<64x64xi32>
//       %32 = arith.addi %31, %28 : tensor<64x64xi32>
//       %33 = tt.addptr %27, %32 : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
//       tt.store %33, %5, %26 : tensor<64x64x!tt.ptr<f16>>
//     }
//     tt.return
//   }
// }
// -----
// Threads store what a mask leaves out that does not bound each index by itself, and elements of 32 bits.
// RUN: -target=cuda:90 -raise-to-descriptors

tt.func public @stored_by_threads(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %M: i32, %N: i32 {tt.divisibility = 16 : i32}, %s: i32 {tt.divisibility = 16 : i32}, %K: i32) {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %a = arith.constant dense<1.000000e+00> : tensor<64x32xf16>
  %b = arith.constant dense<1.000000e+00> : tensor<32x64xf16>
  %zeros = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
  %program = tt.get_program_id x : i32
  %first = arith.muli %program, %c64 : i32
  %tile = arith.divsi %program, %M : i32
  %column = arith.muli %tile, %c64 : i32
  %sum = scf.for %k = %c0 to %K step %c32 iter_args(%acc = %zeros) -> (tensor<64x64xf32>) : i32 {
    %more = tt.dot %a, %b, %acc : tensor<64x32xf16> * tensor<32x64xf16> -> tensor<64x64xf32>
    scf.yield %more : tensor<64x64xf32>
  }
  %half = arith.truncf %sum : tensor<64x64xf32> to tensor<64x64xf16>
  %range = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %firsts = tt.splat %first : i32 -> tensor<64xi32>
  %rows = arith.addi %firsts, %range : tensor<64xi32>
  %row = tt.expand_dims %rows {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %columns = tt.splat %column : i32 -> tensor<64xi32>
  %cols = arith.addi %columns, %range : tensor<64xi32>
  %col = tt.expand_dims %cols {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %strides = tt.splat %s : i32 -> tensor<64x1xi32>
  %by_row = arith.muli %row, %strides : tensor<64x1xi32>
  %b0 = tt.broadcast %by_row : tensor<64x1xi32> -> tensor<64x64xi32>
  %b1 = tt.broadcast %col : tensor<1x64xi32> -> tensor<64x64xi32>
  %at = arith.addi %b0, %b1 : tensor<64x64xi32>
  %xs = tt.splat %x : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
  %p = tt.addptr %xs, %at : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
  %Ms = tt.splat %M : i32 -> tensor<64x1xi32>
  %Ns = tt.splat %N : i32 -> tensor<1x64xi32>
  %rmask = arith.cmpi slt, %row, %Ms : tensor<64x1xi32>
  %cmask = arith.cmpi slt, %col, %Ns : tensor<1x64xi32>
  %r0 = tt.broadcast %rmask : tensor<64x1xi1> -> tensor<64x64xi1>
  %c1 = tt.broadcast %cmask : tensor<1x64xi1> -> tensor<64x64xi1>
  %mask = arith.andi %r0, %c1 : tensor<64x64xi1>
  %d0 = tt.broadcast %row : tensor<64x1xi32> -> tensor<64x64xi32>
  %lower = arith.cmpi slt, %b1, %d0 : tensor<64x64xi32>
  tt.store %p, %half, %lower : tensor<64x64x!tt.ptr<f16>>
  %ys = tt.splat %y : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
  %q = tt.addptr %ys, %at : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
  tt.store %q, %sum, %mask : tensor<64x64x!tt.ptr<f32>>
  tt.return
}

// OUTPUT
// module {
//   tt.func public @stored_by_threads(%arg0: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %arg1: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %arg2: i32, %arg3: i32 {tt.divisibility = 16 : i32}, %arg4: i32 {tt.divisibility = 16 : i32}, %arg5: i32) {
//     %c0_i32 = arith.constant 0 : i32
//     %c32_i32 = arith.constant 32 : i32
//     %c64_i32 = arith.constant 64 : i32
//     %cst = arith.constant dense<1.000000e+00> : tensor<64x32xf16>
//     %cst_0 = arith.constant dense<1.000000e+00> : tensor<32x64xf16>
//     %cst_1 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
//     %0 = tt.get_program_id x : i32
//     %1 = arith.muli %0, %c64_i32 : i32
//     %2 = arith.divsi %0, %arg2 : i32
//     %3 = arith.muli %2, %c64_i32 : i32
//     %4 = scf.for %arg6 = %c0_i32 to %arg5 step %c32_i32 iter_args(%arg7 = %cst_1) -> (tensor<64x64xf32>)  : i32 {
//       %31 = tt.dot %cst, %cst_0, %arg7 : tensor<64x32xf16> * tensor<32x64xf16> -> tensor<64x64xf32>
//       scf.yield %31 : tensor<64x64xf32>
//     }
//     %5 = arith.truncf %4 : tensor<64x64xf32> to tensor<64x64xf16>
//     %6 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
//     %7 = tt.splat %1 : i32 -> tensor<64xi32>
//     %8 = arith.addi %7, %6 : tensor<64xi32>
//     %9 = tt.expand_dims %8 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
//     %10 = tt.splat %3 : i32 -> tensor<64xi32>
//     %11 = arith.addi %10, %6 : tensor<64xi32>
//     %12 = tt.expand_dims %11 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
//     %13 = tt.splat %arg4 : i32 -> tensor<64x1xi32>
//     %14 = arith.muli %9, %13 : tensor<64x1xi32>
//     %15 = tt.broadcast %14 : tensor<64x1xi32> -> tensor<64x64xi32>
//     %16 = tt.broadcast %12 : tensor<1x64xi32> -> tensor<64x64xi32>
//     %17 = arith.addi %15, %16 : tensor<64x64xi32>
//     %18 = tt.splat %arg0 : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
//     %19 = tt.addptr %18, %17 : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
//     %20 = tt.splat %arg2 : i32 -> tensor<64x1xi32>
//     %21 = tt.splat %arg3 : i32 -> tensor<1x64xi32>
//     %22 = arith.cmpi slt, %9, %20 : tensor<64x1xi32>
//     %23 = arith.cmpi slt, %12, %21 : tensor<1x64xi32>
//     %24 = tt.broadcast %22 : tensor<64x1xi1> -> tensor<64x64xi1>
//     %25 = tt.broadcast %23 : tensor<1x64xi1> -> tensor<64x64xi1>
//     %26 = arith.andi %24, %25 : tensor<64x64xi1>
//     %27 = tt.broadcast %9 : tensor<64x1xi32> -> tensor<64x64xi32>
//     %28 = arith.cmpi slt, %16, %27 : tensor<64x64xi32>
//     tt.store %19, %5, %28 : tensor<64x64x!tt.ptr<f16>>
//     %29 = tt.splat %arg1 : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
//     %30 = tt.addptr %29, %17 : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
//     tt.store %30, %4, %26 : tensor<64x64x!tt.ptr<f32>>
//     tt.return
//   }
// }
// -----
// Attention by two warp groups, a thread of which has 64 elements of the accumulator: warps of their own load.
// RUN: -target=cuda:90 -num-warps=8 -raise-to-descriptors

tt.func public @attention(%k: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %v: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %n: i32, %s: i32 {tt.divisibility = 16 : i32}) -> tensor<128x128xf32> {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %q = arith.constant dense<1.000000e+00> : tensor<128x128xf16>
  %zeros = arith.constant dense<0.000000e+00> : tensor<128x128xf32>
  %none = arith.constant dense<0.000000e+00> : tensor<128x64xf32>
  %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %c = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
  %c2 = tt.expand_dims %c {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %columns = tt.broadcast %c2 : tensor<1x128xi32> -> tensor<64x128xi32>
  %strides = tt.splat %s : i32 -> tensor<64x1xi32>
  %ks = tt.splat %k : !tt.ptr<f16> -> tensor<64x128x!tt.ptr<f16>>
  %vs = tt.splat %v : !tt.ptr<f16> -> tensor<64x128x!tt.ptr<f16>>
  %o = scf.for %j = %c0 to %n step %c64 iter_args(%acc = %zeros) -> (tensor<128x128xf32>) : i32 {
    %js = tt.splat %j : i32 -> tensor<64xi32>
    %rows = arith.addi %js, %r : tensor<64xi32>
    %row = tt.expand_dims %rows {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %by = arith.muli %row, %strides : tensor<64x1xi32>
    %firsts = tt.broadcast %by : tensor<64x1xi32> -> tensor<64x128xi32>
    %at = arith.addi %firsts, %columns : tensor<64x128xi32>
    %kp = tt.addptr %ks, %at : tensor<64x128x!tt.ptr<f16>>, tensor<64x128xi32>
    %vp = tt.addptr %vs, %at : tensor<64x128x!tt.ptr<f16>>, tensor<64x128xi32>
    %keys = tt.load %kp : tensor<64x128x!tt.ptr<f16>>
    %turned = tt.trans %keys {order = array<i32: 1, 0>} : tensor<64x128xf16> -> tensor<128x64xf16>
    %scores = tt.dot %q, %turned, %none : tensor<128x128xf16> * tensor<128x64xf16> -> tensor<128x64xf32>
    %p = math.exp2 %scores : tensor<128x64xf32>
    %p16 = arith.truncf %p : tensor<128x64xf32> to tensor<128x64xf16>
    %values = tt.load %vp : tensor<64x128x!tt.ptr<f16>>
    %sum = tt.dot %p16, %values, %acc : tensor<128x64xf16> * tensor<64x128xf16> -> tensor<128x128xf32>
    scf.yield %sum : tensor<128x128xf32>
  }
  tt.return %o : tensor<128x128xf32>
}

// CHECK: tt.descriptor_load
// CHECK: tt.descriptor_load
// CHECK: } {tt.warp_specialize = true}
// -----
// The queries of such attention, loaded before the loop for its first product alone, are a block, too; here programs begin with the last of them. What loads them for something else leaves them.
// RUN: -target=cuda:90 -num-warps=8 -raise-to-descriptors

tt.func public @queries(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %k: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %v: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %n: i32, %s: i32 {tt.divisibility = 16 : i32}) -> tensor<128x128xf32> {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %c1 = arith.constant 1 : i32
  %programs = tt.get_num_programs x : i32
  %last = arith.subi %programs, %c1 : i32
  %program = tt.get_program_id x : i32
  %number = arith.subi %last, %program : i32
  %first = arith.muli %number, %c128 : i32
  %zeros = arith.constant dense<0.000000e+00> : tensor<128x128xf32>
  %none = arith.constant dense<0.000000e+00> : tensor<128x64xf32>
  %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %c = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
  %c2 = tt.expand_dims %c {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %firstq = tt.splat %first : i32 -> tensor<128xi32>
  %rowsq = arith.addi %firstq, %c : tensor<128xi32>
  %rowq = tt.expand_dims %rowsq {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
  %stridesq = tt.splat %s : i32 -> tensor<128x1xi32>
  %byq = arith.muli %rowq, %stridesq : tensor<128x1xi32>
  %firstsq = tt.broadcast %byq : tensor<128x1xi32> -> tensor<128x128xi32>
  %columnsq = tt.broadcast %c2 : tensor<1x128xi32> -> tensor<128x128xi32>
  %atq = arith.addi %firstsq, %columnsq : tensor<128x128xi32>
  %xs = tt.splat %x : !tt.ptr<f16> -> tensor<128x128x!tt.ptr<f16>>
  %qp = tt.addptr %xs, %atq : tensor<128x128x!tt.ptr<f16>>, tensor<128x128xi32>
  %q = tt.load %qp : tensor<128x128x!tt.ptr<f16>>
  %columns = tt.broadcast %c2 : tensor<1x128xi32> -> tensor<64x128xi32>
  %strides = tt.splat %s : i32 -> tensor<64x1xi32>
  %ks = tt.splat %k : !tt.ptr<f16> -> tensor<64x128x!tt.ptr<f16>>
  %vs = tt.splat %v : !tt.ptr<f16> -> tensor<64x128x!tt.ptr<f16>>
  %o = scf.for %j = %c0 to %n step %c64 iter_args(%acc = %zeros) -> (tensor<128x128xf32>) : i32 {
    %js = tt.splat %j : i32 -> tensor<64xi32>
    %rows = arith.addi %js, %r : tensor<64xi32>
    %row = tt.expand_dims %rows {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %by = arith.muli %row, %strides : tensor<64x1xi32>
    %firsts = tt.broadcast %by : tensor<64x1xi32> -> tensor<64x128xi32>
    %at = arith.addi %firsts, %columns : tensor<64x128xi32>
    %kp = tt.addptr %ks, %at : tensor<64x128x!tt.ptr<f16>>, tensor<64x128xi32>
    %vp = tt.addptr %vs, %at : tensor<64x128x!tt.ptr<f16>>, tensor<64x128xi32>
    %keys = tt.load %kp : tensor<64x128x!tt.ptr<f16>>
    %turned = tt.trans %keys {order = array<i32: 1, 0>} : tensor<64x128xf16> -> tensor<128x64xf16>
    %scores = tt.dot %q, %turned, %none : tensor<128x128xf16> * tensor<128x64xf16> -> tensor<128x64xf32>
    %p = math.exp2 %scores : tensor<128x64xf32>
    %p16 = arith.truncf %p : tensor<128x64xf32> to tensor<128x64xf16>
    %values = tt.load %vp : tensor<64x128x!tt.ptr<f16>>
    %sum = tt.dot %p16, %values, %acc : tensor<128x64xf16> * tensor<64x128xf16> -> tensor<128x128xf32>
    scf.yield %sum : tensor<128x128xf32>
  }
  tt.return %o : tensor<128x128xf32>
}

// CHECK: [[NUMBER:%.*]] = arith.subi {{.*}} : i32
// CHECK: tt.make_tensor_descriptor %arg0, [{{.*}}], [{{.*}}] : <f16>, <tensor<1x128x128xf16>>
// CHECK-NEXT: [[Q:%.*]] = tt.descriptor_load {{.*}}[[NUMBER]], {{.*}}
// CHECK: scf.for
// CHECK: tt.dot [[Q]],
// CHECK: } {tt.warp_specialize = true}
// -----
// Of few keys at a time they don't.
// RUN: -target=cuda:90 -num-warps=8 -raise-to-descriptors

tt.func public @attention(%k: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %v: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %n: i32, %s: i32 {tt.divisibility = 16 : i32}) -> tensor<128x128xf32> {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %q = arith.constant dense<1.000000e+00> : tensor<128x128xf16>
  %zeros = arith.constant dense<0.000000e+00> : tensor<128x128xf32>
  %none = arith.constant dense<0.000000e+00> : tensor<128x32xf32>
  %r = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
  %c = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
  %c2 = tt.expand_dims %c {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %columns = tt.broadcast %c2 : tensor<1x128xi32> -> tensor<32x128xi32>
  %strides = tt.splat %s : i32 -> tensor<32x1xi32>
  %ks = tt.splat %k : !tt.ptr<f16> -> tensor<32x128x!tt.ptr<f16>>
  %vs = tt.splat %v : !tt.ptr<f16> -> tensor<32x128x!tt.ptr<f16>>
  %o = scf.for %j = %c0 to %n step %c32 iter_args(%acc = %zeros) -> (tensor<128x128xf32>) : i32 {
    %js = tt.splat %j : i32 -> tensor<32xi32>
    %rows = arith.addi %js, %r : tensor<32xi32>
    %row = tt.expand_dims %rows {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
    %by = arith.muli %row, %strides : tensor<32x1xi32>
    %firsts = tt.broadcast %by : tensor<32x1xi32> -> tensor<32x128xi32>
    %at = arith.addi %firsts, %columns : tensor<32x128xi32>
    %kp = tt.addptr %ks, %at : tensor<32x128x!tt.ptr<f16>>, tensor<32x128xi32>
    %vp = tt.addptr %vs, %at : tensor<32x128x!tt.ptr<f16>>, tensor<32x128xi32>
    %keys = tt.load %kp : tensor<32x128x!tt.ptr<f16>>
    %turned = tt.trans %keys {order = array<i32: 1, 0>} : tensor<32x128xf16> -> tensor<128x32xf16>
    %scores = tt.dot %q, %turned, %none : tensor<128x128xf16> * tensor<128x32xf16> -> tensor<128x32xf32>
    %p = math.exp2 %scores : tensor<128x32xf32>
    %p16 = arith.truncf %p : tensor<128x32xf32> to tensor<128x32xf16>
    %values = tt.load %vp : tensor<32x128x!tt.ptr<f16>>
    %sum = tt.dot %p16, %values, %acc : tensor<128x32xf16> * tensor<32x128xf16> -> tensor<128x128xf32>
    scf.yield %sum : tensor<128x128xf32>
  }
  tt.return %o : tensor<128x128xf32>
}

// CHECK: tt.descriptor_load
// CHECK-NOT: tt.warp_specialize
// -----
// Nor where there is one warp group.
// RUN: -target=cuda:90 -num-warps=4 -raise-to-descriptors

tt.func public @attention(%k: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %v: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %n: i32, %s: i32 {tt.divisibility = 16 : i32}) -> tensor<128x128xf32> {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %q = arith.constant dense<1.000000e+00> : tensor<128x128xf16>
  %zeros = arith.constant dense<0.000000e+00> : tensor<128x128xf32>
  %none = arith.constant dense<0.000000e+00> : tensor<128x64xf32>
  %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %c = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
  %c2 = tt.expand_dims %c {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %columns = tt.broadcast %c2 : tensor<1x128xi32> -> tensor<64x128xi32>
  %strides = tt.splat %s : i32 -> tensor<64x1xi32>
  %ks = tt.splat %k : !tt.ptr<f16> -> tensor<64x128x!tt.ptr<f16>>
  %vs = tt.splat %v : !tt.ptr<f16> -> tensor<64x128x!tt.ptr<f16>>
  %o = scf.for %j = %c0 to %n step %c64 iter_args(%acc = %zeros) -> (tensor<128x128xf32>) : i32 {
    %js = tt.splat %j : i32 -> tensor<64xi32>
    %rows = arith.addi %js, %r : tensor<64xi32>
    %row = tt.expand_dims %rows {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %by = arith.muli %row, %strides : tensor<64x1xi32>
    %firsts = tt.broadcast %by : tensor<64x1xi32> -> tensor<64x128xi32>
    %at = arith.addi %firsts, %columns : tensor<64x128xi32>
    %kp = tt.addptr %ks, %at : tensor<64x128x!tt.ptr<f16>>, tensor<64x128xi32>
    %vp = tt.addptr %vs, %at : tensor<64x128x!tt.ptr<f16>>, tensor<64x128xi32>
    %keys = tt.load %kp : tensor<64x128x!tt.ptr<f16>>
    %turned = tt.trans %keys {order = array<i32: 1, 0>} : tensor<64x128xf16> -> tensor<128x64xf16>
    %scores = tt.dot %q, %turned, %none : tensor<128x128xf16> * tensor<128x64xf16> -> tensor<128x64xf32>
    %p = math.exp2 %scores : tensor<128x64xf32>
    %p16 = arith.truncf %p : tensor<128x64xf32> to tensor<128x64xf16>
    %values = tt.load %vp : tensor<64x128x!tt.ptr<f16>>
    %sum = tt.dot %p16, %values, %acc : tensor<128x64xf16> * tensor<64x128xf16> -> tensor<128x128xf32>
    scf.yield %sum : tensor<128x128xf32>
  }
  tt.return %o : tensor<128x128xf32>
}

// CHECK: tt.descriptor_load
// CHECK-NOT: tt.warp_specialize
// -----
// A quotient of a program's number by what the kernel is given: rows begin in the matrix, and their blocks come by TMA.
// RUN: -target=cuda:90 -num-warps=4 -raise-to-descriptors

tt.func public @quotient(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %M: i32, %K: i32 {tt.divisibility = 16 : i32}, %s: i32 {tt.divisibility = 16 : i32}, %tiles: i32) -> tensor<64x64xf32> {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.000000e+00> : tensor<64x64xf16>
  %b = arith.constant dense<1.000000e+00> : tensor<64x64xf16>
  %none = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
  %pid = tt.get_program_id x : i32
  %tile = arith.divsi %pid, %tiles : i32
  %first = arith.muli %tile, %c64 : i32
  %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %f = tt.splat %first : i32 -> tensor<64xi32>
  %rows = arith.addi %f, %r : tensor<64xi32>
  %row = tt.expand_dims %rows {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %Ms = tt.splat %M : i32 -> tensor<64x1xi32>
  %inside_m = arith.cmpi slt, %row, %Ms : tensor<64x1xi32>
  %ss = tt.splat %s : i32 -> tensor<64x1xi32>
  %by_row = arith.muli %row, %ss : tensor<64x1xi32>
  %xs = tt.splat %x : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
  %by = tt.broadcast %by_row : tensor<64x1xi32> -> tensor<64x64xi32>
  %m = tt.broadcast %inside_m : tensor<64x1xi1> -> tensor<64x64xi1>
  %Ks = tt.splat %K : i32 -> tensor<1x64xi32>
  %o = scf.for %j = %c0 to %K step %c64 iter_args(%acc = %none) -> (tensor<64x64xf32>) : i32 {
    %js = tt.splat %j : i32 -> tensor<64xi32>
    %columns = arith.addi %js, %r : tensor<64xi32>
    %column = tt.expand_dims %columns {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %inside_k = arith.cmpi slt, %column, %Ks : tensor<1x64xi32>
    %k = tt.broadcast %inside_k : tensor<1x64xi1> -> tensor<64x64xi1>
    %mask = arith.andi %m, %k : tensor<64x64xi1>
    %wide = tt.broadcast %column : tensor<1x64xi32> -> tensor<64x64xi32>
    %at = arith.addi %by, %wide : tensor<64x64xi32>
    %p = tt.addptr %xs, %at : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
    %a = tt.load %p, %mask, %zero : tensor<64x64x!tt.ptr<f16>>
    %sum = tt.dot %a, %b, %acc : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %sum : tensor<64x64xf32>
  }
  tt.return %o : tensor<64x64xf32>
}

// CHECK: tt.descriptor_load
// -----
// Programs count batches back from the last: none is in front of the first.
// RUN: -target=cuda:90 -raise-to-descriptors
tt.func public @from_the_last(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %out: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %K: i32 {tt.divisibility = 16 : i32}, %batch: i32 {tt.divisibility = 16 : i32}, %s: i32 {tt.divisibility = 16 : i32}) {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %b = arith.constant dense<1.000000e+00> : tensor<32x64xf16>
  %zeros = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
  %program = tt.get_program_id y : i32
  %c1 = arith.constant 1 : i32
  %programs = tt.get_num_programs y : i32
  %last = arith.subi %programs, %c1 : i32
  %back = arith.subi %last, %program : i32
  %wide = arith.extsi %back : i32 to i64
  %pitch = arith.extsi %batch : i32 to i64
  %begin = arith.muli %wide, %pitch : i64
  %matrix = tt.addptr %x, %begin : !tt.ptr<f16>, i64
  %rows = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %columns = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
  %row = tt.expand_dims %rows {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %strides = tt.splat %s : i32 -> tensor<64x1xi32>
  %by_row = arith.muli %row, %strides : tensor<64x1xi32>
  %bases = tt.splat %matrix : !tt.ptr<f16> -> tensor<64x1x!tt.ptr<f16>>
  %starts = tt.addptr %bases, %by_row : tensor<64x1x!tt.ptr<f16>>, tensor<64x1xi32>
  %all = tt.broadcast %starts : tensor<64x1x!tt.ptr<f16>> -> tensor<64x32x!tt.ptr<f16>>
  %column = tt.expand_dims %columns {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %by_column = tt.broadcast %column : tensor<1x32xi32> -> tensor<64x32xi32>
  %pointers = tt.addptr %all, %by_column : tensor<64x32x!tt.ptr<f16>>, tensor<64x32xi32>
  %step = arith.constant dense<32> : tensor<64x32xi32>
  %sum:2 = scf.for %k = %c0 to %K step %c32 iter_args(%p = %pointers, %acc = %zeros) -> (tensor<64x32x!tt.ptr<f16>>, tensor<64x64xf32>) : i32 {
    %a = tt.load %p : tensor<64x32x!tt.ptr<f16>>
    %more = tt.dot %a, %b, %acc : tensor<64x32xf16> * tensor<32x64xf16> -> tensor<64x64xf32>
    %next = tt.addptr %p, %step : tensor<64x32x!tt.ptr<f16>>, tensor<64x32xi32>
    scf.yield %next, %more : tensor<64x32x!tt.ptr<f16>>, tensor<64x64xf32>
  }
  %outs = tt.splat %out : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
  tt.store %outs, %sum#1 : tensor<64x64x!tt.ptr<f32>>
  tt.return
}
// CHECK: [[BACK:%.*]] = arith.subi {{.*}} : i32
// CHECK: [[PITCH:%.*]] = arith.extsi %arg3
// CHECK: [[S:%.*]] = arith.extsi %arg4
// CHECK: tt.make_tensor_descriptor %arg0, {{.*}}[[PITCH]], [[S]], %c1_i64] : <f16>, <tensor<1x64x32xf16>>
// CHECK: scf.for
// CHECK: tt.descriptor_load {{.*}}[[BACK]], %c0_i32,
// CHECK-NOT: tt.load
// CHECK: tt.store
