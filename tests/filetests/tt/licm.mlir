// What does not change leaves the loop, through both loops here. A division that may fault stays, as do loads.
// RUN: -licm
tt.func @f(%n: i32, %d: i32, %p: !tt.ptr<i32>, %t: tensor<8xi32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    scf.for %j = %c0 to %n step %c1 : i32 {
      %0 = arith.muli %n, %d : i32
      %1 = arith.muli %i, %d : i32
      %2 = arith.divsi %n, %d : i32
      %c7 = arith.constant 7 : i32
      %3 = arith.divsi %n, %c7 : i32
      %4 = tt.load %p : !tt.ptr<i32>
      %5 = arith.addi %1, %j : i32
      tt.print "x: " {isSigned = array<i32: 1, 1, 1, 1, 1, 1>} : %0, %1, %2, %3, %4, %5 : i32, i32, i32, i32, i32, i32
    }
  }
  tt.return
}

// OUTPUT
// module {
//   tt.func @f(%arg0: i32, %arg1: i32, %arg2: !tt.ptr<i32>, %arg3: tensor<8xi32>) {
//     %c0_i32 = arith.constant 0 : i32
//     %c1_i32 = arith.constant 1 : i32
//     %0 = arith.muli %arg0, %arg1 : i32
//     %c7_i32 = arith.constant 7 : i32
//     %1 = arith.divsi %arg0, %c7_i32 : i32
//     scf.for %arg4 = %c0_i32 to %arg0 step %c1_i32  : i32 {
//       %2 = arith.muli %arg4, %arg1 : i32
//       scf.for %arg5 = %c0_i32 to %arg0 step %c1_i32  : i32 {
//         %3 = arith.divsi %arg0, %arg1 : i32
//         %4 = tt.load %arg2 : !tt.ptr<i32>
//         %5 = arith.addi %2, %arg5 : i32
//         tt.print "x: " {isSigned = array<i32: 1, 1, 1, 1, 1, 1>} : %0, %2, %3, %1, %4, %5 : i32, i32, i32, i32, i32, i32
//       }
//     }
//     tt.return
//   }
// }
