// The operations of rings as they are written.
// RUN:
#plain = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
tt.func @rings(%x: !ttg.memdesc<2x64xf16, #plain, #smem, mutable>, %d: !tt.tensordesc<tensor<64xf16>>, %s: i32, %p: i32, %c: i1) -> i1 {
  %ring = ttg.ring_create %x {name = "pipe", readers = ["left", "right"], slots = 2 : i32} : !ttg.memdesc<2x64xf16, #plain, #smem, mutable>
  ttg.ring_acquire %ring[%s], %p where %c
  %v = ttg.memdesc_index %x[%s] : !ttg.memdesc<2x64xf16, #plain, #smem, mutable> -> !ttg.memdesc<64xf16, #plain, #smem, mutable>
  ttg.async_copy_block_to_local %d[%s], %v, %c evictionPolicy = evict_first : !tt.tensordesc<tensor<64xf16>> -> !ttg.memdesc<64xf16, #plain, #smem, mutable>
  ttg.ring_commit %ring[%s]
  ttg.ring_close %ring[%s], %p
  ttg.ring_wait %ring[%s], %p {later = 1 : i32, reader = 1 : i32}
  %closed = ttg.ring_is_closed %ring[%s]
  ttg.ring_release %ring[%s] where %c {reader = 1 : i32}
  ttg.ring_dealloc %ring
  tt.return %closed : i1
}
// CHECK: [[RING:%.*]] = ttg.ring_create %arg0 {name = "pipe", readers = ["left", "right"], slots = 2 : i32} : !ttg.memdesc<2x64xf16
// CHECK-NEXT: ttg.ring_acquire [[RING]][%arg2], %arg3 where %arg4
// CHECK-NEXT: [[V:%.*]] = ttg.memdesc_index
// CHECK-NEXT: ttg.async_copy_block_to_local %arg1[%arg2], [[V]], %arg4 evictionPolicy = evict_first : !tt.tensordesc<tensor<64xf16>> -> !ttg.memdesc<64xf16
// CHECK-NEXT: ttg.ring_commit [[RING]][%arg2]
// CHECK-NEXT: ttg.ring_close [[RING]][%arg2], %arg3
// CHECK-NEXT: ttg.ring_wait [[RING]][%arg2], %arg3 {later = 1 : i32, reader = 1 : i32}
// CHECK-NEXT: [[C:%.*]] = ttg.ring_is_closed [[RING]][%arg2]
// CHECK-NEXT: ttg.ring_release [[RING]][%arg2] where %arg4 {reader = 1 : i32}
// CHECK-NEXT: ttg.ring_dealloc [[RING]]
// CHECK-NEXT: tt.return [[C]]
// -----
// RUN:
#plain = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
tt.func @f(%x: !ttg.memdesc<2x64xf16, #plain, #smem, mutable>) {
  %ring = ttg.ring_create %x {slots = 3 : i32} : !ttg.memdesc<2x64xf16, #plain, #smem, mutable>
  tt.return
}
// ERROR: a field of a ring of 3 slots must be a mutable buffer `3x...`
// -----
// RUN:
#plain = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
tt.func @f(%x: !ttg.memdesc<2x64xf16, #plain, #smem, mutable>) {
  %ring = ttg.ring_create %x {readers = ["a", "a"], slots = 2 : i32} : !ttg.memdesc<2x64xf16, #plain, #smem, mutable>
  tt.return
}
// ERROR: the readers of a ring must have names that differ
// -----
// RUN:
tt.func @f(%ring: !ttg.ring, %s: i64, %p: i32) {
  ttg.ring_acquire %ring[%s], %p
  tt.return
}
// ERROR: `slot` has type i64; it must be i32
// -----
// RUN:
tt.func @f(%ring: !ttg.ring, %s: i32, %p: i32) {
  ttg.ring_wait %ring[%s], %p {reader = -1 : i32}
  tt.return
}
// ERROR: `reader` must not be negative
