//! Times of three kernels on the CPU executor, median of several runs: `cargo run --release -p tilewright-interp
//! --example speed`. The same three that `tests/gpu/interp_speed.py` times in Triton's interpreter.

use std::time::Instant;

use tilewright_interp::{Arg, Executable, Memory, RunOptions};

const ADD: &str = r#"
module {
  tt.func public @k(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %o: !tt.ptr<f32>, %n: i32) {
    %c1024 = arith.constant 1024 : i32
    %pid = tt.get_program_id x : i32
    %base = arith.muli %pid, %c1024 : i32
    %r = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32>
    %b = tt.splat %base : i32 -> tensor<1024xi32>
    %offs = arith.addi %b, %r : tensor<1024xi32>
    %ns = tt.splat %n : i32 -> tensor<1024xi32>
    %mask = arith.cmpi slt, %offs, %ns : tensor<1024xi32>
    %xs = tt.splat %x : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    %xp = tt.addptr %xs, %offs : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
    %xv = tt.load %xp, %mask : tensor<1024x!tt.ptr<f32>>
    %ys = tt.splat %y : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    %yp = tt.addptr %ys, %offs : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
    %yv = tt.load %yp, %mask : tensor<1024x!tt.ptr<f32>>
    %s = arith.addf %xv, %yv : tensor<1024xf32>
    %os = tt.splat %o : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    %op = tt.addptr %os, %offs : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
    tt.store %op, %s, %mask : tensor<1024x!tt.ptr<f32>>
    tt.return
  }
}
"#;

const SOFTMAX: &str = r#"
module {
  tt.func public @k(%x: !tt.ptr<f32>, %o: !tt.ptr<f32>, %n: i32) {
    %inf = arith.constant dense<0xFF800000> : tensor<1024xf32>
    %pid = tt.get_program_id x : i32
    %row = arith.muli %pid, %n : i32
    %r = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32>
    %ns = tt.splat %n : i32 -> tensor<1024xi32>
    %mask = arith.cmpi slt, %r, %ns : tensor<1024xi32>
    %xr = tt.addptr %x, %row : !tt.ptr<f32>, i32
    %xs = tt.splat %xr : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    %xp = tt.addptr %xs, %r : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
    %v = tt.load %xp, %mask, %inf : tensor<1024x!tt.ptr<f32>>
    %max = "tt.reduce"(%v) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %t = arith.maxnumf %a, %b : f32
      tt.reduce.return %t : f32
    }) : (tensor<1024xf32>) -> f32
    %ms = tt.splat %max : f32 -> tensor<1024xf32>
    %d = arith.subf %v, %ms : tensor<1024xf32>
    %e = math.exp %d : tensor<1024xf32>
    %sum = "tt.reduce"(%e) <{axis = 0 : i32}> ({
    ^bb0(%a2: f32, %b2: f32):
      %t2 = arith.addf %a2, %b2 : f32
      tt.reduce.return %t2 : f32
    }) : (tensor<1024xf32>) -> f32
    %ss = tt.splat %sum : f32 -> tensor<1024xf32>
    %q = arith.divf %e, %ss : tensor<1024xf32>
    %or = tt.addptr %o, %row : !tt.ptr<f32>, i32
    %os = tt.splat %or : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
    %op = tt.addptr %os, %r : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
    tt.store %op, %q, %mask : tensor<1024x!tt.ptr<f32>>
    tt.return
  }
}
"#;

const MATMUL: &str = r#"
module {
  tt.func public @k(%a: !tt.ptr<f16>, %b: !tt.ptr<f16>, %c: !tt.ptr<f16>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c32 = arith.constant 32 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %pm = tt.get_program_id x : i32
    %pn = tt.get_program_id y : i32
    %m0 = arith.muli %pm, %c64 : i32
    %n0 = arith.muli %pn, %c64 : i32
    %r64 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %r32 = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
    %m0s = tt.splat %m0 : i32 -> tensor<64xi32>
    %om = arith.addi %m0s, %r64 : tensor<64xi32>
    %n0s = tt.splat %n0 : i32 -> tensor<64xi32>
    %on = arith.addi %n0s, %r64 : tensor<64xi32>
    %ns = tt.splat %n : i32 -> tensor<64x1xi32>
    %om1 = tt.expand_dims %om {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %on1 = tt.expand_dims %on {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %rows = arith.muli %om1, %ns : tensor<64x1xi32>
    %ok1 = tt.expand_dims %r32 {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
    %rowsk = tt.broadcast %rows : tensor<64x1xi32> -> tensor<64x32xi32>
    %okb = tt.broadcast %ok1 : tensor<1x32xi32> -> tensor<64x32xi32>
    %aoff = arith.addi %rowsk, %okb : tensor<64x32xi32>
    %as = tt.splat %a : !tt.ptr<f16> -> tensor<64x32x!tt.ptr<f16>>
    %ap = tt.addptr %as, %aoff : tensor<64x32x!tt.ptr<f16>>, tensor<64x32xi32>
    %ok2 = tt.expand_dims %r32 {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
    %nk = tt.splat %n : i32 -> tensor<32x1xi32>
    %krows = arith.muli %ok2, %nk : tensor<32x1xi32>
    %krowsb = tt.broadcast %krows : tensor<32x1xi32> -> tensor<32x64xi32>
    %onb = tt.broadcast %on1 : tensor<1x64xi32> -> tensor<32x64xi32>
    %boff = arith.addi %krowsb, %onb : tensor<32x64xi32>
    %bs = tt.splat %b : !tt.ptr<f16> -> tensor<32x64x!tt.ptr<f16>>
    %bp = tt.addptr %bs, %boff : tensor<32x64x!tt.ptr<f16>>, tensor<32x64xi32>
    %astep = arith.constant dense<32> : tensor<64x32xi32>
    %bstep0 = arith.muli %n, %c32 : i32
    %bstep = tt.splat %bstep0 : i32 -> tensor<32x64xi32>
    %acc:3 = scf.for %k = %c0 to %n step %c32 iter_args(%s = %zero, %pa = %ap, %pb = %bp) -> (tensor<64x64xf32>, tensor<64x32x!tt.ptr<f16>>, tensor<32x64x!tt.ptr<f16>>)  : i32 {
      %av = tt.load %pa : tensor<64x32x!tt.ptr<f16>>
      %bv = tt.load %pb : tensor<32x64x!tt.ptr<f16>>
      %d = tt.dot %av, %bv, %s : tensor<64x32xf16> * tensor<32x64xf16> -> tensor<64x64xf32>
      %pa2 = tt.addptr %pa, %astep : tensor<64x32x!tt.ptr<f16>>, tensor<64x32xi32>
      %pb2 = tt.addptr %pb, %bstep : tensor<32x64x!tt.ptr<f16>>, tensor<32x64xi32>
      scf.yield %d, %pa2, %pb2 : tensor<64x64xf32>, tensor<64x32x!tt.ptr<f16>>, tensor<32x64x!tt.ptr<f16>>
    }
    %h = arith.truncf %acc#0 : tensor<64x64xf32> to tensor<64x64xf16>
    %rowsn = tt.broadcast %rows : tensor<64x1xi32> -> tensor<64x64xi32>
    %onn = tt.broadcast %on1 : tensor<1x64xi32> -> tensor<64x64xi32>
    %coff = arith.addi %rowsn, %onn : tensor<64x64xi32>
    %cs = tt.splat %c : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
    %cp = tt.addptr %cs, %coff : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
    tt.store %cp, %h : tensor<64x64x!tt.ptr<f16>>
    tt.return
  }
}
"#;

fn time<T>(name: &str, ir: &str, grid: [u32; 3], buffers: &mut [Vec<T>], n: i64, threads: usize) {
    let module = tilewright_ir::parse(ir, name).unwrap_or_else(|e| panic!("{e}"));
    let exe = Executable::compile(&module, "k").unwrap_or_else(|e| panic!("{e}"));
    let mut memory = Memory::new();
    let mut args = Vec::new();
    for (i, b) in buffers.iter_mut().enumerate() {
        // SAFETY: the buffers outlive the runs and nothing else touches them.
        unsafe {
            memory.register(b.as_mut_ptr() as u64, size_of_val(&b[..]) as u64, format!("arg{i}"), true)
        };
        args.push(Arg::Pointer(b.as_ptr() as u64));
    }
    args.push(Arg::Int(n));
    let options = RunOptions { threads, ..RunOptions::default() };
    let mut times: Vec<f64> = (0..21)
        .map(|_| {
            let start = Instant::now();
            exe.run(grid, &args, &memory, &options).unwrap_or_else(|e| panic!("{e}"));
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!(
        "{name:28} {:10.3} ms   ({} threads; fastest {:.3})",
        times[10],
        if threads == 0 { "all".into() } else { threads.to_string() },
        times[0]
    );
}

fn main() {
    let mut state = 1u32;
    let mut random = |n: usize| -> Vec<f32> {
        (0..n)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 8) as f32 / (1 << 23) as f32 - 1.0
            })
            .collect()
    };
    for threads in [1, 0] {
        let mut add = [random(1 << 20), random(1 << 20), vec![0.0; 1 << 20]];
        time("add 1M, blocks of 1024", ADD, [1024, 1, 1], &mut add, 1 << 20, threads);
        assert!((0..1 << 20).all(|i| add[2][i] == add[0][i] + add[1][i]));
        let mut softmax = [random(1 << 20), vec![0.0; 1 << 20]];
        time("softmax 1024x1024", SOFTMAX, [1024, 1, 1], &mut softmax, 1024, threads);
        assert!((softmax[1][..1024].iter().sum::<f32>() - 1.0).abs() < 1e-5);
        // 1.0 in every element: each product is 512.
        let mut matmul = [vec![0x3c00u16; 512 * 512], vec![0x3c00; 512 * 512], vec![0; 512 * 512]];
        time("matmul 512^3 fp16, 64x64x32", MATMUL, [8, 8, 1], &mut matmul, 512, threads);
        assert!(matmul[2].iter().all(|&x| x == 0x6000));
    }
}
