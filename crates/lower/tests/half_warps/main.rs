//! The lowering and the passes know no vendor, and no width of a warp: kernels for a target whose warps have 16 lanes
//! ([`target`]), from `tt` modules to results.

mod target;

use target::LANES;
use tilewright_compiler::cache::Cache;
use tilewright_compiler::{FAMILIES, Request, compile, target_of};
use tilewright_frontend::{Signature, SourceHost};
use tilewright_llvm::emit;
use tilewright_lower::Lowered;
use tilewright_passes::{Options, lower_to_ttg};
use tilewright_ptxsim as sim;

const WARPS: u32 = 4;

/// A kernel of one input and one output, as `ttg` and lowered.
fn lowered(body: &str, arguments: &str) -> (String, Lowered) {
    let ir = format!("tt.func public @kernel({arguments}) {{\n{body}\n  tt.return\n}}\n");
    let mut module = tilewright_ir::parse(&ir, "test.mlir").unwrap_or_else(|e| panic!("{e}\n{ir}"));
    let info = target::info();
    let options = Options { num_warps: WARPS, num_stages: 1, ..Options::default() };
    lower_to_ttg(&mut module, &info, &options).unwrap_or_else(|e| panic!("{e}\n{ir}"));
    let text = tilewright_ir::print(&module);
    assert!(text.contains("\"ttg.threads-per-warp\" = 16 : i32"), "{text}");
    let lowered = target::lower(&module).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(lowered.num_warps, WARPS);
    (text, lowered)
}

/// Compiles a kernel `(%x: input, %out: output)` and runs one program of it. Gives its `ttg` and the output.
fn run(body: &str, types: [&str; 2], x: &[u32], out: usize) -> (String, Vec<u32>) {
    let [from, to] = types;
    let arguments = format!(
        "%x: !tt.ptr<{from}> {{tt.divisibility = 16 : i32}}, %out: !tt.ptr<{to}> {{tt.divisibility = 16 : i32}}"
    );
    let (text, lowered) = lowered(body, &arguments);
    let code = emit::compile(lowered.module, emit::EmitOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    (text, simulate(&code.assembly, lowered.kernel, lowered.shared_bytes, x, out))
}

/// Runs one program of a kernel of one input and one output. Gives the output.
fn simulate(ptx: &str, entry: String, shared_bytes: u32, x: &[u32], out: usize) -> Vec<u32> {
    assert!(ptx.contains(&format!(".reqntid {}", WARPS * LANES)), "{ptx}");
    let program = sim::Program::parse(ptx).unwrap_or_else(|e| panic!("{e}\n{ptx}"));
    let mut buffers = [x.to_vec(), vec![0xdead_beef; out]];
    let mut memory = sim::Memory::new();
    let mut params = vec![];
    for (i, buffer) in buffers.iter_mut().enumerate() {
        // SAFETY: the buffers outlive the launch, which alone uses them.
        unsafe { memory.register_slice(buffer, &format!("arg{i}")) };
        params.push(sim::Param::Pointer(buffer.as_ptr() as u64));
    }
    let launch = sim::Launch {
        entry,
        grid: [1, 1, 1],
        block: [WARPS * LANES, 1, 1],
        cluster: None,
        shared_bytes,
        params,
    };
    let report = program
        .launch(&launch, &memory, &sim::SimOptions::default())
        .unwrap_or_else(|e| panic!("{e}\n{ptx}"));
    assert!(report.findings.is_empty(), "{:#?}\n{ptx}", report.findings);
    let [_, out] = buffers;
    out
}

fn floats(bits: &[u32]) -> Vec<f32> {
    bits.iter().map(|&b| f32::from_bits(b)).collect()
}

/// Small whole numbers, of which every sum is exact.
fn numbers(n: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 37 + i / 7) % 23) as f32 - 9.0).collect()
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|x| x.to_bits()).collect()
}

/// Pointers `name` to a row-major tile that begins at `from`.
fn pointers(name: &str, from: &str, element: &str, [rows, columns]: [usize; 2]) -> String {
    let shape = format!("{rows}x{columns}");
    format!(
        r#"
  %{name}_r = tt.make_range {{start = 0 : i32, end = {rows} : i32}} : tensor<{rows}xi32>
  %{name}_c = tt.make_range {{start = 0 : i32, end = {columns} : i32}} : tensor<{columns}xi32>
  %{name}_r1 = tt.expand_dims %{name}_r {{axis = 1 : i32}} : tensor<{rows}xi32> -> tensor<{rows}x1xi32>
  %{name}_c1 = tt.expand_dims %{name}_c {{axis = 0 : i32}} : tensor<{columns}xi32> -> tensor<1x{columns}xi32>
  %{name}_n = arith.constant dense<{columns}> : tensor<{rows}x1xi32>
  %{name}_rn = arith.muli %{name}_r1, %{name}_n : tensor<{rows}x1xi32>
  %{name}_r2 = tt.broadcast %{name}_rn : tensor<{rows}x1xi32> -> tensor<{shape}xi32>
  %{name}_c2 = tt.broadcast %{name}_c1 : tensor<1x{columns}xi32> -> tensor<{shape}xi32>
  %{name}_o = arith.addi %{name}_r2, %{name}_c2 : tensor<{shape}xi32>
  %{name}_s = tt.splat {from} : !tt.ptr<{element}> -> tensor<{shape}x!tt.ptr<{element}>>
  %{name} = tt.addptr %{name}_s, %{name}_o : tensor<{shape}x!tt.ptr<{element}>>, tensor<{shape}xi32>"#
    )
}

/// Pointers `name` to a row that begins at `from`.
fn row(name: &str, from: &str, element: &str, n: usize) -> String {
    format!(
        r#"
  %{name}_o = tt.make_range {{start = 0 : i32, end = {n} : i32}} : tensor<{n}xi32>
  %{name}_s = tt.splat {from} : !tt.ptr<{element}> -> tensor<{n}x!tt.ptr<{element}>>
  %{name} = tt.addptr %{name}_s, %{name}_o : tensor<{n}x!tt.ptr<{element}>>, tensor<{n}xi32>"#
    )
}

/// A target is its folder and one line in the registry: the compiler runs what it gives, and names it nowhere.
#[test]
fn a_line_of_the_registry() {
    let mut families = FAMILIES.to_vec();
    families.push(&target::HALF);
    assert!(target_of(FAMILIES, "half:16").is_err());
    let target = target_of(&families, "half:16").unwrap_or_else(|e| panic!("{e}"));
    let source = "\
import tilewright
import tilewright.language as tl

@tilewright.jit
def kernel(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(out + i, v / tl.sum(v, 0))
";
    let host = SourceHost::new("kernel.py", source).unwrap_or_else(|e| panic!("{e}"));
    let n = 256;
    let entry = host.function("kernel").unwrap_or_else(|e| panic!("{e}"));
    let signature = Signature::parse(&format!("*fp32:16, *fp32:16, {n}")).unwrap_or_else(|e| panic!("{e}"));
    let options = Options { num_warps: WARPS, ..Options::default() };
    let request = Request::new(&host, &entry, &signature, &options, &*target);
    let folder = std::env::temp_dir().join(format!("tilewright-half-warps-{}", std::process::id()));
    let cache = Cache::at(&folder);
    let made = compile(&request, &cache).unwrap_or_else(|e| panic!("{e}"));
    let names: Vec<&str> = made.stages.iter().map(|(kind, _)| kind.name).collect();
    assert_eq!(names, ["ttir", "ttgir", "ptx"]);
    assert_eq!((made.metadata.target.as_str(), made.metadata.total_num_warps), ("half:16", WARPS));
    let ptx = made.text("ptx").expect("is text");
    let x: Vec<f32> = (0..n).map(|i| if i % 3 == 0 { 2.0 } else { 1.0 }).collect();
    let sum: f32 = x.iter().sum();
    let out = simulate(ptx, made.metadata.name.clone(), made.metadata.shared, &bits(&x), n);
    assert_eq!(floats(&out), x.iter().map(|v| v / sum).collect::<Vec<_>>());
    // What it made is found again, by the stages that it names.
    let again = compile(&request, &cache).unwrap_or_else(|e| panic!("{e}"));
    let _ = std::fs::remove_dir_all(&folder);
    assert_eq!(again.text("ptx"), Some(ptx));
    assert!(again.times.iter().all(|time| time.stage == "frontend"), "{:?}", again.times);
}

#[test]
fn elements() {
    let n = 1000;
    let body = format!(
        r#"{}{}
  %three = arith.constant dense<3.0> : tensor<{n}xf32>
  %v = tt.load %p : tensor<{n}x!tt.ptr<f32>>
  %w = arith.mulf %v, %three : tensor<{n}xf32>
  %y = arith.addf %w, %v : tensor<{n}xf32>
  tt.store %q, %y : tensor<{n}x!tt.ptr<f32>>"#,
        row("p", "%x", "f32", n),
        row("q", "%out", "f32", n)
    );
    let x = numbers(n);
    let (text, out) = run(&body, ["f32", "f32"], &bits(&x), n);
    // 8 bytes a thread, 16 threads a warp.
    assert!(text.contains("sizePerThread = [2], threadsPerWarp = [16], warpsPerCTA = [4]"), "{text}");
    assert_eq!(floats(&out), x.iter().map(|v| v * 4.0).collect::<Vec<_>>());
}

/// Along rows, which lie in a warp, and along columns, which lie across warps; with padding.
#[test]
fn reductions() {
    for [rows, columns] in [[32, 64], [24, 40], [128, 4]] {
        for axis in [0, 1] {
            let n = [rows, columns][1 - axis];
            let body = format!(
                r#"{}{}
  %v = tt.load %p : tensor<{rows}x{columns}x!tt.ptr<f32>>
  %y = "tt.reduce"(%v) <{{axis = {axis} : i32}}> ({{
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.reduce.return %s : f32
  }}) : (tensor<{rows}x{columns}xf32>) -> tensor<{n}xf32>
  tt.store %q, %y : tensor<{n}x!tt.ptr<f32>>"#,
                pointers("p", "%x", "f32", [rows, columns]),
                row("q", "%out", "f32", n)
            );
            let x = numbers(rows * columns);
            let (_, out) = run(&body, ["f32", "f32"], &bits(&x), n);
            let mut sums = vec![0.0; n];
            for (i, v) in x.iter().enumerate() {
                sums[[i % columns, i / columns][axis]] += v;
            }
            assert_eq!(floats(&out), sums, "{rows}x{columns} along {axis}");
        }
    }
}

#[test]
fn a_conversion_through_shared_memory() {
    let [rows, columns] = [64, 48];
    let body = format!(
        r#"{}{}
  %v = tt.load %p : tensor<{rows}x{columns}x!tt.ptr<f32>>
  %t = tt.trans %v {{order = array<i32: 1, 0>}} : tensor<{rows}x{columns}xf32> -> tensor<{columns}x{rows}xf32>
  tt.store %q, %t : tensor<{columns}x{rows}x!tt.ptr<f32>>"#,
        pointers("p", "%x", "f32", [rows, columns]),
        pointers("q", "%out", "f32", [columns, rows])
    );
    let x = numbers(rows * columns);
    let (text, out) = run(&body, ["f32", "f32"], &bits(&x), rows * columns);
    assert!(text.contains("ttg.convert_layout"), "{text}");
    assert!(!text.contains("\"ttg.shared\" = 0"), "{text}");
    let transposed: Vec<f32> = (0..rows * columns).map(|i| x[i % rows * columns + i / rows]).collect();
    assert_eq!(floats(&out), transposed);
}

#[test]
fn scans() {
    for n in [64, 512, 600] {
        for reverse in [false, true] {
            let body = format!(
                r#"{}{}
  %v = tt.load %p : tensor<{n}x!tt.ptr<i32>>
  %y = "tt.scan"(%v) <{{axis = 0 : i32, reverse = {reverse}}}> ({{
  ^bb0(%a: i32, %b: i32):
    %s = arith.addi %a, %b : i32
    tt.scan.return %s : i32
  }}) : (tensor<{n}xi32>) -> tensor<{n}xi32>
  tt.store %q, %y : tensor<{n}x!tt.ptr<i32>>"#,
                row("p", "%x", "i32", n),
                row("q", "%out", "i32", n)
            );
            let x: Vec<u32> = (0..n as u32).map(|i| i * i % 101).collect();
            let (_, out) = run(&body, ["i32", "i32"], &x, n);
            let sums: Vec<u32> = (0..n)
                .map(|i| if reverse { x[i..].iter().sum::<u32>() } else { x[..=i].iter().sum() })
                .collect();
            assert_eq!(out, sums, "{n} elements, reverse: {reverse}");
        }
    }
}

#[test]
fn a_histogram() {
    let (n, bins) = (500, 32);
    let body = format!(
        r#"{}{}
  %v = tt.load %p : tensor<{n}x!tt.ptr<i32>>
  %y = tt.histogram %v : tensor<{n}xi32> -> tensor<{bins}xi32>
  tt.store %q, %y : tensor<{bins}x!tt.ptr<i32>>"#,
        row("p", "%x", "i32", n),
        row("q", "%out", "i32", bins)
    );
    let x: Vec<u32> = (0..n as u32).map(|i| i * 7 % 29).collect();
    let (_, out) = run(&body, ["i32", "i32"], &x, bins);
    let mut counts = vec![0; bins];
    x.iter().for_each(|&v| counts[v as usize] += 1);
    assert_eq!(out, counts);
}

/// The product of a tile with itself.
#[test]
fn a_dot_of_multiply_adds() {
    let n = 32;
    let body = format!(
        r#"{}{}
  %zero = arith.constant dense<0.0> : tensor<{n}x{n}xf32>
  %v = tt.load %p : tensor<{n}x{n}x!tt.ptr<f32>>
  %y = tt.dot %v, %v, %zero : tensor<{n}x{n}xf32> * tensor<{n}x{n}xf32> -> tensor<{n}x{n}xf32>
  tt.store %q, %y : tensor<{n}x{n}x!tt.ptr<f32>>"#,
        pointers("p", "%x", "f32", [n, n]),
        pointers("q", "%out", "f32", [n, n])
    );
    let x = numbers(n * n);
    let (_, out) = run(&body, ["f32", "f32"], &bits(&x), n * n);
    let product: Vec<f32> =
        (0..n * n).map(|i| (0..n).map(|k| x[i / n * n + k] * x[k * n + i % n]).sum()).collect();
    assert_eq!(floats(&out), product);
}

/// A module for wider warps is refused, and so is what the target has no way to do.
#[test]
fn errors() {
    let module = |text: &str| tilewright_ir::parse(text, "test.mlir").unwrap_or_else(|e| panic!("{e}"));
    let wide = module(
        "module attributes {\"ttg.threads-per-warp\" = 32 : i32} { tt.func public @kernel() { tt.return } }",
    );
    let error = target::lower(&wide).map(drop).expect_err("warps differ");
    assert!(error.to_string().contains("for warps of 32 threads; those of half:16 have 16"), "{error}");
    let atomic = module(
        "module attributes {\"ttg.num-warps\" = 4 : i32} { tt.func public @kernel(%p: !tt.ptr<i32>, %v: i32) {
           %old = tt.atomic_rmw add, relaxed, gpu, %p, %v : (!tt.ptr<i32>, i32) -> i32
           tt.return
         } }",
    );
    let error = target::lower(&atomic).map(drop).expect_err("no atomics");
    let text = error.to_string();
    assert!(text.contains("not supported yet on half:16: the operation `tt.atomic_rmw`"), "{text}");
}
