// RUN: -canonicalize
// What an operation promises of its value stays with it: it is not replaced by what it adds nothing to, and nothing is computed past it.

tt.func @promises(%p: !tt.ptr<f32>, %n: i32, %t: tensor<8xi32>) -> (i32, i32, i32, !tt.ptr<f32>, tensor<8xi32>, i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c15 = arith.constant 15 : i32
  %zeros = arith.constant dense<0> : tensor<8xi32>
  %same = arith.addi %n, %c0 {tt.divisibility = dense<16> : tensor<1xi32>} : i32
  %less = arith.subi %n, %c1 {tt.divisibility = dense<16> : tensor<1xi32>} : i32
  %more = arith.addi %less, %c15 : i32
  %q = tt.addptr %p, %c1 {tt.divisibility = dense<16> : tensor<1xi32>} : !tt.ptr<f32>, i32
  %r = tt.addptr %q, %c15 : !tt.ptr<f32>, i32
  %runs = arith.addi %t, %zeros {tt.contiguity = dense<8> : tensor<1xi32>} : tensor<8xi32>
  %plain = arith.addi %n, %c0 : i32
  tt.return %same, %less, %more, %r, %runs, %plain : i32, i32, i32, !tt.ptr<f32>, tensor<8xi32>, i32
}
// OUTPUT
// module {
//   tt.func @promises(%arg0: !tt.ptr<f32>, %arg1: i32, %arg2: tensor<8xi32>) -> (i32, i32, i32, !tt.ptr<f32>, tensor<8xi32>, i32) {
//     %c0_i32 = arith.constant 0 : i32
//     %c1_i32 = arith.constant 1 : i32
//     %c15_i32 = arith.constant 15 : i32
//     %cst = arith.constant dense<0> : tensor<8xi32>
//     %0 = arith.addi %arg1, %c0_i32 {tt.divisibility = dense<16> : tensor<1xi32>} : i32
//     %1 = arith.subi %arg1, %c1_i32 {tt.divisibility = dense<16> : tensor<1xi32>} : i32
//     %2 = arith.addi %1, %c15_i32 : i32
//     %3 = tt.addptr %arg0, %c1_i32 {tt.divisibility = dense<16> : tensor<1xi32>} : !tt.ptr<f32>, i32
//     %4 = tt.addptr %3, %c15_i32 : !tt.ptr<f32>, i32
//     %5 = arith.addi %arg2, %cst {tt.contiguity = dense<8> : tensor<1xi32>} : tensor<8xi32>
//     tt.return %0, %1, %2, %4, %5, %arg1 : i32, i32, i32, !tt.ptr<f32>, tensor<8xi32>, i32
//   }
// }
