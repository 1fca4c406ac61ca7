// Three tf32 products make one of nearly fp32's accuracy.
// RUN: -legalize-dots
tt.func @f(%a: tensor<16x16xf32>, %b: tensor<16x16xf32>, %c: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %0 = tt.dot %a, %b, %c, inputPrecision = tf32x3 : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
  tt.return %0 : tensor<16x16xf32>
}
// OUTPUT
// module {
//   tt.func @f(%arg0: tensor<16x16xf32>, %arg1: tensor<16x16xf32>, %arg2: tensor<16x16xf32>) -> tensor<16x16xf32> {
//     %0 = arith.bitcast %arg0 : tensor<16x16xf32> to tensor<16x16xi32>
//     %cst = arith.constant dense<-8192> : tensor<16x16xi32>
//     %1 = arith.andi %0, %cst : tensor<16x16xi32>
//     %2 = arith.bitcast %1 : tensor<16x16xi32> to tensor<16x16xf32>
//     %3 = arith.subf %arg0, %2 : tensor<16x16xf32>
//     %4 = arith.bitcast %arg1 : tensor<16x16xf32> to tensor<16x16xi32>
//     %cst_0 = arith.constant dense<-8192> : tensor<16x16xi32>
//     %5 = arith.andi %4, %cst_0 : tensor<16x16xi32>
//     %6 = arith.bitcast %5 : tensor<16x16xi32> to tensor<16x16xf32>
//     %7 = arith.subf %arg1, %6 : tensor<16x16xf32>
//     %8 = tt.dot %3, %6, %arg2, inputPrecision = tf32 : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
//     %9 = tt.dot %2, %7, %8, inputPrecision = tf32 : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
//     %10 = tt.dot %2, %6, %9, inputPrecision = tf32 : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
//     tt.return %10 : tensor<16x16xf32>
//   }
// }
// -----
// fp8 is widened where the target has no such instruction.
// RUN: -legalize-dots -target=cuda:86
tt.func @g(%a: tensor<16x32xf8E5M2>, %b: tensor<32x16xf8E5M2>, %c: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %0 = tt.dot %a, %b, %c : tensor<16x32xf8E5M2> * tensor<32x16xf8E5M2> -> tensor<16x16xf32>
  tt.return %0 : tensor<16x16xf32>
}
// OUTPUT
// module {
//   tt.func @g(%arg0: tensor<16x32xf8E5M2>, %arg1: tensor<32x16xf8E5M2>, %arg2: tensor<16x16xf32>) -> tensor<16x16xf32> {
//     %0 = tt.fp_to_fp %arg0 : tensor<16x32xf8E5M2> -> tensor<16x32xf16>
//     %1 = tt.fp_to_fp %arg1 : tensor<32x16xf8E5M2> -> tensor<32x16xf16>
//     %2 = tt.dot %0, %1, %arg2 : tensor<16x32xf16> * tensor<32x16xf16> -> tensor<16x16xf32>
//     tt.return %2 : tensor<16x16xf32>
//   }
// }
// -----
// RUN: -legalize-dots -target=cuda:89
tt.func @h(%a: tensor<16x32xf8E5M2>, %b: tensor<32x16xf8E4M3FN>, %c: tensor<16x16xf32>) -> tensor<16x16xf32> {
  // CHECK-NOT: fp_to_fp
  // CHECK: tt.dot {{.*}}tensor<16x32xf8E5M2> * tensor<32x16xf8E4M3FN>
  %0 = tt.dot %a, %b, %c : tensor<16x32xf8E5M2> * tensor<32x16xf8E4M3FN> -> tensor<16x16xf32>
  tt.return %0 : tensor<16x16xf32>
}
