//! Instructions one by one: conversions with every rounding, halves, atomics, warp exchanges, memory forms.
#![allow(missing_docs)]
mod common;
use common::*;
use half::{bf16, f16};

/// Runs `op` on one lane a value of `input`: `%rd10` in, `%rd20` out, both 64 bits.
fn each(op: &str, input: &[u64]) -> Vec<u64> {
    let p = parse(&kernel(
        2,
        &format!(
            "mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mad.lo.u32 %r3, %r2, 32, %r1; mul.wide.u32 %rd1, %r3, 8;
             add.s64 %rd2, %a0, %rd1; add.s64 %rd3, %a1, %rd1; ld.global.b64 %rd10, [%rd2];
             cvt.u32.u64 %r10, %rd10; cvt.u16.u64 %h10, %rd10; mov.b32 %f10, %r10; mov.b64 %fd10, %rd10;
             mov.b64 %rd20, 0; mov.b32 %r20, 0; mov.b16 %h20, 0; mov.b32 %f20, 0f00000000; mov.b64 %fd20, 0d0000000000000000;
             {op} st.global.b64 [%rd3], %rd20; ret;"
        ),
    ));
    let mut a = input.to_vec();
    a.resize(input.len().div_ceil(32) * 32, 0);
    let mut b = vec![0u64; a.len()];
    Run::new(&p, (a.len() / 32) as u32, 32).array(&mut a).array(&mut b).clean();
    b.truncate(input.len());
    b
}

fn f32s() -> Vec<f32> {
    let mut v = vec![
        0.0,
        -0.0,
        0.5,
        1.5,
        2.5,
        -0.5,
        -1.5,
        1e-45,
        1e-40,
        -1e-40,
        6.1e-5,
        5.9e-8,
        2.9e-8,
        65504.0,
        65519.0,
        65520.0,
        1e30,
        -1e30,
        3.4e38,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        2147483648.0,
        -2147483904.0,
        4294967296.0,
        255.5,
        1.0000001,
        1.0009766,
        1.0004883,
        448.0,
        449.0,
        480.0,
        57344.0,
    ];
    let mut r = Rng(2);
    v.extend((0..60).map(|_| f32::from_bits(r.u32())).filter(|x| !x.is_nan()));
    v.extend((0..60).map(|_| r.f32() * 1000.0));
    v
}

fn bits32(v: &[f32]) -> Vec<u64> {
    v.iter().map(|x| u64::from(x.to_bits())).collect()
}

#[test]
fn floats_to_integers() {
    type Case = (&'static str, fn(f32) -> u64);
    let cases: &[Case] = &[
        ("cvt.rni.s32.f32 %r20, %f10;", |x| (x.round_ties_even() as i32) as u32 as u64),
        ("cvt.rzi.u32.f32 %r20, %f10;", |x| u64::from(x as u32)),
        ("cvt.rmi.s32.f32 %r20, %f10;", |x| (x.floor() as i32) as u32 as u64),
        ("cvt.rpi.s32.f32 %r20, %f10;", |x| (x.ceil() as i32) as u32 as u64),
        ("cvt.rzi.s8.f32 %r20, %f10;", |x| (x as i8) as i32 as u32 as u64),
        ("cvt.rzi.u8.f32 %r20, %f10;", |x| u64::from(x as u8)),
    ];
    let v = f32s();
    for (op, f) in cases {
        for (x, g) in v.iter().zip(each(&format!("{op} cvt.u64.u32 %rd20, %r20;"), &bits32(&v))) {
            assert_eq!(g, f(*x), "{op} of {x}");
        }
    }
    for (x, g) in v.iter().zip(each("cvt.rzi.s64.f32 %rd20, %f10;", &bits32(&v))) {
        let want = if x.is_nan() { 1 << 63 } else { *x as i64 as u64 };
        assert_eq!(g, want, "s64 of {x}");
    }
}

#[test]
fn integers_to_floats() {
    let mut r = Rng(4);
    let mut v: Vec<u64> =
        vec![0, 1, !0, 1 << 63, (1 << 63) - 1, 16777217, 16777219, 0xffff_ff80, 0xffff_ff7f, 1 << 53 | 1];
    v.extend((0..60).map(|_| r.next() << 20 ^ r.next()));
    type Case = (&'static str, fn(u64) -> u64);
    let cases: &[Case] = &[
        ("cvt.rn.f32.s64 %f20, %rd10; mov.b32 %r20, %f20; cvt.u64.u32 %rd20, %r20;", |x| {
            (x as i64 as f32).to_bits().into()
        }),
        ("cvt.rn.f32.u64 %f20, %rd10; mov.b32 %r20, %f20; cvt.u64.u32 %rd20, %r20;", |x| {
            (x as f32).to_bits().into()
        }),
        ("cvt.rn.f64.u64 %fd20, %rd10; mov.b64 %rd20, %fd20;", |x| (x as f64).to_bits()),
        ("cvt.rn.f32.u32 %f20, %r10; mov.b32 %r20, %f20; cvt.u64.u32 %rd20, %r20;", |x| {
            (x as u32 as f32).to_bits().into()
        }),
        ("cvt.rn.f16.s32 %h20, %r10; cvt.u64.u16 %rd20, %h20;", |x| {
            f16::from_f64(f64::from(x as i32)).to_bits().into()
        }),
        ("cvt.sat.u8.s32 %r20, %r10; cvt.u64.u32 %rd20, %r20;", |x| (x as i32).clamp(0, 255) as u64),
        ("cvt.sat.s16.s64 %h20, %rd10; cvt.u64.u16 %rd20, %h20;", |x| {
            (x as i64).clamp(-32768, 32767) as u16 as u64
        }),
        ("cvt.s64.s16 %rd20, %h10;", |x| x as i16 as i64 as u64),
        ("cvt.u16.s8 %h20, %h10; cvt.u64.u16 %rd20, %h20;", |x| x as i8 as i16 as u16 as u64),
    ];
    for (op, f) in cases {
        for (x, g) in v.iter().zip(each(op, &v)) {
            assert_eq!(g, f(*x), "{op} of {x:#x}");
        }
    }
    // Directed: below and above the value, at most one step apart.
    let down = each("cvt.rm.f32.u64 %f20, %rd10; mov.b32 %r20, %f20; cvt.u64.u32 %rd20, %r20;", &v);
    let up = each("cvt.rp.f32.u64 %f20, %rd10; mov.b32 %r20, %f20; cvt.u64.u32 %rd20, %r20;", &v);
    for ((x, d), u) in v.iter().zip(down).zip(up) {
        let (lo, hi) = (f32::from_bits(d as u32) as u128, f32::from_bits(u as u32) as u128);
        assert!(lo <= u128::from(*x) && u128::from(*x) <= hi && u - d <= 1, "{x}");
    }
}

#[test]
fn narrowing_floats() {
    let v = f32s();
    type Case = (&'static str, fn(f32) -> u64);
    let cases: &[Case] = &[
        (
            "cvt.rn.f16.f32 %h20, %f10;",
            |x| if x.is_nan() { 0x7fff } else { f16::from_f32(x).to_bits().into() },
        ),
        (
            "cvt.rn.bf16.f32 %h20, %f10;",
            |x| if x.is_nan() { 0x7fff } else { bf16::from_f32(x).to_bits().into() },
        ),
        ("cvt.rz.bf16.f32 %h20, %f10;", |x| if x.is_nan() { 0x7fff } else { u64::from(x.to_bits() >> 16) }),
        ("cvt.rn.relu.f16.f32 %h20, %f10;", |x| {
            if x.is_nan() {
                0x7fff
            } else if x <= 0.0 {
                0
            } else {
                f16::from_f32(x).to_bits().into()
            }
        }),
    ];
    for (op, f) in cases {
        for (x, g) in v.iter().zip(each(&format!("{op} cvt.u64.u16 %rd20, %h20;"), &bits32(&v))) {
            assert_eq!(g, f(*x), "{op} of {x:e}");
        }
    }
    let got = each("cvt.rna.tf32.f32 %r20, %f10; cvt.u64.u32 %rd20, %r20;", &bits32(&v));
    for (x, g) in v.iter().zip(got) {
        if x.is_finite() && x.abs() < 1e38 {
            assert_eq!(g, u64::from((x.to_bits() + 0x1000) & !0x1fff), "tf32 of {x:e}");
        }
    }
    // Pairs: the first source above.
    let got =
        each("neg.f32 %f11, %f10; cvt.rn.f16x2.f32 %r20, %f10, %f11; cvt.u64.u32 %rd20, %r20;", &bits32(&v));
    for (x, g) in v.iter().zip(got).filter(|(x, _)| !x.is_nan()) {
        assert_eq!(g >> 16, u64::from(f16::from_f32(*x).to_bits()));
        assert_eq!(g & 0xffff, u64::from(f16::from_f32(-x).to_bits()));
    }
    // fp8: saturating, and back exactly.
    let got = each(
        "cvt.rn.satfinite.e4m3x2.f32 %h20, %f10, %f10; cvt.rn.f16x2.e4m3x2 %r20, %h20; cvt.u64.u32 %rd20, %r20;",
        &bits32(&v),
    );
    for (x, g) in v.iter().zip(got).filter(|(x, _)| !x.is_nan()) {
        let (lo, hi) = (f16::from_bits(g as u16), f16::from_bits((g >> 16) as u16));
        assert_eq!(lo.to_bits(), hi.to_bits());
        let lo = f64::from(lo);
        let want = f64::from(*x).clamp(-448.0, 448.0);
        let step = (2f64.powf(want.abs().log2().floor() - 3.0)).max(2f64.powi(-9));
        assert!((lo - want).abs() <= step / 2.0, "{x}: {lo}");
    }
}

/// All values of a format of few bits, by encoding, without the sign.
fn tiny_values(exp: i32, man: i32) -> Vec<f64> {
    let bias = (1 << (exp - 1)) - 1;
    let value = |code: i32| {
        let (e, m) = (code >> man, f64::from(code & ((1 << man) - 1)) / f64::from(1 << man));
        if e == 0 { m * 2f64.powi(1 - bias) } else { (1.0 + m) * 2f64.powi(e - bias) }
    };
    (0..1 << (exp + man)).map(value).collect()
}

#[test]
fn conversions_to_floats_of_4_and_6_bits() {
    for (name, exp, man, half, register) in [
        ("e2m1x2", 2, 1, 4, ".reg .b8 e; cvt.u16.u8"),
        ("e2m3x2", 2, 3, 8, ".reg .b16 e; mov.b16"),
        ("e3m2x2", 3, 2, 8, ".reg .b16 e; mov.b16"),
    ] {
        let table = tiny_values(exp, man);
        let mut v: Vec<f32> = vec![f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e30, -1e30, 1e-30, -1e-40];
        for pair in table.windows(2) {
            let (low, high) = (pair[0] as f32, pair[1] as f32);
            let middle = (low + high) / 2.0;
            v.extend([low, middle, middle.next_down(), middle.next_up(), -high, -middle]);
        }
        let (declared, moved) = register.split_once("; ").unwrap();
        let got = each(
            &format!(
                "{{ {declared}; .reg .f32 n; neg.f32 n, %f10; cvt.rn.satfinite.{name}.f32 e, n, %f10; {moved} %h20, e; cvt.u64.u16 %rd20, %h20; \
                 cvt.rn.f16x2.{name} %r20, e; cvt.u64.u32 %rd21, %r20; shl.b64 %rd21, %rd21, 32; or.b64 %rd20, %rd20, %rd21; }}"
            ),
            &bits32(&v),
        );
        for (x, g) in v.iter().zip(got) {
            let magnitude = f64::from(x.abs()).min(table[table.len() - 1]);
            let magnitude = if x.is_nan() { table[table.len() - 1] } else { magnitude };
            let distance = |code: &usize| ((table[*code] - magnitude).abs(), code % 2);
            let nearest =
                (0..table.len()).min_by(|a, b| distance(a).partial_cmp(&distance(b)).unwrap()).unwrap();
            let sign = |negative: bool| u64::from(negative && !x.is_nan()) << (exp + man);
            let (low, high) = (g & ((1 << half) - 1), g >> half & ((1 << half) - 1));
            assert_eq!(low, nearest as u64 | sign(*x < 0.0 || x.to_bits() == 0x8000_0000), "{name} of {x:e}");
            assert_eq!(high, nearest as u64 | sign(*x > 0.0 || x.to_bits() == 0), "{name} of {:e}", -x);
            let back = f64::from(f16::from_bits((g >> 32) as u16));
            assert_eq!(back.abs(), table[nearest], "{name} of {x:e}, and back");
        }
    }
}

#[test]
fn conversions_to_exponents() {
    let v: Vec<f32> = vec![
        1.0,
        1.5,
        2.0,
        0.75,
        f32::NAN,
        f32::INFINITY,
        f32::MAX,
        f32::MIN_POSITIVE,
        f32::MIN_POSITIVE / 2.0,
        (f32::MIN_POSITIVE / 2.0).next_up(),
        1e-45,
        0.0,
        2f32.powi(127),
    ];
    let codes = |text: &str| -> Vec<u64> {
        each(&format!("cvt.{text}.ue8m0x2.f32 %h20, 0f40000000, %f10; cvt.u64.u16 %rd20, %h20;"), &bits32(&v))
    };
    let up = [127, 128, 128, 127, 255, 255, 255, 1, 0, 1, 0, 0, 254];
    let finite = up.map(|n| if n == 255 { 254 } else { n });
    for (x, (got, want)) in v.iter().zip(codes("rp").into_iter().zip(up)) {
        assert_eq!(got, 128 << 8 | want, "{x:e}");
    }
    for (x, (got, want)) in v.iter().zip(codes("rp.satfinite").into_iter().zip(finite)) {
        assert_eq!(got, 128 << 8 | if x.is_nan() { 255 } else { want }, "{x:e}");
    }
    let down = [127, 127, 128, 126, 255, 255, 254, 1, 0, 0, 0, 0, 254];
    for (x, (got, want)) in v.iter().zip(codes("rz").into_iter().zip(down)) {
        assert_eq!(got, 128 << 8 | want, "{x:e}");
    }
    // And back.
    let all: Vec<u64> = (0..256).collect();
    let got = each(
        "cvt.u16.u64 %h10, %rd10; cvt.rn.bf16x2.ue8m0x2 %r20, %h10; cvt.rz.ue8m0x2.bf16x2 %h20, %r20; shl.b32 %r20, %r20, 16; \
         cvt.u64.u32 %rd20, %r20; cvt.u64.u16 %rd21, %h20; shl.b64 %rd21, %rd21, 32; or.b64 %rd20, %rd20, %rd21;",
        &all,
    );
    for (code, g) in all.iter().zip(got) {
        let value = f32::from_bits(g as u32);
        assert!(
            *code == 255 && value.is_nan() || f64::from(value) == 2f64.powi(*code as i32 - 127),
            "{code}"
        );
        assert_eq!(g >> 32 & 255, *code);
    }
}

#[test]
fn half_arithmetic() {
    let mut r = Rng(8);
    let v: Vec<u64> = (0..96).map(|_| r.next() & 0x7bff_7bff_fbff_fbff).collect();
    type Case = (&'static str, fn(f64, f64) -> f64);
    // Both operands from one value: bits 0–15 and 16–31.
    let cases: &[Case] = &[
        ("add", |a, b| a + b),
        ("sub", |a, b| a - b),
        ("mul", |a, b| a * b),
        ("max", f64::max),
        ("min", f64::min),
    ];
    for (op, f) in cases {
        let rn = if matches!(*op, "max" | "min") { "" } else { ".rn" };
        let body =
            format!("mov.b32 {{%h1, %h2}}, %r10; {op}{rn}.f16 %h20, %h1, %h2; cvt.u64.u16 %rd20, %h20;");
        for (x, g) in v.iter().zip(each(&body, &v)) {
            let (a, b) = (f16::from_bits(*x as u16), f16::from_bits((x >> 16) as u16));
            let want = f16::from_f64(f(a.into(), b.into()));
            assert!(g as u16 == want.to_bits() || want == f16::from_bits(g as u16), "{op} {a} {b}");
        }
        let body =
            format!("mov.b64 {{%r1, %r2}}, %rd10; {op}{rn}.bf16x2 %r20, %r1, %r2; cvt.u64.u32 %rd20, %r20;");
        for (x, g) in v.iter().zip(each(&body, &v)) {
            for s in [0, 16] {
                let (a, b) = (bf16::from_bits((x >> s) as u16), bf16::from_bits((x >> (32 + s)) as u16));
                let want = bf16::from_f64(f(a.into(), b.into()));
                assert_eq!(bf16::from_bits((g >> s) as u16), want, "{op} {a} {b}");
            }
        }
    }
    // A fused multiply-add is rounded once: 1 + 2⁻¹⁰ squared, minus one.
    let x = f16::from_bits(0x3c01).to_bits();
    let g =
        each("mov.b16 %h1, 0xbc00; fma.rn.f16 %h20, %h10, %h10, %h1; cvt.u64.u16 %rd20, %h20;", &[x.into()]);
    let exact = (1.0 + 2f64.powi(-10)).powi(2) - 1.0;
    assert_eq!(f16::from_bits(g[0] as u16), f16::from_f64(exact));
    let neg = each("fma.rn.relu.f16 %h20, %h10, %h10, 0xfbff; cvt.u64.u16 %rd20, %h20;", &[x.into()]);
    assert_eq!(neg, [0]);
}

#[test]
fn flush_to_zero_and_saturation() {
    let tiny = f32::from_bits(1);
    let one = |op: &str, x: f32| {
        f32::from_bits(
            each(&format!("{op} mov.b32 %r20, %f20; cvt.u64.u32 %rd20, %r20;"), &bits32(&[x]))[0] as u32,
        )
    };
    assert_eq!(one("add.f32 %f20, %f10, 0f00000000;", tiny), tiny);
    assert_eq!(one("add.ftz.f32 %f20, %f10, 0f00000000;", tiny), 0.0);
    assert_eq!(one("mul.ftz.f32 %f20, %f10, 0f00800000;", 0.5), 0.0);
    assert_eq!(one("mul.f32 %f20, %f10, 0f00800000;", 0.5), f32::MIN_POSITIVE / 2.0);
    assert_eq!(one("add.sat.f32 %f20, %f10, %f10;", 0.75), 1.0);
    assert_eq!(one("add.sat.f32 %f20, %f10, %f10;", -0.75), 0.0);
    assert_eq!(one("mul.sat.f32 %f20, %f10, %f10;", f32::NAN), 0.0);
    assert_eq!(one("max.NaN.f32 %f20, %f10, 0f3F800000;", f32::NAN).to_bits(), 0x7fff_ffff);
    assert_eq!(one("max.f32 %f20, %f10, 0f3F800000;", f32::NAN), 1.0);
    assert_eq!(one("min.f32 %f20, %f10, 0f80000000;", 0.0).to_bits(), (-0.0f32).to_bits());
    assert_eq!(one("ex2.approx.f32 %f20, %f10;", 3.0), 8.0);
    assert_eq!(one("ex2.approx.ftz.f32 %f20, %f10;", -140.0), 0.0);
    assert_eq!(one("lg2.approx.f32 %f20, %f10;", 0.0), f32::NEG_INFINITY);
    assert_eq!(one("rcp.approx.ftz.f32 %f20, %f10;", -0.0), f32::NEG_INFINITY);
    assert_eq!(one("rsqrt.approx.f32 %f20, %f10;", 4.0), 0.5);
    assert!((one("tanh.approx.f32 %f20, %f10;", 0.5) - 0.5f32.tanh()).abs() < 1e-6);
}

#[test]
fn directed_rounding_brackets() {
    let mut r = Rng(12);
    let v: Vec<u64> =
        (0..64).map(|_| u64::from(r.f32().to_bits()) | u64::from(r.f32().to_bits()) << 32).collect();
    for op in ["add", "sub", "mul", "div", "fma"] {
        let go = |m: &str| {
            let third = if op == "fma" { ", 0f3DCCCCCD" } else { "" };
            each(
                &format!(
                    "mov.b64 {{%r1, %r2}}, %rd10; mov.b32 %f1, %r1; mov.b32 %f2, %r2; {op}.{m}.f32 %f20, %f1, %f2{third};
                     mov.b32 %r20, %f20; cvt.u64.u32 %rd20, %r20;"
                ),
                &v,
            )
        };
        let (rn, rz, rm, rp) = (go("rn"), go("rz"), go("rm"), go("rp"));
        for k in 0..v.len() {
            let f = |b: u64| f64::from(f32::from_bits(b as u32));
            let (a, b) = (f(v[k]), f(v[k] >> 32));
            let exact = match op {
                "add" => a + b,
                "sub" => a - b,
                "mul" => a * b,
                "div" => a / b,
                _ => a * b + f64::from(0.1f32),
            };
            assert!(f(rm[k]) <= exact && exact <= f(rp[k]), "{op} {a} {b}");
            assert_eq!(f(rz[k]), if exact > 0.0 { f(rm[k]) } else { f(rp[k]) }, "{op} {a} {b}");
            assert_eq!(f(rn[k]), f64::from(exact as f32), "{op} {a} {b}");
        }
    }
}

#[test]
fn atomics() {
    // One lane: memory before, operand, memory after.
    type Case = (&'static str, u64, u64, u64);
    let f = |x: f32| u64::from(x.to_bits());
    let cases: &[Case] = &[
        ("add.u32", 5, 7, 12),
        ("add.s32", 0xffff_ffff, 2, 1),
        ("add.u64", 1 << 40, 1 << 41, 3 << 40),
        ("min.s32", 5, 0xffff_fffe, 0xffff_fffe),
        ("max.u32", 5, 0xffff_fffe, 0xffff_fffe),
        ("max.s64", 5, !0, 5),
        ("and.b32", 12, 10, 8),
        ("or.b64", 12, 10, 14),
        ("xor.b32", 12, 10, 6),
        ("exch.b32", 1, 2, 2),
        ("inc.u32", 3, 3, 0),
        ("inc.u32", 2, 3, 3),
        ("dec.u32", 0, 9, 9),
        ("dec.u32", 4, 9, 3),
        ("add.f32", f(1.5), f(2.25), f(3.75)),
        ("add.f64", 1.5f64.to_bits(), 2.25f64.to_bits(), 3.75f64.to_bits()),
        ("add.noftz.f16x2", 0x3c00_4000, 0x3c00_3c00, 0x4000_4200),
        ("add.noftz.bf16x2", 0x3f80_4000, 0x3f80_3f80, 0x4000_4040),
    ];
    for (op, before, operand, after) in cases {
        let wide = op.ends_with("64");
        let (reg, ty) = match (wide, op.contains(".f32"), op.contains(".f64")) {
            (_, true, _) => ("%f", "f32"),
            (_, _, true) => ("%fd", "f64"),
            (true, ..) => ("%rd", "b64"),
            _ => ("%r", "b32"),
        };
        for (space, address) in [("global", "%a0"), ("shared", "s"), ("", "%rd9")] {
            let dot = if space.is_empty() { String::new() } else { format!(".{space}") };
            let body = format!(
                ".shared .align 8 .b8 s[8]; mov.b64 %rd9, s; cvta.shared.u64 %rd9, %rd9;
                 ld.global.{ty} {reg}1, [%a0]; ld.global.{ty} {reg}2, [%a0+8]; st.shared.{ty} [s], {reg}1;
                 atom{dot}.{op} {reg}3, [{address}], {reg}2; st.global.{ty} [%a0+16], {reg}3;
                 ld{dot}.{ty} {reg}4, [{address}]; st.global.{ty} [%a0+24], {reg}4; ret;"
            );
            let p = parse(&kernel(1, &body));
            let mut a = vec![*before, *operand, 0, 0];
            Run::new(&p, 1, 1).array(&mut a).clean();
            assert_eq!((a[2], a[3]), (*before, *after), "atom{dot}.{op}");
        }
    }
    // In global memory f32 additions flush subnormals; in shared memory they don't.
    for (space, address, want) in [("global", "%a0", 0), ("shared", "s", 3)] {
        let body = format!(
            ".shared .align 8 .b8 s[8]; st.shared.b32 [s], 1; atom.{space}.add.f32 %f1, [{address}], 0f00000002;
             ld.{space}.b32 %r1, [{address}]; st.global.b32 [%a0+4], %r1; ret;"
        );
        let p = parse(&kernel(1, &body));
        let mut a = vec![1u32, 9];
        Run::new(&p, 1, 1).array(&mut a).clean();
        assert_eq!(a[1], want, "{space}");
    }
    let p = parse(&kernel(
        1,
        "atom.global.cas.b32 %r1, [%a0], 5, 6; atom.global.cas.b32 %r2, [%a0], 5, 9; st.global.v2.u32 [%a0+8], {%r1,%r2};
         atom.global.cas.b16 %h1, [%a0+4], 7, 8; st.global.u16 [%a0+16], %h1; ret;",
    ));
    let mut a = vec![5u32, 7, 0, 0, 0];
    Run::new(&p, 1, 1).array(&mut a).clean();
    assert_eq!(a, [6, 8, 5, 6, 7]);
}

#[test]
fn warp_exchanges() {
    let go = |op: &str| {
        each(&format!("{op} cvt.u64.u32 %rd20, %r20;"), &(0..32).map(|l| l * 10 + 1).collect::<Vec<_>>())
    };
    let lanes = |f: fn(u64) -> u64| (0..32).map(|l| f(l) * 10 + 1).collect::<Vec<u64>>();
    assert_eq!(go("shfl.sync.up.b32 %r20, %r10, 1, 0, -1;"), lanes(|l| l.saturating_sub(1)));
    assert_eq!(go("shfl.sync.down.b32 %r20, %r10, 4, 31, -1;"), lanes(|l| if l < 28 { l + 4 } else { l }));
    assert_eq!(go("shfl.sync.bfly.b32 %r20, %r10, 7, 31, -1;"), lanes(|l| l ^ 7));
    assert_eq!(go("shfl.sync.idx.b32 %r20, %r10, 3, 31, -1;"), lanes(|_| 3));
    // Segments of 8: c = (32 − 8) << 8 | 31.
    assert_eq!(go("shfl.sync.idx.b32 %r20, %r10, 3, 6175, -1;"), lanes(|l| l & !7 | 3));
    assert_eq!(go("shfl.sync.up.b32 %r20, %r10, 2, 6144, -1;"), lanes(|l| if l % 8 < 2 { l } else { l - 2 }));
    assert_eq!(
        go("shfl.sync.down.b32 %r11|%p1, %r10, 1, 31, -1; selp.b32 %r20, 1, 0, %p1;"),
        (0..32).map(|l| u64::from(l < 31)).collect::<Vec<u64>>()
    );
    assert_eq!(go("setp.gt.u32 %p1, %r10, 100; vote.sync.ballot.b32 %r20, %p1, -1;"), vec![0xffff_fc00; 32]);
    assert_eq!(
        go("setp.gt.u32 %p1, %r10, 0; vote.sync.all.pred %p2, %p1, -1; selp.b32 %r20, 5, 6, %p2;"),
        vec![5; 32]
    );
    assert_eq!(go("redux.sync.add.s32 %r20, %r10, -1;"), vec![31 * 16 * 10 + 32; 32]);
    assert_eq!(go("redux.sync.max.u32 %r20, %r10, -1;"), vec![311; 32]);
    assert_eq!(
        go("shr.u32 %r11, %r1, 3; match.any.sync.b32 %r20, %r11, -1;"),
        (0..32).map(|l| 0xff << (l & !7)).collect::<Vec<u64>>()
    );
    assert_eq!(
        go("elect.sync %r20|%p1, -1; selp.b32 %r20, 1, 0, %p1;"),
        (0..32).map(|l| u64::from(l == 0)).collect::<Vec<u64>>()
    );
    assert_eq!(
        go("setp.lt.u32 %p1, %r1, 5; @%p1 activemask.b32 %r20;"),
        (0..32).map(|l| if l < 5 { 31 } else { 0 }).collect::<Vec<u64>>()
    );
    assert_eq!(go("mov.u32 %r20, %lanemask_lt;"), (0..32).map(|l| (1 << l) - 1).collect::<Vec<u64>>());
}

#[test]
fn loads_and_stores_of_every_form() {
    let p = parse(&kernel(
        2,
        "ld.global.nc.L1::no_allocate.v4.b32 {%r1,%r2,%r3,%r4}, [%a0]; st.global.v4.b32 [%a1], {%r4,%r3,%r2,%r1};
         ld.global.v2.b64 {%rd1,%rd2}, [%a0]; st.global.v2.u64 [%a1+16], {%rd2,%rd1};
         ld.global.s8 %r5, [%a0+3]; st.global.s32 [%a1+32], %r5; ld.global.u8 %h1, [%a0+3]; st.global.u16 [%a1+36], %h1;
         ld.global.v4.u8 {%h2,%h3,%h4,%h5}, [%a0]; st.global.v4.u8 [%a1+40], {%h5,%h4,%h3,%h2};
         ld.volatile.global.s16 %r6, [%a0+2]; st.wb.global.b32 [%a1+44], %r6;
         createpolicy.fractional.L2::evict_first.b64 %rd5, 1.0;
         ld.global.L1::evict_last.L2::cache_hint.b32 %r7, [%a0], %rd5; st.global.b32 [%a1+48], %r7;
         mov.b64 {%r8,%r9}, %rd1; mov.b64 %rd6, {%r9,%r8}; st.global.b64 [%a1+56], %rd6;
         mov.b32 {%h6,%h7}, %r1; mov.b32 %r10, {%h7,%h6}; st.global.b32 [%a1+64], %r10;
         { .reg .b32 %r1; mov.b32 %r1, 77; st.global.b32 [%a1+68], %r1; } st.global.b32 [%a1+72], %r1; ret;",
    ));
    let mut a = vec![0x8384_8586_0102_0304u64, 0x1122_3344_5566_7788];
    let mut b = vec![0u32; 20];
    Run::new(&p, 1, 1).array(&mut a).array(&mut b).clean();
    let w = [0x0102_0304u32, 0x8384_8586, 0x5566_7788, 0x1122_3344];
    assert_eq!(b[0..4], [w[3], w[2], w[1], w[0]]);
    assert_eq!(b[4..8], [w[2], w[3], w[0], w[1]]);
    assert_eq!(b[8], 1);
    assert_eq!(b[9], 1);
    assert_eq!(b[10], 0x0403_0201);
    assert_eq!(b[11], 0x0102);
    assert_eq!(b[12], w[0]);
    assert_eq!(b[14..16], [w[1], w[0]]);
    assert_eq!(b[16], 0x0304_0102);
    assert_eq!(b[17..19], [77, w[0]]);
}

/// `cvt.rs`: the random bits are added to those that are cut off, and the carry goes on; the upper half of them is the first value's.
#[test]
fn stochastic_rounding_takes_the_bits_that_are_given() {
    let x: Vec<f32> = f32s().into_iter().filter(|x| !x.is_nan()).collect();
    let randoms = [0u32, !0, 0x1fff_0000, 0x0000_1fff, 0x8000_7fff, 0xe001_e001, 0x1234_8765];
    let pairs: Vec<(f32, u32)> = x.iter().flat_map(|&x| randoms.map(|r| (x, r))).collect();
    let input: Vec<u64> = pairs.iter().map(|&(x, r)| u64::from(x.to_bits()) | u64::from(r) << 32).collect();
    let go = |to: &str| {
        let op = format!(
            "neg.f32 %f11, %f10; mov.b64 {{%r11, %r12}}, %rd10; cvt.rs{to}.f32 %r20, %f10, %f11, %r12; cvt.u64.u32 %rd20, %r20;"
        );
        each(&op, &input)
    };
    // Of magnitudes, which pass over into the next exponent, and at last into infinity.
    let bf16 = |x: f32, random: u32, largest: u32| {
        let up = (x.abs().to_bits() + (random & 0xffff)) >> 16;
        up.min(largest) | x.to_bits() >> 31 << 15
    };
    for (what, largest) in [(".bf16x2", 0x7f80), (".satfinite.bf16x2", 0x7f7f)] {
        for (&(x, r), got) in pairs.iter().zip(go(what)) {
            let want = bf16(x, r >> 16, largest) << 16 | bf16(-x, r, largest);
            assert_eq!(got, u64::from(want), "{what} of {x:e} by {r:#x}");
        }
    }
    let f16 = |x: f32, random: u32| {
        let up = (x.abs().to_bits() - (112 << 23) + (random & 0x1fff)) >> 13;
        up.min(0x7c00) | x.to_bits() >> 31 << 15
    };
    for (&(x, r), got) in pairs.iter().zip(go(".f16x2")).filter(|((x, _), _)| x.abs() >= 6.2e-5) {
        assert_eq!(got, u64::from(f16(x, r >> 16) << 16 | f16(-x, r)), "f16x2 of {x:e} by {r:#x}");
    }
    let got = each(
        "mov.b32 %r12, 0; cvt.rs.relu.bf16x2.f32 %r20, %f10, %f10, %r12; cvt.u64.u32 %rd20, %r20;",
        &bits32(&[-1.5, f32::NAN]),
    );
    assert_eq!(got, [0, 0x7fff_7fff]);
}

/// `cvt.rs` to four floats of 6 or 8 bits: of a half of the random bits the second value takes them as they are, the first from the lowest bit on.
#[test]
fn stochastic_rounding_of_four_takes_each_half_twice() {
    let x: Vec<f32> = f32s().into_iter().filter(|x| !x.is_nan()).collect();
    let randoms = [0u32, !0, 0x8000_0001, 0x0001_8000, 0x1234_8765, 0x7fff_fffe];
    let pairs: Vec<(f32, u32)> = x.iter().flat_map(|&x| randoms.map(|r| (x, r))).collect();
    let input: Vec<u64> = pairs.iter().map(|&(x, r)| u64::from(x.to_bits()) | u64::from(r) << 32).collect();
    let go = |to: &str, input: &[u64]| {
        let op = format!(
            "neg.f32 %f11, %f10; mov.b64 {{%r11, %r12}}, %rd10; cvt.rs{to}.f32 %r20, {{%f10, %f11, %f11, %f10}}, %r12; cvt.u64.u32 %rd20, %r20;"
        );
        each(&op, input)
    };
    for (name, exponents, fraction, largest) in
        [("e4m3x4", 4, 3, 0x7e), ("e5m2x4", 5, 2, 0x7b), ("e2m3x4", 2, 3, 0x1f), ("e3m2x4", 3, 2, 0x1f)]
    {
        let (bias, cut) = ((1 << (exponents - 1)) - 1, 23 - fraction);
        let one = |x: f32, random: u16| {
            let up = (x.abs().to_bits() - ((127 - bias) << 23) + (u32::from(random) << (cut - 16))) >> cut;
            up.min(largest) | x.to_bits() >> 31 << (exponents + fraction)
        };
        let least = f32::from_bits((128 - bias) << 23);
        for (&(x, r), got) in pairs.iter().zip(go(&format!(".satfinite.{name}"), &input)) {
            if x.abs() < least {
                continue;
            }
            let (upper, lower) = ((r >> 16) as u16, r as u16);
            let want = [(x, upper.reverse_bits()), (-x, upper), (-x, lower.reverse_bits()), (x, lower)];
            let want = want.iter().fold(0, |all, &(x, bits)| all << 8 | one(x, bits));
            assert_eq!(got, u64::from(want), "{name} of {x:e} by {r:#x}");
        }
    }
    // Half of e4m3's least number, by less and by no less than a half; NaN, and what is below zero.
    let half = u64::from(2f32.powi(-10).to_bits());
    assert_eq!(go(".satfinite.e4m3x4", &[half | 0x8000_7fff << 32]), [0x0081_8100]);
    assert_eq!(go(".relu.satfinite.e4m3x4", &bits32(&[f32::NAN, 1.0])), [0x7f7f_7f7f, 0x3800_0038]);
}

#[test]
fn errors_name_instruction_line_and_section() {
    let error = |body: &str| {
        let p = parse(&kernel(0, body));
        p.params("k").err().map(|e| e.to_string()).unwrap_or_default()
    };
    let e = error("mov.u32 %r1, 0;\nfrobnicate.b32 %r1, %r2;\nret;");
    assert!(e.contains("PTX line 13: unknown instruction `frobnicate.b32` (PTX ISA §9.7)"), "{e}");
    let e = error("tcgen05.alloc.b32 %r1, %r2; ret;");
    assert!(e.contains("not supported yet: instruction `tcgen05.alloc.b32` (PTX ISA §9.7.16)"), "{e}");
    let e = error("cvt.rs.satfinite.e2m1x4.f32 %h1, {%f1, %f2, %f1, %f2}, %r1; ret;");
    assert!(e.contains("not supported yet: type `e2m1x4` in `cvt.") && e.contains("§9.7.9.21"), "{e}");
    let e = error("cvt.rs.f16.f32 %h1, %f1, %r1; ret;");
    assert!(e.contains("converts two `f32` to `f16x2` or `bf16x2`"), "{e}");
    let e = error("cvt.rs.e4m3x4.f32 %r2, {%f1, %f2, %f1, %f2}, %r1; ret;");
    assert!(e.contains("converts four `f32`, with `.satfinite`"), "{e}");
    for op in [
        "cvt.rn.e2m1x2.f32 %h1, %f1, %f2;",
        "cvt.satfinite.e2m1x2.f32 %h1, %f1, %f2;",
        "cvt.rz.satfinite.e3m2x2.f32 %h1, %f1, %f2;",
        "cvt.rn.satfinite.ue8m0x2.f32 %h1, %f1, %f2;",
        "cvt.rp.relu.ue8m0x2.f32 %h1, %f1, %f2;",
        "cvt.rn.satfinite.f16x2.e2m3x2 %r1, %h1;",
    ] {
        let e = error(&format!("{op} ret;"));
        assert!(e.contains("these types do not take these modifiers"), "{op}: {e}");
    }
    let e = error("add.s32.wide %r1, %r2, %r3; ret;");
    assert!(e.contains("modifier `.wide`") && e.contains("§9.7.1.1"), "{e}");
    let e = error("add.s32 %r1, %rd2, %r3; ret;");
    assert!(e.contains("`%rd2` has 64 bits where 32 are wanted"), "{e}");
    // ptxas refuses these, too ("Arguments mismatch").
    for op in [
        "mov.b16 %h1, 0f3F800000;",
        "fma.rn.f16 %h1, %h2, %h2, 0d3FF0000000000000;",
        "add.f16 %h1, %h2, 1.5;",
    ] {
        let e = error(&format!("{op} ret;"));
        assert!(e.contains("a floating constant where 16 bits are wanted"), "{op}: {e}");
    }
    let e = error("add.s32 %r1, %zz, %r3; ret;");
    assert!(e.contains("`%zz` is not a declared register"), "{e}");
    let e = error("bra NOWHERE; ret;");
    assert!(e.contains("NOWHERE"), "{e}");
    let e = error("mma.sync.aligned.m16n8k99.row.col.f32.f16.f16.f32 {%f1}, {%r1}, {%r2}, {%f1}; ret;");
    assert!(e.contains("no such combination"), "{e}");
}

#[test]
fn bytes_are_packed_and_unpacked() {
    let bytes = ".reg .b8 x0, x1, x2, x3;";
    let v = [0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210, 0xff00_8001_7fff_8000];
    let got = each(
        &format!(
            "{bytes} mov.b32 {{x0, x1, x2, x3}}, %r10; mov.b32 %r20, {{x3, x1, x0, x2}}; mov.b64 %rd20, {{%r20, %r10}};"
        ),
        &v,
    );
    for (x, got) in v.iter().zip(got) {
        let [a, b, c, d] = (*x as u32).to_le_bytes();
        assert_eq!(got, u64::from(u32::from_le_bytes([d, b, a, c])) | x << 32);
    }
    let got = each(
        &format!("{bytes} mov.b16 {{x0, x1}}, %h10; mov.b16 %h20, {{x1, x0}}; cvt.u64.u16 %rd20, %h20;"),
        &v,
    );
    for (x, got) in v.iter().zip(got) {
        assert_eq!(got, x >> 8 & 255 | (x & 255) << 8);
    }
    let e =
        parse(&kernel(0, ".reg .b8 x<3>; mov.b32 {x0, x1, x2}, %r1;")).params("k").expect_err("three parts");
    assert!(e.to_string().contains("3 parts don't make a `B32`"), "{e}");
}

#[test]
fn vabsdiff_takes_whole_registers() {
    let v = [0x0000_0003_ffff_fffe];
    let run = |op: &str| {
        each(&format!("shr.u64 %rd1, %rd10, 32; cvt.u32.u64 %r11, %rd1; {op} cvt.u64.u32 %rd20, %r20;"), &v)
            [0]
    };
    // 0xfffffffe is 4294967294 or -2.
    assert_eq!(run("vabsdiff.u32.u32.u32 %r20, %r10, %r11;"), 0xffff_fffb);
    assert_eq!(run("vabsdiff.u32.s32.s32 %r20, %r10, %r11;"), 5);
    assert_eq!(run("vabsdiff.s32.u32.u32.sat %r20, %r10, %r11;"), 0x7fff_ffff);
    assert_eq!(run("vabsdiff.u32.u32.s32.sat %r20, %r10, -2147483648;"), 0xffff_ffff);
    assert_eq!(run("vabsdiff.u32.s32.s32.add %r20, %r10, %r11, %r10;"), 3);
    assert_eq!(run("vabsdiff.u32.s32.s32.min %r20, %r10, %r11, %r11;"), 3);
    assert_eq!(run("vabsdiff.s32.s32.s32.max %r20, %r10, %r11, %r10;"), 5);
    assert_eq!(run("vabsdiff.u32.s32.s32.max %r20, %r10, %r11, %r10;"), 0xffff_fffe);
    let e = parse(&kernel(0, "vabsdiff.u32.u32.u8 %r1, %r2, %r3;")).params("k").expect_err("no bytes");
    assert!(e.to_string().contains("U8") || e.to_string().contains("u8"), "{e}");
}

#[test]
fn video_instructions_work_on_parts() {
    // |a − b| of each byte, and their sum onto c; saturation; the average away from zero.
    let v = [0x0102_03ff_7f80_00ff];
    let run = |op: &str| {
        each(&format!("shr.u64 %rd1, %rd10, 32; cvt.u32.u64 %r11, %rd1; {op} cvt.u64.u32 %rd20, %r20;"), &v)
            [0]
    };
    assert_eq!(run("vabsdiff4.u32.u32.u32 %r20, %r10, %r11, %r10;"), 0x7e7e_0300);
    assert_eq!(run("vabsdiff4.u32.u32.u32.add %r20, %r10, %r11, 5;"), 0x7e + 0x7e + 3 + 5);
    assert_eq!(run("vadd4.s32.s32.s32.sat %r20, %r10, %r11, %r10;"), 0x7f82_03fe);
    assert_eq!(run("vadd2.u32.u32.u32.sat %r20, %r10, %r11, %r10;"), 0x8082_04fe);
    assert_eq!(run("vavrg4.s32.s32.s32 %r20, %r10, %r11, %r10;"), 0x40c1_02ff);
    assert_eq!(run("vmin2.s32.s32.s32 %r20, %r10, %r11, %r10;"), 0x0102_00ff);
    // 1 where the comparison holds, or how often it does.
    assert_eq!(run("vset4.u32.u32.lt %r20, %r10, %r11, %r10;"), 0x0000_0100);
    assert_eq!(run("vset2.s32.s32.gt %r20, %r10, %r11, %r10;"), 0x0001_0000);
    assert_eq!(run("vset4.u32.u32.ge.add %r20, %r10, %r11, %r11;"), 0x0102_03ff + 3);
    let e = parse(&kernel(0, "vset.u32.u32.eq %r1, %r2, %r3;")).params("k").expect_err("no vset");
    assert!(
        e.to_string().contains("not supported yet: instruction `vset.u32.u32.eq` (PTX ISA §9.7.18)"),
        "{e}"
    );
}
