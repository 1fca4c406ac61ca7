//! Checks the contract of this crate's page: encodings that agree around every operation.
//!
//! The lowering relies on it without looking; a pass that breaks it is found here, by the operation it broke, instead of
//! in wrong results. Runs after the pipeline where debug assertions are on.

use tilewright_ir::dialect::{scf, tt, ttg};
use tilewright_ir::{Diagnostic, Encoding, Module, Op, Opcode, SharedKind, Value};
use tilewright_layout::TileLayout;

use crate::{derive, scope};

/// Checks every operation of the module.
///
/// # Errors
/// The first operation that breaks the contract, and how.
pub fn run(module: &Module) -> Result<(), Diagnostic> {
    for op in module.all_ops(module.root()) {
        check(module, op).map_err(|message| {
            Diagnostic::at(module, module.op_loc(op), format!("{}: {message}", module.op_name(op)))
                .note("this is a bug of the compiler, not of the kernel")
        })?;
    }
    Ok(())
}

fn encoding(module: &Module, value: Value) -> Option<&Encoding> {
    module.encoding(module.value_type(value)).and_then(|a| module.encoding_of(a))
}

fn same(module: &Module, values: &[Value]) -> Result<(), String> {
    let mut tensors = values.iter().filter(|&&v| derive::is_tensor(module, v));
    let Some(&first) = tensors.next() else { return Ok(()) };
    match tensors.find(|&&v| encoding(module, v) != encoding(module, first)) {
        Some(&v) => {
            Err(format!("encodings differ: {:?} and {:?}", encoding(module, first), encoding(module, v)))
        }
        None => Ok(()),
    }
}

fn same_types(module: &Module, a: &[Value], b: &[Value]) -> Result<(), String> {
    match a.iter().zip(b).find(|(x, y)| module.value_type(**x) != module.value_type(**y)) {
        Some((x, y)) => Err(format!(
            "a carried value changes its encoding: {:?} and {:?}",
            encoding(module, *x),
            encoding(module, *y)
        )),
        None if a.len() != b.len() => Err("carried values are missing".into()),
        None => Ok(()),
    }
}

fn check(module: &Module, op: Op) -> Result<(), String> {
    for &v in module.operands(op).iter().chain(module.results(op)) {
        if derive::is_tensor(module, v) {
            let enc = encoding(module, v).ok_or("a tensor without an encoding")?;
            let shape = module.shape(module.value_type(v)).unwrap_or(&[]);
            let layout = TileLayout::new(enc, shape).map_err(|e| e.to_string())?;
            let warps = scope::num_warps(module, op);
            if layout.num_warps() > warps {
                return Err(format!("an encoding for {} warps where there are {warps}", layout.num_warps()));
            }
        }
    }
    let operands = module.operands(op);
    let results = module.results(op);
    let all: Vec<Value> = operands.iter().chain(results).copied().collect();
    match module.opcode(op) {
        Some(Opcode::Tt(tt::Kind::Load | tt::Kind::Store | tt::Kind::AtomicRmw | tt::Kind::AtomicCas)) => {
            let tensor = operands.first().is_some_and(|&v| derive::is_tensor(module, v));
            if tensor && module.int_attr(op, "tt.vec").is_none_or(|v| v < 1) {
                return Err("no tt.vec".into());
            }
            same(module, &all)
        }
        Some(Opcode::Ttg(ttg::Kind::AsyncCopyGlobalToLocal)) => same(module, &all),
        Some(Opcode::Tt(tt::Kind::Histogram)) => same(module, operands),
        Some(Opcode::Tt(tt::Kind::ExpandDims | tt::Kind::Reduce)) => {
            same(module, operands)?;
            same(module, results)?;
            let (Some(&src), Some(&dst)) = (operands.first(), results.first()) else { return Ok(()) };
            let (outer, inner, axis) = match tt::Reduce::cast(module, op) {
                Some(r) => (src, dst, r.axis(module)),
                None => (dst, src, tt::ExpandDims(op).axis(module)),
            };
            match (encoding(module, outer), encoding(module, inner)) {
                (Some(outer), Some(Encoding::Slice { dim, parent }))
                    if *dim as i32 == axis && **parent == *outer =>
                {
                    Ok(())
                }
                (_, None) => Ok(()), // reduced to a scalar
                (outer, inner) => Err(format!("{inner:?} is not slice<{axis}> of {outer:?}")),
            }
        }
        Some(Opcode::Tt(tt::Kind::Dot)) => {
            let dot = tt::Dot(op);
            same(module, &[dot.c(module), dot.result(module)])?;
            let parent = encoding(module, dot.c(module));
            for (idx, v) in [(0, dot.a(module)), (1, dot.b(module))] {
                match encoding(module, v) {
                    Some(Encoding::DotOperand { op_idx, parent: p, .. })
                        if *op_idx == idx && Some(p.as_ref()) == parent => {}
                    other => return Err(format!("operand {idx} has {other:?}, the result {parent:?}")),
                }
            }
            Ok(())
        }
        Some(Opcode::Ttg(ttg::Kind::MemdescIndex)) => {
            let index = ttg::MemdescIndex(op);
            match encoding(module, index.src(module)) == encoding(module, index.result(module)) {
                true => Ok(()),
                false => Err("a slot is laid out otherwise than its ring".into()),
            }
        }
        Some(Opcode::Ttg(ttg::Kind::MemdescTrans)) => view_of(module, ttg::MemdescTrans(op)),
        Some(Opcode::Scf(scf::Kind::For)) => {
            let l = scf::For(op);
            let body = module.region_block(l.body(module));
            same_types(module, l.init(module), &module.block_args(body)[1..])?;
            same_types(module, results, &module.block_args(body)[1..])?;
            let end = module.last_op(body).ok_or("a loop without an end")?;
            same_types(module, module.operands(end), results)
        }
        Some(Opcode::Scf(scf::Kind::If)) => {
            for &region in module.regions(op) {
                if let Some(end) = module.region_blocks(region).first().and_then(|&b| module.last_op(b)) {
                    same_types(module, module.operands(end), results)?;
                }
            }
            Ok(())
        }
        Some(Opcode::Scf(scf::Kind::While)) => {
            let w = scf::While(op);
            let (before, after) =
                (module.region_block(w.before(module)), module.region_block(w.after(module)));
            same_types(module, w.init(module), module.block_args(before))?;
            let condition = module.last_op(before).ok_or("a loop without a condition")?;
            same_types(module, &module.operands(condition)[1..], results)?;
            same_types(module, module.block_args(after), results)?;
            let end = module.last_op(after).ok_or("a loop without an end")?;
            same_types(module, module.operands(end), module.block_args(before))
        }
        Some(Opcode::Tt(tt::Kind::Split)) => same(module, results),
        _ if derive::shares_encoding(module, op) => same(module, &all),
        _ => Ok(()),
    }
}

/// A transposed view keeps everything of its buffer's layout but the order of dimensions.
fn view_of(module: &Module, op: ttg::MemdescTrans) -> Result<(), String> {
    let (src, result) = (encoding(module, op.src(module)), encoding(module, op.result(module)));
    let agree = match (src, result) {
        (Some(Encoding::Shared(a)), Some(Encoding::Shared(b))) => match (a, b) {
            (
                SharedKind::Swizzled { vec, per_phase, max_phase, .. },
                SharedKind::Swizzled { vec: v, per_phase: p, max_phase: m, .. },
            ) => (vec, per_phase, max_phase) == (v, p, m),
            (
                SharedKind::NvmmaShared { swizzle_bytes, element_bits, .. },
                SharedKind::NvmmaShared { swizzle_bytes: s, element_bits: e, .. },
            ) => (swizzle_bytes, element_bits) == (s, e),
            _ => false,
        },
        _ => false,
    };
    if agree { Ok(()) } else { Err(format!("{result:?} is not a view of {src:?}")) }
}
