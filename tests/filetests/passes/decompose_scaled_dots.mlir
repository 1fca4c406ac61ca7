// Two E2M1 codes of a byte become neighbours along K; a scale of 255 becomes NaN before it is repeated.
// RUN: -decompose-scaled-dots
tt.func @e2m1_bf16(%a: tensor<32x32xi8>, %sa: tensor<32x2xi8>, %b: tensor<64x32xbf16>, %c: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %0 = tt.dot_scaled %a scale %sa, %b, %c lhs = e2m1 rhs = bf16 : tensor<32x32xi8>, tensor<32x2xi8> * tensor<64x32xbf16> -> tensor<32x32xf32>
  tt.return %0 : tensor<32x32xf32>
}
// OUTPUT
// module {
//   tt.func @e2m1_bf16(%arg0: tensor<32x32xi8>, %arg1: tensor<32x2xi8>, %arg2: tensor<64x32xbf16>, %arg3: tensor<32x32xf32>) -> tensor<32x32xf32> {
//     %0 = arith.extui %arg0 : tensor<32x32xi8> to tensor<32x32xi32>
//     %cst = arith.constant dense<12> : tensor<32x32xi32>
//     %1 = arith.shli %0, %cst : tensor<32x32xi32>
//     %2 = arith.ori %0, %1 : tensor<32x32xi32>
//     %cst_0 = arith.constant dense<6> : tensor<32x32xi32>
//     %3 = arith.shli %2, %cst_0 : tensor<32x32xi32>
//     %cst_1 = arith.constant dense<29360576> : tensor<32x32xi32>
//     %4 = arith.andi %3, %cst_1 : tensor<32x32xi32>
//     %cst_2 = arith.constant dense<12> : tensor<32x32xi32>
//     %5 = arith.shli %2, %cst_2 : tensor<32x32xi32>
//     %cst_3 = arith.constant dense<-2147450880> : tensor<32x32xi32>
//     %6 = arith.andi %5, %cst_3 : tensor<32x32xi32>
//     %7 = arith.ori %4, %6 : tensor<32x32xi32>
//     %cst_4 = arith.constant dense<16> : tensor<32x32xi32>
//     %8 = arith.shrui %7, %cst_4 : tensor<32x32xi32>
//     %9 = arith.trunci %7 : tensor<32x32xi32> to tensor<32x32xi16>
//     %10 = arith.trunci %8 : tensor<32x32xi32> to tensor<32x32xi16>
//     %11 = tt.join %9, %10 : tensor<32x32xi16> -> tensor<32x32x2xi16>
//     %12 = tt.reshape %11 : tensor<32x32x2xi16> -> tensor<32x64xi16>
//     %13 = arith.bitcast %12 : tensor<32x64xi16> to tensor<32x64xbf16>
//     %cst_5 = arith.constant dense<8.507050e+37> : tensor<32x64xbf16>
//     %14 = arith.mulf %13, %cst_5 : tensor<32x64xbf16>
//     %15 = arith.extui %arg1 : tensor<32x2xi8> to tensor<32x2xi16>
//     %cst_6 = arith.constant dense<7> : tensor<32x2xi16>
//     %16 = arith.shli %15, %cst_6 : tensor<32x2xi16>
//     %cst_7 = arith.constant dense<255> : tensor<32x2xi16>
//     %17 = arith.cmpi eq, %15, %cst_7 : tensor<32x2xi16>
//     %cst_8 = arith.constant dense<32704> : tensor<32x2xi16>
//     %18 = arith.select %17, %cst_8, %16 : tensor<32x2xi1>, tensor<32x2xi16>
//     %19 = arith.bitcast %18 : tensor<32x2xi16> to tensor<32x2xbf16>
//     %20 = tt.expand_dims %19 {axis = 2 : i32} : tensor<32x2xbf16> -> tensor<32x2x1xbf16>
//     %21 = tt.broadcast %20 : tensor<32x2x1xbf16> -> tensor<32x2x32xbf16>
//     %22 = tt.reshape %21 : tensor<32x2x32xbf16> -> tensor<32x64xbf16>
//     %23 = arith.mulf %14, %22 : tensor<32x64xbf16>
//     %24 = tt.dot %23, %arg2, %arg3 : tensor<32x64xbf16> * tensor<64x32xbf16> -> tensor<32x32xf32>
//     tt.return %24 : tensor<32x32xf32>
//   }
// }
// -----
// With fp16 scales are rounded to it; those of the right operand are turned. With fastMath no scale is looked at.
// RUN: -decompose-scaled-dots
tt.func @fp16_e5m2(%a: tensor<32x64xf16>, %b: tensor<64x32xf8E5M2>, %sb: tensor<32x2xi8>, %c: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %0 = tt.dot_scaled %a, %b scale %sb, %c lhs = fp16 rhs = e5m2 {fastMath = true} : tensor<32x64xf16> * tensor<64x32xf8E5M2>, tensor<32x2xi8> -> tensor<32x32xf32>
  tt.return %0 : tensor<32x32xf32>
}
// OUTPUT
// module {
//   tt.func @fp16_e5m2(%arg0: tensor<32x64xf16>, %arg1: tensor<64x32xf8E5M2>, %arg2: tensor<32x2xi8>, %arg3: tensor<32x32xf32>) -> tensor<32x32xf32> {
//     %0 = tt.fp_to_fp %arg1 : tensor<64x32xf8E5M2> -> tensor<64x32xf16>
//     %1 = tt.trans %arg2 {order = array<i32: 1, 0>} : tensor<32x2xi8> -> tensor<2x32xi8>
//     %2 = arith.extui %1 : tensor<2x32xi8> to tensor<2x32xi32>
//     %cst = arith.constant dense<23> : tensor<2x32xi32>
//     %3 = arith.shli %2, %cst : tensor<2x32xi32>
//     %4 = arith.bitcast %3 : tensor<2x32xi32> to tensor<2x32xf32>
//     %5 = arith.truncf %4 : tensor<2x32xf32> to tensor<2x32xf16>
//     %6 = tt.expand_dims %5 {axis = 1 : i32} : tensor<2x32xf16> -> tensor<2x1x32xf16>
//     %7 = tt.broadcast %6 : tensor<2x1x32xf16> -> tensor<2x32x32xf16>
//     %8 = tt.reshape %7 : tensor<2x32x32xf16> -> tensor<64x32xf16>
//     %9 = arith.mulf %0, %8 : tensor<64x32xf16>
//     %10 = tt.dot %arg0, %9, %arg3 : tensor<32x64xf16> * tensor<64x32xf16> -> tensor<32x32xf32>
//     tt.return %10 : tensor<32x32xf32>
//   }
// }
// -----
// Packed along N; scales that are floats.
// RUN: -decompose-scaled-dots
// CHECK: [[PAIRS:%.*]] = tt.join
// CHECK-NEXT: [[B:%.*]] = tt.reshape [[PAIRS]] : tensor<64x16x2xi16> -> tensor<64x32xi16>
// CHECK: [[TURNED:%.*]] = tt.trans %arg2 {order = array<i32: 1, 0>} : tensor<32x4xf8E4M3FN> -> tensor<4x32xf8E4M3FN>
// CHECK-NEXT: tt.fp_to_fp [[TURNED]]
// CHECK: tt.reshape {{.*}} : tensor<4x16x32xbf16> -> tensor<64x32xbf16>
// CHECK-NOT: tt.dot_scaled
tt.func @packed_along_n(%a: tensor<32x64xf8E4M3FN>, %b: tensor<64x16xi8>, %sb: tensor<32x4xf8E4M3FN>, %c: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %0 = tt.dot_scaled %a, %b scale %sb, %c lhs = e4m3 rhs = e2m1 {rhs_k_pack = false} : tensor<32x64xf8E4M3FN> * tensor<64x16xi8>, tensor<32x4xf8E4M3FN> -> tensor<32x32xf32>
  tt.return %0 : tensor<32x32xf32>
}
// -----
// A plain dot is left alone.
// RUN: -decompose-scaled-dots
// CHECK: tt.func
// CHECK-NEXT: [[D:%.*]] = tt.dot %arg0, %arg1, %arg2
// CHECK-NEXT: tt.return [[D]]
tt.func @plain(%a: tensor<32x64xbf16>, %b: tensor<64x32xbf16>, %c: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %0 = tt.dot %a, %b, %c : tensor<32x64xbf16> * tensor<64x32xbf16> -> tensor<32x32xf32>
  tt.return %0 : tensor<32x32xf32>
}
// -----
// Floats that are given as bytes are floats first.
// RUN: -decompose-scaled-dots
tt.func @bytes(%a: tensor<32x64xi8>, %b: tensor<64x32xi8>, %c: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %0 = tt.dot_scaled %a, %b, %c lhs = e4m3 rhs = e5m2 : tensor<32x64xi8> * tensor<64x32xi8> -> tensor<32x32xf32>
  tt.return %0 : tensor<32x32xf32>
}
// CHECK: [[A:%.*]] = arith.bitcast %arg0 : tensor<32x64xi8> to tensor<32x64xf8E4M3FN>
// CHECK: [[B:%.*]] = arith.bitcast %arg1 : tensor<64x32xi8> to tensor<64x32xf8E5M2>
// CHECK: [[X:%.*]] = tt.fp_to_fp [[A]]
// CHECK: [[Y:%.*]] = tt.fp_to_fp [[B]]
// CHECK: tt.dot [[X]], [[Y]], %arg2
