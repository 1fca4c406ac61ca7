//! What instructions compute: elements read from views, computed as 64-bit numbers, rounded once, and written to a view.

use std::rc::Rc;

use rustc_hash::FxHashSet;
use tilewright_ir::ascend::Space;
use tilewright_ir::attrs::Truth;
use tilewright_ir::dialect::hivm::{self, AtomicKind, CompareMode, Kind as H, ReduceKind, RoundMode};
use tilewright_ir::{Diagnostic, FloatKind, Module, Op, Opcode, Type, TypeKind, float};

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
        match float_kind(module, ty) {
            Some(kind) => Num::Float(float::from_bits(bits, kind)),
            None => Num::Int(bits as i64).rounded(module, ty),
        }
    }

    /// The bits that a type has for it.
    pub fn to_bits(self, module: &Module, ty: Type) -> u64 {
        match float_kind(module, ty) {
            Some(kind) => float::to_bits(self.float(), kind),
            None => self.int() as u64,
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
        match (self, float_kind(module, ty)) {
            (Num::Undefined, _) => self,
            (Num::Int(n), Some(kind)) => Num::Float(of_integer(i128::from(n), kind)),
            (Num::Float(f), Some(kind)) => Num::Float(float::round(f, kind)),
            (_, None) => {
                let bits = module.bits(ty).clamp(1, 64);
                Num::Int((self.int() << (64 - bits)) >> (64 - bits))
            }
        }
    }

    /// As a float type holds it, where it is an integer without a sign.
    pub fn unsigned_rounded(self, module: &Module, from: Type, to: Type) -> Num {
        let kind = float_kind(module, to).unwrap_or(FloatKind::F64);
        Num::Float(of_integer(i128::from(self.unsigned(module, from)), kind))
    }

    fn unsigned(self, module: &Module, ty: Type) -> u64 {
        let bits = module.bits(ty).clamp(1, 64);
        (self.int() as u64) << (64 - bits) >> (64 - bits)
    }
}

/// The format of a type of floats.
fn float_kind(module: &Module, ty: Type) -> Option<FloatKind> {
    match *module.type_kind(ty) {
        TypeKind::Float(kind) => Some(kind),
        _ => None,
    }
}

/// The nearest number of a format to an integer of 64 bits, rounded once.
fn of_integer(n: i128, kind: FloatKind) -> f64 {
    if kind == FloatKind::F64 || n.unsigned_abs() >> 53 == 0 {
        return float::round(n as f64, kind);
    }
    // The low bits only tell whether there was anything behind the others.
    float::round((n >> 16 | i128::from(n & 0xffff != 0)) as f64 * 65536.0, kind)
}

/// A view of memory.
#[derive(Debug, Clone)]
pub struct View {
    /// The memory.
    pub space: &'static Space,
    /// Which buffer of global memory; elsewhere the core whose memory it is.
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
    /// The view of a local memory that this is a part of.
    pub whole: Option<Rc<View>>,
}

impl View {
    /// What an instruction that writes this writes: with `init_out_buffer` all that it is a part of.
    pub fn filled(&self, m: &Module, op: Op) -> View {
        let fills = hivm::Nd2nz::cast(m, op).is_some_and(|copy| copy.init_out_buffer(m) == Some(Truth(true)));
        self.whole.as_deref().filter(|_| fills).unwrap_or(self).clone()
    }

    /// The byte where an element along a dimension lies; addresses wrap around, as the hardware computes them.
    pub fn at(&self, d: usize, i: i64) -> i64 {
        self.base.wrapping_add(i.wrapping_mul(self.strides[d]).wrapping_mul(self.bytes))
    }

    /// Whether another view has some of the same bytes, but not the same elements in the same order.
    pub fn is_shifted(&self, other: &View) -> bool {
        let apart = |(from, to): (i64, i64), (first, end): (i64, i64)| to <= first || end <= from;
        let one_memory = (self.space, self.buffer) == (other.space, other.buffer);
        if !one_memory || apart(self.range(), other.range()) {
            return false;
        }
        let bytes = |view: &View| {
            let places = view.places();
            let all = places.iter().flat_map(|&at| at..at + view.bytes).collect::<FxHashSet<i64>>();
            (places, all)
        };
        let ((own, mine), (others, theirs)) = (bytes(self), bytes(other));
        (own, self.bytes) != (others, other.bytes) && !mine.is_disjoint(&theirs)
    }

    /// From the lowest byte of an element to behind the highest one.
    fn range(&self) -> (i64, i64) {
        let (mut from, mut to) = (self.base, self.base);
        for (&n, &stride) in self.shape.iter().zip(&self.strides) {
            let last = (n - 1).max(0).wrapping_mul(stride).wrapping_mul(self.bytes);
            (from, to) = (from.wrapping_add(last.min(0)), to.wrapping_add(last.max(0)));
        }
        (from, to.wrapping_add(self.bytes))
    }

    /// The byte where each element lies, in row-major order.
    pub fn places(&self) -> Vec<i64> {
        let mut places = vec![self.base];
        for (&n, &stride) in self.shape.iter().zip(&self.strides) {
            let step = stride.wrapping_mul(self.bytes);
            let along = |at: i64| (0..n.max(0)).map(move |i| at.wrapping_add(i.wrapping_mul(step)));
            places = places.iter().flat_map(|&at| along(at)).collect();
        }
        places
    }
}

/// What an instruction reads: memory, or a number.
#[derive(Debug, Clone)]
pub enum Operand {
    /// Elements of a view.
    View(View),
    /// Those that a view had when they were taken out of it, in row-major order.
    Taken(View, Vec<Num>),
    /// A number, for every element.
    Num(Num),
}

/// Runs an instruction.
///
/// # Errors
/// Operands that do not go together.
pub fn run(
    m: &Module,
    memories: &mut Memories,
    op: Op,
    ins: &[Operand],
    out: &View,
) -> Result<(), Diagnostic> {
    let Some(Opcode::Hivm(kind)) = m.opcode(op) else { return Ok(()) };
    let count = out.shape.iter().product::<i64>().max(0) as usize;
    let wrong = |what: &str| Diagnostic::at(m, m.op_loc(op), format!("{}: {what}", m.op_name(op)));
    let read = |memories: &Memories, operand: &Operand| match operand {
        Operand::Num(n) => vec![*n; count],
        Operand::Taken(_, values) => values.clone(),
        Operand::View(v) => v.places().iter().map(|&at| memories.read(m, v, at)).collect::<Vec<Num>>(),
    };
    let element = |operand: Option<&Operand>| match operand {
        Some(Operand::View(v) | Operand::Taken(v, _)) => v.element,
        _ => out.element,
    };
    let values: Vec<Num> = match kind {
        H::Mmad => product(m, memories, op, ins, out)?,
        H::Vreduce => reduced(m, memories, op, ins, out)?,
        H::Vtranspose => transposed(m, memories, op, ins, out)?,
        H::Vgather => gathered(m, memories, op, ins, out)?,
        H::Vcumsum | H::Vcumprod | H::Vcummax | H::Vcummin => scanned(m, memories, op, kind, ins, out)?,
        H::Vbrc => broadcast(m, memories, ins, out).ok_or_else(|| wrong("extents that do not broadcast"))?,
        H::Varange => arange(m, op, ins, out),
        _ => {
            let operands: Vec<Vec<Num>> = ins.iter().map(|o| read(memories, o)).collect();
            if operands.iter().any(|o| o.len() != count) {
                return Err(wrong("operands of different extents"));
            }
            let ty = element(ins.first());
            let atomic = hivm::Store::cast(m, op).and_then(|store| store.atomic_kind(m));
            let there: Vec<Num> = match atomic {
                Some(_) => out.places().iter().map(|&at| memories.read(m, out, at)).collect(),
                None => Vec::new(),
            };
            (0..count)
                .map(|i| {
                    let at = |n: usize| operands[n][i];
                    // What is not taken may be undefined.
                    let needed = if kind == H::Vsel { 1 } else { operands.len() };
                    match (0..needed).any(|n| at(n) == Num::Undefined) {
                        true => Num::Undefined,
                        false => match atomic {
                            Some(how) => combined(m, how.into(), ty, there[i], at(0)),
                            None => elementwise(m, op, kind, ty, &at),
                        },
                    }
                })
                .collect()
        }
    };
    if memories.is_seen(out) && values.contains(&Num::Undefined) {
        return Err(wrong("what nothing wrote comes to global memory"));
    }
    if let (H::Nd2nz, Some(Operand::Num(pad))) = (kind, ins.get(1)) {
        let whole = out.filled(m, op);
        for place in whole.places() {
            memories.write(m, &whole, place, pad.rounded(m, out.element));
        }
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
        H::Vshl | H::Vshr => shifted(m, kind, ty, unsigned, at(0), at(1).int()),
        H::Vexp => one(f64::exp),
        H::Vexp2 => one(f64::exp2),
        H::Vln => one(f64::ln),
        H::Vlog2 => one(f64::log2),
        H::Vsin => one(f64::sin),
        H::Vcos => one(f64::cos),
        H::Vtanh => one(f64::tanh),
        H::Verf => one(libm::erf),
        H::Vsqrt => one(f64::sqrt),
        H::Vrsqrt => one(|x| 1.0 / x.sqrt()),
        H::Vabs if float => one(f64::abs),
        H::Vabs => Num::Int(at(0).int().wrapping_abs()),
        H::Vcast if unsigned && !float => {
            let to = m.element_type(m.value_type(hivm::Vcast(op).out(m)));
            match m.is_float(to) {
                true => at(0).unsigned_rounded(m, ty, to),
                false => Num::Int(at(0).unsigned(m, ty) as i64),
            }
        }
        H::Vcast if float => Num::Float(converted(m, op, at(0).float())),
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

/// Bits moved by a number, of which the hardware takes what there are.
fn shifted(m: &Module, kind: H, ty: Type, unsigned: bool, x: Num, by: i64) -> Num {
    let by = by.clamp(0, i64::from(m.bits(ty))) as u32;
    Num::Int(match kind {
        H::Vshl => x.int().checked_shl(by).unwrap_or(0),
        _ if unsigned => x.unsigned(m, ty).checked_shr(by).unwrap_or(0) as i64,
        _ => x.int() >> by.min(63),
    })
}

/// A float as a conversion gives it to its destination: whole for an integer and for its own type, cut off for a narrower one, if it says so.
fn converted(m: &Module, op: Op, x: f64) -> f64 {
    let cast = hivm::Vcast(op);
    let element = |v| m.element_type(m.value_type(v));
    let (from, to) = (element(cast.ins(m)[0]), element(cast.out(m)));
    let mode = cast.round_mode(m);
    if let Some(kind) = float_kind(m, to)
        && from != to
    {
        let nearest = float::round(x, kind);
        let beyond = mode == Some(RoundMode::Trunc) && nearest.abs() > x.abs();
        // (What lies next to a number of a format, towards zero, has bits of one less.)
        return match beyond {
            true => float::from_bits(float::to_bits(nearest, kind) - 1, kind),
            false => nearest,
        };
    }
    match mode {
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
    memories: &Memories,
    op: Op,
    ins: &[Operand],
    out: &View,
) -> Result<Vec<Num>, Diagnostic> {
    let [a, b, Operand::Num(init), Operand::Num(rows), Operand::Num(depth), Operand::Num(columns)] = ins
    else {
        return Err(Diagnostic::at(m, m.op_loc(op), "a product of anything but two views"));
    };
    let (rows, depth, columns) = (rows.int(), depth.int(), columns.int());
    let mmad = hivm::Mmad(op);
    let (Some(a), Some(b)) = (Matrix::of(a, mmad.a_transpose(m).0), Matrix::of(b, mmad.b_transpose(m).0))
    else {
        return Err(Diagnostic::at(m, m.op_loc(op), "a product of anything but two views"));
    };
    let fits =
        a.extents() == [rows, depth] && b.extents() == [depth, columns] && out.shape == [rows, columns];
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
                let (x, y) = (a.at(m, memories, i, k), b.at(m, memories, k, j));
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

/// An operand of a product.
struct Matrix<'o> {
    view: &'o View,
    /// Its elements, where they were taken out of it.
    taken: Option<&'o [Num]>,
    /// Whether rows are columns.
    turned: bool,
}

impl<'o> Matrix<'o> {
    fn of(operand: &'o Operand, turned: bool) -> Option<Matrix<'o>> {
        match operand {
            Operand::View(view) if view.shape.len() == 2 => Some(Matrix { view, taken: None, turned }),
            Operand::Taken(view, values) if view.shape.len() == 2 => {
                Some(Matrix { view, taken: Some(values), turned })
            }
            _ => None,
        }
    }

    fn extents(&self) -> [i64; 2] {
        let [rows, columns] = [self.view.shape[0], self.view.shape[1]];
        if self.turned { [columns, rows] } else { [rows, columns] }
    }

    fn at(&self, m: &Module, memories: &Memories, i: i64, j: i64) -> Num {
        let (i, j) = if self.turned { (j, i) } else { (i, j) };
        let view = self.view;
        match self.taken {
            Some(values) => values[(i * view.shape[1] + j) as usize],
            None => {
                memories.read(m, view, view.base + (i * view.strides[0] + j * view.strides[1]) * view.bytes)
            }
        }
    }
}

fn reduced(
    m: &Module,
    memories: &Memories,
    op: Op,
    ins: &[Operand],
    out: &View,
) -> Result<Vec<Num>, Diagnostic> {
    let reduce = hivm::Vreduce(op);
    let (Some(Operand::View(src)), [dim]) = (ins.first(), &reduce.dims(m)[..]) else {
        return Err(Diagnostic::at(m, m.op_loc(op), "a reduction along anything but one dimension"));
    };
    let dim = usize::try_from(*dim).unwrap_or(usize::MAX);
    if dim >= src.shape.len() {
        return Err(Diagnostic::at(m, m.op_loc(op), "a reduction along a dimension that there is not"));
    }
    let mut whole = src.clone();
    let (n, step) = (whole.shape[dim], whole.strides[dim] * whole.bytes);
    whole.shape[dim] = 1;
    if whole.shape != out.shape || n < 1 {
        return Err(Diagnostic::at(m, m.op_loc(op), "a reduction to other extents"));
    }
    let kind = match reduce.kind(m) {
        ReduceKind::Sum => Combine::Sum,
        ReduceKind::Max => Combine::Max,
        ReduceKind::Min => Combine::Min,
        _ => return Err(Diagnostic::at(m, m.op_loc(op), "a reduction that is not simulated")),
    };
    let combine = |x: Num, y: Num| combined(m, kind, src.element, x, y);
    let line = |first: i64| {
        (1..n).fold(memories.read(m, src, first), |x, i| combine(x, memories.read(m, src, first + i * step)))
    };
    Ok(whole.places().into_iter().map(line).collect())
}

/// How two elements become one.
#[derive(Debug, Clone, Copy)]
enum Combine {
    Sum,
    Product,
    Max,
    Min,
}

impl From<AtomicKind> for Combine {
    fn from(kind: AtomicKind) -> Combine {
        match kind {
            AtomicKind::Max => Combine::Max,
            AtomicKind::Min => Combine::Min,
            // (Others are refused.)
            _ => Combine::Sum,
        }
    }
}

/// Two elements of a type as one.
fn combined(m: &Module, kind: Combine, ty: Type, x: Num, y: Num) -> Num {
    match (kind, m.is_float(ty)) {
        _ if x == Num::Undefined || y == Num::Undefined => Num::Undefined,
        (Combine::Sum, true) => Num::Float(x.float() + y.float()).rounded(m, ty),
        (Combine::Sum, false) => Num::Int(x.int().wrapping_add(y.int())).rounded(m, ty),
        (Combine::Product, true) => Num::Float(x.float() * y.float()).rounded(m, ty),
        (Combine::Product, false) => Num::Int(x.int().wrapping_mul(y.int())).rounded(m, ty),
        (Combine::Max, true) => Num::Float(x.float().max(y.float())),
        (Combine::Max, false) => Num::Int(x.int().max(y.int())),
        (Combine::Min, true) => Num::Float(x.float().min(y.float())),
        (Combine::Min, false) => Num::Int(x.int().min(y.int())),
    }
}

/// Elements combined with all before them along a dimension, or with all behind.
fn scanned(
    m: &Module,
    memories: &Memories,
    op: Op,
    kind: H,
    ins: &[Operand],
    out: &View,
) -> Result<Vec<Num>, Diagnostic> {
    let (how, dims, reverse) = match kind {
        H::Vcumprod => (Combine::Product, hivm::Vcumprod(op).dims(m), hivm::Vcumprod(op).reverse(m)),
        H::Vcummax => (Combine::Max, hivm::Vcummax(op).dims(m), hivm::Vcummax(op).reverse(m)),
        H::Vcummin => (Combine::Min, hivm::Vcummin(op).dims(m), hivm::Vcummin(op).reverse(m)),
        _ => (Combine::Sum, hivm::Vcumsum(op).dims(m), hivm::Vcumsum(op).reverse(m)),
    };
    let (Some(Operand::View(src)), [dim]) = (ins.first(), &dims[..]) else {
        return Err(Diagnostic::at(m, m.op_loc(op), "a scan along anything but one dimension"));
    };
    let dim = *dim as usize;
    if src.shape != out.shape || dim >= src.shape.len() {
        return Err(Diagnostic::at(m, m.op_loc(op), "a scan to other extents"));
    }
    let reverse = reverse.0;
    let mut values: Vec<Num> = src.places().iter().map(|&at| memories.read(m, src, at)).collect();
    let (n, inner) = (src.shape[dim] as usize, src.shape[dim + 1..].iter().product::<i64>() as usize);
    for line in 0..values.len() / n.max(1) {
        let first = line / inner * inner * n + line % inner;
        for i in 1..n {
            let (from, to) = if reverse { (n - i, n - 1 - i) } else { (i - 1, i) };
            values[first + to * inner] =
                combined(m, how, src.element, values[first + from * inner], values[first + to * inner]);
        }
    }
    Ok(values)
}

/// Elements with the dimensions in another order.
fn transposed(
    m: &Module,
    memories: &Memories,
    op: Op,
    ins: &[Operand],
    out: &View,
) -> Result<Vec<Num>, Diagnostic> {
    let order = hivm::Vtranspose(op).permutation(m).unwrap_or_default();
    let Some(Operand::View(src)) = ins.first() else {
        return Err(Diagnostic::at(m, m.op_loc(op), "a transposition of a number"));
    };
    let mut turned = src.clone();
    if order.len() != src.shape.len() || order.iter().any(|&d| d as usize >= src.shape.len()) {
        return Err(Diagnostic::at(m, m.op_loc(op), "an order of other dimensions"));
    }
    turned.shape = order.iter().map(|&d| src.shape[d as usize]).collect();
    turned.strides = order.iter().map(|&d| src.strides[d as usize]).collect();
    if turned.shape != out.shape {
        return Err(Diagnostic::at(m, m.op_loc(op), "a transposition to other extents"));
    }
    Ok(turned.places().into_iter().map(|at| memories.read(m, &turned, at)).collect())
}

/// Elements at the indices that another view holds.
fn gathered(
    m: &Module,
    memories: &Memories,
    op: Op,
    ins: &[Operand],
    out: &View,
) -> Result<Vec<Num>, Diagnostic> {
    let wrong = |text: String| Diagnostic::at(m, m.op_loc(op), text);
    let axis = hivm::Vgather(op)
        .axis(m)
        .filter(|&d| d >= 0)
        .map_or(out.shape.len().saturating_sub(1), |d| d as usize);
    let [Operand::View(src), Operand::View(indices)] = ins else {
        return Err(wrong("a gather from a number".into()));
    };
    if indices.shape != out.shape || axis >= out.shape.len() || src.shape.len() != out.shape.len() {
        return Err(wrong("a gather to other extents".into()));
    }
    // Where each element would lie in the source at index 0.
    let mut first = View { shape: out.shape.clone(), ..src.clone() };
    first.strides[axis] = 0;
    let step = src.strides[axis] * src.bytes;
    let places = first.places().into_iter().zip(indices.places());
    places
        .map(|(at, of)| match memories.read(m, indices, of) {
            Num::Undefined => Ok(Num::Undefined),
            index if (0..src.shape[axis]).contains(&index.int()) => {
                Ok(memories.read(m, src, at + index.int() * step))
            }
            index => {
                Err(wrong(format!("a gather of element {} where there are {}", index.int(), src.shape[axis])))
            }
        })
        .collect()
}

fn broadcast(m: &Module, memories: &Memories, ins: &[Operand], out: &View) -> Option<Vec<Num>> {
    let mut src = match ins.first()? {
        Operand::Num(n) => return Some(vec![*n; out.shape.iter().product::<i64>() as usize]),
        Operand::View(v) => v.clone(),
        Operand::Taken(..) => return None,
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
        Operand::View(_) | Operand::Taken(..) => 0,
    };
    let (offset, strides) = ins.split_at(usize::from(hivm::Varange(op).offset(m).is_some()));
    let strides: Vec<i64> = strides.iter().map(number).collect();
    let plain = View { base: offset.first().map_or(0, number), bytes: 1, strides, ..out.clone() };
    plain.places().into_iter().map(Num::Int).collect()
}
