//! PTX that `nvcc` makes from CUDA C++ of our own (`tests/cuda/*.cu`, compiled by `tests/cuda/regenerate.sh`).
#![allow(missing_docs)]
mod common;
use common::*;
use half::f16;

#[test]
fn matmul_with_mma_sync() {
    let p = parse(include_str!("cuda/matmul.ptx"));
    let (m, n, k) = (100usize, 72usize, 72usize);
    let mut r = Rng(3);
    let mut a: Vec<f16> = (0..m * k).map(|_| f16::from_f32(r.f32())).collect();
    let mut b: Vec<f16> = (0..k * n).map(|_| f16::from_f32(r.f32())).collect();
    let mut c = vec![0f32; m * n];
    let report = Run::new(&p, 1, 128)
        .grid([n.div_ceil(64) as u32, m.div_ceil(64) as u32, 1])
        .array(&mut a)
        .array(&mut b)
        .array(&mut c)
        .int(m as i64)
        .int(n as i64)
        .int(k as i64)
        .clean();
    for i in 0..m {
        for j in 0..n {
            let want: f64 = (0..k).map(|x| f64::from(a[i * k + x]) * f64::from(b[x * n + j])).sum();
            let got = f64::from(c[i * n + j]);
            assert!((want - got).abs() < 1e-4, "{i},{j}: {got} not {want}");
        }
    }
    assert_eq!(report.counters.total.tensor_ops, 4 * 4 * 3 * 16);
}
