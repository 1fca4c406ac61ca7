//! The language's typing rules, checked by kernels themselves (`kernels/typing.py`) as they are compiled.

use tilewright_frontend::{Options, Signature, SourceHost, build_module};

#[test]
fn kernels_agree_with_the_typing_rules() {
    let source = include_str!("kernels/typing.py");
    let host = SourceHost::new("typing.py", source).expect("parses");
    let lines: Vec<&str> = source.lines().collect();
    let mut kernels = 0;
    let mut wrong = String::new();
    for (i, line) in lines.iter().enumerate() {
        let Some(signature) = line.strip_prefix("# ") else { continue };
        let name = lines[i + 2].strip_prefix("def ").and_then(|l| l.split('(').next()).expect("a kernel");
        let signature = Signature::parse(signature).expect("a signature");
        let entry = host.function(name).expect("a kernel");
        kernels += 1;
        let options = Options { debug: true, ..Options::default() };
        match build_module(&host, &entry, &signature, &options) {
            Ok(mut built) => {
                if let Err(errors) = tilewright_ir::verify::verify(&built.module) {
                    wrong += &format!("{name}: {}\n", errors[0]);
                }
                let text = tilewright_ir::text::print(&built.module);
                let again = tilewright_ir::text::parse(&text, "again.mlir");
                match again {
                    Ok(again) => {
                        built.module.forget_names();
                        assert_eq!(
                            tilewright_ir::text::print(&again),
                            tilewright_ir::text::print(&built.module)
                        );
                    }
                    Err(error) => wrong += &format!("{name}: {error}\n"),
                }
            }
            Err(error) => wrong += &format!("{name}: {error}\n"),
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert_eq!(kernels, 6);
}
