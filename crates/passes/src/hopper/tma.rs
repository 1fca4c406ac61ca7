//! Descriptors that the tensor memory accelerator serves: which do, how their blocks lie in shared memory, and what the
//! launch must know to make their tensor maps.
//!
//! [`encode_descriptors`](super::encode_descriptors) gives their blocks the layout; from then on the descriptor's type says how its
//! copies are made. They are made by the loop pipeliner, by warp specialization and, for what those leave, by
//! [`lower_tma`](super::lower_tma).

use tilewright_ir::dialect::tt::{self, DescriptorReduceKind};
use tilewright_ir::dialect::{ttg, ttng};
use tilewright_ir::{
    AttrKind, Builder, Encoding, FloatKind, Module, Op, Opcode, SharedKind, Type, TypeKind, Value, ValueDef,
};
use tilewright_ir::{flow, launch};
use tilewright_layout::{SharedLayout, TmaBlock};

use crate::analysis::axis::AxisAnalysis;
use crate::analysis::scope;
use crate::analysis::tile_layout::shared_layout_of;
use crate::target::TargetInfo;

/// Whether a descriptor's accesses all become TMA copies. It is a kernel argument or the result of a
/// `tt.make_tensor_descriptor`, without encoding.
///
/// Base and rows of its tensor are aligned to 16 bytes, or the program may not use a descriptor; where a block begins in
/// its row must be known to be: an H100 takes a copy from in between for an illegal instruction. Where rows end must be
/// known for what is written: stores and reductions go on to the end of a piece of 16 bytes.
pub fn supports(module: &Module, target: &TargetInfo, axis: &AxisAnalysis, desc: Value) -> bool {
    let desc = scope::captured(module, desc);
    let Some(block) = block_type(module, desc) else { return false };
    let uses = scope::uses(module, desc);
    if !target.tma || !made_once(module, desc) || uses.is_empty() {
        return false;
    }
    let element = module.element_type(block);
    if !matches!(module.type_kind(element), TypeKind::Int(8 | 16 | 32 | 64) | TypeKind::Float(_)) {
        return false;
    }
    let (shape, bits) = (module.shape(block).unwrap_or(&[]), module.bits(block));
    if TmaBlock::new(&TmaBlock::natural_encoding(shape, bits), shape, bits).is_none() {
        return false;
    }
    let mut signs = [false; 2];
    let all = uses.iter().all(|u| {
        let (accessed, indices) = match module.opcode(u.op) {
            Some(Opcode::Tt(tt::Kind::DescriptorLoad)) => {
                let load = tt::DescriptorLoad(u.op);
                (load.result(module), load.indices(module))
            }
            Some(Opcode::Tt(tt::Kind::DescriptorStore)) => {
                let store = tt::DescriptorStore(u.op);
                if !rows_end_whole(module, axis, desc, shape.len(), bits) {
                    return false;
                }
                (store.src(module), store.indices(module))
            }
            Some(Opcode::Tt(tt::Kind::DescriptorReduce)) => {
                let reduce = tt::DescriptorReduce(u.op);
                let kind = reduce.kind(module);
                signs[usize::from(is_unsigned(kind))] |= is_signed(kind) || is_unsigned(kind);
                if !reduces(module, element, kind) || !rows_end_whole(module, axis, desc, shape.len(), bits) {
                    return false;
                }
                (reduce.src(module), reduce.indices(module))
            }
            Some(Opcode::Ttng(ttng::Kind::AsyncTmaCopyGlobalToLocal)) => {
                let copy = ttng::AsyncTmaCopyGlobalToLocal(u.op);
                let buffer = copy.result(module);
                if !copies(module, buffer, shape) || !begins_aligned(module, buffer) {
                    return false;
                }
                (buffer, copy.coord(module))
            }
            Some(Opcode::Ttng(ttng::Kind::AsyncTmaCopyLocalToGlobal)) => {
                let copy = ttng::AsyncTmaCopyLocalToGlobal(u.op);
                if !rows_end_whole(module, axis, desc, shape.len(), bits) {
                    return false;
                }
                (copy.src(module), copy.coord(module))
            }
            _ => return false,
        };
        let column = indices.last().map_or(0, |&i| axis.get(module, i).dims[0].divisibility);
        if u32::from(column) + (bits / 8).trailing_zeros() < 4 {
            return false;
        }
        let tile = module.shape(module.value_type(accessed)).unwrap_or(&[]);
        u.index == 0 && TmaBlock::new(&TmaBlock::natural_encoding(tile, bits), tile, bits).is_some()
    });
    all && signs != [true; 2]
}

/// Whether the rows of a descriptor's tensor are known to end at a multiple of 16 bytes. Behind a descriptor that is an
/// argument stand its extents; where they do not, the IR was written for TMA.
fn rows_end_whole(module: &Module, axis: &AxisAnalysis, desc: Value, rank: usize, bits: u32) -> bool {
    let extent = match module.value_def(desc) {
        ValueDef::Argument(block, at) => module.block_args(block).get(at as usize + rank).copied(),
        ValueDef::Result(op, _) => {
            tt::MakeTensorDescriptor::cast(module, op).and_then(|made| made.shape(module).last().copied())
        }
    };
    let extent = extent.filter(|&v| matches!(module.type_kind(module.value_type(v)), TypeKind::Int(_)));
    extent.is_none_or(|n| {
        u32::from(axis.get(module, n).dims[0].divisibility) + (bits / 8).trailing_zeros() >= 4
    })
}

/// A kernel's argument, or made where no loop makes it again while copies still read the one before.
fn made_once(module: &Module, desc: Value) -> bool {
    match module.value_def(desc) {
        ValueDef::Argument(block, _) => {
            module.block_parent_op(block).is_some_and(|f| tt::Func::cast(module, f).is_some())
        }
        ValueDef::Result(op, _) => {
            !flow::is_in_loop(module, op) && tt::MakeTensorDescriptor::cast(module, op).is_some()
        }
    }
}

fn is_signed(kind: DescriptorReduceKind) -> bool {
    matches!(kind, DescriptorReduceKind::Min | DescriptorReduceKind::Max)
}

fn is_unsigned(kind: DescriptorReduceKind) -> bool {
    matches!(kind, DescriptorReduceKind::Umin | DescriptorReduceKind::Umax)
}

/// What `cp.reduce.async.bulk.tensor` combines (PTX ISA).
fn reduces(module: &Module, element: Type, kind: DescriptorReduceKind) -> bool {
    use DescriptorReduceKind as K;
    match (module.type_kind(element), kind) {
        (TypeKind::Int(32), _) => true,
        (TypeKind::Int(64), kind) => !matches!(kind, K::Inc | K::Dec),
        (TypeKind::Float(FloatKind::F16 | FloatKind::BF16), K::Add | K::Min | K::Max) => true,
        (TypeKind::Float(FloatKind::F32), K::Add) => true,
        _ => false,
    }
}

/// The block that a descriptor's accesses move.
pub fn block_type(module: &Module, desc: Value) -> Option<Type> {
    match module.type_kind(module.value_type(desc)) {
        TypeKind::TensorDesc { block } => Some(*block),
        _ => None,
    }
}

/// Whether a descriptor has its encoding: its accesses are TMA copies.
pub fn is_encoded(module: &Module, desc: Value) -> bool {
    block_type(module, desc).is_some_and(|b| module.encoding(b).is_some())
}

/// The buffer type for a tile that is copied through a descriptor. (The tile may lack the block's leading dimensions of
/// extent 1.)
pub fn tile_buffer(module: &mut Module, desc: Value, tile: &[u32]) -> Type {
    let block = block_type(module, desc).expect("a descriptor");
    let encoding = module.encoding(block).expect("an encoded descriptor");
    let encoding = match module.encoding_of(encoding) {
        Some(Encoding::Shared(SharedKind::NvmmaShared { .. })) => encoding,
        _ => {
            let natural = TmaBlock::natural_encoding(tile, module.bits(block));
            module.attr(AttrKind::Encoding(natural))
        }
    };
    let element = module.element_type(block);
    module.buffer_type(tile, element, encoding, true)
}

/// The bytes that a copy of the descriptor's block brings.
pub fn block_bytes(module: &Module, desc: Value) -> i32 {
    block_type(module, desc).and_then(|b| tma_block(module, b)).map_or(0, |(block, bits)| block.bytes(bits))
        as i32
}

/// Whether a ring of buffers can be filled through a descriptor: each slot begins where TMA can put it.
pub fn fills_rings(module: &Module, desc: Value) -> bool {
    is_encoded(module, desc) && (block_bytes(module, desc) as u32).is_multiple_of(BUFFER_ALIGNMENT)
}

/// What every buffer that TMA copies to or from is aligned to at least (PTX ISA, "cp.async.bulk.tensor").
pub const BUFFER_ALIGNMENT: u32 = 128;

/// The buffer that an operation copies to or from by TMA.
pub fn copied_buffer(module: &Module, op: Op) -> Option<Value> {
    match module.opcode(op)? {
        Opcode::Ttng(ttng::Kind::AsyncTmaCopyGlobalToLocal) => {
            Some(ttng::AsyncTmaCopyGlobalToLocal(op).result(module))
        }
        Opcode::Ttng(ttng::Kind::AsyncTmaCopyLocalToGlobal) => {
            Some(ttng::AsyncTmaCopyLocalToGlobal(op).src(module))
        }
        _ => None,
    }
}

/// Whether TMA copies blocks of this shape to and from a buffer as it is laid out.
pub fn copies(module: &Module, buffer: Value, shape: &[u32]) -> bool {
    let ty = module.value_type(buffer);
    let encoding = module.encoding(ty).and_then(|e| module.encoding_of(e));
    encoding.is_some_and(|e| TmaBlock::new(e, shape, module.bits(ty)).is_some())
}

/// Whether a view of a buffer begins where TMA can copy to and from: a slot, or what else shows a buffer's bytes, may begin in between.
pub fn begins_aligned(module: &Module, buffer: Value) -> bool {
    let mut at = scope::captured(module, buffer);
    while let Some(op) = module.defining_op(at) {
        let begin = match module.opcode(op) {
            Some(Opcode::Ttg(ttg::Kind::MemdescIndex)) => {
                let slot = module.constant_int(ttg::MemdescIndex(op).index(module)).unwrap_or(1);
                slot * i64::from(slot_bytes(module, at))
            }
            Some(Opcode::Ttg(ttg::Kind::MemdescReinterpret)) => {
                ttg::MemdescReinterpret(op).offset(module).unwrap_or(0).into()
            }
            Some(Opcode::Ttg(
                ttg::Kind::MemdescSubslice | ttg::Kind::MemdescReshape | ttg::Kind::MemdescTrans,
            )) => 0,
            Some(Opcode::Ttg(ttg::Kind::MemdescSubview)) if tiles_begin_aligned(module, op) => 0,
            Some(Opcode::Ttg(ttg::Kind::MemdescSubview)) => return false,
            _ => break,
        };
        if begin % i64::from(BUFFER_ALIGNMENT) != 0 {
            return false;
        }
        at = scope::captured(module, module.operands(op)[0]);
    }
    true
}

/// Whether all tiles begin where TMA can copy to and from, of which one is chosen at run time.
fn tiles_begin_aligned(module: &Module, tile: Op) -> bool {
    let src = module.operands(tile)[0];
    if ttg::MemdescSubslice::of(module, scope::captured(module, src)).is_some() {
        return false;
    }
    let types = [src, module.result(tile)].map(|v| module.value_type(v));
    let [part, shape] = types.map(|ty| module.shape(ty).unwrap_or(&[]));
    let bytes = module.bits(types[1]).max(8) / 8;
    let layout = shared_layout_of(module, types[1]);
    let begins = layout.and_then(|layout| layout.tile_begins(&vec![0; shape.len()], part, shape));
    begins.is_some_and(|begins| begins.iter().all(|begin| (begin * bytes).is_multiple_of(BUFFER_ALIGNMENT)))
}

/// The bytes from one slot to the next.
fn slot_bytes(module: &Module, slot: Value) -> u32 {
    let ty = module.value_type(slot);
    let (shape, bits) = (module.shape(ty).unwrap_or(&[]), module.bits(ty).max(8));
    let layout = module.encoding(ty).and_then(|e| module.encoding_of(e));
    let layout = layout.and_then(|layout| SharedLayout::new(layout, shape, bits).ok());
    layout.map_or_else(|| shape.iter().product(), |layout| layout.allocation_elems()) * bits / 8
}

/// Whether TMA can copy from where a buffer lies: an allocation, a slot of one, or a part whose rows are whole swizzles.
pub fn copies_part(module: &Module, buffer: Value) -> bool {
    let ty = module.value_type(buffer);
    let (Some(shape), bits) = (module.shape(ty), module.bits(ty)) else { return false };
    let Some(encoding) = module.encoding(ty).and_then(|e| module.encoding_of(e)) else { return false };
    let mut offsets = vec![0; shape.len()];
    let mut at = scope::captured(module, buffer);
    let whole = loop {
        let Some(op) = module.defining_op(at) else { return false };
        match module.opcode(op) {
            Some(Opcode::Ttg(
                ttg::Kind::LocalAlloc | ttg::Kind::MemdescReinterpret | ttg::Kind::MemdescReshape,
            )) => break at,
            Some(Opcode::Ttg(ttg::Kind::MemdescIndex)) => {}
            Some(Opcode::Ttg(ttg::Kind::MemdescSubview)) if tiles_begin_aligned(module, op) => {}
            Some(Opcode::Ttg(ttg::Kind::MemdescSubslice)) => {
                let starts = ttg::MemdescSubslice(op).offsets(module);
                // What a slot has lost of its buffer's dimensions numbers slots.
                let lost = starts.len() - offsets.len();
                offsets.iter_mut().zip(&starts[lost..]).for_each(|(o, &start)| *o += start as u32);
            }
            _ => return false,
        }
        at = scope::captured(module, module.operands(op)[0]);
    };
    let all = module.shape(module.value_type(whole)).unwrap_or(&[]);
    let slot = &all[all.len() - shape.len()..];
    let Ok(layout) = SharedLayout::new(encoding, slot, bits) else { return false };
    let aligned = begins_aligned(module, buffer);
    let Some(block) = TmaBlock::new(encoding, shape, bits).filter(|_| aligned) else { return false };
    slot == shape || block.in_part(&layout, shape, &offsets, bits / 8).is_some()
}

/// Makes a copy from a buffer one that goes by way of registers.
pub fn by_registers(module: &mut Module, copy: ttng::AsyncTmaCopyLocalToGlobal) -> tt::DescriptorStore {
    let (desc, coord, buffer) = (copy.desc(module), copy.coord(module).to_vec(), copy.src(module));
    let ty = module.value_type(buffer);
    let (shape, element) = (module.shape(ty).unwrap_or(&[]).to_vec(), module.element_type(ty));
    let ty = module.tensor_type(&shape, element, None);
    let mut b = Builder::before(module, copy.0);
    let value = ttg::LocalLoad::build(&mut b, buffer, None, ty).result(b.module);
    let store = tt::DescriptorStore::build(&mut b, desc, value, &coord);
    module.erase_op(copy.0);
    store
}

/// Whether an operation copies between a buffer and global memory by TMA.
pub fn is_copy(module: &Module, op: Op) -> bool {
    use ttng::Kind as K;
    matches!(
        module.opcode(op),
        Some(Opcode::Ttng(K::AsyncTmaCopyGlobalToLocal | K::AsyncTmaCopyLocalToGlobal | K::AsyncTmaReduce))
    )
}

/// How a descriptor's block is copied, and the bits of an element. In a cluster the CTAs may share the copies.
pub(crate) fn tma_block(module: &Module, block: Type) -> Option<(TmaBlock, u32)> {
    let encoding = module.encoding_of(module.encoding(block)?)?;
    let bits = module.bits(block);
    Some((TmaBlock::in_parts(encoding, module.shape(block)?, bits, launch::cluster_size(module))?, bits))
}

/// A kernel argument that is a tensor map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorMapArg {
    /// Index of the function's argument.
    pub arg: usize,
    /// The argument.
    pub value: Value,
    /// An element's type.
    pub element: Type,
    /// Whether a reduction takes integers as unsigned.
    pub unsigned: bool,
    /// The block of one access, outermost dimension first.
    pub block_shape: Vec<u32>,
    /// The box of the map, outermost dimension first; a block may take several.
    pub box_dims: Vec<u32>,
    /// The map's swizzle: 0 (none), 32, 64 or 128.
    pub swizzle_bytes: u32,
}

/// The tensor maps that the kernel of a finished `ttg` module takes.
pub fn kernel_maps(module: &Module) -> Vec<TensorMapArg> {
    let mut found = Vec::new();
    for func in module.block_ops(module.body()) {
        let Some(f) = tt::Func::cast(module, func) else { continue };
        let Some(&entry) = module.region_blocks(f.body(module)).first() else { continue };
        for (arg, &value) in module.block_args(entry).iter().enumerate() {
            let Some(block) = block_type(module, value) else { continue };
            let Some((boxes, _)) = tma_block(module, block) else { continue };
            found.push(TensorMapArg {
                arg,
                value,
                element: module.element_type(block),
                unsigned: unsigned(module, value),
                block_shape: module.shape(block).unwrap_or(&[]).to_vec(),
                box_dims: boxes.box_dims.to_vec(),
                swizzle_bytes: boxes.swizzle_bytes,
            });
        }
    }
    found
}

/// Whether the reductions through a descriptor, if any, take integers as unsigned. (Copies don't care.)
fn unsigned(module: &Module, desc: Value) -> bool {
    !module.uses(desc).iter().any(|u| match module.opcode(u.op) {
        Some(Opcode::Tt(tt::Kind::DescriptorReduce)) => is_signed(tt::DescriptorReduce(u.op).kind(module)),
        Some(Opcode::Ttng(ttng::Kind::AsyncTmaReduce)) => is_signed(ttng::AsyncTmaReduce(u.op).kind(module)),
        _ => false,
    })
}

/// What a tensor map that the kernel makes itself says: box innermost first, and the numbers of `tensormap.replace` for
/// element type and swizzle (PTX ISA, "tensormap.replace").
pub(crate) struct MapFields {
    pub boxes: Vec<u32>,
    pub elem_type: i32,
    pub swizzle_mode: i32,
    pub elem_bytes: u32,
}

pub(crate) fn map_fields(module: &Module, desc: Value) -> Option<MapFields> {
    let block = block_type(module, desc)?;
    let (boxes, bits) = tma_block(module, block)?;
    let signed = !unsigned(module, desc);
    let elem_type = match (module.type_kind(module.element_type(block)), bits) {
        (TypeKind::Float(FloatKind::F16), _) => 6,
        (TypeKind::Float(FloatKind::F32), _) => 7,
        (TypeKind::Float(FloatKind::F64), _) => 9,
        (TypeKind::Float(FloatKind::BF16), _) => 10,
        (_, 8) => 0,
        (_, 16) => 1,
        (_, 32) => 2 + i32::from(signed),
        _ => 4 + i32::from(signed),
    };
    let swizzle_mode = match boxes.swizzle_bytes {
        32 => 1,
        64 => 2,
        128 => 3,
        _ => 0,
    };
    let boxes = boxes.box_dims.iter().rev().copied().collect();
    Some(MapFields { boxes, elem_type, swizzle_mode, elem_bytes: bits / 8 })
}
