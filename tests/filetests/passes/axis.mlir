// How many elements one access takes: by the pointer's alignment, by the mask, by strides, through a loop.
// RUN: -assign-layouts
tt.func public @f(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %q: !tt.ptr<f16>, %n16: i32 {tt.divisibility = 16 : i32}, %n: i32) {
  %r = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32>
  %ps = tt.splat %p : !tt.ptr<f16> -> tensor<1024x!tt.ptr<f16>>
  %qs = tt.splat %q : !tt.ptr<f16> -> tensor<1024x!tt.ptr<f16>>
  %pr = tt.addptr %ps, %r : tensor<1024x!tt.ptr<f16>>, tensor<1024xi32>
  %qr = tt.addptr %qs, %r : tensor<1024x!tt.ptr<f16>>, tensor<1024xi32>
  // Aligned to 16 bytes: 8 elements.
  // CHECK: tt.load {{.*}}tt.vec = 8
  %0 = tt.load %pr : tensor<1024x!tt.ptr<f16>>
  // Nothing known of the pointer.
  // CHECK: tt.load {{.*}}tt.vec = 1
  %1 = tt.load %qr : tensor<1024x!tt.ptr<f16>>
  // A bound that is a multiple of 16 cuts between accesses; another does not.
  %b16 = tt.splat %n16 : i32 -> tensor<1024xi32>
  %m16 = arith.cmpi slt, %r, %b16 : tensor<1024xi32>
  %bn = tt.splat %n : i32 -> tensor<1024xi32>
  %mn = arith.cmpi slt, %r, %bn : tensor<1024xi32>
  // CHECK: tt.load {{.*}}tt.vec = 8
  %2 = tt.load %pr, %m16 : tensor<1024x!tt.ptr<f16>>
  // CHECK: tt.load {{.*}}tt.vec = 1
  %3 = tt.load %pr, %mn : tensor<1024x!tt.ptr<f16>>
  // Every second element; an offset of 4 elements; offsets that wrap around at a multiple of 16.
  %two = arith.constant dense<2> : tensor<1024xi32>
  %four = arith.constant dense<4> : tensor<1024xi32>
  %r2 = arith.muli %r, %two : tensor<1024xi32>
  %r4 = arith.addi %r, %four : tensor<1024xi32>
  %rw = arith.remsi %r, %b16 : tensor<1024xi32>
  %p2 = tt.addptr %ps, %r2 : tensor<1024x!tt.ptr<f16>>, tensor<1024xi32>
  %p4 = tt.addptr %ps, %r4 : tensor<1024x!tt.ptr<f16>>, tensor<1024xi32>
  %pw = tt.addptr %ps, %rw : tensor<1024x!tt.ptr<f16>>, tensor<1024xi32>
  // CHECK: tt.load {{.*}}tt.vec = 1
  %4 = tt.load %p2 : tensor<1024x!tt.ptr<f16>>
  // CHECK: tt.load {{.*}}tt.vec = 4
  %5 = tt.load %p4 : tensor<1024x!tt.ptr<f16>>
  // CHECK: tt.load {{.*}}tt.vec = 8
  %6 = tt.load %pw : tensor<1024x!tt.ptr<f16>>
  // The author's promise counts.
  %hint = arith.muli %n, %n {tt.divisibility = 16 : i32} : i32
  %hs = tt.splat %hint : i32 -> tensor<1024xi32>
  %rh = arith.addi %r, %hs : tensor<1024xi32>
  %ph = tt.addptr %ps, %rh : tensor<1024x!tt.ptr<f16>>, tensor<1024xi32>
  // CHECK: tt.load {{.*}}tt.vec = 8
  %7 = tt.load %ph : tensor<1024x!tt.ptr<f16>>
  // A pointer carried around a loop: 64 elements on keep it aligned, 2 elements on leave 4 bytes.
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %s64 = arith.constant dense<64> : tensor<1024xi32>
  %l:2 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %pr, %y = %pr) -> (tensor<1024x!tt.ptr<f16>>, tensor<1024x!tt.ptr<f16>>) : i32 {
    // CHECK: tt.load {{.*}}tt.vec = 8
    %8 = tt.load %x : tensor<1024x!tt.ptr<f16>>
    // CHECK: tt.store {{.*}}tt.vec = 2
    tt.store %y, %8 : tensor<1024x!tt.ptr<f16>>
    %x2 = tt.addptr %x, %s64 : tensor<1024x!tt.ptr<f16>>, tensor<1024xi32>
    %y2 = tt.addptr %y, %two : tensor<1024x!tt.ptr<f16>>, tensor<1024xi32>
    scf.yield %x2, %y2 : tensor<1024x!tt.ptr<f16>>, tensor<1024x!tt.ptr<f16>>
  }
  tt.store %pr, %0 : tensor<1024x!tt.ptr<f16>>
  tt.store %pr, %1 : tensor<1024x!tt.ptr<f16>>
  tt.store %pr, %2 : tensor<1024x!tt.ptr<f16>>
  tt.store %pr, %3 : tensor<1024x!tt.ptr<f16>>
  tt.store %pr, %4 : tensor<1024x!tt.ptr<f16>>
  tt.store %pr, %5 : tensor<1024x!tt.ptr<f16>>
  tt.store %pr, %6 : tensor<1024x!tt.ptr<f16>>
  tt.store %pr, %7 : tensor<1024x!tt.ptr<f16>>
  tt.return
}

// -----
// RUN: -assign-layouts
// `tl.assume` of a divisor counts where the block that makes the value can't run without it.
tt.func public @assumed(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %n: i32, %m: i32) {
  %c0 = arith.constant 0 : i32
  %c7 = arith.constant 7 : i32
  %c8 = arith.constant 8 : i32
  %rem = arith.remsi %n, %c8 : i32
  %is = arith.cmpi eq, %rem, %c0 : i32
  llvm.intr.assume %is : i1
  %r = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32>
  %ps = tt.splat %p : !tt.ptr<f16> -> tensor<1024x!tt.ptr<f16>>
  %ns = tt.splat %n : i32 -> tensor<1024xi32>
  %rn = arith.addi %r, %ns : tensor<1024xi32>
  %pn = tt.addptr %ps, %rn : tensor<1024x!tt.ptr<f16>>, tensor<1024xi32>
  // CHECK: tt.load {{.*}}tt.vec = 8
  %0 = tt.load %pn : tensor<1024x!tt.ptr<f16>>
  %ms = tt.splat %m : i32 -> tensor<1024xi32>
  %rm = arith.addi %r, %ms : tensor<1024xi32>
  %pm = tt.addptr %ps, %rm : tensor<1024x!tt.ptr<f16>>, tensor<1024xi32>
  scf.if %is {
    %low = arith.andi %m, %c7 : i32
    %none = arith.cmpi eq, %low, %c0 : i32
    llvm.intr.assume %none : i1
    scf.yield
  }
  // CHECK: tt.store {{.*}}tt.vec = 1
  tt.store %pm, %0 : tensor<1024x!tt.ptr<f16>>
  tt.return
}

// -----
// Two numbers that an iteration exchanges, one of which it may make negative, both may be: nor is the larger of both known to be 0 or above, so that
// what remains of a division does not run on where the number does.
// RUN: -assign-layouts
tt.func public @exchanged(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %n: i32, %flag: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %below = arith.constant -1 : i32
  %c16 = arith.constant 16 : i32
  %sixteen = arith.constant dense<16> : tensor<1024xi32>
  %r = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32>
  %ps = tt.splat %p : !tt.ptr<f16> -> tensor<1024x!tt.ptr<f16>>
  %l:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %c0, %b = %c0) -> (i32, i32) : i32 {
    %more = arith.maxsi %a, %b : i32
    %from = arith.muli %more, %c16 : i32
    %fs = tt.splat %from : i32 -> tensor<1024xi32>
    %at = arith.addi %r, %fs : tensor<1024xi32>
    %rest = arith.remsi %at, %sixteen : tensor<1024xi32>
    %q = tt.addptr %ps, %rest : tensor<1024x!tt.ptr<f16>>, tensor<1024xi32>
    // CHECK: tt.load {{.*}}tt.vec = 1
    %x = tt.load %q : tensor<1024x!tt.ptr<f16>>
    tt.store %ps, %x : tensor<1024x!tt.ptr<f16>>
    %next = arith.select %flag, %b, %below : i32
    scf.yield %next, %a : i32, i32
  }
  tt.return
}
