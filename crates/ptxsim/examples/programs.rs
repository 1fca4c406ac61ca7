//! Writes small PTX programs, one for each form of an instruction, with inputs and what the simulator computes, for
//! `compare.py` beside this file to run on a GPU: `programs DIR`.
//!
//! Each program reads three 64-bit words a thread and writes one. `manifest.json` says how results compare: bit for bit
//! (with any NaN equal to any other), within some units in the last place, or within a part of Σ|a·b|.

use std::fmt::Write as _;
use std::path::Path;
use tilewright_ptxsim::{Launch, Memory, Options, Param, Program};

const THREADS: usize = 256;

struct Case {
    name: String,
    body: String,
    /// How a result's 64 bits are read: `bits`, `f16`, `bf16`, `f16x2`, `bf16x2`, `f32` or `f64`.
    kind: &'static str,
    /// Units in the last place that may differ.
    ulp: u32,
}

/// The register of input or output `k` for a type.
fn reg(ty: &str, k: u32) -> String {
    let stem = match ty {
        "f16" | "bf16" | "b16" | "u16" | "s16" | "e4m3x2" | "e5m2x2" => "%h",
        "f32" => "%f",
        "f64" => "%fd",
        "b64" | "u64" | "s64" => "%rd",
        _ => "%r",
    };
    format!("{stem}{k}")
}

/// Moves a result to `%rd20`.
fn out(ty: &str) -> &'static str {
    match reg(ty, 0).as_str() {
        "%h0" => "cvt.u64.u16 %rd20, %h20;",
        "%r0" => "cvt.u64.u32 %rd20, %r20;",
        "%f0" => "mov.b32 %r20, %f20; cvt.u64.u32 %rd20, %r20;",
        "%fd0" => "mov.b64 %rd20, %fd20;",
        _ => "",
    }
}

fn kind(ty: &str) -> &'static str {
    match ty {
        "f16" => "f16",
        "bf16" => "bf16",
        "f16x2" => "f16x2",
        "bf16x2" => "bf16x2",
        "f32" => "f32",
        "f64" => "f64",
        _ => "bits",
    }
}

/// `op d, a, b, …` with `n` sources, all of type `ty`.
fn plain(all: &mut Vec<Case>, op: &str, ty: &str, n: u32, ulp: u32) {
    let srcs: Vec<String> = (0..n).map(|k| reg(ty, 10 + k)).collect();
    let body = format!("{op}.{ty} {}, {}; {}", reg(ty, 20), srcs.join(", "), out(ty));
    all.push(Case { name: format!("{op}.{ty}"), body, kind: kind(ty), ulp });
}

fn cases() -> Vec<Case> {
    let mut v = vec![];
    let all = &mut v;
    let ints = ["u16", "s16", "u32", "s32", "u64", "s64"];
    for ty in ints {
        for op in ["add", "sub", "mul.lo", "mul.hi", "min", "max"] {
            plain(all, op, ty, 2, 0);
        }
        plain(all, "mad.lo", ty, 3, 0);
        plain(all, "sad", ty, 3, 0);
        if ty.starts_with('s') {
            plain(all, "abs", ty, 1, 0);
            plain(all, "neg", ty, 1, 0);
        }
        // Division by zero is not defined: make the divisor odd.
        let (b, bt) = (reg(ty, 11), format!("b{}", &ty[1..]));
        for op in ["div", "rem"] {
            let body =
                format!("or.{bt} {b}, {b}, 1; {op}.{ty} {}, {}, {b}; {}", reg(ty, 20), reg(ty, 10), out(ty));
            all.push(Case { name: format!("{op}.{ty}"), body, kind: "bits", ulp: 0 });
        }
        let body =
            format!("{} {}, {}, %r11; {}", format_args!("shr.{ty}"), reg(ty, 20), reg(ty, 10), out(ty));
        all.push(Case { name: format!("shr.{ty}"), body, kind: "bits", ulp: 0 });
        for c in ["eq", "ne", "lt", "le", "gt", "ge"] {
            let body =
                format!("setp.{c}.{ty} %p1, {}, {}; selp.b64 %rd20, 1, 2, %p1;", reg(ty, 10), reg(ty, 11));
            all.push(Case { name: format!("setp.{c}.{ty}"), body, kind: "bits", ulp: 0 });
        }
    }
    for ty in ["u16", "s16", "u32", "s32"] {
        let wide = if ty.ends_with("16") { "%r20" } else { "%rd20" };
        let tail = if wide == "%r20" { "cvt.u64.u32 %rd20, %r20;" } else { "" };
        let body = format!("mul.wide.{ty} {wide}, {}, {}; {tail}", reg(ty, 10), reg(ty, 11));
        all.push(Case { name: format!("mul.wide.{ty}"), body, kind: "bits", ulp: 0 });
    }
    for ty in ["b16", "b32", "b64"] {
        for op in ["and", "or", "xor"] {
            plain(all, op, ty, 2, 0);
        }
        plain(all, "not", ty, 1, 0);
        plain(all, "cnot", ty, 1, 0);
        let body = format!("shl.{ty} {}, {}, %r11; {}", reg(ty, 20), reg(ty, 10), out(ty));
        all.push(Case { name: format!("shl.{ty}"), body, kind: "bits", ulp: 0 });
    }
    for (name, body) in [
        ("popc.b32", "popc.b32 %r20, %r10;"),
        ("popc.b64", "popc.b64 %r20, %rd10;"),
        ("clz.b32", "clz.b32 %r20, %r10;"),
        ("clz.b64", "clz.b64 %r20, %rd10;"),
        ("bfind.u32", "bfind.u32 %r20, %r10;"),
        ("bfind.s32", "bfind.s32 %r20, %r10;"),
        ("bfind.shiftamt.s64", "bfind.shiftamt.s64 %r20, %rd10;"),
        ("brev.b32", "brev.b32 %r20, %r10;"),
        ("bfe.u32", "bfe.u32 %r20, %r10, %r11, %r12;"),
        ("bfe.s32", "bfe.s32 %r20, %r10, %r11, %r12;"),
        ("bfi.b32", "bfi.b32 %r20, %r10, %r11, %r12, %r11;"),
        ("fns.b32", "and.b32 %r11, %r11, 31; and.b32 %r12, %r12, 7; fns.b32 %r20, %r10, %r11, %r12;"),
        ("szext.wrap.s32", "szext.wrap.s32 %r20, %r10, %r11;"),
        ("szext.clamp.u32", "szext.clamp.u32 %r20, %r10, %r11;"),
        ("bmsk.wrap.b32", "bmsk.wrap.b32 %r20, %r10, %r11;"),
        (
            "bmsk.clamp.b32",
            "and.b32 %r10, %r10, 63; and.b32 %r11, %r11, 63; bmsk.clamp.b32 %r20, %r10, %r11;",
        ),
        ("prmt.b32", "prmt.b32 %r20, %r10, %r11, %r12;"),
        ("prmt.b32.f4e", "prmt.b32.f4e %r20, %r10, %r11, %r12;"),
        ("prmt.b32.b4e", "prmt.b32.b4e %r20, %r10, %r11, %r12;"),
        ("prmt.b32.rc8", "prmt.b32.rc8 %r20, %r10, %r11, %r12;"),
        ("prmt.b32.ecl", "prmt.b32.ecl %r20, %r10, %r11, %r12;"),
        ("prmt.b32.ecr", "prmt.b32.ecr %r20, %r10, %r11, %r12;"),
        ("prmt.b32.rc16", "prmt.b32.rc16 %r20, %r10, %r11, %r12;"),
        ("lop3.b32", "lop3.b32 %r20, %r10, %r11, %r12, 0x6a;"),
        ("shf.l.wrap.b32", "shf.l.wrap.b32 %r20, %r10, %r11, %r12;"),
        ("shf.l.clamp.b32", "shf.l.clamp.b32 %r20, %r10, %r11, %r12;"),
        ("shf.r.wrap.b32", "shf.r.wrap.b32 %r20, %r10, %r11, %r12;"),
        ("shf.r.clamp.b32", "shf.r.clamp.b32 %r20, %r10, %r11, %r12;"),
        ("dp4a.s32.u32", "dp4a.s32.u32 %r20, %r10, %r11, %r12;"),
        ("dp2a.hi.u32.s32", "dp2a.hi.u32.s32 %r20, %r10, %r11, %r12;"),
        ("mul24.lo.s32", "mul24.lo.s32 %r20, %r10, %r11;"),
        ("mad24.hi.u32", "mad24.hi.u32 %r20, %r10, %r11, %r12;"),
        ("add.sat.s32", "add.sat.s32 %r20, %r10, %r11;"),
        ("sub.sat.s32", "sub.sat.s32 %r20, %r10, %r11;"),
        ("add.cc.u32", "add.cc.u32 %r13, %r10, %r11; addc.u32 %r20, %r12, 0;"),
        ("sub.cc.u32", "sub.cc.u32 %r13, %r10, %r11; subc.u32 %r20, %r12, 0;"),
        ("madc.hi.u32", "mad.lo.cc.u32 %r13, %r10, %r11, %r12; madc.hi.u32 %r20, %r10, %r11, 0;"),
        ("slct.u32.s32", "slct.u32.s32 %r20, %r10, %r11, %r12;"),
        ("slct.u32.f32", "slct.u32.f32 %r20, %r10, %r11, %f12;"),
        ("set.lt.u32.f32", "set.lt.u32.f32 %r20, %f10, %f11;"),
        ("vote.ballot", "setp.lt.s32 %p1, %r10, 0; vote.sync.ballot.b32 %r20, %p1, -1;"),
        ("match.any", "and.b32 %r10, %r10, 3; match.any.sync.b32 %r20, %r10, -1;"),
        ("redux.add", "redux.sync.add.s32 %r20, %r10, -1;"),
        ("redux.min.s32", "redux.sync.min.s32 %r20, %r10, -1;"),
        ("redux.max.u32", "redux.sync.max.u32 %r20, %r10, -1;"),
        ("redux.xor", "redux.sync.xor.b32 %r20, %r10, -1;"),
        ("shfl.up", "and.b32 %r11, %r2, 0; shfl.sync.up.b32 %r20, %r10, 5, 0, -1;"),
        ("shfl.down", "shfl.sync.down.b32 %r20, %r10, 3, 31, -1;"),
        ("shfl.bfly", "shfl.sync.bfly.b32 %r20, %r10, 9, 31, -1;"),
        ("shfl.idx", "shfl.sync.idx.b32 %r20, %r10, %r11, 31, -1;"),
        ("shfl.idx.8", "shfl.sync.idx.b32 %r20, %r10, %r11, 6175, -1;"),
    ] {
        all.push(Case {
            name: name.into(),
            body: format!("{body} cvt.u64.u32 %rd20, %r20;"),
            kind: "bits",
            ulp: 0,
        });
    }
    // Single and double precision.
    for rnd in ["rn", "rz", "rm", "rp"] {
        for op in ["add", "sub", "mul", "div"] {
            plain(all, &format!("{op}.{rnd}"), "f32", 2, 0);
            plain(all, &format!("{op}.{rnd}"), "f64", 2, 0);
            plain(all, &format!("{op}.{rnd}.ftz"), "f32", 2, 0);
        }
        for op in ["rcp", "sqrt"] {
            plain(all, &format!("{op}.{rnd}"), "f32", 1, 0);
            plain(all, &format!("{op}.{rnd}"), "f64", 1, 0);
        }
        plain(all, &format!("fma.{rnd}"), "f32", 3, 0);
        plain(all, &format!("fma.{rnd}"), "f64", 3, 0);
        plain(all, &format!("fma.{rnd}.ftz"), "f32", 3, 0);
    }
    for op in [
        "add.rn.sat",
        "mul.rn.sat",
        "min",
        "max",
        "min.NaN",
        "max.NaN",
        "min.ftz",
        "max.ftz",
        "max.xorsign.abs",
    ] {
        plain(all, op, "f32", 2, 0);
    }
    for op in ["min", "max"] {
        plain(all, op, "f64", 2, 0);
    }
    for op in ["abs", "neg", "abs.ftz", "neg.ftz"] {
        plain(all, op, "f32", 1, 0);
    }
    plain(all, "copysign", "f32", 2, 0);
    for c in ["eq", "lt", "ge", "equ", "neu", "ltu", "geu", "num", "nan"] {
        for ty in ["f32", "f64", "f16", "bf16"] {
            let body =
                format!("setp.{c}.{ty} %p1, {}, {}; selp.b64 %rd20, 1, 2, %p1;", reg(ty, 10), reg(ty, 11));
            all.push(Case { name: format!("setp.{c}.{ty}"), body, kind: "bits", ulp: 0 });
        }
    }
    // Approximations: the ISA's bounds, rounded up to whole units for results of moderate size.
    for (op, ulp) in [("rcp.approx", 1), ("sqrt.approx", 1), ("rsqrt.approx", 2), ("ex2.approx", 2)] {
        plain(all, op, "f32", 1, ulp);
        plain(all, &format!("{op}.ftz"), "f32", 1, ulp);
    }
    let body = "cvt.rn.f32.s32 %f10, %r10; cvt.rn.f32.s32 %f11, %r11; div.full.f32 %f20, %f10, %f11;";
    all.push(Case {
        name: "div.full.f32".into(),
        body: format!("{body} {}", out("f32")),
        kind: "f32",
        ulp: 2,
    });
    // Halves.
    for ty in ["f16", "f16x2", "bf16", "bf16x2"] {
        for op in ["add.rn", "sub.rn", "mul.rn", "min", "max", "min.NaN", "max.NaN"] {
            plain(all, op, ty, 2, 0);
        }
        plain(all, "fma.rn", ty, 3, 0);
        plain(all, "fma.rn.relu", ty, 3, 0);
        plain(all, "abs", ty, 1, 0);
        plain(all, "neg", ty, 1, 0);
    }
    plain(all, "add.rn.ftz", "f16", 2, 0);
    plain(all, "add.rn.sat", "f16", 2, 0);
    plain(all, "ex2.approx", "f16", 1, 1);
    // Conversions.
    let cvt = |all: &mut Vec<Case>, m: &str, to: &str, from: &str| {
        let body = format!("cvt{m}.{to}.{from} {}, {}; {}", reg(to, 20), reg(from, 10), out(to));
        all.push(Case { name: format!("cvt{m}.{to}.{from}"), body, kind: kind(to), ulp: 0 });
    };
    for from in ["f16", "f32", "f64"] {
        for to in ints {
            for m in [".rni", ".rzi", ".rmi", ".rpi"] {
                cvt(all, m, to, from);
            }
        }
        for m in [".rni", ".rzi", ".rmi", ".rpi"] {
            cvt(all, m, from, from);
        }
    }
    for from in ints {
        for to in ["f16", "f32", "f64"] {
            for m in [".rn", ".rz", ".rm", ".rp"] {
                cvt(all, m, to, from);
            }
        }
        for to in ints {
            if to != from {
                cvt(all, "", to, from);
                // `.sat` is legal only where a value can fall outside.
                let bits = |t: &str| t[1..].parse::<u32>().unwrap_or(0);
                let fits = match (from.starts_with('s'), to.starts_with('s')) {
                    (false, true) => bits(to) > bits(from),
                    (true, false) => false,
                    _ => bits(to) >= bits(from),
                };
                if !fits {
                    cvt(all, ".sat", to, from);
                }
            }
        }
    }
    for m in [".rn", ".rz", ".rm", ".rp"] {
        cvt(all, m, "f32", "f64");
    }
    for (m, to, from) in [
        ("", "f64", "f32"),
        ("", "f32", "f16"),
        ("", "f32", "bf16"),
        (".rn", "f16", "f32"),
        (".rz", "f16", "f32"),
        (".rn.relu", "f16", "f32"),
        (".rn", "bf16", "f32"),
        (".rz", "bf16", "f32"),
        (".rn.relu", "bf16", "f32"),
        (".rn.ftz.sat", "f32", "f64"),
    ] {
        cvt(all, m, to, from);
    }
    for (to, from) in [("e4m3x2", "f16x2"), ("e5m2x2", "f16x2")] {
        cvt(all, ".rn.satfinite", to, from);
        cvt(all, ".rn", from, to);
    }
    for (m, to) in [
        (".rn", "f16x2"),
        (".rz", "f16x2"),
        (".rn", "bf16x2"),
        (".rz", "bf16x2"),
        (".rn.relu", "bf16x2"),
        (".rn.satfinite", "e4m3x2"),
        (".rn.satfinite", "e5m2x2"),
        (".rn.satfinite.relu", "e4m3x2"),
    ] {
        let body = format!("cvt{m}.{to}.f32 {}, %f10, %f11; {}", reg(to, 20), out(to));
        all.push(Case { name: format!("cvt{m}.{to}.f32"), body, kind: kind(to), ulp: 0 });
    }
    let body = "cvt.rna.tf32.f32 %r20, %f10; cvt.u64.u32 %rd20, %r20;".to_string();
    all.push(Case { name: "cvt.rna.tf32.f32".into(), body, kind: "f32", ulp: 0 });
    // Atomics on the thread's own word: what was there and what is there.
    for (op, ty) in [
        ("add", "u32"),
        ("add", "u64"),
        ("add", "f32"),
        ("add", "f64"),
        ("add.noftz", "f16x2"),
        ("add.noftz", "bf16x2"),
        ("min", "s32"),
        ("max", "u64"),
        ("and", "b32"),
        ("xor", "b64"),
        ("exch", "b64"),
        ("inc", "u32"),
        ("dec", "u32"),
    ] {
        for space in ["global", "shared"] {
            let (st, at) =
                if space == "shared" { ("st.shared.b64 [%r9], %rd10;", "[%r9]") } else { ("", "[%rd2]") };
            let body = format!(
                "{st} atom.{space}.{op}.{ty} {}, {at}, {}; ld.{space}.b64 %rd20, {at};",
                reg(ty, 21),
                reg(ty, 11)
            );
            let k = if ty.starts_with('f') || ty.starts_with("bf") { kind(ty) } else { "bits" };
            // Only the low word of a 32-bit result is the instruction's.
            all.push(Case { name: format!("atom.{space}.{op}.{ty}"), body, kind: k, ulp: 0 });
        }
    }
    // Matrix moves.
    let fill =
        "st.shared.b64 [%r9], %rd10; bar.sync 0; and.b32 %r8, %r1, 31; shr.u32 %r7, %r1, 5; mov.u32 %r6, s;
         mad.lo.u32 %r6, %r7, 256, %r6; and.b32 %r8, %r8, 15; mad.lo.u32 %r6, %r8, 16, %r6;";
    for t in ["", ".trans"] {
        let body = format!(
            "{fill} ldmatrix.sync.aligned.m8n8.x2{t}.shared.b16 {{%r20,%r21}}, [%r6]; mov.b64 %rd20, {{%r20,%r21}};"
        );
        all.push(Case { name: format!("ldmatrix.x2{t}"), body, kind: "bits", ulp: 0 });
    }
    let body = "movmatrix.sync.aligned.m8n8.trans.b16 %r20, %r10; cvt.u64.u32 %rd20, %r20;".to_string();
    all.push(Case { name: "movmatrix".into(), body, kind: "bits", ulp: 0 });
    // Integer matrix multiplies are exact.
    for (shape, a, b, na, nb) in [
        ("m16n8k32", "s8", "s8", 4, 2),
        ("m16n8k32", "u8", "s8", 4, 2),
        ("m16n8k16", "s8", "u8", 2, 1),
        ("m8n8k16", "u8", "u8", 1, 1),
        ("m16n8k64", "s4", "u4", 4, 2),
        ("m8n8k32", "s4", "s4", 1, 1),
    ] {
        let list =
            |n: u32, first: u32| (0..n).map(|k| format!("%r{}", first + k)).collect::<Vec<_>>().join(",");
        let m8 = shape.starts_with("m8n");
        let (d, c) =
            if m8 { ("%r20,%r21", "%r12,%r10") } else { ("%r20,%r21,%r22,%r23", "%r12,%r10,%r11,%r13") };
        let join = if m8 { "" } else { "xor.b32 %r20, %r20, %r22; xor.b32 %r21, %r21, %r23;" };
        let body = format!(
            "xor.b32 %r13, %r10, %r11; mma.sync.aligned.{shape}.row.col.s32.{a}.{b}.s32 {{{d}}}, {{{}}}, {{{}}}, {{{c}}};
             {join} mov.b64 %rd20, {{%r20,%r21}};",
            list(na, 10),
            list(nb, 12)
        );
        all.push(Case { name: format!("mma.{shape}.{a}.{b}"), body, kind: "bits", ulp: 0 });
    }
    v
}

/// Inputs that reach the corners: any bits, small integers, and floats of moderate size in each width.
fn inputs() -> Vec<u64> {
    let mut s = 0x1234_5678u64;
    let mut next = || {
        s = s.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (s ^ (s >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    const CORNERS: [u64; 16] = [
        0,
        !0,
        1,
        1 << 63,
        0x7ff0_0000_0000_0000,
        0x7f80_0000_7f80_0000,
        0x7c00_7c00_7c00_7c00,
        0x7fc0_0000_7fc0_0000,
        0x8000_0000_8000_0000,
        0x0000_0001_0000_0001,
        0x3ff0_0000_0000_0000,
        0x3f80_0000_3f80_0000,
        0x7fff_ffff_7fff_ffff,
        0x0080_0000_007f_ffff,
        0x7bff_7bff_7bff_7bff,
        0xffff_8000_0001_7fff,
    ];
    (0..THREADS * 3)
        .map(|k| match k / 3 % 4 {
            0 => CORNERS[(next() % 16) as usize],
            1 => next() % 64,
            2 => {
                // Two floats, each a fraction scaled by a small power of two.
                let mut f = || {
                    let r = next();
                    let x = (r >> 40) as f32 / (1 << 23) as f32 - 1.0;
                    u64::from((x * 2f32.powi((r % 9) as i32 - 4)).to_bits())
                };
                f() | f() << 32
            }
            _ => next(),
        })
        .collect()
}

fn module(body: &str) -> String {
    format!(
        ".version 8.4\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 pa, .param .u64 pb) {{
.reg .pred %p<8>; .reg .b16 %h<32>; .reg .b32 %r<32>; .reg .b64 %rd<32>; .reg .f32 %f<32>; .reg .f64 %fd<32>;
.shared .align 16 .b8 s[{shared}];
ld.param.u64 %rd0, [pa]; ld.param.u64 %rd1, [pb]; cvta.to.global.u64 %rd0, %rd0; cvta.to.global.u64 %rd1, %rd1;
mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 24; add.s64 %rd2, %rd0, %rd2; mul.wide.u32 %rd3, %r1, 8; add.s64 %rd3, %rd1, %rd3;
mov.u32 %r2, s; mad.lo.u32 %r9, %r1, 8, %r2;
ld.global.b64 %rd10, [%rd2]; ld.global.b64 %rd11, [%rd2+8]; ld.global.b64 %rd12, [%rd2+16];
cvt.u32.u64 %r10, %rd10; cvt.u32.u64 %r11, %rd11; cvt.u32.u64 %r12, %rd12;
cvt.u16.u64 %h10, %rd10; cvt.u16.u64 %h11, %rd11; cvt.u16.u64 %h12, %rd12;
mov.b32 %f10, %r10; mov.b32 %f11, %r11; mov.b32 %f12, %r12;
mov.b64 %fd10, %rd10; mov.b64 %fd11, %rd11; mov.b64 %fd12, %rd12;
mov.b32 %r13, 0;
{body}
st.global.b64 [%rd3], %rd20; ret; }}\n",
        shared = THREADS * 8
    )
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let dir = std::env::args().nth(1).ok_or("the directory to write to is missing")?;
    let dir = Path::new(&dir);
    std::fs::create_dir_all(dir)?;
    let input = inputs();
    let bytes = |v: &[u64]| v.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    std::fs::write(dir.join("input.bin"), bytes(&input))?;
    let mut manifest = String::from("[\n");
    let all = cases();
    for (n, c) in all.iter().enumerate() {
        let text = module(&c.body);
        let program = Program::parse(&text).map_err(|e| format!("{}: {e}", c.name))?;
        let mut a = input.clone();
        let mut b = vec![0u64; THREADS];
        let mut memory = Memory::new();
        // SAFETY: both vectors live past the launch and nothing touches them meanwhile.
        unsafe {
            memory.register_slice(&mut a, "a");
            memory.register_slice(&mut b, "b");
        }
        let launch = Launch {
            entry: "k".into(),
            grid: [1; 3],
            block: [THREADS as u32, 1, 1],
            cluster: None,
            shared_bytes: 0,
            params: vec![Param::Pointer(a.as_ptr() as u64), Param::Pointer(b.as_ptr() as u64)],
        };
        let report =
            program.launch(&launch, &memory, &Options::default()).map_err(|e| format!("{}: {e}", c.name))?;
        if let Some(f) = report.findings.first() {
            return Err(format!("{}: {f}", c.name).into());
        }
        std::fs::write(dir.join(format!("{n}.ptx")), text)?;
        std::fs::write(dir.join(format!("{n}.bin")), bytes(&b))?;
        let comma = if n + 1 < all.len() { "," } else { "" };
        writeln!(
            manifest,
            "  {{\"n\": {n}, \"name\": \"{}\", \"kind\": \"{}\", \"ulp\": {}}}{comma}",
            c.name, c.kind, c.ulp
        )?;
    }
    manifest.push_str("]\n");
    std::fs::write(dir.join("manifest.json"), manifest)?;
    println!("{} programs in {}", all.len(), dir.display());
    Ok(())
}

fn main() -> std::process::ExitCode {
    match run() {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {e}");
            std::process::ExitCode::from(2)
        }
    }
}
