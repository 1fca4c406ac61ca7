//! What the passes need to know of a target. A vendor's folder makes it of its own table of facts (`crates/nvidia`,
//! `Target::info`); no pass asks for a target's name or version.

use crate::machine::Machine;
use crate::pass::{Pass, Property, Row};
use tilewright_ir::dialect::tt::{self, InputPrecision};
use tilewright_ir::{FloatKind, Module, Shape, Type, TypeKind};

/// How a dot is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MmaKind {
    /// `mma.sync.aligned.m16n8k*` (PTX ISA, "mma").
    Mma16x8 {
        /// K of one instruction.
        k: u32,
        /// Bits of an operand element in the instruction (32 for tf32).
        operand_bits: u32,
    },
    /// An instruction of a whole warp whose lanes have columns of the result and of the second operand, and share out the first along K.
    Columns {
        /// M, N and K of one instruction.
        shape: [u32; 3],
    },
    /// Fused multiply-adds, each thread on its own block.
    Fma,
}

/// The instructions that a target has for dots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DotUnits {
    /// `mma.sync`.
    pub mma: bool,
    /// `mma.sync` of fp8 (PTX ISA, "mma": .e4m3 and .e5m2, mixed at will, need sm_89).
    pub fp8: bool,
    /// `wgmma`.
    pub wgmma: bool,
    /// Those of whole warps whose lanes have columns.
    pub columns: &'static [WarpDot],
}

/// The most that an instruction of a whole warp moves: a block of a matrix in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockLimit {
    /// Rows of the block.
    pub rows: u32,
    /// Bytes of each row.
    pub row_bytes: u32,
}

impl BlockLimit {
    /// The largest block of elements of so many bits, of a tensor of this rank: a row or some of them in the last dimensions.
    pub fn block(self, bits: u32, rank: usize) -> Shape {
        let mut block = Shape::from_elem(1, rank);
        let limits = [(self.row_bytes * 8 / bits.max(8)).max(1), self.rows];
        block.iter_mut().rev().zip(limits).for_each(|(extent, limit)| *extent = limit);
        block
    }
}

/// What instructions that move blocks want of the matrix in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatrixLimit {
    /// Where it begins, and from one row to the next: multiples of so many bytes.
    pub alignment: u32,
    /// Its rows, and where in a row a block begins: multiples of so many bytes.
    pub word: u32,
    /// The least bytes of a row.
    pub row_bytes: u32,
}

/// A product that one instruction of a whole warp computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WarpDot {
    /// The type of the operands' elements.
    pub operand: Type,
    /// The type of the result's.
    pub result: Type,
    /// The precision for which operands may be rounded; the others take them as they are.
    pub precision: InputPrecision,
    /// M, N and K.
    pub shape: [u32; 3],
}

/// The instructions that a target has for whole warps, which hold blocks of tensors in their registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WarpUnits {
    /// Loads of blocks.
    pub load: BlockLimit,
    /// Stores of blocks.
    pub store: BlockLimit,
    /// Loads into the cache alone.
    pub prefetch: BlockLimit,
    /// The matrix that these are blocks of.
    pub matrix: MatrixLimit,
    /// Addresses that a load or store takes where they are given one by one.
    pub addresses: u32,
    /// Products.
    pub dots: &'static [WarpDot],
}

impl WarpUnits {
    /// The largest part of a tensor of pointers, of this rank, that one load or store takes.
    pub fn gathered(&self, rank: usize) -> Shape {
        BlockLimit { rows: 1, row_bytes: self.addresses }.block(8, rank)
    }

    /// M, N and K of the instruction for a dot; `None` where there is none.
    pub fn dot_shape(&self, module: &Module, dot: tt::Dot) -> Option<[u32; 3]> {
        let element = |v: tilewright_ir::Value| module.element_type(module.value_type(v));
        let (a, b, result) = (element(dot.a(module)), element(dot.b(module)), element(dot.result(module)));
        let precision = dot.input_precision(module);
        let fits = |unit: &&WarpDot| {
            (unit.operand, unit.operand, unit.result) == (a, b, result)
                && (unit.precision == precision || a != Type::F32)
        };
        self.dots.iter().find(fits).map(|unit| unit.shape)
    }
}

/// A target, as the passes see it.
#[derive(Debug, Clone, PartialEq)]
pub struct TargetInfo {
    /// The name under which it stands in `ttg.target`.
    pub name: String,
    /// Threads of a warp.
    pub warp_size: u32,
    /// The most shared memory that a CTA may ask for, in bytes.
    pub max_shared: u32,
    /// The widest access of one thread, in bytes.
    pub max_vector_bytes: u32,
    /// Whether copies from global to shared memory may run beside the threads (`cp.async`).
    pub async_copy: bool,
    /// What computes dots.
    pub dots: DotUnits,
    /// Whether warps store 8×8 matrices to shared memory (`stmatrix`).
    pub stmatrix: bool,
    /// Whether blocks of descriptors are copied by TMA (it takes a launch that passes tensor maps).
    pub tma: bool,
    /// Whether CTAs form clusters that read each other's shared memory.
    pub clusters: bool,
    /// Rates and latencies.
    pub machine: Machine,
    /// Instructions of whole warps, where it has such: layouts say then what warps have, and nothing of lanes.
    pub warp_units: Option<WarpUnits>,
    /// The passes from `tt` to what the target's lowering takes, in the order in which they run.
    pub passes: &'static [Row],
    /// What the lowering relies on: the passes must ensure all of it.
    pub lowered: &'static [Property],
    /// The same target with other passes, for kernels that hold what these don't support.
    pub otherwise: Option<Box<TargetInfo>>,
}

impl TargetInfo {
    /// The pass of a name in the target's lists.
    pub fn pass(&self, name: &str) -> Option<Pass> {
        let own = self.passes.iter().map(|row| row.pass).find(|p| p.name == name);
        own.or_else(|| self.otherwise.as_ref()?.pass(name))
    }

    /// The kind of dot for operands of these element types. `tf32` says that fp32 operands may be rounded to tf32.
    pub fn mma_kind(&self, module: &Module, a: Type, b: Type, acc: Type, tf32: bool) -> MmaKind {
        if !self.dots.mma {
            let fits = |unit: &&WarpDot| {
                (unit.operand, unit.operand, unit.result) == (a, b, acc) && (a != Type::F32 || tf32)
            };
            let unit = self.dots.columns.iter().find(fits);
            return unit.map_or(MmaKind::Fma, |unit| MmaKind::Columns { shape: unit.shape });
        }
        let acc = module.type_kind(acc);
        let f32_acc = *acc == TypeKind::Float(FloatKind::F32);
        let bits = module.bits(a);
        let kind = |k| MmaKind::Mma16x8 { k, operand_bits: bits };
        match (module.type_kind(a), module.type_kind(b)) {
            (TypeKind::Float(x), TypeKind::Float(y)) if is_mma_fp8(*x) && is_mma_fp8(*y) => {
                if f32_acc && self.dots.fp8 { kind(32) } else { MmaKind::Fma }
            }
            (x, y) if x != y => MmaKind::Fma,
            (TypeKind::Float(FloatKind::F16), _) if f32_acc || *acc == TypeKind::Float(FloatKind::F16) => {
                kind(16)
            }
            (TypeKind::Float(FloatKind::BF16), _) if f32_acc => kind(16),
            (TypeKind::Float(FloatKind::F32), _) if f32_acc && tf32 => kind(8),
            (TypeKind::Int(8), _) if *acc == TypeKind::Int(32) => kind(32),
            _ => MmaKind::Fma,
        }
    }
}

/// Whether a dot uses tensor cores, and how wide an operand is in the instruction.
pub fn dot_kind(module: &Module, target: &TargetInfo, dot: tt::Dot) -> MmaKind {
    let operands = [dot.a(module), dot.b(module)].map(|v| module.element_type(module.value_type(v)));
    let tf32 = dot.input_precision(module) == tt::InputPrecision::Tf32;
    dot_kind_of(module, target, dot, operands, tf32)
}

/// The same of a dot of these shapes whose operands have elements of other types.
pub(crate) fn dot_kind_of(
    module: &Module,
    target: &TargetInfo,
    dot: tt::Dot,
    [a, b]: [Type; 2],
    tf32: bool,
) -> MmaKind {
    let result = module.value_type(dot.result(module));
    let shape = module.shape(result).unwrap_or(&[]);
    let (m, n) = (shape[shape.len() - 2], shape[shape.len() - 1]);
    let k = module.shape(module.value_type(dot.a(module))).and_then(|s| s.last().copied());
    let kind = target.mma_kind(module, a, b, module.element_type(result), tf32);
    if let MmaKind::Columns { shape: unit } = kind {
        // Each lane has a column, and elements of the first operand beside those of the others.
        let [lanes, step] = [unit[1], unit[1].max(unit[2])];
        let whole = shape.len() == 2 && n >= lanes && k.is_some_and(|k| k % step == 0);
        return if whole { kind } else { MmaKind::Fma };
    }
    // A result narrower than one instruction would hold the same element twice, and so would operands of one column and
    // one row, each of whose products would be added to it.
    if m.next_power_of_two() < 16 || n.next_power_of_two() < 8 || k == Some(1) {
        return MmaKind::Fma;
    }
    kind
}

/// The formats that an fp8 dot instruction takes (PTX ISA, "mma": `.e4m3`, `.e5m2`).
pub(crate) fn is_mma_fp8(kind: FloatKind) -> bool {
    matches!(kind, FloatKind::F8E4M3FN | FloatKind::F8E5M2)
}
