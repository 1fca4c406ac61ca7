//! Which products are computed as their transposes.

mod common;

use tilewright_ir::{parse, print};
use tilewright_passes::Options;
use tilewright_passes::hopper::transpose_dots;

/// A product of `m` by `n` summed up in a loop, and what becomes of it.
fn product(m: u32, n: u32, end: &str) -> String {
    format!(
        r#"module {{
  tt.func public @product(%a: tensor<{m}x64x!tt.ptr<f16>>, %b: tensor<64x{n}x!tt.ptr<f16>>, %c: tensor<{m}x{n}x!tt.ptr<f16>>, %rows: tensor<{m}x!tt.ptr<f32>>, %k: i32) {{
    %zero = arith.constant dense<0.000000e+00> : tensor<{m}x{n}xf32>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r = scf.for %i = %c0 to %k step %c1 iter_args(%acc = %zero) -> (tensor<{m}x{n}xf32>)  : i32 {{
      %x = tt.load %a : tensor<{m}x64x!tt.ptr<f16>>
      %y = tt.load %b : tensor<64x{n}x!tt.ptr<f16>>
      %d = tt.dot %x, %y, %acc, inputPrecision = tf32 : tensor<{m}x64xf16> * tensor<64x{n}xf16> -> tensor<{m}x{n}xf32>
      scf.yield %d : tensor<{m}x{n}xf32>
    }}
    {end}
    tt.return
  }}
}}
"#
    )
}

fn stored(m: u32, n: u32) -> String {
    let halves = format!("tensor<{m}x{n}xf16>");
    product(
        m,
        n,
        &format!(
            "%h = arith.truncf %r : tensor<{m}x{n}xf32> to {halves}\n    tt.store %c, %h : tensor<{m}x{n}x!tt.ptr<f16>>"
        ),
    )
}

fn run(text: &str, num_warps: u32) -> String {
    let mut module = parse(text, "product.mlir").unwrap_or_else(|d| panic!("{d}"));
    let mut target = common::plain("cuda:90");
    target.dots.wgmma = true;
    transpose_dots::PASS
        .run(&mut module, &target, &Options { num_warps, ..Options::default() })
        .unwrap_or_else(|d| panic!("{d}"));
    let text = print(&module);
    parse(&text, "transposed.mlir").unwrap_or_else(|d| panic!("{d}"));
    text
}

#[test]
fn tall_products_get_wider_instructions() {
    for (m, n, num_warps) in [(256, 128, 8), (256, 64, 4)] {
        let text = run(&stored(m, n), num_warps);
        let dot = format!("tensor<{n}x64xf16> * tensor<64x{m}xf16> -> tensor<{n}x{m}xf32>");
        assert!(text.contains(&dot), "{text}");
        let back = format!("tensor<{n}x{m}xf32> -> tensor<{m}x{n}xf32>");
        let (begin, end) = (text.find("scf.yield").unwrap(), text.find("arith.truncf").unwrap());
        assert!(text[begin..end].contains(&back), "{text}");
    }
}

#[test]
fn others_stay() {
    let reduced = "%s = \"tt.reduce\"(%r) <{axis = 1 : i32}> ({\n    ^bb0(%p: f32, %q: f32):\n      %t = arith.addf %p, %q : f32\n      tt.reduce.return %t : f32\n    }) : (tensor<256x128xf32>) -> tensor<256xf32>\n    tt.store %rows, %s : tensor<256x!tt.ptr<f32>>";
    // Wide already, as good either way, too few rows then for warp groups, and rows that would lie across warps.
    let stay = [
        (stored(128, 256), 8),
        (stored(128, 128), 8),
        (stored(256, 192), 8),
        (stored(128, 64), 4),
        (stored(128, 32), 4),
        (product(256, 128, reduced), 8),
    ];
    for (text, num_warps) in stay {
        let text = run(&text, num_warps);
        assert!(!text.contains("tt.trans"), "{text}");
    }
}
