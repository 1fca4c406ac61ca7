//! Kernels through the whole front end.

use tilewright_frontend::{Built, Options, Signature, SourceHost, build_module};
use tilewright_ir::Module;

fn compile(kernel: &str, signature: &str) -> Built {
    let host = SourceHost::new("basic.py", include_str!("kernels/basic.py")).expect("parses");
    let entry = host.function(kernel).expect("exists");
    let signature = Signature::parse(signature).expect("signature");
    match build_module(&host, &entry, &signature, &Options::default()) {
        Ok(built) => built,
        Err(error) => panic!("{kernel}:\n{error}"),
    }
}

fn count(module: &Module, name: &str) -> usize {
    module.all_ops(module.root()).into_iter().filter(|&op| module.op_name(op) == name).count()
}

#[test]
fn all() {
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
        let t = std::time::Instant::now();
        let built = compile(k, s);
        let first = t.elapsed();
        let t = std::time::Instant::now();
        let _ = compile(k, s);
        println!("==== {k} {first:?} {:?}", t.elapsed());
        let text = tilewright_ir::text::print(&built.module);
        println!("{text}");
        if let Err(errors) = tilewright_ir::verify::verify(&built.module) {
            panic!("{k}: {}", errors[0]);
        }
        let again = tilewright_ir::text::parse(&text, "x.mlir").unwrap_or_else(|e| panic!("{k}: {e}"));
        assert_eq!(tilewright_ir::text::print(&again), text);
        assert_eq!(count(&built.module, "tt.func"), if k == "control" { 2 } else { 1 });
    }
}
