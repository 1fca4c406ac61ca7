//! What the simulator reports, each in a program that breaks one rule.

use tilewright_npusim::{Arg, Launch, run};

/// The error of a function with this body, of two arrays of 64 floats.
fn error(body: &str) -> String {
    let text = format!(
        "func.func @f(%x: memref<?xf32, #hivm.address_space<gm>>, %y: memref<?xf32, #hivm.address_space<gm>>, %gx: i32, %gy: i32, %gz: i32) {{\n\
           %c0 = arith.constant 0 : index\n\
           %c1 = arith.constant 1 : index\n\
           %c64 = arith.constant 64 : index\n\
           %a0 = arith.constant 0 : i64\n\
           %a1 = arith.constant 1 : i64\n\
           %from = memref.reinterpret_cast %x to offset : [%c0], sizes : [%c64], strides : [%c1] : memref<?xf32, #hivm.address_space<gm>> to memref<?xf32, strided<[?], offset: ?>, #hivm.address_space<gm>>\n\
           %to = memref.reinterpret_cast %y to offset : [%c0], sizes : [%c64], strides : [%c1] : memref<?xf32, #hivm.address_space<gm>> to memref<?xf32, strided<[?], offset: ?>, #hivm.address_space<gm>>\n\
           {body}\n\
           func.return\n\
         }}"
    );
    let mut module = tilewright_ir::parse(&text, "f.hivm").unwrap_or_else(|e| panic!("{e}\n{text}"));
    let memory = vec![vec![0; 256], vec![0; 256]];
    let mut launch = Launch { memory, args: vec![Arg::Pointer(0, 0), Arg::Pointer(1, 0)], grid: [1, 1, 1] };
    run(&mut module, "f", &mut launch).err().map_or(String::new(), |e| e.to_string())
}

const GM: &str = "memref<?xf32, strided<[?], offset: ?>, #hivm.address_space<gm>>";
const UB: &str = "memref<64xf32, #hivm.address_space<ub>>";

fn load(to: &str) -> String {
    format!("hivm.hir.load ins(%from : {GM}) outs({to} : {UB})\n")
}

fn store(from: &str) -> String {
    format!("hivm.hir.store ins({from} : {UB}) outs(%to : {GM})\n")
}

fn ub() -> String {
    format!("%a = hivm.hir.pointer_cast(%a0) : {UB}\n")
}

const SET: &str = "hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_MTE3>, <EVENT_ID0>]\n";
const WAIT: &str = "hivm.hir.wait_flag[<PIPE_MTE2>, <PIPE_MTE3>, <EVENT_ID0>]\n";

#[test]
fn a_program_in_order_is_none() {
    assert_eq!(error(&(ub() + &load("%a") + SET + WAIT + &store("%a"))), "");
    // A queue may come to its flag before that is raised.
    assert_eq!(error(&(ub() + &load("%a") + WAIT + SET + &store("%a"))), "");
    assert_eq!(error(&(ub() + &load("%a") + "hivm.hir.pipe_barrier[<PIPE_ALL>]\n" + &store("%a"))), "");
}

#[test]
fn what_a_copy_still_fills() {
    let error = error(&(ub() + &load("%a") + &store("%a")));
    assert!(error.contains("PIPE_MTE3 reads byte 0 of UB while PIPE_MTE2 still writes it"), "{error}");
    assert!(error.contains("a flag from PIPE_MTE2 to PIPE_MTE3 is missing between them"), "{error}");
}

#[test]
fn vectors_without_a_barrier() {
    let add = format!("hivm.hir.vadd ins(%a, %a : {UB}, {UB}) outs(%a : {UB})\n");
    let flags = "hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]\nhivm.hir.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]\n";
    let error = error(&(ub() + &load("%a") + flags + &add + &add));
    assert!(error.contains("a hivm.hir.pipe_barrier[<PIPE_V>] is missing between them"), "{error}");
}

#[test]
fn what_is_read_under_other_indices_than_it_is_written() {
    let part = "memref<?xf32, strided<[?], offset: ?>, #hivm.address_space<ub>>";
    let of = |first: &str, at: &str| {
        format!("%{first} = memref.subview %a[%{at}] [%c32] [%c1] : {UB} to {part}\n")
    };
    let flags = "hivm.hir.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]\nhivm.hir.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]\n";
    let begin =
        ub() + &load("%a") + flags + "%c32 = arith.constant 32 : index\n%c8 = arith.constant 8 : index\n";
    let add = |out: &str| format!("hivm.hir.vadd ins(%p, %p : {part}, {part}) outs(%{out} : {part})\n");
    let shifted = error(&(begin.clone() + &of("p", "c0") + &of("q", "c8") + &add("q")));
    assert!(shifted.contains("hivm.hir.vadd writes elements that it reads under other indices"), "{shifted}");
    assert_eq!(error(&(begin.clone() + &of("p", "c0") + &of("q", "c0") + &add("q"))), "");
    assert_eq!(error(&(begin + &of("p", "c0") + &of("q", "c32") + &add("q"))), "");
}

#[test]
fn flags_that_nobody_raises_or_waits_for() {
    let deadlock = error(&(ub() + WAIT + &store("%a")));
    assert!(
        deadlock.contains("deadlock: PIPE_MTE3 waits for event 0 of PIPE_MTE2, which nobody raises"),
        "{deadlock}"
    );
    let left = error(SET);
    assert!(
        left.contains("event 0 from PIPE_MTE2 to PIPE_MTE3 is raised, and nobody waits for it"),
        "{left}"
    );
    let twice = error(&format!("{SET}{SET}{WAIT}{WAIT}"));
    assert!(
        twice.contains("event 0 from PIPE_MTE2 to PIPE_MTE3 is raised again before it was waited for"),
        "{twice}"
    );
}

#[test]
fn memories_and_ways() {
    let beyond = error(
        "%b = arith.constant 196480 : i64\n%a = hivm.hir.pointer_cast(%b) : memref<64xf32, #hivm.address_space<ub>>",
    );
    assert!(beyond.contains("bytes 196480 to 196736 of UB, which has 196608"), "{beyond}");
    let odd = error("%a = hivm.hir.pointer_cast(%a1) : memref<64xf32, #hivm.address_space<ub>>");
    assert!(odd.contains("address 1 of UB, where they are multiples of 32"), "{odd}");
    let l0a = "memref<64xf32, #hivm.address_space<ca>>";
    let way = error(&format!(
        "%a = hivm.hir.pointer_cast(%a0) : {l0a}\nhivm.hir.load ins(%from : {GM}) outs(%a : {l0a})"
    ));
    assert!(way.contains("hivm.hir.load from GM to L0A: there is no such way"), "{way}");
    let unwritten = error(&(ub() + &store("%a")));
    assert!(unwritten.contains("what nothing wrote comes to global memory"), "{unwritten}");
    let outside = error(&(ub() + &load("%a").replace("%from", "%far")).replace(
        "hivm.hir.load",
        &format!("%far = memref.reinterpret_cast %x to offset : [%c1], sizes : [%c64], strides : [%c1] : memref<?xf32, #hivm.address_space<gm>> to {GM}\nhivm.hir.load"),
    ));
    assert!(outside.contains("a read of 4 bytes at 256 of GM, which has 256"), "{outside}");
}

#[test]
fn what_a_product_reads_of_l1() {
    let l1 = "memref<16x16xf32, #hivm.address_space<cbuf>>";
    let l0c = "memref<16x16xf32, #hivm.address_space<cc>>";
    let blocks = "memref<?x?xf32, strided<[?, ?], offset: ?>, #hivm.address_space<gm>>";
    let product = |order: &str| {
        let flags = |to: &str| {
            format!(
                "hivm.hir.set_flag[<PIPE_MTE2>, <{to}>, <EVENT_ID0>]\nhivm.hir.wait_flag[<PIPE_MTE2>, <{to}>, <EVENT_ID0>]\n"
            )
        };
        error(&format!(
            "%n = arith.constant 8 : index\n%w = memref.reinterpret_cast %x to offset : [%c0], sizes : [%n, %n], strides : [%n, %c1] : memref<?xf32, #hivm.address_space<gm>> to {blocks}\n\
             %l = hivm.hir.pointer_cast(%a0) : {l1}\n%c = hivm.hir.pointer_cast(%a0) : {l0c}\n%t = arith.constant true\n\
             %p = memref.subview %l[%c0, %c0] [%n, %n] [%c1, %c1] : {l1} to memref<?x?xf32, strided<[?, ?], offset: ?>, #hivm.address_space<cbuf>>\n\
             %q = memref.subview %c[%c0, %c0] [%n, %n] [%c1, %c1] : {l0c} to memref<?x?xf32, strided<[?, ?], offset: ?>, #hivm.address_space<cc>>\n\
             hivm.hir.nd2nz {{dst_continuous}} ins(%w : {blocks}) outs(%p : memref<?x?xf32, strided<[?, ?], offset: ?>, #hivm.address_space<cbuf>>)\n\
             {}\
             hivm.hir.mmadL1 ins(%p, %p, %t, %n, %n, %n : memref<?x?xf32, strided<[?, ?], offset: ?>, #hivm.address_space<cbuf>>, memref<?x?xf32, strided<[?, ?], offset: ?>, #hivm.address_space<cbuf>>, i1, index, index, index) outs(%q : memref<?x?xf32, strided<[?, ?], offset: ?>, #hivm.address_space<cc>>)\n",
            flags(order)
        ))
    };
    assert_eq!(product("PIPE_MTE1"), "");
    let late = product("PIPE_M");
    assert!(late.contains("PIPE_MTE2 writes byte 0 of L1 while PIPE_MTE1 still reads it"), "{late}");
}

#[test]
fn locks() {
    const TYPE: &str = "memref<1xi64, #hivm.address_space<gm>>";
    let create = format!("%l = hivm.hir.create_sync_block_lock : {TYPE}\n");
    let lock = format!("hivm.hir.sync_block_lock lock_var(%l : {TYPE})\n");
    let unlock = format!("hivm.hir.sync_block_unlock lock_var(%l : {TYPE})\n");
    let barrier = "hivm.hir.pipe_barrier[<PIPE_ALL>]\n";
    let work = ub() + &load("%a") + SET + WAIT + &store("%a");
    assert_eq!(error(&format!("{create}{lock}{work}{barrier}{unlock}")), "");
    let early = error(&format!("{create}{lock}{work}{unlock}"));
    assert!(
        early.contains("a lock is given back while queues go on: a barrier of all is missing"),
        "{early}"
    );
    let twice = error(&format!("{create}{lock}{lock}"));
    assert!(twice.contains("a lock is taken that this program has"), "{twice}");
    let never = error(&format!("{create}{unlock}"));
    assert!(never.contains("a lock is given back that this program has not"), "{never}");
    let kept = error(&format!("{create}{lock}"));
    assert!(kept.contains("a program ends with a lock that it has not given back"), "{kept}");
    let meeting = "hivm.hir.sync_block[<ALL_VECTOR>, 0 : i16] tvector_pipe = <PIPE_MTE3>\n";
    let held = error(&format!("{create}{lock}{work}{barrier}{meeting}{unlock}"));
    assert!(
        held.contains("programs wait for each other while this one has the lock that they take"),
        "{held}"
    );
    assert_eq!(error(&format!("{create}{lock}{work}{barrier}{unlock}{barrier}{meeting}")), "");
}
