//! Matrix products against plain triple loops.

mod common;

use common::{Random, m, ro, run};

/// c + a·b with operands of any types and shapes, loaded and stored row-major.
fn kernel(shape: [usize; 4], a: &str, b: &str, c: &str, attrs: &str) -> String {
    let [batch, mm, n, k] = shape;
    let lead = if batch > 1 { format!("{batch}x") } else { String::new() };
    let load = |name: &str, ty: &str, rows: usize, cols: usize| {
        let len = batch * rows * cols;
        format!(
            "    %{name}i = tt.make_range {{end = {len} : i32, start = 0 : i32}} : tensor<{len}xi32>
    %{name}s = tt.splat %p{name} : !tt.ptr<{ty}> -> tensor<{len}x!tt.ptr<{ty}>>
    %{name}p = tt.addptr %{name}s, %{name}i : tensor<{len}x!tt.ptr<{ty}>>, tensor<{len}xi32>
    %{name}v = tt.load %{name}p : tensor<{len}x!tt.ptr<{ty}>>
    %{name} = tt.reshape %{name}v : tensor<{len}x{ty}> -> tensor<{lead}{rows}x{cols}x{ty}>\n"
        )
    };
    let len = batch * mm * n;
    format!(
        "module {{\n  tt.func public @k(%pa: !tt.ptr<{a}>, %pb: !tt.ptr<{b}>, %pc: !tt.ptr<{c}>) {{\n{}{}{}
    %d = tt.dot %a, %b, %c{attrs} : tensor<{lead}{mm}x{k}x{a}> * tensor<{lead}{k}x{n}x{b}> -> tensor<{lead}{mm}x{n}x{c}>
    %e = tt.dot %a, %b, %d{attrs} : tensor<{lead}{mm}x{k}x{a}> * tensor<{lead}{k}x{n}x{b}> -> tensor<{lead}{mm}x{n}x{c}>
    %r = tt.reshape %e : tensor<{lead}{mm}x{n}x{c}> -> tensor<{len}x{c}>
    tt.store %cp, %r : tensor<{len}x!tt.ptr<{c}>>
    tt.return\n  }}\n}}\n",
        load("a", a, mm, k),
        load("b", b, k, n),
        load("c", c, mm, n)
    )
}

const SHAPES: [[usize; 4]; 6] =
    [[1, 16, 16, 16], [1, 64, 48, 32], [1, 1, 7, 5], [1, 96, 80, 3], [3, 4, 5, 6], [1, 33, 1, 17]];

/// Twice a·b plus c, in f64.
fn reference(shape: [usize; 4], a: &[f64], b: &[f64], c: &[f64]) -> Vec<f64> {
    let [batch, mm, n, k] = shape;
    let mut out = c.to_vec();
    for i in 0..batch * mm {
        for j in 0..n {
            for d in 0..k {
                out[i * n + j] += 2.0 * a[i * k + d] * b[(i / mm * k + d) * n + j];
            }
        }
    }
    out
}

fn wide(x: &[f32]) -> Vec<f64> {
    x.iter().map(|&v| f64::from(v)).collect()
}

#[test]
fn single_and_double_precision() {
    let mut r = Random(5);
    for shape in SHAPES {
        let [batch, mm, n, k] = shape;
        let (a, b, c) = (r.f32s(batch * mm * k), r.f32s(batch * k * n), r.f32s(batch * mm * n));
        let want = reference(shape, &wide(&a), &wide(&b), &wide(&c));
        let mut out = c.clone();
        run(&kernel(shape, "f32", "f32", "f32", ""), [1, 1, 1], &[ro(&a), ro(&b), m(&mut out)]);
        for (x, w) in out.iter().zip(&want) {
            assert!((f64::from(*x) - w).abs() < 2e-5, "{shape:?} {x} {w}");
        }
        let (a, b, mut out) = (wide(&a), wide(&b), wide(&c));
        run(&kernel(shape, "f64", "f64", "f64", ""), [1, 1, 1], &[ro(&a), ro(&b), m(&mut out)]);
        for (x, w) in out.iter().zip(&want) {
            assert!((x - w).abs() < 1e-12, "{shape:?} {x} {w}");
        }
    }
}

#[test]
fn narrow_floats_accumulate_in_single_precision() {
    // Small integers: products and sums are exact in f32, and results up to 2048 in f16.
    let mut r = Random(6);
    for shape in SHAPES {
        let [batch, mm, n, k] = shape;
        let mut small = |n: usize| -> Vec<f32> { (0..n).map(|_| (r.bits() % 9) as f32 - 4.0).collect() };
        let (a, b, c) = (small(batch * mm * k), small(batch * k * n), small(batch * mm * n));
        let want = reference(shape, &wide(&a), &wide(&b), &wide(&c));
        let bf16 = |x: &[f32]| -> Vec<u16> { x.iter().map(|v| (v.to_bits() >> 16) as u16).collect() };
        let mut out = c.clone();
        run(
            &kernel(shape, "bf16", "bf16", "f32", ""),
            [1, 1, 1],
            &[ro(&bf16(&a)), ro(&bf16(&b)), m(&mut out)],
        );
        assert_eq!(wide(&out), want, "{shape:?}");
        // fp8: these integers are exact in E4M3 (0 to 4 have the codes below).
        let fp8 = |x: &[f32]| -> Vec<u8> {
            x.iter()
                .map(|&v| [0u8, 0x38, 0x40, 0x44, 0x48][v.abs() as usize] | if v < 0.0 { 0x80 } else { 0 })
                .collect()
        };
        let mut out = c.clone();
        run(
            &kernel(shape, "f8E4M3FN", "f8E4M3FN", "f32", ""),
            [1, 1, 1],
            &[ro(&fp8(&a)), ro(&fp8(&b)), m(&mut out)],
        );
        assert_eq!(wide(&out), want, "{shape:?}");
    }
}

#[test]
fn integers_are_exact() {
    let mut r = Random(8);
    for shape in SHAPES {
        let [batch, mm, n, k] = shape;
        let a: Vec<i8> = (0..batch * mm * k).map(|_| r.bits() as i8).collect();
        let b: Vec<i8> = (0..batch * k * n).map(|_| r.bits() as i8).collect();
        let c: Vec<i32> = (0..batch * mm * n).map(|_| r.bits() as i32 >> 8).collect();
        let want = reference(
            shape,
            &a.iter().map(|&x| f64::from(x)).collect::<Vec<_>>(),
            &b.iter().map(|&x| f64::from(x)).collect::<Vec<_>>(),
            &c.iter().map(|&x| f64::from(x)).collect::<Vec<_>>(),
        );
        let mut out = c.clone();
        run(&kernel(shape, "i8", "i8", "i32", ""), [1, 1, 1], &[ro(&a), ro(&b), m(&mut out)]);
        for (x, w) in out.iter().zip(&want) {
            assert_eq!(f64::from(*x), *w, "{shape:?}");
        }
    }
}

#[test]
fn tf32_drops_the_low_bits_of_its_inputs() {
    let shape = [1, 1, 1, 1];
    let (a, b) = ([1.0f32 + 2f32.powi(-12)], [1.0f32]);
    for (attrs, want) in [(", inputPrecision = tf32", 2.0f32), ("", 2.0 + 2f32.powi(-11))] {
        let mut c = [0f32];
        run(&kernel(shape, "f32", "f32", "f32", attrs), [1, 1, 1], &[ro(&a), ro(&b), m(&mut c)]);
        assert_eq!(c[0], want, "{attrs}");
    }
}
