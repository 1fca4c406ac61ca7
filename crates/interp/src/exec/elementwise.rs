//! Elementwise operations and assignments.

use smallvec::SmallVec;

use super::{Context, Fault, FaultBox, Frame, read_bits};
use crate::float::round_slice;
use crate::lazy::{self, Lazy};
use crate::program::{Assign, Map, Program, V};
use crate::tile::{Reg, Repr, fill};

/// Elements handled at a time, so that operands, result and its rounding stay in the first-level cache.
const CHUNK: usize = 1024;

impl Frame {
    pub(super) fn map(
        &mut self,
        program: &Program,
        context: &Context<'_>,
        map: &Map,
    ) -> Result<(), FaultBox> {
        let dst_ty = Self::ty(program, map.dst);
        let mut uniform = true;
        {
            let operands: SmallVec<[lazy::Operand<'_>; 3]> = map
                .srcs
                .iter()
                .map(|&v| {
                    let repr = self.regs[v.slot as usize].repr;
                    uniform &= matches!(repr, Repr::Uniform(_));
                    (repr, Self::ty(program, v))
                })
                .collect();
            match lazy::apply(map.rule, &operands, map.imm, dst_ty) {
                Some(Lazy::Is(repr)) => {
                    self.set(map.dst, repr);
                    return Ok(());
                }
                Some(Lazy::Same(i)) => {
                    self.transfer(program, map.srcs[i], map.dst, false);
                    return Ok(());
                }
                None => {}
            }
        }
        let scalar = dst_ty.shape.is_empty();
        if map.divides {
            self.check_divisor(program, context, map, scalar)?;
        }
        if uniform {
            return self.map_uniform(program, map);
        }
        let n = self.len(dst_ty);
        let count = map.srcs.len() + usize::from(map.imm.is_some());
        // Sources: start and distance between chunks (0 for a repeated chunk of equal elements).
        let mut src = [(std::ptr::null::<u8>(), 0usize); 3];
        let mut repeated = false;
        for (k, &v) in map.srcs.iter().enumerate() {
            let ty = Self::ty(program, v);
            let size = ty.elem.reg_size();
            match self.regs[v.slot as usize].repr {
                Repr::Uniform(bits) => {
                    fill(&mut self.scratch[k], size, 0, n.min(CHUNK), bits);
                    src[k] = (self.scratch[k].ptr(), 0);
                    repeated = true;
                }
                _ => src[k] = (self.dense(program, v).buf.ptr(), size),
            }
        }
        if let Some(imm) = map.imm {
            fill(&mut self.scratch[count - 1], 8, 0, n.min(CHUNK), imm);
            src[count - 1] = (self.scratch[count - 1].ptr(), 0);
            repeated = true;
        }
        let dst_size = dst_ty.elem.reg_size();
        let reg = &mut self.regs[map.dst.slot as usize];
        reg.buf.reserve(n * dst_size);
        reg.repr = Repr::Dense;
        let dst = reg.buf.ptr_mut();
        let chunk = if repeated || map.round.is_some() { CHUNK } else { n };
        let mut at = 0;
        while at < n {
            let m = chunk.min(n - at);
            let here = src.map(|(p, step)| p.wrapping_add(at * step));
            // SAFETY: the kernel was chosen for these element types; dense sources hold `n` elements and repeated ones
            // a chunk; the destination has room for `n`, and is another register than the sources (`slots::allocate`).
            unsafe { (map.kernel)(here, dst.add(at * dst_size), m) };
            if let Some((kind, rounding)) = map.round {
                // SAFETY: just written; narrow floats are held as `f32`.
                let out = unsafe { std::slice::from_raw_parts_mut(dst.add(at * dst_size).cast::<f32>(), m) };
                round_slice(out, kind, rounding);
            }
            at += m;
        }
        Ok(())
    }

    /// A function of a library; of elements that are the same everywhere it is computed once.
    pub(super) fn library(
        &mut self,
        program: &Program,
        elements: fn(&[&[u8]], &mut [u8]),
        srcs: &[V],
        dst: V,
    ) {
        let ty = Self::ty(program, dst);
        let size = ty.elem.reg_size();
        let size_of = |v: &V| Self::ty(program, *v).elem.reg_size();
        let uniform = |v: &V| match self.regs[v.slot as usize].repr {
            Repr::Uniform(bits) => Some(bits.to_le_bytes()),
            _ => None,
        };
        if let Some(bytes) = srcs.iter().map(uniform).collect::<Option<SmallVec<[_; 4]>>>() {
            let args: SmallVec<[&[u8]; 4]> =
                bytes.iter().zip(srcs).map(|(bytes, v)| &bytes[..size_of(v)]).collect();
            let mut out = [0; 8];
            elements(&args, &mut out[..size]);
            self.set(dst, Repr::Uniform(ty.elem.canonical(u64::from_le_bytes(out))));
            return;
        }
        let n = self.len(ty);
        for &v in srcs {
            self.dense(program, v);
        }
        let mut out = std::mem::take(&mut self.regs[dst.slot as usize].buf);
        {
            let args: SmallVec<[&[u8]; 4]> =
                srcs.iter().map(|v| self.regs[v.slot as usize].buf.slice(n * size_of(v))).collect();
            elements(&args, out.slice_mut(n * size));
        }
        self.regs[dst.slot as usize] = Reg { repr: Repr::Dense, buf: out };
    }

    /// All operands are the same everywhere: compute one element.
    fn map_uniform(&mut self, program: &Program, map: &Map) -> Result<(), FaultBox> {
        let mut values = [0u64; 3];
        for (value, &v) in values.iter_mut().zip(&map.srcs) {
            if let Repr::Uniform(bits) = self.regs[v.slot as usize].repr {
                *value = bits;
            }
        }
        if let Some(imm) = map.imm {
            values[map.srcs.len()] = imm;
        }
        let src: [*const u8; 3] = std::array::from_fn(|k| (&raw const values[k]).cast());
        let mut out = 0u64;
        // SAFETY: each operand is one element in eight bytes (little-endian low bytes first), the result likewise.
        unsafe { (map.kernel)(src, (&raw mut out).cast(), 1) };
        if let Some((kind, rounding)) = map.round {
            let mut x = [f32::from_bits(out as u32)];
            round_slice(&mut x, kind, rounding);
            out = u64::from(x[0].to_bits());
        }
        let elem = Self::ty(program, map.dst).elem;
        self.set(map.dst, Repr::Uniform(elem.canonical(out)));
        Ok(())
    }

    /// Division of scalars by zero is an error. In a tensor it is one only on request: lanes that a mask switches off
    /// later often divide by zero.
    fn check_divisor(
        &mut self,
        program: &Program,
        context: &Context<'_>,
        map: &Map,
        scalar: bool,
    ) -> Result<(), FaultBox> {
        if !(scalar && self.lanes == 1 || context.trap_division) {
            return Ok(());
        }
        let v = map.srcs[1];
        let ty = Self::ty(program, v);
        let zero = match self.regs[v.slot as usize].repr {
            Repr::Uniform(bits) => (bits == 0).then_some(0),
            _ => {
                let (n, size) = (self.len(ty), ty.elem.reg_size());
                let reg = self.dense(program, v);
                (0..n).find(|&i| read_bits(&reg.buf, size, i) == 0)
            }
        };
        match zero {
            None => Ok(()),
            Some(i) => {
                let mut fault = Fault::new("integer division by zero");
                if !ty.shape.is_empty() {
                    fault.element = Some((i, ty.shape.clone()));
                }
                Err(Box::new(fault))
            }
        }
    }

    pub(super) fn assign(&mut self, program: &Program, assigns: &[Assign], overlapping: bool) {
        if !overlapping {
            for a in assigns {
                self.transfer(program, a.src, a.dst, a.take);
            }
            return;
        }
        // Read everything before writing anything.
        let mut values: Vec<Reg> = Vec::with_capacity(assigns.len());
        for a in assigns {
            if a.take {
                values.push(std::mem::take(&mut self.regs[a.src.slot as usize]));
                continue;
            }
            let ty = Self::ty(program, a.src);
            let bytes = self.len(ty) * ty.elem.reg_size();
            let src = &self.regs[a.src.slot as usize];
            let mut copy = Reg { repr: src.repr, ..Reg::default() };
            if src.repr == Repr::Dense {
                copy.buf.slice_mut::<u8>(bytes).copy_from_slice(src.buf.slice(bytes));
            }
            values.push(copy);
        }
        for (a, value) in assigns.iter().zip(values) {
            self.regs[a.dst.slot as usize] = value;
        }
    }
}
