//! Reductions and scans over shapes and combine functions.

#![allow(clippy::type_complexity)] // tables of operations and references

mod common;

use common::{Random, m, ro, run};

/// Applies a reduce or scan to a tensor of `shape`, with the given combine function, and stores the first result.
fn kernel(
    op: &str,
    shape: &[usize],
    axis: usize,
    elem: &str,
    extra: &str,
    combine: &str,
) -> (String, Vec<usize>) {
    let n: usize = shape.iter().product();
    let mut to = shape.to_vec();
    if op == "reduce" {
        to.remove(axis);
    }
    let dims = |s: &[usize]| s.iter().map(|e| format!("{e}x")).collect::<String>();
    let k: usize = to.iter().product();
    let from_ty = format!("tensor<{}{elem}>", dims(shape));
    let (to_ty, back) = if to.is_empty() {
        (elem.to_string(), format!("    tt.store %y, %r : !tt.ptr<{elem}>"))
    } else {
        let ty = format!("tensor<{}{elem}>", dims(&to));
        let text = format!(
            "    %w = tt.reshape %r : {ty} -> tensor<{k}x{elem}>
    %j = tt.make_range {{end = {k} : i32, start = 0 : i32}} : tensor<{k}xi32>
    %ys = tt.splat %y : !tt.ptr<{elem}> -> tensor<{k}x!tt.ptr<{elem}>>
    %yp = tt.addptr %ys, %j : tensor<{k}x!tt.ptr<{elem}>>, tensor<{k}xi32>
    tt.store %yp, %w : tensor<{k}x!tt.ptr<{elem}>>"
        );
        (ty, text)
    };
    let attrs =
        if op == "reduce" { format!("axis = {axis} : i32") } else { format!("axis = {axis} : i32{extra}") };
    let ir = format!(
        r#"
module {{
  tt.func public @k(%x: !tt.ptr<{elem}>, %y: !tt.ptr<{elem}>) {{
    %i = tt.make_range {{end = {n} : i32, start = 0 : i32}} : tensor<{n}xi32>
    %xs = tt.splat %x : !tt.ptr<{elem}> -> tensor<{n}x!tt.ptr<{elem}>>
    %xp = tt.addptr %xs, %i : tensor<{n}x!tt.ptr<{elem}>>, tensor<{n}xi32>
    %v = tt.load %xp : tensor<{n}x!tt.ptr<{elem}>>
    %t = tt.reshape %v : tensor<{n}x{elem}> -> {from_ty}
    %r = "tt.{op}"(%t) <{{{attrs}}}> ({{
    ^bb0(%a: {elem}, %b: {elem}):
{combine}
      tt.{op}.return %c : {elem}
    }}) : ({from_ty}) -> {to_ty}
{back}
    tt.return
  }}
}}
"#
    );
    (ir, to)
}

const SHAPES: [(&[usize], usize); 10] = [
    (&[1], 0),
    (&[7], 0),
    (&[1000], 0),
    (&[1024], 0),
    (&[5, 9], 0),
    (&[5, 9], 1),
    (&[64, 1], 1),
    (&[1, 33], 0),
    (&[3, 4, 5], 1),
    (&[6, 1, 11], 2),
];

/// The elements along the axis for each result, in order.
fn lines(x: &[i64], shape: &[usize], axis: usize) -> Vec<Vec<(usize, i64)>> {
    let inner: usize = shape[axis + 1..].iter().product();
    let outer: usize = shape[..axis].iter().product();
    let n = shape[axis];
    let mut all = Vec::new();
    for o in 0..outer {
        for i in 0..inner {
            all.push((0..n).map(|k| ((o * n + k) * inner + i, x[(o * n + k) * inner + i])).collect());
        }
    }
    all
}

#[test]
fn integer_reductions() {
    let mut r = Random(1);
    let cases: &[(&str, fn(i64, i64) -> i64)] = &[
        ("      %c = arith.addi %a, %b : i32", |a, b| i64::from((a as i32).wrapping_add(b as i32))),
        ("      %c = arith.maxsi %a, %b : i32", i64::max),
        ("      %c = arith.minui %a, %b : i32", |a, b| i64::from((a as u32).min(b as u32) as i32)),
        ("      %c = arith.xori %a, %b : i32", |a, b| a ^ b),
        // Not a single operation: runs as a program.
        ("      %g = arith.cmpi sgt, %a, %b : i32\n      %c = arith.select %g, %a, %b : i32", i64::max),
        // With branches: lane by lane.
        (
            "      %g = arith.cmpi sgt, %a, %b : i32\n      %c = scf.if %g -> (i32) {\n        scf.yield %a : i32\n      } else {\n        scf.yield %b : i32\n      }",
            i64::max,
        ),
        // Arguments the other way round.
        ("      %c = arith.addi %b, %a : i32", |a, b| i64::from((a as i32).wrapping_add(b as i32))),
    ];
    for (shape, axis) in SHAPES {
        let n: usize = shape.iter().product();
        let x: Vec<i32> = (0..n).map(|_| r.bits() as i32).collect();
        let wide: Vec<i64> = x.iter().map(|&v| i64::from(v)).collect();
        for (combine, f) in cases {
            let (ir, to) = kernel("reduce", shape, axis, "i32", "", combine);
            let mut y = vec![0i32; to.iter().product()];
            run(&ir, [1, 1, 1], &[ro(&x), m(&mut y)]);
            for (got, line) in y.iter().zip(lines(&wide, shape, axis)) {
                let want = line.iter().map(|&(_, v)| v).reduce(f).unwrap();
                assert_eq!(i64::from(*got), want, "{shape:?} axis {axis} {combine}");
            }
        }
    }
}

#[test]
fn scans_in_both_directions() {
    let mut r = Random(2);
    let cases: &[(&str, fn(i64, i64) -> i64)] = &[
        ("      %c = arith.addi %a, %b : i32", |a, b| i64::from((a as i32).wrapping_add(b as i32))),
        ("      %c = arith.maxsi %a, %b : i32", i64::max),
        // Order matters: the accumulator is the first argument.
        (
            "      %one = arith.constant 1 : i32\n      %h = arith.shrsi %a, %one : i32\n      %c = arith.subi %b, %h : i32",
            |a, b| i64::from((b as i32).wrapping_sub((a as i32) >> 1)),
        ),
        ("      %c = arith.subi %a, %b : i32", |a, b| i64::from((a as i32).wrapping_sub(b as i32))),
    ];
    for (shape, axis) in SHAPES {
        let n: usize = shape.iter().product();
        let x: Vec<i32> = (0..n).map(|_| r.bits() as i32).collect();
        let wide: Vec<i64> = x.iter().map(|&v| i64::from(v)).collect();
        for reverse in [false, true] {
            for (combine, f) in cases {
                let extra = format!(", reverse = {reverse}");
                let (ir, _) = kernel("scan", shape, axis, "i32", &extra, combine);
                let mut y = vec![0i32; n];
                run(&ir, [1, 1, 1], &[ro(&x), m(&mut y)]);
                for mut line in lines(&wide, shape, axis) {
                    if reverse {
                        line.reverse();
                    }
                    let mut acc: Option<i64> = None;
                    for (at, v) in line {
                        let now = acc.map_or(v, |a| f(a, v));
                        acc = Some(now);
                        assert_eq!(
                            i64::from(y[at]),
                            now,
                            "{shape:?} axis {axis} reverse {reverse} {combine}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn float_sums_are_close_and_the_same_every_time() {
    let mut r = Random(3);
    for (shape, axis) in SHAPES {
        let n: usize = shape.iter().product();
        let x = r.f32s(n);
        let (ir, to) = kernel("reduce", shape, axis, "f32", "", "      %c = arith.addf %a, %b : f32");
        let k: usize = to.iter().product();
        let (mut y, mut again) = (vec![0f32; k], vec![0f32; k]);
        run(&ir, [1, 1, 1], &[ro(&x), m(&mut y)]);
        run(&ir, [1, 1, 1], &[ro(&x), m(&mut again)]);
        assert_eq!(y, again);
        let bits: Vec<i64> = (0..n as i64).collect();
        for (got, line) in y.iter().zip(lines(&bits, shape, axis)) {
            let want: f64 = line.iter().map(|&(at, _)| f64::from(x[at])).sum();
            assert!((f64::from(*got) - want).abs() < 1e-5, "{shape:?} {got} {want}");
        }
    }
}

#[test]
fn half_precision_sums_round_each_step() {
    // 2048 + 1 rounds to 2048 in f16 whatever the order; a sum in f32 would give 2049.
    let x = [0x6800u16, 0x3c00];
    let (ir, _) = kernel("reduce", &[2], 0, "f16", "", "      %c = arith.addf %a, %b : f16");
    let mut y = [0u16];
    run(&ir, [1, 1, 1], &[ro(&x), m(&mut y)]);
    assert_eq!(y, [0x6800]);
}

#[test]
fn max_treats_nan_as_its_operation_says() {
    let x = [1.0f32, f32::NAN, 3.0, 2.0];
    for (op, nan) in [("maxnumf", false), ("maximumf", true)] {
        let (ir, _) = kernel("reduce", &[4], 0, "f32", "", &format!("      %c = arith.{op} %a, %b : f32"));
        let mut y = [0f32];
        run(&ir, [1, 1, 1], &[ro(&x), m(&mut y)]);
        assert!(if nan { y[0].is_nan() } else { y[0] == 3.0 }, "{op} {y:?}");
    }
}

/// Row-wise argmax of a 6×100 tensor with ties to the lower index, and the captured scalar %bias added to the maximum.
const ARGMAX: &str = r#"
module {
  tt.func public @k(%x: !tt.ptr<f32>, %y: !tt.ptr<i32>, %z: !tt.ptr<f32>, %bias: f32) {
    %i = tt.make_range {end = 600 : i32, start = 0 : i32} : tensor<600xi32>
    %xs = tt.splat %x : !tt.ptr<f32> -> tensor<600x!tt.ptr<f32>>
    %xp = tt.addptr %xs, %i : tensor<600x!tt.ptr<f32>>, tensor<600xi32>
    %v = tt.load %xp : tensor<600x!tt.ptr<f32>>
    %t = tt.reshape %v : tensor<600xf32> -> tensor<6x100xf32>
    %c = tt.make_range {end = 100 : i32, start = 0 : i32} : tensor<100xi32>
    %ce = tt.expand_dims %c {axis = 0 : i32} : tensor<100xi32> -> tensor<1x100xi32>
    %cb = tt.broadcast %ce : tensor<1x100xi32> -> tensor<6x100xi32>
    %r:2 = "tt.reduce"(%t, %cb) <{axis = 1 : i32}> ({
    ^bb0(%a: f32, %ai: i32, %b: f32, %bi: i32):
      %eq = arith.cmpf oeq, %a, %b : f32
      %lo = arith.cmpi slt, %ai, %bi : i32
      %tie = arith.andi %eq, %lo : i1
      %gt0 = arith.cmpf ogt, %a, %b : f32
      %gt = arith.ori %gt0, %tie : i1
      %m = arith.select %gt, %a, %b : f32
      %mi = arith.select %gt, %ai, %bi : i32
      tt.reduce.return %m, %mi : f32, i32
    }) : (tensor<6x100xf32>, tensor<6x100xi32>) -> (tensor<6xf32>, tensor<6xi32>)
    %biased = "tt.reduce"(%t) <{axis = 1 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %m = arith.maxnumf %a, %b : f32
      %n = arith.maxnumf %m, %bias : f32
      tt.reduce.return %n : f32
    }) : (tensor<6x100xf32>) -> tensor<6xf32>
    %j = tt.make_range {end = 6 : i32, start = 0 : i32} : tensor<6xi32>
    %ys = tt.splat %y : !tt.ptr<i32> -> tensor<6x!tt.ptr<i32>>
    %yp = tt.addptr %ys, %j : tensor<6x!tt.ptr<i32>>, tensor<6xi32>
    tt.store %yp, %r#1 : tensor<6x!tt.ptr<i32>>
    %zs = tt.splat %z : !tt.ptr<f32> -> tensor<6x!tt.ptr<f32>>
    %zp = tt.addptr %zs, %j : tensor<6x!tt.ptr<f32>>, tensor<6xi32>
    tt.store %zp, %biased : tensor<6x!tt.ptr<f32>>
    tt.return
  }
}
"#;

#[test]
fn argmax_breaks_ties_to_the_left_and_sees_outer_scalars() {
    let mut r = Random(4);
    // Few distinct values: many ties.
    let x: Vec<f32> = (0..600).map(|_| (r.bits() % 7) as f32).collect();
    let (mut y, mut z) = (vec![0i32; 6], vec![0f32; 6]);
    run(ARGMAX, [1, 1, 1], &[ro(&x), m(&mut y), m(&mut z), common::float(6.5)]);
    for row in 0..6 {
        let line = &x[row * 100..][..100];
        let max = line.iter().copied().fold(f32::MIN, f32::max);
        assert_eq!(y[row] as usize, line.iter().position(|&v| v == max).unwrap());
        assert_eq!(z[row], 6.5);
    }
}
