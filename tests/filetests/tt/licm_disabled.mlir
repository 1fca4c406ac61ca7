// A loop that says so keeps what does not change.
// RUN: -licm
tt.func @f(%n: i32, %d: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %0 = arith.muli %n, %d : i32
    tt.print "x: " {isSigned = array<i32: 1>} : %0 : i32
  } {tt.disable_licm}
  tt.return
}

// OUTPUT
// module {
//   tt.func @f(%arg0: i32, %arg1: i32) {
//     %c0_i32 = arith.constant 0 : i32
//     %c1_i32 = arith.constant 1 : i32
//     scf.for %arg2 = %c0_i32 to %arg0 step %c1_i32  : i32 {
//       %0 = arith.muli %arg0, %arg1 : i32
//       tt.print "x: " {isSigned = array<i32: 1>} : %0 : i32
//     } {tt.disable_licm}
//     tt.return
//   }
// }
