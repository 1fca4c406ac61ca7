//! What instructions compute: elements read from views, computed as 64-bit numbers, rounded once, and written to a view.

use half::{bf16, f16};
use tilewright_ir::ascend::Space;
use tilewright_ir::dialect::hivm::{self, CompareMode, Kind as H, ReduceKind, RoundMode};
use tilewright_ir::{Diagnostic, Module, Op, Opcode, Type};

use crate::queues::Memories;
use crate::supported::unsigned;

/// An element, or a number of the scalar unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Num {
    /// An integer, sign-extended.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// Of memory that nothing wrote, or computed of that: it must not come to global memory.
    Undefined,
}

impl Num {
    /// The number of a type that has these bits.
    pub fn of_bits(module: &Module, ty: Type, bits: u64) -> Num {
        match ty {
            Type::F16 => Num::Float(f16::from_bits(bits as u16).to_f64()),
            Type::BF16 => Num::Float(bf16::from_bits(bits as u16).to_f64()),
            Type::F32 => Num::Float(f64::from(f32::from_bits(bits as u32))),
            Type::F64 => Num::Float(f64::from_bits(bits)),
            ty => Num::Int(bits as i64).rounded(module, ty),
        }
    }

    /// As a float.
    pub fn float(self) -> f64 {
        match self {
            Num::Int(n) => n as f64,
            Num::Float(f) => f,
            Num::Undefined => f64::NAN,
        }
    }

    /// As an integer, towards zero.
    pub fn int(self) -> i64 {
        match self {
            Num::Int(n) => n,
            Num::Float(f) => f as i64,
            Num::Undefined => 0,
        }
    }

    /// As a type holds it.
    pub fn rounded(self, module: &Module, ty: Type) -> Num {
        match ty {
            _ if self == Num::Undefined => self,
            Type::F16 => Num::Float(f16::from_f64(self.float()).to_f64()),
            Type::BF16 => Num::Float(bf16::from_f64(self.float()).to_f64()),
            Type::F32 => Num::Float(f64::from(self.float() as f32)),
            Type::F64 => Num::Float(self.float()),
            _ => {
                let bits = module.bits(ty).clamp(1, 64);
                Num::Int((self.int() << (64 - bits)) >> (64 - bits))
            }
        }
    }

    fn unsigned(self, module: &Module, ty: Type) -> u64 {
        let bits = module.bits(ty).clamp(1, 64);
        (self.int() as u64) << (64 - bits) >> (64 - bits)
    }
}

/// A view of memory.
#[derive(Debug, Clone)]
pub struct View {
    /// The memory.
    pub space: &'static Space,
    /// Which buffer of global memory; 0 elsewhere.
    pub buffer: usize,
    /// Where its first element lies, in bytes.
    pub base: i64,
    /// Extents.
    pub shape: Vec<i64>,
    /// Elements from one to the next along each dimension.
    pub strides: Vec<i64>,
    /// What elements are.
    pub element: Type,
    /// Bytes of an element.
    pub bytes: i64,
}

impl View {
    /// The byte where each element lies, in row-major order.
    pub fn places(&self) -> Vec<i64> {
        let mut places = vec![self.base];
        for (&n, &stride) in self.shape.iter().zip(&self.strides) {
            let step = stride * self.bytes;
            places = places.iter().flat_map(|&at| (0..n.max(0)).map(move |i| at + i * step)).collect();
        }
        places
    }
}

/// What an instruction reads: memory, or a number.
#[derive(Debug, Clone)]
pub enum Operand {
    /// Elements of a view.
    View(View),
    /// A number, for every element.
    Num(Num),
}

/// Runs an instruction.
///
/// # Errors
/// Operands that do not go together.
pub fn run(
    m: &Module,
    memories: &mut Memories<'_>,
    op: Op,
    ins: &[Operand],
    out: &View,
) -> Result<(), Diagnostic> {
    let Some(Opcode::Hivm(kind)) = m.opcode(op) else { return Ok(()) };
    let count = out.shape.iter().product::<i64>().max(0) as usize;
    let wrong = |what: &str| Diagnostic::at(m, m.op_loc(op), format!("{}: {what}", m.op_name(op)));
    let read = |memories: &Memories<'_>, operand: &Operand| match operand {
        Operand::Num(n) => vec![*n; count],
        Operand::View(v) => v.places().iter().map(|&at| memories.read(m, v, at)).collect::<Vec<Num>>(),
    };
    let element = |operand: Option<&Operand>| match operand {
        Some(Operand::View(v)) => v.element,
        _ => out.element,
    };
    let values: Vec<Num> = match kind {
        H::Mmad => product(m, memories, op, ins, out)?,
        H::Vreduce => reduced(m, memories, op, ins, out)?,
        H::Vbrc => broadcast(m, memories, ins, out).ok_or_else(|| wrong("extents that do not broadcast"))?,
        H::Varange => arange(m, op, ins, out),
        _ => {
            let operands: Vec<Vec<Num>> = ins.iter().map(|o| read(memories, o)).collect();
            if operands.iter().any(|o| o.len() != count) {
                return Err(wrong("operands of different extents"));
            }
            let ty = element(ins.first());
            (0..count)
                .map(|i| {
                    let at = |n: usize| operands[n][i];
                    // What is not taken may be undefined.
                    let needed = if kind == H::Vsel { 1 } else { operands.len() };
                    match (0..needed).any(|n| at(n) == Num::Undefined) {
                        true => Num::Undefined,
                        false => elementwise(m, op, kind, ty, &at),
                    }
                })
                .collect()
        }
    };
    if out.space.name == "GM" && values.contains(&Num::Undefined) {
        return Err(wrong("what nothing wrote comes to global memory"));
    }
    for (place, value) in out.places().into_iter().zip(values) {
        memories.write(m, out, place, value.rounded(m, out.element));
    }
    Ok(())
}

fn elementwise(m: &Module, op: Op, kind: H, ty: Type, at: &dyn Fn(usize) -> Num) -> Num {
    let unsigned = unsigned(m, op, kind);
    let float = m.is_float(ty);
    let both = |of: fn(f64, f64) -> f64, int: fn(i64, i64) -> i64, wide: fn(u64, u64) -> u64| match (
        float, unsigned,
    ) {
        (true, _) => Num::Float(of(at(0).float(), at(1).float())),
        (false, false) => Num::Int(int(at(0).int(), at(1).int())),
        (false, true) => Num::Int(wide(at(0).unsigned(m, ty), at(1).unsigned(m, ty)) as i64),
    };
    // In the precision of the operand: what a wider one would round twice.
    let one = |of: fn(f64) -> f64| Num::Float(of(at(0).float()));
    match kind {
        H::Vadd => both(|x, y| x + y, i64::wrapping_add, u64::wrapping_add),
        H::Vsub => both(|x, y| x - y, i64::wrapping_sub, u64::wrapping_sub),
        H::Vmul => both(|x, y| x * y, i64::wrapping_mul, u64::wrapping_mul),
        H::Vdiv => both(
            |x, y| x / y,
            |x, y| x.checked_div(y).unwrap_or(-1),
            |x, y| x.checked_div(y).unwrap_or(u64::MAX),
        ),
        H::Vmax => both(f64::max, i64::max, u64::max),
        H::Vmin => both(f64::min, i64::min, u64::min),
        H::Vand => Num::Int(at(0).int() & at(1).int()),
        H::Vor => Num::Int(at(0).int() | at(1).int()),
        H::Vxor => Num::Int(at(0).int() ^ at(1).int()),
        H::Vnot => Num::Int(!at(0).int()),
        H::Vexp => one(f64::exp),
        H::Vln => one(f64::ln),
        H::Vsqrt => one(f64::sqrt),
        H::Vrsqrt => one(|x| 1.0 / x.sqrt()),
        H::Vabs if float => one(f64::abs),
        H::Vabs => Num::Int(at(0).int().wrapping_abs()),
        H::Vcast if unsigned && !float => Num::Int(at(0).unsigned(m, ty) as i64),
        H::Vcast if float => Num::Float(whole(m, op, at(0).float())),
        H::Vcmp => Num::Int(i64::from(compared(m, op, ty, unsigned, at))),
        H::Vsel => {
            if at(0).int() != 0 {
                at(1)
            } else {
                at(2)
            }
        }
        // Copies.
        _ => at(0),
    }
}

/// A number that a conversion makes an integer of, rounded as it says; of other conversions the number itself.
fn whole(m: &Module, op: Op, x: f64) -> f64 {
    let cast = hivm::Vcast(op);
    if m.is_float(m.value_type(cast.out(m))) {
        return x;
    }
    match cast.round_mode(m) {
        Some(RoundMode::Trunc) => x.trunc(),
        Some(RoundMode::Floor) => x.floor(),
        Some(RoundMode::Ceil) => x.ceil(),
        Some(RoundMode::Round) => x.round(),
        _ => x.round_ties_even(),
    }
}

fn compared(m: &Module, op: Op, ty: Type, unsigned: bool, at: &dyn Fn(usize) -> Num) -> bool {
    use std::cmp::Ordering::{Equal, Greater, Less};
    let order = match (m.is_float(ty), unsigned) {
        (true, _) => at(0).float().partial_cmp(&at(1).float()),
        (false, false) => Some(at(0).int().cmp(&at(1).int())),
        (false, true) => Some(at(0).unsigned(m, ty).cmp(&at(1).unsigned(m, ty))),
    };
    match hivm::Vcmp(op).mode(m).unwrap_or(CompareMode::Eq) {
        CompareMode::Eq => order == Some(Equal),
        CompareMode::Ne => order != Some(Equal),
        CompareMode::Lt => order == Some(Less),
        CompareMode::Gt => order == Some(Greater),
        CompareMode::Ge => matches!(order, Some(Greater | Equal)),
        CompareMode::Le => matches!(order, Some(Less | Equal)),
    }
}

/// `c + a · b`, the sum in the precision of `c`, along k one after the other.
fn product(
    m: &Module,
    memories: &Memories<'_>,
    op: Op,
    ins: &[Operand],
    out: &View,
) -> Result<Vec<Num>, Diagnostic> {
    let [
        Operand::View(a),
        Operand::View(b),
        Operand::Num(init),
        Operand::Num(rows),
        Operand::Num(depth),
        Operand::Num(columns),
    ] = ins
    else {
        return Err(Diagnostic::at(m, m.op_loc(op), "a product of anything but two views"));
    };
    let (rows, depth, columns) = (rows.int(), depth.int(), columns.int());
    let fits = a.shape == [rows, depth] && b.shape == [depth, columns] && out.shape == [rows, columns];
    if !fits {
        return Err(Diagnostic::at(m, m.op_loc(op), "a product of views whose extents are not m, k and n"));
    }
    let at = |v: &View, i: i64, j: i64| {
        memories.read(m, v, v.base + (i * v.strides[0] + j * v.strides[1]) * v.bytes)
    };
    let mut values = Vec::new();
    for i in 0..rows {
        for j in 0..columns {
            let mut sum = if init.int() != 0 { Num::Float(0.0) } else { at(out, i, j) };
            for k in 0..depth {
                let (x, y) = (at(a, i, k), at(b, k, j));
                sum = match [sum, x, y].contains(&Num::Undefined) {
                    true => Num::Undefined,
                    false => Num::Float(sum.float() + x.float() * y.float()).rounded(m, out.element),
                };
            }
            values.push(sum);
        }
    }
    Ok(values)
}

fn reduced(
    m: &Module,
    memories: &Memories<'_>,
    op: Op,
    ins: &[Operand],
    out: &View,
) -> Result<Vec<Num>, Diagnostic> {
    let reduce = hivm::Vreduce(op);
    let (Some(Operand::View(src)), [dim]) = (ins.first(), &reduce.dims(m)[..]) else {
        return Err(Diagnostic::at(m, m.op_loc(op), "a reduction along anything but one dimension"));
    };
    let dim = *dim as usize;
    let mut whole = src.clone();
    let (n, step) = (whole.shape[dim], whole.strides[dim] * whole.bytes);
    whole.shape[dim] = 1;
    if whole.shape != out.shape || n < 1 {
        return Err(Diagnostic::at(m, m.op_loc(op), "a reduction to other extents"));
    }
    let float = m.is_float(src.element);
    let combine = |x: Num, y: Num| match (reduce.kind(m), float) {
        _ if x == Num::Undefined || y == Num::Undefined => Num::Undefined,
        (ReduceKind::Sum, true) => Num::Float(x.float() + y.float()).rounded(m, src.element),
        (ReduceKind::Sum, false) => Num::Int(x.int().wrapping_add(y.int())).rounded(m, src.element),
        (ReduceKind::Max, true) => Num::Float(x.float().max(y.float())),
        (ReduceKind::Max, false) => Num::Int(x.int().max(y.int())),
        (ReduceKind::Min, true) => Num::Float(x.float().min(y.float())),
        (ReduceKind::Min, false) => Num::Int(x.int().min(y.int())),
        _ => Num::Undefined,
    };
    let line = |first: i64| {
        (1..n).fold(memories.read(m, src, first), |x, i| combine(x, memories.read(m, src, first + i * step)))
    };
    Ok(whole.places().into_iter().map(line).collect())
}

fn broadcast(m: &Module, memories: &Memories<'_>, ins: &[Operand], out: &View) -> Option<Vec<Num>> {
    let mut src = match ins.first()? {
        Operand::Num(n) => return Some(vec![*n; out.shape.iter().product::<i64>() as usize]),
        Operand::View(v) => v.clone(),
    };
    for d in 0..out.shape.len() {
        match (*src.shape.get(d)?, out.shape[d]) {
            (a, b) if a == b => {}
            (1, n) => (src.shape[d], src.strides[d]) = (n, 0),
            _ => return None,
        }
    }
    Some(src.places().into_iter().map(|at| memories.read(m, &src, at)).collect())
}

fn arange(m: &Module, op: Op, ins: &[Operand], out: &View) -> Vec<Num> {
    let number = |o: &Operand| match o {
        Operand::Num(n) => n.int(),
        Operand::View(_) => 0,
    };
    let (offset, strides) = ins.split_at(usize::from(hivm::Varange(op).offset(m).is_some()));
    let strides: Vec<i64> = strides.iter().map(number).collect();
    let plain = View { base: offset.first().map_or(0, number), bytes: 1, strides, ..out.clone() };
    plain.places().into_iter().map(Num::Int).collect()
}
