// Tiles: the tensor, then the tile's numbers along each dimension.
// RUN: -canonicalize
tt.func @f(%x: tensor<8x16xf32>, %i: i32) -> tensor<8x16xf32> {
  %c1 = arith.constant 1 : i32
  %0 = tt.extract_tile %x[%i, %c1] : tensor<8x16xf32> -> tensor<4x4xf32>
  %1 = tt.insert_tile %0, %x[%c1, %i] : tensor<4x4xf32>, tensor<8x16xf32>
  tt.return %1 : tensor<8x16xf32>
}
// CHECK: tt.extract_tile %arg0[%arg1, %c1_i32] : tensor<8x16xf32> -> tensor<4x4xf32>
// CHECK: tt.insert_tile {{.*}}, %arg0[%c1_i32, %arg1] : tensor<4x4xf32>, tensor<8x16xf32>

// -----

// A tile that is known when the module is made: its number in row-major order.
// RUN: -canonicalize
tt.func @f(%x: tensor<8x12xf32>) -> tensor<4x4xf32> {
  %0 = tt.extract %x[5] : tensor<8x12xf32> -> tensor<4x4xf32>
  tt.return %0 : tensor<4x4xf32>
}
// CHECK: tt.extract %arg0[5] : tensor<8x12xf32> -> tensor<4x4xf32>
