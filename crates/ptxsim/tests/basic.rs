//! Execution of small kernels.
#![allow(missing_docs)]
mod common;
use common::*;

/// Each thread reads `a[tid]`, applies `op` and writes `b[tid]`; `op` uses %r10 → %r20.
fn unary(op: &str) -> String {
    kernel(
        2,
        &format!(
            "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
             mad.lo.s32 %r4, %r1, %r2, %r3; mul.wide.s32 %rd1, %r4, 4;
             add.s64 %rd2, %a0, %rd1; add.s64 %rd3, %a1, %rd1;
             ld.global.b32 %r10, [%rd2];
             {op}
             st.global.b32 [%rd3], %r20; ret;"
        ),
    )
}

fn run_unary(op: &str, input: &[u32]) -> Vec<u32> {
    let p = parse(&unary(op));
    let mut a = input.to_vec();
    let mut b = vec![0u32; a.len()];
    Run::new(&p, a.len().div_ceil(32) as u32, 32).array(&mut a).array(&mut b).clean();
    b
}

fn inputs() -> Vec<u32> {
    let mut r = Rng(1);
    let mut v =
        vec![0, 1, 2, 3, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x7fff_ffff, 0x8000_0000, !0, 32, 31, 33];
    v.extend((0..48).map(|_| r.u32()));
    v
}

#[test]
fn integer_operations() {
    type Case = (&'static str, fn(u32) -> u32);
    let cases: &[Case] = &[
        ("add.s32 %r20, %r10, 7;", |a| a.wrapping_add(7)),
        ("sub.u32 %r20, 7, %r10;", |a| 7u32.wrapping_sub(a)),
        ("mul.hi.s32 %r20, %r10, -12345;", |a| ((i64::from(a as i32) * -12345) >> 32) as u32),
        ("mul.hi.u32 %r20, %r10, 0x9e3779b9;", |a| ((u64::from(a) * 0x9e3779b9) >> 32) as u32),
        ("mad.lo.s32 %r20, %r10, 3, %r10;", |a| a.wrapping_mul(3).wrapping_add(a)),
        ("shr.s32 %r20, %r10, 5;", |a| ((a as i32) >> 5) as u32),
        ("shr.u32 %r20, %r10, 40;", |_| 0),
        ("shl.b32 %r20, %r10, 3;", |a| a << 3),
        ("popc.b32 %r20, %r10;", |a| a.count_ones()),
        ("clz.b32 %r20, %r10;", |a| a.leading_zeros()),
        ("brev.b32 %r20, %r10;", |a| a.reverse_bits()),
        ("bfind.u32 %r20, %r10;", |a| if a == 0 { !0 } else { 31 - a.leading_zeros() }),
        ("bfe.u32 %r20, %r10, 4, 7;", |a| a >> 4 & 127),
        ("bfe.s32 %r20, %r10, 4, 7;", |a| ((a << 21) as i32 >> 25) as u32),
        ("bfi.b32 %r20, %r10, 0x12345678, 8, 12;", |a| 0x12345678 & !0xfff00 | (a & 0xfff) << 8),
        ("prmt.b32 %r20, %r10, 0xaabbccdd, 0x3415;", |a| {
            let b = a.to_le_bytes();
            u32::from_le_bytes([0xcc, b[1], 0xdd, b[3]])
        }),
        ("lop3.b32 %r20, %r10, 0xf0f0f0f0, 0x00ff00ff, 0xca;", |a| a & 0xf0f0f0f0 | !a & 0x00ff00ff),
        ("div.s32 %r20, %r10, -7;", |a| ((a as i32).wrapping_div(-7)) as u32),
        ("rem.u32 %r20, %r10, 10;", |a| a % 10),
        ("abs.s32 %r20, %r10;", |a| (a as i32).wrapping_abs() as u32),
        ("min.s32 %r20, %r10, -5;", |a| (a as i32).min(-5) as u32),
        ("shf.l.wrap.b32 %r20, %r10, 0x89abcdef, 4;", |a| 0x89abcdef << 4 | a >> 28),
        ("shf.r.wrap.b32 %r20, %r10, 0x89abcdef, 4;", |a| 0x89abcdef << 28 | a >> 4),
        ("setp.lt.s32 %p1, %r10, 100; selp.b32 %r20, 1, 2, %p1;", |a| if (a as i32) < 100 { 1 } else { 2 }),
        ("setp.hi.u32 %p1, %r10, 100; selp.b32 %r20, 1, 2, %p1;", |a| if a > 100 { 1 } else { 2 }),
        ("cvt.s32.s8 %r20, %r10;", |a| a as i8 as i32 as u32),
        ("cvt.u32.u16 %r20, %h1;", |a| a & 0xffff),
        ("add.cc.u32 %r20, %r10, %r10; addc.u32 %r20, 0, 0;", |a| a >> 31),
        ("dp4a.s32.u32 %r20, %r10, 0x01020304, 9;", |a| {
            let b = a.to_le_bytes().map(|x| i32::from(x as i8));
            (9 + b[0] * 4 + b[1] * 3 + b[2] * 2 + b[3]) as u32
        }),
    ];
    let v = inputs();
    for (op, f) in cases {
        let op = if op.contains("%h1") { format!("cvt.u16.u32 %h1, %r10; {op}") } else { op.to_string() };
        let got = run_unary(&op, &v);
        for (a, g) in v.iter().zip(&got) {
            assert_eq!(*g, f(*a), "{op} of {a:#x}");
        }
    }
}

#[test]
fn float_operations() {
    type Case = (&'static str, fn(f32) -> f32);
    let cases: &[Case] = &[
        ("add.f32 %f2, %f1, 0f3FC00000;", |a| a + 1.5),
        ("mul.rn.f32 %f2, %f1, %f1;", |a| a * a),
        ("fma.rn.f32 %f2, %f1, %f1, 0f3F800000;", |a| a.mul_add(a, 1.0)),
        ("div.rn.f32 %f2, %f1, 0f40400000;", |a| a / 3.0),
        ("abs.f32 %f2, %f1; sqrt.rn.f32 %f2, %f2;", |a| a.abs().sqrt()),
        ("cvt.rni.f32.f32 %f2, %f1;", |a| a.round_ties_even()),
        ("cvt.rmi.f32.f32 %f2, %f1;", f32::floor),
        ("cvt.rn.f16.f32 %h1, %f1; cvt.f32.f16 %f2, %h1;", |a| half::f16::from_f32(a).to_f32()),
        ("cvt.rn.bf16.f32 %h1, %f1; cvt.f32.bf16 %f2, %h1;", |a| half::bf16::from_f32(a).to_f32()),
        ("cvt.rzi.s32.f32 %r1, %f1; cvt.rn.f32.s32 %f2, %r1;", |a| a as i32 as f32),
        ("max.f32 %f2, %f1, 0f00000000;", |a| if a.is_nan() { 0.0 } else { a.max(0.0) }),
        ("neg.f32 %f2, %f1;", |a| -a),
        ("cvt.f64.f32 %fd1, %f1; cvt.rn.f32.f64 %f2, %fd1;", |a| a),
    ];
    let mut r = Rng(5);
    let mut v: Vec<f32> =
        vec![0.0, -0.0, 1.0, -1.5, 0.5, 2.5, 1e30, -1e30, f32::INFINITY, 1e-40, 65504.0, 65520.0];
    v.extend((0..52).map(|_| r.f32() * 100.0));
    for (op, f) in cases {
        let op = format!("mov.b32 %f1, %r10; {op} mov.b32 %r20, %f2;");
        let got = run_unary(&op, &v.iter().map(|x| x.to_bits()).collect::<Vec<_>>());
        for (a, g) in v.iter().zip(&got) {
            let (w, g) = (f(*a), f32::from_bits(*g));
            assert!(w.to_bits() == g.to_bits() || (w.is_nan() && g.is_nan()), "{op} of {a}: {g} not {w}");
        }
    }
}

#[test]
fn divergence_and_loops() {
    // Each lane iterates tid times, in one of two arms.
    let p = parse(&kernel(
        1,
        "mov.u32 %r1, %tid.x; mov.u32 %r2, 0; mov.u32 %r3, 0; and.b32 %r4, %r1, 1; setp.eq.s32 %p1, %r4, 0;
         @%p1 bra EVEN;
         ODD: setp.ge.u32 %p2, %r2, %r1; @%p2 bra JOIN; add.u32 %r3, %r3, 3; add.u32 %r2, %r2, 1; bra ODD;
         EVEN: setp.ge.u32 %p2, %r2, %r1; @%p2 bra JOIN; add.u32 %r3, %r3, 5; add.u32 %r2, %r2, 1; bra.uni EVEN;
         JOIN: shfl.sync.bfly.b32 %r5, %r3, 1, 31, -1;
         mul.wide.u32 %rd1, %r1, 4; add.s64 %rd2, %a0, %rd1; st.global.u32 [%rd2], %r5; ret;",
    ));
    let mut out = vec![0u32; 32];
    Run::new(&p, 1, 32).array(&mut out).clean();
    for (t, o) in out.iter().enumerate() {
        let n = t ^ 1;
        assert_eq!(*o as usize, n * if n % 2 == 0 { 5 } else { 3 });
    }
}

#[test]
fn a_spin_lock_inside_a_warp_ends() {
    let p = parse(&kernel(
        2,
        "LOCK: atom.global.cas.b32 %r1, [%a0], 0, 1; setp.ne.s32 %p1, %r1, 0; @%p1 bra LOCK; membar.gl;
         ld.global.u32 %r2, [%a1]; add.u32 %r2, %r2, 1; st.global.u32 [%a1], %r2;
         membar.gl; atom.global.exch.b32 %r3, [%a0], 0; ret;",
    ));
    let (mut lock, mut count) = (vec![0u32], vec![0u32]);
    Run::new(&p, 2, 64).array(&mut lock).array(&mut count).clean();
    assert_eq!(count[0], 128);
}

#[test]
fn a_block_reduction_through_shared_memory() {
    let p = parse(
        ".version 8.0\n.target sm_80\n.address_size 64\n.extern .shared .align 16 .b8 dyn[];
        .visible .entry sum(.param .u64 .ptr .global .align 4 in, .param .u64 out) .reqntid 256, 1, 1 {
        .reg .pred %p<4>; .reg .b32 %r<16>; .reg .f32 %f<8>; .reg .b64 %rd<8>;
        ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out];
        mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4; add.s64 %rd4, %rd1, %rd3; ld.global.f32 %f1, [%rd4];
        mov.u32 %r2, dyn; shl.b32 %r3, %r1, 2; add.s32 %r4, %r2, %r3; st.shared.f32 [%r4], %f1;
        mov.u32 %r5, 128;
        $L1: bar.sync 0; setp.ge.u32 %p1, %r1, %r5; @%p1 bra $L2;
        shl.b32 %r6, %r5, 2; add.s32 %r7, %r4, %r6; ld.shared.f32 %f2, [%r7]; ld.shared.f32 %f3, [%r4];
        add.f32 %f4, %f2, %f3; st.shared.f32 [%r4], %f4;
        $L2: shr.u32 %r5, %r5, 1; setp.ne.s32 %p2, %r5, 0; @%p2 bra $L1;
        setp.ne.s32 %p3, %r1, 0; @%p3 bra $L3; ld.shared.f32 %f5, [dyn]; st.global.f32 [%rd2], %f5;
        $L3: ret; }",
    );
    let mut a: Vec<f32> = (0..256).map(|x| x as f32).collect();
    let mut o = vec![0f32];
    Run::new(&p, 1, 256).shared(1024).array(&mut a).array(&mut o).clean();
    assert_eq!(o[0], 255.0 * 128.0);
}
