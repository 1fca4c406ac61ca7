//! The builder's simplifications, and PTX from LLVM.

use tilewright_llvm::emit::{self, EmitOptions};
use tilewright_llvm::*;

fn kernel() -> KernelAttrs {
    KernelAttrs { threads: 128, ..KernelAttrs::default() }
}

fn tid(b: &mut Builder) -> Value {
    let v = b.intrinsic("llvm.nvvm.read.ptx.sreg.tid.x", Effect::Pure, Some(Ty::I32), &[]);
    b.assume_zeros(v, !127);
    v
}

fn options() -> EmitOptions {
    EmitOptions { cpu: "sm_90a".into(), features: "+ptx80".into(), verify: true, ..EmitOptions::default() }
}

/// out[i] = sum over k of in[i + 128 k], k < n: a loop with phis, hoisted address arithmetic and an inline load.
fn loop_sum(m: &mut Module) {
    let file = m.file("/src", "kernel.py");
    let loc = |line| Loc { file, line, col: 1 };
    let mut b = Builder::new(m, "loop_sum", &[Ty::GLOBAL, Ty::GLOBAL, Ty::I32], &[], Some(kernel()), loc(1));
    let (src, dst, n) = (b.arg(0), b.arg(1), b.arg(2));
    let pre = b.block();
    let header = b.create_block(pre, Some(pre), &[Ty::I32, Ty::F32]);
    let body = b.create_block(header, Some(pre), &[]);
    let exit = b.create_block(header, None, &[]);
    let (zero, fzero) = (b.i32(0), b.float(Ty::F32, 0.0));
    b.br(header, &[zero, fzero]);
    b.switch_to(header);
    let (k, sum) = (b.params(header)[0], b.params(header)[1]);
    let more = b.icmp(IntPred::Slt, k, n);
    b.cond_br(more, body, &[], exit, &[]);
    b.switch_to(body);
    b.set_loc(loc(3));
    let t = tid(&mut b);
    let t4 = b.shl(t, 2);
    let base = b.ptr_add(src, t4);
    let step = b.mul_const(k, 512);
    let at = b.ptr_add(base, step);
    let x = b.asm1("ld.global.b32 $0, [$1];", "=r,l", Effect::Read, Ty::I32, &[at]);
    let x = b.bitcast(x, Ty::F32);
    b.set_loc(loc(4));
    let sum = b.bin(BinOp::FAdd, sum, x);
    let k = b.add_const(k, 1);
    b.br(header, &[k, sum]);
    b.switch_to(exit);
    let total = b.params(header)[1];
    let t = tid(&mut b);
    let t4 = b.shl(t, 2);
    let out = b.ptr_add(dst, t4);
    b.store(out, total, 4);
    b.ret(&[]);
    b.finish();
}

#[test]
fn a_loop_becomes_ptx() {
    let mut m = Module::new("t");
    loop_sum(&mut m);
    let out = emit::compile(m, options()).unwrap();
    for want in
        [".entry loop_sum", ".reqntid 128, 1, 1", "ld.global.b32", "st.global.f32", ".loc", "kernel.py"]
    {
        assert!(out.assembly.contains(want), "no `{want}` in\n{}", out.assembly);
    }
    assert!(!out.assembly.contains(", debug"), "{}", out.assembly);
}

/// Two pointers that move by the same run-time step, one that moves alone.
#[test]
fn pointers_that_move_together_share_an_offset() {
    let mut m = Module::new("t");
    let params = [Ty::GLOBAL, Ty::GLOBAL, Ty::GLOBAL, Ty::I32, Ty::I64];
    let mut b = Builder::new(&mut m, "k", &params, &[], Some(kernel()), Loc::NONE);
    let (n, step) = (b.arg(3), b.arg(4));
    let pre = b.block();
    let body = b.create_block(pre, Some(pre), &[Ty::I32, Ty::GLOBAL, Ty::GLOBAL, Ty::GLOBAL]);
    let exit = b.create_block(body, None, &[]);
    let zero = b.i32(0);
    let first = [zero, b.arg(0), b.arg(1), b.arg(2)];
    b.br(body, &first);
    b.switch_to(body);
    let [k, p, q, alone] = b.params(body).try_into().unwrap();
    for at in [p, q, alone] {
        b.asm("st.global.b32 [$0], 7;", "l", Effect::Write, &[], &[at]);
    }
    let (p, q) = (b.ptr_add(p, step), b.ptr_add(q, step));
    let four = b.constant(Ty::I64, 4);
    let alone = b.ptr_add(alone, four);
    let k = b.add_const(k, 1);
    let more = b.icmp(IntPred::Slt, k, n);
    b.cond_br(more, body, &[k, p, q, alone], exit, &[]);
    b.switch_to(exit);
    b.ret(&[]);
    b.finish();
    m.share_steps();
    let out = emit::compile(m, options()).unwrap();
    assert_eq!(out.llvm_ir.matches("phi ptr").count(), 1, "{}", out.llvm_ir);
    assert_eq!(out.llvm_ir.matches("phi i64").count(), 1, "{}", out.llvm_ir);
    // The addresses, the offset, the pointer of its own.
    let body = out.assembly.rsplit_once("$L__BB0_1:").unwrap().1;
    assert_eq!(body.matches("add.s64").count(), 4, "{}", out.assembly);
}

/// Where the steps of four elements' chains stand, as the elements that they belong to, when each chain has so many steps.
fn chains_of(steps: u64) -> Vec<u64> {
    let mut m = Module::new("t");
    let mut b = Builder::new(&mut m, "k", &[Ty::GLOBAL], &[], Some(kernel()), Loc::NONE);
    let at = b.arg(0);
    let t = tid(&mut b);
    let mut elements: Vec<Value> = (0..4).map(|e| b.add_const(t, e)).collect();
    for step in 0..steps {
        for (e, x) in elements.iter_mut().enumerate() {
            let key = b.constant(Ty::I32, 1_000_000 * (e as u64 + 1) + 2 * step + 1);
            let mixed = b.xor(*x, key);
            *x = b.bin(BinOp::Mul, mixed, mixed);
        }
    }
    let all = b.vector(&elements);
    b.store(at, all, 16);
    b.ret(&[]);
    b.finish();
    m.chains_in_turn();
    let out = emit::compile(m, EmitOptions { passes: String::new(), ..options() }).unwrap();
    let key =
        |l: &str| l.contains(" = xor i32").then(|| l.rsplit(", ").find_map(|w| w.trim().parse().ok()))?;
    let keys: Vec<u64> = out.llvm_ir.lines().filter_map(key).collect();
    assert_eq!(keys.len(), 4 * steps as usize, "{}", out.llvm_ir);
    keys.into_iter().map(|k| k / 1_000_000).collect()
}

/// Two sums of forty loads each, and a network of minima and maxima.
fn what_shares_or_loads(reorder: bool) -> String {
    let mut m = Module::new("t");
    let mut b = Builder::new(&mut m, "k", &[Ty::GLOBAL], &[], Some(kernel()), Loc::NONE);
    let at = b.arg(0);
    let t = tid(&mut b);
    let mut sums = [t, b.add_const(t, 1)];
    for step in 0..40 {
        for sum in &mut sums {
            let from = b.constant(Ty::I64, step * 512);
            let from = b.ptr_add(at, from);
            let x = b.asm1("ld.global.b32 $0, [$1];", "=r,l", Effect::Read, Ty::I32, &[from]);
            let mixed = b.bin(BinOp::Mul, *sum, *sum);
            *sum = b.xor(mixed, x);
        }
    }
    let mut sorted: Vec<Value> = (0..8).map(|e| b.bin(BinOp::Mul, sums[e % 2], sums[e / 4])).collect();
    for step in 0..40 {
        for e in (step % 2..7).step_by(2) {
            let less = b.icmp(IntPred::Slt, sorted[e], sorted[e + 1]);
            let pair = (sorted[e], sorted[e + 1]);
            sorted[e] = b.select(less, pair.0, pair.1);
            sorted[e + 1] = b.select(less, pair.1, pair.0);
        }
    }
    let all = b.vector(&sorted[..4]);
    b.store(at, all, 16);
    let all = b.vector(&sorted[4..]);
    b.store(at, all, 16);
    b.ret(&[]);
    b.finish();
    if reorder {
        m.chains_in_turn();
    }
    emit::compile(m, EmitOptions { passes: String::new(), ..options() }).unwrap().llvm_ir
}

/// Where a chain takes a load for each step, all loads would wait in registers; what shares most of its steps is no chain.
#[test]
fn chains_that_load_or_share_stay() {
    assert_eq!(what_shares_or_loads(true), what_shares_or_loads(false));
}

/// An element's chain stands as a whole where it is long; a short one as it was recorded, step by step.
#[test]
fn long_chains_stand_one_behind_the_other() {
    let long = chains_of(20);
    assert!(long.is_sorted(), "{long:?}");
    assert_eq!(chains_of(4)[..8], [1, 2, 3, 4, 1, 2, 3, 4]);
}

#[test]
fn invariant_addresses_leave_the_loop() {
    let mut m = Module::new("t");
    loop_sum(&mut m);
    let out = emit::compile(m, EmitOptions { passes: String::new(), ..options() }).unwrap();
    // The thread id is read once, before the loop, and serves the exit too.
    assert_eq!(out.llvm_ir.matches("call i32 @llvm.nvvm.read.ptx.sreg.tid.x").count(), 1, "{}", out.llvm_ir);
    let loop_start = out.llvm_ir.find("phi").unwrap();
    assert!(out.llvm_ir.find("sreg.tid.x()").unwrap() < loop_start, "{}", out.llvm_ir);
}

#[test]
fn known_bits_turn_xor_into_an_immediate() {
    let mut m = Module::new("t");
    let mut b = Builder::new(&mut m, "k", &[], &[], Some(kernel()), Loc::NONE);
    let t = tid(&mut b);
    let low = b.and_const(t, 31);
    let row = b.shl(low, 4);
    let c512 = b.i32(512);
    let flipped = b.xor(row, c512);
    let p = b.zero(Ty::SHARED);
    let a = b.ptr_add(p, flipped);
    assert_eq!(b.split_offset(a).1, 512);
    let c = b.i32(1000);
    let inside = b.icmp(IntPred::Slt, low, c);
    assert!(b.is_true(inside));
    let c = b.i32(16);
    let maybe = b.icmp(IntPred::Slt, low, c);
    assert!(!b.is_true(maybe) && !b.is_false(maybe));
}

#[test]
fn a_shift_by_more_bits_than_there_are_is_compiled() {
    for ty in [Ty::I32, Ty::I64] {
        for shift in [BinOp::Shl, BinOp::LShr, BinOp::AShr] {
            for by in [31u64, 32, 63, 64, 70, 1 << 31] {
                let m = one(|b| {
                    let t = tid(b);
                    let wide = if ty == Ty::I64 { b.cast(CastOp::ZExt, t, ty) } else { t };
                    let by = b.constant(ty, by);
                    let shifted = b.bin(shift, wide, by);
                    let out = b.arg(0);
                    b.store(out, shifted, 4);
                });
                assert!(emit::compile(m, options()).is_ok(), "{ty:?} {shift:?} {by}");
            }
        }
    }
}

/// What a step of a sorting network says of two elements, each of which has its neighbour by an exclusive or: one comparison, and two selections.
#[test]
fn a_pair_is_put_in_order_by_one_comparison() {
    let mut m = Module::new("t");
    let mut b = Builder::new(&mut m, "k", &[Ty::GLOBAL, Ty::I32, Ty::I32], &[], Some(kernel()), Loc::NONE);
    let (out, x, y) = (b.arg(0), b.arg(1), b.arg(2));
    let (t, both) = (tid(&mut b), b.xor(x, y));
    let (odd, zero) = (b.and_const(t, 1), b.i32(0));
    let falling = b.icmp(IntPred::Ne, odd, zero);
    let step = |b: &mut Builder, own: Value, larger: Value| {
        let other = b.xor(own, both);
        let [max, min] = ["max", "min"].map(|name| {
            b.intrinsic(&format!("llvm.s{name}.i32"), Effect::Pure, Some(Ty::I32), &[own, other])
        });
        b.select(larger, max, min)
    };
    let first = step(&mut b, x, falling);
    let rising = b.not(falling);
    let second = step(&mut b, y, rising);
    let pair = b.vector(&[first, second]);
    b.store(out, pair, 8);
    b.ret(&[]);
    b.finish();
    let ptx = emit::compile(m, options()).unwrap().assembly;
    let count = |what: &str| ptx.matches(what).count();
    let counts = (count("setp.lt.s32"), count("selp.b32"), count("min.s32") + count("max.s32"));
    assert_eq!(counts, (1, 2, 0), "{ptx}");
}

#[test]
fn identities_cost_nothing() {
    let mut m = Module::new("t");
    let mut b = Builder::new(&mut m, "k", &[Ty::I32, Ty::F32], &[], Some(kernel()), Loc::NONE);
    let (x, f) = (b.arg(0), b.arg(1));
    let (zero, one) = (b.i32(0), b.i32(1));
    assert_eq!(b.add(zero, x), x);
    assert_eq!(b.mul(x, one), x);
    assert_eq!(b.xor(x, x), zero);
    let c7 = b.i32(7);
    let c5 = b.i32(5);
    let c12 = b.i32(12);
    let once = b.add(x, c7);
    let twice = b.add(once, c5);
    assert_eq!(twice, b.add(x, c12));
    let fone = b.float(Ty::F32, 1.0);
    assert_eq!(b.bin(BinOp::FMul, f, fone), f);
    // x + 0.0 is not x when x is -0.0.
    let fzero = b.float(Ty::F32, 0.0);
    assert_ne!(b.bin(BinOp::FAdd, f, fzero), f);
    let v = b.vector(&[f, fone]);
    assert_eq!(b.extract(v, 0), f);
    let minus = b.i32(-7);
    let c2 = b.i32(2);
    let q = b.bin(BinOp::SDiv, minus, c2);
    assert_eq!(b.as_const(q), Some(-3i32 as u32 as u64));
}

#[test]
fn a_value_of_one_branch_is_not_reused_in_the_other() {
    let mut m = Module::new("t");
    let mut b = Builder::new(&mut m, "k", &[Ty::F32, Ty::GLOBAL, Ty::I1], &[], Some(kernel()), Loc::NONE);
    let (f, p, c) = (b.arg(0), b.arg(1), b.arg(2));
    let entry = b.block();
    let then = b.create_block(entry, None, &[]);
    let els = b.create_block(entry, None, &[]);
    b.cond_br(c, then, &[], els, &[]);
    b.switch_to(then);
    let first = b.bin(BinOp::FMul, f, f);
    b.store(p, first, 4);
    b.ret(&[]);
    b.switch_to(els);
    let second = b.bin(BinOp::FMul, f, f);
    assert_ne!(first, second);
    b.store(p, second, 4);
    b.ret(&[]);
    b.finish();
    emit::compile(m, options()).unwrap();
}

#[test]
fn multiplication_and_addition_contract() {
    let build = |contract| {
        let mut m = Module::new("t");
        let mut b =
            Builder::new(&mut m, "k", &[Ty::F32, Ty::F32, Ty::GLOBAL], &[], Some(kernel()), Loc::NONE);
        let (x, y, p) = (b.arg(0), b.arg(1), b.arg(2));
        let xy = b.bin(BinOp::FMul, x, y);
        let r = b.bin(BinOp::FAdd, xy, x);
        b.store(p, r, 4);
        b.ret(&[]);
        b.finish();
        emit::compile(m.clone(), EmitOptions { fp_contract: contract, ..options() }).unwrap().assembly
    };
    assert!(build(true).contains("fma.rn.f32"), "{}", build(true));
    assert!(build(false).contains("mul.rn.f32") && build(false).contains("add.rn.f32"), "{}", build(false));
}

/// A kernel with one instruction.
fn one(record: impl FnOnce(&mut Builder)) -> Module {
    let mut m = Module::new("t");
    let mut b = Builder::new(&mut m, "kernel", &[Ty::GLOBAL], &[], Some(kernel()), Loc::NONE);
    record(&mut b);
    b.ret(&[]);
    b.finish();
    m
}

#[test]
fn what_llvm_reports_is_an_error() {
    for (template, constraints) in [("mov.u32 $0, 0;", "=Q"), ("mov.u32 ${0:w}, 0;", "=r")] {
        let m = one(|b| {
            let v = b.asm1(template, constraints, Effect::Write, Ty::I32, &[]);
            let out = b.arg(0);
            b.store(out, v, 4);
        });
        let error = emit::compile(m, options()).unwrap_err();
        assert!(matches!(error, emit::Error::Codegen { .. }), "{template} {constraints}: {error}");
    }
}

#[test]
fn fatal_errors_end_one_compile_and_no_other() {
    let fatal = |b: &mut Builder| {
        b.asm("mov.u32 $9, 0;", "", Effect::Write, &[], &[]);
    };
    let errors: Vec<emit::Error> = std::thread::scope(|s| {
        let compile = || emit::compile(one(fatal), options()).unwrap_err();
        let all: Vec<_> = (0..4).map(|_| s.spawn(compile)).collect();
        all.into_iter().map(|t| t.join().unwrap()).collect()
    });
    for error in errors {
        assert!(matches!(&error, emit::Error::Fatal(m) if m.contains("operand number")), "{error}");
    }
    let mut m = Module::new("t");
    loop_sum(&mut m);
    emit::compile(m, options()).unwrap();
}
