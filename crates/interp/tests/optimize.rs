//! The passes on `tt` modules keep the meaning: random kernels give the same bits before and after them.

mod common;

use std::fmt::Write;

use common::Random;
use tilewright_interp::{Arg, Executable, Memory, RunOptions};
use tilewright_ir::{Module, parse, pass, print_with, verify};

/// Elements of the tensors, and of each slot of the results.
const N: usize = 8;
/// Slots of results.
const SLOTS: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Ty {
    element: &'static str,
    tensor: bool,
}

impl Ty {
    fn text(self) -> String {
        if self.tensor { format!("tensor<{N}x{}>", self.element) } else { self.element.to_string() }
    }
    fn is_float(self) -> bool {
        self.element.starts_with('f')
    }
    fn with(self, element: &'static str) -> Ty {
        Ty { element, ..self }
    }
}

const ELEMENTS: [&str; 7] = ["i1", "i8", "i16", "i32", "i64", "f16", "f32"];

/// Writes a random kernel.
struct Writer {
    r: Random,
    text: String,
    /// Values in scope.
    values: Vec<(String, Ty)>,
    next: usize,
    indent: usize,
}

impl Writer {
    fn below(&mut self, n: usize) -> usize {
        (self.r.bits() >> 17) as usize % n
    }

    fn line(&mut self, line: &str) {
        writeln!(self.text, "{}{line}", "  ".repeat(self.indent)).unwrap();
    }

    fn name(&mut self) -> String {
        self.next += 1;
        format!("%v{}", self.next)
    }

    /// Defines a value by an operation.
    fn define(&mut self, ty: Ty, operation: &str) -> String {
        let name = self.name();
        self.line(&format!("{name} = {operation}"));
        self.values.push((name.clone(), ty));
        name
    }

    fn any_type(&mut self) -> Ty {
        Ty { element: ELEMENTS[self.below(ELEMENTS.len())], tensor: self.below(2) == 0 }
    }

    fn constant(&mut self, ty: Ty) -> String {
        let ints = ["0", "1", "-1", "2", "7", "-8", "127", "-128", "100"];
        let floats = ["0.0", "-0.0", "1.0", "-1.0", "0.5", "3.25", "-1.0e-3", "1000.0"];
        let infinity = |e: &str| if e == "f16" { "0x7C00" } else { "0x7F800000" };
        let number = match ty.element {
            "i1" => ["true", "false"][self.below(2)].to_string(),
            e if ty.is_float() && self.below(10) == 0 => infinity(e).to_string(),
            _ if ty.is_float() => floats[self.below(floats.len())].to_string(),
            _ => ints[self.below(ints.len())].to_string(),
        };
        let text = match (ty.tensor, ty.element) {
            (true, _) => format!("arith.constant dense<{number}> : {}", ty.text()),
            (false, "i1") => format!("arith.constant {number}"),
            (false, _) => format!("arith.constant {number} : {}", ty.text()),
        };
        self.define(ty, &text)
    }

    /// A value of a type: one in scope, or a new constant or splat.
    fn value(&mut self, ty: Ty) -> String {
        let fitting: Vec<String> = self.values.iter().filter(|v| v.1 == ty).map(|v| v.0.clone()).collect();
        match self.below(6) {
            0 => self.constant(ty),
            1 if ty.tensor => {
                let scalar = Ty { tensor: false, ..ty };
                let src = self.value(scalar);
                self.define(ty, &format!("tt.splat {src} : {} -> {}", scalar.text(), ty.text()))
            }
            _ if fitting.is_empty() => self.constant(ty),
            _ => {
                // The newest are the most interesting.
                let newest = fitting.len().min(6);
                let i = fitting.len() - 1 - self.below(newest);
                fitting[i].clone()
            }
        }
    }

    fn operation(&mut self, depth: usize) {
        let ty = self.any_type();
        let t = ty.text();
        match self.below(if depth < 2 { 16 } else { 13 }) {
            0..=5 => self.binary(ty),
            6 => {
                let (a, b) = (self.value(ty), self.value(ty));
                let text = if ty.is_float() {
                    let p = ["oeq", "one", "olt", "oge", "une", "uno", "ugt", "ord"][self.below(8)];
                    format!("arith.cmpf {p}, {a}, {b} : {t}")
                } else {
                    let p = ["eq", "ne", "slt", "sge", "ult", "ugt", "sle", "uge"][self.below(8)];
                    format!("arith.cmpi {p}, {a}, {b} : {t}")
                };
                self.define(ty.with("i1"), &text);
            }
            7 => {
                let scalar_condition = self.below(3) == 0;
                let ct = if scalar_condition { Ty { element: "i1", tensor: false } } else { ty.with("i1") };
                let (c, a, b) = (self.value(ct), self.value(ty), self.value(ty));
                let ct = if ct.tensor { format!("{}, ", ct.text()) } else { String::new() };
                self.define(ty, &format!("arith.select {c}, {a}, {b} : {ct}{t}"));
            }
            8 | 9 => {
                let to = ty.with(ELEMENTS[self.below(ELEMENTS.len())]);
                let bits = |e: &str| e[1..].parse::<u32>().unwrap();
                let (from_bits, to_bits) = (bits(ty.element), bits(to.element));
                let op = match (ty.is_float(), to.is_float()) {
                    (true, true) if from_bits < to_bits => "extf",
                    (true, true) if from_bits > to_bits => "truncf",
                    (false, false) if from_bits < to_bits => ["extsi", "extui"][self.below(2)],
                    (false, false) if from_bits > to_bits => "trunci",
                    (false, true) if ty.element != "i1" => ["sitofp", "uitofp"][self.below(2)],
                    _ if from_bits == to_bits && ty != to => "bitcast",
                    _ => return,
                };
                let a = self.value(ty);
                self.define(to, &format!("arith.{op} {a} : {t} to {}", to.text()));
            }
            10 if ty.is_float() => {
                let a = self.value(ty);
                let op = ["math.absf", "math.floor", "math.ceil", "arith.negf"][self.below(4)];
                self.define(ty, &format!("{op} {a} : {t}"));
            }
            11 => self.reshaped(ty),
            12 => {
                let ty = Ty { element: ["i32", "f32"][self.below(2)], tensor: true };
                let (e, a) = (ty.element, self.value(ty));
                let op = if e == "f32" {
                    ["maxnumf", "minnumf"][self.below(2)]
                } else {
                    ["addi", "minsi"][self.below(2)]
                };
                let name = self.name();
                self.line(&format!("{name} = \"tt.reduce\"({a}) <{{axis = 0 : i32}}> ({{"));
                self.line(&format!("^bb0(%{name}a: {e}, %{name}b: {e}):").replace("%%", "%"));
                let x = name.trim_start_matches('%');
                self.line(&format!("  %{x}c = arith.{op} %{x}a, %{x}b : {e}"));
                self.line(&format!("  tt.reduce.return %{x}c : {e}"));
                self.line(&format!("}}) : (tensor<{N}x{e}>) -> {e}"));
                self.values.push((name, Ty { element: e, tensor: false }));
            }
            13 => self.branch(depth),
            14 | 15 => self.repeat(depth),
            _ => {}
        }
    }

    /// An arithmetic operation on two values of a type.
    fn binary(&mut self, ty: Ty) {
        let t = ty.text();
        let (a, b) = (self.value(ty), self.value(ty));
        let ints = [
            "addi",
            "subi",
            "muli",
            "andi",
            "ori",
            "xori",
            "minsi",
            "maxsi",
            "minui",
            "maxui",
            "shli",
            "shrsi",
            "shrui",
            "divsi",
            "remui",
            "floordivsi",
        ];
        let floats = ["addf", "subf", "mulf", "divf", "minimumf", "maximumf", "minnumf", "maxnumf"];
        let mut op = if ty.is_float() { floats[self.below(8)] } else { ints[self.below(16)] };
        if ty.element == "i1" {
            op = ["andi", "ori", "xori"][self.below(3)];
        }
        if op.starts_with("div") && !ty.is_float() || op == "remui" || op == "floordivsi" {
            // By a constant: zero would end the run.
            let divisor = ["1", "3", "4", "-7"][self.below(4)];
            let value = if ty.tensor { format!("dense<{divisor}>") } else { divisor.to_string() };
            let c = self.define(ty, &format!("arith.constant {value} : {t}"));
            self.define(ty, &format!("arith.{op} {a}, {c} : {t}"));
            return;
        }
        self.define(ty, &format!("arith.{op} {a}, {b} : {t}"));
    }

    /// Through shapes and back.
    fn reshaped(&mut self, ty: Ty) {
        let ty = Ty { tensor: true, ..ty };
        let (e, a) = (ty.element, self.value(ty));
        let b = self.name();
        self.line(&format!(
            "{b} = tt.expand_dims {a} {{axis = 1 : i32}} : tensor<{N}x{e}> -> tensor<{N}x1x{e}>"
        ));
        let c = self.name();
        self.line(&format!("{c} = tt.broadcast {b} : tensor<{N}x1x{e}> -> tensor<{N}x2x{e}>"));
        let d = self.name();
        self.line(&format!(
            "{d} = tt.trans {c} {{order = array<i32: 1, 0>}} : tensor<{N}x2x{e}> -> tensor<2x{N}x{e}>"
        ));
        let f = self.name();
        self.line(&format!(
            "{f} = tt.trans {d} {{order = array<i32: 1, 0>}} : tensor<2x{N}x{e}> -> tensor<{N}x2x{e}>"
        ));
        let lhs = self.name();
        self.line(&format!("{lhs}:2 = tt.split {f} : tensor<{N}x2x{e}> -> tensor<{N}x{e}>"));
        let half = self.below(2);
        self.values.push((format!("{lhs}#{half}"), ty));
    }

    /// Operations in a scope of their own, ended by a yield of values of the types.
    fn body(&mut self, depth: usize, types: &[Ty]) {
        self.indent += 1;
        let scope = self.values.len();
        for _ in 0..1 + self.below(5) {
            self.operation(depth + 1);
        }
        let yielded: Vec<String> = types.iter().map(|&t| self.value(t)).collect();
        let texts: Vec<String> = types.iter().map(|t| t.text()).collect();
        if !types.is_empty() {
            self.line(&format!("scf.yield {} : {}", yielded.join(", "), texts.join(", ")));
        }
        self.values.truncate(scope);
        self.indent -= 1;
    }

    fn results(&mut self) -> (Vec<Ty>, String, String) {
        let types: Vec<Ty> = (0..1 + self.below(3)).map(|_| self.any_type()).collect();
        let texts: Vec<String> = types.iter().map(|t| t.text()).collect();
        let name = self.name();
        (types, texts.join(", "), name)
    }

    fn add_results(&mut self, name: &str, types: &[Ty]) {
        for (i, &ty) in types.iter().enumerate() {
            let value = if types.len() == 1 { name.to_string() } else { format!("{name}#{i}") };
            self.values.push((value, ty));
        }
    }

    fn branch(&mut self, depth: usize) {
        let c = self.value(Ty { element: "i1", tensor: false });
        let (types, texts, name) = self.results();
        self.line(&format!("{name}:{} = scf.if {c} -> ({texts}) {{", types.len()));
        self.body(depth, &types);
        self.line("} else {");
        self.body(depth, &types);
        self.line("}");
        self.add_results(&name, &types);
    }

    fn repeat(&mut self, depth: usize) {
        let (types, texts, name) = self.results();
        let inits: Vec<String> = types.iter().map(|&t| self.value(t)).collect();
        let i32s = Ty { element: "i32", tensor: false };
        let bound = self.below(5);
        let upper = if bound == 4 {
            "%n".to_string()
        } else {
            self.define(i32s, &format!("arith.constant {bound} : i32"))
        };
        let (lower, step) =
            (self.define(i32s, "arith.constant 0 : i32"), self.define(i32s, "arith.constant 1 : i32"));
        let x = name.trim_start_matches('%').to_string();
        let assignments: Vec<String> =
            inits.iter().enumerate().map(|(i, init)| format!("%{x}a{i} = {init}")).collect();
        self.line(&format!(
            "{name}:{} = scf.for %{x}i = {lower} to {upper} step {step} iter_args({}) -> ({texts}) : i32 {{",
            types.len(),
            assignments.join(", ")
        ));
        let scope = self.values.len();
        self.values.push((format!("%{x}i"), i32s));
        for (i, &ty) in types.iter().enumerate() {
            self.values.push((format!("%{x}a{i}"), ty));
        }
        self.body(depth, &types);
        self.values.truncate(scope);
        self.line("}");
        self.add_results(&name, &types);
    }

    /// Stores a value to a slot as `i64` or `f32`.
    fn store(&mut self, slot: usize, value: &str, ty: Ty) {
        let bits = ty.with(if ty.is_float() { "f32" } else { "i64" });
        let stored = match ty.element {
            "f16" => self.define(bits, &format!("arith.extf {value} : {} to {}", ty.text(), bits.text())),
            "f32" | "i64" => value.to_string(),
            _ => self.define(bits, &format!("arith.extsi {value} : {} to {}", ty.text(), bits.text())),
        };
        let base = if ty.is_float() { "%outf" } else { "%outi" };
        let e = bits.element;
        let (o, p) = (self.name(), self.name());
        self.line(&format!("{o} = arith.constant {} : i32", slot * N));
        self.line(&format!("{p} = tt.addptr {base}, {o} : !tt.ptr<{e}>, i32"));
        if !ty.tensor {
            self.line(&format!("tt.store {p}, {stored} : !tt.ptr<{e}>"));
            return;
        }
        let (s, q) = (self.name(), self.name());
        self.line(&format!("{s} = tt.splat {p} : !tt.ptr<{e}> -> tensor<{N}x!tt.ptr<{e}>>"));
        self.line(&format!("{q} = tt.addptr {s}, %range : tensor<{N}x!tt.ptr<{e}>>, tensor<{N}xi32>"));
        self.line(&format!("tt.store {q}, {stored} : tensor<{N}x!tt.ptr<{e}>>"));
    }
}

fn kernel(seed: u64) -> String {
    let mut w = Writer { r: Random(seed), text: String::new(), values: Vec::new(), next: 0, indent: 1 };
    for _ in 0..4 {
        w.r.bits();
    }
    w.text += "tt.func public @k(%outi: !tt.ptr<i64>, %outf: !tt.ptr<f32>, %n: i32, %x: f32, %b: i1) {\n";
    let scalar = |element| Ty { element, tensor: false };
    w.values.extend([
        ("%n".into(), scalar("i32")),
        ("%x".into(), scalar("f32")),
        ("%b".into(), scalar("i1")),
    ]);
    let range = Ty { element: "i32", tensor: true };
    w.line(&format!("%range = tt.make_range {{end = {N} : i32, start = 0 : i32}} : tensor<{N}xi32>"));
    w.values.push(("%range".into(), range));
    w.define(range.with("f32"), &format!("arith.sitofp %range : tensor<{N}xi32> to tensor<{N}xf32>"));
    for _ in 0..25 {
        w.operation(0);
    }
    let values = w.values.clone();
    for (slot, (value, ty)) in values.iter().rev().take(SLOTS).enumerate() {
        w.store(slot, value, *ty);
    }
    w.text += "  tt.return\n}\n";
    w.text
}

type Output = (Vec<i64>, Vec<u32>);

fn run(module: &Module, n: i64) -> Result<Output, String> {
    let exe = Executable::compile(module, "k").map_err(|e| e.to_string())?;
    let (mut ints, mut floats) = (vec![0i64; SLOTS * N], vec![0u32; SLOTS * N]);
    let mut memory = Memory::new();
    // SAFETY: both vectors outlive the run, which is over when `exe.run` returns.
    unsafe {
        memory.register(ints.as_mut_ptr() as u64, size_of_val(&ints[..]) as u64, "ints", true);
        memory.register(floats.as_mut_ptr() as u64, size_of_val(&floats[..]) as u64, "floats", true);
    }
    let args = [
        Arg::Pointer(ints.as_mut_ptr() as u64),
        Arg::Pointer(floats.as_mut_ptr() as u64),
        Arg::Int(n),
        Arg::Float(-2.75),
        Arg::Int(n & 1),
    ];
    exe.run([1, 1, 1], &args, &memory, &RunOptions { threads: 1, ..RunOptions::default() })
        .map_err(|e| e.to_string())?;
    // The bits of a NaN are not the language's to say.
    let floats =
        floats.into_iter().map(|b| if f32::from_bits(b).is_nan() { 0x7fc0_0000 } else { b }).collect();
    Ok((ints, floats))
}

fn same_before_and_after(seed: u64) {
    let text = kernel(seed);
    let before = parse(&text, "random.mlir").unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
    if let Err(errors) = verify(&before) {
        panic!("seed {seed}: {}\n{text}", errors[0]);
    }
    let mut after = before.clone();
    pass::optimize(&mut after).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
    let after_text = || print_with(&after, tilewright_ir::PrintOptions::PLAIN);
    if let Err(errors) = verify(&after) {
        panic!("seed {seed}: {}\n{text}\n{}", errors[0], after_text());
    }
    for n in [0, 3] {
        let (expected, found) = (run(&before, n), run(&after, n));
        assert!(
            expected == found,
            "seed {seed}, n = {n}: {}\n{text}\n{}",
            difference(&expected, &found),
            after_text()
        );
    }
}

fn difference(a: &Result<Output, String>, b: &Result<Output, String>) -> String {
    match (a, b) {
        (Ok(a), Ok(b)) => {
            let int = a.0.iter().zip(&b.0).position(|(x, y)| x != y);
            let float = a.1.iter().zip(&b.1).position(|(x, y)| x != y);
            let int = int.map(|i| format!("slot {} of integers: {} and {}", i / N, a.0[i], b.0[i]));
            let float = float.map(|i| {
                format!("slot {} of floats: {} and {}", i / N, f32::from_bits(a.1[i]), f32::from_bits(b.1[i]))
            });
            int.or(float).unwrap_or_default()
        }
        (a, b) => {
            let text = |r: &Result<Output, String>| r.as_ref().err().cloned().unwrap_or("no error".into());
            format!("{} and {}", text(a), text(b))
        }
    }
}

#[test]
fn random_kernels_mean_the_same_after_optimization() {
    for seed in 1..=300 {
        same_before_and_after(seed * 7919);
    }
}

/// `TILEWRIGHT_SEEDS=100000` tries so many.
#[test]
#[ignore = "runs for as long as it is told"]
fn many_random_kernels() {
    let seeds: u64 = std::env::var("TILEWRIGHT_SEEDS").ok().and_then(|s| s.parse().ok()).unwrap_or(10_000);
    for seed in 1..=seeds {
        same_before_and_after(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    }
}
