//! The CPU executor: the reference meaning of every op.
//!
//! [`Executable::compile`] turns a function of a `tt` module into a flat program over registers that hold whole tiles;
//! [`Executable::run`] runs it for every program of a grid, on all cores, on memory in place. Every access is checked
//! against the allocations of a [`Memory`]. What each operation rounds, and when, is in `docs/numerics.md`.
//!
//! In: the `tt` module that [`tilewright_frontend`](../tilewright_frontend/index.html) has made, after the passes of
//! [`tilewright_ir::pass`]. Out: what the program leaves in memory.
//!
//! In the order in which data flows: `compile` (IR to [program](self)), `program` (the instructions), `exec` (runs
//! them), with `kernels` (elementwise loops), `shape` (what arranges elements), `lazy` and `tile` (compact forms of index arithmetic and masks), `memory`
//! (checks), `cluster_memory` (buffers that other programs reach), `meeting` (barriers of programs), `races` (between ranks), `float` and `elem` (formats).

mod buffer;
mod cluster_memory;
mod compile;
mod elem;
mod exec;
mod executable;
mod float;
mod kernels;
mod lazy;
mod meeting;
mod memory;
mod program;
mod races;
mod shape;
mod shared_copy;
mod tile;

pub use executable::{Arg, Executable, RunError, RunOptions};
pub use memory::{Allocation, Memory};
