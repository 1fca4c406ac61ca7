//! What the passes make of a kernel computes what the kernel does.
//!
//! At the lowest level tensors have no encodings, and a module is `tt` again, but for one warp: the CPU executor runs it. Each warp is a
//! program, whose number along the last axis of the grid is the warp's; what warps hand each other in shared memory goes through
//! memory that the programs are given, and their barriers are those of the grid.

mod common;

use std::collections::HashMap;
use std::path::Path;

use common::{ATTENTION, lowered};
use half::f16;
use tilewright_frontend::Options;
use tilewright_interp::{Arg, Executable, Memory, RunOptions};
use tilewright_ir::dialect::{arith, gpu, tt, ttg, ub};
use tilewright_ir::{Builder, Module, Opcode, Type, Value};
use tilewright_passes::lower_to_ttg;
use tilewright_passes::transform::lower_descriptors;
use tilewright_xe::Target;

/// Runs a lowered kernel, one program for each warp.
fn run(mut module: Module, [x, y]: [u32; 2], num_warps: u32, args: &[(u64, usize)], numbers: &[i64]) {
    for op in module.all_ops(module.root()) {
        // What larger blocks begin as; the executor has no undefined values.
        if let Some(poison) = ub::Poison::cast(&module, op) {
            let ty = module.value_type(poison.result(&module));
            let zero = Builder::before(&mut module, op).float(0.0, ty);
            module.replace_op(op, &[zero]);
        }
        let Some(id) = gpu::SubgroupId::cast(&module, op) else { continue };
        let mut b = Builder::before(&mut module, id.0);
        let number = tt::GetProgramId::build(&mut b, tt::ProgramDim::Z, Type::I32).result(b.module);
        let index = arith::IndexCast::build(&mut b, number, Type::INDEX).out(b.module);
        module.replace_op(id.0, &[index]);
    }
    hand_over(&mut module);
    lower_descriptors::run(&mut module, None).unwrap_or_else(|e| panic!("{e}"));
    let text = tilewright_ir::print(&module);
    let executable = Executable::compile(&module, "kernel").unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut memory = Memory::new();
    let mut values = Vec::new();
    for (i, &(base, bytes)) in args.iter().enumerate() {
        // SAFETY: the tests' vectors outlive the run, which alone uses them.
        unsafe { memory.register(base, bytes as u64, format!("arg{i}"), true) };
        values.push(Arg::Pointer(base));
    }
    values.extend(numbers.iter().map(|&n| Arg::Int(n)));
    let done = executable.run([x, y, num_warps], &values, &memory, &RunOptions::default());
    done.unwrap_or_else(|e| panic!("{e}\n{text}"));
}

/// Puts buffers into the memory that the kernel's last pointer points to.
fn hand_over(module: &mut Module) {
    let mut places: HashMap<Value, Value> = HashMap::new();
    let mut bytes = 0;
    for op in module.all_ops(module.root()) {
        let Some(Opcode::Ttg(kind)) = module.opcode(op) else { continue };
        let operands = module.operands(op).to_vec();
        let result = module.results(op).first().copied();
        match kind {
            ttg::Kind::LocalAlloc => {
                let block = module.parent_block(op).expect("attached");
                let args = module.block_args(block).to_vec();
                let is_ptr = |v: &Value| module.is_ptr(module.value_type(*v));
                let base = args.into_iter().rfind(is_ptr).expect("a pointer to scratch");
                let size: u32 =
                    module.shape(module.value_type(result.expect("one"))).expect("a buffer").iter().product();
                let mut b = Builder::before(module, op);
                let from = b.i32(bytes);
                let at = tt::Addptr::build(&mut b, base, from).result(b.module);
                bytes += size as i32;
                places.insert(result.expect("one"), at);
            }
            ttg::Kind::MemdescIndex => {
                let slot = result.expect("one");
                let size: u32 = module.shape(module.value_type(slot)).expect("a slot").iter().product();
                let mut b = Builder::before(module, op);
                let size = b.i32(size as i32);
                let from = arith::Muli::build(&mut b, operands[1], size).result(b.module);
                let at = tt::Addptr::build(&mut b, places[&operands[0]], from).result(b.module);
                places.insert(slot, at);
            }
            ttg::Kind::MemdescSubslice => {
                let from = ttg::MemdescSubslice(op).offsets(module)[0];
                let mut b = Builder::before(module, op);
                let from = b.i32(from);
                let at = tt::Addptr::build(&mut b, places[&operands[0]], from).result(b.module);
                places.insert(result.expect("one"), at);
            }
            ttg::Kind::LocalStore | ttg::Kind::LocalLoad => {
                let store = kind == ttg::Kind::LocalStore;
                let (tensor, buffer) =
                    if store { (operands[0], operands[1]) } else { (result.expect("one"), operands[0]) };
                let ty = module.value_type(tensor);
                let n = module.shape(ty).expect("a tensor")[0];
                let (pointer, loaded) = (module.value_type(places[&buffer]), ty);
                let pointers = module.tensor_type(&[n], pointer, None);
                let indices = module.tensor_type(&[n], Type::I32, None);
                let mut b = Builder::before(module, op);
                let base = tt::Splat::build(&mut b, places[&buffer], pointers).result(b.module);
                let range = tt::MakeRange::build(&mut b, n as i32, 0, indices).result(b.module);
                let at = tt::Addptr::build(&mut b, base, range).result(b.module);
                let (cache, evict) = (tt::CacheModifier::None, tt::EvictionPolicy::Normal);
                if store {
                    tt::Store::build(&mut b, at, tensor, None, cache, evict);
                } else {
                    let value =
                        tt::Load::build(&mut b, at, None, None, cache, evict, false, loaded).result(b.module);
                    module.replace_all_uses(tensor, value);
                }
            }
            ttg::Kind::Barrier => {
                tt::ProgramBarrier::build(&mut Builder::before(module, op), None, tt::ProgramScope::Grid, 0);
            }
            _ => panic!("{}", module.op_name(op)),
        }
    }
    let all = module.all_ops(module.root());
    for op in all
        .into_iter()
        .rev()
        .filter(|&op| matches!(module.opcode(op), Some(Opcode::Ttg(_))))
        .collect::<Vec<_>>()
    {
        module.erase_op(op);
    }
}

fn memory<T>(values: &mut [T]) -> (u64, usize) {
    (values.as_mut_ptr() as u64, size_of_val(values))
}

/// Small whole numbers, of which every sum is exact.
fn number(i: usize) -> f32 {
    ((i * 37 + i / 7) % 11) as f32 - 5.0
}

const PRODUCT: &str = "\
def kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM
    columns = tl.program_id(1) * BN
    a_blocks = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    b_blocks = tl.make_tensor_descriptor(b, [K, N], [N, 1], [BK, BN])
    c_blocks = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    accumulator = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        accumulator = tl.dot(a_blocks.load([rows, k]), b_blocks.load([k, columns]), accumulator)
    c_blocks.store([rows, columns], accumulator)
";

fn product<T: Copy>(from: impl Fn(f32) -> T, ty: &str, block: [usize; 3], num_warps: u32) {
    product_of(PRODUCT, from, ty, block, num_warps);
}

/// Runs a kernel that multiplies matrices in blocks.
fn product_of<T: Copy>(
    source: &str,
    from: impl Fn(f32) -> T,
    ty: &str,
    [bm, bn, bk]: [usize; 3],
    num_warps: u32,
) {
    let (m, n, k) = (2 * bm, bn, 2 * bk);
    let mut a: Vec<T> = (0..m * k).map(|i| from(number(i))).collect();
    let mut b: Vec<T> = (0..k * n).map(|i| from(number(i + 3))).collect();
    let mut c = vec![f32::NAN; m * n];
    let signature = format!("*{ty}:16, *{ty}:16, *fp32:16, i32:16, i32:16, i32:16, {bm}, {bn}, {bk}");
    let module = lowered(source, &signature, num_warps);
    let args = [memory(&mut a), memory(&mut b), memory(&mut c)];
    run(module, [2, 1], num_warps, &args, &[m as i64, n as i64, k as i64]);
    for i in 0..m {
        for j in 0..n {
            let expected: f32 = (0..k).map(|x| number(i * k + x) * number(x * n + j + 3)).sum();
            assert_eq!(c[i * n + j], expected, "{ty}, {num_warps} warps: [{i}, {j}]");
        }
    }
}

#[test]
fn products() {
    product(f16::from_f32, "fp16", [64, 64, 32], 4);
    product(f16::from_f32, "fp16", [32, 128, 64], 8);
    // Few rows: fewer than an instruction has, and copies.
    product(f16::from_f32, "fp16", [4, 32, 32], 2);
    product(f16::from_f32, "fp16", [16, 16, 16], 4);
    product(|x| x, "fp32", [32, 64, 16], 4);
}

#[test]
fn attention() {
    let (n, d, num_warps) = (128, 64, 8);
    let of = |at: usize, scale: f32| (0..n * d).map(|i| f16::from_f32(number(i + at) * scale)).collect();
    let (mut q, mut k, mut v): (Vec<f16>, Vec<f16>, Vec<f16>) = (of(0, 0.125), of(5, 0.25), of(9, 1.0));
    let mut o = vec![f16::NAN; n * d];
    let module = lowered(
        ATTENTION,
        &format!("*fp16:16, *fp16:16, *fp16:16, *fp16:16, i32:16, {d}, 128, 64"),
        num_warps,
    );
    let args = [memory(&mut q), memory(&mut k), memory(&mut v), memory(&mut o)];
    run(module, [1, 1], num_warps, &args, &[n as i64]);
    for i in 0..n {
        let row =
            |x: &[f16], i: usize| x[i * d..(i + 1) * d].iter().map(|x| x.to_f32()).collect::<Vec<f32>>();
        let query = row(&q, i);
        let scores: Vec<f32> =
            (0..n).map(|j| query.iter().zip(row(&k, j)).map(|(a, b)| a * b).sum()).collect();
        let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let p: Vec<f32> = scores.iter().map(|s| (s - most).exp2()).collect();
        let sum: f32 = p.iter().sum();
        for c in 0..d {
            let expected = (0..n).map(|j| p[j] * v[j * d + c].to_f32()).sum::<f32>() / sum;
            let found = o[i * d + c].to_f32();
            assert!((found - expected).abs() < 0.02, "[{i}, {c}]: {found}, not {expected}");
        }
    }
}

#[test]
fn elements_and_rows() {
    let source = "\
def kernel(x, out, n, M: tl.constexpr, N: tl.constexpr):
    r = tl.program_id(0) * M + tl.arange(0, M)
    c = tl.arange(0, N)
    at = r[:, None] * N + c[None, :]
    values = tl.load(x + at, mask=at < n, other=0.0)
    tl.store(out + at, values - tl.sum(values, axis=1)[:, None] + c[None, :])
";
    let (m, columns) = (64, 32);
    let mut x: Vec<f32> = (0..m * columns).map(number).collect();
    let mut out = vec![f32::NAN; m * columns];
    let module = lowered(source, &format!("*fp32:16, *fp32:16, i32, {}, {columns}", m / 2), 4);
    let args = [memory(&mut x), memory(&mut out)];
    run(module, [2, 1], 4, &args, &[(m * columns - 5) as i64]);
    for i in 0..m {
        let value = |c: usize| if i * columns + c < m * columns - 5 { number(i * columns + c) } else { 0.0 };
        let sum: f32 = (0..columns).map(value).sum();
        for c in 0..columns {
            assert_eq!(out[i * columns + c], value(c) - sum + c as f32, "[{i}, {c}]");
        }
    }
}

/// What warps share out is combined across them, in a loop, too.
#[test]
fn reductions_across_warps() {
    let source = "\
def kernel(x, out, scratch, n, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    total = 0.0
    for step in range(STEPS):
        at = step * BLOCK + tl.arange(0, BLOCK)
        total += tl.sum(tl.load(x + at, mask=at < n, other=0.0), axis=0)
    tl.store(out, total)
";
    for num_warps in [1, 4, 8] {
        let (steps, block) = (3, 256);
        let mut x: Vec<f32> = (0..steps * block).map(number).collect();
        let mut out = vec![f32::NAN; 1];
        let mut scratch = vec![f32::NAN; 64];
        let module =
            lowered(source, &format!("*fp32:16, *fp32:16, *fp32:16, i32, {steps}, {block}"), num_warps);
        let n = steps * block - 7;
        let args = [memory(&mut x), memory(&mut out), memory(&mut scratch)];
        run(module, [1, 1], num_warps, &args, &[n as i64]);
        assert_eq!(out[0], (0..n).map(number).sum::<f32>(), "{num_warps} warps");
    }
}

/// Warps share rows and columns: each column's part is combined with that of the warps that have the same columns.
#[test]
fn columns_across_warps() {
    let source = "\
def kernel(x, out, scratch, M: tl.constexpr, N: tl.constexpr):
    r = tl.arange(0, M)
    c = tl.arange(0, N)
    values = tl.load(x + r[:, None] * N + c[None, :])
    tl.store(out + c, tl.max(values, axis=0) - tl.sum(values, axis=0))
";
    let (m, n) = (64, 32);
    for num_warps in [2, 8, 16] {
        let mut x: Vec<f32> = (0..m * n).map(number).collect();
        let mut out = vec![f32::NAN; n];
        let mut scratch = vec![f32::NAN; 2048];
        let module = lowered(source, &format!("*fp32:16, *fp32:16, *fp32:16, {m}, {n}"), num_warps);
        let args = [memory(&mut x), memory(&mut out), memory(&mut scratch)];
        run(module, [1, 1], num_warps, &args, &[]);
        for (c, &found) in out.iter().enumerate() {
            let column = (0..m).map(|r| number(r * n + c));
            let most = column.clone().fold(f32::NEG_INFINITY, f32::max);
            assert_eq!(found, most - column.sum::<f32>(), "{num_warps} warps: {c}");
        }
    }
}

/// Kernels that were written for others give a result, or an error that says what is not supported yet.
#[test]
fn what_is_not_supported_is_said() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../passes/tests/ir");
    let mut done = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the tests of the passes") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("a readable file");
        for num_warps in [1, 4, 32] {
            let mut module = tilewright_ir::parse(&text, &name).unwrap_or_else(|e| panic!("{e}"));
            tilewright_ir::pass::optimize(&mut module).unwrap_or_else(|e| panic!("{e}"));
            let options = Options { num_warps, ..Options::default() };
            match lower_to_ttg(&mut module, &Target::parse("xe:pvc").expect("is one").info(), &options) {
                Ok(()) => done.push(format!("{name} {num_warps}")),
                Err(e) => {
                    assert!(e.to_string().contains("not supported yet"), "{name}, {num_warps} warps: {e}")
                }
            }
        }
    }
    println!("{done:?}");
    assert!(done.iter().any(|d| d.starts_with("add.mlir")), "{done:?}");
}

/// Operands that are loaded by single addresses, which the columns' order wants, are put together from what these bring. (In a loop they would go thread by thread.)
#[test]
fn products_of_gathered_operands() {
    let source = "\
def kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK) ^ 1
    a_at = a + rows[:, None] * K + depth[None, :]
    b_at = b + depth[:, None] * N + columns[None, :]
    accumulator = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in tl.static_range(2):
        accumulator = tl.dot(tl.load(a_at), tl.load(b_at), accumulator)
        a_at += BK
        b_at += BK * N
    tl.store(c + rows[:, None] * N + columns[None, :], accumulator)
";
    product_of(source, f16::from_f32, "fp16", [32, 64, 32], 4);
}

/// A scan goes on from block to block of an instruction.
#[test]
fn scans() {
    let source = "\
def kernel(x, out, M: tl.constexpr, N: tl.constexpr, REVERSE: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + at, tl.cumsum(tl.load(x + at), axis=1, reverse=REVERSE))
";
    let (m, n) = (16, 128);
    for (num_warps, reverse) in [(1, false), (4, false), (4, true)] {
        let mut x: Vec<f32> = (0..m * n).map(number).collect();
        let mut out = vec![f32::NAN; m * n];
        let word = if reverse { "True" } else { "False" };
        let module = lowered(source, &format!("*fp32:16, *fp32:16, {m}, {n}, {word}"), num_warps);
        let args = [memory(&mut x), memory(&mut out)];
        run(module, [1, 1], num_warps, &args, &[]);
        for i in 0..m {
            for c in 0..n {
                let range = if reverse { c..n } else { 0..c + 1 };
                let expected: f32 = range.map(|c| number(i * n + c)).sum();
                assert_eq!(out[i * n + c], expected, "{num_warps} warps, {reverse}: [{i}, {c}]");
            }
        }
    }
}

/// One warp adds, and all get what was there.
#[test]
fn old_values_of_atomic_operations() {
    let source = "\
def kernel(x, counter, scratch, BLOCK: tl.constexpr):
    first = tl.atomic_add(counter, BLOCK)
    old = tl.atomic_cas(counter + 1, 7, 9)
    tl.store(x + first + tl.arange(0, BLOCK), old + tl.arange(0, BLOCK))
";
    for num_warps in [1, 4] {
        let mut x = vec![-1i32; 3 * 128];
        let (mut counter, mut scratch) = ([0i32, 7], vec![-1i32; 64]);
        let module = lowered(source, "*i32:16, *i32:16, *i32:16, 128", num_warps);
        let args = [memory(&mut x), memory(&mut counter), memory(&mut scratch)];
        run(module, [1, 1], num_warps, &args, &[]);
        assert_eq!(counter, [128, 9], "{num_warps} warps");
        assert!((0..128).all(|i| x[i] == 7 + i as i32), "{num_warps} warps: {x:?}");
        assert!(x[128..].iter().all(|&x| x == -1));
    }
}

/// Products of int8 are exact.
#[test]
fn products_of_bytes() {
    let source = "\
def kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    a_blocks = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    b_blocks = tl.make_tensor_descriptor(b, [K, N], [N, 1], [BK, BN])
    c_blocks = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    accumulator = tl.zeros((BM, BN), dtype=tl.int32)
    for k in range(0, K, BK):
        accumulator = tl.dot(a_blocks.load([0, k]), b_blocks.load([k, 0]), accumulator)
    c_blocks.store([0, 0], accumulator)
";
    let (m, n, k) = (32, 64, 128);
    let byte = |i: usize| ((i * 29 + i / 5) % 251) as i8;
    let mut a: Vec<i8> = (0..m * k).map(byte).collect();
    let mut b: Vec<i8> = (0..k * n).map(|i| byte(i + 3)).collect();
    let mut c = vec![-1i32; m * n];
    let module = lowered(source, "*i8:16, *i8:16, *i32:16, i32:16, i32:16, i32:16, 32, 64, 64", 4);
    let args = [memory(&mut a), memory(&mut b), memory(&mut c)];
    run(module, [1, 1], 4, &args, &[m as i64, n as i64, k as i64]);
    for i in 0..m {
        for j in 0..n {
            let one = |x: usize| i32::from(byte(i * k + x)) * i32::from(byte(x * n + j + 3));
            assert_eq!(c[i * n + j], (0..k).map(one).sum::<i32>(), "[{i}, {j}]");
        }
    }
}

/// Dots that no instruction does, of instructions that there are: their results in f16, of fp8, and of fp32 by three of tf32.
#[test]
fn products_that_no_instruction_does() {
    let source = |how: &str| {
        format!(
            "\
def kernel(a, b, c, M, N, K):
    rows, columns, depth = tl.arange(0, 32), tl.arange(0, 64), tl.arange(0, 64)
    x = tl.load(a + rows[:, None] * K + depth[None, :])
    y = tl.load(b + depth[:, None] * N + columns[None, :])
    tl.store(c + rows[:, None] * N + columns[None, :], tl.dot(x, y, {how}))
"
        )
    };
    let (m, n, k) = (32, 64, 64);
    let expected =
        |i: usize, j: usize| (0..k).map(|x| number(i * k + x) * number(x * n + j + 3)).sum::<f32>();
    let args = [m as i64, n as i64, k as i64];
    let mut a: Vec<f16> = (0..m * k).map(|i| f16::from_f32(number(i))).collect();
    let mut b: Vec<f16> = (0..k * n).map(|i| f16::from_f32(number(i + 3))).collect();
    let mut c = vec![f16::NAN; m * n];
    let module =
        lowered(&source("out_dtype=tl.float16"), "*fp16:16, *fp16:16, *fp16:16, i32:16, i32:16, i32:16", 4);
    run(module, [1, 1], 4, &[memory(&mut a), memory(&mut b), memory(&mut c)], &args);
    assert!((0..m * n).all(|i| c[i].to_f32() == expected(i / n, i % n)));

    let mut a: Vec<f32> = (0..m * k).map(|i| number(i) / 3.0).collect();
    let mut b: Vec<f32> = (0..k * n).map(|i| number(i + 3) / 7.0).collect();
    let mut c = vec![f32::NAN; m * n];
    let module = lowered(
        &source("input_precision='tf32x3'"),
        "*fp32:16, *fp32:16, *fp32:16, i32:16, i32:16, i32:16",
        4,
    );
    run(module, [1, 1], 4, &[memory(&mut a), memory(&mut b), memory(&mut c)], &args);
    assert!((0..m * n).all(|i| (c[i] - expected(i / n, i % n) / 21.0).abs() < 1e-4));
}
