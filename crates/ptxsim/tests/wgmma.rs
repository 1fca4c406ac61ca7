//! Warp-group matrix multiply: every type, every N, A from registers and from shared memory, both majors, the swizzles,
//! signs, scales and accumulators; and the rules of its asynchrony, broken one by one.
//!
//! Operands are small integers, so that every sum is exact in every format and results are compared bit by bit. The
//! layouts in shared memory and in registers are written here from §9.7.15.5, not taken from the simulator.
#![allow(missing_docs)]
mod common;
use common::*;
use half::{bf16, f16};
use tilewright_ptxsim::FindingKind::*;
use tilewright_ptxsim::{FindingKind, Report};

#[derive(Clone, Copy, Debug, PartialEq)]
enum T {
    F16,
    Bf16,
    Tf32,
    E4m3,
    E5m2,
    S8,
    U8,
    F32,
    S32,
}

impl T {
    fn bytes(self) -> usize {
        match self {
            T::F16 | T::Bf16 => 2,
            T::Tf32 | T::F32 | T::S32 => 4,
            _ => 1,
        }
    }
    fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }
    /// A value in this type that all of them hold, but for the sign of `u8`.
    fn pick(self, r: &mut Rng) -> i32 {
        let v = (r.u32() % 4) as i32;
        if self == T::U8 || r.u32() & 1 == 0 { v } else { -v }
    }
    fn bits(self, v: i32) -> u32 {
        match self {
            T::F16 => f16::from_f32(v as f32).to_bits().into(),
            T::Bf16 => bf16::from_f32(v as f32).to_bits().into(),
            T::Tf32 | T::F32 => (v as f32).to_bits(),
            T::S32 => v as u32,
            T::S8 | T::U8 => u32::from(v as u8),
            // |v| ≤ 3: 1, 2 and 3 are 1.0, 1.0 × 2 and 1.5 × 2.
            T::E4m3 | T::E5m2 => {
                let (bias, man) = if self == T::E4m3 { (7, 3) } else { (15, 2) };
                let m = match v.abs() {
                    0 => 0,
                    1 => bias << man,
                    2 => (bias + 1) << man,
                    _ => (bias + 1) << man | 1 << (man - 1),
                };
                m | if v < 0 { 0x80 } else { 0 }
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Case {
    n: usize,
    d: T,
    a: T,
    b: T,
    /// A comes from registers.
    regs: bool,
    /// Swizzle width in bytes; 16 is none.
    width: usize,
    /// A and B have M and N innermost.
    mn: [bool; 2],
    negate: [bool; 2],
    /// The accumulator's old value counts.
    keep: bool,
}

impl Case {
    fn new(n: usize, d: T, a: T, b: T) -> Case {
        Case { n, d, a, b, regs: false, width: 128, mn: [false; 2], negate: [false; 2], keep: true }
    }
    fn k(self) -> usize {
        32 / self.a.bytes()
    }
    /// Accumulator registers of a thread.
    fn words(self) -> usize {
        if self.d == T::F16 { self.n / 4 } else { self.n / 2 }
    }
}

/// Where element (`mn`, `k`) of a matrix lies, and the fields of its descriptor: leading and stride byte offsets.
struct Layout {
    es: usize,
    width: usize,
    mn_major: bool,
    leading: usize,
    stride: usize,
    bytes: usize,
}

impl Layout {
    fn new(mn: usize, k: usize, es: usize, width: usize, mn_major: bool) -> Layout {
        let atom = 8 * width;
        // An atom is 8 rows of `width` bytes; its rows run along the dimension that is not innermost.
        let (inner, outer) = if mn_major { (mn, k) } else { (k, mn) };
        let (along, across) = ((inner * es).div_ceil(width), outer / 8);
        let (near, far) = (atom, atom * along);
        let (leading, stride) = match (mn_major, width) {
            // Without a swizzle the leading offset goes along K.
            (true, 16) => (far, near),
            (false, _) | (true, _) => (near, far),
        };
        Layout { es, width, mn_major, leading, stride, bytes: atom * along * across }
    }
    fn at(&self, mn: usize, k: usize) -> usize {
        let (inner, outer) = if self.mn_major { (mn * self.es, k) } else { (k * self.es, mn) };
        let along = match (self.mn_major, self.width) {
            (true, 16) => self.stride,
            _ => self.leading,
        };
        let across = match (self.mn_major, self.width) {
            (true, 16) => self.leading,
            _ => self.stride,
        };
        let at =
            inner % self.width + inner / self.width * along + outer % 8 * self.width + outer / 8 * across;
        let swizzle = self.width / 16 - 1;
        at ^ (at >> 7 & swizzle) << 4
    }
    fn descriptor(&self) -> u64 {
        let mode = match self.width {
            16 => 0,
            32 => 3,
            64 => 2,
            _ => 1u64,
        };
        mode << 62 | (self.stride as u64 >> 4) << 32 | (self.leading as u64 >> 4) << 16
    }
}

/// Row and column of element `e` of accumulator word `w` of a thread.
fn place(c: Case, thread: usize, w: usize, e: usize) -> (usize, usize) {
    let (warp, lane) = (thread / 32, thread % 32);
    let i = if c.d == T::F16 { 2 * w + e } else { w };
    (16 * warp + lane / 4 + 8 * (i / 2 % 2), 8 * (i / 4) + 2 * (lane % 4) + i % 2)
}

/// The kernel: `p0` the image of shared memory, `p1` A's registers, `p2` the accumulators, both ways.
fn text(c: Case, bytes: usize, b_at: usize, la: &Layout, lb: &Layout) -> String {
    let words = c.words();
    let regs: Vec<String> = (0..words).map(|i| format!("%d{i}")).collect();
    let d = regs.join(", ");
    let a = if c.regs { "{%q0, %q1, %q2, %q3}".to_string() } else { "%rd10".into() };
    let mut tail = format!("%p{}", u32::from(c.keep));
    if c.d != T::S32 {
        for n in c.negate {
            tail += if n { ", -1" } else { ", 1" };
        }
    }
    if c.a.bytes() == 2 {
        for (k, m) in c.mn.iter().enumerate() {
            if k == 1 || !c.regs {
                tail += if *m { ", 1" } else { ", 0" };
            }
        }
    }
    let io = |op: &str| -> String {
        (0..words)
            .map(|i| match op {
                "ld" => format!("ld.global.b32 %d{i}, [%rd3+{}];\n", 4 * i),
                _ => format!("st.global.b32 [%rd3+{}], %d{i};\n", 4 * i),
            })
            .collect()
    };
    format!(
        ".version 8.4\n.target sm_90a\n.address_size 64
        .visible .entry k(.param .u64 p0, .param .u64 p1, .param .u64 p2) {{
        .reg .pred %p<8>; .reg .b32 %r<16>; .reg .b64 %rd<16>; .reg .b32 %d<{words}>; .reg .b32 %q<4>;
        .shared .align 1024 .b8 s[{bytes}];
        ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1]; ld.param.u64 %rd3, [p2];
        mov.u32 %r1, %tid.x; setp.ge.u32 %p0, %r1, 4096; setp.lt.u32 %p1, %r1, 4096;
        mov.u32 %r2, s; shl.b32 %r3, %r1, 2;
        COPY: setp.ge.u32 %p2, %r3, {bytes}; @%p2 bra COPIED;
        cvt.u64.u32 %rd4, %r3; add.s64 %rd4, %rd1, %rd4; ld.global.b32 %r4, [%rd4];
        add.u32 %r5, %r2, %r3; st.shared.b32 [%r5], %r4; add.u32 %r3, %r3, 512; bra COPY;
        COPIED: fence.proxy.async; bar.sync 0;
        mul.wide.u32 %rd5, %r1, 16; add.s64 %rd2, %rd2, %rd5; ld.global.v4.b32 {{%q0, %q1, %q2, %q3}}, [%rd2];
        mul.wide.u32 %rd6, %r1, {}; add.s64 %rd3, %rd3, %rd6;
        {}
        shr.u32 %r6, %r2, 4; cvt.u64.u32 %rd7, %r6;
        add.s64 %rd10, %rd7, {}; add.s64 %rd11, %rd7, {};
        // before
        wgmma.fence.sync.aligned;
        // fenced
        wgmma.mma_async.sync.aligned.m64n{}k{}.{}.{}.{} {{{d}}}, {a}, %rd11, {tail};
        // issued
        wgmma.commit_group.sync.aligned;
        wgmma.wait_group.sync.aligned 0;
        // done
        {}
        ret; }}",
        4 * words,
        io("ld"),
        la.descriptor(),
        lb.descriptor() + (b_at as u64 >> 4),
        c.n,
        c.k(),
        c.d.name(),
        c.a.name(),
        c.b.name(),
        io("st"),
    )
}

/// Runs a case, with the text changed by `edit`. Gives the report, and whether the result is right.
fn run(c: Case, edit: impl Fn(String) -> String) -> (Report, bool) {
    let mut r = Rng(c.n as u64 * 77 + c.a as u64 * 5 + c.b as u64);
    let k = c.k();
    let a: Vec<Vec<i32>> = (0..64).map(|_| (0..k).map(|_| c.a.pick(&mut r)).collect()).collect();
    let b: Vec<Vec<i32>> = (0..c.n).map(|_| (0..k).map(|_| c.b.pick(&mut r)).collect()).collect();
    let (la, lb) = (
        Layout::new(64, k, c.a.bytes(), c.width, c.mn[0]),
        Layout::new(c.n, k, c.b.bytes(), c.width, c.mn[1]),
    );
    let b_at = la.bytes.next_multiple_of(1024);
    let bytes = b_at + lb.bytes.next_multiple_of(1024);
    let mut image = vec![0u8; bytes];
    for (m, l, at) in [(&a, &la, 0), (&b, &lb, b_at)] {
        let ty = if at == 0 { c.a } else { c.b };
        for (row, m) in m.iter().enumerate() {
            for (x, v) in m.iter().enumerate() {
                let p = at + l.at(row, x);
                image[p..p + l.es].copy_from_slice(&ty.bits(*v).to_le_bytes()[..l.es]);
            }
        }
    }
    let mut image: Vec<u32> =
        image.chunks(4).map(|w| u32::from_le_bytes(w.try_into().expect("four bytes"))).collect();
    // A's fragments: word w of a thread has rows lane / 4 + 8 (w % 2) and columns from (lane % 4) · per + 4 per (w / 2).
    let per = 4 / c.a.bytes();
    let mut fragments = vec![0u128; 128];
    for (t, f) in fragments.iter_mut().enumerate() {
        for w in 0..4 {
            for e in 0..per {
                let row = t / 32 * 16 + t % 32 / 4 + 8 * (w % 2);
                let col = t % 4 * per + 4 * per * (w / 2) + e;
                *f |= u128::from(c.a.bits(a[row][col])) << (32 * w + 32 / per * e);
            }
        }
    }
    let old = |row: usize, col: usize| (row * 3 + col * 5) as i32 % 11 - 5;
    let pack = |t: usize, w: usize, f: &dyn Fn(usize, usize) -> i32| -> u32 {
        let n = if c.d == T::F16 { 2 } else { 1 };
        (0..n).fold(0, |v, e| {
            let (row, col) = place(c, t, w, e);
            v | c.d.bits(f(row, col)) << (16 * e)
        })
    };
    let words = c.words();
    let all = |f: &dyn Fn(usize, usize) -> i32| -> Vec<u32> {
        (0..128 * words).map(|i| pack(i / words, i % words, f)).collect()
    };
    let mut acc = all(&old);
    let sign = if c.negate[0] != c.negate[1] { -1 } else { 1 };
    let want = all(&|row, col| {
        let sum: i32 = (0..k).map(|x| a[row][x] * b[col][x]).sum();
        sign * sum + if c.keep { old(row, col) } else { 0 }
    });
    let p = parse(&edit(text(c, bytes, b_at, &la, &lb)));
    let report = Run::new(&p, 1, 128).array(&mut image).array(&mut fragments).array(&mut acc).go();
    (report, acc == want)
}

fn right(c: Case) {
    let (report, same) = run(c, |t| t);
    assert!(report.findings.is_empty(), "{c:?}: {:#?}", report.findings);
    assert!(same, "{c:?}: wrong result");
}

fn finds(c: Case, kind: FindingKind, edit: impl Fn(String) -> String) {
    let (report, _) = run(c, edit);
    assert!(report.findings.iter().any(|f| f.kind == kind), "{c:?}: no {kind:?} in {:#?}", report.findings);
}

const FLOATS: [(T, T, T); 12] = [
    (T::F32, T::F16, T::F16),
    (T::F16, T::F16, T::F16),
    (T::F32, T::Bf16, T::Bf16),
    (T::F32, T::Tf32, T::Tf32),
    (T::F32, T::E4m3, T::E4m3),
    (T::F32, T::E4m3, T::E5m2),
    (T::F32, T::E5m2, T::E4m3),
    (T::F32, T::E5m2, T::E5m2),
    (T::F16, T::E4m3, T::E4m3),
    (T::F16, T::E4m3, T::E5m2),
    (T::F16, T::E5m2, T::E4m3),
    (T::F16, T::E5m2, T::E5m2),
];
const INTEGERS: [(T, T, T); 4] =
    [(T::S32, T::S8, T::S8), (T::S32, T::S8, T::U8), (T::S32, T::U8, T::S8), (T::S32, T::U8, T::U8)];

#[test]
fn every_type_and_n() {
    for (d, a, b) in FLOATS {
        for n in (8..=256).step_by(8) {
            right(Case::new(n, d, a, b));
        }
    }
    for (d, a, b) in INTEGERS {
        for n in [8, 24].into_iter().chain((16..=256).step_by(16)) {
            right(Case::new(n, d, a, b));
        }
    }
}

#[test]
fn a_from_registers() {
    for (d, a, b) in FLOATS.into_iter().chain(INTEGERS) {
        for n in [8, 48, 256] {
            right(Case { regs: true, ..Case::new(n, d, a, b) });
        }
    }
}

#[test]
fn swizzles_and_majors() {
    for (d, a, b) in FLOATS.into_iter().chain(INTEGERS) {
        for width in [16, 32, 64, 128] {
            // Only 16-bit types can have M or N innermost.
            let majors = if a.bytes() == 2 { 4 } else { 1 };
            for m in 0..majors {
                let c = Case { width, mn: [m & 1 != 0, m & 2 != 0], ..Case::new(64, d, a, b) };
                right(c);
                right(Case { n: 8 * (width / 16), ..c });
                right(Case { regs: true, ..c });
            }
        }
    }
}

#[test]
fn signs_and_scales() {
    for (d, a, b) in FLOATS {
        for s in 0..8 {
            let c = Case::new(32, d, a, b);
            right(Case { negate: [s & 1 != 0, s & 2 != 0], keep: s & 4 != 0, ..c });
        }
    }
    for (d, a, b) in INTEGERS {
        right(Case { keep: false, ..Case::new(32, d, a, b) });
    }
}

#[test]
fn no_such_combination() {
    for (n, d, a, b) in [
        (12, T::F32, T::F16, T::F16),
        (264, T::F32, T::F16, T::F16),
        (40, T::S32, T::S8, T::S8),
        (64, T::F16, T::Bf16, T::Bf16),
        (64, T::F32, T::F16, T::Bf16),
        (64, T::F32, T::S8, T::S8),
    ] {
        let l = Layout::new(64, 16, 2, 128, false);
        let t = text(Case::new(n, d, a, b), 1024, 0, &l, &l);
        let r = tilewright_ptxsim::Program::parse(&t).and_then(|p| p.params("k"));
        let e = r.expect_err("it is refused");
        assert!(e.message.contains("no such combination of shape and types"), "{e}");
    }
}

const C: Case = Case {
    n: 16,
    d: T::F32,
    a: T::F16,
    b: T::F16,
    regs: false,
    width: 128,
    mn: [false; 2],
    negate: [false; 2],
    keep: true,
};
const REGS: Case = Case { regs: true, ..C };

#[test]
fn registers_need_a_fence() {
    let fence = "wgmma.fence.sync.aligned;";
    finds(C, RegisterFence, |t| t.replace(fence, ""));
    // An accumulator, or A, written after it.
    finds(C, RegisterFence, |t| t.replace("// fenced", "mov.b32 %d3, 0;"));
    finds(C, RegisterFence, |t| t.replace("// fenced", "add.f32 %d3, %d3, 0f3f800000;"));
    finds(REGS, RegisterFence, |t| t.replace("// fenced", "xor.b32 %q1, %q1, 1;"));
    // A copy is as old as what it copies.
    let through = |early: &str, late: &str| {
        let (early, late) = (early.to_string(), late.to_string());
        move |t: String| t.replace("// before", &early).replace("// fenced", &late)
    };
    right_with(C, through("mov.b32 %r9, %d3;", "mov.b32 %d3, %r9;"));
    finds(C, RegisterFence, through("", "mov.b32 %r9, 0; mov.b32 %d3, %r9;"));
    // Shapes in one accumulator need a fence between them; one shape does not.
    let twice = |t: String, between: &str, n: u32| {
        let at = t.find("wgmma.mma_async").expect("it is there");
        let mma = &t[at..=at + t[at..].find(';').expect("an end")];
        let mut second = mma.replace("m64n16k16", &format!("m64n{n}k16"));
        if n == 8 {
            second = second.replace(", %d4, %d5, %d6, %d7", "");
        }
        t.replace("// issued", &format!("{between} {second}"))
    };
    none(&run(C, |t| twice(t, "", 16)).0);
    finds(C, RegisterFence, |t| twice(t, "", 8));
    none(&run(C, |t| twice(t, fence, 8)).0);
}

fn none(r: &Report) {
    assert!(r.findings.is_empty(), "{:#?}", r.findings);
}

fn right_with(c: Case, edit: impl Fn(String) -> String) {
    let (r, same) = run(c, edit);
    none(&r);
    assert!(same, "{c:?}: wrong result");
}

#[test]
fn registers_in_flight_are_untouchable() {
    let before = |s: &str| {
        let s = s.to_string();
        move |t: String| t.replace("// issued", &s)
    };
    finds(C, AsyncBeforeWait, before("mov.b32 %r9, %d2;"));
    finds(C, AsyncBeforeWait, before("mov.b32 %d2, 0;"));
    finds(C, AsyncBeforeWait, |t| t.replace("wgmma.wait_group.sync.aligned 0;", ""));
    finds(C, AsyncBeforeWait, |t| {
        t.replace("wgmma.wait_group.sync.aligned 0;", "wgmma.wait_group.sync.aligned 1;")
    });
    finds(C, AsyncBeforeWait, |t| t.replace("wgmma.commit_group.sync.aligned;", ""));
    finds(REGS, AsyncBeforeWait, before("xor.b32 %q1, %q1, 1;"));
    right_with(REGS, |t| t.replace("// done", "xor.b32 %q1, %q1, 1;"));
}

/// Warp 0 writes over a byte of the matrix at `at` after its own wait.
fn overwrite(at: usize, barrier: &str) -> impl Fn(String) -> String {
    let s = format!(
        "{barrier} setp.lt.u32 %p3, %r1, 32; mad.lo.u32 %r9, %r1, 4, %r2; @%p3 st.shared.b32 [%r9+{at}], 7;"
    );
    move |t| t.replace("// done", &s)
}

#[test]
fn a_warp_waits_for_its_own_reads_only() {
    // 64 rows of 32 bytes in atoms of 128 bytes, then B at the next multiple of 1024.
    for at in [0, 8192] {
        finds(C, SharedRace, overwrite(at, ""));
        finds(C, SharedRace, overwrite(at, "bar.warp.sync -1;"));
        right_with(C, overwrite(at, "bar.sync 0;"));
    }
    // And B may not be written before all have read it, wait or no wait.
    let early = |t: String| {
        overwrite(8192, "")(t.replace("// done", "").replace(
            "wgmma.wait_group.sync.aligned 0;",
            "bar.sync 0; // done\n wgmma.wait_group.sync.aligned 0;",
        ))
    };
    finds(C, SharedRace, early);
}

#[test]
fn shared_operands_need_order_and_a_proxy_fence() {
    finds(C, ProxyFence, |t| t.replace("fence.proxy.async;", ""));
    finds(C, SharedRace, |t| t.replace("bar.sync 0;", ""));
    finds(C, UninitializedShared, |t| {
        t.replace("st.shared.b32 [%r5], %r4;", "@%p0 st.shared.b32 [%r5], %r4;")
    });
}

#[test]
fn all_warps_of_a_group_take_part() {
    let warp0 = "setp.ge.u32 %p4, %r1, 32; @%p4 bra OUT;";
    finds(C, WarpSync, |t| t.replace("// before", warp0).replace("ret;", "OUT: ret;"));
    finds(C, WarpSync, |t| {
        t.replace("// before", "setp.eq.u32 %p4, %r1, 5; @%p4 bra OUT;").replace("ret;", "OUT: ret;")
    });
    finds(C, WarpSync, |t| {
        let group = "wgmma.commit_group.sync.aligned;";
        t.replace("// issued", &format!("setp.lt.u32 %p4, %r1, 32; @%p4 bra E; {group} bra F; E: {group} F:"))
    });
}

#[test]
fn descriptors_say_where_a_matrix_is() {
    let a = |bits: u64| move |t: String| t.replace("// before", &format!("xor.b64 %rd10, %rd10, {bits};"));
    // Bits with no meaning, and a base offset where the pattern starts at a multiple of its size.
    for bit in [14, 15, 30, 46, 52, 61] {
        finds(C, Descriptor, a(1 << bit));
    }
    finds(C, Descriptor, a(1 << 49));
    // A start inside the pattern: row 1 of an atom of 8 rows.
    finds(C, Descriptor, |t| t.replace("// before", "add.s64 %rd10, %rd10, 8;"));
    // No distance between groups of 8 rows: all of them at one place.
    let layout = Layout::new(64, C.k(), 2, C.width, false);
    finds(C, Descriptor, a((layout.stride as u64 >> 4) << 32));
    // Without a swizzle the leading offset counts too.
    let plain = Case { width: 16, ..C };
    let layout = Layout::new(64, C.k(), 2, 16, false);
    finds(plain, Descriptor, a((layout.leading as u64 >> 4) << 16));
}
