//! Kernels with `tle.dsa`, compiled for `ascend:910b`: what the simulator makes of the text agrees with the CPU executor, bit for bit, and every flag in it is needed.

use tilewright_frontend::{Options, Signature, SourceHost, build_module_for};
use tilewright_interp::{Executable, Memory, RunOptions};
use tilewright_ir::Module;
use tilewright_npusim::{Arg, Launch, Report, run};
use tilewright_passes::analysis::local_memory;
use tilewright_passes::transform::{inline_calls, lower_copies, lower_descriptors};

const HEAD: &str = "import tilewright\nimport tilewright.language as tl\nimport tilewright.tle as tle\n\nUB = tle.dsa.ascend.UB\n\n\
    @tilewright.jit\n";

/// A kernel with what it is given: arrays of 32-bit floats, then integers.
struct Case {
    source: &'static str,
    signature: &'static str,
    grid: [u32; 3],
    arrays: Vec<Vec<f32>>,
    numbers: Vec<i64>,
}

/// A kernel as `tt`.
fn module(case: &Case) -> Module {
    let source = format!("{HEAD}{}", case.source);
    let host = SourceHost::new("kernel.py", &source).unwrap_or_else(|e| panic!("{e}"));
    let entry = host.function("kernel").unwrap_or_else(|e| panic!("{e}"));
    let signature = Signature::parse(case.signature).unwrap_or_else(|e| panic!("{e}"));
    let options = Options::default();
    let built = build_module_for(&host, &entry, &signature, &options, Some("ascend:910b"));
    let mut module = built.unwrap_or_else(|e| panic!("{e}")).module;
    tilewright_ir::pass::optimize(&mut module).unwrap_or_else(|e| panic!("{e}"));
    inline_calls::run(&mut module, 1).unwrap_or_else(|e| panic!("{e}"));
    local_memory::check(&module).unwrap_or_else(|e| panic!("{e}"));
    lower_descriptors::run(&mut module, None).unwrap_or_else(|e| panic!("{e}"));
    module
}

/// The text for Ascend, and the report that comes with it.
fn compiled(case: &Case) -> (String, String) {
    let mut module = module(case);
    let report = tilewright_ascend::lower::run(&mut module).unwrap_or_else(|e| panic!("{e}"));
    let text = tilewright_ir::print(&module);
    if let Err(e) = tilewright_ir::verify(&module) {
        panic!("{e:?}\n{text}");
    }
    (text, report)
}

/// What the arrays hold behind the executor.
fn executed(case: &Case) -> Vec<Vec<f32>> {
    let mut module = module(case);
    lower_copies::run(&mut module).unwrap_or_else(|e| panic!("{e}"));
    let executable = Executable::compile(&module, "kernel").unwrap_or_else(|e| panic!("{e}"));
    let mut arrays = case.arrays.clone();
    let mut memory = Memory::new();
    let mut args = Vec::new();
    for (i, array) in arrays.iter_mut().enumerate() {
        let base = array.as_mut_ptr() as u64;
        // SAFETY: the arrays outlive the run, which alone uses them.
        unsafe { memory.register(base, array.len() as u64 * 4, format!("arg{i}"), true) };
        args.push(tilewright_interp::Arg::Pointer(base));
    }
    args.extend(case.numbers.iter().map(|&n| tilewright_interp::Arg::Int(n)));
    executable.run(case.grid, &args, &memory, &RunOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    arrays
}

/// What the arrays hold behind the simulator.
fn simulated(text: &str, case: &Case) -> Result<(Vec<Vec<f32>>, Report), String> {
    let mut module = tilewright_ir::parse(text, "kernel.hivm").unwrap_or_else(|e| panic!("{e}\n{text}"));
    let bytes = |array: &Vec<f32>| array.iter().flat_map(|x| x.to_le_bytes()).collect();
    let pointers = (0..case.arrays.len()).map(|i| Arg::Pointer(i, 0));
    let args = pointers.chain(case.numbers.iter().map(|&n| Arg::Int(n))).collect();
    let mut launch = Launch { memory: case.arrays.iter().map(bytes).collect(), args, grid: case.grid };
    let report = run(&mut module, "kernel", &mut launch).map_err(|e| e.to_string())?;
    let floats = |bytes: &Vec<u8>| {
        bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect::<Vec<f32>>()
    };
    Ok((launch.memory.iter().map(floats).collect(), report))
}

/// Checks that both agree, and that without any one line with a flag or a barrier something is reported.
fn check(case: &Case) -> (String, String, Report) {
    let (text, made) = compiled(case);
    let (found, report) = simulated(&text, case).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(found, executed(case), "{text}");
    let orders = |line: &str| ["set_flag", "wait_flag", "pipe_barrier"].iter().any(|o| line.contains(o));
    for (i, line) in text.lines().enumerate().filter(|(_, line)| orders(line)) {
        let without: Vec<&str> = text.lines().enumerate().filter(|(j, _)| *j != i).map(|(_, l)| l).collect();
        let error = simulated(&without.join("\n"), case).err();
        assert!(error.is_some(), "without `{}` nothing is reported:\n{text}", line.trim());
    }
    (text, made, report)
}

fn numbers(n: usize, seed: u32) -> Vec<f32> {
    (0..n as u32)
        .map(|i| ((i.wrapping_mul(2654435761).wrapping_add(seed * 7919) >> 20) % 17) as f32 - 8.0)
        .collect()
}

#[test]
fn addition_with_a_tail() {
    let case = Case {
        source: "
def kernel(x, y, out, n, BLOCK: tl.constexpr):
    first = tl.program_id(0) * BLOCK
    at = first + tl.arange(0, BLOCK)
    tail = tl.minimum(n - first, BLOCK)
    a = tle.dsa.alloc([BLOCK], tl.float32, UB)
    b = tle.dsa.alloc([BLOCK], tl.float32, UB)
    tle.dsa.copy(x + at, a, [tail])
    tle.dsa.copy(y + at, b, [tail])
    tle.dsa.add(a, b, a)
    tle.dsa.copy(a, out + at, [tail])
"
        .trim_start(),
        signature: "*fp32, *fp32, *fp32, i32, 64",
        grid: [4, 1, 1],
        arrays: vec![numbers(200, 1), numbers(200, 2), vec![0.0; 200]],
        numbers: vec![200],
    };
    let (text, report, _) = check(&case);
    for part in ["hivm.hir.load", "hivm.hir.vadd", "hivm.hir.store", "#hivm.address_space<ub>", "hacc.entry"]
    {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(report.contains("UB: 512 of 196608 bytes"), "{report}");
    assert!(report.contains("PIPE_MTE2 before PIPE_V: load"), "{report}");
}

#[test]
fn a_pipelined_loop_overlaps() {
    let case = Case {
        source: "
def kernel(x, y, out, n, BLOCK: tl.constexpr):
    with tle.dsa.hint(inter_no_alias=True):
        for first in tle.dsa.pipeline(0, n, BLOCK):
            at = first + tl.arange(0, BLOCK)
            tail = tl.minimum(n - first, BLOCK)
            a = tle.dsa.alloc([BLOCK], tl.float32, UB)
            b = tle.dsa.alloc([BLOCK], tl.float32, UB)
            tle.dsa.copy(x + at, a, [tail])
            tle.dsa.copy(y + at, b, [tail])
            tle.dsa.sub(a, b, a)
            tle.dsa.mul(a, b, a)
            tle.dsa.copy(a, out + at, [tail])
"
        .trim_start(),
        signature: "*fp32, *fp32, *fp32, i32, 256",
        grid: [1, 1, 1],
        arrays: vec![numbers(2000, 1), numbers(2000, 2), vec![0.0; 2000]],
        numbers: vec![2000],
    };
    let (text, report, run) = check(&case);
    assert!(report.contains("2 of 1024 bytes"), "{report}");
    let busy: u64 = run.pipes.iter().map(|p| p.2).sum();
    assert!(run.time * 3 < busy * 2, "{run:?}\n{text}");
}

#[test]
fn the_same_global_memory_is_waited_for() {
    let source = "
def kernel(x, n, BLOCK: tl.constexpr):
    for i in tle.dsa.pipeline(0, n):
        at = tl.arange(0, BLOCK)
        a = tle.dsa.alloc([BLOCK], tl.float32, UB)
        tle.dsa.copy(x + at, a, [BLOCK], inter_no_alias=PROMISE)
        tle.dsa.add(a, a, a)
        tle.dsa.copy(a, x + at, [BLOCK], inter_no_alias=PROMISE)
";
    let case = |source| Case {
        source,
        signature: "*fp32, i32, 64",
        grid: [1, 1, 1],
        arrays: vec![numbers(64, 3)],
        numbers: vec![4],
    };
    let honest = source.replace("PROMISE", "False").trim_start().to_string();
    check(&case(honest.leak()));
    let broken = source.replace("PROMISE", "True").trim_start().to_string();
    let case = case(broken.leak());
    let error = simulated(&compiled(&case).0, &case).expect_err("the promise is broken");
    assert!(
        error.contains("inter_no_alias promises that they touch different memory, and they don't"),
        "{error}"
    );
}

#[test]
fn softmax_of_rows() {
    let case = Case {
        source: "
def kernel(x, out, M: tl.constexpr, N: tl.constexpr):
    at = (tl.program_id(0) * M + tl.arange(0, M)[:, None]) * N + tl.arange(0, N)[None, :]
    held = tle.dsa.alloc([M, N], tl.float32, UB)
    tle.dsa.copy(x + at, held, [M, N])
    row = tle.dsa.to_tensor(held)
    row = row - tl.max(row, 1)[:, None]
    row = tl.where(row > -6.0, row, -6.0)
    total = tl.sum(row, 1)
    result = tle.dsa.to_buffer(row * 2.0 + total[:, None], UB)
    tle.dsa.copy(result, out + at, [M, N])
"
        .trim_start(),
        signature: "*fp32, *fp32, 4, 32",
        grid: [2, 1, 1],
        arrays: vec![numbers(256, 1), vec![0.0; 256]],
        numbers: vec![],
    };
    check(&case);
}

#[test]
fn a_product_through_the_memories_of_a_cube_core() {
    let case = Case {
        source: "
def kernel(a_ptr, b_ptr, c_ptr, K, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):
    total = tl.zeros((M, N), tl.float32)
    m, n = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    for k in tle.dsa.pipeline(0, K, BK):
        a_l1 = tle.dsa.alloc([M, BK], tl.float32, tle.dsa.ascend.L1)
        b_l1 = tle.dsa.alloc([BK, N], tl.float32, tle.dsa.ascend.L1)
        tle.dsa.copy(a_ptr + m * K + k + tl.arange(0, BK)[None, :], a_l1, [M, BK])
        tle.dsa.copy(b_ptr + (k + tl.arange(0, BK)[:, None]) * N + n, b_l1, [BK, N])
        a = tle.dsa.alloc([M, BK], tl.float32, tle.dsa.ascend.L0A)
        b = tle.dsa.alloc([BK, N], tl.float32, tle.dsa.ascend.L0B)
        tle.dsa.copy(a_l1, a, [M, BK])
        tle.dsa.copy(b_l1, b, [BK, N])
        total = tl.dot(tle.dsa.to_tensor(a), tle.dsa.to_tensor(b), total, input_precision='ieee')
    c = tle.dsa.to_buffer(total, tle.dsa.ascend.L0C)
    tle.dsa.copy(c, c_ptr + m * N + n, [M, N])
"
        .trim_start(),
        signature: "*fp32, *fp32, *fp32, i32, 16, 32, 16",
        grid: [1, 1, 1],
        arrays: vec![numbers(16 * 64, 1), numbers(64 * 32, 2), vec![0.0; 16 * 32]],
        numbers: vec![64],
    };
    let (text, _, run) = check(&case);
    assert!(text.contains("hivm.hir.mmadL1") && text.contains("#hivm.func_core_type<AIC>"), "{text}");
    let busy: u64 = run.pipes.iter().map(|p| p.2).sum();
    assert!(run.time < busy, "{run:?}\n{text}");
}
