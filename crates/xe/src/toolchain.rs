//! Intel's line in the registry of targets, and the way from a `ttg` module to native code.

use std::time::Instant;

use serde_json::json;
use tilewright_ir as ir;
use tilewright_ir::Diagnostic;
use tilewright_ir::diagnostic::Kind;
use tilewright_target as target;
use tilewright_target::{
    Code, Fact, Family, Form, GivenStage, LaunchShape, Missing, Passes, PythonEnvironment, Stage, StageKind,
    Stop,
};

use crate::asm::{Listing, Loop, Place};
use crate::compile::compile;
use crate::ocloc::{self, Native, Ocloc};
use crate::simd;
use crate::target::Target;

/// `xe:pvc` and `xe:bmg`.
pub static XE: Family = Family {
    names: || Target::all().map(|t| t.to_string()).collect(),
    find: |name| Some(Box::new(Target::parse(name)?)),
    stages: &[
        StageKind { name: SPIRV, is_text: false },
        StageKind { name: BINARY, is_text: false },
        StageKind { name: ASSEMBLY, is_text: true },
        StageKind { name: USAGE, is_text: true },
    ],
};

const SPIRV: &str = "spv";
const BINARY: &str = "bin";
const ASSEMBLY: &str = "asm";
/// Registers, spills and instructions, as JSON.
const USAGE: &str = "usage.json";

impl target::Target for Target {
    fn family(&self) -> &'static Family {
        &XE
    }

    fn passes(&self) -> Passes {
        Passes::Ttg(Box::new(self.info()))
    }

    fn forms(&self) -> &'static [Form] {
        &[Form { name: "simd", text: simd::text }, Form { name: "simt", text: simd::simt_text }]
    }

    fn toolchain(&self, _: &PythonEnvironment) -> Result<Box<dyn target::Toolchain>, Diagnostic> {
        let ocloc = Ocloc::find().and_then(|ocloc| ocloc.for_device(self.facts().name));
        if let Err(error @ ocloc::Error::Misnamed(_)) = ocloc {
            // What was asked for by name is not to be silently done without.
            return Err(Diagnostic::new(error.to_string()).of(Kind::Environment));
        }
        Ok(Box::new(Toolchain { target: *self, ocloc }))
    }
}

/// Intel's offline compiler, where there is one.
struct Toolchain {
    target: Target,
    ocloc: Result<Ocloc, ocloc::Error>,
}

impl Toolchain {
    /// Native code with as many registers as it needs: those of a hardware thread, or twice as many for half as many threads. `maxnreg`, the
    /// registers of a lane's share, decides it; without it, spills do, of which the compiler breaks down over many.
    fn native(
        &self,
        ocloc: &Ocloc,
        spirv: &[u8],
        options: &ir::Options,
        stop: &Stop,
    ) -> Result<Native, ocloc::Error> {
        let compile = |large| ocloc.compile(spirv, self.target.facts().name, large, stop);
        if let Some(registers) = options.maxnreg {
            return compile(registers > self.target.info().machine.min_registers_of_thread);
        }
        match compile(false) {
            Ok(native) if native.usage.spilled_bytes == 0 => Ok(native),
            Ok(native) => {
                let large = compile(true)?;
                // Of as much memory, which comes by powers of two, less is used.
                let better = large.usage.spilled_bytes <= native.usage.spilled_bytes;
                Ok(if better { large } else { native })
            }
            Err(ocloc::Error::Rejected { .. }) => compile(true),
            Err(error) => Err(error),
        }
    }
}

impl target::Toolchain for Toolchain {
    fn facts(&self) -> Vec<Fact> {
        let file = self.ocloc.as_ref().ok().map(|ocloc| ocloc.path.clone());
        let text = if file.is_some() { "ocloc" } else { "none" }.to_string();
        vec![Fact { name: "ocloc", text, file }]
    }

    fn missing(&self) -> Option<Missing> {
        let error = self.ocloc.as_ref().err()?;
        let wanted = matches!(error, ocloc::Error::Unwanted);
        Some(Missing { stage: BINARY, why: error.to_string(), wanted })
    }

    fn make(
        &self,
        module: ir::Module,
        _name: &str,
        options: &ir::Options,
        given: Option<&GivenStage>,
        stop: &Stop,
    ) -> Result<Code, Diagnostic> {
        let start = Instant::now();
        let given_as = |stage: &str| given.filter(|given| given.stage == stage);
        if let Some(given) = [BINARY, ASSEMBLY, USAGE].into_iter().find_map(given_as) {
            let text = format!("{}: not supported yet: {} of {}", given.file, given.stage, self.target);
            return Err(Diagnostic::new(text).of(Kind::Unsupported));
        }
        let mut kernel = compile(&module, self.target, options)?;
        if let Some(given) = given_as(SPIRV) {
            kernel.spirv = given.bytes.clone();
        }
        target::check(stop)?;
        let mut stages = vec![Stage { name: SPIRV, bytes: kernel.spirv, time: start.elapsed() }];
        let mut usage = None;
        if let Ok(ocloc) = &self.ocloc {
            let start = Instant::now();
            let native = self
                .native(ocloc, &stages[0].bytes, options, stop)
                .map_err(|e| Diagnostic::new(e.to_string()).of(Kind::Environment))?;
            usage = Some(native.usage);
            let time = start.elapsed();
            let text = report(&kernel.name, &native);
            let none = std::time::Duration::ZERO;
            stages.push(Stage { name: BINARY, bytes: native.binary, time });
            stages.push(Stage { name: ASSEMBLY, bytes: native.assembly.into_bytes(), time: none });
            stages.push(Stage { name: USAGE, bytes: text.into_bytes(), time: none });
        }
        Ok(Code {
            name: kernel.name,
            stages,
            num_warps: kernel.num_warps,
            shared: kernel.shared_bytes,
            launch: LaunchShape::of(&module, options),
            registers: usage.map(|usage| usage.registers),
            spilled_bytes: usage.map(|usage| usage.spilled_bytes),
            assembler: self.ocloc.as_ref().ok().map(|_| "ocloc".to_string()),
            ..Code::default()
        })
    }
}

/// What native code uses and holds.
fn report(name: &str, native: &Native) -> String {
    let listing = Listing::read(&native.assembly, &native.lines);
    let by_line = |l: &Loop| -> Vec<_> {
        let lines = l.by_line.iter();
        let place = |p: &Place| json!({ "file": p.file, "line": p.line });
        lines.map(|(p, mix)| json!({ "place": p.as_ref().map(place), "instructions": mix })).collect()
    };
    let loops: Vec<_> = listing
        .loops
        .iter()
        .map(|l| json!({ "label": l.label, "depth": l.depth, "instructions": l.instructions, "by_line": by_line(l) }))
        .collect();
    let usage = native.usage;
    let all = json!({
        "name": name,
        "registers": usage.registers,
        "spilled_bytes": usage.spilled_bytes,
        "slm_bytes": usage.slm_bytes,
        "sub_group_size": usage.sub_group,
        "instructions": listing.instructions,
        "loops": loops,
    });
    format!("{all:#}\n")
}
