//! Random kernels, with `tle.dsa` and for both cores of a block: the CPU executor and the simulator agree bit for bit, and without any one flag something is reported.
//!
//! `TILEWRIGHT_DSA_KERNELS` says how many there are, from seed `TILEWRIGHT_DSA_SEED` on.

mod common;

use std::fmt::Write as _;

use common::{Case, check, check_within};

/// A generator of numbers: xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % n
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

/// Steps from buffers to buffers, some by way of tensors; `indent` is what each line begins with.
fn steps(random: &mut Random, out: &mut String, indent: &str, buffers: &[String]) {
    for _ in 0..1 + random.below(5) {
        let any = |random: &mut Random| buffers[random.below(buffers.len())].clone();
        let (a, b, c) = (any(random), any(random), any(random));
        match random.below(11) {
            0..=2 => {
                let op = random.of(&["add", "sub", "max", "min"]);
                writeln!(out, "{indent}tle.dsa.{op}({a}, {b}, {c})")
            }
            // Element by element.
            6 => writeln!(
                out,
                "{indent}tle.dsa.to_buffer(tl.load(tle.dsa.local_ptr({a}, ((tl.arange(0, BLOCK) * 3 + 1) % BLOCK,))), bind_buffer={c})"
            ),
            7 => writeln!(
                out,
                "{indent}tle.dsa.to_buffer(tle.dsa.to_tensor({a}) + tl.argmax(tle.dsa.to_tensor({b}), 0).to(tl.float32), bind_buffer={c})"
            ),
            8 => {
                let to = random.below(3);
                writeln!(out, "{indent}tl.store(p{to} + at, tle.dsa.to_tensor({a}), (at % 2 == 0) & (at < n))")
            }
            // Parts with gaps, also of one buffer.
            9 => {
                let mut part = |b: &str| {
                    let (first, apart) = (random.below(2), 1 + random.below(3));
                    format!("tle.dsa.subview({b}, ({first},), (BLOCK // 4,), ({apart},))")
                };
                let (x, y) = (part(&a), part(&b));
                writeln!(out, "{indent}u, v = {x}, {y}\n{indent}tle.dsa.sub(u, v, u)\n{indent}tle.dsa.copy(u, v, [BLOCK // 4])")
            }
            // Rounded to a byte.
            10 => writeln!(out, "{indent}tle.dsa.to_buffer(tle.dsa.to_tensor({a}).to(tl.float8e5).to(tl.float32), bind_buffer={c})"),
            3 => writeln!(out, "{indent}tle.dsa.to_buffer(tle.dsa.to_tensor({a}) * 0.5 - tle.dsa.to_tensor({b}), bind_buffer={c})"),
            4 => writeln!(
                out,
                "{indent}t = tle.dsa.to_tensor({a})\n{indent}tle.dsa.add({b}, {b}, {a})\n{indent}tle.dsa.to_buffer(tl.where(t > 1.0, t, tle.dsa.to_tensor({a})), bind_buffer={c})"
            ),
            _ => writeln!(out, "{indent}tle.dsa.copy({a}, {c}, [BLOCK])"),
        }
        .expect("a string takes text");
    }
}

/// A kernel with its arguments.
fn kernel(seed: u64) -> Case {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let block = random.of(&[8, 24, 64, 100]);
    // Enough iterations that each goes round the slots.
    let n = block * random.of(&[4, 5]) + random.below(block);
    let arrays = 3;
    let loops = random.below(2) == 0;
    let mut source = String::from("def kernel(p0, p1, p2, n, BLOCK: tl.constexpr):\n");
    let buffers: Vec<String> = (0..2 + random.below(3)).map(|i| format!("b{i}")).collect();
    let outside = random.below(2) == 0;
    let alloc = |source: &mut String, indent: &str| {
        for b in &buffers {
            writeln!(source, "{indent}{b} = tle.dsa.alloc([BLOCK], tl.float32, UB)")
                .expect("a string takes text");
        }
    };
    let mut indent = "    ";
    if loops {
        if outside {
            alloc(&mut source, indent);
        }
        let mut around = "    ";
        if random.below(3) == 0 {
            source += "    for again in range(0, 2):\n";
            (around, indent) = ("        ", "            ");
        } else {
            indent = "        ";
        }
        let kind = random.of(&["tl.range", "tle.dsa.pipeline", "tle.dsa.parallel"]);
        writeln!(source, "{around}for first in {kind}(0, n, BLOCK):").expect("a string takes text");
    } else {
        source += "    first = tl.program_id(0) * BLOCK\n";
    }
    writeln!(source, "{indent}at = first + tl.arange(0, BLOCK)\n{indent}tail = tl.minimum(n - first, BLOCK)")
        .expect("a string takes text");
    if !(loops && outside) {
        alloc(&mut source, indent);
    }
    // Whole buffers are defined first, so that nothing depends on what nobody wrote.
    for b in &buffers {
        writeln!(source, "{indent}tle.dsa.to_buffer(tl.zeros((BLOCK,), tl.float32), bind_buffer={b})")
            .expect("a string takes text");
        let from = random.below(arrays);
        writeln!(source, "{indent}tle.dsa.copy(p{from} + at, {b}, [tail])").expect("a string takes text");
    }
    for _ in 0..1 + random.below(2) {
        steps(&mut random, &mut source, indent, &buffers);
        let (b, to) = (buffers[random.below(buffers.len())].clone(), random.below(arrays));
        writeln!(source, "{indent}tle.dsa.copy({b}, p{to} + at, [tail])").expect("a string takes text");
        if random.below(2) == 0 {
            let (b, from) = (buffers[random.below(buffers.len())].clone(), random.below(arrays));
            writeln!(source, "{indent}tle.dsa.copy(p{from} + at, {b}, [tail])").expect("a string takes text");
        }
    }
    let grid = if loops { 1 } else { n.div_ceil(block) as u32 };
    Case {
        source,
        signature: format!("*fp32, *fp32, *fp32, i32, {block}"),
        grid: [grid, 1, 1],
        arrays: (0..arrays as u32).map(|i| common::numbers(n, (seed as u32).wrapping_mul(5) + i)).collect(),
        numbers: vec![n as i64],
    }
}

/// A step of a kernel for both cores, from tensors to a tensor; numbers stay so small that products are exact.
fn mixed_step(random: &mut Random, out: &mut String, indent: &str, tensors: &[String]) {
    let any = |random: &mut Random| tensors[random.below(tensors.len())].clone();
    let (a, b, c) = (any(random), any(random), any(random));
    let value = match random.below(8) {
        0..=2 => format!("tl.dot({a}, {b}, input_precision='ieee')"),
        3 => format!("tl.dot({a}, tl.trans({b}), {c}, input_precision='ieee')"),
        4 => format!(
            "tl.dot(tl.dot({a}, {b}, input_precision='ieee') * 0.0 + {c}, {b}, input_precision='ieee')"
        ),
        7 => format!("tl.where(tl.argmax({c}, 1)[:, None] % 2 == 0, {a}, {b})"),
        5 => format!("tl.where({a} > {b}, {b}, {a}) - tl.max({c}, 1)[:, None]"),
        _ => format!("{a} + tl.trans({b})"),
    };
    writeln!(out, "{indent}{c} = tl.minimum(tl.maximum({value}, -8.0), 8.0)").expect("a string takes text");
}

/// A kernel for both cores of a block.
fn mixed(seed: u64) -> Case {
    let mut random = Random(seed.wrapping_mul(0xd1b5_4a32_d192_ed03) | 1);
    let n = random.of(&[8usize, 16, 24]);
    let rounds = 1 + random.below(3);
    let mut source = String::from(
        "def kernel(p0, p1, p2, n, N: tl.constexpr):\n    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]\n",
    );
    let tensors: Vec<String> = (0..2 + random.below(2)).map(|i| format!("t{i}")).collect();
    let write = |source: &mut String, line: String| writeln!(source, "{line}").expect("a string takes text");
    for (i, t) in tensors.iter().enumerate() {
        write(&mut source, format!("    {t} = tl.load(p{} + at)", i % 3));
    }
    let summed = random.below(2) == 0;
    let mut indent = "    ";
    if random.below(3) > 0 {
        write(&mut source, "    total = tl.zeros((N, N), tl.float32)".into());
        let stages = random.of(&[1, 2, 3]);
        let mut around = "    ";
        indent = "        ";
        if random.below(3) == 0 {
            write(&mut source, "    for again in range(0, 2):".into());
            (around, indent) = ("        ", "            ");
        }
        write(&mut source, format!("{around}for i in tl.range(0, n, num_stages={stages}):"));
        let (to, place) = (random.below(3), random.of(&["i * N * N + ", ""]));
        write(&mut source, format!("{indent}fresh = tl.load(p{to} + {place}at)"));
        if summed {
            let t = &tensors[0];
            write(&mut source, format!("{indent}total = tl.dot(fresh, {t}, total, input_precision='ieee')"));
        }
        write(&mut source, format!("{indent}{} = fresh", tensors[1]));
    } else {
        write(&mut source, "    total = tl.load(p0 + at)".into());
    }
    for _ in 0..1 + random.below(3) {
        mixed_step(&mut random, &mut source, indent, &tensors);
        if random.below(3) == 0 {
            let (t, to) = (tensors[random.below(tensors.len())].clone(), random.below(3));
            write(&mut source, format!("{indent}tl.store(p{to} + at, {t})"));
        }
    }
    let t = &tensors[random.below(tensors.len())];
    write(&mut source, format!("    tl.store(p2 + at, total + {t})"));
    Case {
        source,
        signature: format!("*fp32, *fp32, *fp32, i32, {n}"),
        grid: [1, 1, 1],
        arrays: (0..3).map(|i| common::numbers(n * n * rounds, (seed as u32).wrapping_mul(3) + i)).collect(),
        numbers: vec![rounds as i64],
    }
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

#[test]
fn random_kernels_agree() {
    let (count, first) = (number("TILEWRIGHT_DSA_KERNELS", 24), number("TILEWRIGHT_DSA_SEED", 1));
    for seed in first..first + count {
        let case = kernel(seed);
        println!("seed {seed}\n{}", case.source);
        // (In a loop in a loop some barriers are for one that has no iteration, and a part with gaps counts as all of its buffer.)
        match ["again", "subview"].iter().any(|word| case.source.contains(word)) {
            true => check_within(&case, 0.0),
            false => check(&case),
        };
    }
}

#[test]
fn random_kernels_on_two_cores_agree() {
    let (count, first) = (number("TILEWRIGHT_DSA_KERNELS", 24) / 2, number("TILEWRIGHT_DSA_SEED", 1));
    for seed in first..first + count {
        let case = mixed(seed);
        println!("seed {seed}\n{}", case.source);
        check_within(&case, 0.0);
    }
}
