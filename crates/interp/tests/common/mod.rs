//! Runs kernels given as IR text on slices.
#![allow(dead_code)] // each test file uses a part

use std::sync::Mutex;

use tilewright_interp::{Arg, Executable, Memory, RunError, RunOptions};

/// An argument: memory or a number.
pub enum A {
    /// Address, length in bytes, writable.
    Mem(u64, u64, bool),
    /// A number or a bare address.
    Is(Arg),
}

/// Memory that the kernel may write.
pub fn m<T>(slice: &mut [T]) -> A {
    A::Mem(slice.as_mut_ptr() as u64, size_of_val(slice) as u64, true)
}

/// Memory that it may only read.
pub fn ro<T>(slice: &[T]) -> A {
    A::Mem(slice.as_ptr() as u64, size_of_val(slice) as u64, false)
}

/// An integer.
pub fn int(x: i64) -> A {
    A::Is(Arg::Int(x))
}

/// A float.
pub fn float(x: f64) -> A {
    A::Is(Arg::Float(x))
}

pub fn compile(ir: &str) -> Executable {
    let module = tilewright_ir::parse(ir, "kernel.mlir").unwrap_or_else(|e| panic!("{e}\n{ir}"));
    if let Err(errors) = tilewright_ir::verify(&module) {
        panic!("{}\n{ir}", errors[0]);
    }
    Executable::compile(&module, "k").unwrap_or_else(|e| panic!("{e}"))
}

/// Runs the function `k`; gives what it printed.
pub fn try_run_with(
    ir: &str,
    grid: [u32; 3],
    args: &[A],
    threads: usize,
    trap_division: bool,
) -> Result<String, RunError> {
    let exe = compile(ir);
    let mut memory = Memory::new();
    let mut values = Vec::new();
    for (i, arg) in args.iter().enumerate() {
        values.push(match *arg {
            A::Mem(base, len, writable) => {
                // SAFETY: the tests' slices outlive the run, which is over when this returns.
                unsafe { memory.register(base, len, format!("arg{i}"), writable) };
                Arg::Pointer(base)
            }
            A::Is(arg) => arg,
        });
    }
    let printed = Mutex::new(String::new());
    let print = |text: &str| printed.lock().unwrap().push_str(text);
    let options = RunOptions { threads, trap_division, print: Some(&print), ..RunOptions::default() };
    exe.run(grid, &values, &memory, &options)?;
    Ok(printed.into_inner().unwrap())
}

pub fn try_run(ir: &str, grid: [u32; 3], args: &[A]) -> Result<String, RunError> {
    try_run_with(ir, grid, args, 2, false)
}

pub fn run(ir: &str, grid: [u32; 3], args: &[A]) -> String {
    try_run(ir, grid, args).unwrap_or_else(|e| panic!("{e}\n{ir}"))
}

/// A kernel that applies `body` (which defines `%r` of `result` elements from `%a`, `%b`, …) to 1-D tiles of `n`
/// elements loaded from its arguments, and stores `%r`. Arguments: one pointer per operand type, then the result's.
pub fn elementwise(n: usize, operands: &[&str], result: &str, body: &str) -> String {
    let mut text = String::from("module {\n  tt.func public @k(");
    for (i, ty) in operands.iter().enumerate() {
        text += &format!("%p{i}: !tt.ptr<{ty}>, ");
    }
    text += &format!("%out: !tt.ptr<{result}>) {{\n");
    text += &format!("    %i = tt.make_range {{end = {n} : i32, start = 0 : i32}} : tensor<{n}xi32>\n");
    for (i, ty) in operands.iter().enumerate() {
        let name = ["a", "b", "c"][i];
        text += &format!("    %s{i} = tt.splat %p{i} : !tt.ptr<{ty}> -> tensor<{n}x!tt.ptr<{ty}>>\n");
        text += &format!("    %q{i} = tt.addptr %s{i}, %i : tensor<{n}x!tt.ptr<{ty}>>, tensor<{n}xi32>\n");
        text += &format!("    %{name} = tt.load %q{i} : tensor<{n}x!tt.ptr<{ty}>>\n");
    }
    text += &body.replace("$n", &n.to_string());
    text += &format!("\n    %so = tt.splat %out : !tt.ptr<{result}> -> tensor<{n}x!tt.ptr<{result}>>\n");
    text += &format!("    %qo = tt.addptr %so, %i : tensor<{n}x!tt.ptr<{result}>>, tensor<{n}xi32>\n");
    text += &format!("    tt.store %qo, %r : tensor<{n}x!tt.ptr<{result}>>\n");
    text += "    tt.return\n  }\n}\n";
    text
}

/// Pseudo-random bits, the same every time.
pub struct Random(pub u64);

impl Random {
    pub fn bits(&mut self) -> u64 {
        // Marsaglia's xorshift64.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    /// In [-1, 1).
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
    pub fn f32s(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.unit() as f32).collect()
    }
}
