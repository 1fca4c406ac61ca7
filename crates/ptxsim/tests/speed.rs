//! Not a test of time: prints how fast a softmax runs. `cargo test --release --test speed -- --nocapture`.
#![allow(missing_docs)]
mod common;
use common::*;

#[test]
fn softmax() {
    let p = parse(include_str!("cuda/softmax.ptx"));
    let (rows, cols) = (256usize, 1024usize);
    let mut r = Rng(7);
    let mut x: Vec<f32> = (0..rows * cols).map(|_| r.f32() * 4.0).collect();
    let mut y = vec![0f32; rows * cols];
    for checks in [true, false] {
        let mut run = Run::new(&p, rows as u32, 128).array(&mut x).array(&mut y).int(cols as i64);
        run.options.checks = checks;
        run.options.threads = 1;
        let t = std::time::Instant::now();
        let report = run.clean();
        let s = t.elapsed().as_secs_f64();
        let n = report.counters.total.thread_instructions;
        println!("checks {checks}: {n} thread instructions, {:.1} million a second", n as f64 / s / 1e6);
    }
    for row in 0..rows {
        let x = &x[row * cols..][..cols];
        let m = x.iter().fold(f32::MIN, |a, b| a.max(*b));
        let sum: f64 = x.iter().map(|v| f64::from(v - m).exp()).sum();
        for (v, got) in x.iter().zip(&y[row * cols..]) {
            let want = f64::from(v - m).exp() / sum;
            assert!((want - f64::from(*got)).abs() < 1e-6, "{want} {got}");
        }
    }
}
