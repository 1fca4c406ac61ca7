// The product stays under way into the next iteration: its slot is released there, behind the wait, and the last behind the loop.
// RUN: -warp-specialize -async-dots -release-slots -num-stages=3
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
// CHECK: ttg.warp_specialize
// CHECK: scf.for
// CHECK: scf.for [[I:%.*]] = [[LO:%.*]] to
// CHECK: ttng.warp_group_dot {{.*}}isAsync
// CHECK-NEXT: ttng.warp_group_dot_wait {{.*}}pendings = 1
// CHECK-NEXT: [[LATER:%.*]] = arith.cmpi ne, [[I]], [[LO]]
// CHECK: ttng.arrive_barrier {{.*}}, 1, [[LATER]] {perWarp = true}
// CHECK: scf.yield
// CHECK: ttng.warp_group_dot_wait {{.*}}pendings = 0
// CHECK: ttng.arrive_barrier
// CHECK: tt.descriptor_store
