//! The road of each target, stage by stage.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use tilewright_frontend::{Built, Diagnostic, DiagnosticKind, Options, Signature, build_module};
use tilewright_ir as ir;
use tilewright_nvidia::PythonEnvironment;
use tilewright_nvidia::ptxas::{self, Ptxas};
use tilewright_passes::hopper::tma;
use tilewright_passes::pipeline;
use tilewright_passes::transform::lower_descriptors;

use crate::artifact::{Artifact, Metadata, StageTime, TensorMapParam};
use crate::background::{self, Stop};
use crate::cache::{Cache, Entry};
use crate::key::key;
use crate::request::{Request, Target};
use crate::toolchain::Toolchain;

/// Compiles a kernel.
///
/// # Errors
/// A wrong kernel, argument or option; a kernel that does not fit the target; a `ptxas` that fails.
pub fn compile(request: &Request<'_>, cache: &Cache) -> Result<Artifact, Diagnostic> {
    // The IR knows places but no text: the lines are read where an error is to be shown.
    run(request, cache).map_err(Diagnostic::with_source_files)
}

fn run(request: &Request<'_>, cache: &Cache) -> Result<Artifact, Diagnostic> {
    let options = request.options;
    options.check()?;
    let mut clock = Clock::default();
    let built =
        clock.run("frontend", || build_module(request.host, request.entry, request.signature, options))?;

    let Target::Cuda(target) = request.target else {
        return interp(request, built, clock);
    };
    let ptxas = match Ptxas::find(&request.python) {
        // What was asked for by name is not to be silently done without.
        Err(error @ ptxas::Error::Misnamed(_)) => {
            return Err(Diagnostic::new(error.to_string()).of(DiagnosticKind::Environment));
        }
        found => found,
    };
    let ptxas_version = ptxas.as_ref().ok().map(Ptxas::version);
    let toolchain = Toolchain::find(ptxas.as_ref().ok(), &request.python);
    let key = key(&built.facts, request.target, options, &toolchain);
    if let Some(entry) = cache.get(&key) {
        match from_entry(&entry, options, &built, &clock) {
            Some(mut artifact) => {
                if artifact.cubin.is_none() {
                    artifact.no_cubin = ptxas.err().map(|error| error.to_string());
                }
                return Ok(artifact);
            }
            None => cache.discard(&key),
        }
    }

    let Built { module, name, captured, printed, .. } = built;
    let job = Job { module, name, options: options.clone(), signature: words(request.signature), clock };
    let python = request.python.clone();
    let made =
        background::run(request.host, move |stop| cuda(job, target, ptxas, ptxas_version, python, stop))?;
    let artifact = Artifact { captured, printed, ..made };
    cache.put(&key, &artifact.metadata.name, &to_entry(&artifact));
    Ok(artifact)
}

/// What is left of a request behind the front end.
struct Job {
    module: ir::Module,
    name: String,
    options: Options,
    signature: Vec<String>,
    clock: Clock,
}

fn words(signature: &Signature) -> Vec<String> {
    signature.args.iter().map(ToString::to_string).collect()
}

/// The road to a GPU's code.
fn cuda(
    job: Job,
    target: tilewright_nvidia::Target,
    ptxas: Result<Ptxas, ptxas::Error>,
    ptxas_version: Option<String>,
    python: PythonEnvironment,
    stop: &Stop,
) -> Result<Artifact, Diagnostic> {
    let Job { mut module, options, signature, mut clock, .. } = job;
    let ttir = clock.run("ttir", || {
        optimize(&mut module)?;
        Ok(ir::print(&module))
    })?;
    background::check(stop)?;
    let mut info = target.info();
    info.dots.wgmma &= wgmma_enabled();
    let ttgir = clock.run("ttgir", || {
        pipeline::lower_to_ttg(&mut module, &info, &options)?;
        Ok(ir::print(&module))
    })?;
    background::check(stop)?;
    let code_options = tilewright_nvidia::CodegenOptions {
        kernel: options.clone(),
        python,
        ..tilewright_nvidia::CodegenOptions::new(target)
    };
    let code = tilewright_nvidia::compile(&module, &code_options).map_err(|e| *e)?;
    background::check(stop)?;
    let times = &code.timing;
    clock.add("llir", times.lower + times.build + times.passes + times.print);
    clock.add("ptx", times.codegen);

    let mut metadata = Metadata {
        name: code.name.clone(),
        target: target.to_string(),
        options: options.clone(),
        signature,
        total_num_warps: code.num_warps,
        shared: code.shared_bytes,
        tensor_maps: tensor_maps(&module),
        global_scratch: module
            .int_attr(module.root(), "ttg.global_scratch_memory_size")
            .map_or(0, |bytes| bytes as u32),
        n_regs: None,
        n_spills: None,
        llvm_instructions: Some(code.instructions),
        tilewright_version: env!("CARGO_PKG_VERSION").to_string(),
        ptxas_version,
    };
    let assembled = match ptxas {
        Ok(ptxas) => {
            let made = clock.run("cubin", || {
                ptxas
                    .assemble(&code.ptx, target, &options, stop)
                    .map_err(|e| Diagnostic::new(e.to_string()).of(DiagnosticKind::Environment))
            })?;
            let (cubin, usage, _log) = made;
            metadata.n_regs = Some(usage.registers);
            metadata.n_spills = Some(usage.spill_bytes);
            Ok(cubin)
        }
        Err(error) => Err(error.to_string()),
    };
    let (cubin, no_cubin) = match assembled {
        Ok(cubin) => (Some(cubin), None),
        Err(why) => (None, Some(why)),
    };
    Ok(Artifact {
        metadata,
        module: None,
        ttir,
        ttgir: Some(ttgir),
        llir: Some(code.llvm_ir),
        ptx: Some(code.ptx),
        cubin,
        no_cubin,
        captured: Vec::new(),
        printed: String::new(),
        times: clock.times,
    })
}

/// The CPU executor's road ends with the `tt` module. Nothing is kept on disk: reading it back would cost what making it
/// does.
fn interp(request: &Request<'_>, built: Built, clock: Clock) -> Result<Artifact, Diagnostic> {
    let Built { module, name, captured, printed, .. } = built;
    let job =
        Job { module, name, options: request.options.clone(), signature: words(request.signature), clock };
    let (job, ttir) = background::run(request.host, move |_| {
        let mut job = job;
        let ttir = job.clock.run("ttir", || {
            optimize(&mut job.module)?;
            lower_descriptors::run(&mut job.module, None)?;
            Ok(ir::print(&job.module))
        })?;
        Ok((job, ttir))
    })?;
    let Job { module, name, options, signature, clock } = job;
    let metadata = Metadata {
        name,
        target: request.target.to_string(),
        total_num_warps: options.num_warps,
        options,
        signature,
        shared: 0,
        tensor_maps: Vec::new(),
        global_scratch: 0,
        n_regs: None,
        n_spills: None,
        llvm_instructions: None,
        tilewright_version: env!("CARGO_PKG_VERSION").to_string(),
        ptxas_version: None,
    };
    Ok(Artifact {
        metadata,
        module: Some(module),
        ttir,
        ttgir: None,
        llir: None,
        ptx: None,
        cubin: None,
        no_cubin: None,
        captured,
        printed,
        times: clock.times,
    })
}

/// The arguments of a finished module's kernel that are tensor maps.
fn tensor_maps(module: &ir::Module) -> Vec<TensorMapParam> {
    use ir::FloatKind as F;
    let kernel = module.block_ops(module.body()).find_map(|op| ir::dialect::tt::Func::cast(module, op));
    let attrs = kernel.and_then(|func| match module.attr_kind(module.op_attr(func.0, "arg_attrs")?) {
        ir::AttrKind::Array(attrs) => Some(attrs),
        _ => None,
    });
    let nan = |arg: usize| match attrs.and_then(|a| a.get(arg)).map(|&a| module.attr_kind(a)) {
        Some(ir::AttrKind::Dict(d)) => d.iter().any(|(name, value)| {
            *name == "tt.padding" && matches!(module.attr_kind(*value), ir::AttrKind::Int(2, _))
        }),
        _ => false,
    };
    let param = |map: tma::TensorMapArg| {
        let bytes = module.bits(map.element) / 8;
        // `CUtensorMapDataType`
        let element = match (module.type_kind(map.element), bytes) {
            (ir::TypeKind::Float(F::F16), _) => 6,
            (ir::TypeKind::Float(F::F32), _) => 7,
            (ir::TypeKind::Float(F::F64), _) => 8,
            (ir::TypeKind::Float(F::BF16), _) => 9,
            (_, 1) => 0,
            (_, 2) => 1,
            (_, 4) => 2 + u32::from(!map.unsigned),
            _ => 4 + u32::from(!map.unsigned),
        };
        TensorMapParam {
            param: map.arg as u32,
            element,
            element_bytes: bytes,
            box_dims: map.box_dims,
            swizzle_bytes: map.swizzle_bytes,
            nan: nan(map.arg),
        }
    };
    tma::kernel_maps(module).into_iter().map(param).collect()
}

/// Whether dots may become warp-group instructions: unless `TILEWRIGHT_WGMMA=0`, read once a process.
pub(crate) fn wgmma_enabled() -> bool {
    static ENABLED: OnceLock<bool> = OnceLock::new();
    *ENABLED.get_or_init(|| std::env::var("TILEWRIGHT_WGMMA").map_or(true, |v| v != "0"))
}

fn to_entry(artifact: &Artifact) -> Entry {
    let mut entry = Entry::new();
    entry.add("json", artifact.metadata_json());
    entry.add("ttir", artifact.ttir.as_bytes());
    for (stage, text) in [("ttgir", &artifact.ttgir), ("llir", &artifact.llir), ("ptx", &artifact.ptx)] {
        if let Some(text) = text {
            entry.add(stage, text.as_bytes());
        }
    }
    if let Some(cubin) = &artifact.cubin {
        entry.add("cubin", cubin.as_slice());
    }
    entry
}

/// The artifact of a cache entry; `None` where a file that should be there is not.
fn from_entry(entry: &Entry, options: &Options, built: &Built, clock: &Clock) -> Option<Artifact> {
    let text = |stage| entry.text(stage).map(str::to_string);
    let mut metadata: Metadata = serde_json::from_slice(entry.get("json")?).ok()?;
    // The entry may be of a launch with other options that the code does not depend on.
    metadata.options = options.clone();
    let cubin = entry.get("cubin").map(<[u8]>::to_vec);
    if cubin.is_none() && metadata.ptxas_version.is_some() {
        return None;
    }
    Some(Artifact {
        metadata,
        module: None,
        ttir: text("ttir")?,
        ttgir: Some(text("ttgir")?),
        llir: Some(text("llir")?),
        ptx: Some(text("ptx")?),
        no_cubin: None,
        cubin,
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

/// Inlining and the optimizations that need no layouts.
fn optimize(module: &mut ir::Module) -> Result<(), Diagnostic> {
    ir::pass::optimize(module)
}
