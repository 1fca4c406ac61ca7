//! The road from a `ttg` module to PTX.

use std::time::{Duration, Instant};

use tilewright_ir as ir;
use tilewright_ir::Diagnostic;
use tilewright_ir::diagnostic::Kind;
use tilewright_llvm::emit;
use tilewright_target::PythonEnvironment;

use crate::libdevice;
use crate::lower;
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

/// Compiles a `ttg` module to PTX.
///
/// # Errors
/// What the lowering does not support, with its place in the source; what LLVM refuses.
pub fn compile(module: &ir::Module, options: &CodegenOptions) -> Result<Kernel, Box<Diagnostic>> {
    let start = Instant::now();
    let mut lowered = lower::lower(module, options.target, &options.kernel)?;
    lowered.module.share_steps();
    lowered.module.keep_wide_offsets("wgmma.mma_async");
    let mut timing = Timing { lower: start.elapsed(), ..Timing::default() };
    let features = options.target.ptx_feature(lowered.module.inline_assembly());
    let library = match lowered.module.declared().any(|name| name.starts_with(libdevice::PREFIX)) {
        true => {
            let bitcode = libdevice::read(&options.python)
                .map_err(|e| Box::new(Diagnostic::new(e).of(Kind::Environment)))?;
            Some(emit::Library { bitcode, prefix: libdevice::PREFIX })
        }
        false => None,
    };
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
        library,
    };
    let out = emit::compile(lowered.module, llvm).map_err(|e| {
        let kind = if matches!(e, emit::Error::Given(_)) { Kind::Syntax } else { Kind::Internal };
        Box::new(Diagnostic::new(e.to_string()).of(kind))
    })?;
    timing.build = out.timing.build;
    timing.passes = out.timing.passes;
    timing.codegen = out.timing.codegen;
    timing.print = out.timing.print;
    let ptx = wait_for_copies(options.target.retarget(out.assembly));
    let ptx = mend_for_ptxas(ptx);
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
