//! Kernels in Python syntax, through the front end and straight into the executor, with no pass in between.

mod common;

use common::Random;
use tilewright_frontend::{Options, Signature, SourceHost, build_module};
use tilewright_interp::{Arg, Executable, Memory, RunOptions};

/// Compiles a kernel of a source file.
fn compile(source: &str, kernel: &str, signature: &str) -> Executable {
    let host = SourceHost::new("kernel.py", source).unwrap_or_else(|e| panic!("{e}"));
    let entry = host.function(kernel).unwrap_or_else(|e| panic!("{e}"));
    let signature = Signature::parse(signature).unwrap_or_else(|e| panic!("{e}"));
    let built = build_module(&host, &entry, &signature, &Options::default())
        .unwrap_or_else(|e| panic!("{kernel}: {e}"));
    Executable::compile(&built.module, &built.name).unwrap_or_else(|e| panic!("{kernel}: {e}"))
}

fn launch(exe: &Executable, grid: [u32; 3], arrays: &mut [&mut [f32]], rest: &[Arg]) {
    let mut memory = Memory::new();
    let mut args = Vec::new();
    for (i, a) in arrays.iter_mut().enumerate() {
        // SAFETY: the arrays outlive the run.
        unsafe { memory.register(a.as_mut_ptr() as u64, size_of_val(&a[..]) as u64, format!("a{i}"), true) };
        args.push(Arg::Pointer(a.as_ptr() as u64));
    }
    args.extend_from_slice(rest);
    exe.run(grid, &args, &memory, &RunOptions::default()).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn layer_norm() {
    let source = include_str!("../../../examples/layer_norm.py");
    for (cols, block) in [(1024usize, 256), (1000, 192), (77, 80)] {
        let exe = compile(
            source,
            "layer_norm_kernel",
            &format!("*fp32,*fp32,*fp32,*fp32,*fp32,*fp32,i32,i32,fp32,{block}"),
        );
        let mut r = Random(9);
        let rows = 33;
        let mut x = r.f32s(rows * cols);
        let (mut w, mut b) = (r.f32s(cols), r.f32s(cols));
        let (mut y, mut mean, mut rstd) = (vec![f32::NAN; rows * cols], vec![0f32; rows], vec![0f32; rows]);
        let n = Arg::Int(cols as i64);
        launch(
            &exe,
            [rows as u32, 1, 1],
            &mut [&mut x, &mut y, &mut w, &mut b, &mut mean, &mut rstd],
            &[n, n, Arg::Float(1e-5)],
        );
        for row in 0..rows {
            let line: Vec<f64> = x[row * cols..][..cols].iter().map(|&v| f64::from(v)).collect();
            let m = line.iter().sum::<f64>() / cols as f64;
            let var = line.iter().map(|v| (v - m) * (v - m)).sum::<f64>() / cols as f64;
            let scale = 1.0 / (var + 1e-5).sqrt();
            assert!((f64::from(mean[row]) - m).abs() < 1e-5);
            for c in 0..cols {
                let want = (line[c] - m) * scale * f64::from(w[c]) + f64::from(b[c]);
                assert!((f64::from(y[row * cols + c]) - want).abs() < 1e-4, "row {row} column {c}");
            }
        }
    }
}
