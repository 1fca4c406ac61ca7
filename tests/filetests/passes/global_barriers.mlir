// A scalar is loaded by all threads and stored by one: a barrier before the store, and none before the next, which nobody
// has loaded since. A load in a loop is behind the store of its turn, and before that of the next.
// RUN: -global-barriers
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%p: !tt.ptr<i32>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    // CHECK: tt.load
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: tt.store
    // CHECK-NEXT: tt.store
    %x = tt.load %p : !tt.ptr<i32>
    tt.store %p, %n : !tt.ptr<i32>
    tt.store %p, %x : !tt.ptr<i32>
    // CHECK-NEXT: scf.for
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: tt.store
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: tt.load
    scf.for %i = %c0 to %n step %c1 : i32 {
      tt.store %p, %i : !tt.ptr<i32>
      %y = tt.load %p : !tt.ptr<i32>
    }
    // CHECK: ttg.barrier
    // CHECK-NEXT: tt.store
    // CHECK-NEXT: scf.for
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: tt.store
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: tt.load
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: }
    // CHECK-NEXT: tt.store
    // What the last turn loads is settled in it, but the first turn's store comes behind the load above.
    tt.store %p, %n : !tt.ptr<i32>
    scf.for %i = %c0 to %n step %c1 : i32 {
      ttg.barrier
      tt.store %p, %i : !tt.ptr<i32>
      %y = tt.load %p : !tt.ptr<i32>
      ttg.barrier
    }
    tt.store %p, %n : !tt.ptr<i32>
    tt.return
  }
}
// -----
// The condition of a while loop is what runs last: its load is pending behind the loop, whatever the body waits for.
// RUN: -global-barriers
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%p: !tt.ptr<i32>, %n: i32) {
    // CHECK: tt.load
    // CHECK: ttg.barrier
    // CHECK: }
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: tt.store
    scf.while : () -> () {
      %x = tt.load %p : !tt.ptr<i32>
      %c = arith.cmpi slt, %x, %n : i32
      scf.condition(%c)
    } do {
      ttg.barrier
      scf.yield
    }
    tt.store %p, %n : !tt.ptr<i32>
    tt.return
  }
}
// -----
// One branch loads, so that behind both nobody knows; each element of the tile below is one thread's, but those of the narrow one
// are held by several.
// RUN: -global-barriers
#one = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%first: !tt.ptr<f32>, %c: i1) {
    %few = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #one>
    %some = tt.splat %first : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #one>
    %q = tt.addptr %some, %few : tensor<64x!tt.ptr<f32>, #one>, tensor<64xi32, #one>
    %i = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #one>
    %all = tt.splat %first : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>, #one>
    %p = tt.addptr %all, %i : tensor<512x!tt.ptr<f32>, #one>, tensor<512xi32, #one>
    // CHECK: tt.load
    // CHECK-NEXT: tt.store
    %x = tt.load %p {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #one>
    tt.store %p, %x {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #one>
    // CHECK: scf.if
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: tt.load
    // CHECK: }
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: tt.store
    scf.if %c {
      %y = tt.load %q {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<64x!tt.ptr<f32>, #one>
    }
    tt.store %p, %x {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #one>
    tt.return
  }
}
// -----
// A reduction through scratch waits for all threads itself. An atomic operation that releases wants a barrier before it, unless one
// is there; one that only acquires wants none.
// RUN: -global-barriers
#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%x: tensor<512xf32, #blocked>, %p: !tt.ptr<f32>, %q: !tt.ptr<i32>, %n: i32) {
    %y = tt.load %p : !tt.ptr<f32>
    // CHECK: tt.reduce"
    // CHECK-NOT: ttg.barrier
    // CHECK: tt.store
    %0 = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %t = arith.addf %a, %b : f32
      tt.reduce.return %t : f32
    }) {allocation.offset = 0 : i32} : (tensor<512xf32, #blocked>) -> f32
    tt.store %p, %0 : !tt.ptr<f32>
    // CHECK-NEXT: tt.atomic_rmw add, acquire
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: tt.atomic_rmw add, acq_rel
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: tt.atomic_rmw add, release
    // CHECK-NEXT: tt.return
    %1 = tt.atomic_rmw add, acquire, gpu, %q, %n : (!tt.ptr<i32>, i32) -> i32
    %2 = tt.atomic_rmw add, acq_rel, gpu, %q, %n : (!tt.ptr<i32>, i32) -> i32
    ttg.barrier
    %3 = tt.atomic_rmw add, release, gpu, %q, %n : (!tt.ptr<i32>, i32) -> i32
    tt.return
  }
}
// -----
// The same in a worker, whose own threads it is a barrier of.
// RUN: -global-barriers
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%q: !tt.ptr<i32>, %n: i32) {
    ttg.warp_specialize(%q, %n) attributes {requestedRegisters = array<i32: 64>}
    default {
      ttg.warp_yield
    }
    // CHECK: partition0
    // CHECK-NEXT: tt.store
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: tt.atomic_rmw add, release
    partition0(%p: !tt.ptr<i32>, %one: i32) num_warps(4) {
      tt.store %p, %one : !tt.ptr<i32>
      %0 = tt.atomic_rmw add, release, gpu, %p, %one : (!tt.ptr<i32>, i32) -> i32
      ttg.warp_return
    } : (!tt.ptr<i32>, i32) -> ()
    tt.return
  }
}
// -----
// A barrier of programs is one of the program's threads, before and behind the others.
// RUN: -global-barriers
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%p: !tt.ptr<f32>) {
    // CHECK: tt.load
    // CHECK-NEXT: tt.program_barrier grid
    // CHECK-NEXT: tt.store
    %y = tt.load %p : !tt.ptr<f32>
    tt.program_barrier grid {group = 0 : i32}
    tt.store %p, %y : !tt.ptr<f32>
    tt.return
  }
}
// -----
// What threads have loaded the copy engine may overwrite: a barrier before its copy, but behind one none.
// RUN: -global-barriers
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%d: !tt.tensordesc<tensor<64x64xf16, #shared>>, %p: tensor<64x64x!tt.ptr<f16>, #blocked>, %a: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %i: i32) {
    // CHECK: tt.load
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: ttng.async_tma_copy_local_to_global
    // CHECK-NEXT: ttng.async_tma_copy_local_to_global
    %x = tt.load %p {tt.vec = 8 : i32, tt.vec_axis = 1 : i32} : tensor<64x64x!tt.ptr<f16>, #blocked>
    ttng.async_tma_copy_local_to_global %d[%i, %i] %a : !tt.tensordesc<tensor<64x64xf16, #shared>>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    ttng.async_tma_copy_local_to_global %d[%i, %i] %a : !tt.tensordesc<tensor<64x64xf16, #shared>>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    ttng.async_tma_store_wait {pendings = 0 : i32}
    tt.return
  }
}
// -----
// A row that is shifted in place: a thread stores what others load before it, and behind it. What goes through another pointer is another row, and
// what a thread has stored it may store once more.
// RUN: -global-barriers
#one = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%row: !tt.ptr<f32>, %other: !tt.ptr<f32>) {
    %one = arith.constant dense<1> : tensor<512xi32, #one>
    %i = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #one>
    %j = arith.addi %i, %one : tensor<512xi32, #one>
    %rows = tt.splat %row : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>, #one>
    %others = tt.splat %other : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>, #one>
    %p = tt.addptr %rows, %i : tensor<512x!tt.ptr<f32>, #one>, tensor<512xi32, #one>
    %q = tt.addptr %rows, %j : tensor<512x!tt.ptr<f32>, #one>, tensor<512xi32, #one>
    %u = tt.addptr %others, %i : tensor<512x!tt.ptr<f32>, #one>, tensor<512xi32, #one>
    // CHECK: tt.load
    // CHECK-NEXT: tt.store
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: tt.store
    // CHECK-NEXT: tt.store
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: tt.load
    // CHECK-NEXT: tt.store
    %x = tt.load %q {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #one>
    tt.store %u, %x {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #one>
    tt.store %p, %x {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #one>
    tt.store %p, %x {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #one>
    %y = tt.load %q {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #one>
    tt.store %u, %y {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #one>
    tt.return
  }
}
// -----
// One pointer in all iterations of a loop: by 512 each time a thread never meets another, nor by a stride that is known at run time only; by 33 it
// does, in the next iteration. Of quotients two are equal in one tensor.
// RUN: -global-barriers
#one = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%x: !tt.ptr<f32>, %n: i32, %stride: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c33 = arith.constant 33 : i32
    %c512 = arith.constant 512 : i32
    %eight = arith.constant dense<8> : tensor<512xi32, #one>
    %i = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #one>
    %all = tt.splat %x : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>, #one>
    %p = tt.addptr %all, %i : tensor<512x!tt.ptr<f32>, #one>, tensor<512xi32, #one>
    // CHECK: scf.for
    // CHECK: tt.addptr
    // CHECK-NEXT: tt.load
    // CHECK-NEXT: tt.store
    // CHECK: scf.for
    // CHECK: tt.addptr
    // CHECK-NEXT: tt.load
    // CHECK-NEXT: tt.store
    // CHECK: scf.for
    // CHECK: tt.addptr
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: tt.load
    // CHECK-NEXT: tt.store
    scf.for %k = %c0 to %n step %c1 : i32 {
      %0 = arith.muli %k, %stride : i32
      %1 = tt.splat %0 : i32 -> tensor<512xi32, #one>
      %2 = tt.addptr %p, %1 : tensor<512x!tt.ptr<f32>, #one>, tensor<512xi32, #one>
      %3 = tt.load %2 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #one>
      tt.store %2, %3 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #one>
    }
    ttg.barrier
    scf.for %k = %c0 to %n step %c512 : i32 {
      %1 = tt.splat %k : i32 -> tensor<512xi32, #one>
      %2 = tt.addptr %p, %1 : tensor<512x!tt.ptr<f32>, #one>, tensor<512xi32, #one>
      %3 = tt.load %2 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #one>
      tt.store %2, %3 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #one>
    }
    ttg.barrier
    scf.for %k = %c0 to %n step %c1 : i32 {
      %0 = arith.muli %k, %c33 : i32
      %1 = tt.splat %0 : i32 -> tensor<512xi32, #one>
      %2 = tt.addptr %p, %1 : tensor<512x!tt.ptr<f32>, #one>, tensor<512xi32, #one>
      %3 = tt.load %2 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #one>
      tt.store %2, %3 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #one>
    }
    // CHECK: arith.divsi
    // CHECK-NEXT: tt.addptr
    // CHECK-NEXT: tt.load
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: tt.store
    ttg.barrier
    %q = arith.divsi %i, %eight : tensor<512xi32, #one>
    %r = tt.addptr %all, %q : tensor<512x!tt.ptr<f32>, #one>, tensor<512xi32, #one>
    %v = tt.load %r {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #one>
    tt.store %r, %v {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #one>
    tt.return
  }
}
// -----
// A loop that polls what another program stores has no barrier in it: one for what the program has stored stands before it. What the loop
// itself stores through another pointer may be the answer to that; a load that does not decide how often it turns is in order.
// RUN: -global-barriers
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%mine: !tt.ptr<i32>, %i: i32, %n: i32) {
    %yours = tt.addptr %mine, %i : !tt.ptr<i32>, i32
    // CHECK: tt.store
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: scf.while
    // CHECK-NEXT: tt.load
    tt.store %mine, %n : !tt.ptr<i32>
    scf.while : () -> () {
      %x = tt.load %yours : !tt.ptr<i32>
      %c = arith.cmpi slt, %x, %n : i32
      scf.condition(%c)
    } do {
      scf.yield
    }
    // CHECK: scf.while
    // CHECK-NEXT: tt.load
    // CHECK: do
    // CHECK: ttg.barrier
    // CHECK-NEXT: tt.store
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: tt.load
    // CHECK-NEXT: scf.yield
    %last = scf.while (%sum = %n) : (i32) -> i32 {
      %x = tt.load %yours : !tt.ptr<i32>
      %c = arith.cmpi slt, %x, %n : i32
      scf.condition(%c) %sum : i32
    } do {
    ^bb0(%sum: i32):
      tt.store %mine, %n : !tt.ptr<i32>
      %y = tt.load %yours : !tt.ptr<i32>
      scf.yield %y : i32
    }
    tt.return
  }
}
// -----
// What a call may load and store is all that it is given.
// RUN: -global-barriers
#one = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func private @turn(%x: !tt.ptr<f32>, %v: tensor<512xf32, #one>) {
    %last = arith.constant dense<511> : tensor<512xi32, #one>
    %i = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #one>
    %j = arith.subi %last, %i : tensor<512xi32, #one>
    %all = tt.splat %x : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>, #one>
    %p = tt.addptr %all, %j : tensor<512x!tt.ptr<f32>, #one>, tensor<512xi32, #one>
    tt.store %p, %v {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #one>
    tt.return
  }
  tt.func public @f(%x: !tt.ptr<f32>, %other: !tt.ptr<f32>) {
    %i = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #one>
    %all = tt.splat %x : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>, #one>
    %p = tt.addptr %all, %i : tensor<512x!tt.ptr<f32>, #one>, tensor<512xi32, #one>
    // CHECK: tt.func public
    // CHECK: tt.load
    // CHECK-NEXT: tt.call
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: tt.call
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: tt.load
    %v = tt.load %p {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #one>
    tt.call @turn(%other, %v) : (!tt.ptr<f32>, tensor<512xf32, #one>) -> ()
    tt.call @turn(%x, %v) : (!tt.ptr<f32>, tensor<512xf32, #one>) -> ()
    %w = tt.load %p {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #one>
    tt.return
  }
}
// -----
// Blocks of 32 rows: those of the next iteration begin behind these, or 16 rows in them.
// RUN: -global-barriers
#block = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%d: !tt.tensordesc<tensor<32x16xf32>>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c16 = arith.constant 16 : i32
    %c32 = arith.constant 32 : i32
    // CHECK: arith.muli
    // CHECK-NEXT: tt.descriptor_load
    // CHECK-NEXT: tt.descriptor_store
    // CHECK: arith.muli
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: tt.descriptor_load
    // CHECK-NEXT: tt.descriptor_store
    scf.for %k = %c0 to %n step %c1 : i32 {
      %row = arith.muli %k, %c32 : i32
      %x = tt.descriptor_load %d[%row, %c0] : !tt.tensordesc<tensor<32x16xf32>> -> tensor<32x16xf32, #block>
      tt.descriptor_store %d[%row, %c0], %x : !tt.tensordesc<tensor<32x16xf32>>, tensor<32x16xf32, #block>
    }
    ttg.barrier
    scf.for %k = %c0 to %n step %c1 : i32 {
      %row = arith.muli %k, %c16 : i32
      %x = tt.descriptor_load %d[%row, %c0] : !tt.tensordesc<tensor<32x16xf32>> -> tensor<32x16xf32, #block>
      tt.descriptor_store %d[%row, %c0], %x : !tt.tensordesc<tensor<32x16xf32>>, tensor<32x16xf32, #block>
    }
    tt.return
  }
}
// -----
// What is atomic stores what others store behind it, unless a thread does so by the same pointers. Between sums that nobody looks at there is no barrier.
// RUN: -global-barriers
#one = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%x: !tt.ptr<i32>, %other: !tt.ptr<i32>) {
    %last = arith.constant dense<511> : tensor<512xi32, #one>
    %i = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #one>
    %j = arith.subi %last, %i : tensor<512xi32, #one>
    %all = tt.splat %x : !tt.ptr<i32> -> tensor<512x!tt.ptr<i32>, #one>
    %others = tt.splat %other : !tt.ptr<i32> -> tensor<512x!tt.ptr<i32>, #one>
    %p = tt.addptr %all, %i : tensor<512x!tt.ptr<i32>, #one>, tensor<512xi32, #one>
    %q = tt.addptr %all, %j : tensor<512x!tt.ptr<i32>, #one>, tensor<512xi32, #one>
    %u = tt.addptr %others, %j : tensor<512x!tt.ptr<i32>, #one>, tensor<512xi32, #one>
    // CHECK: tt.atomic_rmw
    // CHECK-NEXT: tt.store
    // CHECK-NEXT: tt.store
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: tt.atomic_rmw
    // CHECK-NEXT: tt.atomic_rmw
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: tt.store
    %0 = tt.atomic_rmw add, relaxed, gpu, %p, %i {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : (tensor<512x!tt.ptr<i32>, #one>, tensor<512xi32, #one>) -> tensor<512xi32, #one>
    tt.store %u, %i {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<i32>, #one>
    tt.store %p, %i {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<i32>, #one>
    %1 = tt.atomic_rmw add, relaxed, gpu, %q, %i {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : (tensor<512x!tt.ptr<i32>, #one>, tensor<512xi32, #one>) -> tensor<512xi32, #one>
    %2 = tt.atomic_rmw add, relaxed, gpu, %p, %i {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : (tensor<512x!tt.ptr<i32>, #one>, tensor<512xi32, #one>) -> tensor<512xi32, #one>
    tt.store %p, %i {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<i32>, #one>
    tt.return
  }
}
// -----
// A pointer that a function gives leads to what it was given, and its arguments to what its callers gave: two of them may be one.
// RUN: -global-barriers
#one = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func private @pick(%x: !tt.ptr<i32>, %y: !tt.ptr<i32>, %c: i1) -> !tt.ptr<i32> {
    %r = arith.select %c, %x, %y : !tt.ptr<i32>
    tt.return %r : !tt.ptr<i32>
  }
  tt.func private @turn(%x: !tt.ptr<i32>, %y: !tt.ptr<i32>) {
    %last = arith.constant dense<511> : tensor<512xi32, #one>
    %i = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #one>
    %j = arith.subi %last, %i : tensor<512xi32, #one>
    %all = tt.splat %x : !tt.ptr<i32> -> tensor<512x!tt.ptr<i32>, #one>
    %others = tt.splat %y : !tt.ptr<i32> -> tensor<512x!tt.ptr<i32>, #one>
    %p = tt.addptr %all, %i : tensor<512x!tt.ptr<i32>, #one>, tensor<512xi32, #one>
    %q = tt.addptr %others, %j : tensor<512x!tt.ptr<i32>, #one>, tensor<512xi32, #one>
    // CHECK: tt.func private @turn
    // CHECK: tt.load
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: tt.store
    %v = tt.load %p {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<i32>, #one>
    tt.store %q, %v {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<i32>, #one>
    tt.return
  }
  tt.func private @apart(%x: !tt.ptr<i32>, %y: !tt.ptr<i32>) {
    %i = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #one>
    %all = tt.splat %x : !tt.ptr<i32> -> tensor<512x!tt.ptr<i32>, #one>
    %others = tt.splat %y : !tt.ptr<i32> -> tensor<512x!tt.ptr<i32>, #one>
    %p = tt.addptr %all, %i : tensor<512x!tt.ptr<i32>, #one>, tensor<512xi32, #one>
    %q = tt.addptr %others, %i : tensor<512x!tt.ptr<i32>, #one>, tensor<512xi32, #one>
    // CHECK: tt.func private @apart
    // CHECK: tt.load
    // CHECK-NEXT: tt.store
    %v = tt.load %p {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<i32>, #one>
    tt.store %q, %v {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<i32>, #one>
    tt.return
  }
  tt.func public @f(%x: !tt.ptr<i32>, %y: !tt.ptr<i32>, %z: !tt.ptr<i32>, %c: i1, %n: i32) {
    %p = tt.addptr %x, %n : !tt.ptr<i32>, i32
    // CHECK: tt.func public
    // CHECK: tt.call @apart
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: tt.call @turn
    // CHECK: tt.call @pick
    // CHECK-NEXT: tt.load
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: tt.store
    tt.call @apart(%x, %y) : (!tt.ptr<i32>, !tt.ptr<i32>) -> ()
    tt.call @turn(%x, %p) : (!tt.ptr<i32>, !tt.ptr<i32>) -> ()
    ttg.barrier
    %r = tt.call @pick(%x, %y, %c) : (!tt.ptr<i32>, !tt.ptr<i32>, i1) -> !tt.ptr<i32>
    %v = tt.load %r : !tt.ptr<i32>
    tt.store %y, %v : !tt.ptr<i32>
    tt.return
  }
}
// -----
// What threads load through another argument is another tensor's, copies or not. Pointers that begin a constant apart meet where their strides make up for it;
// blocks side by side in one row don't, nor do every other element and those between.
// RUN: -global-barriers
#one = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%x: !tt.ptr<i32>, %other: !tt.ptr<i32>, %n: i32) {
    %one = arith.constant dense<1> : tensor<128xi32, #one>
    %two = arith.constant dense<2> : tensor<128xi32, #one>
    %most = arith.constant dense<128> : tensor<128xi32, #one>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c128 = arith.constant 128 : i32
    %c256 = arith.constant 256 : i32
    %i = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32, #one>
    %all = tt.splat %x : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>, #one>
    %p = tt.addptr %all, %i : tensor<128x!tt.ptr<i32>, #one>, tensor<128xi32, #one>
    %beside = tt.addptr %p, %most : tensor<128x!tt.ptr<i32>, #one>, tensor<128xi32, #one>
    %next = tt.addptr %p, %one : tensor<128x!tt.ptr<i32>, #one>, tensor<128xi32, #one>
    %twice = arith.muli %i, %two : tensor<128xi32, #one>
    %even = tt.addptr %all, %twice : tensor<128x!tt.ptr<i32>, #one>, tensor<128xi32, #one>
    %odd = tt.addptr %even, %one : tensor<128x!tt.ptr<i32>, #one>, tensor<128xi32, #one>
    // CHECK: tt.load
    // CHECK-NEXT: tt.load
    // CHECK-NEXT: tt.store
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: tt.store
    %s = tt.load %other : !tt.ptr<i32>
    %v = tt.load %p {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<128x!tt.ptr<i32>, #one>
    tt.store %beside, %v {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<128x!tt.ptr<i32>, #one>
    tt.store %next, %v {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<128x!tt.ptr<i32>, #one>
    ttg.barrier
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: tt.load
    // CHECK-NEXT: tt.store
    %w = tt.load %even {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<128x!tt.ptr<i32>, #one>
    tt.store %odd, %w {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<128x!tt.ptr<i32>, #one>
    ttg.barrier
    // CHECK: scf.for
    // CHECK: tt.addptr
    // CHECK-NEXT: tt.addptr
    // CHECK-NEXT: tt.load
    // CHECK-NEXT: tt.store
    // CHECK: scf.for
    // CHECK: tt.addptr
    // CHECK-NEXT: tt.addptr
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: tt.load
    // CHECK-NEXT: tt.store
    scf.for %k = %c0 to %n step %c256 : i32 {
      %1 = tt.splat %k : i32 -> tensor<128xi32, #one>
      %2 = tt.addptr %p, %1 : tensor<128x!tt.ptr<i32>, #one>, tensor<128xi32, #one>
      %3 = tt.addptr %beside, %1 : tensor<128x!tt.ptr<i32>, #one>, tensor<128xi32, #one>
      %4 = tt.load %2 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<128x!tt.ptr<i32>, #one>
      tt.store %3, %4 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<128x!tt.ptr<i32>, #one>
    }
    scf.for %k = %c0 to %n step %c128 : i32 {
      %1 = tt.splat %k : i32 -> tensor<128xi32, #one>
      %2 = tt.addptr %p, %1 : tensor<128x!tt.ptr<i32>, #one>, tensor<128xi32, #one>
      %3 = tt.addptr %beside, %1 : tensor<128x!tt.ptr<i32>, #one>, tensor<128xi32, #one>
      %4 = tt.load %2 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<128x!tt.ptr<i32>, #one>
      tt.store %3, %4 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<128x!tt.ptr<i32>, #one>
    }
    tt.return
  }
}
// -----
// A quotient and a remainder of one number by one divisor are different for different numbers, of numbers of other divisors two may be equal. A mask says how many
// elements of a row there are: if it is that of the load and of the store.
// RUN: -global-barriers
#one = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%x: !tt.ptr<i32>, %n: i32, %m: i32, %s: i32, %t: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c100 = arith.constant 100 : i32
    %c128 = arith.constant 128 : i32
    %end = arith.constant dense<100> : tensor<128xi32, #one>
    %i = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32, #one>
    %all = tt.splat %x : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>, #one>
    %p = tt.addptr %all, %i : tensor<128x!tt.ptr<i32>, #one>, tensor<128xi32, #one>
    %mask = arith.cmpi slt, %i, %end : tensor<128xi32, #one>
    %ns = tt.splat %n : i32 -> tensor<128xi32, #one>
    %ms = tt.splat %m : i32 -> tensor<128xi32, #one>
    %ss = tt.splat %s : i32 -> tensor<128xi32, #one>
    %ts = tt.splat %t : i32 -> tensor<128xi32, #one>
    // CHECK: scf.for
    // CHECK: tt.addptr
    // CHECK-NEXT: tt.addptr
    // CHECK-NEXT: tt.load
    // CHECK-NEXT: tt.store
    // CHECK: scf.for
    // CHECK: tt.load
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: tt.store
    scf.for %k = %c0 to %n step %c128 : i32 {
      %1 = tt.splat %k : i32 -> tensor<128xi32, #one>
      %o = arith.addi %1, %i : tensor<128xi32, #one>
      %q = arith.divsi %o, %ns : tensor<128xi32, #one>
      %r = arith.remsi %o, %ns : tensor<128xi32, #one>
      %a = arith.muli %q, %ss : tensor<128xi32, #one>
      %b = arith.muli %r, %ts : tensor<128xi32, #one>
      %2 = tt.addptr %all, %a : tensor<128x!tt.ptr<i32>, #one>, tensor<128xi32, #one>
      %3 = tt.addptr %2, %b : tensor<128x!tt.ptr<i32>, #one>, tensor<128xi32, #one>
      %4 = tt.load %3 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<128x!tt.ptr<i32>, #one>
      tt.store %3, %4 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<128x!tt.ptr<i32>, #one>
    }
    ttg.barrier
    scf.for %k = %c0 to %c1 step %c1 : i32 {
      %q = arith.divsi %i, %ns : tensor<128xi32, #one>
      %r = arith.remsi %i, %ms : tensor<128xi32, #one>
      %a = arith.muli %q, %ss : tensor<128xi32, #one>
      %b = arith.muli %r, %ts : tensor<128xi32, #one>
      %2 = tt.addptr %all, %a : tensor<128x!tt.ptr<i32>, #one>, tensor<128xi32, #one>
      %3 = tt.addptr %2, %b : tensor<128x!tt.ptr<i32>, #one>, tensor<128xi32, #one>
      %4 = tt.load %3 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<128x!tt.ptr<i32>, #one>
      tt.store %3, %4 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<128x!tt.ptr<i32>, #one>
    }
    ttg.barrier
    // CHECK: scf.for
    // CHECK: tt.addptr
    // CHECK-NEXT: tt.load
    // CHECK-NEXT: tt.store
    // CHECK: scf.for
    // CHECK: tt.addptr
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: tt.load
    // CHECK-NEXT: tt.store
    scf.for %k = %c0 to %n step %c1 : i32 {
      %0 = arith.muli %k, %c100 : i32
      %1 = tt.splat %0 : i32 -> tensor<128xi32, #one>
      %2 = tt.addptr %p, %1 : tensor<128x!tt.ptr<i32>, #one>, tensor<128xi32, #one>
      %3 = tt.load %2, %mask {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<128x!tt.ptr<i32>, #one>
      tt.store %2, %3, %mask {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<128x!tt.ptr<i32>, #one>
    }
    scf.for %k = %c0 to %n step %c1 : i32 {
      %0 = arith.muli %k, %c100 : i32
      %1 = tt.splat %0 : i32 -> tensor<128xi32, #one>
      %2 = tt.addptr %p, %1 : tensor<128x!tt.ptr<i32>, #one>, tensor<128xi32, #one>
      %3 = tt.load %2 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<128x!tt.ptr<i32>, #one>
      tt.store %2, %3, %mask {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<128x!tt.ptr<i32>, #one>
    }
    tt.return
  }
}
// -----
// Addresses that are computed as numbers come from what the numbers are computed from.
// RUN: -global-barriers
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%a: i64, %b: i64) {
    %c8 = arith.constant 8 : i64
    %next = arith.addi %a, %c8 : i64
    %other = arith.addi %b, %c8 : i64
    %p = tt.int_to_ptr %a : i64 -> !tt.ptr<i32>
    %q = tt.int_to_ptr %next : i64 -> !tt.ptr<i32>
    %r = tt.int_to_ptr %other : i64 -> !tt.ptr<i32>
    // CHECK: tt.load
    // CHECK-NEXT: tt.store
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: tt.store
    %v = tt.load %p : !tt.ptr<i32>
    tt.store %r, %v : !tt.ptr<i32>
    tt.store %q, %v : !tt.ptr<i32>
    tt.return
  }
}
// -----
// A store of what another thread has stored, with a load of that tensor between that needs no barrier itself.
// RUN: -global-barriers
#one = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%x: !tt.ptr<i32>) {
    %last = arith.constant dense<127> : tensor<128xi32, #one>
    %most = arith.constant dense<128> : tensor<128xi32, #one>
    %i = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32, #one>
    %j = arith.subi %last, %i : tensor<128xi32, #one>
    %all = tt.splat %x : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>, #one>
    %p = tt.addptr %all, %i : tensor<128x!tt.ptr<i32>, #one>, tensor<128xi32, #one>
    %q = tt.addptr %all, %j : tensor<128x!tt.ptr<i32>, #one>, tensor<128xi32, #one>
    %beside = tt.addptr %p, %most : tensor<128x!tt.ptr<i32>, #one>, tensor<128xi32, #one>
    // CHECK: tt.store
    // CHECK-NEXT: tt.load
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: tt.store
    tt.store %p, %i {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<128x!tt.ptr<i32>, #one>
    %v = tt.load %beside {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<128x!tt.ptr<i32>, #one>
    tt.store %q, %v {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<128x!tt.ptr<i32>, #one>
    tt.return
  }
}
// -----
// A function is given an address as a number, and stores there; another one is given it and does nothing with it.
// RUN: -global-barriers
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func private @put(%a: i64, %v: i32) attributes {noinline = true} {
    %p = tt.int_to_ptr %a : i64 -> !tt.ptr<i32>
    tt.store %p, %v : !tt.ptr<i32>
    tt.return
  }
  tt.func private @beside(%a: i64, %v: i32, %p: !tt.ptr<i32>) attributes {noinline = true} {
    tt.store %p, %v : !tt.ptr<i32>
    tt.return
  }
  // CHECK: tt.func public
  tt.func public @f(%a: i64, %y: !tt.ptr<i32>) {
    %c4 = arith.constant 4 : i64
    %p = tt.int_to_ptr %a : i64 -> !tt.ptr<i32>
    %next = arith.addi %a, %c4 : i64
    // CHECK: tt.load
    // CHECK-NEXT: tt.call @beside
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: tt.call @put
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: tt.load
    %v = tt.load %p : !tt.ptr<i32>
    tt.call @beside(%next, %v, %y) : (i64, i32, !tt.ptr<i32>) -> ()
    tt.call @put(%next, %v) : (i64, i32) -> ()
    %w = tt.load %p : !tt.ptr<i32>
    tt.store %y, %w : !tt.ptr<i32>
    tt.return
  }
}
// -----
// Lanes of a warp that hold copies: of 8 elements each is loaded by two of 16, of 16 by one.
// RUN: -target=xe:pvc -num-warps=4 -global-barriers
#blocked = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 16], warpsPerCTA = [1, 1], order = [1, 0]}>
#columns = #ttg.slice<{dim = 0, parent = #blocked}>
module attributes {tt.warp_level = 4 : i32, ttg.level = "lane", "ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "xe:pvc", "ttg.threads-per-warp" = 16 : i32, "ttg.total-num-warps" = 4 : i32} {
  tt.func public @f(%x: !tt.ptr<i32>, %y: !tt.ptr<i32>) {
    %few = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32, #columns>
    %to_few = tt.splat %x : !tt.ptr<i32> -> tensor<8x!tt.ptr<i32>, #columns>
    %p = tt.addptr %to_few, %few : tensor<8x!tt.ptr<i32>, #columns>, tensor<8xi32, #columns>
    %all = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #columns>
    %to_all = tt.splat %y : !tt.ptr<i32> -> tensor<16x!tt.ptr<i32>, #columns>
    %q = tt.addptr %to_all, %all : tensor<16x!tt.ptr<i32>, #columns>, tensor<16xi32, #columns>
    // CHECK: tt.load
    // CHECK-NEXT: tt.load
    // CHECK-NEXT: tt.store
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: tt.store
    %a = tt.load %p {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<8x!tt.ptr<i32>, #columns>
    %b = tt.load %q {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<i32>, #columns>
    tt.store %q, %b {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<16x!tt.ptr<i32>, #columns>
    tt.store %p, %a {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<8x!tt.ptr<i32>, #columns>
    tt.return
  }
}
// -----
// What lanes load as a row, one of them stores element by element: by the second store what another has loaded. A whole row that is stored wants no barrier (of warps it had one), nor do two stores.
// RUN: -target=xe:pvc -num-warps=1 -global-barriers
#blocked = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 16], warpsPerCTA = [1, 1], order = [1, 0]}>
module attributes {tt.warp_level = 1 : i32, ttg.level = "lane", "ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "xe:pvc", "ttg.threads-per-warp" = 16 : i32, "ttg.total-num-warps" = 1 : i32} {
  tt.func public @f(%x: !tt.ptr<i32>, %one: tensor<1x1xi32, #blocked>) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c4 = arith.constant 4 : i32
    %c64 = arith.constant 64 : i32
    %pitch = arith.constant 64 : i64
    %step = arith.constant 1 : i64
    %rows = tt.make_tensor_descriptor %x, [%c4, %c64], [%pitch, %step] : <i32>, <tensor<1x16xi32>>
    %elements = tt.make_tensor_descriptor %x, [%c4, %c64], [%pitch, %step] : <i32>, <tensor<1x1xi32>>
    // CHECK: tt.descriptor_load
    // CHECK-NEXT: tt.descriptor_store
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: tt.descriptor_store
    // CHECK-NEXT: tt.descriptor_store
    %row = tt.descriptor_load %rows[%c0, %c0] : !tt.tensordesc<tensor<1x16xi32>> -> tensor<1x16xi32, #blocked>
    tt.descriptor_store %rows[%c1, %c0], %row : !tt.tensordesc<tensor<1x16xi32>>, tensor<1x16xi32, #blocked>
    tt.descriptor_store %elements[%c0, %c0], %one : !tt.tensordesc<tensor<1x1xi32>>, tensor<1x1xi32, #blocked>
    tt.descriptor_store %elements[%c0, %c1], %one : !tt.tensordesc<tensor<1x1xi32>>, tensor<1x1xi32, #blocked>
    tt.return
  }
}
