//! The syntax tree of a PTX module, one node a statement, with lines and `.loc` kept.
//!
//! An instruction keeps its modifiers and operands as written; `isa` gives them their meaning.

/// A fundamental or packed type (PTX ISA §5.2, §5.4 and the instruction types of §9.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Ty {
    Pred,
    B8,
    B16,
    B32,
    B64,
    B128,
    U8,
    U16,
    U16x2,
    U32,
    U64,
    S8,
    S16,
    S16x2,
    S32,
    S64,
    F16,
    F16x2,
    BF16,
    BF16x2,
    TF32,
    F32,
    F32x2,
    F64,
    E4M3,
    E5M2,
    E4M3x2,
    E5M2x2,
    E2M1x2,
    E2M3x2,
    E3M2x2,
    UE8M0x2,
    /// Sub-byte matrix elements.
    S4,
    U4,
    B1,
}

impl Ty {
    /// Reads a type modifier.
    pub fn parse(s: &str) -> Option<Ty> {
        use Ty::*;
        Some(match s {
            "pred" => Pred,
            "b1" => B1,
            "b8" => B8,
            "b16" => B16,
            "b32" => B32,
            "b64" => B64,
            "b128" => B128,
            "u4" => U4,
            "u8" => U8,
            "u16" => U16,
            "u16x2" => U16x2,
            "u32" => U32,
            "u64" => U64,
            "s4" => S4,
            "s8" => S8,
            "s16" => S16,
            "s16x2" => S16x2,
            "s32" => S32,
            "s64" => S64,
            "f16" => F16,
            "f16x2" => F16x2,
            "bf16" => BF16,
            "bf16x2" => BF16x2,
            "tf32" => TF32,
            "f32" => F32,
            "f32x2" => F32x2,
            "f64" => F64,
            "e4m3" => E4M3,
            "e5m2" => E5M2,
            "e4m3x2" => E4M3x2,
            "e5m2x2" => E5M2x2,
            "e2m1x2" => E2M1x2,
            "e2m3x2" => E2M3x2,
            "e3m2x2" => E3M2x2,
            "ue8m0x2" => UE8M0x2,
            _ => return None,
        })
    }

    /// Width in bits; a predicate and the sub-byte types say their logical width.
    pub fn bits(self) -> u32 {
        use Ty::*;
        match self {
            Pred | B1 => 1,
            S4 | U4 => 4,
            B8 | U8 | S8 | E4M3 | E5M2 | E2M1x2 => 8,
            B16 | U16 | S16 | F16 | BF16 | E4M3x2 | E5M2x2 | E2M3x2 | E3M2x2 | UE8M0x2 => 16,
            B32 | U32 | S32 | F32 | TF32 | F16x2 | BF16x2 | U16x2 | S16x2 => 32,
            B64 | U64 | S64 | F64 | F32x2 => 64,
            B128 => 128,
        }
    }

    /// Width in bytes, at least one.
    pub fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    /// Whether values are signed integers.
    pub fn signed(self) -> bool {
        matches!(self, Ty::S4 | Ty::S8 | Ty::S16 | Ty::S32 | Ty::S64 | Ty::S16x2)
    }

    /// Whether values are floating point.
    pub fn float(self) -> bool {
        use Ty::*;
        matches!(self, F16 | F16x2 | BF16 | BF16x2 | TF32 | F32 | F32x2 | F64 | E4M3 | E5M2 | E4M3x2 | E5M2x2)
            || self.tiny()
    }

    /// Whether values are pairs of floats of 4 or 6 bits, or of exponents alone.
    pub fn tiny(self) -> bool {
        matches!(self, Ty::E2M1x2 | Ty::E2M3x2 | Ty::E3M2x2 | Ty::UE8M0x2)
    }
}

/// A state space (PTX ISA §5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// `.reg`
    Reg,
    /// `.global`
    Global,
    /// `.shared`, that is `.shared::cta`
    Shared,
    /// `.shared::cluster`
    SharedCluster,
    /// `.const`
    Const,
    /// `.local`
    Local,
    /// `.param`
    Param,
    /// No space given.
    Generic,
}

/// A source position from `.loc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Loc {
    /// Index into the module's `.file` table.
    pub file: u32,
    /// One-based line.
    pub line: u32,
    /// One-based column, zero when unknown.
    pub column: u32,
}

/// One entry of a variable's initializer, flattened.
#[derive(Clone, Debug, PartialEq)]
pub enum Init {
    /// An integer or a bit pattern.
    Int(u64),
    /// A floating literal: its value as f64 bits.
    Float(f64),
    /// The address of a symbol plus an offset, in the symbol's space or generic.
    Symbol {
        /// The symbol.
        name: String,
        /// Bytes added.
        offset: i64,
        /// Whether `generic(...)` was written.
        generic: bool,
    },
}

/// A variable declaration (§5.4), or a range of registers.
#[derive(Clone, Debug, PartialEq)]
pub struct Var {
    /// Where it lives.
    pub space: Space,
    /// Alignment in bytes: as written, else the element's size.
    pub align: u32,
    /// Element type.
    pub ty: Ty,
    /// Vector length: 1, 2 or 4.
    pub vec: u32,
    /// Name; for `%r<5>` the stem.
    pub name: String,
    /// `Some(5)` for `%r<5>`.
    pub range: Option<u32>,
    /// Array dimensions; a zero one is unsized.
    pub dims: Vec<u64>,
    /// The initializer, flattened.
    pub init: Vec<Init>,
    /// Declared `.extern`.
    pub external: bool,
    /// Line of the declaration.
    pub line: u32,
}

impl Var {
    /// Size in bytes; zero when unsized.
    pub fn size(&self) -> u64 {
        let element = u64::from(self.ty.bytes() * self.vec);
        self.dims.iter().fold(element, |bytes, &n| bytes.saturating_mul(n))
    }
}

/// An operand as written.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// A register, symbol, label or special register without a component.
    Ident(String),
    /// `%tid.x`, `%v.y`.
    Component(String, char),
    /// An integer, as 64 wrapped bits.
    Int(u64),
    /// A bit pattern `0f…`.
    F32(u32),
    /// A bit pattern `0d…` or a decimal literal.
    F64(u64),
    /// `!p`
    Not(Box<Operand>),
    /// `symbol+8`
    Offset(String, i64),
    /// `[base+off]`, or `[base, {coordinates}]`.
    Mem {
        /// Register, symbol or integer.
        base: Box<Operand>,
        /// Bytes added.
        offset: i64,
        /// Tensor coordinates.
        coords: Vec<Operand>,
    },
    /// `{a, b}`
    Vector(Vec<Operand>),
    /// `a|b`
    Pair(Box<Operand>, Box<Operand>),
    /// `(a, b)` of a call.
    List(Vec<Operand>),
    /// `_`
    Sink,
}

/// One instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct Instr {
    /// Guard predicate and whether it is negated.
    pub guard: Option<(String, bool)>,
    /// Opcode stem: `add` of `add.s32`.
    pub op: String,
    /// Modifiers without their dots.
    pub mods: Vec<String>,
    /// Operands in order.
    pub operands: Vec<Operand>,
    /// Line in the PTX text.
    pub line: u32,
    /// Source position in force.
    pub loc: Option<Loc>,
}

impl Instr {
    /// `add.s32`, as written.
    pub fn name(&self) -> String {
        let mut s = self.op.clone();
        for m in &self.mods {
            s.push('.');
            s.push_str(m);
        }
        s
    }
}

/// A statement of a body.
#[derive(Clone, Debug, PartialEq)]
pub enum Stmt {
    /// A register, local, shared or parameter declaration.
    Var(Var),
    /// `label:`
    Label(String, u32),
    /// An instruction.
    Instr(Instr),
    /// `{ … }`
    Block(Vec<Stmt>),
    /// `label: .branchtargets a, b;`
    BranchTargets(String, Vec<String>),
}

/// An `.entry` or `.func`.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Whether it is a kernel.
    pub entry: bool,
    /// Return parameters.
    pub rets: Vec<Var>,
    /// Parameters.
    pub params: Vec<Var>,
    /// `None` for a declaration.
    pub body: Option<Vec<Stmt>>,
    /// `.reqntid`, when given.
    pub reqntid: Option<[u32; 3]>,
    /// `.maxntid`, when given.
    pub maxntid: Option<[u32; 3]>,
    /// `.maxnreg`, when given.
    pub maxnreg: Option<u32>,
    /// `.minnctapersm`, when given.
    pub minnctapersm: Option<u32>,
    /// `.reqnctapercluster`, when given.
    pub cluster: Option<[u32; 3]>,
    /// Line of the declaration.
    pub line: u32,
}

/// A PTX module.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Module {
    /// `.version`
    pub version: (u32, u32),
    /// First word of `.target`.
    pub target: String,
    /// `.address_size`
    pub address_size: u32,
    /// `.file` table.
    pub files: Vec<(u32, String)>,
    /// Module-scope variables.
    pub vars: Vec<Var>,
    /// Functions in order.
    pub functions: Vec<Function>,
}
