// RUN: -lower-descriptors
tt.func public @block(%d: !tt.tensordesc<tensor<16x32xf16>>, %m: i32, %n: i32, %s: i64, %one: i64, %i: i32, %p: !tt.ptr<f16>) {
  %x = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<tensor<16x32xf16>> -> tensor<16x32xf16>
  %e = tt.make_tensor_descriptor %p, [%m, %n], [%s, %one] : <f16>, <tensor<16x32xf16>>
  tt.descriptor_store %e[%i, %i], %x : !tt.tensordesc<tensor<16x32xf16>>, tensor<16x32xf16>
  tt.return
}
// CHECK: tt.func public @block([[D:%.*]]: !tt.ptr<f16> {tt.divisibility = 16 : i32}, [[M:%.*]]: i32, [[N:%.*]]: i32, [[S:%.*]]: i64,
// CHECK: [[I:%.*]] = arith.extsi
// CHECK: [[ROW:%.*]] = arith.muli [[I]], [[S]] : i64
// CHECK: [[FIRST:%.*]] = arith.addi [[ROW]], [[I]] : i64
// CHECK: tt.addptr [[D]], [[FIRST]]
// CHECK: arith.cmpi ult
// CHECK: arith.cmpi ult
// CHECK: [[X:%.*]] = tt.load
// CHECK: tt.store {{.*}}, [[X]],
// CHECK-NOT: tensordesc

// -----

// A loop carries the parts of a descriptor that it changes.
// RUN: -lower-descriptors
tt.func public @carried(%d: !tt.tensordesc<tensor<8x16xf32>>, %m: i32, %n: i32, %s: i64, %one: i64,
                        %e: !tt.tensordesc<tensor<8x16xf32>>, %m1: i32, %n1: i32, %s1: i64, %one1: i64,
                        %c: i1, %k: i32, %out: tensor<8x16x!tt.ptr<f32>>) {
  %zero = arith.constant 0 : i32
  %step = arith.constant 1 : i32
  %which = scf.if %c -> (!tt.tensordesc<tensor<8x16xf32>>) {
    tt.assert %c, "" : i1
    scf.yield %d : !tt.tensordesc<tensor<8x16xf32>>
  } else {
    scf.yield %e : !tt.tensordesc<tensor<8x16xf32>>
  }
  %last = scf.for %i = %zero to %k step %step iter_args(%w = %which) -> (!tt.tensordesc<tensor<8x16xf32>>) : i32 {
    %x = tt.descriptor_load %w[%i, %zero] : !tt.tensordesc<tensor<8x16xf32>> -> tensor<8x16xf32>
    tt.store %out, %x : tensor<8x16x!tt.ptr<f32>>
    scf.yield %d : !tt.tensordesc<tensor<8x16xf32>>
  }
  tt.return
}
// CHECK: arith.select {{.*}} : !tt.ptr<f32>
// CHECK: scf.for {{.*}} -> (!tt.ptr<f32>, i32, i32, i64)
// CHECK: tt.load
// CHECK-NOT: tensordesc

// -----

// Padding with NaN, rows of a matrix, and an atomic reduction.
// RUN: -lower-descriptors
tt.func public @rows(%p: !tt.ptr<f16>, %q: !tt.ptr<i32>, %m: i32, %s: i64, %r: tensor<8xi32>, %v: tensor<8x16xi32>) {
  %one = arith.constant 1 : i64
  %zero = arith.constant 0 : i32
  %d = tt.make_tensor_descriptor %p, [%m, %m], [%s, %one] {padding = 2 : i32} : <f16>, <tensor<1x16xf16>>
  %x = tt.descriptor_gather %d[%r, %zero] : (!tt.tensordesc<tensor<1x16xf16>>, tensor<8xi32>, i32) -> tensor<8x16xf16>
  tt.descriptor_scatter %d[%r, %m], %x : !tt.tensordesc<tensor<1x16xf16>>, tensor<8xi32>, i32, tensor<8x16xf16>
  %e = tt.make_tensor_descriptor %q, [%m, %m], [%s, %one] : <i32>, <tensor<8x16xi32>>
  tt.descriptor_reduce umax, %e[%zero, %zero], %v : !tt.tensordesc<tensor<8x16xi32>>, tensor<8x16xi32>
  tt.return
}
// CHECK: [[NAN:%.*]] = arith.constant dense<0x7E00>
// CHECK: [[X:%.*]] = tt.load {{.*}}, {{.*}}, [[NAN]] : tensor<8x16x!tt.ptr<f16>>
// CHECK: tt.store {{.*}}, [[X]],
// CHECK: tt.atomic_rmw umax, relaxed, gpu,
// CHECK-NOT: tensordesc

// -----

// RUN: -lower-descriptors
// ERROR: its extents (i32) and strides (i64) do not follow
tt.func public @alone(%d: !tt.tensordesc<tensor<16x32xf16>>) {
  tt.return
}

// -----

// RUN: -lower-descriptors
// ERROR: not supported yet: `max` of f16 through a descriptor
tt.func public @maximum(%d: !tt.tensordesc<tensor<16x32xf16>>, %m: i32, %n: i32, %s: i64, %one: i64, %i: i32, %x: tensor<16x32xf16>) {
  tt.descriptor_reduce max, %d[%i, %i], %x : !tt.tensordesc<tensor<16x32xf16>>, tensor<16x32xf16>
  tt.return
}

// -----
// A partition captures the parts of a descriptor instead of it.
// RUN: -lower-descriptors
tt.func public @captured(%p: !tt.ptr<f16>, %m: i32, %n: i32, %s: i64, %one: i64, %i: i32) {
  %d = tt.make_tensor_descriptor %p, [%m, %n], [%s, %one] : <f16>, <tensor<16x32xf16>>
  ttg.warp_specialize(%d, %i) attributes {requestedRegisters = array<i32: 40>}
  default {
    ttg.warp_yield
  }
  partition0(%e: !tt.tensordesc<tensor<16x32xf16>>, %j: i32) num_warps(4) {
    %x = tt.descriptor_load %e[%j, %j] : !tt.tensordesc<tensor<16x32xf16>> -> tensor<16x32xf16>
    tt.descriptor_store %e[%j, %j], %x : !tt.tensordesc<tensor<16x32xf16>>, tensor<16x32xf16>
    ttg.warp_return
  } : (!tt.tensordesc<tensor<16x32xf16>>, i32) -> ()
  tt.return
}
// CHECK: ttg.warp_specialize(%arg5, %arg0, %arg1, %arg2, %arg3)
// CHECK: partition0(
// CHECK-NOT: arith.select
// CHECK: tt.load
// CHECK: tt.store
// CHECK-NOT: tensordesc

// -----

// A copy whose bytes a barrier counts is the copy engine's; what stands in its place on the CPU executor is no such thing on a GPU.
// RUN: -arrange-buffers -lower-descriptors
#mbar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
tt.func public @counted(%d: !tt.tensordesc<tensor<16x32xf16>>, %m: i32, %n: i32, %s: i64, %one: i64, %i: i32, %true: i1) {
  %b = ttg.local_alloc : () -> !ttg.memdesc<16x32xf16, #smem, mutable>
  %bar = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #mbar, #smem, mutable>
  // ERROR: the tensor memory accelerator cannot make all copies of this descriptor
  ttng.async_tma_copy_global_to_local %d[%i, %i] %b, %bar, %true : !tt.tensordesc<tensor<16x32xf16>>, !ttg.memdesc<1xi64, #mbar, #smem, mutable> -> !ttg.memdesc<16x32xf16, #smem, mutable>
  tt.return
}
