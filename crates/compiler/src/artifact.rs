//! What the compiler gives.

use std::time::Duration;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use tilewright_frontend::Captured;
use tilewright_ir::Module;
use tilewright_ir::options::{OPTIONS, Options, Value};

/// What is known of a compiled kernel; the `.json` file of the cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metadata {
    /// Name of the entry in the code.
    pub name: String,
    /// What it was compiled for.
    pub target: String,
    /// The options it was compiled with.
    #[serde(flatten, skip_deserializing, serialize_with = "by_name")]
    pub options: Options,
    /// The arguments, in the notation of ahead-of-time signatures.
    pub signature: Vec<String>,
    /// Warps that a launch starts a CTA with: the option's, and those of partitions.
    pub total_num_warps: u32,
    /// Dynamic shared memory of a CTA, in bytes.
    pub shared: u32,
    /// The parameters that are tensor maps.
    pub tensor_maps: Vec<TensorMapParam>,
    /// Bytes of global memory that each CTA needs for itself; where there are some, the last parameter is their address,
    /// a multiple of 128.
    pub global_scratch: u32,
    /// Registers a thread, as `ptxas` says.
    pub n_regs: Option<u32>,
    /// Bytes spilled to local memory, as `ptxas` says.
    pub n_spills: Option<u32>,
    /// LLVM instructions that were handed to LLVM.
    pub llvm_instructions: Option<usize>,
    /// Release of the compiler.
    pub tilewright_version: String,
    /// Release of `ptxas`, where one ran.
    pub ptxas_version: Option<String>,
}

/// Each option under its name.
fn by_name<S: Serializer>(options: &Options, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    for option in OPTIONS {
        match option.get(options) {
            Value::None => map.serialize_entry(option.name, &())?,
            Value::Flag(flag) => map.serialize_entry(option.name, &flag)?,
            Value::Count(count) => map.serialize_entry(option.name, &count)?,
            Value::Word(word) => map.serialize_entry(option.name, &word)?,
        }
    }
    map.end()
}

/// A parameter that is a tensor map: what the launch must know to make it, beside the address, extents and strides that
/// the descriptor has at run time (which follow in the arguments).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TensorMapParam {
    /// The number of the parameter.
    pub param: u32,
    /// Type of the elements: the number of a `CUtensorMapDataType`.
    pub element: u32,
    /// Bytes of an element.
    pub element_bytes: u32,
    /// Extents of the box that one copy moves, outermost first.
    pub box_dims: Vec<u32>,
    /// How a box lies in shared memory: 0 (row by row), or the period of the swizzle in bytes, 32, 64 or 128.
    pub swizzle_bytes: u32,
    /// What is outside of the tensor reads as NaN, not zero.
    pub nan: bool,
}

/// How long a stage took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StageTime {
    /// `frontend`, `ttir`, `ttgir`, `llir`, `ptx` or `cubin`.
    pub stage: &'static str,
    /// Wall time.
    pub time: Duration,
}

/// A compiled kernel, with the text of every stage that ran.
#[derive(Debug, Clone)]
pub struct Artifact {
    /// What is known of it.
    pub metadata: Metadata,
    /// The canonical `tt` module, for the CPU executor.
    pub module: Option<Module>,
    /// The `tt` module as text.
    pub ttir: String,
    /// The `ttg` module as text.
    pub ttgir: Option<String>,
    /// LLVM IR.
    pub llir: Option<String>,
    /// PTX.
    pub ptx: Option<String>,
    /// The GPU's own code. Absent where there is no `ptxas`: the driver can then compile the PTX.
    pub cubin: Option<Vec<u8>>,
    /// Why there is no cubin.
    pub no_cubin: Option<String>,
    /// Values of the host that are compiled in.
    pub captured: Vec<Captured>,
    /// What `tl.static_print` printed.
    pub printed: String,
    /// How long the stages took, in their order. A stage that came from the cache is not listed.
    pub times: Vec<StageTime>,
}

impl Artifact {
    /// The metadata as a JSON document.
    pub fn metadata_json(&self) -> Vec<u8> {
        // A struct of numbers and strings always serializes.
        serde_json::to_vec_pretty(&self.metadata).unwrap_or_default()
    }
}
