//! Accesses to the memory of ranks that NVSHMEM reaches: calls of its functions for one thread, and for a warp, through those of `symmetric.ll`, which branch by
//! predicates and take pointers apart.
//!
//! Each word is a call of its own, but for what `tt.send` moves from memory to memory, where a warp sends its part at once: NVSHMEM stores or loads it where a peer's memory can be reached directly, and sends it over the network elsewhere. What releases
//! waits before until all that was sent is there ("quiet"), and so does the end of a kernel.

use smallvec::smallvec;
use tilewright_ir::dialect::tt;
use tilewright_llvm::{BinOp, CastOp, Effect, IntPred, Scalar, Space, Ty, Value};
use tilewright_lower::{Atomic, Hooks as _, WordValues, Words, int_of};

use super::{Lower, Nvidia, Result};

/// The functions that this file calls, as LLVM IR.
pub(crate) const FUNCTIONS: &str = include_str!("symmetric.ll");

/// What their names begin with.
pub(crate) const PREFIX: &str = "tilewright_symmetric_";

impl Lower<'_, '_> {
    /// Whether a pointer is one to the memory of ranks that a library reaches.
    pub fn is_symmetric(&self, ptr: Value) -> bool {
        self.b.ty(ptr).scalar == Scalar::Ptr(Space::Symmetric)
    }

    fn call_symmetric(&mut self, name: &str, results: &[Ty], args: &[Value]) -> Option<Value> {
        let params: Vec<Ty> = args.iter().map(|&a| self.b.ty(a)).collect();
        let callee = self.b.module.declare(&format!("{PREFIX}{name}"), &params, results);
        self.b.call(callee, args).first().copied()
    }

    fn symmetric_address(&mut self, ptr: Value, word: u32, words: Words) -> Value {
        let address = self.b.cast(CastOp::PtrToInt, ptr, Ty::I64);
        let offset = self.b.constant(Ty::I64, u64::from(word * words.bits / 8));
        self.b.bin(BinOp::Add, address, offset)
    }

    fn where_it_holds(&mut self, pred: Option<Value>) -> Value {
        pred.unwrap_or_else(|| self.b.constant(Ty::I1, 1))
    }

    /// The words from another rank, where `pred` holds; elsewhere they are those of `other`, or zero.
    pub fn load_symmetric(
        &mut self,
        ptr: Value,
        words: Words,
        pred: Option<Value>,
        other: Option<&[Value]>,
    ) -> WordValues {
        let pred = self.where_it_holds(pred);
        let mut out = smallvec![];
        for i in 0..words.count {
            let address = self.symmetric_address(ptr, i, words);
            let zero = self.b.zero(words.register());
            let other = other.map_or(zero, |values| values[i as usize]);
            let name = format!("get{}", words.bits);
            out.extend(self.call_symmetric(&name, &[words.register()], &[pred, address, other]));
        }
        out
    }

    /// The words to another rank, where `pred` holds.
    pub fn store_symmetric(&mut self, ptr: Value, values: &[Value], words: Words, pred: Option<Value>) {
        let pred = self.where_it_holds(pred);
        for (i, &value) in values.iter().enumerate() {
            let address = self.symmetric_address(ptr, i as u32, words);
            self.call_symmetric(&format!("put{}", words.bits), &[], &[pred, address, value]);
        }
    }

    /// Each warp sends its part, of a multiple of 16 bytes.
    pub fn send(&mut self, op: tt::Send) -> Result<()> {
        let m = self.m;
        let [there, here, bytes] = [op.dst(m), op.src(m), op.bytes(m)].map(|v| self.scalar(v));
        let (there, here, bytes) = (there?, here?, bytes?);
        if !op.released(m) {
            // What other threads have stored is sent, too.
            Nvidia::barrier(self);
            self.b.asm("fence.acq_rel.sys;", "~{memory}", Effect::Write, &[], &[]);
        }
        let warps = u64::from(self.num_warps);
        let [shift, rest, whole] = [4, 16 * warps - 1, warps].map(|n| self.b.constant(Ty::I64, n));
        // (A part of all warps has 16 bytes of each.)
        let rounded = self.b.bin(BinOp::Add, bytes, rest);
        let units = self.b.bin(BinOp::LShr, rounded, shift);
        let units = self.b.bin(BinOp::UDiv, units, whole);
        let part = self.b.bin(BinOp::Shl, units, shift);
        let warp = self.uniform_warp();
        let warp = self.b.cast(CastOp::ZExt, warp, Ty::I64);
        let begin = self.b.bin(BinOp::Mul, warp, part);
        let left = self.b.bin(BinOp::Sub, bytes, begin);
        let zero = self.b.constant(Ty::I64, 0);
        let sends = self.b.icmp(IntPred::Sgt, left, zero);
        let is_last = self.b.icmp(IntPred::Slt, left, part);
        let size = self.b.select(is_last, left, part);
        let [to, from] = [there, here].map(|ptr| {
            let address = self.b.cast(CastOp::PtrToInt, ptr, Ty::I64);
            self.b.bin(BinOp::Add, address, begin)
        });
        self.call_symmetric("send", &[], &[sends, to, from, size]);
        Ok(())
    }

    /// One element's atomic operation in another rank's memory; gives its bits before.
    pub fn atomic_symmetric(
        &mut self,
        what: Atomic,
        ptr: Value,
        values: &[Value],
        pred: Option<Value>,
    ) -> Result<Value> {
        let bits = what.ty.bits();
        let name = match what.rmw {
            None => "cas",
            Some(tt::RmwOp::Add) => "add",
            Some(tt::RmwOp::And) => "and",
            Some(tt::RmwOp::Or) => "or",
            Some(tt::RmwOp::Xor) => "xor",
            Some(tt::RmwOp::Exch) => "exch",
            Some(kind) => {
                let what = format!("atomic {} of this type in memory that NVSHMEM reaches", kind.keyword());
                return Err(self.unsupported(what));
            }
        };
        if bits < 32 {
            return Err(
                self.unsupported(format!("atomics on {bits}-bit values in memory that NVSHMEM reaches"))
            );
        }
        let pred = self.where_it_holds(pred);
        if matches!(what.sem, tt::MemSemantic::Release | tt::MemSemantic::AcquireRelease) {
            self.quiet(pred);
        }
        let int = Ty::scalar(int_of(bits));
        let words = Words::of(1, bits);
        let mut args = vec![pred, self.symmetric_address(ptr, 0, words)];
        for &v in values {
            args.push(if self.b.ty(v).is_int() { v } else { self.b.bitcast(v, int) });
        }
        let old = self.call_symmetric(&format!("{name}{bits}"), &[int], &args);
        if matches!(what.sem, tt::MemSemantic::Acquire | tt::MemSemantic::AcquireRelease) {
            self.b.asm("fence.acq_rel.sys;", "~{memory}", Effect::Write, &[], &[]);
        }
        Ok(old.unwrap_or_else(|| self.b.zero(int)))
    }

    /// Waits where `pred` holds until all that the program has sent is there, and orders what it has stored itself.
    fn quiet(&mut self, pred: Value) {
        self.b.asm("fence.acq_rel.sys;", "~{memory}", Effect::Write, &[], &[]);
        self.call_symmetric("quiet", &[], &[pred]);
    }

    /// Before a kernel ends: what it has sent is there.
    pub fn end_symmetric(&mut self) {
        let sends = self.b.module.declared().any(|name| name.starts_with(PREFIX) && !name.contains("_get"));
        if sends {
            let all = self.b.constant(Ty::I1, 1);
            self.quiet(all);
        }
    }
}
