//! The `tilewright inspect` command, and what all commands do when nobody reads on. Needs `ptxas` and `nvdisasm`.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// A loop that sums rows, and one with so much beside the sums that few registers hold it.
const KERNELS: &str = "import tilewright as triton
import tilewright.language as tl

@triton.jit
def sums(x, y, n, BLOCK: tl.constexpr):
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n, BLOCK):
        total += tl.load(x + start + tl.arange(0, BLOCK))
    tl.store(y + tl.arange(0, BLOCK), total)

@triton.jit
def spiller(x, y, n, BLOCK: tl.constexpr):
    kept = tl.load(x + tl.arange(0, BLOCK))
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n, BLOCK):
        total += tl.load(x + start + tl.arange(0, BLOCK)) * kept
    tl.store(y + tl.arange(0, BLOCK), total + kept)
";

fn file() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("kernels.py");
    std::fs::write(&file, KERNELS).unwrap();
    (dir, file)
}

fn command(kernel: &str, args: &[&str]) -> (tempfile::TempDir, Command) {
    let (dir, file) = file();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tilewright"));
    command.arg("inspect").arg(format!("{}::{kernel}", file.display()));
    command.args(["--signature", "*fp32:16,*fp32:16,i32"]).args(args);
    (dir, command)
}

fn inspect(kernel: &str, args: &[&str]) -> Output {
    command(kernel, args).1.output().unwrap()
}

/// As [`inspect`], read as JSON.
fn json(kernel: &str, args: &[&str]) -> serde_json::Value {
    let (_dir, mut command) = command(kernel, args);
    let output = command.arg("--json").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_loop_with_its_lines() {
    let report = json("sums", &["--constexpr", "BLOCK=512", "--num-warps", "4"]);
    assert_eq!(report["target"], "cuda:90");
    assert_eq!(report["occupancy"]["max_warps"], 64);
    let [only] = report["loops"].as_array().unwrap().as_slice() else { panic!("{report:#}") };
    // 512 elements of 4 warps are one load of 128 bits a thread, or several where ptxas unrolls.
    let loads = only["instructions"]["LDG"].as_u64().unwrap();
    assert_eq!(only["global_bytes"], 2048 * loads);
    assert_eq!(only["instructions"]["FADD"], 4 * loads);
    let of_line = |line: u64| {
        let lines = only["by_line"].as_array().unwrap();
        lines.iter().find(|l| l["place"]["line"] == line).map(|l| l["instructions"].clone())
    };
    assert_eq!(of_line(8).unwrap()["LDG"], loads);
    assert!(only["lines"][0].as_u64() >= Some(7) && only["lines"][1].as_u64() <= Some(8), "{only:#}");
    assert!(only["bound"]["bound"] == "memory" || only["bound"]["bound"] == "latency", "{only:#}");
}

#[test]
fn spills_by_line() {
    let (_dir, mut text) =
        command("spiller", &["--constexpr", "BLOCK=2048", "--num-warps", "2", "--maxnreg", "32"]);
    let text = String::from_utf8(text.output().unwrap().stdout).unwrap();
    assert!(text.contains("spills (STL stores, LDL loads)"), "{text}");
    let report = json("spiller", &["--constexpr", "BLOCK=2048", "--num-warps", "2", "--maxnreg", "32"]);
    assert_eq!(report["registers"], 32);
    assert!(report["spilled_bytes"].as_u64() > Some(0));
    let spills = report["spills"].as_array().unwrap();
    let lines: Vec<u64> = spills.iter().filter_map(|l| l["place"]["line"].as_u64()).collect();
    assert!(lines.iter().any(|line| (13..=17).contains(line)), "{spills:?}");
    // With room for them there are none.
    let report = json("spiller", &["--constexpr", "BLOCK=512", "--num-warps", "4"]);
    assert_eq!((&report["spilled_bytes"], report["spills"].as_array().unwrap().len()), (&0.into(), 0));
}

#[test]
fn prints_source_lines_and_a_verdict() {
    let output = inspect("sums", &["--constexpr", "BLOCK=512"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("kernels.py:8  total += tl.load(x + start + tl.arange(0, BLOCK))"), "{text}");
    assert!(text.contains("bound by") && text.contains("occupancy:"), "{text}");
}

#[test]
fn says_what_is_missing() {
    let (_dir, mut cpu) = command("sums", &["--constexpr", "BLOCK=512", "--target", "interp"]);
    let output = cpu.output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains("interp has no machine code to inspect"), "{message}");
    let (_dir, mut command) = command("sums", &["--constexpr", "BLOCK=512"]);
    command
        .env("TRITON_NVDISASM_PATH", "/nowhere/nvdisasm")
        .env("TRITON_CUOBJDUMP_PATH", "/nowhere/cuobjdump");
    let output = command.output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        message.contains("TRITON_NVDISASM_PATH is `/nowhere/nvdisasm`, which is no program"),
        "{message}"
    );
}

/// `tilewright … | head -1`: no panic, and the status that a shell gives to a program whose reader has gone.
#[test]
fn a_closed_pipe_ends_it_quietly() {
    let (_dir, mut command) = command("sums", &["--constexpr", "BLOCK=512", "--json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let mut message = String::new();
    child.stderr.take().unwrap().read_to_string(&mut message).unwrap();
    assert_eq!((child.wait().unwrap().code(), message.as_str()), (Some(141), ""));
}
