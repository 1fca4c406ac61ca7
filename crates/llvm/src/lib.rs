//! The target-independent part of lowering to LLVM IR; the only crate that speaks to LLVM.
