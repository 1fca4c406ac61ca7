//! Compiles a kernel file and runs it, with no Python in the process.
fn main() {}
