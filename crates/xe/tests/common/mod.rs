//! What the tests of the target share.
#![allow(dead_code, reason = "each test is a crate of its own, and not all use everything")]

use tilewright_frontend::{Options, Signature, SourceHost, build_module_for};
use tilewright_ir::Module;
use tilewright_passes::lower_to_ttg;
use tilewright_passes::pass::Property;
use tilewright_passes::transform::distribute_to_lanes;
use tilewright_xe::Target;
use tilewright_xe::pipeline::PASSES;

/// A kernel as the front end gives it.
pub fn built(source: &str, signature: &str, num_warps: u32) -> Module {
    let source = format!("import tilewright\nimport tilewright.language as tl\n\n@tilewright.jit\n{source}");
    let host = SourceHost::new("kernel.py", &source).unwrap_or_else(|e| panic!("{e}"));
    let entry = host.function("kernel").unwrap_or_else(|e| panic!("{e}"));
    let signature = Signature::parse(signature).unwrap_or_else(|e| panic!("{e}"));
    let options = Options { num_warps, ..Options::default() };
    let built = build_module_for(&host, &entry, &signature, &options, Some("xe:pvc"));
    let mut module = built.unwrap_or_else(|e| panic!("{e}")).module;
    tilewright_ir::pass::optimize(&mut module).unwrap_or_else(|e| panic!("{e}"));
    module
}

/// A kernel behind the passes of `xe:pvc`, as far as tensors are those of a warp and not of its lanes.
pub fn lowered(source: &str, signature: &str, num_warps: u32) -> Module {
    let mut module = built(source, signature, num_warps);
    let options = Options { num_warps, ..Options::default() };
    let mut target = Target::parse("xe:pvc").expect("is one").info();
    let end = PASSES.iter().position(|row| row.pass == distribute_to_lanes::PASS).expect("is one of them");
    (target.passes, target.lowered) = (&PASSES[..end], &[Property::TargetSized]);
    lower_to_ttg(&mut module, &target, &options)
        .unwrap_or_else(|e| panic!("{e}\n{}", tilewright_ir::print(&module)));
    module
}
