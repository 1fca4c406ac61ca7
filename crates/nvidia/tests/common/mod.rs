//! Runs `ttg` IR through the code generator and the PTX simulator.
#![allow(dead_code)] // each test file uses its part

use tilewright_nvidia::{CodegenOptions, Kernel, Target, compile};
pub use tilewright_ptxsim as sim;
pub use tilewright_ptxsim::Param;

/// The target's facts, without warp-group products and tensor copies: a test turns on what it is about.
pub fn plain(target: &str) -> tilewright_passes::TargetInfo {
    let mut info = tilewright_nvidia::Target::parse(target).unwrap_or_else(|e| panic!("{e}")).info();
    (info.dots.wgmma, info.tma) = (false, false);
    info
}

/// A buffer that the kernel reads or writes.
pub struct Buffer {
    pub bytes: Vec<u8>,
}

impl Buffer {
    pub fn f32(values: &[f32]) -> Buffer {
        Buffer { bytes: values.iter().flat_map(|v| v.to_le_bytes()).collect() }
    }
    pub fn i32(values: &[i32]) -> Buffer {
        Buffer { bytes: values.iter().flat_map(|v| v.to_le_bytes()).collect() }
    }
    pub fn f16(values: &[f32]) -> Buffer {
        Buffer { bytes: values.iter().flat_map(|&v| half::f16::from_f32(v).to_le_bytes()).collect() }
    }
    pub fn f64(values: &[f64]) -> Buffer {
        Buffer { bytes: values.iter().flat_map(|v| v.to_le_bytes()).collect() }
    }
    pub fn zeros(bytes: usize) -> Buffer {
        Buffer { bytes: vec![0; bytes] }
    }
    pub fn to_f32(&self) -> Vec<f32> {
        self.bytes.chunks_exact(4).map(|c| f32::from_le_bytes(c.try_into().unwrap())).collect()
    }
    pub fn to_f16(&self) -> Vec<f32> {
        let halves = self.bytes.chunks_exact(2).map(|c| half::f16::from_le_bytes(c.try_into().unwrap()));
        halves.map(half::f16::to_f32).collect()
    }
    pub fn to_i32(&self) -> Vec<i32> {
        self.bytes.chunks_exact(4).map(|c| i32::from_le_bytes(c.try_into().unwrap())).collect()
    }
    pub fn to_f64(&self) -> Vec<f64> {
        self.bytes.chunks_exact(8).map(|c| f64::from_le_bytes(c.try_into().unwrap())).collect()
    }
}

pub enum Arg<'a> {
    Buffer(&'a mut Buffer),
    I32(i32),
    /// The address of what another argument has, too.
    Address(u64),
    /// A tensor map of a buffer; its address is filled in.
    Map(&'a mut Buffer, sim::TensorMap),
}

pub fn to_ptx(ir: &str, target: &str) -> Kernel {
    let module = tilewright_ir::text::parse(ir, "test.mlir").unwrap_or_else(|e| panic!("{e}"));
    generate(&module, target)
}

pub fn generate(module: &tilewright_ir::Module, target: &str) -> Kernel {
    let mut options = CodegenOptions::new(Target::parse(target).unwrap());
    options.verify = true;
    compile(module, &options).unwrap_or_else(|e| panic!("{e}"))
}

/// Compiles and runs; every finding of the simulator fails the test.
pub fn run(ir: &str, target: &str, grid: u32, args: &mut [Arg]) -> Kernel {
    let (kernel, report) = run_report(ir, target, grid, args);
    assert!(report.findings.is_empty(), "{:#?}\n{}", report.findings, kernel.ptx);
    kernel
}

/// Compiles and runs; gives what the simulator found.
pub fn run_report(ir: &str, target: &str, grid: u32, args: &mut [Arg]) -> (Kernel, sim::Report) {
    let kernel = to_ptx(ir, target);
    let report = simulate(&kernel, grid, args);
    (kernel, report)
}

/// Runs a kernel.
pub fn simulate(kernel: &Kernel, grid: u32, args: &mut [Arg]) -> sim::Report {
    simulate_with(kernel, grid, args, &sim::SimOptions::default())
}

/// Runs a kernel with options of the simulator.
pub fn simulate_with(kernel: &Kernel, grid: u32, args: &mut [Arg], options: &sim::SimOptions) -> sim::Report {
    let program = sim::Program::parse(&kernel.ptx).unwrap_or_else(|e| panic!("{e}\n{}", kernel.ptx));
    let mut memory = sim::Memory::new();
    let mut params = Vec::new();
    for (i, arg) in args.iter_mut().enumerate() {
        params.push(match arg {
            Arg::Buffer(b) => {
                // SAFETY: the buffers outlive the launch, which alone uses them.
                unsafe { memory.register_slice(&mut b.bytes, &format!("arg{i}")) };
                Param::Pointer(b.bytes.as_ptr() as u64)
            }
            Arg::I32(v) => Param::Int(i64::from(*v)),
            Arg::Address(at) => Param::Pointer(*at),
            Arg::Map(b, map) => {
                // SAFETY: as above.
                unsafe { memory.register_slice(&mut b.bytes, &format!("arg{i}")) };
                map.address = b.bytes.as_ptr() as u64;
                Param::Bytes(map.encode().unwrap_or_else(|e| panic!("{e}")))
            }
        });
    }
    let launch = sim::Launch {
        entry: kernel.name.clone(),
        grid: [grid, 1, 1],
        block: [kernel.num_warps * 32, 1, 1],
        cluster: None,
        shared_bytes: kernel.shared_bytes,
        params,
    };
    program.launch(&launch, &memory, options).unwrap_or_else(|e| panic!("{e}"))
}

/// The lines of PTX that keep threads and asynchronous work in order, each with what it is without: nothing, or, for a
/// look at an mbarrier, that it always says yes. The fences of several mbarriers' initializations go together: the last
/// stands for those before it.
pub fn ordering(ptx: &str) -> Vec<(Vec<usize>, &'static str)> {
    const GONE: [&str; 8] = [
        "bar.",
        "barrier.",
        "fence.proxy.async",
        "mbarrier.arrive",
        "mbarrier.expect_tx",
        "cp.async.wait_",
        "cp.async.bulk.wait_group",
        "wgmma.wait_group",
    ];
    let mut found = vec![];
    let mut fences = vec![];
    for (i, line) in ptx.lines().enumerate() {
        let mut text = line.trim_start();
        if text.starts_with('@') {
            text = text.split_once(' ').map_or("", |t| t.1.trim_start());
        }
        if text.starts_with("mbarrier.try_wait.parity.shared::cta.b64 complete,") {
            found.push((vec![i], "setp.eq.u32 complete, 0, 0;"));
        } else if text.starts_with("fence.mbarrier_init") {
            fences.push(i);
        } else if GONE.iter().any(|g| text.starts_with(g)) {
            found.push((vec![i], ""));
        }
    }
    // They are for the copies that signal the mbarrier, and the lowering places them where threads alone do, too.
    if !fences.is_empty() && ptx.contains("mbarrier::complete_tx") {
        found.push((fences, ""));
    }
    found
}

/// Whether the `bar.warp.sync` in this line has nothing to order: no lane has accessed shared memory since the warp was last together. So it
/// is between the wait for products, in which a whole warp takes part, and the elected lane that releases what they have read.
fn has_nothing_to_order(lines: &[&str], at: usize) -> bool {
    const TOGETHER: [&str; 4] = ["wgmma.wait_group", "elect.sync", "bar.", "barrier."];
    const ACCESSES: [&str; 7] = ["ld.", "st.", "ldmatrix", "stmatrix", "atom.", "red.", "cp.async.c"];
    let begins = |line: &str, with: &[&str]| {
        let text = line.trim_start();
        let text = if text.starts_with('@') { text.split_once(' ').map_or("", |t| t.1) } else { text };
        with.iter().any(|w| text.starts_with(w))
    };
    // The first warp comes to this label as the others do, as a whole (`lower/issue.rs`).
    let is_label = |line: &str| line.trim_end().ends_with(':') && line.trim() != "issued:";
    lines[at].trim_start().starts_with("bar.warp.sync")
        && lines[..at]
            .iter()
            .rev()
            .take_while(|line| !is_label(line) && !begins(line, &ACCESSES))
            .any(|line| begins(line, &TOGETHER))
}

/// Checks that a kernel has no finding as it is and has one without each line of [`ordering`]. A line is needed if one of
/// the runs (argument sets, schedules) shows it. `least` guards against a kernel that has none; of `idle`, exactly so many, nothing is reported since they have
/// [nothing to order](has_nothing_to_order).
pub fn each_is_needed(
    what: &str,
    kernel: &Kernel,
    least: usize,
    idle: usize,
    run: &mut dyn FnMut(&Kernel) -> Vec<sim::Finding>,
) {
    each_is_needed_but(what, kernel, least, idle, &[], run);
}

/// The same of a kernel that has these lines besides, without which nothing is reported.
pub fn each_is_needed_but(
    what: &str,
    kernel: &Kernel,
    least: usize,
    idle: usize,
    but: &[&str],
    run: &mut dyn FnMut(&Kernel) -> Vec<sim::Finding>,
) {
    let clean = run(kernel);
    assert!(clean.is_empty(), "{what}: {clean:#?}\n{}", kernel.ptx);
    let lines: Vec<&str> = kernel.ptx.lines().collect();
    let places = ordering(&kernel.ptx);
    assert!(places.len() >= least, "{what} has {} of them\n{}", places.len(), kernel.ptx);
    let (mut silent, mut forgiven) = (vec![], 0);
    for (at, instead) in &places {
        let mut without = lines.clone();
        at.iter().for_each(|&at| without[at] = instead);
        if !run(&Kernel { ptx: without.join("\n"), ..kernel.clone() }).is_empty() {
            continue;
        }
        if has_nothing_to_order(&lines, at[0]) {
            forgiven += 1;
        } else {
            silent.push(lines[at[0]].trim());
        }
    }
    if silent != but && std::env::var_os("SHOW").is_some() {
        eprintln!("{}", kernel.ptx);
    }
    assert_eq!(silent, but, "{what}: of {} lines those on the left are not needed", places.len());
    assert_eq!(forgiven, idle, "{what}: of {} lines so many have nothing to order", places.len());
}

/// Numbers that differ, small enough for fp16.
pub fn numbers(n: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12345);
    (0..n)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            ((state >> 16) as f32 / 65536.0 - 0.5) * 4.0
        })
        .collect()
}

pub fn close(got: &[f32], want: &[f32], tolerance: f32) {
    assert_eq!(got.len(), want.len());
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        assert!((g - w).abs() <= tolerance * (1.0 + w.abs()), "element {i}: got {g}, want {w}");
    }
}
