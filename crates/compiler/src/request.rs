//! What is asked of the compiler.

use std::fmt;
use std::sync::Arc;

use tilewright_frontend::{Diagnostic, DiagnosticKind, Host, JitFunction, Options, signature::Signature};
use tilewright_nvidia::PythonEnvironment;

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
            _ => tilewright_nvidia::Target::parse(name).map(Target::Cuda).map_err(|error| {
                Diagnostic::new(error.to_string())
                    .of(DiagnosticKind::Request)
                    .note("`interp` is the CPU executor")
            }),
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
