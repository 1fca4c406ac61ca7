//! Lowers a `tt` module from a file to `ttg` and prints it: `lower FILE [warps] [stages] [target]`.

use tilewright_nvidia::Target;
use tilewright_passes::{Options, lower_to_ttg_with};

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let number = |i: usize, or: u32| args.get(i).and_then(|a| a.parse().ok()).unwrap_or(or);
    let text = std::fs::read_to_string(&args[1]).expect("a readable file");
    let target =
        Target::parse(args.get(4).map_or("cuda:90", String::as_str)).unwrap_or_else(|d| panic!("{d}")).info();
    let options =
        Options { num_warps: number(2, 4), num_ctas: 1, num_stages: number(3, 3), ..Options::default() };
    let lowered = tilewright_ir::parse(&text, &args[1]).and_then(|mut module| {
        lower_to_ttg_with(&mut module, &target, &options, &mut |name, _, time| {
            eprintln!("{name}: {time:?}")
        })?;
        Ok(module)
    });
    match lowered {
        Ok(module) => println!("{}", tilewright_ir::print(&module)),
        Err(d) => {
            eprintln!("{d}");
            std::process::exit(1);
        }
    }
}
