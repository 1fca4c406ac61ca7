//! A tensor as the blocks that it is cut into, and other sizes of them.

use rustc_hash::FxHashMap;
use tilewright_ir::dialect::{tt, ub};
use tilewright_ir::{AttrKind, Builder, Diagnostic, Shape, Value};
use tilewright_layout::coordinates;

use super::Splitter;
use super::tiles::clip;
use crate::transform::assign_layouts::after_value;

/// Blocks of one size, in row-major order.
#[derive(Debug, Clone)]
pub(super) struct Pieces {
    pub tile: Shape,
    grid: Shape,
    pub values: Vec<Value>,
}

impl Pieces {
    pub(super) fn new(shape: &[u32], tile: &[u32], values: Vec<Value>) -> Pieces {
        Pieces { tile: Shape::from_slice(tile), grid: grid(shape, tile), values }
    }

    /// The block at a place of the grid.
    pub(super) fn at(&self, place: &[u32]) -> Value {
        self.values[self.number(place)]
    }

    /// Which block that is, in row-major order.
    pub(super) fn number(&self, place: &[u32]) -> usize {
        number(&self.grid, place) as usize
    }
}

/// How many blocks there are along each dimension.
fn grid(shape: &[u32], tile: &[u32]) -> Shape {
    shape.iter().zip(tile).map(|(n, t)| n / t).collect()
}

/// How many blocks there are.
pub(super) fn count(shape: &[u32], tile: &[u32]) -> usize {
    grid(shape, tile).iter().product::<u32>() as usize
}

/// The place of block `i`.
pub(super) fn place(shape: &[u32], tile: &[u32], i: usize) -> Shape {
    coordinates(&grid(shape, tile), i as u32)
}

/// The number of a place, in row-major order.
fn number(grid: &[u32], place: &[u32]) -> u32 {
    grid.iter().zip(place).fold(0, |sum, (n, at)| sum * n + at)
}

impl Splitter<'_> {
    /// The size of the blocks that a tensor is in, or would be.
    pub(super) fn own_tile(&self, value: Value) -> Shape {
        match self.pieces.get(&value) {
            Some(pieces) => pieces.tile.clone(),
            None => self.tiles.tile(self.m, value),
        }
    }

    /// A tensor in blocks of a size.
    pub(super) fn get(&mut self, value: Value, tile: &[u32]) -> Pieces {
        let shape = self.shape(value);
        let tile = Shape::from_slice(tile);
        if let Some(known) = self.pieces.get(&value).filter(|p| p.tile == tile) {
            return known.clone();
        }
        if let Some(known) = self.cut.get(&(value, tile.clone())) {
            return known.clone();
        }
        let pieces = match self.pieces.get(&value).cloned() {
            None => self.uniform(value, &shape, &tile),
            Some(own) => self.cut(&own, &shape, &tile),
        };
        self.cut.insert((value, tile), pieces.clone());
        pieces
    }

    /// The same number in all blocks: they are one.
    fn uniform(&mut self, value: Value, shape: &Shape, tile: &Shape) -> Pieces {
        let op = self.m.defining_op(value).expect("what is given to a function or region is in blocks");
        let copy = self.m.clone_op(op, &mut FxHashMap::default());
        let ty = self.tile_type(value, tile);
        let result = self.m.result(copy);
        self.m.set_value_type(result, ty);
        if let Some(AttrKind::Splat(number, _)) =
            self.m.constant_value(value).map(|a| self.m.attr_kind(a).clone())
        {
            let attr = self.m.attr(AttrKind::Splat(number, ty));
            self.m.set_attr(copy, "value", attr);
        }
        self.m.insert_before(copy, op);
        Pieces::new(shape, tile, vec![result; count(shape, tile)])
    }

    /// Other blocks of the same tensor: parts of those, or, where they are larger, made of parts.
    fn cut(&mut self, own: &Pieces, shape: &Shape, tile: &Shape) -> Pieces {
        let common = clip(&own.tile, tile);
        let mut parts = own.clone();
        if common != own.tile {
            // The last first: each is put right behind what it is a part of.
            let all = (0..count(shape, &common)).rev();
            let mut values: Vec<Value> =
                all.map(|i| self.extract(own, &place(shape, &common, i), &common)).collect();
            values.reverse();
            parts = Pieces::new(shape, &common, values);
        }
        if common == *tile {
            return parts;
        }
        let values = (0..count(shape, tile)).map(|i| self.assemble(&parts, &place(shape, tile, i), tile));
        Pieces::new(shape, tile, values.collect())
    }

    /// The part at a place of the grid of smaller blocks.
    fn extract(&mut self, own: &Pieces, at: &Shape, tile: &Shape) -> Value {
        let inner = grid(&own.tile, tile);
        let outer: Shape = at.iter().zip(&inner).map(|(a, n)| a / n).collect();
        let within: Shape = at.iter().zip(&inner).map(|(a, n)| a % n).collect();
        let from = own.at(&outer);
        let ty = self.tile_type(from, tile);
        let index = number(&inner, &within) as i32;
        tt::Extract::build(&mut after_value(self.m, from), from, index, ty).result(self.m)
    }

    /// The block at a place of the grid of larger ones.
    fn assemble(&mut self, parts: &Pieces, at: &Shape, tile: &Shape) -> Value {
        let inner = grid(tile, &parts.tile);
        let first = parts.values[0];
        let ty = self.tile_type(first, tile);
        let all: Vec<(Value, Shape)> = (0..count(tile, &parts.tile))
            .map(|i| {
                let within = place(tile, &parts.tile, i);
                let outer: Shape = at.iter().zip(&inner).zip(&within).map(|((a, n), w)| a * n + w).collect();
                (parts.at(&outer), within)
            })
            .collect();
        // Behind the last of the parts.
        let m = &*self.m;
        let later = |a: Value, b: Value| match (m.defining_op(a), m.defining_op(b)) {
            (Some(x), Some(y)) if m.parent_block(x) == m.parent_block(y) && m.is_before(x, y) => b,
            (None, Some(_)) => b,
            _ => a,
        };
        let last = all.iter().map(|(v, _)| *v).reduce(later).unwrap_or(first);
        let mut b: Builder<'_> = after_value(self.m, last);
        let mut whole = ub::Poison::build(&mut b, ty).result(b.module);
        for (part, within) in all {
            let index: Vec<Value> = within.iter().map(|&i| b.i32(i as i32)).collect();
            whole = tt::InsertTile::build(&mut b, whole, part, &index, ty).result(b.module);
        }
        whole
    }

    // ---- parts of tensors ------------------------------------------------------------------------------------------

    /// The place of each block of a part among those of the whole: part `at` of a grid of such parts.
    fn within(part: &Shape, tile: &Shape, at: &Shape) -> Vec<Shape> {
        let inner = grid(part, tile);
        let of_block = |i| {
            let here = place(part, tile, i);
            at.iter().zip(&inner).zip(here).map(|((at, n), here)| at * n + here).collect()
        };
        (0..count(part, tile)).map(of_block).collect()
    }

    /// A part of a tensor is some of its blocks.
    pub(super) fn part(&mut self, extract: tt::Extract) {
        let (src, result) = (extract.src(self.m), extract.result(self.m));
        let (whole, part) = (self.shape(src), self.shape(result));
        let tile = clip(&self.own_tile(src), &part);
        let given = self.get(src, &tile);
        let at = place(&whole, &part, extract.index(self.m) as usize);
        let values = Self::within(&part, &tile, &at).iter().map(|at| given.at(at)).collect();
        self.pieces.insert(result, Pieces::new(&part, &tile, values));
    }

    /// A tensor with a part replaced has other blocks there.
    ///
    /// # Errors
    /// A part whose number is none that is known.
    pub(super) fn put(&mut self, insert: tt::InsertTile) -> Result<(), Diagnostic> {
        let (src, tile, result) = (insert.src(self.m), insert.tile(self.m), insert.result(self.m));
        let (whole, part) = (self.shape(result), self.shape(tile));
        let mut at = Shape::new();
        for &index in insert.index(self.m) {
            match self.m.constant_value(index).map(|attr| self.m.attr_kind(attr)) {
                Some(&AttrKind::Int(n, _)) if n >= 0 => at.push(n as u32),
                _ => return Err(self.unsupported(insert.0, "with a tile whose number is not a constant")),
            }
        }
        if at.iter().zip(&whole).zip(&part).any(|((&at, &n), &tile)| at >= n / tile) {
            return Err(self.unsupported(insert.0, "with a tile outside of the tensor"));
        }
        let size = clip(&self.own_tile(tile), &part);
        let (mut all, given) = (self.get(src, &size), self.get(tile, &size));
        for (place, value) in Self::within(&part, &size, &at).iter().zip(given.values) {
            let number = all.number(place);
            all.values[number] = value;
        }
        self.pieces.insert(result, all);
        Ok(())
    }
}
