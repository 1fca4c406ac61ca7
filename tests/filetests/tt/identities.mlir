// Identities that hold for every value; `x + 0.0` is not one of them (-0.0).
// RUN: -canonicalize
tt.func @ints(%x: i32, %b: i1) -> (i32, i32, i32, i32, i32, i32, i1, i1, i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %true = arith.constant true
  %false = arith.constant false
  %0 = arith.addi %x, %c0 : i32
  %1 = arith.muli %0, %c1 : i32
  %2 = arith.subi %x, %x : i32
  %3 = arith.andi %x, %x : i32
  %4 = arith.remsi %x, %c1 : i32
  %5 = arith.select %b, %1, %1 : i32
  %6 = arith.select %b, %true, %false : i1
  %7 = arith.select %b, %false, %true : i1
  %8 = arith.minsi %x, %x : i32
  %9 = arith.addi %x, %c1 : i32
  %10 = arith.subi %9, %c1 : i32
  tt.return %0, %1, %2, %3, %4, %5, %6, %7, %10 : i32, i32, i32, i32, i32, i32, i1, i1, i32
}
tt.func @floats(%x: f32, %h: f16) -> (f32, f32, f32, f32, f16) {
  %zero = arith.constant 0.0 : f32
  %minus = arith.constant -0.0 : f32
  %one = arith.constant 1.0 : f32
  %0 = arith.addf %x, %zero : f32
  %1 = arith.addf %x, %minus : f32
  %2 = arith.subf %x, %zero : f32
  %3 = arith.mulf %one, %x : f32
  %4 = arith.extf %h : f16 to f32
  %5 = arith.truncf %4 : f32 to f16
  tt.return %0, %1, %2, %3, %5 : f32, f32, f32, f32, f16
}
// A multiple of a power of two is one where it overflows, too; one of 96 is not.
tt.func @multiples(%x: i32) -> (i32, i32, i32) {
  %c64 = arith.constant 64 : i32
  %c96 = arith.constant 96 : i32
  %c192 = arith.constant 192 : i32
  %0 = arith.muli %x, %c192 : i32
  %1 = arith.divsi %0, %c64 : i32
  %2 = arith.muli %1, %c64 : i32
  %3 = arith.divsi %0, %c96 : i32
  %4 = arith.muli %3, %c96 : i32
  %5 = arith.divsi %x, %c64 : i32
  %6 = arith.muli %5, %c64 : i32
  tt.return %2, %4, %6 : i32, i32, i32
}

// OUTPUT
// module {
//   tt.func @ints(%arg0: i32, %arg1: i1) -> (i32, i32, i32, i32, i32, i32, i1, i1, i32) {
//     %true = arith.constant true
//     %c0_i32 = arith.constant 0 : i32
//     %0 = arith.xori %arg1, %true : i1
//     tt.return %arg0, %arg0, %c0_i32, %arg0, %c0_i32, %arg0, %arg1, %0, %arg0 : i32, i32, i32, i32, i32, i32, i1, i1, i32
//   }
//   tt.func @floats(%arg0: f32, %arg1: f16) -> (f32, f32, f32, f32, f16) {
//     %cst = arith.constant 0.000000e+00 : f32
//     %0 = arith.addf %arg0, %cst : f32
//     tt.return %0, %arg0, %arg0, %arg0, %arg1 : f32, f32, f32, f32, f16
//   }
//   tt.func @multiples(%arg0: i32) -> (i32, i32, i32) {
//     %c64_i32 = arith.constant 64 : i32
//     %c96_i32 = arith.constant 96 : i32
//     %c192_i32 = arith.constant 192 : i32
//     %0 = arith.muli %arg0, %c192_i32 : i32
//     %1 = arith.divsi %0, %c96_i32 : i32
//     %2 = arith.muli %1, %c96_i32 : i32
//     %3 = arith.divsi %arg0, %c64_i32 : i32
//     %4 = arith.muli %3, %c64_i32 : i32
//     tt.return %0, %2, %4 : i32, i32, i32
//   }
// }
