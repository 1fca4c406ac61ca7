//! What the compiler gives.

use std::borrow::Cow;
use std::time::Duration;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use tilewright_frontend::Captured;
use tilewright_ir::Module;
use tilewright_ir::launch::Number;
use tilewright_ir::options::{Kind, OPTIONS, Options, Value, words};
use tilewright_target::{LaunchShape, Missing, StageKind, TensorMapParam};

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
    /// What the code takes for no negative numbers: a launch that finds one wants code without `positive_divisors`.
    pub not_negative: Vec<Number>,
    /// Bytes of global memory that each CTA needs for itself; where there are some, the last parameter is their address,
    /// a multiple of 128.
    pub global_scratch: u32,
    /// What a launch must know of its programs.
    #[serde(flatten)]
    pub launch: LaunchShape,
    /// Registers a thread, as the assembler says.
    pub n_regs: Option<u32>,
    /// Bytes spilled to local memory, as the assembler says.
    pub n_spills: Option<u32>,
    /// Hints of the kernel that could not be followed, each with its place and why.
    #[serde(default)]
    pub remarks: Vec<String>,
    /// LLVM instructions that were handed to LLVM, if it took part.
    pub llvm_instructions: Option<usize>,
    /// Release of the compiler.
    pub tilewright_version: String,
    /// Release of the assembler, where one ran.
    #[serde(rename = "ptxas_version")]
    pub assembler: Option<String>,
}

/// Each option under its name.
fn by_name<S: Serializer>(options: &Options, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    for option in OPTIONS {
        match option.get(options) {
            Value::None => map.serialize_entry(option.name, &())?,
            Value::Flag(flag) => map.serialize_entry(option.name, &flag)?,
            Value::Count(count) => map.serialize_entry(option.name, &count)?,
            Value::Word(word) if matches!(option.kind, Kind::Words(_)) => {
                map.serialize_entry(option.name, &words(&word).collect::<Vec<_>>())?;
            }
            Value::Word(word) => map.serialize_entry(option.name, &word)?,
        }
    }
    map.end()
}

/// How long a stage took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StageTime {
    /// `frontend`, `ttir`, `ttgir`, or one of the target's.
    pub stage: &'static str,
    /// Wall time.
    pub time: Duration,
}

/// The module as it left the passes that know no layouts.
pub(crate) const TTIR: StageKind = StageKind { name: "ttir", is_text: true };

/// The module as the target's passes left it.
pub(crate) const TTGIR: StageKind = StageKind { name: "ttgir", is_text: true };

/// The extension of the metadata's file.
pub(crate) const METADATA: &str = "json";

/// A compiled kernel, with what every stage made that ran.
#[derive(Debug, Clone)]
pub struct Artifact {
    /// What is known of it.
    pub metadata: Metadata,
    /// The canonical `tt` module, for the CPU executor.
    pub module: Option<Module>,
    /// What the stages made, in their order: `ttir`, `ttgir` and those of the target.
    pub stages: Vec<(StageKind, Vec<u8>)>,
    /// The stage of the target that could not be made, as where a GPU's assembler isn't there: the driver may do its work.
    pub missing: Option<Missing>,
    /// Values of the host that are compiled in.
    pub captured: Vec<Captured>,
    /// What `tl.static_print` printed.
    pub printed: String,
    /// How long the stages took, in their order. A stage that came from the cache is not listed.
    pub times: Vec<StageTime>,
}

impl Artifact {
    /// What a stage made.
    pub fn bytes(&self, stage: &str) -> Option<&[u8]> {
        self.stages.iter().find(|(kind, _)| kind.name == stage).map(|(_, bytes)| bytes.as_slice())
    }

    /// What a stage made that is text.
    pub fn text(&self, stage: &str) -> Option<&str> {
        let (kind, bytes) = self.stages.iter().find(|(kind, _)| kind.name == stage)?;
        kind.is_text.then(|| std::str::from_utf8(bytes).ok())?
    }

    /// The metadata as a JSON document.
    pub fn metadata_json(&self) -> Vec<u8> {
        // A struct of numbers and strings always serializes.
        serde_json::to_vec_pretty(&self.metadata).unwrap_or_default()
    }

    /// The file with this extension ([`extensions`](crate::extensions)).
    pub fn file(&self, extension: &str) -> Option<Cow<'_, [u8]>> {
        match extension {
            METADATA => Some(self.metadata_json().into()),
            _ => self.bytes(extension).map(Cow::Borrowed),
        }
    }
}
