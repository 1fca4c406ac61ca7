//! Axis analysis: what is known of an integer or pointer value along each dimension of its tensor.
//!
//! Three facts per dimension, all powers of two and kept as exponents (so that "greatest common divisor" is `min` and a
//! product is a sum):
//!
//! - **contiguity** c: elements come in runs of c, each beginning at a multiple of c, that count up by one;
//! - **divisibility** d: the first element of every such run is a multiple of d (bytes, for pointers);
//! - **constancy** k: elements come in runs of k, each beginning at a multiple of k, that are all equal.
//!
//! A run may be cut off by the end of a tensor whose extent is no power of two. A scalar has one dimension.
//!
//! ```text
//! %r = tt.make_range {start = 0, end = 1024}      contiguity 1024, divisibility 2^62, constancy 1
//! %s = tt.splat %pid_times_64                      contiguity 1,    divisibility 64,   constancy 1024
//! %o = arith.addi %r, %s                           contiguity 1024, divisibility 64
//! %p = tt.addptr %base(divisible by 16), %o : f16  contiguity 1024, divisibility 16  =>  8 elements in one access
//! %m = arith.cmpi slt, %o, %n(divisible by 16)     constancy 16                      =>  with one predicate
//! ```
//!
//! Loops are analysed optimistically: a carried value starts with the facts of its initial value, which are weakened by
//! what the body yields until nothing changes.

use std::cell::RefCell;

use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};
use tilewright_ir::dialect::{arith, llvm, scf, tt, ttg};
use tilewright_ir::marks;
use tilewright_ir::{AttrKind, Block, Module, Op, Opcode, Trait, Type, Value};

use tilewright_layout::{Dim, TileLayout};

use crate::analysis::scope;
use crate::analysis::sign::Signs;
use crate::analysis::tile_layout::{layout_of, shared_layout_of};

/// Exponents stop here; 0 is a multiple of everything.
const MAX: u8 = 62;

/// What is known along one dimension, as exponents of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DimFacts {
    /// Runs of consecutive values.
    pub contiguity: u8,
    /// Divisor of the first value of each run.
    pub divisibility: u8,
    /// Runs of equal values.
    pub constancy: u8,
}

impl DimFacts {
    /// The divisor of every value, not just of the first in each run.
    fn each(self) -> u8 {
        if self.contiguity > 0 { 0 } else { self.divisibility }
    }

    /// The divisor of the values at multiples of 2^c, where one step along the run is 2^unit.
    fn at(self, c: u8, unit: u8) -> u8 {
        if self.contiguity > c { self.divisibility.min(c + unit) } else { self.divisibility }
    }

    fn join(self, o: Self) -> Self {
        let contiguity = self.contiguity.min(o.contiguity);
        DimFacts {
            contiguity,
            divisibility: self.at(contiguity, 0).min(o.at(contiguity, 0)),
            constancy: self.constancy.min(o.constancy),
        }
    }
}

/// What is known of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Per dimension; one entry for a scalar.
    pub dims: SmallVec<[DimFacts; 2]>,
    /// The value, where every element is this constant.
    pub constant: Option<i64>,
}

impl Facts {
    fn unknown(rank: usize) -> Self {
        Facts { dims: smallvec![DimFacts::default(); rank.max(1)], constant: None }
    }

    fn join(&self, o: &Self) -> Self {
        if self.dims.len() != o.dims.len() {
            return Facts::unknown(self.dims.len());
        }
        Facts {
            dims: self.dims.iter().zip(&o.dims).map(|(a, b)| a.join(*b)).collect(),
            constant: self.constant.filter(|c| o.constant == Some(*c)),
        }
    }

    fn is_constant(&self, value: i64) -> bool {
        self.constant == Some(value)
    }
}

fn divisor_of(value: i64) -> u8 {
    if value == 0 { MAX } else { (value.trailing_zeros() as u8).min(MAX) }
}

/// The exponent of the power of two that covers an extent.
fn covering(extent: u32) -> u8 {
    extent.next_power_of_two().trailing_zeros() as u8
}

/// The pointer and mask of a memory operation.
pub fn pointer_of(module: &Module, op: Op) -> Option<(Value, Option<Value>)> {
    Some(match module.opcode(op)? {
        Opcode::Tt(tt::Kind::Load) => (tt::Load(op).ptr(module), tt::Load(op).mask(module)),
        Opcode::Tt(tt::Kind::Store) => (tt::Store(op).ptr(module), tt::Store(op).mask(module)),
        Opcode::Tt(tt::Kind::AtomicRmw) => (tt::AtomicRmw(op).ptr(module), tt::AtomicRmw(op).mask(module)),
        Opcode::Tt(tt::Kind::AtomicCas) => (tt::AtomicCas(op).ptr(module), None),
        Opcode::Tt(tt::Kind::WaitSignal) => (tt::WaitSignal(op).ptr(module), None),
        _ => return None,
    })
}

/// The facts about all values of a module.
#[derive(Debug, Default)]
pub struct AxisAnalysis {
    facts: FxHashMap<Value, Facts>,
    /// The divisors that `tl.assume` promises, as exponents.
    assumed: FxHashMap<Value, u8>,
    /// What was asked of the signs of numbers that are divided.
    signs: RefCell<Signs>,
}

impl AxisAnalysis {
    /// Analyses every function of a module.
    pub fn run(module: &Module) -> Self {
        let mut analysis = AxisAnalysis::default();
        for func in module.block_ops(module.body()) {
            if tt::Func::cast(module, func).is_some() {
                analysis.function(module, func);
            }
        }
        analysis
    }

    /// What is known of a value; nothing, for a value made after the analysis.
    pub fn get(&self, module: &Module, value: Value) -> Facts {
        self.facts.get(&value).cloned().unwrap_or_else(|| Facts::unknown(rank(module, value)))
    }

    /// How many elements along `axis` one access through `ptr` may take at once, by address and mask alone.
    pub fn vector_width(
        &self,
        module: &Module,
        ptr: Value,
        mask: Option<Value>,
        axis: usize,
        max_bytes: u32,
    ) -> u32 {
        let Some(element) = module.pointee_type(module.value_type(ptr)) else { return 1 };
        let bytes = module.bits(element).div_ceil(8).max(1);
        let unit = bytes.trailing_zeros() as u8;
        let p = self.get(module, ptr).dims[axis];
        let mut v = p.contiguity.min(p.divisibility.saturating_sub(unit));
        if let Some(mask) = mask {
            v = v.min(self.get(module, mask).dims[axis].constancy);
        }
        (1u32 << v.min(30)).min((max_bytes / bytes).max(1))
    }

    /// Of a value that was made meanwhile as much is known as of `like`.
    pub(crate) fn know_as(&mut self, value: Value, like: Value) {
        if let Some(facts) = self.facts.get(&like) {
            self.facts.insert(value, facts.clone());
        }
    }

    /// Writes on each access to memory that has no such note how many elements it may take at once, along the fastest axis of its
    /// encoding.
    pub fn note_widths(&self, module: &mut Module, max_bytes: u32) {
        for op in module.all_ops(module.root()) {
            let Some((ptr, mask)) = pointer_of(module, op) else { continue };
            let Some(layout) = layout_of(module, ptr).filter(|_| module.int_attr(op, marks::VEC).is_none())
            else {
                continue;
            };
            self.note_width(module, op, (ptr, mask), Some(&layout), max_bytes);
        }
    }

    /// Writes on an access how many elements it may take at once, along the fastest axis of its layout.
    pub fn note_width(
        &self,
        module: &mut Module,
        op: Op,
        (ptr, mask): (Value, Option<Value>),
        layout: Option<&TileLayout>,
        max_bytes: u32,
    ) {
        let axis = layout.and_then(|l| l.order().first().copied()).map_or(0, usize::from);
        let elements = self.vector_width(module, ptr, mask, axis, max_bytes);
        module.set_i32_attr(op, marks::VEC, elements as i32);
        module.set_i32_attr(op, marks::VEC_AXIS, axis as i32);
    }

    fn apply_assumed(&self, value: Value, facts: &mut Facts) {
        if let (Some(&divisor), [dim]) = (self.assumed.get(&value), &mut facts.dims[..]) {
            dim.divisibility = dim.divisibility.max(divisor);
        }
    }

    fn function(&mut self, module: &Module, func: Op) {
        self.assumed.extend(module.all_ops(func).into_iter().filter_map(|op| assumed_divisor(module, op)));
        let arg_attrs = module.op_attr(func, "arg_attrs").and_then(|a| match module.attr_kind(a) {
            AttrKind::Array(v) => Some(v.clone()),
            _ => None,
        });
        for &region in module.regions(func) {
            for (n, &block) in module.region_blocks(region).iter().enumerate() {
                for (i, &arg) in module.block_args(block).iter().enumerate() {
                    let mut facts = Facts::unknown(rank(module, arg));
                    let attrs = arg_attrs.as_ref().and_then(|v| v.get(i)).filter(|_| n == 0);
                    if let Some(AttrKind::Dict(dict)) = attrs.map(|&a| module.attr_kind(a)) {
                        for (name, attr) in dict {
                            apply_hint(module, &mut facts, name, *attr);
                        }
                    }
                    self.apply_assumed(arg, &mut facts);
                    self.facts.insert(arg, facts);
                }
                self.block(module, block);
            }
        }
    }

    fn block(&mut self, module: &Module, block: Block) {
        for op in module.block_ops(block) {
            match module.opcode(op) {
                Some(Opcode::Scf(scf::Kind::For)) => self.for_loop(module, op),
                Some(Opcode::Scf(scf::Kind::While)) => self.while_loop(module, op),
                Some(Opcode::Scf(scf::Kind::If)) => self.if_op(module, op),
                Some(Opcode::Ttg(ttg::Kind::WarpSpecialize)) => {
                    self.partitions(module, ttg::WarpSpecialize(op));
                }
                _ => self.op(module, op),
            }
        }
    }

    fn terminator_facts(&self, module: &Module, block: Block, skip: usize) -> Vec<Facts> {
        let Some(end) = module.last_op(block) else { return Vec::new() };
        module.operands(end)[skip..].iter().map(|&v| self.get(module, v)).collect()
    }

    fn for_loop(&mut self, module: &Module, op: Op) {
        let l = scf::For(op);
        let body = module.region_block(l.body(module));
        let args = module.block_args(body).to_vec();
        let lower = self.get(module, l.lower_bound(module)).dims[0].each();
        let step = self.get(module, l.step(module)).dims[0].each();
        let mut iv = Facts::unknown(0);
        iv.dims[0].divisibility = lower.min(step);
        self.facts.insert(args[0], iv);
        let mut carried: Vec<Facts> = l.init(module).iter().map(|&v| self.get(module, v)).collect();
        self.fixpoint(module, body, &args[1..], &mut carried, |s, m| {
            s.block(m, body);
            s.terminator_facts(m, body, 0)
        });
        for (&r, f) in module.results(op).iter().zip(carried) {
            self.facts.insert(r, f);
        }
    }

    fn while_loop(&mut self, module: &Module, op: Op) {
        let l = scf::While(op);
        let before = module.region_block(l.before(module));
        let after = module.region_block(l.after(module));
        let args = module.block_args(before).to_vec();
        let after_args = module.block_args(after).to_vec();
        let mut carried: Vec<Facts> = l.init(module).iter().map(|&v| self.get(module, v)).collect();
        self.fixpoint(module, before, &args, &mut carried, |s, m| {
            s.block(m, before);
            let passed = s.terminator_facts(m, before, 1);
            for (&a, f) in after_args.iter().zip(passed) {
                s.facts.insert(a, f);
            }
            s.block(m, after);
            s.terminator_facts(m, after, 0)
        });
        let passed = self.terminator_facts(module, before, 1);
        for (&r, f) in module.results(op).iter().zip(passed) {
            self.facts.insert(r, f);
        }
    }

    /// Weakens `carried` until a walk of the loop confirms it. Facts only fall, but a chain of exponents could fall long:
    /// after a few rounds whatever still moves is given up.
    fn fixpoint(
        &mut self,
        module: &Module,
        _body: Block,
        args: &[Value],
        carried: &mut [Facts],
        mut walk: impl FnMut(&mut Self, &Module) -> Vec<Facts>,
    ) {
        for round in 0.. {
            for (&a, f) in args.iter().zip(&*carried) {
                self.facts.insert(a, f.clone());
            }
            let yielded = walk(self, module);
            let mut changed = false;
            for (c, y) in carried.iter_mut().zip(yielded) {
                let joined = c.join(&y);
                if joined != *c {
                    changed = true;
                    *c = if round < 6 { joined } else { Facts::unknown(c.dims.len()) };
                }
            }
            if !changed {
                break;
            }
        }
    }

    /// A partition knows of what it captures what is known outside.
    fn partitions(&mut self, module: &Module, w: ttg::WarpSpecialize) {
        let captured: Vec<Facts> = w.captures(module).iter().map(|&v| self.get(module, v)).collect();
        for &region in w.partitions(module) {
            let block = module.region_block(region);
            for (&arg, facts) in module.block_args(block).iter().zip(&captured) {
                self.facts.insert(arg, facts.clone());
            }
            self.block(module, block);
        }
        let default = module.region_block(w.default_region(module));
        self.block(module, default);
        let given = self.terminator_facts(module, default, 0);
        for (&result, facts) in w.results(module).iter().zip(given) {
            self.facts.insert(result, facts);
        }
    }

    fn if_op(&mut self, module: &Module, op: Op) {
        let mut joined: Option<Vec<Facts>> = None;
        for &region in module.regions(op) {
            let Some(&block) = module.region_blocks(region).first() else { continue };
            self.block(module, block);
            let facts = self.terminator_facts(module, block, 0);
            joined = Some(match joined {
                None => facts,
                Some(old) => old.iter().zip(&facts).map(|(a, b)| a.join(b)).collect(),
            });
        }
        for (&r, f) in module.results(op).iter().zip(joined.unwrap_or_default()) {
            self.facts.insert(r, f);
        }
    }

    fn op(&mut self, module: &Module, op: Op) {
        for &region in module.regions(op) {
            for &block in module.region_blocks(region) {
                self.block(module, block);
            }
        }
        let &[result] = module.results(op) else { return };
        let ty = module.value_type(result);
        if !module.is_int(ty) && !module.is_ptr(ty) {
            return;
        }
        let mut facts = self.transfer(module, op, ty).unwrap_or_else(|| Facts::unknown(rank(module, result)));
        for (name, attr) in module.op_attrs(op) {
            apply_hint(module, &mut facts, name, *attr);
        }
        self.apply_assumed(result, &mut facts);
        self.facts.insert(result, facts);
    }

    fn transfer(&self, module: &Module, op: Op, ty: Type) -> Option<Facts> {
        use arith::Kind as A;
        use tt::Kind as T;
        let shape: SmallVec<[u32; 4]> = module.shape(ty).unwrap_or(&[]).into();
        let operand = |i: usize| self.get(module, module.operands(op)[i]);
        Some(match module.opcode(op)? {
            Opcode::Arith(A::Constant) => match module.constant_int(module.results(op)[0]) {
                Some(v) => constant(v, &shape),
                None => return None,
            },
            Opcode::Tt(T::MakeRange) => {
                let r = tt::MakeRange(op);
                let dim = DimFacts {
                    contiguity: covering(shape[0]),
                    divisibility: divisor_of(i64::from(r.start(module))),
                    constancy: 0,
                };
                // Runs are counted in positions of the tensor: a range from 8 on is one run whose first value divides by 8.
                Facts { dims: smallvec![dim], constant: None }
            }
            Opcode::Tt(T::Splat) => {
                let s = operand(0);
                if let Some(c) = s.constant {
                    return Some(constant(c, &shape));
                }
                let divisibility = s.dims[0].each();
                Facts {
                    dims: shape
                        .iter()
                        .map(|&n| DimFacts { contiguity: 0, divisibility, constancy: covering(n) })
                        .collect(),
                    constant: None,
                }
            }
            Opcode::Tt(T::ExpandDims) => {
                let mut f = operand(0);
                let axis = tt::ExpandDims(op).axis(module) as usize;
                let divisibility = f.dims.iter().map(|d| d.each()).min().unwrap_or(0);
                f.dims.insert(axis, DimFacts { contiguity: 0, divisibility, constancy: 0 });
                f
            }
            Opcode::Tt(T::Broadcast) => {
                let mut f = operand(0);
                let from = module.shape(module.value_type(module.operands(op)[0]))?;
                for (d, (&a, &b)) in f.dims.iter_mut().zip(from.iter().zip(&shape)) {
                    if a != b {
                        *d = DimFacts { contiguity: 0, divisibility: d.divisibility, constancy: covering(b) };
                    }
                }
                f
            }
            Opcode::Tt(T::Trans) => {
                let f = operand(0);
                let order = tt::Trans(op).order(module);
                Facts { dims: order.iter().map(|&d| f.dims[d as usize]).collect(), constant: f.constant }
            }
            Opcode::Tt(T::Addptr) => {
                let bytes = module.bits(module.pointee_type(ty)?).div_ceil(8).max(1);
                add_pointer(&operand(0), &operand(1), bytes.trailing_zeros() as u8)
            }
            Opcode::Ttg(ttg::Kind::LocalPtr) => {
                let indices: Vec<Facts> = (1..module.operands(op).len()).map(operand).collect();
                local_pointers(module, ttg::LocalPtr(op), &indices)?
            }
            // Whoever holds the elements; each CTA's shared memory begins at a multiple of whatever its parts are aligned to.
            Opcode::Ttg(ttg::Kind::RemotePtr | ttg::Kind::SetLayout | ttg::Kind::ConvertLayout) => operand(0),
            Opcode::Tt(T::IntToPtr | T::PtrToInt | T::Bitcast) if module.bits(ty) == 64 => {
                // Bytes on one side, elements on the other: runs of one are all that is common.
                let f = operand(0);
                let dims = f
                    .dims
                    .iter()
                    .map(|d| DimFacts { contiguity: 0, divisibility: d.each(), constancy: d.constancy })
                    .collect();
                Facts { dims, constant: f.constant }
            }
            Opcode::Arith(A::Extsi | A::Extui | A::Trunci | A::IndexCast) if module.bits(ty) > 1 => {
                let from = module.value_type(module.operands(op)[0]);
                if module.bits(from) == 1 { return None } else { operand(0) }
            }
            Opcode::Arith(A::Select) => select(&operand(0), &operand(1), &operand(2), !shape.is_empty()),
            Opcode::Arith(kind) if module.operands(op).len() == 2 => {
                let (l, r) = (operand(0), operand(1));
                let mut f = binary(module, &self.signs, op, kind, (&l, &r))?;
                if let (Some(a), Some(b)) = (l.constant, r.constant) {
                    f.constant = fold(module, op, kind, a, b, module.bits(ty));
                    if let Some(c) = f.constant {
                        return Some(constant(c, &shape));
                    }
                }
                f
            }
            _ if module.has_trait(op, Trait::Elementwise) && module.has_trait(op, Trait::Pure) => {
                // Whatever it computes, equal inputs give equal outputs.
                let mut f = Facts::unknown(shape.len());
                for (i, d) in f.dims.iter_mut().enumerate() {
                    d.constancy = (0..module.operands(op).len())
                        .map(|n| operand(n).dims.get(i).map_or(0, |d| d.constancy))
                        .min()
                        .unwrap_or(0);
                }
                f
            }
            _ => return None,
        })
    }
}

/// A pointer moved by `o` elements of 2^`unit` bytes.
fn add_pointer(p: &Facts, o: &Facts, unit: u8) -> Facts {
    zip_dims(p, o, |p, o| {
        let contiguity = p.contiguity.min(o.constancy).max(p.constancy.min(o.contiguity));
        DimFacts {
            contiguity,
            divisibility: p.at(contiguity, unit).min((o.at(contiguity, 0) + unit).min(MAX)),
            constancy: p.constancy.min(o.constancy),
        }
    })
}

/// Pointers to elements of a buffer at these indices: as far as the buffer's layout is linear in them.
fn local_pointers(module: &Module, op: ttg::LocalPtr, indices: &[Facts]) -> Option<Facts> {
    let buffer = op.src(module);
    let ty = module.value_type(buffer);
    let layout = shared_layout_of(module, ty)?;
    let bases = |d: usize| (0..layout.unit()[d].ilog2()).map(move |bit| (d, bit));
    let basis = |(d, bit): (usize, u32)| layout.linear().apply_one(Dim::Axis(d as u8), 1 << bit);
    // Along the fastest dimension offsets count up by one for as many coordinates as this is the exponent of.
    let fast = (0..indices.len()).find(|&d| bases(d).next().is_some_and(|b| basis(b) == 1))?;
    let identity = bases(fast).take_while(|&(d, bit)| basis((d, bit)) == 1 << bit).count() as u8;
    // The divisor of what a coordinate that is a multiple of 2^k adds to the offset.
    let added = |d: usize, k: u8| -> u8 {
        let linear = bases(d).filter(|b| b.1 >= u32::from(k)).map(|b| divisor_of(i64::from(basis(b))));
        let step = layout.steps()[d].ilog2() as u8;
        let affine = divisor_of(i64::from(layout.strides()[d])) + k.saturating_sub(step);
        let reaches = layout.shape()[d] > layout.steps()[d];
        linear.chain(reaches.then_some(affine)).min().unwrap_or(MAX)
    };
    let unit = (module.bits(ty).max(8) / 8).trailing_zeros() as u8;
    let padding =
        layout.padding().map_or(MAX, |p| divisor_of(i64::from(p.interval)).min(divisor_of(i64::from(p.pad))));
    let base = buffer_divisibility(module, buffer, unit);
    let rank = indices[0].dims.len();
    let dims = (0..rank).map(|a| {
        let of = |d: usize| indices[d].dims[a];
        let others = (0..indices.len()).filter(|&d| d != fast);
        let run = others.clone().map(|d| of(d).constancy).fold(of(fast).contiguity.min(identity), u8::min);
        let beside = others.map(|d| added(d, of(d).each())).min().unwrap_or(MAX);
        let first = added(fast, of(fast).at(run, 0)).min(beside).min(padding);
        let contiguity = run.min(first);
        let first = added(fast, of(fast).at(contiguity, 0)).min(beside).min(padding);
        DimFacts {
            contiguity,
            divisibility: base.min(first.saturating_add(unit)),
            constancy: indices.iter().map(|i| i.dims[a].constancy).min().unwrap_or(0),
        }
    });
    Some(Facts { dims: dims.collect(), constant: None })
}

/// The divisor of the address at which a buffer, or a view of one, begins, as an exponent; elements have 2^`unit` bytes.
fn buffer_divisibility(module: &Module, buffer: Value, unit: u8) -> u8 {
    let buffer = scope::captured(module, buffer);
    let Some(op) = module.defining_op(buffer) else { return unit };
    match module.opcode(op) {
        // Where shared memory is allocated, each buffer begins at a multiple of 16 bytes.
        Some(Opcode::Ttg(ttg::Kind::LocalAlloc)) => 4,
        Some(Opcode::Ttg(ttg::Kind::MemdescIndex)) => {
            let slot = shared_layout_of(module, module.value_type(buffer));
            let bytes = slot.map_or(0, |slot| divisor_of(i64::from(slot.allocation_elems())) + unit);
            buffer_divisibility(module, module.operands(op)[0], unit).min(bytes)
        }
        Some(Opcode::Ttg(ttg::Kind::MemdescReshape)) => {
            buffer_divisibility(module, module.operands(op)[0], unit)
        }
        _ => unit,
    }
}

/// One of `t` and `e`, by a condition for the whole tensor or, of a block, one per element.
fn select(c: &Facts, t: &Facts, e: &Facts, block: bool) -> Facts {
    let mut f = t.join(e);
    for (i, d) in f.dims.iter_mut().enumerate() {
        // One condition for the whole tensor, or one per element.
        let run = if c.dims.len() == t.dims.len() && block { c.dims[i].constancy } else { MAX };
        let (tc, ec) = (t.dims[i], e.dims[i]);
        let contiguity = d.contiguity.min(run);
        *d = DimFacts {
            contiguity,
            divisibility: tc.at(contiguity, 0).min(ec.at(contiguity, 0)),
            constancy: d.constancy.min(run),
        };
    }
    f
}

/// How many dimensions a value has; none if it is no tensor.
pub(crate) fn rank(module: &Module, value: Value) -> usize {
    module.shape(module.value_type(value)).map_or(0, <[u32]>::len)
}

fn constant(value: i64, shape: &[u32]) -> Facts {
    let divisibility = divisor_of(value);
    let dims = if shape.is_empty() {
        smallvec![DimFacts { contiguity: 0, divisibility, constancy: 0 }]
    } else {
        shape.iter().map(|&n| DimFacts { contiguity: 0, divisibility, constancy: covering(n) }).collect()
    };
    Facts { dims, constant: Some(value) }
}

fn zip_dims(l: &Facts, r: &Facts, f: impl Fn(DimFacts, DimFacts) -> DimFacts) -> Facts {
    let dims = l.dims.iter().zip(&r.dims).map(|(&a, &b)| f(a, b)).collect();
    Facts { dims, constant: None }
}

/// What follows from the facts about two operands. A division to zero treats a run as one to below does where nothing that is divided is below 0:
/// there the first of a run that begins at a multiple of the divisor has a quotient of its own.
fn binary(
    module: &Module,
    signs: &RefCell<Signs>,
    op: Op,
    kind: arith::Kind,
    (l, r): (&Facts, &Facts),
) -> Option<Facts> {
    let divides_runs = || {
        let runs = l.dims.iter().any(|dim| dim.contiguity > 0);
        !runs || !signs.borrow_mut().may_be_negative(module, module.operands(op)[0])
    };
    use arith::CmpIPredicate as P;
    use arith::Kind as A;
    let both = |a: DimFacts, b: DimFacts| a.constancy.min(b.constancy);
    Some(match kind {
        A::Addi => zip_dims(l, r, |a, b| {
            let contiguity = a.contiguity.min(b.constancy).max(a.constancy.min(b.contiguity));
            let divisibility = a.at(contiguity, 0).min(b.at(contiguity, 0));
            DimFacts { contiguity, divisibility, constancy: both(a, b) }
        }),
        A::Subi => zip_dims(l, r, |a, b| {
            let contiguity = a.contiguity.min(b.constancy);
            // A run on the right counts down: no run, and only its first element is known to divide.
            let right = if b.contiguity > 0 { 0 } else { b.divisibility };
            DimFacts { contiguity, divisibility: a.at(contiguity, 0).min(right), constancy: both(a, b) }
        }),
        A::Muli if r.is_constant(1) => l.clone(),
        A::Muli if l.is_constant(1) => r.clone(),
        A::Muli => zip_dims(l, r, |a, b| DimFacts {
            contiguity: 0,
            divisibility: (a.each() + b.each()).min(MAX),
            constancy: both(a, b),
        }),
        A::Shli => {
            let by = r.constant.filter(|c| (0..63).contains(c));
            if by == Some(0) {
                return Some(l.clone());
            }
            zip_dims(l, r, |a, b| DimFacts {
                contiguity: 0,
                divisibility: (a.each() + by.unwrap_or(0) as u8).min(MAX),
                constancy: both(a, b),
            })
        }
        A::Divsi | A::Divui | A::Floordivsi if r.is_constant(1) => l.clone(),
        A::Shrsi | A::Shrui if r.is_constant(0) => l.clone(),
        A::Divsi | A::Divui | A::Floordivsi | A::Shrsi | A::Shrui => {
            let shift = matches!(kind, A::Shrsi | A::Shrui);
            let exact = match r.constant {
                Some(c) if shift && (0..63).contains(&c) => Some(c as u8),
                Some(c) if !shift && c > 0 && c & (c - 1) == 0 => Some(divisor_of(c)),
                _ => None,
            };
            let whole = kind != A::Divsi || divides_runs();
            zip_dims(l, r, |a, b| {
                // A run that begins at a multiple of 2^k and does not leave a block of the divisor gives one value.
                let divisor = if shift { exact.unwrap_or(0) } else { b.each() };
                let within = a.contiguity.min(a.divisibility).min(divisor).min(b.constancy);
                let within = if whole { within } else { 0 };
                DimFacts {
                    contiguity: 0,
                    divisibility: exact.map_or(0, |e| a.each().saturating_sub(e)),
                    constancy: both(a, b).max(within),
                }
            })
        }
        A::Remsi | A::Remui => {
            let whole = kind == A::Remui || divides_runs();
            zip_dims(l, r, |a, b| {
                let contiguity = a.contiguity.min(a.divisibility).min(b.each()).min(b.constancy);
                let contiguity = if whole { contiguity } else { 0 };
                let divisibility = a.at(contiguity, 0).min(b.each());
                DimFacts { contiguity, divisibility, constancy: both(a, b) }
            })
        }
        A::Cmpi => {
            let predicate = arith::Cmpi(op).predicate(module);
            zip_dims(l, r, |a, b| {
                // i..i+c against n, both multiples of c: all of the run lies on one side.
                let side = |run: DimFacts, bound: DimFacts| {
                    run.contiguity.min(run.divisibility).min(bound.each()).min(bound.constancy)
                };
                let more = match predicate {
                    P::Slt | P::Ult | P::Sge | P::Uge => side(a, b),
                    P::Sgt | P::Ugt | P::Sle | P::Ule => side(b, a),
                    P::Eq | P::Ne => 0,
                };
                DimFacts { contiguity: 0, divisibility: 0, constancy: both(a, b).max(more) }
            })
        }
        A::Minsi | A::Maxsi | A::Minui | A::Maxui => zip_dims(l, r, |a, b| DimFacts {
            contiguity: 0,
            divisibility: a.each().min(b.each()),
            constancy: both(a, b),
        }),
        A::Andi => zip_dims(l, r, |a, b| DimFacts {
            contiguity: 0,
            divisibility: a.each().max(b.each()),
            constancy: both(a, b),
        }),
        A::Ori | A::Xori => zip_dims(l, r, |a, b| DimFacts {
            contiguity: 0,
            divisibility: a.each().min(b.each()),
            constancy: both(a, b),
        }),
        _ => zip_dims(l, r, |a, b| DimFacts { contiguity: 0, divisibility: 0, constancy: both(a, b) }),
    })
}

/// Folds where the result doesn't depend on how the operation wraps; bits is the width of the result.
fn fold(module: &Module, op: Op, kind: arith::Kind, a: i64, b: i64, bits: u32) -> Option<i64> {
    use arith::CmpIPredicate as P;
    use arith::Kind as A;
    let v = match kind {
        A::Addi => a.checked_add(b)?,
        A::Subi => a.checked_sub(b)?,
        A::Muli => a.checked_mul(b)?,
        A::Divsi => a.checked_div(b)?,
        A::Remsi => a.checked_rem(b)?,
        A::Shli if (0..63).contains(&b) => a.checked_mul(1 << b)?,
        A::Andi => a & b,
        A::Ori => a | b,
        A::Minsi => a.min(b),
        A::Maxsi => a.max(b),
        A::Cmpi => {
            let holds = match arith::Cmpi(op).predicate(module) {
                P::Eq => a == b,
                P::Ne => a != b,
                P::Slt => a < b,
                P::Sle => a <= b,
                P::Sgt => a > b,
                P::Sge => a >= b,
                _ => return None,
            };
            -i64::from(holds)
        }
        _ => return None,
    };
    (bits >= 64 || (-(1i64 << (bits.max(1) - 1))..1i64 << (bits.max(1) - 1)).contains(&v)).then_some(v)
}

/// A promise of the author or caller: `tt.divisibility`, `tt.contiguity` or `tt.constancy`, one number or one per
/// dimension.
/// The value and the exponent of its divisor, if that is what an operation promises: `x % 16 == 0`, in the block that makes
/// `x`, which does not run without the promise.
fn assumed_divisor(module: &Module, op: Op) -> Option<(Value, u8)> {
    let condition = llvm::Assume::cast(module, op)?.cond(module);
    let compared = arith::Cmpi::of(module, condition)?;
    let remainder = module.defining_op(compared.lhs(module))?;
    let zero = module.constant_int(compared.rhs(module)) == Some(0);
    let (x, divisor) = match module.opcode(remainder)? {
        Opcode::Arith(arith::Kind::Remsi | arith::Kind::Remui) => {
            (module.operands(remainder)[0], divisor_of(module.constant_int(module.operands(remainder)[1])?))
        }
        // The lowest bits, which canonicalization makes of it.
        Opcode::Arith(arith::Kind::Andi) => {
            let mask = module.constant_int(module.operands(remainder)[1])?;
            (module.operands(remainder)[0], (mask.trailing_ones() as u8).min(MAX))
        }
        _ => return None,
    };
    let equal = compared.predicate(module) == arith::CmpIPredicate::Eq;
    (zero && equal && module.value_block(x) == module.parent_block(op)).then_some((x, divisor))
}

fn apply_hint(module: &Module, facts: &mut Facts, name: &str, attr: tilewright_ir::Attr) {
    let field: fn(&mut DimFacts) -> &mut u8 = match name {
        marks::DIVISIBILITY => |d| &mut d.divisibility,
        marks::CONTIGUITY => |d| &mut d.contiguity,
        marks::CONSTANCY => |d| &mut d.constancy,
        _ => return,
    };
    let int = |a: &tilewright_ir::Attr| match module.attr_kind(*a) {
        AttrKind::Int(v, _) => Some(*v),
        _ => None,
    };
    let values: Vec<i64> = match module.attr_kind(attr) {
        AttrKind::Int(v, _) => vec![*v; facts.dims.len()],
        AttrKind::Splat(a, _) => vec![int(a).unwrap_or(1); facts.dims.len()],
        AttrKind::Dense(v, _) | AttrKind::Array(v) => v.iter().map(|a| int(a).unwrap_or(1)).collect(),
        AttrKind::I32Array(v) => v.iter().map(|&x| i64::from(x)).collect(),
        _ => return,
    };
    for (d, v) in facts.dims.iter_mut().zip(values) {
        if v > 0 {
            let at = field(d);
            *at = (*at).max(divisor_of(v));
        }
    }
}
