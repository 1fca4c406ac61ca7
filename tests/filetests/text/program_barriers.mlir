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
