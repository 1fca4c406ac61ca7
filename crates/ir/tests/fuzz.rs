//! Mutations of valid text: the parser never panics, printing is stable, and what verifies can be optimized to something
//! that verifies.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use tilewright_ir::{parse, pass, print, verify};

/// The texts to start from: the filetests, part by part, and Ascend's dialects.
fn seeds() -> &'static [String] {
    static SEEDS: OnceLock<Vec<String>> = OnceLock::new();
    SEEDS.get_or_init(|| {
        let mut files = Vec::new();
        for folder in ["../../tests/filetests", "tests/ascend"] {
            collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut files);
        }
        files.sort();
        let mut seeds: Vec<String> = Vec::new();
        for file in files {
            let text = std::fs::read_to_string(file).expect("a readable file");
            for part in text.split("// -----\n") {
                let lines = part.lines().filter(|l| !l.trim_start().starts_with("//"));
                seeds.push(lines.map(|l| format!("{l}\n")).collect());
            }
        }
        assert!(!seeds.is_empty());
        seeds
    })
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|e| e == "mlir") {
            files.push(path);
        }
    }
}

/// A change of a text: positions are fractions of its tokens, so that they fit any text.
#[derive(Debug, Clone)]
enum Mutation {
    Delete(u16, u8),
    Duplicate(u16, u8),
    Swap(u16, u16),
    /// Another token of the same text, which keeps much of it valid.
    Copy(u16, u16),
    Insert(u16, &'static str),
    /// A piece of another seed.
    Splice(u16, u16, u16, u8),
}

const SNIPPETS: &[&str] = &[
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    "<",
    ">",
    ",",
    ":",
    "=",
    "->",
    "#",
    "!",
    "%",
    "^bb0",
    "@",
    "\"",
    "\\",
    "\u{e9}",
    "//",
    "loc(",
    "0x",
    "-1",
    "4294967296",
    "18446744073709551616",
    "1.5",
    "0x7FC00000",
    "true",
    "dense<",
    "tensor<",
    "tensor<0x",
    "i1",
    "i32",
    "i64",
    "f16",
    "f8E5M2",
    "index",
    "!tt.ptr<",
    "%0#1",
    "%0:2",
    "scf.yield",
    "tt.return",
    "array<i32",
    "{a = 1}",
    "module",
    "iter_args(",
    "#loc",
    "i65535",
    "unit",
    "tt.load",
    "arith.constant",
    "loc(unknown)",
];

fn mutation() -> impl Strategy<Value = Mutation> {
    prop_oneof![
        1 => (any::<u16>(), 1u8..12).prop_map(|(a, n)| Mutation::Delete(a, n)),
        1 => (any::<u16>(), 1u8..40).prop_map(|(a, n)| Mutation::Duplicate(a, n)),
        1 => (any::<u16>(), any::<u16>()).prop_map(|(a, b)| Mutation::Swap(a, b)),
        4 => (any::<u16>(), any::<u16>()).prop_map(|(a, b)| Mutation::Copy(a, b)),
        2 => (any::<u16>(), proptest::sample::select(SNIPPETS)).prop_map(|(a, s)| Mutation::Insert(a, s)),
        1 => (any::<u16>(), any::<u16>(), any::<u16>(), 1u8..60).prop_map(|(a, s, b, n)| Mutation::Splice(a, s, b, n)),
    ]
}

/// Words, numbers, spaces and single other characters.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut last = 0;
    for c in text.chars() {
        let class = match c {
            c if c.is_alphanumeric() || "_.%#!@^-".contains(c) => 1,
            ' ' => 2,
            _ => 0,
        };
        match tokens.last_mut() {
            Some(t) if class != 0 && class == last => t.push(c),
            _ => tokens.push(c.to_string()),
        }
        last = class;
    }
    tokens
}

fn apply(mutations: &[Mutation], seed: u16) -> String {
    let seeds = seeds();
    let pick = |i: u16| &seeds[i as usize % seeds.len()];
    let mut text = tokens(pick(seed));
    for mutation in mutations {
        let len = text.len().max(1);
        let at = |a: u16| a as usize % len;
        let range = |a: u16, n: u8| at(a)..(at(a) + n as usize).min(text.len());
        match *mutation {
            Mutation::Delete(a, n) => {
                let r = range(a, n);
                text.drain(r);
            }
            Mutation::Duplicate(a, n) => {
                let r = range(a, n);
                let copy = text[r.clone()].to_vec();
                text.splice(r.start..r.start, copy);
            }
            Mutation::Swap(a, b) if text.len() > 1 => text.swap(at(a), at(b)),
            Mutation::Copy(a, b) if text.len() > 1 => text[at(a)] = text[at(b)].clone(),
            Mutation::Insert(a, s) => text.insert(at(a).min(text.len()), s.to_string()),
            Mutation::Splice(a, s, b, n) => {
                let other = tokens(pick(s));
                let start = b as usize % other.len().max(1);
                let piece = other[start..(start + n as usize).min(other.len())].to_vec();
                let a = at(a).min(text.len());
                text.splice(a..a, piece);
            }
            _ => {}
        }
    }
    text.concat()
}

fn check(text: &str) -> Result<(), TestCaseError> {
    let Ok(mut module) = parse(text, "fuzz.mlir") else { return Ok(()) };
    let printed = print(&module);
    let again = match parse(&printed, "again.mlir") {
        Ok(m) => m,
        Err(d) => return Err(TestCaseError::fail(format!("what is printed does not parse: {d}\n{printed}"))),
    };
    let twice = print(&again);
    prop_assert!(twice == printed, "printing is not stable:\n{printed}\nand then\n{twice}");
    if verify(&module).is_err() || pass::optimize(&mut module).is_err() {
        return Ok(());
    }
    if let Err(errors) = verify(&module) {
        let message = format!("after optimizing: {}\n{}", errors[0], print(&module));
        return Err(TestCaseError::fail(message));
    }
    Ok(())
}

#[test]
fn seeds_are_stable() {
    for seed in seeds() {
        check(seed).unwrap_or_else(|e| panic!("{e}\n{seed}"));
    }
}

#[test]
fn mutated_text() {
    let cases = std::env::var("TILEWRIGHT_MUTATIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(4000);
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let strategy = (any::<u16>(), prop::collection::vec(mutation(), 1..8));
    // The same texts in each run, so that one that fails, fails again.
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
        .run(&strategy, |(seed, mutations)| check(&apply(&mutations, seed)))
        .unwrap_or_else(|e| panic!("{e}"));
}

/// Goes on for `FUZZ_SECONDS`: see `scripts/fuzz.sh`.
#[test]
#[ignore = "runs for as long as it is told"]
fn mutated_text_for_long() {
    let seconds = std::env::var("FUZZ_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(60);
    let start = Instant::now();
    let mut cases = 0u64;
    while start.elapsed() < Duration::from_secs(seconds) {
        let config = Config { cases: 2000, failure_persistence: None, ..Config::default() };
        let strategy = (any::<u16>(), prop::collection::vec(mutation(), 1..8));
        TestRunner::new(config)
            .run(&strategy, |(seed, mutations)| {
                let text = apply(&mutations, seed);
                check(&text).map_err(|e| TestCaseError::fail(format!("{e}\nthe text was\n{text}")))
            })
            .unwrap_or_else(|e| panic!("{e}"));
        cases += 2000;
    }
    println!("{cases} texts");
}
