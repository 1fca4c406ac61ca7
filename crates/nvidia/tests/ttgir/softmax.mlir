// Softmax over a row of 1000 elements in a tile of 1000: one padded unit of 1024, four warps.
#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.shared" = 16 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @softmax(%out: !tt.ptr<f32>, %in: !tt.ptr<f32>, %stride: i32) {
    %pid = tt.get_program_id x : i32
    %start = arith.muli %pid, %stride : i32
    %row = tt.addptr %in, %start : !tt.ptr<f32>, i32
    %range = tt.make_range {end = 1000 : i32, start = 0 : i32} : tensor<1000xi32, #blocked>
    %ps = tt.splat %row : !tt.ptr<f32> -> tensor<1000x!tt.ptr<f32>, #blocked>
    %p = tt.addptr %ps, %range : tensor<1000x!tt.ptr<f32>, #blocked>, tensor<1000xi32, #blocked>
    %x = tt.load %p {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<1000x!tt.ptr<f32>, #blocked>
    %max = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %m = arith.maxnumf %a, %b : f32
      tt.reduce.return %m : f32
    }) {allocation.offset = 0 : i32} : (tensor<1000xf32, #blocked>) -> f32
    %maxs = tt.splat %max : f32 -> tensor<1000xf32, #blocked>
    %d = arith.subf %x, %maxs : tensor<1000xf32, #blocked>
    %e = math.exp %d : tensor<1000xf32, #blocked>
    ttg.barrier
    %sum = "tt.reduce"(%e) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %m = arith.addf %a, %b : f32
      tt.reduce.return %m : f32
    }) {allocation.offset = 0 : i32} : (tensor<1000xf32, #blocked>) -> f32
    %sums = tt.splat %sum : f32 -> tensor<1000xf32, #blocked>
    %q = arith.divf %e, %sums : tensor<1000xf32, #blocked>
    %orow = tt.addptr %out, %start : !tt.ptr<f32>, i32
    %os = tt.splat %orow : !tt.ptr<f32> -> tensor<1000x!tt.ptr<f32>, #blocked>
    %op = tt.addptr %os, %range : tensor<1000x!tt.ptr<f32>, #blocked>, tensor<1000xi32, #blocked>
    tt.store %op, %q {tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<1000x!tt.ptr<f32>, #blocked>
    tt.return
  }
}
