// A tile that is read by rows and written by columns is converted once, as f16, not as the f32 that it is widened to.
// RUN: -assign-layouts -num-warps=4
tt.func public @transpose(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %q: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
  %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %c64 = arith.constant dense<64> : tensor<64x1xi32>
  %row = tt.expand_dims %r {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %col = tt.expand_dims %r {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %far = arith.muli %row, %c64 : tensor<64x1xi32>
  %fars = tt.broadcast %far : tensor<64x1xi32> -> tensor<64x64xi32>
  %cols = tt.broadcast %col : tensor<1x64xi32> -> tensor<64x64xi32>
  %o = arith.addi %fars, %cols : tensor<64x64xi32>
  %ps = tt.splat %p : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
  %pp = tt.addptr %ps, %o : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
  %x = tt.load %pp : tensor<64x64x!tt.ptr<f16>>
  %y = arith.extf %x : tensor<64x64xf16> to tensor<64x64xf32>
  %ct = arith.constant dense<64> : tensor<1x64xi32>
  %fart = arith.muli %col, %ct : tensor<1x64xi32>
  %fartb = tt.broadcast %fart : tensor<1x64xi32> -> tensor<64x64xi32>
  %rows = tt.broadcast %row : tensor<64x1xi32> -> tensor<64x64xi32>
  %ot = arith.addi %fartb, %rows : tensor<64x64xi32>
  %qs = tt.splat %q : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
  %qp = tt.addptr %qs, %ot : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
  tt.store %qp, %y : tensor<64x64x!tt.ptr<f32>>
  tt.return
}
// CHECK: #blocked = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [16, 2], warpsPerCTA = [1, 4], order = [0, 1]}>
// CHECK: #blocked1 = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK: tt.load {{.*}}tt.vec = 8 : i32, tt.vec_axis = 1
// CHECK: ttg.convert_layout {{.*}}tensor<64x64xf16, #blocked1> -> tensor<64x64xf16, #blocked>
// CHECK: arith.extf
// CHECK-NOT: ttg.convert_layout
// CHECK: tt.store {{.*}}tt.vec = 4 : i32, tt.vec_axis = 0
// -----
// Rows stay within a warp where they are reduced; their statistics are broadcast and stored as they lie, and nothing is
// converted.
// RUN: -assign-layouts -num-warps=4
tt.func public @rows(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %q: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
  %m = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
  %r = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32>
  %c256 = arith.constant dense<256> : tensor<16x1xi32>
  %row = tt.expand_dims %m {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %col = tt.expand_dims %r {axis = 0 : i32} : tensor<256xi32> -> tensor<1x256xi32>
  %far = arith.muli %row, %c256 : tensor<16x1xi32>
  %fars = tt.broadcast %far : tensor<16x1xi32> -> tensor<16x256xi32>
  %cols = tt.broadcast %col : tensor<1x256xi32> -> tensor<16x256xi32>
  %o = arith.addi %fars, %cols : tensor<16x256xi32>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<16x256x!tt.ptr<f32>>
  %pp = tt.addptr %ps, %o : tensor<16x256x!tt.ptr<f32>>, tensor<16x256xi32>
  %x = tt.load %pp : tensor<16x256x!tt.ptr<f32>>
  %s = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<16x256xf32>) -> tensor<16xf32>
  %se = tt.expand_dims %s {axis = 1 : i32} : tensor<16xf32> -> tensor<16x1xf32>
  %sb = tt.broadcast %se : tensor<16x1xf32> -> tensor<16x256xf32>
  %y = arith.divf %x, %sb : tensor<16x256xf32>
  tt.store %pp, %y : tensor<16x256x!tt.ptr<f32>>
  %qs = tt.splat %q : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %qp = tt.addptr %qs, %m : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  tt.store %qp, %s : tensor<16x!tt.ptr<f32>>
  tt.return
}
// CHECK: #blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-NOT: ttg.convert_layout
// CHECK: (tensor<16x256xf32, #blocked>) -> tensor<16xf32, #ttg.slice<{dim = 1, parent = #blocked}>>
// CHECK-NOT: ttg.convert_layout
// CHECK: tt.store {{.*}}tensor<16x!tt.ptr<f32>, #ttg.slice<{dim = 1, parent = #blocked}>>
// CHECK-NOT: ttg.convert_layout
// -----
// What the branches of an `if` and the turns of a `while` give has one encoding everywhere.
// RUN: -assign-layouts -num-warps=2
tt.func public @control(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %c: i1, %n: i32) {
  %r = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>>
  %pp = tt.addptr %ps, %r : tensor<256x!tt.ptr<f32>>, tensor<256xi32>
  %x = tt.load %pp : tensor<256x!tt.ptr<f32>>
  %zero = arith.constant dense<0.0> : tensor<256xf32>
  %0 = scf.if %c -> (tensor<256xf32>) {
    scf.yield %x : tensor<256xf32>
  } else {
    scf.yield %zero : tensor<256xf32>
  }
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %w:2 = scf.while (%i = %c0, %v = %0) : (i32, tensor<256xf32>) -> (i32, tensor<256xf32>) {
    %go = arith.cmpi slt, %i, %n : i32
    scf.condition(%go) %i, %v : i32, tensor<256xf32>
  } do {
  ^bb0(%i: i32, %v: tensor<256xf32>):
    %v2 = arith.addf %v, %x : tensor<256xf32>
    %i2 = arith.addi %i, %c1 : i32
    scf.yield %i2, %v2 : i32, tensor<256xf32>
  }
  tt.store %pp, %w#1 : tensor<256x!tt.ptr<f32>>
  tt.return
}
// CHECK: #blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [2], order = [0]}>
// CHECK-NOT: #blocked1
// CHECK: scf.if {{.*}}-> (tensor<256xf32, #blocked>)
// CHECK: scf.while
// CHECK-NOT: ttg.convert_layout
// -----
// What a reshape of one element leads to, each thread having that one, is not how the tile is held in which it is repeated.
// RUN: -assign-layouts -num-warps=4
tt.func public @repeated(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %q: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
  %r = tt.make_range {end = 1 : i32, start = 0 : i32} : tensor<1xi32>
  %qs = tt.splat %q : !tt.ptr<f32> -> tensor<1x!tt.ptr<f32>>
  %qp = tt.addptr %qs, %r : tensor<1x!tt.ptr<f32>>, tensor<1xi32>
  %one = tt.load %qp : tensor<1x!tt.ptr<f32>>
  %square = tt.reshape %one : tensor<1xf32> -> tensor<1x1xf32>
  %tile = tt.broadcast %square : tensor<1x1xf32> -> tensor<64x128xf32>
  %twice = arith.mulf %tile, %tile : tensor<64x128xf32>
  %sum = "tt.reduce"(%twice) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<64x128xf32>) -> tensor<64xf32>
  %m = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %pp = tt.addptr %ps, %m : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  tt.store %pp, %sum : tensor<64x!tt.ptr<f32>>
  tt.return
}
// CHECK: tt.reshape {{.*}}tensor<1x1xf32, #linear>
// CHECK: tt.broadcast {{.*}}tensor<64x128xf32, #blocked
// -----
// A kernel's bound stands on the module, as the hardware has it.
// RUN: -assign-layouts -maxnreg=16
tt.func public @f() {
  tt.return
}
// CHECK: ttg.maxnreg = 24

// -----
// Each partition has layouts for its own warps.
// RUN: -assign-layouts
tt.func public @partitions(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>) {
  ttg.warp_specialize(%q) attributes {requestedRegisters = array<i32: 40>}
  default {
    %r = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32>
    %s = tt.splat %p : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    %t = tt.addptr %s, %r : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
    %x = tt.load %t : tensor<1024x!tt.ptr<f32>>
    tt.store %t, %x : tensor<1024x!tt.ptr<f32>>
    ttg.warp_yield
  }
  partition0(%a: !tt.ptr<f32>) num_warps(2) {
    %r = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32>
    %s = tt.splat %a : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    %t = tt.addptr %s, %r : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
    %x = tt.load %t : tensor<1024x!tt.ptr<f32>>
    tt.store %t, %x : tensor<1024x!tt.ptr<f32>>
    ttg.warp_return
  } : (!tt.ptr<f32>) -> ()
  tt.return
}
// CHECK: #blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK: #blocked1 = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [2], order = [0]}>
// CHECK: default
// CHECK: tt.load {{.*}}#blocked>
// CHECK: partition0
// CHECK: tt.load {{.*}}#blocked1>

// -----

// A layout that the kernel gives: what it is made of is in it too, and what follows.
// RUN: -assign-layouts
// CHECK: #blocked1 = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [0, 1]}>
// CHECK-NOT: ttg.set_layout
// CHECK: arith.mulf {{.*}} : tensor<64x32xf32, #blocked1>
// CHECK-NEXT: arith.addf {{.*}} : tensor<64x32xf32, #blocked1>
#tall = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [0, 1]}>
tt.func public @anchored(%p: tensor<64x32x!tt.ptr<f32>>) {
  %x = tt.load %p : tensor<64x32x!tt.ptr<f32>>
  %y = arith.mulf %x, %x : tensor<64x32xf32>
  %z = ttg.set_layout %y {layout = #tall} : tensor<64x32xf32>
  %w = arith.addf %z, %z : tensor<64x32xf32>
  tt.store %p, %w : tensor<64x32x!tt.ptr<f32>>
  tt.return
}

// -----

// A load is made in the layout that the kernel gives to its value, where it takes as many instructions and touches as many sectors; pointers that
// a layout is given to are as wide as before.
// RUN: -assign-layouts -num-warps=4
// CHECK: #blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK: tt.load {{.*}}tt.vec = 8{{.*}}#blocked>
// CHECK-NEXT: tt.load {{.*}}tt.vec = 8{{.*}}#blocked>
// CHECK-NEXT: arith.addf {{.*}}#blocked>
#rows = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
tt.func public @loaded_as_given(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %q: !tt.ptr<f16> {tt.divisibility = 16 : i32}) {
  %r = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32>
  %row = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %c = arith.constant dense<256> : tensor<64xi32>
  %far = arith.muli %row, %c : tensor<64xi32>
  %fars = tt.expand_dims %far {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %cols = tt.expand_dims %r {axis = 0 : i32} : tensor<256xi32> -> tensor<1x256xi32>
  %a = tt.broadcast %fars : tensor<64x1xi32> -> tensor<64x256xi32>
  %b = tt.broadcast %cols : tensor<1x256xi32> -> tensor<64x256xi32>
  %at = arith.addi %a, %b : tensor<64x256xi32>
  %ps = tt.splat %p : !tt.ptr<f16> -> tensor<64x256x!tt.ptr<f16>>
  %qs = tt.splat %q : !tt.ptr<f16> -> tensor<64x256x!tt.ptr<f16>>
  %pa = tt.addptr %ps, %at : tensor<64x256x!tt.ptr<f16>>, tensor<64x256xi32>
  %qa = tt.addptr %qs, %at : tensor<64x256x!tt.ptr<f16>>, tensor<64x256xi32>
  %qg = ttg.set_layout %qa {layout = #rows} : tensor<64x256x!tt.ptr<f16>>
  %x = tt.load %pa : tensor<64x256x!tt.ptr<f16>>
  %y = tt.load %qg : tensor<64x256x!tt.ptr<f16>>
  %g = ttg.set_layout %x {layout = #rows} : tensor<64x256xf16>
  %z = arith.addf %g, %y : tensor<64x256xf16>
  tt.store %pa, %z : tensor<64x256x!tt.ptr<f16>>
  tt.return
}

// -----
// What the default partition returns has the encoding that the result got.
// RUN: -assign-layouts
tt.func public @returns_a_reduction(%q: !tt.ptr<i32>) {
  %total = ttg.warp_specialize(%q)
  default {
    %r = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
    %row = tt.expand_dims %r {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
    %rows = tt.broadcast %row : tensor<1x32xi32> -> tensor<8x32xi32>
    %sum = "tt.reduce"(%rows) <{axis = 0 : i32}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.addi %a, %b : i32
      tt.reduce.return %c : i32
    }) : (tensor<8x32xi32>) -> tensor<32xi32>
    ttg.warp_yield %sum : tensor<32xi32>
  }
  partition0(%a: !tt.ptr<i32>) num_warps(2) {
    ttg.warp_return
  } : (!tt.ptr<i32>) -> tensor<32xi32>
  %r = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
  %s = tt.splat %q : !tt.ptr<i32> -> tensor<32x!tt.ptr<i32>>
  %t = tt.addptr %s, %r : tensor<32x!tt.ptr<i32>>, tensor<32xi32>
  tt.store %t, %total : tensor<32x!tt.ptr<i32>>
  tt.return
}
// CHECK: convert_layout {{.*}}#ttg.slice<{dim = 0, parent = #blocked1}>> -> tensor<32xi32, #blocked>
// CHECK: ttg.warp_yield {{.*}}tensor<32xi32, #blocked>
// CHECK: -> tensor<32xi32, #blocked>
// -----
// How warps divide a product is as its author says: rows, columns, squares. What it is multiplied of and added to follows.
// RUN: -assign-layouts -num-warps=4 -target=cuda:80
tt.func public @tiling(%a: tensor<64x32xf16>, %b: tensor<32x64xf16>, %p: tensor<64x64x!tt.ptr<f32>>) {
  %zero = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
  %rows = tt.dot %a, %b, %zero tiling = horizontal : tensor<64x32xf16> * tensor<32x64xf16> -> tensor<64x64xf32>
  %columns = tt.dot %a, %b, %rows tiling = vertical : tensor<64x32xf16> * tensor<32x64xf16> -> tensor<64x64xf32>
  %squares = tt.dot %a, %b, %columns tiling = square : tensor<64x32xf16> * tensor<32x64xf16> -> tensor<64x64xf32>
  tt.store %p, %squares : tensor<64x64x!tt.ptr<f32>>
  tt.return
}
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
// CHECK: #mma1 = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 4], instrShape = [16, 8]}>
// CHECK: #mma2 = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
// CHECK: tt.dot {{.*}}tiling = horizontal{{.*}} -> tensor<64x64xf32, #mma>
// CHECK: ttg.convert_layout {{.*}}#mma> -> tensor<64x64xf32, #mma1>
// CHECK: tt.dot {{.*}}tiling = vertical{{.*}} -> tensor<64x64xf32, #mma1>
// CHECK: tt.dot {{.*}}tiling = square{{.*}} -> tensor<64x64xf32, #mma2>
// -----
// In a kernel that is written for one warp, tensors are one warp's, and products are those of single warps.
// RUN: -assign-layouts -num-warps=8 -target=cuda:90
module attributes {tt.warp_level = 8 : i32} {
  tt.func public @one_warp(%a: tensor<64x32xf16>, %b: tensor<32x64xf16>, %p: tensor<64x64x!tt.ptr<f32>>) {
    %zero = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %d = tt.dot %a, %b, %zero : tensor<64x32xf16> * tensor<32x64xf16> -> tensor<64x64xf32>
    tt.store %p, %d : tensor<64x64x!tt.ptr<f32>>
    tt.return
  }
}
// CHECK: versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 1]
// CHECK: "ttg.num-warps" = 1
// CHECK: tt.dot
// -----
// Two products in a loop add to one accumulator, each divided as it says.
// RUN: -assign-layouts -num-warps=4 -target=cuda:80
tt.func public @one_accumulator(%a: tensor<64x32xf16>, %b: tensor<32x64xf16>, %p: tensor<64x64x!tt.ptr<f32>>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %x = tt.dot %a, %b, %acc tiling = vertical : tensor<64x32xf16> * tensor<32x64xf16> -> tensor<64x64xf32>
    %y = tt.dot %a, %b, %x tiling = horizontal : tensor<64x32xf16> * tensor<32x64xf16> -> tensor<64x64xf32>
    scf.yield %y : tensor<64x64xf32>
  }
  tt.store %p, %sum : tensor<64x64x!tt.ptr<f32>>
  tt.return
}
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 4], instrShape = [16, 8]}>
// CHECK: #mma1 = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
// CHECK: tt.dot {{.*}}tiling = vertical{{.*}} -> tensor<64x64xf32, #mma>
// CHECK: tt.dot {{.*}}tiling = horizontal{{.*}} -> tensor<64x64xf32, #mma1>
// -----
// Warp groups lie one below the other: rows are theirs, columns take mma.sync, with a remark.
// RUN: -assign-layouts -num-warps=4 -target=cuda:90
tt.func public @warp_groups(%a: tensor<64x64xf16>, %b: tensor<64x64xf16>, %p: tensor<64x64x!tt.ptr<f32>>) {
  %zero = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
  %rows = tt.dot %a, %b, %zero tiling = horizontal : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
  tt.store %p, %rows : tensor<64x64x!tt.ptr<f32>>
  %columns = tt.dot %a, %b, %zero tiling = vertical : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
  tt.store %p, %columns : tensor<64x64x!tt.ptr<f32>>
  tt.return
}
// CHECK: ttg.remarks = ["{{.*}}tiling={{.*}}vertical{{.*}} is obeyed by mma.sync
// CHECK: ttng.warp_group_dot
// CHECK: tt.dot {{.*}}tiling = vertical
// -----
// Multiply-adds are divided, too.
// RUN: -assign-layouts -num-warps=4 -target=cuda:80
tt.func public @multiply_adds(%a: tensor<32x16xf32>, %b: tensor<16x32xf32>, %p: tensor<32x32x!tt.ptr<f32>>) {
  %zero = arith.constant dense<0.000000e+00> : tensor<32x32xf32>
  %rows = tt.dot %a, %b, %zero tiling = horizontal : tensor<32x16xf32> * tensor<16x32xf32> -> tensor<32x32xf32>
  tt.store %p, %rows : tensor<32x32x!tt.ptr<f32>>
  tt.return
}
// CHECK: #blocked4 = #ttg.blocked<{sizePerThread = [2, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK: tt.dot {{.*}}tiling = horizontal{{.*}} -> tensor<32x32xf32, #blocked4>
// -----
// Fewer tiles than warps.
// RUN: -assign-layouts -num-warps=4 -target=cuda:80
tt.func public @too_few(%a: tensor<32x32xf16>, %b: tensor<32x64xf16>, %p: tensor<32x64x!tt.ptr<f32>>) {
  %zero = arith.constant dense<0.000000e+00> : tensor<32x64xf32>
  %rows = tt.dot %a, %b, %zero tiling = horizontal : tensor<32x32xf16> * tensor<32x64xf16> -> tensor<32x64xf32>
  tt.store %p, %rows : tensor<32x64x!tt.ptr<f32>>
  tt.return
}
// ERROR: tiling="horizontal" cannot be obeyed: a result of 32x64 is 2x8 tiles of 16x8, too few for 4 warps that lie so
// -----
// One load and sixteen reductions along its rows: a thread has half a row, so that each is one shuffle.
// RUN: -assign-layouts -num-warps=4
// CHECK: #blocked = #ttg.blocked<{sizePerThread = [1, 32], threadsPerWarp = [16, 2], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK: tt.load {{.*}} : tensor<64x64x!tt.ptr<f32>, #blocked>
tt.func public @mostly_reduced(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %q: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
  %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %c64 = arith.constant dense<64> : tensor<64x1xi32>
  %row = tt.expand_dims %r {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %col = tt.expand_dims %r {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %far = arith.muli %row, %c64 : tensor<64x1xi32>
  %fars = tt.broadcast %far : tensor<64x1xi32> -> tensor<64x64xi32>
  %cols = tt.broadcast %col : tensor<1x64xi32> -> tensor<64x64xi32>
  %o = arith.addi %fars, %cols : tensor<64x64xi32>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
  %pp = tt.addptr %ps, %o : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
  %x = tt.load %pp : tensor<64x64x!tt.ptr<f32>>
  %s0 = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<64x64xf32>) -> tensor<64xf32>
  %u0 = arith.negf %s0 : tensor<64xf32>
  %s1 = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<64x64xf32>) -> tensor<64xf32>
  %u1 = arith.addf %u0, %s1 : tensor<64xf32>
  %s2 = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<64x64xf32>) -> tensor<64xf32>
  %u2 = arith.addf %u1, %s2 : tensor<64xf32>
  %s3 = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<64x64xf32>) -> tensor<64xf32>
  %u3 = arith.addf %u2, %s3 : tensor<64xf32>
  %s4 = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<64x64xf32>) -> tensor<64xf32>
  %u4 = arith.addf %u3, %s4 : tensor<64xf32>
  %s5 = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<64x64xf32>) -> tensor<64xf32>
  %u5 = arith.addf %u4, %s5 : tensor<64xf32>
  %s6 = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<64x64xf32>) -> tensor<64xf32>
  %u6 = arith.addf %u5, %s6 : tensor<64xf32>
  %s7 = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<64x64xf32>) -> tensor<64xf32>
  %u7 = arith.addf %u6, %s7 : tensor<64xf32>
  %s8 = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<64x64xf32>) -> tensor<64xf32>
  %u8 = arith.addf %u7, %s8 : tensor<64xf32>
  %s9 = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<64x64xf32>) -> tensor<64xf32>
  %u9 = arith.addf %u8, %s9 : tensor<64xf32>
  %s10 = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<64x64xf32>) -> tensor<64xf32>
  %u10 = arith.addf %u9, %s10 : tensor<64xf32>
  %s11 = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<64x64xf32>) -> tensor<64xf32>
  %u11 = arith.addf %u10, %s11 : tensor<64xf32>
  %s12 = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<64x64xf32>) -> tensor<64xf32>
  %u12 = arith.addf %u11, %s12 : tensor<64xf32>
  %s13 = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<64x64xf32>) -> tensor<64xf32>
  %u13 = arith.addf %u12, %s13 : tensor<64xf32>
  %s14 = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<64x64xf32>) -> tensor<64xf32>
  %u14 = arith.addf %u13, %s14 : tensor<64xf32>
  %s15 = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<64x64xf32>) -> tensor<64xf32>
  %u15 = arith.addf %u14, %s15 : tensor<64xf32>
  %qs = tt.splat %q : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %qp = tt.addptr %qs, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  tt.store %qp, %u15 : tensor<64x!tt.ptr<f32>>
  tt.return
}
