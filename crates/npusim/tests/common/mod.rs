//! What the tests share: kernels from source, run by the executor and by the simulator.

#![allow(dead_code)] // each test uses some of it

use tilewright_frontend::{Options, Signature, SourceHost, build_module_for};
use tilewright_interp::{Executable, Memory, RunOptions};
use tilewright_ir::Module;
use tilewright_npusim::{Arg, Launch, Report, run};
use tilewright_passes::analysis::local_memory;
use tilewright_passes::transform::{inline_calls, lower_copies, lower_descriptors};

const HEAD: &str = "import tilewright\nimport tilewright.language as tl\nimport tilewright.tle as tle\n\nUB = tle.dsa.ascend.UB\n\n\
    @tilewright.jit\n";

/// A kernel with what it is given: arrays of 32-bit floats, then integers.
pub struct Case {
    pub source: String,
    pub signature: String,
    pub grid: [u32; 3],
    pub arrays: Vec<Vec<f32>>,
    pub numbers: Vec<i64>,
}

/// A kernel as `tt`.
pub fn module(case: &Case) -> Module {
    let source = format!("{HEAD}{}", case.source);
    let host = SourceHost::new("kernel.py", &source).unwrap_or_else(|e| panic!("{e}"));
    let entry = host.function("kernel").unwrap_or_else(|e| panic!("{e}"));
    let signature = Signature::parse(&case.signature).unwrap_or_else(|e| panic!("{e}"));
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
pub fn compiled(case: &Case) -> (String, String) {
    let mut module = module(case);
    let report = tilewright_ascend::lower::run(&mut module).unwrap_or_else(|e| panic!("{e}"));
    let text = tilewright_ir::print(&module);
    if let Err(e) = tilewright_ir::verify(&module) {
        panic!("{e:?}\n{text}");
    }
    (text, report)
}

/// What the arrays hold behind the executor.
pub fn executed(case: &Case) -> Vec<Vec<f32>> {
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
pub fn simulated(text: &str, case: &Case) -> Result<(Vec<Vec<f32>>, Report), String> {
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
pub fn check(case: &Case) -> (String, String, Report) {
    checked(case, 0.0, true)
}

/// Checks that both agree where elements may be so far apart, and that every flag is needed. (Some barriers are for loops without any iteration.)
pub fn check_within(case: &Case, apart: f32) -> (String, String, Report) {
    checked(case, apart, false)
}

fn checked(case: &Case, apart: f32, barriers: bool) -> (String, String, Report) {
    let (text, made) = compiled(case);
    let (found, report) = simulated(&text, case).unwrap_or_else(|e| panic!("{e}\n{text}"));
    for (i, (found, expected)) in found.iter().zip(executed(case)).enumerate() {
        let differs =
            |(x, y): (&f32, &f32)| !(x == y || (x - y).abs() <= apart || (x.is_nan() && y.is_nan()));
        let at = found.iter().zip(&expected).position(differs);
        assert!(at.is_none(), "array {i} at {at:?}:\n{found:?}\n{expected:?}\n{text}");
    }
    // Where events run out, a barrier of all queues takes their place, and may do what another barrier does, too.
    let few = barriers && !text.contains("<PIPE_ALL>");
    let orders = |line: &str| {
        line.contains("_flag[") || line.contains("sync_block_") || (few && line.contains("pipe_barrier["))
    };
    // (What a branch holds that is not taken is not missed.)
    let mut branch: Option<&str> = None;
    for (i, line) in text.lines().enumerate() {
        let indent = &line[..line.len() - line.trim_start().len()];
        match branch {
            None if line.contains("scf.if ") => branch = Some(indent),
            Some(around) if around == indent => branch = None,
            _ => {}
        }
        if branch.is_some() || !orders(line) {
            continue;
        }
        let without: Vec<&str> = text.lines().enumerate().filter(|(j, _)| *j != i).map(|(_, l)| l).collect();
        let error = simulated(&without.join("\n"), case).err();
        assert!(error.is_some(), "without `{}` nothing is reported:\n{text}", line.trim());
    }
    (text, made, report)
}

pub fn numbers(n: usize, seed: u32) -> Vec<f32> {
    (0..n as u32)
        .map(|i| ((i.wrapping_mul(2654435761).wrapping_add(seed.wrapping_mul(7919)) >> 20) % 17) as f32 - 8.0)
        .collect()
}
