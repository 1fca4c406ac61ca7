//! Views: the layout of the same registers under another shape, and which registers correspond.
//!
//! `trans`, `reshape`, `expand_dims` and `broadcast` move no data if the result has the layout that falls out here. If it
//! has another one, the operation is this view followed by an ordinary [conversion](crate::plan_conversion).

use smallvec::SmallVec;

use crate::access::SharedAccess;
use crate::convert::{ConversionPlan, SharedPlan, SharedRound, SyncScope, plan_conversion};
use crate::distribute::{Coord, num_elements};
use crate::encoding::Encoding;
use crate::error::{LayoutError, Result};
use crate::f2::Vectors;
use crate::linear::Dim;
use crate::shared::SharedLayout;
use crate::tile::{Bounds, TileLayout};

/// What a coordinate of one layout is in terms of another's: see [`TileLayout::registers_from`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The coordinate along this axis.
    Axis(u8),
    /// This coordinate.
    At(u32),
}

impl TileLayout {
    /// The layout of the transposed tensor in the same registers: axis d of the result is axis `perm[d]`.
    ///
    /// # Errors
    /// `perm` is not a permutation of the axes.
    pub fn transpose(&self, perm: &[u32]) -> Result<Self> {
        let perm = crate::distribute::check_order(perm, self.rank())?;
        let pick = |v: &[u32]| perm.iter().map(|&p| v[p as usize]).collect::<Coord>();
        let place = |old: u8| perm.iter().position(|&p| p == old).expect("a permutation") as u8;
        let order = self.order().iter().map(|&d| place(d)).collect();
        let outs: SmallVec<[(Dim, u32); 4]> =
            perm.iter().map(|&p| (Dim::Axis(p), self.unit()[p as usize])).collect();
        let dims: SmallVec<[Dim; 4]> = outs.iter().map(|o| o.0).collect();
        let renamed: SmallVec<[(Dim, u32); 4]> =
            outs.iter().enumerate().map(|(d, o)| (Dim::Axis(d as u8), o.1)).collect();
        let linear = self.linear().transpose_outs(&dims)?.reshape_outs(&renamed)?;
        Ok(Self::from_parts(pick(self.shape()), pick(self.unit()), pick(self.reps()), order, linear))
    }

    /// The layout of the reshaped tensor (row-major, as `tl.reshape` counts) in the same registers.
    ///
    /// # Errors
    /// Another number of elements; a padded axis that is split or merged; or an odd factor that would have to move across a
    /// power of two (96 → 16×6, where 96 → 6×16 is fine). [`plan_reshape`] does those through shared memory.
    pub fn reshape(&self, shape: &[u32]) -> Result<Self> {
        let refuse = |why: &str| {
            Err(LayoutError::new(format!(
                "registers can't be seen as {shape:?} instead of {:?}: {why}",
                self.shape()
            )))
        };
        if shape.contains(&0)
            || num_elements(shape) != num_elements(self.shape())
            || shape.len() > crate::distribute::MAX_RANK
        {
            return refuse("the number of elements differs");
        }
        let (mut unit, mut reps) = (Coord::new(), Coord::new());
        // For each axis with repeats, the new axis that repeats instead.
        let mut moved: SmallVec<[(u8, u8); 4]> = SmallVec::new();
        let (mut old, mut new) = (0, 0);
        while old < self.rank() || new < shape.len() {
            // The shortest runs of axes, old and new, of equal size; axes of size 1 join the run before them.
            let (first_old, first_new) = (old, new);
            let (mut old_size, mut new_size) = (1u64, 1u64);
            loop {
                if old < self.rank()
                    && (old_size < new_size || old_size == new_size && self.shape()[old] == 1)
                {
                    old_size *= u64::from(self.shape()[old]);
                    old += 1;
                } else if new < shape.len() && (new_size < old_size || shape[new] == 1) {
                    new_size *= u64::from(shape[new]);
                    new += 1;
                } else if old_size > 1 || (old == self.rank() && new == shape.len()) {
                    break;
                } else {
                    old_size *= u64::from(self.shape()[old]);
                    old += 1;
                }
            }
            let (olds, news) = (first_old..old, first_new..new);
            let mut nontrivial_old = olds.clone().filter(|&d| self.physical(d) > 1);
            let mut nontrivial_new = news.clone().filter(|&d| shape[d] > 1);
            let (outer_old, outer_new) = (nontrivial_old.next(), nontrivial_new.next());
            let same = nontrivial_old.clone().next().is_none() && nontrivial_new.clone().next().is_none();
            if !same {
                if olds.clone().any(|d| self.needs_bounds_predicate(d)) {
                    return refuse("an axis that is split or merged is padded");
                }
                if nontrivial_old.any(|d| self.reps()[d] > 1)
                    || nontrivial_new.any(|d| !shape[d].is_power_of_two())
                {
                    return refuse("an odd factor would move across a power of two");
                }
            }
            for d in news {
                let (mut u, mut r) = (1 << shape[d].trailing_zeros(), shape[d] >> shape[d].trailing_zeros());
                if Some(d) == outer_new
                    && let Some(o) = outer_old
                {
                    if same {
                        (u, r) = (self.unit()[o], self.reps()[o]);
                    }
                    if r > 1 {
                        moved.push((o as u8, d as u8));
                    }
                }
                unit.push(u);
                reps.push(r);
            }
        }
        let mut order: SmallVec<[u8; 4]> =
            self.order().iter().filter_map(|o| moved.iter().find(|m| m.0 == *o).map(|m| m.1)).collect();
        let rest: SmallVec<[u8; 4]> = (0..shape.len() as u8).rev().filter(|d| !order.contains(d)).collect();
        order.extend(rest);

        // Row-major: the last axis has the lowest bits.
        let dims: SmallVec<[Dim; 4]> = (0..self.rank() as u8).rev().map(Dim::Axis).collect();
        let reversed: SmallVec<[(Dim, u32); 4]> =
            unit.iter().enumerate().rev().map(|(d, &u)| (Dim::Axis(d as u8), u)).collect();
        let dims_after: SmallVec<[Dim; 4]> = (0..shape.len() as u8).map(Dim::Axis).collect();
        let linear =
            self.linear().transpose_outs(&dims)?.reshape_outs(&reversed)?.transpose_outs(&dims_after)?;
        Ok(Self::from_parts(shape.into(), unit, reps, order, linear))
    }

    /// The encoding that stands for this layout when no other does. Registers of different repeats may be numbered in
    /// another order under it.
    pub fn to_linear_encoding(&self) -> Encoding {
        let bases = |dim: Dim| -> Vec<Vec<u32>> {
            let flat = self.linear().flat_bases(dim).iter();
            flat.map(|&b| (0..self.rank()).map(|d| self.linear().out_part(b, Dim::Axis(d as u8))).collect())
                .collect()
        };
        Encoding::Linear {
            register: bases(Dim::Register),
            lane: bases(Dim::Lane),
            warp: bases(Dim::Warp),
            block: vec![],
        }
    }

    /// For each register of this layout, the register of `other` in the same thread whose coordinate along axis i is what
    /// `places[i]` says of this register's. `None` if some thread does not hold it itself.
    ///
    /// A broadcast takes its operand's registers this way, with `At(0)` along the axes of size 1; `expand_dims` with the
    /// inserted axis left out; a reduction finds the accumulator of each of its operand's registers.
    pub fn registers_from(&self, other: &TileLayout, places: &[Place]) -> Option<Vec<u32>> {
        for (i, place) in places.iter().enumerate() {
            let of = |bases: &dyn Fn(usize) -> Vectors| match place {
                Place::Axis(d) => bases(*d as usize),
                Place::At(_) => Vectors::new(),
            };
            for (mine, theirs) in [
                (of(&|d| self.lane_bases(d)), other.lane_bases(i)),
                (of(&|d| self.warp_bases(d)), other.warp_bases(i)),
            ] {
                let at = |v: &Vectors, k: usize| v.get(k).copied().unwrap_or(0);
                if (0..mine.len().max(theirs.len())).any(|k| at(&mine, k) != at(&theirs, k)) {
                    return None;
                }
            }
        }
        let finder = other.register_finder();
        (0..self.num_registers())
            .map(|r| match self.register_bounds(r) {
                Bounds::Outside => Some(0),
                _ => {
                    let coord = self.register_coord(r);
                    let of = |place: &Place| match *place {
                        Place::Axis(d) => coord[d as usize],
                        Place::At(c) => c,
                    };
                    finder.find(&places.iter().map(of).collect::<Coord>())
                }
            })
            .collect()
    }
}

/// Plans a `trans`: the tensor in layout `src`, transposed by `perm`, in layout `dst`.
///
/// # Errors
/// `perm` is not a permutation, or as for [`plan_conversion`].
pub fn plan_transpose(
    src: &TileLayout,
    perm: &[u32],
    dst: &TileLayout,
    elem_bits: u32,
) -> Result<ConversionPlan> {
    plan_conversion(&src.transpose(perm)?, dst, elem_bits)
}

/// Plans a `reshape` (row-major): the tensor in layout `src`, seen with the shape of `dst`, in layout `dst`.
///
/// # Errors
/// Another number of elements, or as for [`plan_conversion`].
pub fn plan_reshape(src: &TileLayout, dst: &TileLayout, elem_bits: u32) -> Result<ConversionPlan> {
    if num_elements(src.shape()) != num_elements(dst.shape()) {
        return Err(LayoutError::new(format!(
            "a reshape can't change the number of elements, here from {:?} to {:?}",
            src.shape(),
            dst.shape()
        )));
    }
    if let Ok(view) = src.reshape(dst.shape()) {
        return plan_conversion(&view, dst, elem_bits);
    }
    // Both shapes are rows of the same buffer.
    let (scratch, seen) = (SharedLayout::row_major(src.shape()), SharedLayout::row_major(dst.shape()));
    let store = SharedAccess::new(src, &scratch, elem_bits)?;
    let load = SharedAccess::new(dst, &seen, elem_bits)?;
    Ok(ConversionPlan::SharedMemory(Box::new(SharedPlan {
        scratch_bytes: (scratch.allocation_elems() * (elem_bits.max(8) / 8)).next_multiple_of(16),
        rounds: vec![SharedRound { stores: 0..store.accesses.len(), loads: 0..load.accesses.len() }],
        scope: SyncScope::Cta,
        scratch,
        store,
        matrices: None,
        load,
    })))
}
