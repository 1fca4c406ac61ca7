// A function beside a module: both lie in a module that says nothing, and calls find the functions of their own.
// RUN: -canonicalize -cse
#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module @kernels attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @f() -> tensor<128xi32, #b> {
    %0 = tt.call @g() : () -> tensor<128xi32, #b>
    tt.return %0 : tensor<128xi32, #b>
  } loc(#at)
  tt.func private @g() -> tensor<128xi32, #b> {
    %0 = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #b>
    tt.return %0 : tensor<128xi32, #b>
  }
} loc(#at)
#at = loc("kernels.py":1:1)
tt.func @f(%x: i32) -> i32 {
  tt.return %x : i32
}

// OUTPUT
// #blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// module {
//   module @kernels attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
//     tt.func @f() -> tensor<128xi32, #blocked> {
//       %0 = tt.call @g() : () -> tensor<128xi32, #blocked>
//       tt.return %0 : tensor<128xi32, #blocked>
//     }
//     tt.func private @g() -> tensor<128xi32, #blocked> {
//       %0 = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32, #blocked>
//       tt.return %0 : tensor<128xi32, #blocked>
//     }
//   }
//   tt.func @f(%arg0: i32) -> i32 {
//     tt.return %arg0 : i32
//   }
// }
// -----
// Two modules, one of them in the generic form, each for its own number of warps.
// RUN:
#four = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#two = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [2], order = [0]}>
module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func @f() { %0 = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #four> tt.return }
}
"builtin.module"() ({
  tt.func @f() { %0 = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #two> tt.return }
}) {"ttg.num-warps" = 2 : i32} : () -> ()

// OUTPUT
// #blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// #blocked1 = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [2], order = [0]}>
// module {
//   module attributes {"ttg.num-warps" = 4 : i32} {
//     tt.func @f() {
//       %0 = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32, #blocked>
//       tt.return
//     }
//   }
//   module attributes {"ttg.num-warps" = 2 : i32} {
//     tt.func @f() {
//       %0 = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32, #blocked1>
//       tt.return
//     }
//   }
// }
