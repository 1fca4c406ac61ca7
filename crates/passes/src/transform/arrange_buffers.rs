//! Buffers that the kernel allocates itself get their layouts, and whole accesses of them by pointers become accesses of buffers.
//!
//! A buffer of `tt` has no layout. What reads it says which suits: operands of dots want rows swizzled for the matrix loads of
//! warps, those of products that the kernel issues itself, and slots of rings that nothing but warp groups' products read, the swizzle that these
//! read, what the copy engine fills or empties the widest
//! swizzle that it has for the shape, everything else a plain row-major order, in which pointers may be moved, too. Layouts that
//! the kernel gives stay.
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

use tilewright_ir::diagnostic::Kind;
use tilewright_ir::dialect::{arith, tt, ttg, ttng};
use tilewright_ir::{
    Attr, AttrKind, Builder, Diagnostic, Encoding, Module, Op, Opcode, SharedKind, Trait, Type, TypeKind,
    Value, ascend, flow, marks,
};
use tilewright_layout::{SharedLayout, TmaBlock};

use crate::analysis::{encoding_choice, rings, scope};
use crate::hopper::{tma, user_dots};
use crate::pass::{Pass, Property};
use crate::target::TargetInfo;
use crate::transform::allocate_shared::{buffer_users, is_view};
use crate::transform::{assign_layouts, lower_descriptors};

/// The pass.
pub const PASS: Pass = Pass {
    name: "arrange-buffers",
    summary: "lay out the buffers that kernels allocate",
    requires: &[Property::CallsStay],
    ensures: &[],
    run: |m, t, o| run(m, t, o.num_ctas, o.num_warps),
};

/// Lays out every buffer that has no layout yet.
///
/// # Errors
/// Buffers in a kernel that is split over the CTAs of a cluster; a layout that pointers are moved in but that isn't row-major; products and
/// reshapes that fit no layout.
pub fn run(
    module: &mut Module,
    target: &TargetInfo,
    num_ctas: u32,
    num_warps: u32,
) -> Result<(), Diagnostic> {
    let ops = module.all_ops(module.root());
    let allocs: Vec<ttg::LocalAlloc> =
        ops.iter().filter_map(|&op| ttg::LocalAlloc::cast(module, op)).collect();
    let Some(first) = allocs.first() else { return Ok(()) };
    for alloc in &allocs {
        in_shared_memory(module, target, *alloc)?;
    }
    if num_ctas > 1 {
        let what = "buffers in shared memory with num_ctas above 1";
        return Err(Diagnostic::unsupported(module, module.op_loc(first.0), what));
    }
    for op in ops {
        whole_access(module, op);
    }
    let aliases = module.all_ops(module.root()).into_iter();
    let aliases = aliases.filter_map(|op| Some(ttg::MemdescReinterpret::cast(module, op)?.result(module)));
    let buffers: Vec<Value> = allocs.iter().map(|alloc| alloc.result(module)).chain(aliases).collect();
    for buffer in buffers {
        lay_out(module, target, buffer, num_warps)?;
        keeps_order(module, buffer)?;
    }
    copies_out(module, target);
    Ok(())
}

/// Checks that a buffer is in the one memory that targets with layouts have for them.
fn in_shared_memory(module: &Module, target: &TargetInfo, alloc: ttg::LocalAlloc) -> Result<(), Diagnostic> {
    let TypeKind::MemDesc { memory_space, .. } = *module.type_kind(module.value_type(alloc.result(module)))
    else {
        return Ok(());
    };
    let Some(space) = ascend::by_attribute(ascend::text(module, memory_space)) else { return Ok(()) };
    let text = format!("{} has no memory {}, which buffers of tle.dsa are in", target.name, space.name);
    Err(Diagnostic::at(module, module.op_loc(alloc.0), text)
        .of(Kind::Unsupported)
        .note("kernels with tle.dsa run on the CPU executor (TILEWRIGHT_BACKEND=interp); for this target there is tle.gpu"))
}

/// Leaves to the copy engine what it can copy out of buffers as they lie now. It copies through a descriptor to and from one layout alone; all
/// else goes by way of registers.
fn copies_out(module: &mut Module, target: &TargetInfo) {
    let all = module.all_ops(module.root());
    for op in all {
        let Some(copy) = ttng::AsyncTmaCopyLocalToGlobal::cast(module, op) else { continue };
        let (desc, buffer) = (scope::captured(module, copy.desc(module)), copy.src(module));
        let layout = |v: Value| module.encoding(module.value_type(v));
        let uses = scope::uses(module, desc);
        let mut others = uses.iter().filter_map(|u| tma::copied_buffer(module, u.op));
        let alike = others.all(|other| layout(other) == layout(buffer));
        let shape = module.shape(module.value_type(buffer)).unwrap_or(&[]);
        let fits = tma::copies(module, buffer, shape) && tma::copies_part(module, buffer);
        if !(target.tma && alike && fits) {
            tma::by_registers(module, copy);
        }
    }
}

/// Turns a load or store through pointers to all elements of a buffer or of a part of it, in order, into one of the buffer or the part. A store
/// where a mask holds of what was loaded where it holds stays, and is marked: it may become a copy.
fn whole_access(module: &mut Module, op: Op) {
    if let Some(load) = tt::Load::cast(module, op) {
        let Some(part) = pointed_part(module, load.ptr(module)).filter(|_| load.mask(module).is_none())
        else {
            return;
        };
        let result = load.result(module);
        let ty = module.value_type(result);
        let mut b = Builder::before(module, op);
        let buffer = part.view(&mut b);
        let loaded = ttg::LocalLoad::build(&mut b, buffer, None, ty).result(b.module);
        module.replace_all_uses(result, loaded);
        module.erase_op(op);
    } else if let Some(store) = tt::Store::cast(module, op) {
        let Some(part) = pointed_part(module, store.ptr(module)) else { return };
        let value = store.value(module);
        if store.mask(module).is_none() {
            let mut b = Builder::before(module, op);
            let buffer = part.view(&mut b);
            ttg::LocalStore::build(&mut b, value, buffer);
            module.erase_op(op);
        } else if tt::Load::of(module, value).is_some_and(|load| load.mask(module) == store.mask(module)) {
            let ty = module.value_type(store.ptr(module));
            let pointers = part.pointers(&mut Builder::before(module, op), ty);
            module.set_operand(op, 0, pointers);
            let mark = module.attr(AttrKind::Unit);
            module.set_attr(op, marks::FILLS, mark);
        }
    }
}

/// A part of a buffer.
struct Part {
    buffer: Value,
    begins: Vec<i32>,
    shape: Vec<u32>,
}

impl Part {
    /// The view of the buffer that shows the part.
    fn view(&self, b: &mut Builder<'_>) -> Value {
        let ty = b.module.value_type(self.buffer);
        let TypeKind::MemDesc { shape, element, encoding, memory_space, mutable, alloc_shape } =
            b.module.type_kind(ty).clone()
        else {
            return self.buffer;
        };
        if shape[..] == self.shape[..] {
            return self.buffer;
        }
        let alloc_shape = Some(alloc_shape.unwrap_or(shape));
        let shape = self.shape[..].into();
        let kind = TypeKind::MemDesc { shape, element, encoding, memory_space, mutable, alloc_shape };
        let view = b.module.ty(kind);
        ttg::MemdescSubslice::build(b, self.buffer, self.begins.clone(), view).result(b.module)
    }

    /// Pointers to the elements of the view.
    fn pointers(&self, b: &mut Builder<'_>, ty: Type) -> Value {
        let view = self.view(b);
        let index = |(d, &n): (usize, &u32)| {
            let range = lower_descriptors::range(b, n);
            lower_descriptors::along(b, range, d, &self.shape)
        };
        let indices: Vec<Value> = self.shape.iter().enumerate().map(index).collect();
        ttg::LocalPtr::build(b, view, &indices, ty).result(b.module)
    }
}

/// The part of a buffer of which these are pointers to all elements, each at its own place. It consists of whole tiles of any swizzle, where it is
/// not the whole buffer.
fn pointed_part(module: &Module, ptr: Value) -> Option<Part> {
    let pointers = ttg::LocalPtr::of(module, ptr)?;
    let buffer = pointers.src(module);
    let whole = module.value_type(buffer);
    let of = module.shape(whole)?;
    let shape = module.shape(module.value_type(ptr)).filter(|shape| shape.len() == of.len())?;
    let indices = pointers.indices(module).iter().zip(shape).enumerate();
    let begins: Option<Vec<i32>> =
        indices.map(|(d, (&index, &n))| range_start(module, index, d, n)).collect();
    let begins = begins?;
    if shape != of {
        let row = *shape.last()? * module.bits(whole).max(8) / 8;
        let rows = shape.split_last()?.1;
        let tiles = row.is_multiple_of(128) && rows.last()?.is_multiple_of(8);
        let inside = begins.iter().zip(shape).zip(of).all(|((&begin, &n), &of)| {
            u32::try_from(begin).is_ok_and(|begin| begin.is_multiple_of(n) && begin + n <= of)
        });
        let given = module.encoding(whole).is_some();
        if !tiles || !inside || given {
            return None;
        }
    } else if begins.iter().any(|&begin| begin != 0) {
        return None;
    }
    Some(Part { buffer, begins, shape: shape.to_vec() })
}

/// Where a value begins to count along a dimension of this extent, if it does, the same along all others.
fn range_start(module: &Module, value: Value, dim: usize, extent: u32) -> Option<i32> {
    if let Some(range) = tt::MakeRange::of(module, value) {
        let counts = dim == 0 && range.end(module).checked_sub(range.start(module)) == Some(extent as i32);
        return counts.then(|| range.start(module));
    }
    if let Some(broadcast) = tt::Broadcast::of(module, value) {
        return range_start(module, broadcast.src(module), dim, extent);
    }
    if let Some(expand) = tt::ExpandDims::of(module, value) {
        let axis = expand.axis(module) as usize;
        let before = dim - usize::from(axis < dim);
        return if axis == dim { None } else { range_start(module, expand.src(module), before, extent) };
    }
    if let Some(sum) = arith::Addi::of(module, value) {
        let (a, b) = (sum.lhs(module), sum.rhs(module));
        let moved = |range, by| {
            let by = i32::try_from(splat_int(module, by)?).ok()?;
            range_start(module, range, dim, extent)?.checked_add(by)
        };
        return moved(a, b).or_else(|| moved(b, a));
    }
    splat_int(module, value).filter(|_| extent == 1).and_then(|at| i32::try_from(at).ok())
}

/// The integer that all elements of a value are.
fn splat_int(module: &Module, value: Value) -> Option<i64> {
    let scalar = tt::Splat::of(module, value).map_or(value, |splat| splat.src(module));
    module.constant_int(scalar)
}

/// A view of a buffer, or the buffer; and whether it is transposed.
type Seen = (Value, bool);

/// What makes a view a part that begins at no multiple of its own size, so that it could not lie in a swizzled buffer.
fn cuts_swizzle(module: &Module, view: Value) -> Option<Op> {
    let slice = ttg::MemdescSubslice::of(module, view)?;
    let part = module.shape(module.value_type(view)).unwrap_or(&[]);
    let begins = slice.offsets(module);
    let cut = begins.iter().zip(part).any(|(&at, &n)| !(at as u32).is_multiple_of(n));
    cut.then_some(slice.0)
}

/// Whether a view is a tile, chosen at run time, that may begin within a swizzle of so many bytes.
fn may_cut(module: &Module, view: Value, swizzle: u32) -> bool {
    let [.., rows, columns] = *module.shape(module.value_type(view)).unwrap_or(&[]) else {
        return is_tile(module, view);
    };
    let row = columns * module.bits(module.value_type(view)).max(8) / 8;
    is_tile(module, view) && !(rows.is_multiple_of(8) && row.is_multiple_of(swizzle.max(1)))
}

/// Whether a view is a tile that is chosen at run time.
fn is_tile(module: &Module, view: Value) -> bool {
    ttg::MemdescSubview::of(module, view).is_some()
}

/// The layout that suits what is done with a buffer whose views are these: row-major where it is also seen in `other` ways.
fn choose(module: &Module, buffer: Value, views: &[Seen], other: bool) -> SharedKind {
    let bits = module.bits(module.value_type(buffer)).max(8);
    let least = least_shape(module, views);
    let order = encoding_choice::row_major(least.len());
    let for_dots = !other && least.len() == 2 && views.iter().any(|&(v, _)| feeds_dot(module, v));
    if for_dots
        && !views.iter().any(|&(v, _)| has_pointers(module, v) || is_copied(module, v))
        && let Encoding::Shared(kind) = encoding_choice::shared_for_dot(&least, &order, bits)
    {
        return kind;
    }
    SharedKind::Swizzled { vec: 1, per_phase: 1, max_phase: 1, order }
}

/// The shape of the views with the fewest dimensions: leading ones that are indexed away count buffers, one behind the other.
fn least_shape(module: &Module, views: &[Seen]) -> Vec<u32> {
    let shape = |&(v, transposed): &Seen| {
        let mut shape = module.shape(module.value_type(v)).unwrap_or(&[]).to_vec();
        if transposed {
            shape.reverse();
        }
        shape
    };
    views.iter().map(shape).min_by_key(Vec::len).unwrap_or_default()
}

/// The swizzle in bytes with which all of the kernel's own products that read these views can, and the copy engine copy to and from them;
/// `None` where neither is done.
///
/// # Errors
/// A product that can read its buffer in no layout.
fn swizzle(
    module: &Module,
    target: &TargetInfo,
    views: &[Seen],
    num_warps: u32,
) -> Result<Option<u32>, Diagnostic> {
    let least = least_shape(module, views);
    let mut found: Option<u32> = None;
    for seen in views {
        let (view, transposed) = *seen;
        let bits = module.bits(module.value_type(view)).max(8);
        let natural = |shape: &[u32]| match TmaBlock::natural_encoding(shape, bits) {
            Encoding::Shared(SharedKind::NvmmaShared { swizzle_bytes, .. }) => swizzle_bytes,
            _ => 0,
        };
        let mut narrow = |swizzle: u32| found = Some(found.unwrap_or(natural(&least)).min(swizzle));
        if is_copied(module, view) {
            narrow(natural(&least_shape(module, &[*seen])));
        }
        if let Some(swizzle) = slot_swizzle(module, target, view, num_warps) {
            narrow(swizzle);
        }
        for u in module.uses(view) {
            let Some(dot) = ttng::WarpGroupDot::cast(module, u.op).filter(|_| u.index < 2) else { continue };
            let n = user_dots::warps_of(module, dot, num_warps).map_or(8, |[_, _, n]| n);
            let (mn_axis, mn) = if u.index == 0 { (0, 64) } else { (1, n) };
            let shape = module.shape(module.value_type(view)).unwrap_or(&[]);
            let fast = if transposed { 0 } else { 1 };
            match assign_layouts::operand_buffer_encoding(shape, fast, bits, mn_axis, mn, mn) {
                Some(Encoding::Shared(SharedKind::NvmmaShared { swizzle_bytes, .. }))
                    if natural(&least) > 0 =>
                {
                    narrow(swizzle_bytes);
                }
                _ => {
                    let what =
                        format!("a tle.gpu.wgmma that reads a buffer of shape {least:?} of {bits} bits");
                    let error = Diagnostic::unsupported(module, module.op_loc(u.op), what);
                    let note = "its rows must be a multiple of 32 bytes, and their number one of 8";
                    return Err(error.note(note));
                }
            }
        }
    }
    Ok(found)
}

/// The swizzle with which products of warp groups read a slot of a ring where it lies, if nothing else reads it.
fn slot_swizzle(module: &Module, target: &TargetInfo, view: Value, num_warps: u32) -> Option<u32> {
    if !target.dots.wgmma || rings::of_buffer(module, view).is_none() {
        return None;
    }
    let loads = module.uses(view).iter().filter_map(|u| ttg::LocalLoad::cast(module, u.op));
    let swizzles: Option<Vec<u32>> =
        loads.map(|load| operand_swizzle(module, load.result(module), 1, num_warps)).collect();
    swizzles?.into_iter().min()
}

/// The swizzle with which the products that a value is an operand of, or its transpose is, could read it from a buffer; `None` where one of its users
/// is no such product. Its dimension `fast` is contiguous.
fn operand_swizzle(module: &Module, value: Value, fast: usize, num_warps: u32) -> Option<u32> {
    let of_use = |u: &tilewright_ir::Use| {
        if let Some(turned) = tt::Trans::cast(module, u.op) {
            return operand_swizzle(module, turned.result(module), 1 - fast, num_warps);
        }
        let dot = tt::Dot::cast(module, u.op).filter(|_| u.index < 2)?;
        let ty = module.value_type(value);
        let &[m, n] = module.shape(module.value_type(dot.result(module)))? else { return None };
        let warps = scope::num_warps_of(module, u.op, num_warps);
        let [.., of_instruction] = assign_layouts::warp_group_shape(m, n, warps, module.is_int(ty))?;
        let (mn_axis, mn) = if u.index == 0 { (0, 64) } else { (1, of_instruction) };
        let (shape, bits) = (module.shape(ty)?, module.bits(ty));
        match assign_layouts::operand_buffer_encoding(shape, fast, bits, mn_axis, mn, mn)? {
            Encoding::Shared(SharedKind::NvmmaShared { swizzle_bytes, .. }) => Some(swizzle_bytes),
            _ => None,
        }
    };
    let swizzles: Option<Vec<u32>> = module.uses(value).iter().map(of_use).collect();
    swizzles?.into_iter().min()
}

/// Whether a product of the kernel's own reads a view.
fn is_multiplied(module: &Module, view: Value) -> bool {
    module.uses(view).iter().any(|u| ttng::WarpGroupDot::cast(module, u.op).is_some() && u.index < 2)
}

/// The operations that use a buffer, its views and pointers into it, but not those that use what else shows its bytes.
fn own_users(module: &Module, buffer: Value) -> Vec<Op> {
    let users = buffer_users(module, buffer);
    let aliases = users.iter().filter_map(|&op| ttg::MemdescReinterpret::cast(module, op));
    let others: Vec<Op> = aliases.flat_map(|alias| buffer_users(module, alias.result(module))).collect();
    users.into_iter().filter(|op| !others.contains(op)).collect()
}

/// Whether the copy engine copies to or from a view: because the kernel says so, or because it is a slot of a ring that
/// [`fill_rings`](super::fill_rings) can then let it fill.
fn is_copied(module: &Module, view: Value) -> bool {
    module.uses(view).iter().any(|u| {
        if let Some(store) = ttg::LocalStore::cast(module, u.op) {
            let block = tt::DescriptorLoad::of(module, store.src(module)).is_some();
            return block && store.dst(module) == view && rings::of_buffer(module, view).is_some();
        }
        tma::copied_buffer(module, u.op) == Some(view)
    })
}

/// Whether pointers into a buffer are moved, by as many elements in row-major order: here, or by code of the author's own.
fn has_moved_pointers(module: &Module, buffer: Value) -> bool {
    own_users(module, buffer).into_iter().any(|op| moves_pointers(module, op))
}

fn moves_pointers(module: &Module, op: Op) -> bool {
    matches!(module.opcode(op), Some(Opcode::Tt(tt::Kind::Addptr | tt::Kind::RawCall)))
}

/// Whether elements of a buffer are accessed through pointers.
fn has_pointers(module: &Module, buffer: Value) -> bool {
    own_users(module, buffer).into_iter().any(|op| ttg::LocalPtr::cast(module, op).is_some())
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

/// A buffer, all its views and what branches and loops may have in place of it, which have one layout; and the reshaped views, which have
/// others.
fn views_of(module: &Module, buffer: Value) -> (Vec<Seen>, Vec<Op>) {
    let is_buffer = |v: Value| matches!(module.type_kind(module.value_type(v)), TypeKind::MemDesc { .. });
    let mut views: Vec<Seen> = vec![(buffer, false)];
    let mut reshapes = Vec::new();
    let mut next = 0;
    while let Some(&(v, transposed)) = views.get(next) {
        next += 1;
        let mut reach = |values: &[Value], transposed: bool| {
            for &v in values {
                if is_buffer(v) && !views.iter().any(|seen| seen.0 == v) {
                    views.push((v, transposed));
                }
            }
        };
        let turns = |op| ttg::MemdescTrans::cast(module, op).is_some();
        for u in module.uses(v) {
            if ttg::MemdescReshape::cast(module, u.op).is_some() {
                reshapes.push(u.op);
            } else if ttg::MemdescReinterpret::cast(module, u.op).is_some() {
                // An alias is laid out by itself.
            } else if is_view(module, u.op) {
                reach(module.results(u.op), transposed ^ turns(u.op));
            } else if arith::Select::cast(module, u.op).is_some() {
                reach(module.results(u.op), transposed);
                reach(module.operands(u.op), transposed);
            }
            let edges = flow::edges_of_user(module, u.op);
            let carried: Vec<Value> = edges.iter().filter_map(|e| e.target(u.op, u.index as usize)).collect();
            reach(&carried, transposed);
        }
        let sources: Vec<Value> =
            flow::edges_into(module, v).iter().map(|(edge, i)| edge.from(module)[*i]).collect();
        reach(&sources, transposed);
        // What a view that a loop carries is one of.
        if let Some(op) = module.defining_op(v).filter(|&op| {
            let other = ttg::MemdescReshape::cast(module, op).is_some()
                || ttg::MemdescReinterpret::cast(module, op).is_some();
            is_view(module, op) && !other || arith::Select::cast(module, op).is_some()
        }) {
            reach(module.operands(op), transposed ^ turns(op));
        }
    }
    (views, reshapes)
}

/// Gives a buffer and all that shows its memory their layouts: those of the kernel's own products and copies where there are such,
/// else each that suits it.
fn lay_out(
    module: &mut Module,
    target: &TargetInfo,
    buffer: Value,
    num_warps: u32,
) -> Result<(), Diagnostic> {
    let mut groups: Vec<Vec<Seen>> = Vec::new();
    let (mut starts, mut reshapes) = (vec![buffer], Vec::new());
    while let Some(start) = starts.pop() {
        if groups.iter().flatten().any(|seen| seen.0 == start) {
            continue;
        }
        let (views, more) = views_of(module, start);
        starts.extend(more.iter().map(|&op| module.result(op)));
        reshapes.extend(more);
        groups.push(views);
    }
    let mut wanted: Option<u32> = None;
    for views in &groups {
        if given(module, views).is_none() {
            let here = swizzle(module, target, views, num_warps)?;
            wanted = wanted.into_iter().chain(here).min();
        }
    }
    let moved = groups.iter().flatten().any(|&(v, _)| has_moved_pointers(module, v));
    let multiplied = groups.iter().flatten().any(|&(v, _)| is_multiplied(module, v));
    let cut = groups.iter().flatten().find_map(|&(v, _)| cuts_swizzle(module, v));
    if let Some(slice) = cut.filter(|_| multiplied) {
        let what = "a part of a buffer that tle.gpu.wgmma reads, which begins at no multiple of its own size";
        return Err(Diagnostic::unsupported(module, module.op_loc(slice), what));
    }
    let tiles_cut = |swizzle| groups.iter().flatten().any(|&(v, _)| may_cut(module, v, swizzle));
    if !multiplied && (moved || cut.is_some() || wanted.is_some_and(|n| n == 0 || tiles_cut(n))) {
        wanted = None;
    }
    let in_tiles = groups.iter().flatten().any(|&(v, _)| is_tile(module, v));
    for views in &groups {
        let kind = match (given(module, views), wanted) {
            (Some(given), _) => given,
            (None, Some(swizzle_bytes)) => SharedKind::NvmmaShared {
                swizzle_bytes,
                transposed: false,
                element_bits: module.bits(module.value_type(views[0].0)),
                rank: 2,
            },
            (None, None) => choose(module, views[0].0, views, groups.len() > 1 || cut.is_some() || in_tiles),
        };
        for &(v, transposed) in views {
            let kind = if transposed { kind.permuted(&[1, 0]).unwrap_or(kind.clone()) } else { kind.clone() };
            let encoding = module.attr(AttrKind::Encoding(Encoding::Shared(kind)));
            let ty = with_layout(module, module.value_type(v), encoding);
            module.set_value_type(v, ty);
        }
    }
    reshapes.into_iter().try_for_each(|op| keeps_places(module, op))
}

/// The layout that the kernel gives, or that a call of the author's own code names. It says in slots how these are arranged, and they lie one behind the other.
fn given(module: &Module, views: &[Seen]) -> Option<SharedKind> {
    let rank = |v: Value| module.shape(module.value_type(v)).map_or(0, <[u32]>::len);
    let given = views.iter().filter(|&&(v, _)| module.encoding(module.value_type(v)).is_some());
    let Some(&(v, transposed)) = given.min_by_key(|&&(v, _)| rank(v)) else {
        return match named_by_calls(module, views).first()? {
            (_, (_, true), Encoding::Shared(kind)) => kind.permuted(&[1, 0]),
            (_, (_, false), Encoding::Shared(kind)) => Some(kind.clone()),
            _ => None,
        };
    };
    match module.encoding_of(module.encoding(module.value_type(v))?)? {
        Encoding::Shared(kind) if transposed => kind.permuted(&[1, 0]),
        Encoding::Shared(kind) => Some(kind.clone()),
        _ => None,
    }
}

/// The layouts in which calls of the author's own code want views of a buffer, where they name any.
fn named_by_calls<'m>(module: &'m Module, views: &[Seen]) -> Vec<(Op, Seen, &'m Encoding)> {
    let mut found = Vec::new();
    for &(view, transposed) in views {
        let pointers = module.uses(view).iter().filter_map(|u| ttg::LocalPtr::cast(module, u.op));
        for u in pointers.flat_map(|pointers| module.uses(pointers.result(module))) {
            let Some(call) = tt::RawCall::cast(module, u.op) else { continue };
            let AttrKind::Array(layouts) = module.attr_kind(call.layouts(module)) else { continue };
            let named = layouts.get(u.index as usize).and_then(|&layout| module.encoding_of(layout));
            found.extend(named.map(|named| (u.op, (view, transposed), named)));
        }
    }
    found
}

/// Checks that each element of a reshaped view lies where it did.
fn keeps_places(module: &Module, reshape: Op) -> Result<(), Diagnostic> {
    let layout = |v: Value| {
        let ty = module.value_type(v);
        let encoding = module.encoding_of(module.encoding(ty)?)?;
        SharedLayout::new(encoding, module.shape(ty)?, module.bits(ty).max(8)).ok()
    };
    let (src, result) = (module.operands(reshape)[0], module.result(reshape));
    let same = layout(src).zip(layout(result)).is_some_and(|(from, to)| from.lies_like(&to));
    if same {
        return Ok(());
    }
    let what = "this reshape of a buffer whose layout is that of tle.gpu.wgmma or of copies with a `barrier`";
    let error = Diagnostic::unsupported(module, module.op_loc(reshape), what);
    Err(error.note("rows of its last dimension that are whole swizzles, of 128 bytes, may be counted by several dimensions"))
}

fn with_layout(module: &mut Module, ty: Type, encoding: Attr) -> Type {
    let mut kind = module.type_kind(ty).clone();
    if let TypeKind::MemDesc { encoding: slot, .. } = &mut kind {
        *slot = Some(encoding);
    }
    module.ty(kind)
}

/// Pointers that are moved count in row-major order: a layout that does not is an error where that happens. Code of the author's own goes by
/// the order that is given, and knows of no swizzle but one that the call names.
fn keeps_order(module: &Module, buffer: Value) -> Result<(), Diagnostic> {
    let ty = module.value_type(buffer);
    let kind = module.encoding(ty).and_then(|e| module.encoding_of(e));
    let rank = module.shape(ty).map_or(0, <[u32]>::len);
    let order = match kind {
        Some(Encoding::Shared(SharedKind::Swizzled { max_phase: 1, order, .. })) => Some(order),
        _ => None,
    };
    let row_major = order.is_some_and(|o| o.iter().rev().copied().eq(0..o.len() as u32) && o.len() <= rank);
    let named = named_by_calls(module, &views_of(module, buffer).0);
    for op in own_users(module, buffer).into_iter().filter(|&op| moves_pointers(module, op)) {
        let (what, note) = if tt::RawCall::cast(module, op).is_none() && !row_major {
            (
                "arithmetic on pointers into a buffer whose layout is not row-major",
                "give the element's indices to tle.gpu.local_ptr instead",
            )
        } else if let Some((_, (view, _), wanted)) = named.iter().find(|(call, ..)| *call == op) {
            let has = module.encoding(module.value_type(*view)).and_then(|e| module.encoding_of(e));
            if has == Some(*wanted) {
                continue;
            }
            (
                "a call of tle.raw whose `layout` says of a buffer another one than what else uses it",
                "the buffer's own, in tle.gpu.alloc, goes for all",
            )
        } else if order.is_none() {
            (
                "a call of tle.raw with a buffer that is swizzled, and whose `layout` doesn't say so",
                "say how it lies, `layout={x: {\"space\": \"shared\", \"swizzle\": 128}}`, or copy it to one that has no layout",
            )
        } else {
            continue;
        };
        return Err(Diagnostic::unsupported(module, module.op_loc(op), what).note(note));
    }
    Ok(())
}
