//! Operations that give elements other names: whether each thread already holds what it needs of the result.
//!
//! What [rearranges](Index::rearranges) elements (`tt.trans`, `tt.reshape`, `tt.join`, …) and `tt.cat` move no data where the
//! layouts agree on what lanes and warps contribute: each register of the result is then one of the operands' in the same
//! thread. Everyone who wants to know whether data moves asks here: the lowering for the registers, the allocator
//! ([`crate::analysis::scratch`]) and through it the barriers for whether there is scratch.

use smallvec::SmallVec;
use tilewright_ir::dialect::tt;
use tilewright_ir::index::{Crossing, Index, Part, Relation, Role, Site};
use tilewright_ir::{Module, Op, Value};
use tilewright_layout::{Place, TileLayout};

use crate::analysis::tile_layout::layout_of;

/// A register of an operand: the operand's number and the register's.
pub type OperandRegister = (usize, u32);

/// For each result the register of the operands that each of its registers is equal to in every thread. `None` where data must
/// move between threads, and for other operations.
pub fn reindex_registers(module: &Module, op: Op) -> Option<Vec<Vec<OperandRegister>>> {
    let index = module.def(op)?.index;
    if index == Index::Concat {
        return one_after_the_other(module, op, &layout_of(module, *module.results(op).first()?)?);
    }
    if !index.rearranges() {
        return None;
    }
    let relation = Relation::of(module, op).ok()?;
    if matches!(index, Index::TileAt(_)) {
        let (whole, tile) =
            (layout_of(module, module.operands(op)[0])?, layout_of(module, module.result(op))?);
        let (_, begin) = relation.source(0, &vec![0; tile.rank()])?;
        let registers = part_registers(&whole, &tile, &begin)?;
        return Some(vec![registers.into_iter().map(|r| (0, r)).collect()]);
    }
    let result = |(n, &value): (usize, &Value)| {
        let (to, site) = (layout_of(module, value)?, relation.results[n].as_ref()?);
        let operands = module.operands(op).iter().zip(&relation.operands);
        let registers: Vec<Vec<u32>> = operands
            .map(|(&v, of)| registers_from(&relation, &layout_of(module, v)?, of.as_ref()?, &to, site, n))
            .collect::<Option<_>>()?;
        // Which of several operands it is must not depend on the thread.
        let is_member =
            |part: &Option<Part>| matches!(part, &Some(p) if relation.axes[p.axis].role == Role::Member);
        let which = site.dims.iter().position(is_member);
        if which.is_some_and(|d| to.lane_bases(d).iter().chain(&to.warp_bases(d)).any(|&b| b != 0)) {
            return None;
        }
        let operand = |r: u32| which.map_or(0, |d| to.register_coord(r)[d] as usize);
        (0..to.num_registers())
            .map(|r| Some((operand(r), *registers.get(operand(r))?.get(r as usize)?)))
            .collect()
    };
    module.results(op).iter().enumerate().map(result).collect()
}

/// Where a tile lies in the tensor that it is a tile of: both values, and the numbers along each dimension.
pub struct TilePlace<'m> {
    /// The tensor.
    pub whole: Value,
    /// The tile.
    pub tile: Value,
    /// Its numbers.
    pub index: &'m [Value],
}

/// For a `tt.extract_tile` or `tt.insert_tile`: which tile it is of what.
pub fn tile_place(module: &Module, op: Op) -> Option<TilePlace<'_>> {
    if let Some(op) = tt::ExtractTile::cast(module, op) {
        return Some(TilePlace { whole: op.src(module), tile: op.result(module), index: op.index(module) });
    }
    let op = tt::InsertTile::cast(module, op)?;
    Some(TilePlace { whole: op.src(module), tile: op.tile(module), index: op.index(module) })
}

/// The registers of the result of a `tt.extract_tile` or `tt.insert_tile`: each one is a register of the tensor that is cut, or of
/// the tile put in (`true`). `None` where data must move between threads: the tile's place is not constant, or it is none of whole
/// CTA tiles, those that all lanes and warps cover together.
pub fn tile_registers(module: &Module, op: Op) -> Option<Vec<(bool, u32)>> {
    let place = tile_place(module, op)?;
    let (whole, tile) = (layout_of(module, place.whole)?, layout_of(module, place.tile)?);
    let offsets: SmallVec<[u32; 4]> = place
        .index
        .iter()
        .zip(tile.shape())
        .map(|(&index, &n)| u32::try_from(module.constant_int(index)?).ok()?.checked_mul(n))
        .collect::<Option<_>>()?;
    if tt::InsertTile::cast(module, op).is_none() {
        return Some(part_registers(&whole, &tile, &offsets)?.into_iter().map(|r| (false, r)).collect());
    }
    if !stays_in_threads(&whole, &tile, &offsets) {
        return None;
    }
    let of_tile = tile.register_finder();
    (0..whole.num_registers())
        .map(|r| {
            let inside: Option<SmallVec<[u32; 4]>> = whole
                .register_coord(r)
                .iter()
                .zip(&offsets)
                .zip(tile.shape())
                .map(|((&c, &o), &n)| c.checked_sub(o).filter(|&c| c < n))
                .collect();
            match inside {
                Some(at) => Some((true, of_tile.find(&at)?)),
                None => Some((false, r)),
            }
        })
        .collect()
}

/// The registers of a tensor that are those of a part of it which begins at `offsets`. `None` where data must move between threads.
fn part_registers(whole: &TileLayout, part: &TileLayout, offsets: &[u32]) -> Option<Vec<u32>> {
    if !stays_in_threads(whole, part, offsets) {
        return None;
    }
    let of_whole = whole.register_finder();
    (0..part.num_registers())
        .map(|r| {
            let at: SmallVec<[u32; 4]> =
                part.register_coord(r).iter().zip(offsets).map(|(&c, &o)| c + o).collect();
            of_whole.find(&at)
        })
        .collect()
}

/// Whether a part is one of whole CTA tiles, those that all lanes and warps cover together, which has them alike.
fn stays_in_threads(whole: &TileLayout, part: &TileLayout, offsets: &[u32]) -> bool {
    (0..part.rank()).all(|d| {
        let bases = |l: &TileLayout| [l.lane_bases(d).to_vec(), l.warp_bases(d).to_vec()];
        let cta_tile =
            bases(whole).iter().flatten().fold(1, |span, &b| span.max((b + 1).next_power_of_two()));
        bases(whole) == bases(part)
            && offsets[d].is_multiple_of(cta_tile)
            && part.shape()[d].is_multiple_of(cta_tile)
    })
}

/// The registers of an operand that those of result `n` are equal to, were it the only operand.
fn registers_from(
    relation: &Relation,
    from: &TileLayout,
    of: &Site,
    to: &TileLayout,
    site: &Site,
    n: usize,
) -> Option<Vec<u32>> {
    if relation.crossing(of, site) == Some(Crossing::Regroup) {
        let axes: SmallVec<[Place; 4]> = (0..to.rank() as u8).map(Place::Axis).collect();
        return to.registers_from(&from.reshape(to.shape()).ok()?, &axes);
    }
    let places: Option<SmallVec<[Place; 4]>> = of
        .dims
        .iter()
        .map(|part| match (part, site.dims.iter().position(|d| d == part)) {
            (None, _) => Some(Place::At(0)),
            (Some(_), Some(d)) => Some(Place::Axis(d as u8)),
            (Some(p), None) => (relation.axes[p.axis].role == Role::Member).then_some(Place::At(n as u32)),
        })
        .collect();
    to.registers_from(from, &places?)
}

/// `tt.cat` doesn't say in which order the elements are: where the operands' registers add up to the result's, they are those.
fn one_after_the_other(module: &Module, op: Op, dst: &TileLayout) -> Option<Vec<Vec<OperandRegister>>> {
    let mut registers = Vec::new();
    for (operand, &value) in module.operands(op).iter().enumerate() {
        let src = layout_of(module, value)?;
        if src.is_padded() || src.free_variable_masks() != dst.free_variable_masks() {
            return None;
        }
        registers.extend((0..src.num_registers()).map(|r| (operand, r)));
    }
    let adds_up = registers.len() as u32 == dst.num_registers() && !dst.is_padded();
    adds_up.then(|| vec![registers])
}
