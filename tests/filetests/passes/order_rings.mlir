// Each chunk goes all the way through the ring before the next one: nothing is left of it.
// RUN: -order-rings
// CHECK: tt.func public @balanced
// CHECK-NOT: ring
// CHECK-NOT: tt.assert
// CHECK: ttg.memdesc_index
tt.func public @balanced(%n: i32, %x: tensor<64xf32>) {
  %a = ttg.local_alloc : () -> !ttg.memdesc<2x64xf32, #ttg.shared_memory, mutable>
  %ring = ttg.ring_create %a {slots = 2 : i32} : !ttg.memdesc<2x64xf32, #ttg.shared_memory, mutable>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  scf.for %k = %c0 to %n step %c1 : i32 {
    %slot = arith.remui %k, %c2 : i32
    %round = arith.divui %k, %c2 : i32
    %phase = arith.andi %round, %c1 : i32
    ttg.ring_acquire %ring[%slot], %phase
    %w = ttg.memdesc_index %a[%slot] : !ttg.memdesc<2x64xf32, #ttg.shared_memory, mutable> -> !ttg.memdesc<64xf32, #ttg.shared_memory, mutable>
    ttg.local_store %x, %w : tensor<64xf32> -> !ttg.memdesc<64xf32, #ttg.shared_memory, mutable>
    ttg.ring_commit %ring[%slot]
    ttg.ring_wait %ring[%slot], %phase
    ttg.ring_release %ring[%slot]
  }
  tt.return
}
// -----
// The writer is a chunk ahead: the state of the slots goes through the loop, and is checked.
// RUN: -order-rings
// CHECK: tt.func public @ahead
// CHECK: arith.shli
// CHECK: tt.assert {{.*}}, "deadlock: the writer of the pipe `rows` waits for a slot that its own threads have not released"
// CHECK: arith.xori
// CHECK: scf.for {{.*}} iter_args(
// CHECK: scf.if
// CHECK: tt.assert
// CHECK: tt.assert {{.*}}, "deadlock: the reader of the pipe `rows` waits for a slot that its own threads have not committed"
// CHECK-NOT: ring_
tt.func public @ahead(%n: i32) {
  %a = ttg.local_alloc : () -> !ttg.memdesc<2x64xf32, #ttg.shared_memory, mutable>
  %ring = ttg.ring_create %a {name = "rows", slots = 2 : i32} : !ttg.memdesc<2x64xf32, #ttg.shared_memory, mutable>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  ttg.ring_acquire %ring[%c0], %c0
  ttg.ring_commit %ring[%c0]
  scf.for %k = %c0 to %n step %c1 : i32 {
    %next = arith.addi %k, %c1 : i32
    %more = arith.cmpi slt, %next, %n : i32
    scf.if %more {
      %slot = arith.remui %next, %c2 : i32
      %round = arith.divui %next, %c2 : i32
      %phase = arith.andi %round, %c1 : i32
      ttg.ring_acquire %ring[%slot], %phase
      ttg.ring_commit %ring[%slot]
    }
    %slot = arith.remui %k, %c2 : i32
    %round = arith.divui %k, %c2 : i32
    %phase = arith.andi %round, %c1 : i32
    ttg.ring_wait %ring[%slot], %phase
    ttg.ring_release %ring[%slot]
  }
  tt.return
}
// -----
// The same of a number of chunks that is known: followed to its end.
// RUN: -order-rings
// CHECK: tt.func public @known
// CHECK-NOT: tt.assert
// CHECK: tt.store %arg0, %true
tt.func public @known(%out: !tt.ptr<i1>) {
  %a = ttg.local_alloc : () -> !ttg.memdesc<2x64xf32, #ttg.shared_memory, mutable>
  %ring = ttg.ring_create %a {slots = 2 : i32} : !ttg.memdesc<2x64xf32, #ttg.shared_memory, mutable>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  scf.for %k = %c0 to %c2 step %c1 : i32 {
    ttg.ring_acquire %ring[%k], %c0
    ttg.ring_commit %ring[%k]
  }
  scf.for %k = %c0 to %c2 step %c1 : i32 {
    ttg.ring_wait %ring[%k], %c0
    ttg.ring_release %ring[%k]
  }
  ttg.ring_close %ring[%c0], %c1
  ttg.ring_wait %ring[%c0], %c1
  %closed = ttg.ring_is_closed %ring[%c0]
  tt.store %out, %closed : !tt.ptr<i1>
  tt.return
}
// -----
// One chunk too many.
// RUN: -order-rings
// ERROR: acquire can never succeed: slot 0 of the pipe is not released by the reader `b` before it is acquired again
tt.func public @full() {
  %a = ttg.local_alloc : () -> !ttg.memdesc<1x64xf32, #ttg.shared_memory, mutable>
  %ring = ttg.ring_create %a {readers = ["a", "b"], slots = 1 : i32} : !ttg.memdesc<1x64xf32, #ttg.shared_memory, mutable>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  ttg.ring_acquire %ring[%c0], %c0
  ttg.ring_commit %ring[%c0]
  ttg.ring_wait %ring[%c0], %c0 {reader = 0 : i32}
  ttg.ring_release %ring[%c0] {reader = 0 : i32}
  ttg.ring_acquire %ring[%c0], %c1
  tt.return
}
// -----
// Ends that are different warps wait for each other: the ring is left.
// RUN: -order-rings
// CHECK: ttg.ring_create
// CHECK: ttg.ring_acquire
// CHECK: ttg.ring_wait
tt.func public @apart() {
  %a = ttg.local_alloc : () -> !ttg.memdesc<1x64xf32, #ttg.shared_memory, mutable>
  %ring = ttg.ring_create %a {slots = 1 : i32} : !ttg.memdesc<1x64xf32, #ttg.shared_memory, mutable>
  %c0 = arith.constant 0 : i32
  ttg.warp_specialize(%ring) attributes {partitionNumWarps = array<i32: 4>}
  default {
    ttg.ring_acquire %ring[%c0], %c0
    ttg.ring_commit %ring[%c0]
    ttg.warp_yield
  }
  partition0(%r: !ttg.ring) num_warps(4) {
    %zero = arith.constant 0 : i32
    ttg.ring_wait %r[%zero], %zero
    ttg.ring_release %r[%zero]
    ttg.warp_return
  } : (!ttg.ring) -> ()
  tt.return
}
// -----
// Ends that are the same partition: what it has of the ring goes, too.
// RUN: -order-rings
// CHECK: tt.func public @inside
// CHECK-NOT: ring
// CHECK: tt.assert
// CHECK-NOT: ring
tt.func public @inside(%n: i32) {
  %a = ttg.local_alloc : () -> !ttg.memdesc<2x64xf32, #ttg.shared_memory, mutable>
  %ring = ttg.ring_create %a {slots = 2 : i32} : !ttg.memdesc<2x64xf32, #ttg.shared_memory, mutable>
  ttg.warp_specialize(%ring, %n) attributes {partitionNumWarps = array<i32: 4>}
  default {
    ttg.warp_yield
  }
  partition0(%arg0: !ttg.ring, %m: i32) num_warps(4) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %k = %c0 to %m step %c1 : i32 {
      ttg.ring_acquire %arg0[%c0], %c0
      ttg.ring_commit %arg0[%c0]
      ttg.ring_wait %arg0[%c0], %k
    }
    ttg.warp_return
  } : (!ttg.ring, i32) -> ()
  tt.return
}
