// RUN:
// What operations on views and whole tensors take: numbers are none.
tt.func @f(%x: i32, %i: index) { %0 = memref.load %x[%i] : i32 tt.return }
// ERROR: a view (memref) expected for `src`, not i32
// -----
// RUN:
tt.func @f(%x: f32, %i: index) { memref.store %x, %x[%i] : f32 tt.return }
// ERROR: a view (memref) expected for `dst`, not f32
// -----
// RUN:
tt.func @f(%x: tensor<16xf32>, %y: memref<16xf32>) { memref.copy %x, %y : tensor<16xf32> to memref<16xf32> tt.return }
// ERROR: a view (memref) expected for `src`, not tensor<16xf32>
// -----
// RUN:
tt.func @f(%x: f32) { linalg.fill ins(%x : f32) outs(%x : f32) tt.return }
// ERROR: a view or a tensor expected for `out`, not f32
// -----
// RUN:
tt.func @f(%x: f32, %y: memref<16xf32>) { hivm.hir.load ins(%x : f32) outs(%y : memref<16xf32>) tt.return }
// ERROR: a view or a tensor expected for `ins`, not f32
// -----
// RUN:
tt.func @f(%x: memref<16xf32>, %y: f32) { hivm.hir.vadd ins(%x, %y : memref<16xf32>, f32) outs(%y : f32) tt.return }
// ERROR: a view or a tensor expected for `out`, not f32
