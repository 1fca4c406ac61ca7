// A loop of a persistent kernel that TMA feeds: rings and mbarriers outside of both loops; the first copies of a tile are
// issued before the outer loop and then behind the inner loop of the tile before, with the ring where it stood.
// RUN: -software-pipeline -num-stages=3
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @across(%a: !tt.tensordesc<tensor<64x64xf16, #shared>>, %b: !tt.tensordesc<tensor<64x64xf16, #shared>>, %c: !tt.tensordesc<tensor<64x64xf16, #shared>>, %tiles: i32, %steps: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    scf.for %tile = %c0 to %tiles step %c1 : i32 {
      %row = arith.muli %tile, %c64 : i32
      %r = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
        %column = arith.muli %k, %c64 : i32
        %x = tt.descriptor_load %a[%row, %column] : !tt.tensordesc<tensor<64x64xf16, #shared>> -> tensor<64x64xf16, #blocked>
        %s = ttg.local_alloc %x : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
        %y = tt.descriptor_load %b[%column, %c0] : !tt.tensordesc<tensor<64x64xf16, #shared>> -> tensor<64x64xf16, #blocked>
        %t = ttg.local_alloc %y : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
        %d = ttng.warp_group_dot %s, %t, %acc {inputPrecision = 0 : i32} : !ttg.memdesc<64x64xf16, #shared, #smem> * !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<64x64xf32, #mma>
        scf.yield %d : tensor<64x64xf32, #mma>
      }
      %h = arith.truncf %r : tensor<64x64xf32, #mma> to tensor<64x64xf16, #mma>
      tt.descriptor_store %c[%row, %c0], %h : !tt.tensordesc<tensor<64x64xf16, #shared>>, tensor<64x64xf16, #mma>
    }
    tt.return
  }
}
// CHECK: [[A:%.*]] = ttg.local_alloc : () -> !ttg.memdesc<3x64x64xf16
// CHECK: [[B:%.*]] = ttg.local_alloc : () -> !ttg.memdesc<3x64x64xf16
// CHECK: [[RING:%.*]] = ttg.ring_create [[A]], [[B]] {slots = 3 : i32}
// CHECK: ttg.ring_acquire [[RING]][{{.*}}] where
// CHECK: ttg.async_copy_block_to_local
// CHECK: ttg.async_copy_block_to_local
// CHECK: ttg.ring_commit [[RING]][
// CHECK: ttg.ring_acquire [[RING]][{{.*}}] where
// CHECK: ttg.async_copy_block_to_local
// CHECK: ttg.async_copy_block_to_local
// CHECK: ttg.ring_commit [[RING]][
// CHECK-NOT: ttg.async_copy_block_to_local
// CHECK: scf.for {{.*}} to %arg3
// CHECK-NOT: ttg.ring_create
// CHECK: scf.for {{.*}} to %arg4
// CHECK: ttg.ring_wait [[RING]][
// CHECK-NEXT: ttng.warp_group_dot
// CHECK: ttg.ring_acquire [[RING]][{{.*}}] where
// CHECK: ttg.async_copy_block_to_local
// CHECK: ttg.async_copy_block_to_local
// CHECK: ttg.ring_commit [[RING]][
// CHECK: scf.yield
// CHECK: ttg.ring_acquire [[RING]][{{.*}}] where
// CHECK: ttg.async_copy_block_to_local
// CHECK: ttg.async_copy_block_to_local
// CHECK: ttg.ring_commit [[RING]][
// CHECK: ttg.ring_acquire [[RING]][{{.*}}] where
// CHECK: ttg.async_copy_block_to_local
// CHECK: ttg.async_copy_block_to_local
// CHECK: ttg.ring_commit [[RING]][
// CHECK-NOT: ttg.async_copy_block_to_local
// CHECK: tt.descriptor_store
// CHECK: scf.yield
// CHECK: ttg.ring_dealloc [[RING]]
// CHECK: tt.return
// -----
// The row is what an iteration of the outer loop has loaded: the next one's is not known, so each loop fills its own ring.
// RUN: -software-pipeline -num-stages=2
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @own(%a: !tt.tensordesc<tensor<64x64xf16, #shared>>, %c: !tt.tensordesc<tensor<64x64xf16, #shared>>, %rows: !tt.ptr<i32>, %tiles: i32, %steps: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    scf.for %tile = %c0 to %tiles step %c1 : i32 {
      %p = tt.addptr %rows, %tile : !tt.ptr<i32>, i32
      %row = tt.load %p : !tt.ptr<i32>
      %r = scf.for %k = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
        %column = arith.muli %k, %c64 : i32
        %x = tt.descriptor_load %a[%row, %column] : !tt.tensordesc<tensor<64x64xf16, #shared>> -> tensor<64x64xf16, #blocked>
        %s = ttg.local_alloc %x : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
        %d = ttng.warp_group_dot %s, %s, %acc {inputPrecision = 0 : i32} : !ttg.memdesc<64x64xf16, #shared, #smem> * !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<64x64xf32, #mma>
        scf.yield %d : tensor<64x64xf32, #mma>
      }
      %h = arith.truncf %r : tensor<64x64xf32, #mma> to tensor<64x64xf16, #mma>
      tt.descriptor_store %c[%row, %c0], %h : !tt.tensordesc<tensor<64x64xf16, #shared>>, tensor<64x64xf16, #mma>
    }
    tt.return
  }
}
// CHECK-NOT: ttg.ring_create
// CHECK: scf.for {{.*}} to %arg3
// CHECK: ttg.ring_create
// CHECK: ttg.ring_acquire
// CHECK: scf.for {{.*}} to %arg4
// CHECK: ttg.ring_wait
// CHECK: ttg.ring_acquire
// CHECK: scf.yield
// CHECK: ttg.ring_dealloc
// CHECK: tt.descriptor_store
