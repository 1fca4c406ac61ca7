//! What of shared memory has been touched, and is not settled yet.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_ir::{Module, Op};

use super::touches::{Range, Touched, Touches};
use super::turns::Turn;

/// What has been touched since the last barrier.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct State {
    pub reads: Vec<Range>,
    /// Read in a ring's slot since the last wait for copies: of no concern to a copy into a free slot.
    pub slot_reads: Vec<Range>,
    pub writes: Vec<Range>,
    /// Written and read by conversions within warps, each warp in a part of its own: of no concern to the same conversion in the next iteration. Nor is what threads
    /// have copied and read in [bytes of their own](crate::analysis::own_bytes) to those that touch the same buffer.
    pub own: Vec<(Range, Op)>,
    /// As `copies`, in bytes of the threads' own; a wait makes them `own`.
    pub own_copies: Vec<(Range, Op)>,
    /// Mbarriers that have been ended, by the thread that would make another in its place.
    pub ended: Vec<Range>,
    /// Written by asynchronous copies that may be under way; a wait makes them `writes`.
    pub copies: Vec<Range>,
    /// Read by asynchronous dots that may be under way; a wait makes them `reads`, which only a barrier settles.
    pub dots: Dots,
    /// Read by TMA copies to global memory that may be under way; as `dots`.
    pub drains: Drains,
    /// Read by TMA copies to global memory that were waited for since the last barrier.
    pub drained: Vec<Range>,
    /// Written by ordinary stores, and by asynchronous copies that were waited for, since the last proxy fence.
    pub unfenced: Vec<Range>,
    /// Loaded by threads since the last proxy fence.
    pub loaded: Vec<Range>,
    /// Of these what has been loaded since the last barrier, of buffers that are [left alone](leave_alone).
    pub just_loaded: Vec<Range>,
    /// A function was called that uses shared memory. Its callers' memory is not its own, but that of other calls is.
    pub called: bool,
    /// What is placed is only counted: loops inside of this one are not tried out by themselves.
    pub on_trial: bool,
}

pub(super) fn add(list: &mut Vec<Range>, r: Range) {
    insert(list, r);
}

fn insert<T: Ord>(list: &mut Vec<T>, item: T) {
    if let Err(at) = list.binary_search(&item) {
        list.insert(at, item);
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
    /// A conversion within warps has touched its scratch, or threads what they have of a buffer.
    pub fn add_own(&mut self, range: Range, of: Op) {
        insert(&mut self.own, (range, of));
    }

    /// What threads copy to what they have of a buffer is under way.
    pub fn begin_own_copy(&mut self, range: Range, of: Op) {
        insert(&mut self.own_copies, (range, of));
    }

    /// Whether any of these may want a barrier or a fence for what has been touched.
    pub fn concerns(&self, mut all: impl Iterator<Item = Touches>) -> bool {
        let pending = [
            &self.reads,
            &self.slot_reads,
            &self.drained,
            &self.writes,
            &self.ended,
            &self.unfenced,
            &self.loaded,
        ];
        let own = self.own.iter().map(|o| o.0);
        let pending: Vec<Range> = pending.into_iter().flatten().copied().chain(own).collect();
        !pending.is_empty() && all.any(|t| t.ranges().any(|r| overlaps(&pending, r)))
    }

    /// Whether a conversion within warps, or threads what they have of a buffer, have touched some of these bytes: of another one than `of`.
    pub fn overlaps_own(&self, r: Range, of: Op) -> bool {
        self.own.iter().any(|&(own, by)| by != of && overlaps(&[own], r))
    }

    /// A wait for asynchronous copies, for all of them or for some.
    pub fn end_copies(&mut self, all: bool) {
        for &c in &self.copies {
            add(&mut self.writes, c);
            add(&mut self.unfenced, c);
        }
        for (range, of) in self.own_copies.clone() {
            self.add_own(range, of);
            add(&mut self.unfenced, range);
        }
        if all {
            self.copies.clear();
            self.own_copies.clear();
        }
        for r in std::mem::take(&mut self.slot_reads) {
            add(&mut self.reads, r);
        }
    }

    /// A wait leaves at most so many asynchronous dots.
    pub fn end_dots(&mut self, pendings: u32) {
        for r in self.dots.end(pendings) {
            add(&mut self.reads, r);
        }
    }

    /// A wait leaves at most so many groups of copies to global memory: a barrier must tell the other threads.
    pub fn end_drains(&mut self, pendings: u32) {
        for r in self.drains.end(pendings) {
            add(&mut self.drained, r);
        }
    }

    pub fn settle(&mut self) {
        self.reads.clear();
        self.slot_reads.clear();
        self.drained.clear();
        self.writes.clear();
        self.own.clear();
        self.ended.clear();
        self.just_loaded.clear();
        self.called = false;
    }

    pub fn join(&mut self, other: &State) {
        self.called |= other.called;
        self.dots.0.extend(&other.dots.0);
        self.drains.join(&other.drains);
        for &(range, op) in &other.own {
            self.add_own(range, op);
        }
        for &(range, of) in &other.own_copies {
            self.begin_own_copy(range, of);
        }
        for (mine, theirs) in [
            (&mut self.reads, &other.reads),
            (&mut self.slot_reads, &other.slot_reads),
            (&mut self.drained, &other.drained),
            (&mut self.writes, &other.writes),
            (&mut self.ended, &other.ended),
            (&mut self.copies, &other.copies),
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

/// Groups of dots or copies behind one are counted so far.
const MOST_BEHIND: u32 = 15;

/// What asynchronous dots may still read, each with how many dots have begun since: these end in order. A ring is one range, of which several dots may read
/// slots, each until a wait of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Dots(BTreeSet<(Range, u32)>);

impl Dots {
    /// A dot that reads these begins.
    pub fn begin(&mut self, read: &[Range]) {
        let before = std::mem::take(&mut self.0);
        self.0 = before.into_iter().map(|(r, behind)| (r, (behind + 1).min(MOST_BEHIND))).collect();
        self.0.extend(read.iter().map(|&r| (r, 0)));
    }

    /// A wait leaves at most so many dots: what the others have read.
    fn end(&mut self, pendings: u32) -> Vec<Range> {
        let is_done = |behind: u32| behind >= pendings.min(MOST_BEHIND);
        let ended = self.0.iter().filter(|&&(_, behind)| is_done(behind)).map(|&(r, _)| r).collect();
        self.0.retain(|&(_, behind)| !is_done(behind));
        ended
    }
}

/// What TMA copies to global memory may still read, each with how many groups of copies have been begun since, at least: a wait
/// that leaves no more than these finds its copy done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Drains(BTreeMap<Touched, u32>);

impl Drains {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A group of copies that read these begins.
    pub fn begin(&mut self, touched: &[Touched]) {
        for behind in self.0.values_mut() {
            *behind = (*behind + 1).min(MOST_BEHIND);
        }
        self.0.extend(touched.iter().map(|&t| (t, 0)));
    }

    /// How many groups a wait may leave under way where this may not be read any more; `None` where nothing reads it.
    pub fn pendings(&self, touched: impl Fn(Touched) -> bool) -> Option<u32> {
        self.0.iter().filter(|&(&t, _)| touched(t)).map(|(_, &behind)| behind).min()
    }

    /// A wait leaves at most so many groups: what the others have read.
    pub fn end(&mut self, pendings: u32) -> Vec<Range> {
        let ended = self.0.iter().filter(|&(_, &behind)| behind >= pendings);
        let ended = ended.map(|(t, _)| t.range).collect();
        self.0.retain(|_, behind| *behind < pendings);
        ended
    }

    /// A loop goes on to its next iteration, to which its slots have other numbers.
    pub fn next_iteration(&mut self, module: &Module, of: Op) {
        self.renumber(of, |turn| turn.later(module));
    }

    /// A loop ends: nobody knows which slots of a ring its were.
    pub fn end_loop(&mut self, of: Op) {
        self.renumber(of, |_| None);
    }

    fn renumber(&mut self, of: Op, to: impl Fn(Turn) -> Option<Turn>) {
        let mut renumbered = Drains::default();
        for (mut touched, behind) in std::mem::take(&mut self.0) {
            touched.turn =
                touched.turn.and_then(|turn| if turn.counted_by == of { to(turn) } else { Some(turn) });
            renumbered.join(&Drains(BTreeMap::from([(touched, behind)])));
        }
        *self = renumbered;
    }

    fn join(&mut self, other: &Drains) {
        for (&t, &behind) in &other.0 {
            let mine = self.0.entry(t).or_insert(behind);
            *mine = behind.min(*mine);
        }
    }
}
