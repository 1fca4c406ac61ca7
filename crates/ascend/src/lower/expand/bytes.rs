//! Floats of 8 bits become the bytes that they are: behind this nothing computes with them.

use tilewright_ir::dialect::{arith, tt, ttg};
use tilewright_ir::{AttrKind, Builder, Diagnostic, Module, Op, Opcode, Trait, Type, TypeKind, Value, float};

use super::super::unsupported;
use super::fp8::format;

/// Makes bytes of all of them.
///
/// # Errors
/// An operation that computes with them.
pub(super) fn run(module: &mut Module) -> Result<(), Diagnostic> {
    let root = module.root();
    for op in module.all_ops(root) {
        let values: Vec<Value> = module.operands(op).iter().chain(module.results(op)).copied().collect();
        if !values.iter().any(|&v| format(module, module.element_type(module.value_type(v))).is_some()) {
            continue;
        }
        if arith::Constant::cast(module, op).is_some() {
            constant(module, op);
        } else if !moves(module, op) {
            let name = module.op_name(op);
            return Err(unsupported(module, op, format!("`{name}` of floats of 8 bits")));
        }
    }
    for op in module.all_ops(root) {
        let mut values = module.results(op).to_vec();
        for &region in module.regions(op) {
            values.extend(module.region_blocks(region).iter().flat_map(|&b| module.block_args(b).to_vec()));
        }
        for v in values {
            let ty = byte_type(module, module.value_type(v));
            module.set_value_type(v, ty);
        }
        same_bits(module, op);
    }
    Ok(())
}

/// Whether an operation takes elements as they are.
fn moves(m: &Module, op: Op) -> bool {
    use tt::Kind as T;
    use ttg::Kind as G;
    match m.opcode(op) {
        Some(Opcode::Arith(arith::Kind::Select | arith::Kind::Bitcast)) => true,
        Some(Opcode::Tt(
            T::Load
            | T::Store
            | T::Splat
            | T::Unsplat
            | T::Broadcast
            | T::ExpandDims
            | T::Reshape
            | T::Trans
            | T::Join
            | T::Split
            | T::Bitcast
            | T::Gather
            | T::Cat
            | T::ExtractSlice
            | T::InsertSlice
            | T::ExtractTile
            | T::InsertTile
            | T::Func
            | T::Call
            | T::Return,
        )) => true,
        Some(Opcode::Ttg(
            G::LocalAlloc
            | G::LocalLoad
            | G::LocalStore
            | G::LocalPtr
            | G::CopyGlobalToLocal
            | G::CopyLocalToGlobal
            | G::CopyLocal
            | G::MemdescReshape
            | G::MemdescReinterpret
            | G::MemdescSubslice
            | G::MemdescSubview,
        )) => true,
        Some(Opcode::Scf(_)) => true,
        _ => m.has_trait(op, Trait::Terminator),
    }
}

/// The constant's bits.
fn constant(module: &mut Module, op: Op) {
    let result = module.result(op);
    let ty = module.value_type(result);
    let TypeKind::Float(kind) = *module.type_kind(module.element_type(ty)) else { return };
    let mut value = module.constant_value(result).map(|a| module.attr_kind(a).clone());
    if let Some(AttrKind::Splat(element, _)) = value {
        value = Some(module.attr_kind(element).clone());
    }
    let Some(AttrKind::Float(number, _)) = value else { return };
    let bytes = byte_type(module, ty);
    let bits = float::to_bits(number.value(), kind) as u8 as i8;
    let bits = Builder::before(module, op).int(i64::from(bits), bytes);
    module.replace_op(op, &[bits]);
}

/// A conversion of bits that are those already goes.
fn same_bits(module: &mut Module, op: Op) {
    if let Some(Opcode::Arith(arith::Kind::Bitcast) | Opcode::Tt(tt::Kind::Bitcast)) = module.opcode(op) {
        let (src, result) = (module.operands(op)[0], module.result(op));
        if module.value_type(src) == module.value_type(result) {
            module.replace_op(op, &[src]);
        }
    }
}

/// A type with bytes in the place of such floats, behind pointers and in functions, too.
fn byte_type(module: &mut Module, ty: Type) -> Type {
    if format(module, ty).is_some() {
        return Type::I8;
    }
    let mut kind = module.type_kind(ty).clone();
    match &mut kind {
        TypeKind::Tensor { element, .. } | TypeKind::MemDesc { element, .. } => {
            *element = byte_type(module, *element)
        }
        TypeKind::Ptr { pointee, .. } => *pointee = byte_type(module, *pointee),
        _ => return ty,
    }
    module.ty(kind)
}
