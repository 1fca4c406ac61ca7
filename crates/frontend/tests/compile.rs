//! Kernels through the whole front end.

use tilewright_frontend::{Built, Options, Signature, SourceHost, build_module};
use tilewright_ir::Module;

fn compile(kernel: &str, signature: &str) -> Built {
    compile_with(kernel, signature, &Options::default())
}

fn compile_with(kernel: &str, signature: &str, options: &Options) -> Built {
    let host = SourceHost::new("basic.py", include_str!("kernels/basic.py")).expect("parses");
    let entry = host.function(kernel).expect("exists");
    let signature = Signature::parse(signature).expect("signature");
    match build_module(&host, &entry, &signature, options) {
        Ok(built) => built,
        Err(error) => panic!("{kernel}:\n{error}"),
    }
}

fn count(module: &Module, name: &str) -> usize {
    module.all_ops(module.root()).into_iter().filter(|&op| module.op_name(op) == name).count()
}

#[test]
fn every_kernel_compiles_verifies_and_reads_back() {
    for (k, s) in [
        ("add", "*fp32:16,*fp32:16,*fp32:16,i32:16,1024"),
        ("softmax", "*fp32,*fp32,i32,i32,i32,i32,1000,4"),
        (
            "matmul",
            "*fp16:16,*fp16:16,*fp16:16,i32,i32,i32,i32,i32:1,i32,i32:1,i32,i32:1,96,80,48,8,'leaky_relu'",
        ),
        ("attention", "*fp16:16,*fp16:16,*fp16:16,*fp16:16,fp32,i32,i32,i32,128,128,64,3"),
        ("dropout", "*fp32,*fp32,i32,fp32,i32,1024"),
        ("early_return", "*i32,i32"),
        ("control", "*fp32,*fp32,i32,True,i32:1"),
        ("block_pointers", "*fp16,*fp16,*fp16,i32,i32,i32,48"),
        ("inline_asm", "*fp32"),
        ("argmax_rows", "*fp32,*i32,16,64"),
    ] {
        let mut built = compile(k, s);
        let text = tilewright_ir::text::print(&built.module);
        if let Err(errors) = tilewright_ir::verify::verify(&built.module) {
            panic!("{k}: {}", errors[0]);
        }
        let again = tilewright_ir::text::parse(&text, "x.mlir").unwrap_or_else(|e| panic!("{k}: {e}"));
        built.module.forget_names();
        assert_eq!(tilewright_ir::text::print(&again), tilewright_ir::text::print(&built.module));
        assert_eq!(count(&built.module, "tt.func"), if k == "control" { 2 } else { 1 });
    }
}

#[test]
fn debugging_checks_integer_arithmetic_for_overflow() {
    let debug = Options { debug: true, ..Options::default() };
    let signature = "*fp32,*fp32,*fp32,i32,1024";
    // pid * BLOCK and + arange.
    assert_eq!(count(&compile_with("add", signature, &debug).module, "tt.assert"), 2);
    assert_eq!(count(&compile("add", signature).module, "tt.assert"), 0);
    // The generator of random numbers overflows by design and says so: only what is around it is checked.
    let dropout = compile_with("dropout", "*fp32,*fp32,i32,fp32,i32,1024", &debug);
    assert!(count(&dropout.module, "arith.muli") > 20);
    assert!(count(&dropout.module, "tt.assert") < 8);
}

#[test]
fn arguments_carry_their_promises_and_ops_their_place() {
    let built = compile(
        "matmul",
        "*fp16:16,*fp16,*fp16,i32:16,i32,i32,i32,i32:1,i32,i32:1,i32,i32:1,64,64,32,8,'leaky_relu'",
    );
    let text = tilewright_ir::text::print(&built.module);
    assert!(text.contains("%a_ptr: !tt.ptr<f16> {tt.divisibility = 16 : i32}"), "{text}");
    assert!(text.contains("%M: i32 {tt.divisibility = 16 : i32}"), "{text}");
    // `leaky_relu` is evaluated in place: its lines appear with the call's.
    assert!(text.contains("callsite("), "{text}");
    assert!(text.contains("\"basic.py\":"), "{text}");
    let names: Vec<&str> = built.functions.iter().map(|f| &*f.name).collect();
    assert_eq!(names, ["matmul", "leaky_relu"]);
    assert!(built.captured.is_empty());
}

#[test]
fn captured_constants_are_reported() {
    let built = compile("attention", "*fp16,*fp16,*fp16,*fp16,fp32,i32,i32,i32,128,64,64,3");
    let captured: Vec<String> = built
        .captured
        .iter()
        .map(|c| format!("{}: {} = {}", c.function.name, c.path.join("."), c.value))
        .collect();
    assert_eq!(captured, ["attention: LOG2E = 1.4426950408889634"]);
    let names: Vec<&str> = built.functions.iter().map(|f| &*f.name).collect();
    assert_eq!(names, ["attention", "attention_inner"]);
}

#[test]
fn a_loop_carries_only_what_it_changes() {
    // Pointers, accumulators and maxima; not the scale, the offsets or the query.
    let built = compile("attention", "*fp16,*fp16,*fp16,*fp16,fp32,i32,i32,i32,128,64,64,1");
    let module = &built.module;
    let loops: Vec<_> =
        module.all_ops(module.root()).into_iter().filter(|&op| module.op_name(op) == "scf.for").collect();
    assert_eq!(loops.len(), 1);
    assert_eq!(module.results(loops[0]).len(), 5, "acc, l_i, m_i, k_ptrs, v_ptrs");
}
