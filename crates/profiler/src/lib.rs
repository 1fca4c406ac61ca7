//! Which call path of a program took how long on the GPU.
//!
//! In: scopes that a program enters and leaves, and kernels with their times, from CUPTI for a GPU and from the host's clock for the CPU
//! executor and the simulator. Out: a profile, as a tree of times and metrics or as a list of events, in files that Triton's viewer and
//! Chrome's tracing read.
//!
//! A **path** is a chain of names, kept once for all sessions ([`PathId`]). Where a launch comes from is known when it is made (`here`), what
//! it took only much later: CUPTI gives both sides one number, under which the path is kept meanwhile (`launches`). A **session** adds up
//! what happens at each path while it is active (`session`, behind the functions of this module).
//!
//! Locks: those of the sessions and of the table of launches are never held while something foreign is called, be it CUPTI, the driver or Python.

mod cupti;
mod error;
mod here;
mod launches;
mod metric;
mod path;
mod session;
mod trace;
mod tree;

pub use cupti::{Facts, facts, set_places};
pub use error::{Error, Result};
pub use here::{enter_op, enter_scope, exit_op, exit_scope, set_frames, set_state};
pub use metric::{Metric, Value};
pub use path::{PathId, Paths};
pub use session::{
    Backend, DeviceFacts, DeviceKind, Format, Kernel, Settings, Source, activate, activate_all, active,
    add_metrics, context_depth, deactivate, deactivate_all, finalize, finalize_all, host_kernel, host_time,
    new_scope, start,
};
