// A carried value that only feeds itself goes, through nested loops and branches.
// RUN: -dce
tt.func @f(%n: i32, %c: i1, %p: !tt.ptr<f32>, %x: f32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %0:3 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %b = %c0, %d = %c1) -> (f32, i32, i32) : i32 {
    %1 = arith.addf %a, %x : f32
    %2 = arith.addi %b, %c1 : i32
    %3:2 = scf.for %j = %c0 to %n step %c1 iter_args(%e = %d, %g = %1) -> (i32, f32) : i32 {
      %4 = arith.addi %e, %j : i32
      %5 = arith.mulf %g, %g : f32
      scf.yield %4, %5 : i32, f32
    }
    %6:2 = scf.if %c -> (i32, f32) {
      scf.yield %3#0, %3#1 : i32, f32
    } else {
      scf.yield %2, %1 : i32, f32
    }
    scf.yield %6#1, %2, %6#0 : f32, i32, i32
  }
  tt.store %p, %0#0 : !tt.ptr<f32>
  %7 = tt.load %p : !tt.ptr<f32>
  %9 = tt.splat %x : f32 -> tensor<8xf32>

  %8 = "tt.reduce"(%9) <{axis = 0 : i32}> ({
  ^bb0(%q: f32, %r: f32):
    tt.reduce.return %q : f32
  }) : (tensor<8xf32>) -> f32
  tt.return
}

// OUTPUT
// module {
//   tt.func @f(%arg0: i32, %arg1: i1, %arg2: !tt.ptr<f32>, %arg3: f32) {
//     %c0_i32 = arith.constant 0 : i32
//     %c1_i32 = arith.constant 1 : i32
//     %0 = scf.for %arg4 = %c0_i32 to %arg0 step %c1_i32 iter_args(%arg5 = %arg3) -> (f32)  : i32 {
//       %1 = arith.addf %arg5, %arg3 : f32
//       %2 = scf.for %arg6 = %c0_i32 to %arg0 step %c1_i32 iter_args(%arg7 = %1) -> (f32)  : i32 {
//         %4 = arith.mulf %arg7, %arg7 : f32
//         scf.yield %4 : f32
//       }
//       %3 = scf.if %arg1 -> (f32) {
//         scf.yield %2 : f32
//       } else {
//         scf.yield %1 : f32
//       }
//       scf.yield %3 : f32
//     }
//     tt.store %arg2, %0 : !tt.ptr<f32>
//     tt.return
//   }
// }
// -----
// What a while carries, and what it does: it may run for ever, so it stays.
// RUN: -dce
tt.func @w(%n: i32, %p: !tt.ptr<i32>) -> i32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %0:3 = scf.while (%a = %n, %b = %c0, %c = %c1) : (i32, i32, i32) -> (i32, i32, i32) {
    %1 = arith.cmpi sgt, %a, %c0 : i32
    %2 = arith.addi %c, %c1 : i32
    scf.condition(%1) %a, %b, %2 : i32, i32, i32
  } do {
  ^bb0(%a: i32, %b: i32, %c: i32):
    %3 = arith.subi %a, %c1 : i32
    %4 = arith.addi %b, %a : i32
    scf.yield %3, %4, %c : i32, i32, i32
  }
  tt.return %0#1 : i32
}

// OUTPUT
// module {
//   tt.func @w(%arg0: i32, %arg1: !tt.ptr<i32>) -> i32 {
//     %c0_i32 = arith.constant 0 : i32
//     %c1_i32 = arith.constant 1 : i32
//     %0:2 = scf.while (%arg2 = %arg0, %arg3 = %c0_i32) : (i32, i32) -> (i32, i32) {
//       %1 = arith.cmpi sgt, %arg2, %c0_i32 : i32
//       scf.condition(%1) %arg2, %arg3 : i32, i32
//     } do {
//     ^bb0(%arg2: i32, %arg3: i32):
//       %1 = arith.subi %arg2, %c1_i32 : i32
//       %2 = arith.addi %arg3, %arg2 : i32
//       scf.yield %1, %2 : i32, i32
//     }
//     tt.return %0#1 : i32
//   }
// }
