//! A PTX simulator with race, bounds and deadlock checks.
//!
//! It runs the text of a PTX module on the CPU, thread by thread, on host memory in place: pointers in parameters are
//! host pointers into allocations registered with [`Memory`]. It is for testing a code generator, and debugging
//! kernels, on machines with no GPU.
//!
//! It uses none of the other crates: what it gets is text, such as [`tilewright_nvidia`](../tilewright_nvidia/index.html) makes.
//!
//! The road through the crate: [`parse`] makes the syntax tree ([`ast`]); `isa` holds the instruction table and decodes
//! each instruction to a function and register indices; `flatten` inlines calls, `layout` orders blocks; `machine` runs
//! warps; `access` and `shadow` check memory; [`launch`](Program::launch) spreads CTAs over the cores.
//!
//! From `isa` on these name each other: an instruction is a function over the state of the machine, the machine runs decoded instructions, which
//! `flatten` and `layout` have put in order, and what instructions do to memory and barriers is checked against both. What they report (`report`), and
//! the vector clocks of the checks (`clock`), know none of them.
//!
//! ```
//! use tilewright_ptxsim::{Launch, Memory, Param, Program, SimOptions};
//! let ptx = r#"
//! .version 8.0
//! .target sm_80
//! .address_size 64
//! .visible .entry twice(.param .u64 p) {
//!     .reg .b32 %r<4>;
//!     .reg .b64 %rd<4>;
//!     ld.param.u64 %rd1, [p];
//!     mov.u32 %r1, %tid.x;
//!     mul.wide.u32 %rd2, %r1, 4;
//!     add.s64 %rd3, %rd1, %rd2;
//!     ld.global.u32 %r2, [%rd3];
//!     shl.b32 %r3, %r2, 1;
//!     st.global.u32 [%rd3], %r3;
//!     ret;
//! }"#;
//! let mut data: Vec<u32> = (0..64).collect();
//! let mut memory = Memory::new();
//! // SAFETY: `data` lives to the end and nothing else touches it meanwhile.
//! unsafe { memory.register_slice(&mut data, "data") };
//! let launch = Launch {
//!     entry: "twice".into(),
//!     grid: [1, 1, 1],
//!     block: [64, 1, 1],
//!     cluster: None,
//!     shared_bytes: 0,
//!     params: vec![Param::Pointer(data.as_ptr() as u64)],
//! };
//! let report = Program::parse(ptx)?.launch(&launch, &memory, &SimOptions::default())?;
//! assert!(report.findings.is_empty());
//! assert_eq!(data[5], 10);
//! # Ok::<(), tilewright_ptxsim::Error>(())
//! ```

// Loops over lanes walk several arrays by one index; bit fields are clearer without the parentheses.
#![allow(clippy::needless_range_loop, clippy::precedence)]

mod access;
mod arguments;
pub mod ast;
mod barrier;
mod clock;
mod flatten;
mod fp;
mod host;
mod inline_asm;
mod isa;
mod launch;
mod layout;
mod lex;
mod machine;
mod memory;
mod order;
mod parse;
mod reach;
mod regs;
mod report;
mod shadow;
mod standstill;
mod tensor_map;
mod uninitialized;
mod whereabouts;

pub use arguments::Arguments;
pub use host::{HostFunction, HostFunctions};
pub use inline_asm::InlineAsm;
pub use launch::{Launch, Param, ParamInfo, Program, SimOptions};
pub use memory::{Allocation, Memory};
pub use parse::parse;
pub use report::{Class, Counters, Counts, Finding, FindingKind, Report, Source};
pub use standstill::{Before, Standstill};
pub use tensor_map::{Element, Swizzle, TensorMap};

/// A module that cannot be parsed or a launch that cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", if *line == 0 { String::new() } else { format!("PTX line {line}: ") })]
pub struct Error {
    /// Line of the PTX text; zero when it is not about one.
    pub line: u32,
    /// What is wrong and what to do.
    pub message: String,
}

/// How many there are along three dimensions; more than can be counted is the largest number.
pub(crate) fn volume(sizes: [u32; 3]) -> u64 {
    sizes.iter().fold(1, |n, &size| n.saturating_mul(size.into()))
}

impl Error {
    pub(crate) fn at(line: u32, message: impl Into<String>) -> Error {
        Error { line, message: message.into() }
    }
    pub(crate) fn new(message: impl Into<String>) -> Error {
        Error { line: 0, message: message.into() }
    }
}
