// Where the kernel copies to a buffer of its own the block lies as that does: by the widest swizzle for its rows.
// RUN: -arrange-buffers -encode-descriptors
#mbar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
// CHECK: tt.func public @slots(%arg0: !tt.tensordesc<tensor<16x32xf16, #shared>>,
// CHECK: ttg.local_alloc : () -> !ttg.memdesc<3x16x32xf16, #shared, #smem, mutable>
tt.func public @slots(%d: !tt.tensordesc<tensor<16x32xf16>>, %m: i32, %n: i32, %s: i64, %one: i64, %i: i32, %true: i1) {
  %b = ttg.local_alloc : () -> !ttg.memdesc<3x16x32xf16, #smem, mutable>
  %bar = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #mbar, #smem, mutable>
  %slot = ttg.memdesc_index %b[%i] : !ttg.memdesc<3x16x32xf16, #smem, mutable> -> !ttg.memdesc<16x32xf16, #smem, mutable>
  ttng.async_tma_copy_global_to_local %d[%i, %i] %slot, %bar, %true : !tt.tensordesc<tensor<16x32xf16>>, !ttg.memdesc<1xi64, #mbar, #smem, mutable> -> !ttg.memdesc<16x32xf16, #smem, mutable>
  tt.return
}

// -----

// RUN: -arrange-buffers -encode-descriptors
#mbar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#plain = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
tt.func public @differ(%d: !tt.tensordesc<tensor<16x32xf16>>, %m: i32, %n: i32, %s: i64, %one: i64, %i: i32, %true: i1) {
  %a = ttg.local_alloc : () -> !ttg.memdesc<16x32xf16, #smem, mutable>
  %b = ttg.local_alloc : () -> !ttg.memdesc<16x32xf16, #plain, #smem, mutable>
  %bar = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #mbar, #smem, mutable>
  ttng.async_tma_copy_global_to_local %d[%i, %i] %a, %bar, %true : !tt.tensordesc<tensor<16x32xf16>>, !ttg.memdesc<1xi64, #mbar, #smem, mutable> -> !ttg.memdesc<16x32xf16, #smem, mutable>
  // ERROR: fills buffers of several layouts
  ttng.async_tma_copy_global_to_local %d[%i, %i] %b, %bar, %true : !tt.tensordesc<tensor<16x32xf16>>, !ttg.memdesc<1xi64, #mbar, #smem, mutable> -> !ttg.memdesc<16x32xf16, #plain, #smem, mutable>
  tt.return
}
