//! The words of messages: those that say where a block is, and that of a barrier.
//!
//! A message takes eight: the base of the matrix (two), one less than its bytes in a row, its rows and the bytes from one row to the next, the block's column
//! and row, and its shape. They are one value, of which a lane has one word. It is made once for messages that differ in place by known numbers:
//! each adds to the words of the one before it, and a loop carries them from one iteration to the next ([`super::pairs`]):
//!
//! ```text
//! words = base, …, 0, row, shape          (lanes 0 to 7)
//! loop: load(words); load(words + (0, 16)); words += (32, 0)
//! ```

use smallvec::{SmallVec, smallvec};
use tilewright_ir as ir;
use tilewright_ir::dialect::{arith, scf};
use tilewright_llvm::{self as llvm, CastOp, Effect, IntPred, Ty, Value};

use super::descriptor::Transfer;
use super::{Lower, Result};
use crate::visa::{ARRIVALS, ARRIVE, Form, Message, arrivals};

/// The lanes that have a block's column and row.
const COLUMN: i64 = 5;
const ROW: i64 = 6;

/// Where a block of a matrix begins.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// The descriptor.
    pub desc: ir::Value,
    pub row: ir::Value,
    pub column: ir::Value,
    /// How it comes, and the bits of its elements.
    pub form: Form,
    pub bits: u32,
}

impl Place {
    /// What an index among the columns is divided by to be in elements of the message: turned ones are words.
    fn shift(&self) -> u32 {
        if self.form == Form::Turned { (32 / self.bits).trailing_zeros() } else { 0 }
    }
}

/// A number as a sum of others and a constant.
#[derive(Clone, PartialEq, Eq)]
struct Sum {
    of: SmallVec<[ir::Value; 2]>,
    plus: i64,
}

/// What messages have in common that differ in place by known numbers.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Common {
    desc: ir::Value,
    column: SmallVec<[ir::Value; 2]>,
    row: SmallVec<[ir::Value; 2]>,
    shift: u32,
    shape: u32,
}

/// The words of a message.
#[derive(Clone)]
pub(super) struct Known {
    pub common: Common,
    /// The block that they were made in, if not all that follows comes behind them.
    pub block: Option<llvm::Block>,
    pub words: Value,
    /// The constants of its column and row, in elements of the message.
    pub at: [i64; 2],
}

/// The words of a message: a value, or one of the registers of a value that has those of two.
#[derive(Clone, Copy)]
pub(super) struct Words {
    pub value: Value,
    pub register: Option<u32>,
}

impl From<Value> for Words {
    fn from(value: Value) -> Words {
        Words { value, register: None }
    }
}

impl Lower<'_, '_> {
    /// The words of a message for the part of a block that begins there.
    pub(super) fn words(&mut self, transfer: &Transfer, message: &Message, part: [u32; 2]) -> Result<Words> {
        let (common, at) = self.common(&transfer.place, message, part);
        if let Some(words) = self.words_of_pair(&common, at) {
            return Ok(words);
        }
        let here = Some(self.b.block());
        let found = |block| self.hooks.words.iter().rposition(|k| k.common == common && k.block == block);
        let Some(near) = found(here).or_else(|| found(None)).map(|n| self.hooks.words[n].clone()) else {
            let place = transfer.place;
            let [column, row] = [place.column, place.row].map(|v| self.scalar(v));
            let words = self.new_words(transfer, message, part, [column?, row?]);
            self.hooks.words.push(Known { common, block: here, words, at });
            return Ok(words.into());
        };
        let step = self.step_between(near.at, at);
        let words = self.b.add(near.words, step);
        self.hooks.words.push(Known { common, block: here, words, at });
        Ok(words.into())
    }

    /// What a message has in common with others, and the rest.
    pub(super) fn common(
        &self,
        place: &Place,
        message: &Message,
        [row, column]: [u32; 2],
    ) -> (Common, [i64; 2]) {
        let shift = place.shift();
        let mut across = self.terms(place.column, 0);
        if across.plus % (1 << shift) != 0 {
            across = Sum { of: smallvec![place.column], plus: 0 };
        }
        let down = self.terms(place.row, 0);
        let at = [(across.plus + i64::from(column)) >> shift, down.plus + i64::from(row)];
        let (column, row) = (across.of, down.of);
        (Common { desc: place.desc, column, row, shift, shape: message.word() }, at)
    }

    fn terms(&self, v: ir::Value, depth: u32) -> Sum {
        let m = self.m;
        if let Some(plus) = m.constant_int(v) {
            return Sum { of: smallvec![], plus };
        }
        let add = m
            .defining_op(v)
            .filter(|&op| depth < 8 && m.opcode(op) == Some(ir::Opcode::Arith(arith::Kind::Addi)));
        let Some(add) = add else { return Sum { of: smallvec![v], plus: 0 } };
        let mut sum = Sum { of: smallvec![], plus: 0 };
        for &v in m.operands(add) {
            let part = self.terms(v, depth + 1);
            sum.of.extend(part.of);
            sum.plus = sum.plus.wrapping_add(part.plus);
        }
        sum.of.sort_unstable();
        sum
    }

    /// A word a lane; the block begins at this column and row of the matrix.
    fn new_words(
        &mut self,
        transfer: &Transfer,
        message: &Message,
        [row, column]: [u32; 2],
        [x, y]: [Value; 2],
    ) -> Value {
        let surface = &transfer.surface;
        let low = self.b.cast(CastOp::Trunc, surface.base, Ty::I32);
        let high = self.b.lshr(surface.base, 32);
        let high = self.b.cast(CastOp::Trunc, high, Ty::I32);
        let x = self.b.add_const(x, i64::from(column));
        let x = self.b.add(x, surface.left);
        let x = self.b.lshr(x, transfer.place.shift());
        let y = self.b.add_const(y, i64::from(row));
        let [width, height, pitch] = surface.sizes;
        let shape = self.b.i32(i64::from(message.word()));
        let mut words = self.b.i32(0);
        // What moves comes last.
        for (lane, word) in
            [(0, low), (1, high), (2, width), (3, height), (4, pitch), (7, shape), (COLUMN, x), (ROW, y)]
        {
            words = self.in_lane(lane, word, words);
        }
        words
    }

    /// A word in one lane, others elsewhere.
    fn in_lane(&mut self, lane: i64, word: Value, others: Value) -> Value {
        let (own, lane) = (self.lane(), self.b.i32(lane));
        let here = self.b.icmp(IntPred::Eq, own, lane);
        self.b.select(here, word, others)
    }

    /// Says that the warp has arrived at the barrier of the work group.
    pub(super) fn barrier_arrive(&mut self) {
        let word = i64::from(arrivals(self.scope.launched));
        let (word, none) = (self.b.i32(word), self.b.i32(0));
        let words = self.in_lane(ARRIVALS, word, none);
        self.b.asm(ARRIVE, "rw", Effect::Write, &[], &[words]);
    }

    /// What is added to words so that the place moves by columns and rows.
    pub(super) fn step(&mut self, [column, row]: [Value; 2]) -> Value {
        let none = self.b.i32(0);
        let step = self.in_lane(ROW, row, none);
        self.in_lane(COLUMN, column, step)
    }

    /// What is added to words so that the place moves from one to another.
    pub(super) fn step_between(&mut self, from: [i64; 2], to: [i64; 2]) -> Value {
        let by = [0, 1].map(|d| self.b.i32(to[d] - from[d]));
        self.step(by)
    }

    /// The words, in front of a loop, of a message whose place moves with the loop's counter, and by how many columns and rows; if it does so.
    pub(super) fn moved(
        &mut self,
        f: scf::For,
        transfer: &Transfer,
        message: &Message,
        common: &Common,
        at: [i64; 2],
    ) -> Result<Option<(Value, [Value; 2])>> {
        let m = self.m;
        let counter = m.block_args(m.region_block(f.body(m)))[0];
        let (first, by) = (self.scalar(f.lower_bound(m))?, self.scalar(f.step(m))?);
        let whole = self.b.as_const(by).is_some_and(|n| n.trailing_zeros() >= common.shift);
        let moves = [&common.column, &common.row].map(|of| of.iter().filter(|&&v| v == counter).count());
        if self.b.ty(first) != Ty::I32 || !matches!(moves, [0, 1] | [1, 0]) || moves[0] == 1 && !whole {
            return Ok(None);
        }
        let plus = [at[0] << common.shift, at[1]];
        let mut start = Vec::new();
        for (of, plus) in [&common.column, &common.row].into_iter().zip(plus) {
            let mut sum = self.b.i32(plus);
            for &v in of {
                let part = if v == counter {
                    first
                } else if let Some(part) = self.outside(f, v) {
                    part
                } else {
                    return Ok(None);
                };
                sum = self.b.add(sum, part);
            }
            start.push(sum);
        }
        let words = self.new_words(transfer, message, [0, 0], [start[0], start[1]]);
        let none = self.b.i32(0);
        let shifted = self.b.lshr(by, common.shift);
        Ok(Some((words, if moves[0] == 1 { [shifted, none] } else { [none, by] })))
    }

    /// A number that a loop does not compute.
    fn outside(&self, f: scf::For, v: ir::Value) -> Option<Value> {
        let m = self.m;
        let mut block = m.value_block(v)?;
        let body = m.region_block(f.body(m));
        while block != body {
            let Some(parent) = m.block_parent_op(block).and_then(|op| m.parent_block(op)) else {
                return self.scalar(v).ok();
            };
            block = parent;
        }
        None
    }
}
