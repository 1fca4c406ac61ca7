// Pointers and a mask that are used behind a loop alone are made there; those that the loop uses stay, and so does what is loaded.
// RUN: -sink-pointers
#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @sink(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #blocked>
    %ps = tt.splat %p : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>, #blocked>
    %in = tt.addptr %ps, %r : tensor<512x!tt.ptr<f32>, #blocked>, tensor<512xi32, #blocked>
    %qs = tt.splat %q : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>, #blocked>
    %out = tt.addptr %qs, %r : tensor<512x!tt.ptr<f32>, #blocked>, tensor<512xi32, #blocked>
    %bound = tt.splat %n : i32 -> tensor<512xi32, #blocked>
    %mask = arith.cmpi slt, %r, %bound : tensor<512xi32, #blocked>
    %first = tt.load %in {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #blocked>
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%x = %first) -> (tensor<512xf32, #blocked>) : i32 {
      %y = tt.load %in {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #blocked>
      %z = arith.addf %x, %y : tensor<512xf32, #blocked>
      scf.yield %z : tensor<512xf32, #blocked>
    }
    tt.store %out, %sum, %mask {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #blocked>
    tt.return
  }
}
// CHECK-LABEL: @sink
// CHECK: tt.make_range
// CHECK: tt.splat %arg0
// CHECK: tt.addptr
// CHECK: tt.load
// CHECK-NEXT: scf.for
// CHECK-NOT: tt.addptr
// CHECK: scf.yield
// CHECK: arith.cmpi slt
// CHECK: tt.splat %arg1
// CHECK: tt.addptr
// CHECK: tt.store
