// A barrier between a write and a read of the same bytes, none between reads, none where the bytes differ; around a loop
// one between its reads and the writes of the next turn.
// RUN: -allocate-shared -membar
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%x: tensor<32x32xf32, #blocked>, %n: i32, %c: i1) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %a = ttg.local_alloc : () -> !ttg.memdesc<32x32xf32, #shared, #smem, mutable>
    %b = ttg.local_alloc : () -> !ttg.memdesc<32x32xf32, #shared, #smem, mutable>
    // CHECK: ttg.local_store
    // CHECK-NEXT: ttg.local_store
    ttg.local_store %x, %a : tensor<32x32xf32, #blocked> -> !ttg.memdesc<32x32xf32, #shared, #smem, mutable>
    ttg.local_store %x, %b : tensor<32x32xf32, #blocked> -> !ttg.memdesc<32x32xf32, #shared, #smem, mutable>
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: ttg.local_load
    // CHECK-NEXT: ttg.local_load
    %0 = ttg.local_load %a : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> tensor<32x32xf32, #blocked>
    %1 = ttg.local_load %b : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> tensor<32x32xf32, #blocked>
    // The reads above, and in later turns the read below, come before this write.
    // CHECK-NEXT: scf.for
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: ttg.local_store
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: ttg.local_load
    scf.for %i = %c0 to %n step %c1 : i32 {
      ttg.local_store %x, %a : tensor<32x32xf32, #blocked> -> !ttg.memdesc<32x32xf32, #shared, #smem, mutable>
      %2 = ttg.local_load %a : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> tensor<32x32xf32, #blocked>
    }
    // Only one branch writes; after it nobody knows, so there is a barrier.
    // CHECK: scf.if
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: ttg.local_store
    scf.if %c {
      ttg.local_store %x, %a : tensor<32x32xf32, #blocked> -> !ttg.memdesc<32x32xf32, #shared, #smem, mutable>
    }
    // CHECK: ttg.barrier
    // CHECK-NEXT: ttg.local_load
    %3 = ttg.local_load %a : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> tensor<32x32xf32, #blocked>
    // CHECK-NEXT: ttg.local_load
    %4 = ttg.local_load %b : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> tensor<32x32xf32, #blocked>
    tt.return
  }
}
// -----
// A reduction has a barrier inside: what came before it is settled, but its scratch is still being read after it.
// RUN: -membar
#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%x: tensor<512xf32, #blocked>, %p: !tt.ptr<f32>) {
    // CHECK-NOT: ttg.barrier
    // CHECK: tt.reduce"
    %0 = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %t = arith.addf %a, %b : f32
      tt.reduce.return %t : f32
    }) {allocation.offset = 0 : i32} : (tensor<512xf32, #blocked>) -> f32
    // CHECK: ttg.barrier
    // CHECK-NEXT: tt.reduce"
    %1 = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %t = arith.maxnumf %a, %b : f32
      tt.reduce.return %t : f32
    }) {allocation.offset = 0 : i32} : (tensor<512xf32, #blocked>) -> f32
    // CHECK-NOT: ttg.barrier
    // CHECK: tt.store
    %2 = arith.addf %0, %1 : f32
    tt.store %p, %2 : !tt.ptr<f32>
    tt.return
  }
}
// -----
// Asynchronous copies: no barrier between copies to a ring, nor between a copy and a read of another slot; one after the
// wait, before the first read or overwrite.
// RUN: -allocate-shared -membar
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#blocked1 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%p: tensor<32x32x!tt.ptr<f32>, #blocked>) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %ring = ttg.local_alloc : () -> !ttg.memdesc<2x32x32xf32, #shared, #smem, mutable>
    %a = ttg.memdesc_index %ring[%c0] : !ttg.memdesc<2x32x32xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x32xf32, #shared, #smem, mutable>
    %b = ttg.memdesc_index %ring[%c1] : !ttg.memdesc<2x32x32xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x32xf32, #shared, #smem, mutable>
    // CHECK-NOT: ttg.barrier
    // CHECK: ttg.async_wait
    %t0 = ttg.async_copy_global_to_local %p, %a : tensor<32x32x!tt.ptr<f32>, #blocked> -> !ttg.memdesc<32x32xf32, #shared, #smem, mutable>
    %g0 = ttg.async_commit_group tokens %t0
    %t1 = ttg.async_copy_global_to_local %p, %b : tensor<32x32x!tt.ptr<f32>, #blocked> -> !ttg.memdesc<32x32xf32, #shared, #smem, mutable>
    %g1 = ttg.async_commit_group tokens %t1
    %w = ttg.async_wait {num = 1 : i32}
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: ttg.local_load
    %x = ttg.local_load %a token %w : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> tensor<32x32xf32, #blocked1>
    // Overwriting what was just read needs one too.
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: ttg.async_copy_global_to_local
    %t2 = ttg.async_copy_global_to_local %p, %a : tensor<32x32x!tt.ptr<f32>, #blocked> -> !ttg.memdesc<32x32xf32, #shared, #smem, mutable>
    %g2 = ttg.async_commit_group tokens %t2
    tt.return
  }
}
// -----
// A copy into a free slot (the pipeliner's word) does not wait for this iteration's reads of another slot; reads of the
// iteration before, which the wait for copies ends, are settled by the barrier after that wait.
// RUN: -allocate-shared -membar
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#blocked1 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%p: tensor<32x32x!tt.ptr<f32>, #blocked>, %n: i32, %i: i32, %j: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %ring = ttg.local_alloc : () -> !ttg.memdesc<2x32x32xf32, #shared, #smem, mutable>
    scf.for %k = %c0 to %n step %c1  : i32 {
      %a = ttg.memdesc_index %ring[%i] : !ttg.memdesc<2x32x32xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x32xf32, #shared, #smem, mutable>
      %b = ttg.memdesc_index %ring[%j] : !ttg.memdesc<2x32x32xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x32xf32, #shared, #smem, mutable>
      // CHECK: ttg.async_wait
      // CHECK-NEXT: ttg.barrier
      // CHECK-NEXT: ttg.local_load
      %w = ttg.async_wait {num = 0 : i32}
      %x = ttg.local_load %a token %w : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> tensor<32x32xf32, #blocked1>
      // CHECK-NEXT: ttg.async_copy_global_to_local
      %t = ttg.async_copy_global_to_local %p, %b {ttg.free_slot} : tensor<32x32x!tt.ptr<f32>, #blocked> -> !ttg.memdesc<32x32xf32, #shared, #smem, mutable>
      %g = ttg.async_commit_group tokens %t
    }
    tt.return
  }
}
// -----
// What TMA reads was written before a barrier that is needed for something else: the fence goes there, and no second barrier.
// RUN: -allocate-shared -membar
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%d: !tt.tensordesc<tensor<64x64xf16, #shared>>, %x: tensor<64x64xf16, #blocked>, %i: i32) {
    %a = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    %b = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    ttg.local_store %x, %a : tensor<64x64xf16, #blocked> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    ttg.local_store %x, %b : tensor<64x64xf16, #blocked> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    // CHECK: ttg.local_store
    // CHECK: ttg.local_store
    // CHECK-NEXT: ttng.fence_async_shared
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: ttg.local_load
    // CHECK-NEXT: ttng.async_tma_copy_local_to_global
    %y = ttg.local_load %b : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf16, #blocked>
    ttng.async_tma_copy_local_to_global %d[%i, %i] %a : !tt.tensordesc<tensor<64x64xf16, #shared>>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    ttng.async_tma_store_wait {pendings = 0 : i32}
    ttg.local_store %y, %a : tensor<64x64xf16, #blocked> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    tt.return
  }
}
// -----
// Copies to global memory read two buffers by turns: before each is written again its copy has read it, and the other's goes on. All
// have when the kernel ends.
// RUN: -allocate-shared -membar
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%d: !tt.tensordesc<tensor<64x64xf16, #shared>>, %x: tensor<64x64xf16, #blocked>, %n: i32, %c: i1) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %a = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    %b = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    // CHECK: scf.for
    // CHECK-NEXT: ttng.async_tma_store_wait {pendings = 1 : i32}
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: ttg.local_store
    // CHECK-NEXT: ttng.fence_async_shared
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: ttng.async_tma_copy_local_to_global
    // CHECK-NEXT: ttng.async_tma_store_wait {pendings = 1 : i32}
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: ttg.local_store
    // CHECK-NEXT: ttng.fence_async_shared
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: ttng.async_tma_copy_local_to_global
    // CHECK-NEXT: }
    scf.for %i = %c0 to %n step %c1 : i32 {
      ttg.local_store %x, %a : tensor<64x64xf16, #blocked> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
      ttng.async_tma_copy_local_to_global %d[%i, %i] %a : !tt.tensordesc<tensor<64x64xf16, #shared>>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
      ttg.local_store %x, %b : tensor<64x64xf16, #blocked> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
      ttng.async_tma_copy_local_to_global %d[%i, %i] %b : !tt.tensordesc<tensor<64x64xf16, #shared>>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    }
    // A branch may begin one more: of the least that has begun since is known.
    // CHECK-NEXT: scf.if
    // CHECK-NEXT: ttng.async_tma_copy_local_to_global
    // CHECK-NEXT: }
    // CHECK-NEXT: ttng.async_tma_store_wait {pendings = 1 : i32}
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: ttg.local_store
    // CHECK-NEXT: ttng.async_tma_store_wait {pendings = 0 : i32}
    // CHECK-NEXT: tt.return
    scf.if %c {
      ttng.async_tma_copy_local_to_global %d[%n, %n] %b : !tt.tensordesc<tensor<64x64xf16, #shared>>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    }
    ttg.local_store %x, %a : tensor<64x64xf16, #blocked> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    tt.return
  }
}
// -----
// A partition copies out of what another fills: it waits before the barrier before the arrival behind which that one goes on, and not before
// an arrival when nothing is under way.
// RUN: -allocate-warp-groups -allocate-shared -membar
#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%d: !tt.tensordesc<tensor<64x64xf16, #shared>>, %i: i32) {
    %a = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    %full = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #bar, #smem, mutable>
    ttg.warp_specialize(%d, %a, %full, %i)
    default {
      %yes = arith.constant true
      ttng.async_tma_copy_global_to_local %d[%i, %i] %a, %full, %yes : !tt.tensordesc<tensor<64x64xf16, #shared>>, !ttg.memdesc<1xi64, #bar, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
      ttg.warp_yield
    }
    partition0(%pd: !tt.tensordesc<tensor<64x64xf16, #shared>>, %pa: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %pfull: !ttg.memdesc<1xi64, #bar, #smem, mutable>, %pi: i32) num_warps(4) {
      // CHECK: partition0
      // CHECK: ttng.async_tma_copy_local_to_global
      // CHECK-NEXT: ttng.async_tma_store_wait {pendings = 0 : i32}
      // CHECK-NEXT: ttg.barrier
      // CHECK-NEXT: ttng.arrive_barrier
      // CHECK-NEXT: ttg.barrier
      // CHECK-NEXT: ttng.arrive_barrier
      // CHECK-NEXT: ttg.warp_return
      ttng.async_tma_copy_local_to_global %pd[%pi, %pi] %pa : !tt.tensordesc<tensor<64x64xf16, #shared>>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
      ttg.barrier
      ttng.arrive_barrier %pfull, 1 : !ttg.memdesc<1xi64, #bar, #smem, mutable>
      ttg.barrier
      ttng.arrive_barrier %pfull, 1 : !ttg.memdesc<1xi64, #bar, #smem, mutable>
      ttg.warp_return
    } : (!tt.tensordesc<tensor<64x64xf16, #shared>>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, !ttg.memdesc<1xi64, #bar, #smem, mutable>, i32) -> ()
    tt.return
  }
}
// -----
// Threads that have met at a barrier of programs need none of their own.
// RUN: -allocate-shared -membar
#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%x: tensor<512xf32, #blocked>) {
    // CHECK: ttg.local_store
    // CHECK-NEXT: tt.program_barrier grid
    // CHECK-NEXT: ttg.local_load
    %a = ttg.local_alloc : () -> !ttg.memdesc<512xf32, #shared, #smem, mutable>
    ttg.local_store %x, %a : tensor<512xf32, #blocked> -> !ttg.memdesc<512xf32, #shared, #smem, mutable>
    tt.program_barrier grid {group = 0 : i32}
    %y = ttg.local_load %a : !ttg.memdesc<512xf32, #shared, #smem, mutable> -> tensor<512xf32, #blocked>
    tt.return
  }
}
// -----
// One thread waits for a signal, and all meet behind it: they need no barrier of their own.
// RUN: -allocate-shared -membar
#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%x: tensor<512xf32, #blocked>, %flag: !tt.ptr<i32>, %n: i32) {
    // CHECK: ttg.local_store
    // CHECK-NEXT: tt.wait_signal
    // CHECK-NEXT: ttg.local_load
    %a = ttg.local_alloc : () -> !ttg.memdesc<512xf32, #shared, #smem, mutable>
    ttg.local_store %x, %a : tensor<512xf32, #blocked> -> !ttg.memdesc<512xf32, #shared, #smem, mutable>
    tt.wait_signal %flag, %n : !tt.ptr<i32>, i32
    %y = ttg.local_load %a : !ttg.memdesc<512xf32, #shared, #smem, mutable> -> tensor<512xf32, #blocked>
    tt.return
  }
}
// -----
// What the copy engine writes next to where threads have loaded: a fence before the barrier that lets it.
// RUN: -membar
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#mbar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%d: !tt.tensordesc<tensor<64x64xf16, #shared>>, %i: i32, %true: i1) -> tensor<64x64xf16, #blocked> {
    %b = ttg.local_alloc {allocation.offset = 0 : i32} : () -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    %m = ttg.local_alloc {allocation.offset = 8192 : i32} : () -> !ttg.memdesc<1xi64, #mbar, #smem, mutable>
    // CHECK: ttg.local_load
    // CHECK-NEXT: ttng.fence_async_shared
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: ttng.async_tma_copy_global_to_local
    %x = ttg.local_load %b : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf16, #blocked>
    ttng.async_tma_copy_global_to_local %d[%i, %i] %b, %m, %true : !tt.tensordesc<tensor<64x64xf16, #shared>>, !ttg.memdesc<1xi64, #mbar, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    tt.return %x : tensor<64x64xf16, #blocked>
  }
}
// -----
// Warps that arrive at a barrier of the kernel's own hand over what they have loaded, which the copy engine of another partition fills
// next: a fence before the barrier before the arrival. What no copy touches wants none.
// RUN: -allocate-warp-groups -allocate-shared -membar
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#mbar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.total-num-warps" = 5 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%d: !tt.tensordesc<tensor<64x64xf16, #shared>>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %b = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    %o = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    %full = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #mbar, #smem, mutable>
    %empty = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #mbar, #smem, mutable>
    ttng.init_barrier %full, 1 {tle.bytes = 8192 : i32} : !ttg.memdesc<1xi64, #mbar, #smem, mutable>
    ttng.init_barrier %empty, 1 : !ttg.memdesc<1xi64, #mbar, #smem, mutable>
    // CHECK: ttg.warp_specialize
    // CHECK: ttng.wait_barrier
    // CHECK-NEXT: ttg.local_load
    // CHECK-NEXT: ttng.fence_async_shared
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: ttng.arrive_barrier
    // CHECK-NEXT: ttg.local_store
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: ttng.arrive_barrier
    // CHECK: partition0
    // CHECK-NOT: ttg.barrier
    ttg.warp_specialize(%d, %b, %full, %empty, %c0)
    default {
      ttng.wait_barrier %full, %c0 : !ttg.memdesc<1xi64, #mbar, #smem, mutable>
      %x = ttg.local_load %b : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf16, #blocked>
      ttg.barrier
      ttng.arrive_barrier %empty, 1 : !ttg.memdesc<1xi64, #mbar, #smem, mutable>
      ttg.local_store %x, %o : tensor<64x64xf16, #blocked> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
      ttg.barrier
      ttng.arrive_barrier %empty, 1 : !ttg.memdesc<1xi64, #mbar, #smem, mutable>
      ttg.warp_yield
    }
    partition0(%pd: !tt.tensordesc<tensor<64x64xf16, #shared>>, %pb: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %pfull: !ttg.memdesc<1xi64, #mbar, #smem, mutable>, %pempty: !ttg.memdesc<1xi64, #mbar, #smem, mutable>, %pi: i32) num_warps(1) {
      %true = arith.constant true
      ttng.wait_barrier %pempty, %pi : !ttg.memdesc<1xi64, #mbar, #smem, mutable>
      ttng.barrier_expect %pfull, 8192 {tle.bytes = 8192 : i32}, %true : !ttg.memdesc<1xi64, #mbar, #smem, mutable>
      ttng.async_tma_copy_global_to_local %pd[%pi, %pi] %pb, %pfull, %true : !tt.tensordesc<tensor<64x64xf16, #shared>>, !ttg.memdesc<1xi64, #mbar, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
      ttg.warp_return
    } : (!tt.tensordesc<tensor<64x64xf16, #shared>>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, !ttg.memdesc<1xi64, #mbar, #smem, mutable>, !ttg.memdesc<1xi64, #mbar, #smem, mutable>, i32) -> ()
    tt.return
  }
}
// -----
// A slot of a part, or of an alias, is somewhere in the whole: not where that slot of the whole is.
// RUN: -allocate-shared -membar
#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%x: tensor<512xf32, #blocked>) {
    %c0 = arith.constant 0 : i32
    %c2 = arith.constant 2 : i32
    %a = ttg.local_alloc : () -> !ttg.memdesc<4x512xf32, #shared, #smem, mutable>
    %part = ttg.memdesc_subslice %a[2, 0] : !ttg.memdesc<4x512xf32, #shared, #smem, mutable> -> !ttg.memdesc<2x512xf32, #shared, #smem, mutable, 4x512>
    %alias = ttg.memdesc_reinterpret %a {offset = 4096 : i32} : !ttg.memdesc<4x512xf32, #shared, #smem, mutable> -> !ttg.memdesc<2x512xf32, #shared, #smem, mutable>
    %0 = ttg.memdesc_index %a[%c2] : !ttg.memdesc<4x512xf32, #shared, #smem, mutable> -> !ttg.memdesc<512xf32, #shared, #smem, mutable>
    %1 = ttg.memdesc_index %part[%c0] : !ttg.memdesc<2x512xf32, #shared, #smem, mutable, 4x512> -> !ttg.memdesc<512xf32, #shared, #smem, mutable>
    %2 = ttg.memdesc_index %alias[%c0] : !ttg.memdesc<2x512xf32, #shared, #smem, mutable> -> !ttg.memdesc<512xf32, #shared, #smem, mutable>
    // CHECK: ttg.local_store
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: ttg.local_load
    ttg.local_store %x, %0 : tensor<512xf32, #blocked> -> !ttg.memdesc<512xf32, #shared, #smem, mutable>
    %y = ttg.local_load %1 : !ttg.memdesc<512xf32, #shared, #smem, mutable> -> tensor<512xf32, #blocked>
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: ttg.local_store
    ttg.local_store %y, %2 : tensor<512xf32, #blocked> -> !ttg.memdesc<512xf32, #shared, #smem, mutable>
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: ttg.local_load
    %z = ttg.local_load %0 : !ttg.memdesc<512xf32, #shared, #smem, mutable> -> tensor<512xf32, #blocked>
    tt.return
  }
}
// -----
// A ring whose slots a loop counts: what is written was copied from three turns before, and two copies have been begun since. Where the loop has ended any
// slot may be the one.
// RUN: -allocate-shared -membar
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%d: !tt.tensordesc<tensor<64x64xf16, #shared>>, %x: tensor<64x64xf16, #blocked>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c3 = arith.constant 3 : i32
    %a = ttg.local_alloc : () -> !ttg.memdesc<3x64x64xf16, #shared, #smem, mutable>
    // CHECK: ttg.memdesc_index
    // CHECK-NEXT: ttng.async_tma_store_wait {pendings = 2 : i32}
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: ttg.local_store
    // CHECK-NEXT: ttng.fence_async_shared
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: ttng.async_tma_copy_local_to_global
    scf.for %i = %c0 to %n step %c1 : i32 {
      %s = arith.remsi %i, %c3 : i32
      %slot = ttg.memdesc_index %a[%s] : !ttg.memdesc<3x64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
      ttg.local_store %x, %slot : tensor<64x64xf16, #blocked> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
      ttng.async_tma_copy_local_to_global %d[%i, %i] %slot : !tt.tensordesc<tensor<64x64xf16, #shared>>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    }
    %last = ttg.memdesc_index %a[%c0] : !ttg.memdesc<3x64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    // CHECK: ttg.memdesc_index
    // CHECK-NEXT: ttng.async_tma_store_wait {pendings = 0 : i32}
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: ttg.local_store
    ttg.local_store %x, %last : tensor<64x64xf16, #blocked> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    tt.return
  }
}
// -----
// The kernel lets two copies be under way, whatever they read.
// RUN: -allocate-shared -membar
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%d: !tt.tensordesc<tensor<64x64xf16, #shared>>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %a = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    // CHECK: scf.for
    // CHECK-NEXT: ttng.async_tma_store_wait {pendings = 1 : i32}
    // CHECK-NEXT: ttng.async_tma_copy_local_to_global
    // CHECK-NEXT: }
    // CHECK-NEXT: ttng.async_tma_store_wait {pendings = 0 : i32}
    scf.for %i = %c0 to %n step %c1 : i32 {
      ttng.async_tma_copy_local_to_global %d[%i, %i] %a {tle.pending = 2 : i32} : !tt.tensordesc<tensor<64x64xf16, #shared>>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    }
    tt.return
  }
}
// -----
// An mbarrier of each turn: all threads have waited before it ends, and who ends it makes the next one.
// RUN: -lower-rings -allocate-shared -membar
#mbar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    // CHECK: scf.for
    // CHECK-NEXT: ttg.local_alloc
    // CHECK-NEXT: ttng.init_barrier
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: ttng.arrive_barrier
    // CHECK-NEXT: ttng.wait_barrier
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: ttng.inval_barrier
    // CHECK-NEXT: }
    scf.for %i = %c0 to %n step %c1 : i32 {
      %b = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #mbar, #smem, mutable>
      ttng.init_barrier %b, 4 : !ttg.memdesc<1xi64, #mbar, #smem, mutable>
      ttng.arrive_barrier %b, 1 {perWarp = true} : !ttg.memdesc<1xi64, #mbar, #smem, mutable>
      ttng.wait_barrier %b, %c0 : !ttg.memdesc<1xi64, #mbar, #smem, mutable>
    }
    // Outside of loops none ends.
    // CHECK: ttng.init_barrier
    // CHECK-NEXT: tt.return
    %last = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #mbar, #smem, mutable>
    ttng.init_barrier %last, 1 : !ttg.memdesc<1xi64, #mbar, #smem, mutable>
    tt.return
  }
}
// -----
// What a loop reads alone has been written before it: the barrier stands before the loop, and so does the fence where a copy reads it.
// A loop inside of a loop has it where nothing of the outer loop wants another.
// RUN: -allocate-shared -membar
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%d: !tt.tensordesc<tensor<64x64xf16, #shared>>, %x: tensor<64x64xf16, #blocked>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %a = ttg.local_alloc %x : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
    // CHECK: ttg.local_alloc
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: scf.for
    // CHECK-NEXT: scf.for
    // CHECK-NEXT: ttg.local_load
    // CHECK-NEXT: }
    scf.for %i = %c0 to %n step %c1 : i32 {
      scf.for %j = %c0 to %n step %c1 : i32 {
        %y = ttg.local_load %a : !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<64x64xf16, #blocked>
      }
    }
    %b = ttg.local_alloc %x : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
    // CHECK: ttg.local_alloc
    // CHECK: ttng.fence_async_shared
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: scf.for
    // CHECK-NEXT: ttng.async_tma_copy_local_to_global
    // CHECK-NEXT: }
    scf.for %i = %c0 to %n step %c1 : i32 {
      ttng.async_tma_copy_local_to_global %d[%i, %i] %b : !tt.tensordesc<tensor<64x64xf16, #shared>>, !ttg.memdesc<64x64xf16, #shared, #smem>
    }
    tt.return
  }
}
// -----
// Dots end in order: a wait that leaves one leaves the last, and what those before have read it tells once.
// RUN: -allocate-shared -membar
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%x: tensor<64x64xf16, #blocked>, %z: tensor<64x64xf32, #mma>) {
    %a = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    %b = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    %c = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    %d = ttng.warp_group_dot %a, %b, %z {inputPrecision = 0 : i32, isAsync = true} : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> * !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf32, #mma>
    %e = ttng.warp_group_dot %c, %c, %z {inputPrecision = 0 : i32, isAsync = true} : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> * !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf32, #mma>
    %1 = ttng.warp_group_dot_wait %d {pendings = 1 : i32} : tensor<64x64xf32, #mma>
    // CHECK: ttng.warp_group_dot_wait {{.*}} {pendings = 1
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: ttg.local_store
    ttg.local_store %x, %a : tensor<64x64xf16, #blocked> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    %f = ttng.warp_group_dot %c, %c, %z {inputPrecision = 0 : i32, isAsync = true} : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> * !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf32, #mma>
    %2 = ttng.warp_group_dot_wait %e {pendings = 1 : i32} : tensor<64x64xf32, #mma>
    // CHECK: ttng.warp_group_dot_wait {{.*}} {pendings = 1
    // CHECK-NEXT: ttg.local_store
    ttg.local_store %x, %b : tensor<64x64xf16, #blocked> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: ttg.local_store
    ttg.local_store %x, %c : tensor<64x64xf16, #blocked> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    %3 = ttng.warp_group_dot_wait %f {pendings = 0 : i32} : tensor<64x64xf32, #mma>
    tt.return
  }
}
// -----
// A wait for what a copy reads stands before the barrier that something else wants anyway, and one barrier serves both; not so where another copy has begun behind that barrier.
// RUN: -allocate-shared -membar
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%d: !tt.tensordesc<tensor<64x64xf16, #shared>>, %x: tensor<64x64xf16, #blocked>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %a = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    %b = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    // CHECK: scf.for
    // CHECK: ttg.local_store
    // CHECK-NEXT: ttng.async_tma_store_wait {pendings = 0 : i32}
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: ttg.local_load
    // CHECK-NEXT: ttg.local_store
    // CHECK-NEXT: ttng.fence_async_shared
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: ttng.async_tma_copy_local_to_global
    // CHECK-NEXT: }
    scf.for %i = %c0 to %n step %c1 : i32 {
      ttg.local_store %x, %b : tensor<64x64xf16, #blocked> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
      %y = ttg.local_load %b : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf16, #blocked>
      ttng.async_tma_store_wait {pendings = 0 : i32}
      ttg.local_store %y, %a : tensor<64x64xf16, #blocked> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
      ttng.async_tma_copy_local_to_global %d[%i, %i] %a : !tt.tensordesc<tensor<64x64xf16, #shared>>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    }
    tt.return
  }
}
// -----
// A dot that waits for itself has those before it end, too: what they have read is told before it is written.
// RUN: -allocate-shared -membar
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%x: tensor<64x64xf16, #blocked>, %z: tensor<64x64xf32, #mma>) {
    %a = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    %b = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    %d = ttng.warp_group_dot %a, %a, %z {inputPrecision = 0 : i32, isAsync = true} : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> * !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf32, #mma>
    %e = ttng.warp_group_dot %b, %b, %z {inputPrecision = 0 : i32} : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> * !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf32, #mma>
    %1 = ttng.warp_group_dot_wait %d {pendings = 1 : i32} : tensor<64x64xf32, #mma>
    // CHECK: ttng.warp_group_dot_wait {{.*}} {pendings = 1
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: ttg.local_store
    ttg.local_store %x, %a : tensor<64x64xf16, #blocked> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    tt.return
  }
}
// -----
// No wait for a copy goes before a barrier behind which something takes long.
// RUN: -allocate-shared -membar
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%d: !tt.tensordesc<tensor<64x64xf16, #shared>>, %x: tensor<64x64xf16, #blocked>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %a = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    %b = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    // CHECK: scf.for
    // CHECK: math.exp2
    // CHECK-NEXT: ttng.async_tma_store_wait {pendings = 0 : i32}
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: ttg.local_store
    scf.for %i = %c0 to %n step %c1 : i32 {
      ttg.local_store %x, %b : tensor<64x64xf16, #blocked> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
      %y = ttg.local_load %b : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf16, #blocked>
      %e = math.exp2 %y : tensor<64x64xf16, #blocked>
      ttng.async_tma_store_wait {pendings = 0 : i32}
      ttg.local_store %e, %a : tensor<64x64xf16, #blocked> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
      ttng.async_tma_copy_local_to_global %d[%i, %i] %a : !tt.tensordesc<tensor<64x64xf16, #shared>>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    }
    tt.return
  }
}
// -----
// What each thread copies and reads itself wants no barrier. What has the memory behind it does.
// RUN: -membar
#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%p: tensor<512x!tt.ptr<f32>, #blocked>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %b = ttg.local_alloc {allocation.offset = 0 : i32} : () -> !ttg.memdesc<1x512xf32, #shared, #smem, mutable>
    %v = ttg.memdesc_index %b[%c0] : !ttg.memdesc<1x512xf32, #shared, #smem, mutable> -> !ttg.memdesc<512xf32, #shared, #smem, mutable>
    %t = ttg.async_copy_global_to_local %p, %v {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #blocked> -> !ttg.memdesc<512xf32, #shared, #smem, mutable>
    %g = ttg.async_commit_group
    // CHECK: scf.for
    // CHECK-NOT: ttg.barrier
    scf.for %i = %c0 to %n step %c1 : i32 {
      %w = ttg.async_wait {num = 0 : i32}
      %x = ttg.local_load %v : !ttg.memdesc<512xf32, #shared, #smem, mutable> -> tensor<512xf32, #blocked>
      %u = ttg.async_copy_global_to_local %p, %v {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #blocked> -> !ttg.memdesc<512xf32, #shared, #smem, mutable>
      %h = ttg.async_commit_group
      tt.store %p, %x {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #blocked>
    }
    // CHECK: tt.store
    // CHECK: ttg.async_wait
    // CHECK-NEXT: arith.constant
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: ttg.local_alloc
    %e = ttg.async_wait {num = 0 : i32}
    %z = arith.constant dense<0.0> : tensor<512xf32, #blocked>
    %c = ttg.local_alloc %z {allocation.offset = 0 : i32} : (tensor<512xf32, #blocked>) -> !ttg.memdesc<512xf32, #shared, #smem>
    tt.return
  }
}
// -----
// A copy that is read in another layout is read by other threads, and so is one of which several threads hold an element.
// RUN: -membar
#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#blocked1 = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%p: tensor<512x!tt.ptr<f32>, #blocked>, %q: tensor<128x!tt.ptr<f32>, #blocked>) {
    %b = ttg.local_alloc {allocation.offset = 0 : i32} : () -> !ttg.memdesc<512xf32, #shared, #smem, mutable>
    %c = ttg.local_alloc {allocation.offset = 2048 : i32} : () -> !ttg.memdesc<128xf32, #shared, #smem, mutable>
    %t = ttg.async_copy_global_to_local %p, %b {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #blocked> -> !ttg.memdesc<512xf32, #shared, #smem, mutable>
    %w = ttg.async_wait {num = 0 : i32}
    // CHECK: ttg.async_wait
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: ttg.local_load
    %x = ttg.local_load %b : !ttg.memdesc<512xf32, #shared, #smem, mutable> -> tensor<512xf32, #blocked1>
    %u = ttg.async_copy_global_to_local %q, %c {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<128x!tt.ptr<f32>, #blocked> -> !ttg.memdesc<128xf32, #shared, #smem, mutable>
    %v = ttg.async_wait {num = 0 : i32}
    // CHECK: ttg.async_wait
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: ttg.local_load
    %y = ttg.local_load %c : !ttg.memdesc<128xf32, #shared, #smem, mutable> -> tensor<128xf32, #blocked>
    tt.return
  }
}
