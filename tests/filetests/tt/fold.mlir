// Constants fold in the arithmetic of their type; what would fault stays.
// RUN: -canonicalize
tt.func @f(%x: i32, %v: tensor<8xi32>) -> (i32, i8, i32, i32, f32, f16, i1, tensor<8xi32>, i1) {
  %c2 = arith.constant 2 : i32
  %c3 = arith.constant 3 : i32
  %c127 = arith.constant 127 : i8
  %c1_i8 = arith.constant 1 : i8
  %zero = arith.constant 0 : i32
  %0 = arith.muli %c2, %c3 : i32
  %1 = arith.addi %c127, %c1_i8 : i8
  %2 = arith.divsi %c2, %zero : i32
  %3 = arith.addi %c2, %x : i32
  %4 = arith.addi %3, %c3 : i32
  %5 = arith.constant 0.1 : f32
  %6 = arith.constant 0.2 : f32
  %7 = arith.addf %5, %6 : f32
  %8 = arith.truncf %7 : f32 to f16
  %9 = arith.cmpi slt, %c2, %c3 : i32
  %10 = tt.splat %c2 : i32 -> tensor<8xi32>
  %11 = arith.muli %v, %10 : tensor<8xi32>
  %12 = arith.cmpi sgt, %c3, %x : i32
  tt.return %0, %1, %2, %4, %7, %8, %9, %11, %12 : i32, i8, i32, i32, f32, f16, i1, tensor<8xi32>, i1
}

// OUTPUT
// module {
//   tt.func @f(%arg0: i32, %arg1: tensor<8xi32>) -> (i32, i8, i32, i32, f32, f16, i1, tensor<8xi32>, i1) {
//     %c2_i32 = arith.constant 2 : i32
//     %c3_i32 = arith.constant 3 : i32
//     %c0_i32 = arith.constant 0 : i32
//     %c6_i32 = arith.constant 6 : i32
//     %c-128_i8 = arith.constant -128 : i8
//     %c5_i32 = arith.constant 5 : i32
//     %cst = arith.constant 3.000000e-01 : f32
//     %cst_0 = arith.constant 3.000490e-01 : f16
//     %true = arith.constant true
//     %cst_1 = arith.constant dense<2> : tensor<8xi32>
//     %0 = arith.divsi %c2_i32, %c0_i32 : i32
//     %1 = arith.addi %arg0, %c5_i32 : i32
//     %2 = arith.muli %arg1, %cst_1 : tensor<8xi32>
//     %3 = arith.cmpi slt, %arg0, %c3_i32 : i32
//     tt.return %c6_i32, %c-128_i8, %0, %1, %cst, %cst_0, %true, %2, %3 : i32, i8, i32, i32, f32, f16, i1, tensor<8xi32>, i1
//   }
// }
