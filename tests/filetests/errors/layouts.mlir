// RUN:
// A layout is checked where it is read, and against the warps that run what has it.
#b = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [8, 4], warpsPerCTA = [2, 1], order = [1, 0]}>
#bad = #ttg.dot_op<{opIdx = 2, parent = #b}>
// ERROR: a product has the operands 0 and 1, not 2
// -----
// RUN:
#b = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [8, 4], warpsPerCTA = [2, 1], order = [1, 0]}>
#bad = #ttg.dot_op<{opIdx = 0, parent = #b, kWidth = 4}>
// ERROR: `kWidth` says nothing where the result's layout is blocked
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
