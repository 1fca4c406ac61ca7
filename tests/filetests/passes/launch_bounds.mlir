// A load in a loop that is several instructions of a thread: one CTA at least, so that the assembler keeps them apart.
// RUN: -launch-bounds
#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK: "ttg.min-ctas-per-sm" = 1 : i32
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%p: tensor<1024x!tt.ptr<f32>, #blocked>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %i = %c0 to %n step %c1 : i32 {
      %x = tt.load %p {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<1024x!tt.ptr<f32>, #blocked>
    }
    tt.return
  }
}
// -----
// One instruction has nothing to be kept apart from, and outside of a loop nothing waits.
// RUN: -launch-bounds
#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-NOT: min-ctas-per-sm
// CHECK: tt.func
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%p: tensor<512x!tt.ptr<f32>, #blocked>, %q: tensor<1024x!tt.ptr<f32>, #blocked>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %y = tt.load %q {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<1024x!tt.ptr<f32>, #blocked>
    scf.for %i = %c0 to %n step %c1 : i32 {
      %x = tt.load %p {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #blocked>
    }
    tt.return
  }
}
// -----
// Nor where the loop scans: CTAs hide what shuffles take.
// RUN: -launch-bounds
#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-NOT: min-ctas-per-sm
// CHECK: tt.func
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%p: tensor<1024x!tt.ptr<f32>, #blocked>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %i = %c0 to %n step %c1 : i32 {
      %x = tt.load %p {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<1024x!tt.ptr<f32>, #blocked>
      %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = false}> ({
      ^bb0(%a: f32, %b: f32):
        %sum = arith.addf %a, %b : f32
        tt.scan.return %sum : f32
      }) : (tensor<1024xf32, #blocked>) -> tensor<1024xf32, #blocked>
      tt.store %p, %y {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<1024x!tt.ptr<f32>, #blocked>
    }
    tt.return
  }
}
// -----
// Whoever bounds the registers says all there is to say.
// RUN: -launch-bounds
#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-NOT: min-ctas-per-sm
// CHECK: tt.func
module attributes {ttg.maxnreg = 128 : i32, "ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%p: tensor<1024x!tt.ptr<f32>, #blocked>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %i = %c0 to %n step %c1 : i32 {
      %x = tt.load %p {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<1024x!tt.ptr<f32>, #blocked>
    }
    tt.return
  }
}
// -----
// With two CTAs of so many threads each would have 32 registers, and half of them go to one tensor.
// RUN: -launch-bounds
#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [32], order = [0]}>
// CHECK: "ttg.min-ctas-per-sm" = 1 : i32
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 32 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%p: tensor<16384x!tt.ptr<f32>, #blocked>) {
    %x = tt.load %p {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<16384x!tt.ptr<f32>, #blocked>
    tt.return
  }
}
// -----
// A smaller tensor leaves room for all else.
// RUN: -launch-bounds
#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [32], order = [0]}>
// CHECK-NOT: min-ctas-per-sm
// CHECK: tt.func
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 32 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%x: tensor<8192xf32, #blocked>) {
    %y = arith.addf %x, %x : tensor<8192xf32, #blocked>
    tt.return
  }
}
// -----
// What goes into a reduction, and is not used behind it, takes no registers meanwhile.
// RUN: -launch-bounds
#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [32], order = [0]}>
// CHECK-NOT: min-ctas-per-sm
// CHECK: tt.func
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 32 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%p: tensor<16384x!tt.ptr<f32>, #blocked>, %out: !tt.ptr<f32>) {
    %x = tt.load %p {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<16384x!tt.ptr<f32>, #blocked>
    %sum = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) : (tensor<16384xf32, #blocked>) -> f32
    tt.store %out, %sum : !tt.ptr<f32>
    tt.return
  }
}
// -----
// What is used behind the reduction stays.
// RUN: -launch-bounds
#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [32], order = [0]}>
// CHECK: "ttg.min-ctas-per-sm" = 1 : i32
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 32 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%p: tensor<16384x!tt.ptr<f32>, #blocked>, %out: tensor<16384x!tt.ptr<f32>, #blocked>) {
    %x = tt.load %p {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<16384x!tt.ptr<f32>, #blocked>
    %sum = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) : (tensor<16384xf32, #blocked>) -> f32
    %sums = tt.splat %sum : f32 -> tensor<16384xf32, #blocked>
    %y = arith.subf %x, %sums : tensor<16384xf32, #blocked>
    tt.store %out, %y {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<16384x!tt.ptr<f32>, #blocked>
    tt.return
  }
}
