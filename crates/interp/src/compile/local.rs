//! Buffers: memory of the program's own, which lies in row-major order whatever layout the kernel gives it.

use std::sync::Arc;

use tilewright_ir::dialect::ttg;
use tilewright_ir::{Op, TypeKind, Value, strided};

use super::{Builder, Res};
use crate::elem::Elem;
use crate::program::{Instr, Local, RingInfo, RingOp, RingStep, V, View};

impl Builder<'_, '_> {
    /// An operation on buffers.
    pub(super) fn local(&mut self, op: Op, kind: ttg::Kind) -> Res<()> {
        let m = self.m;
        match kind {
            ttg::Kind::LocalAlloc => {
                let alloc = ttg::LocalAlloc(op);
                let result = alloc.result(m);
                let view = self.view(result)?;
                let bytes: usize =
                    view.shape.iter().map(|&n| n as usize).product::<usize>() * self.element_size(result)?;
                let name =
                    m.value_name(result).map_or("a buffer in shared memory".to_string(), str::to_string);
                let buffer = self.program.locals.len();
                self.program.locals.push(Local { name, bytes });
                let dst = self.define(result)?;
                self.emit(Instr::Local { dst, buffer });
                if let Some(src) = alloc.src(m) {
                    self.store_whole(src, result)?;
                }
            }
            // What is copied is there at once.
            ttg::Kind::LocalDealloc | ttg::Kind::AsyncCommitGroup | ttg::Kind::AsyncWait => {}
            ttg::Kind::LocalLoad => {
                let load = ttg::LocalLoad(op);
                let dst = self.define(load.result(m))?;
                let ptr = self.pointers(load.src(m), load.result(m))?;
                self.emit(Instr::Load { ptr, mask: None, other: None, dst, volatile: false });
            }
            ttg::Kind::LocalStore => {
                let store = ttg::LocalStore(op);
                self.store_whole(store.src(m), store.dst(m))?;
            }
            ttg::Kind::LocalPtr => {
                let ptr = ttg::LocalPtr(op);
                let (base, view) = (self.get(ptr.src(m))?, self.view(ptr.src(m))?);
                let indices = self.get_all(ptr.indices(m))?;
                let dst = self.define(ptr.result(m))?;
                self.emit(Instr::LocalPtr { base, view, indices, dst });
            }
            ttg::Kind::RemotePtr => {
                let remote = ttg::RemotePtr(op);
                let (src, rank) = (self.get(remote.src(m))?, self.get(remote.rank(m))?);
                let dst = self.define(remote.result(m))?;
                self.emit(Instr::Remote { src, rank, dst });
            }
            ttg::Kind::MemdescIndex => {
                let index = ttg::MemdescIndex(op);
                let (base, view) = (self.get(index.src(m))?, self.view(index.src(m))?);
                let number = self.get(index.index(m))?;
                let dst = self.define(index.result(m))?;
                self.emit(Instr::Slot { base, view, index: number, dst });
            }
            ttg::Kind::MemdescSubslice => {
                let part = ttg::MemdescSubslice(op);
                let (base, view) = (self.get(part.src(m))?, self.view(part.src(m))?);
                let bytes = part
                    .offsets(m)
                    .iter()
                    .zip(&view.strides)
                    .map(|(&at, stride)| i64::from(at) * stride)
                    .sum();
                let dst = self.define(part.result(m))?;
                self.emit(Instr::Offset { base, bytes, dst });
            }
            ttg::Kind::MemdescSubview => {
                let part = ttg::MemdescSubview(op);
                let (base, view) = (self.get(part.src(m))?, self.view(part.src(m))?);
                let own = self.view(part.result(m))?;
                let most = (0..own.shape.len()).map(|d| view.shape[d] - own.extent_in(&view, d)).collect();
                let indices = self.get_all(part.offsets(m))?;
                let dst = self.define(part.result(m))?;
                self.emit(Instr::Part { base, view, most, indices, dst });
            }
            ttg::Kind::MemdescReshape => {
                let src = ttg::MemdescReshape(op).src(m);
                self.alias_of(src, m.result(op))?;
            }
            ttg::Kind::MemdescReinterpret => {
                let alias = ttg::MemdescReinterpret(op);
                let (base, bytes) = (self.get(alias.src(m))?, i64::from(alias.offset(m).unwrap_or(0)));
                let dst = self.define(alias.result(m))?;
                self.emit(Instr::Offset { base, bytes, dst });
            }
            ttg::Kind::RingCreate => self.ring(ttg::RingCreate(op))?,
            ttg::Kind::RingAcquire => self.ring_step(op, RingOp::Acquire)?,
            ttg::Kind::RingCommit => self.ring_step(op, RingOp::Commit)?,
            ttg::Kind::RingClose => self.ring_step(op, RingOp::Close)?,
            ttg::Kind::RingWait => self.ring_step(op, RingOp::Wait)?,
            ttg::Kind::RingRelease => self.ring_step(op, RingOp::Release)?,
            ttg::Kind::RingIsClosed => self.ring_step(op, RingOp::IsClosed)?,
            ttg::Kind::RingDealloc => {}
            _ => return Err(self.unsupported(format!("`{}`", m.op_name(op)))),
        }
        Ok(())
    }

    fn ring(&mut self, create: ttg::RingCreate) -> Res<()> {
        let m = self.m;
        let fields = self.get_all(create.fields(m))?;
        let mut slot_bytes = Vec::new();
        for &field in create.fields(m) {
            slot_bytes.push(self.view(field)?.strides[0].unsigned_abs());
        }
        let ring = self.program.rings.len();
        self.program.rings.push(RingInfo {
            name: create.name(m).map(|name| name.to_string()),
            slots: create.slots(m).unsigned_abs(),
            readers: create.readers(m).map_or(vec![String::new()], |names| names.to_vec()),
            one_shot: create.one_shot(m),
            slot_bytes,
        });
        let dst = self.define(create.ring(m))?;
        self.emit(Instr::RingCreate { ring, fields, dst });
        Ok(())
    }

    /// An operation on a ring, whose operands are called alike.
    fn ring_step(&mut self, op: Op, kind: RingOp) -> Res<()> {
        let m = self.m;
        let operand = |name| {
            let group = m.def(op).and_then(|def| def.group(name))?;
            m.operand_group(op, group).first().copied()
        };
        let (Some(ring), Some(slot)) = (operand("ring"), operand("slot")) else {
            return Err(self.error("an operation on a ring needs a ring and a slot"));
        };
        let (ring, slot) = (self.get(ring)?, self.get(slot)?);
        let phase = operand("phase").map(|v| self.get(v)).transpose()?;
        let pred = operand("pred").map(|v| self.get(v)).transpose()?;
        let reader = m.int_attr(op, "reader").map_or(0, |r| r.unsigned_abs() as usize);
        let dst = m.results(op).first().map(|&result| self.define(result)).transpose()?;
        self.emit(Instr::Ring(RingStep { op: kind, ring, slot, phase, pred, reader, dst }));
        Ok(())
    }

    fn alias_of(&mut self, src: Value, result: Value) -> Res<()> {
        let base = self.get(src)?;
        let dst = self.define(result)?;
        self.emit(Instr::Offset { base, bytes: 0, dst });
        Ok(())
    }

    fn store_whole(&mut self, src: Value, buffer: Value) -> Res<()> {
        let value = self.get(src)?;
        let ptr = self.pointers(buffer, src)?;
        self.emit(Instr::Store { ptr, value, mask: None });
        Ok(())
    }

    /// The addresses of all elements of a buffer, for a tensor of its shape.
    fn pointers(&mut self, buffer: Value, tensor: Value) -> Res<V> {
        let (base, view) = (self.get(buffer)?, self.view(buffer)?);
        let of = self.get(tensor)?;
        let ty = self.pointers_to(of);
        let dst = self.register(ty);
        self.emit(Instr::Pointers { base, view, dst });
        Ok(dst)
    }

    fn element_size(&self, buffer: Value) -> Res<usize> {
        let elem = Elem::of(self.m, self.m.value_type(buffer));
        elem.map(Elem::mem_size).ok_or_else(|| self.unsupported("buffers of this type"))
    }

    /// How a buffer is arranged; a view of a part has the strides of the whole, or multiples of them.
    fn view(&self, buffer: Value) -> Res<Arc<View>> {
        let TypeKind::MemDesc { shape, alloc_shape, .. } = self.m.type_kind(self.m.value_type(buffer)) else {
            return Err(self.error("a buffer is needed"));
        };
        let whole =
            alloc_shape.as_ref().map_or(&shape[..], |all| &all[all.len().saturating_sub(shape.len())..]);
        let apart = strided::strides(self.m, self.m.value_type(buffer));
        let mut strides = vec![0i64; shape.len()];
        let mut stride = self.element_size(buffer)? as i64;
        for d in (0..shape.len()).rev() {
            strides[d] = stride * i64::from(apart[d]);
            stride *= i64::from(whole[d]);
        }
        Ok(Arc::new(View { shape: shape.to_vec(), strides }))
    }
}
