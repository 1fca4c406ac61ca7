//! Checks the contract of this crate's page: what the declarations of the operations say, encodings that fit the warps, and
//! what only the lowering wants.
//!
//! The lowering relies on it without looking; a pass that breaks it is found here, by the operation it broke, instead of
//! in wrong results. This is the property [`LaidOut`](crate::pass::Property::LaidOut).

use tilewright_ir::diagnostic::Kind;
use tilewright_ir::dialect::{tt, ttg, ttng};
use tilewright_ir::index::Index;
use tilewright_ir::marks;
use tilewright_ir::text::{print_attr, print_type};
use tilewright_ir::{Diagnostic, Encoding, Module, Op, Opcode, SharedKind, Value};
use tilewright_layout::{TileLayout, TmaBlock};

use crate::analysis::{encoding_inference, scope};
use crate::hopper::tma;
use crate::level::Level;

/// Checks every operation of the module.
///
/// # Errors
/// The first operation that breaks the contract, and how.
pub fn run(module: &Module) -> Result<(), Diagnostic> {
    let bug = |d: Diagnostic| d.of(Kind::Internal).note("this is a bug of the compiler, not of the kernel");
    if let Err(errors) = tilewright_ir::verify(module)
        && let Some(first) = errors.into_iter().next()
    {
        return Err(bug(first));
    }
    for op in module.all_ops(module.root()) {
        check(module, op).map_err(|message| {
            bug(Diagnostic::at(module, module.op_loc(op), format!("{}: {message}", module.op_name(op))))
        })?;
    }
    Ok(())
}

fn encoding(module: &Module, value: Value) -> Option<&Encoding> {
    module.encoding(module.value_type(value)).and_then(|a| module.encoding_of(a))
}

/// Checks one operation.
pub(crate) fn check(module: &Module, op: Op) -> Result<(), String> {
    if Level::of(module) == Some(Level::Intrinsic) {
        return without_encodings(module, op);
    }
    for &v in module.operands(op).iter().chain(module.results(op)) {
        if encoding_inference::is_tensor(module, v) {
            let ty = module.value_type(v);
            let enc = encoding(module, v).ok_or_else(|| match module.encoding(ty) {
                Some(layout) => format!("not supported yet: the layout {}", print_attr(module, layout)),
                None => format!("{} has no layout", print_type(module, ty)),
            })?;
            let shape = module.shape(ty).unwrap_or(&[]);
            let layout = TileLayout::new(enc, shape).map_err(|e| e.to_string())?;
            let warps = scope::num_warps(module, op);
            if layout.num_warps() > warps {
                return Err(format!("an encoding for {} warps where there are {warps}", layout.num_warps()));
            }
        }
    }
    match module.opcode(op) {
        Some(Opcode::Tt(
            tt::Kind::Load
            | tt::Kind::Store
            | tt::Kind::AtomicRmw
            | tt::Kind::AtomicCas
            | tt::Kind::WaitSignal,
        )) => {
            let tensor =
                module.operands(op).first().is_some_and(|&v| encoding_inference::is_tensor(module, v));
            match module.int_attr(op, marks::VEC) {
                None | Some(..1) if tensor => Err("no tt.vec".into()),
                _ => Ok(()),
            }
        }
        // Its operands' blocks are shared out among lanes like others.
        Some(Opcode::Tt(tt::Kind::Dot)) if Level::of(module) == Some(Level::Lane) => Ok(()),
        Some(Opcode::Tt(tt::Kind::Dot)) => {
            let dot = tt::Dot(op);
            let is_fragment = |&v: &Value| matches!(encoding(module, v), Some(Encoding::DotOperand { .. }));
            match [dot.a(module), dot.b(module)].iter().find(|v| !is_fragment(v)) {
                Some(&v) => Err(format!("an operand has {:?}", encoding(module, v))),
                None => Ok(()),
            }
        }
        Some(Opcode::Ttg(ttg::Kind::MemdescIndex)) => {
            let index = ttg::MemdescIndex(op);
            match encoding(module, index.src(module)) == encoding(module, index.result(module)) {
                true => Ok(()),
                false => Err("a slot is laid out otherwise than its ring".into()),
            }
        }
        Some(Opcode::Ttg(ttg::Kind::MemdescTrans)) => view_of(module, ttg::MemdescTrans(op)),
        Some(Opcode::Ttng(kind)) => hopper(module, op, kind),
        _ => sliced(module, op),
    }
}

/// Tensors are what an instruction takes: there is nobody to share them with.
fn without_encodings(module: &Module, op: Op) -> Result<(), String> {
    let laid_out = |v: &&Value| encoding(module, **v).is_some() && encoding_inference::is_tensor(module, **v);
    match module.operands(op).iter().chain(module.results(op)).find(laid_out) {
        Some(&v) => Err(format!("{} has a layout", print_type(module, module.value_type(v)))),
        None => Ok(()),
    }
}

/// What the declarations of `ttng` can't say: encodings that the hardware reads.
fn hopper(module: &Module, op: Op, kind: ttng::Kind) -> Result<(), String> {
    match kind {
        ttng::Kind::WarpGroupDot => warp_group_dot(module, ttng::WarpGroupDot(op)),
        ttng::Kind::AsyncTmaCopyGlobalToLocal => {
            let copy = ttng::AsyncTmaCopyGlobalToLocal(op);
            tma_copy(module, copy.desc(module), copy.result(module))
        }
        ttng::Kind::AsyncTmaCopyLocalToGlobal => {
            let copy = ttng::AsyncTmaCopyLocalToGlobal(op);
            tma_copy(module, copy.desc(module), copy.src(module))
        }
        ttng::Kind::AsyncTmaReduce => {
            let copy = ttng::AsyncTmaReduce(op);
            tma_copy(module, copy.desc(module), copy.src(module))
        }
        ttng::Kind::WaitOrderBarrier | ttng::Kind::ArriveOrderBarrier => {
            match scope::enclosing(module, op).first() {
                Some((_, 0)) => Ok(()),
                _ => Err("turns are those of the default region of a ttg.warp_specialize".into()),
            }
        }
        _ => Ok(()),
    }
}

/// The result is one of `wgmma`, `b` a buffer as it reads them, `a` one too or fragments. (Of which result, the verifier of the
/// IR has looked.)
fn warp_group_dot(module: &Module, dot: ttng::WarpGroupDot) -> Result<(), String> {
    let of = |v| encoding(module, v);
    let (a, b, result) = (of(dot.a(module)), of(dot.b(module)), of(dot.d(module)));
    let is_buffer =
        |e: Option<&Encoding>| matches!(e, Some(Encoding::Shared(SharedKind::NvmmaShared { .. })));
    if !matches!(result, Some(Encoding::NvidiaMma { version_major: 3, .. })) {
        Err(format!("the result has {result:?}"))
    } else if !is_buffer(a) && !matches!(a, Some(Encoding::DotOperand { op_idx: 0, .. })) {
        Err(format!("the left operand has {a:?}"))
    } else if !is_buffer(b) {
        Err(format!("the right operand has {b:?}"))
    } else {
        Ok(())
    }
}

/// Block and buffer lie alike, and as TMA can copy them. (Blocks of descriptors get their layouts after those of the kernel's buffers.)
fn tma_copy(module: &Module, desc: Value, buffer: Value) -> Result<(), String> {
    let block = tma::block_type(module, desc).ok_or("no descriptor")?;
    let layout = module.encoding(block).and_then(|e| module.encoding_of(e)).or(encoding(module, buffer));
    let (shape, bits) = (module.shape(block).unwrap_or(&[]), module.bits(block));
    match layout {
        Some(e) if !encoding(module, buffer).is_some_and(|buffer| lie_alike(e, buffer)) => {
            Err("block and buffer lie differently".into())
        }
        Some(e) if TmaBlock::new(e, shape, bits).is_some() => Ok(()),
        _ => Err(format!("TMA copies no block that lies as {layout:?}")),
    }
}

/// Whether a descriptor's block lies as a buffer: it may have leading dimensions of one element that the buffer has not.
fn lie_alike(block: &Encoding, buffer: &Encoding) -> bool {
    match (block, buffer) {
        (
            Encoding::Shared(SharedKind::Swizzled { max_phase: 1, order: block, .. }),
            Encoding::Shared(SharedKind::Swizzled { max_phase: 1, order: buffer, .. }),
        ) if block.len() > buffer.len() => {
            let leading = (block.len() - buffer.len()) as u32;
            block.iter().filter(|&&d| d >= leading).map(|d| d - leading).eq(buffer.iter().copied())
        }
        _ => block == buffer,
    }
}

/// A layout without a dimension is written as the slice of the one with it, not in another way that says the same.
fn sliced(module: &Module, op: Op) -> Result<(), String> {
    if !matches!(module.def(op).map(|d| d.index), Some(Index::ExpandDims(_) | Index::Reduce(_))) {
        return Ok(());
    }
    let (Some(&src), Some(&dst)) = (module.operands(op).first(), module.results(op).first()) else {
        return Ok(());
    };
    let (Some(from), Some(to)) = (encoding(module, src), encoding(module, dst)) else { return Ok(()) };
    match encoding_inference::forward(module, op, 0, from) {
        Some(inferred) if inferred == *to => Ok(()),
        inferred => Err(format!("{to:?} is not what follows from {from:?}: {inferred:?}")),
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
