//! Tensor descriptors that the kernel makes, and the blocks that are loaded and stored through them.
//!
//! A block is loaded by messages that bring it as the lanes have it: a row in a register, a column a lane; what is only the second operand of dots comes
//! as these take it, two or four rows in a word. A message wants of the matrix what [`Lower::surface`] says. Where that does not hold, which is decided
//! when the kernel runs, and for blocks of shapes that no message has, each lane loads its elements. There are two loops then, with the decision in front of
//! them: what is in the way of nobody costs no registers. Stores are made element by element: the compiler drops stores of blocks.

use std::collections::BTreeMap;

use smallvec::SmallVec;
use tilewright_ir as ir;
use tilewright_ir::dialect::{arith, scf, tt, ttg};
use tilewright_ir::{Opcode, TypeKind};
use tilewright_layout::TileLayout;
use tilewright_llvm::{CastOp, Effect, IntPred, Scalar, Ty, Value};
use tilewright_lower::{Regs, WordValues, Words, int_of, memory_bits};

use super::{Lower, Result};

/// What a descriptor says.
#[derive(Clone)]
pub(super) struct Descriptor {
    base: Value,
    /// 32 bits each.
    extents: Vec<Value>,
    /// In elements, 64 bits each.
    strides: Vec<Value>,
    /// Whether what is outside reads as NaN.
    nan: bool,
}

/// A matrix as messages have it.
struct Surface {
    /// Whether they take it.
    fits: Value,
    base: Value,
    /// Elements of a row before those of the tensor.
    left: Value,
    /// One less than its bytes in a row, its rows, and the bytes from one row to the next.
    sizes: [Value; 3],
}

/// Messages that bring a block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Message {
    /// 8 rows of 16 columns of words of 16 or 32 bits.
    Rows,
    /// 32 bytes along K for 16 columns, 4 bytes along K in a word.
    Packed,
    /// The same of 16 rows, which become columns.
    Turned,
}

/// Lanes of a sub-group.
const LANES: u32 = 16;
/// A message that brings a block into the caches: a matrix (its extents less one), a place, bits of an element, columns, rows, blocks beside each other,
/// whether turned, whether packed, and how caches keep it. (Intel's compiler drops the one that OpenCL has a function for.)
const PREFETCH: &str = "llvm.genx.GenISA.LSC2DBlockPrefetch.isVoid";
/// GenISA's number for what both caches keep.
const CACHED: i64 = 4;

impl Lower<'_, '_> {
    pub(super) fn descriptor(&mut self, make: tt::MakeTensorDescriptor) -> Result<()> {
        let m = self.m;
        let wide = |l: &mut Self, v: ir::Value, ty: Ty| {
            let x = l.scalar(v)?;
            Ok(l.b.int_cast(x, ty, true))
        };
        let extents = make.shape(m).iter().map(|&v| wide(self, v, Ty::I32)).collect::<Result<_>>()?;
        let strides = make.strides(m).iter().map(|&v| wide(self, v, Ty::I64)).collect::<Result<_>>()?;
        let base = self.scalar(make.base(m))?;
        let nan = make.padding(m) == Some(2);
        self.hooks.descriptors.insert(make.result(m), Descriptor { base, extents, strides, nan });
        Ok(())
    }

    fn described(&self, desc: ir::Value) -> Result<Descriptor> {
        let known = self.hooks.descriptors.get(&desc).cloned();
        known.ok_or_else(|| {
            self.unsupported("a descriptor that comes from elsewhere than tl.make_tensor_descriptor")
        })
    }

    pub(super) fn descriptor_load(&mut self, load: tt::DescriptorLoad) -> Result<()> {
        let m = self.m;
        let (mut result, mut desc) = (load.result(m), self.described(load.desc(m))?);
        let mut at = load.indices(m).iter().map(|&v| self.scalar(v)).collect::<Result<Vec<_>>>()?;
        let messages = self.messages(&desc, load)?;
        if let Some(turned) = self.turned(result) {
            // What is wanted is loaded, and what is between is nothing.
            self.hooks.turned.insert(turned);
            result = turned;
            desc.extents.reverse();
            desc.strides.reverse();
            at.reverse();
        }
        let ty = self.value_ty(result);
        let layout = self.layout(ty)?;
        let element = self.elem_ty(ty)?;
        let out = match (messages, self.hooks.blocks) {
            (None, _) | (_, Some(false)) => self.gather(&desc, &at, &layout, element),
            (Some((message, surface)), Some(true)) => {
                let words = self.read_block(&surface, &at, &layout, message, element);
                self.elements_of_block(&words, &layout, message, element)
            }
            (Some((message, surface)), None) => {
                let (here, preheader) = (self.b.block(), self.b.preheader());
                let types = self.block_types(&layout, message, element);
                let [block, lanes] = [(); 2].map(|()| self.b.create_block(here, preheader, &[]));
                let done = self.b.create_block(here, preheader, &types);
                self.b.cond_br(surface.fits, block, &[], lanes, &[]);
                self.b.switch_to(block);
                let words = self.read_block(&surface, &at, &layout, message, element);
                self.b.br(done, &words);
                self.b.switch_to(lanes);
                let gathered = self.gather(&desc, &at, &layout, element);
                let words = self.words_of_block(&gathered, &layout, message, element);
                self.b.br(done, &words);
                self.b.switch_to(done);
                let words = self.b.params(done).to_vec();
                self.elements_of_block(&words, &layout, message, element)
            }
        };
        self.set_regs(result, out);
        Ok(())
    }

    /// Brings a block into the cache, where messages take its matrix.
    pub(super) fn descriptor_prefetch(&mut self, prefetch: tt::DescriptorPrefetch) -> Result<()> {
        let m = self.m;
        let (desc, indices) = (self.described(prefetch.desc(m))?, prefetch.indices(m).to_vec());
        let at = indices.iter().map(|&v| self.scalar(v)).collect::<Result<Vec<_>>>()?;
        let TypeKind::TensorDesc { block, .. } = m.type_kind(self.value_ty(prefetch.desc(m))) else {
            return Err(self.error("internal: a prefetch through what is no descriptor"));
        };
        let (&[rows, columns], &[y, x]) = (m.shape(*block).unwrap_or(&[]), &at[..]) else { return Ok(()) };
        let bits = m.bits(m.element_type(*block));
        let (whole, right) = (self.divisor(indices[1]), self.is_not_negative(indices[1], 0));
        if self.hooks.blocks == Some(false)
            || !matches!(bits, 8 | 16 | 32)
            || u32::from(whole) < (32 / bits).trailing_zeros()
        {
            return Ok(());
        }
        let Some(surface) = self.surface(&desc, bits / 8, right) else { return Ok(()) };
        // The most that a message brings into the cache: 32 rows of 64 bytes.
        let (across, down) = ((512 / bits).min(columns), rows.min(32));
        // Of a matrix that no load of the loop takes by blocks it is not known.
        let known = self.hooks.blocks == Some(true) && self.hooks.fitting.contains(&surface.fits);
        let pred = (!known).then_some(surface.fits);
        self.where_holds(pred, &[], |l| {
            let shape = [bits, across, down, 1].map(|n| l.b.i32(i64::from(n)));
            let (no, caches) = (l.b.bool(false), l.b.i32(CACHED));
            for row in (0..rows).step_by(down as usize) {
                for column in (0..columns).step_by(across as usize) {
                    let (x, y) = (l.b.add_const(x, i64::from(column)), l.b.add_const(y, i64::from(row)));
                    let x = l.b.add(x, surface.left);
                    let matrix = [surface.base].into_iter().chain(surface.sizes);
                    // Neither turned nor packed.
                    let args: Vec<Value> =
                        matrix.chain([x, y]).chain(shape).chain([no, no, caches]).collect();
                    l.b.intrinsic(PREFETCH, Effect::Write, None, &args);
                }
            }
            SmallVec::new()
        });
        Ok(())
    }

    /// A loop that loads blocks: one where messages take all of their matrices, and one that loads element by element.
    pub(super) fn versioned_loop(&mut self, f: scf::For) -> Result<bool> {
        let m = self.m;
        if self.hooks.blocks.is_some() {
            return Ok(false);
        }
        let mut fits = self.b.bool(true);
        self.hooks.fitting.clear();
        for load in m.all_ops(f.0).into_iter().filter_map(|op| tt::DescriptorLoad::cast(m, op)) {
            let Some(desc) = self.hooks.descriptors.get(&load.desc(m)).cloned() else { continue };
            if let Some((_, surface)) = self.messages(&desc, load)? {
                fits = self.b.and(fits, surface.fits);
                self.hooks.fitting.push(surface.fits);
            }
        }
        if self.hooks.fitting.is_empty() {
            return Ok(false);
        }
        let (here, preheader) = (self.b.block(), self.b.preheader());
        let results: Vec<ir::Value> = f.results(m).to_vec();
        let types = self.all_machine_types(&results)?;
        let [blocks, elements] = [(); 2].map(|()| self.b.create_block(here, preheader, &[]));
        let done = self.b.create_block(here, preheader, &types);
        self.b.cond_br(fits, blocks, &[], elements, &[]);
        for (block, of_blocks) in [(blocks, true), (elements, false)] {
            self.b.switch_to(block);
            self.hooks.blocks = Some(of_blocks);
            self.op = f.0;
            self.scf_for(f)?;
            let values = self.flatten(&results)?;
            self.b.br(done, &values);
        }
        self.hooks.blocks = None;
        self.op = f.0;
        self.b.switch_to(done);
        self.bind_params(&results, done)?;
        Ok(true)
    }

    /// Which messages bring a block, if any do.
    fn messages(
        &mut self,
        desc: &Descriptor,
        load: tt::DescriptorLoad,
    ) -> Result<Option<(Message, Surface)>> {
        let block = load.result(self.m);
        let ty = self.value_ty(block);
        let (shape, element) = (self.m.shape(ty).unwrap_or(&[]), self.elem_ty(ty)?);
        let &[rows, columns] = shape else { return Ok(None) };
        let bits = element.bits();
        if desc.nan || !matches!(bits, 8 | 16 | 32) || element.is_ptr() {
            return Ok(None);
        }
        // They begin at whole words.
        let x = load.indices(self.m).last().copied();
        if x.is_none_or(|x| u32::from(self.divisor(x)) < (32 / bits).trailing_zeros()) {
            return Ok(None);
        }
        let (depth, lanes) = (8 * 32 / bits, LANES);
        let message = if self.turned(block).is_some() {
            (rows % lanes == 0 && columns % depth == 0).then_some(Message::Turned)
        } else if columns % lanes != 0 {
            None
        } else if self.is_second_operand(block) && bits < 32 && rows % depth == 0 {
            Some(Message::Packed)
        } else {
            (rows % 8 == 0 && bits >= 16).then_some(Message::Rows)
        };
        let Some(message) = message else { return Ok(None) };
        let right = x.is_some_and(|x| self.is_not_negative(x, 0));
        Ok(self.surface(desc, bits / 8, right).map(|surface| (message, surface)))
    }

    /// The power of two that divides a scalar.
    fn divisor(&self, v: ir::Value) -> u8 {
        self.hooks.axis.get(self.m, v).dims.first().map_or(0, |facts| facts.divisibility)
    }

    /// Whether a scalar is a sum of what is not negative. (What overflows is the program's error.)
    fn is_not_negative(&self, v: ir::Value, depth: u32) -> bool {
        use arith::Kind as K;
        let m = self.m;
        if let Some(n) = m.constant_int(v) {
            return n >= 0;
        }
        let Some(op) = m.defining_op(v) else {
            let owner = m.value_block(v).and_then(|block| m.block_parent_op(block));
            // Loops count upwards.
            let lower = owner
                .and_then(|op| scf::For::cast(m, op))
                .filter(|f| m.block_args(m.region_block(f.body(m))).first() == Some(&v));
            return depth < 16 && lower.is_some_and(|f| self.is_not_negative(f.lower_bound(m), depth + 1));
        };
        let all = || depth < 16 && m.operands(op).iter().all(|&x| self.is_not_negative(x, depth + 1));
        match m.opcode(op) {
            Some(Opcode::Tt(tt::Kind::GetProgramId | tt::Kind::GetNumPrograms))
            | Some(Opcode::Ttg(ttg::Kind::WarpId)) => true,
            Some(Opcode::Arith(kind)) => match kind {
                K::Addi
                | K::Muli
                | K::Divsi
                | K::Divui
                | K::Remsi
                | K::Remui
                | K::Extsi
                | K::Shrui
                | K::Shrsi
                | K::Shli
                | K::Minsi
                | K::Maxsi
                | K::Trunci => all(),
                K::Andi => m.operands(op).iter().any(|&x| self.is_not_negative(x, depth + 1)),
                _ => false,
            },
            _ => false,
        }
    }

    /// The second operand of dots that a block becomes when its dimensions have changed places, if it is wanted as nothing else.
    fn turned(&self, block: ir::Value) -> Option<ir::Value> {
        let only = |v: ir::Value| match self.m.uses(v) {
            [one] => Some(one.op),
            _ => None,
        };
        let trans = tt::Trans::cast(self.m, only(block)?)?;
        let convert = ttg::ConvertLayout::cast(self.m, only(trans.result(self.m))?)?;
        let result = convert.result(self.m);
        self.is_second_operand(result).then_some(result)
    }

    /// Whether an operation is between a block that is loaded and what it becomes.
    pub(super) fn is_between(&self, op: ir::Op) -> bool {
        let result = self.m.results(op).first().copied();
        let next =
            |v: ir::Value| self.m.uses(v).first().and_then(|used| self.m.results(used.op).first()).copied();
        let Some(result) = result else { return false };
        self.hooks.turned.contains(&result)
            || (tt::Trans::cast(self.m, op).is_some()
                && next(result).is_some_and(|v| self.hooks.turned.contains(&v)))
    }

    /// The matrix of a descriptor, and whether messages take it: its base a multiple of 64 bytes, rows of at least 64 bytes that are whole words, a pitch
    /// that is a multiple of 16 and not less, and sizes of at most 24 bits. Where no block begins left of it, one with a base that is only a multiple of 4 is
    /// part of one that begins further left.
    fn surface(&mut self, desc: &Descriptor, bytes: u32, right: bool) -> Option<Surface> {
        let ([height, width], [pitch, step]) = (&desc.extents[..], &desc.strides[..]) else { return None };
        if self.b.as_const(*step) != Some(1) {
            return None;
        }
        let base = self.b.cast(CastOp::PtrToInt, desc.base, Ty::I64);
        let mut width = self.b.mul_const(*width, i64::from(bytes));
        let pitch = self.b.int_cast(*pitch, Ty::I32, true);
        let pitch = self.b.mul_const(pitch, i64::from(bytes));
        let mut fits = self.b.bool(true);
        let mut also = |l: &mut Self, pred, x, y| {
            let holds = l.b.icmp(pred, x, y);
            fits = l.b.and(fits, holds);
        };
        let (none, wide_none) = (self.b.i32(0), self.b.i64(0));
        let low = self.b.and_const(base, if right { 3 } else { 63 });
        also(self, IntPred::Eq, low, wide_none);
        let least = self.b.i32(64);
        also(self, IntPred::Uge, width, least);
        also(self, IntPred::Uge, pitch, width);
        let mut left = none;
        let mut first = base;
        if right {
            let mask = self.b.i64(-64);
            first = self.b.and(base, mask);
            let low = self.b.and_const(base, 63);
            left = self.b.int_cast(low, Ty::I32, false);
            width = self.b.add(width, left);
        }
        for (x, mask) in [(width, 3), (pitch, 15)] {
            let low = self.b.and_const(x, mask);
            also(self, IntPred::Eq, low, none);
        }
        let most = self.b.i32(1 << 24);
        also(self, IntPred::Uge, pitch, width);
        also(self, IntPred::Ule, pitch, most);
        let one = self.b.i32(1);
        also(self, IntPred::Uge, *height, one);
        also(self, IntPred::Ule, *height, most);
        let sizes = [width, *height, pitch].map(|x| self.b.add_const(x, -1));
        let left = self.b.lshr(left, bytes.trailing_zeros());
        Some(Surface { fits, base: first, left, sizes })
    }

    /// Whether all that takes a block, or a part of it, are dots with it as their second operand.
    fn is_second_operand(&self, block: ir::Value) -> bool {
        let m = self.m;
        let uses = m.uses(block);
        !uses.is_empty()
            && uses.iter().all(|used| match tt::Extract::cast(m, used.op) {
                Some(part) => self.is_second_operand(part.result(m)),
                None => tt::Dot::cast(m, used.op).is_some() && used.index == 1,
            })
    }

    // ---- blocks ----------------------------------------------------------------------------------------------------

    /// The corners of the messages of a block, and the type of what each brings.
    fn corners(layout: &TileLayout, message: Message, element: Ty) -> (Vec<[u32; 2]>, Ty) {
        let &[rows, columns] = layout.shape() else { return (Vec::new(), Ty::I32) };
        let (height, ty) = match message {
            Message::Rows => (8, Ty::vector(int_of(element.bits()), 8)),
            Message::Packed | Message::Turned => (8 * 32 / element.bits(), Ty::vector(Scalar::I32, 8)),
        };
        let across =
            (0..columns / LANES).flat_map(|c| (0..rows / height).map(move |r| [r * height, c * LANES]));
        (across.collect(), ty)
    }

    fn block_types(&self, layout: &TileLayout, message: Message, element: Ty) -> Vec<Ty> {
        let (corners, ty) = Self::corners(layout, message, element);
        vec![ty; corners.len()]
    }

    fn read_block(
        &mut self,
        surface: &Surface,
        at: &[Value],
        layout: &TileLayout,
        message: Message,
        element: Ty,
    ) -> Vec<Value> {
        let (corners, ty) = Self::corners(layout, message, element);
        let bits = element.bits();
        let name = match message {
            Message::Rows => format!("__builtin_IB_subgroup_block_read_flat_u{bits}_m8k16v1"),
            Message::Packed => {
                format!("__builtin_IB_subgroup_block_read_flat_transform_u{bits}_k{}", 256 / bits)
            }
            Message::Turned => "__builtin_IB_subgroup_block_read_flat_transpose_u32_k8".to_string(),
        };
        let mut words = Vec::with_capacity(corners.len());
        for [row, column] in corners {
            let (mut x, mut y) =
                (self.b.add_const(at[1], i64::from(column)), self.b.add_const(at[0], i64::from(row)));
            if message == Message::Turned {
                let at = self.b.add(y, surface.left);
                (x, y) = (self.b.lshr(at, (32 / bits).trailing_zeros()), x);
            } else {
                x = self.b.add(x, surface.left);
            }
            let place = self.b.vector(&[x, y]);
            let [width, height, pitch] = surface.sizes;
            let args = [surface.base, width, height, pitch, place];
            words.push(self.b.intrinsic(&name, Effect::Read, Some(ty), &args));
        }
        words
    }

    /// The registers of a block in the vectors that messages bring.
    fn words_of_block(
        &mut self,
        regs: &[Value],
        layout: &TileLayout,
        message: Message,
        element: Ty,
    ) -> Vec<Value> {
        let (corners, ty) = Self::corners(layout, message, element);
        let per_word = (ty.scalar.bits() / element.bits()) as usize;
        let found = layout.register_finder();
        let mut out = Vec::with_capacity(corners.len());
        for [row, column] in corners {
            let height = 8 * per_word as u32;
            let registers = (row..row + height).filter_map(|r| found.find(&[r, column]));
            let elements: Vec<Value> = registers.map(|r| regs[r as usize]).collect();
            let words: Vec<Value> = elements
                .chunks(per_word)
                .map(|word| {
                    let packed = self.pack_word(word);
                    self.b.bitcast(packed, ty.element())
                })
                .collect();
            out.push(self.b.vector(&words));
        }
        out
    }

    /// The reverse of [`Lower::words_of_block`].
    fn elements_of_block(
        &mut self,
        vectors: &[Value],
        layout: &TileLayout,
        message: Message,
        element: Ty,
    ) -> Vec<Value> {
        let zero = self.b.zero(element);
        let (corners, ty) = Self::corners(layout, message, element);
        let per_word = ty.scalar.bits() / element.bits();
        let found = layout.register_finder();
        let mut out = vec![zero; layout.num_registers() as usize];
        for ([row, column], &vector) in corners.into_iter().zip(vectors) {
            for i in 0..8 {
                let word = self.b.extract(vector, i);
                for (k, e) in self.unpack_word(word, element, per_word).into_iter().enumerate() {
                    if let Some(r) = found.find(&[row + i * per_word + k as u32, column]) {
                        out[r as usize] = e;
                    }
                }
            }
        }
        out
    }

    // ---- element by element ----------------------------------------------------------------------------------------

    /// Where the elements of a block are.
    fn places(&mut self, desc: &Descriptor, at: &[Value], layout: &TileLayout, bytes: u32) -> Places {
        // Leading dimensions of the tensor of extent 1 may be missing in the block.
        let missing = at.len() - layout.rank();
        let mut outside = None;
        let mut ptr = desc.base;
        let mut axes = Vec::new();
        for (d, &first) in at.iter().enumerate() {
            let pitch = self.b.mul_const(desc.strides[d], i64::from(bytes));
            let mut start = first;
            if let Some(axis) = d.checked_sub(missing) {
                // What is the thread's own; the register's part is a constant.
                let own = self.coord(layout, 0, axis);
                start = self.b.add(first, own);
                axes.push(Axis { start, extent: desc.extents[d], pitch, steps: BTreeMap::new() });
            } else {
                let here = self.b.icmp(IntPred::Ult, first, desc.extents[d]);
                outside = self.all(&[outside, Some(here)]);
            }
            let wide = self.b.int_cast(start, Ty::I64, true);
            let far = self.b.mul(wide, pitch);
            ptr = self.b.ptr_add(ptr, far);
        }
        Places { ptr, inside: outside, axes }
    }

    /// The address of a register's element, and whether it is in the tensor and in the block.
    fn element(&mut self, places: &mut Places, layout: &TileLayout, register: u32) -> (Value, Option<Value>) {
        let mut inside = self.in_bounds(layout, register);
        inside = self.all(&[inside, places.inside]);
        let mut ptr = places.ptr;
        for (d, axis) in places.axes.iter_mut().enumerate() {
            let by = layout.register_coord(register)[d] - layout.register_coord(0)[d];
            let place = self.b.add_const(axis.start, i64::from(by));
            let here = self.b.icmp(IntPred::Ult, place, axis.extent);
            inside = self.all(&[inside, Some(here)]);
            let far = axis.far(self, by);
            ptr = self.b.ptr_add(ptr, far);
        }
        (ptr, inside)
    }

    /// Loads a block element by element.
    fn gather(&mut self, desc: &Descriptor, at: &[Value], layout: &TileLayout, element: Ty) -> Vec<Value> {
        let bits = memory_bits(element);
        let words = Words::of(1, bits);
        let outside: Option<WordValues> = desc.nan.then(|| {
            let nan = self.b.float(element, f64::NAN);
            self.words_of(&[nan], words)
        });
        let mut places = self.places(desc, at, layout, bits / 8);
        let mut out = Vec::with_capacity(layout.num_registers() as usize);
        for r in 0..layout.num_registers() {
            let (ptr, inside) = self.element(&mut places, layout, r);
            let loaded = self.load_words(ptr, words, inside, outside.as_deref(), false);
            out.extend(self.elements_of(&loaded, words, element));
        }
        out
    }

    pub(super) fn descriptor_store(&mut self, store: tt::DescriptorStore) -> Result<()> {
        let m = self.m;
        let (src, desc) = (store.src(m), self.described(store.desc(m))?);
        let at = store.indices(m).iter().map(|&v| self.scalar(v)).collect::<Result<Vec<_>>>()?;
        let ty = self.value_ty(src);
        let (layout, element) = (self.layout(ty)?, self.elem_ty(ty)?);
        let regs: Regs = self.regs(src)?;
        let bits = memory_bits(element);
        let words = Words::of(1, bits);
        let owner = self.is_owner(&layout);
        let mut places = self.places(&desc, &at, &layout, bits / 8);
        let whole = self.is_inside(&desc, &at, &layout);
        let (here, preheader) = (self.b.block(), self.b.preheader());
        let [all, some, done] = [(); 3].map(|()| self.b.create_block(here, preheader, &[]));
        self.b.cond_br(whole, all, &[], some, &[]);
        for (block, is_whole) in [(all, true), (some, false)] {
            self.b.switch_to(block);
            for r in layout.unique_registers() {
                let (ptr, inside) = self.element(&mut places, &layout, r);
                let pred = self.all(&[owner, inside.filter(|_| !is_whole)]);
                let value: SmallVec<[Value; 4]> = self.words_of(&[regs[r as usize]], words);
                self.store_words(ptr, &value, words, pred);
            }
            // What was computed in one is not there in the other.
            places.axes.iter_mut().for_each(|axis| axis.steps.clear());
            self.b.br(done, &[]);
        }
        self.b.switch_to(done);
        Ok(())
    }

    /// Whether all of a block is in the tensor, the same in all lanes.
    fn is_inside(&mut self, desc: &Descriptor, at: &[Value], layout: &TileLayout) -> Value {
        let missing = at.len() - layout.rank();
        let mut inside = self.b.bool(true);
        for (d, &first) in at.iter().enumerate() {
            let size = d.checked_sub(missing).map_or(1, |axis| layout.physical(axis));
            if d.checked_sub(missing).is_some_and(|axis| layout.shape()[axis] != size) {
                return self.b.bool(false);
            }
            let (zero, rest) = (self.b.i32(0), self.b.add_const(desc.extents[d], -i64::from(size)));
            let from = self.b.icmp(IntPred::Sge, first, zero);
            let to = self.b.icmp(IntPred::Sle, first, rest);
            inside = self.b.and(inside, from);
            inside = self.b.and(inside, to);
        }
        inside
    }
}

/// Where the elements of a block are: that of a thread's first, and how it goes on from there.
struct Places {
    ptr: Value,
    /// Whether the dimensions that the block lacks are inside.
    inside: Option<Value>,
    axes: Vec<Axis>,
}

/// A dimension of a block.
struct Axis {
    /// The thread's first coordinate in the tensor.
    start: Value,
    extent: Value,
    /// Bytes from one element to the next.
    pitch: Value,
    /// Bytes to elements further on, of which each begins at the one before.
    steps: BTreeMap<u32, Value>,
}

impl Axis {
    /// Bytes from the first element to one so many further on.
    fn far(&mut self, l: &mut Lower<'_, '_>, by: u32) -> Value {
        if l.b.as_const(self.pitch).is_some() || by == 0 {
            return l.b.mul_const(self.pitch, i64::from(by));
        }
        if let Some(&known) = self.steps.get(&by) {
            return known;
        }
        let far = match self.steps.get(&(by - 1)) {
            Some(&before) => l.b.add(before, self.pitch),
            None => l.b.mul_const(self.pitch, i64::from(by)),
        };
        self.steps.insert(by, far);
        far
    }
}
