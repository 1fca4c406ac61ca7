//! The asynchronous proxy: bulk copies and `wgmma`, which access shared memory in nobody's program order.

use super::MANY;
use super::shared::{ASYNC, Cell, INIT, Me, PENDING, SET, SharedShadow, who};
use crate::machine::{Cx, Warp};
use crate::report::FindingKind;

/// Operations of the asynchronous proxy that complete in order, each in a way of its own. An agent has an entry in the
/// clocks as a warp has one; whoever waits for the agent's completion gets the stamp of the last operation completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Agent {
    /// The matrix multiplies of a warp, up to its `wgmma.wait_group`. A warp waits for its own only: what the other
    /// warps of its group wait for is ordered before it by barriers, not by the multiply that they share (§9.7.15.7).
    Wgmma(u32),
    /// The bulk stores of a warp as readers of shared memory, up to its `cp.async.bulk.wait_group`, be it with `.read`.
    Bulk(u32),
    /// The same as writers of global memory, up to one without `.read`.
    BulkWrites(u32),
    /// The copies that signal an mbarrier, up to a wait for its phase.
    Mbar(u32),
}

impl Agent {
    /// Its number among the parties of a unit of `warps` warps.
    pub fn party(self, warps: u32) -> u32 {
        match self {
            Agent::Wgmma(w) => warps + w,
            Agent::Bulk(w) => 2 * warps + w,
            // More mbarriers than there are numbers share the last.
            Agent::BulkWrites(w) => 3 * warps + w,
            Agent::Mbar(k) => (4 * warps + k).min(0x1fff),
        }
    }

    pub fn of(party: u32, warps: u32) -> Option<Agent> {
        match party.checked_div(warps)? {
            0 => None,
            1 => Some(Agent::Wgmma(party - warps)),
            2 => Some(Agent::Bulk(party - 2 * warps)),
            3 => Some(Agent::BulkWrites(party - 3 * warps)),
            _ => Some(Agent::Mbar(party - 4 * warps)),
        }
    }
}

/// What the asynchronous proxy would trip over.
enum Bad {
    Uninit,
    Pending,
    Race(Cell, &'static str),
    Fence(Cell, &'static str),
}

/// Checks an access to `n` bytes, started by lane `l`, and records it for the agent.
fn access(cx: &mut Cx<'_>, l: usize, to: (u32, u32), n: u32, agent: Agent, stamp: u32, write: bool) {
    if !cx.grid.options.checks {
        return;
    }
    let warps = cx.unit.warps.len() as u32;
    let phased = cx.unit.ctas.len() == 1;
    let (at, end) = (to.1 as usize, (to.1 + n) as usize);
    let sh = &mut cx.unit.ctas[to.0 as usize].shadow;
    if end > sh.writes.len() {
        return;
    }
    let me = Me { sync: &cx.w.sync, phase: sh.phase, phased, warps };
    let lane = l as u32;
    let mine = Cell::new(ASYNC, me.phase, agent.party(warps), MANY, stamp);
    let mut bad: Option<(usize, Bad)> = None;
    let mut k = at;
    while k < end {
        let (w, r) = (sh.writes[k], sh.reads[k]);
        let mut e = k + 1;
        while e < end && sh.writes[e] == w && sh.reads[e] == r {
            e += 1;
        }
        // An agent's operations are done in order; two of them in flight don't race with each other.
        let trouble = if w.has(PENDING) {
            Some(Bad::Pending)
        } else if !write && !w.has(INIT) {
            Some(Bad::Uninit)
        } else if let Some(c) = sh.unordered(&me, w, lane, false) {
            Some(Bad::Race(c, "wrote"))
        } else if !w.is_none()
            && !w.has(ASYNC | SET)
            && !cx.w.sync.proxy_sees(lane, w.party(), w.lane(), w.stamp())
        {
            Some(Bad::Fence(w, "wrote"))
        } else if write {
            let race = sh.unordered(&me, r, lane, false).map(|c| Bad::Race(c, "read"));
            race.or_else(|| unfenced_reader(cx.w, sh, &r, lane).map(|c| Bad::Fence(c, "read")))
        } else {
            None
        };
        if let Some(t) = trouble {
            bad.get_or_insert((k, t));
        }
        if write {
            sh.writes[k..e].fill(Cell(mine.0 | PENDING | w.0 & INIT));
            sh.reads[k..e].fill(Cell(0));
        } else {
            let c = sh.with(&me, r, mine, lane);
            sh.reads[k..e].fill(c);
        }
        k = e;
    }
    let Some((k, bad)) = bad else { return };
    let verb = if write { "writes" } else { "reads" };
    let (kind, m) = match bad {
        Bad::Uninit => (
            FindingKind::UninitializedShared,
            format!("the asynchronous proxy reads shared offset {k}, which was not written"),
        ),
        Bad::Pending => (
            FindingKind::AsyncBeforeWait,
            format!(
                "the asynchronous proxy {verb} shared offset {k}, the target of a copy that was not waited for"
            ),
        ),
        Bad::Race(c, what) => (
            FindingKind::SharedRace,
            format!(
                "the asynchronous proxy {verb} shared offset {k}, and {} {what} it with no order between",
                who(cx, c)
            ),
        ),
        Bad::Fence(c, what) => (
            FindingKind::ProxyFence,
            format!(
                "the asynchronous proxy {verb} shared offset {k}, which {} {what} with no `fence.proxy.async` since",
                who(cx, c)
            ),
        ),
    };
    cx.find(kind, l, Some(k as u64), m);
}

/// A reader of the generic proxy that has not fenced since: its load may still be under way when the asynchronous proxy writes, as `ptxas`
/// lets threads arrive at barriers and mbarriers before what they load has come.
fn unfenced_reader(warp: &Warp, sh: &SharedShadow, reads: &Cell, lane: u32) -> Option<Cell> {
    let unseen = |c: &&Cell| {
        !c.is_none() && !c.has(ASYNC) && !warp.sync.proxy_sees(lane, c.party(), c.lane(), c.stamp())
    };
    sh.members(reads).iter().find(unseen).copied()
}

/// The asynchronous proxy starts to read.
pub(crate) fn agent_read(cx: &mut Cx<'_>, l: usize, from: (u32, u32), n: u32, agent: Agent, stamp: u32) {
    access(cx, l, from, n, agent, stamp, false);
}

/// The asynchronous proxy starts to write: until it is done the bytes are nobody's.
pub(crate) fn agent_write(cx: &mut Cx<'_>, l: usize, to: (u32, u32), n: u32, agent: Agent, stamp: u32) {
    access(cx, l, to, n, agent, stamp, true);
}

/// The asynchronous proxy has written.
pub(crate) fn agent_done(cx: &mut Cx<'_>, to: (u32, u32), n: u32, agent: Agent, stamp: u32) {
    let party = agent.party(cx.unit.warps.len() as u32);
    let sh = &mut cx.unit.ctas[to.0 as usize].shadow;
    let phase = sh.phase;
    if let Some(c) = sh.writes.get_mut(to.1 as usize..(to.1 + n) as usize) {
        c.fill(Cell::new(INIT | ASYNC, phase, party, MANY, stamp));
    }
}
