// Barriers of programs: of the whole cluster or grid, and of as many of its programs as are counted.
// RUN: -canonicalize -cse
module attributes {tle.cluster_dims = array<i32: 2, 2, 1>} {
  tt.func @f(%n: i32) {
    tt.program_barrier cluster {group = 0 : i32}
    tt.program_barrier cluster, %n {group = 1 : i32}
    tt.program_barrier grid {group = 2 : i32}
    tt.program_barrier grid {group = 2 : i32}
    tt.return
  }
}
// CHECK: module attributes {tle.cluster_dims = array<i32: 2, 2, 1>}
// CHECK: tt.program_barrier cluster {group = 0 : i32}
// CHECK: tt.program_barrier cluster, %arg0 {group = 1 : i32}
// CHECK: tt.program_barrier grid {group = 2 : i32}
// CHECK: tt.program_barrier grid {group = 2 : i32}
// -----
// Behind a barrier of programs others may have written: what is loaded before is loaded again, and stays in a loop.
// RUN: -cse -licm
tt.func @f(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // CHECK: tt.load
  // CHECK-NEXT: tt.program_barrier grid
  // CHECK-NEXT: tt.load
  %x = tt.load %p : !tt.ptr<f32>
  tt.program_barrier grid {group = 0 : i32}
  %y = tt.load %p : !tt.ptr<f32>
  // CHECK: scf.for
  // CHECK-NEXT: tt.program_barrier grid
  // CHECK-NEXT: tt.load
  %s = scf.for %i = %c0 to %n step %c1 iter_args(%a = %y) -> (f32) : i32 {
    tt.program_barrier grid {group = 0 : i32}
    %z = tt.load %p : !tt.ptr<f32>
    %b = arith.addf %a, %z : f32
    scf.yield %b : f32
  }
  %t = arith.addf %x, %s : f32
  tt.store %q, %t : !tt.ptr<f32>
  tt.return
}
