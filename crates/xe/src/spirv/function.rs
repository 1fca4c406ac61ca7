//! A function: its blocks, and what goes from one to the other.

use std::collections::HashMap;

use rspirv::dr::{self, Instruction, Operand};
use rspirv::spirv::{FunctionControl, Op, StorageClass, Word};
use tilewright_llvm::view::{self, End, Source};
use tilewright_llvm::{self as llvm, Block, Function, Loc, Ty, Value, View};

use super::phis::Groups;
use super::types::{self, held};
use super::{Emitter, Result};

/// A function that is being written.
pub(super) struct Body<'e, 'm> {
    pub e: &'e mut Emitter<'m>,
    pub view: View<'m>,
    values: HashMap<Value, Word>,
    labels: HashMap<Block, Word>,
    groups: Groups,
    /// The vector of each group.
    wholes: Vec<Word>,
    /// What comes to a block from one before it: of its groups, then of its other live parameters.
    incoming: HashMap<Block, Vec<(Word, Vec<Word>)>>,
    /// Instructions of the block that is being written.
    code: Vec<Instruction>,
    blocks: Vec<dr::Block>,
    args: Vec<Word>,
    line: Loc,
    /// The function, if it is a kernel, and the file in whose part of it the block's code is.
    kernel: Option<Word>,
    file: Option<Word>,
}

impl<'m> Emitter<'m> {
    /// Writes a function. `at` follows the place in the source.
    pub(super) fn function(&mut self, function: &'m Function, at: &mut Loc) -> Result<()> {
        let (id, module) = (self.functions[&function.name], self.module);
        let kernel = function.kernel.is_some();
        let result = self.results(&function.results)?;
        let mut params = Vec::new();
        for &ty in &function.params {
            params.push(match ty {
                ty if kernel && ty.is_ptr() => self.pointer(StorageClass::CrossWorkgroup, Ty::I8)?,
                Ty::I1 if kernel => self.ty(Ty::I8)?,
                ty => self.ty(ty)?,
            });
        }
        let ty = self.out.type_function(result, params.clone());
        let control = if kernel { FunctionControl::NONE } else { FunctionControl::DONT_INLINE };
        let mut made = types::begin(id, result, ty, control);
        let mut args = Vec::new();
        for param in params {
            args.push(self.out.id());
            made.parameters.push(types::parameter(args[args.len() - 1], param));
        }
        let view = View::new(module, function);
        let groups = Groups::find(&view);
        let labels = view.blocks().iter().map(|&block| (block, self.out.id())).collect();
        let wholes = groups.elements.iter().map(|_| self.out.id()).collect();
        let mut body = Body {
            e: self,
            view,
            values: HashMap::new(),
            labels,
            groups,
            wholes,
            incoming: HashMap::new(),
            code: Vec::new(),
            blocks: Vec::new(),
            args,
            line: Loc::NONE,
            kernel: kernel.then_some(id),
            file: None,
        };
        if let Err(error) = body.run(kernel) {
            *at = body.line;
            return Err(error);
        }
        made.blocks = body.blocks;
        made.end = Some(types::plain(Op::FunctionEnd, vec![]));
        self.bodies.push(made);
        self.entry_point(function, id);
        Ok(())
    }
}

impl<'m> Body<'_, 'm> {
    fn run(&mut self, kernel: bool) -> Result<()> {
        let order = self.view.blocks().to_vec();
        for (n, &block) in order.iter().enumerate() {
            // Lines and files end with a block.
            (self.line, self.file) = (Loc::NONE, None);
            if n == 0 && kernel {
                self.arguments()?;
            }
            for &group in &self.groups.of_block.get(&block).cloned().unwrap_or_default() {
                for (at, v) in self.groups.elements[group].clone().into_iter().enumerate() {
                    if self.view.is_live(v) {
                        let element = self.element(self.wholes[group], self.view.ty(v), at)?;
                        self.define(v, element)?;
                    }
                }
            }
            let insts: Vec<_> = self.view.instructions(block).collect();
            for inst in insts {
                self.position(inst.loc);
                self.instruction(&inst)?;
            }
            self.end(block)?;
        }
        self.phis(&order)
    }

    /// Arguments of a kernel as the program has them.
    fn arguments(&mut self) -> Result<()> {
        for i in 0..self.args.len() {
            let ty = self.view.function.params[i];
            if ty.is_ptr() {
                self.args[i] = self.op(Op::ConvertPtrToU, ty, &[self.args[i]])?;
            } else if ty == Ty::I1 {
                let zero = self.e.constant(Ty::I8, 0)?;
                self.args[i] = self.op(Op::INotEqual, Ty::I1, &[self.args[i], zero])?;
            }
        }
        Ok(())
    }

    fn position(&mut self, loc: Loc) {
        if loc == self.line || loc == Loc::NONE {
            return;
        }
        self.line = loc;
        let Some((folder, file)) = self.view.file(loc) else { return };
        let known = self.e.files.get(&loc.file).copied();
        let file = known.unwrap_or_else(|| {
            let name = if folder.is_empty() { file.clone() } else { format!("{folder}/{file}") };
            let id = self.e.out.string(name);
            self.e.files.insert(loc.file, id);
            id
        });
        if let Some(kernel) = self.kernel
            && self.file != Some(file)
        {
            let scope = self.e.scope(&self.view.function.name, kernel, file, loc.line);
            self.code.push(scope);
            self.file = Some(file);
        }
        let place =
            vec![Operand::IdRef(file), Operand::LiteralBit32(loc.line), Operand::LiteralBit32(loc.col)];
        self.code.push(types::plain(Op::Line, place));
    }

    // ---- values ----------------------------------------------------------------------------------------------------

    /// A value, which may be defined further down.
    pub fn value(&mut self, v: Value) -> Result<Word> {
        match self.view.source(v) {
            Source::Constant(bits) => self.e.constant(self.view.ty(v), bits),
            Source::Argument(i) => Ok(self.args[i]),
            Source::Undefined => match self.values.get(&v) {
                Some(&known) => Ok(known),
                None => {
                    let made = self.e.undefined(self.view.ty(v))?;
                    self.values.insert(v, made);
                    Ok(made)
                }
            },
            _ => {
                let out = &mut self.e.out;
                Ok(*self.values.entry(v).or_insert_with(|| out.id()))
            }
        }
    }

    /// Says what a value is.
    pub fn define(&mut self, v: Value, word: Word) -> Result<()> {
        match self.values.get(&v).copied() {
            Some(known) if known != word => {
                let ty = self.e.ty(self.view.ty(v))?;
                let copy =
                    Instruction::new(Op::CopyObject, Some(ty), Some(known), vec![Operand::IdRef(word)]);
                self.code.push(copy);
            }
            _ => {
                self.values.insert(v, word);
            }
        }
        Ok(())
    }

    /// Records an instruction on values.
    pub fn op(&mut self, op: Op, ty: Ty, args: &[Word]) -> Result<Word> {
        self.op_with(op, ty, args.iter().map(|&id| Operand::IdRef(id)).collect())
    }

    /// Records an instruction.
    pub fn op_with(&mut self, op: Op, ty: Ty, operands: Vec<Operand>) -> Result<Word> {
        let ty = self.e.ty(ty)?;
        Ok(self.op_of(op, ty, operands))
    }

    /// Records an instruction whose type is given by its id.
    pub fn op_of(&mut self, op: Op, ty: Word, operands: Vec<Operand>) -> Word {
        let id = self.e.out.id();
        self.code.push(Instruction::new(op, Some(ty), Some(id), operands));
        id
    }

    /// Records an instruction without a result.
    pub fn act(&mut self, op: Op, operands: Vec<Operand>) {
        self.code.push(types::plain(op, operands));
    }

    /// An element of a vector.
    pub fn element(&mut self, vector: Word, ty: Ty, at: usize) -> Result<Word> {
        self.op_with(Op::CompositeExtract, ty, vec![Operand::IdRef(vector), Operand::LiteralBit32(at as u32)])
    }

    /// A vector of elements.
    pub fn vector(&mut self, elements: &[Value]) -> Result<Word> {
        let ty = Ty::vector(self.view.ty(elements[0]).scalar, elements.len() as u8);
        if let Some(group) = self.groups.whole(elements) {
            return Ok(self.wholes[group]);
        }
        let constant = elements.iter().all(|&v| matches!(self.view.source(v), Source::Constant(_)));
        let words = elements.iter().map(|&v| self.value(v)).collect::<Result<Vec<Word>>>()?;
        if constant { self.e.constant_vector(ty, words) } else { self.op(Op::CompositeConstruct, ty, &words) }
    }

    // ---- control ---------------------------------------------------------------------------------------------------

    /// The vector whose elements these are, in order.
    fn elements_of(&self, args: &[Value]) -> Option<Value> {
        let inst = |v: Value| self.view.instruction(v);
        let first: view::Instruction<'_> = inst(args[0])?;
        let whole = *first.args.first()?;
        let all = args
            .iter()
            .enumerate()
            .all(|(i, &v)| inst(v).is_some_and(|x| x.op == llvm::Op::Extract(i as u8) && x.args[0] == whole));
        (all && usize::from(self.view.ty(whole).lanes) == args.len()).then_some(whole)
    }

    /// Goes to a block from the one of this label.
    fn edge(&mut self, from: Word, to: Block, args: &[Value]) -> Result<Word> {
        let mut words = Vec::new();
        let params = self.view.all_params(to).to_vec();
        for group in self.groups.of_block.get(&to).cloned().unwrap_or_default() {
            let elements: Vec<Value> = self.groups.elements[group]
                .iter()
                .filter_map(|v| params.iter().position(|p| p == v))
                .map(|at| args[at])
                .collect();
            words.push(match self.elements_of(&elements) {
                Some(whole) => self.value(whole)?,
                None => self.vector(&elements)?,
            });
        }
        let single: Vec<usize> = self.single_params(to).iter().map(|&(at, _)| at).collect();
        for at in single {
            words.push(self.value(args[at])?);
        }
        self.incoming.entry(to).or_default().push((from, words));
        Ok(self.labels[&to])
    }

    /// The live parameters of a block that are in no vector.
    fn single_params(&self, block: Block) -> Vec<(usize, Value)> {
        self.view.params(block).filter(|(_, v)| !self.groups.place.contains_key(v)).collect()
    }

    fn end(&mut self, block: Block) -> Result<()> {
        let label = self.labels[&block];
        match self.view.end(block) {
            End::Branch(to, args) => {
                let to = self.edge(label, to, args)?;
                self.act(Op::Branch, vec![Operand::IdRef(to)]);
            }
            End::Condition { condition, yes, no } => {
                let condition = self.value(condition)?;
                let then = self.edge(label, yes.0, yes.1)?;
                // A phi has one value of each block before it.
                let between = (yes.0 == no.0).then(|| self.e.out.id());
                let other = self.edge(between.unwrap_or(label), no.0, no.1)?;
                let ids = [condition, then, between.unwrap_or(other)].map(Operand::IdRef);
                self.act(Op::BranchConditional, ids.to_vec());
                self.close(label);
                if let Some(between) = between {
                    self.act(Op::Branch, vec![Operand::IdRef(other)]);
                    self.close(between);
                }
                return Ok(());
            }
            End::Return([]) => self.act(Op::Return, vec![]),
            End::Return(values) => {
                let value = match values {
                    [one] => self.value(*one)?,
                    _ => {
                        let ty = self.e.results(&self.view.function.results)?;
                        let fields = self.values(values)?.into_iter().map(Operand::IdRef).collect();
                        self.op_of(Op::CompositeConstruct, ty, fields)
                    }
                };
                self.act(Op::ReturnValue, vec![Operand::IdRef(value)]);
            }
            End::Unreachable => self.act(Op::Unreachable, vec![]),
        }
        self.close(label);
        Ok(())
    }

    /// Ends the block of a label.
    fn close(&mut self, label: Word) {
        let mut block = dr::Block::new();
        block.label = Some(Instruction::new(Op::Label, None, Some(label), vec![]));
        block.instructions = std::mem::take(&mut self.code);
        self.blocks.push(block);
    }

    /// The phis of all blocks, now that everything that comes to them is known.
    fn phis(&mut self, order: &[Block]) -> Result<()> {
        for &block in order {
            let Some(incoming) = self.incoming.remove(&block) else { continue };
            let mut results = Vec::new();
            for group in self.groups.of_block.get(&block).cloned().unwrap_or_default() {
                let elements = &self.groups.elements[group];
                let ty = Ty::vector(self.view.ty(elements[0]).scalar, elements.len() as u8);
                results.push((self.wholes[group], held(ty)));
            }
            for (_, v) in self.single_params(block) {
                results.push((self.value(v)?, held(self.view.ty(v))));
            }
            let mut phis = Vec::new();
            for (k, (id, ty)) in results.into_iter().enumerate() {
                let pairs = incoming.iter().flat_map(|(from, words)| [words[k], *from]);
                let operands = pairs.map(Operand::IdRef).collect();
                phis.push(Instruction::new(Op::Phi, Some(self.e.ty(ty)?), Some(id), operands));
            }
            let label = self.labels[&block];
            if let Some(made) = self.blocks.iter_mut().find(|b| b.label_id() == Some(label)) {
                made.instructions.splice(0..0, phis);
            }
        }
        Ok(())
    }
}
