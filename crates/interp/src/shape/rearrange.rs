//! Elements of the operands at places that are known when the program is made, and one operand after the other.

use tilewright_ir::Op;
use tilewright_ir::dialect::tt;
use tilewright_ir::index::Relation;

use super::{TileOp, by_size};
use crate::buffer::{Buffer, Plain};
use crate::compile::{Builder, Res};
use crate::exec::{FaultBox, Frame};
use crate::program::{Program, V};

impl Builder<'_, '_> {
    /// Results whose elements are elements of the operands, at places that the operation's declaration tells.
    pub(super) fn rearrange(&mut self, op: Op) -> Res<Box<dyn TileOp>> {
        let m = self.m;
        let relation = Relation::of(m, op).map_err(|e| self.error(e))?;
        let srcs = self.get_all(m.operands(op))?;
        let mut from = Vec::with_capacity(relation.results.len());
        for (n, site) in relation.results.iter().enumerate() {
            let Some(site) = site else { return Err(self.error("a tensor expected")) };
            let mut at = vec![0; site.shape.len()];
            let mut places = Vec::new();
            for _ in 0..site.shape.iter().product::<u32>() {
                let (src, of) =
                    relation.source(n, &at).ok_or_else(|| self.error("an element without a place"))?;
                let shape = &self.tile(srcs[src]).shape;
                places.push((src as u32, of.iter().zip(shape).fold(0, |i, (&x, &n)| i * n + x)));
                for d in (0..at.len()).rev() {
                    at[d] += 1;
                    if at[d] < site.shape[d] {
                        break;
                    }
                    at[d] = 0;
                }
            }
            from.push(places);
        }
        let dsts = m.results(op).iter().map(|&v| self.define(v)).collect::<Res<_>>()?;
        Ok(Box::new(Rearrange { srcs, dsts, from }))
    }

    /// `tt.cat`.
    pub(super) fn cat(&mut self, op: Op) -> Res<Box<dyn TileOp>> {
        let m = self.m;
        let c = tt::Cat(op);
        let (lhs, rhs) = (self.get(c.lhs(m))?, self.get(c.rhs(m))?);
        let dst = self.define(m.result(op))?;
        Ok(Box::new(Cat { lhs, rhs, dst }))
    }
}

/// For each element of each result a source and an element of it.
#[derive(Debug)]
struct Rearrange {
    srcs: Vec<V>,
    dsts: Vec<V>,
    from: Vec<Vec<(u32, u32)>>,
}

impl TileOp for Rearrange {
    fn registers(&mut self) -> (Vec<&mut V>, Vec<&mut V>) {
        (self.srcs.iter_mut().collect(), self.dsts.iter_mut().collect())
    }

    fn run(&self, frame: &mut Frame, program: &Program) -> Result<(), FaultBox> {
        let size = Frame::ty(program, self.srcs[0]).elem.reg_size();
        for &src in &self.srcs {
            frame.dense(program, src);
        }
        let lens: Vec<usize> = self.srcs.iter().map(|&v| Frame::ty(program, v).len).collect();
        for (&dst, from) in self.dsts.iter().zip(&self.from) {
            frame.with_out(dst, |regs, out| {
                let bufs: Vec<&Buffer> = self.srcs.iter().map(|v| &regs[v.slot as usize].buf).collect();
                by_size!(size, rearrange(&bufs, &lens, out, from));
            });
        }
        Ok(())
    }
}

/// One after the other.
#[derive(Debug)]
struct Cat {
    lhs: V,
    rhs: V,
    dst: V,
}

impl TileOp for Cat {
    fn registers(&mut self) -> (Vec<&mut V>, Vec<&mut V>) {
        (vec![&mut self.lhs, &mut self.rhs], vec![&mut self.dst])
    }

    fn run(&self, frame: &mut Frame, program: &Program) -> Result<(), FaultBox> {
        let (a, b) = (Frame::ty(program, self.lhs), Frame::ty(program, self.rhs));
        let size = a.elem.reg_size();
        let (n, m) = (a.len * size, b.len * size);
        frame.dense(program, self.lhs);
        frame.dense(program, self.rhs);
        frame.with_out(self.dst, |regs, out| {
            let out = out.slice_mut::<u8>(n + m);
            out[..n].copy_from_slice(regs[self.lhs.slot as usize].buf.slice(n));
            out[n..].copy_from_slice(regs[self.rhs.slot as usize].buf.slice(m));
        });
        Ok(())
    }
}

fn rearrange<T: Plain>(srcs: &[&Buffer], lens: &[usize], out: &mut Buffer, from: &[(u32, u32)]) {
    let srcs: Vec<&[T]> = srcs.iter().zip(lens).map(|(b, &n)| b.slice::<T>(n)).collect();
    for (x, &(src, at)) in out.slice_mut::<T>(from.len()).iter_mut().zip(from) {
        *x = srcs[src as usize][at as usize];
    }
}
