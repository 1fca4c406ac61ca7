//! PTX that `nvcc` makes from CUDA C++ of our own (`tests/cuda/*.cu`, compiled by `tests/cuda/regenerate.sh`).
#![allow(missing_docs, clippy::needless_range_loop)]
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

#[test]
fn softmax() {
    let p = parse(include_str!("cuda/softmax.ptx"));
    let (rows, cols) = (16usize, 1000usize);
    let mut r = Rng(7);
    let mut x: Vec<f32> = (0..rows * cols).map(|_| r.f32() * 4.0).collect();
    let mut y = vec![0f32; rows * cols];
    Run::new(&p, rows as u32, 128).array(&mut x).array(&mut y).int(cols as i64).clean();
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

fn suite() -> tilewright_ptxsim::Program {
    parse(include_str!("cuda/suite.ptx"))
}

fn ints(n: usize, seed: u64, modulus: u32) -> Vec<i32> {
    let mut r = Rng(seed);
    (0..n).map(|_| (r.u32() % modulus) as i32).collect()
}

fn floats(n: usize, seed: u64) -> Vec<f32> {
    let mut r = Rng(seed);
    (0..n).map(|_| r.f32()).collect()
}

#[test]
fn saxpy() {
    let p = suite();
    let (mut x, y0) = (floats(1000, 1), floats(1000, 2));
    let mut y = y0.clone();
    Run::new(&p, 3, 128).entry("saxpy").int(1000).f32(1.5).array(&mut x).array(&mut y).clean();
    for i in 0..1000 {
        assert_eq!(y[i], 1.5f32.mul_add(x[i], y0[i]));
    }
}

#[test]
fn reductions() {
    let p = suite();
    let mut x: Vec<f32> = ints(777, 3, 100).iter().map(|&v| v as f32).collect();
    let mut out = vec![0f32];
    Run::new(&p, 1, 256).entry("reduce_shared").shared(1024).array(&mut x).array(&mut out).int(777).clean();
    assert_eq!(out[0], x.iter().sum::<f32>());
    let mut x = ints(1000, 4, 50);
    let mut out = vec![0, i32::MIN, i32::MAX];
    Run::new(&p, 8, 128).entry("reduce_atomic").array(&mut x).array(&mut out).int(1000).clean();
    x.resize(1024, 0);
    let sums: Vec<i32> = x.chunks(32).map(|c| c.iter().sum()).collect();
    assert_eq!(
        out,
        [sums.iter().sum::<i32>(), *sums.iter().max().expect("some"), *sums.iter().min().expect("some")]
    );
}

#[test]
fn scans() {
    let p = suite();
    let sum = |x: &[i32]| {
        x.iter()
            .scan(0, |s, v| {
                *s += v;
                Some(*s)
            })
            .collect::<Vec<i32>>()
    };
    let mut x = ints(256, 5, 100);
    let mut y = vec![0; 256];
    Run::new(&p, 1, 256).entry("scan_block").array(&mut x).array(&mut y).clean();
    assert_eq!(y, sum(&x));
    let mut x = ints(128 * 20, 6, 100);
    let mut y = vec![0; x.len()];
    let mut state = vec![0; 40];
    Run::new(&p, 20, 128).entry("scan_chained").array(&mut x).array(&mut y).array(&mut state).clean();
    assert_eq!(y, sum(&x));
}

#[test]
fn transposes() {
    let p = suite();
    let (w, h) = (70usize, 45usize);
    let mut x = floats(w * h, 7);
    let mut y = vec![0f32; w * h];
    let run = Run::new(&p, 1, 1).entry("transpose").grid([3, 2, 1]).block([32, 8, 1]);
    let r = run.array(&mut x).array(&mut y).int(w as i64).int(h as i64).clean();
    for i in 0..h {
        for j in 0..w {
            assert_eq!(y[j * h + i], x[i * w + j]);
        }
    }
    assert_eq!(r.counters.total.bank_conflicts, 0);
    let (mut x, mut y) = (Sectors::new(1024), Sectors::new(1024));
    let run = Run::new(&p, 1, 1).entry("transpose_conflicts").block([32, 8, 1]);
    let r = run.array(x.words()).array(y.words()).clean();
    // 32 reads of a column: each takes 32 passes where one would do.
    assert_eq!(r.counters.total.bank_conflicts, 32 * 31);
    assert_eq!(r.counters.total.global_sectors, 256);
    assert_eq!(r.counters.total.global_sectors_min, 256);
}

#[test]
fn simple_matmul() {
    let p = suite();
    let n = 50usize;
    let (mut a, mut b) = (floats(n * n, 9), floats(n * n, 10));
    let mut c = vec![0f32; n * n];
    let run = Run::new(&p, 1, 1).entry("matmul_simple").grid([4, 4, 1]).block([16, 16, 1]);
    run.array(&mut a).array(&mut b).array(&mut c).int(n as i64).clean();
    for i in 0..n {
        for j in 0..n {
            let want = (0..n).fold(0f32, |s, k| a[i * n + k].mul_add(b[k * n + j], s));
            assert_eq!(c[i * n + j], want);
        }
    }
}

#[test]
fn histogram() {
    let p = suite();
    let mut x: Vec<u8> = ints(5000, 11, 256).iter().map(|&v| v as u8).collect();
    let mut bins = vec![0u32; 256];
    Run::new(&p, 4, 128).entry("histogram").array(&mut x).array(&mut bins).int(5000).clean();
    let mut want = vec![0u32; 256];
    x.iter().for_each(|&v| want[v as usize] += 1);
    assert_eq!(bins, want);
}

#[test]
fn warp_votes_and_groups() {
    let p = suite();
    let mut x: Vec<i32> = ints(128, 12, 9).iter().map(|v| v - 4).collect();
    let (mut y, mut count) = (vec![0; 128], vec![0]);
    Run::new(&p, 1, 128).entry("ballot_compact").array(&mut x).array(&mut y).array(&mut count).clean();
    let mut want: Vec<i32> = x.iter().copied().filter(|&v| v > 0).collect();
    let mut got = y[..count[0] as usize].to_vec();
    want.sort_unstable();
    got.sort_unstable();
    assert_eq!(got, want);

    let mut x = ints(64, 13, 100);
    let mut y = vec![0; 128];
    Run::new(&p, 1, 64).entry("groups").array(&mut x).array(&mut y).clean();
    let sums: Vec<i32> = x.chunks(8).flat_map(|c| [c.iter().sum::<i32>(); 8]).collect();
    assert_eq!(y[..64], sums);
    for w in 0..2 {
        let odd: Vec<usize> = (w * 32..w * 32 + 32).filter(|&t| sums[t] & 1 != 0).collect();
        for t in w * 32..w * 32 + 32 {
            let want = odd.iter().position(|&o| o == t).map_or(-1, |k| k as i32 + 100 * odd.len() as i32);
            assert_eq!(y[64 + t], want, "{t}");
        }
    }

    let mut x = ints(32, 14, 5);
    let mut y = vec![0u32; 32];
    Run::new(&p, 1, 32).entry("match_groups").array(&mut x).array(&mut y).clean();
    for t in 0..32 {
        let same: Vec<usize> = (0..32).filter(|&o| x[o] == x[t]).collect();
        assert_eq!(y[t] as usize, same.iter().sum::<usize>() + (same[0] << 16));
    }
}

#[test]
fn calls_and_local_memory() {
    let p = suite();
    let mut x = floats(32, 15);
    let mut y = vec![0f32; 32];
    Run::new(&p, 1, 32).entry("calls").array(&mut x).array(&mut y).clean();
    let poly = |v: f32, c: &[f32]| c.iter().rev().fold(0f32, |r, c| r.mul_add(v, *c));
    for t in 0..32 {
        let local: Vec<f32> = x[..8].iter().map(|v| v * (t as f32 + 1.0)).collect();
        let want = poly(local[t & 7], &[1.0, 0.5, 0.25, 0.125]) + poly(x[t], &local);
        assert_eq!(y[t], want, "{t}");
    }
}

#[test]
fn control_flow() {
    let p = suite();
    let mut x = ints(64, 16, 9);
    let mut y = vec![0; 64];
    Run::new(&p, 1, 64).entry("switches").array(&mut x).array(&mut y).clean();
    for t in 0..64 {
        let v = x[t];
        let want = match v {
            0 => 10,
            1 => 8,
            2 => 2 ^ 99,
            3 => -3,
            4 => 128,
            5 => (0..t).fold(1234i32, |r, _| r.wrapping_mul(3).wrapping_add(1)),
            6 => 77,
            _ => -1,
        };
        assert_eq!(y[t], want, "{t}: {v}");
    }
    let mut x: Vec<u32> = (1..=96).collect();
    let mut y = vec![0u32; 96];
    Run::new(&p, 1, 96).entry("collatz").array(&mut x).array(&mut y).clean();
    for (x, y) in x.iter().zip(&y) {
        let (mut v, mut n) = (*x, 0);
        while v != 1 {
            v = if v & 1 == 1 { 3 * v + 1 } else { v / 2 };
            n += 1;
        }
        assert_eq!(*y, n);
    }
}

#[test]
fn narrow_and_wide_floats() {
    use half::bf16;
    let p = suite();
    let mut x: Vec<f16> = floats(64, 17).iter().map(|&v| f16::from_f32(v)).collect();
    let mut y = vec![f16::ZERO; 64];
    let mut z = vec![bf16::ZERO; 32];
    Run::new(&p, 1, 32).entry("halves").array(&mut x).array(&mut y).array(&mut z).clean();
    for i in 0..64 {
        let v = f64::from(x[i]);
        assert_eq!(y[i], f16::from_f64(v * v + 0.5).max(f16::from_f32(0.75)));
    }
    for i in 0..32 {
        let (lo, hi) = (bf16::from_f32(x[2 * i].to_f32()), bf16::from_f32(x[2 * i + 1].to_f32()));
        let want = lo.to_f64() * 3.0 + hi.to_f64();
        assert!((z[i].to_f64() - want).abs() <= want.abs() / 64.0 + 1e-3);
    }
    let mut x: Vec<f64> = floats(32, 18).iter().map(|&v| f64::from(v) * 5.0).collect();
    let mut y = vec![0f64; 32];
    Run::new(&p, 1, 32).entry("doubles").array(&mut x).array(&mut y).clean();
    for (v, y) in x.iter().zip(&y) {
        let want = v.abs().sqrt() / (v * v + 1.0) + v.exp() - v.floor() + v.mul_add(*v, 1.0);
        assert!((want - y).abs() <= 1e-13 * want.abs().max(1.0), "{v}: {y} not {want}");
    }
}

#[test]
fn elementary_functions() {
    let p = suite();
    let mut x: Vec<f32> = floats(64, 19).iter().map(|v| v * 8.0).collect();
    let mut y = vec![0f32; 64 * 12];
    Run::new(&p, 1, 64).entry("functions").array(&mut x).array(&mut y).clean();
    for (t, &v) in x.iter().enumerate() {
        let d = f64::from(v);
        let want = [
            d.sin(),
            d.cos(),
            d.exp(),
            (d.abs() + 1.0).ln(),
            d.tanh(),
            f64::NAN,
            1.0 / (d.abs() + 1.0).sqrt(),
            d.abs().powf(1.5),
            d.exp(),
            d / 3.0,
            d.trunc() + d.round_ties_even() + d.ceil(),
            f64::from(v % 0.7f32),
        ];
        for (k, w) in want.iter().enumerate() {
            let got = f64::from(y[t * 12 + k]);
            assert!(w.is_nan() || (got - w).abs() <= 4e-6 * w.abs().max(1e-1), "{k} of {v}: {got} not {w}");
        }
        // erf by its defining property: odd, within (−1, 1), and increasing.
        assert!(y[t * 12 + 5].abs() <= 1.0 && (y[t * 12 + 5] >= 0.0) == (v >= 0.0));
    }
}

#[test]
fn wide_integers() {
    let p = suite();
    let mut r = Rng(20);
    let mut x: Vec<i64> = (0..32).map(|_| (r.next() as i64) ^ ((r.next() << 40) as i64)).collect();
    let mut y = vec![0i64; 256];
    Run::new(&p, 1, 32).entry("integers").array(&mut x).array(&mut y).clean();
    for (t, &v) in x.iter().enumerate() {
        let (u, w) = (v as u64, v as i32);
        let b = |x: i32, k: u32| (x as u32 >> (8 * k)) & 255;
        let want = [
            v / 12345,
            (u % 98765) as i64,
            ((i128::from(v) * 0x0123_4567_89ab_cdef) >> 64) as i64,
            i64::from(u.count_ones() + u.leading_zeros() * 100 + (u.trailing_zeros() + 1) * 10000),
            u.reverse_bits() as i64,
            (b(w, 0) | b(w, 2) << 8 | b(w >> 3, 0) << 16 | b(w >> 3, 2) << 24) as i32 as i64,
            i64::from(w as i16) * i64::from((w >> 8) as i8),
            (v >> 7) ^ (v << 9) ^ (u >> (w & 63)) as i64,
        ];
        let want: Vec<i64> =
            want.into_iter().enumerate().map(|(k, v)| if k == 5 { v & 0xffff_ffff } else { v }).collect();
        let got: Vec<i64> = y[t * 8..t * 8 + 8]
            .iter()
            .enumerate()
            .map(|(k, &v)| if k == 5 { v & 0xffff_ffff } else { v })
            .collect();
        assert_eq!(got, want, "{v:#x}");
    }
}

#[test]
fn structures_by_value() {
    let p = suite();
    let mut b = vec![0u8; 32];
    b[0..4].copy_from_slice(&7i32.to_le_bytes());
    b[4..6].copy_from_slice(&(-3i16).to_le_bytes());
    b[6..12].copy_from_slice(b"abcdef");
    for k in 0..4 {
        b[16 + 4 * k..20 + 4 * k].copy_from_slice(&(k as f32).to_le_bytes());
    }
    let mut out = vec![0u128; 2 * 32];
    let mut v: Vec<u128> = (0..32u128)
        .map(|t| (0..4).fold(0, |w, k| w | u128::from(((t * 4 + k) as f32).to_bits()) << (32 * k)))
        .collect();
    Run::new(&p, 1, 32).entry("structs").bytes(b).array(&mut out).array(&mut v).clean();
    for t in 0..32usize {
        let o: Vec<u8> = out[2 * t..2 * t + 2].iter().flat_map(|x| x.to_le_bytes()).collect();
        assert_eq!(o[0..4], (7 + t as i32).to_le_bytes());
        assert_eq!(o[4..6], (-6i16).to_le_bytes());
        assert_eq!(&o[6..12], b"abcxef");
        for k in 0..4 {
            assert_eq!(o[16 + 4 * k..20 + 4 * k], (k as f32 + (t * 4 + 3 - k) as f32).to_le_bytes());
        }
    }
}

#[test]
fn printing_and_asserting() {
    let p = suite();
    let r = Run::new(&p, 1, 32).entry("prints").int(2).clean();
    assert_eq!(r.output, ["thread 0 of block:  0.00|ff  |-1\n", "thread 1 of block:  0.50|ff  |-1\n"]);
    let mut x = vec![1; 32];
    Run::new(&p, 1, 32).entry("asserts").array(&mut x).clean();
    x[9] = -1;
    let r = Run::new(&p, 1, 32).entry("asserts").array(&mut x).finds(tilewright_ptxsim::FindingKind::Trap);
    assert!(r.findings[0].message.contains("`x[threadIdx.x] >= 0`"), "{}", r.findings[0]);
    assert_eq!(r.findings[0].thread, [9, 0, 0]);
}

#[test]
fn locks_and_grid_wide_order() {
    let p = suite();
    let (mut lock, mut data) = (vec![0], vec![0, 0]);
    Run::new(&p, 2, 64).entry("spin_locks").array(&mut lock).array(&mut data).clean();
    assert_eq!(data, [512, 512 * 513 / 2]);
    let (mut counter, mut a, mut b) = (vec![0], vec![0; 640], vec![0; 640]);
    Run::new(&p, 10, 64).entry("grid_barrier").array(&mut counter).array(&mut a).array(&mut b).clean();
    assert_eq!(b, (0..640).rev().map(|i| i * 3).collect::<Vec<i32>>());
    let mut x = ints(32 * 16, 21, 100);
    let (mut partial, mut ticket, mut out) = (vec![0; 16], vec![0u32], vec![0]);
    let run = Run::new(&p, 16, 32).entry("last_block").array(&mut x).array(&mut partial);
    run.array(&mut ticket).array(&mut out).clean();
    assert_eq!(out[0], x.iter().sum::<i32>());
}

#[test]
fn sorting_and_stencils() {
    let p = suite();
    let mut x = ints(256, 22, 10000);
    let mut want = x.clone();
    want.sort_unstable();
    Run::new(&p, 1, 256).entry("bitonic").array(&mut x).clean();
    assert_eq!(x, want);
    let mut x = floats(300, 23);
    let mut y = vec![0f32; 300];
    Run::new(&p, 3, 128).entry("stencil").array(&mut x).array(&mut y).int(300).clean();
    for i in 0..300usize {
        let at = |k: isize| x.get((i as isize + k) as usize).copied().unwrap_or(0.0);
        let want = 0.25 * at(-1) + 0.5 * at(0) + 0.25 * at(1);
        assert!((y[i] - want).abs() < 1e-6);
    }
}

#[test]
fn integer_tensor_cores() {
    let p = suite();
    let mut a: Vec<i8> = ints(16 * 32, 24, 256).iter().map(|&v| v as i8).collect();
    let mut b: Vec<i8> = ints(8 * 32, 25, 256).iter().map(|&v| v as i8).collect();
    let mut c = vec![0i32; 128];
    Run::new(&p, 1, 32).entry("tensor_int8").array(&mut a).array(&mut b).array(&mut c).clean();
    for i in 0..16 {
        for j in 0..8 {
            let want: i32 = (0..32).map(|k| i32::from(a[i * 32 + k]) * i32::from(b[j * 32 + k])).sum();
            assert_eq!(c[i * 8 + j], want);
        }
    }
}

#[test]
fn matrix_fragments() {
    let p = suite();
    let k = 48usize;
    let half = |s| -> Vec<u128> {
        let v: Vec<u16> = floats(16 * k, s).iter().map(|&v| f16::from_f32(v).to_bits()).collect();
        v.chunks(8).map(|c| c.iter().rev().fold(0, |w, &x| w << 16 | u128::from(x))).collect()
    };
    let (mut a, mut b) = (half(30), half(31));
    let at = |m: &[u128], x: usize| f64::from(f16::from_bits((m[x / 8] >> (16 * (x % 8))) as u16));
    let mut c = vec![0u128; 16 * 20 / 4];
    let run = Run::new(&p, 1, 32).entry("fragments").array(&mut a).array(&mut b).array(&mut c);
    let r = run.int(k as i64).int(20).clean();
    assert_eq!(r.counters.total.tensor_macs, 3 * 4096);
    for i in 0..16 {
        for j in 0..16 {
            let x = i * 20 + j;
            let got = f64::from(f32::from_bits((c[x / 4] >> (32 * (x % 4))) as u32));
            let want: f64 = 2.0 * (0..k).map(|e| at(&a, i * k + e) * at(&b, j * k + e)).sum::<f64>();
            assert!((got - want).abs() < 1e-4, "{i},{j}: {got} not {want}");
        }
    }
}

#[test]
fn recursion() {
    fn fib(n: u32) -> u32 {
        if n < 2 { n } else { fib(n - 1) + fib(n - 2) }
    }
    fn path(n: u32, above: &mut [u32; 4]) -> u32 {
        let mut mine = [n, n + 1, n + 2, n + 3];
        if n > 0 {
            above[n as usize % 4] += path(n - 1, &mut mine);
        }
        mine[0] + 3 * mine[1] + 5 * mine[2] + 7 * mine[3]
    }
    let p = parse(include_str!("cuda/calls.ptx"));
    let mut x: Vec<u32> = ints(96, 41, 1 << 20).iter().map(|&v| v as u32).collect();
    let mut out = vec![0u32; 4 * 96];
    Run::new(&p, 2, 48).entry("recursion").array(&mut x).array(&mut out).clean();
    for (x, got) in x.iter().zip(out.chunks(4)) {
        let (n, mut top) = (x % 16, [1, 2, 3, 4]);
        let p = path(n, &mut top);
        let [a, b, c, d] = top;
        assert_eq!(got, [fib(n), if n.is_multiple_of(2) { 1 } else { 2 }, p, a ^ b << 8 ^ c << 16 ^ d << 24]);
    }
}

#[test]
fn calls_by_address() {
    let p = parse(include_str!("cuda/calls.ptx"));
    let mut x = ints(2 * 64, 42, 1000);
    let (mut out, mut wide) = (vec![0i32; 64], vec![0f64; 64]);
    Run::new(&p, 1, 64).entry("pointers").array(&mut x).array(&mut out).array(&mut wide).clean();
    let of = |t: usize| {
        let (a, b) = (x[2 * t], x[2 * t + 1]);
        let op = [a + b, a * b, a.max(b)][a as usize % 3];
        (a, b, op + if b % 2 == 1 { a * b } else { a * b / 2 })
    };
    for t in 0..64 {
        let (a, b, sum) = of(t);
        let step = |(x, y): (f64, i32)| if a % 2 == 1 { (x * 1.5, y + 3) } else { (x - 2.0, y * 2) };
        let (x, y) = step(step((f64::from(a), b)));
        assert_eq!((out[t], wide[t]), (sum + y + of(t ^ 1).2, x));
    }
}
