//! Operations that arrange elements.

mod common;

use common::{Random, m, ro, run, try_run};

/// Loads a tensor of any shape of i32 laid out row-major, applies `body` (from `%a` to `%r`), stores `%r` row-major.
fn reshaping(from: &[usize], to: &[usize], elem: &str, body: &str) -> String {
    let text = |s: &[usize]| s.iter().map(|e| format!("{e}x")).collect::<String>();
    let n: usize = from.iter().product();
    let k: usize = to.iter().product();
    let (f, t) = (text(from), text(to));
    format!(
        r#"
module {{
  tt.func public @k(%x: !tt.ptr<{elem}>, %y: !tt.ptr<{elem}>) {{
    %i = tt.make_range {{end = {n} : i32, start = 0 : i32}} : tensor<{n}xi32>
    %xs = tt.splat %x : !tt.ptr<{elem}> -> tensor<{n}x!tt.ptr<{elem}>>
    %xp = tt.addptr %xs, %i : tensor<{n}x!tt.ptr<{elem}>>, tensor<{n}xi32>
    %v = tt.load %xp : tensor<{n}x!tt.ptr<{elem}>>
    %a = tt.reshape %v : tensor<{n}x{elem}> -> tensor<{f}{elem}>
{body}
    %w = tt.reshape %r : tensor<{t}{elem}> -> tensor<{k}x{elem}>
    %j = tt.make_range {{end = {k} : i32, start = 0 : i32}} : tensor<{k}xi32>
    %ys = tt.splat %y : !tt.ptr<{elem}> -> tensor<{k}x!tt.ptr<{elem}>>
    %yp = tt.addptr %ys, %j : tensor<{k}x!tt.ptr<{elem}>>, tensor<{k}xi32>
    tt.store %yp, %w : tensor<{k}x!tt.ptr<{elem}>>
    tt.return
  }}
}}
"#
    )
}

#[test]
fn transposes() {
    macro_rules! check {
        ($T:ty, $name:literal) => {
            for (shape, order) in [
                (vec![3usize, 5], vec![1usize, 0]),
                (vec![2, 3, 4], vec![2, 0, 1]),
                (vec![2, 3, 4], vec![0, 2, 1]),
                (vec![1, 6], vec![1, 0]),
                (vec![2, 2, 3, 2, 3], vec![4, 2, 0, 1, 3]),
            ] {
                let n: usize = shape.iter().product();
                let x: Vec<$T> = (0..n).map(|i| i as $T).collect();
                let mut y = vec![0 as $T; n];
                let to: Vec<usize> = order.iter().map(|&d| shape[d]).collect();
                let dims = |s: &[usize]| s.iter().map(|e| format!("{e}x")).collect::<String>();
                let orders = order.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                let body = format!(
                    "    %r = tt.trans %a {{order = array<i32: {orders}>}} : tensor<{}{}> -> tensor<{}{}>",
                    dims(&shape),
                    $name,
                    dims(&to),
                    $name
                );
                run(&reshaping(&shape, &to, $name, &body), [1, 1, 1], &[ro(&x), m(&mut y)]);
                for i in 0..n {
                    let mut rest = i;
                    let mut index = vec![0; to.len()];
                    for d in (0..to.len()).rev() {
                        index[d] = rest % to[d];
                        rest /= to[d];
                    }
                    let mut source = vec![0; shape.len()];
                    for (d, &from) in order.iter().enumerate() {
                        source[from] = index[d];
                    }
                    let flat = source.iter().zip(&shape).fold(0, |acc, (&i, &e)| acc * e + i);
                    assert_eq!(y[i], x[flat], "{shape:?} {order:?}");
                }
            }
        };
    }
    check!(i8, "i8");
    check!(i16, "i16");
    check!(i32, "i32");
    check!(i64, "i64");
}

#[test]
fn broadcasts() {
    for (from, to) in [
        (vec![3usize, 1], vec![3usize, 5]),
        (vec![1, 5], vec![3, 5]),
        (vec![1, 1], vec![4, 3]),
        (vec![2, 1, 3], vec![2, 4, 3]),
        (vec![1, 4, 1], vec![3, 4, 2]),
    ] {
        let (n, k): (usize, usize) = (from.iter().product(), to.iter().product());
        let x: Vec<i32> = (10..10 + n as i32).collect();
        let mut y = vec![0; k];
        let dims = |s: &[usize]| s.iter().map(|e| format!("{e}x")).collect::<String>();
        let body =
            format!("    %r = tt.broadcast %a : tensor<{}i32> -> tensor<{}i32>", dims(&from), dims(&to));
        run(&reshaping(&from, &to, "i32", &body), [1, 1, 1], &[ro(&x), m(&mut y)]);
        for (i, &got) in y.iter().enumerate() {
            let mut rest = i;
            let (mut flat, mut stride) = (0, 1);
            for d in (0..to.len()).rev() {
                let index = rest % to[d];
                rest /= to[d];
                flat += if from[d] == 1 { 0 } else { index * stride };
                stride *= from[d];
            }
            assert_eq!(got, x[flat], "{from:?} to {to:?} at {i}");
        }
    }
}

#[test]
fn join_split_cat_expand() {
    let x: Vec<i32> = (0..12).collect();
    let mut y = vec![0; 24];
    let body = "    %n = arith.constant dense<100> : tensor<3x4xi32>\n    %b = arith.addi %a, %n : tensor<3x4xi32>\n    %r = tt.join %a, %b : tensor<3x4xi32> -> tensor<3x4x2xi32>";
    run(&reshaping(&[3, 4], &[3, 4, 2], "i32", body), [1, 1, 1], &[ro(&x), m(&mut y)]);
    for i in 0..12 {
        assert_eq!((y[2 * i], y[2 * i + 1]), (x[i], x[i] + 100));
    }
    let mut y = vec![0; 6];
    let body = "    %l, %h = tt.split %a : tensor<3x2x2xi32> -> tensor<3x2xi32>\n    %r = arith.subi %h, %l : tensor<3x2xi32>";
    run(&reshaping(&[3, 2, 2], &[3, 2], "i32", body), [1, 1, 1], &[ro(&x), m(&mut y)]);
    assert_eq!(y, [1; 6]);
    let mut y = vec![0; 24];
    let body = "    %n = arith.constant dense<7> : tensor<12xi32>\n    %r = tt.cat %a, %n : tensor<12xi32> -> tensor<24xi32>";
    run(&reshaping(&[12], &[24], "i32", body), [1, 1, 1], &[ro(&x), m(&mut y)]);
    assert!(y[..12] == x[..] && y[12..] == [7; 12]);
    let mut y = vec![0; 12];
    let body = "    %e = tt.expand_dims %a {axis = 1 : i32} : tensor<3x4xi32> -> tensor<3x1x4xi32>\n    %r = arith.addi %e, %e : tensor<3x1x4xi32>";
    run(&reshaping(&[3, 4], &[3, 1, 4], "i32", body), [1, 1, 1], &[ro(&x), m(&mut y)]);
    assert!(y.iter().zip(&x).all(|(&y, &x)| y == 2 * x));
}

#[test]
fn extracts_a_tile_by_its_number() {
    let x: Vec<i32> = (0..72).collect();
    for tile in 0..6 {
        let mut y = vec![0; 12];
        let body = format!("    %r = tt.extract %a[{tile}] : tensor<6x12xi32> -> tensor<3x4xi32>");
        run(&reshaping(&[6, 12], &[3, 4], "i32", &body), [1, 1, 1], &[ro(&x), m(&mut y)]);
        for (i, &got) in y.iter().enumerate() {
            assert_eq!(
                got as usize,
                (tile / 3 * 3 + i / 4) * 12 + tile % 3 * 4 + i % 4,
                "tile {tile} at {i}"
            );
        }
    }
}

/// Index arithmetic stays compact through shapes; whatever path it takes, elements agree.
#[test]
fn compact_values_through_shapes() {
    let n = 24;
    let ir = r#"
module {
  tt.func public @k(%y: !tt.ptr<i32>) {
    %i = tt.make_range {end = 24 : i32, start = 0 : i32} : tensor<24xi32>
    %two = arith.constant dense<2> : tensor<24xi32>
    %t = arith.muli %i, %two : tensor<24xi32>
    %r3 = tt.reshape %t : tensor<24xi32> -> tensor<4x6xi32>
    %tr = tt.trans %r3 {order = array<i32: 1, 0>} : tensor<4x6xi32> -> tensor<6x4xi32>
    %u = tt.reshape %tr : tensor<6x4xi32> -> tensor<24xi32>
    %a = tt.make_range {end = 6 : i32, start = 0 : i32} : tensor<6xi32>
    %ae = tt.expand_dims %a {axis = 1 : i32} : tensor<6xi32> -> tensor<6x1xi32>
    %ab = tt.broadcast %ae : tensor<6x1xi32> -> tensor<6x4xi32>
    %at = tt.trans %ab {order = array<i32: 1, 0>} : tensor<6x4xi32> -> tensor<4x6xi32>
    %af = tt.reshape %at : tensor<4x6xi32> -> tensor<24xi32>
    %c = arith.constant dense<100> : tensor<24xi32>
    %h = arith.muli %af, %c : tensor<24xi32>
    %s = arith.addi %u, %h : tensor<24xi32>
    %ys = tt.splat %y : !tt.ptr<i32> -> tensor<24x!tt.ptr<i32>>
    %yp = tt.addptr %ys, %i : tensor<24x!tt.ptr<i32>>, tensor<24xi32>
    tt.store %yp, %s : tensor<24x!tt.ptr<i32>>
    tt.return
  }
}
"#;
    let mut y = vec![0i32; n];
    run(ir, [1, 1, 1], &[m(&mut y)]);
    for (i, &got) in y.iter().enumerate() {
        let (r, c) = (i / 4, i % 4);
        assert_eq!(got, 2 * (c * 6 + r) as i32 + 100 * (i % 6) as i32);
    }
}

#[test]
fn index_arithmetic_wraps_like_elements() {
    // i·2^20 passes 2^31 at i = 2048: the compact form must give way.
    let n = 4099;
    let ir = format!(
        r#"
module {{
  tt.func public @k(%y: !tt.ptr<i64>, %k: i32) {{
    %i = tt.make_range {{end = {n} : i32, start = 0 : i32}} : tensor<{n}xi32>
    %ks = tt.splat %k : i32 -> tensor<{n}xi32>
    %t = arith.muli %i, %ks : tensor<{n}xi32>
    %w = arith.extsi %t : tensor<{n}xi32> to tensor<{n}xi64>
    %u = arith.extui %t : tensor<{n}xi32> to tensor<{n}xi64>
    %m = arith.xori %w, %u : tensor<{n}xi64>
    %s = arith.addi %w, %m : tensor<{n}xi64>
    %ys = tt.splat %y : !tt.ptr<i64> -> tensor<{n}x!tt.ptr<i64>>
    %yp = tt.addptr %ys, %i : tensor<{n}x!tt.ptr<i64>>, tensor<{n}xi32>
    tt.store %yp, %s : tensor<{n}x!tt.ptr<i64>>
    tt.return
  }}
}}
"#
    );
    for k in [1i32, 1 << 20, -(1 << 20), -3] {
        let mut y = vec![0i64; n];
        run(&ir, [1, 1, 1], &[m(&mut y), common::int(i64::from(k))]);
        for (i, &got) in y.iter().enumerate() {
            let t = (i as i32).wrapping_mul(k);
            let (w, u) = (i64::from(t), i64::from(t as u32));
            assert_eq!(got, w.wrapping_add(w ^ u), "{i} * {k}");
        }
    }
}

#[test]
fn histograms() {
    let mut r = Random(31);
    let x: Vec<i32> = (0..1000).map(|_| (r.bits() % 40) as i32 - 3).collect();
    let keep: Vec<u8> = (0..1000).map(|i| u8::from(i % 3 != 0)).collect();
    for masked in [false, true] {
        let ir = format!(
            r#"
module {{
  tt.func public @k(%x: !tt.ptr<i32>, %k: !tt.ptr<i1>, %y: !tt.ptr<i32>) {{
    %i = tt.make_range {{end = 1000 : i32, start = 0 : i32}} : tensor<1000xi32>
    %xs = tt.splat %x : !tt.ptr<i32> -> tensor<1000x!tt.ptr<i32>>
    %xp = tt.addptr %xs, %i : tensor<1000x!tt.ptr<i32>>, tensor<1000xi32>
    %v = tt.load %xp : tensor<1000x!tt.ptr<i32>>
    %ks = tt.splat %k : !tt.ptr<i1> -> tensor<1000x!tt.ptr<i1>>
    %kp = tt.addptr %ks, %i : tensor<1000x!tt.ptr<i1>>, tensor<1000xi32>
    %m = tt.load %kp : tensor<1000x!tt.ptr<i1>>
    %h = tt.histogram %v{} : tensor<1000xi32> -> tensor<24xi32>
    %j = tt.make_range {{end = 24 : i32, start = 0 : i32}} : tensor<24xi32>
    %ys = tt.splat %y : !tt.ptr<i32> -> tensor<24x!tt.ptr<i32>>
    %yp = tt.addptr %ys, %j : tensor<24x!tt.ptr<i32>>, tensor<24xi32>
    tt.store %yp, %h : tensor<24x!tt.ptr<i32>>
    tt.return
  }}
}}
"#,
            if masked { ", %m" } else { "" }
        );
        let mut y = vec![9i32; 24];
        run(&ir, [1, 1, 1], &[ro(&x), ro(&keep), m(&mut y)]);
        for bin in 0..24 {
            let want = (0..1000).filter(|&i| x[i] == bin && (!masked || keep[i] != 0)).count();
            assert_eq!(y[bin as usize], want as i32, "bin {bin} masked {masked}");
        }
    }
}

#[test]
fn gathers_along_an_axis() {
    for axis in 0..2usize {
        let ir = format!(
            r#"
module {{
  tt.func public @k(%x: !tt.ptr<f32>, %idx: !tt.ptr<i32>, %y: !tt.ptr<f32>) {{
    %i = tt.make_range {{end = 12 : i32, start = 0 : i32}} : tensor<12xi32>
    %xs = tt.splat %x : !tt.ptr<f32> -> tensor<12x!tt.ptr<f32>>
    %xp = tt.addptr %xs, %i : tensor<12x!tt.ptr<f32>>, tensor<12xi32>
    %v = tt.load %xp : tensor<12x!tt.ptr<f32>>
    %a = tt.reshape %v : tensor<12xf32> -> tensor<3x4xf32>
    %is = tt.splat %idx : !tt.ptr<i32> -> tensor<12x!tt.ptr<i32>>
    %ip = tt.addptr %is, %i : tensor<12x!tt.ptr<i32>>, tensor<12xi32>
    %w = tt.load %ip : tensor<12x!tt.ptr<i32>>
    %b = tt.reshape %w : tensor<12xi32> -> tensor<3x4xi32>
    %g = tt.gather %a[%b] {{axis = {axis} : i32}} : (tensor<3x4xf32>, tensor<3x4xi32>) -> tensor<3x4xf32>
    %r = tt.reshape %g : tensor<3x4xf32> -> tensor<12xf32>
    %ys = tt.splat %y : !tt.ptr<f32> -> tensor<12x!tt.ptr<f32>>
    %yp = tt.addptr %ys, %i : tensor<12x!tt.ptr<f32>>, tensor<12xi32>
    tt.store %yp, %r : tensor<12x!tt.ptr<f32>>
    tt.return
  }}
}}
"#
        );
        let x: Vec<f32> = (0..12).map(|i| i as f32).collect();
        let mut idx: Vec<i32> = (0..12).map(|i| (i * 5) % 3).collect();
        let mut y = vec![0f32; 12];
        run(&ir, [1, 1, 1], &[ro(&x), ro(&idx), m(&mut y)]);
        for i in 0..12 {
            let (r, c, at) = (i / 4, i % 4, idx[i] as usize);
            let want = if axis == 0 { x[at * 4 + c] } else { x[r * 4 + at] };
            assert_eq!(y[i], want);
        }
        idx[6] = 4;
        let e = try_run(&ir, [1, 1, 1], &[ro(&x), ro(&idx), m(&mut y)]).unwrap_err();
        assert!(e.to_string().contains("gather index 4 is outside"), "{e}");
        assert_eq!(e.element, Some(vec![1, 2]));
    }
}
