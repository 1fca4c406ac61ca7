//! Splits operations to the size of the target's instructions (ML-Triton, section 2.3): behind it each tensor is what one of them
//! takes, and the code generator maps operation by operation.
//!
//! Why here: a warp's blocks are known since [`distribute_to_warps`](super::distribute_to_warps); nothing behind it needs to
//! know of larger ones.
//!
//! # The algorithm
//!
//! 1. Each encoding gets the size of the blocks that its tensors are cut into (`tiles`): the result of a dot that of the
//!    instruction, what is loaded that of the largest load.
//! 2. Each operation on tensors becomes one for each block of its result, in program order. Loads and stores of blocks move by the
//!    block's place; a loop carries all of them (`regions`); a reduction combines blocks element by element first.
//! 3. An operation that wants smaller blocks than it is given takes `tt.extract`, which is a part of a register's block and costs nothing. (Larger
//!    ones are put together by `tt.insert_tile`.)
//!
//! ```text
//! %a = tt.descriptor_load %da[%y, %k] : !tt.tensordesc<tensor<32x32xf16>> -> tensor<32x32xf16, #dot0>
//! %b = tt.descriptor_load %db[%k, %x] : !tt.tensordesc<tensor<32x64xf16>> -> tensor<32x64xf16, #dot1>
//! %d = tt.dot %a, %b, %c : tensor<32x32xf16, #dot0> * tensor<32x64xf16, #dot1> -> tensor<32x64xf32, #blocked>
//! =>
//! %a = tt.descriptor_load %da[%y, %k] : !tt.tensordesc<tensor<32x32xf16>> -> tensor<32x32xf16>
//! %b0 = tt.descriptor_load %db32[%k, %x] : !tt.tensordesc<tensor<32x32xf16>> -> tensor<32x32xf16>
//! %b1 = tt.descriptor_load %db32[%k, %x + 32] : …
//! %a_0 = tt.extract %a[0] : tensor<32x32xf16> -> tensor<8x16xf16>
//! %b_0 = tt.extract %b0[0] : tensor<32x32xf16> -> tensor<16x16xf16>
//! %d_0 = tt.dot %a_0, %b_0, %c_0 : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>        (32 of these)
//! ```

mod pieces;
mod regions;
mod scan;
mod tiles;

use rustc_hash::FxHashMap;
use tilewright_ir::dialect::{arith, scf, tt, ttg};
use tilewright_ir::effects::is_pure;
use tilewright_ir::index::Index;
use tilewright_ir::text::print_type;
use tilewright_ir::{AttrKind, Builder, Diagnostic, Module, Op, Opcode, Shape, Trait, Type, TypeKind, Value};

use crate::analysis::axis::pointer_of;
use crate::analysis::encoding_inference::is_tensor;
use crate::level::Level;
use crate::parts;
use crate::pass::{Pass, Property};
use crate::target::{BlockLimit, TargetInfo, WarpUnits};
use pieces::Pieces;
use tiles::{Tiles, clip};

/// The pass.
pub const PASS: Pass = Pass {
    name: "match-target-size",
    summary: "split operations to the size of the target's instructions",
    requires: &[Property::LaidOut, Property::OfOneWarp],
    ensures: &[Property::TargetSized],
    run: |m, t, _| run(m, t),
};

/// Splits the operations of all functions of a module.
///
/// # Errors
/// A target without instructions of whole warps; what none of them does, or that can't be split, with its place in the source.
pub fn run(module: &mut Module, target: &TargetInfo) -> Result<(), Diagnostic> {
    let Some(units) = target.warp_units else {
        let text = format!("match-target-size: {} has no instructions of whole warps", target.name);
        return Err(Diagnostic::new(text));
    };
    if Level::of(module) != Some(Level::Warp) {
        return Err(Diagnostic::new("match-target-size: the module is not that of one warp"));
    }
    let functions: Vec<Op> = module.block_ops(module.body()).collect();
    for func in functions {
        let Some(function) = tt::Func::cast(module, func) else { continue };
        let Some(&entry) = module.region_blocks(function.body(module)).first() else { continue };
        if let Some(&arg) = module.block_args(entry).iter().find(|&&arg| is_tensor(module, arg)) {
            let what = format!("a function that is given {}", print_type(module, module.value_type(arg)));
            return Err(Diagnostic::unsupported(module, module.op_loc(func), what));
        }
        let tiles = Tiles::choose(module, units, &module.all_ops(func))?;
        let mut splitter = Splitter {
            m: module,
            units,
            tiles,
            pieces: FxHashMap::default(),
            cut: FxHashMap::default(),
            descriptors: FxHashMap::default(),
            dead: Vec::new(),
        };
        splitter.block(entry, &[])?;
        // Users before what they use.
        for op in std::mem::take(&mut splitter.dead).into_iter().rev() {
            module.erase_op(op);
        }
    }
    tilewright_ir::dce::run(module)?;
    Level::Intrinsic.record(module);
    tilewright_ir::canonicalize::run(module)?;
    tilewright_ir::licm::run(module)?;
    tilewright_ir::cse::run(module)
}

/// The error of a dot for which there is no instruction.
fn no_instruction(m: &Module, dot: tt::Dot) -> Diagnostic {
    let element = |v: Value| print_type(m, m.element_type(m.value_type(v)));
    let what = format!(
        "a dot of {} by {} to {} with the input precision {}, for which the target has no instruction",
        element(dot.a(m)),
        element(dot.b(m)),
        element(dot.result(m)),
        dot.input_precision(m).keyword(),
    );
    Diagnostic::unsupported(m, m.op_loc(dot.0), what)
}

struct Splitter<'a> {
    m: &'a mut Module,
    units: WarpUnits,
    tiles: Tiles,
    /// The blocks that a tensor was cut into.
    pieces: FxHashMap<Value, Pieces>,
    /// Its blocks of another size.
    cut: FxHashMap<(Value, Shape), Pieces>,
    /// Descriptors with smaller blocks.
    descriptors: FxHashMap<(Value, Shape), Value>,
    /// Operations that others stand for.
    dead: Vec<Op>,
}

impl Splitter<'_> {
    fn shape(&self, value: Value) -> Shape {
        Shape::from_slice(self.m.shape(self.m.value_type(value)).unwrap_or(&[]))
    }

    /// The type of a block of a tensor.
    fn tile_type(&mut self, like: Value, tile: &[u32]) -> Type {
        let element = self.m.element_type(self.m.value_type(like));
        self.m.tensor_type(tile, element, None)
    }

    fn unsupported(&self, op: Op, what: &str) -> Diagnostic {
        let what = format!("`{}` {what}", self.m.op_name(op));
        Diagnostic::unsupported(self.m, self.m.op_loc(op), what)
    }

    /// Splits the operations of a block; `ends` are the blocks in which what it yields is wanted.
    fn block(&mut self, block: tilewright_ir::Block, ends: &[Option<Shape>]) -> Result<(), Diagnostic> {
        for op in self.m.block_ops(block).collect::<Vec<_>>() {
            if self.m.has_trait(op, Trait::Terminator) && !ends.is_empty() {
                self.end(op, ends)?;
            } else {
                self.op(op)?;
            }
        }
        Ok(())
    }

    fn op(&mut self, op: Op) -> Result<(), Diagnostic> {
        let values = || self.m.operands(op).iter().chain(self.m.results(op));
        let has_tensors = values().any(|&v| is_tensor(self.m, v));
        let index = self.m.def(op).map_or(Index::Whole, |def| def.index);
        match (self.m.opcode(op), index) {
            (Some(Opcode::Scf(kind)), _) => return self.control(op, kind),
            (Some(Opcode::Tt(tt::Kind::DescriptorPrefetch)), _) => {
                self.prefetch(tt::DescriptorPrefetch(op))?
            }
            _ if !has_tensors => return Ok(()),
            // Made where they are wanted, as large as they are wanted.
            _ if self.is_uniform(op) => return Ok(()),
            (Some(Opcode::Tt(tt::Kind::MakeRange)), _) => self.make_range(tt::MakeRange(op)),
            (Some(Opcode::Tt(tt::Kind::Dot)), _) => self.dot(tt::Dot(op))?,
            (Some(Opcode::Tt(tt::Kind::Reduce)), _) => self.reduce(tt::Reduce(op))?,
            (Some(Opcode::Tt(tt::Kind::Scan)), _) => self.scan(tt::Scan(op))?,
            (Some(Opcode::Tt(tt::Kind::DescriptorLoad)), _) => self.load_block(tt::DescriptorLoad(op))?,
            (Some(Opcode::Tt(tt::Kind::DescriptorStore)), _) => self.store_block(tt::DescriptorStore(op))?,
            (Some(Opcode::Tt(tt::Kind::Unsplat)), _) => self.unsplat(op),
            (Some(Opcode::Ttg(ttg::Kind::ConvertLayout)), _) => {
                // The same blocks: what the encodings tell apart has been done.
                let src = self.m.operands(op)[0];
                let tile = self.own_tile(src);
                let pieces = self.get(src, &tile);
                self.pieces.insert(self.m.result(op), pieces);
            }
            (Some(Opcode::Ttg(ttg::Kind::LocalLoad | ttg::Kind::LocalStore)), _) => self.local(op),
            (Some(Opcode::Tt(tt::Kind::Extract)), _) => self.part(tt::Extract(op)),
            (Some(Opcode::Tt(tt::Kind::InsertTile)), _) => self.put(tt::InsertTile(op))?,
            (_, Index::Elementwise | Index::Aligned) => self.elementwise(op),
            (_, Index::Broadcast | Index::ExpandDims(_) | Index::Permute(_)) => self.reshaped(op, index),
            _ => return Err(self.unsupported(op, "split to the size of instructions")),
        }
        self.dead.push(op);
        Ok(())
    }

    /// One operation for each block: a copy with these operands, and results of this size.
    fn copy(&mut self, op: Op, operands: &[Value], tile: &[u32]) -> Op {
        let copy = self.m.clone_op(op, &mut FxHashMap::default());
        self.m.set_operands(copy, operands);
        for result in self.m.results(copy).to_vec() {
            if is_tensor(self.m, result) {
                let ty = self.tile_type(result, tile);
                self.m.set_value_type(result, ty);
            }
        }
        let extents: Vec<Option<u32>> = tile.iter().map(|&n| Some(n)).collect();
        parts::clamp_hints(self.m, copy, &extents);
        self.m.insert_before(copy, op);
        copy
    }

    /// Notes the blocks of an operation's results, one copy for each.
    fn note(&mut self, op: Op, tile: &Shape, copies: &[Op]) {
        for (i, result) in self.m.results(op).to_vec().into_iter().enumerate() {
            if is_tensor(self.m, result) {
                let values = copies.iter().map(|&copy| self.m.results(copy)[i]).collect();
                let pieces = Pieces::new(&self.shape(result), tile, values);
                self.pieces.insert(result, pieces);
            }
        }
    }

    fn elementwise(&mut self, op: Op) {
        let operands = self.m.operands(op).to_vec();
        let tensors = operands.iter().chain(self.m.results(op)).copied().filter(|&v| is_tensor(self.m, v));
        let tensors: Vec<Value> = tensors.collect();
        let mut tile =
            tensors.iter().map(|&v| self.own_tile(v)).reduce(|a, b| clip(&a, &b)).unwrap_or_default();
        if pointer_of(self.m, op).is_some() {
            tile = clip(&self.units.gathered(tile.len()), &tile);
        }
        let given: Vec<Option<Pieces>> =
            operands.iter().map(|&v| is_tensor(self.m, v).then(|| self.get(v, &tile))).collect();
        let count = pieces::count(&self.shape(tensors[0]), &tile);
        let mut copies = Vec::new();
        for i in 0..count {
            let of_piece = operands.iter().zip(&given).map(|(&v, p)| p.as_ref().map_or(v, |p| p.values[i]));
            let of_piece: Vec<Value> = of_piece.collect();
            copies.push(self.copy(op, &of_piece, &tile));
        }
        self.note(op, &tile, &copies);
    }

    /// Operations that only name elements otherwise.
    fn reshaped(&mut self, op: Op, index: Index) {
        let (src, result) = (self.m.operands(op)[0], self.m.result(op));
        let (from, to) = (self.shape(src), self.shape(result));
        // Which dimension of the source each of the result is.
        let dims: Vec<Option<usize>> = match index {
            Index::ExpandDims(axis) => {
                let axis = self.m.int_attr(op, axis).unwrap_or(0) as usize;
                (0..to.len()).map(|d| (d != axis).then(|| d - usize::from(d > axis))).collect()
            }
            Index::Permute(_) => tt::Trans(op).order(self.m).iter().map(|&d| Some(d as usize)).collect(),
            _ => (0..to.len()).map(|d| (from[d] == to[d]).then_some(d)).collect(),
        };
        let own = self.own_tile(src);
        let limit: Shape = match index {
            Index::Permute(_) => dims.iter().flatten().map(|&d| own[d]).collect(),
            _ => self.tiles.tile(self.m, result),
        };
        let tile = clip(&limit, &to);
        let mut of_src = Shape::from_elem(1, from.len());
        for (d, source) in dims.iter().enumerate() {
            if let Some(s) = source {
                of_src[*s] = tile[d];
            }
        }
        let given = self.get(src, &of_src);
        let mut copies = Vec::new();
        for i in 0..pieces::count(&to, &tile) {
            let at = pieces::place(&to, &tile, i);
            let mut of = Shape::from_elem(0, from.len());
            for (d, source) in dims.iter().enumerate() {
                if let Some(s) = source {
                    of[*s] = at[d];
                }
            }
            copies.push(self.copy(op, &[given.at(&of)], &tile));
        }
        self.note(op, &tile, &copies);
    }

    fn make_range(&mut self, range: tt::MakeRange) {
        let (result, start) = (range.result(self.m), range.start(self.m));
        let tile = self.tiles.tile(self.m, result);
        let n = tile[0] as i32;
        let mut copies = Vec::new();
        for i in 0..pieces::count(&self.shape(result), &tile) {
            let copy = self.copy(range.0, &[], &tile);
            self.m.set_i32_attr(copy, "start", start + i as i32 * n);
            self.m.set_i32_attr(copy, "end", start + (i as i32 + 1) * n);
            copies.push(copy);
        }
        self.note(range.0, &tile, &copies);
    }

    /// The only element of a tensor of one.
    fn unsplat(&mut self, op: Op) {
        let src = self.m.operands(op)[0];
        let shape = self.shape(src);
        let given = self.get(src, &shape);
        let copy = self.copy(op, &given.values, &shape);
        let (old, new) = (self.m.result(op), self.m.result(copy));
        self.m.replace_all_uses(old, new);
    }

    /// The products of blocks along K are added up one after the other.
    fn dot(&mut self, dot: tt::Dot) -> Result<(), Diagnostic> {
        let unit = self.units.dot_shape(self.m, dot).ok_or_else(|| no_instruction(self.m, dot))?;
        let (result, a) = (dot.result(self.m), dot.a(self.m));
        let (&[rows, columns], &[_, depth]) = (&self.shape(result)[..], &self.shape(a)[..]) else {
            return Err(self.unsupported(dot.0, "of batches, split to the size of instructions"));
        };
        let [m, n, k] = unit;
        // An instruction may have fewer rows, and neither fewer columns nor less depth.
        let m = clip(&[m], &[rows])[0];
        if columns % n != 0 || depth % k != 0 {
            let what = format!(
                "of {rows}x{depth} by {depth}x{columns} in each warp, where an instruction has {k} along K and {n} columns"
            );
            return Err(self.unsupported(dot.0, &what));
        }
        let a = self.get(a, &[m, k]);
        let b = self.get(dot.b(self.m), &[k, n]);
        let c = self.get(dot.c(self.m), &[m, n]);
        let tile = Shape::from_slice(&[m, n]);
        let mut copies = Vec::new();
        for i in 0..rows / m {
            for j in 0..columns / n {
                let mut sum = c.at(&[i, j]);
                let mut last = dot.0;
                for step in 0..depth / k {
                    last = self.copy(dot.0, &[a.at(&[i, step]), b.at(&[step, j]), sum], &tile);
                    sum = self.m.result(last);
                }
                copies.push(last);
            }
        }
        self.note(dot.0, &tile, &copies);
        Ok(())
    }

    /// Blocks along the axis are combined element by element, and what comes of them is reduced.
    fn reduce(&mut self, reduce: tt::Reduce) -> Result<(), Diagnostic> {
        let srcs = reduce.srcs(self.m).to_vec();
        let (shape, axis) = (self.shape(srcs[0]), reduce.axis(self.m) as usize);
        let tile = srcs.iter().map(|&v| self.own_tile(v)).reduce(|a, b| clip(&a, &b)).unwrap_or_default();
        let given: Vec<Pieces> = srcs.iter().map(|&v| self.get(v, &tile)).collect();
        let (mut rest, mut rest_tile) = (shape.clone(), tile.clone());
        rest.remove(axis);
        rest_tile.remove(axis);
        let mut copies = Vec::new();
        for i in 0..pieces::count(&rest, &rest_tile) {
            let mut at = pieces::place(&rest, &rest_tile, i);
            at.insert(axis, 0);
            let mut sum: Vec<Value> = given.iter().map(|p| p.at(&at)).collect();
            for step in 1..shape[axis] / tile[axis] {
                at[axis] = step;
                let next: Vec<Value> = given.iter().map(|p| p.at(&at)).collect();
                let point = Builder::before(self.m, reduce.0).point();
                sum = parts::combine(self.m, reduce.0, point, &sum, &next)?.0;
            }
            copies.push(self.copy(reduce.0, &sum, &rest_tile));
        }
        self.note(reduce.0, &rest_tile, &copies);
        for (i, result) in reduce.results(self.m).to_vec().into_iter().enumerate() {
            if !is_tensor(self.m, result) {
                let number = self.m.results(copies[0])[i];
                self.m.replace_all_uses(result, number);
            }
        }
        Ok(())
    }

    // ---- memory ----------------------------------------------------------------------------------------------------

    /// The block of an access to memory: of the tensor, as far as one instruction goes.
    fn access_tile(&mut self, value: Value, limit: BlockLimit) -> Shape {
        let shape = self.shape(value);
        let bits = self.m.bits(self.m.value_type(value));
        let tile = clip(&limit.block(bits, shape.len()), &shape);
        clip(&tile, &self.own_tile(value))
    }

    fn load_block(&mut self, load: tt::DescriptorLoad) -> Result<(), Diagnostic> {
        let result = load.result(self.m);
        let tile = self.access_tile(result, self.units.load);
        let operands = self.m.operands(load.0).to_vec();
        let mut copies = Vec::new();
        for i in 0..pieces::count(&self.shape(result), &tile) {
            let copy = self.copy(load.0, &operands, &tile);
            self.move_block(copy, 1, &self.shape(result), &tile, i)?;
            copies.push(copy);
        }
        self.note(load.0, &tile, &copies);
        Ok(())
    }

    fn prefetch(&mut self, prefetch: tt::DescriptorPrefetch) -> Result<(), Diagnostic> {
        let TypeKind::TensorDesc { block } = *self.m.type_kind(self.m.value_type(prefetch.desc(self.m)))
        else {
            return Err(self.unsupported(prefetch.0, "of something else than a descriptor"));
        };
        let whole = Shape::from_slice(self.m.shape(block).unwrap_or(&[]));
        let tile = clip(&self.units.prefetch.block(self.m.bits(block), whole.len()), &whole);
        let operands = self.m.operands(prefetch.0).to_vec();
        for i in 0..pieces::count(&whole, &tile) {
            let copy = self.copy(prefetch.0, &operands, &tile);
            self.move_block(copy, 1, &whole, &tile, i)?;
        }
        Ok(())
    }

    fn store_block(&mut self, store: tt::DescriptorStore) -> Result<(), Diagnostic> {
        let src = store.src(self.m);
        let tile = self.access_tile(src, self.units.store);
        let given = self.get(src, &tile);
        for (i, &value) in given.values.iter().enumerate() {
            let mut operands = self.m.operands(store.0).to_vec();
            operands[1] = value;
            let copy = self.copy(store.0, &operands, &tile);
            self.move_block(copy, 2, &self.shape(src), &tile, i)?;
        }
        Ok(())
    }

    /// Makes an access that of block `i` of a tensor; its indices are the operands from `first` on.
    fn move_block(
        &mut self,
        op: Op,
        first: usize,
        whole: &Shape,
        tile: &Shape,
        i: usize,
    ) -> Result<(), Diagnostic> {
        let desc = self.m.operands(op)[0];
        let make = tt::MakeTensorDescriptor::of(self.m, desc);
        let make = make.ok_or_else(|| {
            self.unsupported(op, "of a descriptor that the kernel is given, or a loop carries")
        })?;
        let TypeKind::TensorDesc { block } = *self.m.type_kind(self.m.value_type(desc)) else {
            return Err(self.unsupported(op, "of something else than a descriptor"));
        };
        let mut shape = Shape::from_slice(self.m.shape(block).unwrap_or(&[]));
        let missing = shape.len() - tile.len();
        shape[missing..].copy_from_slice(tile);
        for (d, (at, extent)) in pieces::place(whole, tile, i).into_iter().zip(tile).enumerate() {
            if at > 0 {
                let operand = first + missing + d;
                let index = self.m.operands(op)[operand];
                let mut b = Builder::before(self.m, op);
                let by = b.i32((at * extent) as i32);
                let moved = arith::Addi::build(&mut b, index, by).result(b.module);
                self.m.set_operand(op, operand, moved);
            }
        }
        let smaller = parts::smaller_descriptor(self.m, &mut self.descriptors, make, &shape);
        self.m.set_operand(op, 0, smaller);
        Ok(())
    }

    /// Loads and stores of buffers: of parts of them.
    fn local(&mut self, op: Op) {
        let is_load = ttg::LocalLoad::cast(self.m, op).is_some();
        let (buffer, tensor) = match is_load {
            true => (ttg::LocalLoad(op).src(self.m), self.m.result(op)),
            false => (ttg::LocalStore(op).dst(self.m), ttg::LocalStore(op).src(self.m)),
        };
        let (shape, tile) = (self.shape(tensor), self.own_tile(tensor));
        let given = (!is_load).then(|| self.get(tensor, &tile));
        let mut copies = Vec::new();
        for i in 0..pieces::count(&shape, &tile) {
            let at = pieces::place(&shape, &tile, i);
            let part = if tile == shape { buffer } else { self.part_of(op, buffer, &tile, &at) };
            let operands = match &given {
                Some(given) => vec![given.values[i], part],
                None => vec![part],
            };
            copies.push(self.copy(op, &operands, &tile));
        }
        self.note(op, &tile, &copies);
    }

    /// A part of a buffer, before an operation that wants it.
    fn part_of(&mut self, op: Op, buffer: Value, tile: &Shape, at: &Shape) -> Value {
        let TypeKind::MemDesc { shape, element, encoding, memory_space, mutable, alloc_shape } =
            self.m.type_kind(self.m.value_type(buffer)).clone()
        else {
            return buffer;
        };
        let alloc_shape = alloc_shape.or(Some(shape));
        let kind =
            TypeKind::MemDesc { shape: tile.clone(), element, encoding, memory_space, mutable, alloc_shape };
        let ty = self.m.ty(kind);
        let offsets = at.iter().zip(tile).map(|(&at, &n)| (at * n) as i32).collect();
        let mut b = Builder::before(self.m, op);
        ttg::MemdescSubslice::build(&mut b, buffer, offsets, ty).result(b.module)
    }

    /// Whether an operation gives the same in each element, so that it can be made anew in any size.
    fn is_uniform(&self, op: Op) -> bool {
        let &[result] = self.m.results(op) else { return false };
        match self.m.opcode(op) {
            Some(Opcode::Tt(tt::Kind::Splat) | Opcode::Ub(_)) => is_pure(self.m, op),
            Some(Opcode::Arith(arith::Kind::Constant)) => self
                .m
                .constant_value(result)
                .is_some_and(|a| matches!(self.m.attr_kind(a), AttrKind::Splat(..))),
            _ => false,
        }
    }

    fn control(&mut self, op: Op, kind: scf::Kind) -> Result<(), Diagnostic> {
        match kind {
            scf::Kind::For => self.for_loop(scf::For(op)),
            scf::Kind::If => self.branch(scf::If(op)),
            scf::Kind::While => self.while_loop(op),
            scf::Kind::Yield | scf::Kind::Condition => Ok(()),
        }
    }
}
