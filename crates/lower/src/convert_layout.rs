//! `ttg.convert_layout`, by the plan that the layout algebra makes.

use tilewright_ir::Op;
use tilewright_ir::dialect::{scf, ttg};
use tilewright_layout::{
    ConversionPlan, LaneExpr, SharedPlan, ShufflePlan, SyncScope, ThreadParity, TileLayout,
};
use tilewright_llvm::{CastOp, Effect, IntPred, Ty, Value};
use tilewright_passes::analysis::scratch;

use crate::{Hooks, Lower, Regs, Result, Shuffle, int_of, memory_bits};

impl<H: Hooks> Lower<'_, H> {
    pub(crate) fn convert_layout(&mut self, op: ttg::ConvertLayout) -> Result<()> {
        let (src, result) = (op.src(self.m), op.result(self.m));
        let (from, to) = (self.layout(self.value_ty(src))?, self.layout(self.value_ty(result))?);
        let regs = self.regs(src)?;
        let plan = scratch::conversion(self.m, op).map_err(|e| self.error(e.to_string()))?;
        let out = match plan {
            ConversionPlan::Noop => regs.to_vec(),
            ConversionPlan::RegisterPermute(map) => map.iter().map(|&r| regs[r as usize]).collect(),
            ConversionPlan::WarpShuffle(plan) => self.convert_by_shuffles(&plan, &regs),
            ConversionPlan::SharedMemory(plan) => self.convert_by_memory(&plan, &from, &to, &regs)?,
        };
        self.set_regs(result, out);
        Ok(())
    }

    // ---- shuffles --------------------------------------------------------------------------------------------------

    fn convert_by_shuffles(&mut self, plan: &ShufflePlan, regs: &[Value]) -> Vec<Value> {
        if plan.per_word == 1 {
            return self.shuffle_registers(plan, regs);
        }
        let ty = self.b.ty(regs[0]);
        let bits = memory_bits(ty);
        let words: Vec<Value> = regs
            .chunks(plan.per_word as usize)
            .map(|chunk| {
                let ints: Vec<Value> = chunk.iter().map(|&v| self.as_int(v)).collect();
                let word = self.pack_word(&ints);
                self.b.bitcast(word, Ty::scalar(int_of(bits * plan.per_word)))
            })
            .collect();
        let moved = self.shuffle_registers(plan, &words);
        let memory = Ty::scalar(int_of(bits));
        let pieces = moved
            .into_iter()
            .flat_map(|word| self.unpack_word(word, memory, plan.per_word))
            .collect::<Vec<_>>();
        pieces.into_iter().map(|piece| self.from_int(piece, ty)).collect()
    }

    /// A plan on registers of one word, or less, each.
    fn shuffle_registers(&mut self, plan: &ShufflePlan, regs: &[Value]) -> Vec<Value> {
        let mut out: Vec<Option<Value>> = vec![None; plan.reps.len() * plan.dst_registers as usize];
        for &(from, to) in &plan.reps {
            let source = &regs[from as usize..(from + plan.src_registers) as usize];
            let mut v = source.to_vec();
            for step in &plan.pre {
                v = self.select_step(&v, step.mask, step.condition);
            }
            let mut w: Vec<Value> = vec![v[0]; plan.dst_registers as usize];
            for same in plan.rounds.chunk_by(|a, b| a.from == b.from) {
                let offered: Vec<Value> = same.iter().map(|r| v[r.src as usize]).collect();
                let received = self.shuffle_all(&offered, &same[0].from);
                for (round, value) in same.iter().zip(received) {
                    w[round.dst as usize] = value;
                }
            }
            for step in &plan.post {
                w = self.select_step(&w, step.mask, step.condition);
            }
            for (i, value) in w.into_iter().enumerate() {
                out[to as usize + i] = Some(value);
            }
        }
        out.into_iter().flatten().collect()
    }

    fn select_step(&mut self, v: &[Value], mask: u32, condition: ThreadParity) -> Vec<Value> {
        let swap = self.thread_parity(condition);
        (0..v.len()).map(|i| self.b.select(swap, v[i ^ mask as usize], v[i])).collect()
    }

    /// Whether an odd number of the masked bits of lane and warp is set.
    fn thread_parity(&mut self, p: ThreadParity) -> Value {
        let tid = self.tid();
        let mask = p.lane | p.warp << self.lane_bits();
        let bits = self.b.and_const(tid, u64::from(mask));
        let zero = self.b.i32(0);
        if mask.count_ones() <= 1 {
            return self.b.icmp(IntPred::Ne, bits, zero);
        }
        let count = self.b.intrinsic("llvm.ctpop.i32", Effect::Pure, Some(Ty::I32), &[bits]);
        let odd = self.b.and_const(count, 1);
        self.b.icmp(IntPred::Ne, odd, zero)
    }

    /// Shuffles values that come from the same lane, narrow ones several to a word.
    fn shuffle_all(&mut self, values: &[Value], from: &LaneExpr) -> Vec<Value> {
        if from.as_xor() == Some(0) {
            return values.to_vec();
        }
        let ty = self.b.ty(values[0]);
        let per_word = (32 / memory_bits(ty)).max(1) as usize;
        let mut out = Vec::with_capacity(values.len());
        for chunk in values.chunks(per_word) {
            let mut all = chunk.to_vec();
            all.resize(per_word, chunk[0]);
            let bits = memory_bits(ty) * per_word as u32;
            let ints: Vec<Value> = all.iter().map(|&v| self.as_int(v)).collect();
            let word = self.pack_word(&ints);
            let word = self.b.bitcast(word, Ty::scalar(int_of(bits)));
            let moved = match from.as_xor() {
                Some(mask) => self.shuffle(word, Shuffle::Xor(mask)),
                None => {
                    let (lanes, warps) = (from.lane.to_vec(), from.warp.to_vec());
                    let lane = self.linear(&lanes, &warps);
                    let c = self.b.i32(i64::from(from.constant));
                    let lane = self.b.xor(lane, c);
                    self.shuffle(word, Shuffle::Index(lane))
                }
            };
            let memory = Ty::scalar(int_of(memory_bits(ty)));
            let pieces = self.unpack_word(moved, memory, per_word as u32);
            out.extend(pieces.into_iter().take(chunk.len()).map(|p| self.from_int(p, ty)));
        }
        out
    }

    /// A value as an integer of its memory width.
    pub fn as_int(&mut self, v: Value) -> Value {
        let ty = self.b.ty(v);
        let int = Ty::scalar(int_of(memory_bits(ty)));
        if ty == Ty::I1 {
            self.b.int_cast(v, Ty::I8, false)
        } else if ty.is_ptr() {
            self.b.cast(CastOp::PtrToInt, v, int)
        } else {
            self.b.bitcast(v, int)
        }
    }

    /// The reverse of [`Lower::as_int`].
    pub fn from_int(&mut self, v: Value, ty: Ty) -> Value {
        if ty == Ty::I1 {
            let zero = self.b.constant(Ty::I8, 0);
            self.b.icmp(IntPred::Ne, v, zero)
        } else if ty.is_ptr() {
            self.b.cast(CastOp::IntToPtr, v, ty)
        } else {
            self.b.bitcast(v, ty)
        }
    }

    /// Shuffles an integer of any width among the lanes of the warp.
    pub(crate) fn shuffle(&mut self, word: Value, how: Shuffle) -> Value {
        let ty = self.b.ty(word);
        if ty == Ty::I64 {
            let halves = self.b.bitcast(word, Ty::vector(tilewright_llvm::Scalar::I32, 2));
            let (lo, hi) = (self.b.extract(halves, 0), self.b.extract(halves, 1));
            let (lo, hi) = (self.shuffle(lo, how), self.shuffle(hi, how));
            let both = self.b.vector(&[lo, hi]);
            return self.b.bitcast(both, ty);
        }
        let wide = self.b.int_cast(word, Ty::I32, false);
        let moved = H::shuffle(self, wide, how);
        self.b.int_cast(moved, ty, false)
    }

    /// Shuffles a value of any type.
    pub(crate) fn shuffle_value(&mut self, v: Value, how: Shuffle) -> Value {
        let ty = self.b.ty(v);
        let int = self.as_int(v);
        let moved = self.shuffle(int, how);
        self.from_int(moved, ty)
    }

    // ---- shared memory ---------------------------------------------------------------------------------------------

    fn convert_by_memory(
        &mut self,
        plan: &SharedPlan,
        from: &TileLayout,
        to: &TileLayout,
        regs: &Regs,
    ) -> Result<Vec<Value>> {
        let scratch = self.scratch()?;
        let ty = self.b.ty(regs[0]);
        let bytes = memory_bits(ty) / 8;
        let shared = &plan.scratch;
        let writer = self.thread_part(scratch, &plan.store, bytes);
        let reader = self.thread_part(scratch, &plan.load, bytes);
        // Padding that nobody stored is not read.
        let partial = plan.load.needs_predicate || to.is_padded();
        let per_warp = plan.scope == SyncScope::Warp;
        let owner = if per_warp {
            // Each warp stores for itself: only lanes with copies hold back.
            let mask = from.free_variable_masks().lane;
            self.threads_without(mask)
        } else {
            self.is_owner(from)
        };
        let zero = self.b.zero(ty);
        let mut out = vec![zero; to.num_registers() as usize];
        for (i, round) in plan.rounds.iter().enumerate() {
            // Of the iteration before lanes of the same warp may read yet.
            if i > 0 || per_warp && self.is_in_loop() {
                self.wait(per_warp);
            }
            if let Some(matrices) = &plan.matrices {
                let writer = self.thread_offsets(scratch, &matrices.address, bytes);
                for instruction in &matrices.instructions[round.stores.clone()] {
                    let at = self.shared_address(writer, instruction.offset, shared, bytes);
                    H::store_matrices(self, matrices, instruction, at, regs, owner)?;
                }
            }
            let stores = if plan.matrices.is_some() { 0..0 } else { round.stores.clone() };
            for access in &plan.store.accesses[stores] {
                let inside = self.access_predicate(from, access, plan.store.needs_predicate);
                let pred = self.all(&[owner, inside]);
                if pred.is_some_and(|p| self.b.is_false(p)) {
                    continue;
                }
                let at = self.shared_address(writer, access.offset, shared, bytes);
                let elements: Vec<Value> = access.registers.iter().map(|&r| regs[r as usize]).collect();
                self.store_shared(at, &elements, pred);
            }
            self.wait(per_warp);
            for access in &plan.load.accesses[round.loads.clone()] {
                let inside = self.access_predicate(to, access, partial);
                if inside.is_some_and(|p| self.b.is_false(p)) {
                    continue;
                }
                let at = self.shared_address(reader, access.offset, shared, bytes);
                let elements = self.load_shared_where(at, ty, access.registers.len() as u32, inside);
                for (&r, e) in access.registers.iter().zip(elements) {
                    out[r as usize] = e;
                }
            }
        }
        Ok(out)
    }

    /// Whether the current operation is done again and again.
    fn is_in_loop(&self) -> bool {
        let is_loop =
            |&op: &Op| scf::For::cast(self.m, op).is_some() || scf::While::cast(self.m, op).is_some();
        std::iter::successors(self.m.parent_op(self.op), |&op| self.m.parent_op(op)).any(|op| is_loop(&op))
    }

    fn wait(&mut self, per_warp: bool) {
        if per_warp {
            H::warp_barrier(self);
        } else {
            self.barrier();
        }
    }
}
