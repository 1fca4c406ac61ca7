//! From a `tt` function to a [`Program`]: control flow becomes jumps, calls are expanded, every operation gets the loop
//! that computes it, and registers are shared between values whose lives do not overlap.

mod local;
mod ops;
mod partitions;
mod slots;

use rustc_hash::FxHashMap;
use tilewright_ir::dialect::{cf, scf, tt, ttg};
use tilewright_ir::{
    Block, Diagnostic, Loc, Module, Op, Opcode, Region, Trait, Type, TypeKind, Value, launch,
};

use crate::elem::Elem;
use crate::program::{Assign, Combine, Instr, Place, Program, V};
use crate::tile::TileType;

/// Compiles a kernel: the program and the places that it refers to.
pub fn compile(m: &Module, kernel: &str) -> Result<(Program, Vec<Place>), Diagnostic> {
    let op = m.function(kernel).ok_or_else(|| {
        let names: Vec<&str> = m.block_ops(m.body()).filter_map(|op| m.symbol_name(op)).collect();
        Diagnostic::new(format!("the module has no function `{kernel}`"))
            .note(format!("it has: {}", names.join(", ")))
    })?;
    let func = tt::Func::cast(m, op)
        .ok_or_else(|| Diagnostic::at(m, m.op_loc(op), format!("`{kernel}` is not a tt.func")))?;
    let mut places = Places::default();
    let mut b = Builder::new(m, &mut places);
    let blocks = m.region_blocks(func.body(m));
    let Some(&entry) = blocks.first() else {
        return Err(Diagnostic::at(m, m.op_loc(op), format!("`{kernel}` has no body")));
    };
    let mut inputs = Vec::new();
    for &arg in m.block_args(entry) {
        inputs.push(b.define(arg)?);
    }
    b.call_stack.push(op);
    b.function_body(func.body(m))?;
    b.emit(Instr::Return);
    let mut program = b.finish(inputs, Vec::new());
    program.warps = warps_beside(m);
    Ok((program, places.list))
}

/// The places of a kernel and its combine functions, each once.
#[derive(Default)]
struct Places {
    list: Vec<Place>,
    known: FxHashMap<(Loc, Vec<Loc>), u32>,
}

impl Places {
    fn get(&mut self, m: &Module, loc: Loc, callers: &[Loc]) -> u32 {
        let key = (loc, callers.to_vec());
        if let Some(&index) = self.known.get(&key) {
            return index;
        }
        let mut place = Diagnostic::at(m, loc, "");
        for &caller in callers.iter().rev() {
            let d = Diagnostic::at(m, caller, "");
            // Inlined locations have the call sites themselves.
            for span in d.span.into_iter().chain(d.callers) {
                if !place.callers.contains(&span) {
                    place.callers.push(span);
                }
            }
        }
        let index = self.list.len() as u32;
        self.list.push(place);
        self.known.insert(key, index);
        index
    }
}

/// The warps that run a program at the same time, each as its own, where the kernel is written for one.
pub(super) fn warps_beside(module: &Module) -> Option<u32> {
    launch::warps_of_program(module).filter(|&warps| warps > 1)
}

/// Builds one program. Until [`finish`](Builder::finish), `V::slot` numbers a virtual register.
pub struct Builder<'m, 'p> {
    /// The module.
    pub(crate) m: &'m Module,
    places: &'p mut Places,
    program: Program,
    types: FxHashMap<Type, u32>,
    env: FxHashMap<Value, V>,
    registers: u32,
    /// Ranges of instructions that repeat, inner before outer.
    loops: Vec<(usize, usize)>,
    /// Registers alive throughout a range of instructions.
    pinned: Vec<(u32, usize, usize)>,
    /// Ranges of instructions that run at the same time as others.
    strands: Vec<(usize, usize)>,
    call_stack: Vec<Op>,
    callers: Vec<Loc>,
    loc: Loc,
}

pub type Res<T> = Result<T, Diagnostic>;

impl<'m, 'p> Builder<'m, 'p> {
    fn new(m: &'m Module, places: &'p mut Places) -> Self {
        Builder {
            m,
            places,
            program: Program::default(),
            types: FxHashMap::default(),
            env: FxHashMap::default(),
            registers: 0,
            loops: Vec::new(),
            pinned: Vec::new(),
            strands: Vec::new(),
            call_stack: Vec::new(),
            callers: Vec::new(),
            loc: Loc::UNKNOWN,
        }
    }

    fn finish(mut self, inputs: Vec<V>, outputs: Vec<V>) -> Program {
        self.program.inputs = inputs;
        self.program.outputs = outputs;
        self.program.branches = self
            .program
            .code
            .iter()
            .any(|i| matches!(i, Instr::Jump { .. } | Instr::JumpIfNot { .. } | Instr::ForCheck { .. }));
        self.program.waits =
            self.program.code.iter().any(|i| matches!(i, Instr::Barrier { .. } | Instr::WaitSignal { .. }));
        self.program.spins = self.program.code.iter().any(|i| matches!(i, Instr::Jump { back: true, .. }));
        self.program.reaches_others = self.program.code.iter().any(|i| {
            matches!(
                i,
                Instr::Remote { .. } | Instr::SameBlock { .. } | Instr::MbarrierArrive { rank: Some(_), .. }
            )
        });
        slots::allocate(&mut self.program, self.registers as usize, &self.loops, &self.pinned, &self.strands);
        self.program
    }

    pub(crate) fn error(&self, message: impl Into<String>) -> Diagnostic {
        let mut d = Diagnostic::at(self.m, self.loc, message);
        for &caller in self.callers.iter().rev() {
            d.callers.extend(Diagnostic::at(self.m, caller, "").span);
        }
        d
    }

    pub(crate) fn unsupported(&self, what: impl std::fmt::Display) -> Diagnostic {
        self.error(format!("not supported yet by the CPU executor: {what}"))
            .of(tilewright_ir::diagnostic::Kind::Unsupported)
    }

    fn emit(&mut self, instr: Instr) -> usize {
        let place = self.places.get(self.m, self.loc, &self.callers);
        self.program.code.push(instr);
        self.program.places.push(place);
        self.program.code.len() - 1
    }

    fn here(&self) -> usize {
        self.program.code.len()
    }

    fn ty(&mut self, ty: Type) -> Res<u32> {
        if let Some(&index) = self.types.get(&ty) {
            return Ok(index);
        }
        let elem = match self.m.type_kind(ty) {
            // Where it begins.
            TypeKind::MemDesc { .. } => Some(Elem::Ptr),
            // Its number.
            TypeKind::Ring => Some(Elem::Ptr),
            _ => Elem::of(self.m, ty),
        };
        let Some(elem) = elem else {
            let what = match self.m.type_kind(self.m.element_type(ty)) {
                TypeKind::Ptr { .. } => "block pointers".to_string(),
                TypeKind::TensorDesc { .. } => "tensor descriptors".to_string(),
                TypeKind::Int(bits) => format!("{bits}-bit integers"),
                other => format!("values of type {other:?}"),
            };
            return Err(self.unsupported(what));
        };
        let shape: Box<[u32]> =
            if self.m.is_tensor(ty) { self.m.shape(ty).unwrap_or(&[]).into() } else { [].into() };
        let len = shape.iter().try_fold(1usize, |n, &e| n.checked_mul(e as usize)).filter(|&n| n < 1 << 31);
        let len = len.ok_or_else(|| self.error("the tensor has more than 2^31 elements"))?;
        let index = self.program.types.len() as u32;
        self.program.types.push(TileType { shape, len, elem });
        self.types.insert(ty, index);
        Ok(index)
    }

    /// The type of as many addresses as a register has elements.
    fn pointers_to(&mut self, of: V) -> u32 {
        let ty = TileType { elem: Elem::Ptr, ..self.tile(of).clone() };
        self.program.types.push(ty);
        self.program.types.len() as u32 - 1
    }

    fn register(&mut self, ty: u32) -> V {
        self.registers += 1;
        V { slot: self.registers - 1, ty }
    }

    /// A register for a value.
    pub(crate) fn define(&mut self, value: Value) -> Res<V> {
        let ty = self.ty(self.m.value_type(value))?;
        let v = self.register(ty);
        self.env.insert(value, v);
        Ok(v)
    }

    /// The register of a value.
    pub(crate) fn get(&self, value: Value) -> Res<V> {
        self.env
            .get(&value)
            .copied()
            .ok_or_else(|| self.error("an operand is used before it is defined (the module does not verify)"))
    }

    pub(crate) fn get_all(&self, values: &[Value]) -> Res<Vec<V>> {
        values.iter().map(|&v| self.get(v)).collect()
    }

    pub(crate) fn tile(&self, v: V) -> &TileType {
        &self.program.types[v.ty as usize]
    }

    pub(crate) fn elem(&self, v: V) -> Elem {
        self.tile(v).elem
    }

    fn moves(&mut self, srcs: &[V], dsts: &[V]) -> Res<()> {
        if srcs.len() != dsts.len() {
            return Err(self.error("the number of values given differs from the number expected"));
        }
        let assigns: Vec<Assign> = srcs
            .iter()
            .zip(dsts)
            .filter(|(s, d)| s.slot != d.slot)
            .map(|(&src, &dst)| Assign { src, dst, take: false })
            .collect();
        if !assigns.is_empty() {
            let overlapping = assigns.iter().any(|a| assigns.iter().any(|b| a.src.slot == b.dst.slot));
            self.emit(Instr::Move { assigns, overlapping });
        }
        Ok(())
    }

    /// Compiles a block up to its terminator, which it returns.
    fn block(&mut self, block: Block) -> Res<Op> {
        let m = self.m;
        for op in m.block_ops(block) {
            if m.has_trait(op, Trait::Terminator) {
                return Ok(op);
            }
            if m.has_trait(op, Trait::Pure) && m.results(op).iter().all(|&r| m.is_unused(r)) {
                continue;
            }
            self.loc = m.op_loc(op);
            match m.opcode(op) {
                Some(Opcode::Scf(kind)) => self.structured(op, kind)?,
                Some(Opcode::Tt(tt::Kind::Call)) => self.call(op)?,
                Some(Opcode::Ttg(ttg::Kind::WarpSpecialize)) => self.partitions(ttg::WarpSpecialize(op))?,
                _ => self.op(op)?,
            }
            self.loc = m.op_loc(op);
        }
        Err(self.error("a block has no terminator (the module does not verify)"))
    }

    fn yielded(&mut self, block: Block) -> Res<Vec<V>> {
        let end = self.block(block)?;
        self.loc = self.m.op_loc(end);
        match scf::Yield::cast(self.m, end) {
            Some(y) => self.get_all(y.values(self.m)),
            None => Err(self.unsupported(format!("`{}` at the end of a region", self.m.op_name(end)))),
        }
    }

    fn structured(&mut self, op: Op, kind: scf::Kind) -> Res<()> {
        let m = self.m;
        match kind {
            scf::Kind::For => {
                let f = scf::For(op);
                let body = m.region_block(f.body(m));
                let (lower, upper, step) =
                    (self.get(f.lower_bound(m))?, self.get(f.upper_bound(m))?, self.get(f.step(m))?);
                let args: Vec<V> = m.block_args(body).iter().map(|&a| self.define(a)).collect::<Res<_>>()?;
                let mut init = vec![lower];
                init.extend(self.get_all(f.init(m))?);
                self.moves(&init, &args)?;
                let top = self.emit(Instr::ForCheck { iv: args[0], upper, step, exit: 0 });
                let values = self.yielded(body)?;
                self.moves(&values, &args[1..])?;
                self.loc = m.op_loc(op);
                let last = self.emit(Instr::ForStep { iv: args[0], step, top, exit: 0 });
                let after = self.here();
                for at in [top, last] {
                    match &mut self.program.code[at] {
                        Instr::ForCheck { exit, .. } | Instr::ForStep { exit, .. } => *exit = after,
                        _ => unreachable!("just emitted"),
                    }
                }
                self.loops.push((top, last));
                for (&result, &arg) in m.results(op).iter().zip(&args[1..]) {
                    self.env.insert(result, arg);
                }
            }
            scf::Kind::If => {
                let f = scf::If(op);
                let condition = self.get(f.condition(m))?;
                let results: Vec<V> = m.results(op).iter().map(|&r| self.define(r)).collect::<Res<_>>()?;
                let branch = self.emit(Instr::JumpIfNot { condition, target: 0 });
                let values = self.yielded(m.region_block(f.then_region(m)))?;
                self.moves(&values, &results)?;
                let mut otherwise = self.here();
                if let &[block] = m.region_blocks(f.else_region(m)) {
                    let skip = self.emit(Instr::Jump { target: 0, back: false });
                    otherwise = self.here();
                    let values = self.yielded(block)?;
                    self.moves(&values, &results)?;
                    let end = self.here();
                    self.program.code[skip] = Instr::Jump { target: end, back: false };
                }
                self.program.code[branch] = Instr::JumpIfNot { condition, target: otherwise };
            }
            scf::Kind::While => {
                let w = scf::While(op);
                let (before, after) = (m.region_block(w.before(m)), m.region_block(w.after(m)));
                let state: Vec<V> =
                    m.block_args(before).iter().map(|&a| self.define(a)).collect::<Res<_>>()?;
                let init = self.get_all(w.init(m))?;
                self.moves(&init, &state)?;
                let top = self.here();
                let end = self.block(before)?;
                self.loc = m.op_loc(end);
                let condition = scf::Condition::cast(m, end)
                    .ok_or_else(|| self.unsupported("a while without scf.condition"))?;
                let carried: Vec<V> =
                    m.block_args(after).iter().map(|&a| self.define(a)).collect::<Res<_>>()?;
                let values = self.get_all(condition.args(m))?;
                self.moves(&values, &carried)?;
                let condition = self.get(condition.condition(m))?;
                let branch = self.emit(Instr::JumpIfNot { condition, target: 0 });
                let values = self.yielded(after)?;
                self.moves(&values, &state)?;
                let last = self.emit(Instr::Jump { target: top, back: true });
                let exit = self.here();
                self.program.code[branch] = Instr::JumpIfNot { condition, target: exit };
                self.loops.push((top, last));
                for (&result, &v) in m.results(op).iter().zip(&carried) {
                    self.env.insert(result, v);
                }
            }
            scf::Kind::Condition | scf::Kind::Yield => {
                return Err(self.error("a terminator in the middle of a block"));
            }
        }
        Ok(())
    }

    fn call(&mut self, op: Op) -> Res<()> {
        let m = self.m;
        let call = tt::Call(op);
        let name = call.callee(m).0;
        let callee = m.function(&name).and_then(|f| tt::Func::cast(m, f));
        let callee =
            callee.ok_or_else(|| self.error(format!("the called function `{name}` is not in the module")))?;
        if self.call_stack.contains(&callee.0) {
            return Err(self.error(format!("`{name}` calls itself; kernels can't be recursive")));
        }
        let args = self.get_all(call.args(m))?;
        let entry = *m
            .region_blocks(callee.body(m))
            .first()
            .ok_or_else(|| self.error(format!("the called function `{name}` has no body")))?;
        if m.block_args(entry).len() != args.len() {
            return Err(self.error(format!("`{name}` takes {} arguments", m.block_args(entry).len())));
        }
        for (&param, &arg) in m.block_args(entry).iter().zip(&args) {
            self.env.insert(param, arg);
        }
        self.callers.push(self.loc);
        self.call_stack.push(callee.0);
        let results = self.function_body(callee.body(m))?;
        self.call_stack.pop();
        self.loc = self.callers.pop().unwrap_or(Loc::UNKNOWN);
        if results.len() != m.results(op).len() {
            return Err(self.error(format!("`{name}` returns {} values", results.len())));
        }
        for (&result, v) in m.results(op).iter().zip(results) {
            self.env.insert(result, v);
        }
        Ok(())
    }

    /// Compiles a function's body, whose first block's arguments are bound already; gives the returned values.
    fn function_body(&mut self, body: Region) -> Res<Vec<V>> {
        let m = self.m;
        let blocks = m.region_blocks(body);
        if let &[block] = blocks {
            let end = self.block(block)?;
            self.loc = m.op_loc(end);
            return match tt::Return::cast(m, end) {
                Some(r) => self.get_all(r.values(m)),
                None => Err(self.unsupported(format!("`{}` at the end of a function", m.op_name(end)))),
            };
        }
        self.graph(blocks)
    }

    /// A body with several blocks: unstructured control flow. Its registers are not shared.
    fn graph(&mut self, blocks: &[Block]) -> Res<Vec<V>> {
        let m = self.m;
        let (start, first_register) = (self.here(), self.registers);
        let mut entry_of = FxHashMap::default();
        let mut fixups: Vec<(usize, Option<Block>)> = Vec::new();
        for &block in &blocks[1..] {
            for &arg in m.block_args(block) {
                self.define(arg)?;
            }
        }
        let mut results: Option<Vec<V>> = None;
        for &block in blocks {
            entry_of.insert(block, self.here());
            let end = self.block(block)?;
            self.loc = m.op_loc(end);
            match m.opcode(end) {
                Some(Opcode::Tt(tt::Kind::Return)) => {
                    let values = self.get_all(tt::Return(end).values(m))?;
                    let dsts = match &results {
                        Some(r) => r.clone(),
                        None => values.iter().map(|v| self.register(v.ty)).collect(),
                    };
                    self.moves(&values, &dsts)?;
                    results = Some(dsts);
                    fixups.push((self.emit(Instr::Jump { target: 0, back: false }), None));
                }
                Some(Opcode::Cf(cf::Kind::Br)) => {
                    let to = m.successors(end)[0];
                    self.jump_to(to, cf::Br(end).args(m), &mut fixups)?;
                }
                Some(Opcode::Cf(cf::Kind::CondBr)) => {
                    let br = cf::CondBr(end);
                    let condition = self.get(br.condition(m))?;
                    let (yes, no) = match m.successors(end) {
                        &[yes, no] => (yes, no),
                        _ => return Err(self.error("cf.cond_br needs two successors")),
                    };
                    let branch = self.emit(Instr::JumpIfNot { condition, target: 0 });
                    self.jump_to(yes, br.true_args(m), &mut fixups)?;
                    let target = self.here();
                    self.program.code[branch] = Instr::JumpIfNot { condition, target };
                    self.jump_to(no, br.false_args(m), &mut fixups)?;
                }
                _ => return Err(self.unsupported(format!("`{}` at the end of a block", m.op_name(end)))),
            }
        }
        let end = self.here();
        for (at, block) in fixups {
            let target = match block {
                Some(b) => {
                    *entry_of.get(&b).ok_or_else(|| self.error("a branch to another function's block"))?
                }
                None => end,
            };
            self.program.code[at] = Instr::Jump { target, back: target <= at };
        }
        self.loops.push((start, end.saturating_sub(1)));
        for register in first_register..self.registers {
            self.pinned.push((register, start, end.saturating_sub(1)));
        }
        Ok(results.unwrap_or_default())
    }

    fn jump_to(&mut self, to: Block, args: &[Value], fixups: &mut Vec<(usize, Option<Block>)>) -> Res<()> {
        let values = self.get_all(args)?;
        let params = self.get_all(self.m.block_args(to))?;
        self.moves(&values, &params)?;
        fixups.push((self.emit(Instr::Jump { target: 0, back: false }), Some(to)));
        Ok(())
    }

    /// The function in a region: the combine function of a reduction or scan, or one of elements.
    fn combine(&mut self, region: Region, arguments: usize, results: usize) -> Res<Combine> {
        let m = self.m;
        let block = match m.region_blocks(region) {
            &[b] => b,
            _ => return Err(self.unsupported("a combine function with several blocks")),
        };
        if m.block_args(block).len() != arguments {
            return Err(self.error(format!("the function in the region must take {arguments} arguments")));
        }
        let mut captured: Vec<Value> = Vec::new();
        for op in m.block_ops(block) {
            m.walk(op, &mut |inner| {
                for &v in m.operands(inner) {
                    let defined_inside =
                        m.value_block(v).and_then(|b| m.block_parent_op(b)).is_some_and(|owner| {
                            m.region_op(region).is_some_and(|top| m.is_ancestor(top, owner))
                        });
                    if !defined_inside && !captured.contains(&v) {
                        captured.push(v);
                    }
                }
            });
        }
        let captures = self.get_all(&captured)?;
        if captures.iter().any(|&c| !self.tile(c).shape.is_empty()) {
            return Err(self.unsupported("a combine function that uses a tensor from outside"));
        }
        let (loc, callers, call_stack) = (self.loc, self.callers.clone(), self.call_stack.clone());
        let mut b = Builder::new(m, self.places);
        (b.loc, b.callers, b.call_stack) = (loc, callers, call_stack);
        let mut inputs = Vec::new();
        for &value in m.block_args(block).iter().chain(&captured) {
            inputs.push(b.define(value)?);
        }
        let end = b.block(block)?;
        let operands = m.operands(end);
        if !m.op_name(end).ends_with(".return") || operands.len() != results {
            return Err(b.error(format!("the function in the region must return {results} values")));
        }
        let outputs = b.get_all(operands)?;
        let single = match (b.program.code.as_slice(), inputs.as_slice(), outputs.as_slice()) {
            ([Instr::Map(map)], &[acc, element], &[out])
                if map.srcs == [acc, element] && map.dst == out && map.imm.is_none() && !map.divides =>
            {
                Some((map.kernel, map.round.map(|(k, _)| k)))
            }
            _ => None,
        };
        b.emit(Instr::Return);
        let program = b.finish(inputs, outputs);
        Ok(Combine { program: Box::new(program), captures, single })
    }
}
