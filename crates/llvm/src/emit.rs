//! Hands a [`Module`] to LLVM, runs a short pass list and returns the target's assembly.
//!
//! Every compile has its own LLVM context, so that compiles run on many threads at once. Blocks are emitted in reverse
//! post-order, in which definitions come before uses; only live instructions are emitted.

use crate::guard::{Diagnostics, on_own_thread};
use crate::program::*;
use crate::ty::{Scalar, Ty};
use inkwell::OptimizationLevel;
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::context::Context;
use inkwell::llvm_sys::bit_reader::LLVMGetBitcodeModuleInContext2;
use inkwell::llvm_sys::core::*;
use inkwell::llvm_sys::debuginfo::*;
use inkwell::llvm_sys::prelude::*;
use inkwell::llvm_sys::{LLVMInlineAsmDialect, LLVMIntPredicate, LLVMLinkage, LLVMOpcode, LLVMRealPredicate};
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::module::Linkage;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{
    CodeModel, FileType, InitializationConfig, RelocMode, Target, TargetMachine, TargetTriple,
};
use inkwell::types::BasicTypeEnum;
use inkwell::values::FunctionValue;
use rustc_hash::FxHashMap;
use std::ffi::{CString, c_char, c_uint};
use std::sync::Once;
use std::time::{Duration, Instant};

/// The NVPTX kernel calling convention.
const PTX_KERNEL: c_uint = 71;
/// `DICompileUnit::DebugDirectivesOnly`: `.loc` lines and no DWARF sections. LLVM's C enumeration lacks it.
const DEBUG_DIRECTIVES_ONLY: c_uint = 3;

/// Why LLVM did not produce code. Each is a defect of the compiler or of its installation, not of a user's kernel.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The LLVM library has no such target.
    #[error("LLVM has no target {triple} ({message}); is LLVM 19 built with the NVPTX target?")]
    Target {
        /// The triple asked for.
        triple: String,
        /// LLVM's words.
        message: String,
    },
    /// The module is malformed.
    #[error("LLVM rejects the generated module: {0}")]
    Verify(String),
    /// A bitcode library cannot be used.
    #[error("the device libraries cannot be linked: {0}")]
    Library(String),
    /// Code of the author's own cannot be used.
    #[error("{0}")]
    Code(String),
    /// IR that was given is none.
    #[error("the LLVM IR that takes the place of the kernel's cannot be read: {0}")]
    Given(String),
    /// A pass or the code generator failed.
    #[error("LLVM's {stage} failed: {message}")]
    Codegen {
        /// `passes` or `code generator`.
        stage: &'static str,
        /// LLVM's words.
        message: String,
    },
    /// LLVM gave up.
    #[error("LLVM cannot compile the module: {0}")]
    Fatal(String),
}

/// How hard LLVM's code generator works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodegenLevel {
    /// It translates.
    None,
    /// The cheap optimizations.
    Less,
    /// The usual ones.
    Default,
}

/// What to compile for, and how hard.
#[derive(Debug, Clone)]
pub struct EmitOptions {
    /// For example `nvptx64-nvidia-cuda`.
    pub triple: String,
    /// For example `sm_90a`.
    pub cpu: String,
    /// For example `+ptx80`.
    pub features: String,
    /// LLVM's pass pipeline in its text form; empty runs none.
    pub passes: String,
    /// How hard the code generator works.
    pub level: CodegenLevel,
    /// Whether separate multiplications and additions may become fused ones.
    pub fp_contract: bool,
    /// Whether LLVM's verifier checks the module first.
    pub verify: bool,
    /// Whether [`Output::llvm_ir`] is wanted.
    pub keep_ir: bool,
    /// LLVM IR that takes the place of the module's when the passes have run, as text.
    pub given_ir: Option<String>,
    /// Where functions come from that the module calls and does not define.
    pub libraries: Libraries,
}

/// Libraries to link in.
#[derive(Debug, Clone, Default)]
pub struct Libraries {
    /// LLVM bitcode or its text, each with its name for messages; what of it is not called is dropped.
    pub bitcode: Vec<(String, Vec<u8>)>,
    /// Functions that one of them must define. Others that nobody defines are the system's.
    pub wanted: Vec<String>,
    /// Code of the author's own, of each of which one function is called.
    pub code: Vec<Code>,
}

/// LLVM IR as text, of which the module calls one function.
#[derive(Debug, Clone)]
pub struct Code {
    /// What it is, for messages.
    pub name: String,
    /// The text.
    pub text: String,
    /// The function.
    pub symbol: String,
    /// The name by which the module calls it.
    pub called: String,
}

/// What a function takes and gives: the fields of a structure where that is what it returns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// Types of the parameters.
    pub params: Vec<Ty>,
    /// Types of the results.
    pub results: Vec<Ty>,
}

/// The signature of a function of LLVM IR text.
///
/// # Errors
/// The text is no LLVM IR, it does not define the function, or that has types which kernels have no values of.
pub fn signature(text: &str, symbol: &str) -> Result<Signature, Error> {
    initialize();
    let (text, symbol) = (text.to_string(), symbol.to_string());
    let read = move || {
        let failed = Error::Code;
        let context = Context::create();
        let buffer = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), &symbol);
        let module = context.create_module_from_ir(buffer).map_err(|e| failed(e.to_string()))?;
        let defined = module.get_function(&symbol).filter(|f| f.count_basic_blocks() > 0);
        let function =
            defined.ok_or_else(|| failed(format!("it defines no function `@{symbol}`")))?.get_type();
        let read = |ty: String| {
            Ty::of_llvm(&ty).ok_or_else(|| {
                failed(format!("`@{symbol}` has the type {ty}, of which kernels have no values"))
            })
        };
        let params = function.get_param_types().into_iter().map(|ty| read(ty.print_to_string().to_string()));
        let params = params.collect::<Result<_, _>>()?;
        let results = match function.get_return_type() {
            None => Vec::new(),
            Some(BasicTypeEnum::StructType(fields)) => {
                let fields =
                    fields.get_field_types().into_iter().map(|ty| read(ty.print_to_string().to_string()));
                fields.collect::<Result<_, _>>()?
            }
            Some(one) => vec![read(one.print_to_string().to_string())?],
        };
        Ok(Signature { params, results })
    };
    on_own_thread(read).unwrap_or_else(|message| Err(Error::Fatal(message)))
}

/// The passes that pay on our IR. The builder has already folded, merged and hoisted; what is left for LLVM is the
/// bit-level peephole work of instcombine and the blocks that constant branches leave behind.
pub const PASSES: &str = "function(instcombine<no-verify-fixpoint>,simplifycfg,early-cse)";

impl Default for EmitOptions {
    fn default() -> Self {
        EmitOptions {
            triple: "nvptx64-nvidia-cuda".into(),
            cpu: "sm_80".into(),
            features: "+ptx70".into(),
            passes: PASSES.into(),
            level: CodegenLevel::Default,
            fp_contract: true,
            verify: cfg!(debug_assertions),
            keep_ir: true,
            given_ir: None,
            libraries: Libraries::default(),
        }
    }
}

/// Wall time of each step.
#[derive(Debug, Clone, Copy, Default)]
pub struct Timing {
    /// Building LLVM's module.
    pub build: Duration,
    /// Passes.
    pub passes: Duration,
    /// Code generation.
    pub codegen: Duration,
    /// Printing LLVM IR.
    pub print: Duration,
}

/// A compiled module.
#[derive(Debug, Clone)]
pub struct Output {
    /// LLVM IR after the passes (empty unless asked for).
    pub llvm_ir: String,
    /// The target's assembly.
    pub assembly: String,
    /// LLVM instructions handed over, before any pass.
    pub instructions: usize,
    /// Where the time went.
    pub timing: Timing,
}

fn initialize() {
    static INIT: Once = Once::new();
    INIT.call_once(|| {
        // 32-bit pointers to shared, constant and local memory: half the address registers. No loop strength reduction: it
        // would give each pointer of a loop a register and an addition of its own again (`shared_steps`), from which it
        // subtracts what the first iteration is ahead.
        let args = [c"tilewright".as_ptr(), c"-nvptx-short-ptr".as_ptr(), c"-disable-lsr".as_ptr()];
        // SAFETY: the strings are static and nul-terminated; runs once, before any target machine exists.
        unsafe {
            inkwell::llvm_sys::support::LLVMParseCommandLineOptions(
                args.len() as i32,
                args.as_ptr(),
                std::ptr::null(),
            );
        }
        Target::initialize_nvptx(&InitializationConfig::default());
    });
}

/// Compiles a module. Whatever LLVM has against it comes back as an error (`guard.rs` says how).
pub fn compile(module: Module, options: EmitOptions) -> Result<Output, Error> {
    initialize();
    on_own_thread(move || translate(&module, &options)).unwrap_or_else(|message| Err(Error::Fatal(message)))
}

fn translate(module: &Module, options: &EmitOptions) -> Result<Output, Error> {
    let start = Instant::now();
    let diagnostics = Diagnostics::default();
    let context = Context::create();
    // SAFETY: the context is dropped before the diagnostics, which stay where they are.
    let listen = || unsafe { diagnostics.listen(context.raw()) };
    listen();
    let complaint = |stage| match diagnostics.take() {
        Some(message) => Err(Error::Codegen { stage, message }),
        None => Ok(()),
    };
    let triple = TargetTriple::create(&options.triple);
    let target_error = |message: String| Error::Target { triple: options.triple.clone(), message };
    let target = Target::from_triple(&triple).map_err(|e| target_error(e.to_string()))?;
    let level = match options.level {
        CodegenLevel::None => OptimizationLevel::None,
        CodegenLevel::Less => OptimizationLevel::Less,
        CodegenLevel::Default => OptimizationLevel::Default,
    };
    let machine: TargetMachine = target
        .create_target_machine(
            &triple,
            &options.cpu,
            &options.features,
            level,
            RelocMode::Default,
            CodeModel::Default,
        )
        .ok_or_else(|| target_error(format!("no machine for {} {}", options.cpu, options.features)))?;

    let llvm = context.create_module(&module.name);
    llvm.set_triple(&triple);
    llvm.set_data_layout(&machine.get_target_data().get_data_layout());
    let mut emitter = Emitter::new(module, context.raw(), llvm.as_mut_ptr(), options);
    for function in &module.functions {
        emitter.function(function);
    }
    let instructions = emitter.count;
    emitter.forget_unused();
    emitter.finish();
    let mut passes = options.passes.clone();
    if !options.libraries.bitcode.is_empty() || !options.libraries.code.is_empty() {
        for code in &options.libraries.code {
            link_code(&context, &llvm, code)?;
        }
        link_libraries(&context, &llvm, &options.libraries, &diagnostics)?;
        listen(); // linking put a listener of its own there
        // What asks about flushing (`__nvvm_reflect`) is answered, calls are expanded, and the rest goes.
        passes = [LIBRARY_PASSES, &passes].join(",").trim_end_matches(',').to_string();
    }
    let mut timing = Timing { build: start.elapsed(), ..Timing::default() };
    if options.verify {
        llvm.verify().map_err(|e| Error::Verify(format!("{e}\n{}", llvm.print_to_string())))?;
    }

    let start = Instant::now();
    if !passes.is_empty() {
        let pass_options = PassBuilderOptions::create();
        llvm.run_passes(&passes, &machine, pass_options)
            .map_err(|e| Error::Codegen { stage: "passes", message: e.to_string() })?;
        complaint("passes")?;
    }
    timing.passes = start.elapsed();
    let llvm = match &options.given_ir {
        Some(text) => {
            let buffer = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "given");
            let given = context.create_module_from_ir(buffer).map_err(|e| Error::Given(e.to_string()))?;
            listen(); // reading put a listener of its own there
            given.verify().map_err(|e| Error::Given(e.to_string()))?;
            given.set_triple(&triple);
            given.set_data_layout(&machine.get_target_data().get_data_layout());
            given
        }
        None => llvm,
    };

    let start = Instant::now();
    let llvm_ir = if options.keep_ir { text(llvm.print_to_string().to_bytes()) } else { String::new() };
    timing.print = start.elapsed();

    let start = Instant::now();
    let buffer = machine
        .write_to_memory_buffer(&llvm, FileType::Assembly)
        .map_err(|e| Error::Codegen { stage: "code generator", message: e.to_string() })?;
    complaint("code generator")?;
    let bytes = buffer.as_slice();
    let mut assembly = text(bytes.strip_suffix(b"\0").unwrap_or(bytes));
    for function in &module.functions {
        require_cluster(&mut assembly, function);
    }
    timing.codegen = start.elapsed();
    Ok(Output { llvm_ir, assembly, instructions, timing })
}

/// Says how many CTAs a kernel's clusters have, for which LLVM 19 has no annotation; and that it is launched in clusters, without which `ptxas` asks before
/// each barrier of the cluster (PTX ISA, ".explicitcluster").
fn require_cluster(assembly: &mut String, function: &Function) {
    let Some(attrs) = function.kernel.as_ref().filter(|k| k.cluster.iter().product::<u32>() > 1) else {
        return;
    };
    let [x, y, z] = attrs.cluster;
    let entry = assembly.find(&format!(".entry {}(", function.name));
    if let Some(body) = entry.and_then(|at| Some(at + assembly[at..].find("\n{")?)) {
        assembly.insert_str(body, &format!("\n.explicitcluster\n.reqnctapercluster {x}, {y}, {z}"));
    }
}

/// Passes over what a library brought.
const LIBRARY_PASSES: &str =
    "globaldce,function(nvvm-reflect),always-inline,inline,globaldce,function(simplifycfg)";

/// Adds code of the author's own: the function that is called, under the name that it is called by, and what that needs, which no other
/// code sees.
fn link_code<'c>(
    context: &'c Context,
    module: &inkwell::module::Module<'c>,
    code: &Code,
) -> Result<(), Error> {
    let failed = |what: String| Error::Code(format!("{}: {what}", code.name));
    let buffer = MemoryBuffer::create_from_memory_range_copy(code.text.as_bytes(), &code.name);
    let own = context.create_module_from_ir(buffer).map_err(|e| failed(e.to_string()))?;
    own.verify().map_err(|e| failed(e.to_string()))?;
    own.set_triple(&module.get_triple());
    own.set_data_layout(&module.get_data_layout());
    for global in own.get_globals().filter(|g| g.get_initializer().is_some()) {
        global.set_linkage(Linkage::Internal);
    }
    for function in own.get_functions().filter(|f| f.count_basic_blocks() > 0) {
        // What another compiler was told of the target would keep it from being inlined.
        for attribute in ["target-cpu", "target-features"] {
            function.remove_string_attribute(AttributeLoc::Function, attribute);
        }
        if function.get_name().to_bytes() == code.symbol.as_bytes() {
            function.as_global_value().set_name(&code.called);
            function.set_linkage(Linkage::External);
            function.set_call_conventions(0);
        } else {
            function.set_linkage(Linkage::Internal);
        }
    }
    module.link_in_module(own).map_err(|e| failed(e.to_string()))?;
    match module.get_function(&code.called).filter(|f| f.count_basic_blocks() > 0) {
        Some(function) => {
            let kind = Attribute::get_named_enum_kind_id("alwaysinline");
            function.add_attribute(AttributeLoc::Function, context.create_enum_attribute(kind, 0));
            function.set_linkage(Linkage::Internal);
            Ok(())
        }
        None => Err(failed(format!("it defines no function `@{}`", code.symbol))),
    }
}

/// A library, of which bitcode is read where it is needed.
fn read_library<'c>(
    context: &'c Context,
    name: &str,
    bitcode: &[u8],
) -> Result<inkwell::module::Module<'c>, String> {
    let buffer = MemoryBuffer::create_from_memory_range_copy(bitcode, name);
    if !bitcode.starts_with(b"BC") {
        return context.create_module_from_ir(buffer).map_err(|e| e.to_string());
    }
    let mut module = std::ptr::null_mut();
    // SAFETY: the module owns the buffer from now on, whether it can be read or not; it is of this context.
    unsafe {
        let read = LLVMGetBitcodeModuleInContext2(context.raw(), buffer.as_mut_ptr(), &mut module);
        std::mem::forget(buffer);
        match read {
            0 => Ok(inkwell::module::Module::new(module)),
            _ => Err("it is no bitcode that LLVM 19 reads".into()),
        }
    }
}

/// Adds the definitions of libraries, as functions that the module alone can see.
fn link_libraries<'c>(
    context: &'c Context,
    module: &inkwell::module::Module<'c>,
    libraries: &Libraries,
    diagnostics: &Diagnostics,
) -> Result<(), Error> {
    for (name, bitcode) in &libraries.bitcode {
        let failed = |what: String| Error::Library(format!("{name}: {what}"));
        let library =
            read_library(context, name, bitcode).map_err(|e| failed(diagnostics.take().unwrap_or(e)))?;
        library.set_triple(&module.get_triple());
        library.set_data_layout(&module.get_data_layout());
        let mut defined = Vec::new();
        let is_defined = |f: &FunctionValue<'c>| !f.as_global_value().is_declaration();
        for function in library.get_functions().filter(is_defined) {
            let symbol = function.get_name().to_string_lossy().into_owned();
            // A call with other types than the definition's would mean nothing.
            if let Some(called) = module.get_function(&symbol)
                && called.count_basic_blocks() == 0
                && called.get_type() != function.get_type()
            {
                let (is, called) = (function.get_type(), called.get_type());
                let text = |ty: inkwell::types::FunctionType<'c>| ty.print_to_string().to_string();
                return Err(failed(format!("`{symbol}` is {}, and is called as {}", text(is), text(called))));
            }
            // What nobody calls is not linked, and never read.
            if function.get_linkage() != Linkage::Internal {
                function.set_linkage(Linkage::LinkOnceODR);
            }
            // What another compiler was told of the target would keep it from being inlined.
            for attribute in ["target-cpu", "target-features"] {
                function.remove_string_attribute(AttributeLoc::Function, attribute);
            }
            defined.push(symbol);
        }
        module.link_in_module(library).map_err(|e| failed(e.to_string()))?;
        for symbol in defined {
            if let Some(function) = module.get_function(&symbol) {
                function.set_linkage(Linkage::Internal);
            }
        }
    }
    let defined = |symbol: &str| module.get_function(symbol).is_some_and(|f| f.count_basic_blocks() > 0);
    match libraries.wanted.iter().find(|symbol| !defined(symbol)) {
        Some(symbol) => Err(Error::Library(format!("none has a function `{symbol}`"))),
        None => Ok(()),
    }
}

// LLVM's own declaration takes an enumeration that lacks `DebugDirectivesOnly`; in C it is an int.
#[allow(clashing_extern_declarations)]
mod ffi {
    use super::*;
    unsafe extern "C" {
        #[link_name = "LLVMDIBuilderCreateCompileUnit"]
        pub fn create_compile_unit(
            builder: LLVMDIBuilderRef,
            lang: c_uint,
            file: LLVMMetadataRef,
            producer: *const c_char,
            producer_len: usize,
            optimized: i32,
            flags: *const c_char,
            flags_len: usize,
            runtime_version: c_uint,
            split_name: *const c_char,
            split_name_len: usize,
            kind: c_uint,
            dwo_id: c_uint,
            split_debug_inlining: i32,
            debug_info_for_profiling: i32,
            sys_root: *const c_char,
            sys_root_len: usize,
            sdk: *const c_char,
            sdk_len: usize,
        ) -> LLVMMetadataRef;
    }
}

struct Debug {
    builder: LLVMDIBuilderRef,
    files: Vec<LLVMMetadataRef>,
}

struct Emitter<'m> {
    module: &'m Module,
    options: &'m EmitOptions,
    cx: LLVMContextRef,
    llvm: LLVMModuleRef,
    builder: LLVMBuilderRef,
    globals: Vec<LLVMValueRef>,
    functions: Vec<(LLVMValueRef, LLVMTypeRef)>,
    convergent: LLVMAttributeRef,
    memory_none: LLVMAttributeRef,
    noinline: LLVMAttributeRef,
    registers: FxHashMap<Vec<Ty>, LLVMTypeRef>,
    debug: Option<Debug>,
    count: usize,
}

/// What LLVM wrote. It is ASCII but for names; the lossy conversion, which looks at each byte, is for what isn't UTF-8.
fn text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => String::from_utf8_lossy(bytes).into_owned(),
    }
}

fn cstring(text: &str) -> CString {
    CString::new(text.replace('\0', "")).unwrap_or_default()
}

impl<'m> Emitter<'m> {
    fn new(
        module: &'m Module,
        cx: LLVMContextRef,
        llvm: LLVMModuleRef,
        options: &'m EmitOptions,
    ) -> Emitter<'m> {
        let attribute = |name: &str, value: u64| {
            // SAFETY: the name is a valid pointer and length; the context lives as long as the emitter.
            unsafe {
                let kind = LLVMGetEnumAttributeKindForName(name.as_ptr().cast(), name.len());
                LLVMCreateEnumAttribute(cx, kind, value)
            }
        };
        let convergent = attribute("convergent", 0);
        let memory_none = attribute("memory", 0);
        let noinline = attribute("noinline", 0);
        // SAFETY: the context is alive.
        let builder = unsafe { LLVMCreateBuilderInContext(cx) };
        let mut e = Emitter {
            module,
            options,
            cx,
            llvm,
            builder,
            globals: Vec::new(),
            functions: Vec::new(),
            convergent,
            memory_none,
            noinline,
            registers: FxHashMap::default(),
            debug: None,
            count: 0,
        };
        for text in &module.assembly {
            // SAFETY: the text is passed with its length; the module is alive.
            unsafe { LLVMAppendModuleInlineAsm(llvm, text.as_ptr().cast(), text.len()) };
        }
        e.debug_unit();
        e.declare_globals();
        e.declare_functions();
        e
    }

    fn debug_unit(&mut self) {
        if self.module.files.is_empty() {
            return;
        }
        let producer = "tilewright";
        let (key, flag) = ("Debug Info Version", 3);
        // SAFETY: all strings are passed with their lengths; the module and context are alive.
        unsafe {
            let builder = LLVMCreateDIBuilder(self.llvm);
            let files: Vec<_> = self
                .module
                .files
                .iter()
                .map(|(dir, file)| {
                    LLVMDIBuilderCreateFile(
                        builder,
                        file.as_ptr().cast(),
                        file.len(),
                        dir.as_ptr().cast(),
                        dir.len(),
                    )
                })
                .collect();
            let empty = c"".as_ptr();
            ffi::create_compile_unit(
                builder,
                1, // DW_LANG_C
                files[0],
                producer.as_ptr().cast(),
                producer.len(),
                1,
                empty,
                0,
                0,
                empty,
                0,
                DEBUG_DIRECTIVES_ONLY,
                0,
                0,
                0,
                empty,
                0,
                empty,
                0,
            );
            let version = LLVMValueAsMetadata(LLVMConstInt(LLVMInt32TypeInContext(self.cx), flag, 0));
            LLVMAddModuleFlag(
                self.llvm,
                inkwell::llvm_sys::LLVMModuleFlagBehavior::LLVMModuleFlagBehaviorWarning,
                key.as_ptr().cast(),
                key.len(),
                version,
            );
            self.debug = Some(Debug { builder, files });
        }
    }

    fn scalar(&self, s: Scalar) -> LLVMTypeRef {
        // SAFETY: the context is alive.
        unsafe {
            match s {
                Scalar::I1 => LLVMInt1TypeInContext(self.cx),
                Scalar::I8 => LLVMInt8TypeInContext(self.cx),
                Scalar::I16 => LLVMInt16TypeInContext(self.cx),
                Scalar::I32 => LLVMInt32TypeInContext(self.cx),
                Scalar::I64 => LLVMInt64TypeInContext(self.cx),
                Scalar::F16 => LLVMHalfTypeInContext(self.cx),
                Scalar::BF16 => LLVMBFloatTypeInContext(self.cx),
                Scalar::F32 => LLVMFloatTypeInContext(self.cx),
                Scalar::F64 => LLVMDoubleTypeInContext(self.cx),
                Scalar::Ptr(space) => LLVMPointerTypeInContext(self.cx, space.number()),
            }
        }
    }

    fn ty(&self, t: Ty) -> LLVMTypeRef {
        let scalar = self.scalar(t.scalar);
        // SAFETY: the element type is valid.
        if t.lanes == 1 { scalar } else { unsafe { LLVMVectorType(scalar, u32::from(t.lanes)) } }
    }

    fn results(&self, tys: &[Ty]) -> LLVMTypeRef {
        match tys {
            // SAFETY: the context is alive.
            [] => unsafe { LLVMVoidTypeInContext(self.cx) },
            [one] => self.ty(*one),
            many => {
                let mut fields: Vec<_> = many.iter().map(|&t| self.ty(t)).collect();
                // SAFETY: pointer and length describe `fields`.
                unsafe { LLVMStructTypeInContext(self.cx, fields.as_mut_ptr(), fields.len() as u32, 0) }
            }
        }
    }

    fn function_type(&self, params: &[Ty], results: &[Ty]) -> LLVMTypeRef {
        let mut params: Vec<_> = params.iter().map(|&t| self.ty(t)).collect();
        // SAFETY: pointer and length describe `params`.
        unsafe { LLVMFunctionType(self.results(results), params.as_mut_ptr(), params.len() as u32, 0) }
    }

    /// A statement's type. Where it has many results, their type has a name: each that is taken out of it says the type again, and
    /// printing LLVM IR took a fifth of a compile where that was a list of 128 floats.
    fn statement_type(&mut self, params: &[Ty], results: &[Ty]) -> LLVMTypeRef {
        if results.len() <= 4 {
            return self.function_type(params, results);
        }
        let registers = match self.registers.get(results) {
            Some(&known) => known,
            None => {
                let mut fields: Vec<_> = results.iter().map(|&t| self.ty(t)).collect();
                // SAFETY: the context is alive; pointer and length describe `fields`.
                let made = unsafe {
                    let made = LLVMStructCreateNamed(self.cx, c"registers".as_ptr());
                    LLVMStructSetBody(made, fields.as_mut_ptr(), fields.len() as u32, 0);
                    made
                };
                self.registers.insert(results.to_vec(), made);
                made
            }
        };
        let mut params: Vec<_> = params.iter().map(|&t| self.ty(t)).collect();
        // SAFETY: pointer and length describe `params`.
        unsafe { LLVMFunctionType(registers, params.as_mut_ptr(), params.len() as u32, 0) }
    }

    fn declare_globals(&mut self) {
        for g in &self.module.globals {
            let name = cstring(&g.name);
            // SAFETY: types and names are valid; LLVM copies names and initializers.
            let value = unsafe {
                let byte = LLVMInt8TypeInContext(self.cx);
                let len = g.init.as_ref().map_or(0, Vec::len);
                let ty = LLVMArrayType2(byte, len as u64);
                let value = LLVMAddGlobalInAddressSpace(self.llvm, ty, name.as_ptr(), g.space.number());
                LLVMSetAlignment(value, g.align);
                if let Some(bytes) = &g.init {
                    let init = LLVMConstStringInContext2(self.cx, bytes.as_ptr().cast(), len, 1);
                    LLVMSetInitializer(value, init);
                    LLVMSetLinkage(value, LLVMLinkage::LLVMInternalLinkage);
                    LLVMSetGlobalConstant(value, 1);
                }
                value
            };
            self.globals.push(value);
        }
    }

    fn declare_functions(&mut self) {
        for (name, params, results) in &self.module.signatures {
            let ty = self.function_type(params, results);
            let defined = self.module.functions.iter().find(|f| f.name == *name);
            let name = cstring(name);
            // SAFETY: the type is a function type of this context.
            let value = unsafe {
                let value = LLVMAddFunction(self.llvm, name.as_ptr(), ty);
                if defined.is_some_and(|f| f.noinline) {
                    for attribute in [self.noinline, self.convergent] {
                        LLVMAddAttributeAtIndex(
                            value,
                            inkwell::llvm_sys::LLVMAttributeFunctionIndex as c_uint,
                            attribute,
                        );
                    }
                }
                match defined.map(|f| &f.kernel) {
                    Some(Some(attrs)) => {
                        LLVMSetFunctionCallConv(value, PTX_KERNEL);
                        self.annotate(value, attrs);
                    }
                    Some(None) => LLVMSetLinkage(value, LLVMLinkage::LLVMInternalLinkage),
                    None => {}
                }
                value
            };
            self.functions.push((value, ty));
        }
    }

    /// `!nvvm.annotations`, through which LLVM 19 learns of kernels and launch bounds.
    fn annotate(&self, function: LLVMValueRef, attrs: &KernelAttrs) {
        let note = |key: &str, value: u32| {
            // SAFETY: the metadata nodes belong to this context; LLVM copies the arrays.
            unsafe {
                let int = LLVMConstInt(LLVMInt32TypeInContext(self.cx), u64::from(value), 0);
                let mut parts = [
                    LLVMValueAsMetadata(function),
                    LLVMMDStringInContext2(self.cx, key.as_ptr().cast(), key.len()),
                    LLVMValueAsMetadata(int),
                ];
                let node = LLVMMDNodeInContext2(self.cx, parts.as_mut_ptr(), parts.len());
                let node = LLVMMetadataAsValue(self.cx, node);
                LLVMAddNamedMetadataOperand(self.llvm, c"nvvm.annotations".as_ptr(), node);
            }
        };
        note("kernel", 1);
        if attrs.threads != 0 {
            note("reqntidx", attrs.threads);
            note("reqntidy", 1);
            note("reqntidz", 1);
        }
        if attrs.max_registers != 0 {
            note("maxnreg", attrs.max_registers);
        }
        if attrs.min_ctas_per_sm != 0 {
            note("minctasm", attrs.min_ctas_per_sm);
        }
        for structure in &attrs.by_value {
            self.by_value(function, *structure);
        }
        if !attrs.by_value.is_empty() {
            // Parameters count from 1 here.
            let list = attrs.by_value.iter().map(|s| s.param + 1);
            self.note_list(function, "grid_constant", list);
        }
    }

    /// A parameter whose pointee the launch copies into the parameter block.
    fn by_value(&self, function: LLVMValueRef, s: ByValue) {
        let attribute = |name: &str, value: u64| {
            // SAFETY: the name is a valid pointer and length; the context lives as long as the emitter.
            unsafe {
                let kind = LLVMGetEnumAttributeKindForName(name.as_ptr().cast(), name.len());
                LLVMCreateEnumAttribute(self.cx, kind, value)
            }
        };
        // SAFETY: types and attributes belong to this context; the index is that of a parameter (0 is the result).
        unsafe {
            let bytes = LLVMArrayType2(LLVMInt8TypeInContext(self.cx), u64::from(s.size));
            let kind = LLVMGetEnumAttributeKindForName("byval".as_ptr().cast(), 5);
            let byval = LLVMCreateTypeAttribute(self.cx, kind, bytes);
            for attribute in [byval, attribute("align", u64::from(s.align)), attribute("readonly", 0)] {
                LLVMAddAttributeAtIndex(function, s.param + 1, attribute);
            }
        }
    }

    /// An entry of `!nvvm.annotations` whose value is a list of numbers.
    fn note_list(&self, function: LLVMValueRef, key: &str, values: impl Iterator<Item = u32>) {
        // SAFETY: the metadata nodes belong to this context; LLVM copies the arrays.
        unsafe {
            let i32 = LLVMInt32TypeInContext(self.cx);
            let mut list: Vec<_> =
                values.map(|v| LLVMValueAsMetadata(LLVMConstInt(i32, u64::from(v), 0))).collect();
            let mut parts = [
                LLVMValueAsMetadata(function),
                LLVMMDStringInContext2(self.cx, key.as_ptr().cast(), key.len()),
                LLVMMDNodeInContext2(self.cx, list.as_mut_ptr(), list.len()),
            ];
            let node = LLVMMDNodeInContext2(self.cx, parts.as_mut_ptr(), parts.len());
            let node = LLVMMetadataAsValue(self.cx, node);
            LLVMAddNamedMetadataOperand(self.llvm, c"nvvm.annotations".as_ptr(), node);
        }
    }

    fn function(&mut self, f: &Function) {
        let index = self.module.signatures.iter().position(|(n, _, _)| *n == f.name).unwrap_or(0);
        let function = self.functions[index].0;
        let order = f.order();
        let live = f.live();
        let mut body = Body {
            f,
            live: &live,
            values: vec![std::ptr::null_mut(); f.values.len()],
            blocks: vec![std::ptr::null_mut(); f.blocks.len()],
            function,
            subprogram: std::ptr::null_mut(),
            scopes: Vec::new(),
            last_loc: Loc::NONE,
        };
        for &b in &order {
            // SAFETY: the function belongs to this module.
            body.blocks[b] = unsafe { LLVMAppendBasicBlockInContext(self.cx, function, c"".as_ptr()) };
        }
        self.subprogram(&mut body);
        for i in 0..f.params.len() {
            // SAFETY: `i` is below the parameter count.
            body.values[i] = unsafe { LLVMGetParam(function, i as u32) };
        }
        for &b in &order {
            self.block(&mut body, b);
        }
        self.connect(&mut body, &order);
    }

    fn subprogram(&self, body: &mut Body) {
        let Some(debug) = &self.debug else { return };
        let file = debug.files[(body.f.loc.file.max(1) - 1) as usize];
        let (name, line) = (&body.f.name, body.f.loc.line.max(1));
        // SAFETY: metadata belongs to the debug builder of this module.
        unsafe {
            let ty = LLVMDIBuilderCreateSubroutineType(debug.builder, file, std::ptr::null_mut(), 0, 0);
            body.subprogram = LLVMDIBuilderCreateFunction(
                debug.builder,
                file,
                name.as_ptr().cast(),
                name.len(),
                name.as_ptr().cast(),
                name.len(),
                file,
                line,
                ty,
                0,
                1,
                line,
                0,
                1,
            );
            LLVMSetSubprogram(body.function, body.subprogram);
            // A scope per file, for code inlined from other files.
            body.scopes = debug
                .files
                .iter()
                .map(|&other| {
                    if other == file {
                        body.subprogram
                    } else {
                        LLVMDIBuilderCreateLexicalBlockFile(debug.builder, body.subprogram, other, 0)
                    }
                })
                .collect();
        }
    }

    fn set_loc(&self, body: &mut Body, loc: Loc) {
        if self.debug.is_none() || loc == body.last_loc {
            return;
        }
        body.last_loc = loc;
        // SAFETY: the scope belongs to this module's debug information; null clears the position.
        unsafe {
            let location = if loc.file == 0 {
                LLVMDIBuilderCreateDebugLocation(self.cx, 0, 0, body.subprogram, std::ptr::null_mut())
            } else {
                let scope = body.scopes[(loc.file - 1) as usize];
                LLVMDIBuilderCreateDebugLocation(self.cx, loc.line, loc.col, scope, std::ptr::null_mut())
            };
            LLVMSetCurrentDebugLocation2(self.builder, location);
        }
    }

    fn block(&mut self, body: &mut Body, b: usize) {
        let f = body.f;
        let data = &f.blocks[b];
        // SAFETY: the block belongs to the current function.
        unsafe { LLVMPositionBuilderAtEnd(self.builder, body.blocks[b]) };
        body.last_loc = Loc { file: u32::MAX, ..Loc::NONE };
        self.set_loc(body, Loc::NONE);
        for &p in &data.params {
            if body.live[p.0 as usize] {
                let ty = self.ty(f.ty(p));
                // SAFETY: phis come first in the block.
                body.values[p.0 as usize] = unsafe { LLVMBuildPhi(self.builder, ty, c"".as_ptr()) };
                self.count += 1;
            }
        }
        for &i in &data.insts {
            let inst = &f.insts[i as usize];
            let results = inst.first_result..inst.first_result + inst.num_results;
            if inst.effect == Effect::Write || results.clone().any(|r| body.live[r as usize]) {
                self.set_loc(body, inst.loc);
                self.inst(body, inst);
            }
        }
        self.terminator(body, data);
    }

    fn value(&self, body: &mut Body, v: Value) -> LLVMValueRef {
        let known = body.values[v.0 as usize];
        if !known.is_null() {
            return known;
        }
        let data = body.f.values[v.0 as usize];
        let ty = self.ty(data.ty);
        // SAFETY: constants of types of this context.
        let made = unsafe {
            match data.def {
                Def::Const(bits) => match data.ty.scalar {
                    Scalar::Ptr(_) if bits == 0 => LLVMConstNull(ty),
                    Scalar::Ptr(_) => {
                        LLVMConstIntToPtr(LLVMConstInt(LLVMInt64TypeInContext(self.cx), bits, 0), ty)
                    }
                    s if s.is_float() => {
                        let int = LLVMIntTypeInContext(self.cx, s.bits());
                        LLVMConstBitCast(LLVMConstInt(int, bits, 0), ty)
                    }
                    _ => LLVMConstInt(ty, bits, 0),
                },
                // Only undefined values and, in unreachable positions, dead ones come here.
                _ => LLVMGetUndef(ty),
            }
        };
        body.values[v.0 as usize] = made;
        made
    }

    fn inst(&mut self, body: &mut Body, inst: &Inst) {
        let args: smallvec::SmallVec<[LLVMValueRef; 8]> =
            inst.args.iter().map(|&a| self.value(body, a)).collect();
        let f = body.f;
        let result_ty = (inst.num_results > 0).then(|| f.values[inst.first_result as usize].ty);
        let ty = result_ty.map(|t| self.ty(t));
        let (b, no_name) = (self.builder, c"".as_ptr());
        self.count += 1;
        // SAFETY: the builder is positioned in a block; operands were emitted before (reverse post-order) and have the
        // types the recording builder checked.
        let made = unsafe {
            match inst.op {
                Op::Bin(op) | Op::Rounded(op) => {
                    let made = LLVMBuildBinOp(b, opcode(op), args[0], args[1], no_name);
                    let fuses = matches!(inst.op, Op::Bin(BinOp::FAdd | BinOp::FSub | BinOp::FMul));
                    if fuses && self.options.fp_contract && !LLVMIsAInstruction(made).is_null() {
                        LLVMSetFastMathFlags(made, inkwell::llvm_sys::LLVMFastMathAllowContract);
                    }
                    made
                }
                Op::FNeg => LLVMBuildFNeg(b, args[0], no_name),
                Op::ICmp(p) => LLVMBuildICmp(b, int_predicate(p), args[0], args[1], no_name),
                Op::FCmp(p) => LLVMBuildFCmp(b, float_predicate(p), args[0], args[1], no_name),
                Op::Select => LLVMBuildSelect(b, args[0], args[1], args[2], no_name),
                Op::Cast(op) => {
                    LLVMBuildCast(b, cast_opcode(op), args[0], ty.unwrap_or_default_type(self), no_name)
                }
                Op::PtrAdd => {
                    let byte = LLVMInt8TypeInContext(self.cx);
                    LLVMBuildGEP2(b, byte, args[0], [args[1]].as_mut_ptr(), 1, no_name)
                }
                Op::Load { align, volatile } => {
                    let made = LLVMBuildLoad2(b, ty.unwrap_or_default_type(self), args[0], no_name);
                    LLVMSetAlignment(made, align);
                    LLVMSetVolatile(made, i32::from(volatile));
                    made
                }
                Op::Store { align, volatile } => {
                    let made = LLVMBuildStore(b, args[1], args[0]);
                    LLVMSetAlignment(made, align);
                    LLVMSetVolatile(made, i32::from(volatile));
                    made
                }
                Op::Extract(i) => {
                    let index = LLVMConstInt(LLVMInt32TypeInContext(self.cx), u64::from(i), 0);
                    LLVMBuildExtractElement(b, args[0], index, no_name)
                }
                Op::Vector => {
                    if args.iter().all(|&a| LLVMIsConstant(a) != 0) {
                        self.count -= 1;
                        LLVMConstVector(args.clone().as_mut_ptr(), args.len() as u32)
                    } else {
                        self.count += args.len() - 1;
                        let mut made = LLVMGetUndef(ty.unwrap_or_default_type(self));
                        for (i, &a) in args.iter().enumerate() {
                            let index = LLVMConstInt(LLVMInt32TypeInContext(self.cx), i as u64, 0);
                            made = LLVMBuildInsertElement(b, made, a, index, no_name);
                        }
                        made
                    }
                }
                Op::Asm(_) | Op::Intrinsic(_) | Op::Call(_) => self.call(body, inst, &args),
                Op::Alloca(bytes) => {
                    let array = LLVMArrayType2(LLVMInt8TypeInContext(self.cx), u64::from(bytes));
                    // Allocas are static only in the entry block.
                    let here = LLVMGetInsertBlock(b);
                    let entry = LLVMGetEntryBasicBlock(body.function);
                    let first = LLVMGetFirstInstruction(entry);
                    if first.is_null() {
                        LLVMPositionBuilderAtEnd(b, entry);
                    } else {
                        LLVMPositionBuilderBefore(b, first);
                    }
                    let made = LLVMBuildAlloca(b, array, no_name);
                    LLVMSetAlignment(made, 16);
                    LLVMPositionBuilderAtEnd(b, here);
                    made
                }
                Op::Global(id) => {
                    self.count -= 1;
                    self.globals[id.0 as usize]
                }
            }
        };
        match inst.num_results {
            0 => {}
            1 => body.values[inst.first_result as usize] = made,
            n => {
                for r in 0..n {
                    let v = (inst.first_result + r) as usize;
                    if body.live[v] {
                        self.count += 1;
                        // SAFETY: `made` is a struct with `n` fields.
                        body.values[v] = unsafe { LLVMBuildExtractValue(b, made, r, no_name) };
                    }
                }
            }
        }
    }

    fn call(&mut self, body: &Body, inst: &Inst, args: &[LLVMValueRef]) -> LLVMValueRef {
        let results: Vec<Ty> =
            (0..inst.num_results).map(|r| body.f.values[(inst.first_result + r) as usize].ty).collect();
        let params: Vec<Ty> = inst.args.iter().map(|&a| body.f.ty(a)).collect();
        let mut args = args.to_vec();
        // SAFETY: the callee's type is made from the operands' types; strings are passed with their lengths.
        unsafe {
            let (callee, ty) = match inst.op {
                Op::Call(id) => self.functions[id.0 as usize],
                Op::Intrinsic(id) => {
                    let name = cstring(&self.module.asms[id.0 as usize].text);
                    let ty = self.function_type(&params, &results);
                    let found = LLVMGetNamedFunction(self.llvm, name.as_ptr());
                    let callee =
                        if found.is_null() { LLVMAddFunction(self.llvm, name.as_ptr(), ty) } else { found };
                    (callee, ty)
                }
                _ => {
                    let Op::Asm(id) = inst.op else { unreachable!("only calls come here") };
                    let asm = &self.module.asms[id.0 as usize];
                    let ty = self.statement_type(&params, &results);
                    let callee = LLVMGetInlineAsm(
                        ty,
                        asm.text.as_ptr().cast_mut().cast(),
                        asm.text.len(),
                        asm.constraints.as_ptr().cast_mut().cast(),
                        asm.constraints.len(),
                        i32::from(!inst.effect.is_pure()),
                        0,
                        LLVMInlineAsmDialect::LLVMInlineAsmDialectATT,
                        0,
                    );
                    (callee, ty)
                }
            };
            let made =
                LLVMBuildCall2(self.builder, ty, callee, args.as_mut_ptr(), args.len() as u32, c"".as_ptr());
            let function_index: c_uint = inkwell::llvm_sys::LLVMAttributeFunctionIndex as c_uint;
            if matches!(inst.op, Op::Asm(_)) {
                match inst.effect {
                    Effect::Pure => LLVMAddCallSiteAttribute(made, function_index, self.memory_none),
                    Effect::Together => {
                        LLVMAddCallSiteAttribute(made, function_index, self.memory_none);
                        LLVMAddCallSiteAttribute(made, function_index, self.convergent);
                    }
                    Effect::Read => {}
                    Effect::Write => LLVMAddCallSiteAttribute(made, function_index, self.convergent),
                }
            }
            made
        }
    }

    fn terminator(&mut self, body: &mut Body, data: &BlockData) {
        self.count += 1;
        // SAFETY: the builder is at the end of a block without terminator; target blocks belong to the function.
        unsafe {
            match &data.term {
                Some(Terminator::Br(t, _)) => {
                    LLVMBuildBr(self.builder, body.blocks[t.0 as usize]);
                }
                Some(Terminator::CondBr { cond, then, els, .. }) => {
                    let cond = self.value(body, *cond);
                    let (then, els) = (body.blocks[then.0 as usize], body.blocks[els.0 as usize]);
                    LLVMBuildCondBr(self.builder, cond, then, els);
                }
                Some(Terminator::Ret(values)) => match values.as_slice() {
                    [] => {
                        LLVMBuildRetVoid(self.builder);
                    }
                    [v] => {
                        let v = self.value(body, *v);
                        LLVMBuildRet(self.builder, v);
                    }
                    many => {
                        let ty = self.results(&body.f.results);
                        let mut all = LLVMGetUndef(ty);
                        for (i, &v) in many.iter().enumerate() {
                            let v = self.value(body, v);
                            all = LLVMBuildInsertValue(self.builder, all, v, i as u32, c"".as_ptr());
                        }
                        LLVMBuildRet(self.builder, all);
                    }
                },
                Some(Terminator::Unreachable) | None => {
                    LLVMBuildUnreachable(self.builder);
                }
            }
        }
    }

    /// Fills in the phis, now that every value exists.
    fn connect(&self, body: &mut Body, order: &[usize]) {
        let f = body.f;
        for &b in order {
            let edges: Vec<(Block, &[Value])> = match &f.blocks[b].term {
                Some(Terminator::Br(t, args)) => vec![(*t, args)],
                Some(Terminator::CondBr { then, then_args, els, els_args, .. }) => {
                    vec![(*then, then_args), (*els, els_args)]
                }
                _ => vec![],
            };
            for (target, args) in edges {
                for (i, &a) in args.iter().enumerate() {
                    let p = f.blocks[target.0 as usize].params[i];
                    if body.live[p.0 as usize] {
                        let mut value = self.value(body, a);
                        let phi = body.values[p.0 as usize];
                        // SAFETY: the phi belongs to the target block and `b` is a predecessor of it.
                        unsafe { LLVMAddIncoming(phi, &mut value, &mut body.blocks[b], 1) };
                    }
                }
            }
        }
    }

    /// Takes back declarations that no function has used. To `ptxas` shared memory that is declared is shared memory that a kernel has: the multiprocessor keeps
    /// some for each CTA, and takes it from the L1 cache.
    fn forget_unused(&self) {
        let declared = self.module.globals.iter().zip(&self.globals).filter(|(g, _)| g.init.is_none());
        for (_, &value) in declared {
            // SAFETY: the module is alive, and nothing refers to a value without uses.
            unsafe {
                if LLVMGetFirstUse(value).is_null() {
                    LLVMDeleteGlobal(value);
                }
            }
        }
    }

    fn finish(self) {
        // SAFETY: both builders were created by this emitter and are not used again.
        unsafe {
            if let Some(debug) = &self.debug {
                LLVMDIBuilderFinalize(debug.builder);
                LLVMDisposeDIBuilder(debug.builder);
            }
            LLVMDisposeBuilder(self.builder);
        }
    }
}

/// The function being emitted.
struct Body<'f> {
    f: &'f Function,
    live: &'f [bool],
    values: Vec<LLVMValueRef>,
    blocks: Vec<LLVMBasicBlockRef>,
    function: LLVMValueRef,
    subprogram: LLVMMetadataRef,
    scopes: Vec<LLVMMetadataRef>,
    last_loc: Loc,
}

trait ResultType {
    fn unwrap_or_default_type(self, e: &Emitter) -> LLVMTypeRef;
}

impl ResultType for Option<LLVMTypeRef> {
    fn unwrap_or_default_type(self, e: &Emitter) -> LLVMTypeRef {
        self.unwrap_or_else(|| e.ty(Ty::I32))
    }
}

fn opcode(op: BinOp) -> LLVMOpcode {
    match op {
        BinOp::Add => LLVMOpcode::LLVMAdd,
        BinOp::Sub => LLVMOpcode::LLVMSub,
        BinOp::Mul => LLVMOpcode::LLVMMul,
        BinOp::UDiv => LLVMOpcode::LLVMUDiv,
        BinOp::SDiv => LLVMOpcode::LLVMSDiv,
        BinOp::URem => LLVMOpcode::LLVMURem,
        BinOp::SRem => LLVMOpcode::LLVMSRem,
        BinOp::And => LLVMOpcode::LLVMAnd,
        BinOp::Or => LLVMOpcode::LLVMOr,
        BinOp::Xor => LLVMOpcode::LLVMXor,
        BinOp::Shl => LLVMOpcode::LLVMShl,
        BinOp::LShr => LLVMOpcode::LLVMLShr,
        BinOp::AShr => LLVMOpcode::LLVMAShr,
        BinOp::FAdd => LLVMOpcode::LLVMFAdd,
        BinOp::FSub => LLVMOpcode::LLVMFSub,
        BinOp::FMul => LLVMOpcode::LLVMFMul,
        BinOp::FDiv => LLVMOpcode::LLVMFDiv,
        BinOp::FRem => LLVMOpcode::LLVMFRem,
    }
}

fn int_predicate(p: IntPred) -> LLVMIntPredicate {
    match p {
        IntPred::Eq => LLVMIntPredicate::LLVMIntEQ,
        IntPred::Ne => LLVMIntPredicate::LLVMIntNE,
        IntPred::Ugt => LLVMIntPredicate::LLVMIntUGT,
        IntPred::Uge => LLVMIntPredicate::LLVMIntUGE,
        IntPred::Ult => LLVMIntPredicate::LLVMIntULT,
        IntPred::Ule => LLVMIntPredicate::LLVMIntULE,
        IntPred::Sgt => LLVMIntPredicate::LLVMIntSGT,
        IntPred::Sge => LLVMIntPredicate::LLVMIntSGE,
        IntPred::Slt => LLVMIntPredicate::LLVMIntSLT,
        IntPred::Sle => LLVMIntPredicate::LLVMIntSLE,
    }
}

fn float_predicate(p: FloatPred) -> LLVMRealPredicate {
    match p {
        FloatPred::Oeq => LLVMRealPredicate::LLVMRealOEQ,
        FloatPred::Ogt => LLVMRealPredicate::LLVMRealOGT,
        FloatPred::Oge => LLVMRealPredicate::LLVMRealOGE,
        FloatPred::Olt => LLVMRealPredicate::LLVMRealOLT,
        FloatPred::Ole => LLVMRealPredicate::LLVMRealOLE,
        FloatPred::One => LLVMRealPredicate::LLVMRealONE,
        FloatPred::Ord => LLVMRealPredicate::LLVMRealORD,
        FloatPred::Ueq => LLVMRealPredicate::LLVMRealUEQ,
        FloatPred::Ugt => LLVMRealPredicate::LLVMRealUGT,
        FloatPred::Uge => LLVMRealPredicate::LLVMRealUGE,
        FloatPred::Ult => LLVMRealPredicate::LLVMRealULT,
        FloatPred::Ule => LLVMRealPredicate::LLVMRealULE,
        FloatPred::Une => LLVMRealPredicate::LLVMRealUNE,
        FloatPred::Uno => LLVMRealPredicate::LLVMRealUNO,
    }
}

fn cast_opcode(op: CastOp) -> LLVMOpcode {
    match op {
        CastOp::Trunc => LLVMOpcode::LLVMTrunc,
        CastOp::ZExt => LLVMOpcode::LLVMZExt,
        CastOp::SExt => LLVMOpcode::LLVMSExt,
        CastOp::FpTrunc => LLVMOpcode::LLVMFPTrunc,
        CastOp::FpExt => LLVMOpcode::LLVMFPExt,
        CastOp::SiToFp => LLVMOpcode::LLVMSIToFP,
        CastOp::UiToFp => LLVMOpcode::LLVMUIToFP,
        CastOp::FpToSi => LLVMOpcode::LLVMFPToSI,
        CastOp::FpToUi => LLVMOpcode::LLVMFPToUI,
        CastOp::Bitcast => LLVMOpcode::LLVMBitCast,
        CastOp::PtrToInt => LLVMOpcode::LLVMPtrToInt,
        CastOp::IntToPtr => LLVMOpcode::LLVMIntToPtr,
        CastOp::AddrSpaceCast => LLVMOpcode::LLVMAddrSpaceCast,
    }
}
