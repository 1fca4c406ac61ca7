//! Happens-before: races, uninitialized shared memory and asynchronous copies.
//!
//! Every byte of shared memory ([`shared`]), and every word (or byte, where a page is used in bytes) of global memory
//! ([`global`]), has a record of its last writer and its last readers: warp, lane and stamp (see [`crate::clock`]). An
//! access that is not ordered after a conflicting record is a race. Between two barriers that the whole CTA takes part
//! in, records carry the *phase*, the number of such barriers so far, so that an older record needs no look at clocks.
//!
//! The asynchronous proxy is not one party but many ([`Agent`]): it takes part in no barrier, and what it does is over
//! only for those whom its own means of completion says so.
//!
//! Two strong accesses (atomics, volatile, relaxed and stronger) do not race. Two unordered writes of the same value
//! are let pass: layouts that hold an element in several threads make them, and no order of them matters. Both stay in
//! the record, for whoever accesses the place next must be ordered after both.

mod agent;
mod global;
mod shared;

pub(crate) use agent::{Agent, agent_done, agent_read, agent_write};
pub(crate) use global::{GlobalShadow, global};
pub(crate) use shared::{SharedShadow, async_done, async_issue, object, shared};

use crate::machine::Cx;
use std::sync::{Mutex, MutexGuard};

/// Lane number that stands for several lanes of one warp.
const MANY: u32 = 32;

pub(crate) fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(|e| e.into_inner())
}

/// A thread, for messages.
fn describe(cx: &Cx<'_>, warp: u32, lane: u32) -> String {
    if lane >= MANY {
        return format!("several threads of warp {warp}");
    }
    let [x, y, z] = crate::machine::thread_of(cx.grid.block, warp, lane as usize);
    format!("thread ({x},{y},{z})")
}

/// Reports every suspect left, whatever the values.
pub(crate) fn settle_all(cx: &mut Cx<'_>) {
    cx.confirmed = !0;
    settle(cx);
}

/// Reports the suspected write-write races whose values differ (see [`Cx::write`]).
pub(crate) fn settle(cx: &mut Cx<'_>) {
    if cx.suspect == 0 {
        return;
    }
    let confirmed = cx.confirmed;
    cx.suspect = 0;
    cx.confirmed = 0;
    for (l, kind, m) in std::mem::take(&mut cx.suspects) {
        if confirmed >> l & 1 != 0 {
            cx.find(kind, l as usize, None, m);
        }
    }
}
