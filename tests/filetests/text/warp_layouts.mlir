// RUN: -verify
// The layouts of ML-Triton, Table 5: operands of a dot nest on the result of another, which is an operand of a third.

#blocked = #ttg.blocked<{sizePerWarp = [16, 64], warpsPerCTA = [8, 1], order = [1, 0]}>
#p = #ttg.dot_op<{opIdx = 0, parent = #blocked}>
#v = #ttg.dot_op<{opIdx = 1, parent = #blocked}>
#q = #ttg.dot_op<{opIdx = 0, parent = #p}>
#k = #ttg.dot_op<{opIdx = 1, parent = #p}>
module attributes {"ttg.num-warps" = 8 : i32, "ttg.threads-per-warp" = 16 : i32} {
  tt.func @attention(%q: tensor<128x64xf16, #q>, %k: tensor<64x32xf16, #k>, %v: tensor<32x64xf16, #v>, %acc: tensor<128x64xf32, #blocked>) -> (tensor<128x64xf32, #blocked>, tensor<128xf32, #ttg.slice<{dim = 1, parent = #p}>>) {
    %zero = arith.constant dense<0.000000e+00> : tensor<128x32xf32, #p>
    %qk = tt.dot %q, %k, %zero : tensor<128x64xf16, #q> * tensor<64x32xf16, #k> -> tensor<128x32xf32, #p>
    %m = "tt.reduce"(%qk) <{axis = 1 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %max = arith.maxnumf %a, %b : f32
      tt.reduce.return %max : f32
    }) : (tensor<128x32xf32, #p>) -> tensor<128xf32, #ttg.slice<{dim = 1, parent = #p}>>
    %p = arith.truncf %qk : tensor<128x32xf32, #p> to tensor<128x32xf16, #p>
    %o = tt.dot %p, %v, %acc : tensor<128x32xf16, #p> * tensor<32x64xf16, #v> -> tensor<128x64xf32, #blocked>
    tt.return %o, %m : tensor<128x64xf32, #blocked>, tensor<128xf32, #ttg.slice<{dim = 1, parent = #p}>>
  }
}

// OUTPUT
// #blocked = #ttg.blocked<{sizePerWarp = [16, 64], warpsPerCTA = [8, 1], order = [1, 0]}>
// module attributes {"ttg.num-warps" = 8 : i32, "ttg.threads-per-warp" = 16 : i32} {
//   tt.func @attention(%arg0: tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #ttg.dot_op<{opIdx = 0, parent = #blocked}>}>>, %arg1: tensor<64x32xf16, #ttg.dot_op<{opIdx = 1, parent = #ttg.dot_op<{opIdx = 0, parent = #blocked}>}>>, %arg2: tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>>, %arg3: tensor<128x64xf32, #blocked>) -> (tensor<128x64xf32, #blocked>, tensor<128xf32, #ttg.slice<{dim = 1, parent = #ttg.dot_op<{opIdx = 0, parent = #blocked}>}>>) {
//     %cst = arith.constant dense<0.000000e+00> : tensor<128x32xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
//     %0 = tt.dot %arg0, %arg1, %cst : tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #ttg.dot_op<{opIdx = 0, parent = #blocked}>}>> * tensor<64x32xf16, #ttg.dot_op<{opIdx = 1, parent = #ttg.dot_op<{opIdx = 0, parent = #blocked}>}>> -> tensor<128x32xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
//     %1 = "tt.reduce"(%0) <{axis = 1 : i32}> ({
//     ^bb0(%arg4: f32, %arg5: f32):
//       %4 = arith.maxnumf %arg4, %arg5 : f32
//       tt.reduce.return %4 : f32
//     }) : (tensor<128x32xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>) -> tensor<128xf32, #ttg.slice<{dim = 1, parent = #ttg.dot_op<{opIdx = 0, parent = #blocked}>}>>
//     %2 = arith.truncf %0 : tensor<128x32xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> to tensor<128x32xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
//     %3 = tt.dot %2, %arg2, %arg3 : tensor<128x32xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> * tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<128x64xf32, #blocked>
//     tt.return %3, %1 : tensor<128x64xf32, #blocked>, tensor<128xf32, #ttg.slice<{dim = 1, parent = #ttg.dot_op<{opIdx = 0, parent = #blocked}>}>>
//   }
// }
