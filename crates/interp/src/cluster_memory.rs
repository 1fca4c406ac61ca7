//! Buffers that the programs of a cluster reach in each other, and arrivals at each other's mbarriers.
//!
//! They lie in one piece of memory, each program's at the same distance from its beginning: an address in another program's is one in this
//! program's and a multiple of that distance, as it is on a GPU.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::buffer::Buffer;
use crate::program::Program;

/// The clusters of a launch whose programs run.
#[derive(Default)]
pub struct Clusters {
    memories: Mutex<FxHashMap<u64, Weak<ClusterMemory>>>,
    blocks: Mutex<SharedBlocks>,
}

/// The buffers of one cluster.
pub struct ClusterMemory {
    /// The cluster's number in the launch.
    pub number: u64,
    begin: u64,
    /// Bytes from one program's buffers to the next one's.
    pub stride: u64,
    /// How many programs there are.
    pub programs: u64,
    /// Never looked at through this: programs on several threads do.
    _memory: Buffer,
    arrivals: Mutex<Arrivals>,
}

/// The blocks that programs bring together.
#[derive(Debug, Default)]
struct SharedBlocks {
    /// How many each program, a rank of a cluster, has brought by each instruction.
    brought: FxHashMap<(u64, usize, u64), u64>,
    /// Those that not all have come to: by cluster, instruction, the lowest rank of those that share it, and how many each of these brought
    /// before.
    open: FxHashMap<(u64, usize, u64, u64), SharedBlock>,
}

/// A block that programs bring together.
#[derive(Debug, Clone)]
pub struct SharedBlock {
    /// The program that came first.
    pub rank: u64,
    /// Where its block begins in the tensor.
    pub coord: Vec<i32>,
    /// How many programs have not come.
    missing: u32,
}

/// What programs tell each other by mbarriers.
#[derive(Debug, Default)]
struct Arrivals {
    /// Those that the program of a rank has not looked at: the rank, the mbarrier's address and how many.
    sent: Vec<(u64, u64, u64)>,
    /// The programs that wait for others of the cluster, and have been told nothing since.
    waiting: FxHashSet<u64>,
    barriers_met: u64,
}

/// Buffers begin at a cache line, with one between them.
fn room(bytes: usize) -> u64 {
    (bytes as u64).next_multiple_of(64) + 64
}

impl Clusters {
    /// The buffers of a cluster, which all of its programs have alike. They are there as long as one of the programs has them.
    pub fn memory(&self, cluster: u64, programs: u64, program: &Program) -> Arc<ClusterMemory> {
        let mut clusters = self.memories.lock().unwrap_or_else(PoisonError::into_inner);
        let known = clusters.entry(cluster).or_default();
        if let Some(memory) = known.upgrade() {
            return memory;
        }
        let stride: u64 = program.locals.iter().map(|local| room(local.bytes)).sum();
        let mut memory = Buffer::default();
        let all = (stride * programs) as usize;
        memory.slice_mut::<u8>(all).fill(0xff);
        let made = Arc::new(ClusterMemory {
            number: cluster,
            begin: memory.ptr_mut() as u64,
            stride,
            programs,
            _memory: memory,
            arrivals: Mutex::default(),
        });
        *known = Arc::downgrade(&made);
        made
    }

    /// A program of a cluster brings a block together with those whose ranks differ from its own in the bits of `mask` alone, by the
    /// instruction `pc`.
    ///
    /// # Errors
    /// What another one of them has brought, if it is another block.
    pub fn share_block(
        &self,
        (cluster, rank): (u64, u64),
        pc: usize,
        mask: u64,
        coord: &[i32],
    ) -> Result<(), SharedBlock> {
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        let brought = blocks.brought.entry((cluster, pc, rank)).or_default();
        let key = (cluster, pc, rank & !mask, *brought);
        *brought += 1;
        let all = 1 << mask.count_ones();
        let first = SharedBlock { rank, coord: coord.to_vec(), missing: all };
        let block = blocks.open.entry(key).or_insert(first);
        block.missing -= 1;
        let agreed = if block.coord == coord { Ok(()) } else { Err(block.clone()) };
        if block.missing == 0 {
            blocks.open.remove(&key);
        }
        agreed
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

    fn arrivals(&self) -> MutexGuard<'_, Arrivals> {
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Arrivals at an mbarrier of the program of a rank.
    pub fn send(&self, rank: u64, address: u64, count: u64) {
        let mut arrivals = self.arrivals();
        arrivals.sent.push((rank, address, count));
        arrivals.waiting.remove(&rank);
    }

    /// What has been sent to the program of a rank since it last looked: addresses and counts.
    pub fn receive(&self, rank: u64) -> Vec<(u64, u64)> {
        let sent = &mut self.arrivals().sent;
        let mine = sent.extract_if(.., |arrival| arrival.0 == rank);
        mine.map(|(_, address, count)| (address, count)).collect()
    }

    /// The program of a rank waits for others; gives whether all of the cluster do, so that nobody will go on.
    pub fn wait(&self, rank: u64) -> bool {
        let mut arrivals = self.arrivals();
        // (Who has been sent something is not among those that wait.)
        let told = arrivals.sent.iter().any(|arrival| arrival.0 == rank);
        !told && self.all_wait(&mut arrivals, rank)
    }

    /// How many barriers of the cluster all of its programs have come to.
    pub fn barriers_met(&self) -> u64 {
        self.arrivals().barriers_met
    }

    /// As [`wait`](Self::wait), at a barrier that had not been met when `barriers_met` had: if one has been since, the program may be among those who
    /// go on, and looks again.
    pub fn wait_at_barrier(&self, rank: u64, barriers_met: u64) -> bool {
        let mut arrivals = self.arrivals();
        arrivals.barriers_met == barriers_met && self.all_wait(&mut arrivals, rank)
    }

    /// With this one, too.
    fn all_wait(&self, arrivals: &mut Arrivals, rank: u64) -> bool {
        arrivals.waiting.insert(rank);
        arrivals.waiting.len() as u64 == self.programs
    }

    /// Those that have waited at a barrier of the cluster go on.
    pub fn go_on(&self) {
        let mut arrivals = self.arrivals();
        arrivals.waiting.clear();
        arrivals.barriers_met += 1;
    }
}
