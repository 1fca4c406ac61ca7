//! How large the blocks are that tensors are cut into.

use rustc_hash::FxHashMap;
use tilewright_ir::dialect::tt;
use tilewright_ir::{Diagnostic, Encoding, Module, Op, Opcode, Shape, Value};

use super::no_instruction;
use crate::target::WarpUnits;

/// The blocks of tensors, by their encodings: what is alike is cut alike.
///
/// The result of a dot has the block of its instruction. What is loaded has that of a load: of the widest elements, where
/// tensors of several types share an encoding, and of one row, where pointers are loaded from one by one. A transposed tensor has the block of what it was, and a slice that of its parent.
pub(super) struct Tiles {
    of: FxHashMap<Encoding, Shape>,
    units: WarpUnits,
}

impl Tiles {
    pub(super) fn choose(m: &Module, units: WarpUnits, ops: &[Op]) -> Result<Tiles, Diagnostic> {
        let mut tiles = Tiles { of: FxHashMap::default(), units };
        for dot in ops.iter().filter_map(|&op| tt::Dot::cast(m, op)) {
            let Some([rows, columns, _]) = units.dot_shape(m, dot) else {
                return Err(no_instruction(m, dot));
            };
            let result = dot.result(m);
            if let Some(encoding) = encoding_of(m, result) {
                let rank = m.shape(m.value_type(result)).map_or(0, <[u32]>::len);
                let mut tile = Shape::from_elem(1, rank);
                tile.iter_mut().rev().zip([columns, rows]).for_each(|(extent, n)| *extent = n);
                tiles.narrow(encoding, tile);
            }
        }
        let of_dots = tiles.of.clone();
        for &op in ops {
            if let Some(Opcode::Tt(tt::Kind::Load | tt::Kind::DescriptorLoad)) = m.opcode(op)
                && let Some(encoding) = encoding_of(m, m.result(op))
                && !of_dots.contains_key(encoding)
            {
                let ty = m.value_type(m.result(op));
                let rank = m.shape(ty).map_or(0, <[u32]>::len);
                let is_block = tt::DescriptorLoad::cast(m, op).is_some();
                let limit = if is_block { units.load.block(m.bits(ty), rank) } else { units.gathered(rank) };
                tiles.narrow(encoding, limit);
            }
        }
        for trans in ops.iter().filter_map(|&op| tt::Trans::cast(m, op)) {
            if let (Some(from), Some(to)) = (encoding_of(m, trans.src(m)), encoding_of(m, trans.result(m)))
                && let Some(tile) = tiles.of.get(from)
                && !tiles.of.contains_key(to)
            {
                let turned = trans.order(m).iter().map(|&d| tile[d as usize]).collect();
                tiles.of.insert(to.clone(), turned);
            }
        }
        Ok(tiles)
    }

    fn narrow(&mut self, encoding: &Encoding, tile: Shape) {
        match self.of.get_mut(encoding) {
            Some(known) => known.iter_mut().zip(tile).for_each(|(a, b)| *a = (*a).min(b)),
            None => _ = self.of.insert(encoding.clone(), tile),
        }
    }

    /// The block of a tensor: of each extent a power of two that divides it.
    pub(super) fn tile(&self, m: &Module, value: Value) -> Shape {
        let shape = m.shape(m.value_type(value)).unwrap_or(&[]);
        let limit = match encoding_of(m, value) {
            Some(encoding) => self.limit(encoding, shape.len()),
            None => Shape::from_slice(shape),
        };
        clip(&limit, shape)
    }

    fn limit(&self, encoding: &Encoding, rank: usize) -> Shape {
        match (self.of.get(encoding), encoding) {
            (Some(known), _) => known.clone(),
            (None, Encoding::Slice { dim, parent }) => {
                let mut limit = self.limit(parent, rank + 1);
                limit.remove(*dim as usize);
                limit
            }
            _ => self.units.load.block(32, rank),
        }
    }
}

/// The largest powers of two up to a limit that divide the extents.
pub(super) fn clip(limit: &[u32], shape: &[u32]) -> Shape {
    limit.iter().zip(shape).map(|(&limit, &n)| limit.min(1 << n.trailing_zeros())).collect()
}

fn encoding_of(m: &Module, value: Value) -> Option<&Encoding> {
    m.encoding(m.value_type(value)).and_then(|e| m.encoding_of(e))
}
