//! The `tilewright sim` command: exit status, findings, printed arrays and JSON.

use std::process::{Command, Output};

/// `out[i] = in[i] * factor` for 64 threads, through shared memory read from the neighbour's slot.
const NEIGHBOUR: &str = r"
.version 8.0
.target sm_80
.address_size 64
.shared .align 16 .b8 tile[256];
.visible .entry neighbour(.param .u64 in, .param .u64 out, .param .u32 factor) {
    .reg .b32 %r<10>;
    .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [in];
    ld.param.u64 %rd2, [out];
    ld.param.u32 %r1, [factor];
    mov.u32 %r2, %tid.x;
    mul.wide.u32 %rd3, %r2, 4;
    add.s64 %rd4, %rd1, %rd3;
    ld.global.u32 %r3, [%rd4];
    mov.u32 %r4, tile;
    shl.b32 %r5, %r2, 2;
    add.u32 %r6, %r4, %r5;
    st.shared.u32 [%r6], %r3;
    BARRIER
    xor.b32 %r7, %r5, 128;
    add.u32 %r8, %r4, %r7;
    ld.shared.u32 %r9, [%r8];
    mul.lo.u32 %r9, %r9, %r1;
    add.s64 %rd5, %rd2, %rd3;
    st.global.u32 [%rd5], %r9;
    ret;
}
";

fn sim(ptx: &str, args: &[&str]) -> Output {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("kernel.ptx");
    std::fs::write(&file, ptx).unwrap();
    Command::new(env!("CARGO_BIN_EXE_tilewright")).arg("sim").arg(file).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

const GOOD: [&str; 6] =
    ["--entry", "neighbour", "--block", "64", "--args", "u32[64]=iota,u32[64]=zeros,i32=5"];

#[test]
fn runs_prints_and_counts() {
    let out = sim(&NEIGHBOUR.replace("BARRIER", "bar.sync 0;"), &[&GOOD[..], &["--print", "1"]].concat());
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let stdout = text(&out.stdout);
    let line = stdout.lines().find_map(|l| l.strip_prefix("argument 1: ")).unwrap();
    let want: Vec<String> = (0..64).map(|i| ((i ^ 32) * 5).to_string()).collect();
    assert_eq!(line, want.join(" "));
    let row = |name: &str| {
        let l = stdout.lines().find(|l| l.starts_with(name)).unwrap_or_else(|| panic!("{name}\n{stdout}"));
        l[name.len()..].trim().to_string()
    };
    assert_eq!(row("global bytes loaded"), "256");
    assert_eq!(row("global sectors"), "16 (minimum 16)");
    assert_eq!(row("barriers"), "2");
    assert_eq!(row("bank conflicts"), "0");
    // By line: two warps execute each, whether or not it touches memory.
    assert!(row("busiest lines").starts_with("instructions"));
    let lines: Vec<&str> = stdout.lines().filter(|l| l.starts_with("ptx:")).collect();
    assert_eq!(lines.len(), 10, "{stdout}");
    assert!(lines.iter().all(|l| l.split_whitespace().nth(1) == Some("2")), "{stdout}");
}

#[test]
fn a_finding_is_status_one() {
    let racy = NEIGHBOUR.replace("BARRIER", "");
    let out = sim(&racy, &GOOD);
    assert_eq!(out.status.code(), Some(1));
    let stderr = text(&out.stderr);
    assert!(stderr.contains("race") && stderr.contains("PTX line"), "{stderr}");
    // Without checks the same program runs to the end.
    assert_eq!(sim(&racy, &[&GOOD[..], &["--no-checks"]].concat()).status.code(), Some(0));
    // Too short an array: also without checks.
    let good = NEIGHBOUR.replace("BARRIER", "bar.sync 0;");
    let short = ["--block", "64", "--no-checks", "--args", "u32[60]=iota,u32[64]=zeros,i32=5"];
    let out = sim(&good, &short);
    assert_eq!(out.status.code(), Some(1));
    assert!(text(&out.stderr).contains("`argument 0`"), "{}", text(&out.stderr));
}

#[test]
fn json_holds_findings_and_counters() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("report.json");
    let racy = NEIGHBOUR.replace("BARRIER", "");
    let out = sim(&racy, &[&GOOD[..], &["--json", file.to_str().unwrap(), "--seed", "3"]].concat());
    assert_eq!(out.status.code(), Some(1));
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert!(!report["findings"].as_array().unwrap().is_empty());
    assert!(report["counters"]["warp_instructions"].as_u64().unwrap() > 0);
    let good = NEIGHBOUR.replace("BARRIER", "bar.sync 0;");
    let out = sim(&good, &[&GOOD[..], &["--json", "-"]].concat());
    let report: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(report["findings"].as_array().unwrap().len(), 0);
}

#[test]
fn bad_input_is_status_two() {
    let good = NEIGHBOUR.replace("BARRIER", "bar.sync 0;");
    let unknown = NEIGHBOUR.replace("BARRIER", "frobnicate.sync 0;");
    let args = "u32[64]=iota,u32[64]=zeros,i32=5";
    for (ptx, arguments, want) in [
        (&good, vec!["--entry", "other", "--block", "64", "--args", args], "neighbour"),
        (&good, vec!["--block", "64", "--args", "u32[64]=iota"], "3 parameters"),
        (&good, vec!["--block", "64", "--args", "u33[64]=iota"], "no type `u33`"),
        (&good, vec!["--block", "64", "--args", args, "--print", "3"], "counted from 0"),
        (&good, vec!["--block", "0", "--args", args], "positive"),
        (&good, vec!["--block", "64,1,1,1", "--args", args], "three dimensions"),
        (&good, vec!["--block", "2048", "--args", args], "1024"),
        (&good, vec!["--block", "64", "--args", args, "--json", "/no/such/folder/x"], "cannot write"),
        (&good, vec!["--args", args], "--block"),
        (&unknown, vec!["--block", "64", "--args", args], "frobnicate"),
    ] {
        let out = sim(ptx, &arguments);
        let stderr = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(want), "{arguments:?}: {stderr}");
    }
    let out = Command::new(env!("CARGO_BIN_EXE_tilewright"))
        .args(["sim", "/no/such.ptx", "--block", "32"])
        .output();
    let out = out.unwrap();
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("/no/such.ptx"));
}

#[test]
fn the_limit_of_instructions_holds() {
    // Two warps of 19 instructions.
    let ptx = NEIGHBOUR.replace("BARRIER", "bar.sync 0;");
    let limited = |n: &str| sim(&ptx, &[&GOOD[..], &["--max-instructions", n]].concat());
    for (limit, status) in [("1", 1), ("10", 1), ("37", 1), ("38", 0), ("0", 0)] {
        let out = limited(limit);
        let stderr = text(&out.stderr);
        assert_eq!(out.status.code(), Some(status), "{limit}: {stderr}");
        assert_eq!(stderr.contains("past its instruction limit"), status == 1, "{limit}: {stderr}");
    }
    let endless = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() {\nL: bra L;\n}\n";
    for limit in ["1", "100000"] {
        let out = sim(endless, &["--block", "32", "--grid", "64", "--max-instructions", limit]);
        assert_eq!(out.status.code(), Some(1), "{}", text(&out.stderr));
    }
}

#[test]
fn what_a_gpu_cannot_start_is_refused() {
    let empty = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() {\nret;\n}\n";
    for (shape, message) in [
        (
            ["--grid", "2147483648", "--block", "1"],
            "a grid of [2147483648, 1, 1] is larger than a GPU takes: at most 2147483647 along x",
        ),
        (["--grid", "1,65536", "--block", "1"], "at most 65535 along y"),
        (["--grid", "1,1,65536", "--block", "1"], "at most 65535 along z"),
        (
            ["--grid", "1", "--block", "1,1,65"],
            "a block of [1, 1, 65] is larger than a GPU takes: at most 64 along z",
        ),
        (["--grid", "1", "--block", "1025"], "at most 1024 along x"),
        (["--grid", "1", "--block", "1024,2"], "2048 threads"),
    ] {
        let out = sim(empty, &shape);
        let stderr = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(message), "{stderr}");
    }
}
