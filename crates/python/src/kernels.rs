//! The kernels that a function was compiled to in this process: as many as a program uses, but not as many as it ever used.

use std::sync::Arc;

use pyo3::prelude::*;
use rustc_hash::FxHashMap;

use crate::kernel::CompiledKernel;
use crate::key::Key;

/// How many are kept. A kernel takes some ten to a hundred kilobytes, and making it again milliseconds.
const LIMIT: usize = 1024;

/// A kernel, and when it was asked for last.
struct Kept {
    kernel: Arc<Py<CompiledKernel>>,
    used: u64,
}

/// Kernels by key.
#[derive(Default)]
pub struct Kernels {
    by_key: FxHashMap<Key, Kept>,
    /// Counts questions.
    clock: u64,
}

impl Kernels {
    /// The kernel compiled for a key.
    #[inline]
    pub fn get(&mut self, key: &Key) -> Option<Arc<Py<CompiledKernel>>> {
        self.clock += 1;
        let kept = self.by_key.get_mut(key)?;
        kept.used = self.clock;
        Some(kept.kernel.clone())
    }

    /// Keeps a kernel; where one is there already, that one stays. Gives it, and those that are kept no more, which are to be
    /// dropped where nothing is locked.
    pub fn keep(
        &mut self,
        key: Key,
        kernel: Arc<Py<CompiledKernel>>,
    ) -> (Arc<Py<CompiledKernel>>, Vec<Arc<Py<CompiledKernel>>>) {
        self.clock += 1;
        let used = self.clock;
        let kept = self.by_key.entry(key).or_insert(Kept { kernel, used }).kernel.clone();
        let dropped = if self.by_key.len() > LIMIT { self.make_room() } else { Vec::new() };
        (kept, dropped)
    }

    /// Takes out the quarter that was not asked for the longest, so that this happens rarely.
    #[cold]
    fn make_room(&mut self) -> Vec<Arc<Py<CompiledKernel>>> {
        // What is on a GPU stays: it may run there, and a captured graph may start it without asking.
        let mut ages: Vec<u64> =
            self.by_key.values().filter(|k| !k.kernel.get().is_loaded()).map(|k| k.used).collect();
        if ages.is_empty() {
            return Vec::new();
        }
        let at = (LIMIT / 4).min(ages.len() - 1);
        let (_, &mut bound, _) = ages.select_nth_unstable(at);
        let old = |_: &Key, kept: &mut Kept| kept.used < bound && !kept.kernel.get().is_loaded();
        self.by_key.extract_if(old).map(|(_, kept)| kept.kernel).collect()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Py<CompiledKernel>>> {
        self.by_key.values().map(|kept| &kept.kernel)
    }
}
