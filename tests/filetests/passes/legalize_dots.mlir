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
//     %cst_1 = arith.constant dense<0.000000e+00> : tensor<16x16xf32>
//     %8 = tt.dot %3, %6, %cst_1, inputPrecision = tf32 : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
//     %9 = tt.dot %2, %7, %8, inputPrecision = tf32 : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
//     %10 = arith.cmpf oeq, %9, %9 : tensor<16x16xf32>
//     %11 = arith.select %10, %9, %cst_1 : tensor<16x16xi1>, tensor<16x16xf32>
//     %12 = tt.dot %2, %6, %11, inputPrecision = tf32 : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
//     %13 = arith.addf %12, %arg2 : tensor<16x16xf32>
//     tt.return %13 : tensor<16x16xf32>
//   }
// }
// -----
// RUN: -legalize-dots
tt.func @six(%a: tensor<16x16xf32>, %b: tensor<16x16xf32>, %c: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %0 = tt.dot %a, %b, %c, inputPrecision = bf16x6 : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
  tt.return %0 : tensor<16x16xf32>
}
// OUTPUT
// module {
//   tt.func @six(%arg0: tensor<16x16xf32>, %arg1: tensor<16x16xf32>, %arg2: tensor<16x16xf32>) -> tensor<16x16xf32> {
//     %0 = arith.bitcast %arg0 : tensor<16x16xf32> to tensor<16x16xi32>
//     %cst = arith.constant dense<-65536> : tensor<16x16xi32>
//     %1 = arith.andi %0, %cst : tensor<16x16xi32>
//     %2 = arith.bitcast %1 : tensor<16x16xi32> to tensor<16x16xf32>
//     %3 = arith.subf %arg0, %2 : tensor<16x16xf32>
//     %4 = arith.truncf %2 : tensor<16x16xf32> to tensor<16x16xbf16>
//     %5 = arith.truncf %3 : tensor<16x16xf32> to tensor<16x16xbf16>
//     %6 = arith.extf %5 : tensor<16x16xbf16> to tensor<16x16xf32>
//     %7 = arith.subf %3, %6 : tensor<16x16xf32>
//     %8 = arith.truncf %7 : tensor<16x16xf32> to tensor<16x16xbf16>
//     %9 = arith.bitcast %arg1 : tensor<16x16xf32> to tensor<16x16xi32>
//     %cst_0 = arith.constant dense<-65536> : tensor<16x16xi32>
//     %10 = arith.andi %9, %cst_0 : tensor<16x16xi32>
//     %11 = arith.bitcast %10 : tensor<16x16xi32> to tensor<16x16xf32>
//     %12 = arith.subf %arg1, %11 : tensor<16x16xf32>
//     %13 = arith.truncf %11 : tensor<16x16xf32> to tensor<16x16xbf16>
//     %14 = arith.truncf %12 : tensor<16x16xf32> to tensor<16x16xbf16>
//     %15 = arith.extf %14 : tensor<16x16xbf16> to tensor<16x16xf32>
//     %16 = arith.subf %12, %15 : tensor<16x16xf32>
//     %17 = arith.truncf %16 : tensor<16x16xf32> to tensor<16x16xbf16>
//     %cst_1 = arith.constant dense<0.000000e+00> : tensor<16x16xf32>
//     %18 = tt.dot %8, %13, %cst_1 : tensor<16x16xbf16> * tensor<16x16xbf16> -> tensor<16x16xf32>
//     %19 = tt.dot %4, %17, %18 : tensor<16x16xbf16> * tensor<16x16xbf16> -> tensor<16x16xf32>
//     %20 = tt.dot %5, %14, %19 : tensor<16x16xbf16> * tensor<16x16xbf16> -> tensor<16x16xf32>
//     %21 = tt.dot %5, %13, %20 : tensor<16x16xbf16> * tensor<16x16xbf16> -> tensor<16x16xf32>
//     %22 = tt.dot %4, %14, %21 : tensor<16x16xbf16> * tensor<16x16xbf16> -> tensor<16x16xf32>
//     %23 = arith.cmpf oeq, %22, %22 : tensor<16x16xf32>
//     %24 = arith.select %23, %22, %cst_1 : tensor<16x16xi1>, tensor<16x16xf32>
//     %25 = tt.dot %4, %13, %24 : tensor<16x16xbf16> * tensor<16x16xbf16> -> tensor<16x16xf32>
//     %26 = arith.addf %25, %arg2 : tensor<16x16xf32>
//     tt.return %26 : tensor<16x16xf32>
//   }
// }
// -----
// One too small for tensor cores stays whole.
// RUN: -legalize-dots
tt.func @small(%a: tensor<4x16xf32>, %b: tensor<16x16xf32>, %c: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %0 = tt.dot %a, %b, %c, inputPrecision = bf16x3 : tensor<4x16xf32> * tensor<16x16xf32> -> tensor<4x16xf32>
  tt.return %0 : tensor<4x16xf32>
}
// OUTPUT
// module {
//   tt.func @small(%arg0: tensor<4x16xf32>, %arg1: tensor<16x16xf32>, %arg2: tensor<4x16xf32>) -> tensor<4x16xf32> {
//     %0 = tt.dot %arg0, %arg1, %arg2 : tensor<4x16xf32> * tensor<16x16xf32> -> tensor<4x16xf32>
//     tt.return %0 : tensor<4x16xf32>
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
