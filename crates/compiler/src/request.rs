//! What is asked of the compiler.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tilewright_frontend::{Diagnostic, Host, JitFunction, signature::Signature};
use tilewright_nvidia::PythonEnvironment;
use tilewright_passes::distribute_ctas::MAX_CTAS;

/// What to compile for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Target {
    /// The CPU executor: the road ends with the `tt` module.
    Interp,
    /// An NVIDIA GPU.
    Cuda(tilewright_nvidia::Target),
}

impl Target {
    /// The target of a name: `interp`, or one of NVIDIA's (`cuda:90`).
    ///
    /// # Errors
    /// Any other name.
    pub fn parse(name: &str) -> Result<Target, Diagnostic> {
        match name {
            "interp" => Ok(Target::Interp),
            _ => tilewright_nvidia::Target::parse(name)
                .map(Target::Cuda)
                .map_err(|error| Diagnostic::new(error.to_string()).note("`interp` is the CPU executor")),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Interp => f.write_str("interp"),
            Target::Cuda(target) => target.fmt(f),
        }
    }
}

/// The options of a kernel, with Triton's names and defaults.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Options {
    /// Warps of a CTA: a power of two of at most 32.
    pub num_warps: u32,
    /// Depth of software pipelines.
    pub num_stages: u32,
    /// CTAs of a cluster.
    pub num_ctas: u32,
    /// Upper bound of registers a thread.
    pub maxnreg: Option<u32>,
    /// Whether a product and a sum may become one fused operation.
    pub enable_fp_fusion: bool,
    /// Whether `tl.device_assert` is compiled in.
    pub debug: bool,
    /// Whether source lines go into the code (`.loc`, and the cubin's line table).
    pub line_info: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            num_warps: 4,
            num_stages: 3,
            num_ctas: 1,
            maxnreg: None,
            enable_fp_fusion: true,
            debug: false,
            line_info: true,
        }
    }
}

impl Options {
    /// Says what is wrong with an option.
    ///
    /// # Errors
    /// An option out of its range.
    pub fn check(&self) -> Result<(), Diagnostic> {
        let fail = |message: String, hint: &str| Err(Diagnostic::new(message).note(hint));
        if !self.num_warps.is_power_of_two() || self.num_warps > 32 {
            return fail(format!("num_warps is {}", self.num_warps), "it must be 1, 2, 4, 8, 16 or 32");
        }
        if self.num_stages > 64 {
            return fail(format!("num_stages is {}", self.num_stages), "it must be at most 64");
        }
        if !self.num_ctas.is_power_of_two() || self.num_ctas > MAX_CTAS {
            return fail(format!("num_ctas is {}", self.num_ctas), "it must be 1, 2, 4 or 8");
        }
        match self.maxnreg {
            Some(0) => fail("maxnreg is 0".to_string(), "it must be at least 1"),
            _ => Ok(()),
        }
    }
}

/// One kernel to compile.
pub struct Request<'a> {
    /// Answers what the kernel's source names outside itself.
    pub host: &'a dyn Host,
    /// The kernel.
    pub entry: &'a Arc<JitFunction>,
    /// Its arguments.
    pub signature: &'a Signature,
    /// Options.
    pub options: &'a Options,
    /// What to compile for.
    pub target: Target,
    /// The Python environment that tools are looked for in, where we run in one.
    pub python: PythonEnvironment,
}
