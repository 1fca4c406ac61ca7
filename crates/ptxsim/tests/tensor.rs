//! `mma.sync` in every shape and type, with fragments laid out as the ISA's figures have them, and matrix loads.
#![allow(missing_docs, clippy::needless_range_loop)]
mod common;
use common::*;
use half::{bf16, f16};

/// Element `i` of a lane's fragment → (row, column), with `g = lane / 4` and `t = lane % 4`.
type Place = fn(g: usize, t: usize, i: usize) -> (usize, usize);

struct Shape {
    m: usize,
    k: usize,
    a: Place,
    b: Place,
}

/// Shapes by the bits of an element, as §9.7.14.5.1–14 give them.
const S16_K8: Shape = Shape {
    m: 16,
    k: 8,
    a: |g, t, i| (g + if i < 2 { 0 } else { 8 }, 2 * t + i % 2),
    b: |g, t, i| (2 * t + i, g),
};
const S16_K16: Shape = Shape {
    m: 16,
    k: 16,
    a: |g, t, i| {
        (g + if i < 2 || (4..6).contains(&i) { 0 } else { 8 }, 2 * t + i % 2 + if i < 4 { 0 } else { 8 })
    },
    b: |g, t, i| (2 * t + i % 2 + if i < 2 { 0 } else { 8 }, g),
};
const S32_K4: Shape = Shape { m: 16, k: 4, a: |g, t, i| (g + 8 * i, t), b: |g, t, _| (t, g) };
const S32_K8: Shape = Shape {
    m: 16,
    k: 8,
    a: |g, t, i| (g + if i % 2 == 0 { 0 } else { 8 }, if i < 2 { t } else { t + 4 }),
    b: |g, t, i| (t + 4 * i, g),
};
const S64_M8: Shape = Shape { m: 8, k: 4, a: |g, t, _| (g, t), b: |g, t, _| (t, g) };
const S64_K16: Shape = Shape {
    m: 16,
    k: 16,
    a: |g, t, i| (g + if i % 2 == 0 { 0 } else { 8 }, 4 * (i / 2) + t),
    b: |g, t, i| (t + 4 * i, g),
};
const S8_M8: Shape = Shape { m: 8, k: 16, a: |g, t, i| (g, 4 * t + i), b: |g, t, i| (4 * t + i, g) };
const S8_K16: Shape = Shape {
    m: 16,
    k: 16,
    a: |g, t, i| (g + if i < 4 { 0 } else { 8 }, 4 * t + i % 4),
    b: |g, t, i| (4 * t + i, g),
};
const S8_K32: Shape = Shape {
    m: 16,
    k: 32,
    a: |g, t, i| {
        (g + if i < 4 || (8..12).contains(&i) { 0 } else { 8 }, 4 * t + i % 4 + if i < 8 { 0 } else { 16 })
    },
    b: |g, t, i| (4 * t + i % 4 + if i < 4 { 0 } else { 16 }, g),
};
const S4_M8: Shape = Shape { m: 8, k: 32, a: |g, t, i| (g, 8 * t + i), b: |g, t, i| (8 * t + i, g) };
const S4_K64: Shape = Shape {
    m: 16,
    k: 64,
    a: |g, t, i| {
        (g + if i < 8 || (16..24).contains(&i) { 0 } else { 8 }, 8 * t + i % 8 + if i < 16 { 0 } else { 32 })
    },
    b: |g, t, i| (8 * t + i % 8 + if i < 8 { 0 } else { 32 }, g),
};

/// A type's bits, and how a small integer times a scale is encoded and decoded.
struct Type {
    name: &'static str,
    bits: usize,
    encode: fn(f64) -> u64,
    decode: fn(u64) -> f64,
}

fn e4m3(v: f64) -> u64 {
    // Small integers in −8..8 are exact: sign, exponent, three bits.
    let s = if v < 0.0 { 0x80 } else { 0 };
    let a = v.abs();
    if a == 0.0 {
        return s;
    }
    let e = a.log2().floor() as i32;
    s | ((e + 7) as u64) << 3 | ((a / 2f64.powi(e) - 1.0) * 8.0) as u64
}

const TYPES: [Type; 9] = [
    Type {
        name: "f16",
        bits: 16,
        encode: |v| f16::from_f64(v).to_bits().into(),
        decode: |b| f16::from_bits(b as u16).into(),
    },
    Type {
        name: "bf16",
        bits: 16,
        encode: |v| bf16::from_f64(v).to_bits().into(),
        decode: |b| bf16::from_bits(b as u16).into(),
    },
    Type {
        name: "tf32",
        bits: 32,
        encode: |v| (v as f32).to_bits().into(),
        decode: |b| f32::from_bits(b as u32).into(),
    },
    Type { name: "f64", bits: 64, encode: f64::to_bits, decode: f64::from_bits },
    Type { name: "s8", bits: 8, encode: |v| v as i8 as u8 as u64, decode: |b| (b as i8).into() },
    Type { name: "u8", bits: 8, encode: |v| v.abs() as u64, decode: |b| b as f64 },
    Type { name: "s4", bits: 4, encode: |v| v as i8 as u64 & 15, decode: |b| f64::from((b << 4) as i8 >> 4) },
    Type { name: "u4", bits: 4, encode: |v| v.abs() as u64 & 15, decode: |b| b as f64 },
    Type {
        name: "e4m3",
        bits: 8,
        encode: e4m3,
        decode: |b| {
            let m = if b & 0x78 == 0 {
                (b & 7) as f64 / 512.0
            } else {
                ((b & 7) as f64 + 8.0) * 2f64.powi((b >> 3 & 15) as i32 - 10)
            };
            if b & 0x80 != 0 { -m } else { m }
        },
    },
];

fn ty(name: &str) -> &'static Type {
    TYPES.iter().find(|t| t.name == name).expect("a type")
}

/// Spreads a matrix over lanes: `out[register][lane]`, in 64-bit slots.
fn fragment(t: &Type, per_lane: usize, place: Place, m: impl Fn(usize, usize) -> u64) -> Vec<[u64; 32]> {
    let per_reg = if t.bits == 64 { 1 } else { 32 / t.bits };
    let mut out = vec![[0u64; 32]; per_lane.div_ceil(per_reg)];
    for lane in 0..32 {
        for i in 0..per_lane {
            let (r, c) = place(lane / 4, lane % 4, i);
            out[i / per_reg][lane] |= m(r, c) << (t.bits * (i % per_reg));
        }
    }
    out
}

fn check(shape: &Shape, a_ty: &str, b_ty: &str, d_ty: &str) {
    let (ta, tb) = (ty(a_ty), ty(b_ty));
    let mut r = Rng(shape.k as u64 * 7 + ta.bits as u64);
    let mut value = |t: &Type| {
        let v = (r.u32() % 15) as f64 - 7.0;
        (t.encode)(v)
    };
    let a: Vec<u64> = (0..shape.m * shape.k).map(|_| value(ta)).collect();
    let b: Vec<u64> = (0..shape.k * 8).map(|_| value(tb)).collect();
    let fa = fragment(ta, shape.m * shape.k / 32, shape.a, |r, c| a[r * shape.k + c]);
    let fb = fragment(tb, shape.k * 8 / 32, shape.b, |r, c| b[r * 8 + c]);
    let wide = ta.bits == 64;
    let n_c = if d_ty == "f16" { shape.m / 8 } else { shape.m / 4 };
    let (reg, suffix) = if wide { ("%fd", "f64") } else { ("%r", "b32") };
    let mut body =
        String::from("mov.u32 %r63, %tid.x; mul.wide.u32 %rd1, %r63, 8; add.s64 %rd2, %a0, %rd1;\n");
    let mut next = 0;
    let mut load = |n: usize, body: &mut String, zero: bool| -> String {
        let names: Vec<String> = (0..n)
            .map(|_| {
                let name = format!("{reg}{next}");
                if zero {
                    *body += &format!("mov.b{} {name}, 0;\n", if wide { 64 } else { 32 });
                } else {
                    *body += &format!("ld.global.{suffix} {name}, [%rd2+{}];\n", next * 256);
                }
                next += 1;
                name
            })
            .collect();
        format!("{{{}}}", names.join(","))
    };
    let av = load(fa.len(), &mut body, false);
    let bv = load(fb.len(), &mut body, false);
    let cv = load(n_c, &mut body, true).to_string();
    let floats = |s: &str| if d_ty == "f32" { s.replace("%r", "%f") } else { s.to_string() };
    if d_ty == "f32" {
        for n in cv.trim_matches(['{', '}']).split(',') {
            body += &format!("mov.b32 {}, {n};\n", n.replace("%r", "%f"));
        }
    }
    let cd = floats(&cv);
    body += &format!(
        "mma.sync.aligned.m{}n8k{}.row.col.{d_ty}.{a_ty}.{b_ty}.{d_ty} {cd}, {av}, {bv}, {cd};\n",
        shape.m, shape.k
    );
    body += "add.s64 %rd3, %a1, %rd1;\n";
    for (i, n) in cd.trim_matches(['{', '}']).split(',').enumerate() {
        let s = if d_ty == "f32" { "f32" } else { suffix };
        body += &format!("st.global.{s} [%rd3+{}], {n};\n", i * 256);
    }
    let p = parse(&kernel(2, &(body + "ret;")));
    let mut input: Vec<u64> = fa.iter().chain(&fb).flatten().copied().collect();
    let mut out = vec![0u64; n_c * 32];
    let report = Run::new(&p, 1, 32).array(&mut input).array(&mut out).clean();
    assert_eq!(report.counters.total.tensor_macs, (shape.m * 8 * shape.k) as u64);
    for lane in 0..32 {
        for i in 0..shape.m / 4 {
            let (g, t) = (lane / 4, lane % 4);
            let (row, col) = (g + if i < 2 { 0 } else { 8 }, 2 * t + i % 2);
            let got = match d_ty {
                "f32" => f64::from(f32::from_bits(out[i * 32 + lane] as u32)),
                "f64" => f64::from_bits(out[i * 32 + lane]),
                "f16" => f16::from_bits((out[i / 2 * 32 + lane] >> (16 * (i % 2))) as u16).into(),
                _ => f64::from(out[i * 32 + lane] as i32),
            };
            let want: f64 =
                (0..shape.k).map(|k| (ta.decode)(a[row * shape.k + k]) * (tb.decode)(b[k * 8 + col])).sum();
            assert_eq!(got, want, "m{}k{} {a_ty}×{b_ty}→{d_ty} at {row},{col}", shape.m, shape.k);
        }
    }
}

#[test]
fn every_shape_and_type() {
    for d in ["f32", "f16"] {
        check(&S16_K8, "f16", "f16", d);
        check(&S16_K16, "f16", "f16", d);
        check(&S8_K32, "e4m3", "e4m3", d);
    }
    check(&S16_K8, "bf16", "bf16", "f32");
    check(&S16_K16, "bf16", "bf16", "f32");
    check(&S32_K4, "tf32", "tf32", "f32");
    check(&S32_K8, "tf32", "tf32", "f32");
    check(&S64_M8, "f64", "f64", "f64");
    check(&S64_K16, "f64", "f64", "f64");
    for (a, b) in [("s8", "s8"), ("u8", "s8"), ("s8", "u8"), ("u8", "u8")] {
        check(&S8_M8, a, b, "s32");
        check(&S8_K16, a, b, "s32");
        check(&S8_K32, a, b, "s32");
    }
    for (a, b) in [("s4", "s4"), ("u4", "s4"), ("s4", "u4")] {
        check(&S4_M8, a, b, "s32");
        check(&S4_K64, a, b, "s32");
    }
}

/// Four 8×8 matrices of 16-bit elements in shared memory, `m[matrix][row][column]` holding its own index.
const FILL: &str = ".shared .align 16 .b8 s[512]; mov.u32 %r1, %tid.x; mov.u32 %r2, s; mov.u32 %r3, 0;
    L: mad.lo.u32 %r4, %r3, 32, %r1; shl.b32 %r5, %r4, 1; add.u32 %r5, %r5, %r2; cvt.u16.u32 %h1, %r4;
    st.shared.u16 [%r5], %h1; add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, 8; @%p1 bra L; bar.sync 0;
    shl.b32 %r6, %r1, 4; add.u32 %r6, %r6, %r2;";

#[test]
fn matrix_loads_and_stores() {
    for trans in [false, true] {
        for n in [1usize, 2, 4] {
            let regs: Vec<String> = (0..n).map(|k| format!("%r{}", 10 + k)).collect();
            let t = if trans { ".trans" } else { "" };
            let mut body = format!(
                "{FILL} ldmatrix.sync.aligned.m8n8.x{n}{t}.shared.b16 {{{}}}, [%r6];\n",
                regs.join(",")
            );
            body += "mul.wide.u32 %rd1, %r1, 4; add.s64 %rd2, %a0, %rd1;\n";
            for (k, r) in regs.iter().enumerate() {
                body += &format!("st.global.u32 [%rd2+{}], {r};\n", 128 * k);
            }
            // Back through a store of the same kind: shared memory must be as before.
            body += &format!(
                "bar.sync 0; stmatrix.sync.aligned.m8n8.x{n}{t}.shared.b16 [%r6], {{{}}};\n",
                regs.join(",")
            );
            body += "bar.sync 0; ld.shared.v4.u32 {%r20,%r21,%r22,%r23}, [%r6];
                mul.wide.u32 %rd3, %r1, 16; add.s64 %rd4, %a1, %rd3; st.global.v4.u32 [%rd4], {%r20,%r21,%r22,%r23}; ret;";
            let p = parse(&kernel(2, &body));
            let mut out = vec![0u32; 32 * n];
            let mut back = vec![0u128; 32];
            Run::new(&p, 1, 32).array(&mut out).array(&mut back).clean();
            for k in 0..n {
                for lane in 0..32 {
                    let e = |i: usize| {
                        let (row, col) = (lane / 4, 2 * (lane % 4) + i);
                        (64 * k + if trans { col * 8 + row } else { row * 8 + col }) as u32
                    };
                    assert_eq!(out[k * 32 + lane], e(0) | e(1) << 16, "x{n}{t} matrix {k} lane {lane}");
                }
            }
            let want: Vec<u128> =
                (0..32u128).map(|r| (0..8).fold(0, |v, c| v | (r * 8 + c) << (16 * c))).collect();
            assert_eq!(back, want);
        }
    }
}

#[test]
fn a_matrix_transposed_in_registers() {
    let p = parse(&kernel(
        1,
        "mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 1; add.u32 %r3, %r2, 1; shl.b32 %r3, %r3, 16; or.b32 %r4, %r2, %r3;
         movmatrix.sync.aligned.m8n8.trans.b16 %r5, %r4;
         mul.wide.u32 %rd1, %r1, 4; add.s64 %rd2, %a0, %rd1; st.global.u32 [%rd2], %r5; ret;",
    ));
    let mut out = vec![0u32; 32];
    Run::new(&p, 1, 32).array(&mut out).clean();
    for (lane, v) in out.iter().enumerate() {
        let (row, col) = (lane / 4, 2 * (lane % 4));
        assert_eq!(*v as usize, (col * 8 + row) | ((col + 1) * 8 + row) << 16);
    }
}

#[test]
fn ldmatrix_counts_bank_conflicts() {
    // Rows 128 bytes apart meet in the same four banks; rows 16 bytes apart do not.
    for (stride, conflicts) in [(16, 0), (128, 7), (64, 3)] {
        let p = parse(&kernel(
            0,
            &format!(
                ".shared .align 128 .b8 s[1024]; mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 7; mov.u32 %r3, s;
                 shl.b32 %r5, %r1, 5; add.u32 %r5, %r5, %r3; st.shared.v4.u32 [%r5], {{%r1,%r1,%r1,%r1}};
                 st.shared.v4.u32 [%r5+16], {{%r1,%r1,%r1,%r1}}; bar.sync 0;
                 mad.lo.u32 %r4, %r2, {stride}, %r3; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%r6}}, [%r4]; ret;"
            ),
        ));
        let r = Run::new(&p, 1, 32).clean();
        let line = r.counters.opcodes.keys().find(|k| k.starts_with("ldmatrix"));
        assert!(line.is_some());
        // The stores before have conflicts of their own: two sets of four passes, twice as many as needed.
        let stores = 2 * 4;
        assert_eq!(r.counters.total.bank_conflicts, stores + conflicts, "stride {stride}");
    }
}

/// Double precision rounds every step as it is told: 1 + 2⁻⁶⁰ lies between 1 and its neighbour.
#[test]
fn double_precision_has_four_roundings() {
    let product = |mode: &str, sign: f64| {
        let p = parse(&kernel(
            1,
            &format!(
                "mov.f64 %fd1, 0d3e10000000000000; mov.u32 %r1, %laneid; and.b32 %r2, %r1, 3; setp.eq.u32 %p1, %r2, 0;
                 selp.f64 %fd2, %fd1, 0d0000000000000000, %p1; ld.global.f64 %fd3, [%a0]; mul.f64 %fd2, %fd2, %fd3;
                 mma.sync.aligned.m8n8k4.row.col{mode}.f64.f64.f64.f64 {{%fd4, %fd5}}, {{%fd2}}, {{%fd1}}, {{%fd3, %fd3}};
                 mul.wide.u32 %rd1, %r1, 8; add.s64 %rd2, %a0, %rd1; bar.warp.sync -1; st.global.f64 [%rd2], %fd5; ret;"
            ),
        ));
        let mut out = vec![sign; 32];
        Run::new(&p, 1, 32).array(&mut out).clean();
        assert!(out.iter().all(|x| *x == out[0]));
        out[0]
    };
    let (up, one) = (1.0 + f64::EPSILON, 1.0);
    for (mode, plus, minus) in
        [("", one, -one), (".rn", one, -one), (".rz", one, -one), (".rm", one, -up), (".rp", up, -one)]
    {
        assert_eq!((product(mode, 1.0), product(mode, -1.0)), (plus, minus), "{mode}");
    }
}

/// All of C is read before D is written, whichever registers they share: here one register is C's twice and D's once.
#[test]
fn registers_of_c_may_be_those_of_d() {
    let p = parse(&kernel(
        1,
        "mov.u32 %r1, %laneid; mov.u32 %r2, 0x01010101; mov.u32 %r3, 7; mov.u32 %r4, 7;
         mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%r3, %r5, %r4, %r6}, {%r2, %r2}, {%r2}, {%r3, %r3, %r4, %r4};
         sub.u32 %r7, %r5, %r3; sub.u32 %r8, %r6, %r4; shl.b32 %r7, %r7, 8; add.u32 %r3, %r3, %r7; shl.b32 %r8, %r8, 8; add.u32 %r3, %r3, %r8;
         mul.wide.u32 %rd1, %r1, 4; add.s64 %rd2, %a0, %rd1; st.global.u32 [%rd2], %r3; ret;",
    ));
    let mut out = vec![0u32; 32];
    Run::new(&p, 1, 32).array(&mut out).clean();
    assert_eq!(out, vec![7 + 16; 32]);
}
