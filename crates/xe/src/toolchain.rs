//! Intel's line in the registry of targets.

use tilewright_ir as ir;
use tilewright_ir::Diagnostic;
use tilewright_ir::dialect::ttg;
use tilewright_target as target;
use tilewright_target::{
    Code, Fact, Family, GivenStage, LaunchShape, Missing, Passes, PythonEnvironment, StageKind, Stop,
};

use crate::target::Target;

/// `xe:pvc` and `xe:bmg`.
pub static XE: Family = Family {
    names: || Target::all().map(|t| t.to_string()).collect(),
    find: |name| Some(Box::new(Target::parse(name)?)),
    stages: &[StageKind { name: SPIRV, is_text: false }],
};

const SPIRV: &str = "spv";

impl target::Target for Target {
    fn family(&self) -> &'static Family {
        &XE
    }

    fn passes(&self) -> Passes {
        Passes::Ttg(Box::new(self.info()))
    }

    fn toolchain(&self, _: &PythonEnvironment) -> Result<Box<dyn target::Toolchain>, Diagnostic> {
        Ok(Box::new(Toolchain { target: *self }))
    }
}

/// None yet.
struct Toolchain {
    target: Target,
}

impl target::Toolchain for Toolchain {
    fn facts(&self) -> Vec<Fact> {
        Vec::new()
    }

    fn missing(&self) -> Option<Missing> {
        let why = format!("not supported yet: code for {}, behind the ttg module", self.target);
        Some(Missing { stage: SPIRV, why, wanted: false })
    }

    fn make(
        &self,
        module: ir::Module,
        name: &str,
        options: &ir::Options,
        given: Option<&GivenStage>,
        _: &Stop,
    ) -> Result<Code, Diagnostic> {
        if let Some(given) = given.filter(|given| given.stage == SPIRV) {
            let text = format!("{}: not supported yet: {SPIRV} of {}", given.file, self.target);
            return Err(Diagnostic::new(text).of(ir::diagnostic::Kind::Unsupported));
        }
        let launch = LaunchShape::of(&module, options);
        let (name, num_warps, shared) = (name.to_string(), options.num_warps, buffer_bytes(&module));
        Ok(Code { name, num_warps, shared, launch, ..Code::default() })
    }
}

/// Bytes of all buffers, one behind the other: no pass has given them places yet.
fn buffer_bytes(module: &ir::Module) -> u32 {
    let buffers =
        module.all_ops(module.root()).into_iter().filter_map(|op| ttg::LocalAlloc::cast(module, op));
    let types = buffers.map(|buffer| module.value_type(buffer.result(module)));
    types
        .map(|ty| module.shape(ty).unwrap_or(&[]).iter().product::<u32>() * module.bits(ty).div_ceil(8))
        .sum()
}
