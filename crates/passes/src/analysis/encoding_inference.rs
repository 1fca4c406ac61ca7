//! How an encoding crosses an operation: what the result of an operation has when its operand has this encoding, and the
//! other way round, so that no data moves between threads. It follows from the operation's [index
//! relation](tilewright_ir::index).
//!
//! ```text
//! tt.expand_dims axis=1   slice<1, #blocked>   <->  #blocked
//! tt.reduce axis=1        #blocked              ->  slice<1, #blocked>
//! tt.trans [1, 0]         #blocked{order=[1,0]} <->  #blocked{order=[0,1], everything else exchanged}
//! tt.reshape              anything              ->  #linear over the same registers, lanes and warps
//! ```

use rustc_hash::FxHashSet;
use tilewright_ir::dialect::{tt, ttng};
use tilewright_ir::flow;
use tilewright_ir::index::{Crossing, Relation, Site};
use tilewright_ir::{Encoding, Module, Op, Opcode, Value, ValueDef};
use tilewright_layout::{Dim, TileLayout};

use crate::analysis::encoding_choice::slice;

/// Whether operands and results simply share one encoding.
pub fn shares_encoding(module: &Module, op: Op) -> bool {
    module.def(op).is_some_and(|d| d.index.shares_encoding())
}

/// Whether a value is a tensor.
pub fn is_tensor(module: &Module, value: Value) -> bool {
    module.is_tensor(module.value_type(value))
}

/// A product (or the wait for one) of whose result arithmetic makes a value, in a loop or branch or behind it.
pub fn product_behind(m: &Module, value: Value) -> Option<Op> {
    let mut work = vec![value];
    let mut seen = FxHashSet::default();
    while let Some(v) = work.pop() {
        let Some(op) = m.defining_op(v).filter(|_| seen.insert(v)) else { continue };
        match m.opcode(op) {
            Some(Opcode::Tt(tt::Kind::Dot) | Opcode::Ttng(ttng::Kind::WarpGroupDotWait)) => return Some(op),
            Some(Opcode::Scf(_)) => {
                // Counted from the last: a `while` ends with its condition before them.
                let Some(index) = m.results(op).iter().rev().position(|&r| r == v) else { continue };
                let ends = m.regions(op).iter().filter_map(|&r| m.last_op(*m.region_blocks(r).last()?));
                work.extend(ends.filter_map(|end| m.operands(end).iter().nth_back(index)));
            }
            _ if shares_encoding(m, op) => work.extend(m.operands(op)),
            _ => {}
        }
    }
    None
}

/// The encoding of the results when operand `index` has `enc`. `None` where none follows from it.
pub fn forward(module: &Module, op: Op, index: usize, enc: &Encoding) -> Option<Encoding> {
    if shares_encoding(module, op) {
        return Some(enc.clone());
    }
    let relation = Relation::of(module, op).ok()?;
    let (from, to) = (relation.operands.get(index)?.as_ref()?, relation.results.first()?.as_ref()?);
    across(&relation, from, to, enc)
}

/// The encoding of operand `index` when the results have `enc`.
pub fn backward(module: &Module, op: Op, index: usize, enc: &Encoding) -> Option<Encoding> {
    if shares_encoding(module, op) {
        return Some(enc.clone());
    }
    let relation = Relation::of(module, op).ok()?;
    let (from, to) = (relation.results.first()?.as_ref()?, relation.operands.get(index)?.as_ref()?);
    across(&relation, from, to, enc)
}

/// The encoding of `to` when `from` has `enc`.
fn across(relation: &Relation, from: &Site, to: &Site, enc: &Encoding) -> Option<Encoding> {
    match relation.crossing(from, to)? {
        Crossing::Same => Some(enc.clone()),
        Crossing::Drop(axis) => Some(slice(axis as u32, enc)),
        Crossing::Insert(axis) => match enc {
            Encoding::Slice { dim, parent } if *dim as usize == axis => Some(parent.as_ref().clone()),
            _ => None,
        },
        Crossing::Permute(order) => permute(enc, &from.shape, &order),
        Crossing::DropMember => drop_pair(enc),
        Crossing::AppendMember => append_pair(enc, &from.shape),
        Crossing::Regroup => regroup(relation, from, to, enc),
    }
}

/// The bases of a layout as coordinates: registers, lanes, warps.
fn bases(layout: &TileLayout, dim: Dim) -> Vec<Vec<u32>> {
    let axes: Vec<_> =
        (0..layout.rank()).map(|d| layout.linear().bases_along(dim, Dim::Axis(d as u8))).collect();
    let count = axes.first().map_or(0, |a| a.len());
    (0..count).map(|i| axes.iter().map(|a| a[i]).collect()).collect()
}

fn linear(layout: &TileLayout, f: impl Fn(Vec<u32>) -> Vec<u32>) -> Encoding {
    let part = |dim| bases(layout, dim).into_iter().map(&f).collect();
    Encoding::Linear {
        register: part(Dim::Register),
        lane: part(Dim::Lane),
        warp: part(Dim::Warp),
        block: vec![],
    }
}

/// The encoding of a tensor with its dimensions permuted: result dimension i is dimension `order[i]`.
fn permute(enc: &Encoding, shape: &[u32], order: &[usize]) -> Option<Encoding> {
    let pick = |v: &[u32]| order.iter().map(|&d| v[d]).collect::<Vec<u32>>();
    let at = |d: u32| order.iter().position(|&o| o == d as usize).unwrap_or(0) as u32;
    if let Encoding::Blocked { size_per_thread, threads_per_warp, warps_per_cta, order: fast } = enc {
        return Some(Encoding::Blocked {
            size_per_thread: pick(size_per_thread),
            threads_per_warp: pick(threads_per_warp),
            warps_per_cta: pick(warps_per_cta),
            order: fast.iter().map(|&d| at(d)).collect(),
        });
    }
    // Warps that have copies do so in the equivalent, too, but in that of a slice.
    if let Some(Encoding::WarpBlocked { size_per_warp, warps_per_cta, order: fast }) =
        enc.warp_blocked(shape).filter(|_| !matches!(enc, Encoding::Slice { .. }))
    {
        let (size_per_warp, warps_per_cta) = (pick(&size_per_warp), pick(&warps_per_cta));
        let order = fast.iter().map(|&d| at(d)).collect();
        return Some(Encoding::WarpBlocked { size_per_warp, warps_per_cta, order });
    }
    let layout = TileLayout::new(enc, shape).ok()?;
    Some(linear(&layout, |b| order.iter().map(|&d| b[d]).collect()))
}

/// The encoding of the same elements at other coordinates, where all extents are powers of two.
fn regroup(relation: &Relation, from: &Site, to: &Site, enc: &Encoding) -> Option<Encoding> {
    if from.shape.iter().chain(&to.shape).any(|s| !s.is_power_of_two()) {
        return None;
    }
    let layout = TileLayout::new(enc, &from.shape).ok()?;
    (layout.unit() == &from.shape[..]).then(|| linear(&layout, |b| relation.carry(from, to, &b).to_vec()))
}

/// With a new innermost dimension of 2, both of whose elements lie in one thread.
fn append_pair(enc: &Encoding, shape: &[u32]) -> Option<Encoding> {
    let with = |v: &[u32], x: u32| v.iter().copied().chain([x]).collect::<Vec<u32>>();
    if let Encoding::Blocked { size_per_thread, threads_per_warp, warps_per_cta, order } = enc {
        let mut fast = vec![shape.len() as u32];
        fast.extend(order);
        return Some(Encoding::Blocked {
            size_per_thread: with(size_per_thread, 2),
            threads_per_warp: with(threads_per_warp, 1),
            warps_per_cta: with(warps_per_cta, 1),
            order: fast,
        });
    }
    if let Encoding::WarpBlocked { size_per_warp, warps_per_cta, order } = enc {
        let order = std::iter::once(shape.len() as u32).chain(order.iter().copied()).collect();
        let (size_per_warp, warps_per_cta) = (with(size_per_warp, 2), with(warps_per_cta, 1));
        return Some(Encoding::WarpBlocked { size_per_warp, warps_per_cta, order });
    }
    let layout = TileLayout::new(enc, shape).ok()?;
    let Encoding::Linear { mut register, lane, warp, block } = linear(&layout, |b| with(&b, 0)) else {
        return None;
    };
    let mut pair = vec![0; shape.len()];
    pair.push(1);
    register.insert(0, pair);
    Some(Encoding::Linear { register, lane, warp, block })
}

/// Without an innermost dimension of 2 whose elements lie in one thread; `None` where they don't.
fn drop_pair(enc: &Encoding) -> Option<Encoding> {
    match enc {
        Encoding::Blocked { size_per_thread, threads_per_warp, warps_per_cta, order } => {
            let last = size_per_thread.len().checked_sub(1).filter(|&l| l > 0)?;
            if size_per_thread[last] != 2 || threads_per_warp[last] != 1 || warps_per_cta[last] != 1 {
                return None;
            }
            Some(Encoding::Blocked {
                size_per_thread: size_per_thread[..last].to_vec(),
                threads_per_warp: threads_per_warp[..last].to_vec(),
                warps_per_cta: warps_per_cta[..last].to_vec(),
                order: order.iter().copied().filter(|&d| d as usize != last).collect(),
            })
        }
        Encoding::WarpBlocked { size_per_warp, warps_per_cta, order } => {
            let last = size_per_warp.len().checked_sub(1).filter(|&l| l > 0)?;
            let alone = size_per_warp[last] == 2 && warps_per_cta[last] == 1;
            alone.then(|| Encoding::WarpBlocked {
                size_per_warp: size_per_warp[..last].to_vec(),
                warps_per_cta: warps_per_cta[..last].to_vec(),
                order: order.iter().copied().filter(|&d| d as usize != last).collect(),
            })
        }
        Encoding::Linear { register, lane, warp, block } => {
            let is_pair = |b: &Vec<u32>| b.last() == Some(&1) && b[..b.len() - 1].iter().all(|&x| x == 0);
            let at = register.iter().position(is_pair)?;
            let drop = |v: &[Vec<u32>], skip: Option<usize>| -> Option<Vec<Vec<u32>>> {
                let kept = v.iter().enumerate().filter(|(i, _)| Some(*i) != skip);
                kept.map(|(_, b)| (b.last() == Some(&0)).then(|| b[..b.len() - 1].to_vec())).collect()
            };
            Some(Encoding::Linear {
                register: drop(register, Some(at))?,
                lane: drop(lane, None)?,
                warp: drop(warp, None)?,
                block: drop(block, None)?,
            })
        }
        _ => None,
    }
}

/// For a result of a loop or branch, or an argument of its regions: the value that stands for all of them that must have
/// one type, since the end of a region passes the same on to both. (A `for`'s argument and result are one; so are a
/// `while`'s second argument and result.)
pub fn representative(module: &Module, value: Value) -> Value {
    let ValueDef::Result(op, i) = module.value_def(value) else { return value };
    if module.regions(op).is_empty() {
        return value;
    }
    let edges = flow::edges(module, op);
    let leaving = edges.iter().find(|e| e.leaves);
    let again = leaving.and_then(|l| {
        edges.iter().find(|e| !e.leaves && e.user != op && (e.user, e.first) == (l.user, l.first))
    });
    again.map_or(value, |e| e.to[i as usize])
}
