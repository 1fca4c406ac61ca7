//! `ttg.warp_specialize`: the warps beyond `ttg.num-warps` run the partitions.
//!
//! ```text
//! entry:    warp < num_warps ? main : workers          (a warp's index is the same in all of its lanes)
//! main:     …                                           workers:
//!           captures -> shared memory
//!           bar.sync 1                                            bar.sync 1; captures <- shared memory
//!           setmaxnreg.inc                                        setmaxnreg.dec          (warp group by warp group)
//!           default region                                        the partition of this warp
//!           bar.sync 1                                            bar.sync 1
//!           …                                                     (the next ttg.warp_specialize, …) ret
//! ```
//!
//! Partitions that the main warps run themselves ([`marks::REUSE`]) are branches of their code, between two barriers of theirs.
//!
//! Thread and warp indices, the number of warps and the barrier are those of the region being lowered ([`Scope`]): nothing
//! in a region waits for the whole CTA. `setmaxnreg` is executed by all warps of a warp group, idle ones too (PTX ISA,
//! "setmaxnreg": the same instruction by all threads of the warp group).

use tilewright_ir as ir;
use tilewright_ir::TypeKind;
use tilewright_ir::dialect::{tt, ttg, ttng};
use tilewright_ir::marks;
use tilewright_passes::transform::named_barriers;

use tilewright_llvm as llvm;
use tilewright_llvm::{BinOp, Effect, IntPred, Ty, Value};

use tilewright_lower::{Buffer, Scope, Val};

use super::{Lower, Result};

/// The named barrier at which a `ttg.warp_specialize` begins and ends, for all warps. The function has barrier 0,
/// partition i barrier 2 + i, and the warp groups that take turns those from 8 on, or the kernel those from 15 down that it names itself, where
/// nobody takes turns (PTX ISA, "bar": 16 barriers).
const ALL_WARPS: u32 = 1;
const FIRST_PARTITION: u32 = 2;
const MAX_PARTITIONS: usize = 6;
const FIRST_TURN: u32 = 8;

/// How a captured value reaches the partitions.
enum Capture {
    /// It is known without looking at memory: an argument of the function, a constant.
    Known(Val),
    /// A buffer: its address is an offset known here.
    Buffer,
    /// Registers of the default warps, at this offset in shared memory.
    Passed(u32, Vec<Ty>),
}

/// A `ttg.warp_specialize` that the main warps' code contains and the workers' code must follow.
pub(crate) struct Handoff {
    op: ttg::WarpSpecialize,
    captures: Vec<Capture>,
}

impl Handoff {
    /// Whether it is that of an operation.
    pub fn is(&self, op: ir::Op) -> bool {
        self.op.0 == op
    }
}

/// Warp groups that change their registers together, with the partitions they run (index, first warp, warps).
struct Group {
    first: u32,
    end: u32,
    registers: Option<u32>,
    partitions: Vec<(usize, u32, u32)>,
}

/// The operations of a function's body, in order.
///
/// # Errors
/// One that lies within control flow: which warps run is decided once, at the entry.
fn find(m: &ir::Module, func: ir::Op) -> Result<Vec<ttg::WarpSpecialize>> {
    let body = tt::Func(func).body(m);
    let entry = m.region_blocks(body).first().copied();
    let mut found = Vec::new();
    for op in m.all_ops(func) {
        let Some(w) = ttg::WarpSpecialize::cast(m, op) else { continue };
        if m.parent_block(op) != entry || m.region_blocks(body).len() > 1 {
            let what = "`ttg.warp_specialize` inside control flow or another region";
            return Err(Box::new(ir::Diagnostic::unsupported(m, m.op_loc(op), what)));
        }
        if w.partitions(m).len() > MAX_PARTITIONS {
            let what = format!("more than {MAX_PARTITIONS} partitions: there are no more barriers");
            return Err(Box::new(ir::Diagnostic::at(m, m.op_loc(op), what)));
        }
        found.push(w);
    }
    Ok(found)
}

impl Lower<'_, '_> {
    /// At a function's entry: looks what of it extra warps run, and sends them there.
    pub(super) fn find_workers(&mut self, function: ir::Op) -> Result<()> {
        let specialized = find(self.m, function)?;
        let beside = |w: &&ttg::WarpSpecialize| self.m.op_attr(w.0, marks::REUSE).is_none();
        let last = specialized.iter().rfind(beside).map(|w| w.0);
        self.hooks.last_specialized = last;
        if last.is_some() {
            let workers = self.split_workers();
            self.hooks.workers = Some(workers);
        }
        Ok(())
    }

    /// Sends the extra warps away. Returns the block where they go.
    fn split_workers(&mut self) -> llvm::Block {
        let entry = self.b.block();
        let tid = self.launched_tid();
        let lane_bits = self.lane_bits();
        let warp = self.b.lshr(tid, lane_bits);
        let (all, lane, clamp) = (self.b.i32(-1), self.b.i32(0), self.b.i32(31));
        let name = "llvm.nvvm.shfl.sync.idx.i32";
        let warp = self.b.intrinsic(name, Effect::Write, Some(Ty::I32), &[all, warp, lane, clamp]);
        let count = self.0.b.i32(i64::from(self.0.num_warps));
        let is_main = self.b.icmp(IntPred::Ult, warp, count);
        let main = self.b.create_block(entry, None, &[]);
        let workers = self.b.create_block(entry, None, &[]);
        self.hooks.worker_warp = Some(warp);
        self.b.cond_br(is_main, main, &[], workers, &[]);
        self.b.switch_to(main);
        workers
    }

    /// Waits at a named barrier for `warps` warps.
    pub(super) fn named_barrier(&mut self, barrier: u32, warps: u32) {
        let text = format!("bar.sync {barrier}, {};", warps * self.target.warp_size);
        self.b.asm(&text, "", Effect::Write, &[], &[]);
    }

    /// `ttng.named_barrier`: those of the kernel's own are the last ones.
    pub(super) fn authored_barrier(&mut self, op: ttng::NamedBarrier) -> Result<()> {
        let (Some(number), Some(warps)) = (op.number(self.m), op.warps(self.m)) else {
            return Err(self.error("internal: a barrier without a number"));
        };
        let barrier = FIRST_TURN + named_barriers::MOST as u32 - 1 - number as u32;
        let threads = warps as u32 * self.target.warp_size;
        let instruction = if op.arrives(self.m) { "bar.arrive" } else { "bar.sync" };
        self.b.asm(&format!("{instruction} {barrier}, {threads};"), "", Effect::Write, &[], &[]);
        Ok(())
    }

    // ---- order barrier -------------------------------------------------------------------------------------------

    /// `ttng.wait_order_barrier`: a warp group waits at the barrier of its number, for the one before to arrive there.
    pub(super) fn wait_order_barrier(&mut self, op: ttng::WaitOrderBarrier) {
        let group = self.warp_group();
        let zero = self.b.i32(0);
        let first = op.ends(self.m).then(|| self.b.icmp(IntPred::Eq, group, zero));
        self.turn_barrier("bar.sync", group, first);
    }

    /// `ttng.arrive_order_barrier`: it arrives at the next one's.
    pub(super) fn arrive_order_barrier(&mut self, op: ttng::ArriveOrderBarrier) {
        let group = self.warp_group();
        let last_index = i64::from(self.num_warps / 4 - 1);
        let (zero, last) = (self.b.i32(0), self.b.i32(last_index));
        let is_last = self.b.icmp(IntPred::Eq, group, last);
        let after = self.b.add_const(group, 1);
        let next = self.b.select(is_last, zero, after);
        self.turn_barrier("bar.arrive", next, op.begins(self.m).then_some(is_last));
    }

    /// The index of this warp group in its scope, the same in all lanes.
    fn warp_group(&mut self) -> Value {
        let warp = self.uniform_warp();
        let two = self.b.i32(2);
        self.b.bin(BinOp::LShr, warp, two)
    }

    fn turn_barrier(&mut self, instruction: &str, group: Value, pred: Option<Value>) {
        let barrier = self.b.add_const(group, i64::from(FIRST_TURN));
        let pair = 2 * 4 * self.target.warp_size;
        match pred {
            Some(pred) => {
                let text = format!("@$1 {instruction} $0, {pair};");
                self.b.asm(&text, "r,b", Effect::Write, &[], &[barrier, pred]);
            }
            None => {
                self.b.asm(&format!("{instruction} $0, {pair};"), "r", Effect::Write, &[], &[barrier]);
            }
        }
    }

    /// The default region, in the main warps' code.
    pub(super) fn warp_specialize(&mut self, op: ttg::WarpSpecialize) -> Result<()> {
        let m = self.m;
        if m.op_attr(op.0, marks::REUSE).is_some() {
            return self.split_main(op);
        }
        let captures = self.pass_captures(op)?;
        self.named_barrier(ALL_WARPS, self.scope.launched);
        let registers = op.actual_registers(m);
        let last = self.hooks.last_specialized == Some(op.0);
        if let Some(r) = &registers {
            self.set_registers(r[0], self.entry_registers());
        }
        let block = m.region_block(op.default_region(m));
        let end = self.block(block)?.ok_or_else(|| self.error("a region has no terminator"))?;
        let values: Vec<Val> =
            ttg::WarpYield(end).values(m).iter().map(|&v| self.val(v).cloned()).collect::<Result<_>>()?;
        for (&result, value) in op.results(m).iter().zip(values) {
            self.set(result, value);
        }
        self.op = op.0;
        if let Some(r) = &registers
            && !last
        {
            self.set_registers(self.entry_registers(), r[0]);
        }
        self.named_barrier(ALL_WARPS, self.scope.launched);
        self.hooks.handoffs.push(Handoff { op, captures });
        Ok(())
    }

    /// Partitions that the main warps run, side by side.
    fn split_main(&mut self, op: ttg::WarpSpecialize) -> Result<()> {
        let m = self.m;
        let values: Vec<Val> = op.captures(m).iter().map(|&v| self.val(v).cloned()).collect::<Result<_>>()?;
        self.barrier();
        let warp = self.uniform_warp();
        let main = (self.scope, self.num_warps);
        let starts = op.warp_group_start_ids(m).unwrap_or_default();
        for (i, (&first, &warps)) in starts.iter().zip(&op.partition_num_warps(m)).enumerate() {
            self.partition(op, (i, first as u32, warps as u32), warp, &values)?;
            (self.scope, self.num_warps) = main;
        }
        self.barrier();
        Ok(())
    }

    /// A partition (its index, first warp and warps), which its warps alone run; `values` are its captures. The scope stays that of the partition.
    fn partition(
        &mut self,
        op: ttg::WarpSpecialize,
        (index, first, warps): (usize, u32, u32),
        warp: Value,
        values: &[Val],
    ) -> Result<()> {
        let m = self.m;
        let (inside, next) = self.branch_to(warp, first, first + warps);
        self.b.switch_to(inside);
        let launched = self.scope.launched;
        self.scope = Scope { first_warp: first, barrier: FIRST_PARTITION + index as u32, launched };
        self.num_warps = warps;
        let block = m.region_block(op.partitions(m)[index]);
        for (&arg, val) in m.block_args(block).iter().zip(values) {
            self.set(arg, val.clone());
        }
        self.block(block)?;
        self.op = op.0;
        self.b.br(next, &[]);
        self.b.switch_to(next);
        Ok(())
    }

    /// Registers of a thread when the kernel starts.
    fn entry_registers(&self) -> i32 {
        self.m.int_attr(self.m.root(), "ttg.maxnreg").unwrap_or(0) as i32
    }

    fn set_registers(&mut self, wanted: i32, now: i32) {
        let direction = if wanted > now { "inc" } else { "dec" };
        if wanted != now {
            let text = format!("setmaxnreg.{direction}.sync.aligned.u32 {wanted};");
            self.b.asm(&text, "", Effect::Write, &[], &[]);
        }
    }

    /// Puts what the partitions can't know by themselves into shared memory.
    fn pass_captures(&mut self, op: ttg::WarpSpecialize) -> Result<Vec<Capture>> {
        let m = self.m;
        let mut out = Vec::new();
        let mut offset = 0;
        let first = self.is_first_thread();
        let passed = op.passed_captures(m);
        for &v in op.captures(m) {
            let capture = match self.val(v)?.clone() {
                Val::Token => Capture::Known(Val::Token),
                Val::Buffer(_) => Capture::Buffer,
                Val::Regs(regs) if !passed.contains(&v) => Capture::Known(Val::Regs(regs)),
                Val::Regs(regs) => {
                    let types: Vec<Ty> = regs.iter().map(|&r| self.b.ty(r)).collect();
                    let base = self.scratch()?;
                    let at = self.b.ptr_add_const(base, i64::from(offset));
                    self.store_shared(at, &regs, Some(first));
                    let here = offset;
                    offset += 8;
                    Capture::Passed(here, types)
                }
            };
            out.push(capture);
        }
        Ok(out)
    }

    /// The code of the extra warps, once the main warps' is there.
    pub(super) fn workers(&mut self, at: llvm::Block) -> Result<()> {
        let main = (self.scope, self.num_warps);
        self.b.switch_to(at);
        let handoffs = std::mem::take(&mut self.hooks.handoffs);
        let count = handoffs.len();
        self.come_along();
        for (i, handoff) in handoffs.into_iter().enumerate() {
            self.op = handoff.op.0;
            self.follow(&handoff, i + 1 == count)?;
        }
        (self.scope, self.num_warps) = main;
        self.b.ret(&[]);
        Ok(())
    }

    fn follow(&mut self, handoff: &Handoff, last: bool) -> Result<()> {
        let m = self.m;
        let op = handoff.op;
        let launched = self.scope.launched;
        self.named_barrier(ALL_WARPS, launched);
        let mut values = Vec::new();
        for (capture, &v) in handoff.captures.iter().zip(op.captures(m)) {
            values.push(match capture {
                Capture::Known(val) => val.clone(),
                Capture::Buffer => Val::Buffer(self.buffer_here(v)?),
                Capture::Passed(offset, types) => {
                    let base = self.scratch()?;
                    let at = self.b.ptr_add_const(base, i64::from(*offset));
                    Val::Regs(self.load_shared_where(at, types[0], 1, None).into())
                }
            });
        }
        let warp = self.hooks.worker_warp.ok_or_else(|| self.error("internal: no worker warps"))?;
        let from = self.b.block();
        let done = self.b.create_block(from, None, &[]);
        let groups = self.groups(op);
        for group in &groups {
            let (inside, next) = self.branch_to(warp, group.first, group.end);
            self.b.switch_to(inside);
            if let Some(r) = group.registers {
                self.set_registers(r as i32, self.entry_registers());
            }
            for &partition in &group.partitions {
                self.partition(op, partition, warp, &values)?;
            }
            if let Some(r) = group.registers
                && !last
            {
                self.set_registers(self.entry_registers(), r as i32);
            }
            self.b.br(done, &[]);
            self.b.switch_to(next);
        }
        self.b.br(done, &[]);
        self.b.switch_to(done);
        self.named_barrier(ALL_WARPS, launched);
        Ok(())
    }

    /// Branches to a block of their own for warps from `first` to before `end`: that block, and the one for others.
    fn branch_to(&mut self, warp: Value, first: u32, end: u32) -> (llvm::Block, llvm::Block) {
        let from = self.b.block();
        let inside = self.b.create_block(from, None, &[]);
        let next = self.b.create_block(from, None, &[]);
        let relative = self.b.add_const(warp, -i64::from(first));
        let count = self.b.i32(i64::from(end - first));
        let here = self.b.icmp(IntPred::Ult, relative, count);
        self.b.cond_br(here, inside, &[], next, &[]);
        (inside, next)
    }

    /// The workers' warp groups: those that a partition joins stay together.
    fn groups(&self, op: ttg::WarpSpecialize) -> Vec<Group> {
        let m = self.m;
        let num_warps = op.partition_num_warps(m);
        let starts = op.warp_group_start_ids(m).unwrap_or_default();
        let registers = op.actual_registers(m);
        let main = self.num_warps;
        let mut groups: Vec<Group> = Vec::new();
        let mut order: Vec<usize> = (0..starts.len()).collect();
        order.sort_by_key(|&i| starts[i]);
        for i in order {
            let (first, warps) = (starts[i] as u32, num_warps[i] as u32);
            let group_of = |w: u32| main + (w - main) / 4 * 4;
            let (begin, end) = (group_of(first), group_of(first + warps - 1) + 4);
            match groups.last_mut().filter(|g| begin < g.end) {
                Some(g) => {
                    g.end = g.end.max(end);
                    g.partitions.push((i, first, warps));
                }
                None => groups.push(Group {
                    first: begin,
                    end,
                    registers: registers.as_ref().map(|r| r[i + 1] as u32),
                    partitions: vec![(i, first, warps)],
                }),
            }
        }
        groups
    }

    /// A captured buffer as the workers' code computes it: its allocation's offset.
    fn buffer_here(&mut self, v: ir::Value) -> Result<Buffer> {
        let alloc = ttg::LocalAlloc::of(self.m, v)
            .and_then(|a| self.m.int_attr(a.0, marks::ALLOCATION_OFFSET))
            .ok_or_else(|| self.unsupported("a captured view of a buffer (capture the whole buffer)"))?;
        let rank = match self.m.type_kind(self.value_ty(v)) {
            TypeKind::MemDesc { shape, .. } => shape.len(),
            _ => 0,
        };
        let base = self.0.b.global(self.0.smem);
        let base = self.b.ptr_add_const(base, alloc);
        Ok(Buffer { base, offsets: smallvec::smallvec![0; rank] })
    }
}
