//! The per-thread program: what one GPU thread does, as plain data.
//!
//! Lowering records into it through [`crate::Builder`]; [`crate::emit`] hands it to LLVM. A direct PTX emitter would
//! read the same structures.
//!
//! Invariants, kept by the builder:
//! - a value's definition dominates its uses;
//! - every block ends in exactly one terminator, and a branch passes as many arguments as its target has parameters;
//! - the immediate dominator given to `create_block` dominates the block.

use crate::ty::{Space, Ty};
use smallvec::SmallVec;

/// A value of the function being built. Opaque: compare it, copy it, pass it back to the builder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value(pub(crate) u32);

/// A basic block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Block(pub(crate) u32);

/// A function of the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FuncId(pub(crate) u32);

/// A global variable (shared memory, a string constant).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GlobalId(pub(crate) u32);

impl GlobalId {
    /// Its place in [`Module::globals`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// An interned inline-assembly template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AsmId(pub(crate) u32);

/// A source position; `Loc::NONE` means none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Loc {
    /// Index into [`Module::files`] plus one; 0 means no position.
    pub file: u32,
    /// 1-based line.
    pub line: u32,
    /// 1-based column.
    pub col: u32,
}

impl Loc {
    /// No position.
    pub const NONE: Loc = Loc { file: 0, line: 0, col: 0 };
}

/// Two-operand arithmetic. Integer division by zero and shifts past the width are undefined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the names are LLVM's opcodes
pub enum BinOp {
    Add,
    Sub,
    Mul,
    UDiv,
    SDiv,
    URem,
    SRem,
    And,
    Or,
    Xor,
    Shl,
    LShr,
    AShr,
    FAdd,
    FSub,
    FMul,
    FDiv,
    FRem,
}

/// Integer comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the names are LLVM's predicates
pub enum IntPred {
    Eq,
    Ne,
    Ugt,
    Uge,
    Ult,
    Ule,
    Sgt,
    Sge,
    Slt,
    Sle,
}

/// Floating-point comparison: O… is false when an operand is NaN, U… is true.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the names are LLVM's predicates
pub enum FloatPred {
    Oeq,
    Ogt,
    Oge,
    Olt,
    Ole,
    One,
    Ord,
    Ueq,
    Ugt,
    Uge,
    Ult,
    Ule,
    Une,
    Uno,
}

/// Conversions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the names are LLVM's opcodes
pub enum CastOp {
    Trunc,
    ZExt,
    SExt,
    FpTrunc,
    FpExt,
    SiToFp,
    UiToFp,
    FpToSi,
    FpToUi,
    Bitcast,
    PtrToInt,
    IntToPtr,
    AddrSpaceCast,
}

/// What an instruction may do besides computing its results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Nothing: equal ones are merged, unused ones dropped.
    Pure,
    /// Nothing, but it is one of all lanes together: as [`Pure`](Effect::Pure), and `convergent`, so that it stays where all of them are.
    Together,
    /// Reads memory that may change: unused ones are dropped, equal ones are not merged.
    Read,
    /// Writes, synchronizes or communicates with other threads: kept, in order, and `convergent`.
    Write,
}

impl Effect {
    /// Whether equal ones are merged.
    pub(crate) fn is_pure(self) -> bool {
        matches!(self, Effect::Pure | Effect::Together)
    }
}

/// An operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Op {
    /// Arithmetic. Products and sums of floats may become one operation, where the options allow it.
    Bin(BinOp),
    /// Floating-point arithmetic that is rounded by itself: no operand's operation becomes one with it.
    Rounded(BinOp),
    /// Floating-point negation.
    FNeg,
    /// Integer or pointer comparison.
    ICmp(IntPred),
    /// Floating-point comparison.
    FCmp(FloatPred),
    /// `cond ? a : b`.
    Select,
    /// Conversion to the result type.
    Cast(CastOp),
    /// Pointer plus a byte offset.
    PtrAdd,
    /// Load of the result type.
    Load {
        /// Bytes.
        align: u32,
        /// Not merged, moved or dropped.
        volatile: bool,
    },
    /// Store of operand 1 to operand 0.
    Store {
        /// Bytes.
        align: u32,
        /// Not merged, moved or dropped.
        volatile: bool,
    },
    /// Element of a vector at a constant index.
    Extract(u8),
    /// A vector made of its elements.
    Vector,
    /// Inline PTX.
    Asm(AsmId),
    /// An LLVM intrinsic, named with its overload suffix.
    Intrinsic(AsmId),
    /// Call of a function of this module.
    Call(FuncId),
    /// Stack memory of so many bytes, aligned to 16.
    Alloca(u32),
    /// Address of a global.
    Global(GlobalId),
}

/// How a value comes about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Def {
    /// A scalar constant's bits (a pointer constant is null or an address).
    Const(u64),
    /// Any value.
    Undef,
    /// Function argument.
    Arg(u32),
    /// Block parameter.
    Param(Block, u32),
    /// Result of an instruction.
    Inst(u32, u32),
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct ValueData {
    pub ty: Ty,
    pub def: Def,
    /// Bits known to be zero (integers of one lane; other types say 0).
    pub zeros: u64,
    /// Block of the definition (`Block(0)`, the entry, for constants and arguments).
    pub block: Block,
}

#[derive(Debug, Clone)]
pub(crate) struct Inst {
    pub op: Op,
    pub effect: Effect,
    pub args: SmallVec<[Value; 4]>,
    pub first_result: u32,
    pub num_results: u32,
    pub loc: Loc,
}

/// How a block ends.
#[derive(Debug, Clone)]
pub(crate) enum Terminator {
    Br(Block, Vec<Value>),
    CondBr { cond: Value, then: Block, then_args: Vec<Value>, els: Block, els_args: Vec<Value> },
    Ret(Vec<Value>),
    Unreachable,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct BlockData {
    pub params: Vec<Value>,
    pub insts: Vec<u32>,
    pub term: Option<Terminator>,
    /// Immediate dominator (or any dominator); the entry's is itself.
    pub idom: u32,
    pub depth: u32,
    /// Where loop-invariant integer arithmetic of this block may be placed instead.
    pub preheader: Option<Block>,
}

/// A template and its constraints; for an intrinsic, its name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct AsmData {
    pub text: String,
    pub constraints: String,
}

/// Launch bounds of a kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KernelAttrs {
    /// Exact number of threads in a CTA (`.reqntid`); 0 = unsaid.
    pub threads: u32,
    /// `.maxnreg`; 0 = unsaid.
    pub max_registers: u32,
    /// `.minnctapersm`; 0 = unsaid.
    pub min_ctas_per_sm: u32,
    /// CTAs of a cluster along each axis (`.reqnctapercluster`); without a product above 1 there are none.
    pub cluster: [u32; 3],
    /// Parameters that are the address of a structure which the launch passes by value and nobody writes
    /// (`__grid_constant__`): their index, size and alignment in bytes. Their type is a generic pointer.
    pub by_value: Vec<ByValue>,
}

/// A structure passed to a kernel by value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByValue {
    /// Index of the parameter.
    pub param: u32,
    /// Bytes.
    pub size: u32,
    /// Alignment in bytes.
    pub align: u32,
}

/// A function.
#[derive(Debug, Clone)]
pub struct Function {
    /// Symbol.
    pub name: String,
    /// Parameter types.
    pub params: Vec<Ty>,
    /// Result types.
    pub results: Vec<Ty>,
    /// `Some` for a kernel entry.
    pub kernel: Option<KernelAttrs>,
    /// It stays a function, whose threads may wait for each other: its calls are neither inlined nor made to depend on more conditions.
    pub noinline: bool,
    /// Position of the definition.
    pub loc: Loc,
    pub(crate) values: Vec<ValueData>,
    pub(crate) insts: Vec<Inst>,
    pub(crate) blocks: Vec<BlockData>,
}

/// A global variable.
#[derive(Debug, Clone)]
pub struct Global {
    /// Symbol.
    pub name: String,
    /// Where it lives.
    pub space: Space,
    /// Bytes of alignment.
    pub align: u32,
    /// Contents, or `None` for memory whose size the launch gives (`.extern .shared`).
    pub init: Option<Vec<u8>>,
}

/// A compilation unit.
#[derive(Debug, Clone, Default)]
pub struct Module {
    /// Name, for dumps.
    pub name: String,
    /// Source files that positions refer to, as (folder, file).
    pub files: Vec<(String, String)>,
    /// Functions, in order.
    pub functions: Vec<Function>,
    /// Globals, in order.
    pub globals: Vec<Global>,
    /// Text of the target's assembly that stands before the functions, once each.
    pub assembly: Vec<String>,
    pub(crate) asms: Vec<AsmData>,
    pub(crate) signatures: Vec<(String, Vec<Ty>, Vec<Ty>)>,
}

impl Module {
    /// An empty module.
    pub fn new(name: &str) -> Module {
        Module { name: name.to_string(), ..Module::default() }
    }

    /// Adds (or finds) a source file; the result goes into [`Loc::file`].
    pub fn file(&mut self, dir: &str, file: &str) -> u32 {
        let found = self.files.iter().position(|(d, f)| d == dir && f == file);
        let index = found.unwrap_or_else(|| {
            self.files.push((dir.to_string(), file.to_string()));
            self.files.len() - 1
        });
        index as u32 + 1
    }

    /// Declares a function so that calls can name it before it is built.
    pub fn declare(&mut self, name: &str, params: &[Ty], results: &[Ty]) -> FuncId {
        if let Some(i) = self.signatures.iter().position(|(n, _, _)| n == name) {
            return FuncId(i as u32);
        }
        self.signatures.push((name.to_string(), params.to_vec(), results.to_vec()));
        FuncId(self.signatures.len() as u32 - 1)
    }

    /// The inline-assembly templates used, and the names of intrinsics.
    pub fn inline_assembly(&self) -> impl Iterator<Item = &str> {
        self.asms.iter().map(|a| a.text.as_str())
    }

    /// The names of functions that were declared or called.
    pub fn declared(&self) -> impl Iterator<Item = &str> {
        self.signatures.iter().map(|(name, _, _)| name.as_str())
    }

    /// Whether a function of this name was declared or called.
    pub fn declares(&self, name: &str) -> bool {
        self.signatures.iter().any(|(n, _, _)| n == name)
    }

    /// Adds a global variable.
    pub fn global(&mut self, global: Global) -> GlobalId {
        if let Some(i) = self.globals.iter().position(|g| g.name == global.name) {
            return GlobalId(i as u32);
        }
        self.globals.push(global);
        GlobalId(self.globals.len() as u32 - 1)
    }

    /// Adds (or finds) a nul-terminated string constant.
    pub fn string(&mut self, text: &str) -> GlobalId {
        let mut bytes = text.as_bytes().to_vec();
        bytes.push(0);
        if let Some(i) = self.globals.iter().position(|g| g.init.as_deref() == Some(&bytes)) {
            return GlobalId(i as u32);
        }
        let name = format!("str_{}", self.globals.len());
        self.global(Global { name, space: Space::Global, align: 1, init: Some(bytes) })
    }

    pub(crate) fn asm_id(&mut self, text: &str, constraints: &str) -> AsmId {
        // Templates are few (one per memory-access shape); a linear search beats hashing long strings for them, and
        // the builder remembers the last hits.
        if let Some(i) = self.asms.iter().position(|a| a.text == text && a.constraints == constraints) {
            return AsmId(i as u32);
        }
        self.asms.push(AsmData { text: text.to_string(), constraints: constraints.to_string() });
        AsmId(self.asms.len() as u32 - 1)
    }
}

impl Function {
    /// The type of a value.
    pub fn ty(&self, v: Value) -> Ty {
        self.values[v.0 as usize].ty
    }

    /// The bits of a scalar constant.
    pub fn as_const(&self, v: Value) -> Option<u64> {
        match self.values[v.0 as usize].def {
            Def::Const(c) => Some(c),
            _ => None,
        }
    }

    /// Whether block `a` dominates block `b`, going by the immediate dominators given at creation.
    pub(crate) fn dominates(&self, a: Block, b: Block) -> bool {
        let depth = self.blocks[a.0 as usize].depth;
        let mut at = b.0;
        while self.blocks[at as usize].depth > depth {
            at = self.blocks[at as usize].idom;
        }
        at == a.0
    }

    /// Values that something with an effect, or a branch, depends on.
    pub(crate) fn live(&self) -> Vec<bool> {
        let mut live = vec![false; self.values.len()];
        let mut incoming: Vec<Vec<(usize, bool)>> = vec![Vec::new(); self.blocks.len()];
        for (b, block) in self.blocks.iter().enumerate() {
            match &block.term {
                Some(Terminator::Br(t, _)) => incoming[t.0 as usize].push((b, true)),
                Some(Terminator::CondBr { then, els, .. }) => {
                    incoming[then.0 as usize].push((b, true));
                    incoming[els.0 as usize].push((b, false));
                }
                _ => {}
            }
        }
        let mut work: Vec<Value> = Vec::new();
        for block in &self.blocks {
            for &i in &block.insts {
                let inst = &self.insts[i as usize];
                if inst.effect == Effect::Write {
                    work.extend_from_slice(&inst.args);
                }
            }
            match &block.term {
                Some(Terminator::CondBr { cond, .. }) => work.push(*cond),
                Some(Terminator::Ret(values)) => work.extend_from_slice(values),
                _ => {}
            }
        }
        while let Some(v) = work.pop() {
            if std::mem::replace(&mut live[v.0 as usize], true) {
                continue;
            }
            match self.values[v.0 as usize].def {
                Def::Inst(i, _) => work.extend_from_slice(&self.insts[i as usize].args),
                Def::Param(block, index) => {
                    for &(from, first) in &incoming[block.0 as usize] {
                        match self.blocks[from].term.as_ref() {
                            Some(Terminator::Br(_, args)) => work.push(args[index as usize]),
                            Some(Terminator::CondBr { then_args, els_args, .. }) => {
                                work.push(if first {
                                    then_args[index as usize]
                                } else {
                                    els_args[index as usize]
                                });
                            }
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
        live
    }

    /// Blocks in reverse post-order from the entry; unreachable ones are left out.
    pub(crate) fn order(&self) -> Vec<usize> {
        let mut seen = vec![false; self.blocks.len()];
        let mut post = Vec::with_capacity(self.blocks.len());
        // The second visit of a block, after its successors, appends it.
        let mut stack = vec![(0usize, false)];
        while let Some((b, done)) = stack.pop() {
            if done {
                post.push(b);
                continue;
            }
            if std::mem::replace(&mut seen[b], true) {
                continue;
            }
            stack.push((b, true));
            let mut push = |t: Block| stack.push((t.0 as usize, false));
            match self.blocks[b].term.as_ref() {
                Some(Terminator::Br(t, _)) => push(*t),
                Some(Terminator::CondBr { then, els, .. }) => {
                    // The last pushed is visited first and so ends up later in the order: loop exits and else
                    // branches come after bodies.
                    push(*then);
                    push(*els);
                }
                _ => {}
            }
        }
        post.reverse();
        post
    }

    /// Instructions that would be handed over: the live ones, not counting constants, parameters and terminators.
    pub fn count_live(&self) -> usize {
        let live = self.live();
        self.blocks
            .iter()
            .flat_map(|b| &b.insts)
            .filter(|&&i| {
                let inst = &self.insts[i as usize];
                inst.effect == Effect::Write
                    || (0..inst.num_results).any(|r| live[(inst.first_result + r) as usize])
            })
            .count()
    }
}
