//! Distributes the tensors of a work group over its warps: behind it the program is that of one warp (ML-Triton, section 2.2).
//!
//! Why here: encodings say which warp has what since they were assigned, and what one instruction takes is a matter of what one
//! warp has: instructions for whole warps know nothing of the others.
//!
//! # The algorithm
//!
//! 1. The part of each tensor that a warp has follows from its encoding ([`WarpPart`], ML-Triton, Table 3): its extents, and where it
//!    begins, by the warp's number.
//! 2. Types shrink to it. Ranges begin, and blocks of descriptors lie, where the part does; everything else is done on the part
//!    as it was on the whole, since encodings follow operations.
//! 3. What several warps have is stored by one, behind a barrier where others may still load what it overwrites
//!    ([`global_barriers`]). A reduction along a dimension that warps share is one of each warp's part, and then,
//!    through shared memory, of what they got (`reduce`). Where one operation wants other parts than another gives, they go
//!    through shared memory, too (`convert`).
//!
//! ```text
//! #blocked = #ttg.blocked<{sizePerWarp = [32, 64], warpsPerCTA = [8, 4], order = [1, 0]}>
//! %a = tt.descriptor_load %da[%y, %k] : !tt.tensordesc<tensor<256x32xf16>> -> tensor<256x32xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
//! %d = tt.dot %a, %b, %c : tensor<256x32xf16, …> * tensor<32x256xf16, …> -> tensor<256x256xf32, #blocked>
//! =>
//! %id = gpu.subgroup_id : index
//! %w = arith.index_cast %id : index to i32
//! %ya = arith.addi %y, (%w >> 2 & 7) * 32
//! %a = tt.descriptor_load %da32[%ya, %k] : !tt.tensordesc<tensor<32x32xf16>> -> tensor<32x32xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
//! %d = tt.dot %a, %b, %c : tensor<32x32xf16, …> * tensor<32x64xf16, …> -> tensor<32x64xf32, #blocked>
//! ```
//!
//! Encodings stay, though what they say has been done: what is of one kind, the result of a dot or its operand, is split alike by
//! [`match_target_size`](super::match_target_size).

mod convert;
mod prefetch;
mod reduce;

use rustc_hash::FxHashMap;
use tilewright_ir::diagnostic::Kind;
use tilewright_ir::dialect::{arith, gpu, llvm, tt, ttg};
use tilewright_ir::effects::is_pure;
use tilewright_ir::index::{Index, Relation, Role};
use tilewright_ir::{AttrKind, Builder, Diagnostic, Module, Op, Opcode, Shape, Type, TypeKind, Value};
use tilewright_layout::{WarpAxis, WarpPart};

use crate::analysis::scope;
use crate::level::Level;
use crate::parts;
use crate::pass::{Pass, Property};
use crate::target::{BlockLimit, TargetInfo};
use crate::transform::global_barriers;

/// The pass.
pub const PASS: Pass = Pass {
    name: "distribute-to-warps",
    summary: "distribute the tensors of a work group over its warps",
    requires: &[Property::LaidOut],
    ensures: &[Property::OfOneWarp],
    run: |m, t, _| run(m, t),
};

/// Distributes all functions of a module.
///
/// # Errors
/// What can't be distributed, with its place in the source.
pub fn run(module: &mut Module, target: &TargetInfo) -> Result<(), Diagnostic> {
    if Level::of(module) != Some(Level::WorkGroup) {
        return Err(Diagnostic::new("distribute-to-warps: the module is that of one warp already"));
    }
    global_barriers::run(module);
    let functions: Vec<Op> = module.block_ops(module.body()).collect();
    for func in functions {
        let Some(function) = tt::Func::cast(module, func) else { continue };
        let Some(&entry) = module.region_blocks(function.body(module)).first() else { continue };
        let Some(first) = module.first_op(entry) else { continue };
        let ops = module.all_ops(func);
        let parts = parts_of(module, &ops)?;
        let mut distributor = Distributor {
            num_warps: scope::num_warps(module, first),
            prefetch: target.warp_units.map(|units| units.prefetch),
            m: module,
            first,
            parts,
            warp: None,
            begins: FxHashMap::default(),
            descriptors: FxHashMap::default(),
        };
        distributor.shrink();
        for &op in ops.iter().filter(|&&op| op != func) {
            distributor.op(op)?;
        }
        distributor.erase_descriptors();
    }
    Level::Warp.record(module);
    tilewright_ir::canonicalize::run(module)?;
    tilewright_ir::licm::run(module)?;
    tilewright_ir::cse::run(module)
}

/// Whether no warp has less of an operation's tensors than all of them.
pub(crate) fn is_of_one_warp(module: &Module, op: Op) -> bool {
    let whole = |&v: &Value| part_of(module, op, v).is_none_or(|part| part.is_ok_and(|p| is_whole(&p)));
    module.operands(op).iter().chain(module.results(op)).all(whole)
}

fn is_whole(part: &WarpPart) -> bool {
    part.axes.iter().all(|axis| axis.count == 1)
}

/// The part of a tensor that each warp has.
fn part_of(m: &Module, op: Op, value: Value) -> Option<tilewright_layout::Result<WarpPart>> {
    let ty = m.value_type(value);
    let encoding = m.encoding(ty).filter(|_| m.is_tensor(ty)).and_then(|e| m.encoding_of(e))?;
    Some(WarpPart::new(encoding, m.shape(ty).unwrap_or(&[]), scope::num_warps(m, op)))
}

/// The parts of all tensors that operations give, and their regions are given.
fn parts_of(m: &Module, ops: &[Op]) -> Result<FxHashMap<Value, WarpPart>, Diagnostic> {
    let mut parts = FxHashMap::default();
    for &op in ops {
        let blocks = m.regions(op).iter().flat_map(|&region| m.region_blocks(region));
        for &value in m.results(op).iter().chain(blocks.flat_map(|&block| m.block_args(block))) {
            match part_of(m, op, value) {
                Some(Ok(part)) => _ = parts.insert(value, part),
                Some(Err(error)) => {
                    return Err(Diagnostic::at(m, m.op_loc(op), error.to_string()).of(Kind::Unsupported));
                }
                None => {}
            }
        }
    }
    Ok(parts)
}

struct Distributor<'a> {
    m: &'a mut Module,
    num_warps: u32,
    /// The most that one prefetch brings.
    prefetch: Option<BlockLimit>,
    /// The first operation of the function, before which what depends on the warp's number alone is computed.
    first: Op,
    /// The part of each tensor, by the encoding that it had as a whole.
    parts: FxHashMap<Value, WarpPart>,
    /// The warp's number.
    warp: Option<Value>,
    /// Where parts of an extent begin.
    begins: FxHashMap<(WarpAxis, u32), Value>,
    /// Descriptors with smaller blocks.
    descriptors: FxHashMap<(Value, Shape), Value>,
}

impl Distributor<'_> {
    // ---- the warp's number ----------------------------------------------------------------------------------------

    fn warp(&mut self) -> Value {
        if let Some(warp) = self.warp {
            return warp;
        }
        let mut b = Builder::before(self.m, self.first);
        let id = gpu::SubgroupId::build(&mut b, Type::INDEX).result(b.module);
        let warp = arith::IndexCast::build(&mut b, id, Type::I32).out(b.module);
        *self.warp.insert(warp)
    }

    /// The number of this warp's part along an axis.
    fn number(&mut self, axis: WarpAxis) -> Value {
        let warp = self.warp();
        let mut b = Builder::before(self.m, self.first);
        let (shift, mask) = (b.i32(axis.shift as i32), b.i32(axis.count as i32 - 1));
        let moved = arith::Shrui::build(&mut b, warp, shift).result(b.module);
        arith::Andi::build(&mut b, moved, mask).result(b.module)
    }

    /// Where this warp's part begins, each being `extent` long.
    fn begin(&mut self, axis: WarpAxis, extent: u32) -> Value {
        if let Some(&known) = self.begins.get(&(axis, extent)) {
            return known;
        }
        let number = self.number(axis);
        let mut b = Builder::before(self.m, self.first);
        let extent_value = b.i32(extent as i32);
        let begin = arith::Muli::build(&mut b, number, extent_value).result(b.module);
        self.begins.insert((axis, extent), begin);
        begin
    }

    /// Whether this warp is the one that does what all do that differ from it in these bits alone.
    fn leads(&mut self, copies: u32) -> Value {
        let warp = self.warp();
        let mut b = Builder::before(self.m, self.first);
        let (mask, zero) = (b.i32(copies as i32), b.i32(0));
        let others = arith::Andi::build(&mut b, warp, mask).result(b.module);
        arith::Cmpi::build(&mut b, others, zero, arith::CmpIPredicate::Eq, Type::I1).result(b.module)
    }

    // ---- operations -------------------------------------------------------------------------------------------------

    /// Gives all tensors the types of their parts.
    fn shrink(&mut self) {
        for (&value, part) in &self.parts {
            let ty = self.m.value_type(value);
            let (element, encoding) = (self.m.element_type(ty), self.m.encoding(ty));
            let ty = self.m.tensor_type(&part.shape, element, encoding);
            self.m.set_value_type(value, ty);
        }
    }

    fn unsupported(&self, op: Op, what: &str) -> Diagnostic {
        let what = format!("`{}` {what}", self.m.op_name(op));
        Diagnostic::unsupported(self.m, self.m.op_loc(op), what)
    }

    fn op(&mut self, op: Op) -> Result<(), Diagnostic> {
        let opcode = self.m.opcode(op);
        match opcode {
            Some(Opcode::Arith(arith::Kind::Constant)) => return self.constant(op),
            Some(Opcode::Tt(kind)) => match kind {
                tt::Kind::MakeRange => self.make_range(tt::MakeRange(op)),
                tt::Kind::DescriptorLoad => self.move_block(op, self.m.result(op), 1)?,
                tt::Kind::DescriptorStore => {
                    let src = tt::DescriptorStore(op).src(self.m);
                    self.move_block(op, src, 2)?;
                    self.once(op, Some(src))?;
                }
                tt::Kind::DescriptorPrefetch => self.prefetch(tt::DescriptorPrefetch(op))?,
                tt::Kind::Load => {}
                tt::Kind::Store => self.once(op, Some(tt::Store(op).value(self.m)))?,
                tt::Kind::AtomicRmw | tt::Kind::AtomicCas => self.once(op, Some(self.m.operands(op)[1]))?,
                tt::Kind::Reduce => return self.reduce(tt::Reduce(op)),
                tt::Kind::Return | tt::Kind::ReduceReturn | tt::Kind::ScanReturn | tt::Kind::Assert => {}
                tt::Kind::MakeTensorDescriptor => return Ok(()),
                _ if is_pure(self.m, op) || !self.m.regions(op).is_empty() => {}
                _ => return Err(self.unsupported(op, "distributed over warps")),
            },
            // Nothing behind asks what is promised.
            Some(Opcode::Llvm(_)) if llvm::Assume::cast(self.m, op).is_some() => {
                self.m.erase_op(op);
                return Ok(());
            }
            Some(Opcode::Ttg(ttg::Kind::ConvertLayout)) => return self.convert(ttg::ConvertLayout(op)),
            Some(Opcode::Ttg(ttg::Kind::Barrier)) => {}
            Some(Opcode::Arith(_) | Opcode::Math(_) | Opcode::Scf(_) | Opcode::Ub(_) | Opcode::Gpu(_)) => {}
            _ => return Err(self.unsupported(op, "distributed over warps")),
        }
        self.note_extents(op);
        self.check(op)
    }

    /// What marks promise of an operation's elements holds within the part.
    fn note_extents(&mut self, op: Op) {
        let subject = self.m.results(op).first().or(self.m.operands(op).first()).copied();
        let Some(part) = subject.and_then(|v| self.parts.get(&v)) else { return };
        let split: Vec<Option<u32>> =
            part.axes.iter().zip(&part.shape).map(|(axis, &n)| (axis.count > 1).then_some(n)).collect();
        parts::clamp_hints(self.m, op, &split);
    }

    /// Whether the operation does on the parts what it did on the whole: along axes of which it needs whole lines it has them.
    fn check(&self, op: Op) -> Result<(), Diagnostic> {
        let index = self.m.def(op).map_or(Index::Whole, |def| def.index);
        let values = || self.m.operands(op).iter().chain(self.m.results(op));
        if values().all(|v| self.parts.get(v).is_none_or(is_whole)) {
            return Ok(());
        }
        let by_axes = matches!(
            index,
            Index::Elementwise
                | Index::Aligned
                | Index::Broadcast
                | Index::ExpandDims(_)
                | Index::Permute(_)
                | Index::Join
                | Index::Split
                | Index::Contraction
                | Index::Scan(_)
                | Index::Block(..)
        );
        let generated = matches!(
            self.m.opcode(op),
            Some(Opcode::Tt(tt::Kind::MakeRange | tt::Kind::Splat) | Opcode::Scf(_) | Opcode::Ub(_))
        );
        if generated {
            return Ok(());
        }
        let what = "of a tensor that warps share out";
        if !by_axes {
            return Err(self.unsupported(op, what));
        }
        if matches!(index, Index::Split) && !self.splits_within_warps(op) {
            return Err(self.unsupported(op, "of pairs that change warps"));
        }
        let relation = Relation::of(self.m, op)
            .map_err(|e| Diagnostic::at(self.m, self.m.op_loc(op), format!("internal: {e}")))?;
        for (value, site) in values().zip(relation.operands.iter().chain(&relation.results)) {
            let (Some(site), Some(part)) = (site, self.parts.get(value)) else { continue };
            let split = |d: usize| part.axes.get(d).is_some_and(|axis| axis.count > 1);
            let whole = |d: usize| {
                site.dims[d].is_some_and(|of| {
                    matches!(relation.axes[of.axis].role, Role::Whole | Role::Combined | Role::Member)
                })
            };
            if (0..site.dims.len()).any(|d| split(d) && whole(d)) {
                return Err(self.unsupported(op, "along a dimension that warps share out"));
            }
        }
        Ok(())
    }

    /// Whether what a warp has of the results of a split is what it has of the pairs: these may be shared out themselves, or the results have any
    /// other layout.
    fn splits_within_warps(&self, op: Op) -> bool {
        let shared = |v: Value, rank: usize| -> Vec<Option<WarpAxis>> {
            let axes = self.parts.get(&v).map_or(&[][..], |part| &part.axes);
            (0..rank).map(|d| axes.get(d).copied().filter(|axis| axis.count > 1)).collect()
        };
        let src = self.m.operands(op)[0];
        let rank = self.m.shape(self.m.value_type(src)).map_or(0, <[u32]>::len);
        let pairs = shared(src, rank);
        self.m.results(op).iter().all(|&result| shared(result, rank) == pairs)
    }

    /// The same number in fewer elements.
    fn constant(&mut self, op: Op) -> Result<(), Diagnostic> {
        let result = self.m.result(op);
        let Some(part) = self.parts.get(&result) else { return Ok(()) };
        let is_table = !is_whole(part);
        let ty = self.m.value_type(result);
        let value = match self.m.constant_value(result).map(|attr| self.m.attr_kind(attr).clone()) {
            Some(AttrKind::Splat(number, _)) => AttrKind::Splat(number, ty),
            _ if is_table => {
                return Err(self.unsupported(op, "with several numbers, of which a warp has some"));
            }
            _ => return Ok(()),
        };
        let attr = self.m.attr(value);
        self.m.set_attr(op, "value", attr);
        Ok(())
    }

    /// The range of the warp's part.
    fn make_range(&mut self, range: tt::MakeRange) {
        let result = range.result(self.m);
        let Some(part) = self.parts.get(&result).filter(|p| !is_whole(p)).cloned() else { return };
        let (axis, extent) = (part.axes[0], part.shape[0]);
        let end = range.start(self.m) + extent as i32;
        self.m.set_i32_attr(range.0, "end", end);
        let begin = self.begin(axis, extent);
        let ty = self.m.value_type(result);
        let mut b = Builder::after(self.m, range.0);
        let begin = tt::Splat::build(&mut b, begin, ty).result(b.module);
        let moved = arith::Addi::build(&mut b, result, begin);
        let (moved, at) = (moved.result(b.module), moved.0);
        self.m.replace_all_uses(result, moved);
        self.m.set_operand(at, 0, result);
        self.parts.insert(moved, part);
    }

    /// The block of a descriptor begins where the part of its tile does; its indices are the operands from `first` on.
    fn move_block(&mut self, op: Op, tile: Value, first: usize) -> Result<(), Diagnostic> {
        let Some(part) = self.parts.get(&tile).cloned() else { return Ok(()) };
        self.move_to(op, &part, first)
    }

    /// The same for a part of the block.
    fn move_to(&mut self, op: Op, part: &WarpPart, first: usize) -> Result<(), Diagnostic> {
        let desc = self.m.operands(op)[0];
        let Some(make) = tt::MakeTensorDescriptor::of(self.m, desc) else {
            return Err(self.unsupported(op, "of a descriptor that the kernel is given, or a loop carries"));
        };
        let TypeKind::TensorDesc { block } = *self.m.type_kind(self.m.value_type(desc)) else {
            return Err(self.unsupported(op, "of something else than a descriptor"));
        };
        let mut shape = Shape::from_slice(self.m.shape(block).unwrap_or(&[]));
        // Dimensions of one element may be missing in the tile.
        let missing = shape.len() - part.shape.len();
        shape[missing..].copy_from_slice(&part.shape);
        for (d, (&axis, &extent)) in part.axes.iter().zip(&part.shape).enumerate() {
            if axis.count > 1 {
                let begin = self.begin(axis, extent);
                let operand = first + missing + d;
                let index = self.m.operands(op)[operand];
                let mut b = Builder::before(self.m, op);
                let moved = arith::Addi::build(&mut b, index, begin).result(b.module);
                self.m.set_operand(op, operand, moved);
            }
        }
        let smaller = parts::smaller_descriptor(self.m, &mut self.descriptors, make, &shape);
        self.m.set_operand(op, 0, smaller);
        Ok(())
    }

    /// Erases the descriptors of whole tiles.
    fn erase_descriptors(&mut self) {
        for (whole, _) in std::mem::take(&mut self.descriptors).into_keys() {
            if let Some(op) = self.m.defining_op(whole).filter(|_| self.m.is_unused(whole)) {
                self.m.erase_op(op);
            }
        }
    }

    /// What several warps would write, because they have the same of `value` (or of a number all do), one of them does.
    fn once(&mut self, op: Op, value: Option<Value>) -> Result<(), Diagnostic> {
        let part = value.and_then(|v| self.parts.get(&v));
        let copies = part.map_or(self.num_warps - 1, |part| part.copies);
        if copies == 0 {
            return Ok(());
        }
        let wanted: Vec<Value> =
            self.m.results(op).iter().copied().filter(|&r| !self.m.is_unused(r)).collect();
        let leads = self.leads(copies);
        let next = self.m.next_op(op);
        let frame = parts::only_if(self.m, leads, op);
        if self.first == op {
            self.first = frame;
        }
        match (&wanted[..], next) {
            (&[result], Some(next)) => self.hand_out(op, result, copies, next),
            ([], _) => {}
            _ => {
                return Err(
                    self.unsupported(op, "with several results, which several warps want, and one has")
                );
            }
        }
        Ok(())
    }
}
