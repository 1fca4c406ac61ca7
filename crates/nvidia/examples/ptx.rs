//! Compiles a file of `ttg` IR and prints the PTX: `cargo run -p tilewright-nvidia --example ptx FILE [cuda:NN] [passes]`.

use tilewright_nvidia::{Options, Target, compile, ptxas};

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let text = std::fs::read_to_string(&args[1]).expect("a readable file");
    let module = tilewright_ir::text::parse(&text, &args[1]).unwrap_or_else(|e| panic!("{e}"));
    let target = Target::parse(args.get(2).map_or("cuda:90", String::as_str)).expect("a target");
    let mut options = Options::new(target);
    options.passes = args.get(3).cloned();
    let kernel = compile(&module, &options).unwrap_or_else(|e| panic!("{e}"));
    println!("{}", kernel.ptx);
    eprintln!("instructions {} {:?}", kernel.instructions, kernel.timing);
    options.verify = false;
    for _ in 0..4 {
        let kernel = compile(&module, &options).unwrap_or_else(|e| panic!("{e}"));
        eprintln!("again: {:?}", kernel.timing);
    }
    match ptxas::Ptxas::find(None) {
        Ok(p) => {
            match p.assemble(&kernel.ptx, target, &ptxas::Options { fp_contract: true, ..Default::default() })
            {
                Ok((_, usage, _)) => eprintln!("{usage:?}"),
                Err(e) => eprintln!("{e}"),
            }
        }
        Err(e) => eprintln!("{e}"),
    }
}
