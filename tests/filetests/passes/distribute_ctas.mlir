// Two CTAs halve a vector: ranges begin at the CTA's part, promises about runs hold within it.
// RUN: -num-ctas=2 -distribute-ctas
// CHECK: tt.func @add
// CHECK: [[RANK:%.*]] = ttng.cluster_cta_rank : i32
// CHECK: [[BEGIN:%.*]] = arith.muli
// CHECK: tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32>
// CHECK-NEXT: tt.splat [[BEGIN]] : i32 -> tensor<512xi32>
// CHECK: arith.addi {{.*}} {tt.contiguity = array<i32: 512>} : tensor<512xi32>
// CHECK: tt.load {{.*}} : tensor<512x!tt.ptr<f32>>
// CHECK-NOT: cluster_arrive
// CHECK: tt.store {{.*}} : tensor<512x!tt.ptr<f32>>
tt.func @add(%p: !tt.ptr<f32>, %first: i32) {
  %r = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %f = tt.splat %first : i32 -> tensor<1024xi32>
  %o = arith.addi %f, %r {tt.contiguity = array<i32: 1024>} : tensor<1024xi32>
  %b = tt.splat %p : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %q = tt.addptr %b, %o : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  %x = tt.load %q : tensor<1024x!tt.ptr<f32>>
  %y = arith.addf %x, %x : tensor<1024xf32>
  tt.store %q, %y : tensor<1024x!tt.ptr<f32>>
  tt.return
}
// -----
// A reduction of the split axis is combined; a number is stored by one CTA.
// RUN: -num-ctas=2 -distribute-ctas
// CHECK: tt.func @sum
// CHECK: [[RANK:%.*]] = ttng.cluster_cta_rank : i32
// CHECK: [[FIRST:%.*]] = arith.cmpi eq
// CHECK: [[MINE:%.*]] = "tt.reduce"
// CHECK: [[OTHER:%.*]] = ttng.cluster_exchange [[MINE]], {{.*}} : f32
// CHECK: [[SUM:%.*]] = arith.addf [[MINE]], [[OTHER]] : f32
// CHECK: tt.store {{.*}}, [[SUM]], [[FIRST]] : !tt.ptr<f32>
tt.func @sum(%p: !tt.ptr<f32>, %out: !tt.ptr<f32>) {
  %r = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %b = tt.splat %p : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %q = tt.addptr %b, %r : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  %x = tt.load %q : tensor<1024x!tt.ptr<f32>>
  %s = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %c: f32):
    %d = arith.addf %a, %c : f32
    tt.reduce.return %d : f32
  }) : (tensor<1024xf32>) -> f32
  tt.store %out, %s : !tt.ptr<f32>
  tt.return
}
// -----
// Four CTAs share a product of 128 x 256 as 64 x 128 each: the longer side is halved first. The loop's K is whole.
// CTAs whose ranks differ in bit 0 have the same rows of A, in bit 1 the same columns of B.
// RUN: -num-ctas=4 -distribute-ctas
// CHECK: tt.func @dot({{.*}}: !tt.tensordesc<tensor<64x32xf16>>, {{.*}}: !tt.tensordesc<tensor<32x128xf16>>,
// CHECK: scf.for
// CHECK: tt.descriptor_load {{.*}} {ttg.multicast = 1 : i32} {{.*}} -> tensor<64x32xf16>
// CHECK: tt.descriptor_load {{.*}} {ttg.multicast = 2 : i32} {{.*}} -> tensor<32x128xf16>
// CHECK: tt.dot {{.*}} -> tensor<64x128xf32>
// CHECK: tt.descriptor_store {{.*}}, tensor<64x128xf32>
tt.func @dot(%a: !tt.tensordesc<tensor<128x32xf16>>, %b: !tt.tensordesc<tensor<32x256xf16>>, %c: !tt.tensordesc<tensor<128x256xf32>>, %m: i32, %n: i32, %k: i32) {
  %zero = arith.constant 0 : i32
  %step = arith.constant 32 : i32
  %acc = arith.constant dense<0.0> : tensor<128x256xf32>
  %d = scf.for %i = %zero to %k step %step iter_args(%s = %acc) -> (tensor<128x256xf32>) : i32 {
    %x = tt.descriptor_load %a[%m, %i] : !tt.tensordesc<tensor<128x32xf16>> -> tensor<128x32xf16>
    %y = tt.descriptor_load %b[%i, %n] : !tt.tensordesc<tensor<32x256xf16>> -> tensor<32x256xf16>
    %t = tt.dot %x, %y, %s : tensor<128x32xf16> * tensor<32x256xf16> -> tensor<128x256xf32>
    scf.yield %t : tensor<128x256xf32>
  }
  tt.descriptor_store %c[%m, %n], %d : !tt.tensordesc<tensor<128x256xf32>>, tensor<128x256xf32>
  tt.return
}
// -----
// Of a square tile each of two CTAs has half the rows, also where the right operand lies the other way.
// RUN: -num-ctas=2 -distribute-ctas
// CHECK: tt.func @rows({{.*}}: !tt.tensordesc<tensor<64x32xf16>>, {{.*}}: !tt.tensordesc<tensor<128x32xf16>>,
// CHECK: tt.dot {{.*}} -> tensor<64x128xf32>
tt.func @rows(%a: !tt.tensordesc<tensor<128x32xf16>>, %b: !tt.tensordesc<tensor<128x32xf16>>, %c: !tt.tensordesc<tensor<128x128xf32>>, %m: i32, %n: i32, %k: i32) {
  %zero = arith.constant 0 : i32
  %step = arith.constant 32 : i32
  %acc = arith.constant dense<0.0> : tensor<128x128xf32>
  %d = scf.for %i = %zero to %k step %step iter_args(%s = %acc) -> (tensor<128x128xf32>) : i32 {
    %x = tt.descriptor_load %a[%m, %i] : !tt.tensordesc<tensor<128x32xf16>> -> tensor<128x32xf16>
    %y = tt.descriptor_load %b[%n, %i] : !tt.tensordesc<tensor<128x32xf16>> -> tensor<128x32xf16>
    %z = tt.trans %y {order = array<i32: 1, 0>} : tensor<128x32xf16> -> tensor<32x128xf16>
    %t = tt.dot %x, %z, %s : tensor<128x32xf16> * tensor<32x128xf16> -> tensor<128x128xf32>
    scf.yield %t : tensor<128x128xf32>
  }
  tt.descriptor_store %c[%m, %n], %d : !tt.tensordesc<tensor<128x128xf32>>, tensor<128x128xf32>
  tt.return
}
// -----
// What is scanned stays whole: both CTAs have it, one stores it.
// RUN: -num-ctas=2 -distribute-ctas
// CHECK: tt.func @scan
// CHECK: [[FIRST:%.*]] = arith.cmpi eq
// CHECK: "tt.scan"
// CHECK: ttng.cluster_arrive
// CHECK-NEXT: ttng.cluster_wait
// CHECK-NEXT: [[MASK:%.*]] = tt.splat [[FIRST]] : i1 -> tensor<64xi1>
// CHECK: tt.store {{.*}}, {{.*}}, [[MASK]] : tensor<64x!tt.ptr<i32>>
tt.func @scan(%p: !tt.ptr<i32>) {
  %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %b = tt.splat %p : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
  %q = tt.addptr %b, %r : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
  %x = tt.load %q : tensor<64x!tt.ptr<i32>>
  %s = "tt.scan"(%x) <{axis = 0 : i32, reverse = false}> ({
  ^bb0(%a: i32, %c: i32):
    %d = arith.addi %a, %c : i32
    tt.scan.return %d : i32
  }) : (tensor<64xi32>) -> tensor<64xi32>
  tt.store %q, %s : tensor<64x!tt.ptr<i32>>
  tt.return
}
// -----
// RUN: -target=cuda:80 -num-ctas=2 -distribute-ctas
// ERROR: num_ctas = 2: cuda:80 has no clusters of CTAs
tt.func @old() {
  tt.return
}
// -----
// RUN: -num-ctas=2 -distribute-ctas
// ERROR: not supported yet: a function that is not inlined with num_ctas > 1
tt.func private @callee() {
  tt.return
}
tt.func @caller() {
  tt.call @callee() : () -> ()
  tt.return
}
// -----
// Programs form clusters: each is run by one CTA, and there is nothing to distribute.
// RUN: -distribute-ctas
// CHECK: tt.func @f
// CHECK-NEXT: tt.program_barrier cluster {group = 0 : i32}
// CHECK-NEXT: tt.return
module attributes {tle.cluster_dims = array<i32: 2, 1, 1>} {
  tt.func @f() {
    tt.program_barrier cluster {group = 0 : i32}
    tt.return
  }
}
// -----
// They can't where there are no clusters.
// RUN: -target=cuda:80 -distribute-ctas
// ERROR: a mesh with clusters: cuda:80 has no clusters of CTAs
module attributes {tle.cluster_dims = array<i32: 2, 1, 1>} {
  tt.func @f() {
    tt.program_barrier cluster {group = 0 : i32}
    tt.return
  }
}
