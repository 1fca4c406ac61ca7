// RUN: -target=xe:pvc -num-warps=4 -distribute-to-lanes -allocate-shared -membar
// Blocks have a column a lane. What is reduced along columns, and what it is combined with, is in every lane (`dim = 1`): the loop carries it without a conversion;
// what is reduced along rows has an element a lane. Parts of a block are registers by other names; barriers and buffers are those of all warps.

module attributes {ttg.level = "intrinsic", "ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "xe:pvc", "ttg.threads-per-warp" = 16 : i32} {
  tt.func public @rows(%n: i32, %out: !tt.ptr<f32>) attributes {noinline = false} {
    %a = arith.constant dense<1.0> : tensor<8x16xf16>
    %b = arith.constant dense<2.0> : tensor<32x32xf16>
    %zero = arith.constant dense<0.0> : tensor<8x16xf32>
    %start = arith.constant dense<1.0> : tensor<8xf32>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %0 = gpu.subgroup_id : index
    %1 = arith.index_cast %0 : index to i32
    %buffer = ttg.local_alloc : () -> !ttg.memdesc<4x1xf32, #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>, #ttg.shared_memory, mutable>
    %part = tt.extract %b[3] : tensor<32x32xf16> -> tensor<16x16xf16>
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %start) -> (tensor<8xf32>) : i32 {
      %d = tt.dot %a, %part, %zero, inputPrecision = tf32 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
      %e = tt.expand_dims %s {axis = 1 : i32} : tensor<8xf32> -> tensor<8x1xf32>
      %f = tt.broadcast %e : tensor<8x1xf32> -> tensor<8x16xf32>
      %g = arith.mulf %d, %f : tensor<8x16xf32>
      %m = "tt.reduce"(%g) <{axis = 1 : i32}> ({
      ^bb0(%x: f32, %y: f32):
        %z = arith.addf %x, %y : f32
        tt.reduce.return %z : f32
      }) : (tensor<8x16xf32>) -> tensor<8xf32>
      %next = arith.addf %m, %s : tensor<8xf32>
      scf.yield %next : tensor<8xf32>
    }
    %columns = "tt.reduce"(%zero) <{axis = 0 : i32}> ({
    ^bb0(%x: f32, %y: f32):
      %z = arith.addf %x, %y : f32
      tt.reduce.return %z : f32
    }) : (tensor<8x16xf32>) -> tensor<16xf32>
    %whole = "tt.reduce"(%columns) <{axis = 0 : i32}> ({
    ^bb0(%x: f32, %y: f32):
      %z = arith.addf %x, %y : f32
      tt.reduce.return %z : f32
    }) : (tensor<16xf32>) -> f32
    %one = tt.splat %whole : f32 -> tensor<1xf32>
    %slot = ttg.memdesc_index %buffer[%1] : !ttg.memdesc<4x1xf32, #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>, #ttg.shared_memory, mutable> -> !ttg.memdesc<1xf32, #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>, #ttg.shared_memory, mutable>
    ttg.local_store %one, %slot : tensor<1xf32> -> !ttg.memdesc<1xf32, #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>, #ttg.shared_memory, mutable>
    ttg.barrier
    %r = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
    %ps = tt.splat %out : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>>
    %p = tt.addptr %ps, %r : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
    tt.store %p, %sum {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<8x!tt.ptr<f32>>
    tt.return
  }
}

// OUTPUT
// #blocked = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 16], warpsPerCTA = [1, 1], order = [1, 0]}>
// #shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
// #smem = #ttg.shared_memory
// module attributes {tt.warp_level = 4 : i32, ttg.level = "lane", "ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.shared = 16 : i32, ttg.target = "xe:pvc", "ttg.threads-per-warp" = 16 : i32, "ttg.total-num-warps" = 4 : i32, "ttg.warp-shared" = 0 : i32} {
//   tt.func public @rows(%arg0: i32, %arg1: !tt.ptr<f32>) attributes {noinline = false} {
//     %cst = arith.constant dense<1.000000e+00> : tensor<8x16xf16, #blocked>
//     %cst_0 = arith.constant dense<2.000000e+00> : tensor<32x32xf16, #blocked>
//     %cst_1 = arith.constant dense<0.000000e+00> : tensor<8x16xf32, #blocked>
//     %cst_2 = arith.constant dense<1.000000e+00> : tensor<8xf32, #ttg.slice<{dim = 1, parent = #blocked}>>
//     %c0_i32 = arith.constant 0 : i32
//     %c1_i32 = arith.constant 1 : i32
//     %0 = ttg.warp_id
//     %1 = ttg.local_alloc {allocation.offset = 0 : i32, ttg.all_warps} : () -> !ttg.memdesc<4x1xf32, #shared, #smem, mutable>
//     %2 = tt.extract %cst_0[3] : tensor<32x32xf16, #blocked> -> tensor<16x16xf16, #blocked>
//     %3 = scf.for %arg2 = %c0_i32 to %arg0 step %c1_i32 iter_args(%arg3 = %cst_2) -> (tensor<8xf32, #ttg.slice<{dim = 1, parent = #blocked}>>)  : i32 {
//       %11 = tt.dot %cst, %2, %cst_1, inputPrecision = tf32 : tensor<8x16xf16, #blocked> * tensor<16x16xf16, #blocked> -> tensor<8x16xf32, #blocked>
//       %12 = tt.expand_dims %arg3 {axis = 1 : i32} : tensor<8xf32, #ttg.slice<{dim = 1, parent = #blocked}>> -> tensor<8x1xf32, #blocked>
//       %13 = tt.broadcast %12 : tensor<8x1xf32, #blocked> -> tensor<8x16xf32, #blocked>
//       %14 = arith.mulf %11, %13 : tensor<8x16xf32, #blocked>
//       %15 = "tt.reduce"(%14) <{axis = 1 : i32}> ({
//       ^bb0(%arg4: f32, %arg5: f32):
//         %17 = arith.addf %arg4, %arg5 : f32
//         tt.reduce.return %17 : f32
//       }) : (tensor<8x16xf32, #blocked>) -> tensor<8xf32, #ttg.slice<{dim = 1, parent = #blocked}>>
//       %16 = arith.addf %15, %arg3 : tensor<8xf32, #ttg.slice<{dim = 1, parent = #blocked}>>
//       scf.yield %16 : tensor<8xf32, #ttg.slice<{dim = 1, parent = #blocked}>>
//     }
//     %4 = "tt.reduce"(%cst_1) <{axis = 0 : i32}> ({
//     ^bb0(%arg2: f32, %arg3: f32):
//       %11 = arith.addf %arg2, %arg3 : f32
//       tt.reduce.return %11 : f32
//     }) : (tensor<8x16xf32, #blocked>) -> tensor<16xf32, #ttg.slice<{dim = 0, parent = #blocked}>>
//     %5 = "tt.reduce"(%4) <{axis = 0 : i32}> ({
//     ^bb0(%arg2: f32, %arg3: f32):
//       %11 = arith.addf %arg2, %arg3 : f32
//       tt.reduce.return %11 : f32
//     }) : (tensor<16xf32, #ttg.slice<{dim = 0, parent = #blocked}>>) -> f32
//     %6 = tt.splat %5 : f32 -> tensor<1xf32, #ttg.slice<{dim = 0, parent = #blocked}>>
//     %7 = ttg.memdesc_index %1[%0] : !ttg.memdesc<4x1xf32, #shared, #smem, mutable> -> !ttg.memdesc<1xf32, #shared, #smem, mutable>
//     ttg.local_store %6, %7 : tensor<1xf32, #ttg.slice<{dim = 0, parent = #blocked}>> -> !ttg.memdesc<1xf32, #shared, #smem, mutable>
//     ttg.barrier {ttg.all_warps}
//     %8 = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32, #ttg.slice<{dim = 1, parent = #blocked}>>
//     %9 = tt.splat %arg1 : !tt.ptr<f32> -> tensor<8x!tt.ptr<f32>, #ttg.slice<{dim = 1, parent = #blocked}>>
//     %10 = tt.addptr %9, %8 : tensor<8x!tt.ptr<f32>, #ttg.slice<{dim = 1, parent = #blocked}>>, tensor<8xi32, #ttg.slice<{dim = 1, parent = #blocked}>>
//     tt.store %10, %3 {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<8x!tt.ptr<f32>, #ttg.slice<{dim = 1, parent = #blocked}>>
//     tt.return
//   }
// }
// -----
// RUN: -target=xe:pvc -num-warps=4 -distribute-to-lanes
// ERROR: not supported yet: `tt.func` on lanes

module attributes {ttg.level = "intrinsic", "ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "xe:pvc", "ttg.threads-per-warp" = 16 : i32} {
  tt.func public @given(%a: tensor<8x16xf16>) attributes {noinline = false} {
    tt.return
  }
}

// -----
// RUN: -target=xe:pvc -num-warps=4 -distribute-to-lanes
// ERROR: not supported yet: `tt.reshape` on lanes

module attributes {ttg.level = "intrinsic", "ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "xe:pvc", "ttg.threads-per-warp" = 16 : i32} {
  tt.func public @reshaped() attributes {noinline = false} {
    %a = arith.constant dense<1.0> : tensor<8x16xf16>
    %b = tt.reshape %a : tensor<8x16xf16> -> tensor<16x8xf16>
    tt.return
  }
}

// -----
// RUN: -target=xe:pvc -num-warps=4 -distribute-to-lanes
// ERROR: here it does not hold that each tensor is what one warp has

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "xe:pvc", "ttg.threads-per-warp" = 16 : i32} {
  tt.func public @early() attributes {noinline = false} {
    tt.return
  }
}

// -----
// RUN: -target=xe:pvc -num-warps=4 -distribute-to-lanes
// What is reduced together has one layout, here that of rows, and so has what comes of it. The one element of rows that is repeated for columns is
// converted: all lanes have it in either layout.

module attributes {ttg.level = "intrinsic", "ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "xe:pvc", "ttg.threads-per-warp" = 16 : i32} {
  tt.func public @lines(%out: !tt.ptr<f32>) attributes {noinline = false} {
    %a = arith.constant dense<1.0> : tensor<8x16xf32>
    %one = arith.constant dense<1.0> : tensor<1x16xf32>
    %row = "tt.reduce"(%one) <{axis = 1 : i32}> ({
    ^bb0(%x: f32, %y: f32):
      %z = arith.addf %x, %y : f32
      tt.reduce.return %z : f32
    }) : (tensor<1x16xf32>) -> tensor<1xf32>
    %columns = tt.broadcast %row : tensor<1xf32> -> tensor<16xf32>
    %ps = tt.splat %out : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
    %at = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
    %p = tt.addptr %ps, %at : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    tt.store %p, %columns : tensor<16x!tt.ptr<f32>>
    %sums = "tt.reduce"(%a) <{axis = 1 : i32}> ({
    ^bb0(%x: f32, %y: f32):
      %z = arith.addf %x, %y : f32
      tt.reduce.return %z : f32
    }) : (tensor<8x16xf32>) -> tensor<8xf32>
    %numbers = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
    %most, %which = "tt.reduce"(%sums, %numbers) <{axis = 0 : i32}> ({
    ^bb0(%x: f32, %i: i32, %y: f32, %j: i32):
      %less = arith.cmpf olt, %x, %y : f32
      %v = arith.select %less, %y, %x : f32
      %k = arith.select %less, %j, %i : i32
      tt.reduce.return %v, %k : f32, i32
    }) : (tensor<8xf32>, tensor<8xi32>) -> (f32, i32)
    %place = tt.addptr %out, %which : !tt.ptr<f32>, i32
    tt.store %place, %most : !tt.ptr<f32>
    tt.return
  }
}

// OUTPUT
// #blocked = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 16], warpsPerCTA = [1, 1], order = [1, 0]}>
// module attributes {tt.warp_level = 4 : i32, ttg.level = "lane", "ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "xe:pvc", "ttg.threads-per-warp" = 16 : i32, "ttg.total-num-warps" = 4 : i32} {
//   tt.func public @lines(%arg0: !tt.ptr<f32>) attributes {noinline = false} {
//     %cst = arith.constant dense<1.000000e+00> : tensor<8x16xf32, #blocked>
//     %cst_0 = arith.constant dense<1.000000e+00> : tensor<1x16xf32, #blocked>
//     %0 = "tt.reduce"(%cst_0) <{axis = 1 : i32}> ({
//     ^bb0(%arg1: f32, %arg2: f32):
//       %10 = arith.addf %arg1, %arg2 : f32
//       tt.reduce.return %10 : f32
//     }) : (tensor<1x16xf32, #blocked>) -> tensor<1xf32, #ttg.slice<{dim = 1, parent = #blocked}>>
//     %1 = ttg.convert_layout %0 : tensor<1xf32, #ttg.slice<{dim = 1, parent = #blocked}>> -> tensor<1xf32, #ttg.slice<{dim = 0, parent = #blocked}>>
//     %2 = tt.broadcast %1 : tensor<1xf32, #ttg.slice<{dim = 0, parent = #blocked}>> -> tensor<16xf32, #ttg.slice<{dim = 0, parent = #blocked}>>
//     %3 = tt.splat %arg0 : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>, #ttg.slice<{dim = 0, parent = #blocked}>>
//     %4 = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #ttg.slice<{dim = 0, parent = #blocked}>>
//     %5 = tt.addptr %3, %4 : tensor<16x!tt.ptr<f32>, #ttg.slice<{dim = 0, parent = #blocked}>>, tensor<16xi32, #ttg.slice<{dim = 0, parent = #blocked}>>
//     tt.store %5, %2 : tensor<16x!tt.ptr<f32>, #ttg.slice<{dim = 0, parent = #blocked}>>
//     %6 = "tt.reduce"(%cst) <{axis = 1 : i32}> ({
//     ^bb0(%arg1: f32, %arg2: f32):
//       %10 = arith.addf %arg1, %arg2 : f32
//       tt.reduce.return %10 : f32
//     }) : (tensor<8x16xf32, #blocked>) -> tensor<8xf32, #ttg.slice<{dim = 1, parent = #blocked}>>
//     %7 = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32, #ttg.slice<{dim = 1, parent = #blocked}>>
//     %8:2 = "tt.reduce"(%6, %7) <{axis = 0 : i32}> ({
//     ^bb0(%arg1: f32, %arg2: i32, %arg3: f32, %arg4: i32):
//       %10 = arith.cmpf olt, %arg1, %arg3 : f32
//       %11 = arith.select %10, %arg3, %arg1 : f32
//       %12 = arith.select %10, %arg4, %arg2 : i32
//       tt.reduce.return %11, %12 : f32, i32
//     }) : (tensor<8xf32, #ttg.slice<{dim = 1, parent = #blocked}>>, tensor<8xi32, #ttg.slice<{dim = 1, parent = #blocked}>>) -> (f32, i32)
//     %9 = tt.addptr %arg0, %8#1 : !tt.ptr<f32>, i32
//     tt.store %9, %8#0 : !tt.ptr<f32>
//     tt.return
//   }
// }
