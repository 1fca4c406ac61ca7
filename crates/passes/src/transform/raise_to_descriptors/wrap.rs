//! Rows that begin again from 0 where a matrix ends, so that there is something to load: whether it matters what.
//!
//! ```text
//! %rows = (%first + tt.make_range) % %M
//! %a = tt.load …%rows…                            ones behind the last
//! %c = tt.dot %a, %b, %c0                         rows of the result, the same
//! tt.store …, %c, %first + tt.make_range < %M     none of them
//! ```

use rustc_hash::FxHashSet;
use tilewright_ir::dialect::tt;
use tilewright_ir::index::Index;
use tilewright_ir::{Module, Op, Opcode, Trait, Value, flow};

use crate::analysis::affine::{Affine, Poly, prefix};
use crate::analysis::axis::rank;

/// Whether nothing depends on what a tensor has along a dimension at indices of `room` and above.
pub(super) fn is_free(m: &Module, affine: &Affine<'_>, tensor: Value, dim: usize, room: &Poly) -> bool {
    let mut seen = FxHashSet::default();
    let mut left = vec![(tensor, dim)];
    while let Some((value, dim)) = left.pop() {
        if !seen.insert((value, dim)) {
            continue;
        }
        for user in m.uses(value) {
            match next(m, affine, user.op, (value, user.index as usize), dim, room) {
                Some(values) => left.extend(values),
                None => return false,
            }
        }
    }
    true
}

/// The values whose elements depend on those of a user's operand, each with the dimension; none where other elements do.
fn next(
    m: &Module,
    affine: &Affine<'_>,
    user: Op,
    (value, operand): (Value, usize),
    dim: usize,
    room: &Poly,
) -> Option<Vec<(Value, usize)>> {
    let results = |dim: usize| m.results(user).iter().map(move |&r| (r, dim)).collect::<Vec<_>>();
    match m.opcode(user)? {
        Opcode::Tt(tt::Kind::Dot) => {
            // A row of the first operand, and a column of the second, is one of the result.
            let last = rank(m, value) - 1;
            let is_own = match operand {
                0 => dim == last - 1,
                1 => dim == last,
                _ => true,
            };
            return is_own.then(|| results(dim));
        }
        Opcode::Tt(tt::Kind::Store) => {
            let store = tt::Store(user);
            if operand != 1 || store.ptr(m) == value || store.mask(m) == Some(value) {
                return None;
            }
            let bounds = prefix::of(m, affine, store.mask(m)?).ok()?;
            return bounds[dim].below.contains(room).then(Vec::new);
        }
        _ => {}
    }
    if m.has_trait(user, Trait::Terminator) {
        let from = m.parent_op(user)?;
        return carried(m, from, value, dim, room);
    }
    if !flow::edges(m, user).is_empty() {
        return carried(m, user, value, dim, room);
    }
    if !m.has_trait(user, Trait::Pure) {
        return None;
    }
    match m.def(user)?.index {
        Index::Elementwise => Some(results(dim)),
        Index::Broadcast => Some(results(dim)),
        Index::ExpandDims(_) => {
            let axis = tt::ExpandDims::cast(m, user)?.axis(m) as usize;
            Some(results(dim + usize::from(dim >= axis)))
        }
        Index::Permute(_) => {
            let order = tt::Trans::cast(m, user)?.order(m);
            Some(results(order.iter().position(|&d| d as usize == dim)?))
        }
        _ => None,
    }
}

/// What a value becomes that an operation with regions passes on, for all of whose rounds there is one `room`.
fn carried(m: &Module, op: Op, value: Value, dim: usize, room: &Poly) -> Option<Vec<(Value, usize)>> {
    let around = |v: Value| m.value_block(v).and_then(|b| m.block_parent_op(b));
    if flow::is_loop(m, op) && room.leaves().any(|v| around(v).is_some_and(|inner| m.is_ancestor(op, inner)))
    {
        return None;
    }
    let mut found = Vec::new();
    for edge in flow::edges(m, op) {
        let pairs = edge.from(m).iter().zip(edge.to).filter(|(from, _)| **from == value);
        found.extend(pairs.map(|(_, &to)| (to, dim)));
    }
    (!found.is_empty()).then_some(found)
}
