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
// -----
// Without a loop, four loads of a thread, so that the assembler begins them together.
// RUN: -launch-bounds
#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK: "ttg.min-ctas-per-sm" = 1 : i32
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%p: tensor<1024x!tt.ptr<f32>, #blocked>, %q: tensor<1024x!tt.ptr<f32>, #blocked>) {
    %x = tt.load %p {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<1024x!tt.ptr<f32>, #blocked>
    %y = tt.load %q {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<1024x!tt.ptr<f32>, #blocked>
    tt.return
  }
}
// -----
// Two are begun together anyhow.
// RUN: -launch-bounds
#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-NOT: min-ctas-per-sm
// CHECK: tt.func
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%p: tensor<1024x!tt.ptr<f32>, #blocked>) {
    %x = tt.load %p {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<1024x!tt.ptr<f32>, #blocked>
    tt.return
  }
}
// -----
// Warps that reduce wait for each other, which more CTAs hide.
// RUN: -launch-bounds
#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-NOT: min-ctas-per-sm
// CHECK: tt.func
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%p: tensor<2048x!tt.ptr<f32>, #blocked>, %out: !tt.ptr<f32>) {
    %x = tt.load %p {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<2048x!tt.ptr<f32>, #blocked>
    %sum = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) : (tensor<2048xf32, #blocked>) -> f32
    tt.store %out, %sum : !tt.ptr<f32>
    tt.return
  }
}
// -----
// A narrow store is many instructions, which more CTAs hide.
// RUN: -launch-bounds
#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-NOT: min-ctas-per-sm
// CHECK: tt.func
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%p: tensor<2048x!tt.ptr<f32>, #blocked>, %out: tensor<2048x!tt.ptr<f32>, #blocked>) {
    %x = tt.load %p {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<2048x!tt.ptr<f32>, #blocked>
    tt.store %out, %x {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<2048x!tt.ptr<f32>, #blocked>
    tt.return
  }
}
// -----
// So is long arithmetic.
// RUN: -launch-bounds
#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-NOT: min-ctas-per-sm
// CHECK: tt.func
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%p: tensor<2048x!tt.ptr<f32>, #blocked>) {
    %x = tt.load %p {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<2048x!tt.ptr<f32>, #blocked>
    %a0 = arith.mulf %x, %x : tensor<2048xf32, #blocked>
    %a1 = arith.mulf %a0, %x : tensor<2048xf32, #blocked>
    %a2 = arith.mulf %a1, %x : tensor<2048xf32, #blocked>
    %a3 = arith.mulf %a2, %x : tensor<2048xf32, #blocked>
    %a4 = arith.mulf %a3, %x : tensor<2048xf32, #blocked>
    %a5 = arith.mulf %a4, %x : tensor<2048xf32, #blocked>
    %a6 = arith.mulf %a5, %x : tensor<2048xf32, #blocked>
    %a7 = arith.mulf %a6, %x : tensor<2048xf32, #blocked>
    %a8 = arith.mulf %a7, %x : tensor<2048xf32, #blocked>
    %a9 = arith.mulf %a8, %x : tensor<2048xf32, #blocked>
    %a10 = arith.mulf %a9, %x : tensor<2048xf32, #blocked>
    %a11 = arith.mulf %a10, %x : tensor<2048xf32, #blocked>
    %a12 = arith.mulf %a11, %x : tensor<2048xf32, #blocked>
    %a13 = arith.mulf %a12, %x : tensor<2048xf32, #blocked>
    %a14 = arith.mulf %a13, %x : tensor<2048xf32, #blocked>
    %a15 = arith.mulf %a14, %x : tensor<2048xf32, #blocked>
    %a16 = arith.mulf %a15, %x : tensor<2048xf32, #blocked>
    %a17 = arith.mulf %a16, %x : tensor<2048xf32, #blocked>
    %a18 = arith.mulf %a17, %x : tensor<2048xf32, #blocked>
    %a19 = arith.mulf %a18, %x : tensor<2048xf32, #blocked>
    %a20 = arith.mulf %a19, %x : tensor<2048xf32, #blocked>
    %a21 = arith.mulf %a20, %x : tensor<2048xf32, #blocked>
    %a22 = arith.mulf %a21, %x : tensor<2048xf32, #blocked>
    %a23 = arith.mulf %a22, %x : tensor<2048xf32, #blocked>
    %a24 = arith.mulf %a23, %x : tensor<2048xf32, #blocked>
    %a25 = arith.mulf %a24, %x : tensor<2048xf32, #blocked>
    %a26 = arith.mulf %a25, %x : tensor<2048xf32, #blocked>
    %a27 = arith.mulf %a26, %x : tensor<2048xf32, #blocked>
    %a28 = arith.mulf %a27, %x : tensor<2048xf32, #blocked>
    %a29 = arith.mulf %a28, %x : tensor<2048xf32, #blocked>
    %a30 = arith.mulf %a29, %x : tensor<2048xf32, #blocked>
    %a31 = arith.mulf %a30, %x : tensor<2048xf32, #blocked>
    %a32 = arith.mulf %a31, %x : tensor<2048xf32, #blocked>
    tt.store %p, %a32 {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<2048x!tt.ptr<f32>, #blocked>
    tt.return
  }
}
// -----
// What is computed counts, also of smaller tiles than the one that is loaded: 33 steps of half of it.
// RUN: -launch-bounds
#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-NOT: min-ctas-per-sm
// CHECK: tt.func
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%p: tensor<2048x!tt.ptr<f32>, #blocked>, %a0: tensor<1024xf32, #blocked>) {
    %x = tt.load %p {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<2048x!tt.ptr<f32>, #blocked>
    %a1 = arith.mulf %a0, %a0 : tensor<1024xf32, #blocked>
    %a2 = arith.mulf %a1, %a1 : tensor<1024xf32, #blocked>
    %a3 = arith.mulf %a2, %a2 : tensor<1024xf32, #blocked>
    %a4 = arith.mulf %a3, %a3 : tensor<1024xf32, #blocked>
    %a5 = arith.mulf %a4, %a4 : tensor<1024xf32, #blocked>
    %a6 = arith.mulf %a5, %a5 : tensor<1024xf32, #blocked>
    %a7 = arith.mulf %a6, %a6 : tensor<1024xf32, #blocked>
    %a8 = arith.mulf %a7, %a7 : tensor<1024xf32, #blocked>
    %a9 = arith.mulf %a8, %a8 : tensor<1024xf32, #blocked>
    %a10 = arith.mulf %a9, %a9 : tensor<1024xf32, #blocked>
    %a11 = arith.mulf %a10, %a10 : tensor<1024xf32, #blocked>
    %a12 = arith.mulf %a11, %a11 : tensor<1024xf32, #blocked>
    %a13 = arith.mulf %a12, %a12 : tensor<1024xf32, #blocked>
    %a14 = arith.mulf %a13, %a13 : tensor<1024xf32, #blocked>
    %a15 = arith.mulf %a14, %a14 : tensor<1024xf32, #blocked>
    %a16 = arith.mulf %a15, %a15 : tensor<1024xf32, #blocked>
    %a17 = arith.mulf %a16, %a16 : tensor<1024xf32, #blocked>
    %a18 = arith.mulf %a17, %a17 : tensor<1024xf32, #blocked>
    %a19 = arith.mulf %a18, %a18 : tensor<1024xf32, #blocked>
    %a20 = arith.mulf %a19, %a19 : tensor<1024xf32, #blocked>
    %a21 = arith.mulf %a20, %a20 : tensor<1024xf32, #blocked>
    %a22 = arith.mulf %a21, %a21 : tensor<1024xf32, #blocked>
    %a23 = arith.mulf %a22, %a22 : tensor<1024xf32, #blocked>
    %a24 = arith.mulf %a23, %a23 : tensor<1024xf32, #blocked>
    %a25 = arith.mulf %a24, %a24 : tensor<1024xf32, #blocked>
    %a26 = arith.mulf %a25, %a25 : tensor<1024xf32, #blocked>
    %a27 = arith.mulf %a26, %a26 : tensor<1024xf32, #blocked>
    %a28 = arith.mulf %a27, %a27 : tensor<1024xf32, #blocked>
    %a29 = arith.mulf %a28, %a28 : tensor<1024xf32, #blocked>
    %a30 = arith.mulf %a29, %a29 : tensor<1024xf32, #blocked>
    %a31 = arith.mulf %a30, %a30 : tensor<1024xf32, #blocked>
    %a32 = arith.mulf %a31, %a31 : tensor<1024xf32, #blocked>
    %a33 = arith.mulf %a32, %a32 : tensor<1024xf32, #blocked>
    tt.return
  }
}
// -----
// Half as many of them are little.
// RUN: -launch-bounds
#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK: "ttg.min-ctas-per-sm" = 1 : i32
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%p: tensor<2048x!tt.ptr<f32>, #blocked>, %a0: tensor<1024xf32, #blocked>) {
    %x = tt.load %p {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<2048x!tt.ptr<f32>, #blocked>
    %a1 = arith.mulf %a0, %a0 : tensor<1024xf32, #blocked>
    %a2 = arith.mulf %a1, %a1 : tensor<1024xf32, #blocked>
    %a3 = arith.mulf %a2, %a2 : tensor<1024xf32, #blocked>
    %a4 = arith.mulf %a3, %a3 : tensor<1024xf32, #blocked>
    %a5 = arith.mulf %a4, %a4 : tensor<1024xf32, #blocked>
    %a6 = arith.mulf %a5, %a5 : tensor<1024xf32, #blocked>
    %a7 = arith.mulf %a6, %a6 : tensor<1024xf32, #blocked>
    %a8 = arith.mulf %a7, %a7 : tensor<1024xf32, #blocked>
    %a9 = arith.mulf %a8, %a8 : tensor<1024xf32, #blocked>
    %a10 = arith.mulf %a9, %a9 : tensor<1024xf32, #blocked>
    %a11 = arith.mulf %a10, %a10 : tensor<1024xf32, #blocked>
    %a12 = arith.mulf %a11, %a11 : tensor<1024xf32, #blocked>
    %a13 = arith.mulf %a12, %a12 : tensor<1024xf32, #blocked>
    %a14 = arith.mulf %a13, %a13 : tensor<1024xf32, #blocked>
    %a15 = arith.mulf %a14, %a14 : tensor<1024xf32, #blocked>
    %a16 = arith.mulf %a15, %a15 : tensor<1024xf32, #blocked>
    tt.return
  }
}
// -----
// So many words are registers that other CTAs want.
// RUN: -launch-bounds
#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-NOT: min-ctas-per-sm
// CHECK: tt.func
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%p: tensor<8192x!tt.ptr<f32>, #blocked>, %q: tensor<8192x!tt.ptr<f32>, #blocked>) {
    %x = tt.load %p {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<8192x!tt.ptr<f32>, #blocked>
    %y = tt.load %q {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<8192x!tt.ptr<f32>, #blocked>
    tt.return
  }
}
// -----
// A function that the hardware has not is longer than the loads.
// RUN: -launch-bounds
#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-NOT: min-ctas-per-sm
// CHECK: tt.func
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%p: tensor<2048x!tt.ptr<f32>, #blocked>) {
    %x = tt.load %p {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<2048x!tt.ptr<f32>, #blocked>
    %y = math.erf %x : tensor<2048xf32, #blocked>
    tt.store %p, %y {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<2048x!tt.ptr<f32>, #blocked>
    tt.return
  }
}
