//! Every barrier, wait and fence that the pipeline places is needed: with any one of them removed from the PTX the simulator
//! reports it, and with all of them it reports nothing.

mod common;

use common::*;
use tilewright_nvidia::{CodegenOptions, Kernel, Target, compile};
use tilewright_passes::{Options, lower_to_ttg};

fn source(name: &str) -> String {
    let path = format!("{}/../passes/tests/ir/{name}.mlir", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap()
}

fn kernel(text: &str, target: &str, wgmma: bool, num_warps: u32, num_stages: u32) -> Kernel {
    let mut module = tilewright_ir::parse(text, "kernel.mlir").unwrap_or_else(|e| panic!("{e}"));
    let mut info = common::plain(target);
    info.dots.wgmma = wgmma;
    lower_to_ttg(&mut module, &info, &Options { num_warps, num_ctas: 1, num_stages, ..Options::default() })
        .unwrap_or_else(|e| panic!("{e}"));
    compile(&module, &CodegenOptions::new(Target::parse(target).unwrap())).unwrap_or_else(|e| panic!("{e}"))
}

/// Runs one CTA with each of some sets of integers behind the buffers.
fn needed(
    what: &str,
    kernel: &Kernel,
    least: usize,
    but: &[&str],
    buffers: &mut [Buffer],
    launches: &[&[i32]],
) {
    each_is_needed_but(what, kernel, least, 0, but, &mut |kernel| {
        let mut found = vec![];
        for scalars in launches {
            let mut args: Vec<Arg> = buffers.iter_mut().map(Arg::Buffer).collect();
            args.extend(scalars.iter().map(|&v| Arg::I32(v)));
            found.extend(simulate(kernel, 1, &mut args).findings);
        }
        found
    });
}

/// `size`: rows and columns of the tile, 64 or, of 256, 32 along K.
fn matmul(target: &str, wgmma: bool, num_warps: u32, num_stages: u32, size: usize) {
    let (text, depth) = match size {
        128 => (source("matmul"), 320),
        _ => (source("matmul").replace("128", "256").replace("64", "32").replace("63", "31"), 160),
    };
    let k = kernel(&text, target, wgmma, num_warps, num_stages);
    assert_eq!(k.ptx.contains("wgmma.mma_async"), wgmma);
    let mut buffers = [
        Buffer::f16(&numbers(size * depth, 1)),
        Buffer::f16(&numbers(depth * size, 2)),
        Buffer::zeros(size * size * 2),
    ];
    let (n, d) = (size as i32, depth as i32);
    // What a loop leaves under way is waited for at its end: copies that are masked off. Warps store the rows of 256 columns that they have with no
    // regard to each other, in memory that is no slot's.
    let but: &[&str] = if size == 256 { &["cp.async.wait_group 0;"] } else { &[] };
    needed(
        &format!("matmul, {target}, wgmma {wgmma}, {num_warps} warps, {num_stages} stages, {size}"),
        &k,
        1,
        but,
        &mut buffers,
        &[&[n, n, d, d, n, n]],
    );
}

fn attention(target: &str, wgmma: bool, num_warps: u32, num_stages: u32) {
    let k = kernel(&source("attention"), target, wgmma, num_warps, num_stages);
    assert_eq!(k.ptx.contains("wgmma.mma_async"), wgmma);
    let (n, d) = (320usize, 128usize);
    let mut buffers = [
        Buffer::f16(&numbers(128 * d, 1)),
        Buffer::f16(&numbers(n * d, 2)),
        Buffer::f16(&numbers(n * d, 3)),
        Buffer::zeros(128 * d * 2),
        Buffer::zeros(128 * 4),
    ];
    // What a loop leaves under way is waited for at its end. With two stages all that is left are copies that are masked
    // off, into a slot that nothing uses again.
    let but: &[&str] = if wgmma && num_stages == 2 { &["cp.async.wait_group 0;"] } else { &[] };
    needed(
        &format!("attention, {target}, wgmma {wgmma}, {num_warps} warps, {num_stages} stages"),
        &k,
        1,
        but,
        &mut buffers,
        // With no keys the loop is left out, and what is before it meets what is after it.
        &[&[d as i32, n as i32], &[d as i32, 0]],
    );
}

#[test]
fn matmul_by_warps() {
    for (target, num_warps, num_stages) in
        [("cuda:80", 4, 3), ("cuda:80", 8, 2), ("cuda:80", 4, 1), ("cuda:90", 4, 4)]
    {
        matmul(target, false, num_warps, num_stages, 128);
    }
}

#[test]
fn matmul_by_warp_groups() {
    for (num_warps, num_stages) in [(4, 4), (4, 3), (8, 2), (4, 1)] {
        matmul("cuda:90", true, num_warps, num_stages, 128);
    }
    // Its copies are shorter than its product: one barrier.
    matmul("cuda:90", true, 8, 4, 256);
}

#[test]
fn attention_by_warps() {
    for (target, num_warps, num_stages) in [("cuda:80", 8, 3), ("cuda:80", 4, 2), ("cuda:90", 4, 1)] {
        attention(target, false, num_warps, num_stages);
    }
}

#[test]
fn attention_by_warp_groups() {
    for (num_warps, num_stages) in [(8, 3), (8, 2), (8, 1), (4, 3), (4, 2), (4, 1)] {
        attention("cuda:90", true, num_warps, num_stages);
    }
}

#[test]
fn softmax_reductions() {
    for (target, num_warps) in [("cuda:80", 4), ("cuda:90", 8), ("cuda:90", 2)] {
        let k = kernel(&source("softmax"), target, false, num_warps, 3);
        let mut buffers = [Buffer::zeros(1008 * 2), Buffer::f16(&numbers(1008, 1))];
        needed(&format!("softmax, {target}, {num_warps} warps"), &k, 2, &[], &mut buffers, &[&[1008, 1000]]);
    }
}
