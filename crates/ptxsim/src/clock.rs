//! Vector clocks over warps.
//!
//! A warp's own entry counts its *release points* (barriers, releases, `bar.warp.sync`); an access is stamped with the
//! entry at its time. Warp `v`'s access with stamp `c` happened before what warp `w` does now when `w`'s entry for `v`
//! is at least `c`. Warps of one unit (a cluster, mostly one CTA) have dense clocks; what is known of other units comes
//! in only through atomics in global memory, and is kept aside, mostly empty. After the warps' entries come those of the
//! asynchronous proxy's agents ([`crate::shadow::Agent`]).
//!
//! A warp's clock holds what all its lanes know. What one lane has learnt alone (an elected lane that waits at an mbarrier)
//! is kept for that lane until the lanes synchronize.

use std::collections::HashMap;

/// What a warp, a barrier or a memory location is ordered after.
#[derive(Clone, Default, Debug)]
pub(crate) struct Clock {
    /// By warp of the unit.
    pub own: Vec<u32>,
    /// Of the lanes of a mask only, whose warp's other lanes have not told anyone: warp, mask, stamp.
    pub lanes: Vec<(u32, u32, u32)>,
    /// As `own`, but of accesses that a proxy fence has made visible to the asynchronous proxy.
    pub proxy: Vec<u32>,
    /// The same for the lanes of a mask only, whose warp's other lanes did not make the fence: warp, mask, stamp.
    pub proxy_lanes: Vec<(u32, u32, u32)>,
    /// By other unit.
    pub foreign: Option<HashMap<u32, Vec<u32>>>,
    /// By any unit: accesses that a proxy fence for global memory has made visible to the asynchronous proxy, on whichever side of a message.
    pub copies: Option<HashMap<u32, Vec<u32>>>,
}

fn join(a: &mut Vec<u32>, b: &[u32]) {
    if a.len() < b.len() {
        a.resize(b.len(), 0);
    }
    for (a, b) in a.iter_mut().zip(b) {
        *a = (*a).max(*b);
    }
}

/// Notes a stamp of the lanes `mask` of a warp.
fn note(list: &mut Vec<(u32, u32, u32)>, w: u32, mask: u32, c: u32) {
    match list.iter_mut().find(|x| (x.0, x.1) == (w, mask)) {
        Some(x) => x.2 = x.2.max(c),
        None => list.push((w, mask, c)),
    }
}

/// Whether a lane of a warp is noted up to a stamp.
fn noted(list: &[(u32, u32, u32)], w: u32, lane: u32, c: u32) -> bool {
    list.iter().any(|x| x.0 == w && lane < 32 && x.1 >> lane & 1 != 0 && x.2 >= c)
}

impl Clock {
    /// Takes in all that `o` knows, both being of one unit.
    pub fn join(&mut self, o: &Clock) {
        join(&mut self.own, &o.own);
        join(&mut self.proxy, &o.proxy);
        for &(w, m, c) in &o.lanes {
            note(&mut self.lanes, w, m, c);
        }
        for &(w, m, c) in &o.proxy_lanes {
            note(&mut self.proxy_lanes, w, m, c);
        }
        if let Some(f) = &o.foreign {
            let mine = self.foreign.get_or_insert_default();
            for (u, c) in f.iter() {
                join(mine.entry(*u).or_default(), c);
            }
        }
        self.join_copies(o);
    }

    fn join_copies(&mut self, o: &Clock) {
        for (u, c) in o.copies.iter().flatten() {
            join(self.copies.get_or_insert_default().entry(*u).or_default(), c);
        }
    }

    /// All of global memory that is known is behind a fence between the proxies; `me` is the own unit.
    fn fence_copies(&mut self, me: u32) {
        let copies = self.copies.get_or_insert_default();
        join(copies.entry(me).or_default(), &self.own);
        for (u, c) in self.foreign.iter().flatten() {
            join(copies.entry(*u).or_default(), c);
        }
    }

    /// Whether a copy sees what a warp of a unit wrote to global memory at stamp `c`.
    fn copies_see(&self, unit: u32, warp: u32, c: u32) -> bool {
        let known = self.copies.as_ref().and_then(|x| x.get(&unit)).and_then(|x| x.get(warp as usize));
        known.is_some_and(|&k| k >= c)
    }

    /// All that is known is behind a fence between the proxies.
    fn fence_proxies(&mut self) {
        self.proxy = self.own.clone();
        for &(w, m, c) in &self.lanes {
            note(&mut self.proxy_lanes, w, m, c);
        }
    }

    /// Whether the asynchronous proxy sees what lane `lane` of warp `w` wrote at stamp `c`.
    fn proxy_sees(&self, w: u32, lane: u32, c: u32) -> bool {
        self.proxy.get(w as usize).is_some_and(|&p| p >= c) || noted(&self.proxy_lanes, w, lane, c)
    }

    /// Whether lane `lane` of warp `w` of this unit is known up to stamp `c`, be it alone.
    pub fn covers_lane(&self, w: u32, lane: u32, c: u32) -> bool {
        self.own.get(w as usize).is_some_and(|&p| p >= c) || noted(&self.lanes, w, lane, c)
    }

    /// An agent's operations up to stamp `c` are complete.
    pub fn completed(&mut self, party: u32, c: u32) {
        let k = party as usize;
        if self.own.len() <= k {
            self.own.resize(k + 1, 0);
        }
        self.own[k] = self.own[k].max(c);
    }

    /// Takes in what warps of unit `other` know, into a clock of unit `me`.
    pub fn join_from(&mut self, me: u32, other: u32, o: &Clock) {
        if me == other {
            self.join(o);
            return;
        }
        self.join_copies(o);
        let mine = self.foreign.get_or_insert_default();
        let theirs = mine.entry(other).or_default();
        join(theirs, &o.own);
        // (Of another unit's warps it is not kept which lanes have told.)
        for &(w, _, c) in &o.lanes {
            theirs[w as usize] = theirs[w as usize].max(c);
        }
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
#[derive(Clone, Default)]
pub(crate) struct Sync {
    /// Its index in the unit.
    pub index: u32,
    pub clock: Clock,
    /// What single lanes know beyond it.
    alone: Option<Box<[Option<Clock>; 32]>>,
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
    pub seen: Option<Box<(u32, Clock)>>,
    /// Cluster barriers passed.
    pub cluster_phase: u32,
    /// The cluster barrier's phase at the last arrive, by which a wait knows what it waits for.
    pub cluster_arrived: u32,
    /// What a wait at the cluster barrier acquires.
    pub cluster_clock: Option<Box<Clock>>,
}

impl Sync {
    pub fn new(index: u32, parties: u32) -> Sync {
        let mut s = Sync { index, ..Sync::default() };
        s.clock.own = vec![0; parties as usize];
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

    /// Lanes `mask`, of those alive, learn `c`.
    pub fn acquire(&mut self, mask: u32, live: u32, c: &Clock) {
        if mask & live == live {
            self.clock.join(c);
            return;
        }
        let alone = self.alone.get_or_insert_default();
        for l in crate::regs::lanes(mask) {
            alone[l].get_or_insert_default().join(c);
        }
    }

    /// What lanes `mask` know together.
    pub fn known(&self, mask: u32) -> std::borrow::Cow<'_, Clock> {
        let mut c = std::borrow::Cow::Borrowed(&self.clock);
        if let Some(a) = &self.alone {
            for l in crate::regs::lanes(mask) {
                if let Some(x) = &a[l] {
                    c.to_mut().join(x);
                }
            }
        }
        c
    }

    /// Whether lane `lane` knows what lane `by` of party `party` of unit `unit` did up to stamp `c`, `me` being its own unit.
    #[inline]
    pub fn covers(&self, lane: u32, me: u32, unit: u32, party: u32, by: u32, c: u32) -> bool {
        let knows = |x: &Clock| x.covers(me, unit, party, c) || me == unit && x.covers_lane(party, by, c);
        knows(&self.clock)
            || self.alone.as_ref().is_some_and(|a| a[lane as usize].as_ref().is_some_and(knows))
    }

    /// What lane `lane` tells others when the lanes `mask` of those alive do so: alone it speaks for itself, and for the others as far as it
    /// has synchronized with them.
    pub fn told(&self, lane: usize, mask: u32, live: u32) -> Clock {
        let mut c = self.known(1 << lane).into_owned();
        if mask & live != live {
            let me = self.index;
            c.own[me as usize] = self.synced.max(self.heard[lane]);
            note(&mut c.lanes, me, 1 << lane, self.now());
            for (other, &stamp) in self.pairs.iter().flat_map(|p| p[lane].iter().enumerate()) {
                if stamp > 0 {
                    note(&mut c.lanes, me, 1 << other, stamp);
                }
            }
        }
        c
    }

    /// Whether the asynchronous proxy, set to work by lane `lane`, sees a write of the generic proxy.
    pub fn proxy_sees(&self, lane: u32, warp: u32, other: u32, c: u32) -> bool {
        self.clock.proxy_sees(warp, other, c)
            || self
                .alone
                .as_ref()
                .is_some_and(|a| a[lane as usize].as_ref().is_some_and(|x| x.proxy_sees(warp, other, c)))
    }

    /// Whether a copy from global memory, issued by lane `lane`, sees what a warp of a unit wrote at stamp `c`.
    pub fn copies_see(&self, lane: u32, unit: u32, warp: u32, c: u32) -> bool {
        let alone = self.alone.as_ref().and_then(|a| a[lane as usize].as_ref());
        self.clock.copies_see(unit, warp, c) || alone.is_some_and(|x| x.copies_see(unit, warp, c))
    }

    /// A fence between the proxies for global memory, by lanes `mask` of those alive, of a warp of unit `unit`.
    pub fn copies_fence(&mut self, mask: u32, live: u32, unit: u32) {
        if mask & live == live {
            self.clock.fence_copies(unit);
            return;
        }
        let (me, synced) = (self.index as usize, self.synced);
        for l in crate::regs::lanes(mask) {
            let mut c = self.known(1 << l).into_owned();
            c.own[me] = synced;
            c.fence_copies(unit);
            self.alone.get_or_insert_default()[l].get_or_insert_default().join(&c);
        }
    }

    /// All lanes are ordered with each other up to now.
    pub fn sync_lanes(&mut self) {
        self.synced = self.now();
        self.pairs = None;
        for c in self.alone.take().into_iter().flat_map(|a| *a).flatten() {
            self.clock.join(&c);
        }
        // What one lane has seen becomes the others' by their own fence: more than the letter of §8.7 gives, but what
        // the last block of a reduction relies on (one thread takes the ticket, then a barrier, then all make a fence).
        if let Some(s) = &mut self.seen {
            s.0 = !0;
        }
        self.tick();
    }

    /// The lanes of `mask` are ordered with each other up to now.
    pub fn sync_some(&mut self, mask: u32) {
        let now = self.now();
        let p = self.pairs.get_or_insert_with(|| Box::new([[0; 32]; 32]));
        for a in crate::regs::lanes(mask) {
            for b in crate::regs::lanes(mask) {
                p[a][b] = now;
            }
        }
        if self.alone.is_some() {
            let c = self.known(mask).into_owned();
            self.acquire(mask, !0, &c);
        }
        self.tick();
    }

    /// Whether this warp's lane `other`, at stamp `c`, is ordered before its lane `lane` now.
    #[inline]
    pub fn lanes_ordered(&self, lane: u32, other: u32, c: u32) -> bool {
        c <= self.synced
            || lane == other
            || c <= self.heard[lane as usize]
            || self.pairs.as_ref().is_some_and(|p| {
                let p = &p[lane as usize];
                // Which the several lanes were is not known: they may be those that synchronized.
                if other < 32 { p[other as usize] >= c } else { p.iter().any(|&x| x >= c) }
            })
    }

    /// Lanes `mask` have read a message with this clock, of the same unit, in it.
    pub fn hear(&mut self, mask: u32, c: &Clock, acquire: bool) {
        let Some(&stamp) = c.own.get(self.index as usize) else { return };
        let to = if acquire { &mut self.heard } else { &mut self.hears };
        for l in crate::regs::lanes(mask) {
            to[l] = to[l].max(stamp);
        }
    }

    /// A fence: reads so far are acquired, and writes from here on publish what is known now.
    pub fn fence(&mut self, mask: u32, live: u32) {
        for l in crate::regs::lanes(mask) {
            self.heard[l] = self.heard[l].max(self.hears[l]);
        }
        if let Some(s) = self.seen.take() {
            self.acquire(mask & s.0, live, &s.1);
        }
        self.fenced = Some(Box::new(self.known(mask).into_owned()));
        self.tick();
    }

    /// A fence between the generic and the asynchronous proxy, by lanes `mask` of those alive.
    pub fn proxy_fence(&mut self, mask: u32, live: u32) {
        let (me, now) = (self.index, self.now());
        if mask & live == live {
            self.clock.fence_proxies();
        } else {
            // What others wrote is behind the fence, but of this warp only what these lanes wrote or know of.
            let synced = self.synced;
            for l in crate::regs::lanes(mask) {
                let mut c = self.known(1 << l).into_owned();
                c.fence_proxies();
                c.proxy[me as usize] = synced;
                note(&mut c.proxy_lanes, me, mask, now);
                self.alone.get_or_insert_default()[l].get_or_insert_default().join(&c);
            }
        }
        self.tick();
    }
}
