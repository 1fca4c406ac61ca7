//! The PyO3 extension module of the Python package: argument binding, specialization, the launch fast path, and the
//! [`Host`](tilewright_frontend::Host) that asks CPython what a kernel's source names.
//!
//! How a call `kernel[grid](x, y, n, BLOCK=128)` goes:
//!
//! 1. `jit`: `kernel[grid]` makes a built-in function object; calling it lands in Rust with no Python frame.
//! 2. `params`: the arguments are bound to the kernel's parameters and options.
//! 3. `args`: each argument is looked at once: what type it has in the kernel, whether it is specialized (a multiple of
//!    16, the number 1, a constant), its bits, and where its memory is.
//! 4. `key`: what was found is a list of words; the kernel compiled for these words is looked up.
//! 5. `compile` on a miss: the words' meaning goes to the compiler, with `host` to answer what names mean. `ahead` does the
//!    same before a launch, and for many kernels at once.
//! 6. `grid` and `launch`: the grid is read, and the kernel started where its arguments live.

use pyo3::prelude::*;

mod ahead;
mod args;
mod captured;
mod command;
mod compile;
mod descriptor;
mod dlpack;
mod errors;
mod grid;
mod hooks;
mod host;
mod host_memory;
mod interrupt;
mod ir;
mod jit;
mod kernel;
mod kernels;
mod key;
mod launch;
mod linear_layout;
mod memory;
mod nesting;
mod npusim;
mod params;
mod profiler;
mod progress;
mod ranks;
mod simulate;
mod tensor_map;
mod torch;
mod wrong_call;
mod xesim;

/// `tilewright._tilewright`: the compiler, the CPU executor and the launcher, as Python sees them.
#[pymodule]
fn _tilewright(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add("BUILD_ID", tilewright_compiler::BUILD_ID)?;
    m.add("SCALAR_TYPES", host::scalar_types(m.py())?)?;
    errors::register(m)?;
    m.add_class::<jit::JitBase>()?;
    m.add_class::<kernel::CompiledKernel>()?;
    m.add_class::<args::StandIn>()?;
    m.add_class::<launch::Place>()?;
    m.add_function(wrap_pyfunction!(args::signature_of, m)?)?;
    m.add_class::<ahead::CompileAhead>()?;
    m.add_class::<ahead::KernelAhead>()?;
    m.add_class::<progress::Progress>()?;
    m.add_class::<linear_layout::NamedLayout>()?;
    m.add_function(wrap_pyfunction!(ahead::available_parallelism, m)?)?;
    m.add_function(wrap_pyfunction!(command::command, m)?)?;
    m.add_function(wrap_pyfunction!(compile::made_with, m)?)?;
    m.add_function(wrap_pyfunction!(hooks::hook_launches, m)?)?;
    m.add_function(wrap_pyfunction!(hooks::hook_compiles, m)?)?;
    m.add_function(wrap_pyfunction!(hooks::hook_loads, m)?)?;
    m.add_function(wrap_pyfunction!(params::option_defaults, m)?)?;
    m.add_function(wrap_pyfunction!(params::set_option_defaults, m)?)?;
    m.add_function(wrap_pyfunction!(ranks::reach_ranks_by, m)?)?;
    m.add_function(wrap_pyfunction!(params::force_debug, m)?)?;
    m.add_function(wrap_pyfunction!(simulate::simulate_ptx, m)?)?;
    m.add_function(wrap_pyfunction!(simulate::tensor_map, m)?)?;
    m.add_function(wrap_pyfunction!(descriptor::check_tensor_descriptor, m)?)?;
    let after_fork = wrap_pyfunction!(host_memory::after_fork, m)?;
    let hooks = pyo3::types::PyDict::new(m.py());
    hooks.set_item("after_in_child", after_fork)?;
    m.py().import("os")?.call_method("register_at_fork", (), Some(&hooks))?;
    ir::register(m)?;
    profiler::register(m)?;
    launch::register(m)
}
