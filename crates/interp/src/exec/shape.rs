//! Operations that arrange elements: ranges, broadcasts, reshapes, permutations, gathers, histograms.

use super::{Fault, FaultBox, Frame};
use crate::buffer::Plain;
use crate::elem::Elem;
use crate::program::{Instr, Program, V};
use crate::tile::{Affine, BoxMask, MAX_COMPACT_RANK, Repr, TileType};

/// Calls a generic function with the unsigned integer type of an element size.
macro_rules! by_size {
    ($size:expr, $f:ident ( $($arg:expr),* )) => {
        match $size {
            1 => $f::<u8>($($arg),*),
            2 => $f::<u16>($($arg),*),
            4 => $f::<u32>($($arg),*),
            _ => $f::<u64>($($arg),*),
        }
    };
}
pub(super) use by_size;

impl Frame {
    pub(super) fn shape_op(&mut self, program: &Program, instr: &Instr) -> Result<(), FaultBox> {
        match instr {
            Instr::Range { dst, start } => {
                let mut a = Affine::constant(i64::from(*start));
                a.strides[0] = 1;
                let ty = Self::ty(program, *dst);
                let repr = a.checked(ty).ok_or_else(|| Box::new(Fault::new("a range beyond 32 bits")))?;
                self.set(*dst, repr);
            }
            Instr::ExpandDims { src, dst, axis, take } => {
                let repr = self.regs[src.slot as usize].repr;
                let ty = Self::ty(program, *dst);
                match insert_dim(repr, *axis, ty.shape.len()) {
                    Some(repr) => self.set(*dst, repr),
                    None => {
                        self.dense(program, *src);
                        self.transfer(program, *src, *dst, *take);
                    }
                }
            }
            Instr::Reshape { src, dst, take } => self.reshape(program, *src, *dst, *take),
            Instr::Broadcast { src, dst } => self.broadcast(program, *src, *dst),
            Instr::Trans { src, dst, order } => self.trans(program, *src, *dst, order),
            Instr::Rearrange { srcs, dsts, from } => {
                let size = Self::ty(program, srcs[0]).elem.reg_size();
                for &src in srcs {
                    self.dense(program, src);
                }
                for (&dst, from) in dsts.iter().zip(from) {
                    let lens: Vec<usize> = srcs.iter().map(|&v| Self::ty(program, v).len).collect();
                    self.with_out(dst, |regs, out| {
                        let bufs: Vec<&Buffer> = srcs.iter().map(|v| &regs[v.slot as usize].buf).collect();
                        by_size!(size, rearrange(&bufs, &lens, out, from));
                    });
                }
            }
            Instr::Cat { lhs, rhs, dst } => {
                let (a, b) = (Self::ty(program, *lhs), Self::ty(program, *rhs));
                let size = a.elem.reg_size();
                let (n, m) = (a.len * size, b.len * size);
                self.dense(program, *lhs);
                self.dense(program, *rhs);
                self.with_out(*dst, |regs, out| {
                    let out = out.slice_mut::<u8>(n + m);
                    out[..n].copy_from_slice(regs[lhs.slot as usize].buf.slice(n));
                    out[n..].copy_from_slice(regs[rhs.slot as usize].buf.slice(m));
                });
            }
            Instr::Histogram { src, mask, dst } => self.histogram(program, *src, *mask, *dst),
            Instr::Gather { src, indices, dst, axis } => self.gather(program, *src, *indices, *dst, *axis)?,
            Instr::ExtractTile { src, index, dst } => {
                let (whole, tile) = (Self::ty(program, *src), Self::ty(program, *dst));
                let first = self.tile_start(program, index, &whole.shape, &tile.shape)?;
                self.dense(program, *src);
                self.with_out(*dst, |regs, out| {
                    let source = &regs[src.slot as usize].buf;
                    by_size!(whole.elem.reg_size(), extract(source, whole, out, tile, first));
                });
            }
            Instr::InsertTile { src, tile, index, dst } => {
                let (whole, part) = (Self::ty(program, *src), Self::ty(program, *tile));
                let first = self.tile_start(program, index, &whole.shape, &part.shape)?;
                self.dense(program, *src);
                self.dense(program, *tile);
                self.with_out(*dst, |regs, out| {
                    let (source, tile) = (&regs[src.slot as usize].buf, &regs[tile.slot as usize].buf);
                    by_size!(whole.elem.reg_size(), insert(source, whole, tile, part, out, first));
                });
            }
            _ => unreachable!("not an operation on shapes"),
        }
        Ok(())
    }

    /// Fills the buffer of a register that is no operand, while reading others.
    fn with_out(&mut self, dst: V, f: impl FnOnce(&[crate::tile::Reg], &mut crate::buffer::Buffer)) {
        let mut reg = std::mem::take(&mut self.regs[dst.slot as usize]);
        f(&self.regs, &mut reg.buf);
        reg.repr = Repr::Dense;
        self.regs[dst.slot as usize] = reg;
    }

    /// The place of a tile's first element, by its numbers along each dimension.
    fn tile_start(
        &mut self,
        program: &Program,
        index: &[V],
        whole: &[u32],
        tile: &[u32],
    ) -> Result<usize, FaultBox> {
        let strides = strides_of(whole);
        let mut first = 0;
        for (d, &v) in index.iter().enumerate() {
            let bits = self.scalar(program, v);
            let at = Self::ty(program, v).elem.canonical(bits) as i64;
            let count = whole[d] / tile[d];
            if at < 0 || at >= i64::from(count) {
                return Err(Box::new(Fault::new(format!(
                    "tile index {at} is outside the {count} tiles along dimension {d}"
                ))));
            }
            first += at as usize * tile[d] as usize * strides[d];
        }
        Ok(first)
    }

    fn reshape(&mut self, program: &Program, src: V, dst: V, take: bool) {
        let (from, to) = (Self::ty(program, src), Self::ty(program, dst));
        let repr = self.regs[src.slot as usize].repr;
        if let Some(repr) = reshape_compact(repr, &from.shape, &to.shape) {
            return self.set(dst, repr);
        }
        // A scalar in a combine function has many lanes; elsewhere the lengths agree.
        self.dense(program, src);
        self.transfer(program, src, dst, take);
    }

    fn broadcast(&mut self, program: &Program, src: V, dst: V) {
        let (from, to) = (Self::ty(program, src), Self::ty(program, dst));
        let repr = self.regs[src.slot as usize].repr;
        match repr {
            Repr::Uniform(_) | Repr::Affine(_) => return self.set(dst, repr),
            Repr::Mask(mut m) => {
                for (d, (&f, &t)) in from.shape.iter().zip(&to.shape).enumerate() {
                    // A mask is not empty, so it holds on the only index of an extent of 1.
                    if f == 1 {
                        (m.lo[d], m.hi[d]) = (0, t);
                    }
                }
                return self.set(dst, m.repr(&to.shape));
            }
            Repr::Dense => {}
        }
        if from.shape.is_empty() {
            let bits = self.scalar(program, src);
            return self.set(dst, Repr::Uniform(bits));
        }
        if from.len == 1 {
            let bits = super::read_bits(&self.regs[src.slot as usize].buf, from.elem.reg_size(), 0);
            return self.set(dst, Repr::Uniform(from.elem.canonical(bits)));
        }
        self.with_out(dst, |regs, out| {
            let source = &regs[src.slot as usize].buf;
            by_size!(from.elem.reg_size(), broadcast(source, out, &from.shape, &to.shape));
        });
    }

    fn trans(&mut self, program: &Program, src: V, dst: V, order: &[usize]) {
        let ty = Self::ty(program, src);
        match self.regs[src.slot as usize].repr {
            Repr::Uniform(bits) => return self.set(dst, Repr::Uniform(bits)),
            Repr::Affine(a) => {
                let mut b = a;
                for (d, &from) in order.iter().enumerate() {
                    b.strides[d] = a.strides[from];
                }
                return self.set(dst, Repr::Affine(b));
            }
            Repr::Mask(a) => {
                let mut b = a;
                for (d, &from) in order.iter().enumerate() {
                    (b.lo[d], b.hi[d]) = (a.lo[from], a.hi[from]);
                }
                return self.set(dst, Repr::Mask(b));
            }
            Repr::Dense => {}
        }
        self.with_out(dst, |regs, out| {
            by_size!(ty.elem.reg_size(), trans(&regs[src.slot as usize].buf, out, &ty.shape, order));
        });
    }

    fn histogram(&mut self, program: &Program, src: V, mask: Option<V>, dst: V) {
        let ty = Self::ty(program, src);
        let bins = Self::ty(program, dst).len;
        self.dense(program, src);
        if let Some(mask) = mask {
            self.dense(program, mask);
        }
        self.with_out(dst, |regs, out| {
            let out = out.slice_mut::<i32>(bins);
            out.fill(0);
            let buf = &regs[src.slot as usize].buf;
            let keep = mask.map(|m| regs[m.slot as usize].buf.slice::<u8>(ty.len));
            for i in 0..ty.len {
                let bits = ty.elem.canonical(super::read_bits(buf, ty.elem.reg_size(), i));
                if (bits as usize) < bins && keep.is_none_or(|k| k[i] != 0) {
                    out[bits as usize] = out[bits as usize].wrapping_add(1);
                }
            }
        });
    }

    fn gather(&mut self, program: &Program, src: V, indices: V, dst: V, axis: usize) -> Result<(), FaultBox> {
        let (ty, index_ty) = (Self::ty(program, src), Self::ty(program, indices));
        self.dense(program, src);
        self.dense(program, indices);
        let mut bad = None;
        self.with_out(dst, |regs, out| {
            let (source, index) = (&regs[src.slot as usize].buf, &regs[indices.slot as usize].buf);
            bad = by_size!(ty.elem.reg_size(), gather(source, ty, index, index_ty, out, axis)).err();
        });
        match bad {
            None => Ok(()),
            Some((i, value)) => {
                let mut fault = Fault::new(format!(
                    "gather index {value} is outside the {} elements of axis {axis}",
                    ty.shape[axis]
                ));
                fault.element = Some((i, index_ty.shape.clone()));
                Err(Box::new(fault))
            }
        }
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

use crate::buffer::Buffer;

fn rearrange<T: Plain>(srcs: &[&Buffer], lens: &[usize], out: &mut Buffer, from: &[(u32, u32)]) {
    let srcs: Vec<&[T]> = srcs.iter().zip(lens).map(|(b, &n)| b.slice::<T>(n)).collect();
    for (x, &(src, at)) in out.slice_mut::<T>(from.len()).iter_mut().zip(from) {
        *x = srcs[src as usize][at as usize];
    }
}

/// The index of each row of `shape` in turn, as an offset with the given strides of the outer dimensions.
fn row_offsets(shape: &[u32], strides: &[usize], mut f: impl FnMut(usize, usize)) {
    let outer = shape.len().saturating_sub(1);
    let rows: usize = shape[..outer].iter().map(|&e| e as usize).product();
    let mut index = vec![0u32; outer];
    let mut offset = 0usize;
    for row in 0..rows {
        f(row, offset);
        for d in (0..outer).rev() {
            index[d] += 1;
            offset += strides[d];
            if index[d] < shape[d] {
                break;
            }
            offset -= strides[d] * shape[d] as usize;
            index[d] = 0;
        }
    }
}

/// Row-major strides.
fn strides_of(shape: &[u32]) -> Vec<usize> {
    let mut strides = vec![1usize; shape.len()];
    for d in (1..shape.len()).rev() {
        strides[d - 1] = strides[d] * shape[d] as usize;
    }
    strides
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

fn extract<T: Plain>(src: &Buffer, whole: &TileType, out: &mut Buffer, tile: &TileType, first: usize) {
    let inner = tile.shape[tile.shape.len() - 1] as usize;
    let (source, out) = (src.slice::<T>(whole.len), out.slice_mut::<T>(tile.len));
    row_offsets(&tile.shape, &strides_of(&whole.shape), |row, offset| {
        out[row * inner..][..inner].copy_from_slice(&source[first + offset..][..inner]);
    });
}

fn insert<T: Plain>(
    src: &Buffer,
    whole: &TileType,
    tile: &Buffer,
    part: &TileType,
    out: &mut Buffer,
    first: usize,
) {
    let inner = part.shape[part.shape.len() - 1] as usize;
    let (tile, out) = (tile.slice::<T>(part.len), out.slice_mut::<T>(whole.len));
    out.copy_from_slice(src.slice::<T>(whole.len));
    row_offsets(&part.shape, &strides_of(&whole.shape), |row, offset| {
        out[first + offset..][..inner].copy_from_slice(&tile[row * inner..][..inner]);
    });
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
        let bits = super::read_bits(index, index_ty.elem.reg_size(), i);
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
