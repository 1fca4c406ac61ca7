//! Each check fires on a kernel made to break exactly that rule, and not on the kernel next to it that is right.
#![allow(missing_docs)]
mod common;
use common::*;
use tilewright_ptxsim::FindingKind::*;
use tilewright_ptxsim::{FindingKind, Program, Report};

const SHARED: &str = ".shared .align 16 .b8 s[1024];\n";

/// Runs `body` (parameter `p0` is an array of 256 words) on one CTA of `threads`.
fn run(body: &str, threads: u32) -> Report {
    run_grid(body, 1, threads)
}

fn run_grid(body: &str, grid: u32, threads: u32) -> Report {
    let p = parse(&kernel(1, body));
    let mut a = vec![0u32; 256];
    Run::new(&p, grid, threads).array(&mut a).go()
}

fn only(r: &Report, kind: FindingKind) {
    assert_eq!(r.findings.iter().map(|f| f.kind).collect::<Vec<_>>(), [kind], "{:#?}", r.findings);
}

fn has(r: &Report, kind: FindingKind) {
    assert!(r.findings.iter().any(|f| f.kind == kind), "no {kind:?} in {:#?}", r.findings);
}

fn none(r: &Report) {
    assert!(r.findings.is_empty(), "{:#?}", r.findings);
}

const TID: &str =
    "mov.u32 %r1, %tid.x; mul.wide.u32 %rd1, %r1, 4; add.s64 %rd2, %a0, %rd1; shl.b32 %r2, %r1, 2;
    mov.u32 %r3, s; add.u32 %r4, %r3, %r2;";

fn body(s: &str) -> String {
    format!("{SHARED}{TID}\n{s}\nret;")
}

#[test]
fn global_bounds_and_alignment() {
    only(&run(&body("ld.global.u32 %r5, [%rd2+1024];"), 32), GlobalBounds);
    only(&run(&body("st.global.v4.u32 [%rd2+4], {%r1,%r1,%r1,%r1};"), 1), Misaligned);
    only(&run(&body("st.global.u32 [%rd2+-4], %r1;"), 32), GlobalBounds);
    let r = run(&body("ld.global.u32 %r5, [%rd2+900];"), 32);
    only(&r, GlobalBounds);
    // Lane 31 reads the first word past the end.
    assert_eq!(r.findings[0].thread, [31, 0, 0]);
    assert!(
        r.findings[0].message.contains("0 bytes past the end of `arg0` (1024 bytes)"),
        "{}",
        r.findings[0]
    );
    assert!(r.findings[0].text.contains("ld.global.u32 %r5"));
    none(&run(&body("ld.global.u32 %r5, [%rd2+896];"), 32));
}

#[test]
fn stores_to_parameters_are_refused() {
    only(&run("mov.b64 %rd1, p0; st.global.u32 [%rd1], 1; ret;", 1), ReadOnly);
}

#[test]
fn shared_bounds() {
    only(&run(&body("st.shared.u32 [%r4+1000], %r1;"), 32), SharedBounds);
    only(&run(&body("st.shared.v2.u32 [%r4+4], {%r1, %r1};"), 1), Misaligned);
    none(&run(&body("st.shared.u32 [%r4+896], %r1;"), 32));
}

#[test]
fn local_bounds() {
    let l = ".local .align 8 .b8 d[16]; mov.b64 %rd5, d; cvta.local.u64 %rd5, %rd5;";
    only(&run(&body(&format!("{l} st.u32 [%rd5+16], %r1;")), 32), LocalBounds);
    none(&run(
        &body(&format!("{l} st.u32 [%rd5+12], %r1; ld.local.u32 %r5, [d+12]; st.global.u32 [%rd2], %r5;")),
        32,
    ));
}

#[test]
fn uninitialized_registers() {
    only(&run(&body("add.u32 %r6, %r5, 1; st.global.u32 [%rd2], %r6;"), 32), UninitializedRegister);
    // Written by half of the lanes only.
    let half = "setp.lt.u32 %p1, %r1, 16; @%p1 mov.u32 %r5, 1;";
    let r = run(&body(&format!("{half} st.global.u32 [%rd2], %r5;")), 32);
    only(&r, UninitializedRegister);
    assert_eq!(r.findings[0].thread, [16, 0, 0]);
    none(&run(&body(&format!("{half} @%p1 st.global.u32 [%rd2], %r5;")), 32));
    // Copying an undefined value is nothing; using the copy is.
    none(&run(&body(&format!("{half} mov.u32 %r6, %r5; @%p1 st.global.u32 [%rd2], %r6;")), 32));
    only(
        &run(&body(&format!("{half} mov.u32 %r6, %r5; st.global.u32 [%rd2], %r6;")), 32),
        UninitializedRegister,
    );
}

#[test]
fn undefined_values_may_be_computed_with_but_not_used() {
    // The last lanes of a reduction have nothing: what they make of it goes nowhere.
    let k = |lane: u32| {
        body(&format!(
            "setp.lt.u32 %p1, %r1, 4; @%p1 mov.u32 %r5, %r1;
             shfl.sync.bfly.b32 %r6, %r5, 2, 31, -1; add.u32 %r7, %r5, %r6;
             shfl.sync.bfly.b32 %r8, %r7, 1, 31, -1; add.u32 %r9, %r7, %r8;
             setp.eq.u32 %p2, %r1, {lane}; @%p2 st.global.u32 [%rd2], %r9;"
        ))
    };
    for lane in 0..4 {
        none(&run(&k(lane), 32));
    }
    only(&run(&k(4), 32), UninitializedRegister);
    // A shuffle moves what each lane has.
    let k = |from: u32| {
        body(&format!(
            "setp.eq.u32 %p1, %r1, 7; @%p1 mov.u32 %r5, 1; shfl.sync.idx.b32 %r6, %r5, {from}, 31, -1;
             st.global.u32 [%rd2], %r6;"
        ))
    };
    none(&run(&k(7), 32));
    only(&run(&k(6), 32), UninitializedRegister);
    // A branch, a guard, an address are uses.
    let half = "setp.lt.u32 %p1, %r1, 16; @%p1 mov.u32 %r5, 1; setp.eq.u32 %p2, %r5, 1;";
    for used in ["@%p2 bra E; E:", "@%p2 mov.u32 %r6, 1;", "add.u32 %r6, %r4, %r5; st.shared.u8 [%r6], 1;"] {
        only(&run(&body(&format!("{half} {used}")), 32), UninitializedRegister);
    }
}

#[test]
fn uninitialized_halves() {
    // `%h2` is never written: a code generator packs it beside what it wants, and takes what it wants out again.
    let k = |part: &str| {
        body(&format!(
            "mov.b16 %h1, 7; mov.b32 %r5, {{%h1, %h2}}; mov.b32 %r6, %r5; mov.b32 {{%h3, %h4}}, %r6;
             mov.b32 %r7, {{{part}, {part}}}; st.global.u32 [%rd2], %r7;"
        ))
    };
    none(&run(&k("%h3"), 32));
    only(&run(&k("%h4"), 32), UninitializedRegister);
    only(
        &run(&body("mov.b16 %h1, 7; mov.b32 %r5, {%h1, %h2}; st.global.u32 [%rd2], %r5;"), 32),
        UninitializedRegister,
    );
}

#[test]
fn halves_are_computed_apart() {
    // `%h2` is never written. What is done to pairs of halves, or bit by bit, leaves the other half as good as it was.
    let done = [
        "mul.rn.f16x2 %r6, %r5, %r1;",
        "add.u16x2 %r6, %r5, %r5;",
        "and.b32 %r6, %r5, %r1;",
        "setp.lt.u32 %p1, %r1, 16; selp.b32 %r6, %r5, %r1, %p1;",
        "fma.rn.f16x2 %r6, %r5, %r1, %r5; neg.f16x2 %r6, %r6;",
    ];
    for done in done {
        let k = |part: &str| {
            body(&format!(
                "mov.b16 %h1, 7; mov.b32 %r5, {{%h1, %h2}}; {done} mov.b32 {{%h3, %h4}}, %r6;
                 mov.b32 %r7, {{{part}, {part}}}; st.global.u32 [%rd2], %r7;"
            ))
        };
        none(&run(&k("%h3"), 32));
        only(&run(&k("%h4"), 32), UninitializedRegister);
    }
    let whole = "mov.b16 %h1, 7; mov.b32 %r5, {%h1, %h2}; add.u32 %r6, %r5, 1; st.global.u32 [%rd2], %r6;";
    only(&run(&body(whole), 32), UninitializedRegister);
}

#[test]
fn uninitialized_bytes() {
    // `%r5` and `%h2` are never written. What the third operand of `k` takes out of the result is used.
    let k = |made: &str, used: &str| {
        run(&body(&format!("mov.b16 %h1, 7; {made} {used} st.global.u32 [%rd2], %r8;")), 32)
    };
    let byte = |n: u32| format!("prmt.b32 %r8, %r7, %r1, 0x{n}{n}{n}{n};");
    // (what makes %r7, its bytes that are defined)
    let cases = [
        ("mov.b32 %r6, {%h1, %h2}; mul.f16x2 %r7, %r6, %r1;", "01"),
        ("mov.b32 %r6, {%h2, %h1}; fma.rn.bf16x2 %r7, %r1, %r1, %r6;", "23"),
        ("mov.b32 %r6, {%h1, %h2}; add.s16x2 %r7, %r6, %r6;", "01"),
        ("mov.b32 %r6, {%h1, %h2}; add.s32 %r7, %r6, %r1;", ""),
        ("mov.b32 %r6, {%h1, %h2}; cvt.rn.f16x2.f32 %r7, %r6, %r1;", ""),
        ("bfi.b32 %r7, %r5, %r1, 24, 8;", "012"),
        ("bfi.b32 %r7, %r1, %r5, 8, 16;", "12"),
        ("bfi.b32 %r7, %r1, %r5, 8, 12;", "1"),
        ("prmt.b32 %r7, %r5, %r1, 0x4071;", "13"),
        ("mov.b32 %r6, {%h1, %h2}; bfe.u32 %r7, %r6, 8, 16;", "023"),
        ("mov.b32 %r6, {%h1, %h2}; bfe.s32 %r7, %r6, 8, 16;", "0"),
        ("mov.b32 %r6, {%h1, %h2}; bfe.s32 %r7, %r6, 8, 8;", "0123"),
        ("mov.b32 %r6, {%h2, %h1}; shl.b32 %r7, %r6, 8;", "03"),
        ("mov.b32 %r6, {%h2, %h1}; shl.b32 %r7, %r6, 4;", "3"),
        ("mov.b32 %r6, {%h1, %h2}; shr.u32 %r7, %r6, 8;", "03"),
        ("mov.b32 %r6, {%h2, %h1}; shr.s32 %r7, %r6, 20;", "0123"),
        ("mov.b32 %r6, {%h1, %h2}; and.b32 %r7, %r6, 0xff00ff;", "013"),
        ("mov.b32 %r6, {%h1, %h2}; xor.b32 %r7, %r6, %r1;", "01"),
        ("mov.b32 %r6, {%h1, %h2}; not.b32 %r7, %r6;", "01"),
        ("mov.b32 %r6, {%h1, %h2}; cvt.u16.u32 %h3, %r6; cvt.u32.u16 %r7, %h3;", "0123"),
        ("mov.b32 %r6, {%h2, %h1}; cvt.s32.s8 %r7, %r6;", ""),
        ("setp.eq.s32 %p1, %r1, 3; mov.b32 %r6, {%h1, %h2}; selp.b32 %r7, %r1, %r6, %p1;", "01"),
        ("setp.eq.s32 %p1, %r5, 3; selp.b32 %r7, %r1, %r1, %p1;", ""),
    ];
    for (made, defined) in cases {
        for n in 0..4 {
            let report = k(made, &byte(n));
            match defined.contains(&n.to_string()) {
                true => none(&report),
                false => only(&report, UninitializedRegister),
            }
        }
    }
}

#[test]
fn permutes_read_what_they_select() {
    // `%r5` is never written.
    let k = |bytes: &str, selector: &str| {
        body(&format!("prmt.b32 %r6, {bytes}, {selector}; st.global.u32 [%rd2], %r6;"))
    };
    none(&run(&k("%r1, %r5", "0x0123"), 32));
    none(&run(&k("%r5, %r1", "0x4567"), 32));
    only(&run(&k("%r1, %r5", "0x0143"), 32), UninitializedRegister);
    only(&run(&k("%r1, %r5", "%r1"), 32), UninitializedRegister);
}

#[test]
fn uninitialized_shared() {
    only(&run(&body("ld.shared.u32 %r5, [%r4];"), 32), UninitializedShared);
    only(&run(&body("st.shared.u16 [%r4], 1; ld.shared.u32 %r5, [%r4];"), 32), UninitializedShared);
    none(&run(&body("st.shared.u32 [%r4], 1; ld.shared.u32 %r5, [%r4];"), 32));
}

/// Every thread writes its word and reads its neighbour's.
fn neighbour(barrier: &str, distance: u32) -> String {
    body(&format!(
        "st.shared.u32 [%r4], %r1; {barrier} xor.b32 %r5, %r1, {distance}; shl.b32 %r5, %r5, 2; add.u32 %r5, %r5, %r3;
         ld.shared.u32 %r6, [%r5]; st.global.u32 [%rd2], %r6;"
    ))
}

#[test]
fn shared_races_between_warps() {
    has(&run(&neighbour("", 32), 64), SharedRace);
    has(&run(&neighbour("bar.warp.sync -1;", 32), 64), SharedRace);
    none(&run(&neighbour("bar.sync 0;", 32), 64));
    none(&run(&neighbour("barrier.cta.sync 3, 64;", 32), 64));
    none(&run(&neighbour("bar.sync 2, 64;", 32), 64));
}

#[test]
fn shared_races_inside_a_warp() {
    only(&run(&neighbour("", 1), 32), SharedRace);
    none(&run(&neighbour("bar.warp.sync -1;", 1), 32));
    none(&run(&neighbour("bar.sync 0;", 1), 32));
    // A partial warp sync orders its members only.
    let part = |mask: &str| {
        neighbour(&format!("and.b32 %r9, %r1, 30; shl.b32 %r9, 3, %r9; bar.warp.sync {mask};"), 1)
    };
    none(&run(&part("%r9"), 32));
}

#[test]
fn write_after_read_races() {
    let k = |b: &str| {
        body(&format!(
            "st.shared.u32 [%r4], %r1; bar.sync 0; xor.b32 %r5, %r1, 32; shl.b32 %r5, %r5, 2; add.u32 %r5, %r5, %r3;
             ld.shared.u32 %r6, [%r5]; {b} st.shared.u32 [%r4], %r6;"
        ))
    };
    only(&run(&k(""), 64), SharedRace);
    none(&run(&k("bar.sync 0;"), 64));
}

#[test]
fn write_write_races_but_not_of_equal_values() {
    only(&run(&body("st.shared.u32 [s], %r1;"), 64), SharedRace);
    none(&run(&body("st.shared.u32 [s], 7;"), 64));
    only(&run_grid(&body("mov.u32 %r5, %ctaid.x; st.global.u32 [%a0], %r5;"), 2, 1), GlobalRace);
    none(&run_grid(&body("st.global.u32 [%a0], 7;"), 2, 1));
}

#[test]
fn many_readers_then_a_writer() {
    let k = |b: &str| {
        body(&format!(
            "st.shared.u32 [%r4], %r1; bar.sync 0; ld.shared.u32 %r6, [s]; {b} setp.eq.u32 %p1, %r1, 96;
             @%p1 st.shared.u32 [s], 5; st.global.u32 [%rd2], %r6;"
        ))
    };
    has(&run(&k(""), 128), SharedRace);
    none(&run(&k("bar.sync 0;"), 128));
}

#[test]
fn producers_and_consumers_on_named_barriers() {
    // Warp 0 fills, warp 1 reads: full is barrier 1, empty is barrier 2.
    let k = |full_p: &str, full_c: &str, empty_p: &str, empty_c: &str| {
        body(&format!(
            "mov.u32 %r7, 0; setp.ge.u32 %p1, %r1, 32; @%p1 bra C;
             P: {empty_p} st.shared.u32 [%r4], %r7; {full_p} add.u32 %r7, %r7, 1; setp.lt.u32 %p2, %r7, 4; @%p2 bra P;
             {empty_p} bra E;
             C: bar.arrive 2, 64;
             L: {full_c} ld.shared.u32 %r8, [%r4+-128]; {empty_c} add.u32 %r7, %r7, 1; setp.lt.u32 %p2, %r7, 4;
             @%p2 bra L;
             E: "
        ))
    };
    none(&run(&k("bar.arrive 1, 64;", "bar.sync 1, 64;", "bar.sync 2, 64;", "bar.arrive 2, 64;"), 64));
    has(&run(&k("", "", "bar.sync 2, 64;", "bar.arrive 2, 64;"), 64), SharedRace);
}

#[test]
fn global_races() {
    let k = |b: &str| {
        body(&format!(
            "st.global.u32 [%rd2], %r1; {b} xor.b32 %r5, %r1, 32; mul.wide.u32 %rd3, %r5, 4; add.s64 %rd3, %a0, %rd3;
             ld.global.u32 %r6, [%rd3];"
        ))
    };
    has(&run(&k(""), 64), GlobalRace);
    none(&run(&k("bar.sync 0;"), 64));
    // Other CTAs are not ordered by a barrier; each here reads what the others write.
    let r = run_grid(&k("bar.sync 0;"), 2, 64);
    assert!(r.findings.iter().any(|f| f.kind == GlobalRace), "{:#?}", r.findings);
    // Bytes of one word by different threads are no race.
    none(&run(
        "mov.u32 %r1, %tid.x; cvt.u64.u32 %rd1, %r1; add.s64 %rd2, %a0, %rd1; st.global.u8 [%rd2], %r1; ret;",
        64,
    ));
    none(&run_grid(&body("atom.global.add.u32 %r5, [%a0], 1; red.global.add.u32 [%a0], 1;"), 4, 64));
    // A plain read next to atomics is one.
    let r = run_grid(&body("red.global.add.u32 [%a0], 1; ld.global.u32 %r5, [%a0];"), 2, 32);
    assert!(r.findings.iter().any(|f| f.kind == GlobalRace), "{:#?}", r.findings);
}

#[test]
fn a_writer_of_global_memory_is_ordered_after_every_reader() {
    // All warps read word 0. Warp 3 is told by `tell` that some of them are done, and writes it.
    let k = |tell: &str, told: &str| {
        body(&format!(
            "ld.global.u32 %r5, [%a0]; setp.ge.u32 %p1, %r1, 96; @%p1 bra W; {tell} bra E; W: {told} st.global.u32 [%a0], 5; E:"
        ))
    };
    none(&run(&k("bar.arrive 1, 128;", "bar.sync 1, 128;"), 128));
    // Each of the others in turn does not tell: the readers before and after it are not enough.
    for silent in [0, 32, 64] {
        let tell =
            format!("and.b32 %r6, %r1, 96; setp.eq.u32 %p2, %r6, {silent}; @%p2 bra E; bar.arrive 1, 96;");
        has(&run(&k(&tell, "bar.sync 1, 96;"), 128), GlobalRace);
    }
}

#[test]
fn a_plain_write_is_not_excused_by_an_atomic_after_it() {
    // Thread 0 sets the counter, counts, and so does everybody.
    let k = |b: &str| {
        body(&format!(
            "setp.eq.u32 %p1, %r1, 0; @%p1 st.global.u32 [%a0], 0; bar.warp.sync -1; {b} red.global.add.u32 [%a0], 1;"
        ))
    };
    has(&run(&k(""), 64), GlobalRace);
    none(&run(&k("bar.sync 0;"), 64));
    let k = |b: &str| {
        body(&format!(
            "setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [s], 0; bar.warp.sync -1; {b} red.shared.add.u32 [s], 1;"
        ))
    };
    has(&run(&k(""), 64), SharedRace);
    none(&run(&k("bar.sync 0;"), 64));
}

/// CTA 0 writes data and raises a flag; CTA 1 waits for the flag and reads the data.
fn message(release: &str, acquire: &str) -> String {
    format!(
        "mov.u32 %r1, %ctaid.x; setp.ne.u32 %p1, %r1, 0; @%p1 bra R;
         st.global.u32 [%a0+64], 42; {release} bra E;
         R: {acquire} setp.eq.u32 %p2, %r2, 0; @%p2 bra R; ACQ ld.global.u32 %r3, [%a0+64]; st.global.u32 [%a0+128], %r3;
         E: ret;"
    )
}

#[test]
fn messages_between_ctas() {
    let go = |rel: &str, acq: &str, after: &str| run_grid(&message(rel, acq).replace("ACQ", after), 2, 1);
    none(&go("st.release.gpu.global.u32 [%a0], 1;", "ld.acquire.gpu.global.u32 %r2, [%a0];", ""));
    none(&go(
        "fence.acq_rel.gpu; st.relaxed.gpu.global.u32 [%a0], 1;",
        "ld.relaxed.gpu.global.u32 %r2, [%a0];",
        "fence.acq_rel.gpu;",
    ));
    none(&go(
        "membar.gl; atom.global.exch.b32 %r9, [%a0], 1;",
        "ld.volatile.global.u32 %r2, [%a0];",
        "membar.gl;",
    ));
    only(&go("st.relaxed.gpu.global.u32 [%a0], 1;", "ld.acquire.gpu.global.u32 %r2, [%a0];", ""), GlobalRace);
    only(&go("st.release.gpu.global.u32 [%a0], 1;", "ld.relaxed.gpu.global.u32 %r2, [%a0];", ""), GlobalRace);
    // A flag of CTA scope is no flag for another CTA.
    let r = go("st.release.cta.global.u32 [%a0], 1;", "ld.acquire.cta.global.u32 %r2, [%a0];", "");
    assert!(r.findings.iter().any(|f| f.kind == GlobalRace), "{:#?}", r.findings);
}

#[test]
fn divergent_barriers() {
    only(&run(&body("setp.lt.u32 %p1, %r1, 16; @%p1 bar.sync 0;"), 32), DivergentBarrier);
    let arms = "setp.lt.u32 %p1, %r1, 16; @%p1 bra A; bar.sync 0; bra B; A: bar.sync 0; B:";
    has(&run(&body(arms), 32), DivergentBarrier);
    none(&run(&body("setp.lt.u32 %p1, %r1, 32; @%p1 bra A; bar.sync 0; bra B; A: bar.sync 0; B:"), 64));
}

#[test]
fn deadlocks() {
    let r = run(&body("setp.lt.u32 %p1, %r1, 32; @%p1 bar.sync 1, 64;"), 64);
    only(&r, Deadlock);
    assert!(r.findings[0].message.contains("barrier 1, where 32 of 64 threads"), "{}", r.findings[0]);
    only(
        &run(
            &body("shfl.sync.idx.b32 %r5, %r1, 0, 31, -1;")
                .replace("shfl", "setp.lt.u32 %p1, %r1, 16; @!%p1 bra X; shfl")
                .replace("\nret;", "X: bar.warp.sync -1; ret;"),
            32,
        ),
        Deadlock,
    );
}

/// Threads of several units, some of which wait for a word that nobody writes: found when all are where they were, whatever the limit of rounds.
#[test]
fn standstills() {
    // Units 1 to 3 wait for the word of the one ahead; unit 0 ends, or writes first.
    let waits = |first: &str| {
        let p = parse(&kernel(
            1,
            &body(&format!(
                "mov.u32 %r5, %ctaid.x; setp.eq.u32 %p1, %r5, 0; @%p1 bra FIRST;
                 mov.u32 %r7, 0; sub.u32 %r6, %r5, 1; mul.wide.u32 %rd3, %r6, 4; add.s64 %rd4, %a0, %rd3;
                 W: add.u32 %r7, %r7, 1; and.b32 %r7, %r7, 63; ld.acquire.gpu.global.u32 %r8, [%rd4]; setp.eq.u32 %p2, %r8, 0; @%p2 bra W;
                 add.s64 %rd4, %rd4, 4; st.release.gpu.global.u32 [%rd4], 1; bra E;
                 FIRST: {first} E:"
            )),
        ));
        let mut a = vec![0u32; 256];
        let mut run = Run::new(&p, 4, 1).array(&mut a);
        run.options.wait_rounds = u32::MAX;
        let report = run.go();
        (report, a)
    };
    let (report, _) = waits("");
    assert!(!report.findings.is_empty() && report.findings.iter().all(|f| f.kind == Deadlock), "{report:#?}");
    let (report, a) = waits("st.release.gpu.global.u32 [%a0], 1;");
    none(&report);
    assert_eq!(a[..4], [1; 4]);
}

/// Programs whose first thread tries for a lock, tells the others in shared memory, and waits with them at barriers.
fn lock(extra: &str, seed: u64, held: u32) -> (Report, Vec<u32>) {
    let p = parse(&kernel(
        1,
        &body(&format!(
            "setp.eq.u32 %p1, %r1, 0; mov.u32 %r9, 0; st.shared.u32 [%r3+8], %r9; mov.u32 %r5, %ctaid.x; bar.sync 0;
             W: {extra} @%p1 atom.acquire.gpu.global.cas.b32 %r6, [%a0], 0, 1; @%p1 st.shared.u32 [%r3], %r6; bar.sync 0;
             ld.shared.u32 %r7, [%r3]; bar.sync 0; setp.ne.u32 %p2, %r7, 0; @%p2 bra W;
             @%p1 ld.relaxed.gpu.global.u32 %r8, [%a0+4]; @%p1 add.u32 %r8, %r8, 1; @%p1 st.relaxed.gpu.global.u32 [%a0+4], %r8;
             @%p1 atom.release.gpu.global.exch.b32 %r8, [%a0], 0; E:"
        )),
    ));
    let mut a = vec![0u32; 256];
    a[0] = held;
    let report = Run::new(&p, 4, 64).array(&mut a).seed(seed).go();
    (report, a)
}

#[test]
fn locks_that_nobody_gives_back() {
    let (report, _) = lock("", 0, 1);
    assert!(!report.findings.is_empty() && report.findings.iter().all(|f| f.kind == Deadlock), "{report:#?}");
    assert!(
        report.findings.iter().any(|f| f.message.contains("nothing left running brings about")),
        "{report:#?}"
    );
    // A program that adds nothing to a word, or writes what is there.
    let (report, _) = lock("atom.relaxed.gpu.global.add.u32 %r10, [%a0+8], 0;", 0, 1);
    assert!(report.findings.iter().any(|f| f.kind == Deadlock), "{report:#?}");
    for seed in 0..4 {
        let (report, a) = lock("", seed, 0);
        none(&report);
        assert_eq!(a[..2], [0, 4]);
    }
}

/// Loops that come back to the same registers, and to the same failed exchange, but end.
#[test]
fn locks_that_something_else_opens() {
    let ends = |what: &str| {
        let (report, a) = lock(what, 0, 1);
        none(&report);
        assert_eq!(a[0], 1);
    };
    // The turns are counted in shared memory.
    ends(
        "@%p1 ld.shared.u32 %r8, [%r3+8]; @%p1 add.u32 %r8, %r8, 1; @%p1 st.shared.u32 [%r3+8], %r8; bar.sync 0; ld.shared.u32 %r8, [%r3+8];
         setp.gt.u32 %p3, %r8, 3000; mov.u32 %r8, 0; @%p3 bra E;",
    );
    // The clock is looked at.
    ends(
        "mov.u64 %rd9, %globaltimer; setp.gt.u64 %p3, %rd9, 60000; mov.u64 %rd9, 0; bar.red.or.pred %p3, 0, %p3; @%p3 bra E;",
    );
    // Another program, which computes for long first, opens it.
    let opens = "setp.ne.u32 %p3, %r5, 0; @%p3 bra N; mov.u32 %r11, 0; C: add.u32 %r11, %r11, 1; bar.sync 0; setp.lt.u32 %p3, %r11, 20000; @%p3 bra C;
         @%p1 atom.release.gpu.global.exch.b32 %r8, [%a0], 0; N:";
    let (report, a) = lock(opens, 0, 1);
    none(&report);
    assert_eq!(a[..2], [0, 4]);
}

#[test]
fn arrive_counts() {
    only(&run(&body("bar.sync 1, 48;"), 64), ArriveCount);
    let two = "setp.lt.u32 %p1, %r1, 32; @%p1 bra A; bar.sync 1, 96; bra B; A: bar.sync 1, 64; B:";
    has(&run(&body(two), 96), ArriveCount);
}

/// Each lane copies a word from the array asynchronously; then `wait`, then a read of it, or of the neighbour's.
fn copied(wait: &str, distance: u32) -> String {
    body(&format!(
        "cp.async.ca.shared.global [%r4], [%rd2], 4; cp.async.commit_group; {wait}
         xor.b32 %r5, %r1, {distance}; shl.b32 %r5, %r5, 2; add.u32 %r5, %r5, %r3; ld.shared.u32 %r6, [%r5];"
    ))
}

#[test]
fn asynchronous_copies() {
    only(&run(&copied("", 0), 32), AsyncBeforeWait);
    only(&run(&copied("cp.async.wait_group 1;", 0), 32), AsyncBeforeWait);
    none(&run(&copied("cp.async.wait_group 0;", 0), 32));
    none(&run(&copied("cp.async.wait_all;", 0), 32));
    // A wait is the thread's own: others need a barrier after it.
    has(&run(&copied("cp.async.wait_group 0;", 32), 64), SharedRace);
    none(&run(&copied("cp.async.wait_group 0; bar.sync 0;", 32), 64));
    let r = run(&copied("bar.sync 0;", 32), 64);
    assert!(r.findings.iter().any(|f| f.kind == AsyncBeforeWait), "{:#?}", r.findings);
    // Until then nobody may store there either, the thread itself included.
    for store in ["st.shared.u32 [%r4], %r1;", "atom.shared.add.u32 %r7, [%r4], 1;"] {
        let early = run(&copied(&format!("{store} cp.async.wait_group 0;"), 0), 32);
        only(&early, AsyncBeforeWait);
        assert!(early.findings[0].text.contains(store), "{}", early.findings[0]);
        none(&run(&copied(&format!("cp.async.wait_group 0; {store}"), 0), 32));
    }
    // It reads its source until the wait.
    only(
        &run(&copied("mov.u32 %r7, 9; st.global.u32 [%rd2], %r7; cp.async.wait_group 0;", 0), 32),
        GlobalRace,
    );
    none(&run(&copied("cp.async.wait_group 0; mov.u32 %r7, 9; st.global.u32 [%rd2], %r7;", 0), 32));
}

#[test]
fn shuffles_from_absent_lanes() {
    only(
        &run(&body("setp.lt.u32 %p1, %r1, 16; @%p1 shfl.sync.bfly.b32 %r5, %r1, 16, 31, 65535;"), 32),
        WarpSync,
    );
}

#[test]
fn every_barrier_of_a_matmul_matters() {
    let text = include_str!("cuda/matmul.ptx");
    let barriers: Vec<usize> = text.match_indices("bar.sync").map(|m| m.0).collect();
    assert!(barriers.len() >= 2);
    let go = |p: &Program| {
        let (mut a, mut b) = (vec![half::f16::ONE; 64 * 128], vec![half::f16::ONE; 128 * 64]);
        let mut c = vec![0f32; 64 * 64];
        Run::new(p, 1, 128).array(&mut a).array(&mut b).array(&mut c).int(64).int(64).int(128).go()
    };
    none(&go(&parse(text)));
    for at in barriers {
        let end = at + text[at..].find(';').expect("an end") + 1;
        let cut = format!("{}{}", &text[..at], &text[end..]);
        let r = go(&parse(&cut));
        assert!(
            r.findings.iter().any(|f| matches!(f.kind, SharedRace | AsyncBeforeWait)),
            "the barrier at byte {at} can go: {:#?}",
            r.findings
        );
        let f = &r.findings[0];
        assert!(f.source.as_ref().is_some_and(|s| s.file == "matmul.cu" && s.line > 0), "{f}");
    }
    // Without the waits, reads come before the copies are done.
    let r = go(&parse(&text.replace("cp.async.wait_group 0;", "").replace("cp.async.wait_group 1;", "")));
    assert!(r.findings.iter().any(|f| f.kind == AsyncBeforeWait), "{:#?}", r.findings);
}

/// Warp 0 writes only if it leaves the barrier first: plain order never shows it, some seeds do, the same each time.
#[test]
fn seeds_find_races_that_depend_on_order_and_repeat_them() {
    let p = parse(&kernel(
        0,
        ".shared .align 4 .b8 flag[4]; .shared .align 4 .b8 data[4]; mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 32;
         setp.eq.u32 %p2, %r1, 0; @%p1 st.shared.u32 [flag], 0; bar.sync 0;
         @%p1 st.shared.u32 [data], 7; @%p1 atom.relaxed.cta.shared.exch.b32 %r2, [flag], 1;
         mov.u32 %r3, 1; @%p2 atom.relaxed.cta.shared.or.b32 %r3, [flag], 0; setp.eq.and.u32 %p3, %r3, 0, %p2;
         @%p3 st.shared.u32 [data], 9; ret;",
    ));
    let found = |seed: u64| Run::new(&p, 1, 64).seed(seed).go().findings;
    assert!(found(0).is_empty());
    let all: Vec<_> = (0..16).map(found).collect();
    assert!(all.iter().any(|f| f.iter().any(|f| f.kind == SharedRace)), "no seed finds the race");
    for (seed, before) in (0..).zip(&all) {
        assert_eq!(&found(seed), before, "seed {seed}");
    }
}
