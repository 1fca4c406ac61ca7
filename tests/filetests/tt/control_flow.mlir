// Branches and loops whose course is known.
// RUN: -canonicalize
tt.func @ifs(%c: i1, %x: i32, %t: tensor<8xf32>, %u: tensor<8xf32>) -> (i32, i32, i32, tensor<8xf32>) {
  %true = arith.constant true
  %0 = scf.if %true -> (i32) {
    %1 = arith.muli %x, %x : i32
    scf.yield %1 : i32
  } else {
    scf.yield %x : i32
  }
  %c1 = arith.constant 1 : i32
  // One scalar or another is a select, the same one is itself; a tensor stays in its branch.
  %2:4 = scf.if %c -> (i32, i32, tensor<8xf32>, i32) {
    %3 = arith.addi %x, %x : i32
    scf.yield %x, %c1, %t, %3 : i32, i32, tensor<8xf32>, i32
  } else {
    scf.yield %x, %x, %u, %x : i32, i32, tensor<8xf32>, i32
  }
  tt.return %0, %2#0, %2#1, %2#2 : i32, i32, i32, tensor<8xf32>
}
tt.func @loops(%x: i32, %p: !tt.ptr<i32>) -> (i32, i32, i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c4 = arith.constant 4 : i32
  // Never runs.
  %0 = scf.for %i = %c4 to %c1 step %c1 iter_args(%a = %x) -> (i32) : i32 {
    tt.store %p, %i : !tt.ptr<i32>
    scf.yield %i : i32
  }
  // Runs once.
  %1 = scf.for %i = %c1 to %c4 step %c4 iter_args(%a = %x) -> (i32) : i32 {
    %2 = arith.addi %a, %i : i32
    tt.store %p, %2 : !tt.ptr<i32>
    scf.yield %2 : i32
  }
  // Carries what does not change.
  %3:2 = scf.for %i = %c0 to %x step %c1 iter_args(%a = %x, %b = %c0) -> (i32, i32) : i32 {
    %4 = arith.addi %a, %b : i32
    tt.store %p, %a : !tt.ptr<i32>
    scf.yield %a, %4 : i32, i32
  }
  tt.return %0, %1, %3#0 : i32, i32, i32
}

// OUTPUT
// module {
//   tt.func @ifs(%arg0: i1, %arg1: i32, %arg2: tensor<8xf32>, %arg3: tensor<8xf32>) -> (i32, i32, i32, tensor<8xf32>) {
//     %c1_i32 = arith.constant 1 : i32
//     %0 = arith.muli %arg1, %arg1 : i32
//     %1 = arith.select %arg0, %c1_i32, %arg1 : i32
//     %2 = scf.if %arg0 -> (tensor<8xf32>) {
//       scf.yield %arg2 : tensor<8xf32>
//     } else {
//       scf.yield %arg3 : tensor<8xf32>
//     }
//     tt.return %0, %arg1, %1, %2 : i32, i32, i32, tensor<8xf32>
//   }
//   tt.func @loops(%arg0: i32, %arg1: !tt.ptr<i32>) -> (i32, i32, i32) {
//     %c0_i32 = arith.constant 0 : i32
//     %c1_i32 = arith.constant 1 : i32
//     %0 = arith.addi %arg0, %c1_i32 : i32
//     tt.store %arg1, %0 : !tt.ptr<i32>
//     %1:2 = scf.for %arg2 = %c0_i32 to %arg0 step %c1_i32 iter_args(%arg3 = %arg0, %arg4 = %c0_i32) -> (i32, i32)  : i32 {
//       %2 = arith.addi %arg0, %arg4 : i32
//       tt.store %arg1, %arg0 : !tt.ptr<i32>
//       scf.yield %arg0, %2 : i32, i32
//     }
//     tt.return %arg0, %0, %arg0 : i32, i32, i32
//   }
// }
