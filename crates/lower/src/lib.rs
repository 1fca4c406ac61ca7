//! Lowering of a `ttg` module to a per-thread program, as far as it is the same for every vendor, one file a topic.
//!
//! In: what the passes leave, of which [`tilewright_passes`] is the contract. Out: a [`tilewright_llvm::Module`], which a vendor's crate,
//! such as [`tilewright_nvidia`](../tilewright_nvidia/index.html), has turned into code.
//!
//! A tensor value becomes one scalar per register of its [`TileLayout`], in that layout's register order; a buffer
//! becomes a shared-memory address. What the passes have decided is read, not decided again: encodings stand in the
//! types, shared-memory offsets in `allocation.offset`, vector widths in `tt.vec`, barriers between operations are
//! `ttg.barrier`. An operation that goes through shared memory inside itself (a reduction across warps, a layout
//! conversion) emits its own barrier between its writes and its reads.
//!
//! What differs between vendors is asked for: facts of [`TargetInfo`] (the width of a warp, of an access), and instructions
//! through [`Hooks`], which a vendor implements for the state of its own. An operation is offered to
//! [`Hooks::operation`] first, so that a vendor may lower any in a way of its own.

mod atomic;
mod control;
mod convert_layout;
mod debug;
mod dot;
mod elementwise;
mod float_cast;
mod gather;
mod hooks;
mod index;
mod math;
mod memory;
mod rare;
mod record;
mod reduce;
mod scan;
mod series;
mod shape;
mod shared;

use std::rc::Rc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use tilewright_ir as ir;
use tilewright_ir::attrs::AttrKind;
use tilewright_ir::marks;
use tilewright_ir::{Diagnostic, FloatKind, LocKind, Opcode, TypeKind};
use tilewright_layout::{Encoding, TileLayout};
use tilewright_llvm as llvm;
use tilewright_llvm::{Builder, KernelAttrs, Loc, Scalar, Space, Ty};
use tilewright_passes::TargetInfo;
use tilewright_passes::analysis::promises::Promises;
use tilewright_passes::transform::allocate_shared::WARP_BYTES;

pub use atomic::Atomic;
pub use hooks::{Approximation, Hooks, LoadHints, Shuffle, WordValues, Words};
pub use rare::PREFIX as OWN_PREFIX;
pub use shape::row_major;
pub use shared::ThreadPart;

/// What lowering needs to know besides the module.
#[derive(Debug, Clone)]
pub struct LowerOptions<'t> {
    /// The target.
    pub target: &'t TargetInfo,
    /// Alignment of the kernel's shared memory, in bytes.
    pub shared_alignment: u32,
    /// Whether source positions go into the program.
    pub line_info: bool,
    /// Whether exponentials of fp32 flush subnormal numbers to zero.
    pub flushes: bool,
}

/// A lowered module.
#[derive(Debug, Clone)]
pub struct Lowered {
    /// The per-thread program.
    pub module: llvm::Module,
    /// The kernel's symbol.
    pub kernel: String,
    /// Warps of a CTA, those of partitions included.
    pub num_warps: u32,
    /// Dynamic shared memory, in bytes.
    pub shared_bytes: u32,
}

/// Elements of a tensor that a thread may have. Many times what it has registers for is spilled, and the assembler needs time in
/// proportion to the square: two minutes for this many, half an hour for four times as many.
const MAX_ELEMENTS: u64 = 2048;

/// Instructions that the code of a thread may have: LLVM and the assembler take minutes for so many, and gigabytes of memory.
const MAX_INSTRUCTIONS: usize = 1_000_000;

/// The registers of one value.
pub type Regs = Rc<[llvm::Value]>;
/// The name of the buffer that holds all of a kernel's shared memory.
pub const SHARED_MEMORY: &str = "global_smem";

/// What lowering gives, or an error with its place.
pub type Result<T> = std::result::Result<T, Box<Diagnostic>>;

/// A buffer in shared memory, or a view of one. Its shape and encoding are those of its type.
#[derive(Debug, Clone)]
pub struct Buffer {
    /// Address of element 0 of the allocation (of the one indexed, when it is multi-buffered).
    pub base: llvm::Value,
    /// Where this view begins in the allocation, per dimension of the view.
    pub offsets: SmallVec<[u32; 4]>,
}

/// What an IR value became.
#[derive(Debug, Clone)]
pub enum Val {
    /// A tensor or scalar.
    Regs(Regs),
    /// A buffer.
    Buffer(Buffer),
    /// Nothing at run time (a token).
    Token,
}

/// Lowers a module.
///
/// # Errors
/// An operation, type or layout that is not supported, with its place in the source.
pub fn lower<H: Hooks>(
    module: &ir::Module,
    options: &LowerOptions<'_>,
    hooks: impl Fn() -> H,
) -> Result<Lowered> {
    let int = |name: &str| module.int_attr(module.root(), name);
    let num_warps = int("ttg.num-warps").unwrap_or(4) as u32;
    let launched = int("ttg.total-num-warps").map_or(num_warps, |n| n as u32);
    let shared_bytes = int("ttg.shared").unwrap_or(0) as u32;
    let mut out = llvm::Module::new("kernel");
    let warp_size = options.target.warp_size;
    match int("ttg.threads-per-warp") {
        Some(lanes) if lanes != i64::from(warp_size) => {
            let name = &options.target.name;
            let message =
                format!("the module is for warps of {lanes} threads; those of {name} have {warp_size}");
            return Err(Box::new(Diagnostic::new(message)));
        }
        _ => {}
    }
    let align = options.shared_alignment;
    let smem =
        out.global(llvm::Global { name: SHARED_MEMORY.into(), space: Space::Shared, align, init: None });
    let mut kernel = None;
    let functions: Vec<ir::Op> = module
        .block_ops(module.body())
        .filter(|&op| module.opcode(op) == Some(Opcode::Tt(ir::dialect::tt::Kind::Func)))
        .collect();
    let promises = Promises::of(module);
    let files = Locations::new(options.line_info);
    let mut locations = files;
    for &func in &functions {
        let is_kernel = ir::launch::is_kernel(module, func);
        let name = H::symbol(module.symbol_name(func).unwrap_or("kernel")).into_owned();
        if is_kernel {
            kernel = Some(name.clone());
        }
        let attrs = is_kernel.then(|| KernelAttrs {
            threads: launched * warp_size,
            max_registers: int("ttg.maxnreg").unwrap_or(0) as u32,
            cluster: ir::launch::ctas_of_cluster(module),
            min_ctas_per_sm: int("ttg.min-ctas-per-sm").unwrap_or(0) as u32,
            ..KernelAttrs::default()
        });
        locations = control::lower_function(
            (module, &promises),
            func,
            &name,
            attrs,
            options,
            hooks(),
            (num_warps, launched),
            smem,
            &mut out,
            locations,
        )?;
    }
    let kernel =
        kernel.ok_or_else(|| Box::new(Diagnostic::new("the module has no kernel (public function)")))?;
    rare::define::<H>(&mut out);
    Ok(Lowered { module: out, kernel, num_warps: launched, shared_bytes })
}

/// Source positions, translated once each.
pub(crate) struct Locations {
    enabled: bool,
    known: FxHashMap<ir::Loc, Loc>,
}

impl Locations {
    fn new(enabled: bool) -> Locations {
        Locations { enabled, known: FxHashMap::default() }
    }
}

/// The warps that run what is being lowered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scope {
    /// The first one's index in the CTA.
    pub first_warp: u32,
    /// The number of the barrier at which they alone wait.
    pub barrier: u32,
    /// Warps of the CTA, in whatever scope.
    pub launched: u32,
}

/// A warp of a program whose kernel is written for one.
#[derive(Debug, Clone, Copy)]
struct OwnWarp {
    /// Its number in the program, the same in all lanes.
    number: llvm::Value,
    /// What it adds to offsets in its own shared memory.
    memory: llvm::Value,
}

/// What lowering one function knows: what is the same for every vendor, and the vendor's own part.
pub struct Lower<'a, H> {
    /// The module.
    pub m: &'a ir::Module,
    /// Records the thread's instructions.
    pub b: Builder<'a>,
    /// What the vendor's part knows.
    pub hooks: H,
    /// What is known of the target.
    pub target: &'a TargetInfo,
    /// Whether exponentials of fp32 flush subnormal numbers to zero.
    pub flushes: bool,
    /// Warps that run what is being lowered.
    pub num_warps: u32,
    /// CTAs of a cluster.
    pub num_ctas: u32,
    /// Which warps they are.
    pub scope: Scope,
    /// All of the kernel's shared memory.
    pub smem: llvm::GlobalId,
    /// The warp, in a kernel that is written for one.
    own_warp: Option<OwnWarp>,
    /// What the module promises of its numbers.
    promises: &'a Promises,
    values: Vec<Option<Val>>,
    layouts: FxHashMap<ir::Type, Rc<TileLayout>>,
    locations: Locations,
    /// Where the launch's scratch memory begins, if it has any.
    pub global_scratch: Option<llvm::Value>,
    /// The operation being lowered, for errors.
    pub op: ir::Op,
}

impl<'a, H: Hooks> Lower<'a, H> {
    // ---- errors ----------------------------------------------------------------------------------------------------

    /// An error at the current operation.
    pub fn error(&self, message: impl Into<String>) -> Box<Diagnostic> {
        Box::new(Diagnostic::at(self.m, self.m.op_loc(self.op), message))
    }

    /// An error that says what is not there yet.
    pub fn unsupported(&self, what: impl std::fmt::Display) -> Box<Diagnostic> {
        let text =
            format!("not supported yet on {}: {what} (in `{}`)", self.target.name, self.m.op_name(self.op));
        Box::new(self.error(text).of(ir::diagnostic::Kind::Unsupported))
    }

    // ---- values ----------------------------------------------------------------------------------------------------

    /// What a value became.
    pub fn val(&self, v: ir::Value) -> Result<&Val> {
        self.values[index(v)]
            .as_ref()
            .ok_or_else(|| self.error("a value is used before its definition was lowered"))
    }

    /// The registers of a tensor or scalar.
    pub fn regs(&self, v: ir::Value) -> Result<Regs> {
        match self.val(v)? {
            Val::Regs(r) => Ok(r.clone()),
            _ => Err(self.error("expected a tensor or scalar")),
        }
    }

    /// A scalar.
    pub fn scalar(&self, v: ir::Value) -> Result<llvm::Value> {
        Ok(self.regs(v)?[0])
    }

    /// A buffer.
    pub fn buffer(&self, v: ir::Value) -> Result<Buffer> {
        match self.val(v)? {
            Val::Buffer(b) => Ok(b.clone()),
            _ => Err(self.error("expected a shared-memory buffer")),
        }
    }

    /// Says what a value became.
    pub fn set(&mut self, v: ir::Value, val: Val) {
        self.values[index(v)] = Some(val);
    }

    /// Says which registers a value has.
    pub fn set_regs(&mut self, v: ir::Value, regs: impl Into<Regs>) {
        self.set(v, Val::Regs(regs.into()));
    }

    // ---- types -----------------------------------------------------------------------------------------------------

    /// The machine type of a scalar or of a tensor's elements.
    pub fn elem_ty(&self, ty: ir::Type) -> Result<Ty> {
        let scalar = match self.m.type_kind(self.m.element_type(ty)) {
            TypeKind::Int(bits) => match Scalar::int(u32::from(*bits)) {
                Some(s) => s,
                None => return Err(self.unsupported(format!("integers of {bits} bits"))),
            },
            TypeKind::Float(kind) => match kind {
                FloatKind::F16 => Scalar::F16,
                FloatKind::BF16 => Scalar::BF16,
                FloatKind::F32 => Scalar::F32,
                FloatKind::F64 => Scalar::F64,
                _ => Scalar::I8,
            },
            TypeKind::Index => Scalar::I64,
            TypeKind::Ptr { address_space: 3, .. } => Scalar::Ptr(Space::Shared),
            TypeKind::Ptr { address_space: ir::types::REMOTE, .. } => Scalar::Ptr(Space::Cluster),
            TypeKind::Ptr { address_space: ir::types::SYMMETRIC, .. } => Scalar::Ptr(Space::Symmetric),
            TypeKind::Ptr { .. } => Scalar::Ptr(Space::Global),
            // The address of a tensor map, in a kernel parameter or in global memory.
            TypeKind::TensorDesc { .. } => Scalar::Ptr(Space::Generic),
            _ => return Err(self.unsupported("values of this type")),
        };
        Ok(Ty::scalar(scalar))
    }

    /// The float format of an element type.
    pub fn float_kind(&self, ty: ir::Type) -> Option<FloatKind> {
        match self.m.type_kind(self.m.element_type(ty)) {
            TypeKind::Float(k) => Some(*k),
            _ => None,
        }
    }

    /// The type of a value.
    pub fn value_ty(&self, v: ir::Value) -> ir::Type {
        self.m.value_type(v)
    }

    /// How many registers a value of this type has (1 for scalars).
    pub fn num_regs(&mut self, ty: ir::Type) -> Result<usize> {
        Ok(if self.m.is_tensor(ty) { self.layout(ty)?.num_registers() as usize } else { 1 })
    }

    /// The encoding of a tensor or buffer type.
    pub fn encoding(&self, ty: ir::Type) -> Result<&'a Encoding> {
        let m = self.m;
        match m.encoding(ty).and_then(|a| m.encoding_of(a)) {
            Some(e) => Ok(e),
            None => Err(self.error("a tensor has no layout encoding: run the ttg passes first")),
        }
    }

    /// The layout of a tensor type.
    pub fn layout(&mut self, ty: ir::Type) -> Result<Rc<TileLayout>> {
        if let Some(l) = self.layouts.get(&ty) {
            return Ok(l.clone());
        }
        let shape = self.m.shape(ty).ok_or_else(|| self.error("expected a tensor"))?;
        let layout = TileLayout::new(self.encoding(ty)?, shape).map_err(|e| self.error(e.to_string()))?;
        // The thread's share of the tensor: operands that every lane holds whole are the compiler's choice, not the kernel's.
        let threads = u64::from(self.num_warps * self.target.warp_size);
        let share = shape.iter().map(|&n| u64::from(n)).product::<u64>() / threads;
        if share > MAX_ELEMENTS {
            let message = format!(
                "a tensor of shape {shape:?} has {share} elements in each thread; the limit is {MAX_ELEMENTS}"
            );
            let hint = format!(
                "a thread has {} registers, the rest is spilled: use smaller blocks, or more warps (num_warps)",
                self.target.machine.registers_of_thread
            );
            return Err(self.error(message).note(hint).into());
        }
        let layout = Rc::new(layout);
        self.layouts.insert(ty, layout.clone());
        Ok(layout)
    }

    /// Bits of the widest access of a thread.
    pub fn vector_bits(&self) -> u32 {
        self.target.max_vector_bytes * 8
    }

    /// An integer attribute of the current operation.
    pub fn int_attr(&self, name: &str) -> Option<i64> {
        self.m.int_attr(self.op, name)
    }

    /// Address of the current operation's scratch memory.
    pub fn scratch(&mut self) -> Result<llvm::Value> {
        let offset = self.int_attr(marks::ALLOCATION_OFFSET).ok_or_else(|| {
            self.error("internal: the operation needs shared memory, and none was allocated for it")
        })?;
        let mut base = self.b.global(self.smem);
        if let Some(warp) = self.own_warp
            && !self.is_of_all_warps()
        {
            base = self.b.ptr_add(base, warp.memory);
        }
        Ok(self.b.ptr_add_const(base, offset))
    }

    /// Whether the current operation is one of all warps, in a kernel that is written for one.
    fn is_of_all_warps(&self) -> bool {
        self.m.op_attr(self.op, marks::ALL_WARPS).is_some()
    }

    /// At a kernel's entry: which warp this is, where the kernel is written for one.
    fn find_own_warp(&mut self) {
        if ir::launch::warps_of_program(self.m).is_none() {
            return;
        }
        let (tid, first) = (self.launched_tid(), self.b.i32(0));
        let warp = self.b.lshr(tid, self.lane_bits());
        let number = H::shuffle(self, warp, Shuffle::Index(first));
        self.b.assume_zeros(number, !u64::from(self.scope.launched.next_power_of_two() - 1) & 0xffff_ffff);
        let bytes = self.m.int_attr(self.m.root(), WARP_BYTES).unwrap_or(0);
        let memory = self.b.mul_const(number, bytes);
        self.own_warp = Some(OwnWarp { number, memory });
    }

    /// `ttg.barrier`, of the scope or, where the kernel is written for one warp and it says so, of all warps.
    fn scope_barrier(&mut self) {
        let own = self.num_warps;
        if self.is_of_all_warps() {
            self.num_warps = self.scope.launched;
        }
        self.barrier();
        self.num_warps = own;
    }

    // ---- operations ------------------------------------------------------------------------------------------------

    fn set_position(&mut self, loc: ir::Loc) {
        if !self.locations.enabled {
            return;
        }
        let found = match self.locations.known.get(&loc) {
            Some(&l) => l,
            None => {
                let l = self.translate(loc);
                self.locations.known.insert(loc, l);
                l
            }
        };
        self.b.set_loc(found);
    }

    fn translate(&mut self, loc: ir::Loc) -> Loc {
        match self.m.loc_kind(loc) {
            LocKind::Unknown => Loc::NONE,
            LocKind::File { file, line, column } => {
                // The string of PTX's `.file` ends at the first quotation mark: it has no escapes.
                let file = file.replace('"', "'");
                let (dir, name) = file.rsplit_once('/').unwrap_or(("", &file));
                Loc { file: self.b.module.file(dir, name), line: *line, col: *column }
            }
            LocKind::Name(_, child) => self.translate(*child),
            // The innermost position: line tables have no inlining.
            LocKind::CallSite { callee, .. } => self.translate(*callee),
            LocKind::Fused(locs) => locs.first().map_or(Loc::NONE, |&l| self.translate(l)),
        }
    }

    /// Lowers the operations of a block up to its terminator, which is returned.
    pub fn block(&mut self, block: ir::Block) -> Result<Option<ir::Op>> {
        let mut at = self.m.first_op(block);
        while let Some(op) = at {
            at = self.m.next_op(op);
            self.op = op;
            self.set_position(self.m.op_loc(op));
            if self.m.has_trait(op, ir::Trait::Terminator) {
                return Ok(Some(op));
            }
            self.operation(op)?;
            if self.b.instructions() > MAX_INSTRUCTIONS {
                let message = format!(
                    "here the code of each thread becomes longer than {MAX_INSTRUCTIONS} instructions"
                );
                let hint =
                    "use smaller blocks or more warps, and loop at run time (range, not tl.static_range)";
                return Err(self.error(message).note(hint).into());
            }
        }
        Ok(None)
    }

    fn operation(&mut self, op: ir::Op) -> Result<()> {
        use ir::dialect::{arith, scf, tt, ttg};
        if H::operation(self, op)? {
            return Ok(());
        }
        match self.m.opcode(op) {
            Some(Opcode::Arith(arith::Kind::Constant)) => self.constant(op),
            Some(Opcode::Arith(kind)) => self.arith(op, kind),
            Some(Opcode::Math(kind)) => self.math(op, kind),
            Some(Opcode::Scf(kind)) => match kind {
                scf::Kind::For => self.scf_for(scf::For(op)),
                scf::Kind::If => self.scf_if(scf::If(op)),
                scf::Kind::While => self.scf_while(scf::While(op)),
                _ => Err(self.error("a terminator in the middle of a block")),
            },
            Some(Opcode::Tt(kind)) => match kind {
                tt::Kind::GetProgramId => self.program_id(tt::GetProgramId(op).axis(self.m), op, false),
                tt::Kind::GetNumPrograms => self.program_id(tt::GetNumPrograms(op).axis(self.m), op, true),
                tt::Kind::MakeRange => self.make_range(tt::MakeRange(op)),
                tt::Kind::Splat => self.splat(tt::Splat(op)),
                tt::Kind::Unsplat => self.unsplat(tt::Unsplat(op)),
                tt::Kind::Cat => self.cat(tt::Cat(op)),
                tt::Kind::Load => self.load(tt::Load(op)),
                tt::Kind::Store => self.store(tt::Store(op)),
                tt::Kind::AtomicRmw => self.atomic_rmw(tt::AtomicRmw(op)),
                tt::Kind::AtomicCas => self.atomic_cas(tt::AtomicCas(op)),
                tt::Kind::Dot => self.dot(tt::Dot(op)),
                tt::Kind::Reduce => self.reduce(tt::Reduce(op)),
                tt::Kind::Scan => self.scan(tt::Scan(op)),
                tt::Kind::MapElementwise => self.map_elementwise(tt::MapElementwise(op)),
                tt::Kind::Histogram => self.histogram(tt::Histogram(op)),
                tt::Kind::Gather => self.gather(tt::Gather(op)),
                tt::Kind::ExtractTile => self.extract_tile(tt::ExtractTile(op)),
                tt::Kind::InsertTile => self.insert_tile(tt::InsertTile(op)),
                tt::Kind::Call => self.call(tt::Call(op)),
                tt::Kind::Print => self.print(tt::Print(op)),
                tt::Kind::Assert => self.assert(tt::Assert(op)),
                _ if self.m.def(op).is_some_and(|d| d.index.rearranges()) => self.rearrange(op),
                _ => self.elementwise_tt(op, kind),
            },
            Some(Opcode::Ttg(kind)) => match kind {
                ttg::Kind::ConvertLayout => self.convert_layout(ttg::ConvertLayout(op)),
                ttg::Kind::LaneSum => self.lane_sum(ttg::LaneSum(op)),
                ttg::Kind::LaneFirst => self.lane_first(ttg::LaneFirst(op)),
                ttg::Kind::LocalAlloc => self.local_alloc(ttg::LocalAlloc(op)),
                ttg::Kind::LocalDealloc => Ok(()),
                ttg::Kind::LocalLoad => self.local_load(ttg::LocalLoad(op)),
                ttg::Kind::LocalStore => self.local_store(ttg::LocalStore(op)),
                ttg::Kind::LocalPtr => self.local_ptr(ttg::LocalPtr(op)),
                ttg::Kind::MemdescIndex => self.memdesc_index(ttg::MemdescIndex(op)),
                ttg::Kind::MemdescSubslice => self.memdesc_subslice(ttg::MemdescSubslice(op)),
                ttg::Kind::MemdescSubview => self.memdesc_subview(ttg::MemdescSubview(op)),
                ttg::Kind::MemdescReshape => self.memdesc_reshape(ttg::MemdescReshape(op)),
                ttg::Kind::MemdescReinterpret => self.memdesc_reinterpret(ttg::MemdescReinterpret(op)),
                ttg::Kind::MemdescTrans => self.memdesc_trans(ttg::MemdescTrans(op)),
                ttg::Kind::Barrier => {
                    self.scope_barrier();
                    Ok(())
                }
                ttg::Kind::WarpId => {
                    let warp = self.own_warp.map(|warp| warp.number);
                    let warp = warp.unwrap_or_else(|| self.warp());
                    self.set_regs(self.m.result(op), vec![warp]);
                    Ok(())
                }
                _ => Err(self.unsupported(format!("the operation `{}`", self.m.op_name(op)))),
            },
            Some(Opcode::Llvm(ir::dialect::llvm::Kind::Assume)) => {
                let condition = self.regs(ir::dialect::llvm::Assume(op).cond(self.m))?[0];
                self.b.intrinsic("llvm.assume", llvm::Effect::Write, None, &[condition]);
                Ok(())
            }
            Some(Opcode::Ub(_)) => self.poison(op),
            _ => Err(self.unsupported(format!("the operation `{}`", self.m.op_name(op)))),
        }
    }

    /// A value that nothing looks at: zero, so that runs agree.
    fn poison(&mut self, op: ir::Op) -> Result<()> {
        let result = self.m.result(op);
        let ty = self.value_ty(result);
        let element = self.elem_ty(ty)?;
        let zero = if H::may_be_undefined(self, ty) { self.b.undef(element) } else { self.b.zero(element) };
        let n = self.num_regs(ty)?;
        self.set_regs(result, vec![zero; n]);
        Ok(())
    }

    fn constant(&mut self, op: ir::Op) -> Result<()> {
        let result = self.m.result(op);
        let ty = self.value_ty(result);
        let attr = self.m.op_attr(op, "value").ok_or_else(|| self.error("a constant without a value"))?;
        let n = self.num_regs(ty)?;
        let regs = match self.m.attr_kind(attr) {
            AttrKind::Dense(elements, _) => {
                let layout = self.layout(ty)?;
                let elements = elements.clone();
                return self.dense_constant(result, &layout, &elements);
            }
            AttrKind::Splat(inner, _) => {
                let v = self.constant_of(*inner, ty)?;
                vec![v; n]
            }
            _ => {
                let v = self.constant_of(attr, ty)?;
                vec![v; n]
            }
        };
        self.set_regs(result, regs);
        Ok(())
    }

    /// A scalar constant of an element type.
    fn constant_of(&mut self, attr: ir::Attr, ty: ir::Type) -> Result<llvm::Value> {
        let machine = self.elem_ty(ty)?;
        match self.m.attr_kind(attr) {
            AttrKind::Bool(x) => Ok(self.b.constant(machine, u64::from(*x))),
            AttrKind::Int(x, _) => Ok(self.b.constant(machine, *x as u64)),
            AttrKind::Float(x, _) => match self.float_kind(ty) {
                Some(kind) if kind.bits() == 8 => {
                    let bits = float_cast::fp8_bits(x.value(), kind);
                    Ok(self.b.constant(machine, u64::from(bits)))
                }
                _ => Ok(self.b.float(machine, x.value())),
            },
            _ => Err(self.unsupported("constants of this kind")),
        }
    }

    /// A dense constant whose elements differ: only where a thread's element is known at compile time.
    fn dense_constant(
        &mut self,
        result: ir::Value,
        layout: &TileLayout,
        elements: &[ir::Attr],
    ) -> Result<()> {
        let ty = self.value_ty(result);
        if elements.iter().all(|&e| e == elements[0]) {
            let v = self.constant_of(elements[0], ty)?;
            let n = layout.num_registers() as usize;
            self.set_regs(result, vec![v; n]);
            return Ok(());
        }
        // Selected by the element's index, a chain as long as the constant.
        if elements.len() > 64 {
            return Err(self.unsupported("constants of more than 64 different elements"));
        }
        let mut regs = Vec::new();
        for r in 0..layout.num_registers() {
            let flat = self.flat_index(layout, r);
            let mut v = self.constant_of(elements[0], ty)?;
            for (i, &e) in elements.iter().enumerate().skip(1) {
                let this = self.constant_of(e, ty)?;
                let i = self.b.i32(i as i64);
                let here = self.b.icmp(llvm::IntPred::Eq, flat, i);
                v = self.b.select(here, this, v);
            }
            regs.push(v);
        }
        self.set_regs(result, regs);
        Ok(())
    }
}

/// The integer type of so many bits; widths that no machine word has count as 32.
pub fn int_of(bits: u32) -> Scalar {
    Scalar::int(bits).unwrap_or(Scalar::I32)
}

/// Bits of an element in memory.
pub fn memory_bits(ty: Ty) -> u32 {
    ty.bits().max(8)
}

fn index(v: ir::Value) -> usize {
    use cranelift_entity::EntityRef;
    v.index()
}
