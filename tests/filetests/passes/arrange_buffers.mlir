// Buffers that products of the kernel's own read have the swizzle of these: for 8 warps that share 192 columns by two of 96 no
// wider one than begins there. What is transposed is marked so.
// RUN: -num-warps=8 -arrange-buffers
#smem = #ttg.shared_memory
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
// CHECK: #shared1 = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
// CHECK: ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
// CHECK: ttg.local_alloc : () -> !ttg.memdesc<2x64x192xf16, #shared1, #smem, mutable>
tt.func public @columns(%acc: tensor<64x192xf32>, %i: i32) {
  %a = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #smem, mutable>
  %b = ttg.local_alloc : () -> !ttg.memdesc<2x64x192xf16, #smem, mutable>
  %slot = ttg.memdesc_index %b[%i] : !ttg.memdesc<2x64x192xf16, #smem, mutable> -> !ttg.memdesc<64x192xf16, #smem, mutable>
  %t = ttg.memdesc_trans %a {order = array<i32: 1, 0>} : !ttg.memdesc<64x64xf16, #smem, mutable> -> !ttg.memdesc<64x64xf16, #smem, mutable>
  // CHECK: ttg.memdesc_trans %{{.*}} -> !ttg.memdesc<64x64xf16, #shared2, #smem, mutable>
  %d = ttng.warp_group_dot %t, %slot, %acc {isAsync = true, tle.wgmma} : !ttg.memdesc<64x64xf16, #smem, mutable> * !ttg.memdesc<64x192xf16, #smem, mutable> -> tensor<64x192xf32>
  tt.return
}

// -----

// A reshaped view shows the same bytes: where a row is several swizzles wide it does not.
// RUN: -arrange-buffers
#smem = #ttg.shared_memory
tt.func public @reshaped(%acc: tensor<64x64xf32>, %b: !ttg.memdesc<128x64xf16, #smem, mutable>) {
  %a = ttg.local_alloc : () -> !ttg.memdesc<2x32x128xf16, #smem, mutable>
  // ERROR: this reshape of a buffer whose layout is that of tle.gpu.wgmma
  %r = ttg.memdesc_reshape %a : !ttg.memdesc<2x32x128xf16, #smem, mutable> -> !ttg.memdesc<64x128xf16, #smem, mutable>
  %d = ttng.warp_group_dot %r, %b, %acc {isAsync = true, tle.wgmma} : !ttg.memdesc<64x128xf16, #smem, mutable> * !ttg.memdesc<128x64xf16, #smem, mutable> -> tensor<64x64xf32>
  tt.return
}
