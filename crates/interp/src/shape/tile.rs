//! Tiles of the grid that a tensor is cut into: taken out, and put in.

use tilewright_ir::Op;
use tilewright_ir::dialect::tt;

use super::{TileOp, by_size, row_offsets, strides_of};
use crate::buffer::{Buffer, Plain};
use crate::compile::{Builder, Res};
use crate::exec::{Fault, FaultBox, Frame};
use crate::program::{Program, V};
use crate::tile::TileType;

impl Builder<'_, '_> {
    /// `tt.extract_tile`.
    pub(super) fn extract_tile(&mut self, op: Op) -> Res<Box<dyn TileOp>> {
        let (m, extract) = (self.m, tt::ExtractTile(op));
        let (src, index) = (self.get(extract.src(m))?, self.get_all(extract.index(m))?);
        let dst = self.define(m.result(op))?;
        Ok(Box::new(ExtractTile { src, index, dst }))
    }

    /// `tt.insert_tile`.
    pub(super) fn insert_tile(&mut self, op: Op) -> Res<Box<dyn TileOp>> {
        let (m, insert) = (self.m, tt::InsertTile(op));
        let (src, tile) = (self.get(insert.src(m))?, self.get(insert.tile(m))?);
        let index = self.get_all(insert.index(m))?;
        let dst = self.define(m.result(op))?;
        Ok(Box::new(InsertTile { src, tile, index, dst }))
    }
}

#[derive(Debug)]
struct ExtractTile {
    src: V,
    index: Vec<V>,
    dst: V,
}

impl TileOp for ExtractTile {
    fn registers(&mut self) -> (Vec<&mut V>, Vec<&mut V>) {
        ([&mut self.src].into_iter().chain(&mut self.index).collect(), vec![&mut self.dst])
    }

    fn run(&self, frame: &mut Frame, program: &Program) -> Result<(), FaultBox> {
        let (whole, tile) = (Frame::ty(program, self.src), Frame::ty(program, self.dst));
        let first = tile_start(frame, program, &self.index, &whole.shape, &tile.shape)?;
        frame.dense(program, self.src);
        frame.with_out(self.dst, |regs, out| {
            let source = &regs[self.src.slot as usize].buf;
            by_size!(whole.elem.reg_size(), extract(source, whole, out, tile, first));
        });
        Ok(())
    }
}

#[derive(Debug)]
struct InsertTile {
    src: V,
    tile: V,
    index: Vec<V>,
    dst: V,
}

impl TileOp for InsertTile {
    fn registers(&mut self) -> (Vec<&mut V>, Vec<&mut V>) {
        ([&mut self.src, &mut self.tile].into_iter().chain(&mut self.index).collect(), vec![&mut self.dst])
    }

    fn run(&self, frame: &mut Frame, program: &Program) -> Result<(), FaultBox> {
        let (whole, part) = (Frame::ty(program, self.src), Frame::ty(program, self.tile));
        let first = tile_start(frame, program, &self.index, &whole.shape, &part.shape)?;
        frame.dense(program, self.src);
        frame.dense(program, self.tile);
        frame.with_out(self.dst, |regs, out| {
            let (source, tile) = (&regs[self.src.slot as usize].buf, &regs[self.tile.slot as usize].buf);
            by_size!(whole.elem.reg_size(), insert(source, whole, tile, part, out, first));
        });
        Ok(())
    }
}

/// The place of a tile's first element, by its numbers along each dimension.
fn tile_start(
    frame: &mut Frame,
    program: &Program,
    index: &[V],
    whole: &[u32],
    tile: &[u32],
) -> Result<usize, FaultBox> {
    let strides = strides_of(whole);
    let mut first = 0;
    for (d, &v) in index.iter().enumerate() {
        let bits = frame.scalar(program, v);
        let at = Frame::ty(program, v).elem.canonical(bits) as i64;
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
