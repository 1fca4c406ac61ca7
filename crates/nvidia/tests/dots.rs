//! Dots of every operand type and of odd shapes, from `tt` through the passes to PTX, run in the simulator.

mod common;

use common::*;
use tilewright_passes::{Options, lower_to_ttg};

/// `out = a · b` for M × K and K × N matrices of small integers, which every format holds exactly.
struct Case {
    ty: &'static str,
    acc: &'static str,
    precision: &'static str,
    shape: (usize, usize, usize),
}

fn ir(case: &Case) -> String {
    let (m, n, k) = case.shape;
    let Case { ty, acc, .. } = case;
    let matrix = |name: &str, ptr: &str, ty: &str, rows: usize, columns: usize| {
        format!(
            r#"
    %{name}i = tt.make_range {{end = {rows} : i32, start = 0 : i32}} : tensor<{rows}xi32>
    %{name}j = tt.make_range {{end = {columns} : i32, start = 0 : i32}} : tensor<{columns}xi32>
    %{name}i2 = tt.expand_dims %{name}i {{axis = 1 : i32}} : tensor<{rows}xi32> -> tensor<{rows}x1xi32>
    %{name}j2 = tt.expand_dims %{name}j {{axis = 0 : i32}} : tensor<{columns}xi32> -> tensor<1x{columns}xi32>
    %{name}s = arith.constant dense<{columns}> : tensor<{rows}x1xi32>
    %{name}m = arith.muli %{name}i2, %{name}s : tensor<{rows}x1xi32>
    %{name}mb = tt.broadcast %{name}m : tensor<{rows}x1xi32> -> tensor<{rows}x{columns}xi32>
    %{name}jb = tt.broadcast %{name}j2 : tensor<1x{columns}xi32> -> tensor<{rows}x{columns}xi32>
    %{name}o = arith.addi %{name}mb, %{name}jb : tensor<{rows}x{columns}xi32>
    %{name}ps = tt.splat {ptr} : !tt.ptr<{ty}> -> tensor<{rows}x{columns}x!tt.ptr<{ty}>>
    %{name}p = tt.addptr %{name}ps, %{name}o : tensor<{rows}x{columns}x!tt.ptr<{ty}>>, tensor<{rows}x{columns}xi32>"#
        )
    };
    let zero = if *acc == "i32" { "0" } else { "0.0" };
    let precision = if case.precision.is_empty() {
        String::new()
    } else {
        format!(", inputPrecision = {}", case.precision)
    };
    format!(
        r#"module {{
  tt.func public @kernel(%a: !tt.ptr<{ty}> {{tt.divisibility = 16 : i32}}, %b: !tt.ptr<{ty}> {{tt.divisibility = 16 : i32}}, %c: !tt.ptr<{acc}> {{tt.divisibility = 16 : i32}}) {{{}{}{}
    %x = tt.load %ap : tensor<{m}x{k}x!tt.ptr<{ty}>>
    %y = tt.load %bp : tensor<{k}x{n}x!tt.ptr<{ty}>>
    %z = arith.constant dense<{zero}> : tensor<{m}x{n}x{acc}>
    %d = tt.dot %x, %y, %z{precision} : tensor<{m}x{k}x{ty}> * tensor<{k}x{n}x{ty}> -> tensor<{m}x{n}x{acc}>
    tt.store %cp, %d : tensor<{m}x{n}x!tt.ptr<{acc}>>
    tt.return
  }}
}}"#,
        matrix("a", "%a", ty, m, k),
        matrix("b", "%b", ty, k, n),
        matrix("c", "%c", acc, m, n)
    )
}

fn encode(values: &[i32], ty: &str) -> Buffer {
    let bytes = values
        .iter()
        .flat_map(|&v| -> Vec<u8> {
            match ty {
                "f16" => half::f16::from_f32(v as f32).to_le_bytes().to_vec(),
                "bf16" => half::bf16::from_f32(v as f32).to_le_bytes().to_vec(),
                "f32" => (v as f32).to_le_bytes().to_vec(),
                "f64" => f64::from(v).to_le_bytes().to_vec(),
                "i8" => vec![v as i8 as u8],
                // e4m3: 1 is 0x38, 2 is 0x40, 3 is 0x44; e5m2: 0x3c, 0x40, 0x42.
                "f8E4M3FN" => {
                    vec![[0, 0x38, 0x40, 0x44][v.unsigned_abs() as usize] | if v < 0 { 0x80 } else { 0 }]
                }
                _ => vec![[0, 0x3c, 0x40, 0x42][v.unsigned_abs() as usize] | if v < 0 { 0x80 } else { 0 }],
            }
        })
        .collect();
    Buffer { bytes }
}

fn decode(buffer: &Buffer, ty: &str) -> Vec<i32> {
    match ty {
        "f16" => {
            let halves = buffer.bytes.chunks_exact(2);
            halves.map(|c| half::f16::from_le_bytes([c[0], c[1]]).to_f32() as i32).collect()
        }
        "f64" => buffer.to_f64().iter().map(|&v| v as i32).collect(),
        "i32" => buffer.to_i32(),
        _ => buffer.to_f32().iter().map(|&v| v as i32).collect(),
    }
}

fn check(case: &Case, target: &str, num_warps: u32) -> String {
    check_with(case, target, num_warps, false)
}

fn check_with(case: &Case, target: &str, num_warps: u32, wgmma: bool) -> String {
    let (m, n, k) = case.shape;
    let small = |count: usize, seed: u32| -> Vec<i32> {
        numbers(count, seed).iter().map(|v| (v * 1.5).round() as i32).collect()
    };
    let (a, b) = (small(m * k, 1), small(k * n, 2));
    let mut module = tilewright_ir::parse(&ir(case), "dot.mlir").unwrap_or_else(|e| panic!("{e}"));
    let mut info = common::plain(target);
    info.dots.wgmma |= wgmma;
    lower_to_ttg(
        &mut module,
        &info,
        &Options { num_warps, num_ctas: 1, num_stages: 2, ..Options::default() },
    )
    .unwrap_or_else(|e| panic!("{e}"));
    let text = tilewright_ir::print(&module);
    let (mut ba, mut bb) = (encode(&a, case.ty), encode(&b, case.ty));
    let mut bc = Buffer::zeros(
        m * n
            * if case.acc == "f64" {
                8
            } else if case.acc == "f16" {
                2
            } else {
                4
            },
    );
    let kernel =
        run(&text, target, 1, &mut [Arg::Buffer(&mut ba), Arg::Buffer(&mut bb), Arg::Buffer(&mut bc)]);
    let got = decode(&bc, case.acc);
    for i in 0..m {
        for j in 0..n {
            let want: i32 = (0..k).map(|l| a[i * k + l] * b[l * n + j]).sum();
            let Case { ty, shape, .. } = case;
            assert_eq!(got[i * n + j], want, "{ty} {shape:?} on {target}, element ({i}, {j})");
        }
    }
    // The simulator reads any version; `ptxas` wants one that has the instruction.
    let version = if (case.ty.starts_with("f8") && kernel.ptx.contains("mma.sync") && target != "cuda:80")
        || (case.ty.starts_with("f8") && target == "cuda:89")
    {
        "8.4"
    } else {
        match target {
            "cuda:80" => "7.0",
            "cuda:89" => "7.8",
            _ => "8.0",
        }
    };
    assert!(kernel.ptx.contains(&format!(".version {version}\n")), "{:?}", kernel.ptx.lines().nth(4));
    kernel.ptx
}

const TYPES: [(&str, &str, &str); 9] = [
    ("f16", "f32", ""),
    ("f16", "f16", ""),
    ("bf16", "f32", ""),
    ("f32", "f32", "tf32"),
    ("f32", "f32", "ieee"),
    ("f64", "f64", "ieee"),
    ("i8", "i32", ""),
    ("f8E4M3FN", "f32", ""),
    ("f8E5M2", "f32", ""),
];

#[test]
fn every_type_on_every_target() {
    for target in ["cuda:80", "cuda:89", "cuda:90"] {
        for (ty, acc, precision) in TYPES {
            let case = Case { ty, acc, precision, shape: (64, 32, 64) };
            let ptx = check(&case, target, 4);
            let tensor_core = precision != "ieee";
            assert_eq!(ptx.contains("mma"), tensor_core, "{ty} -> {acc} on {target}");
        }
    }
}

#[test]
fn shapes_that_repeat_or_pad() {
    for shape in [(96, 80, 48), (24, 40, 40), (16, 8, 16), (48, 24, 80), (7, 5, 3), (64, 192, 96)] {
        for (ty, acc, precision) in [("f16", "f32", ""), ("f32", "f32", "tf32"), ("i8", "i32", "")] {
            for (target, num_warps) in [("cuda:80", 4), ("cuda:90", 4), ("cuda:90", 8), ("cuda:80", 1)] {
                check(&Case { ty, acc, precision, shape }, target, num_warps);
            }
        }
    }
}

#[test]
fn warp_groups() {
    for (ty, acc, precision) in
        TYPES.into_iter().filter(|(ty, acc, precision)| *acc != "f16" && *ty != "f64" && *precision != "ieee")
    {
        for shape in [(64, 64, 64), (128, 32, 128), (64, 192, 96), (128, 128, 64), (192, 80, 64)] {
            for num_warps in [4, 8] {
                let ptx = check_with(&Case { ty, acc, precision, shape }, "cuda:90", num_warps, true);
                let whole_groups = shape.0 % (16 * num_warps as usize) == 0;
                if whole_groups && ty == "f16" {
                    assert!(ptx.contains("wgmma.mma_async"), "{ty} {shape:?} with {num_warps} warps");
                }
            }
        }
    }
}
