// Calls become bodies, callees first; private functions that are called no more go.
// RUN: -inline
tt.func public @k(%x: f32, %p: !tt.ptr<f32>) {
  %0:2 = tt.call @twice(%x) : (f32) -> (f32, f32)
  tt.store %p, %0#1 : !tt.ptr<f32>
  %1 = tt.call @kept(%0#0) : (f32) -> f32
  tt.return
}
tt.func private @twice(%x: f32) -> (f32, f32) {
  %0 = tt.call @square(%x) : (f32) -> f32
  %1 = tt.call @square(%0) : (f32) -> f32
  tt.return %0, %1 : f32, f32
}
tt.func private @square(%x: f32) -> f32 {
  %0 = arith.mulf %x, %x : f32
  tt.return %0 : f32
}
tt.func private @kept(%x: f32) -> f32 attributes {noinline = true} {
  %0 = tt.call @square(%x) : (f32) -> f32
  tt.return %0 : f32
}

// OUTPUT
// module {
//   tt.func public @k(%arg0: f32, %arg1: !tt.ptr<f32>) {
//     %0 = arith.mulf %arg0, %arg0 : f32
//     %1 = arith.mulf %0, %0 : f32
//     tt.store %arg1, %1 : !tt.ptr<f32>
//     %2 = tt.call @kept(%0) : (f32) -> f32
//     tt.return
//   }
//   tt.func private @kept(%arg0: f32) -> f32 attributes {noinline = true} {
//     %0 = arith.mulf %arg0, %arg0 : f32
//     tt.return %0 : f32
//   }
// }
// -----
// RUN: -inline
// ERROR: recursion: `even` calls itself
// ERROR: even → odd → even
tt.func @k(%x: i32) {
  tt.call @even(%x) : (i32) -> ()
  tt.return
}
tt.func private @even(%x: i32) { 
  tt.call @odd(%x) : (i32) -> ()
  tt.return
}
tt.func private @odd(%x: i32) {
  tt.call @even(%x) : (i32) -> ()
  tt.return
}
