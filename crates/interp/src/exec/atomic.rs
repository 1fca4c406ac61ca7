//! Atomic read-modify-write and compare-and-swap, element by element in row-major order.
//!
//! All are sequentially consistent, whatever ordering and scope the operation asks for.

use tilewright_ir::FloatKind;
use tilewright_ir::dialect::tt::RmwOp;

use super::access::refused_element;
use super::{Context, FaultBox, Frame, read_bits};
use crate::elem::Elem;
use crate::float::{Rounding, decode_f16, encode_bf16, encode_f16, round_f64};
use crate::memory::Word;
use crate::program::{Program, V};
use crate::shape::by_size;
use crate::tile::Repr;

impl Frame {
    pub(super) fn atomic_rmw(
        &mut self,
        program: &Program,
        context: &Context<'_>,
        op: RmwOp,
        ptr: V,
        val: V,
        mask: Option<V>,
        dst: V,
    ) -> Result<(), FaultBox> {
        let elem = Self::ty(program, val).elem;
        self.atomic(program, context, ptr, &[val], mask, dst, |addr, operands| {
            by_size!(elem.mem_size(), rmw(addr, op, elem, operands[0]))
        })
    }

    pub(super) fn atomic_cas(
        &mut self,
        program: &Program,
        context: &Context<'_>,
        ptr: V,
        cmp: V,
        val: V,
        dst: V,
    ) -> Result<(), FaultBox> {
        let elem = Self::ty(program, val).elem;
        self.atomic(program, context, ptr, &[cmp, val], None, dst, |addr, operands| {
            by_size!(elem.mem_size(), cas(addr, to_memory(elem, operands[0]), to_memory(elem, operands[1])))
        })
    }

    /// Applies an atomic operation to each element: `f` gets the checked address and the operands' register bits, and
    /// gives the old value in memory format, and whether another one is there now. Masked-off elements give 0, or what shows ([`Context::left_out`]).
    fn atomic(
        &mut self,
        program: &Program,
        context: &Context<'_>,
        ptr: V,
        operands: &[V],
        mask: Option<V>,
        dst: V,
        mut f: impl FnMut(u64, [u64; 2]) -> (u64, bool),
    ) -> Result<(), FaultBox> {
        self.touched_memory = Some(self.pc);
        let ty = Self::ty(program, dst);
        let (elem, n) = (ty.elem, self.len(ty));
        let (size, reg_size) = (elem.mem_size() as u64, elem.reg_size());
        for &v in [ptr].iter().chain(operands).chain(&mask) {
            self.dense(program, v);
        }
        let mut out = std::mem::take(&mut self.regs[dst.slot as usize]);
        out.buf.reserve(n * reg_size);
        let mut hit = self.hit;
        let mut result = Ok(());
        for i in 0..n {
            let mut old = context.left_out(elem);
            if mask.is_none_or(|m| self.regs[m.slot as usize].buf.slice::<u8>(n)[i] != 0) {
                let addr = self.regs[ptr.slot as usize].buf.slice::<u64>(n)[i];
                if let Err(violation) = context.memory.check_element(&mut hit, addr, size, true) {
                    result =
                        Err(refused_element(context.memory, i, addr, violation, elem, ty, "atomic access"));
                    break;
                }
                let mut bits = [0; 2];
                for (b, &v) in bits.iter_mut().zip(operands) {
                    *b = read_bits(&self.regs[v.slot as usize].buf, reg_size, i);
                }
                let (was, changed) = f(addr, bits);
                old = from_memory(elem, was);
                self.changed |= changed;
            }
            match reg_size {
                1 => out.buf.slice_mut::<u8>(n)[i] = old as u8,
                2 => out.buf.slice_mut::<u16>(n)[i] = old as u16,
                4 => out.buf.slice_mut::<u32>(n)[i] = old as u32,
                _ => out.buf.slice_mut::<u64>(n)[i] = old,
            }
        }
        self.hit = hit;
        out.repr = if ty.shape.is_empty() && self.lanes == 1 {
            Repr::Uniform(elem.canonical(read_bits(&out.buf, reg_size, 0)))
        } else {
            Repr::Dense
        };
        self.regs[dst.slot as usize] = out;
        result
    }
}

/// The register bits of an element as its memory bits.
fn to_memory(elem: Elem, bits: u64) -> u64 {
    match elem {
        Elem::Float(FloatKind::F16) => u64::from(encode_f16(f32::from_bits(bits as u32))),
        Elem::Float(FloatKind::BF16) => u64::from(encode_bf16(f32::from_bits(bits as u32))),
        _ => bits,
    }
}

fn from_memory(elem: Elem, bits: u64) -> u64 {
    match elem {
        Elem::Float(FloatKind::F16) => u64::from(decode_f16(bits as u16).to_bits()),
        Elem::Float(FloatKind::BF16) => bits << 16 & 0xffff_ffff,
        _ => bits,
    }
}

/// What was there, and whether it is another value now.
fn cas<T: Word>(addr: u64, expected: u64, new: u64) -> (u64, bool) {
    let (expected, new) = (T::from_bits(expected), T::from_bits(new));
    // SAFETY: `Frame::atomic` has checked the address for writing.
    match unsafe { T::compare_exchange(addr, expected, new) } {
        Ok(old) => (old.to_bits(), old.to_bits() != new.to_bits()),
        Err(old) => (old.to_bits(), false),
    }
}

/// The same.
fn rmw<T: Word>(addr: u64, op: RmwOp, elem: Elem, operand: u64) -> (u64, bool) {
    // SAFETY: `Frame::atomic` has checked the address for writing.
    let mut old = unsafe { T::read(addr) };
    loop {
        let new = T::from_bits(to_memory(elem, combine(op, elem, from_memory(elem, old.to_bits()), operand)));
        // SAFETY: as above.
        match unsafe { T::compare_exchange(addr, old, new) } {
            Ok(old) => return (old.to_bits(), old.to_bits() != new.to_bits()),
            Err(now) => old = now,
        }
    }
}

/// The new value, from the old one and the operand, all as register bits.
fn combine(op: RmwOp, elem: Elem, old: u64, operand: u64) -> u64 {
    if let Elem::Float(kind) = elem {
        if op == RmwOp::Exch {
            return operand;
        }
        let double = kind == FloatKind::F64;
        let value = |bits: u64| {
            if double { f64::from_bits(bits) } else { f64::from(f32::from_bits(bits as u32)) }
        };
        let (a, b) = (value(old), value(operand));
        let result = match op {
            RmwOp::Max => a.max(b),
            RmwOp::Min => a.min(b),
            _ => a + b,
        };
        return match kind {
            FloatKind::F64 => result.to_bits(),
            // A sum of two f32 rounded to f64 and on to f32 is correctly rounded: 53 >= 2·24 + 2.
            FloatKind::F32 => u64::from((result as f32).to_bits()),
            _ => u64::from((round_f64(result, kind, Rounding::Nearest) as f32).to_bits()),
        };
    }
    let signed = |bits: u64| elem.canonical(bits) as i64;
    let mask = u64::MAX >> (64 - 8 * elem.mem_size());
    let unsigned = |bits: u64| bits & mask;
    match op {
        RmwOp::And => old & operand,
        RmwOp::Or => old | operand,
        RmwOp::Xor => old ^ operand,
        RmwOp::Add | RmwOp::Fadd => old.wrapping_add(operand),
        RmwOp::Max => signed(old).max(signed(operand)) as u64,
        RmwOp::Min => signed(old).min(signed(operand)) as u64,
        RmwOp::Umax => unsigned(old).max(unsigned(operand)),
        RmwOp::Umin => unsigned(old).min(unsigned(operand)),
        RmwOp::Exch => operand,
    }
}
