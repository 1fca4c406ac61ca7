// What is computed element by element and stored under the load's mask, or less, needs nothing where the mask does not hold.
// RUN: -unseen-lanes
#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @stored(%ps: tensor<512x!tt.ptr<f32>, #blocked>, %mask: tensor<512xi1, #blocked>, %some: tensor<512xi1, #blocked>) {
    %zero = arith.constant dense<0.000000e+00> : tensor<512xf32, #blocked>
    %x = tt.load %ps, %mask {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #blocked>
    %y = tt.load %ps, %mask, %zero {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #blocked>
    %e = math.exp %y : tensor<512xf32, #blocked>
    %z = arith.addf %x, %e : tensor<512xf32, #blocked>
    tt.store %ps, %z, %mask {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #blocked>
    %less = arith.andi %some, %mask : tensor<512xi1, #blocked>
    tt.store %ps, %x, %less {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #blocked>
    tt.return
  }
}
// CHECK-LABEL: @stored
// CHECK: tt.load {{.*}}tt.unseen
// CHECK: tt.load {{.*}}tt.unseen

// -----
// Other masks, sums of elements, other threads, addresses and functions with branches see them; what is used behind a barrier alone is not to begin at once;
// a load without a mask has none.
// RUN: -unseen-lanes
#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#other = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @seen(%p: !tt.ptr<f32>, %ps: tensor<512x!tt.ptr<f32>, #blocked>, %is: tensor<512x!tt.ptr<i32>, #blocked>, %os: tensor<512x!tt.ptr<f32>, #other>, %mask: tensor<512xi1, #blocked>, %some: tensor<512xi1, #blocked>, %omask: tensor<512xi1, #other>) {
    %a = tt.load %ps, %mask {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #blocked>
    tt.store %ps, %a, %some {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #blocked>
    %b = tt.load %ps, %mask {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #blocked>
    %sum = "tt.reduce"(%b) <{axis = 0 : i32}> ({
    ^bb0(%l: f32, %r: f32):
      %s = arith.addf %l, %r : f32
      tt.reduce.return %s : f32
    }) : (tensor<512xf32, #blocked>) -> f32
    tt.store %p, %sum : !tt.ptr<f32>
    %c = tt.load %ps, %mask {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #blocked>
    %moved = ttg.convert_layout %c : tensor<512xf32, #blocked> -> tensor<512xf32, #other>
    tt.store %os, %moved, %omask {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #other>
    %i = tt.load %is, %mask {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<i32>, #blocked>
    %at = tt.addptr %ps, %i : tensor<512x!tt.ptr<f32>, #blocked>, tensor<512xi32, #blocked>
    %d = tt.load %ps, %mask {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #blocked>
    %sine = math.sin %d : tensor<512xf32, #blocked>
    tt.store %at, %sine, %mask {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #blocked>
    %w = tt.load %ps, %mask {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #blocked>
    gpu.barrier
    tt.store %ps, %w, %mask {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #blocked>
    %e = tt.load %ps {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #blocked>
    tt.store %ps, %e, %mask {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #blocked>
    tt.return
  }
}
// CHECK-LABEL: @seen
// CHECK-NOT: tt.unseen
