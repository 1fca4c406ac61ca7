// A result may be added to, carried and waited for. A wait that leaves one product leaves that which was issued last.
// RUN: -user-dots
// CHECK: tt.func
#smem = #ttg.shared_memory
tt.func public @carried(%a: !ttg.memdesc<64x32xf16, #smem, mutable>, %b: !ttg.memdesc<32x64xf16, #smem, mutable>, %acc: tensor<64x64xf32>, %n: i32) -> tensor<64x64xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%c = %acc) -> (tensor<64x64xf32>) : i32 {
    %d = ttng.warp_group_dot %a, %b, %c {isAsync = true, tle.wgmma} : !ttg.memdesc<64x32xf16, #smem, mutable> * !ttg.memdesc<32x64xf16, #smem, mutable> -> tensor<64x64xf32>
    %w = ttng.warp_group_dot_wait %d {pendings = 1 : i32} : tensor<64x64xf32>
    scf.yield %w : tensor<64x64xf32>
  }
  %e = ttng.warp_group_dot %a, %b, %acc {isAsync = true, tle.wgmma} : !ttg.memdesc<64x32xf16, #smem, mutable> * !ttg.memdesc<32x64xf16, #smem, mutable> -> tensor<64x64xf32>
  %v = ttng.warp_group_dot_wait %r {pendings = 1 : i32} : tensor<64x64xf32>
  %s = arith.addf %v, %v : tensor<64x64xf32>
  tt.return %s : tensor<64x64xf32>
}

// -----

// RUN: -user-dots
#smem = #ttg.shared_memory
tt.func public @the_last(%a: !ttg.memdesc<64x32xf16, #smem, mutable>, %b: !ttg.memdesc<32x64xf16, #smem, mutable>, %acc: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %d = ttng.warp_group_dot %a, %b, %acc {isAsync = true, tle.wgmma} : !ttg.memdesc<64x32xf16, #smem, mutable> * !ttg.memdesc<32x64xf16, #smem, mutable> -> tensor<64x64xf32>
  %w = ttng.warp_group_dot_wait %d {pendings = 1 : i32} : tensor<64x64xf32>
  // ERROR: the result of a tle.gpu.wgmma is used here, where it may be under way
  %s = arith.addf %w, %w : tensor<64x64xf32>
  tt.return %s : tensor<64x64xf32>
}

// -----

// RUN: -user-dots
#smem = #ttg.shared_memory
tt.func public @registers(%x: tensor<64x32xf16>, %b: !ttg.memdesc<32x64xf16, #smem, mutable>, %acc: tensor<64x64xf32>) {
  // ERROR: `a` in registers that no tle.gpu.wgmma_wait ends
  %d = ttng.warp_group_dot %x, %b, %acc {isAsync = true, tle.wgmma} : tensor<64x32xf16> * !ttg.memdesc<32x64xf16, #smem, mutable> -> tensor<64x64xf32>
  tt.return
}
