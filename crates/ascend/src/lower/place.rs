//! Buffers become addresses of their memories, and the kernel a function of MLIR's.
//!
//! ```text
//! tt.func public @f(%x: !tt.ptr<f32>)                       func.func @f(%x: memref<?xf32, #hivm.address_space<gm>>, %gx: i32, %gy: i32, %gz: i32)
//!   %a = ttg.local_alloc : () -> !ttg.memdesc<64xf32, …>  =>    %a = hivm.hir.pointer_cast(%c0) : memref<64xf32, #hivm.address_space<ub>>
//! ```
//!
//! A buffer of several slots has its address computed in each iteration. The arguments behind those of the kernel are the extents of the grid. Where cores or programs hand each other
//! something, there are two more in front: where flags between cores are, and the workspace, of which each block has a part.

use rustc_hash::FxHashMap;
use tilewright_ir::dialect::hivm::CoreType as Core;
use tilewright_ir::dialect::{arith, func, hivm, memref, tt, ttg};
use tilewright_ir::memref::MemRef;
use tilewright_ir::module::OpSpec;
use tilewright_ir::{
    AttrKind, Block, Builder, Diagnostic, Module, Op, Opcode, Type, TypeKind, Value, ascend, strided,
};
use tilewright_passes::analysis::local_memory::Held;

use super::instructions::pointer_cast;
use super::remote::CLUSTER;
use super::{Slots, effects, shows_whole, unsupported};

/// Places the buffers, and makes functions of MLIR's of the module's.
///
/// # Errors
/// Views that are not supported yet.
pub(super) fn run(module: &mut Module, held: &[Held], slots: &mut Slots) -> Result<(), Diagnostic> {
    let functions: Vec<tt::Func> =
        module.block_ops(module.body()).filter_map(|op| tt::Func::cast(module, op)).collect();
    for func in functions {
        let Some(&entry) = module.region_blocks(func.body(module)).first() else { continue };
        let mut addresses = FxHashMap::default();
        let own: Vec<&Held> = held.iter().filter(|h| module.is_ancestor(func.0, h.alloc.0)).collect();
        // Cores hand each other something, or programs do.
        let shares = own.iter().any(|h| h.space == &ascend::WORKSPACE) || effects::meets(module, func.0);
        let shares = shares || effects::cores(module, func.0).len() > 1;
        let workspace = shares.then(|| workspace(module, entry));
        // (While all buffers have their own types.)
        let strides: FxHashMap<Op, Vec<i64>> =
            module.all_ops(func.0).into_iter().filter_map(|op| Some((op, apart(module, op)?))).collect();
        for h in own {
            match workspace.filter(|_| h.space == &ascend::WORKSPACE) {
                Some(workspace) => share(module, h, held, slots, workspace),
                None => place(module, h, slots, &mut addresses),
            }
        }
        for op in module.all_ops(func.0) {
            view(module, op, &addresses, strides.get(&op))?;
        }
        function(module, func, shares);
    }
    Ok(())
}

/// Puts the arguments that kernels on two cores have in front of a function's own; the one that is memory.
fn workspace(module: &mut Module, entry: Block) -> Value {
    let own = module.block_args(entry).to_vec();
    let flags = module.add_block_arg(entry, Type::I64);
    let bytes = MemRef { shape: vec![None], element: Type::I8, strided: false, space: &ascend::GLOBAL };
    let bytes = bytes.ty(module);
    let workspace = module.add_block_arg(entry, bytes);
    for &arg in &own {
        let ty = module.value_type(arg);
        let behind = module.add_block_arg(entry, ty);
        module.replace_all_uses(arg, behind);
        if let Some(name) = module.value_name(arg).map(str::to_string) {
            module.name_value(behind, &name);
        }
    }
    (0..own.len()).for_each(|_| module.remove_block_arg(entry, 0));
    if let Some(first) = module.first_op(entry) {
        hivm::SetFftsBaseAddr::build(&mut Builder::before(module, first), flags);
    }
    workspace
}

/// The bytes from the beginning of a memory, or of a block's part of the workspace, to the slot of a buffer that an iteration has, in front of where the buffer is made.
fn offset<'m>(module: &'m mut Module, held: &Held, slots: &mut Slots) -> (Builder<'m>, Value) {
    let slot = held.pipeline.map(|looped| (slots.of(module, looped, held.slots), looped));
    let inside = held.pipeline.is_some_and(|looped| module.is_ancestor(looped.0, held.alloc.0));
    let mut b = match slot {
        Some((slot, _)) if !inside => {
            let computed = module.defining_op(slot).expect("a slot's number is computed");
            Builder::after(module, computed)
        }
        _ => Builder::before(module, held.alloc.0),
    };
    let mut address = b.int(i64::from(held.offset), Type::I64);
    if let Some((slot, _)) = slot {
        let bytes = b.int(i64::from(held.bytes), Type::I64);
        let from = arith::Muli::build(&mut b, slot, bytes).result(b.module);
        address = arith::Addi::build(&mut b, address, from).result(b.module);
    }
    (b, address)
}

/// The view of a buffer's part of the workspace, in place of its allocation.
fn share(module: &mut Module, held: &Held, all: &[Held], slots: &mut Slots, workspace: Value) {
    let result = held.alloc.result(module);
    let ty = memref_type(module, result);
    let each = all.iter().filter(|h| h.space == held.space).map(|h| h.offset + h.total()).max().unwrap_or(0);
    let (mut b, own) = offset(module, held, slots);
    let mut block = hivm::GetBlockIdx::build(&mut b, Type::I64).result(b.module);
    // What a cluster has in common is its first program's.
    if let Some(members) = b.module.int_attr(held.alloc.0, CLUSTER) {
        let members = b.int(members, Type::I64);
        let rank = arith::Remsi::build(&mut b, block, members).result(b.module);
        block = arith::Subi::build(&mut b, block, rank).result(b.module);
    }
    let each = b.int(i64::from(each), Type::I64);
    let first = arith::Muli::build(&mut b, block, each).result(b.module);
    let shift = arith::Addi::build(&mut b, first, own).result(b.module);
    let shift = arith::IndexCast::build(&mut b, shift, Type::INDEX).out(b.module);
    let view = memref::View::build(&mut b, workspace, shift, &[], ty).result(b.module);
    module.replace_all_uses(result, view);
    module.erase_op(held.alloc.0);
}

/// The view of a buffer's memory, in place of its allocation.
fn place(module: &mut Module, held: &Held, slots: &mut Slots, addresses: &mut FxHashMap<Value, Value>) {
    let result = held.alloc.result(module);
    let (mut b, address) = offset(module, held, slots);
    let ty = memref_type(b.module, result);
    let pointer = pointer_cast(&mut b, address, ty);
    if let Some(name) = module.value_name(result).map(str::to_string) {
        module.name_value(pointer, &name);
    }
    addresses.insert(pointer, address);
    module.replace_all_uses(result, pointer);
    module.erase_op(held.alloc.0);
}

/// The type of a buffer's elements side by side.
fn memref_type(module: &mut Module, buffer: Value) -> Type {
    let ty = module.value_type(buffer);
    let TypeKind::MemDesc { shape, element, memory_space, .. } = module.type_kind(ty).clone() else {
        return ty;
    };
    let space = ascend::by_attribute(ascend::text(module, memory_space)).unwrap_or(&ascend::GLOBAL);
    let shape = shape.iter().map(|&n| Some(n)).collect();
    MemRef { shape, element, strided: false, space }.ty(module)
}

/// A view of a buffer as one of memory; of a part, with how far apart its elements are.
fn view(
    module: &mut Module,
    op: Op,
    addresses: &FxHashMap<Value, Value>,
    strides: Option<&Vec<i64>>,
) -> Result<(), Diagnostic> {
    let (offsets, result): (Vec<Value>, Value) = match module.opcode(op) {
        Some(Opcode::Ttg(ttg::Kind::MemdescReshape | ttg::Kind::MemdescReinterpret)) => {
            let (mut src, result) = (module.operands(op)[0], module.result(op));
            let ty = memref_type(module, result);
            while let Some(of) = module.defining_op(src).filter(|&d| shows_whole(module, d)) {
                src = module.operands(of)[0];
            }
            // An earlier one is a pointer already.
            let address = module
                .defining_op(src)
                .and_then(|d| hivm::PointerCast::cast(module, d))
                .map(|p| p.addrs(module)[0]);
            let Some(address) = addresses.get(&src).copied().or(address) else {
                return Err(unsupported(module, op, "another shape of a part of a buffer"));
            };
            let pointer = pointer_cast(&mut Builder::before(module, op), address, ty);
            module.replace_all_uses(result, pointer);
            module.erase_op(op);
            return Ok(());
        }
        Some(Opcode::Ttg(ttg::Kind::MemdescSubslice)) => {
            let part = ttg::MemdescSubslice(op);
            let offsets = part.offsets(module).to_vec();
            let mut b = Builder::before(module, op);
            (offsets.iter().map(|&o| b.int(i64::from(o), Type::INDEX)).collect(), part.result(module))
        }
        Some(Opcode::Ttg(ttg::Kind::MemdescSubview)) => {
            let part = ttg::MemdescSubview(op);
            let (offsets, result) = (part.offsets(module).to_vec(), part.result(module));
            let mut b = Builder::before(module, op);
            let index = |o| arith::IndexCast::build(&mut b, o, Type::INDEX).out(b.module);
            (offsets.into_iter().map(index).collect(), result)
        }
        _ => return Ok(()),
    };
    let src = module.operands(op)[0];
    let shape = module.shape(module.value_type(result)).unwrap_or(&[]).to_vec();
    let element = module.element_type(module.value_type(result));
    let space = MemRef::space_of(module, src).unwrap_or(&ascend::GLOBAL);
    let ty = MemRef { shape: vec![None; shape.len()], element, strided: true, space }.ty(module);
    let mut b = Builder::before(module, op);
    let sizes: Vec<Value> = shape.iter().map(|&n| b.int(i64::from(n), Type::INDEX)).collect();
    let strides: Vec<Value> = strides.into_iter().flatten().map(|&n| b.int(n, Type::INDEX)).collect();
    let part = memref::Subview::build(&mut b, src, &offsets, &sizes, &strides, None, None, None, ty);
    let part = part.result(b.module);
    module.replace_all_uses(result, part);
    module.erase_op(op);
    Ok(())
}

/// How far apart the elements of a part of a buffer are, in elements of what it is a part of.
fn apart(module: &Module, part: Op) -> Option<Vec<i64>> {
    let Some(Opcode::Ttg(ttg::Kind::MemdescSubslice | ttg::Kind::MemdescSubview)) = module.opcode(part)
    else {
        return None;
    };
    let ty = |v| module.value_type(v);
    let (of, own) = (ty(module.operands(part)[0]), ty(module.result(part)));
    let shape = module.shape(own).unwrap_or(&[]);
    let strides = strided::strides(module, of).into_iter().zip(strided::strides(module, own));
    // (A single element has no neighbour.)
    Some(strides.zip(shape).map(|((of, own), &n)| if n == 1 { 1 } else { i64::from(own / of) }).collect())
}

/// Makes a function of MLIR's of one of the module's.
fn function(module: &mut Module, from: tt::Func, shares: bool) {
    let core = effects::cores(module, from.0)[0];
    let core = if core == Core::Cube { "AIC" } else { "AIV" };
    let name = module.symbol_name(from.0).unwrap_or("kernel").to_string();
    let region = from.body(module);
    let Some(&entry) = module.region_blocks(region).first() else { return };
    for arg in module.block_args(entry).to_vec() {
        if let TypeKind::Ptr { pointee, .. } = *module.type_kind(module.value_type(arg)) {
            let ty = MemRef { shape: vec![None], element: pointee, strided: false, space: &ascend::GLOBAL };
            let ty = ty.ty(module);
            module.set_value_type(arg, ty);
        }
    }
    let grid: Vec<Value> = (0..3).map(|_| module.add_block_arg(entry, Type::I32)).collect();
    for op in module.all_ops(from.0) {
        let index =
            |m: &Module, d: tt::ProgramDim| (tt::ProgramDim::ALL.iter().position(|&x| x == d), m.result(op));
        if let Some(get) = tt::GetNumPrograms::cast(module, op) {
            let (axis, result) = index(module, get.axis(module));
            module.replace_all_uses(result, grid[axis.unwrap_or(0)]);
            module.erase_op(op);
        } else if let Some(get) = tt::GetProgramId::cast(module, op) {
            let (axis, result) = index(module, get.axis(module));
            let id = program_id(module, op, axis.unwrap_or(0), &grid);
            module.replace_all_uses(result, id);
            module.erase_op(op);
        } else if tt::Return::cast(module, op).is_some() {
            func::Return::build(&mut Builder::before(module, op), &[]);
            module.erase_op(op);
        }
    }
    let inputs = module.block_args(entry).iter().map(|&a| module.value_type(a)).collect();
    let ty = module.ty(TypeKind::Function { inputs, results: vec![] });
    let mut spec = OpSpec::new(func::Kind::Func.def(), module.op_loc(from.0));
    let text = |m: &mut Module, text: &str| m.attr(AttrKind::Opaque(text.to_string()));
    let attrs = [
        ("sym_name", module.attr(AttrKind::Str(name))),
        ("function_type", module.attr(AttrKind::Type(ty))),
        ("hacc.entry", module.attr(AttrKind::Unit)),
        ("hacc.function_kind", text(module, "#hacc.function_kind<DEVICE>")),
        ("hivm.func_core_type", text(module, &format!("#hivm.func_core_type<{core}>"))),
    ];
    for (name, attr) in attrs {
        spec.attr(name, Some(attr));
    }
    if shares {
        let count = module.block_args(entry).len();
        let mut dicts = vec![Vec::new(); count];
        for (dict, kind) in dicts.iter_mut().zip(["ffts_base_address", "workspace"]) {
            let kind = text(module, &format!("#hacc.arg_type<{kind}>"));
            dict.push(("hacc.arg_type".into(), kind));
        }
        let dicts = dicts.into_iter().map(|d| module.attr(AttrKind::Dict(d))).collect();
        spec.attr("arg_attrs", Some(module.attr(AttrKind::Array(dicts))));
    }
    let mut b = Builder::before(module, from.0);
    let new = b.insert(spec);
    let to = module.regions(new)[0];
    module.move_blocks(region, to);
    module.erase_op(from.0);
    let root = module.root();
    let target = module.attr(AttrKind::Opaque(format!("#hacc.target<\"{}\">", ascend::DEVICE)));
    module.set_attr(root, "hacc.target", target);
}

/// The number of the program along an axis, of its number among all.
fn program_id(module: &mut Module, op: Op, axis: usize, grid: &[Value]) -> Value {
    let mut b = Builder::before(module, op);
    let all = hivm::GetBlockIdx::build(&mut b, Type::I64).result(b.module);
    let mut id = arith::Trunci::build(&mut b, all, Type::I32).out(b.module);
    for extent in &grid[..axis] {
        id = arith::Divsi::build(&mut b, id, *extent).result(b.module);
    }
    match axis {
        2 => id,
        _ => arith::Remsi::build(&mut b, id, grid[axis]).result(b.module),
    }
}
