//! The rules of mbarriers, of the cluster's barrier and of `setmaxnreg`: each broken alone, beside a kernel that keeps it.
#![allow(missing_docs)]
mod common;
use common::*;
use tilewright_ptxsim::FindingKind::*;
use tilewright_ptxsim::{FindingKind, Report};

fn run(body: &str, threads: u32, cluster: u32) -> (Report, Vec<u32>) {
    let p = parse(&kernel(
        1,
        &format!(
            ".shared .align 128 .b8 s[1024]; .shared .align 8 .b64 bar;
             mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; shr.u32 %r2, %r1, 5; setp.eq.u32 %p2, %r2, 0;
             mov.u32 %r4, s; mad.lo.u32 %r4, %r1, 4, %r4; mul.wide.u32 %rd1, %r1, 4; add.s64 %rd2, %a0, %rd1;
             {body} ret;"
        ),
    ));
    let mut out = vec![0u32; 256];
    let r = Run::new(&p, cluster, threads).cluster(cluster).array(&mut out).go();
    (r, out)
}

fn finds(body: &str, threads: u32, kind: FindingKind) -> Report {
    let (r, _) = run(body, threads, 1);
    assert!(r.findings.iter().any(|f| f.kind == kind), "no {kind:?} in {:#?}", r.findings);
    r
}

fn clean(body: &str, threads: u32) -> Vec<u32> {
    let (r, out) = run(body, threads, 1);
    assert!(r.findings.is_empty(), "{:#?}", r.findings);
    out
}

const WAIT: &str = "W: mbarrier.try_wait.parity.shared::cta.b64 %p3, [bar], 0; @!%p3 bra W;";

#[test]
fn others_use_an_mbarrier_after_its_initialization() {
    let k = |order: &str| {
        format!(
            "@%p1 mbarrier.init.shared::cta.b64 [bar], 64; {order} mbarrier.arrive.shared::cta.b64 %rd5, [bar]; {WAIT}"
        )
    };
    let r = finds(&k(""), 64, SharedRace);
    assert!(r.findings[0].message.contains("initialized"), "{}", r.findings[0]);
    // Nor does an order inside the warp help the other one.
    finds(&k("bar.warp.sync -1;"), 64, SharedRace);
    clean(&k("bar.sync 0;"), 64);
    clean(&k("bar.warp.sync -1;").replace(", 64;", ", 32;"), 32);
}

/// A producer that never waits would be done with three phases before the consumer looks, which then sees the first one over.
#[test]
fn who_arrives_does_not_run_ahead_of_those_that_wait_for_it() {
    let k = |again: &str| {
        let put = "st.shared.u32 [s], %r1; mbarrier.arrive.shared::cta.b64 _, [bar];";
        format!(
            "@%p1 mbarrier.init.shared::cta.b64 [bar], 1; bar.sync 0; @!%p2 bra C;
             @!%p1 bra E; {put} {again} bra E; C: {WAIT} ld.shared.u32 %r5, [s]; E:",
            again = again.replace("PUT", put)
        )
    };
    clean(&k(""), 64);
    finds(&k("PUT PUT"), 64, SharedRace);
}

#[test]
fn copies_signal_an_mbarrier_that_their_proxy_sees() {
    let k = |fence: &str, later: &str| {
        format!(
            "@%p1 mbarrier.init.shared::cta.b64 [bar], 1; {fence} bar.sync 0; {later}
             @%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 512;
             @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%a0], 512, [bar];
             {WAIT} ld.shared.u32 %r5, [%r4];"
        )
    };
    finds(&k("", ""), 128, ProxyFence);
    clean(&k("fence.mbarrier_init.release.cluster;", ""), 128);
    clean(&k("@%p1 fence.mbarrier_init.release.cluster;", ""), 128);
    clean(&k("@%p1 fence.proxy.async.shared::cta;", ""), 128);
    clean(&k("", "@%p1 fence.proxy.async;"), 128);
    // The fence of another thread, with no order between, is not the initializing one's.
    finds(&k("setp.eq.u32 %p5, %r1, 1; @%p5 fence.mbarrier_init.release.cluster;", ""), 128, ProxyFence);
}

#[test]
fn an_mbarrier_is_left_alone_before_it_is_invalidated_or_its_place_used() {
    let k = |order: &str, end: &str| {
        format!(
            "@%p1 mbarrier.init.shared::cta.b64 [bar], 64; bar.sync 0;
             mbarrier.arrive.shared::cta.b64 %rd5, [bar]; {WAIT} {order} {end}"
        )
    };
    let end = "@%p1 mbarrier.inval.shared::cta.b64 [bar];";
    finds(&k("", end), 64, SharedRace);
    clean(&k("bar.sync 0;", end), 64);
    // Another one in its place.
    let again = "@%p1 mbarrier.init.shared::cta.b64 [bar], 1;";
    finds(&k("bar.sync 0;", again), 64, ArriveCount);
    clean(&k("bar.sync 0;", &format!("{end} {again}")), 64);
    let store = "@%p1 st.shared.u64 [bar], %rd5;";
    finds(&k("", store), 64, SharedRace);
    clean(&k("bar.sync 0;", store), 64);
    finds(
        &k("bar.sync 0; @%p1 mbarrier.inval.shared::cta.b64 [bar]; bar.sync 0;", WAIT)
            .replacen("W:", "V:", 1)
            .replacen("bra W", "bra V", 1),
        64,
        ArriveCount,
    );
}

#[test]
fn arrivals_are_counted() {
    let k = |body: &str| format!("@%p1 mbarrier.init.shared::cta.b64 [bar], 2; bar.sync 0; {body}");
    finds(&k("@%p1 mbarrier.arrive.shared::cta.b64 _, [bar], 3;"), 32, ArriveCount);
    finds(&k("@%p1 mbarrier.arrive.shared::cta.b64 _, [bar], 0;"), 32, ArriveCount);
    finds("@%p1 mbarrier.init.shared::cta.b64 [bar], 0;", 32, ArriveCount);
    finds("@%p1 mbarrier.init.shared::cta.b64 [bar], 1048576;", 32, ArriveCount);
    // `.noComplete` promises that the phase goes on.
    clean(&k("@%p1 mbarrier.arrive.noComplete.shared::cta.b64 %rd5, [bar], 1;"), 32);
    finds(&k("@%p1 mbarrier.arrive.noComplete.shared::cta.b64 %rd5, [bar], 2;"), 32, ArriveCount);
    // More bytes than an mbarrier counts.
    let expect = |n: u32| k(&format!("@%p1 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], {n};"));
    clean(&expect(1048575), 32);
    finds(&expect(1048576), 32, ArriveCount);
    // Too few arrivals: nobody wakes.
    finds(&k(&format!("@%p1 mbarrier.arrive.shared::cta.b64 _, [bar]; {WAIT}")), 32, Deadlock);
}

#[test]
fn the_pending_count_of_a_state() {
    let out = clean(
        "@%p1 mbarrier.init.shared::cta.b64 [bar], 7; bar.sync 0; setp.ne.u32 %p5, %r1, 0; @%p5 bra E;
         mbarrier.arrive.shared::cta.b64 %rd5, [bar]; mbarrier.arrive.shared::cta.b64 %rd6, [bar], 4;
         mbarrier.arrive.shared::cta.b64 %rd7, [bar], 2; mbarrier.arrive.shared::cta.b64 %rd8, [bar];
         mbarrier.pending_count.b64 %r5, %rd5; mbarrier.pending_count.b64 %r6, %rd6;
         mbarrier.pending_count.b64 %r7, %rd7; mbarrier.pending_count.b64 %r8, %rd8;
         mbarrier.test_wait.shared::cta.b64 %p6, [bar], %rd7; mbarrier.test_wait.shared::cta.b64 %p7, [bar], %rd8;
         selp.u32 %r9, 1, 0, %p6; selp.u32 %r10, 1, 0, %p7;
         st.global.v4.u32 [%a0], {%r5, %r6, %r7, %r8}; st.global.v2.u32 [%a0+16], {%r9, %r10}; E:",
        32,
    );
    assert_eq!(out[..6], [7, 6, 2, 7, 1, 0]);
}

#[test]
fn a_relaxed_arrival_at_the_cluster_barrier_publishes_what_was_fenced() {
    let k = |fence: &str, sem: &str| {
        format!(
            "st.shared.u32 [%r4], %r1; {fence} barrier.cluster.arrive{sem}.aligned; barrier.cluster.wait.aligned;
             mov.u32 %r5, %cluster_ctarank; xor.b32 %r5, %r5, 1; mapa.shared::cluster.u32 %r6, %r4, %r5;
             ld.shared::cluster.u32 %r7, [%r6]; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
        )
    };
    let go = |fence: &str, sem: &str| run(&k(fence, sem), 32, 2).0;
    let r = go("", ".relaxed");
    assert!(r.findings.iter().any(|f| f.kind == SharedRace), "{:#?}", r.findings);
    for (fence, sem) in [("", ""), ("", ".release"), ("fence.acq_rel.cluster;", ".relaxed")] {
        let r = go(fence, sem);
        assert!(r.findings.is_empty(), "{:#?}", r.findings);
    }
}

#[test]
fn registers_are_given_and_taken_by_whole_warp_groups() {
    let set = |n: u32, what: &str| format!("setmaxnreg.{what}.sync.aligned.u32 {n};");
    clean(&(set(40, "dec") + &set(232, "inc")), 128);
    // The halves of a kernel by warps go different ways; each is whole.
    let halves =
        format!("setp.lt.u32 %p5, %r1, 128; @%p5 bra P; {} bra E; P: {} E:", set(240, "inc"), set(24, "dec"));
    clean(&halves, 256);
    finds(&format!("@!%p2 bra E; {} E:", set(40, "dec")), 128, WarpSync);
    finds(&set(40, "dec"), 96, WarpSync);
    finds(&(set(40, "dec") + &set(80, "dec")), 128, WarpSync);
    finds(&(set(80, "inc") + &set(40, "inc")), 128, WarpSync);
    for n in [16, 44, 264] {
        let e = match tilewright_ptxsim::Program::parse(&kernel(0, &set(n, "dec"))) {
            Err(e) => e,
            Ok(p) => p.params("k").expect_err("a wrong number"),
        };
        assert!(e.to_string().contains("multiple of 8 from 24 to 256"), "{e}");
    }
}

/// A CTA has the registers it started with: who takes more waits until others have given them back.
#[test]
fn registers_come_from_those_that_give_them_back() {
    let go = |directives: &str, first: &str, second: &str| {
        let body = format!(
            "mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 128; @%p1 bra P; {second} ret; P: {first} ret;"
        );
        let text = kernel(0, &body).replacen(") {", &format!(") {directives} {{"), 1);
        Run::new(&parse(&text), 2, 256).go()
    };
    let inc = |n: u32| format!("setmaxnreg.inc.sync.aligned.u32 {n};");
    let dec = |n: u32| format!("setmaxnreg.dec.sync.aligned.u32 {n};");
    for directives in [".maxnreg 128", ".maxntid 256 .minnctapersm 2", ".reqntid 256, 1, 1 .maxnreg 132"] {
        // Whoever comes first.
        for (a, b) in [(inc(232), dec(24)), (dec(24), inc(232))] {
            let r = go(directives, &a, &b);
            assert!(r.findings.is_empty(), "{:#?}", r.findings);
        }
        let r = go(directives, &inc(240), &dec(24));
        assert_eq!(r.findings.len(), 1, "{:#?}", r.findings);
        assert_eq!(r.findings[0].kind, Deadlock);
        // Four warps gave 104 each, of which three took 112.
        let want = "waits for 112 registers more a thread, and what is left of those that other warps gave back is 80";
        assert_eq!(r.findings[0].message, want);
        // What others still have they don't give.
        assert_eq!(go(directives, &inc(136), "").findings[0].kind, Deadlock);
        // They start with 128.
        assert_eq!(go(directives, &inc(120), "").findings[0].kind, WarpSync);
    }
    // Nothing says how many there are.
    assert!(go("", &inc(240), "").findings.is_empty());
}

/// An elected lane arrives for its warp: what the others did is told only behind a `bar.warp.sync`, what it did itself always.
#[test]
fn a_lane_speaks_for_itself_until_its_warp_has_met() {
    let k = |who: &str, meet: &str| {
        format!(
            "@%p1 mbarrier.init.shared::cta.b64 [bar], 1; bar.sync 0; @!%p2 bra C;
             {who} st.shared.u32 [%r4], %r1; {meet} @%p1 mbarrier.arrive.shared::cta.b64 _, [bar]; bra E;
             C: {WAIT} {who} ld.shared.u32 %r5, [%r4+-128]; E:"
        )
        .replace("C: W:", "C:\nW:")
    };
    finds(&k("", ""), 64, SharedRace);
    clean(&k("", "bar.warp.sync -1;"), 64);
    // The lanes that meet are those that speak.
    finds(&k("", "setp.lt.u32 %p4, %r1, 16; @%p4 bar.warp.sync 0xffff;"), 64, SharedRace);
    let own = k("@%p1", "").replace("@%p1 ld.shared", "setp.eq.u32 %p5, %r1, 32; @%p5 ld.shared");
    clean(&own, 64);
}
