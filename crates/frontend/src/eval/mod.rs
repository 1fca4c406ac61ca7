//! The evaluator: walks a function's syntax tree once and types, folds constants and emits `tt` on the way.
//!
//! - Everything known at compile time is a [`Value::Const`]; nothing is emitted for it until an op needs it.
//! - Calls of jit functions are evaluated in place (what Triton's inliner would leave), with call-site locations;
//!   `noinline` functions become functions of the module, one for each specialization.
//! - Control flow is structured: an early `return` puts what follows into the other branch.
//!
//! `stmt` has statements, `control` branches, `join` those that return on some paths, `loops` loops, `expr` expressions, `dtypes` what they ask of dtypes, `call` calls, `aggregate` instances of
//! classes, `semantic` the language's
//! typing rules, and `builtins` one file a topic for the functions that [`crate::library`] declares.
//!
//! These files name each other, as syntax does: a statement has expressions, a call evaluates a function's statements, and the evaluator, whose
//! methods they all are, stands here.

mod aggregate;
mod builtins;
mod call;
mod control;
mod dtypes;
mod expr;
mod join;
mod loops;
mod python;
mod semantic;
mod stmt;

pub(crate) use python::is_builtin as is_python_builtin;

use std::sync::Arc;

use indexmap::IndexMap;
use ruff_python_ast::name::Name;
use ruff_text_size::{TextRange, TextSize};
use rustc_hash::{FxBuildHasher, FxHashMap};
use tilewright_ir::diagnostic::Kind;
use tilewright_ir::dialect::tt;
use tilewright_ir::{
    AttrKind, Block, Builder, Diagnostic, InsertPoint, Loc, LocKind, Module, Options, Type, TypeKind,
};

use crate::dtype::{DType, Scalar};
use crate::facts::{Facts, Recorder};
use crate::host::{Host, HostValue, JitFunction};
use crate::library;
use crate::signature::{ArgSpec, ArgType, Signature};
use crate::value::{Tensor, TensorDescriptor, TupleValue, Value};

/// An error on its way out; boxed because results are returned often and errors once.
pub type Error = Box<Diagnostic>;
/// What evaluation gives.
pub type Eval<T> = Result<T, Error>;

/// The variables of a function, in the order of their definition.
pub type Scope = IndexMap<Name, Value, FxBuildHasher>;

/// A value of the host that went into the module as a constant.
#[derive(Debug, Clone)]
pub struct Captured {
    /// The function whose source names it.
    pub function: Arc<JitFunction>,
    /// The name, with attributes after it where it was reached through a module (`config.BLOCK`).
    pub path: Vec<Arc<str>>,
    /// The value.
    pub value: HostValue,
}

/// A module and what it was made from.
#[derive(Debug)]
pub struct Built {
    /// The `tt` module: the kernel, public, and its `noinline` callees.
    pub module: Module,
    /// The kernel's name in the module.
    pub name: String,
    /// Values of the host that are constants in the module.
    pub captured: Vec<Captured>,
    /// All that the module was made from besides options and the library, which the compiler's build holds: what a cache
    /// key is made of.
    pub facts: Facts,
    /// The jit functions that the kernel is made of, itself first. Functions of the library are not listed.
    pub functions: Vec<Arc<JitFunction>>,
    /// What `tl.static_print` printed.
    pub printed: String,
}

impl Built {
    /// Calls the kernel otherwise. What symbols cannot hold becomes `_`.
    pub fn rename(&mut self, name: &str) {
        let may = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let start = if name.starts_with(|c: char| c.is_ascii_digit()) { "_" } else { "" };
        let name: String = start.chars().chain(name.chars().map(|c| if may(c) { c } else { '_' })).collect();
        if name.is_empty() || self.module.function(&name).is_some() {
            return;
        }
        if let Some(kernel) = self.module.function(&self.name) {
            let symbol = self.module.attr(AttrKind::Str(name.as_str().into()));
            self.module.set_attr(kernel, "sym_name", symbol);
            self.name = name;
        }
    }
}

/// Why a name is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lost {
    /// It is there on some paths only.
    Because(&'static str),
    /// The two sides of a branch leave values of two types: what is said to those who read it.
    TwoTypes(Arc<str>),
}

/// One function under evaluation.
pub(crate) struct Frame {
    pub function: Arc<JitFunction>,
    pub scope: Scope,
    /// Runs while the kernel is evaluated, not with it: assignments and returns keep constants.
    pub constexpr: bool,
    /// Where the function was called, for locations and messages.
    pub call: Option<(Loc, TextRange)>,
    /// Names that exist only on some paths, with why, for messages.
    pub lost: FxHashMap<Name, Lost>,
    /// How many run-time loops are open.
    pub loops: u32,
    /// Arguments by kind and value, to tell a recursion from a call with other constants.
    pub specialization: String,
    /// The extents of the threads that run it, in a function in MLIR: values have an element for each of them.
    pub threads: Option<[u32; 3]>,
    /// How many branches are open that only some of these threads take.
    pub masked: u32,
    /// What a return in a loop gives, for which a variable must be there before the loop.
    pub wanted_result: Option<Value>,
    /// A side of an `if` that has returned had to leave a variable in whose place nothing can stand, a buffer or a descriptor.
    pub unjoinable: bool,
    /// Evaluating a parameter's default: globals are free.
    pub in_default: bool,
    locs: FxHashMap<TextSize, Loc>,
}

pub(crate) struct Evaluator<'h> {
    /// A [`Recorder`] in front of the caller's host.
    pub host: &'h dyn Host,
    pub module: Module,
    pub options: &'h Options,
    /// What is compiled for, by its name.
    pub target: Option<&'h str>,
    pub block: Block,
    /// The node under evaluation, for locations and messages.
    pub range: TextRange,
    pub frames: Vec<Frame>,
    pub captured: Vec<Captured>,
    pub functions: Vec<Arc<JitFunction>>,
    pub printed: String,
    /// Whether integer arithmetic is checked for overflow in debugging (off for `tl.add(…, sanitize_overflow=False)`).
    pub sanitize_overflow: bool,
    /// Whether the condition of the `while` under evaluation asks for nothing to leave the loop.
    pub loop_stays: bool,
    /// Emitted `noinline` functions by specialization, with what they return.
    pub noinline: FxHashMap<String, (String, Value)>,
    /// The partition of a `tle.gpu.warp_specialize` that is evaluated.
    pub partition: Option<builtins::partitions::InPartition>,
    /// The ends of pipes that have been used, each with its partition.
    pub pipe_ends: Vec<builtins::pipe::UsedEnd>,
    /// The kernel and its first block.
    pub kernel: Option<(tilewright_ir::Op, Block)>,
    /// What its meshes have come to.
    pub meshes: builtins::mesh::Meshes,
    /// The buffers that the function in MLIR under evaluation has written to.
    pub written_memory: Vec<tilewright_ir::Value>,
    /// The arguments that the last call of `tle.raw.call` wrote, by their numbers, with their new values.
    pub written: Vec<(usize, Value)>,
    /// Whether that call gives something else, so that its arguments alone have these.
    pub written_beside: bool,
    /// What the `with` statements around say of copies, the innermost last.
    pub hints: Vec<builtins::dsa::Hints>,
    /// What is wrong with the first type that may not be, found where no error can be given.
    refused: Option<Error>,
    /// Statements and expressions evaluated so far.
    steps: u64,
}

/// The functions of the library whose operations have their caller's location.
const RANKS_MODULE: &str = "tilewright.tle._ranks";
/// What the modules begin with whose functions are operations of MLIR.
const MLIR_MODULES: &str = "tilewright.tle.raw.mlir";

/// Operations that a kernel may be made of. Passes, LLVM and `ptxas` take longer than in proportion to it; a kernel of
/// this size is some hundred times a large one.
pub(crate) const MAX_OPS: usize = 250_000;

/// Statements and expressions that may be evaluated: calls and loops at compile time multiply them.
const MAX_STEPS: u64 = 5_000_000;

/// Steps after which the limits are looked at.
const STEPS_BETWEEN_CHECKS: u64 = 256;

/// Callers that an error names on each side of those that it leaves out.
const CALLERS_SHOWN: usize = 8;

/// A builder at the evaluator's place.
macro_rules! builder {
    ($eval:expr) => {{
        let (block, loc) = ($eval.block, $eval.loc());
        tilewright_ir::Builder::at(&mut $eval.module, tilewright_ir::InsertPoint::End(block), loc)
    }};
}
pub(crate) use builder;

impl Evaluator<'_> {
    pub fn frame(&self) -> &Frame {
        self.frames.last().expect("a function is under evaluation")
    }

    pub fn frame_mut(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("a function is under evaluation")
    }

    /// Counts a statement or an expression.
    ///
    /// # Errors
    /// A kernel that would never be done; a host that no longer waits for it.
    #[inline]
    pub fn step(&mut self) -> Eval<()> {
        self.steps += 1;
        if self.steps.is_multiple_of(STEPS_BETWEEN_CHECKS) { self.check_limits() } else { Ok(()) }
    }

    #[cold]
    fn check_limits(&self) -> Eval<()> {
        if self.host.interrupted() {
            return Err(self.error("the compilation was interrupted").of(Kind::Interrupted).into());
        }
        let hint = "calls are inlined, and loops over tl.static_range unrolled: each time counts. Loop at run time \
                    with range, or split the kernel";
        if self.module.num_ops() > MAX_OPS {
            let message = format!("here the kernel becomes larger than {MAX_OPS} operations");
            return Err(self.error(message).note(hint).into());
        }
        if self.steps > MAX_STEPS {
            let message = format!("evaluating the kernel takes more than {MAX_STEPS} steps");
            return Err(self.error(message).note(hint).into());
        }
        Ok(())
    }

    /// The location of the node under evaluation, with the calls that led to it.
    pub fn loc(&mut self) -> Loc {
        let at = self.range.start();
        let frame = self.frames.last_mut().expect("a function is under evaluation");
        // Waiting for other devices, or an operation of MLIR, is what the author's line does.
        let module = &*frame.function.module;
        if let Some((caller, _)) = frame.call
            && (module == RANKS_MODULE || module.starts_with(MLIR_MODULES))
        {
            return caller;
        }
        if let Some(&loc) = frame.locs.get(&at) {
            return loc;
        }
        let (line, column) = frame.function.source.line_col(at);
        let file = frame.function.source.file.to_string();
        let mut loc = self.module.loc(LocKind::File { file, line, column });
        if let Some((caller, _)) = frame.call {
            loc = self.module.loc(LocKind::CallSite { callee: loc, caller });
        }
        frame.locs.insert(at, loc);
        loc
    }

    /// Tells the user of something at the current place that compiles but is not what it says.
    pub fn warn(&self, message: &str) {
        let at = self.frame().function.source.span(self.range);
        self.host.warn(message, &at);
    }

    /// An error at the node under evaluation. Inside the library it is shown at the author's call.
    pub fn error(&self, message: impl Into<String>) -> Error {
        let mut diagnostic = Diagnostic::new(message);
        let mut range = self.range;
        let mut library_function = None;
        for frame in self.frames.iter().rev() {
            let in_library = frame.function.module.starts_with(library::PACKAGE);
            if in_library && frame.call.is_some() {
                library_function = Some((frame.function.clone(), range));
            } else {
                let span = frame.function.source.span(range);
                match diagnostic.span {
                    None => diagnostic.span = Some(span),
                    Some(_) => diagnostic.callers.push(span),
                }
            }
            match frame.call {
                Some((_, call)) => range = call,
                None => break,
            }
        }
        if let Some((function, range)) = library_function {
            let (line, _) = function.source.line_col(range.start());
            diagnostic.notes.push(format!("in tl.{} ({}:{line})", function.name, function.source.file));
        }
        let count = diagnostic.callers.len();
        if count > 2 * CALLERS_SHOWN + 1 {
            diagnostic.callers.drain(CALLERS_SHOWN..count - CALLERS_SHOWN);
            let left = count - 2 * CALLERS_SHOWN;
            diagnostic
                .notes
                .push(format!("{left} more calls lie between the first {CALLERS_SHOWN} and the others"));
        }
        Box::new(diagnostic)
    }

    /// The IR type of an element type.
    pub fn element_type(&mut self, dtype: &DType) -> Type {
        match dtype {
            DType::Scalar(s) => self.scalar_type(*s),
            DType::Pointer(p) => {
                let pointee = self.element_type(&p.element);
                self.module.ty(TypeKind::Ptr { pointee, address_space: p.address_space })
            }
            DType::Block(b) => {
                let shape: Vec<u32> = b.1.iter().map(|&n| n as u32).collect();
                self.ir_type(&b.0, &shape)
            }
        }
    }

    fn scalar_type(&mut self, scalar: Scalar) -> Type {
        if scalar.is_fp8() && self.refused.is_none() {
            self.refused = self.unsupported_fp8(scalar);
        }
        match (scalar.format(), scalar) {
            (Some(kind), _) => self.module.ty(TypeKind::Float(kind)),
            (None, Scalar::Void) => Type::I32,
            (None, _) => self.module.ty(TypeKind::Int(scalar.bits() as u16)),
        }
    }

    /// The error where the option `supported_fp8_dtypes` leaves an 8-bit float out.
    fn unsupported_fp8(&self, dtype: Scalar) -> Option<Error> {
        let supported = self.options.supported_fp8_dtypes?;
        if supported.words().any(|name| name == dtype.name()) {
            return None;
        }
        let names: Vec<_> = supported.words().map(|name| format!("'{name}'")).collect();
        let message = format!(
            "type {dtype} not supported in this architecture. The supported fp8 dtypes are ({})",
            names.join(", ")
        );
        let mut error =
            self.error(message).note("the option `supported_fp8_dtypes` of this compilation lists them");
        error.of_builtin = true;
        Some(error.into())
    }

    /// The IR type of a tensor, or of a scalar for an empty shape.
    pub fn ir_type(&mut self, dtype: &DType, shape: &[u32]) -> Type {
        let element = self.element_type(dtype);
        if shape.is_empty() { element } else { self.module.tensor_type(shape, element, None) }
    }

    pub(crate) fn enter(
        &mut self,
        function: &Arc<JitFunction>,
        scope: Scope,
        call: Option<(Loc, TextRange)>,
        specialization: String,
    ) {
        if !function.module.starts_with(library::PACKAGE) && !self.functions.contains(function) {
            self.functions.push(function.clone());
        }
        self.frames.push(Frame {
            function: function.clone(),
            scope,
            constexpr: false,
            call,
            lost: FxHashMap::default(),
            loops: 0,
            specialization,
            threads: None,
            masked: 0,
            wanted_result: None,
            unjoinable: false,
            in_default: false,
            locs: FxHashMap::default(),
        });
    }

    /// Creates a function with these parameters and moves into its body.
    pub(crate) fn begin_function(&mut self, name: &str, inputs: &[Type], public: bool) -> tilewright_ir::Op {
        let function_type = self.module.ty(TypeKind::Function { inputs: inputs.to_vec(), results: vec![] });
        let (body, loc) = (self.module.body(), self.loc());
        let mut b = Builder::at(&mut self.module, InsertPoint::End(body), loc);
        let visibility = if public { "public" } else { "private" };
        let func =
            tt::Func::build(&mut b, name.to_string(), function_type, Some(visibility.to_string()), None);
        let noinline = self.module.attr(AttrKind::Bool(!public));
        self.module.set_attr(func.0, "noinline", noinline);
        let region = func.body(&self.module);
        self.block = self.module.append_block(region, inputs);
        func.0
    }

    fn kernel_argument(
        &mut self,
        spec: &ArgSpec,
        values: &mut std::vec::IntoIter<tilewright_ir::Value>,
    ) -> Value {
        match &spec.ty {
            ArgType::Constant(value) => Value::from_host(value.clone()),
            ArgType::Value(dtype) => match values.next() {
                Some(value) => Value::Tensor(Tensor::scalar(value, dtype.clone())),
                None => Value::NONE,
            },
            ArgType::Descriptor { element, block, .. } => {
                let mut scalar = |dtype: Scalar| match values.next() {
                    Some(value) => Tensor::scalar(value, dtype),
                    None => unreachable!("an SSA value for each part of a descriptor"),
                };
                let mut handle = scalar(*element);
                handle =
                    builtins::descriptor::descriptor_handle(handle.value, (*element).into(), block, false);
                let shape = block.iter().map(|_| scalar(Scalar::Int32)).collect();
                let strides = block.iter().map(|_| scalar(Scalar::Int64)).collect();
                Value::Descriptor(Arc::new(TensorDescriptor { handle, shape, strides }))
            }
            ArgType::Tuple(items) | ArgType::NamedTuple(_, items) => {
                let class = match &spec.ty {
                    ArgType::NamedTuple(class, _) => Some(class.clone()),
                    _ => None,
                };
                let items = items.iter().map(|item| self.kernel_argument(item, values)).collect();
                Value::Tuple(Arc::new(TupleValue { class, items }))
            }
        }
    }

    /// What is known of a kernel's argument: a power of two that divides it, and for a descriptor that what lies outside
    /// reads as NaN.
    fn promises(&mut self, divisibility: Option<u32>, nan: bool) -> tilewright_ir::Attr {
        let mut dict = Vec::new();
        if let Some(n) = divisibility {
            dict.push(("tt.divisibility".into(), self.module.attr(AttrKind::Int(i64::from(n), Type::I32))));
        }
        if nan {
            dict.push(("tt.padding".into(), self.module.attr(AttrKind::Int(2, Type::I32))));
        }
        self.module.attr(AttrKind::Dict(dict))
    }

    /// What is said of each argument of a kernel.
    fn arg_attrs(&self, func: tilewright_ir::Op) -> Vec<tilewright_ir::Attr> {
        match self.module.op_attr(func, "arg_attrs").map(|a| self.module.attr_kind(a)) {
            Some(AttrKind::Array(all)) => all.clone(),
            _ => Vec::new(),
        }
    }

    fn set_arg_attrs(&mut self, func: tilewright_ir::Op, all: Vec<tilewright_ir::Attr>) {
        let all = self.module.attr(AttrKind::Array(all));
        self.module.set_attr(func, "arg_attrs", all);
    }

    fn build_kernel(&mut self, entry: &Arc<JitFunction>, signature: &Signature) -> Eval<String> {
        let def = entry.definition()?.clone();
        self.range = def.name.range;
        self.enter(entry, Scope::default(), None, String::new());
        self.check_kernel(&def)?;
        self.begin_warp_level(signature)?;
        let params: Vec<_> = def.parameters.iter_non_variadic_params().collect();
        if params.len() != signature.args.len() {
            return Err(self
                .error(format!(
                    "`{}` has {} parameters but the signature has {} arguments",
                    entry.name,
                    params.len(),
                    signature.args.len()
                ))
                .note("the signature needs one entry for each parameter, constants included (128)")
                .into());
        }
        // Run-time arguments, flattened, with their attributes.
        fn leaves<'a>(args: &'a [ArgSpec], out: &mut Vec<&'a ArgSpec>) {
            for arg in args {
                match &arg.ty {
                    ArgType::Value(_) | ArgType::Descriptor { .. } => out.push(arg),
                    ArgType::Tuple(items) | ArgType::NamedTuple(_, items) => leaves(items, out),
                    ArgType::Constant(_) => {}
                }
            }
        }
        let mut flat = Vec::new();
        leaves(&signature.args, &mut flat);
        let mut inputs = Vec::with_capacity(flat.len());
        let mut attrs = Vec::with_capacity(flat.len());
        for arg in &flat {
            match &arg.ty {
                ArgType::Value(dtype) => {
                    inputs.push(self.element_type(dtype));
                    attrs.push(self.promises(arg.divisibility, false));
                }
                ArgType::Descriptor { element, block, nan } => {
                    self.check_descriptor_block(&(*element).into(), block)?;
                    inputs.push(self.descriptor_type(&(*element).into(), block));
                    attrs.push(self.promises(None, *nan));
                    let (last, rank) = (block.len() - 1, block.len());
                    inputs.extend(std::iter::repeat_n(Type::I32, rank));
                    attrs.extend(
                        (0..rank).map(|d| self.promises(arg.divisibility.filter(|_| d == last), false)),
                    );
                    // All strides but the last are multiples of 16 bytes.
                    let whole = 128 / element.bits();
                    inputs.extend(std::iter::repeat_n(Type::I64, rank));
                    attrs.extend((0..rank).map(|d| self.promises((d != last).then_some(whole), false)));
                }
                _ => {}
            }
        }
        let name = entry.name.rsplit('.').next().unwrap_or(&entry.name).to_string();
        let func = self.begin_function(&name, &inputs, true);
        self.kernel = Some((func, self.block));
        self.set_arg_attrs(func, attrs);
        let mut values = self.module.block_args(self.block).to_vec().into_iter();
        for (param, spec) in params.iter().zip(&signature.args) {
            let value = self.kernel_argument(spec, &mut values);
            self.call_by_name(&value, &param.parameter.name.id);
            self.frame_mut().scope.insert(param.parameter.name.id.clone(), value);
        }
        let result = self.run_function(&def.body)?;
        self.range = def.name.range;
        if !result.is_none() {
            return Err(self
                .error(format!("the kernel `{name}` returns {result}, but a kernel has no result"))
                .note("store results through a pointer argument with tl.store")
                .into());
        }
        self.check_clusters()?;
        self.end_together()?;
        let mut b = builder!(self);
        tt::Return::build(&mut b, &[]);
        tilewright_ir::warp_uniformity::check(&self.module).map_err(|error| error.with_source_files())?;
        Ok(name)
    }
}

/// Compiles `entry` for the given arguments to a `tt` module, for no target in particular.
pub fn build_module(
    host: &dyn Host,
    entry: &Arc<JitFunction>,
    signature: &Signature,
    options: &Options,
) -> Result<Built, Diagnostic> {
    build_module_for(host, entry, signature, options, None)
}

/// Compiles `entry` for the given arguments to a `tt` module. Kernels that ask for the target are told this one (`cuda:90`).
pub fn build_module_for(
    host: &dyn Host,
    entry: &Arc<JitFunction>,
    signature: &Signature,
    options: &Options,
    target: Option<&str>,
) -> Result<Built, Diagnostic> {
    let module = Module::new();
    let block = module.body();
    let recorder = Recorder::new(host);
    recorder.entry(entry, &signature.args);
    let mut eval = Evaluator {
        host: &recorder,
        module,
        options,
        target,
        block,
        range: TextRange::default(),
        frames: Vec::new(),
        captured: Vec::new(),
        functions: Vec::new(),
        printed: String::new(),
        loop_stays: false,
        sanitize_overflow: options.sanitize_overflow,
        noinline: FxHashMap::default(),
        partition: None,
        pipe_ends: Vec::new(),
        kernel: None,
        meshes: Default::default(),
        written_memory: Vec::new(),
        written: Vec::new(),
        written_beside: false,
        hints: Vec::new(),
        refused: None,
        steps: 0,
    };
    let name = eval.build_kernel(entry, signature);
    if let Some(error) = eval.refused.take() {
        return Err(*error);
    }
    let name = name.map_err(|e| *e)?;
    let Evaluator { module, captured, functions, printed, .. } = eval;
    Ok(Built { module, name, captured, facts: recorder.into_facts(), functions, printed })
}
