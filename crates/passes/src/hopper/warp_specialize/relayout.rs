//! Tensors of a partition that has fewer warps than the function: the same layouts, in which each warp has more elements.
//!
//! Only address arithmetic is left there, which means the same in any layout, so that the types of all its tensors can be
//! changed alike.
//!
//! ```text
//! tensor<128x64x!tt.ptr<f16>, #ttg.blocked<{.., warpsPerCTA = [8, 1], ..}>>
//! =>
//! tensor<128x64x!tt.ptr<f16>, #ttg.blocked<{.., warpsPerCTA = [4, 1], ..}>>
//! ```

use std::sync::Arc;

use tilewright_ir::{AttrKind, Block, Encoding, Module, Op, Type};

/// Changes every tensor of a partition to `warps` warps; `None` where a layout is of another kind.
pub(super) fn run(module: &mut Module, partition: Block, warps: u32) -> Option<()> {
    let ops: Vec<Op> = module.block_ops(partition).flat_map(|op| module.all_ops(op)).collect();
    for op in ops {
        let mut values = module.results(op).to_vec();
        for &region in module.regions(op) {
            for &block in module.region_blocks(region) {
                values.extend(module.block_args(block));
            }
        }
        for v in values {
            let ty = module.value_type(v);
            if module.is_tensor(ty) {
                let new = fewer(module, ty, warps)?;
                module.set_value_type(v, new);
            }
        }
        let Some(value) = module.op_attr(op, "value") else { continue };
        let new = match module.attr_kind(value).clone() {
            AttrKind::Splat(element, ty) if module.is_tensor(ty) => {
                AttrKind::Splat(element, fewer(module, ty, warps)?)
            }
            AttrKind::Dense(elements, ty) if module.is_tensor(ty) => {
                AttrKind::Dense(elements, fewer(module, ty, warps)?)
            }
            _ => continue,
        };
        let new = module.attr(new);
        module.set_attr(op, "value", new);
    }
    Some(())
}

/// The type for this many warps.
fn fewer(module: &mut Module, ty: Type, warps: u32) -> Option<Type> {
    let encoding = module.encoding_of(module.encoding(ty)?)?;
    let new = fewer_warps(encoding, warps)?;
    let attr = module.attr(AttrKind::Encoding(new));
    Some(module.with_encoding(ty, Some(attr)))
}

/// Takes warps away along the slowest dimension that has several.
fn fewer_warps(encoding: &Encoding, warps: u32) -> Option<Encoding> {
    match encoding {
        Encoding::Blocked { size_per_thread, threads_per_warp, warps_per_cta, order } => {
            let mut per_cta = warps_per_cta.clone();
            while per_cta.iter().product::<u32>() > warps {
                let slowest = order.iter().rev().find(|&&d| per_cta[d as usize].is_multiple_of(2))?;
                per_cta[*slowest as usize] /= 2;
            }
            (per_cta.iter().product::<u32>() == warps).then(|| Encoding::Blocked {
                size_per_thread: size_per_thread.clone(),
                threads_per_warp: threads_per_warp.clone(),
                warps_per_cta: per_cta,
                order: order.clone(),
            })
        }
        Encoding::Slice { dim, parent } => {
            let parent = Arc::new(fewer_warps(parent, warps)?);
            Some(Encoding::Slice { dim: *dim, parent })
        }
        _ => None,
    }
}
