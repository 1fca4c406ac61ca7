//! Buffers in shared memory: allocation, views, loads, stores and asynchronous copies.
//!
//! An address is `base + (T ^ xor) + A + add`, where `T` and `A` depend on the thread alone and `xor`, `add` are
//! constants of the access. Everything is in bytes from the start, and the builder folds constants into immediates.

use std::fmt::Write as _;
use std::rc::Rc;

use tilewright_ir as ir;
use tilewright_ir::TypeKind;
use tilewright_ir::dialect::ttg;
use tilewright_layout::{
    Access, Encoding, MatrixAccess, MatrixInstruction, Offset, SharedAccess, SharedLayout, ThreadOffset,
    TileLayout,
};
use tilewright_llvm::{Effect, Ty, Value};

use super::memory::{Asm, memory_bits};
use super::{Buffer, Lower, Result, Val};

/// The thread's part of shared-memory addresses, computed once per tensor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ThreadPart {
    /// XORed with an access's constant; bytes.
    xor: Value,
    /// Base address plus what is added.
    base: Value,
}

impl Lower<'_> {
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

    pub fn thread_offsets(&mut self, base: Value, thread: &ThreadOffset, bytes: u32) -> ThreadPart {
        let parts = |offsets: &[Offset], f: fn(&Offset) -> u32| -> Vec<u32> {
            offsets.iter().map(|o| f(o) * bytes).collect()
        };
        let pad_lanes = |mut v: Vec<u32>| {
            v.resize(5, 0);
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

    /// Plans the accesses of a tile to a view of a buffer.
    pub fn plan_shared(
        &mut self,
        tile: &TileLayout,
        buffer_ty: ir::Type,
        max_width: u32,
    ) -> Result<(SharedAccess, Rc<SharedLayout>)> {
        let shared = self.shared_layout(buffer_ty)?;
        let access =
            SharedAccess::with_max_width(tile, &shared, max_width).map_err(|e| self.error(e.to_string()))?;
        Ok((access, shared))
    }

    /// The address of a view's first element, as an offset to combine with those of accesses.
    pub fn view_offset(buffer: &Buffer, shared: &SharedLayout) -> Offset {
        let (xor, add) = shared.offset_parts(&buffer.offsets);
        Offset { xor, add }
    }

    /// Predicate of an access: whether its registers lie in the buffer.
    pub fn access_predicate(&mut self, tile: &TileLayout, access: &Access, needed: bool) -> Option<Value> {
        if needed { self.in_bounds(tile, access.registers[0]) } else { None }
    }

    // ---- operations ------------------------------------------------------------------------------------------------

    pub fn local_alloc(&mut self, op: ttg::LocalAlloc) -> Result<()> {
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

    pub fn local_store(&mut self, op: ttg::LocalStore) -> Result<()> {
        let dst = op.dst(self.m);
        let buffer = self.buffer(dst)?;
        self.store_tile(op.src(self.m), &buffer, self.value_ty(dst))
    }

    fn store_tile(&mut self, src: ir::Value, buffer: &Buffer, buffer_ty: ir::Type) -> Result<()> {
        let tile = self.layout(self.value_ty(src))?;
        let regs = self.regs(src)?;
        let bits = memory_bits(self.b.ty(regs[0]));
        let (plan, shared) = self.plan_shared(&tile, buffer_ty, 128 / bits)?;
        let bytes = bits / 8;
        let view = Self::view_offset(buffer, &shared);
        let width = plan.accesses.iter().map(|a| a.registers.len() as u32 * bits).min();
        if width < Some(128) && self.store_matrices(buffer.base, &tile, &regs, &shared, view) {
            return Ok(());
        }
        let thread = self.thread_part(buffer.base, &plan, bytes);
        let owner = self.is_owner(&tile);
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
            let at = self.shared_address(thread, access.offset.combine(view), &shared, bytes);
            let elements: Vec<Value> = access.registers.iter().map(|&r| regs[r as usize]).collect();
            self.store_shared(at, &elements, pred);
        }
        Ok(())
    }

    /// `stmatrix`, where the GPU has it and the tile fits it (fragments of tensor cores do), and every thread has something to
    /// store; false where not. An instruction writes 16 bytes a lane, free of bank conflicts where rows are swizzled.
    fn store_matrices(
        &mut self,
        base: Value,
        tile: &TileLayout,
        regs: &[Value],
        shared: &SharedLayout,
        view: Offset,
    ) -> bool {
        let elem = self.b.ty(regs[0]);
        let bits = memory_bits(elem);
        let copies = self.copies(tile) != 0 || tile.free_variable_masks().register != 0;
        if !self.target.facts().stmatrix || elem == Ty::I1 || elem.is_ptr() || tile.is_padded() || copies {
            return false;
        }
        let Some(plan) = MatrixAccess::new(tile, shared, bits) else { return false };
        let bytes = bits / 8;
        let thread = self.thread_offsets(base, &plan.address, bytes);
        for instruction in &plan.instructions {
            let at = self.shared_address(thread, instruction.offset.combine(view), shared, bytes);
            self.stmatrix(&plan, instruction, at, regs, None);
        }
        true
    }

    pub fn local_load(&mut self, op: ttg::LocalLoad) -> Result<()> {
        let (src, result) = (op.src(self.m), op.result(self.m));
        let buffer = self.buffer(src)?;
        let ty = self.value_ty(result);
        let tile = self.layout(ty)?;
        if let Some(regs) = self.load_matrices(&buffer, self.value_ty(src), ty, &tile)? {
            self.set_regs(result, regs);
            return Ok(());
        }
        let elem = self.elem_ty(ty)?;
        let bits = memory_bits(elem);
        let (plan, shared) = self.plan_shared(&tile, self.value_ty(src), 128 / bits)?;
        let bytes = bits / 8;
        let thread = self.thread_part(buffer.base, &plan, bytes);
        let view = Self::view_offset(&buffer, &shared);
        let zero = self.b.zero(elem);
        let mut out = vec![zero; tile.num_registers() as usize];
        for access in &plan.accesses {
            // Padding lies outside the buffer, or nobody stored it: it is not read.
            let inside = self.access_predicate(&tile, access, plan.needs_predicate || tile.is_padded());
            if inside.is_some_and(|p| self.b.is_false(p)) {
                continue;
            }
            let at = self.shared_address(thread, access.offset.combine(view), &shared, bytes);
            let elements = self.load_shared_where(at, elem, access.registers.len() as u32, inside);
            for (&r, e) in access.registers.iter().zip(elements) {
                out[r as usize] = e;
            }
        }
        self.set_regs(result, out);
        Ok(())
    }

    pub fn memdesc_index(&mut self, op: ttg::MemdescIndex) -> Result<()> {
        let m = self.m;
        let buffer = self.buffer(op.src(m))?;
        let result = op.result(m);
        let bytes = self.buffer_bytes(self.value_ty(result))?;
        let index = self.scalar(op.index(m))?;
        let index = self.b.int_cast(index, Ty::I32, true);
        let offset = self.b.mul_const(index, bytes);
        let base = self.b.ptr_add(buffer.base, offset);
        let offsets = buffer.offsets.iter().skip(1).copied().collect();
        self.set(result, Val::Buffer(Buffer { base, offsets }));
        Ok(())
    }

    pub fn memdesc_subslice(&mut self, op: ttg::MemdescSubslice) -> Result<()> {
        let m = self.m;
        let mut buffer = self.buffer(op.src(m))?;
        for (at, add) in buffer.offsets.iter_mut().zip(op.offsets(m)) {
            *at += add as u32;
        }
        self.set(op.result(m), Val::Buffer(buffer));
        Ok(())
    }

    pub fn memdesc_trans(&mut self, op: ttg::MemdescTrans) -> Result<()> {
        let m = self.m;
        let buffer = self.buffer(op.src(m))?;
        let offsets = op.order(m).iter().map(|&o| buffer.offsets[o as usize]).collect();
        self.set(op.result(m), Val::Buffer(Buffer { base: buffer.base, offsets }));
        Ok(())
    }

    /// `cp.async` of 4, 8 or 16 bytes a thread; masked-off elements become zero by a source size of 0.
    pub fn async_copy(&mut self, op: ttg::AsyncCopyGlobalToLocal) -> Result<()> {
        let m = self.m;
        let (src, dst) = (op.src(m), op.dst(m));
        let tile = self.layout(self.value_ty(src))?;
        let ptrs = self.regs(src)?;
        let mask = op.mask(m).map(|v| self.regs(v)).transpose()?;
        if let Some(other) = op.other(m) {
            let zero = self.regs(other)?.iter().all(|&v| self.b.as_const(v) == Some(0));
            if !zero {
                return Err(self.unsupported("an asynchronous copy whose masked-off elements are not zero"));
            }
        }
        let buffer = self.buffer(dst)?;
        let bits = m.bits(self.value_ty(dst)).max(8);
        let (axis, width) = self.access_width(&tile, bits);
        let (plan, shared) = self.plan_shared(&tile, self.value_ty(dst), width)?;
        let bytes = bits / 8;
        let size = plan.width * bytes;
        if !matches!(size, 4 | 8 | 16) {
            return Err(self.unsupported(format!(
                "an asynchronous copy of {size} bytes a thread (4, 8 or 16; elements of {bits} bits, vectors of {})",
                plan.width
            )));
        }
        let thread = self.thread_part(buffer.base, &plan, bytes);
        let view = Self::view_offset(&buffer, &shared);
        let owner = self.is_owner(&tile);
        for access in &plan.accesses {
            let first = access.registers[0];
            let start = tile.register_coord(first);
            let runs = access.registers.iter().enumerate().all(|(i, &r)| {
                let c = tile.register_coord(r);
                (0..tile.rank()).all(|d| c[d] == start[d] + if d == axis { i as u32 } else { 0 })
            });
            if !runs {
                return Err(self.unsupported("an asynchronous copy that transposes"));
            }
            // Beyond the tensor nothing is copied; where the mask is off, zeros are.
            let inside = self.in_bounds(&tile, first);
            let exists = self.all(&[owner, inside]);
            if exists.is_some_and(|p| self.b.is_false(p)) {
                continue;
            }
            let wanted = mask.as_ref().map(|p| p[first as usize]).filter(|&p| !self.b.is_true(p));
            let to = self.shared_address(thread, access.offset.combine(view), &shared, bytes);
            self.cp_async(to, ptrs[first as usize], size, wanted, exists);
        }
        self.set(op.token(m), Val::Token);
        Ok(())
    }

    fn cp_async(&mut self, to: Value, from: Value, size: u32, wanted: Option<Value>, exists: Option<Value>) {
        let mut asm = Asm::default();
        let mut address = |s: &mut Self, p: Value, letter: char| {
            let (base, offset) = s.b.split_offset(p);
            let (base, offset) = if i32::try_from(offset).is_ok() { (base, offset) } else { (p, 0) };
            let name = asm.arg(base, letter);
            if offset == 0 {
                return name;
            }
            let c = s.b.i32(offset);
            format!("{name}+{}", asm.arg(c, 'n'))
        };
        let (to, from) = (address(self, to, 'r'), address(self, from, 'l'));
        if let Some(p) = exists {
            let p = asm.arg(p, 'b');
            let _ = write!(asm.text, "@{p} ");
        }
        // `.cg` goes past L1 and exists for 16 bytes only.
        let cache = if size == 16 { "cg" } else { "ca" };
        let _ = write!(asm.text, "cp.async.{cache}.shared.global [{to}], [{from}], {size}");
        // "ignore-src": the instruction's own predicate, where a source size would have to be made and compared.
        if let Some(wanted) = wanted {
            let ignore = self.b.not(wanted);
            let ignore = asm.arg(ignore, 'b');
            let _ = write!(asm.text, ", {ignore}");
        }
        asm.text.push(';');
        let (text, constraints) = (asm.text, asm.constraints);
        self.b.asm(&text, &constraints, Effect::Write, &[], &asm.args);
    }

    pub fn async_commit(&mut self, op: ir::Op) -> Result<()> {
        self.b.asm("cp.async.commit_group;", "", Effect::Write, &[], &[]);
        for &r in self.m.results(op) {
            self.set(r, Val::Token);
        }
        Ok(())
    }

    pub fn async_wait(&mut self, op: ttg::AsyncWait) -> Result<()> {
        let text = format!("cp.async.wait_group {};", op.num(self.m).max(0));
        self.b.asm(&text, "", Effect::Write, &[], &[]);
        for &r in self.m.results(op.0) {
            self.set(r, Val::Token);
        }
        Ok(())
    }

    /// `ldmatrix`, where the buffer and the operand layout fit it; `None` where they do not.
    fn load_matrices(
        &mut self,
        buffer: &Buffer,
        buffer_ty: ir::Type,
        ty: ir::Type,
        tile: &TileLayout,
    ) -> Result<Option<Vec<Value>>> {
        let elem = self.elem_ty(ty)?;
        let bits = memory_bits(elem);
        let shared = self.shared_layout(buffer_ty)?;
        // Rows of padding may never have been stored.
        if elem == Ty::I1 || tile.is_padded() || !matches!(self.encoding(ty)?, Encoding::DotOperand { .. }) {
            return Ok(None);
        }
        let Some(plan) = MatrixAccess::new(tile, &shared, bits) else { return Ok(None) };
        let bytes = bits / 8;
        let thread = self.thread_offsets(buffer.base, &plan.address, bytes);
        let view = Self::view_offset(buffer, &shared);
        let trans = if plan.trans { ".trans" } else { "" };
        let zero = self.b.zero(elem);
        let mut out = vec![zero; tile.num_registers() as usize];
        for instruction in &plan.instructions {
            let at = self.shared_address(thread, instruction.offset.combine(view), &shared, bytes);
            let mut asm = Asm::default();
            asm.outputs(Ty::I32, 'r', plan.count);
            let (base, offset) = self.b.split_offset(at);
            let mut address = asm.arg(base, 'r');
            if offset != 0 {
                let c = self.b.i32(offset);
                address = format!("{address}+{}", asm.arg(c, 'n'));
            }
            let names: Vec<String> = (0..plan.count).map(|i| format!("${i}")).collect();
            let text = format!(
                "ldmatrix.sync.aligned.m8n8.x{}{trans}.shared.b16 {{{}}}, [{address}];",
                plan.count,
                names.join(", ")
            );
            let constraints = asm.constraints;
            let words = self.b.asm(&text, &constraints, Effect::Read, &asm.results, &asm.args);
            for (&word, registers) in words.iter().zip(instruction.registers.chunks(plan.pack as usize)) {
                for (&r, e) in registers.iter().zip(self.unpack_word(word, elem, plan.pack)) {
                    out[r as usize] = e;
                }
            }
        }
        Ok(Some(out))
    }

    /// One `stmatrix` to rows at `at`. Warps store whole matrices, so `pred` is the same in all lanes.
    pub fn stmatrix(
        &mut self,
        plan: &MatrixAccess,
        instruction: &MatrixInstruction,
        at: Value,
        regs: &[Value],
        pred: Option<Value>,
    ) {
        let mut asm = Asm::default();
        let (base, offset) = self.b.split_offset(at);
        let base = asm.arg(base, 'r');
        let offset = self.b.i32(offset);
        let offset = asm.arg(offset, 'n');
        let words: Vec<String> = instruction
            .registers
            .chunks(plan.pack as usize)
            .map(|word| {
                let mut elements: Vec<Value> = word.iter().map(|&r| regs[r as usize]).collect();
                if self.b.ty(elements[0]) == Ty::I1 {
                    elements = elements.into_iter().map(|v| self.as_int(v)).collect();
                }
                let word = self.pack_word(&elements);
                let word = self.b.bitcast(word, Ty::I32);
                asm.arg(word, 'r')
            })
            .collect();
        let pred = pred.map_or(String::new(), |p| format!("@{} ", asm.arg(p, 'b')));
        let trans = if plan.trans { ".trans" } else { "" };
        let text = format!(
            "{pred}stmatrix.sync.aligned.m8n8.x{}{trans}.shared.b16 [{base}+{offset}], {{{}}};",
            plan.count,
            words.join(", ")
        );
        self.b.asm(&text, &asm.constraints, Effect::Write, &[], &asm.args);
    }
}
