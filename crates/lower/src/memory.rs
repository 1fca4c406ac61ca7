//! Loads and stores through pointers, and the accesses to shared memory that other operations share.

use smallvec::SmallVec;
use tilewright_ir::dialect::tt;
use tilewright_ir::flow::is_in_loop;
use tilewright_layout::TileLayout;
use tilewright_llvm::{Scalar, Space, Ty, Value};
use tilewright_passes::analysis::tile_layout::access_width;
use tilewright_passes::analysis::unseen;

use crate::{Hooks, LoadHints, Lower, Result, WordValues, Words, int_of, memory_bits};

/// Loads of whole words that a thread makes of a tile, up to which what masks leave out is left alone where nobody sees it: of more the assembler, which begins them at
/// once, would keep all.
const UNSEEN: usize = 2;

impl<H: Hooks> Lower<'_, H> {
    /// The width of a tensor access in elements and the axis it runs along.
    pub fn access_width(&self, layout: &TileLayout, bits: u32) -> (usize, u32) {
        access_width(self.m, self.op, layout, bits, self.target.max_vector_bytes)
    }

    /// A register word of the given type as a memory word, predicates as bytes.
    fn as_memory(&mut self, v: Value) -> Value {
        let ty = self.b.ty(v);
        match ty.scalar {
            Scalar::I1 => self.b.int_cast(v, Ty::I8, false),
            Scalar::Ptr(_) => {
                let int = Ty::scalar(int_of(ty.bits()));
                self.b.cast(tilewright_llvm::CastOp::PtrToInt, v, int)
            }
            _ => v,
        }
    }

    /// Elements as memory words, widened to register size.
    pub fn words_of(&mut self, elements: &[Value], words: Words) -> WordValues {
        let elements: SmallVec<[Value; 16]> = elements.iter().map(|&e| self.as_memory(e)).collect();
        let mut out = SmallVec::new();
        for word in elements.chunks(words.per_word as usize) {
            let packed = self.pack_word(word);
            let bits = self.b.ty(packed).bits();
            let int = self.b.bitcast(packed, Ty::scalar(int_of(bits)));
            out.push(self.b.int_cast(int, words.register(), false));
        }
        out
    }

    /// Memory words as elements of type `ty`.
    pub fn elements_of(&mut self, words: &[Value], shape: Words, ty: Ty) -> Vec<Value> {
        let memory = if ty == Ty::I1 { Ty::I8 } else { ty };
        let mut out = Vec::new();
        for &w in words {
            let word = self.b.int_cast(w, Ty::scalar(int_of(shape.bits)), false);
            out.extend(self.unpack_word(word, memory, shape.per_word));
        }
        if ty == Ty::I1 {
            out = out
                .into_iter()
                .map(|b| {
                    let zero = self.b.constant(Ty::I8, 0);
                    self.b.icmp(tilewright_llvm::IntPred::Ne, b, zero)
                })
                .collect();
        }
        out
    }

    // ---- through pointers ---------------------------------------------------------------------------------------------

    pub(crate) fn load(&mut self, op: tt::Load) -> Result<()> {
        let m = self.m;
        let result = op.result(m);
        let ty = self.elem_ty(self.value_ty(result))?;
        let bits = memory_bits(ty);
        let ptrs = self.regs(op.ptr(m))?;
        let mask = op.mask(m).map(|v| self.regs(v)).transpose()?;
        let other = op.other(m).map(|v| self.regs(v)).transpose()?;
        let mut hints = LoadHints {
            volatile: op.is_volatile(m),
            cache: op.cache(m),
            evict: op.evict(m),
            early: false,
            unseen: false,
        };
        if !m.is_tensor(self.value_ty(result)) {
            let words = Words::of(1, bits);
            let pred = mask.map(|p| p[0]);
            let pred = self.all(&[pred]);
            let other = other.map(|o| self.words_of(&[o[0]], words));
            let loaded = self.load_words(ptrs[0], words, pred, other.as_deref(), hints);
            let out = self.elements_of(&loaded, words, ty);
            self.set_regs(result, out);
            return Ok(());
        }
        let layout = self.layout(self.value_ty(result))?;
        let (axis, width) = self.access_width(&layout, bits);
        let words = Words::of(width, bits);
        let groups = layout
            .vector_groups(axis, width)
            .ok_or_else(|| self.error("internal: the layout has no vectors of the promised width"))?;
        // A thread that loads once has nothing else to wait with, so that its load should begin when it can.
        let in_loop = is_in_loop(m, self.op);
        hints.early = groups.len() == 1 && !in_loop;
        let whole = words.bits == 32 && groups.len() <= UNSEEN;
        hints.unseen = whole && !in_loop && unseen::is_unseen(m, op);
        // All loads first: what unpacks a word would stand between them, and the assembler keeps to the order it sees.
        let mut all = Vec::with_capacity(groups.len());
        for group in &groups {
            let first = group[0] as usize;
            let inside = self.in_bounds(&layout, group[0]);
            let pred = self.all(&[mask.as_ref().map(|p| p[first]), inside]);
            let fallback = match &other {
                Some(o) => {
                    let elements: Vec<Value> = group.iter().map(|&r| o[r as usize]).collect();
                    Some(self.words_of(&elements, words))
                }
                None => None,
            };
            let loaded = if pred.is_some_and(|p| self.b.is_false(p)) {
                match fallback {
                    Some(f) => f,
                    None => {
                        let zero = self.b.zero(words.register());
                        smallvec::smallvec![zero; words.count as usize]
                    }
                }
            } else {
                self.load_words(ptrs[first], words, pred, fallback.as_deref(), hints)
            };
            all.push(loaded);
        }
        let mut out: Vec<Option<Value>> = vec![None; layout.num_registers() as usize];
        for (group, loaded) in groups.iter().zip(all) {
            let elements = self.elements_of(&loaded, words, ty);
            for (&r, e) in group.iter().zip(elements) {
                out[r as usize] = Some(e);
            }
        }
        let out: Vec<Value> = out.into_iter().flatten().collect();
        self.set_regs(result, out);
        Ok(())
    }

    pub(crate) fn store(&mut self, op: tt::Store) -> Result<()> {
        let m = self.m;
        let value = op.value(m);
        let (cache, evict) = (op.cache(m), op.evict(m));
        if !m.is_tensor(self.value_ty(value)) {
            let ty = self.elem_ty(self.value_ty(value))?;
            let bits = memory_bits(ty);
            let ptrs = self.regs(op.ptr(m))?;
            let values = self.regs(value)?;
            let mask = op.mask(m).map(|v| self.regs(v)).transpose()?;
            let words = Words::of(1, bits);
            let first = self.is_first_thread();
            let pred = self.all(&[mask.map(|p| p[0]), Some(first)]);
            let stored = self.words_of(&[values[0]], words);
            self.store_words(ptrs[0], &stored, words, pred, cache, evict);
            return Ok(());
        }
        self.store_tensor(op.ptr(m), value, op.mask(m), |l, ptr, stored, words, pred| {
            l.store_words(ptr, stored, words, pred, cache, evict);
        })
    }

    /// An exchange in global memory of which nobody wants the old values.
    pub(crate) fn store_relaxed(&mut self, op: tt::AtomicRmw) -> Result<()> {
        let m = self.m;
        let scope = op.scope(m);
        self.store_tensor(op.ptr(m), op.val(m), op.mask(m), |l, ptr, stored, words, pred| {
            H::store_relaxed(l, ptr, stored, words, pred, scope);
        })
    }

    /// Stores what this thread owns of a tensor, by accesses as wide as the operation has been promised.
    pub(crate) fn store_tensor(
        &mut self,
        ptr: tilewright_ir::Value,
        value: tilewright_ir::Value,
        mask: Option<tilewright_ir::Value>,
        store: impl Fn(&mut Self, Value, &[Value], Words, Option<Value>),
    ) -> Result<()> {
        let ty = self.elem_ty(self.value_ty(value))?;
        let bits = memory_bits(ty);
        let ptrs = self.regs(ptr)?;
        let values = self.regs(value)?;
        let mask = mask.map(|v| self.regs(v)).transpose()?;
        let layout = self.layout(self.value_ty(value))?;
        let (axis, width) = self.access_width(&layout, bits);
        let words = Words::of(width, bits);
        let groups = layout
            .vector_groups(axis, width)
            .ok_or_else(|| self.error("internal: the layout has no vectors of the promised width"))?;
        let owner = self.is_owner(&layout);
        let copies = layout.free_variable_masks().register;
        for group in groups {
            let first = group[0] as usize;
            if (group[0] % layout.unit_registers()) & copies != 0 {
                continue;
            }
            let inside = self.in_bounds(&layout, group[0]);
            let pred = self.all(&[mask.as_ref().map(|p| p[first]), inside, owner]);
            if pred.is_some_and(|p| self.b.is_false(p)) {
                continue;
            }
            let elements: Vec<Value> = group.iter().map(|&r| values[r as usize]).collect();
            let stored = self.words_of(&elements, words);
            store(self, ptrs[first], &stored, words, pred);
        }
        Ok(())
    }

    /// Loads words from where a pointer points to, where `pred` holds; elsewhere they are those of `other`, or zero.
    fn load_words(
        &mut self,
        ptr: Value,
        words: Words,
        pred: Option<Value>,
        other: Option<&[Value]>,
        hints: LoadHints,
    ) -> WordValues {
        if !self.is_shared(ptr) {
            return H::load_global(self, ptr, words, pred, other, hints);
        }
        let mut loaded = H::load_shared(self, ptr, words, pred);
        if let (Some(pred), Some(other)) = (pred, other) {
            for (word, &other) in loaded.iter_mut().zip(other) {
                *word = self.b.select(pred, *word, other);
            }
        }
        loaded
    }

    /// Stores words to where a pointer points to, where `pred` holds.
    fn store_words(
        &mut self,
        ptr: Value,
        values: &[Value],
        words: Words,
        pred: Option<Value>,
        cache: tt::CacheModifier,
        evict: tt::EvictionPolicy,
    ) {
        if self.is_shared(ptr) {
            H::store_shared(self, ptr, values, words, pred.filter(|&p| !self.b.is_true(p)));
        } else {
            H::store_global(self, ptr, values, words, pred, cache, evict);
        }
    }

    /// Whether a pointer points to shared memory, of this CTA or of another.
    pub fn is_shared(&self, ptr: Value) -> bool {
        matches!(self.b.ty(ptr).scalar, Scalar::Ptr(Space::Shared | Space::Cluster))
    }

    // ---- shared memory ---------------------------------------------------------------------------------------------

    /// Stores elements that are consecutive in shared memory, aligned to their whole width, where `pred` holds.
    pub fn store_shared(&mut self, ptr: Value, elements: &[Value], pred: Option<Value>) {
        let bits = memory_bits(self.b.ty(elements[0]));
        let words = Words::of(elements.len() as u32, bits);
        let values = self.words_of(elements, words);
        H::store_shared(self, ptr, &values, words, pred.filter(|&p| !self.b.is_true(p)));
    }

    /// Loads `count` consecutive elements from shared memory, aligned to their whole width.
    pub fn load_shared(&mut self, ptr: Value, ty: Ty, count: u32) -> Vec<Value> {
        self.load_shared_where(ptr, ty, count, None)
    }

    /// [`Lower::load_shared`] where `pred` holds; elsewhere the elements are zero.
    pub fn load_shared_where(&mut self, ptr: Value, ty: Ty, count: u32, pred: Option<Value>) -> Vec<Value> {
        let words = Words::of(count, memory_bits(ty));
        let loaded = H::load_shared(self, ptr, words, pred.filter(|&p| !self.b.is_true(p)));
        self.elements_of(&loaded, words, ty)
    }
}
