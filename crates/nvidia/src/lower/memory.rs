//! Loads and stores of global memory, and the accesses to shared memory that other operations share.
//!
//! A global access is one PTX instruction of up to 128 bits with a predicate, as inline assembly: LLVM has no predicated
//! access, and branches around each one would ruin the schedule. Its address is a base register and an immediate.

use std::fmt::Write as _;

use smallvec::SmallVec;
use tilewright_ir::Opcode;
use tilewright_ir::dialect::{scf, tt};
use tilewright_ir::marks;
use tilewright_layout::TileLayout;
use tilewright_llvm::{Effect, Scalar, Ty, Value};

use super::elementwise::int_of;
use super::{Lower, Result};

/// How an access is cut into machine words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Words {
    /// Bits of a word: 8, 16, 32 or 64.
    pub bits: u32,
    /// Words of the access: 1, 2 or 4.
    pub count: u32,
    /// Elements of a word.
    pub per_word: u32,
}

impl Words {
    /// The words of `elements` elements of `bits` bits; together at most 128 bits.
    pub fn of(elements: u32, bits: u32) -> Words {
        let total = elements * bits;
        let word = if bits == 64 { 64 } else { total.min(32) };
        Words { bits: word, count: total / word, per_word: word / bits }
    }

    /// `.v4.b32`, `.v2.b64`, `.b16`, …
    pub fn suffix(self) -> String {
        match self.count {
            1 => format!(".b{}", self.bits),
            n => format!(".v{n}.b{}", self.bits),
        }
    }

    /// The type of a word in a PTX register: there are none of 8 bits.
    pub fn register(self) -> Ty {
        Ty::scalar(int_of(self.bits.max(16)))
    }

    /// LLVM's constraint letter of such a register.
    pub fn constraint(self) -> char {
        match self.bits {
            64 => 'l',
            32 => 'r',
            _ => 'h',
        }
    }
}

/// Bits of an element in memory.
pub(super) fn memory_bits(ty: Ty) -> u32 {
    ty.bits().max(8)
}

fn cache_suffix(cache: tt::CacheModifier, load: bool) -> &'static str {
    match (cache, load) {
        (tt::CacheModifier::Ca, true) => ".ca",
        (tt::CacheModifier::Cg, _) => ".cg",
        (tt::CacheModifier::Cs, _) => ".cs",
        (tt::CacheModifier::Cv, true) => ".cv",
        (tt::CacheModifier::Wb, false) => ".wb",
        (tt::CacheModifier::Wt, false) => ".wt",
        _ => "",
    }
}

fn evict_suffix(evict: tt::EvictionPolicy) -> &'static str {
    match evict {
        tt::EvictionPolicy::Normal => "",
        tt::EvictionPolicy::First => ".L1::evict_first",
        tt::EvictionPolicy::Last => ".L1::evict_last",
    }
}

/// The pieces of one inline-assembly template.
#[derive(Debug, Default)]
pub(crate) struct Asm {
    pub text: String,
    pub constraints: String,
    pub results: SmallVec<[Ty; 4]>,
    pub args: SmallVec<[Value; 8]>,
}

impl Asm {
    fn constraint(&mut self, c: &str) {
        if !self.constraints.is_empty() {
            self.constraints.push(',');
        }
        self.constraints.push_str(c);
    }

    /// Declares the results; they are `$0`, `$1`, …
    pub fn outputs(&mut self, ty: Ty, letter: char, count: u32) {
        for _ in 0..count {
            self.constraint(&format!("={letter}"));
            self.results.push(ty);
        }
    }

    /// Adds an operand and gives its name in the template.
    pub fn arg(&mut self, v: Value, letter: char) -> String {
        self.constraint(&letter.to_string());
        self.args.push(v);
        format!("${}", self.results.len() + self.args.len() - 1)
    }
}

impl Lower<'_> {
    /// The width of a tensor access in elements and the axis it runs along.
    pub fn access_width(&self, layout: &TileLayout, bits: u32) -> (usize, u32) {
        let promised = self.int_attr(marks::VEC).unwrap_or(1).max(1) as u32;
        let axis = self.int_attr(marks::VEC_AXIS).map_or(layout.order()[0] as usize, |a| a as usize);
        if axis >= layout.rank() {
            return (0, 1);
        }
        let width = promised.min(layout.contig_along(axis)).min(128 / bits);
        // The promise is a power of two; what is not would straddle words.
        (axis, 1 << width.max(1).ilog2())
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
    pub fn words_of(&mut self, elements: &[Value], words: Words) -> SmallVec<[Value; 4]> {
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

    // ---- global memory ---------------------------------------------------------------------------------------------

    /// One global load of `words`, where `pred` holds; elsewhere the words are those of `other`, or zero. `early`: these are
    /// written behind the load. The assembler moves a load towards its first use if they stand before it, which saves
    /// registers, and selects between them and what came if they stand behind, which takes instructions.
    fn load_global(
        &mut self,
        ptr: Value,
        words: Words,
        pred: Option<Value>,
        other: Option<&[Value]>,
        modifiers: &str,
        early: bool,
    ) -> SmallVec<[Value; 4]> {
        let mut asm = Asm::default();
        asm.outputs(words.register(), words.constraint(), words.count);
        let (base, offset) = self.b.split_offset(ptr);
        // The immediate of an access is a signed 32-bit number.
        let (base, offset) = if i32::try_from(offset).is_ok() { (base, offset) } else { (ptr, 0) };
        let address = asm.arg(base, 'l');
        let immediate = if offset == 0 {
            String::new()
        } else {
            let c = self.b.i32(offset);
            format!("+{}", asm.arg(c, 'n'))
        };
        let mut otherwise = String::new();
        if let Some(pred) = pred {
            let p = asm.arg(pred, 'b');
            let condition = if early { format!("@!{p} ") } else { String::new() };
            let word_bits = words.bits.max(16);
            for i in 0..words.count {
                let value = match other.map(|values| values[i as usize]) {
                    Some(v) if self.b.as_const(v).is_some() => asm.arg(v, 'n'),
                    Some(v) => asm.arg(v, words.constraint()),
                    None => "0".into(),
                };
                let _ = write!(otherwise, "{condition}mov.b{word_bits} ${i}, {value}; ");
            }
            if !early {
                asm.text = std::mem::take(&mut otherwise);
            }
            let _ = write!(asm.text, "@{p} ");
        }
        let suffix = words.suffix();
        let targets = if words.count == 1 {
            "$0".to_string()
        } else {
            let names: Vec<String> = (0..words.count).map(|i| format!("${i}")).collect();
            format!("{{{}}}", names.join(", "))
        };
        let _ = write!(asm.text, "ld{modifiers}{suffix} {targets}, [{address}{immediate}]; {otherwise}");
        let (text, constraints) = (asm.text, asm.constraints);
        self.b.asm(&text, &constraints, Effect::Read, &asm.results, &asm.args)
    }

    /// One global store of `words`, where `pred` holds.
    fn store_global(
        &mut self,
        ptr: Value,
        values: &[Value],
        words: Words,
        pred: Option<Value>,
        modifiers: &str,
    ) {
        let mut asm = Asm::default();
        let (base, offset) = self.b.split_offset(ptr);
        let (base, offset) = if i32::try_from(offset).is_ok() { (base, offset) } else { (ptr, 0) };
        let address = asm.arg(base, 'l');
        let names: Vec<String> = values.iter().map(|&v| asm.arg(v, words.constraint())).collect();
        let immediate = if offset == 0 {
            String::new()
        } else {
            let c = self.b.i32(offset);
            format!("+{}", asm.arg(c, 'n'))
        };
        if let Some(pred) = pred {
            let p = asm.arg(pred, 'b');
            let _ = write!(asm.text, "@{p} ");
        }
        let suffix = words.suffix();
        let sources = if names.len() == 1 { names[0].clone() } else { format!("{{{}}}", names.join(", ")) };
        let _ = write!(asm.text, "st{modifiers}{suffix} [{address}{immediate}], {sources};");
        let (text, constraints) = (asm.text, asm.constraints);
        self.b.asm(&text, &constraints, Effect::Write, &[], &asm.args);
    }

    /// Whether several threads load one element.
    pub fn loads_copies(&mut self, op: tt::Load) -> Result<bool> {
        let ty = self.value_ty(op.result(self.m));
        if !self.m.is_tensor(ty) {
            return Ok(true);
        }
        let layout = self.layout(ty)?;
        Ok(self.copies(&layout) != 0)
    }

    /// Before a write to global memory: waits for the other threads' loads of what may be the same elements. A thread
    /// that alone loads and stores an element needs no barrier.
    pub fn before_global_write(&mut self) {
        if self.shared_loads {
            self.barrier();
        }
    }

    pub fn load(&mut self, op: tt::Load) -> Result<()> {
        let m = self.m;
        self.shared_loads |= self.loads_copies(op)?;
        let result = op.result(m);
        let ty = self.elem_ty(self.value_ty(result))?;
        let bits = memory_bits(ty);
        let ptrs = self.regs(op.ptr(m))?;
        let mask = op.mask(m).map(|v| self.regs(v)).transpose()?;
        let other = op.other(m).map(|v| self.regs(v)).transpose()?;
        let modifiers = if op.is_volatile(m) {
            ".volatile.global".to_string()
        } else {
            format!(".global{}{}", cache_suffix(op.cache(m), true), evict_suffix(op.evict(m)))
        };
        if !m.is_tensor(self.value_ty(result)) {
            let words = Words::of(1, bits);
            let pred = mask.map(|p| p[0]);
            let pred = self.all(&[pred]);
            let other = other.map(|o| self.words_of(&[o[0]], words));
            let loaded = self.load_global(ptrs[0], words, pred, other.as_deref(), &modifiers, false);
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
        self.loads_in_loops |= groups.len() > 1 && self.is_in_loop();
        // A thread that loads once has nothing else to wait with, so that its load should begin when it can.
        let early = groups.len() == 1 && !self.is_in_loop();
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
                self.load_global(ptrs[first], words, pred, fallback.as_deref(), &modifiers, early)
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

    /// Whether the operation being lowered may run more than once in a program.
    fn is_in_loop(&self) -> bool {
        let is_loop = |op| matches!(self.m.opcode(op), Some(Opcode::Scf(scf::Kind::For | scf::Kind::While)));
        std::iter::successors(self.m.parent_op(self.op), |&op| self.m.parent_op(op)).any(is_loop)
    }

    pub fn store(&mut self, op: tt::Store) -> Result<()> {
        let m = self.m;
        self.before_global_write();
        let value = op.value(m);
        let ty = self.elem_ty(self.value_ty(value))?;
        let bits = memory_bits(ty);
        let ptrs = self.regs(op.ptr(m))?;
        let values = self.regs(value)?;
        let mask = op.mask(m).map(|v| self.regs(v)).transpose()?;
        let cache = cache_suffix(op.cache(m), false);
        let evict = match op.evict(m) {
            // Results are rarely read again by the program that writes them, and L1 has room for what it reads.
            tt::EvictionPolicy::Normal if cache.is_empty() && self.target.facts().streaming_stores => {
                ".L1::no_allocate"
            }
            policy => evict_suffix(policy),
        };
        let modifiers = format!(".global{cache}{evict}");
        if !m.is_tensor(self.value_ty(value)) {
            let words = Words::of(1, bits);
            let first = self.is_first_thread();
            let pred = self.all(&[mask.map(|p| p[0]), Some(first)]);
            let stored = self.words_of(&[values[0]], words);
            self.store_global(ptrs[0], &stored, words, pred, &modifiers);
            return Ok(());
        }
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
            self.store_global(ptrs[first], &stored, words, pred, &modifiers);
        }
        Ok(())
    }

    // ---- shared memory ---------------------------------------------------------------------------------------------

    /// Stores elements that are consecutive in shared memory, aligned to their whole width, where `pred` holds.
    pub fn store_shared(&mut self, ptr: Value, elements: &[Value], pred: Option<Value>) {
        let bits = memory_bits(self.b.ty(elements[0]));
        let words = Words::of(elements.len() as u32, bits);
        let values = self.words_of(elements, words);
        let mut asm = Asm::default();
        let (base, offset) = self.b.split_offset(ptr);
        let address = asm.arg(base, 'r');
        let names: Vec<String> = values.iter().map(|&v| asm.arg(v, words.constraint())).collect();
        let immediate = if offset == 0 {
            String::new()
        } else {
            let c = self.b.i32(offset);
            format!("+{}", asm.arg(c, 'n'))
        };
        if let Some(pred) = pred.filter(|&p| !self.b.is_true(p)) {
            let p = asm.arg(pred, 'b');
            let _ = write!(asm.text, "@{p} ");
        }
        let suffix = words.suffix();
        let sources = if names.len() == 1 { names[0].clone() } else { format!("{{{}}}", names.join(", ")) };
        let _ = write!(asm.text, "st.shared{suffix} [{address}{immediate}], {sources};");
        let (text, constraints) = (asm.text, asm.constraints);
        self.b.asm(&text, &constraints, Effect::Write, &[], &asm.args);
    }

    /// Loads `count` consecutive elements from shared memory, aligned to their whole width.
    pub fn load_shared(&mut self, ptr: Value, ty: Ty, count: u32) -> Vec<Value> {
        self.load_shared_where(ptr, ty, count, None)
    }

    /// [`Lower::load_shared`] where `pred` holds; elsewhere the elements are zero.
    pub fn load_shared_where(&mut self, ptr: Value, ty: Ty, count: u32, pred: Option<Value>) -> Vec<Value> {
        self.load_shared_of("shared", ptr, ty, count, pred)
    }

    /// [`Lower::load_shared_where`] from a state space: `shared` or, for addresses in a CTA of the cluster, `shared::cluster`.
    pub fn load_shared_of(
        &mut self,
        space: &str,
        ptr: Value,
        ty: Ty,
        count: u32,
        pred: Option<Value>,
    ) -> Vec<Value> {
        let words = Words::of(count, memory_bits(ty));
        let mut asm = Asm::default();
        asm.outputs(words.register(), words.constraint(), words.count);
        let (base, offset) = self.b.split_offset(ptr);
        let address = asm.arg(base, 'r');
        let immediate = if offset == 0 {
            String::new()
        } else {
            let c = self.b.i32(offset);
            format!("+{}", asm.arg(c, 'n'))
        };
        if let Some(pred) = pred.filter(|&p| !self.b.is_true(p)) {
            for i in 0..words.count {
                let _ = write!(asm.text, "mov.b{} ${i}, 0; ", words.bits.max(16));
            }
            let p = asm.arg(pred, 'b');
            let _ = write!(asm.text, "@{p} ");
        }
        let suffix = words.suffix();
        let targets = if words.count == 1 {
            "$0".to_string()
        } else {
            let names: Vec<String> = (0..words.count).map(|i| format!("${i}")).collect();
            format!("{{{}}}", names.join(", "))
        };
        let _ = write!(asm.text, "ld.{space}{suffix} {targets}, [{address}{immediate}];");
        let (text, constraints) = (asm.text, asm.constraints);
        let loaded = self.b.asm(&text, &constraints, Effect::Read, &asm.results, &asm.args);
        self.elements_of(&loaded, words, ty)
    }
}
