//! Buffers of which each thread touches bytes of its own: it copies there, and reads back what it has copied itself.
//!
//! `cp.async.wait_group` shows a thread what it has copied (PTX ISA, "cp.async.wait_group"), and what it copies behind a read of its own comes behind that read.
//! So no barrier is wanted among such accesses, only to those of whatever shares the buffer's memory before and after.
//!
//! ```text
//! %t = ttg.async_copy_global_to_local %p, %b : tensor<1024x!tt.ptr<f32>, #blocked>
//! ttg.async_wait
//! %x = ttg.local_load %b : tensor<1024xf32, #blocked>     // each thread reads what it has copied
//! ```

use tilewright_ir::dialect::ttg;
use tilewright_ir::{Encoding, Module, Op, Opcode, Shape, Type, Value};

use crate::analysis::tile_layout::tile_layout;
use crate::analysis::{rings, scratch};
use crate::transform::allocate_shared::{allocation, buffer_users};

/// The buffer that a copy or a read is of, if all that its users do is that, each thread with bytes of its own.
pub fn buffer_of(module: &Module, op: Op) -> Option<Op> {
    let (view, tile) = access(module, op)?;
    if !is_held_once(module, op, tile) {
        return None;
    }
    let alloc = allocation(module, view)?;
    let shape = |ty: Type| module.shape(ty).map(Shape::from);
    let alike = |user: Op| match module.opcode(user) {
        Some(Opcode::Ttg(ttg::Kind::MemdescIndex | ttg::Kind::LocalDealloc)) => true,
        _ => access(module, user).is_some_and(|(_, other)| {
            module.encoding(other) == module.encoding(tile)
                && shape(other) == shape(tile)
                && rings::place(module, user) == rings::place(module, op)
        }),
    };
    let all = || buffer_users(module, alloc.result(module)).into_iter().all(alike);
    (alloc.src(module).is_none() && all()).then_some(alloc.0)
}

/// Whether one thread alone has each element of a tile, and reads by itself what it has of a buffer (not as a part of a matrix for the whole warp).
pub fn is_held_once(module: &Module, op: Op, tile: Type) -> bool {
    let encoding = module.encoding(tile).and_then(|e| module.encoding_of(e));
    let by_warp = matches!(encoding, None | Some(Encoding::DotOperand { .. }));
    !by_warp && tile_layout(module, tile).is_some_and(|layout| !scratch::has_copies(module, op, &layout))
}

/// The view that is copied to or read, and the tile that the threads have of it.
fn access(module: &Module, op: Op) -> Option<(Value, Type)> {
    if let Some(copy) = ttg::AsyncCopyGlobalToLocal::cast(module, op) {
        return Some((copy.dst(module), module.value_type(copy.src(module))));
    }
    let load = ttg::LocalLoad::cast(module, op)?;
    Some((load.src(module), module.value_type(load.result(module))))
}
