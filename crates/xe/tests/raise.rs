//! `raise-to-descriptors`: what it makes of kernels computes what they do, to the last bit, and which of their accesses it raises.
//!
//! Each kernel runs on the CPU executor as the front end gives it, and behind the pass. Memory is compared as a whole: in front of and
//! behind what a kernel should touch, too.

mod common;

use common::built;
use half::f16;
use tilewright_frontend::Options;
use tilewright_interp::{Arg, Executable, Memory, RunOptions};
use tilewright_ir::dialect::tt;
use tilewright_ir::{Module, Opcode};
use tilewright_passes::transform::{lower_descriptors, raise_to_descriptors};
use tilewright_passes::{lower_to_ttg, remarks};
use tilewright_xe::Target;

/// What a kernel is given.
#[derive(Clone, Copy)]
enum Given {
    /// Matrices in fp16: so many elements, and the pointer leads to the one of this number.
    Half(usize, usize),
    /// In fp32.
    Single(usize, usize),
    Number(i64),
}
use Given::{Half, Number, Single};

/// Runs a kernel, and gives what the memory of its arguments is then.
fn run(mut module: Module, grid: [u32; 3], given: &[Given]) -> Vec<Vec<u8>> {
    lower_descriptors::run(&mut module, None).unwrap_or_else(|e| panic!("{e}"));
    let text = tilewright_ir::print(&module);
    let executable = Executable::compile(&module, "kernel").unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut memory = Memory::new();
    let number = |i: usize| ((i * 37 + i / 7) % 11) as f32 * 0.25 - 1.25;
    let mut buffers: Vec<Vec<u8>> = given
        .iter()
        .map(|given| match *given {
            Half(n, _) => (0..n).flat_map(|i| f16::from_f32(number(i)).to_le_bytes()).collect(),
            Single(n, _) => (0..n).flat_map(|i| number(i).to_le_bytes()).collect(),
            Number(_) => Vec::new(),
        })
        .collect();
    let mut values = Vec::new();
    for (i, (given, buffer)) in given.iter().zip(&mut buffers).enumerate() {
        let base = buffer.as_mut_ptr() as u64;
        // SAFETY: the buffers outlive the run, which alone uses them.
        unsafe { memory.register(base, buffer.len() as u64, format!("arg{i}"), true) };
        values.push(match *given {
            Half(_, at) => Arg::Pointer(base + 2 * at as u64),
            Single(_, at) => Arg::Pointer(base + 4 * at as u64),
            Number(n) => Arg::Int(n),
        });
    }
    let done = executable.run(grid, &values, &memory, &RunOptions::default());
    done.unwrap_or_else(|e| panic!("{e}\n{text}"));
    buffers
}

/// How many blocks are accessed by descriptors, and how many lane by lane.
fn accesses(m: &Module) -> [usize; 2] {
    let mut found = [0, 0];
    for op in m.all_ops(m.root()) {
        use tt::Kind as K;
        let tensor = |v| m.shape(m.value_type(v)).is_some_and(|shape| shape.len() == 2);
        match m.opcode(op) {
            Some(Opcode::Tt(K::DescriptorLoad | K::DescriptorStore)) => found[0] += 1,
            Some(Opcode::Tt(K::Load | K::Store)) if tensor(m.operands(op)[0]) => found[1] += 1,
            _ => {}
        }
    }
    found
}

/// A kernel behind the pass, which leaves so many accesses of either kind.
fn raised(source: &str, signature: &str, expected: [usize; 2]) -> Module {
    let mut module = built(source, signature, 4);
    let target = Target::parse("xe:pvc").expect("is one").info();
    raise_to_descriptors::run(&mut module, &target, &Options { num_warps: 4, ..Options::default() })
        .unwrap_or_else(|e| panic!("{e}"));
    let found = accesses(&module);
    assert_eq!(found, expected, "{:#?}\n{}", remarks::of(&module), tilewright_ir::print(&module));
    assert_eq!(remarks::of(&module).is_empty(), expected[1] == 0, "{:#?}", remarks::of(&module));
    module
}

/// Compares a kernel with what the pass makes of it, for each list of arguments, and takes it through the passes behind.
fn same(source: &str, signature: &str, expected: [usize; 2], launches: &[([u32; 3], Vec<Given>)]) {
    let module = raised(source, signature, expected);
    for (grid, given) in launches {
        let before = run(built(source, signature, 4), *grid, given);
        let after = run(
            tilewright_ir::parse(&tilewright_ir::print(&module), "raised").expect("parses"),
            *grid,
            given,
        );
        for (i, (before, after)) in before.iter().zip(&after).enumerate() {
            let at = before.iter().zip(after).position(|(a, b)| a != b);
            assert_eq!(at, None, "argument {i} differs\n{}", tilewright_ir::print(&module));
        }
    }
    let mut module = built(source, signature, 8);
    let options = Options { num_warps: 8, ..Options::default() };
    let target = Target::parse("xe:pvc").expect("is one").info();
    lower_to_ttg(&mut module, &target, &options).unwrap_or_else(|e| panic!("{e}"));
}

/// Triton's third tutorial, with block pointers.
const BLOCK_POINTERS: &str = "\
def kernel(a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
           BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, G: tl.constexpr):
    pid = tl.program_id(axis=0)
    num_pid_m = tl.cdiv(M, BM)
    num_pid_n = tl.cdiv(N, BN)
    num_pid_in_group = G * num_pid_n
    group_id = pid // num_pid_in_group
    first_pid_m = group_id * G
    group_size_m = min(num_pid_m - first_pid_m, G)
    pid_m = first_pid_m + ((pid % num_pid_in_group) % group_size_m)
    pid_n = (pid % num_pid_in_group) // group_size_m
    a = tl.make_block_ptr(a_ptr, (M, K), (stride_am, stride_ak), (pid_m * BM, 0), (BM, BK), (1, 0))
    b = tl.make_block_ptr(b_ptr, (K, N), (stride_bk, stride_bn), (0, pid_n * BN), (BK, BN), (1, 0))
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        acc += tl.dot(tl.load(a, boundary_check=(0, 1)), tl.load(b, boundary_check=(0, 1)))
        a = tl.advance(a, (0, BK))
        b = tl.advance(b, (BK, 0))
    c = tl.make_block_ptr(c_ptr, (M, N), (stride_cm, stride_cn), (pid_m * BM, pid_n * BN), (BM, BN), (1, 0))
    tl.store(c, acc.to(tl.float16), boundary_check=(0, 1))
";

const MATRICES: &str =
    "*fp16:16, *fp16:16, *fp16:16, i32:16, i32:16, i32:16, i32:16, 1, i32:16, 1, i32:16, 1, 32, 64, 32, 2";

fn product(m: usize, n: usize, k: usize, [bm, bn]: [usize; 2]) -> ([u32; 3], Vec<Given>) {
    let number = |n: usize| Number(n as i64);
    let given = vec![
        Half(m * k, 0),
        Half(k * n, 0),
        Half(m * n + 64, 0),
        number(m),
        number(n),
        number(k),
        number(k),
        number(n),
        number(n),
    ];
    ([(m.div_ceil(bm) * n.div_ceil(bn)) as u32, 1, 1], given)
}

#[test]
fn block_pointers() {
    let launches =
        [product(64, 64, 64, [32, 64]), product(80, 144, 48, [32, 64]), product(16, 16, 16, [32, 64])];
    same(BLOCK_POINTERS, MATRICES, [3, 0], &launches);
}

/// The same with tensors of pointers: `rows` and `columns` are how their indices end, `assume` what is promised.
fn tutorial(assume: &str, rows: &str, columns: &str) -> String {
    format!(
        "\
def kernel(a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
           BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, G: tl.constexpr):
    pid = tl.program_id(axis=0)
    num_pid_m = tl.cdiv(M, BM)
    num_pid_n = tl.cdiv(N, BN)
    num_pid_in_group = G * num_pid_n
    group_id = pid // num_pid_in_group
    first_pid_m = group_id * G
    group_size_m = min(num_pid_m - first_pid_m, G)
    pid_m = first_pid_m + ((pid % num_pid_in_group) % group_size_m)
    pid_n = (pid % num_pid_in_group) // group_size_m
{assume}
    offs_am = (pid_m * BM + tl.arange(0, BM)){rows}
    offs_bn = (pid_n * BN + tl.arange(0, BN)){columns}
    offs_k = tl.arange(0, BK)
    a_ptrs = a_ptr + (offs_am[:, None] * stride_am + offs_k[None, :] * stride_ak)
    b_ptrs = b_ptr + (offs_k[:, None] * stride_bk + offs_bn[None, :] * stride_bn)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k * BK, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BK, other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BK * stride_ak
        b_ptrs += BK * stride_bk
    c = acc.to(tl.float16)
    offs_cm = pid_m * BM + tl.arange(0, BM)
    offs_cn = pid_n * BN + tl.arange(0, BN)
    c_ptrs = c_ptr + stride_cm * offs_cm[:, None] + stride_cn * offs_cn[None, :]
    c_mask = (offs_cm[:, None] < M) & (offs_cn[None, :] < N)
    tl.store(c_ptrs, c, mask=c_mask)
"
    )
}

const ASSUME: &str = "    tl.assume(pid_m >= 0)\n    tl.assume(pid_n >= 0)";

#[test]
fn tensors_of_pointers() {
    let launches = [product(64, 128, 80, [32, 64]), product(32, 64, 16, [32, 64])];
    same(&tutorial(ASSUME, "", ""), MATRICES, [3, 0], &launches);
    same(&tutorial("", "", ""), MATRICES, [3, 0], &launches);
}

/// Rows that begin again from 0 are masked when they are stored: nothing depends on them.
#[test]
fn rows_by_a_remainder() {
    let launches =
        [product(64, 128, 80, [32, 64]), product(80, 144, 48, [32, 64]), product(16, 16, 16, [32, 64])];
    same(&tutorial(ASSUME, " % M", " % N"), MATRICES, [3, 0], &launches);
    // Nobody says that columns are not negative: a remainder would not keep them in the matrix.
    same(&tutorial("", " % M", " % N"), MATRICES, [3, 0], &launches);
}

/// Something depends on rows that begin again.
#[test]
fn rows_by_a_remainder_that_matter() {
    let source = |what: &str| {
        format!(
            "\
def kernel(x, out, M, stride, BM: tl.constexpr, BN: tl.constexpr):
    first = tl.program_id(0) * BM
    rows = (first + tl.arange(0, BM)) % M
    columns = tl.arange(0, BN)
    block = tl.load(x + rows[:, None] * stride + columns[None, :])
{what}
"
        )
    };
    let signature = "*fp16:16, *fp16:16, i32, i32:16, 32, 32";
    let at = |m: usize| {
        (
            [m.div_ceil(32) as u32, 1, 1],
            vec![Half(m * 32, 0), Half((m + 32) * 32, 0), Number(m as i64), Number(32)],
        )
    };
    let launches = [at(32), at(40), at(7)];
    let all = "    tl.store(out + (first + tl.arange(0, BM))[:, None] * stride + columns[None, :], block)";
    same(&source(all), signature, [1, 1], &launches);
    let other = "    tl.store(out + (first + tl.arange(0, BM))[:, None] * stride + columns[None, :], block,
             mask=(first + tl.arange(0, BM) < M + 1)[:, None])";
    same(&source(other), signature, [1, 1], &launches);
    let sums = "    tl.store(out + columns, tl.sum(block, axis=0))";
    raised(&source(sums), signature, [0, 1]);
    let own = "    tl.store(out + (first + tl.arange(0, BM))[:, None] * stride + columns[None, :], block + 1,
             mask=(first + tl.arange(0, BM) < M)[:, None])";
    same(&source(own), signature, [2, 0], &launches);
}

/// Whole blocks, and no mask at all.
#[test]
fn without_masks() {
    let source = "\
def kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    a_at = a + rows[:, None] * K + depth[None, :]
    b_at = b + depth[:, None] * N + columns[None, :]
    accumulator = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        accumulator = tl.dot(tl.load(a_at), tl.load(b_at), accumulator)
        a_at += BK
        b_at += BK * N
    tl.store(c + rows[:, None] * N + columns[None, :], accumulator)
";
    let signature = "*fp16:16, *fp16:16, *fp32:16, i32:16, i32:16, i32:16, 32, 64, 16";
    let given =
        vec![Half(64 * 96, 0), Half(96 * 128, 0), Single(64 * 128, 0), Number(64), Number(128), Number(96)];
    same(source, signature, [3, 0], &[([2, 2, 1], given)]);
}

/// Attention by block pointers: keys are loaded turned.
const ATTENTION: &str = "\
def kernel(q, k, v, o, stride_h, stride_n, N, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr):
    start_m = tl.program_id(0)
    at = tl.program_id(1).to(tl.int64) * stride_h
    q_block = tl.make_block_ptr(q + at, (N, D), (stride_n, 1), (start_m * BM, 0), (BM, D), (1, 0))
    k_block = tl.make_block_ptr(k + at, (D, N), (1, stride_n), (0, 0), (D, BN), (0, 1))
    v_block = tl.make_block_ptr(v + at, (N, D), (stride_n, 1), (0, 0), (BN, D), (1, 0))
    o_block = tl.make_block_ptr(o + at, (N, D), (stride_n, 1), (start_m * BM, 0), (BM, D), (1, 0))
    rows = start_m * BM + tl.arange(0, BM)
    m = tl.full((BM,), float('-inf'), tl.float32)
    l = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    query = tl.load(q_block)
    end = N
    if CAUSAL:
        end = (start_m + 1) * BM
    for start in range(0, end, BN):
        qk = tl.dot(query, tl.load(k_block)) * scale
        if CAUSAL:
            qk = tl.where(rows[:, None] >= (start + tl.arange(0, BN))[None, :], qk, -1.0e6)
        m_new = tl.maximum(m, tl.max(qk, axis=1))
        p = tl.exp2(qk - m_new[:, None])
        alpha = tl.exp2(m - m_new)
        l = l * alpha + tl.sum(p, axis=1)
        acc = tl.dot(p.to(tl.float16), tl.load(v_block), acc * alpha[:, None])
        m = m_new
        k_block = tl.advance(k_block, (0, BN))
        v_block = tl.advance(v_block, (BN, 0))
    tl.store(o_block, (acc / l[:, None]).to(tl.float16))
";

#[test]
fn attention() {
    let (n, d) = (256, 64);
    let given = || {
        let mut given = vec![Half(2 * n * d, 0); 4];
        given.extend([Number((n * d) as i64), Number(d as i64), Number(n as i64)]);
        given
    };
    for causal in ["True", "False"] {
        let signature = format!(
            "*fp16:16, *fp16:16, *fp16:16, *fp16:16, i32:16, i32:16, i32:16, 0.5, 64, 128, 64, {causal}"
        );
        same(ATTENTION, &signature, [4, 0], &[([2, 2, 1], given())]);
    }
}

/// Indices that are negative lead in front of a pointer into the middle of memory: there they are loaded from, and stored to.
#[test]
fn in_front_of_the_pointer() {
    let source = "\
def kernel(x, out, from_row, from_column, M, N, stride, BM: tl.constexpr, BN: tl.constexpr):
    rows = from_row + tl.arange(0, BM)
    columns = from_column + tl.arange(0, BN)
    at = rows[:, None] * stride + columns[None, :]
    mask = (rows < M)[:, None] & (columns < N)[None, :]
    tl.store(out + at, tl.load(x + at, mask=mask, other=0.0) * 2, mask=mask)
";
    let signature = "*fp16:16, *fp16:16, i32, i32:16, i32, i32:16, i32:16, 32, 32";
    let at = |row: i64, column: i64, m: i64, n: i64| {
        let given = vec![
            Half(160 * 64, 80 * 64),
            Half(160 * 64, 80 * 64),
            Number(row),
            Number(column),
            Number(m),
            Number(n),
            Number(64),
        ];
        ([1, 1, 1], given)
    };
    let launches = [
        at(0, 0, 40, 48),
        at(3, 16, 20, 32),
        at(-40, 0, 10, 64),
        at(-10, -16, 5, 0),
        at(5, -32, 5, 16),
        at(0, 0, 0, 0),
        at(0, 0, -3, 16),
        at(-20, 16, -5, 32),
    ];
    same(source, signature, [2, 0], &launches);
}

/// What is loaded outside is 0 in a descriptor; what is asked for is not.
#[test]
fn what_stays() {
    let source = |load: &str| {
        format!(
            "\
def kernel(x, out, n, stride, other, BM: tl.constexpr, BN: tl.constexpr):
    r = tl.arange(0, BM)[:, None]
    c = tl.arange(0, BN)[None, :]
    block = {load}
    tl.store(out + r * stride + c, block)
"
        )
    };
    let signature = "*fp16:16, *fp16:16, i32:16, i32:16, i32, 32, 32";
    let why = |load: &str, reason: &str| {
        let module = raised(&source(load), signature, [1, 1]);
        let remarks = remarks::of(&module);
        assert!(remarks[0].contains(reason), "{remarks:#?}");
        assert!(remarks[0].starts_with("kernel.py:8:"), "{remarks:#?}");
    };
    why("tl.load(x + r * stride + c, mask=r < n, other=1.0)", "what its mask leaves out is not 0");
    why("tl.load(x + r * stride + c, mask=r < n, other=-0.0 * 0 + 2)", "not 0");
    why("tl.load(x + r * stride + c * other)", "stride 1");
    why("tl.load(x + r * other + c)", "multiples of 16 bytes");
    why("tl.load(x + r * stride + c + 1)", "not known to begin");
    why("tl.load(x + (r ^ 1) * stride + c)", "arith.xori");
    why("tl.load(x + r * stride + c, mask=r + c < n, other=0.0)", "arith.cmpi");
    why("tl.load(x + r * stride + c, mask=c < other, other=0.0)", "multiples of 4 bytes");
    why("tl.load(x + r * stride + c, mask=(r < n) | (c < n), other=0.0)", "arith.ori");
    why("tl.load(x + r * stride + c, volatile=True)", "how memory is accessed");
    why("tl.load(x + r * 16 + c)", "less than 64 bytes");
}

/// Offsets of 64 bits: a place that does not fit in 32 is behind the end.
#[test]
fn wide_offsets() {
    let source = "\
def kernel(x, out, first, M, stride, BM: tl.constexpr, BN: tl.constexpr):
    rows = (first + tl.program_id(0)).to(tl.int64) * BM + tl.arange(0, BM)
    columns = tl.arange(0, BN)
    at = rows[:, None] * stride + columns[None, :]
    mask = (rows < M)[:, None]
    tl.store(out + at, tl.load(x + at, mask=mask, other=0.0) * 2, mask=mask)
";
    let signature = "*fp16:16, *fp16:16, i32, i32, i32:16, 32, 32";
    let at = |first: i64| {
        let given = vec![Half(64 * 32, 0), Half(64 * 32, 0), Number(first), Number(50), Number(32)];
        ([2, 1, 1], given)
    };
    // 2^27 blocks of 32 rows are 2^32 rows.
    let launches = [at(0), at(1), at(1 << 27), at((1 << 27) + 1), at(1 << 26)];
    same(source, signature, [2, 0], &launches);
}

/// Numbers that look random, by a seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn one<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len() as u64) as usize]
    }
}

/// A kernel that loads and stores blocks somehow, often so that it can be raised.
fn some_kernel(chance: &mut Chance) -> String {
    let first = [
        "0",
        "tl.program_id(0) * 32",
        "u",
        "u + tl.program_id(0) * 16",
        "tl.program_id(1).to(tl.int64) * 32",
        "tl.maximum(u, 0)",
    ];
    let (row, column) = (
        chance.one(&first),
        chance.one(&["0", "v", "tl.program_id(0) * 32", "tl.program_id(1).to(tl.int64) * 16"]),
    );
    let bound = |chance: &mut Chance, index: &str, end: &str| {
        let low = format!("({index} >= 0) & ({index} < {end})");
        let forms = [
            format!("{index} < {end}"),
            format!("{index} <= {end} - 2"),
            format!("{end} > {index}"),
            low,
            format!("{index} + 0 < tl.minimum({end}, 40)"),
        ];
        forms[chance.below(forms.len() as u64) as usize].clone()
    };
    let turned = chance.below(4) == 0;
    let (r, c) = if turned { ("[None, :]", "[:, None]") } else { ("[:, None]", "[None, :]") };
    let masks = chance.below(4);
    let (by_row, by_column) = (bound(chance, "rows", "M"), bound(chance, "columns", "N"));
    let mask = match masks {
        0 => String::new(),
        1 => format!(", mask=({by_row}){r}"),
        2 => format!(", mask=({by_column}){c}"),
        _ => format!(", mask=({by_row}){r} & ({by_column}){c}"),
    };
    let other = if masks > 0 { ", other=0.0" } else { "" };
    let count =
        chance.one(&["range(0, 3)", "range(1, T)", "range(T, 7, 2)", "range(0, T * 32, 32)", "range(u, 5)"]);
    let (step, moved) = match chance.below(5) {
        0 => ("32", "columns"),
        1 => ("16 * stride", "rows"),
        2 => ("8", "columns"),
        3 => ("16 * stride + 8", "rows"),
        _ => ("0", "rows"),
    };
    let again =
        format!("p = x + (rows{r} * stride + columns{c})\n        q = out + (rows{r} * stride + columns{c})");
    let (begin, walk) = match chance.below(3) {
        0 => (String::new(), format!("p += {step}\n        q += {step}")),
        1 => (again, format!("{moved} += 16")),
        _ => (String::new(), String::new()),
    };
    format!(
        "\
def kernel(x, out, u, v, M, N, stride, T):
    rows = {row} + tl.arange(0, 16)
    columns = {column} + tl.arange(0, 32)
    p = x + (rows{r} * stride + columns{c})
    q = out + stride * rows{r} + columns{c}
    for i in {count}:
        {begin}
        block = tl.load(p{mask}{other})
        tl.store(q, block + 1{mask})
        {walk}
"
    )
}

#[test]
fn random_kernels() {
    let signature = "*fp16:16, *fp16:16, i32:16, i32:16, i32:16, i32:16, i32:16, i32";
    let target = Target::parse("xe:pvc").expect("is one").info();
    let (mut of_blocks, mut others) = (0, 0);
    for seed in 0..300 {
        let mut chance = Chance(seed);
        let source = some_kernel(&mut chance);
        let mut module = built(&source, signature, 4);
        raise_to_descriptors::run(&mut module, &target, &Options { num_warps: 4, ..Options::default() })
            .unwrap_or_else(|e| panic!("{e}\n{source}"));
        let [blocks, gathered] = accesses(&module);
        (of_blocks, others) = (of_blocks + blocks, others + gathered);
        let text = tilewright_ir::print(&module);
        for _ in 0..2 {
            let number = |chance: &mut Chance, low: i64, n: u64| Number(low + 16 * chance.below(n) as i64);
            let middle = 1200 * 128 + 256;
            let mut given = vec![Half(2 * middle, middle), Half(2 * middle, middle)];
            given.extend([number(&mut chance, -48, 6), number(&mut chance, -32, 5)]);
            given.extend([number(&mut chance, -16, 6), number(&mut chance, -16, 6), Number(128)]);
            given.push(Number(chance.below(5) as i64));
            let before = run(built(&source, signature, 4), [2, 2, 1], &given);
            let after = run(tilewright_ir::parse(&text, "raised").expect("parses"), [2, 2, 1], &given);
            assert!(before == after, "seed {seed}\n{source}\n{text}");
        }
    }
    assert!(of_blocks > others, "{of_blocks} of {}", of_blocks + others);
    println!("{of_blocks} of {} accesses are raised", of_blocks + others);
}
