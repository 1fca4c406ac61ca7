//! Launches under way: from the number that CUPTI gives both a launch and its kernels to where the launch was made.

use std::sync::Mutex;

use rustc_hash::FxHashMap;

use crate::here::Site;

/// How many launches are remembered at least.
const KEPT: usize = 1 << 20;

/// Nobody says when the last kernel of a launch has been reported (a graph has many), or that a launch has none: what is old is forgotten.
#[derive(Default)]
pub(crate) struct Launches {
    young: FxHashMap<u32, Site>,
    old: FxHashMap<u32, Site>,
    /// The highest number of a launch that was made.
    pub made: u32,
    /// The highest number under which a kernel has been reported.
    pub reported: u32,
}

static LAUNCHES: Mutex<Option<Launches>> = Mutex::new(None);

/// Works with the table.
pub(crate) fn with_launches<T>(f: impl FnOnce(&mut Launches) -> T) -> T {
    f(LAUNCHES.lock().unwrap_or_else(|e| e.into_inner()).get_or_insert_default())
}

impl Launches {
    /// Remembers a launch.
    pub fn insert(&mut self, number: u32, site: Site) {
        if self.young.len() >= KEPT {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(number, site);
        self.made = self.made.max(number);
    }

    /// Where the launch with this number was made.
    pub fn find(&mut self, number: u32) -> Option<Site> {
        self.reported = self.reported.max(number);
        self.young.get(&number).or_else(|| self.old.get(&number)).copied()
    }

    /// Forgets all: every kernel has been reported.
    pub fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::PathId;

    fn site(path: u32) -> Site {
        Site { shadow: PathId(path), python: PathId::ROOT, named: false }
    }

    #[test]
    fn a_launch_is_found_until_many_have_followed() {
        let mut launches = Launches::default();
        for number in 0..2 * KEPT as u32 {
            launches.insert(number, site(number));
        }
        assert_eq!(launches.find(0), Some(site(0)));
        assert_eq!(launches.find(2 * KEPT as u32 - 1), Some(site(2 * KEPT as u32 - 1)));
        launches.insert(u32::MAX, site(7));
        assert_eq!(launches.find(0), None);
        assert_eq!(launches.find(KEPT as u32), Some(site(KEPT as u32)));
        assert_eq!(launches.made, u32::MAX);
        assert_eq!(launches.reported, 2 * KEPT as u32 - 1);
    }
}
