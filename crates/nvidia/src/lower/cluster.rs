//! Clusters: CTAs that run at the same time on neighbouring multiprocessors, wait for each other and reach each other's
//! shared memory (PTX ISA, "barrier.cluster", "mapa").

use tilewright_ir::dialect::ttng;
use tilewright_llvm::{Effect, Ty, Value};

use super::memory::memory_bits;
use super::{Lower, Result};

impl Lower<'_> {
    /// Which CTA of its cluster this one is.
    pub fn cluster_cta_rank(&mut self) -> Value {
        let rank = self.b.asm1("mov.u32 $0, %cluster_ctarank;", "=r", Effect::Pure, Ty::I32, &[]);
        let ctas = u64::from(self.num_ctas.next_power_of_two());
        self.b.assume_zeros(rank, 0xffff_ffff & !(ctas - 1));
        rank
    }

    /// The cluster's barrier counts the threads of whole CTAs.
    fn whole_cta(&self) -> Result<()> {
        if self.num_warps == self.scope.launched {
            return Ok(());
        }
        Err(self.unsupported("CTAs of a cluster that wait for each other in a warp-specialized loop"))
    }

    pub fn cluster_arrive(&mut self, relaxed: bool) -> Result<()> {
        self.whole_cta()?;
        let relaxed = if relaxed { ".relaxed" } else { "" };
        self.b.asm(&format!("barrier.cluster.arrive{relaxed}.aligned;"), "", Effect::Write, &[], &[]);
        Ok(())
    }

    pub fn cluster_wait(&mut self) -> Result<()> {
        self.whole_cta()?;
        self.shared_loads = false;
        self.b.asm("barrier.cluster.wait.aligned;", "", Effect::Write, &[], &[]);
        Ok(())
    }

    /// Where a byte of shared memory lies in another CTA.
    fn mapped(&mut self, address: Value, cta: Value) -> Value {
        let text = "mapa.shared::cluster.u32 $0, $1, $2;";
        self.b.asm1(text, "=r,r,r", Effect::Pure, Ty::SHARED, &[address, cta])
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
            (self.b.ptr_add(base, at), None, bytes * 32 * i64::from(self.num_warps))
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
            out.push(self.load_shared_of("shared::cluster", at, ty, 1, None)[0]);
        }
        self.cluster_arrive(false)?;
        self.cluster_wait()?;
        self.set_regs(op.result(self.m), out);
        Ok(())
    }
}
