//! Clusters: CTAs that run at the same time on neighbouring multiprocessors, wait for each other and reach each other's
//! shared memory (PTX ISA, "barrier.cluster", "mapa").

use tilewright_ir as ir;
use tilewright_ir::dialect::{ttg, ttng};
use tilewright_llvm::{BinOp, CastOp, Effect, Ty, Value};

use tilewright_lower::{Words, memory_bits};

use super::warp_specialize::{Handoff, Told};
use super::{Lower, Result};

impl Lower<'_, '_> {
    /// Which CTA of its cluster this one is.
    pub fn cluster_cta_rank(&mut self) -> Value {
        let rank = self.b.asm1("mov.u32 $0, %cluster_ctarank;", "=r", Effect::Pure, Ty::I32, &[]);
        let ctas = ir::launch::cluster_size(self.m);
        self.b.assume_zeros(rank, 0xffff_ffff & !(u64::from(ctas.next_power_of_two()) - 1));
        rank
    }

    /// The index of this CTA among those whose ranks differ in the bits of `mask` alone.
    pub fn cluster_part(&mut self, mask: u32) -> Value {
        let rank = self.cluster_cta_rank();
        let mut index = self.b.i32(0);
        for (to, from) in (0..32).filter(|bit| mask >> bit & 1 != 0).enumerate() {
            let moved = self.b.lshr(rank, from);
            let bit = self.b.and_const(moved, 1);
            let bit = self.b.mul_const(bit, 1 << to);
            index = self.b.add(index, bit);
        }
        index
    }

    /// Those CTAs as bits of a 16-bit word.
    pub fn cluster_set(&mut self, mask: u32) -> Value {
        let ctas = ir::launch::cluster_size(self.m);
        let pattern = (0..ctas).filter(|x| x & !mask == 0).fold(0, |set, x| set | 1i64 << x);
        let rank = self.cluster_cta_rank();
        let first = self.b.and_const(rank, u64::from(!mask));
        let pattern = self.b.i32(pattern);
        let set = self.b.bin(BinOp::Shl, pattern, first);
        self.b.int_cast(set, Ty::I16, false)
    }

    /// The CTA whose rank differs in the bits of `difference`.
    pub fn cluster_peer(&mut self, difference: u32) -> Value {
        let rank = self.cluster_cta_rank();
        let difference = self.b.i32(i64::from(difference));
        self.b.bin(BinOp::Xor, rank, difference)
    }

    /// The cluster's barrier is for all threads that have not ended. The warps of partitions come there, too, as often as
    /// the main warps do before the first `ttg.warp_specialize`; behind the last they have ended, whatever branch or loop
    /// follows, or, where the main warps tell them, end in time.
    fn check_all_come(&mut self) -> Result<()> {
        if self.num_warps == self.scope.launched {
            return Ok(());
        }
        let is_top =
            |op| self.m.parent_op(op).is_some_and(|f| ir::dialect::tt::Func::cast(self.m, f).is_some());
        let is_last = |handoff: &Handoff| self.hooks.last_specialized.is_some_and(|last| handoff.is(last));
        let all_come = match (self.hooks.handoffs.last(), self.hooks.workers_told) {
            (None, _) => is_top(self.op),
            (Some(handoff), None) => is_last(handoff),
            (Some(handoff), Some(Told::Numbers)) => is_last(handoff) && is_top(self.op),
            (Some(_), Some(Told::End)) => true,
        };
        if all_come {
            if !self.hooks.handoffs.is_empty() {
                self.end_workers();
            }
            return Ok(());
        }
        Err(self.unsupported("CTAs of a cluster that wait for each other beside specialized warps"))
    }

    /// In the code of the extra warps: comes to the cluster's barriers that stand before all that they do. They need not
    /// wait at the last: the main warps do, before they hand anything off.
    pub(super) fn come_along(&mut self) {
        for barrier in 1..=self.hooks.cluster_barriers {
            self.b.asm("barrier.cluster.arrive.aligned;", "", Effect::Write, &[], &[]);
            if barrier < self.hooks.cluster_barriers {
                self.b.asm("barrier.cluster.wait.aligned;", "", Effect::Write, &[], &[]);
            }
        }
    }

    pub fn cluster_arrive(&mut self, relaxed: bool) -> Result<()> {
        self.check_all_come()?;
        let relaxed = if relaxed { ".relaxed" } else { "" };
        self.b.asm(&format!("barrier.cluster.arrive{relaxed}.aligned;"), "", Effect::Write, &[], &[]);
        Ok(())
    }

    pub fn cluster_wait(&mut self) -> Result<()> {
        self.hooks.cluster_barriers += u32::from(self.hooks.handoffs.is_empty());
        self.b.asm("barrier.cluster.wait.aligned;", "", Effect::Write, &[], &[]);
        Ok(())
    }

    /// Where a byte of shared memory lies in another CTA.
    pub fn mapped(&mut self, address: Value, cta: Value) -> Value {
        let text = "mapa.shared::cluster.u32 $0, $1, $2;";
        self.b.asm1(text, "=r,r,r", Effect::Pure, Ty::CLUSTER, &[address, cta])
    }

    /// Shared memory of a cluster's CTAs lies in one window, each CTA's in one piece: a place in another CTA's is as far from its
    /// beginning as the same place in this one's.
    pub fn remote_ptr(&mut self, op: ttg::RemotePtr) -> Result<()> {
        let m = self.m;
        let (pointers, rank) = (self.regs(op.src(m))?, self.scalar(op.rank(m))?);
        let smem = self.smem;
        let begin = self.b.global(smem);
        let there = self.mapped(begin, rank);
        let begin = self.b.cast(CastOp::PtrToInt, begin, Ty::I32);
        let mut out = Vec::with_capacity(pointers.len());
        for &pointer in pointers.iter() {
            let at = self.b.cast(CastOp::PtrToInt, pointer, Ty::I32);
            let offset = self.b.sub(at, begin);
            out.push(self.b.ptr_add(there, offset));
        }
        self.set_regs(op.result(m), out);
        Ok(())
    }

    /// Each CTA writes what it has to its scratch memory, all meet, each reads the other's, and all meet again: the scratch
    /// memory may then be used for something else, and the CTA may end.
    pub fn cluster_exchange(&mut self, op: ttng::ClusterExchange) -> Result<()> {
        let (src, peer) = (self.regs(op.src(self.m))?, self.scalar(op.peer(self.m))?);
        let ty = self.elem_ty(self.value_ty(op.src(self.m)))?;
        let base = self.scratch()?;
        let bytes = i64::from(memory_bits(ty) / 8);
        let tensor = self.m.is_tensor(self.value_ty(op.src(self.m)));
        // Every thread has a number; one writes it.
        let (own, writer, step) = if tensor {
            let tid = self.tid();
            let at = self.b.mul_const(tid, bytes);
            (self.b.ptr_add(base, at), None, bytes * i64::from(self.target.warp_size * self.num_warps))
        } else {
            (base, Some(self.is_first_thread()), 0)
        };
        for (r, &value) in src.iter().enumerate() {
            let at = self.b.ptr_add_const(own, step * r as i64);
            self.store_shared(at, &[value], writer);
        }
        self.cluster_arrive(false)?;
        self.cluster_wait()?;
        let theirs = self.mapped(own, peer);
        let mut out = Vec::with_capacity(src.len());
        for r in 0..src.len() {
            let at = self.b.ptr_add_const(theirs, step * r as i64);
            let words = Words::of(1, memory_bits(ty));
            let loaded = self.load_shared_words(at, words, None);
            out.extend(self.elements_of(&loaded, words, ty));
        }
        self.cluster_arrive(false)?;
        self.cluster_wait()?;
        let result = op.result(self.m);
        self.set_regs(result, out);
        Ok(())
    }
}
