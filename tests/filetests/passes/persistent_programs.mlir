// A loop over the programs along x; what depends on no program's number stays in front of it.
// RUN: -persistent-programs -persistent=true
module {
  tt.func public @rows(%x: !tt.ptr<f32>, %n: i32) {
    %i = tt.get_program_id x : i32
    %j = tt.get_program_id y : i32
    %all = tt.get_num_programs x : i32
    %two = arith.constant 2 : i32
    %width = arith.muli %n, %two : i32
    %row = arith.muli %i, %width : i32
    %at = arith.addi %row, %j : i32
    %p = tt.addptr %x, %at : !tt.ptr<f32>, i32
    %v = arith.sitofp %all : i32 to f32
    tt.store %p, %v : !tt.ptr<f32>
    tt.return
  }
}
// CHECK: module attributes {ttg.programs_argument = 2 : i32}
// CHECK-NEXT: tt.func public @rows(%arg0: !tt.ptr<f32>, %arg1: i32, %arg2: i32)
// CHECK: [[FIRST:%[0-9]+]] = tt.get_program_id x
// CHECK-NEXT: [[STEP:%[0-9]+]] = tt.get_num_programs x
// CHECK-NEXT: tt.get_program_id y
// CHECK: arith.muli %arg1
// CHECK: arith.sitofp %arg2
// CHECK: scf.for %arg3 = [[FIRST]] to %arg2 step [[STEP]]
// CHECK-NEXT: arith.muli %arg3
// CHECK: tt.store
// CHECK: tt.return
// -----
// Without the option nothing changes.
// RUN: -persistent-programs
module {
  tt.func public @same(%x: !tt.ptr<i32>) {
    %i = tt.get_program_id x : i32
    tt.store %x, %i : !tt.ptr<i32>
    tt.return
  }
}
// CHECK-NOT: scf.for
// CHECK: tt.return
