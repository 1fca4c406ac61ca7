// RUN: -verify
// ERROR: is for 4 warps, but there are 8
#blocked = #ttg.blocked<{sizePerWarp = [16], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-warps" = 8 : i32} {
  tt.func @f() {
    %0 = arith.constant dense<0> : tensor<64xi32, #blocked>
    tt.return
  }
}
// -----
// RUN: -verify
// ERROR: the parameters of a blocked layout must have as many elements each
tt.func @f(%x: tensor<64xi32, #ttg.blocked<{sizePerWarp = [16, 1], warpsPerCTA = [4], order = [0]}>>) { tt.return }
// -----
// RUN: -verify
// ERROR: a blocked layout of warps is made of powers of two, and 24 is none
tt.func @f(%x: tensor<96xi32, #ttg.blocked<{sizePerWarp = [24], warpsPerCTA = [4], order = [0]}>>) { tt.return }
// -----
// RUN: -verify
// ERROR: `order` [1] is no permutation
tt.func @f(%x: tensor<96xi32, #ttg.blocked<{sizePerWarp = [16], warpsPerCTA = [4], order = [1]}>>) { tt.return }
// -----
// RUN: -verify
// ERROR: `kWidth` says nothing where the result's layout is one of warps
#blocked = #ttg.blocked<{sizePerWarp = [16, 64], warpsPerCTA = [8, 1], order = [1, 0]}>
tt.func @f(%x: tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked, kWidth = 2}>>) { tt.return }
// -----
// RUN: -verify
// ERROR: does not follow from that of
#blocked = #ttg.blocked<{sizePerWarp = [16, 64], warpsPerCTA = [8, 1], order = [1, 0]}>
tt.func @f(%x: tensor<128x64xf16, #blocked>) {
  %0 = tt.trans %x {order = array<i32: 1, 0>} : tensor<128x64xf16, #blocked> -> tensor<64x128xf16, #blocked>
  tt.return
}
