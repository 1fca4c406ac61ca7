//! mbarriers: by their addresses, how many arrivals their phase still wants and which phase it is.

use rustc_hash::FxHashMap;

use super::{Fault, FaultBox};

#[derive(Debug, Clone, Copy)]
struct Mbarrier {
    count: u64,
    pending: u64,
    phase: u64,
}

/// The mbarriers of one program.
#[derive(Debug, Default)]
pub(super) struct Mbarriers(FxHashMap<u64, Mbarrier>);

impl Mbarriers {
    pub fn forget(&mut self) {
        self.0.clear();
    }

    pub fn init(&mut self, at: u64, count: u64) {
        self.0.insert(at, Mbarrier { count, pending: count, phase: 0 });
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
        }
        Ok(())
    }

    /// Whether the phase of this parity has ended.
    pub fn is_over(&mut self, at: u64, parity: u64) -> Result<bool, FaultBox> {
        Ok(self.get(at)?.phase & 1 != parity & 1)
    }

    /// For a message: phase and arrivals.
    pub fn describe(&self, at: u64) -> String {
        match self.0.get(&at) {
            Some(b) => format!("phase {} has {} of {} arrivals", b.phase, b.count - b.pending, b.count),
            None => "it was not initialized".to_string(),
        }
    }
}
