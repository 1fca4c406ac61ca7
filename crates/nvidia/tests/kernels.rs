//! Whole kernels in `ttg` form, run in the PTX simulator against plain loops.

mod common;

use common::*;

#[test]
fn vector_add() {
    let n = 2500usize;
    let (a, b) = (numbers(n, 1), numbers(n, 2));
    let (mut x, mut y, mut out) = (Buffer::f32(&a), Buffer::f32(&b), Buffer::zeros(n * 4));
    let ir = include_str!("ttgir/vector_add.mlir");
    let mut args = [Arg::Buffer(&mut x), Arg::Buffer(&mut y), Arg::Buffer(&mut out), Arg::I32(n as i32)];
    let kernel = run(ir, "cuda:90", 3, &mut args);
    let want: Vec<f32> = a.iter().zip(&b).map(|(x, y)| x + y).collect();
    assert_eq!(out.to_f32(), want);
    assert_eq!(kernel.ptx.matches("ld.global.v4.b32").count(), 4, "{}", kernel.ptx);
    assert_eq!(kernel.ptx.matches("st.global.v4.b32").count(), 2, "{}", kernel.ptx);
    assert!(kernel.instructions < 80, "{} instructions:\n{}", kernel.instructions, kernel.llvm_ir);
}

#[test]
fn softmax_of_a_padded_row() {
    let (rows, n) = (3usize, 1000usize);
    let x = numbers(rows * n, 3);
    let (mut input, mut out) = (Buffer::f32(&x), Buffer::zeros(rows * n * 4));
    let mut args = [Arg::Buffer(&mut out), Arg::Buffer(&mut input), Arg::I32(n as i32)];
    run(include_str!("ttgir/softmax.mlir"), "cuda:90", rows as u32, &mut args);
    let want: Vec<f32> = x
        .chunks(n)
        .flat_map(|row| {
            let max = row.iter().copied().fold(f32::MIN, f32::max);
            let e: Vec<f32> = row.iter().map(|v| (v - max).exp()).collect();
            let sum: f32 = e.iter().sum();
            e.into_iter().map(move |v| v / sum)
        })
        .collect();
    close(&out.to_f32(), &want, 1e-5);
}

#[test]
fn matmul_with_ldmatrix() {
    let (m, n, k) = (64usize, 64usize, 96usize);
    let (a, b) = (numbers(m * k, 4), numbers(k * n, 5));
    let (mut ba, mut bb, mut bc) = (Buffer::f16(&a), Buffer::f16(&b), Buffer::zeros(m * n * 4));
    let mut args = [
        Arg::Buffer(&mut ba),
        Arg::Buffer(&mut bb),
        Arg::Buffer(&mut bc),
        Arg::I32(k as i32),
        Arg::I32(n as i32),
    ];
    let kernel = run(include_str!("ttgir/matmul.mlir"), "cuda:80", 1, &mut args);
    let h = |v: f32| half::f16::from_f32(v).to_f32();
    let mut want = vec![0f32; m * n];
    for i in 0..m {
        for j in 0..n {
            want[i * n + j] = (0..k).map(|l| h(a[i * k + l]) * h(b[l * n + j])).sum();
        }
    }
    close(&bc.to_f32(), &want, 1e-3);
    // 2 row tiles and 4 column tiles of a warp, 2 steps of K.
    assert_eq!(kernel.ptx.matches("mma.sync.aligned.m16n8k16").count(), 16);
    assert_eq!(kernel.ptx.matches("ldmatrix.sync.aligned.m8n8.x4").count(), 8, "{}", kernel.ptx);
    assert!(kernel.instructions < 450, "{} instructions", kernel.instructions);
}
