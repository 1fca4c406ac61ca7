// RUN:
// Tiles that are none of the tensor.
tt.func @f(%x: tensor<8x16xf32>, %i: i32) { %0 = tt.extract_tile %x[%i, %i] : tensor<8x16xf32> -> tensor<4x5xf32> tt.return }
// ERROR: a tile of [4, 5] does not divide [8, 16]
// -----
// RUN:
tt.func @f(%x: tensor<8x16xf32>, %i: i32) { %0 = tt.extract_tile %x[%i] : tensor<8x16xf32> -> tensor<4x4xf32> tt.return }
// ERROR: 2 indices expected, not 1
// -----
// RUN:
tt.func @f(%x: tensor<8x16xf32>, %i: i32) { %0 = tt.extract_tile %x[%i, %i] : tensor<8x16xf32> -> tensor<4x4xi32> tt.return }
// ERROR: tensor<4x4xi32>
// -----
// RUN:
tt.func @f(%x: tensor<8x16xf32>, %t: tensor<8xf32>, %i: i32) { %0 = tt.insert_tile %t, %x[%i, %i] : tensor<8xf32>, tensor<8x16xf32> tt.return }
// ERROR: a tile of [8] does not divide [8, 16]

// -----
// RUN:
// ERROR: there is no tile 6 among 6
tt.func @f(%x: tensor<8x12xf32>) -> tensor<4x4xf32> {
  %0 = tt.extract %x[6] : tensor<8x12xf32> -> tensor<4x4xf32>
  tt.return %0 : tensor<4x4xf32>
}
// -----
// RUN:
// ERROR: a tile of [3, 4] does not divide [8, 12]
tt.func @f(%x: tensor<8x12xf32>) -> tensor<3x4xf32> {
  %0 = tt.extract %x[0] : tensor<8x12xf32> -> tensor<3x4xf32>
  tt.return %0 : tensor<3x4xf32>
}
