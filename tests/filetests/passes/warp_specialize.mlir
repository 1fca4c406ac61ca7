// A persistent loop: the producer's loops are the consumers' without products and stores. Both loads of an iteration share a slot.
// RUN: -warp-specialize -num-stages=3
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
    } {tt.warp_specialize}
    tt.return
  }
}
// CHECK: [[A:%.*]] = ttg.local_alloc : () -> !ttg.memdesc<3x128x64xf16
// CHECK-NEXT: [[B:%.*]] = ttg.local_alloc : () -> !ttg.memdesc<3x64x64xf16
// CHECK-NEXT: [[RING:%.*]] = ttg.ring_create [[A]], [[B]] {slots = 3 : i32}
// CHECK: ttg.warp_specialize
// CHECK: default
// CHECK-NEXT: scf.for
// CHECK: scf.for
// CHECK: ttg.memdesc_index [[A]]
// CHECK: ttg.memdesc_index [[B]]
// CHECK: ttg.ring_wait [[RING]][
// CHECK-NEXT: ttng.warp_group_dot
// CHECK-NEXT: ttg.ring_release [[RING]][
// CHECK: tt.descriptor_store
// CHECK: partition0
// CHECK: scf.for
// CHECK: scf.for
// CHECK: ttg.ring_acquire [[SAME:%.*]][
// CHECK: ttg.async_copy_block_to_local
// CHECK: ttg.async_copy_block_to_local
// CHECK-NEXT: ttg.ring_commit [[SAME]][
// CHECK-NOT: tt.descriptor_store
// CHECK: ttg.warp_return
// -----
// Two stores of an iteration: a warp of its own hands them to the copy engine, each from a buffer that the others fill.
// RUN: -warp-specialize -num-stages=3
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
      tt.descriptor_store %c[%c64, %row], %h : !tt.tensordesc<tensor<128x64xf16, #shared>>, tensor<128x64xf16, #mma>
    } {tt.warp_specialize}
    tt.return
  }
}
// CHECK: ttg.warp_specialize
// CHECK: default
// CHECK: scf.for
// CHECK: scf.for
// CHECK: scf.yield
// CHECK: ttg.ring_acquire [[FIRST:%.*]][
// CHECK-NEXT: [[TILE:%.*]] = ttg.memdesc_index
// CHECK-NEXT: ttg.local_store {{.*}}, [[TILE]] :
// CHECK-NEXT: ttg.ring_commit [[FIRST]][
// CHECK: ttg.ring_acquire
// CHECK: ttg.local_store
// CHECK-NEXT: ttg.ring_commit
// CHECK: partition0
// CHECK: scf.for
// CHECK: scf.for
// CHECK: ttg.ring_acquire
// CHECK: ttg.async_copy_block_to_local
// CHECK: ttg.async_copy_block_to_local
// CHECK-NEXT: ttg.ring_commit
// CHECK-NOT: ttng.async_tma_copy_local_to_global
// CHECK: ttg.warp_return
// CHECK: partition1
// CHECK: scf.for {{.*}} iter_args([[PHASE:%.*]] =
// CHECK-NOT: scf.for
// CHECK: ttg.ring_wait {{.*}}, [[PHASE]]
// CHECK-NEXT: [[FULL:%.*]] = ttg.memdesc_index
// CHECK-NEXT: ttng.async_tma_copy_local_to_global {{.*}} [[FULL]] :
// CHECK-NEXT: ttng.async_tma_store_wait {pendings = 0 : i32}
// CHECK-NEXT: ttg.ring_release
// CHECK: ttg.ring_wait
// CHECK: ttng.async_tma_copy_local_to_global
// CHECK-NEXT: ttng.async_tma_store_wait {pendings = 0 : i32}
// CHECK-NEXT: ttg.ring_release
// CHECK: scf.yield
// CHECK: ttg.warp_return
// -----
// Loads that go on from tile to tile are what `flatten` asks for.
// RUN: -warp-specialize -num-stages=3
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
    } {tt.flatten}
    tt.return
  }
}
// CHECK: ttg.warp_specialize
// CHECK: partition0
// -----
// Without another loop inside there is nothing to flatten.
// RUN: -warp-specialize -num-stages=3
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
      } {tt.flatten}
      %h = arith.truncf %acc : tensor<128x64xf32, #mma> to tensor<128x64xf16, #mma>
      tt.descriptor_store %c[%c0, %row], %h : !tt.tensordesc<tensor<128x64xf16, #shared>>, tensor<128x64xf16, #mma>
    }
    tt.return
  }
}
// CHECK-NOT: ttg.warp_specialize
// CHECK: tt.return
// -----
// What is loaded says where to load next: nothing can run ahead.
// RUN: -warp-specialize -num-stages=3
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [8, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [8, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#shared1 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @chase(%a: !tt.tensordesc<tensor<16x64xf16, #shared>>, %n: i32, %z: tensor<16x64xf16, #blocked>) -> tensor<16x64xf16, #blocked> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%at = %c0, %x = %z) -> (i32, tensor<16x64xf16, #blocked>)  : i32 {
      %l = tt.descriptor_load %a[%at, %c0] : !tt.tensordesc<tensor<16x64xf16, #shared>> -> tensor<16x64xf16, #blocked>
      %rows = "tt.reduce"(%l) <{axis = 1 : i32}> ({
      ^bb0(%p: f16, %q: f16):
        %m = arith.maxnumf %p, %q : f16
        tt.reduce.return %m : f16
      }) : (tensor<16x64xf16, #blocked>) -> tensor<16xf16, #ttg.slice<{dim = 1, parent = #blocked}>>
      %most = "tt.reduce"(%rows) <{axis = 0 : i32}> ({
      ^bb0(%p: f16, %q: f16):
        %m = arith.maxnumf %p, %q : f16
        tt.reduce.return %m : f16
      }) : (tensor<16xf16, #ttg.slice<{dim = 1, parent = #blocked}>>) -> f16
      %next = arith.fptosi %most : f16 to i32
      scf.yield %next, %l : i32, tensor<16x64xf16, #blocked>
    } {tt.warp_specialize}
    tt.return %r#1 : tensor<16x64xf16, #blocked>
  }
}
// CHECK-NOT: ttg.warp_specialize
// CHECK: tt.descriptor_load
// -----
// What nothing needs stands between two loops that ask: it is gone before they move.
// RUN: -warp-specialize -num-stages=3
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @sums(%a: !tt.tensordesc<tensor<64x64xf16, #shared>>, %p: !tt.ptr<f16>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.000000e+00> : tensor<64x64xf16, #blocked>
    %x = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<64x64xf16, #blocked>)  : i32 {
      %l = tt.descriptor_load %a[%i, %c0] : !tt.tensordesc<tensor<64x64xf16, #shared>> -> tensor<64x64xf16, #blocked>
      %s = arith.addf %sum, %l : tensor<64x64xf16, #blocked>
      scf.yield %s : tensor<64x64xf16, #blocked>
    } {tt.warp_specialize}
    %dead = tt.load %p : !tt.ptr<f16>
    %y = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %x) -> (tensor<64x64xf16, #blocked>)  : i32 {
      %s = arith.addf %sum, %sum : tensor<64x64xf16, #blocked>
      scf.yield %s : tensor<64x64xf16, #blocked>
    } {tt.warp_specialize}
    tt.descriptor_store %a[%c0, %c0], %y : !tt.tensordesc<tensor<64x64xf16, #shared>>, tensor<64x64xf16, #blocked>
    tt.return
  }
}
// CHECK: ttg.warp_specialize
// CHECK: scf.for
// CHECK: ttg.ring_wait
// CHECK-NOT: tt.load
// CHECK: scf.for
// CHECK: partition0
// CHECK: ttg.async_copy_block_to_local
// CHECK: ttg.warp_return
