//! Buffers that the programs of a cluster reach in each other.
//!
//! They lie in one piece of memory, each program's at the same distance from its beginning: an address in another program's is one in this
//! program's and a multiple of that distance, as it is on a GPU.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use rustc_hash::FxHashMap;

use crate::buffer::Buffer;
use crate::program::Program;

/// The clusters of a launch whose programs run.
#[derive(Default)]
pub struct Clusters(Mutex<FxHashMap<u64, Weak<ClusterMemory>>>);

/// The buffers of one cluster.
pub struct ClusterMemory {
    begin: u64,
    /// Bytes from one program's buffers to the next one's.
    pub stride: u64,
    /// How many programs there are.
    pub programs: u64,
    /// Never looked at through this: programs on several threads do.
    _memory: Buffer,
}

/// Buffers begin at a cache line, with one between them.
fn room(bytes: usize) -> u64 {
    (bytes as u64).next_multiple_of(64) + 64
}

impl Clusters {
    /// The buffers of a cluster, which all of its programs have alike. They are there as long as one of the programs has them.
    pub fn memory(&self, cluster: u64, programs: u64, program: &Program) -> Arc<ClusterMemory> {
        let mut clusters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = clusters.entry(cluster).or_default();
        if let Some(memory) = known.upgrade() {
            return memory;
        }
        let stride: u64 = program.locals.iter().map(|local| room(local.bytes)).sum();
        let mut memory = Buffer::default();
        let all = (stride * programs) as usize;
        memory.slice_mut::<u8>(all).fill(0xff);
        let made =
            Arc::new(ClusterMemory { begin: memory.ptr_mut() as u64, stride, programs, _memory: memory });
        *known = Arc::downgrade(&made);
        made
    }
}

impl ClusterMemory {
    /// The address of each buffer of the program of this rank.
    pub fn addresses(&self, program: &Program, rank: u64) -> Vec<u64> {
        let mut end = self.begin + rank * self.stride;
        let mut next = |bytes| {
            let begin = end;
            end += room(bytes);
            begin
        };
        program.locals.iter().map(|local| next(local.bytes)).collect()
    }
}
