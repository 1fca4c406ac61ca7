//! The road from a `ttg` module to PTX.

use std::time::{Duration, Instant};

use tilewright_ir as ir;
use tilewright_ir::Diagnostic;
use tilewright_ir::diagnostic::Kind;
use tilewright_ir::dialect::tt;
use tilewright_ir::launch;
use tilewright_llvm::emit;
use tilewright_target::PythonEnvironment;

use crate::author_lines;
use crate::libdevice;
use crate::lower;
use crate::lower::{raw_call, symmetric};
use crate::mend_for_ptxas::mend_for_ptxas;
use crate::target::Target;
use crate::wait_for_copies::wait_for_copies;

/// How to compile.
#[derive(Debug, Clone)]
pub struct CodegenOptions {
    /// The GPU.
    pub target: Target,
    /// The options of the kernel.
    pub kernel: ir::Options,
    /// Whether the LLVM IR is wanted as text.
    pub keep_llvm_ir: bool,
    /// LLVM's passes in their text form; `None` for the short list that we choose.
    pub passes: Option<String>,
    /// How hard LLVM's code generator works.
    pub level: emit::CodegenLevel,
    /// Whether LLVM's verifier checks the module.
    pub verify: bool,
    /// LLVM IR that takes the place of what the passes leave.
    pub given_llvm_ir: Option<String>,
    /// The Python environment that libdevice is looked for in.
    pub python: PythonEnvironment,
}

impl CodegenOptions {
    /// The usual way for a target.
    pub fn new(target: Target) -> CodegenOptions {
        CodegenOptions {
            target,
            kernel: ir::Options::default(),
            keep_llvm_ir: true,
            passes: None,
            level: emit::CodegenLevel::Default,
            verify: cfg!(debug_assertions),
            given_llvm_ir: None,
            python: PythonEnvironment::default(),
        }
    }
}

/// Wall time of each stage.
#[derive(Debug, Clone, Copy, Default)]
pub struct Timing {
    /// `ttg` to the per-thread program.
    pub lower: Duration,
    /// The per-thread program to LLVM's.
    pub build: Duration,
    /// LLVM's passes.
    pub passes: Duration,
    /// LLVM's code generator.
    pub codegen: Duration,
    /// Printing LLVM IR, where it is wanted.
    pub print: Duration,
}

/// A kernel as PTX.
#[derive(Debug, Clone)]
pub struct Kernel {
    /// The symbol to launch.
    pub name: String,
    /// PTX.
    pub ptx: String,
    /// LLVM IR after the passes, if it was wanted.
    pub llvm_ir: String,
    /// Warps of a CTA, those of partitions included.
    pub num_warps: u32,
    /// Dynamic shared memory, in bytes.
    pub shared_bytes: u32,
    /// LLVM instructions handed over.
    pub instructions: usize,
    /// Where the time went.
    pub timing: Timing,
}

/// Calls of functions in libraries that the user names.
struct Users {
    calls: Vec<tt::ExternElementwise>,
}

impl Users {
    fn of(module: &ir::Module) -> Users {
        let mut calls = Vec::new();
        module.walk(module.root(), &mut |op| {
            if let Some(call) = tt::ExternElementwise::cast(module, op)
                && !call.libpath(module).is_empty()
            {
                calls.push(call);
            }
        });
        Users { calls }
    }

    /// What is to be linked: the user's libraries, and libdevice where it is called, or may be by one of those.
    fn libraries(
        &self,
        module: &ir::Module,
        lowered: &tilewright_llvm::Module,
        options: &CodegenOptions,
    ) -> Result<emit::Libraries, Box<Diagnostic>> {
        let mut libraries = emit::Libraries::default();
        for &call in &self.calls {
            let (path, symbol) = (call.libpath(module), call.symbol(module));
            if !symbol.starts_with(libdevice::PREFIX) && !libraries.wanted.contains(&symbol) {
                libraries.wanted.push(symbol);
            }
            if libraries.bitcode.iter().all(|(known, _)| *known != path) {
                let bitcode = std::fs::read(&path).map_err(|e| {
                    users_error(module, call, format!("the library {path} cannot be read: {e}"))
                })?;
                libraries.bitcode.push((path, bitcode));
            }
        }
        libraries.code = raw_code(module);
        if lowered.declared().any(|name| name.starts_with(symmetric::PREFIX)) {
            libraries.bitcode.push(("the accesses by NVSHMEM".into(), symmetric::FUNCTIONS.into()));
            libraries.bitcode.push(device_library(module)?);
        }
        let called: Vec<&str> =
            lowered.declared().filter(|name| name.starts_with(libdevice::PREFIX)).collect();
        libraries.wanted.extend(called.iter().map(|name| name.to_string()));
        if !called.is_empty() || !self.calls.is_empty() {
            match libdevice::read(options.kernel.library("libdevice"), &options.python) {
                Ok(bitcode) => libraries.bitcode.push(("libdevice".into(), bitcode)),
                Err(e) if !called.is_empty() => {
                    return Err(Box::new(Diagnostic::new(e).of(Kind::Environment)));
                }
                Err(_) => {}
            }
        }
        Ok(libraries)
    }
}

/// NVSHMEM's functions for kernels.
fn device_library(module: &ir::Module) -> Result<(String, Vec<u8>), Box<Diagnostic>> {
    let wrong = |text: String| Box::new(Diagnostic::new(text).of(Kind::Environment));
    let path = module.str_attr(module.root(), launch::NVSHMEM).map(str::to_string);
    let path =
        path.ok_or_else(|| wrong("the module reaches ranks by NVSHMEM, and names no library of it".into()))?;
    match std::fs::read(&path) {
        Ok(bitcode) => Ok((path, bitcode)),
        Err(e) => Err(wrong(format!("NVSHMEM's library {path} cannot be read: {e}"))),
    }
}

/// LLVM IR of the author's own, once each.
fn raw_code(module: &ir::Module) -> Vec<emit::Code> {
    let mut all: Vec<emit::Code> = Vec::new();
    module.walk(module.root(), &mut |op| {
        let call = tt::RawCall::cast(module, op).filter(|c| c.language(module) == tt::RawLanguage::Llvm);
        if let Some(call) = call {
            let text = raw_call::with_threads(call.source(module), &call.threads(module));
            let symbol = call.symbol(module);
            let called = raw_call::linked_name(&text, &symbol);
            if all.iter().all(|code| code.called != called) {
                all.push(emit::Code { name: format!("the LLVM IR of `{symbol}`"), text, symbol, called });
            }
        }
    });
    all
}

/// The text with a PTX version that is at least this one.
fn at_least_version(ptx: String, (major, minor): (u32, u32)) -> String {
    let Some(start) = ptx.find("\n.version ").map(|at| at + 1) else { return ptx };
    let end = ptx[start..].find('\n').map_or(ptx.len(), |n| start + n);
    let has = ptx[start..end].trim_start_matches(".version ").trim().split_once('.');
    let has = has.and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    if has >= Some((major, minor)) {
        return ptx;
    }
    format!("{}.version {major}.{minor}{}", &ptx[..start], &ptx[end..])
}

/// What is wrong with a user's library.
fn users_error(module: &ir::Module, call: tt::ExternElementwise, message: String) -> Box<Diagnostic> {
    Box::new(Diagnostic::at(module, module.op_loc(call.0), message).of(Kind::Environment))
}

/// Compiles a `ttg` module to PTX.
///
/// # Errors
/// What the lowering does not support, with its place in the source; what LLVM refuses.
pub fn compile(module: &ir::Module, options: &CodegenOptions) -> Result<Kernel, Box<Diagnostic>> {
    let start = Instant::now();
    let mut lowered = lower::lower(module, options.target, &options.kernel)?;
    lowered.module.share_steps();
    lowered.module.chains_in_turn();
    lowered.module.keep_wide_offsets("wgmma.mma_async");
    let mut timing = Timing { lower: start.elapsed(), ..Timing::default() };
    let features = options.target.ptx_feature(lowered.module.inline_assembly());
    let users = Users::of(module);
    let libraries = users.libraries(module, &lowered.module, options)?;
    let llvm = emit::EmitOptions {
        triple: "nvptx64-nvidia-cuda".into(),
        cpu: options.target.llvm_cpu().into(),
        features: features.into(),
        passes: options.passes.clone().unwrap_or_else(|| emit::PASSES.into()),
        level: options.level,
        fp_contract: options.kernel.enable_fp_fusion,
        verify: options.verify,
        keep_ir: options.keep_llvm_ir,
        given_ir: options.given_llvm_ir.clone(),
        libraries,
    };
    let out = emit::compile(lowered.module, llvm).map_err(|e| match (&e, users.calls.first()) {
        (emit::Error::Library(_), Some(&call)) => users_error(module, call, e.to_string()),
        (emit::Error::Library(_), None) if module.str_attr(module.root(), launch::NVSHMEM).is_some() => {
            let error = Diagnostic::new(e.to_string()).of(Kind::Environment);
            Box::new(error.note("releases of nvidia-nvshmem-cu13 up to 3.4 hold bitcode that LLVM 19 reads"))
        }
        (emit::Error::Code(_), _) => {
            let error = Diagnostic::new(e.to_string()).of(Kind::Syntax);
            Box::new(raw_call::blame(module, error, None))
        }
        (emit::Error::Given(_), _) => Box::new(Diagnostic::new(e.to_string()).of(Kind::Syntax)),
        _ => {
            let error = Diagnostic::new(e.to_string()).of(Kind::Internal);
            Box::new(raw_call::blame(module, error, None))
        }
    })?;
    timing.build = out.timing.build;
    timing.passes = out.timing.passes;
    timing.codegen = out.timing.codegen;
    timing.print = out.timing.print;
    let ptx = options.target.retarget(out.assembly, options.kernel.ptx_version).map_err(|needed| {
        let asked = options.kernel.ptx_version.unwrap_or_default();
        let message = format!(
            "ptx_version is {asked}, but `{}` has instructions of PTX {}.{}",
            lowered.kernel,
            needed / 10,
            needed % 10
        );
        Box::new(
            Diagnostic::new(message)
                .of(Kind::Request)
                .note(format!("ask for {needed} or more, or leave it out")),
        )
    })?;
    let ptx = wait_for_copies(ptx);
    let ptx = mend_for_ptxas(ptx);
    let ptx = author_lines::restore(ptx, options.kernel.line_info);
    let ptx = match raw_call::ptx_version(module) {
        Some(version) => at_least_version(ptx, version),
        None => ptx,
    };
    Ok(Kernel {
        name: lowered.kernel,
        ptx,
        llvm_ir: out.llvm_ir,
        num_warps: lowered.num_warps,
        shared_bytes: lowered.shared_bytes,
        instructions: out.instructions,
        timing,
    })
}
