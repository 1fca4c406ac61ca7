//! The verifier: is the module what the passes and lowerings may assume?
//!
//! [`verify`] checks, for every operation: what its declaration says (operand groups, attributes, results, regions,
//! traits), that definitions dominate uses, that blocks end with terminators, and what is particular to the operation
//! (`verify_ops.rs` and the hooks of the declarations).

use crate::diagnostic::Diagnostic;
use crate::dialect::{builtin, tt};
use crate::entity::{Block, Op, Region, Value};
use crate::module::{Module, ValueDef};
use crate::opdef::{Arity, OpDef, ResultsDef, Trait};
use crate::text::print_type;
use crate::verify_ops;

/// How many errors are reported at most.
const MAX_ERRORS: usize = 20;

/// Checks a module.
///
/// # Errors
/// What is wrong, each with its location, at most 20.
pub fn verify(module: &Module) -> Result<(), Vec<Diagnostic>> {
    let mut verifier =
        Verifier { m: module, order: vec![0; module.num_ops()], errors: Vec::new(), ttg: false };
    verifier.ttg = module.op_attr(module.root(), "ttg.num-warps").is_some();
    let mut next = 0;
    module.walk(module.root(), &mut |op| {
        verifier.order[op.as_u32() as usize] = next;
        next += 1;
    });
    verifier.op(module.root());
    if verifier.errors.is_empty() { Ok(()) } else { Err(verifier.errors) }
}

struct Verifier<'m> {
    m: &'m Module,
    /// Position of each operation in the order of a walk.
    order: Vec<u32>,
    errors: Vec<Diagnostic>,
    /// Whether tensors must have encodings.
    ttg: bool,
}

impl Verifier<'_> {
    fn report(&mut self, op: Op, message: &str) {
        let text = format!("`{}`: {message}", self.m.op_name(op));
        self.errors.push(Diagnostic::at(self.m, self.m.op_loc(op), text));
    }

    fn op(&mut self, op: Op) {
        if self.errors.len() >= MAX_ERRORS {
            return;
        }
        self.operands(op);
        let result = match self.m.def(op) {
            Some(def) => declared(self.m, op, def)
                .and_then(|()| def.verify.map_or(Ok(()), |v| v(self.m, op)))
                .and_then(|()| verify_ops::check(self.m, op, def.opcode))
                .and_then(|()| self.encodings(op)),
            None => Ok(()),
        };
        if let Err(message) = result {
            self.report(op, &message);
        }
        for (index, &region) in self.m.regions(op).iter().enumerate() {
            self.region(op, region, index);
        }
    }

    /// In a `ttg` module every tensor has a layout.
    fn encodings(&self, op: Op) -> Result<(), String> {
        if !self.ttg {
            return Ok(());
        }
        for &result in self.m.results(op) {
            let ty = self.m.value_type(result);
            if self.m.is_tensor(ty) && self.m.encoding(ty).is_none() && !within_combine(self.m, op) {
                return Err(format!("the result of type {} has no layout", print_type(self.m, ty)));
            }
        }
        Ok(())
    }

    fn operands(&mut self, op: Op) {
        for (index, &value) in self.m.operands(op).iter().enumerate() {
            let message = match self.visibility(op, value) {
                Visibility::Visible => continue,
                Visibility::Detached => "is not defined in the module",
                Visibility::BehindIsolation => "is defined outside of a region that cannot see it",
                Visibility::NotDominating => "is not defined on every path that leads here",
            };
            self.report(op, &format!("operand {index} {message}"));
        }
    }

    fn visibility(&self, op: Op, value: Value) -> Visibility {
        let m = self.m;
        let (def_block, def_op) = match m.value_def(value) {
            ValueDef::Result(d, _) => match m.parent_block(d) {
                Some(b) if !m.is_erased(d) => (b, Some(d)),
                _ => return Visibility::Detached,
            },
            ValueDef::Argument(b, _) => (b, None),
        };
        let Some(def_region) = m.block_region(def_block) else { return Visibility::Detached };
        // The operation around (or equal to) the use that lies in the region of the definition.
        let mut at = op;
        let use_block = loop {
            let Some(block) = m.parent_block(at) else { return Visibility::NotDominating };
            if m.block_region(block) == Some(def_region) {
                break block;
            }
            let Some(parent) = m.parent_op(at) else { return Visibility::NotDominating };
            if m.has_trait(parent, Trait::Isolated) {
                return Visibility::BehindIsolation;
            }
            at = parent;
        };
        if use_block == def_block {
            return match def_op {
                // A use inside the defining operation's own regions comes after it in a walk but is not dominated.
                Some(d) if d == at || self.order[d.as_u32() as usize] > self.order[at.as_u32() as usize] => {
                    Visibility::NotDominating
                }
                _ => Visibility::Visible,
            };
        }
        if dominates(m, def_region, def_block, use_block) {
            Visibility::Visible
        } else {
            Visibility::NotDominating
        }
    }

    fn region(&mut self, parent: Op, region: Region, index: usize) {
        let m = self.m;
        let blocks = m.region_blocks(region);
        let def = m.def(parent);
        let is_module = builtin::Module::cast(m, parent).is_some();
        for &block in blocks {
            let last = m.last_op(block);
            match last {
                Some(o) if is_module || m.def(o).is_none() || m.has_trait(o, Trait::Terminator) => {}
                None if is_module || def.is_none() => {}
                Some(o) if def.is_some() => {
                    self.report(o, "the last operation of a block must be a terminator");
                }
                Some(_) => {}
                None => self.report(parent, &format!("a block of region {index} is empty: no terminator")),
            }
            for op in m.block_ops(block) {
                if Some(op) != last && m.has_trait(op, Trait::Terminator) {
                    self.report(op, "a terminator must be the last operation of its block");
                }
                if m.parent_block(op) != Some(block) {
                    self.report(op, "the operation's parent is another block");
                }
                for &successor in m.successors(op) {
                    if m.block_region(successor) != Some(region) {
                        self.report(op, "a successor lies in another region");
                    }
                }
                self.op(op);
            }
        }
    }
}

enum Visibility {
    Visible,
    Detached,
    BehindIsolation,
    NotDominating,
}

/// Whether every path from a region's entry to `block` goes through `by`: it cannot be reached around `by`.
fn dominates(m: &Module, region: Region, by: Block, block: Block) -> bool {
    let Some(&entry) = m.region_blocks(region).first() else { return false };
    if by == entry {
        return true;
    }
    let mut seen = vec![entry];
    let mut next = 0;
    while let Some(&at) = seen.get(next) {
        next += 1;
        if at == block {
            return false;
        }
        let Some(last) = m.last_op(at) else { continue };
        for &s in m.successors(last) {
            if s != by && !seen.contains(&s) {
                seen.push(s);
            }
        }
    }
    true
}

/// Whether an operation lies in the combine function of a reduction or scan, which works on scalars.
fn within_combine(m: &Module, op: Op) -> bool {
    m.parent_op(op).is_some_and(|p| tt::Reduce::cast(m, p).is_some() || tt::Scan::cast(m, p).is_some())
}

/// What the declaration says.
fn declared(m: &Module, op: Op, def: &OpDef) -> Result<(), String> {
    let operands = m.operands(op).len();
    if def.has_segments() {
        let sizes = m.segments(op);
        if sizes.len() != def.operands.len() || sizes.iter().map(|&n| n as usize).sum::<usize>() != operands {
            return Err("the sizes of the operand groups do not fit its operands".into());
        }
        for (o, &n) in def.operands.iter().zip(sizes) {
            let fits = match o.arity {
                Arity::One => n == 1,
                Arity::Optional => n <= 1,
                Arity::Variadic => true,
            };
            if !fits {
                return Err(format!("`{}` cannot be {n} operands", o.name));
            }
        }
    } else if operands != def.operands.len() {
        return Err(format!("{operands} operands instead of {}", def.operands.len()));
    }
    for attr in def.attrs {
        let present = m.op_attr(op, attr.name);
        if present.is_none() && !attr.optional {
            return Err(format!("the attribute `{}` is missing", attr.name));
        }
        if !(attr.check)(m, present) {
            return Err(format!("the attribute `{}` is not of the kind {}", attr.name, attr.ty));
        }
    }
    if m.regions(op).len() != def.regions.len() && !def.has(Trait::VariadicRegions) {
        return Err(format!("{} regions instead of {}", m.regions(op).len(), def.regions.len()));
    }
    if def.has(Trait::SingleBlock) {
        for &region in m.regions(op) {
            let blocks = m.region_blocks(region).len();
            if blocks != 1 {
                return Err(format!("each region must have one block, not {blocks}"));
            }
        }
    }
    let results = m.results(op);
    match def.results {
        ResultsDef::Given(names) if names.len() != results.len() => {
            return Err(format!("{} results instead of {}", results.len(), names.len()));
        }
        ResultsDef::SameAs(group) => {
            let &[result] = results else { return Err(format!("{} results instead of 1", results.len())) };
            let source = def.group(group).and_then(|g| m.operand_group(op, g).first().copied());
            if let Some(source) = source
                && m.value_type(source) != m.value_type(result)
            {
                return Err(format!(
                    "the result has type {}, but `{group}` has {}",
                    print_type(m, m.value_type(result)),
                    print_type(m, m.value_type(source))
                ));
            }
        }
        _ => {}
    }
    let mut values = m.operands(op).iter().chain(results).map(|&v| m.value_type(v));
    if def.has(Trait::SameTypes)
        && let Some(first) = values.next()
        && let Some(other) = values.find(|&t| t != first)
    {
        return Err(format!(
            "all types must be the same, but {} and {} differ",
            print_type(m, first),
            print_type(m, other)
        ));
    }
    if def.has(Trait::Elementwise) {
        let mut tensors =
            m.operands(op).iter().chain(results).map(|&v| m.value_type(v)).filter(|&t| m.shape(t).is_some());
        if let Some(first) = tensors.next()
            && let Some(other) =
                tensors.find(|&t| m.shape(t) != m.shape(first) || m.encoding(t) != m.encoding(first))
        {
            return Err(format!(
                "shapes and layouts must be the same, but {} and {} differ",
                print_type(m, first),
                print_type(m, other)
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse;

    fn errors(body: &str) -> String {
        let text = format!("tt.func @callee(%x: i32) -> i32 {{ tt.return %x : i32 }}\n{body}");
        let module = parse(&text, "t.mlir").unwrap_or_else(|e| panic!("{e}"));
        match verify(&module) {
            Ok(()) => String::new(),
            Err(errors) => errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
        }
    }

    #[test]
    fn what_is_right_passes() {
        let text = r#"
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 4 : i32} {
tt.func @f(%n: i32, %c: i1, %p: tensor<64x32x!tt.ptr<f16>, #blocked>) {
  %0 = arith.constant dense<0.0> : tensor<64x32xf32, #blocked>
  %b = ttg.local_alloc : () -> !ttg.memdesc<2x64x32xf16, #shared, #smem, mutable>
  %r = scf.for %i = %n to %n step %n iter_args(%acc = %0) -> (tensor<64x32xf32, #blocked>) : i32 {
    %v = ttg.memdesc_index %b[%i] : !ttg.memdesc<2x64x32xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x32xf16, #shared, #smem, mutable>
    %t = ttg.async_copy_global_to_local %p, %v : tensor<64x32x!tt.ptr<f16>, #blocked> -> !ttg.memdesc<64x32xf16, #shared, #smem, mutable>
    %w = ttg.async_wait {num = 0 : i32}
    %a = ttg.local_load %v token %w : !ttg.memdesc<64x32xf16, #shared, #smem, mutable> -> tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
    %vt = ttg.memdesc_trans %v {order = array<i32: 1, 0>} : !ttg.memdesc<64x32xf16, #shared, #smem, mutable> -> !ttg.memdesc<32x64xf16, #shared, #smem, mutable>
    %bt = ttg.local_load %vt : !ttg.memdesc<32x64xf16, #shared, #smem, mutable> -> tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>>
    %z = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %d = tt.dot %a, %bt, %z : tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>> -> tensor<64x64xf32, #mma>
    %m = "tt.reduce"(%d) <{axis = 1 : i32}> ({
    ^bb0(%x: f32, %y: f32):
      %s = arith.addf %x, %y : f32
      tt.reduce.return %s : f32
    }) : (tensor<64x64xf32, #mma>) -> tensor<64xf32, #ttg.slice<{dim = 1, parent = #mma}>>
    %e = tt.expand_dims %m {axis = 1 : i32} : tensor<64xf32, #ttg.slice<{dim = 1, parent = #mma}>> -> tensor<64x1xf32, #mma>
    %bc = tt.broadcast %e : tensor<64x1xf32, #mma> -> tensor<64x32xf32, #mma>
    %cv = ttg.convert_layout %bc : tensor<64x32xf32, #mma> -> tensor<64x32xf32, #blocked>
    %sum = arith.addf %acc, %cv : tensor<64x32xf32, #blocked>
    %q = tt.call @callee(%i) : (i32) -> i32
    scf.yield %sum : tensor<64x32xf32, #blocked>
  }
  %u = scf.while (%x = %n) : (i32) -> i32 {
    scf.condition(%c) %x : i32
  } do {
  ^bb0(%x: i32):
    %y = scf.if %c -> (i32) { scf.yield %x : i32 } else { scf.yield %n : i32 }
    scf.yield %y : i32
  }
  ttg.local_dealloc %b : !ttg.memdesc<2x64x32xf16, #shared, #smem, mutable>
  tt.return
}
tt.func @callee(%x: i32) -> i32 { cf.br ^bb1(%x : i32)
^bb1(%y: i32):
  tt.return %y : i32 }
}"#;
        let module = parse(text, "t.mlir").unwrap_or_else(|e| panic!("{e}"));
        if let Err(errors) = verify(&module) {
            panic!("{}", errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"));
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let e = errors("tt.func @f(%x: i32) {\n  %0 = tt.call @nope(%x) : (i32) -> i32\n  tt.return\n}");
        assert!(e.contains("there is no function @nope") && e.contains("t.mlir:3:8"), "{e}");
    }

    #[test]
    fn each_rule_is_checked() {
        for (body, message) in [
            ("tt.func @f() -> i32 { tt.return }", "returned types () do not fit the function's (i32)"),
            (
                "tt.func @f(%x: i32) { %0 = tt.call @callee(%x) : (i32) -> f32 tt.return }",
                "results (f32) do not fit",
            ),
            ("tt.func @f() { %0 = arith.constant 1 : i32 }", "must be a terminator"),
            ("tt.func @f() { tt.return tt.return }", "must be the last operation"),
            (
                "tt.func @f() { %1 = arith.addi %0, %0 : i32 %0 = arith.constant 1 : i32 tt.return }",
                "operand 0 is not defined on every path",
            ),
            (
                "tt.func @f(%c: i1) { cf.cond_br %c, ^bb1, ^bb2 ^bb1: %0 = arith.constant 1 : i32 cf.br ^bb2 ^bb2: \
                 %1 = arith.addi %0, %0 : i32 tt.return }",
                "operand 0 is not defined on every path",
            ),
            (
                "tt.func @f(%p: tensor<8x!tt.ptr<f32>>, %m: tensor<4xi1>) { \
                 %0 = tt.load %p, %m : tensor<8x!tt.ptr<f32>> tt.return }",
                "the mask must be i1",
            ),
            (
                "tt.func @f(%x: tensor<8xf32>) { %0 = tt.broadcast %x : tensor<8xf32> -> tensor<16xf32> tt.return }",
                "does not broadcast",
            ),
            (
                "tt.func @f(%x: tensor<8xi32>) { %0 = arith.extsi %x : tensor<8xi32> to tensor<8xi16> tt.return }",
                "no conversion",
            ),
            ("tt.func @f(%x: i32, %y: f32) { %0 = arith.addf %x, %x : i32 tt.return }", "floats expected"),
            (
                "tt.func @f(%c: i1, %x: i32) { %0 = scf.if %c -> (i32) { scf.yield %x : i32 } else { } tt.return }",
                "yielded types () do not fit",
            ),
            (
                "tt.func @f(%x: i32) { \"scf.for\"(%x, %x, %x, %x) ({ ^bb0(%i: i32): scf.yield }) : \
                 (i32, i32, i32, i32) -> i32 tt.return }",
                "the body's arguments",
            ),
            (
                "tt.func @f(%x: tensor<8xf32>) { %0 = \"tt.reduce\"(%x) <{axis = 1 : i32}> ({ ^bb0(%a: f32, %b: f32): \
                 tt.reduce.return %a : f32 }) : (tensor<8xf32>) -> f32 tt.return }",
                "axis 1 is out of range",
            ),
            (
                "tt.func @f(%x: tensor<8xf32>) { %0 = \"tt.reduce\"(%x) <{axis = 0 : i32}> ({ ^bb0(%a: f32, %b: i32): \
                 tt.reduce.return %a : f32 }) : (tensor<8xf32>) -> f32 tt.return }",
                "combine function's arguments",
            ),
            (
                "tt.func @f(%x: tensor<8xf32>) { %0 = \"tt.reduce\"(%x) ({ ^bb0(%a: f32, %b: f32): \
                 tt.reduce.return %a : f32 }) : (tensor<8xf32>) -> f32 tt.return }",
                "the attribute `axis` is missing",
            ),
            (
                "tt.func @f(%a: tensor<8x4xf32>, %b: tensor<8x4xf32>, %c: tensor<8x4xf32>) { \
                 %0 = tt.dot %a, %b, %c : tensor<8x4xf32> * tensor<8x4xf32> -> tensor<8x4xf32> tt.return }",
                "do not fit",
            ),
            ("\"tt.func\"() ({ ^bb0: tt.return }) : () -> ()", "the attribute `sym_name` is missing"),
            (
                "tt.func @f(%x: tensor<8xf32>) { %0 = tt.trans %x {order = array<i32: 1>} : tensor<8xf32> -> tensor<8xf32> \
                 tt.return }",
                "no permutation",
            ),
        ] {
            let e = errors(body);
            assert!(e.contains(message), "{body}\n{e}");
        }
    }
}
