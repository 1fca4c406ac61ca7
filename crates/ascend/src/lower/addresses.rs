//! Pointers of a copy as a place in memory with a stride along each dimension.
//!
//! The engines that copy take nothing else: element `(i, j, …)` lies at `base + offset + i * strides[0] + j * strides[1] + …`. What a kernel adds up to make
//! its pointers is taken apart into that ([`affine`](tilewright_passes::analysis::affine)).
//!
//! ```text
//! %p = tt.addptr (tt.splat %x), (tt.splat %first) + tt.make_range      =>  base %x, offset %first, strides [1]
//! ```

use tilewright_ir::{Builder, Diagnostic, Module, Op, Type, Value};
use tilewright_passes::analysis::affine::{Affine, Obstacle, Poly};
use tilewright_passes::sums;

use super::unsupported;

/// Where pointers lead.
#[derive(Clone)]
pub(super) struct Address {
    /// The kernel's argument.
    pub base: Value,
    /// Elements to the first one, an `i64`; none for 0.
    pub offset: Option<Value>,
    /// Elements from one to the next along each dimension, each an `i64`; none for 0.
    pub strides: Vec<Option<Value>>,
}

/// Where indices along a dimension begin again from 0: the index is `(first + i) % end`, and the address counts with `first + i`.
pub(super) struct Wrap {
    /// The dimension.
    pub dim: usize,
    /// The first index, an `i64`.
    pub first: Value,
    /// Where they begin again, an `i64`.
    pub end: Value,
    /// How much the address counts with the index, an `i64`.
    pub stride: Value,
}

/// Takes apart the pointers that `op` is given; numbers are computed in front of it.
pub(super) fn of(module: &mut Module, op: Op, pointers: Value) -> Result<Address, Diagnostic> {
    match wrapping(module, op, pointers)? {
        (address, None) => Ok(address),
        (_, Some(_)) => Err(error(module, op, pointers)),
    }
}

/// The same, and where indices begin again, along one dimension.
pub(super) fn wrapping(
    module: &mut Module,
    op: Op,
    pointers: Value,
) -> Result<(Address, Option<Wrap>), Diagnostic> {
    // (How far a loop moves them in one iteration may take what its scalars are made of.)
    let linear = Affine::of_indices(module).wrapping(pointers);
    let linear = linear.or_else(|_| Affine::new(module).wrapping(pointers));
    let linear = linear.map_err(|obstacle| error(module, op, obstacle))?;
    let base = linear.base.filter(|&base| module.defining_op(base).is_none());
    let base = base.ok_or_else(|| error(module, op, linear.base.unwrap_or(pointers)))?;
    if linear.wraps.len() > 1 {
        return Err(error(module, op, pointers));
    }
    let mut b = Builder::before(module, op);
    let wrap = linear.wraps.first().map(|wrap| Wrap {
        dim: wrap.dim,
        first: sums::build(&mut b, &wrap.first, Type::I64),
        end: sums::build(&mut b, &wrap.end, Type::I64),
        stride: sums::build(&mut b, &wrap.stride, Type::I64),
    });
    let mut number = |poly: &Poly| (!poly.is_zero()).then(|| sums::build(&mut b, poly, Type::I64));
    let offset = number(&linear.offset);
    Ok((Address { base, offset, strides: linear.strides.iter().map(number).collect() }, wrap))
}

fn error(m: &Module, op: Op, obstacle: Obstacle) -> Diagnostic {
    let what = m.defining_op(obstacle).map_or("an argument", |op| m.op_name(op)).to_string();
    unsupported(m, op, format!("copies through pointers that are made by `{what}`"))
        .note("its engines copy blocks: an address, and a stride along each dimension")
}
