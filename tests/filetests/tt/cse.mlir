// Of equal operations the one that dominates stays; loads are merged where nothing writes between them.
// RUN: -cse
tt.func @f(%x: i32, %y: i32, %p: !tt.ptr<i32>, %c: i1) {
  %0 = arith.addi %x, %y : i32
  %1 = arith.addi %y, %x : i32
  %2 = arith.subi %x, %y : i32
  %3 = arith.subi %y, %x : i32
  %4 = tt.load %p : !tt.ptr<i32>
  %5 = tt.load %p : !tt.ptr<i32>
  tt.print "v: " {isSigned = array<i32: 1, 1, 1, 1, 1, 1>} : %0, %1, %2, %3, %4, %5 : i32, i32, i32, i32, i32, i32
  %6 = tt.load %p : !tt.ptr<i32>
  scf.if %c {
    %7 = arith.muli %x, %y : i32
    %8 = arith.addi %x, %y : i32
    %9 = tt.load %p : !tt.ptr<i32>
    tt.print "w: " {isSigned = array<i32: 1, 1, 1, 1>} : %6, %7, %8, %9 : i32, i32, i32, i32
  }
  // The branch does not dominate this one.
  %10 = arith.muli %x, %y : i32
  tt.print "x: " {isSigned = array<i32: 1>} : %10 : i32
  tt.return
}

// OUTPUT
// module {
//   tt.func @f(%arg0: i32, %arg1: i32, %arg2: !tt.ptr<i32>, %arg3: i1) {
//     %0 = arith.addi %arg0, %arg1 : i32
//     %1 = arith.subi %arg0, %arg1 : i32
//     %2 = arith.subi %arg1, %arg0 : i32
//     %3 = tt.load %arg2 : !tt.ptr<i32>
//     tt.print "v: " {isSigned = array<i32: 1, 1, 1, 1, 1, 1>} : %0, %0, %1, %2, %3, %3 : i32, i32, i32, i32, i32, i32
//     %4 = tt.load %arg2 : !tt.ptr<i32>
//     scf.if %arg3 {
//       %6 = arith.muli %arg0, %arg1 : i32
//       %7 = tt.load %arg2 : !tt.ptr<i32>
//       tt.print "w: " {isSigned = array<i32: 1, 1, 1, 1>} : %4, %6, %0, %7 : i32, i32, i32, i32
//     }
//     %5 = arith.muli %arg0, %arg1 : i32
//     tt.print "x: " {isSigned = array<i32: 1>} : %5 : i32
//     tt.return
//   }
// }
// -----
// A combine function uses only its own values, even of constants.
// RUN: -canonicalize -cse
tt.func @combine(%x: tensor<8xf32>) -> (f32, f32) {
  %c1 = arith.constant 1.0 : f32
  %0 = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %1 = arith.constant 1.0 : f32
    %2 = arith.addf %a, %1 : f32
    %3 = arith.constant 1.0 : f32
    %4 = arith.addf %b, %3 : f32
    %5 = arith.mulf %2, %4 : f32
    tt.reduce.return %5 : f32
  }) : (tensor<8xf32>) -> f32
  tt.return %0, %c1 : f32, f32
}

// OUTPUT
// module {
//   tt.func @combine(%arg0: tensor<8xf32>) -> (f32, f32) {
//     %cst = arith.constant 1.000000e+00 : f32
//     %0 = "tt.reduce"(%arg0) <{axis = 0 : i32}> ({
//     ^bb0(%arg1: f32, %arg2: f32):
//       %cst_0 = arith.constant 1.000000e+00 : f32
//       %1 = arith.addf %arg1, %cst_0 : f32
//       %2 = arith.addf %arg2, %cst_0 : f32
//       %3 = arith.mulf %1, %2 : f32
//       tt.reduce.return %3 : f32
//     }) : (tensor<8xf32>) -> f32
//     tt.return %0, %cst : f32, f32
//   }
// }
