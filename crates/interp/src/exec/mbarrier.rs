//! mbarriers: by their addresses, how many arrivals their phase still wants and which phase it is. Copies that bring bytes to one make one
//! arrival together; they have ended when they announce their bytes, since the executor copies at once. And barriers of the hardware, which whole
//! partitions come to.

use rustc_hash::FxHashMap;

use super::local::Own;
use super::{Fault, FaultBox, Frame};
use crate::program::{Instr, Program};
use crate::tile::Repr;

#[derive(Debug, Clone, Copy)]
struct Mbarrier {
    count: u64,
    pending: u64,
    /// What copies bring in each phase, and what is missing.
    bytes: u64,
    missing: u64,
    phase: u64,
}

/// The mbarriers of one program.
#[derive(Debug, Default)]
pub(super) struct Mbarriers(FxHashMap<u64, Mbarrier>);

impl Mbarriers {
    pub fn forget(&mut self) {
        self.0.clear();
    }

    pub fn init(&mut self, at: u64, count: u64, bytes: u64) {
        self.0.insert(at, Mbarrier { count, pending: count, bytes, missing: bytes, phase: 0 });
    }

    fn get(&mut self, at: u64) -> Result<&mut Mbarrier, FaultBox> {
        self.0.get_mut(&at).ok_or_else(|| Box::new(Fault::new("there is no barrier: it was not initialized")))
    }

    pub fn arrive(&mut self, at: u64, count: u64) -> Result<(), FaultBox> {
        let barrier = self.get(at)?;
        if count > barrier.pending {
            let text = format!(
                "{count} arrivals at a barrier whose phase {} has {} of {} left",
                barrier.phase, barrier.pending, barrier.count
            );
            return Err(Box::new(Fault::new(text)));
        }
        barrier.pending -= count;
        if barrier.pending == 0 {
            barrier.phase += 1;
            barrier.pending = barrier.count;
            barrier.missing = barrier.bytes;
        }
        Ok(())
    }

    /// So many bytes of a phase's have come; the last of them are an arrival.
    pub fn bring(&mut self, at: u64, bytes: u64) -> Result<(), FaultBox> {
        let barrier = self.get(at)?;
        if bytes > barrier.missing {
            let text = format!(
                "{bytes} bytes are copied to a barrier whose phase {} has {} of {} left",
                barrier.phase, barrier.missing, barrier.bytes
            );
            return Err(Box::new(Fault::new(text)));
        }
        barrier.missing -= bytes;
        if barrier.missing == 0 { self.arrive(at, 1) } else { Ok(()) }
    }

    /// Whether the phase of this parity has ended.
    pub fn is_over(&mut self, at: u64, parity: u64) -> Result<bool, FaultBox> {
        Ok(self.get(at)?.phase & 1 != parity & 1)
    }

    /// For a message: phase and arrivals.
    pub fn describe(&self, at: u64) -> String {
        match self.0.get(&at) {
            Some(b) => {
                let bytes = match b.bytes {
                    0 => String::new(),
                    all => format!(" and {} of {all} bytes", all - b.missing),
                };
                format!("phase {} has {} of {} arrivals{bytes}", b.phase, b.count - b.pending, b.count)
            }
            None => "it was not initialized".to_string(),
        }
    }
}

/// A barrier of the hardware: which partitions have come in this phase.
#[derive(Debug, Default)]
struct Named {
    come: Vec<usize>,
    parties: usize,
    phase: u64,
}

/// Those of one program, by number.
#[derive(Debug, Default)]
pub(super) struct NamedBarriers(FxHashMap<u32, Named>);

impl NamedBarriers {
    /// A partition comes to a barrier of so many; the phase that it is.
    pub fn arrive(&mut self, barrier: u32, parties: usize, partition: usize) -> Result<u64, FaultBox> {
        let named = self.0.entry(barrier).or_default();
        if named.come.contains(&partition) {
            let text = "this partition comes to a barrier again before the others of its phase have come";
            return Err(Box::new(Fault::new(text)));
        }
        named.parties = parties;
        named.come.push(partition);
        let phase = named.phase;
        if named.come.len() == parties {
            named.come.clear();
            named.phase += 1;
        }
        Ok(phase)
    }

    /// Whether all have come in a phase.
    pub fn is_over(&self, barrier: u32, phase: u64) -> bool {
        self.0.get(&barrier).is_some_and(|named| named.phase != phase)
    }

    /// For a message: who has come, of partitions or warps.
    pub fn describe(&self, barrier: u32, who: &str) -> String {
        let (come, parties) = self.0.get(&barrier).map_or((0, 0), |named| (named.come.len(), named.parties));
        format!("{come} of {parties} {who} have come")
    }
}

impl Frame {
    /// An operation on a barrier; whether the strand may go on.
    pub(super) fn at_barrier(
        &mut self,
        program: &Program,
        own: Option<&Own>,
        instr: &Instr,
    ) -> Result<bool, FaultBox> {
        let cluster = own.and_then(Own::cluster);
        for (at, count) in cluster.map_or(Vec::new(), |(cluster, rank)| cluster.receive(rank)) {
            self.mbarriers.arrive(at, count)?;
        }
        self.changed |= !matches!(instr, Instr::MbarrierWait { .. } | Instr::NamedWait { .. });
        match instr {
            Instr::MbarrierInit { at, count, bytes } => {
                let at = self.scalar(program, *at);
                self.mbarriers.init(at, *count, *bytes);
            }
            Instr::MbarrierArrive { at, count, rank } => {
                let at = self.scalar(program, *at);
                let Some((own, rank)) = own.zip(*rank) else {
                    self.mbarriers.arrive(at, *count)?;
                    return Ok(true);
                };
                let rank = i64::from(self.scalar(program, rank) as u32 as i32);
                let there = at.wrapping_add_signed(own.distance(rank)?);
                match cluster {
                    Some((cluster, me)) if me as i64 != rank => cluster.send(rank as u64, there, *count),
                    _ => self.mbarriers.arrive(there, *count)?,
                }
            }
            Instr::MbarrierBring { at, bytes } => {
                let at = self.scalar(program, *at);
                self.mbarriers.bring(at, *bytes)?;
            }
            Instr::MbarrierWait { at, parity } => {
                let (at, parity) = (self.scalar(program, *at), self.scalar(program, *parity));
                return self.mbarriers.is_over(at, parity);
            }
            Instr::NamedArrive { barrier, parties, dst } => {
                let phase = self.named.arrive(*barrier, *parties, self.strand)?;
                self.set(*dst, Repr::Uniform(phase));
            }
            Instr::NamedWait { barrier, phase } => {
                let phase = self.scalar(program, *phase);
                return Ok(self.named.is_over(*barrier, phase));
            }
            _ => unreachable!("not an operation on a barrier"),
        }
        Ok(true)
    }
}
