// The shapes of elements and scales must fit, packed ones counted twice.
// RUN:
// ERROR: do not multiply to tensor<32x32xf32>
tt.func @k(%a: tensor<32x32xi8>, %b: tensor<32x32xbf16>, %c: tensor<32x32xf32>) {
  %0 = tt.dot_scaled %a, %b, %c lhs = e2m1 rhs = bf16 : tensor<32x32xi8> * tensor<32x32xbf16> -> tensor<32x32xf32>
  tt.return
}
// -----
// RUN:
// ERROR: the scales of operand 1 must have shape [32, 2], one for 32 elements, but are tensor<2x32xi8>
tt.func @scales(%a: tensor<32x64xbf16>, %b: tensor<64x32xf8E5M2>, %s: tensor<2x32xi8>, %c: tensor<32x32xf32>) {
  %0 = tt.dot_scaled %a, %b scale %s, %c lhs = bf16 rhs = e5m2 : tensor<32x64xbf16> * tensor<64x32xf8E5M2>, tensor<2x32xi8> -> tensor<32x32xf32>
  tt.return
}
// -----
// RUN:
// ERROR: elements of e4m3 are f8E4M3FN, but those of the lhs are f8E5M2
tt.func @format(%a: tensor<32x64xf8E5M2>, %b: tensor<64x32xbf16>, %c: tensor<32x32xf32>) {
  %0 = tt.dot_scaled %a, %b, %c lhs = e4m3 rhs = bf16 : tensor<32x64xf8E5M2> * tensor<64x32xbf16> -> tensor<32x32xf32>
  tt.return
}
// -----
// RUN:
// ERROR: the rhs is bf16, and only e2m1 is packed along another dimension than K
tt.func @packed(%a: tensor<32x64xbf16>, %b: tensor<64x32xbf16>, %c: tensor<32x32xf32>) {
  %0 = tt.dot_scaled %a, %b, %c lhs = bf16 rhs = bf16 {rhs_k_pack = false} : tensor<32x64xbf16> * tensor<64x32xbf16> -> tensor<32x32xf32>
  tt.return
}
// -----
// RUN:
// ERROR: scales are i8 (E8M0) or f8E4M3FN, not f32
tt.func @float_scales(%a: tensor<32x64xbf16>, %s: tensor<32x4xf32>, %b: tensor<64x32xbf16>, %c: tensor<32x32xf32>) {
  %0 = tt.dot_scaled %a scale %s, %b, %c lhs = bf16 rhs = bf16 : tensor<32x64xbf16>, tensor<32x4xf32> * tensor<64x32xbf16> -> tensor<32x32xf32>
  tt.return
}
