//! The CPU executor as a target: what it runs is the `tt` module.

use std::fmt;

use tilewright_frontend::{Diagnostic, Options};
use tilewright_ir::Module;
use tilewright_passes::analysis::local_memory;
use tilewright_passes::hopper::user_dots;
use tilewright_passes::transform::{inline_calls, lower_copies, lower_descriptors, named_barriers};
use tilewright_target::{
    Code, Fact, Family, GivenStage, LaunchShape, Missing, Passes, PythonEnvironment, Stop, Target, Toolchain,
};

const NAME: &str = "interp";

/// `interp`.
pub static INTERP: Family = Family {
    names: || vec![NAME.to_string()],
    find: |name| (name == NAME).then(|| Box::new(Interp) as Box<dyn Target>),
    stages: &[],
};

/// The CPU executor.
#[derive(Debug, Clone, Copy)]
pub struct Interp;

impl fmt::Display for Interp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NAME)
    }
}

impl Target for Interp {
    fn family(&self) -> &'static Family {
        &INTERP
    }

    /// It knows no descriptors: their accesses become pointers and masks, which is found within one function; nor products that go on
    /// beside what follows, which become ordinary ones.
    fn passes(&self) -> Passes {
        Passes::Tt(|module| {
            inline_calls::run(module, 1)?;
            user_dots::to_ordinary(module)?;
            named_barriers::run(module, 1)?;
            local_memory::check(module)?;
            lower_copies::run(module)?;
            lower_descriptors::run(module, None)
        })
    }

    fn toolchain(&self, _: &PythonEnvironment) -> Result<Box<dyn Toolchain>, Diagnostic> {
        Ok(Box::new(NoTools))
    }
}

struct NoTools;

impl Toolchain for NoTools {
    fn facts(&self) -> Vec<Fact> {
        Vec::new()
    }

    fn missing(&self) -> Option<Missing> {
        None
    }

    fn make(
        &self,
        module: Module,
        name: &str,
        options: &Options,
        _: Option<&GivenStage>,
        _: &Stop,
    ) -> Result<Code, Diagnostic> {
        let (name, num_warps) = (name.to_string(), options.num_warps);
        let launch = LaunchShape::of(&module, options);
        Ok(Code { name, module: Some(module), num_warps, launch, ..Code::default() })
    }
}
