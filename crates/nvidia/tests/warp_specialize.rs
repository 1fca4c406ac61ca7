//! `ttg.warp_specialize`: partitions run beside the default region, with threads, barriers and scratch of their own.

mod common;

use common::*;
use tilewright_nvidia::Kernel;
use tilewright_passes::pass::Row;
use tilewright_passes::{Options, lower_to_ttg};

/// Runs the passes that give warps, memory and barriers; returns IR text for the lowering.
fn allocated(ir: &str) -> String {
    let mut module = tilewright_ir::parse(ir, "test.mlir").unwrap_or_else(|e| panic!("{e}"));
    let mut target = common::plain("cuda:90");
    target.tma = true;
    for pass in ["async-dots", "allocate-warp-groups", "allocate-shared", "membar"] {
        target.pass(pass).unwrap().run(&mut module, &target, &Options::default()).unwrap();
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
    assert_eq!(kernel.num_warps, 7, "no registers move, so nobody is idle");
    let got = out.to_f32();
    close(&got[1..2], &[x.iter().sum()], 1e-4);
    close(&got[2..3], &[x[..64].iter().copied().fold(f32::MIN, f32::max)], 0.0);
    let want: Vec<f32> = (32..64).map(|i| i as f32).collect();
    assert_eq!(got[32..], want);
    // 65536 registers are enough for all: nothing to move.
    assert!(!kernel.ptx.contains("setmaxnreg"), "{}", kernel.ptx);
}

#[test]
fn registers_move_from_partitions_to_the_default_region() {
    // With 8 warps in the default region there are 12 of 168 registers.
    let ir = REDUCTIONS.replace("\"ttg.num-warps\" = 4", "\"ttg.num-warps\" = 8");
    let ir = ir.replace("warpsPerCTA = [4]", "warpsPerCTA = [8]");
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

/// A persistent matrix product as it is after layout assignment: tiles of 128×32, B given transposed.
const MATMUL: &str = r#"
#ba = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [8, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [8, 1], instrShape = [16, 32, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#sharedt = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @matmul(%a: !tt.tensordesc<tensor<128x64xf16, #shared>>, %b: !tt.tensordesc<tensor<32x64xf16, #shared>>, %out: !tt.ptr<f32>, %tiles: i32, %steps: i32, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c32 = arith.constant 32 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<128x32xf32, #mma>
    %first = tt.get_program_id x : i32
    %programs = tt.get_num_programs x : i32
    %total = arith.muli %tiles, %c1 : i32
    scf.for %t = %first to %total step %programs  : i32 {
      %column = arith.muli %t, %c32 : i32
      %acc = scf.for %i = %c0 to %steps step %c1 iter_args(%x = %zero) -> (tensor<128x32xf32, #mma>) : i32 {
        %k = arith.muli %i, %c64 : i32
        %la = tt.descriptor_load %a[%c0, %k] : !tt.tensordesc<tensor<128x64xf16, #shared>> -> tensor<128x64xf16, #ba>
        %lb = tt.descriptor_load %b[%column, %k] : !tt.tensordesc<tensor<32x64xf16, #shared>> -> tensor<32x64xf16, #ba>
        %sa = ttg.local_alloc %la : (tensor<128x64xf16, #ba>) -> !ttg.memdesc<128x64xf16, #shared, #smem>
        %sb = ttg.local_alloc %lb : (tensor<32x64xf16, #ba>) -> !ttg.memdesc<32x64xf16, #shared, #smem>
        %tb = ttg.memdesc_trans %sb {order = array<i32: 1, 0>} : !ttg.memdesc<32x64xf16, #shared, #smem> -> !ttg.memdesc<64x32xf16, #sharedt, #smem>
        %d = ttng.warp_group_dot %sa, %tb, %x {inputPrecision = 0 : i32} : !ttg.memdesc<128x64xf16, #shared, #smem> * !ttg.memdesc<64x32xf16, #sharedt, #smem> -> tensor<128x32xf32, #mma>
        scf.yield %d : tensor<128x32xf32, #mma>
      }
      %rows = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #ttg.slice<{dim = 1, parent = #mma}>>
      %cols = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #mma}>>
      %r1 = tt.expand_dims %rows {axis = 1 : i32} : tensor<128xi32, #ttg.slice<{dim = 1, parent = #mma}>> -> tensor<128x1xi32, #mma>
      %ns = tt.splat %n : i32 -> tensor<128x1xi32, #mma>
      %r2 = arith.muli %r1, %ns : tensor<128x1xi32, #mma>
      %cs = tt.splat %column : i32 -> tensor<32xi32, #ttg.slice<{dim = 0, parent = #mma}>>
      %c2 = arith.addi %cols, %cs : tensor<32xi32, #ttg.slice<{dim = 0, parent = #mma}>>
      %c3 = tt.expand_dims %c2 {axis = 0 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #mma}>> -> tensor<1x32xi32, #mma>
      %r3 = tt.broadcast %r2 : tensor<128x1xi32, #mma> -> tensor<128x32xi32, #mma>
      %c4 = tt.broadcast %c3 : tensor<1x32xi32, #mma> -> tensor<128x32xi32, #mma>
      %o = arith.addi %r3, %c4 : tensor<128x32xi32, #mma>
      %ps = tt.splat %out : !tt.ptr<f32> -> tensor<128x32x!tt.ptr<f32>, #mma>
      %p = tt.addptr %ps, %o : tensor<128x32x!tt.ptr<f32>, #mma>, tensor<128x32xi32, #mma>
      tt.store %p, %acc {tt.vec = 1 : i32, tt.vec_axis = 0 : i32} : tensor<128x32x!tt.ptr<f32>, #mma>
    } {tt.warp_specialize}
    tt.return
  }
}
"#;

/// The way from layouts on, with a number of stages.
fn specialized(ir: &str, num_stages: u32) -> tilewright_ir::Module {
    let mut module = tilewright_ir::parse(ir, "test.mlir").unwrap_or_else(|e| panic!("{e}"));
    let mut target = common::plain("cuda:90");
    (target.dots.wgmma, target.tma) = (true, true);
    let options = Options { num_stages, num_warps: 8, ..Options::default() };
    let all = target.passes.iter().map(|row| row.pass).skip_while(|p| p.name != "warp-specialize");
    for pass in all {
        pass.run(&mut module, &target, &options).unwrap_or_else(|e| panic!("{}: {e}", pass.name));
        tilewright_ir::verify(&module)
            .unwrap_or_else(|e| panic!("{}: {}\n{}", pass.name, e[0], tilewright_ir::print(&module)));
    }
    module
}

fn half_map(rows: u32, columns: u32, block: [u32; 2]) -> sim::TensorMap {
    sim::TensorMap {
        address: 0,
        element: sim::Element::F16,
        element_strides: vec![1, 1],
        dims: vec![columns.into(), rows.into()],
        strides: vec![u64::from(columns * 2)],
        box_dims: vec![block[1], block[0]],
        swizzle: sim::Swizzle::B128,
        nan_fill: false,
    }
}

#[test]
fn a_persistent_matmul_is_loaded_by_a_warp_of_its_own() {
    for (stages, tiles, steps, programs) in [(3, 3, 5, 1), (2, 5, 1, 2), (4, 2, 7, 1)] {
        let module = specialized(MATMUL, stages);
        let text = tilewright_ir::print(&module);
        assert!(text.contains("partition0"), "{text}");
        let kernel = generate(&module, "cuda:90");
        assert_eq!(kernel.num_warps, 12);
        // TMA and the tensor cores take the same path to shared memory.
        assert!(!text.contains("fence_async_shared"), "{text}");
        let (n, k) = (32 * tiles, 64 * steps);
        let (a, b) = (numbers(128 * k, 1), numbers(n * k, 2));
        let (mut ba, mut bb, mut out) = (Buffer::f16(&a), Buffer::f16(&b), Buffer::zeros(128 * n * 4));
        let report = simulate(&kernel, programs, &mut arguments(&mut ba, &mut bb, &mut out, tiles, steps));
        assert!(report.findings.is_empty(), "{:#?}\n{text}\n{}", report.findings, kernel.ptx);
        let h = |v: f32| half::f16::from_f32(v).to_f32();
        let mut want = vec![0f32; 128 * n];
        for i in 0..128 {
            for j in 0..n {
                want[i * n + j] = (0..k).map(|l| h(a[i * k + l]) * h(b[j * k + l])).sum();
            }
        }
        close(&out.to_f32(), &want, 1e-2);
    }
}

/// The arguments of [`MATMUL`]: 128 rows, `tiles` tiles of 32 columns, `steps` steps of 64 along K.
fn arguments<'a>(
    a: &'a mut Buffer,
    b: &'a mut Buffer,
    out: &'a mut Buffer,
    tiles: usize,
    steps: usize,
) -> [Arg<'a>; 6] {
    let (n, k) = (32 * tiles, 64 * steps);
    [
        Arg::Map(a, half_map(128, k as u32, [128, 64])),
        Arg::Map(b, half_map(n as u32, k as u32, [32, 64])),
        Arg::Buffer(out),
        Arg::I32(tiles as i32),
        Arg::I32(steps as i32),
        Arg::I32(n as i32),
    ]
}

#[test]
fn what_orders_the_partitions_is_needed() {
    for stages in [2, 3] {
        let kernel = generate(&specialized(MATMUL, stages), "cuda:90");
        let (tiles, steps) = (2, 5);
        let (n, k) = (32 * tiles, 64 * steps);
        let (mut ba, mut bb) = (Buffer::f16(&numbers(128 * k, 1)), Buffer::f16(&numbers(n * k, 2)));
        let mut out = Buffer::zeros(128 * n * 4);
        each_is_needed(&format!("{stages} stages"), &kernel, 8, 2, &mut |kernel| {
            simulate(kernel, 1, &mut arguments(&mut ba, &mut bb, &mut out, tiles, steps)).findings
        });
    }
}

/// [`MATMUL`] whose tiles go out through descriptors, rounded and twice that: by a warp of its own.
fn stored() -> String {
    let (head, rest) = MATMUL.split_once("      %rows = tt.make_range").expect("where the addresses begin");
    let (_, tail) = rest.split_once("tensor<128x32x!tt.ptr<f32>, #mma>\n    } {").expect("the store");
    let desc = "!tt.tensordesc<tensor<128x32xf16, #out>>";
    let out =
        "#out = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>\n";
    let half = "tensor<128x32xf16, #mma>";
    let text = format!(
        "{out}{head}      %h = arith.truncf %acc : tensor<128x32xf32, #mma> to {half}\n      \
         tt.descriptor_store %out[%c0, %column], %h : {desc}, {half}\n      \
         %h2 = arith.addf %h, %h : {half}\n      \
         tt.descriptor_store %twice[%c0, %column], %h2 : {desc}, {half}\n    }} {{{tail}"
    );
    text.replace("%out: !tt.ptr<f32>", &format!("%out: {desc}"))
        .replace("%n: i32)", &format!("%n: i32, %twice: {desc})"))
}

#[test]
fn tiles_are_stored_by_a_warp_of_its_own() {
    let module = specialized(&stored(), 3);
    let text = tilewright_ir::print(&module);
    assert!(text.contains("partition1"), "{text}");
    let kernel = generate(&module, "cuda:90");
    assert_eq!(kernel.num_warps, 12);
    let (tiles, steps) = (5, 3);
    let (n, k) = (32 * tiles, 64 * steps);
    let (a, b) = (numbers(128 * k, 1), numbers(n * k, 2));
    let (mut ba, mut bb, mut out) = (Buffer::f16(&a), Buffer::f16(&b), Buffer::zeros(128 * n * 2));
    let mut twice = Buffer::zeros(128 * n * 2);
    let mut run = |kernel: &Kernel, programs, out: &mut Buffer, twice: &mut Buffer| {
        let map = || sim::TensorMap { swizzle: sim::Swizzle::B64, ..half_map(128, n as u32, [128, 32]) };
        let mut none = Buffer::zeros(4);
        let [x, y, _, tiles, steps, n] = arguments(&mut ba, &mut bb, &mut none, tiles, steps);
        let args = &mut [x, y, Arg::Map(out, map()), tiles, steps, n, Arg::Map(twice, map())];
        simulate(kernel, programs, args).findings
    };
    let h = |v: f32| half::f16::from_f32(v).to_f32();
    let want: Vec<f32> = (0..128 * n)
        .map(|at| (0..k).map(|l| h(a[at / n * k + l]) * h(b[at % n * k + l])).sum::<f32>())
        .collect();
    for programs in [1, 2] {
        let findings = run(&kernel, programs, &mut out, &mut twice);
        assert!(findings.is_empty(), "{findings:#?}\n{text}\n{}", kernel.ptx);
        close(&out.to_f16(), &want, 1e-2);
        close(&twice.to_f16(), &want.iter().map(|v| 2.0 * v).collect::<Vec<_>>(), 2e-2);
    }
    each_is_needed("stores", &kernel, 16, 2, &mut |kernel| run(kernel, 1, &mut out, &mut twice));
}

/// `out = a bᵀ` for rows of 160: 64×32 tiles side by side, operands through pointers.
const POINTERS: &str = r#"
module {
  tt.func public @kernel(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %b: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %out: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %tiles: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c32 = arith.constant 32 : i32
    %c160 = arith.constant 160 : i32
    %zero = arith.constant dense<0.0> : tensor<64x32xf32>
    %ka = arith.constant dense<160> : tensor<64x1xi32>
    %kb = arith.constant dense<160> : tensor<1x32xi32>
    %r64 = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %r32 = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
    %m = tt.expand_dims %r64 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %ma = arith.muli %m, %ka : tensor<64x1xi32>
    %k0 = tt.expand_dims %r32 {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
    %k1 = tt.expand_dims %r32 {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
    %ar = tt.broadcast %ma : tensor<64x1xi32> -> tensor<64x32xi32>
    %ac = tt.broadcast %k0 : tensor<1x32xi32> -> tensor<64x32xi32>
    %ao = arith.addi %ar, %ac : tensor<64x32xi32>
    %as = tt.splat %a : !tt.ptr<f16> -> tensor<64x32x!tt.ptr<f16>>
    %ap = tt.addptr %as, %ao : tensor<64x32x!tt.ptr<f16>>, tensor<64x32xi32>
    scf.for %t = %c0 to %tiles step %c1  : i32 {
      %column = arith.muli %t, %c32 : i32
      %cs = tt.splat %column : i32 -> tensor<1x32xi32>
      %n = arith.addi %k0, %cs : tensor<1x32xi32>
      %nb = arith.muli %n, %kb : tensor<1x32xi32>
      %br = tt.broadcast %nb : tensor<1x32xi32> -> tensor<32x32xi32>
      %bc = tt.broadcast %k1 : tensor<32x1xi32> -> tensor<32x32xi32>
      %bo = arith.addi %br, %bc : tensor<32x32xi32>
      %bs = tt.splat %b : !tt.ptr<f16> -> tensor<32x32x!tt.ptr<f16>>
      %bp = tt.addptr %bs, %bo : tensor<32x32x!tt.ptr<f16>>, tensor<32x32xi32>
      %acc = scf.for %k = %c0 to %c160 step %c32 iter_args(%x = %zero) -> (tensor<64x32xf32>)  : i32 {
        %ks = tt.splat %k : i32 -> tensor<64x32xi32>
        %pa = tt.addptr %ap, %ks : tensor<64x32x!tt.ptr<f16>>, tensor<64x32xi32>
        %kt = tt.splat %k : i32 -> tensor<32x32xi32>
        %pb = tt.addptr %bp, %kt : tensor<32x32x!tt.ptr<f16>>, tensor<32x32xi32>
        %la = tt.load %pa : tensor<64x32x!tt.ptr<f16>>
        %lb = tt.load %pb : tensor<32x32x!tt.ptr<f16>>
        %d = tt.dot %la, %lb, %x : tensor<64x32xf16> * tensor<32x32xf16> -> tensor<64x32xf32>
        scf.yield %d : tensor<64x32xf32>
      }
      %ns = tt.splat %tiles : i32 -> tensor<64x1xi32>
      %w = arith.constant dense<32> : tensor<64x1xi32>
      %width = arith.muli %ns, %w : tensor<64x1xi32>
      %mr = arith.muli %m, %width : tensor<64x1xi32>
      %or = tt.broadcast %mr : tensor<64x1xi32> -> tensor<64x32xi32>
      %oc = tt.broadcast %n : tensor<1x32xi32> -> tensor<64x32xi32>
      %oo = arith.addi %or, %oc : tensor<64x32xi32>
      %os = tt.splat %out : !tt.ptr<f32> -> tensor<64x32x!tt.ptr<f32>>
      %op = tt.addptr %os, %oo : tensor<64x32x!tt.ptr<f32>>, tensor<64x32xi32>
      tt.store %op, %acc : tensor<64x32x!tt.ptr<f32>>
    } {tt.warp_specialize}
    tt.return
  }
}
"#;

#[test]
fn what_orders_copies_by_threads_is_needed() {
    for num_warps in [4, 8] {
        let mut module = tilewright_ir::parse(POINTERS, "test.mlir").unwrap_or_else(|e| panic!("{e}"));
        let mut target = common::plain("cuda:90");
        (target.dots.wgmma, target.tma) = (true, true);
        // Blocks that TMA copies want no threads.
        let by_threads = |row: &&Row| row.pass.name != "raise-to-descriptors";
        target.passes = target.passes.iter().filter(by_threads).copied().collect::<Vec<_>>().leak();
        let options = Options { num_stages: 2, num_warps, ..Options::default() };
        lower_to_ttg(&mut module, &target, &options).unwrap_or_else(|e| panic!("{e}"));
        let kernel = generate(&module, "cuda:90");
        assert_eq!(kernel.num_warps, num_warps + 4);
        assert!(kernel.ptx.contains("cp.async.mbarrier.arrive.noinc"), "{}", kernel.ptx);
        let (tiles, k) = (2, 160);
        let n = 32 * tiles;
        let (a, b) = (numbers(64 * k, 1), numbers(n * k, 2));
        let (mut ba, mut bb, mut out) = (Buffer::f16(&a), Buffer::f16(&b), Buffer::zeros(64 * n * 4));
        let mut run = |kernel: &Kernel, out: &mut Buffer| {
            let mut args =
                [Arg::Buffer(&mut ba), Arg::Buffer(&mut bb), Arg::Buffer(out), Arg::I32(tiles as i32)];
            simulate(kernel, 1, &mut args).findings
        };
        let findings = run(&kernel, &mut out);
        assert!(findings.is_empty(), "{findings:#?}\n{}", kernel.ptx);
        let h = |v: f32| half::f16::from_f32(v).to_f32();
        let want: Vec<f32> = (0..64 * n)
            .map(|at| (0..k).map(|l| h(a[at / n * k + l]) * h(b[at % n * k + l])).sum::<f32>())
            .collect();
        close(&out.to_f32(), &want, 1e-2);
        each_is_needed(&format!("{num_warps} warps"), &kernel, 7, 2, &mut |kernel| run(kernel, &mut out));
    }
}
