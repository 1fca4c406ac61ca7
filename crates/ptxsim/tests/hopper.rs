//! mbarriers, bulk and tensor copies, warp-group matrix multiply, clusters.
#![allow(missing_docs)]
mod common;
use common::*;
use half::f16;
use tilewright_ptxsim::FindingKind::*;
use tilewright_ptxsim::{Element, FindingKind, Report, Swizzle, TensorMap};

fn has(r: &Report, kind: FindingKind) {
    assert!(r.findings.iter().any(|f| f.kind == kind), "no {kind:?} in {:#?}", r.findings);
}

fn none(r: &Report) {
    assert!(r.findings.is_empty(), "{:#?}", r.findings);
}

/// Thread 0 loads 512 bytes in bulk; everybody waits and reads.
fn bulk(expect: &str, wait: &str) -> String {
    kernel(
        2,
        &format!(
            ".shared .align 128 .b8 s[512]; .shared .align 8 .b64 bar;
             mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0;
             @%p1 mbarrier.init.shared::cta.b64 [bar], 1; fence.mbarrier_init.release.cluster;
             bar.sync 0;
             @%p1 {expect}
             @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%a0], 512, [bar];
             {wait}
             shl.b32 %r2, %r1, 2; mov.u32 %r3, s; add.u32 %r3, %r3, %r2; ld.shared.u32 %r4, [%r3];
             mul.wide.u32 %rd1, %r1, 4; add.s64 %rd2, %a1, %rd1; st.global.u32 [%rd2], %r4; ret;"
        ),
    )
}

const WAIT: &str = "W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0; @!%p2 bra W;";
const EXPECT: &str = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 512;";

#[test]
fn bulk_copies_signal_mbarriers() {
    let go = |ptx: String| {
        let p = parse(&ptx);
        let mut a: Vec<u32> = (0..128).collect();
        let mut b = vec![0u32; 128];
        let r = Run::new(&p, 1, 128).array(&mut a).array(&mut b).go();
        (r, b)
    };
    let (r, b) = go(bulk(EXPECT, WAIT));
    none(&r);
    assert_eq!(b, (0..128).collect::<Vec<u32>>());
    has(&go(bulk(EXPECT, "")).0, AsyncBeforeWait);
    // Only warp 0 waits: the others are not ordered after the copy.
    let some = WAIT.replace("W:", "setp.ge.u32 %p3, %r1, 32; @%p3 bra X; W:") + "X:";
    let (r, _) = go(bulk(EXPECT, &some));
    assert!(r.findings.iter().any(|f| matches!(f.kind, SharedRace | AsyncBeforeWait)), "{:#?}", r.findings);
    none(&go(bulk(EXPECT, &format!("{some} bar.sync 0;"))).0);
    // Bytes that never come, and arrivals that are too many.
    has(&go(bulk(&EXPECT.replace("512", "1024"), WAIT)).0, Deadlock);
    has(&go(bulk("mbarrier.arrive.shared::cta.b64 _, [bar], 2;", WAIT)).0, ArriveCount);
    has(&go(bulk(EXPECT, WAIT).replace("@%p1 mbarrier.init.shared::cta.b64 [bar], 1;", "")).0, ArriveCount);
}

#[test]
fn bulk_stores_need_a_proxy_fence() {
    let k = |fence: &str| {
        kernel(
            1,
            &format!(
                ".shared .align 128 .b8 s[512];
                 mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, s; add.u32 %r3, %r3, %r2;
                 st.shared.u32 [%r3], %r1; {fence} bar.sync 0; setp.ne.u32 %p1, %r1, 0; @%p1 bra E;
                 cp.async.bulk.global.shared::cta.bulk_group [%a0], [s], 512;
                 cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0; E: ret;"
            ),
        )
    };
    let go = |ptx: String| {
        let p = parse(&ptx);
        let mut a = vec![0u32; 128];
        let r = Run::new(&p, 1, 128).array(&mut a).go();
        (r, a)
    };
    let (r, a) = go(k("fence.proxy.async.shared::cta;"));
    none(&r);
    assert_eq!(a, (0..128).collect::<Vec<u32>>());
    has(&go(k("")).0, ProxyFence);
    has(
        &go(k("fence.proxy.async.shared::cta;").replace("[%a0], [s], 512", "[%a0+256], [s], 512")).0,
        GlobalBounds,
    );
}

/// All warps load each word, meet, and load other words; then the copy engine writes the first ones. Who has loaded these is known
/// past the barriers between.
#[test]
fn bulk_copies_onto_what_warps_have_loaded_need_a_proxy_fence() {
    let go = |fence: &str| {
        let ptx = bulk(EXPECT, WAIT).replace(
            "bar.sync 0;",
            &format!(
                ".shared .align 128 .b8 other[512]; mov.u32 %r7, s; mov.u32 %r8, other; shl.b32 %r9, %r1, 2;
                 add.u32 %r5, %r7, %r9; add.u32 %r6, %r8, %r9; st.shared.u32 [%r5], %r1; st.shared.u32 [%r6], %r1;
                 fence.proxy.async.shared::cta; bar.sync 0; ld.shared.u32 %r10, [s+4]; {fence} bar.sync 0;
                 ld.shared.u32 %r10, [other+8]; bar.sync 0; ld.shared.u32 %r10, [other+12]; bar.sync 0;"
            ),
        );
        let p = parse(&ptx);
        let mut a: Vec<u32> = (0..128).collect();
        let mut b = vec![0u32; 128];
        Run::new(&p, 1, 128).array(&mut a).array(&mut b).go()
    };
    none(&go("fence.proxy.async.shared::cta;"));
    let r = go("");
    assert!(
        r.findings.iter().any(|f| f.kind == ProxyFence && f.message.contains("read with no")),
        "{:#?}",
        r.findings
    );
}

#[test]
fn copies_end_before_the_cta() {
    // The store's wait is left out, then the load's; with them nothing is found (tests above).
    let store = kernel(
        1,
        ".shared .align 128 .b8 s[512]; mov.u32 %r1, %tid.x; mov.u32 %r3, s; mad.lo.u32 %r3, %r1, 4, %r3;
         st.shared.u32 [%r3], %r1; fence.proxy.async.shared::cta; bar.sync 0; setp.ne.u32 %p1, %r1, 0; @%p1 bra E;
         cp.async.bulk.global.shared::cta.bulk_group [%a0], [s], 512; cp.async.bulk.commit_group; WAIT E: ret;",
    );
    let mut a = vec![0u32; 128];
    let mut go = |wait: &str| {
        let p = parse(&store.replace("WAIT", wait));
        Run::new(&p, 1, 128).array(&mut a).go()
    };
    has(&go(""), AsyncBeforeWait);
    has(&go("cp.async.bulk.wait_group.read 1;"), AsyncBeforeWait);
    none(&go("cp.async.bulk.wait_group.read 0;"));
    let load = |wait: &str| {
        let text = bulk(EXPECT, wait).replace("ld.shared.u32 %r4, [%r3];", "mov.u32 %r4, 0;");
        let (p, mut a, mut b) = (parse(&text), vec![0u32; 128], vec![0u32; 128]);
        Run::new(&p, 1, 128).array(&mut a).array(&mut b).go()
    };
    has(&load(""), AsyncBeforeWait);
    none(&load(WAIT));
}

#[test]
fn a_release_does_not_order_a_copy_that_goes_on() {
    // One CTA sends a message about what its bulk store writes; the other reads that and answers, and then the store ends.
    let text = kernel(
        1,
        ".shared .align 128 .b8 s[16]; mov.u32 %r1, %ctaid.x; setp.ne.u32 %p1, %r1, 0; @%p1 bra R;
         mov.u32 %r3, 42; st.shared.v4.u32 [s], {%r3, %r3, %r3, %r3}; fence.proxy.async.shared::cta;
         cp.async.bulk.global.shared::cta.bulk_group [%a0+64], [s], 16; cp.async.bulk.commit_group; WAIT
         st.release.gpu.global.u32 [%a0], 1;
         A: ld.acquire.gpu.global.u32 %r2, [%a0+4]; setp.eq.u32 %p2, %r2, 0; @%p2 bra A;
         cp.async.bulk.wait_group 0; bra E;
         R: ld.acquire.gpu.global.u32 %r2, [%a0]; setp.eq.u32 %p2, %r2, 0; @%p2 bra R;
         ld.global.u32 %r3, [%a0+64]; st.global.u32 [%a0+128], %r3; st.release.gpu.global.u32 [%a0+4], 1;
         E: ret;",
    );
    let go = |wait: &str| {
        let (p, mut a) = (parse(&text.replace("WAIT", wait)), vec![0u32; 64]);
        (Run::new(&p, 2, 1).array(&mut a).go(), a[32])
    };
    let (report, read) = go("cp.async.bulk.wait_group 0;");
    none(&report);
    assert_eq!(read, 42);
    has(&go("").0, GlobalRace);
}

#[test]
fn copies_of_what_another_cta_wrote_need_a_proxy_fence() {
    // One CTA writes and tells; the other acquires that and copies. A fence for global memory on either side of the message does.
    let text = kernel(
        1,
        ".shared .align 128 .b8 s[16]; .shared .align 8 .b64 bar;
         mov.u32 %r1, %ctaid.x; setp.ne.u32 %p1, %r1, 0; @%p1 bra R;
         mov.u32 %r3, 42; st.global.u32 [%a0+64], %r3; TOLD st.release.gpu.global.u32 [%a0], 1; bra E;
         R: mbarrier.init.shared::cta.b64 [bar], 1; fence.mbarrier_init.release.cluster;
         A: ld.acquire.gpu.global.u32 %r2, [%a0]; setp.eq.u32 %p2, %r2, 0; @%p2 bra A; HEARD
         mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
         cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%a0+64], 16, [bar];
         W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0; @!%p2 bra W;
         ld.shared.u32 %r3, [s]; st.global.u32 [%a0+128], %r3;
         E: ret;",
    );
    let go = |told: &str, heard: &str| {
        let (p, mut a) = (parse(&text.replace("TOLD", told).replace("HEARD", heard)), vec![0u32; 64]);
        (Run::new(&p, 2, 1).array(&mut a).go(), a[32])
    };
    for (told, heard) in
        [("fence.proxy.async.global;", ""), ("", "fence.proxy.async.global;"), ("", "fence.proxy.async;")]
    {
        let (report, read) = go(told, heard);
        none(&report);
        assert_eq!(read, 42);
    }
    has(&go("", "").0, ProxyFence);
    has(&go("", "fence.proxy.async.shared::cta;").0, ProxyFence);
}

/// A warp works on `[%a0]` and `[%a0+64]`, with a copy from or to there.
fn own_memory(body: &str) -> String {
    kernel(
        1,
        &format!(
            ".shared .align 128 .b8 s[16]; .shared .align 8 .b64 bar;
             mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; mov.u32 %r3, 42; mov.u32 %r4, 43;
             @%p1 mbarrier.init.shared::cta.b64 [bar], 1; fence.mbarrier_init.release.cluster; bar.sync 0;
             setp.eq.u32 %p3, %r1, 5; {body}
             ret;"
        ),
    )
}

const OWN_COPY: &str = "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
    @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%a0+64], 16, [bar];
    W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0; @!%p2 bra W;";

#[test]
fn copies_of_what_their_own_cta_wrote_need_a_proxy_fence() {
    let text = own_memory(&format!(
        "@%p3 st.global.u32 [%a0+64], %r3; BETWEEN {OWN_COPY} ld.shared.u32 %r3, [s]; @%p3 st.global.u32 [%a0+128], %r3;"
    ));
    let go = |between: &str| {
        let (p, mut a) = (parse(&text.replace("BETWEEN", between)), vec![0u32; 64]);
        (Run::new(&p, 1, 32).array(&mut a).go(), a[32])
    };
    for between in ["fence.proxy.async.global; bar.sync 0;", "bar.sync 0; fence.proxy.async.global;"] {
        let (report, read) = go(between);
        none(&report);
        assert_eq!(read, 42);
    }
    has(&go("bar.sync 0;").0, ProxyFence);
    has(&go("bar.sync 0; fence.proxy.async.shared::cta;").0, ProxyFence);
    has(&go("fence.proxy.async.global;").0, GlobalRace);
}

#[test]
fn a_copy_stores_over_what_its_cta_wrote_behind_a_proxy_fence() {
    let text = own_memory(
        "@%p3 st.global.u32 [%a0+64], %r3; @%p3 st.shared.v4.u32 [s], {%r4, %r4, %r4, %r4}; FENCE bar.sync 0;
         @%p1 cp.async.bulk.global.shared::cta.bulk_group [%a0+64], [s], 16; cp.async.bulk.commit_group;
         cp.async.bulk.wait_group 0; bar.sync 0; AGAIN",
    );
    let go = |fence: &str, again: &str| {
        let (p, mut a) = (parse(&text.replace("FENCE", fence).replace("AGAIN", again)), vec![0u32; 64]);
        (Run::new(&p, 1, 32).array(&mut a).go(), a[16])
    };
    let (report, stored) = go("fence.proxy.async;", "");
    none(&report);
    assert_eq!(stored, 43);
    has(&go("fence.proxy.async.shared::cta;", "").0, ProxyFence);
    // What a copy has stored goes through the same proxy: once it is over, others may read it.
    let again = format!("{OWN_COPY} ld.shared.u32 %r3, [s];");
    none(&go("fence.proxy.async;", &again).0);
}

#[test]
fn what_a_copy_reads_may_be_overwritten_when_it_is_over() {
    let go = |body: &str| {
        let (p, mut a) = (parse(&own_memory(body)), vec![0u32; 64]);
        Run::new(&p, 1, 32).array(&mut a).go()
    };
    none(&go(&format!("{OWN_COPY} @%p3 st.global.u32 [%a0+64], %r3;")));
    let early = OWN_COPY.replace("W:", "bar.sync 0; @%p3 st.global.u32 [%a0+64], %r3; W:");
    has(&go(&early), GlobalRace);
}

/// One 64×N×64 product: tensor copies with a 128-byte swizzle, then four `wgmma`.
fn wgmma(n: u32, wait: &str) -> String {
    let regs = n / 2;
    let d: Vec<String> = (0..regs).map(|k| format!("%d{k}")).collect();
    let mut steps = String::new();
    for s in 0..4 {
        steps += &format!(
            "add.s64 %rd10, %rd5, {o}; add.s64 %rd11, %rd6, {o}; setp.ne.b32 %p3, {s}, 0;
             wgmma.mma_async.sync.aligned.m64n{n}k16.f32.f16.f16 {{{}}}, %rd10, %rd11, %p3, 1, 1, 0, 0;\n",
            d.join(","),
            o = s * 2
        );
    }
    let mut stores = String::new();
    for c in 0..n / 8 {
        for h in 0..2 {
            stores += &format!(
                "st.global.v2.f32 [%rd9+{}], {{%d{}, %d{}}};\n",
                (h * 8 * n + c * 8) * 4,
                4 * c + 2 * h,
                4 * c + 2 * h + 1
            );
        }
    }
    let b_bytes = n * 128;
    let bytes = 8192 + b_bytes;
    format!(
        ".version 8.4\n.target sm_90a\n.address_size 64
        .visible .entry k(.param .align 64 .b8 ma[128], .param .align 64 .b8 mb[128], .param .u64 c) {{
        .reg .pred %p<8>; .reg .b32 %r<32>; .reg .b64 %rd<16>; .reg .f32 %d<{regs}>;
        .shared .align 1024 .b8 sa[8192]; .shared .align 1024 .b8 sb[{b_bytes}]; .shared .align 8 .b64 bar;
        mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; mov.b64 %rd1, ma; mov.b64 %rd2, mb;
        @%p1 mbarrier.init.shared::cta.b64 [bar], 1; fence.mbarrier_init.release.cluster;
        fence.proxy.async; bar.sync 0;
        @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], {bytes};
        @%p1 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [sa], [%rd1, {{0, 0}}], [bar];
        @%p1 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [sb], [%rd2, {{0, 0}}], [bar];
        W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0; @!%p2 bra W;
        mov.u32 %r2, sa; shr.u32 %r2, %r2, 4; mov.u32 %r3, sb; shr.u32 %r3, %r3, 4;
        cvt.u64.u32 %rd5, %r2; cvt.u64.u32 %rd6, %r3;
        or.b64 %rd5, %rd5, 0x4000004000010000; or.b64 %rd6, %rd6, 0x4000004000010000;
        wgmma.fence.sync.aligned;
        {steps}
        wgmma.commit_group.sync.aligned;
        {wait}
        ld.param.u64 %rd7, [c]; and.b32 %r4, %r1, 31; shr.u32 %r5, %r1, 5; shr.u32 %r6, %r4, 2; and.b32 %r7, %r4, 3;
        mad.lo.u32 %r8, %r5, 16, %r6; mul.lo.u32 %r8, %r8, {n}; mad.lo.u32 %r8, %r7, 2, %r8;
        mul.wide.u32 %rd8, %r8, 4; add.s64 %rd9, %rd7, %rd8;
        {stores}
        ret; }}"
    )
}

fn map(a: &[f16], rows: u32, swizzle: Swizzle) -> Vec<u8> {
    TensorMap {
        address: a.as_ptr() as u64,
        element: Element::F16,
        dims: vec![64, rows.into()],
        strides: vec![128],
        box_dims: vec![64, rows],
        element_strides: vec![1, 1],
        swizzle,
        nan_fill: false,
    }
    .encode()
    .expect("a valid map")
}

/// Halves aligned to 16 bytes.
struct Halves {
    storage: Vec<u128>,
    n: usize,
}

impl Halves {
    fn new(n: usize, mut f: impl FnMut() -> f16) -> Halves {
        let mut h = Halves { storage: vec![0u128; n.div_ceil(8)], n };
        h.get().iter_mut().for_each(|x| *x = f());
        h
    }
    fn get(&mut self) -> &mut [f16] {
        // SAFETY: u128 has room and alignment for eight f16, which have no invalid patterns.
        unsafe { std::slice::from_raw_parts_mut(self.storage.as_mut_ptr().cast(), self.n) }
    }
}

#[test]
fn tensor_copies_feed_wgmma() {
    for n in [8u32, 64, 96, 128] {
        let mut r = Rng(u64::from(n));
        let mut a = Halves::new(64 * 64, || f16::from_f32(r.f32()));
        let mut r = Rng(u64::from(n) + 1);
        let mut b = Halves::new(n as usize * 64, || f16::from_f32(r.f32()));
        let mut c = vec![0f32; 64 * n as usize];
        let (ma, mb) = (map(a.get(), 64, Swizzle::B128), map(b.get(), n, Swizzle::B128));
        let mut go = |wait: &str| {
            let p = parse(&wgmma(n, wait));
            let run = Run::new(&p, 1, 128).bytes(ma.clone()).bytes(mb.clone()).array(&mut c);
            run.memory(a.get(), "a").memory(b.get(), "b").go()
        };
        has(&go(""), AsyncBeforeWait);
        none(&go("wgmma.wait_group.sync.aligned 0;"));
        let (a, b) = (a.get(), b.get());
        for i in 0..64 {
            for j in 0..n as usize {
                let want: f64 = (0..64).map(|k| f64::from(a[i * 64 + k]) * f64::from(b[j * 64 + k])).sum();
                let got = f64::from(c[i * n as usize + j]);
                assert!((want - got).abs() < 1e-4, "{n}: {i},{j}: {got} not {want}");
            }
        }
    }
}

#[test]
fn a_descriptor_outside_shared_memory() {
    let mut a = Halves::new(64 * 64, || f16::ONE);
    let m = map(a.get(), 64, Swizzle::B128);
    let mut c = vec![0f32; 64 * 64];
    let p = parse(
        &wgmma(64, "wgmma.wait_group.sync.aligned 0;")
            .replace("%rd5, 0x4000004000010000", "%rd5, 0x4000100000010000"),
    );
    let r = Run::new(&p, 1, 128).bytes(m.clone()).bytes(m).array(&mut c).memory(a.get(), "a").go();
    has(&r, Descriptor);
}

#[test]
fn a_descriptor_says_the_swizzle_of_the_copy() {
    let mut a = Halves::new(64 * 64, || f16::ONE);
    let mut c = vec![0f32; 64 * 64];
    let (right, wrong) = (map(a.get(), 64, Swizzle::B128), map(a.get(), 64, Swizzle::None));
    let p = parse(&wgmma(64, "wgmma.wait_group.sync.aligned 0;"));
    let mut go = |ma: &[u8], mb: &[u8]| {
        Run::new(&p, 1, 128).bytes(ma.into()).bytes(mb.into()).array(&mut c).memory(a.get(), "a").go()
    };
    none(&go(&right, &right));
    let r = go(&right, &wrong);
    has(&r, Descriptor);
    assert!(r.findings[0].message.starts_with("matrix B: the tensor copy that wrote"), "{}", r.findings[0]);
}

#[test]
fn tensor_boxes_outside_are_filled_with_zero() {
    let text = ".version 8.4\n.target sm_90a\n.address_size 64
        .visible .entry k(.param .align 64 .b8 m[128], .param .u64 c) {
        .reg .pred %p<8>; .reg .b32 %r<32>; .reg .b64 %rd<16>;
        .shared .align 128 .b8 s[256]; .shared .align 8 .b64 bar;
        mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; mov.b64 %rd1, m;
        @%p1 mbarrier.init.shared::cta.b64 [bar], 1; fence.mbarrier_init.release.cluster; bar.sync 0;
        @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 256;
        @%p1 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%rd1, {-4, 3}], [bar];
        W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0; @!%p2 bra W;
        mov.u32 %r2, s; mad.lo.u32 %r3, %r1, 4, %r2; ld.shared.u32 %r4, [%r3];
        ld.param.u64 %rd2, [c]; mul.wide.u32 %rd3, %r1, 4; add.s64 %rd4, %rd2, %rd3; st.global.u32 [%rd4], %r4; ret; }";
    let p = parse(text);
    // 4 rows of 8 words; the box has 8 rows of 8 and starts at column −4, row 3.
    let mut a: Vec<u128> =
        (0..8u128).map(|k| (0..4).fold(0, |v, j| v | (4 * k + j + 1) << (32 * j))).collect();
    let mut c = vec![0u32; 64];
    let m = TensorMap {
        address: a.as_ptr() as u64,
        element: Element::U32,
        dims: vec![8, 4],
        strides: vec![32],
        box_dims: vec![8, 8],
        element_strides: vec![1, 1],
        swizzle: Swizzle::None,
        nan_fill: false,
    };
    Run::new(&p, 1, 64).bytes(m.encode().expect("valid")).array(&mut c).memory(&mut a, "a").clean();
    for (k, v) in c.iter().enumerate() {
        let (x, y) = (k as i32 % 8 - 4, k as i32 / 8 + 3);
        let want = if (0..8).contains(&x) && y < 4 { (y * 8 + x + 1) as u32 } else { 0 };
        assert_eq!(*v, want, "{k}");
    }

    // Rows are entered at multiples of 16 bytes only.
    let p = parse(&text.replace("{-4, 3}", "{-2, 3}"));
    has(
        &Run::new(&p, 1, 64).bytes(m.encode().expect("valid")).array(&mut c).memory(&mut a, "a").go(),
        Misaligned,
    );
}

/// What `cuTensorMapEncodeTiled` refuses.
#[test]
fn maps_that_the_driver_does_not_make() {
    let good = TensorMap {
        address: 1 << 20,
        element: Element::F16,
        dims: vec![64, 1 << 32, 8],
        strides: vec![128, (1 << 40) - 16],
        box_dims: vec![32, 8, 1],
        element_strides: vec![1, 8, 1],
        swizzle: Swizzle::B64,
        nan_fill: false,
    };
    assert!(good.encode().is_ok());
    let says = |change: &dyn Fn(&mut TensorMap), what: &str| {
        let mut map = good.clone();
        change(&mut map);
        let error = map.encode().expect_err(what).to_string();
        assert!(error.contains(what), "{error}");
    };
    says(&|m| m.address += 8, "multiples of 16");
    says(&|m| m.strides[0] = 120, "multiples of 16");
    says(&|m| m.strides[0] = -128i64 as u64, "a stride of -128 bytes");
    says(&|m| m.strides[1] = 1 << 40, "below 2^40");
    says(&|m| m.dims[1] += 1, "from 1 to 2^32");
    says(&|m| m.dims[2] = 0, "from 1 to 2^32");
    says(&|m| m.box_dims[1] = 257, "between 1 and 256");
    says(&|m| m.box_dims[0] = 4, "a box row of 8 bytes");
    says(&|m| m.box_dims[0] = 64, "a box row of 128 bytes with swizzle B64");
    says(&|m| m.element_strides[2] = 9, "between 1 and 8");
    says(&|m| m.strides.truncate(1), "3 dimensions, 1 strides");
}

/// As an H100 does (`tests/gpu/sim_vs_gpu`): rows of a box that are narrower than the swizzle begin at multiples of it, and
/// a store writes pieces of 16 bytes.
#[test]
fn tensor_stores_of_narrow_rows_and_at_their_ends() {
    let text = |shared: u32| {
        format!(
            ".version 8.4\n.target sm_90a\n.address_size 64
            .visible .entry k(.param .align 64 .b8 m[128]) {{
            .reg .pred %p<8>; .reg .b32 %r<32>; .reg .b64 %rd<16>; .shared .align 128 .b8 s[{shared}];
            mov.u32 %r1, %tid.x; mov.b64 %rd1, m; mov.u32 %r2, s; mad.lo.u32 %r3, %r1, 4, %r2; st.shared.u32 [%r3], %r1;
            fence.proxy.async.shared::cta; bar.sync 0; setp.eq.u32 %p1, %r1, 0; @!%p1 ret;
            cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {{4, 0}}], [%r2];
            cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; ret; }}"
        )
    };
    let mut a = vec![!0u128; 8];
    // Rows of 6 words, 8 words apart; a box of 4 × 4 words in 4 × 8 of shared memory.
    let m = TensorMap {
        address: a.as_ptr() as u64,
        element: Element::U32,
        dims: vec![6, 4],
        strides: vec![32],
        box_dims: vec![4, 4],
        element_strides: vec![1, 1],
        swizzle: Swizzle::B32,
        nan_fill: false,
    };
    let map = m.encode().expect("valid");
    Run::new(&parse(&text(128)), 1, 32).bytes(map.clone()).memory(&mut a, "a").clean();
    for row in 0..4u128 {
        assert_eq!(a[2 * row as usize], !0);
        assert_eq!(a[2 * row as usize + 1], (0..4).fold(0, |v, k| v | (8 * row + k) << (32 * k)));
    }
    // The 64 bytes of the box are not enough shared memory, and the tensor's last row no end for the array.
    let r = Run::new(&parse(&text(64)), 1, 16).bytes(map.clone()).memory(&mut a, "a").go();
    has(&r, SharedBounds);
    let mut words: Vec<u32> = vec![0; 64];
    let skip = (words.as_ptr() as usize).wrapping_neg() % 128 / 4;
    let rows = &mut words[skip..skip + 3 * 8 + 6];
    let map = TensorMap { address: rows.as_ptr() as u64, ..m }.encode().expect("valid");
    has(&Run::new(&parse(&text(128)), 1, 32).bytes(map).memory(rows, "rows").go(), GlobalBounds);
}

/// A kernel that writes a tensor map itself and copies through it. `field` is put among the changes of the map.
fn made_map(field: &str) -> String {
    let changes: String = [
        "global_address.global.b1024.b64 [%a0], %a1",
        "rank.global.b1024.b32 [%a0], 1",
        "box_dim.global.b1024.b32 [%a0], 0, 8",
        "box_dim.global.b1024.b32 [%a0], 1, 4",
        "global_dim.global.b1024.b32 [%a0], 0, 6",
        "global_dim.global.b1024.b32 [%a0], 1, %r9",
        "global_stride.global.b1024.b64 [%a0], 0, 32",
        "element_stride.global.b1024.b32 [%a0], 0, 1",
        "element_stride.global.b1024.b32 [%a0], 1, 1",
        "elemtype.global.b1024.b32 [%a0], 7",
        "interleave_layout.global.b1024.b32 [%a0], 0",
        "swizzle_mode.global.b1024.b32 [%a0], 0",
        field,
    ]
    .iter()
    .map(|c| format!("@%p1 tensormap.replace.tile.{c};\n"))
    .collect();
    kernel(
        3,
        &format!(
            ".shared .align 128 .b8 s[128]; .shared .align 8 .b64 bar;
             mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; mov.u32 %r9, 3;
             {changes}
             @%p1 fence.proxy.tensormap::generic.release.gpu;
             @%p1 fence.proxy.tensormap::generic.acquire.gpu [%a0], 128;
             @%p1 mbarrier.init.shared::cta.b64 [bar], 1; fence.mbarrier_init.release.cluster; bar.sync 0;
             @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 128;
             @%p1 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%a0, {{0, 0}}], [bar];
             {WAIT}
             mov.u32 %r2, s; mad.lo.u32 %r3, %r1, 4, %r2; ld.shared.u32 %r4, [%r3];
             mul.wide.u32 %rd1, %r1, 4; add.s64 %rd2, %a2, %rd1; st.global.u32 [%rd2], %r4; ret;"
        ),
    )
}

#[test]
fn a_kernel_makes_its_own_tensor_map() {
    #[repr(align(128))]
    #[derive(Clone, Copy)]
    struct Map([u64; 16]);
    let go = |field: &str| {
        let p = parse(&made_map(field));
        let mut map = vec![Map([0; 16])];
        let mut a: Vec<u128> =
            (0..8u128).map(|k| (0..4).fold(0, |v, j| v | (4 * k + j + 1) << (32 * j))).collect();
        let mut c = vec![0u32; 32];
        let r = Run::new(&p, 1, 32).array(&mut map).array(&mut a).array(&mut c).go();
        (r, c, map[0].0[0])
    };
    for (fill, outside) in [(0, 0), (1, 0x7ff7_7ff7)] {
        let (r, c, head) = go(&format!("fill_mode.global.b1024.b32 [%a0], {fill}"));
        none(&r);
        assert_ne!(head, 0);
        for (k, v) in c.iter().enumerate() {
            let want = if k % 8 < 6 && k / 8 < 3 { k as u32 + 1 } else { outside };
            assert_eq!(*v, want, "{k}");
        }
    }
    has(&go("global_stride.global.b1024.b64 [%a0], 0, 40").0, Descriptor);
    has(&go("box_dim.global.b1024.b32 [%a0], 0, 257").0, Descriptor);
    has(&go("box_dim.global.b1024.b32 [%a0], 5, 8").0, Descriptor);
    has(&go("elemtype.global.b1024.b32 [%a0], 15").0, Descriptor);
}

/// Each CTA of a cluster of 2 writes its window; each reads the other's.
fn exchange(arrive: &str, wait: &str) -> String {
    exchange_ending(
        &format!("{arrive} {wait}"),
        "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",
    )
}

fn exchange_ending(between: &str, last: &str) -> String {
    kernel(
        1,
        &format!(
            ".shared .align 16 .b8 s[256];
             mov.u32 %r1, %tid.x; mov.u32 %r2, %cluster_ctarank; shl.b32 %r3, %r1, 2; mov.u32 %r4, s;
             add.u32 %r4, %r4, %r3; mad.lo.u32 %r5, %r2, 100, %r1; st.shared.u32 [%r4], %r5;
             {between}
             xor.b32 %r6, %r2, 1; mapa.shared::cluster.u32 %r7, %r4, %r6; ld.shared::cluster.u32 %r8, [%r7];
             mov.u32 %r9, %ctaid.x; mad.lo.u32 %r9, %r9, 64, %r1; mul.wide.u32 %rd1, %r9, 4; add.s64 %rd2, %a0, %rd1;
             st.global.u32 [%rd2], %r8;
             {last} ret;"
        ),
    )
}

#[test]
fn clusters_share_memory() {
    let mut out = vec![0u32; 256];
    let mut go = |a: &str, w: &str| {
        let p = parse(&exchange(a, w));
        Run::new(&p, 4, 64).cluster(2).array(&mut out).go()
    };
    has(&go("bar.sync 0;", ""), SharedRace);
    none(&go("barrier.cluster.arrive.aligned;", "barrier.cluster.wait.aligned;"));
    for (k, v) in out.iter().enumerate() {
        let (cta, t) = (k / 64, k % 64);
        assert_eq!(*v as usize, ((cta % 2) ^ 1) * 100 + t);
    }
}

/// Thread 0 of each CTA copies the CTA's words to the CTA that follows in its cluster.
#[test]
fn bulk_copies_between_shared_memories_need_a_cluster() {
    let both = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;";
    let p = parse(&kernel(
        1,
        &format!(
            ".shared .align 128 .b8 s[256]; .shared .align 128 .b8 to[256]; .shared .align 8 .b64 bar;
             mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; mov.u32 %r2, %cluster_ctarank;
             @%p1 mbarrier.init.shared::cta.b64 [bar], 1; fence.mbarrier_init.release.cluster;
             shl.b32 %r3, %r1, 2; mov.u32 %r4, s; add.u32 %r4, %r4, %r3; mad.lo.u32 %r5, %r2, 100, %r1;
             st.shared.u32 [%r4], %r5; fence.proxy.async.shared::cta; {both}
             @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 256;
             mov.u32 %r6, %cluster_nctarank; add.u32 %r7, %r2, 1; rem.u32 %r7, %r7, %r6;
             mov.u32 %r8, to; mapa.shared::cluster.u32 %r8, %r8, %r7;
             mov.u32 %r9, bar; mapa.shared::cluster.u32 %r9, %r9, %r7;
             @%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r8], [s], 256, [%r9];
             {WAIT} mov.u32 %r10, to; add.u32 %r10, %r10, %r3; ld.shared.u32 %r11, [%r10];
             mov.u32 %r12, %ctaid.x; mad.lo.u32 %r12, %r12, 64, %r1; mul.wide.u32 %rd1, %r12, 4;
             add.s64 %rd2, %a0, %rd1; st.global.u32 [%rd2], %r11; {both} ret;"
        ),
    ));
    let mut out = vec![0u32; 128];
    none(&Run::new(&p, 2, 64).cluster(2).array(&mut out).go());
    for (k, v) in out.iter().enumerate() {
        assert_eq!(*v as usize, ((k / 64) ^ 1) * 100 + k % 64);
    }
    has(&Run::new(&p, 2, 64).array(&mut out).go(), SharedBounds);
}

#[test]
fn mbarrier_pipelines_between_warps() {
    // Warp 0 produces, warp 1 consumes through one slot, with full and empty mbarriers.
    let k = |empty_wait: &str, full_wait: &str| {
        kernel(
            1,
            &format!(
                ".shared .align 16 .b8 s[128]; .shared .align 8 .b64 full; .shared .align 8 .b64 empty;
                 mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 31; shl.b32 %r3, %r2, 2; mov.u32 %r4, s; add.u32 %r4, %r4, %r3;
                 setp.eq.u32 %p1, %r1, 0; @%p1 mbarrier.init.shared.b64 [full], 32; @%p1 mbarrier.init.shared.b64 [empty], 32;
                 bar.sync 0; mov.u32 %r5, 0; mov.u32 %r6, 0; setp.ge.u32 %p2, %r1, 32; @%p2 bra C;
                 P: and.b32 %r7, %r5, 1; xor.b32 %r7, %r7, 1;
                 {empty_wait}
                 add.u32 %r8, %r5, %r2; st.shared.u32 [%r4], %r8; mbarrier.arrive.shared.b64 %rd1, [full];
                 add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, 6; @%p3 bra P; bra E;
                 C: and.b32 %r7, %r5, 1;
                 {full_wait}
                 ld.shared.u32 %r8, [%r4]; add.u32 %r6, %r6, %r8; mbarrier.arrive.shared.b64 %rd1, [empty];
                 add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, 6; @%p3 bra C;
                 mul.wide.u32 %rd2, %r2, 4; add.s64 %rd3, %a0, %rd2; st.global.u32 [%rd3], %r6;
                 E: ret;"
            ),
        )
    };
    let mut out = vec![0u32; 32];
    let mut go = |e: &str, f: &str, seed: u64| {
        let p = parse(&k(e, f));
        Run::new(&p, 1, 64).seed(seed).array(&mut out).go()
    };
    let e = "WE: mbarrier.test_wait.parity.shared.b64 %p4, [empty], %r7; @!%p4 bra WE;";
    let f = "WF: mbarrier.try_wait.parity.shared.b64 %p4, [full], %r7; @!%p4 bra WF;";
    has(&go(e, "", 0), UninitializedShared);
    for seed in 0..8 {
        none(&go(e, f, seed));
    }
    assert_eq!(out, (0..32).map(|l| 15 + 6 * l).collect::<Vec<u32>>());
}

#[test]
fn a_cta_outlives_accesses_from_others() {
    let both = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;";
    let mut out = vec![0u32; 256];
    let mut go = |last: &str| {
        let p = parse(&exchange_ending(both, last));
        Run::new(&p, 4, 64).cluster(2).array(&mut out).go()
    };
    none(&go(both));
    has(&go(""), SharedRace);
}

#[test]
fn each_wait_of_the_cluster_has_its_arrival() {
    let mut out = vec![0u32; 256];
    let p = parse(&exchange_ending(
        "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; barrier.cluster.wait.aligned;",
        "",
    ));
    has(&Run::new(&p, 4, 64).cluster(2).array(&mut out).go(), ArriveCount);
}
