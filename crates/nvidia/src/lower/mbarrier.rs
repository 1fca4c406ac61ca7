//! mbarriers: objects of 8 bytes in shared memory that count arrivals and bytes of copies (PTX ISA, "mbarrier").
//!
//! One thread of the scope works on them on behalf of all, but for waits, which every thread does for itself: it then sees
//! what the phase waited for brought.

use tilewright_ir as ir;
use tilewright_ir::dialect::{ttg, ttng};
use tilewright_ir::marks;
use tilewright_llvm::{BinOp, Effect, IntPred, Ty, Value};

use super::access::Asm;
use super::{Lower, Result};

/// As many arrivals are made one by one.
const MAX_SINGLE_ARRIVALS: i32 = 64;

/// The operand of an instruction on an mbarrier: `[base+constant]`.
fn operand(asm: &mut Asm, (base, offset): (Value, Value)) -> String {
    let base = asm.arg(base, 'r');
    format!("[{base}+{}]", asm.arg(offset, 'n'))
}

impl Lower<'_, '_> {
    /// Shared memory as instructions on mbarriers name it: `::cta` came with clusters (PTX ISA, "mbarrier").
    fn shared_qualifier(&self) -> &'static str {
        if self.target.tma { "shared::cta" } else { "shared" }
    }

    /// The address of an mbarrier.
    pub fn mbarrier(&mut self, barrier: ir::Value) -> Result<Value> {
        let ty = self.value_ty(barrier);
        let buffer = self.buffer(barrier)?;
        let shared = self.shared_layout(ty)?;
        let at = shared.offset(&buffer.offsets) * 8;
        Ok(self.b.ptr_add_const(buffer.base, i64::from(at)))
    }

    /// Whether this is the elected thread of the scope: the elected lane of its first warp. `elect.sync`
    /// tells `ptxas` that a single thread runs what follows, so that descriptors and coordinates may be in uniform registers.
    pub fn elected_thread(&mut self) -> Value {
        let elected = self.elected_lane();
        if self.num_warps == 1 {
            return elected;
        }
        let first = self.first_warp();
        self.b.bin(BinOp::And, first, elected)
    }

    /// Whether this is the first warp of the scope.
    pub fn first_warp(&mut self) -> Value {
        let (warp, zero) = (self.uniform_warp(), self.b.i32(0));
        self.b.icmp(IntPred::Eq, warp, zero)
    }

    /// Whether this is the elected lane of its warp: the same one whenever all lanes are there (PTX ISA, "elect.sync"), so that a kernel asks once.
    pub fn elected_lane(&mut self) -> Value {
        if !self.target.tma {
            // Before sm_90 nobody is elected.
            let tid = self.launched_tid();
            let lanes = i64::from(self.target.warp_size);
            let (mask, zero) = (self.b.i32(lanes - 1), self.b.i32(0));
            let lane = self.b.and(tid, mask);
            return self.b.icmp(IntPred::Eq, lane, zero);
        }
        self.b.asm1("elect.sync _|$0, 0xffffffff;", "=b", Effect::Together, Ty::I1, &[])
    }

    /// The elected thread, where a condition of the program holds too.
    pub fn elected_thread_where(&mut self, pred: Option<ir::Value>) -> Result<Value> {
        let one = self.elected_thread();
        let Some(pred) = pred else { return Ok(one) };
        let pred = self.scalar(pred)?;
        Ok(if self.b.is_true(pred) { one } else { self.b.bin(BinOp::And, one, pred) })
    }

    /// One instruction on an mbarrier under a predicate: `text` with `[$]` for the address and what follows it.
    fn on_barrier(&mut self, pred: Value, name: &str, sink: bool, address: Value, argument: Option<i32>) {
        let mut asm = Asm::default();
        let pred = asm.arg(pred, 'b');
        let at = operand(&mut asm, self.parts_of(address));
        let sink = if sink { "_, " } else { "" };
        let argument = argument.map_or(String::new(), |a| format!(", {a}"));
        let text = format!("@{pred} mbarrier.{name}.{} {sink}{at}{argument};", self.barrier_type());
        self.b.asm(&text, &asm.constraints, Effect::Write, &[], &asm.args);
    }

    /// How instructions on mbarriers end: `shared::cta.b64`.
    fn barrier_type(&self) -> String {
        format!("{}.b64", self.shared_qualifier())
    }

    /// An address as base and constant.
    fn parts_of(&mut self, address: Value) -> (Value, Value) {
        let (base, offset) = self.b.split_offset(address);
        (base, self.b.i32(offset))
    }

    pub fn init_barrier(&mut self, op: ttng::InitBarrier) -> Result<()> {
        let address = self.mbarrier(op.alloc(self.m))?;
        let one = self.elected_thread();
        // What copies bring makes one of the arrivals, counted in parts.
        let parts = self.int_attr(marks::PHASE_BYTES).map(|bytes| bytes as i32 / ttng::BYTES_OF_ARRIVAL - 1);
        self.on_barrier(one, "init", false, address, Some(op.count(self.m) + parts.unwrap_or(0)));
        if !self.target.tma {
            return Ok(());
        }
        // For the copies that will signal it; `ptxas` makes no instruction of it.
        let mut asm = Asm::default();
        let one = asm.arg(one, 'b');
        let text = format!("@{one} fence.mbarrier_init.release.cluster;");
        self.b.asm(&text, &asm.constraints, Effect::Write, &[], &asm.args);
        Ok(())
    }

    pub fn inval_barrier(&mut self, op: ttng::InvalBarrier) -> Result<()> {
        let address = self.mbarrier(op.alloc(self.m))?;
        let one = self.elected_thread();
        self.on_barrier(one, "inval", false, address, None);
        Ok(())
    }

    pub fn barrier_expect(&mut self, op: ttng::BarrierExpect) -> Result<()> {
        let address = self.mbarrier(op.alloc(self.m))?;
        let size = op.size(self.m);
        let in_parts = self.int_attr(marks::PHASE_BYTES).is_some();
        let parts = self.parts_of(address);
        let of = self.barrier_type();
        self.issue(op.0, op.pred(self.m), |asm, one| {
            let at = operand(asm, parts);
            // Together they would be one arrival, and these are as many as parts of 16 bytes.
            let lines = if in_parts {
                let count = size / ttng::BYTES_OF_ARRIVAL;
                format!(
                    "@{one} mbarrier.expect_tx.relaxed.cta.{of} {at}, {size};\n\
                     @{one} mbarrier.arrive.{of} _, {at}, {count};\n"
                )
            } else {
                format!("@{one} mbarrier.arrive.expect_tx.{of} _, {at}, {size};\n")
            };
            asm.text.push_str(&lines);
        })
    }

    pub fn arrive_barrier(&mut self, op: ttng::ArriveBarrier) -> Result<()> {
        let address = self.mbarrier(op.alloc(self.m))?;
        let pred = if op.per_warp(self.m) {
            // One lane arrives for the warp, once all of its lanes have come here.
            let all = self.b.i32(-1);
            self.b.intrinsic("llvm.nvvm.bar.warp.sync", Effect::Write, None, &[all]);
            let elected = self.elected_lane();
            match op.pred(self.m) {
                Some(pred) => {
                    let pred = self.scalar(pred)?;
                    self.b.and(elected, pred)
                }
                None => elected,
            }
        } else {
            self.elected_thread_where(op.pred(self.m))?
        };
        let count = op.count(self.m);
        if let Some(cta) = op.cta(self.m) {
            let cta = self.scalar(cta)?;
            self.arrive_at(pred, address, cta, count);
            return Ok(());
        }
        let Some(peers) = self.int_attr(marks::PEERS) else {
            if self.target.tma {
                self.on_barrier(pred, "arrive", true, address, Some(count));
                return Ok(());
            }
            // Several arrivals at once are of sm_90 (PTX ISA, "mbarrier.arrive").
            if count > MAX_SINGLE_ARRIVALS {
                let what = format!("{count} arrivals at once at a barrier on {}", self.target.name);
                return Err(self.unsupported(&what));
            }
            for _ in 0..count {
                self.on_barrier(pred, "arrive", true, address, None);
            }
            return Ok(());
        };
        for difference in (0..32).filter(|x| peers >> x & 1 != 0) {
            let cta = self.cluster_peer(difference);
            self.arrive_at(pred, address, cta, count);
        }
        Ok(())
    }

    /// Whether threads write to memory of other CTAs, which these see behind a wait.
    fn writes_to_others(&self) -> bool {
        let m = self.m;
        m.all_ops(m.root()).into_iter().any(|op| ttg::RemotePtr::cast(m, op).is_some())
    }

    /// Arrives at the mbarrier of another CTA. Unless threads write there, what that tells it is that these warps have read a slot. For a
    /// release with cluster scope `ptxas` makes a memory barrier of the whole GPU, which halves the speed of a matrix product.
    fn arrive_at(&mut self, pred: Value, address: Value, cta: Value, count: i32) {
        let release = if self.writes_to_others() { ".release.cluster" } else { "" };
        let there = self.mapped(address, cta);
        let mut asm = Asm::default();
        let pred = asm.arg(pred, 'b');
        let there = asm.arg(there, 'r');
        let text = format!("@{pred} mbarrier.arrive{release}.shared::cluster.b64 _, [{there}], {count};");
        self.b.asm(&text, &asm.constraints, Effect::Write, &[], &asm.args);
    }

    pub fn async_copy_mbarrier_arrive(&mut self, op: ttng::AsyncCopyMbarrierArrive) -> Result<()> {
        let address = self.mbarrier(op.barrier(self.m))?;
        let noinc = if op.no_increment(self.m) { ".noinc" } else { "" };
        let space = self.shared_qualifier();
        let text = format!("cp.async.mbarrier.arrive{noinc}.{space}.b64 [$0];");
        self.b.asm(&text, "r", Effect::Write, &[], &[address]);
        Ok(())
    }

    /// Every thread polls; the hardware lets it sleep for a while in `try_wait`. Where one thread's wait is enough its warp learns by a vote that it has ended: a
    /// warp that branches as one leaves what the loop has in uniform registers there (`issue.rs`).
    pub fn wait_barrier(&mut self, op: ttng::WaitBarrier) -> Result<()> {
        let address = self.mbarrier(op.alloc(self.m))?;
        let phase = self.scalar(op.phase(self.m))?;
        let mut asm = Asm::default();
        let at = operand(&mut asm, self.parts_of(address));
        let phase = asm.arg(phase, 'r');
        let elected = self.m.op_attr(op.0, marks::ELECTED).is_some();
        let waits = match op.pred(self.m) {
            _ if elected && self.num_warps == 1 => None,
            _ if elected => Some(self.first_warp()),
            Some(pred) => Some(self.scalar(pred)?),
            None => None,
        };
        let (mut skip, mut done) = (String::new(), "");
        if let Some(waits) = waits.filter(|&waits| !self.b.is_true(waits)) {
            (skip, done) = (format!("@!{} bra.uni done;\n", asm.arg(waits, 'b')), "done:\n");
        }
        // `test_wait` looks once; `try_wait`, from sm_90 on, sleeps a while (PTX ISA, "mbarrier.test_wait").
        let space = self.shared_qualifier();
        let wait = if self.target.tma { "try_wait" } else { "test_wait" };
        let acquire = if self.writes_to_others() { ".acquire.cluster" } else { "" };
        let look = format!("mbarrier.{wait}.parity{acquire}.{space}.b64 complete, {at}, {phase};");
        let poll = if elected {
            let one = self.elected_lane();
            let one = asm.arg(one, 'b');
            format!(
                "setp.eq.u32 complete, 0, 0;\n@{one} {look}\n\
                 vote.sync.all.pred complete, complete, 0xffffffff;\n@!complete bra.uni again;\n"
            )
        } else {
            format!("{look}\n@!complete bra again;\n")
        };
        let text = format!("{{\n.reg .pred complete;\n{skip}again:\n{poll}{done}}}");
        self.b.asm(&text, &asm.constraints, Effect::Write, &[], &asm.args);
        Ok(())
    }
}
