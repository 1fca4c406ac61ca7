//! One operation at a time, run in the PTX simulator.

mod common;

use common::*;

const HEAD: &str = r#"
#blocked = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#one = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#rows = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#cols = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#tall = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [16, 2], warpsPerCTA = [2, 2], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
#shared = #ttg.swizzled_shared<{vec = 4, perPhase = 1, maxPhase = 4, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.shared" = 65536 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
"#;

/// A kernel over 1-D tensors of `n` elements: loads `%x` from the first argument, stores `%y` to the second.
fn one_dim(n: usize, from: &str, to: &str, layout: &str, body: &str) -> String {
    format!(
        r#"{HEAD}
  tt.func public @kernel(%in: !tt.ptr<{from}>, %out: !tt.ptr<{to}>) {{
    %r = tt.make_range {{end = {n} : i32, start = 0 : i32}} : tensor<{n}xi32, {layout}>
    %is = tt.splat %in : !tt.ptr<{from}> -> tensor<{n}x!tt.ptr<{from}>, {layout}>
    %ip = tt.addptr %is, %r : tensor<{n}x!tt.ptr<{from}>, {layout}>, tensor<{n}xi32, {layout}>
    %x = tt.load %ip {{tt.vec = 2 : i32, tt.vec_axis = 0 : i32}} : tensor<{n}x!tt.ptr<{from}>, {layout}>
    {body}
    %os = tt.splat %out : !tt.ptr<{to}> -> tensor<{n}x!tt.ptr<{to}>, {layout}>
    %op = tt.addptr %os, %r : tensor<{n}x!tt.ptr<{to}>, {layout}>, tensor<{n}xi32, {layout}>
    tt.store %op, %y {{tt.vec = 2 : i32, tt.vec_axis = 0 : i32}} : tensor<{n}x!tt.ptr<{to}>, {layout}>
    tt.return
  }}
}}"#
    )
}

/// Pointers of an m × n matrix in a layout, named `%{name}p`.
fn matrix(m: usize, n: usize, ptr: &str, ty: &str, layout: &str, name: &str) -> String {
    format!(
        r#"
    %{name}i = tt.make_range {{end = {m} : i32, start = 0 : i32}} : tensor<{m}xi32, #ttg.slice<{{dim = 1, parent = {layout}}}>>
    %{name}j = tt.make_range {{end = {n} : i32, start = 0 : i32}} : tensor<{n}xi32, #ttg.slice<{{dim = 0, parent = {layout}}}>>
    %{name}i2 = tt.expand_dims %{name}i {{axis = 1 : i32}} : tensor<{m}xi32, #ttg.slice<{{dim = 1, parent = {layout}}}>> -> tensor<{m}x1xi32, {layout}>
    %{name}j2 = tt.expand_dims %{name}j {{axis = 0 : i32}} : tensor<{n}xi32, #ttg.slice<{{dim = 0, parent = {layout}}}>> -> tensor<1x{n}xi32, {layout}>
    %{name}s = arith.constant dense<{n}> : tensor<{m}x1xi32, {layout}>
    %{name}m = arith.muli %{name}i2, %{name}s : tensor<{m}x1xi32, {layout}>
    %{name}mb = tt.broadcast %{name}m : tensor<{m}x1xi32, {layout}> -> tensor<{m}x{n}xi32, {layout}>
    %{name}jb = tt.broadcast %{name}j2 : tensor<1x{n}xi32, {layout}> -> tensor<{m}x{n}xi32, {layout}>
    %{name}o = arith.addi %{name}mb, %{name}jb : tensor<{m}x{n}xi32, {layout}>
    %{name}ps = tt.splat {ptr} : !tt.ptr<{ty}> -> tensor<{m}x{n}x!tt.ptr<{ty}>, {layout}>
    %{name}p = tt.addptr %{name}ps, %{name}o : tensor<{m}x{n}x!tt.ptr<{ty}>, {layout}>, tensor<{m}x{n}xi32, {layout}>"#
    )
}

fn check_unary(op: &str, f: impl Fn(f64) -> f64, inputs: &[f32], ulps: f64) {
    let n = 256;
    let mut x: Vec<f32> = inputs.to_vec();
    x.resize(n, 1.0);
    let (mut a, mut b) = (Buffer::f32(&x), Buffer::zeros(n * 4));
    let ir = one_dim(n, "f32", "f32", "#blocked", &format!("%y = {op} %x : tensor<{n}xf32, #blocked>"));
    run(&ir, "cuda:90", 1, &mut [Arg::Buffer(&mut a), Arg::Buffer(&mut b)]);
    for (x, got) in x.iter().zip(b.to_f32()) {
        let want = f(f64::from(*x));
        if want.is_nan() {
            assert!(got.is_nan(), "{op}({x}) = {got}, want NaN");
            continue;
        }
        if want.is_infinite() || want.abs() > f64::from(f32::MAX) {
            assert_eq!(f64::from(got), want.signum() * f64::INFINITY, "{op}({x})");
            continue;
        }
        let unit = (f64::from(f32::EPSILON) * want.abs()).max(f64::from(f32::from_bits(1)));
        let error = (f64::from(got) - want).abs() / unit;
        assert!(error <= ulps, "{op}({x}) = {got}, want {want}: {error} ulp");
    }
}

#[test]
fn functions_of_fp32() {
    let spread: Vec<f32> = numbers(200, 7).iter().map(|v| v * 3.0).collect();
    let positive: Vec<f32> = (0..200).map(|i| (1.31f32).powi(i - 100) * 1.1).collect();
    let mut logs = positive.clone();
    logs.extend([0.0, -1.0, f32::INFINITY, f32::NAN, 1.0, 1e-40, 1.0000001, 0.99999994, f32::MAX]);
    check_unary("math.log", f64::ln, &logs, 1.5);
    check_unary("math.log2", f64::log2, &logs, 2.0);
    check_unary("math.sqrt", f64::sqrt, &positive, 1.5);
    check_unary("math.rsqrt", |x| 1.0 / x.sqrt(), &positive, 2.5);
    let mut angles: Vec<f32> = spread.clone();
    angles.extend([
        0.0,
        1e5,
        -1e5,
        1.1e5,
        1e10,
        -3.3e22,
        3.4e38,
        f32::NAN,
        f32::INFINITY,
        22.0,
        355.0,
        1e-20,
    ]);
    check_unary("math.sin", f64::sin, &angles, 2.0);
    check_unary("math.cos", f64::cos, &angles, 2.0);
    check_unary("math.exp2", f64::exp2, &spread, 2.5);
    // The argument's rounding: |x| log2 e / 2 ulp more.
    check_unary("math.exp", f64::exp, &spread, 8.0);
    check_unary("math.tanh", f64::tanh, &angles, 3.0);
    check_unary("math.erf", erf, &spread, 3.0);
    check_unary("math.floor", f64::floor, &spread, 0.0);
    check_unary("math.ceil", f64::ceil, &spread, 0.0);
    check_unary("math.absf", f64::abs, &spread, 0.0);
    let halves = [0.5, -0.5, 1.5, 2.5, 0.49999997, -2.5, 8388609.0, 3.2, -0.2];
    check_unary("math.round", f64::round, &halves, 0.0);
}

/// Maclaurin's series and, further out, the continued fraction of erfc.
fn erf(x: f64) -> f64 {
    let a = x.abs();
    if a < 2.0 {
        let (mut term, mut sum, mut n) = (a, a, 0.0);
        while term.abs() > 1e-18 {
            n += 1.0;
            term *= -a * a / n;
            sum += term / (2.0 * n + 1.0);
        }
        return x.signum() * sum * 2.0 / std::f64::consts::PI.sqrt();
    }
    let mut f = 0.0;
    for k in (1..200).rev() {
        f = f64::from(k) / 2.0 / (a + f);
    }
    x.signum() * (1.0 - (-a * a).exp() / ((a + f) * std::f64::consts::PI.sqrt()))
}

fn check_double(op: &str, f: impl Fn(f64) -> f64, inputs: &[f64], ulps: f64) {
    let n = 128;
    let mut x: Vec<f64> = inputs.to_vec();
    x.resize(n, 1.0);
    let (mut a, mut b) = (Buffer::f64(&x), Buffer::zeros(n * 8));
    let ir = one_dim(n, "f64", "f64", "#one", &format!("%y = {op} %x : tensor<{n}xf64, #one>"));
    run(
        &ir.replace("tt.vec = 2", "tt.vec = 1"),
        "cuda:90",
        1,
        &mut [Arg::Buffer(&mut a), Arg::Buffer(&mut b)],
    );
    for (x, got) in x.iter().zip(b.to_f64()) {
        let want = f(*x);
        if want.is_nan() || want.is_infinite() {
            assert!(want.is_nan() && got.is_nan() || got == want, "{op}({x}) = {got}, want {want}");
            continue;
        }
        let unit = (f64::EPSILON * want.abs()).max(f64::from_bits(1));
        let error = (got - want).abs() / unit;
        assert!(error <= ulps, "{op}({x}) = {got}, want {want}: {error} ulp");
    }
}

#[test]
fn functions_of_fp64() {
    let x: Vec<f64> = numbers(100, 11).iter().map(|&v| f64::from(v) * 5.37).collect();
    let ends =
        [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e-300, 700.0, -740.0, 1e300, 5e-320, -1.0];
    let with_ends: Vec<f64> = x.iter().copied().chain(ends).collect();
    check_double("math.exp", f64::exp, &with_ends, 2.0);
    check_double("math.exp2", f64::exp2, &with_ends, 2.0);
    check_double("math.log", f64::ln, &with_ends, 2.0);
    check_double("math.log2", f64::log2, &with_ends, 2.5);
    check_double("math.sin", f64::sin, &x, 2.0);
    check_double("math.cos", f64::cos, &x, 2.0);
    check_double("math.tanh", f64::tanh, &x, 3.0);
    check_double("math.erf", erf, &x, 4.0);
}

/// Loads an m × n matrix in one layout, does something to it, stores the result in another.
fn two_dim(m: usize, n: usize, ty: &str, from: &str, to: (usize, usize, &str), body: &str) -> String {
    let (om, on, out) = to;
    format!(
        "{HEAD}  tt.func public @kernel(%in: !tt.ptr<{ty}>, %out: !tt.ptr<{ty}>) {{{}\n    \
         %x = tt.load %ap : tensor<{m}x{n}x!tt.ptr<{ty}>, {from}>\n    {body}{}\n    \
         tt.store %bp, %y : tensor<{om}x{on}x!tt.ptr<{ty}>, {out}>\n    tt.return\n  }}\n}}",
        matrix(m, n, "%in", ty, from, "a"),
        matrix(om, on, "%out", ty, out, "b")
    )
}

fn run_two_dim(ir: &str, input: &[f32], outputs: usize) -> Vec<f32> {
    let (mut a, mut b) = (Buffer::f32(input), Buffer::zeros(outputs * 4));
    run(ir, "cuda:90", 1, &mut [Arg::Buffer(&mut a), Arg::Buffer(&mut b)]);
    b.to_f32()
}

#[test]
fn conversions_keep_every_element() {
    let layouts = ["#rows", "#cols", "#tall", "#mma"];
    for (m, n) in [(64, 32), (32, 32), (16, 16), (96, 48), (24, 40), (1, 64), (80, 100)] {
        let x: Vec<f32> = (0..m * n).map(|i| i as f32).collect();
        for from in layouts {
            for to in layouts {
                if from == to {
                    continue;
                }
                let body = format!(
                    "%y = ttg.convert_layout %x {{allocation.offset = 0 : i32}} : tensor<{m}x{n}xf32, {from}> -> tensor<{m}x{n}xf32, {to}>"
                );
                let ir = two_dim(m, n, "f32", from, (m, n, to), &body);
                assert_eq!(run_two_dim(&ir, &x, m * n), x, "{m}x{n} {from} -> {to}");
            }
        }
    }
}

#[test]
fn buffers_keep_every_element() {
    for (m, n) in [(64, 32), (96, 48), (24, 40)] {
        let x: Vec<f32> = (0..m * n).map(|i| i as f32).collect();
        let body = format!(
            "%b = ttg.local_alloc %x {{allocation.offset = 1024 : i32}} : (tensor<{m}x{n}xf32, #rows>) -> !ttg.memdesc<{m}x{n}xf32, #shared, #smem>
    ttg.barrier
    %y = ttg.local_load %b : !ttg.memdesc<{m}x{n}xf32, #shared, #smem> -> tensor<{m}x{n}xf32, #cols>"
        );
        let ir = two_dim(m, n, "f32", "#rows", (m, n, "#cols"), &body);
        assert_eq!(run_two_dim(&ir, &x, m * n), x, "{m}x{n}");
    }
}

#[test]
fn transposes_and_reshapes() {
    for (m, n) in [(32, 16), (48, 20)] {
        let x: Vec<f32> = (0..m * n).map(|i| i as f32).collect();
        let body = format!(
            "%y = tt.trans %x {{allocation.offset = 0 : i32, order = array<i32: 1, 0>}} : tensor<{m}x{n}xf32, #rows> -> tensor<{n}x{m}xf32, #rows>"
        );
        let ir = two_dim(m, n, "f32", "#rows", (n, m, "#rows"), &body);
        let want: Vec<f32> = (0..n * m).map(|k| x[k % m * n + k / m]).collect();
        assert_eq!(run_two_dim(&ir, &x, m * n), want);
        let body = format!(
            "%y = tt.reshape %x {{allocation.offset = 0 : i32}} : tensor<{m}x{n}xf32, #rows> -> tensor<{}x{}xf32, #cols>",
            m / 4,
            n * 4
        );
        let ir = two_dim(m, n, "f32", "#rows", (m / 4, n * 4, "#cols"), &body);
        assert_eq!(run_two_dim(&ir, &x, m * n), x);
    }
}

#[test]
fn extracts_a_tile_by_its_number() {
    let (m, n) = (32, 48);
    let x: Vec<f32> = (0..m * n).map(|i| i as f32).collect();
    for (tile, (h, w)) in [(0, (16, 16)), (5, (16, 16)), (3, (8, 48)), (7, (16, 12)), (0, (32, 48))] {
        let body = format!(
            "%y = tt.extract %x[{tile}] {{allocation.offset = 0 : i32}} : tensor<{m}x{n}xf32, #rows> -> tensor<{h}x{w}xf32, #cols>"
        );
        let ir = two_dim(m, n, "f32", "#rows", (h, w, "#cols"), &body);
        let (row, column) = (tile / (n / w) * h, tile % (n / w) * w);
        let want: Vec<f32> = (0..h * w).map(|k| x[(row + k / w) * n + column + k % w]).collect();
        assert_eq!(run_two_dim(&ir, &x, h * w), want, "tile {tile} of {h}x{w}");
    }
}

/// A reduction along each axis, in each layout, summed or by a comparison that carries the index.
#[test]
fn reductions() {
    for (m, n) in [(64, 32), (24, 40), (16, 100), (3, 7)] {
        let x: Vec<f32> = numbers(m * n, 5).iter().map(|v| (v * 64.0).round()).collect();
        for layout in ["#rows", "#cols", "#tall", "#mma"] {
            for axis in [0, 1] {
                let kept = if axis == 0 { n } else { m };
                let slice = format!("#ttg.slice<{{dim = {axis}, parent = {layout}}}>");
                let (om, on) = if axis == 0 { (1, n) } else { (m, 1) };
                let body = format!(
                    r#"%s = "tt.reduce"(%x) <{{axis = {axis} : i32}}> ({{
    ^bb0(%p: f32, %q: f32):
      %t = arith.addf %p, %q : f32
      tt.reduce.return %t : f32
    }}) {{allocation.offset = 0 : i32}} : (tensor<{m}x{n}xf32, {layout}>) -> tensor<{kept}xf32, {slice}>
    %y = tt.expand_dims %s {{axis = {axis} : i32}} : tensor<{kept}xf32, {slice}> -> tensor<{om}x{on}xf32, {layout}>"#
                );
                let ir = two_dim(m, n, "f32", layout, (om, on, layout), &body);
                let want: Vec<f32> = (0..kept)
                    .map(|k| {
                        if axis == 0 {
                            (0..m).map(|i| x[i * n + k]).sum()
                        } else {
                            x[k * n..(k + 1) * n].iter().sum()
                        }
                    })
                    .collect();
                assert_eq!(run_two_dim(&ir, &x, kept), want, "{m}x{n} {layout} axis {axis}");
            }
        }
    }
}

#[test]
fn argmax_with_padding_has_no_identity() {
    let (m, n) = (5usize, 100usize);
    // All negative: a zero from padding would win.
    let x: Vec<f32> = numbers(m * n, 9).iter().map(|v| v - 10.0).collect();
    for layout in ["#rows", "#cols", "#tall"] {
        let slice = format!("#ttg.slice<{{dim = 1, parent = {layout}}}>");
        let body = format!(
            r#"%k = tt.make_range {{end = {n} : i32, start = 0 : i32}} : tensor<{n}xi32, #ttg.slice<{{dim = 0, parent = {layout}}}>>
    %k2 = tt.expand_dims %k {{axis = 0 : i32}} : tensor<{n}xi32, #ttg.slice<{{dim = 0, parent = {layout}}}>> -> tensor<1x{n}xi32, {layout}>
    %kb = tt.broadcast %k2 : tensor<1x{n}xi32, {layout}> -> tensor<{m}x{n}xi32, {layout}>
    %s:2 = "tt.reduce"(%x, %kb) <{{axis = 1 : i32}}> ({{
    ^bb0(%a: f32, %i: i32, %b: f32, %j: i32):
      %c = arith.cmpf ogt, %a, %b : f32
      %v = arith.select %c, %a, %b : f32
      %w = arith.select %c, %i, %j : i32
      tt.reduce.return %v, %w : f32, i32
    }}) {{allocation.offset = 0 : i32}} : (tensor<{m}x{n}xf32, {layout}>, tensor<{m}x{n}xi32, {layout}>) -> (tensor<{m}xf32, {slice}>, tensor<{m}xi32, {slice}>)
    %f = arith.sitofp %s#1 : tensor<{m}xi32, {slice}> to tensor<{m}xf32, {slice}>
    %y = tt.expand_dims %f {{axis = 1 : i32}} : tensor<{m}xf32, {slice}> -> tensor<{m}x1xf32, {layout}>"#
        );
        let ir = two_dim(m, n, "f32", layout, (m, 1, layout), &body);
        let want: Vec<f32> = x
            .chunks(n)
            .map(|row| (0..n).max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap() as f32)
            .collect();
        assert_eq!(run_two_dim(&ir, &x, m), want, "{layout}");
    }
}

#[test]
fn scans_in_both_directions() {
    for (m, n) in [(8, 64), (6, 100), (64, 16)] {
        let x: Vec<f32> = numbers(m * n, 6).iter().map(|v| (v * 16.0).round()).collect();
        for layout in ["#rows", "#tall", "#cols"] {
            for axis in [0usize, 1] {
                for reverse in [false, true] {
                    let body = format!(
                        r#"%y = "tt.scan"(%x) <{{axis = {axis} : i32, reverse = {reverse}}}> ({{
    ^bb0(%p: f32, %q: f32):
      %t = arith.addf %p, %q : f32
      tt.scan.return %t : f32
    }}) {{allocation.offset = 0 : i32}} : (tensor<{m}x{n}xf32, {layout}>) -> tensor<{m}x{n}xf32, {layout}>"#
                    );
                    let ir = two_dim(m, n, "f32", layout, (m, n, layout), &body);
                    let mut want = x.clone();
                    let (count, step) = if axis == 0 { (m, n) } else { (n, 1) };
                    for i in 0..m {
                        for j in 0..n {
                            let (line, at) = if axis == 0 { (j, i) } else { (i * n, j) };
                            let range = if reverse { at..count } else { 0..at + 1 };
                            want[i * n + j] = range.map(|k| x[line + k * step]).sum();
                        }
                    }
                    assert_eq!(
                        run_two_dim(&ir, &x, m * n),
                        want,
                        "{m}x{n} {layout} axis {axis} reverse {reverse}"
                    );
                }
            }
        }
    }
}

#[test]
fn gathers_and_histograms() {
    let n = 200usize;
    let x: Vec<i32> = (0..n as i32).map(|i| (i * 37) % 50).collect();
    let (mut a, mut b) = (Buffer::i32(&x), Buffer::zeros(n * 4));
    let body = format!(
        "%y = tt.gather %x[%x] {{axis = 0 : i32, allocation.offset = 0 : i32}} : (tensor<{n}xi32, #blocked>, tensor<{n}xi32, #blocked>) -> tensor<{n}xi32, #blocked>"
    );
    run(
        &one_dim(n, "i32", "i32", "#blocked", &body),
        "cuda:90",
        1,
        &mut [Arg::Buffer(&mut a), Arg::Buffer(&mut b)],
    );
    assert_eq!(b.to_i32(), x.iter().map(|&i| x[i as usize]).collect::<Vec<_>>());

    let body = format!(
        "%y = tt.histogram %x {{allocation.offset = 0 : i32}} : tensor<{n}xi32, #blocked> -> tensor<{n}xi32, #blocked>"
    );
    run(
        &one_dim(n, "i32", "i32", "#blocked", &body),
        "cuda:90",
        1,
        &mut [Arg::Buffer(&mut a), Arg::Buffer(&mut b)],
    );
    let want: Vec<i32> = (0..n as i32).map(|k| x.iter().filter(|&&v| v == k).count() as i32).collect();
    assert_eq!(b.to_i32(), want);
}

#[test]
fn formats_convert_and_come_back() {
    let n = 256usize;
    let mut x: Vec<f32> = numbers(n, 8);
    let powers = (0..100)
        .map(|i| 2f32.powi(-(i % 20)) * (1.0 + i as f32 / 100.0) * if i % 3 == 0 { -1.0 } else { 1.0 });
    x.splice(0..100, powers);
    for (ty, tolerance) in [("f16", 1e-3), ("bf16", 1e-2), ("f8E4M3FN", 0.07), ("f8E5M2", 0.13)] {
        let fp8 = ty.starts_with("f8");
        let (down, up) = if fp8 {
            ("tt.fp_to_fp %x, rounding = rtne", "tt.fp_to_fp %h")
        } else {
            ("arith.truncf %x", "arith.extf %h")
        };
        let word = if fp8 { "->" } else { "to" };
        let body = format!(
            "%h = {down} : tensor<{n}xf32, #blocked> {word} tensor<{n}x{ty}, #blocked>
    %y = {up} : tensor<{n}x{ty}, #blocked> {word} tensor<{n}xf32, #blocked>"
        );
        let ir = one_dim(n, "f32", "f32", "#blocked", &body);
        let (mut a, mut b) = (Buffer::f32(&x), Buffer::zeros(n * 4));
        run(&ir, "cuda:90", 1, &mut [Arg::Buffer(&mut a), Arg::Buffer(&mut b)]);
        // Without the instructions of sm_89 the bits are the same.
        let mut old = Buffer::zeros(n * 4);
        run(&ir, "cuda:80", 1, &mut [Arg::Buffer(&mut a), Arg::Buffer(&mut old)]);
        assert_eq!(old.bytes, b.bytes, "{ty}");
        for (x, got) in x.iter().zip(b.to_f32()) {
            assert!((x - got).abs() <= tolerance * x.abs().max(0.02), "{ty}: {x} came back as {got}");
        }
    }
}

#[test]
fn every_target_compiles_the_kernels() {
    for target in ["cuda:80", "cuda:86", "cuda:89", "cuda:90", "cuda:100", "cuda:120"] {
        for ir in [
            include_str!("ttgir/vector_add.mlir"),
            include_str!("ttgir/softmax.mlir"),
            include_str!("ttgir/matmul.mlir"),
        ] {
            let kernel = to_ptx(ir, target);
            let arch = tilewright_nvidia::Target::parse(target).unwrap().facts().arch;
            assert!(kernel.ptx.contains(&format!(".target {arch}")), "{}", kernel.ptx);
        }
    }
}

/// What is read and verified, but which no target lowers, is named with its line.
#[test]
fn what_is_not_lowered_is_an_error_with_its_line() {
    const HEAD: &str = r#"
#regs = #ttg.blocked<{sizePerThread = [1, 64], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>
#rows = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#tile = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#words = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#tm = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, unpacked = true>
#half = #ttng.tensor_memory_encoding<blockM = 128, blockN = 32, unpacked = true>
#scales = #ttng.tensor_memory_scales_encoding<>
#smem = #ttg.shared_memory
#space = #ttng.tensor_memory
!A = !ttg.memdesc<128x32xf16, #tile, #smem>
!B = !ttg.memdesc<32x64xf16, #tile, #smem>
!W = !ttg.memdesc<128x64xf32, #words, #smem>
!D = !ttg.memdesc<128x64xf32, #tm, #space, mutable>
!S = !ttg.memdesc<128x1xf8E4M3FN, #scales, #space, mutable>
!R = !ttg.memdesc<128x64xf16, #tile, #smem, mutable>
!bar = !ttg.memdesc<1xi64, #bar, #smem, mutable>
!desc = !tt.tensordesc<tensor<1x64xf16, #tile>>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.shared" = 65536 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @kernel(%a: !A, %b: !B, %w: !W, %d: !D, %s: !S, %r: !R, %bar: !bar, %desc: !desc, %c: i1, %i: i32) {
  %x = arith.constant dense<1.0> : tensor<128x64xf32, #regs>
  %m = arith.constant dense<1.0> : tensor<128x64xf32, #mma>
  %at = arith.constant dense<1> : tensor<128xi32, #rows>
  %bytes = arith.constant dense<1> : tensor<128x32xi8, #regs>
"#;
    let operations = [
        "%0 = ttng.tmem_alloc : () -> !D",
        "%0 = ttng.tmem_load %d : !D -> tensor<128x64xf32, #regs>",
        "ttng.tmem_store %x, %d, %c : tensor<128x64xf32, #regs> -> !D",
        "%0 = ttng.tmem_subslice %d {N = 32 : i32} : !D -> !ttg.memdesc<128x32xf32, #half, #space, mutable>",
        "ttng.tmem_copy %w, %d, %bar : !W, !D, !bar",
        "ttng.tc_gen5_mma %a, %b, %d, %c, %c : !A, !B, !D",
        "ttng.tc_gen5_mma_scaled %a, %b, %d, %s, %s, %c, %c lhs = e4m3 rhs = e4m3 : !A, !B, !D, !S, !S",
        "ttng.tc_gen5_commit %bar : !bar",
        "ttng.async_tma_gather %desc[%at, %i] %r, %bar, %c : !desc, tensor<128xi32, #rows>, i32, !bar, !R, i1",
        "ttng.async_tma_scatter %desc[%at, %i] %r : !desc, tensor<128xi32, #rows>, i32, !R",
        "%0 = ttg.fp4_to_fp %bytes {axis = 1 : i32} : tensor<128x32xi8, #regs> -> tensor<128x64xf16, #regs>",
        "%0 = ttng.warp_group_dot %a, %b, %m, %c : !A * !B -> tensor<128x64xf32, #mma>",
    ];
    for operation in operations {
        let module =
            tilewright_ir::text::parse(&format!("{HEAD}{operation}\n  tt.return\n}}\n}}"), "test.mlir")
                .unwrap_or_else(|e| panic!("{operation}: {e}"));
        tilewright_ir::verify(&module).unwrap_or_else(|e| panic!("{operation}: {}", e[0]));
        let name = operation.split(' ').find(|word| word.starts_with("tt")).expect("a name");
        for target in ["cuda:80", "cuda:90", "cuda:100"] {
            let options =
                tilewright_nvidia::CodegenOptions::new(tilewright_nvidia::Target::parse(target).unwrap());
            let error = tilewright_nvidia::compile(&module, &options).expect_err(operation).to_string();
            let line = HEAD.lines().count() + 1;
            assert!(error.contains(&format!("not supported yet on {target}: ")), "{error}");
            assert!(error.contains(&format!("(in `{name}`)")), "{error}");
            assert!(error.contains(&format!("test.mlir:{line}:")), "{error}");
        }
    }
}

/// Tensors without layouts are read and verified in a `ttg` module, but not compiled.
#[test]
fn a_given_module_needs_layouts() {
    let text = r#"
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f() {
    %x = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    tt.return
  }
}
"#;
    let mut module = tilewright_ir::text::parse(text, "test.mlir").unwrap_or_else(|e| panic!("{e}"));
    tilewright_ir::verify(&module).expect("it may be read");
    let options = tilewright_ir::Options::default();
    let finished = tilewright_passes::pipeline::finish_ttg(&mut module, &plain("cuda:90"), &options);
    let error = finished.expect_err("it has none").to_string();
    assert!(error.contains("tt.make_range: tensor<64xi32> has no layout"), "{error}");
    assert!(error.contains("test.mlir:4:"), "{error}");
}

/// Adds 1 to counters: each element once, whatever number of threads hold it, and the old values come back to all.
#[test]
fn atomics_happen_once_for_each_element() {
    // 20 elements in a layout for 256: copies in other lanes and warps.
    let (n, programs) = (20usize, 3);
    let ir = format!(
        r#"{HEAD}
  tt.func public @kernel(%in: !tt.ptr<i32>, %out: !tt.ptr<i32>) {{
    %r = tt.make_range {{end = {n} : i32, start = 0 : i32}} : tensor<{n}xi32, #blocked>
    %is = tt.splat %in : !tt.ptr<i32> -> tensor<{n}x!tt.ptr<i32>, #blocked>
    %ip = tt.addptr %is, %r : tensor<{n}x!tt.ptr<i32>, #blocked>, tensor<{n}xi32, #blocked>
    %one = arith.constant dense<1> : tensor<{n}xi32, #blocked>
    %yes = arith.constant dense<true> : tensor<{n}xi1, #blocked>
    %old = tt.atomic_rmw add, acq_rel, gpu, %ip, %one, %yes {{allocation.offset = 0 : i32}} : (tensor<{n}x!tt.ptr<i32>, #blocked>, tensor<{n}xi32, #blocked>, tensor<{n}xi1, #blocked>) -> tensor<{n}xi32, #blocked>
    %os = tt.splat %out : !tt.ptr<i32> -> tensor<{n}x!tt.ptr<i32>, #blocked>
    %op = tt.addptr %os, %r : tensor<{n}x!tt.ptr<i32>, #blocked>, tensor<{n}xi32, #blocked>
    %all = tt.atomic_rmw add, relaxed, gpu, %op, %old, %yes : (tensor<{n}x!tt.ptr<i32>, #blocked>, tensor<{n}xi32, #blocked>, tensor<{n}xi1, #blocked>) -> tensor<{n}xi32, #blocked>
    tt.return
  }}
}}"#
    );
    let start: Vec<i32> = (0..n as i32).map(|i| i * 10).collect();
    let (mut a, mut b) = (Buffer::i32(&start), Buffer::zeros(n * 4));
    let kernel = run(&ir, "cuda:90", programs, &mut [Arg::Buffer(&mut a), Arg::Buffer(&mut b)]);
    assert_eq!(a.to_i32(), start.iter().map(|v| v + programs as i32).collect::<Vec<_>>());
    // Old values 10 i, 10 i + 1, 10 i + 2.
    assert_eq!(b.to_i32(), start.iter().map(|v| 3 * v + 3).collect::<Vec<_>>());
    assert!(kernel.ptx.contains("red.global.gpu.relaxed.add.u32"), "an unused result needs no atom");
}

/// A tensor's elements are ordered by a fence before them all, and by one behind if what was there is used; floats side by side are added by one instruction,
/// where there is one.
#[test]
fn a_tensors_atomics_have_one_fence() {
    let ir = |sem: &str, used: bool| {
        let n = 1024;
        let store = format!(
            "tt.store %ps, %old {{tt.vec = 4 : i32, tt.vec_axis = 0 : i32}} : tensor<{n}x!tt.ptr<f32>, #four>"
        );
        format!(
            r#"#four = #ttg.blocked<{{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [8], order = [0]}}>
{HEAD}
  tt.func public @kernel(%in: !tt.ptr<f32> {{tt.divisibility = 16 : i32}}) {{
    %r = tt.make_range {{end = {n} : i32, start = 0 : i32}} : tensor<{n}xi32, #four>
    %is = tt.splat %in : !tt.ptr<f32> -> tensor<{n}x!tt.ptr<f32>, #four>
    %ps = tt.addptr %is, %r : tensor<{n}x!tt.ptr<f32>, #four>, tensor<{n}xi32, #four>
    %x = arith.constant dense<1.0> : tensor<{n}xf32, #four>
    %yes = arith.constant dense<true> : tensor<{n}xi1, #four>
    %old = tt.atomic_rmw fadd, {sem}, gpu, %ps, %x, %yes {{tt.vec = 4 : i32, tt.vec_axis = 0 : i32}} : (tensor<{n}x!tt.ptr<f32>, #four>, tensor<{n}xf32, #four>, tensor<{n}xi1, #four>) -> tensor<{n}xf32, #four>
    {}
    tt.return
  }}
}}"#,
            if used { store } else { String::new() }
        )
    };
    // Semantics, whether the old values are used, target: fences, then instructions.
    let all = "red.global.gpu.relaxed.add.v4.f32";
    let each = "red.global.gpu.relaxed.add.f32";
    let old = "atom.global.gpu.relaxed.add.f32";
    for (sem, used, target, fences, instruction, count) in [
        ("acq_rel", false, "cuda:90", 1, all, 1),
        ("relaxed", false, "cuda:90", 0, all, 1),
        ("acquire", false, "cuda:90", 0, all, 1),
        ("release", false, "cuda:80", 1, each, 4),
        ("acq_rel", true, "cuda:90", 2, old, 4),
        ("release", true, "cuda:90", 1, old, 4),
        ("acquire", true, "cuda:90", 1, old, 4),
    ] {
        let mut a = Buffer::zeros(4096);
        let kernel = run(&ir(sem, used), target, 1, &mut [Arg::Buffer(&mut a)]);
        let found = |what: &str| kernel.ptx.matches(what).count();
        assert_eq!(found("fence.acq_rel.gpu"), fences, "{sem} {used} {target}\n{}", kernel.ptx);
        assert_eq!(found(instruction), count, "{sem} {used} {target}\n{}", kernel.ptx);
    }
}

#[test]
fn bf16_sums_without_the_instruction() {
    let n = 64usize;
    let ir = format!(
        r#"{HEAD}
  tt.func public @kernel(%in: !tt.ptr<bf16>) {{
    %ps = tt.splat %in : !tt.ptr<bf16> -> tensor<{n}x!tt.ptr<bf16>, #one>
    %x = arith.constant dense<1.0> : tensor<{n}xbf16, #one>
    %yes = arith.constant dense<true> : tensor<{n}xi1, #one>
    %old = tt.atomic_rmw fadd, relaxed, gpu, %ps, %x, %yes : (tensor<{n}x!tt.ptr<bf16>, #one>, tensor<{n}xbf16, #one>, tensor<{n}xi1, #one>) -> tensor<{n}xbf16, #one>
    tt.return
  }}
}}"#
    );
    for (target, instruction) in [("cuda:80", "cas.b16"), ("cuda:90", "add.noftz.bf16")] {
        let mut a = Buffer::zeros(2);
        let kernel = run(&ir, target, 2, &mut [Arg::Buffer(&mut a)]);
        assert!(kernel.ptx.contains(instruction), "{}", kernel.ptx);
        let sum = half::bf16::from_le_bytes([a.bytes[0], a.bytes[1]]).to_f32();
        assert_eq!(sum, 128.0, "{target}");
    }
}

#[test]
fn prints_each_element_once() {
    let n = 4;
    let body = format!(
        r#"tt.print " x: " {{hex = false, isSigned = array<i32: 1>}} : %x : tensor<{n}xi32, #blocked>
    %y = arith.addi %x, %x : tensor<{n}xi32, #blocked>"#
    );
    let (mut a, mut b) = (Buffer::i32(&[5, -6, 7, 8]), Buffer::zeros(16));
    let ir = one_dim(n, "i32", "i32", "#blocked", &body);
    let (_, report) = run_report(&ir, "cuda:90", 1, &mut [Arg::Buffer(&mut a), Arg::Buffer(&mut b)]);
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let mut lines: Vec<String> = report.output.concat().lines().map(str::to_string).collect();
    lines.sort();
    let want: Vec<String> = [(0, 5), (1, -6), (2, 7), (3, 8)]
        .iter()
        .map(|(i, v)| format!("pid (0, 0, 0) idx ({i}) x: {v}"))
        .collect();
    assert_eq!(lines, want);
}

#[test]
fn a_failed_assertion_is_found() {
    let n = 100;
    let assertion = |limit: i32| {
        format!(
            r#"%l = arith.constant dense<{limit}> : tensor<{n}xi32, #blocked>
    %c = arith.cmpi slt, %x, %l : tensor<{n}xi32, #blocked>
    tt.assert %c, "too large" : tensor<{n}xi1, #blocked>
    %y = arith.addi %x, %x : tensor<{n}xi32, #blocked>"#
        )
    };
    let x: Vec<i32> = (0..n).collect();
    for (limit, fails) in [(n, false), (n - 1, true)] {
        let (mut a, mut b) = (Buffer::i32(&x), Buffer::zeros(n as usize * 4));
        let ir = one_dim(n as usize, "i32", "i32", "#blocked", &assertion(limit));
        let (_, report) = run_report(&ir, "cuda:90", 1, &mut [Arg::Buffer(&mut a), Arg::Buffer(&mut b)]);
        let found = report.findings.iter().any(|f| f.message.contains("too large"));
        assert_eq!(found, fails, "{:?}", report.findings);
    }
}
