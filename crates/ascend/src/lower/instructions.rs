//! The instructions that are emitted, with what each of them says for the types that it is given.

use tilewright_ir::attrs::{self, Truth};
use tilewright_ir::dialect::hivm::{
    self, AtomicKind, CastKind, CompareMode, CoreType, DmaMode, Event, Kind as H, Pipe, PreQuant, ReduceKind,
    RoundMode,
};
use tilewright_ir::{Builder, Module, Op, Type, Value};

/// The memory at an address of a local memory.
pub(super) fn pointer_cast(b: &mut Builder<'_>, address: Value, ty: Type) -> Value {
    hivm::PointerCast::build(b, &[address], &[], ty).result(b.module)
}

/// From global memory to UB.
pub(super) fn load(b: &mut Builder<'_>, from: Value, to: Value, no_alias: bool) -> Op {
    hivm::Load::build(b, from, to, None, None, None, None, None, None, None, None, None, no_alias, &[]).0
}

/// From UB to global memory, combined with what is there where it says how.
pub(super) fn store(
    b: &mut Builder<'_>,
    from: Value,
    to: Value,
    no_alias: bool,
    atomic: Option<AtomicKind>,
) -> Op {
    hivm::Store::build(b, from, to, atomic, None, no_alias, &[]).0
}

/// Between local memories.
pub(super) fn copy(b: &mut Builder<'_>, from: Value, to: Value) -> Op {
    hivm::Copy::build(b, from, to, None, None, None, &[]).0
}

/// From global memory to L1, in the order that products want; `pad` is what the rest of the buffer holds.
pub(super) fn nd2nz(b: &mut Builder<'_>, from: Value, to: Value, pad: Option<Value>, no_alias: bool) -> Op {
    hivm::Nd2nz::build(b, from, to, pad, None, attrs::Flag(true), pad.map(|_| Truth(true)), no_alias, &[]).0
}

/// What products were added up in, to L1 in the order that products want, or to global memory in rows; in the destination's type.
pub(super) fn fixpipe(b: &mut Builder<'_>, from: Value, to: Value, to_global: bool, no_alias: bool) -> Op {
    let element = |v: Value, m: &Module| m.element_type(m.value_type(v));
    let quant = match (element(from, b.module), element(to, b.module)) {
        (Type::F32, Type::F16) => Some(PreQuant::F16),
        (Type::F32, Type::BF16) => Some(PreQuant::Bf16),
        _ => None,
    };
    let mode = to_global.then_some(DmaMode::Nz2nd);
    hivm::Fixpipe::build(b, from, to, &[], None, mode, quant, None, None, None, no_alias, &[]).0
}

/// A product of so many rows, terms and columns, added to what is there unless `init`; operands may lie there transposed (`flipped`).
pub(super) fn mmad(
    b: &mut Builder<'_>,
    [left, right]: [Value; 2],
    [a_flipped, b_flipped]: [bool; 2],
    init: Value,
    [m, k, n]: [Value; 3],
    out: Value,
) -> Op {
    let (no, none) = (attrs::Flag(false), &[][..]);
    hivm::Mmad::build(
        b,
        left,
        right,
        init,
        m,
        k,
        n,
        out,
        none,
        none,
        None,
        attrs::Flag(a_flipped),
        attrs::Flag(b_flipped),
        no,
        no,
        None,
        &[],
    )
    .0
}

/// A number, or what a view has along dimensions where it has one element.
pub(super) fn vbrc(b: &mut Builder<'_>, from: Value, out: Value, dims: &[usize]) -> Op {
    let dims = (!dims.is_empty()).then(|| dims.iter().map(|&d| d as i64).collect());
    hivm::Vbrc::build(b, from, out, None, dims, &[]).0
}

/// Elements combined along one dimension.
pub(super) fn vreduce(b: &mut Builder<'_>, from: Value, out: Value, kind: ReduceKind, dim: usize) -> Op {
    hivm::Vreduce::build(b, from, &[out], None, None, kind, None, None, vec![dim as i64], &[]).0
}

/// Numbers from `offset` on, by strides.
pub(super) fn varange(b: &mut Builder<'_>, offset: Value, strides: &[Value], out: Value) -> Op {
    hivm::Varange::build(b, out, Some(offset), strides, &[]).0
}

/// Elements in another type: towards zero where integers come of floats, low bits where integers become narrower, else to the nearest.
pub(super) fn vcast(b: &mut Builder<'_>, from: Value, out: Value, unsigned: bool) -> Op {
    let m = &*b.module;
    let element = |v: Value| m.element_type(m.value_type(v));
    let (source, target) = (element(from), element(out));
    let mode = match (m.is_float(source), m.is_float(target)) {
        (true, false) => RoundMode::Trunc,
        (false, false) if m.bits(target) < m.bits(source) => RoundMode::TruncWithOverflow,
        _ => RoundMode::Rint,
    };
    vcast_by(b, from, out, mode, unsigned)
}

/// Elements in another type, rounded so.
pub(super) fn vcast_by(b: &mut Builder<'_>, from: Value, out: Value, mode: RoundMode, unsigned: bool) -> Op {
    let kind = unsigned.then_some(CastKind::Unsigned);
    hivm::Vcast::build(b, &[from], out, None, Some(mode), kind, None, None, &[]).0
}

/// Whether elements compare so.
pub(super) fn vcmp(b: &mut Builder<'_>, ins: &[Value], out: Value, mode: CompareMode, unsigned: bool) -> Op {
    hivm::Vcmp::build(b, ins, out, None, Some(mode), unsigned.then_some(Truth(false)), None, None, &[]).0
}

/// Elements of the second operand where the first holds, of the third elsewhere.
pub(super) fn vsel(b: &mut Builder<'_>, ins: &[Value], out: Value) -> Op {
    hivm::Vsel::build(b, ins, out, None, None, None, &[]).0
}

/// An instruction of one or two operands.
pub(super) fn vector(b: &mut Builder<'_>, kind: H, ins: &[Value], out: Value, unsigned: bool) -> Op {
    let signed = unsigned.then_some(Truth(false));
    match kind {
        H::Vexp => hivm::Vexp::build(b, ins, out, None, None, None, &[]).0,
        H::Vexp2 => hivm::Vexp2::build(b, ins, out, None, None, None, &[]).0,
        H::Vln => hivm::Vln::build(b, ins, out, None, None, None, &[]).0,
        H::Vlog2 => hivm::Vlog2::build(b, ins, out, None, None, None, &[]).0,
        H::Vsin => hivm::Vsin::build(b, ins, out, None, None, None, &[]).0,
        H::Vcos => hivm::Vcos::build(b, ins, out, None, None, None, &[]).0,
        H::Vtanh => hivm::Vtanh::build(b, ins, out, None, None, None, &[]).0,
        H::Verf => hivm::Verf::build(b, ins, out, None, None, None, &[]).0,
        H::Vsqrt => hivm::Vsqrt::build(b, ins, out, None, None, None, &[]).0,
        H::Vrsqrt => hivm::Vrsqrt::build(b, ins, out, None, None, None, &[]).0,
        H::Vabs => hivm::Vabs::build(b, ins, out, None, None, None, &[]).0,
        H::Vsub => hivm::Vsub::build(b, ins, out, None, None, None, &[]).0,
        H::Vmul => hivm::Vmul::build(b, ins, out, None, None, None, &[]).0,
        H::Vdiv => hivm::Vdiv::build(b, ins, out, None, signed, None, None, None, &[]).0,
        H::Vmax => hivm::Vmax::build(b, ins, out, None, signed, None, None, &[]).0,
        H::Vmin => hivm::Vmin::build(b, ins, out, None, signed, None, None, &[]).0,
        H::Vand => hivm::Vand::build(b, ins, out, None, None, None, &[]).0,
        H::Vor => hivm::Vor::build(b, ins, out, None, None, None, &[]).0,
        H::Vxor => hivm::Vxor::build(b, ins, out, None, None, None, &[]).0,
        _ => hivm::Vadd::build(b, ins, out, None, None, None, &[]).0,
    }
}

/// How bits are moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shift {
    Up,
    Down,
    /// Down, with the sign.
    DownSigned,
}

/// Bits moved by a number.
pub(super) fn shift(b: &mut Builder<'_>, how: Shift, ins: &[Value], out: Value) -> Op {
    let signed = Truth(how == Shift::DownSigned);
    match how {
        Shift::Up => hivm::Vshl::build(b, ins, out, None, None, None, &[]).0,
        _ => hivm::Vshr::build(b, ins, out, None, Some(Truth(false)), Some(signed), None, None, &[]).0,
    }
}

/// The number of a flag: known, or a value.
#[derive(Clone, Copy)]
pub(super) enum Flag {
    Known(u32),
    Value(Value),
}

impl Flag {
    fn number(self) -> (Option<Value>, Option<i64>) {
        match self {
            Flag::Known(n) => (None, Some(i64::from(n))),
            Flag::Value(v) => (Some(v), None),
        }
    }

    fn parts(self) -> (Option<Value>, Option<Event>) {
        match self {
            Flag::Known(n) => (None, Event::ALL.get(n as usize).copied()),
            Flag::Value(v) => (Some(v), None),
        }
    }
}

/// Raises a flag of a core for the other one of its block.
pub(super) fn sync_block_set(b: &mut Builder<'_>, core: CoreType, from: Pipe, to: Pipe, flag: Flag) -> Op {
    let (value, known) = flag.number();
    hivm::SyncBlockSet::build(b, value, None, core, from, to, known, None).0
}

/// Waits in a core for a flag of the other one of its block.
pub(super) fn sync_block_wait(b: &mut Builder<'_>, core: CoreType, from: Pipe, to: Pipe, flag: Flag) -> Op {
    let (value, known) = flag.number();
    hivm::SyncBlockWait::build(b, value, core, from, to, known, None).0
}

/// Raises a flag between two queues.
pub(super) fn set_flag(b: &mut Builder<'_>, from: Pipe, to: Pipe, flag: Flag) -> Op {
    let (value, event) = flag.parts();
    hivm::SetFlag::build(b, value, from, to, event).0
}

/// Waits for a flag between two queues.
pub(super) fn wait_flag(b: &mut Builder<'_>, from: Pipe, to: Pipe, flag: Flag) -> Op {
    let (value, event) = flag.parts();
    hivm::WaitFlag::build(b, value, from, to, event).0
}
