//! The road from a kernel to its code, stage by stage.

use std::time::{Duration, Instant};

use tilewright_frontend::{Built, Diagnostic, Options, build_module_for};
use tilewright_ir as ir;
use tilewright_ir::diagnostic::Kind;
use tilewright_passes::transform::software_pipeline::schedule;
use tilewright_passes::{TargetInfo, pipeline};
use tilewright_target::{self as target, Code, GivenStage, Missing, Passes, StageKind, Stop, Toolchain};

use crate::artifact::{Artifact, METADATA, Metadata, StageTime, TTGIR, TTIR};
use crate::background;
use crate::cache::{Cache, Entry, Key};
use crate::key::key;
use crate::request::Request;
use crate::toolchain;

/// Compiles a kernel.
///
/// # Errors
/// A wrong kernel, argument or option; a kernel that does not fit the target; a tool that fails.
pub fn compile(request: &Request<'_>, cache: &Cache) -> Result<Artifact, Diagnostic> {
    let (pending, cache) = (Pending::build(request)?, cache.clone());
    background::run(request.host, move |stop| pending.finish(&cache, stop))
}

/// A kernel behind the front end. Nothing asks the host any more, so the rest can be done on any thread.
pub struct Pending {
    built: Built,
    target: String,
    signature: Vec<String>,
    stages: &'static [StageKind],
    key: Option<Key>,
    job: Job,
}

impl Pending {
    /// Runs the front end.
    ///
    /// # Errors
    /// A wrong kernel, argument or option; a tool that was asked for by name and isn't there.
    pub fn build(request: &Request<'_>) -> Result<Pending, Diagnostic> {
        // The IR knows places but no text: the lines are read where an error is to be shown.
        Pending::build_module(request).map_err(Diagnostic::with_source_files)
    }

    fn build_module(request: &Request<'_>) -> Result<Pending, Diagnostic> {
        let options = request.options;
        options.check()?;
        let mut clock = Clock::default();
        let target = request.target;
        let name = target.to_string();
        let mut built = clock.run("frontend", || {
            build_module_for(request.host, request.entry, request.signature, options, Some(&name))
        })?;
        if let Some(name) = &request.name {
            built.rename(name);
        }
        let tools = target.toolchain(&request.python)?;

        // A `tt` module is not kept on disk: reading it back would cost what making it does.
        let stages = target.family().stages;
        let passes = target.passes();
        if let Some(given) = &request.given {
            check_stage(given, &passes, stages, target)?;
        }
        // (Where code is made, and it is another. What runs a module itself has nothing to do with either.)
        if !stages.is_empty()
            && !stages.iter().any(|kind| kind.name == "ptx")
            && let Some(option) = options.only_for(&[ir::options::Reader::Ptx])
        {
            let text = format!("not supported yet: {}={} for {name}", option.name, option.get(options));
            return Err(Diagnostic::new(text).of(Kind::Unsupported));
        }
        let key = (!stages.is_empty()).then(|| {
            let mut made_with = toolchain::facts(&*tools);
            made_with.extend(toolchain::libraries(&built.module, options));
            made_with.push(("name", built.name.clone()));
            made_with.extend(request.given.as_ref().map(|given| ("given", given.identity())));
            key(&built.facts, target, options, &made_with)
        });
        let signature = request.signature.args.iter().map(ToString::to_string).collect();
        let job = Job { options: options.clone(), passes, tools, given: request.given.clone(), clock };
        Ok(Pending { built, target: name, signature, stages, key, job })
    }

    /// Reads the code from the cache, or makes it and puts it there.
    ///
    /// # Errors
    /// A kernel that does not fit the target; a tool that fails; [`Kind::Interrupted`] after `stop` was set.
    pub fn finish(self, cache: &Cache, stop: &Stop) -> Result<Artifact, Diagnostic> {
        let Pending { built, target, signature, stages, key, job } = self;
        if let Some(key) = &key
            && let Some(entry) = cache.get(key)
        {
            let kinds = of_passes(&job.passes).chain(stages);
            match from_entry(&entry, &job.options, &built, &job.clock, kinds, job.tools.missing()) {
                Some(artifact) => return Ok(artifact),
                None => cache.discard(key),
            }
        }
        let Built { module, name, captured, printed, .. } = built;
        let options = job.options.clone();
        let made = job.run(module, &name, stop).map_err(Diagnostic::with_source_files)?;
        let Made { code, not_negative, mut texts, remarks, missing, times } = made;
        texts.extend(code.stages.into_iter().filter_map(|made| {
            stages.iter().find(|kind| kind.name == made.name).map(|kind| (*kind, made.bytes))
        }));
        let metadata = Metadata {
            name: code.name,
            target,
            options,
            signature,
            total_num_warps: code.num_warps,
            shared: code.shared,
            tensor_maps: code.tensor_maps,
            not_negative,
            global_scratch: code.global_scratch,
            launch: code.launch,
            n_regs: code.registers,
            n_spills: code.spilled_bytes,
            remarks,
            llvm_instructions: code.llvm_instructions,
            tilewright_version: env!("CARGO_PKG_VERSION").to_string(),
            assembler: code.assembler,
        };
        let mut artifact =
            Artifact { metadata, module: code.module, stages: texts, missing, captured, printed, times };
        if let Some(key) = &key {
            let start = Instant::now();
            cache.put(key, &artifact.metadata.name, &to_entry(&artifact));
            artifact.times.push(StageTime { stage: "store", time: start.elapsed() });
        }
        Ok(artifact)
    }
}

/// How the module is compiled.
struct Job {
    options: Options,
    passes: Passes,
    tools: Box<dyn Toolchain>,
    given: Option<GivenStage>,
    clock: Clock,
}

/// The stages that passes leave.
fn of_passes(passes: &Passes) -> impl Iterator<Item = &'static StageKind> + use<> {
    [&TTIR].into_iter().chain(matches!(passes, Passes::Ttg(_)).then_some(&TTGIR))
}

/// An error where there is no such stage.
fn check_stage(
    given: &GivenStage,
    passes: &Passes,
    of_target: &'static [StageKind],
    target: &dyn target::Target,
) -> Result<(), Diagnostic> {
    let known: Vec<&str> = of_passes(passes).chain(of_target).map(|kind| kind.name).collect();
    if known.contains(&given.stage.as_str()) {
        return Ok(());
    }
    let message = format!("{}: {target} has no stage {:?}", given.file, given.stage);
    Err(Diagnostic::new(message).of(Kind::Request).note(format!("there are {}", known.join(", "))))
}

/// What came of it.
struct Made {
    code: Code,
    not_negative: Vec<ir::launch::Number>,
    texts: Vec<(StageKind, Vec<u8>)>,
    remarks: Vec<String>,
    missing: Option<Missing>,
    times: Vec<StageTime>,
}

impl Job {
    /// The passes, and then the target's tools.
    fn run(self, mut module: ir::Module, name: &str, stop: &Stop) -> Result<Made, Diagnostic> {
        let Job { options, passes, tools, given, mut clock } = self;
        let mut texts = Vec::new();
        let given_as = |stage: StageKind| given.as_ref().filter(|given| given.stage == stage.name);
        let ttir = clock.run(TTIR.name, || {
            if let Some(given) = given_as(TTIR) {
                module = parse(given)?;
            }
            ir::pass::optimize(&mut module)?;
            match &passes {
                Passes::Tt(run) => run(&mut module)?,
                Passes::Ttg(_) if !options.positive_divisors => ir::launch::doubt_divisors(&mut module),
                Passes::Ttg(_) => {}
            }
            Ok(ir::print(&module))
        })?;
        texts.push((TTIR, ttir.into_bytes()));
        target::check(stop)?;
        if let Passes::Ttg(info) = &passes {
            let ttgir = clock.run(TTGIR.name, || {
                match given_as(TTGIR) {
                    Some(given) => {
                        module = parse(given)?;
                        ir::launch::recall_relied(&module)?;
                        pipeline::finish_ttg(&mut module, info, &options)?;
                    }
                    None => lower_to_ttg(&mut module, info, &options, &texts[0].1)?,
                }
                ir::launch::write_relied(&mut module);
                Ok(ir::print(&module))
            })?;
            texts.push((TTGIR, ttgir.into_bytes()));
            target::check(stop)?;
        }
        let remarks = tilewright_passes::remarks::of(&module);
        let relied = module.relied().clone();
        let code = tools.make(module, name, &options, given.as_ref(), stop)?;
        for made in &code.stages {
            clock.add(made.name, made.time);
        }
        let not_negative = relied.numbers();
        Ok(Made { code, not_negative, texts, remarks, missing: tools.missing(), times: clock.times })
    }
}

/// The passes from `tt` to `ttg`. Where that needs more shared memory than there is, loops get fewer stages, one by one, whoever has said how many, and at last
/// no warps of their own for loads; `ttir` is the module's text.
fn lower_to_ttg(
    module: &mut ir::Module,
    info: &TargetInfo,
    options: &Options,
    ttir: &[u8],
) -> Result<(), Diagnostic> {
    let wanted = schedule::most_wanted(module, options.num_stages);
    let mut done = pipeline::lower_to_ttg(module, info, options);
    for most in (0..wanted).rev() {
        if !done.as_ref().is_err_and(|error| error.kind == Kind::OutOfResources) {
            break;
        }
        *module = ir::parse(&String::from_utf8_lossy(ttir), TTIR.name)?;
        let root = module.root();
        module.set_i32_attr(root, schedule::MOST_STAGES, most as i32);
        done = pipeline::lower_to_ttg(module, info, options);
    }
    done
}

/// The module that a stage's text says.
fn parse(given: &GivenStage) -> Result<ir::Module, Diagnostic> {
    let module = ir::parse(given.text()?, &given.file)?;
    ir::verify(&module).map_err(|mut errors| errors.remove(0))?;
    ir::verify_flat(&module)?;
    Ok(module)
}

fn to_entry(artifact: &Artifact) -> Entry {
    let mut entry = Entry::new();
    entry.add(METADATA, artifact.metadata_json());
    for (kind, bytes) in &artifact.stages {
        entry.add(kind.name, bytes.as_slice());
    }
    entry
}

/// The artifact of a cache entry; `None` where a file that should be there is not.
fn from_entry(
    entry: &Entry,
    options: &Options,
    built: &Built,
    clock: &Clock,
    kinds: impl Iterator<Item = &'static StageKind>,
    missing: Option<Missing>,
) -> Option<Artifact> {
    let mut metadata: Metadata = serde_json::from_slice(entry.get(METADATA)?).ok()?;
    // The entry may be of a launch with other options that the code does not depend on.
    metadata.options = options.clone();
    let mut stages = Vec::new();
    for &kind in kinds {
        // What comes behind is made of it.
        if missing.as_ref().is_some_and(|missing| missing.stage == kind.name) {
            break;
        }
        let bytes = if kind.is_text { entry.text(kind.name)?.as_bytes() } else { entry.get(kind.name)? };
        stages.push((kind, bytes.to_vec()));
    }
    Some(Artifact {
        metadata,
        module: None,
        stages,
        missing,
        captured: built.captured.clone(),
        printed: built.printed.clone(),
        times: clock.times.clone(),
    })
}

/// Times stages.
#[derive(Default)]
struct Clock {
    times: Vec<StageTime>,
}

impl Clock {
    fn run<T>(
        &mut self,
        stage: &'static str,
        work: impl FnOnce() -> Result<T, Diagnostic>,
    ) -> Result<T, Diagnostic> {
        let start = Instant::now();
        let result = work()?;
        self.add(stage, start.elapsed());
        Ok(result)
    }

    fn add(&mut self, stage: &'static str, time: Duration) {
        self.times.push(StageTime { stage, time });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_given_file_holds_one_module() {
        let given = |text: &str| {
            let bytes = text.as_bytes().to_vec();
            parse(&GivenStage { stage: TTIR.name.into(), file: "k.ttir".into(), bytes }).map(|_| ())
        };
        let module = "module {\n  tt.func public @k() { tt.return }\n}\n";
        given(module).expect("is one");
        let error = given(&format!("{module}{module}")).expect_err("are two").to_string();
        assert!(error.contains("not supported yet: a module within a module"), "{error}");
        assert!(error.contains("k.ttir:1:"), "{error}");
    }
}
