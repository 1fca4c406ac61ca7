//! What a target is to the compiler: the line of its vendor in the registry ([`Family`]), itself ([`Target`]), and the tools that
//! make its code ([`Toolchain`]).
//!
//! It stands between [`tilewright_passes`], whose [`TargetInfo`] a target fills, and the crates of the vendors, such as
//! [`tilewright_nvidia`](../tilewright_nvidia/index.html). [`tilewright_compiler`](../tilewright_compiler/index.html) runs what these
//! give, and names none of them but in its list of families (`crates/compiler/src/registry.rs`):
//!
//! ```text
//! front end ─► tt ─► Target::passes ─► Toolchain::make ─► Code
//!                         │                  │
//!                  list of passes,     stages by name (llir, ptx, cubin), each a file of the cache
//!                  what they may     and Toolchain::facts: what the code depends on besides, for the cache's key
//!                  count on
//! ```

pub mod process;
pub mod program;
mod python;

use std::any::Any;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tilewright_ir::diagnostic::Kind;
use tilewright_ir::launch::{self, Number};
use tilewright_ir::{Diagnostic, Module, Options};
use tilewright_passes::TargetInfo;

pub use python::PythonEnvironment;

/// Targets that are alike but for their facts: a line of the registry.
#[derive(Debug)]
pub struct Family {
    /// The names of its targets, for messages.
    pub names: fn() -> Vec<String>,
    /// The target of a name, where it is one of these.
    pub find: fn(&str) -> Option<Box<dyn Target>>,
    /// What it makes of a `ttg` module, in order; none where `tt` modules are what it runs.
    pub stages: &'static [StageKind],
}

/// A stage of a family's code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StageKind {
    /// Its name, and the extension of its file.
    pub name: &'static str,
    /// Whether it is text.
    pub is_text: bool,
}

/// Something to compile for. It is written by its name, the only one it has in keys and reports.
pub trait Target: Any + fmt::Debug + fmt::Display + Send + Sync {
    /// Its family.
    fn family(&self) -> &'static Family;

    /// What the passes do for it.
    fn passes(&self) -> Passes;

    /// Other forms of a module, for readers: what `tilewright opt --as` knows.
    fn forms(&self) -> &'static [Form] {
        &[]
    }

    /// Its tools, as they are on this machine now.
    ///
    /// # Errors
    /// A tool that was asked for by name and isn't there. One that is only missing is said to be by [`Toolchain::missing`].
    fn toolchain(&self, python: &PythonEnvironment) -> Result<Box<dyn Toolchain>, Diagnostic>;
}

/// A form of a module that is not its own text.
#[derive(Debug, Clone, Copy)]
pub struct Form {
    /// Its name.
    pub name: &'static str,
    /// A module in it.
    pub text: fn(&Module) -> Result<String, Diagnostic>,
}

/// How far the passes take a module.
#[derive(Debug)]
pub enum Passes {
    /// It stays a `tt` module, on which this runs behind what runs for every target.
    Tt(fn(&mut Module) -> Result<(), Diagnostic>),
    /// To `ttg`, by the list that stands in the facts.
    Ttg(Box<TargetInfo>),
}

/// The tools that make a target's code, found once a compilation.
pub trait Toolchain: Send {
    /// What the code depends on besides the module and the options, each under a name of its own.
    fn facts(&self) -> Vec<Fact>;

    /// The stage that cannot be made here, if there is one.
    fn missing(&self) -> Option<Missing>;

    /// Makes the code of a kernel from what the passes left. `given` is one of the family's stages that is taken as it is; those in
    /// front of it are made as ever, for what is known from them.
    ///
    /// # Errors
    /// What is not supported, with its place in the source; a tool that fails; [`Kind::Interrupted`] after `stop` was set.
    fn make(
        &self,
        module: Module,
        name: &str,
        options: &Options,
        given: Option<&GivenStage>,
        stop: &Stop,
    ) -> Result<Code, Diagnostic>;
}

/// Something that code depends on: part of the cache's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// What it is: `ptxas`.
    pub name: &'static str,
    /// What is known of it, such as a version.
    pub text: String,
    /// The file that it is, if it is one: another file in the same place makes another key.
    pub file: Option<PathBuf>,
}

/// Why there is no such stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The stage.
    pub stage: &'static str,
    /// Why it can't be made.
    pub why: String,
    /// Whether that is what was asked for.
    pub wanted: bool,
}

/// A stage that is given, and not made (Triton's `ir_override`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenStage {
    /// Its name: `ttir`, `ttgir`, or that of a [`StageKind`] of the family.
    pub stage: String,
    /// The file that it came from, for messages.
    pub file: String,
    /// What it is.
    pub bytes: Vec<u8>,
}

impl GivenStage {
    /// Reads a file; its extension says which stage it is.
    ///
    /// # Errors
    /// A file that cannot be read, or that has no extension.
    pub fn read(path: &Path) -> Result<GivenStage, Diagnostic> {
        let file = path.display().to_string();
        let wrong = |why: String| Diagnostic::new(format!("{file}: {why}")).of(Kind::Environment);
        let stage = path
            .extension()
            .and_then(|e| e.to_str())
            .ok_or_else(|| wrong("a stage's file is named for it: kernel.ttir, kernel.ptx".to_string()))?;
        let bytes = std::fs::read(path).map_err(|e| wrong(format!("cannot be read: {e}")))?;
        Ok(GivenStage { stage: stage.to_string(), file, bytes })
    }

    /// What tells it from any other: its name and a hash.
    pub fn identity(&self) -> String {
        format!("{} {}", self.stage, blake3::hash(&self.bytes).to_hex())
    }

    /// The bytes of a stage that is text.
    ///
    /// # Errors
    /// What is no text.
    pub fn text(&self) -> Result<&str, Diagnostic> {
        std::str::from_utf8(&self.bytes)
            .map_err(|e| Diagnostic::new(format!("{}: is no text: {e}", self.file)).of(Kind::Syntax))
    }
}

/// A stage of a kernel's code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    /// Its name: that of a [`StageKind`] of the family.
    pub name: &'static str,
    /// What it is.
    pub bytes: Vec<u8>,
    /// How long making it took.
    pub time: Duration,
}

/// What a target made of a module.
#[derive(Debug, Clone, Default)]
pub struct Code {
    /// Name of the entry.
    pub name: String,
    /// The stages, in order.
    pub stages: Vec<Stage>,
    /// The module, where that is what runs.
    pub module: Option<Module>,
    /// Warps that a launch starts a CTA with: the option's, and those of partitions.
    pub num_warps: u32,
    /// Dynamic shared memory of a CTA, in bytes.
    pub shared: u32,
    /// The parameters that are tensor maps.
    pub tensor_maps: Vec<TensorMapParam>,
    /// Bytes of global memory that each CTA needs for itself.
    pub global_scratch: u32,
    /// What the module says of its launch.
    pub launch: LaunchShape,
    /// Registers a thread.
    pub registers: Option<u32>,
    /// Bytes spilled to local memory.
    pub spilled_bytes: Option<u32>,
    /// LLVM instructions that were handed to LLVM, if it took part.
    pub llvm_instructions: Option<usize>,
    /// Release of the assembler, where one ran.
    pub assembler: Option<String>,
}

/// What a launch must know of a kernel's programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchShape {
    /// The CTAs of a cluster along each axis: those that run one program (`num_ctas`), or one program each.
    pub cluster_dims: [u32; 3],
    /// Whether programs form clusters: the grid of a launch counts clusters then.
    pub grid_of_clusters: bool,
    /// Whether programs of the whole grid wait for each other, so that all must be resident at once.
    pub cooperative: bool,
    /// By how many more arguments the launch says how many programs there are, of which it starts no more than the device holds, and each does the work of several: along
    /// x (1), or along all axes (3). 0 where it starts all.
    pub resident_programs: u32,
    /// Whether the scratch memory must be zero when the kernel begins.
    pub zeroed_scratch: bool,
    /// How many ranks the kernel wants, where it reaches others: 0 is any number. Its last argument is the memory that they have in common.
    pub ranks: Option<u32>,
    /// Bytes of symmetric memory that each program needs for itself.
    pub rank_scratch: u32,
}

impl Default for LaunchShape {
    fn default() -> Self {
        LaunchShape {
            cluster_dims: [1; 3],
            grid_of_clusters: false,
            cooperative: false,
            resident_programs: 0,
            zeroed_scratch: false,
            ranks: None,
            rank_scratch: 0,
        }
    }
}

impl LaunchShape {
    /// What a module and the options that it is compiled with say.
    pub fn of(module: &Module, options: &Options) -> LaunchShape {
        let programs = launch::programs_of_cluster(module);
        let grid_of_clusters = programs != [1; 3];
        LaunchShape {
            cluster_dims: if grid_of_clusters { programs } else { [options.num_ctas, 1, 1] },
            grid_of_clusters,
            cooperative: launch::is_cooperative(module),
            resident_programs: launch::programs_axes(module),
            zeroed_scratch: module.op_attr(module.root(), launch::ZEROED_SCRATCH).is_some(),
            ranks: launch::ranks(module),
            rank_scratch: launch::rank_scratch(module),
        }
    }
}

/// The grid that is started where a device holds so many programs at once: those along x that all run at once, or one, and each does the work of several along x; with
/// `whole` those of the whole grid. `None` where a program that counts on from its number by as many as are started would leave 32 bits.
pub fn resident_grid([x, y, z]: [u32; 3], held: u32, whole: bool) -> Option<[u32; 3]> {
    let others = u64::from(y) * u64::from(z);
    let all = if whole { u64::from(x).checked_mul(others)? } else { u64::from(x) };
    if all > u64::from((i32::MAX as u32).saturating_sub(held)) {
        return None;
    }
    let at_once = if whole { u64::from(held) } else { u64::from(held) / others.max(1) };
    let started = at_once.max(1).min(all) as u32;
    Some(if whole { [started, 1, 1] } else { [started, y, z] })
}

/// A parameter that is a tensor map: what the launch must know to make it. Of a descriptor that is an argument, address, extents and strides
/// are arguments, too; of one that the kernel makes they are computed from them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TensorMapParam {
    /// The number of the parameter.
    pub param: u32,
    /// Of a descriptor that the kernel makes: the parameter is none of its arguments.
    pub made: bool,
    /// The tensor's address.
    pub address: Number,
    /// Its extents, outermost first.
    pub shape: Vec<Number>,
    /// Elements between neighbours, outermost first.
    pub strides: Vec<Number>,
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

/// The tensor of a tensor map in one launch, in the order that the GPU wants it: the innermost dimension first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappedTensor {
    /// Its address.
    pub address: u64,
    /// Its extents.
    pub dims: Vec<u64>,
    /// Bytes between neighbours along each dimension but the innermost.
    pub strides: Vec<u64>,
    /// Extents of the box that one copy moves.
    pub box_dims: Vec<u32>,
}

impl MappedTensor {
    /// Whether the tensor has no element: nothing can be copied from or to it, and there is no map of it.
    pub fn is_empty(&self) -> bool {
        self.dims.contains(&0)
    }
}

impl TensorMapParam {
    /// Address, extents and strides in a launch whose arguments have these cells, outermost dimension first.
    pub fn numbers<'a>(&'a self, cells: &'a [u64]) -> impl Iterator<Item = u64> + 'a {
        let all = std::iter::once(&self.address).chain(&self.shape).chain(&self.strides);
        all.map(|number| number.value(cells) as u64)
    }

    /// The tensor of these [`numbers`](Self::numbers).
    pub fn tensor(&self, numbers: &[u64]) -> MappedTensor {
        let (shape, strides) = numbers[1..].split_at(self.shape.len());
        MappedTensor {
            address: numbers[0],
            dims: shape.iter().rev().copied().collect(),
            strides: strides.iter().rev().skip(1).map(|&s| self.bytes(s)).collect(),
            box_dims: self.box_dims.iter().rev().copied().collect(),
        }
    }

    /// Whether a tensor of these [`numbers`](Self::numbers) has no element: there is no map of it, and none is needed unless something is copied by it.
    pub fn is_empty(&self, numbers: &[u64]) -> bool {
        numbers[1..=self.shape.len()].contains(&0)
    }

    /// Why there is no map of a tensor of these [`numbers`](Self::numbers), as one is where it begins and its rows do at multiples of 16 bytes, it has up to
    /// 2^32 elements along each dimension, and less than 2^40 bytes between neighbours, forwards (CUDA driver API, `cuTensorMapEncodeTiled`). One
    /// without elements needs none.
    pub fn fault(&self, numbers: &[u64]) -> Option<String> {
        let (shape, strides) = numbers[1..].split_at(self.shape.len());
        let (_, strides) = strides.split_last().unwrap_or((&1, &[]));
        if self.is_empty(numbers) {
            return None;
        }
        if !numbers[0].is_multiple_of(16) {
            return Some(format!("begins at {:#x}, which is no multiple of 16 bytes", numbers[0]));
        }
        if let Some(&n) = shape.iter().find(|&&n| n > 1 << 32) {
            return Some(format!("has an extent of {}, which must be from 1 to 2^32", n as i64));
        }
        let far = |&&s: &&u64| !self.bytes(s).is_multiple_of(16) || self.bytes(s) >= 1 << 40;
        strides.iter().find(far).map(|&s| {
            let bytes = (s as i64).saturating_mul(i64::from(self.element_bytes));
            format!("has a stride of {bytes} bytes, which must be a multiple of 16 from 0 to below 2^40")
        })
    }

    fn bytes(&self, elements: u64) -> u64 {
        elements.saturating_mul(u64::from(self.element_bytes))
    }
}

/// Set by whoever no longer wants the result.
pub type Stop = Arc<AtomicBool>;

/// An error where the result is no longer wanted: what stages say between each other.
///
/// # Errors
/// [`Kind::Interrupted`] after `stop` was set.
pub fn check(stop: &Stop) -> Result<(), Diagnostic> {
    if stop.load(Ordering::Relaxed) { Err(interrupted()) } else { Ok(()) }
}

/// The error of a compilation whose result is no longer wanted.
pub fn interrupted() -> Diagnostic {
    Diagnostic::new("the compilation was interrupted").of(Kind::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::resident_grid;

    /// All that are started run at once: one program more along x would leave most of the device idle for a second round.
    #[test]
    fn programs_that_are_started_run_at_once() {
        let along_x = |grid| resident_grid(grid, 132, false);
        assert_eq!(along_x([2048, 1, 1]), Some([132, 1, 1]));
        assert_eq!(along_x([32, 64, 1]), Some([2, 64, 1]));
        assert_eq!(along_x([8, 256, 1]), Some([1, 256, 1]));
        assert_eq!(along_x([8, 4, 4]), Some([8, 4, 4]));
        assert_eq!(along_x([0, 4, 1]), Some([0, 4, 1]));
        assert_eq!(along_x([i32::MAX as u32, 1, 1]), None);
    }

    #[test]
    fn programs_of_the_whole_grid_stand_in_a_row() {
        let of_all = |grid| resident_grid(grid, 132, true);
        assert_eq!(of_all([8, 256, 1]), Some([132, 1, 1]));
        assert_eq!(of_all([2, 3, 4]), Some([24, 1, 1]));
        assert_eq!(of_all([0, 3, 4]), Some([0, 1, 1]));
        assert_eq!(of_all([i32::MAX as u32, 2, 1]), None);
        assert_eq!(of_all([u32::MAX, u32::MAX, u32::MAX]), None);
    }
}
