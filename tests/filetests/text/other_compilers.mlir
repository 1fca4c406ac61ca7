// What other compilers write and ours does not: a product that may leave out its accumulator, floats as bytes, blocks whose integers
// have signs, a slot that keeps the layout of all slots, and rows of a block of several.
// RUN:
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#tile = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#rows = #ttg.swizzled_shared<{vec = 2, perPhase = 2, maxPhase = 4, order = [1, 0]}>
#words = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 4 : i32} {
tt.func @product(%a: !ttg.memdesc<64x32xf16, #tile, #smem>, %b: !ttg.memdesc<32x64xf16, #tile, #smem>, %c: tensor<64x64xf32, #mma>, %use: i1) -> tensor<64x64xf32, #mma> {
  %0 = ttng.warp_group_dot %a, %b, %c, %use {isAsync = true} : !ttg.memdesc<64x32xf16, #tile, #smem> * !ttg.memdesc<32x64xf16, #tile, #smem> -> tensor<64x64xf32, #mma>
  %1 = ttng.warp_group_dot %a, %b, %0 : !ttg.memdesc<64x32xf16, #tile, #smem> * !ttg.memdesc<32x64xf16, #tile, #smem> -> tensor<64x64xf32, #mma>
  tt.return %1 : tensor<64x64xf32, #mma>
}
tt.func @bytes(%a: tensor<32x64xi8>, %sa: tensor<32x2xi8>, %b: tensor<32x32xi8>, %c: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %0 = tt.dot_scaled %a scale %sa, %b, %c lhs = e4m3 rhs = e2m1 : tensor<32x64xi8>, tensor<32x2xi8> * tensor<32x32xi8> -> tensor<32x32xf32>
  tt.return %0 : tensor<32x32xf32>
}
tt.func @signs(%d: !tt.tensordesc<tensor<32x64xui8>>, %e: !tt.tensordesc<tensor<32x64xsi16>>, %i: i32) -> tensor<32x64xi8> {
  %0 = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<tensor<32x64xui8>> -> tensor<32x64xi8>
  tt.return %0 : tensor<32x64xi8>
}
tt.func @slot(%s: !ttg.memdesc<8x32xf16, #rows, #smem, mutable>, %i: i32) {
  %0 = ttg.memdesc_index %s[%i] : !ttg.memdesc<8x32xf16, #rows, #smem, mutable> -> !ttg.memdesc<32xf16, #rows, #smem, mutable>
  %1 = ttg.memdesc_subslice %s[0, 16] : !ttg.memdesc<8x32xf16, #rows, #smem, mutable> -> !ttg.memdesc<8x16xf16, #rows, #smem, mutable, 8x32>
  tt.return
}
tt.func @rows(%d: !tt.tensordesc<tensor<32x32xf32, #words>>, %x: tensor<16xi32>, %y: i32, %buf: !ttg.memdesc<16x32xf32, #words, #smem, mutable>, %bar: !ttg.memdesc<1xi64, #bar, #smem, mutable>, %c: i1) {
  ttng.async_tma_gather %d[%x, %y] %buf, %bar, %c : !tt.tensordesc<tensor<32x32xf32, #words>>, tensor<16xi32>, i32, !ttg.memdesc<1xi64, #bar, #smem, mutable>, !ttg.memdesc<16x32xf32, #words, #smem, mutable>, i1
  tt.return
}
}

// OUTPUT
// #mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
// #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
// #shared1 = #ttg.swizzled_shared<{vec = 2, perPhase = 2, maxPhase = 4, order = [1, 0]}>
// #shared2 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
// #shared3 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
// #smem = #ttg.shared_memory
// module attributes {"ttg.num-warps" = 4 : i32} {
//   tt.func @product(%arg0: !ttg.memdesc<64x32xf16, #shared, #smem>, %arg1: !ttg.memdesc<32x64xf16, #shared, #smem>, %arg2: tensor<64x64xf32, #mma>, %arg3: i1) -> tensor<64x64xf32, #mma> {
//     %0 = ttng.warp_group_dot %arg0, %arg1, %arg2, %arg3 {isAsync = true} : !ttg.memdesc<64x32xf16, #shared, #smem> * !ttg.memdesc<32x64xf16, #shared, #smem> -> tensor<64x64xf32, #mma>
//     %1 = ttng.warp_group_dot %arg0, %arg1, %0 : !ttg.memdesc<64x32xf16, #shared, #smem> * !ttg.memdesc<32x64xf16, #shared, #smem> -> tensor<64x64xf32, #mma>
//     tt.return %1 : tensor<64x64xf32, #mma>
//   }
//   tt.func @bytes(%arg0: tensor<32x64xi8>, %arg1: tensor<32x2xi8>, %arg2: tensor<32x32xi8>, %arg3: tensor<32x32xf32>) -> tensor<32x32xf32> {
//     %0 = tt.dot_scaled %arg0 scale %arg1, %arg2, %arg3 lhs = e4m3 rhs = e2m1 : tensor<32x64xi8>, tensor<32x2xi8> * tensor<32x32xi8> -> tensor<32x32xf32>
//     tt.return %0 : tensor<32x32xf32>
//   }
//   tt.func @signs(%arg0: !tt.tensordesc<tensor<32x64xi8>>, %arg1: !tt.tensordesc<tensor<32x64xi16>>, %arg2: i32) -> tensor<32x64xi8> {
//     %0 = tt.descriptor_load %arg0[%arg2, %arg2] : !tt.tensordesc<tensor<32x64xi8>> -> tensor<32x64xi8>
//     tt.return %0 : tensor<32x64xi8>
//   }
//   tt.func @slot(%arg0: !ttg.memdesc<8x32xf16, #shared1, #smem, mutable>, %arg1: i32) {
//     %0 = ttg.memdesc_index %arg0[%arg1] : !ttg.memdesc<8x32xf16, #shared1, #smem, mutable> -> !ttg.memdesc<32xf16, #shared1, #smem, mutable>
//     %1 = ttg.memdesc_subslice %arg0[0, 16] : !ttg.memdesc<8x32xf16, #shared1, #smem, mutable> -> !ttg.memdesc<8x16xf16, #shared1, #smem, mutable, 8x32>
//     tt.return
//   }
//   tt.func @rows(%arg0: !tt.tensordesc<tensor<32x32xf32, #shared2>>, %arg1: tensor<16xi32>, %arg2: i32, %arg3: !ttg.memdesc<16x32xf32, #shared2, #smem, mutable>, %arg4: !ttg.memdesc<1xi64, #shared3, #smem, mutable>, %arg5: i1) {
//     ttng.async_tma_gather %arg0[%arg1, %arg2] %arg3, %arg4, %arg5 : !tt.tensordesc<tensor<32x32xf32, #shared2>>, tensor<16xi32>, i32, !ttg.memdesc<1xi64, #shared3, #smem, mutable>, !ttg.memdesc<16x32xf32, #shared2, #smem, mutable>, i1
//     tt.return
//   }
// }
// -----
// The elements of a pair may lie in a thread's registers in any order.
// RUN:
#b = #ttg.blocked<{sizePerThread = [1, 64], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>
#c = #ttg.blocked<{sizePerThread = [1, 64, 2], threadsPerWarp = [32, 1, 1], warpsPerCTA = [4, 1, 1], order = [0, 1, 2]}>
tt.func @f(%x: tensor<128x64xf32, #b>) -> tensor<128x64xf32, #b> {
  %0 = tt.join %x, %x : tensor<128x64xf32, #b> -> tensor<128x64x2xf32, #c>
  %1, %2 = tt.split %0 : tensor<128x64x2xf32, #c> -> tensor<128x64xf32, #b>
  tt.return %2 : tensor<128x64xf32, #b>
}
// CHECK: tt.join
// CHECK: tt.split
