//! NVIDIA's line in the registry of targets, and the way from a `ttg` module to a cubin.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use tilewright_ir as ir;
use tilewright_ir::Diagnostic;
use tilewright_ir::diagnostic::Kind;
use tilewright_ir::launch::Number;
use tilewright_passes::hopper::tma;
use tilewright_target as target;
use tilewright_target::{
    Code, Fact, Family, GivenStage, LaunchShape, Missing, Passes, PythonEnvironment, Stage, StageKind, Stop,
    TensorMapParam,
};

use crate::compile::{self, compile};
use crate::libdevice;
use crate::lower::raw_call;
use crate::ptxas::{self, Ptxas};
use crate::target::Target;

/// `cuda:80` and later.
pub static CUDA: Family = Family {
    names: || Target::all().map(|t| t.to_string()).collect(),
    find: |name| Some(Box::new(Target::parse(name).ok()?)),
    stages: &[
        StageKind { name: "llir", is_text: true },
        StageKind { name: "ptx", is_text: true },
        StageKind { name: CUBIN, is_text: false },
    ],
};

const CUBIN: &str = "cubin";

impl target::Target for Target {
    fn family(&self) -> &'static Family {
        &CUDA
    }

    fn passes(&self) -> Passes {
        let mut info = self.info();
        info.dots.wgmma &= wgmma_enabled();
        Passes::Ttg(Box::new(info))
    }

    fn toolchain(&self, python: &PythonEnvironment) -> Result<Box<dyn target::Toolchain>, Diagnostic> {
        let ptxas = match Ptxas::find(python) {
            // What was asked for by name is not to be silently done without.
            Err(error @ ptxas::Error::Misnamed(_)) => {
                return Err(Diagnostic::new(error.to_string()).of(Kind::Environment));
            }
            found => found,
        };
        Ok(Box::new(Toolchain { target: *self, ptxas, python: python.clone() }))
    }
}

/// LLVM, `libdevice` and, where there is one, `ptxas`.
struct Toolchain {
    target: Target,
    ptxas: Result<Ptxas, ptxas::Error>,
    python: PythonEnvironment,
}

impl target::Toolchain for Toolchain {
    fn facts(&self) -> Vec<Fact> {
        let ptxas = self.ptxas.as_ref().ok();
        let libdevice = libdevice::find(&self.python).ok();
        let none = || "none".to_string();
        vec![
            Fact { name: "llvm", text: tilewright_llvm::version(), file: tilewright_llvm::file() },
            // A script in front of the program is a file of its own, and says the version of the other.
            Fact {
                name: "ptxas",
                text: ptxas.map_or_else(none, |p| {
                    let arguments = ptxas::chosen_arguments().join(" ");
                    format!("{} {arguments}", p.version()).trim_end().to_string()
                }),
                file: ptxas.map(|p| p.path.clone()),
            },
            Fact {
                name: "libdevice",
                text: libdevice.as_ref().map_or_else(none, |_| "bitcode".to_string()),
                file: libdevice,
            },
            Fact { name: "wgmma", text: wgmma_enabled().to_string(), file: None },
        ]
    }

    fn missing(&self) -> Option<Missing> {
        let error = self.ptxas.as_ref().err()?;
        let wanted = matches!(error, ptxas::Error::Unwanted);
        Some(Missing { stage: CUBIN, why: error.to_string(), wanted })
    }

    fn make(
        &self,
        module: ir::Module,
        _name: &str,
        options: &ir::Options,
        given: Option<&GivenStage>,
        stop: &Stop,
    ) -> Result<Code, Diagnostic> {
        let given_as = |stage: &str| given.filter(|given| given.stage == stage);
        let how = compile::CodegenOptions {
            kernel: options.clone(),
            python: self.python.clone(),
            given_llvm_ir: given_as("llir").map(GivenStage::text).transpose()?.map(str::to_string),
            ..compile::CodegenOptions::new(self.target)
        };
        let mut kernel = compile(&module, &how).map_err(|e| *e)?;
        if let Some(given) = given_as("ptx") {
            kernel.ptx = given.text()?.to_string();
        }
        target::check(stop)?;
        let compile::Timing { lower, build, passes, print, codegen } = kernel.timing;
        let stage = |name, bytes, time| Stage { name, bytes, time };
        let mut cubin = None;
        let mut used = None;
        if let Some(given) = given_as(CUBIN) {
            cubin = Some(stage(CUBIN, given.bytes.clone(), Duration::ZERO));
        } else if let Ok(ptxas) = &self.ptxas {
            let start = Instant::now();
            let (bytes, usage, _log) =
                ptxas.assemble(&kernel.ptx, self.target, options, stop).map_err(|e| {
                    let error = Diagnostic::new(e.to_string()).of(Kind::Environment);
                    raw_call::blame(&module, error, Some(&kernel.ptx))
                })?;
            cubin = Some(stage(CUBIN, bytes, start.elapsed()));
            used = Some(usage);
        }
        let llir = stage("llir", kernel.llvm_ir.into_bytes(), lower + build + passes + print);
        let ptx = stage("ptx", kernel.ptx.into_bytes(), codegen);
        Ok(Code {
            name: kernel.name,
            stages: [llir, ptx].into_iter().chain(cubin).collect(),
            module: None,
            num_warps: kernel.num_warps,
            shared: kernel.shared_bytes,
            tensor_maps: tensor_maps(&module),
            global_scratch: module
                .int_attr(module.root(), "ttg.global_scratch_memory_size")
                .map_or(0, |bytes| bytes as u32),
            launch: LaunchShape::of(&module, options),
            registers: used.map(|usage| usage.registers),
            spilled_bytes: used.map(|usage| usage.spill_bytes),
            llvm_instructions: Some(kernel.instructions),
            assembler: self.ptxas.as_ref().ok().map(Ptxas::version),
        })
    }
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
    let ops = module.all_ops(module.root()).into_iter();
    let made: Vec<_> = ops.filter_map(|op| ir::dialect::ttng::TensormapByLaunch::cast(module, op)).collect();
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
        let made = made.iter().find(|made| made.map(module) == map.value);
        let (address, shape, strides) = match made {
            Some(made) => {
                let number = |&v: &ir::Value| Number::of(module, v).unwrap_or(Number::Known(0));
                let numbers = |values: &[ir::Value]| values.iter().map(number).collect();
                (number(&made.base(module)), numbers(made.shape(module)), numbers(made.strides(module)))
            }
            // Behind a descriptor that is an argument stand its extents and strides.
            None => {
                let (at, rank) = (map.arg as u32, map.box_dims.len() as u32);
                let argument = |index: u32| Number::Argument { index, bits: 64 };
                let arguments = |from: u32| (from..from + rank).map(argument).collect();
                (argument(at), arguments(at + 1), arguments(at + 1 + rank))
            }
        };
        TensorMapParam {
            param: map.arg as u32,
            made: made.is_some(),
            address,
            shape,
            strides,
            element,
            element_bytes: bytes,
            box_dims: map.box_dims,
            swizzle_bytes: map.swizzle_bytes,
            nan: made.map_or_else(|| nan(map.arg), |made| made.padding(module) == Some(2)),
        }
    };
    tma::kernel_maps(module).into_iter().map(param).collect()
}

/// Whether dots may become warp-group instructions: unless `TILEWRIGHT_WGMMA=0`, read once a process.
fn wgmma_enabled() -> bool {
    static ENABLED: OnceLock<bool> = OnceLock::new();
    *ENABLED.get_or_init(|| std::env::var("TILEWRIGHT_WGMMA").map_or(true, |v| v != "0"))
}
