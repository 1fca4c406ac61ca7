//! No kernel, however wrong, takes the process down: kernels with words exchanged, dropped and doubled at random are
//! compiled; each gives a module that verifies or an error with a place.

use tilewright_frontend::{Options, Signature, SourceHost, build_module};

/// A small generator (splitmix64), so that a failure can be repeated from its seed.
struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % below as u64) as usize
    }
}

/// Words, numbers, operators and runs of blanks.
fn tokens(text: &str) -> Vec<&str> {
    let class = |c: char| match c {
        c if c.is_alphanumeric() || c == '_' || c == '.' => 0,
        ' ' => 1,
        _ => 2,
    };
    let mut out = Vec::new();
    let mut start = 0;
    let chars: Vec<(usize, char)> = text.char_indices().collect();
    for (i, &(at, c)) in chars.iter().enumerate() {
        if i > 0 && (class(c) == 2 || class(c) != class(chars[i - 1].1)) {
            out.push(&text[start..at]);
            start = at;
        }
    }
    out.push(&text[start..]);
    out
}

const INSERTED: &[&str] = &[
    "None",
    "0",
    "-1",
    "1.5",
    "True",
    "tl",
    "x_ptr",
    "()",
    "[:]",
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
];

fn compile(source: &str, signatures: &[(String, String)], seed: u64) -> usize {
    let Ok(host) = SourceHost::new("mutant.py", source) else { return 0 };
    let mut compiled = 0;
    for (kernel, signature) in signatures {
        let Ok(entry) = host.function(kernel) else { continue };
        let signature = Signature::parse(signature).expect("a signature");
        match build_module(&host, &entry, &signature, &Options { debug: true, ..Options::default() }) {
            Ok(built) => {
                compiled += 1;
                if let Err(errors) = tilewright_ir::verify::verify(&built.module) {
                    panic!("seed {seed}, {kernel}: {}\n{source}", errors[0]);
                }
            }
            Err(error) => assert!(error.span.is_some(), "seed {seed}, {kernel}: no place: {error}"),
        }
    }
    compiled
}

/// The kernels of a file whose signature stands in a comment before them, each with the rest of the file around it.
fn signatures(source: &str) -> Vec<(String, String)> {
    let lines: Vec<&str> = source.lines().collect();
    let mut out = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        if let (Some(signature), Some(name)) = (
            line.strip_prefix("# "),
            lines.get(i + 2).and_then(|l| l.strip_prefix("def ")).and_then(|l| l.split('(').next()),
        ) && name != "unrolled_too_far"
        {
            // That one is slow by design.
            out.push((name.to_string(), signature.to_string()));
        }
    }
    out
}

#[test]
fn mutated_kernels_compile_or_say_why_not() {
    let count: u64 = std::env::var("TILEWRIGHT_MUTATIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(500);
    let mut compiled = 0;
    for source in [include_str!("kernels/typing.py"), include_str!("kernels/wrong.py")] {
        let signatures = signatures(source);
        let tokens = tokens(source);
        for seed in 0..count {
            let mut random = Random(seed);
            let mut mutant: Vec<&str> = tokens.clone();
            for _ in 0..1 + random.next(5) {
                let at = random.next(mutant.len());
                match random.next(4) {
                    0 => mutant[at] = tokens[random.next(tokens.len())],
                    1 => mutant[at] = INSERTED[random.next(INSERTED.len())],
                    2 => mutant[at] = "",
                    _ => {
                        let other = random.next(mutant.len());
                        mutant.swap(at, other);
                    }
                }
            }
            compiled += compile(&mutant.concat(), &signatures, seed);
        }
    }
    assert!(compiled > 100, "most mutants do not even parse: {compiled}");
}

#[test]
fn a_long_sum_compiles_on_a_small_stack() {
    let source = format!(
        "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef k(x_ptr, n):\n    tl.store(x_ptr, {}n)\n",
        "n + ".repeat(1500)
    );
    let run = move || compile(&source, &[("k".into(), "*i32, i32".into())], 0);
    let thread = std::thread::Builder::new().stack_size(512 << 10).spawn(run).expect("spawns");
    assert_eq!(thread.join().expect("no overflow"), 1);
}
