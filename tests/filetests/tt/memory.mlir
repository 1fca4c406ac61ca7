// Masks that are known, and pointer offsets that are constant.
// RUN: -canonicalize
tt.func @f(%p: tensor<8x!tt.ptr<f32>>, %q: !tt.ptr<f32>, %o: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %all = arith.constant dense<true> : tensor<8xi1>
  %none = arith.constant dense<false> : tensor<8xi1>
  %0 = tt.load %p, %all, %o : tensor<8x!tt.ptr<f32>>
  %1 = tt.load %p, %none, %o : tensor<8x!tt.ptr<f32>>
  tt.store %p, %0, %all : tensor<8x!tt.ptr<f32>>
  tt.store %p, %1, %none : tensor<8x!tt.ptr<f32>>
  %c4 = arith.constant 4 : i32
  %c0 = arith.constant 0 : i32
  %2 = tt.addptr %q, %c4 : !tt.ptr<f32>, i32
  %3 = tt.addptr %2, %c4 : !tt.ptr<f32>, i32
  %4 = tt.addptr %3, %c0 : !tt.ptr<f32>, i32
  %5 = arith.constant 1.0 : f32
  tt.store %4, %5 : !tt.ptr<f32>
  // Not used, but volatile: it stays.
  %6 = tt.load %q {isVolatile = true} : !tt.ptr<f32>
  %7 = tt.load %q : !tt.ptr<f32>
  tt.return %0, %1 : tensor<8xf32>, tensor<8xf32>
}

// OUTPUT
// module {
//   tt.func @f(%arg0: tensor<8x!tt.ptr<f32>>, %arg1: !tt.ptr<f32>, %arg2: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
//     %cst = arith.constant 1.000000e+00 : f32
//     %c8_i32 = arith.constant 8 : i32
//     %0 = tt.load %arg0 : tensor<8x!tt.ptr<f32>>
//     tt.store %arg0, %0 : tensor<8x!tt.ptr<f32>>
//     %1 = tt.addptr %arg1, %c8_i32 : !tt.ptr<f32>, i32
//     tt.store %1, %cst : !tt.ptr<f32>
//     %2 = tt.load %arg1 {isVolatile = true} : !tt.ptr<f32>
//     tt.return %0, %arg2 : tensor<8xf32>, tensor<8xf32>
//   }
// }
