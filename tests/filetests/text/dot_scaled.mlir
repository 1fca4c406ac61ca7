// Scales may be there for both operands, one, or none; elements of e2m1 are two in a byte along K, M or N.
// RUN:
tt.func @f(%a: tensor<32x32xi8>, %sa: tensor<32x2xi8>, %b: tensor<64x32xbf16>, %c: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %0 = tt.dot_scaled %a scale %sa, %b, %c lhs = e2m1 rhs = bf16 {fastMath = false} : tensor<32x32xi8>, tensor<32x2xi8> * tensor<64x32xbf16> -> tensor<32x32xf32>
  tt.return %0 : tensor<32x32xf32>
}
tt.func @g(%a: tensor<32x64xf8E4M3FN>, %sa: tensor<32x4xf8E4M3FN>, %b: tensor<64x16xi8>, %sb: tensor<32x2xi8>, %c: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %0 = tt.dot_scaled %a scale %sa, %b scale %sb, %c lhs = e4m3 rhs = e2m1 {fastMath = true, rhs_k_pack = false} : tensor<32x64xf8E4M3FN>, tensor<32x4xf8E4M3FN> * tensor<64x16xi8>, tensor<32x2xi8> -> tensor<32x32xf32>
  tt.return %0 : tensor<32x32xf32>
}
tt.func @h(%a: tensor<2x32x64xf8E5M2>, %b: tensor<2x64x32xf16>, %sb: tensor<2x32x2xi8>, %c: tensor<2x32x32xf32>) -> tensor<2x32x32xf32> {
  %0 = tt.dot_scaled %a, %b scale %sb, %c lhs = e5m2 rhs = fp16 : tensor<2x32x64xf8E5M2> * tensor<2x64x32xf16>, tensor<2x32x2xi8> -> tensor<2x32x32xf32>
  tt.return %0 : tensor<2x32x32xf32>
}
// OUTPUT
// module {
//   tt.func @f(%arg0: tensor<32x32xi8>, %arg1: tensor<32x2xi8>, %arg2: tensor<64x32xbf16>, %arg3: tensor<32x32xf32>) -> tensor<32x32xf32> {
//     %0 = tt.dot_scaled %arg0 scale %arg1, %arg2, %arg3 lhs = e2m1 rhs = bf16 : tensor<32x32xi8>, tensor<32x2xi8> * tensor<64x32xbf16> -> tensor<32x32xf32>
//     tt.return %0 : tensor<32x32xf32>
//   }
//   tt.func @g(%arg0: tensor<32x64xf8E4M3FN>, %arg1: tensor<32x4xf8E4M3FN>, %arg2: tensor<64x16xi8>, %arg3: tensor<32x2xi8>, %arg4: tensor<32x32xf32>) -> tensor<32x32xf32> {
//     %0 = tt.dot_scaled %arg0 scale %arg1, %arg2 scale %arg3, %arg4 lhs = e4m3 rhs = e2m1 {fastMath = true, rhs_k_pack = false} : tensor<32x64xf8E4M3FN>, tensor<32x4xf8E4M3FN> * tensor<64x16xi8>, tensor<32x2xi8> -> tensor<32x32xf32>
//     tt.return %0 : tensor<32x32xf32>
//   }
//   tt.func @h(%arg0: tensor<2x32x64xf8E5M2>, %arg1: tensor<2x64x32xf16>, %arg2: tensor<2x32x2xi8>, %arg3: tensor<2x32x32xf32>) -> tensor<2x32x32xf32> {
//     %0 = tt.dot_scaled %arg0, %arg1 scale %arg2, %arg3 lhs = e5m2 rhs = fp16 : tensor<2x32x64xf8E5M2> * tensor<2x64x32xf16>, tensor<2x32x2xi8> -> tensor<2x32x32xf32>
//     tt.return %0 : tensor<2x32x32xf32>
//   }
// }
