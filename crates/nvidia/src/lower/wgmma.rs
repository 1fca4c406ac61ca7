//! `ttng`: products of warp groups by `wgmma.mma_async` (PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions").
//!
//! While a product is under way its registers belong to the tensor cores: nothing else may write them between the
//! `wgmma.fence` and the instructions, nor touch them before the wait (PTX ISA, "Register fragments"). LLVM knows nothing of
//! this, so it is made to follow from what depends on what:
//!
//! - All instructions of a dot stand in one asm statement, from the fence to the commit: whatever its registers hold, be it a
//!   constant, is there before the fence.
//! - Its accumulators and its A in registers are operands that it reads and writes in place: results tied to inputs. A
//!   register that something else looks at later is copied before the statement.
//! - A wait takes those results as such operands again. Until then they are in use, so that no register is used for anything
//!   else; what looks at them looks at the wait's results.
//!
//! ```text
//! %acc1, %a1 = asm "wgmma.fence; wgmma.mma_async…; wgmma.commit_group;" "=f,=r,0,1,l" (%acc, %a, %b)
//! %acc2, %a2 = asm "wgmma.wait_group 0;" "=f,=r,0,1" (%acc1, %a1)
//! ```
//!
//! Registers and tiles: warp group `w` holds 64 rows; per 8 columns a thread has accumulators at (0, 0), (0, 1), (8, 0),
//! (8, 1) from its first row and column, as the instruction orders them. All threads' coordinates are those of thread 0
//! plus what the layout adds alike, so thread 0 says which register is which operand.

use std::fmt::Write as _;
use std::ops::Range;

use tilewright_ir as ir;
use tilewright_ir::FloatKind;
use tilewright_ir::dialect::{scf, ttg, ttng};
use tilewright_ir::{flow, marks};
use tilewright_layout::{Encoding, RegisterFinder, SharedLayout, WgmmaOperand};
use tilewright_llvm::{BinOp, Builder, CastOp, Effect, Ty, Value};

use tilewright_lower::{Buffer, Val};

use super::{Lower, Result, Shared};

/// A kind of `wgmma` instruction.
#[derive(Debug, Clone, Copy)]
struct Instruction {
    /// `.f32.f16.f16` and the like.
    types: &'static str,
    /// Bits of an operand's element; K of an instruction is 256 over this.
    bits: u32,
    /// The accumulator's type.
    acc: Ty,
}

impl Instruction {
    fn k(self) -> u32 {
        256 / self.bits
    }

    /// What follows the descriptors and the accumulate flag: signs, and which operands are transposed.
    fn flags(self, a: Option<&WgmmaOperand>, b: &WgmmaOperand) -> String {
        let trans = |o: &WgmmaOperand| u32::from(o.mn_major);
        match self.bits {
            16 => match a {
                Some(a) => format!(", 1, 1, {}, {}", trans(a), trans(b)),
                None => format!(", 1, 1, {}", trans(b)),
            },
            _ if self.acc == Ty::I32 => String::new(),
            _ => ", 1, 1".into(),
        }
    }
}

/// An operand in shared memory.
struct Operand {
    layout: WgmmaOperand,
    shared: std::rc::Rc<SharedLayout>,
    /// Where this warp group's first tile begins, as descriptors say it.
    first: Value,
}

/// The left operand.
enum Left {
    Shared(Operand),
    Registers(Fragments),
}

/// A left operand in registers.
struct Fragments {
    /// Its words, in the order of the registers that they are made of.
    words: Vec<Value>,
    /// Which of them an instruction takes, for each tile of rows and each K step.
    places: Vec<Vec<[usize; 4]>>,
}

/// What all instructions of a dot have in common.
struct Product {
    inst: Instruction,
    /// N of an instruction.
    n: u32,
    left: Left,
    right: Operand,
    /// Whether descriptors are made in front of their instructions. Those of buffers that stay where they are leave loops otherwise,
    /// which pays for a few (the queries of attention) but not for as many as a kernel may have that issues its products itself, or
    /// whose rings have one slot.
    late_descriptors: bool,
}

/// A tile of the accumulators, which one instruction computes.
struct Tile {
    /// Which one along the rows.
    row: usize,
    /// Its first row and column from the warp group's.
    at: (u32, u32),
    /// Its registers, in the instruction's order.
    registers: Vec<usize>,
}

/// The operands of an asm statement: those that it reads and writes in place come first.
#[derive(Default)]
struct Operands {
    results: Vec<Ty>,
    /// What is there before, for each result that is not written only.
    before: Vec<(usize, Value)>,
    inputs: Vec<(char, Value)>,
}

/// A loop may keep this many descriptors of buffers that stay where they are.
const MOST_FIXED: u32 = 32;

/// Whether all that a dot reads of shared memory stays where it is in the innermost loop around it, and more does so there than registers are for.
fn has_many_fixed(m: &ir::Module, dot: ttng::WarpGroupDot) -> bool {
    let is_loop = |&op: &ir::Op| scf::For::cast(m, op).is_some() || scf::While::cast(m, op).is_some();
    let mut around = std::iter::successors(m.parent_op(dot.0), |&op| m.parent_op(op));
    let Some(l) = around.find(is_loop) else { return false };
    let buffers = |dot: ttng::WarpGroupDot| {
        [dot.a(m), dot.b(m)].into_iter().filter(|&v| !m.is_tensor(m.value_type(v))).collect::<Vec<_>>()
    };
    if !buffers(dot).into_iter().all(|v| stays(m, v, l)) {
        return false;
    }
    // One for each step along K, of 32 bytes.
    let steps = |dot: ttng::WarpGroupDot| {
        let of = m.value_type(dot.b(m));
        m.shape(of).map_or(0, |shape| shape[0]) * m.bits(of) / 256
    };
    let dots = m.all_ops(l).into_iter().filter_map(|op| ttng::WarpGroupDot::cast(m, op));
    let fixed = |dot| buffers(dot).into_iter().filter(|&v| stays(m, v, l)).count() as u32 * steps(dot);
    dots.map(fixed).sum::<u32>() > MOST_FIXED
}

/// Whether a buffer is the same memory in all iterations of a loop.
fn stays(m: &ir::Module, buffer: ir::Value, l: ir::Op) -> bool {
    let Some(op) = m.defining_op(buffer).filter(|&op| m.is_ancestor(l, op)) else {
        return !m
            .value_block(buffer)
            .and_then(|b| m.block_parent_op(b))
            .is_some_and(|op| m.is_ancestor(l, op));
    };
    let moves = ttg::MemdescIndex::cast(m, op).is_some_and(|index| {
        let number = index.index(m);
        m.constant_int(number).is_none() && m.defining_op(number).is_none_or(|op| m.is_ancestor(l, op))
    });
    let whole = m.operands(op).first().copied();
    ttg::LocalAlloc::cast(m, op).is_some() || !moves && whole.is_some_and(|v| stays(m, v, l))
}

/// The descriptor of a tile: that of the first tile, moved.
struct Descriptor {
    first: Value,
    constant: u64,
    offset: u32,
}

impl Operands {
    /// A descriptor as an instruction names it: a register that the statement reads, or one of its own, `name`, that `text` makes.
    fn descriptor(
        &mut self,
        b: &mut Builder<'_>,
        name: &str,
        descriptor: Descriptor,
        late: bool,
        text: &mut String,
    ) -> String {
        let Descriptor { first, constant, offset } = descriptor;
        if !late {
            let field = b.int_cast(first, Ty::I64, false);
            let constant = b.i64(constant as i64);
            let of_first = b.bin(BinOp::Or, field, constant);
            let moved = b.add_const(of_first, i64::from(offset));
            return format!("${}", self.input('l', moved));
        }
        let low = b.i32((constant & 0xffff_ffff) as i64);
        let low = b.bin(BinOp::Or, first, low);
        let (low, high) = (self.input('r', low), constant >> 32);
        let _ = writeln!(
            text,
            "add.u32 low, ${low}, {offset};\nmov.b32 high, {high};\nmov.b64 {name}, {{low, high}};"
        );
        name.to_string()
    }

    /// A register that the statement reads and writes. The number of its result.
    fn in_place(&mut self, ty: Ty, value: Value) -> usize {
        self.before.push((self.results.len(), value));
        self.result(ty)
    }

    /// A register that the statement writes only, before it has read all of its inputs.
    fn result(&mut self, ty: Ty) -> usize {
        self.results.push(ty);
        self.results.len() - 1
    }

    /// A register that the statement reads: all that it writes have been named. Its number.
    fn input(&mut self, letter: char, value: Value) -> usize {
        let known = self.inputs.iter().position(|&input| input == (letter, value));
        let at = known.unwrap_or_else(|| {
            self.inputs.push((letter, value));
            self.inputs.len() - 1
        });
        self.results.len() + self.before.len() + at
    }

    /// LLVM's constraints, and the inputs.
    fn constraints(&self) -> (String, Vec<Value>) {
        let mut tied = vec![false; self.results.len()];
        self.before.iter().for_each(|b| tied[b.0] = true);
        let results = self.results.iter().zip(tied);
        let results =
            results.map(|(&ty, tied)| format!("={}{}", if tied { "" } else { "&" }, register_letter(ty)));
        let before = self.before.iter().map(|b| b.0.to_string());
        let inputs = self.inputs.iter().map(|i| i.0.to_string());
        let all: Vec<String> = results.chain(before).chain(inputs).collect();
        let values = self.before.iter().map(|b| b.1).chain(self.inputs.iter().map(|i| i.1));
        (all.join(","), values.collect())
    }
}

impl Lower<'_, '_> {
    pub fn hopper(&mut self, op: ir::Op, kind: ttng::Kind) -> Result<()> {
        // mbarriers that count arrivals are of sm_80.
        let counts = matches!(
            kind,
            ttng::Kind::InitBarrier
                | ttng::Kind::InvalBarrier
                | ttng::Kind::ArriveBarrier
                | ttng::Kind::WaitBarrier
                | ttng::Kind::AsyncCopyMbarrierArrive
                | ttng::Kind::NamedBarrier
        );
        if !self.facts().wgmma && !counts {
            return Err(self.unsupported("warp-group instructions"));
        }
        match kind {
            ttng::Kind::WarpGroupDot => self.warp_group_dot(ttng::WarpGroupDot(op)),
            ttng::Kind::WarpGroupDotWait => self.warp_group_dot_wait(ttng::WarpGroupDotWait(op)),
            ttng::Kind::FenceAsyncShared => {
                self.b.asm("fence.proxy.async.shared::cta;", "", Effect::Write, &[], &[]);
                Ok(())
            }
            ttng::Kind::FenceAsyncGlobal => {
                self.fence_async_global(ttng::FenceAsyncGlobal(op));
                Ok(())
            }
            ttng::Kind::InitBarrier => self.init_barrier(ttng::InitBarrier(op)),
            ttng::Kind::InvalBarrier => self.inval_barrier(ttng::InvalBarrier(op)),
            ttng::Kind::BarrierExpect => self.barrier_expect(ttng::BarrierExpect(op)),
            ttng::Kind::WaitBarrier => self.wait_barrier(ttng::WaitBarrier(op)),
            ttng::Kind::ArriveBarrier => self.arrive_barrier(ttng::ArriveBarrier(op)),
            ttng::Kind::NamedBarrier => self.authored_barrier(ttng::NamedBarrier(op)),
            ttng::Kind::WaitOrderBarrier => {
                self.wait_order_barrier(ttng::WaitOrderBarrier(op));
                Ok(())
            }
            ttng::Kind::ArriveOrderBarrier => {
                self.arrive_order_barrier(ttng::ArriveOrderBarrier(op));
                Ok(())
            }
            ttng::Kind::AsyncCopyMbarrierArrive => {
                self.async_copy_mbarrier_arrive(ttng::AsyncCopyMbarrierArrive(op))
            }
            ttng::Kind::AsyncTmaCopyGlobalToLocal => self.tma_load(ttng::AsyncTmaCopyGlobalToLocal(op)),
            ttng::Kind::AsyncTmaCopyLocalToGlobal => self.tma_store(ttng::AsyncTmaCopyLocalToGlobal(op)),
            ttng::Kind::AsyncTmaReduce => self.tma_reduce(ttng::AsyncTmaReduce(op)),
            ttng::Kind::TmaStoreWait => {
                self.tma_store_wait(ttng::TmaStoreWait(op));
                Ok(())
            }
            // The map is an argument like any other; the other is the CPU executor's.
            ttng::Kind::TensormapByLaunch | ttng::Kind::SameBlock => Ok(()),
            ttng::Kind::TensormapCreate => self.tensormap_create(ttng::TensormapCreate(op)),
            ttng::Kind::TensormapFenceproxyAcquire => {
                self.tensormap_acquire(ttng::TensormapFenceproxyAcquire(op))
            }
            ttng::Kind::ReinterpretTensorDescriptor => {
                self.reinterpret_descriptor(ttng::ReinterpretTensorDescriptor(op))
            }
            ttng::Kind::ClusterArrive => self.cluster_arrive(ttng::ClusterArrive(op).relaxed(self.m)),
            ttng::Kind::ClusterWait => self.cluster_wait(),
            ttng::Kind::ClusterCtaRank => {
                let rank = self.cluster_cta_rank();
                let result = self.m.result(op);
                self.set_regs(result, vec![rank]);
                Ok(())
            }
            ttng::Kind::ClusterExchange => self.cluster_exchange(ttng::ClusterExchange(op)),
        }
    }

    fn wgmma_instruction(&self, op: ttng::WarpGroupDot) -> Result<Instruction> {
        let m = self.m;
        let kind = |v: ir::Value| self.float_kind(m.value_type(v));
        let (types, bits, acc) = match (kind(op.a(m)), kind(op.b(m)), kind(op.c(m))) {
            (Some(FloatKind::F16), Some(FloatKind::F16), Some(FloatKind::F32)) => {
                ("f32.f16.f16", 16, Ty::F32)
            }
            (Some(FloatKind::F16), Some(FloatKind::F16), Some(FloatKind::F16)) => {
                ("f16.f16.f16", 16, Ty::F16)
            }
            (Some(FloatKind::BF16), Some(FloatKind::BF16), Some(FloatKind::F32)) => {
                ("f32.bf16.bf16", 16, Ty::F32)
            }
            (Some(FloatKind::F32), Some(FloatKind::F32), Some(FloatKind::F32)) => {
                ("f32.tf32.tf32", 32, Ty::F32)
            }
            (Some(x), Some(y), Some(FloatKind::F32)) => {
                let types = match (x, y) {
                    (FloatKind::F8E4M3FN, FloatKind::F8E4M3FN) => "f32.e4m3.e4m3",
                    (FloatKind::F8E5M2, FloatKind::F8E5M2) => "f32.e5m2.e5m2",
                    (FloatKind::F8E4M3FN, FloatKind::F8E5M2) => "f32.e4m3.e5m2",
                    (FloatKind::F8E5M2, FloatKind::F8E4M3FN) => "f32.e5m2.e4m3",
                    _ => return Err(self.unsupported("warp-group dots of these types")),
                };
                (types, 8, Ty::F32)
            }
            (None, None, None) => ("s32.s8.s8", 8, Ty::I32),
            _ => return Err(self.unsupported("warp-group dots of these types")),
        };
        Ok(Instruction { types, bits, acc })
    }

    fn warp_group_dot(&mut self, op: ttng::WarpGroupDot) -> Result<()> {
        let m = self.m;
        let (a, b, c, d) = (op.a(m), op.b(m), op.c(m), op.d(m));
        if op.use_c(m).is_some() {
            return Err(self.unsupported("a warp-group dot that may leave out what it adds to"));
        }
        let Encoding::NvidiaMma { version_major: 3, warps_per_cta, instr_shape, .. } =
            self.encoding(self.value_ty(d))?
        else {
            return Err(self.error("internal: a warp-group dot whose result is not laid out for one"));
        };
        let (&[warps_m, warps_n], &[_, n, _]) = (&warps_per_cta[..], &instr_shape[..]) else {
            return Err(self.unsupported("warp-group dots of this rank"));
        };
        let inst = self.wgmma_instruction(op)?;
        let layout = self.layout(m.value_type(d))?;
        let finder = layout.register_finder();
        // The encoding may be shared with a wider dot: then warp groups that lie side by side there compute the same here.
        let n = n.min(layout.physical(1));
        let warps_n = warps_n.min(layout.physical(1) / n);
        let k_size = m.shape(self.value_ty(b)).map_or(0, |s| s[0]);
        let steps = k_size / inst.k();
        let (rows, columns) = (16 * warps_m, n * warps_n);
        let (tiles_m, tiles_n) = (layout.physical(0) / rows, layout.physical(1) / columns);

        let left = if m.is_tensor(self.value_ty(a)) {
            Left::Registers(self.wgmma_fragments(a, inst, tiles_m, rows, steps)?)
        } else {
            let group = (warps_m > 4).then_some((2, warps_m / 4));
            Left::Shared(self.wgmma_operand(a, 0, 64, group)?)
        };
        let group = (warps_n > 1).then_some((warps_m.ilog2(), warps_n));
        let right = self.wgmma_operand(b, 1, n, group)?;
        let late_descriptors = m.op_attr(op.0, marks::AUTHORED).is_some() || has_many_fixed(m, op);
        let mut product = Product { inst, n, left, right, late_descriptors };

        let mut acc = self.regs(c)?.to_vec();
        let mut tiles = Vec::new();
        for row in 0..tiles_m {
            for column in 0..tiles_n {
                let at = (row * rows, column * columns);
                let registers = accumulators(&finder, at.0, at.1, n)
                    .ok_or_else(|| self.error("internal: an accumulator layout lacks an element"))?;
                tiles.push(Tile { row: row as usize, at, registers });
            }
        }
        // How much of K is summed by the tensor cores before it is added to what they can't round.
        match op.max_num_imprecise_acc(m).map(|n| (n as u32).div_ceil(inst.k()).clamp(1, steps)) {
            None => self.wgmma(&mut product, &tiles, 0..steps, op.is_async(m), &mut acc)?,
            Some(length) => {
                for tile in &tiles {
                    self.wgmma_partial_sums(&mut product, tile, steps, length, &mut acc)?;
                }
            }
        }
        if let Left::Registers(fragments) = product.left {
            self.keep_fragments(a, fragments.words);
        }
        self.set_regs(d, acc);
        self.keep_apart(c)
    }

    /// Keeps the registers that a dot adds to from being those of what it adds to, if something else reads that as well.
    ///
    /// `ptxas` (12.8 to 13.5) does not see that a product changes a register: where the same is computed from it before and behind
    /// the product, it computes that once. So what is read before has registers of its own, which costs `ptxas` nothing: they are
    /// in use behind the statement, as far as LLVM knows.
    fn keep_apart(&mut self, acc: ir::Value) -> Result<()> {
        let mut begins = acc;
        let mut read = Vec::new();
        loop {
            if is_read(self.m, begins) {
                read.extend(self.words_under_way(begins)?);
            }
            let before = match ttng::WarpGroupDotWait::of(self.m, begins) {
                Some(wait) => {
                    let at = wait.outputs(self.m).iter().position(|&v| v == begins);
                    at.map(|at| wait.inputs(self.m)[at])
                }
                None => begins_as(self.m, begins),
            };
            let Some(before) = before else { break };
            begins = before;
        }
        if !read.is_empty() {
            let letters: Vec<String> =
                read.iter().map(|&w| register_letter(self.b.ty(w)).to_string()).collect();
            self.b.asm("", &letters.join(","), Effect::Write, &[], &read);
        }
        Ok(())
    }

    /// A tile's product in sums of `length` K steps, each added to the accumulators by ordinary additions: the tensor cores
    /// keep fewer bits of sums of 8-bit floats than fp32 has.
    fn wgmma_partial_sums(
        &mut self,
        product: &mut Product,
        tile: &Tile,
        steps: u32,
        length: u32,
        acc: &mut [Value],
    ) -> Result<()> {
        let zero = self.b.zero(product.inst.acc);
        for first in (0..steps).step_by(length as usize) {
            let mut sums = vec![zero; acc.len()];
            let part = first..steps.min(first + length);
            self.wgmma(product, std::slice::from_ref(tile), part, false, &mut sums)?;
            for &r in &tile.registers {
                acc[r] = self.b.bin(BinOp::FAdd, acc[r], sums[r]);
            }
        }
        Ok(())
    }

    /// K steps of these tiles, as one group and in one statement. Without `under_way` it waits for them.
    fn wgmma(
        &mut self,
        product: &mut Product,
        tiles: &[Tile],
        steps: Range<u32>,
        under_way: bool,
        acc: &mut [Value],
    ) -> Result<()> {
        let Product { inst, n, late_descriptors, .. } = *product;
        let ty = if inst.acc == Ty::F16 { Ty::I32 } else { inst.acc };
        let mut operands = Operands::default();
        let mut accumulators = Vec::new();
        for tile in tiles {
            let elements: Vec<Value> = tile.registers.iter().map(|&r| acc[r]).collect();
            // Nothing to add to: the first step overwrites.
            let fresh = elements.iter().all(|&v| self.b.as_const(v) == Some(0));
            let words = self.accumulator_words(&elements);
            let words: Vec<usize> = words
                .into_iter()
                .map(|w| if fresh { operands.result(ty) } else { operands.in_place(ty, w) })
                .collect();
            accumulators.push((fresh, words));
        }
        let fragments = match &product.left {
            Left::Shared(_) => vec![],
            Left::Registers(f) => f.words.iter().map(|&w| operands.in_place(Ty::I32, w)).collect(),
        };
        let flags = match &product.left {
            Left::Shared(o) => inst.flags(Some(&o.layout), &product.right.layout),
            Left::Registers(_) => inst.flags(None, &product.right.layout),
        };

        let list = |numbers: &[usize]| {
            let names: Vec<String> = numbers.iter().map(|i| format!("${i}")).collect();
            format!("{{{}}}", names.join(", "))
        };
        let mut text = String::from("{\n.reg .pred p;\n");
        if late_descriptors {
            text.push_str(".reg .b32 low, high;\n.reg .b64 a, b;\n");
        }
        text.push_str("wgmma.fence.sync.aligned;\n");
        for (tile, (fresh, words)) in tiles.iter().zip(&accumulators) {
            let d = list(words);
            let _ = writeln!(text, "setp.ne.b32 p, {}, 0;", u32::from(!fresh));
            for step in steps.clone() {
                if *fresh && step == steps.start + 1 {
                    text.push_str("setp.ne.b32 p, 1, 0;\n");
                }
                let a = match &product.left {
                    Left::Shared(o) => {
                        let descriptor = self.wgmma_descriptor(o, tile.at.0, step * inst.k())?;
                        operands.descriptor(&mut self.b, "a", descriptor, late_descriptors, &mut text)
                    }
                    Left::Registers(f) => list(&f.places[tile.row][step as usize].map(|at| fragments[at])),
                };
                let b = self.wgmma_descriptor(&product.right, tile.at.1, step * inst.k())?;
                let b = operands.descriptor(&mut self.b, "b", b, late_descriptors, &mut text);
                let (k, types) = (inst.k(), inst.types);
                let _ = writeln!(
                    text,
                    "wgmma.mma_async.sync.aligned.m64n{n}k{k}.{types} {d}, {a}, {b}, p{flags};"
                );
            }
        }
        text.push_str("wgmma.commit_group.sync.aligned;\n");
        if !under_way {
            text.push_str("wgmma.wait_group.sync.aligned 0;\n");
        }
        text.push('}');
        let out = self.statement(&text, &operands);
        if let Left::Registers(f) = &mut product.left {
            f.words = fragments.iter().map(|&i| out[i]).collect();
        }
        for (tile, (_, words)) in tiles.iter().zip(&accumulators) {
            let words: Vec<Value> = words.iter().map(|&i| out[i]).collect();
            let elements = if inst.acc == Ty::F16 { self.unpack_halves(&words) } else { words };
            for (&r, v) in tile.registers.iter().zip(elements) {
                acc[r] = v;
            }
        }
        Ok(())
    }

    fn statement(&mut self, text: &str, operands: &Operands) -> Vec<Value> {
        let (constraints, values) = operands.constraints();
        self.b.asm(text, &constraints, Effect::Write, &operands.results, &values).to_vec()
    }

    /// An operand in shared memory. `group` says which bits of the warp index choose among tiles of `mn` rows: the first
    /// bit, and how many choices there are.
    fn wgmma_operand(
        &mut self,
        value: ir::Value,
        mn_axis: usize,
        mn: u32,
        group: Option<(u32, u32)>,
    ) -> Result<Operand> {
        let ty = self.value_ty(value);
        let shared = self.shared_layout(ty)?;
        let Buffer { base, offsets } = self.buffer(value)?;
        let layout = WgmmaOperand::new(self.encoding(ty)?, &shared, mn_axis, mn)
            .ok_or_else(|| self.unsupported("a warp-group dot on a buffer of this encoding"))?;
        let cannot_begin =
            |s: &Self| s.unsupported("a warp-group dot on a tile that begins within a swizzle");
        let origin = layout
            .start(&shared, offsets[mn_axis], offsets[1 - mn_axis])
            .ok_or_else(|| cannot_begin(self))?;
        let mut address = self.b.cast(CastOp::PtrToInt, base, Ty::I32);
        address = self.b.add_const(address, i64::from(origin));
        if let Some((first_bit, count)) = group {
            let start = |i: u32| layout.start(&shared, i * mn, 0);
            let step = start(1).ok_or_else(|| cannot_begin(self))?;
            if (0..count).any(|i| start(i) != Some(i * step)) {
                return Err(self.unsupported("a warp-group dot on tiles that are not evenly apart"));
            }
            let warp = self.uniform_warp();
            let index = self.b.lshr(warp, first_bit);
            let index = self.b.and_const(index, u64::from(count - 1));
            let offset = self.b.mul_const(index, i64::from(step));
            address = self.b.add(address, offset);
        }
        // 18 bits of the address, of which the descriptor has no use for the low 4.
        let field = self.b.and_const(address, 0x3_ffff);
        let field = self.b.lshr(field, 4);
        Ok(Operand { layout, shared, first: field })
    }

    /// The descriptor of the tile at (`mn`, `k`) from the warp group's first.
    fn wgmma_descriptor(&mut self, operand: &Operand, mn: u32, k: u32) -> Result<Descriptor> {
        let offset = operand
            .layout
            .start(&operand.shared, mn, k)
            .ok_or_else(|| self.unsupported("a warp-group dot on a tile that begins within a swizzle"))?;
        Ok(Descriptor { first: operand.first, constant: operand.layout.descriptor(), offset: offset >> 4 })
    }

    /// The warp's index, in a register that is known to be the same in all lanes.
    pub fn uniform_warp(&mut self) -> Value {
        let warp = self.warp();
        let v = self.b.asm1("shfl.sync.idx.b32 $0, $1, 0, 31, -1;", "=r,r", Effect::Pure, Ty::I32, &[warp]);
        self.b.assume_zeros(v, 0xffff_ffe0);
        v
    }

    /// A in registers, and the four words of it that each tile of rows and each K step takes.
    fn wgmma_fragments(
        &mut self,
        a: ir::Value,
        inst: Instruction,
        tiles: u32,
        rows: u32,
        steps: u32,
    ) -> Result<Fragments> {
        let ty = self.value_ty(a);
        let layout = self.layout(ty)?;
        let finder = layout.register_finder();
        let width = 32 / inst.bits;
        let place = |row: u32, k: u32| -> Option<usize> {
            let first = finder.find(&[row, k])?;
            let together = (1..width).all(|i| finder.find(&[row, k + i]) == Some(first + i));
            (together && first % width == 0).then_some((first / width) as usize)
        };
        let mut places = Vec::new();
        for tile in 0..tiles {
            let (row, half) = (tile * rows, 4 * width);
            let of_step = |k: u32| {
                Some([place(row, k)?, place(row + 8, k)?, place(row, k + half)?, place(row + 8, k + half)?])
            };
            let of_tile: Option<Vec<[usize; 4]>> = (0..steps).map(|step| of_step(step * inst.k())).collect();
            let of_tile = of_tile.ok_or_else(|| self.error("internal: an operand's layout lacks a word"))?;
            places.push(of_tile);
        }
        Ok(Fragments { words: self.fragment_words(a)?, places })
    }

    /// The words of a left operand in registers, as the last dot or wait that had them left them.
    fn fragment_words(&mut self, a: ir::Value) -> Result<Vec<Value>> {
        let mut block = self.m.parent_block(self.op);
        while let Some(at) = block {
            if let Some(words) = self.hooks.fragments.get(&(a, at)) {
                return Ok(words.clone());
            }
            block = self.m.block_parent_op(at).and_then(|op| self.m.parent_block(op));
        }
        self.packed_words(a)
    }

    /// What follows in this block and has `a` in a dot or a wait finds it in these words. (Whatever else looks at it finds
    /// the registers that it was in before.)
    fn keep_fragments(&mut self, a: ir::Value, words: Vec<Value>) {
        if let Some(block) = self.m.parent_block(self.op) {
            self.hooks.fragments.insert((a, block), words);
        }
    }

    fn warp_group_dot_wait(&mut self, op: ttng::WarpGroupDotWait) -> Result<()> {
        let m = self.m;
        let (inputs, outputs) = (op.inputs(m).to_vec(), op.outputs(m).to_vec());
        let mut operands = Operands::default();
        let mut counts = Vec::with_capacity(inputs.len());
        for &v in &inputs {
            let words = self.words_under_way(v)?;
            counts.push(words.len());
            for word in words {
                operands.in_place(self.b.ty(word), word);
            }
        }
        let text = format!("wgmma.wait_group.sync.aligned {};", op.pendings(m));
        let mut waited = self.statement(&text, &operands).into_iter();
        for ((&input, &output), count) in inputs.iter().zip(&outputs).zip(counts) {
            if !m.is_tensor(self.value_ty(input)) {
                let buffer = self.buffer(input)?;
                self.set(output, Val::Buffer(buffer));
                continue;
            }
            let words: Vec<Value> = waited.by_ref().take(count).collect();
            if is_left_operand(self, self.value_ty(input)) {
                // For other dots that are under way with it.
                self.keep_fragments(input, words.clone());
            }
            let regs = self.elements_of_words(m.value_type(output), &words)?;
            self.set_regs(output, regs);
        }
        Ok(())
    }

    /// The words in which a dot under way has a value: its result, or its left operand in registers.
    pub fn words_under_way(&mut self, v: ir::Value) -> Result<Vec<Value>> {
        let ty = self.value_ty(v);
        if !self.m.is_tensor(ty) {
            return Ok(vec![]);
        }
        if is_left_operand(self, ty) {
            return self.fragment_words(v);
        }
        let regs = self.regs(v)?;
        Ok(self.accumulator_words(&regs))
    }

    /// Whether a tensor goes from block to block as words of several elements. What a dot under way has, halves that it
    /// accumulates or its left operand, must not be taken apart and put together again where a loop begins anew. (Columns
    /// of one element, which are laid out for what is added to an accumulator, are none.)
    pub fn crosses_as_words(&mut self, ty: ir::Type) -> bool {
        let encoding = self.m.encoding(ty).and_then(|e| self.m.encoding_of(e));
        let accumulates = matches!(encoding, Some(Encoding::NvidiaMma { version_major: 3, .. }))
            && self.float_kind(ty) == Some(FloatKind::F16)
            && self.num_regs(ty).is_ok_and(|n| n.is_multiple_of(2));
        accumulates || is_left_operand(self, ty)
    }

    /// Accumulators as the instruction has them: halves in pairs.
    fn accumulator_words(&mut self, acc: &[Value]) -> Vec<Value> {
        if acc.first().is_some_and(|&v| self.b.ty(v) == Ty::F16) {
            self.pack_halves(acc)
        } else {
            acc.to_vec()
        }
    }

    /// Pairs of halves as words.
    fn pack_halves(&mut self, halves: &[Value]) -> Vec<Value> {
        halves
            .chunks(2)
            .map(|pair| {
                let word = self.pack_word(pair);
                self.b.bitcast(word, Ty::I32)
            })
            .collect()
    }

    /// The reverse of [`Lower::pack_halves`].
    fn unpack_halves(&mut self, words: &[Value]) -> Vec<Value> {
        words.iter().flat_map(|&w| self.unpack_word(w, Ty::F16, 2)).collect()
    }
}

/// Whether anything but products that add to it, waits for them and control flow has a value.
fn is_read(m: &ir::Module, value: ir::Value) -> bool {
    m.uses(value).iter().any(|u| {
        let added_to = ttng::WarpGroupDot::cast(m, u.op).is_some() && u.index == 2;
        let passed_on =
            || flow::edges_of_user(m, u.op).iter().any(|e| e.target(u.op, u.index as usize).is_some());
        !added_to && ttng::WarpGroupDotWait::cast(m, u.op).is_none() && !passed_on()
    })
}

/// What a value that a loop carries is before the loop.
fn begins_as(m: &ir::Module, value: ir::Value) -> Option<ir::Value> {
    let ir::ValueDef::Argument(block, _) = m.value_def(value) else { return None };
    let parent = m.block_parent_op(block)?;
    let edges = flow::edges_into(m, value);
    let mut sources = edges.iter().filter_map(|(edge, i)| edge.from(m).get(*i).copied());
    sources.find(|&v| {
        !m.value_block(v).and_then(|b| m.block_parent_op(b)).is_some_and(|p| m.is_ancestor(parent, p))
    })
}

/// Whether a tensor is laid out as the left operand of a warp-group dot.
pub(super) fn is_left_operand(l: &Shared<'_>, ty: ir::Type) -> bool {
    let encoding = l.m.encoding(ty).and_then(|e| l.m.encoding_of(e));
    let Some(Encoding::DotOperand { op_idx: 0, parent, .. }) = encoding else { return false };
    matches!(**parent, Encoding::NvidiaMma { version_major: 3, .. })
}

/// The constraint of a register of 32 bits.
fn register_letter(ty: Ty) -> char {
    if ty == Ty::F32 { 'f' } else { 'r' }
}

/// The registers of the accumulators of the tile at (`row`, `column`), in the instruction's order.
fn accumulators(finder: &RegisterFinder<'_>, row: u32, column: u32, n: u32) -> Option<Vec<usize>> {
    (0..n / 8)
        .flat_map(|j| [(0, 0), (0, 1), (8, 0), (8, 1)].map(|(r, c)| (row + r, column + 8 * j + c)))
        .map(|(r, c)| finder.find(&[r, c]).map(|x| x as usize))
        .collect()
}
