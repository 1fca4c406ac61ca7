//! Tensor descriptors that the kernel makes, and the blocks that are loaded and stored through them.
//!
//! A block is loaded by messages that bring it as the lanes have it: a row in a register, a column a lane; what is only the second operand of dots comes
//! as these take it, two or four rows in a word. A message wants of the matrix what [`Lower::surface`] says. Where that does not hold, which is decided
//! when the kernel runs, and for blocks of shapes that no message has, each lane loads its elements. There are two loops then, with the decision in front of
//! them: what is in the way of nobody costs no registers. A store is both in any case, with the decision in front of it.

use std::collections::BTreeMap;

use smallvec::SmallVec;
use tilewright_ir as ir;
use tilewright_ir::dialect::{arith, scf, tt, ttg};
use tilewright_ir::{Opcode, TypeKind};
use tilewright_layout::TileLayout;
use tilewright_llvm::{CastOp, Effect, IntPred, Scalar, Ty, Value};
use tilewright_lower::{Regs, WordValues, Words, int_of, memory_bits};

use super::places::Place;
use super::{Lower, Result};
use crate::visa::{Form, Message, Part};

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
pub(super) struct Surface {
    /// Whether they take it.
    pub fits: Value,
    pub base: Value,
    /// Elements of a row before those of the tensor.
    pub left: Value,
    /// One less than its bytes in a row, its rows, and the bytes from one row to the next.
    pub sizes: [Value; 3],
}

/// How a block is brought by messages.
pub(super) struct Transfer {
    pub surface: Surface,
    pub place: Place,
}

/// The messages that an operation sends.
pub(super) struct Sent {
    pub transfer: Transfer,
    pub message: Message,
    /// Where they begin in its block as memory has it, in the order in which they are sent.
    pub parts: Vec<[u32; 2]>,
    /// Whether it sends them wherever it stands.
    pub always: bool,
}

/// Lanes of a sub-group.
const LANES: u32 = 16;

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

    /// Whether the kernel makes a descriptor.
    pub(super) fn is_described(&self, desc: ir::Value) -> bool {
        self.hooks.descriptors.contains_key(&desc)
    }

    pub(super) fn descriptor_load(&mut self, load: tt::DescriptorLoad) -> Result<()> {
        let m = self.m;
        let (mut result, mut desc) = (load.result(m), self.described(load.desc(m))?);
        let mut at = load.indices(m).iter().map(|&v| self.scalar(v)).collect::<Result<Vec<_>>>()?;
        let transfer = self.transfer(load)?;
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
        let known = transfer.as_ref().and_then(|transfer| self.decided(transfer));
        let out = match (transfer, known) {
            (None, _) | (_, Some(false)) => self.gather(&desc, &at, &layout, element),
            (Some(transfer), Some(true)) if self.is_whole(result, transfer.place.form, element) => {
                return self.read_whole(&transfer, result, element);
            }
            (Some(transfer), Some(true)) => {
                let words = self.read_block(&transfer, &layout, element)?;
                self.elements_of_block(&words, &layout, transfer.place.form, element)
            }
            (Some(transfer), None) => {
                let form = transfer.place.form;
                let (here, preheader) = (self.b.block(), self.b.preheader());
                let types = self.block_types(&layout, form, element);
                let [block, lanes] = [(); 2].map(|()| self.b.create_block(here, preheader, &[]));
                let done = self.b.create_block(here, preheader, &types);
                self.b.cond_br(transfer.surface.fits, block, &[], lanes, &[]);
                self.b.switch_to(block);
                let words = self.read_block(&transfer, &layout, element)?;
                self.b.br(done, &words);
                self.b.switch_to(lanes);
                let gathered = self.gather(&desc, &at, &layout, element);
                let words = self.words_of_block(&gathered, &layout, form, element);
                self.b.br(done, &words);
                self.b.switch_to(done);
                let words = self.b.params(done).to_vec();
                self.elements_of_block(&words, &layout, form, element)
            }
        };
        self.set_regs(result, out);
        Ok(())
    }

    /// Whether messages take the matrix of a block, where that was decided in front of a loop. Of a descriptor that the loop makes it was not.
    fn decided(&self, transfer: &Transfer) -> Option<bool> {
        let blocks = self.hooks.blocks?;
        (!blocks || self.hooks.fitting.contains(&transfer.surface.fits)).then_some(blocks)
    }

    /// How messages bring what is prefetched, if any do: the extents of each, and of the block.
    pub(super) fn prefetched(
        &mut self,
        prefetch: tt::DescriptorPrefetch,
    ) -> Result<Option<(Transfer, Message, [u32; 2])>> {
        let m = self.m;
        let (desc, indices) = (self.described(prefetch.desc(m))?, prefetch.indices(m).to_vec());
        let TypeKind::TensorDesc { block, .. } = m.type_kind(self.value_ty(prefetch.desc(m))) else {
            return Err(self.error("internal: a prefetch through what is no descriptor"));
        };
        let (&[rows, columns], &[row, column]) = (m.shape(*block).unwrap_or(&[]), &indices[..]) else {
            return Ok(None);
        };
        let bits = m.bits(m.element_type(*block));
        let (whole, right) = (self.divisor(column), self.is_not_negative(column, 0));
        if self.hooks.blocks == Some(false)
            || !matches!(bits, 8 | 16 | 32)
            || u32::from(whole) < (32 / bits).trailing_zeros()
        {
            return Ok(None);
        }
        let Some(surface) = self.surface(&desc, bits / 8, right) else { return Ok(None) };
        // The most that a message brings into the cache: 32 rows of 64 bytes.
        let (columns_of_one, rows_of_one) = ((512 / bits).min(columns), rows.min(32));
        let form = Form::Rows;
        let message = Message { bits, rows: rows_of_one, columns: columns_of_one, blocks: 1, form };
        let place = Place { desc: prefetch.desc(m), row, column, form, bits };
        Ok(Some((Transfer { surface, place }, message, [rows, columns])))
    }

    /// Brings a block into the cache, where messages take its matrix.
    pub(super) fn descriptor_prefetch(&mut self, prefetch: tt::DescriptorPrefetch) -> Result<()> {
        let Some((transfer, message, [rows, columns])) = self.prefetched(prefetch)? else { return Ok(()) };
        // Of a matrix that no load of the loop takes by blocks it is not known.
        let unknown = self.decided(&transfer).is_none().then_some(transfer.surface.fits);
        let mut failed = None;
        self.where_holds(unknown, &[], |l| {
            let mut l = Lower(l);
            for part in prefetch_parts(&message, [rows, columns]) {
                match l.words(&transfer, &message, part) {
                    Ok(words) => {
                        let text = message.prefetch(words.register);
                        l.b.asm(&text, "rw", Effect::Write, &[], &[words.value]);
                    }
                    Err(error) => failed = Some(error),
                }
            }
            SmallVec::new()
        });
        failed.map_or(Ok(()), Err)
    }

    /// How messages bring a block, if any do: 8 rows of 16 columns, words of K and of 16 columns, or words of 16 rows that become columns.
    pub(super) fn transfer(&mut self, load: tt::DescriptorLoad) -> Result<Option<Transfer>> {
        let m = self.m;
        let (desc, block) = (self.described(load.desc(m))?, load.result(m));
        let ty = self.value_ty(block);
        let (shape, element) = (m.shape(ty).unwrap_or(&[]), self.elem_ty(ty)?);
        let (&[rows, columns], &[row, column]) = (shape, load.indices(m)) else { return Ok(None) };
        let bits = element.bits();
        if desc.nan || !matches!(bits, 8 | 16 | 32) || element.is_ptr() {
            return Ok(None);
        }
        // They begin at whole words.
        if u32::from(self.divisor(column)) < (32 / bits).trailing_zeros() {
            return Ok(None);
        }
        let (depth, lanes) = (8 * 32 / bits, LANES);
        let form = if self.turned(block).is_some() {
            (rows % lanes == 0 && columns % depth == 0).then_some(Form::Turned)
        } else if columns % lanes != 0 {
            None
        } else if self.is_second_operand(block) && bits < 32 && rows % depth == 0 {
            Some(Form::Packed)
        } else {
            (rows % 8 == 0 && bits >= 16).then_some(Form::Rows)
        };
        let Some(form) = form else { return Ok(None) };
        let right = self.is_not_negative(column, 0);
        let place = Place { desc: load.desc(m), row, column, form, bits };
        Ok(self.surface(&desc, bits / 8, right).map(|surface| Transfer { surface, place }))
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
    fn corners(layout: &TileLayout, form: Form, element: Ty) -> (Vec<[u32; 2]>, Ty) {
        let &[rows, columns] = layout.shape() else { return (Vec::new(), Ty::I32) };
        let (height, ty) = match form {
            Form::Rows => (8, Ty::vector(int_of(element.bits()), 8)),
            Form::Packed | Form::Turned => (8 * 32 / element.bits(), Ty::vector(Scalar::I32, 8)),
        };
        let across =
            (0..columns / LANES).flat_map(|c| (0..rows / height).map(move |r| [r * height, c * LANES]));
        (across.collect(), ty)
    }

    fn block_types(&self, layout: &TileLayout, form: Form, element: Ty) -> Vec<Ty> {
        let (corners, ty) = Self::corners(layout, form, element);
        vec![ty; corners.len()]
    }

    fn read_block(&mut self, transfer: &Transfer, layout: &TileLayout, element: Ty) -> Result<Vec<Value>> {
        let form = transfer.place.form;
        let (corners, ty) = Self::corners(layout, form, element);
        let message = unit(form, element);
        corners.into_iter().map(|corner| self.read(transfer, &message, corner, ty)).collect()
    }

    /// One message; its corner is one of the result.
    fn read(&mut self, transfer: &Transfer, message: &Message, corner: [u32; 2], ty: Ty) -> Result<Value> {
        let [row, column] = corner;
        let turned = message.form == Form::Turned;
        let words = self.words(transfer, message, if turned { [column, row] } else { corner })?;
        Ok(self.b.asm1(&message.load(words.register), "=rw,rw", Effect::Read, ty, &[words.value]))
    }

    /// The registers of a block in the vectors that messages bring.
    fn words_of_block(&mut self, regs: &[Value], layout: &TileLayout, form: Form, element: Ty) -> Vec<Value> {
        let (corners, ty) = Self::corners(layout, form, element);
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
        form: Form,
        element: Ty,
    ) -> Vec<Value> {
        let zero = self.b.zero(element);
        let (corners, ty) = Self::corners(layout, form, element);
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

    // ---- blocks that only dots take ----------------------------------------------------------------------------------

    /// Whether a block may stay as messages bring it: only dots take it, or tiles of it, as the operand that it has the form of.
    fn is_whole(&self, block: ir::Value, form: Form, element: Ty) -> bool {
        let m = self.m;
        let wanted = if form == Form::Rows { 0 } else { 1 };
        let by_dots = |v: ir::Value| {
            m.uses(v).iter().all(|used| {
                tt::Dot::cast(m, used.op).is_some_and(|dot| {
                    used.index == wanted && m.shape(m.value_type(dot.result(m))) == Some(&[8, 16])
                })
            })
        };
        let used = m.uses(block);
        matches!(element.scalar, Scalar::F16 | Scalar::BF16)
            && used.iter().all(|used| match tt::Extract::cast(m, used.op) {
                Some(part) => by_dots(part.result(m)),
                None => tt::Dot::cast(m, used.op).is_some(),
            })
            && (used.iter().any(|used| tt::Extract::cast(m, used.op).is_some()) || by_dots(block))
    }

    /// The message that brings a whole block, or a part of one.
    fn whole_message(form: Form, element: Ty, [rows, columns]: [u32; 2]) -> Message {
        let unit = unit(form, element);
        if form == Form::Turned {
            return unit;
        }
        // At most 32 rows of 64 bytes.
        let blocks = if columns.is_multiple_of(32) { 2 } else { 1 };
        Message { rows: 1 << rows.trailing_zeros().min(5), blocks, ..unit }
    }

    /// Loads a block by the fewest messages.
    fn read_whole(&mut self, transfer: &Transfer, result: ir::Value, element: Ty) -> Result<()> {
        let &[rows, columns] = self.m.shape(self.value_ty(result)).unwrap_or(&[]) else { return Ok(()) };
        let message = Self::whole_message(transfer.place.form, element, [rows, columns]);
        let size = Self::piece(&message);
        let mut pieces = Vec::new();
        for corner in Self::pieces(&message, [rows, columns]) {
            let value = self.read(transfer, &message, corner, message.whole())?;
            pieces.push(Piece { corner, size, value, message });
        }
        self.hooks.whole.insert(result, pieces);
        Ok(())
    }

    /// The extents of what a message brings.
    fn piece(message: &Message) -> [u32; 2] {
        if message.form == Form::Turned { [16, 16] } else { [message.rows, message.blocks * 16] }
    }

    /// The corners of the messages that bring a block of these extents.
    fn pieces(message: &Message, [rows, columns]: [u32; 2]) -> Vec<[u32; 2]> {
        let [height, width] = Self::piece(message).map(|n| n as usize);
        let across = (0..columns).step_by(width);
        across.flat_map(|c| (0..rows).step_by(height).map(move |r| [r, c])).collect()
    }

    /// The messages that an operation of a loop of blocks sends, if it sends any through a descriptor that is made in front of the loop.
    pub(super) fn messages(&mut self, op: ir::Op) -> Result<Option<Sent>> {
        let m = self.m;
        if let Some(prefetch) = tt::DescriptorPrefetch::cast(m, op) {
            if !self.is_described(prefetch.desc(m)) {
                return Ok(None);
            }
            let Some((transfer, message, [rows, columns])) = self.prefetched(prefetch)? else {
                return Ok(None);
            };
            let always = self.decided(&transfer).is_some();
            let parts = prefetch_parts(&message, [rows, columns]);
            return Ok(Some(Sent { transfer, message, parts, always }));
        }
        let load = tt::DescriptorLoad::cast(m, op).filter(|load| self.is_described(load.desc(m)));
        let Some(load) = load else { return Ok(None) };
        let transfer = self.transfer(load)?.filter(|transfer| self.decided(transfer).is_some());
        let Some(transfer) = transfer else { return Ok(None) };
        let form = transfer.place.form;
        let result = self.turned(load.result(m)).unwrap_or(load.result(m));
        let ty = self.value_ty(result);
        let (layout, element) = (self.layout(ty)?, self.elem_ty(ty)?);
        let &[rows, columns] = layout.shape() else { return Ok(None) };
        let (message, corners) = if self.is_whole(result, form, element) {
            let message = Self::whole_message(form, element, [rows, columns]);
            (message, Self::pieces(&message, [rows, columns]))
        } else {
            (unit(form, element), Self::corners(&layout, form, element).0)
        };
        let part = |[row, column]: [u32; 2]| if form == Form::Turned { [column, row] } else { [row, column] };
        let parts = corners.into_iter().map(part).collect();
        Ok(Some(Sent { transfer, message, parts, always: true }))
    }

    /// A tile of a block that stays whole: nothing is done. Whether it is one.
    pub(super) fn extract_part(&mut self, extract: tt::Extract) -> bool {
        let (m, result) = (self.m, extract.result(self.m));
        let Some(pieces) = self.hooks.whole.get(&extract.src(m)) else { return false };
        let shape = |v: ir::Value| m.shape(m.value_type(v)).unwrap_or(&[]);
        let (&[_, columns], &[height, width]) = (shape(extract.src(m)), shape(result)) else { return false };
        let (across, number) = (columns / width, extract.index(m) as u32);
        let at = [number / across * height, number % across * width];
        let Some(part) = pieces.iter().find_map(|piece| piece.part(at)) else { return false };
        self.hooks.parts.insert(result, part);
        true
    }

    /// The operand of a dot that stays in the registers where it was put.
    pub(super) fn part(&self, operand: ir::Value) -> Option<(Value, Part)> {
        let known = self.hooks.parts.get(&operand).copied();
        known.or_else(|| self.hooks.whole.get(&operand)?.first()?.part([0, 0]))
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
        let (owner, bytes) = (self.is_owner(&layout), memory_bits(element) / 8);
        let mut places = self.places(&desc, &at, &layout, bytes);
        let messages = match self.stored(store, &layout, element)?.filter(|_| owner.is_none()) {
            Some(transfer) => Some((transfer.surface.fits, self.stores(&transfer, &layout, element)?)),
            None => None,
        };
        let quick = match &messages {
            Some((fits, _)) => *fits,
            None => self.is_inside(&desc, &at, &layout),
        };
        let (here, preheader) = (self.b.block(), self.b.preheader());
        let [all, some, done] = [(); 3].map(|()| self.b.create_block(here, preheader, &[]));
        self.b.cond_br(quick, all, &[], some, &[]);
        self.b.switch_to(all);
        match messages {
            Some((_, messages)) => {
                let rows = self.words_of_block(&regs, &layout, Form::Rows, element);
                for ((text, words), rows) in messages.into_iter().zip(rows) {
                    self.b.asm(&text, "rw,rw", Effect::Write, &[], &[words, rows]);
                }
            }
            None => self.store_elements(&mut places, &layout, &regs, element, owner, false),
        }
        // What was computed in one is not there in the other.
        places.axes.iter_mut().for_each(|axis| axis.steps.clear());
        self.b.br(done, &[]);
        self.b.switch_to(some);
        self.store_elements(&mut places, &layout, &regs, element, owner, true);
        self.b.br(done, &[]);
        self.b.switch_to(done);
        // What was there before both is there behind them.
        self.hooks.words.iter_mut().filter(|k| k.block == Some(here)).for_each(|k| k.block = Some(done));
        Ok(())
    }

    /// How messages store a block, if any do: a row in a register, a column a lane.
    fn stored(
        &mut self,
        store: tt::DescriptorStore,
        layout: &TileLayout,
        element: Ty,
    ) -> Result<Option<Transfer>> {
        let m = self.m;
        let (&[rows, columns], &[row, column]) = (layout.shape(), store.indices(m)) else { return Ok(None) };
        let (desc, bits) = (self.described(store.desc(m))?, element.bits());
        let by_columns = (0..LANES).all(|lane| layout.coords(0, lane, 0)[..] == [0, lane]);
        let has_form = matches!(bits, 16 | 32) && !element.is_ptr() && rows % 8 == 0 && columns % LANES == 0;
        // They begin at whole words.
        let at_words = u32::from(self.divisor(column)) >= (32 / bits.max(1)).trailing_zeros();
        if !has_form || !by_columns || !at_words {
            return Ok(None);
        }
        let right = self.is_not_negative(column, 0);
        let place = Place { desc: store.desc(m), row, column, form: Form::Rows, bits };
        Ok(self.surface(&desc, bits / 8, right).map(|surface| Transfer { surface, place }))
    }

    /// The messages that store a block, and their words.
    fn stores(
        &mut self,
        transfer: &Transfer,
        layout: &TileLayout,
        element: Ty,
    ) -> Result<Vec<(String, Value)>> {
        let message = unit(Form::Rows, element);
        let (corners, _) = Self::corners(layout, Form::Rows, element);
        let one = |corner| {
            let words = self.words(transfer, &message, corner)?;
            Ok((message.store(words.register), words.value))
        };
        corners.into_iter().map(one).collect()
    }

    /// Stores a block element by element, with a look at each whether it is in the tensor, or without.
    fn store_elements(
        &mut self,
        places: &mut Places,
        layout: &TileLayout,
        regs: &Regs,
        element: Ty,
        owner: Option<Value>,
        looks: bool,
    ) {
        let words = Words::of(1, memory_bits(element));
        for r in layout.unique_registers() {
            let (ptr, inside) = self.element(places, layout, r);
            let pred = self.all(&[owner, inside.filter(|_| looks)]);
            let value: SmallVec<[Value; 4]> = self.words_of(&[regs[r as usize]], words);
            self.store_words(ptr, &value, words, pred);
        }
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

/// The corners of the messages that bring a block of these extents into the cache.
fn prefetch_parts(message: &Message, [rows, columns]: [u32; 2]) -> Vec<[u32; 2]> {
    let down = (0..rows).step_by(message.rows as usize);
    down.flat_map(|r| (0..columns).step_by(message.columns as usize).map(move |c| [r, c])).collect()
}

/// The message of the smallest block of a form: one tile of an operand.
fn unit(form: Form, element: Ty) -> Message {
    let bits = element.bits();
    match form {
        Form::Rows => Message { bits, rows: 8, columns: 16, blocks: 1, form },
        Form::Packed => Message { bits, rows: 256 / bits, columns: 16, blocks: 1, form },
        Form::Turned => Message { bits: 32, rows: 16, columns: 8, blocks: 1, form },
    }
}

/// What a message brought of a block that stays whole.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    corner: [u32; 2],
    size: [u32; 2],
    value: Value,
    message: Message,
}

impl Piece {
    /// The tile that begins there, if it is in this piece.
    fn part(&self, at: [u32; 2]) -> Option<(Value, Part)> {
        let [row, column] = [0, 1].map(|d| at[d].checked_sub(self.corner[d]).filter(|&x| x < self.size[d]));
        // A register has two rows of 16 columns, of 16 bits each; blocks lie behind each other.
        let at = (column? / 16 * self.size[0] + row?) / 2;
        Some((self.value, Part { words: self.message.registers() * 16, at }))
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
