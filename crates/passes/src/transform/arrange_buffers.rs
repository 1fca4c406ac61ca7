//! Buffers that the kernel allocates itself get their layouts, and whole accesses of them by pointers become accesses of buffers.
//!
//! A buffer of `tt` has no layout. What reads it says which suits: operands of dots want rows swizzled for the matrix loads of
//! warps, what the copy engine fills the widest swizzle that it has for the shape, everything else a plain row-major order, in which
//! pointers may be moved, too. Layouts that the kernel gives stay.
//!
//! Why here: layouts of tensors are assigned by those of the buffers they come from. A load or store through the pointers to all
//! elements of a buffer needs no addresses: as an access of the buffer it can take any layout, and the instructions for matrices.
//!
//! ```text
//! %b = ttg.local_alloc : () -> !ttg.memdesc<64x32xf16, #smem, mutable>
//! %i = ... 0 to 63 along dimension 0 ; %j = ... 0 to 31 along dimension 1
//! %p = ttg.local_ptr %b[%i, %j]
//! %x = tt.load %p
//! =>
//! %b = ttg.local_alloc : () -> !ttg.memdesc<64x32xf16, #shared, #smem, mutable>
//! %x = ttg.local_load %b : !ttg.memdesc<64x32xf16, #shared, #smem, mutable> -> tensor<64x32xf16>
//! ```

use tilewright_ir::dialect::{arith, tt, ttg, ttng};
use tilewright_ir::{
    Attr, AttrKind, Builder, Diagnostic, Encoding, Module, Op, SharedKind, Trait, Type, TypeKind, Value, flow,
};
use tilewright_layout::TmaBlock;

use crate::analysis::encoding_choice;
use crate::pass::{Pass, Property};
use crate::transform::allocate_shared::{buffer_users, is_view};

/// The pass.
pub const PASS: Pass = Pass {
    name: "arrange-buffers",
    summary: "lay out the buffers that kernels allocate",
    requires: &[Property::CallsStay],
    ensures: &[],
    run: |m, _, o| run(m, o.num_ctas),
};

/// Lays out every buffer that has no layout yet.
///
/// # Errors
/// Buffers in a kernel that is split over the CTAs of a cluster; a layout of the kernel's own that pointers are moved in but that
/// isn't row-major.
pub fn run(module: &mut Module, num_ctas: u32) -> Result<(), Diagnostic> {
    let ops = module.all_ops(module.root());
    let allocs: Vec<ttg::LocalAlloc> =
        ops.iter().filter_map(|&op| ttg::LocalAlloc::cast(module, op)).collect();
    let Some(first) = allocs.first() else { return Ok(()) };
    if num_ctas > 1 {
        let what = "buffers in shared memory with num_ctas above 1";
        return Err(Diagnostic::unsupported(module, module.op_loc(first.0), what));
    }
    for op in ops {
        whole_access(module, op);
    }
    for alloc in allocs {
        let buffer = alloc.result(module);
        let is_given = module.encoding(module.value_type(buffer)).is_some();
        lay_out(module, buffer, false);
        if is_given {
            keeps_order(module, buffer)?;
        }
    }
    Ok(())
}

/// Turns a load or store through pointers to all elements of a buffer, in order, into one of the buffer.
fn whole_access(module: &mut Module, op: Op) {
    if let Some(load) = tt::Load::cast(module, op) {
        let Some(buffer) = whole(module, load.ptr(module)).filter(|_| load.mask(module).is_none()) else {
            return;
        };
        let result = load.result(module);
        let ty = module.value_type(result);
        let mut b = Builder::before(module, op);
        let loaded = ttg::LocalLoad::build(&mut b, buffer, None, ty).result(b.module);
        module.replace_all_uses(result, loaded);
        module.erase_op(op);
    } else if let Some(store) = tt::Store::cast(module, op) {
        let Some(buffer) = whole(module, store.ptr(module)).filter(|_| store.mask(module).is_none()) else {
            return;
        };
        let value = store.value(module);
        ttg::LocalStore::build(&mut Builder::before(module, op), value, buffer);
        module.erase_op(op);
    }
}

/// The buffer of which these are pointers to all elements, each at its own index.
fn whole(module: &Module, ptr: Value) -> Option<Value> {
    let pointers = ttg::LocalPtr::of(module, ptr)?;
    let buffer = pointers.src(module);
    let shape = module.shape(module.value_type(buffer))?;
    let all = module.shape(module.value_type(ptr))? == shape
        && (0..shape.len()).all(|d| counts(module, pointers.indices(module)[d], d, shape[d]));
    all.then_some(buffer)
}

/// Whether the elements of a value are their own indices along a dimension of this extent.
fn counts(module: &Module, value: Value, dim: usize, extent: u32) -> bool {
    let constant = tt::Splat::of(module, value).map_or(value, |splat| splat.src(module));
    extent == 1 && module.constant_int(constant) == Some(0) || is_range(module, value, dim, extent)
}

/// Whether a value is a range from 0 along a dimension, the same along all others.
fn is_range(module: &Module, value: Value, dim: usize, extent: u32) -> bool {
    if let Some(range) = tt::MakeRange::of(module, value) {
        return dim == 0 && range.start(module) == 0 && range.end(module) == extent as i32;
    }
    if let Some(broadcast) = tt::Broadcast::of(module, value) {
        return is_range(module, broadcast.src(module), dim, extent);
    }
    if let Some(expand) = tt::ExpandDims::of(module, value) {
        let axis = expand.axis(module) as usize;
        return axis != dim && is_range(module, expand.src(module), dim - usize::from(axis < dim), extent);
    }
    false
}

/// The layout that suits what is done with a buffer whose views are these.
fn choose(module: &mut Module, buffer: Value, views: &[Value], reshaped: bool) -> Attr {
    let bits = module.bits(module.value_type(buffer)).max(8);
    // Leading dimensions that are indexed away count buffers, one behind the other.
    let shape = |&v: &Value| module.shape(module.value_type(v)).unwrap_or(&[]).to_vec();
    let least = views.iter().map(shape).min_by_key(Vec::len).unwrap_or_default();
    let order = encoding_choice::row_major(least.len());
    if views.iter().any(|&v| is_filled(module, v)) && !views.iter().any(|&v| has_moved_pointers(module, v)) {
        return module.attr(AttrKind::Encoding(TmaBlock::natural_encoding(&least, bits)));
    }
    let for_dots = !reshaped && least.len() == 2 && views.iter().any(|&v| feeds_dot(module, v));
    let encoding = if for_dots && !views.iter().any(|&v| has_pointers(module, v)) {
        encoding_choice::shared_for_dot(&least, &order, bits)
    } else {
        Encoding::Shared(SharedKind::Swizzled { vec: 1, per_phase: 1, max_phase: 1, order })
    };
    module.attr(AttrKind::Encoding(encoding))
}

/// Whether the copy engine copies to a view because the kernel says so.
fn is_filled(module: &Module, view: Value) -> bool {
    let copies = |op| ttng::AsyncTmaCopyGlobalToLocal::cast(module, op).map(|copy| copy.result(module));
    module.uses(view).iter().any(|u| copies(u.op) == Some(view))
}

/// Whether pointers into a buffer are moved, by as many elements in row-major order.
fn has_moved_pointers(module: &Module, buffer: Value) -> bool {
    buffer_users(module, buffer).into_iter().any(|op| tt::Addptr::cast(module, op).is_some())
}

/// Whether elements of a buffer are accessed through pointers.
fn has_pointers(module: &Module, buffer: Value) -> bool {
    buffer_users(module, buffer).into_iter().any(|op| ttg::LocalPtr::cast(module, op).is_some())
}

/// Whether what is loaded from a view becomes an operand of a dot.
fn feeds_dot(module: &Module, view: Value) -> bool {
    let loads = module.uses(view).iter().filter_map(|u| ttg::LocalLoad::cast(module, u.op));
    let mut work: Vec<Value> = loads.map(|load| load.result(module)).collect();
    let mut seen = Vec::new();
    while let Some(v) = work.pop() {
        for u in module.uses(v) {
            if tt::Dot::cast(module, u.op).is_some() && u.index < 2 {
                return true;
            }
            let same = module.def(u.op).is_some_and(|d| d.index.keeps_axes());
            if same && module.has_trait(u.op, Trait::Pure) && !seen.contains(&u.op) {
                seen.push(u.op);
                work.extend(module.results(u.op));
            }
        }
    }
    false
}

/// Gives a buffer, all its views and what branches and loops may have in place of it one layout; `reshaped` is whether it is a reshaped
/// view itself.
fn lay_out(module: &mut Module, buffer: Value, reshaped: bool) {
    let is_buffer = |&v: &Value| matches!(module.type_kind(module.value_type(v)), TypeKind::MemDesc { .. });
    let mut views = vec![buffer];
    let mut shapes = Vec::new();
    let mut next = 0;
    while let Some(&v) = views.get(next) {
        next += 1;
        let mut reach = |values: &[Value]| {
            let new: Vec<Value> =
                values.iter().copied().filter(|v| is_buffer(v) && !views.contains(v)).collect();
            views.extend(new);
        };
        for u in module.uses(v) {
            if ttg::MemdescReshape::cast(module, u.op).is_some() {
                shapes.extend(module.results(u.op));
            } else if is_view(module, u.op) {
                reach(module.results(u.op));
            } else if arith::Select::cast(module, u.op).is_some() {
                reach(module.results(u.op));
                reach(module.operands(u.op));
            }
            let edges = flow::edges_of_user(module, u.op);
            let carried: Vec<Value> = edges.iter().filter_map(|e| e.target(u.op, u.index as usize)).collect();
            reach(&carried);
        }
        let sources: Vec<Value> =
            flow::edges_into(module, v).iter().map(|(edge, i)| edge.from(module)[*i]).collect();
        reach(&sources);
        // What a view that a loop carries is one of.
        if let Some(op) = module.defining_op(v).filter(|&op| {
            let view = is_view(module, op) && ttg::MemdescReshape::cast(module, op).is_none();
            view || arith::Select::cast(module, op).is_some()
        }) {
            reach(module.operands(op));
        }
    }
    // A layout that the kernel gives says in slots how these are arranged, and they lie one behind the other.
    let rank = |v: Value| module.shape(module.value_type(v)).map_or(0, <[u32]>::len);
    let given = views.iter().filter(|&&v| module.encoding(module.value_type(v)).is_some());
    let given = given.min_by_key(|&&v| rank(v)).and_then(|&v| module.encoding(module.value_type(v)));
    let encoding = given.unwrap_or_else(|| choose(module, buffer, &views, reshaped || !shapes.is_empty()));
    for v in views {
        let ty = with_layout(module, module.value_type(v), encoding);
        module.set_value_type(v, ty);
    }
    for v in shapes {
        lay_out(module, v, true);
    }
}

fn with_layout(module: &mut Module, ty: Type, encoding: Attr) -> Type {
    let mut kind = module.type_kind(ty).clone();
    if let TypeKind::MemDesc { encoding: slot, .. } = &mut kind {
        *slot = Some(encoding);
    }
    module.ty(kind)
}

/// Pointers that are moved count in row-major order: a layout that does not is an error where that happens.
fn keeps_order(module: &Module, buffer: Value) -> Result<(), Diagnostic> {
    let ty = module.value_type(buffer);
    let kind = module.encoding(ty).and_then(|e| module.encoding_of(e));
    let rank = module.shape(ty).map_or(0, <[u32]>::len);
    let plain = matches!(kind, Some(Encoding::Shared(SharedKind::Swizzled { max_phase: 1, order, .. }))
        if order.iter().rev().copied().eq(0..order.len() as u32) && order.len() <= rank);
    let moved = buffer_users(module, buffer).into_iter().find(|&op| tt::Addptr::cast(module, op).is_some());
    match moved {
        Some(op) if !plain => {
            let what = "arithmetic on pointers into a buffer whose layout is not row-major";
            let error = Diagnostic::unsupported(module, module.op_loc(op), what);
            Err(error.note("give the element's indices to tle.gpu.local_ptr instead"))
        }
        _ => Ok(()),
    }
}
