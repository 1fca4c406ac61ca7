//! Layout assignment: gives every tensor its encoding, once (ML-Triton, section 2.1), instead of giving naive ones and
//! repairing them.
//!
//! Why here: it is the border between `tt`, where a tensor is one thing, and `ttg`, where threads hold parts of it. All
//! later passes need encodings; all earlier ones are simpler without.
//!
//! # The algorithm
//!
//! 1. **Roots** (`roots`). Operations that care: a dot (tensor-core fragments, warps in a square for a plain product,
//!    in rows where the result is reduced by rows or feeds another dot, or as its `tiling` says), what the kernel says itself (`ttg.set_layout`), and memory operations on many bytes (runs of 16
//!    bytes per thread along the contiguous dimension, found by [axis analysis](crate::analysis::axis)). Their results are fixed.
//! 2. **Propagation** (`propagate`). Heaviest root first (bytes moved × 8^loop depth, dots before all), its encoding
//!    spreads along def-use chains both ways, through loops, branches, broadcasts and reductions, until it meets a value
//!    that has one already. Small loads take what reaches them if that costs little more than their own choice, and large ones
//!    what the kernel says of their values.
//!    **Cheap** values (ranges, splats, constants and integer arithmetic on them) stop nothing and get no encoding.
//!    What functions take and give has one encoding for each type, the default one: caller and callee agree without having to look at each
//!    other.
//! 3. **Rewriting** (`rewrite`). Each operation says which encoding each operand must have. Where a value has another:
//!    a cheap one is computed again in the wanted encoding; one that follows from something smaller (a broadcast, a
//!    widening cast) is computed again from that, converted; everything else gets one `ttg.convert_layout`, where it is
//!    defined, so that what is defined outside a loop is converted outside it. Operands of a dot that come from memory go
//!    through shared memory (`local_alloc`, `local_load`), which the software pipeliner later makes asynchronous.
//!
//! On a target whose instructions take blocks of whole warps ([`WarpUnits`](crate::target::WarpUnits)) encodings say what warps have, and
//! nothing of lanes. There the operands of a dot have their layouts from its result, and hand them on to what they are made of; the last
//! dot decides first; reductions are roots, too. (ML-Triton, Listing 2 and Table 5.)
//!
//! The partitions of a `ttg.warp_specialize` are assigned layouts each on its own, for its warps: no tensor crosses their borders.
//!
//! `roots`, `rewrite` and `wgmma` name this file, which calls them: what they have are methods of its `Assigner`, or hold it.
//!
//! ```text
//! %x = tt.load %p : tensor<128x64x!tt.ptr<f16>>
//! %d = tt.dot %x, %y, %acc : tensor<128x64xf16> * tensor<64x128xf16> -> tensor<128x128xf32>
//! =>
//! %x = tt.load %p {tt.vec = 8, tt.vec_axis = 1} : tensor<128x64x!tt.ptr<f16>, #blocked>
//! %s = ttg.local_alloc %x : (tensor<128x64xf16, #blocked>) -> !ttg.memdesc<128x64xf16, #shared, #smem>
//! %a = ttg.local_load %s : ... -> tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
//! %d = tt.dot %a, %b, %acc : ... -> tensor<128x128xf32, #mma>
//! or
//! %a = tt.load %p : tensor<128x64x!tt.ptr<f16>, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
//! %d = tt.dot %a, %b, %acc : ... -> tensor<128x128xf32, #blocked>              (of warps: sizePerWarp, warpsPerCTA)
//! ```

mod propagate;
mod rewrite;
mod roots;
mod wgmma;

pub(crate) use rewrite::after_value;
pub(crate) use wgmma::operand_buffer_encoding;
pub use wgmma::warp_group_shape;

use rustc_hash::FxHashMap;
use tilewright_ir::dialect::{arith, tt, ttg};
use tilewright_ir::flow;
use tilewright_ir::marks;
use tilewright_ir::text::print_attr;
use tilewright_ir::{Attr, AttrKind, Block, Diagnostic, Encoding, Module, Op, Opcode, Options, Trait, Value};
use tilewright_layout::TileLayout;

use crate::analysis::axis::AxisAnalysis;
use crate::analysis::encoding_choice::{self, WarpsAlong};
use crate::analysis::{scope, scratch};
use crate::pass::{Pass, Property};
use crate::target::TargetInfo;

/// The pass.
pub const PASS: Pass = Pass {
    name: "assign-layouts",
    summary: "give every tensor its encoding",
    requires: &[],
    ensures: &[Property::LaidOut],
    run: |m, t, o| {
        known(m)?;
        record(m, t, o);
        run(m, t, o.num_warps)
    },
};

/// Checks that tensors have dimensions, and layouts are modelled where a module has some already.
fn known(module: &Module) -> Result<(), Diagnostic> {
    for op in module.all_ops(module.root()) {
        let blocks = module.regions(op).iter().flat_map(|&region| module.region_blocks(region));
        let arguments = blocks.flat_map(|&block| module.block_args(block));
        for &value in module.results(op).iter().chain(arguments) {
            let ty = module.value_type(value);
            let what = match module.encoding(ty).filter(|&e| module.encoding_of(e).is_none()) {
                Some(layout) if module.is_tensor(ty) => format!("the layout {}", print_attr(module, layout)),
                None if module.is_tensor(ty) && module.shape(ty).is_some_and(<[u32]>::is_empty) => {
                    "a tensor without dimensions".to_string()
                }
                _ => continue,
            };
            return Err(Diagnostic::unsupported(module, module.op_loc(op), what));
        }
    }
    Ok(())
}

/// Records on the module what it is compiled for.
fn record(module: &mut Module, target: &TargetInfo, options: &Options) {
    let Options { num_warps, num_ctas, maxnreg, .. } = *options;
    let root = module.root();
    module.set_i32_attr(root, "ttg.num-warps", num_warps as i32);
    module.set_i32_attr(root, "ttg.num-ctas", num_ctas as i32);
    module.set_i32_attr(root, "ttg.threads-per-warp", target.warp_size as i32);
    let name = module.attr(AttrKind::Str(target.name.clone()));
    module.set_attr(root, "ttg.target", name);
    if let Some(bound) = maxnreg {
        let machine = target.machine;
        let bound = bound.clamp(machine.min_registers_of_thread, machine.registers_of_thread);
        module.set_i32_attr(root, "ttg.maxnreg", bound as i32);
    }
    if target.stmatrix {
        let unit = module.attr(AttrKind::Unit);
        module.set_attr(root, scratch::STMATRIX, unit);
    }
}

/// Assigns an encoding to every tensor of the module.
///
/// # Errors
/// An operation that no encoding is known for, with its location.
pub fn run(module: &mut Module, target: &TargetInfo, num_warps: u32) -> Result<(), Diagnostic> {
    let functions: Vec<Op> = module.block_ops(module.body()).collect();
    for func in functions {
        if tt::Func::cast(module, func).is_none() {
            continue;
        }
        for (unit, num_warps) in units(module, func, num_warps) {
            let axis = AxisAnalysis::run(module);
            let ops = unit.ops(module);
            let mut assigner = Assigner {
                module,
                axis,
                target,
                num_warps,
                unit,
                ops,
                encodings: FxHashMap::default(),
                cheap: FxHashMap::default(),
                depths: FxHashMap::default(),
                accesses: FxHashMap::default(),
            };
            assigner.note_runs();
            let mut roots = assigner.roots()?;
            roots.extend(assigner.signature_roots());
            assigner.propagate_all(&roots);
            rewrite::Rewriter::new(assigner).run()?;
        }
    }
    Ok(())
}

/// Operations that the same warps run. No tensor passes from one unit to another.
#[derive(Debug, Clone, Copy)]
enum Unit {
    /// A function without its partitions.
    Function(Op),
    Partition(Block),
}

impl Unit {
    /// Its operations, parents first: the function itself is one.
    fn ops(self, module: &Module) -> Vec<Op> {
        match self {
            Unit::Function(func) => {
                let own = |&op: &Op| scope::enclosing(module, op).iter().all(|&(_, region)| region == 0);
                module.all_ops(func).into_iter().filter(own).collect()
            }
            Unit::Partition(block) => module.block_ops(block).flat_map(|op| module.all_ops(op)).collect(),
        }
    }
}

/// A function, then each of its partitions, with their numbers of warps.
fn units(module: &Module, func: Op, num_warps: u32) -> Vec<(Unit, u32)> {
    let mut units = vec![(Unit::Function(func), num_warps)];
    for w in module.all_ops(func).into_iter().filter_map(|op| ttg::WarpSpecialize::cast(module, op)) {
        let warps = w.partition_num_warps(module);
        let blocks = w.partitions(module).iter().map(|&r| Unit::Partition(module.region_block(r)));
        units.extend(blocks.zip(warps).map(|(unit, n)| (unit, n as u32)));
    }
    units
}

/// What a memory operation would like.
#[derive(Debug, Clone)]
struct Access {
    /// Its own best encoding.
    own: Attr,
    /// The dimension along which memory is contiguous.
    fast: u32,
    /// How many elements one access may take along each dimension.
    vec: Vec<u32>,
    /// Bits of an element.
    bits: u32,
    /// Whether it goes to single elements of a buffer, here and there: in whatever encoding, as many accesses of words.
    scattered: bool,
    /// Whether it is a store to shared memory.
    shared: bool,
}

struct Assigner<'a> {
    module: &'a mut Module,
    axis: AxisAnalysis,
    target: &'a TargetInfo,
    num_warps: u32,
    unit: Unit,
    /// All operations of the unit, parents first.
    ops: Vec<Op>,
    /// The encoding of each value that is not cheap, by [`crate::analysis::encoding_inference::representative`].
    encodings: FxHashMap<Value, Attr>,
    cheap: FxHashMap<Value, bool>,
    depths: FxHashMap<Op, u32>,
    accesses: FxHashMap<Op, Access>,
}

impl Assigner<'_> {
    /// The warps, and the lanes of each.
    fn threads(&self) -> (u32, u32) {
        (self.num_warps, self.target.warp_size)
    }

    /// Writes on comparisons in what runs their results are constant (a mask `offsets < n` of whole vectors), so that a
    /// thread compares once for each run.
    fn note_runs(&mut self) {
        for op in self.ops.clone() {
            let Some(Opcode::Arith(arith::Kind::Cmpi)) = self.module.opcode(op) else { continue };
            let result = self.module.result(op);
            let runs: Vec<i32> =
                self.axis.get(self.module, result).dims.iter().map(|d| 1 << d.constancy.min(30)).collect();
            let shape = self.shape(result);
            if shape.iter().zip(&runs).any(|(&extent, &run)| run > 1 && (run as u32) < extent) {
                let attr = self.module.attr(AttrKind::I32Array(runs));
                self.module.set_attr(op, marks::CONSTANCY, attr);
            }
        }
    }

    /// What the function is given, and what it is given by those that it calls.
    fn signature_roots(&mut self) -> Vec<roots::Root> {
        let mut values = Vec::new();
        // A partition is given no tensors, and calls nothing.
        let Unit::Function(func) = self.unit else { return Vec::new() };
        let inside = &self.ops[1..];
        for &region in self.module.regions(func) {
            values.extend(
                self.module
                    .region_blocks(region)
                    .first()
                    .into_iter()
                    .flat_map(|&b| self.module.block_args(b)),
            );
        }
        let calls = inside.iter().filter(|&&op| tt::Call::cast(self.module, op).is_some());
        values.extend(calls.flat_map(|&op| self.module.results(op)));
        let mut found = Vec::new();
        for value in values.into_iter().copied().collect::<Vec<Value>>() {
            if crate::analysis::encoding_inference::is_tensor(self.module, value) {
                let encoding = self.signature_encoding(value);
                self.encodings.insert(value, encoding);
                found.push(roots::Root { value, encoding, weight: 0, fixed: true });
            }
        }
        found
    }

    /// The encoding in which a value crosses the border of a function.
    fn signature_encoding(&mut self, value: Value) -> Attr {
        let bits = self.module.bits(self.module.value_type(value));
        self.default_encoding(&self.shape(value), bits)
    }

    fn shape(&self, value: Value) -> Vec<u32> {
        self.module.shape(self.module.value_type(value)).unwrap_or(&[]).to_vec()
    }

    fn intern(&mut self, enc: Encoding) -> Attr {
        self.module.attr(AttrKind::Encoding(enc))
    }

    fn encoding(&self, attr: Attr) -> &Encoding {
        self.module.encoding_of(attr).expect("an encoding attribute")
    }

    /// The bytes of a value's tensor.
    fn bytes(&self, value: Value) -> u64 {
        let ty = self.module.value_type(value);
        let elements: u64 = self.module.shape(ty).unwrap_or(&[]).iter().map(|&s| u64::from(s)).product();
        elements * u64::from(self.module.bits(ty)).div_ceil(8)
    }

    /// How many loops an operation lies in.
    fn depth(&mut self, op: Op) -> u32 {
        if let Some(&d) = self.depths.get(&op) {
            return d;
        }
        let d = match self.module.parent_op(op) {
            None => 0,
            Some(p) => self.depth(p) + u32::from(flow::is_loop(self.module, p)),
        };
        self.depths.insert(op, d);
        d
    }

    /// Whether a value is computed anew wherever it is wanted in another encoding: a constant, range or splat, and
    /// broadcasts, comparisons and plain arithmetic on such. What a loop carries is not.
    fn is_cheap(&mut self, value: Value) -> bool {
        if let Some(&c) = self.cheap.get(&value) {
            return c;
        }
        let cheap = match self.module.defining_op(value) {
            None => false,
            Some(op) => match self.module.opcode(op) {
                Some(Opcode::Tt(tt::Kind::MakeRange | tt::Kind::Splat)) => true,
                Some(Opcode::Tt(
                    tt::Kind::ExpandDims
                    | tt::Kind::Broadcast
                    | tt::Kind::Addptr
                    | tt::Kind::Bitcast
                    | tt::Kind::IntToPtr
                    | tt::Kind::PtrToInt,
                ))
                | Some(Opcode::Ttg(ttg::Kind::LocalPtr | ttg::Kind::RemotePtr)) => self.operands_cheap(op),
                Some(Opcode::Arith(kind)) => {
                    let slow = matches!(
                        kind,
                        arith::Kind::Divf
                            | arith::Kind::Remf
                            | arith::Kind::Ceildivsi
                            | arith::Kind::Floordivsi
                    );
                    // A constant whose elements differ can't be split among threads but by a table.
                    let table = kind == arith::Kind::Constant
                        && self
                            .module
                            .constant_value(value)
                            .is_some_and(|a| matches!(self.module.attr_kind(a), AttrKind::Dense(..)));
                    !slow && !table && self.module.has_trait(op, Trait::Pure) && self.operands_cheap(op)
                }
                _ => false,
            },
        };
        self.cheap.insert(value, cheap);
        cheap
    }

    fn operands_cheap(&mut self, op: Op) -> bool {
        let operands: Vec<Value> = self.module.operands(op).to_vec();
        operands
            .into_iter()
            .all(|v| !crate::analysis::encoding_inference::is_tensor(self.module, v) || self.is_cheap(v))
    }

    /// Elements that one instruction of a thread accesses in an encoding.
    fn access_width(access: &Access, layout: &TileLayout) -> u32 {
        let axis = layout.order().first().map_or(0, |&d| d as usize);
        access.vec[axis].min(layout.contig_along(axis)).max(1)
    }

    /// What an access in an encoding costs: instructions × 32-byte sectors that each touches.
    fn access_cost(access: &Access, shape: &[u32], layout: &TileLayout) -> u64 {
        let fast = access.fast as usize;
        let bytes = (access.bits / 8).max(1);
        let vec = Self::access_width(access, layout);
        let instructions = u64::from(layout.num_registers() / vec);
        let mut rows = 1u64;
        for d in (0..shape.len()).filter(|&d| d != fast) {
            rows <<= layout.lane_bases(d).iter().filter(|&&b| b != 0).count();
        }
        let steps: Vec<u32> = layout.lane_bases(fast).iter().copied().filter(|&b| b != 0).collect();
        let apart = steps.iter().min().map_or(bytes * vec, |&b| (b * bytes).max(bytes * vec)).min(32);
        let across = (u64::from(apart) << steps.len()).div_ceil(32);
        instructions * rows * across
    }

    /// Whether a memory operation may as well be done in an encoding that reaches it.
    fn accepts(&self, op: Op, shape: &[u32], enc: Attr) -> bool {
        let Some(access) = self.accesses.get(&op) else { return true };
        // (How lanes share a warp's part is settled later.)
        if access.own == enc || self.target.warp_units.is_some() {
            return true;
        }
        let layout = |enc| TileLayout::new(self.encoding(enc), shape).ok();
        let (Some(own), Some(there)) = (layout(access.own), layout(enc)) else { return false };
        if access.scattered {
            return there.num_registers() <= own.num_registers();
        }
        // A conversion would itself store to shared memory, run by run.
        if access.shared {
            let axis = there.order().first().map_or(0, |&d| usize::from(d));
            let run = there.contig_along(axis).min(self.target.max_vector_bytes * 8 / access.bits);
            return Self::access_width(access, &there) == run.max(1);
        }
        let cost = Self::access_cost(access, shape, &own);
        // A conversion costs instructions too, but for words that a thread has one by one (the pairs of a product in 16 bits)
        // fewer than their accesses.
        let words = |layout| Self::access_width(access, layout) * access.bits / 32;
        let conversion = if words(&there) <= 1 && words(&own) >= 4 { 0 } else { 16 };
        Self::access_cost(access, shape, &there) <= cost + cost / 2 + conversion
    }

    /// For a tensor that nothing reaches.
    fn default_encoding(&mut self, shape: &[u32], bits: u32) -> Attr {
        let vec = (128 / bits.max(8)).max(1);
        let order = encoding_choice::row_major(shape.len());
        let enc = self.blocked(shape, &order, vec, bits, WarpsAlong::SlowDimensions);
        self.intern(enc)
    }

    /// A blocked encoding, of threads or of warps.
    fn blocked(&self, shape: &[u32], order: &[u32], vec: u32, bits: u32, along: WarpsAlong) -> Encoding {
        if self.target.warp_units.is_none() {
            return encoding_choice::blocked(shape, order, vec, self.threads(), bits, along);
        }
        let dims: Vec<u32> = match along {
            WarpsAlong::FastDimension => order.to_vec(),
            WarpsAlong::SlowDimensions => order.iter().rev().copied().collect(),
        };
        self.warp_blocked(shape, order, &dims, bits)
    }

    /// A blocked encoding of warps, spread over the first of `dims` first. Each has whole rows of a block in memory, if it can.
    fn warp_blocked(&self, shape: &[u32], order: &[u32], dims: &[u32], bits: u32) -> Encoding {
        let units = self.target.warp_units.expect("a target with instructions of whole warps");
        let mut least = vec![1; shape.len()];
        if let Some(&fast) = order.first() {
            least[fast as usize] = units.load.block(bits, 1)[0];
        }
        encoding_choice::warp_blocked(shape, order, self.num_warps, dims, &least)
    }
}
