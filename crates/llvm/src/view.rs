//! A finished function as a second emitter reads it: what [`crate::emit`] hands to LLVM, without LLVM.
//!
//! In: a [`Module`] and one of its functions. Out: blocks in reverse post-order, in which definitions come before uses; of each the parameters and
//! instructions that something depends on, and how it ends.

use crate::program::{BlockData, Def, Inst, Terminator};
use crate::{Block, Effect, Function, Loc, Module, Op, Ty, Value};

/// A function, for reading.
#[derive(Debug)]
pub struct View<'f> {
    module: &'f Module,
    /// The function itself: its name, parameters, results.
    pub function: &'f Function,
    live: Vec<bool>,
    order: Vec<Block>,
}

/// An instruction that something depends on.
#[derive(Debug, Clone, Copy)]
pub struct Instruction<'f> {
    /// What it does.
    pub op: Op,
    /// What it may do besides computing its results.
    pub effect: Effect,
    /// Its operands.
    pub args: &'f [Value],
    /// Its position in the source.
    pub loc: Loc,
    first_result: u32,
    num_results: u32,
}

impl<'f> Instruction<'f> {
    fn of(inst: &'f Inst) -> Instruction<'f> {
        Instruction {
            op: inst.op,
            effect: inst.effect,
            args: &inst.args,
            loc: inst.loc,
            first_result: inst.first_result,
            num_results: inst.num_results,
        }
    }

    /// Its results, used or not.
    pub fn results(&self) -> impl ExactSizeIterator<Item = Value> + use<> {
        let first = self.first_result;
        (0..self.num_results).map(move |r| Value(first + r))
    }
}

/// What a value is, where no instruction gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A scalar constant's bits.
    Constant(u64),
    /// Any value.
    Undefined,
    /// An argument of the function.
    Argument(usize),
    /// A block's parameter.
    Parameter(Block),
    /// An instruction's result.
    Instruction,
}

/// How a block ends.
#[derive(Debug, Clone, Copy)]
pub enum End<'f> {
    /// It goes on there, with values for its parameters.
    Branch(Block, &'f [Value]),
    /// It goes on in one of two places.
    Condition {
        /// In the first where this holds.
        condition: Value,
        /// Block, and values for its parameters.
        yes: (Block, &'f [Value]),
        /// Block, and values for its parameters.
        no: (Block, &'f [Value]),
    },
    /// The function returns.
    Return(&'f [Value]),
    /// Control never comes here.
    Unreachable,
}

impl<'f> View<'f> {
    /// Looks at a function of the module.
    pub fn new(module: &'f Module, function: &'f Function) -> View<'f> {
        let order = function.order().into_iter().map(|b| Block(b as u32)).collect();
        View { module, function, live: function.live(), order }
    }

    /// The blocks that control comes to, in reverse post-order: the entry first.
    pub fn blocks(&self) -> &[Block] {
        &self.order
    }

    fn data(&self, block: Block) -> &'f BlockData {
        &self.function.blocks[block.0 as usize]
    }

    /// The parameters of a block that something depends on, each with its place among all.
    pub fn params(&self, block: Block) -> impl Iterator<Item = (usize, Value)> {
        let params = self.data(block).params.iter().copied().enumerate();
        params.filter(|&(_, v)| self.is_live(v))
    }

    /// All parameters of a block.
    pub fn all_params(&self, block: Block) -> &'f [Value] {
        &self.data(block).params
    }

    /// The instructions of a block that have an effect, or a result that something depends on.
    pub fn instructions(&self, block: Block) -> impl Iterator<Item = Instruction<'f>> {
        let insts = self.data(block).insts.iter().map(|&i| &self.function.insts[i as usize]);
        insts.filter(|inst| self.is_needed(inst)).map(Instruction::of)
    }

    /// The instruction that gives a value.
    pub fn instruction(&self, v: Value) -> Option<Instruction<'f>> {
        match self.function.values[v.0 as usize].def {
            Def::Inst(i, _) => Some(Instruction::of(&self.function.insts[i as usize])),
            _ => None,
        }
    }

    fn is_needed(&self, inst: &Inst) -> bool {
        let mut results = inst.first_result..inst.first_result + inst.num_results;
        inst.effect == Effect::Write || results.any(|v| self.live[v as usize])
    }

    /// How a block ends.
    pub fn end(&self, block: Block) -> End<'f> {
        match &self.data(block).term {
            Some(Terminator::Br(to, args)) => End::Branch(*to, args),
            Some(Terminator::CondBr { cond, then, then_args, els, els_args }) => {
                End::Condition { condition: *cond, yes: (*then, then_args), no: (*els, els_args) }
            }
            Some(Terminator::Ret(values)) => End::Return(values),
            Some(Terminator::Unreachable) | None => End::Unreachable,
        }
    }

    /// Whether something with an effect, or a branch, depends on a value.
    pub fn is_live(&self, v: Value) -> bool {
        self.live[v.0 as usize]
    }

    /// A value's type.
    pub fn ty(&self, v: Value) -> Ty {
        self.function.ty(v)
    }

    /// Where a value comes from.
    pub fn source(&self, v: Value) -> Source {
        match self.function.values[v.0 as usize].def {
            Def::Const(bits) => Source::Constant(bits),
            Def::Undef => Source::Undefined,
            Def::Arg(i) => Source::Argument(i as usize),
            Def::Param(block, _) => Source::Parameter(block),
            Def::Inst(..) => Source::Instruction,
        }
    }

    /// The name of an intrinsic, or the text of inline assembly.
    pub fn text(&self, op: Op) -> Option<&'f str> {
        match op {
            Op::Intrinsic(id) | Op::Asm(id) => Some(&self.module.asms[id.0 as usize].text),
            _ => None,
        }
    }

    /// What inline assembly says of its results and operands.
    pub fn constraints(&self, op: Op) -> &'f str {
        match op {
            Op::Asm(id) => &self.module.asms[id.0 as usize].constraints,
            _ => "",
        }
    }

    /// Name, parameters and results of the function that is called.
    pub fn callee(&self, op: Op) -> Option<(&'f str, &'f [Ty], &'f [Ty])> {
        let Op::Call(id) = op else { return None };
        let (name, params, results) = &self.module.signatures[id.0 as usize];
        Some((name, params, results))
    }

    /// Folder and name of the file of a position.
    pub fn file(&self, loc: Loc) -> Option<&'f (String, String)> {
        self.module.files.get((loc.file as usize).checked_sub(1)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Builder, KernelAttrs};

    #[test]
    fn dead_code_and_blocks_are_not_seen() {
        let mut module = Module::new("m");
        let params = [Ty::GLOBAL, Ty::I32];
        let mut b = Builder::new(&mut module, "k", &params, &[], Some(KernelAttrs::default()), Loc::NONE);
        let entry = b.block();
        let done = b.create_block(entry, None, &[Ty::I32, Ty::I32]);
        let never = b.create_block(entry, None, &[]);
        let (p, x) = (b.arg(0), b.arg(1));
        let one = b.i32(1);
        let sum = b.add(x, one);
        let unused = b.mul(x, sum);
        b.br(done, &[sum, unused]);
        b.switch_to(never);
        b.ret(&[]);
        b.switch_to(done);
        let v = b.params(done)[0];
        b.store(p, v, 4);
        b.ret(&[]);
        b.finish();
        let view = View::new(&module, &module.functions[0]);
        assert_eq!(view.blocks(), [entry, done]);
        assert_eq!(view.instructions(entry).count(), 1);
        assert_eq!(view.params(done).map(|(at, _)| at).collect::<Vec<_>>(), [0]);
        assert!(matches!(view.end(entry), End::Branch(to, [a, _]) if to == done && *a == sum));
        assert!(matches!(view.end(done), End::Return([])));
        assert_eq!(view.source(one), Source::Constant(1));
        assert_eq!(view.source(x), Source::Argument(1));
        let store = view.instructions(done).next().expect("the store");
        assert_eq!((store.args, store.results().len()), (&[p, v][..], 0));
    }
}
