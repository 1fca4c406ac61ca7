//! Programs that are run by clusters: from `tt` modules through the whole pipeline to the simulator.

mod common;

use common::*;
use tilewright_nvidia::Kernel;
use tilewright_passes::{Options, lower_to_ttg};

fn compiled(ir: &str, num_warps: u32, num_ctas: u32, num_stages: u32) -> (String, Kernel) {
    let mut module = tilewright_ir::parse(ir, "test.mlir").unwrap_or_else(|e| panic!("{e}"));
    let mut target = common::plain("cuda:90");
    target.dots.wgmma = true;
    target.tma = true;
    let options = Options { num_warps, num_ctas, num_stages, ..Options::default() };
    lower_to_ttg(&mut module, &target, &options).unwrap_or_else(|e| panic!("{e}"));
    (tilewright_ir::print(&module), generate(&module, "cuda:90"))
}

/// A persistent matrix product: tiles of 128×32, B given transposed.
const MATMUL: &str = r#"
tt.func public @matmul(%a: !tt.tensordesc<tensor<128x64xf16>>, %b: !tt.tensordesc<tensor<32x64xf16>>, %out: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %tiles: i32, %steps: i32, %n: i32 {tt.divisibility = 16 : i32}) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<128x32xf32>
  %first = tt.get_program_id x : i32
  %programs = tt.get_num_programs x : i32
  scf.for %t = %first to %tiles step %programs  : i32 {
    %column = arith.muli %t, %c32 : i32
    %acc = scf.for %i = %c0 to %steps step %c1 iter_args(%x = %zero) -> (tensor<128x32xf32>) : i32 {
      %k = arith.muli %i, %c64 : i32
      %la = tt.descriptor_load %a[%c0, %k] : !tt.tensordesc<tensor<128x64xf16>> -> tensor<128x64xf16>
      %lb = tt.descriptor_load %b[%column, %k] : !tt.tensordesc<tensor<32x64xf16>> -> tensor<32x64xf16>
      %tb = tt.trans %lb {order = array<i32: 1, 0>} : tensor<32x64xf16> -> tensor<64x32xf16>
      %d = tt.dot %la, %tb, %x : tensor<128x64xf16> * tensor<64x32xf16> -> tensor<128x32xf32>
      scf.yield %d : tensor<128x32xf32>
    }
    %rows = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
    %cols = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
    %r1 = tt.expand_dims %rows {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
    %ns = tt.splat %n : i32 -> tensor<128x1xi32>
    %r2 = arith.muli %r1, %ns : tensor<128x1xi32>
    %cs = tt.splat %column : i32 -> tensor<32xi32>
    %c2 = arith.addi %cols, %cs : tensor<32xi32>
    %c3 = tt.expand_dims %c2 {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
    %r3 = tt.broadcast %r2 : tensor<128x1xi32> -> tensor<128x32xi32>
    %c4 = tt.broadcast %c3 : tensor<1x32xi32> -> tensor<128x32xi32>
    %o = arith.addi %r3, %c4 : tensor<128x32xi32>
    %ps = tt.splat %out : !tt.ptr<f32> -> tensor<128x32x!tt.ptr<f32>>
    %p = tt.addptr %ps, %o : tensor<128x32x!tt.ptr<f32>>, tensor<128x32xi32>
    tt.store %p, %acc : tensor<128x32x!tt.ptr<f32>>
  } {tt.warp_specialize}
  tt.return
}
"#;

fn half_map(rows: u32, columns: u32, rows_of_box: u32) -> sim::TensorMap {
    sim::TensorMap {
        address: 0,
        element: sim::Element::F16,
        element_strides: vec![1, 1],
        dims: vec![columns.into(), rows.into()],
        strides: vec![u64::from(columns * 2)],
        box_dims: vec![64, rows_of_box],
        swizzle: sim::Swizzle::B128,
        nan_fill: false,
    }
}

/// The operands of [`MATMUL`], `tiles` tiles of 32 columns and `steps` steps of 64 along K.
struct Product {
    a: Buffer,
    b: Buffer,
    out: Buffer,
    want: Vec<f32>,
    tiles: usize,
    steps: usize,
    boxes: [u32; 2],
}

impl Product {
    /// `boxes` are the rows of a box of A and B.
    fn new(tiles: usize, steps: usize, boxes: [u32; 2]) -> Product {
        let (n, k) = (32 * tiles, 64 * steps);
        let (a, b) = (numbers(128 * k, 1), numbers(n * k, 2));
        let h = |v: f32| half::f16::from_f32(v).to_f32();
        let mut want = vec![0f32; 128 * n];
        for i in 0..128 {
            for j in 0..n {
                want[i * n + j] = (0..k).map(|l| h(a[i * k + l]) * h(b[j * k + l])).sum();
            }
        }
        let (a, b, out) = (Buffer::f16(&a), Buffer::f16(&b), Buffer::zeros(128 * n * 4));
        Product { a, b, out, want, tiles, steps, boxes }
    }

    fn run(&mut self, kernel: &Kernel, ctas: u32) -> sim::Report {
        let (n, k) = (32 * self.tiles, 64 * self.steps);
        let mut args = [
            Arg::Map(&mut self.a, half_map(128, k as u32, self.boxes[0])),
            Arg::Map(&mut self.b, half_map(n as u32, k as u32, self.boxes[1])),
            Arg::Buffer(&mut self.out),
            Arg::I32(self.tiles as i32),
            Arg::I32(self.steps as i32),
            Arg::I32(n as i32),
        ];
        simulate(kernel, ctas, &mut args)
    }
}

/// The product with a warp of its own for the loads, and with loads by those that compute.
fn both_ways(run: impl Fn(&str, &str)) {
    run("specialized", MATMUL);
    run("pipelined", &MATMUL.replace(" {tt.warp_specialize}", ""));
}

#[test]
fn what_two_ctas_load_each_brings_half_of_to_both() {
    both_ways(|how, ir| {
        for (stages, tiles, steps) in [(3, 3, 5), (2, 2, 1), (4, 2, 7), (4, 3, 2)] {
            let (text, kernel) = compiled(ir, 4, 2, stages);
            // Each has 64 rows of A; both have B.
            assert!(text.contains("tensor<64x32xf32"), "{how}\n{text}");
            assert_eq!(text.contains("partition0"), how == "specialized", "{how}\n{text}");
            assert!(kernel.ptx.contains(".multicast::cluster"), "{how}\n{}", kernel.ptx);
            assert!(kernel.ptx.contains(".reqnctapercluster 2, 1, 1"), "{}", kernel.ptx);
            let mut product = Product::new(tiles, steps, [32, 16]);
            let report = product.run(&kernel, 2);
            assert!(report.findings.is_empty(), "{how} {:#?}\n{text}\n{}", report.findings, kernel.ptx);
            close(&product.out.to_f32(), &product.want, 1e-2);
        }
    });
}

#[test]
fn what_orders_the_ctas_is_needed() {
    both_ways(|how, ir| {
        for stages in [2, 3] {
            let (_, mut kernel) = compiled(ir, 4, 2, stages);
            let mut product = Product::new(2, 5, [32, 16]);
            if let Some(end) = kernel.ptx.find("mbarrier.inval") {
                // The barrier before the mbarriers end: the last iteration's serves here, but not where the loop has none.
                let at = kernel.ptx[..end].rfind("bar.sync").expect("a barrier");
                kernel.ptx.replace_range(at..at + "bar.sync \t0;".len(), "");
            }
            let what = format!("{how}, {stages} stages");
            let idle = if how == "specialized" { 2 } else { 0 };
            each_is_needed(&what, &kernel, 10, idle, &mut |kernel| product.run(kernel, 2).findings);
        }
    });
}

/// Where the thread that issues copies waits for its peers its warp stays together, so that registers of the loop stay uniform: a vote ends the wait, and
/// the other warps branch around it as such.
#[test]
fn warps_stay_together_where_one_thread_waits() {
    let (_, kernel) = compiled(&MATMUL.replace(" {tt.warp_specialize}", ""), 4, 2, 3);
    assert!(kernel.ptx.contains("vote.sync.all.pred complete"), "{}", kernel.ptx);
    assert!(kernel.ptx.contains("bra.uni done;") && !kernel.ptx.contains("bra done;"), "{}", kernel.ptx);
}

/// A row and its sum, by several CTAs.
const SUM: &str = r#"
tt.func public @sum(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %out: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
  %r = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %b = tt.splat %x : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %q = tt.addptr %b, %r : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  %v = tt.load %q : tensor<1024x!tt.ptr<f32>>
  %s = "tt.reduce"(%v) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %c: f32):
    %d = arith.addf %a, %c : f32
    tt.reduce.return %d : f32
  }) : (tensor<1024xf32>) -> f32
  %u = tt.splat %s : f32 -> tensor<1024xf32>
  %t = arith.addf %u, %v : tensor<1024xf32>
  %ob = tt.splat %out : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %o = tt.addptr %ob, %r : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  tt.store %o, %t : tensor<1024x!tt.ptr<f32>>
  tt.return
}
"#;

#[test]
fn a_row_is_summed_across_ctas() {
    for ctas in [2, 4, 8] {
        let (text, kernel) = compiled(SUM, 4, ctas, 1);
        assert_eq!(text.matches("ttng.cluster_exchange").count() as u32, ctas.trailing_zeros(), "{text}");
        let x = numbers(1024, 1);
        let (mut input, mut out) = (Buffer::f32(&x), Buffer::zeros(1024 * 4));
        let report = simulate(&kernel, ctas, &mut [Arg::Buffer(&mut input), Arg::Buffer(&mut out)]);
        assert!(report.findings.is_empty(), "{:#?}\n{}", report.findings, kernel.ptx);
        let got = out.to_f32();
        let sum: f32 = x.iter().sum();
        close(&got, &x.iter().map(|v| v + sum).collect::<Vec<_>>(), 1e-4);
        each_is_needed(&format!("{ctas} CTAs"), &kernel, 5, 0, &mut |kernel| {
            simulate(kernel, ctas, &mut [Arg::Buffer(&mut input), Arg::Buffer(&mut out)]).findings
        });
    }
}
