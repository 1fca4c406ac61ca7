// A product is stored by the warps that have it: 16 rows each, 256 bytes of a row at once.
// RUN: -assign-layouts -num-warps=8
module {
  tt.func public @store(%a: tensor<128x64x!tt.ptr<f16>>, %b: tensor<64x256x!tt.ptr<f16>>, %c: !tt.ptr<f16> {tt.divisibility = 16 : i32}) {
    %zero = arith.constant dense<0.000000e+00> : tensor<128x256xf32>
    %x = tt.load %a : tensor<128x64x!tt.ptr<f16>>
    %y = tt.load %b : tensor<64x256x!tt.ptr<f16>>
    %d = tt.dot %x, %y, %zero : tensor<128x64xf16> * tensor<64x256xf16> -> tensor<128x256xf32>
    %h = arith.truncf %d : tensor<128x256xf32> to tensor<128x256xf16>
    %m = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
    %rows = tt.expand_dims %m {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
    %width = arith.constant dense<256> : tensor<128x1xi32>
    %begin = arith.muli %rows, %width : tensor<128x1xi32>
    %n = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32>
    %columns = tt.expand_dims %n {axis = 0 : i32} : tensor<256xi32> -> tensor<1x256xi32>
    %r = tt.broadcast %begin : tensor<128x1xi32> -> tensor<128x256xi32>
    %s = tt.broadcast %columns : tensor<1x256xi32> -> tensor<128x256xi32>
    %at = arith.addi %r, %s : tensor<128x256xi32>
    %base = tt.splat %c : !tt.ptr<f16> -> tensor<128x256x!tt.ptr<f16>>
    %p = tt.addptr %base, %at : tensor<128x256x!tt.ptr<f16>>, tensor<128x256xi32>
    tt.store %p, %h : tensor<128x256x!tt.ptr<f16>>
    tt.return
  }
}
// CHECK: #blocked2 = #ttg.blocked<{sizePerThread = [8, 8], threadsPerWarp = [2, 16], warpsPerCTA = [8, 1], order = [1, 0]}>
// CHECK: ttg.convert_layout {{.*}} : tensor<128x256xf16, #mma> -> tensor<128x256xf16, #blocked2>
// CHECK: tt.store {{.*}}#blocked2
// -----
// Where such a tile is loaded, too, threads load what they store.
// RUN: -assign-layouts -num-warps=8
module {
  tt.func public @store(%a: tensor<128x64x!tt.ptr<f16>>, %b: tensor<64x256x!tt.ptr<f16>>, %c: !tt.ptr<f16> {tt.divisibility = 16 : i32}) {
    %zero = arith.constant dense<0.000000e+00> : tensor<128x256xf32>
    %x = tt.load %a : tensor<128x64x!tt.ptr<f16>>
    %y = tt.load %b : tensor<64x256x!tt.ptr<f16>>
    %d = tt.dot %x, %y, %zero : tensor<128x64xf16> * tensor<64x256xf16> -> tensor<128x256xf32>
    %h = arith.truncf %d : tensor<128x256xf32> to tensor<128x256xf16>
    %m = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
    %rows = tt.expand_dims %m {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
    %width = arith.constant dense<256> : tensor<128x1xi32>
    %begin = arith.muli %rows, %width : tensor<128x1xi32>
    %n = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32>
    %columns = tt.expand_dims %n {axis = 0 : i32} : tensor<256xi32> -> tensor<1x256xi32>
    %r = tt.broadcast %begin : tensor<128x1xi32> -> tensor<128x256xi32>
    %s = tt.broadcast %columns : tensor<1x256xi32> -> tensor<128x256xi32>
    %at = arith.addi %r, %s : tensor<128x256xi32>
    %base = tt.splat %c : !tt.ptr<f16> -> tensor<128x256x!tt.ptr<f16>>
    %p = tt.addptr %base, %at : tensor<128x256x!tt.ptr<f16>>, tensor<128x256xi32>
    %old = tt.load %p : tensor<128x256x!tt.ptr<f16>>
    %new = arith.addf %old, %h : tensor<128x256xf16>
    tt.store %p, %new : tensor<128x256x!tt.ptr<f16>>
    tt.return
  }
}
// CHECK: #blocked2 = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [1, 32], warpsPerCTA = [8, 1], order = [1, 0]}>
// CHECK: tt.load {{.*}}#blocked2
// CHECK: tt.store {{.*}}#blocked2
