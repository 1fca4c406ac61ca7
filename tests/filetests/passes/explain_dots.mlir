// A product whose tile is smaller than an instruction.
// RUN: -explain-dots
tt.func @narrow(%a: tensor<4x32xf16>, %b: tensor<32x16xf16>, %c: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %0 = tt.dot %a, %b, %c : tensor<4x32xf16> * tensor<32x16xf16> -> tensor<4x16xf32>
  tt.return %0 : tensor<4x16xf32>
}

// OUTPUT
// module attributes {ttg.remarks = ["passes/explain_dots.mlir:4:8: this product is not done on tensor cores: its tile of results, 4x16, is smaller than that of an instruction, 16x8"]} {
//   tt.func @narrow(%arg0: tensor<4x32xf16>, %arg1: tensor<32x16xf16>, %arg2: tensor<4x16xf32>) -> tensor<4x16xf32> {
//     %0 = tt.dot %arg0, %arg1, %arg2 : tensor<4x32xf16> * tensor<32x16xf16> -> tensor<4x16xf32>
//     tt.return %0 : tensor<4x16xf32>
//   }
// }
// -----

// One whose operands keep all their bits.
// RUN: -explain-dots
tt.func @exact(%a: tensor<16x32xf32>, %b: tensor<32x16xf32>, %c: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %0 = tt.dot %a, %b, %c : tensor<16x32xf32> * tensor<32x16xf32> -> tensor<16x16xf32>
  tt.return %0 : tensor<16x16xf32>
}

// OUTPUT
// module attributes {ttg.remarks = ["passes/explain_dots.mlir:20:8: this product is not done on tensor cores: `input_precision=\22ieee\22` keeps every bit of its operands, which `\22tf32\22` and `\22tf32x3\22` do not"]} {
//   tt.func @exact(%arg0: tensor<16x32xf32>, %arg1: tensor<32x16xf32>, %arg2: tensor<16x16xf32>) -> tensor<16x16xf32> {
//     %0 = tt.dot %arg0, %arg1, %arg2 : tensor<16x32xf32> * tensor<32x16xf32> -> tensor<16x16xf32>
//     tt.return %0 : tensor<16x16xf32>
//   }
// }
// -----

// Doubles, for which no instruction is used; twice, which is said for each line.
// RUN: -explain-dots
tt.func @doubles(%a: tensor<16x16xf64>, %b: tensor<16x16xf64>, %c: tensor<16x16xf64>) -> tensor<16x16xf64> {
  %0 = tt.dot %a, %b, %c : tensor<16x16xf64> * tensor<16x16xf64> -> tensor<16x16xf64>
  %1 = tt.dot %a, %b, %0 : tensor<16x16xf64> * tensor<16x16xf64> -> tensor<16x16xf64>
  tt.return %1 : tensor<16x16xf64>
}

// OUTPUT
// module attributes {ttg.remarks = ["passes/explain_dots.mlir:36:8: this product is not done on tensor cores: there is no instruction that multiplies f64 by f64 into f64", "passes/explain_dots.mlir:37:8: this product is not done on tensor cores: there is no instruction that multiplies f64 by f64 into f64"]} {
//   tt.func @doubles(%arg0: tensor<16x16xf64>, %arg1: tensor<16x16xf64>, %arg2: tensor<16x16xf64>) -> tensor<16x16xf64> {
//     %0 = tt.dot %arg0, %arg1, %arg2 : tensor<16x16xf64> * tensor<16x16xf64> -> tensor<16x16xf64>
//     %1 = tt.dot %arg0, %arg1, %0 : tensor<16x16xf64> * tensor<16x16xf64> -> tensor<16x16xf64>
//     tt.return %1 : tensor<16x16xf64>
//   }
// }
// -----

// Nothing to say: tensor cores do it.
// RUN: -explain-dots
tt.func @whole(%a: tensor<16x32xf16>, %b: tensor<32x16xf16>, %c: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %0 = tt.dot %a, %b, %c : tensor<16x32xf16> * tensor<32x16xf16> -> tensor<16x16xf32>
  tt.return %0 : tensor<16x16xf32>
}

// OUTPUT
// module {
//   tt.func @whole(%arg0: tensor<16x32xf16>, %arg1: tensor<32x16xf16>, %arg2: tensor<16x16xf32>) -> tensor<16x16xf32> {
//     %0 = tt.dot %arg0, %arg1, %arg2 : tensor<16x32xf16> * tensor<32x16xf16> -> tensor<16x16xf32>
//     tt.return %0 : tensor<16x16xf32>
//   }
// }
