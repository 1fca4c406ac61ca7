// Code of the author's own: tensors come in the layouts that it says, loads take these; a buffer that its pointer leads to is stored before, and loaded
// behind, a barrier each; registers need none.
// RUN: -arrange-buffers -assign-layouts -allocate-shared -membar
#one = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#smem = #ttg.shared_memory
module {
  tt.func public @f(%p: !tt.ptr<f32>) {
    %c0 = arith.constant 0 : i32
    %i = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32>
    %b = tt.splat %p : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>>
    %q = tt.addptr %b, %i : tensor<512x!tt.ptr<f32>>, tensor<512xi32>
    // CHECK: [[X:%.*]] = tt.load {{.*}}#blocked
    // CHECK-NEXT: {{.*}} = "tt.raw_call"([[X]]) {{.*}} : (tensor<512xf32, #blocked>) -> tensor<512xf32, #blocked>
    %x = tt.load %q : tensor<512x!tt.ptr<f32>>
    %y = "tt.raw_call"(%x) <{language = "ptx", layouts = [#one], names = ["x"], order = array<i32: 0>, source = "", symbol = "", threads = array<i32>, operandSegmentSizes = array<i32: 0, 1>}> : (tensor<512xf32>) -> tensor<512xf32>
    %m = ttg.local_alloc %y : (tensor<512xf32>) -> !ttg.memdesc<512xf32, #smem, mutable>
    %s = ttg.local_ptr %m[%c0] : (!ttg.memdesc<512xf32, #smem, mutable>, i32) -> !tt.ptr<f32, 3>
    // CHECK: ttg.barrier
    // CHECK-NEXT: "tt.raw_call"(%{{.*}}) {{.*}} : (!tt.ptr<f32, 3>) -> ()
    // CHECK-NEXT: ttg.barrier
    // CHECK-NEXT: ttg.local_load
    "tt.raw_call"(%s) <{language = "ptx", layouts = [unit], names = ["s"], order = array<i32: 0>, source = "", symbol = "g", threads = array<i32>, operandSegmentSizes = array<i32: 0, 1>}> : (!tt.ptr<f32, 3>) -> ()
    %z = ttg.local_load %m : !ttg.memdesc<512xf32, #smem, mutable> -> tensor<512xf32>
    tt.store %q, %z : tensor<512x!tt.ptr<f32>>
    tt.return
  }
}
