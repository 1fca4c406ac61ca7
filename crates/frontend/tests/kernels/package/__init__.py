"""A package whose kernels use each other's functions (`imports.rs`)."""
