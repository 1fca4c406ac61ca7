//! Which loads of a loop may run ahead of its iterations, as copies; and of the others, why not.

use tilewright_ir::dialect::{scf, tt, ttg};
use tilewright_ir::{Block, Module, Op, Trait, Value, marks};

use super::async_copies;
use super::backward_slice::Slice;
use super::schedule::{NUM_STAGES, has_dot, is_load, leaves_zeros, reaches, why_no_copy};
use crate::analysis::global_bases::GlobalBases;
use crate::analysis::{rings, waiting};
use crate::hopper::tma;

/// Addresses of addresses of addresses: what is behind more of them is not read ahead.
const MAX_LEVELS: usize = 4;

/// A loop, and what is asked of each of its loads.
pub struct Candidates<'m> {
    module: &'m Module,
    l: scf::For,
    body: Block,
    /// Whether the loop's author has said how many stages it has.
    pub asked: bool,
    /// Whether there are dots in it.
    pub dots: bool,
    /// Whether it goes through programs that load rows, and multiply nothing.
    pub programs: bool,
    global: GlobalBases<'m>,
    /// The bases of what the loop must not load ahead.
    written: Vec<Value>,
    /// The first operation of a program that another one might see.
    settles: Option<Op>,
}

impl<'m> Candidates<'m> {
    /// Of a loop with these operations in its body; an error that says why nothing of it runs ahead.
    ///
    /// # Errors
    /// Why not.
    pub fn of(module: &'m Module, l: scf::For, ops: &[Op]) -> Result<Self, &'static str> {
        let asked = module.int_attr(l.0, NUM_STAGES).is_some();
        let dots = ops.iter().any(|&op| has_dot(module, op));
        let programs = module.op_attr(l.0, marks::PROGRAMS).is_some() && !dots;
        if !dots && !asked && !programs {
            return Err("nobody asks for it");
        }
        let inside = || module.all_ops(l.0).into_iter();
        if ops.iter().any(|&op| is_pipelined(module, op))
            || programs && inside().any(|op| is_pipelined(module, op))
        {
            return Err("a loop inside runs ahead itself");
        }
        // An iteration that waits for other programs must not read ahead of its wait. (Programs in a row don't: nobody waits there but the CTAs of a cluster for each other.)
        if !programs && inside().any(|op| waiting::synchronizes(module, op)) {
            return Err("the loop waits for others");
        }
        let global = GlobalBases::of(module);
        let written = if programs { Vec::new() } else { global.written_before(l.0) };
        let settles = ops.iter().copied().find(|&op| programs && waiting::settles(module, op));
        let body = module.region_block(l.body(module));
        Ok(Candidates { module, l, body, asked, dots, programs, global, written, settles })
    }

    /// Whether a load feeds something for which the loop is pipelined: where the author asked for it, or programs load rows, anything but an address.
    pub fn is_wanted(&self, load: Op) -> bool {
        let any = self.asked || self.programs;
        let needs = |op| has_dot(self.module, op) || (any && !self.module.has_trait(op, Trait::Pure));
        let copied = |op| is_load(self.module, op) && self.why_no_copy(op).is_none();
        reaches(self.module, self.body, self.module.result(load), copied, needs)
    }

    /// What runs ahead with a load: with it, and for each load in its address an iteration before it, and so on.
    ///
    /// # Errors
    /// Why the load does not run ahead.
    pub fn levels(&self, load: Op) -> Result<Vec<Slice>, &'static str> {
        let module = self.module;
        self.why_no_copy(load).map_or(Ok(()), Err)?;
        let levels = self
            .levels_of(load)
            .ok_or("its address is computed with effects, or by what the iteration before has loaded")?;
        let ahead = levels.iter().flat_map(|level| &level.ops).chain([&load]);
        if !ahead.copied().all(|op| self.may_run_ahead(op)) {
            return Err("the loop may write what it loads");
        }
        if self.programs {
            let own = |load| async_copies::is_read_by_who_copies(module, load);
            if !tt::Load::cast(module, load).is_some_and(own) {
                return Err("programs would wait for each other's threads");
            }
            if self.is_invariant(&levels) {
                return Err("all programs load the same");
            }
        }
        Ok(levels)
    }

    /// Why a load can't be a copy. Where nobody asked for that, none is whose masked-off elements are chosen behind it: indices and masks, which run ahead in registers.
    fn why_no_copy(&self, op: Op) -> Option<&'static str> {
        let Some(load) = tt::Load::cast(self.module, op) else {
            let fills = tma::fills_rings(self.module, self.module.operands(op)[0]);
            return (!fills).then_some("its block is none that a copy by TMA brings to a slot");
        };
        let any = self.asked || self.programs || leaves_zeros(self.module, load);
        let chosen = (!any).then_some("its masked-off elements are not zero");
        why_no_copy(self.module, load).or(chosen)
    }

    /// What a loop may write is loaded where the program says, behind what came before it. Programs in a row are programs: one may load before another has stored, but not
    /// before it has done itself what stands in front of the load.
    fn may_run_ahead(&self, op: Op) -> bool {
        if !is_load(self.module, op) {
            return true;
        }
        self.settles.is_none_or(|first| self.module.is_before(op, first))
            && !self.global.may_read(op, &self.written)
    }

    /// Whether what a load needs is the same in all iterations.
    fn is_invariant(&self, levels: &[Slice]) -> bool {
        let number = self.module.block_args(self.body)[0];
        let uses = |op: &Op| self.module.operands(*op).contains(&number);
        levels.iter().all(|level| level.carried.is_empty() && !level.ops.iter().any(uses))
    }

    fn levels_of(&self, load: Op) -> Option<Vec<Slice>> {
        let (module, l, body) = (self.module, self.l, self.body);
        let mut slice = Slice::default();
        // (What stands in the place of masked-off elements is chosen in the iteration itself.)
        let needed = match tt::Load::cast(module, load) {
            Some(load) => [load.ptr(module)].into_iter().chain(load.mask(module)).collect(),
            None => module.operands(load).to_vec(),
        };
        if !needed.into_iter().all(|v| slice.collect(module, l, body, v)) {
            return None;
        }
        let mut levels = vec![slice];
        loop {
            let mut next = Slice::default();
            for &v in &levels.last()?.loaded {
                let op = module.defining_op(v)?;
                next.ops.insert(op);
                if !next.collect_operands(module, l, body, op) {
                    return None;
                }
            }
            if next.ops.is_empty() {
                return Some(levels);
            }
            levels.push(next);
            // Also where an address is what the iteration before has loaded: a list can't be read ahead.
            if levels.len() > MAX_LEVELS {
                return None;
            }
        }
    }
}

/// Whether an operation says that a loop around it has been pipelined, or has a pipelined one inside.
fn is_pipelined(module: &Module, op: Op) -> bool {
    rings::waits_for_group(module, op) || ttg::AsyncCopyBlockToLocal::cast(module, op).is_some()
}
