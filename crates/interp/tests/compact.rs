//! Random index arithmetic, computed twice: with compact leaves (ranges and splats), and with leaves made dense by adding
//! a zero loaded from memory. The results must agree bit for bit, masked stores included.

mod common;

use common::{Random, int, m, ro, run};

struct Program {
    text: String,
    /// Names of i32 tensors.
    ints: Vec<String>,
    /// Names of i1 tensors.
    bools: Vec<String>,
    next: u32,
}

const BINARY: [&str; 11] =
    ["addi", "addi", "subi", "muli", "shli", "divsi", "remsi", "divui", "remui", "minsi", "maxsi"];
const PREDICATES: [&str; 10] = ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"];

impl Program {
    fn name(&mut self) -> String {
        self.next += 1;
        format!("%v{}", self.next)
    }

    fn line(&mut self, text: &str) -> String {
        let name = self.name();
        self.text += &format!("    {name} = {text}\n");
        name
    }

    fn pick(list: &[String], r: &mut Random) -> String {
        list[r.bits() as usize % list.len()].clone()
    }

    /// A random operation on two of the tensors.
    fn step(&mut self, r: &mut Random, rows: usize, cols: usize) {
        let ty = format!("tensor<{rows}x{cols}xi32>");
        let bt = format!("tensor<{rows}x{cols}xi1>");
        let (x, y) = (Self::pick(&self.ints, r), Self::pick(&self.ints, r));
        match r.bits() % 10 {
            0..=5 => {
                let op = BINARY[r.bits() as usize % BINARY.len()];
                let v = self.line(&format!("arith.{op} {x}, {y} : {ty}"));
                self.ints.push(v);
            }
            6 | 7 => {
                let predicate = PREDICATES[r.bits() as usize % PREDICATES.len()];
                let v = self.line(&format!("arith.cmpi {predicate}, {x}, {y} : {ty}"));
                self.bools.push(v);
            }
            8 if self.bools.len() >= 2 => {
                let (c, d) = (Self::pick(&self.bools, r), Self::pick(&self.bools, r));
                let op = ["andi", "andi", "ori", "xori"][r.bits() as usize % 4];
                let v = self.line(&format!("arith.{op} {c}, {d} : {bt}"));
                self.bools.push(v);
            }
            _ if !self.bools.is_empty() && r.bits().is_multiple_of(2) => {
                let c = Self::pick(&self.bools, r);
                let v = self.line(&format!("arith.select {c}, {x}, {y} : {bt}, {ty}"));
                self.ints.push(v);
            }
            _ => {
                // Through another width and back.
                let (op, back, bits) = [
                    ("extsi", "trunci", 64),
                    ("extui", "trunci", 64),
                    ("trunci", "extsi", 16),
                    ("trunci", "extui", 8),
                ][r.bits() as usize % 4];
                let wide = format!("tensor<{rows}x{cols}xi{bits}>");
                let w = self.line(&format!("arith.{op} {x} : {ty} to {wide}"));
                let w = self.line(&format!("arith.addi {w}, {w} : {wide}"));
                let v = self.line(&format!("arith.{back} {w} : {wide} to {ty}"));
                self.ints.push(v);
            }
        }
    }
}

/// A kernel of `steps` random operations on `rows`×`cols` tensors. `dense` adds the loaded zero to every leaf.
fn generate(seed: u64, rows: usize, cols: usize, steps: usize, dense: bool) -> String {
    let mut r = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    r.bits();
    let mut p = Program { text: String::new(), ints: Vec::new(), bools: Vec::new(), next: 0 };
    let (ty, n) = (format!("tensor<{rows}x{cols}xi32>"), rows * cols);
    let bt = format!("tensor<{rows}x{cols}xi1>");
    p.text += &format!(
        "module {{
  tt.func public @k(%zero: !tt.ptr<i32>, %out: !tt.ptr<i32>, %cond: !tt.ptr<i1>, %masked: !tt.ptr<i32>, %a: i32, %b: i32) {{
    %i = tt.make_range {{end = {n} : i32, start = 0 : i32}} : tensor<{n}xi32>
    %zs = tt.splat %zero : !tt.ptr<i32> -> tensor<{n}x!tt.ptr<i32>>
    %zp = tt.addptr %zs, %i : tensor<{n}x!tt.ptr<i32>>, tensor<{n}xi32>
    %zv = tt.load %zp : tensor<{n}x!tt.ptr<i32>>
    %z = tt.reshape %zv : tensor<{n}xi32> -> {ty}
    %rr = tt.make_range {{end = {rows} : i32, start = 0 : i32}} : tensor<{rows}xi32>
    %re = tt.expand_dims %rr {{axis = 1 : i32}} : tensor<{rows}xi32> -> tensor<{rows}x1xi32>
    %row = tt.broadcast %re : tensor<{rows}x1xi32> -> {ty}
    %cr = tt.make_range {{end = {cols} : i32, start = 0 : i32}} : tensor<{cols}xi32>
    %ce = tt.expand_dims %cr {{axis = 0 : i32}} : tensor<{cols}xi32> -> tensor<1x{cols}xi32>
    %col = tt.broadcast %ce : tensor<1x{cols}xi32> -> {ty}
    %sa = tt.splat %a : i32 -> {ty}
    %sb = tt.splat %b : i32 -> {ty}\n"
    );
    let mut leaves: Vec<String> = ["%row", "%col", "%sa", "%sb"].map(String::from).to_vec();
    for _ in 0..3 {
        // Small numbers, powers of two, and numbers that overflow soon.
        let value = match r.bits() % 3 {
            0 => (r.bits() % 9) as i64 - 2,
            1 => 1 << (r.bits() % 31),
            _ => (r.bits() as i32).into(),
        };
        let name = p.line(&format!("arith.constant dense<{value}> : {ty}"));
        leaves.push(name);
    }
    for leaf in leaves {
        let name = if dense { p.line(&format!("arith.addi {leaf}, %z : {ty}")) } else { leaf };
        p.ints.push(name);
    }
    for _ in 0..steps {
        p.step(&mut r, rows, cols);
    }
    let result = p.ints.last().cloned().unwrap_or_default();
    let condition = match p.bools.last().cloned() {
        Some(c) => c,
        None => p.line(&format!("arith.cmpi slt, {result}, %sa : {ty}")),
    };
    p.text += &format!(
        "    %r = tt.reshape {result} : {ty} -> tensor<{n}xi32>
    %os = tt.splat %out : !tt.ptr<i32> -> tensor<{n}x!tt.ptr<i32>>
    %op = tt.addptr %os, %i : tensor<{n}x!tt.ptr<i32>>, tensor<{n}xi32>
    tt.store %op, %r : tensor<{n}x!tt.ptr<i32>>
    %c = tt.reshape {condition} : {bt} -> tensor<{n}xi1>
    %cs = tt.splat %cond : !tt.ptr<i1> -> tensor<{n}x!tt.ptr<i1>>
    %cp = tt.addptr %cs, %i : tensor<{n}x!tt.ptr<i1>>, tensor<{n}xi32>
    tt.store %cp, %c : tensor<{n}x!tt.ptr<i1>>
    %width = arith.constant dense<{cols}> : {ty}
    %rows = arith.muli %row, %width : {ty}
    %flat = arith.addi %rows, %col : {ty}
    %ms = tt.splat %masked : !tt.ptr<i32> -> tensor<{rows}x{cols}x!tt.ptr<i32>>
    %mp = tt.addptr %ms, %flat : tensor<{rows}x{cols}x!tt.ptr<i32>>, {ty}
    %old = tt.load %mp, {condition}, %sb : tensor<{rows}x{cols}x!tt.ptr<i32>>
    %new = arith.addi %old, {result} : {ty}
    tt.store %mp, %new, {condition} : tensor<{rows}x{cols}x!tt.ptr<i32>>
    tt.return
  }}
}}
"
    );
    p.text
}

#[test]
fn compact_and_dense_agree() {
    for seed in 0..400u64 {
        let mut r = Random(seed + 1);
        let (rows, cols) = [(4, 8), (3, 5), (1, 9), (7, 1), (2, 2)][seed as usize % 5];
        let (a, b) = ((r.bits() % 17) as i64 - 5, i64::from(r.bits() as i32));
        let zero = vec![0i32; rows * cols];
        let mut results = Vec::new();
        for dense in [false, true] {
            let ir = generate(seed, rows, cols, 4 + seed as usize % 14, dense);
            let (mut out, mut cond) = (vec![9i32; rows * cols], vec![9u8; rows * cols]);
            let mut masked: Vec<i32> = (0..(rows * cols) as i32).collect();
            run(&ir, [1, 1, 1], &[ro(&zero), m(&mut out), m(&mut cond), m(&mut masked), int(a), int(b)]);
            results.push((out, cond, masked, ir));
        }
        let (x, y) = (&results[0], &results[1]);
        assert!(x.0 == y.0 && x.1 == y.1 && x.2 == y.2, "seed {seed}, a = {a}, b = {b}\n{}", x.3);
    }
}
