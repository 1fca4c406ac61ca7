//! Atomic operations, across threads and on every type, and programs that wait for each other.

#![allow(clippy::type_complexity)] // tables of operations and references

mod common;

use common::{A, int, m, ro, run, try_run};

/// Every program applies `op` once to each of 5 cells of %y (masked to the first 4) with %v, and stores the old values.
fn kernel(op: &str, ty: &str) -> String {
    format!(
        r#"
module {{
  tt.func public @k(%y: !tt.ptr<{ty}>, %v: !tt.ptr<{ty}>, %old: !tt.ptr<{ty}>) {{
    %i = tt.make_range {{end = 5 : i32, start = 0 : i32}} : tensor<5xi32>
    %c4 = arith.constant dense<4> : tensor<5xi32>
    %mask = arith.cmpi slt, %i, %c4 : tensor<5xi32>
    %ys = tt.splat %y : !tt.ptr<{ty}> -> tensor<5x!tt.ptr<{ty}>>
    %yp = tt.addptr %ys, %i : tensor<5x!tt.ptr<{ty}>>, tensor<5xi32>
    %vs = tt.splat %v : !tt.ptr<{ty}> -> tensor<5x!tt.ptr<{ty}>>
    %vp = tt.addptr %vs, %i : tensor<5x!tt.ptr<{ty}>>, tensor<5xi32>
    %x = tt.load %vp : tensor<5x!tt.ptr<{ty}>>
    %o = tt.atomic_rmw {op}, acq_rel, gpu, %yp, %x, %mask : (tensor<5x!tt.ptr<{ty}>>, tensor<5x{ty}>, tensor<5xi1>) -> tensor<5x{ty}>
    %os = tt.splat %old : !tt.ptr<{ty}> -> tensor<5x!tt.ptr<{ty}>>
    %op = tt.addptr %os, %i : tensor<5x!tt.ptr<{ty}>>, tensor<5xi32>
    tt.store %op, %o : tensor<5x!tt.ptr<{ty}>>
    tt.return
  }}
}}
"#
    )
}

#[test]
fn integer_operations() {
    macro_rules! check {
        ($T:ty, $U:ty, $name:literal) => {
            let cases: &[(&str, fn($T, $T) -> $T)] = &[
                ("add", |a, b| a.wrapping_add(b)),
                ("and", |a, b| a & b),
                ("or", |a, b| a | b),
                ("xor", |a, b| a ^ b),
                ("max", |a, b| a.max(b)),
                ("min", |a, b| a.min(b)),
                ("umax", |a, b| (a as $U).max(b as $U) as $T),
                ("umin", |a, b| (a as $U).min(b as $U) as $T),
                ("exch", |_, b| b),
            ];
            for (op, f) in cases {
                let start: [$T; 5] = [5, -1, <$T>::MAX, <$T>::MIN, 9];
                let v: [$T; 5] = [-3, 6, 1, -1, 4];
                let (mut y, mut old) = (start, [1 as $T; 5]);
                run(&kernel(op, $name), [1, 1, 1], &[m(&mut y), ro(&v), m(&mut old)]);
                for i in 0..4 {
                    assert_eq!(y[i], f(start[i], v[i]), "{op} {}", $name);
                    assert_eq!(old[i], start[i], "{op} {}", $name);
                }
                assert_eq!((y[4], old[4]), (9, 0), "{op}: masked off");
            }
        };
    }
    check!(i32, u32, "i32");
    check!(i64, u64, "i64");
    check!(i16, u16, "i16");
}

#[test]
fn float_operations() {
    let start = [1.5f32, -2.0, 0.0, 100.0, 9.0];
    let v = [2.25f32, 0.5, -1.0, 100.0, 4.0];
    for (op, f) in [
        ("fadd", (|a, b| a + b) as fn(f32, f32) -> f32),
        ("max", f32::max),
        ("min", f32::min),
        ("exch", |_, b| b),
    ] {
        let (mut y, mut old) = (start, [1f32; 5]);
        run(&kernel(op, "f32"), [1, 1, 1], &[m(&mut y), ro(&v), m(&mut old)]);
        for i in 0..4 {
            assert_eq!((y[i], old[i]), (f(start[i], v[i]), start[i]), "{op}");
        }
    }
    // f16: 2048 + 1 rounds to 2048; bf16: 256 + 1 to 256; f64 keeps everything.
    let (mut y, mut old) = ([0x6800u16; 5], [0u16; 5]);
    run(&kernel("fadd", "f16"), [1, 1, 1], &[m(&mut y), ro(&[0x3c00u16; 5]), m(&mut old)]);
    assert_eq!((y, old), ([0x6800; 5], [0x6800, 0x6800, 0x6800, 0x6800, 0]));
    let (mut y, mut old) = ([0x4380u16; 5], [0u16; 5]);
    run(&kernel("fadd", "bf16"), [1, 1, 1], &[m(&mut y), ro(&[0x3f80u16; 5]), m(&mut old)]);
    assert_eq!(y[0], 0x4380);
    let (mut y, mut old) = ([0.1f64; 5], [0f64; 5]);
    run(&kernel("fadd", "f64"), [1, 1, 1], &[m(&mut y), ro(&[0.2f64; 5]), m(&mut old)]);
    assert_eq!(y[0], 0.1 + 0.2);
}

#[test]
fn sums_across_threads() {
    let programs = 3000;
    let (mut y, mut old) = ([0i32; 5], [0i32; 5]);
    run(&kernel("add", "i32"), [programs, 1, 1], &[m(&mut y), ro(&[1, 2, 3, 4, 5]), m(&mut old)]);
    assert_eq!(y, [3000, 6000, 9000, 12000, 0]);
    let (mut y, mut old) = ([0x0000u16; 5], [0u16; 5]);
    // 2000 ones in f16 stay exact below 2048: no update is lost, though two elements share a 32-bit word.
    run(&kernel("fadd", "f16"), [2000, 1, 1], &[m(&mut y), ro(&[0x3c00u16; 5]), m(&mut old)]);
    assert_eq!(y[..4], [0x67d0; 4]);
}

#[test]
fn duplicates_in_one_tile_all_count() {
    let ir = r#"
module {
  tt.func public @k(%y: !tt.ptr<i32>, %x: !tt.ptr<i32>) {
    %i = tt.make_range {end = 100 : i32, start = 0 : i32} : tensor<100xi32>
    %xs = tt.splat %x : !tt.ptr<i32> -> tensor<100x!tt.ptr<i32>>
    %xp = tt.addptr %xs, %i : tensor<100x!tt.ptr<i32>>, tensor<100xi32>
    %v = tt.load %xp : tensor<100x!tt.ptr<i32>>
    %ys = tt.splat %y : !tt.ptr<i32> -> tensor<100x!tt.ptr<i32>>
    %yp = tt.addptr %ys, %v : tensor<100x!tt.ptr<i32>>, tensor<100xi32>
    %one = arith.constant dense<1> : tensor<100xi32>
    %t = arith.constant dense<true> : tensor<100xi1>
    %o = tt.atomic_rmw add, relaxed, gpu, %yp, %one, %t : (tensor<100x!tt.ptr<i32>>, tensor<100xi32>, tensor<100xi1>) -> tensor<100xi32>
    tt.return
  }
}
"#;
    let x: Vec<i32> = (0..100).map(|i| i * i % 7).collect();
    let mut y = [0i32; 7];
    run(ir, [4, 1, 1], &[m(&mut y), ro(&x)]);
    for bin in 0..7 {
        assert_eq!(y[bin as usize], 4 * x.iter().filter(|&&v| v == bin).count() as i32);
    }
    let mut short = [0i32; 4];
    let e = try_run(ir, [4, 1, 1], &[m(&mut short), ro(&x)]).unwrap_err();
    assert!(e.to_string().contains("out-of-bounds atomic access"), "{e}");
}

/// A spin lock by compare-and-swap around an unprotected increment.
const LOCK: &str = r#"
module {
  tt.func public @k(%lock: !tt.ptr<i32>, %n: !tt.ptr<i32>) {
    %z = arith.constant 0 : i32
    %o = arith.constant 1 : i32
    scf.while () : () -> () {
      %old = tt.atomic_cas acq_rel, gpu, %lock, %z, %o : (!tt.ptr<i32>, i32, i32) -> i32
      %busy = arith.cmpi eq, %old, %o : i32
      scf.condition(%busy)
    } do {
      scf.yield
    }
    %v = tt.load %n : !tt.ptr<i32>
    %w = arith.addi %v, %o : i32
    tt.store %n, %w : !tt.ptr<i32>
    %t = arith.constant true
    %r = tt.atomic_rmw exch, acq_rel, gpu, %lock, %z, %t : (!tt.ptr<i32>, i32, i1) -> i32
    tt.return
  }
}
"#;

#[test]
fn a_spin_lock_excludes() {
    let (mut lock, mut n) = ([0i32], [0i32]);
    run(LOCK, [2000, 1, 1], &[m(&mut lock), m(&mut n)]);
    assert_eq!((lock[0], n[0]), (0, 2000));
}

/// Each program adds itself to a counter and waits until all have: needs every program to be under way at once.
const BARRIER: &str = r#"
module {
  tt.func public @k(%count: !tt.ptr<i32>, %seen: !tt.ptr<i32>, %all: i32) {
    %p = tt.get_program_id x : i32
    %o = arith.constant 1 : i32
    %t = arith.constant true
    %mine = tt.atomic_rmw add, acq_rel, gpu, %count, %o, %t : (!tt.ptr<i32>, i32, i1) -> i32
    scf.while () : () -> () {
      %now = tt.load %count {isVolatile = true} : !tt.ptr<i32>
      %wait = arith.cmpi slt, %now, %all : i32
      scf.condition(%wait)
    } do {
      scf.yield
    }
    %now = tt.load %count : !tt.ptr<i32>
    %a = tt.addptr %seen, %p : !tt.ptr<i32>, i32
    tt.store %a, %now : !tt.ptr<i32>
    tt.return
  }
}
"#;

#[test]
fn a_barrier_over_the_grid_makes_progress_on_few_threads() {
    for threads in [1, 2] {
        let (mut count, mut seen) = ([0i32], vec![0i32; 200]);
        let args = [m(&mut count), m(&mut seen), int(200)];
        common::try_run_with(BARRIER, [200, 1, 1], &args, threads, false).unwrap();
        assert_eq!(seen, vec![200; 200]);
    }
}

/// The same where programs look at a tensor of one element.
#[test]
fn programs_that_look_at_tensors_give_way() {
    let looks = BARRIER.replacen(
        "%now = tt.load %count {isVolatile = true} : !tt.ptr<i32>",
        "%counts = tt.splat %count : !tt.ptr<i32> -> tensor<1x!tt.ptr<i32>>
      %nows = tt.load %counts {isVolatile = true} : tensor<1x!tt.ptr<i32>>
      %now = tt.unsplat %nows : tensor<1xi32>",
        1,
    );
    let (mut count, mut seen) = ([0i32], vec![0i32; 5]);
    let args = [m(&mut count), m(&mut seen), int(5)];
    common::try_run_with(&looks, [5, 1, 1], &args, 1, false).unwrap();
    assert_eq!(seen, [5; 5]);
}

fn deadlock(ir: &str, grid: u32, args: &[A], threads: usize) -> String {
    let e = common::try_run_with(ir, [grid, 1, 1], args, threads, false).unwrap_err().to_string();
    assert!(e.contains("where no program is left that would change what it looks at"), "{e}");
    e
}

#[test]
fn a_lock_that_nobody_gives_back() {
    for threads in [1, 2] {
        let (mut lock, mut n) = ([1i32], [0i32]);
        let e = deadlock(LOCK, 300, &[m(&mut lock), m(&mut n)], threads);
        assert!(e.contains("kernel.mlir:7:") && e.contains("291 more programs wait"), "{e}");
        // The first that takes it keeps it: an exchange by which a program leaves what is there.
        let kept = LOCK.replace(
            "tt.atomic_rmw exch, acq_rel, gpu, %lock, %z",
            "tt.atomic_rmw exch, acq_rel, gpu, %lock, %o",
        );
        let (mut lock, mut n) = ([0i32], [0i32]);
        let e = deadlock(&kept, 5, &[m(&mut lock), m(&mut n)], threads);
        assert!(e.contains("has ended"), "{e}");
        assert_eq!((lock[0], n[0]), (1, 1));
        // Programs that only look.
        let (mut count, mut seen) = ([0i32], vec![0i32; 20]);
        deadlock(BARRIER, 20, &[m(&mut count), m(&mut seen), int(21)], threads);
        assert_eq!(count, [20]);
    }
}

/// Loops that don't get on while nobody writes, but end.
#[test]
fn a_lock_that_is_given_back_late() {
    // The last program counts for long, in a register, looking at memory all the while, and opens it.
    let opens = LOCK.replace(
        "    scf.while () : () -> () {\n      %old",
        "    %p = tt.get_program_id x : i32
    %last = arith.constant 4 : i32
    %mine = arith.cmpi eq, %p, %last : i32
    %many = arith.constant 20000 : i32
    scf.if %mine {
      %end = scf.while (%i = %z) : (i32) -> i32 {
        %look = tt.load %n {isVolatile = true} : !tt.ptr<i32>
        %more = arith.cmpi slt, %i, %many : i32
        scf.condition(%more) %i : i32
      } do {
      ^bb0(%i: i32):
        %next = arith.addi %i, %o : i32
        scf.yield %next : i32
      }
      %t = arith.constant true
      %r = tt.atomic_rmw exch, acq_rel, gpu, %lock, %z, %t : (!tt.ptr<i32>, i32, i1) -> i32
    }
    scf.while () : () -> () {
      %old",
    );
    for threads in [1, 2] {
        let (mut lock, mut n) = ([1i32], [0i32]);
        common::try_run_with(&opens, [5, 1, 1], &[m(&mut lock), m(&mut n)], threads, false).unwrap();
        assert_eq!((lock[0], n[0]), (0, 5));
    }
}
