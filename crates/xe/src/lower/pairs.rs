//! The words of messages that a loop carries, those of two messages in one value where it can.
//!
//! A message wants its words in a register of their own, and in each iteration all of them move. One addition takes two registers, so the words of two
//! messages are two registers of one value (of 64 bits a lane), and messages that differ in place by known numbers go through it two by two:
//!
//! ```text
//! pair = (words of the first, words of the second)
//! loop: load(pair.0); load(pair.1); pair += (16 rows, both); load(pair.0); load(pair.1); pair += (16 rows, both)
//! ```
//!
//! So do two messages of different matrices that move alike. The others have a value each.

use smallvec::{SmallVec, smallvec};
use tilewright_ir as ir;
use tilewright_ir::dialect::scf;
use tilewright_llvm::{Effect, Scalar, Ty, Value};

use super::places::{Common, Known, Words};
use super::{Lower, Result};
use crate::visa;

/// Where two messages begin.
type Places = [[i64; 2]; 2];

/// Two messages of a loop, or more that follow two by two.
#[derive(Clone)]
pub(super) struct Pair {
    common: [Common; 2],
    /// The places of its messages, in the order in which they are sent.
    turns: Vec<Places>,
    /// The turn whose words the value has.
    turn: usize,
    value: Value,
    /// What sends them, if there are several turns.
    ops: SmallVec<[ir::Op; 2]>,
}

/// Words that a loop carries.
pub(super) enum Carried {
    /// Of one message, and of those that go on from it; and what is added from one iteration to the next.
    One(Known, Value),
    /// Of two, and by how many columns and rows they move from one iteration to the next.
    Two(Pair, [Value; 2]),
}

impl Carried {
    /// Before the first iteration.
    pub fn start(&self) -> Value {
        match self {
            Carried::One(known, _) => known.words,
            Carried::Two(pair, _) => pair.value,
        }
    }
}

/// Messages of a loop's body that differ in place by known numbers.
struct Chain {
    common: Common,
    /// Where each begins, in the order in which they are sent.
    at: Vec<[i64; 2]>,
    /// What sends them, and whether it does so in each iteration.
    ops: SmallVec<[ir::Op; 2]>,
    always: bool,
    /// The words of the first, in front of the loop, and by how many columns and rows all move from one iteration to the next.
    words: Value,
    by: [Value; 2],
}

impl Chain {
    /// Its places two by two, if the second of each two is as far from the first.
    fn turns(&self) -> Option<Vec<Places>> {
        let (turns, rest) = self.at.as_chunks::<2>();
        let far = |[first, second]: &Places| [0, 1].map(|d| second[d] - first[d]);
        let alike = turns.windows(2).all(|w| far(&w[0]) == far(&w[1]));
        (self.always && rest.is_empty() && alike).then(|| turns.to_vec())
    }
}

impl Lower<'_, '_> {
    /// The words of messages in a loop's body that its counter moves, in front of the loop.
    pub(super) fn carried_words(&mut self, f: scf::For) -> Result<Vec<Carried>> {
        let mut carried = Vec::new();
        let mut singles: Vec<Chain> = Vec::new();
        for chain in self.chains(f)? {
            match chain.turns() {
                Some(turns) => {
                    let far = self.step_between(turns[0][0], turns[0][1]);
                    let second = self.b.add(chain.words, far);
                    let common = [chain.common.clone(), chain.common];
                    carried.push(self.pair(common, [chain.words, second], turns, chain.ops, chain.by));
                }
                None => singles.push(chain),
            }
        }
        // One that moves alike, whatever it is.
        while let Some(chain) = singles.pop() {
            let like = |other: &Chain| chain.at.len() == 1 && other.at.len() == 1 && other.by == chain.by;
            if let Some(other) = singles.iter().position(like).map(|n| singles.remove(n)) {
                let turns = vec![[other.at[0], chain.at[0]]];
                let words = [other.words, chain.words];
                carried.push(self.pair([other.common, chain.common], words, turns, smallvec![], chain.by));
            } else {
                let step = self.step(chain.by);
                let (common, words, at) = (chain.common, chain.words, chain.at[0]);
                carried.push(Carried::One(Known { common, block: None, words, at }, step));
            }
        }
        Ok(carried)
    }

    /// What messages of a loop's body have in common, and where each begins.
    fn chains(&mut self, f: scf::For) -> Result<Vec<Chain>> {
        let m = self.m;
        let mut chains: Vec<Chain> = Vec::new();
        for op in m.block_ops(m.region_block(f.body(m))) {
            let Some(sent) = self.messages(op)? else { continue };
            for part in sent.parts {
                let (common, at) = self.common(&sent.transfer.place, &sent.message, part);
                if let Some(chain) = chains.iter_mut().find(|chain| chain.common == common) {
                    chain.at.push(at);
                    chain.always &= sent.always;
                    if chain.ops.last() != Some(&op) {
                        chain.ops.push(op);
                    }
                } else if let Some((words, by)) = self.moved(f, &sent.transfer, &sent.message, &common, at)? {
                    let (at, ops) = (vec![at], smallvec![op]);
                    chains.push(Chain { common, at, ops, always: sent.always, words, by });
                }
            }
        }
        Ok(chains)
    }

    fn pair(
        &mut self,
        common: [Common; 2],
        words: [Value; 2],
        turns: Vec<Places>,
        ops: SmallVec<[ir::Op; 2]>,
        by: [Value; 2],
    ) -> Carried {
        let value = self.b.asm1(visa::PAIR, "=rw,rw,rw", Effect::Pure, Ty::scalar(Scalar::I64), &words);
        Carried::Two(Pair { common, turns, turn: 0, value, ops }, by)
    }

    fn add_to_pair(&mut self, pair: Value, step: Value) -> Value {
        let ty = self.b.ty(pair);
        self.b.asm1(visa::ADD_TO_PAIR, "=rw,rw,0", Effect::Pure, ty, &[step, pair])
    }

    /// The words of a message that a loop carries with those of another one.
    pub(super) fn words_of_pair(&mut self, common: &Common, at: [i64; 2]) -> Option<Words> {
        let register = |pair: &Pair, turn: usize| {
            let place = pair.turns.get(turn)?;
            (0..2).find(|&r| pair.common[r] == *common && place[r] == at)
        };
        for n in (0..self.hooks.pairs.len()).rev() {
            let pair = &self.hooks.pairs[n];
            // What is in a branch must not move what is behind it.
            if pair.turns.len() > 1 && !pair.ops.contains(&self.op) {
                continue;
            }
            let (turn, value) = (pair.turn, pair.value);
            if let Some(r) = register(pair, turn) {
                return Some(Words { value, register: Some(r as u32) });
            }
            if let Some(r) = register(pair, turn + 1) {
                let [from, to] = [turn, turn + 1].map(|turn| pair.turns[turn][0]);
                let step = self.step_between(from, to);
                let value = self.add_to_pair(value, step);
                let pair = &mut self.hooks.pairs[n];
                (pair.turn, pair.value) = (turn + 1, value);
                return Some(Words { value, register: Some(r as u32) });
            }
        }
        None
    }

    /// In an iteration: what a loop carries is in these values.
    pub(super) fn enter(&mut self, carried: &[Carried], values: &[Value]) {
        for (carried, &value) in carried.iter().zip(values) {
            match carried {
                Carried::One(known, _) => {
                    self.hooks.words.push(Known { words: value, ..known.clone() });
                }
                Carried::Two(pair, _) => self.hooks.pairs.push(Pair { value, ..pair.clone() }),
            }
        }
    }

    /// For the next iteration: what becomes of these values. So many pairs were there outside of the loop.
    pub(super) fn leave(&mut self, carried: &[Carried], values: &[Value], outside: usize) -> Vec<Value> {
        let mut pairs = self.hooks.pairs.split_off(outside).into_iter();
        let mut next = Vec::with_capacity(values.len());
        for (carried, &value) in carried.iter().zip(values) {
            match carried {
                Carried::One(_, step) => next.push(self.b.add(value, *step)),
                Carried::Two(_, by) => {
                    let Some(pair) = pairs.next() else { continue };
                    let (first, last) = (pair.turns[0][0], pair.turns[pair.turn][0]);
                    let by = [0, 1].map(|d| self.b.add_const(by[d], first[d] - last[d]));
                    let step = self.step(by);
                    next.push(self.add_to_pair(pair.value, step));
                }
            }
        }
        next
    }
}
