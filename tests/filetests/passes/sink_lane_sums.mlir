// Sums that loops carry are added up over lanes behind them: the second loop goes on with what the first's lanes have. A maximum
// is not, nor a sum that is looked at inside, nor one over rows that lie in registers alone.
// RUN: -sink-lane-sums
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#rows = #ttg.slice<{dim = 1, parent = #mma}>
#flat = #ttg.blocked<{sizePerThread = [1, 64], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
#lines = #ttg.slice<{dim = 1, parent = #flat}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @chained(%p: tensor<64x64xf32, #mma>, %c: tensor<64xf32, #rows>, %l: tensor<64xf32, #rows>, %n: i32) -> tensor<64xf32, #rows> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %a = scf.for %i = %c0 to %n step %c1 iter_args(%x = %l) -> (tensor<64xf32, #rows>) : i32 {
      %s = "tt.reduce"(%p) <{axis = 1 : i32}> ({
      ^bb0(%u: f32, %v: f32):
        %w = arith.addf %u, %v : f32
        tt.reduce.return %w : f32
      }) : (tensor<64x64xf32, #mma>) -> tensor<64xf32, #rows>
      %y = arith.mulf %x, %c : tensor<64xf32, #rows>
      %z = arith.addf %y, %s : tensor<64xf32, #rows>
      scf.yield %z : tensor<64xf32, #rows>
    }
    %b = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a) -> (tensor<64xf32, #rows>) : i32 {
      %s = "tt.reduce"(%p) <{axis = 1 : i32}> ({
      ^bb0(%u: f32, %v: f32):
        %w = arith.addf %u, %v : f32
        tt.reduce.return %w : f32
      }) : (tensor<64x64xf32, #mma>) -> tensor<64xf32, #rows>
      %z = arith.addf %s, %x : tensor<64xf32, #rows>
      scf.yield %z : tensor<64xf32, #rows>
    }
    tt.return %b : tensor<64xf32, #rows>
  }
  tt.func public @kept(%p: tensor<64x64xf32, #mma>, %q: tensor<64x64xf32, #flat>, %l: tensor<64xf32, #rows>, %m: tensor<64xf32, #lines>, %n: i32) -> (tensor<64xf32, #rows>, tensor<64xf32, #rows>, tensor<64xf32, #lines>) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %a:3 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %l, %y = %l, %z = %m) -> (tensor<64xf32, #rows>, tensor<64xf32, #rows>, tensor<64xf32, #lines>) : i32 {
      %s = "tt.reduce"(%p) <{axis = 1 : i32}> ({
      ^bb0(%u: f32, %v: f32):
        %w = arith.maxnumf %u, %v : f32
        tt.reduce.return %w : f32
      }) : (tensor<64x64xf32, #mma>) -> tensor<64xf32, #rows>
      %t = "tt.reduce"(%p) <{axis = 1 : i32}> ({
      ^bb0(%u: f32, %v: f32):
        %w = arith.addf %u, %v : f32
        tt.reduce.return %w : f32
      }) : (tensor<64x64xf32, #mma>) -> tensor<64xf32, #rows>
      %r = "tt.reduce"(%q) <{axis = 1 : i32}> ({
      ^bb0(%u: f32, %v: f32):
        %w = arith.addf %u, %v : f32
        tt.reduce.return %w : f32
      }) : (tensor<64x64xf32, #flat>) -> tensor<64xf32, #lines>
      %e = arith.addf %x, %s : tensor<64xf32, #rows>
      %f = arith.addf %y, %t : tensor<64xf32, #rows>
      %g = arith.addf %f, %e : tensor<64xf32, #rows>
      %h = arith.addf %z, %r : tensor<64xf32, #lines>
      scf.yield %g, %f, %h : tensor<64xf32, #rows>, tensor<64xf32, #rows>, tensor<64xf32, #lines>
    }
    tt.return %a#0, %a#1, %a#2 : tensor<64xf32, #rows>, tensor<64xf32, #rows>, tensor<64xf32, #lines>
  }
}
// CHECK: @chained
// CHECK: [[FIRST:%[0-9]+]] = ttg.lane_first %arg2 {lanes = 3 : i32}
// CHECK: [[A:%[0-9]+]] = scf.for {{.*}} = [[FIRST]]) ->
// CHECK: {ttg.lanes_apart}
// CHECK: [[B:%[0-9]+]] = scf.for {{.*}} = [[A]]) ->
// CHECK: {ttg.lanes_apart}
// CHECK: [[SUM:%[0-9]+]] = ttg.lane_sum [[B]] {lanes = 3 : i32}
// CHECK-NEXT: tt.return [[SUM]]
// CHECK: @kept
// CHECK-NOT: lane
