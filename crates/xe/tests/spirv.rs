//! SPIR-V of kernels: its validator takes it, the simulator runs it to the right results, and Intel's offline compiler makes code of it.

mod common;

use std::io::Write as _;
use std::process::{Command, Stdio};

use common::behind;
use tilewright_frontend::Options;
use tilewright_xe::Target;
use tilewright_xe::compile::{Kernel, compile};
use tilewright_xesim::{Launch, Memory, Param, Program, SimOptions};

/// A kernel in SPIR-V that the validator takes.
fn kernel(source: &str, signature: &str, num_warps: u32) -> Kernel {
    let options = Options { num_warps, ..Options::default() };
    let module = behind(source, signature, &options, None).unwrap_or_else(|e| panic!("{e}"));
    let target = Target::parse("xe:pvc").expect("is one");
    let kernel = compile(&module, target, &options)
        .unwrap_or_else(|e| panic!("{e}\n{}", tilewright_ir::print(&module)));
    if let Some(folder) = std::env::var_os("XE_TEST_OUT") {
        let name = source.lines().next().unwrap_or_default().len();
        std::fs::write(std::path::Path::new(&folder).join(format!("k{name}.spv")), &kernel.spirv).unwrap();
    }
    let mut tool = Command::new("spirv-val")
        .args(["--target-env", "opencl2.2", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("spirv-val of the package spirv-tools");
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
    let report =
        program.launch(&launch, &memory, &SimOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    assert!(report.findings.is_empty(), "{}", report.findings[0]);
}

const ADD: &str = "def kernel(x, y, z, n):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(z + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)
";

#[test]
fn vectors_are_added() {
    let kernel = kernel(&ADD.replace("BLOCK", "256"), "*fp32,*fp32,*fp32,i32", 4);
    let mut x: Vec<f32> = (0..1000).map(|i| i as f32).collect();
    let mut y: Vec<f32> = (0..1000).map(|i| 0.5 * i as f32).collect();
    let mut z = vec![0f32; 1000];
    run(&kernel, [4, 1, 1], [bytes(&mut x), bytes(&mut y), bytes(&mut z)], &[1000]);
    assert!(z.iter().enumerate().all(|(i, &z)| z == 1.5 * i as f32));
}
