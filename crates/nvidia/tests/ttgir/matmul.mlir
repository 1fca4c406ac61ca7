// One 64x64 tile of A (M x K) times B (K x N), fp16 with fp32 accumulation, no pipelining.
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#blocked1 = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 2, maxPhase = 4, order = [1, 0]}>
#shared1 = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.shared" = 8192 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @matmul(%a: !tt.ptr<f16>, %b: !tt.ptr<f16>, %c: !tt.ptr<f32>, %K: i32, %N: i32) {
    %c0 = arith.constant 0 : i32
    %c32 = arith.constant 32 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.000000e+00> : tensor<64x64xf32, #mma>
    %am = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked}>>
    %ak = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #blocked}>>
    %bk = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #blocked1}>>
    %bn = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked1}>>
    %am2 = tt.expand_dims %am {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked}>> -> tensor<64x1xi32, #blocked>
    %ak2 = tt.expand_dims %ak {axis = 0 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #blocked}>> -> tensor<1x32xi32, #blocked>
    %bk2 = tt.expand_dims %bk {axis = 1 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #blocked1}>> -> tensor<32x1xi32, #blocked1>
    %bn2 = tt.expand_dims %bn {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked1}>> -> tensor<1x64xi32, #blocked1>
    %Ks = tt.splat %K : i32 -> tensor<64x1xi32, #blocked>
    %Ns = tt.splat %N : i32 -> tensor<32x1xi32, #blocked1>
    %arow = arith.muli %am2, %Ks : tensor<64x1xi32, #blocked>
    %brow = arith.muli %bk2, %Ns : tensor<32x1xi32, #blocked1>
    %arowb = tt.broadcast %arow : tensor<64x1xi32, #blocked> -> tensor<64x32xi32, #blocked>
    %akb = tt.broadcast %ak2 : tensor<1x32xi32, #blocked> -> tensor<64x32xi32, #blocked>
    %aoff = arith.addi %arowb, %akb : tensor<64x32xi32, #blocked>
    %browb = tt.broadcast %brow : tensor<32x1xi32, #blocked1> -> tensor<32x64xi32, #blocked1>
    %bnb = tt.broadcast %bn2 : tensor<1x64xi32, #blocked1> -> tensor<32x64xi32, #blocked1>
    %boff = arith.addi %browb, %bnb : tensor<32x64xi32, #blocked1>
    %as = tt.splat %a : !tt.ptr<f16> -> tensor<64x32x!tt.ptr<f16>, #blocked>
    %bs = tt.splat %b : !tt.ptr<f16> -> tensor<32x64x!tt.ptr<f16>, #blocked1>
    %ap = tt.addptr %as, %aoff : tensor<64x32x!tt.ptr<f16>, #blocked>, tensor<64x32xi32, #blocked>
    %bp = tt.addptr %bs, %boff : tensor<32x64x!tt.ptr<f16>, #blocked1>, tensor<32x64xi32, #blocked1>
    %astep = arith.constant dense<32> : tensor<64x32xi32, #blocked>
    %bstep0 = arith.muli %N, %c32 : i32
    %bstep = tt.splat %bstep0 : i32 -> tensor<32x64xi32, #blocked1>
    %r:3 = scf.for %k = %c0 to %K step %c32 iter_args(%acc = %zero, %pa = %ap, %pb = %bp) -> (tensor<64x64xf32, #mma>, tensor<64x32x!tt.ptr<f16>, #blocked>, tensor<32x64x!tt.ptr<f16>, #blocked1>)  : i32 {
      %av = tt.load %pa {tt.vec = 8 : i32, tt.vec_axis = 1 : i32} : tensor<64x32x!tt.ptr<f16>, #blocked>
      %bv = tt.load %pb {tt.vec = 8 : i32, tt.vec_axis = 1 : i32} : tensor<32x64x!tt.ptr<f16>, #blocked1>
      ttg.barrier
      %sa = ttg.local_alloc %av {allocation.offset = 0 : i32} : (tensor<64x32xf16, #blocked>) -> !ttg.memdesc<64x32xf16, #shared, #smem>
      %sb = ttg.local_alloc %bv {allocation.offset = 4096 : i32} : (tensor<32x64xf16, #blocked1>) -> !ttg.memdesc<32x64xf16, #shared1, #smem>
      ttg.barrier
      %la = ttg.local_load %sa : !ttg.memdesc<64x32xf16, #shared, #smem> -> tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
      %lb = ttg.local_load %sb : !ttg.memdesc<32x64xf16, #shared1, #smem> -> tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>>
      %d = tt.dot %la, %lb, %acc : tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>> -> tensor<64x64xf32, #mma>
      %na = tt.addptr %pa, %astep : tensor<64x32x!tt.ptr<f16>, #blocked>, tensor<64x32xi32, #blocked>
      %nb = tt.addptr %pb, %bstep : tensor<32x64x!tt.ptr<f16>, #blocked1>, tensor<32x64xi32, #blocked1>
      scf.yield %d, %na, %nb : tensor<64x64xf32, #mma>, tensor<64x32x!tt.ptr<f16>, #blocked>, tensor<32x64x!tt.ptr<f16>, #blocked1>
    }
    %cm = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #mma}>>
    %cn = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #mma}>>
    %cm2 = tt.expand_dims %cm {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #mma}>> -> tensor<64x1xi32, #mma>
    %cn2 = tt.expand_dims %cn {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #mma}>> -> tensor<1x64xi32, #mma>
    %cN = tt.splat %N : i32 -> tensor<64x1xi32, #mma>
    %crow = arith.muli %cm2, %cN : tensor<64x1xi32, #mma>
    %crowb = tt.broadcast %crow : tensor<64x1xi32, #mma> -> tensor<64x64xi32, #mma>
    %cnb = tt.broadcast %cn2 : tensor<1x64xi32, #mma> -> tensor<64x64xi32, #mma>
    %coff = arith.addi %crowb, %cnb : tensor<64x64xi32, #mma>
    %cs = tt.splat %c : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>, #mma>
    %cp = tt.addptr %cs, %coff : tensor<64x64x!tt.ptr<f32>, #mma>, tensor<64x64xi32, #mma>
    tt.store %cp, %r#0 {tt.vec = 2 : i32, tt.vec_axis = 1 : i32} : tensor<64x64x!tt.ptr<f32>, #mma>
    tt.return
  }
}
