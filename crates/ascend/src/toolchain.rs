//! Ascend's line in the registry of targets.

use std::fmt;
use std::time::Instant;

use tilewright_ir as ir;
use tilewright_ir::Diagnostic;
use tilewright_passes::analysis::local_memory;
use tilewright_passes::transform::lower_descriptors;
use tilewright_target::{
    Code, Fact, Family, GivenStage, LaunchShape, Missing, Passes, PythonEnvironment, Stage, StageKind, Stop,
    Target, Toolchain,
};

use crate::lower;

/// `ascend:910b`.
pub static ASCEND: Family = Family {
    names: || vec![NAME.to_string()],
    find: |name| (name == NAME).then(|| Box::new(Ascend) as Box<dyn Target>),
    stages: &[StageKind { name: HIVM, is_text: true }, StageKind { name: REPORT, is_text: true }],
};

const NAME: &str = "ascend:910b";
/// AscendNPU-IR text.
const HIVM: &str = "hivm";
/// What lies where and when, and which flags order what.
const REPORT: &str = "report";

/// The Ascend 910B.
#[derive(Debug, Clone, Copy)]
struct Ascend;

impl fmt::Display for Ascend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NAME)
    }
}

impl Target for Ascend {
    fn family(&self) -> &'static Family {
        &ASCEND
    }

    fn passes(&self) -> Passes {
        Passes::Tt(|module| {
            // (Where tensors are in buffers, a function has no place of its own for them.)
            ir::inline::run_where(module, &|_, _| true)?;
            ir::pass::optimize(module)?;
            local_memory::check(module)?;
            lower_descriptors::run(module, None)
        })
    }

    fn toolchain(&self, _: &PythonEnvironment) -> Result<Box<dyn Toolchain>, Diagnostic> {
        Ok(Box::new(Printer))
    }
}

/// What makes the text. (Ascend's own compiler, which goes on from there, is not called yet.)
struct Printer;

impl Toolchain for Printer {
    fn facts(&self) -> Vec<Fact> {
        Vec::new()
    }

    fn missing(&self) -> Option<Missing> {
        None
    }

    fn make(
        &self,
        mut module: ir::Module,
        name: &str,
        options: &ir::Options,
        given: Option<&GivenStage>,
        _: &Stop,
    ) -> Result<Code, Diagnostic> {
        if let Some(given) = given {
            let text = format!("{}: not supported yet: a stage that is given for {NAME}", given.file);
            return Err(Diagnostic::new(text).of(ir::diagnostic::Kind::Unsupported));
        }
        let launch = LaunchShape::of(&module, options);
        let began = Instant::now();
        let report = lower::run(&mut module)?;
        let text = ir::print(&module);
        let time = began.elapsed();
        let stages = vec![
            Stage { name: HIVM, bytes: text.into_bytes(), time },
            Stage { name: REPORT, bytes: report.into_bytes(), time: began.elapsed() - time },
        ];
        Ok(Code { name: name.to_string(), stages, num_warps: options.num_warps, launch, ..Code::default() })
    }
}
