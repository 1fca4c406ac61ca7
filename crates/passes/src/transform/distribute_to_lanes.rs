//! Distributes the blocks that one instruction takes over the lanes of a warp: behind it each tensor has a layout of registers and lanes, and
//! a program is what one thread does.
//!
//! Why here: [`match_target_size`](super::match_target_size) has cut all tensors to what instructions take, and these say which lane has what: a block is
//! loaded, stored and multiplied with a column a lane, its rows in registers (ML-Triton, section 2.4, "SIMT").
//!
//! # The algorithm
//!
//! 1. Tensors of two or more dimensions have their last one along the lanes. Those of one are either the columns of such a block (`#ttg.slice<{dim = 0}>`: an
//!    element a lane) or its rows (`dim = 1`: every lane has all). Which of both is one choice for all that is computed element by element from
//!    each other, reduced together, or carried by a loop: rows where some of it are, in a reduction along columns or where it is spread over them.
//! 2. Where an operation gives or wants the other, `ttg.convert_layout` stands behind or before it.
//! 3. The kernel is one that is written for a warp from here on ([`warps_of_program`](launch::warps_of_program)): buffers and barriers are those of all warps.
//!
//! ```text
//! %s = "tt.reduce"(%x) <{axis = 1}> : (tensor<8x16xf32>) -> tensor<8xf32>
//! %e = tt.expand_dims %s {axis = 1} : tensor<8xf32> -> tensor<8x1xf32>
//! =>
//! #blocked = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 16], warpsPerCTA = [1, 1], order = [1, 0]}>
//! %s = "tt.reduce"(%x) <{axis = 1}> : (tensor<8x16xf32, #blocked>) -> tensor<8xf32, #ttg.slice<{dim = 1, parent = #blocked}>>
//! %e = tt.expand_dims %s {axis = 1} : tensor<8xf32, #ttg.slice<{dim = 1, parent = #blocked}>> -> tensor<8x1xf32, #blocked>
//! ```

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::dialect::{arith, gpu, tt, ttg};
use tilewright_ir::index::Index;
use tilewright_ir::{
    AttrKind, Builder, Diagnostic, Encoding, Module, Op, Opcode, Value, flow, launch, marks,
};

use crate::analysis::axis::rank;
use crate::analysis::encoding_choice::{row_major, slice};
use crate::analysis::encoding_inference::is_tensor;
use crate::level::Level;
use crate::pass::{Pass, Property};
use crate::target::TargetInfo;

/// The pass.
pub const PASS: Pass = Pass {
    name: "distribute-to-lanes",
    summary: "distribute the blocks of instructions over the lanes of a warp",
    requires: &[Property::LaidOut, Property::OfOneWarp, Property::TargetSized],
    ensures: &[Property::NoRings, Property::WarpsPlaced],
    run: |m, t, _| run(m, t),
};

/// Gives all tensors of a module their lanes.
///
/// # Errors
/// A module that is not that of instructions; what has no lanes yet, with its place in the source.
pub fn run(module: &mut Module, target: &TargetInfo) -> Result<(), Diagnostic> {
    if Level::of(module) != Some(Level::Intrinsic) {
        return Err(Diagnostic::new("distribute-to-lanes: the module is not that of instructions"));
    }
    let ops = module.all_ops(module.root());
    if let Some(&op) = ops.iter().find(|&&op| !has_lanes(module, op)) {
        let what = format!("`{}` on lanes", module.op_name(op));
        return Err(Diagnostic::unsupported(module, module.op_loc(op), what));
    }
    let lanes = Lanes { width: target.warp_size, rows: Rows::choose(module, &ops) };
    for &op in &ops {
        let blocks = module.regions(op).to_vec().into_iter().flat_map(|r| module.region_blocks(r).to_vec());
        let args: Vec<Value> = blocks.flat_map(|b| module.block_args(b).to_vec()).collect();
        for value in module.results(op).to_vec().into_iter().chain(args) {
            if is_tensor(module, value) {
                let encoding = lanes.of(module, value);
                set_encoding(module, value, &encoding);
            }
        }
    }
    for &op in &ops {
        lanes.convert(module, op);
        of_all_warps(module, op);
    }
    let warps = module.int_attr(module.root(), "ttg.num-warps").unwrap_or(1) as i32;
    let root = module.root();
    module.set_i32_attr(root, launch::WARP_LEVEL, warps);
    module.set_i32_attr(root, "ttg.total-num-warps", warps);
    module.set_i32_attr(root, "ttg.num-warps", 1);
    Level::Lane.record(module);
    tilewright_ir::dce::run(module)
}

/// Whether the layouts of an operation's tensors are known here.
fn has_lanes(m: &Module, op: Op) -> bool {
    use tt::Kind as K;
    let tensors = m.operands(op).iter().chain(m.results(op)).any(|&v| is_tensor(m, v));
    let known = matches!(
        m.def(op).map(|d| d.index),
        Some(
            Index::Elementwise | Index::Aligned | Index::Generated | Index::Broadcast | Index::ExpandDims(_)
        )
    );
    if tt::Func::cast(m, op).is_some() {
        let blocks = m.regions(op).iter().flat_map(|&r| m.region_blocks(r));
        return !blocks.flat_map(|&b| m.block_args(b)).any(|&arg| is_tensor(m, arg));
    }
    let carries = !m.regions(op).is_empty() && !flow::edges(m, op).is_empty();
    !tensors
        || known
        || carries
        || m.has_trait(op, tilewright_ir::Trait::Terminator)
        || matches!(
            m.opcode(op),
            Some(
                Opcode::Arith(arith::Kind::Constant)
                    | Opcode::Ub(_)
                    | Opcode::Tt(
                        K::Reduce
                            | K::Scan
                            | K::Dot
                            | K::Trans
                            | K::Extract
                            | K::InsertTile
                            | K::Splat
                            | K::Unsplat
                            | K::DescriptorLoad
                            | K::DescriptorStore
                    )
                    | Opcode::Ttg(ttg::Kind::LocalLoad | ttg::Kind::LocalStore)
            )
        )
}

/// Which tensors of one dimension are the rows of blocks.
struct Rows {
    /// What is laid out alike, as a forest.
    alike: FxHashMap<Value, Value>,
    /// The roots of the trees that are rows.
    rows: FxHashSet<Value>,
}

impl Rows {
    fn choose(m: &Module, ops: &[Op]) -> Rows {
        let mut found = Rows { alike: FxHashMap::default(), rows: FxHashSet::default() };
        let is_line = |v: Value| is_tensor(m, v) && rank(m, v) == 1;
        for &op in ops {
            let of_blocks =
                matches!(m.opcode(op), Some(Opcode::Tt(tt::Kind::Extract | tt::Kind::InsertTile)));
            let together = matches!(
                m.def(op).map(|d| d.index),
                Some(Index::Elementwise | Index::Aligned | Index::Scan(_) | Index::Reduce(_))
            );
            if of_blocks || together {
                let lines: Vec<Value> =
                    m.operands(op).iter().chain(m.results(op)).copied().filter(|&v| is_line(v)).collect();
                lines.windows(2).for_each(|pair| found.join(pair[0], pair[1]));
            }
            for edge in flow::edges(m, op) {
                for (&from, &to) in edge.from(m).iter().zip(edge.to).filter(|(from, _)| is_line(**from)) {
                    found.join(from, to);
                }
            }
        }
        for &op in ops {
            let (value, dim) = match m.opcode(op) {
                Some(Opcode::Tt(tt::Kind::Reduce)) => (m.results(op).first(), tt::Reduce(op).axis(m)),
                Some(Opcode::Tt(tt::Kind::ExpandDims)) => {
                    (m.operands(op).first(), tt::ExpandDims(op).axis(m))
                }
                _ => continue,
            };
            if let Some(&value) = value.filter(|&&v| is_line(v) && dim == 1) {
                let root = found.root(value);
                found.rows.insert(root);
            }
        }
        found
    }

    fn root(&self, mut v: Value) -> Value {
        while let Some(&up) = self.alike.get(&v) {
            v = up;
        }
        v
    }

    fn join(&mut self, a: Value, b: Value) {
        let (a, b) = (self.root(a), self.root(b));
        if a != b {
            self.alike.insert(a, b);
        }
    }

    fn has(&self, v: Value) -> bool {
        self.rows.contains(&self.root(v))
    }
}

struct Lanes {
    width: u32,
    rows: Rows,
}

impl Lanes {
    /// A block of so many dimensions, the last along the lanes.
    fn block(&self, rank: usize) -> Encoding {
        let mut threads_per_warp = vec![1; rank];
        threads_per_warp[rank - 1] = self.width;
        let (size_per_thread, warps_per_cta) = (vec![1; rank], vec![1; rank]);
        Encoding::Blocked { size_per_thread, threads_per_warp, warps_per_cta, order: row_major(rank) }
    }

    /// What a block of so many dimensions has without one of them.
    fn without(&self, rank: usize, dim: u32) -> Encoding {
        slice(dim, &self.block(rank))
    }

    fn of(&self, m: &Module, v: Value) -> Encoding {
        match rank(m, v) {
            1 => self.without(2, u32::from(self.rows.has(v))),
            rank => self.block(rank),
        }
    }

    /// Places conversions before and behind an operation whose layouts follow from each other.
    fn convert(&self, m: &mut Module, op: Op) {
        match m.opcode(op) {
            Some(Opcode::Tt(tt::Kind::Reduce)) => {
                let of_source = rank(m, m.operands(op)[0]);
                if of_source < 2 {
                    return;
                }
                let gives = self.without(of_source, tt::Reduce(op).axis(m) as u32);
                for result in m.results(op).to_vec() {
                    give(m, op, result, &gives);
                }
            }
            Some(Opcode::Tt(tt::Kind::ExpandDims)) => {
                let expand = tt::ExpandDims(op);
                let (src, axis) = (expand.src(m), expand.axis(m) as u32);
                take(m, op, &self.without(rank(m, src) + 1, axis));
            }
            // All lanes have the one element of a line, whichever it is: nothing moves.
            Some(Opcode::Tt(tt::Kind::Broadcast)) => {
                take(m, op, &self.of(m, m.result(op)));
            }
            Some(Opcode::Tt(tt::Kind::Trans)) => {
                let trans = tt::Trans(op);
                let order: Vec<usize> = trans.order(m).iter().map(|&d| d as usize).collect();
                let gives = permuted(&self.block(order.len()), &order);
                give(m, op, trans.result(m), &gives);
            }
            _ => {}
        }
    }
}

/// The operation takes its first operand in this layout, by a conversion before it.
fn take(m: &mut Module, op: Op, wants: &Encoding) {
    let src = m.operands(op)[0];
    if encoding(m, src) == Some(wants) {
        return;
    }
    let ty = encoded(m, src, wants);
    let converted = ttg::ConvertLayout::build(&mut Builder::before(m, op), src, ty).result(m);
    m.set_operand(op, 0, converted);
}

/// The operation gives its result in this layout; a conversion behind it has that of the uses.
fn give(m: &mut Module, op: Op, result: Value, gives: &Encoding) {
    if encoding(m, result) == Some(gives) {
        return;
    }
    let wanted = m.value_type(result);
    let users = m.uses(result).to_vec();
    set_encoding(m, result, gives);
    let converted = ttg::ConvertLayout::build(&mut Builder::after(m, op), result, wanted).result(m);
    for user in users {
        m.set_operand(user.op, user.index as usize, converted);
    }
}

/// The layout whose dimension i is dimension `order[i]` of this one.
fn permuted(block: &Encoding, order: &[usize]) -> Encoding {
    let Encoding::Blocked { size_per_thread, threads_per_warp, warps_per_cta, order: fast } = block else {
        return block.clone();
    };
    let of = |x: &[u32]| order.iter().map(|&d| x[d]).collect::<Vec<u32>>();
    let place = |d: u32| order.iter().position(|&o| o == d as usize).unwrap_or(0) as u32;
    Encoding::Blocked {
        size_per_thread: of(size_per_thread),
        threads_per_warp: of(threads_per_warp),
        warps_per_cta: of(warps_per_cta),
        order: fast.iter().map(|&d| place(d)).collect(),
    }
}

fn encoding(m: &Module, v: Value) -> Option<&Encoding> {
    m.encoding(m.value_type(v)).and_then(|e| m.encoding_of(e))
}

fn encoded(m: &mut Module, v: Value, encoding: &Encoding) -> tilewright_ir::Type {
    let encoding = m.attr(AttrKind::Encoding(encoding.clone()));
    let ty = m.value_type(v);
    m.with_encoding(ty, Some(encoding))
}

fn set_encoding(m: &mut Module, v: Value, encoding: &Encoding) {
    let ty = encoded(m, v, encoding);
    m.set_value_type(v, ty);
    // A constant says its type twice.
    let (Some(op), Some(value)) = (m.defining_op(v), m.constant_value(v)) else { return };
    let value = match m.attr_kind(value).clone() {
        AttrKind::Splat(number, _) => AttrKind::Splat(number, ty),
        AttrKind::Dense(numbers, _) => AttrKind::Dense(numbers, ty),
        _ => return,
    };
    let value = m.attr(value);
    m.set_attr(op, "value", value);
}

/// What the warps have together stays that, and the warp's number is one of the program.
fn of_all_warps(m: &mut Module, op: Op) {
    match m.opcode(op) {
        Some(Opcode::Ttg(ttg::Kind::Barrier | ttg::Kind::LocalAlloc)) => {
            let unit = m.attr(AttrKind::Unit);
            m.set_attr(op, marks::ALL_WARPS, unit);
        }
        Some(Opcode::Arith(arith::Kind::IndexCast)) => {
            let number = m.operands(op)[0];
            let from = m.defining_op(number).and_then(|from| gpu::SubgroupId::cast(m, from));
            if from.is_some() && m.value_type(m.result(op)) == tilewright_ir::Type::I32 {
                let id = ttg::WarpId::build(&mut Builder::before(m, op), tilewright_ir::Type::I32).result(m);
                m.replace_all_uses(m.result(op), id);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_transposed_block_has_its_rows_along_the_lanes() {
        let lanes = |threads_per_warp: Vec<u32>, order: Vec<u32>| Encoding::Blocked {
            size_per_thread: vec![1; 2],
            threads_per_warp,
            warps_per_cta: vec![1; 2],
            order,
        };
        assert_eq!(permuted(&lanes(vec![1, 16], vec![1, 0]), &[1, 0]), lanes(vec![16, 1], vec![0, 1]));
        assert_eq!(
            slice(0, &lanes(vec![1, 16], vec![1, 0])),
            Encoding::Slice { dim: 0, parent: Arc::new(lanes(vec![1, 16], vec![1, 0])) }
        );
    }
}
