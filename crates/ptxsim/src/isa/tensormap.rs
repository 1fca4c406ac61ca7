//! Changing fields of tensor maps (§9.7.13.8).

use super::{Dec, Flow, NARROW_ADDRESS};
use crate::Error;
use crate::access::Kind;
use crate::ast::{Operand, Space, Ty};
use crate::regs::lanes;
use crate::report::FindingKind;
use crate::tensor_map::{Field, TensorMap};

type R = Result<(), Error>;

/// Each field with whether it is one of several (and which one is an operand), and whether a value is 64 bits wide.
const FIELDS: [(&str, Field, bool, bool); 11] = [
    ("global_address", Field::Address, false, true),
    ("rank", Field::Rank, false, false),
    ("box_dim", Field::Box, true, false),
    ("global_dim", Field::Dim, true, false),
    ("global_stride", Field::Stride, true, true),
    ("element_stride", Field::ElementStride, true, false),
    ("elemtype", Field::Element, false, false),
    ("interleave_layout", Field::Interleave, false, false),
    ("swizzle_mode", Field::Swizzle, false, false),
    ("swizzle_atomicity", Field::SwizzleAtomicity, false, false),
    ("fill_mode", Field::Fill, false, false),
];

/// `tensormap.replace.tile.field{.ss}.b1024.type [addr], {ord,} value`
pub(super) fn replace(d: &mut Dec) -> R {
    if !d.has("tile") {
        return d.fail("the mode `.tile` is missing");
    }
    let names: Vec<(&str, usize)> = FIELDS.iter().enumerate().map(|(k, f)| (f.0, k)).collect();
    let Some(field) = d.one_of(&names) else { return d.fail("the field is missing") };
    let (_, _, indexed, wide) = FIELDS[field];
    let space = match d.space() {
        s @ (Space::Generic | Space::Global | Space::Shared) => s,
        _ => return d.fail("a tensor map lies in global or shared memory"),
    };
    if !d.has("b1024") {
        return d.fail("`.b1024` is missing");
    }
    let ty = d.ty()?;
    if ty != if wide { Ty::B64 } else { Ty::B32 } {
        return d.fail(format!("this field has {} bits", if wide { 64 } else { 32 }));
    }
    d.count(if indexed { 3..=3 } else { 2..=2 })?;
    let (a, off, space) = d.mem(0, space)?;
    (d.out.a, d.out.imm, d.out.space) = (a, off, space);
    if indexed {
        d.out.c = d.src(1, Ty::U32)?;
    }
    d.out.b = d.src(if indexed { 2 } else { 1 }, ty)?;
    // The high bits of the flags are the address's.
    d.out.flags |= field as u32;
    d.out.exec = |cx, i| {
        let (_, field, indexed, wide) = FIELDS[(i.flags & 0xff) as usize];
        let addr = cx.addresses(i);
        let value = match wide {
            true => cx.get::<u64>(i.b),
            false => cx.get::<u32>(i.b).map(u64::from),
        };
        let ord = if indexed { cx.get::<u32>(i.c) } else { [0; crate::regs::LANES] };
        let places = cx.resolve(i.space, &addr, 128, Kind::Write);
        for l in lanes(places.mask()) {
            let mut bytes = [0u8; 128];
            for (k, piece) in bytes.chunks_exact_mut(8).enumerate() {
                piece.copy_from_slice(&cx.read(&places, l, 8 * k as u32, 8).to_le_bytes());
            }
            if let Err(m) = TensorMap::replace(&mut bytes, field, ord[l], value[l]) {
                cx.find(FindingKind::Descriptor, l, Some(addr[l]), m);
                continue;
            }
            for (k, piece) in bytes.chunks_exact(8).enumerate() {
                let v = piece.iter().rev().fold(0u64, |v, &b| v << 8 | u64::from(b));
                cx.write(&places, l, 8 * k as u32, 8, v);
            }
        }
        crate::shadow::settle(cx);
        Flow::Next
    };
    Ok(())
}

/// `tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.scope.sync.aligned [dst], [src], 128`: the warp
/// copies a tensor map made in shared memory to where copies look for it (§9.7.13.15.19).
pub(super) fn copy(d: &mut Dec) -> R {
    let (to, from) = (d.space(), d.space());
    d.has("tensormap::generic");
    d.has("release");
    d.one_of(&[("cta", ()), ("cluster", ()), ("gpu", ()), ("sys", ())]);
    if (to, from) != (Space::Global, Space::Shared) || !d.has("sync") || !d.has("aligned") {
        return d.fail("`.global.shared::cta`, `.sync` and `.aligned` are wanted");
    }
    d.count(3..=3)?;
    if !matches!(d.operand(2)?, Operand::Int(128)) {
        return d.fail("the size must be 128");
    }
    let (a, off, _) = d.mem(0, Space::Global)?;
    (d.out.a, d.out.imm) = (a, off);
    d.out.flags = 0;
    let (b, off, _) = d.mem(1, Space::Shared)?;
    d.out.b = b;
    d.out.list = [off as u32, u32::from(d.out.flags & NARROW_ADDRESS != 0)].into();
    d.out.flags = 0;
    d.out.exec = |cx, i| {
        let all = cx.mask;
        if let Err(flow) = cx.converged(cx.w.full) {
            return flow;
        }
        let to = cx.address_of(i.a, i.imm, false);
        let from = cx.address_of(i.b, i64::from(i.list[0] as i32), i.list[1] != 0);
        cx.mask = 1 << all.trailing_zeros();
        let (from, to) = (
            cx.resolve(Space::Shared, &from, 128, Kind::Read),
            cx.resolve(Space::Global, &to, 128, Kind::Write),
        );
        for l in lanes(from.mask() & to.mask()) {
            for k in (0..128).step_by(8) {
                let v = cx.read(&from, l, k, 8);
                cx.write(&to, l, k, 8, v);
            }
        }
        crate::shadow::settle(cx);
        cx.mask = all;
        Flow::Next
    };
    Ok(())
}
