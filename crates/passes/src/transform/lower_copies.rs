//! Copies between global memory and buffers of accelerators, and between such buffers, as loads and stores with masks.
//!
//! Why: it is what they mean, in operations that the CPU executor has. A target with engines for copies leaves them alone.
//!
//! ```text
//! ttg.copy_global_to_local %p, %b[%n] : tensor<64x!tt.ptr<f16>> -> !ttg.memdesc<64xf16, #hivm.address_space<ub>, mutable>
//! =>
//! tt.assert %n >= 0 & %n <= 64
//! %mask = range(0..64) <u splat(%n)
//! %x = tt.load %p, %mask
//! tt.store (ttg.local_ptr %b[range(0..64)]), %x, %mask
//! ```

use tilewright_ir::dialect::{arith, tt, ttg};
use tilewright_ir::{Builder, Diagnostic, Module, Op, Type, TypeKind, Value, pass};

use crate::transform::lower_descriptors::{along, below, both, range};

/// The address space of pointers into buffers.
const LOCAL: u32 = 3;

/// Lowers every copy of the module.
///
/// # Errors
/// Those of the clean-up behind it.
pub fn run(module: &mut Module) -> Result<(), Diagnostic> {
    let copies: Vec<Copy> =
        module.all_ops(module.root()).into_iter().filter_map(|op| copy_of(module, op)).collect();
    if copies.is_empty() {
        return Ok(());
    }
    for copy in copies {
        lower(module, &copy);
    }
    pass::optimize(module)
}

/// A copy: what it reads and writes, pointers or a buffer, and how many elements along each dimension.
struct Copy {
    op: Op,
    src: Value,
    dst: Value,
    extents: Vec<Value>,
}

fn copy_of(m: &Module, op: Op) -> Option<Copy> {
    let of = |src, dst, extents: &[Value]| Some(Copy { op, src, dst, extents: extents.to_vec() });
    if let Some(c) = ttg::CopyGlobalToLocal::cast(m, op) {
        return of(c.src(m), c.dst(m), c.extents(m));
    }
    if let Some(c) = ttg::CopyLocalToGlobal::cast(m, op) {
        return of(c.src(m), c.dst(m), c.extents(m));
    }
    let c = ttg::CopyLocal::cast(m, op)?;
    of(c.src(m), c.dst(m), c.extents(m))
}

fn lower(module: &mut Module, copy: &Copy) {
    let shape = |v: Value| module.shape(module.value_type(v)).unwrap_or(&[]).to_vec();
    let (from, to) = (shape(copy.src), shape(copy.dst));
    let moved: Vec<u32> = from.iter().zip(&to).map(|(a, b)| *a.min(b)).collect();
    let mut b = Builder::before(module, copy.op);
    let mut mask = None;
    for (d, (&extent, &n)) in copy.extents.iter().zip(&moved).enumerate() {
        match b.module.constant_int(extent) {
            Some(known) if known == i64::from(n) => continue,
            Some(_) => {}
            None => check(&mut b, extent, n, d),
        }
        let indices = range(&mut b, n);
        let inside = below(&mut b, indices, extent);
        let inside = along(&mut b, inside, d, &moved);
        mask = Some(both(&mut b, mask, inside));
    }
    let (src, dst) = (pointers(&mut b, copy.src, &moved), pointers(&mut b, copy.dst, &moved));
    let element = |b: &Builder<'_>, v: Value| {
        let pointer = b.module.element_type(b.module.value_type(v));
        b.module.pointee_type(pointer).unwrap_or(pointer)
    };
    let (of, into) = (element(&b, src), element(&b, dst));
    let ty = b.module.tensor_type(&moved, of, None);
    let (cache, evict) = (tt::CacheModifier::None, tt::EvictionPolicy::Normal);
    let mut value = tt::Load::build(&mut b, src, mask, None, cache, evict, false, ty).result(b.module);
    if of != into {
        let ty = b.module.tensor_type(&moved, into, None);
        value = match b.module.bits(into) < b.module.bits(of) {
            true => arith::Truncf::build(&mut b, value, ty).out(b.module),
            false => arith::Extf::build(&mut b, value, ty).out(b.module),
        };
    }
    tt::Store::build(&mut b, dst, value, mask, cache, evict);
    module.erase_op(copy.op);
}

/// Checks at run time that there are as many elements as are copied.
fn check(b: &mut Builder<'_>, extent: Value, n: u32, d: usize) {
    let most = b.i32(n as i32);
    let holds = arith::Cmpi::build(b, extent, most, arith::CmpIPredicate::Ule, Type::I1).result(b.module);
    let message = format!("a copy of fewer than 0 or more than {n} elements along dimension {d}");
    tt::Assert::build(b, holds, message);
}

/// Pointers to the first elements along each dimension of a buffer; pointers as they are.
fn pointers(b: &mut Builder<'_>, of: Value, moved: &[u32]) -> Value {
    let ty = b.module.value_type(of);
    let TypeKind::MemDesc { element, .. } = *b.module.type_kind(ty) else { return of };
    let mut indices = Vec::with_capacity(moved.len());
    for (d, &n) in moved.iter().enumerate() {
        let index = range(b, n);
        indices.push(along(b, index, d, moved));
    }
    let pointer = b.module.ty(TypeKind::Ptr { pointee: element, address_space: LOCAL });
    let ty = b.module.tensor_type(moved, pointer, None);
    ttg::LocalPtr::build(b, of, &indices, ty).result(b.module)
}
