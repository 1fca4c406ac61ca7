//! Gives the blocks of descriptors that the tensor memory accelerator serves their layout in shared memory.
//!
//! Why here: right behind layout assignment, which has decided what dots read. A block that is loaded to be an operand of a
//! warp-group dot takes the layout that the dot wants, so that it is copied there and nowhere else; all others take the
//! widest swizzle that fits them. Where the kernel copies to or from a buffer of its own, that buffer's layout is the block's. From then on the descriptor's type says how its copies are made:
//!
//! ```text
//! %a = tt.descriptor_load %d[%i, %k] : !tt.tensordesc<tensor<128x64xf16>> -> tensor<128x64xf16, #blocked>
//! %s = ttg.local_alloc %a : ... -> !ttg.memdesc<128x64xf16, #nvmma, #smem>
//! =>
//! %a = tt.descriptor_load %d[%i, %k] : !tt.tensordesc<tensor<128x64xf16, #nvmma>> -> tensor<128x64xf16, #blocked>
//! %s = ttg.local_alloc %a : ... -> !ttg.memdesc<128x64xf16, #nvmma, #smem>
//! ```

use tilewright_ir::dialect::{tt, ttg};
use tilewright_ir::{AttrKind, Block, Diagnostic, Module, Op, Opcode, TypeKind, Value};
use tilewright_layout::TmaBlock;

use super::tma::{self, block_type};
use crate::analysis::{rings, scope};
use crate::pass::{Pass, Property};

/// The pass.
pub const PASS: Pass = Pass {
    name: "encode-descriptors",
    summary: "give the blocks of descriptors their layout in shared memory",
    requires: &[Property::LaidOut],
    ensures: &[Property::DescriptorsEncoded],
    run: |m, _, _| run(m),
};

/// Gives the block of every descriptor that is left its shared-memory encoding.
///
/// # Errors
/// A descriptor from which the kernel copies to buffers of several layouts.
pub fn run(module: &mut Module) -> Result<(), Diagnostic> {
    let functions: Vec<Op> = module.block_ops(module.body()).collect();
    for func in functions {
        if tt::Func::cast(module, func).is_none() {
            continue;
        }
        let entry = module.region_blocks(tt::Func(func).body(module)).first().copied();
        let mut descs: Vec<Value> = entry.map_or(Vec::new(), |b| module.block_args(b).to_vec());
        for op in module.all_ops(func) {
            if let Some(make) = tt::MakeTensorDescriptor::cast(module, op) {
                descs.push(make.result(module));
            }
        }
        for desc in descs {
            if block_type(module, desc).is_some() {
                encode(module, desc)?;
            }
        }
        if let Some(entry) = entry {
            update_signature(module, func, entry);
        }
    }
    Ok(())
}

fn encode(module: &mut Module, desc: Value) -> Result<(), Diagnostic> {
    let block = block_type(module, desc).expect("a descriptor");
    let (shape, bits) = (module.shape(block).unwrap_or(&[]).to_vec(), module.bits(block));
    // What the kernel copies to or from, or what a dot wants, if TMA can do that.
    let copies: Vec<(Op, Value)> = scope::uses(module, desc)
        .iter()
        .filter_map(|u| Some((u.op, tma::copied_buffer(module, u.op)?)))
        .collect();
    let layout = |module: &Module, &(_, buffer): &(Op, Value)| module.encoding(module.value_type(buffer));
    let given = copies.first().and_then(|copy| layout(module, copy));
    if let Some(other) = copies.iter().find(|copy| layout(module, copy) != given) {
        let text = "a tensor descriptor from which tle.gpu.copy(barrier=…) fills buffers of several layouts";
        let error = Diagnostic::unsupported(module, module.op_loc(other.0), text);
        return Err(error.note("make a descriptor for each, or give the buffers one `layout`"));
    }
    let wanted = scope::uses(module, desc).iter().find_map(|u| {
        let load = tt::DescriptorLoad::cast(module, u.op)?;
        buffers_filled(module, load.result(module)).into_iter().find_map(|buffer| {
            let encoding = module.encoding_of(module.encoding(module.value_type(buffer))?)?;
            TmaBlock::new(encoding, &shape, bits).is_some().then(|| encoding.clone())
        })
    });
    let encoding = given.unwrap_or_else(|| {
        let encoding = wanted.unwrap_or_else(|| TmaBlock::natural_encoding(&shape, bits));
        module.attr(AttrKind::Encoding(encoding))
    });
    let block = module.with_encoding(block, Some(encoding));
    let ty = module.ty(TypeKind::TensorDesc { block });
    for v in scope::views(module, desc) {
        module.set_value_type(v, ty);
    }
    Ok(())
}

/// The buffers that hold a loaded value and nothing else, and the slots of rings that it fills.
fn buffers_filled(module: &Module, value: Value) -> Vec<Value> {
    let uses = module.uses(value).iter();
    let filled = uses.flat_map(|u| match module.opcode(u.op) {
        Some(Opcode::Ttg(ttg::Kind::LocalAlloc)) => vec![module.result(u.op)],
        Some(Opcode::Ttg(ttg::Kind::LocalStore)) => {
            let slot = ttg::LocalStore(u.op).dst(module);
            vec![slot].into_iter().filter(|&v| rings::of_buffer(module, v).is_some()).collect()
        }
        Some(Opcode::Ttg(ttg::Kind::ConvertLayout)) => buffers_filled(module, module.result(u.op)),
        _ => Vec::new(),
    });
    filled.collect()
}

/// Makes a function's type that of its arguments; of those that were added nothing is promised.
pub(crate) fn update_signature(module: &mut Module, func: Op, entry: Block) {
    let inputs: Vec<_> = module.block_args(entry).iter().map(|&a| module.value_type(a)).collect();
    if let Some(AttrKind::Array(promises)) = module.op_attr(func, "arg_attrs").map(|a| module.attr_kind(a)) {
        let mut promises = promises.clone();
        let none = module.attr(AttrKind::Dict(Vec::new()));
        promises.resize(inputs.len(), none);
        let promises = module.attr(AttrKind::Array(promises));
        module.set_attr(func, "arg_attrs", promises);
    }
    let TypeKind::Function { results, .. } = module.type_kind(tt::Func(func).function_type(module)) else {
        return;
    };
    let ty = TypeKind::Function { inputs, results: results.clone() };
    let ty = module.ty(ty);
    let ty = module.attr(AttrKind::Type(ty));
    module.set_attr(func, "function_type", ty);
}
