//! How an encoding crosses an operation: what the result of an operation has when its operand has this encoding, and the
//! other way round, so that no data moves between threads.
//!
//! ```text
//! tt.expand_dims axis=1   slice<1, #blocked>   <->  #blocked
//! tt.reduce axis=1        #blocked              ->  slice<1, #blocked>
//! tt.trans [1, 0]         #blocked{order=[1,0]} <->  #blocked{order=[0,1], everything else exchanged}
//! tt.reshape              anything              ->  #linear over the same registers, lanes and warps
//! ```

use tilewright_ir::dialect::{scf, tt};
use tilewright_ir::{Encoding, Module, Op, Opcode, Trait, Value};
use tilewright_layout::{Dim, TileLayout};

use crate::choose::slice;

/// Whether operands and results simply share one encoding.
pub fn shares_encoding(module: &Module, op: Op) -> bool {
    module.has_trait(op, Trait::Elementwise)
        || matches!(module.opcode(op), Some(Opcode::Tt(tt::Kind::Broadcast | tt::Kind::Scan)))
}

/// Whether a value is a tensor.
pub fn is_tensor(module: &Module, value: Value) -> bool {
    module.is_tensor(module.value_type(value))
}

fn shape(module: &Module, value: Value) -> Vec<u32> {
    module.shape(module.value_type(value)).unwrap_or(&[]).to_vec()
}

/// The encoding of the results when operand `index` has `enc`. `None` where none follows from it.
pub fn forward(module: &Module, op: Op, index: usize, enc: &Encoding) -> Option<Encoding> {
    if shares_encoding(module, op) {
        return Some(enc.clone());
    }
    match module.opcode(op)? {
        Opcode::Tt(tt::Kind::ExpandDims) => match enc {
            Encoding::Slice { dim, parent } if *dim as i32 == tt::ExpandDims(op).axis(module) => {
                Some(parent.as_ref().clone())
            }
            _ => None,
        },
        Opcode::Tt(tt::Kind::Reduce) => Some(slice(tt::Reduce(op).axis(module) as u32, enc)),
        Opcode::Tt(tt::Kind::Trans) => {
            let order: Vec<usize> = tt::Trans(op).order(module).iter().map(|&d| d as usize).collect();
            permute(enc, &shape(module, module.operands(op)[0]), &order)
        }
        Opcode::Tt(tt::Kind::Reshape) => {
            reshape(enc, &shape(module, module.operands(op)[0]), &shape(module, module.results(op)[0]))
        }
        Opcode::Tt(tt::Kind::Join) => append_pair(enc, &shape(module, module.operands(op)[0])),
        Opcode::Tt(tt::Kind::Split) => drop_pair(enc),
        Opcode::Tt(tt::Kind::Gather) if index == 1 => Some(enc.clone()),
        _ => None,
    }
}

/// The encoding of operand `index` when the results have `enc`.
pub fn backward(module: &Module, op: Op, index: usize, enc: &Encoding) -> Option<Encoding> {
    if shares_encoding(module, op) {
        return Some(enc.clone());
    }
    match module.opcode(op)? {
        Opcode::Tt(tt::Kind::ExpandDims) => Some(slice(tt::ExpandDims(op).axis(module) as u32, enc)),
        Opcode::Tt(tt::Kind::Reduce) => match enc {
            Encoding::Slice { dim, parent } if *dim as i32 == tt::Reduce(op).axis(module) => {
                Some(parent.as_ref().clone())
            }
            _ => None,
        },
        Opcode::Tt(tt::Kind::Trans) => {
            let order = tt::Trans(op).order(module);
            let mut inverse = vec![0; order.len()];
            for (i, &d) in order.iter().enumerate() {
                inverse[d as usize] = i;
            }
            permute(enc, &shape(module, module.results(op)[0]), &inverse)
        }
        Opcode::Tt(tt::Kind::Reshape) => {
            reshape(enc, &shape(module, module.results(op)[0]), &shape(module, module.operands(op)[0]))
        }
        Opcode::Tt(tt::Kind::Join) => drop_pair(enc),
        Opcode::Tt(tt::Kind::Split) => append_pair(enc, &shape(module, module.results(op)[0])),
        Opcode::Tt(tt::Kind::Gather) if index == 1 => Some(enc.clone()),
        _ => None,
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
    if let Encoding::Blocked { size_per_thread, threads_per_warp, warps_per_cta, order: fast } = enc {
        let pick = |v: &[u32]| order.iter().map(|&d| v[d]).collect::<Vec<u32>>();
        let at = |d: u32| order.iter().position(|&o| o == d as usize).unwrap_or(0) as u32;
        return Some(Encoding::Blocked {
            size_per_thread: pick(size_per_thread),
            threads_per_warp: pick(threads_per_warp),
            warps_per_cta: pick(warps_per_cta),
            order: fast.iter().map(|&d| at(d)).collect(),
        });
    }
    let layout = TileLayout::new(enc, shape).ok()?;
    Some(linear(&layout, |b| order.iter().map(|&d| b[d]).collect()))
}

/// The encoding of the same elements in row-major order under another shape, where both are powers of two.
fn reshape(enc: &Encoding, from: &[u32], to: &[u32]) -> Option<Encoding> {
    if from.iter().chain(to).any(|s| !s.is_power_of_two()) {
        return None;
    }
    let layout = TileLayout::new(enc, from).ok()?;
    if layout.unit() != from {
        return None;
    }
    Some(linear(&layout, |b| {
        let mut flat = b.iter().zip(from).fold(0, |acc, (x, s)| acc * s + x);
        let mut out: Vec<u32> = to
            .iter()
            .rev()
            .map(|s| {
                let x = flat % s;
                flat /= s;
                x
            })
            .collect();
        out.reverse();
        out
    }))
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

/// For a result of `scf.for`, `scf.while` or `scf.if`, or a carried block argument: the value that stands for all of them
/// that must have one type. (A `for`'s argument and result are one; so are a `while`'s second argument and result.)
pub fn representative(module: &Module, value: Value) -> Value {
    if let tilewright_ir::ValueDef::Result(op, i) = module.value_def(value) {
        match module.opcode(op) {
            Some(Opcode::Scf(scf::Kind::For)) => {
                return module.block_args(module.region_block(scf::For(op).body(module)))[i as usize + 1];
            }
            Some(Opcode::Scf(scf::Kind::While)) => {
                return module.block_args(module.region_block(scf::While(op).after(module)))[i as usize];
            }
            _ => {}
        }
    }
    value
}
