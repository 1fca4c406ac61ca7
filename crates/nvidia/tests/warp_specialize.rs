//! `ttg.warp_specialize`: partitions run beside the default region, with threads, barriers and scratch of their own.

mod common;

use common::*;
use tilewright_passes::{Options as PassOptions, TargetInfo, pipeline};

/// Runs the passes that give warps, memory and barriers; returns IR text for the lowering.
fn allocated(ir: &str) -> String {
    let mut module = tilewright_ir::parse(ir, "test.mlir").unwrap_or_else(|e| panic!("{e}"));
    let target = TargetInfo::parse("cuda:90").unwrap();
    for pass in ["async-dots", "allocate-warp-groups", "allocate-shared", "membar"] {
        pipeline::find(pass).unwrap().run(&mut module, &target, &PassOptions::default()).unwrap();
    }
    tilewright_ir::verify(&module).unwrap_or_else(|e| panic!("{}", e[0]));
    tilewright_ir::print(&module)
}

/// The default region (4 warps), a partition of two and one of one warp each reduce across their warps; a captured value
/// that the function has computed, a constant, and what the default region yields are used.
const REDUCTIONS: &str = r#"
#b4 = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#b2 = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [2], order = [0]}>
#b1 = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%x: !tt.ptr<f32>, %out: !tt.ptr<f32>, %n: i32) {
    %c2 = arith.constant 2 : i32
    %twice = arith.muli %n, %c2 : i32
    %sum = ttg.warp_specialize(%x, %out, %twice, %c2) attributes {requestedRegisters = array<i32: 40, 24>}
    default {
      %i = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32, #b4>
      %p = tt.splat %x : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>, #b4>
      %q = tt.addptr %p, %i : tensor<256x!tt.ptr<f32>, #b4>, tensor<256xi32, #b4>
      %v = tt.load %q {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<256x!tt.ptr<f32>, #b4>
      %s = "tt.reduce"(%v) <{axis = 0 : i32}> ({
      ^bb0(%a: f32, %b: f32):
        %c = arith.addf %a, %b : f32
        tt.reduce.return %c : f32
      }) : (tensor<256xf32, #b4>) -> f32
      ttg.warp_yield %s : f32
    }
    partition0(%px: !tt.ptr<f32>, %po: !tt.ptr<f32>, %pt: i32, %pc: i32) num_warps(2) {
      %i = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #b2>
      %p = tt.splat %px : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #b2>
      %q = tt.addptr %p, %i : tensor<64x!tt.ptr<f32>, #b2>, tensor<64xi32, #b2>
      %v = tt.load %q {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<64x!tt.ptr<f32>, #b2>
      %s = "tt.reduce"(%v) <{axis = 0 : i32}> ({
      ^bb0(%a: f32, %b: f32):
        %c = arith.maxnumf %a, %b : f32
        tt.reduce.return %c : f32
      }) : (tensor<64xf32, #b2>) -> f32
      %o = tt.addptr %po, %pc : !tt.ptr<f32>, i32
      tt.store %o, %s : !tt.ptr<f32>
      ttg.warp_return
    }
    partition1(%px: !tt.ptr<f32>, %po: !tt.ptr<f32>, %pt: i32, %pc: i32) num_warps(1) {
      %i = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #b1>
      %t = tt.splat %pt : i32 -> tensor<32xi32, #b1>
      %j = arith.addi %i, %t : tensor<32xi32, #b1>
      %p = tt.splat %po : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>, #b1>
      %q = tt.addptr %p, %j : tensor<32x!tt.ptr<f32>, #b1>, tensor<32xi32, #b1>
      %v = arith.sitofp %j : tensor<32xi32, #b1> to tensor<32xf32, #b1>
      tt.store %q, %v {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<32x!tt.ptr<f32>, #b1>
      ttg.warp_return
    } : (!tt.ptr<f32>, !tt.ptr<f32>, i32, i32) -> f32
    %c1 = arith.constant 1 : i32
    %o = tt.addptr %out, %c1 : !tt.ptr<f32>, i32
    tt.store %o, %sum : !tt.ptr<f32>
    tt.return
  }
}
"#;

#[test]
fn partitions_have_threads_barriers_and_scratch_of_their_own() {
    let x = numbers(256, 1);
    let (mut input, mut out) = (Buffer::f32(&x), Buffer::zeros(64 * 4));
    let ir = allocated(REDUCTIONS);
    let kernel = run(&ir, "cuda:90", 1, &mut [Arg::Buffer(&mut input), Arg::Buffer(&mut out), Arg::I32(16)]);
    assert_eq!(kernel.num_warps, 8, "whole warp groups");
    let got = out.to_f32();
    close(&got[1..2], &[x.iter().sum()], 1e-4);
    close(&got[2..3], &[x[..64].iter().copied().fold(f32::MIN, f32::max)], 0.0);
    let want: Vec<f32> = (32..64).map(|i| i as f32).collect();
    assert_eq!(got[32..], want);
    // 65536 registers are enough for 8 warps: nothing to move.
    assert!(!kernel.ptx.contains("setmaxnreg"), "{}", kernel.ptx);
}

#[test]
fn registers_move_from_partitions_to_the_default_region() {
    // With 8 warps in the default region there are 12 of 168 registers.
    let ir = REDUCTIONS.replace("\"ttg.num-warps\" = 4", "\"ttg.num-warps\" = 8");
    let ir = allocated(&ir);
    assert!(ir.contains("actualRegisters = array<i32: 232, 40, 40>"), "{ir}");
    let x = numbers(256, 1);
    let (mut input, mut out) = (Buffer::f32(&x), Buffer::zeros(64 * 4));
    let kernel = run(&ir, "cuda:90", 1, &mut [Arg::Buffer(&mut input), Arg::Buffer(&mut out), Arg::I32(16)]);
    assert_eq!(kernel.num_warps, 12);
    for line in [
        ".reqntid 384",
        ".maxnreg 168",
        "setmaxnreg.inc.sync.aligned.u32 232",
        "setmaxnreg.dec.sync.aligned.u32 40",
    ] {
        assert!(kernel.ptx.contains(line), "{line}\n{}", kernel.ptx);
    }
    close(&out.to_f32()[1..2], &[x.iter().sum()], 1e-4);
}
