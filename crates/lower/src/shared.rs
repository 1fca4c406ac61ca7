//! Buffers in shared memory: allocation, views, loads and stores.
//!
//! An address is `base + (T ^ xor) + A + add`, where `T` and `A` depend on the thread alone and `xor`, `add` are
//! constants of the access. Everything is in bytes from the start, and the builder folds constants into immediates.

use std::rc::Rc;

use tilewright_ir as ir;
use tilewright_ir::dialect::ttg;
use tilewright_ir::{TypeKind, marks};
use tilewright_layout::{Access, Dim, Offset, SharedAccess, SharedLayout, ThreadOffset, TileLayout};
use tilewright_llvm::{Ty, Value};
use tilewright_passes::analysis::scratch::matrix_store;
use tilewright_passes::hopper::tma::BUFFER_ALIGNMENT;

use crate::{Buffer, Hooks, Lower, Regs, Result, Val, memory_bits};

/// The thread's part of shared-memory addresses, computed once per tensor.
#[derive(Debug, Clone, Copy)]
pub struct ThreadPart {
    /// XORed with an access's constant; bytes.
    xor: Value,
    /// Base address plus what is added.
    base: Value,
}

impl<H: Hooks> Lower<'_, H> {
    /// The layout of a buffer type: that of its allocation, of which the type may be a view.
    pub fn shared_layout(&mut self, ty: ir::Type) -> Result<Rc<SharedLayout>> {
        let TypeKind::MemDesc { shape, alloc_shape, .. } = self.m.type_kind(ty) else {
            return Err(self.error("expected a shared-memory buffer"));
        };
        let mut shape = shape.clone();
        if let Some(alloc) = alloc_shape {
            // The leading dimensions of a multi-buffered allocation are not part of a view.
            let skip = alloc.len().saturating_sub(shape.len());
            shape = alloc[skip..].into();
        }
        let bits = self.m.bits(ty).max(8);
        let layout =
            SharedLayout::new(self.encoding(ty)?, &shape, bits).map_err(|e| self.error(e.to_string()))?;
        Ok(Rc::new(layout))
    }

    /// Bytes of one buffer of this type.
    fn buffer_bytes(&mut self, ty: ir::Type) -> Result<i64> {
        let layout = self.shared_layout(ty)?;
        Ok(i64::from(layout.allocation_elems()) * i64::from(self.m.bits(ty).max(8) / 8))
    }

    /// `Σ bit · weight` over the bits of the thread index: contributions that add and may not be powers of two.
    fn weighted_bits(&mut self, weights: &[u32]) -> Value {
        let tid = self.tid();
        let mut sum = self.b.i32(0);
        let mut i = 0;
        while i < weights.len() {
            let weight = weights[i];
            if weight == 0 {
                i += 1;
                continue;
            }
            // A run of bits whose weights double is one field.
            let mut n = 1;
            while i + n < weights.len() && weights[i + n] == weight << n {
                n += 1;
            }
            let field = self.b.lshr(tid, i as u32);
            let field = self.b.and_const(field, (1 << n) - 1);
            let part = self.b.mul_const(field, i64::from(weight));
            sum = self.b.add(sum, part);
            i += n;
        }
        sum
    }

    /// The thread's part of the addresses of an access plan, in a buffer at `base`.
    pub fn thread_part(&mut self, base: Value, access: &SharedAccess, bytes: u32) -> ThreadPart {
        self.thread_offsets(base, &access.thread, bytes)
    }

    /// The same for the offsets of threads alone.
    pub fn thread_offsets(&mut self, base: Value, thread: &ThreadOffset, bytes: u32) -> ThreadPart {
        let parts = |offsets: &[Offset], f: fn(&Offset) -> u32| -> Vec<u32> {
            offsets.iter().map(|o| f(o) * bytes).collect()
        };
        let lane_bits = self.lane_bits() as usize;
        let pad_lanes = |mut v: Vec<u32>| {
            v.resize(lane_bits, 0);
            v
        };
        let lanes = pad_lanes(parts(&thread.lane, |o| o.xor));
        let xor = self.linear(&lanes, &parts(&thread.warp, |o| o.xor));
        let mut adds = pad_lanes(parts(&thread.lane, |o| o.add));
        adds.extend(parts(&thread.warp, |o| o.add));
        let add = self.weighted_bits(&adds);
        ThreadPart { xor, base: self.b.ptr_add(base, add) }
    }

    /// The address of one access.
    pub fn shared_address(
        &mut self,
        thread: ThreadPart,
        offset: Offset,
        shared: &SharedLayout,
        bytes: u32,
    ) -> Value {
        let (xor, add) = (offset.xor * bytes, offset.add * bytes);
        let Some(padding) = shared.padding() else {
            let offset = self.with_constant(thread.xor, xor, add);
            return self.b.ptr_add(thread.base, offset);
        };
        // o + o / interval * pad, in bytes; interval and pad are powers of two.
        let offset = self.with_constant(thread.xor, xor, add);
        let groups = self.b.lshr(offset, (padding.interval * bytes).ilog2());
        let pad = self.b.mul_const(groups, i64::from(padding.pad * bytes));
        let padded = self.b.add(offset, pad);
        self.b.ptr_add(thread.base, padded)
    }

    /// Plans the accesses of a tile to a view of a buffer: where the tile's units begin in the middle of one of the buffer's, an
    /// error.
    pub fn plan_shared(
        &mut self,
        tile: &TileLayout,
        buffer: &Buffer,
        buffer_ty: ir::Type,
        max_width: u32,
    ) -> Result<(SharedAccess, Rc<SharedLayout>)> {
        let shared = self.shared_layout(buffer_ty)?;
        let access = SharedAccess::in_window(tile, &shared, &buffer.offsets, max_width)
            .map_err(|e| self.error(e.to_string()))?;
        Ok((access, shared))
    }

    /// Whether a view of a buffer begins where one of a tile's units does.
    fn is_window(tile: &TileLayout, buffer: &Buffer) -> bool {
        buffer.offsets.iter().zip(tile.unit()).all(|(begin, unit)| begin.is_multiple_of(*unit))
    }

    /// The address of the element of a view that a thread has in a register of a tile.
    fn element_address(
        &mut self,
        tile: &TileLayout,
        register: u32,
        buffer: &Buffer,
        ty: ir::Type,
    ) -> Result<Value> {
        let shared = self.shared_layout(ty)?;
        let at = (0..tile.rank()).map(|d| {
            let coordinate = self.coord(tile, register, d);
            self.b.add_const(coordinate, i64::from(buffer.offsets[d]))
        });
        let at: Vec<Value> = at.collect();
        let offset = self.element_offset(&shared, &at);
        let offset = self.b.mul_const(offset, i64::from(self.m.bits(ty).max(8) / 8));
        Ok(self.b.ptr_add(buffer.base, offset))
    }

    /// The address of a view's first element, as an offset to combine with those of accesses.
    pub fn view_offset(buffer: &Buffer, shared: &SharedLayout) -> Offset {
        let (xor, add) = shared.offset_parts(&buffer.offsets);
        Offset { xor, add }
    }

    /// Predicate of an access: whether its registers lie in the buffer.
    pub(crate) fn access_predicate(
        &mut self,
        tile: &TileLayout,
        access: &Access,
        needed: bool,
    ) -> Option<Value> {
        if needed { self.in_bounds(tile, access.registers[0]) } else { None }
    }

    // ---- operations ------------------------------------------------------------------------------------------------

    pub(crate) fn local_alloc(&mut self, op: ttg::LocalAlloc) -> Result<()> {
        let result = op.result(self.m);
        let ty = self.value_ty(result);
        let rank = self.m.shape(ty).map_or(0, <[u32]>::len);
        let base = self.scratch()?;
        let buffer = Buffer { base, offsets: smallvec::smallvec![0; rank] };
        if let Some(src) = op.src(self.m) {
            self.store_tile(src, &buffer, ty)?;
        }
        self.set(result, Val::Buffer(buffer));
        Ok(())
    }

    pub(crate) fn local_store(&mut self, op: ttg::LocalStore) -> Result<()> {
        let dst = op.dst(self.m);
        let buffer = self.buffer(dst)?;
        self.store_tile(op.src(self.m), &buffer, self.value_ty(dst))
    }

    fn store_tile(&mut self, src: ir::Value, buffer: &Buffer, buffer_ty: ir::Type) -> Result<()> {
        let tile = self.layout(self.value_ty(src))?;
        let regs = self.regs(src)?;
        let bits = memory_bits(self.b.ty(regs[0]));
        let owner = self.is_owner(&tile);
        if !Self::is_window(&tile, buffer) {
            for r in tile.unique_registers() {
                let inside = self.in_bounds(&tile, r);
                let pred = self.all(&[owner, inside]);
                let at = self.element_address(&tile, r, buffer, buffer_ty)?;
                self.store_shared(at, &[regs[r as usize]], pred);
            }
            return Ok(());
        }
        let (plan, shared) = self.plan_shared(&tile, buffer, buffer_ty, self.vector_bits() / bits)?;
        let bytes = bits / 8;
        if let Some(plan) = matrix_store(self.m, self.op, src, &shared, &plan, self.vector_bits()) {
            let thread = self.thread_offsets(buffer.base, &plan.address, bytes);
            for instruction in &plan.instructions {
                let view = Self::view_offset(buffer, &shared);
                let at = self.shared_address(thread, instruction.offset.combine(view), &shared, bytes);
                H::store_matrices(self, &plan, instruction, at, &regs, None)?;
            }
            return Ok(());
        }
        let thread = self.thread_part(buffer.base, &plan, bytes);
        let copies = tile.free_variable_masks().register;
        for access in &plan.accesses {
            if (access.registers[0] % tile.unit_registers()) & copies != 0 {
                continue;
            }
            let inside = self.access_predicate(&tile, access, tile.is_padded());
            let pred = self.all(&[owner, inside]);
            if pred.is_some_and(|p| self.b.is_false(p)) {
                continue;
            }
            let at = self.shared_address(thread, access.offset, &shared, bytes);
            let elements: Vec<Value> = access.registers.iter().map(|&r| regs[r as usize]).collect();
            self.store_shared(at, &elements, pred);
        }
        Ok(())
    }

    pub(crate) fn local_load(&mut self, op: ttg::LocalLoad) -> Result<()> {
        let (src, result) = (op.src(self.m), op.result(self.m));
        let buffer = self.buffer(src)?;
        let ty = self.value_ty(result);
        let tile = self.layout(ty)?;
        let is_window = Self::is_window(&tile, &buffer);
        if is_window && let Some(regs) = H::load_tile(self, &buffer, self.value_ty(src), ty, &tile)? {
            self.set_regs(result, regs);
            return Ok(());
        }
        let elem = self.elem_ty(ty)?;
        let bits = memory_bits(elem);
        let zero = self.b.zero(elem);
        let mut out = vec![zero; tile.num_registers() as usize];
        if !is_window {
            for r in 0..tile.num_registers() {
                let inside = self.in_bounds(&tile, r);
                let at = self.element_address(&tile, r, &buffer, self.value_ty(src))?;
                out[r as usize] = self.load_shared_where(at, elem, 1, inside)[0];
            }
            self.set_regs(result, out);
            return Ok(());
        }
        let (plan, shared) =
            self.plan_shared(&tile, &buffer, self.value_ty(src), self.vector_bits() / bits)?;
        let bytes = bits / 8;
        let thread = self.thread_part(buffer.base, &plan, bytes);
        for access in &plan.accesses {
            // Padding lies outside the buffer, or nobody stored it: it is not read.
            let inside = self.access_predicate(&tile, access, plan.needs_predicate || tile.is_padded());
            if inside.is_some_and(|p| self.b.is_false(p)) {
                continue;
            }
            let at = self.shared_address(thread, access.offset, &shared, bytes);
            let elements = self.load_shared_where(at, elem, access.registers.len() as u32, inside);
            for (&r, e) in access.registers.iter().zip(elements) {
                out[r as usize] = e;
            }
        }
        self.set_regs(result, out);
        Ok(())
    }

    pub(crate) fn memdesc_index(&mut self, op: ttg::MemdescIndex) -> Result<()> {
        let m = self.m;
        let buffer = self.buffer(op.src(m))?;
        let result = op.result(m);
        let bytes = self.buffer_bytes(self.value_ty(result))?;
        let index = self.scalar(op.index(m))?;
        let index = self.b.int_cast(index, Ty::I32, true);
        // (A part counts its slots from where it begins.)
        let begin = buffer.offsets.first().copied().unwrap_or(0);
        let index = self.b.add_const(index, i64::from(begin));
        let offset = self.b.mul_const(index, bytes);
        let base = self.b.ptr_add(buffer.base, offset);
        let offsets = buffer.offsets.iter().skip(1).copied().collect();
        self.set(result, Val::Buffer(Buffer { base, offsets }));
        Ok(())
    }

    pub(crate) fn memdesc_subslice(&mut self, op: ttg::MemdescSubslice) -> Result<()> {
        let m = self.m;
        let mut buffer = self.buffer(op.src(m))?;
        for (at, add) in buffer.offsets.iter_mut().zip(op.offsets(m)) {
            *at += add as u32;
        }
        self.set(op.result(m), Val::Buffer(buffer));
        Ok(())
    }

    /// A tile that the program chooses. Its elements lie from its first one on as those of the first tile do from the buffer's.
    pub(crate) fn memdesc_subview(&mut self, op: ttg::MemdescSubview) -> Result<()> {
        let m = self.m;
        let (src, result) = (op.src(m), op.result(m));
        let Buffer { base, offsets } = self.buffer(src)?;
        let (of, ty) = (self.value_ty(src), self.value_ty(result));
        let shared = self.shared_layout(ty)?;
        let (part, tile) = (m.shape(of).unwrap_or(&[]), m.shape(ty).unwrap_or(&[]));
        let is_tile = m.op_attr(op.0, marks::TILE).is_some();
        if !is_tile || shared.tile_begins(&offsets, part, tile).is_none() {
            return Err(self.unsupported(format!(
                "a part of shape {tile:?} of a buffer, chosen at run time, which may begin within a swizzle"
            )));
        }
        let mut at = Vec::with_capacity(offsets.len());
        for (&chosen, &begin) in op.offsets(m).iter().zip(&offsets) {
            let chosen = self.scalar(chosen)?;
            at.push(self.b.add_const(chosen, i64::from(begin)));
        }
        let offset = self.element_offset(&shared, &at);
        let offset = self.b.mul_const(offset, i64::from(m.bits(ty).max(8) / 8));
        let base = self.b.ptr_add(base, offset);
        self.set(result, Val::Buffer(Buffer { base, offsets: smallvec::smallvec![0; tile.len()] }));
        Ok(())
    }

    /// Elements of a view have addresses wherever the allocation's layout puts them.
    pub(crate) fn local_ptr(&mut self, op: ttg::LocalPtr) -> Result<()> {
        let m = self.m;
        let (src, result) = (op.src(m), op.result(m));
        let buffer = self.buffer(src)?;
        let shared = self.shared_layout(self.value_ty(src))?;
        let bytes = self.m.bits(self.value_ty(src)).max(8) / 8;
        let indices: Vec<Regs> = op.indices(m).iter().map(|&v| self.regs(v)).collect::<Result<_>>()?;
        let mut out = Vec::with_capacity(self.num_regs(self.value_ty(result))?);
        for r in 0..self.num_regs(self.value_ty(result))? {
            let mut coordinates = Vec::with_capacity(indices.len());
            for (index, &begin) in indices.iter().zip(&buffer.offsets) {
                let index = self.b.int_cast(index[r], Ty::I32, true);
                let begin = self.b.i32(i64::from(begin));
                coordinates.push(self.b.add(index, begin));
            }
            let offset = self.element_offset(&shared, &coordinates);
            let offset = self.b.mul_const(offset, i64::from(bytes));
            out.push(self.b.ptr_add(buffer.base, offset));
        }
        self.set_regs(result, out);
        Ok(())
    }

    /// The offset of an element, in elements, at coordinates that are known at run time: the counterpart of
    /// [`SharedLayout::offset`].
    fn element_offset(&mut self, shared: &SharedLayout, coordinates: &[Value]) -> Value {
        let bases = |d: usize| -> Vec<u32> {
            let bits = shared.unit()[d].ilog2();
            (0..bits).map(|bit| shared.linear().apply_one(Dim::Axis(d as u8), 1 << bit)).collect()
        };
        let all: Vec<Vec<u32>> = (0..coordinates.len()).map(bases).collect();
        // Where no two bits of the coordinates go to one bit of the offset, what is a row is a row with carries, too.
        let mut seen = 0;
        let disjoint = all.iter().flatten().all(|&basis| {
            let new = seen & basis == 0;
            seen |= basis;
            new
        });
        let (mut xor, mut sum) = (self.b.i32(0), self.b.i32(0));
        for (d, (&at, bases)) in coordinates.iter().zip(&all).enumerate() {
            let (step, stride) = (shared.steps()[d].ilog2(), shared.strides()[d]);
            let rows = |(bit, &basis): (usize, &u32)| basis == bases[0] << bit;
            let first = bases.first().copied().unwrap_or(if step == 0 { stride } else { 0 });
            let goes_on = stride == first << step || shared.shape()[d] <= 1 << step;
            if disjoint && bases.iter().enumerate().all(rows) && goes_on {
                let part = self.b.mul_const(at, i64::from(first));
                sum = self.b.add(sum, part);
                continue;
            }
            let unit = self.linear_of(at, bases.iter().copied());
            xor = self.b.xor(xor, unit);
            if shared.shape()[d] > 1 << step {
                let steps = self.b.lshr(at, step);
                let part = self.b.mul_const(steps, i64::from(stride));
                sum = self.b.add(sum, part);
            }
        }
        let offset = self.b.add(xor, sum);
        let Some(padding) = shared.padding() else { return offset };
        let groups = self.b.lshr(offset, padding.interval.ilog2());
        let pad = self.b.mul_const(groups, i64::from(padding.pad));
        self.b.add(offset, pad)
    }

    /// The address from which on a view's elements lie as those of its buffer do from the buffer's own.
    ///
    /// # Errors
    /// A part that begins where the layout does not, or where copies and wide accesses, which take it for the begin of a buffer, can't.
    pub(crate) fn begin_of_part(&mut self, view: ir::Value) -> Result<Value> {
        let Buffer { base, offsets } = self.buffer(view)?;
        if offsets.iter().all(|&at| at == 0) {
            return Ok(base);
        }
        let ty = self.value_ty(view);
        let (shared, shape) = (self.shared_layout(ty)?, self.m.shape(ty).unwrap_or(&[]));
        let bytes = self.m.bits(ty).max(8) / 8;
        let begin = shared.part_begin(&offsets, shape).map(|begin| begin * bytes);
        let Some(begin) = begin.filter(|begin| begin.is_multiple_of(BUFFER_ALIGNMENT)) else {
            return Err(self.unsupported(format!(
                "a part of a buffer that begins within a swizzle, or at no multiple of {BUFFER_ALIGNMENT} bytes, carried through control flow"
            )));
        };
        Ok(self.b.ptr_add_const(base, i64::from(begin)))
    }

    pub(crate) fn memdesc_reshape(&mut self, op: ttg::MemdescReshape) -> Result<()> {
        let m = self.m;
        let (src, result) = (op.src(m), op.result(m));
        let buffer = self.buffer(src)?;
        let (from, to) =
            (self.shared_layout(self.value_ty(src))?, self.shared_layout(self.value_ty(result))?);
        let whole = |v: ir::Value, layout: &SharedLayout| m.shape(m.value_type(v)) == Some(layout.shape());
        if !whole(src, &from) || !whole(result, &to) || !from.lies_like(&to) {
            return Err(self.unsupported("reshaping a buffer whose elements do not lie where the view's do"));
        }
        let rank = self.m.shape(self.value_ty(result)).map_or(0, <[u32]>::len);
        self.set(result, Val::Buffer(Buffer { base: buffer.base, offsets: smallvec::smallvec![0; rank] }));
        Ok(())
    }

    pub(crate) fn memdesc_reinterpret(&mut self, op: ttg::MemdescReinterpret) -> Result<()> {
        let m = self.m;
        let buffer = self.buffer(op.src(m))?;
        if buffer.offsets.iter().any(|&o| o != 0) {
            return Err(self.unsupported("an alias of a slice of a buffer"));
        }
        let base = self.b.ptr_add_const(buffer.base, i64::from(op.offset(m).unwrap_or(0)));
        let rank = m.shape(m.value_type(op.result(m))).map_or(0, <[u32]>::len);
        self.set(op.result(m), Val::Buffer(Buffer { base, offsets: smallvec::smallvec![0; rank] }));
        Ok(())
    }

    pub(crate) fn memdesc_trans(&mut self, op: ttg::MemdescTrans) -> Result<()> {
        let m = self.m;
        let buffer = self.buffer(op.src(m))?;
        let offsets = op.order(m).iter().map(|&o| buffer.offsets[o as usize]).collect();
        self.set(op.result(m), Val::Buffer(Buffer { base: buffer.base, offsets }));
        Ok(())
    }
}
