// RUN:
// A layout is checked where it is read, and against the warps that run what has it.
#b = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [8, 4], warpsPerCTA = [2, 1], order = [1, 0]}>
#bad = #ttg.dot_op<{opIdx = 2, parent = #b}>
// ERROR: a product has the operands 0 and 1, not 2
// -----
// RUN:
#b = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [8, 4], warpsPerCTA = [2, 1], order = [1, 0]}>
#bad = #ttg.dot_op<{opIdx = 0, parent = #b, kWidth = 3}>
// ERROR: `kWidth` must be a power of two
// -----
// RUN:
#m = #ttg.nvidia_mma<{versionMajor = 2, warpsPerCTA = [2, 1], instrShape = [16, 8]}>
#bad = #ttg.dot_op<{opIdx = 0, parent = #m}>
// ERROR: `kWidth` must be given
// -----
// RUN:
#m = #ttg.nvidia_mma<{versionMajor = 3, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#bad = #ttg.dot_op<{opIdx = 1, parent = #m, kWidth = 2}>
// ERROR: the second operand of a product of version 3
// -----
// RUN:
#bad = #ttg.slice<{dim = 3, parent = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [8, 4], warpsPerCTA = [2, 1], order = [1, 0]}>}>
// ERROR: a layout of 2 dimensions has no dimension 3
// -----
// RUN:
#bad = #ttg.slice<{dim = 0, parent = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [2], order = [0]}>}>
// ERROR: a slice needs a layout of 2 dimensions
// -----
// RUN:
#bad = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32], warpsPerCTA = [2, 1], order = [1, 0]}>
// ERROR: must have as many elements each
// -----
// RUN:
#bad = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [8, 4], warpsPerCTA = [2, 1], order = [1, 1]}>
// ERROR: `order` [1, 1] is no permutation
// -----
// RUN:
#bad = #ttg.padded_shared<[48:+4] {order = [1, 0]}>
// ERROR: 48:+4: both must be powers of two
// -----
// RUN:
#bad = #ttg.padded_shared<[64:+4, 64:+8] {order = [1, 0]}>
// ERROR: the interval 64 is given twice
// -----
// RUN:
#bad = #ttg.padded_shared<[64:+4]>
// ERROR: a padded layout needs an `order`
// -----
// RUN:
#bad = #ttg.padded_shared<[64:+4] {order = [1, 0], colour = 1}>
// ERROR: `colour` is no parameter of a padded layout
// -----
// RUN:
#bad = #ttng.tensor_memory_encoding<blockM = 32, blockN = 64, unpacked = true>
// ERROR: `blockM` must be 64 or 128, not 32
// -----
// RUN:
#bad = #ttng.tensor_memory_encoding<blockM = 128, blockN = 1, unpacked = false>
// ERROR: `blockN` must be a power of two
// -----
// RUN:
#bad = #ttng.tensor_memory_scales_encoding<CTASplitM = 0>
// ERROR: must be 1 at least
// -----
// RUN:
#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [2], order = [0]}>
module attributes {"ttg.num-warps" = 4 : i32} {
tt.func @f() { %0 = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #b> tt.return }
}
// ERROR: is for 2 warps, but there are 4
// -----
// RUN:
#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [16], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f() { %0 = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #b> tt.return }
}
// ERROR: is for 16 threads of a warp, but there are 32
// -----
// RUN:
#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-warps" = 4 : i32} {
tt.func @f() {
  ttg.warp_specialize()
  default {
    ttg.warp_yield
  }
  partition0() num_warps(2) {
    %0 = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #b>
    ttg.warp_return
  } : () -> ()
  tt.return
}
}
// ERROR: is for 4 warps, but there are 2
// -----
// RUN:
tt.func @f() { %0 = tt.make_range {start = 4 : i32, end = 4 : i32} : tensor<0xi32> tt.return }
// ERROR: a range [4, 4) is empty
// -----
// RUN:
tt.func @f() { %0 = tt.make_range {start = 0 : i32, end = 4 : i32} : tensor<4xi64> tt.return }
// ERROR: a range has elements of i32
// -----
// RUN:
tt.func @f(%x: tensor<4x4xi8>) { %0 = ttg.fp4_to_fp %x {axis = 0 : i32} : tensor<4x4xi8> -> tensor<4x8xf16> tt.return }
// ERROR: does not hold tensor<4x8xf16> along 0
// -----
// RUN:
#bad = #ttg.dot_op<{opIdx = 1, parent = #ttg.amd_mfma<{version = 2, warpsPerCTA = [1, 1], instrShape = [32, 32], isTransposed = false}>}>
// ERROR: `kWidth` must be given for products of mfma
// -----
// RUN:
#m = #ttg.amd_wmma<{version = 1, warpsPerCTA = [1, 4]}>
#bad = #ttg.dot_op<{opIdx = 1, parent = #m, kWidth = 4}>
// ERROR: `kWidth` must be 8 or 16 for products of wmma 1, not 4
// -----
// RUN:
#m = #ttg.amd_wmma<{version = 2, warpsPerCTA = [1, 4]}>
#good = #ttg.dot_op<{opIdx = 1, parent = #m, kWidth = 4}>
#bad = #ttg.dot_op<{opIdx = 1, parent = #m, kWidth = 32}>
// ERROR: `kWidth` must be 4, 8 or 16 for products of wmma 2, not 32
// -----
// RUN:
#bad = #ttg.amd_mfma<{version = 5, warpsPerCTA = [1, 1], instrShape = [32, 32], isTransposed = false}>
// ERROR: the version of mfma must be 0 to 4, not 5
// -----
// RUN:
#bad = #ttg.amd_mfma<{version = 2, warpsPerCTA = [1, 1], instrShape = [8, 32], isTransposed = false}>
// ERROR: there is no mfma of 8x32
// -----
// RUN:
#good = #ttg.amd_mfma<{version = 2, warpsPerCTA = [1, 1], instrShape = [16, 16], isTransposed = false, elementType = f64}>
#bad = #ttg.amd_mfma<{version = 2, warpsPerCTA = [1, 1], instrShape = [16, 16], isTransposed = false, elementType = bf16}>
// ERROR: mfma accumulates in f64, f32 or i32, not in bf16
// -----
// RUN: -assign-layouts
#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0], CTAsPerCGA = [2], CTASplitNum = [2], CTAOrder = [0]}>
tt.func public @f() { %0 = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #b> tt.return }
// ERROR: not supported yet: the layout #ttg.blocked<
// -----
// RUN: -assign-layouts
tt.func public @f(%x: tensor<f32>) { tt.return }
// ERROR: not supported yet: a tensor without dimensions
// -----
// RUN: -assign-layouts
module { tt.func public @f() { tt.return } }
tt.func public @f() { tt.return }
// ERROR: not supported yet: a module within a module, or beside something else, is not compiled
// -----
// RUN: -lower-descriptors
tt.func public @f(%c: i1, %i: i32, %p: !tt.ptr<f32>, %s: i64) -> tensor<16xf32> {
  %one = arith.constant 1 : i64
  %0 = ub.poison : !tt.tensordesc<tensor<16xf32>>
  %1 = tt.make_tensor_descriptor %p, [%i], [%one] : !tt.ptr<f32>, !tt.tensordesc<tensor<16xf32>>
  %2 = arith.select %c, %0, %1 : !tt.tensordesc<tensor<16xf32>>
  %3 = tt.descriptor_load %2[%i] : !tt.tensordesc<tensor<16xf32>> -> tensor<16xf32>
  tt.return %3 : tensor<16xf32>
}
// ERROR: not supported yet: a tensor descriptor that comes from here
