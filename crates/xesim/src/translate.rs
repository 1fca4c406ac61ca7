//! From a kernel in SPIR-V to one in PTX.
//!
//! Each SPIR-V value becomes one register an element. A phi is two moves: to a register of the edge at the end of each
//! predecessor, and from there at the start of its block, so that phis of one block may use each other. Functions are inlined.

use crate::assembly::Whole;
use crate::module::{Module, Type, id_of, literal, malformed, unsupported, whole};
use crate::{Error, group};
use rspirv::binary::Disassemble;
use rspirv::dr::{Function, Instruction, Operand};
use rspirv::spirv::{BuiltIn, ExecutionMode, Op, StorageClass};
use std::collections::HashMap;

/// The registers of a value, an element each.
pub(crate) type Regs = Vec<String>;

/// A kernel as PTX, and what its lines stand for.
pub(crate) struct Kernel {
    pub text: String,
    /// Lanes of a sub-group.
    pub lanes: u32,
    /// Items that a group must have.
    pub items: Option<u32>,
    pub params: usize,
    instructions: Vec<String>,
    /// Of each line: position in `instructions`, and what it means when it traps.
    lines: Vec<(usize, Option<&'static str>)>,
}

impl Kernel {
    /// The instruction that a line of the PTX stands for, and what a trap there means.
    pub fn origin(&self, line: u32) -> (&str, Option<&'static str>) {
        let at = self.lines.get((line as usize).wrapping_sub(1));
        at.map_or(("", None), |&(k, note)| (&self.instructions[k], note))
    }

    pub fn translate(module: &Module, name: &str) -> Result<Kernel, Error> {
        let id = module.kernel(name)?;
        let lanes = match module.mode(id, ExecutionMode::SubgroupSize).as_deref() {
            Some([lanes @ (8 | 16 | 32)]) => *lanes,
            _ => return Err(Error::new("not supported yet: a kernel with no sub-group size of 8, 16 or 32")),
        };
        let items = match module.mode(id, ExecutionMode::LocalSize).as_deref() {
            Some([n, 1, 1]) => Some(*n),
            Some(n) => return Err(Error::new(format!("not supported yet: groups of {n:?} items"))),
            None => None,
        };
        let f = module.function(id).ok_or_else(|| Error::new("the kernel has no function"))?;
        let mut t = Translator {
            module,
            lanes,
            head: vec![],
            body: vec![],
            registers: HashMap::new(),
            instructions: vec![String::new()],
            constants: HashMap::new(),
            parameters: vec![],
            tables: vec![],
            frame: Frame::default(),
            inlined: 0,
            depth: 0,
            files: vec![],
        };
        t.start();
        let mut arguments = vec![];
        for (k, p) in f.parameters.iter().enumerate() {
            arguments.push(t.parameter(k, p)?);
        }
        let params = arguments.len();
        t.inline(f, arguments)?;
        t.trap("%arrived", "ends without having waited where it arrived");
        t.op("ret;");
        Ok(t.finish(items, params))
    }
}

/// Values and labels of a function that is being inlined.
#[derive(Default)]
struct Frame {
    number: usize,
    values: HashMap<u32, Regs>,
    /// Of each phi, the registers of its edges.
    edges: HashMap<u32, Regs>,
    /// What it returns.
    result: Regs,
    /// Blocks as memory has them.
    wholes: HashMap<u32, Whole>,
}

type Line = (String, usize, Option<&'static str>);

pub(crate) struct Translator<'a> {
    pub module: &'a Module,
    pub lanes: u32,
    /// Constants and variables, before the first block.
    head: Vec<Line>,
    body: Vec<Line>,
    registers: HashMap<char, usize>,
    instructions: Vec<String>,
    constants: HashMap<u32, Regs>,
    /// Declarations of the parameters.
    parameters: Vec<String>,
    /// Declarations of the module's variables.
    tables: Vec<String>,
    frame: Frame,
    inlined: usize,
    depth: usize,
    files: Vec<String>,
}

impl Translator<'_> {
    /// A new register: `p` a predicate, `h`, `r`, `d` of 16, 32 and 64 bits.
    pub fn reg(&mut self, class: char) -> String {
        let n = self.registers.entry(class).or_default();
        *n += 1;
        format!("%{class}{n}", n = *n - 1)
    }

    /// A new register for a scalar.
    pub fn reg_of(&mut self, ty: &Type) -> Result<String, Error> {
        Ok(match ty {
            Type::Bool => self.reg('p'),
            Type::Int(8 | 16) | Type::Float(16) => self.reg('h'),
            Type::Int(32) | Type::Float(32) => self.reg('r'),
            Type::Int(64) | Type::Float(64) | Type::Pointer(..) => self.reg('d'),
            t => return Err(Error::new(format!("not supported yet: a value of type {t:?}"))),
        })
    }

    /// New registers for a value.
    pub fn regs_of(&mut self, ty: u32) -> Result<Regs, Error> {
        let parts = self.module.parts(ty)?;
        parts.iter().map(|e| self.reg_of(e)).collect()
    }

    /// Adds a line of PTX.
    pub fn op(&mut self, line: impl Into<String>) {
        self.body.push((line.into(), self.instructions.len() - 1, None));
    }

    /// Ends the launch with a finding where predicate `bad` holds.
    pub fn trap(&mut self, bad: &str, note: &'static str) {
        self.body.push((format!("@{bad} trap;"), self.instructions.len() - 1, Some(note)));
    }

    fn in_head(&mut self, line: String) {
        self.head.push((line, 0, None));
    }

    /// Lanes beyond the sub-group's end; `%lane`, `%sub` and `%item` are set. `%arrived`: between the halves of a split barrier.
    fn start(&mut self) {
        for line in [
            "mov.u32 %lane, %tid.x;".to_string(),
            "shr.u32 %sub, %lane, 5;".into(),
            "and.b32 %lane, %lane, 31;".into(),
            "mov.u32 %subs, %ntid.x;".into(),
            "shr.u32 %subs, %subs, 5;".into(),
            format!("mul.lo.u32 %items, %subs, {};", self.lanes),
            format!("mad.lo.u32 %item, %sub, {}, %lane;", self.lanes),
            format!("setp.ge.u32 %beyond, %lane, {};", self.lanes),
            "@%beyond exit;".into(),
            "setp.ne.u32 %arrived, 0, 0;".into(),
        ] {
            self.in_head(line);
        }
    }

    fn parameter(&mut self, k: usize, p: &Instruction) -> Result<Regs, Error> {
        let ty = self.module.ty(p.result_type.ok_or_else(|| malformed(p))?)?.clone();
        if matches!(&ty, Type::Pointer(class, _) if *class != StorageClass::CrossWorkgroup) {
            return Err(unsupported(p, "a parameter that points elsewhere than to global memory"));
        }
        let reg = self.reg_of(&ty)?;
        let bits = bits(&ty);
        self.in_head(format!("ld.param.b{bits} {reg}, [p{k}];"));
        self.parameters.push(format!(".param .b{bits} p{k}"));
        Ok(vec![reg])
    }

    fn finish(self, items: Option<u32>, params: usize) -> Kernel {
        let mut lines: Vec<Line> = vec![];
        let mut plain = |line: String| lines.push((line, 0, None));
        plain(".version 8.0".into());
        plain(".target sm_90".into());
        plain(".address_size 64".into());
        for (k, file) in self.files.iter().enumerate() {
            let file = file.replace(['"', '\\', '\n'], "_");
            plain(format!(".file {} \"{file}\"", k + 1));
        }
        self.tables.into_iter().for_each(&mut plain);
        plain(format!(".visible .entry kernel({})", self.parameters.join(", ")));
        plain("{".into());
        for (class, ty) in [('p', "pred"), ('h', "b16"), ('r', "b32"), ('d', "b64")] {
            let n = self.registers.get(&class).copied().unwrap_or(0);
            plain(format!(".reg .{ty} %{class}<{}>;", n + 1));
        }
        plain(".reg .b32 %lane, %sub, %subs, %item, %items;".into());
        plain(".reg .pred %beyond, %arrived;".into());
        lines.extend(self.head);
        lines.extend(self.body);
        lines.push(("}".into(), 0, None));
        Kernel {
            text: lines.iter().map(|l| l.0.as_str()).collect::<Vec<_>>().join("\n") + "\n",
            lanes: self.lanes,
            items,
            params,
            instructions: self.instructions,
            lines: lines.iter().map(|l| (l.1, l.2)).collect(),
        }
    }

    /// The registers of a value.
    pub fn value(&mut self, id: u32) -> Result<Regs, Error> {
        if let Some(v) = self.frame.values.get(&id).or_else(|| self.constants.get(&id)) {
            return Ok(v.clone());
        }
        if let Some(c) = self.module.constants.get(&id) {
            let regs = self.constant(c)?;
            self.constants.insert(id, regs.clone());
            return Ok(regs);
        }
        if let Some(v) = self.module.variables.get(&id) {
            let regs = self.variable(v)?;
            self.constants.insert(id, regs.clone());
            return Ok(regs);
        }
        Err(Error::new(format!("%{id} has no value here")))
    }

    /// A block as memory has it.
    pub fn whole(&self, id: u32) -> Option<&Whole> {
        self.frame.wholes.get(&id)
    }

    /// Says that a value is one, and so no registers by elements.
    pub fn keep_whole(&mut self, id: u32, whole: Whole) {
        self.frame.wholes.insert(id, whole);
    }

    /// The only register of scalar operand `k`.
    pub fn scalar(&mut self, i: &Instruction, k: usize) -> Result<String, Error> {
        let [reg] = self.value(id_of(i, k)?)?.try_into().map_err(|_| malformed(i))?;
        Ok(reg)
    }

    fn constant(&mut self, c: &Instruction) -> Result<Regs, Error> {
        let ty = c.result_type.ok_or_else(|| malformed(c))?;
        if c.class.opcode == Op::ConstantComposite {
            let mut regs = vec![];
            for k in 0..c.operands.len() {
                regs.extend(self.value(id_of(c, k)?)?);
            }
            return Ok(regs);
        }
        let regs = self.regs_of(ty)?;
        let (e, _) = self.module.elements(ty)?;
        for reg in &regs {
            match (c.class.opcode, &e) {
                // Nothing writes it: who reads it is reported.
                (Op::Undef, _) => {}
                (op, Type::Bool) => {
                    let v = u32::from(op == Op::ConstantTrue);
                    self.in_head(format!("setp.ne.u32 {reg}, {v}, 0;"));
                }
                _ => {
                    let v = whole(c).ok_or_else(|| malformed(c))?;
                    let mask = if bits(&e) == 64 { u64::MAX } else { (1 << bits(&e)) - 1 };
                    self.in_head(format!("mov.b{} {reg}, {:#x};", bits(&e).max(16), v & mask));
                }
            }
        }
        Ok(regs)
    }

    /// The address of a variable.
    fn variable(&mut self, v: &Instruction) -> Result<Regs, Error> {
        let id = v.result_id.ok_or_else(|| malformed(v))?;
        let Type::Pointer(class, to) = self.module.ty(v.result_type.ok_or_else(|| malformed(v))?)? else {
            return Err(malformed(v));
        };
        let size = self.module.size(*to)?;
        if *class == StorageClass::CrossWorkgroup && v.operands.len() > 1 {
            return self.table(v, size);
        }
        let space = match class {
            StorageClass::Workgroup => "shared",
            StorageClass::Function => "local",
            _ => return Err(unsupported(v, "a variable in this memory")),
        };
        if v.operands.len() > 1 {
            return Err(unsupported(v, "a variable with an initial value"));
        }
        let name = format!("v{id}_{}", if space == "local" { self.frame.number } else { 0 });
        self.in_head(format!(".{space} .align 16 .b8 {name}[{size}];"));
        let reg = self.reg('d');
        self.in_head(format!("mov.u64 {reg}, {name};"));
        Ok(vec![reg])
    }

    /// The address of a variable of the program's with its initial value.
    fn table(&mut self, v: &Instruction, size: u64) -> Result<Regs, Error> {
        let id = v.result_id.ok_or_else(|| malformed(v))?;
        let mut bytes = vec![];
        self.initial(id_of(v, 1)?, &mut bytes)?;
        if bytes.len() as u64 != size {
            return Err(malformed(v));
        }
        let bytes: Vec<String> = bytes.iter().map(u8::to_string).collect();
        self.tables.push(format!(".global .align 16 .b8 v{id}[{size}] = {{{}}};", bytes.join(", ")));
        let reg = self.reg('d');
        self.in_head(format!("mov.u64 {reg}, v{id};"));
        Ok(vec![reg])
    }

    /// The bytes of a constant.
    fn initial(&self, id: u32, out: &mut Vec<u8>) -> Result<(), Error> {
        let c = self.module.constants.get(&id).ok_or_else(|| Error::new(format!("%{id} is no constant")))?;
        if c.class.opcode == Op::ConstantComposite {
            return (0..c.operands.len()).try_for_each(|k| self.initial(id_of(c, k)?, out));
        }
        let size = self.module.size(c.result_type.ok_or_else(|| malformed(c))?)? as usize;
        let bits = whole(c).ok_or_else(|| malformed(c))?;
        out.extend(&bits.to_le_bytes()[..size]);
        Ok(())
    }

    fn inline(&mut self, f: &Function, arguments: Vec<Regs>) -> Result<Regs, Error> {
        let def = f.def.as_ref().ok_or_else(|| Error::new("a function with no definition"))?;
        if self.depth > 32 {
            return Err(unsupported(def, "calls this deep"));
        }
        if f.parameters.len() != arguments.len() {
            return Err(malformed(def));
        }
        let mut frame = Frame { number: self.inlined, ..Frame::default() };
        for (p, a) in f.parameters.iter().zip(arguments) {
            frame.values.insert(p.result_id.ok_or_else(|| malformed(p))?, a);
        }
        let ty = def.result_type.ok_or_else(|| malformed(def))?;
        if *self.module.ty(ty)? != Type::Void {
            frame.result = self.regs_of(ty)?;
        }
        for i in f.blocks.iter().flat_map(|b| &b.instructions).filter(|i| i.class.opcode == Op::Phi) {
            let (ty, id) = result(i)?;
            frame.values.insert(id, self.regs_of(ty)?);
            frame.edges.insert(id, self.regs_of(ty)?);
        }
        self.inlined += 1;
        self.depth += 1;
        let outer = std::mem::replace(&mut self.frame, frame);
        for b in &f.blocks {
            let label = b.label_id().ok_or_else(|| malformed(def))?;
            self.op(format!("{}:", self.label(label)));
            for i in &b.instructions {
                self.instruction(f, label, i)?;
            }
        }
        self.op(format!("end_{}:", self.frame.number));
        let frame = std::mem::replace(&mut self.frame, outer);
        self.depth -= 1;
        Ok(frame.result)
    }

    fn label(&self, id: u32) -> String {
        format!("b{}_{id}", self.frame.number)
    }

    fn instruction(&mut self, f: &Function, block: u32, i: &Instruction) -> Result<(), Error> {
        if !matches!(i.class.opcode, Op::Line | Op::NoLine) {
            self.instructions.push(i.disassemble());
        }
        match i.class.opcode {
            Op::Line => return self.source_line(i),
            Op::NoLine
            | Op::Nop
            | Op::SelectionMerge
            | Op::LoopMerge
            | Op::LifetimeStart
            | Op::LifetimeStop => {}
            Op::Phi => {
                let (ty, id) = result(i)?;
                let (e, _) = self.module.elements(ty)?;
                let (to, from) = (self.value(id)?, self.frame.edges[&id].clone());
                self.moves(&e, &to, &from);
            }
            Op::Branch => {
                let to = id_of(i, 0)?;
                self.edge(f, block, to)?;
                self.op(format!("bra {};", self.label(to)));
            }
            Op::BranchConditional => {
                let p = self.scalar(i, 0)?;
                let (yes, no) = (id_of(i, 1)?, id_of(i, 2)?);
                self.edge(f, block, yes)?;
                self.edge(f, block, no)?;
                self.op(format!("@{p} bra {};", self.label(yes)));
                self.op(format!("bra {};", self.label(no)));
            }
            Op::Return => self.op(format!("bra end_{};", self.frame.number)),
            Op::ReturnValue => {
                let v = self.value(id_of(i, 0)?)?;
                let ty = f.def.as_ref().and_then(|d| d.result_type).ok_or_else(|| malformed(i))?;
                let to = self.frame.result.clone();
                for (part, (to, v)) in self.module.parts(ty)?.iter().zip(to.iter().zip(&v)) {
                    self.moves(part, std::slice::from_ref(to), std::slice::from_ref(v));
                }
                self.op(format!("bra end_{};", self.frame.number));
            }
            Op::Unreachable => self.op("trap;"),
            Op::FunctionCall => self.call(i)?,
            Op::AsmCallINTEL => self.assembly(i)?,
            Op::Variable => {
                let v = self.variable(i)?;
                self.set(i, v)?;
            }
            _ => self.plain(i)?,
        }
        Ok(())
    }

    /// An instruction that neither begins nor ends a block.
    fn plain(&mut self, i: &Instruction) -> Result<(), Error> {
        match i.class.opcode {
            Op::Load => self.load(i),
            Op::Store => self.store(i),
            Op::AccessChain | Op::InBoundsAccessChain => self.chain(i, 1),
            Op::PtrAccessChain | Op::InBoundsPtrAccessChain => self.chain(i, 0),
            _ if group::is(i.class.opcode) => self.group(i),
            _ => self.arithmetic(i),
        }
    }

    fn source_line(&mut self, i: &Instruction) -> Result<(), Error> {
        let file = self.module.strings.get(&id_of(i, 0)?).ok_or_else(|| malformed(i))?;
        let at = self.files.iter().position(|f| f == file).unwrap_or(self.files.len());
        if at == self.files.len() {
            self.files.push(file.clone());
        }
        self.op(format!(".loc {} {} {}", at + 1, literal(i, 1)?, literal(i, 2)?));
        Ok(())
    }

    pub fn moves(&mut self, e: &Type, to: &[String], from: &[String]) {
        let ty = if *e == Type::Bool { "pred".to_string() } else { format!("b{}", bits(e).max(16)) };
        for (to, from) in to.iter().zip(from) {
            self.op(format!("mov.{ty} {to}, {from};"));
        }
    }

    /// What the phis of block `to` get from block `from`.
    fn edge(&mut self, f: &Function, from: u32, to: u32) -> Result<(), Error> {
        let Some(b) = f.blocks.iter().find(|b| b.label_id() == Some(to)) else {
            return Err(Error::new(format!("no block %{to}")));
        };
        for i in b.instructions.iter().filter(|i| i.class.opcode == Op::Phi) {
            let (ty, id) = result(i)?;
            for k in (0..i.operands.len()).step_by(2) {
                if id_of(i, k + 1)? == from {
                    let v = self.value(id_of(i, k)?)?;
                    let (e, _) = self.module.elements(ty)?;
                    let edge = self.frame.edges[&id].clone();
                    self.moves(&e, &edge, &v);
                }
            }
        }
        Ok(())
    }

    fn call(&mut self, i: &Instruction) -> Result<(), Error> {
        let id = id_of(i, 0)?;
        let arguments: Vec<Regs> =
            (1..i.operands.len()).map(|k| self.value(id_of(i, k)?)).collect::<Result<_, _>>()?;
        let out = if let Some(name) = self.module.imports.get(&id) {
            self.imported(i, name, &arguments)?
        } else {
            let module = self.module;
            let f = module.function(id).ok_or_else(|| malformed(i))?;
            self.inline(f, arguments)?
        };
        // What comes after belongs to the instructions after the call.
        self.instructions.push(i.disassemble());
        let (ty, _) = result(i)?;
        let want = if *self.module.ty(ty)? == Type::Void { 0 } else { self.module.parts(ty)?.len() };
        if out.len() != want {
            return Err(unsupported(i, "a result of this shape"));
        }
        self.set(i, out)
    }

    /// Gives an instruction's result its registers.
    pub fn set(&mut self, i: &Instruction, v: Regs) -> Result<(), Error> {
        self.frame.values.insert(i.result_id.ok_or_else(|| malformed(i))?, v);
        Ok(())
    }

    /// The address `operands[0]` points to, moved by the indices after it; `skip` is 1 where the first index is into what it points to.
    fn chain(&mut self, i: &Instruction, skip: usize) -> Result<(), Error> {
        let base = id_of(i, 0)?;
        let mut at = self.scalar(i, 0)?;
        let &Type::Pointer(_, mut to) = self.module.ty(self.type_of(base)?)? else {
            return Err(malformed(i));
        };
        for k in 1..i.operands.len() {
            if k + skip > 1 {
                to = match self.module.ty(to)? {
                    Type::Array(e, _) | Type::Vector(e, _) => *e,
                    _ => return Err(unsupported(i, "an index into this type")),
                };
            }
            let size = self.module.size(to)?;
            let id = id_of(i, k)?;
            if self.module.constants.get(&id).and_then(whole) == Some(0) {
                continue;
            }
            let mut index = self.scalar(i, k)?;
            let Type::Int(b) = *self.module.ty(self.type_of(id)?)? else { return Err(malformed(i)) };
            if b != 64 {
                let wide = self.reg('d');
                self.op(format!("cvt.s64.s{b} {wide}, {index};"));
                index = wide;
            }
            let next = self.reg('d');
            self.op(format!("mad.lo.s64 {next}, {index}, {size}, {at};"));
            at = next;
        }
        self.set(i, vec![at])
    }

    /// The type of a value.
    pub fn type_of(&self, id: u32) -> Result<u32, Error> {
        self.module.values.get(&id).copied().ok_or_else(|| Error::new(format!("%{id} has no type")))
    }

    /// `.space`, bits of an element and how many a pointer's access has.
    pub fn place(&self, i: &Instruction, pointer: u32) -> Result<(&'static str, u32, Type), Error> {
        let Type::Pointer(class, to) = self.module.ty(self.type_of(pointer)?)? else {
            return Err(malformed(i));
        };
        let space = match class {
            StorageClass::CrossWorkgroup => "global",
            StorageClass::Workgroup => "shared",
            StorageClass::Function => "local",
            _ => return Err(unsupported(i, "an access to this memory")),
        };
        Ok((space, *to, self.module.elements(*to)?.0))
    }

    fn load(&mut self, i: &Instruction) -> Result<(), Error> {
        let pointer = id_of(i, 0)?;
        if let Some(b) = self.module.builtins.get(&pointer) {
            let v = self.builtin(i, *b)?;
            return self.set(i, v);
        }
        let (space, ty, e) = self.place(i, pointer)?;
        let at = self.scalar(i, 0)?;
        let regs = self.regs_of(ty)?;
        if e == Type::Bool {
            return Err(unsupported(i, "a truth value in memory"));
        }
        for (k, reg) in regs.iter().enumerate() {
            let b = bits(&e);
            self.op(format!("ld.{space}.{}{b} {reg}, [{at}+{}];", unsigned(b), k as u32 * b / 8));
        }
        self.set(i, regs)
    }

    fn store(&mut self, i: &Instruction) -> Result<(), Error> {
        let (space, _, e) = self.place(i, id_of(i, 0)?)?;
        let at = self.scalar(i, 0)?;
        if e == Type::Bool {
            return Err(unsupported(i, "a truth value in memory"));
        }
        for (k, reg) in self.value(id_of(i, 1)?)?.iter().enumerate() {
            let b = bits(&e);
            self.op(format!("st.{space}.{}{b} [{at}+{}], {reg};", unsigned(b), k as u32 * b / 8));
        }
        Ok(())
    }

    /// The value of a variable that the launch sets.
    fn builtin(&mut self, i: &Instruction, b: BuiltIn) -> Result<Regs, Error> {
        let (e, n) = self.module.elements(i.result_type.ok_or_else(|| malformed(i))?)?;
        let mut regs = vec![];
        for k in 0..n {
            let axis = ["x", "y", "z"].get(k).ok_or_else(|| malformed(i))?;
            let r = self.reg('r');
            let (item, items) = if k == 0 { ("%item", "%items") } else { ("0", "1") };
            let lanes = self.lanes;
            let line = match b {
                BuiltIn::LocalInvocationId => format!("mov.u32 {r}, {item};"),
                BuiltIn::WorkgroupSize => format!("mov.u32 {r}, {items};"),
                BuiltIn::WorkgroupId => format!("mov.u32 {r}, %ctaid.{axis};"),
                BuiltIn::NumWorkgroups => format!("mov.u32 {r}, %nctaid.{axis};"),
                BuiltIn::GlobalInvocationId => {
                    self.op(format!("mov.u32 {r}, %ctaid.{axis};"));
                    format!("mad.lo.u32 {r}, {r}, {items}, {item};")
                }
                BuiltIn::GlobalSize => {
                    self.op(format!("mov.u32 {r}, %nctaid.{axis};"));
                    format!("mul.lo.u32 {r}, {r}, {items};")
                }
                BuiltIn::LocalInvocationIndex => format!("mov.u32 {r}, %item;"),
                BuiltIn::SubgroupId => format!("mov.u32 {r}, %sub;"),
                BuiltIn::NumSubgroups => format!("mov.u32 {r}, %subs;"),
                BuiltIn::SubgroupLocalInvocationId => format!("mov.u32 {r}, %lane;"),
                BuiltIn::SubgroupSize | BuiltIn::SubgroupMaxSize => format!("mov.u32 {r}, {lanes};"),
                _ => return Err(unsupported(i, "this built-in")),
            };
            self.op(line);
            regs.push(match e {
                Type::Int(32) => r,
                Type::Int(64) => {
                    let d = self.reg('d');
                    self.op(format!("cvt.u64.u32 {d}, {r};"));
                    d
                }
                _ => return Err(malformed(i)),
            });
        }
        Ok(regs)
    }
}

/// Type and id of an instruction's result.
pub(crate) fn result(i: &Instruction) -> Result<(u32, u32), Error> {
    i.result_type.zip(i.result_id).ok_or_else(|| malformed(i))
}

/// Bits of a scalar in memory; a truth value has one.
pub(crate) fn bits(e: &Type) -> u32 {
    match e {
        Type::Int(b) | Type::Float(b) => *b,
        Type::Bool => 1,
        _ => 64,
    }
}

/// A byte has no untyped access to a register of 16 bits.
fn unsigned(bits: u32) -> char {
    if bits == 8 { 'u' } else { 'b' }
}

/// The operands after the first `from`, as ids.
pub(crate) fn ids(i: &Instruction, from: usize) -> Vec<u32> {
    i.operands[from.min(i.operands.len())..]
        .iter()
        .filter_map(|o| match o {
            Operand::IdRef(id) => Some(*id),
            _ => None,
        })
        .collect()
}
