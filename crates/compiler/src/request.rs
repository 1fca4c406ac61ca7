//! What is asked of the compiler.

use std::sync::Arc;

use tilewright_frontend::{Host, JitFunction, Options, signature::Signature};
use tilewright_target::{GivenStage, PythonEnvironment, Target};

/// One kernel to compile.
pub struct Request<'a> {
    /// Answers what the kernel's source names outside itself.
    pub host: &'a dyn Host,
    /// The kernel.
    pub entry: &'a Arc<JitFunction>,
    /// What it is called in its code; the function's name where nothing else is wanted. What symbols cannot hold becomes `_`.
    pub name: Option<String>,
    /// Its arguments.
    pub signature: &'a Signature,
    /// Options.
    pub options: &'a Options,
    /// What to compile for.
    pub target: &'a dyn Target,
    /// A stage that takes the place of the one that would be made.
    pub given: Option<GivenStage>,
    /// The Python environment that tools are looked for in, where we run in one.
    pub python: PythonEnvironment,
}

impl<'a> Request<'a> {
    /// A kernel for a target, under its own name and with nothing given; tools are those of the system.
    pub fn new(
        host: &'a dyn Host,
        entry: &'a Arc<JitFunction>,
        signature: &'a Signature,
        options: &'a Options,
        target: &'a dyn Target,
    ) -> Request<'a> {
        let python = PythonEnvironment::default();
        Request { host, entry, name: None, signature, options, target, given: None, python }
    }
}
