// A call of the author's own code as it is written.
// RUN:
#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
tt.func @ptx(%x: tensor<128xf32>, %y: tensor<128xf32>, %p: !tt.ptr<f32>) -> tensor<128xf32> {
  %0 = "tt.raw_call"(%x, %p, %y) <{language = "ptx", layouts = [#blocked, unit, #blocked], names = ["out", "x", "p"], order = array<i32: 2, 0, 1>, source = "add.f32 %[out], %[x], %[out];\0A", symbol = "", threads = array<i32>, operandSegmentSizes = array<i32: 1, 2>}> : (tensor<128xf32>, !tt.ptr<f32>, tensor<128xf32>) -> tensor<128xf32>
  tt.return %0 : tensor<128xf32>
}

// OUTPUT
// #blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// module {
//   tt.func @ptx(%arg0: tensor<128xf32>, %arg1: tensor<128xf32>, %arg2: !tt.ptr<f32>) -> tensor<128xf32> {
//     %0 = "tt.raw_call"(%arg0, %arg2, %arg1) <{language = "ptx", layouts = [#blocked, unit, #blocked], names = ["out", "x", "p"], order = array<i32: 2, 0, 1>, source = "add.f32 %[out], %[x], %[out];\0A", symbol = "", threads = array<i32>, operandSegmentSizes = array<i32: 1, 2>}> : (tensor<128xf32>, !tt.ptr<f32>, tensor<128xf32>) -> tensor<128xf32>
//     tt.return %0 : tensor<128xf32>
//   }
// }
