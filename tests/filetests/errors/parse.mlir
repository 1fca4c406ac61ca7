// Errors say the place in the file, across parts.
// RUN:
// ERROR: `%y` is not defined
// ERROR: errors/parse.mlir:6:23
tt.func @f(%x: i32) {
  %0 = arith.addi %x, %y : i32
  tt.return
}
// -----
// RUN:
// ERROR: `tt.broadcast`: tensor<8xf32> does not broadcast to tensor<4x8xf32>
// ERROR: errors/parse.mlir:14:8
tt.func @f(%x: tensor<8xf32>) {
  %0 = tt.broadcast %x : tensor<8xf32> -> tensor<4x8xf32>
  tt.return
}
