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
// -----
// Pointers to all elements of a part, in order, are a view of it; a store of what is loaded where the same mask holds is marked. A part that begins elsewhere than
// at a multiple of its size stays pointers.
// RUN: -arrange-buffers
#smem = #ttg.shared_memory
module {
  tt.func public @parts(%p: tensor<8x64x!tt.ptr<f16>>, %m: tensor<8x64xi1>) -> (tensor<8x64xf16>, tensor<8x64xf16>) {
    %b = ttg.local_alloc : () -> !ttg.memdesc<8x256xf16, #smem, mutable>
    %zero = arith.constant dense<0.000000e+00> : tensor<8x64xf16>
    %c64 = arith.constant dense<64> : tensor<64xi32>
    %c32 = arith.constant dense<32> : tensor<64xi32>
    %i = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
    %j = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %j1 = arith.addi %j, %c64 : tensor<64xi32>
    %j2 = arith.addi %j, %c32 : tensor<64xi32>
    %ie = tt.expand_dims %i {axis = 1 : i32} : tensor<8xi32> -> tensor<8x1xi32>
    %ib = tt.broadcast %ie : tensor<8x1xi32> -> tensor<8x64xi32>
    %je = tt.expand_dims %j1 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %jb = tt.broadcast %je : tensor<1x64xi32> -> tensor<8x64xi32>
    %ke = tt.expand_dims %j2 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %kb = tt.broadcast %ke : tensor<1x64xi32> -> tensor<8x64xi32>
    %q = ttg.local_ptr %b[%ib, %jb] : (!ttg.memdesc<8x256xf16, #smem, mutable>, tensor<8x64xi32>, tensor<8x64xi32>) -> tensor<8x64x!tt.ptr<f16, 3>>
    %r = ttg.local_ptr %b[%ib, %kb] : (!ttg.memdesc<8x256xf16, #smem, mutable>, tensor<8x64xi32>, tensor<8x64xi32>) -> tensor<8x64x!tt.ptr<f16, 3>>
    %x = tt.load %p, %m, %zero : tensor<8x64x!tt.ptr<f16>>
    tt.store %q, %x, %m : tensor<8x64x!tt.ptr<f16, 3>>
    %y = tt.load %q : tensor<8x64x!tt.ptr<f16, 3>>
    %z = tt.load %r : tensor<8x64x!tt.ptr<f16, 3>>
    tt.return %y, %z : tensor<8x64xf16>, tensor<8x64xf16>
  }
}
// CHECK-LABEL: @parts
// CHECK: [[V:%.*]] = ttg.memdesc_subslice {{.*}}[0, 64] : !ttg.memdesc<8x256xf16,{{.*}} -> !ttg.memdesc<8x64xf16,{{.*}}, 8x256>
// CHECK: [[P:%.*]] = ttg.local_ptr [[V]]
// CHECK: tt.store [[P]], {{.*}} {tle.fills}
// CHECK: [[W:%.*]] = ttg.memdesc_subslice {{.*}}[0, 64]
// CHECK: ttg.local_load [[W]]
// CHECK: tt.load
