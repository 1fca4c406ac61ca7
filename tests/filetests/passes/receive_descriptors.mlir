// RUN: -target=xe:pvc -receive-descriptors
tt.func public @f(%x: !tt.ptr<f16>, %d: !tt.tensordesc<tensor<16x32xf16>> {tt.padding = 2 : i32}, %m: i32, %n: i32, %s: i64, %one: i64, %i: i32) {
  %block = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<tensor<16x32xf16>> -> tensor<16x32xf16>
  tt.descriptor_store %d[%i, %i], %block : !tt.tensordesc<tensor<16x32xf16>>, tensor<16x32xf16>
  tt.return
}
// CHECK: tt.func public @f(%arg0: !tt.ptr<f16>, %arg1: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %arg2: i32, %arg3: i32, %arg4: i64,
// CHECK: [[D:%.*]] = tt.make_tensor_descriptor %arg1, [%arg2, %arg3], [%arg4, %c1_i64] {padding = 2 : i32} : <f16>, <tensor<16x32xf16>>
// CHECK-NEXT: tt.descriptor_load [[D]]
// CHECK-NEXT: tt.descriptor_store [[D]]
// -----
// RUN: -target=xe:pvc -receive-descriptors
// What is called is inlined, or goes without levels.
module {
  tt.func public @kernel(%i: i32) { tt.return }
  tt.func private @called(%d: !tt.tensordesc<tensor<16x32xf16>>, %m: i32, %n: i32, %s: i64, %one: i64) { tt.return }
}
// CHECK: @called(%arg0: !tt.tensordesc<tensor<16x32xf16>>
// -----
// RUN: -target=xe:pvc -receive-descriptors
// ERROR: argument 0 is a tensor descriptor, but its extents (i32) and strides (i64) do not follow
tt.func public @f(%d: !tt.tensordesc<tensor<16x32xf16>>, %m: i32) {
  tt.return
}
