//! How much the code generator hands over: compile time is proportional to it.
//!
//! The kernels are those of the passes' tests, taken through the passes as a user's kernel is.

mod common;

use tilewright_nvidia::{CodegenOptions, Kernel, Target, compile};
use tilewright_passes::{Options, lower_to_ttg};

fn kernel(name: &str, num_warps: u32, num_stages: u32) -> Kernel {
    kernel_with(name, num_warps, num_stages, false)
}

fn kernel_with(name: &str, num_warps: u32, num_stages: u32, wgmma: bool) -> Kernel {
    let path = format!("{}/../passes/tests/ir/{name}.mlir", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap();
    let mut module = tilewright_ir::parse(&text, &path).unwrap_or_else(|e| panic!("{e}"));
    let info = {
        let mut info = common::plain("cuda:90");
        info.dots.wgmma = wgmma;
        info
    };
    lower_to_ttg(&mut module, &info, &Options { num_warps, num_ctas: 1, num_stages, ..Options::default() })
        .unwrap_or_else(|e| panic!("{e}"));
    let mut options = CodegenOptions::new(Target::parse("cuda:90").unwrap());
    options.verify = true;
    compile(&module, &options).unwrap_or_else(|e| panic!("{e}"))
}

/// The instructions of the innermost loop: from the label that the last backward branch goes to.
fn loop_body(ptx: &str) -> Vec<&str> {
    let lines: Vec<&str> = ptx.lines().map(str::trim).collect();
    let label = |l: &str| l.rsplit_once("bra").map(|(_, t)| t.trim().trim_end_matches(';').to_string());
    for (end, line) in lines.iter().enumerate().rev() {
        if let Some(target) = label(line)
            && let Some(start) = lines[..end].iter().position(|l| *l == format!("{target}:"))
        {
            let is_code = |l: &&str| l.ends_with(';') && !l.starts_with("//") && !l.starts_with('.');
            return lines[start..=end].iter().copied().filter(is_code).collect();
        }
    }
    panic!("no loop in\n{ptx}");
}

fn count(body: &[&str], what: &str) -> usize {
    body.iter().filter(|l| l.contains(what)).count()
}

#[test]
fn flash_attention() {
    // D = 128, blocks of 128 x 64, 8 warps, 3 stages: 1989 when this was written.
    let k = kernel("attention", 8, 3);
    assert!(k.instructions <= 2100, "{} LLVM instructions", k.instructions);
    let body = loop_body(&k.ptx);
    assert_eq!(count(&body, "mma.sync"), 128);
    assert_eq!(count(&body, "ldmatrix"), 64);
    assert_eq!(count(&body, "ex2.approx"), 34);
    // The probabilities go from accumulators to operands in registers.
    assert_eq!(count(&body, "st.shared"), 0);
    assert_eq!(count(&body, "ld.shared"), 0);
    assert_eq!(count(&body, "bar.sync"), 1);
    assert!(body.len() < 650, "{} instructions in the loop", body.len());
}

#[test]
fn matmul() {
    let k = kernel("matmul", 4, 3);
    assert!(k.instructions <= 1850, "{} LLVM instructions", k.instructions);
    let body = loop_body(&k.ptx);
    assert_eq!(count(&body, "mma.sync"), 128);
    assert_eq!(count(&body, "ldmatrix.sync.aligned.m8n8.x4"), 32);
    assert_eq!(count(&body, "cp.async.cg.shared.global"), 16);
    assert_eq!(count(&body, "bar.sync"), 1);
    assert!(body.len() < 300, "{} instructions in the loop", body.len());
}

#[test]
fn matmul_by_warp_groups() {
    // Tiles of 128 x 128 x 64 with 4 warps: 16 copies of 16 bytes a thread.
    for stages in [3, 4] {
        let k = kernel_with("matmul", 4, stages, true);
        let body = loop_body(&k.ptx);
        assert_eq!(count(&body, "wgmma.mma_async"), 8);
        assert_eq!(count(&body, "cp.async.cg.shared.global"), 16);
        // An address each and the offset of either operand, and two descriptors for each product.
        let adds = count(&body, "add.s64");
        assert!(adds <= 16 + 2 + 2 * 8, "{adds} additions of 64 bits with {stages} stages");
        assert_eq!(count(&body, "mul.wide"), 0);
        // 128 results a thread, in pairs, four matrices at once.
        assert_eq!(k.ptx.matches("stmatrix.sync.aligned.m8n8.x4.shared.b16").count(), 16);
        assert_eq!(k.ptx.matches("st.shared").count(), 0);
    }
}

#[test]
fn vector_add() {
    let k = kernel("add", 4, 3);
    assert!(k.instructions <= 80, "{} LLVM instructions", k.instructions);
    assert_eq!(k.ptx.matches(".v4.b32").count(), 6, "{}", k.ptx);
}
