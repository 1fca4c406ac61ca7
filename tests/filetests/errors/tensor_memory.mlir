// RUN:
// What tensor memory cannot do.
#tm = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, unpacked = true>
#space = #ttng.tensor_memory
tt.func @f() { %0 = ttng.tmem_alloc : () -> !ttg.memdesc<128x64xf32, #tm, #space> tt.return }
// ERROR: a buffer without a source must be mutable
// -----
// RUN:
#sh = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
tt.func @f(%b: !ttg.memdesc<128x64xf32, #sh, #ttg.shared_memory>) {
  %0 = ttng.tmem_load %b : !ttg.memdesc<128x64xf32, #sh, #ttg.shared_memory> -> tensor<128x64xf32>
  tt.return
}
// ERROR: `src` must be a buffer in tensor memory
// -----
// RUN:
#tm = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, unpacked = true>
#space = #ttng.tensor_memory
tt.func @f(%d: !ttg.memdesc<128x64xf32, #tm, #space>, %x: tensor<128x64xf32>, %c: i1) {
  ttng.tmem_store %x, %d, %c : tensor<128x64xf32> -> !ttg.memdesc<128x64xf32, #tm, #space>
  tt.return
}
// ERROR: a mutable buffer expected for `dst`
// -----
// RUN:
#tm = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, unpacked = true>
#other = #ttng.tensor_memory_encoding<blockM = 64, blockN = 32, unpacked = true>
#space = #ttng.tensor_memory
tt.func @f(%d: !ttg.memdesc<128x64xf32, #tm, #space>) {
  %0 = ttng.tmem_subslice %d {N = 0 : i32} : !ttg.memdesc<128x64xf32, #tm, #space> -> !ttg.memdesc<128x32xf32, #other, #space>
  tt.return
}
// ERROR: blocks of as many rows as the whole
// -----
// RUN:
#tile = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#tm = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, unpacked = true>
#space = #ttng.tensor_memory
#smem = #ttg.shared_memory
tt.func @f(%a: !ttg.memdesc<128x32xf16, #tile, #smem>, %d: !ttg.memdesc<128x64xf32, #tm, #space, mutable>, %c: i1) {
  ttng.tc_gen5_mma %a, %a, %d, %c, %c : !ttg.memdesc<128x32xf16, #tile, #smem>, !ttg.memdesc<128x32xf16, #tile, #smem>, !ttg.memdesc<128x64xf32, #tm, #space, mutable>
  tt.return
}
// ERROR: does not fit
// -----
// RUN:
#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#tile = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#tm = #ttng.tensor_memory_encoding<blockM = 128, blockN = 128, unpacked = true>
#space = #ttng.tensor_memory
#smem = #ttg.shared_memory
tt.func @f(%a: !ttg.memdesc<128x128xf16, #tile, #smem>, %d: !ttg.memdesc<128x128xf32, #tm, #space, mutable>, %bar: !ttg.memdesc<1xi64, #bar, #smem, mutable>, %c: i1) {
  ttng.tc_gen5_mma %a, %a, %d, %c, %c, %bar[%c] : !ttg.memdesc<128x128xf16, #tile, #smem>, !ttg.memdesc<128x128xf16, #tile, #smem>, !ttg.memdesc<128x128xf32, #tm, #space, mutable>, !ttg.memdesc<1xi64, #bar, #smem, mutable>
  tt.return
}
// ERROR: a product that is not asynchronous has no barriers
