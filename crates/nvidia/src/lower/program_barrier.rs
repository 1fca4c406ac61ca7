//! `tt.program_barrier`: programs wait for each other.
//!
//! All programs of a cluster meet at the cluster's barrier (PTX ISA, "barrier.cluster"), whose arrival releases and whose wait acquires
//! by itself; a relaxed one need not wait for what is under way. Others count. The threads of a program meet; then one of them adds to the counter, and goes on polling until it is told
//! that all have come; then they meet again. The additions are atomic, release and acquire, and the last of them tells the others by a
//! release that they acquire: with the barriers of the CTA around them, what a thread of any program has written before is seen by each
//! thread of every one after (PTX ISA, "Causality order"). `atom.inc` makes the counter zero again with the last addition, so that the
//! next barrier finds it as the first did.
//!
//! Copies by TMA go through the asynchronous proxy: on both sides of the barrier a proxy fence orders what the copies and ordinary accesses do to
//! the same place (PTX ISA, "Async proxy"). Before it those to global memory are waited for; where they may be under way the pass
//! `global-proxies` has placed that.

use std::fmt::Write as _;

use tilewright_ir as ir;
use tilewright_ir::LocKind;
use tilewright_ir::dialect::{tt, ttng};
use tilewright_ir::marks;
use tilewright_ir::opdef::Completion;
use tilewright_llvm::{Effect, Ty, Value};
use tilewright_lower::{Hooks, Words};

use super::access::{Asm, letter, suffix, vector};
use super::{Lower, Nvidia, Result};

/// Where a rank's memory has the time limit of waits, and the address of the word that reports one past it; from which bit on that word has the
/// line (`tle/_ranks.py`).
const TIME_LIMIT: u64 = 5 * 8;
const REPORT: u64 = 6 * 8;
const REPORTED_LINE: u32 = 44;

/// How often a loop polls for each time that it looks at the clock, which would have it see a signal later.
const POLLS: u32 = 64;

/// Within a loop that polls, one signal at `ptr` being missing: past the time limit of the rank's memory, in nanoseconds and none where it is zero, tells the host where
/// the signal is in that memory, and the line, and traps. `polls` and `begin` (zero before the loop), `limit`, `time` and `on` are its registers.
fn give_up(memory: &str, ptr: &str, line: u32) -> String {
    let line = u64::from(line) << REPORTED_LINE;
    format!(
        "add.u32 polls, polls, 1;\n\
         and.b32 polls, polls, {};\n\
         setp.ne.u32 on, polls, 0;\n\
         @on bra again;\n\
         ld.global.b64 limit, [{memory}+{TIME_LIMIT}];\n\
         setp.eq.s64 on, limit, 0;\n\
         @on bra again;\n\
         mov.u64 time, %globaltimer;\n\
         setp.eq.s64 on, begin, 0;\n\
         @on mov.b64 begin, time;\n\
         sub.s64 time, time, begin;\n\
         setp.lt.s64 on, time, limit;\n\
         @on bra again;\n\
         ld.global.b64 begin, [{memory}+{REPORT}];\n\
         sub.s64 time, {ptr}, {memory};\n\
         or.b64 time, time, {line};\n\
         st.relaxed.sys.global.b64 [begin], time;\n\
         fence.sc.sys;\n\
         trap;\n",
        POLLS - 1
    )
}

impl Lower<'_, '_> {
    pub fn program_barrier(&mut self, op: tt::ProgramBarrier) -> Result<()> {
        let copies = self.copies(Completion::Mbarrier) || self.copies(Completion::Stores);
        let fenced =
            self.m.prev_op(op.0).is_some_and(|op| ttng::FenceAsyncGlobal::cast(self.m, op).is_some());
        if copies && !fenced {
            self.b.asm("fence.proxy.async.global;", "", Effect::Write, &[], &[]);
        }
        self.meet(op)?;
        if copies {
            self.b.asm("fence.proxy.async.global;", "", Effect::Write, &[], &[]);
        }
        Ok(())
    }

    /// The barrier itself.
    fn meet(&mut self, op: tt::ProgramBarrier) -> Result<()> {
        let scope = op.scope(self.m);
        let count = match (scope, op.count(self.m)) {
            (tt::ProgramScope::Cluster, None) => {
                let relaxed = self.m.op_attr(op.0, marks::RELAXED).is_some();
                if relaxed {
                    // The program's own threads see what each of them has done.
                    Nvidia::barrier(self);
                }
                self.cluster_arrive(relaxed)?;
                return self.cluster_wait();
            }
            (_, Some(count)) => self.scalar(count)?,
            (tt::ProgramScope::Grid, None) => {
                let axes = [tt::ProgramDim::X, tt::ProgramDim::Y, tt::ProgramDim::Z];
                let [x, y, z] = axes.map(|axis| Nvidia::program_id(self, axis, true));
                let plane = self.b.mul(x, y);
                self.b.mul(plane, z)
            }
        };
        let base = self.scratch_of_launch()?;
        let part = match scope {
            tt::ProgramScope::Grid => self.b.i32(0),
            tt::ProgramScope::Cluster => self.number_in_grid("clusterid", "nclusterid"),
        };
        let offset = self.int_attr(marks::GLOBAL_SCRATCH_OFFSET).unwrap_or(0);
        let counter = self.part_of_scratch(base, part, offset);
        Nvidia::barrier(self);
        let first = self.is_first_thread();
        let mut asm = Asm::default();
        let first = asm.arg(first, 'b');
        let counter = asm.arg(counter, 'l');
        let count = asm.arg(count, 'r');
        // What has been seen of the second word before the addition is from before the last of them.
        let text = format!(
            "{{\n.reg .pred last, wait;\n.reg .b32 most, before, old, now;\n@!{first} bra done;\n\
             ld.relaxed.gpu.global.b32 before, [{counter}+4];\n\
             sub.u32 most, {count}, 1;\n\
             atom.acq_rel.gpu.global.inc.u32 old, [{counter}], most;\n\
             setp.eq.u32 last, old, most;\n\
             @last red.release.gpu.global.add.u32 [{counter}+4], 1;\n\
             @last bra done;\n\
             again:\n\
             ld.acquire.gpu.global.b32 now, [{counter}+4];\n\
             setp.eq.u32 wait, now, before;\n\
             @wait bra again;\n\
             done:\n}}"
        );
        self.b.asm(&text, &asm.constraints, Effect::Write, &[], &asm.args);
        Nvidia::barrier(self);
        Ok(())
    }

    /// One thread polls, or each its part of a tensor, and acquires with what it sees last; then the threads of the program meet. A kernel with
    /// copies by TMA orders them behind it, too. Where the rank's memory sets a time limit (`tle/_ranks.py`), a wait past it is reported to the host, and traps.
    pub fn wait_signal(&mut self, op: tt::WaitSignal) -> Result<()> {
        let m = self.m;
        match m.is_tensor(m.value_type(op.ptr(m))) {
            true => self.wait_for_all(op)?,
            false if m.is_unused(op.result(m)) => self.wait_for_one(op)?,
            false => return Err(self.unsupported("the value of a signal that is waited for")),
        }
        Nvidia::barrier(self);
        if self.copies(Completion::Mbarrier) || self.copies(Completion::Stores) {
            self.b.asm("fence.proxy.async.global;", "", Effect::Write, &[], &[]);
        }
        Ok(())
    }

    /// Each thread polls what it holds of a tensor of signals, with all its loads under way together, until all are there.
    fn wait_for_all(&mut self, op: tt::WaitSignal) -> Result<()> {
        let m = self.m;
        let ty = self.elem_ty(m.value_type(op.value(m)))?;
        let (ptrs, wanted) = (self.regs(op.ptr(m))?, self.regs(op.value(m))?);
        let memory = op.memory(m).map(|memory| self.scalar(memory)).transpose()?;
        let layout = self.layout(m.value_type(op.ptr(m)))?;
        let (axis, width) = self.access_width(&layout, ty.bits());
        let words = Words { bits: ty.bits(), count: width, per_word: 1 };
        let groups = layout
            .vector_groups(axis, width)
            .ok_or_else(|| self.error("internal: the layout has no vectors of the promised width"))?;
        let (bits, letter) = (words.bits, letter(words));
        let sem = if op.flagged(m) { "relaxed" } else { "acquire" };
        let mut asm = Asm::default();
        asm.outputs(ty, letter, layout.num_registers());
        let (mut loads, mut looks, mut results) = (String::new(), String::new(), String::new());
        for group in &groups {
            let pred = self.in_bounds(&layout, group[0]).map(|inside| asm.arg(inside, 'b'));
            let (base, offset) = self.split_global(ptrs[group[0] as usize]);
            let base = asm.arg(base, 'l');
            let names: Vec<String> = group.iter().map(|r| format!("now{r}")).collect();
            if let Some(pred) = &pred {
                let _ = write!(loads, "@{pred} ");
            }
            let (names, suffix) = (vector(&names), suffix(words));
            let _ = writeln!(loads, "ld.{sem}.sys.global{suffix} {names}, [{base}+{offset}];");
            for (i, &r) in group.iter().enumerate() {
                let wanted = asm.arg(wanted[r as usize], letter);
                let _ = match op.flagged(m) {
                    true => writeln!(
                        looks,
                        "xor.b64 at, now{r}, {wanted};\nshr.u64 at, at, 32;\nsetp.ne.b64 on, at, 0;"
                    ),
                    false => writeln!(looks, "setp.lt.s{bits} on, now{r}, {wanted};"),
                };
                if let Some(pred) = &pred {
                    let _ = writeln!(looks, "and.pred on, on, {pred};");
                }
                let at = offset + (i as i64) * i64::from(bits / 8);
                let _ = writeln!(looks, "@on add.s64 missing, {base}, {at};\nor.pred wait, wait, on;");
                let _ = writeln!(results, "mov.b{bits} ${r}, now{r};");
            }
        }
        let line = self.line_of_kernel(m.op_loc(op.0));
        let limit = memory.map(|memory| give_up(&asm.arg(memory, 'l'), "missing", line)).unwrap_or_default();
        let registers: String = groups
            .iter()
            .flatten()
            .map(|r| format!(".reg .b{bits} now{r};\nmov.b{bits} now{r}, 0;\n"))
            .collect();
        let text = format!(
            "{{\n.reg .pred wait, on;\n.reg .b32 polls;\n.reg .b64 at, missing, limit, begin, time;\n{registers}\
             mov.b32 polls, 0;\nmov.b64 begin, 0;\n\
             again:\n{loads}setp.ne.b64 wait, 0, 0;\n{looks}@!wait bra done;\n{limit}bra again;\n\
             done:\n{results}}}"
        );
        let seen = self.b.asm(&text, &asm.constraints, Effect::Write, &asm.results, &asm.args);
        self.set_regs(op.result(m), seen.to_vec());
        Ok(())
    }

    /// One thread polls.
    fn wait_for_one(&mut self, op: tt::WaitSignal) -> Result<()> {
        let m = self.m;
        let bits = match m.value_type(op.value(m)) {
            ir::Type::I64 => 64,
            _ => 32,
        };
        let (ptr, value) = (self.scalar(op.ptr(m))?, self.scalar(op.value(m))?);
        let memory = op.memory(m).map(|memory| self.scalar(memory)).transpose()?;
        let first = self.is_first_thread();
        let mut asm = Asm::default();
        let first = asm.arg(first, 'b');
        let ptr = asm.arg(ptr, 'l');
        let value = asm.arg(value, if bits == 64 { 'l' } else { 'r' });
        let line = self.line_of_kernel(m.op_loc(op.0));
        let limit = memory.map(|memory| give_up(&asm.arg(memory, 'l'), &ptr, line)).unwrap_or_default();
        let text = format!(
            "{{\n.reg .pred wait, on;\n.reg .b{bits} now;\n.reg .b32 polls;\n.reg .b64 limit, begin, time;\n@!{first} bra done;\n\
             mov.b32 polls, 0;\nmov.b64 begin, 0;\n\
             again:\n\
             ld.acquire.sys.global.b{bits} now, [{ptr}];\n\
             setp.lt.s{bits} wait, now, {value};\n\
             @!wait bra done;\n\
             {limit}\
             bra again;\n\
             done:\n}}"
        );
        self.b.asm(&text, &asm.constraints, Effect::Write, &[], &asm.args);
        Ok(())
    }

    /// The line of the kernel's own source that an operation comes from.
    fn line_of_kernel(&self, loc: ir::Loc) -> u32 {
        match self.m.loc_kind(loc) {
            LocKind::File { line, .. } => *line,
            LocKind::Name(_, child) => self.line_of_kernel(*child),
            LocKind::CallSite { caller, .. } => self.line_of_kernel(*caller),
            LocKind::Fused(locs) => locs.first().map_or(0, |&l| self.line_of_kernel(l)),
            LocKind::Unknown => 0,
        }
    }

    /// Behind an atomic operation that acquires, and code of the author's own, which may: copies by TMA load what the others wrote before they released. What orders threads does not
    /// order the asynchronous proxy: on the way from a write to a copy of it there is a proxy fence (PTX ISA, "Causality order"). It stands on
    /// this side, as who wrote need not know of copies.
    pub fn order_loads(&mut self, op: ir::Op) {
        let m = self.m;
        let by_sem = |sem| matches!(sem, tt::MemSemantic::Acquire | tt::MemSemantic::AcquireRelease);
        let acquires = tt::accesses_memory(m, op) || self.message(op).is_some_and(by_sem);
        if acquires && self.copies(Completion::Mbarrier) {
            self.b.asm("fence.proxy.async.global;", "", Effect::Write, &[], &[]);
        }
    }

    /// What an atomic operation orders among programs; none where it stays within one.
    fn message(&self, op: ir::Op) -> Option<tt::MemSemantic> {
        let m = self.m;
        let (ptr, sem, scope) = match (tt::AtomicRmw::cast(m, op), tt::AtomicCas::cast(m, op)) {
            (Some(rmw), _) => (rmw.ptr(m), rmw.sem(m), rmw.scope(m)),
            (_, Some(cas)) => (cas.ptr(m), cas.sem(m), cas.scope(m)),
            _ => return None,
        };
        let within = scope == tt::MemSyncScope::Cta || m.is_shared_pointer(m.value_type(ptr));
        (!within).then_some(sem)
    }

    /// Whether the kernel has copies whose end is known in this way.
    fn copies(&self, how: Completion) -> bool {
        let m = self.m;
        let is_one = |op| m.def(op).is_some_and(|d| d.effects.iter().any(|e| e.completion == how));
        m.all_ops(m.root()).into_iter().any(is_one)
    }

    /// The launch's scratch memory.
    pub fn scratch_of_launch(&mut self) -> Result<Value> {
        self.global_scratch.ok_or_else(|| {
            self.error("internal: the module does not say how much global scratch memory it needs")
        })
    }

    /// What lies at `offset` in a part of the launch's scratch memory: each CTA has one.
    pub fn part_of_scratch(&mut self, base: Value, part: Value, offset: i64) -> Value {
        let size = self.m.int_attr(self.m.root(), "ttg.global_scratch_memory_size").unwrap_or(0);
        let part = self.b.int_cast(part, Ty::I64, false);
        let at = self.b.mul_const(part, size);
        let at = self.b.add_const(at, offset);
        self.b.ptr_add(base, at)
    }

    /// A number in the grid, x fastest, by the special registers of an index along each axis and of its extents.
    pub fn number_in_grid(&mut self, index: &str, count: &str) -> Value {
        let register = |l: &mut Self, name: &str, axis: &str| {
            let name = format!("llvm.nvvm.read.ptx.sreg.{name}.{axis}");
            l.b.intrinsic(&name, Effect::Pure, Some(Ty::I32), &[])
        };
        let mut number = register(self, index, "z");
        for axis in ["y", "x"] {
            let count = register(self, count, axis);
            let index = register(self, index, axis);
            number = self.b.mul(number, count);
            number = self.b.add(number, index);
        }
        number
    }
}
