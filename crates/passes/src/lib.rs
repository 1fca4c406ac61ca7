//! The tt and ttg passes and the pipeline of each target.
