// Tensors may be without layouts in a module that says its warps: a pass or the lowering refuses them where it needs layouts.
// RUN:
#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%x: tensor<64x16xf32>, %i: i32) -> (tensor<16x64xf32>, tensor<128xi32, #b>) {
  %0 = tt.trans %x {order = array<i32: 1, 0>} : tensor<64x16xf32> -> tensor<16x64xf32>
  %1 = tt.splat %i : i32 -> tensor<128xi32>
  %2 = ttg.convert_layout %1 : tensor<128xi32> -> tensor<128xi32, #b>
  tt.return %0, %2 : tensor<16x64xf32>, tensor<128xi32, #b>
}
}

// OUTPUT
// #blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
//   tt.func @f(%arg0: tensor<64x16xf32>, %arg1: i32) -> (tensor<16x64xf32>, tensor<128xi32, #blocked>) {
//     %0 = tt.trans %arg0 {order = array<i32: 1, 0>} : tensor<64x16xf32> -> tensor<16x64xf32>
//     %1 = tt.splat %arg1 : i32 -> tensor<128xi32>
//     %2 = ttg.convert_layout %1 : tensor<128xi32> -> tensor<128xi32, #blocked>
//     tt.return %0, %2 : tensor<16x64xf32>, tensor<128xi32, #blocked>
//   }
// }
