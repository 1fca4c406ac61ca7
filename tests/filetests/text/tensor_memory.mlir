// RUN:
#regs = #ttg.blocked<{sizePerThread = [1, 64], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>
#rows = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#tile = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#words = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#smem = #ttg.shared_memory
#tm = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, unpacked = true>
#half = #ttng.tensor_memory_encoding<blockM = 128, blockN = 32, unpacked = true>
#scales = #ttng.tensor_memory_scales_encoding<>
#space = #ttng.tensor_memory
module attributes {"ttg.num-warps" = 4 : i32} {
tt.func @product(%a: !ttg.memdesc<128x32xf16, #tile, #smem>, %b: !ttg.memdesc<32x64xf16, #tile, #smem>, %bar: !ttg.memdesc<1xi64, #bar, #smem, mutable>, %c: i1) {
  %x = arith.constant dense<1.0> : tensor<128x64xf32, #regs>
  %d, %t0 = ttng.tmem_alloc : () -> (!ttg.memdesc<128x64xf32, #tm, #space, mutable>, !ttg.async.token)
  %t1 = ttng.tmem_store %x, %d[%t0], %c : tensor<128x64xf32, #regs> -> !ttg.memdesc<128x64xf32, #tm, #space, mutable>
  %t2 = ttng.tc_gen5_mma %a, %b, %d[%t1], %c, %c, %bar[%c] {is_async} : !ttg.memdesc<128x32xf16, #tile, #smem>, !ttg.memdesc<32x64xf16, #tile, #smem>, !ttg.memdesc<128x64xf32, #tm, #space, mutable>, !ttg.memdesc<1xi64, #bar, #smem, mutable>
  %t3 = ttng.tc_gen5_mma %a, %b, %d[], %c, %c : !ttg.memdesc<128x32xf16, #tile, #smem>, !ttg.memdesc<32x64xf16, #tile, #smem>, !ttg.memdesc<128x64xf32, #tm, #space, mutable>
  ttng.tc_gen5_mma %a, %b, %d, %c, %c, %bar[%c], %bar[%c] {is_async, two_ctas} : !ttg.memdesc<128x32xf16, #tile, #smem>, !ttg.memdesc<32x64xf16, #tile, #smem>, !ttg.memdesc<128x64xf32, #tm, #space, mutable>, !ttg.memdesc<1xi64, #bar, #smem, mutable>, !ttg.memdesc<1xi64, #bar, #smem, mutable>
  ttng.tc_gen5_commit %bar, %c : !ttg.memdesc<1xi64, #bar, #smem, mutable>
  %r, %t4 = ttng.tmem_load %d[%t2] : !ttg.memdesc<128x64xf32, #tm, #space, mutable> -> tensor<128x64xf32, #regs>
  %s = ttng.tmem_load %d : !ttg.memdesc<128x64xf32, #tm, #space, mutable> -> tensor<128x64xf32, #regs>
  %p = ttng.tmem_subslice %d {N = 32 : i32} : !ttg.memdesc<128x64xf32, #tm, #space, mutable> -> !ttg.memdesc<128x32xf32, #half, #space, mutable>
  %q = ttng.tmem_alloc %x : (tensor<128x64xf32, #regs>) -> !ttg.memdesc<128x64xf32, #tm, #space>
  tt.return
}
tt.func @scaled(%a: !ttg.memdesc<128x32xi8, #tile, #smem>, %b: !ttg.memdesc<64x64xf8E4M3FN, #tile, #smem>, %d: !ttg.memdesc<128x64xf32, #tm, #space, mutable>, %x: !ttg.memdesc<128x2xi8, #scales, #space, mutable>, %w: !ttg.memdesc<128x64xf32, #words, #smem>, %bar: !ttg.memdesc<1xi64, #bar, #smem, mutable>, %c: i1) {
  ttng.tmem_copy %w, %d, %bar : !ttg.memdesc<128x64xf32, #words, #smem>, !ttg.memdesc<128x64xf32, #tm, #space, mutable>, !ttg.memdesc<1xi64, #bar, #smem, mutable>
  ttng.tc_gen5_mma_scaled %a, %b, %d, %x, %x, %c, %c lhs = e2m1 rhs = e4m3 : !ttg.memdesc<128x32xi8, #tile, #smem>, !ttg.memdesc<64x64xf8E4M3FN, #tile, #smem>, !ttg.memdesc<128x64xf32, #tm, #space, mutable>, !ttg.memdesc<128x2xi8, #scales, #space, mutable>, !ttg.memdesc<128x2xi8, #scales, #space, mutable>
  tt.return
}
tt.func @rows(%desc: !tt.tensordesc<tensor<1x64xf16, #tile>>, %x: tensor<32xi32, #rows>, %y: i32, %buf: !ttg.memdesc<32x64xf16, #tile, #smem, mutable>, %bar: !ttg.memdesc<1xi64, #bar, #smem, mutable>, %c: i1) {
  ttng.async_tma_gather %desc[%x, %y] %buf, %bar, %c : !tt.tensordesc<tensor<1x64xf16, #tile>>, tensor<32xi32, #rows>, i32, !ttg.memdesc<1xi64, #bar, #smem, mutable>, !ttg.memdesc<32x64xf16, #tile, #smem, mutable>, i1
  ttng.async_tma_scatter %desc[%x, %y] %buf : !tt.tensordesc<tensor<1x64xf16, #tile>>, tensor<32xi32, #rows>, i32, !ttg.memdesc<32x64xf16, #tile, #smem, mutable>
  tt.return
}
}

// OUTPUT
// #blocked = #ttg.blocked<{sizePerThread = [1, 64], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>
// #blocked1 = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
// #shared1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
// #shared2 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
// #smem = #ttg.shared_memory
// #tmem = #ttng.tensor_memory
// module attributes {"ttg.num-warps" = 4 : i32} {
//   tt.func @product(%arg0: !ttg.memdesc<128x32xf16, #shared, #smem>, %arg1: !ttg.memdesc<32x64xf16, #shared, #smem>, %arg2: !ttg.memdesc<1xi64, #shared1, #smem, mutable>, %arg3: i1) {
//     %cst = arith.constant dense<1.000000e+00> : tensor<128x64xf32, #blocked>
//     %0:2 = ttng.tmem_alloc : () -> (!ttg.memdesc<128x64xf32, #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, unpacked = true>, #tmem, mutable>, !ttg.async.token)
//     %1 = ttng.tmem_store %cst, %0#0[%0#1], %arg3 : tensor<128x64xf32, #blocked> -> !ttg.memdesc<128x64xf32, #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, unpacked = true>, #tmem, mutable>
//     %2 = ttng.tc_gen5_mma %arg0, %arg1, %0#0[%1], %arg3, %arg3, %arg2[%arg3] {is_async = true} : !ttg.memdesc<128x32xf16, #shared, #smem>, !ttg.memdesc<32x64xf16, #shared, #smem>, !ttg.memdesc<128x64xf32, #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, unpacked = true>, #tmem, mutable>, !ttg.memdesc<1xi64, #shared1, #smem, mutable>
//     %3 = ttng.tc_gen5_mma %arg0, %arg1, %0#0[], %arg3, %arg3 : !ttg.memdesc<128x32xf16, #shared, #smem>, !ttg.memdesc<32x64xf16, #shared, #smem>, !ttg.memdesc<128x64xf32, #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, unpacked = true>, #tmem, mutable>
//     ttng.tc_gen5_mma %arg0, %arg1, %0#0, %arg3, %arg3, %arg2[%arg3], %arg2[%arg3] {is_async = true, two_ctas = true} : !ttg.memdesc<128x32xf16, #shared, #smem>, !ttg.memdesc<32x64xf16, #shared, #smem>, !ttg.memdesc<128x64xf32, #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, unpacked = true>, #tmem, mutable>, !ttg.memdesc<1xi64, #shared1, #smem, mutable>, !ttg.memdesc<1xi64, #shared1, #smem, mutable>
//     ttng.tc_gen5_commit %arg2, %arg3 : !ttg.memdesc<1xi64, #shared1, #smem, mutable>
//     %4:2 = ttng.tmem_load %0#0[%2] : !ttg.memdesc<128x64xf32, #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, unpacked = true>, #tmem, mutable> -> tensor<128x64xf32, #blocked>
//     %5 = ttng.tmem_load %0#0 : !ttg.memdesc<128x64xf32, #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, unpacked = true>, #tmem, mutable> -> tensor<128x64xf32, #blocked>
//     %6 = ttng.tmem_subslice %0#0 {N = 32 : i32} : !ttg.memdesc<128x64xf32, #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, unpacked = true>, #tmem, mutable> -> !ttg.memdesc<128x32xf32, #ttng.tensor_memory_encoding<blockM = 128, blockN = 32, unpacked = true>, #tmem, mutable>
//     %7 = ttng.tmem_alloc %cst : (tensor<128x64xf32, #blocked>) -> !ttg.memdesc<128x64xf32, #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, unpacked = true>, #tmem>
//     tt.return
//   }
//   tt.func @scaled(%arg0: !ttg.memdesc<128x32xi8, #shared, #smem>, %arg1: !ttg.memdesc<64x64xf8E4M3FN, #shared, #smem>, %arg2: !ttg.memdesc<128x64xf32, #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, unpacked = true>, #tmem, mutable>, %arg3: !ttg.memdesc<128x2xi8, #ttng.tensor_memory_scales_encoding<>, #tmem, mutable>, %arg4: !ttg.memdesc<128x64xf32, #shared2, #smem>, %arg5: !ttg.memdesc<1xi64, #shared1, #smem, mutable>, %arg6: i1) {
//     ttng.tmem_copy %arg4, %arg2, %arg5 : !ttg.memdesc<128x64xf32, #shared2, #smem>, !ttg.memdesc<128x64xf32, #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, unpacked = true>, #tmem, mutable>, !ttg.memdesc<1xi64, #shared1, #smem, mutable>
//     ttng.tc_gen5_mma_scaled %arg0, %arg1, %arg2, %arg3, %arg3, %arg6, %arg6 lhs = e2m1 rhs = e4m3 : !ttg.memdesc<128x32xi8, #shared, #smem>, !ttg.memdesc<64x64xf8E4M3FN, #shared, #smem>, !ttg.memdesc<128x64xf32, #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, unpacked = true>, #tmem, mutable>, !ttg.memdesc<128x2xi8, #ttng.tensor_memory_scales_encoding<>, #tmem, mutable>, !ttg.memdesc<128x2xi8, #ttng.tensor_memory_scales_encoding<>, #tmem, mutable>
//     tt.return
//   }
//   tt.func @rows(%arg0: !tt.tensordesc<tensor<1x64xf16, #shared>>, %arg1: tensor<32xi32, #blocked1>, %arg2: i32, %arg3: !ttg.memdesc<32x64xf16, #shared, #smem, mutable>, %arg4: !ttg.memdesc<1xi64, #shared1, #smem, mutable>, %arg5: i1) {
//     ttng.async_tma_gather %arg0[%arg1, %arg2] %arg3, %arg4, %arg5 : !tt.tensordesc<tensor<1x64xf16, #shared>>, tensor<32xi32, #blocked1>, i32, !ttg.memdesc<1xi64, #shared1, #smem, mutable>, !ttg.memdesc<32x64xf16, #shared, #smem, mutable>, i1
//     ttng.async_tma_scatter %arg0[%arg1, %arg2] %arg3 : !tt.tensordesc<tensor<1x64xf16, #shared>>, tensor<32xi32, #blocked1>, i32, !ttg.memdesc<32x64xf16, #shared, #smem, mutable>
//     tt.return
//   }
// }
// -----
// RUN:
// Two elements a byte, and the barrier of MLIR's GPU dialect.
tt.func @unpack(%x: tensor<4x8xi8>) -> tensor<4x16xbf16> {
  %0 = ttg.fp4_to_fp %x {axis = 1 : i32} : tensor<4x8xi8> -> tensor<4x16xbf16>
  gpu.barrier
  tt.return %0 : tensor<4x16xbf16>
}

// OUTPUT
// module {
//   tt.func @unpack(%arg0: tensor<4x8xi8>) -> tensor<4x16xbf16> {
//     %0 = ttg.fp4_to_fp %arg0 {axis = 1 : i32} : tensor<4x8xi8> -> tensor<4x16xbf16>
//     ttg.barrier
//     tt.return %0 : tensor<4x16xbf16>
//   }
// }
