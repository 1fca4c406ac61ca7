//! Conversions between layouts of which warps have other parts: through shared memory, in tiles that are whole in both.
//!
//! ```text
//! %y = ttg.convert_layout %x : tensor<64x64xf16, #grid> -> tensor<64x64xf16, #rows>        (four warps: 32x32 each, 16x64 each)
//! =>
//! %all = ttg.local_alloc : !ttg.memdesc<8x16x32xf16>
//! ttg.local_store (tt.extract %x[0] : tensor<32x32xf16> -> tensor<16x32xf16>), %all[(%w / 2 * 2 + 0) * 2 + %w % 2]
//! ttg.local_store (tt.extract %x[1]), %all[(%w / 2 * 2 + 1) * 2 + %w % 2]
//! ttg.barrier
//! %y0 = ttg.local_load %all[%w * 2 + 0]
//! %y1 = ttg.local_load %all[%w * 2 + 1]
//! %y = tt.insert_tile %y1, (tt.insert_tile %y0, poison[0, 0])[0, 1] : tensor<16x32xf16>, tensor<16x64xf16>
//! ttg.barrier
//! ```
//!
//! Of warps that have the same part one writes it. The second barrier is for whoever writes to the same memory next.

use tilewright_ir::dialect::{arith, tt, ttg, ub};
use tilewright_ir::{AttrKind, Builder, Diagnostic, Encoding, Op, SharedKind, Type, Value};
use tilewright_layout::{WarpPart, coordinates};

use super::Distributor;
use crate::analysis::encoding_choice::row_major;
use crate::parts;

/// The tiles that a tensor is cut into.
struct Tiles {
    shape: Vec<u32>,
    /// How many along each dimension of the whole tensor.
    grid: Vec<u32>,
}

impl Tiles {
    /// The largest that are whole in two parts of a tensor.
    fn common(a: &WarpPart, b: &WarpPart) -> Option<Tiles> {
        let shape: Vec<u32> = a.shape.iter().zip(&b.shape).map(|(&a, &b)| a.min(b)).collect();
        let whole = |part: &WarpPart| part.shape.iter().zip(&shape).all(|(n, tile)| n % tile == 0);
        let grid = a.shape.iter().zip(&a.axes).zip(&shape).map(|((n, axis), tile)| n * axis.count / tile);
        let grid = grid.collect();
        (whole(a) && whole(b)).then_some(Tiles { shape, grid })
    }

    /// How many of them a part has along each dimension.
    fn of_part(&self, part: &WarpPart) -> Vec<u32> {
        part.shape.iter().zip(&self.shape).map(|(n, tile)| n / tile).collect()
    }
}

impl Distributor<'_> {
    /// Another encoding of the same part stays as it is, until nothing asks for encodings any more.
    pub(super) fn convert(&mut self, convert: ttg::ConvertLayout) -> Result<(), Diagnostic> {
        let (src, result) = (convert.src(self.m), convert.result(self.m));
        let parts = [src, result].map(|v| self.parts.get(&v).cloned());
        if parts[0].as_ref().map(|p| (&p.shape, &p.axes)) == parts[1].as_ref().map(|p| (&p.shape, &p.axes)) {
            return Ok(());
        }
        let ty = self.m.value_type(src);
        let plain = !self.m.is_ptr(ty) && self.m.bits(ty) >= 8;
        let tiles = match &parts {
            [Some(from), Some(to)] if plain => Tiles::common(from, to),
            _ => None,
        };
        let ([Some(from), Some(to)], Some(tiles)) = (parts, tiles) else {
            return Err(self.unsupported(convert.0, "from a part of one warp to those of others"));
        };
        let op = convert.0;
        let buffer = self.buffer_of(&tiles, ty, op);
        self.give_tiles(op, src, &from, &tiles, buffer);
        ttg::Barrier::build(&mut Builder::before(self.m, op));
        let value = self.take_tiles(op, result, &to, &tiles, buffer);
        ttg::Barrier::build(&mut Builder::before(self.m, op));
        self.m.replace_op(op, &[value]);
        self.parts.insert(value, to);
        Ok(())
    }

    fn buffer_of(&mut self, tiles: &Tiles, like: Type, op: Op) -> Value {
        let element = self.m.element_type(like);
        let order = row_major(tiles.shape.len());
        let plain = Encoding::Shared(SharedKind::Swizzled { vec: 1, per_phase: 1, max_phase: 1, order });
        let plain = self.m.attr(AttrKind::Encoding(plain));
        let count = tiles.grid.iter().product::<u32>();
        let shape: Vec<u32> = std::iter::once(count).chain(tiles.shape.iter().copied()).collect();
        let ty = self.m.buffer_type(&shape, element, plain, true);
        ttg::LocalAlloc::build(&mut Builder::before(self.m, op), None, ty).result(self.m)
    }

    /// The number of a tile of this warp's part in the whole.
    fn number_of(&mut self, part: &WarpPart, tiles: &Tiles, at: &[u32], op: Op) -> Value {
        let of_part = tiles.of_part(part);
        let begins: Vec<Option<Value>> = part
            .axes
            .iter()
            .zip(&of_part)
            .map(|(&axis, &n)| (axis.count > 1).then(|| self.begin(axis, n)))
            .collect();
        let mut b = Builder::before(self.m, op);
        let mut number = b.i32(0);
        for ((begin, &at), &n) in begins.into_iter().zip(at).zip(&tiles.grid) {
            let (n, at) = (b.i32(n as i32), b.i32(at as i32));
            number = arith::Muli::build(&mut b, number, n).result(b.module);
            number = arith::Addi::build(&mut b, number, at).result(b.module);
            if let Some(begin) = begin {
                number = arith::Addi::build(&mut b, number, begin).result(b.module);
            }
        }
        number
    }

    /// Writes the tiles of this warp's part.
    fn give_tiles(&mut self, op: Op, src: Value, part: &WarpPart, tiles: &Tiles, buffer: Value) {
        let grid = tiles.of_part(part);
        let leads = (part.copies != 0).then(|| self.leads(part.copies));
        for i in 0..grid.iter().product() {
            let number = self.number_of(part, tiles, &coordinates(&grid, i), op);
            let slot = self.slot(buffer, number, op);
            let ty = self.tile_type(src, tiles);
            let mut b = Builder::before(self.m, op);
            let tile = if grid.iter().all(|&n| n == 1) {
                src
            } else {
                tt::Extract::build(&mut b, src, i as i32, ty).result(b.module)
            };
            let store = ttg::LocalStore::build(&mut b, tile, slot).0;
            if let Some(leads) = leads {
                parts::only_if(self.m, leads, store);
            }
        }
    }

    /// Reads the tiles of this warp's part, and puts them together.
    fn take_tiles(&mut self, op: Op, result: Value, part: &WarpPart, tiles: &Tiles, buffer: Value) -> Value {
        let grid = tiles.of_part(part);
        let whole_type = self.m.value_type(result);
        let tile_type = self.tile_type(result, tiles);
        let mut whole = None;
        for i in 0..grid.iter().product() {
            let at = coordinates(&grid, i);
            let number = self.number_of(part, tiles, &at, op);
            let slot = self.slot(buffer, number, op);
            let mut b = Builder::before(self.m, op);
            let tile = ttg::LocalLoad::build(&mut b, slot, None, tile_type).result(b.module);
            if grid.iter().all(|&n| n == 1) {
                return tile;
            }
            let before = whole.unwrap_or_else(|| ub::Poison::build(&mut b, whole_type).result(b.module));
            let index: Vec<Value> = at.iter().map(|&i| b.i32(i as i32)).collect();
            whole = Some(tt::InsertTile::build(&mut b, before, tile, &index, whole_type).result(b.module));
        }
        whole.unwrap_or(result)
    }

    fn tile_type(&mut self, like: Value, tiles: &Tiles) -> Type {
        let ty = self.m.value_type(like);
        let (element, encoding) = (self.m.element_type(ty), self.m.encoding(ty));
        self.m.tensor_type(&tiles.shape, element, encoding)
    }
}
