// Two readers that want the same tile laid out differently: one reads the ring, the other a buffer filled from it.
// RUN: -software-pipeline -num-stages=2
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 2, maxPhase = 4, order = [1, 0]}>
#shared1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%p: tensor<32x32x!tt.ptr<f16>, #blocked>, %n: i32, %z: tensor<32x32xf32, #mma>) -> tensor<32x32xf32, #mma> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %z) -> (tensor<32x32xf32, #mma>) : i32 {
      %x = tt.load %p {tt.vec = 8 : i32, tt.vec_axis = 1 : i32} : tensor<32x32x!tt.ptr<f16>, #blocked>
      %s = ttg.local_alloc %x : (tensor<32x32xf16, #blocked>) -> !ttg.memdesc<32x32xf16, #shared, #smem>
      %t = ttg.local_alloc %x : (tensor<32x32xf16, #blocked>) -> !ttg.memdesc<32x32xf16, #shared1, #smem>
      %a = ttg.local_load %s : !ttg.memdesc<32x32xf16, #shared, #smem> -> tensor<32x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
      %b = ttg.local_load %t : !ttg.memdesc<32x32xf16, #shared1, #smem> -> tensor<32x32xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>>
      %d = tt.dot %a, %b, %acc : tensor<32x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * tensor<32x32xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>> -> tensor<32x32xf32, #mma>
      scf.yield %d : tensor<32x32xf32, #mma>
    }
    tt.return %r : tensor<32x32xf32, #mma>
  }
}
// CHECK: [[RING:%.*]] = ttg.local_alloc : () -> !ttg.memdesc<2x32x32xf16
// CHECK: scf.for
// CHECK: ttg.async_copy_global_to_local
// CHECK: [[X:%.*]] = ttg.local_load {{.*}}-> tensor<32x32xf16, #blocked>
// CHECK-NEXT: ttg.local_alloc [[X]] : (tensor<32x32xf16, #blocked>)
// CHECK: tt.dot
// -----
// What each thread has copied itself it reads itself: the copy of the next iteration stands behind the read, into the one slot, and what is masked off is chosen.
// RUN: -software-pipeline
#blocked = #ttg.blocked<{sizePerThread = [8], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-NOT: ttg.remarks
// CHECK: tt.func public @rows
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @rows(%p: tensor<1024x!tt.ptr<f16>, #blocked>, %q: tensor<1024x!tt.ptr<f16>, #blocked>, %m: tensor<1024xi1, #blocked>, %first: i32, %n: i32, %step: i32) {
    %low = arith.constant dense<0xFC00> : tensor<1024xf16, #blocked>
    // CHECK: [[RING:%.*]] = ttg.local_alloc : () -> !ttg.memdesc<1x1024xf16
    // CHECK: ttg.async_copy_global_to_local
    // CHECK: scf.for
    // CHECK: ttg.ring_wait
    // CHECK-NOT: ttg.async_copy
    // CHECK: [[X:%.*]] = ttg.local_load
    // CHECK-NEXT: [[Y:%.*]] = arith.select %arg2, [[X]]
    // CHECK: ttg.async_copy_global_to_local
    // CHECK-NEXT: ttg.ring_commit
    // CHECK: math.exp2 [[Y]]
    scf.for %i = %first to %n step %step : i32 {
      %at = tt.splat %i : i32 -> tensor<1024xi32, #blocked>
      %x.p = tt.addptr %p, %at : tensor<1024x!tt.ptr<f16>, #blocked>, tensor<1024xi32, #blocked>
      %x = tt.load %x.p, %m, %low {tt.vec = 8 : i32, tt.vec_axis = 0 : i32} : tensor<1024x!tt.ptr<f16>, #blocked>
      %e = math.exp2 %x : tensor<1024xf16, #blocked>
      %y.p = tt.addptr %q, %at : tensor<1024x!tt.ptr<f16>, #blocked>, tensor<1024xi32, #blocked>
      tt.store %y.p, %e, %m {tt.vec = 8 : i32, tt.vec_axis = 0 : i32} : tensor<1024x!tt.ptr<f16>, #blocked>
    } {tt.num_stages = 2 : i32}
    tt.return
  }
}
// -----
// Threads that hold the same element wait for the one that copies it.
// RUN: -software-pipeline
#blocked = #ttg.blocked<{sizePerThread = [8], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK: ttg.local_alloc : () -> !ttg.memdesc<2x64xf16
// CHECK: scf.for
// CHECK: ttg.ring_wait
// CHECK: ttg.async_copy_global_to_local {{.*}}ttg.free_slot
// CHECK: ttg.local_load
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @rows(%p: tensor<64x!tt.ptr<f16>, #blocked>, %q: tensor<64x!tt.ptr<f16>, #blocked>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %i = %c0 to %n step %c1 : i32 {
      %at = tt.splat %i : i32 -> tensor<64xi32, #blocked>
      %x.p = tt.addptr %p, %at : tensor<64x!tt.ptr<f16>, #blocked>, tensor<64xi32, #blocked>
      %x = tt.load %x.p {tt.vec = 8 : i32, tt.vec_axis = 0 : i32} : tensor<64x!tt.ptr<f16>, #blocked>
      tt.store %q, %x {tt.vec = 8 : i32, tt.vec_axis = 0 : i32} : tensor<64x!tt.ptr<f16>, #blocked>
    } {tt.num_stages = 2 : i32}
    tt.return
  }
}
// -----
// Programs in a row: a load runs ahead of what programs before store, to its own memory too, but not of what its own program has stored, nor does one that all programs make.
// RUN: -software-pipeline
#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-NOT: ttg.remarks
// CHECK: tt.func public @programs
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @programs(%p: tensor<512x!tt.ptr<f32>, #blocked>, %w: tensor<512x!tt.ptr<f32>, #blocked>, %first: i32, %n: i32, %step: i32) {
    // CHECK: ttg.local_alloc : () -> !ttg.memdesc<2x512xf32
    // CHECK-NOT: ttg.local_alloc
    // CHECK: scf.for
    // CHECK: ttg.ring_wait {{.*}}later = 1
    // CHECK: ttg.local_load
    // CHECK: ttg.async_copy_global_to_local
    // CHECK: tt.load %arg1
    // CHECK: tt.store
    // CHECK: tt.load
    scf.for %i = %first to %n step %step : i32 {
      %at = tt.splat %i : i32 -> tensor<512xi32, #blocked>
      %x.p = tt.addptr %p, %at : tensor<512x!tt.ptr<f32>, #blocked>, tensor<512xi32, #blocked>
      %x = tt.load %x.p {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #blocked>
      %v = tt.load %w {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #blocked>
      %y = arith.addf %x, %v : tensor<512xf32, #blocked>
      tt.store %x.p, %y {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #blocked>
      %again = tt.load %x.p {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #blocked>
      %z = arith.addf %again, %v : tensor<512xf32, #blocked>
      tt.store %x.p, %z {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #blocked>
    } {ttg.programs}
    tt.return
  }
}
// -----
// Programs that multiply have inner loops that run ahead, or none; a number of stages of the launch that asks for nothing is followed, too.
// RUN: -software-pipeline -num-stages=1
#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-NOT: async_copy
// CHECK: tt.return
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @programs(%p: tensor<512x!tt.ptr<f32>, #blocked>, %first: i32, %n: i32, %step: i32) {
    scf.for %i = %first to %n step %step : i32 {
      %at = tt.splat %i : i32 -> tensor<512xi32, #blocked>
      %x.p = tt.addptr %p, %at : tensor<512x!tt.ptr<f32>, #blocked>, tensor<512xi32, #blocked>
      %x = tt.load %x.p {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #blocked>
      tt.store %x.p, %x {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #blocked>
    } {ttg.programs}
    tt.return
  }
}
// -----
// Rows that leave no room for any slot are loaded where they stand; with less the loop has as many stages as there is room for, and says so.
// RUN: -software-pipeline
#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [16], order = [0]}>
// CHECK: ttg.remarks = ["{{.*}}num_stages=4 of a loop is 2: there is no room for more in shared memory"]
// CHECK: tt.func public @wide
// CHECK: ttg.local_alloc : () -> !ttg.memdesc<1x32768xf32
// CHECK: tt.func public @wider
// CHECK-NOT: async_copy
// CHECK: tt.return
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 16 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @wide(%p: tensor<32768x!tt.ptr<f32>, #blocked>, %q: tensor<32768x!tt.ptr<f32>, #blocked>, %first: i32, %n: i32, %step: i32) {
    scf.for %i = %first to %n step %step : i32 {
      %at = tt.splat %i : i32 -> tensor<32768xi32, #blocked>
      %x.p = tt.addptr %p, %at : tensor<32768x!tt.ptr<f32>, #blocked>, tensor<32768xi32, #blocked>
      %x = tt.load %x.p {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<32768x!tt.ptr<f32>, #blocked>
      tt.store %q, %x {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<32768x!tt.ptr<f32>, #blocked>
    } {tt.num_stages = 4 : i32}
    tt.return
  }
  tt.func public @wider(%p: tensor<65536x!tt.ptr<f32>, #blocked>, %first: i32, %n: i32, %step: i32) {
    scf.for %i = %first to %n step %step : i32 {
      %at = tt.splat %i : i32 -> tensor<65536xi32, #blocked>
      %x.p = tt.addptr %p, %at : tensor<65536x!tt.ptr<f32>, #blocked>, tensor<65536xi32, #blocked>
      %x = tt.load %x.p {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<65536x!tt.ptr<f32>, #blocked>
      tt.store %x.p, %x {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<65536x!tt.ptr<f32>, #blocked>
    } {ttg.programs}
    tt.return
  }
}
// -----
// A number of stages that can't be followed: why, for each load. Nothing is said of a loop without loads, or of stages that ask for nothing.
// RUN: -software-pipeline
#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK: ttg.remarks = ["{{.*}}num_stages=3 of the loop does not make this load run ahead: it loads one value, not a block", "{{.*}}num_stages=3 of the loop does not make this load run ahead: copies are 4 bytes at least, and no 4 consecutive and aligned bytes are known", "{{.*}}num_stages=3 of the loop does not make this load run ahead: the loop may write what it loads"]
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @left(%p: tensor<512x!tt.ptr<f16>, #blocked>, %q: tensor<512x!tt.ptr<f16>, #blocked>, %s: !tt.ptr<f16>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %i = %c0 to %n step %c1 : i32 {
      %s.p = tt.addptr %s, %i : !tt.ptr<f16>, i32
      %one = tt.load %s.p : !tt.ptr<f16>
      %all = tt.splat %one : f16 -> tensor<512xf16, #blocked>
      %narrow = tt.load %q {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f16>, #blocked>
      %x = tt.load %p {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f16>, #blocked>
      %y = arith.addf %x, %all : tensor<512xf16, #blocked>
      %z = arith.addf %y, %narrow : tensor<512xf16, #blocked>
      tt.store %p, %z {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f16>, #blocked>
    } {tt.num_stages = 3 : i32}
    scf.for %i = %c0 to %n step %c1 : i32 {
      %x = tt.load %p {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f16>, #blocked>
      tt.store %p, %x {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f16>, #blocked>
    } {tt.num_stages = 1 : i32}
    tt.return
  }
}
// -----
// Where masked-off elements are no zeros, and the author asked for stages, the buffer of an operand is filled from the slot, behind the choice.
// RUN: -software-pipeline
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 2, maxPhase = 4, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%p: tensor<32x32x!tt.ptr<f16>, #blocked>, %m: tensor<32x32xi1, #blocked>, %n: i32, %b: tensor<32x32xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>>, %z: tensor<32x32xf32, #mma>) -> tensor<32x32xf32, #mma> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %ones = arith.constant dense<1.0> : tensor<32x32xf16, #blocked>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %z) -> (tensor<32x32xf32, #mma>) : i32 {
      %x = tt.load %p, %m, %ones {tt.vec = 8 : i32, tt.vec_axis = 1 : i32} : tensor<32x32x!tt.ptr<f16>, #blocked>
      %s = ttg.local_alloc %x : (tensor<32x32xf16, #blocked>) -> !ttg.memdesc<32x32xf16, #shared, #smem>
      %a = ttg.local_load %s : !ttg.memdesc<32x32xf16, #shared, #smem> -> tensor<32x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
      %d = tt.dot %a, %b, %acc : tensor<32x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * tensor<32x32xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>> -> tensor<32x32xf32, #mma>
      scf.yield %d : tensor<32x32xf32, #mma>
    } {tt.num_stages = 2 : i32}
    tt.return %r : tensor<32x32xf32, #mma>
  }
}
// CHECK: ttg.local_alloc : () -> !ttg.memdesc<2x32x32xf16, #shared,
// CHECK: scf.for
// CHECK: ttg.async_copy_global_to_local
// CHECK: [[X:%.*]] = ttg.local_load {{.*}}-> tensor<32x32xf16, #blocked>
// CHECK-NEXT: [[Y:%.*]] = arith.select %arg1, [[X]]
// CHECK-NEXT: ttg.local_alloc [[Y]] : (tensor<32x32xf16, #blocked>)
// CHECK: tt.dot
// -----
// Where nobody asked for stages such a load stays.
// RUN: -software-pipeline -num-stages=2
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 2, maxPhase = 4, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%p: tensor<32x32x!tt.ptr<f16>, #blocked>, %m: tensor<32x32xi1, #blocked>, %n: i32, %b: tensor<32x32xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>>, %z: tensor<32x32xf32, #mma>) -> tensor<32x32xf32, #mma> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %ones = arith.constant dense<1.0> : tensor<32x32xf16, #blocked>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %z) -> (tensor<32x32xf32, #mma>) : i32 {
      %x = tt.load %p, %m, %ones {tt.vec = 8 : i32, tt.vec_axis = 1 : i32} : tensor<32x32x!tt.ptr<f16>, #blocked>
      %s = ttg.local_alloc %x : (tensor<32x32xf16, #blocked>) -> !ttg.memdesc<32x32xf16, #shared, #smem>
      %a = ttg.local_load %s : !ttg.memdesc<32x32xf16, #shared, #smem> -> tensor<32x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
      %d = tt.dot %a, %b, %acc : tensor<32x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * tensor<32x32xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>> -> tensor<32x32xf32, #mma>
      scf.yield %d : tensor<32x32xf32, #mma>
    }
    tt.return %r : tensor<32x32xf32, #mma>
  }
}
// CHECK-NOT: ttg.async_copy
// CHECK: tt.dot
