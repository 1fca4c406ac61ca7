//! What the simulator knows of an instruction. All else that an instruction may say is refused: nothing is read and ignored.

use tilewright_ir::attrs::Truth;
use tilewright_ir::dialect::hivm::{self, AtomicKind, DmaMode, Kind as H, PreQuant, ReduceKind, RoundMode};
use tilewright_ir::memref::MemRef;
use tilewright_ir::{Diagnostic, Module, Op, Type, Value};

/// The instructions that compute with vectors.
const VECTORS: [H; 37] = [
    H::Vadd,
    H::Vsub,
    H::Vmul,
    H::Vdiv,
    H::Vmax,
    H::Vmin,
    H::Vand,
    H::Vor,
    H::Vxor,
    H::Vnot,
    H::Vshl,
    H::Vshr,
    H::Vexp,
    H::Vexp2,
    H::Vln,
    H::Vlog2,
    H::Vsin,
    H::Vcos,
    H::Vtanh,
    H::Verf,
    H::Vtranspose,
    H::Vgather,
    H::Vcumsum,
    H::Vcumprod,
    H::Vcummax,
    H::Vcummin,
    H::Vsqrt,
    H::Vrsqrt,
    H::Vabs,
    H::Vcast,
    H::Vcmp,
    H::Vsel,
    H::Vbrc,
    H::Vreduce,
    H::Varange,
    H::Copy,
    H::Mmad,
];

/// Checks that an instruction says nothing that the simulator has not.
///
/// # Errors
/// What is not supported yet.
pub fn check(m: &Module, op: Op, kind: H) -> Result<(), Diagnostic> {
    let refuse = |what: &str| {
        let text = format!("{what} of `{}` in npusim", m.op_name(op));
        Err(Diagnostic::unsupported(m, m.op_loc(op), text))
    };
    let copies = matches!(kind, H::Load | H::Store | H::Nd2nz | H::Fixpipe);
    if !copies && !VECTORS.contains(&kind) {
        return Err(Diagnostic::unsupported(m, m.op_loc(op), format!("`{}` in npusim", m.op_name(op))));
    }
    if !m.results(op).is_empty() {
        return refuse("results (tensors)");
    }
    let def = kind.def();
    let known: &[&str] = match kind {
        H::Mmad => &["a", "b", "init", "m", "k", "n", "out"],
        H::Varange => &["out", "offset", "strides"],
        H::Vgather => &["ins", "indices", "out"],
        H::Nd2nz => &["ins", "out", "pad_value"],
        _ => &["ins", "out"],
    };
    for (g, group) in def.operands.iter().enumerate() {
        if !known.contains(&group.name) && !m.operand_group(op, g).is_empty() {
            return refuse(&format!("`{}`", group.name));
        }
    }
    if hivm::written(m, op).len() != 1 {
        return refuse("several destinations");
    }
    let known: &[&str] = match kind {
        H::Fixpipe => &["dma_mode", "pre_quant"],
        H::Nd2nz => &["dst_continuous", "init_out_buffer"],
        H::Store => &["atomic_kind"],
        H::Mmad => &["a_transpose", "b_transpose"],
        H::Vtranspose => &["permutation"],
        H::Vgather => &["gather_axis"],
        H::Vcumsum | H::Vcumprod | H::Vcummax | H::Vcummin => &["cum_dims", "reverse"],
        H::Vcast => &["round_mode", "cast"],
        H::Vcmp => &["compare_mode", "is_signed"],
        H::Vdiv => &["isSigned"],
        H::Vmax | H::Vmin => &["is_signed"],
        H::Vshr => &["round", "is_signed"],
        H::Vbrc => &["broadcast_dims"],
        H::Vreduce => &["arith", "reduce_dims"],
        _ => &[],
    };
    let said = |name: &str| m.op_attr(op, name).is_some();
    let unknown = |name: &&str| said(name) && *name != "inter_no_alias" && !known.contains(name);
    if let Some(name) = def.attrs.iter().map(|a| a.name).find(unknown) {
        return refuse(&format!("`{name}`"));
    }
    match kind {
        H::Fixpipe if !fixpipe(m, op) => refuse("this `dma_mode` or `pre_quant`"),
        H::Store
            if !matches!(
                hivm::Store(op).atomic_kind(m),
                None | Some(AtomicKind::Add | AtomicKind::Max | AtomicKind::Min)
            ) =>
        {
            refuse("this `atomic`")
        }
        H::Vshr if hivm::Vshr(op).round(m) != Some(Truth(false)) => refuse("rounding"),
        H::Vcast if !conversion(m, op) => refuse("this `round_mode` or `cast`"),
        H::Vreduce
            if !matches!(hivm::Vreduce(op).kind(m), ReduceKind::Sum | ReduceKind::Max | ReduceKind::Min) =>
        {
            refuse("this reduction")
        }
        _ => Ok(()),
    }
}

fn element(m: &Module, v: Value) -> Type {
    m.element_type(m.value_type(v))
}

/// Whether a fixpipe writes rows to global memory, and the order of products elsewhere, in the destination's type.
fn fixpipe(m: &Module, op: Op) -> bool {
    let fixpipe = hivm::Fixpipe(op);
    let (from, to) = (fixpipe.ins(m), fixpipe.out(m));
    let global = MemRef::space_of(m, to).is_some_and(|s| s.name == "GM");
    let mode = fixpipe.dma_mode(m).unwrap_or(DmaMode::Normal);
    let quant = match (element(m, from), element(m, to)) {
        (Type::F32, Type::F16) => PreQuant::F16,
        (Type::F32, Type::BF16) => PreQuant::Bf16,
        (a, b) if a == b => PreQuant::None,
        _ => return false,
    };
    mode == if global { DmaMode::Nz2nd } else { DmaMode::Normal }
        && fixpipe.pre_quant(m).unwrap_or(PreQuant::None) == quant
}

/// Whether a conversion rounds in a way that is simulated.
fn conversion(m: &Module, op: Op) -> bool {
    let cast = hivm::Vcast(op);
    let &[from] = cast.ins(m) else { return false };
    let (from, to) = (element(m, from), element(m, cast.out(m)));
    let mode = cast.round_mode(m).unwrap_or(RoundMode::Rint);
    let known = match (m.is_float(from), m.is_float(to)) {
        (true, false) => !matches!(mode, RoundMode::Odd | RoundMode::TruncWithOverflow),
        (false, false) if m.bits(to) < m.bits(from) => mode == RoundMode::TruncWithOverflow,
        (true, true) if m.bits(to) < m.bits(from) => matches!(mode, RoundMode::Rint | RoundMode::Trunc),
        // To whole numbers.
        (true, true) if from == to && from == Type::F32 => {
            !matches!(mode, RoundMode::Odd | RoundMode::TruncWithOverflow)
        }
        _ => mode == RoundMode::Rint,
    };
    known && cast.kind(m) != Some(hivm::CastKind::Bits)
}

/// Whether an attribute says that integers have no sign.
pub fn unsigned(m: &Module, op: Op, kind: H) -> bool {
    let signed = match kind {
        H::Vdiv => hivm::Vdiv(op).signed(m),
        H::Vmax => hivm::Vmax(op).signed(m),
        H::Vmin => hivm::Vmin(op).signed(m),
        H::Vcmp => hivm::Vcmp(op).signed(m),
        H::Vshr => hivm::Vshr(op).signed(m),
        H::Vcast => return hivm::Vcast(op).kind(m) == Some(hivm::CastKind::Unsigned),
        _ => None,
    };
    signed == Some(Truth(false))
}
