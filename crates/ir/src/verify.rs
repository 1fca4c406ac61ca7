//! The verifier: is the module what the passes and lowerings may assume?
//!
//! [`verify`] checks, for every operation: what its declaration says (operand groups, attributes, results, regions and what
//! passes through them, traits, [types](crate::typing), [shapes](crate::index) and the encodings that go with them), that
//! definitions dominate uses, that blocks end with terminators, and what is particular to the operation (the hooks of the
//! declarations).

use smallvec::SmallVec;

use crate::diagnostic::{Diagnostic, Kind};
use crate::dialect::{builtin, find_def};
use crate::entity::{Block, Op, Region, Type, Value};
use crate::flow;
use crate::index::{Crossing, Index, Relation};
use crate::module::{Module, ValueDef};
use crate::opdef::{Arity, OpDef, ResultsDef, Trait};
use crate::text::print_type;
use crate::types::TypeKind;
use crate::{Encoding, SharedKind, marks, typing, verify_layouts};

/// How many errors are reported at most.
const MAX_ERRORS: usize = 20;

/// Checks a module.
///
/// # Errors
/// What is wrong, each with its location, at most 20.
pub fn verify(module: &Module) -> Result<(), Vec<Diagnostic>> {
    let mut verifier = Verifier { m: module, order: vec![0; module.num_ops()], errors: Vec::new() };
    let mut next = 0;
    module.walk(module.root(), &mut |op| {
        verifier.order[op.as_u32() as usize] = next;
        next += 1;
    });
    verifier.op(module.root());
    if verifier.errors.is_empty() { Ok(()) } else { Err(verifier.errors) }
}

/// Checks that no module lies within the module: such are read, verified and printed, but not compiled.
///
/// # Errors
/// The first module within it.
pub fn verify_flat(module: &Module) -> Result<(), Diagnostic> {
    match module.block_ops(module.body()).find(|&op| builtin::Module::cast(module, op).is_some()) {
        Some(inner) => {
            let text =
                "not supported yet: a module within a module, or beside something else, is not compiled";
            Err(Diagnostic::at(module, module.op_loc(inner), text).of(Kind::Unsupported))
        }
        None => Ok(()),
    }
}

struct Verifier<'m> {
    m: &'m Module,
    /// Position of each operation in the order of a walk.
    order: Vec<u32>,
    errors: Vec<Diagnostic>,
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
                .and_then(|()| marked(self.m, op, def))
                .and_then(|()| ends(self.m, op, def))
                .and_then(|()| passed(self.m, op))
                .and_then(|()| typing::check(self.m, op, def))
                .and_then(|()| related(self.m, op, def.index))
                .and_then(|()| def.verify.map_or(Ok(()), |v| v(self.m, op)))
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

    /// A layout is for registers or for shared memory, and for the machine that the module says. (Whether every tensor has one is what passes
    /// and lowering want to know.)
    fn encodings(&self, op: Op) -> Result<(), String> {
        for &v in self.m.operands(op).iter().chain(self.m.results(op)) {
            fits_kind(self.m, self.m.value_type(v))?;
        }
        let mut results = self.m.results(op).iter().map(|&result| self.m.value_type(result));
        results.try_for_each(|ty| verify_layouts::fits_machine(self.m, op, ty))
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
    let types: Vec<Type> = results.iter().map(|&r| m.value_type(r)).collect();
    match def.results {
        ResultsDef::Given(names) if names.len() != results.len() && !def.adds_token(&types) => {
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
    Ok(())
}

/// Marks lie where the declaration has them.
fn marked(m: &Module, op: Op, def: &OpDef) -> Result<(), String> {
    let is_mark = |name: &str| marks::DECLARED.iter().any(|(n, _)| *n == name);
    match m.op_attrs(op).iter().find(|(name, _)| is_mark(name) && !def.marks.contains(&&**name)) {
        Some((name, _)) => Err(format!("`{name}` says nothing of this operation")),
        None => Ok(()),
    }
}

/// Regions end with the operations that their declaration names, and those end nothing else.
fn ends(m: &Module, op: Op, def: &OpDef) -> Result<(), String> {
    for (&region, declared) in m.regions(op).iter().zip(def.regions) {
        for &block in m.region_blocks(region) {
            let end = m.last_op(block);
            if !declared.ends.is_empty() && end.is_none_or(|o| m.op_name(o) != declared.ends) {
                return Err(format!("`{}` must end with {}", declared.name, declared.ends));
            }
            let foreign = end.is_some_and(|o| ends_a_declared_region(m.op_name(o)));
            if declared.ends.is_empty() && foreign {
                return Err(format!(
                    "`{}` cannot end with {}",
                    declared.name,
                    m.op_name(end.expect("found"))
                ));
            }
        }
    }
    Ok(())
}

fn ends_a_declared_region(name: &str) -> bool {
    find_def(name).is_some_and(|d| d.has(Trait::Terminator))
        && crate::dialect::all_defs().any(|d| d.regions.iter().any(|r| r.ends == name))
}

/// What passes through regions keeps its type.
fn passed(m: &Module, op: Op) -> Result<(), String> {
    for edge in flow::edges(m, op) {
        let from = match m.def(edge.user).filter(|_| edge.user == op) {
            // A group of operands.
            Some(def) => {
                let sizes = (0..def.operands.len()).map(|g| m.operand_group(op, g));
                let mut begin = 0;
                let mut found: &[Value] = &[];
                for group in sizes {
                    if begin == edge.first {
                        found = group;
                    }
                    begin += group.len();
                }
                found
            }
            None => m.operands(edge.user).get(edge.first..).unwrap_or(&[]),
        };
        let what = if edge.user == op { "operands" } else { "yielded types" };
        let to = if edge.to == m.results(op) { "the results" } else { "the region's arguments" };
        typing::same_types(m, what, from, to, edge.to)?;
    }
    Ok(())
}

fn encoding(m: &Module, ty: Type) -> Option<&Encoding> {
    m.encoding(ty).and_then(|a| m.encoding_of(a))
}

/// Shapes fit the index relation, and encodings follow it where they say which.
fn related(m: &Module, op: Op, index: Index) -> Result<(), String> {
    let relation = Relation::of(m, op)?;
    let values: Vec<Value> = m.operands(op).iter().chain(m.results(op)).copied().collect();
    let sites = relation.operands.iter().chain(&relation.results);
    let tensors: Vec<_> = values
        .iter()
        .map(|&v| m.value_type(v))
        .zip(sites)
        .filter(|(ty, _)| m.is_tensor(*ty))
        .filter_map(|(ty, site)| Some((ty, site.as_ref()?)))
        .collect();
    if matches!(index, Index::Relayout | Index::Generated | Index::Whole | Index::Concat) {
        return Ok(());
    }
    for (i, &(a, of_a)) in tensors.iter().enumerate() {
        for &(b, of_b) in &tensors[i + 1..] {
            if m.encoding(a).is_some() != m.encoding(b).is_some() {
                let (with, without) = if m.encoding(a).is_some() { (a, b) } else { (b, a) };
                let [with, without] = [with, without].map(|ty| print_type(m, ty));
                return Err(format!("{without} has no layout, but {with} has one"));
            }
            let crossing = relation.crossing(of_a, of_b);
            verify_layouts::follows(m, crossing.as_ref(), a, b)?;
            let sliced = match crossing {
                Some(Crossing::Same) if m.encoding(a) != m.encoding(b) => {
                    return Err(format!(
                        "layouts must be the same, but those of {} and {} differ",
                        print_type(m, a),
                        print_type(m, b)
                    ));
                }
                Some(Crossing::Drop(axis)) => Some((encoding(m, b), encoding(m, a), axis)),
                Some(Crossing::Insert(axis)) => Some((encoding(m, a), encoding(m, b), axis)),
                _ => None,
            };
            // Other encodings can say the same layout; their bases are the layout crate's matter.
            if let Some((Some(Encoding::Slice { dim, parent }), Some(whole), axis)) = sliced
                && (*dim as usize != axis || **parent != *whole)
            {
                return Err(format!(
                    "the layout of the smaller tensor must be the slice of the larger one's along {axis}"
                ));
            }
        }
    }
    if index == Index::Contraction {
        let mut widths: SmallVec<[u32; 2]> = SmallVec::new();
        for (operand, &v) in m.operands(op).iter().take(2).enumerate() {
            let Some(Encoding::DotOperand { op_idx, parent, k_width }) = encoding(m, m.value_type(v)) else {
                continue;
            };
            if *op_idx as usize != operand {
                return Err(format!("operand {operand} has the layout of operand {op_idx}"));
            }
            if widths.iter().any(|n| n != k_width) {
                return Err(format!("the operands are for different `kWidth`: {} and {k_width}", widths[0]));
            }
            widths.push(*k_width);
            let result = encoding(m, m.value_type(m.results(op)[0]));
            if result.is_some_and(|e| *e != **parent && !same_fragments(e, parent)) {
                return Err(format!("the layout of operand {operand} is for another result's layout"));
            }
        }
    }
    Ok(())
}

/// Whether products of warp groups with these result layouts read `a` from registers alike: the width n of an instruction does not matter.
fn same_fragments(a: &Encoding, b: &Encoding) -> bool {
    match (a, b) {
        (
            Encoding::NvidiaMma { version_major: 3, warps_per_cta: x, instr_shape: i, .. },
            Encoding::NvidiaMma { version_major: 3, warps_per_cta: y, instr_shape: j, .. },
        ) => x == y && i.first() == j.first() && i.get(2) == j.get(2),
        _ => false,
    }
}

/// Tensors have layouts of registers, buffers of shared memory.
fn fits_kind(m: &Module, ty: Type) -> Result<(), String> {
    let found = encoding(m, ty);
    let is_shared = matches!(found, Some(Encoding::Shared(_)));
    if m.is_tensor(ty) && is_shared {
        return Err(format!("the tensor {} has a layout of shared memory", print_type(m, ty)));
    }
    if matches!(m.type_kind(ty), TypeKind::MemDesc { .. }) && found.is_some() && !is_shared {
        return Err(format!("the buffer {} has a layout of registers", print_type(m, ty)));
    }
    if let Some(Encoding::Shared(SharedKind::Swizzled { order, .. } | SharedKind::Padded { order, .. })) =
        found
        && m.shape(ty).is_some_and(|shape| order.len() > shape.len() + 1)
    {
        return Err(format!("the layout of {} has more dimensions than it", print_type(m, ty)));
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
                "it must be i1 with the shape and layout of `ptr`",
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
                "yielded types () do not fit the results (i32)",
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
                "tt.func @f(%x: tensor<8xf32>, %y: tensor<8xf16>, %c: i1) { \
                 %0 = \"arith.select\"(%c, %x, %y) : (i1, tensor<8xf32>, tensor<8xf16>) -> tensor<8xf32> tt.return }",
                "`false_value` has type tensor<8xf16>; it must be the type of `true_value`",
            ),
            (
                "tt.func @f(%x: tensor<8xf32>, %y: tensor<8xf16>) { \
                 %0 = tt.cat %x, %y : tensor<8xf32> -> tensor<16xf32> tt.return }",
                "elements as those of `lhs`",
            ),
            (
                "tt.func @f(%x: tensor<4x2xf32>) { \
                 %0 = tt.trans %x {order = array<i32: 1, 0>} : tensor<4x2xf32> -> tensor<2x4xf16> tt.return }",
                "elements as those of `src`",
            ),
            (
                "tt.func @f(%x: i32) { %0 = arith.addi %x, %x {tt.vec = 4 : i32} : i32 tt.return }",
                "`tt.vec` says nothing of this operation",
            ),
            ("tt.func @f(%x: i32) { tt.reduce.return %x : i32 }", "`body` cannot end with tt.reduce.return"),
            (
                "tt.func @f(%b: !ttg.memdesc<8x4xf32, #ttg.shared_memory>) { %0 = ttg.memdesc_reshape %b : \
                 !ttg.memdesc<8x4xf32, #ttg.shared_memory> -> !ttg.memdesc<8x2xf32, #ttg.shared_memory> tt.return }",
                "does not reshape to",
            ),
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

    #[test]
    fn what_descriptors_are_made_of_has_its_types() {
        for (body, message) in [
            (
                "tt.func @f(%p: !tt.ptr<f32>, %n: i64) { %0 = tt.make_tensor_descriptor %p, [%n], [%n] : \
                 !tt.ptr<f32>, !tt.tensordesc<tensor<16xf32>> tt.return }",
                "`shape` has type i64; it must be i32",
            ),
            (
                "tt.func @f(%p: !tt.ptr<f32>, %n: i32) { %0 = tt.make_tensor_descriptor %p, [%n], [%n] : \
                 !tt.ptr<f32>, !tt.tensordesc<tensor<16xf32>> tt.return }",
                "`strides` has type i32; it must be i64",
            ),
            (
                "tt.func @f(%p: !tt.ptr<tensor<16xf32>>, %n: i64) { \
                 %0 = tt.advance %p, [%n] : <tensor<16xf32>> tt.return }",
                "`offsets` has type i64; it must be i32",
            ),
        ] {
            let e = errors(body);
            assert!(e.contains(message), "{body}\n{e}");
        }
    }
}
