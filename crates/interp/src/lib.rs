//! The CPU executor: the reference meaning of every op.
