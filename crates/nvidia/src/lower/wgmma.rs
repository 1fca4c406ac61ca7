//! `ttng`: products of warp groups by `wgmma.mma_async` (PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions").
//!
//! Accumulators are asm operands that are read and written in place: results tied to inputs. While a product is under way
//! they are values like any others for LLVM; a wait takes them as inputs and results, so that nothing that looks at them
//! moves above it. The K steps of one accumulator tile stand in one asm statement: nothing comes between, and `ptxas` need
//! not serialize them.
//!
//! Registers and tiles: warp group `w` holds 64 rows; per 8 columns a thread has accumulators at (0, 0), (0, 1), (8, 0),
//! (8, 1) from its first row and column, as the instruction orders them. All threads' coordinates are those of thread 0
//! plus what the layout adds alike, so thread 0 says which register is which operand.

use std::fmt::Write as _;
use std::ops::Range;

use tilewright_ir as ir;
use tilewright_ir::FloatKind;
use tilewright_ir::dialect::ttng;
use tilewright_layout::{Encoding, RegisterFinder, SharedLayout, WgmmaOperand};
use tilewright_llvm::{BinOp, CastOp, Effect, Ty, Value};

use super::{Buffer, Lower, Result, Val};

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
    /// The descriptor of this warp group's first tile.
    first: Value,
}

/// The left operand.
enum Left {
    Shared(Operand),
    /// The words of each K step of each tile.
    Registers(Vec<Vec<[Value; 4]>>),
}

/// What the instructions of one accumulator tile have in common.
struct Tile<'a> {
    /// Its first row and column from the warp group's.
    at: (u32, u32),
    /// N of an instruction.
    n: u32,
    left: TileLeft<'a>,
    right: &'a Operand,
    /// Its registers, in the instruction's order.
    registers: &'a [usize],
}

/// The left operand of a tile.
enum TileLeft<'a> {
    Shared(&'a Operand),
    /// The words of each K step.
    Registers(&'a [[Value; 4]]),
}

impl Lower<'_> {
    pub fn hopper(&mut self, op: ir::Op, kind: ttng::Kind) -> Result<()> {
        if !self.target.facts().wgmma {
            return Err(self.unsupported("warp-group instructions"));
        }
        match kind {
            ttng::Kind::WarpGroupDot => self.warp_group_dot(ttng::WarpGroupDot(op)),
            ttng::Kind::WarpGroupDotWait => self.warp_group_dot_wait(ttng::WarpGroupDotWait(op)),
            ttng::Kind::FenceAsyncShared => {
                self.b.asm("fence.proxy.async.shared::cta;", "", Effect::Write, &[], &[]);
                Ok(())
            }
            ttng::Kind::InitBarrier => self.init_barrier(ttng::InitBarrier(op)),
            ttng::Kind::InvalBarrier => self.inval_barrier(ttng::InvalBarrier(op)),
            ttng::Kind::BarrierExpect => self.barrier_expect(ttng::BarrierExpect(op)),
            ttng::Kind::WaitBarrier => self.wait_barrier(ttng::WaitBarrier(op)),
            ttng::Kind::ArriveBarrier => self.arrive_barrier(ttng::ArriveBarrier(op)),
            ttng::Kind::TakeTurn => {
                self.take_turn(ttng::TakeTurn(op));
                Ok(())
            }
            ttng::Kind::PassTurn => {
                self.pass_turn(ttng::PassTurn(op));
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
                self.set_regs(self.m.result(op), vec![rank]);
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
        let Encoding::NvidiaMma { version_major: 3, warps_per_cta, instr_shape, .. } =
            self.encoding(self.value_ty(d))?
        else {
            return Err(self.error("internal: a warp-group dot whose result is not laid out for one"));
        };
        let (&[warps_m, warps_n], &[_, n, _]) = (&warps_per_cta[..], &instr_shape[..]) else {
            return Err(self.unsupported("warp-group dots of this rank"));
        };
        let inst = self.wgmma_instruction(op)?;
        let layout = self.layout(self.value_ty(d))?;
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

        let mut acc = self.regs(c)?.to_vec();
        // How much of K is summed by the tensor cores before it is added to what they can't round.
        let partial = op.max_num_imprecise_acc(m).map(|n| (n as u32).div_ceil(inst.k()).clamp(1, steps));
        if partial.is_none() {
            self.b.asm("wgmma.fence.sync.aligned;", "", Effect::Write, &[], &[]);
        }
        for tile_m in 0..tiles_m {
            for tile_n in 0..tiles_n {
                let registers = accumulators(&finder, tile_m * rows, tile_n * columns, n)
                    .ok_or_else(|| self.error("internal: an accumulator layout lacks an element"))?;
                let tile = Tile {
                    at: (tile_m * rows, tile_n * columns),
                    n,
                    left: match &left {
                        Left::Registers(f) => TileLeft::Registers(&f[tile_m as usize]),
                        Left::Shared(o) => TileLeft::Shared(o),
                    },
                    right: &right,
                    registers: &registers,
                };
                match partial {
                    None => self.wgmma_tile(inst, &tile, 0..steps, &mut acc)?,
                    Some(length) => self.wgmma_partial_sums(inst, &tile, steps, length, &mut acc)?,
                }
            }
        }
        if partial.is_none() {
            self.b.asm("wgmma.commit_group.sync.aligned;", "", Effect::Write, &[], &[]);
            if !op.is_async(m) {
                acc = self.wgmma_wait(0, &acc);
            }
        }
        self.set_regs(d, acc);
        Ok(())
    }

    /// A tile's product in sums of `length` K steps, each added to the accumulators by ordinary additions: the tensor cores
    /// keep fewer bits of sums of 8-bit floats than fp32 has.
    fn wgmma_partial_sums(
        &mut self,
        inst: Instruction,
        tile: &Tile<'_>,
        steps: u32,
        length: u32,
        acc: &mut [Value],
    ) -> Result<()> {
        let zero = self.b.zero(inst.acc);
        for first in (0..steps).step_by(length as usize) {
            let mut sums = vec![zero; acc.len()];
            self.b.asm("wgmma.fence.sync.aligned;", "", Effect::Write, &[], &[]);
            self.wgmma_tile(inst, tile, first..steps.min(first + length), &mut sums)?;
            self.b.asm("wgmma.commit_group.sync.aligned;", "", Effect::Write, &[], &[]);
            let sums: Vec<Value> = tile.registers.iter().map(|&r| sums[r]).collect();
            let sums = self.wgmma_wait(0, &sums);
            for (&r, sum) in tile.registers.iter().zip(sums) {
                acc[r] = self.b.bin(BinOp::FAdd, acc[r], sum);
            }
        }
        Ok(())
    }

    /// K steps of one accumulator tile, in one statement.
    fn wgmma_tile(
        &mut self,
        inst: Instruction,
        tile: &Tile<'_>,
        steps: Range<u32>,
        acc: &mut [Value],
    ) -> Result<()> {
        let &Tile { at, n, ref left, right, registers } = tile;
        // Nothing to add to: the first step overwrites.
        let fresh = registers.iter().all(|&r| self.b.as_const(acc[r]) == Some(0));
        let elements: Vec<Value> = registers.iter().map(|&r| acc[r]).collect();
        let words = self.accumulator_words(&elements);
        let count = words.len();
        let letter = accumulator_letter(inst.acc);
        let mut constraints = vec![format!("={letter}"); count];
        let mut args = Vec::with_capacity(count + 8 * steps.len());
        if !fresh {
            constraints.extend((0..count).map(|i| i.to_string()));
            args.extend(&words);
        }
        let mut next = constraints.len();
        let mut text = String::from("{\n.reg .pred p;\n");
        let shared_a = match left {
            TileLeft::Shared(o) => Some(&o.layout),
            TileLeft::Registers(_) => None,
        };
        let flags = inst.flags(shared_a, &right.layout);
        let list: Vec<String> = (0..count).map(|i| format!("${i}")).collect();
        let list = list.join(", ");
        let _ = writeln!(text, "setp.ne.b32 p, {}, 0;", u32::from(!fresh));
        for step in steps.clone() {
            if fresh && step == steps.start + 1 {
                text.push_str("setp.ne.b32 p, 1, 0;\n");
            }
            let mut operand = |value: Value, letter: &str| {
                args.push(value);
                constraints.push(letter.to_string());
                next += 1;
                format!("${}", next - 1)
            };
            let a = match left {
                TileLeft::Shared(o) => {
                    let d = self.wgmma_descriptor(o, at.0, step * inst.k())?;
                    operand(d, "l")
                }
                TileLeft::Registers(f) => {
                    let words: Vec<String> = f[step as usize].iter().map(|&w| operand(w, "r")).collect();
                    format!("{{{}}}", words.join(", "))
                }
            };
            let b = self.wgmma_descriptor(right, at.1, step * inst.k())?;
            let b = operand(b, "l");
            let (k, types) = (inst.k(), inst.types);
            let _ = writeln!(
                text,
                "wgmma.mma_async.sync.aligned.m64n{n}k{k}.{types} {{{list}}}, {a}, {b}, p{flags};"
            );
        }
        text.push('}');
        let ty = if inst.acc == Ty::F16 { Ty::I32 } else { inst.acc };
        let out = self.b.asm(&text, &constraints.join(","), Effect::Write, &vec![ty; count], &args);
        let out = if inst.acc == Ty::F16 { self.unpack_halves(&out) } else { out.to_vec() };
        for (&r, v) in registers.iter().zip(out) {
            acc[r] = v;
        }
        Ok(())
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
        let field = self.b.int_cast(field, Ty::I64, false);
        let constant = self.b.i64(layout.descriptor() as i64);
        let first = self.b.bin(BinOp::Or, field, constant);
        Ok(Operand { layout, shared, first })
    }

    /// The descriptor of the tile at (`mn`, `k`) from the warp group's first.
    fn wgmma_descriptor(&mut self, operand: &Operand, mn: u32, k: u32) -> Result<Value> {
        let offset = operand
            .layout
            .start(&operand.shared, mn, k)
            .ok_or_else(|| self.unsupported("a warp-group dot on a tile that begins within a swizzle"))?;
        Ok(self.b.add_const(operand.first, i64::from(offset >> 4)))
    }

    /// The warp's index, in a register that is known to be the same in all lanes.
    pub fn uniform_warp(&mut self) -> Value {
        let warp = self.warp();
        let v = self.b.asm1("shfl.sync.idx.b32 $0, $1, 0, 31, -1;", "=r,r", Effect::Pure, Ty::I32, &[warp]);
        self.b.assume_zeros(v, 0xffff_ffe0);
        v
    }

    /// A's fragments: for each tile of rows and each K step the four words of the instruction.
    fn wgmma_fragments(
        &mut self,
        a: ir::Value,
        inst: Instruction,
        tiles: u32,
        rows: u32,
        steps: u32,
    ) -> Result<Vec<Vec<[Value; 4]>>> {
        let layout = self.layout(self.value_ty(a))?;
        let finder = layout.register_finder();
        let regs = self.regs(a)?;
        let width = 32 / inst.bits;
        let mut out = Vec::new();
        for tile in 0..tiles {
            let mut words = Vec::new();
            for step in 0..steps {
                let mut word = |row: u32, half: u32| -> Result<Value> {
                    let k = step * inst.k() + half * 4 * width;
                    let elements: Option<Vec<Value>> = (0..width)
                        .map(|i| finder.find(&[tile * rows + row, k + i]).map(|r| regs[r as usize]))
                        .collect();
                    let elements = elements
                        .ok_or_else(|| self.error("internal: an operand's layout lacks an element"))?;
                    let packed = self.pack_word(&elements);
                    Ok(self.b.bitcast(packed, Ty::I32))
                };
                words.push([word(0, 0)?, word(8, 0)?, word(0, 1)?, word(8, 1)?]);
            }
            out.push(words);
        }
        Ok(out)
    }

    fn warp_group_dot_wait(&mut self, op: ttng::WarpGroupDotWait) -> Result<()> {
        let m = self.m;
        let (inputs, outputs) = (op.inputs(m).to_vec(), op.outputs(m).to_vec());
        let mut all = Vec::new();
        for &v in &inputs {
            if m.is_tensor(self.value_ty(v)) {
                all.extend(self.regs(v)?.iter().copied());
            }
        }
        let mut waited = self.wgmma_wait(op.pendings(m), &all).into_iter();
        for (&input, &output) in inputs.iter().zip(&outputs) {
            if m.is_tensor(self.value_ty(input)) {
                let count = self.regs(input)?.len();
                let regs: Vec<Value> = waited.by_ref().take(count).collect();
                self.set_regs(output, regs);
            } else {
                let buffer = self.buffer(input)?;
                self.set(output, Val::Buffer(buffer));
            }
        }
        Ok(())
    }

    /// Waits until at most `pendings` groups are under way; returns the accumulators as they are then.
    fn wgmma_wait(&mut self, pendings: i32, acc: &[Value]) -> Vec<Value> {
        let mut words = Vec::with_capacity(acc.len());
        let mut rest = acc;
        while let Some(&v) = rest.first() {
            let (one, others) = rest.split_at(if self.b.ty(v) == Ty::F16 { 2 } else { 1 });
            words.extend(self.accumulator_words(one));
            rest = others;
        }
        let types: Vec<Ty> = words.iter().map(|&v| self.b.ty(v)).collect();
        let mut constraints: Vec<String> =
            types.iter().map(|&t| format!("={}", accumulator_letter(t))).collect();
        constraints.extend((0..words.len()).map(|i| i.to_string()));
        let text = format!("wgmma.wait_group.sync.aligned {pendings};");
        let out = self.b.asm(&text, &constraints.join(","), Effect::Write, &types, &words);
        let mut out = out.iter().copied();
        let mut waited = Vec::with_capacity(acc.len());
        while let Some(&v) = acc.get(waited.len()) {
            let word = out.next().expect("a word for each accumulator, or for two halves");
            if self.b.ty(v) == Ty::F16 {
                waited.extend(self.unpack_halves(&[word]));
            } else {
                waited.push(word);
            }
        }
        waited
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
    pub fn pack_halves(&mut self, halves: &[Value]) -> Vec<Value> {
        halves
            .chunks(2)
            .map(|pair| {
                let word = self.pack_word(pair);
                self.b.bitcast(word, Ty::I32)
            })
            .collect()
    }

    /// The reverse of [`Lower::pack_halves`].
    pub fn unpack_halves(&mut self, words: &[Value]) -> Vec<Value> {
        words.iter().flat_map(|&w| self.unpack_word(w, Ty::F16, 2)).collect()
    }
}

/// The constraint of accumulators of a type: halves are words.
fn accumulator_letter(ty: Ty) -> char {
    if ty == Ty::F32 { 'f' } else { 'r' }
}

/// The registers of the accumulators of the tile at (`row`, `column`), in the instruction's order.
fn accumulators(finder: &RegisterFinder<'_>, row: u32, column: u32, n: u32) -> Option<Vec<usize>> {
    (0..n / 8)
        .flat_map(|j| [(0, 0), (0, 1), (8, 0), (8, 1)].map(|(r, c)| (row + r, column + 8 * j + c)))
        .map(|(r, c)| finder.find(&[r, c]).map(|x| x as usize))
        .collect()
}
