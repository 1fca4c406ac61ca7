//! Analyses: what can be known of a module, and what follows from encodings. They change nothing.

pub mod affine;
pub mod axis;
pub mod calls;
pub mod counting;
pub mod distinct;
pub mod encoding_choice;
pub mod encoding_inference;
pub mod global_bases;
pub mod intervals;
pub mod local_memory;
pub mod local_pointers;
pub mod own_bytes;
pub mod promises;
pub mod reindex;
pub mod rings;
pub mod scope;
pub mod scratch;
pub mod sign;
pub mod tile_layout;
pub mod unseen;
pub mod waiting;
