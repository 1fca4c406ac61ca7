// Two iterations become one; what is left over runs behind, unpipelined.
// RUN: -unroll-loops
// CHECK: tt.func @f
// CHECK: [[MAIN:%.*]] = scf.for
// CHECK-NEXT: math.exp
// CHECK: arith.addi
// CHECK: math.exp
// CHECK: scf.yield
// CHECK-NEXT: } {tt.num_stages = 3 : i32}
// CHECK: scf.for {{.*}} iter_args({{.*}} = [[MAIN]])
// CHECK-NEXT: math.exp
// CHECK-NOT: math.exp
// CHECK: } {tt.num_stages = 1 : i32}
tt.func @f(%p: !tt.ptr<f32>, %lb: i32, %ub: i32, %s: i32, %x: f32) {
  %r = scf.for %i = %lb to %ub step %s iter_args(%a = %x) -> (f32) : i32 {
    %e = math.exp %a : f32
    %f = arith.sitofp %i : i32 to f32
    %b = arith.addf %e, %f : f32
    scf.yield %b : f32
  } {tt.loop_unroll_factor = 2 : i32, tt.num_stages = 3 : i32}
  tt.store %p, %r : !tt.ptr<f32>
  tt.return
}
// -----
// Where nothing is left over there is no second loop; a factor of 1 asks for nothing.
// RUN: -unroll-loops
// CHECK: tt.func @f
// CHECK: scf.for
// CHECK-NEXT: math.exp
// CHECK-NEXT: math.exp
// CHECK-NEXT: math.exp
// CHECK-NEXT: math.exp
// CHECK-NEXT: scf.yield
// CHECK: scf.for
// CHECK-NEXT: math.log
// CHECK-NEXT: scf.yield
// CHECK-NOT: scf.for
tt.func @f(%p: !tt.ptr<f32>, %x: f32, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c16 = arith.constant 16 : i32
  %r = scf.for %i = %c0 to %c16 step %c1 iter_args(%a = %x) -> (f32) : i32 {
    %e = math.exp %a : f32
    scf.yield %e : f32
  } {tt.loop_unroll_factor = 4 : i32}
  %q = scf.for %i = %c0 to %n step %c1 iter_args(%a = %r) -> (f32) : i32 {
    %e = math.log %a : f32
    scf.yield %e : f32
  } {tt.loop_unroll_factor = 1 : i32}
  tt.store %p, %q : !tt.ptr<f32>
  tt.return
}
