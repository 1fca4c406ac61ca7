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
