//! Dots for warp groups (`wgmma`, PTX ISA "Asynchronous Warpgroup Level Matrix Instructions"): which dots become
//! `ttng.warp_group_dot`, in which encoding, and how their operands lie in shared memory.
//!
//! The four warps of a group hold 64 rows of the result. B is read from shared memory by descriptor; A too, unless it is
//! in registers already as the instruction wants it (the probabilities of flash attention: an accumulator of one dot,
//! narrowed, is the left operand of the next).
//!
//! ```text
//! %a = tt.load ... : tensor<128x64xf16, #blocked>
//! %d = tt.dot %a, %b, %acc
//! =>
//! %sa = ttg.local_alloc %a : ... -> !ttg.memdesc<128x64xf16, #nvmma_shared, #smem>
//! %d = ttng.warp_group_dot %sa, %sb, %acc : ... -> tensor<128x128xf32, #mma3>
//! ```
//!
//! Operands of 8 and 32 bits must lie with K contiguous. One that is loaded the other way is turned on its way: copied as it
//! is, read with few elements along memory's rows and many along K in each thread, and stored again.
//!
//! ```text
//! %b = tt.load ... : tensor<128x128xf8E4M3FN, #blocked>          // N contiguous
//! =>
//! %s = ttg.local_alloc %b : ... -> !ttg.memdesc<128x128xf8E4M3FN, #swizzled, #smem>
//! %t = ttg.local_load %s : ... -> tensor<128x128xf8E4M3FN, #blocked<sizePerThread = [16, 4], order = [0, 1]>>
//! %sb = ttg.local_alloc %t : ... -> !ttg.memdesc<128x128xf8E4M3FN, #nvmma_shared<transposed = true>, #smem>
//! ```
//!
//! Products that the kernel issues itself are such operations from the beginning: they get the encodings of their results here, and of a
//! left operand in registers. (Their buffers have theirs: [`arrange_buffers`](crate::transform::arrange_buffers).)
//!
//! Together with [`rewrite`](super::rewrite), since a dot for warp groups is rewritten there, and what its operands become depends on both.

use std::sync::Arc;

use tilewright_ir::dialect::tt::{self, InputPrecision};
use tilewright_ir::dialect::{ttg, ttng};
use tilewright_ir::{Attr, Builder, Encoding, FloatKind, Module, Op, Opcode, SharedKind, TypeKind, Value};
use tilewright_layout::{SharedLayout, TileLayout, WgmmaOperand};

use super::Assigner;
use super::rewrite::{Rewriter, after_value};
use crate::analysis::{encoding_choice, encoding_inference, scratch};
use crate::hopper::user_dots;
use crate::target::is_mma_fp8;

/// Bits of the operands' elements, if `wgmma` multiplies them into this accumulator.
fn operand_bits(module: &Module, dot: tt::Dot) -> Option<u32> {
    let kind = |v: Value| module.type_kind(module.element_type(module.value_type(v)));
    let (a, b, acc) = (kind(dot.a(module)), kind(dot.b(module)), kind(dot.c(module)));
    let f32_acc = *acc == TypeKind::Float(FloatKind::F32);
    match (a, b) {
        (TypeKind::Float(FloatKind::F16), TypeKind::Float(FloatKind::F16))
            if f32_acc || *acc == TypeKind::Float(FloatKind::F16) =>
        {
            Some(16)
        }
        (TypeKind::Float(FloatKind::BF16), TypeKind::Float(FloatKind::BF16)) if f32_acc => Some(16),
        (TypeKind::Float(FloatKind::F32), TypeKind::Float(FloatKind::F32))
            if f32_acc && dot.input_precision(module) == InputPrecision::Tf32 =>
        {
            Some(32)
        }
        (TypeKind::Float(x), TypeKind::Float(y)) if is_mma_fp8(*x) && is_mma_fp8(*y) && f32_acc => Some(8),
        (TypeKind::Int(8), TypeKind::Int(8)) if *acc == TypeKind::Int(32) => Some(8),
        _ => None,
    }
}

/// N of one instruction: the largest that divides what a column of warp groups computes (PTX ISA, "wgmma.mma_async":
/// multiples of 8 up to 256, for integers above 32 multiples of 16).
fn instruction_n(columns: u32, integer: bool, power_of_two: bool) -> Option<u32> {
    (1..=32).rev().map(|n| 8 * n).find(|&n| {
        columns.is_multiple_of(n)
            && (!power_of_two || n.is_power_of_two())
            && (!integer || n <= 32 || n % 16 == 0)
    })
}

/// How a result of `m` by `n` is shared by warps: how many along its rows and its columns, and N of one instruction.
pub fn warp_group_shape(m: u32, n: u32, num_warps: u32, integer: bool) -> Option<[u32; 3]> {
    if !num_warps.is_multiple_of(4) {
        return None;
    }
    // Warps along M first: they share B, the larger operand of an instruction, and keep rows within warps.
    let mut along_m = num_warps;
    while !m.is_multiple_of(16 * along_m) {
        along_m /= 2;
        if along_m < 4 {
            return None;
        }
    }
    divided_by_groups([m, n], [along_m, num_warps / along_m], integer)
}

/// The same where the warps lie in a given grid.
fn divided_by_groups([m, n]: [u32; 2], [along_m, along_n]: [u32; 2], integer: bool) -> Option<[u32; 3]> {
    if !along_m.is_multiple_of(4) || !m.is_multiple_of(16 * along_m) || !n.is_multiple_of(along_n) {
        return None;
    }
    Some([along_m, along_n, instruction_n(n / along_n, integer, along_n > 1)?])
}

/// The buffer encoding of an operand with this fast dimension, if descriptors can address instructions of `mn` rows at
/// every `step` rows.
pub(crate) fn operand_buffer_encoding(
    shape: &[u32],
    fast: usize,
    bits: u32,
    mn_axis: usize,
    mn: u32,
    step: u32,
) -> Option<Encoding> {
    // Tiles along the fast dimension begin at slabs.
    let run = if fast == mn_axis && step < shape[fast] { shape[fast] | step } else { shape[fast] };
    let row = run * bits / 8;
    let swizzle_bytes = (1 << row.trailing_zeros()).min(128);
    if swizzle_bytes < 32 {
        return None;
    }
    let encoding = Encoding::Shared(SharedKind::NvmmaShared {
        swizzle_bytes,
        transposed: fast == 0,
        element_bits: bits,
        rank: 2,
    });
    let shared = SharedLayout::new(&encoding, shape, bits).ok()?;
    let operand = WgmmaOperand::new(&encoding, &shared, mn_axis, mn)?;
    (0..shape[mn_axis])
        .step_by(step as usize)
        .all(|at| operand.start(&shared, at, 0).is_some())
        .then_some(encoding)
}

impl Assigner<'_> {
    /// The accumulator encoding with which a dot is one for warp groups; `None` where it is not.
    pub(super) fn warp_group_encoding(&self, dot: tt::Dot) -> Option<Encoding> {
        self.warp_group_encoding_of(dot, dot.tiling(self.module))
    }

    /// The same if the dot's hint were this one.
    pub(super) fn warp_group_encoding_of(&self, dot: tt::Dot, tiling: tt::Tiling) -> Option<Encoding> {
        if !self.target.dots.wgmma || !self.num_warps.is_multiple_of(4) {
            return None;
        }
        let bits = operand_bits(self.module, dot)?;
        let (a, b) = (dot.a(self.module), dot.b(self.module));
        let (shape_a, shape_b) = (self.shape(a), self.shape(b));
        let (&[m, k], &[_, n]) = (&shape_a[..], &shape_b[..]) else { return None };
        let instruction_k = 256 / bits;
        if k % instruction_k != 0 {
            return None;
        }
        let integer = self.module.is_int(self.module.value_type(dot.c(self.module)));
        let [along_m, along_n, instruction_n] = match tiling {
            tt::Tiling::Default => warp_group_shape(m, n, self.num_warps, integer)?,
            _ => {
                let (shape, tile) = ([m, n], encoding_choice::INSTRUCTION);
                let warps = encoding_choice::tiled_warps(tiling, shape, tile, self.num_warps)?;
                divided_by_groups(shape, warps, integer)?
            }
        };
        // As the operands lie in memory, so they come into shared memory; a descriptor must be able to say how.
        for (value, shape, mn_axis, mn) in [(a, &shape_a, 0, 64), (b, &shape_b, 1, instruction_n)] {
            if let Some(fast) = self.fast_axis(value)
                && !self.defined_by_dot(value)
            {
                match operand_buffer_encoding(shape, fast, bits, mn_axis, mn, mn) {
                    None if self.turns(value, mn_axis, bits) => {}
                    found => {
                        found?;
                        continue;
                    }
                }
            }
            operand_buffer_encoding(shape, 1 - mn_axis, bits, mn_axis, mn, mn)?;
        }
        Some(Encoding::NvidiaMma {
            version_major: 3,
            version_minor: 0,
            warps_per_cta: vec![along_m, along_n],
            instr_shape: vec![16, self.common_n(instruction_n, n, along_n, bits), instruction_k],
        })
    }

    /// The accumulator encoding of a product that the kernel issues itself. Those of one shape and type have one, whatever they multiply, so
    /// that they add to each other's results as these are.
    pub(super) fn authored_encoding(&self, dot: ttng::WarpGroupDot) -> Option<Encoding> {
        let m = &*self.module;
        let result = m.value_type(dot.d(m));
        let [along_m, along_n, n] = user_dots::warps_of(m, dot, self.num_warps)?;
        let dots = self.ops.iter().filter(|&&op| user_dots::is_authored(m, op));
        let mut dots = dots.filter_map(|&op| ttng::WarpGroupDot::cast(m, op));
        let first = dots.find(|d| m.value_type(d.d(m)) == result)?;
        let instruction_k = 256 / m.bits(m.value_type(first.b(m)));
        Some(Encoding::NvidiaMma {
            version_major: 3,
            version_minor: 0,
            warps_per_cta: vec![along_m, along_n],
            instr_shape: vec![16, n, instruction_k],
        })
    }

    /// N for the encoding: dots of one function share it where the registers are the same, so that what passes from one to
    /// the other has one encoding. An instruction is never wider than its tile.
    fn common_n(&self, instruction_n: u32, n: u32, along_n: u32, bits: u32) -> u32 {
        let shares = |n: u32| n.is_power_of_two() && (8..=256).contains(&n);
        if along_n != 1 || !shares(n) {
            return instruction_n;
        }
        let m = &*self.module;
        let others = self.ops.iter().filter(|&&op| !m.is_erased(op)).filter_map(|&op| {
            let other = tt::Dot::cast(m, op).filter(|&d| operand_bits(m, d) == Some(bits))?;
            self.shape(other.result(m)).get(1).copied().filter(|&n| shares(n))
        });
        others.max().unwrap_or(instruction_n).max(instruction_n)
    }

    /// Where warp groups lie side by side in the accumulators of two dots and arithmetic makes the left operand of the
    /// second of the first one's result (attention of 64 rows by 8 warps): each group needs whole rows, so each computes all
    /// of the first. Half of its columns would have to go through shared memory, twice reduced and behind barriers.
    pub(super) fn with_whole_rows(&self, dot: tt::Dot, mut encoding: Encoding) -> Encoding {
        let Encoding::NvidiaMma { warps_per_cta, instr_shape, .. } = &mut encoding else { return encoding };
        let n = self.shape(dot.result(self.module))[1];
        let hinted = dot.tiling(self.module) != tt::Tiling::Default;
        if hinted || warps_per_cta[1] == 1 || n > 256 || !n.is_power_of_two() {
            return encoding;
        }
        let Some(next) = self.feeds_left_operand(dot).and_then(|d| self.warp_group_encoding(d)) else {
            return encoding;
        };
        if let Encoding::NvidiaMma { warps_per_cta: warps, instr_shape: shape, .. } = next
            && warps == *warps_per_cta
            && shape[2] == instr_shape[2]
        {
            instr_shape[1] = n.max(shape[1]);
        }
        encoding
    }

    /// The dot whose left operand arithmetic makes of this one's result, maybe after other dots have added to it.
    fn feeds_left_operand(&self, dot: tt::Dot) -> Option<tt::Dot> {
        let m = &*self.module;
        let mut work = vec![dot.result(m)];
        let mut seen = rustc_hash::FxHashSet::default();
        while let Some(v) = work.pop() {
            for u in m.uses(v) {
                if !seen.insert(u.op) {
                    continue;
                }
                match tt::Dot::cast(m, u.op) {
                    Some(next) if u.index == 0 => return Some(next),
                    Some(next) if u.index == 2 => work.push(next.result(m)),
                    None if encoding_inference::shares_encoding(m, u.op) => work.extend(m.results(u.op)),
                    _ => {}
                }
            }
        }
        None
    }

    /// The dimension along which an operand is contiguous in memory, where it is loaded.
    fn fast_axis(&self, value: Value) -> Option<usize> {
        let m = &*self.module;
        let op = m.defining_op(value)?;
        match m.opcode(op)? {
            // (Not what is known of its pointers: while operations are rewritten, they are copied.)
            Opcode::Tt(tt::Kind::Load) => Some(self.accesses.get(&op).map_or(1, |a| a.fast as usize)),
            // TMA keeps the order of memory, whose last dimension is contiguous.
            Opcode::Tt(tt::Kind::DescriptorLoad) => Some(1),
            Opcode::Tt(tt::Kind::Trans) => self.fast_axis(m.operands(op)[0]).map(|d| 1 - d),
            _ if encoding_inference::shares_encoding(m, op) => {
                m.operands(op).iter().find_map(|&v| self.fast_axis(v))
            }
            _ => None,
        }
    }

    /// Whether an operand can be turned on its way into shared memory: it is loaded, in words at least.
    fn turns(&self, value: Value, mn_axis: usize, bits: u32) -> bool {
        let m = &*self.module;
        let (value, mn_axis) = match tt::Trans::of(m, value) {
            Some(t) => (t.src(m), 1 - mn_axis),
            None => (value, mn_axis),
        };
        let Some(load) = m.defining_op(value).and_then(|op| tt::Load::cast(m, op)) else { return false };
        let shape = self.shape(value);
        let run = self.accesses.get(&load.0).map_or(1, |a| a.vec[mn_axis]);
        bits * run >= 32 && turning(&shape, bits, mn_axis, self.num_warps).is_some()
    }

    /// Whether arithmetic makes the value from a dot's result.
    fn defined_by_dot(&self, value: Value) -> bool {
        let m = &*self.module;
        let mut work = vec![value];
        let mut seen = rustc_hash::FxHashSet::default();
        while let Some(v) = work.pop() {
            let Some(op) = m.defining_op(v) else { continue };
            if !seen.insert(op) {
                continue;
            }
            if tt::Dot::cast(m, op).is_some() || ttng::WarpGroupDot::cast(m, op).is_some() {
                return true;
            }
            if encoding_inference::shares_encoding(m, op) {
                work.extend(m.operands(op));
            }
        }
        false
    }
}

/// How an operand whose K is not contiguous in memory is turned: the buffer into which it is copied, and the registers
/// through which it goes on. Each thread reads words along the rows and holds 16 bytes along K, or fewer where the tile is
/// small; the lanes that read together are as many of these runs apart as the swizzle tells apart.
fn turning(shape: &[u32], bits: u32, mn_axis: usize, num_warps: u32) -> Option<(Encoding, Encoding)> {
    let (k, mn) = (shape[1 - mn_axis], shape[mn_axis]);
    let (chunk, word) = (128 / bits, 32 / bits);
    if !mn.is_multiple_of(chunk) {
        return None;
    }
    let power = |n: u32, most: u32| (1 << n.trailing_zeros()).min(most);
    let of = |k: u32, mn: u32| if mn_axis == 1 { vec![k, mn] } else { vec![mn, k] };
    let runs = std::iter::successors(Some(chunk), |run| Some(run / 2)).take_while(|&run| run >= word);
    runs.filter(|&run| k.is_multiple_of(run)).find_map(|run| {
        let along_k = power(k / run, 8);
        let along_mn = 32 / along_k;
        let warps_mn = power((mn / (word * along_mn)).max(1), num_warps);
        let warps_k = num_warps / warps_mn;
        if !mn.is_multiple_of(word * along_mn * warps_mn) || !k.is_multiple_of(run * along_k * warps_k) {
            return None;
        }
        let registers = Encoding::Blocked {
            size_per_thread: of(run, word),
            threads_per_warp: of(along_k, along_mn),
            warps_per_cta: of(warps_k, warps_mn),
            order: vec![1 - mn_axis as u32, mn_axis as u32],
        };
        let buffer = Encoding::Shared(SharedKind::Swizzled {
            vec: chunk,
            per_phase: run,
            max_phase: power(mn / chunk, 8),
            order: vec![mn_axis as u32, 1 - mn_axis as u32],
        });
        Some((buffer, registers))
    })
}

/// Warps and instruction shape of an accumulator for warp groups.
pub(super) fn is_warp_group_encoding(encoding: &Encoding) -> Option<(&[u32], u32)> {
    match encoding {
        Encoding::NvidiaMma { version_major: 3, warps_per_cta, instr_shape, .. } => {
            Some((warps_per_cta, instr_shape[1]))
        }
        _ => None,
    }
}

impl Rewriter<'_> {
    /// Replaces a dot by one for warp groups.
    pub(super) fn warp_group_dot(&mut self, dot: tt::Dot, acc: Attr, instruction_n: u32) {
        self.set_operand(dot.0, 2, acc);
        let (a, b, c) = (dot.a(self.m()), dot.b(self.m()), dot.c(self.m()));
        let instruction_n = instruction_n.min(self.a.shape(b)[1]);
        let bits = self.m().bits(self.m().value_type(a));
        let parent = Arc::new(self.a.encoding(acc).clone());
        let fragments = Encoding::DotOperand { op_idx: 0, parent, k_width: 32 / bits };
        let shape = self.a.shape(a);
        let in_registers = self
            .encoding_of(a)
            .is_some_and(|have| scratch::stays_in_registers(self.a.encoding(have), &fragments, &shape));
        let left = if in_registers {
            let want = self.a.intern(fragments);
            self.get(a, want)
        } else {
            self.operand_buffer(a, 0, 64, dot.0)
        };
        let right = self.operand_buffer(b, 1, instruction_n, dot.0);
        let result = self.m().value_type(dot.result(self.m()));
        let result = self.a.module.with_encoding(result, Some(acc));
        let precision = match dot.input_precision(self.m()) {
            InputPrecision::Tf32 => 0,
            InputPrecision::Tf32x3 => 1,
            _ => 2,
        };
        // A bound beyond K bounds nothing: the accumulators are exact enough by promise.
        let k = self.a.shape(b)[0];
        let imprecise = dot
            .max_num_imprecise_acc(self.m())
            .filter(|&n| bits == 8 && u32::try_from(n).is_ok_and(|n| n <= k));
        let mut builder = Builder::before(self.a.module, dot.0);
        let d = ttng::WarpGroupDot::build(
            &mut builder,
            left,
            right,
            c,
            None,
            Some(precision),
            imprecise,
            false,
            result,
        );
        let d = d.d(builder.module);
        self.a.module.replace_op(dot.0, &[d]);
    }

    /// Gives what a product of the kernel's own adds to, and a left operand in registers, the encodings that it wants.
    pub(super) fn authored_dot(&mut self, dot: ttng::WarpGroupDot) {
        let acc = self.own_encoding(dot.d(self.m()));
        self.set_encoding(dot.d(self.m()), acc);
        self.set_operand(dot.0, 2, acc);
        let a = dot.a(self.m());
        if encoding_inference::is_tensor(self.m(), a) {
            let bits = self.m().bits(self.m().value_type(a));
            let parent = Arc::new(self.a.encoding(acc).clone());
            let fragments = self.a.intern(Encoding::DotOperand { op_idx: 0, parent, k_width: 32 / bits });
            self.set_operand(dot.0, 0, fragments);
        }
    }

    /// The buffer from which a descriptor reads an operand; a transposition becomes a view of what is transposed.
    fn operand_buffer(&mut self, value: Value, mn_axis: usize, mn: u32, dot: Op) -> Value {
        if let Some(t) = tt::Trans::of(self.m(), value) {
            let src = t.src(self.m());
            if self.encoding_of(src).is_some() {
                let order = t.order(self.m());
                let buffer = self.descriptor_buffer(src, 1 - mn_axis, mn);
                let view = self.transposed_type(buffer, &order);
                let mut b = Builder::before(self.a.module, dot);
                return ttg::MemdescTrans::build(&mut b, buffer, order, view).result(b.module);
            }
        }
        self.descriptor_buffer(value, mn_axis, mn)
    }

    fn descriptor_buffer(&mut self, value: Value, mn_axis: usize, mn: u32) -> Value {
        let enc = self.own_encoding(value);
        let value = self.get(value, enc);
        let shape = self.a.shape(value);
        let ty = self.m().value_type(value);
        let bits = self.m().bits(ty);
        let fast = match TileLayout::new(self.a.encoding(enc), &shape) {
            Ok(layout) => layout.order().first().map_or(1, |&d| usize::from(d)),
            Err(_) => 1,
        };
        let as_it_is = operand_buffer_encoding(&shape, fast, bits, mn_axis, mn, mn);
        if as_it_is.is_none()
            && self.m().defining_op(value).is_some_and(|op| tt::Load::cast(self.m(), op).is_some())
            && let Some((buffer, registers)) = turning(&shape, bits, mn_axis, self.a.num_warps)
        {
            return self.turned_buffer(value, mn_axis, mn, buffer, registers);
        }
        let shared = self
            .buffer_loaded(value, mn_axis, mn)
            .or(as_it_is)
            .or_else(|| operand_buffer_encoding(&shape, 1 - mn_axis, bits, mn_axis, mn, mn))
            .unwrap_or_else(|| encoding_choice::shared_for_dot(&shape, &[1, 0], bits)); // the lowering says that it can't
        self.buffer_in(value, shared)
    }

    /// The encoding of the buffer from which an operand is loaded, if a dot could read it there.
    fn buffer_loaded(&mut self, value: Value, mn_axis: usize, mn: u32) -> Option<Encoding> {
        let load = ttg::LocalLoad::of(self.m(), value)?;
        let buffer = self.m().value_type(load.src(self.m()));
        let encoding = self.a.encoding(self.m().encoding(buffer)?).clone();
        let Encoding::Shared(SharedKind::NvmmaShared { transposed, .. }) = encoding else { return None };
        let (shape, bits) = (self.a.shape(value), self.m().bits(buffer));
        let read = operand_buffer_encoding(&shape, usize::from(!transposed), bits, mn_axis, mn, mn)?;
        (read == encoding).then_some(encoding)
    }

    /// The buffer of a loaded operand with K contiguous, which it isn't in memory.
    fn turned_buffer(
        &mut self,
        value: Value,
        mn_axis: usize,
        mn: u32,
        copied: Encoding,
        registers: Encoding,
    ) -> Value {
        let shape = self.a.shape(value);
        let bits = self.m().bits(self.m().value_type(value));
        let copied = self.buffer_in(value, copied);
        let registers = self.a.intern(registers);
        let ty = self.a.module.with_encoding(self.m().value_type(value), Some(registers));
        let mut b = after_value(self.a.module, copied);
        let turned = ttg::LocalLoad::build(&mut b, copied, None, ty).result(b.module);
        let shared = operand_buffer_encoding(&shape, 1 - mn_axis, bits, mn_axis, mn, mn)
            .unwrap_or_else(|| encoding_choice::shared_for_dot(&shape, &[1, 0], bits)); // the lowering says that it can't
        self.buffer_in(turned, shared)
    }

    /// A buffer that holds a value.
    fn buffer_in(&mut self, value: Value, shared: Encoding) -> Value {
        let shape = self.a.shape(value);
        let ty = self.m().value_type(value);
        let shared = self.a.intern(shared);
        if let Some(&b) = self.descriptor_buffers.get(&(value, shared)) {
            return b;
        }
        let element = self.m().element_type(ty);
        let buffer_ty = self.a.module.buffer_type(&shape, element, shared, false);
        let mut b = after_value(self.a.module, value);
        let buffer = ttg::LocalAlloc::build(&mut b, Some(value), buffer_ty).result(b.module);
        self.descriptor_buffers.insert((value, shared), buffer);
        buffer
    }
}
