//! Ascend's line in the registry of targets.

use std::fmt;
use std::time::{Duration, Instant};

use tilewright_ir as ir;
use tilewright_ir::Diagnostic;
use tilewright_passes::analysis::local_memory;
use tilewright_passes::transform::{decompose_scaled_dots, lower_descriptors};
use tilewright_target::program::Absent;
use tilewright_target::{
    Code, Fact, Family, GivenStage, LaunchShape, Missing, Passes, PythonEnvironment, Stage, StageKind, Stop,
    Target, Toolchain,
};

use crate::bishengir::Bishengir;
use crate::lower;

/// `ascend:910b`.
pub static ASCEND: Family = Family {
    names: || vec![NAME.to_string()],
    find: |name| (name == NAME).then(|| Box::new(Ascend) as Box<dyn Target>),
    stages: &[
        StageKind { name: HIVM, is_text: true },
        StageKind { name: REPORT, is_text: true },
        StageKind { name: BINARY, is_text: false },
    ],
};

const NAME: &str = "ascend:910b";
/// AscendNPU-IR text.
const HIVM: &str = "hivm";
/// What lies where and when, and which flags order what.
const REPORT: &str = "report";
/// What Ascend's own compiler makes of the text, by the name that others give it.
const BINARY: &str = "npubin";

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
            decompose_scaled_dots::run(module);
            lower_descriptors::run(module, None)
        })
    }

    fn toolchain(&self, _: &PythonEnvironment) -> Result<Box<dyn Toolchain>, Diagnostic> {
        let compiler = Bishengir::find();
        if let Err(absent @ Absent::Misnamed(_)) = &compiler {
            // What was asked for by name is not to be silently done without.
            return Err(Diagnostic::new(Bishengir::why(absent)).of(ir::diagnostic::Kind::Environment));
        }
        Ok(Box::new(Tools { compiler }))
    }
}

/// What goes on from the text: Ascend's own compiler, where there is one.
struct Tools {
    compiler: Result<Bishengir, Absent>,
}

impl Toolchain for Tools {
    fn facts(&self) -> Vec<Fact> {
        match &self.compiler {
            Ok(compiler) => compiler.facts(),
            Err(_) => vec![Fact { name: "bishengir-compile", text: "none".to_string(), file: None }],
        }
    }

    fn missing(&self) -> Option<Missing> {
        let absent = self.compiler.as_ref().err()?;
        // (The text is what most want, and what is taken to where there is a compiler: that it ends there is no failure.)
        Some(Missing { stage: BINARY, why: Bishengir::why(absent), wanted: true })
    }

    fn make(
        &self,
        mut module: ir::Module,
        name: &str,
        options: &ir::Options,
        given: Option<&GivenStage>,
        stop: &Stop,
    ) -> Result<Code, Diagnostic> {
        if let Some(given) = given {
            let text = format!("{}: not supported yet: a stage that is given for {NAME}", given.file);
            return Err(Diagnostic::new(text).of(ir::diagnostic::Kind::Unsupported));
        }
        if options.persistent {
            let text = format!("not supported yet: persistent=True for {NAME}");
            return Err(Diagnostic::new(text).of(ir::diagnostic::Kind::Unsupported));
        }
        let launch = LaunchShape::of(&module, options);
        let began = Instant::now();
        let report = lower::run(&mut module)?;
        let text = ir::print(&module);
        let time = began.elapsed();
        let binary = match &self.compiler {
            Ok(compiler) => {
                let began = Instant::now();
                let bytes = compiler.compile(&text, stop)?;
                Some(Stage { name: BINARY, bytes, time: began.elapsed() })
            }
            Err(_) => None,
        };
        let mut stages = vec![
            Stage { name: HIVM, bytes: text.into_bytes(), time },
            Stage { name: REPORT, bytes: report.into_bytes(), time: Duration::ZERO },
        ];
        stages.extend(binary);
        Ok(Code {
            name: name.to_string(),
            stages,
            num_warps: options.num_warps,
            launch,
            assembler: self.compiler.as_ref().ok().map(Bishengir::version),
            ..Code::default()
        })
    }
}
