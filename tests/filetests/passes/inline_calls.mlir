// A function that can be called stays one, with the encodings of its signature; what it does with shared memory begins behind its
// caller's, and between two calls a barrier stands.
// RUN: -inline-calls -assign-layouts -allocate-shared -membar
// CHECK: ttg.shared = 1040 : i32
// CHECK: tt.func public @k
// CHECK: tt.reduce
// CHECK: allocation.offset = 0 : i32
// CHECK: tt.call @sum({{.*}}) : (tensor<128xf32, #blocked>) -> f32
// CHECK-NEXT: tt.splat
// CHECK-NEXT: ttg.barrier
// CHECK-NEXT: tt.call @sum({{.*}}) : (tensor<128xf32, #blocked>) -> f32
// CHECK: tt.func private @sum(%arg0: tensor<128xf32, #blocked>) -> f32
// CHECK: allocation.offset = 1024 : i32
tt.func public @k(%p: !tt.ptr<f32>) {
  %r = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %b = tt.splat %p : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
  %q = tt.addptr %b, %r : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  %x = tt.load %q : tensor<128x!tt.ptr<f32>>
  %own = "tt.reduce"(%x) ({
  ^bb0(%a: f32, %c: f32):
    %s = arith.addf %a, %c : f32
    tt.reduce.return %s : f32
  }) {axis = 0 : i32} : (tensor<128xf32>) -> f32
  %0 = tt.call @sum(%x) : (tensor<128xf32>) -> f32
  %y = tt.splat %0 : f32 -> tensor<128xf32>
  %1 = tt.call @sum(%y) : (tensor<128xf32>) -> f32
  %2 = arith.addf %1, %own : f32
  tt.store %p, %2 : !tt.ptr<f32>
  tt.return
}
tt.func private @sum(%x: tensor<128xf32>) -> f32 attributes {noinline = true} {
  %0 = "tt.reduce"(%x) ({
  ^bb0(%a: f32, %c: f32):
    %s = arith.addf %a, %c : f32
    tt.reduce.return %s : f32
  }) {axis = 0 : i32} : (tensor<128xf32>) -> f32
  tt.return %0 : f32
}
// -----
// One that has to do with descriptors is inlined; others stay.
// RUN: -inline-calls
// CHECK: tt.func public @k
// CHECK: tt.make_tensor_descriptor
// CHECK-NEXT: tt.descriptor_load
// CHECK-NEXT: tt.call @plain
// CHECK-NEXT: tt.call @total
// CHECK-NOT: @load
tt.func public @k(%p: !tt.ptr<f32>, %n: i32) {
  %x = tt.call @load(%p, %n) : (!tt.ptr<f32>, i32) -> tensor<16x16xf32>
  tt.call @plain(%p) : (!tt.ptr<f32>) -> ()
  %t = tt.call @total(%x) : (tensor<16x16xf32>) -> tensor<16xf32>
  %q = tt.splat %p : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  tt.store %q, %t : tensor<16x!tt.ptr<f32>>
  tt.return
}
tt.func private @total(%x: tensor<16x16xf32>) -> tensor<16xf32> attributes {noinline = true} {
  %0 = "tt.reduce"(%x) ({
  ^bb0(%a: f32, %c: f32):
    %s = arith.addf %a, %c : f32
    tt.reduce.return %s : f32
  }) {axis = 0 : i32} : (tensor<16x16xf32>) -> tensor<16xf32>
  tt.return %0 : tensor<16xf32>
}
tt.func private @load(%p: !tt.ptr<f32>, %n: i32) -> tensor<16x16xf32> attributes {noinline = true} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i64
  %c16 = arith.constant 16 : i64
  %d = tt.make_tensor_descriptor %p, [%n, %n], [%c16, %c1] : !tt.ptr<f32>, !tt.tensordesc<tensor<16x16xf32>>
  %x = tt.descriptor_load %d[%c0, %c0] : !tt.tensordesc<tensor<16x16xf32>> -> tensor<16x16xf32>
  tt.return %x : tensor<16x16xf32>
}
tt.func private @plain(%p: !tt.ptr<f32>) attributes {noinline = true} {
  %c = arith.constant 1.0 : f32
  tt.store %p, %c : !tt.ptr<f32>
  tt.return
}
// -----
// A cluster's tiles are split within one function.
// RUN: -num-ctas=2 -inline-calls
// CHECK: tt.func @k
// CHECK-NOT: tt.call
tt.func @k(%p: !tt.ptr<f32>) {
  tt.call @plain(%p) : (!tt.ptr<f32>) -> ()
  tt.return
}
tt.func private @plain(%p: !tt.ptr<f32>) attributes {noinline = true} {
  %c = arith.constant 1.0 : f32
  tt.store %p, %c : !tt.ptr<f32>
  tt.return
}
// -----
// The counters of programs that wait for each other are the kernel's.
// RUN: -inline-calls
// CHECK: tt.func @k
// CHECK-NEXT: tt.program_barrier grid {group = 0 : i32}
// CHECK-NOT: tt.call
tt.func @k() {
  tt.call @wait() : () -> ()
  tt.return
}
tt.func private @wait() attributes {noinline = true} {
  tt.program_barrier grid {group = 0 : i32}
  tt.return
}
