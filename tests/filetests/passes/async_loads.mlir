// Two copies begin where the loads stand, and are waited for together before the first use of either.
// RUN: -async-loads
#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-NOT: ttg.remarks
// CHECK: tt.func public @f
// CHECK: [[A:%.*]] = ttg.local_alloc : () -> !ttg.memdesc<512xf32, #shared, #smem, mutable>
// CHECK-NEXT: [[T:%.*]] = ttg.async_copy_global_to_local %arg0, [[A]] {tt.vec = 4 : i32, tt.vec_axis = 0 : i32}
// CHECK-NEXT: ttg.async_commit_group tokens [[T]]
// CHECK-NEXT: [[B:%.*]] = ttg.local_alloc
// CHECK-NEXT: [[U:%.*]] = ttg.async_copy_global_to_local %arg1, [[B]] mask %arg2
// CHECK-NEXT: ttg.async_commit_group tokens [[U]]
// CHECK-NEXT: tt.make_range
// CHECK-NEXT: ttg.async_wait {num = 0 : i32}
// CHECK-NEXT: [[X:%.*]] = ttg.local_load [[A]]
// CHECK-NEXT: [[Y:%.*]] = ttg.local_load [[B]]
// CHECK-NEXT: arith.addf [[X]], [[Y]]
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%p: tensor<512x!tt.ptr<f32>, #blocked>, %q: tensor<512x!tt.ptr<f32>, #blocked>, %mask: tensor<512xi1, #blocked>) {
    %zero = arith.constant dense<0.0> : tensor<512xf32, #blocked>
    %x = tt.load %p {tt.load.async = true, tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #blocked>
    %y = tt.load %q, %mask, %zero {tt.load.async = true, tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #blocked>
    %r = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #blocked>
    %z = arith.addf %x, %y : tensor<512xf32, #blocked>
    tt.store %p, %z {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #blocked>
    tt.return
  }
}
// -----
// One that is used earlier leaves the other under way. What masked-off elements are is chosen behind the wait.
// RUN: -async-loads
#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK: tt.func public @f
// CHECK: ttg.async_wait {num = 1 : i32}
// CHECK-NEXT: [[X:%.*]] = ttg.local_load
// CHECK-NEXT: [[S:%.*]] = arith.select %arg2, [[X]], %arg3
// CHECK-NEXT: arith.negf [[S]]
// CHECK-NEXT: ttg.async_wait {num = 0 : i32}
// CHECK-NEXT: [[Y:%.*]] = ttg.local_load
// CHECK-NEXT: arith.addf {{.*}}, [[Y]]
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%p: tensor<512x!tt.ptr<f32>, #blocked>, %q: tensor<512x!tt.ptr<f32>, #blocked>, %mask: tensor<512xi1, #blocked>, %other: tensor<512xf32, #blocked>) {
    %x = tt.load %p, %mask, %other {tt.load.async = true, tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #blocked>
    %y = tt.load %q {tt.load.async = true, tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #blocked>
    %n = arith.negf %x : tensor<512xf32, #blocked>
    %z = arith.addf %n, %y : tensor<512xf32, #blocked>
    tt.store %p, %z {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #blocked>
    tt.return
  }
}
// -----
// A load is over before memory is written that it may read.
// RUN: -async-loads
#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK: ttg.async_commit_group
// CHECK-NEXT: ttg.async_wait {num = 0 : i32}
// CHECK-NEXT: [[X:%.*]] = ttg.local_load
// CHECK-NEXT: scf.if
// CHECK: tt.store %arg0, [[X]]
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%p: tensor<512x!tt.ptr<f32>, #blocked>, %q: tensor<512x!tt.ptr<f32>, #blocked>, %y: tensor<512xf32, #blocked>, %c: i1) {
    %x = tt.load %p {tt.load.async = true, tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #blocked>
    scf.if %c {
      tt.store %q, %y {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #blocked>
    }
    tt.store %p, %x {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #blocked>
    tt.return
  }
}
// -----
// What can't be a copy stays a load, and says why: single values, elements of two bytes that are apart, too large a block.
// RUN: -async-loads
#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK: ttg.remarks = ["k.py:3:5: tle.load(is_async=True) waits for its value at once: it loads one value, not a block", "{{.*}}tle.load(is_async=True) waits for its value at once: copies are 4 bytes at least, and no 4 consecutive and aligned bytes are known", "{{.*}}tle.load(is_async=True) waits for its value at once: it is volatile, or its cache modifier is .cv", "{{.*}}tle.load(is_async=True) waits for its value at once: it needs 262144 bytes of shared memory, and {{.*}} are left"]
// CHECK-NOT: async_copy
// CHECK: tt.return
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%s: !tt.ptr<f32>, %p: tensor<512x!tt.ptr<f16>, #blocked>, %q: tensor<512x!tt.ptr<f32>, #blocked>, %large: tensor<65536x!tt.ptr<f32>, #blocked>) {
    %x = tt.load %s {tt.load.async = true} : !tt.ptr<f32> loc("k.py":3:5)
    %y = tt.load %p {tt.load.async = true, tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f16>, #blocked>
    %z = tt.load %q {isVolatile = true, tt.load.async = true, tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #blocked>
    %w = tt.load %large {tt.load.async = true, tt.vec = 4 : i32, tt.vec_axis = 0 : i32} : tensor<65536x!tt.ptr<f32>, #blocked>
    tt.store %s, %x : !tt.ptr<f32>
    tt.store %p, %y {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f16>, #blocked>
    tt.store %q, %z {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<512x!tt.ptr<f32>, #blocked>
    tt.store %large, %w {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<65536x!tt.ptr<f32>, #blocked>
    tt.return
  }
}
