//! Elements that numbers name: gathers and histograms.

use tilewright_ir::Op;
use tilewright_ir::dialect::tt;

use super::{TileOp, by_size, strides_of};
use crate::buffer::{Buffer, Plain};
use crate::compile::{Builder, Res};
use crate::elem::Elem;
use crate::exec::{Fault, FaultBox, Frame, read_bits};
use crate::program::{Program, V};
use crate::tile::TileType;

impl Builder<'_, '_> {
    /// `tt.histogram`.
    pub(super) fn histogram(&mut self, op: Op) -> Res<Box<dyn TileOp>> {
        let m = self.m;
        let h = tt::Histogram(op);
        let src = self.get(h.src(m))?;
        let mask = h.mask(m).map(|v| self.get(v)).transpose()?;
        let dst = self.define(m.result(op))?;
        if !self.elem(src).is_int() || self.elem(dst) != Elem::I32 {
            return Err(self.unsupported("a histogram of these types"));
        }
        Ok(Box::new(Histogram { src, mask, dst }))
    }

    /// `tt.gather`.
    pub(super) fn gather(&mut self, op: Op) -> Res<Box<dyn TileOp>> {
        let m = self.m;
        let g = tt::Gather(op);
        let (src, indices) = (self.get(g.src(m))?, self.get(g.indices(m))?);
        let axis = self.checked_axis(g.axis(m), &[src])?;
        if self.tile(indices).shape.len() != self.tile(src).shape.len() {
            return Err(self.error("the indices must have the source's rank"));
        }
        let dst = self.define(m.result(op))?;
        Ok(Box::new(Gather { src, indices, dst, axis }))
    }
}

/// How many elements have each value.
#[derive(Debug)]
struct Histogram {
    src: V,
    mask: Option<V>,
    dst: V,
}

impl TileOp for Histogram {
    fn registers(&mut self) -> (Vec<&mut V>, Vec<&mut V>) {
        ([&mut self.src].into_iter().chain(&mut self.mask).collect(), vec![&mut self.dst])
    }

    fn run(&self, frame: &mut Frame, program: &Program) -> Result<(), FaultBox> {
        let ty = Frame::ty(program, self.src);
        let bins = Frame::ty(program, self.dst).len;
        frame.dense(program, self.src);
        if let Some(mask) = self.mask {
            frame.dense(program, mask);
        }
        frame.with_out(self.dst, |regs, out| {
            let out = out.slice_mut::<i32>(bins);
            out.fill(0);
            let buf = &regs[self.src.slot as usize].buf;
            let keep = self.mask.map(|m| regs[m.slot as usize].buf.slice::<u8>(ty.len));
            for i in 0..ty.len {
                let bits = ty.elem.canonical(read_bits(buf, ty.elem.reg_size(), i));
                if (bits as usize) < bins && keep.is_none_or(|k| k[i] != 0) {
                    out[bits as usize] = out[bits as usize].wrapping_add(1);
                }
            }
        });
        Ok(())
    }
}

/// Elements whose numbers along the axis are given.
#[derive(Debug)]
struct Gather {
    src: V,
    indices: V,
    dst: V,
    axis: usize,
}

impl TileOp for Gather {
    fn registers(&mut self) -> (Vec<&mut V>, Vec<&mut V>) {
        (vec![&mut self.src, &mut self.indices], vec![&mut self.dst])
    }

    fn run(&self, frame: &mut Frame, program: &Program) -> Result<(), FaultBox> {
        let (ty, index_ty) = (Frame::ty(program, self.src), Frame::ty(program, self.indices));
        frame.dense(program, self.src);
        frame.dense(program, self.indices);
        let mut bad = None;
        frame.with_out(self.dst, |regs, out| {
            let source = &regs[self.src.slot as usize].buf;
            let index = &regs[self.indices.slot as usize].buf;
            bad = by_size!(ty.elem.reg_size(), gather(source, ty, index, index_ty, out, self.axis)).err();
        });
        match bad {
            None => Ok(()),
            Some((i, value)) => {
                let mut fault = Fault::new(format!(
                    "gather index {value} is outside the {} elements of axis {}",
                    ty.shape[self.axis], self.axis
                ));
                fault.element = Some((i, index_ty.shape.clone()));
                fault.notes.push(
                    "elements that a mask leaves out later need an index that is there, too: `other=0` of its load, or tl.where".into(),
                );
                Err(Box::new(fault))
            }
        }
    }
}

fn gather<T: Plain>(
    src: &Buffer,
    ty: &TileType,
    index: &Buffer,
    index_ty: &TileType,
    out: &mut Buffer,
    axis: usize,
) -> Result<(), (usize, i64)> {
    let strides = strides_of(&ty.shape);
    let (source, out) = (src.slice::<T>(ty.len), out.slice_mut::<T>(index_ty.len));
    let index_strides = strides_of(&index_ty.shape);
    for (i, x) in out.iter_mut().enumerate() {
        let bits = read_bits(index, index_ty.elem.reg_size(), i);
        let at = index_ty.elem.canonical(bits) as i64;
        if index_ty.elem == Elem::I1 || at < 0 || at >= i64::from(ty.shape[axis]) {
            return Err((i, at));
        }
        let mut offset = 0;
        for d in 0..ty.shape.len() {
            let coordinate =
                if d == axis { at as usize } else { i / index_strides[d] % index_ty.shape[d] as usize };
            offset += coordinate * strides[d];
        }
        *x = *source.get(offset).ok_or((i, at))?;
    }
    Ok(())
}
