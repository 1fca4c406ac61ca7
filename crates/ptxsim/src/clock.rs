//! Vector clocks over warps.
//!
//! A warp's own entry counts its *release points* (barriers, releases, `bar.warp.sync`); an access is stamped with the
//! entry at its time. Warp `v`'s access with stamp `c` happened before what warp `w` does now when `w`'s entry for `v`
//! is at least `c`. Warps of one unit (a cluster, mostly one CTA) have dense clocks; what is known of other units comes
//! in only through atomics in global memory, and is kept aside, mostly empty.

use std::collections::HashMap;

/// What a warp, a barrier or a memory location is ordered after.
#[derive(Clone, Default, Debug)]
pub(crate) struct Clock {
    /// By warp of the unit.
    pub own: Vec<u32>,
    /// As `own`, but of accesses that a proxy fence has made visible to the asynchronous proxy.
    pub proxy: Vec<u32>,
    /// By other unit.
    pub foreign: Option<HashMap<u32, Vec<u32>>>,
}

fn join(a: &mut Vec<u32>, b: &[u32]) {
    if a.len() < b.len() {
        a.resize(b.len(), 0);
    }
    for (a, b) in a.iter_mut().zip(b) {
        *a = (*a).max(*b);
    }
}

impl Clock {
    /// Takes in all that `o` knows, both being of one unit.
    pub fn join(&mut self, o: &Clock) {
        join(&mut self.own, &o.own);
        join(&mut self.proxy, &o.proxy);
        if let Some(f) = &o.foreign {
            let mine = self.foreign.get_or_insert_default();
            for (u, c) in f.iter() {
                join(mine.entry(*u).or_default(), c);
            }
        }
    }

    /// Takes in what warps of unit `other` know, into a clock of unit `me`.
    pub fn join_from(&mut self, me: u32, other: u32, o: &Clock) {
        if me == other {
            self.join(o);
            return;
        }
        let mine = self.foreign.get_or_insert_default();
        join(mine.entry(other).or_default(), &o.own);
        if let Some(f) = &o.foreign {
            for (u, c) in f.iter() {
                if *u == me {
                    join(&mut self.own, c);
                } else {
                    join(mine.entry(*u).or_default(), c);
                }
            }
        }
    }

    /// Whether warp `warp` of unit `unit` is known up to stamp `c`, seen from unit `me`.
    #[inline]
    pub fn covers(&self, me: u32, unit: u32, warp: u32, c: u32) -> bool {
        let v = if me == unit {
            self.own.get(warp as usize)
        } else {
            self.foreign.as_ref().and_then(|f| f.get(&unit)).and_then(|v| v.get(warp as usize))
        };
        v.is_some_and(|v| *v >= c)
    }
}

/// The ordering state of one warp.
#[derive(Default)]
pub(crate) struct Sync {
    /// Its index in the unit.
    pub index: u32,
    pub clock: Clock,
    /// Accesses of this warp up to this stamp are ordered between all its lanes.
    synced: u32,
    /// The same between two lanes only, after `bar.warp.sync` of part of the warp.
    pairs: Option<Box<[[u32; 32]; 32]>>,
    /// Each lane is ordered after what any lane of its own warp did up to this stamp, by a message through memory.
    heard: [u32; 32],
    /// The same, once the lane has made a fence.
    hears: [u32; 32],
    /// The clock at the last fence: what relaxed writes publish.
    pub fenced: Option<Box<Clock>>,
    /// What relaxed reads have seen: acquired at the next fence.
    pub seen: Option<Box<Clock>>,
    /// Cluster barriers passed.
    pub cluster_phase: u32,
    /// The cluster barrier's phase at the last arrive, by which a wait knows what it waits for.
    pub cluster_arrived: u32,
    /// What a wait at the cluster barrier acquires.
    pub cluster_clock: Option<Box<Clock>>,
}

impl Sync {
    pub fn new(index: u32, warps: u32) -> Sync {
        let mut s = Sync { index, ..Sync::default() };
        s.clock.own = vec![0; warps as usize];
        s.clock.own[index as usize] = 1;
        s
    }

    /// The stamp of accesses made now.
    #[inline]
    pub fn now(&self) -> u32 {
        self.clock.own[self.index as usize]
    }

    /// Later accesses get a new stamp: what was published so far does not cover them.
    pub fn tick(&mut self) {
        self.clock.own[self.index as usize] += 1;
    }

    /// All lanes are ordered with each other up to now.
    pub fn sync_lanes(&mut self) {
        self.synced = self.now();
        self.pairs = None;
        self.tick();
    }

    /// The lanes of `mask` are ordered with each other up to now.
    pub fn sync_some(&mut self, mask: u32) {
        let now = self.now();
        let p = self.pairs.get_or_insert_with(|| Box::new([[0; 32]; 32]));
        for a in crate::access::lanes(mask) {
            for b in crate::access::lanes(mask) {
                p[a][b] = now;
            }
        }
        self.tick();
    }

    /// Whether this warp's lane `other`, at stamp `c`, is ordered before its lane `lane` now.
    #[inline]
    pub fn lanes_ordered(&self, lane: u32, other: u32, c: u32) -> bool {
        c <= self.synced
            || lane == other
            || c <= self.heard[lane as usize]
            || other < 32 && self.pairs.as_ref().is_some_and(|p| p[lane as usize][other as usize] >= c)
    }

    /// Lanes `mask` have read a message with this clock, of the same unit, in it.
    pub fn hear(&mut self, mask: u32, c: &Clock, acquire: bool) {
        let Some(&stamp) = c.own.get(self.index as usize) else { return };
        let to = if acquire { &mut self.heard } else { &mut self.hears };
        for l in crate::access::lanes(mask) {
            to[l] = to[l].max(stamp);
        }
    }

    /// A fence: reads so far are acquired, and writes from here on publish what is known now.
    pub fn fence(&mut self, mask: u32) {
        for l in crate::access::lanes(mask) {
            self.heard[l] = self.heard[l].max(self.hears[l]);
        }
        if let Some(s) = self.seen.take() {
            self.clock.join(&s);
        }
        self.fenced = Some(Box::new(self.clock.clone()));
        self.tick();
    }

    /// A fence between the generic and the asynchronous proxy.
    pub fn proxy_fence(&mut self) {
        self.clock.proxy = self.clock.own.clone();
        self.tick();
    }
}
