//! Real inputs with words exchanged, dropped and doubled at random go the whole way: kernels in Python and modules of IR to
//! PTX, PTX into the simulator. Each gives a result or an error; none a panic, a crash or a wait without end.
//!
//! `TILEWRIGHT_MUTATIONS` says how many of each kind there are. What seed `n` makes is always the same. An input that takes the
//! process down is left behind in the folder that the message, or else `CARGO_TARGET_TMPDIR`, names.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tilewright_frontend::{Signature, SourceHost, build_module};
use tilewright_ir::Module;
use tilewright_nvidia::Target;
use tilewright_passes::opt::Pipeline;
use tilewright_ptxsim::{Launch, Memory, Param, Program, SimOptions};

/// Kernels of the examples with their arguments.
const KERNELS: [(&str, &str, &str); 8] = [
    (include_str!("../../../examples/vector_add.py"), "add_kernel", "*fp32:16, *fp32:16, *fp32:16, i32, 256"),
    (
        include_str!("../../../examples/softmax.py"),
        "softmax_kernel",
        "*fp32:16, *fp32:16, i32:16, i32, i32, 200",
    ),
    (include_str!("../../../examples/cumsum.py"), "cumsum_kernel", "*fp32:16, *fp32:16, i32, 128"),
    (include_str!("../../../examples/argmax.py"), "argmax_kernel", "*fp32:16, *i32:16, i32, 128"),
    (
        include_str!("../../../examples/dropout.py"),
        "dropout_kernel",
        "*fp32:16, *fp32:16, i32, fp32, i32, 128",
    ),
    (include_str!("../../../examples/histogram.py"), "histogram_kernel", "*i32:16, *i32:16, i32, 128"),
    (
        include_str!("../../../examples/layer_norm.py"),
        "layer_norm_kernel",
        "*fp16:16, *fp16:16, *fp16:16, *fp16, *fp32, *fp32, i32:16, i32, fp32, 128",
    ),
    (
        include_str!("../../../examples/transpose.py"),
        "transpose_kernel",
        "*fp32:16, *fp32:16, i32, i32, 32, 16",
    ),
];

/// Modules as the front end makes them.
const MODULES: [&str; 7] = [
    include_str!("../../passes/tests/ir/add.mlir"),
    include_str!("../../passes/tests/ir/attention.mlir"),
    include_str!("../../passes/tests/ir/matmul.mlir"),
    include_str!("../../passes/tests/ir/matmul_odd.mlir"),
    include_str!("../../passes/tests/ir/paged.mlir"),
    include_str!("../../passes/tests/ir/softmax.mlir"),
    include_str!("../../passes/tests/ir/sparse_attention.mlir"),
];

/// Words that mean something somewhere, by kind of input.
const PYTHON: &[&str] = &[
    "None",
    "0",
    "-1",
    "1.5",
    "True",
    "tl",
    "x_ptr",
    "()",
    "[:]",
    "[:, None]",
    "(1, 2)",
    "tl.float16",
    "tl.range",
    "'a'",
    "1 << 70",
    "lambda: 0",
    "tl.constexpr",
    "*",
    "not ",
    "x",
    "tl.zeros((3, 5), tl.int8)",
    "float('nan')",
    "9999999999999",
    "tl.load",
    "range(3)",
    "tl.static_range(5)",
    "return",
    "if n:",
    "while x:",
    "tl.dot",
    "tl.sum",
    "é",
    "\"",
    "#",
];
const IR: &[&str] = &[
    "0",
    "-1",
    "1",
    "3",
    "32",
    "4294967296",
    "0x7FC00000",
    "true",
    "dense<1>",
    "i1",
    "i8",
    "i32",
    "i64",
    "f16",
    "f32",
    "f64",
    "bf16",
    "tensor<1xi32>",
    "tensor<64x64xf16>",
    "tensor<0xf32>",
    "!tt.ptr<f32>",
    "!tt.ptr<i8>",
    "tt.splat",
    "tt.dot",
    "tt.load",
    "tt.store",
    "arith.addi",
    "arith.addf",
    "arith.cmpi",
    "scf.for",
    "scf.yield",
    "tt.return",
    "x",
    "y",
    "axis = 1 : i32",
    "(",
    ")",
    "{",
    "}",
    "<",
    ">",
    ":",
    ",",
    "=",
    "->",
];
const PTX: &[&str] = &[
    "%r1",
    "%rd1",
    "%p1",
    "%f1",
    "0",
    "-1",
    "0xffffffffffffffff",
    "4096",
    "{",
    "}",
    "[",
    "]",
    ";",
    ",",
    ".u8",
    ".b16",
    ".s32",
    ".u64",
    ".f32",
    ".f16x2",
    ".pred",
    ".v2",
    ".v4",
    ".shared",
    ".global",
    ".local",
    ".param",
    ".sync",
    ".wide",
    ".rn",
    "add",
    "mul",
    "cvt",
    "ld",
    "st",
    "mov",
    "bar",
    "shfl",
    "atom",
    "mma",
    "setp",
    "bra",
    "ret",
    "@%p1",
    "%tid.x",
    "_",
    "0f7F800000",
    "\"",
    "/*",
];

/// A small generator (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n.max(1) as u64) as usize
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// Words, runs of blanks, and single other characters.
fn tokens(text: &str) -> Vec<&str> {
    let class = |c: char| match c {
        c if c.is_alphanumeric() || "_.%".contains(c) => 0,
        ' ' => 1,
        _ => 2,
    };
    let mut out = Vec::new();
    let (mut start, mut before) = (0, 2);
    for (at, c) in text.char_indices() {
        if at > 0 && (class(c) == 2 || class(c) != before) {
            out.push(&text[start..at]);
            start = at;
        }
        before = class(c);
    }
    out.push(&text[start..]);
    out
}

/// A text with a change or two; mostly a word takes the place of another of its kind, which keeps much of it valid.
fn mutate(text: &str, words: &[&'static str], random: &mut Random) -> String {
    let own = tokens(text);
    let kind = |token: &str| match token.chars().next() {
        Some(c) if c.is_ascii_digit() => 0,
        Some(c) if c.is_alphabetic() || "_%".contains(c) => 1,
        Some(' ') => 2,
        _ => 3,
    };
    let mut mutant = own.clone();
    for _ in 0..1 + random.below(2) {
        let at = random.below(mutant.len());
        match random.below(10) {
            0 => mutant[at] = random.pick(words),
            1 => mutant[at] = "",
            2 => mutant.insert(at, random.pick(words)),
            3 => {
                let other = random.below(mutant.len());
                mutant.swap(at, other);
            }
            _ => {
                let alike: Vec<&str> = own.iter().copied().filter(|t| kind(t) == kind(mutant[at])).collect();
                if !alike.is_empty() {
                    mutant[at] = random.pick(&alike);
                }
            }
        }
    }
    mutant.concat()
}

/// What is read from a kernel's decorator to the next blank lines.
fn kernel_of(source: &str) -> std::ops::Range<usize> {
    let start = source.find("@triton.jit").expect("a kernel");
    start..source[start..].find("\n\n\n").map_or(source.len(), |end| start + end)
}

/// A `tt` module to PTX.
fn to_ptx(module: &mut Module, target: Target) -> Result<String, String> {
    let targets = |name: &str| Target::parse(name).map(Target::info).map_err(|e| e.to_string());
    let passes = ["-tt", &format!("-target={target}"), "-ttg"];
    Pipeline::parse(passes, "cuda:90", &targets)?.run(module).map_err(|errors| errors[0].to_string())?;
    let options = tilewright_nvidia::CodegenOptions::new(target);
    Ok(tilewright_nvidia::compile(module, &options).map_err(|e| e.to_string())?.ptx)
}

fn front_end(source: &str, kernel: &str, signature: &str) -> Result<Module, String> {
    let host = SourceHost::new("mutant.py", source).map_err(|e| e.to_string())?;
    let entry = host.function(kernel).map_err(|e| e.to_string())?;
    let signature = Signature::parse(signature).expect("a signature");
    let options = tilewright_frontend::Options { debug: true, ..Default::default() };
    Ok(build_module(&host, &entry, &signature, &options).map_err(|e| e.to_string())?.module)
}

/// Says what becomes of the mutants of a kind, each made by `make` from its seed; `run` says whether one is valid.
fn try_all(kind: &str, make: impl Fn(u64) -> String + Sync, run: impl Fn(u64, &str) -> bool + Sync) {
    let count = std::env::var("TILEWRIGHT_MUTATIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(500u64);
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("mutant.{kind}"));
    let now = Mutex::new((0, Instant::now()));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(100));
                let (seed, since) = *now.lock().expect("no panic while it is held");
                if since.elapsed() > PATIENCE {
                    eprintln!("seed {seed} does not end: {}", file.display());
                    std::process::abort();
                }
            }
        });
        let work = || {
            let (mut valid, mut failed) = (0, Vec::new());
            for seed in 0..count {
                let text = make(seed);
                std::fs::write(&file, &text).expect("a folder for tests");
                *now.lock().expect("no panic while it is held") = (seed, Instant::now());
                match catch_unwind(AssertUnwindSafe(|| run(seed, &text))) {
                    Ok(ok) => valid += u64::from(ok),
                    Err(_) => {
                        let kept = file.with_extension(format!("{seed}.{kind}"));
                        std::fs::write(&kept, &text).expect("a folder for tests");
                        failed.push(kept);
                    }
                }
            }
            (valid, failed)
        };
        // The stack that the compiler gives its own threads.
        let worker = std::thread::Builder::new().stack_size(64 << 20).spawn_scoped(scope, work);
        let (valid, failed) = worker.expect("starts").join().expect("does not panic");
        done.store(true, Ordering::Relaxed);
        println!("{kind}: {count} mutants, {valid} of them valid");
        assert!(failed.is_empty(), "{} panicked: {failed:?}", failed.len());
        assert!(valid > count / 50, "mutants that are never valid show little: {valid} of {count}");
    });
    let _ = std::fs::remove_file(&file);
}

/// How long one input may take before it counts as endless. The slowest take seconds on a busy machine.
const PATIENCE: Duration = Duration::from_secs(600);

fn target_of(seed: u64) -> Target {
    let name = if seed.is_multiple_of(2) { "cuda:90" } else { "cuda:80" };
    Target::parse(name).expect("a target")
}

#[test]
fn mutated_python() {
    let of = |seed: u64| KERNELS[seed as usize % KERNELS.len()];
    let make = |seed| {
        let (source, ..) = of(seed);
        let at = kernel_of(source);
        let mutant = mutate(&source[at.clone()], PYTHON, &mut Random(seed));
        format!("{}{mutant}{}", &source[..at.start], &source[at.end..])
    };
    try_all("py", make, |seed, text| {
        let (_, kernel, signature) = of(seed);
        front_end(text, kernel, signature)
            .and_then(|mut module| to_ptx(&mut module, target_of(seed / 8)))
            .is_ok()
    });
}

#[test]
fn mutated_ir() {
    let make = |seed: u64| mutate(MODULES[seed as usize % MODULES.len()], IR, &mut Random(seed));
    try_all("mlir", make, |seed, text| {
        let parsed = tilewright_ir::parse(text, "mutant.mlir").map_err(|e| e.to_string());
        parsed.and_then(|mut module| to_ptx(&mut module, target_of(seed / 7))).is_ok()
    });
}

#[test]
fn mutated_ptx() {
    let texts: Vec<String> = KERNELS
        .iter()
        .flat_map(|(source, kernel, signature)| [0, 1].map(|n| (source, kernel, signature, target_of(n))))
        .map(|(source, kernel, signature, target)| {
            let mut module = front_end(source, kernel, signature).expect("an example");
            to_ptx(&mut module, target).expect("an example")
        })
        .collect();
    let make = |seed: u64| mutate(&texts[seed as usize % texts.len()], PTX, &mut Random(seed));
    try_all("ptx", make, |_, text| simulate(text).is_ok());
}

/// Runs the kernel on small arrays; what it does wrong there is found, which is as good as doing right.
fn simulate(text: &str) -> Result<(), tilewright_ptxsim::Error> {
    let program = Program::parse(text)?;
    let Some(entry) = program.entries().next().map(str::to_string) else { return Ok(()) };
    let mut array = vec![1u128; 256];
    let mut memory = Memory::new();
    // SAFETY: the array lives to the end, and nothing else touches it during the launch.
    unsafe { memory.register_slice(&mut array, "array") };
    let param = |info: &tilewright_ptxsim::ParamInfo| match info.size {
        8 => Param::Pointer(array.as_ptr() as u64),
        size => Param::Bytes(vec![1; size as usize]),
    };
    let params = program.params(&entry)?.iter().map(param).collect();
    let launch =
        Launch { entry, grid: [2, 1, 1], block: [128, 1, 1], cluster: None, shared_bytes: 4096, params };
    let options =
        SimOptions { max_instructions: 20_000, threads: 1, wait_rounds: 50, ..SimOptions::default() };
    program.launch(&launch, &memory, &options).map(|_| ())
}
