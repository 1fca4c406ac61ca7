//! Runs SPIR-V for Intel GPUs on the CPU, sub-group by sub-group, with race, bounds and barrier checks.
//!
//! It is for testing a code generator on machines with no such GPU. A kernel is translated to PTX and run by
//! [`tilewright_ptxsim`], which has the checks: the lanes of a sub-group are the first lanes of a warp, whose other lanes end at once.
//! What is reported names the SPIR-V instruction, work group, sub-group and lane.
//!
//! Limits: a barrier of a work group orders all memory among its items, whatever its semantics name; an item that returns before a barrier of
//! the others is not reported; the sums of DPAS are made one product after the other, and the hardware's order is not known.
//!
//! `module` reads what a module declares; `translate` walks a kernel's blocks and inlines the functions it calls, `ops` has the arithmetic,
//! `group` what lanes do together, `block` the functions of Intel's compiler for two-dimensional blocks and DPAS, `assembly` the same inline.

mod assembly;
mod block;
mod group;
mod module;
mod ops;
mod report;
mod translate;

pub use report::{Finding, Report};
pub use tilewright_ptxsim::{FindingKind, Memory, Param, SimOptions, Source};

use module::Module;
use rspirv::spirv::MAGIC_NUMBER;
use tilewright_libdevice as libdevice;
use tilewright_ptxsim as ptxsim;
use tilewright_ptxsim::HostFunction;
use translate::Kernel;

/// A module that cannot be read, has what is not supported yet, or a launch that cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// What is wrong, with the SPIR-V instruction where it is about one.
    pub message: String,
}

impl Error {
    pub(crate) fn new(message: impl Into<String>) -> Error {
        Error { message: message.into() }
    }
}

/// What to run.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The kernel's name in its `OpEntryPoint`.
    pub kernel: String,
    /// Work groups along three dimensions.
    pub groups: [u32; 3],
    /// Work items of a group, along x.
    pub items: u32,
    /// One value a parameter. Pointers are host addresses in allocations of the [`Memory`].
    pub params: Vec<Param>,
}

/// The functions that kernels may call, which the CPU executor has.
fn library(symbol: &str) -> Option<HostFunction> {
    let function = libdevice::of_symbol(symbol)?;
    let bytes = |ty: libdevice::Type| ty.bits() / 8;
    Some(HostFunction {
        params: function.params.iter().map(|&ty| bytes(ty)).collect(),
        result: bytes(function.result),
        run: function.elements,
    })
}

/// A SPIR-V module.
pub struct Program {
    module: Module,
}

impl Program {
    /// Reads a module, as bytes in either order.
    ///
    /// # Errors
    /// Bytes that are no SPIR-V, and declarations that are not supported yet.
    pub fn parse(bytes: &[u8]) -> Result<Program, Error> {
        let (words, rest) = bytes.as_chunks::<4>();
        if !rest.is_empty() {
            return Err(Error::new("no SPIR-V: it is no whole words"));
        }
        let swapped = words.first() == Some(&MAGIC_NUMBER.to_be_bytes());
        let order = if swapped { u32::from_be_bytes } else { u32::from_le_bytes };
        let words: Vec<u32> = words.iter().map(|&word| order(word)).collect();
        let (words, assemblies) = assembly::split(&words)?;
        let spirv = rspirv::dr::load_words(words).map_err(|e| Error::new(format!("no SPIR-V: {e}")))?;
        Ok(Program { module: Module::new(spirv, assemblies)? })
    }

    /// The PTX that stands for a kernel.
    ///
    /// # Errors
    /// A kernel that is not there, or has what is not supported yet.
    pub fn ptx(&self, kernel: &str) -> Result<String, Error> {
        Ok(Kernel::translate(&self.module, kernel)?.text)
    }

    /// Runs a kernel to its end. Broken rules are in the report.
    ///
    /// # Errors
    /// A kernel that is not supported yet, and a launch that cannot be made.
    pub fn launch(&self, l: &Launch, memory: &Memory, options: &SimOptions) -> Result<Report, Error> {
        let kernel = Kernel::translate(&self.module, &l.kernel)?;
        if let Some(want) = kernel.items
            && want != l.items
        {
            return Err(Error::new(format!("the kernel is for groups of {want} items, not {}", l.items)));
        }
        let lanes = kernel.lanes;
        if l.items == 0 || !l.items.is_multiple_of(lanes) || l.items / lanes > 32 {
            return Err(Error::new(format!(
                "not supported yet: groups of {} items: 1 to 32 whole sub-groups of {lanes}",
                l.items
            )));
        }
        if l.params.len() != kernel.params {
            return Err(Error::new(format!(
                "the kernel has {} parameters, not {}",
                kernel.params,
                l.params.len()
            )));
        }
        let program = ptxsim::Program::with_functions(&kernel.text, library).map_err(|e| kernel.error(&e))?;
        let launch = ptxsim::Launch {
            entry: "kernel".into(),
            grid: l.groups,
            block: [l.items / lanes * 32, 1, 1],
            cluster: None,
            shared_bytes: 0,
            params: l.params.clone(),
        };
        let report = program.launch(&launch, memory, options).map_err(|e| kernel.error(&e))?;
        Ok(Report { findings: report.findings.into_iter().map(|f| kernel.finding(f)).collect() })
    }
}
