//! Damaged PTX gives errors or findings, never a panic.
#![allow(missing_docs)]
mod common;
use common::*;
use tilewright_ptxsim::{Launch, Memory, Param, Program, SimOptions};

const CORPUS: [&str; 3] =
    [include_str!("cuda/suite.ptx"), include_str!("cuda/matmul.ptx"), include_str!("cuda/softmax.ptx")];

/// Pieces that mean something somewhere.
const WORDS: &[&str] = &[
    "%r1",
    "%rd1",
    "%p1",
    "%f1",
    "0",
    "-1",
    "0xffffffffffffffff",
    "1",
    "{",
    "}",
    "[",
    "]",
    ";",
    ",",
    ".",
    "|",
    "!",
    "@%p1",
    ".u8",
    ".b16",
    ".s32",
    ".u64",
    ".f32",
    ".f16x2",
    ".bf16",
    ".f64",
    ".pred",
    ".b128",
    ".v2",
    ".v4",
    ".shared",
    ".global",
    ".local",
    ".param",
    ".sync",
    ".wide",
    ".lo",
    ".hi",
    ".rn",
    ".rzi",
    ".sat",
    ".ftz",
    ".cc",
    "add",
    "mul",
    "mad",
    "cvt",
    "ld",
    "st",
    "mov",
    "bar",
    "shfl",
    "atom",
    "red",
    "mma",
    "setp",
    "selp",
    "bra",
    "call",
    "ret",
    "prmt",
    "lop3",
    "bfe",
    "bfi",
    "%tid.x",
    "_",
    "[%rd1+4]",
    "{%r1,%r2}",
    "$L__BB0_1",
    "0f7F800000",
    "0d7FF0000000000000",
    "1.5",
    "\"",
    "/*",
    "//",
    "<",
    ">",
    "=",
    ":",
];

fn run(text: &str) {
    let Ok(p) = Program::parse(text) else { return };
    let entries: Vec<String> = p.entries().map(str::to_string).collect();
    for entry in entries {
        let Ok(infos) = p.params(&entry) else { continue };
        let mut a = vec![1u128; 256];
        let mut memory = Memory::new();
        // SAFETY: `a` lives to the end of the loop body and nothing else touches it during the launch.
        unsafe { memory.register_slice(&mut a, "a") };
        let params = infos
            .iter()
            .map(|i| {
                if i.size == 8 {
                    Param::Pointer(a.as_ptr() as u64)
                } else {
                    Param::Bytes(vec![3; i.size as usize])
                }
            })
            .collect();
        let launch =
            Launch { entry, grid: [2, 1, 1], block: [32, 2, 1], cluster: None, shared_bytes: 1024, params };
        let options =
            SimOptions { max_instructions: 20_000, threads: 1, wait_rounds: 50, ..SimOptions::default() };
        let _ = p.launch(&launch, &memory, &options);
    }
}

/// One entry of a module with what stands around all of them.
fn one_entry(text: &str, k: usize) -> String {
    let starts: Vec<usize> = text.match_indices(".visible .entry").map(|m| m.0).collect();
    let s = starts[k % starts.len()];
    let e = starts.get(k % starts.len() + 1).copied().unwrap_or(text.len());
    format!("{}{}", &text[..starts[0]], &text[s..e])
}

#[test]
fn damaged_modules() {
    let rounds = std::env::var("TILEWRIGHT_MUTATIONS").ok().and_then(|s| s.parse().ok()).unwrap_or(500);
    let mut r = Rng(99);
    for round in 0..rounds {
        let text = one_entry(CORPUS[round % 3], r.u32() as usize);
        let mut tokens: Vec<&str> = text.split_inclusive([' ', '\t', '\n', ',', '.']).collect();
        for _ in 0..1 + r.u32() % 4 {
            let n = tokens.len();
            let at = r.u32() as usize % n;
            match r.u32() % 4 {
                0 => drop(tokens.remove(at)),
                1 => tokens[at] = WORDS[r.u32() as usize % WORDS.len()],
                2 => tokens.insert(at, WORDS[r.u32() as usize % WORDS.len()]),
                _ => tokens.swap(at, (r.u32() as usize) % n),
            }
        }
        let text = tokens.concat();
        if std::panic::catch_unwind(|| run(&text)).is_err() {
            let path = std::env::temp_dir().join("ptxsim-fuzz.ptx");
            std::fs::write(&path, &text).expect("a temporary file");
            panic!("round {round} panicked; the text is in {}", path.display());
        }
    }
}

#[test]
fn every_opcode_with_wrong_operands() {
    // Each instruction of the corpus with operands of other kinds.
    let mut ops: Vec<&str> = CORPUS
        .iter()
        .flat_map(|t| t.lines())
        .filter_map(|l| l.trim().trim_start_matches('@').split_whitespace().find(|w| w.contains('.')))
        .filter(|w| w.starts_with(|c: char| c.is_ascii_lowercase()))
        .collect();
    ops.sort_unstable();
    ops.dedup();
    assert!(ops.len() > 100);
    let kinds = [
        "%r1",
        "%rd1",
        "%p1",
        "%h1",
        "%f1",
        "5",
        "[%rd1]",
        "{%r1,%r2}",
        "%p1|%p2",
        "_",
        "!%p1",
        "s",
        "0f00000000",
    ];
    let mut r = Rng(5);
    for op in ops {
        for _ in 0..30 {
            let n = r.u32() as usize % 6;
            let args: Vec<&str> = (0..n).map(|_| kinds[r.u32() as usize % kinds.len()]).collect();
            let body = format!(
                ".shared .b8 s[64]; mov.b64 %rd1, s; cvta.shared.u64 %rd1, %rd1; {op} {}; ret;",
                args.join(", ")
            );
            let text = kernel(1, &body);
            assert!(std::panic::catch_unwind(|| run(&text)).is_ok(), "{op} {args:?}");
        }
    }
}

#[test]
fn sizes_beyond_all_counting() {
    let huge = ["4294967295", "4294967296", "18446744073709551615"];
    let frame = |before: &str, directives: &str, body: &str| {
        format!(
            ".version 8.0\n.target sm_90\n.address_size 64\n{before}\n.visible .entry k(.param .u64 p) {directives} {{\n\
             .reg .b64 %rd<3>;\n.reg .b32 %r<3>;\n{body}\nret;\n}}\n"
        )
    };
    for n in huge {
        let mut texts = vec![frame("", "", &format!(".reg .b32 %x<{n}>;"))];
        for directive in [".reqntid", ".maxntid", ".reqnctapercluster"] {
            texts.push(frame("", &format!("{directive} {n}, {n}, {n}"), ""));
        }
        texts.push(frame("", &format!(".maxntid 128 .minnctapersm {n}"), ""));
        for space in [".global", ".shared", ".const"] {
            texts.push(frame(&format!("{space} .b64 x[{n}][{n}];"), "", "mov.b64 %rd1, x;"));
            texts.push(frame(&format!("{space} .b8 x[{n}];"), "", "mov.b64 %rd1, x;"));
        }
        texts.push(frame(&format!(".global .b32 x[][{n}][{n}] = {{1, 2}};"), "", "mov.b64 %rd1, x;"));
        texts.push(frame(
            "",
            "",
            &format!(".local .b64 x[{n}][{n}]; mov.b64 %rd1, x; st.local.u32 [%rd1], 1;"),
        ));
        texts.push(frame("", "", &format!(".local .b8 x[{n}]; mov.b64 %rd1, x; st.local.u32 [%rd1], 1;")));
        texts.push(frame("", "", &format!(".shared .b8 x[{n}]; mov.b64 %rd1, x; st.shared.u32 [%rd1], 1;")));
        // The last byte of all addresses.
        texts.push(frame("", "", "mov.b64 %rd1, -1; ld.global.u8 %r1, [%rd1];"));
        for text in texts {
            assert!(std::panic::catch_unwind(|| run(&text)).is_ok(), "{text}");
        }
    }
    for sizes in [[u32::MAX; 3], [1 << 31, 1 << 31, 4], [65535, 65535, 65535]] {
        let program = Program::parse(&frame("", "", "")).expect("parses");
        for at in 0..3 {
            let shape = |k: usize| if at == k { sizes } else { [1; 3] };
            let launch = Launch {
                entry: "k".into(),
                grid: shape(0),
                block: shape(1),
                cluster: Some(shape(2)),
                shared_bytes: 0,
                params: vec![],
            };
            if at > 0 || sizes[1] > 65535 {
                let error = program.launch(&launch, &Memory::new(), &SimOptions::default());
                assert!(error.is_err(), "{launch:?}");
            }
        }
    }
}
