//! Part of the [verifier](mod@crate::verify): whether a layout is for as many threads and warps as there are.

use crate::Encoding;
use crate::attrs::{AttrKind, AttrValue};
use crate::dialect::ttg::{Partitions, WarpSpecialize};
use crate::entity::{Op, Type};
use crate::module::Module;
use crate::text::print_type;

/// The extents of a blocked layout over threads, warps and CTAs.
struct Blocked {
    threads: u32,
    warps: u32,
    ctas: Option<u32>,
}

impl Blocked {
    fn of(m: &Module, ty: Type) -> Option<Blocked> {
        let product = |v: &[u32]| v.iter().try_fold(1u32, |n, &x| n.checked_mul(x));
        match m.attr_kind(m.encoding(ty)?) {
            AttrKind::Encoding(Encoding::Blocked { threads_per_warp, warps_per_cta, .. }) => Some(Blocked {
                threads: product(threads_per_warp)?,
                warps: product(warps_per_cta)?,
                ctas: None,
            }),
            // One that is spread over CTAs is kept as text.
            AttrKind::Opaque(text) if text.starts_with("#ttg.blocked<") => {
                let list = |name: &str| product(&list(text, name)?);
                Some(Blocked {
                    threads: list("threadsPerWarp")?,
                    warps: list("warpsPerCTA")?,
                    ctas: list("CTAsPerCGA"),
                })
            }
            _ => None,
        }
    }
}

/// `name = [1, 2]` in the text of a layout.
fn list(text: &str, name: &str) -> Option<Vec<u32>> {
    let rest = text.split_once(name)?.1.trim_start().strip_prefix('=')?.trim_start().strip_prefix('[')?;
    rest.split_once(']')?.0.split(',').map(|n| n.trim().parse().ok()).collect()
}

/// How many warps run an operation: those of its partition, of its function, or of the module.
fn warps_of(m: &Module, op: Op) -> Option<u32> {
    let mut at = op;
    while let Some(parent) = m.parent_op(at) {
        if let Some(partitions) = Partitions::cast(m, parent) {
            let region = m.parent_block(at).and_then(|b| m.block_region(b))?;
            let index = m.regions(partitions.0).iter().position(|&r| r == region)?;
            let holder = WarpSpecialize::cast(m, m.parent_op(parent)?)?;
            return u32::try_from(*holder.partition_num_warps(m).get(index)?).ok();
        }
        if let Some(n) = number(m, parent, "ttg.num-warps") {
            return Some(n);
        }
        at = parent;
    }
    None
}

fn number(m: &Module, op: Op, name: &str) -> Option<u32> {
    i32::read(m, m.op_attr(op, name)).and_then(|n| u32::try_from(n).ok())
}

/// Checks the layout of a result against what the module says of its machine.
pub(crate) fn fits_machine(m: &Module, op: Op, ty: Type) -> Result<(), String> {
    let Some(blocked) = Blocked::of(m, ty).filter(|_| m.is_tensor(ty)) else { return Ok(()) };
    let wrong = |found: u32, what: &str, n: u32| {
        Err(format!("the layout of {} is for {found} {what}, but there are {n}", print_type(m, ty)))
    };
    match number(m, m.root(), "ttg.threads-per-warp") {
        Some(n) if n != blocked.threads => return wrong(blocked.threads, "threads of a warp", n),
        _ => {}
    }
    match warps_of(m, op) {
        Some(n) if n != blocked.warps => return wrong(blocked.warps, "warps", n),
        _ => {}
    }
    match (blocked.ctas, number(m, m.root(), "ttg.num-ctas")) {
        (Some(found), Some(n)) if found != n => wrong(found, "CTAs", n),
        _ => Ok(()),
    }
}
