//! Loops, branches, calls, printing, assertions, and what is refused.

mod common;

use common::{compile, float, int, m, ro, run, try_run};
use tilewright_interp::{Arg, Executable, Memory, RunOptions};

/// Wraps a body that stores an i64 to %y from arguments %a and %b (i32).
fn scalar(body: &str) -> String {
    format!(
        "module {{\n  tt.func public @k(%y: !tt.ptr<i64>, %a: i32, %b: i32) {{\n{body}\n    tt.return\n  }}\n}}\n"
    )
}

#[test]
fn loops_carry_values_and_swap_them() {
    // Fibonacci by exchanging the carried values; the induction variable is added in.
    let ir = scalar(
        r#"
    %z = arith.constant 0 : i64
    %o = arith.constant 1 : i64
    %step = arith.constant 3 : i32
    %r:3 = scf.for %i = %a to %b step %step iter_args(%p = %z, %q = %o, %s = %z) -> (i64, i64, i64)  : i32 {
      %n = arith.addi %p, %q : i64
      %w = arith.extsi %i : i32 to i64
      %t = arith.addi %s, %w : i64
      scf.yield %q, %n, %t : i64, i64, i64
    }
    %k = arith.constant 1000000 : i64
    %m = arith.muli %r#0, %k : i64
    %v = arith.addi %m, %r#2 : i64
    tt.store %y, %v : !tt.ptr<i64>"#,
    );
    for (a, b) in [(0, 30), (5, 5), (7, -2), (-9, 10), (i32::MAX - 4, i32::MAX)] {
        let mut y = [0i64];
        run(&ir, [1, 1, 1], &[m(&mut y), int(i64::from(a)), int(i64::from(b))]);
        let (mut p, mut q, mut s) = (0i64, 1i64, 0i64);
        let mut i = i64::from(a);
        while i < i64::from(b) {
            (p, q) = (q, p + q);
            s += i;
            i += 3;
        }
        assert_eq!(y[0], p * 1_000_000 + s, "{a} to {b}");
    }
}

#[test]
fn carried_tiles_rotate() {
    // Three dense tiles rotate each turn; the outer values stay usable after the loop.
    let ir = r#"
module {
  tt.func public @k(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32) {
    %i = tt.make_range {end = 33 : i32, start = 0 : i32} : tensor<33xi32>
    %xs = tt.splat %x : !tt.ptr<f32> -> tensor<33x!tt.ptr<f32>>
    %xp = tt.addptr %xs, %i : tensor<33x!tt.ptr<f32>>, tensor<33xi32>
    %a = tt.load %xp : tensor<33x!tt.ptr<f32>>
    %b = arith.addf %a, %a : tensor<33xf32>
    %c = arith.addf %b, %a : tensor<33xf32>
    %z = arith.constant 0 : i32
    %o = arith.constant 1 : i32
    %r:3 = scf.for %k = %z to %n step %o iter_args(%p = %a, %q = %b, %s = %c) -> (tensor<33xf32>, tensor<33xf32>, tensor<33xf32>)  : i32 {
      %t = arith.addf %p, %a : tensor<33xf32>
      scf.yield %q, %s, %t : tensor<33xf32>, tensor<33xf32>, tensor<33xf32>
    }
    %u = arith.mulf %r#0, %a : tensor<33xf32>
    %v = arith.subf %r#1, %u : tensor<33xf32>
    %w = arith.addf %v, %r#2 : tensor<33xf32>
    %w2 = arith.addf %w, %b : tensor<33xf32>
    %ys = tt.splat %y : !tt.ptr<f32> -> tensor<33x!tt.ptr<f32>>
    %yp = tt.addptr %ys, %i : tensor<33x!tt.ptr<f32>>, tensor<33xi32>
    tt.store %yp, %w2 : tensor<33x!tt.ptr<f32>>
    tt.return
  }
}
"#;
    for n in 0..8 {
        let x: Vec<f32> = (0..33).map(|i| i as f32).collect();
        let mut y = vec![0f32; 33];
        run(ir, [1, 1, 1], &[ro(&x), m(&mut y), int(n)]);
        for i in 0..33 {
            let a = x[i];
            let (mut p, mut q, mut s) = (a, 2.0 * a, 3.0 * a);
            for _ in 0..n {
                (p, q, s) = (q, s, p + a);
            }
            assert_eq!(y[i], q - p * a + s + 2.0 * a, "{n} turns, element {i}");
        }
    }
}

#[test]
fn branches_and_nested_loops() {
    // Counts Collatz steps of 1..=a below b by nested loops with branches.
    let ir = scalar(
        r#"
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c3 = arith.constant 3 : i32
    %z = arith.constant 0 : i64
    %end = arith.addi %a, %c1 : i32
    %r = scf.for %n = %c1 to %end step %c1 iter_args(%total = %z) -> (i64)  : i32 {
      %w:2 = scf.while (%x = %n, %t = %total) : (i32, i64) -> (i32, i64) {
        %go = arith.cmpi sgt, %x, %c1 : i32
        scf.condition(%go) %x, %t : i32, i64
      } do {
      ^bb0(%x: i32, %t: i64):
        %bit = arith.andi %x, %c1 : i32
        %odd = arith.cmpi ne, %bit, %c0 : i32
        %next = scf.if %odd -> (i32) {
          %m = arith.muli %x, %c3 : i32
          %p = arith.addi %m, %c1 : i32
          scf.yield %p : i32
        } else {
          %h = arith.divsi %x, %c2 : i32
          scf.yield %h : i32
        }
        %one = arith.constant 1 : i64
        %t1 = arith.addi %t, %one : i64
        scf.yield %next, %t1 : i32, i64
      }
      %small = arith.cmpi slt, %n, %b : i32
      scf.if %small {
        tt.store %y, %w#1 : !tt.ptr<i64>
      }
      scf.yield %w#1 : i64
    }"#,
    );
    let steps = |limit: i64| {
        (1..=limit)
            .map(|n| {
                let (mut x, mut t) = (n, 0i64);
                while x > 1 {
                    x = if x % 2 == 1 { 3 * x + 1 } else { x / 2 };
                    t += 1;
                }
                t
            })
            .sum::<i64>()
    };
    let mut y = [0i64];
    run(&ir, [1, 1, 1], &[m(&mut y), int(50), int(31)]);
    assert_eq!(y[0], steps(30));
}

#[test]
fn calls_are_expanded_and_recursion_is_refused() {
    let ir = r#"
module {
  tt.func private @twice(%x: i32) -> (i32, i32) {
    %c = arith.constant 2 : i32
    %r = arith.muli %x, %c : i32
    tt.return %r, %x : i32, i32
  }
  tt.func private @sum(%x: i32, %y: i32) -> i32 {
    %a:2 = tt.call @twice(%x) : (i32) -> (i32, i32)
    %b:2 = tt.call @twice(%y) : (i32) -> (i32, i32)
    %s = arith.addi %a#0, %b#1 : i32
    tt.return %s : i32
  }
  tt.func public @k(%y: !tt.ptr<i32>, %a: i32, %b: i32) {
    %r = tt.call @sum(%a, %b) : (i32, i32) -> i32
    %s = tt.call @sum(%r, %a) : (i32, i32) -> i32
    tt.store %y, %s : !tt.ptr<i32>
    tt.return
  }
}
"#;
    let mut y = [0i32];
    run(ir, [1, 1, 1], &[m(&mut y), int(5), int(7)]);
    assert_eq!(y[0], 2 * (2 * 5 + 7) + 5);
    let ir =
        "module {\n  tt.func public @k(%a: i32) {\n    tt.call @k(%a) : (i32) -> ()\n    tt.return\n  }\n}\n";
    let module = tilewright_ir::parse(ir, "r.mlir").unwrap();
    let e = Executable::compile(&module, "k").unwrap_err();
    assert!(e.message.contains("calls itself"), "{e}");
}

#[test]
fn unstructured_control_flow() {
    let ir = r#"
module {
  tt.func private @gcd(%a: i32, %b: i32) -> i32 {
    %z = arith.constant 0 : i32
    cf.br ^bb1(%a, %b : i32, i32)
  ^bb1(%x: i32, %y: i32):
    %done = arith.cmpi eq, %y, %z : i32
    cf.cond_br %done, ^bb2, ^bb3
  ^bb2:
    tt.return %x : i32
  ^bb3:
    %r = arith.remui %x, %y : i32
    cf.br ^bb1(%y, %r : i32, i32)
  }
  tt.func public @k(%y: !tt.ptr<i32>, %a: i32, %b: i32) {
    %g = tt.call @gcd(%a, %b) : (i32, i32) -> i32
    %h = tt.call @gcd(%g, %a) : (i32, i32) -> i32
    %s = arith.addi %g, %h : i32
    tt.store %y, %s : !tt.ptr<i32>
    tt.return
  }
}
"#;
    let mut y = [0i32];
    run(ir, [1, 1, 1], &[m(&mut y), int(84), int(36)]);
    assert_eq!(y[0], 24);
}

#[test]
fn division_by_zero() {
    let ir = scalar(
        "    %r = arith.divsi %a, %b : i32\n    %w = arith.extsi %r : i32 to i64\n    tt.store %y, %w : !tt.ptr<i64>",
    );
    let mut y = [0i64];
    run(&ir, [1, 1, 1], &[m(&mut y), int(-7), int(2)]);
    assert_eq!(y[0], -3);
    let e = try_run(&ir, [3, 1, 1], &[m(&mut y), int(1), int(0)]).unwrap_err();
    assert!(
        e.to_string().contains("integer division by zero") && e.to_string().contains("kernel.mlir:3"),
        "{e}"
    );
    // In a tensor: defined, or an error on request.
    let body = "    %r = arith.remsi %a, %b : tensor<9xi32>";
    let ir = common::elementwise(9, &["i32", "i32"], "i32", body);
    let (a, b) = ([5i32; 9], [3, 3, 3, 3, 0, 3, 3, 3, 3]);
    let mut out = [0i32; 9];
    run(&ir, [1, 1, 1], &[ro(&a), ro(&b), m(&mut out)]);
    assert_eq!(out, [2, 2, 2, 2, 5, 2, 2, 2, 2]);
    let e = common::try_run_with(&ir, [1, 1, 1], &[ro(&a), ro(&b), m(&mut out)], 1, true).unwrap_err();
    assert_eq!(e.element, Some(vec![4]));
}

#[test]
fn a_loop_needs_a_positive_step() {
    let ir = scalar(
        "    %c0 = arith.constant 0 : i32\n    scf.for %i = %c0 to %a step %b  : i32 {\n      scf.yield\n    }",
    );
    let mut y = [0i64];
    let e = try_run(&ir, [1, 1, 1], &[m(&mut y), int(4), int(0)]).unwrap_err();
    assert!(e.to_string().contains("step of a loop must be positive, but is 0"), "{e}");
}

#[test]
fn printing() {
    let ir = r#"
module {
  tt.func public @k(%x: !tt.ptr<f32>, %n: i32) {
    %p = tt.get_program_id x : i32
    %i = tt.make_range {end = 12 : i32, start = 0 : i32} : tensor<12xi32>
    %t = tt.reshape %i : tensor<12xi32> -> tensor<3x4xi32>
    %xs = tt.splat %x : !tt.ptr<f32> -> tensor<2x!tt.ptr<f32>>
    %v = tt.load %xs : tensor<2x!tt.ptr<f32>>
    tt.print " tile: " {hex = false, isSigned = array<i32: 1>} : %t : tensor<3x4xi32>
    tt.print " both: " {hex = false, isSigned = array<i32: 0, 1>} : %v, %n : tensor<2xf32>, i32
    tt.print " hex: " {hex = true, isSigned = array<i32: 1>} : %n : i32
    tt.print " here" {hex = false, isSigned = array<i32>}
    tt.return
  }
}
"#;
    let x = [1.5f32];
    let text = run(ir, [40, 1, 1], &[ro(&x), int(-2)]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 40 * (12 + 3 + 1 + 1));
    let first = ["pid (0, 0, 0) idx (0, 0) tile: 0", "pid (0, 0, 0) idx (0, 1) tile: 1"];
    assert_eq!(&lines[..2], &first);
    assert_eq!(lines[12], "pid (0, 0, 0) idx (0) both: (operand 0) 1.500000");
    assert_eq!(lines[14], "pid (0, 0, 0) idx () both: (operand 1) -2");
    assert_eq!(lines[15], "pid (0, 0, 0) idx () hex: 0xfffffffe");
    assert_eq!(lines[16], "pid (0, 0, 0) here");
    // Programs in order, whatever thread ran them.
    assert_eq!(lines[17 * 39 + 16], "pid (39, 0, 0) here");
}

#[test]
fn assertions() {
    let body = "    %z = arith.constant dense<3> : tensor<$nxi32>\n    %ok = arith.cmpi ne, %a, %z : tensor<$nxi32>\n    tt.assert %ok, \"three is not allowed\" : tensor<$nxi1>\n    %r = arith.addi %a, %z : tensor<$nxi32>";
    let ir = common::elementwise(10, &["i32"], "i32", body);
    let mut x = [1i32; 10];
    let mut out = [0i32; 10];
    run(&ir, [1, 1, 1], &[ro(&x), m(&mut out)]);
    x[6] = 3;
    let e = try_run(&ir, [1, 1, 1], &[ro(&x), m(&mut out)]).unwrap_err();
    assert!(e.to_string().contains("device assertion failed: three is not allowed"), "{e}");
    assert_eq!(e.element, Some(vec![6]));
}

#[test]
fn what_is_not_supported_says_so() {
    let cases = [
        (
            "    %r = tt.elementwise_inline_asm \"mov.u32 $0, %laneid;\" {constraints = \"=r,r\", packed_element = 1 : i32, pure = true} %a : i32 -> i32\n    tt.store %p, %r : !tt.ptr<i32>",
            "inline assembly",
        ),
        (
            "    %r = tt.extern_elementwise %a {libname = \"\", libpath = \"\", pure = true, symbol = \"theirs\"} : (i32) -> i32\n    tt.store %p, %r : !tt.ptr<i32>",
            "theirs",
        ),
        ("    %r = \"foo.bar\"(%a) : (i32) -> i32\n    tt.store %p, %r : !tt.ptr<i32>", "`foo.bar`"),
    ];
    for (body, what) in cases {
        let ir = format!(
            "module {{\n  tt.func public @k(%p: !tt.ptr<i32>, %a: i32) {{\n{body}\n    tt.return\n  }}\n}}\n"
        );
        let module = tilewright_ir::parse(&ir, "k.mlir").unwrap_or_else(|e| panic!("{e}"));
        let e = Executable::compile(&module, "k").unwrap_err().to_string();
        assert!(e.contains("not supported yet") && e.contains(what) && e.contains("k.mlir:3"), "{e}");
    }
    let module = tilewright_ir::parse("module {\n}\n", "k.mlir").unwrap();
    assert!(Executable::compile(&module, "k").unwrap_err().message.contains("no function `k`"));
}

#[test]
fn library_functions_by_name() {
    let body = "    %r = tt.extern_elementwise %a, %b {libname = \"\", libpath = \"\", pure = true, symbol = \"__nv_powf\"} : (tensor<$nxf32>, tensor<$nxf32>) -> tensor<$nxf32>";
    let ir = common::elementwise(5, &["f32", "f32"], "f32", body);
    let (a, b) = ([1f32, 2.0, 3.0, 4.0, 0.0], [2f32, 0.5, 3.0, -1.0, 0.0]);
    let mut out = [0f32; 5];
    run(&ir, [1, 1, 1], &[ro(&a), ro(&b), m(&mut out)]);
    for i in 0..5 {
        assert_eq!(out[i], a[i].powf(b[i]));
    }
}

#[test]
fn arguments_are_checked_and_converted() {
    let ir = r#"
module {
  tt.func public @k(%y: !tt.ptr<f32>, %h: f16, %i: i8, %d: f64) {
    %a = arith.extf %h : f16 to f32
    %b = arith.sitofp %i : i8 to f32
    %c = arith.truncf %d : f64 to f32
    %s = arith.addf %a, %b : f32
    %t = arith.addf %s, %c : f32
    tt.store %y, %t : !tt.ptr<f32>
    tt.return
  }
}
"#;
    let mut y = [0f32];
    run(ir, [1, 1, 1], &[m(&mut y), float(1.0 + 2f64.powi(-12)), int(-3 + 256), float(0.25)]);
    assert_eq!(y[0], 1.0 - 3.0 + 0.25);
    // Raw bits, as a GPU's parameter buffer has them.
    let bits = |x: u64| common::A::Is(Arg::Bits(x));
    run(ir, [1, 1, 1], &[m(&mut y), bits(0x3c00), bits(0xfd), bits(0.25f64.to_bits())]);
    assert_eq!(y[0], 1.0 - 3.0 + 0.25);
    let e = try_run(ir, [1, 1, 1], &[m(&mut y), int(1), int(1), float(1.0)]).unwrap_err();
    assert!(e.to_string().contains("argument 1 of `k` is Int(1), but the parameter is of type f16"), "{e}");
    let e = try_run(ir, [1, 1, 1], &[m(&mut y)]).unwrap_err();
    assert!(e.to_string().contains("takes 4 arguments, but 1 were given"), "{e}");
    // An empty grid runs nothing.
    y[0] = 9.0;
    run(ir, [0, 1, 1], &[m(&mut y), float(1.0), int(1), float(1.0)]);
    assert_eq!(y[0], 9.0);
}

#[test]
fn a_run_can_be_interrupted() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let ir = r#"
module {
  tt.func public @k(%x: !tt.ptr<i32>) {
    %z = arith.constant 0 : i32
    scf.while () : () -> () {
      %v = tt.load %x {isVolatile = true} : !tt.ptr<i32>
      %go = arith.cmpi eq, %v, %z : i32
      scf.condition(%go)
    } do {
      scf.yield
    }
    tt.return
  }
}
"#;
    let exe = compile(ir);
    let x = [0i32];
    let mut memory = Memory::new();
    // SAFETY: `x` outlives the run.
    unsafe { memory.register(x.as_ptr() as u64, 4, "x", false) };
    let stop = AtomicBool::new(false);
    let e = std::thread::scope(|scope| {
        let run = scope.spawn(|| {
            let options = RunOptions { threads: 2, interrupt: Some(&stop), ..RunOptions::default() };
            exe.run([5, 1, 1], &[Arg::Pointer(x.as_ptr() as u64)], &memory, &options)
        });
        std::thread::sleep(std::time::Duration::from_millis(20));
        stop.store(true, Ordering::Relaxed);
        run.join().unwrap()
    });
    assert!(e.unwrap_err().interrupted);
}
