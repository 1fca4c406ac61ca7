// RUN:
// What layouts of operands and results must have to do with each other.
#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
tt.func @f(%x: tensor<32xf32, #b>) { %0 = tt.join %x, %x : tensor<32xf32, #b> -> tensor<32x2xf32> tt.return }
// ERROR: tensor<32x2xf32> has no layout, but tensor<32xf32, #ttg.blocked
// -----
// RUN:
#b = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
#c = #ttg.blocked<{sizePerThread = [2, 2], threadsPerWarp = [1, 32], warpsPerCTA = [1, 1], order = [1, 0]}>
tt.func @f(%x: tensor<64xf32, #b>) { %0 = tt.join %x, %x : tensor<64xf32, #b> -> tensor<64x2xf32, #c> tt.return }
// ERROR: does not follow from that of tensor<64xf32
// -----
// RUN:
#b = #ttg.blocked<{sizePerThread = [1, 1, 2], threadsPerWarp = [1, 32, 1], warpsPerCTA = [1, 1, 1], order = [2, 1, 0]}>
#c = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [1, 1], order = [1, 0]}>
tt.func @f(%x: tensor<32x32x2xf32, #b>) { %0, %1 = tt.split %x : tensor<32x32x2xf32, #b> -> tensor<32x32xf32, #c> tt.return }
// ERROR: does not follow from that of tensor<32x32x2xf32
// -----
// RUN:
#b = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [2, 16], warpsPerCTA = [1, 1], order = [1, 0], CTAsPerCGA = [2, 1], CTASplitNum = [2, 1], CTAOrder = [1, 0]}>
#c = #ttg.blocked<{sizePerThread = [2, 1], threadsPerWarp = [16, 2], warpsPerCTA = [1, 1], order = [0, 1], CTAsPerCGA = [2, 1], CTASplitNum = [2, 1], CTAOrder = [1, 0]}>
tt.func @f(%x: tensor<32x64xf32, #b>) { %0 = tt.trans %x {order = array<i32: 1, 0>} : tensor<32x64xf32, #b> -> tensor<64x32xf32, #c> tt.return }
// ERROR: does not follow from that of tensor<32x64xf32
// -----
// RUN:
#b = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0], CTAsPerCGA = [1, 2], CTASplitNum = [1, 1], CTAOrder = [1, 0]}>
tt.func @f(%i: i32) { %0 = tt.splat %i : i32 -> tensor<8x1x1xi32, #b> tt.return }
// ERROR: has another number of dimensions than it
// -----
// RUN:
#m = #ttg.nvidia_mma<{versionMajor = 2, warpsPerCTA = [1, 1], instrShape = [16, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #m, kWidth = 1}>
#b = #ttg.dot_op<{opIdx = 1, parent = #m, kWidth = 2}>
tt.func @f(%a: tensor<16x16xf16, #a>, %b: tensor<16x16xf16, #b>, %c: tensor<16x16xf32, #m>) {
  %0 = tt.dot %a, %b, %c : tensor<16x16xf16, #a> * tensor<16x16xf16, #b> -> tensor<16x16xf32, #m>
  tt.return
}
// ERROR: the operands are for different `kWidth`: 1 and 2
// -----
// RUN:
tt.func @f(%a: tensor<16x16xf32>, %b: tensor<16x16xf16>, %c: tensor<16x16xf32>) {
  %0 = tt.dot %a, %b, %c : tensor<16x16xf32> * tensor<16x16xf16> -> tensor<16x16xf32>
  tt.return
}
// ERROR: elements of the operands must have one width
// -----
// RUN:
tt.func @f(%p: tensor<64x!tt.ptr<i32>>, %x: tensor<64xi32>) {
  %0 = "tt.map_elementwise"(%p, %x) <{pack = 1 : i32}> ({
  ^bb0(%q: !tt.ptr<i32>, %y: i32):
    tt.store %q, %y : !tt.ptr<i32>
    tt.map_elementwise.return %y : i32
  }) : (tensor<64x!tt.ptr<i32>>, tensor<64xi32>) -> tensor<64xi32>
  tt.return
}
// ERROR: the function must not store
// -----
// RUN:
#s = #ttg.swizzled_shared<{vec = 2, perPhase = 1, maxPhase = 4, order = [1, 0]}>
#smem = #ttg.shared_memory
tt.func @f(%s: !ttg.memdesc<8x16xf32, #s, #smem>) {
  %0 = ttg.memdesc_subslice %s[0, 0] : !ttg.memdesc<8x16xf32, #s, #smem> -> !ttg.memdesc<2x16xf32, #s, #smem, 8x16>
  tt.return
}
// ERROR: a part of 2 along 0 cuts the swizzling pattern, which differs 2 further on
// -----
// RUN:
#s = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = true, elementBitWidth = 16}>
#smem = #ttg.shared_memory
tt.func @f(%s: !ttg.memdesc<32x16xf16, #s, #smem>) {
  %0 = ttg.memdesc_subslice %s[0, 4] : !ttg.memdesc<32x16xf16, #s, #smem> -> !ttg.memdesc<32x4xf16, #s, #smem, 32x16>
  tt.return
}
// ERROR: a part of 4 along 1 cuts the swizzling pattern
// -----
// RUN:
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory
tt.func @f(%s: !ttg.memdesc<8x16xf32, #s, #smem>) {
  %0 = ttg.memdesc_subslice %s[2, 0] : !ttg.memdesc<8x16xf32, #s, #smem> -> !ttg.memdesc<4x16xf32, #s, #smem, 8x16>
  tt.return
}
// ERROR: a part of 4 cannot begin at 2
// -----
// RUN:
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0], CTAsPerCGA = [2, 1], CTASplitNum = [2, 1], CTAOrder = [1, 0]}>
#smem = #ttg.shared_memory
tt.func @f(%s: !ttg.memdesc<8x16xf32, #s, #smem>) {
  %0 = ttg.memdesc_subslice %s[0, 0] : !ttg.memdesc<8x16xf32, #s, #smem> -> !ttg.memdesc<4x16xf32, #s, #smem, 8x16>
  tt.return
}
// ERROR: is spread over CTAs, and such a buffer has no parts
// -----
// RUN:
tt.func @f(%d: !tt.tensordesc<tensor<32x64xsi32>>) { tt.return }
// ERROR: `si32` is not a type
