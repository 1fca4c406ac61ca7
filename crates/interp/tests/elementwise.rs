//! Every elementwise operation on every type, against plain Rust.

#![allow(clippy::type_complexity)] // tables of operations and references

mod common;

use common::{Random, elementwise, m, ro, run};

/// Odd on purpose: no multiple of any vector width, and more than one chunk.
const N: usize = 2051;

macro_rules! int_samples {
    ($T:ty, $r:expr) => {{
        let edges = [0, 1, -1i64 as $T, <$T>::MIN, <$T>::MAX, 2, 7 as $T];
        let mut v: Vec<$T> = Vec::new();
        for _ in 0..N {
            let bits = $r.bits();
            v.push(if bits.is_multiple_of(5) {
                edges[(bits >> 8) as usize % edges.len()]
            } else {
                bits as $T
            });
        }
        v
    }};
}

macro_rules! check_int {
    ($T:ty, $U:ty, $name:literal, $r:expr) => {{
        let a: Vec<$T> = int_samples!($T, $r);
        let b: Vec<$T> = int_samples!($T, $r);
        let bits = <$T>::BITS;
        let cases: &[(&str, fn($T, $T) -> $T)] = &[
            ("addi", |a, b| a.wrapping_add(b)),
            ("subi", |a, b| a.wrapping_sub(b)),
            ("muli", |a, b| a.wrapping_mul(b)),
            ("andi", |a, b| a & b),
            ("ori", |a, b| a | b),
            ("xori", |a, b| a ^ b),
            ("minsi", |a, b| a.min(b)),
            ("maxsi", |a, b| a.max(b)),
            ("minui", |a, b| (a as $U).min(b as $U) as $T),
            ("maxui", |a, b| (a as $U).max(b as $U) as $T),
            ("divsi", |a, b| if b == 0 { -1 } else { a.wrapping_div(b) }),
            ("remsi", |a, b| if b == 0 { a } else { a.wrapping_rem(b) }),
            ("divui", |a, b| if b == 0 { -1 } else { (a as $U / b as $U) as $T }),
            ("remui", |a, b| if b == 0 { a } else { (a as $U % b as $U) as $T }),
            ("floordivsi", |a, b| {
                if b == 0 {
                    -1
                } else {
                    (a as i128)
                        .div_euclid(b as i128)
                        .wrapping_sub(i128::from(b < 0 && (a as i128).rem_euclid(b as i128) != 0))
                        as $T
                }
            }),
            ("ceildivui", |a, b| if b == 0 { -1 } else { (a as $U).div_ceil(b as $U) as $T }),
            ("ceildivsi", |a, b| {
                if b == 0 {
                    -1
                } else {
                    (-((-(a as i128))
                        .div_euclid(b as i128)
                        .wrapping_sub(i128::from(b < 0 && (-(a as i128)).rem_euclid(b as i128) != 0))))
                        as $T
                }
            }),
        ];
        for (op, f) in cases {
            let mut out = vec![0 as $T; N];
            let body = format!("    %r = arith.{op} %a, %b : tensor<{N}x{}>", $name);
            run(&elementwise(N, &[$name, $name], $name, &body), [1, 1, 1], &[ro(&a), ro(&b), m(&mut out)]);
            for i in 0..N {
                assert_eq!(out[i], f(a[i], b[i]), "{op} {} {} {}", $name, a[i], b[i]);
            }
        }
        // Shifts, within the width and beyond.
        let counts: Vec<$T> = (0..N).map(|i| (i as u32 % (bits + 3)) as $T).collect();
        let shifts: &[(&str, fn($T, u32) -> $T)] = &[
            ("shli", |a, s| if s >= <$T>::BITS { 0 } else { a << s }),
            ("shrui", |a, s| if s >= <$T>::BITS { 0 } else { ((a as $U) >> s) as $T }),
            ("shrsi", |a, s| a >> s.min(<$T>::BITS - 1)),
        ];
        for (op, f) in shifts {
            let mut out = vec![0 as $T; N];
            let body = format!("    %r = arith.{op} %a, %b : tensor<{N}x{}>", $name);
            run(
                &elementwise(N, &[$name, $name], $name, &body),
                [1, 1, 1],
                &[ro(&a), ro(&counts), m(&mut out)],
            );
            for i in 0..N {
                assert_eq!(out[i], f(a[i], counts[i] as u32), "{op} {} by {}", a[i], counts[i]);
            }
        }
        let predicates: &[(&str, fn($T, $T) -> bool)] = &[
            ("eq", |a, b| a == b),
            ("ne", |a, b| a != b),
            ("slt", |a, b| a < b),
            ("sle", |a, b| a <= b),
            ("sgt", |a, b| a > b),
            ("sge", |a, b| a >= b),
            ("ult", |a, b| (a as $U) < b as $U),
            ("ule", |a, b| a as $U <= b as $U),
            ("ugt", |a, b| a as $U > b as $U),
            ("uge", |a, b| a as $U >= b as $U),
        ];
        for (p, f) in predicates {
            let mut out = vec![9u8; N];
            let body = format!("    %r = arith.cmpi {p}, %a, %b : tensor<{N}x{}>", $name);
            run(&elementwise(N, &[$name, $name], "i1", &body), [1, 1, 1], &[ro(&a), ro(&b), m(&mut out)]);
            for i in 0..N {
                assert_eq!(out[i], u8::from(f(a[i], b[i])), "{p} {} {}", a[i], b[i]);
            }
        }
        let mut out = vec![0 as $T; N];
        let body = format!("    %r = math.absi %a : tensor<{N}x{}>", $name);
        run(&elementwise(N, &[$name], $name, &body), [1, 1, 1], &[ro(&a), m(&mut out)]);
        for i in 0..N {
            assert_eq!(out[i], a[i].wrapping_abs());
        }
    }};
}

#[test]
fn integers() {
    let mut r = Random(42);
    check_int!(i8, u8, "i8", r);
    check_int!(i16, u16, "i16", r);
    check_int!(i32, u32, "i32", r);
    check_int!(i64, u64, "i64", r);
}

#[test]
fn booleans() {
    let a: Vec<u8> = (0..N).map(|i| (i & 1) as u8).collect();
    let b: Vec<u8> = (0..N).map(|i| (i >> 1 & 1) as u8).collect();
    let cases: &[(&str, fn(u8, u8) -> u8)] = &[
        ("arith.andi", |a, b| a & b),
        ("arith.ori", |a, b| a | b),
        ("arith.xori", |a, b| a ^ b),
        ("arith.addi", |a, b| a ^ b),
        ("arith.muli", |a, b| a & b),
        ("arith.maxui", |a, b| a | b),
        // Signed: true is -1.
        ("arith.maxsi", |a, b| a & b),
        ("arith.minsi", |a, b| a | b),
        ("arith.cmpi slt,", |a, b| u8::from(a > b)),
        ("arith.cmpi ult,", |a, b| u8::from(a < b)),
        ("arith.cmpi eq,", |a, b| u8::from(a == b)),
    ];
    for (op, f) in cases {
        let mut out = vec![9u8; N];
        let body = format!("    %r = {op} %a, %b : tensor<{N}xi1>");
        run(&elementwise(N, &["i1", "i1"], "i1", &body), [1, 1, 1], &[ro(&a), ro(&b), m(&mut out)]);
        for i in 0..N {
            assert_eq!(out[i], f(a[i], b[i]), "{op} {} {}", a[i], b[i]);
        }
    }
}

fn float_samples(r: &mut Random) -> Vec<f32> {
    let edges = [0.0, -0.0, 1.0, -1.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1e-42, 3.4e38, 0.5];
    (0..N)
        .map(|_| {
            let bits = r.bits();
            if bits.is_multiple_of(4) {
                edges[(bits >> 8) as usize % edges.len()]
            } else {
                (r.unit() * 50.0) as f32
            }
        })
        .collect()
}

fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
}

/// What a narrow format's memory holds, decoded by slow, obvious code.
fn decode(kind: &str, bits: u64) -> f64 {
    let (e, mant, bias) = match kind {
        "f16" => (5, 10, 15),
        "bf16" => (8, 7, 127),
        "f32" => return f64::from(f32::from_bits(bits as u32)),
        _ => return f64::from_bits(bits),
    };
    let sign = if bits >> (e + mant) & 1 == 1 { -1.0 } else { 1.0 };
    let exponent = (bits >> mant & ((1 << e) - 1)) as i32;
    let fraction = (bits & ((1 << mant) - 1)) as f64 / f64::from(1 << mant);
    if exponent == (1 << e) - 1 {
        return if fraction == 0.0 { sign * f64::INFINITY } else { f64::NAN };
    }
    if exponent == 0 {
        sign * fraction * 2f64.powi(1 - bias)
    } else {
        sign * (1.0 + fraction) * 2f64.powi(exponent - bias)
    }
}

/// The nearest value of a format, by looking at both neighbours.
fn encode(kind: &str, x: f64) -> u64 {
    match kind {
        "f64" => return x.to_bits(),
        "f32" => return u64::from((x as f32).to_bits()),
        _ => {}
    }
    let top: u64 = if kind == "f16" { 0x7c00 } else { 0x7f80 };
    let sign = if x.is_sign_negative() { 0x8000 } else { 0 };
    if x.is_nan() {
        return sign | top | 0x40;
    }
    // The encodings of positive numbers are in order: search for the last one not above |x|.
    let (mut lo, mut hi) = (0u64, top);
    while hi - lo > 1 {
        let mid = (lo + hi) / 2;
        if decode(kind, mid) <= x.abs() { lo = mid } else { hi = mid }
    }
    let step = decode(kind, lo) - decode(kind, lo.saturating_sub(1));
    let above = if hi == top { decode(kind, lo) + step } else { decode(kind, hi) };
    let (down, up) = (x.abs() - decode(kind, lo), above - x.abs());
    let pick = if x.abs().is_infinite() || up < down || up == down && lo & 1 == 1 { hi } else { lo };
    sign | pick
}

fn to_memory(kind: &str, values: &[f32]) -> Vec<u8> {
    let size = match kind {
        "f64" => 8,
        "f32" => 4,
        _ => 2,
    };
    values.iter().flat_map(|&x| encode(kind, f64::from(x)).to_le_bytes()[..size].to_vec()).collect()
}

fn from_memory(kind: &str, bytes: &[u8]) -> Vec<f64> {
    let size = match kind {
        "f64" => 8,
        "f32" => 4,
        _ => 2,
    };
    bytes
        .chunks(size)
        .map(|c| {
            let mut b = [0; 8];
            b[..size].copy_from_slice(c);
            decode(kind, u64::from_le_bytes(b))
        })
        .collect()
}

const FLOATS: [&str; 4] = ["f16", "bf16", "f32", "f64"];

/// Aligned bytes.
fn aligned(bytes: &[u8]) -> Vec<u64> {
    bytes
        .chunks(8)
        .map(|c| {
            let mut b = [0; 8];
            b[..c.len()].copy_from_slice(c);
            u64::from_le_bytes(b)
        })
        .collect()
}

fn bytes_of(words: &[u64], n: usize) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).take(n).collect()
}

/// Applies a float operation in the executor; operands and result as exact doubles.
fn float_op(kind: &str, op: &str, operands: &[&[f32]]) -> (Vec<Vec<f64>>, Vec<f64>) {
    let names = ["%a", "%b", "%c"];
    let args = names[..operands.len()].join(", ");
    let body = format!("    %r = {op} {args} : tensor<{N}x{kind}>");
    let ir = elementwise(N, &vec![kind; operands.len()], kind, &body);
    let stored: Vec<Vec<u8>> = operands.iter().map(|o| to_memory(kind, o)).collect();
    let inputs: Vec<Vec<u64>> = stored.iter().map(|b| aligned(b)).collect();
    let mut out = vec![0u64; inputs[0].len()];
    let mut call: Vec<common::A> = inputs.iter().map(|i| ro(i)).collect();
    call.push(m(&mut out));
    run(&ir, [1, 1, 1], &call);
    let exact = stored.iter().map(|b| from_memory(kind, b)).collect();
    (exact, from_memory(kind, &bytes_of(&out, stored[0].len())))
}

#[test]
fn float_arithmetic_is_correctly_rounded() {
    let mut r = Random(7);
    let (a, b) = (float_samples(&mut r), float_samples(&mut r));
    // Computed in f64 and rounded once: exact enough for formats up to f32 (53 >= 2·24 + 2).
    let cases: &[(&str, fn(f64, f64) -> f64)] = &[
        ("arith.addf", |a, b| a + b),
        ("arith.subf", |a, b| a - b),
        ("arith.mulf", |a, b| a * b),
        ("arith.divf", |a, b| a / b),
        ("tt.precise_divf", |a, b| a / b),
        ("arith.remf", |a, b| a % b),
        ("arith.maxnumf", |a, b| {
            if a.is_nan() {
                b
            } else if b.is_nan() {
                a
            } else {
                max(a, b)
            }
        }),
        ("arith.minnumf", |a, b| {
            if a.is_nan() {
                b
            } else if b.is_nan() {
                a
            } else {
                -max(-a, -b)
            }
        }),
        ("arith.maximumf", |a, b| if a.is_nan() || b.is_nan() { f64::NAN } else { max(a, b) }),
        ("arith.minimumf", |a, b| if a.is_nan() || b.is_nan() { f64::NAN } else { -max(-a, -b) }),
    ];
    for kind in FLOATS {
        for (op, f) in cases {
            let (x, got) = float_op(kind, op, &[&a, &b]);
            for i in 0..N {
                let want = decode(kind, encode(kind, f(x[0][i], x[1][i])));
                assert!(same(got[i], want), "{op} {kind} {} {}: {} != {want}", x[0][i], x[1][i], got[i]);
            }
        }
    }
}

/// The larger, and positive zero above negative zero.
fn max(a: f64, b: f64) -> f64 {
    if a > b || a == b && a.is_sign_positive() { a } else { b }
}

#[test]
fn float_functions() {
    let mut r = Random(9);
    let a = float_samples(&mut r);
    // (operation, reference, tolerance in units in the last place of f32)
    let cases: &[(&str, fn(f64) -> f64, f64)] = &[
        ("math.exp", f64::exp, 0.51),
        ("math.exp2", f64::exp2, 0.51),
        ("math.log", f64::ln, 0.51),
        ("math.log2", f64::log2, 0.51),
        ("math.sin", f64::sin, 0.51),
        ("math.cos", f64::cos, 0.51),
        ("math.tan", f64::tan, 0.51),
        ("math.tanh", f64::tanh, 0.51),
        ("math.erf", erf, 0.51),
        ("math.sqrt", f64::sqrt, 0.5),
        ("tt.precise_sqrt", f64::sqrt, 0.5),
        ("math.rsqrt", |x| 1.0 / x.sqrt(), 0.51),
        ("math.absf", f64::abs, 0.0),
        ("math.floor", f64::floor, 0.0),
        ("math.ceil", f64::ceil, 0.0),
        ("math.round", f64::round, 0.0),
        ("math.trunc", f64::trunc, 0.0),
        ("arith.negf", |x| -x, 0.0),
    ];
    for (op, f, ulps) in cases {
        for kind in FLOATS {
            let (x, got) = float_op(kind, op, &[&a]);
            for i in 0..N {
                let exact = f(x[0][i]);
                let ok = match kind {
                    "f64" => same(got[i], exact) || (got[i] - exact).abs() <= exact.abs() * 2e-14,
                    "f32" => {
                        let want = f64::from(exact as f32);
                        let ulp = ulp_f32(want);
                        same(got[i], want) || (got[i] - exact).abs() <= ulps * ulp
                    }
                    // Narrow formats round the f32 result once more.
                    _ => {
                        let via = decode(kind, encode(kind, f64::from(exact as f32)));
                        same(got[i], via) || (got[i] - exact).abs() <= 0.51 * ulp_of(kind, exact)
                    }
                };
                assert!(ok, "{op} {kind} of {}: {} instead of {exact}", x[0][i], got[i]);
            }
        }
    }
}

fn ulp_f32(x: f64) -> f64 {
    let x = (x as f32).abs();
    f64::from(f32::from_bits(x.to_bits() + 1)) - f64::from(x)
}

fn ulp_of(kind: &str, x: f64) -> f64 {
    let bits = encode(kind, x.abs());
    decode(kind, bits + 1) - decode(kind, bits)
}

/// The error function by numerical integration (Simpson's rule).
fn erf(x: f64) -> f64 {
    if x.is_nan() || x == 0.0 {
        return x;
    }
    let end = x.abs().min(7.0);
    let n = 2000;
    let h = end / f64::from(n);
    let f = |t: f64| (-t * t).exp();
    let mut sum = f(0.0) + f(end);
    for i in 1..n {
        sum += f(f64::from(i) * h) * if i % 2 == 1 { 4.0 } else { 2.0 };
    }
    (sum * h / 3.0 * std::f64::consts::FRAC_2_SQRT_PI).copysign(x)
}

#[test]
fn large_arguments_of_sine_and_cosine() {
    let a: Vec<f32> = (0..N).map(|i| 1e5 + i as f32 * 1e6).collect();
    for (op, f) in [("math.sin", f64::sin as fn(f64) -> f64), ("math.cos", f64::cos)] {
        let (x, got) = float_op("f32", op, &[&a]);
        for i in 0..N {
            assert_eq!(got[i], f64::from(f(x[0][i]) as f32), "{op} {}", x[0][i]);
        }
    }
}

#[test]
fn fused_multiply_add_rounds_once() {
    let mut r = Random(3);
    let (a, b, c) = (r.f32s(N), r.f32s(N), r.f32s(N));
    for kind in FLOATS {
        let (x, got) = float_op(kind, "math.fma", &[&a, &b, &c]);
        for i in 0..N {
            let want = match kind {
                "f32" => f64::from((x[0][i] as f32).mul_add(x[1][i] as f32, x[2][i] as f32)),
                "f64" => x[0][i].mul_add(x[1][i], x[2][i]),
                _ => decode(kind, encode(kind, x[0][i] * x[1][i] + x[2][i])),
            };
            assert!(same(got[i], want), "{kind} {} {} {}", x[0][i], x[1][i], x[2][i]);
        }
    }
}

#[test]
fn clamp() {
    let mut r = Random(5);
    let a = float_samples(&mut r);
    let (lo, hi) = (vec![-1.5f32; N], vec![2.0f32; N]);
    for (attr, nan) in [("", -1.5), (" {propagateNan = true}", f64::NAN)] {
        let body = format!("    %r = tt.clampf %a, %b, %c{attr} : tensor<{N}xf32>");
        let mut out = vec![0f32; N];
        let ir = elementwise(N, &["f32", "f32", "f32"], "f32", &body);
        let ir = if attr.is_empty() { ir.replace("%c :", "%c {propagateNan = false} :") } else { ir };
        run(&ir, [1, 1, 1], &[ro(&a), ro(&lo), ro(&hi), m(&mut out)]);
        for i in 0..N {
            let x = f64::from(a[i]);
            let want = if x.is_nan() { nan } else { x.clamp(-1.5, 2.0) };
            assert!(same(f64::from(out[i]), want), "clamp {x}: {}", out[i]);
        }
    }
}

#[test]
fn float_comparisons() {
    let mut r = Random(11);
    let (a, b) = (float_samples(&mut r), float_samples(&mut r));
    let cases: &[(&str, fn(f32, f32) -> bool)] = &[
        ("oeq", |a, b| a == b),
        ("ogt", |a, b| a > b),
        ("oge", |a, b| a >= b),
        ("olt", |a, b| a < b),
        ("ole", |a, b| a <= b),
        ("one", |a, b| a != b && !a.is_nan() && !b.is_nan()),
        ("ord", |a, b| !a.is_nan() && !b.is_nan()),
        ("uno", |a, b| a.is_nan() || b.is_nan()),
        ("ueq", |a, b| a == b || a.is_nan() || b.is_nan()),
        ("ugt", |a, b| a > b || a.is_nan() || b.is_nan()),
        ("uge", |a, b| a >= b || a.is_nan() || b.is_nan()),
        ("ult", |a, b| a < b || a.is_nan() || b.is_nan()),
        ("ule", |a, b| a <= b || a.is_nan() || b.is_nan()),
        ("une", |a, b| a != b),
    ];
    for (p, f) in cases {
        let mut out = vec![9u8; N];
        let body = format!("    %r = arith.cmpf {p}, %a, %b : tensor<{N}xf32>");
        run(&elementwise(N, &["f32", "f32"], "i1", &body), [1, 1, 1], &[ro(&a), ro(&b), m(&mut out)]);
        for i in 0..N {
            assert_eq!(out[i], u8::from(f(a[i], b[i])), "{p} {} {}", a[i], b[i]);
        }
    }
}

#[test]
fn selections() {
    let c: Vec<u8> = (0..N).map(|i| u8::from(i % 3 == 0)).collect();
    let (a, b): (Vec<i64>, Vec<i64>) = ((0..N as i64).collect(), (0..N as i64).map(|i| -i).collect());
    let mut out = vec![0i64; N];
    let body = format!("    %r = arith.select %a, %b, %c : tensor<{N}xi1>, tensor<{N}xi64>");
    run(
        &elementwise(N, &["i1", "i64", "i64"], "i64", &body),
        [1, 1, 1],
        &[ro(&c), ro(&a), ro(&b), m(&mut out)],
    );
    for i in 0..N {
        assert_eq!(out[i], if i % 3 == 0 { a[i] } else { b[i] });
    }
}

#[test]
fn integer_casts() {
    let mut r = Random(13);
    macro_rules! cast {
        ($A:ty, $a:literal, $B:ty, $b:literal, $op:literal, $f:expr) => {{
            let a: Vec<$A> = (0..N).map(|_| r.bits() as $A).collect();
            let mut out = vec![0 as $B; N];
            let body = format!("    %r = {} %a : tensor<{N}x{}> to tensor<{N}x{}>", $op, $a, $b);
            run(&elementwise(N, &[$a], $b, &body), [1, 1, 1], &[ro(&a), m(&mut out)]);
            let f: fn($A) -> $B = $f;
            for i in 0..N {
                assert_eq!(out[i], f(a[i]), "{} {} {} to {}", $op, a[i], $a, $b);
            }
        }};
    }
    cast!(i8, "i8", i16, "i16", "arith.extsi", |x| x as i16);
    cast!(i8, "i8", i64, "i64", "arith.extsi", |x| x as i64);
    cast!(i32, "i32", i64, "i64", "arith.extsi", |x| x as i64);
    cast!(u8, "i8", u32, "i32", "arith.extui", |x| x as u32);
    cast!(u32, "i32", u64, "i64", "arith.extui", |x| x as u64);
    cast!(i64, "i64", i8, "i8", "arith.trunci", |x| x as i8);
    cast!(i64, "i64", i32, "i32", "arith.trunci", |x| x as i32);
    cast!(i16, "i16", i8, "i8", "arith.trunci", |x| x as i8);
    cast!(i32, "i32", f32, "f32", "arith.sitofp", |x| x as f32);
    cast!(u32, "i32", f32, "f32", "arith.uitofp", |x| x as f32);
    cast!(i64, "i64", f64, "f64", "arith.sitofp", |x| x as f64);
    cast!(u64, "i64", f32, "f32", "arith.uitofp", |x| x as f32);
    cast!(i8, "i8", f64, "f64", "arith.sitofp", |x| x as f64);
}

#[test]
fn casts_to_and_from_booleans() {
    let a: Vec<i32> = (0..N as i32).collect();
    let mut bits = vec![9u8; N];
    let body = format!("    %r = arith.trunci %a : tensor<{N}xi32> to tensor<{N}xi1>");
    run(&elementwise(N, &["i32"], "i1", &body), [1, 1, 1], &[ro(&a), m(&mut bits)]);
    for (i, &b) in bits.iter().enumerate() {
        assert_eq!(b, (i & 1) as u8);
    }
    for (op, want) in [("arith.extsi", -1i32), ("arith.extui", 1)] {
        let mut out = vec![7i32; N];
        let body = format!("    %r = {op} %a : tensor<{N}xi1> to tensor<{N}xi32>");
        run(&elementwise(N, &["i1"], "i32", &body), [1, 1, 1], &[ro(&bits), m(&mut out)]);
        for (i, &x) in out.iter().enumerate() {
            assert_eq!(x, if i & 1 == 1 { want } else { 0 }, "{op}");
        }
    }
    let mut out = vec![0f32; N];
    let body = format!("    %r = arith.uitofp %a : tensor<{N}xi1> to tensor<{N}xf32>");
    run(&elementwise(N, &["i1"], "f32", &body), [1, 1, 1], &[ro(&bits), m(&mut out)]);
    assert_eq!(&out[..4], &[0.0, 1.0, 0.0, 1.0]);
}

#[test]
fn large_integers_round_once_to_half_precision() {
    // 2^16 + 2^5·… straddle f16's rounding only beyond its range; bf16 has ties everywhere.
    let a: Vec<i64> = (0..N as i64).map(|i| (i * 0x0101_0101_0101) ^ (1 << 55)).collect();
    let mut out = vec![0u16; N];
    let body = format!("    %r = arith.sitofp %a : tensor<{N}xi64> to tensor<{N}xbf16>");
    run(&elementwise(N, &["i64"], "bf16", &body), [1, 1, 1], &[ro(&a), m(&mut out)]);
    for i in 0..N {
        // 55-bit numbers: split exactly into two doubles to find the nearest.
        let want = nearest_bf16(a[i]);
        assert_eq!(out[i], want, "{}", a[i]);
    }
}

fn nearest_bf16(x: i64) -> u16 {
    let shift = 63 - 7 - x.leading_zeros() as i64;
    let (q, r) = (x >> shift, x & ((1 << shift) - 1));
    let half = 1i64 << (shift - 1);
    let q = q + i64::from(r > half || r == half && q & 1 == 1);
    encode("bf16", q as f64 * 2f64.powi(shift as i32)) as u16
}

#[test]
fn floats_to_integers_saturate_at_32_bits() {
    let mut r = Random(17);
    let mut a = float_samples(&mut r);
    a[0] = 3e9;
    a[1] = -3e9;
    a[2] = 300.7;
    let mut out = vec![0i32; N];
    let body = format!("    %r = arith.fptosi %a : tensor<{N}xf32> to tensor<{N}xi32>");
    run(&elementwise(N, &["f32"], "i32", &body), [1, 1, 1], &[ro(&a), m(&mut out)]);
    let mut unsigned = vec![0u8; N];
    let body = format!("    %r = arith.fptoui %a : tensor<{N}xf32> to tensor<{N}xi8>");
    run(&elementwise(N, &["f32"], "i8", &body), [1, 1, 1], &[ro(&a), m(&mut unsigned)]);
    for i in 0..N {
        assert_eq!((out[i], unsigned[i]), (a[i] as i32, a[i] as i32 as u8), "{}", a[i]);
    }
}

#[test]
fn float_conversions_round_once() {
    let mut r = Random(19);
    // Ties of the narrow formats, which rounding twice would get wrong.
    let mut a: Vec<f64> = (0..N).map(|_| r.unit() * 2f64.powi((r.bits() % 40) as i32 - 20)).collect();
    a[0] = 1.0 + 2f64.powi(-11) + 2f64.powi(-40);
    a[1] = 1.0 + 2f64.powi(-8) + 2f64.powi(-40);
    a[2] = 65519.999;
    a[3] = 65520.0;
    a[4] = f64::NAN;
    a[5] = -1e300;
    for kind in ["f16", "bf16", "f32"] {
        let mut out = vec![0u64; N];
        let body = format!("    %r = arith.truncf %a : tensor<{N}xf64> to tensor<{N}x{kind}>");
        run(&elementwise(N, &["f64"], kind, &body), [1, 1, 1], &[ro(&a), m(&mut out)]);
        let size = if kind == "f32" { 4 } else { 2 };
        let got = from_memory(kind, &bytes_of(&out, N * size));
        for i in 0..N {
            let want = decode(kind, encode(kind, a[i]));
            assert!(same(got[i], want), "{} to {kind}: {} instead of {want}", a[i], got[i]);
        }
    }
}

#[test]
fn fp8_conversions_saturate() {
    let mut r = Random(23);
    let mut a: Vec<f32> =
        (0..N).map(|_| (r.unit() * 2f64.powi((r.bits() % 30) as i32 - 12)) as f32).collect();
    a[..6].copy_from_slice(&[1e6, -1e6, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 0.0]);
    for (kind, max, step) in [
        ("f8E4M3FN", 448.0f32, 2f32.powi(-9)),
        ("f8E5M2", 57344.0, 2f32.powi(-16)),
        ("f8E4M3FNUZ", 240.0, 2f32.powi(-10)),
        ("f8E5M2FNUZ", 57344.0, 2f32.powi(-17)),
        ("f8E4M3B11FNUZ", 30.0, 2f32.powi(-13)),
    ] {
        // There and back through memory.
        let body =
            format!("    %r = tt.fp_to_fp %a, rounding = rtne : tensor<{N}xf32> -> tensor<{N}x{kind}>");
        let mut bytes = vec![0u8; N];
        run(&elementwise(N, &["f32"], kind, &body), [1, 1, 1], &[ro(&a), m(&mut bytes)]);
        let mut back = vec![0f32; N];
        let body = format!("    %r = tt.fp_to_fp %a : tensor<{N}x{kind}> -> tensor<{N}xf32>");
        run(&elementwise(N, &[kind], "f32", &body), [1, 1, 1], &[ro(&bytes), m(&mut back)]);
        assert_eq!(&back[..4], &[max, -max, max, -max], "{kind}");
        assert!(back[4].is_nan() && back[5] == 0.0, "{kind}");
        let relative = if kind.contains("M3") { 1.0 / 16.0 } else { 1.0 / 8.0 };
        for i in 6..N {
            let error = (back[i] - a[i].clamp(-max, max)).abs();
            let allowed = (a[i].abs() * relative).max(step / 2.0);
            assert!(error <= allowed, "{kind} {} gave {}", a[i], back[i]);
        }
    }
}

#[test]
fn bit_casts() {
    let bits: Vec<u16> = (0..N).map(|i| (i * 31) as u16).collect();
    let mut out = vec![0u16; N];
    // Through f16 and bf16 and back: nothing is lost, NaN payloads included.
    let body = format!(
        "    %x = tt.bitcast %a : tensor<{N}xi16> -> tensor<{N}xf16>\n    %y = tt.bitcast %x : tensor<{N}xf16> -> tensor<{N}xbf16>\n    %r = tt.bitcast %y : tensor<{N}xbf16> -> tensor<{N}xi16>"
    );
    run(&elementwise(N, &["i16"], "i16", &body), [1, 1, 1], &[ro(&bits), m(&mut out)]);
    assert_eq!(bits, out);
    let floats: Vec<f32> = (0..N).map(|i| i as f32 - 3.0).collect();
    let mut ints = vec![0u32; N];
    let body = format!("    %r = arith.bitcast %a : tensor<{N}xf32> to tensor<{N}xi32>");
    run(&elementwise(N, &["f32"], "i32", &body), [1, 1, 1], &[ro(&floats), m(&mut ints)]);
    for i in 0..N {
        assert_eq!(ints[i], floats[i].to_bits());
    }
}

#[test]
fn upper_half_of_a_product() {
    let mut r = Random(29);
    let (a, b): (Vec<u64>, Vec<u64>) = (0..N).map(|_| (r.bits(), r.bits())).unzip();
    let mut out = vec![0u64; N];
    let body = format!("    %r = tt.mulhiui %a, %b : tensor<{N}xi64>");
    run(&elementwise(N, &["i64", "i64"], "i64", &body), [1, 1, 1], &[ro(&a), ro(&b), m(&mut out)]);
    for i in 0..N {
        assert_eq!(out[i], ((u128::from(a[i]) * u128::from(b[i])) >> 64) as u64);
    }
    let (a, b): (Vec<u32>, Vec<u32>) = (0..N).map(|_| (r.bits() as u32, r.bits() as u32)).unzip();
    let mut out = vec![0u32; N];
    let body = format!("    %r = tt.mulhiui %a, %b : tensor<{N}xi32>");
    run(&elementwise(N, &["i32", "i32"], "i32", &body), [1, 1, 1], &[ro(&a), ro(&b), m(&mut out)]);
    for i in 0..N {
        assert_eq!(out[i], ((u64::from(a[i]) * u64::from(b[i])) >> 32) as u32);
    }
}
