//! What is looked at with another shape: dimensions of extent 1, broadcasts, reshapes, permutations. Values in compact form stay so.

use tilewright_ir::Op;
use tilewright_ir::dialect::tt;

use super::{TileOp, by_size, row_offsets, strides_of};
use crate::buffer::{Buffer, Plain};
use crate::compile::{Builder, Res};
use crate::exec::{FaultBox, Frame, read_bits};
use crate::program::{Program, V};
use crate::tile::{Affine, BoxMask, MAX_COMPACT_RANK, Repr};

impl Builder<'_, '_> {
    /// `tt.expand_dims`.
    pub(super) fn expand_dims(&mut self, op: Op) -> Res<Box<dyn TileOp>> {
        let m = self.m;
        let e = tt::ExpandDims(op);
        let src = self.get(e.src(m))?;
        let dst = self.define(m.result(op))?;
        Ok(Box::new(ExpandDims { src, dst, axis: e.axis(m) as usize, take: false }))
    }

    /// `tt.splat`, `tt.broadcast`.
    pub(super) fn broadcast(&mut self, op: Op) -> Res<Box<dyn TileOp>> {
        let m = self.m;
        let src = self.get(m.operands(op)[0])?;
        let dst = self.define(m.result(op))?;
        let (from, to) = (&self.tile(src).shape, &self.tile(dst).shape);
        let fits =
            from.is_empty() || from.len() == to.len() && from.iter().zip(to).all(|(&f, &t)| f == t || f == 1);
        if !fits {
            return Err(self.error(format!("a tensor of shape {from:?} does not broadcast to {to:?}")));
        }
        Ok(Box::new(Broadcast { src, dst }))
    }

    /// `tt.reshape`, `tt.unsplat`.
    pub(super) fn reshape(&mut self, op: Op) -> Res<Box<dyn TileOp>> {
        let m = self.m;
        let src = self.get(m.operands(op)[0])?;
        let dst = self.define(m.result(op))?;
        if self.tile(src).len != self.tile(dst).len {
            return Err(self.error("a reshape to a different number of elements"));
        }
        Ok(Box::new(Reshape { src, dst, take: false }))
    }

    /// `tt.trans`.
    pub(super) fn trans(&mut self, op: Op) -> Res<Box<dyn TileOp>> {
        let m = self.m;
        let t = tt::Trans(op);
        let src = self.get(t.src(m))?;
        let order: Vec<usize> = t.order(m).iter().map(|&d| d as usize).collect();
        let mut sorted = order.clone();
        sorted.sort_unstable();
        if !sorted.into_iter().eq(0..self.tile(src).shape.len()) {
            return Err(self.error("the order is not a permutation of the dimensions"));
        }
        let dst = self.define(m.result(op))?;
        Ok(Box::new(Trans { src, dst, order }))
    }
}

/// A dimension of extent 1 inserted at the axis.
#[derive(Debug)]
struct ExpandDims {
    src: V,
    dst: V,
    axis: usize,
    take: bool,
}

impl TileOp for ExpandDims {
    fn registers(&mut self) -> (Vec<&mut V>, Vec<&mut V>) {
        (vec![&mut self.src], vec![&mut self.dst])
    }

    fn last_uses(&mut self, dies: &dyn Fn(V) -> bool) {
        self.take = dies(self.src);
    }

    fn run(&self, frame: &mut Frame, program: &Program) -> Result<(), FaultBox> {
        let repr = frame.regs[self.src.slot as usize].repr;
        let ty = Frame::ty(program, self.dst);
        match insert_dim(repr, self.axis, ty.shape.len()) {
            Some(repr) => frame.set(self.dst, repr),
            None => {
                frame.dense(program, self.src);
                frame.transfer(program, self.src, self.dst, self.take);
            }
        }
        Ok(())
    }
}

/// The same elements in the same order.
#[derive(Debug)]
struct Reshape {
    src: V,
    dst: V,
    take: bool,
}

impl TileOp for Reshape {
    fn registers(&mut self) -> (Vec<&mut V>, Vec<&mut V>) {
        (vec![&mut self.src], vec![&mut self.dst])
    }

    fn last_uses(&mut self, dies: &dyn Fn(V) -> bool) {
        self.take = dies(self.src);
    }

    fn run(&self, frame: &mut Frame, program: &Program) -> Result<(), FaultBox> {
        let (from, to) = (Frame::ty(program, self.src), Frame::ty(program, self.dst));
        let repr = frame.regs[self.src.slot as usize].repr;
        if let Some(repr) = reshape_compact(repr, &from.shape, &to.shape) {
            frame.set(self.dst, repr);
        } else {
            // A scalar in a combine function has many lanes; elsewhere the lengths agree.
            frame.dense(program, self.src);
            frame.transfer(program, self.src, self.dst, self.take);
        }
        Ok(())
    }
}

/// Dimensions of extent 1, or a scalar, repeated.
#[derive(Debug)]
struct Broadcast {
    src: V,
    dst: V,
}

impl TileOp for Broadcast {
    fn registers(&mut self) -> (Vec<&mut V>, Vec<&mut V>) {
        (vec![&mut self.src], vec![&mut self.dst])
    }

    fn run(&self, frame: &mut Frame, program: &Program) -> Result<(), FaultBox> {
        let (src, dst) = (self.src, self.dst);
        let (from, to) = (Frame::ty(program, src), Frame::ty(program, dst));
        let compact = match frame.regs[src.slot as usize].repr {
            repr @ (Repr::Uniform(_) | Repr::Affine(_)) => Some(repr),
            Repr::Mask(mut m) => {
                for (d, (&f, &t)) in from.shape.iter().zip(&to.shape).enumerate() {
                    // A mask is not empty, so it holds on the only index of an extent of 1.
                    if f == 1 {
                        (m.lo[d], m.hi[d]) = (0, t);
                    }
                }
                Some(m.repr(&to.shape))
            }
            Repr::Dense if from.shape.is_empty() => Some(Repr::Uniform(frame.scalar(program, src))),
            Repr::Dense if from.len == 1 => {
                let bits = read_bits(&frame.regs[src.slot as usize].buf, from.elem.reg_size(), 0);
                Some(Repr::Uniform(from.elem.canonical(bits)))
            }
            Repr::Dense => None,
        };
        match compact {
            Some(repr) => frame.set(dst, repr),
            None => frame.with_out(dst, |regs, out| {
                let source = &regs[src.slot as usize].buf;
                by_size!(from.elem.reg_size(), broadcast(source, out, &from.shape, &to.shape));
            }),
        }
        Ok(())
    }
}

/// Dimension i is the source's `order[i]`.
#[derive(Debug)]
struct Trans {
    src: V,
    dst: V,
    order: Vec<usize>,
}

impl TileOp for Trans {
    fn registers(&mut self) -> (Vec<&mut V>, Vec<&mut V>) {
        (vec![&mut self.src], vec![&mut self.dst])
    }

    fn run(&self, frame: &mut Frame, program: &Program) -> Result<(), FaultBox> {
        let (src, order) = (self.src, &self.order);
        let ty = Frame::ty(program, src);
        let compact = match frame.regs[src.slot as usize].repr {
            repr @ Repr::Uniform(_) => repr,
            Repr::Affine(a) => {
                let mut b = a;
                for (d, &from) in order.iter().enumerate() {
                    b.strides[d] = a.strides[from];
                }
                Repr::Affine(b)
            }
            Repr::Mask(a) => {
                let mut b = a;
                for (d, &from) in order.iter().enumerate() {
                    (b.lo[d], b.hi[d]) = (a.lo[from], a.hi[from]);
                }
                Repr::Mask(b)
            }
            Repr::Dense => {
                frame.with_out(self.dst, |regs, out| {
                    by_size!(ty.elem.reg_size(), trans(&regs[src.slot as usize].buf, out, &ty.shape, order));
                });
                return Ok(());
            }
        };
        frame.set(self.dst, compact);
        Ok(())
    }
}

/// A compact value with a dimension of extent 1 inserted.
fn insert_dim(repr: Repr, axis: usize, rank: usize) -> Option<Repr> {
    match repr {
        Repr::Uniform(_) => Some(repr),
        _ if rank > MAX_COMPACT_RANK => None,
        Repr::Affine(mut a) => {
            a.strides.copy_within(axis..MAX_COMPACT_RANK - 1, axis + 1);
            a.strides[axis] = 0;
            Some(Repr::Affine(a))
        }
        Repr::Mask(mut m) => {
            m.lo.copy_within(axis..MAX_COMPACT_RANK - 1, axis + 1);
            m.hi.copy_within(axis..MAX_COMPACT_RANK - 1, axis + 1);
            (m.lo[axis], m.hi[axis]) = (0, 1);
            Some(Repr::Mask(m))
        }
        Repr::Dense => None,
    }
}

/// A compact value under another shape, where only dimensions of extent 1 come or go.
fn reshape_compact(repr: Repr, from: &[u32], to: &[u32]) -> Option<Repr> {
    if let Repr::Uniform(_) = repr {
        return Some(repr);
    }
    if to.len() > MAX_COMPACT_RANK || from.len() > MAX_COMPACT_RANK {
        return None;
    }
    let wide = |shape: &[u32]| -> Vec<usize> { (0..shape.len()).filter(|&d| shape[d] != 1).collect() };
    let (f, t) = (wide(from), wide(to));
    if f.len() != t.len() || f.iter().zip(&t).any(|(&a, &b)| from[a] != to[b]) {
        return None;
    }
    match repr {
        Repr::Affine(a) => {
            let mut b = Affine::constant(a.base);
            for (&from, &to) in f.iter().zip(&t) {
                b.strides[to] = a.strides[from];
            }
            Some(Repr::Affine(b))
        }
        Repr::Mask(a) => {
            let mut b = BoxMask::all(to);
            for (&from, &to) in f.iter().zip(&t) {
                (b.lo[to], b.hi[to]) = (a.lo[from], a.hi[from]);
            }
            Some(Repr::Mask(b))
        }
        _ => None,
    }
}

fn broadcast<T: Plain>(src: &Buffer, out: &mut Buffer, from: &[u32], to: &[u32]) {
    let mut strides = strides_of(from);
    for (s, &e) in strides.iter_mut().zip(from) {
        if e == 1 {
            *s = 0;
        }
    }
    let inner = to[to.len() - 1] as usize;
    let step = strides[to.len() - 1];
    let source = src.slice::<T>(from.iter().map(|&e| e as usize).product());
    let out = out.slice_mut::<T>(to.iter().map(|&e| e as usize).product());
    row_offsets(to, &strides, |row, offset| {
        let dst = &mut out[row * inner..][..inner];
        if step == 0 {
            dst.fill(source[offset]);
        } else {
            dst.copy_from_slice(&source[offset..offset + inner]);
        }
    });
}

fn trans<T: Plain>(src: &Buffer, out: &mut Buffer, shape: &[u32], order: &[usize]) {
    let source_strides = strides_of(shape);
    let to: Vec<u32> = order.iter().map(|&d| shape[d]).collect();
    let strides: Vec<usize> = order.iter().map(|&d| source_strides[d]).collect();
    let n: usize = shape.iter().map(|&e| e as usize).product();
    let inner = to[to.len() - 1] as usize;
    let step = strides[to.len() - 1];
    let source = src.slice::<T>(n);
    let out = out.slice_mut::<T>(n);
    row_offsets(&to, &strides, |row, offset| {
        let dst = &mut out[row * inner..][..inner];
        if step == 1 {
            dst.copy_from_slice(&source[offset..offset + inner]);
        } else {
            for (i, x) in dst.iter_mut().enumerate() {
                *x = source[offset + i * step];
            }
        }
    });
}
