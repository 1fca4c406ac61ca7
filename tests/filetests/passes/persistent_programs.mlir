// A loop over the programs along x; what depends on no program's number stays in front of it.
// RUN: -persistent-programs -persistent=true
module {
  tt.func public @rows(%x: !tt.ptr<f32>, %n: i32) {
    %i = tt.get_program_id x : i32
    %all = tt.get_num_programs x : i32
    %two = arith.constant 2 : i32
    %width = arith.muli %n, %two : i32
    %row = arith.muli %i, %width : i32
    %at = arith.addi %row, %n : i32
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
// CHECK: arith.muli %arg1
// CHECK: arith.sitofp %arg2
// CHECK: scf.for %arg3 = [[FIRST]] to %arg2 step [[STEP]]
// CHECK-NEXT: arith.muli %arg3
// CHECK: tt.store
// CHECK-NEXT: } {ttg.programs}
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
// -----
// Programs along two axes: as many of the whole grid are started, and rounds of them go there and back.
// RUN: -persistent-programs -persistent=true
module {
  tt.func public @batches(%x: !tt.ptr<f32>, %n: i32) {
    %i = tt.get_program_id x : i32
    %j = tt.get_program_id y : i32
    %all = tt.get_num_programs y : i32
    %row = arith.muli %i, %n : i32
    %at = arith.addi %row, %j : i32
    %p = tt.addptr %x, %at : !tt.ptr<f32>, i32
    %v = arith.sitofp %all : i32 to f32
    tt.store %p, %v : !tt.ptr<f32>
    tt.return
  }
}
// CHECK: module attributes {ttg.programs_argument = 2 : i32, ttg.programs_axes = 3 : i32}
// CHECK-NEXT: tt.func public @batches(%arg0: !tt.ptr<f32>, %arg1: i32, %arg2: i32, %arg3: i32, %arg4: i32)
// CHECK: [[NUMBER:%[0-9]+]] = tt.get_program_id x
// CHECK-NEXT: [[STARTED:%[0-9]+]] = tt.get_num_programs x
// CHECK: [[XY:%[0-9]+]] = arith.muli %arg2, %arg3
// CHECK-NEXT: [[ALL:%[0-9]+]] = arith.muli [[XY]], %arg4
// CHECK-NEXT: [[ROUNDS:%[0-9]+]] = arith.divui [[ALL]], [[STARTED]]
// CHECK: [[LAST:%[0-9]+]] = arith.subi [[STARTED]],
// CHECK-NEXT: [[BACK:%[0-9]+]] = arith.subi [[LAST]], [[NUMBER]]
// CHECK: arith.cmpi ult
// CHECK: arith.sitofp %arg3
// CHECK: scf.for [[ROUND:%arg[0-9]+]]
// CHECK: arith.select {{.*}}, [[BACK]], [[NUMBER]]
// CHECK-NEXT: [[BEFORE:%[0-9]+]] = arith.muli [[ROUND]], [[STARTED]]
// CHECK-NEXT: [[AT:%[0-9]+]] = arith.addi [[BEFORE]],
// CHECK-NEXT: [[I:%[0-9]+]] = arith.remui [[AT]], %arg2
// CHECK-NEXT: [[LEFT:%[0-9]+]] = arith.divui [[AT]], %arg2
// CHECK-NEXT: [[J:%[0-9]+]] = arith.remui [[LEFT]], %arg3
// CHECK: arith.muli [[I]], %arg1
// CHECK-NEXT: arith.addi {{.*}}, [[J]]
// CHECK: tt.store
