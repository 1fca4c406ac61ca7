// Behind a loop, what does not need its result is done before the wait for its last dots: where the tile goes, and the wait until
// the last tile's store has read the buffer. The slot of the last products is released behind that wait all the same.
// RUN: -warp-specialize -lower-tma -async-dots -lower-rings -num-stages=3
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [8, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [8, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#shared1 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @matmul(%a: !tt.tensordesc<tensor<128x64xf16, #shared>>, %b: !tt.tensordesc<tensor<64x64xf16, #shared>>, %c: !tt.tensordesc<tensor<128x64xf16, #shared>>, %tiles: i32, %steps: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.000000e+00> : tensor<128x64xf32, #mma>
    scf.for %t = %c0 to %tiles step %c1  : i32 {
      %row = arith.muli %t, %c64 : i32
      %place = arith.divsi %t, %steps : i32
      %acc = scf.for %i = %c0 to %steps step %c1 iter_args(%x = %zero) -> (tensor<128x64xf32, #mma>)  : i32 {
        %k = arith.muli %i, %c64 : i32
        %la = tt.descriptor_load %a[%c0, %k] : !tt.tensordesc<tensor<128x64xf16, #shared>> -> tensor<128x64xf16, #blocked>
        %lb = tt.descriptor_load %b[%row, %k] : !tt.tensordesc<tensor<64x64xf16, #shared>> -> tensor<64x64xf16, #blocked>
        %sa = ttg.local_alloc %la : (tensor<128x64xf16, #blocked>) -> !ttg.memdesc<128x64xf16, #shared, #smem>
        %sb = ttg.local_alloc %lb : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
        %tb = ttg.memdesc_trans %sb {order = array<i32: 1, 0>} : !ttg.memdesc<64x64xf16, #shared, #smem> -> !ttg.memdesc<64x64xf16, #shared1, #smem>
        %d = ttng.warp_group_dot %sa, %tb, %x {inputPrecision = 0 : i32} : !ttg.memdesc<128x64xf16, #shared, #smem> * !ttg.memdesc<64x64xf16, #shared1, #smem> -> tensor<128x64xf32, #mma>
        scf.yield %d : tensor<128x64xf32, #mma>
      }
      %h = arith.truncf %acc : tensor<128x64xf32, #mma> to tensor<128x64xf16, #mma>
      tt.descriptor_reduce add, %c[%place, %row], %h : !tt.tensordesc<tensor<128x64xf16, #shared>>, tensor<128x64xf16, #mma>
    } {tt.warp_specialize}
    tt.return
  }
}
// CHECK: ttg.warp_specialize
// CHECK: scf.for [[T:%.*]] = %c0
// CHECK-NEXT: [[R:%.*]]:3 = scf.for
// CHECK: scf.yield
// CHECK: [[ROW:%.*]] = arith.muli [[T]]
// CHECK-NEXT: [[PLACE:%.*]] = arith.divsi [[T]]
// CHECK-NEXT: ttng.async_tma_store_wait {pendings = 0 : i32}
// CHECK-NEXT: ttg.barrier
// CHECK-NEXT: ttng.warp_group_dot_wait {{.*}}pendings = 0
// CHECK: ttng.arrive_barrier
// CHECK: ttg.local_store
// CHECK: ttng.async_tma_reduce {{.*}}[[PLACE]]
// -----
// Where the same warps load, the barrier that the next tile's copies need stands behind the wait anyhow.
// RUN: -software-pipeline -lower-tma -async-dots -num-stages=3
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [8, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [8, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#shared1 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @matmul(%a: !tt.tensordesc<tensor<128x64xf16, #shared>>, %b: !tt.tensordesc<tensor<64x64xf16, #shared>>, %c: !tt.tensordesc<tensor<128x64xf16, #shared>>, %tiles: i32, %steps: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.000000e+00> : tensor<128x64xf32, #mma>
    scf.for %t = %c0 to %tiles step %c1  : i32 {
      %row = arith.muli %t, %c64 : i32
      %acc = scf.for %i = %c0 to %steps step %c1 iter_args(%x = %zero) -> (tensor<128x64xf32, #mma>)  : i32 {
        %k = arith.muli %i, %c64 : i32
        %la = tt.descriptor_load %a[%c0, %k] : !tt.tensordesc<tensor<128x64xf16, #shared>> -> tensor<128x64xf16, #blocked>
        %lb = tt.descriptor_load %b[%row, %k] : !tt.tensordesc<tensor<64x64xf16, #shared>> -> tensor<64x64xf16, #blocked>
        %sa = ttg.local_alloc %la : (tensor<128x64xf16, #blocked>) -> !ttg.memdesc<128x64xf16, #shared, #smem>
        %sb = ttg.local_alloc %lb : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
        %tb = ttg.memdesc_trans %sb {order = array<i32: 1, 0>} : !ttg.memdesc<64x64xf16, #shared, #smem> -> !ttg.memdesc<64x64xf16, #shared1, #smem>
        %d = ttng.warp_group_dot %sa, %tb, %x {inputPrecision = 0 : i32} : !ttg.memdesc<128x64xf16, #shared, #smem> * !ttg.memdesc<64x64xf16, #shared1, #smem> -> tensor<128x64xf32, #mma>
        scf.yield %d : tensor<128x64xf32, #mma>
      }
      %h = arith.truncf %acc : tensor<128x64xf32, #mma> to tensor<128x64xf16, #mma>
      tt.descriptor_store %c[%c0, %row], %h : !tt.tensordesc<tensor<128x64xf16, #shared>>, tensor<128x64xf16, #mma>
    }
    tt.return
  }
}
// CHECK: scf.for
// CHECK: scf.for
// CHECK: scf.yield
// CHECK: ttng.async_tma_store_wait {pendings = 0 : i32}
// CHECK-NOT: ttg.barrier
// CHECK: ttng.warp_group_dot_wait {{.*}}pendings = 0
// CHECK: ttg.async_copy_block_to_local
// CHECK: ttg.local_store
