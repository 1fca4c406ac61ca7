// Two partitions come to barrier 1, which needs no memory then; barrier 0 stays one in memory.
// RUN: -named-barriers
#mbar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
tt.func public @two() {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %bars = ttg.local_alloc : () -> !ttg.memdesc<2x1xi64, #mbar, #smem, mutable>
  %a = ttg.memdesc_index %bars[%c0] : !ttg.memdesc<2x1xi64, #mbar, #smem, mutable> -> !ttg.memdesc<1xi64, #mbar, #smem, mutable>
  // CHECK: ttng.init_barrier
  // CHECK-NOT: ttng.init_barrier
  ttng.init_barrier %a, 1 : !ttg.memdesc<1xi64, #mbar, #smem, mutable>
  %b = ttg.memdesc_index %bars[%c1] : !ttg.memdesc<2x1xi64, #mbar, #smem, mutable> -> !ttg.memdesc<1xi64, #mbar, #smem, mutable>
  ttng.init_barrier %b, 1 : !ttg.memdesc<1xi64, #mbar, #smem, mutable>
  ttg.warp_specialize(%bars, %b)
  default {
    // CHECK: ttng.named_barrier {{.*}} {number = 0 : i32, parties = 2 : i32, warps = 6 : i32}
    ttng.named_barrier %b : !ttg.memdesc<1xi64, #mbar, #smem, mutable>
    ttg.warp_yield
  }
  partition0(%all: !ttg.memdesc<2x1xi64, #mbar, #smem, mutable>, %one: !ttg.memdesc<1xi64, #mbar, #smem, mutable>) num_warps(2) {
    // CHECK: ttng.named_barrier {{.*}} {arrives = true, number = 0 : i32, parties = 2 : i32, warps = 6 : i32}
    ttng.named_barrier %one {arrives = true} : !ttg.memdesc<1xi64, #mbar, #smem, mutable>
    ttg.warp_return
  } : (!ttg.memdesc<2x1xi64, #mbar, #smem, mutable>, !ttg.memdesc<1xi64, #mbar, #smem, mutable>) -> ()
  ttng.arrive_barrier %a, 1 : !ttg.memdesc<1xi64, #mbar, #smem, mutable>
  tt.return
}

// -----

// RUN: -named-barriers
#mbar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
tt.func public @both(%i: i32) {
  %c0 = arith.constant 0 : i32
  %bars = ttg.local_alloc : () -> !ttg.memdesc<2x1xi64, #mbar, #smem, mutable>
  %a = ttg.memdesc_index %bars[%c0] : !ttg.memdesc<2x1xi64, #mbar, #smem, mutable> -> !ttg.memdesc<1xi64, #mbar, #smem, mutable>
  ttng.named_barrier %a : !ttg.memdesc<1xi64, #mbar, #smem, mutable>
  %b = ttg.memdesc_index %bars[%i] : !ttg.memdesc<2x1xi64, #mbar, #smem, mutable> -> !ttg.memdesc<1xi64, #mbar, #smem, mutable>
  // ERROR: barrier 0 of this allocation is used without `phaseIdx` elsewhere
  ttng.wait_barrier %b, %i : !ttg.memdesc<1xi64, #mbar, #smem, mutable>
  tt.return
}
