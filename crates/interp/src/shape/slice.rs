//! Slices of tensors: taken out, and put in.

use tilewright_ir::Op;
use tilewright_ir::dialect::tt;

use super::{TileOp, by_size, row_offsets, strides_of};
use crate::buffer::{Buffer, Plain};
use crate::compile::{Builder, Res};
use crate::exec::{Fault, FaultBox, Frame};
use crate::program::{Program, V};
use crate::tile::TileType;

impl Builder<'_, '_> {
    /// `tt.extract_slice`.
    pub(super) fn extract_slice(&mut self, op: Op) -> Res<Box<dyn TileOp>> {
        let (m, extract) = (self.m, tt::ExtractSlice(op));
        let (src, offsets) = (self.get(extract.src(m))?, self.get_all(extract.offsets(m))?);
        let at = Place { offsets, strides: strides(&extract.strides(m)) };
        let dst = self.define(m.result(op))?;
        Ok(Box::new(ExtractSlice { src, at, dst }))
    }

    /// `tt.insert_slice`.
    pub(super) fn insert_slice(&mut self, op: Op) -> Res<Box<dyn TileOp>> {
        let (m, insert) = (self.m, tt::InsertSlice(op));
        let (src, part) = (self.get(insert.src(m))?, self.get(insert.part(m))?);
        let at = Place { offsets: self.get_all(insert.offsets(m))?, strides: strides(&insert.strides(m)) };
        let dst = self.define(m.result(op))?;
        Ok(Box::new(InsertSlice { src, part, at, dst }))
    }
}

fn strides(given: &[i32]) -> Vec<usize> {
    given.iter().map(|&n| n.unsigned_abs() as usize).collect()
}

/// Where a slice lies.
#[derive(Debug)]
struct Place {
    offsets: Vec<V>,
    strides: Vec<usize>,
}

impl Place {
    /// Its first element in the whole, and how far apart its elements are in it.
    fn in_whole(
        &self,
        frame: &mut Frame,
        program: &Program,
        whole: &[u32],
        part: &[u32],
    ) -> Result<(usize, Vec<usize>), FaultBox> {
        let (mut first, mut apart) = (0, strides_of(whole));
        for (d, (&v, &stride)) in self.offsets.iter().zip(&self.strides).enumerate() {
            let at = Frame::ty(program, v).elem.canonical(frame.scalar(program, v)) as i64;
            let last = at + (i64::from(part[d]) - 1) * stride as i64;
            if at < 0 || last >= i64::from(whole[d]) {
                return Err(Box::new(Fault::new(format!(
                    "elements {at} to {last} of a slice along dimension {d}, where there are {}",
                    whole[d]
                ))));
            }
            first += at as usize * apart[d];
            apart[d] *= stride;
        }
        Ok((first, apart))
    }
}

#[derive(Debug)]
struct ExtractSlice {
    src: V,
    at: Place,
    dst: V,
}

impl TileOp for ExtractSlice {
    fn registers(&mut self) -> (Vec<&mut V>, Vec<&mut V>) {
        ([&mut self.src].into_iter().chain(&mut self.at.offsets).collect(), vec![&mut self.dst])
    }

    fn run(&self, frame: &mut Frame, program: &Program) -> Result<(), FaultBox> {
        let (whole, part) = (Frame::ty(program, self.src), Frame::ty(program, self.dst));
        let (first, apart) = self.at.in_whole(frame, program, &whole.shape, &part.shape)?;
        frame.dense(program, self.src);
        frame.with_out(self.dst, |regs, out| {
            let source = &regs[self.src.slot as usize].buf;
            by_size!(whole.elem.reg_size(), extract(source, whole, out, part, first, &apart));
        });
        Ok(())
    }
}

#[derive(Debug)]
struct InsertSlice {
    src: V,
    part: V,
    at: Place,
    dst: V,
}

impl TileOp for InsertSlice {
    fn registers(&mut self) -> (Vec<&mut V>, Vec<&mut V>) {
        let read = [&mut self.src, &mut self.part].into_iter().chain(&mut self.at.offsets).collect();
        (read, vec![&mut self.dst])
    }

    fn run(&self, frame: &mut Frame, program: &Program) -> Result<(), FaultBox> {
        let (whole, part) = (Frame::ty(program, self.src), Frame::ty(program, self.part));
        let (first, apart) = self.at.in_whole(frame, program, &whole.shape, &part.shape)?;
        frame.dense(program, self.src);
        frame.dense(program, self.part);
        frame.with_out(self.dst, |regs, out| {
            let (source, slice) = (&regs[self.src.slot as usize].buf, &regs[self.part.slot as usize].buf);
            by_size!(whole.elem.reg_size(), insert(source, whole, slice, part, out, first, &apart));
        });
        Ok(())
    }
}

/// Where each element of a slice lies in the whole.
fn each(part: &TileType, first: usize, apart: &[usize], mut f: impl FnMut(usize, usize)) {
    let inner = part.shape[part.shape.len() - 1] as usize;
    let step = apart[apart.len() - 1];
    row_offsets(&part.shape, apart, |row, offset| {
        (0..inner).for_each(|i| f(row * inner + i, first + offset + i * step));
    });
}

fn extract<T: Plain>(
    src: &Buffer,
    whole: &TileType,
    out: &mut Buffer,
    part: &TileType,
    first: usize,
    apart: &[usize],
) {
    let (source, out) = (src.slice::<T>(whole.len), out.slice_mut::<T>(part.len));
    each(part, first, apart, |i, at| out[i] = source[at]);
}

fn insert<T: Plain>(
    src: &Buffer,
    whole: &TileType,
    slice: &Buffer,
    part: &TileType,
    out: &mut Buffer,
    first: usize,
    apart: &[usize],
) {
    let (slice, out) = (slice.slice::<T>(part.len), out.slice_mut::<T>(whole.len));
    out.copy_from_slice(src.slice::<T>(whole.len));
    each(part, first, apart, |i, at| out[at] = slice[i]);
}
