// Splats move out of elementwise and shape operations; shape operations compose.
// RUN: -canonicalize
tt.func @f(%x: i32, %t: tensor<4x8xf32>) -> (tensor<4x8xi32>, tensor<32xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xi1>) {
  %c = arith.constant dense<3> : tensor<8xi32>
  %0 = tt.splat %x : i32 -> tensor<8xi32>
  %1 = arith.addi %0, %c : tensor<8xi32>
  %2 = tt.expand_dims %1 {axis = 0 : i32} : tensor<8xi32> -> tensor<1x8xi32>
  %3 = tt.broadcast %2 : tensor<1x8xi32> -> tensor<4x8xi32>
  %4 = tt.reshape %t : tensor<4x8xf32> -> tensor<8x4xf32>
  %5 = tt.reshape %4 : tensor<8x4xf32> -> tensor<32xf32>
  %6 = tt.trans %t {order = array<i32: 1, 0>} : tensor<4x8xf32> -> tensor<8x4xf32>
  %7 = tt.trans %6 {order = array<i32: 1, 0>} : tensor<8x4xf32> -> tensor<4x8xf32>
  %8 = arith.constant dense<1.0> : tensor<1x8xf32>
  %9 = tt.broadcast %8 : tensor<1x8xf32> -> tensor<4x8xf32>
  %10 = arith.constant dense<1> : tensor<4x8xi32>
  %11 = arith.cmpi slt, %3, %10 : tensor<4x8xi32>
  tt.return %3, %5, %7, %9, %11 : tensor<4x8xi32>, tensor<32xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xi1>
}

// OUTPUT
// module {
//   tt.func @f(%arg0: i32, %arg1: tensor<4x8xf32>) -> (tensor<4x8xi32>, tensor<32xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xi1>) {
//     %c3_i32 = arith.constant 3 : i32
//     %cst = arith.constant dense<1.000000e+00> : tensor<4x8xf32>
//     %c1_i32 = arith.constant 1 : i32
//     %0 = arith.addi %arg0, %c3_i32 : i32
//     %1 = tt.splat %0 : i32 -> tensor<4x8xi32>
//     %2 = tt.reshape %arg1 : tensor<4x8xf32> -> tensor<32xf32>
//     %3 = arith.cmpi slt, %0, %c1_i32 : i32
//     %4 = tt.splat %3 : i1 -> tensor<4x8xi1>
//     tt.return %1, %2, %arg1, %cst, %4 : tensor<4x8xi32>, tensor<32xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xi1>
//   }
// }
