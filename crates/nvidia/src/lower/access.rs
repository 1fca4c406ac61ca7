//! Accesses to memory, as inline assembly.
//!
//! An access is one PTX instruction of up to 128 bits with a predicate: LLVM has no predicated access, and branches around
//! each one would ruin the schedule. Its address is a base register and an immediate.

use std::fmt::Write as _;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tilewright_ir as ir;
use tilewright_ir::dialect::tt;
use tilewright_ir::opdef::Access;
use tilewright_llvm::{Effect, Ty, Value};
use tilewright_lower::{LoadHints, WordValues, Words};
use tilewright_passes::analysis::global_bases::GlobalBases;
use tilewright_passes::analysis::tile_layout::layout_of;

use super::Lower;

/// Bits that a thread stores to global memory at once, from which on L1 need not keep them.
const WHOLE_STORE: u32 = 128;

/// `.v4.b32`, `.v2.b64`, `.b16`, …
pub(super) fn suffix(words: Words) -> String {
    match words.count {
        1 => format!(".b{}", words.bits),
        n => format!(".v{n}.b{}", words.bits),
    }
}

/// LLVM's constraint letter of a register for such a word: PTX has none of 8 bits.
pub(super) fn letter(words: Words) -> char {
    match words.bits {
        64 => 'l',
        32 => 'r',
        _ => 'h',
    }
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

/// How an access says where it is cached, and what L1 keeps. PTX has it say one of them: what names a cache but the usual one (`.ca`, `.wb`) goes past L1
/// or has a priority of its own, and the usual one needs no name beside a priority. Where it names one, what is said of priorities is for L2.
fn hints_suffix(cache: tt::CacheModifier, evict: tt::EvictionPolicy, load: bool) -> (&'static str, bool) {
    match (cache_suffix(cache, load), evict_suffix(evict)) {
        ("" | ".ca" | ".wb", evict) if !evict.is_empty() => (evict, false),
        (cache, evict) => (cache, !evict.is_empty()),
    }
}

/// Of an access to which a policy of the L2 cache is given as its last operand.
pub(super) const L2_HINT: &str = ".L2::cache_hint";

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

    /// What follows is executed where `pred` holds.
    fn guard(&mut self, pred: Option<Value>) {
        if let Some(pred) = pred {
            let p = self.arg(pred, 'b');
            let _ = write!(self.text, "@{p} ");
        }
    }
}

/// One register, or several as a vector: `$0`, `{$0, $1}`.
pub(super) fn vector(names: &[String]) -> String {
    match names {
        [one] => one.clone(),
        several => format!("{{{}}}", several.join(", ")),
    }
}

/// The results of a load of `count` words.
fn results(count: u32) -> String {
    vector(&(0..count).map(|i| format!("${i}")).collect::<Vec<_>>())
}

impl Lower<'_, '_> {
    /// One global load of `words`, where `pred` holds; elsewhere the words are those of `other`, or zero, unless nobody sees them. [`LoadHints::early`]:
    /// these are written behind the load. The assembler moves a load towards its first use if they stand before it, which saves
    /// registers, and selects between them and what came if they stand behind, which takes instructions.
    pub fn load_global(
        &mut self,
        ptr: Value,
        words: Words,
        pred: Option<Value>,
        other: Option<&[Value]>,
        hints: LoadHints,
    ) -> WordValues {
        let early = hints.early;
        let (cached, in_l2) = hints_suffix(hints.cache, hints.evict, true);
        let policy = if in_l2 && !hints.volatile { self.l2_policy(hints.evict) } else { None };
        let modifiers = match policy {
            _ if hints.volatile => ".volatile.global".to_string(),
            Some(_) => format!(".global{cached}{L2_HINT}"),
            None => format!(".global{cached}"),
        };
        let mut asm = Asm::default();
        asm.outputs(words.register(), letter(words), words.count);
        let (base, offset) = self.split_global(ptr);
        let address = asm.arg(base, 'l');
        let immediate = self.immediate(&mut asm, offset);
        let mut otherwise = String::new();
        if let Some(pred) = pred {
            let p = asm.arg(pred, 'b');
            let condition = if early { format!("@!{p} ") } else { String::new() };
            let word_bits = words.bits.max(16);
            for i in (0..words.count).filter(|_| !hints.unseen) {
                let value = match other.map(|values| values[i as usize]) {
                    Some(v) if self.b.as_const(v).is_some() => asm.arg(v, 'n'),
                    Some(v) => asm.arg(v, letter(words)),
                    None => "0".into(),
                };
                let _ = write!(otherwise, "{condition}mov.b{word_bits} ${i}, {value}; ");
            }
            if !early {
                asm.text = std::mem::take(&mut otherwise);
            }
            let _ = write!(asm.text, "@{p} ");
        }
        let suffix = suffix(words);
        let targets = results(words.count);
        let policy = policy.map_or(String::new(), |policy| format!(", {}", asm.arg(policy, 'l')));
        let _ =
            write!(asm.text, "ld{modifiers}{suffix} {targets}, [{address}{immediate}]{policy}; {otherwise}");
        // A volatile access happens whether its value is used or not.
        let effect = if hints.volatile { Effect::Write } else { Effect::Read };
        self.b.asm(&asm.text, &asm.constraints, effect, &asm.results, &asm.args)
    }

    /// Whether a function may read again what it has read: loads through one pointer stand in several blocks, as those of loops that
    /// walk over a row one after the other do. (Loads of one block read different places.)
    pub fn reads_again(&self, function: ir::Op) -> bool {
        let m = self.m;
        let global = GlobalBases::of(m);
        let mut read: FxHashMap<ir::Value, ir::Block> = FxHashMap::default();
        let loads = m.all_ops(function).into_iter().filter(|&op| tt::Load::cast(m, op).is_some());
        loads.filter_map(|op| Some((op, m.parent_block(op)?))).any(|(op, block)| {
            let bases = global.touched(op, Access::Read);
            bases.into_iter().any(|base| *read.entry(base).or_insert(block) != block)
        })
    }

    /// Whether a function stores a tensor that takes all registers which threads can have: then some of what it computes is in memory
    /// meanwhile, which threads read through L1.
    pub fn spills(&self, function: ir::Op) -> bool {
        let m = self.m;
        let threads = self.scope.launched * self.target.warp_size;
        let stores = m.all_ops(function).into_iter().filter_map(|op| tt::Store::cast(m, op));
        let registers =
            |store: tt::Store| layout_of(m, store.value(m)).map_or(1, |layout| layout.num_registers());
        stores.map(registers).any(|n| n * threads >= self.hooks.target.registers_per_sm())
    }

    /// One global store of `words`, where `pred` holds.
    pub fn store_global(
        &mut self,
        ptr: Value,
        values: &[Value],
        words: Words,
        pred: Option<Value>,
        cache: tt::CacheModifier,
        evict: tt::EvictionPolicy,
    ) {
        let whole = words.bits * words.count >= WHOLE_STORE;
        let (cached, in_l2) = hints_suffix(cache, evict, false);
        let policy = if in_l2 { self.l2_policy(evict) } else { None };
        let hints = match cached {
            // Results are rarely read again by the program that writes them, and L1 has room for what it reads again. (Where it reads nothing again
            // such a store is slower, and so are parts of a sector that several instructions fill: docs/log/2026-11-27.md.)
            "" if whole && self.facts().streaming_stores && self.hooks.needs_l1 => ".L1::no_allocate",
            hints => hints,
        };
        let (base, offset) = self.split_global(ptr);
        let l2 = if policy.is_some() { L2_HINT } else { "" };
        let instruction = format!("st.global{hints}{l2}{}", suffix(words));
        self.write(&instruction, (base, 'l', offset), values, words, pred, policy);
    }

    /// One store of `words` to global memory, each of which others see whole, where `pred` holds.
    pub fn store_relaxed(
        &mut self,
        ptr: Value,
        values: &[Value],
        words: Words,
        pred: Option<Value>,
        scope: tt::MemSyncScope,
    ) {
        let (base, offset) = self.split_global(ptr);
        let space = format!("relaxed.{}.global", scope.keyword());
        self.store(&space, (base, 'l', offset), values, words, pred);
    }

    /// One store of `words` to shared memory, where `pred` holds.
    pub fn store_shared_words(&mut self, ptr: Value, values: &[Value], words: Words, pred: Option<Value>) {
        let (base, offset) = self.b.split_offset(ptr);
        let space = self.shared_space(ptr);
        self.store(space, (base, 'r', offset), values, words, pred);
    }

    /// One instruction, given with its modifiers, that writes words at a base in a register of this constraint letter and an offset; and a policy
    /// of the L2 cache, which its modifiers say that it has.
    pub(super) fn write(
        &mut self,
        instruction: &str,
        (base, register, offset): (Value, char, i64),
        values: &[Value],
        words: Words,
        pred: Option<Value>,
        policy: Option<Value>,
    ) {
        let mut asm = Asm::default();
        let address = asm.arg(base, register);
        let names: Vec<String> = values.iter().map(|&v| asm.arg(v, letter(words))).collect();
        let immediate = self.immediate(&mut asm, offset);
        asm.guard(pred);
        let policy = policy.map_or(String::new(), |policy| format!(", {}", asm.arg(policy, 'l')));
        let _ = write!(asm.text, "{instruction} [{address}{immediate}], {}{policy};", vector(&names));
        self.b.asm(&asm.text, &asm.constraints, Effect::Write, &[], &asm.args);
    }

    /// One store to a state space, given with its modifiers.
    fn store(
        &mut self,
        space: &str,
        at: (Value, char, i64),
        values: &[Value],
        words: Words,
        pred: Option<Value>,
    ) {
        self.write(&format!("st.{space}{}", suffix(words)), at, values, words, pred, None);
    }

    /// The base and the offset of a global address: the immediate of an access is a signed 32-bit number.
    pub(super) fn split_global(&mut self, ptr: Value) -> (Value, i64) {
        let (base, offset) = self.b.split_offset(ptr);
        if i32::try_from(offset).is_ok() { (base, offset) } else { (ptr, 0) }
    }

    /// An offset as it follows the base of an address.
    pub(super) fn immediate(&mut self, asm: &mut Asm, offset: i64) -> String {
        if offset == 0 {
            return String::new();
        }
        let c = self.b.i32(offset);
        format!("+{}", asm.arg(c, 'n'))
    }

    /// The state space of an address in shared memory: this CTA's, or that of a CTA of the cluster.
    pub fn shared_space(&self, ptr: Value) -> &'static str {
        if self.b.ty(ptr) == Ty::CLUSTER { "shared::cluster" } else { "shared" }
    }

    /// One load of `words` from shared memory, where `pred` holds; elsewhere they are zero.
    pub fn load_shared_words(&mut self, ptr: Value, words: Words, pred: Option<Value>) -> WordValues {
        let space = self.shared_space(ptr);
        let mut asm = Asm::default();
        asm.outputs(words.register(), letter(words), words.count);
        let (base, offset) = self.b.split_offset(ptr);
        let address = asm.arg(base, 'r');
        let immediate = self.immediate(&mut asm, offset);
        if pred.is_some() {
            for i in 0..words.count {
                let _ = write!(asm.text, "mov.b{} ${i}, 0; ", words.bits.max(16));
            }
        }
        asm.guard(pred);
        let suffix = suffix(words);
        let targets = results(words.count);
        let _ = write!(asm.text, "ld.{space}{suffix} {targets}, [{address}{immediate}];");
        self.b.asm(&asm.text, &asm.constraints, Effect::Read, &asm.results, &asm.args)
    }

    /// Adds 1 to a word of shared memory where `pred` holds.
    pub fn count_shared(&mut self, at: Value, pred: Option<Value>) {
        let mut asm = Asm::default();
        let (base, offset) = self.b.split_offset(at);
        let address = asm.arg(base, 'r');
        let c = self.b.i32(offset);
        let immediate = asm.arg(c, 'n');
        let guard = match pred {
            Some(p) => format!("@{} ", asm.arg(p, 'b')),
            None => String::new(),
        };
        let text = format!("{guard}red.shared.add.u32 [{address}+{immediate}], 1;");
        let constraints = asm.constraints;
        self.b.asm(&text, &constraints, Effect::Write, &[], &asm.args);
    }
}
