//! Rings through which each chunk goes all the way before the next one begins, wherever in the program: whatever the numbers are,
//! the slot is free when it is acquired and full when it is waited for.
//!
//! A block is balanced if the ring is empty where it begins and where it ends, and between them each slot that is acquired is committed,
//! waited for and released by all readers before the next one is acquired. Loops and branches stand between chunks and are balanced
//! themselves, so that it doesn't matter how often they run.

use tilewright_ir::{Block, Module, Value};

use super::{Action, Ring};
use crate::analysis::rings;

/// The chunk that is under way in a block.
struct Chunk {
    slot: Value,
    is_committed: bool,
    waited: Vec<bool>,
    released: Vec<bool>,
}

/// Whether the ring is balanced from where it is made.
pub(super) fn is_balanced(module: &Module, ring: &Ring) -> bool {
    let closes = |&op| ring.action(module, op) == Some(Action::Close);
    // A slot of a ring that is one-shot stays full.
    if ring.one_shot || ring.uses.iter().any(closes) {
        return false;
    }
    module.parent_block(ring.create.0).is_some_and(|block| block_is_balanced(module, ring, block))
}

fn block_is_balanced(module: &Module, ring: &Ring, block: Block) -> bool {
    let mut chunk: Option<Chunk> = None;
    for op in module.block_ops(block) {
        if !ring.concerns(module, op) {
            continue;
        }
        let Some(action) = ring.action(module, op) else {
            let blocks = module.regions(op).iter().flat_map(|&r| module.region_blocks(r)).copied();
            if chunk.is_some() || !blocks.into_iter().all(|b| block_is_balanced(module, ring, b)) {
                return false;
            }
            continue;
        };
        let (slot, _) = Ring::position(module, op);
        if action == Action::Acquire {
            let none = vec![false; ring.readers];
            let new = Chunk { slot, is_committed: false, waited: none.clone(), released: none };
            if chunk.replace(new).is_some() {
                return false;
            }
            continue;
        }
        let Some(c) = chunk.as_mut().filter(|c| rings::same_slot(module, c.slot, slot)) else { return false };
        let fits = match action {
            Action::Commit => !std::mem::replace(&mut c.is_committed, true),
            Action::Wait(reader) => {
                let first = c.waited.get_mut(reader).is_some_and(|waited| !std::mem::replace(waited, true));
                c.is_committed && first
            }
            Action::Release(reader) => {
                let waited = c.waited.get(reader) == Some(&true);
                waited && !std::mem::replace(&mut c.released[reader], true)
            }
            Action::IsClosed => c.is_committed,
            Action::Acquire | Action::Close => false,
        };
        if !fits {
            return false;
        }
        if c.released.iter().all(|&released| released) {
            chunk = None;
        }
    }
    chunk.is_none()
}
