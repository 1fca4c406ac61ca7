//! SPIR-V of kernels: its validator takes it, the simulator runs it to the right results, and Intel's offline compiler makes code of it.

mod common;

use std::io::Write as _;
use std::process::{Command, Stdio};

use common::{ATTENTION, behind};
use tilewright_frontend::Options;
use tilewright_xe::Target;
use tilewright_xe::asm::{Listing, Loop};
use tilewright_xe::compile::{Kernel, compile};
use tilewright_xe::ocloc::{Native, Ocloc};
use tilewright_xesim::{Launch, Memory, Param, Program, SimOptions};

/// A kernel in SPIR-V that the validator takes.
fn kernel(source: &str, signature: &str, num_warps: u32) -> Kernel {
    let options = Options { num_warps, ..Options::default() };
    let module = behind(source, signature, &options, None).unwrap_or_else(|e| panic!("{e}"));
    let target = Target::parse("xe:pvc").expect("is one");
    let kernel = compile(&module, target, &options)
        .unwrap_or_else(|e| panic!("{e}\n{}", tilewright_ir::print(&module)));
    // That of `make setup`: older ones know no inline assembly.
    let validator = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.venv/bin/spirv-val");
    let mut tool = Command::new(validator)
        .args(["--target-env", "spv1.2", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("spirv-val, which `make setup` installs");
    tool.stdin.take().expect("is piped").write_all(&kernel.spirv).expect("it reads");
    let done = tool.wait_with_output().expect("it ends");
    let said = [done.stdout, done.stderr].concat();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&said));
    kernel
}

/// Numbers as bytes.
fn bytes<T: Copy>(a: &mut [T]) -> &mut [u8] {
    // SAFETY: numbers are bytes, and any bytes are numbers.
    unsafe { std::slice::from_raw_parts_mut(a.as_mut_ptr().cast(), std::mem::size_of_val(a)) }
}

/// Runs a kernel on arrays and numbers; nothing is found.
fn run<const N: usize>(kernel: &Kernel, groups: [u32; 3], arrays: [&mut [u8]; N], rest: &[i64]) {
    let findings = findings(kernel, groups, arrays, rest);
    assert!(findings.is_empty(), "{}", findings[0]);
}

/// Runs a kernel on arrays and numbers: what is found.
fn findings<const N: usize>(
    kernel: &Kernel,
    groups: [u32; 3],
    arrays: [&mut [u8]; N],
    rest: &[i64],
) -> Vec<String> {
    let mut memory = Memory::new();
    let mut params = vec![];
    for (k, a) in arrays.into_iter().enumerate() {
        params.push(Param::Pointer(a.as_ptr() as u64));
        // SAFETY: the arrays outlive the launch, and nothing else touches them meanwhile.
        unsafe { memory.register_slice(a, &format!("array {k}")) };
    }
    params.extend(rest.iter().map(|&n| Param::Int(n)));
    let launch = Launch { kernel: kernel.name.clone(), groups, items: kernel.num_warps * 16, params };
    let program = Program::parse(&kernel.spirv).unwrap_or_else(|e| panic!("{e}"));
    let report = program.launch(&launch, &memory, &SimOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    report.findings.iter().map(ToString::to_string).collect()
}

const ADD: &str = "def kernel(x, y, z, n):
    at = tl.program_id(0) * 256 + tl.arange(0, 256)
    inside = at < n
    tl.store(z + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)
";

#[test]
fn vectors_are_added() {
    let kernel = kernel(ADD, "*fp32,*fp32,*fp32,i32", 4);
    let mut x: Vec<f32> = (0..1000).map(|i| i as f32).collect();
    let mut y: Vec<f32> = (0..1000).map(|i| 0.5 * i as f32).collect();
    let mut z = vec![0f32; 1000];
    run(&kernel, [4, 1, 1], [bytes(&mut x), bytes(&mut y), bytes(&mut z)], &[1000]);
    assert!(z.iter().enumerate().all(|(i, &z)| z == 1.5 * i as f32));
}

const SOFTMAX: &str = "def kernel(x, y, columns):
    at = tl.arange(0, 256)
    row = tl.program_id(0)
    value = tl.load(x + row * columns + at, mask=at < columns, other=-float('inf'))
    value = tl.exp(value - tl.max(value, axis=0))
    tl.store(y + row * columns + at, value / tl.sum(value, axis=0), mask=at < columns)
";

#[test]
fn softmax_of_rows_that_warps_share() {
    const COLUMNS: usize = 200;
    let kernel = kernel(SOFTMAX, "*fp32,*fp32,i32", 4);
    assert!(kernel.shared_bytes > 0);
    let mut x: Vec<f32> = (0..3 * COLUMNS).map(|i| (i * 7 % 23) as f32 / 4.0).collect();
    let mut y = vec![0f32; 3 * COLUMNS];
    run(&kernel, [3, 1, 1], [bytes(&mut x), bytes(&mut y)], &[COLUMNS as i64]);
    for (x, y) in x.chunks(COLUMNS).zip(y.chunks(COLUMNS)) {
        let top = x.iter().copied().fold(f32::MIN, f32::max);
        let sum: f64 = x.iter().map(|x| f64::from(x - top).exp()).sum();
        for (x, y) in x.iter().zip(y) {
            let want = f64::from(x - top).exp() / sum;
            assert!((f64::from(*y) - want).abs() <= 1e-6, "{y} {want}");
        }
    }
}

const MATMUL: &str = "def kernel(a, b, c, M, N, K):
    rows = tl.program_id(0) * BM
    columns = tl.program_id(1) * BN
    a_blocks = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    b_blocks = tl.make_tensor_descriptor(b, [K, N], [N, 1], [BK, BN])
    c_blocks = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    accumulator = tl.zeros((BM, BN), dtype=ACC)
    for k in range(0, K, BK):
        accumulator = tl.dot(a_blocks.load([rows, k]), b_blocks.load([k, columns]), accumulator, out_dtype=ACC)
    c_blocks.store([rows, columns], accumulator)
";

/// A product of matrices of this type, by so many warps.
fn matmul(of: &str, acc: &str, block: [u32; 3], num_warps: u32) -> Kernel {
    let mut source =
        MATMUL.replace("ACC", &format!("tl.{}", if acc == "fp32" { "float32" } else { "int32" }));
    for (name, n) in ["BM", "BN", "BK"].into_iter().zip(block) {
        source = source.replace(name, &n.to_string());
    }
    kernel(&source, &format!("*{of}:16,*{of}:16,*{acc}:16,i32:16,i32:16,i32:16"), num_warps)
}

/// Memory at a multiple of 64 bytes.
#[repr(align(64))]
#[derive(Clone, Copy)]
#[allow(dead_code)] // looked at as bytes
struct Line([u8; 64]);

/// Whole numbers of a type, at such a place, or 16 bytes behind one.
fn numbers(of: &str, count: usize, number: impl Fn(usize) -> i32) -> (Vec<Line>, Vec<u8>) {
    let bytes: Vec<u8> = (0..count)
        .flat_map(|i| match of {
            "fp16" => half::f16::from_f32(number(i) as f32).to_le_bytes().to_vec(),
            "bf16" => half::bf16::from_f32(number(i) as f32).to_le_bytes().to_vec(),
            "fp32" => (number(i) as f32).to_le_bytes().to_vec(),
            _ => vec![number(i) as u8],
        })
        .collect();
    (vec![Line([0; 64]); bytes.len().div_ceil(64) + 1], bytes)
}

/// A product of `M`×`K` by `K`×`N`; what is asked for, and what comes.
fn product(of: &str, [m, n, k]: [usize; 3], block: [u32; 3], num_warps: u32, offset: usize) {
    let acc = if of == "i8" { "i32" } else { "fp32" };
    let kernel = matmul(of, acc, block, num_warps);
    let (first, second) = (|i: usize| (i * 7 % 13) as i32 - 6, |i: usize| (i * 5 % 11) as i32 - 5);
    let (mut a, of_a) = numbers(of, m * k, first);
    let (mut b, of_b) = numbers(of, k * n, second);
    let mut c = vec![0i32; m * n];
    let a = &mut bytes(&mut a)[offset..offset + of_a.len()];
    let b = &mut bytes(&mut b)[offset..offset + of_b.len()];
    a.copy_from_slice(&of_a);
    b.copy_from_slice(&of_b);
    let groups = [m.div_ceil(block[0] as usize) as u32, n.div_ceil(block[1] as usize) as u32, 1];
    run(&kernel, groups, [a, b, bytes(&mut c)], &[m as i64, n as i64, k as i64]);
    for (i, &c) in c.iter().enumerate() {
        let want: i32 = (0..k).map(|j| first(i / n * k + j) * second(j * n + i % n)).sum();
        let got = if acc == "i32" { c } else { f32::from_bits(c as u32) as i32 };
        assert_eq!(got, want, "row {}, column {}", i / n, i % n);
    }
}

#[test]
fn products_of_all_types() {
    for (of, k) in [("fp16", 32), ("bf16", 32), ("fp32", 16), ("i8", 64)] {
        product(of, [64, 64, 64], [32, 64, k], 2, 0);
    }
}

/// Blocks reach beyond the matrices.
#[test]
fn products_with_edges() {
    product("fp16", [40, 48, 80], [32, 64, 32], 2, 0);
}

/// Matrices that no message takes: not at a multiple of 64 bytes, or with rows of fewer.
#[test]
fn products_without_blocks() {
    product("fp16", [32, 64, 32], [32, 64, 32], 2, 16);
    product("fp16", [32, 64, 16], [32, 64, 16], 2, 0);
}

/// The text of a message says its shape, and so does the last of its words.
#[test]
fn words_of_another_shape_are_reported() {
    let mut kernel = matmul("fp16", "fp32", [32, 64, 32], 2);
    // 32 rows, two blocks of 16 columns, in a constant.
    let constant = |shape: u32| [4 << 16 | 43, shape].map(u32::to_le_bytes);
    let [code, whole] = constant(0x1_1f0f);
    let words = kernel.spirv.as_chunks_mut::<4>().0;
    let at = words.windows(4).position(|w| w[0] == code && w[3] == whole).expect("is one of the constants");
    words[at + 3] = constant(0x1_0f0f)[1];
    let mut arrays = [(); 3].map(|()| vec![Line([0; 64]); 64 * 64 * 4 / 64]);
    let [a, b, c] = arrays.each_mut().map(|array| bytes(array));
    let found = findings(&kernel, [2, 1, 1], [a, b, c], &[64, 64, 64]);
    let note = "the last word of a message must be the shape that its text says";
    assert!(found.iter().any(|finding| finding.contains(note)), "{found:?}");
}

/// The paper's: blocks of 256×256×32, 32 warps (Listings 1 to 5).
#[test]
fn the_product_of_the_paper() {
    product("fp16", [256, 256, 64], [256, 256, 32], 32, 0);
}

#[test]
fn attention() {
    let (n, d, num_warps) = (128, 64, 8);
    let signature = format!("*fp16:16, *fp16:16, *fp16:16, *fp16:16, i32:16, {d}, 128, 64");
    let kernel = kernel(ATTENTION, &signature, num_warps);
    let numbers = |at: usize, scale: f32| -> (Vec<f32>, Vec<half::f16>) {
        let all: Vec<f32> = (0..n * d).map(|i| ((i + at) * 7 % 11) as f32 * scale - 5.0 * scale).collect();
        let halves = all.iter().map(|&x| half::f16::from_f32(x)).collect();
        (all, halves)
    };
    let ((q, mut q16), (k, mut k16), (v, mut v16)) = (numbers(0, 0.125), numbers(5, 0.25), numbers(9, 1.0));
    let mut o = vec![half::f16::NAN; n * d];
    // At a multiple of 64 bytes.
    let [mut q16, mut k16, mut v16] = [&mut q16, &mut k16, &mut v16].map(|x| {
        let mut lines = vec![Line([0; 64]); n * d * 2 / 64];
        bytes(&mut lines).copy_from_slice(bytes(x));
        lines
    });
    let arrays = [bytes(&mut q16), bytes(&mut k16), bytes(&mut v16), bytes(&mut o)];
    run(&kernel, [1, 1, 1], arrays, &[n as i64]);
    for i in 0..n {
        let scores: Vec<f32> =
            (0..n).map(|j| (0..d).map(|c| q[i * d + c] * k[j * d + c]).sum::<f32>()).collect();
        let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let p: Vec<f32> = scores.iter().map(|s| (s - most).exp2()).collect();
        let sum: f32 = p.iter().sum();
        for c in 0..d {
            let want = (0..n).map(|j| p[j] * v[j * d + c]).sum::<f32>() / sum;
            let got = o[i * d + c].to_f32();
            assert!((got - want).abs() < 0.02, "[{i}, {c}]: {got}, not {want}");
        }
    }
}

/// What Intel's offline compiler makes of a kernel, with the large registers or without.
fn native(kernel: &Kernel, large: bool) -> (Native, Listing) {
    let ocloc = Ocloc::find().unwrap_or_else(|e| panic!("{e}"));
    let native = ocloc.compile(&kernel.spirv, "pvc", large, &Default::default());
    let native = native.unwrap_or_else(|e| panic!("{e}"));
    let listing = Listing::read(&native.assembly, &native.lines);
    (native, listing)
}

/// How many instructions have names that begin so.
fn count(l: &Loop, name: &str) -> usize {
    l.instructions.iter().filter(|(of, _)| of.starts_with(name)).map(|(_, n)| n).sum()
}

/// The loop with block loads and products, and that it spills nothing.
fn main_loop(listing: &Listing) -> &Loop {
    let of_blocks = |l: &&Loop| count(l, "load_block2d") > 0 && count(l, "dpas") > 0;
    let l = listing.loops.iter().find(of_blocks).unwrap_or_else(|| panic!("{listing:?}"));
    assert_eq!(count(l, "hword"), 0, "{l:?}");
    l
}

#[test]
fn native_code_of_rows_and_vectors() {
    for kernel in [kernel(ADD, "*fp32,*fp32,*fp32,i32", 4), kernel(SOFTMAX, "*fp32,*fp32,i32", 4)] {
        let (native, listing) = native(&kernel, false);
        assert_eq!((native.usage.spilled_bytes, native.usage.sub_group), (0, 16));
        assert!(native.usage.slm_bytes >= kernel.shared_bytes);
        assert!(listing.instructions.keys().any(|name| name.starts_with("store.ugm")), "{listing:?}");
    }
}

/// 32 products of 8×16 by 16×16 a warp, as many as the arithmetic needs, one load of the first operand and two of the second (Listing 5), and a prefetch of each,
/// which is a load to nowhere. The rest: an addition for each two messages' places, the loop, the message that the warp is there, and waits for registers and for the
/// other warps, which do nothing else.
#[test]
fn native_code_of_the_product_of_the_paper() {
    let (native, listing) = native(&matmul("fp16", "fp32", [256, 256, 32], 32), true);
    assert_eq!(native.usage.registers, 256);
    let l = main_loop(&listing);
    let counts = ["dpas.8x8", "load_block2d.ugm.d16v", "load_block2d.ugm.d16."].map(|name| count(l, name));
    assert_eq!(counts, [32, 2, 1 + 2]);
    let rest = ["add", "cmp", "jmpi", "signal", "sync"].map(|name| count(l, name));
    assert_eq!(rest[..4], [3 + 1, 1, 2, 1], "{l:?}");
    assert!(rest[4] <= 7, "{l:?}");
    assert_eq!(count(l, ""), 37 + rest.iter().sum::<usize>(), "{l:?}");
    // The result, of 8 rows and 16 columns each.
    assert_eq!(
        listing
            .instructions
            .iter()
            .filter(|(name, _)| name.starts_with("store_block2d"))
            .map(|(_, n)| n)
            .sum::<usize>(),
        16
    );
    // At most a fifth of what is no wait.
    assert!(5 * (count(l, "") - 37 - rest[4]) <= count(l, "") - rest[4]);
}

/// How many additions of a loop are for the places of two messages: on two registers at once.
fn places(native: &Native, l: &Loop) -> usize {
    let (_, code) = native.assembly.split_once(&format!("\n{}:", l.label)).expect("is a label");
    let (code, _) =
        code.split_once(&format!("jmpi                                 {}", l.label)).expect("ends");
    code.lines().filter(|line| line.contains("add (32|M0)")).count()
}

/// Both dots of attention hold the products that the arithmetic needs, a message for each block of 16×16 keys, which must be turned, and for each of 32×32 values, and a prefetch
/// each; besides one addition for each two messages, at most a fifth. (That of both prefetches counts with the second.)
#[test]
fn native_code_of_attention() {
    for (d, num_warps) in [(64, 8), (64, 16), (128, 16)] {
        let signature = format!("*fp16:16, *fp16:16, *fp16:16, *fp16:16, i32:16, {d}, 128, 64");
        let (native, listing) = native(&kernel(ATTENTION, &signature, num_warps), true);
        let l = main_loop(&listing);
        let (rows, keys) = (128 / num_warps as usize, 64);
        let products = rows / 8 * (keys / 16) * (d / 16);
        let [of_keys, of_values] = [keys / 16 * (d / 16), keys / 32 * (d / 32)];
        let names =
            ["dpas.8x8", "load_block2d.ugm.d32t", "load_block2d.ugm.d16v", "load_block2d.ugm.d16.a64.ca.ca"];
        assert_eq!(
            names.map(|name| count(l, name)),
            [2 * products, of_keys, of_values, 2],
            "{d}, {num_warps}"
        );
        assert_eq!(["load.slm", "store.slm"].map(|name| count(l, name)), [0, 0]);
        assert_eq!(places(&native, l), of_keys / 2 + of_values / 2 + 1, "{d}, {num_warps}");
        for (messages, besides) in [(of_keys, of_keys / 2), (of_values, of_values / 2 + 1)] {
            assert!(5 * besides <= products + messages + 1 + besides, "{d}, {num_warps}");
        }
    }
}

/// With 8 rows a warp the sums of rows meet behind the loop, with 16 there are no registers for it; neither spills.
#[test]
fn sums_over_lanes_leave_loops_that_have_registers() {
    let signature = "*fp16:16, *fp16:16, *fp16:16, *fp16:16, i32:16, 64, 128, 64";
    for (num_warps, apart) in [(16, true), (8, false)] {
        let options = Options { num_warps, ..Options::default() };
        let module = behind(ATTENTION, signature, &options, None).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(tilewright_ir::print(&module).contains("ttg.lanes_apart"), apart);
    }
}

/// The remarks of a kernel.
/// Where all warps prefetch for each other, and nothing else in the loop takes the barrier of the work group.
#[test]
fn warps_that_share_blocks_stay_in_step() {
    const LOOP: &str = "\
def kernel(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    a_blocks = tl.make_tensor_descriptor(a, [BM, K], [K, 1], [BM, BK])
    b_blocks = tl.make_tensor_descriptor(b, [K, BN], [BN, 1], [BK, BN])
    most = tl.full((BN,), float('-inf'), tl.float32)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(a_blocks.load([0, k]), b_blocks.load([k, 0]), acc)
        most = tl.maximum(most, MOST)
    tl.store(c + tl.arange(0, BM)[:, None] * BN + tl.arange(0, BN)[None, :], acc + most[None, :])
";
    let halves = |most: &str, num_warps, num_stages| {
        let options = Options { num_warps, num_stages, ..Options::default() };
        let signature = "*fp16:16, *fp16:16, *fp32:16, i32:16, 64, 64, 32";
        let module = behind(&LOOP.replace("MOST", most), signature, &options, None);
        let text = tilewright_ir::print(&module.unwrap_or_else(|e| panic!("{e}")));
        let body = text.split_once("scf.for").map_or("", |(_, rest)| rest).to_string();
        ["ttg.barrier_arrive", "ttg.barrier_wait"].map(|name| body.matches(name).count())
    };
    assert_eq!(halves("k", 4, 3), [1, 1]);
    assert_eq!(halves("k", 1, 3), [0, 0], "one warp");
    assert_eq!(halves("k", 4, 1), [0, 0], "no prefetches");
    assert_eq!(halves("tl.max(acc, axis=0)", 4, 3), [0, 0], "a barrier in between");
}

fn remarks(source: &str, signature: &str, num_warps: u32) -> Vec<String> {
    let options = Options { num_warps, ..Options::default() };
    let module = behind(source, signature, &options, None).unwrap_or_else(|e| panic!("{e}"));
    tilewright_passes::remarks::of(&module)
}

/// A scan across warps, by a function whose operands have an order.
#[test]
fn what_levels_do_not_take_goes_thread_by_thread() {
    let source = "def last(a, b):
    return b


@tilewright.jit
def kernel(x, sums, lasts):
    at = tl.arange(0, 1000)
    value = tl.load(x + at)
    tl.store(sums + at, tl.cumsum(value, 0))
    tl.store(lasts + at, tl.associative_scan(value, 0, last))
";
    let signature = "*i32:16,*i32:16,*i32:16";
    let remark = remarks(source, signature, 4).join("\n");
    assert!(
        remark.contains("lowered thread by thread, without instructions for whole warps: not supported yet"),
        "{remark}"
    );
    let kernel = kernel(source, signature, 4);
    let mut x: Vec<i32> = (0..1000).map(|i| i * i % 101 - 50).collect();
    let (mut sums, mut lasts) = (vec![0; 1000], vec![0; 1000]);
    run(&kernel, [1; 3], [bytes(&mut x), bytes(&mut sums), bytes(&mut lasts)], &[]);
    assert_eq!(lasts, x);
    let want: Vec<i32> = x
        .iter()
        .scan(0, |sum, x| {
            *sum += x;
            Some(*sum)
        })
        .collect();
    assert_eq!(sums, want);
}

/// What is both operands of a product goes from warps that have rows to such that have columns, and the product is one of the matrix engines.
#[test]
fn a_product_of_a_block_with_itself() {
    let source = "def kernel(x, y):
    at = tl.arange(0, 64)[:, None] * 64 + tl.arange(0, 64)[None, :]
    block = tl.load(x + at)
    tl.store(y + at, tl.dot(block, block))
";
    let signature = "*fp16:16,*fp32:16";
    let remark = remarks(source, signature, 4).join("\n");
    assert!(!remark.contains("thread by thread"), "{remark}");
    let kernel = kernel(source, signature, 4);
    assert!(kernel.shared_bytes > 0);
    let number = |i: usize| ((i * 37 + i / 64 * 11) % 7) as f32 - 3.0;
    let mut x: Vec<u16> = (0..64 * 64).map(|i| half::f16::from_f32(number(i)).to_bits()).collect();
    let mut y = vec![0f32; 64 * 64];
    run(&kernel, [1; 3], [bytes(&mut x), bytes(&mut y)], &[]);
    for (i, y) in y.iter().enumerate() {
        let want: f32 = (0..64).map(|k| number(i / 64 * 64 + k) * number(k * 64 + i % 64)).sum();
        assert_eq!(*y, want, "{i}");
    }
}

/// What is gathered in a loop goes thread by thread, and is multiplied by the matrix engines there, too.
#[test]
fn products_of_gathered_operands() {
    let source = "def kernel(a, b, c, N, K):
    rows = tl.program_id(0) * 32 + tl.arange(0, 32)
    columns = tl.arange(0, 64)
    depth = tl.arange(0, BK) ^ 1
    a_at = a + rows[:, None] * K + depth[None, :]
    b_at = b + depth[:, None] * N + columns[None, :]
    sums = tl.zeros((32, 64), dtype=ACC)
    for k in range(0, K, BK):
        sums = tl.dot(tl.load(a_at), tl.load(b_at), sums, out_dtype=ACC)
        a_at += BK
        b_at += BK * N
    tl.store(c + rows[:, None] * N + columns[None, :], sums)
";
    let (m, n) = (64, 64);
    for (of, bk, num_warps) in [("fp16", 32, 4), ("bf16", 16, 1), ("fp32", 16, 2), ("i8", 64, 4)] {
        let acc = if of == "i8" { "i32" } else { "fp32" };
        let name = if of == "i8" { "tl.int32" } else { "tl.float32" };
        let source = source.replace("BK", &bk.to_string()).replace("ACC", name);
        let signature = format!("*{of}:16,*{of}:16,*{acc}:16,i32:16,i32:16");
        let remark = remarks(&source, &signature, num_warps).join("\n");
        assert!(
            remark.contains("thread by thread") && remark.contains("a product of what is gathered"),
            "{remark}"
        );
        let kernel = kernel(&source, &signature, num_warps);
        assert!(kernel.spirv.windows(8).any(|bytes| bytes == b"dpas_f_f" || bytes == b"dpas_s8_"), "{of}");
        let k = 2 * bk;
        let (first, second) = (|i: usize| (i * 7 % 13) as i32 - 6, |i: usize| (i * 5 % 11) as i32 - 5);
        let ((mut a, of_a), (mut b, of_b)) = (numbers(of, m * k, first), numbers(of, k * n, second));
        let mut c = vec![0i32; m * n];
        let [a, b] = [(&mut a, &of_a), (&mut b, &of_b)].map(|(to, from)| {
            let to = &mut bytes(to)[..from.len()];
            to.copy_from_slice(from);
            to
        });
        run(&kernel, [2, 1, 1], [a, b, bytes(&mut c)], &[n as i64, k as i64]);
        for (i, &c) in c.iter().enumerate() {
            let want: i32 = (0..k).map(|j| first(i / n * k + j) * second(j * n + i % n)).sum();
            let got = if acc == "i32" { c } else { f32::from_bits(c as u32) as i32 };
            assert_eq!(got, want, "{of}: row {}, column {}", i / n, i % n);
        }
    }
}

/// A result of 96 columns whose transpose is multiplied: that has no name as a layout of warps.
#[test]
fn a_product_with_the_transpose_of_an_odd_one() {
    let source = "def kernel(x, y):
    block = tl.load(x + tl.arange(0, 64)[:, None] * 96 + tl.arange(0, 96)[None, :])
    sums = tl.dot(tl.full((64, 64), 1, tl.float16), block)
    product = tl.dot(block, tl.trans(sums.to(tl.float16)))
    tl.store(y + tl.arange(0, 64)[:, None] * 64 + tl.arange(0, 64)[None, :], product)
";
    let kernel = kernel(source, "*fp16:16,*fp32:16", 4);
    let number = |i: usize| (i % 5) as f32 - 2.0;
    let mut x: Vec<u16> = (0..64 * 96).map(|i| half::f16::from_f32(number(i)).to_bits()).collect();
    let mut y = vec![0f32; 64 * 64];
    run(&kernel, [1; 3], [bytes(&mut x), bytes(&mut y)], &[]);
    let sums: Vec<f32> = (0..96).map(|k| (0..64).map(|i| number(i * 96 + k)).sum()).collect();
    for (i, y) in y.iter().enumerate() {
        let want: f32 = (0..96).map(|k| number(i / 64 * 96 + k) * sums[k]).sum();
        assert_eq!(*y, want, "{i}");
    }
}

/// Functions of our own, of `OpenCL.std`, and tables in memory.
#[test]
fn functions_of_libdevice() {
    let source = "def kernel(x, y):
    at = tl.arange(0, 64)
    value = tl.load(x + at)
    tl.store(y + at, tl.extra.libdevice.j0(value))
    tl.store(y + 64 + at, tl.extra.libdevice.acos(value / 1e9))
    tl.store(y + 128 + at, tl.sin(value))
";
    let kernel = kernel(source, "*fp64:16,*fp64:16", 2);
    let mut x: Vec<f64> =
        (0..64).map(|i| f64::from(i) * f64::from(i * i) * 271.0 + 0.25 * f64::from(i)).collect();
    let mut y = vec![0f64; 3 * 64];
    run(&kernel, [1; 3], [bytes(&mut x), bytes(&mut y)], &[]);
    for (i, x) in x.iter().enumerate() {
        let near = |got: f64, want: f64| (got - want).abs() <= 4e-15 * want.abs().max(1.0);
        assert!(near(y[i], tilewright_libdevice::bessel::j0(*x)), "j0({x}) = {}", y[i]);
        assert!(near(y[64 + i], (x / 1e9).acos()), "acos({x}) = {}", y[64 + i]);
        assert!(near(y[128 + i], x.sin()), "sin({x}) = {}", y[128 + i]);
    }
    let (native, _) = native(&kernel, true);
    assert_eq!(native.usage.sub_group, 16);
}
