//! Running named passes on a module: what `tilewright opt` and the filetests do.
//!
//! A pipeline is written as a list of arguments: `-canonicalize -cse -target=cuda:90 -assign-layouts`. Names are those
//! of [`tilewright_ir::pass::PASSES`] and of the target's list; `-tt` stands for
//! [`OPTIMIZE`](tilewright_ir::pass::OPTIMIZE), and `-ttg` for the whole road to the lowering.

use tilewright_ir::options::{Info, OPTIONS, Options, Reader};
use tilewright_ir::{Diagnostic, Module};

use crate::contract::{self, Held};
use crate::pass::Pass;
use crate::target::TargetInfo;

/// Passes to run, and what they are told.
#[derive(Debug, Clone)]
pub struct Pipeline {
    passes: Vec<Step>,
    target: TargetInfo,
    options: Options,
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Ir(&'static tilewright_ir::pass::Pass),
    Ttg(Pass),
}

impl Step {
    fn name(self) -> &'static str {
        match self {
            Step::Ir(p) => p.name,
            Step::Ttg(p) => p.name,
        }
    }
}

/// The options that matter to passes.
fn read_by_passes() -> impl Iterator<Item = &'static Info> {
    OPTIONS.iter().filter(|o| o.read_by.contains(&Reader::Passes))
}

/// The names of all passes that a target has, with their summaries.
pub fn pass_names(target: &TargetInfo) -> impl Iterator<Item = (&'static str, &'static str)> {
    let ir = tilewright_ir::pass::PASSES.iter().map(|p| (p.name, p.summary));
    // Some passes of a list are those of the IR, run again.
    let own =
        target.passes.iter().map(|row| row.pass).filter(|p| tilewright_ir::pass::find(p.name).is_none());
    ir.chain(own.map(|p| (p.name, p.summary)))
}

impl Pipeline {
    /// Reads a list of arguments for the target that `-target=` names, or for `default`; `targets` knows their names.
    ///
    /// # Errors
    /// An unknown pass, option or target, with what there is.
    pub fn parse<'a>(
        args: impl IntoIterator<Item = &'a str>,
        default: &str,
        targets: &dyn Fn(&str) -> Result<TargetInfo, String>,
    ) -> Result<Self, String> {
        let (mut names, mut target, mut options) = (Vec::new(), default, Options::default());
        for arg in args {
            let name = arg.trim_start_matches('-');
            let Some((key, value)) = name.split_once('=') else {
                names.push(name);
                continue;
            };
            if key == "target" {
                target = value;
            } else if let Some(option) = read_by_passes().find(|o| o.name.replace('_', "-") == key) {
                let value = option.parse(value).map_err(|wrong| format!("`{arg}`: {}", wrong.hint))?;
                option.set(&mut options, value).map_err(|wrong| wrong.to_string())?;
            } else {
                let known: Vec<String> =
                    read_by_passes().map(|o| format!("-{}=", o.name.replace('_', "-"))).collect();
                return Err(format!("unknown option `{arg}`; there are -target=, {}", known.join(", ")));
            }
        }
        let mut pipeline = Pipeline { passes: Vec::new(), target: targets(target)?, options };
        for name in names {
            match name {
                "tt" => {
                    for pass in tilewright_ir::pass::OPTIMIZE {
                        pipeline.push(pass)?;
                    }
                }
                "ttg" => pipeline.passes.extend(pipeline.target.passes.iter().map(|row| Step::Ttg(row.pass))),
                // Verification happens anyway.
                "verify" => {}
                _ => pipeline.push(name)?,
            }
        }
        Ok(pipeline)
    }

    fn push(&mut self, name: &str) -> Result<(), String> {
        let step = match (tilewright_ir::pass::find(name), self.target.pass(name)) {
            (Some(p), _) => Step::Ir(p),
            (None, Some(p)) => Step::Ttg(p),
            (None, None) => {
                let names: Vec<&str> = pass_names(&self.target).map(|p| p.0).collect();
                return Err(format!("unknown pass `{name}`; there are {}", names.join(", ")));
            }
        };
        self.passes.push(step);
        Ok(())
    }

    /// The name of the target that they run for.
    pub fn target(&self) -> &str {
        &self.target.name
    }

    /// Runs the passes, verifying the module before the first and after each, and what passes require and ensure.
    ///
    /// # Errors
    /// What the verifier or a pass finds wrong; a module that a pass broke is said to be so.
    pub fn run(&self, module: &mut Module) -> Result<(), Vec<Diagnostic>> {
        tilewright_ir::verify(module)?;
        let mut held = Held::default();
        for step in &self.passes {
            match step {
                Step::Ir(p) => (p.run)(module),
                Step::Ttg(p) => contract::check_before(p.name, p.requires, module)
                    .and_then(|()| p.run(module, &self.target, &self.options)),
            }
            .map_err(|d| vec![d])?;
            tilewright_ir::verify(module).map_err(|errors| {
                let note = format!("after the pass `{}`", step.name());
                errors.into_iter().map(|d| d.note(note.clone())).collect::<Vec<_>>()
            })?;
            if let Step::Ttg(p) = step {
                held.ensure(p.ensures);
            }
            held.check(step.name(), module).map_err(|d| vec![d])?;
        }
        Ok(())
    }
}
