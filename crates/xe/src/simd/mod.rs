//! LLVM IR in SIMD style: the program of one warp as the hardware thread that runs it sees it (ML-Triton, section 2.4).
//!
//! In: a module in which each tensor is what one instruction takes
//! ([`match_target_size`](tilewright_passes::transform::match_target_size)). There are no lanes: a tensor is one vector, a block message moves one,
//! DPAS multiplies two. So an operation is mostly one instruction, and those of Intel's that LLVM has none for are calls of `llvm.genx.*`, as
//! the vector compiler defines them (github.com/intel/vc-intrinsics).
//!
//! ```text
//! %a = tt.descriptor_load %d[%y, %k] : !tt.tensordesc<tensor<32x32xf16>> -> tensor<32x32xf16>
//! %x = tt.extract %a[0] : tensor<32x32xf16> -> tensor<8x16xf16>
//! %r = tt.dot %x, %b, %c : tensor<8x16xf16> * tensor<16x16xf16> -> tensor<8x16xf32>
//! =>
//! %v1 = call <512 x i32> @llvm.genx.lsc.load2d.stateless.v512i32.i1.i64(…)
//! %v2 = shufflevector <512 x i32> %v1, <512 x i32> poison, <64 x i32> <i32 0, …, i32 63>
//! %v4 = call <128 x float> @llvm.genx.dpas2.v128f32.v128i32.v64i32(<128 x float> %c, <128 x i32> %v3, <64 x i32> %v2, …)
//! ```
//!
//! The same module in SIMT style ([`simt_text`]) is what one lane does: of each block it has a column in sixteen, so that vectors are a sixteenth as long, and
//! the instructions are GenISA's, of Intel's other compiler. Of tensors whose last dimension the lanes don't share out there is no such form yet.
//!
//! It is text because nobody here reads it further: no library has these intrinsics (to LLVM they are functions), and Intel's compiler takes SPIR-V.

mod blocks;
mod control;
mod elementwise;
mod shapes;
mod value;

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use tilewright_ir::dialect::{arith, gpu, tt, ttg};
use tilewright_ir::{AttrKind, Diagnostic, Module, Op, Opcode, Type, Value};
use tilewright_passes::level::Level;

use value::{Known, Vector, array, scalar_type};

type Result<T> = std::result::Result<T, Diagnostic>;

/// The functions of a module of instructions, as text that LLVM reads.
///
/// # Errors
/// A module of another level; what has no form in this style yet, with its place in the source.
pub fn text(module: &Module) -> Result<String> {
    written(module, Style::Simd)
}

/// The same in SIMT style.
///
/// # Errors
/// Those of [`text`]; a tensor that lanes don't have columns of.
pub fn simt_text(module: &Module) -> Result<String> {
    let mut of_lane = module.clone();
    share_out(&mut of_lane).map_err(|error| in_style(error, Style::Simt))?;
    written(&of_lane, Style::Simt)
}

/// Whose program it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// A warp's.
    Simd,
    /// A lane's.
    Simt,
}

impl Style {
    /// Columns of a block for each that is in the module.
    fn lanes(self) -> u32 {
        if self == Style::Simt { LANES } else { 1 }
    }
}

/// Lanes of a sub-group.
const LANES: u32 = 16;

/// Leaves of each tensor the columns that a lane has.
fn share_out(module: &mut Module) -> Result<()> {
    for op in module.all_ops(module.root()) {
        let blocks = module.regions(op).to_vec().into_iter().flat_map(|r| module.region_blocks(r).to_vec());
        let args: Vec<Value> = blocks.flat_map(|b| module.block_args(b).to_vec()).collect();
        for value in module.results(op).to_vec().into_iter().chain(args) {
            let ty = module.value_type(value);
            if !module.is_tensor(ty) {
                continue;
            }
            let shape = module.shape(ty).unwrap_or(&[]).to_vec();
            let &[rows, columns] = &shape[..] else {
                return Err(unsupported(module, op, "a tensor of other than two dimensions"));
            };
            let sub = module.bits(ty) < 16;
            if columns % LANES != 0 || sub {
                let what = format!("a tensor of {columns} columns of {} bits", module.bits(ty));
                return Err(unsupported(module, op, what));
            }
            let element = module.element_type(ty);
            let of_lane = module.tensor_type(&[rows, columns / LANES], element, None);
            module.set_value_type(value, of_lane);
        }
    }
    Ok(())
}

fn in_style(mut error: Diagnostic, style: Style) -> Diagnostic {
    error.message.push_str(if style == Style::Simd { " in SIMD style" } else { " in SIMT style" });
    error
}

fn written(module: &Module, style: Style) -> Result<String> {
    if Level::of(module) != Some(Level::Intrinsic) {
        return Err(Diagnostic::new("LLVM IR is made of a module of instructions (-match-target-size)"));
    }
    let mut out = String::new();
    let mut declared = BTreeMap::new();
    for op in module.block_ops(module.body()) {
        let Some(function) = tt::Func::cast(module, op) else {
            let error = unsupported(module, op, format!("`{}`", module.op_name(op)));
            return Err(in_style(error, style));
        };
        let mut writer = Writer {
            m: module,
            style,
            out: String::new(),
            known: HashMap::new(),
            declared: &mut declared,
            label: String::new(),
            count: 0,
        };
        writer.function(function).map_err(|error| in_style(error, style))?;
        out.push_str(&writer.out);
    }
    for declaration in declared.values() {
        writeln!(out, "{declaration}").expect("a string takes text");
    }
    out.push_str(match style {
        Style::Simd => "\nattributes #0 = { \"CMGenxMain\" }\n",
        Style::Simt => "\nattributes #0 = { nounwind }\n\n!0 = !{i32 16}\n",
    });
    Ok(out)
}

/// What is not there yet, at its place; [`written`] says in which style.
fn unsupported(module: &Module, op: Op, what: impl std::fmt::Display) -> Diagnostic {
    Diagnostic::unsupported(module, module.op_loc(op), what)
}

/// Writes one function.
struct Writer<'m> {
    m: &'m Module,
    style: Style,
    out: String,
    known: HashMap<Value, Known>,
    /// By name.
    declared: &'m mut BTreeMap<String, String>,
    /// The block that is written.
    label: String,
    /// Of names.
    count: usize,
}

impl Writer<'_> {
    fn function(&mut self, function: tt::Func) -> Result<()> {
        let name = self.m.symbol_name(function.0).unwrap_or_default().to_string();
        let region = function.body(self.m);
        let &[entry] = self.m.region_blocks(region) else {
            return Err(unsupported(self.m, function.0, "a function without a body, or with jumps,"));
        };
        let mut parameters = Vec::new();
        for &arg in self.m.block_args(entry) {
            let Some(ty) = scalar_type(self.m, self.m.value_type(arg)) else {
                return Err(unsupported(self.m, function.0, "a parameter of this type"));
            };
            let value = self.fresh();
            parameters.push(format!("{ty} {value}"));
            self.known.insert(arg, Known::Scalar { ty, value });
        }
        // (A name of the source is one of letters, digits and underscores; quotes take any.)
        let list = parameters.join(", ");
        let head = match self.style {
            Style::Simd => format!("define dllexport spir_kernel void @\"{name}\"({list}) #0 {{"),
            Style::Simt => {
                format!("define spir_kernel void @\"{name}\"({list}) #0 !intel_reqd_sub_group_size !0 {{")
            }
        };
        writeln!(self.out, "{head}").expect("a string takes text");
        self.begin("entry");
        self.block(entry)?;
        self.out.push_str("}\n\n");
        Ok(())
    }

    fn block(&mut self, block: tilewright_ir::Block) -> Result<()> {
        for op in self.m.block_ops(block) {
            self.operation(op)?;
        }
        Ok(())
    }

    fn operation(&mut self, op: Op) -> Result<()> {
        use tilewright_ir::dialect::scf;
        use tt::Kind as K;
        match self.m.opcode(op) {
            Some(Opcode::Arith(arith::Kind::Constant)) => self.constant(op),
            Some(Opcode::Arith(_) | Opcode::Math(_)) => self.elementwise(op),
            Some(Opcode::Scf(scf::Kind::For)) => self.counted_loop(scf::For(op)),
            Some(Opcode::Scf(scf::Kind::If)) => self.branch(scf::If(op)),
            // Whoever writes the region takes what it gives.
            Some(Opcode::Scf(scf::Kind::Yield) | Opcode::Tt(K::ReduceReturn)) => Ok(()),
            Some(Opcode::Gpu(gpu::Kind::SubgroupId)) => {
                self.warp_number(op);
                Ok(())
            }
            Some(Opcode::Tt(K::GetProgramId)) => {
                self.program_number(op, tt::GetProgramId(op).axis(self.m), false);
                Ok(())
            }
            Some(Opcode::Tt(K::GetNumPrograms)) => {
                self.program_number(op, tt::GetNumPrograms(op).axis(self.m), true);
                Ok(())
            }
            Some(Opcode::Ttg(ttg::Kind::Barrier)) => {
                self.barrier();
                Ok(())
            }
            Some(Opcode::Tt(K::Return)) if self.m.operands(op).is_empty() => {
                self.line("ret void");
                Ok(())
            }
            Some(Opcode::Tt(K::Addptr)) => self.addptr(op),
            Some(Opcode::Tt(K::MakeTensorDescriptor)) => self.descriptor(tt::MakeTensorDescriptor(op)),
            Some(Opcode::Tt(K::DescriptorLoad)) => self.block_load(tt::DescriptorLoad(op)),
            Some(Opcode::Tt(K::DescriptorPrefetch)) => self.block_prefetch(tt::DescriptorPrefetch(op)),
            Some(Opcode::Tt(K::DescriptorStore)) => self.block_store(tt::DescriptorStore(op)),
            Some(Opcode::Tt(K::Extract)) => self.extract(tt::Extract(op)),
            Some(Opcode::Tt(K::Dot)) => self.dot(tt::Dot(op)),
            Some(Opcode::Tt(K::Splat)) => self.splat(op),
            Some(Opcode::Tt(K::MakeRange)) => self.range(tt::MakeRange(op)),
            Some(Opcode::Tt(K::ExpandDims)) => self.expand_dims(op),
            Some(Opcode::Tt(K::Broadcast)) => self.broadcast(op),
            Some(Opcode::Tt(K::Load)) => self.gather(tt::Load(op)),
            Some(Opcode::Tt(K::Store)) => self.scatter(tt::Store(op)),
            Some(Opcode::Tt(K::Reduce)) => self.reduce(tt::Reduce(op)),
            _ => Err(unsupported(self.m, op, format!("`{}`", self.m.op_name(op)))),
        }
    }

    // ---- the program and its warps -----------------------------------------------------------------------------------

    fn warp_number(&mut self, op: Op) {
        let id = match self.style {
            Style::Simd => {
                // The threads of a group are counted, and each is a warp.
                let ids = self.call("llvm.genx.local.id.v3i32", "<3 x i32>", &[]);
                self.assign(format!("extractelement <3 x i32> {ids}, i32 0"))
            }
            Style::Simt => self.call("_Z16get_sub_group_idv", "i32", &[]),
        };
        let wide = self.assign(format!("zext i32 {id} to i64"));
        self.scalar(self.m.result(op), "i64", wide);
    }

    /// A program's number along an axis of the grid, or how many there are.
    fn program_number(&mut self, op: Op, axis: tt::ProgramDim, count: bool) {
        let number = match (self.style, count) {
            (Style::Simd, false) => self.call(&format!("llvm.genx.group.id.{}", axis.keyword()), "i32", &[]),
            (Style::Simd, true) => {
                let counts = self.call("llvm.genx.group.count.v3i32", "<3 x i32>", &[]);
                self.assign(format!("extractelement <3 x i32> {counts}, i32 {}", axis as i32))
            }
            (Style::Simt, _) => {
                let name = if count { "_Z14get_num_groupsj" } else { "_Z12get_group_idj" };
                let wide = self.call(name, "i64", &[format!("i32 {}", axis as i32)]);
                self.assign(format!("trunc i64 {wide} to i32"))
            }
        };
        self.scalar(self.m.result(op), "i32", number);
    }

    fn barrier(&mut self) {
        match self.style {
            Style::Simd => {
                // Global memory (0), without a flush, for the group.
                self.run("llvm.genx.lsc.fence.i1", &["i1 true", "i8 0", "i8 0", "i8 0"].map(String::from));
                self.run("llvm.genx.barrier", &[]);
            }
            // Of local and of global memory.
            Style::Simt => self.run("_Z7barrierj", &["i32 3".to_string()]),
        }
    }

    fn constant(&mut self, op: Op) -> Result<()> {
        let (attr, result) = (arith::Constant(op).value(self.m), self.m.result(op));
        let ty = self.m.value_type(result);
        let values: Vec<String> = match self.m.attr_kind(attr) {
            AttrKind::Splat(one, _) => vec![self.literal(op, *one)?; value::lanes(self.m, ty) as usize],
            AttrKind::Dense(all, _) => all.iter().map(|&one| self.literal(op, one)).collect::<Result<_>>()?,
            _ => vec![self.literal(op, attr)?],
        };
        let element = self.element(op, ty)?;
        if self.m.is_tensor(ty) {
            let text = array(&element, &values);
            self.known.insert(result, Known::Vector(Vector::plain(self.m, ty, element, text)));
        } else {
            self.scalar(result, &element, values[0].clone());
        }
        Ok(())
    }

    /// The LLVM type of a type's elements, or of a scalar.
    fn element(&self, op: Op, ty: Type) -> Result<String> {
        scalar_type(self.m, self.m.element_type(ty)).ok_or_else(|| {
            let ty = tilewright_ir::print_type(self.m, ty);
            unsupported(self.m, op, format!("a value of type {ty}"))
        })
    }

    fn literal(&self, op: Op, attr: tilewright_ir::Attr) -> Result<String> {
        value::literal(self.m, attr).ok_or_else(|| unsupported(self.m, op, "a constant of this type"))
    }

    // ---- text ------------------------------------------------------------------------------------------------------

    /// A name that no value has.
    fn fresh(&mut self) -> String {
        self.count += 1;
        format!("%v{}", self.count)
    }

    fn line(&mut self, text: impl std::fmt::Display) {
        writeln!(self.out, "  {text}").expect("a string takes text");
    }

    /// An instruction with a result, whose name it gives.
    fn assign(&mut self, text: impl std::fmt::Display) -> String {
        let name = self.fresh();
        self.line(format_args!("{name} = {text}"));
        name
    }

    /// Calls a function that gives something. Arguments have their types.
    fn call(&mut self, name: &str, result: &str, args: &[String]) -> String {
        self.declare(name, result, args);
        self.assign(format!("call {result} @{name}({})", args.join(", ")))
    }

    /// Calls a function that gives nothing.
    fn run(&mut self, name: &str, args: &[String]) {
        self.declare(name, "void", args);
        self.line(format_args!("call void @{name}({})", args.join(", ")));
    }

    fn declare(&mut self, name: &str, result: &str, args: &[String]) {
        if !self.declared.contains_key(name) {
            let types: Vec<&str> = args.iter().map(|arg| value::type_of(arg)).collect();
            let text = format!("declare {result} @{name}({})", types.join(", "));
            self.declared.insert(name.to_string(), text);
        }
    }

    /// Begins a block of instructions.
    fn begin(&mut self, label: &str) {
        writeln!(self.out, "{label}:").expect("a string takes text");
        self.label = label.to_string();
    }

    // ---- values ----------------------------------------------------------------------------------------------------

    fn scalar(&mut self, of: Value, ty: &str, value: String) {
        self.known.insert(of, Known::Scalar { ty: ty.to_string(), value });
    }

    fn known(&self, op: Op, value: Value) -> Result<&Known> {
        self.known.get(&value).ok_or_else(|| unsupported(self.m, op, "a value from elsewhere"))
    }

    /// A scalar with its type.
    fn typed(&self, op: Op, value: Value) -> Result<String> {
        match self.known(op, value)? {
            Known::Scalar { ty, value } => Ok(format!("{ty} {value}")),
            _ => Err(unsupported(self.m, op, "this operand")),
        }
    }

    /// A scalar without its type.
    fn plain_scalar(&self, op: Op, value: Value) -> Result<String> {
        match self.known(op, value)? {
            Known::Scalar { value, .. } => Ok(value.clone()),
            _ => Err(unsupported(self.m, op, "this operand")),
        }
    }

    /// A tensor as a vector of its elements, in row-major order.
    fn elements(&mut self, op: Op, value: Value) -> Result<Vector> {
        let vector = match self.known(op, value)? {
            Known::Vector(vector) => vector.clone(),
            _ => return Err(unsupported(self.m, op, "this operand")),
        };
        if !vector.is_row_major() {
            return Err(unsupported(self.m, op, "a block that is arranged for a dot, as another operand,"));
        }
        let element = self.element(op, self.m.value_type(value))?;
        if !vector.words && vector.element == element {
            return Ok(vector);
        }
        let to = format!("<{} x {element}>", value::lanes(self.m, self.m.value_type(value)));
        let name = self.assign(format!("bitcast {} to {to}", vector.typed()));
        let vector = Vector { element, name, words: false, ..vector };
        self.known.insert(value, Known::Vector(vector.clone()));
        Ok(vector)
    }

    /// A block as a vector of integers as wide as its elements.
    fn integers(&mut self, op: Op, value: Value) -> Result<Vector> {
        let vector = match self.known(op, value)? {
            Known::Vector(vector) if !vector.words => vector.clone(),
            _ => return Err(unsupported(self.m, op, "this operand")),
        };
        let element = format!("i{}", vector.bits);
        if vector.element == element {
            return Ok(vector);
        }
        let name = self.assign(format!("bitcast {} to <{} x {element}>", vector.typed(), vector.count()));
        Ok(Vector { element, name, ..vector })
    }

    /// A block as a vector of 32-bit words.
    fn words(&mut self, op: Op, value: Value) -> Result<Vector> {
        let vector = match self.known(op, value)? {
            Known::Vector(vector) => vector.clone(),
            _ => return Err(unsupported(self.m, op, "this operand")),
        };
        if vector.words {
            return Ok(vector);
        }
        let count = vector.count() * vector.bits / 32;
        let name = self.assign(format!("bitcast {} to <{count} x i32>", vector.typed()));
        Ok(Vector { element: "i32".into(), name, words: true, ..vector })
    }
}
