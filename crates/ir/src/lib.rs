//! The SSA IR: entities, types, attributes, op definitions, text, verifier, rewriting, analyses.
