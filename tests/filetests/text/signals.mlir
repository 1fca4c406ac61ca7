// Signals of 32 and 64 bits: what is loaded before a wait is loaded again behind it.
// RUN: -canonicalize -cse
module attributes {tle.rank_scratch = 512 : i32, tle.ranks = 8 : i32} {
  tt.func @f(%flag: !tt.ptr<i32>, %count: !tt.ptr<i64>, %x: !tt.ptr<f32>, %n: i64, %memory: !tt.ptr<i64>) {
    %c1 = arith.constant 1 : i32
    %a = tt.load %x : !tt.ptr<f32>
    tt.wait_signal %flag, %c1 : !tt.ptr<i32>, i32
    %b = tt.load %x : !tt.ptr<f32>
    tt.wait_signal %count, %n, %memory : !tt.ptr<i64>, i64, !tt.ptr<i64>
    tt.store %x, %a : !tt.ptr<f32>
    tt.store %x, %b : !tt.ptr<f32>
    tt.return
  }
}
// CHECK: module attributes {tle.rank_scratch = 512 : i32, tle.ranks = 8 : i32}
// CHECK: tt.load
// CHECK-NEXT: tt.wait_signal %arg0, %c1_i32 : !tt.ptr<i32>, i32
// CHECK-NEXT: tt.load
// CHECK-NEXT: tt.wait_signal %arg1, %arg3, %arg4 : !tt.ptr<i64>, i64, !tt.ptr<i64>
