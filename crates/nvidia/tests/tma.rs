//! TMA copies and mbarriers: `ttg` IR through allocation and barrier placement to PTX, run in the simulator, whose checks
//! find a copy that nobody waited for, a missing barrier or proxy fence, and a wrong byte count.

mod common;

use common::*;
use tilewright_passes::{Options as PassOptions, TargetInfo, pipeline};

const ALIASES: &str = r#"
#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#smem = #ttg.shared_memory
"#;

const MODULE: &str = r#"module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32}"#;

/// Allocates shared memory, places barriers, generates code.
fn finish(ir: &str) -> tilewright_nvidia::Kernel {
    let mut module = tilewright_ir::text::parse(ir, "test.mlir").unwrap_or_else(|e| panic!("{e}"));
    tilewright_ir::verify::verify(&module).unwrap_or_else(|e| panic!("{}", e[0]));
    let (target, options) = (TargetInfo::parse("cuda:90").unwrap(), PassOptions::default());
    for pass in ["allocate-shared", "membar"] {
        pipeline::find(pass).unwrap().run(&mut module, &target, &options).unwrap_or_else(|e| panic!("{e}"));
    }
    generate(&module, "cuda:90")
}

fn map(dims: [u32; 2], elem: u32, block: [u32; 2], swizzle: sim::Swizzle) -> sim::TensorMap {
    sim::TensorMap {
        address: 0,
        element_bytes: elem,
        dims: vec![dims[1], dims[0]],
        strides: vec![u64::from(dims[1] * elem)],
        box_dims: vec![block[1], block[0]],
        swizzle,
        nan_fill: false,
    }
}

/// A kernel that reads blocks (k, 0), (k, 1), … of 16-row bands into a buffer, adds one and writes them elsewhere.
fn copy_kernel(rows: u32, columns: u32, encoding: &str, count: u32) -> String {
    let ty = format!("tensor<{rows}x{columns}xf32, #blocked>");
    let desc = format!("!tt.tensordesc<tensor<{rows}x{columns}xf32, #shared>>");
    let tile = format!("!ttg.memdesc<{rows}x{columns}xf32, #shared, #smem, mutable>");
    let bytes = rows * columns * 4;
    format!(
        r#"{ALIASES}#shared = {encoding}
{MODULE} {{
  tt.func public @kernel(%in: {desc}, %out: {desc}) {{
    %true = arith.constant true
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %count = arith.constant {count} : i32
    %columns = arith.constant {columns} : i32
    %one = arith.constant dense<1.0> : {ty}
    %tile = ttg.local_alloc : () -> {tile}
    %result = ttg.local_alloc : () -> {tile}
    %bar = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #bar, #smem, mutable>
    ttng.init_barrier %bar, 1 : !ttg.memdesc<1xi64, #bar, #smem, mutable>
    %end = scf.for %i = %c0 to %count step %c1 iter_args(%phase = %c0) -> (i32) : i32 {{
      %column = arith.muli %i, %columns : i32
      ttng.barrier_expect %bar, {bytes}, %true : !ttg.memdesc<1xi64, #bar, #smem, mutable>
      ttng.async_tma_copy_global_to_local %in[%c0, %column] %tile, %bar, %true : {desc}, !ttg.memdesc<1xi64, #bar, #smem, mutable> -> {tile}
      ttng.wait_barrier %bar, %phase : !ttg.memdesc<1xi64, #bar, #smem, mutable>
      %x = ttg.local_load %tile : {tile} -> {ty}
      %y = arith.addf %x, %one : {ty}
      ttng.async_tma_store_wait {{pendings = 0 : i32}}
      ttg.local_store %y, %result : {ty} -> {tile}
      ttng.async_tma_copy_local_to_global %out[%c0, %column] %result : {desc}, {tile}
      %next = arith.xori %phase, %c1 : i32
      scf.yield %next : i32
    }}
    ttng.async_tma_store_wait {{pendings = 0 : i32}}
    ttng.inval_barrier %bar : !ttg.memdesc<1xi64, #bar, #smem, mutable>
    ttg.local_dealloc %result : {tile}
    tt.return
  }}
}}"#
    )
}

/// Copies a matrix that the last band and block overhang; what is outside reads as zero and is not written.
fn copies(rows: u32, columns: u32, boxed: [u32; 2], encoding: &str, swizzle: sim::Swizzle) {
    let count = 3;
    let kernel = finish(&copy_kernel(rows, columns, encoding, count));
    let (m, n) = (rows - 1, columns * count - 4);
    let values = numbers((m * n) as usize, 1);
    let (mut input, mut output) = (Buffer::f32(&values), Buffer::zeros((m * n * 4) as usize));
    let (from, to) = (map([m, n], 4, boxed, swizzle), map([m, n], 4, boxed, swizzle));
    let report = simulate(&kernel, 1, &mut [Arg::Map(&mut input, from), Arg::Map(&mut output, to)]);
    assert!(report.findings.is_empty(), "{:#?}\n{}", report.findings, kernel.ptx);
    let want: Vec<f32> = values.iter().map(|v| v + 1.0).collect();
    close(&output.to_f32(), &want, 0.0);
}

fn nvmma(swizzle: u32) -> String {
    format!("#ttg.nvmma_shared<{{swizzlingByteWidth = {swizzle}, transposed = false, elementBitWidth = 32}}>")
}

#[test]
fn one_box() {
    copies(16, 32, [16, 32], &nvmma(128), sim::Swizzle::B128);
}

#[test]
fn several_boxes() {
    copies(16, 64, [16, 32], &nvmma(128), sim::Swizzle::B128);
    copies(16, 48, [16, 16], &nvmma(64), sim::Swizzle::B64);
}

#[test]
fn rows_as_they_are() {
    let plain = "#ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>";
    copies(16, 32, [16, 32], plain, sim::Swizzle::None);
}

#[test]
fn a_wrong_swizzle_is_seen() {
    let kernel = finish(&copy_kernel(16, 32, &nvmma(128), 1));
    let values = numbers(16 * 32, 1);
    let (mut input, mut output) = (Buffer::f32(&values), Buffer::zeros(16 * 32 * 4));
    let from = map([16, 32], 4, [16, 32], sim::Swizzle::None);
    let to = map([16, 32], 4, [16, 32], sim::Swizzle::B128);
    simulate(&kernel, 1, &mut [Arg::Map(&mut input, from), Arg::Map(&mut output, to)]);
    assert_ne!(output.to_f32(), values.iter().map(|v| v + 1.0).collect::<Vec<_>>());
}

/// Without the barrier and the fence between a store to the tile and its copy to global memory the simulator complains: the
/// tests above do not pass by luck. (What it checks only as far as its schedule goes: the first and the last operation on
/// an mbarrier, and that a buffer is not stored to before another thread has waited for its copy.)
#[test]
fn the_barrier_and_the_fence_before_a_copy_to_global_memory_are_needed() {
    let kernel = finish(&copy_kernel(16, 32, &nvmma(128), 2));
    let mut lines: Vec<&str> = kernel.ptx.lines().collect();
    let places = |what: &str| -> Vec<usize> {
        kernel.ptx.lines().enumerate().filter(|(_, l)| l.contains(what)).map(|(i, _)| i).collect()
    };
    let (barriers, fences) = (places("bar.sync"), places("fence.proxy.async"));
    assert_eq!((barriers.len(), fences.len()), (4, 1), "{}", kernel.ptx);
    for at in [barriers[2], fences[0]] {
        let line = std::mem::take(&mut lines[at]);
        let without = tilewright_nvidia::Kernel { ptx: lines.join("\n"), ..kernel.clone() };
        lines[at] = line;
        let values = numbers(16 * 64, 1);
        let (mut input, mut output) = (Buffer::f32(&values), Buffer::zeros(16 * 64 * 4));
        let [from, to] = [(); 2].map(|()| map([16, 64], 4, [16, 32], sim::Swizzle::B128));
        let report = simulate(&without, 1, &mut [Arg::Map(&mut input, from), Arg::Map(&mut output, to)]);
        assert!(!report.findings.is_empty(), "without line {at} `{line}`:\n{}", kernel.ptx);
    }
}
