//! A launch in one line, for tests.
#![allow(dead_code, missing_docs)]

use tilewright_ptxsim::{FindingKind, Launch, Memory, Param, Program, Report, SimOptions};

/// Arguments and memory of a launch.
pub struct Run<'a> {
    program: &'a Program,
    launch: Launch,
    memory: Memory,
    pub options: SimOptions,
}

impl<'a> Run<'a> {
    pub fn new(program: &'a Program, grid: u32, block: u32) -> Run<'a> {
        let entry = program.entries().next().expect("an entry").to_string();
        Run {
            program,
            launch: Launch {
                entry,
                grid: [grid, 1, 1],
                block: [block, 1, 1],
                cluster: None,
                shared_bytes: 0,
                params: vec![],
            },
            memory: Memory::new(),
            options: SimOptions::default(),
        }
    }
    pub fn entry(mut self, e: &str) -> Self {
        self.launch.entry = e.into();
        self
    }
    pub fn grid(mut self, g: [u32; 3]) -> Self {
        self.launch.grid = g;
        self
    }
    pub fn block(mut self, b: [u32; 3]) -> Self {
        self.launch.block = b;
        self
    }
    pub fn cluster(mut self, c: u32) -> Self {
        self.launch.cluster = Some([c, 1, 1]);
        self
    }
    pub fn shared(mut self, bytes: u32) -> Self {
        self.launch.shared_bytes = bytes;
        self
    }
    pub fn array<T: Copy>(mut self, a: &mut [T]) -> Self {
        let name = format!("arg{}", self.launch.params.len());
        self.launch.params.push(Param::Pointer(a.as_ptr() as u64));
        // SAFETY: tests keep their arrays to the end and touch them only between launches.
        unsafe { self.memory.register_slice(a, &name) };
        self
    }
    /// Memory that no parameter points to.
    pub fn memory<T: Copy>(mut self, a: &mut [T], name: &str) -> Self {
        // SAFETY: as for `array`.
        unsafe { self.memory.register_slice(a, name) };
        self
    }
    pub fn int(mut self, v: i64) -> Self {
        self.launch.params.push(Param::Int(v));
        self
    }
    pub fn f32(mut self, v: f32) -> Self {
        self.launch.params.push(Param::F32(v));
        self
    }
    pub fn bytes(mut self, v: Vec<u8>) -> Self {
        self.launch.params.push(Param::Bytes(v));
        self
    }
    pub fn seed(mut self, s: u64) -> Self {
        self.options.seed = s;
        self
    }
    pub fn go(&self) -> Report {
        self.program.launch(&self.launch, &self.memory, &self.options).unwrap_or_else(|e| panic!("{e}"))
    }
    /// Runs and wants no finding.
    pub fn clean(&self) -> Report {
        let r = self.go();
        for f in &r.findings {
            eprintln!("{f}\n");
        }
        assert!(r.findings.is_empty(), "findings");
        r
    }
    /// Runs and wants a finding of this kind.
    pub fn finds(&self, kind: FindingKind) -> Report {
        let r = self.go();
        assert!(r.findings.iter().any(|f| f.kind == kind), "no {kind:?} among {:#?}", r.findings);
        r
    }
}

pub fn parse(ptx: &str) -> Program {
    Program::parse(ptx).unwrap_or_else(|e| panic!("{e}"))
}

/// Wraps a body into a module with one entry `k` and 64-bit pointer parameters `p0`, `p1`, …
pub fn kernel(params: usize, body: &str) -> String {
    let ps: Vec<String> = (0..params).map(|k| format!(".param .u64 p{k}")).collect();
    let mut load = String::new();
    for k in 0..params {
        load += &format!("ld.param.u64 %a{k}, [p{k}];\ncvta.to.global.u64 %a{k}, %a{k};\n");
    }
    format!(
        ".version 8.4\n.target sm_90a\n.address_size 64\n.visible .entry k({}) {{\n\
         .reg .pred %p<16>;\n.reg .b16 %h<32>;\n.reg .b32 %r<64>;\n.reg .b64 %rd<64>;\n.reg .f32 %f<64>;\n\
         .reg .f64 %fd<32>;\n.reg .b64 %a<16>;\n{load}{body}\n}}\n",
        ps.join(", ")
    )
}

/// A small deterministic generator.
pub struct Rng(pub u64);
impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let x = self.0;
        (x ^ (x >> 29)).wrapping_mul(0xbf58476d1ce4e5b9) >> 7
    }
    pub fn u32(&mut self) -> u32 {
        (self.next() >> 16) as u32
    }
    /// In [-1, 1).
    pub fn f32(&mut self) -> f32 {
        (self.u32() >> 8) as f32 / (1 << 23) as f32 - 1.0
    }
}

/// Words that start at a sector of 32 bytes.
pub struct Sectors(Vec<u32>, usize);
impl Sectors {
    pub fn new(n: usize) -> Sectors {
        Sectors(vec![0; n + 8], n)
    }
    pub fn words(&mut self) -> &mut [u32] {
        let skip = (self.0.as_ptr() as usize).wrapping_neg() % 32 / 4;
        &mut self.0[skip..skip + self.1]
    }
}
