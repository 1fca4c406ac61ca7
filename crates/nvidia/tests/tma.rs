//! TMA copies and mbarriers: `ttg` IR through allocation and barrier placement to PTX, run in the simulator, whose checks
//! find a copy that nobody waited for, a missing barrier or proxy fence, and a wrong byte count.

mod common;

use common::*;
use tilewright_passes::hopper::tma;
use tilewright_passes::{Options, lower_to_ttg};

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
    let (target, options) = (common::plain("cuda:90"), Options::default());
    for pass in ["allocate-shared", "membar"] {
        target.pass(pass).unwrap().run(&mut module, &target, &options).unwrap_or_else(|e| panic!("{e}"));
    }
    generate(&module, "cuda:90")
}

fn map(dims: [u32; 2], elem: u32, block: [u32; 2], swizzle: sim::Swizzle) -> sim::TensorMap {
    let element = if elem == 2 { sim::Element::F16 } else { sim::Element::F32 };
    sim::TensorMap {
        address: 0,
        element,
        element_strides: vec![1, 1],
        dims: vec![dims[1].into(), dims[0].into()],
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

/// Without any one of the barriers, waits, arrivals and fences around the copies the simulator complains: the tests above do
/// not pass by luck.
/// What the mbarrier expects and the copies are issued in one piece, around which the other warps branch; the barrier before what is copied stands in front of it.
#[test]
fn one_branch_leads_around_what_a_thread_issues() {
    let ptx = finish(&copy_kernel(16, 64, &nvmma(128), 3)).ptx;
    let (before, behind) = ptx.split_once("bra.uni issued;").unwrap_or_else(|| panic!("{ptx}"));
    let (issued, behind) = behind.split_once("issued:").unwrap_or_else(|| panic!("{ptx}"));
    assert_eq!(issued.matches("mbarrier.arrive.expect_tx").count(), 1, "{ptx}");
    assert_eq!(issued.matches("cp.async.bulk.tensor").count(), 2, "{ptx}");
    assert!(!behind.contains("expect_tx") && !behind.contains("bra.uni issued;"), "{ptx}");
    let body = before.rsplit_once(".pragma").map_or(before, |(_, body)| body);
    assert!(body.contains("bar.sync"), "{ptx}");
}

#[test]
fn what_orders_copies_is_needed() {
    // The kernel's end needs no invalidation, and without it not the barrier before it.
    let ir = copy_kernel(16, 32, &nvmma(128), 3);
    let ir: Vec<&str> = ir.lines().filter(|l| !l.contains("inval_barrier")).collect();
    let kernel = finish(&ir.join("\n"));
    let values = numbers(16 * 96, 1);
    let (mut input, mut output) = (Buffer::f32(&values), Buffer::zeros(16 * 96 * 4));
    each_is_needed("copies", &kernel, 8, 0, &mut |kernel| {
        let [from, to] = [(); 2].map(|()| map([16, 96], 4, [16, 32], sim::Swizzle::B128));
        simulate(kernel, 1, &mut [Arg::Map(&mut input, from), Arg::Map(&mut output, to)]).findings
    });
}

/// From `tt` through all passes.
fn compile_tt(
    ir: &str,
    num_warps: u32,
    num_stages: u32,
) -> (tilewright_ir::Module, tilewright_nvidia::Kernel) {
    let mut module = tilewright_ir::text::parse(ir, "test.mlir").unwrap_or_else(|e| panic!("{e}"));
    tilewright_ir::verify::verify(&module).unwrap_or_else(|e| panic!("{}", e[0]));
    let mut target = common::plain("cuda:90");
    (target.dots.wgmma, target.tma) = (true, true);
    let options = Options { num_warps, num_stages, ..Options::default() };
    lower_to_ttg(&mut module, &target, &options).unwrap_or_else(|e| panic!("{e}"));
    let kernel = generate(&module, "cuda:90");
    if std::env::var_os("SHOW").is_some() {
        eprintln!("{}", tilewright_ir::print(&module));
    }
    (module, kernel)
}

/// `c = a · b` by descriptors, `b` as it is or transposed.
fn matmul_kernel(shape: (u32, u32, u32), k: u32, transposed: bool) -> String {
    let (bm, bn, bk) = shape;
    let b_block = if transposed { format!("{bn}x{bk}") } else { format!("{bk}x{bn}") };
    let b_at = if transposed { "%c0, %k" } else { "%k, %c0" };
    let b = if transposed {
        format!(
            "%b = tt.trans %bl {{order = array<i32: 1, 0>}} : tensor<{b_block}xf16> -> tensor<{bk}x{bn}xf16>"
        )
    } else {
        String::new()
    };
    let b_name = if transposed { "%b" } else { "%bl" };
    format!(
        r#"module {{
  tt.func public @kernel(%ad: !tt.tensordesc<tensor<{bm}x{bk}xf16>>, %bd: !tt.tensordesc<tensor<{b_block}xf16>>, %cd: !tt.tensordesc<tensor<{bm}x{bn}xf32>>) {{
    %c0 = arith.constant 0 : i32
    %step = arith.constant {bk} : i32
    %end = arith.constant {k} : i32
    %zero = arith.constant dense<0.0> : tensor<{bm}x{bn}xf32>
    %sum = scf.for %k = %c0 to %end step %step iter_args(%acc = %zero) -> (tensor<{bm}x{bn}xf32>) : i32 {{
      %a = tt.descriptor_load %ad[%c0, %k] : !tt.tensordesc<tensor<{bm}x{bk}xf16>> -> tensor<{bm}x{bk}xf16>
      %bl = tt.descriptor_load %bd[{b_at}] : !tt.tensordesc<tensor<{b_block}xf16>> -> tensor<{b_block}xf16>
      {b}
      %d = tt.dot %a, {b_name}, %acc : tensor<{bm}x{bk}xf16> * tensor<{bk}x{bn}xf16> -> tensor<{bm}x{bn}xf32>
      scf.yield %d : tensor<{bm}x{bn}xf32>
    }}
    tt.descriptor_store %cd[%c0, %c0], %sum : !tt.tensordesc<tensor<{bm}x{bn}xf32>>, tensor<{bm}x{bn}xf32>
    tt.return
  }}
}}"#
    )
}

/// The map that the compiler says an argument needs, for a matrix.
fn map_for(module: &tilewright_ir::Module, arg: usize, dims: [u32; 2]) -> sim::TensorMap {
    let maps = tma::kernel_maps(module);
    let a = maps.iter().find(|m| m.arg == arg).expect("a tensor map");
    let swizzle = match a.swizzle_bytes {
        32 => sim::Swizzle::B32,
        64 => sim::Swizzle::B64,
        128 => sim::Swizzle::B128,
        _ => sim::Swizzle::None,
    };
    map(dims, module.bits(a.element) / 8, [a.box_dims[0], a.box_dims[1]], swizzle)
}

fn matmul(shape: (u32, u32, u32), k: u32, transposed: bool, num_stages: u32) {
    let (m, n, _) = shape;
    let (module, kernel) = compile_tt(&matmul_kernel(shape, k, transposed), 4, num_stages);
    assert!(kernel.ptx.contains("wgmma"), "{}", kernel.ptx);
    assert!(!kernel.ptx.contains("ld.global") && !kernel.ptx.contains("cp.async.cg"), "{}", kernel.ptx);
    // The operands are read where the copies put them.
    assert!(!kernel.ptx.contains("ldmatrix"), "{}", kernel.ptx);
    let half = |v: f32| half::f16::from_f32(v).to_f32();
    // A matrix has at least some columns, also where the loop has no iteration.
    let width = k.max(16);
    let (a, b) = (numbers((m * width) as usize, 1), numbers((width * n) as usize, 2));
    let at = |i: u32, j: u32| if transposed { j * width + i } else { i * n + j };
    let mut want = vec![0.0; (m * n) as usize];
    for i in 0..m {
        for j in 0..n {
            want[(i * n + j) as usize] =
                (0..k).map(|x| half(a[(i * width + x) as usize]) * half(b[at(x, j) as usize])).sum();
        }
    }
    let b_dims = if transposed { [n, width] } else { [width, n] };
    let maps = [map_for(&module, 0, [m, width]), map_for(&module, 1, b_dims), map_for(&module, 2, [m, n])];
    let [a_map, b_map, c_map] = maps;
    let (mut a, mut b, mut c) = (Buffer::f16(&a), Buffer::f16(&b), Buffer::zeros((m * n * 4) as usize));
    let mut args = [Arg::Map(&mut a, a_map), Arg::Map(&mut b, b_map), Arg::Map(&mut c, c_map)];
    let report = simulate(&kernel, 1, &mut args);
    assert!(report.findings.is_empty(), "{:#?}\n{}", report.findings, kernel.ptx);
    close(&c.to_f32(), &want, 1e-3);
}

#[test]
fn matmul_through_descriptors() {
    matmul((64, 64, 64), 192, false, 1);
    matmul((64, 128, 32), 96, true, 1);
}

/// More iterations than slots (the phase flips), as many, fewer than are issued ahead, and none.
#[test]
fn matmul_through_descriptors_in_a_pipeline() {
    for (k, num_stages) in [(7, 3), (3, 3), (1, 4), (0, 3), (5, 2)] {
        matmul((64, 64, 32), 32 * k, false, num_stages);
    }
    matmul((128, 64, 32), 32 * 5, true, 3);
}

#[test]
fn what_orders_a_pipeline_of_copies_is_needed() {
    for (k, num_stages) in [(7, 3), (5, 2), (3, 1)] {
        let shape = (64, 64, 32);
        let k = 32 * k;
        let (module, kernel) = compile_tt(&matmul_kernel(shape, k, false), 4, num_stages);
        let (mut a, mut b) =
            (Buffer::f16(&numbers(64 * k as usize, 1)), Buffer::f16(&numbers(64 * k as usize, 2)));
        let mut c = Buffer::zeros(64 * 64 * 4);
        each_is_needed(&format!("{num_stages} stages"), &kernel, 8, 0, &mut |kernel| {
            let (ma, mb) = (map_for(&module, 0, [64, k]), map_for(&module, 1, [k, 64]));
            let mc = map_for(&module, 2, [64, 64]);
            let mut args = [Arg::Map(&mut a, ma), Arg::Map(&mut b, mb), Arg::Map(&mut c, mc)];
            simulate(kernel, 1, &mut args).findings
        });
    }
}

/// One program writes and tells by an atomic operation; the other acquires that, and copies what was written.
const TOLD: &str = r#"module {
  tt.func public @kernel(%x: !tt.ptr<f32>, %desc: !tt.tensordesc<tensor<16x32xf32>>, %told: !tt.ptr<i32>, %out: !tt.ptr<f32>) {
    %true = arith.constant true
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %one = arith.constant dense<1.0> : tensor<512xf32>
    %at = tt.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32>
    %program = tt.get_program_id x : i32
    %first = arith.cmpi eq, %program, %c0 : i32
    scf.if %first {
      %xs = tt.splat %x : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>>
      %to = tt.addptr %xs, %at : tensor<512x!tt.ptr<f32>>, tensor<512xi32>
      tt.store %to, %one : tensor<512x!tt.ptr<f32>>
      %0 = tt.atomic_rmw exch, release, gpu, %told, %c1, %true : (!tt.ptr<i32>, i32, i1) -> i32
    } else {
      scf.while : () -> () {
        %now = tt.atomic_rmw add, acquire, gpu, %told, %c0, %true : (!tt.ptr<i32>, i32, i1) -> i32
        %again = arith.cmpi eq, %now, %c0 : i32
        scf.condition(%again)
      } do {
        scf.yield
      }
      %tile = tt.descriptor_load %desc[%c0, %c0] : !tt.tensordesc<tensor<16x32xf32>> -> tensor<16x32xf32>
      %row = tt.reshape %tile : tensor<16x32xf32> -> tensor<512xf32>
      %outs = tt.splat %out : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>>
      %to = tt.addptr %outs, %at : tensor<512x!tt.ptr<f32>>, tensor<512xi32>
      tt.store %to, %row : tensor<512x!tt.ptr<f32>>
    }
    tt.return
  }
}"#;

#[test]
fn a_copy_of_what_another_program_wrote_is_behind_a_proxy_fence() {
    let (module, kernel) = compile_tt(TOLD, 4, 1);
    let run = |ptx: String| {
        let (mut x, mut told, mut out) = (Buffer::zeros(2048), Buffer::zeros(4), Buffer::zeros(2048));
        let at = Arg::Address(x.bytes.as_ptr() as u64);
        let copied = Arg::Map(&mut x, map_for(&module, 1, [16, 32]));
        let kernel = tilewright_nvidia::Kernel { ptx, ..kernel.clone() };
        let report = simulate(&kernel, 2, &mut [at, copied, Arg::Buffer(&mut told), Arg::Buffer(&mut out)]);
        (report.findings, out.to_f32())
    };
    let fence = "fence.proxy.async.global;";
    assert_eq!(kernel.ptx.matches(fence).count(), 1, "{}", kernel.ptx);
    let (findings, out) = run(kernel.ptx.clone());
    assert!(findings.is_empty(), "{findings:#?}\n{}", kernel.ptx);
    assert_eq!(out, [1.0; 512]);
    let (findings, _) = run(kernel.ptx.replace(fence, ""));
    assert!(findings.iter().any(|f| f.kind == sim::FindingKind::ProxyFence), "{findings:#?}");
}

/// A program stores, and copies what it has stored, by way of one pointer.
const REREAD: &str = r#"module {
  tt.func public @kernel(%x: !tt.ptr<f32>, %out: !tt.ptr<f32>) {
    %c0 = arith.constant 0 : i32
    %c16 = arith.constant 16 : i32
    %c32 = arith.constant 32 : i32
    %row = arith.constant 32 : i64
    %next = arith.constant 1 : i64
    %one = arith.constant dense<1.0> : tensor<512xf32>
    %program = tt.get_program_id x : i32
    %rows = arith.addi %program, %c16 : i32
    %desc = tt.make_tensor_descriptor %x, [%rows, %c32], [%row, %next] : !tt.ptr<f32>, !tt.tensordesc<tensor<16x32xf32>>
    %at = tt.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32>
    %xs = tt.splat %x : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>>
    %to = tt.addptr %xs, %at : tensor<512x!tt.ptr<f32>>, tensor<512xi32>
    tt.store %to, %one : tensor<512x!tt.ptr<f32>>
    %tile = tt.descriptor_load %desc[%c0, %c0] : !tt.tensordesc<tensor<16x32xf32>> -> tensor<16x32xf32>
    %line = tt.reshape %tile : tensor<16x32xf32> -> tensor<512xf32>
    %outs = tt.splat %out : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>>
    %there = tt.addptr %outs, %at : tensor<512x!tt.ptr<f32>>, tensor<512xi32>
    tt.store %there, %line : tensor<512x!tt.ptr<f32>>
    tt.return
  }
}"#;

#[test]
fn a_copy_of_what_its_own_program_wrote_is_behind_a_proxy_fence() {
    let (_, kernel) = compile_tt(REREAD, 4, 1);
    let run = |ptx: String| {
        // The tensor map lies behind what the kernel stores.
        let (mut x, mut out) = (Buffer::zeros(2048), Buffer::zeros(4096));
        let map = (out.bytes.as_ptr() as u64 + 2048).next_multiple_of(128);
        let kernel = tilewright_nvidia::Kernel { ptx, ..kernel.clone() };
        let mut args = [Arg::Buffer(&mut x), Arg::Buffer(&mut out), Arg::Address(map)];
        let report = simulate(&kernel, 1, &mut args);
        (report.findings, out.to_f32()[..512].to_vec())
    };
    let fence = "fence.proxy.async.global;";
    assert_eq!(kernel.ptx.matches(fence).count(), 1, "{}", kernel.ptx);
    let (findings, out) = run(kernel.ptx.clone());
    assert!(findings.is_empty(), "{findings:#?}\n{}", kernel.ptx);
    assert_eq!(out, [1.0; 512]);
    let (findings, _) = run(kernel.ptx.replace(fence, ""));
    assert!(findings.iter().any(|f| f.kind == sim::FindingKind::ProxyFence), "{findings:#?}");
}

/// `d = (a · b) · c` over the rows of `b` and `c`, 64 at a time, as attention has it, by descriptors.
fn chained_kernel() -> String {
    r#"module {
  tt.func public @kernel(%ad: !tt.tensordesc<tensor<128x64xf16>>, %bd: !tt.tensordesc<tensor<64x64xf16>>, %cd: !tt.tensordesc<tensor<64x64xf16>>, %dd: !tt.tensordesc<tensor<128x64xf32>>, %end: i32) {
    %c0 = arith.constant 0 : i32
    %step = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<128x64xf32>
    %half = arith.constant dense<0.5> : tensor<128x64xf32>
    %a = tt.descriptor_load %ad[%c0, %c0] : !tt.tensordesc<tensor<128x64xf16>> -> tensor<128x64xf16>
    %sum = scf.for %k = %c0 to %end step %step iter_args(%acc = %zero) -> (tensor<128x64xf32>) : i32 {
      %bl = tt.descriptor_load %bd[%k, %c0] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
      %b = tt.trans %bl {order = array<i32: 1, 0>} : tensor<64x64xf16> -> tensor<64x64xf16>
      %s = tt.dot %a, %b, %zero : tensor<128x64xf16> * tensor<64x64xf16> -> tensor<128x64xf32>
      %p = arith.truncf %s : tensor<128x64xf32> to tensor<128x64xf16>
      %c = tt.descriptor_load %cd[%k, %c0] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16>
      %scaled = arith.mulf %acc, %half : tensor<128x64xf32>
      %d = tt.dot %p, %c, %scaled : tensor<128x64xf16> * tensor<64x64xf16> -> tensor<128x64xf32>
      scf.yield %d : tensor<128x64xf32>
    }
    tt.descriptor_store %dd[%c0, %c0], %sum : !tt.tensordesc<tensor<128x64xf32>>, tensor<128x64xf32>
    tt.return
  }
}"#
    .to_string()
}

/// Warp groups meet at an mbarrier half an iteration after they have arrived there, and the copies of TMA wait for them so.
#[test]
fn warp_groups_half_an_iteration_apart() {
    for num_stages in [2, 3] {
        let (module, kernel) = compile_tt(&chained_kernel(), 8, num_stages);
        let text = tilewright_ir::print(&module);
        let inside = text.split_once("scf.for").and_then(|t| t.1.split_once("scf.yield")).expect("a loop").0;
        assert!(!inside.contains("ttg.barrier") && inside.contains("ttng.arrive_barrier"), "{text}");
        let rows = 64 * (num_stages as usize + 2); // as many iterations as slots, and one more
        let half = |v: f32| half::f16::from_f32(v).to_f32();
        let small =
            |n: usize, seed: u32| numbers(n, seed).iter().map(|v| half(v / 8.0)).collect::<Vec<f32>>();
        let (a, b, c) = (small(128 * 64, 1), small(rows * 64, 2), small(rows * 64, 3));
        let mut want = vec![0.0; 128 * 64];
        for (i, row) in want.chunks_exact_mut(64).enumerate() {
            for k in (0..rows).step_by(64) {
                row.iter_mut().for_each(|v| *v *= 0.5);
                for j in k..k + 64 {
                    let p = half((0..64).map(|x| a[i * 64 + x] * b[j * 64 + x]).sum());
                    row.iter_mut().zip(&c[j * 64..]).for_each(|(v, c)| *v += p * c);
                }
            }
        }
        let (mut a, mut b, mut c) = (Buffer::f16(&a), Buffer::f16(&b), Buffer::f16(&c));
        let mut d = Buffer::zeros(128 * 64 * 4);
        let rows = rows as u32;
        let mut run = |kernel: &tilewright_nvidia::Kernel| {
            // With no rows the loop is left out, and what is before it meets what is after it.
            let mut found = vec![];
            for end in [0, rows as i32] {
                let map = |arg, dims| map_for(&module, arg, dims);
                let [ma, mb, mc, md] =
                    [map(0, [128, 64]), map(1, [rows, 64]), map(2, [rows, 64]), map(3, [128, 64])];
                let mut args = [
                    Arg::Map(&mut a, ma),
                    Arg::Map(&mut b, mb),
                    Arg::Map(&mut c, mc),
                    Arg::Map(&mut d, md),
                    Arg::I32(end),
                ];
                found.extend(simulate(kernel, 1, &mut args).findings);
            }
            found
        };
        each_is_needed(&format!("chained, {num_stages} stages"), &kernel, 8, 2, &mut run);
        assert!(run(&kernel).is_empty());
        close(&d.to_f32(), &want, 1e-2);
    }
}
