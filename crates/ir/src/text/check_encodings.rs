//! What must hold among the parameters of a layout, whatever has it.

use crate::attrs::text_list;
use crate::dialect::blackwell::TensorMemory;
use crate::{Encoding, SharedKind};

/// Checks an encoding that is modelled.
pub(super) fn check(encoding: &Encoding) -> Result<(), String> {
    match encoding {
        Encoding::Blocked { size_per_thread, threads_per_warp, warps_per_cta, order } => {
            let ranks = [size_per_thread, threads_per_warp, warps_per_cta, order].map(Vec::len);
            if ranks.iter().any(|&r| r != ranks[0]) {
                return Err("the parameters of a blocked layout must have as many elements each".into());
            }
            permutation(order)
        }
        Encoding::WarpBlocked { size_per_warp, warps_per_cta, order } => {
            if [size_per_warp, warps_per_cta].iter().any(|list| list.len() != order.len()) {
                return Err("the parameters of a blocked layout must have as many elements each".into());
            }
            if let Some(n) = size_per_warp.iter().chain(warps_per_cta).find(|n| !n.is_power_of_two()) {
                return Err(format!("a blocked layout of warps is made of powers of two, and {n} is none"));
            }
            permutation(order)
        }
        Encoding::Slice { dim, parent } => match rank(parent) {
            Some(rank) if rank < 2 => Err("a slice needs a layout of 2 dimensions at least".into()),
            Some(rank) if *dim as usize >= rank => {
                Err(format!("a layout of {rank} dimensions has no dimension {dim}"))
            }
            _ => Ok(()),
        },
        Encoding::DotOperand { op_idx, parent, k_width } => dot_operand(*op_idx, parent, *k_width),
        Encoding::Shared(SharedKind::Swizzled { order, .. }) => permutation(order),
        _ => Ok(()),
    }
}

fn dot_operand(op_idx: u32, parent: &Encoding, k_width: u32) -> Result<(), String> {
    if op_idx > 1 {
        return Err(format!("a product has the operands 0 and 1, not {op_idx}"));
    }
    match parent {
        Encoding::WarpBlocked { .. } | Encoding::DotOperand { .. } if k_width != 0 => {
            Err("`kWidth` says nothing where the result's layout is one of warps".into())
        }
        Encoding::Blocked { .. } if k_width != 0 && !k_width.is_power_of_two() => {
            Err("`kWidth` must be a power of two".into())
        }
        Encoding::NvidiaMma { version_major: 0 | 1, .. } if k_width != 0 => {
            Err("`kWidth` says nothing of products before version 2".into())
        }
        Encoding::NvidiaMma { version_major: 2 | 3, .. } if k_width == 0 => {
            Err("`kWidth` must be given for products of version 2 and 3".into())
        }
        Encoding::NvidiaMma { version_major: 3, .. } if op_idx == 1 => {
            Err("the second operand of a product of version 3 is in shared memory, never in registers".into())
        }
        _ => Ok(()),
    }
}

/// The number of dimensions, where the parameters say it.
fn rank(encoding: &Encoding) -> Option<usize> {
    match encoding {
        Encoding::Blocked { order, .. } | Encoding::WarpBlocked { order, .. } => Some(order.len()),
        Encoding::NvidiaMma { warps_per_cta, .. } => Some(warps_per_cta.len()),
        Encoding::Slice { parent, .. } => rank(parent)?.checked_sub(1),
        Encoding::DotOperand { parent, .. } => rank(parent),
        _ => None,
    }
}

fn permutation(order: &[u32]) -> Result<(), String> {
    let mut seen = vec![false; order.len()];
    for &d in order {
        match seen.get_mut(d as usize) {
            Some(s) if !*s => *s = true,
            _ => return Err(format!("`order` {order:?} is no permutation")),
        }
    }
    Ok(())
}

/// Checks the pairs `interval:+pad` of a padded layout.
pub(super) fn padding(pairs: &[(u32, u32)]) -> Result<(), String> {
    for (i, (interval, pad)) in pairs.iter().enumerate() {
        if !interval.is_power_of_two() || !pad.is_power_of_two() {
            return Err(format!("{interval}:+{pad}: both must be powers of two"));
        }
        if pairs[..i].iter().any(|(other, _)| other == interval) {
            return Err(format!("the interval {interval} is given twice"));
        }
    }
    Ok(())
}

/// Checks an attribute that is kept as text.
pub(super) fn check_text(text: &str) -> Result<(), String> {
    if let Some(layout) = TensorMemory::parse(text) {
        return layout.map(|_| ());
    }
    match text.split_once('<') {
        Some(("#ttg.amd_mfma", parameters)) => amd_mfma(parameters),
        Some(("#ttg.dot_op", parameters)) => operand_of_amd(parameters),
        Some(("#hivm.data_layout", parameters)) => data_layout(parameters),
        _ => Ok(()),
    }
}

/// An order of matrices in memory of Ascend's cores: those of the operands of a product say whether they are transposed.
fn data_layout(text: &str) -> Result<(), String> {
    let name = text.split([',', '>']).next().unwrap_or("").trim();
    match (name, parameter(text, "transpose")) {
        ("dotA_ND" | "dotB_ND", None) => Err("`transpose` must be given for dotA_ND and dotB_ND".into()),
        ("dotA_ND" | "dotB_ND" | "ND", _) | (_, None) => Ok(()),
        (name, Some(_)) => Err(format!("`transpose` says nothing of {name}")),
    }
}

/// What stands behind `name =` among parameters in text: a word, or a list without its end.
fn parameter<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.match_indices(name).find_map(|(at, _)| {
        let is_whole = !text[..at].ends_with(|c: char| c.is_ascii_alphanumeric());
        let value = text[at + name.len()..].trim_start().strip_prefix('=').filter(|_| is_whole)?.trim_start();
        let end = if value.starts_with('[') { value.find(']') } else { value.find([',', '}', '>']) };
        Some(value[..end.unwrap_or(value.len())].trim())
    })
}

/// AMD's matrix cores (`mfma`).
fn amd_mfma(text: &str) -> Result<(), String> {
    let version = parameter(text, "version").or_else(|| parameter(text, "versionMajor"));
    if let Some(version) = version
        && !matches!(version.parse(), Ok(0..=4u32))
    {
        return Err(format!("the version of mfma must be 0 to 4, not {version}"));
    }
    let shape = text_list(text, "instrShape").unwrap_or_default();
    if let [m, n, ..] = shape[..]
        && !matches!((m, n), (32, 32) | (16, 16) | (64, 4) | (4, 64))
    {
        return Err(format!("there is no mfma of {m}x{n}"));
    }
    match parameter(text, "elementType") {
        None | Some("f64" | "f32" | "i32") => Ok(()),
        Some(other) => Err(format!("mfma accumulates in f64, f32 or i32, not in {other}")),
    }
}

/// An operand of a product of AMD's.
fn operand_of_amd(text: &str) -> Result<(), String> {
    let Some((before, parent)) = text.split_once('#') else { return Ok(()) };
    // (The parent's parameters end where its brackets do.)
    let behind = parent.split_once("}>").map_or("", |(_, behind)| behind);
    let k_width = parameter(before, "kWidth").or_else(|| parameter(behind, "kWidth"));
    let k_width: u32 = k_width.and_then(|n| n.parse().ok()).unwrap_or(0);
    if parent.starts_with("ttg.amd_mfma<") && k_width == 0 {
        return Err("`kWidth` must be given for products of mfma".into());
    }
    let Some(wmma) = parent.strip_prefix("ttg.amd_wmma<") else { return Ok(()) };
    match (parameter(wmma, "version").unwrap_or(""), k_width) {
        (_, 8 | 16) => Ok(()),
        ("1", _) => Err(format!("`kWidth` must be 8 or 16 for products of wmma 1, not {k_width}")),
        (_, 4) => Ok(()),
        (version, _) => {
            Err(format!("`kWidth` must be 4, 8 or 16 for products of wmma {version}, not {k_width}"))
        }
    }
}
