//! `ttg.warp_specialize`: the warps beyond `ttg.num-warps` run the partitions.
//!
//! ```text
//! entry:    warp < num_warps ? main : workers          (a warp's index is the same in all of its lanes)
//! main:     …                                           workers:
//!           captures -> shared memory
//!           bar.sync 1                                            bar.sync 1; captures <- shared memory
//!           setmaxnreg.inc                                        setmaxnreg.dec          (warp group by warp group)
//!           default region                                        the partition of this warp
//!           setmaxnreg.dec
//!           bar.sync 1                                            bar.sync 1
//!           …                                                     setmaxnreg.inc
//!                                                                 (the next ttg.warp_specialize, …) ret
//! ```
//!
//! Whoever has more registers than the kernel began with gives them back before the last barrier, and whoever has fewer takes them behind it, the main warps as
//! any workers: before it they may not be there yet, and nobody may wait for them there.
//!
//! Where one of them lies in a loop or a branch the workers can't know which comes next. Then the barrier at which it begins says so: as many
//! of the main warps' threads as its number come there with a predicate that is true (PTX ISA, "bar": `red.popc` gives each thread that waits their count), and none
//! where the function ends.
//!
//! ```text
//! main:     loop …                                      workers:  again:
//!             captures -> shared memory                             n = bar.red.popc 1, false
//!             bar.red.popc 1, thread < 1                            n = 1 ? (captures <- shared memory; …; bar.sync 1; goto again)
//!             …                                                     n = 2 ? …
//!           bar.red.popc 1, false                                   ret
//!           ret
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

/// What the main warps have told the workers last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// Numbers of what comes next, if anything.
    Numbers,
    /// That nothing comes.
    End,
}

/// Warp groups that change their registers together, with the partitions they run (index, first warp, warps).
struct Group {
    first: u32,
    end: u32,
    registers: Option<u32>,
    partitions: Vec<(usize, u32, u32)>,
}

/// The operations of a function that extra warps run, in order.
///
/// # Errors
/// One with more partitions than there are barriers, or in a function that may return in several places.
fn find(m: &ir::Module, func: ir::Op) -> Result<Vec<ttg::WarpSpecialize>> {
    let mut found = Vec::new();
    for op in m.all_ops(func) {
        let Some(w) = ttg::WarpSpecialize::cast(m, op) else { continue };
        if m.region_blocks(tt::Func(func).body(m)).len() > 1 {
            let what = "`ttg.warp_specialize` in a function of several blocks";
            return Err(Box::new(ir::Diagnostic::unsupported(m, m.op_loc(op), what)));
        }
        if w.partitions(m).len() > MAX_PARTITIONS {
            let what = format!("more than {MAX_PARTITIONS} partitions: there are no more barriers");
            return Err(Box::new(ir::Diagnostic::at(m, m.op_loc(op), what)));
        }
        if m.op_attr(op, marks::REUSE).is_none() {
            found.push(w);
        }
    }
    Ok(found)
}

/// Whether a function's code comes to all of them, each once and in order.
fn are_in_order(m: &ir::Module, func: ir::Op, specialized: &[ttg::WarpSpecialize]) -> bool {
    specialized.iter().all(|w| m.parent_op(w.0) == Some(func))
}

impl Lower<'_, '_> {
    /// At a function's entry: looks what of it extra warps run, and sends them there.
    pub(super) fn find_workers(&mut self, function: ir::Op) -> Result<()> {
        let specialized = find(self.m, function)?;
        let Some(last) = specialized.last() else { return Ok(()) };
        self.hooks.last_specialized = Some(last.0);
        if !are_in_order(self.m, function, &specialized) {
            self.check_numbers(&specialized)?;
            self.hooks.workers_told = Some(Told::Numbers);
        }
        let workers = self.split_workers();
        self.hooks.workers = Some(workers);
        Ok(())
    }

    /// Whether the main warps have threads enough to say each number.
    fn check_numbers(&self, specialized: &[ttg::WarpSpecialize]) -> Result<()> {
        let most = (self.num_warps * self.target.warp_size) as usize;
        let Some(w) = specialized.get(most) else { return Ok(()) };
        let what = format!("more than {most} `ttg.warp_specialize` where one is in a loop or a branch");
        Err(Box::new(ir::Diagnostic::unsupported(self.m, self.m.op_loc(w.0), what)))
    }

    /// Sends the extra warps away. Returns the block where they go.
    fn split_workers(&mut self) -> llvm::Block {
        let entry = self.b.block();
        let tid = self.launched_tid();
        let lane_bits = self.lane_bits();
        let warp = self.b.lshr(tid, lane_bits);
        let warp = self.of_first_lane(warp);
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

    /// All warps meet before a `ttg.warp_specialize`, of which the workers know which it is.
    fn meet_at(&mut self, number: u32) {
        if self.hooks.workers_told.is_some() {
            self.say(number);
        } else {
            self.named_barrier(ALL_WARPS, self.scope.launched);
        }
    }

    /// There is no more for the workers to do: before the function returns, or earlier where only the main warps may go on.
    pub(super) fn end_workers(&mut self) {
        if self.hooks.workers_told == Some(Told::Numbers) {
            self.say(0);
            self.hooks.workers_told = Some(Told::End);
        }
    }

    /// The main warps tell the workers a number.
    fn say(&mut self, number: u32) {
        let (tid, number) = (self.tid(), self.0.b.i32(i64::from(number)));
        let counts = self.b.icmp(IntPred::Ult, tid, number);
        self.counting_barrier(counts);
    }

    /// The workers are told a number, the same in all lanes.
    fn listen(&mut self) -> Value {
        let no = self.b.bool(false);
        let number = self.counting_barrier(no);
        self.of_first_lane(number)
    }

    /// What the first lane of the warp has, so that `ptxas` knows it to be the same in all.
    fn of_first_lane(&mut self, word: Value) -> Value {
        let (all, lane, clamp) = (self.b.i32(-1), self.b.i32(0), self.b.i32(31));
        let name = "llvm.nvvm.shfl.sync.idx.i32";
        self.b.intrinsic(name, Effect::Write, Some(Ty::I32), &[all, word, lane, clamp])
    }

    /// All warps meet: how many threads come with a predicate that is true.
    fn counting_barrier(&mut self, counts: Value) -> Value {
        let threads = self.scope.launched * self.target.warp_size;
        let text = format!("bar.red.popc.u32 $0, {ALL_WARPS}, {threads}, $1;");
        self.b.asm1(&text, "=r,b", Effect::Write, Ty::I32, &[counts])
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
        let number = self.hooks.handoffs.len() as u32 + 1;
        self.meet_at(number);
        let registers = op.actual_registers(m);
        let last = self.hooks.workers_told.is_none() && self.hooks.last_specialized == Some(op.0);
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
        let changed = registers.filter(|_| !last).map(|r| r[0]);
        if let Some(r) = changed {
            self.give_registers_back(r);
        }
        self.named_barrier(ALL_WARPS, self.scope.launched);
        if let Some(r) = changed {
            self.take_registers_back(r);
        }
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

    /// A warp group that has more registers than the kernel began with has as many again, before the barrier at the end.
    fn give_registers_back(&mut self, now: i32) {
        let entry = self.entry_registers();
        self.set_registers(now.min(entry), now);
    }

    /// One that has fewer has as many again, behind that barrier.
    fn take_registers_back(&mut self, now: i32) {
        let entry = self.entry_registers();
        self.set_registers(entry, now.min(entry));
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
        self.come_along();
        if self.hooks.workers_told.is_some() {
            self.follow_numbers(&handoffs)?;
        } else {
            for (i, handoff) in handoffs.iter().enumerate() {
                self.named_barrier(ALL_WARPS, main.0.launched);
                self.follow(handoff, i + 1 == handoffs.len())?;
            }
        }
        (self.scope, self.num_warps) = main;
        self.b.ret(&[]);
        Ok(())
    }

    /// Does what the main warps say, until they say that there is no more.
    fn follow_numbers(&mut self, handoffs: &[Handoff]) -> Result<()> {
        let before = self.b.block();
        let again = self.b.create_block(before, Some(before), &[]);
        self.b.br(again, &[]);
        self.b.switch_to(again);
        let number = self.listen();
        for (i, handoff) in handoffs.iter().enumerate() {
            let from = self.b.block();
            let this = self.b.create_block(from, Some(before), &[]);
            let next = self.b.create_block(from, Some(before), &[]);
            let own = self.b.i32(i as i64 + 1);
            let is_this = self.b.icmp(IntPred::Eq, number, own);
            self.b.cond_br(is_this, this, &[], next, &[]);
            self.b.switch_to(this);
            self.follow(handoff, false)?;
            self.b.br(again, &[]);
            self.b.switch_to(next);
        }
        Ok(())
    }

    /// What the workers do between the barriers at which a `ttg.warp_specialize` begins and ends, and the latter.
    fn follow(&mut self, handoff: &Handoff, last: bool) -> Result<()> {
        let m = self.m;
        let op = handoff.op;
        self.op = op.0;
        let launched = self.scope.launched;
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
            if let Some(r) = group.registers.filter(|_| !last) {
                self.give_registers_back(r as i32);
            }
            self.b.br(done, &[]);
            self.b.switch_to(next);
        }
        self.b.br(done, &[]);
        self.b.switch_to(done);
        self.named_barrier(ALL_WARPS, launched);
        if !last {
            self.workers_take_registers_back(&groups, warp);
        }
        Ok(())
    }

    fn workers_take_registers_back(&mut self, groups: &[Group], warp: Value) {
        let from = self.b.block();
        let done = self.b.create_block(from, None, &[]);
        let entry = self.entry_registers();
        for group in groups {
            let Some(r) = group.registers.map(|r| r as i32).filter(|&r| r < entry) else { continue };
            let (inside, next) = self.branch_to(warp, group.first, group.end);
            self.b.switch_to(inside);
            self.take_registers_back(r);
            self.b.br(done, &[]);
            self.b.switch_to(next);
        }
        self.b.br(done, &[]);
        self.b.switch_to(done);
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
