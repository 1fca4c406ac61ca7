//! Functions that are called, not inlined: their frames, and what goes wrong with them.
#![allow(missing_docs)]
mod common;
use common::*;
use tilewright_ptxsim::{FindingKind, HostFunction, Program};

/// A module with `functions` before an entry of one pointer parameter, in `%rd0`.
fn module(functions: &str, body: &str) -> Program {
    parse(&format!(
        ".version 8.4\n.target sm_90a\n.address_size 64\n{functions}\n.visible .entry k(.param .u64 p) {{\n\
         .reg .pred %p<8>; .reg .b32 %r<16>; .reg .b64 %rd<8>;\nld.param.u64 %rd0, [p];\n{body}\nret;\n}}\n"
    ))
}

const SUM: &str = "
.func (.param .b32 result) sum(.param .b32 n) {
    .reg .pred %p; .reg .b32 %r<4>;
    ld.param.b32 %r0, [n];
    mov.b32 %r2, 0;
    setp.eq.u32 %p, %r0, 0;
    @%p bra DONE;
    sub.u32 %r1, %r0, 1;
    { .param .b32 a; .param .b32 r; st.param.b32 [a], %r1; call (r), sum, (a); ld.param.b32 %r2, [r]; }
    add.u32 %r2, %r2, %r0;
DONE:
    st.param.b32 [result], %r2;
    ret;
}";

fn sum_to(n: &str) -> String {
    format!(
        "mov.u32 %r0, %tid.x; mad.wide.u32 %rd1, %r0, 4, %rd0; {n}
         {{ .param .b32 a; .param .b32 r; st.param.b32 [a], %r1; call (r), sum, (a); ld.param.b32 %r2, [r]; }}
         st.global.u32 [%rd1], %r2;"
    )
}

#[test]
fn lanes_recurse_to_their_own_depths_and_meet_again() {
    // After the calls all lanes are one fragment: the store is one warp instruction.
    let p = module(SUM, &sum_to("mov.u32 %r1, %r0;"));
    let mut out = vec![0u32; 32];
    let r = Run::new(&p, 1, 32).array(&mut out).clean();
    assert!((0..32).all(|n| out[n as usize] == n * (n + 1) / 2));
    assert_eq!(r.counters.opcodes["st.global.u32"], 1);
    assert_eq!(r.counters.opcodes["call"], 1 + 31);
}

#[test]
fn the_stack_ends() {
    let p = module(SUM, &sum_to("mov.u32 %r1, 100000;"));
    let mut out = vec![0u32; 32];
    let r = Run::new(&p, 1, 32).array(&mut out).finds(FindingKind::LocalBounds);
    assert!(r.findings[0].message.contains("the stack of 32768 bytes is full"), "{}", r.findings[0]);
}

const TWO: &str = "
.func f(.param .b64 at) { .reg .b64 %rd; ld.param.b64 %rd, [at]; st.global.u32 [%rd], 1; ret; }
.func g(.param .b64 at) { .reg .b64 %rd; ld.param.b64 %rd, [at]; st.global.u32 [%rd], 2; ret; }
.global .b64 table[2] = {f, g};";

#[test]
fn each_lane_calls_its_own() {
    let call = "mov.u32 %r0, %tid.x; mad.wide.u32 %rd1, %r0, 4, %rd0; and.b32 %r1, %r0, 1; mov.b64 %rd2, table;
        mad.wide.u32 %rd2, %r1, 8, %rd2; ld.global.b64 %rd3, [%rd2]; setp.lt.u32 %p0, %r0, 20;
        { .param .b64 a; st.param.b64 [a], %rd1; proto: .callprototype _ (.param .b64 _); @%p0 call %rd3, (a), proto; }";
    let mut out = vec![0u32; 32];
    Run::new(&module(TWO, call), 1, 32).array(&mut out).clean();
    assert!((0..32).all(|n| out[n as usize] == if n < 20 { n % 2 + 1 } else { 0 }));

    // Where no function is, and with other parameters than it has.
    let p = module(TWO, &call.replace("ld.global.b64 %rd3, [%rd2]", "mov.b64 %rd3, 64"));
    let r = Run::new(&p, 1, 32).array(&mut out).finds(FindingKind::Trap);
    assert!(r.findings[0].message.contains("a call of 0x40, where no function is"), "{}", r.findings[0]);
    let p = module(TWO, &call.replace("(a), proto", "(a, a), proto"));
    let r = Run::new(&p, 1, 32).array(&mut out).finds(FindingKind::Trap);
    assert!(r.findings[0].message.contains("`f` has 1 parameters and 0 results"), "{}", r.findings[0]);
    // What it has not written it has not written, whatever an activation before it did.
    let once = TWO.replacen("st.global.u32 [%rd], 1;", "st.global.u32 [%rd], %r;", 1).replacen(
        ".reg .b64 %rd; ld.param.b64 %rd, [at];",
        ".reg .b32 %r; .reg .pred %q; .reg .b64 %rd; ld.param.b64 %rd, [at]; ld.global.u32 %r, [%rd]; setp.eq.u32 %q, %r, 7; @!%q mov.u32 %r, 1;",
        1,
    );
    Run::new(&module(&once, call), 1, 32).array(&mut out).clean();
    let never = once
        .replace("ld.global.u32 %r, [%rd]; setp.eq.u32 %q, %r, 7;", "setp.eq.u64 %q, %rd, 7;")
        .replace("@!%q mov.u32 %r, 1;", "@%q mov.u32 %r, 1;");
    Run::new(&module(&never, call), 1, 32).array(&mut out).finds(FindingKind::UninitializedRegister);
}

#[test]
fn a_lock_taken_by_a_call_is_given_back() {
    // All lanes of a warp take the lock through a function pointer, in a loop; one holds it, and the others spin.
    let functions = "
.func (.param .b32 got) try(.param .b64 at) {
    .reg .b64 %rd; .reg .b32 %r; ld.param.b64 %rd, [at];
    atom.acquire.gpu.global.exch.b32 %r, [%rd], 1;
    st.param.b32 [got], %r; ret;
}";
    let body = "mov.b64 %rd2, try;
L:  { .param .b64 a; .param .b32 r; st.param.b64 [a], %rd0; proto: .callprototype (.param .b32 _) _ (.param .b64 _);
      call (r), %rd2, (a), proto; ld.param.b32 %r0, [r]; }
    setp.ne.u32 %p0, %r0, 0;
    @%p0 bra L;
    ld.global.u32 %r1, [%rd0+4]; add.u32 %r1, %r1, 1; st.global.u32 [%rd0+4], %r1;
    atom.release.gpu.global.exch.b32 %r2, [%rd0], 0;";
    let mut out = vec![0u32; 2];
    Run::new(&module(functions, body), 4, 64).array(&mut out).clean();
    assert_eq!(out, [0, 256]);
}

#[test]
fn registers_of_functions_by_address_are_refused_by_name() {
    let f = ".func (.reg .b32 r) f(.reg .b32 a) { add.u32 r, a, 1; ret; }";
    let p = module(f, "mov.b64 %rd2, f; st.global.b64 [%rd0], %rd2;");
    let e = p.params("k").expect_err("no such calls");
    assert!(
        e.to_string().contains("`r` of `f`, which is called by address or recursive, in a register"),
        "{e}"
    );
}

/// A function that whoever runs the program provides.
#[test]
fn functions_of_the_host() {
    fn hypotenuse(args: &[&[u8]], out: &mut [u8]) {
        let [x, y] = [0, 1].map(|i| f64::from_ne_bytes(args[i].try_into().expect("8 bytes")));
        out.copy_from_slice(&(x.hypot(y) as f32).to_ne_bytes());
    }
    fn library(name: &str) -> Option<HostFunction> {
        (name == "hypotenuse").then(|| HostFunction { params: vec![8, 8], result: 4, run: hypotenuse })
    }
    let text = |name: &str, arguments: &str| {
        format!(
            ".version 8.4\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 p) {{\n\
             .reg .b32 %r<4>; .reg .b64 %rd<8>;\nld.param.u64 %rd0, [p];\n\
             mov.u32 %r0, %tid.x; mad.wide.u32 %rd1, %r0, 4, %rd0;\n\
             mul.lo.u32 %r1, %r0, 3; cvt.rn.f64.u32 %rd2, %r1; mul.lo.u32 %r1, %r0, 4; cvt.rn.f64.u32 %rd3, %r1;\n\
             {{ .param .b64 a; .param .b64 b; .param .b32 r; st.param.b64 [a], %rd2; st.param.b64 [b], %rd3;\n\
             call (r), {name}, ({arguments}); ld.param.b32 %r2, [r]; }}\nst.global.u32 [%rd1], %r2;\nret;\n}}\n"
        )
    };
    let p = Program::with_functions(&text("hypotenuse", "a, b"), library).expect("is PTX");
    let mut out = vec![0f32; 32];
    Run::new(&p, 1, 32).array(&mut out).clean();
    assert!((0..32).all(|n| out[n] == 5.0 * n as f32), "{out:?}");
    let refused = |text: &str| {
        let p = Program::with_functions(text, library).expect("is PTX");
        p.params("k").expect_err("is wrong").to_string()
    };
    let error = refused(&text("hypotenuse", "a"));
    assert!(error.contains("`hypotenuse` has 2 parameters and a result"), "{error}");
    let error = refused(&text("another", "a, b"));
    assert!(error.contains("`another` has no body"), "{error}");
}
