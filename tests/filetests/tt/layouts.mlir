// Conversions of layouts fold where they undo each other, or hold a constant.
// RUN: -canonicalize
#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#blocked1 = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#blocked2 = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func @f(%x: tensor<512xf32, #blocked>, %p: tensor<512x!tt.ptr<f32>, #blocked>) {
    %0 = ttg.convert_layout %x : tensor<512xf32, #blocked> -> tensor<512xf32, #blocked1>
    %1 = ttg.convert_layout %0 : tensor<512xf32, #blocked1> -> tensor<512xf32, #blocked>
    tt.store %p, %1 : tensor<512x!tt.ptr<f32>, #blocked>
    %c = arith.constant dense<1.0> : tensor<512xf32, #blocked2>
    %2 = ttg.convert_layout %c : tensor<512xf32, #blocked2> -> tensor<512xf32, #blocked>
    tt.store %p, %2 : tensor<512x!tt.ptr<f32>, #blocked>
    tt.return
  }
}

// OUTPUT
// #blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// module attributes {"ttg.num-warps" = 4 : i32} {
//   tt.func @f(%arg0: tensor<512xf32, #blocked>, %arg1: tensor<512x!tt.ptr<f32>, #blocked>) {
//     %cst = arith.constant dense<1.000000e+00> : tensor<512xf32, #blocked>
//     tt.store %arg1, %arg0 : tensor<512x!tt.ptr<f32>, #blocked>
//     tt.store %arg1, %cst : tensor<512x!tt.ptr<f32>, #blocked>
//     tt.return
//   }
// }
// -----
// The chain of conversions from one layout to a third is one conversion.
// RUN: -canonicalize -cse
// CHECK: [[C:%.*]] = ttg.convert_layout %arg0 : tensor<512xf32, #blocked> -> tensor<512xf32, #blocked1>
// CHECK-NEXT: tt.store %arg1, [[C]]
#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#blocked1 = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#blocked2 = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
tt.func @f(%x: tensor<512xf32, #blocked>, %p: tensor<512x!tt.ptr<f32>, #blocked2>) {
  %0 = ttg.convert_layout %x : tensor<512xf32, #blocked> -> tensor<512xf32, #blocked1>
  %1 = ttg.convert_layout %0 : tensor<512xf32, #blocked1> -> tensor<512xf32, #blocked2>
  tt.store %p, %1 : tensor<512x!tt.ptr<f32>, #blocked2>
  tt.return
}
// -----
// Splats and ranges are made in the layout that is wanted.
// RUN: -canonicalize
// CHECK-NOT: ttg.convert_layout
// CHECK: tt.return
#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#blocked1 = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
tt.func @f(%x: i32) -> tensor<512xi32, #blocked1> {
  %0 = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #blocked>
  %1 = ttg.convert_layout %0 : tensor<512xi32, #blocked> -> tensor<512xi32, #blocked1>
  %2 = tt.splat %x : i32 -> tensor<512xi32, #blocked>
  %3 = ttg.convert_layout %2 : tensor<512xi32, #blocked> -> tensor<512xi32, #blocked1>
  %4 = arith.addi %1, %3 : tensor<512xi32, #blocked1>
  tt.return %4 : tensor<512xi32, #blocked1>
}
