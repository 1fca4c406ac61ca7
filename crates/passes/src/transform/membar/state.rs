//! What of shared memory has been touched, and is not settled yet.

use std::collections::BTreeMap;

use super::touches::Range;

/// What has been touched since the last barrier.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct State {
    pub reads: Vec<Range>,
    /// Read in a ring's slot since the last wait for copies: of no concern to a copy into a free slot.
    pub slot_reads: Vec<Range>,
    pub writes: Vec<Range>,
    /// Written by asynchronous copies that may be under way; a wait makes them `writes`.
    pub copies: Vec<Range>,
    /// Read by asynchronous dots that may be under way; a wait makes them `reads`, which only a barrier settles.
    pub dots: Vec<Range>,
    /// Read by TMA copies to global memory that may be under way; as `dots`.
    pub drains: Drains,
    /// Written by ordinary stores, and by asynchronous copies that were waited for, since the last proxy fence.
    pub unfenced: Vec<Range>,
    /// Loaded by threads since the last proxy fence.
    pub loaded: Vec<Range>,
    /// Of these what has been loaded since the last barrier, of buffers that are [left alone](leave_alone).
    pub just_loaded: Vec<Range>,
    /// A function was called that uses shared memory. Its callers' memory is not its own, but that of other calls is.
    pub called: bool,
}

pub(super) fn add(list: &mut Vec<Range>, r: Range) {
    if let Err(at) = list.binary_search(&r) {
        list.insert(at, r);
    }
}

/// Those of a list that stay in it.
pub(super) fn kept(list: &[Range], stays: impl Fn(Range) -> bool) -> Vec<Range> {
    list.iter().copied().filter(|&r| stays(r)).collect()
}

pub(super) fn overlaps(list: &[Range], r: Range) -> bool {
    list.iter().any(|o| o.0 < r.1 && r.0 < o.1)
}

impl State {
    /// A wait for asynchronous copies, for all of them or for some.
    pub fn end_copies(&mut self, all: bool) {
        for &c in &self.copies {
            add(&mut self.writes, c);
            add(&mut self.unfenced, c);
        }
        if all {
            self.copies.clear();
        }
        for r in std::mem::take(&mut self.slot_reads) {
            add(&mut self.reads, r);
        }
    }

    /// A wait for asynchronous dots, for all of them or for some.
    pub fn end_dots(&mut self, all: bool) {
        for &r in &self.dots {
            add(&mut self.reads, r);
        }
        if all {
            self.dots.clear();
        }
    }

    /// A wait leaves at most so many groups of copies to global memory: a barrier must tell the other threads.
    pub fn end_drains(&mut self, pendings: u32) {
        for r in self.drains.end(pendings) {
            add(&mut self.reads, r);
        }
    }

    pub fn settle(&mut self) {
        self.reads.clear();
        self.slot_reads.clear();
        self.writes.clear();
        self.just_loaded.clear();
        self.called = false;
    }

    pub fn join(&mut self, other: &State) {
        self.called |= other.called;
        self.drains.join(&other.drains);
        for (mine, theirs) in [
            (&mut self.reads, &other.reads),
            (&mut self.slot_reads, &other.slot_reads),
            (&mut self.writes, &other.writes),
            (&mut self.copies, &other.copies),
            (&mut self.dots, &other.dots),
            (&mut self.unfenced, &other.unfenced),
            (&mut self.loaded, &other.loaded),
            (&mut self.just_loaded, &other.just_loaded),
        ] {
            for &r in theirs {
                add(mine, r);
            }
        }
    }
}

/// Groups of copies behind one are counted so far.
const MOST_BEHIND: u32 = 15;

/// Ranges that TMA copies to global memory may still read, each with how many groups of copies have been begun since, at least: a wait
/// that leaves no more than these finds its copy done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Drains(BTreeMap<Range, u32>);

impl Drains {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A group of copies that read these begins.
    pub fn begin(&mut self, ranges: &[Range]) {
        for behind in self.0.values_mut() {
            *behind = (*behind + 1).min(MOST_BEHIND);
        }
        self.0.extend(ranges.iter().map(|&r| (r, 0)));
    }

    /// How many groups a wait may leave under way where this may not be read any more; `None` where nothing reads it.
    pub fn pendings(&self, touched: impl Fn(Range) -> bool) -> Option<u32> {
        self.0.iter().filter(|&(&r, _)| touched(r)).map(|(_, &behind)| behind).min()
    }

    /// A wait leaves at most so many groups: what the others have read.
    pub fn end(&mut self, pendings: u32) -> Vec<Range> {
        let ended = self.0.iter().filter(|&(_, &behind)| behind >= pendings).map(|(&r, _)| r).collect();
        self.0.retain(|_, behind| *behind < pendings);
        ended
    }

    fn join(&mut self, other: &Drains) {
        for (&r, &behind) in &other.0 {
            let mine = self.0.entry(r).or_insert(behind);
            *mine = behind.min(*mine);
        }
    }
}
