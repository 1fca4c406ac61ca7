//! What the tests of the target share.
#![allow(dead_code, reason = "each test is a crate of its own, and not all use everything")]

use tilewright_frontend::{Options, Signature, SourceHost, build_module_for};
use tilewright_ir::{Diagnostic, Module};
use tilewright_passes::lower_to_ttg;
use tilewright_passes::pass::Property;
use tilewright_passes::transform::distribute_to_lanes;
use tilewright_xe::Target;
use tilewright_xe::pipeline::PASSES;

/// Attention forward by descriptors.
pub const ATTENTION: &str = "\
def kernel(q, k, v, o, N, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM
    q_blocks = tl.make_tensor_descriptor(q, [N, D], [D, 1], [BM, D])
    k_blocks = tl.make_tensor_descriptor(k, [N, D], [D, 1], [BN, D])
    v_blocks = tl.make_tensor_descriptor(v, [N, D], [D, 1], [BN, D])
    o_blocks = tl.make_tensor_descriptor(o, [N, D], [D, 1], [BM, D])
    m = tl.full((BM,), float('-inf'), tl.float32)
    l = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    query = q_blocks.load([rows, 0])
    for start in range(0, N, BN):
        qk = tl.dot(query, k_blocks.load([start, 0]).T)
        m_new = tl.maximum(m, tl.max(qk, axis=1))
        p = tl.exp2(qk - m_new[:, None])
        alpha = tl.exp2(m - m_new)
        l = l * alpha + tl.sum(p, axis=1)
        acc = acc * alpha[:, None]
        acc = tl.dot(p.to(tl.float16), v_blocks.load([start, 0]), acc)
        m = m_new
    o_blocks.store([rows, 0], (acc / l[:, None]).to(tl.float16))
";

/// A kernel as the front end gives it.
pub fn built(source: &str, signature: &str, num_warps: u32) -> Module {
    from_source(source, signature, &Options { num_warps, ..Options::default() })
        .unwrap_or_else(|e| panic!("{e}"))
}

/// A kernel behind the passes of `xe:pvc`, as far as tensors are those of a warp and not of its lanes.
pub fn lowered(source: &str, signature: &str, num_warps: u32) -> Module {
    let end = PASSES.iter().position(|row| row.pass == distribute_to_lanes::PASS).expect("is one of them");
    let options = Options { num_warps, ..Options::default() };
    behind(source, signature, &options, Some(end)).unwrap_or_else(|e| panic!("{e}"))
}

/// A kernel behind the first so many passes of `xe:pvc`, or all.
pub fn behind(
    source: &str,
    signature: &str,
    options: &Options,
    passes: Option<usize>,
) -> Result<Module, Diagnostic> {
    let mut module = from_source(source, signature, options)?;
    let mut target = Target::parse("xe:pvc").expect("is one").info();
    if let Some(end) = passes {
        (target.passes, target.lowered) = (&PASSES[..end], &[Property::TargetSized]);
    }
    lower_to_ttg(&mut module, &target, options)?;
    Ok(module)
}

fn from_source(source: &str, signature: &str, options: &Options) -> Result<Module, Diagnostic> {
    let source = format!("import tilewright\nimport tilewright.language as tl\n\n@tilewright.jit\n{source}");
    let host = SourceHost::new("kernel.py", &source).unwrap_or_else(|e| panic!("{e}"));
    let entry = host.function("kernel").unwrap_or_else(|e| panic!("{e}"));
    let signature = Signature::parse(signature).unwrap_or_else(|e| panic!("{e}"));
    let mut module = build_module_for(&host, &entry, &signature, options, Some("xe:pvc"))?.module;
    tilewright_ir::pass::optimize(&mut module)?;
    Ok(module)
}
