//! Runs `ttg` IR through the code generator and the PTX simulator.
#![allow(dead_code)] // each test file uses its part

use tilewright_nvidia::{Kernel, Options, Target, compile};
pub use tilewright_ptxsim as sim;
pub use tilewright_ptxsim::Param;

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
    /// A tensor map of a buffer; its address is filled in.
    Map(&'a mut Buffer, sim::TensorMap),
}

pub fn to_ptx(ir: &str, target: &str) -> Kernel {
    let module = tilewright_ir::text::parse(ir, "test.mlir").unwrap_or_else(|e| panic!("{e}"));
    generate(&module, target)
}

pub fn generate(module: &tilewright_ir::Module, target: &str) -> Kernel {
    let mut options = Options::new(Target::parse(target).unwrap());
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
    program.launch(&launch, &memory, &sim::Options::default()).unwrap_or_else(|e| panic!("{e}"))
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
